"""The calendar of a release: when cases start in a window, and how busy the hours of a week are.

Case starts are asked as a hierarchical histogram: the window is halved until a part is a week or less, and a case
counts once in each level, so that sums over long times are not drowned by the noise of many short ones (Hay, Rastogi,
Miklau, Suciu, "Boosting the accuracy of differentially private histograms through consistency", 2010: the least squares
here).
Where a half of a part stands out neither from an even split nor from nothing, it is taken for one of these.

Hours and days are asked as histograms; of their Fourier components those are kept that stand out of the noise.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass

import numpy as np

from veilog._typing import FloatArray, IntArray
from veilog.errors import ParameterError
from veilog.methods._events.durations import fitted
from veilog.methods._events.orders import by_row, picked
from veilog.methods._events.prices import Price
from veilog.privacy.asking import Triples
from veilog.privacy.cases import UNKNOWN_TIME, Cases
from veilog.privacy.domain import Window

__all__ = [
    "MADE_UP_WINDOW",
    "WEEK_HOURS",
    "Together",
    "asked_hours",
    "asked_starts",
    "asked_together",
    "check",
    "drawn_starts",
    "levels_of",
    "of_the_week",
]

MADE_UP_WINDOW: Window = (
    datetime.datetime(2000, 1, 3, tzinfo=datetime.UTC),
    datetime.datetime(2001, 1, 1, tzinfo=datetime.UTC),
)
"""Where cases start when no window is declared: the 52 weeks from a Monday on, evenly."""

MOST_WEEKS = 5_300
EVEN, NOTHING = 9.0, 12.0
"""A half is even with the other, or nothing, as far as this many variances of the noise explain."""
CELL_NOISES, DEEPEST = 4, 6
"""Starts and durations are cut at a half, a quarter and so on, while so many noise scales of cases are left."""
HARMONIC = 1.5
"""A Fourier component is kept as far as it is above this many times the power that noise has."""
WEEK_HOURS = 168

_SECOND = 1_000_000
_HOUR, _DAY, _WEEK = 3_600, 86_400, 604_800
_MONDAY = 4 * _DAY
"""1970-01-05, the first Monday of the clock."""
_ONE = 2_520
"""One hour and one day a case, in so many parts."""


def check(window: Window | None) -> None:
    """Refuse a window of more weeks than there can be cells."""
    weeks = 0 if window is None else -(-int((window[1] - window[0]).total_seconds()) // _WEEK)
    if weeks > MOST_WEEKS:
        raise ParameterError(
            f"The window holds {weeks} weeks; at most {MOST_WEEKS} are supported.",
            parameter="window",
            advice="Declare a window of the years in which cases start.",
        )


def of_the_week(seconds: IntArray) -> IntArray:
    """Return the hour of the week, from Monday on, of times in seconds since 1970 UTC."""
    return np.asarray((seconds - _MONDAY) // _HOUR % WEEK_HOURS)


# Starts -------------------------------------------------------------------------------------------------------------


def levels_of(window: Window) -> int:
    """Return how often the window is halved until a part is a week or less; once at least."""
    return max(1, int(np.ceil(np.log2(int((window[1] - window[0]).total_seconds()) / _WEEK))))


def asked_starts(price: Price, window: Window) -> FloatArray:
    """Return the shares of cases that start in each of 2^n equal parts of the window.

    A case adds 1 to its part on each of the n levels below the whole, so n in all, and the root of n in squares.
    """
    first, length = int(window[0].timestamp()), int((window[1] - window[0]).total_seconds())
    levels = levels_of(window)

    def features(block: Cases) -> Triples:
        rows = np.flatnonzero(block.lengths > 0)
        times = block.times[block.offsets[rows]]
        inside = (times >= first * _SECOND) & (times < (first + length) * _SECOND)
        part = ((times[inside] // _SECOND - first) << levels) // length
        # Level by level, from the 2 halves on: parts of a level begin where those of the levels before it end.
        places = [(part >> (levels - level)) + (1 << level) - 2 for level in range(1, levels + 1)]
        rows = np.tile(rows[inside], levels)
        return rows, np.concatenate(places), np.ones(len(rows), dtype=np.int64)

    size = (2 << levels) - 2
    asked = price.sums(features, size, levels, levels**0.5, purpose="parts of the window in which cases start")
    ends = (2 << np.arange(1, levels)) - 2
    return _agreeing(np.split(asked, ends), 2 * (levels / price.epsilon(levels, levels**0.5)) ** 2)


def _agreeing(levels: list[FloatArray], variance: float) -> FloatArray:
    """Return the shares of the finest parts that agree with the noisy counts of all levels, from coarse to fine."""
    counts, variances = [levels[-1]], [np.full(len(levels[-1]), variance)]
    for own in levels[-2::-1]:
        sums, doubt = (x[-1].reshape(-1, 2).sum(axis=1) for x in (counts, variances))
        weight = doubt / (doubt + variance)
        counts.append(weight * own + (1 - weight) * sums)
        variances.append(doubt * variance / (doubt + variance))
    found = np.array([max(float(counts[-1].sum()), 1.0)])
    for halves, doubt in zip(counts[::-1], variances[::-1], strict=True):
        found = _split(found, halves.reshape(-1, 2), doubt.reshape(-1, 2).sum(axis=1))
    return np.asarray(found / found.sum())


def _split(found: FloatArray, halves: FloatArray, doubt: FloatArray) -> FloatArray:
    """Return what two halves have of what is found in each part; ``doubt``: the variance of their difference."""
    apart = halves[:, 0] - halves[:, 1]
    apart = np.clip(apart * _standing_out(apart, EVEN * doubt), -found, found)
    less = (found - np.abs(apart)) / 2
    less = np.where(apart == 0, less, less * _standing_out(less, NOTHING * doubt / 4))
    first = apart > 0
    return np.stack([np.where(first, found - less, less), np.where(first, less, found - less)], axis=1).ravel()


def _standing_out(number: FloatArray, variance: FloatArray | float) -> FloatArray:
    """Return the part of noisy numbers that noise does not explain (James, Stein 1961)."""
    return np.asarray(np.maximum(0.0, 1 - variance / np.maximum(number**2, 1e-9)))


def drawn_starts(
    number: int, shares: FloatArray, hours: FloatArray, window: Window, rng: np.random.Generator
) -> IntArray:
    """Return the seconds at which cases start: a part of the window, then a busy hour of this part."""
    first, last = int(window[0].timestamp()), int(window[1].timestamp())
    edges = first + np.arange(len(shares) + 1) * (last - first) / len(shares)
    begin = first // _HOUR
    busy = hours[of_the_week((begin + np.arange(-(-last // _HOUR) - begin)) * _HOUR)] + 1e-9
    reached = np.concatenate([[0.0], np.cumsum(busy)])
    # By how much of the busy time before it: a clock that goes by, hour after hour, as fast as it is busy.
    clock = np.interp(edges / _HOUR - begin, np.arange(len(reached)), reached)
    part = rng.choice(len(shares), size=number, p=shares)
    wanted = clock[part] + rng.random(number) * (clock[part + 1] - clock[part])
    starts = (np.interp(wanted, reached, np.arange(len(reached))) + begin) * _HOUR
    return np.asarray(np.clip(starts.astype(np.int64), first, last - 1))


@dataclass(frozen=True, eq=False)
class Together:
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


def asked_together(price: Price, starts: IntArray, lasting: FloatArray, window: Window) -> Together:
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
    asked = price.sums(features, cells, 1, 1, purpose="starts of cases by how long they last")
    rows = np.bincount(np.searchsorted(of_durations, lasting, side="right"), minlength=cells // size) / len(lasting)
    columns = np.bincount(np.searchsorted(of_starts, starts, side="right"), minlength=size) / len(starts)
    table = asked.reshape(-1, size)
    return Together(of_starts, of_durations, fitted(table, rows, columns, 2 / price.epsilon() ** 2))


# Hours --------------------------------------------------------------------------------------------------------------


def asked_hours(price: Price) -> FloatArray:
    """Return how busy each of the 168 hours of a week is (mean 1): hour of the day times day of the week.

    A case adds 1 to the hours and 1 to the days, shared out among its events, so 2 in all, and the root of 2 at most
    in squares.
    """

    def features(block: Cases) -> Triples:
        known = np.flatnonzero(block.times != UNKNOWN_TIME)
        owners = block.owners[known]
        part = _ONE // np.bincount(owners, minlength=len(block))[owners]
        seconds = block.times[known] // _SECOND - _MONDAY
        cells = np.concatenate([seconds // _HOUR % 24, 24 + seconds // _DAY % 7])
        return np.concatenate([owners, owners]), cells, np.concatenate([part, part])

    root = 2**0.5
    asked = price.sums(features, 31, 2 * _ONE, root * _ONE, purpose="hours and days of the week, in 1/2520") / _ONE
    variance = 2 * (2 / price.epsilon(2, root)) ** 2
    busy = np.outer(_smoothed(asked[24:], variance), _smoothed(asked[:24], variance)).ravel()
    return np.asarray(busy / busy.mean())


def _smoothed(noisy: FloatArray, variance: float) -> FloatArray:
    """Return noisy numbers round a circle without the Fourier components that noise explains, none below 0."""
    components = np.fft.rfft(noisy)
    components[1:] *= _standing_out(np.abs(components[1:]), HARMONIC * len(noisy) * variance)
    components[0] = max(components[0].real, 1e-6 * len(noisy))
    found = np.maximum(np.fft.irfft(components, len(noisy)), 0.0)
    return np.asarray(found / found.sum())
