"""What a release counts as: its part of the cases, the way in which its log was read, and what a case is in that."""

from __future__ import annotations

import datetime
import functools
import json
import math
import os
import re
import secrets
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal

from veilog.errors import ParameterError
from veilog.logs.eventlog import CASE
from veilog.privacy.account.composing import (
    Answer,
    best_order,
    planned_epsilon,
    renyi_epsilon,
    renyi_of,
    renyi_room,
)
from veilog.privacy.part import RULES_OF_TIME, SPAN

MARK = "\x1f"
"""Between a part and a way."""

_OF_ANY = frozenset({CASE, "concept:name"})
"""Columns that are called so in every log of these formats, whatever its cases are."""


def as_read(part: object | None, way: str) -> str | None:
    """Return what a part counts as where its log was read in this way; empty if nobody knows."""
    return None if part is None else f"{part}{MARK}{way}" if way else str(part)


def named(part: str) -> str:
    """Return the part alone of what it counts as."""
    return part.partition(MARK)[0]


def kind_of_case(way: str) -> str:
    """Return what a case is in a log that was read in this way: the column, or the type of objects, that tells cases.

    Where nothing names it (a CSV file that veilog wrote, an XES file of another program, a log that was never read), it
    is :data:`CASE`, a kind of its own: such a log may be of visits or of patients, whose releases do not add up.
    """
    return _kind(_told(way)) or CASE


def _kind(said: Mapping[str, Any]) -> str | None:
    """What a case is by a way, or by that of the log before, which a file of ours names no column of."""
    kind = said.get("object type") or said.get("case")
    if isinstance(kind, str) and kind not in _OF_ANY:
        return kind
    return _kind(said["before"]) if isinstance(said.get("before"), dict) else None


def differences(before: str, now: str) -> str:
    """Return in words what differs between two ways."""
    one, other = _told(before), _told(now)
    names = [name for name in sorted({*one, *other}) if one.get(name) != other.get(name)]
    return "; ".join(f"{name}: {one.get(name)!r}, now {other.get(name)!r}" for name in names)


def is_of_time(rule: str) -> bool:
    """Return whether a rule looks at the starts of cases; an attribute that is called so is spelled otherwise."""
    return rule in RULES_OF_TIME or rule == SPAN


def of_rule(rule: str, way: str) -> str | None:
    """Return of a way what decides which part of this rule a case is in. None where no two such parts are known to be
    without a case in both: some times had a zone and others not, so where a case was depends on its own spelling."""
    said = _told(way)
    if is_of_time(rule):
        return None if _partly(said) else way
    if said.get("zones") is None:
        return way
    return json.dumps({name: value for name, value in said.items() if name != "zones"}, sort_keys=True)


def _partly(said: Mapping[str, Any]) -> bool:
    """Whether some times had a zone and others not; also where that is not known, of several logs before."""
    before = said.get("before")
    if said.get("zones") == "partly" or before is None:
        return said.get("zones") == "partly"
    return not isinstance(before, dict) or _partly(before)


@lru_cache(maxsize=256)
def _told(way: str) -> Mapping[str, Any]:
    """What a way says; nothing where it is empty or another program's."""
    try:
        found = json.loads(way)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


State = Literal["reserved", "charged", "written", "withdrawn"]
_ABANDONED = 86_400
"""Seconds after which a run counts as ended whose process cannot be looked at, such as one of another machine."""


