"""Charts of a comparison as text: a self-contained SVG, and bars for the terminal.

Nothing here computes a measure, loads anything from elsewhere or writes a file. All text in a chart is veilog's.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from veilog._language import format_date, format_number, gettext, gettext_noop, ngettext, percent, pgettext
from veilog._notebook import element, picture, points_of
from veilog.measures import Comparison
from veilog.measures.durations import ActiveCases, CaseDurations

_WIDTH, _LEFT, _RIGHT = 860, 74, 24
_COLOURS = {"original": "#2f6690", "released": "#d1622b"}
_PALE = {"original": "#b9cddc", "released": "#f0c9b2"}
_STYLE = (
    "text{font:12px system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif;fill:#333}"
    ".h{font-size:15px;font-weight:600;fill:#111}.s{fill:#666}.g{stroke:#e3e3e3}.a{stroke:#888}"
    ".l{fill:none;stroke-width:1.6;stroke-linejoin:round}"
)
_UNITS = (
    (1 / 3600, gettext_noop("1 s")),
    (1 / 60, gettext_noop("1 min")),
    (1.0, gettext_noop("1 h")),
    (24.0, gettext_noop("1 day")),
    (168.0, gettext_noop("1 week")),
    (730.5, gettext_noop("1 month")),
    (8_766.0, gettext_noop("1 year")),
    (87_660.0, gettext_noop("10 years")),
    (876_600.0, gettext_noop("100 years")),
    (8_766_000.0, gettext_noop("1000 years")),
    (87_660_000.0, gettext_noop("10000 years")),
)
"""Hours of each tick, and its name on an axis."""
_BLOCKS = " ▁▂▃▄▅▆▇█"
_PLAIN = " .:-=+*#%@"


_LASTING = (
    (8_766.0, gettext_noop("{number} years")),
    (730.5, gettext_noop("{number} months")),
    (24.0, gettext_noop("{number} days")),
    (1.0, gettext_noop("{number} h")),
    (1 / 60, gettext_noop("{number} min")),
)
"""Hours of each unit, largest first."""


def lasting(hours: float) -> str:
    """Return a duration as text for people: ``3.2 days``."""
    for size, form in _LASTING:
        if hours >= (2 * size if size > 24 else size):  # "1.2 months" is less exact than "36.5 days"
            return gettext(form, number=format_number(f"{hours / size:.1f}"))
    return gettext("{number} s", number=format_number(f"{hours * 3600:.0f}"))


def bars(values: Sequence[int], top: float, width: int, *, plain: bool = False) -> str:
    """Return at most ``width`` characters as high as the values, up to ``top``.

    If there are more values, a character is the mean of neighbours.
    """
    steps = _PLAIN if plain else _BLOCKS
    parts = np.array_split(np.asarray(values, dtype=np.float64), min(width, len(values)))
    heights = [float(part.mean()) for part in parts]
    # Every positive value stays visible.
    return "".join(steps[math.ceil(min(h / top, 1.0) * (len(steps) - 1))] if h > 0 else steps[0] for h in heights)


@dataclass(frozen=True)
class _UnderWay:
    """Both logs' cases under way as rows of characters that fit the terminal."""

    active: ActiveCases

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        a = self.active
        top = max(*a.original, *a.released)
        for which, values in (("original", a.original), ("released", a.released)):
            row = bars(values, top, min(100, max(10, options.max_width - 30)), plain=options.ascii_only)
            yield Text.assemble(
                (f"{which}  ", "dim"), (row, _COLOURS[which]), (f"  at most {max(values):,}", "dim"), no_wrap=True
            )


def times_view(durations: CaseDurations | None, active: ActiveCases | None) -> RenderableType:
    """Return a table of durations, and two rows of bars for the cases under way.

    It is empty if there are no times.
    """
    parts: list[RenderableType] = []
    if durations is not None:
        table = Table(box=None, padding=(0, 2, 0, 0))
        table.add_column("case durations", style="dim")
        for name in ("shortest", "a quarter", "half", "three quarters", "longest", "mean", "cases"):
            table.add_column(name, justify="right")
        for which, d in (("original", durations.original), ("released", durations.released)):
            hours = (d.minimum, d.lower_quartile, d.median, d.upper_quartile, d.maximum, d.mean)
            left_out = f" ({d.without_times:,} more without times)" if d.without_times else ""
            table.add_row(which, *map(lasting, hours), f"{d.cases:,}{left_out}")
        parts += [Text(""), table]
    if active is not None:
        span = len(active.original) * active.bin_seconds / 3600
        since = f"from {active.start[:16].replace('T', ' ')}" if active.start else "since each log's first event"
        head = f"cases under way, {since}, {lasting(span)} in bins of a {_bin(active.bin_seconds)}"
        if active.bin_seconds not in (60, 3600, 86_400, 7 * 86_400):
            head = head.replace("bins of a ", "bins of ")
        parts += [Text(""), Text(head, style="dim"), _UnderWay(active)]
    return Group(*parts)


