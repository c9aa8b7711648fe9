"""Variants of a large Parquet file: ours against the bare DuckDB query, with the same memory limit.

    python bench/variants.py [--events N] [--memory 1GB] [--runs R]

The events are those of the simulated hospital in the order of their times, as a system exports them. Baselines:
the query that anyone would write first (activities listed by time, grouped, counted; ties fall as they may), and the
one that decides ties by the row as we do. Every run is a fresh process; the runs take turns and the medians count.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CASE, ACTIVITY, TIME = '"case:concept:name"', '"concept:name"', '"time:timestamp"'
EVENTS_A_CASE = 7.4

BARE = f"""SELECT variant, count(*) AS n FROM (
    SELECT list({ACTIVITY} ORDER BY {TIME}) AS variant FROM '{{path}}' GROUP BY {CASE}) GROUP BY variant"""
BARE_EXACT = f"""SELECT variant, count(*) AS n FROM (
    SELECT list_transform(list_sort(list({{{{t: {TIME}, i: file_row_number, a: {ACTIVITY}}}}})), lambda x: x.a)
    AS variant
    FROM read_parquet('{{path}}', file_row_number = true) GROUP BY {CASE}) GROUP BY variant"""
TASKS = {"bare": "bare query", "exact": "bare query, ties by row", "veilog": "veilog, to Variants"}


def generate(path: str, events: int) -> None:
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    from veilog.logs.simulate import hospital

    log = hospital(int(events / EVENTS_A_CASE) + 50, seed=1)
    order = np.argsort(log.events["time:timestamp"].cast(pa.int64()).to_numpy(), kind="stable")[:events]
    table = log.to_arrow().take(pa.array(order))
    plain = [c.cast(c.type.value_type) if pa.types.is_dictionary(c.type) else c for c in table.columns]
    pq.write_table(pa.table(plain, names=table.column_names), path, row_group_size=1 << 19, compression="zstd")
    print(json.dumps({"rows": len(order), "size": Path(path).stat().st_size}))


def measure(task: str, path: str, memory: str) -> None:
    if task == "veilog":
        from veilog.logs.files import read_variants

        begin, cpu = time.perf_counter(), time.process_time()
        found = read_variants(path, memory_limit=memory)
        variants, cases = len(found), found.cases
    else:
        import duckdb

        begin, cpu = time.perf_counter(), time.process_time()
        with tempfile.TemporaryDirectory() as spill:
            connection = duckdb.connect(config={"memory_limit": memory, "temp_directory": spill})
            table = connection.sql((BARE if task == "bare" else BARE_EXACT).format(path=path)).to_arrow_table()
            variants, cases = table.num_rows, sum(table.column("n").to_pylist())
    result = {
        "wall": time.perf_counter() - begin,
        "cpu": time.process_time() - cpu,
        "rss": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "variants": variants,
        "cases": cases,
    }
    print(json.dumps(result))


def call(*arguments: str) -> dict[str, float]:
    """Run this file in a fresh process; its last line of output is the result."""
    done = subprocess.run(
        [sys.executable, __file__, "--inside", *arguments], stdout=subprocess.PIPE, text=True, check=True
    )
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--memory", default="1GB")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--inside", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        if options.inside[0] == "generate":
            generate(options.inside[1], int(options.inside[2]))
        else:
            measure(*options.inside)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "events.parquet")
        made = call("generate", path, str(options.events))
        runs: dict[str, list[dict[str, float]]] = {task: [] for task in TASKS}
        for _ in range(options.runs):
            for task, found in runs.items():
                found.append(call(task, path, options.memory))
    exact, ours = runs["exact"][0], runs["veilog"][0]
    if (exact["variants"], exact["cases"]) != (ours["variants"], ours["cases"]):
        print(f"the answers differ: {exact} {ours}", file=sys.stderr)
        return 1
    print(
        f"{made['rows']:,.0f} events, {ours['cases']:,} cases, {ours['variants']:,} variants, Parquet of "
        f"{made['size'] / 1e6:.0f} MB, memory limit {options.memory}, median of {options.runs} runs\n"
    )
    print("| | CPU s | wall s | peak RSS MB | CPU ratio | wall ratio |")
    print("|---|---|---|---|---|---|")
    middle = {task: {k: statistics.median(f[k] for f in found) for k in found[0]} for task, found in runs.items()}
    base = middle["bare"]
    for task, row in middle.items():
        ratios = f"{row['cpu'] / base['cpu']:.2f} | {row['wall'] / base['wall']:.2f}"
        print(f"| {TASKS[task]} | {row['cpu']:.2f} | {row['wall']:.2f} | {row['rss']:.0f} | {ratios} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
