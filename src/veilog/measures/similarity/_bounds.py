"""Two lists of sequences whose optimal transport would take too long: between which numbers the optimum lies.

Where the distances of all pairs fit in memory, both ends come from an auction
(:mod:`veilog.measures.similarity._bounds`). Of more pairs the upper end is the cost of a plan in blocks
(:mod:`veilog.measures.similarity._bounds`), the lower end the optimum of a smaller problem that no plan undercuts
(:mod:`veilog.measures.similarity._bounds`). All hold for certain; nothing is estimated from a sample.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
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
from veilog.measures.similarity.costs import CostKind, cost_of, edit_costs
from veilog.measures.similarity.distances import (
    EditDistances,
    Strings,
    as_sequences,
    as_strings,
    edit_distances,
    kept_in,
)
from veilog.measures.similarity.transport import Costs, matrix_costs, north_west, transport

EXACT_PAIRS = 1 << 20
"""Up to so many pairs of variants the optimum takes no second. A comparison bounds that of more, unless it is to be
exact."""
MOST_PAIRS = 1_000_000_000
"""Up to so many pairs of variants the optimum is found: some minutes of one core. Beyond, it is bounded."""


_SHARED = 250_000_000
"""Pairs whose distances are shared by measures, each of which takes a part of them."""


@dataclass(frozen=True, eq=False)
class Bounds:
    """What is to be moved from where to where; what ``b`` has more comes from a buffer."""

    rows: Strings
    columns: Strings
    a: IntArray
    b: IntArray
    progress: Progress | None = None
    shared: EditDistances | None = None
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
    def boxes(self) -> tuple[Boxes, Boxes]:
        if self.progress is not None:
            self.progress("Bounding the distances of many variants", None)
        return boxed(*as_sequences(self.rows, self.columns), self.a, self.b)

    @cached_property
    def distances(self) -> EditDistances | None:
        """All distances, of the side that has more sequences to the other; None where they do not fit in memory."""
        rows, columns = (self.columns, self.rows) if self._flipped else (self.rows, self.columns)
        if self.shared is not None:
            return self.shared.of(rows, columns)
        return edit_distances(rows, columns, progress=self.progress) if kept_in(rows, columns) else None

    def plan(self, kind: CostKind, buffer: IntArray | None = None) -> tuple[Flows, IntArray]:
        """A plan that is cheap for costs of this kind, and the distance along each of its arcs."""
        buffer = buffer if self.unmatched else None
        if self.distances is None:
            flows = plan_in_blocks(self.rows, self.columns, self.a, self.b, kind, buffer, self.progress)
        else:
            costs = edit_costs(self.distances, kind, buffer, column=self._flipped)
            flows, bids = auction_off(*self._masses(buffer is not None), costs, self.progress)
            if self._flipped:
                flows = Flows(flows.columns, flows.rows, flows.mass)
            self._auctions[kind] = flows, bids
        return flows, distances_of(flows, self.rows, self.columns)

    def lower(self, kind: CostKind, *, buffer_by_length: bool = False) -> float:
        """What no plan costs less than; the buffer costs nothing, or the length of what it becomes."""
        if self.distances is None:
            boxes, others = self.boxes
            charge = others.low[:, -2] if buffer_by_length else np.zeros(len(others), dtype=np.int64)
            return lower_bound(boxes, others, self.a, self.b, kind, buffer=(self.unmatched, charge))
        if kind == "metric":
            a, b = self._masses(False)
            start = self._auctions["normalised"][1].prices
            return max(0.0, climb(a, b, edit_costs(self.distances, kind), start, 0.0, 1).lower(a, b))
        bids, buffered = self._auctions[kind][1], kind == "plain" and self.unmatched > 0
        found = bids.lower(*self._masses(buffered))
        if buffered and not buffer_by_length:
            own, others_ = (bids.prices, bids.best) if self._flipped else (bids.best, bids.prices)
            found += self.unmatched * (-float(others_.max()) - float(own[-1]))
        return max(0.0, found)

    def largest(self) -> tuple[int, int]:
        """Between which numbers the largest distance of all pairs lies."""
        if self.distances is not None:
            return self.distances.largest(), self.distances.largest()
        boxes, others = self.boxes
        least = int(least_costs(boxes, others, "plain").max(initial=0))
        return least, int(max(lengths.max(initial=0) for lengths in self.lengths))

    @property
    def _flipped(self) -> bool:
        """Whether the columns choose among the rows, because there are more of them."""
        return len(self.columns) > len(self.rows)

    def _masses(self, buffered: bool) -> tuple[IntArray, IntArray]:
        """The masses of those that choose and of those that are chosen, with that of the buffer."""
        a = np.append(self.a, self.unmatched) if buffered else self.a
        return (self.b, a) if self._flipped else (a, self.b)


def shared_distances(pair: Pair) -> EditDistances | None:
    """Return the distances of all variants of both logs, where two measures bound their transports by them; None where
    the optimum is found, and where memory would hold them once only."""
    original, released = pair.variants
    pairs = len(original) * len(released)
    if pair.exact or not EXACT_PAIRS < pairs <= _SHARED:
        return None
    rows, columns = sorted(as_strings(original.sequences, released.sequences), key=len, reverse=True)
    return edit_distances(rows, columns, progress=pair.progress)


# A cheap plan and a number that no plan costs less than, by prices at which the rows choose among the columns.
#
# For any prices v of the columns
#
#     sum_j b_j v_j + sum_i a_i min_j (c_ij - v_j)   <=   the cost of every plan,
#
# whatever way they were found. Each round, a column that more rows choose than it has room for becomes dearer and one
# that fewer choose becomes cheaper, by the logarithm of the two. The first rounds look at a sample of the rows and
# columns; the last ones look at all pairs, which makes the bound hold. Then every row gets its column as long as
# there is room, the nearest first, and what is left over is auctioned again.

_SAMPLED_PAIRS = 6_000_000
"""Pairs that the first rounds look at."""
_ROUNDS, _LAST_ROUNDS = 12, 3
_FADING = 0.8
"""Each step as a part of the one before; the first is the mean cost of the nearest column."""
_TIMES = 40
"""What is left after so many auctions is laid out in order."""
_MATRIX_BLOCK = 1 << 19
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
    best: FloatArray
    """What the chosen column costs each row, less its price: the least."""
    rounding: float
    """How much a least cost may be too large by the precision of the arithmetic."""

    def lower(self, a: npt.NDArray[np.number], b: npt.NDArray[np.number]) -> float:
        """Return the number that no plan between these masses costs less than."""
        return float(b @ self.prices) + float(a @ self.best) - self.rounding * float(a.sum())


def auction_off(a: IntArray, b: IntArray, costs: Costs, progress: Progress | None = None) -> tuple[Flows, Bids]:
    """Return a plan that moves the masses ``a`` (one a row) to ``b`` (one a column), and the bids that bound it."""
    rows, columns, first = np.arange(len(a)), np.arange(len(b)), None
    arcs: list[tuple[IntArray, IntArray, IntArray]] = []
    while len(rows):
        prices, step = _sampled(a, b, costs)
        bids = climb(a, b, costs, prices, step, 1 if first else _LAST_ROUNDS, progress)
        first = first or bids
        if len(arcs) == _TIMES:
            i, j, mass = north_west(a, b)
            arcs.append((rows[i], columns[j], mass))
            break
        mass = _room(a, b, bids)
        arcs.append((rows[mass > 0], columns[bids.chosen[mass > 0]], mass[mass > 0]))
        a = a - mass
        b = b - np.bincount(bids.chosen, weights=mass, minlength=len(b)).astype(np.int64)
        some, others = np.flatnonzero(a), np.flatnonzero(b)
        assert costs.among is not None
        costs, a, b, rows, columns = costs.among(some, others), a[some], b[others], rows[some], columns[others]
    assert first is not None, "there is something to move"
    return Flows(*(np.concatenate(part) for part in zip(*arcs, strict=True))), first


def climb(
    a: npt.NDArray[np.number],
    b: npt.NDArray[np.number],
    costs: Costs,
    prices: FloatArray,
    step: float,
    rounds: int,
    progress: Progress | None = None,
) -> Bids:
    """Return the bids of the best of so many rounds, from these prices on."""
    best = bids = _bids(costs, prices)
    for done in range(1, rounds):
        if progress is not None:
            progress("Comparing variants", done / rounds)
        wanted = np.bincount(bids.chosen, weights=a, minlength=len(b))
        bids = _bids(costs, bids.prices + step * np.clip(np.log(1.1 * b / (wanted + 0.1 * b)), -1.5, 1.5))
        step *= _FADING
        if bids.lower(a, b) > best.lower(a, b):
            best = bids
    return best


def _bids(costs: Costs, prices: FloatArray) -> Bids:
    """The column that each row chooses at these prices."""
    rows, columns = costs.shape
    narrow = prices.astype(np.float32)
    chosen, best = np.empty(rows, dtype=np.int64), np.empty(rows)
    step = min(rows, max(1, _MATRIX_BLOCK // columns))
    block: AnyFloatArray = np.empty((step, columns), dtype=np.float32)
    for start in range(0, rows, step):
        w = block[: rows - start]
        costs.fill(start, w)
        w -= narrow
        index = w.argmin(axis=1)
        chosen[start : start + step] = index
        best[start : start + step] = w[np.arange(len(w)), index]
    largest = float(np.abs(narrow).max()) + float(np.abs(best).max())
    return Bids(narrow.astype(float), chosen, best, 2 * _EPSILON * largest)


def _sampled(a: IntArray, b: IntArray, costs: Costs) -> tuple[FloatArray, float]:
    """Prices by a sample of the rows, and of the columns if there are many; and the next step."""
    rows, columns = costs.shape
    times = max(1.0, rows * columns / _SAMPLED_PAIRS)
    both = columns * columns > 4 * _SAMPLED_PAIRS
    # Each stands for those up to the next; the last, which may be a buffer, for itself.
    i, j = (
        np.unique(np.append(np.arange(0, count - 1, part).astype(np.int64), count - 1))
        for count, part in ((rows, times**0.5 if both else times), (columns, times**0.5 if both else 1.0))
    )
    assert costs.among is not None
    some = costs if times == 1.0 else costs.among(i, j)
    near = _bids(some, np.zeros(len(j)))
    share, there = np.add.reduceat(a, i) / a.sum(), np.add.reduceat(b, j) / b.sum()
    scale = max(float(share @ near.best), 1e-9)
    bids = climb(share, there, some, near.prices, scale, _ROUNDS)
    if len(j) == columns:
        return bids.prices, scale / 10
    return _extended(costs.among(i, np.arange(columns)), bids.best), scale / 10


def _extended(costs: Costs, best: FloatArray) -> FloatArray:
    """The highest prices of all columns at which no row of the sample does better than it does."""
    rows, columns = costs.shape
    prices = np.full(columns, np.inf)
    step = max(1, _MATRIX_BLOCK // columns)
    for start in range(0, rows, step):
        block = np.empty((min(step, rows - start), columns), dtype=np.float32)
        costs.fill(start, block)
        np.minimum(prices, (block - best[start : start + step, None]).min(axis=0), out=prices)
    return prices


def _room(a: IntArray, b: IntArray, bids: Bids) -> IntArray:
    """How much of each row its column has room for, the nearest rows first."""
    order = np.lexsort((bids.best + bids.prices[bids.chosen], bids.chosen))
    mass, column = a[order], bids.chosen[order]
    before = np.cumsum(mass) - mass
    starts = np.flatnonzero(np.diff(column, prepend=-1))
    before -= np.repeat(before[starts], np.diff(starts, append=len(column)))
    taken = np.empty_like(a)
    taken[order] = np.clip(b[column] - before, 0, mass)
    return taken


# How far the nearest sequence of another list is at least, for millions of sequences at once.
#
# Two sequences at Levenshtein distance d or less become equal when at most d activities are deleted from each (each
# edit is undone by deleting at most one activity on either side). So sequences whose deletion neighbourhoods do not
# meet are further apart. Neighbourhoods are compared by 64-bit hashes; an accidental meeting makes the bound smaller,
# not wrong. (F. Bocek, E. Hunt, B. Stiller, "Fast similarity search in large dictionaries", 2007.)

HashArray = npt.NDArray[np.uint64]

MOST_DELETED = 2
"""Activities deleted from a sequence: distances up to here are distinguished, and what is further is one more."""
_LONGEST = 48
"""Of longer sequences one activity is deleted at most: they would have too many pairs of activities."""
_HASHES = 1 << 22
"""Hashes of the other list that are held at once."""


def least_distances(sequences: Sequences, others: Sequences) -> tuple[IntArray, IntArray]:
    """For each sequence a number that no distance to any of the others is below, 0 to 3; and for each of the others.

    Both lists have the same labels.
    """
    bounds = [_unknown(sequences), _unknown(others)]
    sides = [_by_length(s) for s in (sequences, others)]
    words = np.random.default_rng(0).integers(1, 2**63, size=max(1, len(sequences.labels)), dtype=np.uint64)
    lengths = sorted({length - deleted for side in sides for length in side for deleted in range(MOST_DELETED + 1)})
    for length in lengths:
        if length < 0:
            continue
        parts = 1 + sum(_size(side, length) for side in sides) // _HASHES
        for part in range(parts):
            found = [
                _hashes(s, side, length, words, part, parts) for s, side in zip((sequences, others), sides, strict=True)
            ]
            for distance in range(MOST_DELETED, -1, -1):
                (keys, owner), (others_keys, others_owner) = (_up_to(side, distance) for side in found)
                shared = np.intersect1d(keys, others_keys)
                _lower(bounds[0], owner[_among(keys, shared)], distance)
                _lower(bounds[1], others_owner[_among(others_keys, shared)], distance)
    return bounds[0], bounds[1]


def _lower(bound: IntArray, members: IntArray, distance: int) -> None:
    bound[members] = np.minimum(bound[members], distance)


def _unknown(sequences: Sequences) -> IntArray:
    """What holds where no neighbourhoods meet: less near sequences of which two activities are not deleted."""
    near_longest = sequences.lengths > _LONGEST - MOST_DELETED
    return np.where(near_longest, MOST_DELETED, MOST_DELETED + 1).astype(np.int64)


def _by_length(sequences: Sequences) -> dict[int, IntArray]:
    lengths = sequences.lengths
    order = np.argsort(lengths, kind="stable")
    found, first = np.unique(lengths[order], return_index=True)
    return dict(zip(found.tolist(), np.split(order, first[1:]), strict=True))


def _deletions(length: int) -> int:
    return MOST_DELETED if length <= _LONGEST else 1


def _size(side: dict[int, IntArray], length: int) -> int:
    """How many hashes sequences of this length after deletions have, about."""
    return sum(
        len(side.get(length + deleted, ())) * (length + deleted) ** deleted
        for deleted in range(MOST_DELETED + 1)
        if deleted <= _deletions(length + deleted)
    )


def _hashes(
    sequences: Sequences, side: dict[int, IntArray], length: int, words: HashArray, part: int, parts: int
) -> list[tuple[HashArray, IntArray]]:
    """For no, one and two deletions: the hashes of what is left, where that has this length, and whose they are."""
    found = []
    for deleted in range(MOST_DELETED + 1):
        before = length + deleted
        members = side.get(before)
        if members is None or deleted > _deletions(before):
            found.append((np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int64)))
            continue
        keys, owners = [], []
        step = max(1, (1 << 20) // max(1, before**deleted))
        for start in range(0, len(members), step):
            chosen = members[start : start + step]
            codes = sequences.codes[sequences.offsets[chosen][:, None] + np.arange(before)]
            hashed = _without(words[codes], deleted)
            owner = np.repeat(chosen, hashed.shape[1])
            flat = hashed.ravel()
            if parts > 1:
                kept = (flat >> np.uint64(20)) % np.uint64(parts) == part
                flat, owner = flat[kept], owner[kept]
            keys.append(flat)
            owners.append(owner)
        found.append((np.concatenate(keys), np.concatenate(owners)))
    return found


def _up_to(found: list[tuple[HashArray, IntArray]], deleted: int) -> tuple[HashArray, IntArray]:
    keys, owners = zip(*found[: deleted + 1], strict=True)
    return np.concatenate(keys), np.concatenate(owners)


def _among(keys: HashArray, shared: HashArray) -> BoolArray:
    """Which keys are among the shared ones, which are sorted."""
    if not len(shared):
        return np.zeros(len(keys), dtype=np.bool_)
    place = np.minimum(np.searchsorted(shared, keys), len(shared) - 1)
    return np.asarray(shared[place] == keys)


def _without(words: HashArray, deleted: int) -> HashArray:
    """Hashes of each row without any ``deleted`` of its words: sum of word times odd**place, modulo 2**64."""
    rows, length = words.shape
    odd = 0x9E3779B97F4A7C15
    powers = np.array([pow(odd, i, 2**64) for i in range(length)], dtype=np.uint64)
    sums = np.zeros((rows, length + 1), dtype=np.uint64)
    np.cumsum(words * powers, axis=1, out=sums[:, 1:])
    if deleted == 0:
        return sums[:, -1:]
    # What stands after a deleted word moves down by one place.
    once = pow(odd, -1, 2**64)
    back, twice = np.uint64(once), np.uint64(once * once % 2**64)
    if deleted == 1:
        return sums[:, :-1] + (sums[:, -1:] - sums[:, 1:]) * back
    first, second = np.triu_indices(length, 1)
    middle = (sums[:, second] - sums[:, first + 1]) * back
    return np.asarray(sums[:, first] + middle + (sums[:, -1:] - sums[:, second + 1]) * twice, dtype=np.uint64)


# A lower bound of the transport between two lists of sequences that are too long to compare pair by pair.
#
# Sequences are put into boxes: what is known of those in one box is between which numbers their lengths lie, how
# often each activity occurs in them, and how far their nearest partner is at least
# (:mod:`veilog.measures.similarity._bounds`). A cost that no pair of two boxes undercuts, and all masses of a
# box taken together, make a small transport problem, which is solved with a certificate. Every plan between the
# sequences is a plan between their boxes that costs no more there, so the optimum of the small problem is a lower
# bound of the optimum, whichever boxes were chosen.
#
# Edits that turn s into t delete or replace each of the P activities that s has too many of, and insert or put in
# place each of the N that it has too few of, so the Levenshtein distance is at least max(P, N); and |s| - |t| = P -
# N.

_BOXES = 1024
_GROUPS = 48
"""Most activities that are counted each by itself; rarer ones share counts."""
_SAMPLED_TRACES = 4096
"""Members that decide how a box is cut: any cut is right, some are better."""
_TOLERANCE = 1e-4
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Boxes:
    """One side's boxes: a row each for the least and the largest features (counts, length, least distance)."""

    low: IntArray
    high: IntArray
    of: IntArray
    """The box of each sequence."""

    def __len__(self) -> int:
        return len(self.low)


