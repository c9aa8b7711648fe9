"""Logs larger than memory: made piece by piece, grouped by an engine within a memory limit, released.

    python bench/large.py make FOLDER --events 50000000
    python bench/large.py measure FOLDER [--engine duckdb|spark] [--memory 2GB] [--release]
    python bench/large.py growth FOLDER --svg FILE [--sizes 100000,1000000,...] [--memory 2GB]

``make`` writes the events of the simulated hospital, without most of its quickest visits (ten events a case), as
Parquet in folders of months (``year=2024/month=1/part-0.parquet``), as warehouses keep them: a case lies in several
files, and rows are in the order of their times within one piece only. It holds one piece of the log at a time.
``measure`` says what one run costs; Spark's Java is a process of its own, whose time and memory are added. ``growth``
makes the logs that are not there yet in folders below, measures each in a fresh process, and draws what comes out.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import veilog
from veilog.experiments import plots
from veilog.logs.eventlog import EventLog
from veilog.logs.simulate import hospital
from veilog.logs.variants import Variants
from veilog.privacy.domain import ALL_FROM_LOG

PIECE = 125_000
"""Patients made at a time."""
PIECES_A_FILE = 16
QUICK, KEPT = 7, 0.2
"""Of the cases with so few events this share stays, which makes ten events a case."""
COLUMNS = ("case:concept:name", "concept:name", "time:timestamp", "org:resource", "cost")


def pieces(events: int) -> Iterator[pa.Table]:
    """Flat tables with so many events in all, in the order of their times within each, no case in two of them."""
    made, first, number = 0, 0, 0
    while made < events:
        log = without_quick(hospital(PIECE, seed=number), number)
        count = log.cases.num_rows
        names = pa.array(np.char.add("P", np.char.zfill(np.arange(first, first + count).astype(str), 9)))
        table = log.to_arrow().select(COLUMNS)
        table = table.set_column(0, COLUMNS[0], names.take(log.events["case:index"].combine_chunks()))
        room = events - made
        if table.num_rows > room:
            table = table.slice(0, room)  # the last cases, by name, are cut
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
    """The rows of each month; they come in the order of their times."""
    months = table["time:timestamp"].to_numpy().astype("datetime64[M]").astype(np.int64)
    starts = [0, *(np.flatnonzero(np.diff(months)) + 1).tolist(), len(months)]
    for a, b in itertools.pairwise(starts):
        yield (1970 + int(months[a]) // 12, int(months[a]) % 12 + 1), table.slice(a, b - a)


def measure(folder: Path, engine: str, memory: str, threads: int, release: bool) -> dict[str, Any]:
    """What it costs to come from the files to the variants, and on to a certified release."""
    load, started = os.getloadavg()[0], time.perf_counter()
    variants = veilog.read_variants(folder, engine=engine, memory_limit=memory, threads=threads)
    found: dict[str, Any] = {
        "engine": engine,
        "memory_limit": memory,
        "threads": threads,
        "events": variants.events,
        "cases": variants.cases,
        "variants": len(variants),
        "digest": digest(variants),
        "load": load,
    }
    found |= costs("variants", started)
    if release:
        released = veilog.release(variants, "evolve", domain=ALL_FROM_LOG, epsilon=1)
        found |= {"guarantee": released.guarantee.status, "released": len(released.variants)}
        found |= costs("release", started)
    return found


def costs(what: str, started: float) -> dict[str, float]:
    """Wall seconds since ``started``, processor seconds and the most memory of this process and of Java so far."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    cpu, peak = own.ru_utime + own.ru_stime, own.ru_maxrss / 1024
    java_cpu, java_peak = of_children()
    return {
        f"{what}_wall": time.perf_counter() - started,
        f"{what}_cpu": cpu + java_cpu,
        f"{what}_rss": peak,
        f"{what}_java_rss": java_peak,
    }


