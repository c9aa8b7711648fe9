"""Real numbers as shrinking intervals, for exact comparisons with random bits.

A *real* is a function from a number of bits ``b`` to integers ``(low, high)`` with ``low <= x * 2**b <= high``. More
bits give a narrower interval. Every probability of :mod:`veilog.privacy.mechanisms.noise` is one. A comparison that the
bits at hand cannot decide is repeated with more of them, so the samplers are exact, whatever epsilon is.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable
from fractions import Fraction

Real = Callable[[int], tuple[int, int]]


def rational(value: Fraction) -> Real:
    """Return a rational number as a real."""

    def at(bits: int) -> tuple[int, int]:
        scaled = value * (1 << bits)
        return math.floor(scaled), math.ceil(scaled)

    return at


def exp_minus(x: Fraction) -> Real:
    """Return ``exp(-x)`` for a rational ``x >= 0``.

    ``decimal`` documents its ``exp`` as correctly rounded. So the neighbours of its result enclose the true value of
    ``exp`` at the rounded argument. The argument itself is rounded down and up.
    """
    if x < 0:
        raise ValueError("exp_minus takes x >= 0")

    def at(bits: int) -> tuple[int, int]:
        precision = int(bits * 0.302) + 20
        context = decimal.Context(prec=precision, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
        bounds = []
        for rounding, step in ((decimal.ROUND_CEILING, context.next_minus), (decimal.ROUND_FLOOR, context.next_plus)):
            context.rounding = rounding
            argument = context.divide(decimal.Decimal(x.numerator), decimal.Decimal(x.denominator))
            value = context.exp(context.minus(argument))
            bounds.append(Fraction(step(value)) * (1 << bits))
        return max(0, math.floor(bounds[0])), min(1 << bits, math.ceil(bounds[1]))

    return at


def one_minus(x: Real) -> Real:
    """Return ``1 - x``."""

    def at(bits: int) -> tuple[int, int]:
        low, high = x(bits)
        return (1 << bits) - high, (1 << bits) - low

    return at


def total(x: Real, y: Real) -> Real:
    """Return ``x + y``."""

    def at(bits: int) -> tuple[int, int]:
        (a, b), (c, d) = x(bits), y(bits)
        return a + c, b + d

    return at


def quotient(x: Real, y: Real) -> Real:
    """Return ``x / y`` for ``x >= 0`` and ``y > 0``."""

    def at(bits: int) -> tuple[int, int]:
        (a, b), (c, d) = x(bits), y(bits)
        if c <= 0:  # too few bits to distinguish y from 0: the caller takes more
            return 0, 1 << (2 * bits)
        return max(a, 0) * (1 << bits) // d, -(-b * (1 << bits) // c)

    return at


def power(x: Real, doublings: int) -> Real:
    """Return ``x ** (2 ** doublings)`` for ``0 <= x <= 1``."""

    def at(bits: int) -> tuple[int, int]:
        inner = bits + 2 * doublings + 8
        low, high = x(inner)
        low, high = max(low, 0), min(high, 1 << inner)
        for _ in range(doublings):
            low = low * low >> inner
            high = -(-high * high >> inner)
        extra = inner - bits
        return low >> extra, -(-high >> extra)

    return at


def digits(x: Real, bits: int) -> int:
    """Return ``floor(x * 2**bits)`` for an ``x`` in [0, 1).

    It is no multiple of ``2**-bits``, or is known exactly. ``exp`` of a rational other than 0 is transcendental, so the
    loop ends for every probability built from it.
    """
    working = bits + 16
    while True:
        low, high = x(working)
        shift = working - bits
        if low >> shift == high >> shift:
            return low >> shift
        working *= 2


def is_at_most(x: Real, bound: Fraction) -> bool:
    """Return True if ``x <= bound`` is proved; a tie at 4096 bits counts as no."""
    bits = 64
    while bits <= 4096:
        low, high = x(bits)
        scaled = bound * (1 << bits)
        if high <= scaled:
            return True
        if low > scaled:
            return False
        bits *= 2
    return False
