"""Engines for events that are not read into this process: only variants come back.

Every engine gives the same variants for the same events: a case's events by time, events of equal time by their
position, times cut to microseconds. An engine refuses events for which it cannot do so.

DuckDB groups and sorts an event as one integer of 128 bits. Time, position and activity lie in it from the most to the
least significant bits, so that sorting integers sorts events: 59 bits of time (years 1 to 9999 in microseconds), 40 of
position, 27 of activity. With an explicit index of events: 64 bits of that, 35 of position, 27 of activity.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, Protocol

import pyarrow as pa

from veilog.errors import InputError, ParameterError
from veilog.logs.eventlog import EVENT_INDEX
from veilog.logs.findings import Findings
from veilog.logs.input.roles import Roles
from veilog.logs.input.source import Progress, ReadOptions
from veilog.logs.variants import Variants
from veilog.messages import Message

ACTIVITY_BITS = 27
POSITION_BITS = 40
FIRST_TIME = -62_135_596_800_000_000
LAST_TIME = 253_402_300_799_999_999
TIMELESS = (1 << (POSITION_BITS + ACTIVITY_BITS)) - 1
"""Mask that removes the time from a key."""
ROW = "veilog_row"
"""Name of the column that orders rows."""


@dataclass(frozen=True)
class EventQuery:
    """Events in DuckDB: their query, their labels, and cases added without events."""

    relation: str
    """Query with ``c`` (identifies cases) and ``k`` (the key).

    If ``timeless``, it has ``m`` (time missing); if ``indexed``, ``x`` (the key by an explicit index, null if there is
    none).
    """
    labels: list[str]
    timeless: bool = False
    empty_cases: int = 0
    case: str = "c"
    start: int | None = None
    end: int | None = None
    indexed: bool = False


@dataclass(frozen=True)
class RowQuery:
    """Rows in DuckDB that are one log with all its columns, and their order."""

    relation: str
    """Text after FROM: all columns of the schema, and ``veilog_row``.

    This column orders the rows of equal time.
    """
    schema: pa.Schema
    """Columns that the log is made of, in the types that they have in the source."""
    count: int
    told_apart: bool = True
    """True if no two rows share a ``veilog_row``; else time and name order cases, too."""


def timed_key(time: str, code: str) -> str:
    """Return the key of an event from its time, its activity and the position ``i``."""
    return (
        f"(({time} + {-FIRST_TIME})::HUGEINT << {POSITION_BITS + ACTIVITY_BITS}) "
        f"+ (i::HUGEINT << {ACTIVITY_BITS}) + {code}::HUGEINT"
    )


def index_key(index: str, code: str) -> str:
    """Return the key of an event whose explicit index stands before everything else."""
    return f"(({index}::HUGEINT + {1 << 63}) << 62) + (i::HUGEINT << {ACTIVITY_BITS}) + {code}::HUGEINT"


def sql_name(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'


def sql_text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


@dataclass(frozen=True)
class Grouped:
    """Variants of a log, and its first and last time in microseconds since 1970 (UTC)."""

    variants: Variants
    start: int | None = None
    end: int | None = None


class VariantSource(Protocol):
    """Events somewhere, and an engine that groups them there."""

    def columns(self) -> list[str]:
        """Return the names that :func:`veilog.logs.input.roles.guess_roles` chooses from."""

    def group(self, roles: Roles, findings: Findings, progress: Progress) -> Grouped:
        """Return the variants, and add findings, whose policies apply."""


def temporary_folder(where: str | os.PathLike[str] | None) -> Path:
    """Make a folder for what does not fit into memory, for the caller to remove."""
    try:
        return Path(tempfile.mkdtemp(prefix="veilog-", dir=where))
    except OSError as error:
        raise ParameterError("engine-temp-not-usable", parameter="temp_directory", reason=error.strerror) from error


@contextlib.contextmanager
def spill_settings(options: ReadOptions) -> Iterator[Path]:
    """Make a folder for what does not fit into memory, until the end of the block."""
    folder = temporary_folder(options.temp_directory)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True)
class EventCounts:
    """Counts of a table before events are grouped; times in microseconds since 1970."""

    rows: int
    nameless: int
    mute: int
    absent: int
    unplaced: int
    finer: int
    start: int | None
    end: int | None

    @property
    def gaps(self) -> dict[str, int]:
        """Numbers of rows without a case, an activity or a time, by the rules of findings."""
        return {
            "case-without-name": self.nameless,
            "event-without-activity": self.mute,
            "missing-timestamp": self.absent,
        }


def settle_counts(
    count: Callable[[bool], EventCounts], findings: Findings, index: str | None, path: str | None
) -> tuple[EventCounts, bool]:
    """Return the counts of the events that stay, and True if rows are left out.

    A table that gives no log is refused.

    ``count`` counts all rows, or those alone in which nothing is missing. Where rows have no order, an event without a
    time has no place, and a row without a case no name. The policy can leave such rows out, but never keep them.
    """
    found, dropped = count(False), False
    if not found.rows:
        raise InputError("table-without-rows", path=path)
    for rule, rows in found.gaps.items():
        if rows and findings.policy(rule) == "keep":
            raise InputError("rows-without-order", count=rows, rule=rule)
        if rows:
            findings.add(rule, Message("example-rows", n=rows), count=rows)
            dropped = True
    if dropped and not (found := count(True)).rows:
        raise InputError("table-without-events-left", path=path)
    if found.unplaced and index is not None:
        raise InputError("table-index-has-gaps", path=path, index=index, unplaced=found.unplaced)
    if found.start is None or found.end is None or found.start < FIRST_TIME or found.end > LAST_TIME:
        raise InputError("times-outside-years", path=path)
    return found, dropped


def event_index(index: str | None, names: Sequence[str]) -> str | None:
    """Return the column that orders events: the given one, or veilog's own."""
    if index is not None and index not in names:
        raise InputError("table-index-missing", index=index, names=", ".join(names))
    return index or (EVENT_INDEX if EVENT_INDEX in names else None)


