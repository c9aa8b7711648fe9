"""``veilog compare --purposes``: what is asked for is judged, and what cannot be is refused before any work."""

import json
from pathlib import Path

import pytest
from commands import error_of

import veilog
from veilog.cli import main
from veilog.logs.synthetic.hospital import hospital


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("logs") / "hospital.xes"
    veilog.write(hospital(150, seed=3), path)
    return path


@pytest.mark.nightly
def test_purposes_stand_in_json_with_what_they_are_held_against(capsys: pytest.CaptureFixture[str], log: Path) -> None:
    arguments = ["compare", str(log), str(log), "--no-models", "--purposes", "discovery,conformance", "--json", "-"]
    assert main(arguments) == 0
    purposes = json.loads(capsys.readouterr().out)["purposes"]
    assert list(purposes) == ["discovery", "conformance"]
    for purpose in purposes.values():
        assert purpose["grade"] == "good"
        for numbers in purpose["aspects"].values():
            assert {"value", "floor", "ceiling", "zero", "share", "grade"} <= numbers.keys()
            assert numbers["value"] == numbers["ceiling"]


@pytest.mark.slow
def test_purposes_are_a_sentence_each_at_the_terminal(
    capsys: pytest.CaptureFixture[str], log: Path, tmp_path: Path
) -> None:
    facts = tmp_path / "facts.json"
    assert main(["compare", str(log), str(log), "--no-models", "--purposes", "discovery", "--json", str(facts)]) == 0
    told = json.loads(facts.read_text())["purposes"]["discovery"]
    assert told["grade"] == "good" and told["verdict"] in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("options", "parameter"),
    [
        (("--purposes", "discovery", "--model", "x.bpmn"), "model"),
        (("--predict", "age group"), "predict"),
    ],
)
def test_what_no_purpose_hears_is_refused(
    capsys: pytest.CaptureFixture[str], log: Path, options: tuple[str, ...], parameter: str
) -> None:
    error = error_of(capsys, "compare", log, log, *options)
    assert (error["code"], error["parameter"]) == ("purpose-not-asked-for", parameter)
