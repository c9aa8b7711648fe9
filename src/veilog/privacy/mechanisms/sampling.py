"""Privacy amplification by Poisson sampling: queries on a random part of the log.

A Poisson sample holds each case with probability q, independently. Let M be all queries on the sample. M is an
(epsilon, delta)-differentially private interaction for one case added to or removed from the *sample*. Then sampling
and queries together are (epsilon', q delta)-differentially private for one case added to or removed from the *log*,
with

    epsilon' = ln(1 + q (exp(epsilon) - 1)).

Proof. Let D' be D and one more case x, S a Poisson sample of D (that of D' is S with probability 1 - q, and S with x
with probability q), A a set of outputs, P = E[Pr(M(S) in A)] and R = E[Pr(M(S with x) in A)]. So D gives A with
probability P, and D' with P' = (1 - q) P + q R. S and S with x are neighbours whatever S is, so R <= e P + delta and
P <= e R + delta, where e = exp(epsilon).

- P' <= (1 - q) P + q (e P + delta) = (1 + q (e - 1)) P + q delta.
- R >= (P - delta) / e, so P' >= c P - q delta / e with c = 1 - q + q / e, that is P <= P' / c + q delta / (e c). Now
  1 / c <= 1 + q (e - 1), since (1 + q (e - 1)) (1 - q (1 - 1/e)) = 1 + q (1 - q) (e - 2 + 1/e) >= 1; and
  e c = (1 - q) e + q >= 1, so the last term is at most q delta.

The bound is for add or remove one case; it is attained (by randomised response on whether x is there). Composition
comes first: queries on one sample share its randomness. So they are amplified together and not one by one (epsilon'
is convex in epsilon and 0 at 0, so the sum of the amplified would be too little). Samples drawn apart compose like any
queries. Where queries on a sample and on the whole log take turns, their epsilons still add up (concurrent
composition: Vadhan, Wang, "Concurrent composition of differential privacy", 2021; Lyu, "Composition theorems for
interactive differential privacy", 2022).

References: Li, Qardaji, Su, "On sampling, anonymization, and differential privacy", 2012; Balle, Barthe, Gaboardi,
"Privacy amplification by subsampling", 2018 (theorem 8).
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from veilog.logs.variants import Variants
from veilog.privacy.mechanisms.intervals import Real, exp_minus, is_at_most, quotient, rational, total
from veilog.privacy.mechanisms.noise import Randomness, bernoulli

IntArray = npt.NDArray[np.int64]

_GRID = 10**12
_FINE_GRID = 10**15


@lru_cache(maxsize=1024)
def amplify(epsilon: Fraction, rate: Fraction) -> Fraction:
    """Return ``ln(1 + rate (exp(epsilon) - 1))``, rounded up to 12 decimals."""
    if rate == 1 or epsilon == 0:
        return epsilon
    guess = max(0, math.floor(_estimate(float(epsilon), float(rate)) * _GRID) - 2)
    while not _suffices(epsilon, rate, Fraction(guess, _GRID)):
        guess += 1
    return min(Fraction(guess, _GRID), epsilon)


@lru_cache(maxsize=1024)
def reverse_amplification(epsilon: Fraction, rate: Fraction) -> Fraction:
    """Return the largest epsilon whose amplified one is at most this.

    It has 15 decimals; ``epsilon`` is rounded down to 12.
    """
    if rate == 1:
        return epsilon
    bound = Fraction(math.floor(epsilon * _GRID), _GRID)
    place = math.floor(_estimate_back(float(bound), float(rate)) * _FINE_GRID) + 2
    while place > 0 and not _suffices(Fraction(place, _FINE_GRID), rate, bound):
        place -= 1 + place // 10**15  # floats have 15 to 16 digits
    return max(Fraction(place, _FINE_GRID), epsilon)


def _estimate(epsilon: float, rate: float) -> float:
    if epsilon < 30:
        return math.log1p(rate * math.expm1(epsilon))
    return epsilon + math.log(rate + (1 - rate) * math.exp(-epsilon))


def _estimate_back(epsilon: float, rate: float) -> float:
    if epsilon < 30:
        return math.log1p(math.expm1(epsilon) / rate)
    return epsilon + math.log((1 - (1 - rate) * math.exp(-epsilon)) / rate)


def _suffices(epsilon: Fraction, rate: Fraction, bound: Fraction) -> bool:
    """Return True if ``1 + rate (e**epsilon - 1) <= e**bound`` is proved."""
    rest = quotient(exp_minus(epsilon + bound), rational(1 / (1 - rate)))
    ratio: Real = quotient(total(rest, quotient(exp_minus(bound), rational(1 / rate))), exp_minus(epsilon))
    return is_at_most(ratio, Fraction(1))


def poisson_sample(variants: Variants, rate: Fraction, randomness: Randomness) -> Variants:
    """Return a sample that takes each case with probability ``rate``, exactly."""
    return variants.with_counts(poisson_counts(variants.counts, rate, randomness))


def poisson_counts(counts: IntArray, rate: Fraction, randomness: Randomness) -> IntArray:
    """Return the counts of these cases in a Poisson sample, by exact coins."""
    if rate == 1:
        return counts
    ends = np.cumsum(counts)
    kept = bernoulli(rational(rate), int(ends[-1]) if len(ends) else 0, randomness)
    sums = np.concatenate([[0], np.cumsum(kept, dtype=np.int64)])
    return np.asarray(sums[ends] - sums[ends - counts], dtype=np.int64)
