"""Plots of experiments as SVG text: heat maps, and points with their spread joined by lines. Nothing is loaded."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from veilog._svg import element, picture, points_of

_STYLE = (
    "text{font:12px system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif;fill:#333}"
    ".h{font-size:15px;font-weight:600;fill:#111}.s{fill:#666;font-size:11px}.g{stroke:#e3e3e3}.w{fill:#fff}"
)
_COLOURS = (
    "#2f6690",
    "#d1622b",
    "#4f8a4b",
    "#8e4a8c",
    "#b08a1e",
    "#5c6770",
    "#c0392b",
    "#16807a",
    "#9aa0a6",
    "#3d2c8d",
    "#d46a9f",
    "#7a5230",
    "#6b8e23",
    "#111111",
)
_ENTRY = 108
"""Width of a name in a legend below a plot."""
_LOW, _HIGH = (247, 244, 237), (23, 84, 133)


@dataclass(frozen=True)
class HeatMap:
    """A grid of values: ours, and below them the paper's where it has them."""

    title: str
    rows: Sequence[str]
    columns: Sequence[str]
    values: Mapping[tuple[str, str], float | None]
    published: Mapping[tuple[str, str], float]


Series = Sequence[tuple[float, float, float] | None]
"""Low, middle and high for every place of the axis; None where there is nothing."""


def heat_maps(title: str, maps: Sequence[HeatMap], axes: tuple[str, str], form: str = ".2f") -> str:
    """Grids side by side, three to a row, coloured by one scale."""
    wide, high, left = 62, 40, 60
    known = [v for m in maps for v in m.values.values() if v is not None and math.isfinite(v)]
    low, top = (min(known), max(known)) if known else (0.0, 1.0)
    out: list[str] = []
    x, y, tallest, right = 0, 44, 0, 0
    for i, grid in enumerate(maps):
        if i % 3 == 0 and i:
            x, y, tallest = 0, y + tallest, 0
        out.append(_text(x + left, y + 12, grid.title, "h"))
        for c, column in enumerate(grid.columns):
            out.append(_text(x + left + c * wide + wide / 2, y + 30, column, "s", "middle"))
        for r, row in enumerate(grid.rows):
            below = y + 36 + r * high
            out.append(_text(x + left - 6, below + high / 2 + 4, row, "s", "end"))
            for c, column in enumerate(grid.columns):
                out += _square(x + left + c * wide, below, wide, high, grid, (row, column), (low, top), form)
        width = left + max(len(grid.columns) * wide, 8 * len(grid.title), 150)
        out.append(
            _text(
                x + left,
                y + 36 + len(grid.rows) * high + 14,
                f"rows {axes[0]}" + (f", columns {axes[1]}" if len(grid.columns) > 1 else ""),
                "s",
            )
        )
        tallest = max(tallest, 36 + len(grid.rows) * high + 36)
        x += width + 24
        right = max(right, x)
    return _page(max(420, right), y + tallest + 20, title, [*out, _foot(y + tallest + 8, "small: the paper's value")])


def _square(
    x: float,
    y: float,
    wide: float,
    high: float,
    grid: HeatMap,
    place: tuple[str, str],
    scale: tuple[float, float],
    form: str,
) -> list[str]:
    value, published = grid.values.get(place), grid.published.get(place)
    out = []
    share = 0.0
    if value is None:
        fill = "#e9e9e9"
    else:
        share = (value - scale[0]) / (scale[1] - scale[0]) if scale[1] > scale[0] else 0.5
        red, green, blue = (round(a + (b - a) * share) for a, b in zip(_LOW, _HIGH, strict=True))
        fill = f"rgb({red},{green},{blue})"
    out.append(element("rect", x=round(x), y=round(y), width=round(wide), height=round(high), fill=fill, stroke="#fff"))
    kind = "w" if share > 0.55 else ""
    out.append(_text(x + wide / 2, y + 17, "-" if value is None else format(value, form), kind, "middle"))
    if published is not None:
        out.append(_text(x + wide / 2, y + 32, format(published, form), f"s {kind}".strip(), "middle"))
    return out


