"""Runs of experiments: cells in child processes; a dead one costs one cell only."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import platform
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.metadata import version
from multiprocessing.connection import Connection, wait
from pathlib import Path

from veilog._process import Child, check_processes, exit_when_terminated, machine_memory
from veilog.errors import OutputError, ParameterError, VeilogError, meant
from veilog.experiments.experiment import (
    LOGS,
    MOST_RUNS,
    Cell,
    Experiment,
    Given,
    Measured,
    Profile,
    Reason,
    Row,
    find,
    missing_logs,
)
from veilog.experiments.fingerprints import measure_fingerprint, method_fingerprint
from veilog.messages import Message

Measure = Callable[[Given, Cell], Measured]
Task = tuple[Cell, Path | None, Path]
"""A cell, the file of its log if any, and the folder for what its measure makes."""


@dataclass(frozen=True)
class CellResult:
    """The result of a task; ``lasting`` is False if the task may succeed another time."""

    place: int
    measured: Measured
    seconds: float
    lasting: bool = True


@lru_cache(maxsize=2)
def _read_log(path: Path | None, folder: Path, name: str, changed: int) -> Given:
    """Return the input of a cell, cached by ``changed``, the time of the log's file."""
    return Given(path, folder, name)


def _measure_task(measure: Measure, place: int, task: Task) -> CellResult:
    cell, path, folder = task
    started = time.perf_counter()
    lasting = True
    try:
        found = measure(_read_log(path, folder, cell.log, 0 if path is None else path.stat().st_mtime_ns), cell)
    except VeilogError as error:
        found = Measured({}, str(error))
    except OSError as error:
        found, lasting = Measured({}, f"The log cannot be read: {error.strerror}."), False
    except MemoryError:
        found, lasting = Measured({}, "There was not enough memory."), False
    return CellResult(place, found, time.perf_counter() - started, lasting)


def answers(measure: Measure, tasks: Sequence[Task], processes: int, alone: bool = False) -> Generator[CellResult]:
    """Yield the results as they come.

    With one process everything happens in this one. ``alone`` runs each task in a fresh one, one after the other.
    """
    if not alone and (processes == 1 or len(tasks) < 2):
        for place, task in enumerate(tasks):
            yield _measure_task(measure, place, task)
    else:
        yield from _map_by_workers(measure, tasks, 1 if alone else processes, alone)


def _map_by_workers(measure: Measure, tasks: Sequence[Task], processes: int, alone: bool) -> Generator[CellResult]:
    """Yield the results of processes with many tasks each, or one each if ``alone``."""
    workers: dict[Connection, _Worker] = {}
    waiting = list(enumerate(tasks))[::-1]

    def begin() -> None:
        while waiting and len(workers) < processes:
            worker = _Worker(Child(_serve, measure))
            workers[worker.child.pipe] = worker
            worker.give(*waiting.pop())

    try:
        begin()
        while workers:
            for pipe in wait(list(workers)):
                assert isinstance(pipe, Connection)
                worker = workers[pipe]
                try:
                    answer = pipe.recv()
                except (EOFError, ConnectionResetError):
                    del workers[pipe]
                    answer = worker.died()
                else:
                    if waiting and not alone:
                        worker.give(*waiting.pop())
                    else:
                        worker.stop()
                        del workers[pipe]
                yield answer
                begin()
    finally:
        for worker in workers.values():
            worker.child.ask_to_stop()
        for worker in workers.values():
            worker.stop()


@dataclass
class _Worker:
    child: Child
    place: int = -1
    started: float = 0.0

    def give(self, place: int, task: Task) -> None:
        self.place, self.started = place, time.perf_counter()
        with contextlib.suppress(BrokenPipeError):  # it has died, which the next recv reports
            self.child.pipe.send((place, task))

    def died(self) -> CellResult:
        why = Message("experiment-process-ended", status=self.child.end(5)).english
        return CellResult(self.place, Measured({}, why), time.perf_counter() - self.started, lasting=False)

    def stop(self) -> None:
        """End the process; it may end by itself first, and so end those it started."""
        with contextlib.suppress(OSError):
            self.child.pipe.send(None)
        self.child.end(10)


