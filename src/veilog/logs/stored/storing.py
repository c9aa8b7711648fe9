"""A log on disk for questions about more events than fit in memory: from files, or from a table of an engine.

DuckDB sorts the rows by case within its memory limit (:mod:`veilog.logs.stored.sorting`). Each piece of whole cases
that comes out becomes an event log by the same rules as a whole table, and is kept as
:class:`~veilog.logs.stored.store.StoredLog`. All pieces together are the log that :func:`veilog.read` gives of the
same rows: the same cases in the same order, each with the same events in the same order.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Literal

import duckdb
import pyarrow as pa

from veilog.errors import InputError, ParameterError
from veilog.logs.earlier import Provenance
from veilog.logs.engines.duckdb_files import DuckFiles, connected
from veilog.logs.engines.duckdb_table import DuckTable
from veilog.logs.engines.engine import VariantSource, spilling
from veilog.logs.engines.ibis import IbisTable
from veilog.logs.engines.keys import RowQuery
from veilog.logs.engines.names import engine_of
from veilog.logs.eventlog import EventLog
from veilog.logs.findings import Findings, Policy
from veilog.logs.input.coarser import MapLike, mapped_by
from veilog.logs.input.reader import ReadRequest
from veilog.logs.input.reading import check_layout, earlier_of, read_as, roles_among, used_columns
from veilog.logs.input.roles import Declared, Roles
from veilog.logs.input.source import Given, Means, Progress, Source, silent
from veilog.logs.stored.disk import keep
from veilog.logs.stored.fetching import copied, count_of
from veilog.logs.stored.parquet import rows_of_file, rows_of_files
from veilog.logs.stored.sorting import in_order, placed
from veilog.logs.stored.store import StoredLog, misfit
from veilog.logs.tables.events.rows import log_from_table
from veilog.logs.tables.parquet import PARQUET, is_parquet
from veilog.logs.tables.reader import note, table_reader_of

__all__ = ["LARGE", "is_elsewhere", "is_large", "store", "stored", "whole_of"]

Where = Literal["here", "engine"]

LARGE = 5_000_000
"""Events from which on ``veilog release`` keeps a Parquet log on disk where its events are asked about, and beyond
which a table of an engine is not read into memory."""


def is_large(source: Source) -> bool:
    """Whether this is a file that says that it has more than ``LARGE`` events, as Parquet does."""
    reader = table_reader_of(source) if source.is_file else None
    rows = None if reader is None else reader.rows(source)
    return rows is not None and rows > LARGE


def is_elsewhere(source: Source) -> bool:
    """Whether the log is no single file: several that are one, or a table of an engine."""
    return source.several or source.engine != "duckdb"


def store(
    source: Given,
    *,
    case: str | None = None,
    activity: str | None = None,
    timestamp: str | None = None,
    index: str | None = None,
    lifecycle: str | None = None,
    classifier: str | None = None,
    engine: str = "duckdb",
    policies: Mapping[str, Policy] | None = None,
    memory_limit: str = "1GB",
    threads: int | None = None,
    temp_directory: str | Path | None = None,
    progress: Progress = silent,
    map: MapLike | None = None,  # noqa: A002 - the option's name
    level: int = 1,
    top: int | None = None,
    where: Where = "here",
) -> StoredLog | None:
    """The log in Parquet files, a table of DuckDB or one of Ibis, kept on disk; see :func:`veilog.read_variants`.

    None for one Parquet file where only :func:`veilog.read` can tell what its rows mean. That is where a case or an
    activity has no name, an event no time or a text for one, or an explicit index. Of several files and of tables such
    rows are refused, or left out where ``policies`` say so. DuckDB stays within ``memory_limit``, and with it the
    pieces in ``temp_directory``, which take 28 bytes an event and for each of its attributes 8, or 1 to 4 where it is
    text that repeats; other texts are packed. A table of Ibis is copied there first.

    With ``where="engine"`` a table of Spark stays there: its workers, which need veilog, keep the pieces on their disks
    and do what is asked of them.
    """
    named = Source(source, engine=engine, means=Means(memory_limit, threads, temp_directory, index))
    declared = Declared(case, activity, timestamp, lifecycle, classifier)
    findings = Findings(policies or {}, named.name)
    return stored(named, ReadRequest(declared, findings, progress=progress, coarser=mapped_by(map, level, top)), where)


def stored(source: Source, asked: ReadRequest, where: Where = "here") -> StoredLog | None:
    """The log of a source, kept in pieces by its means; see :func:`store`."""
    if where not in ("here", "engine"):
        raise ParameterError("log-kept-here-engine", parameter="where", where=where)
    if source.is_file and not is_elsewhere(source) and not is_parquet(source):
        return None
    there = _engine(source)
    here = isinstance(there, DuckFiles)
    check_layout(source)
    findings, roles = asked.findings, roles_among(there.columns(), asked.declared, source)
    if here:
        note(source, roles, findings)
    if where == "engine":
        log: StoredLog | None = _in_engine(there, roles, asked)
    else:
        with _rows(source, there, roles, asked) as (connection, rows):
            if rows is None:
                return None
            log = keep(_logs(connection, rows, roles, source, asked), temp_directory=source.means.temp_directory)
    if log is None and here and source.is_file:
        return None
    if log is None:
        raise misfit(source.name)
    before = earlier_of(source).by(used_columns(roles, asked.declared)) if here else Provenance()
    way = read_as(source, roles, asked.declared, findings, before)
    shape = before.of(replace(log.shape, mapped="", read_together=findings.read_together(), read_as=way))
    if asked.coarser is not None:
        shape = replace(shape, mapped=asked.coarser.told_after(shape.mapped))
    return replace(log, shape=shape, findings=findings.result())


def whole_of(source: Source, asked: ReadRequest, method: str) -> EventLog:
    """All events of a log that is no single file, for a method that needs them in memory; too many are refused before
    one is read."""
    there = _engine(source)
    count = _count(source, there)
    if count > LARGE:
        raise ParameterError("method-needs-all-events", parameter="method", method=method, count=count, large=LARGE)
    log = stored(source, asked)
    assert log is not None, "what is no single file is stored or refused"
    try:
        return replace(log.whole(), findings=log.findings)
    finally:
        log.close()


def _engine(source: Source) -> VariantSource:
    there = engine_of(source)
    if isinstance(there, DuckFiles | DuckTable | IbisTable):
        return there
    if there is None:
        raise InputError("only-parquet-files-tables", path=source.name)
    raise ParameterError("engine-files-give-variants", parameter="engine", engine=source.engine)


def _in_engine(there: VariantSource, roles: Roles, asked: ReadRequest) -> StoredLog:
    if not isinstance(there, IbisTable) or there.table.get_backend().name != "pyspark":
        raise ParameterError("only-table-spark-asked", parameter="where")
    from veilog.logs.stored.spark_storing import kept_by_spark

    return kept_by_spark(there, roles, asked)


def _count(source: Source, there: VariantSource) -> int:
    if isinstance(there, DuckTable):
        return there.count()
    if isinstance(there, IbisTable):
        return count_of(there)
    return sum(PARQUET.rows(file) for file in source.files() if is_parquet(file))


@contextlib.contextmanager
def _rows(
    source: Source, there: VariantSource, roles: Roles, asked: ReadRequest
) -> Iterator[tuple[duckdb.DuckDBPyConnection, RowQuery | None]]:
    """The rows of the log in a DuckDB of our own, as long as the block lasts."""
    progress = asked.progress or silent
    with contextlib.ExitStack() as stack:
        if isinstance(there, IbisTable):
            folder = stack.enter_context(spilling(source.means))
            there = copied(there, source.means, folder, progress)
        connection = stack.enter_context(connected(source.means))
        progress("looking at the events", None)
        if isinstance(there, DuckTable):
            rows: RowQuery | None = there.listed(connection, roles, asked.findings)
        elif source.several:
            rows = rows_of_files(connection, source.files(), roles, asked.findings)
        else:
            rows = rows_of_file(connection, source, roles, asked.findings)
        yield connection, rows


def _logs(
    connection: duckdb.DuckDBPyConnection, rows: RowQuery, roles: Roles, source: Source, asked: ReadRequest
) -> Iterator[EventLog]:
    """The log in pieces of whole cases."""
    progress = asked.progress or silent
    name = str(source.path) if source.is_file and not is_elsewhere(source) else source.name
    what = f"sorting {'the events' if name is None else Path(name).name}"
    progress(what, None)
    chosen = replace(roles, transition=None)  # what concerns all events was seen to already
    placed(connection, rows, roles, asked.findings)

    def made(table: pa.Table) -> EventLog:
        log = log_from_table(table, chosen, asked.findings, source=name)
        return log if asked.coarser is None else asked.coarser.of_log(log)

    done = 0
    waiting: deque[Future[EventLog]] = deque()
    with ThreadPoolExecutor(1) as pool:  # makes a piece while DuckDB is asked for the next and the last is written
        for table in in_order(connection, rows, roles):
            waiting.append(pool.submit(made, table))
            if len(waiting) > 1:
                yield waiting.popleft().result()
            done += table.num_rows
            progress(f"{what}: {done:,} of {rows.count:,} events", min(1.0, done / rows.count))
        yield from (last.result() for last in waiting)
