"""A log as a workbook of Excel: the events on one sheet, and on a second one what the log says of itself.

The columns are those of CSV. Times are dates of Excel, which has no zones: they are in UTC, to the millisecond. Text is
text, also where it looks like a formula, and is never computed. What Excel would change is refused, unless ``lossy``:
then it is written as the nearest thing that Excel keeps. Equal logs give equal bytes.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from veilog.errors import OutputError
from veilog.logs.eventlog import EventLog
from veilog.logs.metadata import Attribute, Metadata, metadata_from, metadata_to
from veilog.logs.tables.cells.columns import written
from veilog.logs.tables.events.flat import check_flat, flat_table

__all__ = ["BESIDE", "MOST_EVENTS", "UTC_TIME", "as_declared", "facts_in", "is_beside", "said_beside", "write_workbook"]

BESIDE = "veilog"
"""The sheet with what the log says of itself, and the first cell of it."""
MOST_EVENTS = (1 << 20) - 1
"""Rows of a sheet, but for the header."""
_EVENTS = "events"
_FACTS = "for veilog"
"""Before each piece of what is read again."""
_LONGEST = 32_767
"""Characters of a cell."""
_PIECE = 30_000
_FIRST = datetime(1900, 3, 1)  # noqa: DTZ001 - before it days are counted in two ways
_EXACT = 10**15
"""Whole numbers from here on have more digits than Excel keeps."""
_ILLEGAL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_TYPES = {"int64": pa.int64(), "double": pa.float64(), "bool": pa.bool_(), "string": pa.string()}
UTC_TIME = "time"
"""What the sheet beside says of a column of times, which Excel holds without their zone: UTC."""
_ADVICE = "Write .xes.gz or .parquet, or accept the loss (--lossy)."
_SAME_DAY = (1980, 1, 1, 0, 0, 0)


def write_workbook(pieces: Iterable[EventLog], file: BinaryIO, target: Path, *, lossy: bool) -> None:
    """Write one log that comes in pieces with the same columns; :class:`OutputError` for what a sheet cannot hold."""
    import openpyxl

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
            _check_rows(rows, target)
            if not number:
                _widen(events, table)
                events.append([_text(events, name) for name in table.column_names])
                beside = [*_beside(log.metadata, {name: _kind(table[name].type) for name in table.column_names})]
            columns = [_cells(events, name, table[name], target, lossy) for name in table.column_names]
            for row in zip(*columns, strict=True):
                events.append(row)
        sheet = book.create_sheet(BESIDE)
        sheet.column_dimensions["A"].width = 48
        sheet.column_dimensions["B"].width = 100
        for row in beside:
            sheet.append([_text(sheet, value) for value in row])
        with tempfile.TemporaryFile() as made:
            book.save(made)
            _copied(made, file)
    finally:
        for sheet in book.worksheets:  # what was written of it so far, if it came to nothing
            with contextlib.suppress(Exception):
                sheet.close()
            with contextlib.suppress(Exception):
                sheet._writer.cleanup()


def is_beside(title: str, rows: Sequence[Sequence[Any]]) -> bool:
    """Return whether a sheet, by its first rows, is the one that is beside the events in a workbook of veilog."""
    return title == BESIDE and bool(rows) and bool(rows[0]) and rows[0][0] == BESIDE


def said_beside(rows: Iterable[Sequence[Any]]) -> tuple[Metadata, dict[str, str]]:
    """Return what that sheet says of the log, and the types of its columns; ValueError or its like if damaged."""
    facts = json.loads(_joined(rows))
    types = {str(name): str(kind) for name, kind in facts["types"].items()}
    return metadata_from(facts["metadata"]), types


def facts_in(path: Path) -> bytes:
    """Return what that sheet of a workbook says of the log, as it is written; nothing where there is none."""
    try:
        import openpyxl

        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        try:
            rows = list(book[BESIDE].iter_rows(values_only=True)) if BESIDE in book.sheetnames else []
        finally:
            book.close()
    except Exception:  # noqa: BLE001 - a damaged workbook fails wherever its XML is used
        return b""
    return _joined(rows).encode() if is_beside(BESIDE, rows) else b""


def as_declared(values: Sequence[Any], kind: str | None) -> Any:
    """Return the cells of a column in the type that it had; None where they have no such type now."""
    given = [v for v in values if v is not None]
    try:
        if kind == UTC_TIME and all(isinstance(v, datetime) for v in given):
            return pa.array(list(values), pa.timestamp("us")).cast(pa.timestamp("us", "UTC"))
        if kind == "string" and all(isinstance(v, str) for v in given):
            return pa.array(list(values), pa.string())
        if kind in ("int64", "double") and not any(isinstance(v, bool) for v in given):
            return pa.array([None if v is None else str(v) for v in values], pa.string()).cast(_TYPES[kind])
        if kind == "bool" and all(isinstance(v, bool) for v in given):
            return pa.array(list(values), pa.bool_())
    except (pa.ArrowException, OverflowError, ValueError):
        pass
    return None


def _joined(rows: Iterable[Sequence[Any]]) -> str:
    return "".join(str(row[1]) for row in rows if len(row) > 1 and row[0] == _FACTS)


def _check_rows(rows: int, target: Path) -> None:
    if rows > MOST_EVENTS:
        raise OutputError("sheet-excel-holds-events-more", path=target, most_events=MOST_EVENTS)


def _widen(sheet: Any, table: pa.Table) -> None:
    """Make columns wide enough for a time, which Excel shows as #### otherwise."""
    from openpyxl.utils import get_column_letter

    for place in range(1, table.num_columns + 1):
        sheet.column_dimensions[get_column_letter(place)].width = 20


