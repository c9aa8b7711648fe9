"""Train on the release, test on real cases: 70 % are released, the others judge.

*real* has learnt from the 70 % themselves. *majority* predicts the most frequent outcome among them. The *unprotected
baseline* has learnt from a bare list of their variants. A run is another split and another seed of the release.

The remaining time of a case is learnt from releases with times, whose window is the log's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import veilog
from benchmark import SMALL, asked, benchmark, grid
from columns import Column
from veilog.experiments.experiment import EMPTY, Cell, Given, Measured, make_release
from veilog.measures.use_cases import UseCaseOptions
from veilog.measures.use_cases.prediction import next_activity, predicted
from veilog.measures.use_cases.sides import TRAINING
from veilog.privacy.domain import ALL_FROM_LOG

METHODS = (
    ("evolve", {"epsilon": "1"}),
    ("laplace", {"epsilon": "1"}),
    ("travas", {"epsilon": "1", "delta": "1e-4"}),
    ("evolve", {"epsilon": "0.1"}),
    ("laplace", {"epsilon": "0.1"}),
    ("travas", {"epsilon": "0.1", "delta": "1e-4"}),
)


def measure(given: Given, cell: Cell) -> Measured:
    seen, unseen = given.split(TRAINING, cell.run)
    real, held_out = seen.log.variants, unseen.variants
    made = make_release(seen, cell).variants
    values = {
        "majority": next_activity(real, held_out, 1),
        "unprotected baseline": next_activity(real.with_counts(np.ones_like(real.counts)), held_out),
        **{f"{name}, real": number for name, number in predicted(real, held_out, UseCaseOptions()).items()},
        **{f"{name}, release": number for name, number in predicted(made, held_out, UseCaseOptions()).items()},
    }
    return Measured(values, None if made.cases else EMPTY)


def remaining(given: Given, cell: Cell) -> Measured:
    """Measure the error of the remaining time in hours, real against released.

    One model learns from the 70 %, the other from a release of them with times.
    """
    seen, held_out = given.split(TRAINING, cell.run)
    planned: dict[str, Any] = {"times": "0.4", "window": "log", "seed": cell.run, "domain": ALL_FROM_LOG}
    made = veilog.release(seen.log, cell.method, epsilon=str(cell.get("epsilon")), **planned).log
    real, release = (predicted(used, held_out, UseCaseOptions()) for used in (seen.log, made))
    values: dict[str, float | None] = {}
    for name, title in _TIMED.items():
        before, after = real[name], release[name]
        values |= {f"{title}, real": before, f"{title}, release": after}
        values[f"{title}, ratio"] = after / before if before and after is not None else None
    return Measured(values)


_TIMED = {"remaining_time": "n-gram", "remaining_time_trees": "trees"}
_SHOWN = {"next_activity": "n-gram", "next_activity_trees": "trees", "end_state": "end state"}
BENCHMARKS = (
    benchmark(
        "prediction",
        "Prediction for real cases, learnt from a release of others.",
        measure,
        asked(*METHODS),
        [
            *(Column(name, name, ".3f", "spread") for name in ("majority", "unprotected baseline")),
            *(
                Column(f"{title}, {side}", f"{name}, {side}", ".3f", "spread")
                for name, title in _SHOWN.items()
                for side in ("real", "release")
            ),
        ],
        logs=("sepsis", "receipt", "bpic2013_incidents"),
        runs=3,
        small=SMALL,
        note="Shares of the prefixes of held-out cases, mean ± standard deviation over splits: next activity by the "
        "n-gram and by the trees, end state by the n-gram.",
        page="measures/use-cases.md",
    ),
    benchmark(
        "remaining-time",
        "The remaining time of real cases, learnt from a release of others.",
        remaining,
        grid("evolve", epsilon=("1", "0.3")),
        [
            Column(f"{title}, {side}", f"{title}, {side}", style, "spread")
            for title in _TIMED.values()
            for side, style in (("real", ",.0f"), ("release", ",.0f"), ("ratio", ".2f"))
        ],
        logs=("sepsis", "bpic2013_incidents", "traffic_fines"),
        small=SMALL,
        note="Mean error in hours over the prefixes of held-out cases, mean ± standard deviation over splits; ratio: "
        "release over real. 0.4 of epsilon is for times.",
        page="measures/use-cases.md",
    ),
)
