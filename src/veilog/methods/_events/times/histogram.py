"""Logarithmic histograms of durations of cases, of gaps and of processing.

Bins are public: less than a second, then octaves of seconds up to 4.25 years, each cut into equal parts in log-time.
Their width follows from the number of things over the scale of the noise. Bins of a width w bend the result by about w.
Their number of about 1/w, each with its noise, bends it by the root of 1/w over that ratio. The sum is least where 1/w
grows with the ratio to the power of two thirds.

Some rows (pairs of activities, or activities) have a histogram of their own, the rarer the coarser. Rows too rare for
that are one row together. Where noise hides a row, its things may take no time, or a log-normal one, or a mixture of
both. They may also be as those of all rows together, or of the row in a prior. The mean over all such distributions is
taken, weighted by how likely each makes the answer. If a cell differs from this mean, the difference is believed as far
as noise does not explain it (James, Stein 1961).

Everything but the query is post-processing. Times are drawn evenly in log-time inside bins. They are made of public
edges and noisy numbers, never of a time of the log.
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
from veilog.methods._events.orders import pick_bins, spread_evenly
from veilog.methods._events.times.prices import Price
from veilog.privacy.case_functions import Triples
from veilog.privacy.cases import Cases

LONGEST = 27
"""Number of octaves of seconds: 4.25 years; longer times count as up to that."""
FINE = 125
"""An octave has as many parts as (things over noise scale) over this, to the power of two thirds. With half of this the
median duration of Receipt is off by 1.5 in place of .18, and cycle times of BPIC 2013 are 3.0 in place of 1.9 distances
of halves. With twice of it mean gaps of pairs of BPIC 2013 are off by .54 in place of .40, its median duration by .08
in place of .01. All else changes by a third or less (Sepsis, Receipt, BPIC 2013, synthetic hospitals of 3,000 and 6,000
cases; 10 seeds, epsilon .4). It was chosen on these logs."""
FINEST = 5
"""Largest exponent when that is rounded to a power of two: an octave has 1 to 32 cells."""
MOST_ROWS = 2_000
"""Most rows that have a histogram of their own, the most frequent of the release; the others are one together."""
ROW_NOISES = 12
"""Least noise scales of things in a row of its own. Moving these to another octave is then less likely than leaving
them, by e to the power of 24 at most, and there are 135 log-normal times to confuse. With half and twice of this
medians of pairs of Receipt are off by 13 and 21 in place of 16 times. Cycle times of a synthetic hospital are 1.2 and
1.0 in place of 1.0 distances of halves; means of pairs in a synthetic network .08 and .07 in place of .07 (5 seeds,
logs of ``bench/times.py``)."""
LEAST_FOUND = 0.05
"""Least assumed part of the things that the release lets expect, however low the noisy answer."""
RESOLUTION = 1024
"""Contributions are multiples of 1 over this, because a case above the bound is scaled down by a fraction."""
ALIKE = 0.25
"""Share of pairs of things of a row that are in one cell, for the L2 norm of what a case adds. If it is too low, cases
of many things are scaled down, which bends means a little."""
STANDING_OUT, WIDEST = 3.75, 4
"""Deviations of the noise from which cells stand out, and the most cells that do so together. Laplace noise alone
exceeds so many in one of 400 octaves: in one release of 50, where eight octaves are longer than the longest case.
Next to octaves that have cases, one without any is the last in one of eight. With half of this mean and 95th percentile
of durations are within 40 % in 7 of 10 releases of a hospital of 3,000 cases at an epsilon of .05, in place of 6. Times
since the start of a case are then 4.3 in place of 2.8 distances of halves on Sepsis. With twice of it 1 of 10 releases
are within 40 % (logs as for ``FINE``)."""
_DEVIATIONS, _NONE = (0.3, 0.6, 1.0, 1.6, 2.5), (0.0, 0.5)
"""Deviations of the logarithm of log-normal times, and parts of the things that take no time."""
_ALL_BEYOND = 0.01
"""Log-normal times are left out if at most this part of them is shorter than the longest."""
_TINY = 1e-12
REDRAWN = 10
"""Most times that a time outside of public bounds is drawn again."""
MOST_ODDS, ODDS, HALVINGS = 12.0, 96, 12
"""Largest logarithm of odds, steps from its negative to it, and halvings that find a factor of odds."""
FEW = 2.0
"""Things added to each row of a prior, distributed as those of all its rows."""
PARAMETERS = 3
"""Parameters of a log-normal time: its median, its deviation, and the part that takes no time."""


# Bins ---------------------------------------------------------------------------------------------------------------


def fineness_of(known: FloatArray) -> IntArray:
    """Return the exponents of the numbers of cells of an octave, as powers of two.

    ``known`` are numbers of things over the scale of the noise."""
    return np.round(np.log2(np.maximum(known, 1e-9) / FINE) * 2 / 3).clip(0, FINEST).astype(np.int64)


@dataclass(frozen=True, eq=False)
class LogBins:
    """A bin below a second, and so many ``parts`` of each octave of seconds."""

    parts: int

    def __len__(self) -> int:
        return LONGEST * self.parts + 1

    @cached_property
    def edges(self) -> FloatArray:
        """Seconds at which bins begin, and the last one ends."""
        return np.concatenate([[0.0], 2.0 ** (np.arange(len(self)) / self.parts)])

    def cells(self, fineness: int) -> IntArray:
        """Return the cell of each bin.

        An octave has 2 to the power of ``fineness`` cells, or one for each bin."""
        return np.asarray((np.arange(len(self)) - 1) // max(self.parts >> fineness, 1) + 1)

    def told(self, microseconds: IntArray) -> IntArray:
        """Return the bin of each time."""
        found = np.searchsorted(self.edges * 1_000_000, microseconds, side="right") - 1
        return np.asarray(np.minimum(found, len(self) - 1))

    def drawn(self, bins: IntArray, part: FloatArray) -> FloatArray:
        """Return seconds at these parts of bins, in log-time; 0 in the first bin."""
        return np.where(bins == 0, 0.0, self.edges[bins] * 2.0 ** (part / self.parts))


# Rows -----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ReleasedRows:
    """Rows of histograms, such as released pairs of activities, by distinct sequence."""

    keys: IntArray
    """Keys of the rows, in order."""
    row: IntArray
    """Row of each thing; things of no row have the one after the last."""
    owners: IntArray
    """Sequence of each thing."""
    counts: IntArray
    """Number of cases of each sequence."""

    @staticmethod
    def of(keys: IntArray, owners: IntArray, cases: Repeated, epsilon: float = np.inf) -> ReleasedRows:
        """Return the rows of things with these keys in these sequences.

        They are the most frequent: those with so many things that an answer at this epsilon shows where they are."""
        there = cases.counts[owners] > 0
        owners = owners[there]
        found, of_each = np.unique(keys[there], return_inverse=True)
        often = np.bincount(of_each, weights=cases.counts[owners], minlength=len(found))
        scale = float(often.sum()) / max(int(cases.counts[np.unique(owners)].sum()), 1) / epsilon
        frequent = np.argsort(-often, kind="stable")[:MOST_ROWS]
        frequent = np.sort(frequent[often[frequent] >= ROW_NOISES * scale])
        row = np.full(len(found), len(frequent))
        row[frequent] = np.arange(len(frequent))
        return ReleasedRows(found[frequent], row[of_each], owners, cases.counts)

    @cached_property
    def in_case(self) -> FloatArray:
        """Number of things of each sequence: the L1 norm of what a case adds."""
        return np.asarray(np.bincount(self.owners, minlength=len(self.counts)), dtype=np.float64)

    @cached_property
    def euclidean(self) -> FloatArray:
        """L2 norm of what a case of each sequence adds.

        Two things of a row are in one cell as often as ``ALIKE``."""
        size = len(self.keys) + 1
        cells, often = np.unique(self.owners * size + self.row, return_counts=True)
        squares = often + often * (often - 1) * ALIKE
        return np.sqrt(np.bincount(cells // size, weights=squares, minlength=len(self.counts)))

    def often(self, counting: FloatArray) -> FloatArray:
        """Return the number of things of each row, and last of all others.

        A case of each sequence counts as much as ``counting`` has for it."""
        counted = (counting * self.counts)[self.owners]
        return np.bincount(self.row, weights=counted, minlength=len(self.keys) + 1).astype(np.float64)

    def mean(self, of_each: FloatArray) -> float:
        """Return the mean of ``of_each`` over the cases that have any thing."""
        return float(of_each @ self.counts) / max(int(self.counts[self.in_case > 0].sum()), 1)

    @property
    def tell(self) -> bool:
        """True if half of all things or more have a row of their own."""
        often = self.often(np.ones(len(self.counts)))
        return bool(2 * often[:-1].sum() >= often.sum())

    @property
    def ratio(self) -> float:
        """L2 bound of what a case adds over its L1 bound."""
        return self.mean(self.euclidean) / self.mean(self.in_case)

    def placed(self, keys: IntArray, size: int) -> IntArray:
        """Return the row of each key; the one after the last for those of no row.

        Keys are 0 or more, and less than ``size``."""
        if not len(self.keys):
            return np.zeros(len(keys), dtype=np.int64)
        if size <= max(len(keys), 1 << 16):  # far quicker than a search
            among = np.full(size, len(self.keys))
            among[self.keys] = np.arange(len(self.keys))
            return np.asarray(among[keys])
        place = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[place] == keys, place, len(self.keys))


Bounds: TypeAlias = tuple[FloatArray, FloatArray]
"""Least and most seconds that each thing may take, by public rules."""
Told: TypeAlias = Callable[[Cases], tuple[IntArray, IntArray, IntArray]]
"""Function from each raw case, by itself, to its things: cases, rows (beyond the last for others), microseconds."""


@dataclass(frozen=True, eq=False)
class Histograms:
    """Distributions over the bins: one for each row, and the last for all others."""

    bins: LogBins
    q: FloatArray

    def drawn(self, rows: IntArray, rng: np.random.Generator) -> FloatArray:
        """Return seconds for things of these rows."""
        return self.at(rows, self.places(rows, rng))

    def places(self, rows: IntArray, rng: np.random.Generator, bounds: Bounds | None = None) -> FloatArray:
        """Return places in [0, 1) of things in the distributions of their rows.

        They are spread evenly in each: however few things a row has, their mean is near to its. Things that are not
        between the bounds are drawn again, up to ``REDRAWN`` times.
        """
        found = spread_evenly(rng.random(len(rows)), rows, rng)
        least, most = (0.0, np.inf) if bounds is None else bounds
        for _ in range(0 if bounds is None else REDRAWN):
            seconds = self.at(rows, found)
            outside = np.flatnonzero((seconds < least) | (seconds > most))
            found[outside] = spread_evenly(rng.random(len(outside)), rows[outside], rng)
        return found

    def at(self, rows: IntArray, places: FloatArray) -> FloatArray:
        """Return the seconds at these places of the distributions of rows."""
        reached = np.concatenate([np.zeros((len(self.q), 1)), np.cumsum(self.q, axis=1)], axis=1)
        bins = pick_bins(self.q, rows, places)
        inside = (places * reached[rows, -1] - reached[rows, bins]) / np.maximum(self.q[rows, bins], _TINY)
        return self.bins.drawn(bins, np.clip(inside, 0.0, 1.0))

    def adding_up(self, rows: IntArray, places: FloatArray, owner: IntArray, wanted: FloatArray) -> FloatArray:
        """Return seconds of things, moved to add up to about ``wanted`` by owner.

        The things are at ``places`` of their ``rows``. The odds p / (1 - p) of all places of an owner are multiplied by
        one factor (found by halving). Things that may take days by their row take most of what is missing. Those that
        take seconds stay near to these.
        """
        grid = np.linspace(-MOST_ODDS, MOST_ODDS, ODDS + 1)
        of_row, places_of = np.divmod(np.arange(len(self.q) * len(grid)), len(grid))
        table = self.at(of_row, 1 / (1 + np.exp(-grid[places_of])))
        step = 2 * MOST_ODDS / ODDS
        at = (np.log(np.maximum(places, _TINY)) - np.log1p(-places)) / step + ODDS / 2
        first = rows * len(grid)

        def seconds(moved: FloatArray) -> FloatArray:
            place = np.clip(at + moved[owner], 0.0, ODDS - 1e-6)
            cell = place.astype(np.int64)
            place -= cell
            cell += first
            below = table[cell]
            cell += 1
            return below + place * (table[cell] - below)

        moved, half = np.zeros(len(wanted)), ODDS / 2
        for _ in range(HALVINGS):
            sums = np.bincount(owner, weights=seconds(moved), minlength=len(wanted))
            moved += np.where(sums < wanted, half, -half)
            half /= 2
        return seconds(moved)


def query_rows(price: Price, rows: ReleasedRows, told: Told, longest: float = np.inf, **question: Any) -> Histograms:
    """Return the distributions of how long things of rows take, ``told`` of raw cases.

    None takes ``longest`` seconds or more. Without such a bound none takes longer than the end of the last octave in
    which all rows together stand out.

    A case adds 1 for each of its things, but no more than a case of the release does on average. A case that has more
    is scaled down to that. So long cases count less, which bends means a little and keeps the noise small.
    """
    norm = rows.in_case if price.rounds is None else rows.euclidean
    bound = max(round(rows.mean(norm)), 1)
    fineness = fineness_of(rows.often(np.ones(len(norm))) * price.epsilon() / bound)
    bins = LogBins(1 << int(fineness.max(initial=0)))
    cells = np.stack([bins.cells(level) for level in range(FINEST + 1)])
    starts = np.concatenate([[0], np.cumsum(cells[fineness, -1] + 1)])

    def in_bins(block: Cases) -> Triples:
        owners, row, took = told(block)
        return owners, row * len(bins) + bins.told(took), np.ones(len(row), dtype=np.int64)

    def features(block: Cases) -> Triples:
        owners, place, ones = in_bins(block)
        row, of_row = np.divmod(place, len(bins))
        return owners, starts[row] + cells[fineness[row], of_row], ones

    sums = price.sums(features, int(starts[-1]), bound, bound, resolution=RESOLUTION, **question) / RESOLUTION
    often = rows.often(np.minimum(1.0, bound / np.maximum(norm, 1e-9)))
    # The release need not have as many cases as the log: scale expected numbers to those that were found.
    found = float(sums.sum()) / max(float(often.sum()), 1.0)
    expected = np.maximum(often * max(found, LEAST_FOUND), 1.0)
    octave = np.concatenate([(np.arange(cells[level, -1] + 1) - 1 >> level) + 1 for level in fineness.tolist()])
    together = np.bincount(octave, weights=sums).astype(np.float64)
    deviations = np.sqrt(2 * np.bincount(octave)) * bound / price.epsilon()
    # Cases of known durations have their own bound: gaps that noise hides may be as long as that.
    models = _log_normals(bins, longest if longest < np.inf else 2.0 ** last_standing_out(together[1:], deviations[1:]))
    prior = price.of_prior(in_bins, len(expected) * len(bins), bound, resolution=RESOLUTION, **question)
    priors = None
    if prior is not None:
        priors = prior.reshape(-1, len(bins))
        priors[:, bins.edges[:-1] >= longest] = 0.0
        everything = priors.sum(axis=0)
        priors = priors + FEW * everything / max(everything.sum(), _TINY)
        priors /= np.maximum(priors.sum(axis=1, keepdims=True), _TINY)
    scale, q, pools = bound / price.epsilon(), np.empty((len(expected), len(bins))), np.zeros((0, len(bins)))
    for _ in range(2):
        likely = _Likely(np.append(models, pools, axis=0), len(pools), scale, price.rounds is not None)
        for row, level in enumerate(fineness.tolist()):
            noisy, prior_row = sums[starts[row] : starts[row + 1]], None if priors is None else priors[row]
            q[row] = likely.of(noisy, float(expected[row]), cells[level], prior_row)
        pools = (expected @ q / expected.sum())[None]
    if not often[-1]:  # nothing is known of other rows, which a sample may have
        q[-1] = pools[0]
    return Histograms(bins, q)


def last_standing_out(noisy: FloatArray, deviation: FloatArray | float) -> int:
    """Return the number of cells up to the last that stands out of noise, or 0.

    A cell stands out by itself or with up to three before it. Together these have ``STANDING_OUT`` standard deviations
    of the noise of their sum or more, and the last one has one ``deviation`` of its own. That follows from a noisy
    answer, and uses no more epsilon.
    """
    found = np.zeros(len(noisy), dtype=np.bool_)
    for width in range(1, WIDEST + 1):
        sums = np.convolve(noisy, np.ones(width))[: len(noisy)]
        found |= (sums >= STANDING_OUT * deviation * width**0.5) & (noisy >= deviation)
    last = np.flatnonzero(found)
    return int(last[-1]) + 1 if len(last) else 0


@dataclass(frozen=True, eq=False)
class _Likely:
    """Spread of a row's things over bins, by noisy numbers of them in cells.

    It is as models let expect. Up to the last cell that stands out it differs from that, as far as noise does not
    explain the difference.
    """

    models: FloatArray
    """Distributions over the bins, each as likely as another beforehand."""
    pools: int
    """Number of the last models, which have no parameters. Each is as likely as all with parameters together, and more
    by the root of the number of cells for each parameter that these have (Schwarz 1978)."""
    scale: float
    """Scale of the noise of each number."""
    gaussian: bool

    def of(self, noisy: FloatArray, expected: float, cell: IntArray, prior: FloatArray | None = None) -> FloatArray:
        """Return the shares of bins for ``expected`` things; a prior is one more pool."""
        models, pools = self.models, self.pools
        if prior is not None:
            models, pools = np.append(models, prior[None], axis=0), pools + 1
        masses = np.add.reduceat(models, np.flatnonzero(np.diff(cell, prepend=-1)), axis=1)
        away = np.abs(noisy - expected * masses) / self.scale
        unlikely = (away**2 / 4 if self.gaussian else away).sum(axis=1)
        weights = np.exp(unlikely.min() - unlikely)
        weights[len(weights) - pools :] *= (len(weights) - pools) * len(noisy) ** (PARAMETERS / 2)
        like, beside = (weights @ of / weights.sum() for of in (models, masses))
        counts = shrunk(noisy, expected * beside, 2 * self.scale**2)
        end = last_standing_out(noisy, self.scale * 2**0.5)
        counts[end:] = np.minimum(counts, expected * beside)[end:]
        inside = np.where(beside[cell] > _TINY, like / np.maximum(beside, _TINY)[cell], 1 / np.bincount(cell)[cell])
        found = np.maximum(counts, _TINY)[cell] * inside * self.models.any(axis=0)
        return np.asarray(found / found.sum())


def _log_normals(bins: LogBins, longest: float) -> FloatArray:
    """Return distributions over the bins: no time, log-normal, and mixtures of both.

    Bins that begin at ``longest`` or later have nothing."""
    middle, wide = np.meshgrid(np.arange(0, LONGEST * np.log(2), 0.5), _DEVIATIONS)
    from scipy.special import ndtr  # here: a request is planned without it

    reached = ndtr((np.log(bins.edges[1:-1]) - middle.reshape(-1, 1)) / wide.reshape(-1, 1))
    some = np.diff(reached, axis=1, prepend=0.0, append=1.0)
    some[:, bins.edges[:-1] >= longest] = 0.0
    some = some[some.sum(axis=1) > _ALL_BEYOND]
    some /= some.sum(axis=1, keepdims=True)
    none = np.eye(1, len(bins))
    return np.concatenate([none, *(part * none + (1 - part) * some for part in _NONE)])
