"""A lower bound of the transport between two lists of sequences that are too long to compare pair by pair.

Sequences are put into boxes: what is known of those in one box is between which numbers their lengths lie, how often
each activity occurs in them, and how far their nearest partner is at least
(:mod:`veilog.measures.similarity._bounds.nearest`).
A cost that no pair of two boxes undercuts, and all masses of a box taken together, make a small transport problem,
which is solved with a certificate. Every plan between the sequences is a plan between their boxes that costs no more
there, so the optimum of the small problem is a lower bound of the optimum, whichever boxes were chosen.

Edits that turn s into t delete or replace each of the P activities that s has too many of, and insert or put in place
each of the N that it has too few of, so the Levenshtein distance is at least max(P, N); and |s| - |t| = P - N.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from veilog._typing import FloatArray, IntArray
from veilog.logs.variants import Sequences
from veilog.measures.similarity._bounds.nearest import MOST_DELETED, least_distances
from veilog.measures.similarity.costs import CostKind, cost_of
from veilog.measures.similarity.transport import matrix_costs, transport

_BOXES = 1024
_GROUPS = 48
"""Most activities that are counted each by itself; rarer ones share counts."""
_SAMPLE = 4096
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
        some = features[members[:: max(1, len(members) // _SAMPLE)]].astype(float)
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
