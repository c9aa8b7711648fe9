"""Performance: times of a process, durations of cases and steps, and their order.

Seven of the distances are those used to judge simulated logs: Chapela-Campa, Benchekroun, Baron, Dumas, Krass,
Senderovich: "Can I trust my simulation model? Measuring the quality of business process simulation models", BPM 2023,
as the authors' package github.com/AutomatedProcessImprovement/log-distance-measures 2.2.0 (Apache-2.0) has them; no
code of theirs is here. All but the first two are earth mover's distances between two distributions of whole hours:

- *n-grams*: sum |x - y| / sum (x + y), with x and y how often every sequence of n activities occurs, each case
  between n - 1 marks of start and end: 0 for equal logs, 1 where nothing is in common;
- *absolute* event distribution: the hours of the calendar in which events happen;
- *circadian*: the hours of the day, for each weekday by itself, and then the mean of the seven; 23 for a day on which
  only one log has events. Times are in UTC;
- *relative*: the hours from the start of its case to each event;
- *cycle time*: the hours that cases last, counted from the shortest case of both logs;
- *case arrival*: the hours of the calendar in which cases start.

Logs that share no time, as when a release starts in a made-up year, are aligned at their first events for the two
distances of the calendar. The same holds for active cases: the other date of such a release is known.

The others compare means and medians, by pair of activities that directly follow each other (those that the original has
30 times) and over all cases. The time between two events is waiting and work together. If both logs have the starts of
their events (``start_timestamp``), *processing* is the time from the start to the event. *Waiting* is the time from the
event before to the start, 0 where that event had not ended. Their means are compared by activity.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from veilog._typing import BoolArray, FloatArray, IntArray
from veilog.logs.eventlog import START, TIMESTAMP_TYPE, EventLog
from veilog.measures.durations import Spans, case_times, emd, mean_steps, spans, timed, within_cases
from veilog.measures.measure import Log
from veilog.measures.use_cases.use_case import UseCase, UseCaseOptions, facts_of

OFTEN = 30
"""Fewest occurrences of a pair in the original for its mean duration to count."""

_HOUR = 3_600_000_000
_WORK = ("processing", "waiting")
_WHOLE_DAY = 23
"""Circadian distance of a weekday with events of one log only, as in the package."""


@dataclass(frozen=True, eq=False)
class _Timed:
    """Parts of a log that its performance depends on; times in microseconds."""

    codes: IntArray
    """Activity of every event: a number that means the same in both logs."""
    offsets: IntArray
    known: BoolArray
    times: IntArray
    """Time of every event; 0 where unknown."""
    spans: Spans
    began: IntArray | None = None
    """Start of every event; its time where the start is unknown."""

    @cached_property
    def hours(self) -> IntArray:
        """Return the hour of the calendar of every known time, in order."""
        return np.sort(self.times[self.known] // _HOUR)

    @property
    def arrivals(self) -> IntArray:
        return np.sort(self.spans.first // _HOUR)

    @property
    def since_start(self) -> IntArray:
        """Return the hours from the start of its case to every known time, in order."""
        case = np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))[self.known]
        started = np.flatnonzero(np.concatenate(([True], case[1:] != case[:-1])))
        start = np.repeat(self.spans.first, np.diff(np.append(started, len(case))))
        return np.sort((self.times[self.known] - start) // _HOUR)

    @property
    def lasting(self) -> IntArray:
        return np.sort(self.spans.last - self.spans.first)


def _scores(used: Log, judged: Log, asked: UseCaseOptions) -> Mapping[str, float | None]:
    labels: dict[str, int] = {}
    b = _read_times(timed(judged, "original"), "original", labels)
    a = _read_times(timed(used, "released"), "released", labels)
    shared = a.spans.first.min() <= b.spans.last.max() and b.spans.first.min() <= a.spans.last.max()
    starts = (0, 0) if shared else (int(a.spans.first.min()) // _HOUR, int(b.spans.first.min()) // _HOUR)
    lasting_a, lasting_b = a.lasting, b.lasting
    shortest = min(lasting_a[0], lasting_b[0])
    return {
        "ngram_2": _ngram_distance(a, b, 2, len(labels)),
        "ngram_3": _ngram_distance(a, b, 3, len(labels)),
        "absolute": emd(a.hours - starts[0], b.hours - starts[1]),
        "circadian": _circadian(a.hours, b.hours),
        "relative": emd(a.since_start, b.since_start),
        "cycle_time": emd((lasting_a - shortest) // _HOUR, (lasting_b - shortest) // _HOUR),
        "arrival": emd(a.arrivals - starts[0], b.arrivals - starts[1]),
        "steps": _step_error(_steps(a, len(labels)), _steps(b, len(labels))),
        "median_steps": _step_error(_median_steps(a, len(labels)), _median_steps(b, len(labels))),
        **_work_errors(a, b, len(labels)),
        "median_duration": _relative_error(float(np.median(lasting_a)), float(np.median(lasting_b))),
        "mean_duration": _relative_error(float(lasting_a.mean()), float(lasting_b.mean())),
    }


def _read_times(log: EventLog, name: str, labels: dict[str, int]) -> _Timed:
    """Return a log's activities and times; new activities get the next numbers."""
    own, codes = log.activity_codes
    number = np.array([labels.setdefault(label, len(labels)) for label in own], dtype=np.int64)
    times, known = case_times(log)
    return _Timed(
        codes=number[codes],
        offsets=log.offsets,
        known=known,
        times=times,
        spans=spans(log, name),
        began=_starts(log, times),
    )


