"""Histograms that are charged together: charge, noise, and no query beyond them."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused
from scipy import stats

from veilog.errors import ParameterError
from veilog.logs.variants import Sequences, Variants
from veilog.privacy.curator import Curator
from veilog.privacy.domain import Domain
from veilog.privacy.histograms import _log_delta, gaussian_rounds, histogram_rounds, rounds_pay, strength_within
from veilog.privacy.mechanisms import gaussian, noise
from veilog.privacy.mechanisms.mechanism import DiscreteGaussian

ONE = Fraction(1)
MILLIONTH = Fraction(1, 10**6)
FALSE_ALARM = 1e-6
"""False-alarm rate of each statistical test here."""


def lost(epsilon: float, mu: float) -> float:
    """Return the delta of a Gaussian mechanism by integration of its privacy loss.

    The loss is N(mu**2 / 2, mu**2).
    """
    loss = np.linspace(epsilon, max(epsilon, mu**2 / 2) + 40 * mu, 400_001)
    density = stats.norm.pdf(loss, mu**2 / 2, mu) * -np.expm1(epsilon - loss)
    return float(np.trapezoid(density, loss))


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 4.0])
@pytest.mark.parametrize("delta", [0.1, 1e-3, 1e-6, 1e-9])
def test_the_strength_is_the_largest_that_the_budget_allows(epsilon: float, delta: float) -> None:
    mu = strength_within(epsilon, delta)
    assert lost(epsilon, mu) <= delta
    assert lost(epsilon, mu * (1 + 1e-4)) > delta


@pytest.mark.parametrize(("epsilon", "delta"), [(0.01, 0.1), (1.0, 1e-6), (4.0, 1e-9)])
def test_a_millionth_of_epsilon_of_delta_and_of_the_strength_is_kept_back(epsilon: float, delta: float) -> None:
    kept = 1 - 1e-6
    found = _log_delta(epsilon * kept, strength_within(epsilon, delta) / kept)
    assert found == pytest.approx(math.log(delta * kept), abs=1e-8)


@pytest.mark.parametrize("epsilon", [0.5, 10.0, 500.0])
def test_a_strength_that_floats_cannot_tell_from_none_loses_hardly_anything(epsilon: float) -> None:
    """A tiny strength has a delta near none, whatever the rounding of its two parts."""
    for power in range(1, 20):
        mu = 2.0**-power
        assert _log_delta(epsilon, mu) <= stats.norm.logcdf(mu / 2 - epsilon / mu)


@pytest.mark.slow
@pytest.mark.parametrize("weights", [[1], [1] * 12, [1] * 30, [1, 2, 3, 4, 5]])
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(2)])
def test_by_their_exact_loss_the_rounds_cost_no_more_than_is_charged(weights: list[int], epsilon: Fraction) -> None:
    """The discrete laws, composed by dp-accounting without our proof, cost no more."""
    rounds = gaussian_rounds([Fraction(weight) for weight in weights], epsilon, MILLIONTH)
    whole = pld.identity(1e-4)
    for one in rounds.noises:
        loss = pld.from_discrete_gaussian_mechanism(
            math.sqrt(one.variance), value_discretization_interval=1e-4, use_connect_dots=True
        )
        whole = whole.compose(loss)
    found = whole.get_epsilon_for_delta(1e-6)
    assert found <= float(epsilon) * 1.0001
    assert rounds.noises[0].variance < 100 or found > 0.95 * epsilon, "and of large variances hardly less"


def test_thirty_levels_have_half_the_noise_and_few_have_less_without() -> None:
    thirty = gaussian_rounds([ONE] * 30, ONE, MILLIONTH).noises[0]
    assert 23 < math.sqrt(thirty.variance) < 23.4, "against 42.4 of discrete Laplace noise of a thirtieth of epsilon"
    assert rounds_pay([ONE] * 30, ONE, MILLIONTH)
    assert not rounds_pay([ONE] * 8, ONE, MILLIONTH)
    assert not rounds_pay([ONE] * 30, ONE, Fraction(0))
    assert not rounds_pay([ONE] * 1001, ONE, MILLIONTH), "more than can be paid for together"


@given(st.integers(1, 200), st.fractions(Fraction(1, 100), 5), st.integers(2, 30))
@settings(max_examples=50, deadline=None)
def test_they_are_taken_only_where_they_are_narrower(levels: int, epsilon: Fraction, digits: int) -> None:
    delta = Fraction(1, 10**digits)
    if rounds_pay([ONE] * levels, epsilon, delta):
        (narrow, *_) = gaussian_rounds([ONE] * levels, epsilon, delta).noises
        assert narrow.variance < 2 * (levels / float(epsilon)) ** 2


# What is drawn ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("variance", [Fraction(1, 3), Fraction(5), Fraction(1157, 2)])
def test_the_tail_is_that_of_the_law(variance: Fraction) -> None:
    reach = np.arange(-40 * math.isqrt(int(variance) + 1), 40 * math.isqrt(int(variance) + 1) + 1)
    weights = np.exp(-(reach**2) / 2 / float(variance))
    for above in (0, 1, 2, 5, 30):
        for bits in (20, 96, 300):
            low, high = gaussian.tail(variance, above)(bits)
            expected = float(weights[reach > above].sum() / weights.sum()) * 2.0**bits
            assert low <= high <= low + 2
            assert low <= expected * (1 + 1e-12) and expected * (1 - 1e-12) <= high


@pytest.mark.parametrize(("variance", "above"), [(9, 0), (50, 5), (50, 12), (2, 6)])
def test_what_exceeds_has_the_law_beyond(variance: int, above: int) -> None:
    drawn = gaussian.draw_exceeding(Fraction(variance), above, 10_000, noise.seeded(5))
    assert drawn.min() > above
    values = np.arange(above + 1, above + 60)
    expected = np.exp(-(values**2) / 2 / variance)
    expected *= len(drawn) / expected.sum()
    enough = expected > 20
    seen = np.bincount(drawn - above - 1, minlength=len(values))[: len(values)]
    cells = [*seen[enough], len(drawn) - seen[enough].sum()], [*expected[enough], expected[~enough].sum()]
    keep = [i for i, number in enumerate(cells[1]) if number > 5]
    observed, wanted = (np.array([cell[i] for i in keep], float) for cell in cells)
    assert stats.chisquare(observed, wanted * observed.sum() / wanted.sum()).pvalue > FALSE_ALARM


def curator(cases: int = 0, seed: int = 1) -> Curator:
    variants = Variants.from_dict({("a",): cases} if cases else {("a",): 1})
    return Curator(variants, domain=Domain(("a",), 3), randomness=noise.seeded(seed))


def first_bin(sequences: Sequences) -> np.ndarray:
    return np.zeros(len(sequences), dtype=np.int64)


def test_bins_above_a_threshold_are_as_many_as_noise_makes_them_and_the_count_is_there() -> None:
    """Survivors of 2**40 bins are as many as noise makes, and the real count is there."""
    rounds = curator(200).rounds([ONE] * 20, ONE, MILLIONTH)
    law = rounds.noises[0]
    above = 0
    while 2**40 * law.tail(above)(96)[1] / 2**96 > 50:
        above += 1
    expected = 2**40 * law.tail(above)(96)[1] / 2**96
    survivors = 0
    for _ in range(20):
        answer = rounds.histogram(first_bin, 2**40, keep_above=above)
        assert (np.diff(answer.bins) > 0).all() and (answer.counts > above).all()
        if len(answer.bins) and answer.bins[0] == 0:
            assert abs(answer.counts[0] - 200) < 6 * math.sqrt(law.variance)
        survivors += int((answer.bins > 0).sum())
    low, high = stats.poisson.interval(1 - FALSE_ALARM, 20 * expected)
    assert low <= survivors <= high


@pytest.mark.slow
def test_a_count_has_the_noise_of_its_round() -> None:
    counts: list[int] = []
    for seed in range(300):
        rounds = curator(10_000, seed).rounds([ONE, Fraction(4)], ONE, MILLIONTH)
        rounds.histogram(first_bin, 1, keep_above=0)
        counts.append(int(rounds.histogram(first_bin, 1, keep_above=0).counts[0]) - 10_000)
    spread = float(np.var(counts)) * 299 / rounds.noises[1].variance
    assert stats.chi2.ppf(FALSE_ALARM, 299) < spread < stats.chi2.ppf(1 - FALSE_ALARM, 299)


# What is paid -------------------------------------------------------------------------------------------------------


def test_all_are_charged_before_the_first_and_none_is_asked_beyond_them() -> None:
    asked = curator(5)
    rounds = asked.rounds([ONE] * 2, Fraction(3, 4), MILLIONTH)
    (charge,) = asked.charges
    assert (charge.question, charge.epsilon, charge.delta) == ("rounds", Fraction(3, 4), MILLIONTH)
    assert charge.mechanism.noises == rounds.noises
    for _ in range(2):
        rounds.histogram(first_bin, 1, keep_above=0)
    with refused(ParameterError, "rounds-histograms-used-up"):
        rounds.histogram(first_bin, 1, keep_above=0)
    assert asked.charges == (charge,)


@pytest.mark.parametrize(
    ("weights", "epsilon", "delta"),
    [
        ([], ONE, MILLIONTH),
        ([ONE] * 1001, ONE, MILLIONTH),
        ([ONE, Fraction(0)], ONE, MILLIONTH),
        ([ONE], Fraction(1, 10_000), MILLIONTH),
        ([ONE], ONE, Fraction(0)),
        ([ONE] * 1000, Fraction(1, 1000), MILLIONTH),
        ([ONE], ONE, Fraction(1, 10**60)),
    ],
)
def test_what_cannot_be_paid_for_is_refused_and_costs_nothing(
    weights: list[Fraction], epsilon: Fraction, delta: Fraction
) -> None:
    asked = curator()
    with pytest.raises(ParameterError):
        asked.rounds(weights, epsilon, delta)
    assert not asked.contacted


def test_the_least_budget_and_the_most_rounds_are_paid_for() -> None:
    least, smallest = Fraction(1, 1000), Fraction(1, 10**50)
    assert len(gaussian_rounds([ONE] * 1000, ONE, MILLIONTH).noises) == 1000
    for epsilon, delta in ((least, MILLIONTH), (ONE, smallest)):
        gaussian_rounds([ONE], epsilon, delta)
        with refused(ParameterError, "rounds-budget-too-small"):
            gaussian_rounds([ONE], *((epsilon * 9 / 10, delta) if epsilon == least else (epsilon, delta * 9 / 10)))
    with refused(ParameterError, "rounds-budget-too-small"):
        gaussian_rounds([ONE], ONE, ONE)


def test_one_histogram_of_too_wide_noise_is_enough_to_refuse_all() -> None:
    histogram_rounds([ONE, ONE], ONE, MILLIONTH)
    with pytest.raises(ParameterError):
        histogram_rounds([ONE, Fraction(1, 2**70)], ONE, MILLIONTH)


def test_a_threshold_that_much_noise_would_pass_is_refused() -> None:
    rounds = curator().rounds([ONE], ONE, MILLIONTH)
    with refused(ParameterError, "histogram-empty-bins-survive"):
        rounds.histogram(first_bin, 2**60, keep_above=1)
    with refused(ParameterError, "histogram-threshold-negative"):
        rounds.histogram(first_bin, 5, keep_above=-1)


def test_weights_share_the_squared_strength_out() -> None:
    thin, thick = gaussian_rounds([ONE, Fraction(3)], ONE, MILLIONTH).noises
    assert isinstance(thin, DiscreteGaussian)
    assert (thin.exact_variance - 4) == 3 * (thick.exact_variance - 4)
