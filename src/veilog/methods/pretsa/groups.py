"""PRETSA's prefix tree: which variants are merged into which, until every part of the tree keeps to the model.

S.A. Fahrenkrog-Petersen, H. van der Aa, M. Weidlich, "PRETSA: Event Log Sanitization for Privacy-aware Process
Discovery" (ICPM 2019). The first part of the tree (from the root on, depth first) that violates is cut off, and its
cases join the most similar remaining variant; then again, until nothing violates. Here a variant's end is a part of the
tree of its own, so that complete variants keep to k as prefixes do; the paper's tree has no ends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cdist

from veilog._typing import Int32Array, IntArray

_ROWS = 4_000
"""Variants of which all distances are kept."""


@dataclass(frozen=True, eq=False)
class SequenceTree:
    """Sequences in ascending order, and the nodes of their tree, depth first: node ``i`` is passed by the sequences
    ``low[i]`` up to ``high[i]``."""

    sequences: tuple[tuple[int, ...], ...]
    low: IntArray
    high: IntArray
    depth: IntArray
    """Length of the node's prefix; one more than its sequence's length for an end."""
    node: IntArray
    """Of each event of the sequences, one after another, its node."""
    offsets: IntArray
    """Where the events of each sequence start."""


def prefix_tree(sequences: Sequence[tuple[int, ...]]) -> SequenceTree:
    """The tree of distinct sequences in ascending order."""
    spans: list[list[int]] = []  # low, high, depth, in the order of their first event
    node: list[int] = []
    path: list[int] = []
    before: tuple[int, ...] = ()
    for i, sequence in enumerate(sequences):
        shared = shared_prefix(before, sequence)
        for number in path[shared:]:
            spans[number][1] = i
        del path[shared:]
        for depth in range(shared + 1, len(sequence) + 1):
            path.append(len(spans))
            spans.append([i, 0, depth])
        node.extend(path)
        spans.append([i, i + 1, len(sequence) + 1])
        before = sequence
    for number in path:
        spans[number][1] = len(sequences)
    table = np.array(spans, dtype=np.int64).reshape(-1, 3)
    offsets = np.cumsum([0, *(len(s) for s in sequences)], dtype=np.int64)
    return SequenceTree(
        tuple(sequences), table[:, 0], table[:, 1], table[:, 2], np.array(node, dtype=np.int64), offsets
    )


def shared_prefix(first: Sequence[int], second: Sequence[int]) -> int:
    """Length of what both begin with."""
    length = 0
    for a, b in zip(first, second, strict=False):
        if a != b:
            break
        length += 1
    return length


def merged(
    tree: SequenceTree, cases: IntArray, k: int, violating: Callable[[IntArray], int | None] | None
) -> IntArray | None:
    """Of each sequence the one that its cases join (itself, or another), or None where nothing remains.

    ``violating`` is asked once no part of the tree has fewer than k cases; it is given the goals and returns the first
    node that violates otherwise. At least k cases are needed. Ends, because what is cut off never comes back.
    """
    goal = np.arange(len(tree.sequences))
    weight = cases.astype(np.int64)

    @lru_cache(maxsize=_ROWS)
    def distances(sequence: int) -> Int32Array:
        return np.asarray(
            cdist([tree.sequences[sequence]], tree.sequences, scorer=Levenshtein.distance, dtype=np.int32)[0]
        )

    while True:
        passed = np.concatenate([[0], np.cumsum(weight)])
        number = passed[tree.high] - passed[tree.low]
        small = np.flatnonzero((number > 0) & (number < k))
        if len(small):
            bad: int | None = int(small[0])
        else:
            bad = None if violating is None else violating(goal)
        if bad is None:
            return goal
        inside = (goal >= tree.low[bad]) & (goal < tree.high[bad])
        weight[tree.low[bad] : tree.high[bad]] = 0
        remaining = np.flatnonzero(weight)
        if not len(remaining):
            return None
        by_cases = remaining[np.argsort(-weight[remaining], kind="stable")]
        for sequence in np.flatnonzero(inside).tolist():
            goal[sequence] = by_cases[np.argmin(distances(sequence)[by_cases])]
            weight[goal[sequence]] += cases[sequence]
