"""Pieces of a log on the workers of Spark, which run queries there.

Only the combined results come here. A piece is a row of a DataFrame that Spark keeps, and a column of the log a cell in
it. So a query reads only the columns that it needs. It goes to the workers as one function, by Spark's own pickling, so
they need this version of veilog. A task combines the results of its pieces. Further tasks combine those of tasks, until
a handful is left to come here.

Spark may lose a piece and make it again from the table. Each piece bears the digest of its content. A piece that
differs, because the table has changed, is refused: it may hold other cases than were counted.

A table is shuffled once, by case, and each part made a piece. The piece of a case follows from its name alone. The
order of its events follows from their times and an index that distinguishes them. So a piece that Spark has to make
again is the same one, unless the table has changed.
"""

from __future__ import annotations

import contextlib
import hashlib
import pickle
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import ipc

from veilog._version import __version__
from veilog.errors import EngineError, InputError, VeilogError
from veilog.logs.engines.ibis import IbisTable, shorten_errors
from veilog.logs.engines.spark import quote_name
from veilog.logs.eventlog import EVENT_INDEX, TIMESTAMP_TYPE, EventLog
from veilog.logs.findings import Findings, Policy
from veilog.logs.input.activity_mapping import ActivityMapping
from veilog.logs.input.formats import ReadRequest
from veilog.logs.input.roles import Roles
from veilog.logs.input.source import silent
from veilog.logs.storage.stored_log import Chunk, Kind, Scope, StoredLog, as_kept, misfit, piece_of
from veilog.logs.tables.events import log_from_table

_AT_ONCE = 16
"""Results that are combined at a time, and as many come here at most."""
_BATCH = "spark.sql.execution.arrow.maxRecordsPerBatch"
_FOUND = pa.schema([("number", pa.int64()), ("found", pa.binary())])
_AS_SPARK = "number long, found binary"

T = TypeVar("T")
Cells = dict[str, Any]
"""Row of the DataFrame that Spark keeps: a piece, or a result."""


def column_of(kind: Kind, place: int) -> str:
    """Return the name of a column's cell: the column's own name might be anything."""
    return f"{kind}_{place}"


def cell(column: pa.ChunkedArray) -> bytes:
    """Return a column as the bytes of a cell."""
    table = pa.table({"c": column})
    sink = pa.BufferOutputStream()
    with ipc.new_stream(sink, table.schema, options=ipc.IpcWriteOptions(compression="lz4")) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())


@dataclass(frozen=True)
class _Piece:
    """Facts known here about a piece that a query covers."""

    digest: bytes
    cases: int
    marks: bytes | None
    """Bit for each of its cases, 1 for those that count; None where all do."""

    @staticmethod
    def of(held: Chunk, digest: bytes, cases: int) -> _Piece:
        marks: npt.NDArray[np.bool_] = np.zeros(cases, dtype=np.bool_)
        if held.cases is None:
            return _Piece(digest, cases, None)
        marks[held.cases] = True
        return _Piece(digest, cases, np.packbits(marks).tobytes())

    def held(self, number: int) -> Chunk:
        if self.marks is None:
            return Chunk(number)
        marks = np.unpackbits(np.frombuffer(self.marks, dtype=np.uint8), count=self.cases)
        return Chunk(number, np.flatnonzero(marks))


@dataclass(frozen=True)
class _Question(Generic[T]):
    """Query of each piece, run by a worker."""

    work: Callable[[EventLog, bool], T]
    pieces: dict[int, _Piece]
    first: int
    scope: Scope
    """Columns of the query, without the pieces, which are above."""
    version: str = __version__

    def found(self, rows: Iterable[Cells]) -> Iterator[tuple[int, T]]:
        """Yield the result of each of these pieces."""
        check_version(self.version)
        for row in rows:
            number = int(row["number"])
            if number in self.pieces:
                yield number, self.work(self._piece(row, self.pieces[number]), number == self.first)

    def parts(self, rows: Iterable[Cells]) -> Iterator[tuple[list[int], T]]:
        return (([number], found) for number, found in self.found(rows))

    def _piece(self, row: Cells, known: _Piece) -> EventLog:
        if row["digest"] != known.digest:
            raise EngineError("spark-table-changed")

        def columns(kind: Kind, names: list[str]) -> dict[str, pa.ChunkedArray]:
            table = self.scope.shape.events if kind == "events" else self.scope.shape.cases
            places = {name: table.column_names.index(name) for name in names}
            return {
                name: ipc.open_stream(row[column_of(kind, place)]).read_all().column(0)
                for name, place in places.items()
            }

        return known.held(int(row["number"])).of(piece_of(self.scope, columns))


