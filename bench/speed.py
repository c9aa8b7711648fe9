"""Time of releases, each against a named baseline in one process, by log size.

The timed work starts from a log in memory. If pm4py is in another environment, ``--set pm4py=PYTHON`` names it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from benchmark import benchmark, grid
from columns import Column
from timing import cpu_of
from veilog.experiments import EXPERIMENTS
from veilog.experiments.experiment import Cell, Given, Measured, Profile
from veilog.logs.eventlog import EventLog
from veilog.logs.synthetic.hospital import hospital
from veilog.measures.similarity.measure import relative_log_similarity
from veilog.methods._relations import balance, play_out, play_out_guided
from veilog.methods.df_laplace import exact_relation
from veilog.privacy.domain import ALL_FROM_LOG
from veilog.releasing.run import release
from veilog.releasing.suggest import suggest

Work = Callable[[], object]
LOGS = ("sepsis", "receipt", "bpic2013_incidents")
DELTA = "1e-4"
BASELINES = {
    "pripel": "its query, evolve, on the whole log",
    "libra": "its query, evolve, on the whole log",
    "suggest": "one release by TraVaS",
    "travas": "drawing its random words from the operating system",
    "amun": "grouping the log's cases into variants",
}
REPEATS = {"suggest": 5, "travas": 20}
"""Repeats of work that takes milliseconds."""


def works(what: str, log: EventLog, seed: int) -> tuple[Work, Work]:
    """Return the timed work and its baseline."""
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


def measure(given: Given, cell: Cell) -> Measured:
    what = str(cell.get("what"))
    work, baseline = works(what, given.log, cell.run)
    repeats = REPEATS.get(what, 1)
    return Measured({"ms": 1000 * cpu_of(work, repeats), "baseline": 1000 * cpu_of(baseline, repeats)})


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


def sacofa(given: Given, cell: Cell) -> Measured:
    """Time the way from an event log in memory to the released log, as published."""
    epsilon, depth, harmful = (cell.get(name) for name in ("epsilon", "depth", "threshold_harmful"))
    if cell.get("who") == "pm4py":
        command = [str(cell.get("python")) or sys.executable, "-c", THEIRS, str(given.file)]
        done = subprocess.run(
            [*command, str(epsilon), str(depth), str(harmful)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            return Measured({}, f"pm4py failed: {done.stderr.strip().splitlines()[-1]}")
        return Measured({"cpu": float(json.loads(done.stdout.splitlines()[-1]))})
    log = given.log

    def ours() -> object:
        variants = log.variants_by(("concept:name",))
        settings = {"epsilon": epsilon, "depth": depth, "threshold_harmful": harmful}
        return release(variants, "sacofa", as_published=True, **settings).log

    return Measured({"cpu": cpu_of(ours)})


def growth(given: Given, cell: Cell) -> Measured:
    """Time a certified release of a simulated log, and finding the log's variants."""
    log = hospital(int(cell.get("cases")), seed=1)
    variants = log.variants
    finding = cpu_of(partial(log.variants_by, ("concept:name",)))
    taken = cpu_of(partial(release, variants, cell.method, domain=ALL_FROM_LOG, epsilon=1))
    return Measured({"cpu": taken, "finding": finding, "variants": len(variants)})


def play(given: Given, cell: Cell) -> Measured:
    variants = given.log.variants
    relation = exact_relation(variants, variants.labels)
    way = play_out if cell.get("play") == "paper" else play_out_guided
    taken = cpu_of(lambda: way(variants.labels, relation, np.random.default_rng(1)))
    return Measured({"traces": variants.cases / taken, "steps": float(relation.sum()) / taken})


def noisy_play(given: Given, cell: Cell) -> Measured:
    """Measure the unused share of a noisy relation, and its play-out's similarity."""
    variants, random = given.log.variants, np.random.default_rng([1, cell.run])
    relation = exact_relation(variants, variants.labels)
    noise = random.laplace(0, float(cell.get("scale")), relation.shape)
    noisy = np.maximum(np.rint(relation + noise), 0).astype(np.int64)
    noisy[-1, -1] = relation[-1, -1]
    guided = cell.get("play") == "guided"
    available = balance(noisy) if guided else noisy
    played = (play_out_guided if guided else play_out)(variants.labels, available, random)
    left = 1 - exact_relation(played, variants.labels).sum() / available.sum()
    similar = relative_log_similarity(variants, played).value
    return Measured({"unused": float(left), "similarity": similar, "size_ratio": played.cases / variants.cases})


def sacofa_cells(profile: Profile) -> Iterator[Cell]:
    for log in profile.logs:
        once = replace(profile, logs=(log,), runs=1, quick=False)
        for cell in (found for found in EXPERIMENTS["sacofa-figures"].cells(once) if found.method == "sacofa"):
            given = {name: cell.get(name) for name in ("epsilon", "depth", "threshold_harmful")}
            yield from grid("sacofa", logs=(log,), **given, who="pm4py", python=profile.options.get("pm4py", ""))(
                profile
            )
            yield from grid("sacofa", logs=(log,), **given, who="veilog")(profile)


_PLAYS = {"play": ("paper", "guided")}
_SIZES = (1_000, 10_000, 100_000, 1_000_000)
BENCHMARKS = (
    benchmark(
        "speed",
        "Releases and suggestions against named baselines.",
        measure,
        [grid("" if what == "suggest" else what, what=what) for what in BASELINES],
        (
            *(Column("CPU ms", "ms", ",.1f"), Column("baseline, CPU ms", "baseline", ",.2f")),
            Column("times the baseline", "ms", ".1f", over="baseline"),
        ),
        note="Medians. Baselines: " + "; ".join(f"of {what}, {base}" for what, base in BASELINES.items()) + ".",
        logs=LOGS,
        page="results/performance.md",
    ),
    benchmark(
        "speed-sacofa",
        "SaCoFa as published against pm4py's, at the settings of Table 4.",
        sacofa,
        sacofa_cells,
        (Column("CPU s", "cpu", ".3f"), Column("times veilog", "cpu", ".0f", baseline={"who": "veilog", "python": ""})),
        logs=("sepsis", "receipt"),
        page="results/prefix-trees.md",
    ),
    benchmark(
        "speed-growth",
        "Prefix trees and play-outs of simulated logs that grow, certified, epsilon 1.",
        growth,
        grid("laplace,sacofa,df-laplace,sapa", logs=("",), cases=_SIZES, quick={"cases": _SIZES[:2]}),
        (
            *(Column("variants", "variants", ",.0f"), Column("CPU s", "cpu", ".3f")),
            Column("times the smallest", "cpu", ".1f", baseline={"cases": "1000"}),
            Column("of finding variants", "cpu", ".2f", over="finding"),
        ),
        runs=3,
        page="results/prefix-trees.md",
    ),
    benchmark(
        "speed-playout",
        "Play-outs of an exact relation.",
        play,
        grid(**_PLAYS),
        (Column("traces a second", "traces", ",.0f"), Column("steps a second", "steps", ",.0f")),
        logs=("traffic_fines",),
        runs=3,
        page="results/prefix-trees.md",
    ),
    benchmark(
        "prefix-tree-playouts",
        "How much of a noisy relation the play-outs leave, and what they make of it.",
        noisy_play,
        grid(scale=(0, 1, 10, 100), **_PLAYS, quick={"scale": (0, 10)}),
        (
            Column("unused", "unused", ".1%", "spread"),
            Column("similarity", "similarity", ".3f", "spread"),
            Column("traces", "size_ratio", ".2f", "spread"),
        ),
        logs=("sepsis", "receipt"),
        page="results/prefix-trees.md",
    ),
)
