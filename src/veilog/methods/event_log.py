"""From released variants to released cases: one row a case, in random order."""

from __future__ import annotations

import numpy as np

from veilog.logs.variants import Sequences, Variants

__all__ = ["released_cases"]


def released_cases(variants: Variants, rng: np.random.Generator) -> Sequences:
    """Every case of the variants as a row of its own, in an order that says nothing about the original's."""
    owner = np.repeat(np.arange(len(variants)), variants.counts)
    owner = owner[rng.permutation(len(owner))]
    lengths = variants.lengths[owner]
    offsets = np.zeros(len(owner) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    position = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
    codes = variants.codes[np.repeat(variants.offsets[owner], lengths) + position]
    return Sequences(variants.labels, codes, offsets)
