"""The queue of jobs: their order, the running ones, their progress and their end.

Every session gets its turn: of those that wait, the one that was served longest ago is next. A job that ended never
runs again by itself. A release that was cut off may be charged, and running it again would charge it twice.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import shutil
import sqlite3
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from veilog._language import gettext_noop
from veilog.messages import Message
from veilog.web.jobs.records import ENOUGH_KEPT, QUEUE_FULL, JobRecord, JobRequest, LogRecord, ServerSettings, State
from veilog.web.jobs.results import Kind, ReadLog, from_text
from veilog.web.jobs.store import Store, Waiting
from veilog.web.jobs.worker import ENTRY, PAID, RESULT, Work, WorkerProcess, WorkerTask

_STARTING, _STOPPING = gettext_noop("starting"), gettext_noop("stopping")

FORECASTING = 150.0
"""Seconds of processor time for a forecast, for which a user waits."""
_LOOK = 0.1
"""Seconds between looks at a running job."""
_WEIGH = 0.5
"""Seconds between looks at its memory."""
_AGAIN = 3
"""Number of times that a job goes to a new process after its own died too early."""
_GRACE = 5.0
"""Seconds for a stopped job to settle with the ledger."""


@dataclass
class _Running:
    """A running job. Its thread writes it; a request may only ask it to stop."""

    stop: Literal["cancelled", "stopped", "memory", "time"] | None = None
    begun: bool = False
    """True once the worker has its task: it may have queried the data since."""
    text: str = _STARTING
    fraction: float | None = None
    since: float = 0.0
    """Time of its start."""
    most: float = 0.0
    """Seconds of processor time that it may take."""

    def told(self, message: Mapping[str, Any]) -> None:
        text, fraction = str(message.get("text", ""))[:300], message.get("fraction")
        self.text, self.fraction = text, float(fraction) if isinstance(fraction, int | float) else None

    def left(self) -> float | None:
        """Return the seconds until all of it is done, at the speed so far."""
        gone = time.monotonic() - self.since
        if self.fraction is None or self.fraction < 0.02 or gone < 1:
            return None
        return gone * (1 - self.fraction) / self.fraction


def order_fairly(waiting: list[Waiting], served: Mapping[str, int]) -> list[Waiting]:
    """Return the waiting jobs, given oldest first, in the order of their turns."""
    turns, order, left = dict(served), list[Waiting](), list(waiting)
    while left:
        job = min(left, key=lambda job: turns.get(job.session, 0))  # of equals, the one that has waited longest
        left.remove(job)
        order.append(job)
        turns[job.session] = max(turns.values(), default=0) + 1
    return order


class Jobs:
    """Runs the waiting jobs in as many threads as workers, each with a ready process."""

    def __init__(self, store: Store, settings: ServerSettings, work: Work) -> None:
        self._store = store
        self._settings = settings
        self._work = work
        self._changed = threading.Condition(store.lock)
        self._running: dict[str, _Running] = {}
        self._served: dict[str, int] = {}
        self._stopping = False
        self._threads: list[threading.Thread] = []

    def folder(self, job: str) -> Path:
        return self._settings.folder / "jobs" / job

    def log_folder(self, log: str) -> Path:
        return self._settings.folder / "logs" / log

    def path_of(self, log: LogRecord) -> Path:
        return self.log_folder(log.id) / f"log{log.format}"

    # What requests ask for.

    def submit(
        self, session: str, log: str, kind: Kind, request: JobRequest, file: tuple[Path, str] | None = None
    ) -> str:
        """Queue a job, with a ``file`` and its name in the job's folder; return its id.

        :class:`Problem` if the session would fill the disk or the queue.
        """
        job = secrets.token_hex(16)
        with self._changed:
            self.check_room(session, keeps=kind == "release")
            if file is not None:
                self.folder(job).mkdir(mode=0o700)
                file[0].rename(self.folder(job) / file[1])
            self._store.add_job(job, session, log, kind, request)
            self._changed.notify_all()
        return job

    def check_room(self, session: str, *, keeps: bool) -> None:
        """Refuse a job beyond what one session may queue, or keep if it ``keeps`` files."""
        jobs = self._store.jobs(session)
        if sum(job.state == "queued" for job in jobs) >= self._settings.max_waiting:
            raise QUEUE_FULL
        releases = [job for job in jobs if job.kind == "release" and job.state not in ("failed", "cancelled")]
        if keeps and len(releases) + len(self._store.logs(session)) >= self._settings.max_kept:
            raise ENOUGH_KEPT

    def cancel(self, job: str) -> None:
        """Stop a job that has not ended; one with a result stays done."""
        with self._changed:
            if job in self._running:
                self._running[job].stop = self._running[job].stop or "cancelled"
            else:
                self._store.end(job, "queued", "cancelled", None, "job-cancelled")

    def delete(self, job: str) -> None:
        """Delete a job and its files, after stopping it. The ledger keeps what it spent."""
        with self._changed:
            self._store.delete_job(job)
            self._clear([job])

    def delete_log(self, log: str) -> None:
        """Delete a log and everything that was made of it."""
        with self._changed:
            self._clear(self._store.delete_log(log))
            shutil.rmtree(self.log_folder(log), ignore_errors=True)

    def _clear(self, jobs: list[str]) -> None:
        for job in jobs:
            if job in self._running:
                self._running[job].stop = "cancelled"  # its thread deletes the files when it has ended
            else:
                shutil.rmtree(self.folder(job), ignore_errors=True)

    def now(self, job: JobRecord) -> JobRecord:
        """Return the record with the job's progress."""
        with self._changed:
            running = self._running.get(job.id)
            if job.state == "running" and running is not None:
                text = _STOPPING if running.stop else running.text
                so_far = self._interim_result(job.id)
                return replace(job, text=text, fraction=running.fraction, left=running.left(), kept=so_far)
            if job.state == "queued":
                order = [waiting.id for waiting in order_fairly(self._store.queued(), self._served)]
                return replace(job, text="waiting", ahead=order.index(job.id) if job.id in order else 0)
        return job

    # Running them.

    def start(self) -> None:
        """Clear up after the last run of the server, and begin."""
        self._recover()
        for number in range(self._settings.workers):
            thread = threading.Thread(target=self._serve, name=f"worker {number + 1}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def stop(self) -> None:
        """Stop the running jobs, and leave the waiting ones for the next start."""
        with self._changed:
            self._stopping = True
            for running in self._running.values():
                running.stop = running.stop or "stopped"
            self._changed.notify_all()
        for thread in self._threads:
            thread.join(_GRACE + 5)

    def _recover(self) -> None:
        for job in self._store.running():
            self._note_entry(job)
            self._take_paid(job)
            result = self.folder(job) / RESULT
            if result.is_file():  # written last, so only the job's state is missing
                self._store.end(job, "running", "done", text := result.read_text(), None, _mark(text))
            else:
                self._store.end(job, "running", "failed", None, "job-stopped")
                shutil.rmtree(self.folder(job), ignore_errors=True)
        for place, known in zip(("logs", "jobs"), self._store.ids(), strict=True):
            for left in (self._settings.folder / place).iterdir():
                if left.name not in known:
                    shutil.rmtree(left, ignore_errors=True)

    def _serve(self) -> None:
        process: WorkerProcess | None = None
        while not self._stopping:
            try:
                process = process or WorkerProcess(self._settings, self._work)
                job = self._next()
                if job is None:
                    break
                if not process.alive:  # it was ended while it waited; nothing is lost
                    process.end()
                    process = WorkerProcess(self._settings, self._work)
                self._run(job, process)
                process = None
            except (OSError, sqlite3.Error) as error:  # no process can be started, or the disk is full
                print(f"veilog serve: {error}", file=sys.stderr)  # noqa: T201
                time.sleep(1)
        if process is not None:
            process.end()

    def _next(self) -> str | None:
        """Return the next job, now marked as running; None when the server stops."""
        with self._changed:
            while not self._stopping:
                for job in order_fairly(self._store.queued(), self._served)[:1]:
                    if self._store.start(job.id):
                        self._running[job.id] = _Running(since=time.monotonic())
                        self._served[job.session] = max(self._served.values(), default=0) + 1
                        return job.id
                self._changed.wait()
        return None

    def _run(self, job: str, process: WorkerProcess) -> None:
        running = self._running[job]
        done, problem, ended = False, None, None
        try:
            found = self._store.any_job(job)
            if found is not None:  # no request deleted it meanwhile
                self.folder(job).mkdir(mode=0o700, parents=True, exist_ok=True)
                task = self._task(*found)
                done, problem = self._watch_job(job, process, task)
                for _ in range(_AGAIN):
                    if done or problem or running.stop or running.begun:
                        break
                    process.end()  # it ended before it received its task: no query was made
                    process = WorkerProcess(self._settings, self._work)
                    done, problem = self._watch_job(job, process, task)
        except (OSError, sqlite3.Error) as error:
            problem = f"The server could not keep this job's files: {error}."
        if not done:  # else it may end while its result is being shown
            ended = process.end()
        if not (done or problem or running.stop):
            problem = "job-died"
            print(f"veilog serve: a worker ended with {ended}", file=sys.stderr)  # noqa: T201
        self._settle(job, running, done, problem)
        if done:
            process.end()

    def _task(self, job: JobRecord, log: LogRecord) -> WorkerTask:
        return WorkerTask(
            kind=job.kind,
            path=str(self.path_of(log)),
            name=log.name,
            columns=log.columns,
            request=job.request,
            out=str(self.folder(job.id)),
            others=log.readings,
        )

    def _watch_job(self, job: str, process: WorkerProcess, task: WorkerTask) -> tuple[bool, str | None]:
        """Run a job in a process; return True if it is done, and its problem, if any."""
        running = self._running[job]
        longest = self._settings.job_seconds
        running.most = min(FORECASTING, longest) if task.kind == "forecast" else longest
        process.give(task)
        weighed, before = 0.0, 0.0
        kill_at: float | None = None
        with contextlib.suppress(EOFError):
            while kill_at is None or time.monotonic() < kill_at:
                for message in process.messages(_LOOK):
                    if "done" in message:
                        return True, None
                    if "problem" in message:
                        return False, str(message["problem"])
                    if "begun" in message:
                        running.begun = True
                        before = process.seconds()  # starting is not the job's
                    else:
                        running.told(message)
                if time.monotonic() - weighed > _WEIGH:
                    weighed = time.monotonic()
                    if process.memory() > self._settings.job_memory:
                        running.stop = "memory"
                        break  # at once: what it settles would need memory, too
                    if process.seconds() - before > running.most:
                        running.stop = running.stop or "time"
                if running.stop and kill_at is None:
                    kill_at = time.monotonic() + _GRACE
                    process.ask_to_stop()
        return False, None

    def _settle(self, job: str, running: _Running, done: bool, problem: str | None) -> None:
        """Record the end of a job, waiting for the disk to have room if necessary."""
        self._take_paid(job)
        done = done or self._interim_result(job) is not None  # an interim result is spent, and names what it lacks
        after, words = _outcome(running.stop, done, problem, running.most / 60)
        folder = self.folder(job)
        self._note_entry(job)
        shutil.rmtree(folder / "tmp" if done else folder, ignore_errors=True)
        kept = False
        while True:
            try:
                result = (folder / RESULT).read_text() if done else None
                kept = self._store.end(job, "running", after, result, words, result and _mark(result))
                break
            except FileNotFoundError:  # something removed the folder
                done, after, words = False, "failed", "job-died"
            except (OSError, sqlite3.Error) as error:
                print(f"veilog serve: {error}", file=sys.stderr)  # noqa: T201
                if self._stopping:
                    return  # the next start finds what is there
                time.sleep(1)
        if not (kept and done):
            shutil.rmtree(folder, ignore_errors=True)
        with self._changed:
            self._running.pop(job, None)

    def _interim_result(self, job: str) -> str | None:
        """Return the result of a job that has not ended yet, or None."""
        with contextlib.suppress(OSError, ValueError):
            return (self.folder(job) / RESULT).read_text()
        return None

    def _take_paid(self, job: str) -> None:
        """Make a job's interim result its result: its release is spent, so it is kept."""
        paid, result = self.folder(job) / PAID, self.folder(job) / RESULT
        with contextlib.suppress(OSError):
            if not result.exists():
                paid.rename(result)

    def _note_entry(self, job: str) -> None:
        """Keep the ledger's number of a job, which it wrote down before its first query."""
        with contextlib.suppress(OSError, ValueError, sqlite3.Error):
            self._store.enter(job, int((self.folder(job) / ENTRY).read_text()))


def _mark(result: str) -> str | None:
    """Return the fingerprint of the log that was read; None for another result."""
    try:
        read = from_text("read", result)
    except ValueError:
        return None
    return read.measured.fingerprint if isinstance(read, ReadLog) and read.measured is not None else None


def _outcome(stop: str | None, done: bool, problem: str | None, minutes: float) -> tuple[State, str | None]:
    if done:
        return "done", None
    outcomes: dict[str | None, tuple[State, str | None]] = {
        "cancelled": ("cancelled", "job-cancelled-on-record"),
        "stopped": ("failed", "job-stopped"),
        "memory": ("failed", "job-memory-on-record"),
        "time": ("failed", json.dumps(Message("job-too-long", minutes=minutes).to_json())),
    }
    return outcomes.get(stop, ("failed", problem))
