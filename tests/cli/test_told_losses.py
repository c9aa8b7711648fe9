"""What a release left out of the log is told to its owner, to whom else to nobody, and also where it is quiet."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import veilog
from veilog.cli import main
from veilog.privacy.unit import Unit
from veilog.releasing.owner.notes import tells_loss, uncounted_cases

RELEASE = ["-m", "evolve", "--epsilon", "1", "--no-compare", "--no-ledger"]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """40 visits: p0 came ten times, p1 four times, all others twice or once."""
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


def test_a_quiet_release_says_in_one_line_what_it_left_out(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In the documented nightly command a new activity dropped out each night unseen."""
    with Path("log.csv").open("a") as file:
        file.write("v0,Discharge,,p0\n")
    declared = ["--activities", "Admission,Discharge", "--on", "missing-timestamp=drop"]
    assert main(["release", "log.csv", "out.xes", *RELEASE, *declared, "--quiet"]) == 0
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1
    assert err.startswith("For you only: The declaration leaves out 1 activity of the log: New test (40).")
    assert "40 of 120 events were not used. Reading the log: 1 event dropped: missing-timestamp." in err


def test_a_quiet_release_that_left_nothing_out_says_nothing(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["release", "log.csv", "out.xes", *RELEASE, "--activities", "log", "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")


def test_that_a_night_had_no_case_is_a_loss_and_that_it_is_in_no_ledger_is_none(here: Path) -> None:
    log = veilog.read("log.csv")
    night = veilog.release(log, "laplace", epsilon=1, depth=1, activities=["Admission"], part="month=2023-01")
    notes = night.owner_only.notes
    assert [tells_loss(note) for note in notes] == [True, *[False] * (len(notes) - 1)] and len(notes) > 1


def test_cases_of_persons_that_do_not_count_are_told_to_the_owner_alone(here: Path) -> None:
    """Of 9,075 cases 7,350 were released, and nothing was said."""
    person = ["--activities", "log", "--unit", "Patient", "--max-cases", "3", "--json", "told.json"]
    assert main(["release", "log.csv", "out.xes", *RELEASE, *person]) == 0
    told = json.loads(Path("told.json").read_text())
    note = "Of 15 persons 2 have more cases than count, 3 each: 8 of 40 cases were not used."
    assert note in told["owner_only"]["notes"]
    assert "not used" not in json.dumps(told | {"owner_only": None})
    assert "persons 2 have" not in Path("out.xes").read_text()


@pytest.mark.parametrize(
    ("most", "notes"),
    [
        (1, ["Of 15 persons 15 have more cases than count, 1 each: 25 of 40 cases were not used."]),
        (4, ["Of 15 persons 1 has more cases than count, 4 each: 6 of 40 cases were not used."]),
        (10, []),
    ],
)
def test_how_many_persons_and_cases(here: Path, most: int, notes: list[str]) -> None:
    log = veilog.read("log.csv")
    assert uncounted_cases(log, Unit.of("Patient", most)) == notes
    assert uncounted_cases(log, Unit.of("person", 1)) == uncounted_cases(log, Unit.of("case", None)) == []


def test_a_log_with_an_empty_cell_of_the_person_is_released_and_the_loss_is_said(here: Path) -> None:
    lines = Path("log.csv").read_text().splitlines()
    head = lines[0].split(",")
    case, person = head.index("case"), head.index("Patient")
    rows = [line.split(",") for line in lines[1:]]
    first = rows[0][case]
    for row in rows:
        row[person] = "" if row[case] == first else row[person]
    Path("gap.csv").write_text("\n".join(",".join(row) for row in (head, *rows)) + "\n")
    asked = ["--activities", "log", "--unit", "Patient", "--max-cases", "10", "--json", "told.json"]
    for policy, note in (([], "so it was not used."), (["--unnamed", "own"], "as of a person of its own")):
        assert main(["release", "gap.csv", "out.xes", *RELEASE, *asked, *policy, "--overwrite"]) == 0
        told = json.loads(Path("told.json").read_text())
        assert any("1 of 40 cases has no value of 'Patient'" in said and note in said for said in
                   told["owner_only"]["notes"])  # fmt: skip
        codes = [condition["code"] for condition in told["guarantee"]["conditions"]]
        assert ("unnamed-are-single" in codes) == bool(policy)
        assert "1 of 40" not in Path("out.xes").read_text()
