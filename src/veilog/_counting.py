"""Distinct whole numbers and rows, and how often they occur.

Dense numbers are counted in a table, others by a sort that moves nothing along. numpy's own ``unique`` hashes numbers,
or sorts them with their places, and compares rows byte by byte. That takes two to forty times as long.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from veilog._typing import BoolArray, IntArray

_MOST_EMPTY = 4
"""Possible numbers for each one that exists up to which a table is quicker than a sort."""


def count_numbers(numbers: IntArray, size: int) -> tuple[IntArray, IntArray]:
    """Return the distinct numbers, ascending, and how often each one occurs.

    The numbers are from 0 up to ``size``.
    """
    if size > _MOST_EMPTY * len(numbers):
        found, counts = np.unique(numbers, return_counts=True)
        return found, counts.astype(np.int64)
    counts = np.bincount(numbers, minlength=size)
    found = np.flatnonzero(counts)
    return found, counts[found]


def rank_numbers(numbers: IntArray, size: int) -> tuple[IntArray, IntArray, IntArray]:
    """Return the same, and between them each number's place among the distinct ones."""
    if size <= _MOST_EMPTY * len(numbers):
        found, counts = count_numbers(numbers, size)
        places = np.zeros(size, dtype=np.int64)
        places[found] = np.arange(len(found))
        return found, places[numbers], counts
    bits = len(numbers).bit_length()
    if size.bit_length() + bits > 64:
        found, ranks, counts = np.unique(numbers, return_inverse=True, return_counts=True)
        return found, ranks, counts
    # Number and place are one integer, so that integers alone are sorted.
    keys = numbers.astype(np.uint64) << np.uint64(bits)
    keys |= np.arange(len(numbers), dtype=np.uint64)
    keys.sort()
    places = (keys & np.uint64((1 << bits) - 1)).astype(np.int64)
    keys >>= np.uint64(bits)
    new = np.concatenate([np.ones(min(1, len(keys)), dtype=np.bool_), keys[1:] != keys[:-1]])
    first = np.flatnonzero(new)
    ranks = np.empty(len(keys), dtype=np.int64)
    ranks[places] = np.cumsum(new) - 1
    return keys[first].astype(np.int64), ranks, np.diff(first, append=len(keys))


def rank_rows(columns: Iterable[IntArray], rows: int) -> tuple[IntArray, IntArray]:
    """Return the first row of each distinct one, and each row's place among them.

    Distinct rows ascend by the first column, then by the next. There are so many ``rows``, and numbers are from 0.
    """
    keys, size = np.zeros(rows, dtype=np.int64), 1
    for column in columns:
        more = int(column.max(initial=0)) + 1
        if size * more >> (63 - rows.bit_length()):
            found, keys, _ = rank_numbers(keys, size)
            size = len(found)
        keys, size = keys * more + column, size * more
    found, ranks, _ = rank_numbers(keys, size)
    first = np.full(len(found), rows)
    np.minimum.at(first, ranks, np.arange(rows))
    return first, ranks


def rank_bits(table: BoolArray) -> tuple[IntArray, IntArray]:
    """Return :func:`rank_rows` of a table of bits."""
    packed = np.packbits(table, axis=1)
    words = np.ascontiguousarray(np.pad(packed, ((0, 0), (0, -packed.shape[1] % 4)))).view(">u4")
    return rank_rows(words.T.astype(np.int64), len(table))
