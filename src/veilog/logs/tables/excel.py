"""Workbooks of Excel (``.xlsx``, ``.xlsm``): one sheet, whose cells say themselves what type they have.

A workbook is a zip. What it says that it unpacks to is checked before anything is unpacked, and no more comes out.
"""

from __future__ import annotations

import io
import warnings
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, cast

import pyarrow as pa

from veilog._files import reason
from veilog.errors import InputError, MissingExtraError, meant
from veilog.logs.eventlog import EVENT_INDEX, EventLog
from veilog.logs.input.reader import ReadRequest
from veilog.logs.input.source import Source
from veilog.logs.input.streams import check_stored, check_unpacked
from veilog.logs.metadata import Metadata
from veilog.logs.tables.cells.objects import number_of_time
from veilog.logs.tables.events.checks import LineOf
from veilog.logs.tables.headers import header_among
from veilog.logs.tables.placed import check_cells
from veilog.logs.tables.reader import Notes, Remark, TableReader
from veilog.logs.tables.workbook import BESIDE, UTC_TIME, as_declared, is_beside, said_beside, write_workbook

__all__ = ["EXCEL"]

_UNZIPPED = 1 << 30
_LOOKED_AT = 50
"""Rows of a sheet that tell where its header is."""
_CELLS = 60_000_000
"""Of a sheet: more than its million rows have in a log, and little enough for memory."""
_SHARED = 512 << 20
"""Bytes of the texts that cells share, which are all held in memory."""
_OLD = b"\xd0\xcf\x11\xe0"

_Row = tuple[Any, ...]


@dataclass(frozen=True)
class _Sheet:
    """One sheet: its columns with their names, and on which line of the sheet each row is."""

    names: list[str]
    columns: list[list[Any]]
    lines: list[int]
    remarks: tuple[Remark, ...]
    tables: tuple[str, ...]
    """The sheets with a table."""
    metadata: Metadata = field(default_factory=Metadata)
    types: Mapping[str, str] = field(default_factory=dict)
    """Of the columns, as a workbook that veilog wrote says them beside its cells."""


class _Excel(TableReader):
    name = "Excel"
    suffixes = (".xlsx", ".xlsm")
    heeds = ("header", "sheet")

    def columns(self, source: Source) -> list[str]:
        return list(source.once(_read).names)

    def table(self, source: Source, asked: ReadRequest) -> pa.Table:
        """Which type a column has follows from all of its cells, so what decides about events is text."""
        sheet, roles = source.once(_read), asked.roles
        texts = {EVENT_INDEX}.union(() if roles is None else roles.named)
        times = () if roles is None else roles.times
        made = [
            _in_text(values, times=name in times, utc=sheet.types.get(name) == UTC_TIME)
            if name in texts
            else _typed(values, sheet.types.get(name))
            for name, values in zip(sheet.names, sheet.columns, strict=True)
        ]
        return pa.Table.from_arrays(made, names=sheet.names)

    def rows(self, source: Source) -> int:
        return len(source.once(_read).lines)

    def notes(self, source: Source) -> Notes:
        sheet = source.once(_read)
        return Notes(sheet.metadata, remarks=sheet.remarks, among=sheet.tables)

    def line_of(self, source: Source) -> LineOf:
        lines = source.once(_read).lines
        return lambda row: lines[row]

    def write(self, log: EventLog, file: BinaryIO, target: Path, *, lossy: bool) -> None:
        write_workbook([log], file, target, lossy=lossy)

    def write_pieces(
        self, pieces: Iterable[EventLog], file: BinaryIO, target: Path, *, lossy: bool, eventless: pa.Table | None
    ) -> None:
        """Write one log that comes in pieces; ``eventless`` has no place in a sheet."""
        write_workbook(pieces, file, target, lossy=lossy)


EXCEL = _Excel()


