"""A log that somebody names: a file, several files that count as one table, a table of an engine or in memory.

Its file is opened once: what was read to find out its columns is handed on with the first stream of its bytes.
"""

from __future__ import annotations

import glob
import os
import re
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias, TypeVar, cast

from veilog._files import reason
from veilog.errors import InputError, ParameterError
from veilog.logs.input.streams import DEFAULT_LIMIT, open_input, resumed, zipped

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    from pm4py.objects.log.obj import EventLog as Traces

__all__ = [
    "AS_FOUND",
    "AT_HAND",
    "Given",
    "Layout",
    "Means",
    "Progress",
    "Source",
    "is_ibis",
    "silent",
    "suffix_of",
]

Given: TypeAlias = "str | os.PathLike[str] | pa.Table | pd.DataFrame | pl.DataFrame | pl.LazyFrame | Traces | ir.Table"
"""What somebody may give for a log."""
Progress = Callable[[str, float | None], None]
T = TypeVar("T")


_MEMORY = re.compile(
    r"\s*(?=[0-9.]*[1-9])[0-9]+(\.[0-9]+)?\s*(%|[kmgt]?i?b|[kmgt]|([kmgt]|kilo|mega|giga|tera)?bytes?)\s*",
    re.IGNORECASE,
)


def silent(text: str, fraction: float | None) -> None:
    """The progress of whoever does not want to know."""


@dataclass(frozen=True)
class Means:
    """What an engine that runs here may use, and what orders events of equal time."""

    memory_limit: str = "1GB"
    threads: int | None = None
    temp_directory: str | os.PathLike[str] | None = None
    index: str | None = None
    """A column that orders events of equal time, for tables that have no order of rows."""

    def __post_init__(self) -> None:
        if not _MEMORY.fullmatch(self.memory_limit):  # also where no engine is started that would refuse it
            raise ParameterError(
                "memory-limit-not-understood", parameter="memory_limit", memory_limit=self.memory_limit
            )
        if self.threads is not None and self.threads < 1:
            raise ParameterError("threads-cannot-do-anything", parameter="threads", threads=self.threads)


AT_HAND = Means()


@dataclass(frozen=True)
class Layout:
    """Where in a file the log is, as far as its owner says so."""

    header: int | None = None
    """The line with the names of the columns, from 1 on; 0 where there is none; None: it is looked for."""
    sheet: str | None = None
    """Of a workbook."""
    object_type: str | None = None
    """Of an object-centric log: the objects of this type are the cases."""

    def __post_init__(self) -> None:
        if self.header is not None and self.header < 0:
            raise ParameterError("no-line", parameter="header", header=self.header)


AS_FOUND = Layout()


