"""Written workbooks come back whole, with nothing computed and no silent loss."""

from __future__ import annotations

import io
import os
import sys
import zipfile
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused, sentence
from table_tools import found, same

import veilog
from veilog.cli import main
from veilog.errors import InputError, MissingExtraError, OutputError
from veilog.logs import files
from veilog.logs.eventlog import ACTIVITY, CASE, TIMESTAMP, EventLog
from veilog.logs.metadata import Attribute, Metadata
from veilog.logs.synthetic.hospital import hospital
from veilog.logs.tables import excel

openpyxl = pytest.importorskip("openpyxl")

AT = datetime.fromisoformat("2024-03-13T08:15:00+00:00")
FORMULAS = ["_x0041_", "=1+1", "=HYPERLINK(1)", "#N/A", "#REF!", "+1", "@x", "-2", "=", "'=1"]
RELEASE = ["-m", "evolve", "--epsilon", "1", "--activities", "log", "--no-compare", "--no-ledger"]


def log_of(**columns: list[Any]) -> EventLog:
    rows = len(next(iter(columns.values())))
    usual = {CASE: [str(i) for i in range(rows)], ACTIVITY: ["a"] * rows, TIMESTAMP: [AT] * rows}
    return veilog.read(pa.table(usual | columns))


def out_and_back(log: EventLog, folder: Path, **options: Any) -> EventLog:
    files.write(log, folder / "log.xlsx", overwrite=True, **options)
    return files.read(folder / "log.xlsx")


def cells(path: Path, sheet: str = "events") -> list[tuple[Any, ...]]:
    return list(openpyxl.load_workbook(path)[sheet].iter_rows(values_only=True))


def test_a_log_comes_back_with_every_type(tmp_path: Path) -> None:
    log = log_of(
        text=["007", "1e5", None, "ü\n,;"],
        whole=[1, None, 2**62, -5],
        number=[1.0, 0.1, None, float("inf")],
        truth=[True, None, False, True],
        when=[AT, None, AT.replace(microsecond=123000), AT.replace(year=9999)],
        nothing=pa.array([None] * 4, pa.string()),
    )
    log = EventLog(log.events, log.cases, Metadata(version="1.0", attributes=(Attribute("made", AT, "date"),)))
    again = out_and_back(log, tmp_path)
    same(again, log)
    assert again.metadata == log.metadata
    assert not found(again), "neither the zone nor the second sheet is a finding"
    assert again.variants == files.read_variants(tmp_path / "log.xlsx")


@pytest.mark.slow
def test_the_columns_are_those_of_csv_and_dates_are_dates(tmp_path: Path) -> None:
    log = hospital(20, seed=1)
    files.write(log, tmp_path / "log.xlsx")
    files.write(log, tmp_path / "log.csv")
    (header, first, *_), text = cells(tmp_path / "log.xlsx"), (tmp_path / "log.csv").read_text().splitlines()
    assert list(header) == text[0].replace('"', "").split(",")
    place = header.index(TIMESTAMP)
    assert isinstance(first[place], datetime)
    assert first[place].isoformat(" ") == text[1].split(",")[place][:19]
    same(files.read(tmp_path / "log.xlsx"), files.read(tmp_path / "log.csv"))


def test_text_is_text_and_never_a_formula(tmp_path: Path) -> None:
    rows = len(FORMULAS)
    log = veilog.read(pa.table({CASE: FORMULAS, ACTIVITY: FORMULAS, TIMESTAMP: [AT] * rows, "=x": FORMULAS}))
    again = out_and_back(log, tmp_path)
    same(again, log)
    for sheet in openpyxl.load_workbook(tmp_path / "log.xlsx"):
        for row in sheet.iter_rows():
            assert {cell.data_type for cell in row} <= {"s", "d", "n"}
            assert all(cell.quotePrefix for cell in row if str(cell.value)[:1] in ("=", "#"))
    assert b"<f>" not in zipfile.ZipFile(tmp_path / "log.xlsx").read("xl/worksheets/sheet1.xml")


