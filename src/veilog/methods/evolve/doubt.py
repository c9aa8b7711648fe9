"""Whether activities come again in a case, where that was not asked: as the chain has it, or not at all.

A chain of the first order repeats activities wherever its steps, or noise in them, make a way back; in many processes
hardly any case does so. So half of the walks, or fewer, are of the same chain with memory, and which of both kinds the
cases are is left to the votes. All of this is post-processing of noisy answers: nothing here asks the curator.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from veilog._typing import BoolArray, FloatArray, IntArray
from veilog.methods.evolve.chain import Chain, left_over, relation_sums
from veilog.methods.evolve.constants import Constants
from veilog.methods.evolve.prototypes import Counted, fit, misfit
from veilog.methods.evolve.traces import Traces, distinct, joined, occurrences

_WALKS = 4000
"""Of each kind, by which it is told how well it explains the relations."""
_SHARES = (0.02, 0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9, 0.98)
"""Of the cases that repeat nothing beyond doubt: the likeliest is taken."""


@dataclass(frozen=True, eq=False)
class Doubt:
    """That activities which may repeat do not."""

    repeats: BoolArray
    """Which activities certainly do, by the relations."""
    likely: float
    """How likely it is by the relations; no more than a half, for they never tell that nothing repeats."""

    def chain(self, chain: Chain) -> Chain:
        """Return the chain in whose walks all other activities occur at most once."""
        return replace(chain, repeats=self.repeats.astype(np.float64))


@dataclass(frozen=True, eq=False)
class Prior:
    """How likely each trace of a pool is as the chain has it, and without repetitions where there is a doubt."""

    usual: FloatArray
    once: FloatArray | None = None
    likely: float = 0.0

    def take(self, rows: IntArray) -> Prior:
        """Return the prior of some traces."""
        return replace(self, usual=self.usual[rows], once=None if self.once is None else self.once[rows])

    def mixed(self, share: float) -> FloatArray:
        """Return how likely the traces are where such a share of the cases repeats nothing."""
        return self.usual if self.once is None else (1 - share) * self.usual + share * self.once

    def fitted(self, votes: list[Counted], sweeps: int) -> FloatArray:
        """Return the fit to the votes from the prior with the share that has the least loss (empirical Bayes)."""
        mixed = [self.mixed(share) for share in (_SHARES if self.once is not None else (0.0,))]
        fits = [(prior, fit(prior, votes, sweeps)) for prior in mixed]
        return min(fits, key=lambda found: misfit(found[0], found[1], votes))[1]


def doubt_of(
    chain: Chain, noisy: FloatArray, b: float, cases: float, longest: int, settings: Constants, rng: np.random.Generator
) -> Doubt | None:
    """Return the doubt that ``noisy`` relations with noise of scale ``b`` leave; None where they leave none.

    An activity certainly repeats that follows itself, or occurs more often than there are cases to have it, beyond
    noise. How likely it is that no other does is told by Akaike weights: of both kinds of walks the relations are
    compared with the noisy ones, under Laplace noise; the chain was made of these, so for each activity that its walks
    repeat it is expected to be nearer by a nat even where noise alone makes it so (H. Akaike, IEEE Transactions on
    Automatic Control 19, 1974; weights: Burnham and Anderson 2002, 2.9).
    """
    _, over, deviation = left_over(chain.flow, b)
    certain = (over > settings.beyond * deviation) | (noisy.diagonal()[:-1] > settings.beyond * math.sqrt(2) * b)
    repeating = Doubt(certain, 0.0)
    usual, once = (one.sample(_WALKS, longest, rng) for one in (chain, repeating.chain(chain)))
    doubtful = (occurrences(usual, chain.size) > 1).any(axis=0) & ~certain
    if not doubtful.any():
        return None
    nearer = (_off(once, noisy, cases, settings) - _off(usual, noisy, cases, settings)) / b
    likely = min(0.5, 1 / (1 + math.exp(min(nearer - int(doubtful.sum()), 100.0))))
    return Doubt(certain, likely) if likely >= settings.least_doubt else None


def _off(walks: Traces, noisy: FloatArray, cases: float, settings: Constants) -> float:
    """How far the relations of walks, as many as there are cases, are from noisy ones, each counted as asked."""
    weights = np.minimum(1.0, settings.contribution / (walks.lengths + 1)) * cases / len(walks)
    off = np.abs(relation_sums(walks, weights, len(noisy) - 1) - noisy)
    off[-1, -1] = 0.0  # cases without an event are not imagined
    return float(off.sum())


def imagined(
    chain: Chain, doubt: Doubt | None, longest: int, room: int, settings: Constants, rng: np.random.Generator
) -> tuple[Traces, Prior]:
    """Return the first pool, distinct walks over the chain, and how likely each is."""
    kinds = [chain] if doubt is None else [chain, doubt.chain(chain)]
    number = settings.pool // len(kinds)
    walks = [kind.sample(number, longest, rng, room=room) for kind in kinds]
    both = joined(walks)
    of = np.repeat(np.arange(len(kinds)), number)
    weights = [(of == kind) / number for kind in range(len(kinds))]
    pool, usual = distinct(both, weights[0])
    if doubt is None:
        return pool, Prior(usual)
    return pool, Prior(usual, distinct(both, weights[1])[1], doubt.likely)
