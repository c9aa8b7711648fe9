"""A directly-follows map as a picture: the activities and steps, and their places.

It has layers from top to bottom, as K. Sugiyama, S. Tagawa and M. Toda draw hierarchies ("Methods for visual
understanding of hierarchical system structures", 1981). Steps that lead back to an activity that is earlier on average
are turned around. Each activity lies one layer below the lowest one that leads to it. Steps over several layers get a
place in each. Layers are sorted by the mean of their neighbours, and places are as near to their neighbours as the
space allows.

A map shows as many activities as fit a page in readable letters. Each activity shown keeps its most frequent way in and
out. If that leads to an activity for which there is no room, this one stands aside. A map opens with two steps for each
activity, one in and one out. It goes on to the most that can be drawn without any two crossing (Euler: three for each
activity, less six).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, TypeVar

import numpy as np

from veilog._typing import FloatArray
from veilog.charts import lasting
from veilog.logs.eventlog import EventLog
from veilog.logs.variants import Variants
from veilog.measures.directly_follows import edge_frequencies
from veilog.measures.durations import step_durations

BOX = 150
"""Width of an activity."""
LOOP = 68
"""Width of a step from an activity to itself, at its right, with its number."""
_LETTER, _LINE = 6.6, 13.0
"""Width of a digit, and height of a number."""
_FIRST = {True: 0.38, False: 0.7}
"""Place of a number if nothing is there: on one bend (True), or on a first bend."""
_THEN = (0.5, 0.25, 0.62, 0.8, 0.12)
_AWAY = 7.0
"""Distance from the middle of a line to the number next to it."""

Point = tuple[float, float]
Bend = tuple[Point, Point, Point, Point]
"""A cubic Bézier curve."""
Way = tuple[Point, ...]
"""Places from the middle of the upper box, through each layer, to that of the lower one."""
Room = tuple[float, float, float, float]
"""Left, top, right and bottom of a place that is taken."""

START, END = "\0start", "\0end"
"""Activities before the first and after the last of a case; XML cannot hold such names."""

_WIDEST = 1032 / 0.75
"""Widest picture: on a page, its letters of 12 pixels are 9 high, the least readable."""
Edge = tuple[str, str]
_ROOM, _PASSING, _GAP, _MARGIN = 52, 24, 24, 22
"""Space between two layers, for a line in a layer, next to it, and around all."""
_LONG, _HALF, _TALL = 20, 20.0, 27.0
"""Letters of the longest name on one line; half the height of boxes with one line, and two."""
N = TypeVar("N", int, float)


@dataclass(frozen=True)
class FlowSteps:
    """Counts of activities and direct steps, with a start and an end for every case.

    ``depth`` is the mean place of an activity in its cases (0 to 1), and ``follows`` the counts of its steps to other
    activities. ``hours`` is their mean duration, if times are known.
    """

    activities: Mapping[str, int]
    follows: Mapping[str, Mapping[str, int]]
    depth: Mapping[str, float]
    hours: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    @cached_property
    def edges(self) -> Mapping[Edge, int]:
        """Steps, each with its count."""
        return _flat(self.follows)

    @cached_property
    def lasting(self) -> Mapping[Edge, float]:
        """Hours of each step that has some."""
        return _flat(self.hours)

    @property
    def total(self) -> int:
        return sum(self.edges.values())


def _flat(nested: Mapping[str, Mapping[str, N]]) -> dict[Edge, N]:
    return {(a, b): number for a, then in nested.items() for b, number in then.items()}


def _nest(flat: Mapping[Edge, N]) -> dict[str, dict[str, N]]:
    found: dict[str, dict[str, N]] = {}
    for (a, b), number in flat.items():
        found.setdefault(a, {})[b] = number
    return found


@dataclass(frozen=True)
class Box:
    """An activity in the picture: its count, and ``after`` in the second log, if any.

    ``half`` is half of its height. One that is ``aside`` is only the end of another activity's way: its own ways are
    not drawn.
    """

    name: str
    x: float
    y: float
    count: int
    half: float = _HALF
    after: int | None = None
    aside: bool = False


@dataclass(frozen=True)
class FlowLine:
    """A step in the picture: its path, its count, and the place of its number.

    ``after`` is its count in the second log, if there is one. ``lasting`` is its mean duration in words: in the log, in
    the second one, and the difference.
    """

    source: str
    target: str
    path: str
    count: int
    x: float
    y: float
    after: int | None = None
    lasting: tuple[str, ...] = ()


@dataclass(frozen=True)
class FlowMap:
    """A picture of the most frequent steps of one log, or of two in one frame.

    The most frequent ways in and out are the first ``lines``, then come the others, most frequent first. The map opens
    with ``opening`` of them. ``most`` is the largest number at a line. ``shown`` is the share of all steps of the first
    log (starts and ends of cases included) with which it opens.
    """

    boxes: tuple[Box, ...]
    lines: tuple[FlowLine, ...]
    opening: int
    most: int
    width: float
    height: float
    shown: float


@dataclass(frozen=True)
class Arrangement:
    """Places of activities, and the points of each step, downwards from its upper end.

    ``half`` is half of the height of a box. ``opening`` is the number of steps with which a map opens, the first of
    them. Activities ``aside`` are only the ends of another's way.
    """

    places: Mapping[str, Point]
    ways: Mapping[Edge, Way]
    width: float
    height: float
    half: float
    opening: int = 0
    aside: frozenset[str] = frozenset()


def steps_of(variants: Variants, timed: EventLog | None = None) -> FlowSteps:
    """Return the steps of a log; ``timed`` is the log itself, if its times count."""
    labels = variants.labels
    weights = np.repeat(variants.counts, variants.lengths)
    counts = np.bincount(variants.codes, weights=weights, minlength=len(labels))
    lengths = np.repeat(variants.lengths, variants.lengths)
    inside = (np.arange(len(variants.codes)) - np.repeat(variants.offsets[:-1], variants.lengths) + 0.5) / lengths
    depths = np.bincount(variants.codes, weights=weights * inside, minlength=len(labels)) / np.maximum(counts, 1)
    edges = dict(edge_frequencies(variants))
    full = variants.lengths > 0
    for ends, side in ((variants.offsets[:-1][full], 0), (variants.offsets[1:][full] - 1, 1)):
        sums = np.bincount(variants.codes[ends], weights=variants.counts[full], minlength=len(labels))
        for code in np.flatnonzero(sums).tolist():
            edges[(START, labels[code]) if side == 0 else (labels[code], END)] = int(sums[code])
    named = zip(labels, counts.astype(int).tolist(), depths.tolist(), strict=True)
    activities, depth = {START: variants.cases, END: variants.cases}, {START: -1.0, END: 2.0}
    for label, count, deep in named:
        activities[label], depth[label] = count, deep
    return FlowSteps(activities, _nest(edges), depth, {} if timed is None else _nest(step_durations(timed)))


def arranged(logs: Iterable[FlowSteps]) -> Arrangement:
    """Return one arrangement for the most frequent steps of these logs, by share.

    It makes their maps comparable, and has as many activities as fit a page.
    """
    candidates = _Candidates.of(list(logs))
    found = tried = candidates.arranged(1)
    number, every = 1, len(candidates.ranked)
    # More activities are usually, but not always, wider.
    while number < every and tried.width <= 2 * _WIDEST:
        number = min(every, number + max(1, number // 4))
        tried = candidates.arranged(number)
        found = tried if tried.width <= _WIDEST else found
    return found


@dataclass(frozen=True)
class _Candidates:
    """The activities and steps that a map may show.

    Activities come most frequent first, each with its depth, and steps have their shares in all logs. ``main`` has the
    main ways out of activities, and into them, in each log (of more than two, in all together).
    """

    ranked: Sequence[str]
    depth: Mapping[str, float]
    share: Mapping[Edge, float]
    main: Sequence[Mapping[str, Sequence[Edge]]]

    @classmethod
    def of(cls, logs: Sequence[FlowSteps]) -> _Candidates:
        """Return those of these logs."""
        share: dict[Edge, float] = {}
        depth: dict[str, float] = {}
        weight: dict[str, float] = {}
        for steps in logs:
            total = max(1, steps.total)
            for edge, count in steps.edges.items():
                share[edge] = share.get(edge, 0.0) + count / total
            for name, count in steps.activities.items():
                weight[name] = weight.get(name, 0.0) + count / total
                depth[name] = depth.get(name, 0.0) + steps.depth[name] * count / total
        depth = {n: depth[n] / weight[n] for n in depth if weight[n]} | {START: -1.0, END: 2.0}
        own: list[Mapping[Edge, float]] = [steps.edges for steps in logs if len(logs) <= 2] or [share]
        ranked = sorted(weight.keys() - {START, END}, key=lambda n: (-weight[n], n))
        return cls(ranked, depth, share, [_main_ways(edges, side) for edges in own for side in (0, 1)])

    def arranged(self, activities: int) -> Arrangement:
        """Return the arrangement of so many activities, with the main ways of each."""
        names = {START, END, *self.ranked[:activities]}
        main = dict.fromkeys(edge for name in sorted(names) for edge in self._main_of(name))
        ends = {name for edge in main for name in edge}
        for name in sorted(ends - names):  # also those whose own ways lead over nothing else
            if all(ends.issuperset(edge) for edge in self._main_of(name)):
                main.update(dict.fromkeys(self._main_of(name)))
                names.add(name)
        among = sorted((e for e in self.share if names.issuperset(e)), key=lambda e: (-self.share[e], e))
        more = (edge for edge in among if edge not in main)
        opening = [*main, *itertools.islice(more, max(0, 2 * len(names) - len(main)))]
        every = [*opening, *itertools.islice(more, max(0, 3 * len(names) - 6 - len(opening)))]
        joined = {name for edge in every for name in edge}
        plan = _lay_out(sorted(joined, key=lambda n: (self.depth[n], n)), every)
        return replace(plan, opening=len(opening), aside=frozenset(joined - names))

    def _main_of(self, name: str) -> list[Edge]:
        return [edge for own in self.main for edge in own.get(name, ())]


def _main_ways(edges: Mapping[Edge, float], side: Literal[0, 1]) -> dict[str, list[Edge]]:
    """Return the most frequent way of each activity out to others (side 0), or in (1).

    It also has the step from an activity to itself, if that is more frequent.
    """
    found: dict[str, list[Edge]] = {}
    for edge in sorted((e for e in edges if edges[e]), key=lambda e: (-edges[e], e)):
        before = found.setdefault(edge[side], [])
        if not before or (len(before) == 1 and before[0][0] == before[0][1]):
            before.append(edge)
    return found


def draw_map(steps: FlowSteps, plan: Arrangement, after: FlowSteps | None = None) -> FlowMap:
    """Return the map of one log, or of two in one frame, without what neither has."""
    other = FlowSteps({}, {}, {}) if after is None else after
    numbers = {
        name: (steps.activities.get(name, 0), None if after is None else after.activities.get(name, 0))
        for name in plan.places
    }
    boxes = tuple(
        Box(name, *plan.places[name], number, plan.half, second, name in plan.aside)
        for name, (number, second) in numbers.items()
        if number or second
    )
    there = [edge for edge in plan.ways if steps.edges.get(edge) or other.edges.get(edge)]
    opening = sum(edge in there for edge in itertools.islice(plan.ways, plan.opening))
    lines = _lines(steps, plan, after, there, boxes)
    most = max((max(line.count, line.after or 0) for line in lines), default=1)
    shown = sum(line.count for line in lines[:opening]) / max(1, steps.total)
    return FlowMap(boxes, lines, opening, most, plan.width, plan.height, shown)


def _lines(
    steps: FlowSteps, plan: Arrangement, after: FlowSteps | None, there: Sequence[Edge], boxes: Iterable[Box]
) -> tuple[FlowLine, ...]:
    """Return the lines of these steps. Loops come first: their numbers cannot move."""
    taken = [room_of((box.x, box.y), plan.half) for box in boxes]
    bends = {
        (a, b): curve(plan.ways[a, b], plan.places[a][1] > plan.places[b][1], plan.half) for a, b in there if a != b
    }
    sampled = [_point_at(bend, t / 12) for own in bends.values() for bend in own for t in range(13)]
    points = np.array(sampled, dtype=np.float64).reshape(-1, 2)
    lines: dict[Edge, FlowLine] = {}
    for edge in sorted(there, key=lambda edge: edge[0] != edge[1]):
        numbers = steps.edges.get(edge, 0), None if after is None else after.edges.get(edge, 0)
        words = _words_of_times(steps.lasting.get(edge), None if after is None else after.lasting.get(edge))
        letters = max(len(f"{max(numbers[0], numbers[1] or 0):,}") + (after is not None), *map(len, words), 0)
        if edge in bends:
            path, (x, y) = path_of(bends[edge]), number_at(bends[edge], letters, taken, points)
        else:
            path, (x, y) = loop(*plan.ways[edge][0], letters)
            taken.append(_room_of_number(x, y - 4, letters))
        lines[edge] = FlowLine(*edge, path, numbers[0], x, y, numbers[1], words)
    return tuple(lines[edge] for edge in there)


def _words_of_times(hours: float | None, after: float | None) -> tuple[str, ...]:
    """Return a step's duration in both logs, and the difference; empty without times."""
    if hours is None and after is None:
        return ()
    words = ["" if h is None else lasting(max(0.0, h)) for h in (hours, after)]
    gap = "" if hours is None or after is None else f"{'−' if after < hours else '+'}{lasting(abs(after - hours))}"
    return (*words, gap)


