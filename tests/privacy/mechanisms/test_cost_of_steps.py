"""Noised steps have the right epsilon, and an epsilon and a delta the right noise."""

import math
from fractions import Fraction

import dp_accounting
import numpy as np
import numpy.typing as npt
import pytest
from dp_accounting import pld
from refusals import refused
from scipy import stats

from veilog.errors import ParameterError
from veilog.privacy.mechanisms import accountant
from veilog.privacy.mechanisms.accountant import (
    calibrate,
    composed_epsilon,
    integer_variance,
    smallest_epsilon,
)
from veilog.privacy.mechanisms.clipped_sums import (
    GRID,
)
from veilog.privacy.mechanisms.mechanism import NoisedSteps

PARTS = (NoisedSteps("autoencoder", 64 / 7554, 6, 20_000), NoisedSteps("critic", 128 / 7554, 4, 22_500))


@pytest.mark.slow
def test_the_total_is_that_of_dp_accounting_for_the_same_events() -> None:
    accountant = pld.PLDAccountant(dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE)
    for rate, multiplier, steps in ((64 / 7554, 6, 20_000), (128 / 7554, 4, 22_500)):
        sampled = dp_accounting.PoissonSampledDpEvent(rate, dp_accounting.GaussianDpEvent(multiplier))
        accountant.compose(sampled, steps)
    assert 0 < composed_epsilon(PARTS, 1e-6, about=1) / accountant.get_epsilon(1e-6) - 1 < 1e-5


def test_steps_on_all_cases_cost_what_the_gaussian_mechanism_does() -> None:
    """100 steps with noise 40 equal one with noise 4 (exact curve: Balle, Wang, 2018)."""
    epsilon = composed_epsilon([NoisedSteps("all", 1.0, 40.0, 100)], 1e-6)
    shift = 1 / 4.0
    delta = stats.norm.cdf(shift / 2 - epsilon / shift) - math.exp(epsilon) * stats.norm.cdf(
        -shift / 2 - epsilon / shift
    )
    assert delta == pytest.approx(1e-6, rel=5e-3) and delta <= 1e-6


def discrete(variance: float, reach: int) -> npt.NDArray[np.float64]:
    weights = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * variance))
    return np.asarray(weights / weights.sum())


@pytest.mark.slow
@pytest.mark.parametrize("rate", [1.0, 0.3])
@pytest.mark.parametrize("multiplier", [0.5, 2.0])
def test_discrete_noise_costs_no_more_than_the_accountant_says(multiplier: float, rate: float) -> None:
    """Discrete noise on a coarse grid costs no more than stated, in both directions."""
    bits = 3
    variance = float(integer_variance(multiplier, bits))
    reach = 40 + int(14 * math.sqrt(variance))
    at = discrete(variance, reach)
    without = at
    with_one = (1 - rate) * at + rate * np.roll(at, 2**bits)
    for epsilon in (0.01, 0.5, 3.0):
        delta = max(
            float(np.maximum(one - math.exp(epsilon) * other, 0).sum())
            for one, other in ((with_one, without), (without, with_one))
        )
        if delta > 1e-9:
            assert composed_epsilon([NoisedSteps("all", rate, multiplier, 1)], delta) >= epsilon


