"""Rules on attributes: conditions of all types, and values exchanged to obey them."""

import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from veilog.logs.eventlog import TIMESTAMP_TYPE
from veilog.rules.attributes import AttributeRule, AttributeTable, ColumnValues, ValueCondition, number_in

DAY = 86_400_000_000


def condition(text: str) -> ValueCondition:
    found = ValueCondition.of(text)
    assert found is not None
    return found


def holds(text: str, **columns: Any) -> list[bool | None]:
    """Return the truth of a condition for each row; None without a value."""
    values = {name: ColumnValues.of(pa.array(column)) for name, column in columns.items()}
    known, true = condition(text).holds(values.__getitem__)
    return [bool(t) if k else None for k, t in zip(known, true, strict=True)]


@pytest.mark.parametrize(
    ("text", "column", "found"),
    [
        ("x < 18", [17, 18, None], [True, False, None]),
        ("x <= 18", [17.5, 18.0, 18.5], [True, True, False]),
        ("x > 18", [18, 19], [False, True]),
        ("x >= 18", [17, 18], [False, True]),
        ("x = 1..5", [0, 1, 5, 6], [False, True, True, False]),
        ("x = ..5", [-9, 6], [True, False]),
        ("x = 5..", [4, 9], [False, True]),
        ("x = A|B C", ["A", "B C", "D", None], [True, True, False, None]),
        ("x != A", ["A", "B", None], [False, True, None]),
        ("x = 3", [3, 4], [True, False]),
        ("x = true", [True, False, None], [True, False, None]),
        ("x < 18", ["17", "20", "none"], [True, False, None]),
        ("x >= 2024-03-01", [datetime.datetime(2024, 2, 1), datetime.datetime(2024, 4, 1)], [False, True]),
        ("x < 2024-03-01", [datetime.date(2024, 2, 1), None], [True, None]),
    ],
)
def test_a_condition_holds_of_values(text: str, column: list[Any], found: list[bool | None]) -> None:
    assert holds(text, x=column) == found


def test_values_of_two_attributes_are_compared() -> None:
    assert holds("x <= y", x=[1, 2, 3, None], y=[2, 2, 2, 2]) == [True, True, False, None]
    assert holds("x > y", x=[1, 2, 3], y=[2, 2, 2]) == [False, False, True]


def test_values_of_dictionaries_are_texts() -> None:
    column = pa.chunked_array([pa.array(["A", None]).dictionary_encode(), pa.array(["B"]).dictionary_encode()])
    known, among = ColumnValues.of(column).among(["B"])
    assert known.tolist() == [True, False, True] and among.tolist() == [False, False, True]


@pytest.mark.parametrize("text", ["age", "age <", "= 3", "age = ..", "age = a..b"])
def test_what_states_no_condition_is_none(text: str) -> None:
    assert ValueCondition.of(text) is None


def test_numbers_and_dates_are_read() -> None:
    assert number_in("1e3") == 1000
    assert number_in("1970-01-02") == DAY
    assert number_in("ward") is None


def table(**of_cases: Any) -> AttributeTable:
    """Return cases of two events, A and B."""
    number = len(next(iter(of_cases.values())))
    return AttributeTable(
        np.repeat(np.arange(number), 2),
        ("A", "B"),
        np.tile([0, 1], number),
        np.arange(number) * DAY,
        {name: pa.array(column) for name, column in of_cases.items()},
        {},
    )


def test_exchanged_values_break_no_rule_and_stay_as_frequent() -> None:
    rng = np.random.default_rng(1)
    ward = np.where(rng.random(400) < 0.2, "P", "S").tolist()
    age = rng.integers(0, 100, 400)
    rules = [
        AttributeRule(condition("age < 30"), condition("ward = P")),
        AttributeRule(condition("age >= 5"), condition("ward = S")),
    ]
    made = table(ward=ward, age=age)
    columns = made.redrawn(rules, rng)
    assert set(columns) == {"age"}
    found = columns["age"].to_numpy()
    assert sorted(found.tolist()) == sorted(age.tolist())
    assert all((a < 30) if w == "P" else (a >= 5) for a, w in zip(found, ward, strict=True))
    assert (found == age).mean() > 0.5


def test_values_that_cannot_be_exchanged_are_drawn_from_those_that_fit_and_else_missing() -> None:
    made = table(age=[70] * 9 + [10])
    (column,) = made.redrawn([AttributeRule(condition("age < 18"))], np.random.default_rng(1)).values()
    assert set(column.to_pylist()) <= {10, None} and column.to_pylist().count(10) > 1
    made = table(age=[70] * 5)
    (column,) = made.redrawn([AttributeRule(condition("age < 18"))], np.random.default_rng(1)).values()
    assert column.to_pylist() == [None] * 5


def test_nothing_is_changed_where_all_rules_hold() -> None:
    made = table(age=[1, 2, 3])
    assert made.redrawn([AttributeRule(condition("age < 18"))], np.random.default_rng(1)) == {}


def test_exchanged_dates_keep_their_distance_from_the_start_of_the_case() -> None:
    """A date that is given to another case moves with that case's start."""
    off = np.array([-5, 1, -7, -9] * 10)
    births = (np.arange(40) + off) * DAY
    admissions = np.arange(40) * DAY
    made = table(
        birth=pa.array(births, pa.int64()).cast(TIMESTAMP_TYPE),
        admission=pa.array(admissions, pa.int64()).cast(TIMESTAMP_TYPE),
    )
    columns = made.redrawn([AttributeRule(condition("birth <= admission"))], np.random.default_rng(2))
    moved = columns["birth"].cast(pa.int64())
    kept = np.array([np.nan if value is None else value for value in moved.to_pylist()])
    distances = (kept - admissions) / DAY
    assert not (distances > 0).any()
    assert set(distances[~np.isnan(distances)].tolist()) <= {-5.0, -7.0, -9.0, 1.0}


def test_a_rule_at_an_activity_is_about_its_events_or_the_cases_that_have_it() -> None:
    events = {"dose": pa.array([99, 5, 1, 500, 99, None])}
    made = AttributeTable(
        np.array([0, 0, 1, 1, 2, 2]), ("A", "B"), np.array([0, 1] * 3), np.zeros(3, dtype=int), {}, events
    )
    rule = AttributeRule(condition("dose < 50"), activity="B")
    assert made.broken(rule).tolist() == [False, False, False, True, False, False]
    assert made.cases_breaking(rule).tolist() == [1]
    of_case = AttributeTable(
        np.array([0, 1]), ("A", "B"), np.array([0, 1]), np.zeros(2, dtype=int), {"age": pa.array([99, 99])}, {}
    )
    assert of_case.broken(AttributeRule(condition("age < 50"), activity="B")).tolist() == [False, True]


def test_a_rule_of_an_event_and_its_case_changes_the_event() -> None:
    made = AttributeTable(
        np.repeat(np.arange(20), 2),
        ("A", "B"),
        np.tile([0, 1], 20),
        np.zeros(20, dtype=int),
        {"most": pa.array([5, 50] * 10)},
        {"dose": pa.array([4, 40] * 20)},
    )
    rule = AttributeRule(condition("dose <= most"))
    columns = made.redrawn([rule], np.random.default_rng(3))
    assert set(columns) == {"dose"}
    for dose, most in zip(columns["dose"].to_pylist(), np.repeat([5, 50] * 10, 2).tolist(), strict=True):
        assert dose is None or dose <= most
