"""The second release of a log without a ledger is noticed."""

import json
import stat
from pathlib import Path

import pytest

import veilog
from veilog.cli import main
from veilog.logs.made_up.simulate import ACTIVITIES, hospital
from veilog.releasing.owner.memory import noticed, remembered

BEFORE = "released or asked once before without a ledger"


def released(log: veilog.EventLog, **more: object) -> tuple[str, ...]:
    """The notes of a release, but for what its delta costs, which hangs on how many cases happen to come out."""
    notes = veilog.release(log, "travas", epsilon=1, delta="0.001", **more).owner_only.notes  # type: ignore[arg-type]
    return tuple(note for note in notes if "by which its protection is told" not in note)


def test_python_remembers_while_it_runs(tmp_path: Path) -> None:
    log = hospital(30, seed=77)
    assert not any("before without" in note for note in released(log))
    assert BEFORE in released(log)[0]
    assert "released or asked 2 times before" in released(log)[0]
    assert not any("before without" in note for note in released(log, seed=1))
    assert not any("before without" in note for note in released(log, ledger=tmp_path / "a.ledger"))
    assert not any("before without" in note for note in released(hospital(31, seed=77)))


def test_releases_without_a_proof_count_and_are_not_sent_to_a_ledger() -> None:
    log = hospital(30, seed=87)
    (first,) = veilog.release(log, "pretsa", k=2).owner_only.notes
    assert "no ledger" in first and "nothing bounds" in first.lower() and "ledger set" not in first
    (second,) = veilog.release(log, "laplace", epsilon=1, as_published=True, depth=2).owner_only.notes
    assert BEFORE in second and "(1 without a proven guarantee)" in second and "ledger set" not in second
    (third,) = released(log)
    assert (
        "released or asked 2 times before" in third
        and "(1 without a proven" in third
        and "`veilog ledger set LOG" in third
    )


def test_the_command_remembers_in_a_file_that_names_no_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    veilog.write(hospital(30, seed=78), "patients.xes")
    command = ["release", "patients.xes", "out.xes", "-m", "laplace", "--epsilon", "9", "--activities", "log"]
    command += ["-p", "depth=3", "--no-compare", "--overwrite", "--allow-no-protection"]
    assert main([*command, "--no-ledger"]) == 0
    assert not remembered().exists(), "an experiment that is shown to nobody"
    assert main(command) == 0
    assert BEFORE not in " ".join(capsys.readouterr().out.split())
    assert main([*command, "--json", "told.json"]) == 0
    assert BEFORE in " ".join(capsys.readouterr().out.split())
    assert BEFORE in json.loads(Path("told.json").read_text())["owner_only"]["notes"][0]
    kept = remembered()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert "patients" not in kept.read_text() and set(json.loads(kept.read_text())) == {"key", "seen"}
    other = json.loads(kept.read_text())
    older = other | {"seen": {mark: told[:2] for mark, told in other["seen"].items()}}  # as it was written before
    kept.write_text(json.dumps(older))
    assert main([*command, "--json", "told.json"]) == 0
    assert "released or asked 2 times before" in json.loads(Path("told.json").read_text())["owner_only"]["notes"][0]
    kept.write_text("{}")
    assert main(command) == 0
    assert json.loads(kept.read_text())["key"] != other["key"]


def test_what_suggestions_and_twins_ask_is_remembered_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    veilog.write(hospital(30, seed=80), "patients.xes")
    suggest = ["suggest", "patients.xes", "--epsilon", "1", "--for", "prediction"]
    twin = ["twin", "patients.xes", "--epsilon", "0.1", "--json", "told.json"]
    assert main([*twin, "--no-ledger"]) == 0
    assert "ledger" not in capsys.readouterr().out and not remembered().exists()
    assert main(suggest) == 0
    assert "It is entered in no ledger." in " ".join(capsys.readouterr().out.split())
    assert main(twin) == 0
    assert BEFORE in " ".join(capsys.readouterr().out.split())
    assert BEFORE in json.loads(Path("told.json").read_text())["owner_only"]["notes"][0]
    assert main([*twin, "--ledger", "a.ledger"]) == 0
    assert "before" not in capsys.readouterr().out
    # In Python the release after them notes it.
    log = hospital(30, seed=81)
    veilog.suggest(log, epsilon=1, for_="prediction")
    veilog.twin(log, epsilon="0.1")
    assert "released or asked 2 times before" in released(log)[0]


def test_where_nothing_can_be_kept_a_release_goes_on(tmp_path: Path) -> None:
    log = hospital(30, seed=79)
    made = veilog.plan("evolve", epsilon=1, activities=ACTIVITIES).run(log)
    (tmp_path / "file").write_text("")
    assert noticed(made, log, tmp_path / "file" / "released.json") == made
