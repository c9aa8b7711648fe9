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
from veilog.measures.similarity import _bounds, difference, measure
from veilog.measures.similarity.difference import Buffer, absolute_log_difference, absolute_log_differences
from veilog.measures.similarity.distances import CostKind, cost_of, edit_costs, edit_distances, levenshtein_of
from veilog.measures.similarity.measure import Matching, relative_log_similarities, relative_log_similarity
from veilog.measures.similarity.transport import transport

SEQUENCE = st.lists(st.sampled_from("abcd"), max_size=7).map(tuple)
LOG = st.dictionaries(SEQUENCE, st.integers(1, 30), min_size=1, max_size=25).map(Variants.from_dict)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few boxes and small blocks, so that small logs have what large ones have."""
    monkeypatch.setattr(_bounds, "_BOXES", 6)
    monkeypatch.setattr(_bounds, "_GROUPS", 3)
    monkeypatch.setattr(_bounds, "_STRIP", 8)
    monkeypatch.setattr(_bounds, "_SAMPLED_PAIRS", 400)


@pytest.fixture(params=["all pairs", "near pairs"])
def way(request: pytest.FixtureRequest) -> Iterator[None]:
    """Bounds of pairs whose distances are all computed, and of more."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "near pairs":
            patch.setattr(_bounds, "NEAR_PAIRS", 30)
            patch.setattr(_bounds, "_RENEWED_PAIRS", 10)
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


@pytest.mark.slow
@pytest.mark.usefixtures("way")
@given(LOG, LOG, st.sampled_from(["length", "maximum"]))
@settings(max_examples=60, deadline=None)
def test_the_difference_is_in_its_interval(original: Variants, released: Variants, buffer: Buffer) -> None:
    true = absolute_log_difference(original, released, buffer=buffer)
    bounded = absolute_log_difference(original, released, buffer=buffer, most_pairs=0)
    assert bounded.lower <= true.value <= bounded.value
    assert (bounded.unmatched, bounded.matched) == (true.unmatched, true.matched)


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
@pytest.mark.parametrize("kind", ["plain", "normalised", "metric"])
def test_no_pair_is_nearer_than_its_boxes(kind: CostKind) -> None:
    rng = np.random.default_rng(3)
    rows, columns = _strings(rng, 60), _strings(rng, 50)
    found = _bounds.near_distances(rows, columns)
    edits = levenshtein_of(rows, columns)
    length, other = (np.array([len(s) for s in side]) for side in (rows, columns))
    true = cost_of(kind, edits, length[:, None], other)
    boxes = np.ix_(*found.boxes)
    far = ~found.near[boxes]
    assert (found.far(kind)[boxes][far] <= 1e-6 + true[far]).all()
    assert all((part == edits[np.ix_(members, others)]).all() for members, others, part in found.blocks)
    assert sum(part.size for *_, part in found.blocks) == (~far).sum()


@pytest.mark.usefixtures("way")
def test_both_are_what_each_is() -> None:
    original = Variants.from_dict({("a", "b"): 5, ("a", "c"): 3, ("b",): 2, (): 1})
    released = Variants.from_dict({("a", "b"): 2, ("c", "c", "a"): 3, ("b", "d"): 9})
    direct, exact = relative_log_similarities(original, released, most_pairs=0)
    assert direct == relative_log_similarity(original, released, most_pairs=0)
    assert exact == relative_log_similarity(original, released, matching="exact", most_pairs=0)
    by_length, by_maximum = absolute_log_differences(original, released, most_pairs=0)
    assert by_length == absolute_log_difference(original, released, most_pairs=0)
    assert by_maximum == absolute_log_difference(original, released, buffer="maximum", most_pairs=0)
    assert relative_log_similarities(original, released)[0] == relative_log_similarity(original, released)


def _supplied(plan: _bounds.Flows, rows: int, columns: int) -> tuple[list[int], list[int]]:
    """Return the mass from every row and to every column."""
    assert (plan.mass > 0).all()
    left = np.bincount(plan.rows, weights=plan.mass, minlength=rows)
    return left.tolist(), np.bincount(plan.columns, weights=plan.mass, minlength=columns).tolist()


def _strings(rng: np.random.Generator, count: int) -> list[str]:
    return sorted({"".join(rng.choice(list("abc"), size=rng.integers(1, 9))) for _ in range(count)})


@pytest.mark.parametrize("times", [40, 1])
@pytest.mark.parametrize("kind", ["plain", "normalised", "metric"])
@pytest.mark.parametrize("buffer", [None, False, True], ids=["", "row", "column"])
def test_an_auction_bounds_the_optimum(
    monkeypatch: pytest.MonkeyPatch, kind: CostKind, buffer: bool | None, times: int
) -> None:
    """Also with prices of a sample alone, and where what is left is laid out in order."""
    monkeypatch.setattr(_bounds, "_TIMES", times)
    for seed in range(8):
        rng = np.random.default_rng(seed)
        rows, columns = _strings(rng, 90), _strings(rng, 30)
        given = None if buffer is None else rng.integers(0, 5, size=len(rows if buffer else columns))
        costs = _bounds.near_distances(rows, columns, budget=(1 << 20, 900)[seed % 2]).costs(
            kind, given, column=bool(buffer)
        )
        exact = edit_costs(edit_distances(rows, columns), kind, given, column=bool(buffer))
        a, b = (rng.integers(1, 20, size=count) for count in costs.shape)
        a[0] += max(0, b.sum() - a.sum())
        b[0] += max(0, a.sum() - b.sum())
        plan, bids = _bounds.auction_off(a, b, costs)
        assert _supplied(plan, *costs.shape) == (a.tolist(), b.tolist())
        matrix = np.empty(costs.shape)
        exact.fill(0, matrix)
        optimum, total = transport(a, b, exact).cost, float(a.sum())
        assert bids.lower(a, b) <= optimum <= matrix[plan.rows, plan.columns] @ plan.mass + 1e-9 * total
        assert seed % 2 or optimum - bids.lower(a, b) <= 0.25 * matrix.mean() * total


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
        "absolute_log_difference",
        "absolute_log_difference_maximum",
    }
    fields = result.to_json()
    for name, (low, high) in result.intervals.items():
        assert fields[name] is None
        assert low - 1e-9 <= getattr(true, name) <= high + 1e-9
        assert result.not_computed[name].code == "measure-bounded"
    assert json.loads(json.dumps(fields))["intervals"]["absolute_log_difference"] == list(
        result.intervals["absolute_log_difference"]
    )
    shown = Console(width=200, file=io.StringIO())
    shown.print(comparison_table(result))
    low, high = result.intervals["relative_log_similarity"]
    assert f"{low:.4f} to {high:.4f}" in shown.file.getvalue()  # type: ignore[attr-defined]
    assert f"from {low:.2f} to {high:.2f} of 1" in result.verdict
