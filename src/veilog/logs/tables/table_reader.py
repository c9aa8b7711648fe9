"""Base of all readers of tables: shared rules for headers, columns and rows.

A format finds its columns and rows. Tables also come piece by piece, with the columns of case, activity and timestamp
alone, and never all at once.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from veilog._typing import BoolArray
from veilog.errors import InputError
from veilog.logs.eventlog import EVENT_INDEX, EventLog, as_array
from veilog.logs.findings import Findings, Note
from veilog.logs.input.formats import ReadRequest, reader_of
from veilog.logs.input.lifecycle import joined
from veilog.logs.input.roles import DATA, Roles, guess_roles, has_activity
from veilog.logs.input.source import Source
from veilog.logs.metadata import Metadata
from veilog.logs.tables.cells import (
    DayOrder,
    Evidence,
    Times,
    convert_times,
    drop_views,
    gather_evidence,
    inexact_names,
    is_text,
    parse_times,
    plain_type,
    read_times,
    text_column,
    whole_numbers,
)
from veilog.logs.tables.events import (
    LineOf,
    Spare,
    add_empty_cases,
    keep_empty_cases,
    log_from_table,
    shape_events,
    spare_of,
)

BATCH = 1 << 17
"""Number of rows of a batch by default."""


@dataclass(frozen=True)
class Notes:
    """Facts that a file has in addition to its table."""

    metadata: Metadata = field(default_factory=Metadata)
    case_key: str | None = None
    """Column that distinguishes cases, where their names do not."""
    empty: pa.Table | None = None
    """Cases without events, with their ``case:index``."""
    noticed: tuple[Note, ...] = ()
    """Findings about the file as a whole."""
    among: tuple[str, ...] = ()
    """Choices for the table: a workbook's sheets with data, or the types of objects."""


class TableReader(ABC):
    """A format of tables with a row per event.

    It is a :class:`veilog.logs.input.formats.Reader`. Only its columns are known beforehand; its rows come as one table
    or in batches. The roles of the columns, and the rules for rows with missing or wrong values, are those of every
    table.
    """

    name: str
    suffixes: tuple[str, ...] = ()
    typed: bool = False
    declares: bool = True
    """True if the columns are declared. Otherwise the columns are those that some event has, and no event may decide
    what a column means for others: roles go by fixed names."""
    heeds: tuple[str, ...] = ("start",)
    """Those of ``header``, ``sheet``, ``object_type``, ``start`` and ``decimal`` that this format uses."""

    def recognises(self, source: Source) -> bool:
        return source.suffix in self.suffixes

    @abstractmethod
    def columns(self, source: Source) -> list[str]:
        """Return the names of the columns, without reading the rows."""

    @abstractmethod
    def table(self, source: Source, asked: ReadRequest) -> pa.Table:
        """Return all columns of all rows, in the order of the rows."""

    def batches(
        self, source: Source, asked: ReadRequest, columns: Sequence[str] | None = None, size: int = BATCH
    ) -> Iterator[pa.RecordBatch]:
        """Yield these columns (or all) of the rows in order, usually ``size`` at a time."""
        table = self.table(source, asked)
        yield from (table if columns is None else table.select(list(columns))).to_batches(max_chunksize=size)

    def rows(self, source: Source) -> int | None:
        """Return the number of rows, if the file declares it."""
        return None

    def notes(self, source: Source) -> Notes:
        """Return the facts that the file has in addition to its table."""
        return Notes()

    def in_pandas(self, source: Source) -> str:
        """Return the Python that gives the table in pandas."""
        return "log.to_pandas()"

    def line_of(self, source: Source) -> LineOf | None:
        """Return the function for the line of a row, if the file has lines."""
        return None

    def read(self, source: Source, asked: ReadRequest) -> EventLog:
        """Return the log in all rows, with all columns as attributes."""
        assert asked.roles is not None, "the columns of a table have roles"
        notes = self.notes(source)
        log = log_from_table(
            self.table(source, asked),
            asked.roles,
            asked.findings,
            source=None if source.name is None else str(source.path),
            line_of=self.line_of(source),
            metadata=notes.metadata,
            case_key=notes.case_key,
        )
        return log if notes.case_key is None else add_empty_cases(log, notes.empty, asked.findings)


def note(source: Source, roles: Roles, findings: Findings) -> None:
    """Add the findings about a table's file and columns before its rows are read."""
    for file in source.files():
        reader = table_reader_of(file)
        findings.add_all(() if reader is None else reader.notes(file).noticed)
    findings.add_all(roles.noticed)


def table_reader_of(source: Source) -> TableReader | None:
    """Return the reader of a table; None for a log that is no table, such as XES."""
    found = reader_of(source)
    return found if isinstance(found, TableReader) else None


LARGE = 5_000_000
"""Number of events beyond which a table of an engine is not read into memory. Beyond it ``veilog release`` also keeps a
Parquet log on disk, if queries need its events."""


def is_large(source: Source) -> bool:
    """Return True if the file declares more than ``LARGE`` events, as Parquet can."""
    reader = table_reader_of(source) if source.is_file else None
    rows = None if reader is None else reader.rows(source)
    return rows is not None and rows > LARGE


def header_among(rows: Sequence[Sequence[str]]) -> int:
    """Return the place of the header among the first rows, perhaps below a title.

    The header is the first row with three names or more. No later row is looked at: it may be one of data, and one case
    would decide how all others are read. Below a title a row of data is no header: then the first row stands.
    """
    if not rows:
        return 0
    place = next((place for place, row in enumerate(rows) if is_wide(row)), 0)
    return place if headed(rows[place], place) else 0


def _names_in(row: Sequence[str]) -> int:
    return sum(bool(name.strip()) for name in row)