def test_equal_logs_give_equal_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = hospital(20, seed=1)
    files.write(log, tmp_path / "one.xlsx")
    monkeypatch.setattr("time.time", lambda: 2_000_000_000.0)
    os.utime(tmp_path / "one.xlsx", (0, 0))
    files.write_pieces([log], tmp_path / "two.xlsx")
    assert (tmp_path / "one.xlsx").read_bytes() == (tmp_path / "two.xlsx").read_bytes()
    assert b"dcterms:created" not in zipfile.ZipFile(tmp_path / "one.xlsx").read("docProps/core.xml")


@pytest.mark.parametrize(
    ("columns", "words", "kept"),
    [
        ({"when": [AT.replace(year=1899)]}, "times before 1900", ["1899-03-13 08:15:00"]),
        ({"when": [AT.replace(microsecond=1)]}, "finer than a millisecond", [AT]),
        ({"text": ["a\x00b"]}, "control characters", ["a\ufffdb"]),
        ({"text": ["x" * 32_768]}, "more than 32,767 characters", ["x" * 32_767]),
    ],
)
def test_what_excel_would_change_is_refused_unless_told_otherwise(
    tmp_path: Path, columns: dict[str, list[Any]], words: str, kept: list[Any]
) -> None:
    log = log_of(**columns)
    with pytest.raises(OutputError, match=words):
        files.write(log, tmp_path / "log.xlsx")
    assert not list(tmp_path.iterdir())
    again = out_and_back(log, tmp_path, lossy=True)
    (name,) = columns
    held = again.events[name] if name in again.events.column_names else again.cases[name]
    assert held.to_pylist() == kept


def test_cases_without_events_and_of_one_name_are_refused_as_in_csv(tmp_path: Path) -> None:
    log = hospital(20, seed=1)
    empty = EventLog(log.events, pa.concat_tables([log.cases, log.cases.slice(0, 1)]))
    with refused(OutputError, "cases-without-event", empty=1, what="a workbook"):
        files.write(empty, tmp_path / "log.xlsx")


@pytest.mark.slow
def test_more_events_than_a_sheet_has_rows_are_refused_and_leave_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert excel.MOST_EVENTS == 1_048_575
    log = hospital(60, seed=1)
    files.write(log, tmp_path / "log.csv")
    monkeypatch.setattr("veilog.cli.confirmation.MOST_EVENTS", len(log) - 1)  # first: it is imported with that
    monkeypatch.setattr(excel, "MOST_EVENTS", len(log) - 1)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for pieces in ([log], [log.only(range(30)), log.only(range(30, 60))]):
        with refused(OutputError, "sheet-events-too-many"):
            files.write_pieces(pieces, tmp_path / "out.xlsx")
    ledger = ["--ledger", str(tmp_path / "l.ledger")]
    assert main(["ledger", "set", str(tmp_path / "log.csv"), "--epsilon", "3", *ledger]) == 0
    before = (tmp_path / "l.ledger").read_bytes()
    capsys.readouterr()
    assert main(["release", str(tmp_path / "log.csv"), str(tmp_path / "out.xlsx"), *RELEASE[:-1], *ledger]) == 5
    assert sentence("room-sheet-too-small", most_events=len(log) - 1) in " ".join(capsys.readouterr().err.split())
    assert (tmp_path / "l.ledger").read_bytes() == before, "nothing was charged"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["l.ledger", "log.csv"]


