"""Noised gradients have exact norms, changes within bounds, and the stated noise."""

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused
from scipy import stats

from veilog.errors import ParameterError
from veilog.methods.travag.networks import Network, Weights, backward, forward, initial
from veilog.privacy.mechanisms import noise
from veilog.privacy.mechanisms.clipped_sums import (
    GRID,
    Factors,
    Outer,
    _longest,
    _Rounded,
    clip_sums,
    clipped_sums,
    exact_product,
    integer_sums,
    squared_norms,
)
from veilog.privacy.mechanisms.gradients import Training
from veilog.privacy.mechanisms.mechanism import NoisedSteps

NETWORKS = (
    Network("plain", (7, 5, 3), ("tanh", "none")),
    Network("leaky", (7, 6, 4, 3), ("leaky", "leaky", "none")),
    Network("residual", (7, 7, 7, 3), ("tanh", "tanh", "tanh"), residual=True),
)
POSITIONS = np.array([3, 0, 3, 6])
ROUNDED = 2e-4
"""Largest share of the bound by which a gradient is rounded: inputs have 14 binary digits."""


def in_double(network: Network, seed: int = 0) -> Weights:
    return initial(network, np.random.default_rng(seed), np.float64)


def one_hot(positions: npt.NDArray[np.int64], width: int) -> npt.NDArray[np.float64]:
    return np.eye(width)[positions]


def inputs_of(network: Network) -> list[npt.NDArray[Any]]:
    """Return rows, and one-hot positions; a residual layer takes rows alone."""
    rows = np.random.default_rng(1).normal(size=(4, 7))
    return [rows] if network.residual else [POSITIONS, rows]


