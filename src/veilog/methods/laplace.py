"""Laplace: a prefix tree of noisy counts.

F. Mannhardt, A. Koschmider, N. Baracaldo, M. Weidlich, J. Michael, "Privacy-Preserving Process Mining", Business &
Information Systems Engineering 61 (2019).

From the empty prefix on, every surviving prefix is continued by each activity and by the end of the trace; each
continuation gets its number of cases plus Laplace noise, and those below a threshold are pruned.

As published the noise has scale 1/epsilon at every depth. A case is counted again at each of the N depths, so the
release costs N epsilon. Its authors' program, and PRIPEL's, prunes every prefix below the threshold, ended ones too,
and drops traces that have not ended at depth N. SaCoFa's program changed both for its baseline (``program=sacofa``):
it prunes no ended prefix, and releases those of length N as traces. The benchmark of TraVaS's and TraVaG's authors
(``program=travas``) is another tree: it counts at each depth, for every prefix that it tries, the cases that end there
and those that go on, and keeps what exceeds the threshold.

Certified, the depths share the budget, and a last query counts the cases by their longest surviving prefix, which are
disjoint bins.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Literal

import numpy as np

from veilog._typing import BoolArray, IntArray
from veilog.errors import ParameterError
from veilog.logs.variants import Sequences, Variants
from veilog.messages import Message
from veilog.methods._prefix_tree.counts import count_variants
from veilog.methods._prefix_tree.expand import (
    BEYOND_NOISE,
    Screen,
    grow,
    plan_budget,
    published_epsilon,
    published_threshold,
    published_variants,
    refuse_runaway,
    refuse_too_small,
)
from veilog.methods._prefix_tree.tree import (
    Noise,
    NoisyPrefixTree,
    TreeSettings,
    assign_continuation,
    needs_of_tree,
    noise_threshold,
)
from veilog.methods.benchmark_facts import wins_against
from veilog.methods.method import DeltaOptional, Request, our_method
from veilog.methods.settings import Range
from veilog.privacy.curator import Curator
from veilog.privacy.histograms import Assign
from veilog.privacy.mechanisms.mechanism import Laplace


@dataclass(frozen=True, kw_only=True)
class LaplaceSettings(TreeSettings):
    """Settings of the Laplace baseline."""

    threshold: Annotated[
        int | None, "count from which on a prefix survives; found from the noise if not given", Range(1)
    ] = None
    program: Annotated[
        Literal["mannhardt", "sacofa", "travas"],
        "as published: Mannhardt et al.'s program; SaCoFa's, which never prunes a trace that has ended; or TraVaS's",
    ] = "mannhardt"


def laplace(curator: Curator, request: Request, settings: LaplaceSettings) -> Variants:
    """Return the variants of a noisy prefix tree.

    Certified: epsilon in all, of which ``count_share`` is for the final counts and the rest for the levels, by
    ``split``; with a delta the levels get Gaussian noise where that is narrower. The threshold
    of a level is such that at most ``noise_prefixes`` of its empty prefixes are expected to survive. As published:
    noise of scale 1/epsilon (less with a delta: :func:`published_epsilon`) at each of ``depth`` levels, which is depth
    times epsilon; a prefix survives from ``threshold`` on, and by SaCoFa's program a complete one from 1.
    """
    if request.as_published:
        levels = settings.depth or curator.max_length + 1
        epsilon = published_epsilon(request)
        least = published_threshold(len(curator.activities) + 1, epsilon, settings.threshold)
        if settings.program == "travas":
            return _benchmark(curator, request, levels, least)
        own, screen_of_all = settings.program == "mannhardt", Screen(least - 1)
        return published_variants(
            curator, request, epsilon, levels, lambda tree: screen_of_all, prune_ended=own, unfinished=not own
        )
    if settings.program != "mannhardt":
        raise ParameterError("laplace-program-not-published", parameter="program")
    threshold = settings.threshold
    refuse_too_small(curator, request.epsilon, settings, threshold, rule_share=Fraction(0))
    plan = plan_budget(curator, request, request.epsilon, settings)

    def screen(tree: NoisyPrefixTree, noise: Noise, possible: BoolArray | None) -> Screen:
        size = tree.frontier * tree.width if possible is None else int(possible.sum())
        return Screen(threshold - 1 if threshold else noise_threshold(size, settings.noise_prefixes, noise))

    tree, left = grow(curator, request, plan, screen)
    return count_variants(curator, request, tree, plan, left, settings)


def _benchmark(curator: Curator, request: Request, levels: int, least: int) -> Variants:
    """Return TraVaS's benchmark: cases above ``least`` that end or go on at prefixes.
    A level is one histogram over (prefix x whether the case goes on). A case is in at most one bin of it, that of
    its own prefix of this length. Traces of one activity are left out."""
    tree, epsilon = NoisyPrefixTree(curator.activities), published_epsilon(request)
    prefixes = np.zeros((1, 0), dtype=np.int64)
    width, ended = tree.width, list[tuple[IntArray, IntArray]]()
    for level in range(levels):
        request.progress(f"prefixes of length {level + 1}", level / levels)
        size = 2 * tree.frontier * width
        refuse_runaway(size, level)
        answer = curator.histogram(
            _assign_ends(tree, level + 1),
            size,
            epsilon,
            keep_above=min(least, noise_threshold(size, BEYOND_NOISE, Laplace(1 / epsilon))),
            purpose=Message("prefixes-of-length", level=level + 1),
        )
        kept = (answer.counts > least) & (answer.bins // 2 % width != width - 1)  # no prefix goes on after its end
        bins, goes_on, counts = answer.bins[kept] // 2, answer.bins[kept] % 2 == 1, answer.counts[kept]
        made = np.column_stack([prefixes[bins // width], bins % width])
        if level:
            ended.append((made[~goes_on], counts[~goes_on]))
        tree, prefixes = tree.grown(bins[goes_on], counts[goes_on]), made[goes_on]
    offsets = np.concatenate([[0], *(np.full(len(rows), rows.shape[1]) for rows, _ in ended)]).cumsum()
    empty = np.zeros(0, dtype=np.int64)
    codes = np.concatenate([empty, *(rows.ravel() for rows, _ in ended)])
    return Variants.from_arrays(
        tree.activities, codes, offsets, np.concatenate([empty, *(counts for _, counts in ended)])
    )


def _assign_ends(tree: NoisyPrefixTree, length: int) -> Assign:
    """Return a map of a sequence to twice its continuation, plus 1 if it is longer.
    It is longer than ``length``."""
    continuation = assign_continuation(tree)

    def assign(sequences: Sequences) -> IntArray:
        bins = np.asarray(continuation(sequences))
        return np.where(bins < 0, -1, 2 * bins + (sequences.lengths > length))

    return assign


LAPLACE = our_method(
    "laplace",
    laplace,
    LaplaceSettings,
    advice=Message("laplace-best-known", **wins_against("laplace")),
    budget=DeltaOptional(of_use=lambda settings: True, buys="deep trees get narrower noise"),
    needs=needs_of_tree,
    takes_prior=True,
)
