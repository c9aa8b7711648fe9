"""Workbooks of Excel (``.xlsx``, ``.xlsm``): one sheet to read, a log to write.

A workbook is a zip. Its declared sizes are checked before anything is unpacked, and no more comes out. Calamine reads
the cells, after one pass of our own over the sheet. The pass finds what calamine does not report. Calamine takes the
last of two cells in one place, and a formula that was never computed for an empty cell. It keeps every cell between the
outermost ones in memory.

Written columns are those of CSV; a second sheet has the log's metadata. Times are dates of Excel, which has no zones:
they are in UTC, to the millisecond. Text is text, also where it looks like a formula, and is never computed. Values
that Excel would change are refused, unless ``lossy``: then the nearest value that Excel keeps is written. Equal logs
give equal bytes.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import posixpath
import re
import tempfile
import zipfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO
from xml.etree import ElementTree
from xml.parsers import expat

import pyarrow as pa

from veilog._files import reason
from veilog.errors import InputError, MissingExtraError, OutputError, meant
from veilog.logs.eventlog import EVENT_INDEX, EventLog
from veilog.logs.findings import Note
from veilog.logs.input.formats import ReadRequest
from veilog.logs.input.source import Source, check_stored, check_unpacked
from veilog.logs.metadata import Attribute, Metadata, metadata_from, metadata_to
from veilog.logs.tables.cells import number_of_time, write_column
from veilog.logs.tables.events import LineOf, check_flat, flat_table
from veilog.logs.tables.table_reader import Notes, TableReader, header_among
from veilog.messages import Message

_UNZIPPED = 1 << 30
_LOOKED_AT = 50
"""Number of first rows of a sheet that reveal the line of its header."""
_CELLS = 60_000_000
"""Largest number of cells of a sheet: more than a million rows of a log have, and little enough for memory."""
_SHARED = 512 << 20
"""Largest size in bytes of the texts that cells share, all held in memory."""
_BLOCK = 1 << 20
_SHEET, _ROW, _CELL, _IN_CELL = 2, 3, 4, 5
"""Depths of the data of a sheet, its rows, their cells, and the content of these."""
_BOOK, _RELATED = "xl/workbook.xml", "xl/_rels/workbook.xml.rels"
_MOST_COLUMNS = 16_384
_WHOLE = 1 << 53
"""Bound below which every whole number is a float."""
_OLD = b"\xd0\xcf\x11\xe0"

BESIDE = "veilog"
"""Title of the sheet with the log's metadata, and text of its first cell."""
MOST_EVENTS = (1 << 20) - 1
"""Number of rows of a sheet without the header."""
_EVENTS = "events"
_FACTS = "for veilog"
"""Text before each piece of the metadata that is read again."""
_LONGEST = 32_767
"""Largest number of characters of a cell."""
_PIECE = 30_000
_FIRST = datetime(1900, 3, 1)  # noqa: DTZ001 - before it days are counted in two ways
_EXACT = 10**15
"""Bound from which on whole numbers have more digits than Excel keeps."""
_ILLEGAL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_ESCAPED = re.compile("_(?=x[0-9A-Fa-f]{4}_)")
"""Start of a text that looks like Excel's escape for a character that XML lacks."""
_TYPES = {"int64": pa.int64(), "double": pa.float64(), "bool": pa.bool_(), "string": pa.string()}
UTC_TIME = "time"
"""Type of a column of times in the metadata; Excel lacks their zone, which is UTC."""
_SAME_DAY = (1980, 1, 1, 0, 0, 0)

_Row = tuple[Any, ...]


@dataclass(frozen=True)
class _Sheet:
    """One sheet: its columns with their names, and the line of each row."""

    names: list[str]
    columns: list[list[Any]]
    lines: list[int]
    noticed: tuple[Note, ...]
    tables: tuple[str, ...]
    """Titles of the sheets with a table."""
    title: str
    header: int
    """Line of the header; 0 where there is none."""
    metadata: Metadata = field(default_factory=Metadata)
    types: Mapping[str, str] = field(default_factory=dict)
    """Types of the columns by the metadata of a workbook that veilog wrote."""


