"""Gaps between events as histograms over public bins: from noisy masses to distributions, and drawing from them.

Everything here is post-processing of noisy sums. Gaps are drawn inside bins from exponential densities in log-time, so
what is drawn is made of public edges and noisy masses and never of a gap of the log.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtr

from veilog._typing import FloatArray, IntArray
from veilog.methods._events.fits import least_squares, likely

_HOUR, _DAY = 3600, 86_400
_EDGES = np.array(
    [
        *(0, 1, 4, 15, 60, 240, 900, 1800),
        *(_HOUR * 2**n for n in range(5)),
        *(_DAY * 2**n for n in range(3)),
        *(7 * _DAY * 2**n for n in range(8)),
        1461 * _DAY,
    ],
    dtype=np.float64,
)
FINE = 300
COARSEST, FINEST = -2, 3
"""A coarse bin is cut into (gaps over noise scale) over ``FINE`` cells to the power of two thirds: rounded to a power
of two, of which the exponent is in this range."""
_GUESSED, _UNLIKELY = 28 * _DAY, 0.1
_WIDTHS, _NONE = (0.3, 0.6, 1.0, 1.6, 2.5), (0.0, 0.5)
"""Of log-normal times: deviations of the logarithm, and which part of the things takes no time."""
_STEEPEST = 2.0
_FLOOR = 1e-12
TRIMMED, TRIMMED_MOST = 0.5, 0.25
"""A bin of a pair below this many deviations of its noise, and below this part of the gaps, is left out: single
draws of years would ruin the mean of a pair of minutes."""


@dataclass(frozen=True, eq=False)
class GapBins:
    """Public bins of gaps."""

    edges: FloatArray
    """Seconds."""
    parts: int
    """Of each coarse bin but the first."""

    @staticmethod
    def of(parts: int = 1) -> GapBins:
        """Return the bins between 0, 1, 4 and 15 seconds, 1, 4, 15 and 30 minutes, then twice as long again and again:
        1 to 16 hours, 1 to 4 days, 1 to 128 weeks, 4 years; each from one second on cut into so many equal parts.
        Longer gaps count as up to 4 years."""
        inner = _EDGES[1:-1, None] + np.diff(_EDGES)[1:, None] * (np.arange(parts) / parts)
        return GapBins(np.concatenate([[0.0], inner.ravel(), _EDGES[-1:]]), parts)

    def __len__(self) -> int:
        return len(self.edges) - 1

    def cells(self, fineness: int) -> IntArray:
        """Return the cell of each bin, where a coarse bin has 2 to the power of this many cells, or as many coarse bins
        are one cell as that says below 0."""
        coarse = (np.arange(len(self)) - 1) // max(self.parts >> max(fineness, 0), 1) + 1
        return coarse >> max(-fineness, 0)

    @property
    def guess(self) -> FloatArray:
        """A public guess of how gaps are spread, for logs of which noise hides even that: up to 4 weeks evenly in
        log-time."""
        widths = np.concatenate([[np.log(4)], self._widths])
        guess = np.where(self.edges[1:] <= _GUESSED, 1.0, _UNLIKELY) * widths
        return np.asarray(guess / guess.sum())

    @cached_property
    def _widths(self) -> FloatArray:
        """In log-time, of all but the first."""
        return np.asarray(np.log(self.edges[2:] / self.edges[1:-1]))

    def told(self, microseconds: IntArray) -> IntArray:
        """Return the bin of each gap."""
        found = np.searchsorted(self.edges * 1_000_000, microseconds, side="right") - 1
        return np.asarray(np.minimum(found, len(self) - 1))

    def slopes(self, q: FloatArray) -> FloatArray:
        """Return the slope of the log-density in log-time of each bin but the first, for each row of distributions."""
        return slopes(q[:, 1:], self._widths)

    def drawn(self, bins: IntArray, rows: IntArray, steep: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Return whole seconds, one gap inside each of ``bins``, from the slopes of its row; 0 in the first bin."""
        inner = np.maximum(bins, 1) - 1
        slope, width = steep[rows, inner], self._widths[inner]
        along = inside(rng.random(len(bins)), slope, width)
        low, high = np.ceil(self.edges[1:-1]), np.ceil(self.edges[2:])
        seconds = np.floor(self.edges[1:-1][inner] * np.exp(along))
        return np.where(bins == 0, 0.0, np.clip(seconds, low[inner], np.maximum(high[inner] - 1, low[inner])))


