"""Source of a log: files as one table, or a table of an engine or in memory.

Its file is opened once: the bytes that were read to find its columns are handed on with the first stream. Files are
streams of bytes: plain, gzip (by its first bytes) or the one file in a zip, with a limit on the unpacked bytes.
"""

from __future__ import annotations

import contextlib
import glob
import io
import os
import re
import stat
import weakref
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias, TypedDict, TypeVar, cast

from veilog._files import opened_pipe, reason
from veilog.errors import InputError, ParameterError

if TYPE_CHECKING:
    import zipfile

    import ibis.expr.types as ir
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    from pm4py.objects.log.obj import EventLog as Traces

    from veilog.logs.findings import Policy
    from veilog.logs.input.activity_mapping import ActivityMapping, MapLike
    from veilog.logs.tables.cells import DayOrder

DEFAULT_LIMIT = 64 << 30
"""Default limit of bytes from a compressed file: 64 GiB."""

MAX_VALUE = 16 << 20
"""Most bytes of one value, name or comment in a file of text: 16 MiB.
A longer one is refused as it is met, so a small file that unpacks to one huge value costs neither memory nor
minutes."""

# Real logs compress 10 to 60 times, deflate can at most 1032 times. Past the first GiB a larger ratio is a bomb.
_RATIO_FROM = 1 << 30
_RATIO = 250

GZIP_MAGIC = b"\x1f\x8b"
_COMPRESSED_BLOCK = 1 << 17
_BUFFER = 1 << 18


def open_input(path: Path, *, limit: int | None = DEFAULT_LIMIT) -> BinaryIO:
    """Open a plain or gzip-compressed file, or the one file in a zip, for reading.

    It is read from the start to the end. Raises :class:`InputError` for a file that is missing, a directory,
    unreadable, called ``.gz`` but not gzip, and for a zip with several files. While reading, it does so for compressed
    data that are truncated, corrupt, followed by something else, or that yield more than ``limit`` bytes (``None``: any
    number). With the default limit, a file that unpacks to more than 1 GiB and to more than 250 times its size is
    refused as well.
    """
    path = Path(path)
    if path.suffix.lower() == ".zip":
        file: BinaryIO = cast(BinaryIO, io.BufferedReader(_Unzip(path, limit), _BUFFER))
    else:
        file = _open_file(path)
    try:
        magic = cast(io.BufferedReader, file).peek(2)[:2]
    except InputError:
        file.close()
        raise
    except OSError as error:
        file.close()
        raise InputError("file-not-readable", path=path, reason=reason(error)) from error
    if magic == GZIP_MAGIC:
        return cast(BinaryIO, io.BufferedReader(_Gunzip(file, path, limit), _BUFFER))
    if path.suffix.lower() == ".gz":
        file.close()
        raise InputError("file-empty" if not magic else "gzip-not-compressed", path=path)
    return file


def check_stored(path: Path) -> None:
    """Refuse an empty or irregular file for a format that is read from several places."""
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise InputError("format-not-from-pipe", path=path)
    if found.st_size == 0:
        raise InputError("file-empty", path=path)


def _open_file(path: Path) -> BinaryIO:
    try:
        if stat.S_ISFIFO(path.stat().st_mode):
            begun, pipe = opened_pipe(path)
            return resume(begun, pipe)
        return cast(BinaryIO, io.BufferedReader(path.open("rb", buffering=0), _BUFFER))
    except FileNotFoundError:
        raise InputError("file-missing", path=path) from None
    except IsADirectoryError:
        raise InputError("stream-is-directory", path=path) from None
    except (OSError, ValueError) as error:
        raise InputError("file-not-readable", path=path, reason=reason(error)) from error


def zipped(path: Path) -> str:
    """Return the name of the one file in a zip; an InputError lists several."""
    file, _, member = _member(path)
    file.close()
    return member.filename


