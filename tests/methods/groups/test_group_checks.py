"""The checkers accept exactly the logs that keep to the model, whatever made them."""

from collections import Counter

import pytest
from group_tools import log_of, traces, violations
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

from veilog.errors import OutputError
from veilog.logs.eventlog import EventLog
from veilog.messages import Message
from veilog.methods._groups import check_pretsa, check_tlkc


def passes_tlkc(log: EventLog, background: str, k: int, known: int, c: float = 1, sensitive: str | None = None) -> bool:
    try:
        check_tlkc(log, {"k": k, "l": known, "c": c, "background": background, "sensitive": sensitive})
    except OutputError:
        return False
    return True


def passes_pretsa(log: EventLog, k: int, t: float = 1, sensitive: str | None = None) -> bool:
    try:
        check_pretsa(log, {"k": k, "t": t, "sensitive": sensitive})
    except OutputError:
        return False
    return True


@pytest.mark.slow
@given(
    traces, st.sampled_from(("set", "multiset", "sequence")), st.integers(1, 4), st.integers(1, 4), st.integers(1, 3)
)
@settings(max_examples=150)
def test_k_anonymity_is_accepted_where_it_holds_and_nowhere_else(
    log: list[tuple[str, ...]], background: str, k: int, known: int, times: int
) -> None:
    log = log * times  # repeated logs hold more often
    assert passes_tlkc(log_of(log), background, k, known) == (not violations(log, background, k, known))


@pytest.mark.slow
@given(traces, st.sampled_from(("set", "multiset", "sequence")), st.sampled_from([0.5, 0.6, 0.75]), st.data())
@settings(max_examples=150)
def test_confidence_is_accepted_where_it_holds_and_nowhere_else(
    log: list[tuple[str, ...]], background: str, c: float, data: st.DataObject
) -> None:
    log = log * 2
    values = data.draw(st.lists(st.sampled_from(["x", "y", "z", None]), min_size=len(log), max_size=len(log)))
    given_log = log_of(log, cases={"disease": values})
    expected = not violations(log, background, 2, 2, values, c)
    assert passes_tlkc(given_log, background, 2, 2, c, "disease") == expected


@pytest.mark.nightly
@given(traces, st.lists(st.integers(0, 2), min_size=80, max_size=80), st.integers(1, 3))
@settings(max_examples=100)
def test_relative_times_are_part_of_what_is_known(log: list[tuple[str, ...]], hours: list[int], k: int) -> None:
    given_log = log_of(log, minutes=[sorted(60 * h for h in hours[5 * i : 5 * i + len(t)]) for i, t in enumerate(log)])
    # The log's cases start on days of their own: counted from there, as a release counts.
    times = given_log.events.column("time:timestamp").to_pylist()
    rows, place = [], 0
    for trace in log:
        rows.append([(a, times[place + j]) for j, a in enumerate(trace)])
        place += len(trace)
    assert passes_tlkc(given_log, "relative", k, 2) == (not violations(rows, "sequence", k, 2))


@pytest.mark.parametrize("background", ["set", "multiset", "sequence"])
def test_a_log_that_just_fails_is_told_from_one_that_just_holds(background: str) -> None:
    assert passes_tlkc(log_of([("a", "b")] * 5), background, 5, 2)
    assert not passes_tlkc(log_of([("a", "b")] * 5), background, 6, 2)
    assert not passes_tlkc(log_of([("a", "b")] * 5 + [("a", "b", "c")]), background, 2, 1)


def test_what_differs_in_order_or_number_only_is_known_to_the_stronger_backgrounds() -> None:
    repeated, reordered = log_of([("a",)] * 5 + [("a", "a")]), log_of([("a", "b")] * 5 + [("b", "a")])
    assert [passes_tlkc(repeated, b, 2, 2) for b in ("set", "multiset", "sequence")] == [True, False, False]
    assert [passes_tlkc(reordered, b, 2, 2) for b in ("set", "multiset", "sequence")] == [True, True, False]
    assert passes_tlkc(repeated, "multiset", 2, 1) and passes_tlkc(reordered, "sequence", 2, 1)


def test_values_of_any_event_of_a_case_count() -> None:
    log = log_of([("a", "b")] * 4, events={"crp": ["low", "high"] * 3 + ["low", "low"]})
    assert not passes_tlkc(log, "set", 2, 1, 0.9, "crp")
    assert passes_tlkc(log_of([("a",)] * 4, events={"crp": ["low", "high"] * 2}), "set", 2, 1, 0.5, "crp")


def test_the_message_says_what_fails() -> None:
    log = log_of([("a", "b")] * 5 + [("a", "c")])
    with refused(OutputError, "release-check-failed", what=Message("groups-too-few-match", number=1, pattern="<c>")):
        check_tlkc(log, {"k": 2, "l": 1, "c": 1, "background": "set", "sensitive": None})


@pytest.mark.nightly
@given(traces, st.integers(1, 5), st.integers(1, 3))
@settings(max_examples=200)
def test_prefixes_and_complete_traces_are_accepted_where_they_are_many_and_nowhere_else(
    log: list[tuple[str, ...]], k: int, times: int
) -> None:
    log = log * times
    counted = [*Counter(t[:n] for t in log for n in range(1, len(t) + 1)).values(), *Counter(log).values()]
    assert passes_pretsa(log_of(log), k) == all(number >= k for number in counted)


def test_the_end_of_a_trace_is_checked() -> None:
    assert not passes_pretsa(log_of([("a", "b")] * 5 + [("a",)]), 2)


def test_closeness_of_numbers_and_names() -> None:
    """Values of b after a, and after c, are 4.5 of a range of 10 away from all."""
    rows = [("a", "b")] * 2 + [("c", "b")] * 2
    numbers = log_of(rows, events={"v": [0.0, 0.0, 0.0, 1.0, 0.0, 9.0, 0.0, 10.0]})
    assert passes_pretsa(numbers, 2, 0.45, "v")
    assert not passes_pretsa(numbers, 2, 0.44, "v")
    names = log_of(rows, events={"v": ["x", "x", "x", "x", "x", "y", "x", "x"]})
    assert passes_pretsa(names, 2, 0.25, "v")
    assert not passes_pretsa(names, 2, 0.24, "v")


def test_closeness_of_durations() -> None:
    rows = [("a", "b")] * 2 + [("c", "b")] * 2
    log = log_of(rows, minutes=[[0, 0], [0, 1], [0, 9], [0, 10]])
    assert passes_pretsa(log, 2, 0.45, "duration")
    assert not passes_pretsa(log, 2, 0.44, "duration")


def test_events_without_a_value_do_not_count() -> None:
    assert passes_pretsa(log_of([("a", "b")] * 4, events={"v": [None, 1.0] * 2 + [None, None] * 2}), 2, 0.1, "v")