def boxed(sequences: Sequences, others: Sequences, masses: IntArray, other_masses: IntArray) -> tuple[Boxes, Boxes]:
    """Both lists (with the same labels) in boxes that are cut in the same places."""
    nearest = least_distances(sequences, others)
    groups = _groups(sequences, others)
    features = np.concatenate(
        [_features(s, groups, near) for s, near in zip((sequences, others), nearest, strict=True)]
    )
    share = np.concatenate([masses / max(1, int(masses.sum())), other_masses / max(1, int(other_masses.sum()))])
    leaves = _cut(features, share)
    box = np.empty(len(features), dtype=np.int64)
    for number, members in enumerate(leaves):
        # A far sequence in a box with near ones would count as near.
        box[members] = number * (MOST_DELETED + 2) + features[members, -1]
    count = len(sequences)
    return _side(features[:count], box[:count]), _side(features[count:], box[count:])


def lower_bound(
    boxes: Boxes,
    others: Boxes,
    masses: IntArray,
    other_masses: IntArray,
    kind: CostKind,
    *,
    buffer: tuple[int, IntArray] | None = None,
    progress: Callable[[str, float | None], None] | None = None,
) -> float:
    """A number that no plan between the sequences costs less than.

    ``masses`` and ``other_masses`` are those of the sequences. ``buffer`` is a mass that is supplied beside them, and
    what it costs at least in each of the other boxes.
    """
    a = np.zeros(len(boxes), dtype=np.int64)
    np.add.at(a, boxes.of, masses)
    b = np.zeros(len(others), dtype=np.int64)
    np.add.at(b, others.of, other_masses)
    costs = least_costs(boxes, others, kind)
    if buffer is not None and buffer[0]:
        a, costs = np.append(a, buffer[0]), np.vstack([costs, buffer[1]])
    has, had = a > 0, b > 0
    a, b, costs = a[has], b[had], costs[np.ix_(has, had)]
    if not len(a):
        return 0.0
    largest = float(costs.max(initial=0.0))
    plan = transport(a, b, matrix_costs(costs), tolerance=_TOLERANCE * max(largest, 1e-9), progress=progress)
    return max(0.0, plan.lower - _ROUNDING * largest * float(a.sum()))