def _lay_out(names: list[str], edges: list[Edge]) -> Arrangement:
    """Return the places of ``names``, given by depth; a step against them is turned."""
    rank = {name: i for i, name in enumerate(names)}
    down = {(min(e, key=rank.__getitem__), max(e, key=rank.__getitem__)) for e in edges if e[0] != e[1]}
    layer = dict.fromkeys(names, 0)
    for upper, lower in sorted(down, key=lambda e: (rank[e[0]], rank[e[1]])):
        layer[lower] = max(layer[lower], layer[upper] + 1)
    if END in layer:  # below all, even if the way there is not shown
        layer[END] = max(layer[END], *(layer[name] + 1 for name in names if name != END))
    started = {START}
    for upper, lower in sorted(down, key=lambda e: rank[e[1]]):
        if upper in started:
            started.add(lower)
    for name in reversed(
        names
    ):  # an activity without a way from the start lies just above its next one, not next to it
        below = [layer[lower] for upper, lower in down if upper == name]
        if name not in started and below:
            layer[name] = max(layer[name], min(below) - 1)
    # A chain of places for each step: its ends, and one in every layer that it crosses.
    chains = {
        edge: [
            edge[0],
            *(f"\0{rank[edge[0]]}-{rank[edge[1]]}-{k}" for k in range(layer[edge[0]] + 1, layer[edge[1]])),
            edge[1],
        ]
        for edge in sorted(down, key=lambda e: (rank[e[0]], rank[e[1]]))
    }
    rows: list[list[str]] = [[] for _ in range(max(layer.values(), default=0) + 1)]
    beside: dict[str, list[str]] = {name: [] for name in names}
    for name in names:
        rows[layer[name]].append(name)
    for chain in chains.values():
        for k, place in enumerate(chain):
            if place not in layer:
                layer[place] = layer[chain[0]] + k
                rows[layer[place]].append(place)
                beside[place] = []
        for a, b in itertools.pairwise(chain):
            beside[a].append(b)
            beside[b].append(a)
    looped = {a for a, b in edges if a == b}
    room = {n: (BOX / 2, BOX / 2 + LOOP * (n in looped)) if n in rank else (_PASSING / 2,) * 2 for n in layer}
    x = _place_columns(rows, beside, layer, room)
    low = min((x[n] - room[n][0] for n in x), default=0.0)
    high = max((x[n] + room[n][1] for n in x), default=0.0)
    half = _TALL if any(len(name) > _LONG for name in names) else _HALF
    down_to = 2 * half + _ROOM
    points = {n: (x[n] + _MARGIN - low, _MARGIN + half + down_to * layer[n]) for n in x}
    ways = {}
    for edge in edges:
        turned = edge if edge in chains else (edge[1], edge[0])
        ways[edge] = (points[edge[0]],) if edge[0] == edge[1] else tuple(points[n] for n in chains[turned])
    height = 2 * (_MARGIN + half) + down_to * (len(rows) - 1)
    return Arrangement({n: points[n] for n in names}, ways, high - low + 2 * _MARGIN, height, half)


