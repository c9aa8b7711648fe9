"""How likely an answer is on either of two logs, by the mechanism that was charged for it.

The evidence of an answer is the logarithm of how many times likelier it is with the case than without: a function of
the answer and of the two logs, which an attacker who knows both can work out. That a likelihood is exact is not needed
for an audit to be right, only for it to be sharp: what is proved is how often the evidence comes out how large.

A mechanism of a new kind needs a line in :func:`log_probability`, and one in :func:`log_at_most` if it is thresholded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from veilog._typing import FloatArray, IntArray
from veilog.privacy.mechanisms.mechanism import (
    DiscreteGaussian,
    GaussianRounds,
    KTruncatedGeometric,
    Laplace,
    Mechanism,
    NoisyMaximum,
    Thresholded,
)

IMPOSSIBLE = -math.inf
_BEYOND, _PLACES = 50.0, 20_000
"""Noise of less than exp(-50) is left out of a sum, and of wider noise so many numbers on either side are looked at."""
_WIDE = 100.0
"""From this variance on the sum of a discrete Gaussian law is that of the density, to more digits than floats have."""
Noise = Mechanism | KTruncatedGeometric | DiscreteGaussian
Counts = Mapping[object, int]
"""The exact number of each thing that is there, such as a bin, a variant or a name; of any other it is 0."""


def log_probability(mechanism: Noise, noise: npt.ArrayLike) -> FloatArray:
    """Return the logarithm of the probability of each number of noise; minus infinity where it cannot be drawn."""
    if isinstance(mechanism, GaussianRounds):  # of sums, which are one question
        (mechanism,) = mechanism.noises
    x = np.asarray(noise, dtype=np.float64)
    whole = x == np.rint(x)
    if isinstance(mechanism, Laplace):
        found = _log_centre(float(mechanism.decay)) - float(mechanism.decay) * np.abs(x)
        return np.asarray(np.where(whole, found, IMPOSSIBLE))
    if isinstance(mechanism, KTruncatedGeometric):
        epsilon, k = float(mechanism.epsilon), mechanism.k
        norm = math.log1p(2 * math.exp(-epsilon) * (-math.expm1(-epsilon * k)) / (-math.expm1(-epsilon)))
        return np.asarray(np.where(whole & (np.abs(x) <= k), -epsilon * np.abs(x) - norm, IMPOSSIBLE))
    if isinstance(mechanism, DiscreteGaussian):
        found = -(x**2) / (2 * mechanism.variance) - _log_norm(mechanism)
        return np.asarray(np.where(whole, found, IMPOSSIBLE))
    raise TypeError(f"nothing is known of how likely the numbers of a {type(mechanism).__name__} are")


def log_at_most(mechanism: Noise, most: int) -> float:
    """Return the logarithm of the probability that a number of noise is at most so much."""
    if isinstance(mechanism, Laplace):
        d = float(mechanism.decay)
        outside = -d * (most + 1 if most >= 0 else -most) - math.log1p(math.exp(-d))
        return math.log1p(-math.exp(outside)) if most >= 0 else outside
    if isinstance(mechanism, KTruncatedGeometric):
        if abs(most) > mechanism.k:
            return 0.0 if most > 0 else IMPOSSIBLE
        return float(_cumulative(mechanism)[most + mechanism.k])
    if isinstance(mechanism, DiscreteGaussian):
        beyond = most if most >= 0 else -most - 1  # P(Y > m) of the whole, or of what is below a negative number
        tail = mechanism.tail(beyond)(256)[1] / 2.0**256
        return math.log1p(-tail) if most >= 0 else math.log(max(tail, 5e-324))
    raise TypeError(f"nothing is known of the tails of a {type(mechanism).__name__}")


def log_above(mechanism: Noise, least: int) -> float:
    """Return the logarithm of the probability that a number of noise is above so much."""
    return log_at_most(mechanism, -least - 1)  # the noise is symmetric


def most_likely(mechanism: Noise) -> float:
    """Return the largest probability that any number has."""
    return math.exp(float(log_probability(mechanism, 0)))


@lru_cache(maxsize=256)
def _log_norm(mechanism: DiscreteGaussian) -> float:
    if mechanism.variance > _WIDE:
        return math.log(2 * math.pi * mechanism.variance) / 2
    reach = math.ceil(40 * math.sqrt(mechanism.variance)) + 1
    return math.log(float(np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * mechanism.variance)).sum()))


def _log_centre(decay: float) -> float:
    return math.log(-math.expm1(-decay)) - math.log1p(math.exp(-decay))


@lru_cache(maxsize=256)
def _cumulative(mechanism: KTruncatedGeometric) -> FloatArray:
    each = np.exp(log_probability(mechanism, np.arange(-mechanism.k, mechanism.k + 1)))
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.minimum(np.cumsum(each), 1.0)))


# Answers ------------------------------------------------------------------------------------------------------------


def evidence_of_numbers(mechanism: Noise, answer: npt.ArrayLike, without: npt.ArrayLike, with_: npt.ArrayLike) -> float:
    """Return the evidence of noisy numbers, whose exact ones are these; ``nan`` where neither log can give them."""
    noisy, one, other = (np.atleast_1d(np.asarray(a, dtype=np.float64)).reshape(-1) for a in (answer, without, with_))
    differ = one != other
    likely_with = float(log_probability(mechanism, noisy[differ] - other[differ]).sum())
    return _difference(likely_with, float(log_probability(mechanism, noisy[differ] - one[differ]).sum()))


def evidence_of_counts(
    noise: Noise, above: int, answer: Counts, without: Counts, with_: Counts, *, empty: bool
) -> float:
    """Return the evidence of noisy counts of which those above a threshold came out.

    ``empty``: whether what nobody has gets noise, too; otherwise it never comes out.
    """

    def likely(thing: object, exact: int) -> float:
        if exact == 0 and not empty:
            return IMPOSSIBLE if thing in answer else 0.0
        if thing in answer:
            return float(log_probability(noise, answer[thing] - exact))
        return log_at_most(noise, above - exact)

    return _added(likely, without, with_)


def evidence_of_names(mechanism: Thresholded, answer: frozenset[str], without: Counts, with_: Counts) -> float:
    """Return the evidence of the names that came out because their noisy counts were above a threshold."""

    def likely(thing: object, exact: int) -> float:
        if exact == 0:
            return IMPOSSIBLE if thing in answer else 0.0
        beyond = mechanism.above - exact
        return log_above(mechanism.noise, beyond) if thing in answer else log_at_most(mechanism.noise, beyond)

    return _added(likely, without, with_)


def evidence_of_maximum(mechanism: NoisyMaximum, answer: int, without: npt.ArrayLike, with_: npt.ArrayLike) -> float:
    """Return the evidence of the place of the largest number, whose exact ones are these."""
    likely = (_log_largest(mechanism.noise, answer, np.asarray(scores)) for scores in (with_, without))
    return _difference(*likely)


def _log_largest(noise: Laplace, place: int, scores: IntArray) -> float:
    """The logarithm of the probability that the number at this place is the largest with noise, the first of equals."""
    decay = float(noise.decay)
    reach = math.ceil(_BEYOND / decay)
    steps = np.arange(-reach, reach + 1, max(1, reach // _PLACES))  # of wide noise not every number is looked at
    reached = scores[place] + steps
    logs = log_probability(noise, steps)
    for other, score in enumerate(scores.tolist()):
        if other != place:
            most = reached - score - (other < place)
            outside = -decay * np.where(most >= 0, most + 1, -most) - math.log1p(math.exp(-decay))
            logs = logs + np.where(most >= 0, np.log1p(-np.exp(np.minimum(outside, -1e-12))), outside)
    top = float(logs.max())
    return top + math.log(float(np.exp(logs - top).sum()))


def _added(likely: Callable[[object, int], float], without: Counts, with_: Counts) -> float:
    differ = [t for t in {**without, **with_} if without.get(t, 0) != with_.get(t, 0)]
    likely_with = sum((likely(t, with_.get(t, 0)) for t in differ), start=0.0)
    return _difference(likely_with, sum((likely(t, without.get(t, 0)) for t in differ), start=0.0))


def _difference(with_: float, without: float) -> float:
    if with_ == without == IMPOSSIBLE:
        return math.nan
    return with_ - without
