"""Similarity of two logs against plain POT; large logs; matchings.

Large logs have 15,000 variants a side. Ratios are against plain POT in the same run. A matching of many traces is what
PRIPEL does.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import ot
from rapidfuzz.distance import Levenshtein

from benchmark import CPU, NO_LOG, PEAK, WALL, benchmark, grid
from columns import Column
from timing import timed
from veilog.experiments.experiment import Cell, Given, Measured
from veilog.logs.edits import edit_matrix
from veilog.logs.variants import Variants
from veilog.measures.similarity import absolute_log_difference, relative_log_similarity
from veilog.measures.similarity.distances import as_strings
from veilog.measures.similarity.transport import matrix_costs, transport
from veilog.methods.pripel import match


def loan_log(variants: int, seed: int, activities: int = 24, length: int = 20) -> Variants:
    """Return distinct variants of about ``length`` events from one random process.

    Their counts are as skewed as in real logs.
    """
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
    return edit_matrix(*as_strings(a.sequences, b.sequences)) / np.maximum(a.lengths[:, None], b.lengths)


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

SMALL = ("pot", "matrix", "same matrix", "direct", "exact")
LARGE = ("direct", "exact", "length", "maximum")


def measure(given: Given, cell: Cell) -> Measured:
    number = int(cell.get("variants"))
    work = MEASUREMENTS[str(cell.get("way"))](loan_log(number, 1), loan_log(number, 2))
    costs, (value, gap) = timed(work)
    return Measured(costs | {"value": value, "gap": gap})


def traces(number: int, seed: int) -> Variants:
    """Return traces of 5 to 25 events, practically all different."""
    rng = np.random.default_rng(seed)
    return Variants.from_sequences(
        [tuple("abcdefghij"[i] for i in rng.integers(0, 10, n)) for n in rng.integers(5, 26, number)]
    )


def matching(given: Given, cell: Cell) -> Measured:
    one, other = (traces(int(cell.get("traces")), seed) for seed in (1, 2))
    how = "greedy" if cell.get("matching") == "greedy" else "optimal"
    costs, found = timed(lambda: match(one, other, how, lambda text: None))
    pairs = zip(found.released.tolist(), found.original.tolist(), found.numbers.tolist(), strict=True)
    ours, theirs = list(one.sequences), list(other.sequences)
    return Measured(costs | {"edit steps": sum(n * Levenshtein.distance(ours[i], theirs[j]) for i, j, n in pairs)})


BENCHMARKS = (
    benchmark(
        "similarity",
        "Similarity and difference of two logs against plain POT.",
        measure,
        [
            grid(logs=NO_LOG, variants=4000, way=SMALL, quick={"variants": 1000}),
            grid(logs=NO_LOG, variants=15_000, way=LARGE, quick={"variants": 3000}, once=True),
        ],
        (
            *(CPU, WALL, PEAK, Column("gap", "gap", ".1e"), Column("value", "value", ".12g")),
            Column("CPU / plain POT", "cpu", baseline={"way": "pot"}),
        ),
        note=" ".join(f"{name}: {(way.__doc__ or name).rstrip('.')}." for name, way in MEASUREMENTS.items()),
        alone=True,
        page="results/performance.md",
    ),
    benchmark(
        "matching",
        "Optimal and greedy matchings of many traces.",
        matching,
        grid(logs=NO_LOG, traces=10_000, matching=("optimal", "greedy"), quick={"traces": 1000}),
        (Column("edit steps", "edit steps", ",.0f"), CPU, PEAK),
        runs=1,
        alone=True,
        page="results/pripel.md",
    ),
)
