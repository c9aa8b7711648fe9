"""Exact samplers for integer noise, in bulk, on the operating system's randomness.

No float is drawn anywhere: a float's rounding is visible in the output and voids the guarantee (Mironov, "On
significance of the least significant bits for differential privacy", CCS 2012). Everything is built from one exact
coin, :func:`bernoulli`. It compares random bits with the binary digits of a probability, and looks at more digits when
those at hand are equal.

The binary digits of a geometric number are independent: with ``P(n) = (1 - a) a**n`` and ``n = sum b_i 2**i`` the
probability factors into ``prod a**(2**i b_i)``, so ``P(b_i = 1) = a**(2**i) / (1 + a**(2**i))``. And
``floor(n / 2**m)`` is geometric with ratio ``a**(2**m)``. Hence about ``log2(45 / epsilon)`` coins give an exact
geometric number.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from veilog.errors import ParameterError
from veilog.privacy.mechanisms.intervals import (
    Real,
    digits,
    exp_minus,
    is_at_most,
    one_minus,
    power,
    quotient,
    rational,
    total,
)

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
WordArray = npt.NDArray[np.uint32]

WORD_BITS = 32
LARGEST = 2**62
"""Largest number; larger ones are cut to it, far above counts, far below overflow."""
_LEAST = Fraction(200, LARGEST)
"""Least epsilon: below it a cut, which reveals the exact number, has a chance of more than exp(-200) < 2**-288."""
_AT_ONCE = 2**18
_NEGLIGIBLE = 45
"""Exponent beyond which one coin decides the remaining digits: it practically never falls, as exp(-45) < 2**-64."""


def check_scale(epsilon: Fraction) -> None:
    """Refuse noise so wide that a cut to 64 bits could be seen, before any charge."""
    if epsilon < _LEAST:
        raise ParameterError("noise-scale-too-large", parameter="epsilon", value=float(1 / epsilon))


@dataclass(frozen=True)
class Randomness:
    """Source of independent uniform 32-bit words; ``seed`` is None if the system's."""

    words: Callable[[int], WordArray]
    seed: int | None
    made: Callable[[np.random.Generator], None] = lambda made: None
    """Function called with each :func:`generator` that is seeded from it."""


def operating_system() -> Randomness:
    """Return the operating system's cryptographic source, the only one that protects."""
    return Randomness(lambda n: np.frombuffer(os.urandom(4 * n), dtype=np.uint32), None)


def seeded(seed: int) -> Randomness:
    """Return a reproducible source for experiments, which protects nothing.

    An adversary who knows the seed can subtract the noise.
    """
    return Randomness(_words(np.random.Generator(np.random.PCG64(seed))), seed)


def fast(source: Randomness) -> Randomness:
    """Return a fast source, seeded by another, for noise that no guarantee rests on."""
    return Randomness(
        _words(np.random.Generator(np.random.SFC64(np.random.SeedSequence(source.words(8))))), source.seed
    )


def _words(generator: np.random.Generator) -> Callable[[int], WordArray]:
    return lambda n: generator.integers(0, 2**WORD_BITS, size=n, dtype=np.uint32)


def generator(source: Randomness) -> np.random.Generator:
    """Return a fast generator of floats for post-processing only: it protects nothing.

    It is seeded from the source. Draws from noisy answers alone (play-outs, samples, mutations) need no exact sampler.
    Noise that is added to raw data never comes from here.
    """
    made = np.random.Generator(np.random.PCG64(source.words(8)))
    source.made(made)
    return made


@dataclass(frozen=True)
class _Coin:
    """Probability with its first 32 binary digits."""

    probability: Real
    first: int


def _coin(probability: Real) -> _Coin:
    return _Coin(probability, digits(probability, WORD_BITS))


def bernoulli(probability: Real, n: int, source: Randomness) -> BoolArray:
    """Return ``n`` coins, each true with exactly ``probability``, which is in [0, 1)."""
    return _toss(_coin(probability), n, source)


