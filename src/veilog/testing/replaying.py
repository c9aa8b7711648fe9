"""Record what a method asks and is answered on one log, and give it the same answers on another.

During a recording every question draws its noise from a source of its own, so what a method draws itself afterwards
comes from the same random bits in both runs. During the replay each question must be the recorded one: equal numbers,
and functions that map every case of a fixed log to the same as before. The raw log behind the curator is then of no
account, unless the method reaches it in another way: by what it keeps of the cases that its functions are shown. In the
replay they are shown cases of the other log, too, of which nothing is made.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from veilog.audits.watching import watched
from veilog.logs.eventlog import EventLog
from veilog.logs.variants import Variants
from veilog.privacy.cases import RawCases
from veilog.privacy.curator import Curator
from veilog.privacy.domain import Domain
from veilog.privacy.events import EventQuestions, EventRounds
from veilog.privacy.mechanisms import noise
from veilog.privacy.rounds import Rounds
from veilog.privacy.training.gradients import Training
from veilog.releasing.request import ReleaseRequest
from veilog.releasing.result import Release
from veilog.releasing.run import run_plan

__all__ = ["NOT_PER_CASE", "Tape", "recorded_and_replayed", "same"]

Log = EventLog | Variants
NOT_PER_CASE = "of a case by itself it makes something else than among others"


@dataclasses.dataclass
class Tape:
    """Questions in their order, which it is told as a watcher; ``position`` is the next to be replayed, None while
    recording."""

    probe: Log
    other: Log
    """Shown to functions in the replay."""
    domain: Domain
    entries: list[tuple[Any, Any, list[Any]]] = dataclasses.field(default_factory=list)
    totals: dict[int, list[Any]] = dataclasses.field(default_factory=dict)
    """By the number of the question, what it noted of its answer."""
    position: int | None = None

    def question(self, holder: Any, name: str, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Return the answer, which while replaying is the recorded one."""
        if isinstance(holder, Training):
            return self._step(holder, *given, **named)
        asked = self._asked(holder, name, given, named)
        paid = isinstance(holder, Rounds | EventRounds)  # each of these was charged when they were paid for
        asked = asked if paid else (type(holder).__name__, *asked)
        if self.position is None:
            before, noted = len(self._charges(holder)), len(_totals(holder))
            answer = self._apart(holder, name, given, named)
            self.totals[len(self.entries)] = _totals(holder)[noted:]
            self.entries.append((asked, answer, self._charges(holder)[before:]))
        else:
            number = self.position
            answer, charges = self._next(asked)
            _totals(holder).extend(self.totals[number])
            if paid:
                holder._asked += 1
            else:
                holder._account.carry(charges)
        if name == "find_activities":  # it narrows the domain, also that of a curator that was not asked itself
            holder._narrow(answer)
            self.domain = holder.domain
        return answer

    def opened(self, holder: Any, name: str, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Return what is opened; it is opened again while replaying."""
        asked = self._asked(holder, name, given, named)
        if self.position is None:
            self.entries.append((asked, None, []))
        else:
            self._next(asked)
        found = self._apart(holder, name, given, named)
        if isinstance(found, Curator):
            found._randomness = holder._randomness
        return found

    def peeked(self, holder: Any, name: str, given: tuple[Any, ...]) -> Any:
        """Nobody may do that."""
        raise AssertionError(f"it peeks at the raw data ({given[0]})")

    def _step(self, training: Training, part: int, factors: Callable[[Any], Any]) -> Any:
        if self.position is None:
            seen: list[Any] = []

            def noted(columns: Any) -> Any:
                found = factors(columns)
                seen.extend((columns.copy(), _plain(found)))
                return found

            sums = training.step(part, noted)
            copies = [(weight.copy(), bias.copy()) for weight, bias in sums]
            self.entries.append((("step", part, seen[1]), (seen[0], copies), []))
            return sums
        assert self.position < len(self.entries), "one step more"
        columns, sums = self.entries[self.position][1]
        self._next(("step", part, _plain(factors(columns))))
        training._taken[part] += 1
        return [(weight.copy(), bias.copy()) for weight, bias in sums]

    def _next(self, asked: Any) -> tuple[Any, list[Any]]:
        assert self.position is not None
        assert self.position < len(self.entries), f"one question more: {asked}"
        known, answer, charges = self.entries[self.position]
        assert asked == known, "another question is asked"
        self.position += 1
        return answer, charges

    def _charges(self, holder: Any) -> list[Any]:
        return [] if isinstance(holder, Rounds | EventRounds) else list(holder._account.charges)

    def _apart(self, holder: Any, name: str, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Ask with random bits that are of no use to anyone else."""
        own = holder._randomness
        holder._randomness = noise.seeded(1000 + len(self.entries))
        try:
            return getattr(holder, name)(*given, **named)
        finally:
            holder._randomness = own

    def _asked(self, holder: Any, name: str, given: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
        """The name and all arguments, functions replaced by what they make of the cases of the recorded log."""
        bound = inspect.signature(getattr(holder, name)).bind(*given, **named)
        bound.apply_defaults()
        arguments = dict(bound.arguments)
        for argument, value in arguments.items():
            if callable(value):
                of_events = isinstance(holder, EventQuestions | EventRounds)
                blocks = self._blocks(self.probe, arguments, of_events=of_events)
                arguments[argument] = [_of_each_case(value, block) for block in blocks]
                if self.position is not None:
                    for block in self._blocks(self.other, arguments, of_events=of_events):
                        value(block)
        return name, _plain(arguments)

    def _blocks(self, log: Log, arguments: Mapping[str, Any], *, of_events: bool) -> list[Any]:
        """The cases of a log as a function gets them."""
        if not of_events:
            return [self.domain.fit(log if isinstance(log, Variants) else log.variants).sequences]
        assert isinstance(log, EventLog)
        return list(RawCases(log, self.domain).blocks(arguments["alphabet"], arguments["codings"]))


def _totals(holder: Any) -> list[Any]:
    """The totals of the answers of a curator so far; of what it opened none are noted."""
    return holder._totals.answers if isinstance(holder, Curator) else []


def recorded_and_replayed(planned: ReleaseRequest, one: Log, other: Log) -> tuple[Release, Release, Tape]:
    """Return the release of ``one``, that of ``other`` with the answers of ``one``, and what was asked.

    An ``AssertionError`` says where the second run asks otherwise, or looks at what nobody may see.
    """
    tape = Tape(one, other, planned.public)

    def beside(curator: Curator) -> Curator:
        # Which cases of a person count was drawn before: from more bits where there are more people.
        curator._randomness = noise.seeded(1)
        return watched(curator, tape)

    first = run_plan(planned.seeded(1), one, watched=beside)
    tape.position, tape.domain = 0, planned.public
    second = run_plan(planned.seeded(1), other, watched=beside)
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