def _kind(kind: pa.DataType) -> str:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return UTC_TIME if pa.types.is_timestamp(kind) else str(kind)


def _cells(sheet: Any, name: str, column: pa.ChunkedArray, target: Path, lossy: bool) -> Iterator[Any]:
    """A column, value by value, as what a cell is made of."""
    kind = column.type

    def lost(what: str) -> None:
        if not lossy:
            raise OutputError("column-excel-does-not", path=target, name=name, what=what)

    one: Callable[[Any], Any]
    if pa.types.is_timestamp(kind):
        values = iter(column.cast(pa.timestamp("us"), safe=False).to_pylist())  # in UTC
        one = lambda value: _time(value, lost)  # noqa: E731
    elif pa.types.is_boolean(kind):
        return iter(column.to_pylist())
    elif pa.types.is_integer(kind) or pa.types.is_floating(kind):
        values = iter(column.to_pylist())
        one = _number
    else:
        values = iter(written(column).cast(pa.string()).to_pylist())
        one = lambda value: _checked(sheet, value, lost)  # noqa: E731
    return (None if value is None else one(value) for value in values)


def _time(value: datetime, lost: Callable[[str], None]) -> datetime | str:
    if value < _FIRST:
        lost("times before 1900")
        return value.isoformat(" ")
    if value.microsecond % 1000:
        lost("times finer than a millisecond")
    return value


def _number(value: float) -> float | str:
    """A number; as text where a cell would change it."""
    if isinstance(value, int):
        return value if abs(value) < _EXACT else str(value)
    return value if math.isfinite(value) else str(value)


def _checked(sheet: Any, value: str, lost: Callable[[str], None]) -> Any:
    if len(value) > _LONGEST:
        lost(f"texts of more than {_LONGEST:,} characters")
        value = value[:_LONGEST]
    if _ILLEGAL.search(value):
        lost("control characters")
        value = _ILLEGAL.sub("\ufffd", value)
    return _text(sheet, value)


def _text(sheet: Any, value: str) -> Any:
    """A cell of text. One that begins as a formula or an error stays text, also when somebody edits it."""
    if not value:
        return None
    if value[0] not in "=#":
        return value
    from openpyxl.cell import WriteOnlyCell

    cell = WriteOnlyCell(sheet, value=value)
    cell.data_type = "s"
    cell.quotePrefix = True
    return cell


def _beside(metadata: Metadata, types: dict[str, str]) -> Iterator[tuple[str, str]]:
    """What the log says of itself: for people, and then in pieces as it is read again."""
    yield (
        BESIDE,
        "What this log says of itself. Times are in UTC. The last lines are for veilog: leave them as they are.",
    )
    for attribute in metadata.attributes:
        yield from _lines(attribute, "")
    facts = json.dumps({"format": 1, "metadata": metadata_to(metadata), "types": types})
    for begin in range(0, len(facts), _PIECE):
        yield _FACTS, facts[begin : begin + _PIECE]


def _lines(attribute: Attribute, before: str) -> Iterator[tuple[str, str]]:
    """An attribute, and those below it, each on a line."""
    name = f"{before}{attribute.key}"[:_LONGEST]
    if attribute.value is not None:
        yield _ILLEGAL.sub("\ufffd", name), _ILLEGAL.sub("\ufffd", str(attribute.value))[:_LONGEST]
    for child in attribute.children:
        yield from _lines(child, f"{name} / ")


def _copied(made: Any, file: BinaryIO) -> None:
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
