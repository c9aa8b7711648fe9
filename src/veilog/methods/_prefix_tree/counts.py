"""Numbers of cases by longest prefix, from one query, consistent with the tree.

The levels of the tree find the prefixes. They count a case again at every depth, so their budget is split thin. The
numbers of cases by their *longest* surviving prefix are a single histogram, with a case in one bin: every number gets
the whole budget of this query. Both kinds of answers estimate the same case numbers. Least squares combine them, which
is post-processing (as in Hay, Rastogi, Miklau, Suciu, "Boosting the accuracy of differentially private histograms
through consistency", PVLDB 2010).
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from veilog._typing import BoolArray, FloatArray, IntArray
from veilog.logs.variants import Variants
from veilog.messages import Message
from veilog.methods._prefix_tree.expand import TreeBudget, TreePrior, project_counts
from veilog.methods._prefix_tree.tree import (
    Noise,
    NoisyPrefixTree,
    TreeSettings,
    assign_deepest,
    noise_threshold,
    to_variants,
)
from veilog.methods._relations import add_answers
from veilog.methods.method import Request
from veilog.methods.thresholds import remark_cases
from veilog.privacy.curator import Curator
from veilog.privacy.mechanisms.mechanism import Laplace
from veilog.privacy.mechanisms.noise import generator

_RARE = {
    "stop": "traces-end-at-rare",
    "drop": "variants-rare-dropped-with-cases",
    "share": "variants-rare-counted-elsewhere",
}
"""Codes of remarks on cases whose traces do not stand out from the noise."""


def count_variants(
    curator: Curator,
    request: Request,
    tree: NoisyPrefixTree,
    plan: TreeBudget,
    left: Fraction,
    settings: TreeSettings,
) -> Variants:
    """Return the variants of a grown tree with their counts, and remark on rare ones.

    The counts use the plan's share of the budget and what the levels ``left``. The setting ``rest`` is for cases whose
    surviving prefix is not their whole trace: ``stop`` releases the prefix as a trace that stops there. ``drop`` leaves
    them out as the papers do. ``share`` gives them to the complete traces with that prefix, in proportion. With a prior
    none stop: they go on as its cases do. A prior is dropped if it misplaces more cases than the tree leaves open
    without it.
    """
    epsilon, prior = plan.counts + left, plan.prior
    noisy = curator.histogram(assign_deepest(tree), tree.size + 1, epsilon, purpose="cases-by-longest-prefix")
    threshold = noise_threshold(tree.size + 1, settings.noise_prefixes, Laplace(1 / epsilon))
    least = max([threshold, *(level.least for level in tree.levels)])
    here = _values_by_level(tree, noisy.astype(np.float64))
    if prior is not None:
        if _misplaced_share(tree, here, prior, float(1 / epsilon)) <= _open(tree, here, plan.reach):
            request.remark(Message("tree-prior-used"))
        else:
            request.remark(Message("tree-prior-dropped"))
            prior, (tree, here) = None, _tree_without_prior(tree, here)
    if least and (prior is None or settings.rest != "stop"):
        request.remark(Message(_RARE[settings.rest], least=least + 1))
    remark_cases(request, int(noisy.sum()), Laplace(1 / epsilon).variance * len(noisy), least)
    longest = curator.domain.longest
    if prior is not None:
        return _variants_with_prior(tree, here, threshold, prior, settings, generator(curator.randomness))
    if len(tree.levels) == len(plan.levels) and tree.frontier and (longest is None or len(plan.levels) < longest):
        code = "no-trace-beyond-one-event" if len(plan.levels) == 1 else "traces-cut-at-length"
        request.remark(Message(code, events=len(plan.levels)))
    if settings.consistency:
        here = _reconcile(tree, here, plan.levels, Laplace(1 / epsilon))
    here = [np.where(level > threshold, level, 0.0) for level in here]
    complete = _released_cases(tree, here, settings)
    if settings.rest != "drop":
        complete = _share_cases(tree, here, complete)
    return to_variants(tree, [np.rint(level).astype(np.int64) for level in complete[1:]])


def _values_by_level(tree: NoisyPrefixTree, values: FloatArray) -> list[FloatArray]:
    """Return values of all prefixes as one array a level, the empty prefix's first."""
    sizes = [1, *(len(level.bins) for level in tree.levels)]
    return np.split(values, np.cumsum(sizes)[:-1])