class _Excel(TableReader):
    name = "Excel"
    suffixes = (".xlsx", ".xlsm")
    heeds = ("header", "sheet", "start")

    def columns(self, source: Source) -> list[str]:
        return list(source.once(_read_sheet).names)

    def table(self, source: Source, asked: ReadRequest) -> pa.Table:
        """Return the table; columns that decide about events are text.

        The type of another column follows from all of its cells.
        """
        sheet, roles = source.once(_read_sheet), asked.roles
        texts = {EVENT_INDEX}.union(() if roles is None else roles.named)
        times = () if roles is None else roles.times
        _check_names(sheet, texts.difference(times), source)
        made = [
            _cells_to_text(values, times=name in times, utc=sheet.types.get(name) == UTC_TIME)
            if name in texts
            else _type_column(values, sheet.types.get(name))
            for name, values in zip(sheet.names, sheet.columns, strict=True)
        ]
        return pa.Table.from_arrays(made, names=sheet.names)

    def rows(self, source: Source) -> int:
        return len(source.once(_read_sheet).lines)

    def notes(self, source: Source) -> Notes:
        sheet = source.once(_read_sheet)
        return Notes(sheet.metadata, noticed=sheet.noticed, among=sheet.tables)

    def in_pandas(self, source: Source) -> str:
        sheet = source.once(_read_sheet)
        skipped = f", skiprows={sheet.header - 1}" if sheet.header > 1 else ""
        return f"pandas.read_excel({str(source.path)!r}, {sheet.title!r}{skipped}, engine='calamine', dtype=str)"

    def line_of(self, source: Source) -> LineOf:
        lines = source.once(_read_sheet).lines
        return lambda row: lines[row]

    def write(self, log: EventLog, file: BinaryIO, target: Path, *, lossy: bool) -> None:
        write_workbook([log], file, target, lossy=lossy)

    def write_pieces(
        self, pieces: Iterable[EventLog], file: BinaryIO, target: Path, *, lossy: bool, eventless: pa.Table | None
    ) -> None:
        """Write one log that comes in pieces; ``eventless`` has no place in a sheet."""
        write_workbook(pieces, file, target, lossy=lossy)


EXCEL = _Excel()


def _read_sheet(source: Source) -> _Sheet:
    """Return the chosen sheet; every fault of a workbook becomes an InputError."""
    file = _check_zip(source)
    try:
        import python_calamine
    except ImportError as error:
        raise MissingExtraError(Message("reading-of-workbooks"), extra="excel") from error
    try:
        with zipfile.ZipFile(file) as parts:
            _check_sizes(parts)
            cells = {title: _check_cells(parts, part, source) for title, part in _parts(parts).items()}
        if source.zipped:
            file.seek(0)
        with python_calamine.load_workbook(file) as book:
            return _sheet(book, cells, source)
    except (InputError, MemoryError):
        raise
    except BaseException as error:  # a damaged workbook fails wherever its XML is used, also where calamine panics
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise InputError(
            "workbook-not-readable",
            path=source.path,
            kind=type(error).__name__,
            partition=str(error).partition(chr(10))[0][:200],
        ) from error


def _check_zip(source: Source) -> Any:
    """Return the file for calamine, once it is a zip that may be unpacked."""
    path = source.path
    file = io.BytesIO(source.content(_UNZIPPED)) if source.zipped else path
    try:
        if not source.zipped:
            check_stored(path)
        with zipfile.ZipFile(file) as parts:
            members = parts.infolist()
    except FileNotFoundError:
        raise InputError("file-missing", path=path) from None
    except PermissionError as error:
        raise InputError("file-not-readable", path=path, reason=reason(error)) from error
    except (zipfile.BadZipFile, OSError, ValueError, RuntimeError, EOFError) as error:
        begun = b"" if source.zipped else source.begin(4)
        if begun == _OLD:
            raise InputError("workbook-locked-or-old", path=path) from error
        raise InputError("workbook-not-excel", path=path, reason=error) from error
    for part in members:
        check_unpacked(part.file_size, part.compress_size, source.options.limit, path)
        if part.filename.endswith("sharedStrings.xml") and part.file_size > _SHARED:
            raise InputError("workbook-texts-too-large", path=path, shared=_SHARED >> 20)
    check_unpacked(
        sum(part.file_size for part in members), sum(part.compress_size for part in members), source.options.limit, path
    )
    return file


def _check_sizes(parts: zipfile.ZipFile) -> None:
    """Raise ValueError where a part unpacks to another size than the zip declares."""
    for part in parts.infolist():
        said, size = part.file_size, 0
        part.file_size += 1  # so that zipfile reads on to where the part ends
        with parts.open(part) as content:
            while block := content.read(_BLOCK):
                size += len(block)
        part.file_size = said
        if size != said:
            raise ValueError(f"{part.filename} is larger or smaller than the zip says")


