"""Rows of a ledger as they are read: releases, accounts, and the processes that hold reservations.

*Processes.* A run that asked nothing costs nothing, so its reservation is given back once its process is gone. Nothing
of the guarantee rests on that judgement: a run asks its first question only after it noted, in a transaction, that it
begins, and finds its own random mark still there. So a run whose reservation was given back asks nothing at all.

The mark also finds a ledger on a file system that loses what one of two writers wrote: it is read back.
"""

from __future__ import annotations

import datetime
import functools
import json
import os
import secrets
import time
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from veilog.ledger.ways import kind_of_case, named
from veilog.privacy.account.composing import Answer

State = Literal["reserved", "charged", "written", "withdrawn"]
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


@dataclass(frozen=True)
class Entry:
    """One release: a row of the ledger."""

    number: int
    account: int
    time: str
    """When it was reserved, UTC."""
    method: str
    as_published: bool
    parameters: dict[str, Any]
    unit: str
    epsilon: Fraction | None
    """What it is charged, exactly; None where nothing bounds it."""
    delta: Fraction | None
    state: State
    """``reserved`` until its questions are answered, then ``charged``, then ``written``; ``withdrawn`` if it failed
    before anything was asked. A release that was cut off stays ``reserved``, which counts as spent."""
    guarantee: dict[str, Any] | None
    outputs: tuple[str, ...]
    """SHA-256 of the files it was written to."""
    counted: str | None = None
    """What it counts as, where it is of a part of the cases: that part, and how its log was read."""
    kept_answers: str | None = None
    """What it answered, as it is kept, where that composes answer by answer."""
    way: str = ""
    """How its log was read; empty if nobody knows."""
    holder: Holder | None = None
    """The process that made it, until a file of it is written or it is known to come to nothing."""
    remembered: bool = False
    """Whether the ledger keeps digests of the units that were looked at, so that they are left out of other parts."""

    @property
    def part(self) -> str | None:
        """Of which cases it is; all, where this is None."""
        return None if self.counted is None else named(self.counted)

    @property
    def empty(self) -> bool:
        """Whether it was charged and came out with no case, so that there was nothing to write."""
        return self.state == "charged" and self.guarantee is not None and self.guarantee.get("cases") == 0

    @property
    def kind(self) -> str | None:
        """What a case is, where it protects cases: of different kinds costs do not add up."""
        return kind_of_case(self.way) if self.unit == "case" else None

    @property
    def never_asked(self) -> bool:
        """Whether its process ended before it asked anything, so that it costs nothing."""
        return self.state == "reserved" and self.holder is not None and not self.holder.asked and self.holder.ended

    @property
    def runs(self) -> bool:
        """Whether a process may still ask or write it, other than this one once it is charged."""
        if self.holder is None or self.state not in ("reserved", "charged"):
            return False
        if self.state == "charged" and self.holder.is_own:
            return False
        return self.holder.runs(datetime.datetime.fromisoformat(self.time).timestamp())

    @cached_property
    def answers(self) -> tuple[tuple[Answer, int], ...] | None:
        """What it answered, each so often; read only where it is composed, as there may be much of it."""
        if self.kept_answers is None:
            return None
        return tuple((Answer.of_kept(kept), int(times)) for kept, times in json.loads(self.kept_answers))


@dataclass(frozen=True)
class AccountRow:
    """An account: of which unit, and how much it may spend in all (None: without a limit)."""

    number: int
    name: str
    unit: str
    epsilon: Fraction | None
    delta: Fraction | None
    counting: str | None = None
    """How its releases are counted against the budget; None: by the sum."""
