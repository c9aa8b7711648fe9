"""Variants from files and tables of any size, which DuckDB groups.

DuckDB stays within a memory limit, and nothing is loaded whole. Each event becomes one integer (see
:mod:`veilog.logs.engines.engine`). The sorted list of these integers in a case, reduced to the activities, is its
variant; equal lists are counted. Cases are taken in as many parts as the memory needs, each case wholly in one part.
The result equals ``read(path).variants``, ties included, because the position of the row decides them in both.

Tables of other kinds than Parquet come into DuckDB piece by piece, through the checks of
:func:`veilog.logs.tables.events.log_from_table`. A table or view of a DuckDB database is opened for reading only and
stays as it is.
"""

from __future__ import annotations

import contextlib
import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from veilog._process import machine_cores
from veilog._typing import IntArray
from veilog.errors import EngineError, InputError, ParameterError
from veilog.logs.engines.engine import (
    ACTIVITY_BITS,
    FIRST_TIME,
    LAST_TIME,
    POSITION_BITS,
    ROW,
    TIMELESS,
    EventCounts,
    EventQuery,
    Grouped,
    RowQuery,
    event_index,
    index_key,
    refuse_equals,
    refuse_life_cycle,
    refuse_ties,
    refuse_type,
    settle_counts,
    spill_settings,
    sql_name,
    sql_text,
    timed_key,
)
from veilog.logs.eventlog import EVENT_INDEX, as_dictionary
from veilog.logs.findings import Findings
from veilog.logs.input.lifecycle import Transitions
from veilog.logs.input.roles import Roles
from veilog.logs.input.source import DEFAULT_OPTIONS, Progress, ReadOptions, Source, bytes_of, silent
from veilog.logs.tables.cells import is_text, plain_type
from veilog.logs.tables.events import RowFindings, blank, check_bad, check_names, check_spare, count_times
from veilog.logs.tables.parquet import PARQUET, is_parquet, open_file
from veilog.logs.tables.table_reader import Piece, pieces, table_reader_of
from veilog.logs.variants import Variants
from veilog.messages import Message


def load(
    connection: duckdb.DuckDBPyConnection, files: Sequence[Source], roles: Roles, findings: Findings
) -> EventQuery:
    """Return all rows of these files as one relation, clean: faults are decided here."""
    state, held, size = _Loading(Transitions(roles.lifecycle)), [_NO_EVENTS.empty_table()], 0
    most = (bytes_of(files[0].options.memory_limit) or 0) // _HELD
    for file in files:
        for piece in pieces(file, roles, findings, alone=len(files) == 1):
            held.append(_events(piece, state, findings))
            size += held[-1].nbytes
            if size > most:
                _keep(connection, held)
        state.rows_before = state.rows
    if size > most and held:
        _keep(connection, held)
    elif held:
        connection.register("events", pa.concat_tables(held))
    state.transitions.done(findings, told_apart=roles.transition in roles.classifier)
    where = ""
    if state.absent:
        if not state.timed and findings.policy("missing-timestamp") != "drop":
            findings.add("no-timestamps", Message("example-column-empty"), count=state.absent)
        elif findings.add("missing-timestamp", state.absent_where, count=state.absent) == "drop":
            where = "WHERE m <> 1"
            state.kept -= state.absent
    if state.rows and not state.kept:
        raise InputError("table-without-events-left", path=files[0].path)
    count_times(findings, state.kept, naive=state.naive, offsets=state.offsets, cut=state.cut, epochs=state.epochs)
    case = "c, o" if state.nameless else "c"
    if state.indexed:
        _note_index(connection, f"FROM events {where} GROUP BY {case} HAVING bool_or(g IS NULL)", findings)
    given = f", {index_key('g', 'a')} AS x" if state.indexed else ""
    events = f"SELECT {case}, {timed_key('coalesce(t, 0)', 'a')} AS k, t IS NULL AS m{given} FROM events {where}"
    start, end = connection.execute(f"SELECT min(t), max(t) FROM events {where}").fetchall()[0]
    return EventQuery(events, list(state.codes), True, state.empty_cases, case, start, end, state.indexed)


_NO_EVENTS = pa.schema(
    {
        "c": pa.string(),
        "o": pa.int64(),
        "i": pa.int64(),
        "t": pa.int64(),
        "m": pa.int8(),
        "g": pa.int64(),
        "a": pa.int32(),
    }
)
_HELD = 8
"""Divisor of the memory limit up to which rows stay in memory."""