def _parts(parts: zipfile.ZipFile) -> dict[str, str]:
    """Return the sheets by their titles, each with the name of its part of the zip."""
    related, book = (ElementTree.fromstring(parts.read(part)) for part in (_RELATED, _BOOK))  # noqa: S314 - as expat: bounded
    targets = {one.get("Id"): posixpath.normpath(posixpath.join("/xl", one.get("Target", ""))) for one in related}
    sheets = [one for one in book.iter() if one.tag.endswith("}sheet")]
    ids = [next((value for key, value in one.items() if key.endswith("}id")), "") for one in sheets]
    return {one.get("name", ""): targets[number].lstrip("/") for one, number in zip(sheets, ids, strict=True)}


def _check_cells(parts: zipfile.ZipFile, part: str, source: Source) -> _Cells:
    """Read the cells of a sheet; InputError where there are more than fit in memory."""
    cells = _Cells()
    with parts.open(part) as content:
        while block := content.read(_BLOCK):
            cells.parser.Parse(block, False)
            if cells.rows * cells.columns > _CELLS:
                raise InputError("sheet-cells-too-many", path=source.path, line=cells.rows, cells=_CELLS // 1000000)
    cells.parser.Parse(b"", True)
    return cells


class _Cells:
    """Places of a sheet's cells; ValueError where calamine would silently omit one."""

    def __init__(self) -> None:
        self.rows = self.columns = 0
        self.unknown = 0
        """First row with a formula that has no value."""
        self._depth = self._row = self._column = self._taken = 0
        self._inside = self._formula = self._value = False
        self._rows = bytearray(MOST_EVENTS + 2)
        self._number = ""
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end

    def _start(self, element: str, said: dict[str, str]) -> None:
        self._depth += 1
        if self._depth == _SHEET:
            self._inside = element.rpartition(":")[2] == "sheetData"
        elif not self._inside:
            return
        elif self._depth == _IN_CELL:
            name = element.rpartition(":")[2]
            self._formula |= name == "f"
            self._value |= name in ("v", "is")
        elif self._depth == _CELL:
            self._place(said.get("r", ""))
        elif self._depth == _ROW:
            self._number = said.get("r") or str(self._row + 1)
            self._row = int(self._number)
            if self._rows[self._row]:
                raise ValueError(f"there are two rows {self._row}")
            self._rows[self._row] = 1
            self._column = self._taken = 0
            self.rows = max(self.rows, self._row)

    def _place(self, place: str) -> None:
        """Go on to the cell in such a place as ``AB12``, or to the next one of its row."""
        letters = place.rstrip("0123456789")
        self._column = _column(letters) if letters else self._column + 1
        if place[len(letters) :] not in ("", self._number):
            raise ValueError(f"the cell {place} stands in row {self._row}")
        if self._taken >> self._column & 1:
            raise ValueError(f"row {self._row} has two cells {place}")
        self._taken |= 1 << self._column
        self.columns = max(self.columns, self._column)
        self._formula = self._value = False

    def _end(self, element: str) -> None:
        if self._depth == _CELL and self._inside and self._formula and not self._value:
            self.unknown = self.unknown or self._row
        self._depth -= 1


@cache
def _column(letters: str) -> int:
    """Return the number of a column such as ``AB``; ValueError for none of a sheet."""
    number = 0
    for letter in letters.upper():
        if not "A" <= letter <= "Z" or number > _MOST_COLUMNS:
            raise ValueError(f"{letters} is no column")
        number = 26 * number + ord(letter) - ord("A") + 1
    return number


def _sheet(book: Any, cells: Mapping[str, _Cells], source: Source) -> _Sheet:
    """Return the sheet that was named, or the only one with a table."""
    with_cells = [sheet.name for sheet in book.sheets_metadata if str(sheet.typ).rpartition(".")[2] == "WorkSheet"]
    sheets = {title: book.get_sheet_by_name(title) for title in with_cells}
    begun: dict[str, list[_Row]] = {name: [*islice(_rows(sheet), _LOOKED_AT)] for name, sheet in sheets.items()}
    metadata, types = _read_metadata_sheet(sheets, begun, source)
    wanted = source.options.sheet
    tables = [name for name, rows in begun.items() if any(_count_cells(row) >= 3 for row in rows)]
    if wanted is None and len(tables) > 1:
        raise InputError(
            "sheet-not-chosen", path=source.path, among=tables, number=len(tables), names=", ".join(map(repr, tables))
        )
    if wanted is not None and wanted not in begun:
        raise InputError(
            "sheet-missing",
            path=source.path,
            among=tables,
            wanted=wanted,
            meant=meant(wanted, begun),
            names=", ".join(map(repr, begun)),
        )
    chosen = wanted if wanted is not None else next(iter(tables), None)
    if chosen is None:
        raise InputError("sheet-none-with-table", path=source.path, names=", ".join(map(repr, begun)))
    if not any(map(_count_cells, begun[chosen])):
        raise InputError("sheet-empty", path=source.path, chosen=chosen)
    others = [name for name, rows in begun.items() if name != chosen and any(map(_count_cells, rows))]
    said = [Note("other-sheets", ", ".join(map(repr, others)), count=len(others))] if others else []
    place = _header_of(begun[chosen], source)
    if place:
        titles = sum(map(bool, map(_count_cells, begun[chosen][: place - 1])))
        said += [Note("title-lines", Message("example-header", n=place), 1, titles)] if titles else []
    if cells[chosen].unknown:
        raise ValueError(f"a formula in row {cells[chosen].unknown} has no value")
    sheet = sheets.pop(chosen)
    sheets.clear()
    held = [(line, row) for line, row in enumerate(islice(_rows(sheet), place, None), place + 1) if _count_cells(row)]
    names, columns = _name_columns(begun[chosen][place - 1] if place else (), [row for _, row in held])
    return _Sheet(
        names, columns, [line for line, _ in held], tuple(said), tuple(tables), chosen, place, metadata, types
    )


def _rows(sheet: Any) -> Iterator[_Row]:
    """Yield the rows of a sheet, with None for empty cells and equal texts as one."""
    texts: dict[str, str] = {}
    for row in sheet.iter_rows():
        yield tuple(
            None if value == "" else texts.setdefault(value, value) if type(value) is str else value for value in row
        )


def _read_metadata_sheet(
    sheets: Mapping[str, Any], begun: dict[str, list[_Row]], source: Source
) -> tuple[Metadata, Mapping[str, str]]:
    """Return metadata and types from veilog's own sheet, and take it out of ``begun``."""
    if not _is_ours(begun.get(BESIDE, [])):
        return Metadata(), {}
    del begun[BESIDE]
    try:
        facts = json.loads(_metadata_text(_rows(sheets[BESIDE])))
        types = {str(name): str(kind) for name, kind in facts["types"].items()}
        return metadata_from(facts["metadata"]), types
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError("sheet-metadata-damaged", path=source.path, beside=BESIDE, reason=str(error)[:200]) from error


def _header_of(rows: list[_Row], source: Source) -> int:
    """Return the line of the header, from 1 on; 0 where there is none."""
    declared = source.options.header
    if declared is None:
        width = max(map(len, rows))
        return 1 + header_among([[*map(_text, row), *[""] * (width - len(row))] for row in rows])
    if declared > len(rows):
        raise InputError("sheet-header-missing", path=source.path, declared=declared)
    return declared


def _count_cells(row: _Row) -> int:
    return sum(value is not None for value in row)


def _name_columns(header: _Row, rows: list[_Row]) -> tuple[list[str], list[list[Any]]]:
    """Return names and cells of the columns, without last columns that have neither."""
    names = [*map(_text, header)] or [""] * (len(rows[0]) if rows else 0)
    columns = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in names]
    while names and not names[-1] and all(value is None for value in columns[-1]):
        names.pop()
        columns.pop()
    return [name or f"column {place}" for place, name in enumerate(names, 1)], columns