def _member(path: Path) -> tuple[BinaryIO, zipfile.ZipFile, zipfile.ZipInfo]:
    """Return the open file, the zip in it, and the one file in that.
    The caller closes the file."""
    import zipfile  # here, as few logs are in one

    file = _open_file(path)
    try:
        archive = zipfile.ZipFile(file)
        found = [
            member for member in archive.infolist() if not member.is_dir() and not _is_system_file(member.filename)
        ]
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        file.close()
        raise InputError("zip-not-readable", path=path, reason=error) from error
    if len(found) == 1 and not found[0].flag_bits & 1:
        return file, archive, found[0]
    file.close()
    if not found:
        raise InputError("zip-without-file", path=path)
    if len(found) == 1:
        raise InputError("file-zip-encrypted", path=path)
    names = ", ".join(repr(member.filename) for member in found[:10]) + (", ..." if len(found) > 10 else "")
    raise InputError("zip-with-several-files", path=path, number=len(found), names=names)


def _is_system_file(name: str) -> bool:
    """Return True if a file in a zip is a system's by-product and no data."""
    *folders, last = name.split("/")
    return "__MACOSX" in folders or last in (".DS_Store", "Thumbs.db", "desktop.ini")


def check_unpacked(produced: int, packed: int, limit: int | None, path: Path) -> None:
    """Refuse a file with so many bytes out of so few packed ones."""
    if limit is not None and produced > limit:
        raise InputError("file-unpacked-too-large", path=path, limit=limit)
    if limit == DEFAULT_LIMIT and produced > _RATIO_FROM and produced > _RATIO * max(packed, 1):
        raise InputError("file-unpacks-like-bomb", path=path, ratio=_RATIO)


def resume(begun: bytes, rest: BinaryIO) -> BinaryIO:
    """Return a stream of these first bytes and then the rest of a file."""
    return cast(BinaryIO, io.BufferedReader(_Resumed(begun, rest), _BUFFER))


def consumed_fraction(stream: BinaryIO) -> float:
    """Return the read share of the file behind a stream of :func:`open_input`.

    It counts compressed bytes.
    """
    raw = getattr(stream, "raw", None)
    if isinstance(raw, _Resumed):
        return consumed_fraction(raw.rest)
    try:
        if isinstance(raw, _Unpacked):
            position, size = raw.consumed, raw.size
        else:
            position, size = stream.tell(), os.fstat(stream.fileno()).st_size
    except (OSError, ValueError):
        return 0.0
    return min(1.0, position / size) if size else 0.0


class _Resumed(io.RawIOBase):
    def __init__(self, begun: bytes, rest: BinaryIO) -> None:
        self._begun = begun
        self.rest = rest

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self.rest.close()
        super().close()

    def readinto(self, buffer: object) -> int:
        if not self._begun:
            return cast(io.BufferedReader, self.rest).readinto(buffer)  # type: ignore[arg-type]
        view = memoryview(buffer).cast("B")  # type: ignore[arg-type]
        data, self._begun = self._begun[: len(view)], self._begun[len(view) :]
        view[: len(data)] = data
        return len(data)


class _Unpacked(io.RawIOBase):
    """Raw stream of the unpacked bytes of a file, checked against the limit."""

    def __init__(self, file: BinaryIO, path: Path, limit: int | None) -> None:
        self._file, self._path, self._limit = file, path, limit
        self._produced = 0
        self.consumed = self.size = 0
        """Packed bytes that were read, of how many."""

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self._file.close()
        super().close()

    def readinto(self, buffer: object) -> int:
        view = memoryview(buffer).cast("B")  # type: ignore[arg-type]
        data = self._next(len(view)) if len(view) else b""
        view[: len(data)] = data
        self._produced += len(data)
        check_unpacked(self._produced, self.consumed, self._limit, self._path)
        return len(data)

    def _next(self, size: int) -> bytes:
        """Return up to ``size`` further bytes, none at a proper end; raise InputErrors."""
        raise NotImplementedError


class _Unzip(_Unpacked):
    """The one file in a zip.
    No more bytes come out of it than the zip declares."""

    def __init__(self, path: Path, limit: int | None) -> None:
        import zipfile

        file, archive, self._member = _member(path)
        super().__init__(file, path, limit)
        self.size = self._member.compress_size
        try:
            self._stream = archive.open(self._member)
        except (zipfile.BadZipFile, NotImplementedError, OSError, RuntimeError) as error:
            self.close()
            raise InputError("zip-member-not-readable", path=path, reason=error) from error

    def _next(self, size: int) -> bytes:
        import zipfile

        try:
            data = self._stream.read(size)
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError) as error:
            raise InputError("zip-damaged", path=self._path, reason=error) from error
        self.consumed = self.size * (self._produced + len(data)) // max(self._member.file_size, 1)
        return data