def slopes(q: FloatArray, widths: FloatArray) -> FloatArray:
    """Return the slope of the log-density of each bin, from those beside it, for each row of distributions."""
    centres = np.cumsum(widths) - widths / 2
    logs = np.log(np.maximum(q, 1e-3) / widths)
    steep = np.zeros_like(logs)
    steep[:, 1:-1] = (logs[:, 2:] - logs[:, :-2]) / (centres[2:] - centres[:-2])
    steep[:, -1] = (logs[:, -1] - logs[:, -2]) / (centres[-1] - centres[-2])
    return np.asarray(np.clip(steep, -_STEEPEST, _STEEPEST))


def inside(part: FloatArray, slope: FloatArray, width: FloatArray) -> FloatArray:
    """Return how far into a bin of this width the part of its mass reaches, where the log-density has this slope."""
    flat = np.abs(slope) < 1e-6
    safe = np.where(flat, 1.0, slope)
    return np.asarray(np.where(flat, part * width, np.log1p(part * np.expm1(safe * width)) / safe))


@dataclass(frozen=True, eq=False)
class Cells:
    """Which cells of bins are asked of each pair: one pair after the other, the finer the more gaps it has."""

    bins: GapBins
    fineness: IntArray
    """Of each pair (:meth:`Bins.cells`)."""

    @staticmethod
    def of(known: FloatArray) -> Cells:
        """Return cells for pairs of which each has so many gaps over the noise scale of its cells.

        As for durations, the width of cells bends what is told as far as their number, of which each has noise, where
        it grows with ``known`` to the power of two thirds.
        """
        wanted = np.round(np.log2(np.maximum(known, 1e-9) / FINE) * 2 / 3)
        fineness = np.clip(wanted, COARSEST, FINEST).astype(np.int64)
        return Cells(GapBins.of(1 << max(int(fineness.max(initial=0)), 0)), fineness)

    @cached_property
    def starts(self) -> IntArray:
        """Where those of each pair begin, and where the last ones end."""
        sizes = np.array([self.bins.cells(level)[-1] + 1 for level in range(COARSEST, FINEST + 1)])
        return np.concatenate([[0], np.cumsum(sizes[self.fineness - COARSEST])])

    def told(self, pairs: IntArray, microseconds: IntArray) -> IntArray:
        """Return the cell of each gap of these pairs."""
        of_bins = np.stack([self.bins.cells(level) for level in range(COARSEST, FINEST + 1)])
        return np.asarray(self.starts[pairs] + of_bins[self.fineness[pairs] - COARSEST, self.bins.told(microseconds)])

    def backed_off(
        self, found: FloatArray, expected: FloatArray, variances: FloatArray, second: IntArray, everything: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return distributions of pairs over the bins, of what was ``found`` in their cells: drawn to those of all
        pairs with their second activity, as far as noise explains what is apart, and these to that of all pairs; and
        how much of each distribution is not the last one's.

        ``variances``: of each cell of a pair. ``expected``: how many gaps a pair should have. What activities have
        together is told in the coarsest cells, in which the others lie.
        """
        _, second = np.unique(second, return_inverse=True)
        coarse = self.bins.cells(COARSEST)
        sums, doubt = np.zeros((int(second.max()) + 1, int(coarse[-1]) + 1)), np.zeros(int(second.max()) + 1)
        for rows, cell, own in self._levels(found):
            np.add.at(sums, (second[rows, None], coarse[_firsts(cell)]), own)
            np.add.at(doubt, second[rows], variances[rows] * own.shape[1])
        total = np.asarray(np.bincount(second, weights=expected), dtype=np.float64)
        everything = np.maximum(everything, _FLOOR)
        own, known = _drawn_to(sums, total, doubt, _sums_in(coarse, everything[None, :]))
        of_second = _finer(own, coarse, everything)
        q, kept = self.leaning(found, expected, variances, of_second[second])
        return q, 1 - (1 - kept) * (1 - known[second])

    def leaning(
        self, found: FloatArray, expected: FloatArray, variances: FloatArray, like: FloatArray, *, ending: bool = False
    ) -> tuple[FloatArray, FloatArray]:
        """Return distributions of rows over the bins, of what was ``found`` in their cells: each drawn to what it is
        ``like`` as far as noise explains what is apart, and ``ending`` in a tail that falls (:func:`likely`); and how
        much of each is its own."""
        q, kept = np.empty((len(like), len(self.bins))), np.empty(len(like))
        for rows, cell, own in self._levels(found):
            above = np.maximum(like[rows], _FLOOR)
            doubts = variances[rows] * own.shape[1]
            drawn, kept[rows] = _drawn_to(own, expected[rows], doubts, _sums_in(cell, above), ending=ending)
            q[rows] = _finer(drawn, cell, above)
        return q, kept

    def log_normal(
        self, found: FloatArray, expected: FloatArray, variances: FloatArray, *, gaussian: bool
    ) -> FloatArray:
        """Return what is to be expected of each row over the bins, by what was ``found`` in its cells with noise, if
        its things take no time or a log-normal one, or are a mixture of both, and all parameters were as likely before
        (the mean of the posterior on a grid)."""
        models = _log_normals(self.bins.edges)
        q = np.empty((len(expected), len(self.bins)))
        for rows, cell, own in self._levels(found):
            masses = _sums_in(cell, models)
            for row, noisy in zip(rows.tolist(), own, strict=True):
                away = np.abs(noisy - expected[row] * masses) / np.sqrt(variances[row] / 2)
                unlikely = (away**2 / 4 if gaussian else away).sum(axis=1)
                weights = np.exp(unlikely.min() - unlikely)
                q[row] = weights @ models / weights.sum()
        return q

    def _levels(self, found: FloatArray) -> Iterator[tuple[IntArray, IntArray, FloatArray]]:
        """The pairs of each fineness, the cell of each bin, and what was found of these pairs in the cells."""
        for level in np.unique(self.fineness).tolist():
            rows, cell = np.flatnonzero(self.fineness == level), self.bins.cells(level)
            yield rows, cell, found[self.starts[rows, None] + np.arange(cell[-1] + 1)]


def _log_normals(edges: FloatArray) -> FloatArray:
    """Distributions over bins: no time at all, log-normal ones, and mixtures of both."""
    middle, wide = np.meshgrid(np.log(edges[1]) + np.arange(0, 15.5, 0.5), _WIDTHS)
    reached = ndtr((np.log(edges[1:-1]) - middle.reshape(-1, 1)) / wide.reshape(-1, 1))
    some = np.diff(reached, axis=1, prepend=0.0, append=1.0)
    none = np.eye(1, len(edges) - 1)
    return np.concatenate([none, *(part * none + (1 - part) * some for part in _NONE)])


def _firsts(cell: IntArray) -> IntArray:
    """Return the first bin of each cell."""
    return np.flatnonzero(np.diff(cell, prepend=-1))


def _sums_in(cell: IntArray, q: FloatArray) -> FloatArray:
    """Return what each cell has of distributions over bins."""
    return np.asarray(np.add.reduceat(q, _firsts(cell), axis=1))


def _finer(q: FloatArray, cell: IntArray, like: FloatArray) -> FloatArray:
    """Return distributions over cells as such over bins, inside each cell like others."""
    like = np.atleast_2d(like)
    return np.asarray(q[:, cell] * like / _sums_in(cell, like)[:, cell])


def _drawn_to(
    masses: FloatArray, total: FloatArray, variance: FloatArray, prior: FloatArray, *, ending: bool = False
) -> tuple[FloatArray, FloatArray]:
    """Noisy masses as distributions, drawn to others as far as noise explains what is apart (James, Stein 1961), and
    how much of each row is kept."""
    apart = masses / total[:, None] - prior
    spread = np.maximum((apart**2).sum(axis=1), 1e-18)
    kept = np.maximum(0.0, 1 - variance / total**2 / spread)[:, None]
    rows = prior + kept * apart
    if ending:
        scales = np.maximum(np.sqrt(variance / masses.shape[1] / 2) * kept[:, 0], _FLOOR)
        rows = np.stack([likely(row * of, scale) for row, of, scale in zip(rows, total, scales.tolist(), strict=True)])
    found = np.stack([least_squares(row) for row in rows])
    noise = np.sqrt(variance / masses.shape[1]) / total
    most = found.max(axis=1, keepdims=True)
    found = np.where(found < np.minimum(np.minimum(TRIMMED * noise, TRIMMED_MOST)[:, None], most), 0.0, found)
    return np.asarray(found / found.sum(axis=1, keepdims=True)), kept[:, 0]