def _toss(coin: _Coin, n: int, source: Randomness) -> BoolArray:
    words = source.words(n)
    result: BoolArray = words < np.uint32(coin.first)
    undecided = np.flatnonzero(words == np.uint32(coin.first))
    if len(undecided):
        result[undecided] = _settle_tosses(coin, len(undecided), source)
    return result


def _settle_tosses(coin: _Coin, n: int, source: Randomness) -> BoolArray:
    """Return ``n`` tosses that the first 32 bits left open, by the digits after those."""
    result = np.zeros(n, dtype=bool)
    bits = WORD_BITS
    undecided = np.arange(n)
    while len(undecided):
        bits += WORD_BITS
        digit = np.uint32(digits(coin.probability, bits) & (2**WORD_BITS - 1))
        words = source.words(len(undecided))
        result[undecided] = words < digit
        undecided = undecided[words == digit]
    return result


@dataclass(frozen=True)
class Gaps:
    """Coins of a geometric number: one for each binary digit, and one for all beyond."""

    coins: tuple[_Coin, ...]
    beyond: _Coin

    @cached_property
    def first(self) -> WordArray:
        """First binary digits of all the probabilities, a row each."""
        return np.array([[coin.first] for coin in (*self.coins, self.beyond)], dtype=np.uint32)

    @cached_property
    def places(self) -> IntArray:
        """Value of each digit."""
        return np.array([1 << place for place in range(len(self.coins))], dtype=np.int64)


def _geometric_digits(ratio_to: Callable[[int], Real], is_negligible: Callable[[int], bool]) -> Gaps:
    coins = []
    place = 0
    while place < 62 and not is_negligible(place):
        a = ratio_to(place)
        coins.append(_coin(quotient(a, total(rational(Fraction(1)), a))))
        place += 1
    return Gaps(tuple(coins), _coin(ratio_to(place)))


@lru_cache(maxsize=256)
def _laplace_digits(epsilon: Fraction) -> Gaps:
    return _geometric_digits(
        lambda place: exp_minus(epsilon * 2**place), lambda place: epsilon * 2**place >= _NEGLIGIBLE
    )


def _draw(digits_: Gaps, n: int, source: Randomness) -> IntArray:
    value, open_ = _binary_digits(digits_, n, source)
    # Beyond the digits the number is 2**place times a geometric number with ratio `beyond`: count its successes.
    step = 1 << len(digits_.coins)
    while len(open_):
        value[open_] = np.minimum(value[open_] + step, LARGEST)
        open_ = open_[value[open_] < LARGEST]
        open_ = open_[_toss(digits_.beyond, len(open_), source)]
    return value


def _binary_digits(digits_: Gaps, n: int, source: Randomness) -> tuple[IntArray, IntArray]:
    """Return ``n`` numbers below ``2**place``, and which of them go on beyond those.

    For few numbers all random words are drawn at once, which takes less time than drawing those of each digit.
    """
    coins = (*digits_.coins, digits_.beyond)
    if n * len(coins) > _AT_ONCE:
        value = np.zeros(n, dtype=np.int64)
        for place, coin in enumerate(digits_.coins):
            value |= _toss(coin, n, source).astype(np.int64) << place
        return value, np.flatnonzero(_toss(digits_.beyond, n, source))
    words = source.words(n * len(coins)).reshape(len(coins), n)
    tosses: BoolArray = words < digits_.first
    undecided = words == digits_.first
    if undecided.any():
        for place, toss in np.argwhere(undecided).tolist():
            tosses[place, toss] = _settle_tosses(coins[place], 1, source)[0]
    return digits_.places @ tosses[:-1], np.flatnonzero(tosses[-1])


def geometric(epsilon: Fraction, n: int, source: Randomness) -> IntArray:
    """Return ``n`` geometric numbers.

    ``P(x) = (1 - exp(-epsilon)) exp(-epsilon x)`` for x = 0, 1, 2, ...
    """
    check_scale(epsilon)
    return _draw(_laplace_digits(epsilon), n, source)


