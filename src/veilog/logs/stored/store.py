"""A log that is kept on disk in pieces, for questions about more events than fit in memory.

Each piece has whole cases and is written to a temporary folder; all of them together are one log.
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
from typing import TypeVar

import numpy as np
import pyarrow as pa
from pyarrow import ipc

from veilog._typing import IntArray
from veilog.errors import EngineError
from veilog.logs.engines.engine import temporary_folder
from veilog.logs.eventlog import ACTIVITY, CASE_INDEX, EVENT_INDEX, TIMESTAMP, EventLog
from veilog.logs.findings import Finding
from veilog.logs.tables.columns import is_text
from veilog.logs.variants import Variants

__all__ = ["Folder", "StoredLog", "keep"]

_MERGED = 16
_AT_ONCE = 2
"""Pieces that are worked on at a time."""
_ALWAYS = (CASE_INDEX, EVENT_INDEX, ACTIVITY, TIMESTAMP)
"""What every question asks of events."""
_PREFIX = "case:"
_FEW = 2
"""Texts each of which stands in so many rows or more, on average, are kept as places in a list."""

T = TypeVar("T")


class Folder:
    """A temporary folder that goes when nothing refers to it any more, or when it is closed."""

    def __init__(self, where: str | os.PathLike[str] | None) -> None:
        self.path = temporary_folder(where)
        self.close = weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


@dataclass(frozen=True, eq=False)
class StoredLog:
    """An event log in pieces on disk, each of whole cases. Its folder goes when the last use of it does."""

    folder: Folder
    sizes: tuple[int, ...]
    """Cases of each piece."""
    shape: EventLog
    """The log without its rows: names and types of its columns, and where it is from."""
    findings: tuple[Finding, ...] = ()
    chosen: IntArray | None = None
    """Places of the cases that count, ascending; all, where this is None."""

    @property
    def read_together(self) -> tuple[str, ...]:
        return self.shape.read_together

    @property
    def mapped(self) -> str:
        return self.shape.mapped

    @property
    def attributes_read_together(self) -> tuple[str, ...]:
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
        for number, first, last in self._held():
            yield self._piece(number, first, last, attributes)

    def each(self, work: Callable[[EventLog, bool], T], attributes: Collection[str] | None = None) -> Iterator[T]:
        """What is found in the pieces, in their order; ``work`` is told whether a piece is the first.

        Some are worked on at a time, by threads: what ``work`` does to anything else it has to guard. Pieces come as
        they are kept, which is cheap: texts may be dictionaries, of any width, where those of the log are not.
        """

        def worked(held: tuple[int, int, int], first: bool) -> T:
            return work(self._piece(*held, attributes, as_kept=True), first)

        waiting: deque[Future[T]] = deque()
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for place, held in enumerate(self._held()):
                waiting.append(pool.submit(worked, held, place == 0))
                if len(waiting) > _AT_ONCE:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()

    def _held(self) -> Iterator[tuple[int, int, int]]:
        """The pieces that have cases, by their numbers, and which of the cases that count they hold."""
        start = 0
        for number, size in enumerate(self.sizes):
            first, last = (start, start + size)
            if self.chosen is not None:
                first, last = np.searchsorted(self.chosen, [first, last]).tolist()
            start += size
            if last > first:
                yield number, first, last

    def _piece(
        self, number: int, first: int, last: int, attributes: Collection[str] | None, *, as_kept: bool = False
    ) -> EventLog:
        log = _loaded(self.folder.path / str(number), self.shape, attributes, as_kept=as_kept)
        if self.chosen is None or last - first == log.cases.num_rows:
            return log
        return log.only(self.chosen[first:last] - sum(self.sizes[:number]))

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
        """Remove it from the disk now; it cannot be used any more."""
        self.folder.close()

    def only(self, cases: IntArray) -> StoredLog:
        """These cases, by their places in this log, ascending."""
        return replace(self, chosen=cases if self.chosen is None else self.chosen[cases])

    @cached_property
    def variants(self) -> Variants:
        parts: list[Variants] = []
        for found in self.each(lambda piece, _: piece.variants, ()):
            parts.append(found)
            if len(parts) == _MERGED:
                parts = [_merged(parts)]
        return replace(_merged(parts), read_together=self.read_together, mapped=self.mapped)


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
            raise EngineError(
                f"The log cannot be kept on disk ({error}).",
                advice="Free some of it, or name a folder elsewhere with --temp-directory.",
            ) from error
        sizes.append(log.cases.num_rows)
    return None if shape is None else StoredLog(folder, tuple(sizes), shape)


def _write(table: pa.Table, path: Path) -> None:
    """In one batch: what is numbers as it is in memory, to be mapped and not unpacked for each question; else packed.

    Texts that repeat are numbers, too: of a column, the places of its values in a list.
    """
    table = table.unify_dictionaries().combine_chunks()
    table = pa.table([_listed(column) for column in table.columns], names=table.column_names)
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


def _listed(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Texts that repeat, as places in the list of them, as narrow as these allow; other columns as they are."""
    if not is_text(column.type) or not len(column):
        return column
    found = column.combine_chunks().dictionary_encode()
    if len(found.dictionary) * _FEW > len(column):
        return column
    width = pa.from_numpy_dtype(np.min_scalar_type(-len(found.dictionary) - 1))  # with room for one that means none
    return pa.chunked_array([pa.DictionaryArray.from_arrays(found.indices.cast(width), found.dictionary)])


def _loaded(path: Path, shape: EventLog, attributes: Collection[str] | None, *, as_kept: bool) -> EventLog:
    """A piece; an attribute of cases and one of events may be meant by one name, with or without what goes before it
    in flat tables. Its columns are typed as those of the log, or ``as_kept``."""
    wanted = None if attributes is None else {name.removeprefix(_PREFIX) for name in attributes}

    def read(kind: str, schema: pa.Schema) -> pa.Table:
        chosen = [
            field
            for field in schema
            if wanted is None or field.name in _ALWAYS or field.name.removeprefix(_PREFIX) in wanted
        ]
        columns = _read(path.with_name(f"{path.name}-{kind}"), [field.name for field in chosen])
        if as_kept:
            chosen = [field.with_type(columns[field.name].type) for field in chosen]
        typed = [columns[field.name].cast(field.type) for field in chosen]
        return pa.Table.from_arrays(typed, schema=pa.schema(chosen, schema.metadata))

    return replace(shape, events=read("events", shape.events.schema), cases=read("cases", shape.cases.schema))


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


def _merged(parts: list[Variants]) -> Variants:
    """All cases of these together."""
    labels = tuple(sorted({label for part in parts for label in part.labels}))
    place = {label: code for code, label in enumerate(labels)}
    recoded = [np.array([place[x] for x in part.labels] or [0], dtype=np.int32)[part.codes] for part in parts]
    lengths = np.concatenate([np.zeros(1, dtype=np.int64), *(part.lengths for part in parts)])
    codes = np.concatenate([np.zeros(0, dtype=np.int32), *recoded])
    counts = np.concatenate([np.zeros(0, dtype=np.int64), *(part.counts for part in parts)])
    return Variants.from_arrays(labels, codes, np.cumsum(lengths), counts)