def _place_columns(
    rows: list[list[str]],
    beside: Mapping[str, list[str]],
    layer: Mapping[str, int],
    room: Mapping[str, tuple[float, float]],
) -> dict[str, float]:
    """Return the places from left to right, by the ``room`` to each one's sides."""
    from scipy.optimize import isotonic_regression

    place = {name: float(i) for row in rows for i, name in enumerate(row)}
    for sweep in range(12):
        step = -1 if sweep % 2 == 0 else 1
        for row in rows if step == -1 else rows[::-1]:
            near = {n: [place[m] for m in beside[n] if layer[m] == layer[n] + step] for n in row}
            row.sort(key=lambda n: (sum(near[n]) / len(near[n]) if near[n] else place[n], place[n]))
            middle = (len(row) - 1) / 2
            place.update((n, i - middle) for i, n in enumerate(row))
    x = {n: 0.0 for row in rows for n in row}
    for turn in range(60):
        for row in rows if turn % 2 == 0 else rows[::-1]:
            wanted = np.array([_mean([x[m] for m in beside[n]], x[n]) for n in row])
            reach = np.array([room[a][1] + room[b][0] + _GAP for a, b in itertools.pairwise(row)])
            offsets = np.concatenate([[0.0], np.cumsum(reach)])
            weights = np.array([1.0 if room[n][0] > _PASSING else 3.0 for n in row])
            placed = isotonic_regression(wanted - offsets, weights=weights).x + offsets
            x.update(zip(row, placed.tolist(), strict=True))
    return x


