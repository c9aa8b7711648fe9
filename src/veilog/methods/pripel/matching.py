"""Matching released traces with traces of a log, one to one, by Levenshtein distance.

Both sides are multisets of variants, and equal variants are matched first. For an optimal matching that is no loss: if
a released x goes to y while an equal raw x goes to z (or to nobody), sending x to x and z to y costs at most as much,
by the triangle inequality. What is left is an assignment of traces where few are left, and a transport between variants
where traces are many and variants are few; both are exact.

Where one side has more traces than the other, what is over is matched with nobody, wherever that is cheapest.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cdist
from scipy.optimize import linear_sum_assignment

from veilog._typing import IntArray
from veilog.errors import SolverError
from veilog.logs.variants import Variants
from veilog.messages import Message

How = Literal["optimal", "greedy"]

MOST_ASSIGNED = 110_000_000
"""Cells of the largest assignment of traces: 10,500 a side, 0.9 GB."""
MOST_TRANSPORTED = 12_000_000
"""Cells of the largest transport between variants."""
_BLOCK = 4_000_000


@dataclass(frozen=True, eq=False)
class Matching:
    """``numbers[i]`` traces of the released variant ``released[i]`` are matched with the raw variant ``original[i]``.

    Each pair occurs at most once.
    """

    released: IntArray
    original: IntArray
    numbers: IntArray


Found = tuple[IntArray, IntArray, IntArray]
Texts = list[tuple[int, ...]]


def match(released: Variants, original: Variants, how: How, remark: Callable[[Message], None]) -> Matching:
    """As many pairs of traces as the smaller side has, with the least total distance (optimal) or, variant by variant
    from the most frequent on, with the nearest variant that is left (greedy)."""
    a, b, texts_a, texts_b = released.counts.copy(), original.counts.copy(), *_coded(released, original)
    pairs: list[tuple[int, int, int]] = []
    place = {text: j for j, text in enumerate(texts_b)}
    for i, text in enumerate(texts_a):
        j = place.get(text)
        if j is not None:
            number = int(min(a[i], b[j]))
            pairs.append((i, j, number))
            a[i] -= number
            b[j] -= number
    equal = np.array(pairs, dtype=np.int64).reshape(-1, 3)
    rows, columns = np.flatnonzero(a), np.flatnonzero(b)
    left_a, left_b = [texts_a[i] for i in rows.tolist()], [texts_b[j] for j in columns.tolist()]
    a, b = a[rows], b[columns]
    if not len(a) or not len(b):
        return Matching(*equal.T)
    match_rest = _greedy
    if how == "optimal" and _is_small(a, b):
        match_rest = _assigned
    elif how == "optimal" and len(a) * len(b) <= MOST_TRANSPORTED:
        match_rest = _transported
    elif how == "optimal":
        remark(Message("pripel-matching-greedy", sum=a.sum(), number=len(a)))
    more_a, more_b, more = match_rest(left_a, left_b, a, b)
    return Matching(*np.concatenate([equal, np.column_stack([rows[more_a], columns[more_b], more])]).T)


def _coded(released: Variants, original: Variants) -> tuple[Texts, Texts]:
    """Both sides as tuples of codes of one coding."""
    coding = {label: code for code, label in enumerate(original.labels)}
    recode = np.array([coding.setdefault(label, len(coding)) for label in released.labels], dtype=np.int64)
    codes = recode[released.codes].tolist() if len(released.codes) else []
    bounds = released.offsets.tolist()
    return [tuple(codes[x:y]) for x, y in itertools.pairwise(bounds)], original.sequences.code_tuples()


def _is_small(a: IntArray, b: IntArray) -> bool:
    """Whether assigning single traces is possible and not much larger than the transport between variants."""
    cells, variants = int(a.sum()) * int(b.sum()), len(a) * len(b)
    return cells <= MOST_ASSIGNED and (cells <= 8 * variants or variants > MOST_TRANSPORTED)


def _assigned(left_a: Texts, left_b: Texts, a: IntArray, b: IntArray) -> Found:
    """The least assignment of traces (Crouse, "On implementing 2D rectangular assignment algorithms", 2016)."""
    if a.sum() > b.sum():  # the solver copies a matrix that has more rows than columns
        j, i, numbers = _assigned(left_b, left_a, b, a)
        return i, j, numbers
    distances = cdist(left_a, left_b, scorer=Levenshtein.distance, dtype=np.uint16, workers=-1)
    traces_a, traces_b = np.repeat(np.arange(len(a)), a), np.repeat(np.arange(len(b)), b)
    costs = np.empty((len(traces_a), len(traces_b)))
    for row, variant in enumerate(traces_a.tolist()):
        costs[row] = distances[variant][traces_b]
    rows, columns = linear_sum_assignment(costs)
    cells, numbers = np.unique(traces_a[rows] * len(b) + traces_b[columns], return_counts=True)
    return cells // len(b), cells % len(b), numbers.astype(np.int64)


def _transported(left_a: Texts, left_b: Texts, a: IntArray, b: IntArray) -> Found:
    """The least transport between variants; what one side has too much goes to a dummy for nothing."""
    import ot  # takes a second to import

    short = int(a.sum()) - int(b.sum())
    costs = np.zeros((len(a) + (short < 0), len(b) + (short > 0)))
    costs[: len(a), : len(b)] = cdist(left_a, left_b, scorer=Levenshtein.distance, dtype=np.uint16, workers=-1)
    supply = np.append(a, -short) if short < 0 else a
    demand = np.append(b, short) if short > 0 else b
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the solver's warnings are read off its record below
        flow, record = ot.emd(
            supply.astype(np.float64), demand.astype(np.float64), costs, numItermax=100_000_000, log=True
        )
    if record["warning"] is not None:
        raise SolverError("pripel-matching-not-found", record=record["warning"])
    flow = np.rint(flow[: len(a), : len(b)]).astype(np.int64)
    i, j = np.nonzero(flow)
    return i, j, flow[i, j]


def _greedy(left_a: Texts, left_b: Texts, a: IntArray, b: IntArray) -> Found:
    found: list[tuple[int, int, int]] = []
    left = b.copy()
    order = np.argsort(-a, kind="stable")
    step = max(1, _BLOCK // len(left_b))
    for start in range(0, len(order), step):
        block = order[start : start + step].tolist()
        texts = [left_a[i] for i in block]
        distances = cdist(texts, left_b, scorer=Levenshtein.distance, dtype=np.uint16, workers=-1)
        for i, near in zip(block, distances, strict=True):
            need = int(a[i])
            open_ = np.flatnonzero(left)
            if len(open_) == 0:
                break
            # Only as many of the nearest are sorted as can be needed.
            if need < len(open_):
                open_ = open_[np.argpartition(near[open_], need - 1)[:need]]
            for j in open_[np.argsort(near[open_], kind="stable")].tolist():
                number = min(need, int(left[j]))
                found.append((i, j, number))
                left[j] -= number
                need -= number
                if need == 0:
                    break
    pairs = np.array(found, dtype=np.int64).reshape(-1, 3)
    return pairs[:, 0], pairs[:, 1], pairs[:, 2]
