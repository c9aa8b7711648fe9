"""Event logs count cases without events, keep all columns, and have statistics."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest
from refusals import refused

from veilog.errors import InputError, ParameterError
from veilog.logs.eventlog import (
    ACTIVITY,
    CASE,
    CASE_INDEX,
    EVENT_INDEX,
    LABEL_TYPE,
    TIMESTAMP,
    TIMESTAMP_TYPE,
    EventLog,
)


def small_log(**more: list) -> EventLog:
    events = {
        CASE_INDEX: pa.array([0, 0, 2], pa.int64()),
        EVENT_INDEX: pa.array([0, 1, 2], pa.int64()),
        ACTIVITY: pa.array(["a", "b", "a"]).dictionary_encode(),
        TIMESTAMP: pa.array([0, 60_000_000, None], pa.int64()).cast(TIMESTAMP_TYPE),
        "lifecycle:transition": pa.array(["start", "complete", None]),
    }
    return EventLog(
        pa.table(events | {name: pa.array(values) for name, values in more.items()}),
        pa.table({ACTIVITY: ["x", "nothing happened", "y"], "age": pa.array([1, 2, 3])}),
    )


def test_a_case_without_events_is_the_empty_variant() -> None:
    assert small_log().offsets.tolist() == [0, 2, 2, 3]
    assert small_log().variants.to_dict() == {(): 1, ("a",): 1, ("a", "b"): 1}


def test_a_classifier_joins_its_values_with_plus() -> None:
    variants = small_log().variants_by((ACTIVITY, "lifecycle:transition"))
    assert variants.to_dict() == {(): 1, ("a+",): 1, ("a+start", "b+complete"): 1}


def test_an_unknown_classifier_is_refused_with_what_there_is() -> None:
    with refused(ParameterError, "log-event-attribute-missing"):
        small_log().variants_by(("org:role",))


def test_statistics_count_what_the_log_holds() -> None:
    found = small_log().statistics
    assert (found.cases, found.events, found.activities, found.variants, found.uniqueness) == (3, 3, 2, 3, 1.0)
    assert (found.length_min, found.length_median, found.length_mean, found.length_max) == (0, 1.0, 1.0, 2)
    assert (found.start, found.end) == ("1970-01-01T00:00:00+00:00", "1970-01-01T00:01:00+00:00")
    assert found.to_json()["length"] == {"min": 0, "median": 1.0, "mean": 1.0, "max": 2}


def test_a_log_without_cases_has_statistics_too() -> None:
    kinds = {CASE_INDEX: pa.int64(), EVENT_INDEX: pa.int64(), ACTIVITY: LABEL_TYPE, TIMESTAMP: TIMESTAMP_TYPE}
    log = EventLog(pa.schema(kinds).empty_table(), pa.schema({ACTIVITY: pa.string()}).empty_table())
    assert log.statistics.to_json()["cases"] == 0
    assert log.statistics.start is None
    assert len(log.variants) == 0
    assert log.to_arrow().num_rows == 0


def test_the_flat_table_repeats_case_attributes_on_every_event() -> None:
    assert small_log().to_arrow().to_pylist() == [
        {
            CASE: name,
            ACTIVITY: activity,
            TIMESTAMP: None if minute is None else datetime(1970, 1, 1, 0, minute, tzinfo=UTC),
            "lifecycle:transition": step,
            "case:age": age,
        }
        for name, activity, minute, step, age in (
            ("x", "a", 0, "start", 1),
            ("x", "b", 1, "complete", 1),
            ("y", "a", None, None, 3),
        )
    ]


def test_an_event_attribute_called_like_a_case_attribute_does_not_overwrite_it() -> None:
    table = small_log(**{"case:age": [7, 8, 9], CASE: ["p", "q", "r"]}).to_arrow()
    assert table["case:age"].to_pylist() == [1, 1, 3]
    assert table["event:case:age"].to_pylist() == [7, 8, 9]
    assert table[CASE].to_pylist() == ["x", "x", "y"]
    assert table[f"event:{CASE}"].to_pylist() == ["p", "q", "r"]


def test_the_flat_table_keeps_what_fields_say_about_xes() -> None:
    log = small_log()
    field = pa.field("cost", pa.float64(), metadata={"xes:type": "float"})
    events = log.events.append_column(field, [[1.0, 2.0, 3.0]])
    assert EventLog(events, log.cases).to_arrow().schema.field("cost").metadata == {b"xes:type": b"float"}


def test_pandas_gets_plain_columns_with_time_zone() -> None:
    frame = small_log().to_pandas()
    assert frame[CASE].tolist() == ["x", "x", "y"]
    assert str(frame[TIMESTAMP].dt.tz) == "UTC"
    assert frame[ACTIVITY].dtype != "category"


@pytest.mark.parametrize("missing", [CASE_INDEX, EVENT_INDEX, ACTIVITY, TIMESTAMP])
def test_events_need_their_canonical_columns(missing: str) -> None:
    log = small_log()
    with pytest.raises(InputError, match=missing):
        EventLog(log.events.drop_columns([missing]), log.cases)


def test_cases_need_names() -> None:
    log = small_log()
    with refused(InputError, "cases-column-missing"):
        EventLog(log.events, log.cases.drop_columns([ACTIVITY]))
