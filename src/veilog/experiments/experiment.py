"""Experiments: cells to compute, finished rows, and the tables and plots of them.

A plot is a value until its picture is needed; matplotlib (extra ``experiments``) draws it.
"""

from __future__ import annotations

import io
import json
import math
import re
import statistics
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from veilog._plain import InJson, ToJson, tables_of
from veilog.errors import InputError, MissingExtraError, ParameterError, VeilogError
from veilog.experiments import papers
from veilog.logs import files
from veilog.logs.eventlog import EventLog
from veilog.logs.input.formats import SUFFIXES
from veilog.logs.input.source import suffix_of
from veilog.logs.variants import Variants
from veilog.measures import MEASURES, Measure, Pair
from veilog.measures.persons import person_of
from veilog.measures.process_model import MEASURES as OF_MODELS
from veilog.measures.process_model import model_quality
from veilog.measures.similarity import absolute_log_difference, relative_log_similarity
from veilog.measures.use_cases.sides import split
from veilog.messages import Message
from veilog.methods import METHODS
from veilog.privacy.domain import ALL_FROM_LOG
from veilog.releasing.result import Release
from veilog.releasing.run import release

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "veilog",
    "text.parse_math": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e3e3e3",
    "font.size": 9,
}
Series = Sequence[tuple[float, float, float] | None]
"""Low, middle and high for every place of the axis; None where there is none."""


@dataclass(frozen=True)
class Drawing(ABC):
    """A picture that can be drawn as SVG or PNG."""

    title: str

    @abstractmethod
    def draw(self, figure: Figure) -> None:
        """Draw the picture on an empty figure."""

    def image(self, form: Literal["svg", "png"]) -> bytes:
        """Return the picture as a file's content; equal for equal values."""
        try:
            import matplotlib as mpl
            from matplotlib.figure import Figure
        except ImportError as error:
            raise MissingExtraError(Message("drawing-of-plots"), extra="experiments") from error
        colours = mpl.cycler(color=mpl.colormaps["tab20"].colors)  # type: ignore[attr-defined]
        file = io.BytesIO()
        style: Any = {**_STYLE, "axes.prop_cycle": colours}
        with mpl.rc_context(style):
            figure = Figure(layout="constrained")
            self.draw(figure)
            figure.suptitle(self.title)
            words = {"Title": self.title, "Date": None} if form == "svg" else {"Title": self.title}
            figure.savefig(file, format=form, dpi=144, metadata=words)
        return file.getvalue()

    def svg(self) -> str:
        """Return the picture as an SVG element for a page."""
        text = self.image("svg").decode()
        return text[text.index("<svg") :]


@dataclass(frozen=True)
class HeatMap:
    """A grid of values: veilog's, and below them the paper's if it has them."""

    title: str
    rows: Sequence[str]
    columns: Sequence[str]
    values: Mapping[tuple[str, str], float | None]
    published: Mapping[tuple[str, str], float]


@dataclass(frozen=True)
class HeatMaps(Drawing):
    """Grids side by side, three to a row, coloured by one scale."""

    maps: Sequence[HeatMap]
    axes: tuple[str, str]
    form: str = ".2f"

    def draw(self, figure: Figure) -> None:
        known = [v for m in self.maps for v in m.values.values() if v is not None and math.isfinite(v)]
        low, high = min(known, default=0.0), max(known, default=1.0)
        width = 3 + sum(0.9 * len(grid.columns) for grid in self.maps[:3])
        figure.set_size_inches(width, 2 + 3 * math.ceil(len(self.maps) / 3))
        for axes, grid in zip(_grid(figure, len(self.maps)), self.maps, strict=True):
            cells = [[grid.values.get((row, column)) for column in grid.columns] for row in grid.rows]
            numbers = [[math.nan if value is None else value for value in line] for line in cells]
            axes.imshow(numbers, cmap="Blues", vmin=low, vmax=high, aspect="auto")
            axes.grid(visible=False)
            axes.set_facecolor("#e9e9e9")
            axes.set_title(grid.title)
            axes.set_xticks(range(len(grid.columns)), grid.columns)
            axes.set_yticks(range(len(grid.rows)), grid.rows)
            axes.set(xlabel=self.axes[1], ylabel=self.axes[0])
            for y, (row, line) in enumerate(zip(grid.rows, cells, strict=True)):
                for x, (column, value) in enumerate(zip(grid.columns, line, strict=True)):
                    published = grid.published.get((row, column))
                    words = ["-" if value is None else format(value, self.form)]
                    words += [] if published is None else [f"[{published:{self.form}}]"]
                    dark = value is not None and value - low > 0.55 * (high - low)
                    axes.text(x, y, "\n".join(words), ha="center", va="center", color="white" if dark else "black")


