"""Similarity of two logs: veilog against plain POT on the same matrix, and what 15,000 variants a side take.

    python bench/similarity.py [--variants 4000] [--large 15000] [--runs 3]

Every measurement is a process of its own (so that peak memory is its own), with the libraries imported before the
clock starts. Prints a Markdown table; each ratio is against plain POT in the same run.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
import ot

from veilog.logs.variants import Variants
from veilog.measures.similarity import absolute_log_difference, relative_log_similarity
from veilog.measures.similarity.distances import levenshtein_block
from veilog.measures.similarity.transport import matrix_costs, transport


def loan_log(variants: int, seed: int, activities: int = 24, length: int = 20) -> Variants:
    """Distinct variants of about ``length`` events from one random process, with counts as skewed as in real logs."""
    process = np.random.default_rng(7).dirichlet(np.full(activities, 0.15), size=activities).cumsum(axis=1)
    random = np.random.default_rng(seed)
    counts: dict[tuple[str, ...], int] = {}
    while len(counts) < variants:
        events = [int(random.integers(3))]
        for draw in random.random(2 + random.geometric(1 / (length - 3))).tolist():
            events.append(min(int(np.searchsorted(process[events[-1]], draw)), activities - 1))
        counts[tuple(f"activity {e}" for e in events)] = 1 + int(random.pareto(1.2))
    return Variants.from_dict(counts)


def normalised(a: Variants, b: Variants) -> np.ndarray:
    return levenshtein_block(a.sequences, b.sequences) / np.maximum(a.lengths[:, None], b.lengths)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--variants", type=int, default=4000)
    parser.add_argument("--large", type=int, default=15000, help="0 leaves the large logs out")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--measure", choices=sorted(MEASUREMENTS), help="one measurement in this process, as JSON")
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measured(MEASUREMENTS[arguments.measure], arguments.variants)))
        return
    print(f"{arguments.variants} variants a side; medians of {arguments.runs} runs\n")
    table(["pot", "matrix", "same matrix", "direct", "exact"], arguments.variants, arguments.runs)
    if arguments.large:
        print(f"\n{arguments.large} variants a side; one run\n")
        table(["direct", "exact", "length", "maximum"], arguments.large, 1)


def table(names: list[str], variants: int, runs: int) -> None:
    """Print a row for each measurement; ratios are to the one called ``pot``, where it comes first."""
    baseline: float | None = None
    print("| measurement | CPU s | wall s | peak RSS MB | gap | value | CPU / plain POT |")
    print("|---|---|---|---|---|---|---|")
    for name in names:
        results = [in_a_process(name, variants) for _ in range(runs)]
        cpu, wall, memory = (statistics.median(r[k] for r in results) for k in ("cpu", "wall", "rss"))
        if name == "pot":
            baseline = cpu
        gap = "" if results[0]["gap"] is None else f"{results[0]['gap']:.1e}"
        ratio = "" if baseline is None else f"{cpu / baseline:.2f}"
        what = (MEASUREMENTS[name].__doc__ or name).rstrip(".")
        print(f"| {what} | {cpu:.2f} | {wall:.2f} | {memory:.0f} | {gap} | {results[0]['value']:.12g} | {ratio} |")
        sys.stdout.flush()


def in_a_process(name: str, variants: int) -> dict[str, float]:
    command = [sys.executable, __file__, "--measure", name, "--variants", str(variants)]
    return dict(json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout))


def measured(
    prepare: Callable[[Variants, Variants], Callable[[], tuple[float, float | None]]], n: int
) -> dict[str, float | None]:
    work = prepare(loan_log(n, 1), loan_log(n, 2))
    cpu, wall = time.process_time(), time.perf_counter()
    value, gap = work()
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"cpu": cpu, "wall": wall, "rss": memory, "gap": gap, "value": value}


def plain_pot(a: Variants, b: Variants) -> Callable[[], tuple[float, float | None]]:
    """Plain POT, `ot.emd2` on the matrix, no iteration limit."""
    matrix = normalised(a, b)
    return lambda: (1.0 - float(ot.emd2(a.counts / a.cases, b.counts / b.cases, matrix, numItermax=10**10)), None)


def matrix_only(a: Variants, b: Variants) -> Callable[[], tuple[float, float | None]]:
    """The matrix alone (rapidfuzz), which plain POT needs as well; value: its mean."""
    return lambda: (float(normalised(a, b).mean()), None)


def same_matrix(a: Variants, b: Variants) -> Callable[[], tuple[float, float | None]]:
    """veilog's `transport` on the matrix."""
    matrix = normalised(a, b)
    whole = int(np.lcm(a.cases, b.cases))
    masses, targets = a.counts * (whole // a.cases), b.counts * (whole // b.cases)

    def work() -> tuple[float, float]:
        plan = transport(masses, targets, matrix_costs(matrix))
        return 1.0 - plan.cost / whole, plan.gap / whole

    return work


def direct(a: Variants, b: Variants) -> Callable[[], tuple[float, float | None]]:
    """`relative_log_similarity`, direct, with its distances."""
    return lambda: ((r := relative_log_similarity(a, b)).value, r.gap)


def exact(a: Variants, b: Variants) -> Callable[[], tuple[float, float | None]]:
    """`relative_log_similarity`, exact, with its distances."""
    return lambda: ((r := relative_log_similarity(a, b, matching="exact")).value, r.gap)


def length(a: Variants, b: Variants) -> Callable[[], tuple[float, float | None]]:
    """`absolute_log_difference`, length, with its distances."""
    return lambda: ((r := absolute_log_difference(a, b)).value, r.gap)


def maximum(a: Variants, b: Variants) -> Callable[[], tuple[float, float | None]]:
    """`absolute_log_difference`, maximum, with its distances."""
    return lambda: ((r := absolute_log_difference(a, b, buffer="maximum")).value, r.gap)


MEASUREMENTS = {
    "pot": plain_pot,
    "matrix": matrix_only,
    "same matrix": same_matrix,
    "direct": direct,
    "exact": exact,
    "length": length,
    "maximum": maximum,
}

if __name__ == "__main__":
    main()
