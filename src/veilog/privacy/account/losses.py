"""Composition of charges at a delta by their losses, below the sum of epsilons.

Each mechanism has a dominating pair (Zhu, Dong, Wang, "Optimal accounting of differential privacy via characteristic
function", AISTATS 2022). It is a pair of distributions that is at least as easy to distinguish as the answers for any
two neighbouring logs. The logarithm of their ratio is its privacy loss. Losses of independent answers add up, so their
distributions are convolved (Koskela, Jälkö, Honkela, AISTATS 2020). The library dp-accounting does that, discretised
such that the epsilon found is an upper bound (Doroshenko et al., "Connect the dots", PoPETs 2022).

*When it holds.* The pairs must be fixed beforehand: which query comes next may depend on earlier answers, *how* it is
answered may not. A curator that chooses the next epsilon by the last answer has no such sum; that needs a rule that is
proven for adaptive choices. A release whose own queries were split adaptively counts as the :class:`EpsilonDeltaLoss`
that it claims.

*Dominating pairs.* Consider noise of a log-concave law on the integers (discrete Laplace, Gaussian, k-truncated
geometric). It is added to counts that a case changes by whole numbers that come to s in all (L1). One number that is
shifted by s dominates it. Let ``T_s`` be the trade-off curve of the noise and the noise shifted by s. The best tests
are thresholds, so that of s + t is one of s and then one of t: ``T_(s+t)(x) = T_t(1 - T_s(x))``. Take two coordinates,
shifted by s and t. Between their pair stands the pair of which only the first is shifted. So their curve is at least
``T_t(1 - T_s(x))`` (Dong, Roth, Su, "Gaussian Differential Privacy", JRSS B 2022, lemma A.5), which is ``T_(s+t)(x)``.
A smaller shift is dominated by a larger one likewise. A person with m cases shifts by m s. A release of noisy numbers
by a rule, such as a threshold, is post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from veilog.errors import ParameterError
from veilog.privacy.account.guarantee import Charge
from veilog.privacy.mechanisms.mechanism import (
    DiscreteGaussianSteps,
    GaussianRounds,
    KTruncatedGeometric,
    Laplace,
    Sensitivity,
    Subsampled,
    Thresholded,
)

LEAST_DELTA = Fraction(1, 10**12)
"""Smallest delta; below it the errors of adding up floats would show."""
_KEPT_BACK = 1e-6
LOST_BY_EACH = 2e-15
"""Largest error of floats in a delta for each loss added up, however small.

The Fourier transform of a distribution is right to some 2**-52 of 1, and its n-th power to n of these. The largest
error found in up to a million losses was 5.6e-16.
"""
_FINEST, _COARSEST = 1e-7, 1e-2
_PARTS = 20_000
"""Number of steps of the sum of all epsilons by which losses are distinguished."""
_OF_EACH, _MOST_PARTS = 20, 2_000_000
"""Steps of the smallest epsilon, so that small losses are not rounded too often, and most steps of the sum."""


@dataclass(frozen=True)
class EpsilonDeltaLoss:
    """Loss of any (epsilon, delta)-private answer (Kairouz, Oh, Viswanath, ICML 2015)."""

    epsilon: Fraction
    delta: Fraction = Fraction(0)


@dataclass(frozen=True)
class LaplaceLoss:
    """Loss of discrete Laplace noise, falling by ``exp(-decay)``, shifted by ``by``."""

    decay: Fraction
    by: int

    @property
    def epsilon(self) -> Fraction:
        return self.decay * self.by


@dataclass(frozen=True)
class TruncatedLoss:
    """Loss of k-truncated geometric noise, shifted by 1."""

    epsilon: Fraction
    k: int


@dataclass(frozen=True)
class GaussianLoss:
    """Loss of Gaussian steps, each on a Poisson sample; the noise is in shifts."""

    noise_multiplier: float
    rate: float = 1.0
    steps: int = 1

    @property
    def epsilon(self) -> Fraction:
        """Rough epsilon, which decides in which steps losses are distinguished."""
        return Fraction(3 * self.rate * self.steps**0.5 / self.noise_multiplier)


Loss = EpsilonDeltaLoss | LaplaceLoss | TruncatedLoss | GaussianLoss


def losses_of(charges: Iterable[Charge]) -> tuple[Loss, ...]:
    """Return the losses of charges, of one case or of a person, as each charge states.

    Queries on samples of the log count as one pair, their charges being parts of one sum. So does any charge that has
    no pair of its own here.
    """
    found: list[Loss] = []
    sampled = [Fraction(0), Fraction(0)]
    for charge in charges:
        if isinstance(charge.mechanism, Subsampled):
            sampled = [sampled[0] + charge.epsilon, sampled[1] + charge.delta]
        else:
            found += _charge_losses(charge)
    return (*found, EpsilonDeltaLoss(*sampled)) if any(sampled) else tuple(found)


def _charge_losses(charge: Charge) -> list[Loss]:
    mechanism, sensitivity, cases = charge.mechanism, charge.sensitivity, charge.cases
    if isinstance(sensitivity, Sensitivity):
        match mechanism:
            case Laplace(grid=grid) if sensitivity.norm == "L1":
                by = sensitivity.by[0] * grid * cases
                if by.denominator == 1 and mechanism.decay * by == charge.epsilon:
                    return [LaplaceLoss(mechanism.decay, int(by))]
            case Thresholded(KTruncatedGeometric(epsilon, k)) if sensitivity.norm == "L0" and cases == 1:
                return [TruncatedLoss(epsilon, k)] * int(sensitivity.by[0])
            case GaussianRounds():
                return [GaussianLoss(1 / (mechanism.strength * cases))]
            case DiscreteGaussianSteps(parts) if cases == 1:
                return [GaussianLoss(part.noise_multiplier, part.rate, part.steps) for part in parts]
    return [EpsilonDeltaLoss(charge.epsilon, charge.delta)]


def composed_epsilon(losses: Iterable[Loss], delta: Fraction) -> Fraction:
    """Return an upper bound on the epsilon of all losses together at ``delta``."""
    given = _count_losses(losses)
    if not LEAST_DELTA <= delta < 1:
        raise ParameterError("losses-delta-too-small", parameter="delta", least_delta=float(LEAST_DELTA))
    if not given:
        return Fraction(0)
    lost = _added_up(given) * LOST_BY_EACH
    failure = min(float(delta) * (1 - _KEPT_BACK), float(delta) - lost) - 1e-14
    found = float(_distribution(given).get_epsilon_for_delta(failure)) if failure > 0 else math.inf
    if found == math.inf:
        raise ParameterError("losses-deltas-exceed", parameter="delta")
    return Fraction(found * (1 + _KEPT_BACK))


def composed_delta(losses: Iterable[Loss], epsilon: Fraction) -> Fraction:
    """Return an upper bound on the delta of all losses together at ``epsilon``."""
    given = _count_losses(losses)
    if not given:
        return Fraction(0)
    found = float(_distribution(given).get_delta_for_epsilon(float(epsilon) * (1 - _KEPT_BACK)))
    lost = _added_up(given) * LOST_BY_EACH
    return min(Fraction(max(found * (1 + _KEPT_BACK), found + lost) + 1e-14), Fraction(1))


def _count_losses(losses: Iterable[Loss]) -> tuple[tuple[Loss, int], ...]:
    """Return each loss once, with its count."""
    times: dict[Loss, int] = {}
    for loss in losses:
        times[loss] = times.get(loss, 0) + 1
    return tuple(times.items())


def _added_up(losses: tuple[tuple[Loss, int], ...]) -> int:
    """Return the number of losses that are added up; each step is one."""
    return sum(times * (loss.steps if isinstance(loss, GaussianLoss) else 1) for loss, times in losses)


@lru_cache(maxsize=16)
def _distribution(losses: tuple[tuple[Loss, int], ...]) -> Any:
    """Return dp-accounting's distribution of the sum of these losses, with counts."""
    from dp_accounting.pld import privacy_loss_distribution as pld  # here: it takes a second

    whole = sum(float(loss.epsilon) * times for loss, times in losses)
    least = min((float(loss.epsilon) for loss, _ in losses if loss.epsilon), default=1.0)
    interval = min(max(whole / _PARTS, _FINEST), _COARSEST, max(least / _OF_EACH, whole / _MOST_PARTS))
    together = pld.identity(interval)
    for loss, times in losses:
        one = _loss_distribution(loss, interval, pld)
        steps = times * (loss.steps if isinstance(loss, GaussianLoss) else 1)
        together = together.compose(one if steps == 1 else one.self_compose(steps))
    return together


