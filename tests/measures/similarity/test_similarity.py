"""Similarity and difference meet the papers' examples, optima and invariances."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused
from scipy.optimize import linprog

import veilog.measures.similarity.transport as transport_module
from veilog.errors import ParameterError, SolverError
from veilog.logs.variants import Variants
from veilog.measures.similarity.difference import LogDifference, absolute_log_difference
from veilog.measures.similarity.measure import _to_units, relative_log_similarity
from veilog.measures.similarity.transport import LARGEST_MASS


def log(counts: Mapping[str, int]) -> Variants:
    """A log whose activities are letters."""
    return Variants.from_dict({tuple(word): n for word, n in counts.items()})


QUANTIFICATION_A = log({"abcd": 1, "acbd": 1, "aecd": 49, "aebd": 49})
QUANTIFICATION_B = log({"abcd": 50, "acbd": 50})
SUPPLEMENT_A = log({"a": 25, "ab": 25, "abc": 50})
SUPPLEMENT_B = log({"ab": 500, "abc": 250, "abcd": 250})

words = st.text("abc", max_size=5)
small_logs = st.dictionaries(words, st.integers(1, 9), min_size=1, max_size=6)


def edits(a: str, b: str) -> int:
    """Levenshtein distance by the textbook recurrence."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        diagonal, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (x != y))
    return row[-1]


def overlap_removed(a: Mapping[str, float], b: Mapping[str, float]) -> tuple[dict[str, float], dict[str, float]]:
    left = {w: x - min(x, b.get(w, 0)) for w, x in a.items()}
    right = {w: x - min(x, a.get(w, 0)) for w, x in b.items()}
    return {w: x for w, x in left.items() if x > 0}, {w: x for w, x in right.items() if x > 0}


def least_cost(a: Mapping[str, float], b: Mapping[str, float]) -> float:
    """The linear programme of the earth mover's distance, as the paper writes it."""
    if not a:
        return 0.0
    cost = np.array([[edits(x, y) / max(len(x), len(y), 1) for y in b] for x in a])
    rows, columns = cost.shape
    sums = np.vstack([np.kron(np.eye(rows), np.ones(columns)), np.kron(np.ones(rows), np.eye(columns))])
    result = linprog(cost.ravel(), A_eq=sums, b_eq=[*a.values(), *b.values()], method="highs")
    assert result.status == 0
    return float(result.fun)


def flow_cost(a: Mapping[str, int], b: Mapping[str, int], buffer: str) -> int:
    """Algorithm 2 of the supplement by networkx' network simplex."""
    left, right = overlap_removed(a, b)
    largest = max((edits(x, y) for x in left for y in right), default=0) + 10
    missing = int(sum(left.values()) - sum(right.values()))
    graph = nx.DiGraph()
    for x, n in left.items():
        graph.add_node(("left", x), demand=-n)
    for y, n in right.items():
        graph.add_node(("right", y), demand=n)
    for x in left:
        for y in right:
            graph.add_edge(("left", x), ("right", y), weight=edits(x, y))
    if missing > 0:
        graph.add_node("buffer", demand=missing)
        for x in left:
            graph.add_edge(("left", x), "buffer", weight=len(x) if buffer == "length" else largest)
    elif missing < 0:
        graph.add_node("buffer", demand=missing)
        for y in right:
            graph.add_edge("buffer", ("right", y), weight=len(y) if buffer == "length" else largest)
    return int(nx.min_cost_flow_cost(graph)) if graph else 0


@pytest.mark.parametrize("matching", ["direct", "exact"])
def test_worked_example_of_privacy_quantification(matching):
    """The paper's Table 1 sums to 2 * 0.49 * 0.25 = 0.245; it prints 0.24 and 0.76."""
    result = relative_log_similarity(QUANTIFICATION_A, QUANTIFICATION_B, matching=matching)
    assert (result.loss, result.value) == (0.245, 0.755)
    assert (round(result.loss, 2), round(result.value, 2)) == (0.24, 0.76)
    assert result.gap <= 1e-9


@pytest.mark.parametrize("matching", ["direct", "exact"])
def test_worked_example_of_the_supplement(matching):
    result = relative_log_similarity(SUPPLEMENT_A, SUPPLEMENT_B, matching=matching)
    assert (result.loss, result.value) == (0.1875, 0.8125)
    assert result.gap <= 1e-9


def test_the_mass_left_after_the_overlap_is_not_scaled_back():
    result = relative_log_similarity(log({"ab": 3, "cd": 1}), log({"ab": 3, "ce": 1}))
    assert result.loss == 0.25 * 0.5
    assert (result.rows, result.columns) == (1, 1)