class Source:
    """One log, as somebody names it, and what was found out of it so far."""

    def __init__(
        self,
        given: object,
        *,
        engine: str = "duckdb",
        means: Means = AT_HAND,
        limit: int | None = DEFAULT_LIMIT,
        layout: Layout = AS_FOUND,
    ) -> None:
        self.given: Any = given
        self.engine = engine
        """Who groups its events into variants; see :mod:`veilog.logs.engines.names`."""
        self.means = means
        self.limit = limit
        """The bytes that may come out of a compressed file."""
        self.layout = layout
        self.name = _name_of(given)
        """Of a file, of several, or of a table of an engine; None for a table in memory, which has none."""
        self._known: dict[Callable[[Source], object], object] = {}
        self._begun: tuple[bytes, BinaryIO, weakref.finalize[..., Any]] | None = None

    def once(self, find: Callable[[Source], T]) -> T:
        """Return what ``find`` finds out of this log; it is asked only once, unless it raises."""
        if find not in self._known:
            self._known[find] = find(self)
        return cast(T, self._known[find])

    @property
    def path(self) -> Path:
        """The one file that this log is."""
        assert self.name is not None, "a table in memory has no file"
        return Path(self.name)

    @property
    def suffix(self) -> str:
        """The last part of the file's name in lower case, with ``.gz`` where it has that: ``.csv.gz``; or nothing. Of a
        zip, that of the file in it, or where that says nothing, what stands before ``.zip``."""
        if self.name is None:
            return ""
        return self.once(_suffix_in_zip) if self.zipped else suffix_of(self.path)

    @property
    def format(self) -> str:
        """The suffix without ``.gz``."""
        return self.suffix.removesuffix(".gz")

    @property
    def zipped(self) -> bool:
        """Whether this is a zip with the log in it."""
        return self.name is not None and self.name.lower().endswith(".zip") and self.is_file

    @property
    def packed(self) -> bool:
        """Whether the file says that it is compressed."""
        return self.zipped or self.suffix.endswith(".gz")

    @property
    def is_file(self) -> bool:
        """Whether this is one ordinary file."""
        try:
            return self.name is not None and self.path.is_file()
        except (OSError, ValueError):
            return False

    @property
    def size(self) -> int:
        """The bytes of the file as it lies there; 0 where that is not to be had."""
        try:
            return self.path.stat().st_size
        except (OSError, ValueError):
            return 0

    def files(self) -> tuple[Source, ...]:
        """Return the files of this log, in the order of their names: itself, or all that its name stands for."""
        return self.once(_files) if self.several else (self,)

    @property
    def several(self) -> bool:
        """Whether the name stands for several files, by what it is: a folder, or a pattern and no file."""
        if self.name is None:
            return False
        try:
            return self.path.is_dir() or (glob.has_magic(self.name) and not self.path.exists())
        except (OSError, ValueError):
            return False

    def begin(self, size: int) -> bytes:
        """Return the first bytes of the file, unpacked. The next :meth:`stream` begins with them again."""
        stream = open_input(self.path, limit=self.limit)
        try:
            begun = stream.read(size)
        except BaseException:
            stream.close()
            raise
        # Who asks for the beginning alone lets go of the file together with this source.
        self._begun = begun, stream, weakref.finalize(self, stream.close)
        return begun

    def content(self, most: int) -> bytes:
        """Return all bytes of the file, unpacked, where they are no more than ``most``; for formats that need them."""
        with self.stream() as stream:
            found = stream.read(most + 1)
        if len(found) > most:
            packed = " unpacked" if self.packed else ""
            raise InputError("format-read-whole-over", path=self.path, packed=packed, most=most >> 20)
        return found

    def stream(self) -> BinaryIO:
        """Return the bytes of the file from their start, unpacked, for the caller to close.

        The file is opened for it, unless :meth:`begin` did so; who needs a second pass opens it a second time.
        """
        if self._begun is None:
            return open_input(self.path, limit=self.limit)
        begun, stream, closing = self._begun
        self._begun = None
        closing.detach()
        return resumed(begun, stream)


def _name_of(given: object) -> str | None:
    name = os.fspath(given) if isinstance(given, str | os.PathLike) else None
    return name if isinstance(name, str) else None


def _files(source: Source) -> tuple[Source, ...]:
    if source.path.is_dir():
        try:
            inside = [path for path in source.path.rglob("*") if path.is_file()]
        except OSError as error:
            raise InputError("file-folder-cannot-read", path=source.name, reason=reason(error)) from error
        found = [path for path in inside if not _hidden(path.relative_to(source.path))]
        if not found:
            raise InputError("no-file-folder", path=source.name)
    else:
        matches = [Path(match) for match in glob.glob(str(source.name), recursive=True)]  # noqa: PTH207
        found = [path for path in matches if not path.is_dir()]
        if not found:
            raise InputError("no-file-matches-pattern", path=source.name)
    return tuple(Source(path, means=source.means, limit=source.limit, layout=source.layout) for path in sorted(found))


def _suffix_in_zip(source: Source) -> str:
    inside = suffix_of(Path(zipped(source.path)))
    before = suffix_of(Path(source.path.name[: -len(".zip")]))
    return inside if inside not in ("", ".txt", ".dat") else before or inside


def _hidden(path: Path) -> bool:
    """Whether a file is not data, by the custom of those who write such folders: ``_SUCCESS``, ``.part``."""
    return any(part.startswith((".", "_")) for part in path.parts)


def suffix_of(path: Path) -> str:
    """Return the last part of a file's name in lower case, with ``.gz`` where it has that; or nothing."""
    name = path.name.lower()
    packed = ".gz" if name.endswith(".gz") else ""
    last = Path(name.removesuffix(packed)).suffix
    return last + packed if last else ""


def is_ibis(given: object) -> bool:
    """Whether this is a table of Ibis, told by its module so that Ibis is not imported for it."""
    return any(kind.__module__.startswith("ibis.expr.types") for kind in type(given).__mro__)
