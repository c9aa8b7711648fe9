"""Where the time of a case goes: the part of its duration that each pair of activities takes, by how long it lasts.

A case shares out 1 among its gaps, so the noise is small however many events it has. What a pair takes in cases that
last about as long is the answer where it stands out of the noise, and else what its gaps let expect.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from veilog._typing import FloatArray, IntArray
from veilog.privacy.asking import Triples
from veilog.privacy.cases import UNKNOWN_TIME, Cases
from veilog.privacy.curator import Curator

__all__ = ["Gaps", "Steps", "asked_steps", "directly_following", "known_gaps"]

_ONE = 2_520
"""The duration of a case, in so many parts."""
GROUP_NOISES = 24
"""Groups of cases by duration: half of them, half of the rest and so on, while so many noise scales of cases are left."""
MOST_GROUPS = 10
BELIEVED = 0.75
"""A part is believed as far as it is above so many variances of its noise away from what gaps let expect."""
FARTHEST = 3.0
"""How much more or less time a pair may get in one round of fitting, as a factor."""
ROUNDS = 10
WEIGHTS = (1, 3, 3)
PLACES = 10
"""Parts of a case: its first gap, its last one, and 8 between them."""


@dataclass(frozen=True, eq=False)
class Gaps:
    """Gaps between known times, with what tells where in a case and between which activities they are."""

    pair: IntArray
    """Place among the released pairs; other pairs have the one after the last."""
    second: IntArray
    """Code of the second activity; unknown ones have the one after the last."""
    owner: IntArray
    place: IntArray
    """Which part of the case: 0 for the first gap, the last one for the last, evenly between them."""

    @staticmethod
    def of(first: IntArray, second: IntArray, owner: IntArray, pairs: IntArray, size: int) -> Gaps:
        """Return gaps, case by case in their order, between activities of these codes."""
        number = np.bincount(owner) if len(owner) else np.zeros(0, dtype=np.int64)
        index = np.arange(len(owner)) - (np.cumsum(number) - number)[owner]
        inner = 1 + (index - 1) * (PLACES - 2) // np.maximum(number[owner] - 2, 1)
        place = np.where(index == 0, 0, np.where(index == number[owner] - 1, PLACES - 1, inner))
        return Gaps(places(pairs, first, second, size), np.where(second < 0, size, second), owner, place)

    def cells(self, group: IntArray, sizes: tuple[int, ...]) -> list[IntArray]:
        """Return the cell of each gap in each of the tables by group: pairs, second activities, places."""
        return [group * size + own for own, size in zip((self.pair, self.second, self.place), sizes, strict=True)]


@dataclass(frozen=True, eq=False)
class Steps:
    """Noisy parts of durations, in cases, by group of durations: of pairs, of second activities, of places."""

    edges: FloatArray
    """Seconds at which groups after the first begin."""
    tables: tuple[FloatArray, ...]
    variances: tuple[float, ...]

    def stretched(self, seconds: FloatArray, wanted: FloatArray, gaps: Gaps) -> FloatArray:
        """Return gaps that add up to the durations ``wanted`` of cases, and in each table to its parts of them."""
        owner = gaps.owner
        group = np.searchsorted(self.edges, wanted, side="right")[owner]
        cells = gaps.cells(group, tuple(table.shape[1] for table in self.tables))
        counted = (np.bincount(owner, minlength=len(wanted))[owner] > 1) & (wanted[owner] > 0)
        found = _to(seconds, wanted, owner)
        for _ in range(ROUNDS):
            for table, variance, cell in zip(self.tables, self.variances, cells, strict=True):
                part = np.where(counted, found / np.maximum(wanted[owner], 1e-9), 0.0)
                now = np.bincount(cell, weights=part, minlength=table.size).reshape(table.shape)
                found = _to(found * _factors(table, variance, now).ravel()[cell], wanted, owner)
        return found


def _factors(table: FloatArray, variance: float, now: FloatArray) -> FloatArray:
    """How much more time each column should have in each group, given the parts that they have."""
    cases = now.sum(axis=1, keepdims=True)
    # The release need not have as many cases as the log.
    scale = cases / np.maximum(table.sum(axis=1, keepdims=True), np.maximum(0.2 * cases, 1.0))
    apart = table * scale - now
    kept = np.maximum(0.0, 1 - BELIEVED * variance * scale**2 / np.maximum(apart**2, 1e-9))
    aim = np.maximum(now + kept * apart, 0.0)
    return np.clip((aim + 1e-3) / (now + 1e-3), 1 / FARTHEST, FARTHEST)


def _to(seconds: FloatArray, wanted: FloatArray, owner: IntArray) -> FloatArray:
    """Gaps stretched so that those of each case add up to what is wanted."""
    took = np.bincount(owner, weights=seconds, minlength=len(wanted))
    return np.asarray(seconds * (wanted / np.maximum(took, 1e-12))[owner])


def asked_steps(
    curator: Curator,
    epsilon: Fraction,
    pairs: IntArray,
    labels: tuple[str, ...],
    durations: FloatArray,
) -> Steps:
    """Return noisy parts of durations for released ``pairs``, given the durations of released cases.

    A case of at least two gaps adds 1 to each of the three tables, shared out among its gaps, so 3 in all; what is
    rounded off is lost.
    """
    edges: list[float] = []
    left = np.sort(durations)
    while len(edges) < MOST_GROUPS - 1 and len(left) >= 2 * GROUP_NOISES / float(epsilon):
        left = left[len(left) // 2 :]
        edges.append(float(max(left[0], 1.0)))
    borders = np.unique(np.array(edges))
    sizes = (len(pairs) + 1, len(labels) + 1, PLACES)
    ends = np.cumsum([(len(borders) + 1) * size for size in sizes])

    def features(block: Cases) -> Triples:
        at, rows = known_gaps(block)
        gaps = block.times[at] - block.times[at - 1]
        lasting = np.zeros(len(block), dtype=np.int64)
        np.add.at(lasting, rows, gaps)
        found = Gaps.of(block.codes[at - 1], block.codes[at], rows, pairs, len(labels))
        ours = (np.bincount(rows, minlength=len(block))[rows] > 1) & (lasting[rows] > 0)
        part = (gaps[ours].astype(np.float64) / lasting[rows[ours]] * _ONE).astype(np.int64)
        group = np.searchsorted(borders * 1_000_000, lasting, side="right")[rows]
        cells = [cell[ours] + begin for cell, begin in zip(found.cells(group, sizes), [0, *ends], strict=False)]
        return np.tile(rows[ours], 3), np.concatenate(cells), np.concatenate([weight * part for weight in WEIGHTS])

    asked = curator.events.sums(
        features,
        int(ends[-1]),
        sum(WEIGHTS) * _ONE,
        epsilon,
        alphabet=labels,
        purpose="parts of durations by pair, by activity and by place in the case, in 1/2520",
    )
    tables = tuple(
        table.reshape(-1, size) / (weight * _ONE)
        for table, size, weight in zip(np.split(asked, ends[:-1]), sizes, WEIGHTS, strict=True)
    )
    return Steps(borders, tables, tuple(2 * (sum(WEIGHTS) / weight / float(epsilon)) ** 2 for weight in WEIGHTS))


def places(pairs: IntArray, first: IntArray, second: IntArray, size: int) -> IntArray:
    """Return the place of each pair of codes among the pairs, or the one after the last."""
    key = first * size + second
    place = np.minimum(np.searchsorted(pairs, key), len(pairs) - 1)
    return np.where((first >= 0) & (second >= 0) & (pairs[place] == key), place, len(pairs))


def directly_following(offsets: IntArray, events: int) -> IntArray:
    """Return the second event of every directly-follows pair."""
    second = np.ones(events, dtype=np.bool_)
    second[offsets[:-1][np.diff(offsets) > 0]] = False
    return np.flatnonzero(second)


def known_gaps(block: Cases) -> tuple[IntArray, IntArray]:
    """Return the second event of each pair with two known times in order, and its case."""
    at = directly_following(block.offsets, len(block.codes))
    at = at[(block.times[at] != UNKNOWN_TIME) & (block.times[at - 1] != UNKNOWN_TIME)]
    at = at[block.times[at] >= block.times[at - 1]]
    return at, block.owners[at]
