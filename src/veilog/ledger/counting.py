"""How the releases of an account are counted against its budget.

By the sum, as ever; or, with a delta, by one of the two compositions that :mod:`veilog.privacy.account.composing`
proves:

- A *plan* settles before the first release how many there will be and what each costs at most. They cost together what
  so many cost whose costs are settled beforehand. What is released follows from whatever was seen before; only a
  release that costs more than planned, or one too many, is refused.
- *Composed* is a budget of which any releases may be made, whose costs are chosen after seeing earlier ones. It is a
  filter of one order, which is fixed when the budget is set. Half of delta is for composing, the other half is what the
  deltas of the releases may add up to; the halves are fixed, as a choice between them that follows from answers would
  cost both. Where the plain sum fits, it is enough: the answers of runs in which it does have no loss above epsilon but
  where a delta fails, and all runs in which it does not are runs of the filter, to which their losses are due.

Either begins when it is set. What was released before that is not composed: it was seen when the rule was chosen, so it
counts by the sum, and the rule has what is left (basic composition of the two).
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from veilog.errors import ParameterError
from veilog.ledger.costs import Cost, before_each, disjoint, most_of_a_case, part_of, rule_of
from veilog.ledger.entries import Entry
from veilog.privacy.account.composing import (
    best_order,
    planned_epsilon,
    renyi_epsilon,
    renyi_of,
    renyi_room,
)

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
        by_sum, failures = most_of_a_case(_since(given, self.since), unit, _cost, part)
        spent, _ = most_of_a_case(_since(given, self.since), unit, self._renyi, part)
        by_filter = _largest(renyi_room(epsilon, delta / 2, self.order) - spent, self.order)
        return max(epsilon - by_sum, by_filter, _NOTHING), max(delta / 2 - failures, _NOTHING)

    def spent(self, entries: Iterable[Entry], unit: str, budget: Cost) -> Cost:
        """Return what the releases so far cost together."""
        given = tuple(entries)
        before = _before(given, unit, self.since, None)
        half = max(budget[1] - before[1], _NOTHING) / 2
        by_sum, failures = most_of_a_case(_since(given, self.since), unit, _cost)
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
            return renyi_of(entry.epsilon or _NOTHING, self.order), _NOTHING
        return sum((answer.renyi(self.order) * n for answer, n in entry.answers), _NOTHING), _NOTHING


Counting = FixedSchedule | Composed


def planned_budget(
    entries: tuple[Entry, ...], unit: str, since: int, releases: int, each: Cost, delta: Fraction
) -> tuple[FixedSchedule, Cost]:
    """Return a plan that begins now, and what all of it costs at ``delta`` with what was released before."""
    if isinstance(releases, bool) or not isinstance(releases, int) or not 1 <= releases <= MOST_RELEASES:
        raise ParameterError(f"A plan is of 1 to {MOST_RELEASES:,} releases, not {releases!r}.", parameter="releases")
    before = _before(entries, unit, since, None)
    rest = delta - before[1]
    epsilon = planned_epsilon({each: releases}, rest) if rest > 0 else None
    if epsilon is None:
        raise ParameterError(
            "The delta of the plan does not suffice for those of its releases"
            + (" and of the releases there were." if before[1] else "."),
            parameter="delta",
            advice="Raise --delta, or plan fewer releases.",
        )
    whole = before[0] + Fraction(math.ceil(epsilon * _DIGITS), _DIGITS)
    return FixedSchedule(since, releases, each), (whole, delta)


def composed_budget(entries: tuple[Entry, ...], unit: str, since: int, budget: Cost) -> Composed:
    """Return the rule by which releases from now on are composed within this budget."""
    before = _before(entries, unit, since, None)
    epsilon, delta = budget[0] - before[0], budget[1] - before[1]
    if not budget[1]:
        raise ParameterError(
            "Composing takes a delta above 0.", parameter="delta", advice="Add --delta, e.g. 1e-6, or count by the sum."
        )
    if epsilon <= 0 or delta <= 0:
        raise ParameterError(
            "What was released before counts by the sum, and leaves nothing of this budget.",
            parameter="epsilon",
            advice="Give a larger one; see veilog ledger show.",
        )
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
    epsilon, failures = most_of_a_case(entries, unit, _cost)
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
    sums = [
        spent + _cost(entry)[0] for (spent, _), entry in zip(before_each(entries, unit, _cost), entries, strict=True)
    ]

    @lru_cache
    def by_filter(order: Fraction) -> list[Fraction]:
        spent = before_each(entries, unit, Composed(0, order)._renyi)
        asked = (renyi_of(_rounded_up(_cost(entry)[0]), order) for entry in entries)
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
            found[_cost(entry)] += 1
            continue
        for piece in pieces[counted]:
            parts[rule_of(counted)][piece].append(_cost(entry))
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
    return most_of_a_case((entry for entry in entries if entry.number <= number), unit, _cost, part)


def _cost(entry: Entry) -> Cost:
    return entry.epsilon or _NOTHING, entry.delta or _NOTHING


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
