"""Sensitive values and checks of group-based privacy, shared by TLKC and PRETSA."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from veilog._typing import BoolArray, FloatArray, IntArray
from veilog.errors import InputError, OutputError, ParameterError
from veilog.logs.eventlog import ACTIVITY, CASE_INDEX, EVENT_INDEX, TIMESTAMP, TIMESTAMP_TYPE, EventLog
from veilog.messages import Message
from veilog.privacy.cases import Kind, Level, attribute_kind, attribute_level
from veilog.privacy.domain import Domain

# Whether a released log keeps to what its group-based model states.
#
# Found from the released log alone and by other algorithms than those of the methods: sequences by walking all
# subsequences, sets and multisets as those of what a case has in order, prefixes by counting them all. A release that
# fails is an error.

Label = Hashable
Trace = tuple[Label, ...]

MOST_PATTERNS = 10_000_000
"""Patterns looked at before a release counts as one that cannot be checked."""
_SLACK = 1e-9
"""Shares and distances are floats: so much above a bound is equal to it."""


def check_tlkc(log: EventLog, values: dict[str, Any]) -> None:
    """Check that a release holds LKC privacy, or raise an error.

    At least ``k`` cases match every pattern of at most ``l`` known events. No more than the share ``c`` of them has one
    value of a sensitive attribute.
    """
    relative = values["background"] == "relative"
    columns = [_plain(log, ACTIVITY)] + ([_plain(log, TIMESTAMP)] if relative else [])
    traces = _traces(log, list(zip(*columns, strict=True)) if relative else columns[0])
    told = _sensitive_values(log, values["sensitive"]) if values["c"] < 1 else [frozenset()] * len(traces)
    if values["background"] in ("set", "multiset"):  # a part of a sorted sequence is a part of the set
        in_order = {"set": lambda trace: tuple(sorted(set(trace))), "multiset": lambda trace: tuple(sorted(trace))}
        traces = list(map(in_order[values["background"]], traces))
    _check_sequences(traces, told, values["k"], values["l"], values["c"])


def _check_sequences(traces: list[Trace], told: list[frozenset[Label]], k: int, largest: int, c: float) -> None:
    """Check all subsequences of at most ``largest`` labels.
    They are followed by the ends of their leftmost matches in the distinct traces."""
    cases: dict[Trace, int] = Counter(traces)
    values: dict[Trace, Counter[Label]] = defaultdict(Counter)
    for trace, has in zip(traces, told, strict=True):
        values[trace].update(has)
    after, seen = {trace: _next_places(trace) for trace in cases}, 0

    def descend(ends: list[tuple[Trace, int]], pattern: tuple[Label, ...]) -> None:
        nonlocal seen
        found: dict[Label, list[tuple[Trace, int]]] = defaultdict(list)
        for trace, end in ends:
            for label, place in after[trace][end].items():
                found[label].append((trace, place))
        for label, matches in found.items():
            counted: Counter[Label] = Counter()
            for trace, _ in matches:
                if values[trace]:
                    counted.update(values[trace])
            longer = (*pattern, label)
            number, most = sum(cases[trace] for trace, _ in matches), max(counted.values(), default=0)
            if number < k:
                raise _check_error("groups-too-few-match", longer, number=number)
            if most > c * number + _SLACK * number:
                raise _check_error("groups-values-alike", longer, number=number, most=most)
            seen += 1
            if seen > MOST_PATTERNS:
                raise OutputError("release-patterns-too-many")
            if len(longer) < largest:
                descend(matches, longer)

    descend([(trace, 0) for trace in cases], ())


def check_pretsa(log: EventLog, values: dict[str, Any]) -> None:
    """Check that a release holds k-anonymous prefixes and t-closeness, or raise.

    Every prefix and every complete trace is that of at least ``k`` cases. After each prefix, the values of a sensitive
    attribute are at most ``t`` away from those of the same activity anywhere in the release.
    """
    traces = _traces(log, _plain(log, ACTIVITY))
    prefixes: Counter[Trace] = Counter()
    for trace, number in Counter(traces).items():
        for length in range(1, len(trace) + 1):
            prefixes[trace[:length]] += number
    for code, counted in (("groups-prefix-rare", prefixes), ("groups-trace-rare", Counter(traces))):
        for trace, number in counted.items():
            if number < values["k"]:
                raise _check_error(code, trace, number=number)
    if values["sensitive"] is not None and values["t"] < 1:
        _check_closeness(log, traces, values["sensitive"], values["t"])


def _next_places(trace: Trace) -> list[dict[Label, int]]:
    """Return for each place where each label comes next (one beyond it)."""
    places: list[dict[Label, int]] = [{}]
    for i in range(len(trace) - 1, -1, -1):
        places.append(places[-1] | {trace[i]: i + 1})
    places.reverse()
    return places


def _check_closeness(log: EventLog, traces: list[Trace], name: str, t: float) -> None:
    column = _durations(log) if name == "duration" else _plain(log, name)
    anywhere: dict[Label, list[Any]] = defaultdict(list)
    after: dict[Trace, list[Any]] = defaultdict(list)
    offsets = log.offsets.tolist()
    for i, trace in enumerate(traces):
        for j, label in enumerate(trace):
            value = column[offsets[i] + j]
            if value is not None:
                anywhere[label].append(value)
                after[trace[: j + 1]].append(value)
    numbers = all(isinstance(v, (int, float)) and not isinstance(v, bool) for some in anywhere.values() for v in some)
    others = {label: np.sort(np.array(some)) if numbers else Counter(some) for label, some in anywhere.items()}
    for prefix, values in after.items():
        distance = (_number_distance if numbers else _name_distance)(values, others[prefix[-1]])
        if distance > t + _SLACK:
            raise _check_error("groups-values-apart", prefix, name=name, distance=distance)


def _number_distance(values: list[Any], others: Any) -> float:
    """Return the earth mover's distance of numbers over the range.
    It is the mean distance of quantiles, which change at multiples of 1/n and 1/m."""
    n, m, width = len(values), len(others), others[-1] - others[0]
    steps = np.sort(np.concatenate([np.arange(1, n + 1) * m, np.arange(1, m + 1) * n]), kind="stable")
    apart = np.abs(np.sort(np.array(values))[(steps - 1) // m] - others[(steps - 1) // n])
    return float(apart @ np.diff(steps, prepend=0)) / (n * m * width) if width else 0.0


def _name_distance(values: list[Any], others: Any) -> float:
    """Return the earth mover's distance of names, half the summed share differences.
    Every two names are 1 apart."""
    there, total = Counter(values), sum(others.values())
    return float(sum(abs(there[v] / len(values) - others[v] / total) for v in others)) / 2


def _durations(log: EventLog) -> list[float | None]:
    """Return the seconds since the event before in the case; None for its first."""
    times = log.events.column(TIMESTAMP).cast(pa.int64()).to_pylist()
    first = set(log.offsets.tolist())
    return [None if i in first else (time - times[i - 1]) / 1e6 for i, time in enumerate(times)]


def _traces(log: EventLog, labels: Sequence[Label]) -> list[Trace]:
    offsets = log.offsets.tolist()
    return [tuple(labels[a:b]) for a, b in itertools.pairwise(offsets)]


def _sensitive_values(log: EventLog, names: str | None) -> list[frozenset[Label]]:
    """Return the sensitive values of each released case and of its events."""
    out: list[set[Label]] = [set() for _ in range(log.cases.num_rows)]
    for name in (n.strip() for n in (names or "").split(",")):
        if name in log.events.column_names:
            owners, column = log.events.column(CASE_INDEX).to_pylist(), _plain(log, name)
        else:
            owners, column = range(len(out)), log.cases.column(name.removeprefix("case:")).to_pylist()
        for owner, value in zip(owners, column, strict=True):
            if value is not None:
                out[owner].add((name, value))
    return [frozenset(values) for values in out]


def _plain(log: EventLog, name: str) -> list[Any]:
    values: list[Any] = log.events.column(name).to_pylist()
    return values


def _check_error(code: str, pattern: Sequence[Label], **values: Any) -> OutputError:
    shown = [", ".join(map(str, p)) if isinstance(p, tuple) else str(p) for p in pattern]
    return OutputError("release-check-failed", what=Message(code, pattern="<" + "; ".join(shown) + ">", **values))


# What the group-based methods read of a log: events as integers, and the sensitive attributes that they release.
#
# Only what a model speaks about leaves: activities, times, the life cycle, and the sensitive attributes asked for.
# Numbers of a sensitive attribute are read as intervals where a model counts values (a confidence).

TOO_DISTINCT = 0.5
"""Share of distinct values above which they identify cases or events and are no categories."""
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
    """Sensitive attribute of cases or of the :class:`DeclaredEvents`.

    Its values are integers, with -1 for none.
    """

    name: str
    level: Level
    labels: tuple[str, ...]
    codes: IntArray
    numbers: FloatArray | None
    """The numbers themselves where it holds numbers; ``labels`` are then intervals."""


def events_of(log: EventLog, domain: Domain) -> DeclaredEvents:
    """Return the events that a declared domain leaves of each case."""
    labels, codes = encode_column(log.events.column(ACTIVITY))
    owner = np.repeat(np.arange(log.cases.num_rows), np.diff(log.offsets))
    if len(codes) and codes.min() < 0:
        raise InputError("event-without-activity", path=log.source)
    rows = np.flatnonzero(domain.keeps(labels, codes, owner, log.offsets))
    return DeclaredEvents(rows, owner[rows], codes[rows], labels, log.cases.num_rows)


def attribute_names(text: str | None) -> tuple[str, ...]:
    """Return the names in ``a,b``, each once."""
    names = () if text is None else tuple(name.strip() for name in text.split(",") if name.strip())
    if text is not None and not names:
        raise ParameterError("sensitive-list-empty", parameter="sensitive")
    return tuple(dict.fromkeys(names))


def sensitive(log: EventLog, events: DeclaredEvents, name: str, domain: Domain) -> Sensitive:
    """Return the attribute; an error gives the reason if its values cannot be counted."""
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
    labels, codes = encode_column(column)
    if declared is not None:
        undeclared = [label for label in labels if label not in declared]
        if undeclared:
            raise ParameterError("sensitive-values-undeclared", parameter="domain", name=name, undeclared=undeclared[0])
    else:
        _refuse_distinct(name, level, kind, len(labels), int((codes >= 0).sum()))
    return Sensitive(own, level, labels, codes, None)


def intervals(numbers: FloatArray, declared: tuple[float, float] | None) -> tuple[tuple[str, ...], IntArray]:
    """Return numbers as intervals: four even ones of a declared range, or three.

    The three are low, middle and high, divided at the quartiles.
    """
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
    """Return the case and the value of each pair that occurs, once."""
    owner = np.arange(events.cases) if one.level == "case" else events.case
    has = one.codes >= 0
    pairs = np.unique(owner[has] * len(one.labels) + one.codes[has])
    return pairs // len(one.labels), pairs % len(one.labels)


def encode_column(column: pa.ChunkedArray) -> tuple[tuple[str, ...], IntArray]:
    """Return a column's values as sorted text, and their codes, -1 for no value.

    Values that no row has are not among them, whatever the column's dictionary holds.
    """
    encoded = fresh_dictionary(column)
    labels = encoded.dictionary.to_pylist()
    order = sorted(range(len(labels)), key=labels.__getitem__)
    place = np.empty(len(labels) + 1, dtype=np.int64)
    place[order] = np.arange(len(order))
    place[-1] = -1
    codes = pc.fill_null(encoded.indices, len(labels)).to_numpy(zero_copy_only=False)
    return tuple(labels[i] for i in order), place[codes]


def microseconds(log: EventLog, rows: IntArray) -> tuple[IntArray, BoolArray]:
    """Return the times of these events in microseconds since 1970 UTC, and a mask.

    The mask is True where an event has a time.
    """
    column = log.events.column(TIMESTAMP).take(pa.array(rows)).cast(TIMESTAMP_TYPE)
    known = pc.is_valid(column).to_numpy()
    return np.asarray(pc.fill_null(column.cast(pa.int64()), 0).to_numpy(), dtype=np.int64), known


def text_column(labels: Sequence[str], codes: IntArray) -> pa.Array:
    """Return codes as text, -1 as none, with only values that occur."""
    return fresh_dictionary(
        pa.array([*labels, None], pa.string()).take(pa.array(np.where(codes < 0, len(labels), codes)))
    )


def fresh_dictionary(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return text with a dictionary of only the values that occur.

    A dictionary taken over could hold suppressed values.
    """
    plain = values.cast(pa.string())
    return (plain.combine_chunks() if isinstance(plain, pa.ChunkedArray) else plain).dictionary_encode()


def dropped_attributes(log: EventLog, released: Sequence[str]) -> str:
    """Return the names of the attributes that are not released, joined by commas."""
    kept = {*released, ACTIVITY, TIMESTAMP, CASE_INDEX, EVENT_INDEX}
    names = [n for n in (*log.events.column_names, *log.cases.column_names) if n not in kept]
    return ", ".join(dict.fromkeys(names))


def _refuse_mixed(schema: pa.Schema, name: str, own: str) -> None:
    """Refuse an attribute with several types: readers keep them in several columns.
    The columns are called "x", "x (string)" and so on."""
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
