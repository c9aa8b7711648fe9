"""Parts of a case's duration: of its first gap, its last one, and those between.

They depend on how long the case lasts. A case shares out 1 among its gaps, so the noise is small however many events it
has. The parts of released cases are moved to the answer, as far as the gaps that were drawn do not explain it. Tables
by activity and by pair of activities, asked beside this one, make no distance less.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from veilog._typing import FloatArray, IntArray
from veilog.methods._events.times.prices import Price
from veilog.methods._events.times.prior import lean_on_prior
from veilog.privacy.case_functions import Triples
from veilog.privacy.cases import UNKNOWN_TIME, Cases

PLACES = 5
"""Parts of a case: its first gap, its last one, and 3 between them. With 3 and 10 places times since the start of a
case are 4.8 and 4.8 in place of 2.8 distances of halves on Sepsis, 4.3 and 3.1 in place of 2.7 on BPIC 2013 (logs as
for ``histogram.FINE``, 10 seeds)."""
GROUP_NOISES, MOST_GROUPS = 6, 10
"""Least noise scales of cases in a group, and most groups. Cases are grouped by duration: half of them, half of the
rest and so on. With half and twice of the first number these times are 3.6 and 4.2 in place of 2.8 on Sepsis, and 2.4
and 2.2 in place of 2.7 on BPIC 2013. Mean gaps of pairs of Receipt are off by 3.8 in place of 3.0 with either (logs as
for ``PLACES``). It was chosen on these logs."""
STANDING_OUT = 3.0
"""Deviations of its noise from which a part is believed. Noise exceeds them in one of 140 parts, and a release has 50
at most. Else noise of a hundredth of a case that lasts for weeks is hours of a step that takes minutes. With 2 and 2.5
times since the start of a case are 3.1 and 3.2 in place of 1.9 distances of halves on Sepsis, 2.6 and 2.7 in place of
2.7 on BPIC 2013, 2.9 and 2.4 in place of 2.0 in a synthetic network (8 seeds, logs of ``bench/times.py``)."""
ROUNDS = 10
"""Rounds of fitting."""
_ONE = 2_520
"""Parts into which the duration of a case is divided."""


def places(owner: IntArray) -> IntArray:
    """Return the place of each gap in its case, given the case of each in order."""
    number = np.bincount(owner) if len(owner) else np.zeros(0, dtype=np.int64)
    index = np.arange(len(owner)) - (np.cumsum(number) - number)[owner]
    inner = 1 + (index - 1) * (PLACES - 2) // np.maximum(number[owner] - 2, 1)
    return np.where(index == 0, 0, np.where(index == number[owner] - 1, PLACES - 1, inner))


@dataclass(frozen=True, eq=False)
class NoisySteps:
    """Parts of durations that the places of gaps take, by group of durations."""

    edges: FloatArray
    """Seconds at which groups after the first begin."""
    noisy: FloatArray
    """Noisy sum of the parts of each place, in cases, for each group."""
    cases: FloatArray
    """Number of cases of each group."""
    scale: float
    """Scale of the noise of each sum."""

    def parts(self, drawn: FloatArray) -> FloatArray:
        """Return the shares of places in each group.

        They are those of the sums that stand out of the noise, or as in the gaps that were ``drawn``, the likelier the
        answer makes these (:func:`lean_on_prior`).
        """
        found: FloatArray = drawn / np.maximum(drawn.sum(axis=1, keepdims=True), 1e-12)
        for group in np.flatnonzero((self.cases > 0) & drawn.any(axis=1)).tolist():
            noisy = self.noisy[group]
            kept = np.where(noisy >= STANDING_OUT * 2**0.5 * self.scale, noisy, 0.0)
            if kept.any():
                shares, variance = noisy / self.cases[group], 2 * (self.scale / self.cases[group]) ** 2
                found[group], _ = lean_on_prior(kept, shares, drawn[group], variance)
        return found

    def stretched(self, seconds: FloatArray, wanted: FloatArray, owner: IntArray) -> FloatArray:
        """Return gaps that add up to the durations ``wanted`` of cases.

        The gaps of each place have about its part of the durations."""
        cell = np.searchsorted(self.edges, wanted, side="right")[owner] * PLACES + places(owner)
        several = np.bincount(owner, minlength=len(wanted)) > 1
        whole = np.where(several & (wanted > 0), np.maximum(wanted, 1e-9), np.inf)[owner]  # cases that do not count: 0
        found = seconds.copy()
        room = np.empty_like(found)  # one buffer, because there may be millions of gaps

        def sums() -> FloatArray:
            found_in = np.bincount(cell, weights=np.divide(found, whole, out=room), minlength=self.noisy.size)
            return np.asarray(found_in, dtype=np.float64).reshape(self.noisy.shape)

        def times(factors: FloatArray, of_gap: IntArray) -> None:
            np.multiply(found, np.take(factors, of_gap, out=room, mode="clip"), out=found)

        def to_durations() -> None:
            times(wanted / np.maximum(np.bincount(owner, weights=found, minlength=len(wanted)), 1e-12), owner)

        to_durations()
        drawn = sums()
        aim = self.parts(drawn) * drawn.sum(axis=1, keepdims=True)
        for _ in range(ROUNDS):
            times((aim + 1e-9) / (sums() + 1e-9), cell)
            to_durations()
        return found


def query_steps(price: Price, durations: FloatArray) -> NoisySteps:
    """Return the parts of durations that places take.

    The groups follow from the durations of released cases. A case of at least two gaps shares out 1 among them; what is
    rounded off is lost.
    """
    edges: list[float] = []
    left = ordered = np.sort(durations)
    while len(edges) < MOST_GROUPS - 1 and len(left) >= 2 * GROUP_NOISES / price.epsilon():
        left = left[len(left) // 2 :]
        edges.append(float(max(left[0], 1.0)))
    borders = np.unique(np.array(edges))

    def features(block: Cases) -> Triples:
        at, rows = gaps_of(block)
        gaps = block.times[at] - block.times[at - 1]
        lasting = np.zeros(len(block), dtype=np.int64)
        np.add.at(lasting, rows, gaps)
        ours = (np.bincount(rows, minlength=len(block))[rows] > 1) & (lasting[rows] > 0)
        part = (gaps[ours].astype(np.float64) / lasting[rows[ours]] * _ONE).astype(np.int64)
        group = np.searchsorted(borders * 1_000_000, lasting, side="right")[rows]
        return rows[ours], (group * PLACES + places(rows))[ours], part

    asked = price.sums(features, (len(borders) + 1) * PLACES, _ONE, _ONE, purpose="durations-in-parts")
    cases = np.diff(np.searchsorted(ordered, borders), prepend=0, append=len(ordered)).astype(np.float64)
    return NoisySteps(borders, asked.reshape(-1, PLACES) / _ONE, cases, 1 / price.epsilon())


def directly_following(offsets: IntArray, events: int) -> IntArray:
    """Return the second event of every directly-follows pair."""
    second = np.ones(events, dtype=np.bool_)
    second[offsets[:-1][np.diff(offsets) > 0]] = False
    return np.flatnonzero(second)


def gaps_of(block: Cases) -> tuple[IntArray, IntArray]:
    """Return the second event of each pair with known times in order, and its case."""
    going = np.zeros(len(block.codes), dtype=np.bool_)
    # An unknown time is below all others, so behind a known one it is not in order.
    going[1:] = (block.times[1:] >= block.times[:-1]) & (block.times[:-1] != UNKNOWN_TIME)
    going[block.offsets[:-1][block.lengths > 0]] = False
    at = np.flatnonzero(going)
    return at, block.owners[at]
