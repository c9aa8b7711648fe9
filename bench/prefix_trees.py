"""How much of a noisy directly-follows relation the play-outs leave, and the similarity of what they make of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from veilog.experiments.experiment import Cell, Experiment, Given, Measured, Plan, Row, Table
from veilog.experiments.summary import Column, summary
from veilog.measures.similarity.measure import relative_log_similarity
from veilog.methods._relations.playout import balanced, play_out, play_out_guided
from veilog.methods.df_laplace import exact_relation


def cells(plan: Plan) -> Iterator[Cell]:
    for log in plan.logs:
        for run in range(plan.runs):
            for scale in (0, 1, 10, 100):
                for way in ("paper", "guided"):
                    yield Cell(log, "", (("noise scale", scale), ("play-out", way)), run)


def measure(given: Given, cell: Cell) -> Measured:
    variants, random = given.log.variants, np.random.default_rng([1, cell.run])
    relation = exact_relation(variants, variants.labels)
    noise = random.laplace(0, float(cell.get("noise scale")), relation.shape)
    noisy = np.maximum(np.rint(relation + noise), 0).astype(np.int64)
    noisy[-1, -1] = relation[-1, -1]
    guided = cell.get("play-out") == "guided"
    available = balanced(noisy) if guided else noisy
    played = (play_out_guided if guided else play_out)(variants.labels, available, random)
    left = 1 - exact_relation(played, variants.labels).sum() / available.sum()
    similar = relative_log_similarity(variants, played).value
    return Measured({"unused": float(left), "similarity": similar, "size_ratio": played.cases / variants.cases})


def tables(rows: Sequence[Row]) -> list[Table]:
    columns = (
        Column("unused", "unused", ".1%", "spread"),
        Column("similarity", "similarity", ".3f", "spread"),
        Column("traces", "size_ratio", ".2f", "spread"),
    )
    return [summary("Play-outs of a noisy relation", rows, ("log", "noise scale", "play-out"), columns)]


BENCHMARKS = (
    Experiment(
        name="prefix-tree-playouts",
        what="How much of a noisy relation the play-outs leave.",
        cells=cells,
        measure=measure,
        tables=tables,
        logs=("sepsis", "receipt"),
        quick_logs=("sepsis",),
        runs=5,
        page="results/prefix-trees.md",
    ),
)
