"""Drawing columns from a trained generator, in blocks and in few passes over them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from veilog._typing import AnyArray, IntArray
from veilog.methods.travag.networks import forward, sigmoid
from veilog.methods.travag.settings import Networks, Trained
from veilog.methods.travag.steps import normals

_BLOCK = 32
_DRAWS = 1024


def sample(trained: Trained, n: int, rng: np.random.Generator) -> IntArray:
    """Return how often each column is among ``n`` draws.

    The draws are made in blocks, so the memory does not grow with ``n``.
    """
    counts = np.zeros(len(trained.columns), dtype=np.int64)
    for chosen in draws(trained, n, rng):
        counts += np.bincount(chosen, minlength=len(counts))
    return counts


def draws(trained: Trained, n: int, rng: np.random.Generator) -> Iterator[IntArray]:
    """Yield the columns of ``n`` draws, one after the other, in blocks."""
    networks = Networks.of(len(trained.columns), trained.configuration)
    # the columns in the order of their activities, written with commas between them
    names = list(map(",".join, trained.columns))
    place = np.array(sorted(range(len(names)), key=names.__getitem__), dtype=np.int64)
    for start in range(0, n, _DRAWS):
        rows = min(_DRAWS, n - start)
        code = forward(networks.generator, trained.weights, normals(rng, rows, trained.configuration)).output
        logits = forward(networks.decoder, trained.weights, code).output
        if trained.configuration.drawn:
            yield draw_by_logits(logits, rng)
        elif trained.configuration.of_program:
            # several outputs may be rounded to 1, and the program takes the first by name
            yield place[sigmoid(logits)[:, place].argmax(axis=1)]
        else:
            # the largest output is the largest before its sigmoid
            yield logits.argmax(axis=1)


def draw_by_logits(logits: AnyArray, rng: np.random.Generator) -> IntArray:
    """Return a column for each row, with chances proportional to ``exp(logits)``.

    The logits are overwritten. The column is the one at which the chances of the columns before it exceed a uniform
    share of all. First its block of columns is found, by the sums of the blocks, then its place in the block. So only
    sums are taken of most columns.
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
