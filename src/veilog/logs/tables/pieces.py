"""Tables piece by piece: the columns of case, activity and timestamp of a file, never all at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from veilog._typing import BoolArray
from veilog.errors import InputError
from veilog.logs.eventlog import EVENT_INDEX
from veilog.logs.findings import Findings
from veilog.logs.input.lifecycle import joined
from veilog.logs.input.reader import ReadRequest
from veilog.logs.input.roles import Roles
from veilog.logs.input.source import Source
from veilog.logs.tables.cells.columns import is_text, rounded, text_column, whole_numbers, without_views
from veilog.logs.tables.cells.times import DayOrder, Evidence, Times, convert_times, gather_evidence, parse_times
from veilog.logs.tables.events.checks import LineOf
from veilog.logs.tables.events.shaping import shaped
from veilog.logs.tables.reader import TableReader, table_reader_of

__all__ = ["Piece", "pieces"]


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
    inexact: BoolArray | None = None
    """Where a case is named by a number that may be rounded."""
    key: Any = None
    line_of: LineOf | None = None
    empty_cases: int = 0


def pieces(source: Source, roles: Roles, findings: Findings, *, alone: bool) -> Iterator[Piece]:
    """The rows of a file in order; ``alone`` when no other file belongs to the log."""
    reader = table_reader_of(source)
    assert reader is not None, "only tables come in pieces"
    notes, names = reader.notes(source), reader.columns(source)
    if notes.case_key is not None and not alone:
        raise InputError("file-cases-only-index-tells", path=source.path)
    missing = next((name for name in roles.named if name not in names), None)
    if missing is not None:
        raise InputError("no-column-but-other", path=source.path, missing=missing)
    indexed = EVENT_INDEX in names and EVENT_INDEX not in roles.named
    extra = [EVENT_INDEX] * indexed + ([] if notes.case_key is None else [notes.case_key])
    order = roles.day_order
    empty = 0 if notes.empty is None else notes.empty.num_rows
    if empty and findings.add("empty-trace", f"{empty} cases", count=empty) == "drop":
        empty = 0
    line_of = reader.line_of(source)
    given = roles
    for batch in reader.batches(source, ReadRequest(findings=findings), list(dict.fromkeys([*given.named, *extra]))):
        batch, roles, line_of = _shaped(batch, given, line_of)
        stamps = _plain(batch.column(roles.timestamp))
        if is_text(stamps.type) or pa.types.is_null(stamps.type):
            stamps = stamps.cast(pa.string())
            if order is None and _has_doubt(stamps):
                order = _day_order(reader, source, given)
            times = parse_times(stamps, order or "day first")
        else:
            times = convert_times(stamps, roles.timestamp, str(source.path))
        key = None if notes.case_key is None else batch.column(notes.case_key).cast(pa.string())
        yield _piece(batch, roles, stamps, times, indexed, source.path, key=key, empty_cases=empty, line_of=line_of)
        empty = 0
    if empty:  # a file of nothing else
        none = pa.array([], pa.string())
        yield Piece(none, none, none, parse_times(none), empty_cases=empty)


def _shaped(batch: pa.RecordBatch, roles: Roles, line_of: LineOf | None) -> tuple[pa.RecordBatch, Roles, LineOf | None]:
    table = without_views(pa.Table.from_batches([batch]))
    if roles.clock is None and not roles.two_events and table.schema == batch.schema:
        return batch, roles, line_of
    table, roles, line_of = shaped(table, roles, line_of)
    columns = [part.combine_chunks() for part in table.columns]
    columns = [part.chunk(0) if isinstance(part, pa.ChunkedArray) else part for part in columns]
    return pa.RecordBatch.from_arrays(columns, names=table.column_names), roles, line_of


def _plain(stamps: Any) -> Any:
    return stamps.cast(stamps.type.value_type) if pa.types.is_dictionary(stamps.type) else stamps


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
        rounded(batch.column(roles.case)),
        **more,
    )


def _has_doubt(stamps: Any) -> bool:
    evidence = Evidence()
    gather_evidence(stamps, evidence)
    return any((evidence.doubtful, evidence.day_first, evidence.month_first))


def _day_order(reader: TableReader, source: Source, roles: Roles) -> DayOrder:
    """The order of day and month that every date of the column says by itself; a second pass over the file."""
    evidence = Evidence()
    for part in reader.batches(source, ReadRequest(findings=Findings(collect_all=True)), list(roles.named)):
        batch, of_batch, _ = _shaped(part, roles, None)
        gather_evidence(_plain(batch.column(of_batch.timestamp)).cast(pa.string()), evidence)
    return evidence.order(str(source.path))
