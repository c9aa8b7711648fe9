"""Delimited text (CSV, TSV) to Arrow batches of strings, strictly: whatever cannot be told apart safely is refused.

Delimiter and encoding are found out, the rest is RFC 4180: a quote opens a field or closes it, a quote inside is
doubled, every row has as many fields as the header. So no row can vanish inside another one without an error.
"""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
from pyarrow import csv as arrow_csv

from veilog.errors import InputError
from veilog.logs.streams import DEFAULT_LIMIT, consumed_fraction, open_input

__all__ = ["Dialect", "NotUtf8Error", "batches", "line_of_row", "settle", "sniff", "write_rows"]

_SAMPLE = 1 << 16
_BLOCK = 4 << 20
_FALLBACK = "cp1252"


class NotUtf8Error(Exception):
    """Bytes that are no UTF-8 in a file with nothing but ASCII before them: probably an 8-bit encoding."""

    def __init__(self, line: int) -> None:
        self.line = line


@dataclass(frozen=True)
class Dialect:
    """How a file is to be read: its delimiter, its encoding, and its columns (nameless ones by their position)."""

    delimiter: str
    encoding: str
    columns: tuple[str, ...]

    def fallback(self) -> Dialect:
        """The same file in Windows-1252, which holds the letters of Latin-1."""
        return replace(self, encoding=_FALLBACK)


def sniff(
    path: Path, *, limit: int | None = DEFAULT_LIMIT, preferred: Sequence[str] = (",", ";", "\t", "|")
) -> Dialect:
    """Find delimiter, encoding and columns from the first lines."""
    with open_input(path, limit=limit) as stream:
        sample = stream.read(_SAMPLE)
    if not sample:
        raise InputError("The file is empty.", path=path)
    encoding, text = _decode_sample(sample, path)
    whole = len(sample) < _SAMPLE
    lines = text.lstrip("\ufeff").splitlines(keepends=True)
    if not whole and len(lines) > 1:
        lines.pop()
    best: tuple[int, int, list[str]] | None = None
    chosen = preferred[0]
    for delimiter in preferred:
        try:
            rows = [row for row in csv.reader(lines[:50], delimiter=delimiter) if row]
        except csv.Error:
            continue
        if not rows:
            raise InputError("The file is empty.", path=path)
        same = sum(len(row) == len(rows[0]) for row in rows[:20])
        score = (int(len(rows[0]) > 1), same * len(rows[0]), rows[0])
        if best is None or score[:2] > best[:2]:
            best, chosen = score, delimiter
    if best is None:
        raise InputError("The first line is too long for a header.", path=path)
    names = tuple(name if name else f"column {i + 1}" for i, name in enumerate(best[2]))
    return Dialect(chosen, encoding, names)


def _decode_sample(sample: bytes, path: Path) -> tuple[str, str]:
    for mark, encoding in (
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16"),
    ):
        if sample.startswith(mark):
            return encoding, codecs.getincrementaldecoder(encoding)("replace").decode(sample)
    if b"\0" in sample:
        raise InputError("This is not a text file.", path=path, advice="Export the log as CSV, in UTF-8.")
    try:
        return "utf-8", codecs.getincrementaldecoder("utf-8")().decode(sample)
    except UnicodeDecodeError as error:
        ahead = sample[: error.start]
        return "utf-8" if not ahead.isascii() else _FALLBACK, sample.decode(_FALLBACK, "replace")


def batches(
    path: Path,
    dialect: Dialect,
    *,
    columns: Sequence[str] | None = None,
    limit: int | None = DEFAULT_LIMIT,
    progress: Any = None,
) -> Iterator[pa.RecordBatch]:
    """The rows as batches of string columns (these ones, or all): nothing between delimiters is null, ``""`` is text.

    Raises :class:`InputError` with the line, or :class:`NotUtf8Error` when ``dialect.fallback()`` should be tried.
    """
    with open_input(path, limit=limit) as source:
        checked = _Checked(source, dialect, path)
        try:
            reader = arrow_csv.open_csv(
                checked,
                read_options=arrow_csv.ReadOptions(block_size=_BLOCK),
                parse_options=arrow_csv.ParseOptions(delimiter=dialect.delimiter, newlines_in_values=True),
                convert_options=arrow_csv.ConvertOptions(
                    column_types=dict.fromkeys([*dialect.columns, ""], pa.string()),
                    null_values=[""],
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=False,
                ),
            )
            for batch in reader:
                if checked.error is not None:
                    break
                if progress is not None:
                    progress("reading rows", consumed_fraction(source))
                yield _pick(batch, dialect, columns, path)
        except pa.ArrowCancelled:
            raise KeyboardInterrupt from None
        except pa.ArrowException as error:
            checked.drain()
            if checked.error is None:
                _explain(path, dialect, error, limit)
        checked.drain()
        if checked.error is not None:
            raise checked.error


def settle(path: Path, dialect: Dialect, *, limit: int | None = DEFAULT_LIMIT) -> tuple[Dialect, int | None]:
    """Read the file once to see whether its encoding holds; returns the dialect that does, and the line that told."""
    if dialect.encoding != "utf-8":
        return dialect, 1
    with open_input(path, limit=limit) as source:
        checked = _Checked(source, dialect, path)
        checked.drain()
        if isinstance(checked.error, NotUtf8Error):
            return dialect.fallback(), checked.error.line
        return dialect, None


