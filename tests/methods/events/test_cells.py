"""Cells of cases: a rule for each case alone, and likely shares by noisy counts."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from time_tools import HOSPITAL, durations_of, timed

from veilog.logs.variants import Repeated, Variants
from veilog.methods._events import cells
from veilog.methods._events.cells import (
    CellRule,
    Kinds,
    Look,
    apart_of,
    fit_margins,
    kind_shares,
    row_shares,
)
from veilog.methods._events.times.histogram import last_standing_out
from veilog.privacy.cases import Cases

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
    """The cell of a case depends neither on the block's other cases nor their order."""
    rule = CellRule.of(repeated(CASES), 1_000, np.random.default_rng(seed))
    assert rule.number > 1
    alone = [int(rule.of_cases(block([path]))[0]) for path in paths]
    assert rule.of_cases(block(paths)).tolist() == alone
    assert rule.of_cases(block(paths[::-1])).tolist() == alone[::-1]
    assert all(0 <= cell < rule.number for cell in alone)


def test_there_are_no_cells_where_noise_would_hide_them() -> None:
    assert CellRule.of(repeated(CASES), 5, np.random.default_rng(1)).number == 1


def test_sequences_of_a_kind_have_one_profile_and_one_cell() -> None:
    cases = repeated(CASES)
    rule, kinds = CellRule.of(cases, 1_000, np.random.default_rng(1)), Kinds.of(cases)
    assert rule.of_profiles(kinds.profiles)[kinds.of_sequence].tolist() == rule.of_cases(cases.distinct).tolist()
    assert kinds.shares[kinds.of_sequence].tolist() == pytest.approx((cases.counts / 100).tolist())


def test_of_too_many_profiles_entries_that_hardly_vary_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells, "MOST_KINDS", 3)
    cases = repeated(CASES)
    kinds = Kinds.of(cases)
    assert len(kinds.shares) == 3 and kinds.shares.sum() == pytest.approx(1)
    varying = kinds.profiles.std(axis=0) > 0
    assert "a" not in {cases.labels[i % 4] for i in np.flatnonzero(varying)}
    rule = CellRule.of(kinds, 1_000, np.random.default_rng(1))
    assert rule.of_profiles(kinds.profiles)[kinds.of_sequence].tolist() == rule.of_cases(cases.distinct).tolist()


def of_rows(table: list[list[float]], profiles: list[list[float]] | None = None) -> np.ndarray:
    """Return the likely shares of two equally frequent columns, at noise variance 25."""
    rows, number = np.array(table), len(table)
    x = np.zeros((number, 1)) if profiles is None else np.array(profiles)
    looks = [Look(rows, 25.0, np.arange(number))]
    return row_shares(looks, np.array([0.5, 0.5]), np.full(number, 1 / number), x)


def test_rows_of_many_cases_keep_their_shares_and_rows_of_none_are_as_all() -> None:
    found = of_rows([[900, 100], [100, 900], [3, -4]])
    assert found[:2] == pytest.approx(np.array([[0.9, 0.1], [0.1, 0.9]]), abs=0.02)
    assert found[2] == pytest.approx([0.5, 0.5], abs=0.05)


def test_what_goes_with_an_activity_goes_with_it_in_cells_that_no_case_has() -> None:
    found = of_rows([[900, 100], [100, 900], [0, 0]], [[0], [1], [1]])
    assert found[2] == pytest.approx([0.1, 0.9], abs=0.05)


def test_where_all_cases_have_one_value_all_kinds_have_it() -> None:
    kinds = Kinds(np.arange(2), np.array([[0.0], [1]]), np.array([0.5, 0.5]))
    looks = [Look(np.array([[300.0, 2], [200, -3]]), 8.0, np.arange(2))]
    found = kind_shares(looks, np.array([1.0, 0.0]), kinds)
    assert found == pytest.approx(np.array([[1.0, 0.0], [1.0, 0.0]]))


def test_asking_again_about_no_case_changes_nothing() -> None:
    """Counts of a cell without a case are noise, however often they are asked."""
    table, profiles = np.array([[900.0, 100], [100, 900], [2, -1]]), np.array([[0.0], [1], [1]])
    looks = [Look(table, 25.0, np.arange(3))] * 4
    found = row_shares(looks, np.array([0.5, 0.5]), np.full(3, 1 / 3), profiles)
    assert found[2] == pytest.approx([0.1, 0.9], abs=0.05)


@given(seed=st.integers(0, 100))
@settings(max_examples=20)
def test_odds_of_independent_steps_multiply(seed: int) -> None:
    """Without noise the shares of kinds follow naive Bayes, although cells know less.

    Of six independent steps four are more or less frequent where the value is the second one.
    """
    rng = np.random.default_rng(seed)
    often = rng.uniform(0.3, 0.7, 6)
    among = np.stack([often, often + np.array([0.2, -0.2, 0.15, -0.25, 0, 0])])
    profiles = np.array(list(itertools.product([0.0, 1.0], repeat=6)))
    chance = np.array([np.prod(np.where(profiles > 0, p, 1 - p), axis=1) for p in among]) * [[0.7], [0.3]]
    kinds = Kinds(np.arange(64), profiles, chance.sum(axis=0))
    rule = CellRule.of(kinds, 1_000, rng)
    cell = rule.of_profiles(profiles)
    table = np.zeros((rule.number, 2))
    np.add.at(table, cell, 1e6 * chance.T)
    found = kind_shares([Look(table, 1.0, cell)], np.array([0.7, 0.3]), kinds)
    assert found.sum(axis=1) == pytest.approx(np.ones(64))
    assert kinds.shares @ np.abs(found[:, 1] - chance[1] / chance.sum(axis=0)) < 0.06


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
