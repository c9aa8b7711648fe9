"""Bounds hold for every pair of logs with too many pairs of variants."""

import io
import json
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from veilog import Variants, compare
from veilog.cli.shared.measures import comparison_table
from veilog.errors import ParameterError
from veilog.logs.edits import edit_matrix
from veilog.measures.similarity import _bounds, difference, measure
from veilog.measures.similarity.difference import Buffer, absolute_log_difference
from veilog.measures.similarity.distances import CostKind, cost_of
from veilog.measures.similarity.measure import Matching, relative_log_similarities, relative_log_similarity
from veilog.measures.similarity.transport import matrix_costs, transport

SEQUENCE = st.lists(st.sampled_from("abcd"), max_size=7).map(tuple)
LOG = st.dictionaries(SEQUENCE, st.integers(1, 30), min_size=1, max_size=25).map(Variants.from_dict)


@pytest.fixture(params=["all pairs", "near pairs", "few rows"])
def way(request: pytest.FixtureRequest) -> Iterator[None]:
    """Set up bounds by all distances, by those of near pairs, or by a few drawn rows."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param != "all pairs":
            for name, small in (("_BOX", 4), ("_COLUMN_BOX", 2), ("_LISTED", (3, 3))):
                patch.setattr(_bounds, name, small)
            for home in (_bounds, measure):
                patch.setattr(home, "BOUNDED_BY", 30)
        if request.param == "few rows":
            patch.setattr(_bounds, "_SAMPLED_PAIRS", 60)
        yield


@pytest.mark.slow
@pytest.mark.usefixtures("way")
@given(LOG, LOG, st.sampled_from(["direct", "exact"]))
@settings(max_examples=60, deadline=None)
def test_the_similarity_is_in_its_interval(original: Variants, released: Variants, matching: Matching) -> None:
    true = relative_log_similarity(original, released, matching=matching)
    bounded = relative_log_similarity(original, released, matching=matching, most_pairs=0)
    assert bounded.lower - 1e-9 <= true.value <= bounded.upper + 1e-9
    assert bounded.value == bounded.lower
    assert bounded.bounded == (true.rows * true.columns > 0)


def test_a_sample_of_rows_is_named_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    logs = [Variants.from_dict({tuple(s): 1 for s in _strings(rng, 400)}) for _ in range(2)]
    exact = relative_log_similarity(*logs)
    assert relative_log_similarity(*logs, most_pairs=0).certain
    for home, name in ((_bounds, "_SAMPLED_PAIRS"), (measure, "BOUNDED_BY")):
        monkeypatch.setattr(home, name, exact.columns * exact.rows // 2)
    sampled = relative_log_similarity(*logs, most_pairs=0)
    assert not sampled.certain
    assert sampled.lower <= exact.value <= sampled.upper
    assert relative_log_similarity(*logs, most_pairs=0) == sampled


@pytest.mark.parametrize("buffer", ["length", "maximum"])
def test_the_difference_of_many_variants_is_left_out(buffer: Buffer) -> None:
    original, released = Variants.from_dict({("a",): 5, ("b",): 1}), Variants.from_dict({("c",): 2})
    with pytest.raises(ParameterError) as error:
        absolute_log_difference(original, released, buffer=buffer, most_pairs=1)
    assert error.value.code == "difference-of-many-variants"
    assert error.value.message.values == {"pairs": 2, "most": 1}


@pytest.mark.slow
@given(LOG, LOG)
@settings(max_examples=30, deadline=None)
def test_exact_matching_is_bounded_by_what_direct_matching_leaves(original: Variants, released: Variants) -> None:
    true = relative_log_similarity(original, released, matching="exact")
    direct = relative_log_similarity(original, released)
    between = relative_log_similarity(original, released, matching="exact", most_pairs=direct.rows * direct.columns)
    assert between.lower - 1e-9 <= true.value <= between.upper + 1e-9
    if between.bounded:
        assert between.lower == pytest.approx(direct.value, abs=1e-9)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("kind", ["normalised", "metric"])
@pytest.mark.parametrize("highest", [0.0, 0.3, -0.2])
def test_no_plan_costs_less_whatever_the_prices(kind: CostKind, highest: float) -> None:
    """Rows know few columns, and no bids set the prices."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        problem, matrix = _problem(rng, kind)
        near = rng.integers(0, len(problem.columns), size=(len(problem.rows), 3))
        prices = highest - rng.random(len(problem.columns)) * (seed / 20)
        known = _matrix(problem, "normalised")[np.arange(len(near))[:, None], near]
        given = _bounds.Prices(prices, near, known)
        (low,), _ = _values(_bounds.least_costs(problem, given, [kind]))
        assert low <= transport(problem.a, problem.b, matrix_costs(matrix)).cost + 1e-6


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("biddings", [2000, 1])
def test_a_cheap_plan_moves_everything(monkeypatch: pytest.MonkeyPatch, biddings: int) -> None:
    """Also where bidding ends early, and where what is left is laid out in order."""
    monkeypatch.setattr(_bounds, "_BIDDINGS", biddings)
    for seed in range(8):
        problem, matrix = _problem(np.random.default_rng(seed), "normalised")
        flows, edits, prices = _bounds.cheap_plan(problem)
        assert _supplied(flows, *matrix.shape) == (problem.a.tolist(), problem.b.tolist())
        lengths = [np.array([len(s) for s in side]) for side in (problem.rows, problem.columns)]
        assert (edits == edit_matrix(problem.rows, problem.columns)[flows.rows, flows.columns]).all()
        costs = cost_of("normalised", edits, lengths[0][flows.rows], lengths[1][flows.columns])
        optimum = transport(problem.a, problem.b, matrix_costs(matrix)).cost
        assert _values(_bounds.least_costs(problem, prices, ["normalised"]))[0][0] <= optimum
        assert optimum <= costs @ flows.mass + 1e-9 <= 2.5 * optimum
        assert (prices.values <= 0).all()


