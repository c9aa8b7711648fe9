"""Log in pieces of whole cases outside memory, for more events than fit there.

All pieces together are one log. Their :class:`ChunkStore` decides where they are. One store is a disk of this machine
(below): two files a piece and a table, numbers to be mapped and texts packed. Another is the workers of a Spark cluster
(:mod:`veilog.logs.storage.spark`), which run queries of a piece where it lies. A function gets the same event log from
both, column by column.
"""

from __future__ import annotations

import os
import shutil
import weakref
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np
import pyarrow as pa
from pyarrow import ipc

from veilog._typing import IntArray
from veilog.errors import EngineError, InputError
from veilog.logs.engines.engine import temporary_folder
from veilog.logs.eventlog import ACTIVITY, CASE_INDEX, EVENT_INDEX, TIMESTAMP, EventLog
from veilog.logs.findings import Finding
from veilog.logs.tables.cells import is_text
from veilog.logs.variants import Variants
from veilog.messages import Message

_MERGED = 16
_ALWAYS = (CASE_INDEX, EVENT_INDEX, ACTIVITY, TIMESTAMP)
"""Columns of events that every query needs."""
_PREFIX = "case:"
_FEW = 2
"""Rows of a text, on average, from which texts are kept as places in a list."""

T = TypeVar("T")
Kind = str
"""Table of a column: ``events`` or ``cases``."""


@dataclass(frozen=True)
class Chunk:
    """Number of a piece, and the places of its cases that count; None for all of them."""

    number: int
    cases: IntArray | None = None

    def of(self, piece: EventLog) -> EventLog:
        """Return the cases of this piece that count."""
        return piece if self.cases is None else piece.only(self.cases)


@dataclass(frozen=True)
class Scope:
    """Pieces that a query covers, in their order, and the columns that it needs."""

    held: tuple[Chunk, ...]
    shape: EventLog
    attributes: Collection[str] | None = None
    """Names of attributes, with or without the prefix of flat tables; None for all.

    A name may mean an attribute of cases and one of events.
    """

    def columns(self, kind: Kind) -> list[pa.Field]:
        """Return the columns needed of a table."""
        schema = self.shape.events.schema if kind == "events" else self.shape.cases.schema
        if self.attributes is None:
            return list(schema)
        wanted = {name.removeprefix(_PREFIX) for name in self.attributes}
        return [field for field in schema if field.name in _ALWAYS or field.name.removeprefix(_PREFIX) in wanted]


class ChunkStore(Protocol):
    """Store of the pieces of a log, which runs queries about them there.

    ``work`` gets a piece, and True for the first of the query. It may run for several pieces at a time, so it has to
    guard its changes to anything else. It may run in other processes on other machines, where such changes are lost.
    Pieces come as they are kept: texts may be dictionaries, of any width, where those of the log are not.
    """

    @property
    def folder(self) -> Path | None:
        """Folder on this machine where more may be kept; None for the usual place."""

    def each(self, work: Callable[[EventLog, bool], T], scope: Scope) -> Iterator[T]:
        """Yield the result of each piece, in their order."""

    def together(self, work: Callable[[EventLog, bool], T], combine: Callable[[Iterable[T]], T], scope: Scope) -> T:
        """Return the combined result of all pieces.

        ``combine`` makes one of any number of results, in any order, where they are. It runs again on its own results.
        """

    def pieces(self, scope: Scope) -> Iterator[EventLog]:
        """Yield the pieces themselves, one after the other."""

    def close(self) -> None:
        """Release the pieces that are kept."""