def refuse_ties(ties: int, index: str | None, path: str | None) -> None:
    """Raise if the order of some events is not settled by their times and the index."""
    if not ties:
        return
    if index is None:
        raise InputError("order-activities-tied", path=path, ties=ties)
    raise InputError("order-index-ties", path=path, ties=ties, index=index)


def refuse_equals(count: int, index: str | None, where: str | None) -> None:
    """Raise if nothing decides the order of the attributes of events."""
    if count:
        same = "time" if index is None else f"time and the same {index!r}"
        raise InputError(
            "order-events-tied" if index is None else "order-index-not-distinct",
            path=where,
            count=count,
            same=same,
        )


def refuse_life_cycle(roles: Roles) -> None:
    """Raise about declared roles that do not take events as they are."""
    if roles.clock is not None:
        raise ParameterError(
            "column-date-apart-from-clock", parameter="timestamp", timestamp=roles.timestamp, clock=roles.clock
        )
    spare = roles.spare if roles.takes_spare else None
    for name, said in (("lifecycle", roles.lifecycle), ("classifier", roles.classifier), ("on", spare)):
        if said:
            raise ParameterError("engine-option-not-possible", parameter=name, name=name)


def refuse_type(column: str, kind: str, wanted: str, path: str | None) -> NoReturn:
    """Raise about a column whose type in this engine does not fit its role."""
    raise InputError("column-type-of-engine", path=path, name=column, kind=kind, wanted=wanted)


def first_line(error: BaseException) -> str:
    """Return the message of an engine's error, without its trace."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    text = causes[-1] if causes else lines[0] if lines else type(error).__name__
    text = text if len(text) <= 300 else text[:297] + "..."
    return text if text.endswith(".") else text + "."
