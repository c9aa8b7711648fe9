"""Noise on the counts of bins: on every bin, or on those only that come out above a threshold.

Where only the bins above a threshold come back, the work follows them and not the number of bins. Of the empty bins
each survives with ``p = P(noise > threshold)``, independently, so the next that survives is a geometric number of bins
away, and given that it survives its count has the law of noise above the threshold. Both are drawn exactly: the result
has the distribution of noise on every bin, cut at the threshold afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from veilog.errors import ParameterError
from veilog.logs.variants import Sequences, Variants
from veilog.privacy.asking import bins_of
from veilog.privacy.mechanisms import noise
from veilog.privacy.mechanisms.mechanism import DiscreteGaussian, Laplace

IntArray = npt.NDArray[np.int64]

Assign = Callable[[Sequences], npt.ArrayLike]
"""Maps each sequence, by itself, to a bin 0, 1, ..., or to -1 for none."""

_BLOCK = 65_536
_DENSE_LIMIT = 50_000_000
_LARGEST_SIZE = 2**61


@dataclass(frozen=True)
class SparseHistogram:
    """The bins whose noisy count exceeds a threshold, in ascending order, and their noisy counts."""

    bins: IntArray
    counts: IntArray


def check_size(size: int, mechanism: Laplace | DiscreteGaussian, keep_above: int | None) -> None:
    """Refuse, before anything is asked, what could not be held: too many bins, or a threshold below much noise."""
    if keep_above is None and not 0 <= size <= _DENSE_LIMIT:
        raise ParameterError(
            f"A histogram of {size} bins is too large to list every bin.",
            parameter="size",
            advice="Ask for the bins above a threshold.",
        )
    if not 0 <= size <= _LARGEST_SIZE:
        raise ParameterError(f"A histogram of {size} bins is too large.", parameter="size")
    if keep_above is None:
        return
    if keep_above < 0:
        raise ParameterError("keep_above must be at least 0.", parameter="keep_above")
    expected = size * _chance_above(mechanism, keep_above)
    if expected > _DENSE_LIMIT:
        raise ParameterError(
            f"About {expected:.3g} empty bins would survive the threshold {keep_above}.",
            parameter="keep_above",
            advice="Raise the threshold or epsilon.",
        )


def cases_in_bins(variants: Variants, assign: Assign, size: int) -> tuple[IntArray, IntArray]:
    """The bins that ``assign`` gives, in blocks, with the cases in each; sequences without a bin are left out."""
    sequences = variants.sequences
    parts = [
        bins_of(assign, sequences.rows(start, min(start + _BLOCK, len(sequences))), size, check=start == 0)
        for start in range(0, len(sequences), _BLOCK)
    ]
    assigned = np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
    has_bin = assigned >= 0
    return assigned[has_bin], variants.counts[has_bin]


def every_bin(
    assigned: IntArray,
    weights: IntArray,
    size: int,
    mechanism: Laplace | DiscreteGaussian,
    randomness: noise.Randomness,
) -> IntArray:
    """The noisy counts of bins 0, ..., size-1, of which ``assigned`` have the ``weights``."""
    noisy = mechanism.draw(size, randomness)
    np.add.at(noisy, assigned, weights)
    return noisy


def bins_above(
    threshold: int,
    assigned: IntArray,
    weights: IntArray,
    size: int,
    mechanism: Laplace | DiscreteGaussian,
    randomness: noise.Randomness,
) -> SparseHistogram:
    """The bins of :func:`every_bin` whose noisy count exceeds the threshold, without drawing the others."""
    occupied, inverse = np.unique(assigned, return_inverse=True)
    exact = np.zeros(len(occupied), dtype=np.int64)
    np.add.at(exact, inverse, weights)
    noisy = exact + mechanism.draw(len(occupied), randomness)
    survives = noisy > threshold
    empty = _surviving_empty_bins(size - len(occupied), mechanism, threshold, randomness)
    # The i-th empty bin is bin i plus the number of occupied bins before it.
    empty += np.searchsorted(occupied - np.arange(len(occupied)), empty, side="right")
    empty_counts = mechanism.exceeding(threshold, len(empty), randomness)
    bins = np.concatenate([occupied[survives], empty])
    counts = np.concatenate([noisy[survives], empty_counts])
    order = np.argsort(bins, kind="stable")
    return SparseHistogram(bins[order], counts[order])


def _surviving_empty_bins(
    empty: int, mechanism: Laplace | DiscreteGaussian, threshold: int, randomness: noise.Randomness
) -> IntArray:
    """Positions, among ``empty`` bins of count 0, of those whose noise exceeds the threshold."""
    chance, to = _chance_above(mechanism, threshold), _gaps_to(mechanism, threshold)
    positions: list[IntArray] = []
    last = -1
    while last < empty - 1:
        expected = (empty - 1 - last) * chance
        steps = noise.gaps(to, int(expected + 4 * expected**0.5) + 16, randomness)
        # A gap that leads beyond the end ends the walk; it is cut so that the sum cannot overflow.
        walk = last + np.cumsum(np.minimum(steps, empty) + 1, dtype=object if empty > 2**40 else np.int64)
        positions.append(np.asarray(walk[walk < empty], dtype=np.int64))
        last = int(walk[-1])
    return np.concatenate(positions) if positions else np.zeros(0, dtype=np.int64)


@lru_cache(maxsize=256)
def _gaps_to(mechanism: Laplace | DiscreteGaussian, above: int) -> noise.Gaps:
    return noise.gaps_to(mechanism.tail(above))


@lru_cache(maxsize=256)
def _chance_above(mechanism: Laplace | DiscreteGaussian, above: int) -> float:
    """A float at or just above the probability of noise above a number, for estimates of work only."""
    return float(Fraction(mechanism.tail(above)(96)[1], 2**96))