def of_children() -> tuple[float, float]:
    """Processor seconds and the most megabytes of the processes that this one started and that still run."""
    ticks, seconds, peak = os.sysconf("SC_CLK_TCK"), 0.0, 0.0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[1]) != os.getpid():
                continue
            status = dict(line.split(":", 1) for line in (stat.parent / "status").read_text().splitlines())
        except OSError:  # it ended meanwhile
            continue
        seconds += (int(fields[11]) + int(fields[12])) / ticks
        peak = max(peak, int(status.get("VmHWM", "0 kB").split()[0]) / 1024)
    return seconds, peak


def digest(variants: Variants) -> str:
    """Equal variants have equal digests."""
    sum_ = hashlib.sha256("\0".join(variants.labels).encode())
    for array in (variants.codes, variants.offsets, variants.counts):
        sum_.update(np.ascontiguousarray(array).tobytes())
    return sum_.hexdigest()[:16]


def growth(folder: Path, sizes: Sequence[int], engine: str, memory: str, threads: int) -> list[dict[str, Any]]:
    """One measurement a size, each in a fresh process; logs that are missing are made, what was measured is kept."""
    kept = folder / f"{engine}-{memory}.jsonl"
    rows = {row["events"]: row for row in map(json.loads, kept.read_text().splitlines())} if kept.exists() else {}
    for size in sizes:
        if size in rows:
            continue
        place = folder / f"e{size}"
        if not place.exists():
            make(place, size)
        command = [sys.executable, __file__, "measure", str(place), "--engine", engine, "--memory", memory]
        done = subprocess.run(
            [*command, "--threads", str(threads), "--release"], stdout=subprocess.PIPE, text=True, check=True
        )
        rows[size] = json.loads(done.stdout)
        with kept.open("a") as file:
            file.write(json.dumps(rows[size]) + "\n")
    return [rows[size] for size in sorted(sizes)]


def table(rows: Sequence[dict[str, Any]]) -> str:
    head = "| events | cases | variants | variants: CPU s | wall s | released: CPU s | wall s | peak MB | load before |"
    lines = [head, "|---:" * 9 + "|"]
    for row in rows:
        counts = " | ".join(f"{row[name]:,}" for name in ("events", "cases", "variants"))
        times = " | ".join(
            f"{row[f'{what}_{kind}']:.1f}" for what in ("variants", "release") for kind in ("cpu", "wall")
        )
        lines.append(f"| {counts} | {times} | {row['release_rss']:,.0f} | {row['load']:.0f} |")
    return "\n".join(lines)


def drawing(rows: Sequence[dict[str, Any]]) -> str:
    """How time and memory grow with the log, both on a logarithmic scale."""
    shown = {
        "variants, CPU s": "variants_cpu",
        "with release, CPU s": "release_cpu",
        "peak memory, MB": "release_rss",
    }
    series = {name: [(row[key],) * 3 for row in rows] for name, key in shown.items()}
    places = [f"{row['events']:,}" for row in rows]
    title = f"A log that grows, by {rows[0]['engine']} within {rows[0]['memory_limit']}"
    return plots.lines(title, places, series, ("events", "seconds, megabytes"), logarithmic=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=("make", "measure", "growth"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--events", type=int, default=50_000_000)
    parser.add_argument("--engine", default="duckdb")
    parser.add_argument("--memory", default="2GB")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--release", action="store_true")
    parser.add_argument("--svg", type=Path)
    parser.add_argument("--sizes", default="100000,1000000,10000000,50000000,100000000")
    options = parser.parse_args()
    if options.task == "make":
        make(options.folder, options.events)
    elif options.task == "measure":
        print(json.dumps(measure(options.folder, options.engine, options.memory, options.threads, options.release)))
    else:
        sizes = [int(size) for size in options.sizes.split(",")]
        rows = growth(options.folder, sizes, options.engine, options.memory, options.threads)
        print(table(rows))
        if options.svg is not None:
            options.svg.write_text(drawing(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