def _keep(connection: duckdb.DuckDBPyConnection, held: list[pa.Table]) -> None:
    """Move the rows into a database file, where they do not count against the memory."""
    connection.register("batch", pa.concat_tables(held))
    folder = connection.execute("SELECT current_setting('temp_directory')").fetchall()[0][0]
    place = Path(folder) / "events.duckdb"
    if not place.exists():
        connection.execute(f"ATTACH {sql_text(str(place))} AS store")
        connection.execute("USE store")
        connection.execute("CREATE TABLE events AS FROM batch LIMIT 0")
    connection.execute("INSERT INTO events SELECT * FROM batch")
    connection.unregister("batch")
    held.clear()


def _note_index(connection: duckdb.DuckDBPyConnection, cases: str, findings: Findings) -> None:
    """Add the finding about cases in which some event has no explicit index."""
    found = f"SELECT count(*), arg_min(c, i) FROM (SELECT c, min(i) AS i {cases})"
    count, example = connection.execute(found).fetchall()[0]
    if count:
        findings.add("event-index-missing", Message("example-of-case", name=example), count=count)


@dataclass
class _Loading:
    """Facts about the rows so far."""

    transitions: Transitions
    codes: dict[str, int] = field(default_factory=dict)
    rows: int = 0
    rows_before: int = 0
    kept: int = 0
    absent: int = 0
    absent_where: str | Message = ""
    timed: bool = False
    nameless: bool = False
    indexed: bool = False
    naive: int = 0
    cut: int = 0
    empty_cases: int = 0
    offsets: set[int] = field(default_factory=set)
    epochs: Counter[str] = field(default_factory=Counter)


def _events(piece: Piece, state: _Loading, findings: Findings) -> pa.Table:
    """Return the rows of a piece that stay, ready to be grouped; add findings on them."""
    start, size = state.rows, len(piece.names)
    state.rows += size
    state.empty_cases += piece.empty_cases
    rows = RowFindings(findings, piece.line_of, start - state.rows_before)
    nameless = blank(piece.names) if piece.key is None else np.zeros(size, dtype=np.bool_)
    keep = np.ones(size, dtype=np.bool_)
    if piece.transitions is not None:
        keep &= state.transitions.keep(piece.labels, piece.transitions)
    names, keep = check_names(piece.names, piece.labels, keep, rows, piece.inexact, piece.key)
    labels = piece.labels if piece.joined is None else piece.joined
    times = piece.times
    keep = check_bad(times, piece.stamps, keep, rows)
    times, keep = check_spare(times, piece.spare, keep, rows)
    absent = ~times.known & ~times.bad & keep
    if absent.any() and not state.absent:
        state.absent_where = rows.where(int(absent.argmax()))
    state.absent += int(absent.sum())
    state.kept += int(keep.sum())
    state.timed |= bool(((times.known | times.bad) & keep).any())
    state.nameless |= bool((nameless & keep).any())
    state.indexed |= piece.given is not None
    state.naive += times.naive
    state.cut += times.cut
    state.offsets |= times.offsets
    state.epochs.update(times.epochs)

    encoded = as_dictionary(labels)
    known = [state.codes.setdefault(label, len(state.codes)) for label in _used_labels(encoded, keep)]
    if len(state.codes) >= 1 << ACTIVITY_BITS:
        raise InputError("activities-too-many", path=findings.path, value=1 << ACTIVITY_BITS)
    position = np.arange(start, start + size)
    batch = pa.table(
        {
            "c": names if piece.key is None else piece.key,
            "o": pa.array(position, pa.int64(), mask=~nameless),
            "i": pa.array(position, pa.int64()),
            "t": pa.array(times.micros, pa.int64(), mask=~times.known),
            "m": pa.array(absent.astype(np.int8) + 2 * times.bad.astype(np.int8), pa.int8()),
            "g": pa.nulls(size, pa.int64()) if piece.given is None else piece.given,
            "a": pa.array(np.asarray(known, np.int32)[encoded.indices.fill_null(0).to_numpy()] if known else position),
        }
    )
    return (batch if keep.all() else batch.filter(pa.array(keep))).cast(_NO_EVENTS)