class _Gunzip(_Unpacked):
    """A gzip file of one or more members."""

    def __init__(self, file: BinaryIO, path: Path, limit: int | None) -> None:
        super().__init__(file, path, limit)
        self._member = zlib.decompressobj(wbits=31)
        self._pending = b""
        self._ended = False
        with contextlib.suppress(OSError, ValueError):
            self.size = os.fstat(file.fileno()).st_size

    def _next(self, size: int) -> bytes:
        while not self._ended:
            if self._member.eof and not self._next_member():
                break
            if not self._pending:
                self._pending = self._read_block()
            starved = not self._pending
            try:
                data = self._member.decompress(self._pending, size)
            except zlib.error as error:
                raise InputError("gzip-corrupt", path=self._path, reason=error) from error
            self._pending = self._member.unused_data if self._member.eof else self._member.unconsumed_tail
            if data:
                return data
            if starved and not self._member.eof:
                raise InputError("gzip-truncated", path=self._path)
        return b""

    def _next_member(self) -> bool:
        """Go on to the next gzip member, and refuse trailing data.
        Zero bytes may pad the end; anything else would be lost."""
        while True:
            self._pending = self._pending.lstrip(b"\0") or self._read_block()
            if not self._pending:
                self._ended = True
                return False
            if self._pending.strip(b"\0"):
                break
        self._pending = self._pending.lstrip(b"\0")
        if len(self._pending) < 2:
            self._pending += self._read_block()
        if self._pending[:2] != GZIP_MAGIC:
            raise InputError("gzip-trailing-data", path=self._path)
        self._member = zlib.decompressobj(wbits=31)
        return True

    def _read_block(self) -> bytes:
        try:
            block = self._file.read(_COMPRESSED_BLOCK)
        except OSError as error:
            raise InputError("file-not-readable", path=self._path, reason=reason(error)) from error
        self.consumed += len(block)
        return block


Given: TypeAlias = "str | os.PathLike[str] | pa.Table | pd.DataFrame | pl.DataFrame | pl.LazyFrame | Traces | ir.Table"
"""Types of a log that a user may give."""
Progress = Callable[[str, float | None], None]
T = TypeVar("T")


_MEMORY = re.compile(
    r"\s*(?=[0-9.]*[1-9])[0-9]+(\.[0-9]+)?\s*(%|[kmgt]?i?b|[kmgt]|([kmgt]|kilo|mega|giga|tera)?bytes?)\s*",
    re.IGNORECASE,
)


def silent(text: str, fraction: float | None) -> None:
    """Report no progress."""


_TIME_FORMATS: dict[str, DayOrder] = {"dd/mm/yyyy": "day first", "mm/dd/yyyy": "month first"}


