"""Tables with a line for each group of rows, and the columns of a line."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from veilog.experiments.experiment import Cell, Row, Table, known, spread


@dataclass(frozen=True)
class Column:
    """Column of a measure: mean with spread, or median, or the first run's text."""

    title: str
    measure: str
    form: str = ".2f"
    show: Literal["spread", "median", "text"] = "median"
    over: str = ""
    """Measure of the same rows that divides this one."""
    baseline: Mapping[str, str] = field(default_factory=dict)
    """Settings of the baseline: the line of the same table, otherwise alike, that divides this one."""
    published: Mapping[tuple[str, ...], float] = field(default_factory=dict)
    """Values of the paper, by the settings of a line."""


def of_cell(cell: Cell, name: str) -> str:
    """Return a cell's value under a name: its log, method or run, or a setting."""
    known_ = {"log": cell.log, "method": cell.method, "run": str(cell.run)}
    return known_[name] if name in known_ else str(cell.get(name))


def grouped(rows: Sequence[Row], by: Sequence[str]) -> dict[tuple[str, ...], list[Row]]:
    """Return the rows of each line, in their order."""
    found: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(of_cell(row.cell, name) for name in by), []).append(row)
    return found


def summary(title: str, rows: Sequence[Row], by: Sequence[str], columns: Sequence[Column], note: str = "") -> Table:
    """Return a table with a line for each group of rows that are alike in ``by``."""
    groups = grouped(rows, by)
    lines = [(*key, *(_shown(groups, by, key, column) for column in columns)) for key in groups]
    return Table(title, (*by, *(column.title for column in columns)), tuple(lines), note)


def across(title: str, rows: Sequence[Row], by: Sequence[str], over: str, column: Column, note: str = "") -> Table:
    """Return a line for each group of rows alike in ``by``, a column by ``over``."""
    groups = grouped(rows, (*by, over))
    heads, lines = list(dict.fromkeys(key[-1] for key in groups)), dict.fromkeys(key[:-1] for key in groups)
    shown = [
        (
            *line,
            *(_shown(groups, (*by, over), (*line, head), column) if (*line, head) in groups else "-" for head in heads),
        )
        for line in lines
    ]
    return Table(title, (*by, *(f"{over} {head}".strip() for head in heads)), tuple(shown), note)


def _shown(groups: Mapping[tuple[str, ...], list[Row]], by: Sequence[str], key: tuple[str, ...], column: Column) -> str:
    rows = groups.get(key, [])
    if column.show == "text" and rows:
        return rows[0].texts.get(column.measure, "-")
    if column.show == "spread" and known(rows, column.measure):
        return spread(rows, column.measure, column.form, column.published.get(key))
    value = _median(rows, column.measure)
    if column.over:
        value = _ratio(value, _median(rows, column.over))
    if column.baseline:
        other = tuple(column.baseline.get(name, part) for name, part in zip(by, key, strict=True))
        value = _ratio(value, _median(groups.get(other, []), column.measure))
    if value is None:
        return "-"
    text = format(value, column.form)
    return f"{text} [{format(column.published[key], column.form)}]" if key in column.published else text


def _median(rows: Sequence[Row], measure: str) -> float | None:
    values = known(rows, measure)
    return statistics.median(values) if values else None


def _ratio(value: float | None, base: float | None) -> float | None:
    return None if value is None or not base else value / base
