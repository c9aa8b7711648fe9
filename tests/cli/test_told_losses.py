"""Losses of a release are confidential, and reported even if the command is quiet."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from commands import at_a_terminal
from refusals import sentence

import veilog
from veilog.cli import main
from veilog.messages import OwnerMessage
from veilog.privacy.unit import Unit
from veilog.releasing.owner import OF_LOSSES, uncounted_cases

RELEASE = ["-m", "evolve", "--epsilon", "1", "--no-compare", "--no-ledger"]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write 40 visits: p0 came ten times, p1 four times, all others twice or once."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    persons = ["p0"] * 10 + ["p1"] * 4 + [f"p{2 + visit // 2}" for visit in range(26)]
    rows = [
        f"v{visit},{activity},2024-04-{visit % 28 + 1:02}T1{hour}:00:00Z,{person}\n"
        for visit, person in enumerate(persons)
        for hour, activity in enumerate(("Admission", "New test", "Discharge"))
    ]
    Path("log.csv").write_text("case,activity,time,Patient\n" + "".join(rows))
    return tmp_path


@pytest.mark.slow
def test_a_quiet_release_says_in_one_line_what_it_left_out(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A quiet release reports in one line what it left out."""
    with Path("log.csv").open("a") as file:
        file.write("v0,Discharge,,p0\n")
    declared = ["--activities", "Admission,Discharge", "--on", "missing-timestamp=drop"]
    assert main(["release", "log.csv", "out.xes", *RELEASE, *declared, "--quiet"]) == 0
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1
    (dropped,) = (
        finding.dropped
        for finding in veilog.read("log.csv", policies={"missing-timestamp": "drop"}).findings
        if finding.rule == "missing-timestamp"
    )
    assert sentence("one-activity-undeclared", counted="New test (40)", lost=40, events=120) in err
    assert str(dropped) in err


@pytest.mark.slow
def test_a_quiet_release_that_left_nothing_out_says_nothing(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["release", "log.csv", "out.xes", *RELEASE, "--activities", "log", "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")


def test_that_a_night_had_no_case_is_a_loss_and_that_it_is_in_no_ledger_is_none(here: Path) -> None:
    log = veilog.read("log.csv")
    night = veilog.release(log, "laplace", epsilon=1, depth=1, activities=["Admission"], subset="month=2023-01")
    notes = night.owner_only.notes
    assert [note.code in OF_LOSSES for note in notes] == [True, *[False] * (len(notes) - 1)] and len(notes) > 1


@pytest.mark.slow
def test_cases_of_persons_that_do_not_count_are_told_to_the_owner_alone(here: Path) -> None:
    """Cases of persons beyond the bound are reported to the data owner only."""
    person = ["--activities", "log", "--unit", "Patient", "--max-cases", "3", "--json", "told.json"]
    assert main(["release", "log.csv", "out.xes", *RELEASE, *person]) == 0
    told = json.loads(Path("told.json").read_text())
    values = {"persons": 15, "over": 2, "most": 3, "left": 8, "cases": 40}
    assert values in [note["values"] for note in told["owner_only"]["notes"] if note["code"] == "persons-over-bound"]
    assert "persons-over-bound" not in json.dumps(told | {"owner_only": None})
    assert "persons 2 have" not in Path("out.xes").read_text()


@pytest.mark.parametrize(
    ("most", "notes"),
    [
        (1, [OwnerMessage("persons-over-bound", persons=15, over=15, most=1, left=25, cases=40)]),
        (4, [OwnerMessage("one-person-over-bound", persons=15, over=1, most=4, left=6, cases=40)]),
        (10, []),
    ],
)
def test_how_many_persons_and_cases(here: Path, most: int, notes: list[OwnerMessage]) -> None:
    log = veilog.read("log.csv")
    assert uncounted_cases(log, Unit.of("Patient", most)) == notes
    assert uncounted_cases(log, Unit.of("person", 1)) == uncounted_cases(log, Unit.of("case", None)) == []


@pytest.mark.slow
def test_losses_are_the_first_line_and_the_first_of_what_is_the_owners(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Losses are the first line of a release and its first confidential value."""
    command = ["release", "log.csv", "out.xes", *RELEASE, "--activities", "admission,New test,Discharge"]
    assert main([*command, "--seed", "1", "--json", "told.json"]) == 0
    said = capsys.readouterr().out
    assert said.index("losses") < said.index("protection")
    told = json.loads(Path("told.json").read_text())
    assert next(iter(told["owner_only"])) == "losses"
    losses = {loss["code"]: loss for loss in told["owner_only"]["losses"]}
    assert losses["declared-activities-absent"]["names"] == {"admission": "Admission"}
    assert (losses["events-undeclared"]["lost"], losses["events-undeclared"]["of"]) == (40, 120)
    assert "declared-activities-absent" not in json.dumps(told | {"owner_only": None})
    assert main([*command, "--seed", "1", "--overwrite", "--details"]) == 0
    said = capsys.readouterr().out
    assert said.index("losses") < said.index("released")


@pytest.mark.slow
def test_a_dry_run_names_what_would_be_lost(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["release", "log.csv", "out.xes", *RELEASE, "--activities", "admission,Discharge", "--dry-run"]
    assert main([*command, "--cases", "40", "--length", "3", "--json", "told.json"]) == 0
    codes = [loss["code"] for loss in json.loads(Path("told.json").read_text())["owner_only"]["losses"]]
    assert codes == ["declared-activities-absent", "activities-undeclared", "events-undeclared"]
    assert "'Admission'" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.noise_status
def test_a_night_without_a_case_is_noise_only_and_has_its_own_status(here: Path) -> None:
    """A night without a case is noise only, and has its own status."""
    command = ["release", "log.csv", "out.xes", *RELEASE, "--activities", "log", "--seed", "1", "--json", "told.json"]
    assert main([*command, "--subset", "month=2023-01"]) == 6
    told = json.loads(Path("told.json").read_text())
    assert told["noise_only"] is True and Path("out.xes").exists()
    assert main([*command, "--overwrite", "--subset", "month=2024-04"]) == 0
    assert json.loads(Path("told.json").read_text())["noise_only"] is False


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="POSIX terminals")
@pytest.mark.parametrize(("answer", "status"), [("y", 0), ("n", 2)])
def test_at_a_terminal_losses_are_confirmed_before_anything_is_spent(here: Path, answer: str, status: int) -> None:
    """At a terminal losses, as by a wrong activity, are confirmed before spending."""
    asked = ["release", "log.csv", "out.xes", "-m", "evolve", "--epsilon", "1", "--no-compare", "--seed", "1"]
    asked += ["--activities", "admission,New test,Discharge", "--ledger", "own.ledger"]
    ended, shown = at_a_terminal(answer, *asked, cwd=here)
    assert ended in (status, *((6,) if status == 0 else ()))
    assert b"'Admission'" in shown
    assert Path("out.xes").exists() == (status == 0)
    spent = [
        entry.state for account in veilog.Ledger.open("own.ledger", create=True).show() for entry in account.entries
    ]
    assert spent == (["written"] if status == 0 else [])
