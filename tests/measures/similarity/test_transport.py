"""The transport solver is exact by all arcs and by column generation."""

from __future__ import annotations

import numpy as np
import ot
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment, linprog

import veilog.measures.similarity.distances as distances_module
import veilog.measures.similarity.transport as transport_module
from veilog.errors import SolverError
from veilog.logs.edits import edit_matrix
from veilog.logs.variants import Variants
from veilog.measures.similarity.distances import as_strings, edit_distances
from veilog.measures.similarity.transport import LARGEST_MASS, Costs, matrix_costs, transport


def problem(rows: int, columns: int, seed: int, *, integral: bool = False, mass: int = 1000):
    """Costs between random points of the plane, and random masses with the same sum."""
    random = np.random.default_rng(seed)
    x, y = random.random((rows, 2)), random.random((columns, 2))
    matrix = np.abs(x[:, None] - y[None]).sum(axis=2)
    a, b = random.integers(1, mass, rows), random.integers(1, mass, columns)
    a[0] += max(0, b.sum() - a.sum())
    b[0] += max(0, a.sum() - b.sum())
    return a, b, np.rint(matrix * 20).astype(np.int64) if integral else matrix


def feasible(plan, a, b) -> bool:
    out = np.bincount(plan.rows, weights=plan.mass, minlength=len(a))
    came = np.bincount(plan.columns, weights=plan.mass, minlength=len(b))
    return bool((plan.mass >= 0).all() and (out == a).all() and (came == b).all())


def linear_programme(a, b, matrix) -> float:
    rows, columns = matrix.shape
    sums = np.vstack([np.kron(np.eye(rows), np.ones(columns)), np.kron(np.ones(rows), np.eye(columns))])
    return float(linprog(matrix.ravel(), A_eq=sums, b_eq=np.concatenate([a, b]), method="highs").fun)


@pytest.fixture
def few_arcs(monkeypatch):
    """Force column generation from the smallest problem on, with few arcs and blocks."""
    monkeypatch.setattr(transport_module, "_DENSE", 0)
    monkeypatch.setattr(transport_module, "_STRIPS", 2)
    monkeypatch.setattr(transport_module, "_BLOCK", 64)


@pytest.mark.slow
@settings(max_examples=60)
@given(st.integers(1, 7), st.integers(1, 7), st.integers(0, 10**6), st.booleans(), st.booleans())
def test_optimum_of_small_problems(rows, columns, seed, integral, generate):
    a, b, matrix = problem(rows, columns, seed, integral=integral)
    with pytest.MonkeyPatch.context() as patch:
        if generate:
            patch.setattr(transport_module, "_DENSE", 0)
            patch.setattr(transport_module, "_STRIPS", 2)
            patch.setattr(transport_module, "_BLOCK", 8)
        plan = transport(a, b, matrix_costs(matrix))
    assert feasible(plan, a, b)
    assert plan.cost == pytest.approx(linear_programme(a, b, matrix), rel=1e-9)
    assert plan.lower <= plan.cost
    assert plan.gap <= (0 if integral else 1e-9 * a.sum())


@pytest.mark.slow
@pytest.mark.parametrize("integral", [False, True])
@pytest.mark.parametrize(("rows", "columns"), [(300, 260), (900, 30), (30, 900)])
def test_column_generation_agrees_with_all_arcs(rows, columns, integral, monkeypatch):
    a, b, matrix = problem(rows, columns, 3, integral=integral)
    monkeypatch.setattr(transport_module, "_DENSE", 0)
    generated = transport(a, b, matrix_costs(matrix))
    monkeypatch.setattr(transport_module, "_DENSE", rows * columns)
    dense = transport(a, b, matrix_costs(matrix))
    assert (dense.rounds, generated.rounds > 1) == (1, True)
    assert generated.cost == pytest.approx(dense.cost, rel=1e-12)
    assert feasible(generated, a, b)


def test_column_generation_from_hardly_any_arcs(few_arcs):
    a, b, matrix = problem(120, 110, 5)
    plan = transport(a, b, matrix_costs(matrix))
    assert plan.cost / a.sum() == pytest.approx(ot.emd2(a / a.sum(), b / b.sum(), matrix, numItermax=10**8), rel=1e-9)


def test_assignment_problem():
    """All masses 1: as degenerate as it gets."""
    random = np.random.default_rng(8)
    matrix = random.integers(0, 12, (300, 300))
    ones = np.ones(300, dtype=np.int64)
    plan = transport(ones, ones, matrix_costs(matrix))
    assert (plan.cost, plan.gap) == (matrix[linear_sum_assignment(matrix)].sum(), 0)


@pytest.mark.parametrize("integral", [False, True])
def test_all_costs_equal(integral):
    matrix = np.ones((300, 250), dtype=np.int64 if integral else float)
    a, b, _ = problem(300, 250, 2)
    assert transport(a, b, matrix_costs(matrix)).cost == a.sum()


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(1, 400), (400, 1), (1, 1), (2, 70_000)])
def test_one_row_or_one_column(shape):
    a, b, matrix = problem(*shape, 4)
    plan = transport(a, b, matrix_costs(matrix))
    assert feasible(plan, a, b)
    if shape[0] == 1:
        assert plan.cost == pytest.approx(float(matrix[0] @ b), rel=1e-12)


def test_huge_masses_move_to_the_last_unit():
    a, b, matrix = problem(280, 270, 6, integral=True, mass=10**10)
    plan = transport(a, b, matrix_costs(matrix))
    assert feasible(plan, a, b)
    assert plan.gap == 0
    whole = np.array([LARGEST_MASS - 5, 5])
    assert transport(whole, whole[::-1].copy(), matrix_costs(np.array([[0, 1], [1, 0]]))).cost == LARGEST_MASS - 10


