"""Releases of a table of Spark with times and attributes: fetched, or in place.

A fetched table goes to this machine's disk. Spark runs here, in a session that has begun, with two threads and a heap
of 4 GB. With 2 GB, fetching five million events ran out of memory. Its Java, and the Python of its workers, are
processes of their own. Their processor seconds are added, and their memory is separate from that of the querying
process (on a cluster they are other machines). The digest is that of the released file: equal digests mean that all
answers were the same integers. ``--set size=N,N`` for others.
"""

from __future__ import annotations

import hashlib
import os
import sys
import time
from pathlib import Path

from benchmark import NO_LOG, benchmark, grid
from columns import Column
from large import given_spark
from large_releases import make, with_times
from veilog.experiments.experiment import Cell, Given, Measured
from veilog.logs.storage.loader import store


def descendants() -> dict[int, list[str]]:
    """Return the system's facts of each process below this one."""
    stats: dict[int, list[str]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            stats[int(path.parent.name)] = path.read_text().rpartition(")")[2].split()
        except OSError:  # it ended meanwhile
            continue
    found: dict[int, list[str]] = {}
    new = {os.getpid()}
    while new:
        new = {pid for pid, fields in stats.items() if int(fields[1]) in new and pid not in found}
        found |= {pid: stats[pid] for pid in new}
    return found


def spent() -> float:
    """Return the processor seconds of this process and of those below it."""
    own = os.times()
    below = sum(int(fields[11]) + int(fields[12]) for fields in descendants().values())
    return own.user + own.system + below / os.sysconf("SC_CLK_TCK")


def highest(pid: int) -> float:
    """Return the most megabytes that a process has had."""
    try:
        status = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return max((int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM")), default=0.0)


def measure(given: Given, cell: Cell) -> Measured:
    import ibis

    os.environ["PYSPARK_PYTHON"] = sys.executable  # the Python of Spark's workers
    path, target = given.folder / f"log-{cell.get('size')}.parquet", given.folder / "out.parquet"
    if not path.exists():
        make(int(cell.get("size")), path)
    values: dict[str, float] = {}
    with given_spark(given.folder, "4GB", 2) as moved:
        from pyspark.sql import SparkSession

        spark = SparkSession.active()
        rows = spark.read.parquet(str(path)).selectExpr("*", "`case:concept:name` || '-' || `time:timestamp` AS row")
        rows.selectExpr("*", "xxhash64(row) AS seq").drop("row").createOrReplaceTempView("log")
        table = ibis.pyspark.connect(spark).table("log")
        spark.range(10).count()
        cpu, wall = spent(), time.perf_counter()
        where = "engine" if cell.get("how") == "asked there" else "here"
        log = store(table, index="seq", where=where, memory_limit="1GB", temp_directory=given.folder)
        assert log is not None
        values |= {"stored cpu": spent() - cpu, "stored wall": time.perf_counter() - wall}
        cpu, wall = spent(), time.perf_counter()
        with_times(log).save(target, overwrite=True)
        values |= {"cpu": spent() - cpu, "wall": time.perf_counter() - wall} | moved()
        below = [highest(pid) for pid in descendants()]
        values |= {"driver": highest(os.getpid()), "below": max(below), "load": os.getloadavg()[0]}
    digest = hashlib.sha256(target.read_bytes()).hexdigest()[:16]
    target.unlink()
    return Measured(values, texts={"digest": digest})


BENCHMARKS = (
    benchmark(
        "spark-events",
        "Logs of Spark with times and attributes.",
        measure,
        grid(
            "evolve", logs=NO_LOG, size=(1_000_000, 5_000_000), how=("fetched", "asked there"), quick={"size": 10_000}
        ),
        (
            *(Column(f"{what} s", what, ".1f") for what in ("stored cpu", "stored wall", "cpu", "wall")),
            Column("this process MB", "driver", ",.0f"),
            Column("Spark's largest process MB", "below", ",.0f"),
            Column("moved MB", "moved", ",.0f"),
            Column("load", "load", ".0f"),
            Column("digest", "digest", show="text"),
        ),
        runs=1,
        alone=True,
        page="results/performance.md",
    ),
)
