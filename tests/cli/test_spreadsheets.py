"""Labels that run in spreadsheets, break XES, or steer the terminal."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import run

import veilog
from veilog.ledger.ledger import Ledger

HEADER = "case,activity,time\n"


@pytest.mark.slow
def test_a_release_for_spreadsheets_runs_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log, out = tmp_path / "log.csv", tmp_path / "out.csv"
    log.write_text(HEADER + "".join(f"{case},=cmd,2024-01-01\n" for case in range(200)))
    asked = ("-m", "laplace", "--epsilon", 3, "--activities", "=cmd", "--max-length", 1, "--no-ledger", "--no-compare")
    assert run(capsys, "release", log, out, "--spreadsheet-safe", *asked)[0] in (0, 6)
    assert set(veilog.read(out).variants.labels) == {"'=cmd"}
    assert run(capsys, "convert", log, tmp_path / "out.xes", "--spreadsheet-safe")[0] == 2


@pytest.mark.parametrize("activities", ["log", "a\x01b"])
def test_a_label_that_xes_cannot_hold_is_met_before_anything_is_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], activities: str
) -> None:
    log, kept = tmp_path / "log.csv", tmp_path / "kept.ledger"
    log.write_text(HEADER + "1,a\x01b,2024-01-01\n")
    asked = ("-m", "laplace", "--epsilon", 1, "--max-length", 1, "--activities", activities, "--ledger", kept)
    assert run(capsys, "release", log, tmp_path / "out.xes", *asked)[0] == 5
    assert not (tmp_path / "out.xes").exists()
    assert not kept.exists() or all(not account.entries for account in Ledger.open(kept).show())


def test_signs_that_turn_the_writing_round_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = run(capsys, "info", "\u202egnp.exe\u2066.csv")
    assert status == 1 and "gnp.exe" in err
    assert not {"\u202e", "\u2066"} & set(err)
