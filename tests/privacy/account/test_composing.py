"""Composed charges are never below the truth, and the filter stops adversaries."""

import math
from collections import Counter
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from pathlib import Path

import pytest
from dp_accounting.pld import common, privacy_loss_distribution
from hypothesis import example, given
from hypothesis import strategies as st

from veilog.logs.variants import Variants
from veilog.privacy.account.composition import (
    ORDERS,
    Answer,
    answers_of,
    best_order,
    planned_epsilon,
    renyi_epsilon,
    renyi_of,
    renyi_room,
)
from veilog.privacy.account.guarantee import Charge
from veilog.privacy.curator import Curator
from veilog.privacy.histograms import gaussian_rounds
from veilog.privacy.mechanisms.mechanism import DiscreteGaussianSteps, GaussianRounds, NoisedSteps

MILLIONTH = Fraction(1, 10**6)
TENTH = Fraction(1, 10)
Cost = tuple[Fraction, Fraction]

FINEST = Fraction(1, 2**100)
"""Unit to which composed charges are rounded up."""
epsilons = st.fractions("1/1000000", 30, max_denominator=10**6)
orders = st.sampled_from(ORDERS)


def decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def true_renyi(likely: list[tuple[Decimal, Decimal]], order: Fraction) -> Fraction:
    """Return the larger Rényi divergence of two laws, in both orders, to sixty digits."""
    a = decimal(order)
    means = [sum(p**a * q ** (1 - a) for p, q in pairs) for pairs in (likely, [(q, p) for p, q in likely])]
    return Fraction(max(mean.ln() for mean in means) / (a - 1))


@pytest.mark.slow
@given(epsilon=epsilons, order=orders)
@example(epsilon=Fraction(30), order=ORDERS[-1])
@example(epsilon=Fraction(30), order=ORDERS[0])
@example(epsilon=MILLIONTH, order=ORDERS[0])
@example(epsilon=MILLIONTH, order=ORDERS[-1])
def test_randomised_response_costs_what_it_does_rounded_up(epsilon: Fraction, order: Fraction) -> None:
    with localcontext() as context:
        context.prec = 60
        p = 1 / (1 + (-decimal(epsilon)).exp())
        truth = true_renyi([(p, 1 - p), (1 - p, p)], order)
    found = renyi_of(epsilon, order)
    assert truth <= found <= truth * (1 + Fraction(1, 10**6)) + Fraction(1, 10**9)
    assert found <= min(epsilon, order * epsilon**2 / 2) + FINEST


@pytest.mark.slow
@given(epsilon=st.fractions("1/100", 5, max_denominator=100), by=st.integers(1, 12), order=orders)
@example(epsilon=Fraction(200), by=2, order=next(order for order in ORDERS if order > 3))  # the last whose mean is held
@example(epsilon=Fraction(200), by=2, order=next(order for order in ORDERS if order > Fraction(24, 5)))
def test_discrete_laplace_noise_costs_what_it_does_rounded_up(epsilon: Fraction, by: int, order: Fraction) -> None:
    decay = epsilon / by
    truth = true_renyi_of_laplace(decay, by, order)
    found = Answer(epsilon, Fraction(0), laplace=(decay, by)).renyi(order)
    assert truth <= found <= epsilon + Fraction(1, 10**20)
    if (order - 1) * epsilon < 600:  # beyond, and there only, floats would not hold the mean
        assert found <= truth * (1 + Fraction(1, 10**5)) + Fraction(1, 10**9)


def true_renyi_of_laplace(decay: Fraction, by: int, order: Fraction) -> Fraction:
    with localcontext() as context:
        context.prec = 60
        step = (-decimal(decay)).exp()
        # Outside 0 ... by the ratio is constant, so the two tails are one point each.
        tail = 1 / (1 + step)
        law = [tail, *((1 - step) / (1 + step) * step**x for x in range(1, by)), tail * step**by]
        return true_renyi(list(zip(law, reversed(law), strict=True)), order)


@pytest.mark.parametrize("epsilon", ["1e-9", "1e-6", "1e-4", "0.03"])
def test_what_floats_lose_of_a_small_cost_is_added_to_it(epsilon: str) -> None:
    """A mean near 1, whose logarithm floats get wrong by a billionth, is rounded up."""
    for order in ORDERS[::20]:
        for by in (1, 3):
            found = Answer(Fraction(30), Fraction(0), laplace=(Fraction(epsilon) / by, by)).renyi(order)
            assert true_renyi_of_laplace(Fraction(epsilon) / by, by, order) <= found