def _is_complete(tree: NoisyPrefixTree, index: int) -> BoolArray:
    """Return the prefixes of a level that have ended or reach the tree's depth."""
    level = tree.levels[index]
    return np.ones(len(level.bins), dtype=bool) if index == len(tree.levels) - 1 else ~level.is_open


def _released_cases(tree: NoisyPrefixTree, here: list[FloatArray], settings: TreeSettings) -> list[FloatArray]:
    """Return the cases of prefixes that are released as they are.
    All but the empty one are released with ``stop``."""
    stop = settings.rest == "stop"
    return [np.zeros(1), *(np.where(stop | _is_complete(tree, i), n, 0.0) for i, n in enumerate(here[1:]))]


def _parents(tree: NoisyPrefixTree, index: int) -> IntArray:
    """Return the place of each prefix's parent among all prefixes of the level above."""
    level = tree.levels[index]
    if index == 0:
        return np.zeros(len(level.bins), dtype=np.int64)
    return np.flatnonzero(tree.levels[index - 1].is_open)[level.parents]


def _reconcile(
    tree: NoisyPrefixTree, here: list[FloatArray], levels: tuple[Noise, ...], noise: Laplace
) -> list[FloatArray]:
    """Return the least-squares estimate of cases at each prefix, from both queries.

    Upwards, the cases below a prefix are estimated by its own noisy count and by the sum over those below, weighted by
    their variances. Downwards, the difference between a prefix's total and the sum of its parts goes to the parts in
    proportion to their variances.
    """
    own = noise.variance
    depth = len(tree.levels)
    sums, sum_variances, totals, variances = ([np.zeros(0)] * (depth + 1) for _ in range(4))
    for i in range(depth, -1, -1):
        sums[i] = here[i].copy()
        sum_variances[i] = np.full(len(here[i]), own)
        if i < depth:
            parents = _parents(tree, i)
            np.add.at(sums[i], parents, totals[i + 1])
            np.add.at(sum_variances[i], parents, variances[i + 1])
        if i == 0:
            totals[0], variances[0] = sums[0].copy(), sum_variances[0].copy()
            continue
        counted = levels[i - 1].variance
        weight = counted / (counted + sum_variances[i])
        totals[i] = weight * sums[i] + (1 - weight) * tree.levels[i - 1].counts
        variances[i] = weight * sum_variances[i]
    result = []
    for i in range(depth + 1):
        correction = (totals[i] - sums[i]) / sum_variances[i]
        result.append(here[i] + correction * own)
        if i < depth:
            totals[i + 1] = totals[i + 1] + correction[_parents(tree, i)] * variances[i + 1]
    return result


def _misplaced_share(tree: NoisyPrefixTree, here: list[FloatArray], prior: TreePrior, scale: float) -> float:
    """Return the share of cases not where a prior expects them, less that of noise.
    Laplace noise of this scale adds half of it to the positive part of a difference that is 0."""
    counts = np.concatenate(here)
    cases = max(float(counts.sum()), 1.0)
    more = np.maximum(counts - cases * prior.shares(tree), 0.0).sum()
    return float(more - len(counts) * scale / 2) / cases


def _open(tree: NoisyPrefixTree, here: list[FloatArray], reach: float) -> float:
    """Return the share of cases that end at no complete trace, without the prior.
    Cases that are cut at the depth count in part."""
    tree, here = _tree_without_prior(tree, here)
    last = len(tree.levels) - 1
    shares = [np.where(level.is_open, reach * (i == last), 1.0) for i, level in enumerate(tree.levels)]
    complete = sum(float(level @ share) for level, share in zip(here[1:], shares, strict=True))
    return 1 - complete / max(sum(float(level.sum()) for level in here), 1.0)