@dataclass(frozen=True)
class _Panel:
    """The place of a panel's plot; shares of its axes become coordinates."""

    top: float
    height: float

    def x(self, share: float) -> float:
        return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)

    def y(self, share: float) -> float:
        return self.top + self.height * (1 - share)

    def head(self, title: str, subtitle: str) -> list[str]:
        return [_text(_LEFT, self.top - 28, title, "h"), _text(_LEFT, self.top - 11, subtitle, "s")]

    def horizontal(self, ticks: Iterable[tuple[float, str]], label: str) -> list[str]:
        """Return the axis to the left, with a line across at each tick."""
        out = []
        for share, name in ticks:
            y = self.y(share)
            out.append(_line(_LEFT, y, _WIDTH - _RIGHT, y, "g"))
            out.append(_text(_LEFT - 8, y + 4, name, anchor="end"))
        middle = self.top + self.height / 2
        return [*out, _text(16, middle, label, "s", "middle", transform=f"rotate(-90 16 {middle:.1f})")]

    def vertical(self, ticks: Iterable[tuple[float, str]], label: str) -> list[str]:
        """Return the axis below."""
        bottom = self.y(0)
        out = [_line(_LEFT, bottom, _WIDTH - _RIGHT, bottom, "a")]
        for share, name in ticks:
            x = self.x(share)
            anchor = "start" if share < 0.02 else "end" if share > 0.98 else "middle"
            out += [_line(x, bottom, x, bottom + 5, "a"), _text(x, bottom + 19, name, anchor=anchor)]
        return [*out, _text(self.x(0.5), bottom + 37, label, "s", "middle")]

    def curve(self, places: Iterable[tuple[float, float]], which: str) -> str:
        line = points_of((self.x(x), self.y(y)) for x, y in places)
        return element("polyline", class_="l", stroke=_COLOURS[which], points=line)


def comparison_svg(result: Comparison, *, styled: bool = True) -> str:
    """Return one picture of cases under way, case durations and variants.

    The variants are those kept, lost and added. If the logs have no times, the picture states the reason instead.
    Without ``styled``, it is for a page whose own style has the classes.
    """
    top, parts = 64.0, []
    if result.active_cases is None or result.case_durations is None:
        why = str(result.not_computed.get("case_durations", ""))
        parts += [
            _text(_LEFT, top, gettext("Cases under way and their durations"), "h"),
            _text(_LEFT, top + 20, why, "s"),
        ]
        top += 60
    else:
        parts += _active(_Panel(top + 36, 170), result.active_cases)
        parts += _durations(_Panel(top + 320, 170), result.case_durations)
        top += 570
    parts += _variants(_Panel(top + 36, 76), result)
    height = round(top + 150)
    lines = [
        element("title", gettext("Original and release compared"), id="t"),
        *([element("style", _STYLE)] if styled else []),
        element("rect", width=_WIDTH, height=height, fill="#fff"),
        *_legend(),
        *parts,
    ]
    return picture(lines, _WIDTH, height, role="img", aria_labelledby="t")


def _legend() -> list[str]:
    out = []
    for x, which in ((_LEFT, "original"), (_LEFT + 90, "released")):
        out.append(element("rect", x=x, y=20, width=14, height=14, rx=2, fill=_COLOURS[which]))
        out.append(_text(x + 20, 32, _log_title(which)))
    return out


def _log_title(which: str) -> str:
    return pgettext("log", "original") if which == "original" else pgettext("log", "released")