def _serve(pipe: Connection, measure: Measure) -> None:
    exit_when_terminated()
    while True:
        try:
            task = pipe.recv()
        except EOFError:
            return
        if task is None:
            return
        pipe.send(_measure_task(measure, *task))


Progress = Callable[[str, float | None], None]
_QUICK_HOURS = 0.1
"""Hours above which a cell is no part of a first look."""


@dataclass(frozen=True)
class ExperimentRun:
    """The results of a run of an experiment."""

    experiment: Experiment
    profile: Profile
    rows: tuple[Row, ...]
    computed: int
    """Number of cells that were computed now; the others were there."""
    remarks: tuple[str, ...]
    not_run: tuple[Row, ...] = ()
    """Cells that were not computed, with the :class:`Reason` of each."""


def run(
    experiment: Experiment,
    folder: Path | None,
    out: Path,
    *,
    runs: int | None = None,
    methods: Iterable[str] = (),
    only: Iterable[str] = (),
    quick: bool = False,
    hours: float | None = None,
    options: Mapping[str, str] | None = None,
    processes: int = 1,
    progress: Progress = lambda text, fraction: None,
) -> ExperimentRun:
    """Compute the missing cells of an experiment, and keep every cell under ``out``.

    The logs are those of a folder; without one, the experiment makes its own. Cells that take longer than ``hours`` are
    left out.
    """
    if runs is not None and not 1 <= runs <= MOST_RUNS:
        raise ParameterError("experiment-runs-out-of-range", parameter="runs", most_runs=MOST_RUNS, runs=runs)
    check_processes(processes)
    there = {} if folder is None else find(folder, experiment.logs)
    logs = _choose_logs(experiment, there, tuple(only), quick)
    profile = Profile(logs, runs or (experiment.quick_runs if quick else experiment.runs), quick, options or {})
    chosen = list(_choose_cells(experiment, profile, tuple(methods)))
    limit = hours if hours is not None else _QUICK_HOURS if quick else math.inf
    estimates = {cell: experiment.hours(cell) for cell in chosen}
    cells = [cell for cell, hours in estimates.items() if hours <= limit]
    place = rows_file(out, experiment)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError("folder-not-made", path=place.parent, reason=error.strerror) from error
    done, computed = _compute_rows(experiment, cells, there, place, processes, progress)
    remark = missing_logs(experiment.logs, there)
    absent = () if only else tuple(name for name in experiment.logs if name not in there)
    elsewhere = _cells_of(experiment, replace(profile, logs=absent, runs=1), tuple(methods))
    not_run = [
        Row(cell, {}, Reason.OVER_HOURS.format(limit=limit, estimate=hours), 0, "")
        for cell, hours in estimates.items()
        if hours > limit
    ]
    not_run += [Row(c, {}, _absence_reason(c.log), 0, "") for c in elsewhere if c.log in absent]
    rows = tuple(done[cell] for cell in cells)
    return ExperimentRun(experiment, profile, rows, computed, (remark,) if remark else (), tuple(not_run))


def _compute_rows(
    experiment: Experiment,
    cells: Sequence[Cell],
    there: Mapping[str, Path],
    place: Path,
    processes: int,
    progress: Progress,
) -> tuple[dict[Cell, Row], int]:
    """Return the rows of these cells, and the number of those not found in the file."""
    versions = versions_of(experiment, cells, there)
    kept = {row.cell.key: row for row in read_rows(place)}
    done = {cell: row for cell in cells if (row := kept.get(cell.key)) and row.version == versions[cell]}
    left = [cell for cell in cells if cell not in done]
    tasks: list[Task] = [(cell, there.get(cell.log), place.parent) for cell in left]
    progress(f"{len(done)} of {len(cells)} cells were there", len(done) / max(1, len(cells)))
    begun, there_already = time.monotonic(), len(done)
    coming = answers(experiment.measure, tasks, processes, experiment.alone)
    with contextlib.closing(coming):  # also ends processes on Ctrl-C
        for answer in coming:
            cell, found = left[answer.place], answer.measured
            row = Row(cell, found.values, found.problem, answer.seconds, versions[cell], found.texts, machine())
            done[cell] = row
            if answer.lasting:
                _keep(place, row)
            seconds = (time.monotonic() - begun) / (len(done) - there_already) * (len(cells) - len(done))
            told = f"{len(done)} of {len(cells)} cells, about {_duration(seconds)} left: {cell.in_words()}"
            progress(told, len(done) / len(cells))
    return done, len(left)


