"""The papers' tables and figures with the logs that are here, and how much of each is done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from veilog.experiments import EXPERIMENTS, FIGURES
from veilog.experiments.experiment import Plan
from veilog.experiments.known_logs import LOGS, find
from veilog.experiments.runner import kept_file, kept_rows


@dataclass(frozen=True)
class ListedFigure:
    """A table or figure of the manifest, and how it stands here."""

    paper: str
    number: str
    title: str
    experiment: str
    logs: tuple[str, ...]
    not_here: Mapping[str, str]
    """Logs that the folder lacks, and the DOI under which each is published; empty for one that is not public."""
    status: str


def figures(folder: Path | None, out: Path) -> list[ListedFigure]:
    """Return every table and figure of the papers; without a folder all logs count as not here."""
    wanted = dict.fromkeys(log for figure in FIGURES for log in figure.logs)
    there = {} if folder is None else find(folder, tuple(wanted))
    counted: dict[str, str] = {}
    found = []
    for one in FIGURES:
        if one.experiment and one.experiment not in counted:
            counted[one.experiment] = _finished(one.experiment, there, out)
        status = counted[one.experiment] if one.experiment else f"worked example, checked by {one.test}"
        absent = {log: LOGS[log].doi for log in one.logs if log not in there}
        if one.logs and len(absent) == len(one.logs):
            status = "log not here"
        found.append(ListedFigure(one.paper, one.number, one.title, one.experiment, one.logs, absent, status))
    return found


def _finished(name: str, there: Mapping[str, Path], out: Path) -> str:
    """Return how many cells of an experiment's logs that are here are finished."""
    experiment = EXPERIMENTS[name]
    logs = tuple(log for log in experiment.logs if log in there)
    cells = {cell.key for cell in experiment.cells(Plan(logs, experiment.runs, False))}
    done = sum(row.cell.key in cells for row in kept_rows(kept_file(out, experiment)))
    return f"{done} of {len(cells)} cells finished"
