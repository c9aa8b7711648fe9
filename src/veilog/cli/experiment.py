"""The command that re-runs the papers: experiment."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.markdown import Markdown
from rich.text import Text

from veilog.cli.shared.common import Json, Output, shown_progress
from veilog.cli.shared.numbers import WHOLE
from veilog.errors import ParameterError
from veilog.experiments import experiment_named, results, runner

__all__ = ["experiment"]


def experiment(
    name: Annotated[str, Parameter(help="Which table or figure: frontier, travag-figures, amun-table-6 and so on.")],
    *,
    logs: Annotated[Path, Parameter(help="Folder of the logs, one file each.")],
    runs: Annotated[int | None, WHOLE, Parameter(help="Runs of every setting; by default as in the paper.")] = None,
    methods: Annotated[str | None, Parameter(help="Only these methods: a,b,c.")] = None,
    only: Annotated[str | None, Parameter(help="Only these logs of the folder: a,b,c.")] = None,
    quick: Annotated[bool, Parameter(negative="", help="A small part, for a first look.")] = False,
    out: Annotated[Path, Parameter(help="Folder that keeps finished cells and gets the results.")] = Path(
        "experiments"
    ),
    processes: Annotated[int | None, WHOLE, Parameter(help="Processes; by default two.")] = None,
    json: Json = None,
) -> None:
    """Re-run a paper's table or figure on the logs of a folder, or go on with a run that was stopped."""
    output = Output(json)
    chosen = experiment_named(name)
    with shown_progress() as progress:
        done = runner.run(
            chosen,
            logs,
            out,
            runs=runs,
            methods=_listed(methods, "methods"),
            only=_listed(only, "only"),
            quick=quick,
            processes=min(2, os.cpu_count() or 1) if processes is None else processes,
            progress=progress,
        )
    command = f"veilog experiment {name} --logs FOLDER"
    for option, value in (("runs", runs), ("methods", methods), ("only", only)):
        command += "" if value is None else f" --{option} {value}"
    found = results.write(done, out, command + (" --quick" if quick else ""))
    output.json(results.to_json(done))
    output.show(Markdown(results.markdown(done, command + (" --quick" if quick else ""))))
    there = len(done.rows) - done.computed
    output.show(Text(f"{done.computed} cells computed, {there} were there already.", style="bold"))
    for path in (found.page, found.parquet, found.csv, *found.plots):
        output.show(Text(f"written: {path}", style="dim"))
    if found.no_png is not None:
        output.show(Text(found.no_png, style="dim"))


def _listed(text: str | None, option: str) -> tuple[str, ...]:
    if text is None:
        return ()
    names = tuple(part.strip() for part in text.split(",") if part.strip())
    if not names:
        raise ParameterError(f"--{option} takes names: a,b,c.", parameter=option)
    return names
