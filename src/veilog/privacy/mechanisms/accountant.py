"""Epsilon of noised gradient steps: composed Poisson-sampled Gaussian mechanisms.

A step takes every case with probability ``rate``, sums vectors of L2 norm at most C and adds Gaussian noise of standard
deviation ``noise_multiplier * C``. For logs that differ by one case, added or removed, that is the Poisson-subsampled
Gaussian mechanism (Abadi et al., "Deep Learning with Differential Privacy", CCS 2016; Mironov, Talwar, Zhang, "Renyi
Differential Privacy of the Sampled Gaussian Mechanism", 2019). Steps compose through their privacy loss distributions
(Koskela, Jälkö, Honkela, AISTATS 2020; Doroshenko et al., "Connect the Dots", PoPETs 2022). These are discretised so
that the epsilon found is an upper bound. The library dp-accounting does the sums.

The noise that is added is discrete. A step's sum v is an integer vector and C is ``c`` units. Every coordinate gets an
independent number of ``N_Z(0, s2)`` with ``s2 = s1**2 + 16``, ``s1 = noise_multiplier * c`` (:func:`integer_variance`).
Every bound of the accountant for the continuous Gaussian with deviation s1 holds for it:

1. *Let X be N(0, s1**2) and Y, given X, of N_Z(X, 16)*, the law on the integers with weights ``exp(-(y - X)**2 / 32)``.
   As v is an integer vector, v + Y has, given v + X, the law ``N_Z(v + X, 16)``. So it is the continuous mechanism's
   answer v + X, rounded at random by a rule that does not know v. That is post-processing. So all that holds for the
   continuous mechanism (sampled, composed, adaptive) holds for v + Y, with the same privacy loss distributions.
2. *Y has almost the law N_Z(0, s2)* (Peikert, "An Efficient and Parallel Gaussian Sampler for Lattices", CRYPTO 2010,
   theorem 3.1, in one dimension). ``P(Y = y)`` is the integral over x of ``p(x) g(y - x) / S(x)``, p the density of
   N(0, s1**2), ``g(t) = exp(-t**2 / 32)`` and ``S(x) = sum_z g(z - x)``. By Poisson's summation formula ``S(x)`` is
   ``4 sqrt(2 pi) (1 + 2 sum_{k>0} exp(-32 pi**2 k**2) cos(2 pi k x))``, so ``4 sqrt(2 pi)`` but for a factor in
   [1 - h, 1 + h] with ``h = 2.01 exp(-32 pi**2) < 1e-136``. With ``4 sqrt(2 pi)`` for S the integral would be
   ``exp(-y**2 / (2 s2)) / sqrt(2 pi s2)``, and the norming constant of ``N_Z(0, s2)`` is ``sqrt(2 pi s2)`` but for a
   factor in [1, 1 + h], because ``s2 >= 16``. So the probabilities of N_Z(0, s2) and of Y have a ratio in
   ``[e**-3h, e**3h]``, for every y.
3. *A whole training* draws at most ``n = 1e20`` numbers (1e7 steps of networks that fit into memory). Its answers have
   probabilities within ``e**(3 h n)`` of those with Y, for a log as for its neighbour and for every sample. So if the
   latter are (epsilon, delta)-differentially private it is ``(epsilon + 6 h n, e**(3 h n) delta)``, and
   ``6 h n < 1e-114``.

:func:`composed_epsilon` adds 1e-100 to epsilon and uses a millionth less of delta. That is more than step 3 takes. It
is more than the ``n 2**-300`` lost by cutting numbers at 64 bits (:mod:`veilog.privacy.mechanisms.gaussian`; delta is
at least 1e-50). It is also more than delta changes when it is rounded to a float. The accountant's own sums may be more
wrong than by a millionth of so small a delta. There it uses so much less of it as all steps may have lost
(``LOST_BY_EACH`` of :mod:`veilog.privacy.account.losses`). The accountant's epsilon is raised by a millionth.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import lru_cache
from typing import Any

from veilog.errors import ParameterError
from veilog.privacy.account.losses import LOST_BY_EACH
from veilog.privacy.mechanisms.mechanism import LARGEST_NOISE, NoisedSteps

LEAST_NOISE = 1e-2
"""Smallest noise multiplier: below it, noise protects too little, and the accountant's sums would not end."""
_INTERVAL = 1e-4
_FINEST = 1e-8
_WIDER = 1.25
_TOLERANCE = 1e-4
_COARSE = 10
"""Factor of the coarser steps by which losses are distinguished while noise is only searched for."""
_NEWTON = 10
"""Number of steps after which a bracket is halved instead."""
_LEAST_COST = 1e-12
_ROUNDING = 16
"""Variance beyond the accountant's, at which a discrete Gaussian is a continuous one rounded at random."""
_KEPT_BACK = 1e-6
_AT_LEAST = 1e-100
LEAST_DELTA = Fraction(1, 10**50)


