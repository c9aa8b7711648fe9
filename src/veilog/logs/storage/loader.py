"""Loader of a log on disk, for queries about more events than fit in memory.

The log comes from Parquet files, or from a table of an engine. DuckDB sorts the rows by case within its memory limit;
nothing is loaded whole. Rows come out by the case's first row, those of a case together and in their order. Each case
by itself decides this, so one more case does not change the order of the others. The output is cut where a case ends.
The places of cases are checked as they come, so that no case is ever in two pieces. All pieces together are the log
that :func:`veilog.read` gives of the same rows.

A table of another engine is fetched batch by batch into a file of DuckDB first. The engine only has to return its rows,
in any order. None has to sort, compare or keep cases apart as DuckDB does, so every engine gives the same log.
"""

from __future__ import annotations

import contextlib
import itertools
from collections import deque
from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Unpack

import duckdb
import numpy as np
import pyarrow as pa

from veilog._typing import IntArray
from veilog.errors import EngineError, InputError, ParameterError
from veilog.logs.engines.duckdb import (
    PLACE,
    DuckFiles,
    DuckTable,
    connected,
    is_unnamed,
    micros,
    oddity,
    rows_in,
    unlike,
)
from veilog.logs.engines.engine import (
    ROW,
    EventCounts,
    RowQuery,
    VariantSource,
    settle_counts,
    spill_settings,
    sql_name,
    sql_text,
)
from veilog.logs.engines.ibis import IbisTable, binary_columns, fetched, is_postgres, one_state, pieces, shorten_errors
from veilog.logs.eventlog import EVENT_INDEX, EventLog
from veilog.logs.findings import Findings
from veilog.logs.input.formats import ReadRequest
from veilog.logs.input.lifecycle import Transitions
from veilog.logs.input.loader import (
    check_layout,
    earlier_provenance,
    engine_of,
    needs_whole,
    read_as,
    requested_reading,
    roles_among,
    used_columns,
)
from veilog.logs.input.roles import Roles
from veilog.logs.input.source import EngineKeywords, Given, Progress, ReadOptions, Source, silent
from veilog.logs.provenance import Provenance
from veilog.logs.storage.stored_log import StoredLog, keep, misfit
from veilog.logs.tables.events import cases_phrase, is_of_cases, log_from_table
from veilog.logs.tables.parquet import PARQUET, is_parquet, open_file
from veilog.logs.tables.table_reader import LARGE, note

_PIECE = 400_000
"""Events of a piece, unless one case alone has more."""
_BATCH = 100_000


def counted(connection: duckdb.DuckDBPyConnection, relation: str, roles: Roles, schema: pa.Schema) -> EventCounts:
    """Return the counts of rows before they are sorted; infinite times have no number."""
    time = sql_name(roles.timestamp)
    first, last = (micros(f"{end}({time})", schema.field(roles.timestamp).type)[0] for end in ("min", "max"))
    found = connection.execute(
        f"SELECT count(*), count(*) FILTER ({is_unnamed(roles.case)}), count(*) FILTER ({is_unnamed(roles.activity)}), "
        f"count(*) FILTER ({time} IS NULL), 0, 0, {first}, {last} FROM {relation}"
    )
    return EventCounts(*found.fetchall()[0])