def _read(source: Source) -> _Sheet:
    """The sheet that is meant; whatever a workbook's faults are, they become an InputError."""
    file = _checked(source)
    try:
        import openpyxl
    except ImportError as error:
        raise MissingExtraError("Reading a workbook of Excel", extra="excel") from error
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of styles and extensions that a table has no use for
            book = openpyxl.load_workbook(file, read_only=True, data_only=True)
            try:
                return _sheet(book, file, source)
            finally:
                book.close()
    except (InputError, MemoryError):
        raise
    except Exception as error:  # a damaged workbook fails wherever its XML is used
        raise InputError(
            "workbook-cannot-read",
            path=source.path,
            kind=type(error).__name__,
            partition=str(error).partition(chr(10))[0][:200],
        ) from error


def _checked(source: Source) -> Any:
    """What openpyxl is to open, once it is known that it is a zip that may be unpacked."""
    path = source.path
    file = io.BytesIO(source.content(_UNZIPPED)) if source.zipped else path
    try:
        if not source.zipped:
            check_stored(path)
        with zipfile.ZipFile(file) as parts:
            members = parts.infolist()
    except FileNotFoundError:
        raise InputError("no-file", path=path) from None
    except PermissionError as error:
        raise InputError("file-cannot-read", path=path, reason=reason(error)) from error
    except (zipfile.BadZipFile, OSError, ValueError, RuntimeError, EOFError) as error:
        begun = b"" if source.zipped else source.begin(4)
        if begun == _OLD:
            raise InputError("workbook-password-excel-before", path=path) from error
        raise InputError("no-workbook-excel", path=path, reason=error) from error
    for part in members:
        check_unpacked(part.file_size, part.compress_size, source.limit, path)
        if part.filename.endswith("sharedStrings.xml") and part.file_size > _SHARED:
            raise InputError("texts-workbook-take-more", path=path, shared=_SHARED >> 20)
    check_unpacked(
        sum(part.file_size for part in members), sum(part.compress_size for part in members), source.limit, path
    )
    return file


def _sheet(book: Any, file: Any, source: Source) -> _Sheet:
    """The sheet that was named, or the only one with a table."""
    begun: dict[str, list[_Row]] = {}
    for sheet in book.worksheets:
        sheet.reset_dimensions()  # what a file says of its size is wrong in some exports, which would lose columns
        begun[sheet.title] = list(islice(sheet.iter_rows(values_only=True), _LOOKED_AT))
    metadata, types = _beside(book, begun, source)
    wanted = source.layout.sheet
    tables = [name for name, rows in begun.items() if any(_filled(row) >= 3 for row in rows)]
    if wanted is None and len(tables) > 1:
        raise InputError(
            "sheets-data", path=source.path, among=tables, number=len(tables), names=", ".join(map(repr, tables))
        )
    if wanted is not None and wanted not in begun:
        raise InputError(
            "no-sheet",
            path=source.path,
            among=tables,
            wanted=wanted,
            meant=meant(wanted, begun),
            names=", ".join(map(repr, begun)),
        )
    chosen = wanted if wanted is not None else next(iter(tables), None)
    if chosen is None:
        raise InputError("no-sheet-workbook-table", path=source.path, names=", ".join(map(repr, begun)))
    if not any(map(_filled, begun[chosen])):
        raise InputError("sheet-empty", path=source.path, chosen=chosen)
    others = [name for name, rows in begun.items() if name != chosen and any(map(_filled, rows))]
    said = [Remark("other-sheets", ", ".join(map(repr, others)), len(others))] if others else []
    place = _header_of(begun[chosen], source)
    if place:
        titles = sum(map(bool, map(_filled, begun[chosen][: place - 1])))
        said += [Remark("title-lines", f"the header is on line {place}", titles, 1)] if titles else []
    _check(book[chosen], file)
    lines, columns = _columns(book[chosen].iter_rows(values_only=True, min_row=place + 1), place, source)
    names = begun[chosen][place - 1] if place else ()
    return _Sheet(*_named(names, columns), lines, tuple(said), tuple(tables), metadata, types)


def _check(sheet: Any, file: Any) -> None:
    """Refuse a sheet of which openpyxl would leave out rows or cells without a word."""
    place = getattr(sheet, "_worksheet_path", None)  # which nothing public tells
    if place is not None:
        with zipfile.ZipFile(file) as parts, parts.open(place) as cells:
            check_cells(cast(BinaryIO, cells))


