"""A log in pieces of whole cases that is kept outside memory, for queries about more events than fit there.

All pieces together are one log. Their :class:`ChunkStore` decides where they are: on a disk of this machine (below, two
files a piece and a table, numbers to be mapped and texts packed), or on the workers of a Spark cluster
(:mod:`veilog.logs.storage.spark`), which run what is asked of a piece where it lies. What a function is given there is
the same event log, column by column.
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
"""What every question asks of events."""
_PREFIX = "case:"
_FEW = 2
"""Texts each of which stands in so many rows or more, on average, are kept as places in a list."""

T = TypeVar("T")
Kind = str
"""``events`` or ``cases``, which table a column is of."""


@dataclass(frozen=True)
class Chunk:
    """A piece that has cases that count: its number, and the places of these cases in it; None for all of them."""

    number: int
    cases: IntArray | None = None

    def of(self, piece: EventLog) -> EventLog:
        """The cases of this piece that count."""
        return piece if self.cases is None else piece.only(self.cases)


@dataclass(frozen=True)
class Scope:
    """The pieces that a question is about, in their order, and the columns that it needs of each."""

    held: tuple[Chunk, ...]
    shape: EventLog
    attributes: Collection[str] | None = None
    """An attribute of cases and one of events may be meant by one name, with or without what goes before it in flat
    tables; None for all."""

    def columns(self, kind: Kind) -> list[pa.Field]:
        """The columns needed of a table."""
        schema = self.shape.events.schema if kind == "events" else self.shape.cases.schema
        if self.attributes is None:
            return list(schema)
        wanted = {name.removeprefix(_PREFIX) for name in self.attributes}
        return [field for field in schema if field.name in _ALWAYS or field.name.removeprefix(_PREFIX) in wanted]


class ChunkStore(Protocol):
    """Keeps the pieces of a log somewhere, and has what is asked of them done there.

    ``work`` is told whether a piece is the first of those asked about. It may run for several at a time, so what it
    does to anything else it has to guard, and in other processes on other machines, so that what it does to anything
    else is lost. Pieces come as they are kept: texts may be dictionaries, of any width, where those of the log are not.
    """

    @property
    def folder(self) -> Path | None:
        """Where on this machine more may be kept; None for the usual place."""

    def each(self, work: Callable[[EventLog, bool], T], scope: Scope) -> Iterator[T]:
        """What is found in each piece, in their order."""

    def together(self, work: Callable[[EventLog, bool], T], combine: Callable[[Iterable[T]], T], scope: Scope) -> T:
        """What is found in all of them: ``combine`` makes one of any number of findings, in any order, where they are;
        and again of what it made."""

    def pieces(self, scope: Scope) -> Iterator[EventLog]:
        """The pieces themselves, one after the other."""

    def close(self) -> None:
        """Let go of what is kept."""


@dataclass(frozen=True, eq=False)
class StoredLog:
    """An event log in pieces that are kept somewhere, each of whole cases. They go when the last use of them does."""

    keeper: ChunkStore
    sizes: tuple[int, ...]
    """Cases of each piece."""
    shape: EventLog
    """The log without its rows: names and types of its columns, and where it is from."""
    findings: tuple[Finding, ...] = ()
    chosen: IntArray | None = None
    """Places of the cases that count, ascending; all, where this is None."""

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
        """The log, some whole cases at a time, in their order; of its attributes these alone are read, or all."""
        for piece in self.keeper.pieces(self._scope(attributes)):
            events, cases = piece.events, piece.cases
            yield replace(piece, events=_typed(events, self.shape.events), cases=_typed(cases, self.shape.cases))

    def each(self, work: Callable[[EventLog, bool], T], attributes: Collection[str] | None = None) -> Iterator[T]:
        """What is found in the pieces, in their order; see :class:`ChunkStore` for what ``work`` may do."""
        return self.keeper.each(work, self._scope(attributes))

    def together(
        self,
        work: Callable[[EventLog, bool], T],
        combine: Callable[[Iterable[T]], T],
        attributes: Collection[str] | None = None,
    ) -> T:
        """What is found in all pieces, combined where they are kept; see :class:`ChunkStore`."""
        return self.keeper.together(work, combine, self._scope(attributes))

    def _scope(self, attributes: Collection[str] | None) -> Scope:
        return Scope(tuple(self._held()), self.shape, attributes)

    def _held(self) -> Iterator[Chunk]:
        """The pieces that have cases that count."""
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
        """All of it as one log in memory; its events are numbered anew."""
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
        """These cases, by their places in this log, ascending."""
        return replace(self, chosen=cases if self.chosen is None else self.chosen[cases])

    @cached_property
    def variants(self) -> Variants:
        found = self.together(_variants_of, _merged, ())
        return replace(found, read_together=self.read_together, mapped=self.mapped, read_as=self.read_as)


def variants_of(log: EventLog | StoredLog | Variants) -> Variants:
    """Return the variants of a log, which may be these alone."""
    return log if isinstance(log, Variants) else log.variants


def as_kept(table: pa.Table) -> pa.Table:
    """A table of a piece in one batch, texts that repeat as places in the list of them: numbers, which are cheap."""
    table = table.unify_dictionaries().combine_chunks()
    return pa.table([_listed(column) for column in table.columns], names=table.column_names)


def piece_of(scope: Scope, columns: Callable[[Kind, list[str]], dict[str, pa.ChunkedArray]]) -> EventLog:
    """The piece that has these columns, as they are kept."""

    def table(kind: Kind, schema: pa.Schema) -> pa.Table:
        fields = scope.columns(kind)
        found = columns(kind, [field.name for field in fields])
        kept = [field.with_type(found[field.name].type) for field in fields]
        return pa.Table.from_arrays([found[f.name] for f in kept], schema=pa.schema(kept, schema.metadata))

    shape = scope.shape
    return replace(shape, events=table("events", shape.events.schema), cases=table("cases", shape.cases.schema))


def misfit(name: str | None) -> InputError:
    """What to say where the columns of some pieces have other types than those of others."""
    return InputError("column-values-types-differ", path=name)


def _typed(table: pa.Table, shape: pa.Table) -> pa.Table:
    """The columns in the types of the log."""
    fields = [shape.schema.field(name) for name in table.column_names]
    columns = [column.cast(field.type) for column, field in zip(table.columns, fields, strict=True)]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields, shape.schema.metadata))


def _listed(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Texts that repeat, as places in the list of them, as narrow as these allow; other columns as they are."""
    if not is_text(column.type) or not len(column):
        return column
    found = column.combine_chunks().dictionary_encode()
    if len(found.dictionary) * _FEW > len(column):
        return column
    width = pa.from_numpy_dtype(np.min_scalar_type(-len(found.dictionary) - 1))  # with room for one that means none
    return pa.chunked_array([pa.DictionaryArray.from_arrays(found.indices.cast(width), found.dictionary)])


