"""Distances of performance: by hand, by a plain loop, and the laws that they keep."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import sentence
from scipy.stats import wasserstein_distance

from veilog.logs.eventlog import ACTIVITY, CASE_INDEX, EVENT_INDEX, START, TIMESTAMP, TIMESTAMP_TYPE, EventLog
from veilog.logs.metadata import ARTIFICIAL_TIMES, Attribute, Metadata
from veilog.logs.synthetic.hospital import hospital
from veilog.logs.variants import Variants
from veilog.measures.measure import Pair
from veilog.measures.use_cases import USE_CASES, UseCaseOptions, judge
from veilog.measures.use_cases.performance import OFTEN, PERFORMANCE

HOUR = 3_600_000_000
ORIGIN = 7 * 24
"""The first Thursday has the times that releases without times are written with."""
EMDS = ("absolute", "relative", "cycle_time", "arrival")

Case = list[tuple[str, float | None]]
some_cases = st.lists(
    st.lists(st.tuples(st.sampled_from("abc"), st.none() | st.integers(0, 400).map(lambda n: n / 4)), max_size=5),
    min_size=1,
    max_size=6,
).filter(lambda cases: any(time is not None for case in cases for _, time in case))


def log(*cases: Case) -> EventLog:
    """Cases as activities and hours since a Thursday; None is an unknown time."""
    rows = [(i, *event) for i, case in enumerate(cases) for event in case]
    micros = [None if hours is None else round((ORIGIN + hours) * HOUR) for _, _, hours in rows]
    events = pa.table(
        {
            CASE_INDEX: pa.array([i for i, _, _ in rows], pa.int64()),
            EVENT_INDEX: pa.array(range(len(rows)), pa.int64()),
            ACTIVITY: pa.array([activity for _, activity, _ in rows], pa.string()).dictionary_encode(),
            TIMESTAMP: pa.array(micros, pa.int64()).cast(TIMESTAMP_TYPE),
        }
    )
    return EventLog(events, pa.table({ACTIVITY: [str(i) for i in range(len(cases))]}))


def scores(used: EventLog, judged: EventLog) -> Mapping[str, float | None]:
    return PERFORMANCE.score(used, judged, UseCaseOptions())


def test_sequences_of_activities_by_hand() -> None:
    # 2-grams: -a ab b- against -a ac c-: one of three in common, 4 of 6 differ. 3-grams: --a alone is in common.
    found = scores(log([("a", 0), ("c", 1)]), log([("a", 0), ("b", 1)]))
    assert found["ngram_2"] == pytest.approx(4 / 6)
    assert found["ngram_3"] == pytest.approx(6 / 8)
    # Twice as many cases: -a, ab, b- are there twice and once.
    found = scores(log(*[[("a", 0.0), ("b", 1.0)]] * 2), log([("a", 0), ("b", 1)]))
    assert found["ngram_2"] == pytest.approx(3 / 9)


def test_hours_of_the_calendar_by_hand() -> None:
    # Hours 0, 1, 5 against 0, 3, 7: the second events move by 2 each, of three.
    found = scores(log([("a", 0.9), ("b", 1.0)], [("a", 5.5)]), log([("a", 0.0), ("b", 3.1)], [("a", 7.2)]))
    assert found["absolute"] == pytest.approx(4 / 3)
    assert found["arrival"] == pytest.approx(1.0)  # 0 and 5 against 0 and 7


def test_hours_of_the_day_by_hand() -> None:
    thursday, friday = 0, 24
    used = log([("a", thursday + 9.5), ("a", friday + 10)])
    # Thursday is off by 2 hours, on Friday and Saturday one of the logs has nothing, four days are empty in both.
    assert scores(used, log([("a", thursday + 11), ("a", friday + 24)]))["circadian"] == pytest.approx(
        (2 + 23 + 23) / 7
    )
    assert scores(used, log([("a", thursday + 7 * 24 + 9), ("a", friday + 10.9)]))["circadian"] == 0.0


def test_hours_within_the_case_by_hand() -> None:
    used = log([("a", 0), ("b", 2.5)], [("a", 100), ("b", 101)])  # 0 2 0 1; the cases last 2.5 and 1
    judged = log([("b", 50), ("a", 40)], [("a", 7)])  # 10 0 0; 10 and 0
    found = scores(used, judged)
    assert found["relative"] == pytest.approx(wasserstein_distance([0, 2, 0, 1], [10, 0, 0]))
    assert found["cycle_time"] == pytest.approx((1 + 8) / 2)  # hours since the shortest: 1 2 against 0 10
    assert found["median_duration"] == pytest.approx(1 - 1.75 / 5)
    assert found["mean_duration"] == pytest.approx(1 - 1.75 / 5)


def test_durations_of_steps_by_hand() -> None:
    original = log(*[[("a", 0.0), ("b", 2.0), ("c", 12.0)]] * OFTEN, *[[("c", 0.0), ("a", 1.0)]] * (OFTEN - 1))
    assert scores(original, original)["steps"] == 0.0
    # ab takes 3 in place of 2 hours on average, bc 10 as before, ca is rare.
    used = log([("a", 0.0), ("b", 2.0), ("c", 12.0)], [("a", 0.0), ("b", 4.0), ("c", 14.0)], [("c", 0.0), ("a", 99.0)])
    assert scores(used, original)["steps"] == pytest.approx((0.5 + 0.0) / 2)
    # A pair that the release does not have counts as 1, one with an unknown time as none.
    assert scores(log([("a", 0), ("b", 2), ("c", None)]), original)["steps"] == pytest.approx((0.0 + 1.0) / 2)
    assert scores(original, used)["steps"] is None


def test_medians_of_steps_by_hand() -> None:
    original = log(*[[("a", 0.0), ("b", 2.0)]] * (OFTEN - 1), [("a", 0.0), ("b", 99.0)])
    used = log([("a", 0.0), ("b", 1.0)], [("a", 0.0), ("b", 4.0)])
    assert scores(used, original)["median_steps"] == pytest.approx(2.5 / 2 - 1)
    assert scores(log([("b", 0.0), ("a", 1.0)]), original)["median_steps"] == 1.0
    assert scores(original, used)["median_steps"] is None


def started(timed: EventLog, hours: list[float | None]) -> EventLog:
    """The log with the hours at which its events began."""
    micros = pa.array([None if hour is None else round((ORIGIN + hour) * HOUR) for hour in hours], pa.int64())
    return replace(timed, events=timed.events.append_column(START, micros.cast(TIMESTAMP_TYPE)))


def test_processing_and_waiting_by_hand() -> None:
    """b takes 1 hour of 3 and waits 2, and a takes half an hour.

    An event that began before the event before it ended did not wait.
    """
    original = started(log(*[[("a", 0.0), ("b", 3.0)]] * OFTEN), [-0.5, 2.0] * OFTEN)
    assert [scores(original, original)[name] for name in ("processing", "waiting")] == [0.0, 0.0]
    used = started(log([("a", 0.0), ("b", 3.0)], [("a", 0.0), ("b", 4.0)]), [-1.0, 1.0, -1.0, -2.0])
    found = scores(used, original)
    assert found["processing"] == pytest.approx(((1 / 0.5 - 1) + (4 / 1 - 1)) / 2)
    assert found["waiting"] == pytest.approx(1 - 0.5 / 2)
    # An event without a known start takes no time.
    assert scores(started(log([("a", 0.0), ("b", 3.0)]), [None, None]), original)["processing"] == 1.0
    for one, other in ((original, log([("a", 0.0), ("b", 3.0)])), (log([("a", 0.0), ("b", 3.0)]), original)):
        assert scores(one, other)["processing"] is scores(one, other)["waiting"] is None


def test_a_case_without_events_has_its_marks_and_unknown_times_are_left_out() -> None:
    # -- beside -a a-: one of 3 + 2 sequences, and nothing of it in the times.
    found = scores(log([("a", 0)], []), log([("a", 0)]))
    assert found["ngram_2"] == pytest.approx(1 / 5)
    assert all(found[name] == 0 for name in EMDS)
    found = scores(log([("a", 0), ("a", None)]), log([("a", 0), ("a", 3)]))
    assert found["absolute"] == pytest.approx(1.5)
    assert found["ngram_2"] == 0


def test_logs_that_share_no_time_are_laid_on_each_other() -> None:
    original = log([("a", 3.5), ("b", 10)], [("a", 8)])
    far = log([("a", 30_003.2), ("b", 30_010)], [("a", 30_009)])
    found = scores(far, original)
    assert (found["absolute"], found["arrival"]) == pytest.approx((1 / 3, 1 / 2))
    assert found["relative"] == 0


@pytest.mark.parametrize("hours", [1, 5, 24, 100])
def test_a_log_that_is_later_by_hours_is_so_far_off_in_the_calendar(hours: int) -> None:
    original = hospital(cases=60, seed=2)
    times = original.events.column(TIMESTAMP).cast(pa.int64()).to_numpy() + hours * HOUR
    place = original.events.column_names.index(TIMESTAMP)
    later = replace(original, events=original.events.set_column(place, TIMESTAMP, pa.array(times).cast(TIMESTAMP_TYPE)))
    found = scores(later, original)
    assert found["absolute"] == pytest.approx(hours)
    assert found["arrival"] == pytest.approx(hours)
    assert {name for name, value in found.items() if value} - {"circadian"} == {"absolute", "arrival"}
    assert (found["circadian"] == 0) == (hours % 168 == 0)


@pytest.mark.nightly
@settings(derandomize=True, max_examples=100, deadline=None)
@given(some_cases, some_cases)
def test_any_two_logs_are_as_far_apart_as_a_plain_loop_says(first: list[Case], second: list[Case]) -> None:
    found = scores(log(*first), log(*second))

    def hours(cases: list[Case]) -> list[list[float]]:
        known = ([time for _, time in case if time is not None] for case in cases)
        return [times for times in known if times]

    a, b = hours(first), hours(second)
    shared = min(map(min, a)) <= max(map(max, b)) and min(map(min, b)) <= max(map(max, a))
    start = (0, 0) if shared else (min(map(min, a)) // 1, min(map(min, b)) // 1)
    shortest = min(max(times) - min(times) for times in a + b)
    expected = {
        "absolute": [[t // 1 - zero for times in log for t in times] for log, zero in zip((a, b), start, strict=True)],
        "arrival": [[min(times) // 1 - zero for times in log] for log, zero in zip((a, b), start, strict=True)],
        "relative": [[(t - min(times)) // 1 for times in log for t in times] for log in (a, b)],
        "cycle_time": [[(max(times) - min(times) - shortest) // 1 for times in log] for log in (a, b)],
    }
    for name, samples in expected.items():
        assert found[name] == pytest.approx(wasserstein_distance(*samples), abs=1e-9)
    for n in (2, 3):
        grams = [
            ["".join(part) for case in cases for part in _windows("-" * (n - 1), case, n)] for cases in (first, second)
        ]
        apart = sum(abs(grams[0].count(gram) - grams[1].count(gram)) for gram in {*grams[0], *grams[1]})
        assert found[f"ngram_{n}"] == pytest.approx(apart / (len(grams[0]) + len(grams[1])))


def _windows(marks: str, case: Case, n: int) -> list[str]:
    text = marks + "".join(activity for activity, _ in case) + marks
    return [text[i : i + n] for i in range(len(text) - n + 1)]


@pytest.mark.slow
@settings(derandomize=True, max_examples=25, deadline=None)
@given(st.lists(some_cases, min_size=3, max_size=3))
def test_distances_are_symmetric_and_no_detour_is_shorter(drawn: list[list[Case]]) -> None:
    logs = [log([("a", 0), ("a", 100)], *cases) for cases in drawn]  # so that they share their time
    apart = {(i, k): scores(logs[i], logs[k]) for i, k in itertools.product(range(3), repeat=2)}
    for name in (*EMDS, "circadian", "ngram_2", "ngram_3"):
        far = {pair: found[name] for pair, found in apart.items()}
        assert all(isinstance(value, float) for value in far.values())
        assert [far[i, i] for i in range(3)] == [0, 0, 0]
        assert far[0, 1] == pytest.approx(far[1, 0])
        if name in ("absolute", "relative", "arrival"):  # the others' bins or sizes depend on both logs
            assert far[0, 2] <= far[0, 1] + far[1, 2] + 1e-9


def test_no_order_of_cases_shows() -> None:
    original = hospital(cases=80, seed=4)
    mixed = original.only(np.random.default_rng(1).permutation(80))
    other = hospital(cases=70, seed=5)
    assert scores(mixed, other) == scores(original, other)
    assert scores(other, mixed) == scores(other, original)


def test_performance_is_judged_by_the_worse_of_cycle_time_and_events_in_the_case() -> None:
    original = hospital(cases=200, seed=1)
    result = judge(Pair(original, hospital(cases=200, seed=9)), ["performance"])["performance"]
    assert [name for name, found in result.aspects.items() if found.aspect.chief] == ["cycle_time", "relative"]
    assert result.chief is not None
    assert result.chief.sample is not None and result.chief.sample > 0
    assert result.aspects["cycle_time"].original == 0
    assert result.verdict.startswith(("Good for", "Of limited use for", "Not for"))
    assert list(result.aspects) == [aspect.name for aspect in USE_CASES["performance"].aspects]


def test_logs_without_times_say_why() -> None:
    original = hospital(cases=20, seed=1)
    artificial = replace(original, metadata=Metadata(attributes=(Attribute(ARTIFICIAL_TIMES, True, "boolean"),)))
    unknown = log([("a", None)], [("b", None)])
    for released, why in (
        (artificial, "The timestamps of the released log are artificial"),
        (unknown, "The released log has no known times."),
        (Variants.from_dict({("a",): 3}), sentence("measure-of-variants-only", name="released")),
    ):
        result = judge(Pair(original, released), ["performance"])["performance"]
        assert result.grade == "not judged"
        assert why in result.reason
