"""Pieces of a log on a disk of this machine: two files a piece and a table, numbers to be mapped and texts packed."""

from __future__ import annotations

import os
import shutil
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
from pyarrow import ipc

from veilog.errors import EngineError
from veilog.logs.engines.engine import temporary_folder
from veilog.logs.eventlog import EventLog
from veilog.logs.stored.store import Chunk, Scope, StoredLog, as_kept, piece_of
from veilog.logs.tables.cells.columns import is_text

__all__ = ["Folder", "keep"]

_AT_ONCE = 2
"""Pieces that are worked on at a time."""

T = TypeVar("T")


class Folder:
    """A temporary folder that goes when nothing refers to it any more, or when it is closed."""

    def __init__(self, where: str | os.PathLike[str] | None) -> None:
        self.path = temporary_folder(where)
        self.close = weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


class _OnDisk:
    """What is asked is done here, by threads, a piece after the other."""

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
            raise EngineError("log-cannot-kept-disk", reason=error) from error
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
