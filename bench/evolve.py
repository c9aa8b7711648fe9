"""evolve: similarity of every cell of the results page, seconds of a release, and wide and large simulated logs.

    python bench/evolve.py --logs FOLDER [--runs 10] [--small]

Times are seconds of one release and, for the large log, multiples of one pass of all variants over 1000 prototypes, the
most a round has (Levenshtein distances): the work that no implementation by votes can avoid.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import time
from fractions import Fraction
from pathlib import Path

import numpy as np

import veilog
from veilog.logs.simulate import variants_only
from veilog.logs.variants import Variants
from veilog.measures.similarity.distances import as_strings, edit_distances
from veilog.measures.similarity.measure import relative_log_similarity
from veilog.methods.evolve import EvolveSettings, evolve
from veilog.methods.evolve.constants import DEFAULTS, Constants
from veilog.methods.method import Request
from veilog.privacy.curator import Curator
from veilog.privacy.domain import ALL_FROM_LOG
from veilog.privacy.mechanisms import noise

CELLS = {
    "sepsis": ("2", "1", "0.1"),
    "receipt": ("2", "1", "0.1"),
    "bpic2013_incidents": ("2", "1", "0.1", "0.01"),
    "traffic_fines": ("1", "0.1", "0.01"),
    "unrineweginfectie": ("1", "0.1"),
}
WIDE = ((400, 1200, 43), (600, 1100, 130))


def release(log: Variants, epsilon: str, seed: int, settings: Constants = DEFAULTS) -> Variants:
    """A seeded release with other constants than the default ones."""
    curator = Curator(log, domain=ALL_FROM_LOG, randomness=noise.seeded(seed))
    request = Request(Fraction(epsilon), Fraction(0), False, lambda text, done: None, lambda a, b: 0.0)
    return evolve(
        curator, request, EvolveSettings(largest_log=settings.largest_log, max_length=settings.max_length), settings
    )


def similarities(log: Variants, epsilon: str, seeds: range, settings: Constants = DEFAULTS) -> list[float]:
    released = (release(log, epsilon, seed, settings) for seed in seeds)
    return [relative_log_similarity(log, one).value if one.cases else 0.0 for one in released]


def in_words(values: list[float]) -> str:
    spread = statistics.stdev(values) if len(values) > 1 else 0.0
    return f"{statistics.mean(values):.4f} ± {spread:.4f} ({min(values):.3f})"


def skewed(cases: int, activities: int, mean_length: int, seed: int) -> Variants:
    """A wide log whose activities are as unequal as real ones: rank r has weight 1 / (r + 1), from each activity some
    successors are likely, and cases take a few of many ways."""
    rng = np.random.default_rng(seed)
    weight = 1.0 / np.arange(1, activities + 1)
    weight /= weight.sum()
    likely = rng.choice(activities, size=(activities, 4), p=weight)
    rows = []
    for _ in range(cases):
        state, row = 0, [0]
        for _ in range(rng.poisson(mean_length - 1)):
            draw = rng.choice(5, p=(0.60, 0.20, 0.08, 0.05, 0.07))
            state = int(likely[state, draw]) if draw < 4 else int(rng.choice(activities, p=weight))
            row.append(state)
        rows.append(row)
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    return Variants.from_arrays([f"a{i}" for i in range(activities)], np.concatenate(rows), offsets)


def large(cases: int, distinct: int, seed: int) -> Variants:
    """About ``distinct`` variants (40 activities, 11 events on average) and exactly ``cases`` cases."""
    variants = variants_only(int(distinct * 1.75), 40, 10.0, seed=seed)
    counts = variants.counts
    rest = np.random.default_rng(seed).multinomial(cases - variants.cases, counts / variants.cases)
    return variants.with_counts(counts + rest)


def timed(log: Variants, epsilon: str) -> tuple[float, float]:
    """Seconds of a release, and as a multiple of one pass over 1000 prototypes."""
    started = time.perf_counter()
    released = release(log, epsilon, 1)
    seconds = time.perf_counter() - started
    chosen = log.sequences.rows(0, min(1000, len(log)))
    rows, columns = as_strings(log.sequences, chosen)
    started = time.perf_counter()
    edit_distances(rows, columns, keep_bytes=4 << 30)
    assert released.cases
    return seconds, seconds / (time.perf_counter() - started)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", default=os.environ.get("VEILOG_LOGS"))
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--small", action="store_true", help="a large log of a tenth of the size")
    arguments = parser.parse_args()
    scale = 10 if arguments.small else 1

    log = large(1_000_000 // scale, 200_000 // scale, 1)
    for epsilon in ("1", "0.1"):
        seconds, ratio = timed(log, epsilon)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        print(f"{log}, epsilon {epsilon}: {seconds:.1f} s, {ratio:.1f} passes, {memory:.2f} GB", flush=True)
    stage = Constants(wide_from=10**9)
    share = Constants(wide_from=10**9, relations=((150.0, 0.70), (700.0, 0.35)), relations_exponent=0.0)
    print("| log | epsilon | with the wide stage | without it | also without a share by the number of activities |")
    for make in (variants_only, skewed):
        for activities, cases, length in WIDE:
            if make is variants_only:
                log = variants_only(cases, activities, length, seed=1)
            else:
                log = skewed(cases, activities, length, seed=1)
            for epsilon in ("1", "3"):
                runs = range(min(5, arguments.runs))
                row = [in_words(similarities(log, epsilon, runs, s)) for s in (DEFAULTS, stage, share)]
                print(f"| {make.__name__} {activities} | {epsilon} | {' | '.join(row)} |", flush=True)
    if not arguments.logs:
        return
    for name, epsilons in CELLS.items():
        log = veilog.read(Path(arguments.logs) / f"{name}.xes.gz").variants
        for epsilon in epsilons:
            values = similarities(log, epsilon, range(arguments.runs))
            print(f"| {name} | {epsilon} | {in_words(values)} | {timed(log, epsilon)[0]:.2f} |", flush=True)


if __name__ == "__main__":
    main()
