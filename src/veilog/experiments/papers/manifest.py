"""The manifest of the papers: their tables and figures with results, as data.

Its experiments compute them again. Each paper is a TOML file next to this module. An experiment of it names a measure,
series and figures. Its CSV file has a row for each cell of the paper: series, log, axes, settings of the method, and
the published values. A column ``run NAME`` is the setting NAME if the figure's axis has another value; ``-`` leaves the
setting out.
"""

from __future__ import annotations

import csv
import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from typing import Any

from veilog._plain import tables_of
from veilog.errors import ParameterError
from veilog.experiments import papers
from veilog.experiments.experiment import (
    PREFIXES,
    Cell,
    Drawing,
    Experiment,
    HeatMap,
    HeatMaps,
    Lines,
    Plot,
    Profile,
    Reason,
    Row,
    Series,
    Table,
    Value,
    known,
    spread,
)
from veilog.experiments.papers import measures
from veilog.methods import METHODS

PAPERS = ("travag", "travag-metrics", "travas", "quantification", "amun", "sacofa")
_EXACT = ("epsilon", "delta", "guessing_advantage")
"""Settings that stay text, as 0.1 is no float."""
_QUICK_SECONDS = 60.0
Settings = tuple[tuple[str, Value], ...]


@dataclass(frozen=True)
class PaperSeries:
    """A method of a figure with the settings that all of its cells share."""

    name: str
    method: str = ""
    settings: Mapping[str, Value] = field(default_factory=dict)
    runs: int = 0
    """Largest number of runs; 0 for as many as the experiment has."""
    hours: Mapping[str, float] = field(default_factory=dict)
    """Hours of one run on a log, if it is long."""
    why: Mapping[str, str] = field(default_factory=dict)
    """Known reasons why veilog's value of a measure differs."""


@dataclass(frozen=True)
class PaperCell:
    """A cell of the paper: its place, its computation, and the published values."""

    series: PaperSeries
    log: str
    axes: Mapping[str, str]
    settings: Settings
    published: Mapping[str, float]

    @property
    def key(self) -> tuple[str, str, frozenset[tuple[str, Value]]]:
        return self.log, self.series.method, frozenset(self.settings)


@dataclass(frozen=True)
class PaperFigure:
    """A numbered table or figure; a worked example has a test in place of measures."""

    number: str
    title: str
    measures: tuple[str, ...] = ()
    logs: tuple[str, ...] = ()
    series: tuple[str, ...] = ()
    """Series with these measures; empty for all."""
    test: str = ""
    paper: str = ""
    experiment: str = ""


