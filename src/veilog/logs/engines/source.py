"""Where events are when they are not read into this process, and what comes back from there: the variants alone.

Every engine gives the same variants for the same events: a case's events by time, events of equal time by their
position, times cut to microseconds. What it cannot give that way it refuses.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn, Protocol

from veilog.errors import InputError, ParameterError
from veilog.logs.findings import Findings
from veilog.logs.roles import Roles
from veilog.logs.variants import Variants

__all__ = [
    "AT_HAND",
    "Grouped",
    "Means",
    "Progress",
    "VariantSource",
    "is_ibis",
    "refuse_gaps",
    "refuse_life_cycle",
    "refuse_ties",
    "refuse_type",
    "refuse_unread",
    "silent",
]

Progress = Callable[[str, float | None], None]


def silent(text: str, fraction: float | None) -> None:
    """The progress of whoever does not want to know."""


@dataclass(frozen=True)
class Means:
    """What an engine that runs here may use, and what orders events of equal time."""

    memory_limit: str = "1GB"
    threads: int | None = None
    temp_directory: str | os.PathLike[str] | None = None
    index: str | None = None
    """A column that orders events of equal time, for tables that have no order of rows."""

    def __post_init__(self) -> None:
        if self.threads is not None and self.threads < 1:
            raise ParameterError(
                f"{self.threads} threads cannot do anything.", parameter="threads", advice="Give 1 or more."
            )


AT_HAND = Means()


@dataclass(frozen=True)
class Grouped:
    """The variants of a log, and when its first and its last event were, in microseconds since 1970 in UTC."""

    variants: Variants
    start: int | None = None
    end: int | None = None


class VariantSource(Protocol):
    """Events somewhere, and an engine that groups them there."""

    def columns(self) -> list[str]:
        """The names that :func:`veilog.logs.roles.guess_roles` chooses from."""

    def group(self, roles: Roles, findings: Findings, progress: Progress) -> Grouped:
        """The variants; what is noteworthy goes to the findings, whose policies apply."""


def is_ibis(source: object) -> bool:
    """Whether this is a table of Ibis, told by its module so that Ibis is not imported for it."""
    return any(kind.__module__.startswith("ibis.expr.types") for kind in type(source).__mro__)


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
            raise ParameterError(
                f"{count} rows meet {rule}, and a table without an order of rows cannot keep them.",
                parameter="on",
                advice=f"Choose --on {rule}=drop, or correct the table.",
            )
        findings.add(rule, f"{count} rows", count=count)
        dropped = True
    return dropped


def refuse_ties(ties: int, index: str | None, path: str | None) -> None:
    """Raise if the order of some events is not settled by their times and the index."""
    if not ties:
        return
    if index is None:
        raise InputError(
            f"{ties} times, a case has several activities at once, and nothing says in which order.",
            path=path,
            advice="Name a column that orders them: --index NAME, or index=NAME in Python.",
        )
    raise InputError(
        f"{ties} times, a case has several activities with the same time and the same {index!r}.",
        path=path,
        advice="Name a column that tells them apart.",
    )


def refuse_life_cycle(roles: Roles) -> None:
    """Raise about what is declared of events where an engine groups them as they are."""
    for name, said in (("lifecycle", roles.lifecycle), ("classifier", roles.classifier)):
        if said:
            raise ParameterError(
                f"This engine takes all events by their activity, so --{name} is not possible.",
                parameter=name,
                advice="Choose the events in a view there, or give the log as a file without --engine.",
            )


def refuse_unread(log: object) -> None:
    """Raise about what somebody may give for a log although it was not read yet."""
    if is_ibis(log):
        raise InputError(
            "This is a table of an engine, not a log.",
            advice="Give what veilog.read_variants(table, ...) makes of it there, or veilog.read(table, ...) here.",
        )
    if isinstance(log, str | os.PathLike) or hasattr(log, "__dataframe__"):
        raise InputError(
            f"This is a {type(log).__name__}, not a log.",
            advice="Give veilog.read(...) or veilog.read_variants(...) of it.",
        )


def refuse_type(column: str, kind: str, wanted: str, path: str | None) -> NoReturn:
    """Raise about a column that this engine types differently than it is used."""
    raise InputError(
        f"The column {column!r} holds {kind} on this engine, which cannot be taken for {wanted}.",
        path=path,
        advice="Choose another column, or convert it there, for instance in a view.",
    )