def sort_events(connection: duckdb.DuckDBPyConnection, rows: RowQuery, roles: Roles) -> Iterator[pa.Table]:
    """Yield the rows in whole cases, each in its order, cases by their first row.

    :func:`place_cases` comes first: it makes the table of the cases' places. Columns of cases are not sorted with the
    rows, but come from that table, a row for each case.
    """
    numbers = {name: number for number, name in enumerate(_case_columns(rows, roles))}
    sorted_ = [name for name in rows.schema.names if name != roles.case and name not in numbers]
    found = connection.sql(
        f"SELECT {', '.join(f'e.{sql_name(name)}' for name in sorted_)}, places.p AS {PLACE} "
        f"FROM {rows.relation} e JOIN places ON e.{sql_name(roles.case)} = places.c ORDER BY places.p, e.{ROW}"
    )
    cases = _CasePlaces(connection, {roles.case: "c"} | {name: f"w{number}" for name, number in numbers.items()})
    waiting: list[pa.Table] = []
    size, before = 0, -1
    for batch in _batches(found):
        waiting.append(pa.Table.from_batches([batch]))
        size += batch.num_rows
        if size >= _PIECE:
            table = pa.concat_tables(waiting)
            place = _places(table, before)
            last = int(np.searchsorted(place, place[-1]))  # the case that may go on
            if last:
                before = int(place[last - 1])
                yield _restore_types(table.slice(0, last), cases.of(place[:last]), rows.schema)
            waiting, size = [table.slice(last)], table.num_rows - last
    if size:
        table = pa.concat_tables(waiting)
        yield _restore_types(table, cases.of(_places(table, before)), rows.schema)


def place_cases(connection: duckdb.DuckDBPyConnection, rows: RowQuery, roles: Roles, findings: Findings) -> None:
    """Make the table ``places`` with each case's place and ``case:...`` values.

    The values follow the same rule as in memory, with a finding where rows of a case differ.
    """
    asked = _case_columns(rows, roles)
    case, time = (f"e.{sql_name(name)}" for name in (roles.case, roles.timestamp))  # a table may have a column c, too
    known = [
        f"min({column}) IS DISTINCT FROM max({column}) AS v{number}, arg_min({column}, (e.{ROW}, {time})) AS w{number}"
        for number, column in enumerate(f"e.{sql_name(name)}" for name in asked)
    ]
    first = ", ".join([f"{case} AS c", f"min(e.{ROW}) AS r", f"min({time}) AS t", *known])
    place = "r" if rows.told_apart else "row_number() OVER (ORDER BY r, t, c)"
    more = "".join(f", v{number}, w{number}" for number in range(len(asked)))
    each = f"(SELECT {first} FROM {rows.relation} e GROUP BY {case})"
    connection.execute(f"CREATE TABLE places AS SELECT c, {place} AS p{more} FROM {each}")
    if not asked:
        return
    counts = connection.execute(f"SELECT {', '.join(f'count_if(v{i})' for i in range(len(asked)))} FROM places")
    for number, (name, count) in enumerate(zip(asked, counts.fetchall()[0], strict=True)):
        if count and findings.add("case-attribute-differs", cases_phrase(name, count), count=count) == "drop":
            connection.execute(f"UPDATE places SET w{number} = NULL WHERE v{number}")


def _case_columns(rows: RowQuery, roles: Roles) -> list[str]:
    """Return the columns of cases, by their names, except those with a role."""
    used = {roles.case, roles.activity, roles.timestamp}
    return [name for name in rows.schema.names if is_of_cases(name) and name not in used]


class _CasePlaces:
    """Columns of whole cases in the order of their places, fetched as these come."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, columns: Mapping[str, str]) -> None:
        self.names = list(columns)
        found = connection.cursor().sql(f"SELECT p, {', '.join(columns.values())} FROM places ORDER BY p")
        self._coming = _batches(found)
        self._here = pa.table({})

    def of(self, place: IntArray) -> dict[str, pa.ChunkedArray]:
        """Return the columns for rows of these places, which follow all earlier ones."""
        starts = np.flatnonzero(np.append(True, np.diff(place) > 0))
        parts, size = [self._here], self._here.num_rows
        while size < len(starts):
            batch = next(self._coming, None)
            if batch is None:
                raise _unsorted_error()
            parts.append(pa.Table.from_batches([batch]))
            size += batch.num_rows
        here = pa.concat_tables([part for part in parts if part.num_rows])
        self._here = here.slice(len(starts))
        here = here.slice(0, len(starts)).combine_chunks()
        if not np.array_equal(here.column(0).to_numpy(), place[starts]):
            raise _unsorted_error()
        owner = pa.array(np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(place)))))
        return {name: column.take(owner) for name, column in zip(self.names, here.columns[1:], strict=True)}


def _batches(found: duckdb.DuckDBPyRelation) -> Iterator[pa.RecordBatch]:
    """Yield the rows as they come; errors that pyarrow wraps are DuckDB's again."""
    with _unwrap_errors():
        reader = found.to_arrow_reader(_BATCH)
        batch = next(reader, None)
    while batch is not None:
        yield batch
        with _unwrap_errors():
            batch = next(reader, None)