@dataclass(frozen=True)
class Reproduction:
    """Cells of a paper that are computed together, and the figures that show them."""

    name: str
    axes: tuple[str, ...]
    logs: tuple[str, ...]
    published: tuple[PaperCell, ...]
    figures: tuple[PaperFigure, ...]
    models: float
    quick: Mapping[str, Sequence[str]]

    def of_log(self, log: str, quick: bool = False) -> list[PaperCell]:
        """Return the paper's cells of a log.

        A log that the paper does not have gets the cells of its first log, without values.
        """
        own = [cell for cell in self.published if cell.log == log]
        if not own:
            first = (cell for cell in self.published if cell.log == self.logs[0])
            own = [
                replace(cell, log=log, published={}, settings=_settings_for_other_log(cell.settings)) for cell in first
            ]
        if not quick:
            return own
        few = self.quick.items()
        return [cell for cell in own if all(cell.axes[name] in ("", *chosen) for name, chosen in few)]

    def cells(self, profile: Profile) -> Iterator[Cell]:
        """Yield all cells once before any is run again; equal settings are one cell."""
        seconds = min(self.models, _QUICK_SECONDS) if profile.quick else self.models
        prefixes = PREFIXES if profile.quick and self.models else 0
        for log in profile.logs:
            for run in range(profile.runs):
                for cell in {cell.key: cell for cell in self.of_log(log, profile.quick)}.values():
                    if run < (cell.series.runs or profile.runs):
                        yield Cell(log, cell.series.method, cell.settings, run, seconds, prefixes)

    def hours(self, cell: Cell) -> float:
        """Return the estimated hours of a cell on its log, or on the slowest known one."""
        own = (c.series.hours for c in self.published if c.key[1:] == (cell.method, frozenset(cell.settings)))
        known_hours = next(own, {})
        return known_hours.get(cell.log, max(known_hours.values(), default=0.0))

    def _paired_cells(
        self, rows: Sequence[Row]
    ) -> Iterator[tuple[PaperFigure, str, str, list[tuple[PaperCell, list[Row]]]]]:
        """Yield for each figure, measure and log the paper's cells with veilog's rows."""
        found: dict[object, list[Row]] = {}
        for row in rows:
            found.setdefault((row.cell.log, row.cell.method, frozenset(row.cell.settings)), []).append(row)
        for figure in self.figures:
            for measure in figure.measures:
                for log in dict.fromkeys(row.cell.log for row in rows):
                    # a log that the paper does not have stands with its first one
                    if figure.logs and (log if log in self.logs else self.logs[0]) not in figure.logs:
                        continue
                    own = [cell for cell in self.of_log(log) if not figure.series or cell.series.name in figure.series]
                    if beside := [(cell, found[cell.key]) for cell in own if cell.key in found]:
                        yield figure, measure, log, beside

    def tables(self, rows: Sequence[Row]) -> list[Table]:
        """Return a table of each figure and measure: both values, deviation, and reason."""
        lines_: dict[tuple[str, str], list[tuple[str, ...]]] = {}
        for figure, measure, log, beside in self._paired_cells(rows):
            title = f"{figure.number}: {figure.title}", measure.replace("_", " ")
            for cell, own in beside:
                place = (cell.axes[axis] for axis in self.axes)
                lines_.setdefault(title, []).append(
                    (log, cell.series.name, *place, *_comparison_columns(cell, own, measure))
                )
        head = ("log", "series", *self.axes, "paper", "here", "deviation", "why")
        return [Table(", ".join(title), head, tuple(found)) for title, found in lines_.items()]

    def plots(self, rows: Sequence[Row]) -> list[Plot]:
        """Return a drawing for each figure, measure and log that has one or two axes."""
        drawn = []
        for figure, measure, log, beside in self._paired_cells([row for row in rows if row.values]):
            names = list(dict.fromkeys(cell.series.name for cell, _ in beside))
            own = {name: [(c, known(r, measure)) for c, r in beside if c.series.name == name] for name in names}
            own = {name: cells for name, cells in own.items() if any(values for _, values in cells)}
            title = f"{figure.number}, {log}: {measure.replace('_', ' ')}"
            drawing: Drawing | None = None
            if own and len(self.axes) == 1:
                drawing = _lines(title, self.axes[0], measure, own)
            elif own and len(self.axes) > 1:
                grids = [_grid(one, self.axes, measure, cells) for one, cells in own.items()]
                drawing = HeatMaps(title, grids, (self.axes[0], self.axes[1]), ".3g")
            if drawing is not None:
                words = f"{self.name} {figure.number} {measure} {log}".lower()
                drawn.append(Plot(re.sub(r"[^a-z0-9]+", "-", words), drawing))
        return drawn


_Found = Sequence[tuple[PaperCell, list[float]]]


def _lines(title: str, axis: str, measure: str, own: Mapping[str, _Found]) -> Lines:
    """Return points from the lowest to the highest run with the mean, and the paper's."""
    places = list(dict.fromkeys(cell.axes[axis] for cells in own.values() for cell, _ in cells if cell.axes[axis]))
    series: dict[str, Series] = {}
    for name, cells in own.items():
        by_place = {cell.axes[axis]: values for cell, values in cells}
        paper = {cell.axes[axis]: v for cell, _ in cells if (v := cell.published.get(measure)) is not None}
        found = [by_place.get(place, by_place.get("", [])) for place in places]
        series[name] = [(min(v), statistics.fmean(v), max(v)) if v else None for v in found]
        if paper:
            series[f"{name}, paper"] = [(paper[p],) * 3 if p in paper else None for p in places]
    middles = [point[1] for points in series.values() for point in points if point is not None and point[1] > 0]
    large = bool(middles) and max(middles) > 100 * min(middles)
    return Lines(title, places, series, (axis, measure.replace("_", " ")), logarithmic=large)


def _grid(name: str, axes: Sequence[str], measure: str, cells: _Found) -> HeatMap:
    rows, columns = (list(dict.fromkeys(cell.axes[axis] for cell, _ in cells)) for axis in axes[:2])
    places = [(cell.axes[axes[0]], cell.axes[axes[1]]) for cell, _ in cells]
    values = {place: statistics.fmean(v) if v else None for place, (_, v) in zip(places, cells, strict=True)}
    paper = {p: v for p, (c, _) in zip(places, cells, strict=True) if (v := c.published.get(measure)) is not None}
    return HeatMap(name, rows, columns, values, paper)


