"""Tables piece by piece: the columns of case, activity and timestamp of a CSV or Parquet file, never all at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from veilog.errors import InputError
from veilog.logs.eventlog import EVENT_INDEX
from veilog.logs.findings import Findings
from veilog.logs.lifecycle import joined
from veilog.logs.roles import Roles
from veilog.logs.tables import delimited, parquet
from veilog.logs.tables import read as tables
from veilog.logs.tables.columns import is_text, text_column, whole_numbers
from veilog.logs.tables.times import DayOrder, Evidence, Times, convert_times, gather_evidence, parse_times

__all__ = ["Piece", "pieces"]

_BATCH = 1 << 17


@dataclass(frozen=True)
class Piece:
    """Some rows of a file: columns as strings and times, and how to say where a row is."""

    names: Any
    labels: Any
    stamps: Any
    times: Times
    given: Any = None
    """The explicit index of events, null where there is none; None for a file without that column."""
    transitions: Any = None
    joined: Any = None
    """The activities by a classifier."""
    key: Any = None
    line_of: Callable[[int], int | None] | None = None
    empty_cases: int = 0


def pieces(path: Path, roles: Roles, findings: Findings, limit: int | None, *, alone: bool) -> Iterator[Piece]:
    """The rows of a file in order; ``alone`` when no other file belongs to the log."""
    if path.name.lower().endswith(".parquet"):
        return _parquet_pieces(path, roles, findings, alone=alone)
    return _csv_pieces(path, roles, findings, limit)


def _csv_pieces(path: Path, roles: Roles, findings: Findings, limit: int | None) -> Iterator[Piece]:
    dialect = tables.csv_dialect(path, limit)
    indexed = EVENT_INDEX in dialect.columns and EVENT_INDEX not in roles.named
    wanted = [*roles.named, *([EVENT_INDEX] if indexed else [])]
    order = roles.day_order
    told = tables.foreign_values(findings)
    for batch in delimited.batches(path, dialect, columns=wanted, limit=limit, foreign=told):
        stamps = batch.column(roles.timestamp)
        if order is None and _has_doubt(stamps):
            again = delimited.batches(path, dialect, columns=[roles.timestamp], limit=limit)
            order = _day_order((part.column(0) for part in again), path)
        yield _piece(
            batch,
            roles,
            stamps,
            parse_times(stamps, order or "day first"),
            indexed,
            path,
            line_of=lambda row: delimited.line_of_row(path, dialect, row, limit=limit),
        )


def _parquet_pieces(path: Path, roles: Roles, findings: Findings, *, alone: bool) -> Iterator[Piece]:
    with parquet.open_parquet(path) as file:
        found = parquet.notes(file.schema_arrow, path)
        if found.case_key is not None and not alone:
            raise InputError("This file has cases that only an index tells apart; read it alone.", path=path)
        indexed = EVENT_INDEX in file.schema_arrow.names and EVENT_INDEX not in roles.named
        extra = [EVENT_INDEX] if indexed else []
        if found.case_key is not None:
            extra.append(found.case_key)
        order = roles.day_order
        empty = 0 if found.empty is None else found.empty.num_rows
        if empty and findings.add("empty-trace", f"{empty} cases", count=empty) == "drop":
            empty = 0
        for batch in file.iter_batches(_BATCH, columns=list(dict.fromkeys([*roles.named, *extra]))):
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
            key = None if found.case_key is None else batch.column(found.case_key).cast(pa.string())
            yield _piece(batch, roles, stamps, times, indexed, path, key=key, empty_cases=empty)
            empty = 0
        if empty:  # a file of nothing else
            none = pa.array([], pa.string())
            yield Piece(none, none, none, parse_times(none), empty_cases=empty)


def _piece(
    batch: pa.RecordBatch, roles: Roles, stamps: Any, times: Times, indexed: bool, path: Path, **more: Any
) -> Piece:
    def text(name: str) -> Any:
        return text_column(batch.column(name), name, str(path))

    given = whole_numbers(batch.column(EVENT_INDEX)) if indexed else None
    return Piece(
        text(roles.case),
        text(roles.activity),
        stamps,
        times,
        None if given is None else pa.array(given[0], pa.int64(), mask=~given[1]),
        None if roles.transition is None else text(roles.transition),
        joined([text(name) for name in roles.classifier]) if roles.classifier else None,
        **more,
    )


def _has_doubt(stamps: Any) -> bool:
    evidence = Evidence()
    gather_evidence(stamps, evidence)
    return any((evidence.doubtful, evidence.day_first, evidence.month_first))


def _day_order(stamps: Iterator[Any], path: Path) -> DayOrder:
    """The order of day and month that every date of the column says by itself."""
    evidence = Evidence()
    for part in stamps:
        gather_evidence(part, evidence)
    return evidence.order(str(path))
