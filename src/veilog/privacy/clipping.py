"""How much a case may add to a sum: its L1 norm is cut to a bound, in integers, by what the case itself holds."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from veilog._typing import IntArray
from veilog.errors import ParameterError
from veilog.logs.variants import Sequences, Variants
from veilog.privacy.asking import Triples, triples_of
from veilog.privacy.mechanisms.noise import check_scale

__all__ = ["LARGEST_VALUE", "Features", "check_sums", "clipped", "contributions", "exact_sums", "sums_mechanism"]


Features = Callable[[Sequences], tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike]]
"""Maps each sequence, by itself, to a vector of integers: (rows, columns, values), equal places added up."""

_BLOCK = 65_536
_LARGEST_SIZE = 50_000_000
_LARGEST_SCALE = 2**32
LARGEST_VALUE = 2**30
"""A larger entry counts as this: cut by what the case itself holds, as is everything here."""


def check_sums(size: int, bound: int, resolution: int, epsilon: Fraction) -> None:
    """Refuse sums that could not be held, added up or drawn noise for exactly, before anything is spent."""
    for name, value in (("size", size), ("bound", bound), ("resolution", resolution)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ParameterError(f"{name} must be a whole number from 1 on, not {value!r}.", parameter=name)
    if size > _LARGEST_SIZE or resolution * bound > _LARGEST_SCALE:
        raise ParameterError(f"{size} sums of contributions up to {bound} are too large.", parameter="bound")
    check_scale(epsilon / (resolution * bound))


def sums_mechanism(bound: int, resolution: int) -> str:
    """The noise of sums of such contributions, in words."""
    return f"discrete Laplace, scale {bound}/epsilon" + (f" in steps of 1/{resolution}" if resolution > 1 else "")


def exact_sums(variants: Variants, features: Features, size: int, bound: int, resolution: int) -> IntArray:
    """The sums of what the cases contribute, clipped, in blocks."""
    sequences = variants.sequences
    sums = np.zeros(size, dtype=np.int64)
    for start in range(0, len(sequences), _BLOCK):
        block = sequences.rows(start, min(start + _BLOCK, len(sequences)))
        triples = triples_of(features, block, size, LARGEST_VALUE, check=start == 0)
        rows, columns, contributed = contributions(triples, len(block), bound, resolution)
        np.add.at(sums, columns, contributed * variants.counts[start:][rows])
    return sums


def contributions(triples: Triples, n: int, bound: int, resolution: int) -> Triples:
    """What a function of features gave for ``n`` cases (rows, columns, values), clipped."""
    rows, columns, values = triples
    return rows, columns, clipped(rows, values, n, bound, resolution)


def clipped(rows: npt.ArrayLike, values: npt.ArrayLike, n: int, bound: int, resolution: int) -> IntArray:
    """The entries of ``n`` sparse vectors times ``resolution``, those of vectors above the L1 bound scaled down.

    ``floor(|v_i| resolution bound / |v|_1)``, summed over i, is at most ``resolution bound``; entries with equal places
    only cancel, so adding them up later cannot raise the norm.
    """
    rows, values = np.asarray(rows, dtype=np.int64), np.asarray(values, dtype=np.int64)
    values = np.clip(values, -LARGEST_VALUE, LARGEST_VALUE)  # so that no norm and no product overflows
    sizes = np.abs(values)
    norms = np.zeros(n, dtype=np.int64)
    np.add.at(norms, rows, sizes)
    norm = norms[rows]
    scaled = np.where(norm > bound, sizes * (resolution * bound) // np.maximum(norm, 1), sizes * resolution)
    signed: IntArray = np.sign(values) * scaled
    return signed
