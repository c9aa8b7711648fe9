"""Rows of a ledger as they are read: releases and accounts."""

from __future__ import annotations

import datetime
import json
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

from veilog.ledger.holders import Holder
from veilog.ledger.ways import kind_of_case, named
from veilog.privacy.account.composing import Answer

__all__ = ["AccountRow", "Entry", "State"]

State = Literal["reserved", "charged", "written", "withdrawn"]


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
