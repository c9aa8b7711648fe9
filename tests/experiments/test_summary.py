"""Tables: one line for all runs, ratios to the named baseline, dashes for gaps."""

import importlib.util
import sys
from pathlib import Path

import pytest

from veilog.experiments.experiment import Cell, Row

_SPEC = importlib.util.spec_from_file_location("columns", Path(__file__).parents[2] / "bench" / "columns.py")
assert _SPEC is not None and _SPEC.loader is not None
columns_ = sys.modules["columns"] = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(columns_)
Column, across, grouped, summary = columns_.Column, columns_.across, columns_.grouped, columns_.summary


def row(task: str, run: int, problem: str | None = None, log: str = "sepsis", **values: float) -> Row:
    return Row(Cell(log, "", (("task", task), ("size", 3)), run), values, problem, 1.0, "code-log", {"who": task})


ROWS = [
    *(row("bare", run, cpu=cpu, wall=10.0) for run, cpu in enumerate((1.0, 2.0, 9.0))),
    *(row("ours", run, cpu=cpu, wall=5.0) for run, cpu in enumerate((1.0, 1.0, 4.0))),
]


def test_runs_become_a_line_with_their_median_mean_and_spread() -> None:
    columns = (Column("middle", "cpu"), Column("mean", "cpu", ".1f", "spread"), Column("who", "who", show="text"))
    table = summary("T", ROWS, ("log", "task"), columns)
    assert table.head == ("log", "task", "middle", "mean", "who")
    assert table.rows == (
        ("sepsis", "bare", "2.00", "4.0 ± 4.4", "bare"),
        ("sepsis", "ours", "1.00", "2.0 ± 1.7", "ours"),
    )


def test_a_ratio_is_of_medians_against_the_named_line_of_the_same_table() -> None:
    columns = (Column("ratio", "cpu", baseline={"task": "bare"}), Column("of wall", "cpu", over="wall"))
    table = summary("T", ROWS, ("log", "task"), columns)
    assert table.rows == (("sepsis", "bare", "1.00", "0.20"), ("sepsis", "ours", "0.50", "0.20"))
    without = summary("T", ROWS[3:], ("log", "task"), columns)
    assert without.rows == (("sepsis", "ours", "-", "0.20"),), "there is no baseline"


def test_what_has_no_value_is_a_dash() -> None:
    columns = (Column("cpu", "cpu"), Column("mean", "cpu", show="spread"), Column("x", "other"))
    table = summary("T", [row("failed", 0, problem="no memory")], ("task",), columns)
    assert table.rows == (("failed", "-", "-", "-"),)


def test_a_setting_becomes_columns() -> None:
    table = across("T", [*ROWS[:4], row("bare", 0, log="receipt", cpu=7.0)], ("log",), "task", Column("cpu", "cpu"))
    assert table.head == ("log", "task bare", "task ours")
    assert table.rows == (("sepsis", "2.00", "1.00"), ("receipt", "7.00", "-"))


def test_the_papers_value_stands_in_brackets() -> None:
    published = {("bare",): 1.5}
    for show in ("median", "spread"):
        column = Column("cpu", "cpu", ".1f", show, published=published)
        (cell,) = [line[1] for line in summary("T", ROWS[:3], ("task",), (column,)).rows]
        assert cell.endswith("[1.5]")


@pytest.mark.parametrize("by", [("run",), ("log", "size"), ("method",)])
def test_rows_are_grouped_by_what_their_cells_have(by: tuple[str, ...]) -> None:
    expected = {("run",): [2, 2, 2], ("log", "size"): [6], ("method",): [6]}[by]
    assert [len(group) for group in grouped(ROWS, by).values()] == expected
