"""What attributes ask of a case: each contributes by itself, within the bound that is charged."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from event_questions import Asked, exact, heard
from hypothesis import given, settings
from hypothesis import strategies as st
from logs_with_attributes import COLOURED, HOUR, log_of, released, slow_and_fast

from veilog import Domain
from veilog.logs.eventlog import TIMESTAMP_TYPE, EventLog


def questions(log: EventLog, **arguments: Any) -> list[Asked]:
    """The sums that are asked; a test of the kernel shows that the noisy maximum takes any function."""
    with heard() as asked:
        released(log, seed=1, **arguments)
    return asked


QUESTIONS = questions(
    COLOURED,
    attributes=["colour", "kind", "price"],
    epsilon=10,
    domain=Domain(attributes={"colour": ("red", "green"), "kind": ("new",), "price": (0, 10)}),
)
an_event = st.fixed_dictionaries(
    {
        "activity": st.sampled_from(["ask", "answer", "other"]),
        "colour": st.sampled_from(["red", "green", None]),
        "price": st.sampled_from([1.5, -3.0, 99.0, None]),
    }
)
some_cases = st.lists(
    st.tuples(st.fixed_dictionaries({"kind": st.sampled_from(["new", "old", None])}), st.lists(an_event, max_size=9)),
    min_size=1,
    max_size=6,
)
COMPLETE = ({"kind": "new"}, [{"activity": "ask", "colour": "red", "price": 1.5}])


def code_of(asked: Any) -> str:
    """What a question says that it is for."""
    purpose = asked[3]["purpose"]
    return purpose if isinstance(purpose, str) else str(purpose.code)


@pytest.mark.nightly
@given(raw=some_cases)
@settings(max_examples=20)
def test_a_case_contributes_by_itself_and_within_the_bound(raw: list[Any]) -> None:
    """The complete case is in every log so that its columns have their types."""
    assert {code_of(asked) for asked in QUESTIONS} == {
        *("attributes-recorded-where", "attributes-recorded-otherwise", "values-with-each-activity", "stays-as-it-was"),
        *("values-by-case", "decimals-of", "values-by-other", "values-by-other-per-event"),
    }
    for asked in QUESTIONS:
        always = exact(log_of([COMPLETE]), asked)
        alone = [exact(log_of([COMPLETE, case]), asked) - always for case in raw]
        assert np.array_equal(exact(log_of([COMPLETE, *raw]), asked), always + sum(alone))
        assert all(np.abs(one).sum() <= asked[2] * asked[3].get("resolution", 1) for one in alone)


TIMED = questions(
    slow_and_fast(2_000, seed=1),
    attributes=["slow", "ward"],
    epsilon=20,
    times="0.2",
    window="2024-01-01..2025-01-01",
    domain=Domain(attributes={"slow": ("yes", "no"), "ward": ("north", "south")}),
)
hours_of_events = st.lists(st.one_of(st.none(), st.integers(-50, 9_000)), max_size=5)


def at_hours(cases: list[tuple[str | None, list[int | None]]]) -> EventLog:
    """Cases of a value and of the hours of their events, from the start of 2024 on."""
    flat = [(i, at) for i, (_, times) in enumerate(cases) for at in times]
    times = [None if at is None else 1_704_067_200_000_000 + at * HOUR for _, at in flat]
    events = {
        "case:index": pa.array([i for i, _ in flat], pa.int64()),
        "event:index": pa.array(range(len(flat)), pa.int64()),
        "concept:name": pa.array(["in"] * len(flat), pa.string()),
        "time:timestamp": pa.array(times, pa.int64()).cast(TIMESTAMP_TYPE),
    }
    table = {name: pa.array([value for value, _ in cases], pa.string()) for name in ("slow", "ward")}
    table["concept:name"] = pa.array([str(i) for i in range(len(cases))])
    return EventLog(pa.table(events), pa.table(table))


@pytest.mark.nightly
@given(st.lists(st.tuples(st.sampled_from(["yes", "south", None]), hours_of_events), min_size=1, max_size=6))
@settings(max_examples=50)
def test_a_case_adds_to_one_cell_of_a_table_with_its_times(raw: list[tuple[str | None, list[int | None]]]) -> None:
    tables = [asked for asked in TIMED if code_of(asked) == "values-by-other"]
    assert {asked[3]["purpose"].values["name_2"].split()[0] for asked in tables} == {"duration", "start"}
    complete: tuple[str | None, list[int | None]] = ("yes", [0, 2])
    for asked in tables:
        always = exact(at_hours([complete]), asked)
        alone = [exact(at_hours([complete, case]), asked) - always for case in raw]
        assert np.array_equal(exact(at_hours([complete, *raw]), asked), always + sum(alone))
        assert all(np.abs(one).sum() <= asked[2] * asked[3].get("resolution", 1) for one in alone)
        assert always.sum() == asked[3].get("resolution", 1)