def _used_labels(encoded: Any, keep: Any) -> list[str]:
    """Return the labels of a dictionary, in order; unused ones become the first kept."""
    labels = encoded.dictionary.to_pylist()
    used = np.zeros(len(labels), dtype=np.bool_)
    indices = encoded.indices.fill_null(0).to_numpy()
    used[indices[keep]] = True
    kept = next((label for label, wanted in zip(labels, used.tolist(), strict=True) if wanted), None)
    return [] if kept is None else [label if wanted else kept for label, wanted in zip(labels, used, strict=True)]


PLACE = "veilog_place"
"""Name of the column that orders cases."""
_OWN = ("file_row_number", "file_index", ROW, PLACE)
"""Names of the columns that are added to those of a file."""
_MOST_PARTS = 4096


@dataclass(frozen=True)
class DuckFiles:
    """Log in CSV or Parquet files, in order; memory must hold its variants and DuckDB."""

    files: tuple[Source, ...]
    options: ReadOptions = DEFAULT_OPTIONS

    def columns(self) -> list[str]:
        found = table_reader_of(self.files[0])
        assert found is not None, "only tables are grouped"
        return found.columns(self.files[0])

    def group(self, roles: Roles, findings: Findings, progress: Progress = silent) -> Grouped:
        files = self.files
        with connected(self.options) as connection:
            progress("looking at the events", None)
            events = _plain_parquet(connection, files, roles, findings)
            if events is None:
                events = load(connection, files, roles, findings)
            return group(connection, events, progress)