@dataclass(frozen=True)
class Holder:
    """A process that reserved, as the ledger keeps it."""

    mark: str
    machine: str
    """The machine, and the space in which its processes have numbers; empty where the system names none."""
    boot: str
    process: int
    since: str
    """When the process began, as the system counts."""
    asked: bool

    @staticmethod
    def own(*, asked: bool) -> Holder:
        """Return this process, with a new mark."""
        machine, boot = _here()
        number = os.getpid()
        return Holder(secrets.token_hex(8), machine, boot, number, _begun(number) or "", asked)

    @property
    def text(self) -> str:
        """The text that is kept of it."""
        return json.dumps(asdict(self))

    @staticmethod
    def of_text(text: str) -> Holder:
        """Return the holder that was kept; :class:`ValueError` for what is none."""
        kept = json.loads(text)
        try:
            return Holder(**kept)
        except TypeError as error:
            raise ValueError("no holder") from error

    def begun(self) -> Holder:
        """Return the holder once it asks."""
        return replace(self, asked=True)

    @property
    def is_own(self) -> bool:
        """Whether it is this process."""
        own = Holder.own(asked=False)
        return (self.machine, self.boot, self.process) == (own.machine, own.boot, own.process)

    @property
    def ended(self) -> bool:
        """Whether its process is certainly gone."""
        machine, boot = _here()
        if not self.machine or self.machine != machine:
            return False
        return self.boot != boot or _begun(self.process) != self.since

    def runs(self, entered: float) -> bool:
        """Return whether it may still run, for a reservation of that time. Of one that cannot be looked at, the first
        day: a job of another machine must not be overtaken, and one that died there must not stand for ever."""
        if self.ended:
            return False
        machine, _ = _here()
        return (bool(machine) and self.machine == machine) or time.time() - entered < _ABANDONED


