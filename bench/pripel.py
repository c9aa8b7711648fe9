"""PRIPEL: how long it takes and what it keeps, in both faces; and optimal matchings of many traces.

    python bench/pripel.py [--runs 5] [LOG ...]
    python bench/pripel.py --matching TRACES [optimal|greedy]

The time of a whole release stands beside that of its query alone, in the same process. Reading is not part of it.
Without a log: Sepsis, Receipt and BPIC 2013 incidents in the folder of VEILOG_LOGS.
"""

from __future__ import annotations

import os
import resource
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import veilog
from veilog.logs.eventlog import EventLog
from veilog.logs.variants import Variants
from veilog.measures.directly_follows import time_emd
from veilog.measures.similarity import relative_log_similarity
from veilog.methods.pripel.matching import match
from veilog.privacy.domain import ALL_FROM_LOG
from veilog.releasing.run import release

LOGS = ("sepsis", "receipt", "bpic2013_incidents")
SETTINGS: dict[str, dict[str, Any]] = {
    "as published, laplace, optimal": {"as_published": True},
    "as published, laplace, greedy": {"as_published": True, "matching": "greedy"},
    "as published, evolve, optimal": {"as_published": True, "query": "evolve"},
    "certified, laplace": {"query": "laplace"},
    "certified, evolve": {},
}


def measured(log: EventLog, name: str, settings: dict[str, Any], runs: int) -> None:
    seconds, alone, similar, times, cases = [], [], [], [], []
    query = settings.get("query") or ("laplace" if settings.get("as_published") else "evolve")
    for seed in range(runs):
        started = time.process_time()
        released = release(log, "pripel", domain=ALL_FROM_LOG, epsilon=1, seed=seed, **settings)
        seconds.append(time.process_time() - started)
        started = time.process_time()
        release(log, query, domain=ALL_FROM_LOG, epsilon=1, seed=seed, as_published=settings.get("as_published", False))
        alone.append(time.process_time() - started)
        cases.append(released.variants.cases)
        similar.append(relative_log_similarity(log.variants, released.variants).value)
        times.append(time_emd(log, released.log))
    ratio = np.median(seconds) / np.median(alone)
    print(
        f"  {name:32s} cases {np.mean(cases):7.0f}  similarity {np.mean(similar):.3f} +- {np.std(similar):.3f}  "
        f"time EMD {np.mean(times):9.2f} months  CPU s {np.median(seconds):6.2f}, {ratio:.1f} times the query alone",
        flush=True,
    )


def traces(number: int, seed: int) -> Variants:
    """Traces of 5 to 25 events, practically all different."""
    rng = np.random.default_rng(seed)
    return Variants.from_sequences(
        [tuple("abcdefghij"[i] for i in rng.integers(0, 10, n)) for n in rng.integers(5, 26, number)]
    )


def matched(number: int, how: str) -> None:
    one, other = traces(number, 1), traces(number, 2)
    started = time.process_time()
    found = match(one, other, "greedy" if how == "greedy" else "optimal", print)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    seconds = time.process_time() - started
    print(f"{number} x {number} traces, {how}: {found.cost} edit steps, {seconds:.1f} CPU s, peak {peak:.2f} GB")


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["--matching"]:
        return matched(int(arguments[1]), arguments[2] if len(arguments) > 2 else "optimal")
    runs = 5
    if arguments[:1] == ["--runs"]:
        runs, arguments = int(arguments[1]), arguments[2:]
    for path in arguments or [str(Path(os.environ["VEILOG_LOGS"]) / f"{name}.xes.gz") for name in LOGS]:
        log = veilog.read(path)
        print(Path(path).name.partition(".")[0])
        for name, settings in SETTINGS.items():
            measured(log, name, settings, runs)
    return None


if __name__ == "__main__":
    main(sys.argv[1:])