def _groups(sequences: Sequences, others: Sequences) -> IntArray:
    """For each activity the feature that counts it: the frequent ones have one each."""
    labels = len(sequences.labels)
    often = sum(np.bincount(s.codes, minlength=labels) for s in (sequences, others))
    rank = np.empty(labels, dtype=np.int64)
    rank[np.argsort(-often, kind="stable")] = np.arange(labels)
    return np.minimum(rank, _GROUPS - 1)


def _features(sequences: Sequences, groups: IntArray, nearest: IntArray) -> npt.NDArray[Any]:
    """A row a sequence: the counts of the groups of activities, the length, the distance to the nearest partner."""
    width = int(groups.max(initial=0)) + 1
    kind = np.uint16 if int(sequences.lengths.max(initial=0)) < 1 << 16 else np.int64
    table = np.zeros((len(sequences), width + 2), dtype=kind)
    step = 1 << 16
    for start in range(0, len(sequences), step):
        part = sequences.rows(start, min(start + step, len(sequences)))
        owner = np.repeat(np.arange(len(part)), part.lengths)
        cells = np.bincount(owner * width + groups[part.codes], minlength=len(part) * width)
        table[start : start + len(part), :width] = cells.reshape(len(part), width)
    table[:, width] = sequences.lengths
    table[:, width + 1] = nearest
    return table