def _mean(values: list[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


# The lines, which cross no box, and their numbers.


def curve(way: Way, upwards: bool, half: float) -> list[Bend]:
    """Return a line from box to box, vertical in every layer, that crosses no other.

    ``half`` is half of the height of a box.
    """
    side = 16.0 if upwards else -8.0  # so that a step and its reverse do not cover each other
    lean = [
        max(-BOX / 2 + 14, min(BOX / 2 - 14, 0.25 * (b - a)))
        for a, b in ((way[0][0], way[1][0]), (way[-1][0], way[-2][0]))
    ]
    first, last = (
        (way[0][0] + lean[0] + side, way[0][1] + half + 1),
        (way[-1][0] + lean[1] + side, way[-1][1] - half - 1),
    )
    inner = [(x + side / 2, y + end) for x, y in way[1:-1] for end in (-half, half)]
    points = [last, *inner[::-1], first] if upwards else [first, *inner, last]
    points[-1] = (points[-1][0], points[-1][1] + (7.0 if upwards else -7.0))  # the arrowhead ends at the box
    return [
        ((a, b), (a, b + (d - b) / 2), (c, d - (d - b) / 2), (c, d)) for (a, b), (c, d) in itertools.pairwise(points)
    ]


def loop(x: float, y: float, letters: int) -> tuple[str, Point]:
    """Return a line from a box to itself, at its right side, and its number's place."""
    right = x + BOX / 2
    bend = f"{right + 32:.1f} {y - 26:.1f} {right + 32:.1f} {y + 26:.1f}"
    place = right + 24 + _AWAY + _LETTER * letters / 2, y + 4
    return f"M{right:.1f} {y - 9:.1f}C{bend} {right + 9:.1f} {y + 10:.1f}", place


def path_of(bends: Sequence[Bend]) -> str:
    """Return the line as an SVG path."""
    path = f"M{bends[0][0][0]:.1f} {bends[0][0][1]:.1f}"
    return path + "".join("C" + " ".join(f"{x:.1f} {y:.1f}" for x, y in bend[1:]) for bend in bends)


def number_at(bends: Sequence[Bend], letters: int, taken: list[Room], lines: FloatArray) -> Point:
    """Return the place of a line's number: next to it, a little after its start.

    Otherwise it is where it covers least of what is ``taken``, and of the points of ``lines``. Its own room is added to
    ``taken``.
    """
    places = [_point_at(bends[0], _FIRST[len(bends) == 1]), *(_point_at(bend, t) for bend in bends for t in _THEN)]
    side = _AWAY + _LETTER * letters / 2
    rooms = [_room_of_number(x + sign * side, y, letters) for x, y in places for sign in (1, -1)]
    (left, top), (right, bottom) = np.array(rooms)[:, :2].T[:, :, None], np.array(rooms)[:, 2:].T[:, :, None]
    x, y = lines.T
    under = ((left - 2 < x) & (x < right + 2) & (top < y) & (y < bottom)).sum(axis=1)
    covered = [sum(_shared_area(r, other) for other in taken) + _LINE * n for r, n in zip(rooms, under, strict=True)]
    best = rooms[covered.index(min(covered))]  # the first of those that cover least
    taken.append(best)
    return (best[0] + best[2]) / 2, (best[1] + best[3]) / 2 + 4


def room_of(place: Point, half: float) -> Room:
    """Return the room of a box."""
    x, y = place
    return x - BOX / 2, y - half, x + BOX / 2, y + half


def _room_of_number(x: float, y: float, letters: int) -> Room:
    half = _LETTER * letters / 2
    return x - half, y - _LINE / 2, x + half, y + _LINE / 2


def _shared_area(a: Room, b: Room) -> float:
    return max(0.0, min(a[2], b[2]) - max(a[0], b[0])) * max(0.0, min(a[3], b[3]) - max(a[1], b[1]))


def _point_at(bend: Bend, t: float) -> Point:
    mix = ((1 - t) ** 3, 3 * (1 - t) ** 2 * t, 3 * (1 - t) * t**2, t**3)
    x, y = (sum(m * point[axis] for m, point in zip(mix, bend, strict=True)) for axis in (0, 1))
    return x, y
