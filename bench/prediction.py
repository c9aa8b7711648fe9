"""Train on the release, test on real cases: the release is made of 70 % of the cases and judged on the others.

*real* has learnt from the 70 % themselves, *majority* predicts what is most frequent among them, and *leak line* has
learnt from a bare list of their variants. A run is another split and another seed of the release.
"""

from __future__ import annotations

import numpy as np

from benchmark import asked, benchmark
from veilog.experiments.experiment import Cell, Given, Measured
from veilog.experiments.measuring import EMPTY, released
from veilog.experiments.summary import Column
from veilog.measures.purposes import Asked
from veilog.measures.purposes.prediction import next_activity, predicted
from veilog.measures.purposes.sides import TRAINING

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
    made = released(seen, cell).variants
    values = {
        "majority": next_activity(real, held_out, 1),
        "leak line": next_activity(real.with_counts(np.ones_like(real.counts)), held_out),
        **{f"{name}, real": number for name, number in predicted(real, held_out, Asked()).items()},
        **{f"{name}, release": number for name, number in predicted(made, held_out, Asked()).items()},
    }
    return Measured(values, None if made.cases else EMPTY)


_SHOWN = {"next_activity": "n-gram", "next_activity_trees": "trees", "end_state": "end state"}
BENCHMARKS = (
    benchmark(
        "prediction",
        "Prediction for real cases, learnt from a release of others.",
        measure,
        asked(*METHODS),
        [
            *(Column(name, name, ".3f", "spread") for name in ("majority", "leak line")),
            *(
                Column(f"{title}, {side}", f"{name}, {side}", ".3f", "spread")
                for name, title in _SHOWN.items()
                for side in ("real", "release")
            ),
        ],
        logs=("sepsis", "receipt", "bpic2013_incidents"),
        runs=3,
        note="Shares of the prefixes of held-out cases, mean ± standard deviation over splits: next activity by the "
        "n-gram and by the trees, end state by the n-gram.",
        page="measures/purposes.md",
    ),
)
