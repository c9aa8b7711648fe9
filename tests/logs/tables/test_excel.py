"""Workbooks of Excel: cells by their types, the right sheet, and no more unpacked."""

from __future__ import annotations

import io
import re
import sys
import zipfile
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import pytest
from refusals import refused
from table_tools import found, times

import veilog
from veilog.errors import InputError, MissingExtraError
from veilog.logs.tables import excel

openpyxl = pytest.importorskip("openpyxl")

HEADER = ["case", "activity", "timestamp"]
AT = datetime(2024, 3, 13, 8, 15)


def written(folder: Path, *rows: list[Any], name: str = "log.xlsx", **sheets: list[list[Any]]) -> Path:
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    for title, more in sheets.items():
        sheet = book.create_sheet(title)
        for row in more:
            sheet.append(row)
    book.save(folder / name)
    return folder / name


def changed(path: Path, part: str, change: Any) -> Path:
    """The workbook with another part in it."""
    with zipfile.ZipFile(path) as old:
        parts = {item.filename: old.read(item) for item in old.infolist()}
    parts[part] = change(parts[part])
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name, content in parts.items():
            new.writestr(name, content)
    return path


def test_cells_keep_their_types(tmp_path: Path) -> None:
    cells = {
        "text": ["007", "1e5", None],
        "whole": [1, 2, None],
        "number": [1.5, 2, None],
        "truth": [True, False, None],
        "day": [date(2024, 3, 1), None, AT],
        "clock": [time(8, 15), time(9, 0, 30), None],
        "span": [timedelta(hours=30), None, None],
        "mixed": [1, "a", AT],
        "nothing": [None, None, None],
    }
    rows = [[1, "a", AT + timedelta(hours=place), *(cells[name][place] for name in cells)] for place in range(3)]
    log = veilog.read(written(tmp_path, [*HEADER, *cells], *rows))
    assert log.cases["concept:name"].to_pylist() == ["1"]
    assert times(log)[0] == "2024-03-13T08:15:00+00:00"
    held = {name: log.events[name].to_pylist() for name in cells}
    day = [None if found_ is None else found_.strftime("%Y-%m-%d %H:%M") for found_ in held.pop("day")]
    assert day == ["2024-03-01 00:00", None, "2024-03-13 08:15"]
    assert held == {
        "text": ["007", "1e5", None],
        "whole": [1, 2, None],
        "number": [1.5, 2.0, None],
        "truth": [True, False, None],
        "clock": ["08:15:00", "09:00:30", None],
        "span": ["1 day, 6:00:00", None, None],
        "mixed": ["1", "a", "2024-03-13 08:15:00"],
        "nothing": [None, None, None],
    }


def test_lines_are_those_of_the_sheet(tmp_path: Path) -> None:
    """Blank rows count for the line, and are no rows."""
    path = written(tmp_path, ["Export"], [], HEADER, [1, "a", AT], [], [1, "b", "soon"])
    with refused(InputError, "finding-with-example", rule="bad-timestamp", example="'soon'") as caught:
        veilog.read(path)
    assert str(caught.value.path).endswith("log.xlsx")
    assert caught.value.line == 6
    assert found(veilog.read(path, policies={"bad-timestamp": "drop"}))["title-lines"] == 1


def test_a_size_that_a_file_says_wrongly_loses_no_column(tmp_path: Path) -> None:
    path = written(tmp_path, [*HEADER, "ward"], [1, "a", AT, "x"])
    changed(path, "xl/worksheets/sheet1.xml", lambda xml: re.sub(rb'ref="[A-Z0-9:]+"', b'ref="A1"', xml))
    assert veilog.read(path).events["ward"].to_pylist() == ["x"]


def test_a_header_may_be_told_and_columns_beyond_it_have_places(tmp_path: Path) -> None:
    path = written(tmp_path, ["a", "b", "c"], ["k", "l", "m"], [1, "x", AT, "more"])
    log = veilog.read(path, header=2, case="k", activity="l", timestamp="m")
    assert log.events["column 4"].to_pylist() == ["more"]
    names = {"case": "column 1", "activity": "column 2", "timestamp": "column 3"}
    assert len(veilog.read(written(tmp_path, [1, "x", AT]), header=0, **names)) == 1
    with refused(InputError, "sheet-header-missing", declared=7):
        veilog.read(path, header=7)


def test_a_sheet_that_is_not_there_is_refused_with_those_that_are(tmp_path: Path) -> None:
    path = written(tmp_path, HEADER, [1, "a", AT], Notes=[["x"]])
    with refused(InputError, "sheet-missing", wanted="Log", names="'Sheet', 'Notes'"):
        veilog.read(path, sheet="Log")
    with refused(InputError, "sheet-empty", chosen="Empty"):
        veilog.read(written(tmp_path, HEADER, [1, "a", AT], Empty=[]), sheet="Empty")
    with refused(InputError, "sheet-none-with-table"):
        veilog.read(written(tmp_path, ["only", "two"]))


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "file-empty"),
        (b"case,activity,timestamp\n", "workbook-not-excel"),
        (b"PK\x03\x04" + bytes(100), "workbook-not-excel"),
    ],
)
def test_what_is_no_workbook_is_refused(tmp_path: Path, content: bytes, code: str) -> None:
    path = tmp_path / "log.xlsx"
    path.write_bytes(content)
    with refused(InputError, code):
        veilog.read(path)
    with refused(InputError, "file-missing"):
        veilog.read(tmp_path / "none.xlsx")


