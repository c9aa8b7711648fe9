"""The owner's words before a release: public facts, persons, and a weak guarantee."""

import json
from pathlib import Path
from typing import Any

import pytest
from commands import at_a_terminal
from refusals import refused

import veilog
from veilog.cli import main
from veilog.cli.shared.requests import ReleaseOptions
from veilog.logs.synthetic.hospital import hospital


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.xes"
    veilog.write(hospital(300, seed=2), path)
    return path


def told(log: Path, target: Path, *more: str) -> dict[str, Any]:
    facts = target.with_suffix(".json")
    assert main(["release", str(log), str(target), "--no-compare", "--json", str(facts), *more]) == 0
    found: dict[str, Any] = json.loads(facts.read_text())
    return found


@pytest.mark.slow
@pytest.mark.parametrize("said", ["Log", "logs", "priv"])
def test_a_mistyped_keyword_is_no_list_of_one_activity(
    said: str, log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    release = ["release", str(log), str(tmp_path / "out.xes"), "-m", "evolve", "--epsilon", "1"]
    suggest = ["suggest", str(log), "--epsilon", "1"]
    for command in (release, suggest):
        assert main([*command, "--activities", said, "--json", "-"]) == 2
        assert json.loads(capsys.readouterr().out)["error"]["code"] == "activities-list-of-one"
    assert main(["twin", "--cases", "9", "--length", "2", "--activities", said]) == 2
    with refused(veilog.ParameterError, "domain-activities-not-collection"):
        veilog.release(log, "evolve", epsilon=1, activities=said)
    (tmp_path / "names").write_text(said)
    assert ReleaseOptions(activities=f"@{tmp_path / 'names'}").asked()["domain"].alphabet == (said,)


@pytest.mark.nightly
def test_a_declared_length_that_cuts_cases_is_remarked_on_to_the_owner_alone(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lengths = veilog.read(log).variants.lengths.repeat(veilog.read(log).variants.counts)
    out, bound = tmp_path / "out.xes", int(lengths.max()) - 1
    declared = ("-m", "evolve", "--epsilon", "1", "--activities", "log", "--max-length")
    facts = told(log, out, *declared, str(bound), "--details")
    assert "declared length" in capsys.readouterr().out
    cut = int((lengths > bound).sum())
    (note,) = (note for note in facts["owner_only"]["notes"] if note["code"] == "cases-cut")
    values = {"cut": cut, "cases": len(lengths), "longest": bound, "lost": cut, "events": int(lengths.sum())}
    assert note["values"] == values
    assert "cases-cut" not in out.read_text()
    assert "cases-cut" not in json.dumps({**facts, "owner_only": None})
    assert facts["declared"] == {"max_length": bound}
    longer = told(log, tmp_path / "longer.xes", *declared, str(bound + 1))
    assert "cases-cut" not in {note["code"] for note in longer["owner_only"]["notes"]}


@pytest.mark.slow
def test_no_protection_is_called_what_it_is(log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.html"
    more = ["--activities", "log", "--allow-no-protection", "--recipient-report", str(page)]
    facts = told(log, tmp_path / "out.xes", "-m", "evolve", "--epsilon", "50", *more)
    assert facts["guarantee"]["level"] == "none in practice"
    text = page.read_text()
    assert 'class="tile bad"' in text and "tile good" not in text
    assert "none in practice" in capsys.readouterr().out


@pytest.mark.slow
def test_columns_that_tell_persons_are_pointed_out(tmp_path: Path) -> None:
    lines = ["case,activity,timestamp,Patient"]
    for case in range(60):
        lines += [f"{case},{a},2024-01-{1 + case % 28:02}T10:0{i}:00Z,p{case % 25}" for i, a in enumerate("ab")]
    log = tmp_path / "log.csv"
    log.write_text("\n".join(lines))
    facts = told(log, tmp_path / "out.xes", "-m", "evolve", "--epsilon", "1", "--activities", "a,b")
    assert "cases-of-persons" in {note["code"] for note in facts["owner_only"]["notes"]}
    assert facts["guarantee"]["unit"] == "case"
    person = ["--unit", "Patient", "--max-cases", "3"]
    protected = told(log, tmp_path / "two.xes", "-m", "evolve", "--epsilon", "1", "--activities", "a,b", *person)
    assert protected["guarantee"]["unit"] == "person"
    assert "cases-of-persons" not in {note["code"] for note in protected["owner_only"]["notes"]}


@pytest.mark.nightly
@pytest.mark.parametrize(("answer", "status"), [("y", 0), ("n", 2)])
def test_at_a_terminal_the_labels_are_shown_and_the_owner_is_asked(
    answer: str, status: int, log: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out.xes"
    asked = ["release", str(log), str(out), "-m", "evolve", "--epsilon", "1", "--no-compare", "--seed", "1"]
    ended, shown = at_a_terminal(answer, *asked, cwd=tmp_path)
    assert ended == status and b"Triage" in shown
    assert out.exists() == (status == 0)
