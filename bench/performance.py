"""Performance: readers against others and bare parsers, and growth of commands.

Each cell is a fresh process, whose processor seconds (with those of its children) and highest memory count. Logs are
synthetic (``large_releases.make``): one kind has 2,032 variants at any size, the other ever more. The exponents are
slopes of straight lines through the logarithms. :func:`worse` compares two runs, for the tests of every night.
``--set sizes=N,N`` for other sizes.
"""

from __future__ import annotations

import json
import math
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow.csv
import pyarrow.parquet as pq

from benchmark import NO_LOG, grid
from columns import Column, grouped, summary
from large_releases import make
from veilog.experiments.experiment import Cell, Experiment, Given, Measured, Profile, Row, Table, known
from veilog.logs.files import read, write

PRELUDE = """
import json, os, resource, sys, time
path = sys.argv[1]

def spent():
    here, below = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return here.ru_utime + here.ru_stime + below.ru_utime + below.ru_stime

def report(found):
    below = resource.getrusage(resource.RUSAGE_CHILDREN)
    own = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
    peak, wall = max(own, below.ru_maxrss) / 1024, time.perf_counter() - started
    print("\\n" + json.dumps({"cpu": spent() - before, "all": spent(), "wall": wall, "peak": peak, "found": found}))
"""
START = "started, before = time.perf_counter(), spent()\n"
CASE, ACTIVITY, TIME = "case:concept:name", "concept:name", "time:timestamp"
DUCKDB = f"""
import duckdb
{START}
found = duckdb.sql(f\"\"\"SELECT variant, count(*) FROM (
    SELECT list("{ACTIVITY}" ORDER BY "{TIME}") AS variant FROM '{{path}}' GROUP BY "{CASE}") GROUP BY variant\"\"\")
report(len(found.to_arrow_table()))
"""
POLARS = f"""
import polars
{START}
rows = polars.scan_FORMAT(path).select("{CASE}", "{ACTIVITY}", "{TIME}").sort("{TIME}", maintain_order=True)
report(len(rows.group_by("{CASE}").agg("{ACTIVITY}").group_by("{ACTIVITY}").len().collect()))
"""
PANDAS = f"""
import pandas
{START}
rows = pandas.read_FORMAT(path, COLUMNS=["{CASE}", "{ACTIVITY}", "{TIME}"]).sort_values("{TIME}", kind="stable")
report(len(rows.groupby("{CASE}")["{ACTIVITY}"].agg(tuple).value_counts()))
"""
VEILOG = f"""
import pyarrow
from veilog.logs.files import read_variants
pyarrow.array([0])  # Arrow's first look for pandas is an import
{START}
report(len(read_variants(path)))
"""
XES_OF_VEILOG = f"""
from pathlib import Path
from veilog.logs.findings import Findings
from veilog.logs.input.source import ReadOptions
from veilog.logs.xes.reader import read_xes
{START}
report(len(read_xes(Path(path), findings=Findings(), declared=ReadOptions(processes=PROCESSES))))
"""
EXPAT = f"""
from xml.parsers import expat
{START}
parser = expat.ParserCreate()
with open(path, "rb") as file:
    parser.ParseFile(file)
report(None)
"""
R4PM = f"""
from r4pm import df
{START}
report(len(df.import_xes(path)[0]))
"""
PM4PY = f"""
import warnings
warnings.simplefilter("ignore")
import pm4py
{START}
report(len(pm4py.read_xes(path)))
"""
READERS = {
    ".parquet": {
        "DuckDB, bare query": DUCKDB,
        "veilog": VEILOG,
        "Polars": POLARS.replace("FORMAT", "parquet"),
        "pandas": PANDAS.replace("FORMAT", "parquet").replace("COLUMNS", "columns"),
    },
    ".csv": {
        "DuckDB, bare query": DUCKDB,
        "veilog": VEILOG,
        "Polars": POLARS.replace("FORMAT", "csv"),
        "pandas": PANDAS.replace("FORMAT", "csv").replace("COLUMNS", "usecols"),
    },
    ".xes": {
        "expat, no handlers": EXPAT,
        "veilog": XES_OF_VEILOG.replace("PROCESSES", "1"),
        "veilog, 2 processes": XES_OF_VEILOG.replace("PROCESSES", "2"),
        "r4pm": R4PM,
        "pm4py": PM4PY,
    },
}
"""Readers of each format. The first is the reference: the usual query, or the parser alone."""
TITLES = {".parquet": "Parquet to variants", ".csv": "CSV to variants", ".xes": "XES to a log"}
COMMAND = f"""
from veilog.__main__ import run
{START}
try:
    run()
except SystemExit as end:
    if end.code not in (None, 0):
        raise
report(None)
"""
_RELEASE = ["release", "{log}", "{released}", "-m", "evolve", "--epsilon", "1", "--activities", "log", "--max-length"]
_RELEASE += ["log", "--no-compare", "--no-ledger", "--overwrite", "--memory-limit", "1GB"]
_STAFF = "org:resource=" + "|".join(f"resource {i}" for i in range(40))
_ATTRIBUTES = ["--attributes", "org:resource,urgency", "--attributes-share", "0.2", "--domain", "urgency=0..4"]
COMMANDS = {
    "info": ["info", "{log}"],
    "release": _RELEASE,
    "times": [*_RELEASE, "--times", "0.3", "--window", "2020-09-13..2022-09-15"],
    "attributes": [*_RELEASE, *_ATTRIBUTES, "--domain", _STAFF],
    "compare": ["compare", "{log}", "{released}"],
    "risk": ["risk", "{log}"],
}
SIZES = (10_000, 100_000, 1_000_000, 10_000_000)
STEEPEST = 1.1
"""Exponent above which a command grows faster than the log."""
WORSE = 1.2


