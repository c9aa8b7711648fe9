"""The directly-follows map: right numbers, all joined, and nothing overlapping."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import veilog
from veilog import Variants, release
from veilog._plain import from_plain, to_plain
from veilog.logs.synthetic.hospital import hospital
from veilog.report.explorer import explorer, split_text
from veilog.report.flow_map import END, START, FlowLine, FlowMap, FlowSteps, arranged, draw_map, steps_of

SMALL = Variants.from_dict({("a", "b", "b", "c"): 10, ("a", "c"): 5, (): 2})


def random_log(seed: int) -> Variants:
    rng = np.random.default_rng(seed)
    names = [f"activity {i}" for i in range(int(rng.integers(1, 30)))]
    made = [tuple(rng.choice(names, size=int(rng.integers(0, 12))).tolist()) for _ in range(200)]
    return Variants.from_sequences(made)


BENDS = np.array([[(1 - t) ** 3, 3 * (1 - t) ** 2 * t, 3 * (1 - t) * t**2, t**3] for t in np.linspace(0, 1, 40)])
LOGS = [SMALL, hospital(300, seed=1).variants, *(random_log(seed) for seed in range(8))]


def test_steps_start_and_end_with_every_case_that_has_events() -> None:
    steps = steps_of(SMALL)
    assert steps.edges == {
        (START, "a"): 15,
        ("a", "b"): 10,
        ("b", "b"): 10,
        ("b", "c"): 10,
        ("a", "c"): 5,
        ("c", END): 15,
    }
    assert steps.activities == {START: 17, END: 17, "a": 15, "b": 20, "c": 15}
    assert steps.depth["a"] < steps.depth["b"] < steps.depth["c"]


def test_a_small_log_is_drawn_whole() -> None:
    steps = steps_of(SMALL)
    found = draw_map(steps, arranged([steps]))
    assert {(line.source, line.target): line.count for line in found.lines} == steps.edges
    assert found.shown == 1.0
    assert {box.name: box.count for box in found.boxes} == steps.activities


@pytest.mark.parametrize("log", LOGS, ids=range(len(LOGS)))
def test_boxes_do_not_overlap_and_lie_in_the_picture(log: Variants) -> None:
    steps = steps_of(log)
    found = draw_map(steps, arranged([steps]))
    for a, b in itertools.combinations(found.boxes, 2):
        assert abs(a.x - b.x) >= 150 - 1e-6 or abs(a.y - b.y) >= 2 * box_half(found)
    for box in found.boxes:
        assert 75 <= box.x <= found.width - 75
        assert box.half <= box.y <= found.height - box.half
        assert box.name == END or box.y < next(b.y for b in found.boxes if b.name == END)


def box_half(found: FlowMap) -> float:
    (half,) = {box.half for box in found.boxes}
    return half


def points_of(path: str) -> Iterator[tuple[float, float]]:
    """Yield the points of all bends of a path."""
    numbers = [float(number) for number in re.findall(r"-?[\d.]+", path)]
    places = np.array(numbers).reshape(-1, 2)
    for start in range(0, len(places) - 1, 3):
        yield from (BENDS @ places[start : start + 4]).tolist()


@pytest.mark.slow
@pytest.mark.parametrize("log", LOGS, ids=range(len(LOGS)))
def test_no_line_runs_over_a_box_and_no_number_lies_on_one(log: Variants) -> None:
    steps = steps_of(log)
    found = draw_map(steps, arranged([steps]))
    half = box_half(found)
    for line in found.lines:
        others = [box for box in found.boxes if box.name not in (line.source, line.target)]
        for x, y in points_of(line.path):
            assert not [b.name for b in others if abs(b.x - x) < 74 and abs(b.y - y) < half - 1], line
        assert not [b.name for b in found.boxes if abs(b.x - line.x) < 75 and abs(b.y - line.y + 4) < half], line


@pytest.mark.slow
def test_numbers_keep_out_of_each_others_way() -> None:
    steps = steps_of(LOGS[1])
    found = draw_map(steps, arranged([steps]))
    for a, b in itertools.combinations(found.lines, 2):
        wide = 3.3 * (len(f"{a.count:,}") + len(f"{b.count:,}"))
        assert abs(a.x - b.x) >= wide or abs(a.y - b.y) >= 13, (a, b)


def test_names_that_differ_at_their_ends_are_told_apart() -> None:
    names = [f"haemoglobin, photoelectric, with differential count ({where})" for where in ("ward", "emergency")]
    assert split_text("admission") == ("admission",)
    assert split_text("admission to intensive care") == ("admission to", "intensive care")
    first, second = map(split_text, names)
    assert first != second
    assert all(len(line) <= 20 for line in (*first, *second))
    steps = steps_of(Variants.from_dict({tuple(names): 3}))
    assert box_half(draw_map(steps, arranged([steps]))) > box_half(
        draw_map(steps_of(SMALL), arranged([steps_of(SMALL)]))
    )


def lacking(frame: pd.DataFrame, lines: Iterable[FlowLine], shown: Iterable[str], number: str = "count") -> list[str]:
    """Return the shown activities without their most frequent way in or out.

    The counts are those that pandas makes of the events of a log, in the order of its cases.
    """
    frame = frame[["case", "activity"]].assign(before=frame.groupby("case").activity.shift(1).fillna(START))
    ends = frame.groupby("case").activity.last().to_frame("before").assign(activity=END)
    counted = pd.concat([frame, ends]).groupby(["before", "activity"]).size()
    drawn_ones = {(line.source, line.target): getattr(line, number) for line in lines if getattr(line, number)}
    assert all(counted[edge] == count for edge, count in drawn_ones.items())
    missing = []
    for side, (level, end) in enumerate((("before", END), ("activity", START))):
        most = counted.groupby(level=level).max()
        kept = {name: [count for edge, count in drawn_ones.items() if edge[side] == name] for name in shown}
        missing += [name for name in shown if name != end and max(kept[name], default=0) < most.get(name, 0)]
    return missing


def frame_of(variants: Variants) -> pd.DataFrame:
    """Return the events of these cases, one a row."""
    cases = [trace for trace, number in variants.to_dict().items() for _ in range(number)]
    rows = [(case, activity) for case, trace in enumerate(cases) for activity in trace]
    return pd.DataFrame(rows, columns=["case", "activity"])


def names_of(found: FlowMap) -> list[str]:
    return [box.name for box in found.boxes if not box.aside]


@pytest.mark.slow
@pytest.mark.parametrize("log", LOGS, ids=range(len(LOGS)))
def test_every_activity_keeps_its_most_frequent_way_in_and_out(log: Variants) -> None:
    steps = steps_of(log)
    found = draw_map(steps, arranged([steps]))
    assert lacking(frame_of(log), found.lines[: found.opening], names_of(found)) == []


@pytest.mark.nightly
@given(st.dictionaries(st.text("abcdefghijklmnopqrstuvwxyz", max_size=9).map(tuple), st.integers(1, 9), min_size=1))
def test_a_random_log_keeps_them_too_and_so_do_two(cases: dict[tuple[str, ...], int]) -> None:
    one = Variants.from_dict(cases)
    two = Variants.from_dict({trace[::-1]: number for trace, number in cases.items()})
    first, second = steps_of(one), steps_of(two)
    found = draw_map(first, arranged([first, second]), second)
    for log, number in ((one, "count"), (two, "after")):
        shown = [box.name for box in found.boxes if getattr(box, number) and not box.aside]
        assert lacking(frame_of(log), found.lines[: found.opening], shown, number) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sepsis", "bpic2013_incidents", "receipt", "made up"])
def test_every_activity_shown_has_the_way_in_and_out_that_pandas_counts(name: str, logs: Path) -> None:
    """Every shown activity has the most frequent way in and out, by pandas' counts."""
    log = hospital(500, seed=3) if name == "made up" else veilog.read(logs / f"{name}.xes.gz")
    frame = log.to_pandas().rename(columns={"case:concept:name": "case", "concept:name": "activity"})
    original = steps_of(log.variants)
    published = release(log, method="evolve", epsilon=1.0, activities=log.variants.labels, seed=1).variants
    both = steps_of(published)
    alone, beside = draw_map(original, arranged([original])), draw_map(original, arranged([original, both]), both)
    for found in (alone, beside):
        shown = [box.name for box in found.boxes if box.count and not box.aside]
        assert lacking(frame, found.lines[: found.opening], shown) == []
    shown = [box.name for box in beside.boxes if box.after and not box.aside]
    assert lacking(frame_of(published), beside.lines[: beside.opening], shown, "after") == []
    if name == "sepsis":
        lines = {(line.source, line.target): line.count for line in alone.lines[: alone.opening]}
        assert lines["IV Antibiotics", "Admission IC"] == 46


