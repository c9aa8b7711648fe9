"""How close released times are to the original's, on real logs, by the epsilon spent on times.

    python bench/times.py --logs FOLDER [--runs 5]

Times are given to the log's own variants (nothing else is then in the way) and to a release of evolve at epsilon 1.
"""

from __future__ import annotations

import argparse
import os
import time
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa

import veilog
from veilog.logs.eventlog import EventLog
from veilog.logs.variants import Sequences, Variants
from veilog.methods._events.assemble import released_cases
from veilog.methods._events.timestamps import released_times
from veilog.privacy.curator import Curator
from veilog.privacy.domain import ALL_FROM_LOG
from veilog.privacy.mechanisms import noise

LOGS = ("sepsis", "bpic2013_incidents", "receipt", "unrineweginfectie", "traffic_fines")
EPSILONS = ("0.1", "0.3", "1", "3", "10")
COLUMNS = ("frequent", "by occurrence", "all", "medians", "duration", "hours", "weeks", "seconds")


def original_of(log: EventLog) -> tuple[Sequences, np.ndarray]:
    column = log.events.column("concept:name").combine_chunks()
    column = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
    times = log.events.column("time:timestamp").cast(pa.int64()).to_numpy()
    return Sequences(tuple(column.dictionary.to_pylist()), column.indices.to_numpy(), log.offsets), times


def gaps_of(cases: Sequences, times: np.ndarray) -> dict[tuple[str, str], np.ndarray]:
    inner = np.ones(len(cases.codes), dtype=bool)
    inner[cases.offsets[:-1][cases.lengths > 0]] = False
    at = np.flatnonzero(inner)
    size = len(cases.labels)
    keys = cases.codes[at - 1].astype(np.int64) * size + cases.codes[at]
    order = np.argsort(keys, kind="stable")
    found, starts = np.unique(keys[order], return_index=True)
    parts = np.split(((times[at] - times[at - 1]) / 1e6)[order], starts[1:])
    names = ((cases.labels[k // size], cases.labels[k % size]) for k in found.tolist())
    return dict(zip(names, parts, strict=True))


def shares(moments: np.ndarray, unit: int, number: int, first: int) -> np.ndarray:
    cells = np.clip((moments // 1_000_000 - first) // unit, 0, 10**6) % number
    return np.bincount(cells, minlength=number) / len(moments)


def errors(log: EventLog, cases: Sequences, times: np.ndarray, first: int) -> list[float]:
    raw, moments = original_of(log)
    real, made = gaps_of(raw, moments), gaps_of(cases, times)
    common = [p for p in made if p in real and real[p].mean() > 0]
    number = np.array([len(real[p]) for p in common])
    means = np.array([abs(made[p].mean() / real[p].mean() - 1) for p in common])
    medians = np.array([abs(np.median(made[p]) - np.median(real[p])) / max(np.median(real[p]), 1) for p in common])
    order = np.argsort(means)
    middle = order[np.searchsorted(np.cumsum(number[order]), number.sum() / 2)]
    frequent = number >= 100

    def duration(of: Sequences, at: np.ndarray) -> float:
        going = of.lengths > 0
        return float(np.median(at[of.offsets[1:][going] - 1] - at[of.offsets[:-1][going]]))

    starts, real_starts = times[cases.offsets[:-1][cases.lengths > 0]], moments[raw.offsets[:-1][raw.lengths > 0]]
    weeks = np.abs(shares(starts, 604_800, 2000, first) - shares(real_starts, 604_800, 2000, first)).sum() / 2
    hours = np.corrcoef(shares(times, 3600, 24, 0), shares(moments, 3600, 24, 0))[0, 1]
    return [
        float(np.median(means[frequent])),
        float(means[middle]),
        float(np.median(means)),
        float(np.median(medians[frequent])),
        abs(duration(cases, times) / duration(raw, moments) - 1),
        float(hours),
        float(weeks),
    ]


def measured(log: EventLog, epsilon: str, seed: int, variants: Variants) -> list[float]:
    source = noise.seeded(seed)
    curator = Curator(log.variants, log=log, randomness=source)
    cases = released_cases(variants, noise.generator(source))
    window = curator.events.window
    started = time.perf_counter()
    times = released_times(curator, Fraction(epsilon), cases, window=window)
    seconds = time.perf_counter() - started
    return [*errors(log, cases, times, int(window[0].timestamp())), seconds]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", default=os.environ.get("VEILOG_LOGS"), required="VEILOG_LOGS" not in os.environ)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--only", default=",".join(LOGS))
    parser.add_argument("--epsilons", default=",".join(EPSILONS))
    arguments = parser.parse_args()
    for name in arguments.only.split(","):
        log = veilog.read(Path(arguments.logs) / f"{name}.xes.gz")
        print(
            f"\n## {name}\n\n| variants | epsilon | {' | '.join(COLUMNS)} |\n|{'---|' * (len(COLUMNS) + 2)}", flush=True
        )
        releases = [
            veilog.release(log.variants, "evolve", domain=ALL_FROM_LOG, epsilon=1, seed=seed).variants
            for seed in range(arguments.runs)
        ]
        for which in ("own", "evolve"):
            for epsilon in arguments.epsilons.split(","):
                rows = []
                for seed in range(arguments.runs):
                    variants = log.variants if which == "own" else releases[seed]
                    rows.append(measured(log, epsilon, seed, variants))
                means, spread = np.mean(rows, axis=0), np.std(rows, axis=0, ddof=min(1, len(rows) - 1))
                cells = [
                    f"{m:.2f} ± {s:.2f}" if c == "all" else f"{m:.2f}"
                    for c, m, s in zip(COLUMNS, means, spread, strict=True)
                ]
                print(f"| {which} | {epsilon} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
