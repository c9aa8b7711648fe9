"""A dry run is of the release that was asked for: of its part, of its persons, and of its account."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import pytest

from veilog.cli import main

RELEASE = ["-m", "laplace", "-p", "depth=2", "--epsilon", "1", "--activities", "Admission,Discharge"]
DRY = ["release", "night.csv", "x.xes", *RELEASE, "--purposes", "", "--dry-run", "--json", "told.json", "--overwrite"]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """30 visits of ten patients, a day each, but four of them on 14 March."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("COLUMNS", "300")
    days = [f"2024-04-{visit + 1:02}" for visit in range(26)] + ["2024-03-14"] * 4
    rows = [
        f"v{visit},{activity},{day}T1{hour}:00:00Z,p{visit % 10}\n"
        for visit, day in enumerate(days)
        for hour, activity in enumerate(("Admission", "Discharge"))
    ]
    Path("night.csv").write_text("case,activity,time,Patient\n" + "".join(rows))
    return tmp_path


def told() -> dict[str, object]:
    found: dict[str, object] = json.loads(Path("told.json").read_text())
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("more", "cases"),
    [
        ([], 30),
        (["--since", "2024-03-14", "--until", "2024-03-15"], 4),
        (["--part", "month=2024-04"], 26),
        (["--unit", "Patient", "--max-cases", "1"], 10),
    ],
)
def test_exact_sizes_are_those_of_the_cases_that_count(
    here: Path, more: list[str], cases: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was tried on twins of 2,045 cases where the release was of 26."""
    assert main([*DRY, "--sizes", "log", *more]) == 0
    assert told()["expected"]["sizes"]["cases"] == cases  # type: ignore[index]
    shown = capsys.readouterr().out
    assert f"made-up twins of {cases} cases" in shown
    assert ("the sizes are those of the cases that started" in shown) == bool({"--since", "--part"} & set(more))


@pytest.mark.slow
def test_an_empty_part_promises_nothing(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*DRY, "--sizes", "log", "--part", "month=2025-01"]) == 2
    assert "No case of the log is in the part month=2025-01" in capsys.readouterr().err


@pytest.mark.slow
def test_declared_sizes_are_said_to_be_of_the_part(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    declared = ["--cases", "40", "--length", "2", "--part", "month=2024-04"]
    assert main([*DRY, *declared]) == 0
    shown = capsys.readouterr().out
    assert "taken to be those of this part, not of the log: the cases that started in 2024-04" in shown


@pytest.mark.slow
@pytest.mark.parametrize("more", [["--account", "w"], []])
def test_a_dry_run_says_what_the_account_would_have_left_and_reserves_nothing(
    here: Path, more: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    place = ["--ledger", "n.ledger", *more]
    assert main(["ledger", "set", "night.csv", "--epsilon", "1.5", *place]) == 0
    before = sha256(Path("n.ledger").read_bytes()).hexdigest()
    sizes = ["--cases", "40", "--length", "2"]
    assert main([*DRY, *sizes, *place]) == 0
    assert "after the release: epsilon = 1 spent; epsilon = 0.5 of epsilon = 1.5 are left" in capsys.readouterr().out
    assert told()["owner_only"]["account"]["left"]["epsilon"] == 0.5  # type: ignore[index]
    assert sha256(Path("n.ledger").read_bytes()).hexdigest() == before
    assert main(["release", "night.csv", "x.xes", *RELEASE, "--no-compare", *place]) == 0
    capsys.readouterr()
    assert main([*DRY, *sizes, *place]) == 0, "it is found out, not asked for"
    assert "the release would be refused. The budget of these data does not suffice" in capsys.readouterr().out
    assert "refused" in told()["owner_only"]["account"]  # type: ignore[operator]


@pytest.mark.slow
def test_a_night_is_free_of_what_other_nights_cost(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = ["--ledger", "n.ledger", "--account", "w"]
    night = ["--part", "month=2024-03"]
    assert main(["ledger", "set", "night.csv", "--epsilon", "1", *place]) == 0
    # Of four cases next to nothing may be left: paid for all the same.
    assert main(["release", "night.csv", "x.xes", *RELEASE, "--no-compare", *place, *night]) in (0, 4)
    capsys.readouterr()
    for part, said in (
        ("month=2024-04", "after the release: epsilon = 1 spent"),
        ("month=2024-03", "would be refused"),
    ):
        assert main([*DRY, "--sizes", "log", *place, "--part", part]) == 0
        assert said in capsys.readouterr().out


@pytest.mark.slow
def test_an_account_that_would_not_take_the_log_is_told(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ledger", "set", "night.csv", "--epsilon", "1", "--ledger", "n.ledger", "--account", "w"]) == 0
    Path("other.csv").write_text("case,activity,time\n1,Admission,2024-01-01\n")
    for more, said in (
        (["night.csv", "x.xes", *DRY[3:], "--account", "another"], "these data are on account 1"),
        (["other.csv", "x.xes", *DRY[3:]], "The ledger does not know this log"),
        (["other.csv", "x.xes", *DRY[3:], "--account", "another"], "The ledger does not know this log"),
    ):
        capsys.readouterr()
        assert main(["release", *more, "--cases", "9", "--length", "2", "--ledger", "n.ledger"]) == 0
        assert said in " ".join(capsys.readouterr().out.split())