@dataclass(frozen=True)
class Lines(Drawing):
    """Points for each name, with a bar from low to high at every place."""

    places: Sequence[str]
    series: Mapping[str, Series]
    axes: tuple[str, str]
    logarithmic: bool = False

    def draw(self, figure: Figure) -> None:
        figure.set_size_inches(9, 5)
        axes = figure.add_subplot()
        for number, (name, points) in enumerate(self.series.items()):
            shift = (number - (len(self.series) - 1) / 2) * min(0.03, 0.5 / len(self.series))
            found = _finite(points)
            middles = [middle for _, (_, middle, _) in found]
            spread = [[m - low for _, (low, m, _) in found], [high - m for _, (_, m, high) in found]]
            axes.errorbar([x + shift for x, _ in found], middles, spread, label=name, marker="o", alpha=0.8)
        _scale(axes, self.places, self.axes[0])
        axes.set_ylabel(self.axes[1])
        if self.logarithmic:
            axes.set_yscale("log")
        else:
            axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
        if self.series:
            figure.legend(loc="outside right upper")


@dataclass(frozen=True)
class Panels(Drawing):
    """Middles of the same names in a grid for each log, from 0 to 1.

    The grids stand three to a row, with one legend for all.
    """

    places: Sequence[str]
    grids: Mapping[str, Mapping[str, Series]]
    axes: tuple[str, str]

    def draw(self, figure: Figure) -> None:
        figure.set_size_inches(10, 2 + 3 * math.ceil(len(self.grids) / 3))
        names = list(dict.fromkeys(name for series in self.grids.values() for name in series))
        lines = {}
        for axes, (title, series) in zip(_grid(figure, len(self.grids)), self.grids.items(), strict=True):
            for name in reversed(list(series)):  # the first names on top
                found = _finite(series[name])
                middles = [middle for _, (_, middle, _) in found]
                (lines[name],) = axes.plot([x for x, _ in found], middles, marker="o", color=f"C{names.index(name)}")
            _scale(axes, self.places, self.axes[0])
            axes.set_title(title)
            axes.set_ylim(0, 1.02)
        figure.supylabel(self.axes[1])
        if names:
            figure.legend([lines[name] for name in names], names, loc="outside lower center", ncols=5)


def _finite(points: Series) -> list[tuple[int, tuple[float, float, float]]]:
    """Return the points that can be drawn, each with its place."""
    return [(x, point) for x, point in enumerate(points) if point is not None and all(map(math.isfinite, point))]


def _grid(figure: Figure, number: int) -> list[Axes]:
    """Return so many axes, three to a row."""
    return [figure.add_subplot(math.ceil(number / 3), min(3, number), i + 1) for i in range(number)]


def _scale(axes: Axes, places: Sequence[str], name: str) -> None:
    axes.set_xticks(range(len(places)), places)
    axes.set_xlim(-0.5, max(len(places), 1) - 0.5)
    axes.set_xlabel(name)


Value: TypeAlias = "str | int | float | bool"
Number: TypeAlias = "float | int | None"
MOST_RUNS = 10_000


class Reason(StrEnum):
    """Reason of the paper or of veilog why a cell has no value."""

    LOG_NOT_PUBLIC = "log not public"
    LOG_NOT_HERE = "log not here"
    PAPER_GIVES_NONE = "paper gives none"
    OVER_HOURS = "over {limit:g} hours (about {estimate:g})"


