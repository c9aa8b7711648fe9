"""Numbers for people and files that never look better than they are: what is spent is rounded up."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction


def round_up(value: Fraction) -> float:
    """Return the smallest float not below ``value``: what is printed never understates what is spent."""
    nearest = float(value)
    # A float prints as the shortest decimal that reads back as it, so compare with that decimal, not its binary value.
    return nearest if Fraction(Decimal(repr(nearest))) >= value else math.nextafter(nearest, math.inf)


def up(value: Fraction | float | None, digits: int = 6) -> str:
    """Return a number in so many digits, rounded up, as ``:g`` would write it: 1.0000049 is 1.00001."""
    if value is None:
        return "none"
    whole = value if isinstance(value, Fraction) else Fraction(Decimal(repr(float(value))))
    if whole == 0:
        return "0"
    rounded = Context(prec=digits, rounding=ROUND_CEILING).divide(Decimal(whole.numerator), Decimal(whole.denominator))
    return f"{float(rounded):.{digits}g}"


def exact(value: Fraction) -> str:
    """Return the number in as many digits as it has; rounded down where it has too many."""
    digits = next((d for d in range(40) if (value * 10**d).denominator == 1), 40)
    whole = value * 10**digits
    text = str(whole.numerator // whole.denominator).rjust(digits + 1, "0")
    return text if digits == 0 else f"{text[:-digits]}.{text[-digits:]}"


def so_many(purpose: str, number: int, what: str) -> str:
    """Return what a question is for, and of how many parts its answer is: "lengths of cases (20 bins)"."""
    return f"{purpose} ({number} {what}{'' if number == 1 else 's'})"
