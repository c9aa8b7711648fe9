"""Printed commands work as pasted: the same log, reading and account."""

from __future__ import annotations

import shlex
import warnings
from pathlib import Path

import pytest

from veilog.cli import main
from veilog.cli.shared.ledger_options import Keeping
from veilog.cli.shared.options import Grouping, Reading, options

ROWS = [
    f"v{visit},{activity},2024-01-0{day}T10:00:00Z,2024-02-0{day}T10:00:00Z\n"
    for visit in range(60)
    for day, activity in enumerate(("Admission", "Laboratory", "Discharge"), 1)
]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("COLUMNS", "80")
    Path("two times.csv").write_text("case,activity,Beginn,Ende\n" + "".join(ROWS))
    return tmp_path


def hint(text: str, command: str) -> list[str]:
    """Return the words of the printed command, which is on one line."""
    return next(shlex.split(line) for line in text.splitlines() if line.strip().startswith(f"veilog {command}"))


@pytest.mark.nightly
def test_the_release_that_a_suggestion_prints_reads_the_log_alike_and_is_charged_alike(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A suggestion's release reads the log alike and is charged alike."""
    used = ["--ledger", "c.ledger", "--account", "w", "--timestamp", "Beginn", "--on", "missing-timestamp=drop"]
    assert main(["ledger", "set", "two times.csv", *used]) == 0
    capsys.readouterr()
    assert main(["suggest", "two times.csv", "--epsilon", "1", "--activities", "log", *used]) == 0
    words = hint(capsys.readouterr().out, "release")
    assert words[:4] == ["veilog", "release", "two times.csv", "TARGET"]
    assert words[-len(used) :] == used
    assert main([word.replace("TARGET", "out.csv") for word in words[1:]]) == 0, "it is a command"
    capsys.readouterr()
    assert main(["ledger", "show", "--ledger", "c.ledger"]) == 0
    shown = capsys.readouterr().out
    assert "suggest" in shown and "evolve" in shown


@pytest.mark.nightly
def test_a_map_says_the_activities_of_the_release_that_is_suggested(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("groups.csv").write_text("activity,group\nAdmission,in\nLaboratory,test\nDischarge,out\n")
    assert main(["suggest", "two times.csv", "--timestamp", "Beginn", "--epsilon", "1", "--map", "groups.csv"]) == 0
    words = hint(capsys.readouterr().out, "release")
    assert words[-4:] == ["--timestamp", "Beginn", "--map", "groups.csv"] and "--activities" not in words


def test_what_comes_next_after_a_release_is_about_the_same_log(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    release = [
        "-m",
        "laplace",
        "-p",
        "depth=2",
        "--epsilon",
        "1",
        "--activities",
        "log",
        "--timestamp",
        "Beginn",
        "--no-compare",
        "--no-ledger",
    ]
    assert main(["release", "two times.csv", "out.xes", *release]) == 0
    assert "veilog compare 'two times.csv' out.xes --timestamp Beginn " in capsys.readouterr().out


def test_every_option_that_was_given_is_spelled_and_no_other() -> None:
    reading = Reading(case="Fall Nr", header=0, on=("a=drop", "b=keep"), map=Path("g.csv"), object_type="item")
    said = " --case 'Fall Nr' --header 0 --object-type item --on a=drop --on b=keep --map g.csv"
    assert options(reading) == said
    assert options(Keeping(no_ledger=True), Grouping(memory_limit="4GB")) == " --no-ledger --memory-limit 4GB"
    assert options(Keeping(), Reading(), Grouping()) == ""


def test_a_warning_is_said_without_the_line_of_ours_that_gives_it(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []

    def warning(*_: object) -> None:
        said.append(warnings.formatwarning(UserWarning("veilog_broken 1.0 adds 'x'"), UserWarning, "ours.py", 3))

    monkeypatch.setattr("veilog.cli.check_formats", warning)
    usual = warnings.formatwarning
    assert main(["validate", "two times.csv", "--timestamp", "Beginn"]) == 0
    assert said == ["Warning: veilog_broken 1.0 adds 'x'\n"] and warnings.formatwarning is usual