def loss_of_each(network: Network, weights: Weights, inputs: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Return a smooth loss: half the squared distance of each output from (1, 2, 3)."""
    away = forward(network, weights, inputs).output - np.array([1.0, 2.0, 3.0])
    return np.asarray((away**2).sum(axis=1) / 2)


def factors_of(network: Network, weights: Weights, inputs: npt.NDArray[Any]) -> list[list[Outer]]:
    trace = forward(network, weights, inputs)
    factors, _ = backward(network, weights, trace, trace.output - np.array([1.0, 2.0, 3.0]))
    return [[term] for term in factors]


def by_differences(network: Network, weights: Weights, inputs: npt.NDArray[Any]) -> list[npt.NDArray[np.float64]]:
    """Return the whole gradient of each example by differences (five-point rule)."""
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
    """Return all gradients as one vector, in the order of the weights."""
    return np.concatenate([array.reshape(-1) for pair in sums for array in pair])


@pytest.mark.parametrize("network", NETWORKS, ids=lambda n: n.name)
def test_gradients_and_norms_equal_finite_differences(network: Network) -> None:
    weights = in_double(network)
    for inputs in inputs_of(network):
        expected = by_differences(network, weights, inputs)
        factors = factors_of(network, weights, inputs)
        assert squared_norms(factors) == pytest.approx([g @ g for g in expected], rel=1e-9, abs=1e-9)
        for i, gradient in enumerate(expected):
            alone = clipped_sums(factors_of(network, weights, inputs[i : i + 1]), 50.0, [1])
            assert np.abs(whole(alone) - gradient).max() < ROUNDED * 50


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
    assert np.abs(whole(clipped_sums(factors, clip, times)) - sums).max() < ROUNDED * clip * times.sum()


def test_one_hot_positions_and_one_hot_rows_give_the_same() -> None:
    network, weights = NETWORKS[0], in_double(NETWORKS[0])
    positions = clipped_sums(factors_of(network, weights, POSITIONS), 0.5, [1] * 4)
    rows = clipped_sums(factors_of(network, weights, one_hot(POSITIONS, 7)), 0.5, [1] * 4)
    assert np.allclose(whole(positions), whole(rows), atol=4 * 0.5 * ROUNDED)


def test_two_terms_of_an_example_are_clipped_together() -> None:
    """Two terms, a real and a synthetic row, are clipped by the norm of their sum."""
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
            found = clipped_sums([chosen], 100.0, [1])[0]
            assert np.allclose(np.vstack([found[0], found[1]]), gradient, atol=100 * ROUNDED)


def test_a_layer_without_bias_has_none_in_its_norm_and_none_in_its_sum() -> None:
    term = Outer(np.array([2]), np.array([[3.0, 4.0]]), 5, bias=False)
    assert squared_norms([[term]]) == pytest.approx([25])
    assert not clipped_sums([[term]], 1e3, [1])[0][1].any()


@pytest.mark.slow
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
        assert squared_length(factors, clip, i) <= 4**GRID


def integers(sums: Any) -> list[int]:
    return [int(value) for pair in sums for array in pair for value in array.reshape(-1)]


def squared_length(factors: Any, clip: float, example: int) -> int:
    """Return the squared length of one example's integer gradient, exactly."""
    chosen = np.zeros(len(factors[0][0].errors), np.int64)
    chosen[example] = 1
    return sum(value * value for value in integers(integer_sums(clip_sums(factors, clip), chosen)))


@pytest.mark.parametrize("away", [1e-2, 1e-4, 1e-6, 1e-8])
def test_terms_that_cancel_are_no_longer_than_the_bound(away: float) -> None:
    """Long terms that cancel keep the bound, which single precision exceeds 20 times."""
    rng = np.random.default_rng(3)
    x, e = rng.normal(size=(20, 30)), 1e3 * rng.normal(size=(20, 8))
    real = Outer(x.astype(np.float32), e.astype(np.float32), 30)
    against = Outer((x * (1 + away)).astype(np.float32), -e.astype(np.float32), 30)
    lengths = [squared_length([[real, against]], 1.0, i) for i in range(20)]
    assert max(lengths) <= 4**GRID
    if away == 1e-2:  # far from the precision of the norm they are as long as they may be
        assert min(lengths) > 0.99 * 4**GRID


@pytest.mark.parametrize("cases", [10**6, 3 * 10**7])
def test_one_case_moves_the_sum_by_its_own_gradient_exactly_whatever_the_log_weighs(cases: int) -> None:
    """One case moves the sum by its gradient exactly, at any weight of the log.

    Single precision moved it by 1.14 times the bound at a million cases, and 8 times at 30 millions.
    """
    rng, clip = np.random.default_rng(4), 0.022
    factors = [
        [Outer(np.arange(40), rng.normal(size=(40, 50)).astype(np.float32), 40)],
        [Outer(rng.normal(size=(40, 50)).astype(np.float32), rng.normal(size=(40, 20)).astype(np.float32), 50)],
    ]
    counts = rng.multinomial(cases, np.full(40, 1 / 40))
    vectors = clip_sums(factors, clip)
    before = integers(integer_sums(vectors, counts))
    for column in (0, 39):
        more = counts + (np.arange(40) == column)
        moved = [a - b for a, b in zip(integers(integer_sums(vectors, more)), before, strict=True)]
        assert sum(value * value for value in moved) <= 4**GRID
        assert sum(value * value for value in moved) > 0.99 * 4**GRID
        assert moved == integers(integer_sums(vectors, more - counts))


@pytest.mark.parametrize("size", [1, 20, 34, 50, 62])
def test_products_of_integers_are_exact(size: int) -> None:
    rng = np.random.default_rng(size)
    one = rng.integers(-(2**size), 2**size, (70, 3))
    other = rng.integers(-(2**40), 2**40, (70, 4))
    exact = one.astype(object).T @ other.astype(object)
    expected = [[(value + 2**63) % 2**64 - 2**63 for value in row] for row in exact.tolist()]
    assert exact_product(one, other).tolist() == expected


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
    vectors = clip_sums(factors, clip)
    sums = [integers(integer_sums(vectors, np.array(these))) for these in (more, counts)]
    assert sum((a - b) ** 2 for a, b in zip(*sums, strict=True)) <= 4**GRID


# Steps ---------------------------------------------------------------------------------------------------------------


def counting(width: int) -> Any:
    """Return factors by which the gradient of a row is the row itself, turned around."""
    return lambda columns: [[Outer(columns, np.full((len(columns), 1), -1.0), width, bias=False)]]


def training(
    counts: list[int],
    *plan: NoisedSteps,
    seed: int = 0,
    taken: tuple[int, ...] | None = None,
    clip: float = 1.0,
    apart: bool = False,
) -> Training:
    done = taken or (0,) * len(plan)
    return Training(np.array(counts), plan, (clip,) * len(plan), done, noise.seeded(seed), apart=apart)


@pytest.mark.slow
def test_a_step_takes_each_case_with_the_rate_and_adds_noise_of_the_stated_size() -> None:
    steps = NoisedSteps("all", 0.3, 2.0, 4000)
    run = training([40, 0], steps)
    seen = np.array([run.step(0, counting(2))[0][0][:, 0].copy() for _ in range(steps.steps)])
    # a binomial number with 40 trials, and noise of deviation 2; for the empty column the noise alone
    assert -seen[:, 0].mean() == pytest.approx(40 * 0.3, abs=4 * math.sqrt((8.4 + 4) / 4000))
    assert seen[:, 0].var() == pytest.approx(40 * 0.3 * 0.7 + 4, rel=0.1)
    assert stats.kstest(seen[:, 1] / 2, "norm").pvalue > 1e-3


def test_noise_is_independent_and_normal_to_the_eye() -> None:
    run = training([0] * 50_000, NoisedSteps("all", 1.0, 1.0, 1))
    drawn = run.step(0, counting(50_000))[0][0][:, 0]
    assert stats.kstest(drawn, "norm").pvalue > 1e-3
    assert abs(np.corrcoef(drawn[:25_000], drawn[25_000:])[0, 1]) < 0.03


@pytest.mark.parametrize("rate", [1.0, 0.5])
def test_with_equal_noise_neighbouring_logs_get_sums_that_differ_by_the_bound_at_most(rate: float) -> None:
    """A whole step on thirty million cases and one more differs by the bound at most.

    The random bits for noise and for the common cases are the same.
    """
    rng = np.random.default_rng(6)
    x, e = rng.normal(size=(30, 40)).astype(np.float32), rng.normal(size=(30, 25))

    def factors(columns: npt.NDArray[np.int64]) -> Factors:
        return [[Outer(columns, e[columns], 30)], [Outer(x[columns], e[columns], 40)]]

    counts = [10**6 if rate == 1 else 1000] * 30
    for last in (counts[-1], counts[-1] + 1):  # the last column: its coins come after all others
        run = Training(np.array([*counts[:-1], last]), (NoisedSteps("all", rate, 1.0, 1),), (0.5,), (0,), split(7))
        released = whole(run.step(0, factors)) / (0.5 / 2**GRID)
        if last == counts[-1]:
            before = released
    moved = float(np.linalg.norm(released - before))
    assert moved <= 2**GRID * (1 + 1e-6)  # read back from float64, which has seven decimals of these sums' units
    assert rate < 1 or moved > 0.999 * 2**GRID


def split(seed: int) -> noise.Randomness:
    """Return randomness whose first request, for the sample, has its own source."""
    sample, others, asked = noise.seeded(seed), noise.seeded(seed + 1), []

    def words(n: int) -> npt.NDArray[np.uint32]:
        asked.append(n)
        return (sample if len(asked) == 1 and n >= 30_000 else others).words(n)

    return noise.Randomness(words, seed)


def test_what_comes_back_lies_on_the_public_grid() -> None:
    """Released numbers are integers times a public number, with no revealing low bits."""
    run = training([5, 9], NoisedSteps("all", 1.0, 0.5, 1), clip=0.25)
    released = run.step(0, counting(2))[0][0] / (0.25 / 2**GRID)
    assert (released == np.rint(released)).all() and np.abs(released).max() > 1e6


def test_seeded_steps_repeat() -> None:
    first, second = (training([5, 9], NoisedSteps("all", 0.5, 1.0, 3), seed=4) for _ in range(2))
    for _ in range(3):
        assert np.array_equal(first.step(0, counting(2))[0][0], second.step(0, counting(2))[0][0])


def asked_of(run: Training, steps: int = 1) -> list[list[int]]:
    rows = []

    def factors(columns: npt.NDArray[np.int64]) -> Factors:
        rows.append(columns.tolist())
        return counting(3)(columns)

    for _ in range(steps):
        run.step(0, factors)
    return rows


def test_the_factors_are_asked_of_all_columns_whoever_is_in_the_log_or_sampled() -> None:
    """Factors cover all columns, because a row's floats can depend on rows beside it."""
    plan = NoisedSteps("all", 0.5, 1.0, 3)
    asked = [asked_of(training(counts, plan, seed=seed), 3) for counts, seed in (([3, 0, 2], 0), ([3, 1, 2], 5))]
    assert asked[0] == asked[1]
    assert asked[0][0] == asked[0][-1] == [0, 1, 2]


def test_cases_apart_are_rows_of_their_own() -> None:
    run = training([3, 0, 2], NoisedSteps("all", 1.0, 1.0, 2), apart=True)
    assert asked_of(run, 2) == [[0, 0, 0, 2, 2]] * 2


CARELESS: dict[str, Callable[[npt.NDArray[np.int64]], npt.NDArray[np.float64]]] = {
    "rank": lambda columns: np.argsort(np.argsort(columns))[:, None].astype(float),
    "row number": lambda columns: np.arange(len(columns))[:, None].astype(float),
    "mean over the rows": lambda columns: (columns - columns.mean())[:, None],
    "number of rows": lambda columns: np.full((len(columns), 1), 1.0 / len(columns)),
    "the row before": lambda columns: np.roll(columns, 1)[:, None].astype(float),
}


@pytest.mark.parametrize("how", sorted(CARELESS))
def test_factors_that_depend_on_other_rows_are_refused(how: str) -> None:
    run = training([3, 0, 2, 4, 1, 1, 1], NoisedSteps("all", 1.0, 1.0, 1))
    with refused(ParameterError, "training-function-mixes-rows"):
        run.step(0, lambda columns: [[Outer(columns, CARELESS[how](columns), 7)]])


def broken(columns: npt.NDArray[np.int64]) -> Factors:
    raise ValueError("the case ('c',) is in the log")


@pytest.mark.parametrize(
    "factors",
    [
        broken,
        lambda columns: [],
        lambda columns: [[Outer(columns + 1, np.ones((len(columns), 1)), 3)]],
        lambda columns: [[Outer(columns[1:], np.ones((len(columns) - 1, 1)), 3)]],
        lambda columns: [
            [Outer(columns, np.ones((len(columns), 2)), 3), Outer(columns, np.ones((len(columns), 1)), 3)]
        ],
    ],
)
def test_a_function_that_fails_says_nothing_of_the_data(factors: Any) -> None:
    run = training([3, 0, 2], NoisedSteps("all", 1.0, 1.0, 1))
    with pytest.raises(ParameterError) as caught:
        run.step(0, factors)
    assert "log" not in str(caught.value) and caught.value.code == "training-function-failed"
    assert caught.value.__context__ is None and caught.value.__cause__ is None


def test_no_step_beyond_those_paid_for_also_after_resuming() -> None:
    run = training([3], NoisedSteps("all", 1.0, 1.0, 2), NoisedSteps("few", 0.5, 1.0, 1), taken=(1, 0))
    run.step(0, counting(1))
    assert run.taken == (2, 0)
    with refused(ParameterError, "training-steps-used-up", steps=2, name="all"):
        run.step(0, counting(1))


def test_steps_with_nobody_in_them_still_give_noise_of_the_right_shape() -> None:
    run = training([0, 0], NoisedSteps("all", 0.5, 1.0, 1))
    assert run.step(0, counting(2))[0][0].shape == (2, 1)


# Bounds ---------------------------------------------------------------------------------------------------------------


def test_a_layer_in_which_one_term_alone_has_a_bias_gets_noise_on_it() -> None:
    def factors(columns: npt.NDArray[np.int64]) -> Factors:
        errors = np.ones((len(columns), 3))
        return [[Outer(columns, errors, 2, bias=False), Outer(columns, errors, 2, bias=True)]]

    (_, bias), *_ = training([0, 0], NoisedSteps("all", 1.0, 1.0, 1)).step(0, factors)
    assert bias.all(), "noise is 0 with a probability below 2**-30 each"


def test_the_bound_on_a_norm_allows_for_the_rounding_of_terms_that_cancel() -> None:
    """The bound allows for the rounding of two terms that cancel exactly."""
    x, e = np.full((1, 4), 1.0), np.full((1, 3), 1000.0)
    rounded = [
        [_Rounded(x, sign * e, 4, False, 1) for sign in (1.0, -1.0)],
    ]
    apart = 2 * math.sqrt(3 * 1000.0**2) * math.sqrt(4)
    (longest,) = _longest(rounded)
    assert apart * math.sqrt(512 * 2.0**-50) <= longest <= apart * math.sqrt(2048 * 2.0**-50)


@pytest.mark.parametrize("inputs", ["positions", "rows"])
@pytest.mark.parametrize("biases", [(True, True), (True, False), (False, False)])
def test_no_integer_gradient_is_longer_than_the_bound_on_it(inputs: str, biases: tuple[bool, bool]) -> None:
    """No integer gradient of two terms exceeds its bound, for any width of inputs."""
    rng = np.random.default_rng(5)
    for width in (3, 6000):
        one = 1 if inputs == "positions" else 2**14
        terms = [
            _Rounded(
                rng.integers(0, width, 2) if one == 1 else np.trunc(rng.normal(size=(2, width)) * one),
                np.trunc(rng.normal(size=(2, 4)) * 2**20),
                width,
                bias,
                one,
            )
            for bias in biases
        ]
        bounds = _longest([terms])
        for i in range(2):
            weight, bias = np.zeros((width, 4), object), np.zeros(4, object)
            for term in terms:
                x = np.arange(width) == term.inputs[i] if one == 1 else term.inputs[i]
                errors = np.array([int(e) for e in term.errors[i]], object)
                weight += np.outer(np.array([int(v) for v in x], object), errors)
                bias += errors * (term.one if term.bias else 0)
            exact = int((weight**2).sum() + (bias**2).sum())
            margin = Fraction(bounds[i]) ** 2 / exact - 1
            assert Fraction(2 * width + 4, 2**52) <= margin <= Fraction(1, 10**6)


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
def test_an_example_that_is_not_finite_adds_not_one_unit(wrong: float) -> None:
    for inputs, errors in (([[wrong, 1.0]], [[1.0, 1.0]]), ([[1.0, 1.0]], [[wrong, 1.0]])):
        rounded = clip_sums([[Outer(np.array(inputs), np.array(errors), 2)]], 1.0)
        ((weight, bias),) = integer_sums(rounded, np.array([1]))
        assert not weight.any() and not bias.any()


def test_products_of_numbers_of_nothing_but_ones_are_exact() -> None:
    """The largest sums of pieces are exact; one bit more, and floats would round them."""
    for rows, bits in itertools.product((1, 2, 3, 7, 8, 15, 100), (20, 24, 25, 26, 27, 31)):
        ones = np.full((rows, 1), 2**bits - 1, np.int64)
        exact = rows * (2**bits - 1) ** 2
        assert int(exact_product(ones, ones)[0, 0]) == (exact + 2**63) % 2**64 - 2**63
        assert int(exact_product(-ones, ones)[0, 0]) == (-exact + 2**63) % 2**64 - 2**63
