"""Exact discrete Gaussian noise, in bulk.

``N_Z(0, s2)`` has ``P(y) = exp(-y**2 / (2 s2)) / sum_z exp(-z**2 / (2 s2))`` on the integers (Canonne, Kamath, Steinke,
"The Discrete Gaussian for Differential Privacy", NeurIPS 2020). Their sampler proposes discrete Laplace numbers and
keeps each with a coin of probability ``exp(-...)``. Here only numbers beyond five deviations are drawn so. Below,
``|y|`` is proposed by cells of ``B = 2**b`` numbers, B from 1/64 to 1/32 of the deviation (or 1):

- cell h with a probability proportional to ``B exp(-(h B)**2 / (2 s2))``, and the numbers beyond, from ``T = H B`` on,
  with one proportional to ``exp(-T**2 / (2 s2)) / (1 - exp(-T / s2))``;
- within the cell an offset r, uniform on 0, ..., B - 1; beyond, ``y = T + g``, g geometric of ratio ``exp(-T / s2)``;
- kept with probability ``exp(-r (2 h B + r) / (2 s2))``; beyond, ``exp(-g**2 / (2 s2))``.

The products are ``exp(-y**2 / (2 s2))`` up to one factor, so the kept numbers have exactly these odds. Each comes with
either sign. Minus 0 is proposed anew, so that 0 has the weight of one number.

The coins are exact. A coin's first 15 bits mostly settle it against a number that is at most every probability of the
cell. Otherwise 31 bits are compared with integers that enclose the probability (Taylor's polynomials, rounded
outwards). If that leaves it open, :mod:`veilog.privacy.mechanisms.intervals` gives as many digits as it takes. No float
decides anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import isqrt

import numpy as np
import numpy.typing as npt

from veilog.privacy.mechanisms.intervals import Real, digits, exp_minus
from veilog.privacy.mechanisms.noise import WORD_BITS, Randomness, geometric

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

LARGEST_VARIANCE = Fraction(2**115)
"""Largest variance: up to it, the numbers from 2**62 on (they are cut) have a probability below ``2**-300``."""
LARGEST_VARIANCE_OF_TAILS = Fraction(10**8)
"""Largest variance of :func:`tail`, whose sums would take seconds beyond it."""
_FINE = 32
"""Least number of cells a deviation."""
_REACH = 5
"""Least number of deviations that the cells cover."""
_SPLIT = 16
"""Bits of a word for the cell; 15 more begin the coin, and the last is the sign."""
_COIN = 15
_MORE = 31
"""Bits of a coin that are compared with integer bounds."""
_QUARTER = _MORE - 2
"""Bits of a quarter in units of ``2**-31``."""
_FINER = 20
"""Further bits with which squares are divided by their variance."""
_SEVEN = 25
"""Number above the x of seven deviations, where ``2**31 exp(-x)`` is below 1."""
_BLOCK = 2**15


@dataclass(frozen=True, eq=False)
class _Cells:
    """Proposal for one variance."""

    variance: Fraction
    bits: int
    """Binary logarithm of the size of a cell: it has ``2**bits`` numbers."""
    number: int
    guide: npt.NDArray[np.int16]
    """Cell by the first 16 bits of a word, -1 where more bits are needed; the last stands for all numbers beyond."""
    sure: npt.NDArray[np.uint16]
    """For each cell, a bound: a coin whose first 15 bits are below it falls for every number of the cell."""
    scale: int
    """``2**62 / (2 s2)`` in squares of the units of offsets, rounded down."""

    @property
    def unit_bits(self) -> int:
        """Binary logarithm of the units of offsets: 16 bits of an offset count."""
        return max(0, self.bits - 16)


def discrete_gaussian(variance: Fraction, n: int, source: Randomness) -> IntArray:
    """Return ``n`` independent exact numbers of ``N_Z(0, variance)``.

    Added on every coordinate to an integer vector that one case changes by an integer vector of L2 norm D, it is
    ``D**2 / (2 variance)``-zCDP (Canonne, Kamath, Steinke 2020, theorem 4). Its guarantee as a step of a training is
    derived in :mod:`veilog.privacy.mechanisms.accountant`.
    """
    if not 0 < variance <= LARGEST_VARIANCE:
        raise ValueError("a variance is above 0 and at most 2**115")
    cells = _cells(variance)
    result = np.empty(n, dtype=np.int64)
    for start in range(0, n, _BLOCK):
        part = result[start : start + _BLOCK]
        part[:], keep = _draw_proposals(cells, len(part), source)
        open_ = np.flatnonzero(~keep)
        while len(open_):
            part[open_], keep = _draw_proposals(cells, len(open_), source)
            open_ = open_[~keep]
    return result


@lru_cache(maxsize=256)
def tail(variance: Fraction, above: int) -> Real:
    """Return ``P(Y > above)`` for Y of ``N_Z(0, variance)`` and ``above >= 0``."""
    if not 0 < variance <= LARGEST_VARIANCE_OF_TAILS:
        raise ValueError("the variance is too large for sums of its terms")

    @lru_cache(maxsize=8)
    def enclosed(bits: int) -> tuple[int, int]:
        beyond, half = _terms(variance, above, bits)
        whole_low, whole_high = ((2 * part) + (1 << bits) for part in half)
        return (beyond[0] << bits) // whole_high, -(-(beyond[1] << bits) // whole_low)

    def at(bits: int) -> tuple[int, int]:
        finer = -(-bits // 128) * 128
        low, high = enclosed(finer)
        return low >> (finer - bits), -(-high >> (finer - bits))

    return at


def _terms(variance: Fraction, above: int, bits: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return bounds of the sums of ``exp(-y**2 / (2 variance))``, y > above and y > 0.

    They are in units of ``2**-bits``. A term is the one before it times ``q**(2 y + 1)``,
    ``q = exp(-1 / (2 variance))``; each product is rounded down and up. The rest after the last term is at most that of
    a geometric series whose ratio is the last factor.
    """
    guard = bits + 64
    one = 1 << guard
    low_q, high_q = exp_minus(1 / (2 * variance))(guard)
    low_square, high_square = low_q * low_q >> guard, -(-high_q * high_q >> guard)
    low_term, high_term, low_factor, high_factor = one, one, low_q, high_q
    sums, y = [0, 0, 0, 0], 0
    while low_term:
        low_term, high_term = low_term * low_factor >> guard, -(-high_term * high_factor >> guard)
        low_factor, high_factor = low_factor * low_square >> guard, -(-high_factor * high_square >> guard)
        y += 1
        sums[2] += low_term
        sums[3] += high_term
        if y > above:
            sums[0] += low_term
            sums[1] += high_term
    rest = high_term * one // (one - high_factor) + 1
    low, high, half_low, half_high = sums[0], sums[1] + rest, sums[2], sums[3] + rest
    return (low >> 64, -(-high >> 64)), (half_low >> 64, -(-half_high >> 64))


