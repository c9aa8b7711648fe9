"""How long things take, on a logarithmic scale: one histogram for durations of cases, gaps and processing.

Bins are public: less than a second, then octaves of seconds up to 4.25 years, each cut into equal parts in log-time.
How fine they are follows from how many things there are over the scale of the noise: bins of a width w bend what is
told by something like w, and their number of about 1/w, each with its noise, by the root of 1/w over that. The sum is
least where 1/w grows with that to the power of two thirds.

Of some rows (pairs of activities, or activities) each has a histogram of its own, the rarer the coarser. What noise
hides of a row is of one of some families: log-normal times, no time at all and mixtures of both; the times of all rows
together; and those of the row in a prior. The mean of all such distributions is taken, weighed by how likely the answer
is given each, and by how many rows are of its family. Where a cell is apart from this it is believed as far as noise
does not explain it (James, Stein 1961).

Everything but the question is post-processing. Times are drawn evenly in log-time inside bins, so what is drawn is made
of public edges and noisy numbers, never of a time of the log.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from veilog._typing import FloatArray, IntArray
from veilog.logs.variants import Repeated
from veilog.methods._events.fits import shrunk
from veilog.methods._events.orders import picked, spread
from veilog.methods._events.times.prices import Price
from veilog.privacy.asking import Triples
from veilog.privacy.cases import Cases

LONGEST = 27
"""Octaves of seconds: 4.25 years; what takes longer counts as up to that."""
FINE = 125
"""An octave has as many parts as (things over noise scale) over this, to the power of two thirds. With half of this the
median duration of Receipt is off by 1.5 in place of .18, and cycle times of BPIC 2013 are 3.0 in place of 1.9 distances
of halves; with twice of it mean gaps of pairs of BPIC 2013 are off by .54 in place of .40, its median duration by .08
in place of .01. All else changes by a third or less (Sepsis, Receipt, BPIC 2013, made-up hospitals of 3,000 and 6,000
cases; 10 seeds, epsilon .4). It was chosen on these logs."""
FINEST = 5
"""That is rounded to a power of two, of which the exponent is at most this: an octave has 1 to 32 cells."""
MOST_ROWS, ROW_NOISES = 2_000, 2
"""So many rows, the most frequent of the release, are asked for by themselves, if they have as many noise scales of
things; the others are as all rows together. Each row more makes the noise of all of them wider. With half of the second
number or none of it circadian distances are 3.6 and 4.1 in place of 3.3 on BPIC 2013, and 2.3 and 3.1 in place of 2.1
on a made-up hospital (logs as for ``FINE``, 5 seeds)."""
LEAST_FOUND = 0.05
"""Of the things that the release lets expect at least this part is assumed, however low the noisy answer."""
RESOLUTION = 1024
"""A case above the bound is scaled down by a fraction; contributions are whole numbers of such a part of 1."""
ALIKE = 0.25
"""How often two things of a row are in one cell, for the L2 norm of what a case adds: too low a number scales cases
down that have many, and bends means a little."""
STANDING_OUT, WIDEST = 3.75, 4
"""Laplace noise alone exceeds so many of its deviations in one of 400 octaves: in one release of 50, where eight are
longer than the longest case. Beside octaves that have cases one without any is the last in one of eight. With half of
this mean and 95th percentile of durations are within 40 % in 7 of 10 releases of a hospital of 3,000 cases at an
epsilon of .05, in place of 6, but times since the start of a case are 4.3 in place of 2.8 distances of halves on
Sepsis; with twice of it 1 of 10 are (logs as for ``FINE``)."""
_DEVIATIONS, _NONE = (0.3, 0.6, 1.0, 1.6, 2.5), (0.0, 0.5)
"""Of log-normal times: deviations of the logarithm, and which part of the things takes no time."""
_ALL_BEYOND = 0.01
"""A log-normal time of which no more than this is shorter than the longest is none that there can be."""
_TINY = 1e-12
REDRAWN = 10
FEW = 2.0
"""A row of a prior has so many things more, which are as those of all its rows."""
LEARNING = 30
"""Rounds in which it is learned how often rows are of a family."""
"""Times outside of public bounds are drawn again so often."""


# Bins ---------------------------------------------------------------------------------------------------------------


def fineness_of(known: FloatArray) -> IntArray:
    """Return which power of two the cells of an octave are, for so many things over the scale of the noise."""
    return np.round(np.log2(np.maximum(known, 1e-9) / FINE) * 2 / 3).clip(0, FINEST).astype(np.int64)


@dataclass(frozen=True, eq=False)
class LogBins:
    """Bins below a second and in octaves of seconds, each of which has so many ``parts``."""

    parts: int

    def __len__(self) -> int:
        return LONGEST * self.parts + 1

    @cached_property
    def edges(self) -> FloatArray:
        """Seconds at which bins begin, and the last one ends."""
        return np.concatenate([[0.0], 2.0 ** (np.arange(len(self)) / self.parts)])

    def cells(self, fineness: int) -> IntArray:
        """Return the cell of each bin, where an octave has 2 to the power of this many cells, or one for each bin."""
        return np.asarray((np.arange(len(self)) - 1) // max(self.parts >> fineness, 1) + 1)

    def told(self, microseconds: IntArray) -> IntArray:
        """Return the bin of each time."""
        found = np.searchsorted(self.edges * 1_000_000, microseconds, side="right") - 1
        return np.asarray(np.minimum(found, len(self) - 1))

    def drawn(self, bins: IntArray, part: FloatArray) -> FloatArray:
        """Return seconds in these bins, each where so large a part of its bin is before it; 0 in the first bin."""
        return np.where(bins == 0, 0.0, self.edges[bins] * 2.0 ** (part / self.parts))


# Rows -----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ReleasedRows:
    """The rows of the histograms, such as pairs of activities of the release, by distinct sequence."""

    keys: IntArray
    """Of the rows, in order."""
    row: IntArray
    """Of each thing; of those of other rows the one after the last."""
    owners: IntArray
    """The sequence of each thing."""
    counts: IntArray
    """Cases of each sequence."""

    @staticmethod
    def of(keys: IntArray, owners: IntArray, cases: Repeated, epsilon: float) -> ReleasedRows:
        """Return the rows of things with these keys in these sequences that are asked about with this epsilon."""
        there = cases.counts[owners] > 0
        owners = owners[there]
        found, of_each = np.unique(keys[there], return_inverse=True)
        often = np.bincount(of_each, weights=cases.counts[owners], minlength=len(found))
        order = np.argsort(-often, kind="stable")[:MOST_ROWS]
        bounds = np.maximum(np.cumsum(often[order]) / max(len(cases), 1), 1.0)  # of so many of the first rows
        enough = np.flatnonzero(often[order] * epsilon >= ROW_NOISES * bounds)
        frequent = np.sort(order[: int(enough.max(initial=0)) + 1])
        row = np.full(len(found), len(frequent))
        row[frequent] = np.arange(len(frequent))
        return ReleasedRows(found[frequent], row[of_each], owners, cases.counts)

    @cached_property
    def in_case(self) -> FloatArray:
        """How many things each sequence has: the L1 norm of what a case adds."""
        ours = self.owners[self.row < len(self.keys)]
        return np.asarray(np.bincount(ours, minlength=len(self.counts)), dtype=np.float64)

    @cached_property
    def euclidean(self) -> FloatArray:
        """The L2 norm of what a case of each sequence adds, where two things of a row are as often ``ALIKE``."""
        here = np.flatnonzero(self.row < len(self.keys))
        size = max(1, len(self.keys))
        cells, often = np.unique(self.owners[here] * size + self.row[here], return_counts=True)
        squares = often + often * (often - 1) * ALIKE
        return np.sqrt(np.bincount(cells // size, weights=squares, minlength=len(self.counts)))

    def often(self, counting: FloatArray) -> FloatArray:
        """Return how many things each row has, where a case of each sequence counts so much."""
        counted = (counting * self.counts)[self.owners]
        return np.bincount(self.row, weights=counted, minlength=len(self.keys) + 1)[:-1].astype(np.float64)

    def mean(self, of_each: FloatArray) -> float:
        """Return what a case that has any has on average, of what a case of each sequence has."""
        return float(of_each @ self.counts) / max(int(self.counts[self.in_case > 0].sum()), 1)

    @property
    def ratio(self) -> float:
        """The L2 bound over the L1 bound of what a case adds."""
        return self.mean(self.euclidean) / self.mean(self.in_case)

    def placed(self, keys: IntArray, size: int) -> IntArray:
        """Return the row of each of these keys, of which there can be so many, all 0 or more; the one after the last
        for those of no row."""
        if size <= max(len(keys), 1 << 16):  # far quicker than a search
            among = np.full(size, len(self.keys))
            among[self.keys] = np.arange(len(self.keys))
            return np.asarray(among[keys])
        place = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[place] == keys, place, len(self.keys))


Told: TypeAlias = Callable[[Cases], tuple[IntArray, IntArray, IntArray]]
"""Maps each raw case, by itself, to its things: their cases, rows and microseconds; others than the rows are beyond."""


@dataclass(frozen=True, eq=False)
class Histograms:
    """For each row, and after them for all others, a distribution over the bins."""

    bins: LogBins
    q: FloatArray

    def drawn(self, rows: IntArray, rng: np.random.Generator) -> FloatArray:
        """Return seconds for things of these rows. Those of a row stand at even places of its distribution: however few
        they are, their mean is near to its."""
        bins = picked(self.q, rows, spread(rng.random(len(rows)), rows, rng))
        return self.bins.drawn(bins, rng.random(len(rows)))

    def drawn_within(self, rows: IntArray, rng: np.random.Generator, low: FloatArray, high: FloatArray) -> FloatArray:
        """Return seconds for things of these rows that are drawn again until they are between bounds, or at one of them
        where that takes more than ``REDRAWN`` times."""
        seconds = self.drawn(rows, rng)
        for _ in range(REDRAWN):
            outside = np.flatnonzero((seconds < low) | (seconds > high))
            if not len(outside):
                break
            seconds[outside] = self.drawn(rows[outside], rng)
        return np.clip(seconds, low, high)


def asked_rows(price: Price, rows: ReleasedRows, told: Told, longest: float = np.inf, **question: Any) -> Histograms:
    """Return how long the things of each row take, as they are ``told`` of raw cases: none of them ``longest`` seconds
    or more, and none longer than the end of the last octave in which all rows together stand out.

    A case adds 1 for each of its things, but no more than one of the release does on average: what it has is scaled
    down to that, so long cases count less, which bends means a little and keeps the noise small.
    """
    norm = rows.in_case if price.rounds is None else rows.euclidean
    bound = max(round(rows.mean(norm)), 1)
    fineness = fineness_of(rows.often(np.ones(len(norm))) * price.epsilon() / bound)
    bins = LogBins(1 << int(fineness.max(initial=0)))
    cells = np.stack([bins.cells(level) for level in range(FINEST + 1)])
    starts = np.concatenate([[0], np.cumsum(cells[fineness, -1] + 1)])

    def in_bins(block: Cases) -> Triples:
        owners, row, took = told(block)
        ours = row < len(rows.keys)
        return owners[ours], row[ours] * len(bins) + bins.told(took[ours]), np.ones(int(ours.sum()), dtype=np.int64)

    def features(block: Cases) -> Triples:
        owners, place, ones = in_bins(block)
        row, of_row = np.divmod(place, len(bins))
        return owners, starts[row] + cells[fineness[row], of_row], ones

    sums = price.sums(features, int(starts[-1]), bound, bound, resolution=RESOLUTION, **question) / RESOLUTION
    often = rows.often(np.minimum(1.0, bound / np.maximum(norm, 1e-9)))
    # The release need not have as many cases as the log: scale what it lets expect to what was found.
    found = float(sums.sum()) / max(float(often.sum()), 1.0)
    expected = np.maximum(often * max(found, LEAST_FOUND), 1.0)
    octave = np.concatenate([(np.arange(cells[level, -1] + 1) - 1 >> level) + 1 for level in fineness.tolist()])
    together = np.bincount(octave, weights=sums).astype(np.float64)
    deviations = np.sqrt(2 * np.bincount(octave)) * bound / price.epsilon()
    models = _log_normals(bins, min(longest, 2.0 ** last_standing_out(together[1:], deviations[1:])))
    prior = price.of_prior(in_bins, len(rows.keys) * len(bins), bound, resolution=RESOLUTION, **question)
    priors = None
    if prior is not None:
        priors = prior.reshape(-1, len(bins))
        priors[:, bins.edges[:-1] >= longest] = 0.0
        everything = priors.sum(axis=0)
        priors = priors + FEW * everything / max(everything.sum(), _TINY)
        priors /= np.maximum(priors.sum(axis=1, keepdims=True), _TINY)
    answers = [
        _Answer(sums[starts[row] : starts[row + 1]], cells[level], float(expected[row]))
        for row, level in enumerate(fineness.tolist())
    ]
    scale, q = bound / price.epsilon(), np.empty((len(answers), len(bins)))
    pool: FloatArray | None = None
    for _ in range(2):
        families = [
            [models, *([] if pool is None else [pool]), *([] if priors is None else [priors[row : row + 1]])]
            for row in range(len(answers))
        ]
        q = _likely(answers, families, scale, gaussian=price.rounds is not None)
        pool = (expected @ q / expected.sum())[None]
    assert pool is not None
    return Histograms(bins, np.append(q, pool, axis=0))


def last_standing_out(noisy: FloatArray, deviation: FloatArray | float) -> int:
    """Return how many cells there are up to the last one of which the noisy number stands out of noise of this standard
    deviation, by itself or with up to three before it; 0 where none does.

    So many cells together have ``STANDING_OUT`` deviations of the noise of their sum or more, and the last one has one
    deviation of its own. That follows from a noisy answer, and costs nothing more.
    """
    found = np.zeros(len(noisy), dtype=np.bool_)
    for width in range(1, WIDEST + 1):
        sums = np.convolve(noisy, np.ones(width))[: len(noisy)]
        found |= (sums >= STANDING_OUT * deviation * width**0.5) & (noisy >= deviation)
    last = np.flatnonzero(found)
    return int(last[-1]) + 1 if len(last) else 0


@dataclass(frozen=True, eq=False)
class _Answer:
    """What was answered about a row."""

    noisy: FloatArray
    """The number of its things in each cell."""
    cell: IntArray
    """Of each bin."""
    expected: float
    """How many things there should be."""

    def masses(self, models: FloatArray) -> FloatArray:
        """Return what distributions over the bins let expect of the cells."""
        return np.add.reduceat(models, np.flatnonzero(np.diff(self.cell, prepend=-1)), axis=1)


def _likely(answers: list[_Answer], families: list[list[FloatArray]], scale: float, *, gaussian: bool) -> FloatArray:
    """Return how the things of each row are spread over bins, by noisy numbers of them in cells.

    Each family of a row has distributions over the bins that are as likely as each other beforehand. How often rows are
    of a family is learned from all of them (empirical Bayes). Where a cell is apart from their mean, it is believed as
    far as noise does not explain it, and beyond the last cell that stands out not at all.
    """
    means, evidence = [], np.empty((len(answers), len(families[0]) if families else 1))
    for row, (answer, ours) in enumerate(zip(answers, families, strict=True)):
        of_row = []
        for number, models in enumerate(ours):
            away = np.abs(answer.noisy - answer.expected * answer.masses(models)) / scale
            unlikely = (away**2 / 4 if gaussian else away).sum(axis=1)
            weights = np.exp(unlikely.min() - unlikely)
            evidence[row, number] = np.log(weights.mean()) - unlikely.min()
            of_row.append(weights @ models / weights.sum())
        means.append(np.stack(of_row))
    often = np.full(evidence.shape[1], 1 / evidence.shape[1])
    chance = np.exp(evidence - evidence.max(axis=1, keepdims=True))
    for _ in range(LEARNING):
        of_family = chance * often
        of_family /= of_family.sum(axis=1, keepdims=True)
        often = (of_family.sum(axis=0) + 1) / (len(answers) + len(often))
    q = np.empty((len(answers), families[0][0].shape[1]))
    possible = families[0][0].any(axis=0)
    for row, answer in enumerate(answers):
        like = of_family[row] @ means[row]
        beside = answer.masses(like[None])[0]
        counts = shrunk(answer.noisy, answer.expected * beside, 2 * scale**2)
        end = last_standing_out(answer.noisy, scale * 2**0.5)
        counts[end:] = np.minimum(counts, answer.expected * beside)[end:]
        cell = answer.cell
        inside = np.where(beside[cell] > _TINY, like / np.maximum(beside, _TINY)[cell], 1 / np.bincount(cell)[cell])
        found = np.maximum(counts, _TINY)[cell] * inside * possible
        q[row] = found / found.sum()
    return q


def _log_normals(bins: LogBins, longest: float) -> FloatArray:
    """Distributions over the bins that begin before the longest: no time at all, log-normal ones, and mixtures."""
    middle, wide = np.meshgrid(np.arange(0, LONGEST * np.log(2), 0.5), _DEVIATIONS)
    from scipy.special import ndtr  # here: a request is planned without it

    reached = ndtr((np.log(bins.edges[1:-1]) - middle.reshape(-1, 1)) / wide.reshape(-1, 1))
    some = np.diff(reached, axis=1, prepend=0.0, append=1.0)
    some[:, bins.edges[:-1] >= longest] = 0.0
    some = some[some.sum(axis=1) > _ALL_BEYOND]
    some /= some.sum(axis=1, keepdims=True)
    none = np.eye(1, len(bins))
    return np.concatenate([none, *(part * none + (1 - part) * some for part in _NONE)])
