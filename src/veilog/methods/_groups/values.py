"""What the group-based methods read of a log: events as integers, and the sensitive attributes that they release.

Only what a model speaks about leaves: activities, times, the life cycle, and the sensitive attributes asked for.
Numbers of a sensitive attribute are read as intervals where a model counts values (a confidence).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from veilog._typing import BoolArray, FloatArray, IntArray
from veilog.errors import InputError, ParameterError
from veilog.logs.eventlog import ACTIVITY, CASE_INDEX, EVENT_INDEX, TIMESTAMP, TIMESTAMP_TYPE, EventLog
from veilog.privacy.cases import Kind, Level, attribute_kind, attribute_level
from veilog.privacy.domain import Domain

TOO_DISTINCT = 0.5
"""With more values than this share of what has one, values tell cases or events apart and are no categories."""
INTERVALS = 4
"""Even intervals of a declared range of numbers."""


@dataclass(frozen=True, eq=False)
class DeclaredEvents:
    """The events of a log that fit the declared domain."""

    rows: IntArray
    """Their rows in the log."""
    case: IntArray
    activity: IntArray
    labels: tuple[str, ...]
    cases: int


@dataclass(frozen=True, eq=False)
class Sensitive:
    """A sensitive attribute, its values as integers, -1 for none; of cases, or of the :class:`DeclaredEvents`."""

    name: str
    level: Level
    labels: tuple[str, ...]
    codes: IntArray
    numbers: FloatArray | None
    """The numbers themselves where it holds numbers; ``labels`` are then intervals."""


def events_of(log: EventLog, domain: Domain) -> DeclaredEvents:
    """The events with what a declared domain leaves of each case."""
    labels, codes = coded(log.events.column(ACTIVITY))
    owner = np.repeat(np.arange(log.cases.num_rows), np.diff(log.offsets))
    if len(codes) and codes.min() < 0:
        raise InputError("event-without-activity", path=log.source)
    rows = np.flatnonzero(domain.keeps(labels, codes, owner, log.offsets))
    return DeclaredEvents(rows, owner[rows], codes[rows], labels, log.cases.num_rows)


def attribute_names(text: str | None) -> tuple[str, ...]:
    """``a,b`` as names, each once."""
    names = () if text is None else tuple(name.strip() for name in text.split(",") if name.strip())
    if text is not None and not names:
        raise ParameterError("sensitive-list-empty", parameter="sensitive")
    return tuple(dict.fromkeys(names))


def sensitive(log: EventLog, events: DeclaredEvents, name: str, domain: Domain) -> Sensitive:
    """The attribute, or an error that says why it is none whose values could be counted."""
    level = attribute_level(log, name)
    own = name if level == "event" else name.removeprefix("case:")
    table = log.events if level == "event" else log.cases
    _refuse_mixed(table.schema, name, own)
    kind = attribute_kind(log, name)
    column = table.column(own)
    if level == "event":
        column = column.take(pa.array(events.rows))
    if column.null_count == len(column):
        raise ParameterError("sensitive-attribute-without-value", parameter="sensitive", name=name)
    declared = domain.attributes.get(name)
    if kind in ("whole number", "number"):
        numbers = column.cast(pa.float64()).to_numpy(zero_copy_only=False).astype(np.float64)
        if np.isinf(numbers).any():
            raise InputError("sensitive-value-not-finite", path=log.source, name=name)
        edges = declared if declared is not None and not isinstance(declared[0], str) else None
        labels, codes = intervals(numbers, None if edges is None else (float(edges[0]), float(edges[1])))
        return Sensitive(own, level, labels, codes, numbers)
    labels, codes = coded(column)
    if declared is not None:
        undeclared = [label for label in labels if label not in declared]
        if undeclared:
            raise ParameterError("sensitive-values-undeclared", parameter="domain", name=name, undeclared=undeclared[0])
    else:
        _refuse_distinct(name, level, kind, len(labels), int((codes >= 0).sum()))
    return Sensitive(own, level, labels, codes, None)


def intervals(numbers: FloatArray, declared: tuple[float, float] | None) -> tuple[tuple[str, ...], IntArray]:
    """Numbers as intervals: four even ones of a declared range; else low, middle and high, divided at the quartiles."""
    known = ~np.isnan(numbers)
    if declared is not None:
        edges = np.linspace(*declared, INTERVALS + 1)
        labels = tuple(f"{low:g} to {high:g}" for low, high in itertools.pairwise(edges.tolist()))
        codes = np.clip(np.searchsorted(edges, numbers, side="right") - 1, 0, INTERVALS - 1)
        return labels, np.where(known, codes, -1).astype(np.int64)
    low, high = np.quantile(numbers[known], [0.25, 0.75])
    codes = np.where(numbers < low, 0, np.where(numbers > high, 2, 1))
    return ("low", "middle", "high"), np.where(known, codes, -1).astype(np.int64)


def case_labels(events: DeclaredEvents, one: Sensitive) -> tuple[IntArray, IntArray]:
    """Which case has which value, each pair once."""
    owner = np.arange(events.cases) if one.level == "case" else events.case
    has = one.codes >= 0
    pairs = np.unique(owner[has] * len(one.labels) + one.codes[has])
    return pairs // len(one.labels), pairs % len(one.labels)


def coded(column: pa.ChunkedArray) -> tuple[tuple[str, ...], IntArray]:
    """A column's values as text, sorted, and the place of each row's, -1 where it has none. Values that no row has are
    not among them, whatever the column's dictionary holds."""
    encoded = fresh_dictionary(column)
    labels = encoded.dictionary.to_pylist()
    order = sorted(range(len(labels)), key=labels.__getitem__)
    place = np.empty(len(labels) + 1, dtype=np.int64)
    place[order] = np.arange(len(order))
    place[-1] = -1
    codes = pc.fill_null(encoded.indices, len(labels)).to_numpy(zero_copy_only=False)
    return tuple(labels[i] for i in order), place[codes]


