"""Pictures in SVG as text, element by element; whatever is in an element is escaped here."""

from __future__ import annotations

from collections.abc import Iterable

_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_ESCAPES_IN_VALUES = _ESCAPES | str.maketrans({'"': "&quot;"})


def element(name: str, text: str = "", /, parts: Iterable[str] = (), **attributes: str | float) -> str:
    """Return an element with its attributes, holding a text and elements that are written already.

    An attribute's name has ``_`` for ``-``, and one more at its end where it is a word of Python (``class_``). Numbers
    with a fraction are rounded to one place.
    """
    said = "".join(f' {key.rstrip("_").replace("_", "-")}="{_value(value)}"' for key, value in attributes.items())
    inside = escaped(text) + "".join(parts)
    return f"<{name}{said}>{inside}</{name}>" if inside else f"<{name}{said}/>"


def picture(parts: Iterable[str], width: int, height: int, **attributes: str | float) -> str:
    """Return a picture that stands for itself: a file's content, an element a line."""
    sides: dict[str, str | float] = {"viewBox": f"0 0 {width} {height}", "width": width, "height": height}
    lines = "".join(f"{part}\n" for part in parts)
    return element("svg", parts=["\n", lines], xmlns="http://www.w3.org/2000/svg", **sides, **attributes) + "\n"


def points_of(places: Iterable[tuple[float, float]]) -> str:
    """Return places as the points of a line."""
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in places)


def escaped(text: str) -> str:
    """Return a text as it stands between elements."""
    return text.translate(_ESCAPES)


def _value(value: str | float) -> str:
    return f"{value:.1f}" if isinstance(value, float) else str(value).translate(_ESCAPES_IN_VALUES)
