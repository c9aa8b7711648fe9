"""A directly-follows map as a picture: which activities and steps are shown, and where they lie.

Layers from top to bottom, as K. Sugiyama, S. Tagawa and M. Toda draw hierarchies ("Methods for visual understanding of
hierarchical system structures", 1981): steps that lead back to what comes earlier on average are turned around, each
activity is put one layer below the lowest one that leads to it, steps over several layers get a place in each, layers
are sorted by the mean of their neighbours, and places are as near to their neighbours as the space allows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import isotonic_regression

from veilog.charts import lasting
from veilog.logs.eventlog import EventLog
from veilog.logs.variants import Variants
from veilog.measures.directly_follows import edge_frequencies
from veilog.measures.durations import step_durations

__all__ = ["END", "START", "Box", "FlowMap", "Steps", "arranged", "drawn", "steps_of"]

START, END = "\0start", "\0end"
"""Before the first and after the last activity of a case; XML cannot hold such names."""

_SHOWN = 14, 24
"""The most frequent activities and steps, which are shown; and of each activity its most frequent way in and out."""
_MORE = 24, 48
_BOX, _HEIGHT, _LAYER, _PASSING, _GAP, _MARGIN = 150, 40, 92, 24, 24, 22


@dataclass(frozen=True)
class Steps:
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


@dataclass(frozen=True)
class Line:
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
    lines: tuple[Line, ...]
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


def steps_of(variants: Variants, timed: EventLog | None = None) -> Steps:
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
    return Steps(activities, edges, depth, {} if timed is None else step_durations(timed))


def arranged(logs: Iterable[Steps], *, more: bool = False) -> Arrangement:
    """One arrangement for the most frequent steps of all these logs (by their shares), so that maps can be compared;
    ``more`` of them, where they can be filtered."""
    most_activities, most_edges = _MORE if more else _SHOWN
    share: dict[tuple[str, str], float] = {}
    depth: dict[str, float] = {}
    weight: dict[str, float] = {}
    for steps in logs:
        total = max(1, steps.total)
        for edge, count in steps.edges.items():
            share[edge] = share.get(edge, 0.0) + count / total
        for name, count in steps.activities.items():
            weight[name] = weight.get(name, 0.0) + count / total
            depth[name] = depth.get(name, 0.0) + steps.depth[name] * count / total
    depth = {START: -1.0, END: 2.0} | {n: depth[n] / weight[n] for n in depth if n not in (START, END) and weight[n]}
    names = {START, END, *sorted(weight.keys() - {START, END}, key=lambda n: (-weight[n], n))[:most_activities]}
    candidates = sorted((e for e in share if names.issuperset(e)), key=lambda e: (-share[e], e))
    kept = dict.fromkeys(candidates[:most_edges])
    forward = [e for e in candidates if depth[e[0]] < depth[e[1]]]
    for side in (0, 1):  # every activity keeps its most frequent way in from what is earlier, and out to what is later
        seen = {edge[side] for edge in kept if depth[edge[0]] < depth[edge[1]]}
        for edge in forward:
            if edge[side] not in seen:
                kept[edge] = None
                seen.add(edge[side])
    joined = {name for edge in kept for name in edge}
    return _laid_out(sorted(joined, key=lambda n: (depth[n], n)), list(kept))


def drawn(steps: Steps, plan: Arrangement) -> FlowMap:
    """The map of one log in an arrangement; what the log does not have is left out."""
    total = max(1, steps.total)
    boxes = tuple(
        Box(name, x, y, steps.activities[name]) for name, (x, y) in plan.places.items() if steps.activities.get(name)
    )
    lines = []
    for (source, target), way in plan.ways.items():
        count = steps.edges.get((source, target), 0)
        if not count:
            continue
        upwards = source != target and plan.places[source][1] > plan.places[target][1]
        width = 1.0 + 6.0 * math.sqrt(count / total)
        if source == target:
            path, (x, y) = _loop(*way[0])
        else:
            path, (x, y) = _curve(way, upwards)
        hours = steps.lasting.get((source, target))
        lines.append(Line(source, target, path, width, count, x, y, "" if hours is None else lasting(max(0.0, hours))))
    shown = sum(line.count for line in lines) / total
    return FlowMap(boxes, tuple(lines), plan.width, plan.height, shown)


def _laid_out(names: list[str], edges: list[tuple[str, str]]) -> Arrangement:
    """``names`` are in the order of their depth; a step against it is laid out the other way round."""
    rank = {name: i for i, name in enumerate(names)}
    down = {(min(e, key=rank.__getitem__), max(e, key=rank.__getitem__)) for e in edges if e[0] != e[1]}
    layer = dict.fromkeys(names, 0)
    for upper, lower in sorted(down, key=lambda e: (rank[e[0]], rank[e[1]])):
        layer[lower] = max(layer[lower], layer[upper] + 1)
    entered = {lower for _, lower in down}
    for name in reversed(names):  # what nothing shown leads to lies just above what it leads to, not beside the start
        below = [layer[lower] for upper, lower in down if upper == name]
        if name != START and name not in entered and below:
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
    x = _across(rows, beside, layer, set(names))
    low = min((x[n] - _half(n, rank) for row in rows for n in row), default=0.0)
    high = max((x[n] + _half(n, rank) for row in rows for n in row), default=0.0)
    shift = _MARGIN - low
    points = {n: (x[n] + shift, _MARGIN + _HEIGHT / 2 + _LAYER * layer[n]) for row in rows for n in row}
    ways = {}
    for edge in edges:
        turned = edge if edge in chains else (edge[1], edge[0])
        ways[edge] = (points[edge[0]],) if edge[0] == edge[1] else tuple(points[n] for n in chains[turned])
    loops = any(a == b for a, b in edges)
    width = high - low + 2 * _MARGIN + (40 if loops else 0)
    return Arrangement({n: points[n] for n in names}, ways, width, 2 * _MARGIN + _HEIGHT + _LAYER * (len(rows) - 1))


def _half(name: str, real: Mapping[str, int]) -> float:
    return _BOX / 2 if name in real else _PASSING / 2


def _across(
    rows: list[list[str]], beside: Mapping[str, list[str]], layer: Mapping[str, int], real: set[str]
) -> dict[str, float]:
    """Where everything lies from left to right: sort by neighbours, then draw near to them without overlap."""
    place = {name: float(i) for row in rows for i, name in enumerate(row)}
    for sweep in range(12):
        step = -1 if sweep % 2 == 0 else 1
        for row in rows if step == -1 else rows[::-1]:
            near = {n: [place[m] for m in beside[n] if layer[m] == layer[n] + step] for n in row}
            row.sort(key=lambda n: (sum(near[n]) / len(near[n]) if near[n] else place[n], place[n]))
            middle = (len(row) - 1) / 2
            place.update((n, i - middle) for i, n in enumerate(row))
    sizes = {n: (_BOX if n in real else _PASSING) for row in rows for n in row}
    x = dict.fromkeys(sizes, 0.0)
    for turn in range(60):
        for row in rows if turn % 2 == 0 else rows[::-1]:
            wanted = np.array([_mean([x[m] for m in beside[n]], x[n]) for n in row])
            reach = np.array([(sizes[a] + sizes[b]) / 2 + _GAP for a, b in itertools.pairwise(row)])
            offsets = np.concatenate([[0.0], np.cumsum(reach)])
            weights = np.array([1.0 if n in real else 3.0 for n in row])
            placed = isotonic_regression(wanted - offsets, weights=weights).x + offsets
            x.update(zip(row, placed.tolist(), strict=True))
    return x


def _mean(values: list[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def _curve(way: tuple[tuple[float, float], ...], upwards: bool) -> tuple[str, tuple[float, float]]:
    """A smooth path from box to box, and where its number stands: a little after its start."""
    half = _HEIGHT / 2
    side = 16.0 if upwards else -8.0  # so that a step and the step back do not lie on each other
    lean = [
        max(-_BOX / 2 + 14, min(_BOX / 2 - 14, 0.25 * (b - a)))
        for a, b in ((way[0][0], way[1][0]), (way[-1][0], way[-2][0]))
    ]
    points = [(way[0][0] + lean[0] + side, way[0][1] + half + 1), *((x + side / 2, y) for x, y in way[1:-1])]
    points.append((way[-1][0] + lean[1] + side, way[-1][1] - half - 1))
    if upwards:
        points.reverse()
    tip = -7.0 if not upwards else 7.0  # the arrowhead ends at the box
    points[-1] = (points[-1][0], points[-1][1] + tip)
    ends = (way[-1][1] - way[0][1]) * (-1 if upwards else 1) / max(1, len(way) - 1)
    slopes = [(0.0, ends)]  # vertical at both ends, and from neighbour to neighbour between them (Catmull-Rom)
    slopes += [((c - a) / 2, (d - b) / 2) for (a, b), (c, d) in zip(points, points[2:], strict=False)]
    slopes.append((0.0, ends))
    path = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    parts = []
    for i, ((a, b), (c, d)) in enumerate(itertools.pairwise(points)):
        (p, q), (r, s) = slopes[i], slopes[i + 1]
        parts.append(((a, b), (a + p / 3, b + q / 3), (c - r / 3, d - s / 3), (c, d)))
        path += "C" + " ".join(f"{x:.1f} {y:.1f}" for x, y in parts[-1][1:])
    t = 0.38 if len(parts) == 1 else 0.7
    mix = ((1 - t) ** 3, 3 * (1 - t) ** 2 * t, 3 * (1 - t) * t**2, t**3)
    x, y = (sum(m * point[axis] for m, point in zip(mix, parts[0], strict=True)) for axis in (0, 1))
    return path, (x, y + 4)


def _loop(x: float, y: float) -> tuple[str, tuple[float, float]]:
    """From a box to itself, at its right side."""
    right = x + _BOX / 2
    bend = f"{right + 34:.1f} {y - 26:.1f} {right + 34:.1f} {y + 26:.1f}"
    path = f"M{right:.1f} {y - 9:.1f}C{bend} {right + 7:.1f} {y + 10:.1f}"
    return path, (right + 27, y + 4)
