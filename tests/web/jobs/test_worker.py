"""Answers of a worker, without a process around it."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from multiprocessing import Pipe
from pathlib import Path
from typing import Any

import pytest
from web_work import work

from veilog._process import memory_of
from veilog.web.jobs import worker
from veilog.web.jobs.records import JobRequest, ServerSettings
from veilog.web.jobs.worker import WorkerTask
from veilog.web.work import work_on


@pytest.fixture
def asked(tmp_path: Path) -> Iterator[Any]:
    """Run a task; return its answer, its messages, and the files that are left."""
    out = tmp_path / "jobs" / "7"
    out.mkdir(parents=True)
    settings = ServerSettings(folder=tmp_path, ledger=tmp_path / "l", token="")

    def ask(do: str) -> tuple[dict[str, Any], list[dict[str, Any]], list[str]]:
        ours, theirs = Pipe()
        request = JobRequest(form={"do": do})
        task = WorkerTask("release", str(tmp_path / "logs" / "8" / "log.csv"), "ward.csv", {}, request, str(out))
        answer = worker._answer(task, settings, work, worker._Said(theirs, task))
        theirs.close()
        said = []
        while ours.poll():
            try:
                said.append(json.loads(ours.recv_bytes()))
            except EOFError:
                break
        ours.close()
        return answer, said, sorted(path.name for path in out.iterdir())

    yield ask


def test_a_result_is_in_a_file_when_it_is_done(asked: Any) -> None:
    answer, said, files = asked("short")
    assert answer == {"done": True}
    assert said == [{"text": "working on ward.csv", "fraction": 0.25}]
    assert files == ["release.xes", "result.json"]


@pytest.mark.parametrize(
    ("do", "words"),
    [
        ("mistake", "ward.csv: The third line is wrong."),
        ("defect", "This is a defect of veilog (KeyError)"),
        ("refused memory", "job-memory"),
        ("full", "The disk is full."),
        ("full in words", "The disk is full."),
        ("huge", "too large to be shown"),
        ("not JSON", "This is a defect of veilog (ValueError)"),
    ],
)
def test_what_goes_wrong_is_said_in_words(asked: Any, tmp_path: Path, do: str, words: str) -> None:
    answer, _, files = asked(do)
    assert set(answer) == {"problem"}
    assert words in answer["problem"]
    assert str(tmp_path) not in answer["problem"]
    assert "secret" not in answer["problem"]
    assert "result.json" not in files


HOLDS = """
import os, sys
held = b"x" * (200 << 20)
if sys.argv[1:]:
    import subprocess
    child = subprocess.Popen([sys.executable, sys.argv[0]])
else:
    print("held", flush=True)
sys.stdin.read()
"""


@pytest.mark.slow
def test_memory_is_that_of_the_whole_group(tmp_path: Path) -> None:
    """Memory is that of the whole group: two processes of 200 MiB each."""
    program = tmp_path / "holds.py"
    program.write_text(HOLDS)
    pipe = subprocess.PIPE
    two = [sys.executable, str(program), "two"]
    with subprocess.Popen(two, start_new_session=True, stdin=pipe, stdout=pipe, text=True) as group:
        assert group.stdout is not None
        assert group.stdout.readline() == "held\n"
        assert memory_of(group.pid) > 390 << 20
        os.killpg(group.pid, signal.SIGKILL)
    assert memory_of(2**22 + 5) == 0


@pytest.mark.parametrize("suffix", [".xes", ".xes.gz", ".csv", ".csv.gz", ".tsv", ".parquet"])
def test_a_program_that_is_called_a_log_is_refused_in_words(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"log{suffix}"
    path.write_bytes(Path(sys.executable).read_bytes()[:300_000])
    ours, theirs = Pipe()
    task = WorkerTask("read", str(path), f"holiday{suffix}", {}, JobRequest(), str(tmp_path))
    settings = ServerSettings(folder=tmp_path, ledger=tmp_path / "l", token="")
    answer = worker._answer(task, settings, work_on, worker._Said(theirs, task))
    if answer == {"done": True}:  # what is read is asked about: which columns are meant?
        answer = json.loads((tmp_path / "result.json").read_text())
    assert answer["problem"]
    assert "defect" not in answer["problem"]
    assert str(tmp_path) not in answer["problem"]
    ours.close()
    theirs.close()
