"""Events of cases in rows, one case after the other: where they are, of which public activity, and which of equal ones
each is."""

from __future__ import annotations

import numpy as np

from veilog._typing import IntArray
from veilog.logs.variants import Sequences, Variants


def rows_of(offsets: IntArray, cases: IntArray) -> tuple[IntArray, IntArray]:
    """Return the rows of these cases, each as often as it is given, one after the other, and where each case begins.

    The rows of case ``i`` are ``offsets[i]`` up to ``offsets[i + 1]``.
    """
    lengths = np.diff(offsets)[cases]
    begins = np.zeros(len(cases) + 1, dtype=np.int64)
    np.cumsum(lengths, out=begins[1:])
    return np.arange(begins[-1]) + np.repeat(offsets[:-1][cases] - begins[:-1], lengths), begins


def equal_before(keys: IntArray) -> IntArray:
    """Return of each key, none of which is below 0, how many equal ones come before it."""
    order = np.argsort(keys, kind="stable")
    first = np.flatnonzero(np.diff(keys[order], prepend=-1))
    rank = np.empty(len(keys), dtype=np.int64)
    rank[order] = np.arange(len(keys)) - np.repeat(first, np.diff(first, append=len(keys)))
    return rank


def public_codes(sequences: Sequences, activities: tuple[str, ...]) -> IntArray:
    """Return the public code of each label of the sequences: its place among the activities."""
    place = {name: i for i, name in enumerate(activities)}
    return np.array([place[label] for label in sequences.labels], dtype=np.int64)


def added(answers: list[Variants]) -> Variants:
    """Return all cases of several answers as one."""
    return Variants.from_sequences(
        (sequence for answer in answers for sequence in answer.sequences),
        (count for answer in answers for count in answer.counts.tolist()),
    )
