"""evolve: one constant changed at a time, wide simulated logs, time at large size.

The time of the large log is also in passes. One pass of all variants over 1000 prototypes, the most of a round
(Levenshtein distances), is the work that no implementation by votes can avoid. Similarities and seconds of every log
are those of the frontier.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Literal

import numpy as np

import veilog
from benchmark import CPU, NO_LOG, PEAK, SIMILARITY, WALL, benchmark, grid
from columns import Column
from timing import timed
from veilog.experiments.experiment import Cell, Given, Measured
from veilog.logs.synthetic.hospital import variants_only
from veilog.logs.variants import Variants
from veilog.measures.process_model import model_quality
from veilog.measures.similarity import relative_log_similarity
from veilog.measures.similarity.distances import as_strings, edit_distances
from veilog.methods.evolve import EvolveSettings, evolve
from veilog.methods.evolve.constants import DEFAULTS, Constants
from veilog.methods.method import Request
from veilog.privacy.curator import Curator
from veilog.privacy.domain import ALL_FROM_LOG, Domain
from veilog.privacy.mechanisms import noise

FIRST_SEED = 800
"""First seed, so that the runs differ from those that found the constants."""
Aims = Literal["similarity", "models", "detail"]
WIDE = ((400, 1200, 43), (600, 1100, 130))


def _flat(share: float) -> Constants:
    return replace(DEFAULTS, relations=((4.0, share), (100.0, share)))


BY_SIZE_ALONE = replace(DEFAULTS, relations=((150.0, 0.70), (700.0, 0.35)), relations_exponent=0.0)
"""Constants by which the share of the relations falls with g, whatever the number of activities."""

CONSTANTS: dict[str, Constants] = {
    "as it is": DEFAULTS,
    "share by g alone": BY_SIZE_ALONE,
    "cases from the count alone": replace(DEFAULTS, estimate_cases=False),
    "none of these": replace(
        BY_SIZE_ALONE,
        release_factor=1.0,
        smallest_release=0.5,
        theta=0.45,
        pool=10_000,
        triple_shares=(),
        estimate_cases=False,
    ),
    "relations 0.2 everywhere": _flat(0.2),
    "relations 0.35 everywhere": _flat(0.35),
    "relations 0.7 everywhere": _flat(0.7),
    "as many released as voted for": replace(DEFAULTS, release_factor=1.0),
    "small released variants dropped": replace(DEFAULTS, smallest_release=0.5),
    "theta 0.45": replace(DEFAULTS, theta=0.45),
    "theta 1.2": replace(DEFAULTS, theta=1.2),
    "no triples": replace(DEFAULTS, triple_shares=()),
    "half the pool": replace(DEFAULTS, pool=10_000),
    "twice the pool": replace(DEFAULTS, pool=40_000),
    "three times fewer prototypes": replace(DEFAULTS, votes_for_prototype=3.6),
    "half as many again": replace(DEFAULTS, votes_for_prototype=0.8),
    "rounds cost the same": replace(DEFAULTS, growth=1.0),
    "nothing drawn again": replace(DEFAULTS, resampled=0.05),
    "weaker prior": replace(DEFAULTS, prior_cases=(2.0, 60.0, 3000.0)),
    "stronger prior": replace(DEFAULTS, prior_cases=(10.0, 12.0, 3000.0)),
    "twice as much for the count": replace(DEFAULTS, count_share=0.06),
    "contribution 3": replace(DEFAULTS, contribution=3),
    "contribution 10": replace(DEFAULTS, contribution=10),
    "traces of 20 at most": replace(DEFAULTS, max_length=20),
}


STAGES = {
    "with the wide stage": DEFAULTS,
    "without the linear program where few relations stand out": replace(DEFAULTS, covered_from=0.0),
    "without it": Constants(wide_from=10**9),
    "also without a share by the number of activities": Constants(
        wide_from=10**9, relations=((150.0, 0.70), (700.0, 0.35)), relations_exponent=0.0
    ),
}


def release(
    log: Variants, epsilon: str, seed: int, settings: Constants = DEFAULTS, aim: Aims = "similarity"
) -> Variants:
    """Return a seeded release with other constants than the default ones."""
    curator = Curator(log, domain=ALL_FROM_LOG, randomness=noise.seeded(seed))
    request = Request(Fraction(epsilon), Fraction(0), False, lambda text, done: None, lambda a, b: 0.0)
    chosen = EvolveSettings(for_=aim, largest_log=settings.largest_log, max_length=settings.max_length)
    return evolve(curator, request, chosen, settings)


def similarity(log: Variants, epsilon: str, seed: int, settings: Constants) -> Measured:
    made = release(log, epsilon, seed, settings)
    return Measured({"similarity": relative_log_similarity(log, made).value if made.cases else 0.0})


def constants(given: Given, cell: Cell) -> Measured:
    changed = CONSTANTS[str(cell.get("changed"))]
    return similarity(given.log.variants, str(cell.get("epsilon")), FIRST_SEED + cell.run, changed)


def aimed(given: Given, cell: Cell) -> Measured:
    """Measure similarity, and the model from the release on the log; seeds 1, 2, ..."""
    log = given.log.variants
    public = Domain().taken_from_log(["activities", "max_length"])
    budget = {"epsilon": str(cell.get("epsilon"))} | ({"delta": "1e-4"} if cell.get("delta") else {})
    own = {"for": cell.get("for")}
    costs, made = timed(
        lambda: (
            veilog.release(
                log, "evolve", domain=public, allow_no_protection=True, seed=1 + cell.run, **budget, **own
            ).variants
        )
    )
    model = model_quality(log, made)
    return Measured(
        {
            "similarity": relative_log_similarity(log, made).value,
            "f": model.f_score or 0.0,
            "fitness": model.fitness or 0.0,
            "precision": model.precision or 0.0,
            "cpu": costs["cpu"],
        }
    )


def skewed(cases: int, activities: int, mean_length: int, seed: int) -> Variants:
    """Return a wide log whose activities are as unequal as real ones.

    Rank r has weight 1 / (r + 1), some successors of each activity are likely, and cases take a few of many ways.
    """
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
    """Return exactly ``cases`` cases of about ``distinct`` variants.

    They have 40 activities, and 11 events on average.
    """
    variants = variants_only(int(distinct * 1.75), 40, 10.0, seed=seed)
    counts = variants.counts
    rest = np.random.default_rng(seed).multinomial(cases - variants.cases, counts / variants.cases)
    return variants.with_counts(counts + rest)


def wide(given: Given, cell: Cell) -> Measured:
    ((activities, cases, length),) = (shape for shape in WIDE if shape[0] == cell.get("activities"))
    if cell.log == "skewed":
        log = skewed(cases, activities, length, seed=1)
    else:
        log = variants_only(cases, activities, length, seed=1)
    return similarity(log, str(cell.get("epsilon")), cell.run, STAGES[str(cell.get("settings"))])


def large_release(given: Given, cell: Cell) -> Measured:
    cases = int(cell.get("cases"))
    log = large(cases, cases // 5, 1)
    costs, made = timed(lambda: release(log, str(cell.get("epsilon")), cell.run))
    rows, columns = as_strings(log.sequences, log.sequences.rows(0, min(1000, len(log))))
    one_pass, _ = timed(lambda: edit_distances(rows, columns, keep_bytes=4 << 30))
    return Measured(costs | {"pass": one_pass["wall"], "variants": len(log), "released": made.cases})


BENCHMARKS = (
    benchmark(
        "evolve",
        "evolve's time on a large simulated log.",
        large_release,
        grid("evolve", logs=NO_LOG, cases=1_000_000, epsilon=("1", "0.1"), quick={"cases": 100_000}),
        (Column("variants", "variants", ",.0f"), WALL, CPU, PEAK, Column("passes", "wall", ".1f", over="pass")),
        runs=3,
        alone=True,
        page="results/evolve.md",
    ),
    benchmark(
        "evolve-wide",
        "evolve on simulated logs of many activities, with and without what serves them.",
        wide,
        grid(
            "evolve",
            logs=("variants_only", "skewed"),
            activities=(400, 600),
            epsilon=("1", "3"),
            settings=tuple(STAGES),
            quick={"activities": 400, "epsilon": "1"},
        ),
        (SIMILARITY,),
        over="settings",
        page="results/evolve.md",
    ),
    benchmark(
        "evolve-for",
        "What evolve's releases are for: similarity, models discovered from them, or all detail.",
        aimed,
        grid(
            "evolve",
            epsilon=("1", "0.1"),
            delta=(0, 1),
            quick={"epsilon": "1", "delta": 0},
            **{"for": ("detail", "similarity", "models")},
        ),
        (
            SIMILARITY,
            *(Column(name, key, ".2f", "spread") for name, key in (("F", "f"), ("fitness", "fitness"))),
            Column("precision", "precision", ".2f", "spread"),
            CPU,
        ),
        runs=6,
        page="results/evolve.md",
    ),
    benchmark(
        "evolve-constants",
        "evolve with one constant changed at a time, on the logs the constants were found on.",
        constants,
        grid("evolve", epsilon=("1", "0.1", "0.01"), changed=tuple(CONSTANTS), quick={"changed": tuple(CONSTANTS)[:2]}),
        (SIMILARITY,),
        over="epsilon",
        logs=("sepsis", "receipt", "bpic2013_incidents"),
        runs=8,
        page="results/evolve.md",
    ),
)