def _active(panel: _Panel, active: ActiveCases) -> list[str]:
    highest = max(*active.original, *active.released)
    step = _step(highest)
    reach = step * math.ceil(highest / step)
    ticks = [(i * step / reach, format_number(f"{i * step:,}")) for i in range(reach // step + 1)]
    size = len(active.original)
    out = panel.head(
        gettext("Cases under way"),
        gettext(
            "per {time}; relative difference {difference}, in shape alone {shape}",
            time=_bin(active.bin_seconds),
            difference=format_number(f"{active.difference:.3f}"),
            shape=format_number(f"{active.shape_difference:.3f}"),
        ),
    )
    out += panel.horizontal(ticks, gettext("cases"))
    since = gettext("time") if active.clock == "calendar" else gettext("time since each log's first event")
    out += panel.vertical(_times(active), since)
    for which, series in (("original", active.original), ("released", active.released)):
        # Each bin as a step, so that a single bin is seen as well.
        steps = [((i + side) / size, value / reach) for i, value in enumerate(series) for side in (0, 1)]
        out.append(panel.curve(steps, which))
    return out


def _times(active: ActiveCases) -> list[tuple[float, str]]:
    """Return some evenly spaced bins with the time at which they start."""
    size = len(active.original)
    places = sorted({round(i * size / 6) for i in range(7)})
    seconds = [place * active.bin_seconds for place in places]
    if active.start is None:
        names = [lasting(s / 3600) if s else "0" for s in seconds]
    else:
        start = datetime.datetime.fromisoformat(active.start)
        fine = active.bin_seconds < 86_400 and size * active.bin_seconds < 7 * 86_400
        names = [_moment(start, s, fine) for s in seconds]
    return [(place / size, name) for place, name in zip(places, names, strict=True)]


def _moment(start: datetime.datetime, seconds: int, fine: bool) -> str:
    try:
        moment = start + datetime.timedelta(seconds=seconds)
        return moment.strftime("%m-%d %H:%M") if fine else format_date(moment.strftime("%Y-%m-%d"))
    except OverflowError:  # the end of the last bin may lie after the year 9999
        return ""


def _durations(panel: _Panel, durations: CaseDurations) -> list[str]:
    both = (("original", durations.original), ("released", durations.released))
    positive = [q for _, d in both for q in d.quantiles if q > 0] or [_UNITS[0][0]]
    first = max((i for i, (size, _) in enumerate(_UNITS) if size <= min(positive)), default=0)
    last = min((i for i, (size, _) in enumerate(_UNITS) if size >= max(positive)), default=len(_UNITS) - 1)
    units = _UNITS[first : max(last, first + 1) + 1]
    low, high = math.log(units[0][0]), math.log(units[-1][0])

    def across(hours: float) -> float:
        return 0.0 if hours <= units[0][0] else min(1.0, (math.log(hours) - low) / (high - low))

    out = panel.head(
        gettext("How long cases last"),
        gettext(
            "median {original} in the original, {released} in the release; earth mover's distance {distance}",
            original=lasting(durations.original.median),
            released=lasting(durations.released.median),
            distance=lasting(durations.emd),
        ),
    )
    out += panel.horizontal([(i / 4, percent(f"{25 * i}")) for i in range(5)], gettext("share of cases"))
    out += panel.vertical(
        [(across(size), gettext(name)) for size, name in units], gettext("that last at most (logarithmic)")
    )
    for which, d in both:
        shares = [i / (len(d.quantiles) - 1) for i in range(len(d.quantiles))]
        out.append(panel.curve(zip(map(across, d.quantiles), shares, strict=True), which))
    return out


def _variants(panel: _Panel, result: Comparison) -> list[str]:
    v = result.variants
    rows = (
        (
            "original",
            result.original_cases,
            v.lost_cases,
            gettext_noop("shared: {same} cases; lost: {variants} variants with {cases} cases"),
            v.lost,
        ),
        (
            "released",
            result.released_cases,
            v.added_cases,
            gettext_noop("real: {same} cases; added: {variants} variants with {cases} cases"),
            v.added,
        ),
    )
    most = max(1, result.original_cases, result.released_cases)
    both = ngettext(
        "{n} variant is in both logs; pale: cases of variants in one only",
        "{n} variants are in both logs; pale: cases of variants in one only",
        v.common,
    )
    out = panel.head(gettext("Cases by variant"), both)
    for i, (which, cases, other, said, variants) in enumerate(rows):
        y = panel.top + 6 + 42 * i
        same = cases - other
        split = panel.x(same / most)
        out.append(_bar(_LEFT, y, split - _LEFT, _COLOURS[which]))
        out.append(_bar(split, y, panel.x(cases / most) - split, _PALE[which]))
        out.append(_text(_LEFT - 8, y + 15, _log_title(which), anchor="end"))
        out.append(_text(_LEFT, y + 35, gettext(said, same=same, variants=variants, cases=other), "s"))
    return out


def _bin(seconds: int) -> str:
    days, rest = divmod(seconds, 86_400)
    if days and not rest:
        return gettext("day") if days == 1 else gettext("week") if days == 7 else gettext("{n} days", n=days)
    hours, rest = divmod(seconds, 3_600)
    if hours and not rest:
        return gettext("hour") if hours == 1 else gettext("{n} hours", n=hours)
    return gettext("minute") if seconds == 60 else gettext("{n} minutes", n=seconds // 60)


def _step(highest: int) -> int:
    """Return a round step of which three to six reach ``highest``, if it is over 2."""
    step = 1
    while True:
        for factor in (1, 2, 5):
            if highest <= 6 * factor * step:
                return factor * step
        step *= 10


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return element("line", class_=kind, x1=float(x1), y1=float(y1), x2=float(x2), y2=float(y2))


def _bar(x: float, y: float, width: float, colour: str) -> str:
    return element("rect", x=float(x), y=y, width=max(0.0, width), height=20, fill=colour)


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "start", **more: str) -> str:
    return element("text", text, class_=kind, x=float(x), y=float(y), text_anchor=anchor, **more)