def _pick(batch: pa.RecordBatch, dialect: Dialect, columns: Sequence[str] | None, path: Path) -> pa.RecordBatch:
    if batch.num_columns != len(dialect.columns):
        raise InputError("The header cannot be read safely.", path=path, line=1, advice="Put it on one line.")
    wanted = range(batch.num_columns) if columns is None else [dialect.columns.index(name) for name in columns]
    arrays = [batch.column(i) for i in wanted]
    if any(array.type != pa.string() for array in arrays):
        raise InputError("The header cannot be read safely.", path=path, line=1, advice="Put it on one line.")
    return pa.RecordBatch.from_arrays(arrays, names=[dialect.columns[i] for i in wanted])


def _explain(path: Path, dialect: Dialect, error: Exception, limit: int | None) -> None:
    """Say in the user's words, and with the line, why Arrow gave up."""
    for line, row in _rows(path, dialect, limit):
        if len(row) != len(dialect.columns):
            raise InputError(
                f"This row has {len(row)} fields, the header has {len(dialect.columns)}.",
                path=path,
                line=line,
                advice=f"The delimiter is {dialect.delimiter!r}; a field that contains it needs quotes.",
            ) from error
    if "straddl" in str(error):
        raise InputError(f"A row is longer than {_BLOCK >> 20} MB.", path=path) from error
    if "empty" in str(error).lower():
        return  # a header and nothing else: no batch, and the caller says so
    raise InputError(f"The rows cannot be read ({str(error).splitlines()[0]}).", path=path) from error


def line_of_row(path: Path, dialect: Dialect, row: int, *, limit: int | None = DEFAULT_LIMIT) -> int | None:
    """The line on which a row (0 is the first after the header) starts."""
    for number, (line, _) in enumerate(_rows(path, dialect, limit)):
        if number == row + 1:
            return line
    return None


def _rows(path: Path, dialect: Dialect, limit: int | None) -> Iterator[tuple[int, list[str]]]:
    """The rows one by one with their lines; slow, for explaining only. Ends early where even this reader is lost."""
    with open_input(path, limit=limit) as source:
        checked = io.BufferedReader(_Checked(source, dialect, path))
        reader = csv.reader(io.TextIOWrapper(checked, encoding="utf-8", newline=""), delimiter=dialect.delimiter)
        line = 1
        try:
            for row in reader:
                if row:
                    yield line, row
                line = reader.line_num + 1
        except csv.Error:
            return


class _Checked(io.RawIOBase):
    """The bytes of a file as UTF-8, watched: encoding, quotes, NUL. At a fault the stream ends and ``error`` says why.

    The error is kept instead of raised because the reader above runs in threads of its own.
    """

    def __init__(self, source: BinaryIO, dialect: Dialect, path: Path) -> None:
        self.error: Exception | None = None
        self._source = source
        self._path = path
        self._encoding = dialect.encoding
        self._decoder = codecs.getincrementaldecoder(dialect.encoding)()
        self._allowed = np.zeros(256, dtype=np.bool_)
        self._allowed[[ord(dialect.delimiter), 10, 13, 34]] = True
        self._started = False
        self._ascii = True
        self._line = 1
        self._inside = 0
        self._opened = 1
        self._last = 10
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        if not self._rest and self.error is None:
            try:
                self._rest = self._next(max(len(view), 1 << 16))
            except (InputError, NotUtf8Error) as error:
                self.error = error
        size = min(len(view), len(self._rest))
        view[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size

    def _next(self, size: int) -> bytes:
        while True:
            raw = self._source.read(size)
            data = self._decode(raw)
            if data and not self._started:
                self._started = True
                data = data.removeprefix(codecs.BOM_UTF8)
            if data or not raw:
                self._watch(data)
                return data

    def _decode(self, raw: bytes) -> bytes:
        try:
            text = self._decoder.decode(raw, final=not raw)
        except UnicodeDecodeError as error:
            line = self._line + error.object[: error.start].count(b"\n")
            if self._encoding == "utf-8" and self._ascii and bytes(error.object[: error.start]).isascii():
                raise NotUtf8Error(line) from None
            raise InputError(
                f"Byte 0x{error.object[error.start]:02x} cannot be read as {self._encoding}.",
                path=self._path,
                line=line,
                advice="Export the file again in UTF-8.",
            ) from None
        self._ascii = self._ascii and text.isascii()
        return text.encode("utf-8", "surrogatepass")

    def _watch(self, data: bytes) -> None:
        if b"\0" in data:
            line = self._line + data[: data.index(b"\0")].count(b"\n")
            raise InputError("There is a NUL byte, so this is not a text file.", path=self._path, line=line)
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
            raise InputError(
                "A quote stands in the middle of a field.",
                path=self._path,
                line=line,
                advice='Put the field in quotes and double those inside it ("5"" pipe").',
            )
        if len(quotes):
            self._inside = (self._inside + len(quotes)) % 2
            self._opened = self._line + int((padded[1 : int(quotes[-1])] == 10).sum())

    def drain(self) -> None:
        """Look at what is left, and whether it ends inside a quote: that explains all other trouble."""
        buffer = bytearray(_BLOCK)
        while self.readinto(buffer):
            pass
        if self._inside and self.error is None:
            self.error = InputError("A quote is opened and never closed.", path=self._path, line=self._opened)


def write_rows(table: pa.Table, out: BinaryIO, *, delimiter: str, header: bool = True) -> None:
    """Write a table of plain columns as RFC 4180 text in UTF-8."""
    options = arrow_csv.WriteOptions(include_header=header, delimiter=delimiter, quoting_style="needed")
    arrow_csv.write_csv(table, out, options)
