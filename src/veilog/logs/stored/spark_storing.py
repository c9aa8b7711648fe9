"""A table of Spark into pieces of whole cases that stay there: shuffled once, by case, each part made a piece.

Which case is in which piece follows from its name alone, and the order of its events from their times and an index
that tells them apart, so that a piece that Spark has to make again is the same one, unless the table has changed.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa

from veilog._version import __version__
from veilog.errors import EngineError, InputError, VeilogError
from veilog.logs.engines.ibis import IbisTable, running
from veilog.logs.engines.spark import quoted
from veilog.logs.eventlog import EVENT_INDEX, TIMESTAMP_TYPE, EventLog
from veilog.logs.findings import Findings, Policy
from veilog.logs.input.coarser import Coarser
from veilog.logs.input.reader import ReadRequest
from veilog.logs.input.roles import Roles
from veilog.logs.input.source import silent
from veilog.logs.stored.spark import Failure, OnSpark, answered, by_workers, cell, check_version, column_of, cores
from veilog.logs.stored.store import StoredLog, as_kept, misfit
from veilog.logs.tables.events.rows import log_from_table

__all__ = ["kept_by_spark"]

_PIECE = 400_000
"""Events of a piece, more or less."""
_LEAST = 50_000
"""As many of a piece are worth a task."""
_PIECES_A_CORE = 2
_NUMBER = "piece"


def kept_by_spark(there: IbisTable, roles: Roles, asked: ReadRequest) -> StoredLog:
    """The log that a table of Spark is, kept there."""
    progress = asked.progress or silent
    rows = there.checked(roles, asked.findings, progress)
    roles = replace(roles, transition=None)
    progress("sorting the events by case, in Spark", None)
    with running():
        frame, schema = _events(there, roles)
        cases = _cases(frame, schema, roles)
        spark = frame.sparkSession
        parts = max(-(-rows // _PIECE), min(_PIECES_A_CORE * cores(spark), -(-rows // _LEAST)))
        case, order = (_named(schema, name) for name in (roles.case, there.order or roles.timestamp))
        sorted_ = _numbered(frame, case, parts).repartition(parts, case).sortWithinPartitions(case, order)
    empty = _Maker(roles, asked.findings.policies, there.name, asked.coarser, schema).log(schema.empty_table())
    maker = _Maker(roles, asked.findings.policies, there.name, asked.coarser, schema, empty.shape)
    log = _kept(sorted_, maker, parts, cases, asked.findings)
    zoneless = any(finding.rule == "timestamp-without-zone" for finding in asked.findings.result())
    asked.findings.note_zones(told=not zoneless, missing=zoneless)  # its workers' columns are of one type
    return log


def _events(there: IbisTable, roles: Roles) -> tuple[Any, pa.Schema]:
    """The rows that count, their columns called by their places, since Spark takes signs in names for its own; and
    their names and types here."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import TimestampType

    backend = there.table.get_backend()
    frame = backend.raw_sql(backend.compile(there.table))
    if len({name.lower() for name in frame.columns}) < len(frame.columns):
        raise InputError("names-two-columns-differ", path=there.name)
    # An index that was given stands below the times, so the one that stands above them must not be seen.
    names = [name for name in frame.columns if name != EVENT_INDEX or there.index is None]
    instants = {field.name for field in frame.schema if isinstance(field.dataType, TimestampType)}
    kinds = {field.name: field.type for field in there.table.schema().to_pyarrow()}
    schema = pa.schema([(name, TIMESTAMP_TYPE if name in instants else kinds[name]) for name in names])
    case, activity, time = (F.col(quoted(name)) for name in (roles.case, roles.activity, roles.timestamp))
    sound = time.isNotNull()
    for name in (case, activity):
        sound = sound & name.isNotNull() & (name.cast("string") != "")
    columns = [F.col(quoted(name)).alias(_named(schema, name)) for name in names]
    return frame.where(sound).select(*columns), schema


def _numbered(frame: Any, case: str, parts: int) -> Any:
    """The rows with the number of the part that Spark puts each of them into. That of the task which makes a part would
    not do: one that makes what was lost may make several."""
    from pyspark.sql import functions as F

    return frame.withColumn(_NUMBER, F.pmod(F.hash(case), F.lit(parts)).cast("long"))


def _named(schema: pa.Schema, name: str) -> str:
    return f"column_{schema.get_field_index(name)}"


def _cases(frame: Any, schema: pa.Schema, roles: Roles) -> int:
    """How many cases there are."""
    return int(frame.select(_named(schema, roles.case)).distinct().count())


@dataclass(frozen=True)
class _Maker:
    """Makes pieces of the rows of whole cases, on a worker."""

    roles: Roles
    policies: Mapping[str, Policy]
    name: str | None
    coarser: Coarser | None
    schema: pa.Schema
    shape: EventLog | None = None
    version: str = __version__

    def log(self, rows: pa.Table) -> EventLog:
        findings = Findings(self.policies, self.name)
        log = log_from_table(rows, self.roles, findings, source=self.name)
        return log if self.coarser is None else self.coarser.of_log(log)

    @property
    def layout(self) -> list[str]:
        """The cells of a piece."""
        assert self.shape is not None
        tables = (("events", self.shape.events), ("cases", self.shape.cases))
        return [column_of(kind, place) for kind, table in tables for place in range(table.num_columns)]

    def row(self, batches: list[pa.RecordBatch]) -> dict[str, Any]:
        check_version(self.version)
        rows = pa.Table.from_batches(batches)
        (number, *others), rows = rows.column(_NUMBER).unique().to_pylist(), rows.drop_columns([_NUMBER])
        if others:
            raise EngineError("spark-does-not-keep")
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


def _made(maker: _Maker, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The piece that a part of the rows makes, or the error that it met; nothing of no rows."""
    rows = [batch for batch in batches if batch.num_rows]
    if not rows:
        return
    try:
        row = maker.row(rows)
    except VeilogError as error:
        row = {"number": -1, "note": pickle.dumps(Failure.of(error))}
    binary = [(name, pa.binary()) for name in ("digest", "note", *maker.layout)]
    yield pa.RecordBatch.from_pylist([row], schema=pa.schema([("number", pa.int64()), ("cases", pa.int64()), *binary]))


def _kept(sorted_: Any, maker: _Maker, parts: int, cases: int, findings: Findings) -> StoredLog:
    from pyspark.storagelevel import StorageLevel

    layout = ", ".join(f"{name} binary" for name in ("digest", "note", *maker.layout))
    with running():
        kept = sorted_.mapInArrow(partial(_made, maker), f"number long, cases long, {layout}")
        kept = kept.persist(StorageLevel.DISK_ONLY)
    try:
        heads = by_workers(lambda: kept.select("number", "cases", "digest", "note").collect())
        sizes, digests = [0] * parts, {}
        for head in sorted(heads, key=lambda head: head["number"]):
            for found in answered(head["note"]):
                findings.add(found.rule, found.example, count=found.count, advice=found.of_this_log)
            sizes[head["number"]] = head["cases"]
            digests[head["number"]] = (bytes(head["digest"]), head["cases"])
        if sum(sizes) != cases or len(heads) != len(digests):
            raise EngineError("case-came-several-pieces")
    except BaseException:
        kept.unpersist()
        raise
    assert maker.shape is not None
    return StoredLog(OnSpark(kept, digests), tuple(sizes), maker.shape)
