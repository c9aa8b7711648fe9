"""Plots of experiments, drawn by matplotlib (extra ``experiments``): values until a picture of them is wanted."""

from __future__ import annotations

import io
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from veilog.errors import MissingExtraError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "veilog",
    "text.parse_math": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e3e3e3",
    "font.size": 9,
}
Series = Sequence[tuple[float, float, float] | None]
"""Low, middle and high for every place of the axis; None where there is nothing."""


@dataclass(frozen=True)
class Drawing(ABC):
    """A picture that can be drawn as SVG or PNG."""

    title: str

    @abstractmethod
    def draw(self, figure: Figure) -> None:
        """Put what is drawn on an empty figure."""

    def image(self, form: Literal["svg", "png"]) -> bytes:
        """Return the picture as a file's content; equal for equal values."""
        try:
            import matplotlib as mpl
            from matplotlib.figure import Figure
        except ImportError as error:
            raise MissingExtraError("Drawing plots", extra="experiments") from error
        colours = mpl.cycler(color=mpl.colormaps["tab20"].colors)  # type: ignore[attr-defined]
        file = io.BytesIO()
        with mpl.rc_context({**_STYLE, "axes.prop_cycle": colours}):
            figure = Figure(layout="constrained")
            self.draw(figure)
            figure.suptitle(self.title)
            words = {"Title": self.title, "Date": None} if form == "svg" else {"Title": self.title}
            figure.savefig(file, format=form, dpi=144, metadata=words)
        return file.getvalue()

    def svg(self) -> str:
        """Return the picture as an element that can stand in a page."""
        text = self.image("svg").decode()
        return text[text.index("<svg") :]


@dataclass(frozen=True)
class HeatMap:
    """A grid of values: ours, and below them the paper's where it has them."""

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
    """Middles of the same names in a grid for each log, three to a row, from 0 to 1, with one legend for all."""

    places: Sequence[str]
    grids: Mapping[str, Mapping[str, Series]]
    axes: tuple[str, str]

    def draw(self, figure: Figure) -> None:
        figure.set_size_inches(10, 2 + 3 * math.ceil(len(self.grids) / 3))
        names = list(dict.fromkeys(name for series in self.grids.values() for name in series))
        lines = {}
        for axes, (title, series) in zip(_grid(figure, len(self.grids)), self.grids.items(), strict=True):
            for name in reversed(series):  # the first names on top
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