def draw_exceeding(variance: Fraction, above: int, n: int, source: Randomness) -> IntArray:
    """Return ``n`` numbers of ``N_Z(0, variance)`` above ``above``, which is >= 0.

    From ``T = above + 1`` on ``exp(-(T + g)**2 / (2 s2))`` is ``exp(-T g / s2) exp(-g**2 / (2 s2))`` up to a factor: a
    geometric g, kept with the second as probability. Where T is below a deviation few would be kept. There numbers of
    the whole law are drawn until they exceed it. The numbers are independent.
    """
    first = above + 1
    result = np.empty(n, dtype=np.int64)
    open_ = np.arange(n)
    while len(open_):
        if first * first < variance:
            drawn = discrete_gaussian(variance, len(open_), source)
            keep = drawn >= first
        else:
            further = geometric(first / variance, len(open_), source)
            drawn = first + further
            keep = _squares_fall(further, variance, source)
        result[open_] = drawn
        open_ = open_[~keep]
    return result


def _draw_proposals(cells: _Cells, n: int, source: Randomness) -> tuple[IntArray, BoolArray]:
    """Return ``n`` proposals, and which of them are kept."""
    words = source.words(n)
    cell = cells.guide.take((words >> np.uint32(32 - _SPLIT)).astype(np.int64)).astype(np.int64)
    split = np.flatnonzero(cell < 0)
    if len(split):
        cell[split] = _settled_cells(cells, words[split] >> np.uint32(32 - _SPLIT), source)
    offset = _uniform(cells.bits, n, source)
    coin = (words >> np.uint32(1)) & np.uint32(2**_COIN - 1)
    keep: BoolArray = coin < cells.sure.take(cell)
    value = cell << cells.bits
    value += offset
    open_ = np.flatnonzero(~keep)
    beyond = cell[open_] == cells.number
    far, near = open_[beyond], open_[~beyond]
    if len(near):
        keep[near] = _coins(cells, cell[near], offset[near], coin[near].astype(np.int64), source)
    if len(far):
        value[far], keep[far] = _draw_tail_proposals(cells, len(far), source)
    negative = (words & np.uint32(1)).astype(np.int64)
    keep &= (value != 0) | (negative == 0)
    value ^= -negative
    value += negative
    return value, keep


def _uniform(bits: int, n: int, source: Randomness) -> IntArray:
    """Return ``n`` uniform numbers from 0 to ``2**bits - 1``."""
    if bits == 0:
        return np.zeros(n, dtype=np.int64)
    if bits <= 32:
        return (source.words(n) >> np.uint32(32 - bits)).astype(np.int64)
    return (source.words(2 * n).view(np.uint64) >> np.uint64(64 - bits)).astype(np.int64)


