"""How often a suggestion picks which method on each public log, and what the pick costs in similarity.

What evolve (without a delta, with one, and only real variants) and TraVaS reach is that of the frontier (the whole
budget, delta 1e-4), so that a pick can be held against all: the loss is the best mean of the four minus the pick's.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence

from benchmark import grid
from veilog.experiments.experiment import Cell, Experiment, Given, Measured, Row, Table
from veilog.experiments.frontier import EPSILONS
from veilog.experiments.summary import grouped
from veilog.methods.measured import measured
from veilog.releasing.suggest import suggest

DELTA = "1e-4"
PICKS = {
    "evolve": "evolve",
    "evolve, delta": f"evolve, delta {DELTA}",
    "only real, delta": f"evolve, only real, delta {DELTA}",
    "travas": f"travas, delta {DELTA}",
}
"""The picks, and what the frontier calls them."""


def reached(pick: str, log: str, epsilon: str) -> float:
    return measured().similarity[PICKS[pick]][log][epsilon]


def measure(given: Given, cell: Cell) -> Measured:
    found = suggest(given.log.variants, epsilon=str(cell.get("epsilon")), delta=DELTA, seed=cell.run)
    pick = f"{found.method}, delta" if found.method == "evolve" and found.delta_left else found.method
    return Measured({}, texts={"pick": pick})


def tables(rows: Sequence[Row]) -> list[Table]:
    lines, losses = [], {name: [] for name in ("picked", *PICKS)}
    for (log, epsilon), own in grouped(rows, ("log", "epsilon")).items():
        values = {pick: reached(pick, log, epsilon) for pick in PICKS}
        picks = [row.texts["pick"] for row in own]
        often = ", ".join(f"{pick} {n / len(own):.0%}" for pick, n in Counter(picks).most_common())
        losses["picked"].append(max(values.values()) - statistics.fmean(values[pick] for pick in picks))
        for pick, value in values.items():
            losses[pick].append(max(values.values()) - value)
        means = (f"{value:.3f}" for value in values.values())
        lines.append((log, epsilon, *means, often, f"{losses['picked'][-1]:.3f}"))
    if not lines:
        return []
    mean = {name: statistics.fmean(values) for name, values in losses.items()}
    note = f"Mean loss {mean['picked']:.3f}; always " + ", always ".join(f"{p} {mean[p]:.3f}" for p in PICKS) + "."
    return [Table("Suggestions", ("log", "epsilon", *PICKS, "suggested", "loss"), tuple(lines), note)]


BENCHMARKS = (
    Experiment(
        name="suggest",
        what="Which method a suggestion picks on public logs, and what the pick loses.",
        cells=grid(epsilon=EPSILONS),
        measure=measure,
        tables=tables,
        logs=("sepsis", "receipt", "bpic2013_incidents", "traffic_fines", "unrineweginfectie"),
        quick_logs=("sepsis",),
        runs=20,
        quick_runs=5,
        page="suggest.md",
    ),
)
