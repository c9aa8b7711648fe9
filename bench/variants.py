"""Variants of a large Parquet file: ours against the bare DuckDB query, with the same memory limit.

The events are those of the simulated hospital in the order of their times, as a system exports them. Baselines:
the query that anyone would write first (activities listed by time, grouped, counted; ties fall as they may), and the
one that decides ties by the row as we do. ``--set events=N --set memory=1GB`` for others.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmark import CPU, NO_LOG, PEAK, WALL, benchmark, grid
from columns import Column
from timing import timed
from veilog.experiments.experiment import Cell, Given, Measured
from veilog.logs.files import read_variants
from veilog.logs.synthetic.hospital import hospital

CASE, ACTIVITY, TIME = '"case:concept:name"', '"concept:name"', '"time:timestamp"'
EVENTS_A_CASE = 7.4

BARE = f"""SELECT variant, count(*) AS n FROM (
    SELECT list({ACTIVITY} ORDER BY {TIME}) AS variant FROM '{{path}}' GROUP BY {CASE}) GROUP BY variant"""
BARE_EXACT = f"""SELECT variant, count(*) AS n FROM (
    SELECT list_transform(list_sort(list({{{{t: {TIME}, i: file_row_number, a: {ACTIVITY}}}}})), lambda x: x.a)
    AS variant
    FROM read_parquet('{{path}}', file_row_number = true) GROUP BY {CASE}) GROUP BY variant"""
TASKS = {"bare query": BARE, "bare query, ties by row": BARE_EXACT, "veilog, to Variants": ""}


def generate(path: Path, events: int) -> int:
    log = hospital(int(events / EVENTS_A_CASE) + 50, seed=1)
    order = np.argsort(log.events["time:timestamp"].cast(pa.int64()).to_numpy(), kind="stable")[:events]
    table = log.to_arrow().take(pa.array(order))
    plain = [c.cast(c.type.value_type) if pa.types.is_dictionary(c.type) else c for c in table.columns]
    pq.write_table(pa.table(plain, names=table.column_names), path, row_group_size=1 << 19, compression="zstd")
    return len(order)


def measure(given: Given, cell: Cell) -> Measured:
    task, memory = str(cell.get("task")), str(cell.get("memory"))
    path = given.folder / f"events-{cell.get('events')}.parquet"
    if task == "making the file":
        costs, rows = timed(lambda: generate(path, int(cell.get("events"))))
        return Measured(costs | {"events": rows, "size": path.stat().st_size / 1e6})
    if task.startswith("veilog"):
        costs, found = timed(lambda: read_variants(path, memory_limit=memory))
        return Measured(costs | {"variants": len(found), "cases": found.cases})

    def query() -> pa.Table:
        with tempfile.TemporaryDirectory() as spill:
            connection = duckdb.connect(config={"memory_limit": memory, "temp_directory": spill})
            return connection.sql(TASKS[task].format(path=path)).to_arrow_table()

    costs, table = timed(query)
    return Measured(costs | {"variants": table.num_rows, "cases": sum(table.column("n").to_pylist())})


_MADE = {"events": 10_000_000, "memory": "1GB", "logs": NO_LOG, "quick": {"events": 1_000_000}}
BENCHMARKS = (
    benchmark(
        "variants",
        "Variants of a large Parquet file against the bare query.",
        measure,
        [grid(**_MADE, task="making the file", once=True), grid(**_MADE, task=tuple(TASKS))],
        (
            *(Column(name, name, ",.0f") for name in ("cases", "variants")),
            *(CPU, WALL, PEAK),
            *(Column(f"{name} ratio", name, baseline={"task": "bare query"}) for name in ("cpu", "wall")),
        ),
        note="Ties by row decide as we do: those two have the same cases and variants.",
        runs=3,
        alone=True,
        page="results/performance.md",
    ),
)
