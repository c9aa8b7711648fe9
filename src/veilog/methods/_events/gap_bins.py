"""Gaps between events as histograms over public bins: from noisy masses to distributions, and drawing from them.

Everything here is post-processing of noisy sums. Gaps are drawn inside bins from exponential densities in log-time, so
what is drawn is made of public edges and noisy masses and never of a gap of the log.
"""

from __future__ import annotations

import numpy as np

from veilog._typing import FloatArray, IntArray

__all__ = ["BINS", "EDGES", "GUESS", "backed_off", "bins_of", "draw_gaps", "least_squares", "slopes"]

_HOUR, _DAY = 3600, 86_400
EDGES = np.array(
    [
        *(0, 1, 4, 15, 60, 240, 900, 1800),
        *(_HOUR * 2**n for n in range(5)),
        *(_DAY * 2**n for n in range(3)),
        *(7 * _DAY * 2**n for n in range(8)),
        1461 * _DAY,
    ]
)
"""Seconds: at once, 1, 4 and 15 seconds, 1, 4, 15 and 30 minutes, then twice as long again and again: 1 to 16 hours, 1
to 4 days, 1 to 128 weeks, 4 years; longer gaps count as up to 4 years."""
BINS = len(EDGES) - 1

GUESS = np.where(EDGES[1:] <= 28 * _DAY, 1.0, 0.1)
GUESS = GUESS / GUESS.sum()
"""A public guess of how gaps are spread, for logs of which noise hides even that: up to 4 weeks all bins alike."""

_WIDTHS = np.log(EDGES[2:] / EDGES[1:-1])
_CENTRES = np.cumsum(_WIDTHS) - _WIDTHS / 2
_STEEPEST = 2.0
_FLOOR = 1e-12
TRIMMED, TRIMMED_MOST = 0.5, 0.25
"""A bin of a pair below this many deviations of its noise, and below this part of the gaps, is left out: single
draws of years would ruin the mean of a pair of minutes."""


def bins_of(microseconds: IntArray) -> IntArray:
    """The bin of each gap."""
    return np.minimum(np.searchsorted(EDGES * 1_000_000, microseconds, side="right") - 1, BINS - 1)


def least_squares(noisy: FloatArray) -> FloatArray:
    """The distribution nearest to noisy masses: all are lowered by what makes those above 0 add up to the total."""
    total = max(float(noisy.sum()), 1e-3 * float(np.abs(noisy).max()), _FLOOR)
    ordered = np.sort(noisy)[::-1]
    excess = (np.cumsum(ordered) - total) / np.arange(1, len(ordered) + 1)
    above = np.flatnonzero(ordered > excess)
    if len(above) == 0:
        return np.full(len(noisy), 1 / len(noisy))
    kept = np.maximum(noisy - excess[above[-1]], 0.0)
    return np.asarray(kept / kept.sum())


def backed_off(
    own: FloatArray, expected: FloatArray, variances: FloatArray, second: IntArray, everything: FloatArray
) -> FloatArray:
    """Distributions of pairs, drawn to those of all pairs with their second activity, as far as noise explains what is
    apart, and these to that of all pairs."""
    _, second = np.unique(second, return_inverse=True)
    sums = np.zeros((int(second.max()) + 1, own.shape[1]))
    np.add.at(sums, second, own)
    total, doubt = (np.asarray(np.bincount(second, weights=x), dtype=np.float64) for x in (expected, variances))
    of_second = _drawn_to(sums, total, doubt, np.broadcast_to(everything, sums.shape))
    return _drawn_to(own, expected, variances, of_second[second])


def _drawn_to(masses: FloatArray, total: FloatArray, variance: FloatArray, prior: FloatArray) -> FloatArray:
    """Noisy masses as distributions, drawn to others as far as noise explains what is apart (James, Stein 1961)."""
    apart = masses / total[:, None] - prior
    spread = np.maximum((apart**2).sum(axis=1), 1e-18)
    kept = np.maximum(0.0, 1 - variance / total**2 / spread)[:, None]
    found = np.stack([least_squares(row) for row in prior + kept * apart])
    noise = np.sqrt(variance / masses.shape[1]) / total
    most = found.max(axis=1, keepdims=True)
    found = np.where(found < np.minimum(np.minimum(TRIMMED * noise, TRIMMED_MOST)[:, None], most), 0.0, found)
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def slopes(q: FloatArray) -> FloatArray:
    """The slope of the log-density in log-time of each bin but the first, for each row of distributions."""
    logs = np.log(np.maximum(q[:, 1:], 1e-3) / _WIDTHS)
    steep = np.zeros_like(logs)
    steep[:, 1:-1] = (logs[:, 2:] - logs[:, :-2]) / (_CENTRES[2:] - _CENTRES[:-2])
    steep[:, -1] = (logs[:, -1] - logs[:, -2]) / (_CENTRES[-1] - _CENTRES[-2])
    return np.asarray(np.clip(steep, -_STEEPEST, _STEEPEST))


def draw_gaps(bins: IntArray, rows: IntArray, steep: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Whole seconds, one gap inside each bin, from the slopes of its row; 0 in the first bin."""
    inner = np.maximum(bins, 1) - 1
    slope, width = steep[rows, inner], _WIDTHS[inner]
    u = rng.random(len(bins))
    flat = np.abs(slope) < 1e-6
    safe = np.where(flat, 1.0, slope)
    along = np.where(flat, u * width, np.log1p(u * np.expm1(safe * width)) / safe)
    seconds = np.floor(EDGES[1:-1][inner] * np.exp(along))
    return np.where(bins == 0, 0.0, np.minimum(seconds, EDGES[inner + 2] - 1))
