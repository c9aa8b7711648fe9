"""The process that holds a reservation: whether it still runs, and whether it has asked anything yet.

A run that asked nothing costs nothing, so its reservation is given back once its process is gone. Nothing of the
guarantee rests on that judgement: a run asks its first question only after it noted, in a transaction, that it begins,
and finds its own random mark still there. So a run whose reservation was given back asks nothing at all.

The mark also finds a ledger on a file system that loses what one of two writers wrote: it is read back.
"""

from __future__ import annotations

import functools
import json
import os
import secrets
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

__all__ = ["Holder"]

_ABANDONED = 86_400
"""Seconds after which a run counts as ended whose process cannot be looked at, such as one of another machine."""


@dataclass(frozen=True)
class Holder:
    """A process that reserved, as the ledger keeps it."""

    mark: str
    machine: str
    """The machine, and the space in which its processes have numbers; empty where the system names none."""
    boot: str
    process: int
    since: str
    """When the process began, as the system counts."""
    asked: bool

    @staticmethod
    def own(*, asked: bool) -> Holder:
        """Return this process, with a new mark."""
        machine, boot = _here()
        number = os.getpid()
        return Holder(secrets.token_hex(8), machine, boot, number, _begun(number) or "", asked)

    @property
    def text(self) -> str:
        """The text that is kept of it."""
        return json.dumps(asdict(self))

    @staticmethod
    def of_text(text: str) -> Holder:
        """Return the holder that was kept; :class:`ValueError` for what is none."""
        kept = json.loads(text)
        try:
            return Holder(**kept)
        except TypeError as error:
            raise ValueError("no holder") from error

    def begun(self) -> Holder:
        """Return the holder once it asks."""
        return replace(self, asked=True)

    @property
    def is_own(self) -> bool:
        """Whether it is this process."""
        own = Holder.own(asked=False)
        return (self.machine, self.boot, self.process) == (own.machine, own.boot, own.process)

    @property
    def ended(self) -> bool:
        """Whether its process is certainly gone."""
        machine, boot = _here()
        if not self.machine or self.machine != machine:
            return False
        return self.boot != boot or _begun(self.process) != self.since

    def runs(self, entered: float) -> bool:
        """Return whether it may still run, for a reservation of that time. Of one that cannot be looked at, the first
        day: a job of another machine must not be overtaken, and one that died there must not stand for ever."""
        if self.ended:
            return False
        machine, _ = _here()
        return (bool(machine) and self.machine == machine) or time.time() - entered < _ABANDONED


@functools.cache
def _here() -> tuple[str, str]:
    """Return the machine with its space of processes, and its start; empty where the system names none."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        space = Path("/proc/self/ns/pid").readlink()
    except OSError:
        return "", ""
    try:
        machine = Path("/etc/machine-id").read_text().strip()
    except OSError:  # a container, which lasts no longer than its machine runs
        machine = boot
    return f"{machine} {space}", boot


def _begun(process: int) -> str | None:
    """When a process began; None where there is none, or none that does anything more."""
    try:
        facts = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except (OSError, ValueError):
        return None
    return None if facts[0] in "ZX" else facts[19]
