"""Plots as PNG: with text on them or not at all, and a word about how to get them."""

from __future__ import annotations

import struct
import sys
from types import SimpleNamespace

import pytest

from veilog.errors import MissingExtraError, VeilogError
from veilog.experiments import results as png
from veilog.experiments.plots import lines

SVG = lines("title", ["1", "2"], {"one": [(0.1, 0.2, 0.3), (0.4, 0.5, 0.6)]}, ("x", "y"))


@pytest.fixture(autouse=True)
def fresh() -> None:
    png._settings.cache_clear()


@pytest.mark.slow
def test_a_plot_becomes_a_png_of_twice_its_size_with_its_text() -> None:
    pytest.importorskip("resvg_py")
    if (why := png.why_no_png()) is not None:
        pytest.skip(why)
    made = png.png_of(SVG)
    assert made.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", made[16:24])
    assert f'width="{width // 2}" height="{height // 2}"' in SVG
    assert made != png.png_of(SVG.replace(">title<", "><"))


def test_without_the_converter_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    assert "veilog[png]" in (png.why_no_png() or "")
    with pytest.raises(MissingExtraError):
        png.png_of(SVG)


def test_without_fonts_there_is_no_png_rather_than_one_without_text(monkeypatch: pytest.MonkeyPatch) -> None:
    blind = SimpleNamespace(svg_to_bytes=lambda **_: b"the same without text")
    monkeypatch.setitem(sys.modules, "resvg_py", blind)
    assert "no font" in (png.why_no_png() or "")
    with pytest.raises(VeilogError, match="Install one"):
        png.png_of(SVG)


def test_a_font_that_can_stand_for_sans_serif_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def drawn(svg_string: str, sans_serif_family: str = "Arial", zoom: int = 1) -> bytes:
        return b"text" if sans_serif_family == "Noto Sans" and "<text" in svg_string else b"none"

    monkeypatch.setitem(sys.modules, "resvg_py", SimpleNamespace(svg_to_bytes=drawn))
    assert png.why_no_png() is None
    assert png.png_of(SVG) == b"text"