def _comparison_columns(cell: PaperCell, rows: Sequence[Row], measure: str) -> tuple[str, str, str, str]:
    """Return the paper's value, veilog's with its spread, the deviation, and a reason."""
    paper, ours = cell.published.get(measure), known(rows, measure)
    numbers = [abs(value) for value in (*ours, *(() if paper is None else (paper,)))]
    form = ",.0f" if max(numbers, default=0) >= 1000 else ".2f" if max(numbers, default=0) >= 20 else ".3f"
    shown = "-" if paper is None else format(paper, form)
    if not ours:
        why = next((row.problem for row in rows if row.problem), f"no {measure.replace('_', ' ')} of this release")
        return shown, "-", "-", why
    if paper is None:
        return shown, spread(rows, measure, form), "-", Reason.PAPER_GIVES_NONE
    mean = statistics.fmean(ours)
    deviation = f"{mean / paper - 1:+.0%}" if paper else f"{mean:+.3g}"
    return shown, spread(rows, measure, form), deviation, cell.series.why.get(measure, "")


def _settings_for_other_log(settings: Settings) -> Settings:
    """Return the settings for a log that the paper does not have.

    They lack the number of variants, which belongs to the paper's logs.
    """
    return tuple((name, value) for name, value in settings if name != "variants")


def _parse_setting(name: str, text: str) -> Value:
    for kind in (int, float):
        try:
            return text if name in _EXACT else kind(text)
        except ValueError:
            continue
    return text


def _cell(
    row: Mapping[str, str], series: Mapping[str, PaperSeries], axes: Sequence[str], columns: Sequence[str]
) -> PaperCell:
    """Return the cell of a row of a paper's CSV file."""
    given = {name: text for name, text in row.items() if text}
    own, log = series[given.pop("series")], given.pop("log")
    published = {name: float(given.pop(name)) for name in columns if name in given}
    parameters = {p.name for p in METHODS[own.method].parameters} if own.method else set(given)
    taken = {"epsilon", "delta", "variants", *parameters}
    settings = {name: text for name, text in given.items() if not name.startswith("run ") and name in taken}
    settings |= {name.removeprefix("run "): text for name, text in given.items() if name.startswith("run ")}
    if unknown := given.keys() - taken - set(axes) - {name for name in given if name.startswith("run ")}:
        raise ParameterError(
            "experiment-setting-unknown", parameter="manifest", name=own.name, names=", ".join(sorted(unknown))
        )
    asked = [(name, _parse_setting(name, text)) for name, text in settings.items() if text != "-"]
    place = {axis: given.get(axis, "") for axis in axes}
    return PaperCell(own, log, place, (*own.settings.items(), *asked), published)


def _experiment(paper: str, told: dict[str, Any]) -> tuple[Experiment, tuple[PaperFigure, ...]]:
    name, axes = told["name"], told.get("axes", ())
    columns = tuple(dict.fromkeys(measure for figure in told["figure"] for measure in figure["measures"]))
    series = {one["name"]: PaperSeries(**one) for one in told["series"]}
    text = (files(papers) / f"{name}.csv").read_text(encoding="utf-8")
    cells = tuple(_cell(row, series, axes, columns) for row in csv.DictReader(text.splitlines()))
    logs = tuple(dict.fromkeys(cell.log for cell in cells))
    figures = tuple(PaperFigure(**{"logs": logs, **f}, paper=paper, experiment=name) for f in told["figure"])
    made = Reproduction(name, axes, logs, cells, figures, told.get("models", 0.0), told.get("quick", {}))
    return (
        Experiment(
            name=name,
            what=told["what"],
            paper=f"({paper})",
            logs=logs,
            methods=tuple(dict.fromkeys(one.method for one in series.values() if one.method)),
            measures=columns,
            cells=made.cells,
            measure=getattr(measures, told["measure"]),
            tables=made.tables,
            plots=made.plots,
            runs=told.get("runs", 10),
            quick_runs=told.get("quick_runs", 1),
            hours=made.hours,
            small=None if told["measure"] == "file_to_file" else Profile(("small",), 1, True),
            notes=told.get("notes", ()),
        ),
        figures,
    )


def reproductions() -> tuple[tuple[Experiment, ...], tuple[PaperFigure, ...]]:
    """Return the experiments of all papers, and every figure with results in order."""
    experiments, figures = [], []
    for name in PAPERS:
        told = tables_of(papers.__name__, name)
        figures += [PaperFigure(**one, paper=told["paper"]) for one in told.get("example", ())]
        for one in told.get("experiment", ()):
            made, shown = _experiment(told["paper"], one)
            experiments.append(made)
            figures += shown
    return tuple(experiments), tuple(figures)
