"""Checks of a log that was read, and of its width, reported to the data owner.

Repeated events may be dropped. Every attribute is a column as long as the log. So memory and time for a small file with
an attribute of its own for each event would grow with the square of its size. Other checks look at all events of a
case, in whatever format they came: repeated events, days where times should be, and times that stand for none.
"""

from __future__ import annotations

import datetime
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from veilog._typing import BoolArray, IntArray
from veilog.errors import InputError
from veilog.logs.eventlog import ACTIVITY, CASE_INDEX, EVENT_INDEX, TIMESTAMP, EventLog, codes_of
from veilog.logs.findings import Findings
from veilog.messages import Message

MOST_COLUMNS = 1000
"""Hospitals' logs have up to 130 attributes, exports of ERP systems a few hundred."""
_CELLS = 100_000_000
_EMPTY = 100
"""Beyond ``_CELLS`` one cell in so many must have a value: then memory is linear in the file."""


def check_width(columns: int, cells: int, values: int, path: str | Path | None, line: int | None = None) -> None:
    """Refuse too many attributes, or cells of which almost none is filled.

    ``values`` is the number of filled ones among ``cells``.
    """
    if columns > MOST_COLUMNS:
        raise InputError("log-attributes-too-many", path=path, line=line, columns=columns, most_columns=MOST_COLUMNS)
    if cells > _CELLS and cells > _EMPTY * values:
        raise InputError(
            "log-attributes-too-sparse",
            path=path,
            line=line,
            columns=columns,
            cells=cells // 1000000,
            values=values,
        )


_FIRST = datetime.datetime(1901, 1, 2, tzinfo=datetime.UTC)
"""First likely time of an event; many programs write 1900 for no date. (A day later, whatever the zone.)"""
_DAY, _HOUR = 86_400_000_000, 3_600_000_000
_SEASONS = (({*range(3, 12)}, {10, 11, 12, 1, 2, 3, 4}), ({9, 10, 11, 12, 1, 2, 3, 4}, {*range(3, 12)}))
"""Months of summer and winter time, north and south, with those in which it changes."""


def check_events(log: EventLog, findings: Findings) -> EventLog:
    """Note unlikely times, equal events of a case, and events with a day alone.

    The last are cases with several events on a day of which no time of the day is known. Return the log, without
    repeated events if a policy drops them.
    """
    times = log.events.column(TIMESTAMP).cast(pa.int64())
    known = np.asarray(pc.is_valid(times).to_numpy(zero_copy_only=False), dtype=bool)
    micros = np.asarray(pc.fill_null(times, 0).to_numpy(zero_copy_only=False), dtype=np.int64)
    _note_unlikely(log, known, micros, findings)
    case = log.events.column(CASE_INDEX).to_numpy()
    same = known[1:] & known[:-1] & (case[1:] == case[:-1]) & (micros[1:] == micros[:-1])
    if not same.any():
        return log
    tied = np.flatnonzero(np.append(same, False) | np.insert(same, 0, False))
    _note_days(log, micros[known], tied, findings)
    again = _note_repeated(log, tied, findings)
    return replace(log, events=log.events.filter(pa.array(~again))) if again.any() else log


def _note_unlikely(log: EventLog, known: BoolArray, micros: IntArray, findings: Findings) -> None:
    """Note times before any log and after tomorrow.
    A clock that is a day ahead, or one in another zone, is no mistake."""
    tomorrow = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=1)
    first, last = (round(one.timestamp() * 1_000_000) for one in (_FIRST, tomorrow))
    unlikely = np.flatnonzero(known & ((micros < first) | (micros > last)))
    if len(unlikely):
        row = int(unlikely[0])
        told = np.datetime64(int(micros[row]), "us").astype("datetime64[s]")
        findings.add(
            "unlikely-time", Message("example-in-case", value=str(told), name=_name(log, row)), count=len(unlikely)
        )


def _note_days(log: EventLog, micros: IntArray, tied: IntArray, findings: Findings) -> None:
    """Note events with a day alone.
    One day alone shows nothing: the one time of all events may be anything."""
    if not _are_days(micros) or micros.min() // _DAY == micros.max() // _DAY:
        return
    row = int(tied[0])
    findings.add("days-only", Message("example-days-only", name=_name(log, row)), count=len(tied))


def _are_days(micros: IntArray) -> bool:
    """Return True if all times are midnight, in UTC or in a zone.
    In a zone, summer has it an hour earlier than winter."""
    clocks = micros % _DAY
    times = np.unique(clocks)
    if len(times) == 1:
        return bool(times[0] == 0)
    if len(times) > 2 or (times % _HOUR).any() or times[1] - times[0] not in (_HOUR, _DAY - _HOUR):
        return False
    early = times[0] if times[1] - times[0] == _HOUR else times[1]
    months = micros.astype("datetime64[us]").astype("datetime64[M]").astype(np.int64) % 12 + 1
    summer, winter = {*months[clocks == early].tolist()}, {*months[clocks != early].tolist()}
    return any(summer <= warm and winter <= cold for warm, cold in _SEASONS)


def _note_repeated(log: EventLog, tied: IntArray, findings: Findings) -> BoolArray:
    """Return a mask of the repeated events to leave out, and count repeated ones.
    Before such an event, its case has one with the same activity, time and attributes."""
    codes = [
        _codes(log.events.column(name).take(pa.array(tied))) for name in log.events.column_names if name != EVENT_INDEX
    ]
    order = np.lexsort((tied, *codes))
    alike = np.ones(len(tied) - 1, dtype=bool)
    for code in codes:
        alike &= code[order][1:] == code[order][:-1]
    again = tied[order][1:][alike]
    left_out = np.zeros(len(log), dtype=np.bool_)
    if len(again):
        row = int(again.min())
        example = Message("example-in-case", value=repr(log.events.column(ACTIVITY)[row].as_py()), name=_name(log, row))
        left_out[again] = findings.add("repeated-event", example, count=len(again)) == "drop"
    return left_out


def _codes(column: pa.ChunkedArray) -> IntArray:
    """Return a number for each value, equal where the values are, -1 for none."""
    if pa.types.is_nested(column.type):
        column = pa.array([None if value is None else repr(value) for value in column.to_pylist()], pa.string())
    return codes_of(column)


def _name(log: EventLog, row: int) -> Any:
    return log.case_labels[log.events.column(CASE_INDEX)[row].as_py()].as_py()
