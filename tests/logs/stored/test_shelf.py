"""Numbers on disk come back as they went, in rows and in columns."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from veilog.errors import EngineError
from veilog.logs.stored.spilled_cases import Columns, Shelf, runs

ROWS = st.lists(st.lists(st.tuples(st.integers(-(2**62), 2**62), st.integers(0, 4)), max_size=12), max_size=6)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(ROWS)
def test_columns_come_row_by_row_and_rows_as_they_came(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[tuple[int, int]]]
) -> None:
    shelf = Columns(tmp_path_factory.mktemp("shelf") / "numbers", 5)
    columns = [np.array([c for _, c in row], dtype=np.int64) for row in rows]
    for row, places in zip(rows, columns, strict=True):
        shelf.add(np.array([n for n, _ in row], dtype=np.int64), places)
    for column in range(5):
        found = shelf.column(column)
        assert found.tolist() == [n for row in rows for n, c in row if c == column]
        shelf.replace(column, found - column)
    for number, row in enumerate(rows):
        assert shelf.row(number, columns[number]).tolist() == [n - c for n, c in row]


def test_a_file_that_was_cut_is_not_taken_for_whole(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / "numbers")
    shelf.add(np.arange(10))
    assert len(shelf) == 10
    assert shelf.read(np.array([[8, 10], [0, 1]])).tolist() == [8, 9, 0]
    with (tmp_path / "numbers").open("r+b") as file:
        file.truncate(72)
    with pytest.raises(EngineError, match="gone"):
        shelf.read(np.array([[8, 10]]))


@pytest.mark.slow
@given(st.lists(st.integers(0, 9), max_size=20), st.integers(1, 20))
def test_runs_are_as_long_as_they_may_be(sizes: list[int], most: int) -> None:
    found = list(runs(np.array(sizes, dtype=np.int64), most))
    assert [i for first, last in found for i in range(first, last)] == list(range(len(sizes)))
    for first, last in found:
        assert sum(sizes[first:last]) <= most or last == first + 1
        assert last == len(sizes) or sum(sizes[first : last + 1]) > most
