"""A start and its end as one event."""

import itertools
from collections import defaultdict, deque
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

import veilog
from veilog.errors import InputError, ParameterError
from veilog.logs import files
from veilog.logs.eventlog import START
from veilog.logs.input import lifecycle
from veilog.logs.storage.loader import store

ROWS = """case,activity,lifecycle:transition,timestamp
1,a,start,2024-01-01 10:00
1,b,Start,2024-01-01 10:30
1,a,start,2024-01-01 10:40
1,a,COMPLETE,2024-01-01 11:00
1,b,complete,2024-01-01 11:30
1,a,complete,2024-01-01 11:45
1,a,complete,2024-01-01 11:50
1,c,start,2024-01-01 12:00
2,a,complete,2024-01-02 10:00
2,a,start,2024-01-02 11:00
2,a,schedule,2024-01-02 11:01
2,a,complete,2024-01-02 12:00
"""
SPANS = (
    "case,activity,start_time,end_time\n1,a,2024-01-01 10:00,2024-01-01 11:00\n1,b,2024-01-01 12:00,2024-01-01 13:00\n"
)


def intervals(folder: Path, text: str, **more: object) -> veilog.EventLog:
    path = folder / "log.csv"
    path.write_text(text)
    return veilog.read(path, lifecycle="intervals", **more)


def told(log: veilog.EventLog) -> list[tuple[str, str, str | None, str]]:
    frame = log.to_pandas()
    rows = zip(frame["case:concept:name"], frame["concept:name"], frame[START], frame["time:timestamp"], strict=True)
    return [(c, a, None if s is None or s != s else f"{s:%d %H:%M}", f"{e:%d %H:%M}") for c, a, s, e in rows]


def test_an_end_belongs_to_the_first_start_of_its_activity_that_has_none(tmp_path: Path) -> None:
    log = intervals(tmp_path, ROWS)
    assert told(log) == [
        ("1", "a", "01 10:00", "01 11:00"),
        ("1", "b", "01 10:30", "01 11:30"),
        ("1", "a", "01 10:40", "01 11:45"),
        ("1", "a", None, "01 11:50"),
        ("2", "a", None, "02 10:00"),
        ("2", "a", "02 11:00", "02 12:00"),
    ]
    (found,) = (f for f in log.findings if f.rule == "unpaired-transitions")
    assert (found.count, found.policy) == (2, "drop"), "the start of c, and what is scheduled"
    with refused(InputError, "finding-with-example", rule="unpaired-transitions"):
        intervals(tmp_path, ROWS, policies={"unpaired-transitions": "fail"})


def test_starts_and_ends_in_one_row_are_times_of_one_event(tmp_path: Path) -> None:
    log = intervals(tmp_path, SPANS)
    assert told(log) == [("1", "a", "01 10:00", "01 11:00"), ("1", "b", "01 12:00", "01 13:00")]
    files.write(log, tmp_path / "log.xes")
    again = veilog.read(tmp_path / "log.xes")
    assert told(again) == told(log)
    assert told(veilog.read(tmp_path / "log.xes", lifecycle="intervals")) == told(log), "as a comparison reads both"


@pytest.mark.parametrize("names", ["start,end", "Beginn,Ende", "Debut,Fin", "startedAt,completedAt", "start,stop"])
def test_starts_and_ends_are_known_by_usual_names(tmp_path: Path, names: str) -> None:
    log = intervals(tmp_path, SPANS.replace("start_time,end_time", names))
    assert told(log) == [("1", "a", "01 10:00", "01 11:00"), ("1", "b", "01 12:00", "01 13:00")]


def test_a_life_cycle_that_was_mistyped_is_named(tmp_path: Path) -> None:
    intervals(tmp_path, ROWS)
    for wrong, right in (("interval", "intervals"), ("complet", "complete"), ("schedul", "schedule")):
        with refused(ParameterError, "lifecycle-transition-missing", said=wrong) as caught:
            veilog.read(tmp_path / "log.csv", lifecycle=wrong)
        assert caught.value.message.values["meant"].values["near"].casefold() == right


