"""Levenshtein distances between two lists of sequences, written as strings."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cdist

from veilog._typing import IntArray

Strings = list[Any]
"""Sequences as strings of one character an activity (tuples of codes where there are more activities than
characters): what the library of distances compares fastest."""

DistanceArray = npt.NDArray[np.unsignedinteger]

_SHORT = 64
"""Events that fit into one word of a processor."""
_ROWS = 256
"""Strings that are compared together with all others."""
_PARALLEL = 1 << 17
"""Distances from which on threads are worth their start."""


def lengths_of(strings: Strings) -> IntArray:
    """Return the number of activities of each sequence."""
    return np.fromiter(map(len, strings), dtype=np.int64, count=len(strings))


def edit_matrix(rows: Strings, columns: Strings, lengths: tuple[Any, Any] | None = None) -> DistanceArray:
    """Return Levenshtein distances, a row a string, in the narrowest type.

    ``lengths`` of both are counted unless they are given.

    The library compares several short rows at once with a column, but a long one by itself, which takes ten times as
    long. So a long row and a short column change places.
    """
    a, b = (lengths_of(rows), lengths_of(columns)) if lengths is None else map(np.ravel, lengths)
    dtype = np.min_scalar_type(int(max(a.max(initial=0), b.max(initial=0))))
    long, far = a > _SHORT, b > _SHORT
    if not long.any():
        return _compare(rows, columns, dtype)
    found: DistanceArray = np.empty((len(a), len(b)), dtype=dtype)
    for first in (long, ~long):
        some = [rows[k] for k in np.flatnonzero(first)]
        for second in (far, ~far):
            others = [columns[k] for k in np.flatnonzero(second)]
            swapped = first is long and second is not far
            edits = _compare(others, some, dtype).T if swapped else _compare(some, others, dtype)
            found[np.ix_(first, second)] = edits
    return found


def edits_among(strings: Strings) -> DistanceArray:
    """Return the distances of all pairs of strings, and compute each once."""
    lengths = lengths_of(strings)
    order = np.argsort(lengths, kind="stable")
    some, lengths = [strings[k] for k in order.tolist()], lengths[order]
    found: DistanceArray = np.empty((len(some), len(some)), dtype=np.min_scalar_type(int(lengths.max(initial=0))))
    for start in range(0, len(some), _ROWS):
        rows = slice(start, start + _ROWS)
        edits = edit_matrix(some[rows], some[start:], (lengths[rows], lengths[start:]))
        found[np.ix_(order[rows], order[start:])] = edits
        found[np.ix_(order[start:], order[rows])] = edits.T
    return found


def _compare(rows: Strings, columns: Strings, dtype: np.dtype[Any]) -> DistanceArray:
    if not rows or not columns:
        return np.zeros((len(rows), len(columns)), dtype=dtype)
    workers = -1 if len(rows) * len(columns) > _PARALLEL else 1
    found: DistanceArray = cdist(rows, columns, scorer=Levenshtein.distance, dtype=dtype, workers=workers)
    return found
