"""Entries of a ledger: releases, their processes, and how their logs were read.

*Processes.* A run without a query uses nothing, so its reservation is given back once its process is gone. No guarantee
rests on that judgement. A run makes its first query only after it noted, in a transaction, that it begins, and found
its own random mark still there. So a run whose reservation was given back makes no query at all. The mark also finds a
ledger on a file system that loses what one of two writers wrote: it is read back.
"""

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
"""Separator of a subset and a way."""

_OF_ANY = frozenset({CASE, "concept:name"})
"""Columns with these names in every log of these formats, whatever its cases are."""


def as_read(subset: object | None, way: str) -> str | None:
    """Return a subset with the way of reading its log, which is empty if unknown."""
    return None if subset is None else f"{subset}{MARK}{way}" if way else str(subset)


def subset_name(subset: str) -> str:
    """Return the subset alone, without its way."""
    return subset.partition(MARK)[0]


def kind_of_case(way: str) -> str:
    """Return the kind of case of a way: the column or object type that names cases.

    Where nothing names it, it is :data:`CASE`, a kind of its own. Examples are a CSV file that veilog wrote, an XES
    file of another program, and a log that was never read. Such a log may be of visits or of patients, whose releases
    do not add up.
    """
    return _kind(_parse_way(way)) or CASE


def _kind(said: Mapping[str, Any]) -> str | None:
    """Return the kind of case of a way, or of the log before, for a file of ours."""
    kind = said.get("object type") or said.get("case")
    if isinstance(kind, str) and kind not in _OF_ANY:
        return kind
    return _kind(said["before"]) if isinstance(said.get("before"), dict) else None


def differences(before: str, now: str) -> str:
    """Return in words how two ways differ."""
    one, other = _parse_way(before), _parse_way(now)
    names = [name for name in sorted({*one, *other}) if one.get(name) != other.get(name)]
    return "; ".join(f"{name}: {one.get(name)!r}, now {other.get(name)!r}" for name in names)


def is_of_time(rule: str) -> bool:
    """Return True if a rule looks at starts of cases, not at an attribute so named."""
    return rule in RULES_OF_TIME or rule == SPAN


def of_rule(rule: str, way: str) -> str | None:
    """Return the part of a way that decides a case's subset of this rule.

    None where some times had a zone and others not, so a case's subset depends on its own spelling. Then no two such
    subsets are known to be disjoint.
    """
    said = _parse_way(way)
    if is_of_time(rule):
        return None if _is_partly_zoned(said) else way
    if said.get("zones") is None:
        return way
    return json.dumps({name: value for name, value in said.items() if name != "zones"}, sort_keys=True)


def _is_partly_zoned(said: Mapping[str, Any]) -> bool:
    """Return True if only some times had a zone, or if several logs leave it unknown."""
    before = said.get("before")
    if said.get("zones") == "partly" or before is None:
        return said.get("zones") == "partly"
    return not isinstance(before, dict) or _is_partly_zoned(before)


@lru_cache(maxsize=256)
def _parse_way(way: str) -> Mapping[str, Any]:
    """Return the facts of a way; none where it is empty or another program's."""
    try:
        found = json.loads(way)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


State = Literal["reserved", "charged", "written", "withdrawn"]
_ABANDONED = 86_400
"""Seconds after which a run on a machine that cannot be looked at counts as ended."""


