"""The worker process of a job, and the stages of the job's progress.

A stage has plain words, and its share of the time that jobs usually take.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from veilog._files import atomic_target
from veilog._language import gettext, gettext_noop, spoken
from veilog._plain import from_plain, to_plain
from veilog._process import Child, exit_when_terminated, limit_memory
from veilog.errors import VeilogError
from veilog.web.jobs.records import DISK_FULL, JobRequest, ServerSettings, is_full
from veilog.web.jobs.results import Kind, Result, to_text

Progress = Callable[[str, float | None], None]

RESULT = "result.json"
PAID = "paid.json"
"""Interim result if the work ends early: the release is kept, files are missing."""
ENTRY = "entry"
"""File with the release's number in the ledger, until a result has it."""
_LARGEST = 4 << 20
"""Largest number of bytes of a result, which has what pages show, not the release."""
_SPARE = 4 << 30
"""Bytes that libraries reserve without use; only absurd allocations fail by this limit."""
_SELDOM = 0.1
"""Seconds between two messages about progress."""
_GRACE = 5.0


@dataclass(frozen=True)
class WorkerTask:
    """A job in the form that the worker needs."""

    kind: Kind
    path: str
    """Path of the log."""
    name: str
    """Name that the user gave it."""
    columns: dict[str, str]
    request: JobRequest
    out: str
    """Folder for the output."""
    others: tuple[str, ...] = ()
    """Fingerprints of other readings of this file, which share one account with it."""


Work = Callable[[WorkerTask, ServerSettings, Progress], Result]
"""Does a job, and returns what the pages show of it."""


def run(pipe: Connection, settings: ServerSettings, work: Work) -> None:
    """Wait for a job, do it, and end: the main function of the process."""
    _isolate(settings)
    try:
        task = from_plain(WorkerTask, json.loads(pipe.recv_bytes()))
        pipe.send_bytes(b'{"begun": true}')  # before any query: until here another process could do it
    except (EOFError, OSError):
        return
    exit_when_terminated()  # through the work, so that it settles with the ledger
    threading.Thread(target=_end_with, args=(pipe,), daemon=True).start()
    place = Path(task.out) / "tmp"
    place.mkdir(parents=True, exist_ok=True)
    os.environ["TMPDIR"] = tempfile.tempdir = str(place)
    os.chdir(place)
    say = _Said(pipe, task)
    with spoken(task.request.language):
        answer = _answer(task, settings, work, say)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it is done: nothing can be cancelled any more
    say.send(answer)


def _answer(task: WorkerTask, settings: ServerSettings, work: Work, say: _Said) -> dict[str, Any]:
    try:
        text = to_text(work(task, settings, say.progress))
        if len(text) > _LARGEST:
            return {"problem": gettext("The result is too large to be shown.")}
        with atomic_target(Path(task.out) / RESULT) as file:  # last, so that it is there only with all the rest
            file.write(text.encode())
    except MemoryError:
        return {"problem": "job-memory"}
    except VeilogError as error:
        full = error.__cause__ is not None and is_full(error.__cause__)
        return {"problem": str(DISK_FULL) if full else say.named(str(error))}
    except Exception as error:  # noqa: BLE001  # whatever it is, a user waits for words
        if is_full(error):
            return {"problem": str(DISK_FULL)}
        if "out of memory" in str(error).lower() or "bad_alloc" in str(error):
            return {"problem": "job-memory"}
        traceback.print_exc(file=sys.stderr)
        said = gettext(
            "This is a defect of veilog ({kind}); the server's terminal has its details. Please report it.",
            kind=type(error).__name__,
        )
        return {"problem": said}
    return {"done": True}