def _beside(book: Any, begun: dict[str, list[_Row]], source: Source) -> tuple[Metadata, Mapping[str, str]]:
    """What the sheet that veilog writes beside the events says; it is taken from those that may be the log."""
    if not is_beside(BESIDE, begun.get(BESIDE, [])):
        return Metadata(), {}
    del begun[BESIDE]
    try:
        return said_beside(book[BESIDE].iter_rows(values_only=True))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            "metadata-veilog-left-sheet", path=source.path, beside=BESIDE, reason=str(error)[:200]
        ) from error


def _header_of(rows: list[_Row], source: Source) -> int:
    """The line of the header, from 1 on; 0 where there is none."""
    declared = source.layout.header
    if declared is None:
        width = max(map(len, rows))
        return 1 + header_among([[*map(_text, row), *[""] * (width - len(row))] for row in rows])
    if declared > len(rows):
        raise InputError("no-header-line-sheet", path=source.path, declared=declared)
    return declared


def _filled(row: _Row) -> int:
    return sum(value is not None and value != "" for value in row)


def _columns(rows: Iterable[_Row], place: int, source: Source) -> tuple[list[int], list[list[Any]]]:
    """The rows that are not blank, by column, and the lines they are on."""
    lines: list[int] = []
    columns: list[list[Any]] = []
    cells = 0
    for line, row in enumerate(rows, place + 1):
        cells += len(row) + 1
        if cells > _CELLS:
            raise InputError("sheet-more-million-cells", path=source.path, line=line, cells=_CELLS // 1000000)
        width = next((place for place in range(len(row), 0, -1) if row[place - 1] not in (None, "")), 0)
        if not width:
            continue
        while len(columns) < width:
            columns.append([None] * len(lines))
        for column, value in zip(columns, (*row[:width], *[None] * (len(columns) - width)), strict=True):
            column.append(value)
        lines.append(line)
    return lines, columns


def _named(header: _Row, columns: list[list[Any]]) -> tuple[list[str], list[list[Any]]]:
    """The names of the columns, and these."""
    names = [_text(value) for value in header]
    while names and not names[-1]:
        names.pop()
    rows = len(columns[0]) if columns else 0
    columns = columns + [[None] * rows for _ in range(len(names) - len(columns))]
    names += [""] * (len(columns) - len(names))
    return [name or f"column {place}" for place, name in enumerate(names, 1)], columns


def _typed(values: list[Any], declared: str | None) -> Any:
    """A column in the type that it is said to have, or that all its cells have, else as text."""
    made = None if declared is None else as_declared(values, declared)
    if made is not None:
        return made
    kinds = {type(value) for value in values if value is not None}
    try:
        if kinds and kinds <= {datetime, date}:
            stamps = (datetime(v.year, v.month, v.day) if type(v) is date else v for v in values)  # noqa: DTZ001
            return pa.array(list(stamps), pa.timestamp("us"))
        if kinds == {bool}:
            return pa.array(values, pa.bool_())
        if kinds == {int}:
            return pa.array(values, pa.int64())
        if kinds and kinds <= {int, float}:
            return pa.array(values, pa.float64())
    except (pa.ArrowException, OverflowError, ValueError):
        pass  # whole numbers beyond 64 bits, times with a zone beside times without: as text
    return _in_text(values)


def _in_text(values: list[Any], *, times: bool = False, utc: bool = False) -> Any:
    """Each cell as text, by itself; ``times``: numbers are times, too, and ``utc``: those of Excel are in UTC."""
    texts = [None if value is None else _time_in_text(value, utc) if times else _text(value) for value in values]
    return pa.array(texts, pa.string())


def _time_in_text(value: Any, utc: bool) -> str:
    if type(value) is float:
        return number_of_time(value)
    return f"{value.isoformat(' ')}+00:00" if utc and isinstance(value, datetime) else _text(value)


def _text(value: Any) -> str:
    """A cell as text: what it would be in a CSV file, with times as in ISO 8601."""
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
    if isinstance(value, float) and value.is_integer() and abs(value) < 1 << 53:
        return str(int(value))
    return str(value)
