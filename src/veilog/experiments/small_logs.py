"""Small synthetic logs for fingerprints, made here alone, so that no change elsewhere changes them."""

from __future__ import annotations

import random
from functools import cache

import pyarrow as pa

from veilog.logs.eventlog import ACTIVITY, CASE_INDEX, EVENT_INDEX, START, TIMESTAMP, TIMESTAMP_TYPE, EventLog
from veilog.logs.variants import Variants

SENSITIVE = "diagnosis"
"""The column that is sensitive, for methods that ask for one."""
_WARDS = ("east", "north", "west")
_BEGIN = 1_704_092_400
_DAY = 86_400
_MOST = 20


@cache
def small_log(cases: int) -> EventLog:
    """Return a log of 8 activities with times, starts, persons of about two cases, and attributes of all kinds."""
    rng = random.Random(cases)
    events: dict[str, list[object]] = {name: [] for name in (CASE_INDEX, ACTIVITY, TIMESTAMP, START, "staff", "cost")}
    told: dict[str, list[object]] = {name: [] for name in ("patient", "ward", "age", SENSITIVE)}
    for case in range(cases):
        now = _BEGIN + rng.randrange(200 * _DAY)
        for activity in _path(rng):
            now += int(rng.expovariate(1 / 7_200)) + 60
            events[CASE_INDEX].append(case)
            events[ACTIVITY].append(activity)
            events[TIMESTAMP].append(now * 1_000_000)
            events[START].append((now - rng.randrange(1, 60)) * 1_000_000)
            events["staff"].append(f"{activity[0]}{rng.randrange(3)}")
            events["cost"].append(round(rng.lognormvariate(3, 0.6), 1) if rng.random() < 0.9 else None)
        told["patient"].append(f"p{rng.randrange(max(1, cases // 2))}")
        told["ward"].append(rng.choice(_WARDS))
        told["age"].append(rng.randrange(18, 95))
        told[SENSITIVE].append(rng.choice(("cold", "flu", "flu", "flu", "measles")))
    size = len(events[CASE_INDEX])
    columns = {
        name: pa.array(values).cast(TIMESTAMP_TYPE) if name in (TIMESTAMP, START) else pa.array(values)
        for name, values in events.items()
    }
    return EventLog(
        events=pa.table(
            columns | {EVENT_INDEX: pa.array(range(size), pa.int64()), ACTIVITY: columns[ACTIVITY].dictionary_encode()}
        ),
        cases=pa.table({ACTIVITY: [f"c{case}" for case in range(cases)], **told}),
        source=f"small log, {cases} cases",
    )


def _path(rng: random.Random) -> list[str]:
    """A choice, tests in any order, a loop of any length, and an end that goes by what was first: a long memory."""
    tests = ["blood", "scan"] if rng.random() < 0.6 else ["blood"]
    rng.shuffle(tests)
    path = ["enter", *tests]
    again = rng.choice((0.2, 0.85))
    while rng.random() < again and len(path) < _MOST - 2:
        path.append("visit")
    path += ["operate"] if rng.random() < 0.2 else []
    usual = "transfer" if tests[0] == "scan" else "leave"
    return [*path, "die" if rng.random() < 0.02 else usual]


def few_variants() -> Variants:
    """Return four variants, of which one is rare: for trainings."""
    return Variants.from_dict({("a", "b"): 180, ("a", "c"): 120, ("a", "b", "c"): 60, ("b",): 8})