def _coins(cells: _Cells, cell: IntArray, offset: IntArray, begun: IntArray, source: Randomness) -> BoolArray:
    """Return coins of probability ``exp(-x)`` whose first 15 bits are ``begun``.

    Here ``x = r (2 h B + r) / (2 s2)``.
    """
    coin = (begun << (_MORE - _COIN)) | (source.words(len(begun)) >> np.uint32(32 - _MORE + _COIN)).astype(np.int64)
    surely, at_most = _enclose_exponential(cells, cell, offset)
    keep: BoolArray = coin < surely
    undecided = np.flatnonzero(~keep & (coin < at_most))
    for i in undecided.tolist():
        r, h = int(offset[i]), int(cell[i])
        x = Fraction(r * (2 * (h << cells.bits) + r)) / (2 * cells.variance)
        keep[i] = _falls(x, int(coin[i]), _MORE, source)
    return keep


def _enclose_exponential(cells: _Cells, cell: IntArray, offset: IntArray) -> tuple[IntArray, IntArray]:
    """Return integers below and above ``2**31 exp(-x)``, by the first bits of offsets."""
    place = offset >> cells.unit_bits
    ahead = cell << (1 + cells.bits - cells.unit_bits)
    after = place + (1 if cells.unit_bits else 0)
    low = place * (ahead + place) * cells.scale >> _MORE
    high = (after * (ahead + after) * (cells.scale + 1) >> _MORE) + 1
    return _exp_at_least(high), _exp_at_most(low)


