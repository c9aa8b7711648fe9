"""How long cases last: by what kind of case it is, from two noisy histograms that are made to agree.

Two questions. How long cases last, on logarithmic bins, the finer the less the noise; and on a few bins that hold equal
parts of the answer, by *kind* of case. A kind is a last activity and a range of lengths, chosen from the release so
that each kind is common enough to be told from the noise. Of a noisy histogram the tail is the problem: cases that last
for years and are noise would ruin the mean. Beyond most of the cases a histogram is taken to fall and to end somewhere,
sooner rather than later. The table of kinds is fitted to the kinds of the release and to the first answer (iterative
proportional fitting; Deming, Stephan 1940).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from veilog._typing import FloatArray, IntArray
from veilog.logs.variants import Repeated
from veilog.methods._events.fits import least_squares, likely
from veilog.methods._events.times.gap_bins import inside, slopes
from veilog.methods._events.times.prices import Price
from veilog.privacy.asking import Triples
from veilog.privacy.cases import UNKNOWN_TIME, Cases

LONGEST = 27
"""Octaves of seconds: 4.25 years; what lasts longer counts as up to that."""
FINE = 200
MOST_AN_OCTAVE = 32
"""An octave has as many bins as (cases over noise scale) over ``FINE``, to the power of two thirds, but 1 to 32."""
MOST_KINDS = 64
KIND_NOISES = 12
"""A kind has at least so many noise scales of cases."""
CELL_NOISES = 3
MOST_GROUPS = 48
_FITTING = 30


@dataclass(frozen=True, eq=False)
class Kinds:
    """A public rule that tells the kind of a case of at least two events from its last activity and its length."""

    table: IntArray
    """By last activity (the last row: one that the release does not have) and length; longer ones as the longest."""
    number: int

    @staticmethod
    def of(cases: Repeated, least: float) -> Kinds:
        """Return kinds of which each has about ``least`` cases of the release or more, where it has so many."""
        longest = int(cases.lengths.max(initial=2))
        going = np.flatnonzero(cases.lengths >= 2)
        last, length = cases.lasts[going], cases.lengths[going]
        counts = np.zeros((len(cases.labels) + 1, longest + 1), dtype=np.int64)
        np.add.at(counts, (last, length), 1)
        rare = np.flatnonzero(counts.sum(axis=1) < least)
        table = np.zeros_like(counts)
        number = 0
        groups = [*([row] for row in range(len(counts)) if row not in set(rare.tolist())), rare.tolist()]
        for rows in groups:
            of_length = counts[rows].sum(axis=0)
            reached, left, kind = 0, int(of_length.sum()), number
            for at, count in enumerate(of_length.tolist()):
                table[rows, at] = kind
                reached, left = reached + count, left - count
                if reached >= least and left >= least:
                    kind, reached = kind + 1, 0
            number = kind + 1
        return Kinds(table, number)

    def told(self, last: IntArray, length: IntArray) -> IntArray:
        """Return the kind of each case."""
        return np.asarray(self.table[last, np.minimum(length, self.table.shape[1] - 1)])


def known_durations(block: Cases) -> tuple[IntArray, IntArray]:
    """Return cases of at least two events whose first and last time are known and in order, and their microseconds."""
    rows = np.flatnonzero(block.lengths >= 2)
    first, last = block.times[block.offsets[rows]], block.times[block.offsets[rows + 1] - 1]
    known = (first != UNKNOWN_TIME) & (last != UNKNOWN_TIME)
    rows, first, last = rows[known], first[known], last[known]
    return rows[last >= first], (last - first)[last >= first]


def edges_of(known: float) -> FloatArray:
    """Return the edges of bins in seconds: at once, then parts of octaves from one second on, of so many cases over the
    noise scale of the answer.

    Bins of a width w bend durations by something like w; their number of about 1/w, each with its noise, by the root of
    1/w over ``known``. The sum is least where 1/w grows with ``known`` to the power of two thirds.
    """
    an_octave = int(np.clip(round((known / FINE) ** (2 / 3)), 1, MOST_AN_OCTAVE))
    return np.asarray(np.concatenate([[0.0], 2.0 ** (np.arange(an_octave * LONGEST + 1) / an_octave)]))


def _bins_of(microseconds: IntArray, edges: FloatArray) -> IntArray:
    return np.minimum(np.searchsorted(edges * 1_000_000, microseconds, side="right") - 1, len(edges) - 2)


@dataclass(frozen=True, eq=False)
class DurationModel:
    """How long cases of each kind last."""

    kinds: Kinds
    edges: FloatArray
    """Of bins, in seconds."""
    q: FloatArray
    """For each kind a distribution over the bins."""


def asked_durations(price: Price, price_kinds: Price, cases: Repeated) -> DurationModel:
    """Return how long cases last, by their kinds. A case adds 1 to each of two answers."""
    number, epsilon_kinds = int((cases.lengths >= 2).sum()), price_kinds.epsilon()
    edges = edges_of(number * price.epsilon())

    def of_all(block: Cases) -> Triples:
        rows, took = known_durations(block)
        return rows, _bins_of(took, edges), np.ones(len(rows), dtype=np.int64)

    asked = price.sums(of_all, len(edges) - 1, 1, 1, purpose="durations-of-cases")
    everything = least_squares(
        likely(asked, 1 / price.epsilon(), len(edges) // LONGEST, gaussian=price.rounds is not None)
    )
    kinds = Kinds.of(cases, max(KIND_NOISES / epsilon_kinds, number / MOST_KINDS))
    groups = int(np.clip((number * epsilon_kinds / CELL_NOISES) ** 0.5, 2, MOST_GROUPS))
    group = np.minimum((np.cumsum(everything) - everything / 2) * groups, groups - 1).astype(np.int64)

    def of_kinds(block: Cases) -> Triples:
        rows, took = known_durations(block)
        kind = kinds.told(block.codes[block.offsets[rows + 1] - 1], block.lengths[rows])
        return rows, kind * groups + group[_bins_of(took, edges)], np.ones(len(rows), dtype=np.int64)

    table = price_kinds.sums(
        of_kinds,
        kinds.number * groups,
        1,
        1,
        alphabet=cases.labels,
        purpose="durations-by-last-activity",
    ).reshape(-1, groups)
    wanted = np.bincount(kinds.told(*_ends(cases)), minlength=kinds.number) / max(number, 1)
    masses = np.asarray(np.bincount(group, weights=everything, minlength=groups), dtype=np.float64)
    shares = fitted(table, wanted, masses, 2 / epsilon_kinds**2)
    return DurationModel(kinds, edges, shares[:, group] * (everything / np.maximum(masses[group], 1e-12)))


def _ends(cases: Repeated) -> tuple[IntArray, IntArray]:
    """The last activity and the length of each released case of at least two events."""
    going = np.flatnonzero(cases.lengths >= 2)
    return cases.lasts[going], cases.lengths[going]


def fitted(table: FloatArray, rows: FloatArray, columns: FloatArray, variance: float) -> FloatArray:
    """The distribution of each row of a noisy table that has these shares of rows and columns."""
    total = max(float(table.sum()), 1.0)
    alike = np.outer(rows, columns)
    apart = table / total - alike
    spread = (apart**2).sum(axis=1, keepdims=True)
    kept = np.maximum(0.0, 1 - table.shape[1] * variance / total**2 / np.maximum(spread, 1e-18))
    found = np.maximum(alike + kept * apart, 1e-3 * alike) + 1e-15
    for _ in range(_FITTING):
        found *= (rows / np.maximum(found.sum(axis=1), 1e-15))[:, None]
        found *= columns / np.maximum(found.sum(axis=0), 1e-15)
    return np.asarray(found / np.maximum(found.sum(axis=1, keepdims=True), 1e-15))


def drawn_durations(
    durations: DurationModel, cases: Repeated, rng: np.random.Generator
) -> tuple[IntArray, FloatArray, IntArray]:
    """Return the released cases of at least two events, the seconds they last, and their kinds.

    Those of each kind stand at even places of its distribution, in random order; inside a bin as those beside it let
    expect.
    """
    rows = np.flatnonzero(cases.lengths >= 2)
    kind = durations.kinds.told(*_ends(cases))
    seconds = np.zeros(len(rows))
    low, widths = durations.edges[1:-1], np.log(durations.edges[2:] / durations.edges[1:-1])
    steep = slopes(durations.q[:, 1:], widths)
    for one in np.unique(kind).tolist():
        own, q = rng.permutation(np.flatnonzero(kind == one)), durations.q[one]
        place = (np.arange(len(own)) + rng.random(len(own))) / len(own)
        reached = np.concatenate([[0.0], np.cumsum(q)])
        place = place * reached[-1]
        bins = np.minimum(np.searchsorted(reached, place, side="right") - 1, len(q) - 1)
        part = np.clip((place - reached[bins]) / np.maximum(q[bins], 1e-15), 0.0, 1.0)
        inner = np.maximum(bins, 1) - 1
        seconds[own] = np.where(bins == 0, 0.0, low[inner] * np.exp(inside(part, steep[one][inner], widths[inner])))
    return rows, seconds, kind
