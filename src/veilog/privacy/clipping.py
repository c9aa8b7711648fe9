"""How much a case may add to a sum: its L1 norm is cut to a bound, in integers, by what the case itself holds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from veilog.errors import ParameterError
from veilog.logs.variants import Sequences, Variants

__all__ = ["Features", "check_sums", "clipped", "contributions", "exact_sums", "sums_mechanism"]

IntArray = npt.NDArray[np.int64]

Features = Callable[[Sequences], tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike]]
"""Maps each sequence, by itself, to a vector of integers: (rows, columns, values), equal places added up."""

_BLOCK = 65_536
_LARGEST_SIZE = 50_000_000
_LARGEST_SCALE = 2**32
_LARGEST_VALUE = 2**30


def check_sums(size: int, bound: int, resolution: int) -> None:
    """Refuse sums that could not be held or added up exactly, before anything is spent."""
    for name, value in (("size", size), ("bound", bound), ("resolution", resolution)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ParameterError(f"{name} must be a whole number from 1 on, not {value!r}.", parameter=name)
    if size > _LARGEST_SIZE or resolution * bound > _LARGEST_SCALE:
        raise ParameterError(f"{size} sums of contributions up to {bound} are too large.", parameter="bound")


def sums_mechanism(bound: int, resolution: int) -> str:
    """The noise of sums of such contributions, in words."""
    return f"discrete Laplace, scale {bound}/epsilon" + (f" in steps of 1/{resolution}" if resolution > 1 else "")


def exact_sums(variants: Variants, features: Features, size: int, bound: int, resolution: int) -> IntArray:
    """The sums of what the cases contribute, clipped, in blocks."""
    sequences = variants.sequences
    sums = np.zeros(size, dtype=np.int64)
    for start in range(0, len(sequences), _BLOCK):
        block = sequences.rows(start, min(start + _BLOCK, len(sequences)))
        rows, columns, contributed = contributions(features(block), len(block), size, bound, resolution)
        np.add.at(sums, columns, contributed * variants.counts[start:][rows])
    return sums


def contributions(
    triples: tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike], n: int, size: int, bound: int, resolution: int
) -> tuple[IntArray, IntArray, IntArray]:
    """What a function of features gave for ``n`` cases (rows, columns, values), checked and clipped."""
    rows, columns, values = (np.asarray(part) for part in triples)
    if rows.ndim != 1 or not rows.shape == columns.shape == values.shape:
        raise ParameterError("features must give as many rows as columns and values.", parameter="features")
    if len(rows) == 0:
        nothing = np.zeros(0, dtype=np.int64)
        return nothing, nothing, nothing
    if not all(np.issubdtype(part.dtype, np.integer) for part in (rows, columns, values)):
        raise ParameterError("features must give integers.", parameter="features")
    if rows.min() < 0 or rows.max() >= n or columns.min() < 0 or columns.max() >= size:
        raise ParameterError("features must give places inside the vectors.", parameter="features")
    return rows.astype(np.int64), columns.astype(np.int64), clipped(rows, values, n, bound, resolution)


def clipped(rows: npt.ArrayLike, values: npt.ArrayLike, n: int, bound: int, resolution: int) -> IntArray:
    """The entries of ``n`` sparse vectors times ``resolution``, those of vectors above the L1 bound scaled down.

    ``floor(|v_i| resolution bound / |v|_1)``, summed over i, is at most ``resolution bound``; entries with equal places
    only cancel, so adding them up later cannot raise the norm.
    """
    rows, values = np.asarray(rows, dtype=np.int64), np.asarray(values, dtype=np.int64)
    if len(values) and max(int(values.max()), -int(values.min())) >= _LARGEST_VALUE:
        raise ParameterError("The values of the features are too large to be added up exactly.", parameter="features")
    sizes = np.abs(values)
    norms = np.zeros(n, dtype=np.int64)
    np.add.at(norms, rows, sizes)
    norm = norms[rows]
    scaled = np.where(norm > bound, sizes * (resolution * bound) // np.maximum(norm, 1), sizes * resolution)
    signed: IntArray = np.sign(values) * scaled
    return signed
