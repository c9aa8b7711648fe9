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

from veilog.logs.variants import Variants

__all__ = ["with_real"]


def with_real(synthetic: Variants, real: Variants) -> Variants:
    """The release with the ``real`` variants and their counts in the place of synthetic cases that are nearest.

    Pairs are settled in the order of their normalised Levenshtein distance. Where the real variants have more cases
    than the release, theirs are all that is left.
    """
    if len(synthetic) == 0 or len(real) == 0:
        return real if len(synthetic) == 0 else synthetic
    code = {label: i for i, label in enumerate(sorted({*synthetic.labels, *real.labels}))}
    ours, theirs = ([[code[a] for a in sequence] for sequence in v.sequences] for v in (synthetic, real))
    distances = cdist(theirs, ours, scorer=Levenshtein.normalized_distance, dtype=np.float32)
    left, wanted = synthetic.counts.copy(), real.counts.copy()
    for pair in np.argsort(distances, axis=None, kind="stable").tolist():
        row, column = divmod(pair, len(ours))
        moved = min(int(wanted[row]), int(left[column]))
        wanted[row] -= moved
        left[column] -= moved
    counts = [*left.tolist(), *real.counts.tolist()]
    return Variants.from_sequences([*synthetic.sequences, *real.sequences], counts)
