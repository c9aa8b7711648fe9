"""What the owner of a log should know about its times and attributes where these are released: for their eyes alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from veilog.errors import ParameterError, nearest
from veilog.logs.eventlog import TIMESTAMP, EventLog, listed
from veilog.logs.stored.store import StoredLog
from veilog.messages import OwnerMessage
from veilog.privacy.cases import attribute_column
from veilog.privacy.domain import Values
from veilog.releasing.request import ReleaseRequest, end_of_range

_NAMED = 5
_DAY = 86_400_000_000

Log = EventLog | StoredLog


def check_times(planned: ReleaseRequest, log: Log) -> None:
    """Refuse times for a log of which it was noticed, when it was read, that it has none: before anything is asked.

    They would be noise alone, and be paid for. This is the owner's: nothing is released of it.
    """
    if planned.wanted.times and any(finding.rule == "no-timestamps" for finding in log.findings):
        raise ParameterError("timestamps-all-missing", parameter="times")


def unknown_times(log: Log) -> list[OwnerMessage]:
    """Return a note on events without a known time, and on times that carry the order of events alone."""
    if isinstance(log, EventLog) and log.artificial_times:
        return [OwnerMessage("times-artificial")]
    found = list(log.each(_times_of, ()))
    events, unknown = (sum(numbers) for numbers in list(zip(*found, strict=True))[:2]) if found else (0, 0)
    if events > unknown and all(dated for _, _, dated in found):
        return [OwnerMessage("times-are-days")]
    if not unknown:
        return []
    if unknown == events:
        return [OwnerMessage("no-time-known")]
    return [OwnerMessage("some-times-unknown", unknown=unknown, events=events, share=_share(unknown, events))]


def undeclared_values(log: Log, planned: ReleaseRequest) -> list[OwnerMessage]:
    """Return a note on each released attribute of which the log has values outside the declared ones."""
    notes: list[OwnerMessage] = []
    for name in planned.wanted.attributes:
        declared = planned.public.values_of(name)
        if declared is None:
            continue
        found = list(log.each(partial(_values_of, name, declared), (name,)))
        values = sum((values for values, _ in found), Counter[str]())
        outside, known = sum(n for _, n in found), sum(values.values())
        if outside and isinstance(declared[0], str):
            notes += _notes(name, tuple(str(value) for value in declared), values, outside)
        elif outside:
            notes.append(
                OwnerMessage(
                    "values-outside-range",
                    lost=outside,
                    known=known,
                    attribute=repr(name),
                    share=_share(outside, known),
                    low=end_of_range(declared[0]),
                    high=end_of_range(declared[1]),
                )
            )
    return notes


def likely_meant(unknown: Iterable[str], there: Iterable[str]) -> str:
    """Return some names that are unknown, each with the one of these that is much like it; nothing where none is."""
    those = list(there)
    return ", ".join([f"{name!r} → {near!r}" for name in unknown if (near := nearest(name, those))][:_NAMED])


def _notes(name: str, declared: tuple[str, ...], values: Counter[str], outside: int) -> list[OwnerMessage]:
    missing = sorted(set(values) - set(declared), key=lambda value: (-values[value], value))
    known = sum(values.values())
    code = "many-values-undeclared" if len(missing) > _NAMED else "some-values-undeclared"
    note = OwnerMessage(
        "one-value-undeclared" if len(missing) == 1 else code,
        attribute=repr(name),
        values=len(missing),
        counted=", ".join(f"{value} ({values[value]:,})" for value in missing[:_NAMED]),
        more=len(missing) - _NAMED,
        lost=outside,
        known=known,
        share=_share(outside, known),
    )
    near = likely_meant((value for value in declared if value not in values), missing)
    return [note, *([OwnerMessage("values-perhaps-meant", attribute=repr(name), names=near)] if near else [])]


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
    return f"{share:.0f}" if share >= 1 else "<1"
