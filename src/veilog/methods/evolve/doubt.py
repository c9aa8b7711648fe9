"""Doubt whether activities come again in a case, if repeats were not queried.

A chain of the first order repeats activities wherever its steps, or noise in them, make a way back. In many processes
hardly any case does so. So if there is a doubt, half of the walks are of the same chain with memory. The votes decide
which of both kinds the cases are. All of this is post-processing of noisy answers: nothing here queries the curator.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from veilog._typing import BoolArray, FloatArray, IntArray
from veilog.methods.evolve.chain import Chain, left_over, relation_sums
from veilog.methods.evolve.constants import Constants
from veilog.methods.evolve.prototypes import Counted, fit, misfit
from veilog.methods.evolve.traces import Traces, distinct, join_traces, occurrences

_WALKS = 4000
"""Walks of each kind that show how well it explains the relations."""
_SHARES = (0.02, 0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9, 0.98)
"""Shares of the cases without doubtful repeats: the likeliest is taken."""


@dataclass(frozen=True, eq=False)
class Doubt:
    """Hypothesis that activities which may repeat do not."""

    repeats: BoolArray
    """Mask of the activities that certainly repeat, by the relations."""
    likely: float
    """Likelihood by the relations, a half at most: they never rule out repeats."""

    def chain(self, chain: Chain) -> Chain:
        """Return the chain in whose walks all other activities occur at most once."""
        return replace(chain, repeats=self.repeats.astype(np.float64))


@dataclass(frozen=True, eq=False)
class Prior:
    """Likelihoods of a pool's traces by the chain and, with a doubt, without repeats."""

    usual: FloatArray
    once: FloatArray | None = None
    likely: float = 0.0

    def take(self, rows: IntArray) -> Prior:
        """Return the prior of some traces."""
        return replace(self, usual=self.usual[rows], once=None if self.once is None else self.once[rows])

    def mixed(self, share: float) -> FloatArray:
        """Return the likelihoods of the traces if such a share of cases repeats nothing."""
        return self.usual if self.once is None else (1 - share) * self.usual + share * self.once

    def fitted(self, votes: list[Counted], sweeps: int) -> FloatArray:
        """Return the fit to the votes from the share of least loss (empirical Bayes)."""
        mixed = [self.mixed(share) for share in (_SHARES if self.once is not None else (0.0,))]
        fits = [(prior, fit(prior, votes, sweeps)) for prior in mixed]
        return min(fits, key=lambda found: misfit(found[0], found[1], votes))[1]


def doubt_of(
    chain: Chain, noisy: FloatArray, b: float, cases: float, longest: int, settings: Constants, rng: np.random.Generator
) -> Doubt | None:
    """Return the doubt that ``noisy`` relations of noise scale ``b`` leave, or None.

    An activity certainly repeats if, beyond noise, it follows itself or occurs more often than there are cases to have
    it. Akaike weights give the likelihood that no other activity does. They compare the relations of both kinds of
    walks with the noisy ones, under Laplace noise. The chain was made of the noisy relations. So it is expected to be
    nearer by a nat for each activity that its walks repeat, even where noise alone makes it so (H. Akaike, IEEE
    Transactions on Automatic Control 19, 1974; weights: Burnham and Anderson 2002, 2.9).
    """
    _, over, deviation = left_over(chain.flow, b)
    certain = (over > settings.beyond * deviation) | (noisy.diagonal()[:-1] > settings.beyond * math.sqrt(2) * b)
    repeating = Doubt(certain, 0.0)
    usual, once = (one.sample(_WALKS, longest, rng) for one in (chain, repeating.chain(chain)))
    doubtful = (occurrences(usual, chain.size) > 1).any(axis=0) & ~certain
    if not doubtful.any():
        return None
    nearer = (_relations_error(once, noisy, cases, settings) - _relations_error(usual, noisy, cases, settings)) / b
    likely = min(0.5, 1 / (1 + math.exp(min(nearer - int(doubtful.sum()), 100.0))))
    return Doubt(certain, likely) if likely >= settings.least_doubt else None


def _relations_error(walks: Traces, noisy: FloatArray, cases: float, settings: Constants) -> float:
    """Return the distance of noisy relations from those of as many walks as cases."""
    weights = np.minimum(1.0, settings.contribution / (walks.lengths + 1)) * cases / len(walks)
    off = np.abs(relation_sums(walks, weights, len(noisy) - 1) - noisy)
    off[-1, -1] = 0.0  # cases without an event are not sampled
    return float(off.sum())


def imagine_pool(
    chain: Chain, doubt: Doubt | None, longest: int, room: int, settings: Constants, rng: np.random.Generator
) -> tuple[Traces, Prior]:
    """Return the first pool, distinct walks over the chain, and its prior."""
    kinds = [chain] if doubt is None else [chain, doubt.chain(chain)]
    number = settings.pool // len(kinds)
    walks = [kind.sample(number, longest, rng, room=room) for kind in kinds]
    both = join_traces(walks)
    of = np.repeat(np.arange(len(kinds)), number)
    weights = [(of == kind) / number for kind in range(len(kinds))]
    pool, usual = distinct(both, weights[0])
    if doubt is None:
        return pool, Prior(usual)
    return pool, Prior(usual, distinct(both, weights[1])[1], doubt.likely)