class OnSpark:
    """Pieces of a log as a DataFrame that Spark keeps."""

    def __init__(self, frame: Any, digests: dict[int, tuple[bytes, int]]) -> None:
        self._frame = frame
        self._digests = digests
        """Digest and number of cases of each piece."""
        self.close = weakref.finalize(self, _unpersist, frame)

    @property
    def folder(self) -> Path | None:
        return None

    def each(self, work: Callable[[EventLog, bool], T], scope: Scope) -> Iterator[T]:
        rows = sorted(self._rows(work, scope), key=lambda row: row[0])
        _check_once([number for number, _ in rows], scope)
        yield from (found for _, found in rows)

    def together(self, work: Callable[[EventLog, bool], T], combine: Callable[[Iterable[T]], T], scope: Scope) -> T:
        if not scope.held:
            return combine([])
        question = self._question(work, scope)

        def asked() -> list[Any]:
            tasks = min(len(scope.held), cores(self._frame.sparkSession))
            found = (
                self._cells(scope)
                .coalesce(tasks)
                .mapInArrow(partial(_combine_findings, question.parts, combine), _AS_SPARK)
            )
            while tasks > _AT_ONCE:
                tasks = -(-tasks // _AT_ONCE)
                # By number: rows that are dealt out in turn may come twice where a lost worker is replaced.
                found = found.repartition(tasks, "number").mapInArrow(
                    partial(_combine_findings, _answers, combine), _AS_SPARK
                )
            return list(found.collect())

        parts = [unpack_answer(row["found"]) for row in run_on_workers(partial(self._query_one_by_one, asked))]
        _check_once([number for pieces, _ in parts for number in pieces], scope)
        return combine([found for _, found in parts])

    def pieces(self, scope: Scope) -> Iterator[EventLog]:
        found = self._rows(_return_piece, scope, stream=True)
        while (row := run_on_workers(partial(next, found, None))) is not None:
            yield row[1]

    def _rows(
        self, work: Callable[[EventLog, bool], T], scope: Scope, *, stream: bool = False
    ) -> Iterator[tuple[int, T]]:
        """Yield the result of each piece, all at once, or as a ``stream`` in their order."""
        if not scope.held:
            return
        question = self._question(work, scope)

        def asked() -> Any:
            found = self._cells(scope).mapInArrow(partial(_query_pieces, question), _AS_SPARK)
            return found.toLocalIterator() if stream else found.collect()

        for row in run_on_workers(partial(self._query_one_by_one, asked)):
            yield int(row["number"]), unpack_answer(row["found"])

    def _question(self, work: Callable[[EventLog, bool], T], scope: Scope) -> _Question[T]:
        pieces = {held.number: _Piece.of(held, *self._digests[held.number]) for held in scope.held}
        return _Question(work, pieces, min(pieces), Scope((), scope.shape, scope.attributes))

    def _cells(self, scope: Scope) -> Any:
        """Return the columns of the frame that are needed."""
        names = ["number", "digest"]
        for kind, table in (("events", scope.shape.events), ("cases", scope.shape.cases)):
            names += [column_of(kind, table.column_names.index(field.name)) for field in scope.columns(kind)]
        return self._frame.select(*names)

    def _query_one_by_one(self, asked: Callable[[], Any]) -> Any:
        """Run a query that gives workers a row at a time: pieces are large, and many."""
        settings = self._frame.sparkSession.conf
        before = settings.get(_BATCH)
        settings.set(_BATCH, "1")
        try:
            return asked()
        finally:
            settings.set(_BATCH, before)


def _unpersist(frame: Any) -> None:
    with contextlib.suppress(Exception):  # a session that has ended keeps nothing
        frame.unpersist()


def cores(spark: Any) -> int:
    try:
        return int(spark.sparkContext.defaultParallelism)
    except Exception:  # noqa: BLE001 - a session over the network hides its cluster
        return 8


# What workers do ------------------------------------------------------------------------------------------------------


def check_version(asking: str) -> None:
    """Refuse to run functions of another version than that of the query."""
    if asking != __version__:
        raise EngineError("spark-worker-version-differs", version=__version__, asking=asking)


def _return_piece(piece: EventLog, _first: bool) -> EventLog:
    return piece


def _rows_of(batches: Iterable[pa.RecordBatch]) -> Iterator[Cells]:
    for batch in batches:
        for place in range(batch.num_rows):
            yield {
                name: batch.column(i)[place].as_buffer().to_pybytes()
                if pa.types.is_binary(batch.column(i).type)
                else batch.column(i)[place].as_py()
                for i, name in enumerate(batch.schema.names)
            }


def _row(number: int, found: object) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"number": number, "found": pickle.dumps(found)}], schema=_FOUND)


