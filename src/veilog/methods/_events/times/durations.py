"""How long cases last: by what kind of case it is, from two noisy histograms that are made to agree.

Two questions. How long cases last, on logarithmic bins, the finer the less the noise; and on a few bins that hold equal
parts of the answer, by the *cell* of the case (:mod:`veilog.methods._events.cells`). Of a noisy histogram the tail is
the problem: cases that last for years and are noise would ruin the mean. Beyond most of the cases a histogram is taken
to fall and to end somewhere, sooner rather than later; and no case lasts longer than the last octave that stands out.
The table of cells is fitted to the cells of the release and to the first answer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from veilog._typing import FloatArray, IntArray
from veilog.logs.variants import Repeated
from veilog.methods._events.cells import CellRule, fit_margins
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
STANDING_OUT, WIDEST = 3.75, 4
"""Laplace noise alone exceeds so many of its deviations in one of 400 octaves: in one release of 50, where eight are
longer than the longest case. Beside octaves that have cases one without any is the last in one of eight."""
CELL_NOISES = 3
MOST_GROUPS = 48


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

    kinds: IntArray
    """The cell of each released case of two events or more."""
    edges: FloatArray
    """Of bins, in seconds."""
    q: FloatArray
    """For each kind a distribution over the bins; of those that are longer than the longest, nothing."""
    longest: int
    """Seconds that no case lasts longer than: the end of the last octave whose noisy number of cases stands out."""
    beyond: float
    """The noisy number of cases that last longer."""


def asked_durations(price: Price, price_kinds: Price, cases: Repeated, rng: np.random.Generator) -> DurationModel:
    """Return how long cases last, by their kinds. A case adds 1 to each of two answers."""
    number, epsilon_kinds = int((cases.lengths >= 2).sum()), price_kinds.epsilon()
    edges = edges_of(number * price.epsilon())

    def of_all(block: Cases) -> Triples:
        rows, took = known_durations(block)
        return rows, _bins_of(took, edges), np.ones(len(rows), dtype=np.int64)

    asked = price.sums(of_all, len(edges) - 1, 1, 1, purpose="durations-of-cases")
    an_octave, scale = len(edges) // LONGEST, 1 / price.epsilon()
    end = bins_standing_out(asked, scale, an_octave)
    everything = np.zeros(len(asked))
    everything[:end] = least_squares(likely(asked[:end], scale, an_octave, gaussian=price.rounds is not None))
    rule = CellRule.of(cases, number * epsilon_kinds, rng, least=2)
    groups = int(np.clip((number * epsilon_kinds / CELL_NOISES) ** 0.5, 2, MOST_GROUPS))
    group = np.minimum((np.cumsum(everything) - everything / 2) * groups, groups - 1).astype(np.int64)

    def of_kinds(block: Cases) -> Triples:
        rows, took = known_durations(block)
        return (
            rows,
            rule.of_cases(block)[rows] * groups + group[_bins_of(took, edges)],
            np.ones(len(rows), dtype=np.int64),
        )

    table = price_kinds.sums(
        of_kinds,
        rule.number * groups,
        1,
        1,
        alphabet=cases.labels,
        purpose="durations-by-cell",
    ).reshape(-1, groups)
    kinds = rule.of_cases(cases.distinct)[cases.owner[cases.lengths >= 2]]
    wanted = np.bincount(kinds, minlength=rule.number) / max(number, 1)
    masses = np.asarray(np.bincount(group, weights=everything, minlength=groups), dtype=np.float64)
    shares = fit_margins(table, wanted, masses, 2 / epsilon_kinds**2)
    q = shares[:, group] * (everything / np.maximum(masses[group], 1e-12))
    return DurationModel(kinds, edges, q, int(edges[end]), float(asked[end:].sum()))


def bins_standing_out(noisy: FloatArray, scale: float, an_octave: int) -> int:
    """Return the end of the last octave of which the noisy number of cases stands out of its noise, by itself or with
    up to three octaves before it; of all that are shorter than a second, if there is none.

    So many octaves together have ``STANDING_OUT`` deviations of the noise of their sum or more, and the last one has
    one deviation of its own. The bound follows from a noisy answer, and costs nothing more. Cases that last longer are
    few, or made by noise, and are drawn as shorter ones.
    """
    octaves = noisy[1:].reshape(-1, an_octave).sum(axis=1)
    deviation = scale * (2 * an_octave) ** 0.5
    found = np.zeros(len(octaves), dtype=np.bool_)
    for width in range(1, WIDEST + 1):
        sums = np.convolve(octaves, np.ones(width))[: len(octaves)]
        found |= (sums >= STANDING_OUT * deviation * width**0.5) & (octaves >= deviation)
    last = np.flatnonzero(found)
    return 1 + an_octave * (int(last[-1]) + 1 if len(last) else 0)


def drawn_durations(
    durations: DurationModel, cases: Repeated, rng: np.random.Generator
) -> tuple[IntArray, FloatArray, IntArray]:
    """Return the released cases of at least two events, the seconds they last, and their kinds.

    Those of each kind stand at even places of its distribution, in random order; inside a bin as those beside it let
    expect.
    """
    rows = np.flatnonzero(cases.lengths >= 2)
    kind = durations.kinds
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
