"""Laplace: a prefix tree of noisy counts.

F. Mannhardt, A. Koschmider, N. Baracaldo, M. Weidlich, J. Michael, "Privacy-Preserving Process Mining", Business &
Information Systems Engineering 61 (2019).

From the empty prefix on, every surviving prefix is continued by each activity and by the end of the trace; each
continuation gets its number of cases plus Laplace noise, and those below a threshold are pruned.

As published the noise has scale 1/epsilon at every depth. A case is counted again at each of the N depths, so the
release costs N epsilon. Certified, the depths share the budget, and a last question counts the cases by their longest
surviving prefix, which are disjoint bins.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from veilog.errors import ParameterError
from veilog.logs.variants import Variants
from veilog.methods.method import Request
from veilog.methods.prefix_counts import count_variants
from veilog.methods.prefix_tree import PrefixTree, assign_continuation, noise_threshold, to_variants
from veilog.methods.steps import length_histogram, quantile
from veilog.privacy.curator import Curator

__all__ = ["laplace"]

IntArray = npt.NDArray[np.int64]

DEPTH_SHARE = Fraction(1, 20)
"""Share of the budget that finds out the depth where the user does not give it."""
ENDED = 0.8
"""The part of the traces that should be over at that depth (the papers: 80 to 90 %)."""
LARGEST_FRONTIER = 20_000_000
"""As published a tree may grow without end; beyond this many bins at a level it is refused."""


def laplace(
    curator: Curator,
    request: Request,
    *,
    depth: int | None,
    threshold: int | None,
    split: str,
    noise_prefixes: float,
    count_share: float,
    rest: str,
    consistency: bool,
    largest_log: int,
) -> Variants:
    """The variants of a noisy prefix tree.

    Certified: epsilon in all, of which ``count_share`` is for the final counts and the rest for the levels, by
    ``split``. The threshold of a level is such that at most ``noise_prefixes`` of its empty prefixes are expected to
    survive. As published: noise of scale 1/epsilon at each of ``depth`` levels, which is depth times epsilon; an open
    prefix survives from ``threshold`` on, a complete one from 1.
    """
    if request.as_published:
        return _as_published(curator, request, depth, threshold)
    refuse_too_small(request.epsilon, count_share, depth, threshold, noise_prefixes, curator, largest_log)
    budget = request.epsilon
    if depth is None:
        depth = noisy_depth(curator, budget * DEPTH_SHARE, budget)
        budget -= budget * DEPTH_SHARE
    for_counts = budget * Fraction(str(count_share))
    shares = split_budget(budget - for_counts, depth, split)
    tree = PrefixTree(curator.activities)
    for level, share in enumerate(shares):
        size = tree.frontier * tree.width
        if size == 0:
            # The budget asked for is what is charged, whatever the noise did: what is left goes to the counts.
            for_counts += sum(shares[level:])
            break
        request.progress(f"prefixes of length {level + 1}", level / depth)
        least = noise_threshold(size, noise_prefixes, share) if threshold is None else threshold - 1
        answer = curator.histogram(
            assign_continuation(tree), size, share, keep_above=least, purpose=f"prefixes of length {level + 1}"
        )
        tree = tree.grown(answer.bins, answer.counts)
    return count_variants(
        curator, tree, shares, for_counts, expected=noise_prefixes, rest=rest, consistency=consistency
    )


def _as_published(curator: Curator, request: Request, depth: int | None, threshold: int | None) -> Variants:
    """Lap(1/epsilon) at every depth; open prefixes below the threshold are pruned, complete ones below 1."""
    levels = depth or curator.max_length + 1
    tree = PrefixTree(curator.activities)
    least = published_threshold(tree.width, request.epsilon, threshold)
    released: list[IntArray] = []
    for level in range(levels):
        request.progress(f"prefixes of length {level + 1}", level / levels)
        size = tree.frontier * tree.width
        refuse_runaway(size, level)
        answer = curator.histogram(
            assign_continuation(tree), size, request.epsilon, keep_above=0, purpose=f"prefixes of length {level + 1}"
        )
        complete = np.full(len(answer.bins), level == levels - 1) | (answer.bins % tree.width == tree.width - 1)
        keep = complete | (answer.counts >= least)
        tree = tree.grown(answer.bins[keep], answer.counts[keep])
        released.append(np.where(complete[keep], answer.counts[keep], 0))
    return to_variants(tree, released)


def published_threshold(width: int, epsilon: Fraction, threshold: int | None) -> int:
    """The threshold P; where none is given, the one at which noise gives a prefix half a continuation on average."""
    return threshold if threshold is not None else noise_threshold(width, 0.5, epsilon) + 1


def refuse_runaway(size: int, level: int) -> None:
    if size > LARGEST_FRONTIER:
        raise ParameterError(
            f"The tree runs away: length {level + 1} has {size} possible prefixes.",
            parameter="threshold",
            advice="Raise the threshold or epsilon, or lower the depth.",
        )


def split_budget(epsilon: Fraction, depth: int, split: str) -> tuple[Fraction, ...]:
    """Shares of the levels, which add up to epsilon exactly: equal, or in proportion to 1, 1/2, 1/3, ..."""
    weights = [Fraction(1, n + 1) if split == "decreasing" else Fraction(1) for n in range(depth)]
    shares = [epsilon * weight / sum(weights) for weight in weights]
    if split == "decreasing":
        # Exact harmonic fractions have enormous denominators; all but the first level's are rounded down.
        shares = [Fraction(int(share * 10**15), 10**15) for share in shares]
    return (epsilon - sum(shares[1:]), *shares[1:])


def noisy_depth(curator: Curator, epsilon: Fraction, budget: Fraction) -> int:
    """A depth from a noisy histogram of lengths: at which four of five traces have ended, but no more than pays.

    Every level thins the budget of the others, so with n cases in all the depth is at most ``sqrt(budget n) / 4``, or 5
    if that is less: a rule found on public logs.
    """
    steps, counts = length_histogram(curator, epsilon)
    pays = max(5, int(math.sqrt(float(budget) * max(int(counts.sum()), 0)) / 4))
    return min(quantile(steps, counts, ENDED), pays)


def refuse_too_small(
    epsilon: Fraction,
    count_share: float,
    depth: int | None,
    threshold: int | None,
    noise_prefixes: float,
    curator: Curator,
    largest_log: int,
) -> None:
    """Refuse, before anything is asked, a budget at which no log of a size that exists has a surviving prefix."""
    width = len(curator.activities) + 1
    first = epsilon * Fraction(str(1 - count_share)) / (depth or 1)
    needed = noise_threshold(width, noise_prefixes, first) + 1 if threshold is None else threshold
    if needed <= largest_log:
        return
    if threshold is not None:
        raise ParameterError(
            f"With threshold = {threshold} nothing can survive in a log of up to {largest_log:,} cases.",
            parameter="threshold",
            advice="Lower it, or leave it out; if the log is larger, say so with largest_log.",
        )
    enough = float(epsilon) * needed / largest_log
    raise ParameterError(
        f"At epsilon = {float(epsilon):g} a prefix would need {needed:,} cases to survive the noise, more than the "
        f"{largest_log:,} of the largest log expected, so nothing can survive.",
        parameter="epsilon",
        advice=f"From epsilon = {enough:.2g} on something can; if the log is larger, say so with largest_log.",
    )