@dataclass(frozen=True)
class Cell(ToJson):
    """One computation: a log, a method with its settings (or none), and a run.

    The number of the run is its seed.
    """

    log: str
    """Name of a log in the folder, or of one that the measure makes; may be empty."""
    method: str = ""
    settings: Annotated[tuple[tuple[str, Value], ...], InJson(as_=dict)] = ()
    """Keywords of :func:`veilog.release`; without a method, those of the measure."""
    run: int = 0
    models: float = 0.0
    """Seconds that a process model may take; 0 for no model."""
    prefixes: Annotated[int, InJson(left_out="at its default")] = 0
    """Number of prefixes from which precision is estimated; 0 for all."""

    def get(self, name: str, default: Value = "") -> Value:
        return dict(self.settings).get(name, default)

    @staticmethod
    def from_json(told: Mapping[str, Any]) -> Cell:
        """Return the cell that was written as JSON."""
        return Cell(**{**told, "settings": tuple(told["settings"].items())})

    @property
    def key(self) -> str:
        """Text that is equal for cells of the same computation, in any order of settings."""
        return json.dumps(self.to_json(), sort_keys=True)

    def in_words(self) -> str:
        settings = [f"{name} {value}" for name, value in self.settings if value is not True]
        return ", ".join([*(text for text in (self.log, self.method) if text), *settings, f"run {self.run}"])


@dataclass(frozen=True)
class Given:
    """Input of a cell's measure: the file of its log, the log, and a folder."""

    path: Path | None
    folder: Path = Path()
    """Folder for what the measure makes, a large log for example."""
    name: str = ""
    """Name of the log; some are a part of the one in the file (see :class:`KnownLog`)."""
    part: EventLog | None = None
    """The log, if it is a part of the one in the file."""

    @cached_property
    def log(self) -> EventLog:
        return part_of(self.name, files.read(self.file)) if self.part is None else self.part

    def split(self, share: float, seed: int) -> tuple[Given, EventLog]:
        """Split the log: return the input of a random part, and the log of the rest.

        The release of the part knows nothing of the other cases. If a column identifies persons, no person has cases in
        both.
        """
        seen, unseen = split(self.log, share, seed, person=person_of(self.log))
        assert isinstance(seen, EventLog)
        assert isinstance(unseen, EventLog)
        return replace(self, part=seen), unseen

    @property
    def file(self) -> Path:
        if self.path is None:
            raise ParameterError("experiment-log-missing", parameter="logs")
        return self.path


@dataclass(frozen=True)
class Measured:
    """Named values of a cell; a missing one is None, and ``problem`` has the reason."""

    values: Mapping[str, Number]
    problem: str | None = None
    texts: Mapping[str, str] = field(default_factory=dict)
    """Results that are no numbers, such as the attack that won."""


@dataclass(frozen=True)
class Row:
    """A finished cell."""

    cell: Cell
    values: Mapping[str, Number]
    problem: str | None
    seconds: float
    version: str
    """Fingerprints of its method and measure, and its log's digest: ``METHOD.MEASURE-LOG``."""
    texts: Mapping[str, str] = field(default_factory=dict)
    machine: str = ""
    made_by: str = ""
    """Version that computed it, if another: today's agreed in a sample of such rows."""

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
        return Row(**{**told, "cell": Cell.from_json(told["cell"])})

    def get(self, measure: str) -> float | None:
        value = self.values.get(measure)
        return None if value is None else float(value)


@dataclass(frozen=True)
class Profile:
    """Scope of a run: its logs, its number of runs, and whether it is a quick one."""

    logs: tuple[str, ...]
    runs: int
    quick: bool
    options: Mapping[str, str] = field(default_factory=dict)
    """Further options of a benchmark, such as another Python for comparison."""


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