def test_prices_that_are_too_high_are_made_smaller() -> None:
    problem, _ = _problem(np.random.default_rng(3), "normalised")
    given = _bounds.cheap_plan(problem)[2]
    high = _bounds.Prices(5 * given.values, given.known, given.costs)
    scaled, below, above = (
        _values(_bounds.least_costs(problem, prices, ["normalised"]))[0][0]
        for prices in (_bounds._scaled(problem, high), given, high)
    )
    assert scaled >= below > above


@pytest.mark.parametrize("law", ["rare", "even", "beta"])
def test_the_mean_is_seldom_above_its_bound(law: str) -> None:
    rng = np.random.default_rng(1)
    draw, mean = {
        "rare": (lambda: (rng.random(60) < 0.05).astype(float), 0.05),
        "even": (lambda: rng.random(60), 0.5),
        "beta": (lambda: rng.beta(0.3, 2.7, size=60), 0.1),
    }[law]
    bounds = [_bounds.highest_mean(draw(), 0.1) for _ in range(600)]
    assert np.mean([bound < mean for bound in bounds]) <= 0.1
    assert np.mean(bounds) < mean + 0.2
    assert _bounds.highest_mean(np.zeros(5000), 1e-6) < 0.005
    assert _bounds.highest_mean(np.ones(10), 1e-6) == 1


@pytest.mark.usefixtures("way")
def test_both_are_what_each_is() -> None:
    original = Variants.from_dict({("a", "b"): 5, ("a", "c"): 3, ("b",): 2, (): 1})
    released = Variants.from_dict({("a", "b"): 2, ("c", "c", "a"): 3, ("b", "d"): 9})
    direct, exact = relative_log_similarities(original, released, most_pairs=0)
    assert direct == relative_log_similarity(original, released, most_pairs=0)
    assert exact == relative_log_similarity(original, released, matching="exact", most_pairs=0)
    assert relative_log_similarities(original, released)[0] == relative_log_similarity(original, released)


def _supplied(plan: _bounds.Flows, rows: int, columns: int) -> tuple[list[int], list[int]]:
    """Return the mass from every row and to every column."""
    assert (plan.mass > 0).all()
    left = np.bincount(plan.rows, weights=plan.mass, minlength=rows)
    return left.tolist(), np.bincount(plan.columns, weights=plan.mass, minlength=columns).tolist()


def _strings(rng: np.random.Generator, count: int) -> list[str]:
    return sorted({"".join(rng.choice(list("abc"), size=rng.integers(1, 9))) for _ in range(count)})


def _problem(rng: np.random.Generator, kind: CostKind) -> tuple[_bounds.TransportProblem, np.ndarray]:
    rows, columns = _strings(rng, 90), _strings(rng, 30)
    a, b = (rng.integers(1, 20, size=len(side)) for side in (rows, columns))
    a[0] += max(0, b.sum() - a.sum())
    b[0] += max(0, a.sum() - b.sum())
    problem = _bounds.TransportProblem(rows, columns, a, b, pairs=_bounds.BOUNDED_BY)
    return problem, _matrix(problem, kind)


def _matrix(problem: _bounds.TransportProblem, kind: CostKind) -> np.ndarray:
    lengths = [np.array([len(s) for s in side]) for side in (problem.rows, problem.columns)]
    return cost_of(kind, edit_matrix(problem.rows, problem.columns), lengths[0][:, None], lengths[1])


def _values(found: tuple[dict[CostKind, float], bool]) -> tuple[list[float], bool]:
    return [*found[0].values()], found[1]


@pytest.mark.slow
def test_a_comparison_says_that_it_knows_an_interval_only(monkeypatch: pytest.MonkeyPatch) -> None:
    original = Variants.from_dict({("a", "b"): 5, ("a", "c"): 3, ("b",): 2})
    released = Variants.from_dict({("a", "b"): 2, ("c", "c", "a"): 3, ("b", "d"): 9})
    true = compare(original, released)
    assert true.intervals == {}
    for home in (measure, difference, _bounds):
        monkeypatch.setattr(home, "EXACT_PAIRS", 0)
    assert compare(original, released, exact=True).intervals == {}
    result = compare(original, released)
    assert set(result.intervals) == {
        "relative_log_similarity",
        "relative_log_similarity_exact",
    }
    assert result.not_computed["absolute_log_difference"].code == "difference-of-many-variants"
    fields = result.to_json()
    for name, (low, high) in result.intervals.items():
        assert fields[name] is None
        assert low - 1e-9 <= getattr(true, name) <= high + 1e-9
        assert result.not_computed[name].code == "measure-bounded"
    assert json.loads(json.dumps(fields))["intervals"]["relative_log_similarity"] == list(
        result.intervals["relative_log_similarity"]
    )
    shown = Console(width=200, file=io.StringIO())
    shown.print(comparison_table(result))
    low, high = result.intervals["relative_log_similarity"]
    assert f"{low:.4f} to {high:.4f}" in shown.file.getvalue()  # type: ignore[attr-defined]
    assert f"from {low:.2f} to {high:.2f} of 1" in result.verdict
