"""A directly-follows map as a picture: which activities and steps are shown, and where they lie.

Layers from top to bottom, as K. Sugiyama, S. Tagawa and M. Toda draw hierarchies ("Methods for visual understanding of
hierarchical system structures", 1981): steps that lead back to what comes earlier on average are turned around, each
activity is put one layer below the lowest one that leads to it, steps over several layers get a place in each, layers
are sorted by the mean of their neighbours, and places are as near to their neighbours as the space allows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from veilog.charts import lasting
from veilog.logs.eventlog import EventLog
from veilog.logs.variants import Variants
from veilog.measures.directly_follows import edge_frequencies
from veilog.measures.durations import step_durations

BOX = 150
"""How wide an activity is."""
LOOP = 46
"""What a step from an activity to itself takes to its right, with its number."""
_LETTER, _LINE = 6.6, 13.0
"""How large the numbers are."""
_FIRST = {True: 0.38, False: 0.7}
"""Where a number stands if nothing is there: of a line of one bend, and in the first bend of any other."""
_THEN = (0.5, 0.25, 0.62, 0.8, 0.12)

Point = tuple[float, float]
Bend = tuple[Point, Point, Point, Point]
"""A cubic Bézier curve."""
Way = tuple[Point, ...]
"""From the middle of the upper box, through a place in every layer between, to the middle of the lower one."""
Room = tuple[float, float, float, float]
"""Left, top, right, bottom."""

START, END = "\0start", "\0end"
"""Before the first and after the last activity of a case; XML cannot hold such names."""

_SHOWN = 14, 24
"""The most frequent activities and steps, which are shown; and of each activity its most frequent way in and out, with
what these lead over."""
_MORE = 24, 48
Edge = tuple[str, str]
_ROOM, _PASSING, _GAP, _MARGIN = 52, 24, 24, 22
"""Between two layers, for a line in a layer, beside it, and around all."""
_LONG, _HALF, _TALL = 20, 20.0, 27.0
"""Names of more letters take two lines; then all boxes are taller: half of their heights."""


@dataclass(frozen=True)
class FlowSteps:
    """How often each activity occurs and follows another directly, with a start and an end to every case, and how far
    into its cases an activity is on average (0 to 1)."""

    activities: Mapping[str, int]
    edges: Mapping[tuple[str, str], int]
    depth: Mapping[str, float]
    lasting: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """Hours from one activity to the next, on average, where times are known."""

    @property
    def total(self) -> int:
        return sum(self.edges.values())


@dataclass(frozen=True)
class Box:
    """An activity in the picture."""

    name: str
    x: float
    y: float
    count: int
    half: float = _HALF
    """Half of its height."""


@dataclass(frozen=True)
class FlowLine:
    """A step in the picture: its path, how wide it is, and where its number stands."""

    source: str
    target: str
    path: str
    width: float
    count: int
    x: float
    y: float
    lasting: str = ""
    """How long it takes on average, in words."""


@dataclass(frozen=True)
class FlowMap:
    """A picture of the most frequent steps."""

    boxes: tuple[Box, ...]
    lines: tuple[FlowLine, ...]
    width: float
    height: float
    shown: float
    """The share of all steps (starts and ends of cases included) that the lines stand for."""


@dataclass(frozen=True)
class Arrangement:
    """Where activities lie, and through which points each step goes, downwards from its upper end."""

    places: Mapping[str, tuple[float, float]]
    ways: Mapping[tuple[str, str], tuple[tuple[float, float], ...]]
    width: float
    height: float
    half: float
    """Half of the height of a box."""


def steps_of(variants: Variants, timed: EventLog | None = None) -> FlowSteps:
    """What the map of a log is drawn from; ``timed`` is the log itself, where its times mean something."""
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
    return FlowSteps(activities, edges, depth, {} if timed is None else step_durations(timed))


def arranged(logs: Iterable[FlowSteps], *, more: bool = False) -> Arrangement:
    """One arrangement for the most frequent steps of all these logs (by their shares), so that maps can be compared;
    ``more`` of them, where they can be filtered."""
    most_activities, most_edges = _MORE if more else _SHOWN
    share: dict[tuple[str, str], float] = {}
    depth: dict[str, float] = {}
    weight: dict[str, float] = {}
    logs = list(logs)
    for steps in logs:
        total = max(1, steps.total)
        for edge, count in steps.edges.items():
            share[edge] = share.get(edge, 0.0) + count / total
        for name, count in steps.activities.items():
            weight[name] = weight.get(name, 0.0) + count / total
            depth[name] = depth.get(name, 0.0) + steps.depth[name] * count / total
    depth = {START: -1.0, END: 2.0} | {n: depth[n] / weight[n] for n in depth if n not in (START, END) and weight[n]}
    own: list[Mapping[Edge, float]] = [steps.edges for steps in logs if len(logs) <= 2] or [share]
    main = tuple(_main_ways(edges, side) for edges in own for side in (0, 1))
    names, ways = _closed(sorted(weight.keys() - {START, END}, key=lambda n: (-weight[n], n)), main, most_activities)
    candidates = sorted((e for e in share if names.issuperset(e)), key=lambda e: (-share[e], e))
    kept = dict.fromkeys([*candidates[:most_edges], *ways])
    forward = [e for e in candidates if depth[e[0]] < depth[e[1]]]
    # Every activity is also joined to what is earlier and to what is later, in each of two logs.
    for edges, side in itertools.product((share, *own), (0, 1)):
        seen = {edge[side] for edge in kept if depth[edge[0]] < depth[edge[1]] and edges.get(edge)}
        for edge in sorted((edge for edge in forward if edges.get(edge)), key=lambda e: -edges[e]):
            if edge[side] not in seen:
                kept[edge] = None
                seen.add(edge[side])
    joined = {name for edge in kept for name in edge}
    return _laid_out(sorted(joined, key=lambda n: (depth[n], n)), list(kept))


def _main_ways(edges: Mapping[Edge, float], side: Literal[0, 1]) -> dict[str, Edge]:
    """The most frequent way out of each activity (side 0) to another one, or into it from another one (1)."""
    found: dict[str, Edge] = {}
    for edge in sorted((e for e in edges if e[0] != e[1] and edges[e]), key=lambda e: (-edges[e], e)):
        found.setdefault(edge[side], edge)
    return found


def _closed(ranked: Iterable[str], main: Iterable[Mapping[str, Edge]], most: int) -> tuple[set[str], list[Edge]]:
    """The most frequent activities, as many as there is room for with all that their main ways lead over; and these
    ways. Thus a map shows nothing without its most frequent way in and out."""
    names, ways = _with_main_ways({START, END}, main)
    for name in ranked:
        more, through = _with_main_ways({*names, name}, main)
        if len(more) > most + 2 and len(names) > 2:
            break
        names, ways = more, through
    return names, ways


def _with_main_ways(names: Iterable[str], main: Iterable[Mapping[str, Edge]]) -> tuple[set[str], list[Edge]]:
    """Activities and all that their main ways lead over, and these ways."""
    ways: dict[Edge, None] = {}
    found, waiting = set(names), sorted(names)
    while waiting:
        name = waiting.pop()
        for edge in filter(None, (own.get(name) for own in main)):
            ways[edge] = None
            waiting += [other for other in edge if other not in found]
            found.update(edge)
    return found, list(ways)


def drawn(steps: FlowSteps, plan: Arrangement) -> FlowMap:
    """The map of one log in an arrangement; what the log does not have is left out."""
    total = max(1, steps.total)
    boxes = tuple(
        Box(name, x, y, steps.activities[name], plan.half)
        for name, (x, y) in plan.places.items()
        if steps.activities.get(name)
    )
    taken = [room_of((box.x, box.y), plan.half) for box in boxes]
    there = [(edge, count) for edge in plan.ways if (count := steps.edges.get(edge, 0))]
    lines: dict[tuple[str, str], FlowLine] = {}
    # Loops first: their numbers cannot move.
    for (source, target), count in sorted(there, key=lambda found: found[0][0] != found[0][1]):
        way = plan.ways[source, target]
        hours = steps.lasting.get((source, target))
        words = "" if hours is None else lasting(max(0.0, hours))
        letters = max(len(f"{count:,}"), len(words))
        if source == target:
            path, (x, y) = loop(*way[0])
            taken.append((x - 3.3 * letters, y - 11, x + 3.3 * letters, y + 2))
        else:
            upwards = plan.places[source][1] > plan.places[target][1]
            bends = curve(way, upwards, plan.half, plan.places.values())
            path, (x, y) = path_of(bends), number_at(bends, letters, taken)
        width = 1.0 + 6.0 * math.sqrt(count / total)
        lines[source, target] = FlowLine(source, target, path, width, count, x, y, words)
    shown = sum(line.count for line in lines.values()) / total
    return FlowMap(boxes, tuple(lines[edge] for edge, _ in there), plan.width, plan.height, shown)


def _laid_out(names: list[str], edges: list[tuple[str, str]]) -> Arrangement:
    """``names`` are in the order of their depth; a step against it is laid out the other way round."""
    rank = {name: i for i, name in enumerate(names)}
    down = {(min(e, key=rank.__getitem__), max(e, key=rank.__getitem__)) for e in edges if e[0] != e[1]}
    layer = dict.fromkeys(names, 0)
    for upper, lower in sorted(down, key=lambda e: (rank[e[0]], rank[e[1]])):
        layer[lower] = max(layer[lower], layer[upper] + 1)
    if END in layer:  # below all, also where the way there is not shown
        layer[END] = max(layer[END], *(layer[name] + 1 for name in names if name != END))
    started = {START}
    for upper, lower in sorted(down, key=lambda e: rank[e[1]]):
        if upper in started:
            started.add(lower)
    for name in reversed(names):  # what no way from the start leads to lies just above what it leads to, not beside it
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
    x = _across(rows, beside, layer, room)
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


def _across(
    rows: list[list[str]],
    beside: Mapping[str, list[str]],
    layer: Mapping[str, int],
    room: Mapping[str, tuple[float, float]],
) -> dict[str, float]:
    """Where everything lies from left to right: sort by neighbours, then draw near to them without overlap. ``room`` is
    what each takes to its left and right."""
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


# The lines: smooth ones that run over no box, and numbers that lie on nothing else.


@dataclass(frozen=True)
class _Passage:
    """A way as it is drawn: where it leaves, what it passes between layers, where it arrives, all downwards."""

    points: list[Point]
    half: float
    up: bool

    def smooth(self) -> list[Bend]:
        """Vertical at both ends, and from neighbour to neighbour between them (Catmull-Rom)."""
        points = self._tipped(self.points)
        ends = (self.points[-1][1] - self.points[0][1]) * (-1 if self.up else 1) / (len(points) - 1)
        slopes = [(0.0, ends)]
        slopes += [((c - a) / 2, (d - b) / 2) for (a, b), (c, d) in zip(points, points[2:], strict=False)]
        slopes.append((0.0, ends))
        return _bends(points, slopes)

    def straight(self) -> list[Bend]:
        """Vertical in every layer that it crosses, so that all that is sideways lies between the layers."""
        first, *inner, last = self.points
        points = [first, *((x, y + side) for x, y in inner for side in (-self.half, self.half)), last]
        points = self._tipped(points)
        slopes = [(0.0, b[1] - a[1]) for a, b in itertools.pairwise(points)]
        found = []
        for (a, b), (_, slope) in zip(itertools.pairwise(points), slopes, strict=True):
            found += _bends([a, b], [(0.0, slope * 1.5)] * 2)
        return found

    def _tipped(self, points: Sequence[Point]) -> list[Point]:
        """In the direction of the step; the arrowhead ends at the box."""
        found = list(reversed(points)) if self.up else list(points)
        found[-1] = (found[-1][0], found[-1][1] + (7.0 if self.up else -7.0))
        return found


def curve(way: Way, upwards: bool, half: float, boxes: Iterable[Point]) -> list[Bend]:
    """Return a line from box to box that runs over none of the others; ``half`` is half of the height of a box."""
    side = 16.0 if upwards else -8.0  # so that a step and the step back do not lie on each other
    lean = [
        max(-BOX / 2 + 14, min(BOX / 2 - 14, 0.25 * (b - a)))
        for a, b in ((way[0][0], way[1][0]), (way[-1][0], way[-2][0]))
    ]
    points = [(way[0][0] + lean[0] + side, way[0][1] + half + 1), *((x + side / 2, y) for x, y in way[1:-1])]
    points.append((way[-1][0] + lean[1] + side, way[-1][1] - half - 1))
    passage = _Passage(points, half, upwards)
    smooth = passage.smooth()
    others = [room_of(place, half) for place in boxes if place not in (way[0], way[-1])]
    return passage.straight() if any(_over(bend, others) for bend in smooth) else smooth


def loop(x: float, y: float) -> tuple[str, Point]:
    """Return a line from a box to itself, at its right side, and where its number stands."""
    right = x + BOX / 2
    bend = f"{right + 34:.1f} {y - 26:.1f} {right + 34:.1f} {y + 26:.1f}"
    return f"M{right:.1f} {y - 9:.1f}C{bend} {right + 7:.1f} {y + 10:.1f}", (right + 27, y + 4)


def path_of(bends: Sequence[Bend]) -> str:
    """Return the line as SVG has it."""
    path = f"M{bends[0][0][0]:.1f} {bends[0][0][1]:.1f}"
    return path + "".join("C" + " ".join(f"{x:.1f} {y:.1f}" for x, y in bend[1:]) for bend in bends)


def number_at(bends: Sequence[Bend], letters: int, taken: list[Room]) -> Point:
    """Return where the number of a line stands: a little after its start, or else on the line where nothing is
    ``taken``. What it takes is added."""
    single = len(bends) == 1
    places = [_at(bends[0], _FIRST[single]), *(_at(bend, t) for bend in bends for t in _THEN)]
    rooms = [_room_of_number(x, y, letters) for x, y in places]
    covered = [sum(_shared(room, other) for other in taken) for room in rooms]
    best = covered.index(min(covered))  # the first of those that cover least
    taken.append(rooms[best])
    x, y = places[best]
    return x, y + 4


def room_of(place: Point, half: float) -> Room:
    """Return what a box takes."""
    x, y = place
    return x - BOX / 2, y - half, x + BOX / 2, y + half


def _room_of_number(x: float, y: float, letters: int) -> Room:
    half = _LETTER * letters / 2
    return x - half, y - _LINE / 2, x + half, y + _LINE / 2


def _shared(a: Room, b: Room) -> float:
    return max(0.0, min(a[2], b[2]) - max(a[0], b[0])) * max(0.0, min(a[3], b[3]) - max(a[1], b[1]))


def _over(bend: Bend, rooms: Iterable[Room]) -> bool:
    points = [_at(bend, t / 24) for t in range(25)]
    return any(a - 3 < x < c + 3 and b - 3 < y < d + 3 for a, b, c, d in rooms for x, y in points)


def _at(bend: Bend, t: float) -> Point:
    mix = ((1 - t) ** 3, 3 * (1 - t) ** 2 * t, 3 * (1 - t) * t**2, t**3)
    x, y = (sum(m * point[axis] for m, point in zip(mix, bend, strict=True)) for axis in (0, 1))
    return x, y


def _bends(points: Sequence[Point], slopes: Sequence[Point]) -> list[Bend]:
    found = []
    for i, ((a, b), (c, d)) in enumerate(itertools.pairwise(points)):
        (p, q), (r, s) = slopes[i], slopes[i + 1]
        found.append(((a, b), (a + p / 3, b + q / 3), (c - r / 3, d - s / 3), (c, d)))
    return found
