"""How busy the hours of a week are, for cases that start and for the events after that; and times that are whole days,
hours or minutes.

Hours and days are asked as histograms, hours in the fewer parts the fewer cases there are; of their Fourier components
those are kept that stand out of the noise. Where none does, hours and days of all events are even, and those of starts
are those of all events. What of all events is not starts are the events after them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from veilog._typing import FloatArray, IntArray
from veilog.methods._events.fits import about, real
from veilog.methods._events.times.prices import Price
from veilog.privacy.asking import Triples
from veilog.privacy.cases import UNKNOWN_TIME, Cases

DAYTIMES = (2, 1)
"""What a case counts in the hours and in the days."""
PARTS_OF_A_DAY = (24, 12, 8, 6, 4)
DAY_NOISES = 4
"""As many parts of the day are told apart as have so many noise scales of cases each, were all hours alike."""
TOLD = 2 / 3
"""Hours, or days, are other than even where it is so likely that the answer is more than noise: twice as likely as not.
With a half and .9 in its place even ones are taken for something else in up to .36 and .04 of 400 noises in place of
.10, and others are up to .037 nearer or .061 farther in total variation (six sizes of noise, eight days, six weeks)."""
WEEK_HOURS = 168
UNITS = (86_400, 3_600, 60)
"""Seconds of the units of which times may be multiples."""
SURE = 200
"""Times are whole units where what was answered is so many times as likely if all cases had such times as if none had.
With half and twice of this seven made-up logs of 2,000 cases are the same (40 seeds). Of 800 cases, at an epsilon of
0.4, days are found in .81 and .64 of 200 seeds in place of .73, and where half of the cases have days in .06 and .03 in
place of .04."""

_SECOND = 1_000_000
_HOUR, _DAY = 3_600, 86_400
_MONDAY = 4 * _DAY
"""1970-01-05, the first Monday of the clock."""
_ONE = 2_520
"""One hour and one day a case, in so many parts."""


@dataclass(frozen=True, eq=False)
class WeekClock:
    """A clock that goes by, hour after hour of the week, as fast as it is busy."""

    hours: FloatArray
    """What it shows when each hour of a week begins, and when the week ends."""

    @staticmethod
    def of(busy: FloatArray) -> WeekClock:
        return WeekClock(np.concatenate([[0.0], np.cumsum(busy + 1e-9)]))

    def reached(self, seconds: FloatArray) -> FloatArray:
        """Return what it shows at times in seconds since 1970 UTC."""
        weeks, rest = np.divmod((seconds - _MONDAY) / _HOUR, WEEK_HOURS)
        return np.asarray(weeks * self.hours[-1] + np.interp(rest, np.arange(WEEK_HOURS + 1), self.hours))

    def when(self, shown: FloatArray) -> IntArray:
        """Return when it shows this, in whole seconds."""
        weeks, rest = np.divmod(shown, self.hours[-1])
        hours = weeks * WEEK_HOURS + np.interp(rest, self.hours, np.arange(WEEK_HOURS + 1))
        return np.asarray(np.floor(hours * _HOUR).astype(np.int64) + _MONDAY)


@dataclass(frozen=True, eq=False)
class Busy:
    """How busy the hours of the day and the days of the week are: shares, and whether they are other than those that
    they lean on."""

    hours: FloatArray
    days: FloatArray
    of_day: bool = False
    of_week: bool = False

    @property
    def week(self) -> FloatArray:
        """How busy each of the 168 hours of a week is; 1 on average."""
        return np.outer(self.days, self.hours).ravel() * WEEK_HOURS


EVEN = Busy(np.full(24, 1 / 24), np.full(7, 1 / 7))


def asked_hours(price: Price, number: int, like: Busy | None = None) -> Busy:
    """Return how busy hours of the day and days of the week are, of about ``number`` cases: even, unless the answers
    are likely more than noise (``TOLD``); of their first events, ``like`` all of them unless these answers are.

    Few cases tell few hours apart: the noise of a Fourier component grows with the number of parts of the day that are
    asked. A case adds 2 to these parts and 1 to the days, shared out among its events, so 3 in all, and the root of 5
    at most in squares; of its first event alone the same.
    """
    root = sum(weight**2 for weight in DAYTIMES) ** 0.5
    of_hours, of_days = DAYTIMES
    epsilon = price.epsilon(sum(DAYTIMES), root) / sum(DAYTIMES)
    enough = [parts for parts in PARTS_OF_A_DAY if number * of_hours * epsilon >= DAY_NOISES * parts]
    parts = enough[0] if enough else PARTS_OF_A_DAY[-1]

    def features(block: Cases) -> Triples:
        ours = np.arange(len(block.codes)) if like is None else block.offsets[:-1][block.lengths > 0]
        known = ours[block.times[ours] != UNKNOWN_TIME]
        owners = block.owners[known]
        part = _ONE // np.bincount(owners, minlength=len(block))[owners]
        seconds = block.times[known] // _SECOND - _MONDAY
        cells = np.concatenate([seconds % _DAY * parts // _DAY, parts + seconds // _DAY % 7])
        return np.concatenate([owners, owners]), cells, np.concatenate([of_hours * part, of_days * part])

    asked = price.sums(
        features,
        parts + 7,
        sum(DAYTIMES) * _ONE,
        root * _ONE,
        purpose="hours-and-weekdays" if like is None else "hours-and-weekdays-of-starts",
    )
    asked[:parts], asked[parts:] = asked[:parts] / of_hours, asked[parts:] / of_days
    even = like or EVEN
    variances = [2 / (times * epsilon) ** 2 for times in DAYTIMES]
    tables = [asked[:parts] / _ONE, asked[parts:] / _ONE]
    sure = [1 / (len(table) * variance) for table, variance in zip(tables, variances, strict=True)]
    total = about(number, float(np.average([table.sum() for table in tables], weights=sure)), 1 / sum(sure))
    hours, of_day = _smooth(tables[0], variances[0], total, even.hours)
    days, of_week = _smooth(tables[1], variances[1], total, even.days)
    return Busy(hours, days, of_day, of_week)


def _smooth(noisy: FloatArray, variance: float, total: float, like: FloatArray) -> tuple[FloatArray, bool]:
    """Return shares round a circle, none below 0, by numbers of such a ``total``, each with noise of this variance and
    the sum of as many shares; and whether they are other than those that they are like.

    Of the Fourier components of what they are apart, each counts as far as it is believed (:func:`fits.real`), and none
    where all may well be noise (``TOLD``). Where there are more shares than numbers, it is the smoothest that has such
    sums.
    """
    parts, size = len(noisy), len(like)
    components = np.fft.rfft(noisy - total * like.reshape(parts, -1).sum(axis=1))
    components[0] = 0.0
    free = np.full(len(components) - 1, 2)
    if parts % 2 == 0:
        free[-1] = 1
    mean_square = parts * variance
    believed, any_real = real(np.abs(components[1:]) ** 2 / mean_square, free, total**2 / mean_square)
    if any_real < TOLD:
        return like, False
    components[1:] *= believed
    if parts < size:
        components = components[: (parts + 1) // 2]
        inside = np.exp(2j * np.pi * np.outer(np.arange(len(components)), np.arange(size // parts)) / size)
        components = components / inside.mean(axis=1)
    found = np.maximum(total * like + np.fft.irfft(components, size), 0.0)
    return (np.asarray(found / found.sum()), True) if found.any() else (like, False)


def of_others(busy: Busy, starts: Busy, lengths: IntArray) -> Busy:
    """Return how busy hours are by events that are not the first of their cases, given how busy they are by all, each
    by its part of its case, by the first ones, and how many events cases have.

    Where nothing is known of all events, nothing is known of these.
    """
    first = float((1 / lengths[lengths > 0]).sum() / max(int((lengths > 0).sum()), 1))

    def rest(told: bool, of_all: FloatArray, begun: FloatArray) -> FloatArray:
        left = np.maximum(of_all - first * begun, 0.0)
        return np.asarray(left / left.sum()) if told and first < 1 and left.any() else of_all

    return Busy(rest(busy.of_day, busy.hours, starts.hours), rest(busy.of_week, busy.days, starts.days))


def asked_unit(price: Price, number: int) -> int:
    """Return of how many seconds the times of about ``number`` cases are multiples: a day, an hour, a minute, or 1.

    A case adds 1 to the longest of these units of which all its known times are multiples, or to none.
    """

    def features(block: Cases) -> Triples:
        known = np.flatnonzero(block.times != UNKNOWN_TIME)
        owners, times = block.owners[known], block.times[known]
        whole = np.zeros((len(UNITS), len(block)), dtype=np.bool_)
        for row, unit in zip(whole, UNITS, strict=True):
            row[owners] = True
            row[owners[times % (unit * _SECOND) != 0]] = False
        rows = np.flatnonzero(whole.any(axis=0))
        return rows, whole[:, rows].argmax(axis=0), np.ones(len(rows), dtype=np.int64)

    asked = price.sums(features, len(UNITS), 1, 1, purpose="cases-with-whole-times")
    for cells, (unit, found) in enumerate(zip(UNITS, np.cumsum(asked).tolist(), strict=True), 1):
        scale = cells**0.5 / price.epsilon()
        if (min(found, number) - max(number - found, 0.0)) / scale >= np.log(SURE):
            return unit
    return 1
