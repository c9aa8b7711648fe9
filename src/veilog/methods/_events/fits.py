"""From noisy answers to what is likely: distributions, histograms that end, numbers that were expected otherwise.

Everything here is post-processing: of noisy answers, public bins and scales of noise.
"""

from __future__ import annotations

import numpy as np

from veilog._typing import FloatArray

__all__ = ["least_squares", "likeliest", "likely", "standing_out"]

_FACTORS = np.linspace(-4.0, 4.0, 65)
_FLOOR = 1e-12

TAIL, TAIL_NOISES = 0.15, 100
"""The longest cases, of which a histogram is taken to fall: this part of all, or so many noise scales where that is
less."""
END = 1.5
"""A tail that ends an octave later is e to the power of this less likely."""
RISE = 2
"""One that rises somewhere is less likely by this power of the number of places where it might."""


def likeliest(
    noisy: FloatArray, expected: FloatArray, scale: FloatArray | float, lean: float, *, gaussian: bool
) -> FloatArray:
    """Return the likeliest numbers: noise about the noisy ones, and factors between them and what was expected, of
    which the logarithm has the deviation ``lean``."""
    away = [np.abs(noisy - expected * np.exp(x)) / scale for x in _FACTORS]
    law = [far**2 / 4 if gaussian else far for far in away]
    unlikely = np.stack([far + x**2 / (2 * lean**2) for far, x in zip(law, _FACTORS, strict=True)])
    return np.asarray(expected * np.exp(_FACTORS[unlikely.argmin(axis=0)]))


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
        unlikely[row] = (
            law.sum() + before + after + END * end * merged / an_octave + RISE * bool(rise) * np.log(len(tail))
        )
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


def standing_out(number: FloatArray | float, variance: FloatArray | float) -> FloatArray:
    """Return the part of noisy numbers that noise does not explain (James, Stein 1961)."""
    return np.asarray(np.maximum(0.0, 1 - variance / np.maximum(np.square(number), 1e-9)))
