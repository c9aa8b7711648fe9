"""Laplace: a prefix tree of noisy counts.

F. Mannhardt, A. Koschmider, N. Baracaldo, M. Weidlich, J. Michael, "Privacy-Preserving Process Mining", Business &
Information Systems Engineering 61 (2019).

From the empty prefix on, every surviving prefix is continued by each activity and by the end of the trace; each
continuation gets its number of cases plus Laplace noise, and those below a threshold are pruned.

As published the noise has scale 1/epsilon at every depth. A case is counted again at each of the N depths, so the
release costs N epsilon. Its authors' program, and PRIPEL's, prunes every prefix below the threshold, ended ones too,
and drops traces that have not ended at depth N. SaCoFa's program changed both for its baseline (``program=sacofa``):
it prunes no ended prefix, and releases those of length N as traces. Certified, the depths share the budget, and a last
question counts the cases by their longest surviving prefix, which are disjoint bins.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Literal

import numpy as np

from veilog._typing import BoolArray, IntArray
from veilog.errors import ParameterError
from veilog.logs.variants import Variants
from veilog.methods._prefix_tree.counts import count_variants
from veilog.methods._prefix_tree.expand import (
    Screen,
    above,
    grow,
    plan_budget,
    published_threshold,
    published_variants,
    refuse_delta,
    refuse_too_small,
)
from veilog.methods._prefix_tree.settings import TreeSettings, needs_of_tree
from veilog.methods._prefix_tree.tree import Noise, PrefixTree, noise_threshold
from veilog.methods.measured import ahead
from veilog.methods.method import DeltaOptional, Method, Request
from veilog.methods.settings import Bounds
from veilog.privacy.curator import Curator

__all__ = ["LAPLACE", "LaplaceSettings", "laplace"]


@dataclass(frozen=True, kw_only=True)
class LaplaceSettings(TreeSettings):
    """Settings of the Laplace baseline."""

    threshold: Annotated[
        int | None, "count from which on a prefix survives; found from the noise if not given", Bounds(1)
    ] = None
    program: Annotated[
        Literal["mannhardt", "sacofa"],
        "as published: Mannhardt et al.'s program, or SaCoFa's, which never prunes a trace that has ended",
    ] = "mannhardt"


def laplace(curator: Curator, request: Request, settings: LaplaceSettings) -> Variants:
    """Return the variants of a noisy prefix tree.

    Certified: epsilon in all, of which ``count_share`` is for the final counts and the rest for the levels, by
    ``split``; with a delta the levels get Gaussian noise where that is narrower. The threshold
    of a level is such that at most ``noise_prefixes`` of its empty prefixes are expected to survive. As published:
    noise of scale 1/epsilon at each of ``depth`` levels, which is depth times epsilon; a prefix survives from
    ``threshold`` on, and by SaCoFa's program a complete one from 1.
    """
    if request.as_published:
        refuse_delta(request)
        levels = settings.depth or curator.max_length + 1
        least = published_threshold(len(curator.activities) + 1, request.epsilon, settings.threshold)
        own = settings.program == "mannhardt"
        return published_variants(
            curator, request, request.epsilon, levels, _published_screen(least, own), unfinished=not own
        )
    if settings.program != "mannhardt":
        raise ParameterError("The program belongs to the release as published.", parameter="program")
    threshold = settings.threshold
    refuse_too_small(curator, request.epsilon, settings, threshold, rule_share=Fraction(0))
    plan = plan_budget(curator, request, request.epsilon, settings)

    def screen(tree: PrefixTree, noise: Noise) -> Screen:
        size = tree.frontier * tree.width
        least = threshold - 1 if threshold else noise_threshold(size, settings.noise_prefixes, noise)
        return above(least, size, noise)

    tree, left = grow(curator, request, plan, screen)
    return count_variants(curator, request, tree, plan.levels, plan.counts + left, settings)


def _published_screen(least: int, prune_ended: bool) -> Callable[[PrefixTree], Screen]:
    def keep(bins: IntArray, counts: IntArray, complete: BoolArray) -> BoolArray:
        return (counts >= least) | (complete & ~np.bool_(prune_ended))

    return lambda tree: Screen(0, keep)


LAPLACE = Method(
    name="laplace",
    title="A tree of noisy beginnings",
    advice=(
        f"The best known older method, to compare with. Measured, it was behind evolve in {ahead('laplace')} settings."
    ),
    paper="Mannhardt, Koschmider, Baracaldo, Weidlich, Michael: Privacy-Preserving Process Mining (2019)",
    budget=DeltaOptional(of_use=lambda settings: True, buys="deep trees get narrower noise"),
    guarantee="epsilon (and delta, if given) for one case, proven: the depths share the budget",
    as_published="depth times epsilon: a case is counted again at every depth",
    run=laplace,
    settings=LaplaceSettings,
    needs=needs_of_tree,
    weighed=f"behind evolve in {ahead('laplace')} measured cells",
)
