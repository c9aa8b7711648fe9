"""Frequent real variants, put into a release of synthetic ones or released alone.

A synthetic release shows where the cases of a log are, not that any of its traces exists. With a delta above 0 the
curator can name frequent variants that do (:meth:`Curator.partitions`): every variant that it returns occurs in the
log, whatever the noise. Putting them into the release is post-processing. Each takes its noisy number of cases from the
synthetic variants nearest to it, so that the mass of the release stays where it is.

Released alone, they are the output of TraVaS. Unlike there, every case of the log votes for the variant that is nearest
to it. So rare cases, which have no variant of their own in the release, are not lost but stand where they resemble it
most.

Sampling builds on them, too. A variant that the curator names exists, and its noisy number of cases is nearly right. So
it is a trace of the pool, a prototype of every round, and its relations are part of the chain. Where few variants hold
most cases, the chain needs nothing else. Sampled traces are then mutants of the real ones and walks over their
relations. The directly-follows query is not made, and its epsilon finds more variants and makes votes better.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cdist

from veilog._typing import Float32Array, FloatArray, Int32Array, IntArray
from veilog.logs.variants import Sequences, Variants
from veilog.messages import Message
from veilog.methods.evolve.chain import Chain, Shortened, relation_sums
from veilog.methods.evolve.constants import Constants
from veilog.methods.evolve.prototypes import Counted, fit, next_generation, round_weights
from veilog.methods.evolve.traces import PAD, Traces, distinct, join_traces, nearest, occurrences, strings, strings_of
from veilog.methods.method import Request
from veilog.privacy.curator import Curator

_PAIRS = 8_000_000
"""Distances held at a time; beyond it the most frequent real variants are settled first."""
_CHUNK = 16_384
_SEED = 1e-9
"""Weight of a known trace that has none in a pool, so that votes can give it some."""


@dataclass(frozen=True, eq=False)
class RealVariants:
    """Real variants that can be sampled, most frequent first, and their noisy counts."""

    traces: Traces
    cases: FloatArray

    def __len__(self) -> int:
        return len(self.traces)

    @staticmethod
    def of(real: Variants, codes: Int32Array | IntArray, shortened: Shortened) -> RealVariants:
        """Return the ``real`` variants that can be sampled.

        They are no longer than sampled traces are, and their activities all have a state. ``codes`` are the public
        codes of their labels. Other variants are put into the release at its end only.
        """
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
        """Return the chain of these cases, each counted as in the query for relations."""
        weights = self.cases * np.minimum(1.0, settings.contribution / (self.traces.lengths + 1))
        flow = relation_sums(self.traces, weights, size)
        return Chain(flow, flow > 0)

    def joined_with(self, chain: Chain, settings: Constants) -> Chain:
        """Return the chain with at least the relations and repeats of these cases."""
        own = self.chain(chain.size, settings)
        repeats = chain.repeats
        if repeats is not None:
            again = (occurrences(self.traces, chain.size) > 1).any(axis=0)
            repeats = np.where(again, np.maximum(repeats, settings.once_below), repeats)
        return Chain(np.maximum(chain.flow, own.flow), chain.support | own.support, chain.second, repeats)

    def pool(
        self, walks: Traces, chain: Chain, imagined: float, settings: Constants, rng: np.random.Generator
    ) -> tuple[Traces, FloatArray]:
        """Return the first pool: walks, mutants and these traces.

        Walks over the chain and mutants have a share of ``imagined``, half each. These traces have the rest, by their
        cases.
        """
        weights = self.cases / self.cases.sum()
        mutants, chances = next_generation(self.traces, weights, chain, replace(settings, resampled=0.0), rng)
        parts = [np.full(len(walks), imagined / 2 / len(walks)), (1 - imagined) * weights]
        if len(mutants):
            parts.insert(1, imagined / 2 * chances / chances.sum())
        prior = np.concatenate(parts)
        return distinct(join_traces([walks, mutants, self.traces]), prior / prior.sum())

    def counted(self, pool: Traces, deviation: float) -> Counted:
        """Return the cases and noise of each of these traces; nothing is known of others."""
        place = {text: i for i, text in enumerate(strings(self.traces))}
        cells = np.array([place.get(text, len(self)) for text in strings(pool)], dtype=np.int64)
        return Counted(cells, np.append(self.cases, 0.0), np.append(np.full(len(self), deviation), np.inf))

    def kept_in(self, pool: Traces, prior: FloatArray) -> tuple[Traces, FloatArray]:
        """Return the pool with these traces in it."""
        return distinct(join_traces([pool, self.traces]), np.concatenate([prior, np.full(len(self), _SEED)]))


def insert_real(synthetic: Variants, real: Variants) -> Variants:
    """Return the release with the ``real`` variants in place of the nearest cases.

    Pairs are settled in the order of their normalised Levenshtein distance. Where the real variants have more cases
    than the release, only theirs are left.
    """
    if len(synthetic) == 0 or len(real) == 0:
        return real if len(synthetic) == 0 else synthetic
    code = {label: i for i, label in enumerate(sorted({*synthetic.labels, *real.labels}))}
    ours, theirs = ([[code[a] for a in sequence] for sequence in v.sequences] for v in (synthetic, real))
    left = synthetic.counts.copy()
    often = real.by_frequency()
    rows = max(1, _PAIRS // len(ours))
    for start in range(0, len(often), rows):
        chosen = often[start : start + rows]
        distances = cdist([theirs[i] for i in chosen], ours, scorer=Levenshtein.normalized_distance, dtype=np.float32)
        _settle(distances, real.counts[chosen], left)
    counts = [*left.tolist(), *real.counts.tolist()]
    return Variants.from_sequences([*synthetic.sequences, *real.sequences], counts)


def _settle(distances: Float32Array, counts: IntArray, left: IntArray) -> None:
    """Take the rows' ``counts`` from what is ``left`` in the columns, nearest first."""
    wanted = counts.copy()
    order = np.argsort(distances, axis=None, kind="stable")
    for start in range(0, len(order), _CHUNK):
        if not wanted.any() or not left.any():
            return
        row, column = np.divmod(order[start : start + _CHUNK], len(left))
        open_ = np.flatnonzero((wanted[row] > 0) & (left[column] > 0))
        for i, j in zip(row[open_].tolist(), column[open_].tolist(), strict=True):
            moved = min(wanted[i], left[j])
            wanted[i] -= moved
            left[j] -= moved