class _Said:
    """The worker's end of the pipe, for messages about its work."""

    def __init__(self, pipe: Connection, task: WorkerTask) -> None:
        self._pipe = pipe
        self._task = task
        self._last = ("", 0.0)

    def progress(self, text: str, fraction: float | None) -> None:
        now = time.monotonic()
        if text == self._last[0] and now - self._last[1] < _SELDOM:
            return
        self._last = (text, now)
        known = None if fraction is None or not 0 <= fraction <= 1 else float(fraction)
        self.send({"text": self.named(text), "fraction": known})

    def named(self, text: str) -> str:
        """Return a text with the user's name of the log, and without the server's folders."""
        path = Path(self._task.path)
        return text.replace(str(path), self._task.name).replace(path.name, self._task.name).replace(self._task.out, "")

    def send(self, message: dict[str, Any]) -> None:
        with contextlib.suppress(OSError):  # the server is gone, and this process goes after it
            self._pipe.send_bytes(json.dumps(message).encode())


def _isolate(settings: ServerSettings) -> None:
    """Isolate the process: its own group, private files, first to end without memory."""
    os.umask(0o077)
    if os.name != "posix":
        return
    os.setsid()
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("500")
    with contextlib.suppress(ValueError, OSError):
        limit_memory(settings.job_memory + _SPARE, reserved=False)


def _end_with(pipe: Connection) -> None:
    """End the process and its group when the pipe breaks: the server is gone then."""
    with contextlib.suppress(EOFError, OSError):
        pipe.recv_bytes()
    if os.name == "posix":
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(_GRACE)
        os.killpg(os.getpgrp(), signal.SIGKILL)
    os._exit(1)


_LONGEST = 1 << 20
"""Bytes of one message: words about progress, never a result."""


class WorkerProcess(Child):
    """A worker. The server takes its messages as data, never as code."""

    def __init__(self, settings: ServerSettings, work: Work) -> None:
        super().__init__(run, replace(settings, token=""), work)

    def give(self, task: WorkerTask) -> None:
        with contextlib.suppress(OSError):  # it has died, which messages() reports
            self.pipe.send_bytes(json.dumps(to_plain(task)).encode())

    def messages(self, seconds: float) -> Iterator[dict[str, Any]]:
        """Yield its messages within this time; EOFError after the last of a dead one."""
        ready = wait([self.pipe, self.sentinel], seconds)
        if not ready:
            return
        while self.pipe.poll(0):
            try:
                message = json.loads(self.pipe.recv_bytes(_LONGEST))
            except (OSError, ValueError) as error:
                raise EOFError from error
            if isinstance(message, dict):
                yield message
        if self.sentinel in ready:
            raise EOFError


READING: Mapping[str, float] = {
    gettext_noop("Looking at the columns"): 0.02,
    gettext_noop("Reading the log"): 0.38,
    gettext_noop("Counting who could be found"): 0.6,
}
"""Stages of reading a log."""
RELEASING: Mapping[str, float] = {
    gettext_noop("Reading the log"): 0.2,
    gettext_noop("Querying the log, with noise"): 0.3,
    gettext_noop("Writing the files"): 0.1,
}
COMPARING = {gettext_noop("Comparing with the original"): 0.4}
MORE = {"Comparing with the original": 0.15, gettext_noop("Trying how well the release predicts"): 0.25}
"""Stages of a release, with a short comparison or a thorough one."""


class Stages:
    """The stages of one job.

    Progress inside a stage moves the bar without words, which would mean nothing to most users.
    """

    def __init__(self, progress: Progress, shares: Mapping[str, float]) -> None:
        self._progress = progress
        self._shares = shares

    def at(self, stage: str) -> Progress:
        """Begin a stage; return the function that takes its progress.

        The progress may come in rounds of which each begins anew.
        """
        names = list(self._shares)
        place = names.index(stage)
        before = sum(self._shares[name] for name in names[:place])
        furthest = 0.0

        def inside(text: str, fraction: float | None) -> None:
            nonlocal furthest
            furthest = max(furthest, min(fraction or 0.0, 1.0))
            said = gettext("{stage} (step {n} of {all})", stage=gettext(stage), n=place + 1, all=len(names))
            self._progress(said, (before + furthest * self._shares[stage]) / sum(self._shares.values()))

        inside(stage, 0.0)
        return inside
