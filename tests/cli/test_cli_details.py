"""``veilog release`` with times and attributes: options, output and mistakes."""

import json
from pathlib import Path

import pytest
from commands import code_of

import veilog
from veilog.cli import main
from veilog.logs.synthetic.hospital import hospital

USUAL = ["--method", "travas", "--epsilon", "6", "--delta", "0.01", "--no-compare", "--allow-no-protection"]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("logs") / "hospital.xes"
    veilog.write(hospital(600, seed=3), path)
    return path


@pytest.mark.slow
def test_a_release_with_times_and_attributes(capsys: pytest.CaptureFixture[str], log: Path, tmp_path: Path) -> None:
    ages = tmp_path / "ages.txt"
    ages.write_text("0-17\n18-39\n40-59\n60-79\n80+\n")
    options = [
        "--times",
        "0.3",
        "--window",
        "2024-01-01..2024-07-01",
        "--attributes",
        "age group,urgency, lifecycle:transition",
    ]
    options += ["--attributes-share", "0.5", "--domain", f"age group=@{ages}", "--domain", "urgency=1..5"]
    options += ["--domain", "lifecycle:transition=start|complete"]
    target = tmp_path / "out.xes"
    assert main(["release", str(log), str(target), *USUAL, *options, "--json", "-"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["guarantee"]["status"], facts["guarantee"]["epsilon"]) == ("proven", 6.0)
    assert [o["epsilon"] for o in facts["operations"]] == [1.2, 1.8, 3.0]
    released = veilog.read(target)
    assert {"age_group", "urgency"} <= set(released.cases.column_names)  # no key in XES has a space
    assert set(released.events.column("lifecycle:transition").unique().to_pylist()) <= {"start", "complete", None}
    assert "veilog:artificial_timestamps" not in {a.key for a in released.metadata.attributes}


@pytest.mark.nightly
def test_the_time_distance_is_shown(capsys: pytest.CaptureFixture[str], log: Path, tmp_path: Path) -> None:
    usual = [option for option in USUAL if option != "--no-compare"]
    arguments = ["release", str(log), str(tmp_path / "out.csv"), *usual, "--times", "0.5", "--window", "log"]
    assert main(arguments) == 0
    assert "\ndurations " in capsys.readouterr().out
    assert main([*arguments, "--details", "--overwrite"]) == 0
    assert "directly-follows time EMD" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--times", "0.5", "--window", "2024"], "window-not-understood"),
        (["--times", "0.5", "--window", "monday..friday"], "window-not-dates"),
        (["--max-length", "long"], "max-length-not-whole"),
        (["--attributes", "age group", "--domain", "age group"], "option-not-name-value"),
        (["--attributes", "urgency", "--domain", "urgency=1..5", "--domain", "urgency=1..6"], "domain-declared-twice"),
        (["-p", "rounds=3", "-p", "rounds=4"], "option-says-twice"),
        (["--attributes", "age group", "--domain", "age group=@nowhere"], "list-not-readable"),
        (["--attributes", "age group", "--domain", "age group=old, young"], "domain-values-not-separated"),
    ],
)
def test_mistakes_are_told_and_nothing_is_written(
    capsys: pytest.CaptureFixture[str], log: Path, tmp_path: Path, options: list[str], code: str
) -> None:
    target = tmp_path / "out.xes"
    status, found = code_of(capsys, "release", log, target, *USUAL, *options)
    assert status in (1, 2) and found == code
    assert not target.exists()