def test_direct_matching_loses_where_the_distance_breaks_the_triangle_inequality():
    """ab to ba costs 1, but ab to aba and aba to ba only 1/3 each."""
    a, b = log({"ab": 1, "aba": 1}), log({"aba": 1, "ba": 1})
    direct = relative_log_similarity(a, b, matching="direct")
    exact = relative_log_similarity(a, b, matching="exact")
    assert direct.value == 0.5
    assert exact.value == pytest.approx(2 / 3, abs=1e-15)


def test_worked_example_of_the_absolute_log_difference():
    result = absolute_log_difference(SUPPLEMENT_A, SUPPLEMENT_B)
    assert result == LogDifference(2525, 0, "length", None, 900, 75, 1, 3)


def test_the_maximum_buffer_costs_ten_more_than_the_largest_distance():
    """a to abcd is 3 edits, so 900 cases cost 13 each, and the other 25 one edit each."""
    result = absolute_log_difference(SUPPLEMENT_A, SUPPLEMENT_B, buffer="maximum")
    assert result.buffer_cost == 13
    assert result.value == 900 * 13 + 25


@pytest.mark.nightly
@given(small_logs, small_logs)
def test_similarity_is_the_optimum_of_the_linear_programme(a, b):
    shares_a = {w: n / sum(a.values()) for w, n in a.items()}
    shares_b = {w: n / sum(b.values()) for w, n in b.items()}
    exact = relative_log_similarity(log(a), log(b), matching="exact")
    direct = relative_log_similarity(log(a), log(b))
    assert exact.loss == pytest.approx(least_cost(shares_a, shares_b), abs=1e-9)
    left, right = overlap_removed(
        {w: n * sum(b.values()) for w, n in a.items()}, {w: n * sum(a.values()) for w, n in b.items()}
    )
    assert direct.loss == pytest.approx(least_cost(left, right) / sum(a.values()) / sum(b.values()), abs=1e-9)
    assert direct.value <= exact.value + exact.gap
    for result in (exact, direct):
        assert 0.0 <= result.lower <= result.value <= result.upper <= 1.0
        assert result.gap <= 1e-9


@pytest.mark.slow
@given(small_logs, small_logs, st.sampled_from(["length", "maximum"]))
def test_difference_is_the_minimum_cost_flow(a, b, buffer):
    result = absolute_log_difference(log(a), log(b), buffer=buffer)
    assert (result.value, result.gap) == (flow_cost(a, b, buffer), 0)
    assert result.unmatched == abs(sum(a.values()) - sum(b.values()))


@pytest.mark.slow
@settings(max_examples=30)
@given(small_logs, small_logs, st.randoms(use_true_random=False))
def test_neither_sides_nor_order_of_rows_nor_unused_labels_matter(a, b, random):
    items = list(a.items())
    random.shuffle(items)
    labels = ["unused", *"cab"]
    codes = [labels.index(x) for word, _ in items for x in word]
    offsets = np.cumsum([0, *(len(word) for word, _ in items)])
    again = Variants.from_arrays(labels, codes, offsets, [n for _, n in items])
    for matching in ("direct", "exact"):
        value = relative_log_similarity(log(a), log(b), matching=matching).value
        assert relative_log_similarity(again, log(b), matching=matching).value == value
        assert relative_log_similarity(log(b), log(a), matching=matching).value == value
    assert absolute_log_difference(again, log(b)).value == absolute_log_difference(log(b), log(a)).value


def test_activities_are_compared_by_name_whatever_their_codes():
    """b has code 0 in one log and 1 in the other."""
    assert relative_log_similarity(log({"bc": 1}), log({"ab": 1})).value == 0.0
    assert relative_log_similarity(log({"bc": 1}), log({"abc": 1})).value == pytest.approx(2 / 3, abs=1e-15)


def test_empty_logs():
    empty, other = log({}), log({"ab": 2, "": 1})
    assert relative_log_similarity(empty, empty).value == 1.0
    for pair in ((empty, other), (other, empty)):
        with refused(ParameterError, "similarity-without-cases"):
            relative_log_similarity(*pair)
        assert absolute_log_difference(*pair).value == 2 * 2
        assert absolute_log_difference(*pair, buffer="maximum").value == 3 * 10
    assert absolute_log_difference(empty, empty).value == 0


def test_empty_traces_are_variants_like_any_other():
    assert relative_log_similarity(log({"": 1}), log({"": 5})).value == 1.0
    assert relative_log_similarity(log({"": 1, "a": 1}), log({"": 2})).value == 0.5
    assert absolute_log_difference(log({"": 1}), log({"abc": 1})).value == 3