def composed_epsilon(parts: Iterable[NoisedSteps], delta: float | Fraction, *, about: float | None = None) -> float:
    """Return an upper bound on the epsilon of all steps together at ``delta``.

    It holds for adding or removing one case. It is infinite where so many steps have none at so small a delta.
    ``about`` is the expected epsilon (estimated if None): losses are distinguished in steps of 1e-4 of it. The bound
    holds whatever ``about`` is; far off, the bound is loose, or takes long.
    """
    given = tuple(parts)
    if not LEAST_DELTA <= Fraction(delta) < 1:
        raise ParameterError("training-delta-out-of-range", parameter="delta")
    failure = _step_delta(delta, given)
    if failure <= 0:
        return math.inf
    found = _bound(given, failure, _INTERVAL * _expected_loss(given, failure, about))
    return found * (1 + _KEPT_BACK) + _AT_LEAST


def _step_delta(delta: float | Fraction, parts: tuple[NoisedSteps, ...]) -> float:
    """Return the delta left for the accountant; at most 0 where floats lose all of it."""
    lost = sum(part.steps for part in parts) * LOST_BY_EACH
    return min(float(delta) * (1 - _KEPT_BACK), float(delta) - lost)


def integer_variance(noise_multiplier: float, bits: int) -> Fraction:
    """Return the variance of discrete Gaussian noise on sums of ``2**bits`` units."""
    deviation = Fraction(noise_multiplier) * 2**bits
    variance: Fraction = deviation * deviation + _ROUNDING
    return variance


def _expected_loss(parts: tuple[NoisedSteps, ...], delta: float, about: float | None) -> float:
    estimate = _estimate(parts, delta)
    return max(estimate if about is None else max(about, estimate / 100), _FINEST)


@lru_cache(maxsize=256)
def _bound(parts: tuple[NoisedSteps, ...], delta: float, interval: float) -> float:
    """Return the accountant's epsilon with losses in steps of ``interval``."""
    # Imported here: it takes a second, and only training needs it.
    import dp_accounting
    from dp_accounting import pld

    accountant = pld.PLDAccountant(
        dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE, value_discretization_interval=interval
    )
    for part in parts:
        accountant.compose(event_of(part, dp_accounting))
    return float(accountant.get_epsilon(delta))


def event_of(part: NoisedSteps, dp_accounting: Any) -> Any:
    """Return these steps as an event of dp-accounting."""
    gaussian = dp_accounting.GaussianDpEvent(part.noise_multiplier)
    once = gaussian if part.rate == 1 else dp_accounting.PoissonSampledDpEvent(part.rate, gaussian)
    return dp_accounting.SelfComposedDpEvent(once, part.steps)


def calibrate(parts: Iterable[NoisedSteps], epsilon: Fraction, delta: Fraction) -> tuple[NoisedSteps, ...]:
    """Return the parts with their noise scaled by the smallest factor for ``epsilon``.

    The factor is right to a relative 1e-4. The accountant's epsilon of the result is at most ``epsilon``, so charging
    ``epsilon`` never understates. A coarse accountant finds about where the factor lies. A few of Newton's steps on the
    logarithms do the rest.
    """
    given = tuple(parts)
    budget = float(epsilon)
    if not LEAST_DELTA <= delta < 1:
        raise ParameterError("training-delta-out-of-range", parameter="delta")
    if _step_delta(delta, given) <= 0:
        raise _unaffordable()

    def roughly(factor: float) -> float:
        scaled = tuple(part.scaled(factor) for part in given)
        return _bound(scaled, float(delta), _COARSE * _INTERVAL * _expected_loss(scaled, float(delta), budget))

    low, high = _bracket(lambda factor: roughly(factor) <= budget, _guess(given, budget, float(delta)), given)
    while high / low > 1.02:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if roughly(middle) <= budget else (middle, high)
    slope = math.log(roughly(high) / roughly(low)) / math.log(high / low) if high > low else -1.0

    def excess(factor: float) -> float:
        cost = composed_epsilon([part.scaled(factor) for part in given], delta, about=budget)
        over = math.log(max(cost, _LEAST_COST) / budget)
        return over if cost <= budget else max(over, _LEAST_COST)  # a quotient may be rounded to 1, a cost is not

    return tuple(part.scaled(_affordable(excess, high, slope, _limits(given))) for part in given)


