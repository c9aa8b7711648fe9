"""Answers about an attribute, and their errors: expected, and of the release."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from veilog._typing import BoolArray, IntArray
from veilog.messages import Message
from veilog.methods._events.attributes.domains import PARTS, Chosen
from veilog.methods._events.attributes.marginals import Marginal, expected_error
from veilog.methods._events.attributes.memory import Persisting, Recorded
from veilog.methods._events.attributes.pairs import LEAST_CASES
from veilog.methods._events.attributes.signs import SignSums, noise_of_gaps
from veilog.methods._events.attributes.variables import Variable
from veilog.methods.method import advised
from veilog.privacy.domain import Values

PAIRS = Fraction(1, 4)
"""Part of the epsilon for tables of two and the path, where worth it. The rest is for each attribute by itself."""
FIRST, CASES_ALONE, CASES_A_VALUE = Fraction(1, 4), 100, 10
"""Part of the epsilon of an attribute that stays the same in a case for how often it has each value.

It is more where the other constants demand it: so many in all, or for each value, over the number of cases. With
nothing but the part the shapes of Sepsis fall from .916 to .768 (five seeds).
"""
NOISY_GAP = 0.03
"""Expected error of gaps between groups from which on it is reported: users look for gaps of a tenth."""
MOSTLY_NOISE = 0.5
"""Expected error from which on the values of an attribute are mostly noise."""


@dataclass(eq=False)
class AttributeQuery:
    """Attribute with the answers about it."""

    chosen: Chosen
    records: Recorded | None
    """Places where events hold it; None for a column of cases."""
    answer: Marginal | Persisting
    """Frequencies of its values in cases, or in events where these change within cases."""
    variable: Variable
    group: IntArray
    """Number that stands for each value in tables of two."""
    known: BoolArray | None = None
    """Events that may hold it, or that have a value, if it changes within cases."""


def expected_errors(domains: Mapping[str, Values], epsilon: Fraction, cases: int) -> dict[str, float]:
    """Return the expected part of cases with a wrong value by noise, per attribute.

    It follows from declared domains and a number of cases, before any query, as if all were attributes of cases that go
    together.
    """
    sizes = {name: 2 * PARTS if not isinstance(values[0], str) else len(values) + 1 for name, values in domains.items()}
    weights = {name: size ** (1 / 3) for name, size in sizes.items()}
    total = max(sum(weights.values()), 1e-12)
    whole = epsilon * (1 - PAIRS)
    prices = {name: price_alone(whole * Fraction(weights[name] / total), cases, sizes[name]) for name in sizes}
    return {name: expected_error(size, 1 / float(prices[name]), cases) for name, size in sizes.items()}


def price_alone(price: Fraction, cases: int, values: int) -> Fraction:
    """Return the part of an attribute's epsilon for how often it has each value.

    The attribute stays the same in a case. The rest is for tables of two and the path.
    """
    return min(price, max(price * FIRST, Fraction(max(CASES_ALONE, CASES_A_VALUE * values), cases)))


def remark_errors(remark: Callable[[Message], None], asked: list[AttributeQuery], epsilon: float, cases: int) -> None:
    """Report how far noise alone moves the shares of values, by public numbers only."""
    errors = {one.chosen.column: _error(one, cases) for one in asked}
    told = ", ".join(f"{name} {error:.2g}" for name, error in errors.items())
    remark(Message("attribute-noise-parts", told=told))
    noisy = [name for name, error in errors.items() if error >= MOSTLY_NOISE]
    if noisy:
        needed = max(epsilon * errors[name] / MOSTLY_NOISE for name in noisy)
        remark(
            Message(
                "attribute-values-mostly-noise",
                names=", ".join(noisy),
                advised=advised(needed, "attributes-would-need-or-fewer"),
            )
        )


def remark_together(
    remark: Callable[[Message], None],
    order: list[Variable],
    flow: list[Variable],
    cases: int,
    signs: Mapping[Variable, SignSums],
) -> None:
    """Report attributes queried together or with the path, and the noise of gaps.

    All of it follows from noisy choices and public numbers.
    """
    pairs = [f"{one.name} by {one.kind[0].name}" for one in order if one.kind]
    gaps = {one.name: noise_of_gaps(sums.variance, one.shares, sums.cases) for one, sums in signs.items()}
    noisy = ", ".join(f"{name} {gap:.2g}" for name, gap in gaps.items() if gap >= NOISY_GAP)
    if noisy:
        remark(Message("attribute-gaps-noise", told=noisy))
    for other in order:
        parents = [*other.parents, *(other.in_events.parents if other.in_events is not None else [])]
        pairs += [f"{other.name} by {one.name}" for one, _ in parents if one in flow or one in order]
    if pairs:
        remark(Message("attributes-asked-together", names="; ".join(pairs)))
    elif len(order) + len(flow) > 1:
        needed = LEAST_CASES / (float(PAIRS) * cases)
        remark(
            Message(
                "attributes-asked-singly",
                advised=advised(needed, "attributes-would-need"),
            )
        )


def _error(one: AttributeQuery, cases: int) -> float:
    """Return the part of known values that noise puts in a wrong one.

    The noisy answer gives how many are known.
    """
    if isinstance(one.answer, Persisting):
        assert one.known is not None
        events = cases * one.answer.bound * float(one.known.mean())
        return expected_error(one.answer.by_activity.size, one.answer.scale, events)
    shares = one.answer.shares
    return expected_error(len(shares), one.answer.scale, cases * (1 - float(shares[-1])))
