"""Gaps between events as histograms over 14 public bins: estimating them from noisy sums, and drawing from them.

Most pairs of activities have too few cases to tell 14 noisy numbers apart. What can be told is which of many public
*shapes* explains them: a share of gaps of 0, the others spread about a place on the logarithmic time axis, more or less
widely and more or less to the right. The shapes are weighted by how well they explain the sums of a pair and by how
common they are: among the pairs with the same second activity, among those with the same first one, and among all pairs
of the log (empirical Bayes, a product of experts). Of what is then likely for a pair, the part is kept whose means lie
within a factor of 3 of each other, so that the mean is off by more than a half as rarely as can be. Single bins that
stand out of the noise beyond what the shapes say are believed on top.

Everything here is post-processing of noisy sums. Gaps are drawn inside bins from exponential densities in log-time, so
what is drawn is made of public edges and noisy masses and never of a gap of the log.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from scipy.special import ndtr

from veilog._typing import Float32Array, FloatArray, IntArray

__all__ = ["BINS", "EDGES", "GUESS", "bins_of", "draw_gaps", "estimated", "least_squares", "slopes"]


_HOUR, _DAY = 3600, 86_400
EDGES = np.array(
    [0, 1, 4, 15, 60, 240, 900, 1800, *(_HOUR * 2**n for n in range(5)), *(_DAY * 2**n for n in range(3)),
     *(7 * _DAY * 2**n for n in range(7)), 896 * _DAY, 1461 * _DAY]
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

_PLACES = 24
_SPREADS = ((0.5, 0.5), (1.0, 1.0), (0.5, 1.5), (0.7, 2.5), (1.6, 1.6), (2.4, 2.4), (1.5, 0.7))
"""Standard deviations to the left and to the right, in logarithms of seconds."""
_AT_ONCE = (0.0, 0.1, 0.25, 0.4, 0.6, 0.75, 0.85, 0.93, 0.97)
_MASSES = (0.35, 0.6, 1.0, 1.7, 3.0, 6.0)
"""How much of the gaps that the release lets expect a pair may have, and how far that is believed: a factor of
exp(0.8)."""
_MASS_DOUBT = 0.8
_BY_TARGET, _BY_SOURCE, _BY_ALL = 0.6, 0.4, 0.7
"""Weights of what is common: among pairs with the same second activity, the same first one, and of the likeness of a
shape to all gaps together."""
_UNKNOWN = 1.0
"""So many pairs with shapes as common as in the whole log are added to each group."""
_ALIKE, _ALIKE_AT_ONCE = 0.4, 0.2
"""Shapes are alike whose means differ by little, in the logarithm, and whose shares of gaps of 0 do."""
_WITHIN = 3.0
"""The means that are kept for a pair lie within this factor: from two thirds to twice one of them."""
_RAREST = 0.003
"""A bin that all pairs together have more rarely than this is not taken to be rarer."""
_LEARNING = 8
_TRIMMED = 0.01
"""Bins of a shape below this are left out: single draws of years would ruin the mean of a pair of minutes."""
_STANDS_OUT = 1.0
"""Noise scales above a shape, beyond the logarithm of how rare the bin is, from which a bin is believed by itself."""
_MISSING = 3.5
"""Noise scales below a shape from which a bin is believed to be less."""


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


@cache
def _shapes() -> tuple[FloatArray, FloatArray]:
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


def _below(x: FloatArray, place: float, left: float, right: float) -> FloatArray:
    """Distribution function of a normal distribution with different spreads to the left and to the right."""
    share = left / (left + right)
    beyond = share + (1 - share) * (2 * ndtr((x - place) / right) - 1)
    return np.asarray(np.where(x < place, 2 * share * ndtr((x - place) / left), beyond))


def estimated(
    noisy: FloatArray,
    expected: FloatArray,
    scales: FloatArray,
    groups: tuple[IntArray, IntArray],
    everything: FloatArray,
) -> FloatArray:
    """The distribution of each row of noisy sums.

    ``expected``: the total that is expected of each row; ``scales``: the scale of the Laplace noise of each sum;
    ``groups``: numbers of the second and of the first activity of each row, whose rows it resembles; ``everything``:
    the distribution of all rows together.
    """
    shapes, parts = _shapes()
    prior = parts @ np.log(np.maximum(everything, _RAREST))
    likelihood, masses = _explained(noisy, expected, scales, shapes)
    weights = _learned(likelihood, prior, groups)
    q = _kept(weights) @ shapes
    mass = np.maximum(masses[np.arange(len(noisy)), weights.argmax(axis=1)], 1.0)[:, None]
    residual = noisy - mass * q
    believed = (residual > scales * (_STANDS_OUT - np.log(np.maximum(everything, _RAREST)))) | (
        residual < -_MISSING * scales
    )
    trimmed = np.where(q < _TRIMMED, 0.0, q)
    corrected = np.maximum(trimmed + np.where(believed, residual, 0.0) / mass, 0.0)
    ruined = corrected.sum(axis=1) < 0.5
    corrected[ruined] = trimmed[ruined]
    return np.asarray(corrected / corrected.sum(axis=1, keepdims=True))


def _learned(likelihood: FloatArray, prior: FloatArray, groups: tuple[IntArray, IntArray]) -> FloatArray:
    """The weight of each shape for each row, given how common shapes like it are in the other rows of its groups."""
    near, back = _alike()  # in single precision, of which evidence about shapes needs little
    weights = _single(_normalised(likelihood + prior))
    fixed = likelihood + _BY_ALL * prior
    fixed = (fixed - fixed.max(axis=1, keepdims=True)).astype(np.float32)
    members = [(of_group, np.bincount(of_group)[of_group][:, None] - 1 + _UNKNOWN) for of_group in groups]
    for _ in range(_LEARNING):
        common = weights.sum(axis=0) + 1 / weights.shape[1]
        common /= common.sum()
        kinds = weights @ near
        # Spreading a sum over shapes is the same as adding up what is spread, and there are few groups.
        own, in_all = kinds @ back, _UNKNOWN * (common @ near @ back)
        score = fixed.copy()
        for (of_group, others), lean in zip(members, (_BY_TARGET, _BY_SOURCE), strict=True):
            sums = np.zeros((of_group.max() + 1, near.shape[1]), dtype=np.float32)
            np.add.at(sums, of_group, kinds)
            found = ((sums @ back)[of_group] - own + in_all) / others.astype(np.float32)
            score += np.float32(lean) * np.log(np.maximum(found, np.float32(_FLOOR)))
        weights = _single(_normalised(score))
    return np.asarray(weights.astype(np.float64))


def _single(numbers: FloatArray | Float32Array) -> Float32Array:
    """In single precision, without the tiny numbers that processors are slow with."""
    return np.where(numbers < _FLOOR, 0.0, numbers).astype(np.float32)


@cache
def _alike() -> tuple[Float32Array, Float32Array]:
    """How much each shape belongs to each of some kinds (by mean and share of gaps of 0), and what kinds consist of."""
    at_once = _shapes()[0][:, 0]
    kinds = np.array([(m, z) for m in np.arange(0.0, np.log(EDGES[-1]), 0.5) for z in (0.0, 0.3, 0.6, 0.9)])
    apart = (_log_means()[:, None] - kinds[:, 0]) ** 2 / _ALIKE**2
    near = np.exp(-(apart + (at_once[:, None] - kinds[:, 1]) ** 2 / _ALIKE_AT_ONCE**2) / 2)
    near = near / near.sum(axis=1, keepdims=True)
    back = (near / np.maximum(near.sum(axis=0), _FLOOR)).T
    return _single(near), _single(back)


@cache
def _log_means() -> FloatArray:
    """The logarithm of a second and the mean of each shape, gaps being spread evenly in log-time inside bins."""
    inside = np.diff(EDGES)[1:] / _WIDTHS
    return np.asarray(np.log1p(_shapes()[0][:, 1:] @ inside))


def _kept(weights: FloatArray) -> FloatArray:
    """The weights of shapes with means in the likeliest window of a factor of three, for each row."""
    order = np.argsort(_log_means(), kind="stable")
    means = _log_means()[order]
    sums = np.concatenate([np.zeros((len(weights), 1)), np.cumsum(weights[:, order], axis=1)], axis=1)
    lowest = np.searchsorted(means, means - np.log(_WITHIN))
    highest = (sums[:, 1:] - sums[:, lowest]).argmax(axis=1)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    inside = (place >= lowest[highest][:, None]) & (place <= highest[:, None])
    kept = np.where(inside, weights, 0.0)
    return np.asarray(kept / kept.sum(axis=1, keepdims=True))


def _explained(
    noisy: FloatArray, expected: FloatArray, scales: FloatArray, shapes: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """For each row and shape the best log-likelihood over masses, and that mass; the noise is Laplace."""
    best = np.full((len(noisy), len(shapes)), -np.inf)
    masses = np.zeros_like(best)
    for row in range(len(noisy)):
        for factor in _MASSES:
            mass = factor * expected[row]
            likelihood = -(np.abs(noisy[row] - mass * shapes) @ (1 / scales[row]))
            likelihood -= np.log(factor) ** 2 / (2 * _MASS_DOUBT**2)
            better = likelihood > best[row]
            best[row, better] = likelihood[better]
            masses[row, better] = mass
    return best, masses


def _normalised(logs: FloatArray | Float32Array) -> Any:
    """Weights that add up to 1 in each row, in the precision of their logarithms."""
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    return weights


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
