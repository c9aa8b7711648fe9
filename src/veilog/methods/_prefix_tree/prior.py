"""A prior of a prefix tree: prefixes that are in it whatever noise shows, and traces by which rare cases go on.

The cases of a prior are public. A prefix that is expected to have at least as many cases as the noise of the final
counts deviates is counted, so no threshold removes it. All other prefixes have to survive, as without a prior. Cases
that stop at a prefix that the prior knows go on as its cases do.

Privacy: which bins a level or the final counts have follows from the prior, which is public, and from earlier noisy
answers. A case is in at most one bin of each, as without a prior, so their sensitivity is 1 as before.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from veilog._typing import FloatArray, IntArray
from veilog.logs.variants import Variants
from veilog.messages import Message
from veilog.methods._prefix_tree.tree import NoisyPrefixTree, assign_continuation, assign_deepest
from veilog.methods.method import Request
from veilog.privacy.mechanisms.mechanism import Laplace


@dataclass(frozen=True)
class TreePrior:
    """The cases of a prior, and the part of them from which on a prefix is counted."""

    variants: Variants
    least: float = 1.0

    @staticmethod
    def of(request: Request, activities: tuple[str, ...]) -> TreePrior | None:
        """Return the prior of a request with its public activities; None if there is none, or it has none of them."""
        if request.prior is None:
            return None
        variants = request.prior.of_activities(activities)
        if not variants.cases:
            request.remark(Message("prior-without-activities"))
            return None
        return TreePrior(variants)

    def counted(self, cases: int, epsilon: Fraction) -> TreePrior:
        """Return it with the part of so many cases that the noise of counts with ``epsilon`` deviates by."""
        return TreePrior(self.variants, math.sqrt(Laplace(1 / epsilon).variance) / max(cases, 1))

    def continuations(self, tree: NoisyPrefixTree) -> IntArray:
        """Return the continuations of a tree's last level that are counted, ascending."""
        bins = np.asarray(assign_continuation(tree)(self.variants.sequences))
        found, place = np.unique(bins[bins >= 0], return_inverse=True)
        cases = np.bincount(place, self.variants.counts[bins >= 0], minlength=len(found))
        return np.asarray(found[cases >= self.least * self.variants.cases])

    def deepest(self, tree: NoisyPrefixTree) -> IntArray:
        """Return the longest surviving prefix of each of its variants, as :func:`assign_deepest` numbers them."""
        return np.asarray(assign_deepest(tree)(self.variants.sequences))

    def shares(self, tree: NoisyPrefixTree) -> FloatArray:
        """Return the part of its cases that has each prefix as its longest surviving one."""
        cases = np.bincount(self.deepest(tree), self.variants.counts, minlength=tree.size + 1)
        return np.asarray(cases / self.variants.cases)

    def drawn(self, tree: NoisyPrefixTree, cases: FloatArray, rng: np.random.Generator) -> Variants:
        """Return its variants for so many cases at each prefix, in the proportions that it has them there."""
        deepest = self.deepest(tree)
        there = np.bincount(deepest, self.variants.counts, minlength=len(cases))
        expected = self.variants.counts * (cases / np.maximum(there, 1))[deepest]
        return self.variants.with_counts(np.diff(np.floor(np.cumsum(expected) + rng.random()), prepend=0).astype(int))

    def continued(self, starts: Variants, rng: np.random.Generator) -> Variants:
        """Return traces that begin like these, and go on from there as one of its cases does that begins alike
        longest."""
        known, found = sorted(self.variants.to_dict().items()), Counter[Sequence[str]]()
        for start, cases in starts.to_dict().items():
            first, last = 0, len(known)
            for i, activity in enumerate(start):
                low = bisect_left(known, (start[: i + 1],), first, last)
                high = bisect_left(known, ((*start[:i], activity + "\0"),), low, last)
                if low == high:
                    break
                first, last = low, high
            often = np.array([count for _, count in known[first:last]])
            chosen = rng.multinomial(cases, often / often.sum())
            for row in np.flatnonzero(chosen).tolist():
                found[start + known[first + row][0][len(start) :]] += int(chosen[row])
        return Variants.from_dict(found)


def projected(counts: FloatArray, total: float) -> FloatArray:
    """Return the numbers nearest to these that are not negative and add up to a total."""
    if total <= 0:
        return np.zeros(len(counts))
    descending = np.sort(counts)[::-1]
    beyond = (np.cumsum(descending) - total) / np.arange(1, len(counts) + 1)
    return np.asarray(np.maximum(counts - beyond[np.flatnonzero(descending > beyond)[-1]], 0.0))
