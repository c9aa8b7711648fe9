"""Drawing a column for each row of a decoder's outputs, in few passes over them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["by_chance"]

FloatArray = npt.NDArray[Any]
IntArray = npt.NDArray[np.int64]

_BLOCK = 32


def by_chance(logits: FloatArray, rng: np.random.Generator) -> IntArray:
    """A column for each row, with probabilities proportional to ``exp(logits)``; the logits are overwritten.

    The column at which the chances of the columns before it exceed a uniform share of all: first its block of columns,
    by the sums of the blocks, then its place in the block, so that only sums are taken of most columns.
    """
    rows, columns = logits.shape
    logits -= logits.max(axis=1, keepdims=True)
    chances = np.exp(logits, out=logits)
    sums = np.add.reduceat(chances, np.arange(0, columns, _BLOCK), axis=1)
    reached = np.cumsum(sums, axis=1)
    at: FloatArray = np.asarray(rng.random(rows, dtype=np.float32)) * reached[:, -1]
    block = np.minimum((reached <= at[:, None]).sum(axis=1), sums.shape[1] - 1)
    row = np.arange(rows)
    at -= reached[row, block] - sums[row, block]
    places = block[:, None] * _BLOCK + np.arange(_BLOCK)
    inside = np.where(places < columns, chances[row[:, None], np.minimum(places, columns - 1)], 0)
    chosen: IntArray = block * _BLOCK + (np.cumsum(inside, axis=1) <= at[:, None]).sum(axis=1)
    np.minimum(chosen, columns - 1, out=chosen)  # rounding may leave a uniform number above all sums
    return chosen
