"""Amun, table 7: minutes from the file that is read to the file that is written, at a guessing advantage of 0.2."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from veilog.experiments.experiment import Cell, Experiment, Given, Measured, Plan, Plot, Row, Table, mean, of
from veilog.experiments.measuring import released
from veilog.experiments.papers.amun_table_6 import AMUN_LOGS, MODES
from veilog.experiments.plots import Series, lines

__all__ = ["AMUN_TABLE_7"]

COLUMNS = ("filtering", "sampling", "oversampling", "pripel")
_NONE = float("nan")
PUBLISHED = {
    "bpic2012": (4.44, 7.38, 12.50, 24.35),
    "bpic2013_incidents": (1.11, 1.09, 3.90, 4.20),
    "bpic2014": (44.57, 43.83, 101.40, _NONE),
    "bpic2015": (4.38, 4.45, 8.40, _NONE),
    "bpic2017": (6.88, 10.80, 17.40, 1.46),
    "bpic2018": (128.32, 321.59, 542.50, 226.0),
    "bpic2019": (96.89, 52.73, 87.50, _NONE),
    "bpic2020": (2.64, 2.52, 4.10, 3.18),
    "ccc19": (0.04, 0.09, 0.10, _NONE),
    "credit_requirement": (1.21, 1.35, 1.20, 14.50),
    "bpic2011": (11.27, 10.65, 34.10, _NONE),
    "sepsis": (0.87, 1.00, 1.90, 0.05),
    "traffic_fines": (9.71, 11.35, 8.20, _NONE),
    "unrineweginfectie": (0.14, 0.16, 0.20, 0.02),
}
"""Minutes; the order of ``COLUMNS``."""


def cells(plan: Plan) -> Iterator[Cell]:
    for log in plan.logs:
        for run in range(plan.runs):
            for mode in MODES:
                given = (("guessing_advantage", "0.2"), ("mode", mode), ("as_published", True))
                yield Cell(log, "amun", given, run)
            yield Cell(log, "pripel", (("epsilon", "1"),), run)


def measure(given: Given, cell: Cell) -> Measured:
    """Read, release and write, all of it, each time."""
    wall, used = time.perf_counter(), time.process_time()
    release = released(Given(given.path), cell)
    with tempfile.TemporaryDirectory() as folder:
        release.save(Path(folder) / "released.xes")
    return Measured({"minutes": (time.perf_counter() - wall) / 60, "cpu_minutes": (time.process_time() - used) / 60})


def _rows(rows: Sequence[Row], log: str, column: str) -> list[Row]:
    return of(rows, log, "pripel") if column == "pripel" else of(rows, log, "amun", mode=column)


def tables(rows: Sequence[Row]) -> list[Table]:
    lines_ = []
    for log in dict.fromkeys(row.cell.log for row in rows):
        line = []
        for place, column in enumerate(COLUMNS):
            own = _rows(rows, log, column)
            wall, used = mean(own, "minutes"), mean(own, "cpu_minutes")
            text = "not computed" if wall is None or used is None else f"{wall:.3f} ({used:.3f} CPU)"
            said = PUBLISHED.get(log, (_NONE,) * 4)[place]
            line.append(text if said != said else f"{text} [{said:.2f}]")
        lines_.append((log, *line))
    return [Table("Minutes from file to file", ("log", *COLUMNS), tuple(lines_))]


def plots(rows: Sequence[Row]) -> list[Plot]:
    logs = list(dict.fromkeys(row.cell.log for row in rows))
    series: dict[str, Series] = {}
    for place, column in enumerate(COLUMNS):
        ours = [mean(_rows(rows, log, column), "minutes") for log in logs]
        series[column] = [None if m is None else (m, m, m) for m in ours]
        known = [PUBLISHED.get(log, (_NONE,) * 4)[place] for log in logs]
        series[f"{column}, paper"] = [None if p != p else (p, p, p) for p in known]
    axes = ("log", "minutes (logarithmic)")
    svg = lines("Amun: minutes from file to file", logs, series, axes, logarithmic=True, joined=False)
    return [Plot("amun-minutes", svg)]


AMUN_TABLE_7 = Experiment(
    name="amun-table-7",
    paper="(Elkoumy, Pankova, Dumas, 2023, table 7.)",
    what="How long Amun and PRIPEL take from reading to writing an XES file, at a guessing advantage of 0.2.",
    logs=AMUN_LOGS,
    methods=("amun", "pripel"),
    measures=("minutes", "cpu_minutes"),
    cells=cells,
    measure=measure,
    tables=tables,
    plots=plots,
    runs=3,
    notes=(
        "The paper's machine was another one (AMD Opteron 6276, 32 GB), so the ratio alone says little.",
        "pripel is the certified release at epsilon 1. With several processes wall times disturb each other: the CPU "
        "minutes are the ones to compare.",
    ),
)
