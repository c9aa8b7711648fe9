"""Does asking a sample pay? A certified method asked about the whole log, against Libra's Poisson samples of it, at the
same derived epsilon; and what Libra as published leaves of a log.

    python bench/libra.py LOG [RUNS]
    python bench/libra.py --speed [RUNS]

The second: processor time of a certified release at epsilon 1 against that of its query, evolve, asked about the whole
log in the same process, for Sepsis, Receipt and BPIC 2013 incidents in the folder of VEILOG_LOGS.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import veilog
from veilog.logs.variants import Variants
from veilog.measures.similarity import relative_log_similarity
from veilog.privacy.domain import ALL_FROM_LOG
from veilog.releasing.run import release

SAMPLES = ((1.0, 1), (0.9, 1), (0.5, 1), (0.5, 2), (0.2, 5), (0.05, 20))


def row(name: str, values: list[float]) -> None:
    spread = f"{np.mean(values):.3f} +- {np.std(values):.3f}" if values else "every release empty"
    print(f"{name:58s} {spread}", flush=True)


def similarity(original: Variants, released: Variants) -> float:
    return relative_log_similarity(original, released).value if released.cases else 0.0


def main(path: str, runs: int) -> None:
    log = veilog.read(path)
    original = log.variants
    for query, delta in (("laplace", "0"), ("travas", "0.001"), ("evolve", "0")):
        for epsilon in ("1", "0.1"):
            whole = [
                similarity(
                    original,
                    release(original, query, domain=ALL_FROM_LOG, epsilon=epsilon, delta=delta, seed=seed).variants,
                )
                for seed in range(runs)
            ]
            row(f"{query}, epsilon {epsilon}: the whole log", whole)
            for gamma, samples in SAMPLES[1:]:
                if query == "evolve" and samples > 5:
                    continue  # minutes
                settings = {"query": query, "gamma": gamma, "samples": samples, "times_share": 0}
                found = [
                    similarity(
                        original,
                        release(
                            log, "libra", domain=ALL_FROM_LOG, epsilon=epsilon, delta=delta, seed=seed, **settings
                        ).variants,
                    )
                    for seed in range(runs)
                ]
                row(f"{query}, epsilon {epsilon}: {samples} samples of {gamma:g}", found)
    for delta in ("0.1", "0.01", "0.001", "0.0001"):
        found = [
            release(log, "libra", domain=ALL_FROM_LOG, epsilon=1, delta=delta, as_published=True, seed=seed).variants
            for seed in range(runs)
        ]
        row(f"as published, epsilon 1, delta {delta}: cases", [float(v.cases) for v in found])
        row(f"as published, epsilon 1, delta {delta}: similarity", [similarity(original, v) for v in found])


def seconds(work: Callable[[int], object], runs: int) -> float:
    """Median processor time."""
    taken = []
    for seed in range(runs):
        started = time.process_time()
        work(seed)
        taken.append(time.process_time() - started)
    return statistics.median(taken)


def speed(runs: int) -> None:
    for name in ("sepsis", "receipt", "bpic2013_incidents"):
        log = veilog.read(Path(os.environ["VEILOG_LOGS"]) / f"{name}.xes.gz")
        alone = seconds(
            lambda seed, log=log: release(log.variants, "evolve", domain=ALL_FROM_LOG, epsilon=1, seed=seed), runs
        )
        whole = seconds(
            lambda seed, log=log: release(log, "libra", domain=ALL_FROM_LOG, epsilon=1, seed=seed).log, runs
        )
        print(f"{name:20s} CPU s {whole:6.2f}, {whole / alone:.1f} times evolve alone ({alone:.2f})", flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "--speed":
        speed(int(sys.argv[2]) if len(sys.argv) > 2 else 5)
    else:
        main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 5)