def child(code: str, *arguments: str) -> Measured:
    """Run code in a process of its own, which reports its costs."""
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + code, *arguments], capture_output=True, text=True, check=False
    )
    if done.returncode:
        return Measured({}, (done.stderr.strip().splitlines() or [str(done.returncode)])[-1])
    return Measured(json.loads(done.stdout.strip().splitlines()[-1]))


def log_of(folder: Path, kind: str, events: int, suffix: str = ".parquet") -> Path:
    """Return a log of that kind and size, made once."""
    path = folder / f"log-{kind}-{events}{suffix}"
    if not path.exists():
        if suffix == ".parquet":
            make(events, path, diverse=kind == "many")
        elif suffix == ".csv":
            pyarrow.csv.write_csv(pq.read_table(log_of(folder, kind, events)), path)
        else:
            write(read(log_of(folder, kind, events)), path)
    return path


def measure(given: Given, cell: Cell) -> Measured:
    kind, events = str(cell.get("variants")), int(cell.get("sizes") or cell.get("events"))
    if cell.get("format"):
        path = log_of(given.folder, kind, events, str(cell.get("format")))
        code = READERS[str(cell.get("format"))][str(cell.get("reader"))]
        return child(code, str(path))
    command = str(cell.get("command"))
    target = "out" if command in ("times", "attributes") else f"released-{kind}-{events}"
    names = {"log": log_of(given.folder, kind, events), "released": given.folder / f"{target}.parquet"}
    return child(COMMAND, *(part.format(**names) for part in COMMANDS[command]))


def cells(profile: Profile) -> Iterator[Cell]:
    """Yield cells run by run, a release before its comparison, the largest logs once."""
    for run in range(profile.runs):
        once = replace(profile, runs=1)
        for suffix, readers in READERS.items():
            settings = {"format": suffix, "variants": "few", "events": 1_000_000}
            yield from (replace(cell, run=run) for cell in grid(logs=NO_LOG, reader=tuple(readers), **settings)(once))
        kinds = {"variants": ("few", "many"), "command": tuple(COMMANDS)}
        for cell in grid(logs=NO_LOG, sizes=SIZES, **kinds, quick={"sizes": SIZES[:-1]})(once):
            if run == 0 or cell.get("sizes") != SIZES[-1]:
                yield replace(cell, run=run)


def tables(rows: Sequence[Row]) -> list[Table]:
    """Return tables of readers' ratios, and of commands' seconds and exponents."""
    rows = ratios(rows)
    found = []
    for suffix, readers in READERS.items():
        ratio = Column(f"CPU / {next(iter(readers))}", "ratio", show="spread")
        columns = (_CPU, Column("with imports", "all", show="spread"), _PEAK, ratio)
        found.append(
            summary(TITLES[suffix], [row for row in rows if row.cell.get("format") == suffix], ["reader"], columns)
        )
    commands = sorted((row for row in rows if row.cell.get("command")), key=_order)
    columns = (_ALL, _PEAK, Column("CPU / release", "ratio", show="spread"))
    found.append(summary("Commands", commands, ["command", "variants", "sizes"], columns))
    lines = [(*key, *(_number(power) for power in powers.values())) for key, powers in exponents(rows).items()]
    head = ("command", "variants", "CPU", "CPU, last tenfold", "memory", "memory, last tenfold")
    found.append(Table("Exponents", head, tuple(lines)))
    return [*found, Table("A billion events", ("command", "variants", "CPU minutes", "GB"), tuple(_on_paper(rows)))]


