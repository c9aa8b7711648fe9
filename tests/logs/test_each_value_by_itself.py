"""A value's meaning follows from it alone: rare dates and objects of pandas."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from refusals import refused

import veilog
from veilog.errors import InputError
from veilog.logs.eventlog import ACTIVITY, CASE_INDEX, EventLog
from veilog.logs.tables.cells import read_times, whole_numbers
from veilog.privacy.persons import owners

NOON = datetime.datetime(2024, 3, 1, 12, tzinfo=datetime.UTC)
DOUBTFUL = ("5/6.2024 10:00", "5-6.2024", "\u00a05/6/2024 10:00", "\u20035-6-2024", "\u00a05/6.2024")


@pytest.mark.parametrize("date", DOUBTFUL)
@pytest.mark.parametrize("other", ["12/25/2024", "25/12/2024", "2024-12-25"])
def test_another_date_does_not_say_which_number_is_the_day(tmp_path: Path, date: str, other: str) -> None:
    path = tmp_path / "log.csv"
    path.write_text(f"case,activity,time\nc,a,{date}\nx,a,{other}\n", encoding="utf-8")
    for read in (veilog.read, veilog.read_variants):
        with refused(InputError, "date-order-seems-day-first", "date-order-seems-month-first", "date-order-unclear"):
            read(path)
    assert veilog.read(path, time_format="dd/mm/yyyy" if other[0] == "2" else "mm/dd/yyyy").variants.cases == 2


@pytest.mark.parametrize("date", DOUBTFUL)
def test_a_date_in_doubt_is_read_as_was_declared(date: str) -> None:
    for order, month in (("day first", 6), ("month first", 5)):
        times = read_times(pa.array([date, "2024-01-01"]), "time", None, order)
        assert times.known.all()
        assert datetime.datetime.fromtimestamp(times.micros[0] / 1e6, datetime.UTC).month == month


@pytest.mark.parametrize("other", ["12/25/2024", "2024-12-25"])
def test_the_time_of_a_second_column_is_in_doubt_whatever_the_first_ones_are(tmp_path: Path, other: str) -> None:
    path = tmp_path / "log.csv"
    path.write_text(f"case,activity,date,time\nc,a,,5/6/2024 10:00\nx,a,{other},10:00\n")
    for read in (veilog.read, veilog.read_variants):
        with refused(InputError, "date-order-seems-day-first", "date-order-seems-month-first", "date-order-unclear"):
            read(path)


def frame(*rows: tuple[str, Any, Any, Any]) -> pd.DataFrame:
    """Rows with a case, an activity, an index and a patient, all of them objects."""
    columns = zip(*rows, strict=True)
    named = dict(zip(("case", "activity", "event:index", "patient"), columns, strict=True))
    found = {name: pd.Series(values, dtype=object) for name, values in named.items()}
    return pd.DataFrame({**found, "time": [NOON] * len(rows)})


def traces(log: EventLog) -> dict[str, list[str]]:
    names = log.cases[ACTIVITY].to_pylist()
    told: dict[str, list[str]] = {name: [] for name in names if name != "x"}
    for case, activity in zip(log.events[CASE_INDEX].to_pylist(), log.events[ACTIVITY].to_pylist(), strict=True):
        if names[case] != "x":
            told[names[case]].append(activity)
    return told


NANOSECONDS = 1_700_000_000_000_000_000


@pytest.mark.parametrize("policy", ["keep", "drop"])
@pytest.mark.parametrize("other", ["first", 2**70, None, 1.5, True, Decimal(1)])
@pytest.mark.parametrize("least", [1, NANOSECONDS, -NANOSECONDS, 2**63 - 3])
def test_an_index_of_another_kind_takes_that_of_no_other_case(least: int, other: Any, policy: str) -> None:
    rows = [("c", "second", least + 2, None), ("c", "first", least + 1, None)]
    for more in ([], [("x", "a", other, None)]):
        log = veilog.read(frame(*rows, *more), policies={"bad-value": policy})
        assert traces(log) == {"c": ["first", "second"]}, more


def test_whole_numbers_of_64_bits_are_so_in_text_as_well() -> None:
    numbers = [0, 7, -7, NANOSECONDS, 2**63 - 1, -(2**63), -(2**63) + 1]
    beyond = [str(2**63), str(-(2**63) - 1), "1" * 20, "+7", "07", "-0", "", "7.0", None]
    found = whole_numbers(pa.chunked_array([[*map(str, numbers), *beyond]]))
    assert found is not None
    assert found[0][: len(numbers)].tolist() == numbers
    assert found[1].tolist() == [True] * len(numbers) + [False] * len(beyond)


@pytest.mark.parametrize("other", [1.5, "a", True, Decimal("1.5")])
def test_an_activity_that_is_a_number_is_called_the_same_beside_any_other(other: Any) -> None:
    for number in (2**53, 2**53 - 1, 2**60, Decimal("7.0")):
        rows = [("c", number, 1, None)]
        alone, beside = (traces(veilog.read(frame(*rows, *more))) for more in ([], [("x", other, 1, None)]))
        assert alone == beside, number


EQUAL = [
    (Decimal("12345678901234567890"), Decimal("12345678901234567891"), False),
    (Decimal("1234567890123456789"), Decimal("1234567890123456789.0"), True),
    (Decimal("7"), Decimal("7.0"), True),
    (Decimal("0.3"), Decimal("0.30"), True),
    (Decimal("7"), Decimal("7.5"), False),
    ([1], [1.0], False),
    ({"a": 1}, {"a": 1.0}, False),
    (b"a", b"a", True),
    (datetime.timedelta(days=1), datetime.timedelta(days=1), True),
]


@pytest.mark.parametrize(("one", "other", "equal"), EQUAL)
@pytest.mark.parametrize(
    "third", [None, Decimal("1.5"), Decimal("1e30"), Decimal("0." + "0" * 40 + "1"), ["x"], {"b": "x"}, "x", 2]
)
def test_whether_two_objects_are_of_one_person_follows_from_no_third(
    one: Any, other: Any, equal: bool, third: Any
) -> None:
    rows = [(f"c{i}", "a", 1, person) for i, person in enumerate((one, other, third))]
    found = owners(veilog.read(frame(*rows)), "patient").named.to_pylist()
    assert found[0] is not None
    assert (found[0] == found[1]) is equal


def test_a_decimal_that_is_no_number_names_nobody() -> None:
    for third in (Decimal(1), "x"):
        rows = [(f"c{i}", "a", 1, person) for i, person in enumerate((Decimal("NaN"), third))]
        assert owners(veilog.read(frame(*rows)), "patient").named.to_pylist()[0] is None