@contextlib.contextmanager
def _unwrap_errors() -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        kind = duckdb.OutOfMemoryException if "Out of Memory" in str(error) else duckdb.Error
        raise kind(str(error)) from error


def _places(table: pa.Table, before: int) -> Any:
    """Return the places of the rows' cases; refuse those that are out of order."""
    place = table.column(PLACE).to_numpy()
    if place[0] <= before or bool((place[1:] < place[:-1]).any()):
        raise _unsorted_error()
    return place


def _unsorted_error() -> EngineError:
    return EngineError("rows-not-sorted")


def _restore_types(table: pa.Table, of_cases: Mapping[str, pa.ChunkedArray], schema: pa.Schema) -> pa.Table:
    """Return the rows in the types of the source, which DuckDB need not keep."""
    columns: list[Any] = []
    for field in schema:
        column = of_cases[field.name] if field.name in of_cases else table.column(field.name)
        columns.append(column if column.type == field.type else column.cast(field.type))
    return pa.table(columns, schema=schema.remove_metadata())


_AT_ONCE = 64 << 20
_INSTANT = pa.timestamp("us", "UTC")


def count_of(there: IbisTable) -> int:
    """Return the number of rows of a table, which its engine counts."""
    with shorten_errors(), one_state(there.table):
        return int(fetched(there.table.aggregate(n=there.table.count()))["n"][0].as_py())


def copy_rows(there: IbisTable, options: ReadOptions, folder: Path, progress: Progress) -> DuckTable:
    """Copy the table into a database in this folder: a view, as rows have no order."""
    names = [name.lower() for name in there.columns()]
    if len(set(names)) < len(names):
        raise InputError("column-names-differ-in-case", path=there.name)
    rows, done = count_of(there), 0
    path = folder / "fetched.duckdb"
    with connected(options) as connection:
        connection.execute(f"ATTACH {sql_text(str(path))} AS here")
        with contextlib.closing(_batches_there(there)) as tables:
            for table in tables:
                _put_table(connection, table, first=not done)
                done += table.num_rows
                progress(f"fetching the events: {done:,} of {rows:,}", min(1.0, done / max(rows, 1)))
        if not done:
            raise InputError("table-without-rows", path=there.name)
        connection.execute("CREATE VIEW here.log AS FROM here.rows")
        connection.execute("DETACH here")
    return DuckTable(path, "log", options, called=there.name or "the table")


def _put_table(connection: duckdb.DuckDBPyConnection, table: pa.Table, *, first: bool) -> None:
    connection.register("batch", table)
    connection.execute(f"{'CREATE TABLE here.rows AS' if first else 'INSERT INTO here.rows'} SELECT * FROM batch")
    connection.unregister("batch")


def _batches_there(there: IbisTable) -> Generator[pa.Table]:
    """Yield the rows, as many as are stored at once; an engine's errors have one line."""
    waiting: list[pa.RecordBatch] = []
    with shorten_errors(), one_state(there.table):
        for batch in _stream_rows(there.table):
            waiting.append(batch)
            if sum(one.nbytes for one in waiting) >= _AT_ONCE:
                yield pa.Table.from_batches(waiting)
                waiting = []
        if waiting:
            yield pa.Table.from_batches(waiting)