def _check_names(sheet: _Sheet, names: Collection[str], source: Source) -> None:
    """Raise where a number that decides about events is so large that it is inexact."""
    for name, values in zip(sheet.names, sheet.columns, strict=True):
        for line, value in zip(sheet.lines, values, strict=True) if name in names else ():
            if type(value) is float and abs(value) >= _WHOLE:
                raise InputError("number-column-more-digits", path=source.path, line=line, name=name)


def _type_column(values: list[Any], declared: str | None) -> Any:
    """Return a column in its declared type, or in that of all its cells, else as text."""
    made = None if declared is None else _restore_type(values, declared)
    if made is not None:
        return made
    kinds = {type(value) for value in values if value is not None}
    try:
        if kinds and kinds <= {datetime, date}:
            stamps = (datetime(v.year, v.month, v.day) if type(v) is date else v for v in values)  # noqa: DTZ001
            return pa.array(list(stamps), pa.timestamp("us"))
        if kinds == {bool}:
            return pa.array(values, pa.bool_())
        if kinds == {float}:
            whole = all(v is None or (v.is_integer() and abs(v) < _WHOLE) for v in values)
            return pa.array(values, pa.int64() if whole else pa.float64())
    except (pa.ArrowException, OverflowError, ValueError):
        pass  # times out of range: as text
    return _cells_to_text(values)