@dataclass(frozen=True, eq=False)
class StoredLog:
    """Event log in stored pieces, each of whole cases.

    The pieces are removed when nothing uses them any more.
    """

    keeper: ChunkStore
    sizes: tuple[int, ...]
    """Number of cases of each piece."""
    shape: EventLog
    """Log without its rows: names and types of its columns, and where it is from."""
    findings: tuple[Finding, ...] = ()
    chosen: IntArray | None = None
    """Places of the cases that count, ascending; None for all."""

    def __reduce__(self) -> str:
        raise TypeError("A StoredLog cannot be pickled. Do not capture it in a function that is sent to workers.")

    @property
    def read_together(self) -> tuple[Message, ...]:
        return self.shape.read_together

    @property
    def read_as(self) -> str:
        return self.shape.read_as

    @property
    def mapped(self) -> tuple[Message, ...]:
        return self.shape.mapped

    @property
    def attributes_read_together(self) -> tuple[Message, ...]:
        return self.shape.attributes_read_together

    def __repr__(self) -> str:
        return f"StoredLog({self.number_of_cases} cases in {len(self.sizes)} pieces)"

    @property
    def source(self) -> str | None:
        return self.shape.source

    @property
    def number_of_cases(self) -> int:
        return sum(self.sizes) if self.chosen is None else len(self.chosen)

    def pieces(self, attributes: Collection[str] | None = None) -> Iterator[EventLog]:
        """Yield the log, some whole cases at a time, with these attributes alone, or all."""
        for piece in self.keeper.pieces(self._scope(attributes)):
            events, cases = piece.events, piece.cases
            yield replace(
                piece, events=_cast_columns(events, self.shape.events), cases=_cast_columns(cases, self.shape.cases)
            )

    def each(self, work: Callable[[EventLog, bool], T], attributes: Collection[str] | None = None) -> Iterator[T]:
        """Yield the result of each piece, in order; :class:`ChunkStore` limits ``work``."""
        return self.keeper.each(work, self._scope(attributes))

    def together(
        self,
        work: Callable[[EventLog, bool], T],
        combine: Callable[[Iterable[T]], T],
        attributes: Collection[str] | None = None,
    ) -> T:
        """Return the pieces' results, combined where these are; see :class:`ChunkStore`."""
        return self.keeper.together(work, combine, self._scope(attributes))

    def _scope(self, attributes: Collection[str] | None) -> Scope:
        return Scope(tuple(self._chunks_with_cases()), self.shape, attributes)

    def _chunks_with_cases(self) -> Iterator[Chunk]:
        """Yield the pieces that have cases that count."""
        start = 0
        for number, size in enumerate(self.sizes):
            stop = start + size
            if self.chosen is None:
                cases, count = None, size
            else:
                first, last = np.searchsorted(self.chosen, [start, stop]).tolist()
                count = last - first
                cases = None if count == size else self.chosen[first:last] - start
            if count:
                yield Chunk(number, cases)
            start = stop

    def whole(self) -> EventLog:
        """Return all of it as one log in memory, with its events numbered anew."""
        events, cases, before = [], [], 0
        for piece in self.pieces():
            owner = pa.array(piece.events.column(CASE_INDEX).to_numpy() + before)
            place = piece.events.column_names.index(CASE_INDEX)
            events.append(piece.events.set_column(place, CASE_INDEX, owner))
            cases.append(piece.cases)
            before += piece.cases.num_rows
        together = pa.concat_tables([self.shape.events, *events]).unify_dictionaries()
        place = together.column_names.index(EVENT_INDEX)
        together = together.set_column(place, EVENT_INDEX, pa.array(np.arange(len(together))))
        return replace(self.shape, events=together, cases=pa.concat_tables([self.shape.cases, *cases]))

    def close(self) -> None:
        """Remove it from where it is kept now; it cannot be used any more."""
        self.keeper.close()

    def only(self, cases: IntArray) -> StoredLog:
        """Return the log of these cases, by their places in this log, ascending."""
        return replace(self, chosen=cases if self.chosen is None else self.chosen[cases])

    @cached_property
    def variants(self) -> Variants:
        found = self.together(_variants_of, _merge_variants, ())
        return replace(found, read_together=self.read_together, mapped=self.mapped, read_as=self.read_as)


def variants_of(log: EventLog | StoredLog | Variants) -> Variants:
    """Return the variants of a log, which may be these alone."""
    return log if isinstance(log, Variants) else log.variants


def as_kept(table: pa.Table) -> pa.Table:
    """Return a piece's table in one batch, with texts that repeat as places in a list.

    Places are numbers, which are cheap.
    """
    table = table.unify_dictionaries().combine_chunks()
    return pa.table([_encode_texts(column) for column in table.columns], names=table.column_names)


def piece_of(scope: Scope, columns: Callable[[Kind, list[str]], dict[str, pa.ChunkedArray]]) -> EventLog:
    """Return the piece that has these columns, as they are kept."""

    def table(kind: Kind, schema: pa.Schema) -> pa.Table:
        fields = scope.columns(kind)
        found = columns(kind, [field.name for field in fields])
        kept = [field.with_type(found[field.name].type) for field in fields]
        return pa.Table.from_arrays([found[f.name] for f in kept], schema=pa.schema(kept, schema.metadata))

    shape = scope.shape
    return replace(shape, events=table("events", shape.events.schema), cases=table("cases", shape.cases.schema))


def misfit(name: str | None) -> InputError:
    """Return the error about pieces with columns of other types than those of others."""
    return InputError("column-values-types-differ", path=name)


def _cast_columns(table: pa.Table, shape: pa.Table) -> pa.Table:
    """Return the columns in the types of the log."""
    fields = [shape.schema.field(name) for name in table.column_names]
    columns = [column.cast(field.type) for column, field in zip(table.columns, fields, strict=True)]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields, shape.schema.metadata))


