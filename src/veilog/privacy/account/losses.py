"""What charges cost together where a delta is given: their privacy losses are composed, not their epsilons added up.

Each mechanism has a pair of distributions that is at least as easy to tell apart as its answers for any two
neighbouring logs (a dominating pair: Zhu, Dong, Wang, "Optimal accounting of differential privacy via characteristic
function", AISTATS 2022). The logarithm of their ratio is its privacy loss; losses of independent answers add up, so
their distributions are convolved (Koskela, Jälkö, Honkela, AISTATS 2020). The library dp-accounting does that,
discretised such that the epsilon found is an upper bound (Doroshenko et al., "Connect the dots", PoPETs 2022).

*When it holds.* The pairs must be fixed beforehand: what is asked may depend on earlier answers, *how* it is answered
may not. Whoever chooses the next epsilon by the last answer has no such sum; for that a rule must decide that is proven
for adaptive choices. A release whose own questions were split adaptively counts as the
:class:`EpsilonDeltaLoss` that it claims.

*Dominating pairs.* Noise of a log-concave law on the integers (discrete Laplace, Gaussian, k-truncated geometric),
added to counts that a case changes by whole numbers that come to s in all (L1), is dominated by one number that is
shifted by s. Let ``T_s`` be the trade-off curve of the noise and the noise shifted by s. The best tests are thresholds,
so that of s + t is one of s and then one of t: ``T_(s+t)(x) = T_t(1 - T_s(x))``. Two coordinates, shifted by s and t,
have the pair of which only the first is shifted between them, so their curve is at least ``T_t(1 - T_s(x))`` (Dong,
Roth, Su, "Gaussian Differential Privacy", JRSS B 2022, lemma A.5), which is ``T_(s+t)(x)``. A smaller shift is
dominated by a larger one likewise. A person with m cases shifts by m s. What is released of noisy numbers by a rule,
such as a threshold, is post-processing.
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
"""Below it the errors of floats that are added up would show."""
_KEPT_BACK = 1e-6
LOST_BY_EACH = 2e-15
"""What floats may lose of a delta for each loss that is added up, however small it is: the Fourier transform of a
distribution is right to some 2**-52 of 1, and its n-th power to n of these (5.6e-16 is the most that was found of up to
a million losses)."""
_FINEST, _COARSEST = 1e-7, 1e-2
_PARTS = 20_000
"""Losses are told apart in such a part of the sum of all epsilons."""
_OF_EACH, _MOST_PARTS = 20, 2_000_000
"""And, unless that is too fine, in such a part of the smallest: many small ones would be rounded too often."""


@dataclass(frozen=True)
class EpsilonDeltaLoss:
    """Whatever is (epsilon, delta)-differentially private (Kairouz, Oh, Viswanath, ICML 2015)."""

    epsilon: Fraction
    delta: Fraction = Fraction(0)


@dataclass(frozen=True)
class LaplaceLoss:
    """Discrete Laplace noise that falls by ``exp(-decay)`` a unit, on what is shifted by so many units."""

    decay: Fraction
    by: int

    @property
    def epsilon(self) -> Fraction:
        return self.decay * self.by


@dataclass(frozen=True)
class TruncatedLoss:
    """k-truncated geometric noise on what is shifted by 1."""

    epsilon: Fraction
    k: int


@dataclass(frozen=True)
class GaussianLoss:
    """Steps of Gaussian noise of a deviation of so many shifts, each on a Poisson sample of this rate."""

    noise_multiplier: float
    rate: float = 1.0
    steps: int = 1

    @property
    def epsilon(self) -> Fraction:
        """About what it costs, by which losses are told apart."""
        return Fraction(3 * self.rate * self.steps**0.5 / self.noise_multiplier)


Loss = EpsilonDeltaLoss | LaplaceLoss | TruncatedLoss | GaussianLoss


def losses_of(charges: Iterable[Charge]) -> tuple[Loss, ...]:
    """Return the losses of charges, of one case or of a person as they say.

    What was asked of samples of the log counts as one pair, its charges being parts of one sum; so does whatever has no
    pair of its own here.
    """
    found: list[Loss] = []
    sampled = [Fraction(0), Fraction(0)]
    for charge in charges:
        if isinstance(charge.mechanism, Subsampled):
            sampled = [sampled[0] + charge.epsilon, sampled[1] + charge.delta]
        else:
            found += _of_charge(charge)
    return (*found, EpsilonDeltaLoss(*sampled)) if any(sampled) else tuple(found)


def _of_charge(charge: Charge) -> list[Loss]:
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
    """Return an epsilon that all losses cost together at ``delta``: an upper bound."""
    given = _counted(losses)
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
    """Return a delta that all losses cost together at ``epsilon``: an upper bound."""
    given = _counted(losses)
    if not given:
        return Fraction(0)
    found = float(_distribution(given).get_delta_for_epsilon(float(epsilon) * (1 - _KEPT_BACK)))
    lost = _added_up(given) * LOST_BY_EACH
    return min(Fraction(max(found * (1 + _KEPT_BACK), found + lost) + 1e-14), Fraction(1))


def _counted(losses: Iterable[Loss]) -> tuple[tuple[Loss, int], ...]:
    """Each loss once, with how often it is there."""
    times: dict[Loss, int] = {}
    for loss in losses:
        times[loss] = times.get(loss, 0) + 1
    return tuple(times.items())


def _added_up(losses: tuple[tuple[Loss, int], ...]) -> int:
    """How many losses are added up, each step being one."""
    return sum(times * (loss.steps if isinstance(loss, GaussianLoss) else 1) for loss, times in losses)


@lru_cache(maxsize=16)
def _distribution(losses: tuple[tuple[Loss, int], ...]) -> Any:
    """The distribution of the sum of these losses, each so often, in dp-accounting's words."""
    from dp_accounting.pld import privacy_loss_distribution as pld  # here: it takes a second

    whole = sum(float(loss.epsilon) * times for loss, times in losses)
    least = min((float(loss.epsilon) for loss, _ in losses if loss.epsilon), default=1.0)
    interval = min(max(whole / _PARTS, _FINEST), _COARSEST, max(least / _OF_EACH, whole / _MOST_PARTS))
    together = pld.identity(interval)
    for loss, times in losses:
        one = _of_loss(loss, interval, pld)
        steps = times * (loss.steps if isinstance(loss, GaussianLoss) else 1)
        together = together.compose(one if steps == 1 else one.self_compose(steps))
    return together


