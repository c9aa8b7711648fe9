"""Results in a notebook: data frames, and cards of HTML for light and dark pages.

This module escapes the content of a card, so that a log's own words stay mere words.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from veilog.errors import MissingExtraError

if TYPE_CHECKING:
    import pandas as pd

_STYLE = (
    ".veilog{--i:#1d2430;--s:#667085;--l:#d9dee5;--b:#2f6690;--p:#fff;color:var(--i);background:var(--p);"
    "border:1px solid var(--l);border-radius:6px;padding:.7em 1em;max-width:60em;font:14px/1.45 system-ui,sans-serif}"
    ".veilog h4{margin:0 0 .4em;font-size:1.05em;font-weight:600}.veilog p{margin:.3em 0}"
    ".veilog .s{color:var(--s)}.veilog .good{border-left:3px solid #2e8540;padding-left:.6em}"
    ".veilog .fair{border-left:3px solid #b8860b;padding-left:.6em}"
    ".veilog .bad{border-left:3px solid #c0392b;padding-left:.6em}"
    ".veilog table{border-collapse:collapse;margin:.5em 0;font-size:13px}"
    ".veilog th,.veilog td{text-align:left;vertical-align:top;padding:.15em 1em .15em 0;border:0;background:none;"
    "color:inherit}.veilog th{color:var(--s);font-weight:500}.veilog .n{text-align:right;white-space:nowrap}"
    ".veilog .r{background:var(--b);height:.6em;border-radius:2px;min-width:1px;display:inline-block}"
    "@media (prefers-color-scheme:dark){.veilog{--i:#e6e9ee;--s:#9aa4b2;--l:#3a4250;--b:#6fa8d6;--p:#171b22}}"
)
_BAR = 120
"""Width of a bar for 1, in pixels."""


def frame(rows: Iterable[Mapping[str, Any]], columns: Sequence[str], what: str = "to_frame()") -> pd.DataFrame:
    """Return rows as a DataFrame with these columns."""
    try:
        import pandas as pd
    except ImportError as error:
        raise MissingExtraError(what, extra="pandas") from error
    return pd.DataFrame(list(rows), columns=list(columns))


def figure(value: Any) -> str:
    """Return a value as text for people."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4f}" if abs(value) < 1000 else f"{value:,.0f}"
    if isinstance(value, int):
        return f"{value:,}"
    return str(value)


def card(title: str, *parts: str) -> str:
    """Return a card with a title and parts that are HTML already."""
    return element("div", parts=[element("style", _STYLE), element("h4", title), *parts], class_="veilog")


def paragraph(text: str, kind: str = "") -> str:
    """Return a paragraph of a kind that marks its edge.

    A kind is ``s`` (aside), ``good``, ``fair`` or ``bad``.
    """
    return element("p", text, **({"class_": kind} if kind else {}))


def facts(pairs: Iterable[tuple[str, object]]) -> str:
    """Return a table of two columns: each fact and its value."""
    rows = (element("tr", parts=[element("th", what), element("td", figure(value))]) for what, value in pairs)
    return element("table", parts=rows)


def table(head: Sequence[str], rows: Iterable[Sequence[object]], numbers: Iterable[int] = ()) -> str:
    """Return a table whose columns ``numbers`` are aligned right.

    A cell may be an element that is HTML already (:func:`bar`).
    """
    right = set(numbers)

    def cell(name: str, place: int, value: object) -> str:
        kind = {"class_": "n"} if place in right else {}
        if isinstance(value, _Written):
            return element(name, parts=[str(value)], **kind)
        return element(name, figure(value), **kind)

    lines = [("th", head), *(("td", row) for row in rows)]
    return element(
        "table",
        parts=(element("tr", parts=[cell(n, i, v) for i, v in enumerate(line)]) for n, line in lines),
    )


class _Written(str):
    """An element that is HTML already."""

    __slots__ = ()


def bar(share: float) -> str:
    """Return a bar for a share of 1."""
    return _Written(element("span", class_="r", style=f"width:{round(_BAR * min(max(share, 0.0), 1.0))}px"))


# Pictures in SVG as text, element by element; whatever is in an element is escaped here ------------------------------


_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_ESCAPES_IN_VALUES = _ESCAPES | str.maketrans({'"': "&quot;"})


def element(name: str, text: str = "", /, parts: Iterable[str] = (), **attributes: str | float) -> str:
    """Return an element with attributes, a text, and parts that are HTML already.

    An attribute's name has ``_`` for ``-``, and one more at its end where it is a word of Python (``class_``). Numbers
    with a fraction are rounded to one place.
    """
    said = "".join(f' {key.rstrip("_").replace("_", "-")}="{_value(value)}"' for key, value in attributes.items())
    inside = escape(text) + "".join(parts)
    return f"<{name}{said}>{inside}</{name}>" if inside else f"<{name}{said}/>"


def picture(parts: Iterable[str], width: int, height: int, **attributes: str | float) -> str:
    """Return a self-contained picture, the content of a file, with an element a line."""
    sides: dict[str, str | float] = {"viewBox": f"0 0 {width} {height}", "width": width, "height": height}
    lines = "".join(f"{part}\n" for part in parts)
    return element("svg", parts=["\n", lines], xmlns="http://www.w3.org/2000/svg", **sides, **attributes) + "\n"


def points_of(places: Iterable[tuple[float, float]]) -> str:
    """Return places as the text of a polyline's points."""
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in places)


def escape(text: str) -> str:
    """Return a text escaped for a place between elements."""
    return text.translate(_ESCAPES)


def _value(value: str | float) -> str:
    return f"{value:.1f}" if isinstance(value, float) else str(value).translate(_ESCAPES_IN_VALUES)
