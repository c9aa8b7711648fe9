"""Charts are well-formed, self-contained and right, for any two logs."""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from veilog import EventLog, Variants, cli, compare
from veilog.charts import bars, comparison_svg, lasting, times_view
from veilog.logs import files
from veilog.logs.synthetic.hospital import hospital
from veilog.measures import Comparison, Found
from veilog.measures.durations import Spans, active_cases, case_durations
from veilog.messages import Message

LOG = hospital(60, seed=1)
SVG = "{http://www.w3.org/2000/svg}"


def drawn(original: EventLog | Variants, released: EventLog | Variants) -> ET.Element:
    return ET.fromstring(comparison_svg(compare(original, released)))


def with_times(first: list[int], last: list[int]) -> Comparison:
    """Return a comparison of two logs of which only the times matter."""
    log = Spans(np.array(first), np.array(last), 0)
    result = compare(LOG.variants, LOG.variants)
    times = {"case_durations": Found(case_durations(log, log)), "active_cases": Found(active_cases(log, log))}
    return replace(result, results={**result.results, **times})


def words(picture: ET.Element) -> str:
    return " | ".join(element.text or "" for element in picture.iter(f"{SVG}text"))


@pytest.mark.slow
def test_the_picture_is_self_contained_and_names_its_axes() -> None:
    text = comparison_svg(compare(LOG, hospital(40, seed=2)))
    picture = ET.fromstring(text)
    assert not re.search(r"href|url\(|@import|<script|<image|<foreignObject", text)
    assert re.findall(r"https?://[^\"']*", text) == ["http://www.w3.org/2000/svg"]
    for label in (
        "Cases under way",
        "How long cases last",
        "Cases by variant",
        "share of cases",
        "original",
        "released",
    ):
        assert label in words(picture)
    assert len(list(picture.iter(f"{SVG}polyline"))) == 4


@pytest.mark.slow
def test_everything_lies_inside_the_picture() -> None:
    picture = drawn(LOG, hospital(40, seed=2))
    width, height = (float(picture.get(side, "")) for side in ("width", "height"))
    for line in picture.iter(f"{SVG}polyline"):
        points = np.array([[float(c) for c in p.split(",")] for p in line.get("points", "").split()])
        assert np.isfinite(points).all()
        assert (points >= 0).all() and (points <= [width, height]).all()


@pytest.mark.slow
def test_equal_logs_draw_equal_lines() -> None:
    lines = [line.get("points") for line in drawn(LOG, LOG).iter(f"{SVG}polyline")]
    assert lines[0] == lines[1] and lines[2] == lines[3]


@pytest.mark.slow
def test_without_times_the_picture_says_why_and_shows_the_variants() -> None:
    picture = drawn(LOG, LOG.variants)
    shown = words(picture)
    assert str(Message("durations-of-variants", name="released")) in shown and "Cases by variant" in shown
    assert not list(picture.iter(f"{SVG}polyline"))


@pytest.mark.slow
def test_an_empty_release_is_drawn() -> None:
    assert "real: 0 cases" in words(drawn(LOG, Variants.from_dict({})))
    assert drawn(Variants.from_dict({}), Variants.from_dict({})) is not None


YEAR_1, YEAR_9999 = (int(np.datetime64(t, "us").astype(np.int64)) for t in ("0001-01-01", "9999-12-31T23:59:59"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "last"),
    [
        ([0], [0]),
        ([0, 5], [0, 5]),
        ([0], [3_600_000_000]),
        ([0], [10**15]),
        ([YEAR_1, 0], [YEAR_1, YEAR_9999]),
        ([YEAR_9999], [YEAR_9999]),
        ([YEAR_1], [YEAR_1]),
    ],
)
def test_every_length_of_time_can_be_drawn(first: list[int], last: list[int]) -> None:
    result = with_times(first, last)
    assert "NaN" not in comparison_svg(result) and ET.fromstring(comparison_svg(result)) is not None
    console = Console(width=60, record=True, file=io.StringIO())
    console.print(times_view(result.case_durations, result.active_cases))
    assert "cases under way" in console.export_text()


def test_bars_are_as_high_as_the_values() -> None:
    assert bars([0, 1, 4, 8], 8, 10) == " ▁▄█"
    assert bars([0, 1, 4, 9], 9, 10, plain=True) == " .=@"
    assert bars([8, 8, 0, 0], 8, 2) == "█ "
    assert len(bars(list(range(1000)), 999, 80)) == 80


@pytest.mark.parametrize(
    ("hours", "text"),
    [(0.0, "0 s"), (0.5, "30.0 min"), (1, "1.0 h"), (36, "1.5 days"), (800, "33.3 days"), (9000 * 2, "2.1 years")],
)
def test_durations_in_words(hours: float, text: str) -> None:
    assert lasting(hours) == text


@pytest.mark.slow
def test_the_command_draws_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files.write(LOG, tmp_path / "a.xes")
    files.write(hospital(50, seed=5), tmp_path / "b.xes")
    arguments = ["compare", str(tmp_path / "a.xes"), str(tmp_path / "b.xes"), "--chart"]
    assert cli.main([*arguments, str(tmp_path / "c.svg"), "--details"]) == 0
    shown = capsys.readouterr().out
    assert "case durations" in shown and "cases under way" in shown
    assert ET.parse(tmp_path / "c.svg").getroot().tag == f"{SVG}svg"


@pytest.mark.parametrize(("name", "words"), [("c.png", ".svg, not"), ("no/c.svg", "folder does not exist")])
def test_a_chart_that_cannot_be_written_is_refused_before_any_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, words: str
) -> None:
    assert cli.main(["compare", "missing.xes", "missing.xes", "--chart", str(tmp_path / name)]) in (2, 5)
    assert words in " ".join(capsys.readouterr().err.split())