@dataclass(frozen=True)
class Experiment:
    """A table or figure of a paper, a comparison by veilog, or a benchmark.

    All functions are top-level: processes import them.
    """

    name: str
    what: str
    cells: Callable[[Profile], Iterator[Cell]]
    measure: Callable[[Given, Cell], Measured]
    tables: Callable[[Sequence[Row]], list[Table]]
    plots: Callable[[Sequence[Row]], list[Plot]] = lambda rows: []
    paper: str = ""
    logs: tuple[str, ...] = ()
    """Logs of the paper; empty for every log."""
    methods: tuple[str, ...] = ()
    measures: tuple[str, ...] = ()
    """Names of the values that become columns of the files of results."""
    runs: int = 10
    quick_runs: int = 1
    quick_logs: tuple[str, ...] = ("sepsis", "bpic2013_incidents", "receipt")
    small: Profile | None = None
    """Profile of the cells for its measure's fingerprint, on a small synthetic log.

    It is None if the measure takes time or memory, or takes long: then its methods alone identify its rows.
    """
    hours: Callable[[Cell], float] = lambda cell: 0.0
    """Estimated hours of a cell."""
    notes: tuple[str, ...] = ()
    alone: bool = False
    """True to run cells in fresh processes, one by one, to measure time or memory."""
    page: str = ""
    """Page of the docs that has its tables."""


def of(rows: Iterable[Row], log: str | None = None, method: str | None = None, **settings: Value) -> list[Row]:
    """Return the rows of a log and a method with these settings.

    Settings are compared as text: ``0.1`` is the epsilon 0.1.
    """
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
    """Return mean ± standard deviation of the runs, and the paper's value.

    If some runs have none, it gives the number of those that do.
    """
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


EMPTY = "Nothing was released."
PREFIXES = 100
"""Number of prefixes that estimate precision if all take too long, or in quick profiles."""


def make_release(given: Given, cell: Cell) -> Release:
    """Return the cell's release, seeded by its run."""
    settings: dict[str, Any] = dict(cell.settings)
    log = given.log if METHODS[cell.method].full_log else given.log.variants
    return release(log, cell.method, seed=cell.run, domain=ALL_FROM_LOG, allow_no_protection=True, **settings)


def utility(original: Variants, made: Variants, *, difference: bool = True) -> dict[str, Number]:
    """Return relative log similarity, sizes, and the measures of other packages.

    With ``difference``, it adds the absolute log difference, with the buffer of the published heat maps.
    """
    values: dict[str, Number] = {
        "similarity": relative_log_similarity(original, made).value,
        "size_ratio": made.cases / original.cases,
        "variants": len(made),
    }
    if difference:
        values["difference"] = int(absolute_log_difference(original, made, buffer="maximum").value)
    return values | _plugin_values(original, made)


def added_columns() -> dict[str, str]:
    """Return the columns of measures that other packages add, each with its package."""
    own = ((name, by) for name in MEASURES if (by := MEASURES.added_by(name)))
    return {column: by for name, by in own for column in _columns(MEASURES[name])}


def _columns(measure: Measure) -> list[str]:
    """Return a column for each number of a measure, named also after it if several."""
    parts = [quantity.of for quantity in measure.quantities]
    return [measure.name if len(parts) == 1 else f"{measure.name}.{part}" for part in parts]


def _plugin_values(original: Variants, made: Variants) -> dict[str, Number]:
    """Return the values of measures that other packages add; None for a missing one."""
    values: dict[str, Number] = {}
    pair = Pair(original, made)
    with pair.closing():
        for name in MEASURES:
            if by := MEASURES.added_by(name):
                found = MEASURES[name].found_by(by, pair)
                values |= zip(_columns(MEASURES[name]), MEASURES[name].numbers(found.value).values(), strict=True)
    return values


_CERTAIN = {
    "variants-certain",
    "variants-certain-and-largest",
    "one-variant-certain",
    "one-variant-certain-and-largest",
}


def certainty(original: Variants, release: Release) -> dict[str, Number]:
    """Return the shares of released cases that are certain to be real, and are real.

    The release itself states the former; only the data owner can compute the latter.
    """
    cases, existing = release.variants.cases, original.to_dict()
    real = sum(count for variant, count in release.variants.to_dict().items() if variant in existing)
    said = {remark.code: remark.values for remark in release.remarks}
    every = release.method in ("travas", "utravas") or "evolve-all-variants-real" in said
    found = [int(values["cases"]) for code, values in said.items() if code in _CERTAIN]
    certain = cases if every else max(found, default=0)
    return {"real": real / cases, "certain": certain / cases} if cases else {"real": 0.0, "certain": 0.0}


