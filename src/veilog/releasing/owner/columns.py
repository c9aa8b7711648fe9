"""What the owner of a log should know about its times and attributes where these are released: for their eyes alone."""

from __future__ import annotations

from collections import Counter
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from veilog.errors import ParameterError, meant
from veilog.logs.eventlog import TIMESTAMP, EventLog, listed
from veilog.logs.stored.store import StoredLog
from veilog.privacy.cases import attribute_column
from veilog.privacy.domain import Values
from veilog.releasing.planned import Planned

__all__ = ["HAVING_NONE", "check_times", "undeclared_values", "unknown_times"]

HAVING_NONE = "count as having none."

_NAMED = 5
_DAY = 86_400_000_000

Log = EventLog | StoredLog


def check_times(planned: Planned, log: Log) -> None:
    """Refuse times for a log of which it was noticed, when it was read, that it has none: before anything is asked.

    They would be noise alone, and be paid for. This is the owner's: nothing is released of it.
    """
    if planned.wanted.times and any(finding.rule == "no-timestamps" for finding in log.findings):
        raise ParameterError(
            "No event of the log has a timestamp, so released times would be noise alone.",
            parameter="times",
            advice="Nothing was asked of the data. Leave --times away, or name the column of times, --timestamp NAME.",
        )


def unknown_times(log: Log) -> list[str]:
    """Return a note on events without a known time, and on times that carry the order of events alone."""
    if isinstance(log, EventLog) and log.artificial_times:
        return ["The times of the log are artificial, an hour apart from 1970 on: released times tell of these alone."]
    found = list(log.each(_times_of, ()))
    events, unknown = (sum(numbers) for numbers in list(zip(*found, strict=True))[:2]) if found else (0, 0)
    if events > unknown and all(dated for _, _, dated in found):
        return [
            "All times of the log are dates without a time of day: within a day its events are in the order of the "
            "rows, and the hours of released times are made up."
        ]
    if not unknown:
        return []
    if unknown == events:
        return ["No event of the log has a known time: the released times are noise alone."]
    return [
        f"{unknown:,} of {events:,} events of the log ({_share(unknown, events)}) have no known time: released times "
        "are those of the others, and all released events have one."
    ]


def undeclared_values(log: Log, planned: Planned) -> list[str]:
    """Return a note on each released attribute of which the log has values outside the declared ones."""
    notes = []
    for name in planned.wanted.attributes:
        declared = planned.public.values_of(name)
        if declared is None:
            continue
        found = list(log.each(partial(_values_of, name, declared), (name,)))
        values = sum((values for values, _ in found), Counter[str]())
        outside, known = sum(n for _, n in found), sum(values.values())
        if outside and isinstance(declared[0], str):
            notes.append(_note(name, tuple(str(value) for value in declared), values, outside))
        elif outside:
            notes.append(
                f"{outside:,} of {known:,} values of {name!r} ({_share(outside, known)}) are outside the declared "
                f"range, {declared[0]:g} to {declared[1]:g}: they count as its ends."
            )
    return notes


def _note(name: str, declared: tuple[str, ...], values: Counter[str], outside: int) -> str:
    missing = sorted(set(values) - set(declared), key=lambda value: (-values[value], value))
    shown = ", ".join(f"{value} ({values[value]:,})" for value in missing[:_NAMED])
    more = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
    known = sum(values.values())
    near = [
        f"{value!r}: {said.strip()}" for value in declared if value not in values and (said := meant(value, missing))
    ]
    some = f" Some that are declared are not in the log. {' '.join(near[:_NAMED])}" if near else ""
    what = "value" if len(missing) == 1 else "values"
    return (
        f"The declaration of {name!r} leaves out {len(missing):,} {what} of the log: {shown}{more}. {outside:,} of "
        f"{known:,} ({_share(outside, known)}) {HAVING_NONE}{some}"
    )


def _times_of(log: EventLog, _first: bool) -> tuple[int, int, bool]:
    """The events, how many of them have no known time, and whether all others are at midnight."""
    column = log.events.column(TIMESTAMP)
    micros = column.drop_null().cast(pa.int64()).to_numpy()
    return len(log), column.null_count, not (micros % _DAY).any()


def _values_of(name: str, declared: Values, log: EventLog, _first: bool) -> tuple[Counter[str], int]:
    """How often each value is there, as text, and how often one that is not declared; of numbers all as one value."""
    column = attribute_column(log, name).drop_null()
    if isinstance(declared[0], str):
        column = listed(column).drop_null() if pa.types.is_dictionary(column.type) else column.combine_chunks()
        counted = pc.value_counts(column)
        names = counted.field("values").cast(pa.string()).to_pylist()
        values = Counter(dict(zip(names, counted.field("counts").to_pylist(), strict=True)))
        return values, sum(n for value, n in values.items() if value not in declared)
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        return Counter(), 0  # of dates it is a range of days since the start of their case
    numbers = column.cast(pa.float64(), safe=False)
    beyond = pc.sum(pc.or_(pc.less(numbers, declared[0]), pc.greater(numbers, declared[1]))).as_py()
    return Counter({"": len(numbers)}), beyond or 0


def _share(part: int, whole: int) -> str:
    share = 100 * part / whole
    return f"{share:.0f} %" if share >= 1 else "under 1 %"