def _cells_to_text(values: list[Any], *, times: bool = False, utc: bool = False) -> Any:
    """Return each cell as text, by itself.

    With ``times``, numbers are times, too; with ``utc``, the times of Excel are in UTC.
    """
    texts = [None if value is None else _time_in_text(value, utc) if times else _text(value) for value in values]
    return pa.array(texts, pa.string())


def _time_in_text(value: Any, utc: bool) -> str:
    if type(value) is float:
        return number_of_time(value)
    return f"{value.isoformat(' ')}+00:00" if utc and isinstance(value, datetime) else _text(value)


def _text(value: Any) -> str:
    """Return a cell as text, as in a CSV file, with times as in ISO 8601."""
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.isoformat(" ") if value.time() != time(0) else value.date().isoformat()
    if isinstance(value, timedelta):
        return str(value)
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < _WHOLE:
        return str(int(value))
    return str(value)


def write_workbook(pieces: Iterable[EventLog], file: BinaryIO, target: Path, *, lossy: bool) -> None:
    """Write one log that comes in pieces with the same columns.

    Raises:
        OutputError: When a sheet cannot hold the log.

    """
    import openpyxl
    from openpyxl.utils import get_column_letter

    book = openpyxl.Workbook(write_only=True)
    try:
        events = book.create_sheet(_EVENTS)
        events.freeze_panes = "A2"
        rows, beside = 0, list[tuple[str, str]]()
        for number, log in enumerate(pieces):
            if not lossy:
                check_flat(log, target, "a workbook")
            table = flat_table(log)
            rows += table.num_rows
            if rows > MOST_EVENTS:
                raise OutputError("sheet-events-too-many", path=target, most_events=MOST_EVENTS)
            if not number:
                for place in range(1, table.num_columns + 1):  # wide enough for a time, which Excel shows as #### else
                    events.column_dimensions[get_column_letter(place)].width = 20
                events.append([_text_cell(events, name) for name in table.column_names])
                beside = [*_metadata_rows(log.metadata, {name: _kind(table[name].type) for name in table.column_names})]
            columns = [_written_cells(events, name, table[name], target, lossy) for name in table.column_names]
            for row in zip(*columns, strict=True):
                events.append(row)
        sheet = book.create_sheet(BESIDE)
        sheet.column_dimensions["A"].width = 48
        sheet.column_dimensions["B"].width = 100
        for row in beside:
            sheet.append([_text_cell(sheet, value) for value in row])
        with tempfile.TemporaryFile() as made:
            book.save(made)
            _copy_undated(made, file)
    finally:
        for sheet in book.worksheets:  # what was written of it so far, if it came to nothing
            with contextlib.suppress(Exception):
                sheet.close()
            with contextlib.suppress(Exception):
                sheet._writer.cleanup()


def _is_ours(rows: list[_Row]) -> bool:
    """Return True if the sheet with these first rows has veilog's metadata."""
    return bool(rows and rows[0]) and rows[0][0] == BESIDE


def facts_in(path: Path) -> bytes:
    """Return the metadata in a workbook of veilog as they are written, or nothing."""
    try:
        import python_calamine

        with python_calamine.load_workbook(str(path)) as book:
            rows = list(_rows(book.get_sheet_by_name(BESIDE))) if BESIDE in book.sheet_names else []
    except Exception:  # noqa: BLE001 - a damaged workbook fails wherever its XML is used
        return b""
    return _metadata_text(rows).encode() if _is_ours(rows) else b""


def _restore_type(values: Sequence[Any], kind: str | None) -> Any:
    """Return the cells of a column in its former type; None if they do not fit it now."""
    given = [v for v in values if v is not None]
    try:
        if kind == UTC_TIME and all(isinstance(v, datetime) for v in given):
            return pa.array(list(values), pa.timestamp("us")).cast(pa.timestamp("us", "UTC"))
        if kind == "string" and all(isinstance(v, str) for v in given):
            return pa.array(list(values), pa.string())
        if kind in ("int64", "double") and not any(isinstance(v, bool) for v in given):
            return pa.array([None if v is None else _text(v) for v in values], pa.string()).cast(_TYPES[kind])
        if kind == "bool" and all(isinstance(v, bool) for v in given):
            return pa.array(list(values), pa.bool_())
    except (pa.ArrowException, OverflowError, ValueError):
        pass
    return None