def is_wide(row: Sequence[str], *, text: bool = False) -> bool:
    """Return True if a row has three names or more.

    In a text a sentence with signs between its words is a title (``Export, ward 3, April``), unless it has usual names.
    """
    prose = text and all(name.startswith(" ") for name in row[1:]) and not usual(row)
    return _names_in(row) >= 3 and not prose


def is_place(name: str) -> bool:
    """Return True if this is the name given to a column without one."""
    return _PLACE.match(name) is not None


def headed(row: Sequence[str], place: int) -> bool:
    """Return True if a row may be a header: below a title, no data or default names."""
    return not place or not any(DATA.search(name) or is_place(name) for name in row)


_PLACE = re.compile(r"\s*column \d+\s*$")


def usual(row: Sequence[str]) -> bool:
    """Return True if these names reveal the case, the activity and the time."""
    if any(map(DATA.search, row)):
        return False
    try:
        guess_roles([name for name in row if name.strip()])
    except InputError:
        return False
    return True


@dataclass(frozen=True)
class Piece:
    """Some rows of a file: columns as strings and times, and the function for lines."""

    names: Any
    labels: Any
    stamps: Any
    times: Times
    given: Any = None
    """Explicit index of events, null where there is none; None without that column."""
    transitions: Any = None
    joined: Any = None
    """Activities by a classifier."""
    inexact: BoolArray | None = None
    """True where the name of a case is a number that may be rounded."""
    key: Any = None
    line_of: LineOf | None = None
    empty_cases: int = 0
    spare: Spare = lambda wanted: None


def pieces(source: Source, roles: Roles, findings: Findings, *, alone: bool) -> Iterator[Piece]:
    """Yield the rows of a file in order; ``alone`` if no other file is in the log."""
    reader = table_reader_of(source)
    assert reader is not None, "only tables come in pieces"
    notes, names = reader.notes(source), reader.columns(source)
    if notes.case_key is not None and not alone:
        raise InputError("file-needs-index", path=source.path)
    missing = next((name for name in roles.named if name not in names), None)
    if missing is not None:
        raise InputError("column-missing-in-file", path=source.path, missing=missing)
    indexed = EVENT_INDEX in names and EVENT_INDEX not in roles.named
    extra = [EVENT_INDEX] * indexed + ([] if notes.case_key is None else [notes.case_key])
    order = roles.day_order
    empty = len(keep_empty_cases(notes.empty, findings) or ())
    line_of = reader.line_of(source)
    given = roles
    extra += [roles.spare] if roles.spare is not None else []
    for batch in reader.batches(source, ReadRequest(findings=findings), list(dict.fromkeys([*given.named, *extra]))):
        batch, roles, line_of = _shape_batch(batch, given, line_of)
        stamps = _plain(batch.column(roles.timestamp))
        if is_text(stamps.type) or pa.types.is_null(stamps.type):
            stamps = stamps.cast(pa.string())
            if order is None and _has_doubt(stamps):
                order = _day_order(reader, source, given)
            times = parse_times(stamps, order or "day first")
        else:
            times = convert_times(stamps, roles.timestamp, str(source.path))
        key = None if notes.case_key is None else batch.column(notes.case_key).cast(pa.string())
        more = {"key": key, "empty_cases": empty, "line_of": line_of, "spare": spare_of(batch, roles, str(source.path))}
        yield _piece(batch, roles, stamps, times, indexed, source.path, **more)
        empty = 0
    if empty:  # a file of nothing else
        none = pa.array([], pa.string())
        yield Piece(none, none, none, parse_times(none), empty_cases=empty)


def _shape_batch(
    batch: pa.RecordBatch, roles: Roles, line_of: LineOf | None
) -> tuple[pa.RecordBatch, Roles, LineOf | None]:
    table = drop_views(pa.Table.from_batches([batch]))
    if roles.clock is None and not roles.two_events and table.schema == batch.schema:
        return batch, roles, line_of
    table, roles, line_of = shape_events(table, roles, line_of)
    return pa.RecordBatch.from_arrays(list(map(as_array, table.columns)), names=table.column_names), roles, line_of


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
        inexact_names(batch.column(roles.case)),
        **more,
    )


def _has_doubt(stamps: Any) -> bool:
    evidence = Evidence()
    gather_evidence(stamps, evidence)
    return any((evidence.doubtful, evidence.day_first, evidence.month_first))


def _day_order(reader: TableReader, source: Source, roles: Roles) -> DayOrder:
    """Return the order of day and month by all dates, in a second pass over the file."""
    evidence = Evidence()
    for part in reader.batches(source, ReadRequest(findings=Findings(collect_all=True)), list(roles.named)):
        batch, of_batch, _ = _shape_batch(part, roles, None)
        gather_evidence(_plain(batch.column(of_batch.timestamp)).cast(pa.string()), evidence)
    return evidence.order(str(source.path))


# A table with a row for each case and a column for each step ---------------------------------------------------------

# A reader recognises it, and makes events of it.


_LOOKED_AT = 1000
"""Number of rows that decide which columns are times, in a refused table."""
_STEPS = 3
"""Number of time columns that exceeds a start and an end, or a date of birth."""
_SHOWN = 5


def wide_table_error(source: Source, reader: TableReader, names: list[str]) -> InputError | None:
    """Return the error that shows how to melt a wide table; None for other tables."""
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
    """Return the columns that hold times in words, and nothing else."""
    found = []
    for name, column in zip(rows.schema.names, rows.columns, strict=True):
        kind = plain_type(column.type)
        if is_place(name) or not (is_text(kind) or pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
            continue
        times = read_times(column, name, None, "day first")
        if times.known.any() and not times.bad.any() and not times.epochs:
            found.append(name)
    return found