def _stream_rows(table: Any) -> Iterator[pa.RecordBatch]:
    """Return the rows of a table as they come.

    They come from the engine itself where Ibis would fetch all of them at once, or fails.
    """
    backend = table.get_backend()
    if backend.name == "pyspark":
        return _stream_spark_rows(table, backend.raw_sql(backend.compile(table)))
    if backend.name == "duckdb":
        return iter(backend.con.sql(backend.compile(table)).to_arrow_reader(_BATCH))
    if is_postgres(table):
        return pieces(binary_columns(table, table.columns))
    return iter(table.to_pyarrow_batches(chunk_size=_BATCH))


def _stream_spark_rows(table: Any, frame: Any) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a Spark DataFrame, one of its partitions after the other.

    ``toArrow`` would bring all at once. Instants come as numbers: as datetimes they would be in the time zone of this
    machine, which may have an hour twice.
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


def rows_of_file(
    connection: duckdb.DuckDBPyConnection, file: Source, roles: Roles, findings: Findings
) -> RowQuery | None:
    """Return the rows of a file; None where only :func:`veilog.read` understands them."""
    schema, count = open_file(file).schema_arrow, PARQUET.rows(file)
    if not count or oddity(file, roles) is not None or EVENT_INDEX in schema.names:
        return None
    relation = _choose_rows(connection, rows_in([file]), roles, findings)
    gaps = counted(connection, relation, roles, schema).gaps
    return None if any(gaps.values()) else RowQuery(relation, schema, count)


def rows_of_files(
    connection: duckdb.DuckDBPyConnection, files: Sequence[Source], roles: Roles, findings: Findings
) -> RowQuery:
    """Return the rows of several files that are one log, in the order of the files.

    Files that are not alike are refused.
    """
    for file in files:
        if not is_parquet(file):
            raise InputError("files-not-all-parquet", path=file.path)
        problem = oddity(file, roles) or unlike(file, files[0])
        if problem is not None:
            raise InputError(problem, path=file.path, advice="files-need-conversion")
    count = sum(PARQUET.rows(file) for file in files)
    if not count:
        raise InputError("files-without-rows", path=files[0].path)
    relation = _choose_rows(connection, rows_in(files), roles, findings)
    missing = " OR ".join((is_unnamed(roles.case), is_unnamed(roles.activity), f"{sql_name(roles.timestamp)} IS NULL"))
    whole = f"(SELECT * FROM {relation} WHERE NOT ({missing}))"
    schema, path = open_file(files[0]).schema_arrow, str(files[0].path)

    def count_rows(clean: bool) -> EventCounts:
        return counted(connection, whole if clean else relation, roles, schema)

    return RowQuery(whole if settle_counts(count_rows, findings, None, path)[1] else relation, schema, count)


def _choose_rows(connection: duckdb.DuckDBPyConnection, rows: str, roles: Roles, findings: Findings) -> str:
    """Return the rows of the wanted transition, or all, and add the finding about it."""
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


Where = Literal["here", "engine"]


def store(source: Given, *, where: Where = "here", **options: Unpack[EngineKeywords]) -> StoredLog | None:
    """Store the log of Parquet files, a DuckDB table or an Ibis table on disk.

    DuckDB stays within ``memory_limit``. It shares ``temp_directory`` with the pieces, which take 28 bytes an event.
    Each attribute of an event takes 8 more, or 1 to 4 where it is text that repeats; other texts are packed. A table of
    Ibis is copied there first.

    Args:
        source: The log, as for :func:`veilog.read_variants`.
        where: ``"here"``, or ``"engine"`` for a table of Spark, which stays there. Its workers, which need veilog, keep
            the pieces on their disks and run the queries.
        options: How to read the log, as for :func:`veilog.read_variants`.

    Returns:
        The stored log, or None for a single file that only :func:`veilog.read` understands: one of another kind, one
        with an explicit index, or one whose policies need all of it. So is a file where a case or an activity has no
        name, or an event no time or a text for one. Of several files and of tables such rows are refused, or left out
        where ``policies`` declare so.

    """
    return store_log(*requested_reading(source, options, EngineKeywords), where)


