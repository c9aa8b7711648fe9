"""Where the time of a case goes: the part of its duration that each of its gaps takes, by how long it lasts.

A case shares out 1 among its gaps, so the noise is small however many events it has: by place in the case, and where
there are enough cases also by second activity and by pair. The parts of released cases are moved to the likeliest ones,
between what was answered and what their gaps let expect.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from veilog._typing import BoolArray, FloatArray, IntArray
from veilog.methods._events.fits import likeliest
from veilog.methods._events.orders import by_row
from veilog.methods._events.times.prices import Price
from veilog.privacy.asking import Triples
from veilog.privacy.cases import UNKNOWN_TIME, Cases

_ONE = 2_520
"""The duration of a case, in so many parts."""
GROUP_NOISES = 12
"""Cases are grouped by duration: half of them, half of the rest and so on, while so many noise scales are left."""
MOST_GROUPS = 10
LEAN = 1.5
"""How far a part may be from what its gaps let expect: a factor of e to the power of this, as a standard deviation."""
HELD = 0.02
"""Pairs that together have this part of the time of all cases keep theirs: a little of what long cases have would be
many times what they have."""
ROUNDS = 10
"""Of fitting to one table after the other."""
EXCHANGES, EXCHANGED = 20, 0.99
"""Gaps of a pair are handed out so often at most, and while durations come nearer by a hundredth."""
HALVINGS = 24
"""Steps of bisection."""
_BLOCK = 16_384
WEIGHTS = (3, 3, 1)
"""What a case counts in the tables of places, of second activities and of pairs."""
ENOUGH = 300
"""Below this epsilon times number of cases places only are asked for."""
PLACES = 5
"""Parts of a case: its first gap, its last one, and 3 between them."""


@dataclass(frozen=True, eq=False)
class KnownGaps:
    """Gaps between known times, with what tells where in a case and between which activities they are."""

    pair: IntArray
    """Place among the released pairs; other pairs have the one after the last."""
    second: IntArray
    """Code of the second activity; unknown ones have the one after the last."""
    owner: IntArray
    place: IntArray
    """Which part of the case: 0 for the first gap, the last one for the last, evenly between them."""

    @staticmethod
    def of(first: IntArray, second: IntArray, owner: IntArray, pairs: IntArray, size: int) -> KnownGaps:
        """Return gaps, case by case in their order, between activities of these codes."""
        number = np.bincount(owner) if len(owner) else np.zeros(0, dtype=np.int64)
        index = np.arange(len(owner)) - (np.cumsum(number) - number)[owner]
        inner = 1 + (index - 1) * (PLACES - 2) // np.maximum(number[owner] - 2, 1)
        place = np.where(index == 0, 0, np.where(index == number[owner] - 1, PLACES - 1, inner))
        return KnownGaps(places(pairs, first, second, size), np.where(second < 0, size, second), owner, place)

    def cells(self, group: IntArray, sizes: tuple[int, ...]) -> list[IntArray]:
        """Return the cell of each gap in each of the tables by group: places, second activities, pairs."""
        return [group * size + own for own, size in zip((self.place, self.second, self.pair), sizes, strict=False)]


@dataclass(frozen=True, eq=False)
class NoisySteps:
    """Noisy parts of durations, in cases, by group of durations: of places, and of
    second activities and of pairs where there are enough cases."""

    edges: FloatArray
    """Seconds at which groups after the first begin."""
    tables: tuple[FloatArray, ...]
    scales: tuple[float, ...]
    """Of the Laplace noise of each table, or of such noise that varies as much."""
    gaussian: bool
    """Whether the noise is Gaussian."""

    def stretched(
        self, seconds: FloatArray, wanted: FloatArray, gaps: KnownGaps, known: FloatArray, fine: BoolArray
    ) -> FloatArray:
        """Return gaps that add up to the durations ``wanted`` of cases, and in each table to about its parts of them;
        pairs that have little of the time keep it.

        What comes out says of the gaps of a pair which of them is longer than another, and how long all are together.
        As far as its distribution is ``known`` they are as they were drawn, but the long ones longer or shorter, until
        they are as long together; those of a ``fine`` distribution all, but for what the durations still want.
        """
        owner = gaps.owner
        group = np.searchsorted(self.edges, wanted, side="right")[owner]
        cells = gaps.cells(group, tuple(table.shape[1] for table in self.tables))
        several = np.bincount(owner, minlength=len(wanted)) > 1
        whole = np.where(several & (wanted > 0), np.maximum(wanted, 1e-9), np.inf)[owner]  # what is not counted is 0
        found = _drawn_to(seconds, wanted, owner)
        room = np.empty_like(found)  # of millions of gaps: what is written over is not asked for again

        def parts(cell: IntArray, table: FloatArray) -> FloatArray:
            sums = np.bincount(cell, weights=np.divide(found, whole, out=room), minlength=table.size)
            return np.asarray(sums, dtype=np.float64).reshape(table.shape)

        def times(factors: FloatArray, cell: IntArray) -> None:
            """Change each gap by the factor of its cell, and all of a case to what is wanted of it."""
            np.multiply(found, np.take(factors, cell, out=room, mode="clip"), out=found)
            took = np.bincount(owner, weights=found, minlength=len(wanted))
            np.multiply(found, np.take(wanted / np.maximum(took, 1e-12), owner, out=room, mode="clip"), out=found)

        aims = [
            _aimed(table, scale, parts(cell, table), gaussian=self.gaussian)
            for table, scale, cell in zip(self.tables, self.scales, cells, strict=True)
        ]
        of_pairs = np.bincount(gaps.pair, weights=found)
        order = np.argsort(of_pairs)
        held = np.zeros(len(of_pairs), dtype=np.bool_)
        held[order] = np.cumsum(of_pairs[order]) <= HELD * of_pairs.sum()
        for _ in range(ROUNDS):
            for aim, cell in zip(aims, cells, strict=True):
                factors = (aim + 1e-9) / (parts(cell, aim) + 1e-9)
                times(factors, cell)
            now = np.bincount(gaps.pair, weights=found)
            times(np.where(held, of_pairs / np.maximum(now, 1e-9), 1.0), gaps.pair)
        drawn = _as_drawn(seconds, found, gaps.pair, fine)
        return _drawn_to(found + known[gaps.pair] * (drawn - found), wanted, owner)


def handed_out(seconds: FloatArray, wanted: FloatArray, pair: IntArray, owner: IntArray) -> FloatArray:
    """Return gaps that are of the same lengths in each pair, and whose cases last nearer to what is wanted of them.

    All gaps of a case can be short or long together, and nothing but its duration tells. So gaps are drawn to what is
    wanted of their cases, and of those of a pair the k-th longest gets the k-th longest length, again and again, while
    that helps. Where gaps that are drawn by themselves add up to such durations they stay.
    """
    ordered = seconds[_longer(pair, seconds)]
    going = wanted > 0

    def off(found: FloatArray) -> float:
        took = np.bincount(owner, weights=found, minlength=len(wanted))
        return float(np.abs(np.log((took[going] + 1) / (wanted[going] + 1))).sum())

    now = off(seconds)
    for _ in range(EXCHANGES):
        drawn = _drawn_to(seconds, wanted, owner)
        found = np.empty_like(seconds)
        found[_longer(pair, drawn)] = ordered
        before, now = now, off(found)
        if now > EXCHANGED * before:
            break
        seconds = found
    return seconds


def _as_drawn(drawn: FloatArray, found: FloatArray, pair: IntArray, fine: BoolArray) -> FloatArray:
    """Return the gaps of each pair in the order of those found, as they were drawn; long ones are changed until all of
    the pair are as long as those found, or, of a fine one, not at all."""
    order = _longer(pair, found)
    together = [np.bincount(pair, weights=one, minlength=len(fine)) for one in (drawn, found)]
    made = np.empty(len(found))
    made[order] = _drawn_in_block(drawn[_longer(pair, drawn)], np.where(fine, *together), pair[order])
    return made


def _longer(pair: IntArray, seconds: FloatArray) -> IntArray:
    """Return gaps in the order of their pairs, and of their lengths."""
    return by_row(pair, seconds / (2 * seconds.max() + 1))


def _aimed(table: FloatArray, scale: float, expected: FloatArray, *, gaussian: bool) -> FloatArray:
    """Return the likeliest parts: noise about them, and factors between them and what was to be expected."""
    cases = expected.sum(axis=1, keepdims=True)
    # The release need not have as many cases as the log.
    more = np.maximum(cases / np.maximum(table.sum(axis=1, keepdims=True), np.maximum(0.2 * cases, 1.0)), 1e-9)
    aim = likeliest(table * more, expected, scale * more, LEAN, gaussian=gaussian)
    return np.asarray(aim * cases / np.maximum(aim.sum(axis=1, keepdims=True), 1e-12))


def _drawn_to(seconds: FloatArray, wanted: FloatArray, owner: IntArray) -> FloatArray:
    """Gaps that add up to what is wanted of each case, where long ones are changed and short ones hardly.

    What is missing is added by the squares of gaps; what is too much is taken by making g to g / (1 + m g).
    """
    found = np.empty(len(seconds))
    for first in range(0, len(wanted), _BLOCK):
        last = min(first + _BLOCK, len(wanted))
        ours = slice(*np.searchsorted(owner, [first, last]).tolist())
        found[ours] = _drawn_in_block(seconds[ours], wanted[first:last], owner[ours] - first)
    return found


def _drawn_in_block(seconds: FloatArray, wanted: FloatArray, owner: IntArray) -> FloatArray:
    took = np.bincount(owner, weights=seconds, minlength=len(wanted))
    squares = np.bincount(owner, weights=seconds**2, minlength=len(wanted))
    more = (np.maximum(wanted - took, 0.0) / np.maximum(squares, 1e-18))[owner]
    shorter = took > wanted
    ours = np.flatnonzero(shorter[owner])
    case = (np.cumsum(shorter) - 1)[owner[ours]]
    less = _shortening(seconds[ours], wanted[shorter], case)[case]
    found = seconds + more * seconds**2
    found[ours] = seconds[ours] / (1 + less * seconds[ours])
    return _to(found, wanted, owner)


def _shortening(seconds: FloatArray, wanted: FloatArray, owner: IntArray) -> FloatArray:
    """Return for each case the m with which its gaps, each g made to g / (1 + m g), take no less than is wanted."""
    low, high = np.full(len(wanted), -30.0), np.full(len(wanted), 30.0)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        left = np.bincount(owner, seconds / (1 + np.exp(middle)[owner] * seconds), minlength=len(wanted))
        low, high = np.where(left > wanted, middle, low), np.where(left > wanted, high, middle)
    return np.asarray(np.exp(low))


def _to(seconds: FloatArray, wanted: FloatArray, owner: IntArray) -> FloatArray:
    """Gaps stretched so that those of each case add up to what is wanted."""
    took = np.bincount(owner, weights=seconds, minlength=len(wanted))
    return np.asarray(seconds * (wanted / np.maximum(took, 1e-12))[owner])


def asked_steps(
    price: Price,
    pairs: IntArray,
    labels: tuple[str, ...],
    durations: FloatArray,
) -> NoisySteps:
    """Return noisy parts of durations for released ``pairs``, given the durations of released cases.

    A case of at least two gaps adds to each table its weight, shared out among its gaps, so the sum of the weights in
    all, and the root of their squares where one gap has all of it; what is rounded off is lost.
    """
    epsilon = price.epsilon(sum(WEIGHTS), _root(WEIGHTS))
    edges: list[float] = []
    left = np.sort(durations)
    while len(edges) < MOST_GROUPS - 1 and len(left) >= 2 * GROUP_NOISES / epsilon:
        left = left[len(left) // 2 :]
        edges.append(float(max(left[0], 1.0)))
    borders = np.unique(np.array(edges))
    weights = WEIGHTS if len(durations) * epsilon >= ENOUGH else WEIGHTS[:1]
    sizes = (PLACES, len(labels) + 1, len(pairs) + 1)[: len(weights)]
    ends = np.cumsum([(len(borders) + 1) * size for size in sizes])

    def features(block: Cases) -> Triples:
        at, rows = known_gaps(block)
        gaps = block.times[at] - block.times[at - 1]
        lasting = np.zeros(len(block), dtype=np.int64)
        np.add.at(lasting, rows, gaps)
        found = KnownGaps.of(block.codes[at - 1], block.codes[at], rows, pairs, len(labels))
        ours = (np.bincount(rows, minlength=len(block))[rows] > 1) & (lasting[rows] > 0)
        part = (gaps[ours].astype(np.float64) / lasting[rows[ours]] * _ONE).astype(np.int64)
        group = np.searchsorted(borders * 1_000_000, lasting, side="right")[rows]
        cells = [cell[ours] + begin for cell, begin in zip(found.cells(group, sizes), [0, *ends], strict=False)]
        return (
            np.tile(rows[ours], len(weights)),
            np.concatenate(cells),
            np.concatenate([weight * part for weight in weights]),
        )

    root = _root(weights)
    asked = price.sums(
        features,
        int(ends[-1]),
        sum(weights) * _ONE,
        root * _ONE,
        alphabet=labels,
        purpose="durations-in-parts",
    )
    tables = tuple(
        table.reshape(-1, size) / (weight * _ONE)
        for table, size, weight in zip(np.split(asked, ends[:-1]), sizes, weights, strict=True)
    )
    epsilon = price.epsilon(sum(weights), root)
    scales = tuple(sum(weights) / weight / epsilon for weight in weights)
    return NoisySteps(borders, tables, scales, price.rounds is not None)


def _root(weights: Sequence[int]) -> float:
    return math.sqrt(sum(weight**2 for weight in weights))


def places(pairs: IntArray, first: IntArray, second: IntArray, size: int) -> IntArray:
    """Return the place of each pair of codes among the pairs, or the one after the last."""
    if size**2 <= len(first):  # far quicker than a search, where there are no more pairs than this
        among = np.full((size + 1) ** 2, len(pairs))  # the last row and column are those of codes that are -1
        among[(size + 1) * (pairs // size) + pairs % size] = np.arange(len(pairs))
        return np.asarray(among[np.where(first < 0, size, first) * (size + 1) + np.where(second < 0, size, second)])
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
    going = np.zeros(len(block.codes), dtype=np.bool_)
    # An unknown time is below all others, so behind a known one it is not in order.
    going[1:] = (block.times[1:] >= block.times[:-1]) & (block.times[:-1] != UNKNOWN_TIME)
    going[block.offsets[:-1][block.lengths > 0]] = False
    at = np.flatnonzero(going)
    return at, block.owners[at]
