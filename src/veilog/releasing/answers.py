"""Answers that a release was made of: recorded while it is made, replayed later.

A release follows from its request, the answers of the curator and the random words of the method. So a run with the
recorded answers and words makes the same release again without a log. With other words after the last answer, it makes
other cases by the same answers.

Privacy: three things are recorded.

- *Answers*, as the curator gave them. Each was charged before it was given, and the guarantee is that of all of them
  together. Anything computed from them is post-processing, on any machine.
- *Public facts* that the method asked for: activities, the longest trace, the window, and the type and level of
  columns. Each fact that the log gave is a condition of the guarantee.
- *Words* of the method. A recorded method has a source of its own in place of the curator's. This module takes its
  words from the operating system and hands them only to the method. The kernel draws noise from words that it takes
  itself. Both sources are independent, so words together with answers reveal no more of the noise than the answers do.
  Words and earlier answers may decide which query is asked. Adaptive composition allows that, and allows that an
  adversary knows the words.
With a seed, words and noise come from one generator, whose state follows from enough words. Such a release guarantees
nothing, and its record is in no file. A method that peeks is not recorded, as it may draw noise from its own words.
veilog also records no method of another package, since it cannot check that of it, and none that trains or asks about
samples.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import Any, Protocol, TypeAlias, cast

import numpy as np

from veilog._typing import AnyArray, IntArray
from veilog.logs.variants import Variants
from veilog.modelfile import Damaged
from veilog.privacy.curator import Curator
from veilog.privacy.domain import Domain, Window
from veilog.privacy.events import EventRounds
from veilog.privacy.histograms import SparseHistogram, gaussian_rounds, histogram_rounds
from veilog.privacy.mechanisms.mechanism import DiscreteGaussian
from veilog.privacy.mechanisms.noise import Randomness, WordArray
from veilog.privacy.partition import Partition
from veilog.privacy.unit import Unit

QUESTIONS = (
    "count",
    "concentration",
    "histogram",
    "sums",
    "cube_sums",
    "sums_of_persons",
    "partitions",
    "find_activities",
    "distinct",
    "frequent_values",
    "most_apart",
    "step",
)
"""Queries answered with numbers or names. Curators, their queries about events and rounds answer ``sums``."""
OPENING = ("subsample", "training", "rounds")
"""Calls that open a curator, steps, histograms or sums to ask further."""
PEEKING = ("peek", "peek_log")
WORDS = "words"
"""The name under which random words are recorded."""
MOST_NUMBERS = 8_000_000
"""Most numbers in a record (64 MB); a larger record is dropped."""
_FACTS, _FACTS_OF_COLUMNS = ("activities", "max_length", "window"), ("level", "kind")

Answer: TypeAlias = "int | IntArray | SparseHistogram | Variants | tuple[str, ...] | tuple[int, int]"


# Watching -----------------------------------------------------------------------------------------------------------


class Watcher(Protocol):
    """Watcher of a curator, which sees each query and answers it."""

    def question(self, holder: Any, name: str, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Return the answer to a query of ``holder``.

        The holder is a curator, something that it opened, or its queries about events.
        """

    def opened(self, holder: Any, name: str, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Return an opened curator of a sample, training, or rounds of histograms or sums."""

    def peeked(self, holder: Any, name: str, given: tuple[Any, ...]) -> Any:
        """Return the result of a look at the log without noise."""


class _Watched:
    """Stand-in for a curator, its queries about events or a training."""

    def __init__(self, holder: Any, watcher: Any) -> None:
        self._holder, self._watcher = holder, watcher

    def __getattr__(self, name: str) -> Any:
        holder, watcher = self._holder, self._watcher
        if name in QUESTIONS:
            return lambda *given, **named: watcher.question(holder, name, given, named)
        if name in OPENING:
            return lambda *given, **named: type(self)(watcher.opened(holder, name, given, named), watcher)
        if name in PEEKING:
            return lambda *given: watcher.peeked(holder, name, given)
        found = getattr(holder, name)
        return type(self)(found, watcher) if name == "events" else found


def watch(curator: Curator, watcher: Watcher) -> Curator:
    """Return a stand-in for the curator that passes each query to the watcher."""
    return cast(Curator, _Watched(curator, watcher))


# Recording ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class AnswerRecord:
    """Named answers and random words in their order, and named public facts."""

    entries: list[tuple[str, Answer]] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    """Public facts by name, in plain values."""

    def last_answer(self, start: int, stop: int) -> int:
        """Return the place of the last answer among some entries, or ``start - 1``."""
        return max((i for i in range(start, stop) if self.entries[i][0] != WORDS), default=start - 1)


@dataclass(frozen=True, eq=False)
class Recording:
    """A request and what was answered to it."""

    request: Any
    record: AnswerRecord


class AnswerRecorder:
    """Recorder of the answers to a method, as its watcher."""

    def __init__(self, curator: Curator) -> None:
        self._source, self._record, self._numbers = curator.randomness, AnswerRecord(), 0
        self._complete = True
        self.curator = cast(Curator, _Recorded(curator, self))
        self.randomness = Randomness(self._words, self._source.seed)

    @property
    def record(self) -> AnswerRecord | None:
        """The record; None if it is incomplete or too large to keep."""
        return self._record if self._complete and self._numbers <= MOST_NUMBERS else None

    def question(self, holder: Any, name: str, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Return the answer, which is recorded."""
        answer = getattr(holder, name)(*given, **named)
        self._complete &= name != "step"
        self._keep(name, answer)
        return answer

    def opened(self, holder: Any, name: str, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Return the opened object; of trainings and samples there is no record."""
        self._complete &= name == "rounds"
        return getattr(holder, name)(*given, **named)

    def peeked(self, holder: Any, name: str, given: tuple[Any, ...]) -> Any:
        """Return the result of a look at the log; from here on there is no record."""
        self._complete, self._record = False, AnswerRecord()
        return getattr(holder, name)(*given)

    def fact(self, name: str, value: Any) -> Any:
        """Return a public fact, which is recorded."""
        self._record.facts[name] = _plain_fact(value)
        return value

    def _words(self, number: int) -> WordArray:
        words = self._source.words(number)
        self._keep(WORDS, words.astype(np.int64))
        return words

    def _keep(self, name: str, answer: Any) -> None:
        self._numbers += numbers_in(answer)
        if self.record is None:
            self._record = AnswerRecord()
            return
        # A copy: the method may go on to compute in the array that it was given.
        self._record.entries.append((name, answer.copy() if isinstance(answer, np.ndarray) else answer))


class _Recorded(_Watched):
    """Stand-in for a recorded curator, with random words for the method alone."""

    def __getattr__(self, name: str) -> Any:
        recorder = self._watcher
        if name == "randomness":
            return recorder.randomness
        found = super().__getattr__(name)
        if name in _FACTS:
            return recorder.fact(name, found)
        if name in _FACTS_OF_COLUMNS:
            return lambda column: recorder.fact(f"{name} {column}", found(column))
        return found


def numbers_in(answer: Answer) -> int:
    """Return how many numbers, or names, an answer has."""
    if isinstance(answer, SparseHistogram):
        return 2 * len(answer.bins)
    if isinstance(answer, Variants):
        return len(answer.codes) + 2 * len(answer)
    return answer.size if isinstance(answer, np.ndarray) else len(answer) if isinstance(answer, tuple) else 1


def _plain_fact(value: Any) -> Any:
    if isinstance(value, tuple):
        return [one.isoformat() if isinstance(one, datetime.datetime) else one for one in value]
    return value


# Replaying ----------------------------------------------------------------------------------------------------------


class ReplayedCurator:
    """Stand-in for a curator that repeats recorded answers and never sees a log.

    Once the last answer is given after :meth:`rewind`, random words are fresh, and generators that were made before go
    on with fresh numbers, too.
    """

    def __init__(self, record: AnswerRecord, domain: Domain, unit: Unit, subset: Partition | None) -> None:
        self.domain, self.unit, self._record, self._subset = domain, unit, record, subset
        self._place, self._turn = 0, len(record.entries)
        self._fresh: np.random.Generator | None = None
        self._seen: list[np.random.Generator] = []
        self.randomness = Randomness(self._words, None, self._seen.append)
        self.events = _ReplayedEvents(self)

    def rewind(self, start: int, stop: int, fresh: np.random.Generator) -> None:
        """Go back to the entry ``start`` and give the answers before ``stop`` again.

        Words after the last of these answers are fresh.
        """
        self._place, self._turn, self._fresh = start, self._record.last_answer(start, stop) + 1, fresh
        self._seen.clear()

    @property
    def charges(self) -> Sequence[int]:
        """As many places as entries were replayed; they stand for charges."""
        return range(self._place)

    @property
    def activities(self) -> tuple[str, ...]:
        """The public alphabet."""
        return tuple(self.fact("activities"))

    @property
    def max_length(self) -> int:
        """The public bound on the length of a trace."""
        return int(self.fact("max_length"))

    def fact(self, name: str) -> Any:
        """Return a public fact as it was recorded."""
        if name not in self._record.facts:
            raise Damaged("model-file-damaged")
        return self._record.facts[name]

    def within(self, window: Window) -> Window:
        """Return when cases of the subset may start."""
        return window if self._subset is None else self._subset.within(window)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in QUESTIONS:
            raise AttributeError(name)
        return partial(self._answer, name)

    def rounds(self, weights: Sequence[Fraction], epsilon: Any, delta: Any, **_: Any) -> _ReplayedRounds:
        """Return histograms that share a budget."""
        return _ReplayedRounds(self, histogram_rounds(weights, Fraction(epsilon), Fraction(delta)).noises)

    def _answer(self, name: str, *given: Any, **named: Any) -> Any:
        if self._place >= self._turn:
            raise Damaged("model-file-damaged")
        known, answer = self._record.entries[self._place]
        size = given[1] if len(given) > 1 else named.get("size")
        dense = isinstance(answer, np.ndarray) and name in ("histogram", "sums", "sums_of_persons")
        if known != name or (dense and cast(AnyArray, answer).size != size):
            raise Damaged("model-file-damaged")
        self._place += 1
        if self._place == self._turn and self._fresh is not None:
            for one in self._seen:
                one.bit_generator.state = np.random.PCG64(self._fresh.integers(2**32, size=8)).state
        if name == "find_activities":
            self.domain = replace(self.domain, activities=cast("tuple[str, ...]", answer))
        return answer.copy() if isinstance(answer, np.ndarray) else answer

    def _words(self, number: int) -> WordArray:
        if self._place >= self._turn and self._fresh is not None:
            return self._fresh.integers(2**32, size=number, dtype=np.uint32)
        known, words = self._record.entries[self._place] if self._place < self._turn else ("", 0)
        if known != WORDS or not isinstance(words, np.ndarray) or words.size != number:
            raise Damaged("model-file-damaged")
        self._place += 1
        return words.astype(np.uint32)


class _ReplayedEvents:
    """Stand-in for queries about events."""

    def __init__(self, curator: ReplayedCurator) -> None:
        self._curator = curator

    def __getattr__(self, name: str) -> Any:
        return getattr(self._curator, name)

    @property
    def window(self) -> Window:
        start, end = map(datetime.datetime.fromisoformat, self._curator.fact("window"))
        return start, end

    def level(self, name: str) -> Any:
        return self._curator.fact(f"level {name}")

    def kind(self, name: str) -> Any:
        return self._curator.fact(f"kind {name}")

    def of_subset(self, window: Window) -> Window:
        return self._curator.within(window)

    def check_moments(self, name: str) -> None:
        """Refuse nothing: the release was made."""

    def rounds(self, weights: Sequence[Fraction], epsilon: Any, delta: Any, **_: Any) -> _ReplayedRounds:
        noises = gaussian_rounds(weights, Fraction(epsilon), Fraction(delta), by=EventRounds.UNIT).noises
        return _ReplayedRounds(self._curator, noises)


@dataclass(eq=False)
class _ReplayedRounds:
    """Stands in for histograms or sums that share a budget."""

    curator: ReplayedCurator
    noises: tuple[DiscreteGaussian, ...]
    asked: int = 0
    UNIT = EventRounds.UNIT

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in ("histogram", "sums"):
            raise AttributeError(name)
        self.asked += 1
        return getattr(self.curator, name)  # type: ignore[no-any-return]
