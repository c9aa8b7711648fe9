"""Gaps between events as histograms over 14 public bins: estimating them from noisy sums, and drawing from them.

Most pairs of activities have too few cases to tell 14 noisy numbers apart. What can be told is which of many public
*shapes* explains them: a share of gaps of 0, the others spread about a place on the logarithmic time axis, more or less
widely and more or less to the right. The shapes are weighted by how well they explain the sums of a pair, and all pairs
of a log together teach which shapes are common in it (empirical Bayes). Single bins that stand out of the noise beyond
what the shapes say are believed on top.

Everything here is post-processing of noisy sums. Gaps are drawn inside bins from exponential densities in log-time, so
what is drawn is made of public edges and noisy masses and never of a gap of the log.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

__all__ = ["BINS", "EDGES", "bins_of", "draw_gaps", "estimated", "least_squares", "slopes"]

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_HOUR, _DAY = 3600, 86_400
EDGES = np.array(
    [0, 1, 10, 60, 300, 1200, _HOUR, 3 * _HOUR, 8 * _HOUR, _DAY, 3 * _DAY, 7 * _DAY, 28 * _DAY, 182 * _DAY, 1461 * _DAY]
)
"""Seconds: at once, 1 and 10 seconds, 1, 5 and 20 minutes, 1, 3 and 8 hours, 1 and 3 days, 1 and 4 weeks, half a year,
4 years; longer gaps count as up to 4 years."""
BINS = len(EDGES) - 1

_WIDTHS = np.log(EDGES[2:] / EDGES[1:-1])
_CENTRES = np.cumsum(_WIDTHS) - _WIDTHS / 2
_STEEPEST = 2.0
_FLOOR = 1e-12

_PLACES = 24
_SPREADS = ((0.5, 0.5), (1.0, 1.0), (0.5, 1.5), (0.7, 2.5), (1.6, 1.6), (2.4, 2.4), (1.5, 0.7))
"""Standard deviations to the left and to the right, in logarithms of seconds."""
_AT_ONCE = (0.0, 0.1, 0.25, 0.4, 0.6, 0.75, 0.85, 0.93)
_MASSES = (0.5, 0.7, 1.0, 1.4, 2.0)
"""How much of the gaps that the release lets expect a pair may have, and how far that is believed: a factor of
exp(0.5)."""
_MASS_DOUBT = 0.5
_LEAN = 0.3
"""Weight of the likeness to the distribution of the pair's second activity."""
_RAREST = 0.003
"""A bin that all pairs together have more rarely than this is not taken to be rarer."""
_LEARNING = 20
_TRIMMED = 0.01
"""Bins of a shape below this are left out: single draws of years would ruin the mean of a pair of minutes."""
_STANDS_OUT = 1.0
"""Noise scales above a shape, beyond the logarithm of how rare the bin is, from which a bin is believed by itself."""
_MISSING = 3.5
"""Noise scales below a shape from which a bin is believed to be less."""


def bins_of(microseconds: Ints) -> Ints:
    """The bin of each gap."""
    return np.minimum(np.searchsorted(EDGES * 1_000_000, microseconds, side="right") - 1, BINS - 1)


def least_squares(noisy: Floats) -> Floats:
    """The distribution nearest to noisy masses: all are lowered by what makes those above 0 add up to the total."""
    total = max(float(noisy.sum()), 1e-3 * float(np.abs(noisy).max()), _FLOOR)
    ordered = np.sort(noisy)[::-1]
    excess = (np.cumsum(ordered) - total) / np.arange(1, len(ordered) + 1)
    above = np.flatnonzero(ordered > excess)
    if len(above) == 0:
        return np.full(len(noisy), 1 / len(noisy))
    kept = np.maximum(noisy - excess[above[-1]], 0.0)
    return np.asarray(kept / kept.sum())


@cache
def _shapes() -> tuple[Floats, Floats]:
    """All shapes, and of each the part that is not at once."""
    low, high = np.log(np.maximum(EDGES[:-1], 1e-9)), np.log(EDGES[1:])
    shapes, parts = [], []
    for place in np.linspace(0.0, np.log(EDGES[-1]), _PLACES):
        for left, right in _SPREADS:
            part = _below(high, place, left, right) - _below(low, place, left, right)
            part /= part.sum()
            for at_once in _AT_ONCE:
                shape = (1 - at_once) * part
                shape[0] += at_once
                shapes.append(shape)
                parts.append(part)
    only_at_once = np.eye(BINS)[0]
    return np.array([*shapes, only_at_once]), np.array([*parts, only_at_once])