def _encode_texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return texts that repeat as narrow places in their list; other columns as is."""
    if not is_text(column.type) or not len(column):
        return column
    found = column.combine_chunks().dictionary_encode()
    if len(found.dictionary) * _FEW > len(column):
        return column
    width = pa.from_numpy_dtype(np.min_scalar_type(-len(found.dictionary) - 1))  # with room for one that means none
    return pa.chunked_array([pa.DictionaryArray.from_arrays(found.indices.cast(width), found.dictionary)])


def _variants_of(piece: EventLog, _first: bool) -> Variants:
    return piece.variants


def _merge_variants(found: Iterable[Variants]) -> Variants:
    """Return all cases of these together, joined some at a time, to hold few."""
    parts: list[Variants] = []
    for part in found:
        parts.append(part)
        if len(parts) == _MERGED:
            parts = [_join_variants(parts)]
    return parts[0] if len(parts) == 1 else _join_variants(parts)


def _join_variants(parts: Sequence[Variants]) -> Variants:
    """Return all cases of these together."""
    labels = tuple(sorted({label for part in parts for label in part.labels}))
    place = {label: code for code, label in enumerate(labels)}
    recoded = [np.array([place[x] for x in part.labels] or [0], dtype=np.int32)[part.codes] for part in parts]
    lengths = np.concatenate([np.zeros(1, dtype=np.int64), *(part.lengths for part in parts)])
    codes = np.concatenate([np.zeros(0, dtype=np.int32), *recoded])
    counts = np.concatenate([np.zeros(0, dtype=np.int64), *(part.counts for part in parts)])
    return Variants.from_arrays(labels, codes, np.cumsum(lengths), counts)


_AT_ONCE = 2
"""Pieces that are worked on at a time."""


class Folder:
    """Temporary folder that goes when nothing refers to it any more, or when closed."""

    def __init__(self, where: str | os.PathLike[str] | None) -> None:
        self.path = temporary_folder(where)
        self.close = weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


class _OnDisk:
    """Store on the local disk, which runs queries in local threads."""

    def __init__(self, kept: Folder) -> None:
        self._kept = kept

    @property
    def folder(self) -> Path:
        return self._kept.path.parent

    def each(self, work: Callable[[EventLog, bool], T], scope: Scope) -> Iterator[T]:
        waiting: deque[Future[T]] = deque()
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for place, held in enumerate(scope.held):
                waiting.append(pool.submit(lambda held, first: work(self._piece(held, scope), first), held, place == 0))
                if len(waiting) > _AT_ONCE:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()

    def together(self, work: Callable[[EventLog, bool], T], combine: Callable[[Iterable[T]], T], scope: Scope) -> T:
        return combine(self.each(work, scope))

    def pieces(self, scope: Scope) -> Iterator[EventLog]:
        return (self._piece(held, scope) for held in scope.held)

    def close(self) -> None:
        self._kept.close()

    def _piece(self, held: Chunk, scope: Scope) -> EventLog:
        path = self._kept.path / str(held.number)
        return held.of(piece_of(scope, lambda kind, names: _read_columns(path.with_name(f"{path.name}-{kind}"), names)))


def keep(pieces: Iterable[EventLog], *, temp_directory: str | os.PathLike[str] | None = None) -> StoredLog | None:
    """Keep a log on disk that comes in pieces of whole cases, at least one.

    Return None if their columns differ.
    """
    folder = Folder(temp_directory)
    try:
        log = _keep_pieces(pieces, folder)
    except BaseException:  # on any failure the stored pieces go now, and not when Python ends
        folder.close()
        raise
    if log is None:
        folder.close()
    return log


def _keep_pieces(pieces: Iterable[EventLog], folder: Folder) -> StoredLog | None:
    shape = None
    sizes: list[int] = []
    for log in pieces:
        if shape is None:
            shape = log.shape
        if log.events.schema != shape.events.schema or log.cases.schema != shape.cases.schema:
            return None
        try:
            for name, table in (("events", log.events), ("cases", log.cases)):
                _write(table, folder.path / f"{len(sizes)}-{name}")
        except OSError as error:
            raise EngineError("store-disk-failed", reason=error) from error
        sizes.append(log.cases.num_rows)
    return None if shape is None else StoredLog(_OnDisk(folder), tuple(sizes), shape)


def _write(table: pa.Table, path: Path) -> None:
    """Write numbers as they are in memory, to be mapped without unpacking; pack texts."""
    table = as_kept(table)
    texts = [field.name for field in table.schema if is_text(field.type)]
    for names, kept, compression in ((texts, _packed_path(path), "lz4"), (None, _mapped_path(path), None)):
        part = table.select(names) if names is not None else table.drop_columns(texts)
        if part.num_columns:
            with ipc.new_file(kept, part.schema, options=ipc.IpcWriteOptions(compression=compression)) as file:
                file.write_table(part)


def _mapped_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.arrow")


def _packed_path(path: Path) -> Path:
    return path.with_name(f"{path.name}-texts.arrow")


def _read_columns(path: Path, names: Sequence[str]) -> dict[str, pa.ChunkedArray]:
    columns: dict[str, pa.ChunkedArray] = {}
    if _mapped_path(path).exists():
        with pa.memory_map(str(_mapped_path(path))) as file:
            table = ipc.open_file(file).read_all()
        columns = {name: table.column(name) for name in names if name in table.column_names}
    packed = [name for name in names if name not in columns]
    if packed:
        with pa.memory_map(str(_packed_path(path))) as file:
            fields = [ipc.open_file(file).schema.get_field_index(name) for name in packed]
            table = ipc.open_file(file, options=ipc.IpcReadOptions(included_fields=fields)).read_all()
        columns |= dict(zip(table.column_names, table.columns, strict=True))
    return columns
