"""Delimited text is checked one read at a time, with numbers by its decimal sign."""

from __future__ import annotations

import io
import threading
from pathlib import Path
from typing import Any

import pytest
from refusals import refused

import veilog
from veilog.errors import ParameterError
from veilog.logs import files
from veilog.logs.tables.csv import Dialect, ValidatingStream


@pytest.mark.slow
def test_threads_that_read_at_once_find_no_fault_that_is_none() -> None:
    """Threads that read ahead while the rest is drained never mix up their blocks."""
    data = b'case,activity,time\n1,"' + b'a\n""b' * 400_000 + b'"'
    dialect = Dialect(",", "utf-8", ("case", "activity", "time"))
    for _ in range(10):
        checked = ValidatingStream(io.BytesIO(data), dialect, Path("log.csv"))
        got: list[int] = []

        def read(checked: ValidatingStream = checked, got: list[int] = got) -> None:
            buffer = bytearray(1 << 18)
            while size := checked.readinto(buffer):
                got.append(size)

        threads = [threading.Thread(target=read) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert checked.error is None
        assert sum(got) == len(data)


@pytest.mark.slow
def test_rows_are_read_in_whole_blocks_whatever_their_letters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("veilog.logs.tables.csv.BLOCK", 1 << 16)
    rows = [f"c{n},Ersteinschätzung {'ä' * (n % 7)},2024-01-01 00:00:{n % 60:02d}\n" for n in range(80_000)]
    path = tmp_path / "log.csv"
    path.write_text("case,activity,timestamp\n" + "".join(rows), encoding="utf-8")
    assert files.read(path).events.num_rows == 80_000


@pytest.mark.parametrize(
    ("values", "meant"),
    [
        (["98,11", "1.234,56", "-5"], [98.11, 1234.56, -5.0]),
        (["1.234", "2.000", "12"], [1234, 2000, 12]),
        (["0,5", "", "12.345.678,25"], [0.5, None, 12345678.25]),
        (["1.5", "1.234", "2"], None),  # a point that stands between no thousands
        (["1,234.5", "2", "3"], None),
        (["007,5", "1", "2"], None),
        (["13.03.2024", "1", "2"], None),
        (["12", "13", "14"], [12, 13, 14]),
        (["2024-03-01T08:00Z", "", ""], ["2024-03-01T08:00:00+00:00", None, None]),
        (["true", "false", ""], [True, False, None]),
        (["0,123456789012345678", "1", "2"], None),  # more digits than a number holds
    ],
)  # fmt: skip
def test_a_comma_stands_before_decimals_where_that_is_said(tmp_path: Path, values: list[str], meant: list[Any]) -> None:
    rows = [f"{place};a;2024-03-01;{value}" for place, value in enumerate(values)]
    (tmp_path / "log.csv").write_text("\n".join(["case;activity;time;cost", *rows]) + "\n")
    found = veilog.read(tmp_path / "log.csv", decimal=",").events["cost"].to_pylist()
    found = [value.isoformat() if hasattr(value, "isoformat") else value for value in found]
    assert found == ([value or None for value in values] if meant is None else meant)
    assert [type(value) for value in found if value is not None] == [
        type(value) for value in (meant or values) if value is not None
    ]
    point = veilog.read(tmp_path / "log.csv", decimal=".")
    assert point.events.equals(veilog.read(tmp_path / "log.csv").events)


def test_a_decimal_sign_is_for_text_alone(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("case;activity;time;cost\n1;a;2024-03-01;2,5\n")
    with refused(ParameterError, "decimal-sign-unknown", decimal=";"):
        veilog.read(tmp_path / "log.csv", decimal=";")
    log = veilog.read(tmp_path / "log.csv", decimal=",")
    veilog.write(log, tmp_path / "log.parquet")
    with refused(ParameterError, "log-option-without-meaning", name="decimal"):
        veilog.read(tmp_path / "log.parquet", decimal=",")
    assert veilog.read_variants(tmp_path / "log.csv", decimal=",") == log.variants