def _starts(log: EventLog, times: IntArray) -> IntArray | None:
    """Return the starts of events, or None if the log does not have them."""
    if START not in log.events.column_names or not pa.types.is_timestamp(log.events.column(START).type):
        return None
    began = log.events.column(START).cast(TIMESTAMP_TYPE).cast(pa.int64()).combine_chunks()
    return np.asarray(pc.coalesce(began, pa.array(times)).to_numpy(zero_copy_only=False), dtype=np.int64)


def _ngram_distance(a: _Timed, b: _Timed, n: int, labels: int) -> float:
    (first, x), (second, y) = (np.unique(_ngrams(log, n, labels), return_counts=True) for log in (a, b))
    both = np.union1d(first, second)
    apart = np.zeros(len(both), dtype=np.int64)
    apart[np.searchsorted(both, first)] += x
    apart[np.searchsorted(both, second)] -= y
    return float(np.abs(apart).sum() / (x.sum() + y.sum()))


def _ngrams(log: _Timed, n: int, labels: int) -> IntArray:
    """Return every sequence of n activities as a number; 0 marks a case's border."""
    cases = len(log.offsets) - 1
    marks = n - 1
    padded = np.zeros(len(log.codes) + 2 * marks * cases, dtype=np.int64)
    before = np.repeat(np.arange(cases) * 2 * marks + marks, np.diff(log.offsets))
    padded[np.arange(len(log.codes)) + before] = log.codes + 1
    size = len(padded) - marks
    key = np.zeros(size, dtype=np.int64)
    for place in range(n):
        key = key * (labels + 1) + padded[place : place + size]
    inside = np.ones(len(padded), dtype=np.bool_)
    ends = log.offsets[1:] + np.arange(1, cases + 1) * 2 * marks
    for place in range(1, n):
        inside[ends - place] = False  # such a sequence would reach into the next case
    return key[inside[:size]]


