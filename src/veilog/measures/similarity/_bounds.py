"""Two lists of sequences whose optimal transport would take too long: between which numbers the optimum lies.

Sequences of each list are put into boxes. The distances of all pairs in near boxes are computed, as many as a budget
allows; what those in other boxes are at least follows from the boxes. An auction finds a plan, whose cost is the upper
end, and prices, whose dual bound is the lower end. Both hold for certain; nothing is estimated from a sample.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cpdist

from veilog._typing import AnyFloatArray, BoolArray, FloatArray, IntArray
from veilog.logs.variants import Sequences
from veilog.measures.measure import Pair, Progress
from veilog.measures.similarity.distances import (
    CostKind,
    DistanceArray,
    Strings,
    as_sequences,
    as_strings,
    cost_of,
    levenshtein_of,
)
from veilog.measures.similarity.transport import north_west

EXACT_PAIRS = 1 << 20
"""Up to so many pairs of variants the optimum takes no second. A comparison bounds that of more, unless it is to be
exact."""
MOST_PAIRS = 1_000_000_000
"""Up to so many pairs of variants the optimum is found: some minutes of one core. Beyond, it is bounded."""


@dataclass(frozen=True, eq=False)
class Bounds:
    """What is to be moved from where to where; what ``b`` has more comes from a buffer."""

    rows: Strings
    columns: Strings
    a: IntArray
    b: IntArray
    progress: Progress | None = None
    shared: NearDistances | None = None
    """Distances that were found before, those of these sequences among them."""
    _auctions: dict[CostKind, tuple[Flows, Bids]] = field(default_factory=dict)

    @property
    def unmatched(self) -> int:
        return int(self.b.sum()) - int(self.a.sum())

    @cached_property
    def lengths(self) -> tuple[IntArray, IntArray]:
        """Those of the rows, with a 0 for the buffer, and of the columns."""
        return np.array([len(s) for s in self.rows] + [0]), np.array([len(s) for s in self.columns])

    @cached_property
    def distances(self) -> NearDistances:
        """Those of near pairs, of the side that has more sequences to the other."""
        rows, columns = (self.columns, self.rows) if len(self.columns) > len(self.rows) else (self.rows, self.columns)
        return near_distances(rows, columns, self.progress) if self.shared is None else self.shared

    @cached_property
    def _places(self) -> tuple[bool, IntArray, IntArray]:
        """Whether the columns choose among the rows, and where those that choose and those that are chosen stand."""
        choosing, chosen = ({s: k for k, s in enumerate(side)} for side in self.distances.sides)
        flipped = not (all(s in choosing for s in self.rows) and all(s in chosen for s in self.columns))
        first, second = (self.columns, self.rows) if flipped else (self.rows, self.columns)
        return flipped, np.array([choosing[s] for s in first]), np.array([chosen[s] for s in second])

    def plan(self, kind: CostKind, buffer: IntArray | None = None) -> tuple[Flows, IntArray]:
        """A plan that is cheap for costs of this kind, and the distance along each of its arcs."""
        flipped, first, second = self._places
        costs = self._costs(kind, buffer if self.unmatched else None)
        flows, bids = auction_off(*self._masses(costs), costs, self.progress)
        self._auctions[kind] = flows, bids
        places = [np.full(n + 1, len(p)) for n, p in zip(map(len, self.distances.sides), (first, second), strict=True)]
        for place, at in zip(places, (first, second), strict=True):
            place[at] = np.arange(len(at))
        i, j = places[0][flows.rows], places[1][flows.columns]
        flows = Flows(j, i, flows.mass) if flipped else Flows(i, j, flows.mass)
        return flows, distances_of(flows, self.rows, self.columns)

    def lower(self, kind: CostKind, *, buffer_by_length: bool = False) -> float:
        """What no plan costs less than; the buffer costs nothing, or the length of what it becomes."""
        if kind == "metric":
            costs = self._costs(kind, None)
            a, b = self._masses(costs)
            return max(0.0, climb(a, b, costs, self._auctions["normalised"][1].prices, 0.0, 1).lower(a, b))
        bids, buffered = self._auctions[kind][1], kind == "plain" and self.unmatched > 0
        costs = self._costs(kind, self.lengths[1] if buffered else None)
        a, b = self._masses(costs)
        found = bids.lower(a, b)
        if buffered and not buffer_by_length:
            flipped = self._places[0]
            own, others, masses = (bids.prices, bids.best, a) if flipped else (bids.best, bids.prices, b)
            found += self.unmatched * (-float(others[masses > 0].max()) - float(own[-1]))
        return max(0.0, found)

    def largest(self) -> tuple[int, int]:
        """Between which numbers the largest distance of all pairs lies."""
        return self.distances.largest(*self._places[1:])

    def _costs(self, kind: CostKind, buffer: IntArray | None) -> NearCosts:
        """The costs of this kind, of the buffer those for each of ``columns``."""
        flipped, first, second = self._places
        if buffer is not None:
            side, at = (0, first) if flipped else (1, second)
            full = np.zeros(len(self.distances.sides[side]), dtype=np.int64)
            full[at] = buffer
            buffer = full
        return self.distances.costs(kind, buffer, column=flipped)

    def _masses(self, costs: NearCosts) -> tuple[IntArray, IntArray]:
        """The masses of those that choose and of those that are chosen, with that of the buffer."""
        flipped, *places = self._places
        found = []
        for size, at, masses in zip(
            costs.shape, places, (self.b, self.a) if flipped else (self.a, self.b), strict=True
        ):
            mass = np.zeros(size, dtype=np.int64)
            mass[at] = masses
            found.append(mass)
        if costs.buffer is not None:
            found[flipped][-1] = self.unmatched
        return found[0], found[1]


def shared_distances(pair: Pair) -> NearDistances | None:
    """Return the near distances of all variants of both logs, where two measures bound their transports by them; None
    where the optimum is found."""
    original, released = pair.variants
    if pair.exact or len(original) * len(released) <= EXACT_PAIRS:
        return None
    rows, columns = sorted(as_strings(original.sequences, released.sequences), key=len, reverse=True)
    return near_distances(rows, columns, pair.progress)


# A cheap plan and a number that no plan costs less than, by prices at which the rows choose among the columns.
#
# For any prices v of the columns
#
#     sum_j b_j v_j + sum_i a_i min_j (c_ij - v_j)   <=   the cost of every plan,
#
# whatever way they were found, and also where some c_ij are replaced by less. Each round, a column that more rows
# choose than it has room for becomes dearer and one that fewer choose becomes cheaper, by the logarithm of the two. The
# first rounds look at a sample of the rows; the last ones look at all, which makes the bound hold. Then every row gets
# its column as long as there is room, the nearest first, and what is left over is auctioned again.

_SAMPLED_PAIRS = 6_000_000
"""Pairs that the first rounds look at."""
_ROUNDS, _AGAIN, _LAST_ROUNDS = 12, 4, 3
"""Of a sample, of one of what was left over, and of all pairs."""
_FADING = 0.8
"""Each step as a part of the one before; the first is the mean cost of the nearest column."""
_TIMES = 40
"""What is left after so many auctions is laid out in order."""
_LEAST = 4
"""Or as soon as an auction moves no more than one part in so many of what is left, and again among new near pairs."""
_RENEWED_PAIRS = 10_000_000
_EPSILON = float(np.finfo(np.float32).eps)


@dataclass(frozen=True, eq=False)
class Flows:
    """A plan: how much mass goes from which row to which column."""

    rows: IntArray
    columns: IntArray
    mass: IntArray


@dataclass(frozen=True, eq=False)
class Bids:
    """The column that each row chooses at some prices, and the bound by these."""

    prices: FloatArray
    chosen: IntArray
    """-1 for a row whose distances are all unknown."""
    nearest: FloatArray
    """What the chosen column costs each row, less its price."""
    best: FloatArray
    """What no column costs a row less than, less its price."""

    def lower(self, a: npt.NDArray[np.number], b: npt.NDArray[np.number]) -> float:
        """Return the number that no plan between these masses costs less than, for all the rounding there is."""
        some, others = a > 0, b > 0
        prices, best = self.prices[others], self.best[some]
        largest = float(np.abs(prices).max(initial=0)) + float(np.abs(best).max(initial=0))
        return float(b[others] @ prices) + float(a[some] @ best) - 4 * _EPSILON * largest * float(a.sum())


def auction_off(a: IntArray, b: IntArray, costs: NearCosts, progress: Progress | None = None) -> tuple[Flows, Bids]:
    """Return a plan that moves the masses ``a`` (one a row) to ``b`` (one a column), and the bids that bound it."""
    rows, columns, first, renewed = np.arange(len(a)), np.arange(len(b)), None, False
    arcs: list[tuple[IntArray, IntArray, IntArray]] = []
    for _ in range(_TIMES):
        prices, step = _sampled(a, b, costs, _AGAIN if first else _ROUNDS)
        bids = climb(a, b, costs, prices, step, 1 if first else _LAST_ROUNDS, progress)
        first = first or bids
        mass = _room(a, b, bids)
        arcs.append((rows[mass > 0], columns[bids.chosen[mass > 0]], mass[mass > 0]))
        a = a - mass
        b = b - np.bincount(bids.chosen[mass > 0], weights=mass[mass > 0], minlength=len(b)).astype(np.int64)
        some, others = np.flatnonzero(a), np.flatnonzero(b)
        if not len(some):
            break
        costs, a, b, rows, columns = costs.among(some, others), a[some], b[others], rows[some], columns[others]
        if int(mass.sum()) * _LEAST < int(a.sum()):
            if renewed:
                break
            costs = costs.renewed()
            renewed = True
        else:
            renewed = False
    i, j, mass = north_west(a[a > 0], b[b > 0])
    arcs.append((rows[a > 0][i], columns[b > 0][j], mass))
    assert first is not None, "there is something to move"
    return Flows(*(np.concatenate(part) for part in zip(*arcs, strict=True))), first


def climb(
    a: npt.NDArray[np.number],
    b: npt.NDArray[np.number],
    costs: NearCosts,
    prices: FloatArray,
    step: float,
    rounds: int,
    progress: Progress | None = None,
) -> Bids:
    """Return the bids of the best of so many rounds, from these prices on."""
    best = bids = costs.bids(prices)
    highest = bids.lower(a, b)
    for done in range(1, rounds):
        if progress is not None:
            progress("Comparing variants", done / rounds)
        able = bids.chosen >= 0
        wanted = np.bincount(bids.chosen[able], weights=a[able], minlength=len(b))
        change = np.log(np.maximum(1.1 * b, 1e-9) / np.maximum(wanted + 0.1 * b, 1e-9))
        bids = costs.bids(np.where(b > 0, bids.prices + step * np.clip(change, -1.5, 1.5), -np.inf))
        step *= _FADING
        if (value := bids.lower(a, b)) > highest:
            best, highest = bids, value
    return best


def _sampled(a: IntArray, b: IntArray, costs: NearCosts, rounds: int) -> tuple[FloatArray, float]:
    """Prices by a sample of the rows, and the next step."""
    rows = costs.shape[0]
    # Each stands for those up to the next; the last, which may be a buffer, for itself.
    i = np.unique(np.append(np.arange(0, rows - 1, max(1, costs.pairs // _SAMPLED_PAIRS)), rows - 1))
    some = costs if len(i) == rows else costs.among(i, np.arange(len(b)))
    share, there = np.add.reduceat(a, i) / a.sum(), b / b.sum()
    near = some.bids(np.where(b > 0, 0.0, -np.inf))
    able = (share > 0) & np.isfinite(near.nearest)
    scale = max(float(share[able] @ near.nearest[able]), 1e-9)
    return climb(share, there, some, near.prices, scale, rounds).prices, scale / 10


def _room(a: IntArray, b: IntArray, bids: Bids) -> IntArray:
    """How much of each row its column has room for, the nearest rows first."""
    able = np.flatnonzero((a > 0) & (bids.chosen >= 0))
    wanted = bids.chosen[able]
    order = able[np.lexsort((bids.nearest[able] + bids.prices[wanted], wanted))]
    mass, column = a[order], bids.chosen[order]
    before = np.cumsum(mass) - mass
    starts = np.flatnonzero(np.diff(column, prepend=-1))
    before -= np.repeat(before[starts], np.diff(starts, append=len(column)))
    taken = np.zeros_like(a)
    taken[order] = np.clip(b[column] - before, 0, mass)
    return taken


def distances_of(flows: Flows, rows: Strings, columns: Strings) -> IntArray:
    """Return the Levenshtein distance along each arc; 0 for those from the buffer."""
    out = np.zeros(len(flows.mass), dtype=np.int64)
    step = 1 << 18
    for start in range(0, len(out), step):
        i, j = flows.rows[start : start + step], flows.columns[start : start + step]
        real = np.flatnonzero(i < len(rows))
        left, right = [rows[k] for k in i[real].tolist()], [columns[k] for k in j[real].tolist()]
        if left:
            out[start + real] = cpdist(left, right, scorer=Levenshtein.distance, dtype=np.int64)
    return out


# Which pairs are near, and what the distance of all others is at least.
#
# What is known of the sequences in a box is between which numbers their lengths lie, and how often each activity occurs
# in them. Edits that turn s into t delete or replace each of the P activities that s has too many of, and insert or put
# in place each of the N that it has too few of, so the Levenshtein distance is at least max(P, N); and
# |s| - |t| = P - N. Any boxes and any choice of near ones give a bound that holds; some give a better one.

NEAR_PAIRS = 100_000_000
"""Pairs whose distances are computed and held: a byte each, as long as no sequence has more than 255 events."""
_BOXES = 512
"""Of each side, where not all pairs are near."""
_GROUPS = 48
"""Most activities that are counted each by itself; rarer ones share counts."""
_SAMPLED_TRACES = 4096
"""Members that decide how a box is cut."""
_STRIP = 1 << 22

Block = tuple[IntArray, IntArray, DistanceArray]
"""Some rows, some columns, and the distances of all pairs."""


@dataclass(frozen=True, eq=False)
class NearDistances:
    """The distances of near pairs in blocks, and of pairs of boxes the number that no other distance is below."""

    sides: tuple[Strings, Strings]
    boxes: tuple[IntArray, IntArray]
    """The box of each row and of each column."""
    shortest: tuple[IntArray, IntArray]
    longest: tuple[IntArray, IntArray]
    """Of each box."""
    least: DistanceArray
    """For each box of the rows and each of the columns."""
    near: BoolArray
    """Which pairs of boxes have their distances in a block."""
    blocks: list[Block] = field(default_factory=list)

    @cached_property
    def lengths(self) -> tuple[AnyFloatArray, AnyFloatArray]:
        return _lengths(self.sides[0]), _lengths(self.sides[1])

    def costs(self, kind: CostKind, buffer: IntArray | None = None, *, column: bool = False) -> NearCosts:
        """Return what pairs cost. A ``buffer`` is one more row, or ``column``, with costs of its own."""
        far = None if self.near.all() else self.far(kind)
        return NearCosts(self.sides, self.lengths, self.boxes, self.blocks, kind, far, buffer, column)

    def far(self, kind: CostKind) -> AnyFloatArray:
        """What no pair of two boxes costs less than; infinitely much where the pairs are near."""
        (low, low_), (high, high_) = self.shortest, self.longest
        costs = cost_of(kind, self.least, high[:, None], high_).astype(np.float32)
        if kind != "plain":  # a difference of lengths alone costs 1 - shorter / longer in both
            for longer, shorter in ((low[:, None], high_), (low_, high[:, None])):
                np.maximum(costs, 1 - shorter / np.maximum(longer, 1), out=costs, where=longer > 0, casting="unsafe")
        costs[self.near] = np.inf
        return costs

    def compute(self, chosen: BoolArray, progress: Progress | None = None) -> None:
        """Add the distances of the chosen pairs of boxes."""
        columns = np.empty(len(self.sides[1]), dtype=object)
        columns[:] = self.sides[1]
        for box, members in enumerate(_members(self.boxes[0], len(chosen))):
            others = np.flatnonzero(chosen[box][self.boxes[1]])
            if len(others):
                edits = levenshtein_of([self.sides[0][k] for k in members.tolist()], columns[others].tolist())
                self.blocks.append((members, others, edits))
            if progress is not None:
                progress("Comparing variants", box / len(chosen))
        self.near[chosen] = True

    def nearest(self) -> tuple[AnyFloatArray, AnyFloatArray]:
        """Return the mean normalised distance of the members of each box to the nearest that is known."""
        rows, columns = (np.full(len(side), np.inf, dtype=np.float32) for side in self.sides)
        costs = self.costs("normalised")
        for members, others, edits in self.blocks:
            w = costs.of_block(members, others, edits)
            rows[members] = np.minimum(rows[members], w.min(axis=1))
            columns[others] = np.minimum(columns[others], w.min(axis=0))
        first, second = (
            np.bincount(box, weights=np.minimum(found, 1)) / np.bincount(box)
            for box, found in zip(self.boxes, (rows, columns), strict=True)
        )
        return first, second

    def largest(self, rows: IntArray, columns: IntArray) -> tuple[int, int]:
        """Between which numbers the largest distance of all pairs of these lies."""
        costs = self.costs("plain").among(rows, columns)
        least = max((int(edits.max(initial=0)) for *_, edits in costs.blocks), default=0)
        if costs.pairs == len(rows) * len(columns):
            return least, least
        return least, int(max(lengths.max(initial=0) for lengths in costs.lengths))


def near_distances(
    rows: Strings, columns: Strings, progress: Progress | None = None, budget: int | None = None
) -> NearDistances:
    """Return the distances of pairs that are near each other: of all, if they are few."""
    sequences, budget = as_sequences(rows, columns), budget or NEAR_PAIRS
    whole = len(rows) * len(columns) <= budget
    if whole:
        strip = max(1, _STRIP // max(1, len(columns)))
        boxes = np.arange(len(rows)) // strip, np.zeros(len(columns), dtype=np.int64)
        features = [s.lengths[:, None] for s in sequences]
    else:
        groups = _groups(*sequences)
        features = [_features(s, groups) for s in sequences]
        cut = np.empty(len(rows) + len(columns), dtype=np.int64)
        for number, members in enumerate(_cut(np.concatenate(features))):
            cut[members] = number
        boxes = _dense(cut[: len(rows)]), _dense(cut[len(rows) :])
    (low, high), (low_, high_) = (_extent(f, box) for f, box in zip(features, boxes, strict=True))
    least = _least(low, high, low_, high_)
    found = NearDistances(
        (rows, columns),
        boxes,
        (low[:, -1], low_[:, -1]),
        (high[:, -1], high_[:, -1]),
        least,
        np.zeros(least.shape, bool),
    )
    if whole:
        found.compute(np.ones(least.shape, dtype=bool), progress)
        return found
    sizes = np.bincount(boxes[0]), np.bincount(boxes[1])
    costs, part = found.far("normalised"), budget // 6
    found.compute(
        _first(costs, sizes[1], part / len(rows)) | _first(costs.T, sizes[0], part / len(columns)).T, progress
    )
    mine, other = found.nearest()
    slack = np.where(found.near, np.inf, costs - np.maximum(mine[:, None], other))
    order = np.argsort(slack, axis=None)
    left = budget - sum(edits.size for *_, edits in found.blocks)
    order = order[(np.cumsum((sizes[0][:, None] * sizes[1]).ravel()[order]) <= left) & (slack.ravel()[order] < 0)]
    chosen = np.zeros(slack.size, dtype=bool)
    chosen[order] = True
    found.compute(chosen.reshape(slack.shape), progress)
    return found


def _first(costs: AnyFloatArray, sizes: IntArray, members: float) -> BoolArray:
    """For each row of boxes the nearest ones that together have about so many members."""
    order = np.argsort(costs, axis=1)
    before = np.cumsum(sizes[order], axis=1) - sizes[order]
    chosen = np.zeros(costs.shape, dtype=bool)
    np.put_along_axis(chosen, order, before < members, axis=1)
    return chosen


@dataclass(frozen=True, eq=False)
class NearCosts:
    """What near pairs of some rows and columns cost, and perhaps what no other pair costs less than."""

    sides: tuple[Strings, Strings]
    lengths: tuple[AnyFloatArray, AnyFloatArray]
    boxes: tuple[IntArray, IntArray]
    blocks: list[Block]
    kind: CostKind
    far: AnyFloatArray | None
    buffer: IntArray | None = None
    column: bool = False
    """Whether the buffer is a column."""

    @property
    def shape(self) -> tuple[int, int]:
        more = self.buffer is not None
        return len(self.sides[0]) + (more and not self.column), len(self.sides[1]) + (more and self.column)

    @property
    def pairs(self) -> int:
        return sum(edits.size for *_, edits in self.blocks)

    def of_block(self, members: IntArray, others: IntArray, edits: DistanceArray) -> AnyFloatArray:
        """Return the costs of a block."""
        if self.kind == "plain":
            return edits.astype(np.float32)
        length, other = self.lengths[0][members, None], self.lengths[1][others]
        if self.kind == "normalised":
            by = np.maximum(np.maximum(length, other), np.float32(1))
        else:
            by = np.maximum(length + other + edits, np.float32(1)) / np.float32(2)
        return np.asarray(np.divide(edits, by, out=by))

    def bids(self, prices: FloatArray) -> Bids:
        """Return the column that each row chooses at these prices."""
        narrow = prices.astype(np.float32)
        nearest, chosen = np.full(self.shape[0], np.inf), np.full(self.shape[0], -1)
        for members, others, edits in self.blocks:
            w = self.of_block(members, others, edits)
            w -= narrow[others]
            index = w.argmin(axis=1)
            _improve(nearest, chosen, members, w[np.arange(len(members)), index], others[index])
        if self.buffer is not None:
            w = self.buffer - narrow[-1] if self.column else self.buffer - narrow
            if self.column:
                _improve(nearest, chosen, np.arange(len(w)), w, np.full(len(w), len(narrow) - 1))
            else:
                _improve(nearest, chosen, np.array([len(nearest) - 1]), w.min(keepdims=True), np.array([w.argmin()]))
        best = nearest.copy()
        if self.far is not None:
            dearest = np.full(self.far.shape[1], -np.inf, dtype=np.float32)
            np.maximum.at(dearest, self.boxes[1], narrow[: len(self.boxes[1])])
            rows = len(self.boxes[0])
            best[:rows] = np.minimum(best[:rows], (self.far - dearest).min(axis=1)[self.boxes[0]])
        return Bids(narrow.astype(float), chosen, nearest, best)

    def among(self, rows: IntArray, columns: IntArray) -> NearCosts:
        """Return the costs of some rows and columns, in ascending order; far ones only where all columns are there."""
        at = (rows[rows < len(self.sides[0])], columns[columns < len(self.sides[1])])
        places = [np.full(len(side), -1) for side in self.sides]
        for place, chosen in zip(places, at, strict=True):
            place[chosen] = np.arange(len(chosen))
        blocks = []
        for members, others, edits in self.blocks:
            i, j = np.flatnonzero(places[0][members] >= 0), np.flatnonzero(places[1][others] >= 0)
            if len(i) and len(j):
                part = edits[i] if len(j) == len(others) else edits[np.ix_(i, j)]
                blocks.append((places[0][members[i]], places[1][others[j]], part))
        first, second = at
        sides = [self.sides[0][k] for k in first.tolist()], [self.sides[1][k] for k in second.tolist()]
        lengths = self.lengths[0][first], self.lengths[1][second]
        boxes = self.boxes[0][first], self.boxes[1][second]
        far = self.far if len(columns) == self.shape[1] else None
        buffer = self.buffer
        if buffer is not None:
            mine, all_ = (columns, self.shape[1]) if self.column else (rows, self.shape[0])
            buffer = buffer[first if self.column else second] if all_ - 1 in mine else None
        return NearCosts(sides, lengths, boxes, blocks, self.kind, far, buffer, self.column)

    def renewed(self) -> NearCosts:
        """Return the costs of the same sequences, of the pairs that are near among these alone."""
        return near_distances(*self.sides, budget=_RENEWED_PAIRS).costs(self.kind, self.buffer, column=self.column)


def _improve(nearest: FloatArray, chosen: IntArray, rows: IntArray, costs: Any, columns: IntArray) -> None:
    """Let those of these rows for which it is cheaper choose this column."""
    better = costs < nearest[rows]
    nearest[rows[better]], chosen[rows[better]] = costs[better], columns[better]


def _lengths(strings: Strings) -> AnyFloatArray:
    return np.array([len(s) for s in strings], dtype=np.float32)


def _groups(sequences: Sequences, others: Sequences) -> IntArray:
    """For each activity the feature that counts it: the frequent ones have one each."""
    labels = len(sequences.labels)
    often = sum(np.bincount(s.codes, minlength=labels) for s in (sequences, others))
    rank = np.empty(labels, dtype=np.int64)
    rank[np.argsort(-often, kind="stable")] = np.arange(labels)
    return np.minimum(rank, _GROUPS - 1)


def _features(sequences: Sequences, groups: IntArray) -> IntArray:
    """A row a sequence: the counts of the groups of activities, and the length."""
    width = int(groups.max(initial=0)) + 1
    table = np.zeros((len(sequences), width + 1), dtype=np.int64)
    owner = np.repeat(np.arange(len(sequences)), sequences.lengths)
    table[:, :width] = np.bincount(owner * width + groups[sequences.codes], minlength=len(sequences) * width).reshape(
        len(sequences), width
    )
    table[:, width] = sequences.lengths
    return table


def _cut(features: IntArray) -> list[IntArray]:
    """Members of the boxes: again and again the box with most members and spread is cut in two."""

    def judged(members: IntArray) -> tuple[float, int, float]:
        some = features[members[:: max(1, len(members) // _SAMPLED_TRACES)]].astype(float)
        variance = some.var(axis=0)
        dimension = int(variance.argmax())
        return len(members) * float(np.sqrt(variance.sum())), dimension, float(some[:, dimension].mean())

    whole = np.arange(len(features))
    worth, dimension, middle = judged(whole)
    heap, number = [(-worth, 0, dimension, middle, whole)], 1
    while len(heap) < _BOXES and heap[0][0] < 0:
        _, _, dimension, middle, members = heapq.heappop(heap)
        below = features[members, dimension] <= np.floor(middle)
        for part in (members[below], members[~below]):
            worth, dimension, middle = judged(part)
            heapq.heappush(heap, (-worth, number, dimension, middle, part))
            number += 1
    return [members for *_, members in heap]


def _dense(box: IntArray) -> IntArray:
    """The boxes that one side has members in, numbered from 0."""
    return np.unique(box, return_inverse=True)[1]


def _members(box: IntArray, boxes: int) -> list[IntArray]:
    order = np.argsort(box, kind="stable")
    return np.split(order, np.searchsorted(box[order], np.arange(1, boxes)))


def _extent(features: IntArray, box: IntArray) -> tuple[IntArray, IntArray]:
    """The least and the largest features in each box."""
    order = np.argsort(box, kind="stable")
    starts = np.flatnonzero(np.diff(box[order], prepend=-1))
    low, high = (f.reduceat(features[order], starts, axis=0) for f in (np.minimum, np.maximum))
    return low, high


def _least(low: IntArray, high: IntArray, low_: IntArray, high_: IntArray) -> DistanceArray:
    """What no distance of members of two boxes is below."""
    longest = int(max(side.max(initial=0) for side in (high, high_)))
    found = np.empty((len(low), len(low_)), dtype=np.min_scalar_type(longest))
    kind: Any = np.int16 if longest < 1 << 14 else np.int32
    low, high, low_, high_ = (side.astype(kind) for side in (low, high, low_, high_))
    for start in range(0, len(low), 64):
        mine = slice(start, start + 64)
        more = np.zeros((len(low[mine]), len(low_)), dtype=kind)
        fewer, gap = np.zeros_like(more), np.empty_like(more)
        for feature in range(low.shape[1] - 1):
            more += np.maximum(np.subtract(low[mine, feature, None], high_[:, feature], out=gap), 0, out=gap)
            fewer += np.maximum(np.subtract(low_[:, feature], high[mine, feature, None], out=gap), 0, out=gap)
        longer, shorter = low[mine, -1, None] - high_[:, -1], low_[:, -1] - high[mine, -1, None]
        found[mine] = np.maximum.reduce([more, fewer, fewer + longer, more + shorter])
    return found
