"""The directly-follows map: right numbers, everything joined from start to end, nothing on top of another."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import veilog
from veilog import Variants
from veilog.logs.synthetic.hospital import hospital
from veilog.report.explorer import in_two
from veilog.report.flow_map import END, START, FlowMap, arranged, drawn, steps_of

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
    found = drawn(steps, arranged([steps]))
    assert {(line.source, line.target): line.count for line in found.lines} == steps.edges
    assert found.shown == 1.0
    assert {box.name: box.count for box in found.boxes} == steps.activities


@pytest.mark.parametrize("log", LOGS, ids=range(len(LOGS)))
def test_boxes_do_not_overlap_and_lie_in_the_picture(log: Variants) -> None:
    steps = steps_of(log)
    found = drawn(steps, arranged([steps]))
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
    """Points of all bends of a path."""
    numbers = [float(number) for number in re.findall(r"-?[\d.]+", path)]
    places = np.array(numbers).reshape(-1, 2)
    for start in range(0, len(places) - 1, 3):
        yield from (BENDS @ places[start : start + 4]).tolist()


@pytest.mark.slow
@pytest.mark.parametrize("log", LOGS, ids=range(len(LOGS)))
@pytest.mark.parametrize("more", [False, True])
def test_no_line_runs_over_a_box_and_no_number_lies_on_one(log: Variants, more: bool) -> None:
    steps = steps_of(log)
    found = drawn(steps, arranged([steps], more=more))
    half = box_half(found)
    for line in found.lines:
        others = [box for box in found.boxes if box.name not in (line.source, line.target)]
        for x, y in points_of(line.path):
            assert not [b.name for b in others if abs(b.x - x) < 74 and abs(b.y - y) < half - 1], line
        assert not [b.name for b in found.boxes if abs(b.x - line.x) < 75 and abs(b.y - line.y + 4) < half], line


@pytest.mark.slow
def test_numbers_keep_out_of_each_others_way() -> None:
    steps = steps_of(LOGS[1])
    found = drawn(steps, arranged([steps], more=True))
    for a, b in itertools.combinations(found.lines, 2):
        wide = 3.3 * (len(f"{a.count:,}") + len(f"{b.count:,}"))
        assert abs(a.x - b.x) >= wide or abs(a.y - b.y) >= 13, (a, b)


def test_names_that_differ_at_their_ends_are_told_apart() -> None:
    names = [f"haemoglobin, photoelectric, with differential count ({where})" for where in ("ward", "emergency")]
    assert in_two("admission") == ("admission",)
    assert in_two("admission to intensive care") == ("admission to", "intensive care")
    first, second = map(in_two, names)
    assert first != second
    assert all(len(line) <= 20 for line in (*first, *second))
    steps = steps_of(Variants.from_dict({tuple(names): 3}))
    assert box_half(drawn(steps, arranged([steps]))) > box_half(drawn(steps_of(SMALL), arranged([steps_of(SMALL)])))


@pytest.mark.parametrize("log", LOGS, ids=range(len(LOGS)))
def test_every_activity_is_reached_from_what_comes_earlier_and_left_to_what_comes_later(log: Variants) -> None:
    """As far as what is earlier, or later, is drawn at all."""
    steps = steps_of(log)
    found = drawn(steps, arranged([steps]))
    shown = {box.name for box in found.boxes}
    lines = {(line.source, line.target) for line in found.lines}
    forward = {(a, b) for a, b in steps.edges if shown.issuperset((a, b)) and steps.depth[a] < steps.depth[b]}
    assert {b for _, b in forward} == {b for _, b in lines & forward}
    assert {a for a, _ in forward} == {a for a, _ in lines & forward}


def least_of_main_ways(log: Variants, found: FlowMap) -> list[str]:
    """The activities that lack their most frequent way in from another one, or out to another one."""
    edges = {edge: count for edge, count in steps_of(log).edges.items() if edge[0] != edge[1]}
    lines = {(line.source, line.target) for line in found.lines}
    lacking = []
    for box in found.boxes:
        for side, end in ((0, END), (1, START)):
            every = {edge: count for edge, count in edges.items() if edge[side] == box.name}
            drawn_ones = [count for edge, count in every.items() if edge in lines]
            if box.name != end and max(drawn_ones, default=0) < max(every.values(), default=0):
                lacking.append(box.name)
    return lacking


@pytest.mark.slow
@pytest.mark.parametrize("log", LOGS, ids=range(len(LOGS)))
@pytest.mark.parametrize("more", [False, True])
def test_every_activity_keeps_its_most_frequent_way_in_and_out(log: Variants, more: bool) -> None:
    steps = steps_of(log)
    assert least_of_main_ways(log, drawn(steps, arranged([steps], more=more))) == []


@pytest.mark.nightly
@given(st.dictionaries(st.text("abcdefghijklmnopqrstuvwxyz", max_size=9).map(tuple), st.integers(1, 9), min_size=1))
def test_a_random_log_keeps_them_too_and_so_do_two(cases: dict[tuple[str, ...], int]) -> None:
    """At a detail so low that hardly anything else is shown, too."""
    one = Variants.from_dict(cases)
    two = Variants.from_dict({trace[::-1]: number for trace, number in cases.items()})
    first, second = steps_of(one), steps_of(two)
    plan = arranged([first, second])
    assert least_of_main_ways(one, drawn(first, plan)) == least_of_main_ways(two, drawn(second, plan)) == []
    assert least_of_main_ways(one, drawn(first, arranged([first]))) == []


@pytest.mark.slow
def test_admission_to_intensive_care_comes_from_where_it_mostly_does(logs: Path) -> None:
    """Sepsis: of its 117 the map had one that comes from ER Registration; 46 come from IV Antibiotics."""
    log = veilog.read(logs / "sepsis.xes.gz")
    steps = steps_of(log.variants)
    for more in (False, True):
        found = drawn(steps, arranged([steps], more=more))
        lines = {(line.source, line.target): line.count for line in found.lines}
        assert lines["IV Antibiotics", "Admission IC"] == 46
        assert least_of_main_ways(log.variants, found) == []


def test_two_logs_share_their_places_and_keep_their_numbers() -> None:
    one, two = steps_of(SMALL), steps_of(Variants.from_dict({("a", "c"): 3, ("d",): 40}))
    plan = arranged([one, two])
    first, second = drawn(one, plan), drawn(two, plan)
    places = {box.name: (box.x, box.y) for box in first.boxes}
    assert all(places.get(box.name, (box.x, box.y)) == (box.x, box.y) for box in second.boxes)
    assert {line.count for line in second.lines} == {3, 40}
    assert "d" not in places


def test_in_each_of_two_logs_every_activity_is_reached() -> None:
    """What is most frequent in both together may be what only one of them has."""
    usual = {("a", "b", "c"): 400, ("b", "c"): 40}
    many = {(f"x{i}", f"x{i}", f"y{i}"): 100 for i in range(5)}
    one = steps_of(Variants.from_dict({**usual, **many, ("a", "d", "c"): 3}))
    two = steps_of(Variants.from_dict({**usual, **many, ("b", "d", "c"): 90}))
    found = drawn(one, arranged([one, two]))
    assert ("a", "d") in {(line.source, line.target) for line in found.lines}


def test_a_log_without_events_is_a_map_without_lines() -> None:
    steps = steps_of(Variants.from_dict({(): 3}))
    assert drawn(steps, arranged([steps])).lines == ()


@pytest.mark.slow
def test_the_picture_is_the_same_each_time() -> None:
    steps = steps_of(LOGS[1])
    assert drawn(steps, arranged([steps])) == drawn(steps, arranged([steps]))


@pytest.mark.slow
def test_steps_of_a_log_with_times_say_how_long_they_take() -> None:
    log = hospital(100, seed=1)
    steps = steps_of(log.variants, log)
    found = drawn(steps, arranged([steps]))
    assert all((line.lasting != "") == (line.source != START and line.target != END) for line in found.lines)
    assert all(line.lasting == "" for line in drawn(steps_of(log.variants), arranged([steps])).lines)


@pytest.mark.slow
def test_more_is_drawn_where_it_can_be_filtered() -> None:
    steps = steps_of(random_log(3))
    few, many = drawn(steps, arranged([steps])), drawn(steps, arranged([steps], more=True))
    assert {box.name for box in few.boxes} < {box.name for box in many.boxes}
    assert len(few.lines) < len(many.lines)
    assert few.shown < many.shown
