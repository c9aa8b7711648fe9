"""How like two logs are in one attribute, in two, and in one beside the path of its case: 0 to 1, 1 for the same.

These are the similarities of the package sdmetrics 0.32.0 (github.com/sdv-dev/SDMetrics, MIT; no code of theirs is
here), each of distributions p of the original and q of the log used in its place:

- *total variation complement* of categories: 1 - 1/2 sum |p - q|;
- *Kolmogorov-Smirnov complement* of numbers and dates: 1 - max |F_p - F_q|;
- *contingency similarity* of two categories: the first formula for their pairs of values. A number is cut at tenths
  of the original's values (quantiles), where sdmetrics takes tenths of their range: of a long tail these put nearly all
  into one part, and a lost dependence cannot be seen;
- *correlation similarity* of two numbers: 1 - |r_p - r_q| / 2 with Pearson's r.

An unknown value counts. In one attribute, the shares of unknown values are compared as well, and what is known by
itself, or a value that nearly all events lack would be kept by lacking it: the product of both. In a pair, it is one
more value, and rows that know neither are left out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from veilog._typing import AnyArray, FloatArray, IntArray
from veilog.measures.use_cases.attributes.columns import ComparedAttribute, Values

_MOST_CELLS = 1 << 22
"""Pairs of values up to which every one has a cell of its own."""


def marginal(used: Values | None, judged: Values) -> float | None:
    """Return the similarity of one attribute; None where neither log knows anything of it."""
    if used is None or not len(used.array):
        return 0.0
    shares = float(judged.known.mean()), float(used.known.mean())
    if not shares[0]:
        return 1 - shares[1] if shares[1] else None
    if not shares[1]:
        return 0.0
    return (1 - abs(shares[0] - shares[1])) * shape(used.array[used.known], judged.array[judged.known])


def shape(used: AnyArray, judged: AnyArray) -> float:
    """Return the complement of the Kolmogorov-Smirnov distance of numbers, or of total variation of categories."""
    if judged.dtype == np.float64:
        a, b = np.sort(used), np.sort(judged)
        both = np.concatenate([a, b])
        below = (np.searchsorted(part, both, side="right") / len(part) for part in (a, b))
        return 1 - float(np.abs(np.subtract(*below)).max())
    size = int(max(used.max(), judged.max())) + 1
    return 1 - float(np.abs(_shares(used, size) - _shares(judged, size)).sum()) / 2


def pair(first: ComparedAttribute, second: ComparedAttribute) -> float | None:
    """Return the similarity of two attributes of the same rows; None where the original has no two values of each."""
    if first.used is None or second.used is None:
        return 0.0
    if first.ordered and second.ordered:
        return correlation((first.used, second.used), (first.judged, second.judged))
    (judged_a, used_a, size_a), (judged_b, used_b, size_b) = first.codes, second.codes
    assert used_a is not None
    assert used_b is not None
    return contingency((used_a, used_b), (judged_a, judged_b), (size_a, size_b))


def correlation(used: tuple[Values, Values], judged: tuple[Values, Values]) -> float | None:
    """Return the correlation similarity; where a number of the release is constant it has the correlation 0."""
    wanted = _pearson(*judged)
    if wanted is None:
        return None
    if int((used[0].known & used[1].known).sum()) < 2:
        return 0.0
    return 1 - abs(wanted - (_pearson(*used) or 0.0)) / 2


def contingency(
    used: tuple[IntArray, IntArray], judged: tuple[IntArray, IntArray], sizes: tuple[int, int]
) -> float | None:
    """Return the contingency similarity of two categories with so many values, -1 where unknown."""
    a, b = (_keys(*codes, sizes[1]) for codes in (used, judged))
    if not len(b):
        return None
    if not len(a):
        return 0.0
    size = (sizes[0] + 1) * (sizes[1] + 1)
    if size > _MOST_CELLS:
        found, place = np.unique(np.concatenate([a, b]), return_inverse=True)
        a, b, size = place[: len(a)], place[len(a) :], len(found)
    return 1 - float(np.abs(_shares(a, size) - _shares(b, size)).sum()) / 2


@dataclass(frozen=True, eq=False)
class Presence:
    """The cases of a log and which activities they have: a row for every case with every one of its activities."""

    cases: int
    case: IntArray
    activity: IntArray

    def shares(self, codes: IntArray, size: int, activities: int) -> tuple[FloatArray, FloatArray]:
        """Return the shares of the cases by a category (-1: unknown) and activity, of those that have it and not."""
        cells = (codes[self.case] + 1) * activities + self.activity
        joint = np.bincount(cells, minlength=(size + 1) * activities).reshape(size + 1, activities) / self.cases
        return joint, _shares(codes + 1, size + 1)[:, None] - joint


def presence(
    used: tuple[IntArray, Presence], judged: tuple[IntArray, Presence], size: int, activities: int
) -> FloatArray:
    """Return the contingency similarities of a category of the cases with whether each activity is in the case."""
    a, b = (held.shares(codes, size, activities) for codes, held in (used, judged))
    apart: FloatArray = (np.abs(a[0] - b[0]) + np.abs(a[1] - b[1])).sum(axis=0)
    return 1 - apart / 2


def _pearson(first: Values, second: Values) -> float | None:
    known = first.known & second.known
    x, y = first.array[known], second.array[known]
    if len(x) < 2 or x.min() == x.max() or y.min() == y.max():
        return None
    x, y = x - x.mean(), y - y.mean()
    found = float(x @ y / np.sqrt((x @ x) * (y @ y)))
    return found if np.isfinite(found) else None


def _keys(a: IntArray, b: IntArray, size: int) -> IntArray:
    """Return a number for each pair of values of which at least one is known."""
    known = (a >= 0) | (b >= 0)
    return (a[known] + 1) * (size + 1) + b[known] + 1


def _shares(codes: IntArray, size: int) -> FloatArray:
    return np.bincount(codes, minlength=size) / len(codes)
