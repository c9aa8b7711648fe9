"""A Parquet file as a log on disk, for questions about more events than fit in memory.

DuckDB sorts the rows of a Parquet file by the case's first row, within its memory limit. What comes out is cut into
pieces of whole cases; each piece becomes an event log by the same rules as a whole table, and is kept as
:class:`~veilog.logs.stored.store.StoredLog`. All pieces together are the log that :func:`veilog.read` gives: the same
cases in the same order, each with the same events in the same order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from veilog.logs.engines.duckdb_files import connected
from veilog.logs.engines.keys import sql_name, sql_text
from veilog.logs.eventlog import EVENT_INDEX, EventLog
from veilog.logs.findings import Findings, Policy
from veilog.logs.lifecycle import Transitions
from veilog.logs.reader import Asked
from veilog.logs.roles import Declared, Roles, declared_roles
from veilog.logs.source import Means, Progress, Source, silent
from veilog.logs.stored.store import StoredLog, keep
from veilog.logs.tables.columns import is_text, plain_type
from veilog.logs.tables.parquet import PARQUET, is_parquet, opened
from veilog.logs.tables.reader import note, table_reader_of
from veilog.logs.tables.rows import log_from_table

__all__ = ["LARGE", "is_large", "store", "stored"]

LARGE = 5_000_000
"""Events from which on ``veilog release`` keeps a Parquet log on disk where its events are asked about."""
_PIECE = 400_000
"""Events of a piece, unless one case alone has more."""


def is_large(source: Source) -> bool:
    """Whether this is a file that says that it has more than ``LARGE`` events, as Parquet does."""
    reader = table_reader_of(source) if source.is_file else None
    rows = None if reader is None else reader.rows(source)
    return rows is not None and rows > LARGE


def store(
    path: str | Path,
    *,
    case: str | None = None,
    activity: str | None = None,
    timestamp: str | None = None,
    lifecycle: str | None = None,
    classifier: str | None = None,
    policies: Mapping[str, Policy] | None = None,
    memory_limit: str = "1GB",
    threads: int | None = None,
    temp_directory: str | Path | None = None,
    progress: Progress = silent,
) -> StoredLog | None:
    """The log in a Parquet file, kept on disk; None where only :func:`veilog.read` can tell what its rows mean.

    That is where a case or an activity has no name, an event no time or a text for one, or an explicit index, or where
    it takes all rows to see whether a column belongs to cases. DuckDB stays within ``memory_limit``, and with it the
    pieces in ``temp_directory``, which take about as much room as the file.
    """
    source = Source(path, means=Means(memory_limit, threads, temp_directory))
    declared = Declared(case, activity, timestamp, lifecycle, classifier)
    return stored(source, Asked(declared, Findings(policies or {}, str(source.path)), progress=progress))


def stored(source: Source, asked: Asked) -> StoredLog | None:
    """The log of a source, kept on disk by its means; see :func:`store`."""
    if not is_parquet(source):
        return None
    path, findings, progress = source.path, asked.findings, asked.progress or silent
    roles = declared_roles(PARQUET.columns(source), asked.declared, PARQUET.notes(source).metadata.classifiers)
    schema, rows = opened(source).schema_arrow, PARQUET.rows(source)
    if not _is_plain(schema, roles) or PARQUET.notes(source).case_key is not None:
        return None

    def pieces(connection: duckdb.DuckDBPyConnection, events: str) -> Iterator[EventLog]:
        done, chosen = 0, replace(roles, transition=None)  # what concerns all events was seen to already
        for table in _tables(connection, events, roles, schema):
            yield log_from_table(table, chosen, findings, source=str(path))
            done += table.num_rows
            progress(f"sorting {path.name}: {done:,} of {rows:,} events", done / rows)

    note(source, roles, findings)
    with connected(source.means) as connection:
        events = _chosen(connection, path, roles, findings)
        if not rows or _has_gaps(connection, events, roles):
            return None
        progress(f"sorting {path.name}", None)
        log = keep(pieces(connection, events), temp_directory=source.means.temp_directory)
    if log is None:
        return None
    shape = replace(log.shape, read_together=findings.read_together())
    return replace(log, shape=shape, findings=findings.result())


def _is_plain(schema: pa.Schema, roles: Roles) -> bool:
    """Whether these columns mean the same to DuckDB, which ignores case in names, and one by one."""
    if roles.clock is not None or roles.two_events:
        return False
    names = [*schema.names, "file_row_number", "veilog_place"]
    if len({name.lower() for name in names}) < len(names) or EVENT_INDEX in schema.names:
        return False
    kinds = [schema.field(name).type for name in (roles.case, roles.activity)]
    plain = [plain_type(kind) for kind in kinds]
    named = (is_text(plain[0]) or pa.types.is_integer(plain[0])) and is_text(plain[1])
    return bool(named and pa.types.is_timestamp(schema.field(roles.timestamp).type))


def _chosen(connection: duckdb.DuckDBPyConnection, path: Path, roles: Roles, findings: Findings) -> str:
    """The rows that count: those of the transition that was asked for, or all, with a finding about transitions."""
    rows = f"read_parquet({sql_text(str(path))}, file_row_number = true, hive_partitioning = false)"
    if roles.transition is None:
        return rows
    activity, step = sql_name(roles.activity), f"coalesce({sql_name(roles.transition)}::VARCHAR, '')"
    counts = connection.execute(
        f"SELECT {activity}::VARCHAR AS a, {step} AS s, count(*) FROM {rows} GROUP BY a, s ORDER BY a, s"
    ).fetchall()
    transitions = Transitions.of(counts, roles.lifecycle)
    transitions.done(findings, told_apart=roles.transition in roles.classifier)
    if roles.lifecycle is None:
        return rows
    wanted = ", ".join(sql_text(name) for name in transitions.wanted())
    return f"(SELECT * FROM {rows} WHERE {step} IN ({wanted}))"


def _has_gaps(connection: duckdb.DuckDBPyConnection, events: str, roles: Roles) -> bool:
    case, activity, time = (sql_name(name) for name in (roles.case, roles.activity, roles.timestamp))
    found = connection.execute(
        f"SELECT count(*) FROM {events} WHERE {time} IS NULL "
        f"OR coalesce(trim({case}::VARCHAR), '') = '' OR coalesce(trim({activity}::VARCHAR), '') = ''"
    ).fetchall()
    return bool(found[0][0])


def _tables(connection: duckdb.DuckDBPyConnection, events: str, roles: Roles, schema: pa.Schema) -> Iterator[pa.Table]:
    """The rows of the file, those of a case together and in their order, cases by their first row, in whole cases."""
    case = sql_name(roles.case)
    connection.execute(f"CREATE TABLE places AS SELECT {case} AS c, min(file_row_number) AS p FROM {events} GROUP BY c")
    columns = ", ".join(f"e.{sql_name(name)}" for name in schema.names)
    found = connection.sql(
        f"SELECT {columns}, p AS veilog_place FROM {events} e JOIN places ON e.{case} = c ORDER BY p, e.file_row_number"
    )
    waiting: list[pa.Table] = []
    rows = 0
    for batch in found.to_arrow_reader(100_000):
        waiting.append(pa.Table.from_batches([batch]))
        rows += batch.num_rows
        if rows >= _PIECE:
            table = pa.concat_tables(waiting)
            place = table.column("veilog_place").to_numpy()
            last = int(np.searchsorted(place, place[-1]))  # the case that may go on
            if last:
                yield _typed(table.slice(0, last), schema)
            waiting, rows = [table.slice(last)], table.num_rows - last
    if rows:
        yield _typed(pa.concat_tables(waiting), schema)


def _typed(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows in the types of the file, which DuckDB need not keep."""
    columns: list[Any] = []
    for field in schema:
        column = table.column(field.name)
        columns.append(column if column.type == field.type else column.cast(field.type))
    return pa.table(columns, schema=schema.remove_metadata())
