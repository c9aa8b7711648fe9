"""How many cases end at each prefix of a grown tree: one question over disjoint bins, made consistent with the tree.

The levels of the tree find out which prefixes there are; they count a case again at every depth, so their budget is
split thin. How many cases have a prefix as their *longest* surviving one is a single histogram, a case being in one
bin: the whole budget of this question is on every number. Both kinds of answers estimate the same case numbers and are
combined by least squares (as in Hay, Rastogi, Miklau, Suciu, "Boosting the accuracy of differentially private
histograms through consistency", PVLDB 2010): post-processing.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from veilog._typing import BoolArray, FloatArray, IntArray
from veilog.logs.variants import Variants
from veilog.messages import Message
from veilog.methods._prefix_tree.expand import TreeBudget
from veilog.methods._prefix_tree.prior import TreePrior, projected
from veilog.methods._prefix_tree.settings import TreeSettings
from veilog.methods._prefix_tree.tree import Noise, NoisyPrefixTree, assign_deepest, noise_threshold, to_variants
from veilog.methods._rows import added
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
"""What is said of cases whose traces do not stand out from the noise."""


def count_variants(
    curator: Curator,
    request: Request,
    tree: NoisyPrefixTree,
    plan: TreeBudget,
    left: Fraction,
    settings: TreeSettings,
) -> Variants:
    """Return the variants of a grown tree, counted with what the plan has for it and what the levels ``left``, and
    remark what is too rare to be among them.

    The setting ``rest`` says what becomes of cases whose surviving prefix is not their whole trace:
    ``stop`` releases the prefix as a trace that stops there, ``drop`` leaves them out as the papers do, ``share`` gives
    them to the complete traces that share the prefix, in proportion. So are cases shared at a prefix of a prior, as far
    as they are more than the prior expects to stop there; those that it expects go on as its own cases do.
    """
    epsilon, levels, prior = plan.counts + left, plan.levels, plan.prior
    noisy = curator.histogram(assign_deepest(tree), tree.size + 1, epsilon, purpose="cases-by-longest-prefix")
    threshold = noise_threshold(tree.size + 1, settings.noise_prefixes, Laplace(1 / epsilon))
    least = max([threshold, *(level.least for level in tree.levels)])
    if prior is not None:
        request.remark(Message("tree-prior-used", least=least + 1))
    elif least:
        request.remark(Message(_RARE[settings.rest or "stop"], least=least + 1))
    remark_cases(request, int(noisy.sum()), Laplace(1 / epsilon).variance * len(noisy), least)
    longest = curator.domain.longest
    at_depth = len(tree.levels) == len(levels) and tree.frontier and (longest is None or len(levels) < longest)
    if at_depth and prior is None:
        code = "no-trace-beyond-one-event" if len(levels) == 1 else "traces-cut-at-length"
        request.remark(Message(code, events=len(levels)))
    here = _by_level(tree, noisy.astype(np.float64))
    if settings.consistency and prior is None:
        here = _reconciled(tree, here, levels, Laplace(1 / epsilon))
    if prior is not None:
        return _with_prior(tree, here, threshold, prior, settings, generator(curator.randomness))
    here = [np.where(level > threshold, level, 0.0) for level in here]
    released = [np.where(_released(tree, i, settings), level, 0.0) for i, level in enumerate(here[1:])]
    complete = [np.zeros(1), *released]
    if settings.rest != "drop":
        complete = _shared(tree, here, complete)
    return to_variants(tree, [np.rint(level).astype(np.int64) for level in complete[1:]])


def _by_level(tree: NoisyPrefixTree, values: FloatArray) -> list[FloatArray]:
    """Values of all prefixes as one array a level, the empty prefix's first."""
    sizes = [1, *(len(level.bins) for level in tree.levels)]
    return np.split(values, np.cumsum(sizes)[:-1])


def _released(tree: NoisyPrefixTree, index: int, settings: TreeSettings) -> BoolArray:
    """The prefixes of a level that are released as they are: ended, as long as the tree is deep, or all."""
    level, deepest = tree.levels[index], index == len(tree.levels) - 1
    return np.ones(len(level.bins), dtype=bool) if deepest or settings.rest in (None, "stop") else ~level.is_open


def _parents(tree: NoisyPrefixTree, index: int) -> IntArray:
    """For each prefix of a level its parent's position among all prefixes of the level above."""
    level = tree.levels[index]
    if index == 0:
        return np.zeros(len(level.bins), dtype=np.int64)
    return np.flatnonzero(tree.levels[index - 1].is_open)[level.parents]


def _reconciled(
    tree: NoisyPrefixTree, here: list[FloatArray], levels: tuple[Noise, ...], noise: Laplace
) -> list[FloatArray]:
    """The least-squares estimate of the cases at each prefix, from both questions.

    Upwards: the cases below a prefix are estimated by its own noisy count and by the sum over what is below, weighted
    by their variances. Downwards: what a prefix's total differs from the sum of its parts goes to the parts in
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
        counted, uncounted = levels[i - 1].variance, tree.levels[i - 1].uncounted
        weight = counted / (counted + sum_variances[i])
        if uncounted is not None:
            weight[uncounted] = 1.0
        totals[i] = weight * sums[i] + (1 - weight) * tree.levels[i - 1].counts
        variances[i] = weight * sum_variances[i]
    result = []
    for i in range(depth + 1):
        correction = (totals[i] - sums[i]) / sum_variances[i]
        result.append(here[i] + correction * own)
        if i < depth:
            totals[i + 1] = totals[i + 1] + correction[_parents(tree, i)] * variances[i + 1]
    return result


def _with_prior(
    tree: NoisyPrefixTree,
    here: list[FloatArray],
    threshold: int,
    prior: TreePrior,
    settings: TreeSettings,
    rng: np.random.Generator,
) -> Variants:
    """Return the variants of a tree with prefixes of a prior: where it knows a prefix, cases go on as its cases do.

    The prefixes that are there for the prior alone have the numbers nearest to their counts that are not negative, with
    the same sum. So they need no threshold, and where noise is all that they show they have hardly a case.
    """
    counts = np.concatenate(here)
    kept = np.concatenate([[True], *(level.uncounted for level in tree.levels if level.uncounted is not None)])
    numbers = np.where(counts > threshold, counts, 0.0)
    numbers[kept] = projected(counts[kept], float(counts[kept].sum()))
    here, stops = _by_level(tree, numbers), _by_level(tree, prior.shares(tree))
    below = _below(tree, stops)
    released = [np.ones(1, dtype=bool), *(_released(tree, i, settings) for i in range(len(tree.levels)))]
    complete = [np.where(done | (share > 0), n, 0.0) for done, share, n in zip(released, below, here, strict=True)]
    if settings.rest == "share":
        complete = _shared(tree, here, complete)
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
    unknown = prior.continued(unknown, rng) if settings.rest is None else unknown
    return added([prior.drawn(tree, np.concatenate(of_prior), rng), ended, unknown])


def _below(tree: NoisyPrefixTree, values: list[FloatArray]) -> list[FloatArray]:
    """Return for each prefix the sum of what it and all that continue it have."""
    sums = [level.copy() for level in values]
    for i in range(len(tree.levels), 0, -1):
        np.add.at(sums[i - 1], _parents(tree, i - 1), sums[i])
    return sums


def _shared(tree: NoisyPrefixTree, here: list[FloatArray], complete: list[FloatArray]) -> list[FloatArray]:
    """Cases that stopped at a prefix, given in proportion to the complete traces below it, where there are any."""
    depth, below = len(tree.levels), _below(tree, complete)
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
