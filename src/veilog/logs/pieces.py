"""Tables piece by piece: the columns of case, activity and timestamp of a CSV or Parquet file, never all at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from veilog.errors import InputError
from veilog.logs import delimited, parquet, tables
from veilog.logs.columns import is_text, text_column, typed
from veilog.logs.eventlog import EVENT_INDEX
from veilog.logs.findings import Findings
from veilog.logs.roles import Roles
from veilog.logs.times import DayOrder, Evidence, Times, convert_times, gather_evidence, parse_times
from veilog.logs.variants import IntArray

__all__ = ["Piece", "pieces"]

_BATCH = 1 << 17


@dataclass(frozen=True)
class Piece:
    """Some rows of a file: columns as strings and times, and how to say where a row is."""

    names: Any
    labels: Any
    stamps: Any
    times: Times
    given: IntArray | None
    key: Any = None
    line_of: Callable[[int], int | None] | None = None
    empty_cases: int = 0


def pieces(path: Path, roles: Roles, findings: Findings, limit: int | None, *, alone: bool) -> Iterator[Piece]:
    """The rows of a file in order; ``alone`` when no other file belongs to the log."""
    if path.name.lower().endswith(".parquet"):
        return _parquet_pieces(path, roles, findings, alone=alone)
    return _csv_pieces(path, roles, findings, limit)


def _csv_pieces(path: Path, roles: Roles, findings: Findings, limit: int | None) -> Iterator[Piece]:
    dialect, line = delimited.settle(path, tables.csv_dialect(path, limit), limit=limit)
    if dialect.encoding == "cp1252":
        findings.add("not-utf8", "the text is read as Windows-1252", line=line)
    wanted = [roles.case, roles.activity, roles.timestamp]
    if EVENT_INDEX in dialect.columns and EVENT_INDEX not in wanted:
        wanted.append(EVENT_INDEX)
    order: DayOrder | None = None
    for batch in delimited.batches(path, dialect, columns=wanted, limit=limit):
        stamps = batch.column(2)
        if order is None and _has_doubt(stamps):
            order = _day_order(
                (part.column(0) for part in delimited.batches(path, dialect, columns=wanted[2:3], limit=limit)), path
            )
        yield Piece(
            pa.chunked_array([batch.column(0)]),
            pa.chunked_array([batch.column(1)]),
            stamps,
            parse_times(stamps, order or "day first"),
            _integers(typed(pa.chunked_array([batch.column(3)]))) if len(wanted) > 3 else None,
            line_of=lambda row: delimited.line_of_row(path, dialect, row, limit=limit),
        )


def _parquet_pieces(path: Path, roles: Roles, findings: Findings, *, alone: bool) -> Iterator[Piece]:
    wanted = [roles.case, roles.activity, roles.timestamp]
    with parquet.open_parquet(path) as file:
        found = parquet.notes(file.schema_arrow, path)
        if found.case_key is not None and not alone:
            raise InputError("This file has cases that only an index tells apart; read it alone.", path=path)
        extra = [name for name in (EVENT_INDEX, found.case_key) if name in file.schema_arrow.names and name]
        columns = [*wanted, *(name for name in extra if name not in wanted)]
        order: DayOrder | None = None
        empty = 0 if found.empty is None else found.empty.num_rows
        if empty and findings.add("empty-trace", f"{empty} cases", count=empty) == "drop":
            empty = 0
        for batch in file.iter_batches(_BATCH, columns=columns):
            stamps = batch.column(roles.timestamp)
            if pa.types.is_dictionary(stamps.type):
                stamps = stamps.cast(stamps.type.value_type)
            if is_text(stamps.type) or pa.types.is_null(stamps.type):
                stamps = stamps.cast(pa.string())
                if order is None and _has_doubt(stamps):
                    again = file.iter_batches(_BATCH, columns=[roles.timestamp])
                    order = _day_order((part.column(0).cast(pa.string()) for part in again), path)
                times = parse_times(stamps, order or "day first")
            else:
                times = convert_times(stamps, roles.timestamp, str(path))
            yield Piece(
                text_column(batch.column(roles.case), roles.case, str(path)),
                text_column(batch.column(roles.activity), roles.activity, str(path)),
                stamps,
                times,
                _integers(batch.column(EVENT_INDEX)) if EVENT_INDEX in extra and EVENT_INDEX not in wanted else None,
                None if found.case_key is None else batch.column(found.case_key).cast(pa.string()),
                empty_cases=empty,
            )
            empty = 0


def _integers(column: Any) -> IntArray | None:
    """An explicit event index, under the same conditions as in a table read whole."""
    kind = column.type
    if not pa.types.is_integer(kind) or pa.types.is_uint64(kind) or column.null_count:
        return None
    index: IntArray = column.cast(pa.int64()).to_numpy()
    return index


def _has_doubt(stamps: Any) -> bool:
    evidence = Evidence()
    gather_evidence(stamps, evidence)
    return any((evidence.doubtful, evidence.day_first, evidence.month_first))


def _day_order(stamps: Iterator[Any], path: Path) -> DayOrder:
    """What ``5/6/2024`` means, by the whole column."""
    evidence = Evidence()
    for part in stamps:
        gather_evidence(part, evidence)
    return evidence.order(str(path))