def _affordable(excess: Callable[[float], float], factor: float, slope: float, limits: tuple[float, float]) -> float:
    """Return the smallest factor (to a relative 1e-4) whose excess is at most 0.

    ``factor`` is one nearby. ``excess`` falls by about ``slope`` for the factor's logarithm.
    """
    least, most = limits
    low, high = None, None
    for step in range(200):
        over = excess(factor)
        if over <= 0:
            high = factor
        else:
            low = factor
        if high is not None and (high == least or (low is not None and high / low <= 1 + _TOLERANCE)):
            return high
        if low == most:
            break
        # A little beyond the root, on the side that is not known yet.
        beyond = math.log1p(_TOLERANCE / 3) * (1 if over > 0 else -1)
        factor = min(max(factor * math.exp(min(max(beyond - over / slope, -1.0), 1.0)), least), most)
        if low is not None and high is not None and (step > _NEWTON or not low < factor < high):
            factor = math.sqrt(low * high)
    raise _unaffordable()


def _strength(parts: tuple[NoisedSteps, ...]) -> float:
    """Return the m for which the steps are about a Gaussian mechanism of noise 1/m.

    Sampling at rate q makes noise s count as noise s/q.
    """
    return math.sqrt(sum(part.steps * (part.rate / part.noise_multiplier) ** 2 for part in parts))


def _estimate(parts: tuple[NoisedSteps, ...], delta: float) -> float:
    """Return about the epsilon of the steps: ``m**2 / 2 + m sqrt(2 ln(1/delta))``."""
    strength = _strength(parts)
    return min(strength**2 / 2 + strength * math.sqrt(2 * math.log(1 / delta)), 1e3)


def _guess(parts: tuple[NoisedSteps, ...], epsilon: float, delta: float) -> float:
    """Return about the factor at which :func:`_estimate` gives ``epsilon``."""
    tail = math.sqrt(2 * math.log(1 / delta))
    return _strength(parts) * (tail + math.sqrt(tail**2 + 2 * epsilon)) / (2 * epsilon)


def _bracket(affordable: Callable[[float], bool], guess: float, parts: tuple[NoisedSteps, ...]) -> tuple[float, float]:
    """Return two factors: only the larger is affordable, or both are the least."""
    least, most = _limits(parts)
    high = min(max(guess, least), most)
    if affordable(high):
        low = high
        while affordable(low):
            if low == least:
                return least, least
            high, low = low, max(low / _WIDER, least)
        return low, high
    while True:
        if high == most:
            raise _unaffordable()
        low, high = high, min(high * _WIDER, most)
        if affordable(high):
            return low, high


def _limits(parts: tuple[NoisedSteps, ...]) -> tuple[float, float]:
    """Return the smallest and the largest factor that are tried."""
    return (
        LEAST_NOISE / min(part.noise_multiplier for part in parts),
        LARGEST_NOISE / max(part.noise_multiplier for part in parts),
    )


def _unaffordable() -> ParameterError:
    return ParameterError("training-not-affordable", parameter="epsilon")


def smallest_epsilon(parts: Iterable[NoisedSteps], delta: Fraction, noise: float) -> float:
    """Return the smallest epsilon of the parts for noise of at most ``noise``.

    It is their epsilon when the least noisy part has that noise multiplier: a smaller epsilon needs more noise.
    """
    given = tuple(parts)
    smallest = min(part.noise_multiplier for part in given)
    found = composed_epsilon([part.scaled(noise / smallest) for part in given], delta)
    if found == math.inf:
        raise _unaffordable()
    return found
