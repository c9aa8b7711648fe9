"""Numbers for people and files that never look better than they are: what is spent is rounded up."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

__all__ = ["round_up", "up"]


def round_up(value: Fraction) -> float:
    """Return the smallest float not below ``value``: what is printed never understates what is spent."""
    nearest = float(value)
    # A float prints as the shortest decimal that reads back as it, so compare with that decimal, not its binary value.
    return nearest if Fraction(Decimal(repr(nearest))) >= value else math.nextafter(nearest, math.inf)


def up(value: Fraction | float | None, digits: int = 6) -> str:
    """Return a number in so many digits, rounded up, as ``:g`` would write it: 1.0000049 is 1.00001."""
    if value is None:
        return "none"
    exact = value if isinstance(value, Fraction) else Fraction(Decimal(repr(float(value))))
    if exact == 0:
        return "0"
    rounded = Context(prec=digits, rounding=ROUND_CEILING).divide(Decimal(exact.numerator), Decimal(exact.denominator))
    return f"{float(rounded):.{digits}g}"