def _metadata_text(rows: Iterable[Sequence[Any]]) -> str:
    return "".join(str(row[1]) for row in rows if len(row) > 1 and row[0] == _FACTS)


def _kind(kind: pa.DataType) -> str:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return UTC_TIME if pa.types.is_timestamp(kind) else str(kind)


def _written_cells(sheet: Any, name: str, column: pa.ChunkedArray, target: Path, lossy: bool) -> Iterator[Any]:
    """Return a column, value by value, in the form for its cells."""
    kind = column.type

    def lost(what: str) -> None:
        if not lossy:
            raise OutputError("column-not-for-excel", path=target, name=name, what=what)

    one: Callable[[Any], Any]
    if pa.types.is_timestamp(kind):
        values = iter(column.cast(pa.timestamp("us"), safe=False).to_pylist())  # in UTC
        one = lambda value: _date(value, lost)  # noqa: E731
    elif pa.types.is_boolean(kind):
        return iter(column.to_pylist())
    elif pa.types.is_integer(kind) or pa.types.is_floating(kind):
        values = iter(column.to_pylist())
        one = _number
    else:
        values = iter(write_column(column).cast(pa.string()).to_pylist())
        one = lambda value: _checked_text(sheet, value, lost)  # noqa: E731
    return (None if value is None else one(value) for value in values)


def _date(value: datetime, lost: Callable[[str], None]) -> datetime | str:
    if value < _FIRST:
        lost("times before 1900")
        return value.isoformat(" ")
    if value.microsecond % 1000:
        lost("times finer than a millisecond")
    return value


def _number(value: float) -> float | str:
    """Return a number, or text where a cell would change the number."""
    if isinstance(value, int):
        return value if abs(value) < _EXACT else str(value)
    return value if math.isfinite(value) else str(value)


def _checked_text(sheet: Any, value: str, lost: Callable[[str], None]) -> Any:
    if len(_ESCAPED.sub("_x005F_", value)) > _LONGEST:
        lost(f"texts of more than {_LONGEST:,} characters")
        value = value[:_LONGEST]
    if _ILLEGAL.search(value):
        lost("control characters")
        value = _ILLEGAL.sub("\ufffd", value)
    return _text_cell(sheet, value)


def _text_cell(sheet: Any, value: str) -> Any:
    """Return a cell that stays text after an edit, even if it looks like a formula."""
    if not value:
        return None
    value = _ESCAPED.sub("_x005F_", value)
    if value[0] not in "=#":
        return value
    from openpyxl.cell import WriteOnlyCell

    cell = WriteOnlyCell(sheet, value=value)
    cell.data_type = "s"
    cell.quotePrefix = True
    return cell


def _metadata_rows(metadata: Metadata, types: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the metadata of the log: for people, and then in pieces to read again."""
    yield (
        BESIDE,
        "What this log says of itself. Times are in UTC. The last lines are for veilog: leave them as they are.",
    )
    for attribute in metadata.attributes:
        yield from _attribute_rows(attribute, "")
    facts = json.dumps({"format": 1, "metadata": metadata_to(metadata), "types": types})
    for begin in range(0, len(facts), _PIECE):
        yield _FACTS, facts[begin : begin + _PIECE]


def _attribute_rows(attribute: Attribute, before: str) -> Iterator[tuple[str, str]]:
    """Yield an attribute, and those below it, each on a line."""
    name = f"{before}{attribute.key}"[:_LONGEST]
    if attribute.value is not None:
        yield _ILLEGAL.sub("\ufffd", name), _ILLEGAL.sub("\ufffd", str(attribute.value))[:_LONGEST]
    for child in attribute.children:
        yield from _attribute_rows(child, f"{name} / ")


def _copy_undated(made: Any, file: BinaryIO) -> None:
    """Copy a workbook without the times at which it was made."""
    with zipfile.ZipFile(made) as old, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as new:
        for part in old.infolist():
            entry = zipfile.ZipInfo(part.filename, _SAME_DAY)
            entry.compress_type = zipfile.ZIP_DEFLATED
            with old.open(part) as content, new.open(entry, "w", force_zip64=part.file_size > 1 << 30) as out:
                if part.filename == "docProps/core.xml":
                    out.write(re.sub(rb"<dcterms:(created|modified)\b.*?</dcterms:\1>", b"", content.read()))
                    continue
                while block := content.read(1 << 20):
                    out.write(block)
