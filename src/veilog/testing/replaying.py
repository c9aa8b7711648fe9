"""Record what a method asks and is answered on one log, and give it the same answers on another.

During a recording every question draws its noise from a source of its own, so what a method draws itself afterwards
comes from the same random bits in both runs. During the replay each question must be the recorded one: equal numbers,
and functions that map every case of a fixed log to the same as before. The raw log behind the curator is then of no
account, unless the method reaches it in another way.
"""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from unittest import mock

import numpy as np

from veilog.logs.eventlog import EventLog
from veilog.logs.variants import Variants
from veilog.privacy.cases import Cases, RawCases
from veilog.privacy.curator import Curator
from veilog.privacy.domain import Domain
from veilog.privacy.events import EventQuestions
from veilog.privacy.mechanisms import noise
from veilog.privacy.rounds import Rounds
from veilog.privacy.training.gradients import Training
from veilog.releasing.plan import Plan
from veilog.releasing.result import Release

__all__ = ["NOT_PER_CASE", "OPENING", "Tape", "recorded_and_replayed", "same"]

Log = EventLog | Variants
NOT_PER_CASE = "of a case by itself it makes something else than among others"


@dataclasses.dataclass
class Tape:
    """Questions in their order; ``position`` is the next to be replayed, None while recording."""

    probe: Log
    domain: Domain
    entries: list[tuple[Any, Any, list[Any]]] = dataclasses.field(default_factory=list)
    position: int | None = None

    def next(self, asked: Any) -> tuple[Any, list[Any]]:
        assert self.position is not None
        assert self.position < len(self.entries), f"one question more: {asked}"
        known, answer, charges = self.entries[self.position]
        assert asked == known, "another question is asked"
        self.position += 1
        return answer, charges


def recorded_and_replayed(planned: Plan, one: Log, other: Log) -> tuple[Release, Release, Tape]:
    """Return the release of ``one``, that of ``other`` with the answers of ``one``, and what was asked.

    An ``AssertionError`` says where the second run asks otherwise, or looks at what nobody may see.
    """
    tape = Tape(one, planned.public)
    with contextlib.ExitStack() as stack:
        for patch in _patches(tape):
            stack.enter_context(patch)
        first = planned.seeded(1).run(one)
        tape.position, tape.domain = 0, planned.public
        second = planned.seeded(1).run(other)
    return first, second, tape


def same(first: Release, second: Release) -> bool:
    """Return whether all that is published is equal."""
    a, b = first.log, second.log
    return (
        first.variants == second.variants
        and a.events.equals(b.events)
        and a.cases.equals(b.cases)
        and a.metadata == b.metadata
        and first.guarantee == second.guarantee
        and (first.remarks, first.operations) == (second.remarks, second.operations)
    )


def _patches(tape: Tape) -> Iterator[contextlib.AbstractContextManager[Any]]:
    for holder, names in ((Curator, _QUESTIONS), (EventQuestions, _EVENT_QUESTIONS)):
        for name in names:
            yield mock.patch.object(holder, name, _question(getattr(holder, name), holder.__name__, tape))
    yield mock.patch.object(Curator, "find_activities", _finding(Curator.find_activities, tape))
    for name in OPENING:
        yield mock.patch.object(Curator, name, _opened(getattr(Curator, name), tape))
    yield mock.patch.object(Training, "step", _step(Training.step, tape))
    yield mock.patch.object(Rounds, "histogram", _round(Rounds.histogram, tape))
    for name in ("peek", "peek_log", "peek_pieces"):
        yield mock.patch.object(Curator, name, _refused)


_QUESTIONS = ("count", "concentration", "histogram", "sums", "partitions")
_EVENT_QUESTIONS = ("sums", "distinct", "frequent_values")
OPENING = ("subsample", "training", "rounds")
"""What gives a curator, steps or histograms to ask further; all are asked again of the other log."""


def _question(question: Callable[..., Any], holder: str, tape: Tape) -> Callable[..., Any]:
    def ask(self: Any, *given: Any, **named: Any) -> Any:
        asked = (holder, *_asked(question, tape, (self, *given), named))
        if tape.position is None:
            before = len(self._account.charges)
            answer = _apart(self, tape, lambda: question(self, *given, **named))
            tape.entries.append((asked, answer, list(self._account.charges[before:])))
            return answer
        answer, charges = tape.next(asked)
        self._account.carry(charges)
        return answer

    return ask


def _finding(question: Callable[..., Any], tape: Tape) -> Callable[..., Any]:
    """The question that narrows the domain: the answer holds for the tape's cases, too, and for those of the curator
    that was not asked itself."""
    ask = _question(question, Curator.__name__, tape)

    def find(self: Curator, *given: Any, **named: Any) -> Any:
        found = ask(self, *given, **named)
        tape.domain = self.domain = dataclasses.replace(self.domain, activities=found)
        self._variants = self.domain.fit(self._variants)
        return found

    return find