def gaps_to(success: Real) -> Gaps:
    """Return the coins of :func:`gaps` for draws that succeed with this probability."""
    failure = one_minus(success)

    def is_negligible(place: int) -> bool:
        return is_at_most(power(failure, place), Fraction(1, 2**64))

    return _geometric_digits(lambda place: power(failure, place), is_negligible)


def gaps(to: Gaps, n: int, source: Randomness) -> IntArray:
    """Return ``n`` counts of draws that fail before a success, cut at ``LARGEST``.

    Adding them up (plus one each) visits, in a long row of draws, those that succeed without drawing every one. The
    number of failures before a success of probability p is geometric with ratio 1 - p.
    """
    return _draw(to, n, source)


@lru_cache(maxsize=256)
def _laplace_zero(epsilon: Fraction) -> _Coin:
    a = exp_minus(epsilon)
    return _coin(quotient(one_minus(a), total(rational(Fraction(1)), a)))


def discrete_laplace(epsilon: Fraction, n: int, source: Randomness) -> IntArray:
    """Return ``n`` discrete Laplace numbers.

    ``P(x) = (1 - a) / (1 + a) * a**|x|`` with ``a = exp(-epsilon)``. Added to a count of sensitivity 1 this is
    epsilon-differentially private: neighbouring counts shift ``|x|`` by at most 1 (Ghosh, Roughgarden, Sundararajan,
    "Universally utility-maximizing privacy mechanisms", STOC 2009).
    """
    return _two_sided(_laplace_zero(epsilon), geometric(epsilon, n, source), n, source)


def _two_sided(zero: _Coin, magnitude_less_one: IntArray, n: int, source: Randomness) -> IntArray:
    """Return 0 with the coin's probability, else ``magnitude_less_one + 1``, signed."""
    is_zero = _toss(zero, n, source)
    negative = (source.words(n) & np.uint32(1)).astype(bool)
    value = magnitude_less_one + 1
    value[negative] *= -1
    value[is_zero] = 0
    return value


def cubes(epsilon: Fraction, width: int, n: int, source: Randomness) -> IntArray:
    """Return ``n`` rows of ``width`` whole numbers, as noise by the largest one.

    ``P(z)`` is proportional to ``exp(-epsilon max |z_i|)``. With ``a = exp(-epsilon)``, ``a**max |z_i|`` is in
    proportion to the sum of ``a**m`` over all m that are ``max |z_i|`` or more. So z is even among the ``(2m +
    1)**width`` points of a cube, where m has a probability in proportion to ``(2m + 1)**width a**m``. A sum of ``width
    + 1`` geometric numbers has one in proportion to ``(m + 1) ... (m + width) a**m``. It is accepted with the
    probability ``prod (2m + 1) / (2m + 2i)``, over i from 1 to ``width``: their product is as it should be (rejection
    sampling).
    """
    found = np.empty((n, width), dtype=np.int64)
    for row in found:
        accepted = False
        while not accepted:
            m = sum(geometric(epsilon, width + 1, source).tolist())
            chance = Fraction((2 * m + 1) ** width, math.prod(range(2 * m + 2, 2 * m + 2 * width + 1, 2)))
            accepted = bool(bernoulli(rational(chance), 1, source)[0])
        row[:] = _draw_even(2 * m + 1, width, source) - m
    return found


def _draw_even(number: int, n: int, source: Randomness) -> IntArray:
    """Return ``n`` independent whole numbers from 0 on and below ``number``.

    All are as likely: numbers of as many bits are drawn until they are below ``number``.
    """
    bits = number.bit_length()
    found = np.empty(n, dtype=np.int64)
    places = np.arange(n)
    while len(places):
        high, low = source.words(2 * len(places)).reshape(2, -1).astype(np.uint64)
        found[places] = ((high << np.uint64(WORD_BITS) | low) & np.uint64((1 << bits) - 1)).astype(np.int64)
        places = places[found[places] >= number]
    return found