@functools.cache
def _here() -> tuple[str, str]:
    """Return the machine with its space of processes, and its start; empty where the system names none."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        space = Path("/proc/self/ns/pid").readlink()
    except OSError:
        return "", ""
    try:
        machine = Path("/etc/machine-id").read_text().strip()
    except OSError:  # a container, which lasts no longer than its machine runs
        machine = boot
    return f"{machine} {space}", boot


def _begun(process: int) -> str | None:
    """When a process began; None where there is none, or none that does anything more."""
    try:
        facts = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except (OSError, ValueError):
        return None
    return None if facts[0] in "ZX" else facts[19]


@dataclass(frozen=True)
class Entry:
    """One release: a row of the ledger."""

    number: int
    account: int
    time: str
    """When it was reserved, UTC."""
    method: str
    as_published: bool
    parameters: dict[str, Any]
    unit: str
    epsilon: Fraction | None
    """What it is charged, exactly; None where nothing bounds it."""
    delta: Fraction | None
    state: State
    """``reserved`` until its questions are answered, then ``charged``, then ``written``; ``withdrawn`` if it failed
    before anything was asked. A release that was cut off stays ``reserved``, which counts as spent."""
    guarantee: dict[str, Any] | None
    outputs: tuple[str, ...]
    """SHA-256 of the files it was written to."""
    counted: str | None = None
    """What it counts as, where it is of a part of the cases: that part, and how its log was read."""
    kept_answers: str | None = None
    """What it answered, as it is kept, where that composes answer by answer."""
    way: str = ""
    """How its log was read; empty if nobody knows."""
    holder: Holder | None = None
    """The process that made it, until a file of it is written or it is known to come to nothing."""
    remembered: bool = False
    """Whether the ledger keeps digests of the units that were looked at, so that they are left out of other parts."""

    @property
    def cost(self) -> Cost | None:
        """What it is charged; None where nothing bounds it."""
        return None if self.epsilon is None or self.delta is None else (self.epsilon, self.delta)

    @property
    def part(self) -> str | None:
        """Of which cases it is; all, where this is None."""
        return None if self.counted is None else named(self.counted)

    @property
    def empty(self) -> bool:
        """Whether it was charged and came out with no case, so that there was nothing to write."""
        return self.state == "charged" and self.guarantee is not None and self.guarantee.get("cases") == 0

    @property
    def kind(self) -> str | None:
        """What a case is, where it protects cases: of different kinds costs do not add up."""
        return kind_of_case(self.way) if self.unit == "case" else None

    @property
    def never_asked(self) -> bool:
        """Whether its process ended before it asked anything, so that it costs nothing."""
        return self.state == "reserved" and self.holder is not None and not self.holder.asked and self.holder.ended

    @property
    def runs(self) -> bool:
        """Whether a process may still ask or write it, other than this one once it is charged."""
        if self.holder is None or self.state not in ("reserved", "charged"):
            return False
        if self.state == "charged" and self.holder.is_own:
            return False
        return self.holder.runs(datetime.datetime.fromisoformat(self.time).timestamp())

    @cached_property
    def answers(self) -> tuple[tuple[Answer, int], ...] | None:
        """What it answered, each so often; read only where it is composed, as there may be much of it."""
        if self.kept_answers is None:
            return None
        return tuple((Answer.of_kept(kept), int(times)) for kept, times in json.loads(self.kept_answers))


@dataclass(frozen=True)
class AccountRow:
    """An account: of which unit, and how much it may spend in all (None: without a limit)."""

    number: int
    name: str
    unit: str
    budget: Cost | None
    counting: str | None = None
    """How its releases are counted against the budget; None: by the sum."""


Cost = tuple[Fraction, Fraction]
"""Epsilon and delta, exactly."""
_FREE: Cost = (Fraction(0), Fraction(0))

_FINEST = 10**150
_SPANS = re.compile(SPAN + r"=(\d{4}-\d\d-\d\d)\.\.(\d{4}-\d\d-\d\d)")


def most_of_a_case(entries: Iterable[Entry], unit: str, cost: Callable[[Entry], Cost], part: str | None = None) -> Cost:
    """Return the most that these entries cost one of the unit; where a ``part`` is given, one of the unit in that part,
    which no other part of its rule looks at.

    Each of the two numbers is the largest of its own: they may be those of different cases.
    """
    entries = list(entries)
    counted = [entry.counted for entry in entries]
    spent = _Spent(disjoint(name for name in [*counted, part] if name is not None))
    for entry in entries:
        spent.add(part_of(entry, unit), cost(entry))
    return spent.most(part)


def before_each(entries: Iterable[Entry], unit: str, cost: Callable[[Entry], Cost]) -> list[Cost]:
    """Return for each entry the most that the entries before it cost one of the unit that is in its part."""
    entries, found = list(entries), []
    spent = _Spent(disjoint(entry.counted for entry in entries if entry.counted is not None))
    for entry in entries:
        part = part_of(entry, unit)
        found.append(spent.most(part))
        spent.add(part, cost(entry))
    return found


@dataclass
class _Spent:
    """What was spent so far on all of the unit, and for each rule on those of each piece of its parts."""

    pieces: Mapping[str, tuple[str, ...]]
    whole: Cost = (Fraction(0), Fraction(0))
    of_rules: dict[str, dict[str, Cost]] = field(default_factory=lambda: defaultdict(dict))

    def add(self, part: str | None, cost: Cost) -> None:
        """Add what was spent on a part, or on all."""
        if part is None:
            self.whole = _added(self.whole, cost)
            return
        of_rule = self.of_rules[rule_of(part)]
        of_rule |= {piece: _added(of_rule.get(piece, _FREE), cost) for piece in self.pieces[part]}

    def most(self, part: str | None) -> Cost:
        """Return the most that was spent on one of the unit; with a part on one that is in it."""
        found = self.whole
        for rule, spent in self.of_rules.items():
            costs = list(spent.values())
            if part is not None and rule == rule_of(part):
                costs = [spent.get(piece, _FREE) for piece in self.pieces[part]]
            found = _added(found, _largest_cost(costs))
        return found


def part_of(entry: Entry, unit: str) -> str | None:
    """Return the part that an entry counts as: that of its cases; for persons only where the ledger remembers them."""
    return entry.counted if unit == "case" or entry.remembered else None


def disjoint(parts: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
    """Return of each part the parts without overlap that it is made of: itself; of a span of days the spans between
    any two ends that lie next to each other, each named by its first day."""
    parts = list(parts)
    spans = {part: tuple(named(part).partition("=")[2].split("..")) for part in parts if rule_of(named(part)) == SPAN}
    ends = sorted({end for span in spans.values() for end in span})  # ISO dates sort as text
    found = {part: (part,) for part in parts}
    return found | {part: tuple(day for day in ends if first <= day < end) for part, (first, end) in spans.items()}


def _added(one: Cost, other: Cost) -> Cost:
    return one[0] + other[0], one[1] + other[1]


def _largest_cost(costs: Collection[Cost]) -> Cost:
    """The largest of each of the two numbers."""
    return max(e for e, _ in costs), max(d for _, d in costs)


def days_of(part: str | None) -> tuple[str, str] | None:
    """Return the first day of a span of days and the one after its last; None of what is no such span."""
    found = None if part is None else _SPANS.fullmatch(part)
    return None if found is None else (found[1], found[2])


def rule_of(part: str) -> str:
    """Return the rule of a part as it is spelled; an attribute that is called as that of spans is another rule, and so
    is the same rule of a log that was read in another way. Where times have a zone in part, each part is a rule of its
    own: they add up."""
    alone, mark, way = part.partition(MARK)
    rule = alone.partition("=")[0]
    if rule == SPAN and not _SPANS.fullmatch(alone):
        rule = f"case:{rule}"
    decides = of_rule(rule, way)
    return part if decides is None else rule + mark + decides


def short(value: Fraction) -> Fraction:
    """Return the fraction itself, or, where its text would be very long, one that is not smaller and hardly larger."""
    if value.denominator <= _FINEST:
        return value
    return Fraction(-(-value.numerator * _FINEST // value.denominator), _FINEST)


_NOTHING = Fraction(0)
_HALVINGS = 60
_DIGITS = 10**9
"""What was found in floating point is given in so many parts of 1, rounded to the safe side."""
MOST_RELEASES = 1_000_000


@dataclass(frozen=True)
class FixedSchedule:
    """So many releases, each of at most this cost."""

    since: int
    """The number of the last release before."""
    releases: int
    each: Cost

    def to_json(self) -> dict[str, object]:
        """Return it as it is kept and told; costs are exact texts."""
        each = {"epsilon": str(self.each[0]), "delta": str(self.each[1])}
        return {"how": "plan", "since": self.since, "releases": self.releases, "each": each}

    def left(self, entries: Iterable[Entry], unit: str, part: str | None) -> int:
        """Return how many releases are left of the plan, of the whole log or of a part of its cases."""
        made, _ = most_of_a_case(_since(entries, self.since), unit, lambda entry: (Fraction(1), _NOTHING), part)
        return max(0, self.releases - int(made))

    def room(self, entries: Iterable[Entry], unit: str, budget: Cost, part: str | None) -> Cost:
        """Return the most that the next release may cost."""
        return self.each if self.left(tuple(entries), unit, part) else (_NOTHING, _NOTHING)

    def spent(self, entries: Iterable[Entry], unit: str, budget: Cost) -> Cost:
        """Return what the releases so far cost together: all of the plan, from the first on."""
        return budget if any(True for _ in _since(entries, self.since)) else _before(entries, unit, self.since, None)


@dataclass(frozen=True)
class Composed:
    """Releases whose costs are chosen as one goes, composed in Rényi privacy of one order."""

    since: int
    order: Fraction

    def to_json(self) -> dict[str, object]:
        """Return it as it is kept and told."""
        return {"how": "composed", "since": self.since, "order": str(self.order)}

    def room(self, entries: Iterable[Entry], unit: str, budget: Cost, part: str | None) -> Cost:
        """Return the most that the next release may cost."""
        given = tuple(entries)
        before = _before(given, unit, self.since, part)
        epsilon, delta = budget[0] - before[0], budget[1] - before[1]
        if epsilon <= 0 or delta <= 0:
            return _NOTHING, _NOTHING
        by_sum, failures = most_of_a_case(_since(given, self.since), unit, cost_of, part)
        spent, _ = most_of_a_case(_since(given, self.since), unit, self._renyi, part)
        by_filter = _largest(renyi_room(epsilon, delta / 2, self.order) - spent, self.order)
        return max(epsilon - by_sum, by_filter, _NOTHING), max(delta / 2 - failures, _NOTHING)

    def spent(self, entries: Iterable[Entry], unit: str, budget: Cost) -> Cost:
        """Return what the releases so far cost together."""
        given = tuple(entries)
        before = _before(given, unit, self.since, None)
        half = max(budget[1] - before[1], _NOTHING) / 2
        by_sum, failures = most_of_a_case(_since(given, self.since), unit, cost_of)
        renyi, _ = most_of_a_case(_since(given, self.since), unit, self._renyi)
        if not half or not renyi:
            return before[0] + by_sum, before[1] + failures
        by_filter = renyi_epsilon(renyi, half, self.order)
        if by_sum <= by_filter:
            return before[0] + by_sum, before[1] + failures
        return before[0] + by_filter, before[1] + failures + half

    def _renyi(self, entry: Entry) -> Cost:
        """An answer counts for itself; what is not known one by one, or not asked yet, for what it may cost."""
        if entry.answers is None:
            return renyi_of(cost_of(entry)[0], self.order), _NOTHING
        return sum((answer.renyi(self.order) * n for answer, n in entry.answers), _NOTHING), _NOTHING


Counting = FixedSchedule | Composed


def planned_budget(
    entries: tuple[Entry, ...], unit: str, since: int, releases: int, each: Cost, delta: Fraction
) -> tuple[FixedSchedule, Cost]:
    """Return a plan that begins now, and what all of it costs at ``delta`` with what was released before."""
    if isinstance(releases, bool) or not isinstance(releases, int) or not 1 <= releases <= MOST_RELEASES:
        raise ParameterError(
            "plan-releases-out-of-range", parameter="releases", most_releases=MOST_RELEASES, releases=releases
        )
    before = _before(entries, unit, since, None)
    rest = delta - before[1]
    epsilon = planned_epsilon({each: releases}, rest) if rest > 0 else None
    if epsilon is None:
        raise ParameterError("plan-delta-used-before" if before[1] else "plan-delta-too-small", parameter="delta")
    whole = before[0] + Fraction(math.ceil(epsilon * _DIGITS), _DIGITS)
    return FixedSchedule(since, releases, each), (whole, delta)


def composed_budget(entries: tuple[Entry, ...], unit: str, since: int, budget: Cost) -> Composed:
    """Return the rule by which releases from now on are composed within this budget."""
    before = _before(entries, unit, since, None)
    epsilon, delta = budget[0] - before[0], budget[1] - before[1]
    if not budget[1]:
        raise ParameterError("plan-delta-not-positive", parameter="delta")
    if epsilon <= 0 or delta <= 0:
        raise ParameterError("plan-budget-used-up", parameter="epsilon")
    return Composed(since, best_order(epsilon, delta / 2))


def read(text: str | None) -> Counting | None:
    """Return the rule that was kept; None: by the sum. :class:`ValueError` for what is none."""
    if text is None:
        return None
    try:
        kept = json.loads(text)
        if kept["how"] == "plan":
            each = Fraction(kept["each"]["epsilon"]), Fraction(kept["each"]["delta"])
            return FixedSchedule(int(kept["since"]), int(kept["releases"]), each)
        if kept["how"] == "composed":
            return Composed(int(kept["since"]), Fraction(kept["order"]))
    except (KeyError, TypeError, ZeroDivisionError) as error:
        raise ValueError("no rule") from error
    raise ValueError("no rule")


@dataclass(frozen=True)
class ComposedCost:
    """What releases cost together at a delta; None where that delta is not above their own."""

    delta: Fraction
    planned: Fraction | None
    """If what each may cost was settled before the first."""
    composed: Fraction | None
    """If each was chosen after seeing earlier ones: the smallest composed limit that admits them in their order."""


def together(entries: tuple[Entry, ...], unit: str, delta: Fraction) -> ComposedCost:
    """Return what these releases, each with a bound, cost together at ``delta``."""
    epsilon, failures = most_of_a_case(entries, unit, cost_of)
    if failures > delta:
        return ComposedCost(delta, None, None)
    planned = planned_epsilon(_dearest(entries, unit), delta)
    limit = _smallest_limit(entries, unit, delta) if delta and failures <= delta / 2 else epsilon
    return ComposedCost(delta, epsilon if planned is None else min(planned, epsilon), min(limit, epsilon))


def _smallest_limit(entries: tuple[Entry, ...], unit: str, delta: Fraction) -> Fraction:
    """Return the smallest composed budget, set before the first of these releases, that admits each in its turn.

    The order of a filter follows from its limit (:func:`composed_budget`), so each limit is tried at its own order: the
    order that would suit the releases best is known after them only, and at that order the bound does not hold.
    """
    half = delta / 2
    before = before_each(entries, unit, cost_of)
    sums = [spent + cost_of(entry)[0] for (spent, _), entry in zip(before, entries, strict=True)]

    @lru_cache
    def by_filter(order: Fraction) -> list[Fraction]:
        spent = before_each(entries, unit, Composed(0, order)._renyi)
        asked = (renyi_of(_rounded_up(cost_of(entry)[0]), order) for entry in entries)
        return [before + cost for (before, _), cost in zip(spent, asked, strict=True)]

    def admits(limit: int) -> bool:
        epsilon = Fraction(limit, _DIGITS)
        order = best_order(epsilon, half)
        room = renyi_room(epsilon, half, order)
        return all(by_sum <= epsilon or needed <= room for by_sum, needed in zip(sums, by_filter(order), strict=True))

    low, high = 0, math.ceil(max(sums, default=_NOTHING) * _DIGITS)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if admits(middle) else (middle, high)
    return Fraction(high, _DIGITS)


def _rounded_up(epsilon: Fraction) -> Fraction:
    """An epsilon that :func:`_largest` does not round below this one."""
    return Fraction(math.ceil(epsilon * _DIGITS) + 1, _DIGITS)


def _dearest(entries: Iterable[Entry], unit: str) -> Counter[Cost]:
    """Costs that are no smaller than those of any case, one by one: of each rule the dearest release of any part, the
    second, and so on."""
    found: Counter[Cost] = Counter()
    parts: dict[str, dict[str, list[Cost]]] = defaultdict(lambda: defaultdict(list))
    entries = list(entries)
    pieces = disjoint([entry.counted for entry in entries if entry.counted is not None])
    for entry in entries:
        counted = part_of(entry, unit)
        if counted is None:
            found[cost_of(entry)] += 1
            continue
        for piece in pieces[counted]:
            parts[rule_of(counted)][piece].append(cost_of(entry))
    for of_rule in parts.values():
        ranked = [sorted(costs, reverse=True) for costs in of_rule.values()]
        for place in range(max(map(len, ranked))):
            there = [costs[place] for costs in ranked if place < len(costs)]
            found[max(e for e, _ in there), max(d for _, d in there)] += 1
    return found


def _since(entries: Iterable[Entry], number: int) -> Iterable[Entry]:
    return (entry for entry in entries if entry.number > number)


def _before(entries: Iterable[Entry], unit: str, number: int, part: str | None) -> Cost:
    """What was released until then costs, by the sum."""
    return most_of_a_case((entry for entry in entries if entry.number <= number), unit, cost_of, part)


def cost_of(entry: Entry) -> Cost:
    """Return what an entry is charged; nothing where nothing bounds it."""
    return entry.cost or _FREE


def _largest(room: Fraction, order: Fraction) -> Fraction:
    """The largest epsilon, rounded down, whose cost fits into what there is room for."""
    low, high = _NOTHING, Fraction(1)
    if room <= 0:
        return low
    while renyi_of(high, order) <= room:
        low, high = high, 2 * high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if renyi_of(middle, order) <= room else (low, middle)
    return Fraction(math.floor(low * _DIGITS), _DIGITS)