def _variants_of(piece: EventLog, _first: bool) -> Variants:
    return piece.variants


def _merged(found: Iterable[Variants]) -> Variants:
    """All cases of these together, some at a time, so that few are held."""
    parts: list[Variants] = []
    for part in found:
        parts.append(part)
        if len(parts) == _MERGED:
            parts = [_joined(parts)]
    return parts[0] if len(parts) == 1 else _joined(parts)


def _joined(parts: Sequence[Variants]) -> Variants:
    """All cases of these together."""
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
    """A temporary folder that goes when nothing refers to it any more, or when it is closed."""

    def __init__(self, where: str | os.PathLike[str] | None) -> None:
        self.path = temporary_folder(where)
        self.close = weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


class _OnDisk:
    """Runs queries on the stored pieces in local threads."""

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
        return held.of(piece_of(scope, lambda kind, names: _read(path.with_name(f"{path.name}-{kind}"), names)))


def keep(pieces: Iterable[EventLog], *, temp_directory: str | os.PathLike[str] | None = None) -> StoredLog | None:
    """A log that comes in pieces, at least one, each of whole cases, kept on disk; None if their columns differ."""
    folder = Folder(temp_directory)
    try:
        log = _kept(pieces, folder)
    except BaseException:  # whatever ends it, what was kept so far goes now and not when Python ends
        folder.close()
        raise
    if log is None:
        folder.close()
    return log


def _kept(pieces: Iterable[EventLog], folder: Folder) -> StoredLog | None:
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
    """What is numbers as it is in memory, to be mapped and not unpacked for each question; else packed."""
    table = as_kept(table)
    texts = [field.name for field in table.schema if is_text(field.type)]
    for names, kept, compression in ((texts, _packed(path), "lz4"), (None, _mapped(path), None)):
        part = table.select(names) if names is not None else table.drop_columns(texts)
        if part.num_columns:
            with ipc.new_file(kept, part.schema, options=ipc.IpcWriteOptions(compression=compression)) as file:
                file.write_table(part)


def _mapped(path: Path) -> Path:
    return path.with_name(f"{path.name}.arrow")


def _packed(path: Path) -> Path:
    return path.with_name(f"{path.name}-texts.arrow")


def _read(path: Path, names: Sequence[str]) -> dict[str, pa.ChunkedArray]:
    columns: dict[str, pa.ChunkedArray] = {}
    if _mapped(path).exists():
        with pa.memory_map(str(_mapped(path))) as file:
            table = ipc.open_file(file).read_all()
        columns = {name: table.column(name) for name in names if name in table.column_names}
    packed = [name for name in names if name not in columns]
    if packed:
        with pa.memory_map(str(_packed(path))) as file:
            fields = [ipc.open_file(file).schema.get_field_index(name) for name in packed]
            table = ipc.open_file(file, options=ipc.IpcReadOptions(included_fields=fields)).read_all()
        columns |= dict(zip(table.column_names, table.columns, strict=True))
    return columns
