"""Plots as SVG and PNG: names as text, gaps, empty plots, and the missing extra."""

from __future__ import annotations

import math
import sys
from xml.etree import ElementTree

import pytest

from veilog.errors import MissingExtraError
from veilog.experiments.experiment import Drawing, HeatMap, HeatMaps, Lines, Panels

GAPS = Lines("a < b $x$", ["1", "2"], {"x & y": [(0.1, 0.2, 0.3), None], "gone": [(math.nan,) * 3, None]}, ("", ""))
GRID = HeatMaps("t", [HeatMap("<log>", ["1"], ["2"], {("1", "2"): None}, {("1", "2"): 0.5})], ("e", "d"))
PANELS = Panels(
    "logs",
    ["1", "2"],
    {f"log {i}": {"one": [(0.1, 0.2, 0.3), None], "two <": [(0.1, 0.2, 0.3), (0.2, 0.3, 0.4)]} for i in range(4)},
    ("e", "s"),
)
NOTHING = (HeatMaps("none", [], ("", "")), Lines("none", [], {}, ("", "")), Panels("none", [], {}, ("", "")))


def words(drawing: Drawing) -> list[str]:
    return [text.strip() for text in ElementTree.fromstring(drawing.svg()).itertext() if text.strip()]


def test_a_drawing_has_its_names_and_is_the_same_each_time() -> None:
    pytest.importorskip("matplotlib")
    assert {"a < b $x$", "x & y"} <= set(words(GAPS))
    assert GAPS.svg() == GAPS.svg()
    assert GAPS.image("png").startswith(b"\x89PNG")
    assert {"<log>", "[0.50]", "-"} <= set(words(GRID))


@pytest.mark.slow
def test_panels_have_a_grid_a_log_and_one_legend() -> None:
    pytest.importorskip("matplotlib")
    found = words(PANELS)
    assert [found.count(name) for name in ("log 0", "log 3", "one", "two <")] == [1, 1, 1, 1]


@pytest.mark.slow
@pytest.mark.parametrize(
    "drawing", [HeatMaps("none", [], ("", "")), Lines("none", [], {}, ("", "")), Panels("none", [], {}, ("", ""))]
)
def test_nothing_can_be_drawn(drawing: Drawing) -> None:
    pytest.importorskip("matplotlib")
    assert "none" in words(drawing)


def test_without_the_extra_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError) as refused:
        GAPS.svg()
    assert refused.value.extra == "experiments"
