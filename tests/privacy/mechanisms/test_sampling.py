"""Poisson samples are exact, and their queries cost what amplification allows."""

from collections.abc import Callable
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from scipy import stats

from veilog.errors import ParameterError
from veilog.logs.variants import Variants
from veilog.messages import Message
from veilog.privacy.account.account import ChargeAccount
from veilog.privacy.account.guarantee import round_up
from veilog.privacy.curator import Curator
from veilog.privacy.domain import ALL_FROM_LOG, Domain
from veilog.privacy.mechanisms import noise
from veilog.privacy.mechanisms.mechanism import Laplace, Sensitivity, Subsampled
from veilog.privacy.mechanisms.sampling import amplify, poisson_sample, reverse_amplification
from veilog.privacy.unit import ONE_CASE, Unit

LOG = Variants.from_dict({("a", "b"): 30, ("a",): 12, ("c", "a", "a"): 1})
epsilons = st.fractions(min_value=Fraction(1, 1000), max_value=20, max_denominator=1000)
rates = st.fractions(min_value=Fraction(1, 1000), max_value=1, max_denominator=1000)


def true_value(epsilon: Fraction, rate: Fraction) -> mpmath.mpf:
    with mpmath.workprec(300):
        e = mpmath.mpf(epsilon.numerator) / epsilon.denominator
        return mpmath.log(1 + mpmath.mpf(rate.numerator) / rate.denominator * mpmath.expm1(e))


@pytest.mark.slow
@given(epsilon=epsilons, rate=rates)
def test_amplified_is_the_theorem_rounded_up(epsilon: Fraction, rate: Fraction) -> None:
    exact = true_value(epsilon, rate)
    result = mpmath.mpf(amplify(epsilon, rate).numerator) / amplify(epsilon, rate).denominator
    assert exact - mpmath.mpf(10) ** -40 <= result <= exact + mpmath.mpf("1.01e-12")
    assert amplify(epsilon, rate) <= epsilon


@pytest.mark.slow
@given(epsilon=epsilons, rate=rates)
def test_unamplified_spends_the_budget_and_no_more(epsilon: Fraction, rate: Fraction) -> None:
    within = reverse_amplification(epsilon, rate)
    assert within >= epsilon
    assert epsilon - Fraction(2, 10**12) <= amplify(within, rate) <= epsilon


