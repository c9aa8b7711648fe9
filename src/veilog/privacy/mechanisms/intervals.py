"""Real numbers as shrinking intervals: what it takes to compare a probability with random bits without rounding.

A *real* is a function from a number of bits ``b`` to integers ``(low, high)`` with ``low <= x * 2**b <= high``; more
bits give a narrower interval. Every probability of :mod:`veilog.privacy.mechanisms.noise` is one, so a comparison that
the bits at hand cannot decide is repeated with more of them and the samplers are exact, whatever epsilon is.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable
from fractions import Fraction

Real = Callable[[int], tuple[int, int]]


def rational(value: Fraction) -> Real:
    """A rational number."""

    def at(bits: int) -> tuple[int, int]:
        scaled = value * (1 << bits)
        return math.floor(scaled), math.ceil(scaled)

    return at


def exp_minus(x: Fraction) -> Real:
    """``exp(-x)`` for a rational ``x >= 0``.

    ``decimal`` documents its ``exp`` as correctly rounded, so the neighbours of its result enclose the true value of
    ``exp`` at the rounded argument; the argument itself is rounded down and up.
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
    """``1 - x``."""

    def at(bits: int) -> tuple[int, int]:
        low, high = x(bits)
        return (1 << bits) - high, (1 << bits) - low

    return at


def total(x: Real, y: Real) -> Real:
    """``x + y``."""

    def at(bits: int) -> tuple[int, int]:
        (a, b), (c, d) = x(bits), y(bits)
        return a + c, b + d

    return at


def quotient(x: Real, y: Real) -> Real:
    """``x / y`` for ``x >= 0`` and ``y > 0``."""

    def at(bits: int) -> tuple[int, int]:
        (a, b), (c, d) = x(bits), y(bits)
        if c <= 0:  # not enough bits to tell y from 0: the caller asks for more
            return 0, 1 << (2 * bits)
        return max(a, 0) * (1 << bits) // d, -(-b * (1 << bits) // c)

    return at


def power(x: Real, doublings: int) -> Real:
    """``x ** (2 ** doublings)`` for ``0 <= x <= 1``."""

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
    """``floor(x * 2**bits)`` for an ``x`` in [0, 1) that is no multiple of ``2**-bits``, or is known exactly.

    ``exp`` of a rational other than 0 is transcendental, so the loop ends for every probability built from it.
    """
    working = bits + 16
    while True:
        low, high = x(working)
        shift = working - bits
        if low >> shift == high >> shift:
            return low >> shift
        working *= 2


def is_at_most(x: Real, bound: Fraction) -> bool:
    """Whether ``x <= bound`` can be proved; a tie that 4096 bits cannot decide counts as no."""
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
