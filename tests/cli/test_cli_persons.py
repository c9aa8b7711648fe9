"""Whose the cases are, as an option of ``compare`` and ``risk``."""

import json
from pathlib import Path

import pytest

from veilog.cli import main


@pytest.fixture
def wards(tmp_path: Path) -> Path:
    """Cases of which some 30 wards look like people, and a column of people who have one case each."""
    path = tmp_path / "wards.csv"
    rows = [
        f"{case},{activity},2024-01-{1 + case % 28:02}T{9 + hour:02}:00:00Z,w{case % 30},p{case}"
        for case in range(150)
        for hour, activity in enumerate("abc" if case % 2 else "acb")
    ]
    path.write_text("\n".join(["case,activity,timestamp,ward,patient", *rows]))
    return path


def told(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, object]:
    assert main([*map(str, arguments), "--json", "-"]) == 0
    return json.loads(capsys.readouterr().out)  # type: ignore[no-any-return]


def test_the_column_taken_for_people_is_named_and_how_to_say_otherwise(
    capsys: pytest.CaptureFixture[str], wards: Path
) -> None:
    assert main(["risk", str(wards), "--size", "1"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "People are told by ward, as it seems; --person COLUMN or --no-person says otherwise." in shown
    assert main(["risk", str(wards), "--size", "1", "--no-person"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "told by" not in shown and "If one half of these cases were published" in shown


def test_the_owner_says_whose_the_cases_are(capsys: pytest.CaptureFixture[str], wards: Path) -> None:
    asked = ["compare", wards, wards, "--no-models"]
    assert told(capsys, *asked)["person"] == "ward"
    assert told(capsys, *asked, "--no-person")["person"] is None
    assert told(capsys, *asked, "--person", "patient")["person"] == "patient"


@pytest.mark.parametrize("command", ["risk", "compare"])
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--person", "pateint"], "Did you mean 'patient'?"),
        (["--person", "patient", "--no-person"], "say opposite things"),
    ],
)
def test_a_person_that_means_nothing_is_refused(
    capsys: pytest.CaptureFixture[str], wards: Path, command: str, options: list[str], said: str
) -> None:
    logs = [str(wards)] * (2 if command == "compare" else 1)
    assert main([command, *logs, *options]) in (1, 2)
    assert said in " ".join(capsys.readouterr().err.split())
