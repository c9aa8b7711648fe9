"""Drawing from a model: seconds for 100,000 cases, and time and memory of writing many.

The networks have the method's default sizes over as many variants as Sepsis (846) and BPIC13 (1511) have; their weights
are random, which changes nothing about the time. Beside it numpy's own draw from the same shares, as the baseline
that no network can reach.
"""

from __future__ import annotations

import numpy as np

from benchmark import CPU, NO_LOG, PEAK, WALL, benchmark, grid
from columns import Column
from timing import cpu_of, timed
from veilog.experiments.experiment import Cell, Given, Measured
from veilog.logs.variants import Sequences, Variants
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
)
