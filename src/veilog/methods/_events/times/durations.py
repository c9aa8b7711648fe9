"""Durations of cases by kind, and the parts that gaps take of them.

Durations come from two noisy histograms that are made to agree.

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
        rule, q, apart = _query_kinds(price_kinds, cases, bins, everything, rng)
    return DurationsByKind(rule, Histograms(bins, q), int(bins.edges[end]), float(asked[end:].sum()), apart, believed)


def _query_kinds(
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


# Parts of a case's duration ------------------------------------------------------------------------------------------

# Parts of a case's duration: of its first gap, its last one, and those between.
#
# They depend on how long the case lasts. A case shares out 1 among its gaps, so the noise is small however many
# events it has. The parts of released cases are moved to the answer, as far as the gaps that were drawn do not
# explain it. Tables by activity and by pair of activities, asked in addition to this one, make no distance less.


PLACES = 5
"""Parts of a case: its first gap, its last one, and 3 between them. With 3 and 10 places times since the start of a
case are 4.8 and 4.8 in place of 2.8 distances of halves on Sepsis, 4.3 and 3.1 in place of 2.7 on BPIC 2013 (logs as
for ``histogram.FINE``, 10 seeds)."""
GROUP_NOISES, MOST_DURATION_GROUPS = 6, 10
"""Least noise scales of cases in a group, and most groups. Cases are grouped by duration: half of them, half of the
rest and so on. With half and twice of the first number these times are 3.6 and 4.2 in place of 2.8 on Sepsis, and 2.4
and 2.2 in place of 2.7 on BPIC 2013. Mean gaps of pairs of Receipt are off by 3.8 in place of 3.0 with either (logs as
for ``PLACES``). It was chosen on these logs."""
STANDING_OUT = 3.0
"""Deviations of its noise from which a part is believed. Noise exceeds them in one of 140 parts, and a release has 50
at most. Else noise of a hundredth of a case that lasts for weeks is hours of a step that takes minutes. With 2 and 2.5
times since the start of a case are 3.1 and 3.2 in place of 1.9 distances of halves on Sepsis, 2.6 and 2.7 in place of
2.7 on BPIC 2013, 2.9 and 2.4 in place of 2.0 in a synthetic network (8 seeds, logs of ``bench/times.py``)."""
ROUNDS = 10
"""Rounds of fitting."""
_ONE = 2_520
"""Parts into which the duration of a case is divided."""


def places(owner: IntArray) -> IntArray:
    """Return the place of each gap in its case, given the case of each in order."""
    number = np.bincount(owner) if len(owner) else np.zeros(0, dtype=np.int64)
    index = np.arange(len(owner)) - (np.cumsum(number) - number)[owner]
    inner = 1 + (index - 1) * (PLACES - 2) // np.maximum(number[owner] - 2, 1)
    return np.where(index == 0, 0, np.where(index == number[owner] - 1, PLACES - 1, inner))


@dataclass(frozen=True, eq=False)
class NoisySteps:
    """Parts of durations that the places of gaps take, by group of durations."""

    edges: FloatArray
    """Seconds at which groups after the first begin."""
    noisy: FloatArray
    """Noisy sum of the parts of each place, in cases, for each group."""
    cases: FloatArray
    """Number of cases of each group."""
    scale: float
    """Scale of the noise of each sum."""

    def parts(self, drawn: FloatArray) -> FloatArray:
        """Return the shares of places in each group.

        They are those of the sums that stand out of the noise, or as in the gaps that were ``drawn``, the likelier the
        answer makes these (:func:`lean_on_prior`).
        """
        found: FloatArray = drawn / np.maximum(drawn.sum(axis=1, keepdims=True), 1e-12)
        for group in np.flatnonzero((self.cases > 0) & drawn.any(axis=1)).tolist():
            noisy = self.noisy[group]
            kept = np.where(noisy >= STANDING_OUT * 2**0.5 * self.scale, noisy, 0.0)
            if kept.any():
                shares, variance = noisy / self.cases[group], 2 * (self.scale / self.cases[group]) ** 2
                found[group], _ = lean_on_prior(kept, shares, drawn[group], variance)
        return found

    def stretched(self, seconds: FloatArray, wanted: FloatArray, owner: IntArray) -> FloatArray:
        """Return gaps that add up to the durations ``wanted`` of cases.

        The gaps of each place have about its part of the durations."""
        cell = np.searchsorted(self.edges, wanted, side="right")[owner] * PLACES + places(owner)
        several = np.bincount(owner, minlength=len(wanted)) > 1
        whole = np.where(several & (wanted > 0), np.maximum(wanted, 1e-9), np.inf)[owner]  # cases that do not count: 0
        found = seconds.copy()
        room = np.empty_like(found)  # one buffer, because there may be millions of gaps

        def sums() -> FloatArray:
            found_in = np.bincount(cell, weights=np.divide(found, whole, out=room), minlength=self.noisy.size)
            return np.asarray(found_in, dtype=np.float64).reshape(self.noisy.shape)

        def times(factors: FloatArray, of_gap: IntArray) -> None:
            np.multiply(found, np.take(factors, of_gap, out=room, mode="clip"), out=found)

        def to_durations() -> None:
            times(wanted / np.maximum(np.bincount(owner, weights=found, minlength=len(wanted)), 1e-12), owner)

        to_durations()
        drawn = sums()
        aim = self.parts(drawn) * drawn.sum(axis=1, keepdims=True)
        for _ in range(ROUNDS):
            times((aim + 1e-9) / (sums() + 1e-9), cell)
            to_durations()
        return found


def query_steps(price: Price, durations: FloatArray) -> NoisySteps:
    """Return the parts of durations that places take.

    The groups follow from the durations of released cases. A case of at least two gaps shares out 1 among them; what is
    rounded off is lost.
    """
    edges: list[float] = []
    left = ordered = np.sort(durations)
    while len(edges) < MOST_DURATION_GROUPS - 1 and len(left) >= 2 * GROUP_NOISES / price.epsilon():
        left = left[len(left) // 2 :]
        edges.append(float(max(left[0], 1.0)))
    borders = np.unique(np.array(edges))

    def features(block: Cases) -> Triples:
        at, rows = gaps_of(block)
        gaps = block.times[at] - block.times[at - 1]
        lasting = np.zeros(len(block), dtype=np.int64)
        np.add.at(lasting, rows, gaps)
        ours = (np.bincount(rows, minlength=len(block))[rows] > 1) & (lasting[rows] > 0)
        part = (gaps[ours].astype(np.float64) / lasting[rows[ours]] * _ONE).astype(np.int64)
        group = np.searchsorted(borders * 1_000_000, lasting, side="right")[rows]
        return rows[ours], (group * PLACES + places(rows))[ours], part

    asked = price.sums(features, (len(borders) + 1) * PLACES, _ONE, _ONE, purpose="durations-in-parts")
    cases = np.diff(np.searchsorted(ordered, borders), prepend=0, append=len(ordered)).astype(np.float64)
    return NoisySteps(borders, asked.reshape(-1, PLACES) / _ONE, cases, 1 / price.epsilon())


def directly_following(offsets: IntArray, events: int) -> IntArray:
    """Return the second event of every directly-follows pair."""
    second = np.ones(events, dtype=np.bool_)
    second[offsets[:-1][np.diff(offsets) > 0]] = False
    return np.flatnonzero(second)


def gaps_of(block: Cases) -> tuple[IntArray, IntArray]:
    """Return the second event of each pair with known times in order, and its case."""
    going = np.zeros(len(block.codes), dtype=np.bool_)
    # An unknown time is below all others, so behind a known one it is not in order.
    going[1:] = (block.times[1:] >= block.times[:-1]) & (block.times[:-1] != UNKNOWN_TIME)
    going[block.offsets[:-1][block.lengths > 0]] = False
    at = np.flatnonzero(going)
    return at, block.owners[at]
