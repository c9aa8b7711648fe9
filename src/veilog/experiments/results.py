"""Results as files: Parquet and CSV with a row a cell, plots as SVG and PNG, and a Markdown page."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from veilog._files import atomic_target
from veilog._version import __version__
from veilog.errors import MissingExtraError
from veilog.experiments.experiment import Plot, Row, Table, spread
from veilog.experiments.measuring import added_columns
from veilog.experiments.runner import Run

_FORMS: tuple[Literal["svg", "png"], ...] = ("svg", "png")


@dataclass(frozen=True)
class Results:
    """Where the results of a run are."""

    page: Path
    parquet: Path
    csv: Path
    plots: tuple[Path, ...]
    no_plots: str | None
    """Why nothing is drawn, where that is so."""


def write(run: Run, out: Path, command: str) -> Results:
    """Write everything under ``out``; each file whole or not at all."""
    folder = out / run.experiment.name
    name = run.experiment.name
    table = table_of(run.rows, (*run.experiment.measures, *_added(run.rows)))
    parquet, sheet, page = folder / f"{name}.parquet", folder / f"{name}.csv", folder / f"{name}.md"
    buffer = io.BytesIO()
    pa.parquet.write_table(table, buffer)
    _bytes(parquet, buffer.getvalue())
    buffer = io.BytesIO()
    pa.csv.write_csv(table, buffer)
    _bytes(sheet, buffer.getvalue())
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
    """A row a cell: log, method, settings, run, every measure, why one is missing, seconds, version."""
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


def markdown(run: Run, command: str, plots: Sequence[Plot] = ()) -> str:
    """The page for people: what, how it was made, tables, problems in the cells' own words."""
    experiment = run.experiment
    profile = "quick profile" if run.plan.quick else "full profile"
    times = "once" if run.plan.runs == 1 else f"{run.plan.runs} times"
    parts = [
        f"# {experiment.name}",
        "",
        f"{experiment.what} {experiment.paper}",
        "",
        f"`{command}`, veilog {__version__}, {profile}: {len(run.rows)} cells, each setting run {times} at most. "
        "In square brackets, or under *paper*: the published value.",
        "",
    ]
    parts += [f"- {note}" for note in (*experiment.notes, *run.remarks)]
    parts.append("")
    parts += [
        table.markdown() for table in (*experiment.tables((*run.rows, *run.not_run)), *_tables_of_added(run.rows))
    ]
    if plots:
        parts += ["## Plots", ""]
        parts += [f"![{plot.drawing.title}]({plot.name}.svg)\n" for plot in plots]
    parts += _problems(run.rows)
    return "\n".join(parts)


def _added(rows: Sequence[Row]) -> dict[str, str]:
    """Columns of measures that other packages add, as far as these rows have them, and the distribution of each."""
    return {column: by for column, by in added_columns().items() if any(column in row.values for row in rows)}


def _tables_of_added(rows: Sequence[Row]) -> list[Table]:
    """A table a measure that another package adds: its mean over the runs of each setting."""
    tables = []
    for column, by in _added(rows).items():
        groups: dict[tuple[str, ...], list[Row]] = {}
        for row in rows:
            settings = ", ".join(f"{name} {value}" for name, value in row.cell.settings)
            groups.setdefault((row.cell.log, row.cell.method or "-", settings), []).append(row)
        lines = tuple((*setting, spread(own, column)) for setting, own in groups.items())
        tables.append(Table(column, ("log", "method", "settings", column), lines, f"Added by {by}."))
    return tables


def _problems(rows: Sequence[Row]) -> list[str]:
    """Cells without all of their values, alike ones together."""
    found = Counter((row.cell.log, row.cell.method, row.problem) for row in rows if row.problem)
    if not found:
        return []
    lines = ["## Remarks on cells", "", "| log | method | cells | why |", "|---|---|---|---|"]
    for (log, method, why), count in sorted(found.items(), key=lambda item: (item[0][0], item[0][1], item[0][2] or "")):
        text = " ".join((why or "").split()).replace("|", "\\|")
        lines.append(f"| {log} | {method or '-'} | {count} | {text[:240]} |")
    return [*lines, ""]


def to_json(run: Run) -> dict[str, object]:
    """What the command writes as JSON: of the plan the facts, and of a row its cell beside its values."""
    rows = [
        {**row.cell.to_json(), "values": dict(row.values), "problem": row.problem, "seconds": row.seconds}
        for row in run.rows
    ]
    return {
        "experiment": run.experiment.name,
        "quick": run.plan.quick,
        "runs": run.plan.runs,
        "computed": run.computed,
        "remarks": list(run.remarks),
        "rows": json.loads(json.dumps(rows)),
        "not_run": [{**row.cell.to_json(), "why": row.problem} for row in run.not_run],
    }
