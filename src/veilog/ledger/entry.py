"""A release in the ledger: what is kept of it, the process that makes it, and how its log was read."""

from __future__ import annotations

import datetime
import functools
import json
import os
import secrets
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal

from veilog.logs.eventlog import CASE
from veilog.privacy.account.composition import (
    Answer,
)
from veilog.privacy.partition import RULES_OF_TIME, SPAN

Cost = tuple[Fraction, Fraction]
"""Epsilon and delta, exactly."""
NO_COST: Cost = (Fraction(0), Fraction(0))


MARK = "\x1f"
"""Between a subset and a way."""

_OF_ANY = frozenset({CASE, "concept:name"})
"""Columns that are called so in every log of these formats, whatever its cases are."""


def as_read(subset: object | None, way: str) -> str | None:
    """Return what a subset counts as where its log was read in this way; empty if nobody knows."""
    return None if subset is None else f"{subset}{MARK}{way}" if way else str(subset)


def named(subset: str) -> str:
    """Return the subset alone of what it counts as."""
    return subset.partition(MARK)[0]


def kind_of_case(way: str) -> str:
    """Return what a case is in a log that was read in this way: the column, or the type of objects, that tells cases.

    Where nothing names it (a CSV file that veilog wrote, an XES file of another program, a log that was never read), it
    is :data:`CASE`, a kind of its own: such a log may be of visits or of patients, whose releases do not add up.
    """
    return _kind(_told(way)) or CASE


def _kind(said: Mapping[str, Any]) -> str | None:
    """What a case is by a way, or by that of the log before, which a file of ours names no column of."""
    kind = said.get("object type") or said.get("case")
    if isinstance(kind, str) and kind not in _OF_ANY:
        return kind
    return _kind(said["before"]) if isinstance(said.get("before"), dict) else None


def differences(before: str, now: str) -> str:
    """Return in words what differs between two ways."""
    one, other = _told(before), _told(now)
    names = [name for name in sorted({*one, *other}) if one.get(name) != other.get(name)]
    return "; ".join(f"{name}: {one.get(name)!r}, now {other.get(name)!r}" for name in names)


def is_of_time(rule: str) -> bool:
    """Return whether a rule looks at the starts of cases; an attribute that is called so is spelled otherwise."""
    return rule in RULES_OF_TIME or rule == SPAN


def of_rule(rule: str, way: str) -> str | None:
    """Return of a way what decides which subset of this rule a case is in. None where no two such subsets are known to
    be without a case in both: some times had a zone and others not, so where a case was depends on its own spelling."""
    said = _told(way)
    if is_of_time(rule):
        return None if _partly(said) else way
    if said.get("zones") is None:
        return way
    return json.dumps({name: value for name, value in said.items() if name != "zones"}, sort_keys=True)


def _partly(said: Mapping[str, Any]) -> bool:
    """Whether some times had a zone and others not; also where that is not known, of several logs before."""
    before = said.get("before")
    if said.get("zones") == "partly" or before is None:
        return said.get("zones") == "partly"
    return not isinstance(before, dict) or _partly(before)


@lru_cache(maxsize=256)
def _told(way: str) -> Mapping[str, Any]:
    """What a way says; nothing where it is empty or another program's."""
    try:
        found = json.loads(way)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


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
    """What it counts as, where it is of a subset of the cases: that subset, and how its log was read."""
    kept_answers: str | None = None
    """What it answered, as it is kept, where that composes answer by answer."""
    way: str = ""
    """How its log was read; empty if nobody knows."""
    holder: Holder | None = None
    """The process that made it, until a file of it is written or it is known to come to nothing."""
    remembered: bool = False
    """Whether the ledger keeps digests of the units that were looked at, so that they are left out of other subsets."""

    @property
    def cost(self) -> Cost | None:
        """What it is charged; None where nothing bounds it."""
        return None if self.epsilon is None or self.delta is None else (self.epsilon, self.delta)

    @property
    def subset(self) -> str | None:
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
    budget: Cost | None
    counting: str | None = None
    """How its releases are counted against the budget; None: by the sum."""


def cost_of(entry: Entry) -> Cost:
    """Return what an entry is charged; nothing where nothing bounds it."""
    return entry.cost or NO_COST
