"""Cells in processes of their own: one that dies (of memory, say) costs its cell and nothing else."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from multiprocessing.connection import Connection, wait
from pathlib import Path

from veilog._process import Child, exit_when_terminated
from veilog.errors import VeilogError
from veilog.experiments.experiment import Cell, Given, Measured

Measure = Callable[[Given, Cell], Measured]
Task = tuple[Cell, Path | None, Path]
"""A cell, the file of its log if it has one, and the folder for what its measure makes up."""


@dataclass(frozen=True)
class Answer:
    """What became of a task. ``lasting`` is False where the same task may well succeed another time."""

    place: int
    measured: Measured
    seconds: float
    lasting: bool = True


@lru_cache(maxsize=2)
def _given(path: Path | None, folder: Path, name: str, changed: int) -> Given:
    """The log, read once for neighbouring cells; ``changed`` is when the file was written."""
    return Given(path, folder, name)


def _measured(measure: Measure, place: int, task: Task) -> Answer:
    cell, path, folder = task
    started = time.perf_counter()
    lasting = True
    try:
        found = measure(_given(path, folder, cell.log, 0 if path is None else path.stat().st_mtime_ns), cell)
    except VeilogError as error:
        found = Measured({}, str(error))
    except OSError as error:
        found, lasting = Measured({}, f"The log cannot be read: {error.strerror}."), False
    except MemoryError:
        found, lasting = Measured({}, "There was not enough memory."), False
    return Answer(place, found, time.perf_counter() - started, lasting)


def answers(measure: Measure, tasks: Sequence[Task], processes: int, alone: bool = False) -> Generator[Answer]:
    """The answers as they come. With one process everything happens in this one; ``alone``, each in a fresh one, one
    after the other."""
    if alone:
        for place, task in enumerate(tasks):
            for answer in _by_workers(measure, [task], 1):
                yield replace(answer, place=place)
    elif processes == 1 or len(tasks) < 2:
        for place, task in enumerate(tasks):
            yield _measured(measure, place, task)
    else:
        yield from _by_workers(measure, tasks, processes)


def _by_workers(measure: Measure, tasks: Sequence[Task], processes: int) -> Generator[Answer]:
    workers: dict[Connection, _Worker] = {}
    waiting = list(enumerate(tasks))[::-1]

    def begin() -> None:
        worker = _Worker(Child(_serve, measure))
        workers[worker.child.pipe] = worker
        worker.give(*waiting.pop())

    try:
        for _ in range(min(processes, len(tasks))):
            begin()
        while workers:
            for pipe in wait(list(workers)):
                assert isinstance(pipe, Connection)
                worker = workers[pipe]
                try:
                    answer = pipe.recv()
                except (EOFError, ConnectionResetError):
                    del workers[pipe]
                    yield worker.died()
                    if waiting:
                        begin()
                    continue
                if waiting:
                    worker.give(*waiting.pop())
                else:
                    worker.stop()
                    del workers[pipe]
                yield answer
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
        with contextlib.suppress(BrokenPipeError):  # it has died: the next recv says so
            self.child.pipe.send((place, task))

    def died(self) -> Answer:
        why = f"Its process ended with {self.child.end(5)}; there may not have been enough memory."
        return Answer(self.place, Measured({}, why), time.perf_counter() - self.started, lasting=False)

    def stop(self) -> None:
        """Ends the process, at first by letting it end itself, so that it can end those it started."""
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
        pipe.send(_measured(measure, *task))