def store_log(source: Source, asked: ReadRequest, where: Where = "here") -> StoredLog | None:
    """Return the log of a source, kept in pieces by its own means; see :func:`store`."""
    if where not in ("here", "engine"):
        raise ParameterError("store-place-unknown", parameter="where", where=where)
    if needs_whole(source, asked.findings) or (source.is_file and not source.is_elsewhere and not is_parquet(source)):
        return None
    there = _engine(source)
    here = isinstance(there, DuckFiles)
    check_layout(source)
    findings, roles = asked.findings, roles_among(there.columns(), asked.options, source)
    if here:
        note(source, roles, findings)
    if where == "engine":
        log: StoredLog | None = _load_in_engine(there, roles, asked)
    else:
        with _rows(source, there, roles, asked) as (connection, rows):
            if rows is None:
                return None
            log = keep(_logs(connection, rows, roles, source, asked), temp_directory=source.options.temp_directory)
    if log is None and here and source.is_file:
        return None
    if log is None:
        raise misfit(source.name)
    before = earlier_provenance(source).by(used_columns(roles, asked.options)) if here else Provenance()
    way = read_as(source, roles, asked.options, findings, before)
    shape = before.of(replace(log.shape, mapped=(), read_together=findings.read_together(), read_as=way))
    if asked.options.mapping is not None:
        shape = replace(shape, mapped=(*shape.mapped, asked.options.mapping.told))
    return replace(log, shape=shape, findings=findings.result())


def whole_of(source: Source, asked: ReadRequest, method: str) -> EventLog:
    """Return all events of a log that is no single file, for a method that needs them.

    They have to fit in memory: too many are refused before one is read.
    """
    there = _engine(source)
    count = _count(source, there)
    if count > LARGE:
        raise ParameterError("store-events-too-many", parameter="method", method=method, count=count, large=LARGE)
    log = store_log(source, asked)
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
        raise InputError("store-source-not-kept", path=source.name)
    raise ParameterError("engine-files-without-events", parameter="engine", engine=source.options.engine)


def _load_in_engine(there: VariantSource, roles: Roles, asked: ReadRequest) -> StoredLog:
    if not isinstance(there, IbisTable) or there.table.get_backend().name != "pyspark":
        raise ParameterError("store-source-not-spark", parameter="where")
    from veilog.logs.storage.spark import keep_on_spark

    return keep_on_spark(there, roles, asked)


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
    """Yield the rows of the log in a DuckDB of our own, as long as the block lasts."""
    progress = asked.progress or silent
    with contextlib.ExitStack() as stack:
        if isinstance(there, IbisTable):
            folder = stack.enter_context(spill_settings(source.options))
            there = copy_rows(there, source.options, folder, progress)
        connection = stack.enter_context(connected(source.options))
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
    """Yield the log in pieces of whole cases."""
    progress = asked.progress or silent
    name = str(source.path) if source.is_file and not source.is_elsewhere else source.name
    what = f"sorting {'the events' if name is None else Path(name).name}"
    progress(what, None)
    chosen = replace(roles, transition=None)  # transitions of all events were handled before
    place_cases(connection, rows, roles, asked.findings)

    def made(table: pa.Table) -> EventLog:
        log = log_from_table(table, chosen, asked.findings, source=name)
        return log if asked.options.mapping is None else asked.options.mapping.of_log(log)

    done = 0
    waiting: deque[Future[EventLog]] = deque()
    with ThreadPoolExecutor(1) as pool:  # makes a piece while DuckDB fetches the next and the last is written
        for table in sort_events(connection, rows, roles):
            waiting.append(pool.submit(made, table))
            if len(waiting) > 1:
                yield waiting.popleft().result()
            done += table.num_rows
            progress(f"{what}: {done:,} of {rows.count:,} events", min(1.0, done / rows.count))
        yield from (last.result() for last in waiting)