@dataclass(frozen=True)
class ReadOptions:
    """Declarations of how a log is read, so that its values need not decide."""

    case: str | None = None
    """Column of the case's name, and so on; a date and a time in two columns have a ``+`` between."""
    activity: str | None = None
    timestamp: str | None = None
    start: str | None = None
    """The column of the start of an event, where the timestamp is its end."""
    lifecycle: str | None = None
    """Transition whose events alone count."""
    classifier: str | None = None
    """The attributes that make an activity, or the name of a classifier of the log."""
    time_format: str | None = None
    """Meaning of ``5/6/2024``: ``dd/mm/yyyy`` or ``mm/dd/yyyy``."""
    decimal: str | None = None
    """Sign before the decimals of a number that is text: a point, unless it is a comma."""
    header: int | None = None
    """Line with the names of the columns, from 1 on; 0 for none; None to look for it."""
    sheet: str | None = None
    """Sheet of a workbook."""
    object_type: str | None = None
    """Object type of an object-centric log; its objects are the cases."""
    index: str | None = None
    """Column that orders events of equal time, for tables that have no order of rows."""
    mapping: ActivityMapping | None = None
    """Group of each activity; None where activities stay as they are."""
    limit: int | None = DEFAULT_LIMIT
    """The bytes that may come out of a compressed file."""
    processes: int = 1
    """Number of processes that may share a large file."""
    engine: str = "duckdb"
    """Engine that groups events into variants; see :func:`veilog.logs.input.loader.engine_of`."""
    memory_limit: str = "1GB"
    """Memory, then threads and folder, of an engine that runs here."""
    threads: int | None = None
    temp_directory: str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        for name in ("case", "activity", "timestamp", "start", "lifecycle", "classifier", "time_format"):
            said = getattr(self, name)
            if said is not None and not isinstance(said, str):
                raise ParameterError("column-name-not-text", parameter=name, name=name, said=said)
        if self.time_format is not None and self.time_format.lower() not in _TIME_FORMATS:
            raise ParameterError("time-format-unknown", parameter="time_format", time_format=self.time_format)
        if self.decimal not in (None, ".", ","):
            raise ParameterError("decimal-sign-unknown", parameter="decimal", decimal=self.decimal)
        for name in ("lifecycle", "classifier"):
            if getattr(self, name) is not None and not getattr(self, name).strip():
                raise ParameterError("column-name-empty", parameter=name, name=name)
        if self.header is not None and self.header < 0:
            raise ParameterError("header-line-missing", parameter="header", header=self.header)
        if not _MEMORY.fullmatch(self.memory_limit):  # also where no engine is started that would refuse it
            raise ParameterError(
                "engine-memory-limit-invalid", parameter="memory_limit", memory_limit=self.memory_limit
            )
        if self.threads is not None and self.threads < 1:
            raise ParameterError("threads-too-few", parameter="threads", threads=self.threads)

    @property
    def day_order(self) -> DayOrder | None:
        return None if self.time_format is None else _TIME_FORMATS[self.time_format.lower()]


DEFAULT_OPTIONS = ReadOptions()


def bytes_of(memory: str) -> int | None:
    """Return the bytes of a size such as ``2GB``; None for a share or anything else."""
    match = re.fullmatch(r"\s*([0-9.]+)\s*([KMGT]?)(I?B|BYTES?)?\s*", memory.upper())
    try:
        return int(float(match[1]) * _UNITS[match[2]]) if match else None
    except ValueError:
        return None


_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


class ReadKeywords(TypedDict, total=False):
    """Options of :func:`veilog.read` for editors and type checkers.

    See :class:`ReadOptions`.
    """

    case: str | None
    activity: str | None
    timestamp: str | None
    start: str | None
    index: str | None
    lifecycle: str | None
    classifier: str | None
    time_format: str | None
    decimal: str | None
    header: int | None
    sheet: str | None
    object_type: str | None
    policies: Mapping[str, Policy] | None
    limit: int | None
    processes: int
    progress: Progress | None
    map: MapLike | None
    level: int
    top: int | None


class EngineKeywords(ReadKeywords, total=False):
    """The same for what an engine groups or keeps: see :func:`veilog.read_variants`."""

    engine: str
    memory_limit: str
    threads: int | None
    temp_directory: str | os.PathLike[str] | None


