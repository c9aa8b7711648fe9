"""The prefixes of a log's variants as one tree: what starts alike is looked at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from veilog._typing import IntArray
from veilog.logs.variants import Variants

_CELLS = 1 << 20
"""Activities that are looked at together."""


@dataclass(frozen=True)
class PrefixTree:
    """The distinct prefixes as arrays, shorter ones first and those of a length in the order of their codes; the first
    is the empty one."""

    parents: IntArray
    """Of each the prefix without its last activity (of the empty one itself)."""
    codes: IntArray
    """Of each its last activity (of the empty one -1)."""
    passing: IntArray
    """How many cases have it."""
    whole: IntArray
    """Of each variant the prefix that is all of it."""

    @staticmethod
    def of(variants: Variants) -> PrefixTree:
        """Return the prefixes of a log.

        Where no prefix branched, many lengths are looked at together, so that what a few long variants share, or what
        one has alone, takes no step for each event.
        """
        lengths, counts, size = variants.lengths, variants.counts, max(1, len(variants.labels))
        parents, codes = [np.zeros(1, np.int64)], [np.full(1, -1, np.int64)]
        passing = [np.array([counts.sum()], np.int64)]
        at = np.zeros(len(variants), dtype=np.int64)
        known, depth, longest, together = 1, 0, int(lengths.max(initial=0)), 1
        while depth < longest:
            # Variants are sorted by length: those that go on are the last ones.
            first = int(np.searchsorted(lengths, depth, side="right"))
            steps = at[first:] * size + variants.codes[variants.offsets[first:-1] + depth]
            new, leaders, which = np.unique(steps, return_index=True, return_inverse=True)
            parents.append(new // size)
            codes.append(new % size)
            passing.append(_summed(which, counts[first:], len(new)))
            known, depth = known + len(new), depth + 1
            most = min(int(lengths[first]) - depth, together, max(1, _CELLS // len(which)))
            if most and bool((np.diff(parents[-1]) > 0).all()):
                ahead = variants.codes[(variants.offsets[first:-1] + depth)[:, None] + np.arange(most)]
                alike = (ahead == ahead[leaders[which]]).all(axis=0)
                number = most if alike.all() else int(np.argmin(alike))
                # Each has one child in each of these lengths, in its own order.
                parents.append(np.arange(known - len(new), known + (number - 1) * len(new)))
                codes.append(ahead[leaders, :number].T.ravel().astype(np.int64))
                passing.append(np.tile(passing[-1], number))
                known, depth = known + number * len(new), depth + number
                together = 2 * together if number == most else 1
            at[first:] = known - len(new) + which
        return PrefixTree(np.concatenate(parents), np.concatenate(codes), np.concatenate(passing), at)


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
        tree = PrefixTree.of(variants)
        parents, codes = tree.parents.tolist(), tree.codes.tolist()
        following = [0] * len(parents)
        for parent, code in zip(parents[1:], codes[1:], strict=True):
            following[parent] |= 1 << code
        ending = _summed(tree.whole, variants.counts, len(parents)).tolist()
        return cls(variants.labels, parents, codes, tree.passing.tolist(), ending, following)

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
