"""Run the cells of an experiment: those that are finished are never computed again.

A finished cell is a JSON file under ``FOLDER/NAME/cells``. It is computed again when the sources that its values depend
on have changed, or the log. Ctrl-C leaves what is finished.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from veilog._files import atomic_target
from veilog.errors import OutputError, ParameterError
from veilog.experiments.experiment import Cell, Experiment, Plan, Row
from veilog.experiments.known_logs import find, missing
from veilog.experiments.versions import file_digest, version_of
from veilog.experiments.workers import Task, answers

__all__ = ["Progress", "Run", "run"]

Progress = Callable[[str, float | None], None]


@dataclass(frozen=True)
class Run:
    """What a run of an experiment gave."""

    experiment: Experiment
    plan: Plan
    rows: tuple[Row, ...]
    computed: int
    """Cells that were computed now; the others were there."""
    remarks: tuple[str, ...]


def run(
    experiment: Experiment,
    folder: Path,
    out: Path,
    *,
    runs: int | None = None,
    methods: Iterable[str] = (),
    only: Iterable[str] = (),
    quick: bool = False,
    processes: int = 1,
    progress: Progress = lambda text, fraction: None,
) -> Run:
    """Compute what is not there yet of an experiment on the logs of a folder; keep every cell under ``out``."""
    if runs is not None and runs < 1:
        raise ParameterError(f"runs must be at least 1, not {runs}.", parameter="runs")
    if processes < 1:
        raise ParameterError(f"processes must be at least 1, not {processes}.", parameter="processes")
    there = find(folder)
    logs = _chosen_logs(experiment, there, tuple(only), quick)
    plan = Plan(logs, runs or (experiment.quick_runs if quick else experiment.runs), quick)
    cells = list(_chosen_cells(experiment, plan, tuple(methods)))
    kept = out / experiment.name / "cells"
    try:
        kept.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"The folder cannot be made: {error.strerror}.", path=kept) from error

    versions = _versions(experiment, cells, there)
    done: dict[Cell, Row] = {}
    for cell in cells:
        row = _read(kept / _file_name(cell), cell, versions[cell])
        if row is not None:
            done[cell] = row
    left = [cell for cell in cells if cell not in done]
    tasks: list[Task] = [(cell, there[cell.log]) for cell in left]
    progress(f"{len(done)} of {len(cells)} cells were there", len(done) / len(cells))
    with contextlib.closing(answers(experiment.measure, tasks, processes)) as coming:  # also ends processes on Ctrl-C
        for answer in coming:
            cell = left[answer.place]
            row = Row(cell, answer.measured.values, answer.measured.problem, answer.seconds, versions[cell])
            done[cell] = row
            if answer.lasting:
                _keep(kept / _file_name(cell), row)
            progress(f"{len(done)} of {len(cells)} cells: {cell.in_words()}", len(done) / len(cells))
    remark = missing(experiment.logs, there)
    return Run(experiment, plan, tuple(done[cell] for cell in cells), len(left), (remark,) if remark else ())


def _chosen_logs(
    experiment: Experiment, there: Mapping[str, Path], only: tuple[str, ...], quick: bool
) -> tuple[str, ...]:
    """Those asked for; else the paper's that are there; else all, which answers the same questions on other logs."""
    unknown = [name for name in only if name not in there]
    if unknown:
        raise ParameterError(
            f"There is no log {unknown[0]!r} in the folder.", parameter="only", advice=f"There are: {', '.join(there)}."
        )
    if only:
        return only
    logs = tuple(name for name in experiment.logs if name in there) or tuple(there)
    small = tuple(name for name in logs if name in experiment.quick_logs)
    return small or logs if quick else logs


def _chosen_cells(experiment: Experiment, plan: Plan, methods: tuple[str, ...]) -> Iterable[Cell]:
    unknown = [name for name in methods if name not in experiment.methods]
    if unknown:
        possible = f"It has: {', '.join(experiment.methods)}." if experiment.methods else "It has none."
        raise ParameterError(
            f"Experiment {experiment.name!r} has no method {unknown[0]!r}.", parameter="methods", advice=possible
        )
    cells = [cell for cell in experiment.cells(plan) if not methods or cell.method in ("", *methods)]
    if not cells:
        raise ParameterError("With these methods and logs there is nothing to compute.", parameter="methods")
    return dict.fromkeys(cells)


def _versions(experiment: Experiment, cells: list[Cell], there: Mapping[str, Path]) -> dict[Cell, str]:
    models = any(cell.models for cell in cells)
    code = {
        method: version_of(method, experiment.sources, experiment.measure, models)
        for method in {cell.method for cell in cells}
    }
    logs = {log: file_digest(there[log]) for log in {cell.log for cell in cells}}
    return {cell: f"{code[cell.method]}-{logs[cell.log]}" for cell in cells}


def _file_name(cell: Cell) -> str:
    text = json.dumps(cell.to_json(), sort_keys=True)
    return f"{cell.log}-{cell.method or 'log'}-{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"


def _read(path: Path, cell: Cell, version: str) -> Row | None:
    """The finished cell, if it is there, whole, and of this version."""
    try:
        stored: dict[str, Any] = json.loads(path.read_text())
        if stored["version"] != version or stored["cell"] != cell.to_json():
            return None
        return Row(cell, dict(stored["values"]), stored["problem"], float(stored["seconds"]), version)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _keep(path: Path, row: Row) -> None:
    stored = {
        "cell": row.cell.to_json(),
        "version": row.version,
        "values": dict(row.values),
        "problem": row.problem,
        "seconds": row.seconds,
    }
    with atomic_target(path) as file:
        file.write(json.dumps(stored, indent=1, allow_nan=False).encode())
