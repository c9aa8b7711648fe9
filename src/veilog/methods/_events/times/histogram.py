"""How long things take, on a logarithmic scale: one histogram for durations of cases, gaps and processing.

Bins are public: less than a second, then octaves of seconds up to 4.25 years, each cut into equal parts in log-time.
How fine they are follows from how many things there are over the scale of the noise: bins of a width w bend what is
told by something like w, and their number of about 1/w, each with its noise, by the root of 1/w over that. The sum is
least where 1/w grows with that to the power of two thirds.

Of some rows (pairs of activities, or activities) each has a histogram of its own, the rarer the coarser. Rows too rare
for that are one row together. What noise hides of a row is as if its things took no time, or a log-normal one, or were
a mixture of both, or as those of all rows together, or as those of the row in a prior. Of all such distributions the
mean is taken, weighed by how likely the answer is given each. Where a cell is apart from this it is believed as far as
noise does not explain it (James, Stein 1961).

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
from veilog.privacy.case_functions import Triples
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
MOST_ROWS = 2_000
"""So many rows, the most frequent of the release, are asked for by themselves at most; the others are one together."""
ROW_NOISES = 12
"""A row of its own has so many noise scales of things or more: moving them to another octave is then less likely by
e to the power of 24, at most, than leaving them, and there are 135 log-normal times to confuse. With half and twice of
this medians of pairs of Receipt are off by 13 and 21 in place of 16 times, and cycle times of a made-up hospital are
1.2 and 1.0 in place of 1.0 distances of halves; means of pairs in a made-up network .08 and .07 in place of .07 (5
seeds, logs of ``bench/times.py``)."""
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
"""Times outside of public bounds are drawn again so often."""
MOST_ODDS, ODDS, HALVINGS = 12.0, 96, 12
"""Logarithms of odds are told apart from -12 to 12, in so many steps; factors of odds are found by so many halvings."""
FEW = 2.0
"""A row of a prior has so many things more, which are as those of all its rows."""
PARAMETERS = 3
"""Of a log-normal time: its median, its deviation, and which part takes no time."""


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
    def of(keys: IntArray, owners: IntArray, cases: Repeated, epsilon: float = np.inf) -> ReleasedRows:
        """Return the rows of things with these keys in these sequences: those with so many things that an answer at
        this epsilon says where they are."""
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
        """How many things each sequence has: the L1 norm of what a case adds."""
        return np.asarray(np.bincount(self.owners, minlength=len(self.counts)), dtype=np.float64)

    @cached_property
    def euclidean(self) -> FloatArray:
        """The L2 norm of what a case of each sequence adds, where two things of a row are as often ``ALIKE``."""
        size = len(self.keys) + 1
        cells, often = np.unique(self.owners * size + self.row, return_counts=True)
        squares = often + often * (often - 1) * ALIKE
        return np.sqrt(np.bincount(cells // size, weights=squares, minlength=len(self.counts)))

    def often(self, counting: FloatArray) -> FloatArray:
        """Return how many things each row has, and all others, where a case of each sequence counts so much."""
        counted = (counting * self.counts)[self.owners]
        return np.bincount(self.row, weights=counted, minlength=len(self.keys) + 1).astype(np.float64)

    def mean(self, of_each: FloatArray) -> float:
        """Return what a case that has any has on average, of what a case of each sequence has."""
        return float(of_each @ self.counts) / max(int(self.counts[self.in_case > 0].sum()), 1)

    @property
    def tell(self) -> bool:
        """Whether half of all things or more have a row of their own."""
        often = self.often(np.ones(len(self.counts)))
        return bool(2 * often[:-1].sum() >= often.sum())

    @property
    def ratio(self) -> float:
        """The L2 bound over the L1 bound of what a case adds."""
        return self.mean(self.euclidean) / self.mean(self.in_case)

    def placed(self, keys: IntArray, size: int) -> IntArray:
        """Return the row of each of these keys, of which there can be so many, all 0 or more; the one after the last
        for those of no row."""
        if not len(self.keys):
            return np.zeros(len(keys), dtype=np.int64)
        if size <= max(len(keys), 1 << 16):  # far quicker than a search
            among = np.full(size, len(self.keys))
            among[self.keys] = np.arange(len(self.keys))
            return np.asarray(among[keys])
        place = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[place] == keys, place, len(self.keys))


Bounds: TypeAlias = tuple[FloatArray, FloatArray]
"""The least and the most seconds that each thing may take, by public rules."""
Told: TypeAlias = Callable[[Cases], tuple[IntArray, IntArray, IntArray]]
"""Maps each raw case, by itself, to its things: their cases, rows and microseconds; others than the rows are beyond."""


@dataclass(frozen=True, eq=False)
class Histograms:
    """For each row, and after them for all others, a distribution over the bins."""

    bins: LogBins
    q: FloatArray

    def drawn(self, rows: IntArray, rng: np.random.Generator) -> FloatArray:
        """Return seconds for things of these rows."""
        return self.at(rows, self.places(rows, rng))

    def places(self, rows: IntArray, rng: np.random.Generator, bounds: Bounds | None = None) -> FloatArray:
        """Return places in [0, 1) of things in the distributions of their rows, evenly spread in each: however few
        things a row has, their mean is near to its. Those that are not between the bounds are drawn again, up to
        ``REDRAWN`` times."""
        found = spread(rng.random(len(rows)), rows, rng)
        least, most = (0.0, np.inf) if bounds is None else bounds
        for _ in range(0 if bounds is None else REDRAWN):
            seconds = self.at(rows, found)
            outside = np.flatnonzero((seconds < least) | (seconds > most))
            found[outside] = spread(rng.random(len(outside)), rows[outside], rng)
        return found

    def at(self, rows: IntArray, places: FloatArray) -> FloatArray:
        """Return the seconds at these places of the distributions of rows."""
        reached = np.concatenate([np.zeros((len(self.q), 1)), np.cumsum(self.q, axis=1)], axis=1)
        bins = picked(self.q, rows, places)
        inside = (places * reached[rows, -1] - reached[rows, bins]) / np.maximum(self.q[rows, bins], _TINY)
        return self.bins.drawn(bins, np.clip(inside, 0.0, 1.0))

    def adding_up(self, rows: IntArray, places: FloatArray, owner: IntArray, wanted: FloatArray) -> FloatArray:
        """Return seconds for things at these places of their rows, moved so that those of each owner add up to about
        what is wanted.

        The odds p / (1 - p) of all places of an owner are multiplied by one factor (found by halving). Things that may
        take days by their row take most of what is missing, and those that take seconds stay near to these.
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


def asked_rows(price: Price, rows: ReleasedRows, told: Told, longest: float = np.inf, **question: Any) -> Histograms:
    """Return how long the things of each row take, as they are ``told`` of raw cases: none of them ``longest`` seconds
    or more; or, without such a bound, none longer than the end of the last octave in which all rows together stand out.

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
        return owners, row * len(bins) + bins.told(took), np.ones(len(row), dtype=np.int64)

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
    # Cases of known durations have their own bound: gaps which noise hides may be as long as that.
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
class _Likely:
    """How the things of a row are spread over bins, by noisy numbers of them in cells: as models let expect, and up to
    the last cell that stands out otherwise, as far as noise does not explain what is apart."""

    models: FloatArray
    """Distributions over the bins, each as likely as another beforehand."""
    pools: int
    """So many of the last ones have no parameters: they are as likely as all others together, and more by the root of
    the number of cells for each parameter that these have (Schwarz 1978)."""
    scale: float
    """Of the noise of each number."""
    gaussian: bool

    def of(self, noisy: FloatArray, expected: float, cell: IntArray, prior: FloatArray | None = None) -> FloatArray:
        """Return the shares of bins, given how many things there should be; a prior is one more without parameters."""
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
