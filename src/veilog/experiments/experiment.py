"""What an experiment is: cells to compute, how one is measured, and how they become tables and plots.

A benchmark (see ``bench/``) is an experiment whose values are times and memory.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from veilog._plain import InJson, ToJson
from veilog.errors import ParameterError
from veilog.experiments.known_logs import part_of
from veilog.experiments.plots import Drawing
from veilog.logs import files
from veilog.logs.eventlog import EventLog
from veilog.measures.persons import person_of
from veilog.measures.purposes.sides import split

Value: TypeAlias = "str | int | float | bool"
Number: TypeAlias = "float | int | None"
MOST_RUNS = 10_000


class Reason(StrEnum):
    """Why a cell has no value: the paper's or ours."""

    LOG_NOT_PUBLIC = "log not public"
    LOG_NOT_HERE = "log not here"
    PAPER_GIVES_NONE = "paper gives none"
    OVER_HOURS = "over {limit:g} hours (about {estimate:g})"


@dataclass(frozen=True)
class Cell(ToJson):
    """One computation: a log, a method with its settings (or none), and the number of the run, which is its seed."""

    log: str
    """The name of a log in the folder; of one that the measure makes up, or empty, where there is no such file."""
    method: str = ""
    settings: Annotated[tuple[tuple[str, Value], ...], InJson(as_=dict)] = ()
    """Keywords of :func:`veilog.release`; where there is no method, what the measure needs."""
    run: int = 0
    models: float = 0.0
    """Seconds that a process model may take; 0 where none is wanted."""
    prefixes: Annotated[int, InJson(left_out="at its default")] = 0
    """Prefixes from which precision is estimated; 0 for all."""

    def get(self, name: str, default: Value = "") -> Value:
        return dict(self.settings).get(name, default)

    @staticmethod
    def from_json(told: Mapping[str, Any]) -> Cell:
        """Return the cell that was written as JSON."""
        prefixes = int(told.get("prefixes", 0))
        return Cell(told["log"], told["method"], tuple(told["settings"].items()), told["run"], told["models"], prefixes)

    @property
    def key(self) -> str:
        """Equal for cells that ask the same, in whatever order their settings are."""
        return json.dumps(self.to_json(), sort_keys=True)

    def in_words(self) -> str:
        settings = [f"{name} {value}" for name, value in self.settings if value is not True]
        return ", ".join([*(text for text in (self.log, self.method) if text), *settings, f"run {self.run}"])


@dataclass(frozen=True)
class Given:
    """What the measure of a cell is given: the file of its log and what is in it, and a place for files of its own."""

    path: Path | None
    folder: Path = Path()
    """Where the measure may keep what it makes up: a large log, say."""
    name: str = ""
    """The name of the log; some are a part of the one in the file (:mod:`veilog.experiments.known_logs`)."""
    part: EventLog | None = None
    """The log where it is a part of the one in the file."""

    @cached_property
    def log(self) -> EventLog:
        return part_of(self.name, files.read(self.file)) if self.part is None else self.part

    def split(self, share: float, seed: int) -> tuple[Given, EventLog]:
        """Return what is given of a random part of the cases, to make a release of, and the log of the other cases,
        which that release knows nothing of; where a column tells persons, of nobody who has cases in it."""
        seen, unseen = split(self.log, share, seed, person=person_of(self.log))
        assert isinstance(seen, EventLog)
        assert isinstance(unseen, EventLog)
        return replace(self, part=seen), unseen

    @property
    def file(self) -> Path:
        if self.path is None:
            raise ParameterError("This needs the file of a log, and there is none.", parameter="logs")
        return self.path


@dataclass(frozen=True)
class Measured:
    """Named values of a cell; None where there is none, ``problem`` says why."""

    values: Mapping[str, Number]
    problem: str | None = None
    texts: Mapping[str, str] = field(default_factory=dict)
    """What was found that is no number: the attack that won, say."""


