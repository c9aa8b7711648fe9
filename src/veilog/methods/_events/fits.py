"""From noisy answers to what is likely: distributions, histograms that end or have steps, and numbers that were
expected otherwise.

Everything here is post-processing: of noisy answers, public bins and scales of noise.
"""

from __future__ import annotations

import numpy as np

from veilog._typing import FloatArray

_FLOOR = 1e-12

TAIL, TAIL_NOISES = 0.15, 100
"""The longest cases, of which a histogram is taken to fall: this part of all, or so many noise scales where that is
less."""
END = 1.5
"""A tail that ends an octave later is e to the power of this less likely."""
RISE = 2
"""One that rises somewhere is less likely by this power of the number of places where it might."""

SURPRISE = 4.0
"""A number is other than was expected as far as this many variances do not explain it. With half and twice of this,
of 3,000 cases at an epsilon of 0.4, the part outside the window is off by .051 and .110 in place of .067 where it is a
fifth, and by .001 and .000 in place of .001 where it is nothing (200 seeds)."""

_LEVELS, _ROUNDS = 128, 10


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


def likely(noisy: FloatArray, scale: float, an_octave: int = 1, *, gaussian: bool = False) -> FloatArray:
    """Return counts that are likely by noisy ones: they add up without ever falling, beyond most of the cases they
    hardly rise, and they end.

    The tail is told in octaves or halves of them, with as much noise as their bins together. Its end is not known: for
    each there is a histogram that falls up to it, in steps (least squares), and these are weighed by how likely the
    answer is given each (Akaike 1974), less for each octave up to the end. Some cases are of another kind and last all
    about as long, far from the others: for each place there is a histogram, too, that falls to it and once more from
    it, less likely by a factor for each place where that might be, and for the end. The law of the noise matters: a
    single bin far off is nothing to Laplace noise, and would be cases to a Gaussian.
    """
    merged = max(1, an_octave // 2)
    tail_of = min(TAIL, TAIL_NOISES * scale / max(float(noisy.sum()), 1.0))
    start = int(np.searchsorted(np.cumsum(least_squares(noisy)), 1 - tail_of))
    start = len(noisy) - (len(noisy) - start) // merged * merged
    reached, _ = _falling(np.cumsum(noisy[:start])[::-1])
    body, tail = np.diff(reached[::-1], prepend=0.0), noisy[start:].reshape(-1, merged).sum(axis=1)
    places = [(0, end) for end in range(len(tail) + 1)]
    places += [(rise, end) for end in range(2, len(tail) + 1) for rise in range(1, end)]
    fits, unlikely = np.zeros((len(places), len(tail))), np.zeros(len(places))
    for row, (rise, end) in enumerate(places):
        fits[row, :rise], before = _falling(tail[:rise])
        fits[row, rise:end], after = _falling(tail[rise:end])
        away = np.abs(tail - fits[row]) / (scale * merged**0.5)
        # The noise of a sum of bins is nearly a Gaussian's.
        law = away**2 / 4 if gaussian or merged > 1 else away
        rising = RISE * np.log(len(tail)) if rise else 0.0
        unlikely[row] = law.sum() + before + after + END * end * merged / an_octave + rising
    weights = np.exp(unlikely.min() - unlikely)
    return np.concatenate([body, np.repeat(weights @ fits / weights.sum(), merged) / merged])


def _falling(noisy: FloatArray) -> tuple[FloatArray, int]:
    """Return the numbers nearest to noisy ones that never rise or fall below 0, and how many there are above 0."""
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
    """Return how many there are, 1 at least, by a noisy number of them where so many were expected: the part of the
    difference is believed that noise does not explain (James, Stein 1961)."""
    return max(float(shrunk(np.array(noisy), expected, SURPRISE * variance)), 1.0)


def shrunk(noisy: FloatArray, expected: FloatArray | float, variance: FloatArray | float) -> FloatArray:
    """Return numbers as far as they are to be believed beside what was expected, each by itself: the part of what is
    apart that noise of this variance does not explain (James, Stein 1961)."""
    apart = noisy - expected
    return np.asarray(expected + apart * np.maximum(0.0, 1 - variance / np.maximum(apart**2, _FLOOR)))


def present(noisy: FloatArray, scale: FloatArray, total: float) -> FloatArray:
    """Return typical counts given noisy ones, the medians, each by itself: it is 0 or, as likely, anything from 1 up to
    the total, on a logarithmic scale."""
    places = _nearest_in_ranges(noisy, np.geomspace(1.0, max(total, 2.0), _LEVELS + 1))
    away = np.abs(noisy[:, None] - places) / scale[:, None]
    chance = np.exp(away.min(axis=1, keepdims=True) - away)
    chance[:, 0] *= _LEVELS
    return _medians(places, chance / chance.sum(axis=1, keepdims=True))


def in_steps(noisy: FloatArray, scale: FloatArray, widths: FloatArray) -> FloatArray:
    """Return typical counts of bins given noisy ones, the medians, of a histogram in steps.

    A bin is as dense as the one before it; or about so, by a factor with a logarithm of mean size 1; or it is anew
    empty, or as dense as it may be on a logarithmic scale, from one count in all bins together up to what the noisy
    counts could be. How often each of these is so, and how many are empty, is learnt from the counts (Baum, Petrie,
    Soules, Weiss 1970), with half a bin of each to begin with (Jeffreys). The sums over all histograms are exact:
    densities are a Markov chain. Of many bins that are mostly empty means would add up, therefore medians.
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
    """Of each place of a Markov chain, how likely each level is there, by how likely the answer is given each; how
    often it stays as it is, goes to one ``near`` or begins anew as ``first`` says, which it does so often as ``ways``
    say; and how often it begins with each level."""
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
    """For each number 0, and what is nearest to it in each range between two ends: where there is little noise, that is
    the number itself and not one of a few."""
    return np.append(np.zeros((len(noisy), 1)), np.clip(noisy[:, None], ends[:-1], ends[1:]), axis=1)


def _medians(places: FloatArray, chance: FloatArray) -> FloatArray:
    """Of places that rise in each row, the median."""
    return np.asarray(places[np.arange(len(places)), (np.cumsum(chance, axis=1) >= 0.5).argmax(axis=1)])
