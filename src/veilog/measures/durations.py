"""Durations of cases and numbers of active cases, in an original and its release.

A case lasts from its earliest to its latest known time; one with a single known time lasts 0. Cases without any known
time are counted and left out. The earth mover's distance compares the two distributions of durations,

    EMD = integral |F(x) - G(x)| dx        F, G: share of cases that last at most x

in hours: by how much the average case would have to be made longer or shorter. A case is active in a bin of time if any
part of it, its first and last moment included, falls into the bin. With a and r cases in each bin,

    difference = sum |a - r| / sum a                           0: the same; 1: for example, nothing released
    shape difference = 1/2 sum |a / sum a - r / sum r|         in [0, 1]; blind to the sizes of the logs

All of it is linear in the events, except for sorting the durations. Nothing depends on the order of cases or events.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa

from veilog._typing import BoolArray, FloatArray, IntArray
from veilog.errors import ParameterError
from veilog.logs.eventlog import TIMESTAMP, EventLog
from veilog.logs.variants import Variants
from veilog.measures.measure import Pair, our_measure

Clock = Literal["calendar", "since the first event"]

FEW = 30
"""Released cases below which their durations are only examples: noise of a few cases moves their mean."""
MOST_BINS = 1_000
_SECOND = 1_000_000
_HOUR = 3_600 * _SECOND
_BINS = (60, 600, 3_600, 6 * 3_600, 86_400, 7 * 86_400, 28 * 86_400, 364 * 86_400, 3_640 * 86_400)
"""Widths of a bin in seconds; a day serves for eight months to nearly three years."""
_QUANTILES = 21


@dataclass(frozen=True, eq=False)
class Spans:
    """First and last known time of every case that has one, in UTC microseconds."""

    first: IntArray
    last: IntArray
    without_times: int
    """Number of cases without any known time."""


@dataclass(frozen=True)
class Durations:
    """Durations of the cases of one log, in hours."""

    cases: int
    without_times: int
    """Number of cases left out because they have no known time."""
    minimum: float
    lower_quartile: float
    median: float
    upper_quartile: float
    maximum: float
    mean: float
    quantiles: tuple[float, ...]
    """Quantiles at shares of 0, 0.05, 0.1, ... 1 of the cases."""


@dataclass(frozen=True)
class CaseDurations:
    """Durations of both logs and the earth mover's distance between them, in hours."""

    original: Durations
    released: Durations
    emd: float


@dataclass(frozen=True)
class ActiveCases:
    """Numbers of active cases in each bin of time."""

    clock: Clock
    """The calendar, or for logs without a common time, the time since each first event."""
    start: str | None
    """Start of the first bin (ISO, UTC); None if the clock is not the calendar."""
    bin_seconds: int
    original: tuple[int, ...]
    released: tuple[int, ...]
    difference: float
    """Sum of the differences over the sum of the original; 0 if they are equal."""
    shape_difference: float
    """Half the sum of the differences between shares: 0 to 1, blind to sizes of logs."""


def timed(log: EventLog | Variants, name: str) -> EventLog:
    """Return the log, or raise :class:`ParameterError` if its times mean nothing."""
    if isinstance(log, Variants):
        raise ParameterError("durations-of-variants", parameter=name, name=name)
    if log.artificial_times:
        raise ParameterError("durations-times-artificial", parameter=name, name=name)
    return log


def case_times(log: EventLog) -> tuple[IntArray, BoolArray]:
    """Return every event's time in UTC microseconds (0 if unknown) and what is known."""
    times = log.events.column(TIMESTAMP).cast(pa.int64()).combine_chunks()
    return times.fill_null(0).to_numpy(zero_copy_only=False), times.is_valid().to_numpy(zero_copy_only=False)


def case_spans(log: EventLog) -> tuple[IntArray, IntArray, IntArray]:
    """Return the cases that have a known time, with the first and last one of each."""
    micros, known = case_times(log)
    bounds = np.concatenate([[0], np.cumsum(known)])[log.offsets]
    cases = np.flatnonzero(np.diff(bounds))
    if not len(cases):
        return cases, cases, cases
    first, last = (end.reduceat(micros[known], bounds[cases]) for end in (np.minimum, np.maximum))
    return cases, first, last


def spans(log: EventLog, name: str = "log") -> Spans:
    """Return the first and last time of every case that has a known time.

    Raises:
        ParameterError: When no case has a known time.

    """
    cases, first, last = case_spans(log)
    if not len(cases):
        what = "no known times" if log.number_of_cases else "no cases"
        raise ParameterError("durations-log-unsuitable", parameter=name, name=name, what=what)
    return Spans(first, last, log.number_of_cases - len(cases))


def within_cases(offsets: IntArray, events: int) -> BoolArray:
    """Return for every event but the last True if the next one is of the same case."""
    inside = np.ones(max(0, events - 1), dtype=np.bool_)
    borders = offsets[1:-1] - 1
    inside[borders[(borders >= 0) & (borders < len(inside))]] = False
    return inside