def power(law: npt.NDArray[np.float64], number: int) -> tuple[int, npt.NDArray[np.float64]]:
    """Return ``number`` losses of a law together, and the place of the first.

    Only sums of products are used, which are right to that many digits each. The ends left out are negligible.
    """
    if number == 1:
        return 0, law
    first, half = power(law, number // 2)
    first, half = 2 * first, np.convolve(half, half)
    half = np.convolve(half, law) if number % 2 else half
    low = int(np.searchsorted(np.cumsum(half), 1e-28))
    return first + low, half[low : len(half) - int(np.searchsorted(np.cumsum(half[::-1]), 1e-28))]


@pytest.mark.slow
def test_a_small_delta_of_many_steps_is_not_lost_in_floats() -> None:
    """A small delta of many steps is not lost in floats.

    The epsilon that was found for a delta of 1e-13 of these steps had one of 1.28e-13 by the same losses.
    """
    part, steps, interval = NoisedSteps("critic", 0.1, 5.0, 3000), 3000, 1e-2
    single = pld.privacy_loss_distribution.from_gaussian_mechanism(
        5.0, sampling_prob=0.1, value_discretization_interval=interval
    )
    for law in (single._pmf_remove.to_dense_pmf(), single._pmf_add.to_dense_pmf()):
        first, together = power(law._probs, steps)
        losses = (law._lower_loss * steps + first + np.arange(len(together))) * interval
        for delta in (1e-13, 3e-11, 1e-9):
            epsilon = composed_epsilon([part], delta, about=interval / 1e-4)
            beyond = losses > epsilon
            given_away = -math.expm1(steps * math.log1p(-law._infinity_mass))
            given_away += float((together[beyond] * -np.expm1(epsilon - losses[beyond])).sum())
            assert epsilon == math.inf or given_away <= delta


def test_so_small_a_delta_that_floats_cannot_tell_is_refused() -> None:
    assert composed_epsilon(PARTS, 1e-20) == math.inf
    with refused(ParameterError, "training-not-affordable"):
        smallest_epsilon(PARTS, Fraction(1, 10**20), 10.0)
    with refused(ParameterError, "training-not-affordable"):
        calibrate(PARTS, Fraction(1), Fraction(1, 10**20))


def test_the_noise_has_the_variance_that_the_proof_asks_for() -> None:
    assert integer_variance(0.75, GRID) == (Fraction(3, 4) * 2**GRID) ** 2 + 16


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", ["0.0001", "0.01", "1", "20", "500"])
def test_calibrated_noise_costs_what_was_asked_for_and_never_more(epsilon: str) -> None:
    asked = Fraction(epsilon)
    parts = (NoisedSteps("all", 1.0, 1.0, 5), NoisedSteps("few", 0.2, 3.0, 40))
    found = calibrate(parts, asked, Fraction(1, 10**6))
    cost = composed_epsilon(found, 1e-6, about=float(asked))
    assert float(asked) * 0.995 <= cost <= float(asked)
    assert found[1].noise_multiplier / found[0].noise_multiplier == pytest.approx(3)


@pytest.mark.slow
@pytest.mark.parametrize("multiplier", [1.0, 100.0, 1e5])
def test_the_bound_is_tight_for_little_and_for_much_noise(multiplier: float) -> None:
    found = composed_epsilon([NoisedSteps("all", 1.0, multiplier, 1)], 1e-6)

    def delta(epsilon: float) -> float:
        shift = 1 / multiplier
        upper = stats.norm.cdf(shift / 2 - epsilon / shift)
        return float(upper - math.exp(epsilon) * stats.norm.cdf(-shift / 2 - epsilon / shift))

    assert delta(found) <= 1e-6 * (1 + 1e-9)
    assert delta(found * 0.99) > 1e-6


@pytest.mark.slow
def test_what_no_noise_can_pay_for_is_refused() -> None:
    with refused(ParameterError, "training-not-affordable"):
        calibrate([NoisedSteps("all", 1.0, 1.0, 1000)], Fraction(1, 10**8), Fraction(1, 10**12))


def test_the_smallest_epsilon_is_what_the_largest_noise_costs() -> None:
    parts = [NoisedSteps("all", 1.0, 3.0, 4)]
    assert smallest_epsilon(parts, Fraction(1, 10**6), 50.0) == pytest.approx(
        composed_epsilon([NoisedSteps("all", 1.0, 50.0, 4)], 1e-6)
    )


@pytest.mark.parametrize(
    ("rate", "multiplier", "steps"), [(0.0, 1.0, 1), (1.5, 1.0, 1), (0.5, 0.0, 1), (0.5, 1.0, 0), (0.5, math.nan, 1)]
)
def test_steps_out_of_range_are_refused(rate: float, multiplier: float, steps: int) -> None:
    with pytest.raises(ParameterError):
        NoisedSteps("bad", rate, multiplier, steps)


def test_a_plan_is_costed_for_less_than_its_delta_and_rounded_up(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []

    def bound(parts: object, delta: float, interval: float) -> float:
        asked.append(delta)
        return found

    monkeypatch.setattr(accountant, "_bound", bound)
    for found in (0.0, 1.0):
        assert composed_epsilon((NoisedSteps("x", 1.0, 5.0, 1),), Fraction(1, 10), about=1.0) > found
    assert all(0.0999 < delta < 0.1 for delta in asked)
    assert composed_epsilon((NoisedSteps("x", 1.0, 5.0, 1),), Fraction(1, 10**50), about=1.0) > 0
    for delta in (Fraction(999, 10**53), Fraction(1)):
        with refused(ParameterError, "training-delta-out-of-range"):
            composed_epsilon((NoisedSteps("x", 1.0, 5.0, 1),), delta, about=1.0)
