"""A table with a row for each case and a column for each step: how it is recognised, and how events are made of it."""

from __future__ import annotations

import pyarrow as pa

from veilog.errors import InputError
from veilog.logs.input.formats import ReadRequest
from veilog.logs.input.roles import has_activity
from veilog.logs.input.source import Source
from veilog.logs.tables.cells import is_text, plain_type, read_times
from veilog.logs.tables.table_reader import TableReader, is_place

_LOOKED_AT = 1000
"""Rows that tell which columns are times, of a table that is refused whatever they hold."""
_STEPS = 3
"""Columns of times that are more than a start and an end, or a date of birth."""
_SHOWN = 5


def wide_table_error(source: Source, reader: TableReader, names: list[str]) -> InputError | None:
    """The error that shows how to make events of a wide table; None where it does not look like one."""
    if has_activity(names) or source.options.activity is not None or source.options.header == 0:
        return None
    try:
        rows = next(iter(reader.batches(source, ReadRequest())), None)
        steps = [] if rows is None else _steps(rows.slice(0, _LOOKED_AT))
    except InputError:  # reading the table reports a fault further down
        return None
    if len(steps) < _STEPS:
        return None
    others = [name for name in names if name not in steps and not is_place(name)]
    label, time = (next(name for name in usual if name not in names) for usual in _COLUMNS)
    melted = (
        f"{reader.in_pandas(source)}.melt({others!r}, {steps!r}, {label!r}, {time!r}).dropna(subset=[{time!r}])"
        f".to_csv('events.csv', index=False)"
    )
    shown = ", ".join(map(repr, steps[:_SHOWN])) + (", ..." if len(steps) > _SHOWN else "")
    return InputError("table-wide", names=shown, number=len(steps), python=f"import pandas; {melted}")


_COLUMNS = (("activity", "step", "concept:name"), ("timestamp", "event time", "time:timestamp"))


def _steps(rows: pa.RecordBatch) -> list[str]:
    """The columns that hold times in words, and nothing else."""
    found = []
    for name, column in zip(rows.schema.names, rows.columns, strict=True):
        kind = plain_type(column.type)
        if is_place(name) or not (is_text(kind) or pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
            continue
        times = read_times(column, name, None, "day first")
        if times.known.any() and not times.bad.any() and not times.epochs:
            found.append(name)
    return found
