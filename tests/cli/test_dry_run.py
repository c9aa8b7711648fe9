"""A dry run is one of the requested release: its subset, persons and account."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import pytest
from commands import code_of
from refusals import sentence

from veilog.cli import main
from veilog.privacy.partition import Partition

RELEASE = ["-m", "laplace", "-p", "depth=2", "--epsilon", "1", "--activities", "Admission,Discharge"]
DRY = ["release", "night.csv", "x.xes", *RELEASE, "--use-cases", "", "--dry-run", "--json", "told.json", "--overwrite"]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write 30 visits of ten patients, a day each, but four of them on 14 March."""
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
    ("more", "cases", "subset"),
    [
        ([], 30, None),
        (["--since", "2024-03-14", "--until", "2024-03-15"], 4, Partition("began", "2024-03-14..2024-03-15")),
        (["--subset", "month=2024-04"], 26, Partition("month", "2024-04")),
        (["--unit", "Patient", "--max-cases", "1"], 10, None),
    ],
)
def test_exact_sizes_are_those_of_the_cases_that_count(
    here: Path, more: list[str], cases: int, subset: Partition | None, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exact sizes of a dry run are those of the cases that count."""
    assert main([*DRY, "--sizes", "log", *more]) == 0
    assert told()["expected"]["sizes"]["cases"] == cases  # type: ignore[index]
    shown = capsys.readouterr().out
    assert f" {cases} cases, " in shown
    assert subset is None or sentence("sizes-are-of-subset", subset=subset.in_words) in shown


@pytest.mark.slow
def test_an_empty_subset_promises_nothing(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dry = [word for word in DRY if word not in ("--json", "told.json")]
    assert code_of(capsys, *dry, "--sizes", "log", "--subset", "month=2025-01") == (2, "sizes-subset-without-case")


@pytest.mark.slow
def test_declared_sizes_are_said_to_be_of_the_subset(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    declared = ["--cases", "40", "--length", "2", "--subset", "month=2024-04"]
    assert main([*DRY, *declared]) == 0
    shown = capsys.readouterr().out
    assert sentence("sizes-taken-for-subset", subset=Partition("month", "2024-04").in_words) in shown


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
    after = told()["owner_only"]["account"]  # type: ignore[index]
    assert (after["spent"]["epsilon"], after["left"]["epsilon"]) == (1, 0.5)
    assert "\naccount " in capsys.readouterr().out
    assert sha256(Path("n.ledger").read_bytes()).hexdigest() == before
    assert main(["release", "night.csv", "x.xes", *RELEASE, "--no-compare", *place]) == 0
    capsys.readouterr()
    assert main([*DRY, *sizes, *place]) == 0, "it is found out, not asked for"
    refused = sentence("budget-exceeded", word="epsilon", asked=1, budget=1.5, left=0.5)
    assert told()["owner_only"]["account"] == {"refused": refused}  # type: ignore[index]
    assert refused in capsys.readouterr().out


@pytest.mark.slow
def test_a_night_is_free_of_what_other_nights_cost(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = ["--ledger", "n.ledger", "--account", "w"]
    night = ["--subset", "month=2024-03"]
    assert main(["ledger", "set", "night.csv", "--epsilon", "1", *place]) == 0
    # Of four cases next to nothing may be left, but epsilon is spent.
    assert main(["release", "night.csv", "x.xes", *RELEASE, "--no-compare", *place, *night]) in (0, 4)
    capsys.readouterr()
    for subset, refused in (("month=2024-04", False), ("month=2024-03", True)):
        assert main([*DRY, "--sizes", "log", *place, "--subset", subset]) == 0
        assert ("refused" in told()["owner_only"]["account"]) == refused  # type: ignore[index]


@pytest.mark.slow
def test_an_account_that_would_not_take_the_log_is_told(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ledger", "set", "night.csv", "--epsilon", "1", "--ledger", "n.ledger", "--account", "w"]) == 0
    Path("other.csv").write_text("case,activity,time\n1,Admission,2024-01-01\n")
    on = "these data are on account 1"
    for more in (["night.csv", "--account", "another"], ["other.csv"], ["other.csv", "--account", "another"]):
        sizes = ["--cases", "9", "--length", "2", "--ledger", "n.ledger"]
        assert main(["release", more[0], "x.xes", *DRY[3:], *more[1:], *sizes]) == 0
        account = told()["owner_only"]["account"]  # type: ignore[index]
        if more[0] == "night.csv":
            assert account == {"refused": sentence("account-name-not-usable", name="another", on=on)}
        else:
            assert [warning["code"] for warning in account["warnings"]] == ["log-unknown-beside-budget"]
