"""Noised gradients: their norms in closed form, what one case can change, what a step costs, what noise is added."""

import math
from fractions import Fraction
from typing import Any

import dp_accounting
import numpy as np
import numpy.typing as npt
import pytest
from dp_accounting import pld
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from veilog.errors import ParameterError
from veilog.logs.variants import Sequences, Variants
from veilog.methods.travag_networks import Network, Weights, backward, forward, initial
from veilog.privacy import noise
from veilog.privacy.curator import Curator
from veilog.privacy.gradients import Factors, Outer, Training, clipped_sums, squared_norms
from veilog.privacy.training_accounting import NoisedSteps, calibrated, composed_epsilon, smallest_epsilon

NETWORKS = (
    Network("plain", (7, 5, 3), ("tanh", "none")),
    Network("leaky", (7, 6, 4, 3), ("leaky", "leaky", "none")),
    Network("residual", (7, 7, 7, 3), ("tanh", "tanh", "tanh"), residual=True),
)
POSITIONS = np.array([3, 0, 3, 6])


def in_double(network: Network, seed: int = 0) -> Weights:
    return initial(network, np.random.default_rng(seed), np.float64)


def one_hot(positions: npt.NDArray[np.int64], width: int) -> npt.NDArray[np.float64]:
    return np.eye(width)[positions]


def inputs_of(network: Network) -> list[npt.NDArray[Any]]:
    """Rows, and one-hot positions where the network takes them: what is added to a residual layer must be rows."""
    rows = np.random.default_rng(1).normal(size=(4, 7))
    return [rows] if network.residual else [POSITIONS, rows]


