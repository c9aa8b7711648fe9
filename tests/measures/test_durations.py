"""Durations and active cases equal values by hand and scipy, with missing times."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused
from scipy.stats import wasserstein_distance

from veilog.errors import ParameterError
from veilog.logs.eventlog import ACTIVITY, CASE_INDEX, EVENT_INDEX, TIMESTAMP, TIMESTAMP_TYPE, EventLog
from veilog.logs.synthetic.hospital import hospital
from veilog.measures.durations import MOST_BINS, Spans, active_cases, case_durations, spans, step_durations

HOUR = 3_600_000_000
DAY = 24 * HOUR

Times = list[int | None]
some_times = st.lists(st.lists(st.none() | st.integers(-500, 40_000), max_size=5), min_size=1, max_size=8).filter(
    lambda cases: any(time is not None for case in cases for time in case)
)


def timed(*cases: Times, unit: int = HOUR) -> EventLog:
    """Return cases by the times of their events in hours since 1970; None is unknown."""
    rows = [(i, time) for i, case in enumerate(cases) for time in case]
    micros = [None if time is None else time * unit for _, time in rows]
    events = pa.table(
        {
            CASE_INDEX: pa.array([i for i, _ in rows], pa.int64()),
            EVENT_INDEX: pa.array(range(len(rows)), pa.int64()),
            ACTIVITY: pa.array(["a"] * len(rows), pa.string()).dictionary_encode(),
            TIMESTAMP: pa.array(micros, pa.int64()).cast(TIMESTAMP_TYPE),
        }
    )
    return EventLog(events, pa.table({ACTIVITY: [str(i) for i in range(len(cases))]}))


def test_a_case_lasts_from_its_earliest_to_its_latest_known_time() -> None:
    found = spans(timed([5, 1, None, 3], [], [7], [None], [2, 2], [None, 4]))
    assert (found.first // HOUR).tolist() == [1, 7, 2, 4]
    assert ((found.last - found.first) // HOUR).tolist() == [4, 0, 0, 0]
    assert found.without_times == 2


def test_durations_by_hand() -> None:
    result = case_durations(spans(timed([0, 1], [0, 2], [0, 3], [0, 6], [0])), spans(timed([9, 11], [0, 4])))
    a = result.original
    assert (a.cases, a.minimum, a.lower_quartile, a.median, a.upper_quartile, a.maximum) == (5, 0, 1, 2, 3, 6)
    assert a.mean == pytest.approx(2.4) and result.released.mean == pytest.approx(3.0)
    assert len(a.quantiles) == 21 and (a.quantiles[0], a.quantiles[10], a.quantiles[-1]) == (0, 2, 6)
    # 0 1 2 3 6 in fifths against 2 4 in halves: 2/5 + 1/5 + ... by the areas between both staircases.
    assert result.emd == pytest.approx(wasserstein_distance([0, 1, 2, 3, 6], [2, 4]))


@pytest.mark.nightly
@settings(derandomize=True, max_examples=80, deadline=None)
@given(some_times, some_times)
def test_any_two_logs_compare_as_a_plain_loop_does(first: list[Times], second: list[Times]) -> None:
    def lasting(cases: list[Times]) -> list[tuple[int, int]]:
        known = [[t for t in case if t is not None] for case in cases]
        return [(min(k), max(k)) for k in known if k]

    a, b = spans(timed(*first)), spans(timed(*second))
    emd = wasserstein_distance([e - s for s, e in lasting(first)], [e - s for s, e in lasting(second)])
    assert case_durations(a, b).emd == pytest.approx(emd, abs=1e-9)
    active = active_cases(a, b)
    assert len(active.original) == len(active.released) <= MOST_BINS
    lows = [min(s for s, _ in lasting(cases)) for cases in (first, second)]
    width = active.bin_seconds // 60
    origins = [min(lows) * 60 // width * width] * 2 if active.clock == "calendar" else [low * 60 for low in lows]
    for cases, series, origin in ((first, active.original, origins[0]), (second, active.released, origins[1])):
        expected = [0] * len(series)
        for start, end in lasting(cases):
            for place in range((start * 60 - origin) // width, (end * 60 - origin) // width + 1):
                expected[place] += 1
        assert list(series) == expected
    assert 0 <= active.shape_difference <= 1 and active.difference >= 0


def test_a_log_and_itself_do_not_differ() -> None:
    log = spans(hospital(80, seed=2))
    assert case_durations(log, log).emd == 0.0
    assert (active_cases(log, log).difference, active_cases(log, log).shape_difference) == (0.0, 0.0)


def test_twice_the_log_differs_in_size_and_not_in_shape() -> None:
    log = spans(hospital(80, seed=2))
    twice = Spans(np.tile(log.first, 2), np.tile(log.last, 2), 0)
    assert active_cases(log, twice).difference == 1.0
    assert active_cases(log, twice).shape_difference == pytest.approx(0.0, abs=1e-12)


def test_the_order_of_cases_does_not_matter() -> None:
    log = hospital(60, seed=3)
    order = list(range(60))
    random.Random(1).shuffle(order)
    other = log.only(np.array(order))
    reference = spans(hospital(50, seed=4))
    assert case_durations(spans(log), reference) == case_durations(spans(other), reference)
    assert active_cases(spans(log), reference) == active_cases(spans(other), reference)


@pytest.mark.parametrize(
    ("unit", "last", "width"),
    [
        (1, 0, 60),
        (HOUR, 10, 60),
        (DAY, 3, 600),
        (DAY, 200, 6 * 3600),
        (DAY, 600, 86_400),
        (DAY, 2_000_000, 3_640 * 86_400),
    ],
)
def test_bins_are_as_small_as_their_number_allows(unit: int, last: int, width: int) -> None:
    log = spans(timed([0, last], unit=unit))
    active = active_cases(log, log)
    assert active.bin_seconds == width and set(active.original) == {1}


def test_days_start_at_midnight() -> None:
    log = spans(timed([30, 24 * 600]))
    assert active_cases(log, log).start == "1970-01-02T00:00:00+00:00"


def test_logs_that_share_no_time_are_laid_on_each_other() -> None:
    log, later = timed([0, 5], [3, 9]), timed([1_000_000, 1_000_005], [1_000_003, 1_000_009])
    active = active_cases(spans(log), spans(later))
    assert active.clock != "calendar" and (active.start, active.difference) == (None, 0.0)


def test_the_ends_of_time_are_no_error() -> None:
    first, last = (int(np.datetime64(t, "us").astype(np.int64)) for t in ("0001-01-01", "9999-12-31T23:59:59"))
    log = spans(timed([first, last], [first], [last], unit=1))
    active = active_cases(log, log)
    assert active.start is None and (active.original[0], active.original[-1]) == (2, 2)


@pytest.mark.parametrize(
    ("log", "words"), [(timed([None], [None, None]), "no known times"), (timed([]), "no known times")]
)
def test_without_times_it_is_said(log: EventLog, words: str) -> None:
    with refused(ParameterError, "durations-log-unsuitable", name="released", what=words):
        spans(log, "released")


def test_a_log_without_cases_has_no_durations() -> None:
    log = timed([1])
    empty = replace(log, events=log.events.slice(0, 0), cases=log.cases.slice(0, 0))
    with refused(ParameterError, "durations-log-unsuitable"):
        spans(empty, "released")


def test_how_long_a_step_takes_is_the_mean_over_all_of_its_kind_with_known_times() -> None:
    log = timed([0, 2], [5, 9], [1, None, 3], [7])
    codes = pa.array(["a", "b", "a", "b", "a", "b", "a", "c"]).dictionary_encode()
    events = log.events.set_column(log.events.column_names.index(ACTIVITY), ACTIVITY, codes)
    assert step_durations(replace(log, events=events)) == {("a", "b"): 3.0}
    assert step_durations(timed([1], [5], [])) == {}
