"""Where ``evolve`` goes on from frequent variants that are known to be real, which it may ask for with a delta.

A variant that the curator names exists, and its noisy number of cases is nearly right. So it is a trace of the pool, a
prototype of every round, and its relations are part of the chain. Where few variants hold most cases nothing else needs
to be known of the chain: the traces that are imagined are mutants of the real ones and walks over their relations, the
directly-follows question is not asked, and what it would have cost finds more variants and buys better votes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from veilog._typing import FloatArray, Int32Array
from veilog.logs.variants import Variants
from veilog.methods.evolve.chain import Chain, Shortened, relation_features
from veilog.methods.evolve.constants import Constants
from veilog.methods.evolve.traces import PAD, Traces, distinct, joined, occurrences, strings
from veilog.methods.evolve.votes import Counted, next_generation

_SEED = 1e-9
"""Weight of a known trace that has none in a pool, so that votes can give it some."""


@dataclass(frozen=True, eq=False)
class RealVariants:
    """Real variants that can be imagined, the most frequent first, and their noisy numbers of cases."""

    traces: Traces
    cases: FloatArray

    def __len__(self) -> int:
        return len(self.traces)

    @staticmethod
    def of(real: Variants, codes: Int32Array, shortened: Shortened) -> RealVariants:
        """Those of the ``real`` variants that are no longer than imagined traces are and whose activities all have a
        state; ``codes`` are the public codes of their labels. Others are put into the release at its end only."""
        sequences, lengths = real.sequences, real.lengths
        states = shortened.states[codes[sequences.codes]]
        owner = np.repeat(np.arange(len(real)), lengths)
        lost = np.bincount(owner[states < 0], minlength=len(real)) > 0
        fits = ~lost & (lengths > 0) & (lengths <= shortened.max_length) & (real.counts > 0)
        rows = np.flatnonzero(fits)[np.argsort(-real.counts[fits], kind="stable")]
        width = max(int(lengths[fits].max(initial=1)), shortened.room)
        matrix = np.full((len(real), width), PAD, dtype=np.int32)
        place = np.arange(len(states)) - sequences.offsets[owner]
        inside = place < width
        matrix[owner[inside], place[inside]] = states[inside]
        return RealVariants(Traces(matrix[rows], lengths[rows].astype(np.int64)), real.counts[rows].astype(np.float64))

    def chain(self, size: int, settings: Constants) -> Chain:
        """The relations of these cases, each case counted as the question for relations counts it."""
        used = np.arange(self.traces.codes.shape[1]) < self.traces.lengths[:, None]
        bounds = np.concatenate([[0], np.cumsum(self.traces.lengths)])
        owner, cell, ones = relation_features(self.traces.codes[used], bounds, size)
        weight = self.cases * np.minimum(1.0, settings.contribution / (self.traces.lengths + 1))
        sums = np.bincount(cell, weights=ones * weight[owner], minlength=(size + 1) ** 2).astype(np.float64)
        flow = sums.reshape(size + 1, size + 1)
        return Chain(flow, flow > 0)

    def joined_with(self, chain: Chain, settings: Constants) -> Chain:
        """The chain with at least the relations of these cases, and what they repeat."""
        own = self.chain(chain.size, settings)
        repeats = chain.repeats
        if repeats is not None:
            again = (occurrences(self.traces, chain.size) > 1).any(axis=0)
            repeats = np.where(again, np.maximum(repeats, settings.once_below), repeats)
        return Chain(np.maximum(chain.flow, own.flow), chain.support | own.support, chain.second, repeats)

    def pool(
        self, walks: Traces, chain: Chain, imagined: float, settings: Constants, rng: np.random.Generator
    ) -> tuple[Traces, FloatArray]:
        """The first pool: a share of ``imagined`` for walks over the chain and mutants, half each, the rest for these
        traces by their cases."""
        weights = self.cases / self.cases.sum()
        mutants, chances = next_generation(self.traces, weights, chain, replace(settings, resampled=0.0), rng)
        parts = [np.full(len(walks), imagined / 2 / len(walks)), (1 - imagined) * weights]
        if len(mutants):
            parts.insert(1, imagined / 2 * chances / chances.sum())
        prior = np.concatenate(parts)
        return distinct(joined([walks, mutants, self.traces]), prior / prior.sum())

    def counted(self, pool: Traces, deviation: float) -> Counted:
        """How many cases have each of these traces, with the deviation of its noise; of all others nothing is known."""
        place = {text: i for i, text in enumerate(strings(self.traces))}
        cells = np.array([place.get(text, len(self)) for text in strings(pool)], dtype=np.int64)
        return Counted(cells, np.append(self.cases, 0.0), np.append(np.full(len(self), deviation), np.inf))

    def kept_in(self, pool: Traces, prior: FloatArray) -> tuple[Traces, FloatArray]:
        """The pool with these traces in it."""
        return distinct(joined([pool, self.traces]), np.concatenate([prior, np.full(len(self), _SEED)]))
