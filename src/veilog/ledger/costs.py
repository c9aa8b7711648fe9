"""What the releases of an account cost together: sums, and of parts of the cases the largest sum.

A release of a part of the cases (:mod:`veilog.privacy.part`, where it is proved) costs the cases of that part, and no
other. A case is in one part of each rule, so what it loses is the sum over the releases of the whole log and over those
of its parts, and no case loses more than

    the sum over the whole log + for each rule the largest sum over the releases of one of its parts.

Parts of different rules are not disjoint, so what they cost is added up. Persons have cases in several parts: for them
all releases are added up.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from fractions import Fraction

from veilog.ledger.file import Entry

__all__ = ["Cost", "most_of_a_case", "rule_of", "short"]

Cost = tuple[Fraction, Fraction]
"""Epsilon and delta, exactly."""

_FINEST = 10**150


def most_of_a_case(entries: Iterable[Entry], unit: str, cost: Callable[[Entry], Cost], part: str | None = None) -> Cost:
    """Return the most that these entries cost one of the unit; where a ``part`` is given, one case of that part.

    Each of the two numbers is the largest of its own: they may be those of different cases.
    """
    whole = Fraction(0), Fraction(0)
    parts: dict[str, dict[str, Cost]] = defaultdict(dict)
    for entry in entries:
        if entry.part is None or unit != "case":
            whole = _added(whole, cost(entry))
        else:
            of_rule = parts[rule_of(entry.part)]
            of_rule[entry.part] = _added(of_rule.get(entry.part, (Fraction(0), Fraction(0))), cost(entry))
    if part is not None and unit == "case":
        parts[rule_of(part)] = {part: parts[rule_of(part)].get(part, (Fraction(0), Fraction(0)))}
    for of_rule in parts.values():
        whole = _added(whole, (max(e for e, _ in of_rule.values()), max(d for _, d in of_rule.values())))
    return whole


def _added(one: Cost, other: Cost) -> Cost:
    return one[0] + other[0], one[1] + other[1]


def rule_of(part: str) -> str:
    """Return the rule of a part as it is spelled."""
    return part.partition("=")[0]


def short(value: Fraction) -> Fraction:
    """Return the fraction itself, or, where its text would be very long, one that is not smaller and hardly larger."""
    if value.denominator <= _FINEST:
        return value
    return Fraction(-(-value.numerator * _FINEST // value.denominator), _FINEST)