@contextlib.contextmanager
def connected(options: ReadOptions) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a private DuckDB within its limit, without fetched extensions or leftovers."""
    with spill_settings(options) as spill:
        config: dict[str, Any] = {
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "preserve_insertion_order": False,
            "temp_directory": str(spill),
        }
        config["threads"] = options.threads or machine_cores()
        connection = duckdb.connect(config=config)
        try:
            try:
                connection.execute(f"SET memory_limit = {sql_text(options.memory_limit)}")
            except duckdb.Error as error:
                raise ParameterError(
                    "engine-memory-limit-invalid", parameter="memory_limit", memory_limit=options.memory_limit
                ) from error
            connection.execute("SET TimeZone = 'UTC'")
            yield connection
        except duckdb.Error as error:
            raise _translate_error(error, options) from error
        except RuntimeError as error:
            if "Query interrupted" not in str(error):
                raise
            raise KeyboardInterrupt from error  # what DuckDB makes of Ctrl-C
        finally:
            connection.close()


def _translate_error(error: duckdb.Error, options: ReadOptions) -> InputError | ParameterError | EngineError:
    reason = str(error).splitlines()[0]
    if _disk_is_full(error):
        return EngineError("engine-disk-full", reason=reason)
    if isinstance(error, duckdb.OutOfMemoryException):
        return ParameterError("engine-memory-too-small", parameter="memory_limit", memory_limit=options.memory_limit)
    return InputError("engine-events-not-readable", reason=reason)


def _disk_is_full(error: duckdb.Error) -> bool:
    text = str(error)
    return any(sign in text for sign in ("No space left", "File too large", "Disk quota", "max_temp_directory_size"))


def _plain_parquet(
    connection: duckdb.DuckDBPyConnection, files: Sequence[Source], roles: Roles, findings: Findings
) -> EventQuery | None:
    """Return the files as DuckDB reads them; None unless all is plain and right."""
    if roles.lifecycle is not None or roles.classifier:
        return None
    if any(not is_parquet(file) or oddity(file, roles) or unlike(file, files[0]) for file in files):
        return None
    schema, rows = open_file(files[0]).schema_arrow, sum(PARQUET.rows(file) for file in files)
    stepped = roles.transition
    if EVENT_INDEX in schema.names or (stepped is not None and not is_text(plain_type(schema.field(stepped).type))):
        return None
    kind, case = schema.field(roles.timestamp).type, sql_name(roles.case)
    time, finer = micros(sql_name(roles.timestamp), kind)
    step = "NULL" if stepped is None else f"coalesce({sql_name(stepped)}::VARCHAR, '')"
    # A whole number is taken as its case without a cast.
    name = case if pa.types.is_integer(schema.field(roles.case).type) else f"{case}::VARCHAR"
    table = (
        f"SELECT {name} AS c, {sql_name(roles.activity)}::VARCHAR AS a, {time} AS t, {step} AS s, {ROW} AS i, "
        f"{finer} AS finer, {is_unnamed(roles.case)} AS nameless FROM {rows_in(files)}"
    )
    found = connection.sql(
        "SELECT a, count(*) FILTER (WHERE nameless OR t IS NULL) AS faulty, min(t) AS low, max(t) AS high, "
        f"count(*) FILTER (WHERE finer) AS finer FROM ({table}) GROUP BY a ORDER BY a"
    ).to_arrow_table()
    labels = found["a"].to_pylist()
    if rows == 0 or pc.sum(found["faulty"]).as_py() or None in labels or "" in labels:
        return None
    low, high = pc.min(found["low"]).as_py(), pc.max(found["high"]).as_py()
    if low < FIRST_TIME or high > LAST_TIME:
        return None
    if stepped is not None:
        steps = connection.sql(f"SELECT a, s, count(*) FROM ({table}) GROUP BY a, s ORDER BY a, s").fetchall()
        Transitions.of(steps).done(findings, told_apart=False)
    count_times(findings, rows, naive=rows if kind.tz is None else 0, cut=pc.sum(found["finer"]).as_py())
    key = timed_key("t", label_places(connection, found.select(["a"])))
    return EventQuery(f"SELECT c, {key} AS k FROM ({table})", labels, start=low, end=high)


def rows_in(files: Sequence[Source]) -> str:
    """Return a query of all columns and, of each row, how many come before it."""
    before = [0, *itertools.accumulate(PARQUET.rows(file) for file in files)][:-1]
    columns = ", ".join(sql_name(name) for name in open_file(files[0]).schema_arrow.names)
    # Wildcards stand for themselves in brackets.
    paths = ", ".join(sql_text(re.sub(r"([*?\[])", r"[\1]", str(file.path))) for file in files)
    place = "file_row_number" if len(files) == 1 else f"{before}[file_index::BIGINT + 1]::BIGINT + file_row_number"
    return (
        f"(SELECT {columns}, {place} AS {ROW} "
        f"FROM read_parquet([{paths}], file_row_number = true, hive_partitioning = false))"
    )


def oddity(file: Source, roles: Roles) -> Message | None:
    """Return what DuckDB reads here unlike our own reader; None for nothing."""
    schema = open_file(file).schema_arrow
    if PARQUET.notes(file).case_key is not None or PARQUET.notes(file).empty is not None:
        return Message("file-cases-need-index")
    if roles.clock is not None or roles.two_events or roles.takes_spare:
        return Message("rows-not-events")
    missing = next((name for name in roles.named if name not in schema.names), None)
    if missing is not None:
        return Message("column-only-in-others", name=missing)
    if len({name.lower() for name in [*schema.names, *_OWN]}) < len(schema.names) + len(_OWN):
        return Message("column-names-alike")
    kinds = [plain_type(schema.field(name).type) for name in (roles.case, roles.activity)]
    if not ((is_text(kinds[0]) or pa.types.is_integer(kinds[0])) and is_text(kinds[1])):
        return Message(
            "columns-hold-no-names", case=roles.case, activity=roles.activity, kind=str(kinds[0]), kind_2=str(kinds[1])
        )
    other = next((f for f in schema if isinstance(f.type, pa.BaseExtensionType) or pa.types.is_list_view(f.type)), None)
    if other is not None:
        return Message("column-type-read-otherwise", name=other.name, kind=str(other.type))
    if not pa.types.is_timestamp(schema.field(roles.timestamp).type):
        kind = str(schema.field(roles.timestamp).type)
        return Message("column-holds-no-times", name=roles.timestamp, kind=kind)
    return None


def unlike(file: Source, first: Source) -> Message | None:
    """Return how this file's columns differ from the first's; None if they do not."""
    found, wanted = ({f.name: plain_type(f.type) for f in open_file(one).schema_arrow} for one in (file, first))
    if found == wanted:
        return None
    names = sorted(found.keys() ^ wanted.keys()) or sorted(name for name in wanted if found[name] != wanted[name])
    return Message("columns-of-files-differ", name=names[0], file=first.path.name)


def is_unnamed(column: str) -> str:
    """Return the SQL condition of a case or an activity without a name."""
    return f"coalesce({sql_name(column)}::VARCHAR, '') = ''"


def label_places(connection: duckdb.DuckDBPyConnection, labels: pa.Table) -> str:
    """Return the SQL for the places of the values of column ``a`` among these labels."""
    connection.register("labels", labels)
    connection.execute("CREATE TYPE activity AS ENUM (SELECT a FROM labels ORDER BY a)")
    connection.unregister("labels")
    return "enum_code(a::activity)"


def micros(column: str, kind: pa.DataType) -> tuple[str, str]:
    """Return SQL for microseconds since 1970, cut downwards, and for what was cut."""
    if not pa.types.is_timestamp(kind) or kind.unit != "ns":
        return f"epoch_us({column})", "false"
    rest = f"(((epoch_ns({column}) % 1000) + 1000) % 1000)"
    return f"((epoch_ns({column}) - {rest}) // 1000)", f"{rest} <> 0"


def group(connection: duckdb.DuckDBPyConnection, events: EventQuery, progress: Progress) -> Grouped:
    """Group in as few parts as the memory allows.

    A part that does not fit, or spills too much, is cut in two.
    """
    results: list[tuple[IntArray, IntArray, IntArray]] = []
    pending = [(0, 1)]
    done = 0.0
    while pending:
        part, parts = pending.pop()
        progress("grouping the events by case", done if parts > 1 else None)
        try:
            results.append(_group_part(connection, events, part, parts))
            done += 1 / parts
        except duckdb.Error as error:
            if not (isinstance(error, duckdb.OutOfMemoryException) or _disk_is_full(error)) or parts >= _MOST_PARTS:
                raise
            pending += [(part, 2 * parts), (part + parts, 2 * parts)]
    progress("putting variants in order", None)
    codes, lengths, counts = (np.concatenate([result[i] for result in results]) for i in range(3))
    if events.empty_cases:
        lengths, counts = np.append(lengths, 0), np.append(counts, events.empty_cases)
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return Grouped(Variants.from_arrays(events.labels, codes, offsets, counts), events.start, events.end)


def _group_part(
    connection: duckdb.DuckDBPyConnection, events: EventQuery, part: int, parts: int
) -> tuple[IntArray, IntArray, IntArray]:
    chosen = "" if parts == 1 else f"WHERE hash({events.case}) % {parts} = {part}"
    keys = "list(k)"
    if events.timeless:
        # A case with an event without time keeps the order of its rows: blank the time in all its keys.
        keys = f"CASE WHEN bool_or(m) THEN list_transform(list(k), lambda x: x & {TIMELESS}) ELSE list(k) END"
    if events.indexed:
        keys = f"CASE WHEN bool_and(x IS NOT NULL) THEN list(x) ELSE {keys} END"
    found = connection.sql(
        f"SELECT variant, count(*) AS n FROM (SELECT list_transform(list_sort({keys}), "
        f"lambda x: (x & {(1 << ACTIVITY_BITS) - 1})::INTEGER) AS variant "
        f"FROM ({events.relation}) {chosen} GROUP BY {events.case}) GROUP BY variant"
    ).to_arrow_table()
    if found.num_rows == 0:
        return np.zeros(0, np.int32), np.zeros(0, np.int64), np.zeros(0, np.int64)
    codes = pc.list_flatten(found.column(0)).to_numpy()
    lengths = pc.list_value_length(found.column(0)).to_numpy().astype(np.int64)
    return codes, lengths, found.column(1).to_numpy()


_CHARACTERS = 'COLLATE "C"'
"""Collation that compares texts by their characters.

