"""Variants from files of any size: DuckDB groups the events within a memory limit, nothing is loaded whole.

Each event becomes one integer of 128 bits: time, position, activity from the most to the least significant bits. The
sorted list of these integers in a case, reduced to the activities, is its variant; equal lists are counted. Cases are
taken in as many parts as the memory needs, each case wholly in one part. The result equals
``read(path).variants``, ties and all, because the position of the row decides them in both.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from veilog.errors import InputError, ParameterError
from veilog.logs import parquet
from veilog.logs.checks import Rows, blank, check_bad, check_names, count_times
from veilog.logs.columns import is_text
from veilog.logs.eventlog import EVENT_INDEX
from veilog.logs.findings import Findings
from veilog.logs.pieces import Piece, pieces
from veilog.logs.roles import Roles
from veilog.logs.streams import DEFAULT_LIMIT
from veilog.logs.variants import IntArray, Variants

__all__ = ["variants_from_files"]

# Layout of the 128-bit key. With timestamps: 59 bits of time (years 1 to 9999 in microseconds), 40 of position, 27 of
# activity. With an explicit index: 64 bits of it, 35 of position, 27 of activity.
_ACTIVITY_BITS = 27
_POSITION_BITS = 40
_TIME_ORIGIN = 62_135_596_800_000_000
_TIMELESS = (1 << (_POSITION_BITS + _ACTIVITY_BITS)) - 1

_LAST = 253_402_300_799_999_999
_MOST_PARTS = 4096


def variants_from_files(
    paths: Sequence[str | os.PathLike[str]],
    roles: Roles,
    *,
    findings: Findings | None = None,
    memory_limit: str = "1GB",
    threads: int | None = None,
    temp_directory: str | os.PathLike[str] | None = None,
    limit: int | None = DEFAULT_LIMIT,
) -> Variants:
    """The variants of one log in one or more CSV or Parquet files, in the order given.

    DuckDB stays within ``memory_limit`` and spills to ``temp_directory`` (the system's by default); the variants
    themselves must fit in memory beside it.
    """
    if threads is not None and threads < 1:
        raise ParameterError(f"{threads} threads cannot do anything.", parameter="threads", advice="Give 1 or more.")
    files = [Path(path) for path in paths]
    if not files:
        raise InputError("There is no file to read.")
    findings = Findings() if findings is None else findings
    if findings.policy("duplicate-case-id") != "keep" and len(files) == 1 and parquet.has_case_index(files[0]):
        return parquet.read_parquet(files[0], roles, findings).variants  # only the whole log tells which were first
    with _connection(memory_limit, threads, temp_directory) as connection:
        source = _plain_parquet(connection, files, roles, findings)
        if source is None:
            source = _load(connection, files, roles, findings, limit)
        return _group(connection, source)


@dataclass
class _Source:
    """Events in DuckDB: what to group, with which labels, and what is added without events."""

    events: str
    """A relation with ``c`` (what tells cases apart), ``k`` (the key) and, if ``timeless``, ``m`` (time missing)."""
    labels: list[str]
    timeless: bool = False
    empty_cases: int = 0
    case: str = "c"


@contextlib.contextmanager
def _connection(
    memory_limit: str, threads: int | None, temp_directory: str | os.PathLike[str] | None
) -> Iterator[duckdb.DuckDBPyConnection]:
    """A private DuckDB that keeps its limit, fetches no extensions and leaves nothing behind."""
    try:
        folder = tempfile.TemporaryDirectory(prefix="veilog-", dir=temp_directory, ignore_cleanup_errors=True)
    except OSError as error:
        raise ParameterError(
            f"The temporary directory cannot be used ({error.strerror}).", parameter="temp_directory"
        ) from error
    with folder as spill:
        config: dict[str, Any] = {
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "preserve_insertion_order": False,
            "temp_directory": spill,
        }
        if threads is not None:
            config["threads"] = threads
        connection = duckdb.connect(config=config)
        try:
            try:
                connection.execute(f"SET memory_limit = {_text(memory_limit)}")
            except duckdb.Error as error:
                raise ParameterError(
                    f"The memory limit {memory_limit!r} is not understood.",
                    parameter="memory_limit",
                    advice="Write it like 800MB or 2GB.",
                ) from error
            connection.execute("SET TimeZone = 'UTC'")
            yield connection
        except duckdb.OutOfMemoryException as error:
            raise ParameterError(
                f"The variants cannot be found within {memory_limit} of memory.",
                parameter="memory_limit",
                advice="Allow more.",
            ) from error
        except duckdb.Error as error:
            raise InputError(f"The events cannot be read ({str(error).splitlines()[0]}).") from error
        finally:
            connection.close()


def _plain_parquet(
    connection: duckdb.DuckDBPyConnection, files: list[Path], roles: Roles, findings: Findings
) -> _Source | None:
    """The files as DuckDB reads them itself, the fast way; None unless every column is plain and nothing is wrong."""
    selects, rows, naive = [], 0, 0
    for path in files:
        if not path.name.lower().endswith(".parquet") or any(sign in str(path) for sign in "*?["):
            return None
        with parquet.open_parquet(path) as file:
            schema, count = file.schema_arrow, file.metadata.num_rows
        if not _is_plain(schema, roles) or parquet.notes(schema, path).case_key is not None:
            return None
        kind = schema.field(roles.timestamp).type
        naive += count if kind.tz is None else 0
        # A whole number is its own case; beside files in which cases are text it becomes text as well.
        blank, case = "NULL", _name(roles.case)
        if len(files) > 1 or not pa.types.is_integer(schema.field(roles.case).type):
            blank, case = "''", f"{case}::VARCHAR"
        time, cut = _micros(_name(roles.timestamp), kind)
        selects.append(
            f"SELECT {case} AS c, {_name(roles.activity)}::VARCHAR AS a, {time} AS t, file_row_number + {rows} AS i, "
            f"{cut} AS finer, coalesce({case} = {blank}, {case} IS NULL) AS nameless "
            f"FROM read_parquet({_text(str(path))}, file_row_number = true, hive_partitioning = false)"
        )
        rows += count
    table = " UNION ALL ".join(selects)
    found = connection.sql(f"SELECT DISTINCT a FROM ({table}) ORDER BY a").to_arrow_table()
    labels = found.column(0).to_pylist()
    faulty, low, high, cut = connection.execute(
        f"SELECT count(*) FILTER (WHERE nameless OR t IS NULL), min(t), max(t), count(*) FILTER (WHERE finer) "
        f"FROM ({table})"
    ).fetchall()[0]
    if rows == 0 or faulty or low < -_TIME_ORIGIN or high > _LAST or None in labels or "" in labels:
        return None
    count_times(findings, rows, naive=naive, cut=cut)
    connection.register("labels", found)
    connection.execute("CREATE TYPE activity AS ENUM (SELECT a FROM labels ORDER BY a)")
    connection.unregister("labels")
    key = _timed_key("t", "enum_code(a::activity)")
    return _Source(f"SELECT c, {key} AS k FROM ({table})", labels)


def _is_plain(schema: pa.Schema, roles: Roles) -> bool:
    """Whether these columns mean the same to DuckDB, which ignores case in names, as to our own reader."""
    return (
        len({name.lower() for name in [*schema.names, "file_row_number"]}) > len(schema.names)
        and all(name in schema.names for name in (roles.case, roles.activity, roles.timestamp))
        and EVENT_INDEX not in schema.names
        and _is_name(schema.field(roles.case).type)
        and _is_name(schema.field(roles.activity).type, text_only=True)
        and pa.types.is_timestamp(schema.field(roles.timestamp).type)
    )


def _is_name(kind: pa.DataType, *, text_only: bool = False) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return is_text(kind) or (not text_only and bool(pa.types.is_integer(kind)))


def _micros(column: str, kind: pa.DataType) -> tuple[str, str]:
    """Microseconds since 1970, cut downwards like ours, and whether something was cut."""
    if kind.unit != "ns":
        return f"epoch_us({column})", "false"
    rest = f"(((epoch_ns({column}) % 1000) + 1000) % 1000)"
    return f"((epoch_ns({column}) - {rest}) // 1000)", f"{rest} <> 0"


def _timed_key(time: str, code: str) -> str:
    return (
        f"(({time} + {_TIME_ORIGIN})::HUGEINT << {_POSITION_BITS + _ACTIVITY_BITS}) "
        f"+ (i::HUGEINT << {_ACTIVITY_BITS}) + {code}::HUGEINT"
    )


def _group(connection: duckdb.DuckDBPyConnection, source: _Source) -> Variants:
    """Group in as few parts as the memory allows; a part that does not fit is cut in two."""
    parts = 1
    results: list[tuple[IntArray, IntArray, IntArray]] = []
    pending = [(0, 1)]
    while pending:
        part, parts = pending.pop()
        try:
            results.append(_group_part(connection, source, part, parts))
        except duckdb.OutOfMemoryException:
            if parts >= _MOST_PARTS:
                raise
            pending += [(part, 2 * parts), (part + parts, 2 * parts)]
    codes, lengths, counts = (np.concatenate([result[i] for result in results]) for i in range(3))
    if source.empty_cases:
        lengths, counts = np.append(lengths, 0), np.append(counts, source.empty_cases)
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return Variants.from_arrays(source.labels, codes, offsets, counts)


def _group_part(
    connection: duckdb.DuckDBPyConnection, source: _Source, part: int, parts: int
) -> tuple[IntArray, IntArray, IntArray]:
    chosen = "" if parts == 1 else f"WHERE hash({source.case}) % {parts} = {part}"
    keys = "list(k)"
    if source.timeless:
        # A case with an event without time keeps the order of its rows: blank the time in all its keys.
        keys = f"CASE WHEN bool_or(m) THEN list_transform(list(k), lambda x: x & {_TIMELESS}) ELSE list(k) END"
    found = connection.sql(
        f"SELECT variant, count(*) AS n FROM (SELECT list_transform(list_sort({keys}), "
        f"lambda x: (x & {(1 << _ACTIVITY_BITS) - 1})::INTEGER) AS variant "
        f"FROM ({source.events}) {chosen} GROUP BY {source.case}) GROUP BY variant"
    ).to_arrow_table()
    if found.num_rows == 0:
        return np.zeros(0, np.int32), np.zeros(0, np.int64), np.zeros(0, np.int64)
    codes = pc.list_flatten(found.column(0)).to_numpy()
    lengths = pc.list_value_length(found.column(0)).to_numpy().astype(np.int64)
    return codes, lengths, found.column(1).to_numpy()


def _name(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _load(
    connection: duckdb.DuckDBPyConnection, files: list[Path], roles: Roles, findings: Findings, limit: int | None
) -> _Source:
    """Bring any table into DuckDB piece by piece, through the same checks as :func:`veilog.logs.tables.log_from_table`.

    Faults are decided here, so that what is grouped is clean.
    """
    # A database file takes the rows, so that they do not count against the memory.
    folder = connection.execute("SELECT current_setting('temp_directory')").fetchall()[0][0]
    connection.execute(f"ATTACH {_text(str(Path(folder) / 'events.duckdb'))} AS store")
    connection.execute("USE store")
    connection.execute("CREATE TABLE events (c VARCHAR, o BIGINT, i BIGINT, t BIGINT, m TINYINT, g BIGINT, a INTEGER)")
    state = _Loading()
    for path in files:
        for piece in pieces(path, roles, findings, limit, alone=len(files) == 1):
            _insert(connection, piece, state, findings)
        state.rows_before = state.rows
    if state.rows == 0:
        raise InputError("There is a header but not a single row.", path=files[0])
    where = ""
    if state.absent:
        if not state.timed:
            findings.add("no-timestamps", "the column of timestamps is empty", count=state.absent)
        elif findings.add("missing-timestamp", state.absent_where, count=state.absent) == "drop":
            where = "WHERE m <> 1"
            state.kept -= state.absent
    if not state.kept:
        raise InputError("Not one event is left.", path=files[0])
    count_times(findings, state.kept, naive=state.naive, offsets=state.offsets, cut=state.cut)
    given = state.given
    if given:
        # 64 bits of the index, 35 of position, 27 of activity.
        key = f"((g::HUGEINT + {1 << 63}) << 62) + (i::HUGEINT << {_ACTIVITY_BITS}) + a::HUGEINT"
    else:
        key = _timed_key("coalesce(t, 0)", "a")
    case = "c, o" if state.nameless else "c"
    events = f"SELECT {case}, {key} AS k, t IS NULL AS m FROM events {where}"
    return _Source(events, list(state.codes), not given, state.empty_cases, case)


@dataclass
class _Loading:
    """What is known of the rows so far."""

    codes: dict[str, int] = field(default_factory=dict)
    rows: int = 0
    rows_before: int = 0
    kept: int = 0
    absent: int = 0
    absent_where: str = ""
    timed: bool = False
    nameless: bool = False
    given: bool = True
    naive: int = 0
    cut: int = 0
    empty_cases: int = 0
    offsets: set[int] = field(default_factory=set)


def _insert(connection: duckdb.DuckDBPyConnection, piece: Piece, state: _Loading, findings: Findings) -> None:
    start, size = state.rows, len(piece.names)
    state.rows += size
    state.empty_cases += piece.empty_cases
    rows = Rows(findings, piece.line_of, start - state.rows_before)
    nameless = blank(piece.names)
    names, labels, keep = check_names(piece.names, piece.labels, rows)
    times = piece.times
    keep = check_bad(times, piece.stamps, keep, rows)
    absent = ~times.known & ~times.bad & keep
    if absent.any() and not state.absent:
        state.absent_where = rows.where(int(absent.argmax()))
    state.absent += int(absent.sum())
    state.kept += int(keep.sum())
    state.timed |= bool(((times.known | times.bad) & keep).any())
    state.nameless |= bool((nameless & keep).any())
    state.given &= piece.given is not None
    state.naive += times.naive
    state.cut += times.cut
    state.offsets |= times.offsets

    encoded = labels.dictionary_encode().combine_chunks()
    encoded = encoded.chunk(0) if isinstance(encoded, pa.ChunkedArray) else encoded
    known = [state.codes.setdefault(label, len(state.codes)) for label in _used(encoded, keep)]
    if len(state.codes) >= 1 << _ACTIVITY_BITS:
        raise InputError(f"There are more than {1 << _ACTIVITY_BITS} activities.", path=findings.path)
    position = np.arange(start, start + size)
    batch = pa.table(
        {
            "c": names if piece.key is None else piece.key,
            "o": pa.array(position, pa.int64(), mask=~nameless),
            "i": pa.array(position, pa.int64()),
            "t": pa.array(times.micros, pa.int64(), mask=~times.known),
            "m": pa.array(absent.astype(np.int8) + 2 * times.bad.astype(np.int8), pa.int8()),
            "g": pa.array(np.zeros(size, np.int64) if piece.given is None else piece.given, pa.int64()),
            "a": pa.array(np.asarray(known, np.int32)[encoded.indices.fill_null(0).to_numpy()] if known else position),
        }
    )
    if not keep.all():
        batch = batch.filter(pa.array(keep))
    connection.register("batch", batch)
    connection.execute("INSERT INTO events SELECT * FROM batch")
    connection.unregister("batch")


def _used(encoded: Any, keep: Any) -> list[str]:
    """The labels of a dictionary, in its order; those only in rows left out become the first kept one."""
    labels = encoded.dictionary.to_pylist()
    used = np.zeros(len(labels), dtype=np.bool_)
    indices = encoded.indices.fill_null(0).to_numpy()
    used[indices[keep]] = True
    kept = next((label for label, wanted in zip(labels, used.tolist(), strict=True) if wanted), None)
    return [] if kept is None else [label if wanted else kept for label, wanted in zip(labels, used, strict=True)]