def _tree_without_prior(tree: NoisyPrefixTree, here: list[FloatArray]) -> tuple[NoisyPrefixTree, list[FloatArray]]:
    """Return the tree of prefixes that survived by their counts, and its cases.
    Cases are counted by the longest of these prefixes."""
    less, owner, kept, size = NoisyPrefixTree(tree.activities), np.zeros(1, dtype=np.int64), np.ones(1, dtype=bool), 1
    owners = [owner]
    for i, level in enumerate(tree.levels):
        assert level.uncounted is not None
        above, parents = kept, _parents(tree, i)
        opened = np.cumsum(above if i == 0 else above & tree.levels[i - 1].is_open) - 1
        kept = above[parents] & ~level.uncounted
        owner = np.where(kept, size + np.cumsum(kept) - 1, owner[parents])
        owners.append(owner)
        size += int(kept.sum())
        less = less.grown((opened[parents] * tree.width + level.symbols)[kept], level.counts[kept], level.least)
    cases = np.bincount(np.concatenate(owners), np.concatenate(here), minlength=size)
    return less, _values_by_level(less, cases.astype(np.float64))


def _variants_with_prior(
    tree: NoisyPrefixTree,
    here: list[FloatArray],
    threshold: int,
    prior: TreePrior,
    settings: TreeSettings,
    rng: np.random.Generator,
) -> Variants:
    """Return the variants of a tree with a prior, whose cases continue known prefixes.
    The prefixes that are there for the prior alone have the numbers nearest to their counts that are not negative,
    with the same sum. So they need no threshold, and where noise is all that they show they have hardly a case."""
    counts = np.concatenate(here)
    kept = np.concatenate([[True], *(level.uncounted for level in tree.levels if level.uncounted is not None)])
    numbers = np.where(counts > threshold, counts, 0.0)
    numbers[kept] = project_counts(counts[kept], float(counts[kept].sum()))
    here, stops = _values_by_level(tree, numbers), _values_by_level(tree, prior.shares(tree))
    below = _sums_below(tree, stops)
    released = _released_cases(tree, here, settings)
    complete = [np.where(share > 0, n, done) for share, n, done in zip(below, here, released, strict=True)]
    if settings.rest == "share":
        complete = _share_cases(tree, here, complete)
    growth, of_prior, others = [np.zeros(1)], [], []
    for i, (n, stop, share) in enumerate(zip(complete, stops, below, strict=True)):
        if i:
            growth.append(growth[i - 1][_parents(tree, i - 1)])
        more = np.where(share > 0, np.maximum(n - stop * numbers.sum(), 0.0), 0.0)
        growth[i] = growth[i] + more / np.maximum(share, 1e-12)
        of_prior.append(np.where(share > 0, n - more + stop * growth[i], 0.0))
        others.append(np.rint(np.where(share > 0, 0.0, n)).astype(np.int64))

    open_ = [np.where(level.is_open, n, 0) for level, n in zip(tree.levels, others[1:], strict=True)]
    ended = to_variants(tree, [n - stopped for n, stopped in zip(others[1:], open_, strict=True)])
    unknown = to_variants(tree, open_)
    unknown = prior.continued(unknown, rng) if settings.rest == "stop" else unknown
    return add_answers([prior.drawn(tree, np.concatenate(of_prior), rng), ended, unknown])


def _sums_below(tree: NoisyPrefixTree, values: list[FloatArray]) -> list[FloatArray]:
    """Return for each prefix the sum of what it and all that continue it have."""
    sums = [level.copy() for level in values]
    for i in range(len(tree.levels), 0, -1):
        np.add.at(sums[i - 1], _parents(tree, i - 1), sums[i])
    return sums


def _share_cases(tree: NoisyPrefixTree, here: list[FloatArray], complete: list[FloatArray]) -> list[FloatArray]:
    """Return the complete traces with a share of the cases that stopped above them.
    Cases without a complete trace below go to their parent prefix first."""
    depth, below = len(tree.levels), _sums_below(tree, complete)
    # A prefix without a complete trace below hands its cases to its parent before these are shared out.
    stopped = [level - done for level, done in zip(here, complete, strict=True)]
    for i in range(depth, 0, -1):
        orphaned = np.where(below[i] > 0, 0.0, stopped[i])
        np.add.at(stopped[i - 1], _parents(tree, i - 1), orphaned)
    growth = [np.zeros(1)]
    for i in range(depth + 1):
        if i:
            growth.append(growth[i - 1][_parents(tree, i - 1)])
        growth[i] = growth[i] + np.where(below[i] > 0, stopped[i] / np.maximum(below[i], 1e-9), 0.0)
    return [level * (1 + more) for level, more in zip(complete, growth, strict=True)]
