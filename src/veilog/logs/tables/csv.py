"""Delimited text: CSV and TSV, plain or gzip, read only if it is unambiguous.

Encoding, delimiter and header follow from the first lines, the rest is RFC 4180. A quote opens a field or closes it, a
quote inside is doubled, and every row has as many fields as the header. So no row can vanish inside another one without
an error. Text is UTF-8; a value that is not is read as Windows-1252, that value alone. The content of one case never
decides how another one is read, which is why veilog uses no sniffer of a library.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from veilog.errors import InputError
from veilog.logs.eventlog import EVENT_INDEX, EventLog
from veilog.logs.findings import Note
from veilog.logs.input.formats import ReadRequest
from veilog.logs.input.source import MAX_VALUE, Source, consumed_fraction, suffix_of
from veilog.logs.tables.cells import infer_type, write_column
from veilog.logs.tables.events import LineOf, check_flat, flat_table
from veilog.logs.tables.table_reader import BATCH, Notes, TableReader, headed, is_wide, usual
from veilog.messages import Message

_SAMPLE = 1 << 16
_LINES = 50
"""Number of first lines of a file that are examined."""
BLOCK = 4 << 20
"""Bytes read at once, and of a row at most."""
_FALLBACK = "cp1252"
"""Encoding of a value that is no UTF-8."""
_VALUE = re.compile(rb"""(?<![^,;\t|\r\n"])[^,;\t|\r\n"\x80-\xff]*[\x80-\xff][^,;\t|\r\n"]*""")
"""Text between delimiters, quotes and ends of lines that is not all ASCII. Any delimiter ends it, not only that of the
file: the text must lie within one value."""
_ENDS = (b",", b";", b"\t", b"|", b"\r", b"\n", b'"')
_RUN = re.compile(r"^([=+\-@\t\r\n])")
"""Beginnings of a text that is a formula to spreadsheets, or white space before."""
_Starts = dict[int, list[str]]
"""Rows by the lines on which they start."""


def _decode_sample(sample: bytes, path: Path) -> tuple[str, str]:
    """Return the encoding by the first bytes of a file, and their text."""
    for mark, encoding in (
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16"),
    ):
        if sample.startswith(mark) and encoding != "utf-8":
            return encoding, codecs.getincrementaldecoder(encoding)("replace").decode(sample)
    if b"\0" in sample:
        raise InputError("file-not-text", path=path)
    if sample.removeprefix(codecs.BOM_UTF8).lstrip()[:5] in (b"<?xml", b"<log ", b"<log>"):
        raise InputError("table-is-xml", path=path)
    text = _VALUE.sub(lambda match: _as_utf8(match[0], "replace")[0], sample.removeprefix(codecs.BOM_UTF8))
    return "utf-8", text.decode("utf-8", "replace")


def _as_utf8(value: bytes, errors: str = "strict") -> tuple[bytes, bool]:
    """Return a value in UTF-8, and True if it was in Windows-1252 before."""
    try:
        value.decode("utf-8")
    except UnicodeDecodeError:
        return value.decode(_FALLBACK, errors).encode("utf-8"), True
    return value, False


@dataclass(frozen=True)
class Dialect:
    """Delimiter, encoding and columns of a file; nameless columns go by position."""

    delimiter: str
    encoding: str
    columns: tuple[str, ...]
    line: int = 1
    """Line of the header, or of the first row if there is no header."""
    headed: bool = True
    titles: int = 0
    """Number of rows before the header, on the lines before its own."""


@dataclass(frozen=True)
class _Cut:
    """Header of a file under one delimiter, with its line and the rows before it."""

    columns: list[str]
    line: int = 1
    titles: int = 0

    def better(self, other: _Cut, *, named: bool = True) -> bool:
        """Return True if this header alone has usual names, or else more columns."""
        if not named or len(self.columns) < 3 or not other.columns or usual(self.columns) == usual(other.columns):
            return len(self.columns) > len(other.columns)
        return usual(self.columns)


def sniff(source: Source) -> Dialect:
    """Return the encoding by the first bytes, and delimiter and columns by the header.

    The first delimiter wins that cuts the header into the most columns, or into columns with usual names. In a .tsv
    file a tab goes before the others. Lines of a title may stand before the header (see :func:`_headers`).
    """
    path, sample = source.path, source.begin(_SAMPLE)
    preferred = ("\t", ",", ";", "|") if source.format == ".tsv" else (",", ";", "\t", "|")
    if not sample:
        raise InputError("file-empty", path=path)
    encoding, text = _decode_sample(sample, path)
    whole = len(sample) < _SAMPLE
    lines = list(io.StringIO(text.lstrip("\ufeff"), newline=""))
    if not whole:
        lines.pop()
    if not lines:
        raise InputError("header-row-over-sample", path=path, sample=_SAMPLE >> 10)
    found = {delimiter: rows for delimiter in preferred if (rows := _rows(lines[:_LINES], delimiter, source))}
    best = _Cut([])
    chosen = preferred[0]
    for delimiter, cut in _headers(lines, found, source).items():
        if cut.better(best, named=source.options.header != 0):
            best, chosen = cut, delimiter
    if not best.columns:
        raise InputError("header-row-too-long", path=path)
    headed = source.options.header != 0
    names = tuple((name if headed else "") or f"column {i + 1}" for i, name in enumerate(best.columns))
    return Dialect(chosen, encoding, names, best.line, headed, best.titles)


def _rows(lines: list[str], delimiter: str, source: Source) -> _Starts | None:
    """Return the first rows as this delimiter cuts them; None where it cannot."""
    reader = csv.reader(lines, delimiter=delimiter)
    rows: _Starts = {}
    line = 1
    try:
        for row in reader:
            if row:
                rows[line] = row
            line = reader.line_num + 1
    except csv.Error:
        return rows or None
    if not rows:
        raise InputError("file-empty", path=source.path)
    return rows


def _headers(lines: list[str], found: dict[str, _Starts], source: Source) -> dict[str, _Cut]:
    """Return the header that each delimiter finds, all on one line.

    It is the first line with three names under any delimiter. Later lines may be data, and the content of one case must
    not decide how others are cut.
    """
    wanted = source.options.header
    if wanted:
        for rows in found.values():
            if wanted not in rows:
                raise InputError("header-row-missing", path=source.path, wanted=wanted, max=max(rows))
        return {delimiter: _header_at(lines, rows, wanted) for delimiter, rows in found.items()}
    firsts = {delimiter: _Cut(next(iter(rows.values()))) for delimiter, rows in found.items()}
    if wanted == 0:
        return firsts
    wide = {d: next((line for line, row in rows.items() if is_wide(row, text=True)), None) for d, rows in found.items()}
    line = min((line for line in wide.values() if line is not None), default=None)
    cuts = {
        delimiter: _header_at(lines, rows, line)
        for delimiter, rows in found.items()
        if line is not None and wide[delimiter] == line and headed(rows[line], line - min(rows))
    }
    if any(map(is_wide, (cut.columns for cut in firsts.values()))) and not any(
        cut.line == 1 or usual(cut.columns) for cut in cuts.values()
    ):
        raise InputError("header-row-maybe-title", path=source.path)
    return cuts or firsts


def _header_at(lines: list[str], rows: _Starts, line: int) -> _Cut:
    """Return the header on this line.

    The lines before are skipped by their line feeds. Where lines end otherwise, the first row is the header.
    """
    titles = list(rows).index(line)
    before = "".join(lines[: line - 1]).count("\n")
    return _Cut(rows[line], line, titles) if titles and before == line - 1 else _Cut(next(iter(rows.values())))


class ValidatingStream(io.RawIOBase):
    """Bytes of a file as UTF-8, checked for encoding, quotes and NUL.

    At a fault the stream ends, and ``error`` has the reason. ``foreign`` values were no UTF-8 before, the first of them
    on ``foreign_line``. The error is kept instead of raised because the reader above runs in threads of its own. They
    read ahead, also while the rest is drained, so one reads at a time.
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
        """Fill a buffer; only the end gives less, because the reader expects whole rows."""
        view, size = memoryview(buffer).cast("B"), 0
        with self._one_at_a_time:
            while size < len(view) and (self._rest or self._read_more(len(view) - size)):
                part = self._rest[: len(view) - size]
                view[size : size + len(part)] = part
                size, self._rest = size + len(part), self._rest[len(part) :]
        return size

    def _read_more(self, size: int) -> bool:
        """Read on, about ``size`` bytes, and return True if there were any."""
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
                data = self._skip_titles(data)
            if data or not raw:
                self._watch(data)
                return data

    def _skip_titles(self, data: bytes) -> bytes:
        """Return the bytes after the lines that stand before the header."""
        while self._titles and (end := data.find(b"\n")) >= 0:
            data = data[end + 1 :]
            self._titles -= 1
            self._line += 1
        return b"" if self._titles else data

    def _decode(self, raw: bytes) -> bytes:
        if self._decoder is None:
            return self._whole_values(raw)
        try:
            text = self._decoder.decode(raw, final=not raw)
        except UnicodeDecodeError as error:
            raise InputError(
                "bytes-not-decodable",
                path=self._path,
                line=self._line,
                hex=bytes(error.object[error.start : error.end]).hex(),
                encoding=self._encoding,
            ) from None
        return text.encode("utf-8", "surrogatepass")

    def _whole_values(self, raw: bytes) -> bytes:
        """Return the bytes up to the last whole value, with all values in UTF-8."""
        if raw.isascii() and not self._held:
            return raw
        data = self._held + raw
        if raw:
            cut = max(data.rfind(end) for end in _ENDS) + 1
            data, self._held = data[:cut], data[cut:]
        else:
            self._held = b""
        if len(self._held) > MAX_VALUE:
            raise InputError("value-too-long", path=self._path, line=self._line, max_value=MAX_VALUE >> 20)
        try:
            data.decode("utf-8")
        except UnicodeDecodeError:
            return _VALUE.sub(lambda match: self._rewrite_value(match, data), data)
        return data

    def _rewrite_value(self, match: re.Match[bytes], data: bytes) -> bytes:
        line = self._line
        try:
            value, foreign = _as_utf8(match[0])
        except UnicodeDecodeError as error:
            line += data.count(b"\n", 0, match.start())
            raise InputError(
                "byte-not-decodable", path=self._path, line=line, object=error.object[error.start]
            ) from None
        if foreign:
            if not self.foreign:
                self.foreign_line = line + data.count(b"\n", 0, match.start())
            self.foreign += 1
        return value

    def _watch(self, data: bytes) -> None:
        if b"\0" in data:
            line = self._line + data[: data.index(b"\0")].count(b"\n")
            raise InputError("file-with-nul-byte", path=self._path, line=line)
        if data and (self._inside or self._last == 34 or b'"' in data):
            self._watch_quotes(data)
        self._line += data.count(b"\n")
        self._last = data[-1] if data else self._last

    def _watch_quotes(self, data: bytes) -> None:
        """Check the bytes before each opening quote and after each closing one."""
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
            raise InputError("quote-inside-field", path=self._path, line=line)
        if len(quotes):
            self._inside = (self._inside + len(quotes)) % 2
            self._opened = self._line + int((padded[1 : int(quotes[-1])] == 10).sum())

    def drain(self, most: int | None = None) -> None:
        """Read the rest (or ``most`` bytes); note an open quote, which explains faults."""
        buffer = bytearray(BLOCK)
        size = 0
        while got := self.readinto(buffer):
            size += got
            if most is not None and size >= most:
                return
        if self._inside and self.error is None:
            self.error = InputError("quote-not-closed", path=self._path, line=self._opened)


def _batches(source: Source, asked: ReadRequest, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
    """Yield batches of text (these columns, or all): empty is null, ``""`` is text."""
    dialect, path = source.once(sniff), source.path
    with source.stream() as stream:
        checked = ValidatingStream(stream, dialect, path)
        try:
            reader = arrow_csv.open_csv(
                checked,
                read_options=arrow_csv.ReadOptions(
                    block_size=BLOCK, column_names=None if dialect.headed else list(dialect.columns)
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
                if asked.progress is not None:
                    asked.progress("reading rows", consumed_fraction(stream))
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
        if checked.foreign:
            example = Message("example-windows-1252")
            asked.findings.add("not-utf8", example, line=checked.foreign_line, count=checked.foreign)


def _pick(batch: pa.RecordBatch, dialect: Dialect, columns: Sequence[str] | None, path: Path) -> pa.RecordBatch:
    if batch.num_columns != len(dialect.columns):
        raise InputError("header-row-not-safe", path=path, line=1)
    wanted = range(batch.num_columns) if columns is None else [dialect.columns.index(name) for name in columns]
    arrays = [batch.column(i) for i in wanted]
    if any(array.type != pa.string() for array in arrays):
        raise InputError("header-row-not-safe", path=path, line=1)
    return pa.RecordBatch.from_arrays(arrays, names=[dialect.columns[i] for i in wanted])


def _explain(source: Source, error: Exception) -> None:
    """Raise an error that explains, with the line, why Arrow gave up."""
    dialect, path = source.once(sniff), source.path
    for line, row in _numbered_rows(source):
        if len(row) != len(dialect.columns):
            raise InputError(
                "row-fields-differ" if dialect.headed else "row-fields-unlike-first",
                path=path,
                line=line,
                number=len(row),
                number_2=len(dialect.columns),
                delimiter=dialect.delimiter,
            ) from error
    if "straddl" in str(error):
        raise InputError("row-too-long", path=path, block=BLOCK >> 20) from error
    if "empty" in str(error).lower():
        return  # a header and nothing else: no batch, and the caller reports it
    raise InputError("rows-not-readable", path=path, splitlines=str(error).splitlines()[0]) from error


def _line_of_row(source: Source, row: int) -> int | None:
    """Return the line on which a row (0 is the first after the header) starts."""
    before = int(source.once(sniff).headed)
    for number, (line, _) in enumerate(_numbered_rows(source)):
        if number == row + before:
            return line
    return None


def _numbered_rows(source: Source) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows with their lines, slowly, for explanations, until csv is lost."""
    dialect = source.once(sniff)
    with source.stream() as stream:
        checked = io.BufferedReader(ValidatingStream(stream, dialect, source.path))
        text = io.TextIOWrapper(checked, encoding="utf-8", newline="")
        # A line without end is read up to here, which is more than any row may have.
        reader = csv.reader(iter(lambda: text.readline(2 * BLOCK), ""), delimiter=dialect.delimiter)
        before = dialect.line - 1
        line = dialect.line
        try:
            for row in reader:
                if row:
                    yield line, row
                line = before + reader.line_num + 1
        except csv.Error:
            return


class _Text(TableReader):
    """Reader and writer of text, with typed attributes.

    Attributes that are numbers, truth values and times with an offset become typed where the whole column is of one
    kind and loses nothing by it. Identifiers like ``007`` or ``1e5`` stay text.
    """

    name = "CSV"
    suffixes = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
    heeds = ("header", "start", "decimal")

    def __init__(self, *, spreadsheet_safe: bool = False) -> None:
        self._spreadsheet_safe = spreadsheet_safe

    def columns(self, source: Source) -> list[str]:
        return list(source.once(sniff).columns)

    def table(self, source: Source, asked: ReadRequest) -> pa.Table:
        parts = list(_batches(source, asked))
        names = self.columns(source)
        table = pa.Table.from_batches(parts) if parts else pa.table({name: pa.array([], pa.string()) for name in names})
        if asked.progress is not None:
            asked.progress("ordering events", None)
        plain = {EVENT_INDEX} | set(() if asked.roles is None else asked.roles.named)
        comma = asked.options.decimal == ","
        made = (table[name] if name in plain else infer_type(table[name], comma=comma) for name in table.column_names)
        return pa.table(list(made), names=table.column_names)

    def batches(
        self, source: Source, asked: ReadRequest, columns: Sequence[str] | None = None, size: int = BATCH
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows as text, in batches of some megabytes, whatever the ``size``."""
        yield from _batches(source, replace(asked, progress=None), columns)

    def notes(self, source: Source) -> Notes:
        dialect = source.once(sniff)
        example = Message("example-header", n=dialect.line)
        return Notes(noticed=(Note("title-lines", example, 1, dialect.titles),) if dialect.titles else ())

    def in_pandas(self, source: Source) -> str:
        dialect = source.once(sniff)
        with source.stream() as stream:
            _, foreign = _as_utf8(stream.read(_SAMPLE), "replace")
        encoding = _FALLBACK if foreign and dialect.encoding == "utf-8" else dialect.encoding
        how = {"sep": dialect.delimiter, "encoding": encoding, "skiprows": dialect.line - 1}
        usual = {"sep": ",", "encoding": "utf-8", "skiprows": 0}
        said = "".join(f", {name}={value!r}" for name, value in how.items() if value != usual[name])
        return f"pandas.read_csv({str(source.path)!r}{said}, dtype=str)"

    def line_of(self, source: Source) -> LineOf:
        return lambda row: _line_of_row(source, row)

    def write(self, log: EventLog, file: BinaryIO, target: Path, *, lossy: bool) -> None:
        """Write the events as text in UTF-8, without the metadata of the log.

        Empty text is ``""``, a missing value is nothing. Extensions and classifiers have no place there.
        """
        self.write_pieces([log], file, target, lossy=lossy)

    def write_pieces(
        self,
        pieces: Iterable[EventLog],
        file: BinaryIO,
        target: Path,
        *,
        lossy: bool,
        eventless: pa.Table | None = None,
    ) -> None:
        """Write one log that comes in pieces; ``eventless`` has no place in text."""
        delimiter = "\t" if suffix_of(target).startswith(".tsv") else ","
        for number, log in enumerate(pieces):
            if not lossy:
                check_flat(log, target)
            table = flat_table(log)
            made = pa.table({name: write_column(table[name]) for name in table.column_names})
            if self._spreadsheet_safe:
                safe = [_escape_formulas(column) for column in made.columns]
                made = pa.table(safe, names=[_RUN.sub(r"'\1", name) for name in made.column_names])
            options = arrow_csv.WriteOptions(include_header=number == 0, delimiter=delimiter, quoting_style="needed")
            arrow_csv.write_csv(made, file, options)


def _escape_formulas(column: Any) -> Any:
    """Return the column with an apostrophe before each text that spreadsheets run."""
    return pc.replace_substring_regex(column, _RUN.pattern, r"'\1") if pa.types.is_string(column.type) else column


TEXT = _Text()
FOR_SPREADSHEETS = _Text(spreadsheet_safe=True)
"""Writer of text that no spreadsheet runs: see :func:`veilog.logs.files.write`."""