@dataclass(frozen=True)
class Row:
    """A finished cell."""

    cell: Cell
    values: Mapping[str, Number]
    problem: str | None
    seconds: float
    version: str
    """Fingerprints of its method and of its measure, and a digest of its log: ``METHOD.MEASURE-LOG``."""
    texts: Mapping[str, str] = field(default_factory=dict)
    machine: str = ""
    made_by: str = ""
    """The version that computed it, where that is another: today's gave the same in a sample of such rows."""

    def to_json(self) -> dict[str, object]:
        return {
            "cell": self.cell.to_json(),
            "version": self.version,
            **({"made_by": self.made_by} if self.made_by else {}),
            "values": dict(self.values),
            "problem": self.problem,
            "seconds": self.seconds,
            "texts": dict(self.texts),
            "machine": self.machine,
        }

    @staticmethod
    def from_json(told: Mapping[str, Any]) -> Row:
        cell = Cell.from_json(told["cell"])
        values, texts = dict(told["values"]), dict(told["texts"])
        seconds = float(told["seconds"])
        versions = str(told["version"]), str(told.get("made_by", ""))
        return Row(cell, values, told["problem"], seconds, versions[0], texts, str(told["machine"]), versions[1])

    def get(self, measure: str) -> float | None:
        value = self.values.get(measure)
        return None if value is None else float(value)


@dataclass(frozen=True)
class Plan:
    """What is to be run: on which logs, how often, and whether a small part is enough."""

    logs: tuple[str, ...]
    runs: int
    quick: bool
    options: Mapping[str, str] = field(default_factory=dict)
    """Further wishes that a benchmark has names for, such as another Python to compare with."""


@dataclass(frozen=True)
class Table:
    """One table of a report: its title, its head and its lines."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""

    def markdown(self) -> str:
        lines = [f"## {self.title}", ""]
        lines += [_line(self.head), "|" + "---|" * len(self.head), *(_line(row) for row in self.rows)]
        return "\n".join([*lines, "", *([self.note, ""] if self.note else [])])


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


@dataclass(frozen=True)
class Plot:
    """A drawing, and the name of its file without suffix."""

    name: str
    drawing: Drawing


def _no_plots(rows: Sequence[Row]) -> list[Plot]:
    return []


def _no_estimate(cell: Cell) -> float:
    return 0.0


@dataclass(frozen=True)
class Experiment:
    """A table or figure of a paper, a comparison of our own, or a benchmark.

    All functions are top-level: processes import them.
    """

    name: str
    what: str
    cells: Callable[[Plan], Iterator[Cell]]
    measure: Callable[[Given, Cell], Measured]
    tables: Callable[[Sequence[Row]], list[Table]]
    plots: Callable[[Sequence[Row]], list[Plot]] = _no_plots
    paper: str = ""
    logs: tuple[str, ...] = ()
    """Those of the paper; empty where every log is wanted."""
    methods: tuple[str, ...] = ()
    measures: tuple[str, ...] = ()
    """What becomes a column of the files of results."""
    runs: int = 10
    quick_runs: int = 1
    quick_logs: tuple[str, ...] = ("sepsis", "bpic2013_incidents", "receipt")
    small: Plan | None = None
    """The plan of the cells by which its measure's fingerprint is made, on a small synthetic log in the place of each
    log. None where it measures time or memory, or takes long: its rows are known by their methods alone."""
    hours: Callable[[Cell], float] = _no_estimate
    """About how many hours a cell takes."""
    notes: tuple[str, ...] = ()
    alone: bool = False
    """Every cell in a fresh process, one after the other: where time or memory is measured."""
    page: str = ""
    """The page of the docs that has its tables."""


def of(rows: Iterable[Row], log: str | None = None, method: str | None = None, **settings: Value) -> list[Row]:
    """The rows of a log and a method with these settings (compared as text: ``0.1`` is the epsilon 0.1)."""
    return [
        row
        for row in rows
        if (log is None or row.cell.log == log)
        and (method is None or row.cell.method == method)
        and all(str(row.cell.get(name)) == str(value) for name, value in settings.items())
    ]


def known(rows: Iterable[Row], measure: str) -> list[float]:
    return [value for row in rows if (value := row.get(measure)) is not None]


def mean(rows: Iterable[Row], measure: str) -> float | None:
    values = known(rows, measure)
    return statistics.fmean(values) if values else None


def spread(rows: Sequence[Row], measure: str, form: str = ".3f", published: float | None = None) -> str:
    """Mean ± standard deviation of the runs that have a value, how many do if not all, and the paper's value."""
    values = known(rows, measure)
    if not rows:
        text = "-"
    elif not values:
        text = "not computed"
    else:
        text = format(statistics.fmean(values), form)
        if len(values) > 1:
            text += f" ± {format(statistics.stdev(values), form)}"
        if len(values) < len(rows):
            text += f" ({len(values)} of {len(rows)} runs)"
    return text if published is None else f"{text} [{format(published, form)}]"