def _query_pieces(question: _Question[T], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    try:
        for number, found in question.found(_rows_of(batches)):
            yield _row(number, found)
    except VeilogError as error:
        yield _row(-1, error)


def _answers(rows: Iterable[Cells]) -> Iterator[tuple[list[int], Any]]:
    return (unpack_answer(row["found"]) for row in rows)


def _combine_findings(
    parts: Callable[[Iterable[Cells]], Iterable[tuple[list[int], T]]],
    combine: Callable[[Iterable[T]], T],
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Yield one result of several, each of some pieces."""
    pieces: list[int] = []

    def noted() -> Iterator[T]:
        for numbers, found in parts(_rows_of(batches)):
            pieces.extend(numbers)
            yield found

    try:
        made = combine(noted())
        yield _row(pieces[0] if pieces else -1, (pieces, made))
    except VeilogError as error:
        yield _row(-1, error)


# What comes back ------------------------------------------------------------------------------------------------------


def unpack_answer(cell: bytes) -> Any:
    """Return a worker's result, or raise the error that it met.

    An error that the worker raised itself would come with a trace around it.
    """
    found = pickle.loads(cell)  # from Spark, which has run code of ours to make it
    if isinstance(found, VeilogError):
        raise found
    return found


def _check_once(numbers: list[int], scope: Scope) -> None:
    """Refuse an answer in which a piece counts twice, or not at all.

    The epsilon that a query uses rests on each case counting once. It must not rest on guarantees of Spark for tasks
    that it runs again.
    """
    if sorted(numbers) != [held.number for held in scope.held]:
        raise EngineError("spark-cases-miscounted")


def run_on_workers(asked: Callable[[], T]) -> T:
    """Run something on Spark's workers, and hide their exceptions.

    These may quote the data. Only a fixed text replaces them here, without the error that it came from.
    """
    try:
        with shorten_errors():
            return asked()
    except EngineError as error:
        failure = _translate_error(error)
    raise failure


def _translate_error(error: EngineError) -> EngineError:
    trace = str(error.__cause__ or error)
    if "No module named 'veilog" in trace:
        return EngineError("spark-worker-without-veilog")
    if "Traceback (most recent call last)" in trace or "PythonException" in trace:
        return EngineError("spark-worker-failed")
    return error


_PIECE = 400_000
"""Events of a piece, more or less."""
_LEAST = 50_000
"""Fewest events of a piece that are worth a task."""
_PIECES_A_CORE = 2
_NUMBER = "piece"


def keep_on_spark(there: IbisTable, roles: Roles, asked: ReadRequest) -> StoredLog:
    """Return the log of a table of Spark, kept there."""
    from pyspark.sql import functions as F

    progress = asked.progress or silent
    rows = there.checked(roles, asked.findings, progress)
    roles = replace(roles, transition=None)
    progress("sorting the events by case, in Spark", None)
    with shorten_errors():
        frame, schema = _events(there, roles)
        spark = frame.sparkSession
        parts = max(-(-rows // _PIECE), min(_PIECES_A_CORE * cores(spark), -(-rows // _LEAST)))
        case, order = (_column_name(schema, name) for name in (roles.case, there.order or roles.timestamp))
        cases = int(frame.select(case).distinct().count())
        # The number of the task that makes a part would not do: one that makes what was lost may make several.
        numbered = frame.withColumn(_NUMBER, F.pmod(F.hash(case), F.lit(parts)).cast("long"))
        sorted_ = numbered.repartition(parts, case).sortWithinPartitions(case, order)
    maker = _Maker(roles, asked.findings.policies, there.name, asked.options.mapping, schema)
    maker = replace(maker, shape=maker.log(schema.empty_table()).shape)
    log = _keep_pieces(sorted_, maker, parts, cases, asked.findings)
    zoneless = any(finding.rule == "timestamp-without-zone" for finding in asked.findings.result())
    asked.findings.note_zones(told=not zoneless, missing=zoneless)  # its workers' columns are of one type
    return log


def _events(there: IbisTable, roles: Roles) -> tuple[Any, pa.Schema]:
    """Return the rows that count, and the names and types of their columns here.

    There columns are named by their places, since Spark takes signs in names for its own.
    """
    from pyspark.sql import functions as F
    from pyspark.sql.types import TimestampType

    backend = there.table.get_backend()
    frame = backend.raw_sql(backend.compile(there.table))
    if len({name.lower() for name in frame.columns}) < len(frame.columns):
        raise InputError("column-names-differ-in-case", path=there.name)
    # A given index stands below the times, so veilog's own, which stands above them, must not be seen.
    names = [name for name in frame.columns if name != EVENT_INDEX or there.index is None]
    instants = {field.name for field in frame.schema if isinstance(field.dataType, TimestampType)}
    kinds = {field.name: field.type for field in there.table.schema().to_pyarrow()}
    schema = pa.schema([(name, TIMESTAMP_TYPE if name in instants else kinds[name]) for name in names])
    case, activity, time = (F.col(quote_name(name)) for name in (roles.case, roles.activity, roles.timestamp))
    sound = time.isNotNull()
    for name in (case, activity):
        sound = sound & name.isNotNull() & (name.cast("string") != "")
    columns = [F.col(quote_name(name)).alias(_column_name(schema, name)) for name in names]
    return frame.where(sound).select(*columns), schema


def _column_name(schema: pa.Schema, name: str) -> str:
    return f"column_{schema.get_field_index(name)}"


@dataclass(frozen=True)
class _Maker:
    """Maker of pieces from the rows of whole cases, on a worker."""

    roles: Roles
    policies: Mapping[str, Policy]
    name: str | None
    mapping: ActivityMapping | None
    schema: pa.Schema
    shape: EventLog | None = None
    version: str = __version__

    def log(self, rows: pa.Table) -> EventLog:
        findings = Findings(self.policies, self.name)
        log = log_from_table(rows, self.roles, findings, source=self.name)
        return log if self.mapping is None else self.mapping.of_log(log)

    @property
    def layout(self) -> list[str]:
        """Names of the cells of a piece."""
        assert self.shape is not None
        tables = (("events", self.shape.events), ("cases", self.shape.cases))
        return [column_of(kind, place) for kind, table in tables for place in range(table.num_columns)]

    def row(self, batches: list[pa.RecordBatch]) -> dict[str, Any]:
        check_version(self.version)
        rows = pa.Table.from_batches(batches)
        (number, *others), rows = rows.column(_NUMBER).unique().to_pylist(), rows.drop_columns([_NUMBER])
        if others:
            raise EngineError("spark-parts-not-apart")
        columns = [column.cast(field.type) for column, field in zip(rows.columns, self.schema, strict=True)]
        log = self.log(pa.table(columns, schema=self.schema))
        assert self.shape is not None
        if log.events.schema != self.shape.events.schema or log.cases.schema != self.shape.cases.schema:
            raise misfit(self.name)
        kept = [*as_kept(log.events).columns, *as_kept(log.cases).columns]
        cells = dict(zip(self.layout, map(cell, kept), strict=True))
        digest = hashlib.blake2b(digest_size=16)
        for value in cells.values():
            digest.update(len(value).to_bytes(8, "little") + value)
        head = {"number": number, "cases": log.cases.num_rows, "digest": digest.digest()}
        return head | {"note": pickle.dumps(log.findings)} | cells


def _make_pieces(maker: _Maker, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the piece of a part of the rows, or its error; nothing without rows."""
    rows = [batch for batch in batches if batch.num_rows]
    if not rows:
        return
    try:
        row = maker.row(rows)
    except VeilogError as error:
        row = {"number": -1, "note": pickle.dumps(error)}
    binary = [(name, pa.binary()) for name in ("digest", "note", *maker.layout)]
    yield pa.RecordBatch.from_pylist([row], schema=pa.schema([("number", pa.int64()), ("cases", pa.int64()), *binary]))


def _keep_pieces(sorted_: Any, maker: _Maker, parts: int, cases: int, findings: Findings) -> StoredLog:
    from pyspark.storagelevel import StorageLevel

    layout = ", ".join(f"{name} binary" for name in ("digest", "note", *maker.layout))
    with shorten_errors():
        kept = sorted_.mapInArrow(partial(_make_pieces, maker), f"number long, cases long, {layout}")
        kept = kept.persist(StorageLevel.DISK_ONLY)
    try:
        heads = run_on_workers(lambda: kept.select("number", "cases", "digest", "note").collect())
        sizes, digests = [0] * parts, {}
        for head in sorted(heads, key=lambda head: head["number"]):
            for found in unpack_answer(head["note"]):
                findings.add(found.rule, found.example, count=found.count, advice=found.of_this_log)
            sizes[head["number"]] = head["cases"]
            digests[head["number"]] = (bytes(head["digest"]), head["cases"])
        if sum(sizes) != cases or len(heads) != len(digests):
            raise EngineError("spark-case-in-pieces")
    except BaseException:
        kept.unpersist()
        raise
    assert maker.shape is not None
    return StoredLog(OnSpark(kept, digests), tuple(sizes), maker.shape)
