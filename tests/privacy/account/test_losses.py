"""Composed privacy losses are never below enumerated truths, and hardly above."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import dp_accounting
import numpy as np
import pytest
from dp_accounting import pld
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaln, logsumexp

from veilog.errors import ParameterError
from veilog.logs.variants import Variants
from veilog.privacy.account import losses as of_losses
from veilog.privacy.account.guarantee import Charge
from veilog.privacy.account.losses import (
    LEAST_DELTA,
    LOST_BY_EACH,
    EpsilonDeltaLoss,
    GaussianLoss,
    LaplaceLoss,
    Loss,
    TruncatedLoss,
    composed_delta,
    composed_epsilon,
    losses_of,
)
from veilog.privacy.curator import Curator
from veilog.privacy.domain import Domain
from veilog.privacy.mechanisms import noise
from veilog.privacy.mechanisms.mechanism import DiscreteGaussianSteps, Laplace, NoisedSteps, Sensitivity
from veilog.privacy.unit import Unit

MILLIONTH = Fraction(1, 10**6)
Law = dict[int, float]


def geometric(decay: float, reach: int) -> Law:
    law = {x: math.exp(-decay * abs(x)) for x in range(-reach, reach + 1)}
    return {x: value / sum(law.values()) for x, value in law.items()}


def law_of(loss: Loss) -> tuple[Law, Law]:
    """Return the law of the noise, and that of the shifted noise."""
    if isinstance(loss, EpsilonDeltaLoss):
        eps, delta = float(loss.epsilon), float(loss.delta)
        likely = (1 - delta) / (1 + math.exp(-eps))
        one = {0: delta, 1: likely, 2: (1 - delta) - likely}
        return one, {1: one[2], 2: one[1], 3: delta}
    if isinstance(loss, TruncatedLoss):
        law, by = geometric(float(loss.epsilon), loss.k), 1
    else:
        assert isinstance(loss, LaplaceLoss)
        law, by = geometric(float(loss.decay), int(40 / loss.decay)), loss.by
    return law, {x + by: value for x, value in law.items()}


def enumerated(losses: list[Loss], epsilon: float) -> float:
    """Return the delta of all losses at epsilon, by a sum over all their values."""
    together: dict[float, float] = {0.0: 1.0}
    for loss in losses:
        upper, lower = law_of(loss)
        single: dict[float, float] = {}
        for x, value in upper.items():
            told = round(math.log(value / lower[x]), 12) if lower.get(x) else math.inf
            single[told] = single.get(told, 0.0) + value
        sums: dict[float, float] = {}
        for (a, p), (b, q) in itertools.product(together.items(), single.items()):
            sums[round(a + b, 12)] = sums.get(round(a + b, 12), 0.0) + p * q
        together = sums
    return sum(p * -math.expm1(epsilon - loss) for loss, p in together.items() if loss > epsilon)


a_loss = st.one_of(
    st.builds(
        EpsilonDeltaLoss,
        st.fractions("1/20", 1, max_denominator=20),
        st.sampled_from([Fraction(0), Fraction(1, 10**4)]),
    ),
    st.builds(LaplaceLoss, st.fractions("1/5", 1, max_denominator=10), st.integers(1, 4)),
    st.builds(TruncatedLoss, st.fractions("1/5", 1, max_denominator=10), st.integers(3, 30)),
)


@pytest.mark.slow
@given(st.lists(a_loss, min_size=1, max_size=4), st.floats(0, 3))
@settings(max_examples=60, deadline=None)
def test_the_delta_is_never_below_the_truth_and_hardly_above(losses: list[Loss], epsilon: float) -> None:
    truth = enumerated(losses, epsilon)
    found = float(composed_delta(losses, Fraction(epsilon)))
    assert truth <= found + 1e-12
    assert found <= truth * 1.01 + 2e-3, "losses are told apart in 20,000th parts of all of them"


@given(st.lists(a_loss, min_size=1, max_size=4), st.sampled_from([0.3, 0.05, 1e-2]))
@settings(max_examples=40, deadline=None)
def test_the_epsilon_is_never_below_the_truth(losses: list[Loss], delta: float) -> None:
    try:
        found = composed_epsilon(losses, Fraction(delta))
    except ParameterError:
        assert enumerated(losses, 100.0) > delta * 0.99
    else:
        assert enumerated(losses, float(found)) <= delta * (1 + 1e-9)
        assert float(found) <= float(sum(loss.epsilon for loss in losses)) * 1.001 + 1e-5, "nor above the sum"


def alike(epsilon: float, number: int, at: float) -> float:
    """Return the delta of equal randomised responses at an epsilon, in logarithms.

    The sum is over the number of them that gave the likelier answer.
    """
    likelier = np.arange(number + 1)
    odds = gammaln(number + 1) - gammaln(likelier + 1) - gammaln(number - likelier + 1)
    odds -= (number - likelier) * epsilon + number * math.log1p(math.exp(-epsilon))
    losses = (2 * likelier - number) * epsilon
    beyond = losses > at
    return float(np.exp(logsumexp(odds[beyond] + np.log(-np.expm1(at - losses[beyond])))))


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "number"), [("0.01", 20_000), ("0.001", 20_000), ("1", 1000), ("0.1", 10_000)])
def test_a_small_delta_of_many_losses_is_not_lost_in_floats(epsilon: str, number: int) -> None:
    """A small delta of many losses is not lost in floats.

    A transform to the n-th power is wrong by n units in its last place, however small the delta. 20,000 losses of 0.01
    had a delta of 1.5e-12 at the epsilon that was found for 1e-12.
    """
    given: list[Loss] = [EpsilonDeltaLoss(Fraction(epsilon))] * number
    for delta in ("1e-12", "1e-11", "1e-9", "1e-7"):
        try:
            found = composed_epsilon(given, Fraction(delta))
        except ParameterError:  # beyond the precision of floats
            assert float(delta) < 1e-9
        else:
            assert alike(float(epsilon), number, float(found)) <= float(delta)
    spread = float(epsilon) * number**0.5
    for at in (6.5, 7.0, 7.5, 8.0):
        at = number * float(epsilon) * math.tanh(float(epsilon) / 2) + at * spread
        assert alike(float(epsilon), number, at) <= composed_delta(given, Fraction(at))


def test_a_hundred_releases_at_a_tenth() -> None:
    """A hundred losses of 0.1 compose to 4.774 by epsilon, and 4.69 as Laplace noise."""
    assert float(composed_epsilon([EpsilonDeltaLoss(Fraction(1, 10))] * 100, MILLIONTH)) == pytest.approx(
        4.774, abs=0.005
    )
    fine = [LaplaceLoss(Fraction(1, 10_000), 1000)] * 100
    assert float(composed_epsilon(fine, MILLIONTH)) == pytest.approx(4.69, abs=0.005)


def test_levels_of_a_tree() -> None:
    for levels, expected in ((30, 0.720), (60, 0.509)):
        found = composed_epsilon([LaplaceLoss(Fraction(1, levels), 1)] * levels, MILLIONTH)
        assert float(found) == pytest.approx(expected, abs=0.002)


@pytest.mark.slow
def test_it_is_what_dp_accounting_says_of_the_same_charges() -> None:
    charges = [
        Charge("sums", "", Laplace(Fraction(10), grid=1000), Sensitivity.of(1, "L1", "clipped"), Fraction(1, 10))
        for _ in range(20)
    ]
    accountant = pld.PLDAccountant(
        dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE, value_discretization_interval=1e-4
    )
    accountant.compose(dp_accounting.LaplaceDpEvent(10.0), 20)
    accountant.compose(dp_accounting.PoissonSampledDpEvent(0.01, dp_accounting.GaussianDpEvent(1.5)), 300)
    losses = [*losses_of(charges), GaussianLoss(1.5, 0.01, 300)]
    assert float(composed_epsilon(losses, MILLIONTH)) == pytest.approx(accountant.get_epsilon(1e-6), rel=2e-3)


def test_what_is_asked_of_a_sample_counts_though_it_has_no_delta() -> None:
    asked = Curator(Variants.from_dict({("a",): 40}), domain=Domain(("a",), 3), randomness=noise.seeded(1))
    asked.subsample(Fraction(1, 10)).count(1)
    (charge,) = asked.charges
    assert losses_of(asked.charges) == (EpsilonDeltaLoss(charge.epsilon, Fraction(0)),)


@pytest.mark.slow
def test_charges_have_the_losses_of_their_mechanisms() -> None:
    asked = Curator(Variants.from_dict({("a",): 40}), domain=Domain(("a",), 3), randomness=noise.seeded(1))
    asked.count("1/3")
    asked.sums(lambda s: (np.zeros(0, int),) * 3, 2, 5, "1/2", resolution=4)
    asked.partitions("1/2", "1e-3")
    rounds = asked.rounds([Fraction(1)] * 12, 1, "1e-6")
    found = losses_of(asked.charges)
    assert found[:2] == (LaplaceLoss(Fraction(1, 3), 1), LaplaceLoss(Fraction(1, 40), 20))
    assert isinstance(found[2], TruncatedLoss) and found[2].epsilon == Fraction(1, 2)
    assert isinstance(found[3], GaussianLoss)
    assert float(composed_epsilon([found[3]], MILLIONTH)) == pytest.approx(1, rel=1e-3)
    assert len(rounds.noises) == 12
    sample = asked.subsample(Fraction(1, 10))
    sample.count(1)
    sample.count(1)
    *_, sampled = losses_of(asked.charges)
    assert sampled == EpsilonDeltaLoss(sum(c.epsilon for c in asked.charges[4:]), Fraction(0)), (
        "parts of one sum, so one pair"
    )


def test_a_person_shifts_by_all_cases() -> None:
    asked = Curator(Variants.from_dict({("a",): 40}), unit=Unit("person", 3), randomness=noise.seeded(1))
    asked.count("1/3")
    asked.partitions("1/10", "1e-4")
    count, variants = losses_of(asked.guarantee().charges)
    assert count == LaplaceLoss(Fraction(1, 3), 3)
    assert isinstance(variants, EpsilonDeltaLoss) and variants.epsilon == Fraction(3, 10)


def test_the_steps_of_a_training_have_their_own_loss_for_one_case_alone() -> None:
    """A person with several cases has the general pair, not the shift of one case."""
    plan = DiscreteGaussianSteps((NoisedSteps("one", 0.25, 8.0, 30), NoisedSteps("other", 1.0, 40.0, 2)))
    charge = Charge("training", "", plan, Sensitivity.of(1, "L2", "clipped"), Fraction(1), MILLIONTH)
    assert losses_of([charge]) == (GaussianLoss(8.0, 0.25, 30), GaussianLoss(40.0, 1.0, 2))
    for cases in (2, 3):
        (of_a_person,) = Unit("person", cases).charges([charge])
        assert losses_of([of_a_person]) == (EpsilonDeltaLoss(of_a_person.epsilon, of_a_person.delta),)
        assert of_a_person.epsilon == cases


def test_a_charge_of_laplace_noise_that_its_epsilon_does_not_follow_from_counts_as_its_pair() -> None:
    """A Laplace charge that its epsilon does not follow from counts as its pair.

    So does one whose shift is no whole number of units of the noise.
    """
    for scale, by, epsilon in ((10, Fraction(1), Fraction(1, 5)), (1, Fraction(1, 2), Fraction(1, 2))):
        charge = Charge("sums", "", Laplace(Fraction(scale)), Sensitivity.of(by), epsilon)
        assert losses_of([charge]) == (EpsilonDeltaLoss(epsilon),)


@pytest.mark.parametrize("delta", ["0", "1e-13", "1"])
def test_a_delta_that_floats_cannot_tell_is_refused(delta: str) -> None:
    with pytest.raises(ParameterError):
        composed_epsilon([EpsilonDeltaLoss(Fraction(1))], Fraction(delta))


def test_nothing_costs_nothing() -> None:
    assert composed_epsilon([], MILLIONTH) == composed_delta([], Fraction(1)) == 0


@pytest.mark.parametrize(
    "delta", [LEAST_DELTA, Fraction(1, 10**9), Fraction(1, 1000), Fraction(3, 5), Fraction(99, 100)]
)
@pytest.mark.parametrize("number", [1, 400])
def test_an_epsilon_is_sought_for_less_than_its_delta(
    delta: Fraction, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The search takes a millionth off delta, and the error of floats for each loss."""
    asked: list[float] = []

    class Found:
        def get_epsilon_for_delta(self, failure: float) -> float:
            asked.append(failure)
            return 1.0

    monkeypatch.setattr(of_losses, "_distribution", lambda losses: Found())
    losses = [GaussianLoss(5.0, 1.0, number), EpsilonDeltaLoss(Fraction(1))]
    most = min(float(delta) * (1 - 1e-6), float(delta) - (number + 1) * LOST_BY_EACH)
    if most <= 1e-14:
        with pytest.raises(ParameterError):
            composed_epsilon(losses, delta)
        return
    assert 1 < composed_epsilon(losses, delta) <= 1.00001
    assert asked == pytest.approx([most], rel=1e-12, abs=2e-14) and asked[0] < most
