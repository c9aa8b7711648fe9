"""The back-off n-gram: what came most often after the last activities, as many of them as were seen often enough.

A prefix is told by its last activities and whether it has begun before them. Its longest such context with three
observations decides: for a class by what is most frequent there (of equally frequent ones the first in order), for an
amount by the median. With no context at all it is the majority predictor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from veilog._typing import BoolArray, FloatArray, IntArray
from veilog.measures.use_cases.prediction.prefixes import RECENT, PrefixTable

A = TypeVar("A", IntArray, FloatArray)

ORDER = 1 + RECENT
"""The activity that is predicted and those before it."""
FEWEST = 3
"""Observations below which a context says nothing, and a shorter one is taken."""


class NGram:
    """A predictor that knows the prefixes of the log that is used."""

    most = 1 << 62

    def __init__(self, used: PrefixTable, judged: PrefixTable, order: int = ORDER) -> None:
        recent = np.concatenate([used.recent, judged.recent]).astype(np.int64)
        contexts = [np.zeros(len(recent), dtype=np.int64)]
        for back in range(order - 1):
            keys = contexts[-1] * (used.activities + 2) + recent[:, back]
            contexts.append(np.unique(keys, return_inverse=True)[1].astype(np.int64))
        self._contexts = [(context[: len(used)], context[len(used) :]) for context in contexts]
        self._weight = used.weight

    def classes(self, targets: IntArray, rows: IntArray) -> IntArray:
        return self._backed_off(_most_frequent, targets, targets >= 0, np.full(len(rows), -1, dtype=np.int64), rows)

    def amounts(self, targets: FloatArray, rows: IntArray) -> FloatArray:
        return self._backed_off(_medians, targets, ~np.isnan(targets), np.full(len(rows), np.nan), rows)

    def _backed_off(
        self, usual: Callable[..., tuple[A, IntArray]], targets: A, learnt: BoolArray, found: A, rows: IntArray
    ) -> A:
        """Fill in what is usual among those learnt in the longest context of each row that was seen often enough."""
        for shortest_first, (used, judged) in enumerate(self._contexts):
            asked, size = judged[rows], 1 + max(used.max(initial=0), judged.max(initial=0))
            best, seen = usual(used[learnt], targets[learnt], self._weight[learnt], size)
            known = seen[asked] >= (FEWEST if shortest_first else 1)
            found[known] = best[asked[known]]
        return found


def _most_frequent(context: IntArray, target: IntArray, weight: IntArray, size: int) -> tuple[IntArray, IntArray]:
    """Return for every context the target that is most frequent in it, and how many observations it has."""
    kinds = int(target.max(initial=0)) + 1
    keys, place = np.unique(context * kinds + target, return_inverse=True)
    counts = np.bincount(place, weights=weight, minlength=len(keys))
    order = np.lexsort((-keys, counts))
    best = np.full(size, -1, dtype=np.int64)
    best[keys[order] // kinds] = keys[order] % kinds  # what is assigned last to a context has its largest count
    return best, _totals(context, weight, size)


def _medians(context: IntArray, amount: FloatArray, weight: IntArray, size: int) -> tuple[FloatArray, IntArray]:
    """Return for every context the lower median of its amounts, and how many observations it has."""
    seen = _totals(context, weight, size)
    order = np.lexsort((amount, context))
    there = np.flatnonzero(seen)
    half = np.cumsum(seen[there]) - seen[there] + (seen[there] + 1) // 2
    middle = np.full(size, np.nan)
    middle[there] = amount[order][np.searchsorted(np.cumsum(weight[order]), half)]
    return middle, seen


def _totals(context: IntArray, weight: IntArray, size: int) -> IntArray:
    return np.bincount(context, weights=weight, minlength=size).astype(np.int64)
