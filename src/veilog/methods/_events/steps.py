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

__all__ = ["Steps", "asked_steps", "directly_following", "known_gaps"]

_ONE = 2_520
"""The duration of a case, in so many parts."""
GROUP_NOISES = 25
"""Groups of cases by duration: half of them, half of the rest and so on, while so many noise scales of cases are left."""
MOST_GROUPS = 10
BELIEVED = 2.0
"""A part is believed as far as it is above so many variances of its noise away from what gaps let expect."""
FARTHEST = 3.0
"""How much more or less time a pair may get in one round of fitting, as a factor."""
ROUNDS = 12


@dataclass(frozen=True, eq=False)
class Steps:
    """Noisy parts of durations, in cases, by group of durations and pair; the last column is that of other pairs."""

    edges: FloatArray
    """Seconds at which groups after the first begin."""
    parts: FloatArray
    variance: float

    def stretched(self, seconds: FloatArray, wanted: FloatArray, pair: IntArray, owner: IntArray) -> FloatArray:
        """Return gaps that add up to the durations ``wanted`` of cases, and pair by pair to their parts of them.

        ``seconds``: of each gap, ``pair`` and ``owner``: its pair and its case.
        """
        size = self.parts.shape[1]
        group = np.searchsorted(self.edges, wanted, side="right")
        cell = group[owner] * size + pair
        several = np.bincount(owner, minlength=len(wanted))[owner] > 1
        found = seconds
        for _ in range(ROUNDS):
            took = np.bincount(owner, weights=found, minlength=len(wanted))
            found = found * (wanted / np.maximum(took, 1e-9))[owner]
            part = np.where(several & (wanted[owner] > 0), found / np.maximum(wanted[owner], 1e-9), 0.0)
            now = np.bincount(cell, weights=part, minlength=self.parts.size).reshape(self.parts.shape)
            found = found * self._factors(now).ravel()[cell]
        took = np.bincount(owner, weights=found, minlength=len(wanted))
        return np.asarray(found * (wanted / np.maximum(took, 1e-9))[owner])

    def _factors(self, now: FloatArray) -> FloatArray:
        """How much more time each pair should have in each group, given the parts that they have."""
        cases = now.sum(axis=1, keepdims=True)
        # The release need not have as many cases as the log.
        scale = cases / np.maximum(self.parts.sum(axis=1, keepdims=True), np.maximum(0.2 * cases, 1.0))
        apart = self.parts * scale - now
        kept = np.maximum(0.0, 1 - BELIEVED * self.variance * scale**2 / np.maximum(apart**2, 1e-9))
        aim = np.maximum(now + kept * apart, 0.0)
        return np.clip((aim + 1e-3) / (now + 1e-3), 1 / FARTHEST, FARTHEST)


def asked_steps(
    curator: Curator,
    epsilon: Fraction,
    pairs: IntArray,
    labels: tuple[str, ...],
    durations: FloatArray,
) -> Steps:
    """Return noisy parts of durations for released ``pairs``, given the durations of released cases.

    A case of at least two gaps adds 1, shared out among its gaps; what is rounded off is lost.
    """
    edges: list[float] = []
    left = np.sort(durations)
    while len(edges) < MOST_GROUPS - 1 and len(left) >= 2 * GROUP_NOISES / float(epsilon):
        left = left[len(left) // 2 :]
        edges.append(float(max(left[0], 1.0)))
    borders = np.unique(np.array(edges))
    size, many = len(labels), len(pairs) + 1

    def features(block: Cases) -> Triples:
        at, rows = known_gaps(block)
        gaps = block.times[at] - block.times[at - 1]
        number = np.bincount(rows, minlength=len(block))
        lasting = np.zeros(len(block), dtype=np.int64)
        np.add.at(lasting, rows, gaps)
        ours = (number[rows] > 1) & (lasting[rows] > 0)
        at, rows, gaps = at[ours], rows[ours], gaps[ours]
        part = (gaps.astype(np.float64) / lasting[rows] * _ONE).astype(np.int64)
        group = np.searchsorted(borders * 1_000_000, lasting, side="right")
        return rows, group[rows] * many + places(pairs, block.codes[at - 1], block.codes[at], size), part

    asked = curator.events.sums(
        features,
        (len(borders) + 1) * many,
        _ONE,
        epsilon,
        alphabet=labels,
        purpose="parts of durations by directly-follows pair, in 1/2520",
    )
    parts = asked.reshape(-1, many) / _ONE
    return Steps(borders, parts, 2 / float(epsilon) ** 2)


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
