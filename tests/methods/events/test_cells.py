"""Cells of cases: a rule for each case by itself, and what is likely of noisy counts by cell."""

import numpy as np
import pytest
from event_questions import exact, heard
from hypothesis import given, settings
from hypothesis import strategies as st
from logs_with_attributes import log_of
from time_tools import HOSPITAL, durations_of, timed

from veilog import Domain
from veilog.logs.variants import Repeated, Variants
from veilog.methods._events.attributes.domains import choose
from veilog.methods._events.attributes.synthesis import released_attributes
from veilog.methods._events.cells import CellRule, Kinds, apart_of, fit_margins, row_shares
from veilog.methods._events.times.histogram import last_standing_out
from veilog.privacy.cases import Cases
from veilog.privacy.curator import Curator
from veilog.privacy.mechanisms import noise

CASES = Variants.from_dict({("a", "b"): 40, ("a", "c"): 30, ("a", "b", "b", "d"): 20, ("c",): 10})


def repeated(variants: Variants) -> Repeated:
    return Repeated(variants.sequences, np.repeat(np.arange(len(variants)), variants.counts))


def block(paths: list[list[int]]) -> Cases:
    codes = np.array([code for path in paths for code in path], dtype=np.int64)
    offsets = np.concatenate([[0], np.cumsum([len(path) for path in paths])]).astype(np.int64)
    return Cases(codes, np.zeros(len(codes), dtype=np.int64), offsets, {})


@given(paths=st.lists(st.lists(st.integers(-1, 3), max_size=6), min_size=1, max_size=8), seed=st.integers(0, 50))
@settings(max_examples=60)
def test_the_cell_of_a_case_is_its_own(paths: list[list[int]], seed: int) -> None:
    """Whatever else is in the block, and in whatever order."""
    rule = CellRule.of(repeated(CASES), 1_000, np.random.default_rng(seed))
    assert rule.number > 1
    alone = [int(rule.of_cases(block([path]))[0]) for path in paths]
    assert rule.of_cases(block(paths)).tolist() == alone
    assert rule.of_cases(block(paths[::-1])).tolist() == alone[::-1]
    assert all(0 <= cell < rule.number for cell in alone)


def test_there_are_no_cells_where_noise_would_hide_them() -> None:
    assert CellRule.of(repeated(CASES), 5, np.random.default_rng(1)).number == 1


def test_kinds_lie_in_their_cells() -> None:
    cases, rng = repeated(CASES), np.random.default_rng(1)
    rule = CellRule.of(cases, 1_000, rng)
    kinds = Kinds.of(cases, rule, rng)
    assert kinds.cell[kinds.of_sequence].tolist() == rule.of_cases(cases.distinct).tolist()
    assert kinds.shares.sum() == pytest.approx(1)
    rows, _ = kinds.of_cells(rule.number)
    assert rows.sum() == pytest.approx(1)


def test_rows_of_many_cases_keep_their_shares_and_rows_of_none_are_as_all() -> None:
    table = np.array([[900.0, 100], [100, 900], [3, -4]])
    found, _ = row_shares(table, np.array([0.5, 0.5]), 25.0, np.zeros((3, 1)))
    assert found[:2] == pytest.approx(np.array([[0.9, 0.1], [0.1, 0.9]]), abs=0.02)
    assert found[2] == pytest.approx([0.5, 0.5], abs=0.25)


def test_what_goes_with_an_activity_goes_with_it_in_cells_that_no_case_has() -> None:
    table, profiles = np.array([[900.0, 100], [100, 900], [0, 0]]), np.array([[0.0], [1.0], [1.0]])
    found, _ = row_shares(table, np.array([0.5, 0.5]), 25.0, profiles)
    assert found[2] == pytest.approx([0.1, 0.9], abs=0.05)


@given(seed=st.integers(0, 200))
@settings(max_examples=40)
def test_noise_alone_is_no_difference_and_margins_are_kept(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, columns = rng.dirichlet(np.ones(4)), rng.dirichlet(np.ones(5))
    table = 1_000 * np.outer(rows, columns) + rng.laplace(scale=3, size=(4, 5))
    fitted = fit_margins(table, rows, columns, 18.0)
    assert rows @ fitted == pytest.approx(columns, abs=1e-6)
    assert fitted.sum(axis=1) == pytest.approx(np.ones(4))


def test_noise_alone_rarely_stands_out() -> None:
    rng, rows, columns = np.random.default_rng(1), np.full(8, 1 / 8), np.full(4, 1 / 4)
    noises = (1_000 * np.outer(rows, columns) + rng.laplace(scale=3, size=(8, 4)) for _ in range(400))
    assert np.mean([apart_of(one, rows, columns, 18.0) for one in noises]) < 0.06


@pytest.mark.parametrize("more", [["a", "b", "d"], ["c"], []])
def test_a_case_adds_one_to_one_count_of_a_cell_and_value(more: list[str]) -> None:
    """Sensitivity of the questions by cell: exact answers of neighbouring logs differ by 1 in all."""
    cases = [({"ward": f"w{i % 3}"}, [{"activity": a} for a in ("a", "bc"[i % 2])]) for i in range(300)]
    first = log_of(cases)
    second = log_of([*cases, ({"ward": "w1"}, [{"activity": a} for a in more])])
    curator = Curator(
        first.variants,
        log=first,
        domain=Domain(attributes={"ward": ("w0", "w1", "w2")}),
        randomness=noise.seeded(1),
    )
    chosen, rest = choose(curator, ("ward",), 8, 0, lambda text: None)  # type: ignore[arg-type]
    with heard() as asked:
        released_attributes(curator, rest, repeated(first.variants), chosen)
    assert len(asked) == 2, "of all cases, then by cell"
    for question in asked:
        apart = np.abs(exact(second, question) - exact(first, question))
        assert apart.sum() == 1


@pytest.mark.parametrize("epsilon", ["0.05", "0.4", "4"])
def test_no_released_case_lasts_longer_than_the_bound(epsilon: str) -> None:
    said = []
    for seed in range(3):
        cases, times = timed(HOSPITAL, epsilon, seed, remark=said.append)
        bounds = [one.values["hours"] for one in said if one.code == "durations-bounded"]
        assert len(bounds) == seed + 1
        assert durations_of(cases, times).max() <= bounds[-1] * 3_600 + 1e-6


def test_an_octave_of_noise_beyond_all_cases_is_no_bound() -> None:
    noisy = np.array([0.0, 5, 40, 300, 500, 200, 9, -12, 3, 14, -7])
    assert last_standing_out(noisy[1:], 10 * 2**0.5) == 5
    noisy[9] = 200
    assert last_standing_out(noisy[1:], 10 * 2**0.5) == 9