def test_a_zip_of_something_else_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "log.xlsx", "w") as archive:
        archive.writestr("a.txt", "a")
    with refused(InputError, "workbook-not-readable"):
        veilog.read(tmp_path / "log.xlsx")


def test_a_damaged_part_is_refused(tmp_path: Path) -> None:
    path = changed(written(tmp_path, HEADER, [1, "a", AT]), "xl/worksheets/sheet1.xml", lambda xml: xml[:-40])
    with refused(InputError, "workbook-not-readable"):
        veilog.read(path)


def test_a_workbook_unpacks_to_no_more_than_is_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, HEADER, *([1, "a", AT] for _ in range(2000)))
    with refused(InputError, "file-unpacked-too-large", limit=5000):
        veilog.read(path, limit=5000)
    monkeypatch.setattr(excel, "_CELLS", 4000)
    with refused(InputError, "sheet-cells-too-many") as caught:
        veilog.read(path)
    assert str(caught.value.path).endswith("log.xlsx")
    monkeypatch.setattr(excel, "_SHARED", 10)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("xl/sharedStrings.xml", bytes(11))
    with refused(InputError, "workbook-texts-too-large"):
        veilog.read(path)


def test_a_size_that_is_a_lie_brings_no_more_out(tmp_path: Path) -> None:
    """A part larger than its declared size is cut off and refused."""
    path = written(tmp_path, HEADER, *([1, "a", AT] for _ in range(500)))
    raw = bytearray(path.read_bytes())
    with zipfile.ZipFile(io.BytesIO(bytes(raw))) as archive:
        size = archive.getinfo("xl/worksheets/sheet1.xml").file_size
    place = raw.rfind(b"xl/worksheets/sheet1.xml") - 46 + 24  # in the directory at the end
    assert int.from_bytes(raw[place : place + 4], "little") == size
    raw[place : place + 4] = (size // 4).to_bytes(4, "little")
    path.write_bytes(raw)
    with refused(InputError, "workbook-not-readable"):
        veilog.read(path)


def test_without_calamine_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, HEADER, [1, "a", AT])
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    with refused(MissingExtraError, "extra-missing"):
        veilog.read(path)


def _changed(tmp_path: Path, pattern: str, put: str) -> Path:
    """A workbook of three cases, with something else in the XML of its sheet."""
    book = openpyxl.Workbook()
    book.active.append(["case", "activity", "timestamp", "cost"])
    for case in "abc":
        book.active.append([case, "start", "2024-03-01", 1])
    book.save(tmp_path / "plain.xlsx")
    with zipfile.ZipFile(tmp_path / "plain.xlsx") as old, zipfile.ZipFile(tmp_path / "log.xlsx", "w") as new:
        for name in old.namelist():
            text = old.read(name)
            new.writestr(name, re.sub(pattern.encode(), put.encode(), text) if "sheet1" in name else text)
    return tmp_path / "log.xlsx"


@pytest.mark.parametrize(
    ("pattern", "put", "code", "where"),
    [
        ('<row r="2"', '<row r="9"', "workbook-not-readable", " A2 "),
        ('<row r="3"(.*?)A3(.*?)B3(.*?)C3(.*?)D3', r'<row r="2"\1A2\2B2\3C2\4D2', "workbook-not-readable", " 2"),
        ('r="C3"', 'r="B3"', "workbook-not-readable", " B3"),
        ('r="C3"', 'r="ZZZZ3"', "workbook-not-readable", "ZZZZ"),
        ('<c r="D3"[^>]*>.*?</c>', '<c r="D3"><f>D2+1</f></c>', "workbook-not-readable", " 3 "),
        ('r="D3"', 'r="XFD1048576"', "workbook-not-readable", " XFD1048576 "),
        (
            '<row r="4".*?</row>',
            '<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>',
            "sheet-cells-too-many",
            " 60 ",
        ),
        ('<c r="A3"[^>]*>.*?</c>', '<c r="A3"><v>12345678901234567</v></c>', "number-column-more-digits", "case"),
    ],
)
def test_what_calamine_would_leave_out_without_a_word_is_refused(
    tmp_path: Path, pattern: str, put: str, code: str, where: str
) -> None:
    with refused(InputError, code) as caught:
        veilog.read(_changed(tmp_path, pattern, put))
    assert where in str(caught.value)


@pytest.mark.parametrize(
    ("pattern", "put"),
    [
        ('<row r="2"(.*?)A2(.*?)B2(.*?)C2(.*?)D2', r'<row r="9"\1A9\2B9\3C9\4D9'),
        ('(<row r="2".*?</row>)(.*)(</sheetData>)', r"\2\1\3"),
        ('(<c r="A3".*?</c>)(.*?)(</row>)', r"\2\1\3"),
        ('<c r="D3"[^>]*>.*?</c>', '<c r="D3" t="e"><v>#N/A</v></c>'),
    ],
)
def test_rows_and_cells_out_of_order_are_all_read(tmp_path: Path, pattern: str, put: str) -> None:
    log = veilog.read(_changed(tmp_path, pattern, put))
    assert sorted(log.cases["concept:name"].to_pylist()) == ["a", "b", "c"]
    assert log.variants.to_dict() == {("start",): 3}


def test_rows_and_cells_without_numbers_follow_each_other(tmp_path: Path) -> None:
    assert veilog.read(_changed(tmp_path, r' r="\w+"', "")).number_of_cases == 3
    assert veilog.read(_changed(tmp_path, '<c r="D3"[^>]*>.*?</c>', '<c r="D3" t="str"><f>A1</f><v/></c>')).variants