def loss_of_each(network: Network, weights: Weights, inputs: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Half the squared distance of each row's output from (1, 2, 3): any smooth loss will do."""
    away = forward(network, weights, inputs).output - np.array([1.0, 2.0, 3.0])
    return np.asarray((away**2).sum(axis=1) / 2)


def factors_of(network: Network, weights: Weights, inputs: npt.NDArray[Any]) -> list[list[Outer]]:
    trace = forward(network, weights, inputs)
    factors, _ = backward(network, weights, trace, trace.output - np.array([1.0, 2.0, 3.0]))
    return [[term] for term in factors]


def by_differences(network: Network, weights: Weights, inputs: npt.NDArray[Any]) -> list[npt.NDArray[np.float64]]:
    """Of each example the whole gradient, by moving every weight a little up and down (five-point rule)."""
    step = 1e-3
    columns = []
    for layer in network.layers:
        for name in network.names(layer):
            flat = weights[name].reshape(-1)
            for i in range(len(flat)):
                kept, losses = flat[i], []
                for moved in (-2, -1, 1, 2):
                    flat[i] = kept + moved * step
                    losses.append(loss_of_each(network, weights, inputs))
                flat[i] = kept
                columns.append((losses[0] - 8 * losses[1] + 8 * losses[2] - losses[3]) / (12 * step))
    return list(np.array(columns).T)


def whole(sums: Any) -> npt.NDArray[np.float64]:
    """All gradients as one vector, in the order of the weights."""
    return np.concatenate([array.reshape(-1) for pair in sums for array in pair])


@pytest.mark.parametrize("network", NETWORKS, ids=lambda n: n.name)
def test_gradients_and_norms_equal_finite_differences(network: Network) -> None:
    weights = in_double(network)
    for inputs in inputs_of(network):
        expected = by_differences(network, weights, inputs)
        factors = factors_of(network, weights, inputs)
        assert squared_norms(factors) == pytest.approx([g @ g for g in expected], rel=1e-9, abs=1e-9)
        for i, gradient in enumerate(expected):
            alone = clipped_sums(factors_of(network, weights, inputs[i : i + 1]), 1e9, [1])
            assert np.abs(whole(alone) - gradient).max() < 1e-9


@pytest.mark.parametrize("network", NETWORKS, ids=lambda n: n.name)
def test_norms_and_clipped_sums_equal_an_independent_computation_example_by_example(network: Network) -> None:
    weights, clip, times = in_double(network), 0.7, np.array([1, 0, 3, 2])
    factors = factors_of(network, weights, inputs_of(network)[0])
    sums = np.zeros(network.parameters)
    for i, count in enumerate(times):
        parts = []
        for (term,) in factors:  # the outer product of this example alone, written out
            x = one_hot(term.inputs, term.width)[i] if term.inputs.ndim == 1 else term.inputs[i]
            parts += [np.array([[a * e for e in term.errors[i]] for a in x]).reshape(-1), term.errors[i]]
        gradient = np.concatenate(parts)
        norm = math.sqrt(sum(v * v for v in gradient.tolist()))
        assert math.sqrt(squared_norms(factors)[i]) == pytest.approx(norm, rel=1e-12)
        sums += count * gradient * min(1.0, clip * (1 - 1e-5) / norm)
    assert np.abs(whole(clipped_sums(factors, clip, times)) - sums).max() < 1e-9


def test_one_hot_positions_and_one_hot_rows_give_the_same() -> None:
    network, weights = NETWORKS[0], in_double(NETWORKS[0])
    positions = clipped_sums(factors_of(network, weights, POSITIONS), 0.5, [1] * 4)
    rows = clipped_sums(factors_of(network, weights, one_hot(POSITIONS, 7)), 0.5, [1] * 4)
    assert np.allclose(whole(positions), whole(rows), atol=1e-14)


def test_two_terms_of_an_example_are_clipped_together() -> None:
    """A real row against a made-up one: the norm is that of the difference, not the sum of two norms."""
    rng = np.random.default_rng(2)
    real = Outer(np.array([1, 4]), rng.normal(size=(2, 3)), 6)
    made_up = Outer(rng.normal(size=(2, 6)), rng.normal(size=(2, 3)), 6)
    for terms in ([real, made_up], [real, Outer(np.array([4, 4]), made_up.errors, 6)], [made_up, made_up]):
        for i in range(2):
            gradient = np.zeros((7, 3))
            for term in terms:
                x = one_hot(term.inputs, 6)[i] if term.inputs.ndim == 1 else term.inputs[i]
                gradient += np.outer([*x, 1], term.errors[i])
            assert squared_norms([terms])[i] == pytest.approx((gradient**2).sum(), rel=1e-12)
            chosen = [Outer(t.inputs[i : i + 1], t.errors[i : i + 1], 6) for t in terms]
            found = clipped_sums([chosen], 1e9, [1])[0]
            assert np.allclose(np.vstack([found[0], found[1]]), gradient, atol=1e-12)


def test_a_layer_without_bias_has_none_in_its_norm_and_none_in_its_sum() -> None:
    term = Outer(np.array([2]), np.array([[3.0, 4.0]]), 5, bias=False)
    assert squared_norms([[term]]) == pytest.approx([25])
    assert not clipped_sums([[term]], 1e9, [1])[0][1].any()


@settings(derandomize=True, deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    size=st.sampled_from([1e-30, 1e-3, 1.0, 1e6, 1e18]),
    clip=st.sampled_from([1e-6, 0.022, 1.0, 50.0]),
    double=st.booleans(),
)
def test_no_clipped_gradient_is_longer_than_the_bound(seed: int, size: float, clip: float, double: bool) -> None:
    rng, dtype = np.random.default_rng(seed), np.float64 if double else np.float32
    factors = [
        [
            Outer(rng.integers(0, 9, 3), (size * rng.normal(size=(3, 4))).astype(dtype), 9),
            Outer(rng.normal(size=(3, 9)).astype(dtype), (size * rng.normal(size=(3, 4))).astype(dtype), 9),
        ],
        [Outer((size * rng.normal(size=(3, 4))).astype(dtype), rng.normal(size=(3, 2)).astype(dtype), 4)],
    ]
    for i in range(3):
        one = whole(clipped_sums(factors, clip, np.eye(3)[i])).astype(np.float64)
        assert np.linalg.norm(one) <= clip


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
def test_a_gradient_that_is_not_finite_counts_as_none(bad: float) -> None:
    factors: Factors = [[Outer(np.array([[1.0, bad], [1.0, 2.0]]), np.array([[1.0], [1.0]]), 2)]]
    sums = clipped_sums(factors, 1.0, [5, 1])
    assert np.isfinite(whole(sums)).all() and np.linalg.norm(whole(sums)) == pytest.approx(1, abs=2e-5)


@settings(derandomize=True, deadline=None, max_examples=30)
@given(counts=st.lists(st.integers(0, 50), min_size=7, max_size=7), added=st.integers(0, 6))
def test_a_case_more_changes_the_sum_by_at_most_the_bound(counts: list[int], added: int) -> None:
    network, weights, clip = NETWORKS[1], in_double(NETWORKS[1]), 0.1
    factors = factors_of(network, weights, np.arange(7))
    more = [*counts[:added], counts[added] + 1, *counts[added + 1 :]]
    change = whole(clipped_sums(factors, clip, more)) - whole(clipped_sums(factors, clip, counts))
    assert np.linalg.norm(change) <= clip


# Steps ---------------------------------------------------------------------------------------------------------------


def counting(width: int) -> Any:
    """The gradient of a row is the row itself, turned around."""
    return lambda columns: [[Outer(columns, np.full((len(columns), 1), -1.0), width, bias=False)]]


def training(counts: list[int], *plan: NoisedSteps, seed: int = 0, taken: tuple[int, ...] | None = None) -> Training:
    done = taken or (0,) * len(plan)
    return Training(np.array(counts), plan, (1.0,) * len(plan), done, noise.seeded(seed))


def test_a_step_takes_each_case_with_the_rate_and_adds_noise_of_the_stated_size() -> None:
    steps = NoisedSteps("all", 0.3, 2.0, 4000)
    run = training([40, 0], steps)
    seen = np.array([run.step(0, counting(2))[0][0][:, 0].copy() for _ in range(steps.steps)])
    # a binomial number with 40 trials, and noise of deviation 2; for the empty column the noise alone
    assert -seen[:, 0].mean() == pytest.approx(40 * 0.3, abs=4 * math.sqrt((8.4 + 4) / 4000))
    assert seen[:, 0].var() == pytest.approx(40 * 0.3 * 0.7 + 4, rel=0.1)
    assert stats.kstest(seen[:, 1] / 2, "norm").pvalue > 1e-3


def test_noise_of_large_arrays_is_drawn_by_threads_and_is_standard_normal_too() -> None:
    run = training([0] * 50_000, NoisedSteps("all", 1.0, 1.0, 1))
    drawn = run.step(0, counting(50_000))[0][0][:, 0]
    assert stats.kstest(drawn, "norm").pvalue > 1e-3
    assert abs(np.corrcoef(drawn[:25_000], drawn[25_000:])[0, 1]) < 0.03


def test_seeded_steps_repeat() -> None:
    first, second = (training([5, 9], NoisedSteps("all", 0.5, 1.0, 3), seed=4) for _ in range(2))
    for _ in range(3):
        assert np.array_equal(first.step(0, counting(2))[0][0], second.step(0, counting(2))[0][0])


def test_cases_apart_are_rows_of_their_own() -> None:
    run, rows = training([3, 0, 2], NoisedSteps("all", 1.0, 1.0, 2)), []

    def factors(columns: npt.NDArray[np.int64]) -> Factors:
        rows.append(columns.tolist())
        return counting(3)(columns)

    run.step(0, factors, apart=True)
    run.step(0, factors)
    assert rows == [[0, 0, 0, 2, 2], [0, 2]]


def test_no_step_beyond_those_paid_for_also_after_resuming() -> None:
    run = training([3], NoisedSteps("all", 1.0, 1.0, 2), NoisedSteps("few", 0.5, 1.0, 1), taken=(1, 0))
    run.step(0, counting(1))
    assert run.taken == (2, 0)
    with pytest.raises(ParameterError, match="All 2 steps of the all that were paid for are taken"):
        run.step(0, counting(1))


def test_steps_with_nobody_in_them_still_give_noise_of_the_right_shape() -> None:
    run = training([0, 0], NoisedSteps("all", 0.5, 1.0, 1))
    assert run.step(0, counting(2))[0][0].shape == (2, 1)


# What they cost ------------------------------------------------------------------------------------------------------

PARTS = (NoisedSteps("autoencoder", 64 / 7554, 6, 20_000), NoisedSteps("critic", 128 / 7554, 4, 22_500))


def test_the_total_is_that_of_dp_accounting_for_the_same_events() -> None:
    accountant = pld.PLDAccountant(dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE)
    for rate, multiplier, steps in ((64 / 7554, 6, 20_000), (128 / 7554, 4, 22_500)):
        sampled = dp_accounting.PoissonSampledDpEvent(rate, dp_accounting.GaussianDpEvent(multiplier))
        accountant.compose(sampled, steps)
    assert composed_epsilon(PARTS, 1e-6, about=1) == pytest.approx(accountant.get_epsilon(1e-6), rel=1e-12)


def test_steps_on_all_cases_cost_what_the_gaussian_mechanism_does() -> None:
    """100 steps with noise 40 are one with noise 4 (Balle, Wang, 2018: the exact curve of the Gaussian mechanism)."""
    epsilon = composed_epsilon([NoisedSteps("all", 1.0, 40.0, 100)], 1e-6)
    shift = 1 / 4.0
    delta = stats.norm.cdf(shift / 2 - epsilon / shift) - math.exp(epsilon) * stats.norm.cdf(
        -shift / 2 - epsilon / shift
    )
    assert delta == pytest.approx(1e-6, rel=5e-3) and delta <= 1e-6


@pytest.mark.parametrize("epsilon", ["0.0001", "0.01", "1", "20", "500"])
def test_calibrated_noise_costs_what_was_asked_for_and_never_more(epsilon: str) -> None:
    asked = Fraction(epsilon)
    parts = (NoisedSteps("all", 1.0, 1.0, 5), NoisedSteps("few", 0.2, 3.0, 40))
    found = calibrated(parts, asked, Fraction(1, 10**6))
    cost = composed_epsilon(found, 1e-6, about=float(asked))
    assert float(asked) * 0.995 <= cost <= float(asked)
    assert found[1].noise_multiplier / found[0].noise_multiplier == pytest.approx(3)


@pytest.mark.parametrize("multiplier", [1.0, 100.0, 1e5])
def test_the_bound_is_tight_for_little_and_for_much_noise(multiplier: float) -> None:
    found = composed_epsilon([NoisedSteps("all", 1.0, multiplier, 1)], 1e-6)

    def delta(epsilon: float) -> float:
        shift = 1 / multiplier
        upper = stats.norm.cdf(shift / 2 - epsilon / shift)
        return float(upper - math.exp(epsilon) * stats.norm.cdf(-shift / 2 - epsilon / shift))

    assert delta(found) <= 1e-6 * (1 + 1e-9)
    assert delta(found * 0.99) > 1e-6


def test_what_no_noise_can_pay_for_is_refused() -> None:
    with pytest.raises(ParameterError, match="No training step is affordable"):
        calibrated([NoisedSteps("all", 1.0, 1.0, 1000)], Fraction(1, 10**8), Fraction(1, 10**12))


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


# The question --------------------------------------------------------------------------------------------------------

LOG = Variants.from_dict({("a", "b"): 30, ("a",): 12, ("b",): 3})


def by_length(sequences: Sequences) -> npt.NDArray[np.int64]:
    return np.where(sequences.lengths == 1, 0, np.where(sequences.lengths == 2, 1, -1))


def test_the_question_charges_the_whole_plan_at_once_and_says_that_its_noise_is_floating_point() -> None:
    curator = Curator(LOG)
    plan = calibrated([NoisedSteps("critic", 1.0, 1.0, 3)], Fraction(1, 2), Fraction(1, 10**5))
    run = curator.training(by_length, 2, plan, (1.0,), "0.5", "1e-5")
    guarantee = curator.guarantee()
    assert (guarantee.epsilon, guarantee.delta) == (0.5, 1e-5) and guarantee.proven
    assert "floating-point" in guarantee.numerics
    (charge,) = guarantee.charges
    assert charge.question == "gradients" and "3 steps" in charge.mechanism
    for _ in range(3):
        run.step(0, counting(2))
    assert curator.guarantee().charges == guarantee.charges


def test_a_plan_that_costs_more_than_is_set_aside_is_refused_and_nothing_is_charged() -> None:
    curator = Curator(LOG)
    with pytest.raises(ParameterError, match=r"more than the 0\.5 set aside"):
        curator.training(by_length, 2, [NoisedSteps("critic", 1.0, 1.0, 3)], (1.0,), "0.5", "1e-5")
    with pytest.raises(ParameterError, match="More steps were taken"):
        curator.training(by_length, 2, [NoisedSteps("critic", 1.0, 99.0, 3)], (1.0,), "0.5", "1e-5", taken=(4,))
    assert curator.charges == ()


def test_charges_of_an_interrupted_run_are_carried_over() -> None:
    first, second = Curator(LOG), Curator(LOG)
    first.count("0.25")
    second.carry(first.charges)
    assert second.guarantee().epsilon == 0.25 and second.charges == first.charges
