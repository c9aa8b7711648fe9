"""Whether a released log keeps to what its group-based model states.

Found from the released log alone and by other algorithms than those of the methods: sequences by walking all
subsequences, sets and multisets as those of what a case has in order, prefixes by counting them all. A release that
fails is an error.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from veilog.errors import OutputError
from veilog.logs.eventlog import ACTIVITY, CASE_INDEX, TIMESTAMP, EventLog
from veilog.messages import Message

Label = Hashable
Trace = tuple[Label, ...]

MOST_PATTERNS = 10_000_000
"""Patterns looked at before a release counts as one that cannot be checked."""
_SLACK = 1e-9
"""Shares and distances are floats: so much above a bound is equal to it."""


def check_tlkc(log: EventLog, values: dict[str, Any]) -> None:
    """Every pattern of at most ``l`` known events is matched by at least ``k`` cases, no more than the share ``c`` of
    which has one value of a sensitive attribute."""
    relative = values["background"] == "relative"
    columns = [_plain(log, ACTIVITY)] + ([_plain(log, TIMESTAMP)] if relative else [])
    traces = _traces(log, list(zip(*columns, strict=True)) if relative else columns[0])
    told = _told(log, values["sensitive"]) if values["c"] < 1 else [frozenset()] * len(traces)
    if values["background"] in ("set", "multiset"):  # a part of a sorted sequence is a part of the set
        in_order = {"set": lambda trace: tuple(sorted(set(trace))), "multiset": lambda trace: tuple(sorted(trace))}
        traces = list(map(in_order[values["background"]], traces))
    _check_sequences(traces, told, values["k"], values["l"], values["c"])


def _check_sequences(traces: list[Trace], told: list[frozenset[Label]], k: int, largest: int, c: float) -> None:
    """All subsequences of at most ``largest`` labels, by where their leftmost matches end in the distinct traces."""
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
                raise _failed("groups-too-few-match", longer, number=number)
            if most > c * number + _SLACK * number:
                raise _failed("groups-values-alike", longer, number=number, most=most)
            seen += 1
            if seen > MOST_PATTERNS:
                raise OutputError("release-patterns-too-many")
            if len(longer) < largest:
                descend(matches, longer)

    descend([(trace, 0) for trace in cases], ())


def check_pretsa(log: EventLog, values: dict[str, Any]) -> None:
    """Every prefix and every complete trace is that of at least ``k`` cases, and the values of a sensitive attribute
    after each prefix are at most ``t`` away from those of the same activity anywhere in the release."""
    traces = _traces(log, _plain(log, ACTIVITY))
    prefixes: Counter[Trace] = Counter()
    for trace, number in Counter(traces).items():
        for length in range(1, len(trace) + 1):
            prefixes[trace[:length]] += number
    for code, counted in (("groups-prefix-rare", prefixes), ("groups-trace-rare", Counter(traces))):
        for trace, number in counted.items():
            if number < values["k"]:
                raise _failed(code, trace, number=number)
    if values["sensitive"] is not None and values["t"] < 1:
        _check_closeness(log, traces, values["sensitive"], values["t"])


def _next_places(trace: Trace) -> list[dict[Label, int]]:
    """From each place on, where each label comes next (one beyond it)."""
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
        distance = (_of_numbers if numbers else _of_names)(values, others[prefix[-1]])
        if distance > t + _SLACK:
            raise _failed("groups-values-apart", prefix, name=name, distance=distance)


def _of_numbers(values: list[Any], others: Any) -> float:
    """Earth mover's distance over the range: the mean distance of quantiles, which change at multiples of 1/n, 1/m."""
    n, m, width = len(values), len(others), others[-1] - others[0]
    steps = np.sort(np.concatenate([np.arange(1, n + 1) * m, np.arange(1, m + 1) * n]), kind="stable")
    apart = np.abs(np.sort(np.array(values))[(steps - 1) // m] - others[(steps - 1) // n])
    return float(apart @ np.diff(steps, prepend=0)) / (n * m * width) if width else 0.0


def _of_names(values: list[Any], others: Any) -> float:
    """Earth mover's distance where every two names are 1 apart: half the sum of differences of shares."""
    there, total = Counter(values), sum(others.values())
    return float(sum(abs(there[v] / len(values) - others[v] / total) for v in others)) / 2


def _durations(log: EventLog) -> list[float | None]:
    """Seconds since the event before in the case, none for its first."""
    times = log.events.column(TIMESTAMP).cast(pa.int64()).to_pylist()
    first = set(log.offsets.tolist())
    return [None if i in first else (time - times[i - 1]) / 1e6 for i, time in enumerate(times)]


def _traces(log: EventLog, labels: Sequence[Label]) -> list[Trace]:
    offsets = log.offsets.tolist()
    return [tuple(labels[a:b]) for a, b in itertools.pairwise(offsets)]


def _told(log: EventLog, names: str | None) -> list[frozenset[Label]]:
    """Of each released case the values of sensitive attributes that it or one of its events has."""
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


def _failed(code: str, pattern: Sequence[Label], **values: Any) -> OutputError:
    shown = [", ".join(map(str, p)) if isinstance(p, tuple) else str(p) for p in pattern]
    return OutputError("release-check-failed", what=Message(code, pattern="<" + "; ".join(shown) + ">", **values))
