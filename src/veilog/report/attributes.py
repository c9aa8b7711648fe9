"""The attributes of a release as rows of a table: what values they have, for the owner beside those of the original."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from veilog._language import gettext, localised, ngettext, pgettext, quoted
from veilog.logs.eventlog import ACTIVITY, CASE_INDEX, EVENT_INDEX, LIFECYCLE, NESTED, START, TIMESTAMP, EventLog
from veilog.logs.xes.columns import legal_keys
from veilog.report.explorer import clean, short
from veilog.report.figures import share_of

OF_EVERY_LOG = frozenset({ACTIVITY, CASE_INDEX, EVENT_INDEX, LIFECYCLE, NESTED, TIMESTAMP})
"""Columns that are no attributes."""
_MOST = 40
"""Attributes that are shown of cases, and of events."""
_OFTEN = 3
"""Values that are shown of one that has words."""


@dataclass(frozen=True)
class AttributeShown:
    """One attribute, of what it is, and its values in words."""

    name: str
    of: str
    released: str
    original: str
    """Empty where the original is not shown, or has no such attribute."""


def attributes_shown(released: EventLog | None, original: EventLog | None) -> tuple[AttributeShown, ...]:
    """Return the attributes of a release, those of its cases first."""
    if released is None:
        return ()
    return (
        *_of(released.cases, None if original is None else original.cases, pgettext("attribute of", "cases")),
        *_of(released.events, None if original is None else original.events, pgettext("attribute of", "events")),
    )


def _of(released: pa.Table, original: pa.Table | None, of: str) -> list[AttributeShown]:
    names = [name for name in released.column_names if name not in OF_EVERY_LOG and not _is_start(released, name)]
    before = {} if original is None else _by_written_name(original)
    return [
        AttributeShown(
            short(name, 80), of, _in_words(released.column(name)), _in_words(before[name]) if name in before else ""
        )
        for name in names[:_MOST]
    ]


def _is_start(table: pa.Table, name: str) -> bool:
    """Whether a column says when events began: it is one of their times."""
    return name == START and pa.types.is_temporal(table.column(name).type)


def _by_written_name(table: pa.Table) -> dict[str, pa.ChunkedArray]:
    """The columns by their names, and by those that they have in a file."""
    written = legal_keys(table.slice(0, 0)).column_names
    return {name: table.column(i) for names in (written, table.column_names) for i, name in enumerate(names)}


def _in_words(column: pa.ChunkedArray) -> str:
    """The values of an attribute: the range of numbers and dates, else the most frequent ones."""
    known = column.drop_null()
    if not len(known):
        return gettext("no value")
    kind = known.type
    numbers = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    said = _range(known, numbers) if numbers or pa.types.is_temporal(kind) else _often(known)
    if len(known) == len(column):
        return said
    return gettext("{values}; unknown: {share}", values=said, share=_share(column.null_count / len(column)))


def _range(known: pa.ChunkedArray, numbers: bool) -> str:
    whole = known.combine_chunks()
    order = pc.array_sort_indices(whole)
    found = [whole[order[i].as_py()].as_py() for i in (0, (len(order) - 1) // 2, len(order) - 1)]
    low, middle, high = (localised(f"{value:,.6g}") if numbers else clean(str(value)[:16]) for value in found)
    return gettext("{low} to {high}, half up to {middle}", low=low, middle=middle, high=high)


def _often(known: pa.ChunkedArray) -> str:
    counts = {str(one["values"]): one["counts"] for one in pc.value_counts(known.cast(pa.string())).to_pylist()}
    first = sorted(counts, key=lambda value: (-counts[value], value))[:_OFTEN]
    named = ", ".join(f"{quoted(short(value, 40))} ({_share(counts[value] / len(known))})" for value in first)
    if len(counts) <= _OFTEN:
        return named
    return ngettext("{named} and {n} more value", "{named} and {n} more values", len(counts) - _OFTEN, named=named)


def _share(part: float) -> str:
    return share_of(f"{100 * part:.3g}")
