"""Input files as byte streams: plain or gzip, told apart by their first bytes, with a limit on what may come out."""

from __future__ import annotations

import io
import os
import zlib
from pathlib import Path
from typing import BinaryIO, cast

from veilog._files import reason
from veilog.errors import InputError

__all__ = ["DEFAULT_LIMIT", "MAX_VALUE", "consumed_fraction", "open_input", "resumed"]

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
    """Open a plain or gzip-compressed file for reading from the start to the end, whatever its suffix.

    Raises :class:`InputError` for a file that is missing, a directory, unreadable, called ``.gz`` but not gzip, and,
    while reading, for a gzip stream that is truncated, corrupt, followed by something else, or that yields more than
    ``limit`` bytes (``None``: any number). With the default limit a file that unpacks to more than 1 GiB and to more
    than 250 times its size is refused as well.
    """
    path = Path(path)
    try:
        file = io.BufferedReader(path.open("rb", buffering=0), _BUFFER)
    except FileNotFoundError:
        raise InputError("There is no such file.", path=path) from None
    except IsADirectoryError:
        raise InputError("This is a directory, not a file.", path=path) from None
    except (OSError, ValueError) as error:
        raise InputError(f"The file cannot be read: {reason(error)}.", path=path) from error
    try:
        magic = file.peek(2)[:2]
    except OSError as error:
        file.close()
        raise InputError(f"The file cannot be read: {reason(error)}.", path=path) from error
    if magic == _MAGIC:
        return cast(BinaryIO, io.BufferedReader(_Gunzip(file, path, limit), _BUFFER))
    if path.suffix.lower() == ".gz":
        file.close()
        raise InputError(
            "The file is empty." if not magic else "The file is called .gz but is not compressed with gzip.",
            path=path,
            advice=None if not magic else "Take the suffix .gz off if it is plain, or compress it.",
        )
    return file


def resumed(begun: bytes, rest: BinaryIO) -> BinaryIO:
    """Return a stream of these first bytes and what follows them, so that a file whose start was read goes on."""
    return cast(BinaryIO, io.BufferedReader(_Resumed(begun, rest), _BUFFER))


def consumed_fraction(stream: BinaryIO) -> float:
    """How much of the file behind a stream from :func:`open_input` has been read, from 0 to 1 (compressed bytes)."""
    raw = getattr(stream, "raw", None)
    if isinstance(raw, _Resumed):
        return consumed_fraction(raw.rest)
    try:
        if isinstance(raw, _Gunzip):
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
        self._guard()
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
                raise InputError(f"The gzip data are corrupt ({error}).", path=self._path) from error
            self._pending = self._member.unused_data if self._member.eof else self._member.unconsumed_tail
            if data:
                return data
            if starved and not self._member.eof:
                raise InputError(
                    "The gzip data are truncated: the file ends too early.",
                    path=self._path,
                    advice="Fetch or export the file again.",
                )
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
            raise InputError("The gzip data are followed by something that is not gzip.", path=self._path)
        self._member = zlib.decompressobj(wbits=31)
        return True

    def _read(self) -> bytes:
        try:
            block = self._file.read(_COMPRESSED_BLOCK)
        except OSError as error:
            raise InputError(f"The file cannot be read: {reason(error)}.", path=self._path) from error
        self.consumed += len(block)
        return block

    def _guard(self) -> None:
        advice = "If you trust the file, allow more with --limit BYTES, or unpack it first."
        if self._limit is not None and self._produced > self._limit:
            raise InputError(f"The file unpacks to more than {self._limit} bytes.", path=self._path, advice=advice)
        if (
            self._limit == DEFAULT_LIMIT
            and self._produced > _RATIO_FROM
            and self._produced > _RATIO * max(self.consumed, 1)
        ):
            raise InputError(
                f"The file unpacks to more than {_RATIO} times its size, as bombs do.", path=self._path, advice=advice
            )