@pytest.mark.nightly
def test_a_release_keeps_its_guarantee_for_reports_and_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    files.write(hospital(60, seed=1), "log.csv")
    assert main(["release", "log.csv", "out.xlsx", *RELEASE]) == 0
    assert "veilog report out.xlsx" in " ".join(capsys.readouterr().out.split())
    assert main(["report", "out.xlsx", "page.html"]) == 0
    assert main(["dossier", "out.xlsx", "dossier.md"]) == 0
    assert main(["info", "out.xlsx"]) == 0
    said = dict(row for row in cells(Path("out.xlsx"), "veilog") if row[0] != "for veilog")
    assert said["privacy:anonymizations / privacy:operation1 / privacy:epsilon"] == "1.0"
    assert main(["convert", "out.xlsx", "out.xes"]) == 0
    assert files.read("out.xes").metadata.attributes == files.read("out.xlsx").metadata.attributes
    capsys.readouterr()
    assert main(["convert", "log.csv", "out.xlsx"]) == 5
    assert "--overwrite" in capsys.readouterr().err
    assert main(["convert", "log.csv", "plain.xlsx"]) == 0
    assert main(["release", "log.csv", "plain.xlsx", *RELEASE]) == 5, "whatever it holds"
    assert main(["release", "log.csv", "plain.xlsx", *RELEASE, "--overwrite"]) == 0


@pytest.mark.slow
def test_a_workbook_that_is_no_release_is_not_vouched_for(tmp_path: Path) -> None:
    files.write(hospital(60, seed=1), tmp_path / "raw.xlsx")
    released = veilog.release(hospital(60, seed=1), "evolve", epsilon=1, activities="log")
    with refused(InputError, "report-not-of-release"):
        veilog.report.write(released, tmp_path / "page.html", files=(tmp_path / "raw.xlsx",))


@pytest.mark.slow
def test_a_sheet_beside_that_is_damaged_is_said_and_others_of_its_name_are_read(tmp_path: Path) -> None:
    files.write(hospital(20, seed=1), tmp_path / "log.xlsx")
    book = openpyxl.load_workbook(tmp_path / "log.xlsx")
    del book["veilog"]["B2"]
    book["veilog"].delete_rows(2, 9)
    book.save(tmp_path / "damaged.xlsx")
    with refused(InputError, "sheet-metadata-damaged", beside="veilog"):
        files.read(tmp_path / "damaged.xlsx")
    del book["veilog"]
    book["events"].title = "veilog"
    book.save(tmp_path / "other.xlsx")
    same(files.read(tmp_path / "other.xlsx"), hospital(20, seed=1))


def test_cells_that_somebody_changed_are_read_as_they_are(tmp_path: Path) -> None:
    files.write(log_of(whole=[1, 2]), tmp_path / "log.xlsx")
    book = openpyxl.load_workbook(tmp_path / "log.xlsx")
    sheet = book["events"]
    sheet.cell(2, [cell.value for cell in sheet[1]].index("whole") + 1).value = "two"
    book.save(tmp_path / "log.xlsx")
    again = files.read(tmp_path / "log.xlsx")
    assert again.events["whole"].to_pylist() == ["two", "2"]


def test_without_openpyxl_it_is_refused_before_anything_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(MissingExtraError, match=r"veilog\[excel\]"):
        files.check_target(tmp_path / "out.xlsx")


def test_standard_output_takes_a_workbook(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    files.write(hospital(20, seed=1), tmp_path / "log.csv")
    assert main(["convert", str(tmp_path / "log.csv"), "-", "--to", "xlsx"]) == 0
    assert "xl/workbook.xml" in zipfile.ZipFile(io.BytesIO(capfdbinary.readouterr().out)).namelist()


texts = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff"), min_size=1, max_size=6
)


@pytest.mark.nightly
@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(texts, st.integers(-(2**63), 2**63 - 1), st.floats(-1e300, 1e300)), min_size=1, max_size=9))
def test_any_text_and_number_survives(tmp_path_factory: pytest.TempPathFactory, data: list[Any]) -> None:
    text, whole, number = zip(*data, strict=True)
    log = log_of(text=list(text), whole=list(whole), number=list(number))
    again = out_and_back(log, tmp_path_factory.mktemp("round", numbered=True))
    assert again.events["number"].to_pylist() == pytest.approx(log.events["number"].to_pylist(), rel=1e-15)
    others = (EventLog(one.events.drop_columns(["number"]), one.cases) for one in (again, log))
    same(*others)
