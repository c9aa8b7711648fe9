"""Frequent variants that are certain to be real: put into a release of synthetic ones, or released alone.

A synthetic release says where the cases of a log are, not that any of its traces exists. With a delta above 0 the
curator can name frequent variants that do (:meth:`Curator.partitions`): every variant that it returns occurs in the
log, whatever the noise. Putting them into the release is post-processing: each takes its noisy number of cases from the
synthetic variants nearest to it, so that the mass of the release stays where it is.

Alone they are what TraVaS releases; unlike there, every case of the log votes for the one that is nearest to it, so
rare cases, which have no variant of their own in the release, are not lost but stand where they resemble it most.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cdist

from veilog._typing import Float32Array, IntArray
from veilog.logs.variants import Sequences, Variants
from veilog.messages import Message
from veilog.methods.evolve.constants import Constants
from veilog.methods.evolve.traces import nearest, public_codes, strings_of
from veilog.methods.evolve.votes import fit, rounded
from veilog.methods.method import Request
from veilog.privacy.curator import Curator

_PAIRS = 8_000_000
"""Distances held at a time; beyond it the most frequent real variants are settled first."""
_CHUNK = 16_384


def with_real(synthetic: Variants, real: Variants) -> Variants:
    """The release with the ``real`` variants and their counts in the place of synthetic cases that are nearest.

    Pairs are settled in the order of their normalised Levenshtein distance. Where the real variants have more cases
    than the release, theirs are all that is left.
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
    """Take the ``counts`` of the rows from what is ``left`` in the columns, nearest pairs first."""
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
    """Frequent variants that are certain to be real, each with about as many cases as are nearest to it.

    Two questions: which variants are frequent, for ``real_share`` of epsilon and all of delta; and, for the rest of
    epsilon, a vote of every case for the nearest of them (Levenshtein distance over the longer length), a histogram:
    (epsilon, delta) together. Of very many, only the most frequent are held against cases that have none of them. The
    votes are fitted to the variants' own noisy counts, as to a prior.
    """
    share = Fraction(str(settings.real_share_alone if real_share is None else real_share))
    real = curator.partitions(request.epsilon * share, request.delta, purpose="frequent-real-variants")
    if len(real) == 0:
        request.remark(Message("evolve-nothing-certain"))
        return real
    e = request.epsilon * (1 - share)
    activities = curator.activities
    names = strings_of(real.sequences, public_codes(real.sequences, activities))
    bins = {name: i for i, name in enumerate(names)}
    often = real.by_frequency()[: settings.most_prototypes]
    near = [names[i] for i in often.tolist()]

    def nearest_variant(sequences: Sequences) -> IntArray:
        text = strings_of(sequences, public_codes(sequences, activities))
        found = np.array([bins.get(name, -1) for name in text], dtype=np.int64)
        others = np.flatnonzero(found < 0)
        found[others] = often[nearest([text[i] for i in others.tolist()], near)]
        return found

    votes = curator.histogram(nearest_variant, len(real), e, purpose="votes-for-real-variants")
    cases = max(int(votes.sum()), real.cases, settings.fewest_cases)
    least, divisor, most = settings.prior_cases
    trust = settings.anchored_trust * min(max(float(request.epsilon) * cases / divisor, least), most)
    deviation = math.sqrt(2 * trust) / (float(e) * cases)
    p = fit(real.counts / real.cases, [np.arange(len(real))], [votes / cases], [deviation], settings.fit_sweeps)
    counts = np.maximum(rounded(np.maximum(cases * p, 1.0), 0.0, cases), 1)
    request.remark(Message("evolve-all-variants-real"))
    return real.with_counts(counts)
