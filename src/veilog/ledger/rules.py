"""Total cost of releases of a log and its subsets: summed, scheduled or composed.

Privacy
-------
*Subsets.* A release of a subset of the cases (:mod:`veilog.privacy.partition`, with the proof) costs the cases of that
subset, and no other. A case is in one subset of each rule. So it loses the sum over the releases of the whole log and
over those of its subsets, and no case loses more than

    the sum over the whole log + for each rule the largest sum over the releases of one of its subsets.

Spans of days (``began=START..END``) overlap, so each counts for every day that it holds, and the day with the largest
sum decides. Subsets of different rules are not disjoint, so their sums add up. Subsets of one rule of a log that was
read in two ways are not disjoint either. The ways may be by starts and by ends of events, or by local times and by
times with a zone. The way of reading decides the subset of a case. So it is kept with the subset, and the rule is one
for each way. An unknown way is a way of its own. The zones of times are found from all of them. Where some times have
none, a case may change its subset as soon as its own times get one. There all subsets add up, so that one such time
never makes a sum smaller. Persons have cases in several subsets. For them all releases add up, but for those whose
persons the ledger remembers, so that each is in one subset of a rule alone.

*Schedules and composition.* With a delta, two rules may replace the sum. :mod:`veilog.privacy.account.composition`
proves both.

- :class:`FixedSchedule` settles before the first release how many there will be and the largest cost of each. Together
  they cost what so many costs settled beforehand do. The content of a release may follow from all that was seen before.
  Only a release over its planned cost, or one too many, is refused.
- :class:`Composed` admits any releases, whose costs are chosen after seeing earlier ones. It is a filter of one order,
  which is fixed when the budget is set. Half of delta is for composition, and the deltas of the releases may add up to
  the other half. The halves are fixed, as a choice between them that follows from answers would cost both. Where the
  plain sum fits, it is enough. The answers of runs in which it does have no loss above epsilon but where a delta fails.
  All runs in which it does not are runs of the filter, to which their losses are due.

Either begins when it is set. Earlier releases were seen when the rule was chosen, so they count by the sum, and the
rule has the rest (basic composition of the two).
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache

from veilog.errors import ParameterError
from veilog.ledger.entry import MARK, NO_COST, Cost, Entry, cost_of, of_rule, subset_name
from veilog.privacy.account.composition import (
    best_order,
    planned_epsilon,
    renyi_epsilon,
    renyi_of,
    renyi_room,
)
from veilog.privacy.partition import SPAN

_FINEST = 10**150
_SPANS = re.compile(SPAN + r"=(\d{4}-\d\d-\d\d)\.\.(\d{4}-\d\d-\d\d)")


def most_per_unit(
    entries: Iterable[Entry], unit: str, cost: Callable[[Entry], Cost], subset: str | None = None
) -> Cost:
    """Return the largest cost of these entries for one unit, or one in a ``subset``.

    No other subset of the rule looks at that one. Each of the two numbers is the largest of its own: they may be those
    of different cases.
    """
    entries = list(entries)
    counted = [entry.counted for entry in entries]
    spent = _Spent(disjoint(name for name in [*counted, subset] if name is not None))
    for entry in entries:
        spent.add(subset_of(entry, unit), cost(entry))
    return spent.most(subset)


def costs_before(entries: Iterable[Entry], unit: str, cost: Callable[[Entry], Cost]) -> list[Cost]:
    """Return for each entry the largest cost of those before, for one in its subset."""
    entries, found = list(entries), []
    spent = _Spent(disjoint(entry.counted for entry in entries if entry.counted is not None))
    for entry in entries:
        subset = subset_of(entry, unit)
        found.append(spent.most(subset))
        spent.add(subset, cost(entry))
    return found


@dataclass
class _Spent:
    """Spent budget on all of the unit, and for each rule on each piece of its subsets."""

    pieces: Mapping[str, tuple[str, ...]]
    whole: Cost = (Fraction(0), Fraction(0))
    of_rules: dict[str, dict[str, Cost]] = field(default_factory=lambda: defaultdict(dict))

    def add(self, subset: str | None, cost: Cost) -> None:
        """Add the cost of a subset, or of all."""
        if subset is None:
            self.whole = _add_costs(self.whole, cost)
            return
        of_rule = self.of_rules[rule_of(subset)]
        of_rule |= {piece: _add_costs(of_rule.get(piece, NO_COST), cost) for piece in self.pieces[subset]}

    def most(self, subset: str | None) -> Cost:
        """Return the most that was spent on one of the unit; with a subset on one in it."""
        found = self.whole
        for rule, spent in self.of_rules.items():
            costs = list(spent.values())
            if subset is not None and rule == rule_of(subset):
                costs = [spent.get(piece, NO_COST) for piece in self.pieces[subset]]
            found = _add_costs(found, _largest_cost(costs))
        return found


def subset_of(entry: Entry, unit: str) -> str | None:
    """Return the subset that an entry counts as; for persons only remembered ones."""
    return entry.counted if unit == "case" or entry.remembered else None


def disjoint(subsets: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
    """Return the disjoint pieces of each subset.

    They are the subset itself, or for a span of days the spans between neighbouring ends, each named by its first day.
    """
    subsets = list(subsets)
    spans = {
        one: tuple(subset_name(one).partition("=")[2].split(".."))
        for one in subsets
        if rule_of(subset_name(one)) == SPAN
    }
    ends = sorted({end for span in spans.values() for end in span})  # ISO dates sort as text
    found = {subset: (subset,) for subset in subsets}
    return found | {subset: tuple(day for day in ends if first <= day < end) for subset, (first, end) in spans.items()}


def _add_costs(one: Cost, other: Cost) -> Cost:
    return one[0] + other[0], one[1] + other[1]


def _largest_cost(costs: Collection[Cost]) -> Cost:
    """Return the largest of each of the two numbers."""
    return max(e for e, _ in costs), max(d for _, d in costs)


def days_of(subset: str | None) -> tuple[str, str] | None:
    """Return the first day of a span of days and the one after it; None for others."""
    found = None if subset is None else _SPANS.fullmatch(subset)
    return None if found is None else (found[1], found[2])


def rule_of(subset: str) -> str:
    """Return the rule of a subset as it is spelled, with the way that decides it.

    An attribute with the name of spans is another rule, and so is the same rule of a log that was read in another way.
    Where only some times have a zone, each subset is a rule of its own: they add up.
    """
    alone, mark, way = subset.partition(MARK)
    rule = alone.partition("=")[0]
    if rule == SPAN and not _SPANS.fullmatch(alone):
        rule = f"case:{rule}"
    decides = of_rule(rule, way)
    return subset if decides is None else rule + mark + decides


def short(value: Fraction) -> Fraction:
    """Return the fraction, or one hardly larger and never smaller with a shorter text."""
    if value.denominator <= _FINEST:
        return value
    return Fraction(-(-value.numerator * _FINEST // value.denominator), _FINEST)


_NOTHING = Fraction(0)
_HALVINGS = 60
_DIGITS = 10**9
"""Parts of 1 to which results in floating point are rounded, to the safe side."""
MOST_RELEASES = 1_000_000


@dataclass(frozen=True)
class FixedSchedule:
    """Fixed number of releases, each of at most this cost."""

    since: int
    """Number of the last release before."""
    releases: int
    each: Cost

    def to_json(self) -> dict[str, object]:
        """Return the rule for the ledger and for programs; costs are exact texts."""
        each = {"epsilon": str(self.each[0]), "delta": str(self.each[1])}
        return {"how": "plan", "since": self.since, "releases": self.releases, "each": each}

    def left(self, entries: Iterable[Entry], unit: str, subset: str | None) -> int:
        """Return the number of releases that are left, for the whole log or a subset."""
        made, _ = most_per_unit(
            _entries_since(entries, self.since), unit, lambda entry: (Fraction(1), _NOTHING), subset
        )
        return max(0, self.releases - int(made))

    def room(self, entries: Iterable[Entry], unit: str, budget: Cost, subset: str | None) -> Cost:
        """Return the largest cost of the next release."""
        return self.each if self.left(tuple(entries), unit, subset) else (_NOTHING, _NOTHING)

    def spent(self, entries: Iterable[Entry], unit: str, budget: Cost) -> Cost:
        """Return the total of the releases so far: all of the plan, from the first on."""
        return (
            budget
            if any(True for _ in _entries_since(entries, self.since))
            else _earlier_cost(entries, unit, self.since, None)
        )


@dataclass(frozen=True)
class Composed:
    """Releases with adaptive costs, composed in Rényi privacy of one order."""

    since: int
    order: Fraction

    def to_json(self) -> dict[str, object]:
        """Return the rule for the ledger and for programs."""
        return {"how": "composed", "since": self.since, "order": str(self.order)}

    def room(self, entries: Iterable[Entry], unit: str, budget: Cost, subset: str | None) -> Cost:
        """Return the largest cost of the next release."""
        given = tuple(entries)
        before = _earlier_cost(given, unit, self.since, subset)
        epsilon, delta = budget[0] - before[0], budget[1] - before[1]
        if epsilon <= 0 or delta <= 0:
            return _NOTHING, _NOTHING
        by_sum, failures = most_per_unit(_entries_since(given, self.since), unit, cost_of, subset)
        spent, _ = most_per_unit(_entries_since(given, self.since), unit, self._renyi, subset)
        by_filter = _largest(renyi_room(epsilon, delta / 2, self.order) - spent, self.order)
        return max(epsilon - by_sum, by_filter, _NOTHING), max(delta / 2 - failures, _NOTHING)

    def spent(self, entries: Iterable[Entry], unit: str, budget: Cost) -> Cost:
        """Return the total of the releases so far."""
        given = tuple(entries)
        before = _earlier_cost(given, unit, self.since, None)
        half = max(budget[1] - before[1], _NOTHING) / 2
        by_sum, failures = most_per_unit(_entries_since(given, self.since), unit, cost_of)
        renyi, _ = most_per_unit(_entries_since(given, self.since), unit, self._renyi)
        if not half or not renyi:
            return before[0] + by_sum, before[1] + failures
        by_filter = renyi_epsilon(renyi, half, self.order)
        if by_sum <= by_filter:
            return before[0] + by_sum, before[1] + failures
        return before[0] + by_filter, before[1] + failures + half

    def _renyi(self, entry: Entry) -> Cost:
        """Return the Rényi cost of an entry: of its answers, or of its whole cost.

        The whole cost counts where answers are not known one by one, or not given yet.
        """
        if entry.answers is None:
            return renyi_of(cost_of(entry)[0], self.order), _NOTHING
        return sum((answer.renyi(self.order) * n for answer, n in entry.answers), _NOTHING), _NOTHING


Counting = FixedSchedule | Composed


def planned_budget(
    entries: tuple[Entry, ...], unit: str, since: int, releases: int, each: Cost, delta: Fraction
) -> tuple[FixedSchedule, Cost]:
    """Return a plan that begins now, and its total at ``delta`` with earlier releases."""
    if isinstance(releases, bool) or not isinstance(releases, int) or not 1 <= releases <= MOST_RELEASES:
        raise ParameterError(
            "plan-releases-out-of-range", parameter="releases", most_releases=MOST_RELEASES, releases=releases
        )
    before = _earlier_cost(entries, unit, since, None)
    rest = delta - before[1]
    epsilon = planned_epsilon({each: releases}, rest) if rest > 0 else None
    if epsilon is None:
        raise ParameterError("plan-delta-used-before" if before[1] else "plan-delta-too-small", parameter="delta")
    whole = before[0] + Fraction(math.ceil(epsilon * _DIGITS), _DIGITS)
    return FixedSchedule(since, releases, each), (whole, delta)


def composed_budget(entries: tuple[Entry, ...], unit: str, since: int, budget: Cost) -> Composed:
    """Return the rule by which releases from now on are composed within this budget."""
    before = _earlier_cost(entries, unit, since, None)
    epsilon, delta = budget[0] - before[0], budget[1] - before[1]
    if not budget[1]:
        raise ParameterError("plan-delta-not-positive", parameter="delta")
    if epsilon <= 0 or delta <= 0:
        raise ParameterError("plan-budget-used-up", parameter="epsilon")
    return Composed(since, best_order(epsilon, delta / 2))


def parse_rule(text: str | None) -> Counting | None:
    """Return the rule from its text; None for the sum. :class:`ValueError` for others."""
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
    """Total of releases at a delta; None where that delta is below the sum of theirs."""

    delta: Fraction
    planned: Fraction | None
    """Epsilon if the cost of each was settled before the first."""
    composed: Fraction | None
    """Epsilon if each was chosen after seeing earlier ones: the smallest composed limit that admits them in their
    order."""


def together(entries: tuple[Entry, ...], unit: str, delta: Fraction) -> ComposedCost:
    """Return the total of these releases, each with a bound, at ``delta``."""
    epsilon, failures = most_per_unit(entries, unit, cost_of)
    if failures > delta:
        return ComposedCost(delta, None, None)
    planned = planned_epsilon(_dearest(entries, unit), delta)
    limit = _smallest_limit(entries, unit, delta) if delta and failures <= delta / 2 else epsilon
    return ComposedCost(delta, epsilon if planned is None else min(planned, epsilon), min(limit, epsilon))


def _smallest_limit(entries: tuple[Entry, ...], unit: str, delta: Fraction) -> Fraction:
    """Return the smallest composed budget, set before them, that admits each release.

    Each is admitted in its turn. The order of a filter follows from its limit (:func:`composed_budget`), so each limit
    is tried at its own order. The order that would suit the releases best is known only after them, and at that order
    the bound does not hold.
    """
    half = delta / 2
    before = costs_before(entries, unit, cost_of)
    sums = [spent + cost_of(entry)[0] for (spent, _), entry in zip(before, entries, strict=True)]

    @lru_cache
    def by_filter(order: Fraction) -> list[Fraction]:
        spent = costs_before(entries, unit, Composed(0, order)._renyi)
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
    """Return an epsilon that :func:`_largest` does not round below this one."""
    return Fraction(math.ceil(epsilon * _DIGITS) + 1, _DIGITS)


def _dearest(entries: Iterable[Entry], unit: str) -> Counter[Cost]:
    """Return costs that are no smaller than those of any case, one by one.

    They are, for each rule, the dearest release of any subset, the second, and so on.
    """
    found: Counter[Cost] = Counter()
    subsets: dict[str, dict[str, list[Cost]]] = defaultdict(lambda: defaultdict(list))
    entries = list(entries)
    pieces = disjoint([entry.counted for entry in entries if entry.counted is not None])
    for entry in entries:
        counted = subset_of(entry, unit)
        if counted is None:
            found[cost_of(entry)] += 1
            continue
        for piece in pieces[counted]:
            subsets[rule_of(counted)][piece].append(cost_of(entry))
    for pieces_of_rule in subsets.values():
        ranked = [sorted(costs, reverse=True) for costs in pieces_of_rule.values()]
        for place in range(max(map(len, ranked))):
            there = [costs[place] for costs in ranked if place < len(costs)]
            found[max(e for e, _ in there), max(d for _, d in there)] += 1
    return found


def _entries_since(entries: Iterable[Entry], number: int) -> Iterable[Entry]:
    return (entry for entry in entries if entry.number > number)


def _earlier_cost(entries: Iterable[Entry], unit: str, number: int, subset: str | None) -> Cost:
    """Return the cost of the releases until then, by the sum."""
    return most_per_unit((entry for entry in entries if entry.number <= number), unit, cost_of, subset)


def _largest(room: Fraction, order: Fraction) -> Fraction:
    """Return the largest epsilon, rounded down, whose cost fits into the room."""
    low, high = _NOTHING, Fraction(1)
    if room <= 0:
        return low
    while renyi_of(high, order) <= room:
        low, high = high, 2 * high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if renyi_of(middle, order) <= room else (low, middle)
    return Fraction(math.floor(low * _DIGITS), _DIGITS)
