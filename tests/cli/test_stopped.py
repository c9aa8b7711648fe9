"""Stopped commands report no less than was spent and written.

Their output is closed, has no room, or a signal ended them.
"""

import contextlib
import errno
import hashlib
import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from refusals import sentence

import veilog
from veilog.cli import main
from veilog.errors import OutputError
from veilog.logs.synthetic.hospital import hospital
from veilog.messages import Message

FULL = Path("/dev/full")
RELEASE = ("-m", "laplace", "-p", "depth=2", "--epsilon", "1", "--activities", "log")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    veilog.write(hospital(300, seed=1), tmp_path / "log.xes")
    return tmp_path / "log.xes"


def called(*arguments: object, stdout: int) -> tuple[int, str]:
    command = [sys.executable, "-m", "veilog", *map(str, arguments)]
    done = subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False)
    return done.returncode, done.stderr


@pytest.mark.nightly(but=1)
@pytest.mark.parametrize("arguments", [["--help"], ["methods"], ["info", "LOG"], ["release", "LOG", "OUT", *RELEASE]])
def test_a_reader_that_goes_away_ends_no_work(log: Path, tmp_path: Path, arguments: list[str]) -> None:
    out = tmp_path / "out.xes"
    reading, writing = os.pipe()
    os.close(reading)
    given = [{"LOG": str(log), "OUT": str(out)}.get(word, word) for word in arguments]
    try:
        assert called(*given, stdout=writing) == (0, "")
    finally:
        os.close(writing)
    assert out.exists() == ("release" in arguments)


@pytest.mark.nightly
@pytest.mark.skipif(not FULL.exists(), reason="no such device here")
def test_a_full_disk_behind_standard_output_is_a_line_and_a_status(log: Path, tmp_path: Path) -> None:
    out, facts = tmp_path / "out.xes", tmp_path / "facts.json"
    with FULL.open("wb") as full:
        status, said = called("release", log, out, *RELEASE, "--no-ledger", "--json", facts, stdout=full.fileno())
        assert called("completion", "bash", stdout=full.fileno())[0] == 5
    assert status == 5 and out.exists()
    unwritable = sentence("output-not-writable", reason=os.strerror(errno.ENOSPC))
    assert said.splitlines() == [f"Error: {unwritable} {sentence('release-written', place=out)}"]
    assert json.loads(facts.read_text())["guarantee"]["epsilon"] == 1


