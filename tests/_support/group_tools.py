"""Small logs for tests of group-based methods, and their models spelt out."""

import datetime
import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from veilog.logs.eventlog import ACTIVITY, CASE_INDEX, EVENT_INDEX, TIMESTAMP, TIMESTAMP_TYPE, EventLog

START = datetime.datetime(2021, 3, 1, 8, 30, 15, tzinfo=datetime.UTC)
Trace = tuple[str, ...]

traces = st.lists(st.lists(st.sampled_from("abcd"), max_size=5).map(tuple), min_size=1, max_size=14)


def log_of(
    traces_: Iterable[Sequence[str]],
    *,
    minutes: Sequence[Sequence[float]] | None = None,
    events: dict[str, Sequence[Any]] | None = None,
    cases: dict[str, Sequence[Any]] | None = None,
) -> EventLog:
    """Return a log of these traces, a day apart; events are an hour apart by default."""
    rows = [list(trace) for trace in traces_]
    owner = [i for i, trace in enumerate(rows) for _ in trace]
    passed = minutes or [[60 * j for j in range(len(trace))] for trace in rows]
    times = [
        START + datetime.timedelta(days=i, minutes=passed[i][j])
        for i, trace in enumerate(rows)
        for j in range(len(trace))
    ]
    table = {
        CASE_INDEX: pa.array(owner, pa.int64()),
        EVENT_INDEX: pa.array(np.arange(len(owner))),
        ACTIVITY: pa.array([a for trace in rows for a in trace], pa.string()).dictionary_encode(),
        TIMESTAMP: pa.array(times, TIMESTAMP_TYPE),
    }
    names = pa.array([f"patient {i}" for i in range(len(rows))])
    return EventLog(
        pa.table(table | {k: pa.array(v) for k, v in (events or {}).items()}),
        pa.table({ACTIVITY: names} | {k: pa.array(v) for k, v in (cases or {}).items()}),
    )


def traces_of(log: EventLog) -> list[Trace]:
    labels = log.events.column(ACTIVITY).to_pylist()
    return [tuple(labels[a:b]) for a, b in itertools.pairwise(log.offsets.tolist())]


def patterns_of(trace: Sequence[Any], background: str, size: int) -> set[tuple[Any, ...]]:
    """Return all patterns of this size that an attacker may know of a case."""
    if background == "set":
        return set(itertools.combinations(sorted(set(trace)), size))
    found = set(itertools.combinations(trace, size))
    return {tuple(sorted(p)) for p in found} if background == "multiset" else found


def violations(
    log: Sequence[Sequence[Any]], background: str, k: int, largest: int, told: Sequence[Any] | None = None, c: float = 1
) -> list[tuple[Any, ...]]:
    """Return the patterns with too few cases, or that reveal a value too surely.

    They have at most ``largest`` events.
    """
    found = []
    for size in range(1, largest + 1):
        having = [patterns_of(trace, background, size) for trace in log]
        for pattern in set().union(*having):
            matching = [i for i, patterns in enumerate(having) if pattern in patterns]
            values = Counter(told[i] for i in matching if told[i] is not None) if told is not None else Counter()
            if len(matching) < k or max(values.values(), default=0) > c * len(matching) + 1e-9:
                found.append(pattern)
    return found