@pytest.mark.parametrize("by", [5, 1000, 10**6, 2**32, 2**50])
def test_noise_on_a_fine_grid_costs_no_less_than_it_does(by: int) -> None:
    """Noise on a fine grid costs no less than the sum of its series, to sixty digits.

    There are too many terms to add them up one by one.
    """
    for epsilon in (Fraction(1, 1000), Fraction(1, 10), Fraction(3)):
        for order in ORDERS[:260:13]:
            if (order - 1) * epsilon > 600:
                continue
            with localcontext() as context:
                context.prec = 60
                a, e, d = decimal(order), decimal(epsilon), decimal(epsilon / by)
                falls = (-d * (2 * a - 1)).exp()
                between = (1 - (-d).exp()) * ((a - 1) * e).exp() * (falls - (-e * (2 * a - 1)).exp()) / (1 - falls)
                mean = (((a - 1) * e).exp() + between + (-a * e).exp()) / (1 + (-d).exp())
                truth = Fraction(mean.ln() / (a - 1))
            if by == 5:
                assert abs(truth - true_renyi_of_laplace(epsilon / by, by, order)) < Fraction(1, 10**40)
            found = Answer(Fraction(30), Fraction(0), laplace=(epsilon / by, by)).renyi(order)
            assert truth <= found <= truth * (1 + Fraction(1, 10**8)) + Fraction(1, 10**10)


@pytest.mark.parametrize("delta", ["1e-50", "1e-12", "1e-6", "0.01", "0.5", "0.9"])
def test_the_epsilon_of_what_was_spent_is_rounded_up(delta: str) -> None:
    for order in ORDERS[::7]:
        with localcontext() as context:
            context.prec = 60
            a = decimal(order)
            beyond = Fraction(((a - 1) / a).ln() - (decimal(Fraction(delta)).ln() + a.ln()) / (a - 1))
        truth = max(Fraction(0), 9 + beyond)
        found = renyi_epsilon(Fraction(9), Fraction(delta), order)
        assert truth <= found <= truth + (1 + abs(beyond)) / 10**11
        assert renyi_room(found, Fraction(delta), order) <= 9 + (1 + abs(beyond)) / 10**11


@pytest.mark.slow
@given(one=epsilons, other=epsilons, order=orders)
def test_what_is_set_aside_for_a_release_is_no_less_than_what_its_answers_come_to(
    one: Fraction, other: Fraction, order: Fraction
) -> None:
    assert renyi_of(one, order) + renyi_of(other, order) <= renyi_of(one + other, order) + Fraction(1, 10**8)


@pytest.mark.slow
@given(epsilon=st.fractions("1/10", 20, max_denominator=100), delta=st.sampled_from(["1e-12", "1e-6", "0.01"]))
def test_what_there_is_room_for_costs_no_more(epsilon: Fraction, delta: str) -> None:
    order = best_order(epsilon, Fraction(delta))
    room = renyi_room(epsilon, Fraction(delta), order)
    # Rounded down and then up again: off by what floating point may err.
    assert abs(renyi_epsilon(room, Fraction(delta), order) - epsilon) < Fraction(1, 10**9)
    assert room < epsilon


def exactly(costs: Counter[Cost], epsilon: float) -> float:
    """Return the delta of randomised responses at an epsilon, by their joint losses."""
    told, sums = 1.0, {0.0: 1.0}
    for (e, d), number in costs.items():
        for _ in range(number):
            told *= 1 - float(d)
            likely = 1 / (1 + math.exp(-float(e)))
            new: Counter[float] = Counter()
            for loss, chance in sums.items():
                new[round(loss + float(e), 9)] += chance * likely
                new[round(loss - float(e), 9)] += chance * (1 - likely)
            sums = dict(new)
    return 1 - told + told * sum(c * -math.expm1(epsilon - loss) for loss, c in sums.items() if loss > epsilon)


costs = st.tuples(
    st.sampled_from([Fraction(n, 20) for n in (1, 3, 10, 17)]), st.sampled_from([Fraction(0), Fraction(1, 10**4)])
)


