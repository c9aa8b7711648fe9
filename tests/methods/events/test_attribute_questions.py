"""Queries about attributes: each case adds alone, within the charged bound."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from event_questions import Asked, Choice, choices_heard, exact, heard, scores
from hypothesis import given, settings
from hypothesis import strategies as st
from logs_with_attributes import HOUR, log_of, released, slow_and_fast

from veilog import Domain
from veilog.logs.eventlog import TIMESTAMP_TYPE, EventLog


def questions(log: EventLog, **arguments: Any) -> tuple[list[Asked], list[Choice]]:
    """Return the sums and the choices of tables that a release queries."""
    with heard() as asked, choices_heard() as choices:
        released(log, seed=1, **arguments)
    return asked, choices


def priced(cases: int) -> EventLog:
    """Return cases whose prices go with colours; old cases are late."""
    rng, made = np.random.default_rng(3), []
    for i in range(cases):
        colours = ["red" if red else "green" for red in rng.random(2) < 0.5]
        asked = {"activity": "ask", "colour": colours[0], "price": 1.5 if colours[0] == "red" else 8.5}
        answered = {"activity": "answer", "colour": colours[1], "price": 1.5 if colours[1] == "red" else 8.5}
        made.append(({"kind": "new" if i % 3 else "old", "late": "no" if i % 3 else "yes"}, [asked, answered]))
    return log_of(made)


QUESTIONS, CHOICES = questions(
    priced(900),
    attributes=["colour", "kind", "late", "price"],
    epsilon=10,
    domain=Domain(attributes={"colour": ("red", "green"), "kind": ("new",), "late": ("yes", "no"), "price": (0, 10)}),
)
an_event = st.fixed_dictionaries(
    {
        "activity": st.sampled_from(["ask", "answer", "other"]),
        "colour": st.sampled_from(["red", "green", None]),
        "price": st.sampled_from([1.5, -3.0, 99.0, None]),
    }
)
some_cases = st.lists(
    st.tuples(
        st.fixed_dictionaries(
            {"kind": st.sampled_from(["new", "old", None]), "late": st.sampled_from(["yes", "no", None])}
        ),
        st.lists(an_event, max_size=9),
    ),
    min_size=1,
    max_size=6,
)
COMPLETE = ({"kind": "new", "late": "no"}, [{"activity": "ask", "colour": "red", "price": 1.5}])


def code_of(asked: Any) -> str:
    """Return the code of a query's purpose."""
    purpose = asked[3]["purpose"]
    return purpose if isinstance(purpose, str) else str(purpose.code)


@pytest.mark.nightly
@given(raw=some_cases)
@settings(max_examples=20)
def test_a_case_contributes_by_itself_and_within_the_bound(raw: list[Any]) -> None:
    """Every case adds alone and within the bound; a complete one sets the types."""
    assert {code_of(asked) for asked in QUESTIONS} == {
        *("attributes-recorded-where", "attributes-recorded-otherwise", "values-with-each-activity", "stays-as-it-was"),
        *("values-by-case", "values-of-events", "decimals-of", "values-by-other", "values-by-other-per-event"),
    }
    for asked in QUESTIONS:
        always = exact(log_of([COMPLETE]), asked)
        alone = [exact(log_of([COMPLETE, case]), asked) - always for case in raw]
        assert np.array_equal(exact(log_of([COMPLETE, *raw]), asked), always + sum(alone))
        assert all(np.abs(one).sum() <= asked[2] * asked[3].get("resolution", 1) for one in alone)


TIMED, TIMED_CHOICES = questions(
    slow_and_fast(2_000, seed=1),
    attributes=["slow", "ward"],
    epsilon=20,
    times="0.2",
    window="2024-01-01..2025-01-01",
    domain=Domain(attributes={"slow": ("yes", "no"), "ward": ("north", "south")}),
)
hours_of_events = st.lists(st.one_of(st.none(), st.integers(-50, 9_000)), max_size=5)


def at_hours(cases: list[tuple[str | None, list[int | None]]]) -> EventLog:
    """Return cases of a value and the hours of their events since January 2024."""
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


def apart_by_one(choice: Choice, log: EventLog, neighbour: EventLog, data: st.DataObject) -> None:
    """Assert that scores change by 1 at most, and that tables have one cell per case."""
    more_or_less = st.integers(-3, 9)
    expected = [
        np.array(data.draw(st.lists(more_or_less, min_size=len(table), max_size=len(table)))) for table in choice[1]
    ]
    less = data.draw(st.lists(more_or_less, min_size=len(expected), max_size=len(expected)))
    before, after = (scores(one, choice, expected, less) for one in (log, neighbour))
    assert np.abs(after - before).max() <= 1
    nothing, none = [np.zeros_like(table) for table in expected], [0] * len(expected)
    before, after = (scores(one, choice, nothing, none) for one in (log, neighbour))
    assert set((after - before).tolist()) <= {0, 1}


@pytest.mark.nightly
@given(raw=some_cases, data=st.data())
@settings(max_examples=60)
def test_a_case_changes_how_far_each_table_is_apart_by_one(raw: list[Any], data: st.DataObject) -> None:
    """Scores of random logs and tables change by 1 at most for one case more.

    The tables are those of a release: pairs of attributes, also of one that changes within cases, kinds of case, and
    the table that no case is in.
    """
    assert len(CHOICES) > 1 and max(len(expected) for _, expected, _ in CHOICES) > 3
    log, neighbour = log_of([COMPLETE, *raw[:-1]]), log_of([COMPLETE, *raw])
    apart_by_one(data.draw(st.sampled_from(CHOICES)), log, neighbour, data)


@pytest.mark.nightly
@given(
    raw=st.lists(st.tuples(st.sampled_from(["yes", "south", None]), hours_of_events), min_size=1, max_size=6),
    data=st.data(),
)
@settings(max_examples=60)
def test_a_case_changes_tables_with_its_times_by_one(
    raw: list[tuple[str | None, list[int | None]]], data: st.DataObject
) -> None:
    assert TIMED_CHOICES
    complete: tuple[str | None, list[int | None]] = ("yes", [0, 2])
    log, neighbour = at_hours([complete, *raw[:-1]]), at_hours([complete, *raw])
    apart_by_one(data.draw(st.sampled_from(TIMED_CHOICES)), log, neighbour, data)