@pytest.mark.slow
@pytest.mark.parametrize("log", LOGS, ids=range(len(LOGS)))
def test_a_map_opens_with_two_ways_for_each_activity_and_fits_a_page(log: Variants) -> None:
    steps = steps_of(log)
    found = draw_map(steps, arranged([steps]))
    joined = sum(line.count for line in found.lines)
    assert found.opening <= len(found.lines) <= len(steps.edges)
    shown = len(names_of(found))
    assert len(found.lines) <= max(found.opening, 3 * shown - 6)
    assert found.opening == len(found.lines) or 2 * shown <= found.opening <= 4 * shown
    assert found.shown <= joined / steps.total
    assert 0.75 * found.width <= 1032


def test_two_logs_are_drawn_in_one_frame_with_both_their_numbers() -> None:
    one, two = steps_of(SMALL), steps_of(Variants.from_dict({("a", "c"): 3, ("d",): 40}))
    found = draw_map(one, arranged([one, two]), two)
    assert {(line.source, line.target): (line.count, line.after) for line in found.lines} == {
        edge: (one.edges.get(edge, 0), two.edges.get(edge, 0)) for edge in {*one.edges, *two.edges}
    }
    assert {box.name: (box.count, box.after) for box in found.boxes}["d"] == (0, 40)
    assert found.most == 40