def _loss_distribution(loss: Loss, interval: float, pld: Any) -> Any:
    settings = {"value_discretization_interval": interval}
    match loss:
        case EpsilonDeltaLoss(epsilon, delta):
            return _response_distribution(epsilon, float(delta), interval, pld)
        case LaplaceLoss(decay, by):
            return pld.from_discrete_laplace_mechanism(float(decay), by, use_connect_dots=True, **settings)
        case GaussianLoss(noise_multiplier, rate):
            return pld.from_gaussian_mechanism(noise_multiplier, sampling_prob=rate, use_connect_dots=True, **settings)
        case TruncatedLoss(epsilon, k):
            return _truncated_distribution(float(epsilon), k, pld, settings)


def _response_distribution(epsilon: Fraction, delta: float, interval: float, pld: Any) -> Any:
    """Return the loss of randomised response.

    Its delta at x is a straight line in exp(x) from -epsilon to epsilon, so the steps next to these two are enough.
    Rounding both up would lose up to a step at each.
    """
    from dp_accounting.pld.pld_pmf import create_pmf_pessimistic_connect_dots

    steps = float(epsilon) / interval
    ends = sorted({math.floor(-steps), math.ceil(-steps), math.floor(steps), math.ceil(steps)})
    given_away = [delta + (1 - delta) * _response_delta(float(epsilon), end * interval) for end in ends]
    return pld.PrivacyLossDistribution(create_pmf_pessimistic_connect_dots(interval, ends, given_away))


def _response_delta(epsilon: float, x: float) -> float:
    """Return the delta of randomised response at x."""
    if x >= epsilon:
        return 0.0
    return -math.expm1(x) if x <= -epsilon else -math.expm1(x - epsilon) / (1 + math.exp(-epsilon))


def _truncated_distribution(epsilon: float, k: int, pld: Any, settings: dict[str, float]) -> Any:
    """Return the loss of noise Z on -k, ..., k against Z + 1.

    Only the first can be -k. Up to 0 the first is likelier by a factor exp(epsilon), from 1 on less likely by as much.
    """
    a = math.exp(-epsilon)
    norm = 1 + a - 2 * a ** (k + 1)
    last = -math.expm1(-epsilon) * a**k / norm
    positive = (a - a ** (k + 1)) / norm
    upper = {"first": last, "to 0": 1 - positive - last, "from 1": positive}
    lower = {"to 0": upper["to 0"] * a, "from 1": positive / a}
    logs = [{key: math.log(value) for key, value in law.items() if value > 0} for law in (lower, upper)]
    return pld.from_two_probability_mass_functions(*logs, **settings)
