"""Where events are when they are not read into this process, and what comes back from there: the variants alone.

Every engine gives the same variants for the same events: a case's events by time, events of equal time by their
position, times cut to microseconds. What it cannot give that way it refuses.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, Protocol

from veilog.errors import InputError, ParameterError
from veilog.logs.findings import Findings
from veilog.logs.input.roles import Roles
from veilog.logs.input.source import Means, Progress
from veilog.logs.variants import Variants

__all__ = [
    "Grouped",
    "VariantSource",
    "first_line",
    "refuse_equals",
    "refuse_gaps",
    "refuse_life_cycle",
    "refuse_ties",
    "refuse_type",
    "spilling",
    "temporary_folder",
]


@dataclass(frozen=True)
class Grouped:
    """The variants of a log, and when its first and its last event were, in microseconds since 1970 in UTC."""

    variants: Variants
    start: int | None = None
    end: int | None = None


class VariantSource(Protocol):
    """Events somewhere, and an engine that groups them there."""

    def columns(self) -> list[str]:
        """The names that :func:`veilog.logs.input.roles.guess_roles` chooses from."""

    def group(self, roles: Roles, findings: Findings, progress: Progress) -> Grouped:
        """The variants; what is noteworthy goes to the findings, whose policies apply."""


def temporary_folder(where: str | os.PathLike[str] | None) -> Path:
    """Make a folder for what does not fit into memory, for the caller to remove."""
    try:
        return Path(tempfile.mkdtemp(prefix="veilog-", dir=where))
    except OSError as error:
        raise ParameterError(
            "temporary-directory-cannot-used", parameter="temp_directory", reason=error.strerror
        ) from error


@contextlib.contextmanager
def spilling(means: Means) -> Iterator[Path]:
    """A folder for what does not fit into memory, until the end of the block."""
    folder = temporary_folder(means.temp_directory)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def refuse_gaps(findings: Findings, gaps: dict[str, int]) -> bool:
    """Apply the rules to so many rows without a case, an activity or a time; True if any are to be left out.

    Where rows have no order, an event without a time has no place, and a row without a case no name: such rows are
    left out where the policy says so, but never kept.
    """
    dropped = False
    for rule, count in gaps.items():
        if not count:
            continue
        if findings.policy(rule) == "keep":
            raise ParameterError("rows-meet-table-without", parameter="on", count=count, rule=rule)
        findings.add(rule, f"{count} rows", count=count)
        dropped = True
    return dropped


def refuse_ties(ties: int, index: str | None, path: str | None) -> None:
    """Raise if the order of some events is not settled by their times and the index."""
    if not ties:
        return
    if index is None:
        raise InputError("times-case-several-activities-once", path=path, ties=ties)
    raise InputError("times-case-several-activities", path=path, ties=ties, index=index)


def refuse_equals(count: int, index: str | None, where: str | None) -> None:
    """Raise where attributes of events would come in an order that nothing says."""
    if count:
        same = "time" if index is None else f"time and the same {index!r}"
        raise InputError(
            "times-case-several-events" if index is None else "times-case-several-events-same",
            path=where,
            count=count,
            same=same,
        )


def refuse_life_cycle(roles: Roles) -> None:
    """Raise about what is declared of events where an engine groups them as they are."""
    if roles.clock is not None:
        raise ParameterError("date-time-day-two", parameter="timestamp", timestamp=roles.timestamp, clock=roles.clock)
    for name, said in (("lifecycle", roles.lifecycle), ("classifier", roles.classifier)):
        if said:
            raise ParameterError("engine-takes-all-events", parameter=name, name=name)


def refuse_type(column: str, kind: str, wanted: str, path: str | None) -> NoReturn:
    """Raise about a column that this engine types differently than it is used."""
    raise InputError("column-holds-engine-cannot", path=path, name=column, kind=kind, wanted=wanted)


def first_line(error: BaseException) -> str:
    """What an error of an engine says, without its trace."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    text = causes[-1] if causes else lines[0] if lines else type(error).__name__
    text = text if len(text) <= 300 else text[:297] + "..."
    return text if text.endswith(".") else text + "."
