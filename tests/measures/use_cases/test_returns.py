"""Returning persons: rates of return, cases per person and next kinds, by hand."""

from typing import Any

import pandas as pd
import pytest

import veilog
from veilog.logs.eventlog import EventLog
from veilog.measures.measure import Pair
from veilog.measures.use_cases import judge
from veilog.measures.use_cases.returns import _scores
from veilog.measures.use_cases.use_case import UseCaseOptions

BEGIN = pd.Timestamp("2024-01-01", tz="UTC")
Visit = tuple[str, str, float]
"""Person, activities and day of the start; each activity takes an hour."""


def log(visits: list[Visit]) -> EventLog:
    rows = [
        (f"c{number:05}", name, BEGIN + pd.Timedelta(days=day, hours=hour), person)
        for number, (person, names, day) in enumerate(visits)
        for hour, name in enumerate(names)
    ]
    return veilog.read(
        pd.DataFrame(rows, columns=["case:concept:name", "concept:name", "time:timestamp", "case:Patient"])
    )


def people(returning: int, others: int, gap: float = 10, after: str = "cd") -> list[Visit]:
    """So many persons who come back after so many days, and others who do not."""
    found: list[Visit] = []
    for person in range(returning):
        found += [(f"r{person}", "ab", person / 9), (f"r{person}", after, person / 9 + gap)]
    return [*found, *((f"o{person}", "ab", person / 7) for person in range(others))]


def scores(used: EventLog, judged: EventLog, **asked: Any) -> dict[str, float | None]:
    return dict(_scores(used, judged, UseCaseOptions(person="Patient", **asked)))


def test_equal_logs_are_no_distance_apart() -> None:
    real = log(people(60, 100))
    assert scores(real, real) == dict.fromkeys(
        ("return_rate", "return_rate_by_kind", "cases_per_person", "next_kind"), 0.0
    )


def test_rates_are_of_all_cases_and_by_kind() -> None:
    """60 of 220 cases return, all of a kind with 160; in the release 80 of 240."""
    found = scores(log(people(80, 80)), log(people(60, 100)))
    assert found["return_rate"] == pytest.approx(80 / 240 - 60 / 220)
    assert found["return_rate_by_kind"] == pytest.approx((80 / 160 - 60 / 160) * 160 / 220)
    assert found["cases_per_person"] == pytest.approx(80 / 160 - 60 / 160)
    assert found["next_kind"] == 0


@pytest.mark.parametrize(("days", "rate"), [(30.0, 0.0), (9.0, 0.0), (10.5, 60 / 220)])
def test_only_returns_within_the_days_count(days: float, rate: float) -> None:
    found = scores(log(people(60, 100, gap=40)), log(people(60, 100)), return_days=days)
    assert found["return_rate"] == pytest.approx(60 / 220 if days == 30 else rate)


def test_the_gap_begins_where_a_case_ends() -> None:
    """The gap of ten days and an hour begins at a case's last event, not at its first."""
    real = log(people(60, 100, gap=10 + 2 / 24))
    assert scores(real, log(people(0, 160)), return_days=10 + 0.9 / 24)["return_rate"] == 0
    assert scores(real, log(people(0, 160)), return_days=10 + 1.1 / 24)["return_rate"] == pytest.approx(60 / 220)


def test_next_cases_of_another_kind_are_apart() -> None:
    found = scores(log(people(60, 100, after="ab")), log(people(60, 100)))
    assert found["next_kind"] == pytest.approx(1.0)


def test_a_release_without_persons_or_an_original_without_a_column_is_not_judged() -> None:
    real = log(people(60, 100))
    without = EventLog(real.events, real.cases.drop_columns(["Patient"]), real.metadata)
    for original, person, code in (
        (real, "Patient", "returns-without-persons"),
        (without, False, "returns-persons-unknown"),
    ):
        found = judge(Pair(original, without), ["returns"], UseCaseOptions(person=person))["returns"]
        assert found.grade == "not judged" and [getattr(reason, "code", "") for reason in found.reasons] == [code]


@pytest.mark.slow
def test_it_is_beside_halves_of_the_persons_and_shows_up_in_a_comparison() -> None:
    real = log(people(60, 100))
    found = veilog.compare(real, real, use_cases="returns", asked=UseCaseOptions(person="Patient"), models=False)
    numbers = found.use_cases["returns"].aspects
    assert numbers["return_rate"].value == 0 and 0 < (numbers["return_rate"].sample or 0) < 0.2
    assert found.use_cases["returns"].grade == "good"
