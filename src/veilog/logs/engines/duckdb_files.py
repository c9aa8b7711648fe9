"""Variants from files and tables of any size: DuckDB groups the events within a memory limit, nothing is loaded whole.

Each event becomes one integer (see :mod:`veilog.logs.engines.keys`). The sorted list of these integers in a case,
reduced to the activities, is its variant; equal lists are counted. Cases are taken in as many parts as the memory
needs, each case wholly in one part. The result equals ``read(path).variants``, ties and all, because the position of
the row decides them in both.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from veilog._typing import IntArray
from veilog.errors import EngineError, InputError, ParameterError
from veilog.logs.engines.engine import Grouped, spilling
from veilog.logs.engines.keys import (
    ACTIVITY_BITS,
    FIRST_TIME,
    LAST_TIME,
    TIMELESS,
    EventQuery,
    sql_name,
    sql_text,
    timed_key,
)
from veilog.logs.engines.loading import load
from veilog.logs.eventlog import EVENT_INDEX
from veilog.logs.findings import Findings
from veilog.logs.input.lifecycle import Transitions
from veilog.logs.input.reader import ReadRequest
from veilog.logs.input.roles import Roles
from veilog.logs.input.source import AT_HAND, Means, Progress, Source, silent
from veilog.logs.tables.cells.columns import is_text, plain_type
from veilog.logs.tables.events.checks import count_times
from veilog.logs.tables.parquet import PARQUET, is_parquet, opened
from veilog.logs.tables.reader import TableReader, table_reader_of
from veilog.logs.variants import Variants

__all__ = ["DuckFiles", "coded", "connected", "group", "micros"]

_MOST_PARTS = 4096


@dataclass(frozen=True)
class DuckFiles:
    """One log in one or more CSV or Parquet files, in this order; the variants must fit in memory beside DuckDB."""

    files: tuple[Source, ...]
    means: Means = AT_HAND

    def columns(self) -> list[str]:
        return self._reader.columns(self.files[0])

    @property
    def _reader(self) -> TableReader:
        found = table_reader_of(self.files[0])
        assert found is not None, "only tables are grouped"
        return found

    def group(self, roles: Roles, findings: Findings, progress: Progress = silent) -> Grouped:
        files = self.files
        once = findings.policy("duplicate-case-id") != "keep" and len(files) == 1
        if once and self._reader.notes(files[0]).case_key is not None:
            # Only the whole log tells which were first.
            log = self._reader.read(files[0], ReadRequest(findings=findings, roles=roles))
            return Grouped(log.variants, *log.span)
        with connected(self.means) as connection:
            progress("looking at the events", None)
            events = _plain_parquet(connection, files, roles, findings)
            if events is None:
                events = load(connection, files, roles, findings)
            return group(connection, events, progress)


@contextlib.contextmanager
def connected(means: Means) -> Iterator[duckdb.DuckDBPyConnection]:
    """A private DuckDB that keeps its limit, fetches no extensions and leaves nothing behind."""
    with spilling(means) as spill:
        config: dict[str, Any] = {
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "preserve_insertion_order": False,
            "temp_directory": str(spill),
        }
        if means.threads is not None:
            config["threads"] = means.threads
        connection = duckdb.connect(config=config)
        try:
            try:
                connection.execute(f"SET memory_limit = {sql_text(means.memory_limit)}")
            except duckdb.Error as error:
                raise ParameterError(
                    "memory-limit-not-understood", parameter="memory_limit", memory_limit=means.memory_limit
                ) from error
            connection.execute("SET TimeZone = 'UTC'")
            yield connection
        except duckdb.Error as error:
            raise _in_words(error, means) from error
        except RuntimeError as error:
            if "Query interrupted" not in str(error):
                raise
            raise KeyboardInterrupt from error  # what DuckDB makes of Ctrl-C
        finally:
            connection.close()


def _in_words(error: duckdb.Error, means: Means) -> InputError | ParameterError | EngineError:
    reason = str(error).splitlines()[0]
    if _disk_is_full(error):
        return EngineError("disk-duckdb-spills-full", reason=reason)
    if isinstance(error, duckdb.OutOfMemoryException):
        return ParameterError("cannot-done-within-memory", parameter="memory_limit", memory_limit=means.memory_limit)
    return InputError("events-cannot-read", reason=reason)


def _disk_is_full(error: duckdb.Error) -> bool:
    text = str(error)
    return any(sign in text for sign in ("No space left", "File too large", "Disk quota", "max_temp_directory_size"))


def _plain_parquet(
    connection: duckdb.DuckDBPyConnection, files: Sequence[Source], roles: Roles, findings: Findings
) -> EventQuery | None:
    """The files as DuckDB reads them itself, the fast way; None unless every column is plain and nothing is wrong."""
    if roles.lifecycle is not None or roles.classifier or roles.clock is not None:
        return None
    stepped = roles.transition is not None
    alike: dict[tuple[pa.DataType, pa.DataType], list[tuple[Path, int]]] = {}
    rows, naive = 0, 0
    for file in files:
        if not is_parquet(file) or any(sign in str(file.path) for sign in "*?["):
            return None
        schema, count = opened(file).schema_arrow, PARQUET.rows(file)
        if not _is_plain(schema, roles) or PARQUET.notes(file).case_key is not None:
            return None
        if stepped and not (roles.transition in schema.names and _is_name(schema.field(roles.transition).type)):
            return None
        kinds = (schema.field(roles.case).type, schema.field(roles.timestamp).type)
        naive += count if kinds[1].tz is None else 0
        alike.setdefault(kinds, []).append((file.path, rows))
        rows += count
    table = " UNION ALL ".join(_select(same, *kinds, roles, len(files)) for kinds, same in alike.items())
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
    if stepped:
        steps = connection.sql(f"SELECT a, s, count(*) FROM ({table}) GROUP BY a, s ORDER BY a, s").fetchall()
        Transitions.of(steps).done(findings, told_apart=False)
    count_times(findings, rows, naive=naive, cut=pc.sum(found["finer"]).as_py())
    key = timed_key("t", coded(connection, found.select(["a"])))
    return EventQuery(f"SELECT c, {key} AS k FROM ({table})", labels, start=low, end=high)


def _select(files: list[tuple[Path, int]], case_kind: pa.DataType, kind: pa.DataType, roles: Roles, others: int) -> str:
    """The rows of files whose columns have these types, each file with the rows before it."""
    # A whole number is its own case; beside files in which cases are text it becomes text as well.
    blank, case = "NULL", sql_name(roles.case)
    if others > 1 or not pa.types.is_integer(case_kind):
        blank, case = "''", f"{case}::VARCHAR"
    time, cut = micros(sql_name(roles.timestamp), kind)
    step = "NULL" if roles.transition is None else f"coalesce({sql_name(roles.transition)}::VARCHAR, '')"
    paths = ", ".join(sql_text(str(path)) for path, _ in files)
    before = ", ".join(str(rows) for _, rows in files)
    return (
        f"SELECT {case} AS c, {sql_name(roles.activity)}::VARCHAR AS a, {time} AS t, {step} AS s, "
        f"([{before}]::BIGINT[])[file_index::BIGINT + 1] + file_row_number AS i, "
        f"{cut} AS finer, coalesce({case} = {blank}, {case} IS NULL) AS nameless "
        f"FROM read_parquet([{paths}], file_row_number = true, hive_partitioning = false)"
    )


def coded(connection: duckdb.DuckDBPyConnection, labels: pa.Table) -> str:
    """What turns the column ``a`` into the places of its values among these labels."""
    connection.register("labels", labels)
    connection.execute("CREATE TYPE activity AS ENUM (SELECT a FROM labels ORDER BY a)")
    connection.unregister("labels")
    return "enum_code(a::activity)"


def _is_plain(schema: pa.Schema, roles: Roles) -> bool:
    """Whether these columns mean the same to DuckDB, which ignores case in names, as to our own reader."""
    return (
        len({name.lower() for name in [*schema.names, "file_row_number", "file_index"]}) > len(schema.names) + 1
        and all(name in schema.names for name in (roles.case, roles.activity, roles.timestamp))
        and EVENT_INDEX not in schema.names
        and _is_name(schema.field(roles.case).type)
        and _is_name(schema.field(roles.activity).type, text_only=True)
        and pa.types.is_timestamp(schema.field(roles.timestamp).type)
    )


def _is_name(kind: pa.DataType, *, text_only: bool = False) -> bool:
    kind = plain_type(kind)
    return is_text(kind) or (not text_only and bool(pa.types.is_integer(kind)))


def micros(column: str, kind: pa.DataType) -> tuple[str, str]:
    """Microseconds since 1970, cut downwards like ours, and whether something was cut."""
    if not pa.types.is_timestamp(kind) or kind.unit != "ns":
        return f"epoch_us({column})", "false"
    rest = f"(((epoch_ns({column}) % 1000) + 1000) % 1000)"
    return f"((epoch_ns({column}) - {rest}) // 1000)", f"{rest} <> 0"


def group(connection: duckdb.DuckDBPyConnection, events: EventQuery, progress: Progress) -> Grouped:
    """Group in as few parts as the memory allows; a part that does not fit, or spills too much, is cut in two."""
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
