"""The user's ledger: entries without --ledger, uncounted releases, and questions."""

import json
from pathlib import Path
from typing import Any

import pytest
from commands import run

import veilog
from veilog._files import default_ledger
from veilog.cli import confirmation
from veilog.ledger.ledger import Ledger
from veilog.logs.synthetic.hospital import hospital

LAPLACE = ("-m", "laplace", "-p", "depth=2", "--activities", "log", "--no-compare")


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("VEILOG_LEDGER")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "log.csv"
    veilog.write(hospital(300, seed=78), path)
    return path


def made(capsys: pytest.CaptureFixture[str], log: Path, epsilon: str, *more: str) -> dict[str, Any]:
    log.with_name("out.xes").unlink(missing_ok=True)
    status, out, err = run(
        capsys, "release", log, log.with_name("out.xes"), *LAPLACE, "--epsilon", epsilon, *more, "--json", "-"
    )
    assert status == 0, err
    return dict(json.loads(out))


def codes(told: dict[str, Any]) -> list[str]:
    return [warning["code"] for warning in told["owner_only"].get("warnings", [])]


def own() -> Ledger:
    place = default_ledger()
    assert place is not None
    return Ledger.open(place)


@pytest.mark.slow
def test_command_and_python_have_one_account_of_a_log(capsys: pytest.CaptureFixture[str], log: Path) -> None:
    made(capsys, log, "0.5")
    veilog.release(veilog.read(log), "laplace", epsilon="0.25", activities="log", depth=2)
    (account,) = json.loads(run(capsys, "ledger", "show", "--json", "-")[1])["accounts"]
    assert account["spent"]["epsilon"] == 0.75 and account["name"] == "log.csv"
    assert not log.with_name("log.csv.ledger").exists()


def test_whoever_has_entered_nothing_has_no_account(capsys: pytest.CaptureFixture[str], log: Path) -> None:
    for arguments in ((), (str(log),)):
        status, out, _ = run(capsys, "ledger", "show", *arguments, "--json", "-")
        assert (status, json.loads(out)["accounts"]) == (0, [])
    assert not log.with_name("home").exists(), "looking makes nothing"


@pytest.mark.nightly
def test_a_ledger_beside_the_log_wins(capsys: pytest.CaptureFixture[str], log: Path) -> None:
    beside = log.with_name("log.csv.ledger")
    made(capsys, log, "0.5")
    status, out, _ = run(capsys, "ledger", "set", log, "--epsilon", "1", "--ledger", beside, "--json", "-")
    assert status == 0
    assert [warning["code"] for warning in json.loads(out)["warnings"]] == ["release-in-another-ledger"]
    made(capsys, log, "0.25")
    assert [len(Ledger.open(place).show()[0].entries) for place in (own().path, beside)] == [1, 1]
    assert codes(made(capsys, log, "0.25", "--no-ledger")) == ["one-release-uncounted"]
    assert [len(one.show()[0].uncounted) for one in (own(), Ledger.open(beside))] == [0, 1]


@pytest.mark.slow
def test_releases_without_a_ledger_are_listed_and_counted_when_it_is_said(
    capsys: pytest.CaptureFixture[str], log: Path
) -> None:
    """Releases without a ledger are listed, and counted if the owner decides so."""
    for _ in range(2):
        made(capsys, log, "0.5", "--no-ledger")
    found = json.loads(run(capsys, "ledger", "set", log, "--epsilon", "3", "--json", "-")[1])
    assert (found["spent"]["epsilon"], found["uncounted"]) == (0, 2)
    (shown,) = json.loads(run(capsys, "ledger", "show", log, "--json", "-")[1])["accounts"]
    assert [row["epsilon"] for row in shown["uncounted_releases"]] == [0.5, 0.5]
    counted = json.loads(run(capsys, "ledger", "set", log, "--count-all", "--json", "-")[1])
    assert (counted["spent"]["epsilon"], counted["left"]["epsilon"], "uncounted" in counted) == (1, 2, False)


@pytest.mark.slow
@pytest.mark.parametrize(("answer", "status", "releases"), [("n", 3, 1), ("", 3, 1), ("y", 0, 2)])
def test_whoever_is_at_a_terminal_is_asked_where_the_level_falls(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    log: Path,
    answer: str,
    status: int,
    releases: int,
) -> None:
    asked: list[object] = []
    monkeypatch.setattr(confirmation, "is_terminal", lambda: True)
    monkeypatch.setattr("veilog.cli.shared.terminal.SafeConsole.input", lambda self, text: asked.append(text) or answer)
    command = ("release", log, log.with_name("a.xes"), *LAPLACE, "--epsilon")
    assert run(capsys, *command, "1")[0] == 0 and asked == []
    log.with_name("a.xes").unlink()
    assert run(capsys, *command, "1.5")[0] == status and len(asked) == 1
    assert len(own().show()[0].entries) == releases
