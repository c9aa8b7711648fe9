"""The server's side of a worker: a process that is started early, does one job, and can be ended at any moment."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from veilog._plain import to_json
from veilog.web.jobs.records import Settings
from veilog.web.jobs.worker import Task, Work, run

__all__ = ["Process", "memory_of"]

_LONGEST = 1 << 20
"""Bytes of one message: words about progress, never a result."""


class Process:
    """A worker. It belongs to one thread of the server."""

    def __init__(self, process: BaseProcess, pipe: Connection) -> None:
        self._process = process
        self._pipe = pipe

    @staticmethod
    def start(settings: Settings, work: Work) -> Process:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=run, args=(theirs, replace(settings, token=""), work), daemon=False)
        with _undisturbed():
            process.start()
        theirs.close()
        return Process(process, ours)

    @property
    def alive(self) -> bool:
        return self._process.is_alive()

    def give(self, task: Task) -> None:
        with contextlib.suppress(OSError):  # it has died: messages() says so
            self._pipe.send_bytes(json.dumps(to_json(task)).encode())

    def messages(self, seconds: float) -> Iterator[dict[str, Any]]:
        """What it says within this time; EOFError when it has died and said all."""
        ready = wait([self._pipe, self._process.sentinel], seconds)
        if not ready:
            return
        while self._pipe.poll(0):
            try:
                message = json.loads(self._pipe.recv_bytes(_LONGEST))
            except (OSError, ValueError) as error:
                raise EOFError from error
            if isinstance(message, dict):
                yield message
        if self._process.sentinel in ready:
            raise EOFError

    def ask_to_stop(self) -> None:
        """It settles with the ledger, if it is asked in time, and ends."""
        self._process.terminate()

    def memory(self) -> int:
        """Bytes that it and the processes it started take."""
        return memory_of(self._process.pid or 0)

    def end(self) -> int | None:
        """End it with everything that it started; returns how it ended, as far as it did by itself."""
        self._process.join(0.5)
        ended = self._process.exitcode
        if os.name == "posix" and self._process.pid is not None:
            with contextlib.suppress(OSError):
                if ended is not None or os.getpgid(self._process.pid) == self._process.pid:
                    os.killpg(self._process.pid, signal.SIGKILL)
        if ended is None:
            self._process.kill()
        self._process.join()
        self._pipe.close()
        return ended


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """What is started here is not hit by Ctrl-C, which reaches all processes of a terminal: the server ends them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # else it is started with the process, and lets Ctrl-C through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def memory_of(group: int) -> int:
    """Bytes in memory of a process group; 0 where the system does not tell."""
    total = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            facts = stat.read_text().rpartition(")")[2].split()
            if int(facts[2]) == group:
                total += int(facts[21]) * os.sysconf("SC_PAGE_SIZE")
    return total