@dataclass(frozen=True)
class Holder:
    """Process that reserved, as the ledger keeps it."""

    mark: str
    machine: str
    """Machine, and the space in which its processes have numbers; empty where the system names none."""
    boot: str
    process: int
    since: str
    """Start of the process, as the system counts."""
    asked: bool

    @staticmethod
    def own(*, asked: bool) -> Holder:
        """Return this process, with a new mark."""
        machine, boot = _machine()
        number = os.getpid()
        return Holder(secrets.token_hex(8), machine, boot, number, _process_start(number) or "", asked)

    @property
    def text(self) -> str:
        """Text of it for the ledger."""
        return json.dumps(asdict(self))

    @staticmethod
    def of_text(text: str) -> Holder:
        """Return the holder from its text; :class:`ValueError` for another text."""
        kept = json.loads(text)
        try:
            return Holder(**kept)
        except TypeError as error:
            raise ValueError("no holder") from error

    def begun(self) -> Holder:
        """Return the holder once it makes queries."""
        return replace(self, asked=True)

    @property
    def is_own(self) -> bool:
        """True if it is this process."""
        own = Holder.own(asked=False)
        return (self.machine, self.boot, self.process) == (own.machine, own.boot, own.process)

    @property
    def ended(self) -> bool:
        """True if its process is certainly gone."""
        machine, boot = _machine()
        if not self.machine or self.machine != machine:
            return False
        return self.boot != boot or _process_start(self.process) != self.since

    def runs(self, entered: float) -> bool:
        """Return True if it may still run, for a reservation of that time.

        A process that cannot be looked at counts as running for a day. So no job of another machine is overtaken, and
        one that died there does not stand for ever.
        """
        if self.ended:
            return False
        machine, _ = _machine()
        return (bool(machine) and self.machine == machine) or time.time() - entered < _ABANDONED


@functools.cache
def _machine() -> tuple[str, str]:
    """Return the machine with its space of processes, and its start; empty if unnamed."""
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


def _process_start(process: int) -> str | None:
    """Return the start of a process; None if it is gone or does nothing any more."""
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
    """Time of the reservation, UTC."""
    method: str
    as_published: bool
    parameters: dict[str, Any]
    unit: str
    epsilon: Fraction | None
    """Charged epsilon, exactly; None where nothing bounds it."""
    delta: Fraction | None
    state: State
    """``reserved`` until its queries are answered, then ``charged``, then ``written``.

    ``withdrawn`` if it failed before any query. A release that was cut off stays ``reserved``, which counts as spent.
    """
    guarantee: dict[str, Any] | None
    outputs: tuple[str, ...]
    """SHA-256 of the files it was written to."""
    counted: str | None = None
    """Subset of its cases with the way in which its log was read; None for all cases."""
    kept_answers: str | None = None
    """Text of its answers, where they compose one by one."""
    way: str = ""
    """Way in which its log was read; empty if unknown."""
    holder: Holder | None = None
    """Process that made it, until a file is written or it is known to come to nothing."""
    remembered: bool = False
    """True if the ledger keeps digests of the units looked at, to leave them out of other subsets."""

    @property
    def cost(self) -> Cost | None:
        """Charged epsilon and delta; None where nothing bounds them."""
        return None if self.epsilon is None or self.delta is None else (self.epsilon, self.delta)

    @property
    def subset(self) -> str | None:
        """Subset of its cases; None for all."""
        return None if self.counted is None else subset_name(self.counted)

    @property
    def empty(self) -> bool:
        """True if it was charged and came out without a case, so that nothing was written."""
        return self.state == "charged" and self.guarantee is not None and self.guarantee.get("cases") == 0

    @property
    def kind(self) -> str | None:
        """Kind of case, where it protects cases: costs of different kinds do not add up."""
        return kind_of_case(self.way) if self.unit == "case" else None

    @property
    def never_asked(self) -> bool:
        """True if its process ended before any query, so that it uses nothing."""
        return self.state == "reserved" and self.holder is not None and not self.holder.asked and self.holder.ended

    @property
    def runs(self) -> bool:
        """True if a process may still query or write it, except this one once charged."""
        if self.holder is None or self.state not in ("reserved", "charged"):
            return False
        if self.state == "charged" and self.holder.is_own:
            return False
        return self.holder.runs(datetime.datetime.fromisoformat(self.time).timestamp())

    @cached_property
    def answers(self) -> tuple[tuple[Answer, int], ...] | None:
        """Answers with their counts; read only for composition, as there may be many."""
        if self.kept_answers is None:
            return None
        return tuple((Answer.of_kept(kept), int(times)) for kept, times in json.loads(self.kept_answers))


@dataclass(frozen=True)
class AccountRow:
    """Account row: its unit, and its limit (None without one)."""

    number: int
    name: str
    unit: str
    budget: Cost | None
    counting: str | None = None
    """Rule by which its releases count against the budget; None for the sum."""


def cost_of(entry: Entry) -> Cost:
    """Return the charge of an entry; 0 where nothing bounds it."""
    return entry.cost or NO_COST