def _circadian(a: IntArray, b: IntArray) -> float:
    """Return the weekdays' mean distance of the hours of the day (hours since 1970)."""
    days = [np.bincount((hours // 24 + 3) % 7 * 24 + hours % 24, minlength=168).reshape(7, 24) for hours in (a, b)]
    distances = []
    for x, y in zip(*days, strict=True):
        if x.any() and y.any():
            distances.append(float(np.abs(np.cumsum(x) / x.sum() - np.cumsum(y) / y.sum()).sum()))
        else:
            distances.append(float(_WHOLE_DAY) if x.any() or y.any() else 0.0)
    return float(np.mean(distances))


_Steps = tuple[IntArray, IntArray, FloatArray]
"""Pairs of activities in order, their frequencies, and their durations."""


def _step_error(used: _Steps, judged: _Steps) -> float | None:
    """Return the median relative error over frequent pairs; 1 for one that is lost."""
    keys, counts, means = judged
    often = (counts >= OFTEN) & (means != 0)
    if not often.any():
        return None
    own, _, kept = used
    place = np.minimum(np.searchsorted(own, keys[often]), max(len(own) - 1, 0))
    there = own[place] == keys[often] if len(own) else np.zeros(int(often.sum()), dtype=np.bool_)
    errors = np.ones(len(place))
    errors[there] = np.abs(kept[place[there]] / means[often][there] - 1)
    return float(np.median(errors))


def _work_errors(used: _Timed, judged: _Timed, labels: int) -> dict[str, float | None]:
    """Return the median relative errors of the mean processing and waiting times.

    They are over the original's frequent activities; a lost one has 1.
    """
    if used.began is None or judged.began is None:
        return {"processing": None, "waiting": None}
    found: dict[str, float | None] = {}
    kept, real = (dict(zip(_WORK, _work(log, labels), strict=True)) for log in (used, judged))
    for name in _WORK:
        (there, means), (often, wanted) = kept[name], real[name]
        compared = np.flatnonzero((often >= OFTEN) & (wanted > 0))
        errors = np.where(there[compared] > 0, np.abs(means[compared] / wanted[compared] - 1), 1.0)
        found[name] = float(np.median(errors)) if len(errors) else None
    return found


def _work(log: _Timed, labels: int) -> tuple[tuple[IntArray, FloatArray], tuple[IntArray, FloatArray]]:
    """Return the frequency and mean of processing and of waiting times, per activity."""
    assert log.began is not None
    at = _followers(log)
    waited = np.maximum(log.began[at] - log.times[at - 1], 0)
    took = (log.times - log.began)[log.known]
    return _means(log.codes[log.known], took, labels), _means(log.codes[at], waited, labels)


def _followers(log: _Timed) -> IntArray:
    """Return the events that follow another in their case, both with known times."""
    known = log.known[:-1] & log.known[1:] & within_cases(log.offsets, len(log.codes))
    return np.flatnonzero(known) + 1


def _means(codes: IntArray, micros: IntArray, labels: int) -> tuple[IntArray, FloatArray]:
    counts = np.bincount(codes, minlength=labels)
    sums = np.zeros(labels, dtype=np.int64)  # integers, so that no order of cases shows in the sums
    np.add.at(sums, codes, micros // 1_000)
    return counts, np.asarray(sums / np.maximum(counts, 1), dtype=np.float64)


def _steps(log: _Timed, labels: int) -> _Steps:
    """Return the pairs with known times, and their mean time."""
    return mean_steps(log.codes, log.offsets, log.known, log.times, labels)


def _median_steps(log: _Timed, labels: int) -> _Steps:
    """Return the pairs with known times, and the median of their times in seconds."""
    at = _followers(log)
    keys = log.codes[at - 1] * labels + log.codes[at]
    gaps = log.times[at] - log.times[at - 1]
    order = np.lexsort((gaps, keys))
    found, first, counts = np.unique(keys[order], return_index=True, return_counts=True)
    low, high = (gaps[order[first + half]] for half in ((counts - 1) // 2, counts // 2))
    return found, counts, (low + high) / 2e6


def _relative_error(used: float, judged: float) -> float | None:
    return abs(used / judged - 1) if judged else None


PERFORMANCE = UseCase(score=_scores, **facts_of("performance"))