def _of_loss(loss: Loss, interval: float, pld: Any) -> Any:
    settings = {"value_discretization_interval": interval}
    match loss:
        case EpsilonDeltaLoss(epsilon, delta):
            return _of_pair(epsilon, float(delta), interval, pld)
        case LaplaceLoss(decay, by):
            return pld.from_discrete_laplace_mechanism(float(decay), by, use_connect_dots=True, **settings)
        case GaussianLoss(noise_multiplier, rate):
            return pld.from_gaussian_mechanism(noise_multiplier, sampling_prob=rate, use_connect_dots=True, **settings)
        case TruncatedLoss(epsilon, k):
            return _of_truncated(float(epsilon), k, pld, settings)


def _of_pair(epsilon: Fraction, delta: float, interval: float, pld: Any) -> Any:
    """Randomised response: what it may give away at x is a straight line in exp(x) from -epsilon to epsilon, so the
    steps beside these two are enough. Rounding both up would lose up to a step at each."""
    from dp_accounting.pld.pld_pmf import create_pmf_pessimistic_connect_dots

    steps = float(epsilon) / interval
    ends = sorted({math.floor(-steps), math.ceil(-steps), math.floor(steps), math.ceil(steps)})
    given_away = [delta + (1 - delta) * _of_response(float(epsilon), end * interval) for end in ends]
    return pld.PrivacyLossDistribution(create_pmf_pessimistic_connect_dots(interval, ends, given_away))


def _of_response(epsilon: float, x: float) -> float:
    """The delta of randomised response at x."""
    if x >= epsilon:
        return 0.0
    return -math.expm1(x) if x <= -epsilon else -math.expm1(x - epsilon) / (1 + math.exp(-epsilon))


def _of_truncated(epsilon: float, k: int, pld: Any, settings: dict[str, float]) -> Any:
    """Noise Z on -k, ..., k, and Z + 1: -k only the first can be; to 0 it is likelier by a factor exp(epsilon), from 1
    on less likely by as much."""
    a = math.exp(-epsilon)
    norm = 1 + a - 2 * a ** (k + 1)
    last = -math.expm1(-epsilon) * a**k / norm
    positive = (a - a ** (k + 1)) / norm
    upper = {"first": last, "to 0": 1 - positive - last, "from 1": positive}
    lower = {"to 0": upper["to 0"] * a, "from 1": positive / a}
    logs = [{key: math.log(value) for key, value in law.items() if value > 0} for law in (lower, upper)]
    return pld.from_two_probability_mass_functions(*logs, **settings)
