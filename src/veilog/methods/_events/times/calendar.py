"""Calendar of a release: starts of cases in a window, by their durations.

Two queries are about starts. The first counts them in each of 16 equal parts of the window, or fewer if it is short.
The second counts them in parts into which the first answer shows that the window is best cut. These go down to a week
or less where there are many cases.

The parts form a tree of halves. All its answers are made to agree (Hay, Rastogi, Miklau, Suciu, "Boosting the accuracy
of differentially private histograms through consistency", 2010), from the whole window down. Times without a case are
common. So are times of which one half has as many cases as the other, or whose cases grow or fall (``SPLITS``).
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass

import numpy as np

from veilog._typing import FloatArray, IntArray
from veilog.errors import ParameterError
from veilog.messages import Message
from veilog.methods._events.cells import fit_margins
from veilog.methods._events.fits import about
from veilog.methods._events.orders import pick_bins, sort_in_rows
from veilog.methods._events.times.hours import WeekClock
from veilog.methods._events.times.prices import Price
from veilog.privacy.case_functions import Triples
from veilog.privacy.cases import Cases
from veilog.privacy.domain import Window

MADE_UP_WINDOW: Window = (
    datetime.datetime(2000, 1, 3, tzinfo=datetime.UTC),
    datetime.datetime(2001, 1, 1, tzinfo=datetime.UTC),
)
"""Window of case starts when none is declared: the 52 weeks from a Monday on, evenly."""

MOST_WEEKS = 5_300
COARSE = 4
"""The first query cuts the window into 2 to the power of this many parts, at most."""
PART_NOISES = 8
"""A part is halved again and again while it has at least this many noise scales of cases. With half of this the
distances of the calendar change by a tenth or less. With twice of it those of Sepsis and Receipt are a quarter and an
eighth less (logs as for ``histogram.FINE``, 10 seeds)."""
SPLITS, NEAR = (0.45, 0.45, 0.05, 0.05), 0.01
"""Chances of the share of a part's cases that start in its first half: half; about as much as the parts next to it let
expect, with the variance ``NEAR``; none or all; any share. With variances of .003 and .03 arrivals of BPIC 2013 are 2.6
and 2.3 in place of 2.3 distances of halves, of Receipt 1.5 and 1.4 in place of 1.4. Without the second kind they are
2.6 and 1.8 (10 seeds), but of a synthetic hospital .76 in place of .84 (5 seeds)."""
CELL_NOISES, DEEPEST = 8, 6
"""Starts and durations are cut at a half, a quarter and so on while this many noise scales of cases are left, and at
most so often. With half and twice of the first number absolute distances of BPIC 2013 are 4.3 and 3.9 in place of 3.8
distances of halves, and of Receipt 1.9 and 1.7 in place of 1.8."""

_ANY = 1 / 12
"""Variance of a share that may be anything from 0 to 1."""
_SECOND = 1_000_000
_WEEK = 604_800


def check(window: Window | None) -> None:
    """Refuse a window of more weeks than there can be cells."""
    weeks = 0 if window is None else -(-int((window[1] - window[0]).total_seconds()) // _WEEK)
    if weeks > MOST_WEEKS:
        raise ParameterError("window-weeks-too-many", parameter="window", weeks=weeks, most_weeks=MOST_WEEKS)


# Starts -------------------------------------------------------------------------------------------------------------


def _levels_of(window: Window) -> int:
    """Return the halvings of the window to parts of a week or less; at least one."""
    return max(1, int(np.ceil(np.log2(int((window[1] - window[0]).total_seconds()) / _WEEK))))


def asked_starts(price: Price, price_finer: Price, window: Window, number: int) -> tuple[FloatArray, float]:
    """Return the shares of starts in 2^n equal parts of the window, and outside.

    There are about ``number`` cases. The share of cases that start outside the window counts as far as noise shows it.
    A case adds 1 to each of two answers. One is for few parts, and one for those into which the first answer shows that
    these are best cut.
    """
    first, length = int(window[0].timestamp()), int((window[1] - window[0]).total_seconds())
    levels = _levels_of(window)

    def asked(price: Price, place: IntArray, *, purpose: str | Message) -> FloatArray:
        """Return the noisy number of starts at each place; each finest part has a place."""

        def features(block: Cases) -> Triples:
            rows = np.flatnonzero(block.lengths > 0)
            times = block.times[block.offsets[rows]]
            inside = (times >= first * _SECOND) & (times < (first + length) * _SECOND)
            part = ((times[inside] // _SECOND - first) << levels) // length
            return rows[inside], place[part], np.ones(int(inside.sum()), dtype=np.int64)

        return price.sums(features, int(place[-1]) + 1, 1, 1, purpose=purpose)

    tree = _Halves.of(levels)
    coarse = min(levels, COARSE)
    cells = [(coarse, part) for part in range(1 << coarse)]
    finest = np.arange(1 << levels)
    tree.add(cells, asked(price, finest >> (levels - coarse), purpose="case-starts-by-window-part"), price)
    cells = tree.cut(number, PART_NOISES / price_finer.epsilon())
    place = np.repeat(np.arange(len(cells)), [1 << (levels - level) for level, _ in cells])
    tree.add(cells, asked(price_finer, place, purpose="case-starts-by-smaller-part"), price_finer)
    found = tree.fitted(number)[-1]
    return np.asarray(found / found.sum()), max(0.0, 1 - float(found.sum()) / max(number, 1))


@dataclass(frozen=True, eq=False)
class _Halves:
    """Noisy counts of the halves, quarters and so on of a window.

    ``known`` has one over their variances: 0 where they were not asked."""

    counts: list[FloatArray]
    known: list[FloatArray]

    @staticmethod
    def of(levels: int) -> _Halves:
        return _Halves(*([np.zeros(2 << level) for level in range(levels)] for _ in range(2)))

    def add(self, cells: list[tuple[int, int]], asked: FloatArray, price: Price) -> None:
        """Add the noisy counts of these parts, each by its level and its place there."""
        more = price.epsilon() ** 2 / 2
        for (level, part), count in zip(cells, asked.tolist(), strict=True):
            counts, known = self.counts[level - 1], self.known[level - 1]
            counts[part] = (counts[part] * known[part] + count * more) / (known[part] + more)
            known[part] += more

    def cut(self, number: int, least: float) -> list[tuple[int, int]]:
        """Return parts in order; those with ``least`` cases or more so far are halved."""
        found = self.fitted(number)
        cells: list[tuple[int, int]] = []
        left = [(1, 1), (1, 0)]
        while left:
            level, part = left.pop()
            if level == len(found) or found[level - 1][part] < least:
                cells.append((level, part))
            else:
                left += [(level + 1, 2 * part + 1), (level + 1, 2 * part)]
        return cells

    def fitted(self, number: int) -> list[FloatArray]:
        """Return counts of every level that agree and are likely by all answers.

        From the finest parts on, the sum of two halves is averaged with the answer about the whole. Their weights are
        one over their variances (Hay and others). Then each part is divided between its halves (:func:`_split`).
        """
        counts, known = [self.counts[-1]], [self.known[-1]]
        for own, sure in zip(self.counts[-2::-1], self.known[-2::-1], strict=True):
            sums = counts[-1].reshape(-1, 2).sum(axis=1)
            both = known[-1].reshape(-1, 2)
            of_sums = both.prod(axis=1) / np.maximum(both.sum(axis=1), 1e-300)
            counts.append((sums * of_sums + own * sure) / np.maximum(of_sums + sure, 1e-300))
            known.append(of_sums + sure)
        total = float(counts[-1].sum())
        variance = float((1 / np.maximum(known[-1], 1e-300)).sum())
        # The other cases start outside the declared window, as far as noise shows.
        found = [np.array([about(number, total, variance)])]
        for halves, sure in zip(counts[::-1], known[::-1], strict=True):
            found.append(_split(found[-1], halves.reshape(-1, 2), sure.reshape(-1, 2)))
        return found[1:]


def _split(found: FloatArray, halves: FloatArray, known: FloatArray) -> FloatArray:
    """Return the cases in both halves of each part, given those found in the part.

    ``halves`` are their noisy counts, and ``known`` is one over the variances of these. The share of the first half is
    the mean of Bayes' rule. Beforehand, with the chances ``SPLITS``, the first half has:

    - half of the cases;
    - about as much as if cases grew or fell by one factor from the part before to the part after;
    - none or all;
    - any share of them.

    Where the halves were not asked, the first has exactly what that factor lets expect.
    """
    whole = np.maximum(found, 1e-9)
    sure = known.sum(axis=1)
    variance = 1 / np.maximum(sure * whole**2, 1e-12)
    seen = (halves[:, 0] * known[:, 0] + (whole - halves[:, 1]) * known[:, 1]) / np.maximum(sure, 1e-300) / whole
    beside = np.pad(found + 1, 1, mode="edge")
    trend = 1 / (1 + (beside[2:] / beside[:-2]) ** 0.25)
    even, near, nothing, other = SPLITS
    chances = np.array([[nothing / 2], [nothing / 2], [even], [near], [other]])
    middle = np.stack([0 * trend, 0 * trend + 1, 0 * trend + 0.5, trend, 0 * trend + 0.5])
    wide = np.array([[0.0], [0.0], [0.0], [NEAR], [_ANY]])
    likely = np.log(chances) - (seen - middle) ** 2 / (2 * (variance + wide)) - np.log(variance + wide) / 2
    likely = np.exp(likely - likely.max(axis=0))
    parts = np.clip((seen * wide + middle * variance) / (wide + variance), 0.0, 1.0)
    first = np.where(sure > 0, (likely * parts).sum(axis=0) / likely.sum(axis=0), trend)
    return np.stack([found * first, found * (1 - first)], axis=1).ravel()


def drawn_starts(
    number: int, shares: FloatArray, clock: WeekClock, window: Window, rng: np.random.Generator
) -> IntArray:
    """Return the seconds at which cases start: in busy hours of a drawn part."""
    first, last = int(window[0].timestamp()), int(window[1].timestamp())
    edges = clock.reached(first + np.arange(len(shares) + 1) * (last - first) / len(shares))
    part = rng.choice(len(shares), size=number, p=shares)
    starts = clock.when(edges[part] + rng.random(number) * (edges[part + 1] - edges[part]))
    return np.asarray(np.clip(starts, first, last - 1))


@dataclass(frozen=True, eq=False)
class CalendarTotals:
    """Shares of groups of starts, for each group of durations."""

    starts: FloatArray
    """Seconds since 1970 at which groups of starts after the first begin."""
    durations: FloatArray
    """Seconds at which groups of durations after the first begin."""
    q: FloatArray

    def matched(self, starts: IntArray, lasting: FloatArray, rng: np.random.Generator) -> IntArray:
        """Return the starts in the order that suits cases which last so long."""
        group = np.searchsorted(self.durations, lasting, side="right")
        wanted = pick_bins(self.q, group, rng.random(len(lasting)))
        found = np.empty(len(starts), dtype=np.int64)
        own = np.searchsorted(self.starts, starts, side="right")
        found[sort_in_rows(wanted, rng.random(len(wanted)))] = starts[sort_in_rows(own, rng.random(len(own)))]
        return found


def asked_together(price: Price, starts: IntArray, lasting: FloatArray, window: Window) -> CalendarTotals:
    """Return how starts and durations of cases go together.

    The groups follow from those of the released cases. A case adds 1. Logs end some day: a case that started early can
    have lasted long, and long cases are among the early ones.
    """
    first, last = int(window[0].timestamp()), int(window[1].timestamp())
    depth = int(np.clip(np.log2(max(len(starts) * price.epsilon() / CELL_NOISES, 2.0)), 1, DEEPEST))
    halves = 0.5 ** np.arange(1, depth + 1)
    of_starts = np.unique(np.quantile(starts, [*halves, *(1 - halves)]))
    of_durations = np.unique(np.quantile(lasting, 1 - halves).clip(1.0))
    size = len(of_starts) + 1

    def features(block: Cases) -> Triples:
        rows = np.flatnonzero(block.lengths > 0)
        begin, end = block.times[block.offsets[rows]], block.times[block.offsets[rows + 1] - 1]
        ours = (begin >= first * _SECOND) & (begin < last * _SECOND) & (end >= begin)
        rows, begin, end = rows[ours], begin[ours], end[ours]
        group = np.searchsorted(of_durations * _SECOND, end - begin, side="right")
        cell = group * size + np.searchsorted(of_starts * _SECOND, begin, side="right")
        return rows, cell, np.ones(len(rows), dtype=np.int64)

    cells = (len(of_durations) + 1) * size
    asked = price.sums(features, cells, 1, 1, purpose="case-starts-by-duration")
    rows = np.bincount(np.searchsorted(of_durations, lasting, side="right"), minlength=cells // size) / len(lasting)
    columns = np.bincount(np.searchsorted(of_starts, starts, side="right"), minlength=size) / len(starts)
    table = asked.reshape(-1, size)
    return CalendarTotals(of_starts, of_durations, fit_margins(table, rows, columns, 2 / price.epsilon() ** 2))
