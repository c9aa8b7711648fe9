"""Small logs with attributes, a release of them, and counts in both."""

from collections import Counter
from typing import Any

import numpy as np
import openly
import pyarrow as pa

import veilog
from veilog.logs.eventlog import TIMESTAMP_TYPE, EventLog

HOUR = 3_600_000_000


def log_of(cases: list[tuple[dict[str, Any], list[dict[str, Any]]]], dated: bool = False) -> EventLog:
    """Return a log of (attributes, events); an event has its ``activity`` as a key."""
    flat = [(i, event) for i, (_, events) in enumerate(cases) for event in events]
    names = sorted({key for _, event in flat for key in event} - {"activity"})
    case_names = sorted({key for attributes, _ in cases for key in attributes})
    events = {
        "case:index": pa.array([i for i, _ in flat], pa.int64()),
        "event:index": pa.array(range(len(flat)), pa.int64()),
        "concept:name": pa.array([event["activity"] for _, event in flat], pa.string()),
        "time:timestamp": pa.array([None] * len(flat), TIMESTAMP_TYPE),
    }
    events |= {name: pa.array([event.get(name) for _, event in flat]) for name in names}
    if dated:
        events["due"] = pa.array([0] * len(flat), pa.int64()).cast(TIMESTAMP_TYPE)
    table = {"concept:name": pa.array([str(i) for i in range(len(cases))])}
    table |= {name: pa.array([attributes.get(name) for attributes, _ in cases]) for name in case_names}
    return EventLog(pa.table(events), pa.table(table))


COLOURED = log_of(
    [
        (
            {"kind": "new" if i % 3 else "old", "ticket": f"T-{i}"},
            [
                {"activity": "ask", "colour": "red" if i % 2 else "blue", "fast": bool(i % 5), "price": 1.5},
                {"activity": "answer", "colour": "green", "fast": None, "price": None},
            ],
        )
        for i in range(900)
    ]
)


def released(log: EventLog = COLOURED, **changes: Any) -> veilog.Release:
    arguments: dict[str, Any] = {"epsilon": 4, "delta": "1e-3", "attributes_share": "0.5", **changes}
    return openly.release(log, "travas", **arguments)


def slow_and_fast(cases: int, seed: int) -> EventLog:
    """Return slow cases of 20 hours and others of 2; in summer all are of ward north."""
    rng = np.random.default_rng(seed)
    slow = rng.random(cases) < 0.4
    begin = 1_704_067_200_000_000 + (rng.random(cases) * 360 * 24 * HOUR).astype(np.int64)
    north = (begin - begin.min() > 150 * 24 * HOUR) & (begin - begin.min() < 240 * 24 * HOUR)
    gap = (np.where(slow, 20, 2) / 2 * HOUR * rng.lognormal(0, 0.2, cases)).astype(np.int64)
    events = {
        "case:index": np.repeat(np.arange(cases), 3),
        "event:index": np.arange(3 * cases),
        "concept:name": ["in", "test", "out"] * cases,
        "time:timestamp": pa.array((begin[:, None] + gap[:, None] * np.arange(3)).ravel()).cast(TIMESTAMP_TYPE),
    }
    table = {
        "concept:name": [str(i) for i in range(cases)],
        "slow": ["yes" if one else "no" for one in slow],
        "ward": ["north" if one else "south" for one in north],
    }
    return EventLog(pa.table(events), pa.table(table))


def values_with(log: EventLog, name: str, activity: str) -> Counter[Any]:
    rows = zip(log.events.column("concept:name").to_pylist(), log.events.column(name).to_pylist(), strict=True)
    return Counter(value for its, value in rows if its == activity)
