"""How long releases take, each against a named baseline in the same process, and how that grows with the log.

What is timed starts from a log in memory. Where pm4py is in another environment, ``--set pm4py=PYTHON`` names it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from timing import cpu_of
from veilog.experiments.experiment import Cell, Experiment, Given, Measured, Plan, Row, Table
from veilog.experiments.papers.sacofa_figures import TABLE_4
from veilog.experiments.summary import Column, summary
from veilog.logs.eventlog import EventLog
from veilog.logs.simulate import hospital
from veilog.methods._relations.playout import play_out, play_out_guided
from veilog.methods.df_laplace import exact_relation
from veilog.privacy.domain import ALL_FROM_LOG
from veilog.releasing.run import release
from veilog.releasing.suggest import suggest

Work = Callable[[], object]
LOGS = ("sepsis", "receipt", "bpic2013_incidents")
TREES = ("laplace", "sacofa", "df-laplace", "sapa")
DELTA = "1e-4"
BASELINES = {
    "pripel": "its query, evolve, on the whole log",
    "libra": "its query, evolve, on the whole log",
    "suggest": "one release by TraVaS",
    "travas": "drawing its random words from the operating system",
    "amun": "grouping the log's cases into variants",
}
REPEATS = {"suggest": 5, "travas": 20}
"""Of what takes milliseconds."""


def works(what: str, log: EventLog, seed: int) -> tuple[Work, Work]:
    """What is timed, and its baseline."""
    certified = partial(release, domain=ALL_FROM_LOG, epsilon=1)
    variants = log.variants
    if what == "suggest":
        again = partial(certified, variants, "travas", delta=DELTA)
        return partial(suggest, variants, epsilon=1, delta=DELTA), again
    if what == "travas":
        words = 4 * len(variants) * 12
        return (
            partial(release, variants, "travas", epsilon="0.1", delta="0.001"),
            lambda: np.frombuffer(os.urandom(words), dtype=np.uint32).sum(),
        )
    if what == "amun":
        return partial(release, log, "amun", as_published=True, seed=seed), partial(log.variants_by, ("concept:name",))
    return lambda: certified(log, what, seed=seed).log, partial(certified, variants, "evolve", seed=seed)


def cells(plan: Plan) -> Iterator[Cell]:
    for log in plan.logs:
        for run in range(plan.runs):
            for what in BASELINES:
                yield Cell(log, "" if what == "suggest" else what, (("what", what),), run)


def measure(given: Given, cell: Cell) -> Measured:
    what = str(cell.get("what"))
    work, baseline = works(what, given.log, cell.run)
    repeats = REPEATS.get(what, 1)
    return Measured({"ms": 1000 * cpu_of(work, repeats), "baseline": 1000 * cpu_of(baseline, repeats)})


def tables(rows: Sequence[Row]) -> list[Table]:
    columns = (
        Column("CPU ms", "ms", ",.1f"),
        Column("baseline, CPU ms", "baseline", ",.2f"),
        Column("times the baseline", "ms", ".1f", over="baseline"),
    )
    note = "Medians. Baselines: " + "; ".join(f"of {what}, {base}" for what, base in BASELINES.items()) + "."
    return [summary("Against a baseline", rows, ("log", "what"), columns, note)]


THEIRS = """
import json, statistics, sys, time, warnings
warnings.simplefilter("ignore")
import pm4py
from pm4py.algo.anonymization.trace_variant_query.variants import sacofa
path, epsilon, depth, harmful = sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
log = pm4py.convert_to_event_log(pm4py.read_xes(path))
started = time.process_time()
sacofa.apply(log, {"epsilon": epsilon, "k": depth, "p": harmful, "show_progress_bar": False})
print(json.dumps(time.process_time() - started))
"""


def sacofa_cells(plan: Plan) -> Iterator[Cell]:
    for log in plan.logs:
        for run in range(plan.runs):
            for epsilon, (depth, harmful, _) in zip(("1", "0.1", "0.01"), TABLE_4[log], strict=True):
                given = (("epsilon", epsilon), ("depth", depth), ("threshold_harmful", harmful))
                for who in ("pm4py", "veilog"):
                    python = (("python", plan.options.get("pm4py", "")),) if who == "pm4py" else ()
                    yield Cell(log, "sacofa", (*given, ("who", who), *python), run)
                if plan.quick:
                    break


def sacofa(given: Given, cell: Cell) -> Measured:
    """From an event log in memory to the released log, as published."""
    epsilon, depth, harmful = (cell.get(name) for name in ("epsilon", "depth", "threshold_harmful"))
    if cell.get("who") == "pm4py":
        command = [str(cell.get("python")) or sys.executable, "-c", THEIRS, str(given.file)]
        done = subprocess.run([*command, str(epsilon), str(depth), str(harmful)], capture_output=True, text=True)
        if done.returncode:
            return Measured({}, f"pm4py failed: {done.stderr.strip().splitlines()[-1]}")
        return Measured({"cpu": float(json.loads(done.stdout.splitlines()[-1]))})
    log = given.log

    def ours() -> object:
        variants = log.variants_by(("concept:name",))
        settings = {"epsilon": epsilon, "depth": depth, "threshold_harmful": harmful}
        return release(variants, "sacofa", as_published=True, **settings).log

    return Measured({"cpu": cpu_of(ours)})


def sacofa_tables(rows: Sequence[Row]) -> list[Table]:
    columns = (Column("CPU s", "cpu", ".3f"), Column("times veilog", "cpu", ".0f", baseline={"who": "veilog"}))
    return [summary("SaCoFa as published", rows, ("log", "epsilon", "depth", "threshold_harmful", "who"), columns)]


def growth_cells(plan: Plan) -> Iterator[Cell]:
    for cases in (1_000, 10_000) if plan.quick else (1_000, 10_000, 100_000, 1_000_000):
        for run in range(plan.runs):
            for method in TREES:
                yield Cell("", method, (("cases", cases),), run)


def growth(given: Given, cell: Cell) -> Measured:
    """A certified release of a simulated log at epsilon 1, and finding its variants."""
    log = hospital(int(cell.get("cases")), seed=1)
    variants = log.variants
    finding = cpu_of(partial(log.variants_by, ("concept:name",)))
    taken = cpu_of(partial(release, variants, cell.method, epsilon=1))
    return Measured({"cpu": taken, "finding": finding, "variants": len(variants)})


def growth_tables(rows: Sequence[Row]) -> list[Table]:
    columns = (
        Column("variants", "variants", ",.0f"),
        Column("CPU s", "cpu", ".3f"),
        Column("times the smallest", "cpu", ".1f", baseline={"cases": "1000"}),
        Column("of finding variants", "cpu", ".2f", over="finding"),
    )
    return [summary("Growth, certified, epsilon 1", rows, ("method", "cases"), columns)]


def play_cells(plan: Plan) -> Iterator[Cell]:
    for log in plan.logs:
        for run in range(plan.runs):
            for way in ("paper", "guided"):
                yield Cell(log, "", (("play-out", way),), run)


def play(given: Given, cell: Cell) -> Measured:
    variants = given.log.variants
    relation = exact_relation(variants, variants.labels)
    way = play_out if cell.get("play-out") == "paper" else play_out_guided
    taken = cpu_of(lambda: way(variants.labels, relation, np.random.default_rng(1)))
    return Measured({"traces": variants.cases / taken, "steps": float(relation.sum()) / taken})


def play_tables(rows: Sequence[Row]) -> list[Table]:
    columns = (Column("traces a second", "traces", ",.0f"), Column("steps a second", "steps", ",.0f"))
    return [summary("Play-out", rows, ("log", "play-out"), columns)]


BENCHMARKS = (
    Experiment(
        name="speed",
        what="Releases and suggestions against named baselines.",
        cells=cells,
        measure=measure,
        tables=tables,
        logs=LOGS,
        quick_logs=("sepsis",),
        runs=5,
        page="results/benchmarks.md",
    ),
    Experiment(
        name="speed-sacofa",
        what="SaCoFa as published against pm4py's, at the settings of Table 4.",
        cells=sacofa_cells,
        measure=sacofa,
        tables=sacofa_tables,
        logs=("sepsis", "receipt"),
        quick_logs=("sepsis",),
        runs=5,
        page="results/prefix-trees.md",
    ),
    Experiment(
        name="speed-growth",
        what="Prefix trees and play-outs of simulated logs that grow.",
        cells=growth_cells,
        measure=growth,
        tables=growth_tables,
        runs=3,
        page="results/prefix-trees.md",
    ),
    Experiment(
        name="speed-playout",
        what="Play-outs of an exact relation.",
        cells=play_cells,
        measure=play,
        tables=play_tables,
        logs=("traffic_fines",),
        quick_logs=("traffic_fines",),
        runs=3,
        page="results/prefix-trees.md",
    ),
)
