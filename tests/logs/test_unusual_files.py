"""Files that are not ordinary, not readable or no log are named for what they are."""

from __future__ import annotations

import os
import socket
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest
from refusals import refused
from xes_tools import trace

import veilog
from veilog import _files
from veilog.errors import InputError, ParameterError
from veilog.logs.input.source import MAX_VALUE

ROWS = "case,activity,time\n1,a,2024-01-01\n"
PIPES = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")


@PIPES
@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".xes", ".json", ".parquet", ".xlsx"])
def test_a_pipe_to_which_nobody_writes_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str) -> None:
    monkeypatch.setattr(_files, "_PATIENCE", 0.1)
    path = tmp_path / f"log{suffix}"
    os.mkfifo(path)
    with refused(InputError, "file-not-readable", "format-not-from-pipe"):
        veilog.read(path)


@PIPES
def test_a_list_may_come_through_a_pipe() -> None:
    reader, writer = os.pipe()
    os.write(writer, b"Register\nTriage\n")
    os.close(writer)
    try:
        assert _files.text_of(Path(f"/dev/fd/{reader}")) == "Register\nTriage\n"
    finally:
        os.close(reader)


@contextmanager
def without_rights() -> Iterator[None]:
    """Not as the system's owner, who may read everything."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


@pytest.mark.skipif(os.name != "posix", reason="rights are POSIX")
@pytest.mark.parametrize("name", ["log.csv", "log.parquet", "log.xlsx", "log.xes"])
def test_a_file_that_may_not_be_read_is_not_called_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    tmp_path.chmod(0o755)
    Path(name).write_text(ROWS)
    Path(name).chmod(0)
    with without_rights(), pytest.raises(InputError, match="Permission denied") as caught:
        veilog.read(name)
    assert caught.value.advice is not None and "right" in caught.value.advice


@pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="there are no such sockets")
def test_sockets_and_devices_are_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as other:
        other.bind("log.csv")
        Path("zero.csv").symlink_to("/dev/zero")
        for name in ("log.csv", "zero.csv"):
            with refused(InputError, "file-is-socket"):
                veilog.read(name)


def test_a_folder_with_what_may_not_be_looked_at_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(path: Path) -> bool:
        raise PermissionError(13, "Permission denied", str(path))

    (tmp_path / "log.csv").write_text(ROWS)
    monkeypatch.setattr(Path, "is_file", denied)
    with refused(InputError, "folder-file-not-readable"):
        veilog.read_variants(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("size", [MAX_VALUE + 1, 17 << 20])
def test_a_value_beyond_the_limit_is_refused_with_its_line(tmp_path: Path, size: int) -> None:
    path = tmp_path / "log.xes"
    event = f'<event><string key="concept:name" value="{"x" * size}"/></event>'
    path.write_text(f"<log>\n{trace(event)}</log>")
    with refused(InputError, "xes-tag-too-long", max_value=16) as caught:
        veilog.read(path)
    assert caught.value.line == 2


def test_a_workbook_whose_zip_is_of_a_later_version_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("openpyxl")
    path = tmp_path / "log.xlsx"
    veilog.write(veilog.read(pa.table({"case": ["1"], "activity": ["a"], "time": ["2024-01-01"]})), path)
    content = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as parts:
        directory = parts.start_dir
    content[directory + 6] = 147  # the version that is needed to unpack the first part
    path.write_bytes(content)
    with pytest.raises(InputError):
        veilog.read(path)


@pytest.mark.parametrize("wrong", ["99/99/2024", "45/10/2024", "0/5/2024", "13/13/2024"])
def test_what_is_no_date_says_nothing_about_the_order_of_day_and_month(tmp_path: Path, wrong: str) -> None:
    path = tmp_path / "log.csv"
    path.write_text(ROWS + f"2,a,{wrong}\n3,a,25/12/2024\n")
    with pytest.raises(InputError) as caught:
        veilog.read(path)
    assert repr(wrong) in caught.value.problem and "Day and month" not in caught.value.problem
    log = veilog.read(path, policies={"bad-timestamp": "drop"})
    assert [str(time)[:10] for time in log.events["time:timestamp"].to_pylist()] == ["2024-01-01", "2024-12-25"]


RUN = ["=1+1", "+1", "-x", "@a", "\tx", "plain", "a=b"]


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".csv.gz"])
def test_nothing_of_a_text_for_spreadsheets_is_run(tmp_path: Path, suffix: str) -> None:
    table = pa.table(
        {
            "case": [f"={place}" for place in range(len(RUN))],
            "activity": RUN,
            "time": ["2024-01-01"] * len(RUN),
            "=name": pa.array(range(-1, len(RUN) - 1)),
        }
    )
    log = veilog.read(table)
    veilog.write(log, tmp_path / f"safe{suffix}", spreadsheet_safe=True)
    veilog.write(log, tmp_path / f"plain{suffix}")
    safe, plain = (veilog.read(tmp_path / f"{name}{suffix}") for name in ("safe", "plain"))
    assert set(plain.variants.labels) == set(RUN)
    assert set(safe.variants.labels) == {"'=1+1", "'+1", "'-x", "'@a", "'\tx", "plain", "a=b"}
    assert all(str(case).startswith("'=") for case in safe.cases["concept:name"].to_pylist())
    assert safe.events["'=name"].to_pylist() == plain.events["=name"].to_pylist(), "numbers are no texts"


def test_no_other_format_needs_that(tmp_path: Path) -> None:
    log = veilog.read(pa.table({"case": ["1"], "activity": ["=1"], "time": ["2024-01-01"]}))
    with pytest.raises(ParameterError) as caught:
        veilog.write(log, tmp_path / "log.xes", spreadsheet_safe=True)
    assert caught.value.parameter == "spreadsheet_safe"
    assert not list(tmp_path.iterdir())