def _on_paper(rows: Sequence[Row]) -> Iterator[tuple[str, ...]]:
    """Yield the extrapolation to a billion events, through the two largest sizes."""
    for key, own in grouped([row for row in rows if row.cell.get("command")], ("command", "variants")).items():
        found = []
        for measure_, unit in (("all", 60), ("peak", 1000)):
            points = _medians(own, measure_)[-2:]
            (x, low), (y, high) = points if len(points) == 2 else ((0, 0.0), (1, 0.0))
            rises = len(points) == 2 and high > low
            found.append(f"{(high + (high - low) / (y - x) * (10**9 - y)) / unit:.0f}" if rises else "-")
        yield *key, *found


def _medians(rows: Sequence[Row], measure_: str) -> list[tuple[int, float]]:
    by_size = grouped([row for row in rows if known([row], measure_)], ("sizes",))
    return sorted((int(size), statistics.median(known(some, measure_))) for (size,), some in by_size.items())


_CPU, _ALL = Column("CPU s", "cpu", show="spread"), Column("CPU s", "all", show="spread")
_PEAK = Column("peak MB", "peak", ",.0f", "spread")


def _order(row: Row) -> tuple[int, str, int]:
    return [*COMMANDS].index(str(row.cell.get("command"))), str(row.cell.get("variants")), int(row.cell.get("sizes"))


def _number(power: float | None) -> str:
    return "-" if power is None else f"{power:.2f}"


def ratios(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of readers with their ratios to the reference of the same run.

    The reference is that of their format; comparisons have their release as the reference.
    """
    found = []
    bases = {_place(row): row.values.get("cpu") for row in rows if _is_base(row)}
    for row in rows:
        base, own = bases.get(_place(row)), row.values.get("cpu")
        found.append(replace(row, values={**row.values, "ratio": own / base}) if base and own else row)
    return found


def _is_base(row: Row) -> bool:
    suffix = str(row.cell.get("format"))
    return row.cell.get("reader") == next(iter(READERS[suffix])) if suffix else row.cell.get("command") == "release"


def _place(row: Row) -> tuple[object, ...]:
    return row.cell.run, row.cell.get("format"), row.cell.get("variants"), row.cell.get("sizes")


def exponents(rows: Sequence[Row]) -> dict[tuple[str, str], dict[str, float | None]]:
    """Return the growth of each command's seconds and memory.

    One exponent is over all sizes, one over the last tenfold.
    """
    found = {}
    for key, own in grouped([row for row in rows if row.cell.get("command")], ("command", "variants")).items():
        found[key[0], key[1]] = slopes = {}
        for measure_ in ("all", "peak"):
            points = _medians(own, measure_)
            slopes[measure_] = slope(points)
            slopes[f"{measure_}, last"] = slope(points[-2:])
    return found


def slope(points: Sequence[tuple[float, float]]) -> float | None:
    if len(points) < 2:
        return None
    return statistics.linear_regression(*zip(*((math.log(x), math.log(y)) for x, y in points), strict=True)).slope


def worse(rows: Sequence[Row], before: Sequence[Row]) -> list[str]:
    """Return violations: commands that grow faster than the log, and ratios that rose.

    A ratio counts if it is a fifth above the earlier one.
    """
    found = [
        f"{command} of {kind} variants: {measure_} grows with the power {power:.2f}"
        for (command, kind), slopes in exponents(rows).items()
        for measure_, power in slopes.items()
        if power is not None and power > STEEPEST
    ]
    names = ("format", "reader", "command", "variants", "sizes")
    now, then = (grouped(ratios(some), names) for some in (rows, before))
    for key in now.keys() & then.keys():
        mine, other = known(now[key], "ratio"), known(then[key], "ratio")
        if mine and other and min(mine) > WORSE * statistics.median(other):
            part = " ".join(filter(None, key))
            found.append(f"{part}: {min(mine):.2f} times the reference, before {statistics.median(other):.2f}")
    return found


BENCHMARKS = (
    Experiment(
        name="performance",
        what="Readers against others, and how every command grows with the log.",
        cells=cells,
        measure=measure,
        tables=tables,
        runs=3,
        quick_runs=1,
        page="results/performance.md",
    ),
)
