"""The prefixes of a log's variants as one tree: what starts alike is looked at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from veilog._typing import IntArray
from veilog.logs.variants import Variants

__all__ = ["Prefixes"]


@dataclass(frozen=True)
class Prefixes:
    """The distinct prefixes, shorter ones first; the first is the empty one."""

    labels: tuple[str, ...]
    parents: list[int]
    """Of each the prefix without its last activity (of the empty one itself)."""
    codes: list[int]
    """Of each its last activity (of the empty one -1)."""
    passing: list[int]
    """How many cases have it."""
    ending: list[int]
    """How many cases end with it."""
    following: list[int]
    """Mask of the activities that continue it in some case."""

    @classmethod
    def of(cls, variants: Variants) -> Prefixes:
        """Return the prefixes of a log."""
        lengths, counts, size = variants.lengths, variants.counts, max(1, len(variants.labels))
        parents, codes = [np.zeros(1, np.int64)], [np.full(1, -1, np.int64)]
        at = np.zeros(len(variants), dtype=np.int64)
        passing = [np.array([counts.sum()], np.int64)]
        known = 1
        # Variants are sorted by length: those that go on are the last ones.
        for depth in range(int(lengths.max(initial=0))):
            first = int(np.searchsorted(lengths, depth, side="right"))
            steps = at[first:] * size + variants.codes[variants.offsets[first:-1] + depth]
            new, which = np.unique(steps, return_inverse=True)
            at[first:] = known + which
            known += len(new)
            parents.append(new // size)
            codes.append(new % size)
            passing.append(_summed(which, counts[first:], len(new)))
        all_parents, all_codes = np.concatenate(parents).tolist(), np.concatenate(codes).tolist()
        following = [0] * known
        for parent, code in zip(all_parents[1:], all_codes[1:], strict=True):
            following[parent] |= 1 << code
        return cls(
            variants.labels,
            all_parents,
            all_codes,
            np.concatenate(passing).tolist(),
            _summed(at, counts, known).tolist(),
            following,
        )

    def __len__(self) -> int:
        return len(self.parents)

    @property
    def going_on(self) -> list[int]:
        """How many cases go on after each."""
        return [passing - ending for passing, ending in zip(self.passing, self.ending, strict=True)]

    @property
    def cases(self) -> int:
        return self.passing[0]

    @property
    def events(self) -> int:
        return sum(self.passing) - self.passing[0]


def _summed(which: IntArray, counts: IntArray, size: int) -> IntArray:
    sums = np.zeros(size, dtype=np.int64)
    np.add.at(sums, which, counts)
    return sums
