"""Drawing a column for each row of a decoder's outputs, in few passes over them."""

from __future__ import annotations

import numpy as np

from veilog._typing import AnyArray, IntArray

_BLOCK = 32


def by_chance(logits: AnyArray, rng: np.random.Generator) -> IntArray:
    """A column for each row, with probabilities proportional to ``exp(logits)``; the logits are overwritten.

    The column at which the chances of the columns before it exceed a uniform share of all: first its block of columns,
    by the sums of the blocks, then its place in the block, so that only sums are taken of most columns.
    """
    rows, columns = logits.shape
    logits -= logits.max(axis=1, keepdims=True)
    chances = np.exp(logits, out=logits)
    sums = np.add.reduceat(chances, np.arange(0, columns, _BLOCK), axis=1)
    reached = np.cumsum(sums, axis=1)
    at: AnyArray = np.asarray(rng.random(rows, dtype=np.float32)) * reached[:, -1]
    block = np.minimum((reached <= at[:, None]).sum(axis=1), sums.shape[1] - 1)
    row = np.arange(rows)
    at -= reached[row, block] - sums[row, block]
    places = block[:, None] * _BLOCK + np.arange(_BLOCK)
    inside = np.where(places < columns, chances[row[:, None], np.minimum(places, columns - 1)], 0)
    chosen: IntArray = block * _BLOCK + (np.cumsum(inside, axis=1) <= at[:, None]).sum(axis=1)
    np.minimum(chosen, columns - 1, out=chosen)  # rounding may leave a uniform number above all sums
    return chosen
