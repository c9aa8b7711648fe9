"""What is said of a command whose output nobody reads, or has no room for, or that was stopped: never less than what
was spent and written."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import veilog
from veilog.cli import main
from veilog.logs.made_up.simulate import hospital

FULL = Path("/dev/full")
RELEASE = ("-m", "laplace", "-p", "depth=2", "--epsilon", "1", "--activities", "log")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    veilog.write(hospital(60, seed=1), tmp_path / "log.xes")
    return tmp_path / "log.xes"


def called(*arguments: object, stdout: int) -> tuple[int, str]:
    command = [sys.executable, "-m", "veilog", *map(str, arguments)]
    done = subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False)
    return done.returncode, done.stderr


@pytest.mark.parametrize("arguments", [["--help"], ["methods"], ["info", "LOG"], ["release", "LOG", "OUT", *RELEASE]])
def test_a_reader_that_goes_away_ends_no_work(log: Path, tmp_path: Path, arguments: list[str]) -> None:
    out = tmp_path / "out.xes"
    reading, writing = os.pipe()
    os.close(reading)
    given = [{"LOG": str(log), "OUT": str(out)}.get(word, word) for word in arguments]
    try:
        assert called(*given, stdout=writing) == (0, "")
    finally:
        os.close(writing)
    assert out.exists() == ("release" in arguments)


@pytest.mark.skipif(not FULL.exists(), reason="no such device here")
def test_a_full_disk_behind_standard_output_is_a_line_and_a_status(log: Path, tmp_path: Path) -> None:
    out, facts = tmp_path / "out.xes", tmp_path / "facts.json"
    with FULL.open("wb") as full:
        status, said = called("release", log, out, *RELEASE, "--no-ledger", "--json", facts, stdout=full.fileno())
        assert called("completion", "bash", stdout=full.fileno())[0] == 5
    assert status == 5 and out.exists()
    assert said.splitlines() == [
        "Error: Standard output cannot be written: No space left on device. "
        f"The release is written to {out} and paid for."
    ]
    assert json.loads(facts.read_text())["guarantee"]["epsilon"] == 1


def stop(monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    def stopped(*arguments: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(where, stopped)


@pytest.mark.parametrize(
    ("where", "ledger", "said"),
    [
        ("veilog.cli.releasing.release._kept", "--no-ledger", "The release is written to {out} and paid for."),
        (
            "veilog.cli.releasing.release._save",
            "--no-ledger",
            "The log may have been asked: count epsilon = 1 as spent.",
        ),
        (
            "veilog.cli.releasing.release._save",
            "--ledger",
            "The log was asked: epsilon = 1 is spent, which is entered in",
        ),
        ("veilog.releasing.run.claims", "--ledger", "Nothing was asked of the log, so nothing is spent."),
    ],
)
def test_who_stops_a_release_is_told_what_it_cost(
    log: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    where: str,
    ledger: str,
    said: str,
) -> None:
    stop(monkeypatch, where)
    out, facts = tmp_path / "out.xes", tmp_path / "facts.json"
    place = [ledger, *([] if ledger == "--no-ledger" else [str(tmp_path / "own.ledger")])]
    assert main(["release", str(log), str(out), *RELEASE, *place, "--json", str(facts)]) == 130
    told = capsys.readouterr().err
    assert "interrupted; nothing half written was left. " + said.format(out=out) in told
    found = json.loads(facts.read_text())
    if where.endswith("_kept"):  # what it guarantees was written, and stays
        assert found["guarantee"]["epsilon"] == 1
    else:
        assert (found["error"]["kind"], found["error"]["status"]) == ("Interrupted", 130)
        assert said in found["error"]["message"]
