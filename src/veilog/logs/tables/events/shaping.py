"""Rows that say otherwise what a log says: a time in two columns, or two events in one row. Both are made usual here.

Each row is decided by itself. Roles that need neither leave a table as it is.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from veilog._typing import IntArray
from veilog.errors import InputError
from veilog.logs.eventlog import LIFECYCLE
from veilog.logs.input.roles import Roles
from veilog.logs.tables.cells.columns import is_text
from veilog.logs.tables.events.checks import LineOf

__all__ = ["Origins", "shaped"]

_MIDNIGHT = r"[T ]+0{1,2}:00(:00(\.0+)?)?$"
_NO_DAY = r"^(1899-12-3[01]|1900-01-0[01]|(30|31)\.12\.1899|0?1[./]0?1[./]1900|1970-01-01)[T ]+|\s*(Uhr|uur|h)$"
"""What stands beside a time of day in exports of spreadsheets and databases, which know no time without a day."""
_HOUR = r"\d:\d\d"
_WHOLE = r"^\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}[T ]+\d"


class Origins:
    """Which row of a file each event comes from, where a row may be two events."""

    def __init__(self, line_of: LineOf) -> None:
        self._line_of = line_of
        self._rows: list[IntArray] = []
        self._before = 0

    def add(self, rows: IntArray, size: int) -> None:
        """The events of the next ``size`` rows come from these of them."""
        self._rows.append(rows + self._before)
        self._before += size

    def __call__(self, event: int) -> int | None:
        return self._line_of(int(np.concatenate(self._rows)[event]))


def shaped(table: pa.Table, roles: Roles, line_of: LineOf | None) -> tuple[pa.Table, Roles, LineOf | None]:
    """Return the rows with one time in one column and one event in each, their roles, and what tells their lines."""
    if roles.clock is not None:
        date, time = (_text(table[name], name) for name in (roles.timestamp, roles.clock))
        both = _together(date, time, f"{roles.timestamp} and {roles.clock}")
        table = table.set_column(table.column_names.index(roles.timestamp), roles.timestamp, both)
        return table.drop_columns([roles.clock]), replace(roles, clock=None), line_of
    if not roles.two_events:
        return table, roles, line_of
    rows = table.num_rows
    table, roles, taken = _parted(table, roles)
    if line_of is not None:
        line_of = line_of if isinstance(line_of, Origins) else Origins(line_of)
        line_of.add(taken, rows)
    return table, roles, line_of


def _text(column: Any, name: str) -> Any:
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    column = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
    try:
        return pc.utf8_trim_whitespace(column.cast(pa.string()))
    except pa.ArrowException as error:
        raise InputError("column-holds-not-timestamps-2", name=name, type=column.type) from error


def _together(date: Any, time: Any, names: str) -> Any:
    """Dates and times of day as texts of both; whatever has both already is taken from the second column, unless the
    first has a time of day of its own, which would be lost."""
    clock = pc.replace_substring_regex(time, _NO_DAY, "")
    told = pc.fill_null(pc.not_equal(clock, ""), False)
    day = pc.fill_null(pc.replace_substring_regex(date, _MIDNIGHT, ""), "")
    whole = pc.fill_null(pc.match_substring_regex(clock, _WHOLE), False)
    lost = pc.and_(pc.match_substring_regex(day, _HOUR), pc.not_equal(date, clock))
    if pc.any(pc.and_(whole, pc.fill_null(lost, False))).as_py():
        raise InputError("hold-two-times-each", names=names)
    both = pc.binary_join_element_wise(day, pc.fill_null(clock, ""), " ")
    both = pc.if_else(whole, clock, both)
    return pa.chunked_array([pc.if_else(told, both, date)])


def _parted(table: pa.Table, roles: Roles) -> tuple[pa.Table, Roles, IntArray]:
    """The start and the end of each row as two events, and the rows they come from. Where one of both is missing there
    is one event; where both are, the end is, without a time."""
    assert roles.start is not None, "rows are parted where they have a start"
    names = (roles.start, roles.timestamp)
    times = [table[name] for name in names]
    times = [x.cast(x.type.value_type) if pa.types.is_dictionary(x.type) else x for x in times]
    if times[0].type != times[1].type:
        times = [pa.chunked_array([_text(column, name)]) for column, name in zip(times, names, strict=True)]
    known = [_known(column) for column in times]
    there = np.column_stack([known[0], known[1] | ~known[0]])
    taken = np.repeat(np.arange(table.num_rows), there.sum(axis=1))
    step = np.tile([0, 1], table.num_rows)[there.ravel()]
    at = pa.array(taken + step * table.num_rows)
    time = pa.chunked_array([*times[0].chunks, *times[1].chunks], times[0].type).take(at)
    parted = table.drop_columns([roles.start]).take(pa.array(taken))
    parted = parted.set_column(parted.column_names.index(roles.timestamp), roles.timestamp, time)
    steps = pa.array(["start", "complete"]).take(pa.array(step))
    if LIFECYCLE in parted.column_names:
        parted = parted.drop_columns([LIFECYCLE])
    parted = parted.append_column(LIFECYCLE, steps)
    return parted, replace(roles, transition=LIFECYCLE, start=None), taken


def _known(column: Any) -> Any:
    known = pc.is_valid(column)
    if is_text(column.type):
        known = pc.fill_null(pc.not_equal(column, ""), False)
    return known.to_numpy()
