"""Local noise for single values, as PRIPEL adds it: exact, and epsilon-private for one value whose domain is public.

Local differential privacy of one value: for all values x, x' of the domain and all outputs y,
``P(y | x) <= exp(epsilon) P(y | x')``. It says nothing about a case, which has many values; see :mod:`pripel`.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from veilog._typing import IntArray
from veilog.privacy.mechanisms.intervals import exp_minus, quotient, rational, total
from veilog.privacy.mechanisms.noise import Randomness, bernoulli, tsgd_noise

_WORD = 2**32


def randomised_response(values: IntArray, size: int, epsilon: Fraction, source: Randomness) -> IntArray:
    """Each of the values 0, ..., size-1 stays with probability ``e**eps / (e**eps + size - 1)``, and else becomes one
    of the others, all equally likely (Warner 1965; k-ary: Kairouz, Oh, Viswanath, "Extremal mechanisms for local
    differential privacy", 2014). The ratio of the two probabilities is exactly ``e**eps``."""
    if size <= 1 or len(values) == 0:
        return values.copy()
    others = quotient(exp_minus(epsilon), rational(Fraction(1, size - 1)))  # (size - 1) / e**eps
    stays = bernoulli(quotient(rational(Fraction(1)), total(rational(Fraction(1)), others)), len(values), source)
    other = _uniform(size - 1, len(values), source)
    return np.where(stays, values, other + (other >= values))


def bounded_noise(values: IntArray, largest: int, epsilon: Fraction, source: Randomness) -> IntArray:
    """Values in 0, ..., largest with ``P(y | x) ~ a**|x - y|``, ``a = exp(-epsilon / (2 largest))``, within the same
    bounds (Holohan, Antonatos, Braghin, Mac Aonghusa, "The Bounded Laplace Mechanism in Differential Privacy", 2020).

    ``a**|x - y|`` changes by at most ``exp(epsilon / 2)`` between any two x, and so does what the probabilities are
    divided by to add up to 1: together ``exp(epsilon)``. Drawn from the same noise on [-largest, largest], of which at
    least half falls within the bounds; what falls outside is drawn again.
    """
    result = np.zeros(len(values), dtype=np.int64)
    open_ = np.arange(len(values))
    while len(open_):
        drawn = values[open_] + tsgd_noise(epsilon / (2 * largest), largest, len(open_), source)
        inside = (drawn >= 0) & (drawn <= largest)
        result[open_[inside]] = drawn[inside]
        open_ = open_[~inside]
    return result


def _uniform(size: int, n: int, source: Randomness) -> IntArray:
    """``n`` numbers from 0 to size-1, exactly evenly."""
    result = np.zeros(n, dtype=np.int64)
    open_ = np.arange(n)
    limit = _WORD // size * size
    while len(open_):
        words = source.words(len(open_)).astype(np.int64)
        fair = words < limit
        result[open_[fair]] = words[fair] % size
        open_ = open_[~fair]
    return result
