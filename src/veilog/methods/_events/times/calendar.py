"""The calendar of a release: when cases start in a window, and how that hangs together with how long they last.

Case starts are asked in two steps: how many start in each of 16 equal parts of the window; and then in parts into which
the first answer says that these are best cut, down to a week or less where there are many cases. What is asked forms a
tree of halves, of which all answers are made to agree (Hay, Rastogi, Miklau, Suciu, "Boosting the accuracy of
differentially private histograms through consistency", 2010), from the whole window down: long times without a case are
common, and so are times of which one half has as many as the other.
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
from veilog.methods._events.orders import by_row, picked
from veilog.methods._events.times.hours import WeekClock
from veilog.methods._events.times.prices import Price
from veilog.privacy.case_functions import Triples
from veilog.privacy.cases import Cases
from veilog.privacy.domain import Window

MADE_UP_WINDOW: Window = (
    datetime.datetime(2000, 1, 3, tzinfo=datetime.UTC),
    datetime.datetime(2001, 1, 1, tzinfo=datetime.UTC),
)
"""Where cases start when no window is declared: the 52 weeks from a Monday on, evenly."""

MOST_WEEKS = 5_300
COARSE = 4
"""The window is cut into 2 to the power of this many parts first."""
PART_NOISES = 8
"""Then a part is halved again and again while it has at least so many noise scales of cases. With half of this the
distances of the calendar change by a tenth or less, with twice of it those of Sepsis and Receipt are a quarter and an
eighth less (logs as for ``histogram.FINE``, 10 seeds)."""
SPLITS, NEAR = (0.45, 0.45, 0.05, 0.05), 0.01
"""Chances that of the cases in a part half start in its first half; or about as many as the parts beside it let expect,
with this variance of the share; or none or all; or any share. With variances of .003 and .03 arrivals of BPIC 2013 are
2.6 and 2.3 in place of 2.3, of Receipt 1.5 and 1.4 in place of 1.4 distances of halves; without the second kind they
are 2.6 and 1.8 (10 seeds), but of a made-up hospital .76 in place of .84 (5 seeds)."""
CELL_NOISES, DEEPEST = 8, 6
"""Starts and durations are cut at a half, a quarter and so on, while so many noise scales of cases are left. With half
and twice of this absolute distances of BPIC 2013 are 4.3 and 3.9 in place of 3.8, and of Receipt 1.9 and 1.7 in place
of 1.8 distances of halves."""

_ANY = 1 / 12
"""Variance of a share that may be anything."""
_SECOND = 1_000_000
_WEEK = 604_800


def check(window: Window | None) -> None:
    """Refuse a window of more weeks than there can be cells."""
    weeks = 0 if window is None else -(-int((window[1] - window[0]).total_seconds()) // _WEEK)
    if weeks > MOST_WEEKS:
        raise ParameterError("window-weeks-too-many", parameter="window", weeks=weeks, most_weeks=MOST_WEEKS)


# Starts -------------------------------------------------------------------------------------------------------------


def _levels_of(window: Window) -> int:
    """Return how often the window is halved until a part is a week or less; once at least."""
    return max(1, int(np.ceil(np.log2(int((window[1] - window[0]).total_seconds()) / _WEEK))))


def asked_starts(price: Price, price_finer: Price, window: Window, number: int) -> tuple[FloatArray, float]:
    """Return the shares of cases that start in each of 2^n equal parts of the window, of about ``number`` cases; and
    which part of all cases starts outside it, as far as noise shows.

    A case adds 1 to each of two answers: to its part of few, and to its part of those into which the first answer says
    that these are best cut.
    """
    first, length = int(window[0].timestamp()), int((window[1] - window[0]).total_seconds())
    levels = _levels_of(window)

    def asked(price: Price, place: IntArray, *, purpose: str | Message) -> FloatArray:
        """How many cases start in each place, of which each of the finest parts of the window has one."""

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
    """Noisy counts of the halves, quarters and so on of a window, and one over their variances: 0 where not asked."""

    counts: list[FloatArray]
    known: list[FloatArray]

    @staticmethod
    def of(levels: int) -> _Halves:
        return _Halves(*([np.zeros(2 << level) for level in range(levels)] for _ in range(2)))

    def add(self, cells: list[tuple[int, int]], asked: FloatArray, price: Price) -> None:
        """Take in what was asked of these parts, each by its level and its place there."""
        more = price.epsilon() ** 2 / 2
        for (level, part), count in zip(cells, asked.tolist(), strict=True):
            counts, known = self.counts[level - 1], self.known[level - 1]
            counts[part] = (counts[part] * known[part] + count * more) / (known[part] + more)
            known[part] += more

    def cut(self, number: int, least: float) -> list[tuple[int, int]]:
        """Return parts in their order: what has ``least`` cases or more by the answers so far is halved."""
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
        """Return counts of every level that agree with each other and are likely by all answers.

        From the finest parts on sums are weighed with what was asked of the whole, by their variances (Hay and others);
        then each part is shared out to its halves (:func:`_split`).
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
        # Others start outside a declared window, as far as noise shows.
        found = [np.array([about(number, total, variance)])]
        for halves, sure in zip(counts[::-1], known[::-1], strict=True):
            found.append(_split(found[-1], halves.reshape(-1, 2), sure.reshape(-1, 2)))
        return found[1:]


def _split(found: FloatArray, halves: FloatArray, known: FloatArray) -> FloatArray:
    """Return what two halves have of what is found in each part, by their noisy counts and one over their variances.

    The mean of Bayes' rule, where beforehand the first half has half of it, or about as much as if cases grew or fell
    by one factor from the part before to the part after, or nothing, or all, or any part of it, with the chances
    ``SPLITS``.
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
    """Return the seconds at which cases start: a part of the window, then a busy hour of this part."""
    first, last = int(window[0].timestamp()), int(window[1].timestamp())
    edges = clock.reached(first + np.arange(len(shares) + 1) * (last - first) / len(shares))
    part = rng.choice(len(shares), size=number, p=shares)
    starts = clock.when(edges[part] + rng.random(number) * (edges[part + 1] - edges[part]))
    return np.asarray(np.clip(starts, first, last - 1))


@dataclass(frozen=True, eq=False)
class CalendarTotals:
    """How many cases start early or late and last long or not: shares of starts for each group of durations."""

    starts: FloatArray
    """Seconds since 1970 at which groups of starts after the first begin."""
    durations: FloatArray
    """Seconds at which groups of durations after the first begin."""
    q: FloatArray

    def matched(self, starts: IntArray, lasting: FloatArray, rng: np.random.Generator) -> IntArray:
        """Return the starts in another order: that of cases which last so long."""
        group = np.searchsorted(self.durations, lasting, side="right")
        wanted = picked(self.q, group, rng.random(len(lasting)))
        found = np.empty(len(starts), dtype=np.int64)
        own = np.searchsorted(self.starts, starts, side="right")
        found[by_row(wanted, rng.random(len(wanted)))] = starts[by_row(own, rng.random(len(own)))]
        return found


def asked_together(price: Price, starts: IntArray, lasting: FloatArray, window: Window) -> CalendarTotals:
    """Return how starts and durations hang together, given those of the released cases. A case adds 1.

    Logs end some day: what started early can have lasted long, and long cases are among the early ones.
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
