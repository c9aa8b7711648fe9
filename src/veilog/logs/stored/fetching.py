"""A table of another engine, fetched batch by batch into a file of DuckDB, which sorts it as a table of its own.

The engine is asked for nothing but its rows, in whatever order it likes, so that none has to sort, compare or keep
cases apart as DuckDB does: what comes out is the same log from every engine.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from veilog.errors import InputError
from veilog.logs.engines.duckdb_files import connected
from veilog.logs.engines.duckdb_table import DuckTable
from veilog.logs.engines.ibis import IbisTable, fetched, one_state, running
from veilog.logs.engines.keys import sql_text
from veilog.logs.engines.postgres import by_characters, is_postgres, pieces
from veilog.logs.input.source import Means, Progress

__all__ = ["copied", "count_of"]

_BATCH = 100_000
_AT_ONCE = 64 << 20
_INSTANT = pa.timestamp("us", "UTC")


def count_of(there: IbisTable) -> int:
    """How many rows the table has, which its engine counts."""
    with running(), one_state(there.table):
        return int(fetched(there.table.aggregate(n=there.table.count()))["n"][0].as_py())


def copied(there: IbisTable, means: Means, folder: Path, progress: Progress) -> DuckTable:
    """The table in a database in this folder, as a view, since its rows come in no order."""
    names = [name.lower() for name in there.columns()]
    if len(set(names)) < len(names):
        raise InputError("names-two-columns-differ", path=there.name)
    rows, done = count_of(there), 0
    path = folder / "fetched.duckdb"
    with connected(means) as connection:
        connection.execute(f"ATTACH {sql_text(str(path))} AS here")
        with contextlib.closing(_batches(there)) as tables:
            for table in tables:
                _put(connection, table, first=not done)
                done += table.num_rows
                progress(f"fetching the events: {done:,} of {rows:,}", min(1.0, done / max(rows, 1)))
        if not done:
            raise InputError("table-no-rows", path=there.name)
        connection.execute("CREATE VIEW here.log AS FROM here.rows")
        connection.execute("DETACH here")
    return DuckTable(path, "log", means, called=there.name or "the table")


def _put(connection: duckdb.DuckDBPyConnection, table: pa.Table, *, first: bool) -> None:
    connection.register("batch", table)
    connection.execute(f"{'CREATE TABLE here.rows AS' if first else 'INSERT INTO here.rows'} SELECT * FROM batch")
    connection.unregister("batch")


def _batches(there: IbisTable) -> Generator[pa.Table]:
    """The rows some at a time, as many as are put away at once; what the engine says in many lines in one."""
    waiting: list[pa.RecordBatch] = []
    with running(), one_state(there.table):
        for batch in _streamed(there.table):
            waiting.append(batch)
            if sum(one.nbytes for one in waiting) >= _AT_ONCE:
                yield pa.Table.from_batches(waiting)
                waiting = []
        if waiting:
            yield pa.Table.from_batches(waiting)


def _streamed(table: Any) -> Iterator[pa.RecordBatch]:
    """The rows of a table as they come; where Ibis would fetch all of them at once, or fails, by the engine itself."""
    backend = table.get_backend()
    if backend.name == "pyspark":
        return _of_spark(table, backend.raw_sql(backend.compile(table)))
    if backend.name == "duckdb":
        return iter(backend.con.sql(backend.compile(table)).to_arrow_reader(_BATCH))
    if is_postgres(table):
        return pieces(by_characters(table, table.columns))
    return iter(table.to_pyarrow_batches(chunk_size=_BATCH))


def _of_spark(table: Any, frame: Any) -> Iterator[pa.RecordBatch]:
    """The rows of a DataFrame of Spark, one of its partitions after the other, where ``toArrow`` brings all at once.

    Instants come as numbers: as datetimes they would be in the time zone of this machine, which may have an hour twice.
    """
    from pyspark.sql import functions as F
    from pyspark.sql.types import TimestampType

    instants = {field.name for field in frame.schema if isinstance(field.dataType, TimestampType)}
    columns = {field.name: F.col("`" + field.name.replace("`", "``") + "`") for field in frame.schema}
    numbers = [F.unix_micros(column).alias(name) if name in instants else column for name, column in columns.items()]
    kinds = [pa.int64() if field.name in instants else field.type for field in table.schema().to_pyarrow()]
    rows = frame.select(*numbers).toLocalIterator()
    while chunk := list(itertools.islice(rows, _BATCH)):
        arrays = [pa.array(values, kind) for values, kind in zip(zip(*chunk, strict=True), kinds, strict=True)]
        typed = [
            array.cast(_INSTANT) if name in instants else array for name, array in zip(columns, arrays, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(typed, names=list(columns))
