"""Frequent variants that are certain to be real, put into a release of synthetic ones.

A synthetic release says where the cases of a log are, not that any of its traces exists. With a delta above 0 the
curator can name frequent variants that do (:meth:`Curator.partitions`): every variant that it returns occurs in the
log, whatever the noise. Putting them into the release is post-processing: each takes its noisy number of cases from the
synthetic variants nearest to it, so that the mass of the release stays where it is.
"""

from __future__ import annotations

import numpy as np
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cdist

from veilog._typing import Float32Array, IntArray
from veilog.logs.variants import Variants

__all__ = ["with_real"]

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