By a table's own collation, texts may be equal that are spelled differently. One case with another spelling would be
part of another case, or give its activities that name.
"""


@dataclass(frozen=True)
class DuckTable:
    """Table of a database file.

    Events of equal time are in the order of its rows; in a view, in that of an index.
    """

    database: Path
    table: str
    """Name, with its schema if not the usual one: ``events``, ``sales.events``."""
    options: ReadOptions = DEFAULT_OPTIONS
    called: str | None = None
    """Name in messages; the file and the table, where this is None."""

    def columns(self) -> list[str]:
        with connected(self.options) as connection:
            return list(self._open_table(connection).names)

    def count(self) -> int:
        """Return the number of rows."""
        with connected(self.options) as connection:
            self._open_table(connection)
            return int(_fetch_one(connection, "count(*)", f"FROM {self._name}")[0])

    def group(self, roles: Roles, findings: Findings, progress: Progress = silent) -> Grouped:
        refuse_life_cycle(roles)
        with connected(self.options) as connection:
            progress("looking at the events", None)
            schema = self._open_table(connection)
            kind = schema.field(roles.timestamp).type
            return group(
                connection,
                self._event_query(connection, self._sound(connection, roles, findings), kind, findings),
                progress,
            )

    def listed(self, connection: duckdb.DuckDBPyConnection, roles: Roles, findings: Findings) -> RowQuery:
        """Return all columns of the rows that count, after all checks."""
        refuse_life_cycle(roles)
        schema = self._open_table(connection)
        sound = self._sound(connection, roles, findings)
        if sound.alone or sound.index is not None or not sound.placed:
            same = f"SELECT c FROM ({sound.rows}) GROUP BY c, {'' if sound.alone else 't, '}i HAVING count(*) > 1"
            refuse_equals(_fetch_one(connection, "count(*)", same)[0], sound.index, self._table_place)
        # A given index stands below the times, so veilog's own, which stands above them, must not be seen.
        names = [name for name in schema.names if name != EVENT_INDEX or sound.alone]
        case, activity = (sql_name(name) for name in (roles.case, roles.activity))
        taken, _ = _time_columns(schema.field(roles.timestamp))
        position = self._position(connection, schema) if sound.placed else "0"
        columns = (_binary_column(schema.field(name)) for name in names)
        relation = (
            f"(SELECT {', '.join(columns)}, {position} AS {ROW} FROM {self._name} WHERE "
            f"nullif({case}::VARCHAR, '') IS NOT NULL AND nullif({activity}::VARCHAR, '') IS NOT NULL "
            f"AND {taken} IS NOT NULL)"
        )
        told_apart = sound.placed and sound.index is None
        return RowQuery(relation, pa.schema([schema.field(name) for name in names]), sound.found.rows, told_apart)

    def _open_table(self, connection: duckdb.DuckDBPyConnection) -> pa.Schema:
        """Attach the database, and return the columns of the table."""
        if not self.database.is_file():
            raise InputError("database-missing", path=self.database)
        attached = connection.execute("SELECT 1 FROM duckdb_databases() WHERE database_name = 'source'").fetchall()
        if not attached:
            try:
                connection.execute(f"ATTACH {sql_text(str(self.database))} AS source (READ_ONLY)")
            except duckdb.Error as error:
                raise InputError(
                    "database-not-opened", path=self.database, splitlines=str(error).splitlines()[0]
                ) from error
        try:
            return connection.sql(f"SELECT * FROM {self._name} LIMIT 0").to_arrow_table().schema
        except duckdb.CatalogException as error:
            names = _tables(connection)
            code = "database-table-missing" if names else "database-without-tables"
            raise InputError(code, path=self.database, table=self.table, names=names) from error

    @property
    def _name(self) -> str:
        return ".".join(["source", *(sql_name(part) for part in self.table.split("."))])

    def _rows(self, connection: duckdb.DuckDBPyConnection, schema: pa.Schema, roles: Roles) -> str:
        """Return a query with case, activity, time and position.

        The position orders events of equal time; it is null if nothing does.
        """
        where = self._table_place
        case, activity, time = (schema.field(name) for name in (roles.case, roles.activity, roles.timestamp))
        if not (is_text(case.type) or pa.types.is_integer(case.type)):
            refuse_type(case.name, str(case.type), "names of cases", where)
        if not (is_text(activity.type) or pa.types.is_integer(activity.type)):
            refuse_type(activity.name, str(activity.type), "names of activities", where)
        if not (pa.types.is_timestamp(time.type) or pa.types.is_date(time.type)):
            refuse_type(time.name, str(time.type), "timestamps", where)
        taken, finer = _time_columns(time)
        return (
            f"SELECT nullif({sql_name(case.name)}::VARCHAR {_CHARACTERS}, '') AS c, "
            f"nullif({sql_name(activity.name)}::VARCHAR {_CHARACTERS}, '') AS a, {taken} AS t, "
            f"{self._position(connection, schema)} AS i, {finer} AS finer FROM {self._name}"
        )

    def _index(self, schema: pa.Schema) -> str | None:
        """Return the column that orders events."""
        return event_index(self.options.index, schema.names)

    def _position(self, connection: duckdb.DuckDBPyConnection, schema: pa.Schema) -> str:
        index = self._index(schema)
        if index is not None:
            if not pa.types.is_integer(schema.field(index).type):
                refuse_type(index, str(schema.field(index).type), "whole numbers", self._table_place)
            return sql_name(index)
        try:
            connection.sql(f"SELECT rowid FROM {self._name} LIMIT 0").fetchall()
        except duckdb.Error:
            return "NULL::BIGINT"  # a view
        return "rowid"

    @property
    def _table_place(self) -> str:
        return f"{self.database}: {self.table}" if self.called is None else self.called

    def _sound(self, connection: duckdb.DuckDBPyConnection, roles: Roles, findings: Findings) -> _Sound:
        """Return the rows with case, activity and time, or raise an error on their faults."""
        schema = self._open_table(connection)
        rows, index = self._rows(connection, schema, roles), self._index(schema)
        whole = f"SELECT * FROM ({rows}) WHERE c IS NOT NULL AND a IS NOT NULL AND t IS NOT NULL"
        found, dropped = settle_counts(
            lambda clean: _counts(connection, whole if clean else rows), findings, index, self._table_place
        )
        rows = whole if dropped else rows
        alone = index is not None and self.options.index is None  # veilog's own index stands above the times
        if found.unplaced or index is not None:
            ties = f"SELECT c FROM ({rows}) GROUP BY c, {'' if alone else 't, '}i HAVING min(a) <> max(a)"
            refuse_ties(_fetch_one(connection, "count(*)", ties)[0], index, self._table_place)
        return _Sound(rows, found, index, alone)

    def _event_query(
        self, connection: duckdb.DuckDBPyConnection, sound: _Sound, kind: pa.DataType, findings: Findings
    ) -> EventQuery:
        """Return the query to group, with an event as one key."""
        naive = pa.types.is_date(kind) or kind.tz is None
        found, position = sound.found, "0"
        count_times(findings, found.rows, naive=found.rows if naive else 0, cut=found.finer)
        if sound.placed:
            least, most = _fetch_one(connection, "min(i), max(i)", sound.rows)
            position = f"i - ({least})" if most - least < 1 << POSITION_BITS else "row_number() OVER (ORDER BY i)"
        labels = connection.sql(f"SELECT DISTINCT a FROM ({sound.rows}) ORDER BY a").to_arrow_table()
        placed = f"SELECT c, t, a, {position} AS i FROM ({sound.rows})"
        key = timed_key("0" if sound.alone else "t", label_places(connection, labels))
        return EventQuery(
            f"SELECT c, {key} AS k FROM ({placed})", labels["a"].to_pylist(), start=found.start, end=found.end
        )


@dataclass(frozen=True)
class _Sound:
    """Rows without gaps, in columns ``c``, ``a``, ``t`` and ``i``, and their facts."""

    rows: str
    found: EventCounts
    index: str | None
    alone: bool
    """True if the index orders events whatever their times are."""

    @property
    def placed(self) -> bool:
        """True if the rows have an order of their own or an index."""
        return not self.found.unplaced


def _counts(connection: duckdb.DuckDBPyConnection, rows: str) -> EventCounts:
    return EventCounts(
        *_fetch_one(
            connection,
            "count(*), count(*) FILTER (c IS NULL), count(*) FILTER (a IS NULL), count(*) FILTER (t IS NULL), "
            "count(*) FILTER (i IS NULL), count(*) FILTER (finer), min(t), max(t)",
            rows,
        )
    )


def _time_columns(time: pa.Field) -> tuple[str, str]:
    """Return SQL for the microseconds of a column of times, and for which are cut.

    Microseconds are null where there are none, as for infinite times.
    """
    instant = f"{sql_name(time.name)}::TIMESTAMP" if pa.types.is_date(time.type) else sql_name(time.name)
    return micros(instant, time.type)


def _binary_column(field: pa.Field) -> str:
    """Return a column in which texts are the same only if their characters are."""
    name = sql_name(field.name)
    return f"{name}::VARCHAR {_CHARACTERS} AS {name}" if is_text(field.type) else name


def _fetch_one(connection: duckdb.DuckDBPyConnection, values: str, rows: str) -> Any:
    return connection.execute(f"SELECT {values} FROM ({rows})").fetchall()[0]


def _tables(connection: duckdb.DuckDBPyConnection) -> str:
    found = connection.execute(
        "SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = 'source' UNION ALL "
        "SELECT schema_name, view_name FROM duckdb_views() WHERE database_name = 'source' AND NOT internal "
        "ORDER BY 1, 2"
    ).fetchall()
    return ", ".join(name if schema == "main" else f"{schema}.{name}" for schema, name in found[:30])
