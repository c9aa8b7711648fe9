"""What is believed of the lengths of cases whose numbers were answered with noise, bin by bin.

Let bin b have c_b cases, of about n in all, and the answer y_b, whose noise has the density exp(-|y_b - c_b| / scale).
Before the answers are seen, the shares of the bins are as likely as any that scatter about a usual shape g: the c_b are
independent, of a gamma distribution of shape a * g_b and mean n * g_b (so that their shares are Dirichlet, of a * g).
The shape is that of twins whose lengths are not known: of 1 and a Poisson number more, of a mean that itself is
gamma-distributed, plus a little of every bin. How long cases are, how much that varies and how near to the shape the
shares are (a) are unknown; each triple of them has the evidence

    product over b of the integral of gamma(c; a * g_b, a / n) * exp(-|y_b - c| / scale) dc,

one integral for each bin, since bins are independent. Then c_b has the mixture, by evidence, of the integrands. Its
mean is what is stated; twins draw from it. Only answers go in, so all of this is free.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from veilog._typing import FloatArray

__all__ = ["BINS", "ENDS", "MIDDLES", "VARY", "LengthDistribution"]

BINS = (0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 19, 24, 30, 38, 48, 60, 80, 110, 150, 210, 300)
"""Where the bins of lengths begin; the last has no end."""
ENDS = (*BINS[1:], 2 * BINS[-1] - BINS[-2])
"""Where they end, as far as anything is made of them."""
MIDDLES: FloatArray = (np.asarray(BINS) + np.asarray(ENDS) - 1) / 2
VARY = (0.2, 1.2)
"""Between what the standard deviation of lengths is, as a share of the mean."""
_USUAL = (12.0, 3.0)
"""Before any answer cases have 12 events, give or take a factor of 3: a guess. From 500 cases on another (8 or 20, a
factor of 2 or 5) moves the mean length by 3 % at most."""
_ANY = 0.01
"""So much of a shape goes to all bins alike: some cases are like no others."""
_MEANS, _VARIES = np.geomspace(0.3, 250, 60), np.geomspace(*VARY, 6)
_NEAR = np.geomspace(3, 3000, 7)
"""How near to its shape a log is, from hardly to what no number of cases could tell from it."""
_CELLS, _SHARES = 140, 100
"""Integrals are sums of so many cells; of that many shares they are found, and between these interpolated."""


@dataclass(frozen=True, eq=False)
class LengthDistribution:
    """What is believed of the shares of the cases in each bin of lengths."""

    shapes: FloatArray
    """For each pair of a mean and a variation, the share of each bin."""
    chances: FloatArray
    """How likely each nearness (the rows) to each shape is."""
    shares: FloatArray
    """The expected number of cases in each bin, as shares of their sum."""
    length: float
    """The mean length: that of every nearness and shape, and the median of these."""
    _cases: int
    _edges: FloatArray
    _numbers: FloatArray
    _likely: FloatArray

    @staticmethod
    @lru_cache(maxsize=64)
    def of(answers: tuple[int, ...], scale: float, cases: int, longest: int | None = None) -> LengthDistribution:
        """Return what answers with noise of this ``scale`` say, of about so many ``cases``, none longer than
        ``longest``."""
        shapes, usual = _usual(longest)
        told = np.asarray(answers, dtype=np.float64)
        edges = _cells(told, scale, cases)
        numbers: FloatArray = np.concatenate([[0.0], (edges[1:-1] + edges[2:]) / 2, edges[-1:]])
        # Each bin's likelihoods may be larger by a factor of their own; the nearest cell has one.
        off = np.abs(told - numbers[:, None]) / scale
        likely: FloatArray = np.exp(off.min(axis=0) - off)
        grid = np.geomspace(min(0.5, shapes[shapes > 0].min()), 1, _SHARES)
        places, bins = np.log(np.where(shapes > 0, shapes, grid[0])), np.arange(len(told))
        places = (places - math.log(grid[0])) / (math.log(grid[1]) - math.log(grid[0]))
        low = np.clip(places.astype(np.int64), 0, _SHARES - 2)
        part, there = places - low, shapes > 0
        evidence, means = np.empty((len(_NEAR), len(shapes))), np.empty((len(_NEAR), *shapes.shape))
        for row, near in enumerate(_NEAR):
            mass = _mass(near * grid, edges * near / cases)
            sums = mass @ likely
            logs, mean = np.log(sums), (mass * numbers) @ likely / sums
            between = (1 - part) * logs[low, bins] + part * logs[low + 1, bins]
            evidence[row] = np.where(there, between, off.min(axis=0) - off[0]).sum(axis=1) + usual
            means[row] = np.where(there, (1 - part) * mean[low, bins] + part * mean[low + 1, bins], 0)
        chances = np.exp(evidence - evidence.max())
        chances /= chances.sum()
        expected = np.einsum("ij,ijk->k", chances, means)
        found = means @ MIDDLES / np.maximum(means.sum(axis=-1), 1e-9)
        length = _median(found.ravel(), chances.ravel())
        return LengthDistribution(shapes, chances, expected / expected.sum(), length, cases, edges, numbers, likely)

    def drawn(self, rng: np.random.Generator) -> FloatArray:
        """Return shares of the bins, drawn from what is believed."""
        near, which = divmod(int(rng.choice(self.chances.size, p=self.chances.ravel())), len(self.shapes))
        shape = self.shapes[which]
        found = np.zeros(len(shape))
        there = np.flatnonzero(shape)
        mass = _mass(_NEAR[near] * shape[there], self._edges * _NEAR[near] / self._cases) * self._likely.T[there]
        for place, weights in zip(there, mass.cumsum(axis=1), strict=True):
            cell = np.searchsorted(weights, rng.random() * weights[-1], side="right")
            found[place] = self._numbers[min(int(cell), len(self._numbers) - 1)]
        shares: FloatArray = found / found.sum() if found.any() else shape
        return shares


def _cells(told: FloatArray, scale: float, cases: int) -> FloatArray:
    """Where the cells of the integrals begin: the wider the more cases, and narrower than the noise where answers are
    that are much more than noise. The first is for no cases at all, the last has no end."""
    top = max(1.5 * cases, float(told.max()) + 10 * scale, 2.0)
    near = told[told > 5 * scale, None] + scale * np.linspace(-5, 5, 21)
    found: FloatArray = np.unique(np.concatenate([[0.0], np.geomspace(0.5, top, _CELLS), near[near > 0.5]]))
    return found


def _median(values: FloatArray, chances: FloatArray) -> float:
    order = np.argsort(values, kind="stable")
    return float(values[order][np.searchsorted(chances[order].cumsum(), 0.5)])


def _mass(shapes: FloatArray, edges: FloatArray) -> FloatArray:
    """How likely a gamma-distributed number is in each cell, for each of some shapes; the last cell has no end."""
    from scipy.special import gammainc

    below = gammainc(shapes[:, None], edges[None])
    # What is too unlikely for a float is no less likely than anything else that is.
    found: FloatArray = np.diff(below, axis=1, append=1.0) + 1e-300
    return found


@lru_cache(maxsize=8)
def _usual(longest: int | None) -> tuple[FloatArray, FloatArray]:
    """The shapes, and the logarithm of how usual each is."""
    from scipy.special import gammaln

    more = np.arange(4 * ENDS[-1])
    bins = np.searchsorted(BINS, more + 1, side="right") - 1
    shapes = np.empty((len(_MEANS) * len(_VARIES), len(BINS)))
    for row, (mean, vary) in enumerate((mean, vary) for mean in _MEANS for vary in _VARIES):
        form = 1 / vary**2
        logs = gammaln(more + form) - gammaln(form) - gammaln(more + 1)
        logs += form * math.log(form / (mean + form)) + more * math.log(mean / (mean + form))
        shapes[row] = np.bincount(bins, weights=np.exp(logs), minlength=len(BINS))
    shapes = (1 - _ANY) * shapes / shapes.sum(axis=1, keepdims=True) + _ANY / len(BINS)
    if longest is not None:
        shapes[:, np.asarray(BINS) > max(0, longest)] = 0
        shapes /= shapes.sum(axis=1, keepdims=True)
    means = np.repeat(1 + _MEANS, len(_VARIES))
    usual: FloatArray = -((np.log(means / _USUAL[0]) / math.log(_USUAL[1])) ** 2) / 2
    return shapes, usual