@pytest.mark.slow
@given(made=st.lists(costs, min_size=1, max_size=12), delta=st.sampled_from(["1e-6", "0.001", "0.1"]))
def test_what_is_planned_costs_no_less_than_the_truth_and_hardly_more(made: list[Cost], delta: str) -> None:
    counted = Counter(made)
    found = planned_epsilon(counted, Fraction(delta))
    total = sum(e for e, _ in made)
    if found is None:
        assert sum(d for _, d in made) > Fraction(delta)
        return
    assert found <= total
    assert found == total or exactly(counted, float(found)) <= float(delta) * (1 + 1e-9)
    if 0.01 < found < total:
        assert exactly(counted, float(found) * (1 - 2e-3) - 2e-3) > float(delta)


@pytest.mark.slow
def test_a_hundred_releases_at_a_tenth() -> None:
    """A hundred releases at 0.1 cost 10 by the sum, 4.69 as Laplace noise.

    Known by their epsilon alone, they are within two percent of 4.69.
    """
    found = planned_epsilon({(TENTH, Fraction(0)): 100}, MILLIONTH)
    assert found is not None and abs(float(found) / 4.69 - 1) < 0.02
    given = common.DifferentialPrivacyParameters(0.1, 0)
    theirs = privacy_loss_distribution.from_privacy_parameters(given, value_discretization_interval=1e-5)
    assert float(found) == pytest.approx(theirs.self_compose(100).get_epsilon_for_delta(1e-6), rel=1e-4)
    chosen = min(renyi_epsilon(100 * renyi_of(TENTH, order), MILLIONTH / 2, order) for order in ORDERS)
    assert float(found) < float(chosen) == pytest.approx(5.2014, abs=1e-4), "the best order, which is known afterwards"
    fixed = best_order(Fraction("5.2076"), MILLIONTH / 2)
    needed = renyi_epsilon(100 * renyi_of(TENTH, fixed), MILLIONTH / 2, fixed)
    assert float(needed) == pytest.approx(5.2076, abs=1e-4), "that of the limit, which is fixed before"
    page = (Path(__file__).parents[3] / "docs" / "many-releases.md").read_text()
    assert f"| a *plan* | {math.ceil(found * 1000) / 1000} |" in page
    assert f"| *composed* | {math.ceil(needed * 10_000) / 10_000} |" in page


@pytest.mark.slow
def test_many_small_releases_are_hardly_rounded() -> None:
    """Many small releases cost what they do as Gaussian noise of strength 1."""
    found = planned_epsilon({(Fraction(1, 100), Fraction(0)): 9_999, (Fraction(1, 97), Fraction(0)): 1}, MILLIONTH)
    theirs = privacy_loss_distribution.from_gaussian_mechanism(1.0).get_epsilon_for_delta(1e-6)
    assert found is not None and float(found) == pytest.approx(theirs, rel=2e-3)


def test_without_room_for_their_deltas_nothing_is_bounded() -> None:
    assert planned_epsilon({(TENTH, Fraction(1, 10)): 2}, Fraction(1, 10)) is None
    assert planned_epsilon({(TENTH, Fraction(1, 20)): 2}, Fraction(1, 10)) is not None
    assert planned_epsilon({(TENTH, Fraction(0)): 7}, Fraction(0)) == 7 * TENTH
    assert planned_epsilon({(TENTH, Fraction(0)): 7}, Fraction(1, 10**20)) == 7 * TENTH
    assert planned_epsilon({}, MILLIONTH) == 0


MENU = (0.1, 0.3, 0.6, 1.0)


def won_by_the_best(epsilon: float, allowed: object, menu: tuple[float, ...] = MENU) -> float:
    """Return the delta at epsilon of the best adversary against randomised response.

    The adversary chooses each epsilon, and whether to go on, after each answer. The search works backwards from every
    state that the rule lets him reach.
    """
    assert callable(allowed)

    @cache
    def worth(made: tuple[int, ...], loss: float) -> float:
        best = max(0.0, -math.expm1(epsilon - loss))
        for i, e in enumerate(menu):
            more = (*made[:i], made[i] + 1, *made[i + 1 :])
            if allowed(more):
                p = 1 / (1 + math.exp(-e))
                best = max(best, p * worth(more, round(loss + e, 6)) + (1 - p) * worth(more, round(loss - e, 6)))
        return best

    return worth((0,) * len(menu), 0.0)


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.05), (2.0, 0.01), (1.5, 0.001), (2.5, 1e-4)])
def test_no_adversary_who_chooses_as_he_goes_gets_past_the_filter(epsilon: float, delta: float) -> None:
    order = best_order(Fraction(epsilon), Fraction(delta))
    room = renyi_room(Fraction(epsilon), Fraction(delta), order)
    each = [renyi_of(Fraction(str(e)), order) for e in MENU]

    @cache
    def allowed(made: tuple[int, ...]) -> bool:
        return sum(n * cost for n, cost in zip(made, each, strict=True)) <= room

    won = won_by_the_best(epsilon, allowed)
    assert 0 < won <= delta


