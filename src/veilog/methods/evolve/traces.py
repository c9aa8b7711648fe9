"""Synthetic traces in a padded matrix: sampled, mutated and compared in bulk.

They come from noisy answers and random numbers. Only queries of the curator apply :func:`strings_of` and
:func:`nearest` to cases of the log.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from veilog._counting import rank_rows
from veilog._typing import AnyArray, BoolArray, Float32Array, FloatArray, Int32Array, IntArray
from veilog.logs.edits import Strings, edit_matrix, edits_among
from veilog.logs.variants import Sequences
from veilog.methods._relations import public_codes

PAD = -1


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


def join_traces(parts: list[Traces]) -> Traces:
    width = max(p.codes.shape[1] for p in parts)
    codes = np.concatenate([widen(p.codes, width) for p in parts])
    return Traces(codes, np.concatenate([p.lengths for p in parts]))


def widen(codes: Int32Array, width: int) -> Int32Array:
    """Return the same rows with room for ``width`` events."""
    missing = width - codes.shape[1]
    return np.pad(codes, ((0, 0), (0, missing)), constant_values=PAD) if missing else codes


def distinct(traces: Traces, weights: FloatArray) -> tuple[Traces, FloatArray]:
    """Return the distinct traces, in the order of codes, and their summed weights."""
    last = int(traces.codes.max(initial=PAD)) + 1  # for PAD
    index, ranks = rank_rows(np.where(traces.codes == PAD, last, traces.codes).T.astype(np.int64), len(traces))
    sums = np.bincount(ranks, weights=weights, minlength=len(index))
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


def strings(traces: Traces) -> Strings:
    """Return strings of one character an activity, the fastest to compare."""
    return _cut_rows(*traces.in_a_row)


def strings_of(sequences: Sequences, activities: tuple[str, ...]) -> Strings:
    """Return the sequences as strings of public codes."""
    return _cut_rows(public_codes(sequences, activities)[sequences.codes], sequences.offsets)


def _cut_rows(codes: Int32Array | IntArray, bounds: IntArray) -> Strings:
    text = codes.astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")
    ends = bounds.tolist()
    return [text[i:j] for i, j in itertools.pairwise(ends)]


def distances(rows: Strings, columns: Strings) -> Float32Array:
    """Return Levenshtein distances over the longer length; two empty traces are equal."""
    a, b = _lengths(rows), _lengths(columns)
    matrix = edits_among(rows) if rows is columns else edit_matrix(rows, columns)
    # Equal ratios are equal after rounding, so ties are ties.
    ratio = np.empty(matrix.shape, dtype=np.float32)
    step = max(1, _IN_CACHE // max(1, len(columns)))
    for start in range(0, len(rows), step):
        some = slice(start, start + step)
        longer = np.maximum(np.maximum(a[some, None], b), np.float32(1))
        np.divide(matrix[some], longer, out=ratio[some], dtype=np.float32)
    return ratio


def _lengths(texts: Strings) -> Float32Array:
    return np.fromiter(map(len, texts), dtype=np.float32, count=len(texts))


def nearest(rows: Strings, columns: Strings, far: float = math.inf) -> IntArray:
    """Return the nearest column of each row by itself; their number beyond ``far``.

    Of equally near columns it is the first.
    No distance is below the difference of the lengths. So rows are compared with the columns of about their length
    first, and with others only while one may be as near as the nearest so far.
    """
    first = {text: place for place, text in reversed([*enumerate(columns)])}
    found = np.fromiter((first.get(text, -1) for text in rows), dtype=np.int64, count=len(rows))
    lengths, others = _lengths(rows), _lengths(columns)
    different = np.flatnonzero(found < 0)
    different = different[np.argsort(lengths[different], kind="stable")]
    for start in range(0, len(different), _ROWS):
        some = different[start : start + _ROWS]
        shortest, longest = lengths[some[[0, -1]]]
        apart = np.maximum(np.maximum(shortest - others, others - longest), 0)
        least = apart / np.maximum(np.maximum(others, shortest), 1)
        order = np.argsort(least, kind="stable")
        near = np.full(len(some), np.inf, dtype=np.float32)
        for begin in range(0, len(order), _COLUMNS):
            places = np.sort(order[begin : begin + _COLUMNS])
            open_ = np.flatnonzero(near >= least[order[begin]])
            if not len(open_):
                break
            matrix = distances([rows[i] for i in some[open_].tolist()], [columns[i] for i in places.tolist()])
            best = matrix.argmin(axis=1)
            smallest, place = matrix[np.arange(len(matrix)), best], places[best]
            nearer = (smallest < near[open_]) | (smallest == near[open_]) & (place < found[some[open_]])
            near[open_[nearer]], found[some[open_[nearer]]] = smallest[nearer], place[nearer]
        found[some[near > far]] = len(columns)
    return found


_IN_CACHE = 1 << 18
"""Distances that are divided together."""
_ROWS, _COLUMNS = 2048, 128
"""Traces of about the same length that are compared together."""