def test_what_cannot_be_intervals_is_refused(tmp_path: Path) -> None:
    with refused(ParameterError, "lifecycle-and-start-missing", lifecycle="lifecycle:transition"):
        intervals(tmp_path, "case,activity,timestamp\n1,a,2024-01-01 10:00\n")
    with refused(ParameterError, "lifecycle-transition-unpaired", wanted="start"):
        intervals(tmp_path, "\n".join(row for row in ROWS.splitlines() if ",start" not in row.lower()))
    with refused(ParameterError, "classifier-splits-lifecycle"):
        intervals(tmp_path, ROWS, classifier="concept:name lifecycle:transition")
    files.write(veilog.read(tmp_path / "log.csv"), tmp_path / "plain.parquet")
    with refused(ParameterError, "lifecycle-not-merged-here"):
        store(tmp_path / "plain.parquet", lifecycle="intervals")


XES_EVENT = (
    '<event><string key="concept:name" value="{0}"/><date key="time:timestamp" value="2024-01-01T{1}:00Z"/>{2}</event>'
)
STEP = '<string key="lifecycle:transition" value="{}"/>'


def xes_of(*cases: str) -> str:
    """A log of these cases, each given by its events."""
    traces = (f'<trace><string key="concept:name" value="{i}"/>{events}</trace>' for i, events in enumerate(cases))
    return f'<?xml version="1.0"?><log xes.version="1.0">{"".join(traces)}</log>'


def test_a_case_that_says_when_its_events_began_changes_no_other(tmp_path: Path) -> None:
    """In XES an attribute exists as soon as one event has it."""
    started = "".join(
        XES_EVENT.format("a", at, STEP.format(step)) for at, step in (("10:00", "start"), ("11:00", "complete"))
    )
    own = XES_EVENT.format("b", "12:00", '<date key="start_timestamp" value="2024-01-01T09:00:00Z"/>')
    both = XES_EVENT.format("b", "12:30", STEP.format("complete") + own[own.index('<date key="start') : -8])
    read = []
    for name, cases in (("small", (started,)), ("large", (started, own + both))):
        (tmp_path / f"{name}.xes").write_text(xes_of(*cases))
        read.append(told(veilog.read(tmp_path / f"{name}.xes", lifecycle="intervals")))
    assert read[0] == [("0", "a", "01 10:00", "01 11:00")]
    assert read[1] == read[0] + [("1", "b", "01 09:00", "01 12:00"), ("1", "b", "01 09:00", "01 12:30")]


def test_events_that_say_no_transition_stay_as_they_are(tmp_path: Path) -> None:
    rows = "case,activity,lifecycle:transition,timestamp\n1,a,start,2024-01-01 10:00\n1,a,,2024-01-01 11:00\n"
    assert told(intervals(tmp_path, rows + "1,b,complete,2024-01-01 12:00\n")) == [
        ("1", "a", None, "01 11:00"),
        ("1", "b", None, "01 12:00"),
    ]


@pytest.mark.slow
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1), st.sampled_from([1, -1, -1, 0, 1]))))
def test_pairs_are_those_of_waiting_in_line(events: list[tuple[int, int, int]]) -> None:
    events.sort(key=lambda event: event[0])
    case, code, step = (
        (np.array(column, dtype=np.int64) for column in zip(*events, strict=True))
        if events
        else [np.zeros(0, np.int64)] * 3
    )
    expected = np.full(len(events), -1)
    for _, group in itertools.groupby(range(len(events)), key=lambda i: events[i][0]):
        waiting: defaultdict[int, deque[int]] = defaultdict(deque)
        for i in group:
            line = waiting[events[i][1]]
            if events[i][2] == 1:
                line.append(i)
            elif events[i][2] == -1 and line:
                expected[i] = line.popleft()
    assert np.array_equal(lifecycle._starts_of(case, code, step), expected)
