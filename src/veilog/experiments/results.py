"""Files of results: Parquet and CSV with a row a cell, plots, and a Markdown page."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from veilog._files import atomic_target
from veilog._version import __version__
from veilog.errors import MissingExtraError
from veilog.experiments import EXPERIMENTS, FIGURES
from veilog.experiments.experiment import LOGS, Plot, Profile, Row, Table, added_columns, find, spread
from veilog.experiments.runner import ExperimentRun, read_rows, rows_file

_FORMS: tuple[Literal["svg", "png"], ...] = ("svg", "png")


@dataclass(frozen=True)
class Results:
    """Paths of the results of a run."""

    page: Path
    parquet: Path
    csv: Path
    plots: tuple[Path, ...]
    no_plots: str | None
    """Reason why nothing is drawn, if so."""


def write(run: ExperimentRun, out: Path, command: str) -> Results:
    """Write everything under ``out``; each file whole or not at all."""
    folder = out / run.experiment.name
    name = run.experiment.name
    table = table_of(run.rows, (*run.experiment.measures, *_plugin_columns(run.rows)))
    parquet, sheet, page = folder / f"{name}.parquet", folder / f"{name}.csv", folder / f"{name}.md"
    with atomic_target(parquet) as file:
        pa.parquet.write_table(table, file)
    with atomic_target(sheet) as file:
        pa.csv.write_csv(table, file)
    plots, drawn, no_plots = run.experiment.plots(run.rows), [], None
    try:
        for plot in plots:
            for form in _FORMS:
                drawn.append(folder / f"{plot.name}.{form}")
                _bytes(drawn[-1], plot.drawing.image(form))
    except MissingExtraError as error:
        plots, drawn, no_plots = [], [], str(error)
    _bytes(page, markdown(run, command, plots).encode())
    return Results(page, parquet, sheet, tuple(drawn), no_plots)


def _bytes(path: Path, content: bytes) -> None:
    with atomic_target(path) as file:
        file.write(content)


def table_of(rows: Sequence[Row], measures: Sequence[str]) -> pa.Table:
    """Return a row a cell: log, method, settings, run, measures, problem, version."""
    names = list(dict.fromkeys(name for row in rows for name, _ in row.cell.settings))
    columns: dict[str, pa.Array] = {
        "log": pa.array([row.cell.log for row in rows], pa.string()),
        "method": pa.array([row.cell.method for row in rows], pa.string()),
        "run": pa.array([row.cell.run for row in rows], pa.int64()),
    }
    for name in names:
        texts = [None if (v := row.cell.get(name, "")) == "" else str(v) for row in rows]
        columns[name] = pa.array(texts, pa.string())
    for measure in measures:
        column = measure if measure not in columns else f"measured {measure}"
        columns[column] = pa.array([row.get(measure) for row in rows], pa.float64())
    columns["problem"] = pa.array([row.problem for row in rows], pa.string())
    columns["cell_seconds"] = pa.array([row.seconds for row in rows], pa.float64())
    columns["version"] = pa.array([row.version for row in rows], pa.string())
    return pa.table(columns)


def markdown(run: ExperimentRun, command: str, plots: Sequence[Plot] = ()) -> str:
    """Return the page for people: the experiment, its run, tables, and problems."""
    experiment = run.experiment
    profile = "quick profile" if run.profile.quick else "full profile"
    times = "once" if run.profile.runs == 1 else f"{run.profile.runs} times"
    head = [
        f"# {experiment.name}",
        "",
        f"{experiment.what} {experiment.paper}",
        "",
        f"`{command}`, veilog {__version__}, {profile}: {len(run.rows)} cells, each setting run {times} at most. "
        "In square brackets, or under *paper*: the published value.",
        "",
        *(f"- {note}" for note in (*experiment.notes, *run.remarks)),
        "",
    ]
    tables = [*experiment.tables((*run.rows, *run.not_run)), *_tables_of_added(run.rows)]
    pictures = [f"![{plot.drawing.title}]({plot.name}.svg)\n" for plot in plots]
    shown = [*head, *(table.markdown() for table in tables), *(["## Plots", "", *pictures] if pictures else [])]
    return "\n".join([*shown, *(table.markdown() for table in _problems(run.rows))])


def _plugin_columns(rows: Sequence[Row]) -> dict[str, str]:
    """Return other packages' measures in these rows, each column with its package."""
    return {column: by for column, by in added_columns().items() if any(column in row.values for row in rows)}


