"""Durations of cases by kind, from two noisy histograms that are made to agree.

The first query counts cases by duration, on logarithmic bins (:mod:`.histogram`). The second counts them on a few bins,
which hold equal parts of the first answer, by the *cell* of the case (:mod:`veilog.methods._events.cells`).

The tail of a noisy histogram is the problem: cases of many years that are only noise would ruin the mean. Beyond most
of the cases a histogram is taken to fall, and to end sooner rather than later. No case lasts longer than the last
octave that stands out, or in which a prior lets expect one. The table of cells is fitted to the cells of the release
and to the first answer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from veilog._typing import FloatArray, IntArray
from veilog.logs.variants import Repeated
from veilog.methods._events.cells import CellRule, apart_of, fit_margins
from veilog.methods._events.fits import least_squares, likely
from veilog.methods._events.times.histogram import Histograms, LogBins, fineness_of, last_standing_out
from veilog.methods._events.times.prices import Price
from veilog.methods._events.times.prior import lean_on_prior
from veilog.privacy.case_functions import Triples
from veilog.privacy.cases import UNKNOWN_TIME, Cases

FEWEST_KINDS = 2
CELL_NOISES, MOST_GROUPS = 3, 48
"""Noise scales of a cell that each bin of the second query holds, and the most such bins."""


def known_durations(block: Cases) -> tuple[IntArray, IntArray]:
    """Return cases of known duration, and their microseconds.

    They have at least two events, whose first and last times are known and in order."""
    rows = np.flatnonzero(block.lengths >= 2)
    first, last = block.times[block.offsets[rows]], block.times[block.offsets[rows + 1] - 1]
    known = (first != UNKNOWN_TIME) & (last != UNKNOWN_TIME)
    rows, first, last = rows[known], first[known], last[known]
    return rows[last >= first], (last - first)[last >= first]


@dataclass(frozen=True, eq=False)
class DurationsByKind:
    """Durations of cases of each kind."""

    rule: CellRule
    """Rule that gives each case its cell, which is its kind."""
    lasting: Histograms
    """Distribution of each kind over the bins, with nothing beyond the longest."""
    longest: int
    """Longest duration in seconds: the end of the last octave whose noisy number of cases stands out, or in which a
    prior lets expect one. Longer cases are few, or made by noise, and are drawn as shorter ones."""
    beyond: float
    """Noisy number of cases that last longer."""
    apart: bool
    """True if some kinds last longer than others: beyond noise, or by a prior that is believed."""
    believed: float | None = None
    """Weight of the durations of a prior; None without one."""

    def kinds(self, cases: Repeated) -> IntArray:
        """Return the kind of each of these cases that has two events or more."""
        return np.asarray(self.rule.of_cases(cases.distinct)[cases.owner[cases.lengths >= 2]])

    def drawn(self, cases: Repeated, rng: np.random.Generator) -> FloatArray:
        """Return the seconds that each of these cases lasts."""
        return self.lasting.drawn(self.kinds(cases), rng)


def asked_durations(
    price: Price, price_kinds: Price | None, cases: Repeated, rng: np.random.Generator
) -> DurationsByKind:
    """Return the durations of cases, by kind if ``price_kinds`` is given.

    A case adds 1 to each of two answers, or to the first if there is only this."""
    number = int((cases.lengths >= 2).sum())
    bins = LogBins(1 << int(fineness_of(np.array([number * price.epsilon()]))[0]))

    def of_all(block: Cases) -> Triples:
        rows, took = known_durations(block)
        return rows, bins.told(took), np.ones(len(rows), dtype=np.int64)

    asked = price.sums(of_all, len(bins), 1, 1, purpose="durations-of-cases")
    scale = 1 / price.epsilon()
    octaves = asked[1:].reshape(-1, bins.parts).sum(axis=1)
    end = 1 + bins.parts * last_standing_out(octaves, scale * (2 * bins.parts) ** 0.5)
    everything = np.zeros(len(asked))
    everything[:end] = least_squares(likely(asked[:end], scale, bins.parts, gaussian=price.rounds is not None))
    prior, believed = price.of_prior(of_all, len(bins), 1), None
    if prior is not None:
        whole = max(number, 1)
        everything, believed = lean_on_prior(everything, asked / whole, prior, 2 * (scale / whole) ** 2)
        # Noise may hide cases of the log that are as long as the longest of a prior.
        longest = int(np.flatnonzero(everything * number >= 1).max(initial=0))
        end = max(end, 1 + bins.parts * -(-longest // bins.parts))
        everything[end:] = 0.0
        everything /= everything.sum()
    rule, q, apart = CellRule.of(cases, 0.0, rng), everything[None], False
    if price_kinds is not None:
        rule, q, apart = _by_kind(price_kinds, cases, bins, everything, rng)
    return DurationsByKind(rule, Histograms(bins, q), int(bins.edges[end]), float(asked[end:].sum()), apart, believed)


def _by_kind(
    price: Price, cases: Repeated, bins: LogBins, everything: FloatArray, rng: np.random.Generator
) -> tuple[CellRule, FloatArray, bool]:
    """Return kinds of case and the distributions of these; True if they differ.

    All cases together have the distribution ``everything``."""
    number, epsilon = int((cases.lengths >= 2).sum()), price.epsilon()
    rule = CellRule.of(cases, number * epsilon, rng, least=FEWEST_KINDS)
    groups = int(np.clip((number * epsilon / CELL_NOISES) ** 0.5, 2, MOST_GROUPS))
    group = np.minimum((np.cumsum(everything) - everything / 2) * groups, groups - 1).astype(np.int64)

    def of_kinds(block: Cases) -> Triples:
        rows, took = known_durations(block)
        return rows, rule.of_cases(block)[rows] * groups + group[bins.told(took)], np.ones(len(rows), dtype=np.int64)

    table = price.sums(
        of_kinds, rule.number * groups, 1, 1, alphabet=cases.labels, purpose="durations-by-cell"
    ).reshape(-1, groups)
    kinds = rule.of_cases(cases.distinct)[cases.owner[cases.lengths >= 2]]
    wanted = np.bincount(kinds, minlength=rule.number) / max(number, 1)
    masses = np.asarray(np.bincount(group, weights=everything, minlength=groups), dtype=np.float64)
    q, variance = np.repeat(everything[None], rule.number, axis=0), 2 / epsilon**2
    prior = price.of_prior(of_kinds, table.size, 1, alphabet=cases.labels)
    apart = apart_of(table, wanted, masses, variance)
    if apart or prior is not None:
        shares = fit_margins(table, wanted, masses, variance) if apart else np.repeat(masses[None], rule.number, axis=0)
        if prior is not None:
            expected = fit_margins(prior.reshape(-1, groups), wanted, masses, 1.0)
            total, rows = max(number, 1), wanted[:, None]
            shares, kinds_believed = lean_on_prior(
                rows * shares, table / total, rows * expected, variance / total**2, rows * masses
            )
            apart |= kinds_believed > 1 / 2
            shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1e-15)
        q = shares[:, group] * (everything / np.maximum(masses[group], 1e-12))
    return rule, q, apart
