"""Synthetic traces in a padded matrix: sampled, mutated and compared in bulk.

They come from noisy answers and random numbers. Only queries of the curator apply :func:`strings_of` and
:func:`nearest` to cases of the log.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cdist

from veilog._typing import AnyArray, BoolArray, Float32Array, FloatArray, Int32Array, IntArray
from veilog.logs.variants import Sequences
from veilog.methods._relations import public_codes

Strings = list[str]

PAD = -1
_BLOCK = 1 << 22
"""Distances held at once."""
_PARALLEL = 1 << 20
"""Distances from which on threads are worth their start."""


@dataclass(frozen=True, eq=False)
class Traces:
    """Traces, one a row: codes, then PAD, in a matrix at least as wide as the longest."""

    codes: Int32Array
    lengths: IntArray

    def __len__(self) -> int:
        return len(self.lengths)

    def take(self, rows: AnyArray) -> Traces:
        return Traces(self.codes[rows], self.lengths[rows])

    @property
    def in_a_row(self) -> tuple[Int32Array, IntArray]:
        """Codes of all traces, one after the other, and the bounds of each trace."""
        used = np.arange(self.codes.shape[1]) < self.lengths[:, None]
        return self.codes[used], np.concatenate([[0], np.cumsum(self.lengths)])


def joined(parts: list[Traces]) -> Traces:
    width = max(p.codes.shape[1] for p in parts)
    codes = np.concatenate([widened(p.codes, width) for p in parts])
    return Traces(codes, np.concatenate([p.lengths for p in parts]))


def widened(codes: Int32Array, width: int) -> Int32Array:
    """Return the same rows with room for ``width`` events."""
    missing = width - codes.shape[1]
    return np.pad(codes, ((0, 0), (0, missing)), constant_values=PAD) if missing else codes


def distinct(traces: Traces, weights: FloatArray) -> tuple[Traces, FloatArray]:
    """Return the distinct traces, in the order of codes, and their summed weights."""
    keys = _keys(traces.codes)
    _, index, inverse = np.unique(keys, return_index=True, return_inverse=True)
    sums = np.bincount(inverse.ravel(), weights=weights, minlength=len(index))
    return traces.take(index), sums.astype(np.float64)


def occurrences(traces: Traces, size: int) -> IntArray:
    """Return the number of times that each activity occurs in each trace."""
    rows = np.repeat(np.arange(len(traces)), traces.lengths)
    cells = rows * size + traces.codes[traces.codes != PAD]
    often: IntArray = np.bincount(cells, minlength=len(traces) * size).reshape(len(traces), size)
    return often


def steps(traces: Traces, size: int) -> tuple[IntArray, IntArray, BoolArray]:
    """Return each trace's steps, start and end being ``size``: from, to, and a mask."""
    rows, width = traces.codes.shape
    to = np.full((rows, width + 1), size, dtype=np.int64)
    to[:, :width] = np.where(traces.codes == PAD, size, traces.codes)
    came = np.concatenate([np.full((rows, 1), size), to[:, :-1]], axis=1)
    return came, to, np.arange(width + 1) <= traces.lengths[:, None]


def _keys(codes: Int32Array) -> AnyArray:
    """Return keys that sort rows by codes, PAD last: numbers where they fit, or bytes."""
    states = int(codes.max(initial=PAD)) + 2
    if states ** codes.shape[1] < 2**62:  # whole numbers: a float overflows from some 260 columns on
        digits = np.where(codes == PAD, states - 1, codes)
        return np.asarray(digits @ states ** np.arange(codes.shape[1] - 1, -1, -1, dtype=np.int64))
    rows = np.ascontiguousarray(codes.astype(">i4"))
    return rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()


def strings(traces: Traces) -> Strings:
    """Return strings of one character an activity, the fastest to compare."""
    return _cut(*traces.in_a_row)


def strings_of(sequences: Sequences, activities: tuple[str, ...]) -> Strings:
    """Return the sequences as strings of public codes."""
    return _cut(public_codes(sequences, activities)[sequences.codes], sequences.offsets)


def _cut(codes: Int32Array | IntArray, bounds: IntArray) -> Strings:
    text = codes.astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")
    ends = bounds.tolist()
    return [text[i:j] for i, j in itertools.pairwise(ends)]


def distances(rows: Strings, columns: Strings) -> Float32Array:
    """Return Levenshtein distances over the longer length; two empty traces are equal."""
    longest = max(map(len, rows + columns), default=0)
    workers = -1 if len(rows) * len(columns) > _PARALLEL else 1
    # The library would compute half of the pairs of one list with itself, but one by one.
    matrix = cdist(rows, list(columns), scorer=Levenshtein.distance, dtype=np.min_scalar_type(longest), workers=workers)
    a = np.array([len(s) for s in rows], dtype=np.float32)
    b = np.array([len(s) for s in columns], dtype=np.float32)
    # Equal ratios are equal after rounding, so ties are ties.
    ratio = np.empty(matrix.shape, dtype=np.float32)
    step = max(1, _IN_CACHE // max(1, len(columns)))
    for start in range(0, len(rows), step):
        some = slice(start, start + step)
        longer = np.maximum(np.maximum(a[some, None], b), np.float32(1))
        np.divide(matrix[some], longer, out=ratio[some], dtype=np.float32)
    return ratio


def nearest(rows: Strings, columns: Strings, far: float = math.inf) -> IntArray:
    """Return each row's nearest column, by itself; the first of equally near ones.

    It is the number of columns where all are farther than ``far``.
    """
    step = max(1, _BLOCK // max(1, len(columns)))

    def of(some: Strings) -> IntArray:
        distance = distances(some, columns)
        return np.where(distance.min(axis=1) > far, len(columns), distance.argmin(axis=1))

    parts = [of(rows[s : s + step]) for s in range(0, len(rows), step)]
    return np.concatenate(parts).astype(np.int64) if parts else np.zeros(0, dtype=np.int64)


_IN_CACHE = 1 << 18
"""Distances that are divided together."""