def test_steps_come_back_from_the_store_as_they_went() -> None:
    log = hospital(30, seed=1)
    steps = steps_of(log.variants, log)
    assert from_plain(FlowSteps, json.loads(json.dumps(to_plain(steps)))) == steps


def test_in_each_of_two_logs_every_activity_is_reached() -> None:
    """In each of two logs every activity is reached, whatever both have together."""
    usual = {("a", "b", "c"): 400, ("b", "c"): 40}
    many = {(f"x{i}", f"x{i}", f"y{i}"): 100 for i in range(2)}
    one = steps_of(Variants.from_dict({**usual, **many, ("a", "d", "c"): 3}))
    two = steps_of(Variants.from_dict({**usual, **many, ("b", "d", "c"): 90}))
    found = draw_map(one, arranged([one, two]))
    assert ("a", "d") in {(line.source, line.target) for line in found.lines}


def test_a_log_without_events_is_a_map_without_lines() -> None:
    steps = steps_of(Variants.from_dict({(): 3}))
    assert draw_map(steps, arranged([steps])).lines == ()


def test_activities_of_a_subset_have_the_colours_of_the_whole_log() -> None:
    whole = Variants.from_dict({("a", "b"): 9, ("b", "c"): 8, ("c", "d"): 1})
    subset, published = Variants.from_dict({("c", "d"): 1}), Variants.from_dict({("d", "c"): 2, ("e",): 1})
    colours = {chevron.text: chevron.colour for chevron in explorer(whole).legend}
    found = {chevron.text: chevron.colour for chevron in explorer(published, subset, whole).legend}
    assert found == {"c": colours["c"], "d": colours["d"], "e": 4}


@pytest.mark.slow
def test_the_picture_is_the_same_each_time() -> None:
    steps = steps_of(LOGS[1])
    assert draw_map(steps, arranged([steps])) == draw_map(steps, arranged([steps]))


@pytest.mark.slow
def test_steps_of_a_log_with_times_say_how_long_they_take() -> None:
    log = hospital(100, seed=1)
    steps = steps_of(log.variants, log)
    found = draw_map(steps, arranged([steps]))
    assert all((line.lasting != ()) == (line.source != START and line.target != END) for line in found.lines)
    assert all(line.lasting == () for line in draw_map(steps_of(log.variants), arranged([steps])).lines)
    slower = replace(steps, hours={a: {b: hours + 2 for b, hours in then.items()} for a, then in steps.hours.items()})
    gaps = [line.lasting[2] for line in draw_map(steps, arranged([steps, slower]), slower).lines if line.lasting]
    assert gaps and set(gaps) == {"+2.0 h"}
