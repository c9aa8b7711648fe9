"""The lines of a directly-follows map: smooth ones that run over no box, and numbers that lie on nothing else."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

__all__ = ["BOX", "LOOP", "Bend", "Point", "Way", "curve", "loop", "number_at", "path_of", "room_of"]

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