@pytest.mark.slow
def test_the_lower_bound_holds_at_every_early_stop():
    a, b, matrix = problem(400, 380, 7)
    optimum = transport(a, b, matrix_costs(matrix)).cost
    seen = set()
    for tolerance in (1.0, 0.1, 0.01, 1e-3, 1e-6):
        plan = transport(a, b, matrix_costs(matrix), tolerance=tolerance)
        assert plan.lower <= optimum * (1 + 1e-12)
        assert plan.cost >= optimum * (1 - 1e-12)
        assert plan.gap <= tolerance * a.sum()
        seen.add(plan.rounds)
    assert len(seen) > 1


@pytest.mark.parametrize("shape", [(60, 50), (400, 300)])
@pytest.mark.parametrize("pivots", [1, 20, 200])
def test_an_iteration_limit_never_gives_a_wrong_value(shape, pivots):
    """POT only warns about a wrong value when it stops early; ours raises an error."""
    a, b, matrix = problem(*shape, 9)
    with pytest.raises(SolverError):
        transport(a, b, matrix_costs(matrix), pivots=pivots)


@pytest.mark.parametrize("lie", ["suboptimal", "infeasible", "bad prices", "nan prices"])
def test_a_solver_that_lies_is_found_out(lie, monkeypatch):
    a, b, matrix = problem(60, 50, 10)
    honest = ot.emd

    def lying(sources, targets, costs, **options):
        if lie == "suboptimal":
            worst = costs.copy()
            worst.data = costs.data.max() - costs.data
            plan, log = honest(sources, targets, worst, **options)
            return plan, {**log, "u": np.zeros(len(sources)), "v": np.zeros(len(targets)), "warning": None}
        plan, log = honest(sources, targets, costs, **options)
        if lie == "infeasible":
            plan.data[:] = 0  # nothing moved, for nothing
        elif lie == "bad prices":
            log["v"] = log["v"] + np.linspace(0, 1, len(targets))
        else:
            log["v"] = np.full(len(targets), np.nan)
        return plan, log

    monkeypatch.setattr(ot, "emd", lying)
    with pytest.raises(SolverError):
        transport(a, b, matrix_costs(matrix))


def test_only_blocks_of_the_costs_are_asked_for(few_arcs):
    a, b, matrix = problem(50, 40, 11)
    largest = 0

    def fill(start, out):
        nonlocal largest
        largest = max(largest, out.size)
        out[...] = matrix[start : start + len(out)]

    transport(a, b, Costs(matrix.shape, fill, lambda i, j: matrix[i, j]))
    assert largest <= 64


def test_levenshtein_blocks_align_labels():
    a = Variants.from_dict({("b", "c"): 1, (): 1}).sequences
    b = Variants.from_dict({("a", "b", "c"): 1, ("c",): 1}).sequences
    block = edit_matrix(*as_strings(a, b))
    assert [[a[i], b[j], int(block[i, j])] for i in range(2) for j in range(2)] == [
        [(), ("c",), 1],
        [(), ("a", "b", "c"), 3],
        [("b", "c"), ("c",), 1],
        [("b", "c"), ("a", "b", "c"), 1],
    ]


@pytest.mark.parametrize(("length", "dtype"), [(255, np.uint8), (256, np.uint16), (1800, np.uint16)])
def test_distances_are_kept_in_a_type_that_holds_them(length, dtype):
    a = Variants.from_dict({("a",) * length: 1, ("a",): 1}).sequences
    b = Variants.from_dict({("b",) * length: 1, (): 1}).sequences
    block = edit_matrix(*as_strings(a, b))
    assert block.dtype == dtype
    assert block.max() == length


def test_distances_kept_or_not_are_the_same():
    a = Variants.from_dict({tuple("abcab"): 1, tuple("ca"): 1, (): 1}).sequences
    b = Variants.from_dict({tuple("bb"): 1, tuple("aacab"): 1}).sequences
    kept, again = (edit_distances(*as_strings(a, b), keep_bytes=n) for n in (1000, 0))
    assert again.kept is None
    assert kept.kept is not None
    assert np.array_equal(kept.block(0, 3), again.block(0, 3))
    i, j = np.array([0, 2, 1]), np.array([1, 0, 1])
    assert np.array_equal(kept.pairs(i, j), again.pairs(i, j))
    assert kept.largest() == again.largest() == 5


def test_more_activities_than_there_are_characters(monkeypatch):
    a = Variants.from_dict({tuple("abcab"): 1, tuple("ca"): 1, (): 1}).sequences
    b = Variants.from_dict({tuple("bdb"): 1, tuple("aacab"): 1}).sequences
    expected = edit_matrix(*as_strings(a, b))
    monkeypatch.setattr(distances_module, "_CHARACTERS", 3)
    assert isinstance(as_strings(a, b)[0][0], tuple)
    assert np.array_equal(edit_matrix(*as_strings(a, b)), expected)


@pytest.mark.slow
def test_activities_whose_codes_are_no_characters_of_their_own():
    """Codes from 0xD800 to 0xDFFF stand for halves of characters in UTF-16."""
    labels = [f"{i:05}" for i in range(0xD802)]
    a = Variants.from_sequences([labels[-1:], labels]).sequences
    b = Variants.from_sequences([labels[-2:], labels[:-1]]).sequences
    assert edit_matrix(*as_strings(a, b)).tolist() == [[1, len(labels) - 1], [len(labels) - 2, 1]]
