"""Input files as byte streams: plain, gzip (told by its first bytes) or the one file in a zip, with a limit on what may
come out."""

from __future__ import annotations

import io
import os
import stat
import zipfile
import zlib
from pathlib import Path
from typing import BinaryIO, cast

from veilog._files import opened_pipe, reason
from veilog.errors import InputError

__all__ = [
    "DEFAULT_LIMIT",
    "MAX_VALUE",
    "check_stored",
    "check_unpacked",
    "consumed_fraction",
    "open_input",
    "resumed",
    "zipped",
]

DEFAULT_LIMIT = 64 << 30
"""Bytes that may come out of a compressed file unless the caller says otherwise: 64 GiB."""

MAX_VALUE = 16 << 20
"""Bytes that one value, name or comment in a file of text may have: 16 MiB. What is longer is refused as it is met, so
that a small file that unpacks to one huge value costs neither memory nor minutes."""

# Real logs compress 10 to 60 times, deflate can at most 1032 times. Past the first GiB a larger ratio is a bomb.
_RATIO_FROM = 1 << 30
_RATIO = 250

_MAGIC = b"\x1f\x8b"
_COMPRESSED_BLOCK = 1 << 17
_BUFFER = 1 << 18


def open_input(path: Path, *, limit: int | None = DEFAULT_LIMIT) -> BinaryIO:
    """Open a plain or gzip-compressed file, or the one file in a zip, for reading from the start to the end.

    Raises :class:`InputError` for a file that is missing, a directory, unreadable, called ``.gz`` but not gzip, a zip
    with several files, and, while reading, for compressed data that are truncated, corrupt, followed by something else,
    or that yield more than ``limit`` bytes (``None``: any number). With the default limit a file that unpacks to more
    than 1 GiB and to more than 250 times its size is refused as well.
    """
    path = Path(path)
    if path.suffix.lower() == ".zip":
        file: BinaryIO = cast(BinaryIO, io.BufferedReader(_Unzip(path, limit), _BUFFER))
    else:
        file = _opened(path)
    try:
        magic = cast(io.BufferedReader, file).peek(2)[:2]
    except InputError:
        file.close()
        raise
    except OSError as error:
        file.close()
        raise InputError("file-cannot-read", path=path, reason=reason(error)) from error
    if magic == _MAGIC:
        return cast(BinaryIO, io.BufferedReader(_Gunzip(file, path, limit), _BUFFER))
    if path.suffix.lower() == ".gz":
        file.close()
        raise InputError("file-empty" if not magic else "file-called-gz-but", path=path)
    return file


def check_stored(path: Path) -> None:
    """Raise :class:`InputError` for what is empty or no regular file, where a format is read from several places."""
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise InputError("format-not-read-pipe", path=path)
    if found.st_size == 0:
        raise InputError("file-empty", path=path)


def _opened(path: Path) -> BinaryIO:
    try:
        if stat.S_ISFIFO(path.stat().st_mode):
            begun, pipe = opened_pipe(path)
            return resumed(begun, pipe)
        return cast(BinaryIO, io.BufferedReader(path.open("rb", buffering=0), _BUFFER))
    except FileNotFoundError:
        raise InputError("no-file", path=path) from None
    except IsADirectoryError:
        raise InputError("directory-not-file-3", path=path) from None
    except (OSError, ValueError) as error:
        raise InputError("file-cannot-read", path=path, reason=reason(error)) from error


def zipped(path: Path) -> str:
    """Return the name of the one file in a zip; :class:`InputError` where there is none, or several, which it lists."""
    file, _, member = _member(path)
    file.close()
    return member.filename


def _member(path: Path) -> tuple[BinaryIO, zipfile.ZipFile, zipfile.ZipInfo]:
    """The file, for the caller to close, the zip in it, and the one file in that."""
    file = _opened(path)
    try:
        archive = zipfile.ZipFile(file)
        found = [member for member in archive.infolist() if not member.is_dir() and not _beside(member.filename)]
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        file.close()
        raise InputError("zip-cannot-read", path=path, reason=error) from error
    if len(found) == 1 and not found[0].flag_bits & 1:
        return file, archive, found[0]
    file.close()
    if not found:
        raise InputError("no-file-zip", path=path)
    if len(found) == 1:
        raise InputError("file-zip-encrypted", path=path)
    names = ", ".join(repr(member.filename) for member in found[:10]) + (", ..." if len(found) > 10 else "")
    raise InputError("files-zip", path=path, number=len(found), names=names)


