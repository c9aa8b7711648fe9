"""An event as one integer of 128 bits, what DuckDB groups by it, and what it sorts where all columns are wanted.

Time, position and activity lie in it from the most to the least significant bits, so that sorting integers sorts
events: 59 bits of time (years 1 to 9999 in microseconds), 40 of position, 27 of activity. With an explicit index of
events: 64 bits of that, 35 of position, 27 of activity.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

__all__ = [
    "ACTIVITY_BITS",
    "FIRST_TIME",
    "LAST_TIME",
    "POSITION_BITS",
    "ROW",
    "TIMELESS",
    "EventQuery",
    "RowQuery",
    "given_key",
    "sql_name",
    "sql_text",
    "timed_key",
]

ACTIVITY_BITS = 27
POSITION_BITS = 40
FIRST_TIME = -62_135_596_800_000_000
LAST_TIME = 253_402_300_799_999_999
TIMELESS = (1 << (POSITION_BITS + ACTIVITY_BITS)) - 1
"""What is left of a key without its time."""
ROW = "veilog_row"
"""The column that says which of two rows comes first."""


@dataclass(frozen=True)
class EventQuery:
    """Events in DuckDB: what to group, with which labels, and what is added without events."""

    relation: str
    """A query with ``c`` (what tells cases apart), ``k`` (the key), if ``timeless``, ``m`` (time missing), and if
    ``indexed``, ``x`` (the key by an explicit index, null where there is none)."""
    labels: list[str]
    timeless: bool = False
    empty_cases: int = 0
    case: str = "c"
    start: int | None = None
    end: int | None = None
    indexed: bool = False


@dataclass(frozen=True)
class RowQuery:
    """Rows in DuckDB that are one log with all its columns: what to sort, and what to take."""

    relation: str
    """What stands after FROM: all columns of the schema, and ``veilog_row``, which orders the rows of equal time."""
    schema: pa.Schema
    """The columns that the log is made of, in the types that they have in the source."""
    count: int
    told_apart: bool = True
    """Whether no two rows have one ``veilog_row``; where some do, cases are ordered by time and name as well."""


def timed_key(time: str, code: str) -> str:
    """The key of an event from columns of its time and its activity, and the column ``i`` of its position."""
    return (
        f"(({time} + {-FIRST_TIME})::HUGEINT << {POSITION_BITS + ACTIVITY_BITS}) "
        f"+ (i::HUGEINT << {ACTIVITY_BITS}) + {code}::HUGEINT"
    )


def given_key(index: str, code: str) -> str:
    """The key of an event where an explicit index of events stands before everything else."""
    return f"(({index}::HUGEINT + {1 << 63}) << 62) + (i::HUGEINT << {ACTIVITY_BITS}) + {code}::HUGEINT"


def sql_name(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'


def sql_text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
