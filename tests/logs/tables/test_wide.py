"""Wide tables are recognised and refused, and the Python in the error melts them."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
import pyarrow.parquet as pq
import pytest
from refusals import refused

import veilog
from veilog.errors import InputError
from veilog.logs.input.loader import roles_of
from veilog.logs.input.source import ReadOptions, Source

HEADER = ["visit", "Größe", "Aufnahme", "Röntgen", "Labor", "Entlassung"]
ROWS = [
    ["v1", "007", "2024-03-01 08:00", "", "2024-03-01 09:30", "2024-03-02 10:00"],
    ["v2", "11", "2024-03-02 07:00", "2024-03-02 08:00", "2024-03-02 09:30", ""],
]
VARIANTS = {("Aufnahme", "Labor", "Entlassung"): 1, ("Aufnahme", "Röntgen", "Labor"): 1}


def as_text(sign: str, encoding: str, before: str = "") -> bytes:
    return (before + "\n".join(sign.join(row) for row in [HEADER, *ROWS]) + "\n").encode(encoding)


def as_workbook(path: Path) -> None:
    book = openpyxl.Workbook()
    book.active.title = "Aufenthalte"
    book.active.append(["Export vom 1. April"])
    book.active.append([])
    book.active.append(HEADER)
    for row in ROWS:
        book.active.append([*row[:2], *(pd.Timestamp(time).to_pydatetime() if time else None for time in row[2:])])
    book.create_sheet("Legende").append(["nichts"])
    book.save(path)


def made(given: Any, log: Any, folder: Path) -> Path:
    """Return the file that the Python in the error writes in a folder."""
    with refused(InputError, "table-wide", number=4) as caught:
        veilog.read(given)
    said = dict(caught.value.message.values)
    python = said["python"]
    assert python in str(caught.value)
    with contextlib.chdir(folder):
        exec(python, {"log": log})  # what a user pastes
    return folder / "events.csv"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("wide.csv", as_text(",", "utf-8")),
        ("wide.csv", as_text(";", "cp1252")),
        ("wide.csv", as_text(";", "utf-8-sig", "Export, 1. April\n\n")),
        ("wide.csv", as_text("\t", "utf-16")),
        ("it's wide.tsv", as_text("\t", "utf-8")),
    ],
)
def test_a_wide_text_becomes_events_by_the_line_that_is_shown(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    log = veilog.read(made(tmp_path / name, None, tmp_path), case="visit")
    assert log.variants.to_dict() == VARIANTS
    assert set(log.events["Größe"].to_pylist()) == {"007", "11"}
    with refused(InputError, "table-wide"):
        veilog.read_variants(tmp_path / name)


@pytest.mark.parametrize("kind", ["xlsx", "parquet", "pandas", "arrow"])
def test_other_wide_tables_become_events_too(tmp_path: Path, kind: str) -> None:
    frame = pd.DataFrame(ROWS, columns=HEADER)
    frame = frame.assign(**{name: pd.to_datetime(frame[name].replace("", None)) for name in HEADER[2:]})
    given: Any = tmp_path / f"wide.{kind}"
    frame.to_parquet(tmp_path / "wide.parquet")
    as_workbook(tmp_path / "wide.xlsx")
    given = {"pandas": frame, "arrow": pq.read_table(tmp_path / "wide.parquet")}.get(kind, given)
    assert veilog.read(made(given, given, tmp_path), case="visit").variants.to_dict() == VARIANTS


def test_columns_that_are_called_as_the_new_ones_are_in_nobodys_way(tmp_path: Path) -> None:
    (tmp_path / "wide.csv").write_bytes(as_text(",", "utf-8").replace(b"visit,", b"timestamp,", 1))
    log = veilog.read(made(tmp_path / "wide.csv", None, tmp_path), case="timestamp", timestamp="event time")
    assert log.variants.to_dict() == VARIANTS


@pytest.mark.parametrize(
    "rows",
    [
        ["visit,born,admitted,ward", "1,1990-01-01,2024-03-01,a"],  # two times
        ["visit,a,b,c", "1,1,2,3"],
        ["visit,a,b,c", "1,1710316800,1710316800,1710316800"],  # numbers, which may be anything
        ["visit,a,b,c,d", "1,2024-03-01,2024-03-02,no,", "2,2024-03-01,2024-03-02,2024-03-03,"],
        ["visit,a,b,c"],
    ],
)
def test_what_is_not_wide_is_asked_for_its_columns(tmp_path: Path, rows: list[str]) -> None:
    (tmp_path / "log.csv").write_text("\n".join(rows) + "\n")
    with refused(InputError, "column-role-not-found"):
        veilog.read(tmp_path / "log.csv")


def test_a_table_with_activities_is_not_wide_whatever_its_times_are(tmp_path: Path) -> None:
    times = ",".join(["2024-03-01"] * 3)
    (tmp_path / "log.csv").write_text(f"visit,event,a,b,c\n1,x,{times}\n")
    with refused(InputError, "column-role-not-found", role="case"):
        veilog.read(tmp_path / "log.csv")
    (tmp_path / "log.csv").write_text(f"visit,step name,a,b,c\n1,x,{times}\n")
    source = Source(tmp_path / "log.csv", ReadOptions(activity="step name", case="visit"))
    with refused(InputError, "column-role-not-found", role="timestamp"):
        roles_of(source, source.options)