@pytest.mark.slow
def test_losses_that_were_met_are_no_bound_where_costs_are_chosen_as_one_goes() -> None:
    """Without a filter, going on while met losses compose to the budget exceeds delta."""
    epsilon, delta = 1.0, 0.05

    @cache
    def composes(made: tuple[int, ...]) -> bool:
        met = Counter({(Fraction(str(e)), Fraction(0)): n for e, n in zip(MENU, made, strict=True) if n})
        return exactly(met, epsilon) <= delta

    assert won_by_the_best(epsilon, composes) > delta * 1.01


def test_answers_are_known_by_their_noise() -> None:
    curator = Curator(Variants.from_dict({("a", "b"): 40, ("b",): 3}))
    curator.count("0.5")
    curator.count("0.5")
    curator.partitions("0.5", "0.01")
    found = answers_of(curator.charges)
    assert found is not None
    assert [(answer.laplace is not None, times) for answer, times in found] == [(True, 2), (False, 1)]
    assert found[1][0] == Answer(Fraction(1, 2), curator.charges[-1].delta)
    for answer, _ in found:
        assert Answer.of_kept(answer.kept) == answer
    curator.subsample(Fraction(1, 2)).count("0.1")
    assert answers_of(curator.charges) is None, "questions to one sample do not compose one by one"


def test_gaussian_noise_counts_by_its_strength_where_that_is_less() -> None:
    rounds = gaussian_rounds([Fraction(1)] * 20, Fraction(1), MILLIONTH)
    assert isinstance(rounds, GaussianRounds)
    charge = Charge("histograms", "levels", rounds, _of_one(), Fraction(1), MILLIONTH)
    ((answer, _),) = answers_of([charge]) or ()
    order = Fraction(6)
    assert answer.strength is not None
    assert answer.strength == pytest.approx(rounds.strength, rel=1e-12)
    assert answer.renyi(order) == pytest.approx(6 * answer.strength**2 / 2, rel=1e-6)
    assert answer.renyi(order) < renyi_of(Fraction(1), order)
    assert Answer(Fraction(1, 100), MILLIONTH, strength=5.0).renyi(order) == renyi_of(Fraction(1, 100), order)


def test_the_strengths_of_all_steps_that_every_case_takes_part_in_add_up_in_squares() -> None:
    plan = (NoisedSteps("one", 1.0, 8.0, 30), NoisedSteps("other", 1.0, 40.0, 2))
    charge = Charge("training", "", DiscreteGaussianSteps(plan), _of_one(), Fraction(1), MILLIONTH)
    ((answer, _),) = answers_of([charge]) or ()
    assert answer.strength == pytest.approx(math.sqrt(30 / 8**2 + 2 / 40**2), rel=1e-12)
    sampled = DiscreteGaussianSteps((NoisedSteps("one", 0.5, 8.0, 30), plan[1]))
    ((answer, _),) = answers_of([replace(charge, mechanism=sampled)]) or ()
    assert answer.strength is None, "what is asked of samples counts as its pair"


@pytest.mark.parametrize("strength", [1e-6, 0.01, 1.0, 9.0])
def test_discrete_gaussian_noise_counts_a_billionth_and_a_billionth_of_it_more_than_continuous(strength: float) -> None:
    billionth = Fraction(1, 10**9)
    for order in (ORDERS[0], Fraction(6), ORDERS[200]):
        exact = order * Fraction(strength) ** 2 / 2
        found = Answer(Fraction(1000), MILLIONTH, strength=strength).renyi(order)
        assert 0 <= found - min(exact * (1 + billionth) + billionth, renyi_of(Fraction(1000), order)) <= FINEST


def _of_one() -> object:
    from veilog.privacy.mechanisms.mechanism import Sensitivity

    return Sensitivity.of(1, "L2")
