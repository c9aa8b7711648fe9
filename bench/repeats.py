"""Repeated activities in cases of evolve, where its budget does not query them."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import replace

from benchmark import grid
from columns import grouped
from evolve import release
from shapes import Shape
from timing import timed
from veilog.experiments.experiment import Cell, Experiment, Given, Measured, Row, Table, mean, spread
from veilog.logs.variants import Variants
from veilog.measures.similarity import relative_log_similarity
from veilog.methods.evolve.constants import DEFAULTS, Constants

AGAIN = tuple(
    Shape(family, *size)
    for family, sizes in {
        "once": ((6, 800, 4), (14, 2000, 9), (25, 4000, 12), (9, 20_000, 6), (45, 3000, 12)),
        "chain": ((10, 2500, 8), (7, 400, 5), (30, 4000, 12)),
        "second": ((14, 3000, 10), (8, 700, 6)),
        "classes": ((10, 2000, 8), (20, 5000, 12)),
        "blocks": ((12, 2000, 10), (30, 3000, 12), (20, 1200, 40)),
        "tails": ((14, 3000, 10), (8, 20_000, 5)),
        "loops": ((3, 900, 20),),
    }.items()
    for size in sizes
)
DOUBTS: dict[str, Constants] = {"as it is": DEFAULTS, "as the chain has it": replace(DEFAULTS, least_doubt=1.0)}


def again(given: Given, cell: Cell) -> Measured:
    """Measure similarity, and the share of cases with a repeated activity, unqueried."""
    (shape,) = (shape for shape in AGAIN if shape.name == cell.log)
    log = shape.log()
    epsilon = f"{float(cell.get('size')) / shape.cases:.6g}"
    costs, made = timed(lambda: release(log, epsilon, cell.run, DOUBTS[str(cell.get("choice"))]))
    found = {"similarity": relative_log_similarity(log, made).value, "cpu": costs["cpu"]}
    return Measured(found | {"again": _repeating(made), "really": _repeating(log)})


def _repeating(log: Variants) -> float:
    """Return the share of the cases in which an activity comes again."""
    repeating = [len(set(sequence)) < len(sequence) for sequence in log.sequences]
    return float(log.counts[repeating].sum() / log.cases)


def doubts(rows: Sequence[Row]) -> list[Table]:
    lines, gained = [], []
    for (log, size), own in grouped(rows, ("log", "size")).items():
        by = {choice: found for (choice,), found in grouped(own, ("choice",)).items()}
        shown = [
            f"{spread(by[choice], 'similarity', '.3f')}, {mean(by[choice], 'again') or 0:.2f}" if choice in by else "-"
            for choice in DOUBTS
        ]
        lines.append((log, size, f"{mean(own, 'really') or 0:.2f}", *shown))
        now, before = (mean(by.get(choice, []), "similarity") for choice in DOUBTS)
        gained += [now - before] if now is not None and before is not None else []
    note = "Similarity, and the part of the cases in which an activity comes again."
    if gained:
        note += f" On average {statistics.fmean(gained):+.4f} of similarity."
    header = ("log", "epsilon times cases", "in the log", *DOUBTS)
    return [Table("Whether activities come again, where that is not asked", header, tuple(lines), note)]


BENCHMARKS = (
    Experiment(
        name="evolve-again",
        what="evolve where it does not ask whether activities come again, on simulated logs.",
        cells=grid(
            "evolve",
            logs=tuple(shape.name for shape in AGAIN),
            epsilon=("1",),
            size=(60, 200),
            choice=tuple(DOUBTS),
            quick={"size": (60,), "choice": tuple(DOUBTS)[:1]},
        ),
        measure=again,
        tables=doubts,
        runs=8,
        quick_runs=1,
        page="results/evolve.md",
    ),
)