def hockey_stick(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    """Return the least delta for which p is (epsilon, delta)-indistinguishable from q."""
    return float(np.maximum(p - np.exp(epsilon) * q, 0).sum())


def laplace(epsilon: float) -> Callable[[int], np.ndarray]:
    a = np.exp(-epsilon)
    return lambda count: (1 - a) / (1 + a) * a ** np.abs(np.arange(-400, 431) - count)


def selection(epsilon: float, delta: float) -> Callable[[int], np.ndarray]:
    """Return the law of a released count with k-TSGD noise; place 0 is not released."""
    k = noise.tsgd_bound(Fraction(str(epsilon)), Fraction(str(delta)))
    weights = np.exp(-epsilon * np.abs(np.arange(-k, k + 1)))
    chances = weights / weights.sum()

    def answer(count: int) -> np.ndarray:
        out = np.zeros(k + 64)
        if count == 0:
            out[0] = 1
            return out
        for place, chance in enumerate(chances):
            noisy = count + place - k
            out[noisy if noisy > k else 0] += chance
        return out

    return answer


def on_a_sample(answer: Callable[[int], np.ndarray], cases: int, rate: float) -> np.ndarray:
    """Return the law of the answer when each case is sampled by itself, as a mixture."""
    chances = stats.binom.pmf(np.arange(cases + 1), cases, rate)
    return sum(chance * answer(count) for count, chance in enumerate(chances))  # type: ignore[return-value]


@pytest.mark.parametrize("rate", ["0.05", "0.5", "0.9"])
@pytest.mark.parametrize("epsilon", ["0.1", "1", "3"])
@pytest.mark.parametrize("cases", [0, 1, 5, 25])
def test_enumerated_a_noisy_count_of_a_sample_costs_at_most_the_amplified(cases: int, epsilon: str, rate: str) -> None:
    answer = laplace(float(epsilon))
    one, more = on_a_sample(answer, cases, float(rate)), on_a_sample(answer, cases + 1, float(rate))
    bound = float(amplify(Fraction(epsilon), Fraction(rate)))
    assert hockey_stick(one, more, bound) <= 1e-9
    assert hockey_stick(more, one, bound) <= 1e-9
    if cases == 0:  # attained: with one case there is nothing else to hide it
        assert hockey_stick(more, one, bound * 0.98) > 1e-9


@pytest.mark.parametrize("rate", ["0.1", "0.6"])
@pytest.mark.parametrize(("epsilon", "delta"), [("1", "0.01"), ("0.5", "0.1"), ("2", "0.001")])
@pytest.mark.parametrize("cases", [0, 1, 4, 20])
def test_enumerated_selection_from_a_sample_costs_the_amplified_pair(
    cases: int, epsilon: str, delta: str, rate: str
) -> None:
    answer = selection(float(epsilon), float(delta))
    one, more = on_a_sample(answer, cases, float(rate)), on_a_sample(answer, cases + 1, float(rate))
    bound = float(amplify(Fraction(epsilon), Fraction(rate)))
    assert hockey_stick(one, more, bound) <= float(rate) * float(delta) + 1e-9
    assert hockey_stick(more, one, bound) <= float(rate) * float(delta) + 1e-9


@pytest.mark.slow
def test_a_sample_holds_each_case_by_itself_with_the_rate() -> None:
    source = noise.seeded(4)
    drawn = [poisson_sample(LOG, Fraction(3, 10), source).to_dict() for _ in range(3000)]
    for variant, count in LOG.to_dict().items():
        seen = np.bincount([sample.get(variant, 0) for sample in drawn], minlength=count + 1)
        expected = 3000 * stats.binom.pmf(np.arange(count + 1), count, 0.3)
        often = expected > 5
        seen, expected = np.append(seen[often], seen[~often].sum()), np.append(expected[often], expected[~often].sum())
        assert stats.chisquare(seen[expected > 0], expected[expected > 0]).pvalue > 1e-3
    pairs = np.corrcoef([[s.get(("a", "b"), 0), s.get(("a",), 0)] for s in drawn], rowvar=False)
    assert abs(pairs[0, 1]) < 0.06


def test_questions_on_one_sample_are_amplified_together() -> None:
    """Queries on one sample are amplified together; apart they use too little."""
    curator = Curator(LOG)
    sample = curator.subsample(Fraction(1, 4))
    for _ in range(3):
        sample.count(1)
    together = amplify(Fraction(3), Fraction(1, 4))
    assert sum(charge.epsilon for charge in curator.charges) == together > 3 * amplify(Fraction(1), Fraction(1, 4))
    assert [charge.epsilon for charge in sample.charges] == [1, 1, 1]
    assert curator.charges[0].mechanism == Subsampled(Laplace(Fraction(1)), Fraction(1, 4), Fraction(1))
    other = curator.subsample(Fraction(1, 4))
    other.partitions(1, Fraction(1, 100))
    curator.count(Fraction(1, 2))
    assert sum(c.epsilon for c in curator.charges) == together + amplify(Fraction(1), Fraction(1, 4)) + Fraction(1, 2)
    assert curator.guarantee().delta == round_up(other.charges[0].delta / 4) <= 1 / 400 and curator.guarantee().proven


def test_a_sample_of_a_sample_is_amplified_twice() -> None:
    curator = Curator(LOG)
    curator.subsample(Fraction(1, 2)).subsample(Fraction(1, 2)).count(1)
    twice = amplify(amplify(Fraction(1), Fraction(1, 2)), Fraction(1, 2))
    assert curator.charges[0].epsilon == twice
    assert abs(twice - amplify(Fraction(1), Fraction(1, 4))) < Fraction(3, 10**12)


def test_group_privacy_comes_after_amplification() -> None:
    curator = Curator(LOG, unit=Unit("person", 3))
    curator.subsample(Fraction(1, 2)).count(1)
    assert curator.guarantee().epsilon == pytest.approx(3 * float(amplify(Fraction(1), Fraction(1, 2))))


def test_public_facts_conditions_and_peeks_of_a_sample_are_those_of_the_log() -> None:
    curator = Curator(LOG, domain=ALL_FROM_LOG)
    sample = curator.subsample(Fraction(1, 1000))
    assert sample.activities == ("a", "b", "c") and sample.max_length == 3
    assert len(curator.guarantee().conditions) == 2
    assert sample.subsample(Fraction(1)).activities == ("a", "b", "c")
    sample.peek("to see")
    assert curator.guarantee().reasons == (Message("to see"),)
    declared = Curator(LOG, domain=Domain(("a", "z"), 2)).subsample(Fraction(1, 2))
    assert declared.activities == ("a", "z") and declared.max_length == 2


@pytest.mark.parametrize("rate", [Fraction(0), Fraction(-1), Fraction(3, 2)])
def test_a_rate_must_be_a_probability(rate: Fraction) -> None:
    with refused(ParameterError, "question-sampling-rate-invalid"):
        Curator(LOG).subsample(rate)


def test_all_of_the_log_is_the_log() -> None:
    curator = Curator(LOG)
    sample = curator.subsample(Fraction(1))
    assert sample.peek("here") == LOG
    sample.count(1)
    assert curator.charges[0].epsilon == 1


def test_no_way_of_adding_charges_to_a_sample_goes_past_the_account() -> None:
    whole = ChargeAccount(ONE_CASE, seeded=False)
    account = whole.of_sample(Fraction(1, 2))
    account.charge("count", "", Laplace(Fraction(1)), Sensitivity.of(1), Fraction(1))
    account.carry(account.charges)
    account.of_sample(Fraction(1)).charge("count", "", Laplace(Fraction(1)), Sensitivity.of(1), Fraction(1))
    assert len(account.charges) == len(whole.charges) == 3
    assert sum(c.epsilon for c in whole.charges) == amplify(Fraction(3), Fraction(1, 2))


def test_a_sample_costs_no_more_than_the_whole_whatever_is_rounded() -> None:
    """Amplified epsilons, rounded up to 12 decimals, never exceed the epsilon itself."""
    epsilon = Fraction(1, 3 * 10**9)
    assert amplify(epsilon, Fraction(999_999, 1_000_000)) == epsilon
    assert amplify(epsilon, Fraction(1)) == reverse_amplification(epsilon, Fraction(1)) == epsilon


def test_above_an_epsilon_of_thirty_the_amplified_one_is_its_sum_with_the_logarithm_of_the_rate() -> None:
    """Above an epsilon of 30, where floats fail, intervals still prove the bound."""
    epsilon, rate = Fraction(40), Fraction(1, 2)
    assert float(amplify(epsilon, rate)) == pytest.approx(float(true_value(epsilon, rate)), rel=1e-12)
    assert epsilon - Fraction(2, 10**12) <= amplify(reverse_amplification(epsilon, rate), rate) <= epsilon