def only_real_variants(curator: Curator, request: Request, settings: Constants, real_share: float | None) -> Variants:
    """Return frequent, certainly real variants with about the cases nearest to each.

    There are two queries. The first finds the frequent variants, for ``real_share`` of epsilon and all of delta. The
    second is a histogram, for the rest of epsilon: every case votes for the nearest of them (Levenshtein distance over
    the longer length). Together they use (epsilon, delta). Of very many variants, only the most frequent are compared
    with cases that have none of them. The votes are fitted to the variants' own noisy counts, as to a prior.
    """
    share = Fraction(str(settings.real_share_alone if real_share is None else real_share))
    real = request.obeying(curator.partitions(request.epsilon * share, request.delta, purpose="frequent-real-variants"))
    if len(real) == 0:
        request.remark(Message("evolve-nothing-certain"))
        return real
    e = request.epsilon * (1 - share)
    activities = curator.activities
    names = strings_of(real.sequences, activities)
    bins = {name: i for i, name in enumerate(names)}
    often = real.by_frequency()[: settings.most_prototypes]
    near = [names[i] for i in often.tolist()]

    def nearest_variant(sequences: Sequences) -> IntArray:
        text = strings_of(sequences, activities)
        found = np.array([bins.get(name, -1) for name in text], dtype=np.int64)
        others = np.flatnonzero(found < 0)
        found[others] = often[nearest([text[i] for i in others.tolist()], near)]
        return found

    votes = curator.histogram(nearest_variant, len(real), e, purpose="votes-for-real-variants")
    cases = max(int(votes.sum()), real.cases, settings.fewest_cases)
    least, divisor, most = settings.prior_cases
    trust = settings.anchored_trust * min(max(float(request.epsilon) * cases / divisor, least), most)
    deviation = math.sqrt(2 * trust) / (float(e) * cases)
    shares = Counted(np.arange(len(real)), votes / cases, deviation)
    p = fit(real.counts / real.cases, [shares], settings.fit_sweeps)
    counts = np.maximum(round_weights(np.maximum(cases * p, 1.0), 0.0, cases), 1)
    request.remark(Message("evolve-all-variants-real"))
    return real.with_counts(counts)
