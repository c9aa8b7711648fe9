"""Budgets as exact fractions: parsed as written, split exactly, added up.

Basic composition (Dwork, McSherry, Nissim, Smith 2006; Dwork, Rothblum, Vadhan 2010, for adaptive queries). Query i
uses (epsilon_i, delta_i) and may be chosen after seeing the earlier answers. All answers together use (sum epsilon_i,
sum delta_i).
"""

from __future__ import annotations

import numbers
import operator
import re
from collections.abc import Iterable
from decimal import Decimal, InvalidOperation
from fractions import Fraction

from veilog.errors import ParameterError
from veilog.privacy.account.guarantee import Charge

Number = int | float | Fraction | Decimal | str

SMALLEST_EPSILON = Fraction(1, 10**9)
"""Below it, the noise of a single count is in the billions: 64-bit integers could no longer hold every answer."""
LARGEST_EPSILON = Fraction(1000)
"""Above it, an epsilon protects no case: the odds are e**1000 to 1."""


def _fraction(value: Number, name: str) -> Fraction:
    """Return the exact number as written: 0.1 is one tenth; 1/3 is a third."""
    if isinstance(value, bool) or not isinstance(value, numbers.Number | str):
        raise ParameterError("budget-not-number", parameter=name, name=name, value=value)
    if isinstance(value, Fraction):
        return value
    if isinstance(value, str) and value.count("/") == 1:
        above, below = (_fraction(part, name) for part in value.split("/"))
        if below == 0:
            raise ParameterError("budget-not-number", parameter=name, name=name, value=value)
        return above / below
    try:
        if isinstance(value, str):
            number = Decimal(value.strip())
        elif isinstance(value, Decimal):
            number = value
        elif isinstance(value, numbers.Integral):
            return Fraction(int(value))
        else:
            number = Decimal(repr(float(value)))
    except (InvalidOperation, TypeError, ValueError):
        point = str(value).replace(",", ".", 1)
        advice = f"Write {point}." if re.fullmatch(r"[0-9]*[.][0-9]+", point) else None
        raise ParameterError("budget-not-number", parameter=name, advice=advice, name=name, value=value) from None
    if not number.is_finite():
        raise ParameterError("budget-not-finite", parameter=name, name=name, value=value)
    if number != 0 and abs(number.adjusted()) > 400:
        raise ParameterError("budget-out-of-range", parameter=name, name=name, value=value)
    return Fraction(number)


def parse_epsilon(value: Number, name: str = "epsilon") -> Fraction:
    """Return an epsilon: from ``SMALLEST_EPSILON`` to ``LARGEST_EPSILON``."""
    epsilon = _fraction(value, name)
    if epsilon <= 0:
        raise ParameterError("budget-not-positive", parameter=name, name=name, value=value)
    if epsilon < SMALLEST_EPSILON:
        raise ParameterError(
            "budget-below-smallest",
            parameter=name,
            name=name,
            value=value,
            smallest_epsilon=float(SMALLEST_EPSILON),
        )
    if epsilon > LARGEST_EPSILON:
        raise ParameterError(
            "budget-without-protection",
            parameter=name,
            name=name,
            value=value,
            largest_epsilon=float(LARGEST_EPSILON),
        )
    return epsilon


def parse_delta(value: Number, name: str = "delta") -> Fraction:
    """Return a delta, a probability of failure: at least 0 and below 1."""
    delta = _fraction(value, name)
    if not 0 <= delta < 1:
        raise ParameterError("budget-delta-out-of-range", parameter=name, name=name, value=value)
    if delta and delta < Fraction(1, 10**100):
        raise ParameterError("budget-delta-too-small", parameter=name, name=name, value=value)
    return delta


def parse_share(value: Number, name: str) -> Fraction:
    """Return a fraction of a budget: above 0 and below 1; ``"30%"`` is 0.3."""
    percent = isinstance(value, str) and value.strip().endswith("%")
    share = _fraction(value.strip()[:-1], name) / 100 if isinstance(value, str) and percent else _fraction(value, name)
    if not 0 < share < 1:
        raise ParameterError("budget-share-out-of-range", parameter=name, name=name, value=value)
    return share


def whole_number(value: object) -> int | None:
    """Return a whole number, also numpy's, as an ``int``; None for anything else.

    Truth values are no whole numbers.

    >>> whole_number(3), whole_number(True), whole_number(3.0)
    (3, None, None)
    """
    return operator.index(value) if isinstance(value, numbers.Integral) and not isinstance(value, bool) else None


def compose(charges: Iterable[Charge]) -> tuple[Fraction, Fraction]:
    """Return the (epsilon, delta) of all charges together."""
    epsilon, delta = Fraction(0), Fraction(0)
    for charge in charges:
        epsilon += charge.epsilon
        delta += charge.delta
    return epsilon, min(delta, Fraction(1))