def models(original: Variants, made: Variants, cell: Cell, noise: float = 0.2) -> tuple[dict[str, Number], str | None]:
    """Return the quality of a release's model at this noise threshold, or a reason.

    The reason is that there is none, or that precision is estimated because all prefixes take too long.
    """
    try:
        quality = model_quality(original, made, noise=noise, seconds=cell.models, prefixes=cell.prefixes or None)
        remark = next((f"{name}: {why}" for name, why in quality.not_computed.items()), None)
        if quality.precision is None and quality.fitness is not None and not cell.prefixes:
            again = model_quality(original, made, noise=noise, seconds=cell.models, prefixes=PREFIXES)
            if again.precision is not None:
                quality = again
                remark = Message("experiment-precision-estimated", prefixes=PREFIXES, seconds=cell.models).english
    except VeilogError as error:
        return dict.fromkeys(OF_MODELS), str(error)
    return {name: getattr(quality, name) for name in OF_MODELS}, remark


# Public logs of the papers: marks that identify them, their places, and those in a folder ----------------------------

#
# A paper may use a part of a published log, such as the complete events. Such a log has a name of its own.


Counts = tuple[int, int, int, int]
"""Numbers of cases, events, activities and variants."""


@dataclass(frozen=True)
class KnownLog:
    """A public log: its title, its DOI, its published files, and its counts."""

    title: str
    doi: str
    files: tuple[str, ...] = ()
    counts: Counts | None = None
    of: str = ""
    """Published log that this one is a part of."""
    events: tuple[str, str] | None = None
    """Attribute of the events that are kept, and its value."""


LOGS = {name: KnownLog(**facts) for name, facts in tables_of(papers.__name__, "logs").items()}


def find(folder: Path, wanted: Sequence[str] = ()) -> dict[str, Path]:
    """Return the logs of a folder by name.

    A known log is recognised by its file's name, any other gets that name without suffixes. If no file has the name of
    a ``wanted`` log, files with unknown names are read to find its counts of cases, events, activities and variants. A
    part of a log is found where that log is.
    """
    if not folder.is_dir():
        raise InputError("experiment-folder-missing", path=folder)
    found: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        suffix = suffix_of(path)
        if suffix not in SUFFIXES or not path.is_file() or path.name.startswith("."):
            continue
        found.setdefault(_name(path.name[: -len(suffix)]), path)
    if not found:
        raise InputError(
            "experiment-folder-without-logs", path=folder, names=", ".join(SUFFIXES), doi=LOGS["sepsis"].doi
        )
    wanted = [*wanted, *(LOGS[name].of for name in wanted if LOGS[name].of)]
    by_counts = {LOGS[name].counts: name for name in wanted if name not in found and LOGS[name].counts}
    for stem in [stem for stem in found if by_counts and stem not in LOGS]:
        name = by_counts.pop(_counts(found[stem]), None)
        if name is not None:
            found[name] = found.pop(stem)
    return found | {name: found[LOGS[name].of] for name in wanted if name not in found and LOGS[name].of in found}


def part_of(name: str, log: EventLog) -> EventLog:
    """Return the events that belong to the log of this name.

    These are all of them, unless it is a part of another log.
    """
    known = LOGS.get(name)
    if known is None or known.events is None or known.events[0] not in log.events.column_names:
        return log
    column, value = known.events
    texts = pc.utf8_lower(log.events.column(column).cast(pa.string()))
    left = replace(log, events=log.events.filter(pc.fill_null(pc.equal(texts, value), False)))
    return left.only(np.flatnonzero(np.diff(left.offsets)))


def _name(stem: str) -> str:
    plain = _plain(stem)
    for name, log in LOGS.items():
        if plain in map(_plain, (name, *log.files)):
            return name
    return stem


def _counts(path: Path) -> Counts | None:
    """Return the counts of a log; None for a file that needs options to be read."""
    try:
        variants: Variants = files.read(path).variants
    except VeilogError:
        return None
    return variants.cases, variants.events, len(variants.labels), len(variants)


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())


def missing_logs(wanted: Sequence[str], found: dict[str, Path]) -> str | None:
    """Return a sentence with a paper's missing logs and where they are published."""
    names = [f"{LOGS[name].title} ({name}, doi:{LOGS[name].doi})" for name in wanted if name not in found]
    return f"Logs of the paper that are not in the folder: {'; '.join(names)}." if names else None