def test_counts_beyond_what_floats_hold_exactly():
    """A common denominator of 1e18 is rounded, and the interval covers the rounding."""
    n, m = 10**9 + 7, 10**9 + 9
    a, b = log({"ab": n - 2, "ac": 2}), log({"ab": 3, "bd": m - 3})
    result = relative_log_similarity(a, b, matching="exact")
    expected = least_cost({"ab": (n - 2) / n, "ac": 2 / n}, {"ab": 3 / m, "bd": (m - 3) / m})
    assert result.value == pytest.approx(expected and 1 - expected, abs=1e-9)
    assert 0.0 < result.gap <= 1e-9
    difference = absolute_log_difference(a, b)
    assert (difference.value, difference.gap) == (
        flow_cost({"ab": n - 2, "ac": 2}, {"ab": 3, "bd": m - 3}, "length"),
        0,
    )


def test_rounded_shares_say_how_much_was_rounded():
    whole = 3 * 2**60
    a, b = [2**60, 2**61], [3 * 2**60 - 7, 7]
    units_a, units_b, unit, slack = _to_units(a, b, whole)
    assert units_a.sum() == units_b.sum() == LARGEST_MASS
    changes = [abs(Fraction(m, whole) - int(u) * unit) for m, u in zip([*a, *b], [*units_a, *units_b], strict=True)]
    assert sum(changes) / 2 == slack > 0
    assert _to_units(a, [2**61, 2**60], whole)[2:] == (Fraction(1, 3), 0)


def test_long_traces_and_many_activities():
    labels = [f"activity {i}" for i in range(600)]
    a = Variants.from_sequences([labels * 3, []])
    b = Variants.from_sequences([labels * 2, [*labels, "x"]])
    assert relative_log_similarity(a, b).loss == pytest.approx(0.5 * 600 / 1800 + 0.5, abs=1e-15)
    assert absolute_log_difference(a, b).value == 600 + 601


@pytest.mark.nightly
def test_real_log_against_itself(logs: Path):
    from veilog.logs.files import read

    variants = read(logs / "bpic2013_incidents.xes.gz").variants
    for matching in ("direct", "exact"):
        assert relative_log_similarity(variants, variants, matching=matching).value == 1.0
    assert absolute_log_difference(variants, variants).value == 0


@pytest.mark.slow
def test_distances_that_are_not_kept_give_the_same(random_logs):
    a, b = random_logs
    assert relative_log_similarity(a, b, memory=0).value == relative_log_similarity(a, b).value
    assert absolute_log_difference(a, b, memory=0) == absolute_log_difference(a, b)
    kept = absolute_log_difference(a, b, buffer="maximum")
    assert absolute_log_difference(a, b, buffer="maximum", memory=0) == kept


def test_an_early_stop_gives_an_interval_that_holds_the_value(random_logs):
    a, b = random_logs
    value = relative_log_similarity(a, b).value
    early = relative_log_similarity(a, b, tolerance=0.1)
    assert early.lower <= value <= early.upper
    assert 1e-9 < early.gap <= 0.1
    assert early.value <= value


def test_progress_is_told_and_may_interrupt(random_logs):
    texts: list[str] = []
    relative_log_similarity(*random_logs, progress=lambda text, fraction: texts.append(text))
    assert any("round 2" in text for text in texts)

    def interrupt(text: str, fraction: float | None) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        relative_log_similarity(*random_logs, progress=interrupt)


def test_logs_are_left_as_they_were(random_logs):
    before = copy.deepcopy(random_logs)
    relative_log_similarity(*random_logs)
    absolute_log_difference(*random_logs)
    assert random_logs == before


def test_a_solver_that_gives_up_is_not_believed(random_logs, monkeypatch):
    solve = transport_module._solve
    monkeypatch.setattr(transport_module, "_solve", lambda a, b, arcs, prices, pivots: solve(a, b, arcs, prices, 5))
    with pytest.raises(SolverError):
        relative_log_similarity(*random_logs)
    with pytest.raises(SolverError):
        absolute_log_difference(*random_logs)


@pytest.mark.parametrize("arguments", [{"matching": "fuzzy"}, {"tolerance": -1.0}, {"tolerance": float("nan")}])
def test_parameters_are_checked(arguments):
    with pytest.raises(ParameterError):
        relative_log_similarity(SUPPLEMENT_A, SUPPLEMENT_B, **arguments)
    with pytest.raises(ParameterError):
        absolute_log_difference(SUPPLEMENT_A, SUPPLEMENT_B, buffer="none")


@pytest.fixture(scope="module")
def random_logs() -> tuple[Variants, Variants]:
    """Two logs large enough for column generation."""
    return random_log(420, 1), random_log(350, 2)


def random_log(variants: int, seed: int) -> Variants:
    random = np.random.default_rng(seed)
    rows = {tuple(random.choice(list("abcdefgh"), size=random.integers(1, 16)).tolist()) for _ in range(2 * variants)}
    chosen = sorted(rows)[:: max(1, len(rows) // variants)][:variants]
    return Variants.from_sequences(chosen, random.integers(1, 50, size=len(chosen)).tolist())
