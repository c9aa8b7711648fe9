"""Likely values by noisy answers: distributions, histograms and numbers.

Histograms end or have steps; numbers may be other than expected. Everything here is post-processing of noisy answers,
public bins and scales of noise.
"""

from __future__ import annotations

import numpy as np

from veilog._typing import FloatArray

_FLOOR = 1e-12

TAIL, TAIL_NOISES = 0.15, 100
"""Part of all cases, the longest ones, of which a histogram is taken to fall.

Where so many noise scales are less, these are the tail.
"""
END = 1.5
"""Logarithm by which a tail is less likely that ends an octave later."""
RISE = 2
"""Power of the number of places where a tail might rise by which one that rises is less likely."""

SURPRISE = 4.0
"""Variances up to which a difference from what was expected is noise.

Of 3,000 cases at an epsilon of 0.4, with this and with half and twice of it, the part outside the window is off by
.067, .051 and .110 where it is a fifth, and by .001, .001 and .000 where it is nothing (200 seeds).
"""

_LEVELS, _ROUNDS = 128, 10


def least_squares(noisy: FloatArray) -> FloatArray:
    """Return the distribution nearest to noisy masses.

    All masses are lowered by the amount with which those above 0 add up to the total.
    """
    total = max(float(noisy.sum()), 1e-3 * float(np.abs(noisy).max()), _FLOOR)
    ordered = np.sort(noisy)[::-1]
    excess = (np.cumsum(ordered) - total) / np.arange(1, len(ordered) + 1)
    above = np.flatnonzero(ordered > excess)
    if len(above) == 0:
        return np.full(len(noisy), 1 / len(noisy))
    kept = np.maximum(noisy - excess[above[-1]], 0.0)
    return np.asarray(kept / kept.sum())