def stop(monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    def stopped(*arguments: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(where, stopped)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("where", "ledger", "code"),
    [
        ("veilog.cli.release._compare_release", "--no-ledger", "release-written"),
        ("veilog.releasing.result.Release.save", "--no-ledger", "perhaps-spent"),
        ("veilog.releasing.result.Release.save", "--ledger", "epsilon-spent"),
        ("veilog.releasing.run.claims", "--ledger", "nothing-spent"),
    ],
)
def test_who_stops_a_release_is_told_what_it_cost(
    log: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    where: str,
    ledger: str,
    code: str,
) -> None:
    stop(monkeypatch, where)
    out, facts, own = tmp_path / "out.xes", tmp_path / "facts.json", tmp_path / "own.ledger"
    place = [ledger, *([] if ledger == "--no-ledger" else [str(own)])]
    assert main(["release", str(log), str(out), *RELEASE, *place, "--json", str(facts)]) == 130
    told, told_cost = capsys.readouterr().err, sentence(code, place=out, epsilon=1, ledger=own)
    assert sentence("interrupted-cleanly") in told and told_cost in told
    found = json.loads(facts.read_text())
    if where.endswith("_compare_release"):  # what it guarantees was written, and stays
        assert found["guarantee"]["epsilon"] == 1
    else:
        assert (found["error"]["kind"], found["error"]["status"]) == ("Interrupted", 130)
        assert told_cost in found["error"]["message"]


SUGGEST = ("suggest", "LOG", "--epsilon", "1")
TWIN = ("twin", "LOG", "--epsilon", "0.5")
TRAIN = ("train", "LOG", "MODEL", "--epsilon", "2", "--delta", "1e-3", "-p", "free_generator_steps=20")


@pytest.mark.nightly(but=1)
@pytest.mark.parametrize(
    ("command", "where", "code", "epsilon"),
    [
        (SUGGEST, "veilog.releasing.suggest._pick_by_answers", "epsilon-spent", 0.1),
        (SUGGEST, "veilog.releasing.suggest._answers", "nothing-spent", None),
        (SUGGEST, "veilog.cli.suggest._view", "suggestion-paid", None),
        (TWIN, "veilog.releasing.preview.replace", "epsilon-spent", 0.5),
        (TWIN, "veilog.releasing.preview.ask_sizes", "nothing-spent", None),
        (TWIN, "veilog.releasing.preview.twin_of", "sizes-paid", None),
        (TRAIN, "veilog.training.Model.save", "epsilon-spent", 2),
        (TRAIN, "veilog.training.travag.train", "nothing-spent", None),
        (TRAIN, "veilog.cli.model._view", "model-written", None),
    ],
)
def test_who_stops_another_command_that_spends_is_told_so(
    log: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: tuple[str, ...],
    where: str,
    code: str,
    epsilon: float | None,
) -> None:
    if command is TRAIN:
        veilog.write(hospital(800, seed=3), log, overwrite=True)
    stop(monkeypatch, where)
    names = {"LOG": str(log), "MODEL": str(tmp_path / "model.veilog")}
    words = [names.get(word, word) for word in command]
    own = tmp_path / "own.ledger"
    assert main([*words, "--ledger", str(own)]) == 130
    told = sentence(code, epsilon=epsilon, ledger=own, model=names["MODEL"])
    assert told in " ".join(capsys.readouterr().err.split())


@pytest.mark.slow
def test_sigterm_ends_a_release_as_ctrl_c_does(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """SIGTERM ends a release as Ctrl-C does: a message, a charge, and no part file."""
    own, out = tmp_path / "own.ledger", tmp_path / "out.xes"
    held: list[Path] = []
    assert main(["ledger", "set", str(log), "--epsilon", "2", "--ledger", str(own)]) == 0

    def ended(descriptor: int) -> None:
        held.extend(tmp_path.rglob(".veilog-*.part"))
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)  # as of timeout, which sends it to the group, too

    monkeypatch.setattr("veilog._files.os.fsync", ended)
    before = signal.getsignal(signal.SIGTERM)
    assert main(["release", str(log), str(out), *RELEASE, "--ledger", str(own)]) == 143
    said = capsys.readouterr().err
    assert sentence("interrupted-cleanly") in said and sentence("epsilon-spent", epsilon=1, ledger=own) in said
    assert len(held) == 1 and not list(tmp_path.rglob(".veilog-*.part")) and not out.exists()
    assert "veilog ledger write" in said and list((tmp_path / "own.ledger.kept").iterdir())
    (account,) = veilog.Ledger.open(own).show()
    assert [entry.state for entry in account.entries] == ["charged"]
    assert signal.getsignal(signal.SIGTERM) == before


@pytest.mark.slow
def test_a_release_that_is_stopped_while_it_is_hashed_is_not_there(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A release that is stopped while it is hashed leaves no file in its place."""
    own, out = tmp_path / "own.ledger", tmp_path / "out.xes"
    stop(monkeypatch, "hashlib.file_digest")
    assert main(["release", str(log), str(out), *RELEASE, "--ledger", str(own)]) == 130
    said = capsys.readouterr().err
    assert sentence("interrupted-cleanly") in said and sentence("epsilon-spent", epsilon=1, ledger=own) in said
    assert not out.exists() and not list(tmp_path.glob(".veilog-*.part"))
    assert [entry.state for entry in veilog.Ledger.open(own).show()[0].entries] == ["charged"]


def told_when_it_is_there(monkeypatch: pytest.MonkeyPatch, out: Path, number: int = signal.SIGTERM) -> None:
    """Raise a signal at the moment when the file has its name but no entry yet."""
    made_durable = veilog._files._sync_folder
    before: list[Path] = []

    def told(folder: Path) -> None:
        made_durable(folder)
        if out.exists() and not before:
            before.append(out)
            signal.raise_signal(number)

    monkeypatch.setattr("veilog._files._sync_folder", told)


@pytest.mark.slow
@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
@pytest.mark.parametrize("ledger", ["--no-ledger", "--ledger"])
def test_a_release_that_is_there_is_said_and_entered_though_it_was_stopped_then(
    log: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    ledger: str,
    number: int,
    status: int,
) -> None:
    own, out, facts = tmp_path / "own.ledger", tmp_path / "out.xes", tmp_path / "facts.json"
    place = [ledger, *([] if ledger == "--no-ledger" else [str(own)])]
    before = [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)]
    told_when_it_is_there(monkeypatch, out, number)
    assert main(["release", str(log), str(out), *RELEASE, *place, "--json", str(facts)]) == status
    spent = sentence("perhaps-spent" if ledger == "--no-ledger" else "epsilon-spent", epsilon=1, ledger=own)
    for said in (capsys.readouterr().err, json.loads(facts.read_text())["error"]["message"]):
        assert f"{sentence('file-is-written', files=out)} {spent}" in said
    assert [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)] == before
    assert veilog.read(out).cases.num_rows
    if ledger == "--ledger":
        (entry,) = veilog.Ledger.open(own).show()[0].entries
        assert (entry.state, entry.outputs) == ("written", (hashlib.sha256(out.read_bytes()).hexdigest(),))


@pytest.mark.slow
def test_a_ledger_that_cannot_be_written_at_the_end_loses_no_release(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def locked(*_: Any, **__: Any) -> Any:
        raise OutputError("ledger-locked", path=own)

    own, out = tmp_path / "own.ledger", tmp_path / "out.xes"
    monkeypatch.setattr("veilog.ledger.ledger.EntryRef._note_file", locked)
    assert main(["release", str(log), str(out), *RELEASE, "--ledger", str(own)]) == 5
    said = " ".join(capsys.readouterr().err.split())
    assert str(Message("ledger-file-not-noted", reason="")).strip() in said and str(Message("ledger-locked")) in said
    assert veilog.read(out).cases.num_rows


@pytest.mark.slow
def test_a_release_that_was_stopped_before_it_was_written_is_kept(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stop(monkeypatch, "veilog.releasing.result.Release.save")
    out, own = tmp_path / "out.csv", tmp_path / "own.ledger"
    assert main(["release", str(log), str(out), *RELEASE, "--ledger", str(own)]) == 130
    kept = tmp_path / "own.ledger.kept" / "1.parquet"
    assert str(kept) in capsys.readouterr().err
    assert veilog.read(kept).cases.num_rows and not out.exists()


@pytest.mark.nightly
def test_a_model_that_is_there_is_said_and_entered_though_it_was_stopped_then(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    veilog.write(hospital(800, seed=3), log, overwrite=True)
    own, model = tmp_path / "own.ledger", tmp_path / "model.veilog"
    told_when_it_is_there(monkeypatch, model)
    words = [{"LOG": str(log), "MODEL": str(model)}.get(word, word) for word in TRAIN]
    assert main([*words, "--ledger", str(own)]) == 143
    said = " ".join(capsys.readouterr().err.split())
    spent = sentence("epsilon-spent", epsilon=2, ledger=own)
    assert f"{sentence('file-is-written', files=model)} {spent}" in said
    assert [entry.state for entry in veilog.Ledger.open(own).show()[0].entries] == ["written"]


@pytest.mark.slow
def test_what_is_stopped_when_all_is_done_says_what_there_is(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    @contextlib.contextmanager
    def cleared() -> Iterator[None]:
        yield
        raise KeyboardInterrupt

    monkeypatch.setattr("veilog.cli.remove_at_end", cleared)
    out = tmp_path / "out.xes"
    assert main(["release", str(log), str(out), *RELEASE, "--no-ledger"]) == 130
    told = [sentence("interrupted-cleanly"), sentence("release-written", place=out)]
    assert " ".join(told) in capsys.readouterr().err


@pytest.mark.nightly
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_once_all_is_said_makes_no_failure_of_it(log: Path, number: int) -> None:
    """A signal after the last output, while Python exits, is no failure."""
    program = (
        f"import atexit, signal, sys; atexit.register(signal.raise_signal, {number:d}); "
        f"from veilog.cli import main; sys.argv = ['veilog', 'info', {str(log)!r}]; sys.exit(main())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "") and "cases" in done.stdout


@pytest.mark.slow
def test_sigterm_before_anything_was_asked_costs_nothing(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def ended(*_: Any) -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr("veilog.releasing.run.make_by_method", ended)
    own = tmp_path / "own.ledger"
    assert main(["release", str(log), str(tmp_path / "out.xes"), *RELEASE, "--ledger", str(own)]) == 143
    assert sentence("nothing-spent") in capsys.readouterr().err
    assert [entry.state for entry in veilog.Ledger.open(own).show()[0].entries] == ["withdrawn"]


def test_a_server_ends_in_its_own_way(monkeypatch: pytest.MonkeyPatch) -> None:
    handlers = []
    monkeypatch.setattr("veilog.cli._run", lambda *_: handlers.append(signal.getsignal(signal.SIGTERM)) or 0)
    before = signal.getsignal(signal.SIGTERM)
    assert [main(["serve"]), main(["info", "log.xes"])] == [0, 0]
    assert handlers[0] == before and handlers[1] != before


def test_ctrl_c_while_the_command_is_loaded_is_a_line_and_a_status() -> None:
    """Ctrl-C during the loading of the command prints one line and gives a status."""
    begin = (
        "import builtins, sys; from veilog.__main__ import run; usual = builtins.__import__\n"
        "def stopped(name, *more):\n"
        "    if name.partition('.')[0] == 'cyclopts': raise KeyboardInterrupt\n"
        "    return usual(name, *more)\n"
        "builtins.__import__ = stopped; sys.exit(run())"
    )
    done = subprocess.run([sys.executable, "-c", begin], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, f"Error: {sentence('interrupted-cleanly')}\n")


@pytest.mark.nightly
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of addresses")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("words", [["release", "--help"], ["serve", "--no-open", "--folder", "nowhere"]])
def test_a_start_that_never_ends_for_want_of_memory_can_be_ended(
    tmp_path: Path, words: list[str], number: signal.Signals
) -> None:
    """A start without memory, in which no handler of Python runs, can still be ended."""
    limited = f"ulimit -v 400000; exec {shlex.quote(sys.executable)} -m veilog {shlex.join(words)}"
    started = subprocess.Popen(["/bin/sh", "-c", limited], cwd=tmp_path, stderr=subprocess.DEVNULL)
    try:
        if started.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                started.wait(8)  # it ends by itself only where there was enough memory, or none at all
        started.send_signal(number)
        assert started.wait(60) != 0
    finally:
        started.kill()
        started.wait()


@pytest.mark.slow
@pytest.mark.usefixtures("interruptible")
def test_a_release_for_standard_output_that_was_stopped_before_it_was_sent_is_kept(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A release for standard output that was stopped before is kept beside the ledger."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    made_durable = veilog._files._sync_folder

    def told(folder: Path) -> None:
        made_durable(folder)
        if "veilog-pipe-" in folder.name:
            signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr("veilog._files._sync_folder", told)
    words = ["release", str(log), "-", "--to", "csv", *RELEASE, "--ledger", str(tmp_path / "own.ledger")]
    assert main(words) == 143
    kept = tmp_path / "own.ledger.kept" / "1.parquet"
    said = capsys.readouterr().err
    assert str(kept) in said and "stdout.csv" not in said
    assert veilog.read(kept).cases.num_rows
