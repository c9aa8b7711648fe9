"""Delimited text (CSV, TSV) to Arrow batches of strings, strictly: whatever cannot be told apart safely is refused.

The delimiter is found out from the header, the rest is RFC 4180: a quote opens a field or closes it, a quote inside is
doubled, every row has as many fields as the header. So no row can vanish inside another one without an error. Text is
UTF-8; a value that is not is read as Windows-1252, that value alone, so that no row decides how another one is read.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
from pyarrow import csv as arrow_csv

from veilog.errors import InputError
from veilog.logs.input.source import Source
from veilog.logs.input.streams import MAX_VALUE, consumed_fraction
from veilog.logs.tables.decoding import ENDS, FALLBACK, VALUE, as_utf8, decoded
from veilog.logs.tables.headers import header_among, usual
from veilog.logs.tables.reader import Remark

__all__ = ["Dialect", "Foreign", "batches", "line_of_row", "sniffed", "titles", "write_rows"]

_SAMPLE = 1 << 16
_BLOCK = 4 << 20


Foreign = Callable[[int, int], None]
"""Told how many values were no UTF-8, and the line of the first."""


@dataclass(frozen=True)
class Dialect:
    """How a file is to be read: its delimiter, its encoding, and its columns (nameless ones by their position)."""

    delimiter: str
    encoding: str
    columns: tuple[str, ...]
    line: int = 1
    """Where the header is, or where there is none, the first row."""
    headed: bool = True
    titles: int = 0
    """How many rows stand before the header, on the lines before its own."""


@dataclass(frozen=True)
class _Cut:
    """How one delimiter cuts the first lines of a file: its header, the line that it starts on, and the rows before."""

    columns: list[str]
    line: int = 1
    titles: int = 0

    def better(self, other: _Cut) -> bool:
        """Whether this header has usual names and the other has not, or else more columns."""
        if len(self.columns) < 3 or not other.columns or usual(self.columns) == usual(other.columns):
            return len(self.columns) > len(other.columns)
        return usual(self.columns)


def sniffed(source: Source) -> Dialect:
    """Find the encoding by the first bytes, and delimiter and columns by the header: of the delimiters that cut it into
    the most columns, or into columns with usual names, the first; in a file called .tsv a tab goes before the others.
    Lines of a title may stand before the header (see :func:`veilog.logs.tables.headers.header_among`)."""
    path, sample = source.path, source.begin(_SAMPLE)
    preferred = ("\t", ",", ";", "|") if source.format == ".tsv" else (",", ";", "\t", "|")
    if not sample:
        raise InputError("The file is empty.", path=path)
    encoding, text = decoded(sample, path)
    whole = len(sample) < _SAMPLE
    lines = list(io.StringIO(text.lstrip("\ufeff"), newline=""))
    if not whole and len(lines) > 1:
        lines.pop()
    best = _Cut([])
    chosen = preferred[0]
    for delimiter in preferred:
        found = _cut(lines[:_LINES], delimiter, source)
        if found is not None and found.better(best):
            best, chosen = found, delimiter
    if not best.columns:
        raise InputError("The first line is too long for a header.", path=path)
    headed = source.layout.header != 0
    names = tuple((name if headed else "") or f"column {i + 1}" for i, name in enumerate(best.columns))
    return Dialect(chosen, encoding, names, best.line, headed, best.titles)


_LINES = 50
"""Of a file that are looked at."""


def _cut(lines: list[str], delimiter: str, source: Source) -> _Cut | None:
    """The header that this delimiter finds; None where it cannot read the lines."""
    reader = csv.reader(lines, delimiter=delimiter)
    rows, starts, line = [], [], 1
    try:
        for row in reader:
            if row:
                rows.append(row)
                starts.append(line)
            line = reader.line_num + 1
    except csv.Error:
        if not rows:
            return None
    if not rows:
        raise InputError("The file is empty.", path=source.path)
    wanted = source.layout.header
    if not wanted:
        place = header_among(rows) if wanted is None else 0
    elif wanted in starts:
        place = starts.index(wanted)
    else:
        raise InputError(
            f"No row starts on line {wanted} of the first {starts[-1]}.",
            path=source.path,
            advice="Say on which line the names of the columns are: --header LINE.",
        )
    # What stands before is skipped by its line feeds. Where lines end otherwise, there is nothing to go by.
    before = "".join(lines[: starts[place] - 1]).count("\n")
    return _Cut(rows[place], starts[place], place) if place and before == starts[place] - 1 else _Cut(rows[0])


def batches(
    source: Source, *, columns: Sequence[str] | None = None, progress: Any = None, foreign: Foreign | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows as batches of string columns (these ones, or all): nothing between delimiters is null, ``""`` is text.

    Raises :class:`InputError` with the line; ``foreign`` is told at the end of values that were no UTF-8.
    """
    dialect, path = source.once(sniffed), source.path
    with source.stream() as stream:
        checked = _Checked(stream, dialect, path)
        try:
            reader = arrow_csv.open_csv(
                checked,
                read_options=arrow_csv.ReadOptions(
                    block_size=_BLOCK, column_names=None if dialect.headed else list(dialect.columns)
                ),
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
                    progress("reading rows", consumed_fraction(stream))
                yield _pick(batch, dialect, columns, path)
        except pa.ArrowCancelled:
            raise KeyboardInterrupt from None
        except pa.ArrowException as error:
            checked.drain(MAX_VALUE)
            if checked.error is None:
                _explain(source, error)
        checked.drain()
        if checked.error is not None:
            raise checked.error
        if checked.foreign and foreign is not None:
            foreign(checked.foreign, checked.foreign_line)


def _pick(batch: pa.RecordBatch, dialect: Dialect, columns: Sequence[str] | None, path: Path) -> pa.RecordBatch:
    if batch.num_columns != len(dialect.columns):
        raise InputError("The header cannot be read safely.", path=path, line=1, advice="Put it on one line.")
    wanted = range(batch.num_columns) if columns is None else [dialect.columns.index(name) for name in columns]
    arrays = [batch.column(i) for i in wanted]
    if any(array.type != pa.string() for array in arrays):
        raise InputError("The header cannot be read safely.", path=path, line=1, advice="Put it on one line.")
    return pa.RecordBatch.from_arrays(arrays, names=[dialect.columns[i] for i in wanted])


def _explain(source: Source, error: Exception) -> None:
    """Say in the user's words, and with the line, why Arrow gave up."""
    dialect, path = source.once(sniffed), source.path
    for line, row in _rows(source):
        if len(row) != len(dialect.columns):
            raise InputError(
                f"This row has {len(row)} fields, the {'header' if dialect.headed else 'first'} has "
                f"{len(dialect.columns)}.",
                path=path,
                line=line,
                advice=f"The delimiter is {dialect.delimiter!r}; a field that contains it needs quotes.",
            ) from error
    if "straddl" in str(error):
        raise InputError(f"A row is longer than {_BLOCK >> 20} MB.", path=path) from error
    if "empty" in str(error).lower():
        return  # a header and nothing else: no batch, and the caller says so
    raise InputError(f"The rows cannot be read ({str(error).splitlines()[0]}).", path=path) from error


def line_of_row(source: Source, row: int) -> int | None:
    """The line on which a row (0 is the first after the header) starts."""
    before = int(source.once(sniffed).headed)
    for number, (line, _) in enumerate(_rows(source)):
        if number == row + before:
            return line
    return None


def titles(source: Source) -> tuple[Remark, ...]:
    """Return what must be said of the lines before the header."""
    dialect = source.once(sniffed)
    if not dialect.titles:
        return ()
    return (Remark("title-lines", f"the header is on line {dialect.line}", dialect.titles, 1),)


def _rows(source: Source) -> Iterator[tuple[int, list[str]]]:
    """The rows one by one with their lines; slow, for explaining only. Ends early where even this reader is lost."""
    dialect = source.once(sniffed)
    with source.stream() as stream:
        checked = io.BufferedReader(_Checked(stream, dialect, source.path))
        text = io.TextIOWrapper(checked, encoding="utf-8", newline="")
        # Of a line without end only so much, which is more than any row may have.
        reader = csv.reader(iter(lambda: text.readline(2 * _BLOCK), ""), delimiter=dialect.delimiter)
        before = dialect.line - 1
        line = dialect.line
        try:
            for row in reader:
                if row:
                    yield line, row
                line = before + reader.line_num + 1
        except csv.Error:
            return


class _Checked(io.RawIOBase):
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
                f"The bytes {bytes(error.object[error.start : error.end]).hex()} cannot be read as {self._encoding}.",
                path=self._path,
                line=self._line,
                advice="Export the file again in UTF-8.",
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
            raise InputError(f"A value is longer than {MAX_VALUE >> 20} MB.", path=self._path, line=self._line)
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
                f"Byte 0x{error.object[error.start]:02x} can be read neither as utf-8 nor as {FALLBACK}.",
                path=self._path,
                line=line,
                advice="Export the file again in UTF-8.",
            ) from None
        if foreign:
            if not self.foreign:
                self.foreign_line = line + data.count(b"\n", 0, match.start())
            self.foreign += 1
        return value

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

    def drain(self, most: int | None = None) -> None:
        """Look at (so much of) what is left, and whether it ends inside a quote: that explains all other trouble."""
        buffer = bytearray(_BLOCK)
        size = 0
        while got := self.readinto(buffer):
            size += got
            if most is not None and size >= most:
                return
        if self._inside and self.error is None:
            self.error = InputError("A quote is opened and never closed.", path=self._path, line=self._opened)


def write_rows(table: pa.Table, out: BinaryIO, *, delimiter: str, header: bool = True) -> None:
    """Write a table of plain columns as RFC 4180 text in UTF-8."""
    options = arrow_csv.WriteOptions(include_header=header, delimiter=delimiter, quoting_style="needed")
    arrow_csv.write_csv(table, out, options)
