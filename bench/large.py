"""Logs larger than memory: made in pieces, grouped in limited memory, released.

The events are those of the simulated hospital, without most of its quickest visits (ten events a case). They are
Parquet in folders of months (``year=2024/month=1/part-0.parquet``), as warehouses keep them. A case lies in several
files, and rows are in the order of their times within one piece only. The program holds one piece of a log at a time,
and keeps logs, which it makes once. Spark's Java is a process of its own, whose time is added. It works in a given
session, which reports the bytes that it moved between its tasks. ``--set engine=spark``, ``memory=2GB`` and
``size=N,N`` for others.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmark import NO_LOG, PEAK, benchmark, grid
from columns import Column
from timing import timed
from veilog.experiments import experiment
from veilog.experiments.experiment import Cell, Given, Measured, Plot, Row
from veilog.logs.eventlog import EventLog
from veilog.logs.files import read_variants
from veilog.logs.synthetic.hospital import hospital
from veilog.logs.variants import Variants
from veilog.privacy.domain import ALL_FROM_LOG
from veilog.releasing.run import release

PIECE = 125_000
"""Patients of a piece."""
PIECES_A_FILE = 16
QUICK, KEPT = 7, 0.2
"""Events of a quick case, and the share of quick cases that stays, for ten events a case."""
COLUMNS = ("case:concept:name", "concept:name", "time:timestamp", "org:resource", "cost")


def pieces(events: int) -> Iterator[pa.Table]:
    """Yield flat tables with so many events in all, in order of time within each.

    No case is in two of them.
    """
    made, first, number = 0, 0, 0
    while made < events:
        log = without_quick(hospital(PIECE, seed=number), number)
        count = log.cases.num_rows
        names = pa.array(np.char.add("P", np.char.zfill(np.arange(first, first + count).astype(str), 9)))
        table = log.to_arrow().select(COLUMNS)
        table = table.set_column(0, COLUMNS[0], names.take(log.events["case:index"].combine_chunks()))
        room = events - made
        if table.num_rows > room:
            table = table.slice(0, room)  # cut the last cases, by name
        yield table.take(pc.sort_indices(table["time:timestamp"]))
        made, first, number = made + table.num_rows, first + count, number + 1


def without_quick(log: EventLog, seed: int) -> EventLog:
    lengths = np.diff(log.offsets)
    stay = (lengths > QUICK) | (np.random.default_rng([seed, 7]).random(len(lengths)) < KEPT)
    return log.only(np.flatnonzero(stay))


def make(folder: Path, events: int) -> None:
    """Write the log; a group of pieces shares one file a month."""
    writers: dict[Path, pq.ParquetWriter] = {}
    group = 0
    try:
        for number, table in enumerate(pieces(events)):
            if number // PIECES_A_FILE != group:
                close(writers)
                group = number // PIECES_A_FILE
            for (year, month), part in by_month(table):
                path = folder / f"year={year}" / f"month={month}" / f"part-{group}.parquet"
                if path not in writers:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    writers[path] = pq.ParquetWriter(path, part.schema, compression="zstd")
                writers[path].write_table(part)
    finally:
        close(writers)


def close(writers: dict[Path, pq.ParquetWriter]) -> None:
    for writer in writers.values():
        writer.close()
    writers.clear()


def by_month(table: pa.Table) -> Iterator[tuple[tuple[int, int], pa.Table]]:
    """Yield the rows of each month; they come in the order of their times."""
    months = table["time:timestamp"].to_numpy().astype("datetime64[M]").astype(np.int64)
    starts = [0, *(np.flatnonzero(np.diff(months)) + 1).tolist(), len(months)]
    for a, b in itertools.pairwise(starts):
        yield (1970 + int(months[a]) // 12, int(months[a]) % 12 + 1), table.slice(a, b - a)


def digest(variants: Variants) -> str:
    """Return a digest that is equal for equal variants."""
    sum_ = hashlib.sha256("\0".join(variants.labels).encode())
    for array in (variants.codes, variants.offsets, variants.counts):
        sum_.update(np.ascontiguousarray(array).tobytes())
    return sum_.hexdigest()[:16]


def measure(given: Given, cell: Cell) -> Measured:
    """Measure the work from files to variants, and on to a certified release."""
    place, size = given.folder / f"e{cell.get('size')}", int(cell.get("size"))
    if cell.get("step") == "make":
        if place.exists():
            return Measured({"events": size})
        return Measured(timed(partial(make, place, size))[0])
    load, memory, threads = os.getloadavg()[0], str(cell.get("memory")), int(cell.get("threads"))
    engine = str(cell.get("engine"))
    with given_spark(given.folder, memory, threads) if engine == "spark" else contextlib.nullcontext(dict) as now:
        costs, variants = timed(partial(read_variants, place, engine=engine, memory_limit=memory, threads=threads))
        moved = now()
    more, released = timed(partial(release, variants, "evolve", domain=ALL_FROM_LOG, epsilon=1))
    values = {f"variants {name}": value for name, value in costs.items()} | moved
    values |= {"cpu": costs["cpu"] + more["cpu"], "wall": costs["wall"] + more["wall"]}
    values |= {"peak": more["peak"], "load": load, "released": len(released.variants)}
    values |= {"events": variants.events, "cases": variants.cases, "variants": len(variants)}
    return Measured(values, texts={"digest": digest(variants), "guarantee": released.guarantee.status})


@contextlib.contextmanager
def given_spark(folder: Path, memory: str, threads: int) -> Iterator[Callable[[], dict[str, float]]]:
    """Yield a function with the megabytes that a session of Spark wrote between tasks.

    The session is one as a user would create it.
    """
    from pyspark.sql import SparkSession

    spark = (
        SparkSession.builder.master(f"local[{threads}]")
        .config("spark.driver.memory", memory.removesuffix("B").lower())
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.local.dir", str(folder / "spark"))
        .config("spark.log.level", "OFF")
        .getOrCreate()
    )

    def moved() -> dict[str, float]:
        executors = spark.sparkContext._jsc.sc().statusStore().executorList(False)
        found = [executors.apply(i) for i in range(executors.size())]
        return {"moved": sum(one.totalShuffleWrite() for one in found) / 1e6}

    try:
        yield moved
    finally:
        spark.stop()


def released_rows(rows: Sequence[Row]) -> list[Row]:
    return sorted((row for row in rows if row.cell.get("step") == "release"), key=lambda row: row.values["events"])


def drawing(rows: Sequence[Row]) -> list[Plot]:
    """Return plots of time and memory by the size of the log, on logarithmic scales."""
    shown = {
        "variants, CPU s": "variants cpu",
        "with release, CPU s": "cpu",
        "peak memory, MB": "peak",
    }
    rows = [row for row in released_rows(rows) if row.values]
    if not rows:
        return []
    series = {name: [(row.values[key],) * 3 for row in rows] for name, key in shown.items()}
    places = [f"{row.values['events']:,}" for row in rows]
    title = f"A log that grows, by {rows[0].cell.get('engine')} within {rows[0].cell.get('memory')}"
    return [
        Plot("large-logs", experiment.Lines(title, places, series, ("events", "seconds, megabytes"), logarithmic=True))
    ]


_SIZES = (100_000, 1_000_000, 10_000_000, 50_000_000, 100_000_000)
BENCHMARKS = (
    benchmark(
        "large",
        "Logs larger than memory: from files to variants to a certified release.",
        measure,
        grid(
            "evolve",
            logs=NO_LOG,
            engine="duckdb",
            memory="2GB",
            threads=2,
            size=_SIZES,
            step=("make", "release"),
            quick={"size": _SIZES[0]},
        ),
        (
            *(Column(name, name, ",.0f") for name in ("events", "cases", "variants")),
            *(Column(f"{what} s", what, ".1f") for what in ("variants cpu", "variants wall", "cpu", "wall")),
            *(PEAK, Column("load before", "load", ".0f"), Column("moved MB", "moved", ",.0f")),
            Column("digest of the variants", "digest", show="text"),
        ),
        plots=drawing,
        runs=1,
        alone=True,
        page="results/performance.md",
    ),
)
