"""Numbers on disk, for work on more events than fit in memory: whole numbers in a file, and the same in columns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from veilog._typing import IntArray
from veilog.errors import EngineError

__all__ = ["Columns", "Shelf", "runs"]

_WIDTH = 8


class Shelf:
    """Whole numbers in a file, added at its end, read from anywhere."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._size = 0
        with _on_disk():
            path.touch(exist_ok=False)

    def __len__(self) -> int:
        return self._size

    def add(self, numbers: IntArray) -> None:
        with _on_disk(), self._path.open("ab") as file:
            file.write(np.ascontiguousarray(numbers, dtype=np.int64).data)
        self._size += len(numbers)

    def read(self, bounds: IntArray) -> IntArray:
        """The numbers at ``bounds[i, 0]`` up to ``bounds[i, 1]`` of each row, one after the other."""
        found = np.empty(int((bounds[:, 1] - bounds[:, 0]).sum()), dtype=np.int64)
        at = 0
        with _on_disk(), self._path.open("rb") as file:
            for first, last in bounds.tolist():
                file.seek(first * _WIDTH)
                at += file.readinto(found[at : at + last - first].data) // _WIDTH
        if at != len(found):
            raise EngineError("Numbers that were kept on disk are gone.", advice="Did something clear the folder?")
        return found

    def replace(self, bounds: IntArray, numbers: IntArray) -> None:
        """Put other numbers where :meth:`read` with these bounds finds some."""
        at = 0
        with _on_disk(), self._path.open("r+b") as file:
            for first, last in bounds.tolist():
                file.seek(first * _WIDTH)
                file.write(np.ascontiguousarray(numbers[at : at + last - first], dtype=np.int64).data)
                at += last - first


class Columns:
    """Numbers that come row by row, each of them in a column, and are needed column by column, or the other way round.

    A row lies in the file sorted by column. So what a row has in a column is one run, and a column is one run of each
    row; nothing but the places of these runs is held in memory.
    """

    def __init__(self, path: Path, columns: int) -> None:
        self._shelf = Shelf(path)
        self._columns = columns
        self._bounds: list[IntArray] = []
        """Of each row, where in the file its columns begin, and where the last ends."""

    def add(self, numbers: IntArray, columns: IntArray) -> None:
        """One more row: its numbers and the column of each."""
        sizes = np.bincount(columns, minlength=self._columns)
        self._bounds.append(len(self._shelf) + np.concatenate([[0], np.cumsum(sizes)]))
        self._shelf.add(numbers[self._order(columns)])

    def column(self, number: int) -> IntArray:
        """What the rows have there, row by row, each in its order."""
        return self._shelf.read(self._runs(number))

    def replace(self, number: int, numbers: IntArray) -> None:
        """Put others in the place of what :meth:`column` gives."""
        self._shelf.replace(self._runs(number), numbers)

    def row(self, number: int, columns: IntArray) -> IntArray:
        """A row as it came (or what replaced it): in the order of ``columns``, those that it came with."""
        found = np.empty(len(columns), dtype=np.int64)
        found[self._order(columns)] = self._shelf.read(self._bounds[number][None, [0, -1]])
        return found

    def _runs(self, number: int) -> IntArray:
        return np.array([bounds[number : number + 2] for bounds in self._bounds], dtype=np.int64).reshape(-1, 2)

    def _order(self, columns: IntArray) -> IntArray:
        # Of numbers of 16 bits numpy makes a radix sort.
        return np.argsort(columns.astype(np.min_scalar_type(self._columns)), kind="stable")


def runs(sizes: IntArray, most: int) -> Iterator[tuple[int, int]]:
    """Cut things of these sizes into runs, from a first up to a last, of at most so much unless one alone has more."""
    ends = np.cumsum(sizes)
    first = 0
    while first < len(sizes):
        before = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, before + most, side="right")))
        yield first, last
        first = last


@contextmanager
def _on_disk() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise EngineError(
            f"What does not fit in memory cannot be kept on disk ({error}).",
            advice="Free some of it, or name a folder elsewhere with --temp-directory.",
        ) from error
