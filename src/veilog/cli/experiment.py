"""The command that computes the papers again: experiment."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.markdown import Markdown
from rich.table import Table
from rich.text import Text

from veilog._process import machine_cores
from veilog.cli.shared.log_input import Output, show_progress
from veilog.cli.shared.options import WHOLE, Json
from veilog.errors import ParameterError
from veilog.experiments import experiment_named, results, runner


def experiment(
    name: Annotated[
        str | None, Parameter(help="Which table or figure: frontier, travag-figures, amun-table-6 and so on.")
    ] = None,
    *,
    logs: Annotated[Path | None, Parameter(help="Folder with the logs, one file each.")] = None,
    list_: Annotated[
        bool, Parameter(name="--list", negative="", help="List the papers' tables and figures, and the available logs.")
    ] = False,
    runs: Annotated[
        int | None, WHOLE, Parameter(help="Number of runs of each setting; default as in the paper.")
    ] = None,
    methods: Annotated[str | None, Parameter(help="Methods to run: a,b,c.")] = None,
    only: Annotated[str | None, Parameter(help="Logs of the folder to use: a,b,c.")] = None,
    quick: Annotated[bool, Parameter(negative="", help="Run a small selection, for a first look.")] = False,
    hours: Annotated[
        float | None,
        Parameter(help="Longest estimated time of a cell, in hours; 0.1 with --quick, else no limit."),
    ] = None,
    out: Annotated[Path, Parameter(help="Folder for finished cells and results.")] = Path("experiments"),
    processes: Annotated[int | None, WHOLE, Parameter(help="Number of processes; default two.")] = None,
    json: Json = None,
) -> None:
    """Rerun a paper's table or figure on the logs of a folder,
    or resume a stopped run."""
    output = Output(json)
    if list_:
        _list(output, logs, out)
        return
    if name is None or logs is None:
        raise ParameterError(
            "experiment-not-named" if name is None else "experiment-folder-not-named",
            parameter="name" if name is None else "logs",
        )
    chosen = experiment_named(name)
    with show_progress() as progress:
        done = runner.run(
            chosen,
            logs,
            out,
            runs=runs,
            methods=_split_names(methods, "methods"),
            only=_split_names(only, "only"),
            quick=quick,
            hours=hours,
            processes=min(2, machine_cores()) if processes is None else processes,
            progress=progress,
        )
    command = f"veilog experiment {name} --logs FOLDER"
    for option, value in (("runs", runs), ("methods", methods), ("only", only), ("hours", hours)):
        command += "" if value is None else f" --{option} {value}"
    found = results.write(done, out, command + (" --quick" if quick else ""))
    output.json(results.to_json(done))
    output.show(Markdown(results.markdown(done, command + (" --quick" if quick else ""))))
    there = len(done.rows) - done.computed
    output.show(Text(f"{done.computed} cells computed, {there} were there already.", style="bold"))
    for path in (found.page, found.parquet, found.csv, *found.plots):
        output.show(Text(f"written: {path}", style="dim"))
    if found.no_plots is not None:
        output.show(Text(found.no_plots, style="dim"))


def _list(output: Output, logs: Path | None, out: Path) -> None:
    """Show the manifest: each table and figure with its experiment, logs and state."""
    found = results.figures(logs, out)
    output.json([asdict(one) for one in found])
    table = Table("paper", "table or figure", "experiment", "logs", "status", box=None, header_style="bold")
    for one in found:
        absent = set(one.not_here)
        names = ", ".join(f"{log} (not here)" if log in absent else log for log in one.logs)
        table.add_row(one.paper, f"{one.number}: {one.title}", one.experiment, names, one.status)
    output.show(table)
    where = {log: doi for one in found for log, doi in one.not_here.items()}
    if where:
        told = "; ".join(f"{log}: doi:{doi}" if doi else f"{log}: not public" for log, doi in where.items())
        output.show(Text(f"Logs that are not here are published at {told}."))


def _split_names(text: str | None, option: str) -> tuple[str, ...]:
    if text is None:
        return ()
    names = tuple(part.strip() for part in text.split(",") if part.strip())
    if not names:
        raise ParameterError("option-not-names", parameter=option, option=option)
    return names
