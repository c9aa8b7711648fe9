"""Refusals of the command, and what it leaves when it is stopped or cannot write."""

import contextlib
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from commands import TRAVAS, code_of, run

import veilog
from veilog.cli import main
from veilog.errors import OutputError
from veilog.ledger.ledger import Ledger
from veilog.logs.synthetic.hospital import hospital
from veilog.report.release_facts import facts_of_file

GOOD = (
    '<?xml version="1.0" encoding="UTF-8"?><log>\n<trace><string key="concept:name" value="1"/>\n'
    '<event><string key="concept:name" value="a"/><date key="time:timestamp" value="2024-01-01T00:00:00Z"/></event>'
    "</trace>\n</log>"
)
BROKEN = {
    "truncated.xes": GOOD[:-20],
    "missing-columns.csv": "case,colour\n1,red\n",
    "missing-timestamp.csv": "case,activity,timestamp\n1,a,\n1,b,2024-01-01\n",
}
"""Files without a log, without a column, and with a finding; tests/logs has others."""


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(BROKEN))
@pytest.mark.parametrize("command", ["info", "convert", "release"])
def test_bad_input_is_one_clear_message_and_no_file(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str, command: str
) -> None:
    path = tmp_path / name
    path.write_bytes(BROKEN[name].encode())
    target = tmp_path / "out.xes"
    more: list[object] = [] if command == "info" else [target]
    if command == "release":
        more += ["--method", "travas", "--epsilon", 1, "--delta", 0.1]
    status, out, err = run(capsys, command, path, *more)
    assert status == 1
    assert out == "" or out.startswith("columns: ")  # a guess that may be the cause is shown
    assert err.startswith("Error: ")
    assert name in err
    assert "Traceback" not in err
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    "arguments", [["inform"], ["info"], ["release", "a", "b"], ["info", "a", "b", "c"], ["info", "a", "--colour"]]
)
def test_wrong_usage_is_status_2(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    status, out, err = run(capsys, *arguments)
    assert (status, out) == (2, "")
    assert err


@pytest.mark.slow
def test_help_and_version_are_status_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert veilog.__version__ in capsys.readouterr().out
    assert main(["release", "--help"]) == 0
    assert "--epsilon" in capsys.readouterr().out


@pytest.mark.slow
def test_declared_activities_come_from_a_list_or_a_file(
    capsys: pytest.CaptureFixture[str], log: Path, tmp_path: Path
) -> None:
    listed = tmp_path / "activities.txt"
    listed.write_text("Registration\nTriage\n")
    for name, declared in (("out.xes", "Registration,Triage"), ("other.xes", f"@{listed}")):
        target = tmp_path / name
        arguments = ["release", log, target, "-m", "travas", "--epsilon", 1, "--delta", 0.1, "--activities", declared]
        assert run(capsys, *arguments)[0] == 0
        assert set(veilog.read(target).variants.labels) <= {"Registration", "Triage"}
    missing = ["release", log, tmp_path / "x.xes", "-m", "travas", "--epsilon", 1, "--delta", 0.1]
    assert run(capsys, *missing, "--activities", f"@{tmp_path}/none")[0] == 2


def test_guessed_columns_are_shown(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("Patient,Task,Date\n1,a,2024-01-01\n2,a,2024-01-02\n")
    _, out, _ = run(capsys, "info", path)
    assert "case 'Patient' (guessed)" in out
    _, out, _ = run(capsys, "info", path, "--case", "Patient", "--activity", "Task", "--timestamp", "Date")
    assert "(guessed)" not in out


def size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


@pytest.mark.nightly
@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_leaves_nothing_half_written(folder: Path, tmp_path: Path) -> None:
    """An interrupted conversion ends with status 130 and one line, and leaves no file."""
    source = folder / "large.parquet"
    veilog.write(hospital(60_000, seed=1), source)
    command = [sys.executable, "-m", "veilog", "convert", str(source), str(tmp_path / "out.xes")]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ.copy())
    deadline = time.monotonic() + 60
    while not any(map(size_of, tmp_path.iterdir())) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    # Python ends by the signal itself, which a shell reports as 130 too, when the interrupt crossed an exec() on its
    # way to us, as in the making of a dataclass during an import.
    assert process.returncode in (130, -signal.SIGINT), err
    assert "interrupted" in err
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []


def in_group(group: int) -> list[str]:
    """Return the processes of a group that have not ended."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            name, _, facts = stat.read_text().rpartition(")")
            if facts.split()[2] == str(group) and facts.split()[0] != "Z":
                found.append(name)
    return found


@pytest.mark.nightly
@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="this system has no /proc")
@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_ends_an_audit_with_its_processes() -> None:
    """At a terminal Ctrl-C reaches all processes; only the first one prints it."""
    command = [sys.executable, "-m", "veilog", "audit", "evolve", "--epsilon", "1", "--white-box"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    deadline = time.monotonic() + 120
    while len(in_group(process.pid)) < 4 and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(1)  # most are in the middle of their imports then, and it has to hold at any other moment, too
    os.killpg(process.pid, signal.SIGINT)
    began = time.monotonic()
    _, err = process.communicate(timeout=60)  # less than 2 seconds where nothing else runs
    assert process.returncode in (130, -signal.SIGINT), err
    assert "interrupted" in err and "Traceback" not in err
    # multiprocessing's tracker of resources ends by itself a moment after the process that it tracks.
    while in_group(process.pid) and time.monotonic() - began < 120:
        time.sleep(0.05)
    assert in_group(process.pid) == []


def test_a_disk_without_room_is_told_before_anything_is_paid_for(
    capsys: pytest.CaptureFixture[str], log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10**6, 10**6 - 5, 5))
    command = ("release", log, tmp_path / "out.xes", *TRAVAS, "--ledger", tmp_path / "account.ledger")
    assert code_of(capsys, *command) == (5, "room-disk-too-small")
    assert not (tmp_path / "account.ledger").exists() and not (tmp_path / "out.xes").exists()


def test_a_release_that_cannot_be_written_is_kept_beside_its_ledger(
    capsys: pytest.CaptureFixture[str], log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(released: veilog.Release, path: Path, **more: Any) -> None:
        raise OutputError("file-not-writable", path=path, reason="No space left on device")

    monkeypatch.setattr(veilog.Release, "save", full)
    ledger, told = tmp_path / "l.ledger", tmp_path / "told.json"
    asked = ("release", log, tmp_path / "out.xes", *TRAVAS, "--json", told)
    assert run(capsys, *asked, "--ledger", ledger)[0] == 5
    error = json.loads(told.read_text())["error"]
    (kept,) = (tmp_path / "l.ledger.kept").iterdir()
    assert error["code"] == "release-waits-in-place" and not (tmp_path / "out.xes").exists()
    assert veilog.read(kept).variants.cases > 0
    told.unlink()
    status, _, err = run(capsys, *asked, "--no-ledger")
    assert status == 5 and json.loads(told.read_text())["error"]["code"] == "file-not-writable"
    assert "epsilon" in err, "no ledger says what was spent"


@pytest.mark.nightly
def test_a_release_for_both_writes_two_files_of_one_run(
    capsys: pytest.CaptureFixture[str], log: Path, tmp_path: Path
) -> None:
    """A release for both writes two files for one charge, and the ledger notes both."""
    evolve = ("--method", "evolve", "--epsilon", 1, "--activities", "log", "-p", "for=both", "--no-compare")
    ledger = tmp_path / "account.ledger"
    out, models = tmp_path / "out.xes.gz", tmp_path / "out-models.xes.gz"
    told = run(capsys, "release", log, out, *evolve, "--ledger", ledger)
    assert told[0] == 0 and "out-models.xes.gz" in "".join(told[1].split())
    for path in (out, models):
        guarantee = facts_of_file(veilog.read(path)).guarantee
        assert (guarantee.status, guarantee.epsilon) == ("proven", 1.0)
    assert veilog.read(out).cases.num_rows == veilog.read(models).cases.num_rows
    account = Ledger(ledger).account(veilog.read(log))
    assert account is not None
    (entry,) = account.entries
    assert entry.epsilon == 1
    assert set(entry.outputs) == {hashlib.sha256(path.read_bytes()).hexdigest() for path in (out, models)}


def test_a_second_file_neither_overwrites_the_log_nor_goes_to_a_pipe(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A second file that would replace the log is refused before any query."""
    evolve = ("--method", "evolve", "--epsilon", 1, "--activities", "log", "-p", "for=both")
    path = tmp_path / "out-models.xes"
    path.write_text(GOOD)
    status, _, err = run(capsys, "release", path, tmp_path / "out.xes", *evolve)
    assert status == 5 and "overwrite" in err and path.read_text() == GOOD
    status, _, err = run(capsys, "release", path, "-", "--format", "xes", *evolve)
    assert status == 2 and err
    assert [file.name for file in tmp_path.iterdir()] == ["out-models.xes"]


_STOPPED_WHILE_LOADING = """
import sys
from veilog.cli import main

class Stopped:
    times = 0

    def find_spec(self, name, path=None, target=None):
        if name == "numpy":
            self.times += 1
            raise KeyboardInterrupt if self.times == 1 else ImportError("cannot load module more than once per process")

sys.meta_path.insert(0, Stopped())
sys.exit(main(["info", "log.xes", "--json", "told.json"]))
"""


@pytest.mark.slow
def test_a_command_that_is_stopped_while_it_loads_what_it_needs_says_so_in_json(tmp_path: Path) -> None:
    """A command stopped while it loads its modules reports that in JSON."""
    done = subprocess.run(
        [sys.executable, "-c", _STOPPED_WHILE_LOADING], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert (done.returncode, done.stderr.count("interrupted"), done.stderr.count("Traceback")) == (130, 1, 0)
    assert json.loads((tmp_path / "told.json").read_text())["error"]["kind"] == "Interrupted"