def _duration(seconds: float) -> str:
    return f"{seconds / 3600:.1f} h" if seconds >= 3600 else f"{math.ceil(seconds / 60)} min"


def _absence_reason(log: str) -> str:
    return f"{Reason.LOG_NOT_HERE}: doi:{LOGS[log].doi}" if LOGS[log].doi else Reason.LOG_NOT_PUBLIC


def _choose_logs(
    experiment: Experiment, there: Mapping[str, Path], only: tuple[str, ...], quick: bool
) -> tuple[str, ...]:
    """Return the chosen logs, else the paper's that are here, else all as other data."""
    unknown = [name for name in only if name not in there]
    if unknown:
        raise ParameterError(
            "experiment-log-unknown",
            parameter="only",
            unknown=unknown[0],
            meant=meant(unknown[0], there),
            names=", ".join(there),
        )
    if only:
        return only
    logs = tuple(name for name in experiment.logs if name in there) or tuple(there)
    small = tuple(name for name in logs if name in experiment.quick_logs)
    return (small or logs) if quick else logs


def _choose_cells(experiment: Experiment, profile: Profile, methods: tuple[str, ...]) -> Iterable[Cell]:
    unknown = [name for name in methods if name not in experiment.methods]
    if unknown:
        raise ParameterError(
            "experiment-method-unknown" if experiment.methods else "experiment-without-methods",
            parameter="methods",
            name=experiment.name,
            unknown=unknown[0],
            meant=meant(unknown[0], experiment.methods),
            names=", ".join(experiment.methods),
        )
    cells = _cells_of(experiment, profile, methods)
    if not cells:
        raise ParameterError("experiment-nothing-to-compute", parameter="methods")
    return cells


def _cells_of(experiment: Experiment, profile: Profile, methods: tuple[str, ...]) -> dict[Cell, None]:
    return dict.fromkeys(cell for cell in experiment.cells(profile) if not methods or cell.method in ("", *methods))


def versions_of(experiment: Experiment, cells: Iterable[Cell], there: Mapping[str, Path]) -> dict[Cell, str]:
    """Return the version of each cell with the present code and these logs.

    A version is ``METHOD.MEASURE-LOG``, two fingerprints and a digest. A missing log has no digest.
    """
    cells = list(cells)
    logs = {log: file_digest(there[log]) for log in {cell.log for cell in cells} if log in there}
    return {
        cell: f"{_method_of(cell)}.{measure_fingerprint(experiment, cell.method)}-{logs.get(cell.log, '')}"
        for cell in cells
    }


def _method_of(cell: Cell) -> str:
    return method_fingerprint(cell.method, cell.get("as_published", False) is True) if cell.method else ""


def rows_file(out: Path, experiment: Experiment) -> Path:
    """Return the path of an experiment's finished cells."""
    return out / experiment.name / "cells.jsonl"


def read_rows(path: Path) -> list[Row]:
    """Return the finished cells of a file, each once and newest, whole lines only."""
    found: dict[str, Row] = {}
    try:
        lines = path.read_text(errors="replace").splitlines()
    except FileNotFoundError:
        return []
    for line in lines:
        with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):
            row = Row.from_json(json.loads(line))
            found[row.cell.key] = row
    return list(found.values())


def _keep(path: Path, row: Row) -> None:
    """Add a line; an incomplete one before it, as a full disk leaves, is ended first."""
    with path.open("ab+") as file:
        if file.tell():
            file.seek(-1, 2)
        broken = file.read(1) not in (b"", b"\n")
        file.write(b"\n" * broken + json.dumps(row.to_json(), allow_nan=False).encode() + b"\n")


@lru_cache(maxsize=1)
def machine() -> str:
    """Return the machine in words: processors, memory if reported, Python and numpy."""
    whole = machine_memory()
    memory = [f"{whole / 2**30:.0f} GiB"] if whole else []
    parts = [f"{os.cpu_count()} cores {platform.machine()}", *memory, platform.system()]
    return ", ".join([*parts, f"Python {platform.python_version()}", f"numpy {version('numpy')}"])


def file_digest(path: Path) -> str:
    """Return the digest of a log, so that another log under its name is another cell."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]
