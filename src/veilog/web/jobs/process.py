"""The server's side of a worker: a process that is started early, does one job, and can be ended at any moment."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import replace
from multiprocessing.connection import wait
from typing import Any

from veilog._plain import to_json
from veilog._process import Child
from veilog.web.jobs.records import Settings
from veilog.web.jobs.worker import Task, Work, run

__all__ = ["Process"]

_LONGEST = 1 << 20
"""Bytes of one message: words about progress, never a result."""


class Process(Child):
    """A worker. What it says is data to the server, never code."""

    def __init__(self, settings: Settings, work: Work) -> None:
        super().__init__(run, replace(settings, token=""), work)

    def give(self, task: Task) -> None:
        with contextlib.suppress(OSError):  # it has died: messages() says so
            self.pipe.send_bytes(json.dumps(to_json(task)).encode())

    def messages(self, seconds: float) -> Iterator[dict[str, Any]]:
        """What it says within this time; EOFError when it has died and said all."""
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