def _cut(features: npt.NDArray[Any], share: FloatArray) -> list[IntArray]:
    """Members of the boxes: again and again the box with most mass and spread is cut in two."""

    def judged(members: IntArray) -> tuple[float, int, float]:
        some = features[members[:: max(1, len(members) // _SAMPLED_TRACES)]].astype(float)
        variance = some.var(axis=0)
        dimension = int(variance.argmax())
        return float(share[members].sum() * np.sqrt(variance.sum())), dimension, float(some[:, dimension].mean())

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


def _side(features: npt.NDArray[Any], box: IntArray) -> Boxes:
    """The boxes that one side has members in, each drawn in to these."""
    found, of = np.unique(box, return_inverse=True)
    if not len(found):
        empty = np.zeros((0, features.shape[1]), dtype=np.int64)
        return Boxes(empty, empty, of)
    order = np.argsort(of, kind="stable")
    starts = np.searchsorted(of[order], np.arange(len(found)))
    low, high = (f.reduceat(features[order], starts, axis=0).astype(np.int64) for f in (np.minimum, np.maximum))
    return Boxes(low, high, of)


def least_costs(boxes: Boxes, others: Boxes, kind: CostKind) -> FloatArray:
    """What no pair of two boxes costs less than."""
    low, high, low_, high_ = boxes.low, boxes.high, others.low, others.high
    more = np.zeros((len(boxes), len(others)), dtype=np.int64)
    fewer = np.zeros_like(more)
    for feature in range(low.shape[1] - 2):
        more += np.maximum(low[:, feature, None] - high_[None, :, feature], 0)
        fewer += np.maximum(low_[None, :, feature] - high[:, feature, None], 0)
    longer = low[:, -2, None] - high_[None, :, -2]
    shorter = low_[None, :, -2] - high[:, -2, None]
    edits = np.maximum.reduce([more, fewer, fewer + longer, more + shorter])
    edits = np.maximum.reduce([edits, np.broadcast_to(low[:, -1, None], edits.shape)])
    edits = np.maximum(edits, low_[None, :, -1])
    costs = cost_of(kind, edits, high[:, -2, None], high_[None, :, -2])
    if kind == "plain":
        return costs
    # A difference of lengths alone costs 1 - shorter / longer in both.
    by_length = np.maximum(_shorter(low, high_), _shorter(low_, high).T)
    return np.asarray(np.maximum(costs, by_length))


def _shorter(low: IntArray, high: IntArray) -> FloatArray:
    """1 - shorter / longer, where every length of a box of the first side is above every one of the second."""
    longer = low[:, -2, None]
    return np.asarray(np.where(longer > 0, 1 - high[None, :, -2] / np.maximum(longer, 1), 0.0))


# A cheap plan between two lists of sequences that are too long to compare pair by pair; its cost is an upper bound.
#
# Both lists are put in order, so that like stands near like, and the mass of one is laid along that of the other. In
# each block of that plan the same masses are then moved as an auction moves them, if that is cheaper. It stays a
# plan: its cost, summed exactly, is what the optimum cannot exceed.

_BLOCK = 1 << 13
"""Arcs of a block: about half as many sequences a side."""


def plan_in_blocks(
    rows: Strings,
    columns: Strings,
    a: IntArray,
    b: IntArray,
    kind: CostKind,
    buffer: IntArray | None = None,
    progress: Progress | None = None,
) -> Flows:
    """A plan that moves ``a`` to ``b``. What ``b`` has more comes from a buffer, at the costs given for each column."""
    flows = _in_order(rows, columns, a, b)
    order = np.argsort(_places(columns)[flows.columns], kind="stable")
    parts = []
    for start in range(0, len(order), _BLOCK):
        chosen = order[start : start + _BLOCK]
        part = Flows(flows.rows[chosen], flows.columns[chosen], flows.mass[chosen])
        parts.append(_improved(part, rows, columns, kind, buffer))
        if progress is not None:
            progress("Matching many variants in blocks", start / len(order))
    return Flows(*(np.concatenate([getattr(p, name) for p in parts]) for name in ("rows", "columns", "mass")))


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


def _places(keys: list[object]) -> IntArray:
    order = sorted(range(len(keys)), key=keys.__getitem__)  # type: ignore[arg-type]
    place = np.empty(len(keys), dtype=np.int64)
    place[order] = np.arange(len(keys))
    return place


def _in_order(rows: Strings, columns: Strings, a: IntArray, b: IntArray) -> Flows:
    """The mass of the rows laid along that of the columns, both in the order of their sequences."""
    by_row, by_column = np.argsort(_places(rows)), np.argsort(_places(columns))
    ready = b[by_column]
    from_buffer = int(b.sum()) - int(a.sum())
    buffered = np.zeros(len(ready), dtype=np.int64)
    if from_buffer:
        # The buffer supplies the same share of every stretch of columns.
        total, reached, before = int(b.sum()), 0, 0
        for place, mass in enumerate(ready.tolist()):
            reached += mass
            share = reached * from_buffer // total
            buffered[place], before = share - before, share
    i, j, mass = north_west(a[by_row], ready - buffered)
    i, j = by_row[i], by_column[j]
    held = np.flatnonzero(buffered)
    return Flows(
        np.append(i, np.full(len(held), len(rows))), np.append(j, by_column[held]), np.append(mass, buffered[held])
    )


def _improved(part: Flows, rows: Strings, columns: Strings, kind: CostKind, buffer: IntArray | None) -> Flows:
    """The same masses of the same rows moved to the same columns, as an auction does or as they are."""
    i, row = np.unique(part.rows, return_inverse=True)
    j, column = np.unique(part.columns, return_inverse=True)
    real = i[i < len(rows)].tolist()
    distances = edit_distances([rows[k] for k in real], [columns[k] for k in j.tolist()])
    costs = edit_costs(distances, kind, buffer[j] if buffer is not None and len(real) < len(i) else None)
    a = np.bincount(row, weights=part.mass, minlength=len(i)).astype(np.int64)
    b = np.bincount(column, weights=part.mass, minlength=len(j)).astype(np.int64)
    plan, _ = auction_off(a, b, costs)
    if costs.pick(plan.rows, plan.columns) @ plan.mass >= costs.pick(row, column) @ part.mass:
        return part
    return Flows(i[plan.rows], j[plan.columns], plan.mass)
