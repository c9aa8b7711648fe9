"""Busy hours of the week, for starts and later events; and whole units of times.

Whole units are days, hours or minutes. A query has a histogram of hours and one of days; fewer cases get fewer parts of
the day. Both are even unless the answers differ from that beyond their noise. The difference is then believed as far as
noise does not explain it (James, Stein 1961).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from veilog._typing import FloatArray, IntArray
from veilog.methods._events.cells import stands_out
from veilog.methods._events.fits import about
from veilog.methods._events.times.prices import Price
from veilog.methods._events.times.prior import lean_on_prior
from veilog.privacy.case_functions import Triples
from veilog.privacy.cases import UNKNOWN_TIME, Cases

DAYTIMES = (2, 1)
"""Weights of a case in the hours and in the days."""
PARTS_OF_A_DAY = (24, 12, 8, 6, 4)
DAY_NOISES = 4
"""Least noise scales of cases in each part of a day, if all hours are alike; the day gets the most parts with this.
With half and twice of this circadian distances change by at most .2 distances of halves (logs as for
``histogram.FINE``)."""
WEEK_HOURS = 168
UNITS = (86_400, 3_600, 60)
"""Seconds of the units of which times may be multiples."""
SURE = 200
"""Times are whole units if the answer is so many times as likely if all cases had such times as if none had. With half
and twice of this, days of 800 cases at an epsilon of 0.4 are found in .95 and .92 of 100 seeds in place of .93, and of
1,500 cases in 1 and .99 in place of 1. Where half of the cases have days, they are found in .08 and .06 in place of
.08."""

_SECOND = 1_000_000
_HOUR, _DAY = 3_600, 86_400
_MONDAY = 4 * _DAY
"""1970-01-05, the first Monday of the clock."""
_ONE = 2_520
"""Parts into which the one hour and the one day of a case are divided."""


def hour_of_week(seconds: IntArray) -> IntArray:
    """Return the hour of the week, from Monday on, of times in seconds since 1970 UTC."""
    return np.asarray((seconds - _MONDAY) // _HOUR % WEEK_HOURS)


@dataclass(frozen=True, eq=False)
class WeekClock:
    """Clock of the week that runs in each hour as fast as this is busy."""

    hours: FloatArray
    """Readings of the clock when each hour of a week begins, and when the week ends."""

    @staticmethod
    def of(busy: FloatArray) -> WeekClock:
        return WeekClock(np.concatenate([[0.0], np.cumsum(busy + 1e-9)]))

    def reached(self, seconds: FloatArray) -> FloatArray:
        """Return the readings at times in seconds since 1970 UTC."""
        weeks, rest = np.divmod((seconds - _MONDAY) / _HOUR, WEEK_HOURS)
        return np.asarray(weeks * self.hours[-1] + np.interp(rest, np.arange(WEEK_HOURS + 1), self.hours))

    def when(self, shown: FloatArray) -> IntArray:
        """Return the times of these readings, in whole seconds since 1970 UTC."""
        weeks, rest = np.divmod(shown, self.hours[-1])
        hours = weeks * WEEK_HOURS + np.interp(rest, self.hours, np.arange(WEEK_HOURS + 1))
        return np.asarray(np.floor(hours * _HOUR).astype(np.int64) + _MONDAY)


@dataclass(frozen=True, eq=False)
class Busy:
    """Shares of the hours of the day and of the days of the week.

    ``of_day`` and ``of_week`` are True if these are other than even."""

    hours: FloatArray
    days: FloatArray
    of_day: bool = False
    of_week: bool = False

    @property
    def week(self) -> FloatArray:
        """Weight of each of the 168 hours of a week by how busy it is; 1 on average."""
        return np.outer(self.days, self.hours).ravel() * WEEK_HOURS


def query_hours(price: Price, number: int) -> Busy:
    """Return how busy hours of the day and days of the week are.

    There are about ``number`` cases; few cases distinguish few hours. A case adds 2 to the parts of the day that are
    asked and 1 to the days, shared out among its events. The L1 norm is 3 in all, and the L2 norm at most the root of
    5.
    """
    root = sum(weight**2 for weight in DAYTIMES) ** 0.5
    of_hours, of_days = DAYTIMES
    epsilon = price.epsilon(sum(DAYTIMES), root) / sum(DAYTIMES)
    enough = [parts for parts in PARTS_OF_A_DAY if number * of_hours * epsilon >= DAY_NOISES * parts]
    parts = enough[0] if enough else PARTS_OF_A_DAY[-1]

    def in_parts(block: Cases, parts: int) -> Triples:
        known = np.flatnonzero(block.times != UNKNOWN_TIME)
        owners = block.owners[known]
        part = _ONE // np.bincount(owners, minlength=len(block))[owners]
        seconds = block.times[known] // _SECOND - _MONDAY
        cells = np.concatenate([seconds % _DAY * parts // _DAY, parts + seconds // _DAY % 7])
        return np.concatenate([owners, owners]), cells, np.concatenate([of_hours * part, of_days * part])

    bound = sum(DAYTIMES) * _ONE
    asked = (
        price.sums(partial(in_parts, parts=parts), parts + 7, bound, root * _ONE, purpose="hours-and-weekdays") / _ONE
    )
    variances = [2 / (times * epsilon) ** 2 for times in DAYTIMES]
    tables = [asked[:parts] / of_hours, asked[parts:] / of_days]
    sure = [1 / (len(table) * variance) for table, variance in zip(tables, variances, strict=True)]
    total = about(number, float(np.average([table.sum() for table in tables], weights=sure)), 1 / sum(sure))
    prior = price.of_prior(partial(in_parts, parts=24), 24 + 7, bound)
    of_prior = (None, None) if prior is None else (prior[:24], prior[24:])
    of_parts, of_day = _shares(tables[0], variances[0], total, of_prior[0])
    days, of_week = _shares(tables[1], variances[1], total, of_prior[1])
    hours = np.repeat(of_parts, 24 // len(of_parts)) * len(of_parts) / 24
    return Busy(hours, days, of_day, of_week)


def _shares(noisy: FloatArray, variance: float, total: float, prior: FloatArray | None) -> tuple[FloatArray, bool]:
    """Return shares, none below 0, by noisy numbers; True if other than even.

    The numbers have such a ``total``, and each has noise of this ``variance``. Shares are even unless the answer is
    apart from that, or they are those of a prior as far as it is believed. A prior may have several cells for each cell
    of the answer. It then decides the shares inside each.
    """
    parts = len(noisy)
    found, apart = np.full(parts, 1 / parts), noisy - total / parts
    told = stands_out(float((apart**2).sum()), parts, variance)
    if told:
        found = np.maximum(total / parts + apart * (1 - parts * variance / float((apart**2).sum())), 0.0)
        told = bool(found.any())
        found = found / found.sum() if told else np.full(parts, 1 / parts)
    if prior is None or not prior.any():
        return found, told
    inside = prior.reshape(parts, -1)
    found, weight = lean_on_prior(found, noisy / total, inside.sum(axis=1), variance / total**2)
    wide = inside.shape[1]
    inside = weight * inside / np.maximum(inside.sum(axis=1, keepdims=True), 1e-12) + (1 - weight) / wide
    return np.asarray((found[:, None] * inside / inside.sum(axis=1, keepdims=True)).ravel()), told or weight > 1 / 2


def query_unit(price: Price, number: int) -> int:
    """Return the seconds that times are multiples of: a day, an hour, a minute, or 1.

    There are about ``number`` cases. A case adds 1 to the longest of these units of which all its known times are
    multiples, or to none.
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
