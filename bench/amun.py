"""Amun: its time on real logs, and the growth of that time.

Table 6 itself is ``veilog experiment amun-table-6``. Times are CPU seconds of a release whose log is in memory, and
multiples of grouping the same log's cases into variants. The growth is measured on simulated logs; the largest has the
shape of BPIC19 (251,734 cases, 1.6 million events, 12,000 variants, a trace of 990 events).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from benchmark import CPU, NO_LOG, PEAK, WALL, benchmark, grid
from columns import Column
from timing import timed
from veilog.experiments.experiment import Cell, Given, Measured
from veilog.logs.eventlog import EventLog
from veilog.logs.metadata import Metadata
from veilog.logs.variants import Sequences
from veilog.methods._events.assemble import Details, assemble_log
from veilog.releasing.run import release

LOGS = ("sepsis", "bpic2013_incidents", "unrineweginfectie", "ccc19", "traffic_fines")
MODES = ("sampling", "filtering", "oversampling")
SHAPES = ("15734 100000 3000", "62934 400000 3000", "251734 1600000 3000", "251734 1600000 750", "251734 1600000 12000")
"""Cases, events, variants: first more events, then more variants."""


@lru_cache(maxsize=1)
def simulated(cases: int, events: int, variants: int, seed: int = 0) -> EventLog:
    """Return a log of so many cases, about so many events, and so many variants.

    It has 42 activities. Few variants have most of the cases, and rare ones are long, up to 990 events. Variants share
    prefixes and suffixes.
    """
    rng = np.random.default_rng(seed)
    weights = 1.0 / np.arange(1, variants + 1) ** 1.2
    counts = 1 + np.floor((cases - variants) * weights / weights.sum()).astype(np.int64)
    counts[0] += cases - counts.sum()
    rare = np.arange(variants) > variants // 20
    lengths = np.where(rare, np.minimum(4 + rng.lognormal(2.2, 0.8, variants), 990), 4 + rng.integers(0, 4, variants))
    lengths[-1] = 990
    body = (counts * lengths)[~rare].sum()
    lengths[~rare] *= max(0.5, (events - (counts * lengths)[rare].sum()) / body)
    successors = rng.integers(0, 40, (42, 4))
    known: set[tuple[int, ...]] = set()
    sequences = []
    for length in np.maximum(2, np.rint(lengths)).astype(int).tolist():
        word = (40,)
        while True:
            steps = np.minimum(rng.geometric(0.6, size=length) - 1, 3).tolist()
            walk = [40]
            for step in steps:
                walk.append(int(successors[walk[-1], step]))
            word = (*walk[: length - 1], 41)
            if word not in known:
                break
            length += 1
        known.add(word)
        sequences.append(word)
    owner = rng.permutation(np.repeat(np.arange(variants), counts))
    sizes = np.array([len(word) for word in sequences])
    starts = np.concatenate([[0], np.cumsum(sizes)])
    offsets = np.concatenate([[0], np.cumsum(sizes[owner])])
    flat = np.concatenate([np.array(word, dtype=np.int32) for word in sequences])
    rows = np.arange(offsets[-1]) - np.repeat(offsets[:-1] - starts[:-1][owner], sizes[owner])
    gaps = rng.lognormal(8, 2.5, len(rows)).astype(np.int64)
    gaps[offsets[:-1]] = rng.integers(0, 365 * 86_400, cases)
    sums = np.cumsum(gaps)
    before = np.concatenate([[0], sums])[offsets[:-1]]
    times = (sums - np.repeat(before, sizes[owner]) + 1_514_764_800) * 1_000_000
    labels = tuple(f"activity {i:02d}" for i in range(42))
    return assemble_log(Details(Sequences(labels, flat[rows], offsets), times), Metadata())


def speed(given: Given, cell: Cell) -> Measured:
    shape = str(cell.get("shape"))
    log = simulated(*map(int, shape.split())) if shape else given.log
    grouping, _ = timed(lambda: log.variants_by(("concept:name",)))
    variants = log.variants  # the log keeps them: not part of the release below
    work = lambda: release(log, "amun", as_published=True, seed=cell.run, mode=cell.get("mode"))  # noqa: E731
    costs, made = timed(work)
    sizes = {"cases": log.cases.num_rows, "events": len(log), "variants": len(variants)}
    return Measured(costs | sizes | {"grouping": grouping["cpu"], "released": made.variants.events})


_COLUMNS = (
    *(Column(name, name, ",.0f") for name in ("cases", "events", "variants")),
    *(CPU, WALL, PEAK, Column("times grouping", "cpu", ".1f", over="grouping")),
    Column("released events", "released", ",.0f"),
)
BENCHMARKS = (
    benchmark(
        "amun",
        "Amun's time on real logs.",
        speed,
        grid("amun", mode=MODES),
        _COLUMNS,
        logs=LOGS,
        quick_logs=("ccc19", "sepsis"),
        alone=True,
        page="results/amun.md",
    ),
    benchmark(
        "amun-growth",
        "Amun's time on simulated logs that grow.",
        speed,
        grid("amun", logs=NO_LOG, shape=SHAPES, mode=MODES, quick={"shape": SHAPES[0]}),
        _COLUMNS,
        runs=3,
        alone=True,
        page="results/amun.md",
    ),
)