def likely(noisy: FloatArray, scale: float, an_octave: int = 1, *, gaussian: bool = False) -> FloatArray:
    """Return likely counts by noisy ones, of a histogram that ends.

    They add up without ever falling, and beyond most of the cases they hardly rise. The tail is estimated in octaves or
    halves of them, with as much noise as their bins together. Its end is not known. So for each end there is a
    histogram that falls up to it, in steps (least squares). These are weighed by how likely the answer is given each
    (Akaike 1974), less for each octave up to the end. Some cases are of another kind and last all about as long, far
    from the others. So for each place there is also a histogram that falls to it and once more from it. It is less
    likely by a factor for each place where that might be, and for the end. The law of the noise matters: a single bin
    far off is nothing to Laplace noise, and would be cases to a Gaussian.
    """
    merged = max(1, an_octave // 2)
    tail_of = min(TAIL, TAIL_NOISES * scale / max(float(noisy.sum()), 1.0))
    start = int(np.searchsorted(np.cumsum(least_squares(noisy)), 1 - tail_of))
    start = len(noisy) - (len(noisy) - start) // merged * merged
    reached, _ = _fit_falling(np.cumsum(noisy[:start])[::-1])
    body, tail = np.diff(reached[::-1], prepend=0.0), noisy[start:].reshape(-1, merged).sum(axis=1)
    places = [(0, end) for end in range(len(tail) + 1)]
    places += [(rise, end) for end in range(2, len(tail) + 1) for rise in range(1, end)]
    fits, unlikely = np.zeros((len(places), len(tail))), np.zeros(len(places))
    for row, (rise, end) in enumerate(places):
        fits[row, :rise], before = _fit_falling(tail[:rise])
        fits[row, rise:end], after = _fit_falling(tail[rise:end])
        away = np.abs(tail - fits[row]) / (scale * merged**0.5)
        # The noise of a sum of bins is nearly a Gaussian's.
        law = away**2 / 4 if gaussian or merged > 1 else away
        rising = RISE * np.log(len(tail)) if rise else 0.0
        unlikely[row] = law.sum() + before + after + END * end * merged / an_octave + rising
    weights = np.exp(unlikely.min() - unlikely)
    return np.concatenate([body, np.repeat(weights @ fits / weights.sum(), merged) / merged])


def _fit_falling(noisy: FloatArray) -> tuple[FloatArray, int]:
    """Return the nearest numbers that never rise or go below 0, and steps above 0."""
    steps: list[tuple[float, int]] = []
    for count in noisy.tolist():
        mean, size = count, 1
        while steps and steps[-1][0] < mean:
            before, many = steps.pop()
            mean, size = (before * many + mean * size) / (many + size), many + size
        steps.append((mean, size))
    found = np.array([max(mean, 0.0) for mean, size in steps for _ in range(size)])
    return found, sum(mean > 0 for mean, _ in steps)


def about(expected: float, noisy: float, variance: float) -> float:
    """Return the likely number, 1 at least, by a noisy one and an expected one.

    The part of the difference counts that noise does not explain (James, Stein 1961).
    """
    return max(float(shrunk(np.array(noisy), expected, SURPRISE * variance)), 1.0)


def shrunk(noisy: FloatArray, expected: FloatArray | float, variance: FloatArray | float) -> FloatArray:
    """Return noisy numbers, shrunk to the expected ones, each by itself.

    The part of the difference counts that noise of this variance does not explain (James, Stein 1961).
    """
    apart = noisy - expected
    return np.asarray(expected + apart * np.maximum(0.0, 1 - variance / np.maximum(apart**2, _FLOOR)))


def present(noisy: FloatArray, scale: FloatArray, total: float) -> FloatArray:
    """Return typical counts given noisy ones, the medians, each by itself.

    A count is 0 or, as likely, anything from 1 up to the total, on a logarithmic scale.
    """
    places = _nearest_in_ranges(noisy, np.geomspace(1.0, max(total, 2.0), _LEVELS + 1))
    away = np.abs(noisy[:, None] - places) / scale[:, None]
    chance = np.exp(away.min(axis=1, keepdims=True) - away)
    chance[:, 0] *= _LEVELS
    return _medians(places, chance / chance.sum(axis=1, keepdims=True))


def fit_steps(noisy: FloatArray, scale: FloatArray, widths: FloatArray) -> FloatArray:
    """Return typical counts of a histogram in steps given noisy ones, the medians.

    A bin is as dense as the one before it, or about so, by a factor with a logarithm of mean size 1. Or it begins anew.
    It is then empty, or of a density on a logarithmic scale. This goes from one count in all bins together up to what
    the noisy counts could be. The frequencies of these, and of empty bins, are learnt from the counts (Baum, Petrie,
    Soules, Weiss 1970). Each begins with half a bin (Jeffreys). The sums over all histograms are exact: densities are a
    Markov chain. Of many bins that are mostly empty means would add up, therefore medians.
    """
    if len(noisy) == 0:
        return noisy
    whole = float(widths.sum())
    ends = np.geomspace(1 / whole, max(float(((noisy + scale) / widths).max()), 2 / whole), _LEVELS + 1)
    levels = _nearest_in_ranges(noisy / widths, ends)
    away = np.abs((noisy / widths)[:, None] - levels) * (widths / scale)[:, None]
    law = np.exp(away.min(axis=1, keepdims=True) - away)
    steps = np.abs(np.subtract.outer(np.arange(_LEVELS), np.arange(_LEVELS))) * np.log(ends[1] / ends[0])
    near = np.eye(_LEVELS + 1)
    near[1:, 1:] = np.exp(-steps) / np.exp(-steps).sum(axis=1, keepdims=True)
    ways, empty = np.full(3, 1 / 3), 0.5
    for _ in range(_ROUNDS):
        first = np.append(empty, np.full(_LEVELS, (1 - empty) / _LEVELS))
        chance, gone, begun = _chances(law, first, near, ways)
        ways = (gone + 0.5) / (gone.sum() + 1.5)
        empty = float((begun[0] + 0.5) / (begun.sum() + 1))
    return np.asarray(_medians(levels, chance) * widths)


def _chances(
    law: FloatArray, first: FloatArray, near: FloatArray, ways: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the chances of levels at each place of a Markov chain, and its steps.

    The chances are given the answer, by how likely it is at each level. The steps are how often the chain stays as it
    is, goes to a level ``near``, or begins anew by ``first``; ``ways`` are their chances. The last result is how often
    it begins with each level.
    """
    going = ways[0] * np.eye(len(first)) + ways[1] * near + ways[2] * first
    forth, back, sums = np.empty_like(law), np.ones_like(law), np.empty(len(law))
    before = first
    for i, here in enumerate(law):
        forth[i] = before * here
        sums[i] = forth[i].sum()
        forth[i] /= sums[i]
        before = forth[i] @ going
    for i in range(len(law) - 1, 0, -1):
        back[i - 1] = going @ (law[i] * back[i] / sums[i])
    chance = forth * back
    behind = law * back / sums[:, None]
    stayed = ways[0] * float((forth[:-1] * behind[1:]).sum())
    moved = ways[1] * float(((forth[:-1] @ near) * behind[1:]).sum())
    anew = ways[2] * behind[1:].sum(axis=0) * first
    return chance, np.array([stayed, moved, anew.sum()]), first * behind[0] + anew


def _nearest_in_ranges(noisy: FloatArray, ends: FloatArray) -> FloatArray:
    """Return for each number 0, and the nearest number in each range of two ends.

    Where there is little noise, that is the number itself and not one of a few.
    """
    return np.append(np.zeros((len(noisy), 1)), np.clip(noisy[:, None], ends[:-1], ends[1:]), axis=1)


def _medians(places: FloatArray, chance: FloatArray) -> FloatArray:
    """Return the median of places that rise in each row."""
    return np.asarray(places[np.arange(len(places)), (np.cumsum(chance, axis=1) >= 0.5).argmax(axis=1)])
