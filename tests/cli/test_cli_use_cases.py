"""``veilog compare --use-cases`` judges what is wanted, or refuses it before work."""

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
def test_use_cases_stand_in_json_with_what_they_are_held_against(capsys: pytest.CaptureFixture[str], log: Path) -> None:
    arguments = ["compare", str(log), str(log), "--no-models", "--use-cases", "discovery,conformance", "--json", "-"]
    assert main(arguments) == 0
    use_cases = json.loads(capsys.readouterr().out)["use_cases"]
    assert list(use_cases) == ["discovery", "conformance"]
    for purpose in use_cases.values():
        assert purpose["grade"] == "good"
        for numbers in purpose["aspects"].values():
            assert {"value", "sample", "original", "unprotected", "share", "grade"} <= numbers.keys()
            assert numbers["value"] == numbers["original"]


@pytest.mark.slow
def test_use_cases_are_a_sentence_each_at_the_terminal(
    capsys: pytest.CaptureFixture[str], log: Path, tmp_path: Path
) -> None:
    facts = tmp_path / "facts.json"
    assert main(["compare", str(log), str(log), "--no-models", "--use-cases", "discovery", "--json", str(facts)]) == 0
    told = json.loads(facts.read_text())["use_cases"]["discovery"]
    assert told["grade"] == "good" and told["verdict"] in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("options", "parameter"),
    [
        (("--use-cases", "discovery", "--model", "x.bpmn"), "model"),
        (("--predict", "age group"), "predict"),
    ],
)
def test_what_no_purpose_hears_is_refused(
    capsys: pytest.CaptureFixture[str], log: Path, options: tuple[str, ...], parameter: str
) -> None:
    error = error_of(capsys, "compare", log, log, *options)
    assert (error["code"], error["parameter"]) == ("use-case-not-asked-for", parameter)