def _beside(name: str) -> bool:
    """Whether a file in a zip is what systems put beside data, and no data."""
    *folders, last = name.split("/")
    return "__MACOSX" in folders or last in (".DS_Store", "Thumbs.db", "desktop.ini")


def check_unpacked(produced: int, packed: int, limit: int | None, path: Path) -> None:
    """Raise :class:`InputError` where so many bytes come out of so few packed ones that the file must be refused."""
    advice = "If you trust the file, allow more with --limit BYTES, or unpack it first."
    if limit is not None and produced > limit:
        raise InputError("file-unpacks-more-bytes", path=path, advice=advice, limit=limit)
    if limit == DEFAULT_LIMIT and produced > _RATIO_FROM and produced > _RATIO * max(packed, 1):
        raise InputError("file-unpacks-more-times", path=path, advice=advice, ratio=_RATIO)


def resumed(begun: bytes, rest: BinaryIO) -> BinaryIO:
    """Return a stream of these first bytes and what follows them, so that a file whose start was read goes on."""
    return cast(BinaryIO, io.BufferedReader(_Resumed(begun, rest), _BUFFER))


def consumed_fraction(stream: BinaryIO) -> float:
    """How much of the file behind a stream from :func:`open_input` has been read, from 0 to 1 (compressed bytes)."""
    raw = getattr(stream, "raw", None)
    if isinstance(raw, _Resumed):
        return consumed_fraction(raw.rest)
    try:
        if isinstance(raw, _Gunzip | _Unzip):
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


class _Unzip(io.RawIOBase):
    """The one file in a zip as a raw stream; every fault is an InputError that names the zip.

    No more bytes come out of it than the zip says that it has, which is checked against the limit as they come.
    """

    def __init__(self, path: Path, limit: int | None) -> None:
        self._path = path
        self._limit = limit
        self._file, archive, member = _member(path)
        self._packed = member.compress_size
        self.size = member.file_size
        self.consumed = 0
        try:
            self._stream = archive.open(member)
        except (zipfile.BadZipFile, NotImplementedError, OSError, RuntimeError) as error:
            self.close()
            raise InputError("zip-cannot-read-2", path=path, reason=error) from error

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self._file.close()
        super().close()

    def readinto(self, buffer: object) -> int:
        view = memoryview(buffer).cast("B")  # type: ignore[arg-type]
        try:
            data = self._stream.read(len(view))
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError) as error:
            raise InputError("zip-damaged", path=self._path, reason=error) from error
        view[: len(data)] = data
        self.consumed += len(data)
        check_unpacked(self.consumed, self._packed, self._limit, self._path)
        return len(data)


class _Gunzip(io.RawIOBase):
    """A gzip file of one or more members as a raw stream; every fault is an InputError that names the file."""

    def __init__(self, file: BinaryIO, path: Path, limit: int | None) -> None:
        self._file = file
        self._path = path
        self._limit = limit
        self._member = zlib.decompressobj(wbits=31)
        self._pending = b""
        self._ended = False
        self._produced = 0
        self.consumed = 0
        try:
            self.size = os.fstat(file.fileno()).st_size
        except (OSError, ValueError):
            self.size = 0

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
        """Up to ``size`` further bytes, empty only at a proper end."""
        while not self._ended:
            if self._member.eof and not self._next_member():
                break
            if not self._pending:
                self._pending = self._read()
            starved = not self._pending
            try:
                data = self._member.decompress(self._pending, size)
            except zlib.error as error:
                raise InputError("gzip-data-corrupt", path=self._path, reason=error) from error
            self._pending = self._member.unused_data if self._member.eof else self._member.unconsumed_tail
            if data:
                return data
            if starved and not self._member.eof:
                raise InputError("gzip-data-truncated-file", path=self._path)
        return b""

    def _next_member(self) -> bool:
        """Go on to the next gzip member; zero bytes may pad the end, anything else would be lost, so it is refused."""
        while True:
            self._pending = self._pending.lstrip(b"\0") or self._read()
            if not self._pending:
                self._ended = True
                return False
            if self._pending.strip(b"\0"):
                break
        self._pending = self._pending.lstrip(b"\0")
        if len(self._pending) < 2:
            self._pending += self._read()
        if self._pending[:2] != _MAGIC:
            raise InputError("gzip-data-followed-something", path=self._path)
        self._member = zlib.decompressobj(wbits=31)
        return True

    def _read(self) -> bytes:
        try:
            block = self._file.read(_COMPRESSED_BLOCK)
        except OSError as error:
            raise InputError("file-cannot-read", path=self._path, reason=reason(error)) from error
        self.consumed += len(block)
        return block
