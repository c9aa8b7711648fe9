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
from veilog.methods._prefix_tree.settings import TreeSettings
from veilog.methods._prefix_tree.tree import Noise, NoisyPrefixTree, assign_deepest, noise_threshold, to_variants
from veilog.methods.method import Request
from veilog.methods.thresholds import remark_cases
from veilog.privacy.curator import Curator
from veilog.privacy.mechanisms.mechanism import Laplace

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
    levels: tuple[Noise, ...],
    epsilon: Fraction,
    settings: TreeSettings,
) -> Variants:
    """Return the variants of a grown tree, counted with ``epsilon``, and remark what is too rare to be among them.

    The setting ``rest`` says what becomes of cases whose surviving prefix is not their whole trace:
    ``stop`` releases the prefix as a trace that stops there, ``drop`` leaves them out as the papers do, ``share`` gives
    them to the complete traces that share the prefix, in proportion.
    """
    noisy = curator.histogram(assign_deepest(tree), tree.size + 1, epsilon, purpose="cases-by-longest-prefix")
    threshold = noise_threshold(tree.size + 1, settings.noise_prefixes, Laplace(1 / epsilon))
    least = max([threshold, *(level.least for level in tree.levels)])
    if least:
        request.remark(Message(_RARE[settings.rest], least=least + 1))
    remark_cases(request, int(noisy.sum()), Laplace(1 / epsilon).variance * len(noisy), least)
    longest = curator.domain.longest
    if len(tree.levels) == len(levels) and tree.frontier and (longest is None or len(levels) < longest):
        code = "no-trace-beyond-one-event" if len(levels) == 1 else "traces-cut-at-length"
        request.remark(Message(code, events=len(levels)))
    here = _by_level(tree, noisy.astype(np.float64))
    if settings.consistency:
        here = _reconciled(tree, here, levels, Laplace(1 / epsilon))
    here = [np.where(level > threshold, level, 0.0) for level in here]
    if settings.rest == "share":
        here = _shared(tree, here)
    elif settings.rest == "stop":
        here = _without_start(here)
    if settings.rest != "stop":
        here = [np.zeros(1), *(np.where(_is_complete(tree, i), level, 0.0) for i, level in enumerate(here[1:]))]
    counts = [np.rint(level).astype(np.int64) for level in here]
    return to_variants(tree, counts[1:], int(counts[0][0]))


def _by_level(tree: NoisyPrefixTree, values: FloatArray) -> list[FloatArray]:
    """Values of all prefixes as one array a level, the empty prefix's first."""
    sizes = [1, *(len(level.bins) for level in tree.levels)]
    return np.split(values, np.cumsum(sizes)[:-1])


def _is_complete(tree: NoisyPrefixTree, index: int) -> BoolArray:
    """The prefixes of a level that are released as they are: ended, or as long as the tree is deep."""
    level = tree.levels[index]
    return np.ones(len(level.bins), dtype=bool) if index == len(tree.levels) - 1 else ~level.is_open


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


def _without_start(here: list[FloatArray]) -> list[FloatArray]:
    """Cases whose first activity did not survive say nothing: they are shared out among all prefixes."""
    known = sum(float(level.sum()) for level in here[1:])
    factor = 1 + float(here[0].sum()) / known if known else 0.0
    return [np.zeros(1), *(level * factor for level in here[1:])]


def _shared(tree: NoisyPrefixTree, here: list[FloatArray]) -> list[FloatArray]:
    """Cases that stopped at a prefix, given in proportion to the complete traces below it, where there are any."""
    depth = len(tree.levels)
    complete = [np.zeros(1), *(np.where(_is_complete(tree, i), here[i + 1], 0.0) for i in range(depth))]
    below = [level.copy() for level in complete]
    for i in range(depth, 0, -1):
        np.add.at(below[i - 1], _parents(tree, i - 1), below[i])
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