def _exp_at_least(x: IntArray) -> IntArray:
    """Return a lower bound on ``exp(-x)`` in units of ``2**-31``, for x up to 1/4.

    It is ``1 - x + x**2/2 - x**3/6``, rounded down; x is in the same units.
    """
    square = x * x
    cube = ((square >> _MORE) + 1) * x >> _MORE
    low: IntArray = 2**_MORE - x + (square >> (_MORE + 1)) - (cube // 6 + 1)
    return low


def _exp_at_most(x: IntArray) -> IntArray:
    """Return an upper bound: ``1 - x + x**2/2 - x**3/6 + x**4/24``, rounded up."""
    square = x * x
    half = square >> _MORE
    fourth = (half + 1) * (half + 1) >> _MORE
    high: IntArray = 2**_MORE - x + (square >> (_MORE + 1)) + 1 - (half * x >> _MORE) // 6 + fourth // 24 + 1
    return high


def _draw_tail_proposals(cells: _Cells, n: int, source: Randomness) -> tuple[IntArray, BoolArray]:
    """Return proposals beyond the cells, and which of them are kept."""
    start = cells.number << cells.bits
    further = geometric(start / cells.variance, n, source)
    return start + further, _squares_fall(further, cells.variance, source)


def _squares_fall(numbers: IntArray, variance: Fraction, source: Randomness) -> BoolArray:
    """Return coins of probability ``exp(-x)``, ``x = g**2 / (2 variance)``, g >= 0.

    Integers below and above ``2**31 exp(-x)`` decide nearly all of them by their first word; the others get more.
    """
    keep: BoolArray = numbers == 0
    open_ = np.flatnonzero(~keep)
    words = source.words(len(open_)).astype(np.int64)
    low, high = _exp_of_squares(numbers[open_], variance)
    coin = words >> (WORD_BITS - _MORE)
    keep[open_] = coin < low
    for i in np.flatnonzero((coin >= low) & (coin < high)).tolist():
        x = Fraction(int(numbers[open_[i]]) ** 2) / (2 * variance)
        keep[open_[i]] = _falls(x, int(words[i]), WORD_BITS, source)
    return keep


def _exp_of_squares(numbers: IntArray, variance: Fraction) -> tuple[IntArray, IntArray]:
    """Return integers that enclose ``2**31 exp(-g**2 / (2 variance))``, for g >= 0.

    Only the first bits of g count, so that its square fits: 10 bits of a deviation. A number 7 deviations away stands
    for all beyond that.
    """
    bits = max(0, isqrt(int(variance)).bit_length() - 10)
    farthest = isqrt(int(49 * variance / 4**bits)) + 1
    place = np.minimum(numbers >> bits, farthest)
    after = place + (1 if bits else 0)
    scale = min(int(Fraction(4**bits << (_MORE + _FINER)) / (2 * variance)), _SEVEN << (_MORE + _FINER))
    nearest = place * place * scale >> _FINER
    highest = (after * after * (scale + 1) >> _FINER) + 1
    low, high = _exp_table()
    at_least = low[np.minimum(highest >> _QUARTER, len(low) - 1)] * _exp_at_least(highest % 2**_QUARTER) >> _MORE
    at_most = high[np.minimum(nearest >> _QUARTER, len(high) - 1)] * _exp_at_most(nearest % 2**_QUARTER) >> _MORE
    return np.where(place < farthest, at_least, 0), at_most + 1


@lru_cache(maxsize=1)
def _exp_table() -> tuple[IntArray, IntArray]:
    """Return integers enclosing ``2**31 exp(-k/4)``, k = 0, 1, ... until below 1."""
    known = [2**_MORE, *(digits(exp_minus(Fraction(k, 4)), _MORE) for k in range(1, 4 * 22))]
    return np.array([*known, 0]), np.array([known[0], *(below + 1 for below in known[1:]), 1])


def _falls(x: Fraction, coin: int, bits: int, source: Randomness) -> bool:
    """Return True if a coin of probability ``exp(-x)`` with these first bits falls."""
    if x == 0:
        return True
    probability = exp_minus(x)
    while True:
        known = digits(probability, bits) if bits else 0
        if coin != known:
            return coin < known
        coin, bits = (coin << 32) | int(source.words(1)[0]), bits + 32


def _settled_cells(cells: _Cells, begun: npt.NDArray[np.uint32], source: Randomness) -> IntArray:
    """Return the cells of words whose first bits are not enough, by 32 bits or more."""
    bits = _SPLIT + 32
    bounds = np.array(_bounds(cells.variance, bits), dtype=np.int64)
    value = (begun.astype(np.int64) << 32) | source.words(len(begun)).astype(np.int64)
    found = np.searchsorted(bounds, value, side="left")
    for i in np.flatnonzero(bounds[np.minimum(found, len(bounds) - 1)] == value).tolist():
        found[i] = _settled_cell(cells.variance, int(value[i]), bits, source)
    return found


def _settled_cell(variance: Fraction, value: int, bits: int, source: Randomness) -> int:
    while True:
        bounds = _bounds(variance, bits)
        if value not in bounds:
            return sum(bound < value for bound in bounds)
        value, bits = (value << 32) | int(source.words(1)[0]), bits + 32


@lru_cache(maxsize=64)
def _cells(variance: Fraction) -> _Cells:
    bits, number = _layout(variance)
    firsts = _bounds(variance, _SPLIT)
    guide = np.searchsorted(np.array(firsts), np.arange(2**_SPLIT), side="left").astype(np.int16)
    guide[[first for first in firsts if first < 2**_SPLIT]] = -1
    size = 1 << bits
    sure = np.full(number + 1, 2**_COIN, dtype=np.uint16)
    sure[number] = 0
    if bits:
        longest = [Fraction(size * (2 * cell * size + size)) / (2 * variance) for cell in range(number)]
        sure[:number] = [digits(exp_minus(x), _COIN) for x in longest]
    unit = 1 << max(0, bits - 16)
    return _Cells(variance, bits, number, guide, sure, int(2**62 * unit**2 / (2 * variance)))


def _layout(variance: Fraction) -> tuple[int, int]:
    """Return the bits of a cell and the number of cells."""
    deviation = isqrt(int(variance)) + 1
    bits = max(0, (isqrt(int(variance)) // _FINE).bit_length() - 1)
    return bits, -(-_REACH * deviation >> bits) + 1


@lru_cache(maxsize=64)
def _bounds(variance: Fraction, bits: int) -> tuple[int, ...]:
    """Return ``floor(2**bits C_h)``, C_h the probability of a cell up to the h-th."""
    working = bits + 32
    while True:
        low, high = _cumulative(variance, working)
        shift = working - bits
        if all(a >> shift == b >> shift for a, b in zip(low, high, strict=True)):
            return tuple(a >> shift for a in low)
        working *= 2


def _cumulative(variance: Fraction, bits: int) -> tuple[list[int], list[int]]:
    """Return bounds, in units of ``2**-bits``, of the probability of a cell up to h."""
    size, number = _layout(variance)
    start = number << size
    guard = bits + 64
    within = [exp_minus(Fraction((cell << size) ** 2) / (2 * variance))(guard) for cell in range(number)]
    lows = [low << size for low, _ in within]
    highs = [high << size for _, high in within]
    at: Real = exp_minus(Fraction(start * start) / (2 * variance))
    ratio_low, ratio_high = exp_minus(start / variance)(guard + size)
    one = 1 << (guard + size)
    beyond_low, beyond_high = at(guard)
    whole_low = sum(lows) + beyond_low * one // (one - ratio_low)
    whole_high = sum(highs) - (-beyond_high * one // (one - ratio_high))
    sums_low, sums_high, below_low, below_high = [], [], 0, 0
    for low, high in zip(lows, highs, strict=True):
        below_low, below_high = below_low + low, below_high + high
        sums_low.append((below_low << bits) // whole_high)
        sums_high.append(-(-(below_high << bits) // whole_low))
    return sums_low, sums_high