def _tables_of_added(rows: Sequence[Row]) -> list[Table]:
    """Return a table for each measure of another package: means over the runs."""
    tables = []
    for column, by in _plugin_columns(rows).items():
        groups: dict[tuple[str, ...], list[Row]] = {}
        for row in rows:
            settings = ", ".join(f"{name} {value}" for name, value in row.cell.settings)
            groups.setdefault((row.cell.log, row.cell.method or "-", settings), []).append(row)
        lines = tuple((*setting, spread(own, column)) for setting, own in groups.items())
        tables.append(Table(column, ("log", "method", "settings", column), lines, f"Added by {by}."))
    return tables


def _problems(rows: Sequence[Row]) -> list[Table]:
    """Return the cells without all of their values, alike ones together."""
    found = Counter((row.cell.log, row.cell.method, " ".join(row.problem.split())) for row in rows if row.problem)
    lines = tuple((log, method or "-", str(n), why[:240]) for (log, method, why), n in sorted(found.items()))
    return [Table("Remarks on cells", ("log", "method", "cells", "why"), lines)] if lines else []


def to_json(run: ExperimentRun) -> dict[str, object]:
    """Return the run as JSON for the command; a row has its cell and its values."""
    rows = [
        {**row.cell.to_json(), "values": dict(row.values), "problem": row.problem, "seconds": row.seconds}
        for row in run.rows
    ]
    return {
        "experiment": run.experiment.name,
        "quick": run.profile.quick,
        "runs": run.profile.runs,
        "computed": run.computed,
        "remarks": list(run.remarks),
        "rows": json.loads(json.dumps(rows)),
        "not_run": [{**row.cell.to_json(), "why": row.problem} for row in run.not_run],
    }


@dataclass(frozen=True)
class ListedFigure:
    """A table or figure of the manifest, and its state here."""

    paper: str
    number: str
    title: str
    experiment: str
    logs: tuple[str, ...]
    not_here: Mapping[str, str]
    """Missing logs with the DOI of each; empty for one that is not public."""
    status: str


def figures(folder: Path | None, out: Path) -> list[ListedFigure]:
    """Return all tables and figures of the papers; without a folder no log is here."""
    wanted = dict.fromkeys(log for figure in FIGURES for log in figure.logs)
    there = {} if folder is None else find(folder, tuple(wanted))
    counted: dict[str, str] = {}
    found = []
    for one in FIGURES:
        if one.experiment and one.experiment not in counted:
            counted[one.experiment] = _progress_line(one.experiment, there, out)
        status = counted[one.experiment] if one.experiment else f"worked example, checked by {one.test}"
        absent = {log: LOGS[log].doi for log in one.logs if log not in there}
        if one.logs and len(absent) == len(one.logs):
            status = "log not here"
        found.append(ListedFigure(one.paper, one.number, one.title, one.experiment, one.logs, absent, status))
    return found


def _progress_line(name: str, there: Mapping[str, Path], out: Path) -> str:
    """Return the number of finished cells of an experiment, for logs that are here."""
    experiment = EXPERIMENTS[name]
    logs = tuple(log for log in experiment.logs if log in there)
    cells = {cell.key for cell in experiment.cells(Profile(logs, experiment.runs, False))}
    done = sum(row.cell.key in cells for row in read_rows(rows_file(out, experiment)))
    return f"{done} of {len(cells)} cells finished"
