"""Drawing from a model: seconds for 100,000 cases, and time and memory of many.

The networks have the method's default sizes, over as many variants as Sepsis (846) and BPIC13 (1511) have. Their
weights are random, which does not change the time. The baseline that no network can reach is numpy's own draw from the
same shares.

``samples`` draws from the models of releases. It measures the similarity of a release and its samples to the original
and to each other. It also measures the error of their durations, and the time of 100,000 cases.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import veilog
from benchmark import CPU, NO_LOG, PEAK, SMALL, WALL, benchmark, grid
from columns import Column
from timing import cpu_of, timed
from veilog.experiments.experiment import EMPTY, Cell, Given, Measured
from veilog.logs.eventlog import EventLog
from veilog.logs.synthetic.hospital import hospital
from veilog.logs.variants import Sequences, Variants
from veilog.measures.durations import case_durations, spans
from veilog.measures.similarity import relative_log_similarity
from veilog.methods.travag.networks import initial
from veilog.methods.travag.settings import CERTIFIED, Networks, Trained
from veilog.privacy.curator import Curator
from veilog.training import Model

LENGTH = 15
ACTIVITIES = 16


def columns(number: int) -> Sequences:
    rng = np.random.default_rng(1)
    codes = rng.integers(0, ACTIVITIES, size=(number, LENGTH)).astype(np.int32).reshape(-1)
    return Sequences(tuple(f"activity {c:02d}" for c in range(ACTIVITIES)), codes, np.arange(number + 1) * LENGTH)


def model(number: int) -> Model:
    networks = Networks.of(number, CERTIFIED)
    rng = np.random.default_rng(1)
    weights = {**initial(networks.generator, rng), **initial(networks.decoder, rng)}
    curator = Curator(Variants.from_dict({("a",): 1}))
    curator.partitions(1, "1e-6")
    return Model("travag", False, {}, Trained(columns(number), weights, CERTIFIED, 1000), curator.guarantee())


def measure(given: Given, cell: Cell) -> Measured:
    number, cases = int(cell.get("variants")), int(cell.get("cases"))
    trained = model(number)
    if cell.get("to") == "draw":
        trained.sample(1000, seed=1)
        costs, _ = timed(lambda: trained.sample(cases, seed=1))
        shares = np.full(number, 1 / number)
        return Measured(
            costs | {"multinomial": cpu_of(lambda: np.random.default_rng(1).multinomial(cases, shares), 20)}
        )
    target = given.folder / f"out{cell.get('to')}"
    costs, _ = timed(lambda: trained.write(target, cases, seed=1, overwrite=True))
    size = target.stat().st_size / 1e6
    target.unlink()
    return Measured(costs | {"size": size})


def samples(given: Given, cell: Cell) -> Measured:
    log = given.log if cell.log else hospital(3_000, seed=7)
    asked: dict[str, Any] = {"activities": "log", "times": "0.3", "window": "log", "ledger": False}
    made, other = (
        veilog.release(log, "evolve", epsilon=str(cell.get("epsilon")), seed=seed, **asked)
        for seed in (cell.run, cell.run + 1_000)
    )
    if not made.variants.cases:
        return Measured({}, EMPTY)
    first, second = (made.sample(seed=seed) for seed in (1, 2))
    costs, _ = timed(lambda: made.model.release(100_000, seed=3))

    def similar(one: Variants, another: Variants) -> float:
        return relative_log_similarity(one, another).value

    def off(one: EventLog) -> float | None:
        return case_durations(spans(log), spans(one)).emd

    return Measured(
        costs
        | {
            "release": similar(log.variants, made.variants),
            "sample": similar(log.variants, first.variants),
            "two samples": similar(first.variants, second.variants),
            "two releases": similar(made.variants, other.variants),
            "release, kinds": len(made.variants) / made.variants.cases,
            "sample, kinds": len(first.variants) / first.variants.cases,
            "release, off": off(made.log),
            "sample, off": off(first),
        }
    )


def _spread(title: str, form: str = ".3f") -> Column:
    return Column(title, title, form, "spread")


_SUFFIXES = (".parquet", ".csv", ".xes.gz")
BENCHMARKS = (
    benchmark(
        "models",
        f"Drawing cases of {LENGTH} events from a trained model, and writing them.",
        measure,
        [
            grid(logs=NO_LOG, variants=(4, 846, 1511), cases=100_000, to="draw"),
            grid(logs=NO_LOG, variants=846, cases=1_000_000, to=_SUFFIXES, quick={"cases": 60_000}),
        ],
        (
            *(CPU, WALL, PEAK, Column("multinomial, CPU s", "multinomial", ".4f")),
            Column("file MB", "size", ",.0f"),
        ),
        runs=3,
        alone=True,
        page="models.md",
    ),
    benchmark(
        "samples",
        "Samples of releases with times.",
        samples,
        [grid("evolve", epsilon="1"), grid("evolve", logs=NO_LOG, epsilon="1", cases=3_000)],
        (
            *map(_spread, ("release", "sample", "two samples", "two releases", "release, kinds", "sample, kinds")),
            *map(_spread, ("release, off", "sample, off")),
            CPU,
        ),
        logs=("sepsis", "bpic2013_incidents", "receipt"),
        small=SMALL,
        note="Similarity of a release, and of a sample of its size, to the original; of two samples of a release, and "
        "of two releases, to each other; kinds of case per case; the earth mover's distance of durations "
        "in hours; and CPU seconds to draw 100,000 cases. Mean ± "
        "standard deviation over releases; 0.3 of epsilon is for times.",
        page="models.md",
    ),
)
