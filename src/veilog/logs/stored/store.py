"""A log that is kept on disk in pieces, for questions about more events than fit in memory.

Each piece has whole cases and is written to a temporary folder; all of them together are one log.
"""

from __future__ import annotations

import os
import shutil
import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from veilog._typing import IntArray
from veilog.errors import EngineError
from veilog.logs.engines.engine import temporary_folder
from veilog.logs.eventlog import CASE_INDEX, EVENT_INDEX, EventLog
from veilog.logs.findings import Finding
from veilog.logs.variants import Variants

__all__ = ["Folder", "StoredLog", "keep"]

_MERGED = 16


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

    def pieces(self) -> Iterator[EventLog]:
        """The log, some whole cases at a time, in their order."""
        start = 0
        for number, size in enumerate(self.sizes):
            log = _loaded(self.folder.path, number, self.shape)
            if self.chosen is not None:
                first, last = np.searchsorted(self.chosen, [start, start + size])
                if last - first < size:
                    log = log.only(self.chosen[first:last] - start)
            start += size
            if log.cases.num_rows:
                yield log

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
        for piece in self.pieces():
            parts.append(piece.variants)
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
                pq.write_table(table, folder.path / f"{len(sizes)}-{name}.parquet", compression="lz4")
        except OSError as error:
            raise EngineError(
                f"The log cannot be kept on disk ({error}).",
                advice="Free some of it, or name a folder elsewhere with --temp-directory.",
            ) from error
        sizes.append(log.cases.num_rows)
    return None if shape is None else StoredLog(folder, tuple(sizes), shape)


def _loaded(folder: Path, number: int, shape: EventLog) -> EventLog:
    events, cases = (
        pq.read_table(folder / f"{number}-{name}.parquet").cast(table.schema)
        for name, table in (("events", shape.events), ("cases", shape.cases))
    )
    return replace(shape, events=events, cases=cases)


def _merged(parts: list[Variants]) -> Variants:
    """All cases of these together."""
    labels = tuple(sorted({label for part in parts for label in part.labels}))
    place = {label: code for code, label in enumerate(labels)}
    recoded = [np.array([place[x] for x in part.labels] or [0], dtype=np.int32)[part.codes] for part in parts]
    lengths = np.concatenate([np.zeros(1, dtype=np.int64), *(part.lengths for part in parts)])
    codes = np.concatenate([np.zeros(0, dtype=np.int32), *recoded])
    counts = np.concatenate([np.zeros(0, dtype=np.int64), *(part.counts for part in parts)])
    return Variants.from_arrays(labels, codes, np.cumsum(lengths), counts)
