"""DPIM: a process tree of noisy directly-follows pairs, and cases played out from it.

M. Schulze, Y. Zisgen, M. Kirschte, E. Mohammadi, A. Koschmider, "Differentially Private Inductive Miner", ICPM 2024
(arXiv 2407.04595).

Attempts take a random number of the pairs that occur in most cases by noisy counts, make a process tree of them as the
inductive miner would, and measure its fitness; the first whose noisy fitness is enough is the result.

As published the noise of the fitness is too small: one long case can change it by more than a half, not by 1 over the
number of cases. Nothing can be derived. Certified, a case is bounded in both numbers: in the pairs that it counts for,
and in what it says about all candidates together.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated

from veilog.errors import ParameterError
from veilog.logs.variants import Variants
from veilog.messages import Message
from veilog.methods.df_laplace import (
    PairSettings,
    noisy_cases,
    noisy_relation,
    refuse_small_budget,
    remark_relation,
    resized,
)
from veilog.methods.dpim.certified import chosen_tree
from veilog.methods.dpim.published import accepted_tree
from veilog.methods.method import Request, as_asked, our_method, with_a_share
from veilog.methods.settings import Range
from veilog.mining.tree import ProcessTree, play_out
from veilog.privacy.account.accounting import SMALLEST_EPSILON
from veilog.privacy.curator import Curator
from veilog.privacy.mechanisms import noise

__all__ = ["DPIM", "DpimSettings", "dpim"]

TREE = "The process tree: "
"""How the remark begins that has it."""
_FITNESS = {True: 0.95, False: 0.9}
"""As published of the tokens, else of the steps of a case."""
_DRAWN = 20_000
"""So many cases are drawn from a tree; where more are to be released, they are copies of these."""


@dataclass(frozen=True, kw_only=True)
class DpimSettings(PairSettings):
    """Settings of DPIM."""

    fitness: Annotated[
        float | None, "fitness that is enough; 0.9 of the steps of cases, as published 0.95 of tokens", Range(0, 1)
    ] = None
    fitness_share: Annotated[float, "share of the budget for the fitness of trees, certified", Range(0.05, 0.9)] = 0.25
    fewest: Annotated[int | None, "as published: fewest pairs taken; 15 less than occur if not given", Range(1)] = None
    most: Annotated[int | None, "as published: most pairs taken; 15 more than occur if not given", Range(1)] = None


def dpim(curator: Curator, request: Request, settings: DpimSettings) -> Variants:
    """Return cases played out from a process tree, which a remark tells.

    Certified: epsilon in all, ``count_share`` of it for the number of cases, of the rest ``fitness_share`` for the
    fitness of candidates and the other part for the pairs. As published: guarantee none.
    """
    enough = _FITNESS[request.as_published] if settings.fitness is None else settings.fitness
    if request.as_published:
        tree, cases = accepted_tree(curator, request, enough, _bounds(settings))
        if tree is None:
            request.remark(Message("dpim-no-tree-fits"))
            return Variants.from_dict({})
        return _played(tree, cases, curator, request)
    share = Fraction(str(settings.fitness_share))
    _refuse_small_budget(curator, request.epsilon, settings, share)
    counted, epsilon = noisy_cases(curator, request.epsilon, settings)
    request.progress("directly-follows pairs", None)
    counts, threshold = noisy_relation(curator, epsilon * (1 - share), settings, request.rules, once=True)
    cases = counted or min(max(int(counts[-1].sum()), 1), settings.largest_log)
    remark_relation(request, threshold, counted, settings)
    tree = chosen_tree(curator, request, counts, threshold, cases, epsilon * share, enough)
    return _played(tree, cases, curator, request)


def _bounds(settings: DpimSettings) -> tuple[int, int] | None:
    if settings.fewest is None and settings.most is None:
        return None
    if settings.fewest is None or settings.most is None or settings.fewest > settings.most:
        raise ParameterError("dpim-bounds-incomplete", parameter="fewest")
    return settings.fewest, settings.most + 1


def _refuse_small_budget(curator: Curator, epsilon: Fraction, settings: DpimSettings, share: Fraction) -> None:
    """Refuse, before anything is asked, what could not even be divided."""
    with with_a_share(1 / (1 - share)):
        refuse_small_budget(curator, epsilon * (1 - share), settings)
    if epsilon * share * (1 - Fraction(str(settings.count_share))) < SMALLEST_EPSILON:
        raise ParameterError("dpim-epsilon-too-small", parameter="epsilon", as_asked=as_asked(epsilon))


def _played(tree: ProcessTree, cases: int, curator: Curator, request: Request) -> Variants:
    request.remark(Message("dpim-process-tree", tree=tree))
    request.progress("playing out", None)
    drawn = play_out(tree, min(cases, _DRAWN), noise.generator(curator.randomness))
    if request.rules is not None:
        drawn = request.rules.preferred(drawn)
    return resized(drawn, cases, curator)


DPIM = our_method("dpim", dpim, DpimSettings, needs=lambda settings: frozenset({"activities"}))
