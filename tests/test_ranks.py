"""Distinct numbers and rows are those that numpy finds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veilog._counting import count_numbers, rank_bits, rank_numbers, rank_rows


@given(st.lists(st.integers(0, 30)), st.sampled_from([31, 1000, 2**62]))
def test_counting_is_what_sorting_finds(numbers: list[int], size: int) -> None:
    array = np.array(numbers, dtype=np.int64)
    wanted = np.unique(array, return_inverse=True, return_counts=True)
    for found, expected in zip(rank_numbers(array, size), wanted, strict=True):
        assert found.tolist() == expected.tolist()
    for found, expected in zip(count_numbers(array, size), wanted[::2], strict=True):
        assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("largest", [1, 3, 2**20, 2**40])
@given(st.integers(0, 40), st.integers(0, 5), st.integers(0, 2**32 - 1))
def test_rows_ascend_and_each_is_the_first_of_its_kind(largest: int, rows: int, columns: int, seed: int) -> None:
    table = np.random.default_rng(seed).integers(0, largest, (rows, columns)) // max(1, largest // 3)
    table *= max(1, largest // 3)
    distinct = sorted(set(map(tuple, table.tolist())))
    first, ranks = rank_rows(table.T, rows)
    assert [tuple(row) for row in table[first].tolist()] == distinct
    assert ranks.tolist() == [distinct.index(tuple(row)) for row in table.tolist()]
    assert first.tolist() == [ranks.tolist().index(rank) for rank in range(len(distinct))]


@pytest.mark.parametrize("columns", [0, 1, 8, 9, 32, 33, 70, 200])
def test_rows_of_bits_ascend_from_the_left(columns: int) -> None:
    table = np.random.default_rng(columns).random((500, columns)) < 0.5
    table[:, : max(0, columns - 3)] &= table[:, :1]
    first, ranks = rank_bits(table)
    distinct = sorted(set(map(tuple, table.tolist())))
    assert [tuple(row) for row in table[first].tolist()] == distinct
    assert (table[first][ranks] == table).all()