def microseconds(log: EventLog, rows: IntArray) -> tuple[IntArray, BoolArray]:
    """The times of these events since 1970 UTC, and which have one."""
    column = log.events.column(TIMESTAMP).take(pa.array(rows)).cast(TIMESTAMP_TYPE)
    known = pc.is_valid(column).to_numpy()
    return np.asarray(pc.fill_null(column.cast(pa.int64()), 0).to_numpy(), dtype=np.int64), known


def text_column(labels: Sequence[str], codes: IntArray) -> pa.Array:
    """Codes as text; -1 is none. Only values that occur are kept."""
    return fresh_dictionary(
        pa.array([*labels, None], pa.string()).take(pa.array(np.where(codes < 0, len(labels), codes)))
    )


def fresh_dictionary(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Text with a dictionary of what occurs: one taken over could hold what was suppressed."""
    plain = values.cast(pa.string())
    return (plain.combine_chunks() if isinstance(plain, pa.ChunkedArray) else plain).dictionary_encode()


def dropped_attributes(log: EventLog, released: Sequence[str]) -> str:
    """The names of the attributes that are not released, in words; empty where there are none."""
    kept = {*released, ACTIVITY, TIMESTAMP, CASE_INDEX, EVENT_INDEX}
    names = [n for n in (*log.events.column_names, *log.cases.column_names) if n not in kept]
    return ", ".join(dict.fromkeys(names))


def _refuse_mixed(schema: pa.Schema, name: str, own: str) -> None:
    """The readers keep values of different types under one key in columns of their own: "x", "x (string)"."""
    others = [f.name for f in schema if f.name != own and (f.metadata or {}).get(b"xes:key") == own.encode()]
    if others:
        raise ParameterError(
            "sensitive-types-differ", parameter="sensitive", name=name, names=", ".join(map(repr, others))
        )


def _refuse_distinct(name: str, level: Level, kind: Kind, distinct: int, having: int) -> None:
    if kind == "text" and having > 1 and distinct > TOO_DISTINCT * having:
        owners = "cases" if level == "case" else "events"
        raise ParameterError(
            "sensitive-values-too-distinct",
            parameter="sensitive",
            name=name,
            distinct=distinct,
            having=having,
            owners=owners,
        )