class Source:
    """One log by its name, and what was found out about it so far."""

    def __init__(self, given: object, options: ReadOptions = DEFAULT_OPTIONS) -> None:
        self.given: Any = given
        self.options = options
        self.name = _name_of(given)
        """Name of a file, of several, or of a table of an engine; None for a table in memory."""
        self._known: dict[Callable[[Source], object], object] = {}
        self._begun: tuple[bytes, BinaryIO, weakref.finalize[..., Any]] | None = None

    def once(self, find: Callable[[Source], T]) -> T:
        """Return the result of ``find`` for this log; it runs once, unless it raises."""
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
        """Last part of the file's name in lower case, such as ``.csv.gz``; or nothing.

        For a zip, it is that of the file in it, or, if that has none, what stands before ``.zip``.
        """
        if self.name is None:
            return ""
        return self.once(_suffix_in_zip) if self.zipped else suffix_of(self.path)

    @property
    def format(self) -> str:
        """The suffix without ``.gz``."""
        return self.suffix.removesuffix(".gz")

    @property
    def zipped(self) -> bool:
        """True if this is a zip with the log in it."""
        return self.name is not None and self.name.lower().endswith(".zip") and self.is_file

    @property
    def packed(self) -> bool:
        """True if the file is compressed by its name."""
        return self.zipped or self.suffix.endswith(".gz")

    @property
    def is_file(self) -> bool:
        """True if this is one ordinary file."""
        try:
            return self.name is not None and self.path.is_file()
        except (OSError, ValueError):
            return False

    @property
    def size(self) -> int:
        """Bytes of the file as it is stored; 0 if unknown."""
        try:
            return self.path.stat().st_size
        except (OSError, ValueError):
            return 0

    def files(self) -> tuple[Source, ...]:
        """Return the files of this log, in the order of their names; itself if it is one."""
        return self.once(_files) if self.several else (self,)

    @property
    def is_elsewhere(self) -> bool:
        """True if the log is no single file: several that are one, or an engine's table."""
        return self.several or self.options.engine != "duckdb"

    @property
    def several(self) -> bool:
        """True if the name stands for several files: a folder, or a pattern and no file."""
        if self.name is None:
            return False
        try:
            return self.path.is_dir() or (glob.has_magic(self.name) and not self.path.exists())
        except (OSError, ValueError):
            return False

    def begin(self, size: int) -> bytes:
        """Return the first bytes of the file, unpacked.

        The next :meth:`stream` begins with them again.
        """
        stream = open_input(self.path, limit=self.options.limit)
        try:
            begun = stream.read(size)
        except BaseException:
            stream.close()
            raise
        # Who asks for the beginning alone lets go of the file together with this source.
        self._begun = begun, stream, weakref.finalize(self, stream.close)
        return begun

    def content(self, most: int) -> bytes:
        """Return all bytes of the file, unpacked; refuse more than ``most``."""
        with self.stream() as stream:
            found = stream.read(most + 1)
        if len(found) > most:
            packed = " unpacked" if self.packed else ""
            raise InputError("format-file-too-large", path=self.path, packed=packed, most=most >> 20)
        return found

    def stream(self) -> BinaryIO:
        """Return the bytes of the file, unpacked, for the caller to close.

        The file is opened for it, unless :meth:`begin` did so; a second pass opens it a second time.
        """
        if self._begun is None:
            return open_input(self.path, limit=self.options.limit)
        begun, stream, closing = self._begun
        self._begun = None
        closing.detach()
        return resume(begun, stream)


def _name_of(given: object) -> str | None:
    name = os.fspath(given) if isinstance(given, str | os.PathLike) else None
    return name if isinstance(name, str) else None


def _files(source: Source) -> tuple[Source, ...]:
    if source.path.is_dir():
        try:
            inside = [path for path in source.path.rglob("*") if path.is_file()]
        except OSError as error:
            raise InputError("folder-file-not-readable", path=source.name, reason=reason(error)) from error
        found = [path for path in inside if not _hidden(path.relative_to(source.path))]
        if not found:
            raise InputError("folder-without-file", path=source.name)
    else:
        matches = [Path(match) for match in glob.glob(str(source.name), recursive=True)]  # noqa: PTH207
        found = [path for path in matches if not path.is_dir()]
        if not found:
            raise InputError("pattern-without-file", path=source.name)
    return tuple(Source(path, source.options) for path in sorted(found))


def _suffix_in_zip(source: Source) -> str:
    inside = suffix_of(Path(zipped(source.path)))
    before = suffix_of(Path(source.path.name[: -len(".zip")]))
    return inside if inside not in ("", ".txt", ".dat") else before or inside


def _hidden(path: Path) -> bool:
    """Return True if a file is not data by custom: ``_SUCCESS``, ``.part``."""
    return any(part.startswith((".", "_")) for part in path.parts)


def suffix_of(path: Path) -> str:
    """Return the last part of a file's name in lower case, with ``.gz``; or nothing."""
    name = path.name.lower()
    packed = ".gz" if name.endswith(".gz") else ""
    last = Path(name.removesuffix(packed)).suffix
    return last + packed if last else ""


def is_ibis(given: object) -> bool:
    """Return True if this is a table of Ibis.

    Its module shows that without an import of Ibis.
    """
    return any(kind.__module__.startswith("ibis.expr.types") for kind in type(given).__mro__)


def engine_name(engine: str) -> str:
    """Return an engine's name in messages: only the kind of a URL, for its password."""
    kind, colon, rest = engine.partition(":")
    return engine if kind == "duckdb" and not rest.startswith("//") else f"{kind}://..." if colon else engine
