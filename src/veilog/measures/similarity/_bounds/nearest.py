"""How far the nearest sequence of another list is at least, for millions of sequences at once.

Two sequences at Levenshtein distance d or less become equal when at most d activities are deleted from each (each edit
is undone by deleting at most one activity on either side). So sequences whose deletion neighbourhoods do not meet are
further apart. Neighbourhoods are compared by 64-bit hashes; an accidental meeting makes the bound smaller, not wrong.
(F. Bocek, E. Hunt, B. Stiller, "Fast similarity search in large dictionaries", 2007.)
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from veilog._typing import BoolArray, IntArray
from veilog.logs.variants import Sequences

HashArray = npt.NDArray[np.uint64]

MOST_DELETED = 2
"""Activities deleted from a sequence: distances up to here are told apart, and what is further is one more."""
_LONGEST = 48
"""Of longer sequences one activity is deleted at most: they would have too many pairs of activities."""
_HASHES = 1 << 22
"""Hashes of the other list that are held at once."""


def least_distances(sequences: Sequences, others: Sequences) -> tuple[IntArray, IntArray]:
    """For each sequence a number that no distance to any of the others is below, 0 to 3; and for each of the others.

    Both lists have the same labels.
    """
    bounds = [_unknown(sequences), _unknown(others)]
    sides = [_by_length(s) for s in (sequences, others)]
    words = np.random.default_rng(0).integers(1, 2**63, size=max(1, len(sequences.labels)), dtype=np.uint64)
    lengths = sorted({length - deleted for side in sides for length in side for deleted in range(MOST_DELETED + 1)})
    for length in lengths:
        if length < 0:
            continue
        parts = 1 + sum(_size(side, length) for side in sides) // _HASHES
        for part in range(parts):
            found = [
                _hashes(s, side, length, words, part, parts) for s, side in zip((sequences, others), sides, strict=True)
            ]
            for distance in range(MOST_DELETED, -1, -1):
                (keys, owner), (others_keys, others_owner) = (_up_to(side, distance) for side in found)
                shared = np.intersect1d(keys, others_keys)
                _lower(bounds[0], owner[_among(keys, shared)], distance)
                _lower(bounds[1], others_owner[_among(others_keys, shared)], distance)
    return bounds[0], bounds[1]


def _lower(bound: IntArray, members: IntArray, distance: int) -> None:
    bound[members] = np.minimum(bound[members], distance)


def _unknown(sequences: Sequences) -> IntArray:
    """What holds where no neighbourhoods meet: less near sequences of which two activities are not deleted."""
    near_longest = sequences.lengths > _LONGEST - MOST_DELETED
    return np.where(near_longest, MOST_DELETED, MOST_DELETED + 1).astype(np.int64)


def _by_length(sequences: Sequences) -> dict[int, IntArray]:
    lengths = sequences.lengths
    order = np.argsort(lengths, kind="stable")
    found, first = np.unique(lengths[order], return_index=True)
    return dict(zip(found.tolist(), np.split(order, first[1:]), strict=True))


def _deletions(length: int) -> int:
    return MOST_DELETED if length <= _LONGEST else 1


def _size(side: dict[int, IntArray], length: int) -> int:
    """How many hashes sequences of this length after deletions have, about."""
    return sum(
        len(side.get(length + deleted, ())) * (length + deleted) ** deleted
        for deleted in range(MOST_DELETED + 1)
        if deleted <= _deletions(length + deleted)
    )


def _hashes(
    sequences: Sequences, side: dict[int, IntArray], length: int, words: HashArray, part: int, parts: int
) -> list[tuple[HashArray, IntArray]]:
    """For no, one and two deletions: the hashes of what is left, where that has this length, and whose they are."""
    found = []
    for deleted in range(MOST_DELETED + 1):
        before = length + deleted
        members = side.get(before)
        if members is None or deleted > _deletions(before):
            found.append((np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int64)))
            continue
        keys, owners = [], []
        step = max(1, (1 << 20) // max(1, before**deleted))
        for start in range(0, len(members), step):
            chosen = members[start : start + step]
            codes = sequences.codes[sequences.offsets[chosen][:, None] + np.arange(before)]
            hashed = _without(words[codes], deleted)
            owner = np.repeat(chosen, hashed.shape[1])
            flat = hashed.ravel()
            if parts > 1:
                kept = (flat >> np.uint64(20)) % np.uint64(parts) == part
                flat, owner = flat[kept], owner[kept]
            keys.append(flat)
            owners.append(owner)
        found.append((np.concatenate(keys), np.concatenate(owners)))
    return found


def _up_to(found: list[tuple[HashArray, IntArray]], deleted: int) -> tuple[HashArray, IntArray]:
    keys, owners = zip(*found[: deleted + 1], strict=True)
    return np.concatenate(keys), np.concatenate(owners)


def _among(keys: HashArray, shared: HashArray) -> BoolArray:
    """Which keys are among the shared ones, which are sorted."""
    if not len(shared):
        return np.zeros(len(keys), dtype=np.bool_)
    place = np.minimum(np.searchsorted(shared, keys), len(shared) - 1)
    return np.asarray(shared[place] == keys)


def _without(words: HashArray, deleted: int) -> HashArray:
    """Hashes of each row without any ``deleted`` of its words: sum of word times odd**place, modulo 2**64."""
    rows, length = words.shape
    odd = 0x9E3779B97F4A7C15
    powers = np.array([pow(odd, i, 2**64) for i in range(length)], dtype=np.uint64)
    sums = np.zeros((rows, length + 1), dtype=np.uint64)
    np.cumsum(words * powers, axis=1, out=sums[:, 1:])
    if deleted == 0:
        return sums[:, -1:]
    # What stands after a deleted word moves down by one place.
    once = pow(odd, -1, 2**64)
    back, twice = np.uint64(once), np.uint64(once * once % 2**64)
    if deleted == 1:
        return sums[:, :-1] + (sums[:, -1:] - sums[:, 1:]) * back
    first, second = np.triu_indices(length, 1)
    middle = (sums[:, second] - sums[:, first + 1]) * back
    return np.asarray(sums[:, first] + middle + (sums[:, -1:] - sums[:, second + 1]) * twice, dtype=np.uint64)