def mean_steps(
    codes: IntArray, offsets: IntArray, known: BoolArray, times: IntArray, labels: int
) -> tuple[IntArray, IntArray, FloatArray]:
    """Return the directly-follows pairs, how often each has known times, and its mean.

    A pair is ``first * labels + second``, in ascending order; its mean time is in hours.
    """
    inside = known[:-1] & known[1:] & within_cases(offsets, len(codes))
    pairs = (codes[:-1] * labels + codes[1:])[inside]
    keys, place, counts = np.unique(pairs, return_inverse=True, return_counts=True)
    gaps = np.diff(times)[inside]
    # Hours and what is left of them, apart: integers that a double holds, so that no order of cases shows in the sums.
    high, low = (np.bincount(place, part, minlength=len(keys)) for part in (gaps // _HOUR, gaps % _HOUR))
    return keys, counts, (high + low / _HOUR) / counts


def step_durations(log: EventLog) -> dict[tuple[str, str], float]:
    """Return the mean hours between every two activities that follow each other."""
    labels, codes = log.activity_codes
    micros, known = case_times(log)
    keys, _, hours = mean_steps(codes.astype(np.int64), log.offsets, known, micros, len(labels))
    pairs = zip(keys.tolist(), hours.tolist(), strict=True)
    return {(labels[key // len(labels)], labels[key % len(labels)]): mean for key, mean in pairs}


def case_durations(original: Spans, released: Spans) -> CaseDurations:
    """Return the durations of the cases of both logs, and their distance."""
    a, b = (np.sort(log.last - log.first) for log in (original, released))
    return CaseDurations(
        _summary(a, original.without_times), _summary(b, released.without_times), emd(a, b) / (3_600 * _SECOND)
    )


def active_cases(original: Spans, released: Spans) -> ActiveCases:
    """Return the active cases over time in both logs.

    The bins are the smallest of which ``MOST_BINS`` suffice. Logs that share no time, as when a release starts in a
    made-up year, are aligned at their first events.
    """
    starts = [int(log.first.min()) for log in (original, released)]
    ends = [int(log.last.max()) for log in (original, released)]
    shared = max(starts) <= min(ends)
    if shared:
        origins = [min(starts)] * 2
        length = max(ends) - min(starts)
    else:
        origins = starts
        length = max(end - start for start, end in zip(starts, ends, strict=True))
    width = next((b * _SECOND for b in _BINS if length < (MOST_BINS - 1) * b * _SECOND), _BINS[-1] * _SECOND)
    if shared:  # days start at midnight, not at the first event
        origins = [origins[0] // width * width] * 2
    size = max((end - origin) // width for end, origin in zip(ends, origins, strict=True)) + 1
    a, r = (
        _count_active_cases(log, origin, width, size) for log, origin in zip((original, released), origins, strict=True)
    )
    return ActiveCases(
        clock="calendar" if shared else "since the first event",
        start=_iso(origins[0]) if shared else None,
        bin_seconds=width // _SECOND,
        original=tuple(a.tolist()),
        released=tuple(r.tolist()),
        difference=int(np.abs(a - r).sum()) / int(a.sum()),
        shape_difference=min(1.0, float(np.abs(a / a.sum() - r / r.sum()).sum()) / 2),
    )


def _count_active_cases(log: Spans, origin: int, width: int, size: int) -> IntArray:
    change = np.bincount((log.first - origin) // width, minlength=size + 1)
    change -= np.bincount((log.last - origin) // width + 1, minlength=size + 1)
    return np.cumsum(change[:size]).astype(np.int64)


def _summary(durations: IntArray, without_times: int) -> Durations:
    hours = durations / (3_600 * _SECOND)
    quantiles = np.quantile(hours, np.linspace(0, 1, _QUANTILES)).tolist()
    low, middle, high = np.quantile(hours, [0.25, 0.5, 0.75]).tolist()
    return Durations(
        cases=len(hours),
        without_times=without_times,
        minimum=float(hours[0]),
        lower_quartile=low,
        median=middle,
        upper_quartile=high,
        maximum=float(hours[-1]),
        mean=float(hours.mean()),
        quantiles=tuple(quantiles),
    )


def emd(a: IntArray, b: IntArray) -> float:
    """Return the earth mover's distance between two sorted samples, in their unit."""
    both = np.sort(np.concatenate([a, b]))
    f = np.searchsorted(a, both[:-1], side="right") / len(a)
    g = np.searchsorted(b, both[:-1], side="right") / len(b)
    return float(np.sum(np.abs(f - g) * np.diff(both)))


def _iso(micros: int) -> str | None:
    """Return the time in ISO form; None before the year 1, where a bin may begin."""
    try:
        moment = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(microseconds=micros)
    except OverflowError:
        return None
    return moment.isoformat()


def _span_pair(pair: Pair) -> tuple[Spans, Spans]:
    first = spans(timed(pair.original, "original"), "original")
    return first, spans(timed(pair.released, "released"), "released")


CASE_DURATIONS = our_measure("case_durations", lambda pair: case_durations(*pair.once(_span_pair)))
ACTIVE_CASES = our_measure("active_cases", lambda pair: active_cases(*pair.once(_span_pair)))
