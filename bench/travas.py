"""TraVaS against the published figures (similarity of every cell), and the time of one release.

    python bench/travas.py --logs FOLDER [--runs 10]

The time of a release of BPIC13 is given as a multiple of drawing the same amount of raw randomness from the operating
system, and in milliseconds.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from pathlib import Path

import numpy as np

import veilog
from veilog.measures.similarity import absolute_log_difference, relative_log_similarity
from veilog.privacy.domain import ALL_FROM_LOG

EPSILONS = ("2", "1", "0.1", "0.01")
DELTAS = ("0.5", "0.1", "0.05", "0.01", "0.001")
PUBLISHED = {
    "bpic2013_incidents": (
        (0.928, 0.902, 0.903, 0.886, 0.880),
        (0.946, 0.917, 0.897, 0.885, 0.862),
        (0.965, 0.931, 0.914, 0.873, 0.819),
        (0.966, 0.933, 0.921, 0.889, 0.797),
    ),
    "sepsis": (
        (0.771, 0.628, 0.622, 0.551, 0.516),
        (0.840, 0.730, 0.639, 0.566, 0.475),
        (0.889, 0.781, 0.726, 0.623, 0.441),
        (0.893, 0.785, 0.732, 0.600, 0.470),
    ),
}


def releases(
    variants: veilog.Variants, method: str, epsilon: str, delta: str, runs: int, **parameters: object
) -> list[veilog.Variants]:
    """Seeded runs that released anything; at most four times as many are tried."""
    found = []
    for seed in range(4 * runs):
        released = veilog.release(
            variants, method, domain=ALL_FROM_LOG, epsilon=epsilon, delta=delta, seed=seed, **parameters
        ).variants
        if released.cases:
            found.append(released)
        if len(found) == runs:
            break
    return found


def similarity_table(variants: veilog.Variants, name: str, runs: int, method: str = "travas") -> list[str]:
    lines = ["| epsilon | " + " | ".join(f"delta {d}" for d in DELTAS) + " |", "|---" * (len(DELTAS) + 1) + "|"]
    for row, epsilon in enumerate(EPSILONS):
        cells = []
        for column, delta in enumerate(DELTAS):
            values = [
                relative_log_similarity(variants, released).value
                for released in releases(variants, method, epsilon, delta, runs)
            ]
            mean, spread = statistics.fmean(values), statistics.pstdev(values)
            published = f" ({PUBLISHED[name][row][column]:.3f})" if method == "travas" else ""
            cells.append(f"{mean:.3f} ± {spread:.3f}{published}")
        lines.append(f"| {epsilon} | " + " | ".join(cells) + " |")
    return lines


def release_time(variants: veilog.Variants, repeats: int = 30) -> tuple[float, float]:
    """Median milliseconds of one release, and of drawing its random words alone."""
    words = 4 * len(variants) * 12

    def median(run: object) -> float:
        times = []
        for _ in range(repeats):
            started = time.perf_counter()
            run()  # type: ignore[operator]
            times.append(1000 * (time.perf_counter() - started))
        return statistics.median(times)

    ours = median(lambda: veilog.release(variants, "travas", epsilon="0.1", delta="0.001"))
    raw = median(lambda: np.frombuffer(os.urandom(words), dtype=np.uint32).sum())
    return ours, raw


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--logs", type=Path, default=os.environ.get("VEILOG_LOGS"), required="VEILOG_LOGS" not in os.environ
    )
    parser.add_argument("--runs", type=int, default=10)
    arguments = parser.parse_args()
    for name in PUBLISHED:
        variants = veilog.read(Path(arguments.logs) / f"{name}.xes.gz").variants
        for method in ("travas", "utravas"):
            print(f"\n## {name}: {method}, relative log similarity, mean ± spread of {arguments.runs} runs\n")
            print("\n".join(similarity_table(variants, name, arguments.runs, method)))
        print(f"\n## {name}: absolute log difference, maximum buffer, epsilon 1\n")
        for delta in ("0.01", "0.001"):
            values = [
                absolute_log_difference(variants, released, buffer="maximum").value
                for released in releases(variants, "travas", "1", delta, arguments.runs)
            ]
            print(f"- delta {delta}: {statistics.fmean(values):,.0f}")
        if name == "bpic2013_incidents":
            ours, raw = release_time(variants)
            print(f"\nOne release: {ours:.2f} ms, {ours / raw:.1f} times drawing its random words alone ({raw:.3f} ms)")


if __name__ == "__main__":
    main()
