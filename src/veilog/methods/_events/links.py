"""Made-up persons: links from released cases to released cases, which stay as they are.

Cases are gone through in the order of their starts. Whether another one follows, after which gap and of which kind is
drawn by what was found (:mod:`.returns`); then the case is linked to one of that kind that no other case is linked to,
and whose start is nearest to its own end and the gap, if that lies in the same bin. So links never go back in time, and
every case has at most one before and one after it: a person is a chain of links. It has as many cases as it goes on,
also more than count.

Cases near the end of the release have fewer cases after them, as those of the log had. What the log's cases show is
therefore how often they are followed *and* that is seen: a chance is divided by how many released cases could be
followed after such a gap. And since not every link that is drawn finds a case, chances are multiplied, in further
rounds, by how far the links of the last one fell short.

All of this is post-processing.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from veilog._typing import FloatArray, IntArray
from veilog.methods._events.orders import picked
from veilog.methods._events.returns import MOST_CHANCE, Returns

ROUNDS = 3
LOOK, TRIED = 24, 3
"""So many of the nearest cases are looked at for one with equal values, of so many kinds at most."""
_SECOND = 1_000_000
_PARTS = np.array([1 / 6, 1 / 2, 5 / 6])


def linked(
    found: Returns,
    starts: IntArray,
    ends: IntArray,
    values: IntArray,
    rng: np.random.Generator,
) -> IntArray:
    """Return of each case the one that follows it, -1 for none; ``values`` are equal where all attributes of persons
    are. Times are microseconds; without released times each case starts after the one before it."""
    order = np.lexsort((rng.random(len(starts)), starts))
    timed = len(found.edges) > 2
    chances = found.chances[:, :-1] / _seen(found, starts, ends) if timed else found.chances[:, :-1].copy()
    wanted = np.bincount(found.group, minlength=len(chances))[:, None] * found.chances[:, :-1]
    # Nothing is drawn twice: a round differs from the one before it by its chances alone.
    draws = rng.random((3, len(starts)))
    following = np.full(len(starts), -1, dtype=np.int64)
    for _ in range(ROUNDS):
        following, bins = _Chains(found, starts, ends, values, order, draws).drawn(chances)
        there = bins >= 0
        got = np.zeros_like(wanted)
        np.add.at(got, (found.group[there], bins[there]), 1)
        chances *= np.clip((wanted + 1) / (got + 1), 0.5, 2.0)
    return following


def _seen(found: Returns, starts: IntArray, ends: IntArray) -> FloatArray:
    """Which part of the cases of each group could be followed after a gap in each bin, before the last case starts."""
    last, shares = int(starts.max()), np.empty((len(found.chances), len(found.edges) - 1))
    for group in range(len(shares)):
        own = np.sort(ends[found.group == group])
        for place, (low, high) in enumerate(zip(found.edges[:-1], found.edges[1:], strict=True)):
            until = last - (low + _PARTS * (high - low)) * _SECOND
            shares[group, place] = np.searchsorted(own, until, side="right").mean() / max(len(own), 1)
    return np.maximum(shares, 0.05)


class _Chains:
    """Draws links, case by case."""

    def __init__(
        self,
        found: Returns,
        starts: IntArray,
        ends: IntArray,
        values: IntArray,
        order: IntArray,
        draws: FloatArray,
    ) -> None:
        self._found, self._order, self._draws, self._values = found, order, draws, values.tolist()
        self._timed = len(found.edges) > 2
        places = np.arange(len(order))
        self._starts = (starts[order] if self._timed else places).tolist()
        self._ends = (ends[order] if self._timed else places).tolist()
        kinds = found.kind[order]
        ranks = [np.flatnonzero(kinds == kind) for kind in range(len(found.following))]
        self._free = [_Free(ours, self._starts) for ours in ranks]
        among = np.empty(len(order), dtype=np.int64)
        for ours in ranks:
            among[ours] = np.arange(len(ours))
        self._own = list(zip(kinds.tolist(), among.tolist(), strict=True))
        """Of each case its kind, and its place among those of the kind."""
        self._others = np.argsort(-found.following, axis=1, kind="stable").tolist()

    def drawn(self, chances: FloatArray) -> tuple[IntArray, IntArray]:
        """Return what follows each case, and in which bin the gap is; -1 for none."""
        found, order = self._found, self._order
        next_kind = picked(found.following, found.kind, self._draws[1])
        edges, again = (found.edges * _SECOND).tolist(), found.again.tolist()
        reached = np.cumsum(chances, axis=1).tolist()
        ordinal = [0] * len(order)
        following, bins = np.full((2, len(order)), -1, dtype=np.int64)
        last = self._starts[-1]
        for rank, case in enumerate(order.tolist()):
            kind, among = self._own[rank]
            self._free[kind].take(among)  # what comes now is linked to later cases only
            sums = reached[found.group[case]]
            factor = again[min(ordinal[rank], len(again) - 1)]
            factor = min(factor, MOST_CHANCE / max(sums[-1], 1e-9))
            u = float(self._draws[0, case]) / max(factor, 1e-9)
            if u >= sums[-1]:
                continue
            place = bisect_left(sums, u)
            low, high = edges[place], edges[place + 1]
            if self._timed:
                gap = low + float(self._draws[2, case]) * (high - low)
                first = self._ends[rank] + low if place else self._starts[rank]
                until, target = self._ends[rank] + high, self._ends[rank] + gap
            else:
                first, until, target = rank, len(order), rank
            if target > last:
                continue
            other = self._nearest(int(next_kind[case]), kind, self._values[case], (first, target, until))
            if other >= 0:
                following[case], bins[case] = order[other], place
                ordinal[other] = ordinal[rank] + 1
        return following, bins

    def _nearest(self, wanted: int, kind: int, values: int, within: tuple[float, float, float]) -> int:
        """The place of a free case that starts within these ends, nearest to the middle one, of the wanted kind or else
        one that is likely after this kind, with equal values if there is such; -1 for none."""
        first, target, until = within
        kinds: list[int] = [wanted, *(one for one in self._others[kind] if one != wanted)]
        for tried in kinds[:TRIED]:
            free, best = self._free[tried], -1
            for looked, (place, other) in enumerate(free.nearest(target)):
                inside = first <= self._starts[other] < until
                if looked == LOOK or (best >= 0 and not inside):
                    break
                if inside and (best < 0 or self._values[self._order[other]] == values):
                    best = place
                if best == place and self._values[self._order[other]] == values:
                    break
            if best >= 0:
                return free.take(best)
        return -1


class _Free:
    """Cases of a kind that nobody is linked to yet, in the order of their starts."""

    def __init__(self, ranks: IntArray, starts: Sequence[int]) -> None:
        self._ranks: list[int] = ranks.tolist()
        self._starts = [starts[rank] for rank in self._ranks]
        number = len(self._ranks)
        self._right, self._left = list(range(number + 1)), list(range(number + 1))

    def nearest(self, target: float) -> Iterator[tuple[int, int]]:
        """Yield free places with their ranks, the nearest to the target first."""
        after = bisect_left(self._starts, target)
        right, left = _end(self._right, after), _end(self._left, after) - 1
        while left >= 0 or right < len(self._ranks):
            far = right == len(self._ranks) or (
                left >= 0 and target - self._starts[left] <= self._starts[right] - target
            )
            if far:
                yield left, self._ranks[left]
                left = _end(self._left, left) - 1
            else:
                yield right, self._ranks[right]
                right = _end(self._right, right + 1)

    def take(self, place: int) -> int:
        """Take a place, and return its rank."""
        self._right[place] = place + 1
        self._left[place + 1] = place
        return self._ranks[place]


def _end(steps: list[int], place: int) -> int:
    """Where the steps from a place end, which are made shorter on the way."""
    while steps[place] != place:
        steps[place] = steps[steps[place]]
        place = steps[place]
    return place


def first_of(following: IntArray) -> IntArray:
    """Return of each case the first one of its person."""
    first = np.arange(len(following))
    before = np.flatnonzero(following >= 0)
    first[following[before]] = before
    while not np.array_equal(first, first[first]):  # twice as far each time
        first = first[first]
    return first


def kept_links(following: IntArray, breaking: Callable[[IntArray], IntArray]) -> IntArray:
    """Return the links without those to cases that break a rule, which ``breaking`` finds where each case has the
    values of these first cases."""
    following = following.copy()
    while True:
        first = first_of(following)
        wrong = breaking(first)
        cut = np.flatnonzero(np.isin(following, wrong[first[wrong] != wrong]))
        if not len(cut):
            return following
        following[cut] = -1
