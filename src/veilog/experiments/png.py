"""Plots as PNG, where resvg (extra ``png``) is installed and finds a font to draw text with."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from veilog.errors import MissingExtraError, VeilogError

__all__ = ["png_of", "why_no_png"]

_ZOOM = 2
"""Twice as many pixels as the SVG says, which is sharp in print and on fine screens."""
_FAMILIES = (
    "",
    "DejaVu Sans",
    "Noto Sans",
    "Liberation Sans",
    "Helvetica",
    "Segoe UI",
    "Roboto",
    "Open Sans",
    "Ubuntu",
)
"""What may stand for sans-serif; the first is the converter's own choice."""
_PROBE = '<svg xmlns="http://www.w3.org/2000/svg" width="20" height="20">{}</svg>'
_LETTER = '<text x="2" y="16" style="font:16px sans-serif">M</text>'


def why_no_png() -> str | None:
    """A sentence where plots cannot be written as PNG; None where they can."""
    try:
        _settings()
    except VeilogError as error:
        return str(error)
    return None


def png_of(svg: str) -> bytes:
    """The drawing as PNG."""
    settings = _settings()
    import resvg_py

    return bytes(resvg_py.svg_to_bytes(svg_string=svg, zoom=_ZOOM, **settings))


@lru_cache(maxsize=1)
def _settings() -> Mapping[str, Any]:
    """What makes the converter draw text: it leaves text out without a word where it finds no font for it."""
    try:
        import resvg_py
    except ImportError as error:
        raise MissingExtraError("Writing plots as PNG beside SVG", extra="png") from error
    for family in _FAMILIES:
        settings: dict[str, Any] = {"sans_serif_family": family} if family else {}
        with_letter, without = (
            resvg_py.svg_to_bytes(svg_string=_PROBE.format(text), **settings) for text in (_LETTER, "")
        )
        if with_letter != without:
            return settings
    raise VeilogError("Plots are SVG only: no font of this machine can be used for PNG. Install one, e.g. DejaVu Sans.")
