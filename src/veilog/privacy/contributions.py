"""Contributions of cases to a sum, clipped to a norm in integers, each by itself.

The norm is L1 where the noise is Laplace, and L2 where it is Gaussian. Where it is of cubes, each number is clipped.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from veilog.errors import ParameterError
from veilog.logs.variants import Sequences, Variants
from veilog.privacy.case_functions import Triples, added_up, triples_of
from veilog.privacy.histograms import gaussian_rounds
from veilog.privacy.mechanisms.mechanism import GaussianRounds, Laplace, Norm
from veilog.privacy.mechanisms.noise import check_scale

IntArray = npt.NDArray[np.int64]

Features = Callable[[Sequences], tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike]]
"""Function of each sequence, by itself, to a vector of integers: (rows, columns, values), equal places added up."""

_BLOCK = 65_536
CUBE_UNIT = 64
"""Unit of sums with noise of cubes: a case adds to a number a multiple of one over this, and 1 at most."""
LARGEST_SIZE = 50_000_000
_LARGEST_SCALE = 2**32
_LARGEST_NORM = 2**30
LARGEST_VALUE = 2**30
"""Largest entry; a larger one counts as this: cut by what the case itself holds, as is everything here."""
LARGEST_IN_SQUARES = 2**18
"""Largest entry where squares are added up: the sum over all entries of a vector stays below 2**62."""


def check_sums(size: int, bound: int, resolution: int, epsilon: Fraction) -> None:
    """Refuse sums without exact storage, addition or noise, before anything is spent."""
    check_size_and_bound(size, bound, resolution)
    check_scale(epsilon / (resolution * bound))


def steps_of_cubes(width: int, epsilon: Fraction) -> int:
    """Return the resolution of sums with noise of cubes, a multiple of ``CUBE_UNIT``.

    It is so fine that few drawn sizes of cubes are rejected.
    """
    return CUBE_UNIT * max(1, math.ceil(width * epsilon / CUBE_UNIT))


def check_size_and_bound(size: int, bound: int, resolution: int) -> None:
    """Refuse sums that could not be held or added up."""
    for name, value in (("size", size), ("bound", bound), ("resolution", resolution)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ParameterError("map-number-not-whole", parameter=name, name=name, value=value)
    if size > LARGEST_SIZE or resolution * bound > _LARGEST_SCALE:
        raise ParameterError("contributions-sums-too-large", parameter="bound", size=size, bound=bound)


def noise_of_sums(
    bound: int, resolution: int, epsilon: Fraction, delta: Fraction
) -> tuple[Laplace | GaussianRounds, Norm]:
    """Return the noise for contributions up to ``bound``, and the bounded norm.

    Contributions are in units of ``1/resolution``. Without a delta it is the L1 norm, and Laplace noise. With one it is
    the L2 norm, and discrete Gaussian noise, which is Gaussian noise rounded to integers. The cost of the Gaussian
    mechanism follows from the L2 norm of a case's vector, measured in its deviations (:mod:`veilog.privacy.histograms`:
    one round, where a case changes the answer by ``resolution * bound``).
    """
    if delta == 0:
        return Laplace(bound / epsilon, grid=resolution), "L1"
    if resolution * bound > _LARGEST_NORM:
        raise ParameterError("contributions-too-large", parameter="bound", bound=bound)
    return gaussian_rounds((Fraction(1),), epsilon, delta, by=resolution * bound), "L2"


def exact_sums(
    variants: Variants, features: Features, size: int, bound: int, resolution: int, norm: Norm = "L1"
) -> IntArray:
    """Return the sums of the cases' clipped contributions, in blocks."""
    sequences = variants.sequences
    sums = np.zeros(size, dtype=np.int64)
    for start in range(0, len(sequences), _BLOCK):
        block = sequences.rows(start, min(start + _BLOCK, len(sequences)))
        triples = triples_of(features, block, size, LARGEST_VALUE, check=start == 0)
        rows, columns, contributed = contributions(triples, len(block), bound, resolution, norm)
        np.add.at(sums, columns, contributed * variants.counts[start:][rows])
    return sums


def contributions(triples: Triples, n: int, bound: int, resolution: int, norm: Norm = "L1") -> Triples:
    """Return the clipped (rows, columns, values) of ``n`` cases' features."""
    if norm == "L2":
        rows, columns, values = added_up(triples)
        return rows, columns, clipped_euclidean(rows, values, n, bound, resolution)
    rows, columns, values = triples
    return rows, columns, clip_rows(rows, values, n, bound, resolution)


def cut_to_row(triples: Triples, n: int, width: int) -> tuple[IntArray, IntArray]:
    """Return columns and values of ``n`` sparse vectors, each cut to its first row.

    A row has ``width`` columns, and it is the first in which the vector has an entry. Values are cut to ``CUBE_UNIT``.
    So each vector is in one row, and no number of it is larger.
    """
    rows, columns, values = added_up(triples)
    first = np.full(n, LARGEST_SIZE, dtype=np.int64)
    np.minimum.at(first, rows, columns // width)
    kept = columns // width == first[rows]
    return columns[kept], np.clip(values[kept], -CUBE_UNIT, CUBE_UNIT)


def clip_rows(rows: npt.ArrayLike, values: npt.ArrayLike, n: int, bound: int, resolution: int) -> IntArray:
    """Return the entries of ``n`` vectors times ``resolution``, L1 norms bounded.

    Vectors above the bound are scaled down. ``floor(|v_i| resolution bound / |v|_1)``, summed over i, is at most
    ``resolution bound``. Entries with equal places only cancel, so adding them up later cannot raise the norm.
    """
    owners = np.asarray(rows, dtype=np.int64)
    # Entries are cut, so that no norm and no product overflows.
    entries = np.clip(np.asarray(values, dtype=np.int64), -LARGEST_VALUE, LARGEST_VALUE)
    norms = np.zeros(n, dtype=np.int64)
    np.add.at(norms, owners, np.abs(entries))
    return _scale_entries(owners, entries, norms > bound, norms, bound, resolution)


def clipped_euclidean(rows: IntArray, values: IntArray, n: int, bound: int, resolution: int) -> IntArray:
    """Return the entries of ``n`` vectors times ``resolution``, L2 norms bounded.

    No two entries of a vector have equal places. Vectors above the bound are scaled down. With the norm rounded up to a
    whole number N, the squares of ``floor(|v_i| resolution bound / N)`` add up to at most
    ``(resolution bound)**2 |v|**2 / N**2``, so to at most ``(resolution bound)**2``.
    """
    values = np.clip(values, -LARGEST_IN_SQUARES, LARGEST_IN_SQUARES)
    sizes = np.abs(values)
    squares = np.zeros(n, dtype=np.int64)
    np.add.at(squares, rows, sizes * sizes)
    norms = np.sqrt(squares.astype(np.float64)).astype(np.int64)  # right to within one; made exact and rounded up
    norms -= norms * norms > squares
    norms += norms * norms < squares
    return _scale_entries(rows, values, squares > bound * bound, norms, bound, resolution)


def _scale_entries(
    rows: IntArray, values: IntArray, above: npt.NDArray[np.bool_], norms: IntArray, bound: int, resolution: int
) -> IntArray:
    """Return entries times ``resolution``, scaled towards 0 where ``above`` the bound."""
    if not above.any():
        return values * resolution
    changed = np.flatnonzero(above[rows])
    found: IntArray = values * resolution
    down = np.abs(values[changed]) * (resolution * bound) // np.maximum(norms[rows[changed]], 1)
    found[changed] = np.sign(values[changed]) * down
    return found
