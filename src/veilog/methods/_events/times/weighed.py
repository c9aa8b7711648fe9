"""How long things of cases take, told by a row each: gaps by pair of activities, the processing of events by activity.

One question, on public log-scaled bins: each row on parts of these bins, on the same or on several at once, by how many
things it has in the release. The rarer a row is there, the heavier its things count, so that the noise drowns less of
what is rare; a case counts at most half of what one of the release does on average, in large logs more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from veilog._typing import BoolArray, FloatArray, IntArray
from veilog.messages import Message
from veilog.methods._events.times.gap_bins import Cells, GapBins
from veilog.methods._events.times.prices import Price
from veilog.privacy.asking import Triples
from veilog.privacy.cases import Cases, Coding

PART_OF_A_CASE = (0.5, 3.0)
"""A case counts at most the first part of what one of the release does on average: long cases count less, which bends
means, but the noise is small. Where the noise is no matter, up to the second part."""
SMALL_LOG = 1_000
"""Below this epsilon times number of released cases the first part holds; the part grows with the square root of it."""
RARE = 0.35
"""A thing counts the frequency of its row in the release to the power of minus this."""
LEAST_FOUND = 0.05
"""Of the things that the release lets expect at least this part is assumed, however low the noisy answer."""
HEAVIEST = 64
"""The lightest thing counts this many, so that weights are whole numbers."""
MOST_ROWS = 2_000
"""So many rows, the most frequent of the release, are asked for by themselves; the others share what is common."""


@dataclass(frozen=True, eq=False)
class WeightedHistogram:
    """The rows that things of the release are told by, and what things weigh; worked out for each distinct sequence, of
    which there are ``counts`` cases."""

    keys: IntArray
    """Of the rows, in order."""
    row: IntArray
    """Of each thing; of those of other rows the one after the last."""
    weight: IntArray
    """Of a thing of each row."""
    owners: IntArray
    """The sequence of each thing."""
    counts: IntArray

    @staticmethod
    def of(keys: IntArray, owners: IntArray, counts: IntArray) -> WeightedHistogram:
        """Return things of these keys in these sequences."""
        found, of_each = np.unique(keys, return_inverse=True)
        often = np.bincount(of_each, weights=counts[owners])
        frequent = np.sort(np.argsort(-often, kind="stable")[:MOST_ROWS])
        row = np.full(len(found), len(frequent))
        row[frequent] = np.arange(len(frequent))
        most = often.max(initial=1)
        weight = np.round(HEAVIEST * (often[frequent] / most) ** -RARE).astype(np.int64)
        return WeightedHistogram(found[frequent], row[of_each], weight, owners, counts)

    @property
    def in_case(self) -> FloatArray:
        """What the things of each sequence weigh."""
        weights = np.append(self.weight, 0.0)[self.row]
        return np.asarray(np.bincount(self.owners, weights=weights, minlength=len(self.counts)))

    def euclidean(self, alike: float) -> FloatArray:
        """Return the L2 norm of what a case of each sequence adds, where two things of a row are in one bin with this
        chance."""
        here = np.flatnonzero(self.row < len(self.keys))
        size = max(1, len(self.keys))
        cells, often = np.unique(self.owners[here] * size + self.row[here], return_counts=True)
        squares = self.weight[cells % size] ** 2 * (often + often * (often - 1) * alike)
        sums = np.bincount(cells // size, weights=squares, minlength=len(self.counts))
        return np.asarray(np.sqrt(sums), dtype=np.float64)

    def often(self, counting: FloatArray) -> FloatArray:
        """Return how many things each row has, where a case of each sequence counts so much."""
        counted = (counting * self.counts)[self.owners]
        found = np.bincount(self.row, weights=counted, minlength=len(self.keys) + 1)
        return np.asarray(found[: len(self.keys)], dtype=np.float64)

    def total(self, of_each: FloatArray) -> float:
        """Return what all cases have together of what a case of each sequence has."""
        return float(of_each @ self.counts)

    @property
    def ratio(self) -> float:
        """The L2 bound over the L1 bound of what a case adds."""
        return self.total(self.euclidean(1)) / self.total(self.in_case)


@dataclass(frozen=True)
class Things:
    """What is asked of raw cases: which things they have, by row and by how long they take."""

    told: Callable[[Cases], tuple[IntArray, IntArray, IntArray]]
    """Maps each case, by itself, to its things: their cases, rows and microseconds; others than the rows are beyond."""
    alphabet: Sequence[str]
    purpose: str | Message
    codings: Sequence[Coding] = ()


@dataclass(frozen=True, eq=False)
class Spread:
    """For each row, and after them for all others, a distribution over the bins and the slopes inside."""

    bins: GapBins
    keys: IntArray
    q: FloatArray
    steep: FloatArray
    fine: BoolArray
    """Which rows were asked for on parts of bins."""
    known: FloatArray
    """How much of each distribution the answers tell; all of one that is fine."""


@dataclass(frozen=True, eq=False)
class HistogramAnswer:
    """What was found of each row in its cells, with noise."""

    cells: Cells
    keys: IntArray
    found: FloatArray
    expected: FloatArray
    """How many things each row should have."""
    variances: FloatArray
    """Of a cell of each row."""
    gaussian: bool
    """Whether the noise is Gaussian."""
    common: FloatArray
    """How what takes so long is spread over the bins, whatever its row."""

    def leaning(self, group: IntArray) -> Spread:
        """Return distributions: those of the rows lean on those of their groups, and these on the common one, as far as
        noise drowns them."""
        return self._spread(*self.cells.backed_off(self.found, self.expected, self.variances, group, self.common))

    def log_normal(self) -> Spread:
        """Return distributions that lean on log-normal times, or none, or a mixture, as far as noise drowns them; their
        tails fall and end."""
        like = self.cells.log_normal(self.found, self.expected, self.variances, gaussian=self.gaussian)
        return self._spread(*self.cells.leaning(self.found, self.expected, self.variances, like, ending=True))

    def _spread(self, rows: FloatArray, known: FloatArray) -> Spread:
        q, bins = np.concatenate([rows, self.common[None, :]]), self.cells.bins
        fine = np.append(self.cells.fineness > 0, False)
        return Spread(bins, self.keys, q, bins.slopes(q), fine, np.where(fine, 1.0, np.append(known, 0.0)))


def asked(
    price: Price, weighed: WeightedHistogram, things: Things, common: Callable[[GapBins], FloatArray]
) -> HistogramAnswer:
    """Return how long the things of each row take; ``common`` gives how all are spread over the bins."""
    weight, in_case = weighed.weight, weighed.in_case
    epsilon = price.epsilon(weighed.total(in_case), weighed.total(weighed.euclidean(1)))
    least, most = PART_OF_A_CASE
    part = min(least * max(epsilon * int(weighed.counts.sum()) / SMALL_LOG, 1.0) ** 0.5, most)
    having = max(int(weighed.counts[in_case > 0].sum()), 1)
    often = weighed.often(np.ones(len(in_case)))
    cells = Cells.of(often * weight * epsilon / max(part * weighed.total(in_case) / having, 1.0))
    # A sum has less noise when it is asked for than when it is made of answers.
    parent = common(cells.bins)
    if price.rounds is not None:
        in_case = weighed.euclidean(float((parent**2).sum()))
    bound = max(round(part * weighed.total(in_case) / having), 1)

    def features(block: Cases) -> Triples:
        rows, place, took = things.told(block)
        ours = place < len(weight)
        place = place[ours]
        return rows[ours], cells.told(place, took[ours]), weight[place]

    sums = price.sums(
        features,
        int(cells.starts[-1]),
        bound,
        bound,
        alphabet=things.alphabet,
        codings=things.codings,
        purpose=things.purpose,
    )
    often = weighed.often(np.minimum(1.0, bound / np.maximum(in_case, 1e-9)))
    # The release need not have as many cases as the log: scale what it lets expect to what was found.
    found = float(sums.sum()) / max(float(often @ weight), 1.0)
    expected = np.maximum(often * max(found, LEAST_FOUND), 1.0)
    variances = 2 * (bound / price.epsilon() / weight) ** 2
    return HistogramAnswer(
        cells,
        weighed.keys,
        sums / np.repeat(weight, np.diff(cells.starts)),
        expected,
        variances,
        price.rounds is not None,
        parent,
    )
