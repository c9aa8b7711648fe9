"""What the releases of an account cost together: sums, and of parts of the cases the largest sum.

A release of a part of the cases (:mod:`veilog.privacy.part`, where it is proved) costs the cases of that part, and no
other. A case is in one part of each rule, so what it loses is the sum over the releases of the whole log and over those
of its parts, and no case loses more than

    the sum over the whole log + for each rule the largest sum over the releases of one of its parts.

Spans of days (``began=START..END``) overlap, so each counts for every day that it holds, and of these days the dearest.
Parts of different rules are not disjoint, so what they cost is added up. Nor are parts of one rule of a log that was
read in two ways, by the starts of events and by their ends, or by local times and by times with a zone: in which part a
case is follows from how it is read, so how that was is kept with the part, and the rule is one for each way. Of older
entries it is not known, and that is a way of its own. Whether times have a zone is found from all of them, and where
some have none a case may be in another part as soon as its own times get one: there all parts add up, so that one such
time never makes a sum smaller. Persons have cases in several parts: for them
all releases are added up, but those whose persons the ledger remembers, so that each is in one part of a rule alone.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from fractions import Fraction

from veilog.ledger.entries import Entry
from veilog.ledger.ways import MARK, named, of_rule
from veilog.privacy.part import SPAN

Cost = tuple[Fraction, Fraction]
"""Epsilon and delta, exactly."""

_FINEST = 10**150
_SPANS = re.compile(SPAN + r"=(\d{4}-\d\d-\d\d)\.\.(\d{4}-\d\d-\d\d)")


def most_of_a_case(entries: Iterable[Entry], unit: str, cost: Callable[[Entry], Cost], part: str | None = None) -> Cost:
    """Return the most that these entries cost one of the unit; where a ``part`` is given, one of the unit in that part,
    which no other part of its rule looks at.

    Each of the two numbers is the largest of its own: they may be those of different cases.
    """
    nothing = whole = Fraction(0), Fraction(0)
    parts: dict[str, dict[str, Cost]] = defaultdict(dict)
    entries = list(entries)
    pieces = disjoint(
        [*(entry.counted for entry in entries if entry.counted is not None), *([] if part is None else [part])]
    )
    for entry in entries:
        counted = part_of(entry, unit)
        if counted is None:
            whole = _added(whole, cost(entry))
        else:
            of_rule = parts[rule_of(counted)]
            for piece in pieces[counted]:
                of_rule[piece] = _added(of_rule.get(piece, nothing), cost(entry))
    if part is not None:
        parts[rule_of(part)] = {piece: parts[rule_of(part)].get(piece, nothing) for piece in pieces[part]}
    for of_rule in parts.values():
        whole = _added(whole, _largest(of_rule.values()))
    return whole


def before_each(entries: Iterable[Entry], unit: str, cost: Callable[[Entry], Cost]) -> list[Cost]:
    """Return for each entry the most that the entries before it cost one of the unit that is in its part."""
    nothing = whole = Fraction(0), Fraction(0)
    parts: dict[str, dict[str, Cost]] = defaultdict(dict)
    entries, found = list(entries), []
    pieces = disjoint(entry.counted for entry in entries if entry.counted is not None)
    for entry in entries:
        part = part_of(entry, unit)
        rule = None if part is None else rule_of(part)
        before = whole
        for elsewhere in [costs for other, costs in parts.items() if other != rule]:
            before = _added(before, _largest(elsewhere.values()))
        if part is None or rule is None:
            whole = _added(whole, cost(entry))
        else:
            mine = {piece: parts[rule].get(piece, nothing) for piece in pieces[part]}
            before = _added(before, _largest(mine.values()))
            parts[rule] |= {piece: _added(spent, cost(entry)) for piece, spent in mine.items()}
        found.append(before)
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


def _largest(costs: Collection[Cost]) -> Cost:
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
