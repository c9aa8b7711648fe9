"""The bytes of a delimited text as UTF-8, looked at while others read them: encoding, quotes, NUL."""

from __future__ import annotations

import codecs
import io
import re
import threading
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from veilog.errors import InputError
from veilog.logs.input.streams import MAX_VALUE
from veilog.logs.tables.decoding import ENDS, FALLBACK, VALUE, as_utf8
from veilog.logs.tables.dialects import Dialect

__all__ = ["BLOCK", "Watched"]

BLOCK = 4 << 20
"""Bytes read at once, and of a row at most."""


class Watched(io.RawIOBase):
    """The bytes of a file as UTF-8, watched: encoding, quotes, NUL. At a fault the stream ends and ``error`` says why.
    ``foreign`` values were no UTF-8 before, the first of them on ``foreign_line``.

    The error is kept instead of raised because the reader above runs in threads of its own; they read ahead, also while
    the rest is drained, so one reads at a time.
    """

    def __init__(self, source: BinaryIO, dialect: Dialect, path: Path) -> None:
        self.error: Exception | None = None
        self._one_at_a_time = threading.Lock()
        self._source = source
        self._path = path
        self.foreign = 0
        self.foreign_line = 1
        self._encoding = dialect.encoding
        self._decoder = None if dialect.encoding == "utf-8" else codecs.getincrementaldecoder(dialect.encoding)()
        self._held = b""
        self._allowed = np.zeros(256, dtype=np.bool_)
        self._allowed[[ord(dialect.delimiter), 10, 13, 34]] = True
        self._started = False
        self._titles = dialect.line - 1
        self._line = 1
        self._inside = 0
        self._opened = 1
        self._last = 10
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer: less is read at the end alone, as the reader takes what it gets for a block of whole rows."""
        view, size = memoryview(buffer).cast("B"), 0
        with self._one_at_a_time:
            while size < len(view) and (self._rest or self._more(len(view) - size)):
                part = self._rest[: len(view) - size]
                view[size : size + len(part)] = part
                size, self._rest = size + len(part), self._rest[len(part) :]
        return size

    def _more(self, size: int) -> bool:
        """Read on, about so many bytes; whether there were any."""
        if self.error is None:
            try:
                self._rest = self._next(max(size, 1 << 20))
            except InputError as error:
                self.error = error
        return bool(self._rest)

    def _next(self, size: int) -> bytes:
        while True:
            raw = self._source.read(size)
            data = self._decode(raw if self._started else raw.removeprefix(codecs.BOM_UTF8))
            self._started = True
            if self._titles:
                data = self._below_titles(data)
            if data or not raw:
                self._watch(data)
                return data

    def _below_titles(self, data: bytes) -> bytes:
        """The bytes after the lines that stand before the header."""
        while self._titles and (end := data.find(b"\n")) >= 0:
            data = data[end + 1 :]
            self._titles -= 1
            self._line += 1
        return b"" if self._titles else data

    def _decode(self, raw: bytes) -> bytes:
        if self._decoder is None:
            return self._by_value(raw)
        try:
            text = self._decoder.decode(raw, final=not raw)
        except UnicodeDecodeError as error:
            raise InputError(
                "bytes-cannot-read",
                path=self._path,
                line=self._line,
                hex=bytes(error.object[error.start : error.end]).hex(),
                encoding=self._encoding,
            ) from None
        return text.encode("utf-8", "surrogatepass")

    def _by_value(self, raw: bytes) -> bytes:
        """The bytes up to the last whole value; values that are no UTF-8 are written anew."""
        if raw.isascii() and not self._held:
            return raw
        data = self._held + raw
        if raw:
            cut = max(data.rfind(end) for end in ENDS) + 1
            data, self._held = data[:cut], data[cut:]
        else:
            self._held = b""
        if len(self._held) > MAX_VALUE:
            raise InputError("value-longer-mb", path=self._path, line=self._line, max_value=MAX_VALUE >> 20)
        try:
            data.decode("utf-8")
        except UnicodeDecodeError:
            return VALUE.sub(lambda match: self._one(match, data), data)
        return data

    def _one(self, match: re.Match[bytes], data: bytes) -> bytes:
        line = self._line
        try:
            value, foreign = as_utf8(match[0])
        except UnicodeDecodeError as error:
            line += data.count(b"\n", 0, match.start())
            raise InputError(
                "byte-0x-read-neither", path=self._path, line=line, object=error.object[error.start], fallback=FALLBACK
            ) from None
        if foreign:
            if not self.foreign:
                self.foreign_line = line + data.count(b"\n", 0, match.start())
            self.foreign += 1
        return value

    def _watch(self, data: bytes) -> None:
        if b"\0" in data:
            line = self._line + data[: data.index(b"\0")].count(b"\n")
            raise InputError("nul-byte-not-text", path=self._path, line=line)
        if data and (self._inside or self._last == 34 or b'"' in data):
            self._watch_quotes(data)
        self._line += data.count(b"\n")
        self._last = data[-1] if data else self._last

    def _watch_quotes(self, data: bytes) -> None:
        """Quotes open and close in turn: before an opening and after a closing one only certain bytes may stand."""
        padded = np.frombuffer(bytes([self._last]) + data, dtype=np.uint8)
        quotes = np.flatnonzero(padded[1:] == 34) + 1
        opening = quotes[self._inside :: 2]
        closing = quotes[1 - self._inside :: 2]
        if self._last == 34 and not self._inside:
            closing = np.concatenate(([0], closing))
        wrong_before = opening[~self._allowed[padded[opening - 1]]]
        closing = closing[closing + 1 < len(padded)]
        wrong_after = closing[~self._allowed[padded[closing + 1]]]
        wrong = np.concatenate((wrong_before, wrong_after))
        if len(wrong):
            line = self._line + int((padded[1 : int(wrong.min())] == 10).sum())
            raise InputError("quote-stands-middle-field", path=self._path, line=line)
        if len(quotes):
            self._inside = (self._inside + len(quotes)) % 2
            self._opened = self._line + int((padded[1 : int(quotes[-1])] == 10).sum())

    def drain(self, most: int | None = None) -> None:
        """Look at (so much of) what is left, and whether it ends inside a quote: that explains all other trouble."""
        buffer = bytearray(BLOCK)
        size = 0
        while got := self.readinto(buffer):
            size += got
            if most is not None and size >= most:
                return
        if self._inside and self.error is None:
            self.error = InputError("quote-opened-never-closed", path=self._path, line=self._opened)