def laplace_tail(epsilon: Fraction, above: int) -> Real:
    """Return ``P(X > above)`` of a discrete Laplace number, for ``above >= 0``.

    It is ``exp(-epsilon (above+1)) / (1 + a)``.
    """
    return quotient(exp_minus(epsilon * (above + 1)), total(rational(Fraction(1)), exp_minus(epsilon)))


def tsgd_tail(epsilon: Fraction, k: int) -> Real:
    """Return ``P(X = k)`` of the k-truncated symmetric geometric distribution.

    It is ``(1-a) a**k / (1 + a - 2 a**(k+1))``.
    """
    a = exp_minus(epsilon)
    rest = exp_minus(epsilon * (k + 1))
    # 1 + a - 2 r = (1 - r) + (a - r), and a - r = a (1 - a**k) > 0
    norm = total(one_minus(rest), _difference(a, rest))
    return quotient(_product(one_minus(a), exp_minus(epsilon * k)), norm)


@lru_cache(maxsize=256)
def tsgd_failure(epsilon: Fraction, k: int) -> Fraction:
    """Return the delta of k-TSGD noise, ``P(X = k)``, rounded up at 32 binary digits."""
    bits = 64
    while tsgd_tail(epsilon, k)(bits)[0] < 2**32:
        bits *= 2
    return Fraction(tsgd_tail(epsilon, k)(bits)[1], 2**bits)


def _difference(x: Real, y: Real) -> Real:
    def at(bits: int) -> tuple[int, int]:
        (a, b), (c, d) = x(bits), y(bits)
        return a - d, b - c

    return at


def _product(x: Real, y: Real) -> Real:
    def at(bits: int) -> tuple[int, int]:
        (a, b), (c, d) = x(bits), y(bits)
        return max(a, 0) * max(c, 0) >> bits, -(-b * d >> bits)

    return at


@lru_cache(maxsize=256)
def tsgd_bound(epsilon: Fraction, delta: Fraction) -> int:
    """Return the smallest k >= 1 with ``P(X = k) <= delta``.

    It is ``ceil(ln((e**eps + 2 delta - 1) / (delta (e**eps + 1))) / eps)``. The formula is that of TraVaS (Rafiei,
    Wangelik, van der Aalst, 2022) after Desfontaines, Voss, Gipson, Mandayam, "Differentially private partition
    selection", PoPETs 2022. The code checks the defining inequality, with interval arithmetic, so that a rounded
    logarithm cannot make k one too small.
    """
    e, d = float(epsilon), float(delta)
    growth = np.expm1(min(e, 700.0))
    guess = max(1, int(np.ceil((np.log(growth + 2 * d) - np.log(d) - np.log(growth + 2)) / e)))
    while guess > 1 and is_at_most(tsgd_tail(epsilon, guess - 1), delta):
        guess -= 1
    while not is_at_most(tsgd_tail(epsilon, guess), delta):
        guess += 1
    return guess


@lru_cache(maxsize=256)
def _tsgd_zero(epsilon: Fraction, k: int) -> _Coin:
    a = exp_minus(epsilon)
    rest = exp_minus(epsilon * (k + 1))
    return _coin(quotient(one_minus(a), total(one_minus(rest), _difference(a, rest))))


def tsgd_noise(epsilon: Fraction, k: int, n: int, source: Randomness) -> IntArray:
    """Return ``n`` numbers of the k-truncated symmetric geometric distribution.

    ``P(x) ~ exp(-epsilon |x|)`` on [-k, k]. A geometric number modulo k has exactly the geometric distribution cut to
    0, ..., k-1, so nothing is rejected.
    """
    return _two_sided(_tsgd_zero(epsilon, k), geometric(epsilon, n, source) % k, n, source)