def _below(x: Floats, place: float, left: float, right: float) -> Floats:
    """Distribution function of a normal distribution with different spreads to the left and to the right."""
    share = left / (left + right)
    beyond = share + (1 - share) * (2 * ndtr((x - place) / right) - 1)
    return np.asarray(np.where(x < place, 2 * share * ndtr((x - place) / left), beyond))


def estimated(noisy: Floats, expected: Floats, scales: Floats, parents: Floats, everything: Floats) -> Floats:
    """The distribution of each row of noisy sums.

    ``expected``: the total that is expected of each row; ``scales``: the scale of the Laplace noise of its sums;
    ``parents``: a distribution that each row resembles; ``everything``: the distribution of all rows together.
    """
    shapes, parts = _shapes()
    logs = np.log(np.maximum(shapes, 1e-6))
    prior = parts @ np.log(np.maximum(everything, _RAREST))
    unlike = (shapes * logs).sum(axis=1) - np.log(np.maximum(parents, 1e-4)) @ shapes.T
    likelihood, masses = _explained(noisy, expected, scales, shapes)
    score = likelihood + prior - _LEAN * unlike
    common = np.full(len(shapes), 1 / len(shapes))
    for _ in range(_LEARNING):
        weights = _normalised(score + np.log(common))
        common = weights.sum(axis=0) + 1 / len(shapes)
        common /= common.sum()
    weights = _normalised(score + np.log(common))
    mass = np.maximum(masses[np.arange(len(noisy)), weights.argmax(axis=1)], 1.0)[:, None]
    q = weights @ shapes
    residual = noisy - mass * q
    scale = scales[:, None]
    believed = (residual > scale * (_STANDS_OUT - np.log(np.maximum(everything, _RAREST)))) | (
        residual < -_MISSING * scale
    )
    trimmed = np.where(q < _TRIMMED, 0.0, q)
    corrected = np.maximum(trimmed + np.where(believed, residual, 0.0) / mass, 0.0)
    ruined = corrected.sum(axis=1) < 0.5
    corrected[ruined] = trimmed[ruined]
    return np.asarray(corrected / corrected.sum(axis=1, keepdims=True))


def _explained(noisy: Floats, expected: Floats, scales: Floats, shapes: Floats) -> tuple[Floats, Floats]:
    """For each row and shape the best log-likelihood over masses, and that mass; the noise is Laplace."""
    best = np.full((len(noisy), len(shapes)), -np.inf)
    masses = np.zeros_like(best)
    for row in range(len(noisy)):
        for factor in _MASSES:
            mass = factor * expected[row]
            likelihood = -np.abs(noisy[row] - mass * shapes).sum(axis=1) / scales[row]
            likelihood -= np.log(factor) ** 2 / (2 * _MASS_DOUBT**2)
            better = likelihood > best[row]
            best[row, better] = likelihood[better]
            masses[row, better] = mass
    return best, masses


def _normalised(logs: Floats) -> Floats:
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def slopes(q: Floats) -> Floats:
    """The slope of the log-density in log-time of each bin but the first, for each row of distributions."""
    logs = np.log(np.maximum(q[:, 1:], 1e-3) / _WIDTHS)
    steep = np.zeros_like(logs)
    steep[:, 1:-1] = (logs[:, 2:] - logs[:, :-2]) / (_CENTRES[2:] - _CENTRES[:-2])
    steep[:, -1] = (logs[:, -1] - logs[:, -2]) / (_CENTRES[-1] - _CENTRES[-2])
    return np.asarray(np.clip(steep, -_STEEPEST, _STEEPEST))


def draw_gaps(bins: Ints, rows: Ints, steep: Floats, rng: np.random.Generator) -> Floats:
    """Whole seconds, one gap inside each bin, from the slopes of its row; 0 in the first bin."""
    inner = np.maximum(bins, 1) - 1
    slope, width = steep[rows, inner], _WIDTHS[inner]
    u = rng.random(len(bins))
    flat = np.abs(slope) < 1e-6
    safe = np.where(flat, 1.0, slope)
    along = np.where(flat, u * width, np.log1p(u * np.expm1(safe * width)) / safe)
    seconds = np.floor(EDGES[1:-1][inner] * np.exp(along))
    return np.where(bins == 0, 0.0, np.minimum(seconds, EDGES[inner + 2] - 1))