def lines(
    title: str,
    places: Sequence[str],
    series: Mapping[str, Series],
    axes: tuple[str, str],
    *,
    logarithmic: bool = False,
    joined: bool = True,
) -> str:
    """Points for each name, with a bar from low to high at every place; ``joined`` where places are a scale."""
    left, top, width, height = 66.0, 52.0, 620.0, 300.0
    known = [v for points in series.values() for p in points if p is not None for v in p if math.isfinite(v)]
    if logarithmic:
        known = [v for v in known if v > 0]
    low, most = (min(known), max(known)) if known else (0.1, 1.0)
    if not logarithmic:
        low, most = min(0.0, low), max(most, 1.0 if most > 0.3 else most)
    if most <= low:
        most = low + 1.0 if not logarithmic else low * 10

    def high(value: float) -> float:
        if logarithmic:
            return top + height * (1 - math.log(max(value, low) / low) / math.log(most / low))
        return top + height * (1 - (value - low) / (most - low))

    out = []
    for i in range(5):
        value = low * (most / low) ** (i / 4) if logarithmic else low + (most - low) * i / 4
        out.append(element("line", class_="g", x1=left, x2=left + width, y1=high(value), y2=high(value)))
        out.append(_text(left - 8, high(value) + 4, f"{value:.3g}", "s", "end"))
    step = width / max(1, len(places))
    for i, place in enumerate(places):
        out.append(_text(left + (i + 0.5) * step, top + height + 18, place, "s", "middle"))
    out.append(_text(left + width / 2, top + height + 38, axes[0], "s", "middle"))
    out.append(_text(left, top - 10, axes[1], "s"))
    for number, (name, points) in enumerate(series.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        shift = (number - (len(series) - 1) / 2) * min(12.0, step / (2 * len(series)))
        path: list[tuple[float, float]] = []
        for i, point in enumerate(points):
            if point is None or not all(map(math.isfinite, point)):
                continue
            x = left + (i + 0.5) * step + shift
            low_end, middle, high_end = map(high, point)
            path.append((x, middle))
            out.append(element("line", x1=x, x2=x, y1=low_end, y2=high_end, stroke=colour, stroke_width=2))
            out.append(_dot(x, middle, colour))
        if joined:
            out.append(element("polyline", points=points_of(path), fill="none", stroke=colour, opacity=0.5))
        out.append(element("circle", cx=left + width + 24, cy=round(top + 10 + number * 20), r=5, fill=colour))
        out.append(_text(left + width + 36, top + 14 + number * 20, name))
    return _page(left + width + 190, top + height + 54, title, out)


def panels(
    title: str,
    places: Sequence[str],
    grids: Mapping[str, Mapping[str, Series]],
    axes: tuple[str, str],
    *,
    labelled: bool = False,
) -> str:
    """Middles of the same names in a grid for each log, three to a row, from 0 to 1, with one legend for all; where
    lines are few they may be ``labelled`` at their ends instead."""
    left, top, width, height, gap = 52.0, 92.0, 250.0, 220.0, 130.0 if labelled else 30.0
    names = list(dict.fromkeys(name for series in grids.values() for name in series))
    step = width / max(1, len(places))
    out = [_text(16, 48, axes[1], "s")]
    for number, (grid, series) in enumerate(grids.items()):
        x0, y0 = left + number % 3 * (width + gap), top + number // 3 * (height + 80)
        out.append(_text(x0, y0 - 14, grid, "h"))
        for i in range(5):
            y = y0 + height * (1 - i / 4)
            out.append(element("line", class_="g", x1=round(x0), x2=round(x0 + width), y1=y, y2=y))
            if number % 3 == 0:
                out.append(_text(x0 - 8, y + 4, f"{i / 4:g}", "s", "end"))
        for i, place in enumerate(places):
            out.append(_text(x0 + (i + 0.5) * step, y0 + height + 18, place, "s", "middle"))
        out.append(_text(x0 + width / 2, y0 + height + 36, axes[0], "s", "middle"))
        for name, points in reversed(list(series.items())):  # the first names on top
            colour = _COLOURS[names.index(name) % len(_COLOURS)]
            spots = [
                (x0 + (i + 0.5) * step, y0 + height * (1 - point[1]))
                for i, point in enumerate(points)
                if point is not None and math.isfinite(point[1])
            ]
            path = points_of(spots)
            out.append(element("polyline", points=path, fill="none", stroke=colour, stroke_width=2, opacity=0.8))
            out += [_dot(x, y, colour) for x, y in spots]
        if labelled:
            out += _ends(series, x0 + width - step / 2 + 9, lambda share, y0=y0: y0 + height * (1 - share), names)  # type: ignore[misc]
    rows, across = math.ceil(len(grids) / 3), min(3, len(grids))
    wide = max(420.0, left + across * (width + gap))
    if labelled:
        return _page(wide, top + rows * (height + 80) - 20, title, out)
    below, per_row = top + rows * (height + 80) - 8, int((wide - left) // _ENTRY)
    for number, name in enumerate(names):
        x, y = left + number % per_row * _ENTRY, below + number // per_row * 22
        out.append(element("circle", cx=round(x), cy=round(y - 4), r=5, fill=_COLOURS[number % len(_COLOURS)]))
        out.append(_text(x + 11, y, name))
    return _page(wide, below + 22 * math.ceil(len(names) / per_row), title, out)


def _ends(series: Mapping[str, Series], x: float, high: Callable[[float], float], names: Sequence[str]) -> list[str]:
    """Names at the ends of lines, moved apart where they would cover each other."""
    found = {name: [point[1] for point in points if point is not None] for name, points in series.items()}
    ends = {name: high(middles[-1]) for name, middles in found.items() if middles}
    out, free = [], -math.inf
    for name in sorted(ends, key=ends.__getitem__):
        free = max(ends[name] + 4, free + 13)
        colour = _COLOURS[names.index(name) % len(_COLOURS)]
        out.append(element("text", name, class_="s", x=float(x), y=float(free), style=f"fill:{colour}"))
    return out


def _page(width: float, height: float, title: str, parts: Sequence[str]) -> str:
    width, height = round(width), round(height)
    head = (
        element("title", title),
        element("style", _STYLE),
        element("rect", width=width, height=height, fill="#fff"),
        _text(16, 26, title, "h"),
    )
    return picture([*head, *parts], width, height)


def _foot(y: float, text: str) -> str:
    return _text(16, y, text, "s")


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> str:
    return element("text", text, class_=kind, x=float(x), y=float(y), text_anchor=anchor)


def _dot(x: float, y: float, colour: str) -> str:
    return element("circle", cx=x, cy=y, r=3.5, fill=colour)