def _opened(question: Callable[..., Any], tape: Tape) -> Callable[..., Any]:
    def ask(self: Any, *given: Any, **named: Any) -> Any:
        asked = _asked(question, tape, (self, *given), named)
        if tape.position is None:
            tape.entries.append((asked, None, []))
        else:
            tape.next(asked)
        found = _apart(self, tape, lambda: question(self, *given, **named))
        if isinstance(found, Curator):
            found._randomness = self._randomness
        return found

    return ask


def _round(histogram: Callable[..., Any], tape: Tape) -> Callable[..., Any]:
    """A histogram that was charged when it was paid for."""

    def ask(self: Rounds, *given: Any, **named: Any) -> Any:
        asked = _asked(histogram, tape, (self, *given), named)
        if tape.position is None:
            answer = _apart(self, tape, lambda: histogram(self, *given, **named))
            tape.entries.append((asked, answer, []))
            return answer
        self._asked += 1
        return tape.next(asked)[0]

    return ask


def _step(step: Callable[..., Any], tape: Tape) -> Callable[..., Any]:
    def take(self: Training, part: int, factors: Callable[[Any], Any]) -> Any:
        if tape.position is None:
            seen: list[Any] = []

            def noted(columns: Any) -> Any:
                found = factors(columns)
                seen.extend((columns.copy(), _plain(found)))
                return found

            sums = step(self, part, noted)
            copies = [(weight.copy(), bias.copy()) for weight, bias in sums]
            tape.entries.append((("step", part, seen[1]), (seen[0], copies), []))
            return sums
        assert tape.position < len(tape.entries), "one step more"
        columns, sums = tape.entries[tape.position][1]
        tape.next(("step", part, _plain(factors(columns))))
        self._taken[part] += 1
        return [(weight.copy(), bias.copy()) for weight, bias in sums]

    return take


def _refused(self: Curator, reason: str) -> Any:
    raise AssertionError(f"it peeks at the raw data ({reason})")


def _apart(self: Any, tape: Tape, ask: Callable[[], Any]) -> Any:
    """Ask with random bits that are of no use to anyone else."""
    own = self._randomness
    self._randomness = noise.seeded(1000 + len(tape.entries))
    try:
        return ask()
    finally:
        self._randomness = own


def _asked(question: Callable[..., Any], tape: Tape, given: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
    """The name and all arguments, functions replaced by what they make of the cases of the tape's log."""
    bound = inspect.signature(question).bind(*given, **named)
    bound.apply_defaults()
    arguments = {name: value for name, value in bound.arguments.items() if name != "self"}
    for name, value in arguments.items():
        if callable(value):
            events = isinstance(given[0], EventQuestions)
            blocks = _blocks(tape, arguments) if events else [_sequences(tape)]
            arguments[name] = [_of_each_case(value, block) for block in blocks]
    return question.__name__, _plain(arguments)


def _of_each_case(function: Callable[[Any], Any], block: Any) -> Any:
    """What a function makes of a block; it must make the same of each case by itself."""
    whole = function(block)
    for i in range(len(block)):
        single = function(block.take(np.array([i])))
        if isinstance(whole, tuple | list) and len(whole) == 3 and np.ndim(whole[0]) == 1:
            rows, columns, values = (np.asarray(part) for part in whole)
            own = _added_up(columns[rows == i], values[rows == i])
            same = own == _added_up(*(np.asarray(part) for part in single[1:]))
        else:
            same = bool(np.asarray(whole)[i] == np.asarray(single)[0])
        assert same, NOT_PER_CASE
    return whole


def _added_up(columns: Any, values: Any) -> dict[int, int]:
    """A sparse vector in one form."""
    found: dict[int, int] = {}
    for column, value in zip(columns.tolist(), values.tolist(), strict=True):
        found[column] = found.get(column, 0) + value
    return {column: value for column, value in found.items() if value}


def _sequences(tape: Tape) -> Any:
    variants = tape.probe if isinstance(tape.probe, Variants) else tape.probe.variants
    return tape.domain.fit(variants).sequences


def _blocks(tape: Tape, arguments: Mapping[str, Any]) -> list[Cases]:
    assert isinstance(tape.probe, EventLog)
    return list(RawCases(tape.probe, tape.domain).blocks(arguments["alphabet"], arguments["codings"]))


def _plain(value: Any) -> Any:
    """The value as it is now, in things that compare by what they hold."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, list | tuple):
        return tuple(_plain(v) for v in value)
    if isinstance(value, Mapping):
        return {name: _plain(v) for name, v in value.items()}
    if dataclasses.is_dataclass(value):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    return value
