"""Arguments of another kind are taken where unambiguous, and else refused."""

import datetime
from typing import Any

import numpy as np
import pandas as pd
import pytest
from refusals import refused

import veilog
from veilog.logs.synthetic.hospital import ACTIVITIES, hospital

LOG = hospital(40, seed=1)


def planned(**more: Any) -> veilog.ReleaseRequest:
    return veilog.plan("evolve", **({"epsilon": 1, "activities": ACTIVITIES} | more))


@pytest.mark.slow
def test_whole_numbers_of_numpy_are_whole_numbers() -> None:
    found = planned(
        seed=np.int64(3), unit="person", max_cases=np.int32(2), domain=veilog.Domain(max_length=np.int64(9))
    )
    assert (found.seed, found.unit.most_cases, found.declared.max_length) == (3, 2, 9)
    assert {type(found.seed), type(found.unit.most_cases), type(found.declared.max_length)} == {int}
    assert len(veilog.benchmark(LOG, ["evolve"], epsilons=1, runs=np.int64(1))) == 1


WINDOWS: list[Any] = [
    (datetime.date(2024, 1, 1), datetime.date(2025, 1, 1)),
    ("2024-01-01", "2025-01-01"),
    "2024-01-01..2025-01-01",
    [np.datetime64("2024-01-01"), np.datetime64("2025-01-01T00:00")],
    np.array(["2024-01-01", "2025-01-01"], dtype="datetime64[ns]"),
    (pd.Timestamp("2024-01-01"), "2025-01-01T01:00+01:00"),
    (datetime.datetime(2024, 1, 1), datetime.datetime(2025, 1, 1, tzinfo=datetime.UTC)),
]


@pytest.mark.parametrize("window", WINDOWS)
def test_a_window_is_taken_as_it_is_written(window: Any) -> None:
    start, end = (datetime.datetime(year, 1, 1, tzinfo=datetime.UTC) for year in (2024, 2025))
    assert planned(times=0.3, window=window).wanted.window == (start, end)
    assert veilog.Domain(window=window).window == (start, end)


@pytest.mark.parametrize(
    "window", [3, "2024", "2024..", ("2024-01-01",), ("a", "b"), (pd.NaT, pd.NaT), (2024, 2025), {"a": 1}]
)
def test_what_is_no_window_is_refused_with_what_is(window: Any) -> None:
    with refused(veilog.ParameterError, "window-not-pair"):
        planned(times=0.3, window=window)


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"seed": True}, "disclosure-seed-invalid"),
    ({"seed": 1.0}, "disclosure-seed-invalid"),
    ({"unit": "person", "max_cases": True}, "unit-max-cases-invalid"),
    ({"unit": 3}, "unit-not-text"),
    ({"attributes": [1], "delta": "1e-6"}, "attributes-not-text"),
    ({"attributes": 5, "delta": "1e-6"}, "attributes-not-text"),
    ({"subset": 2024}, "subset-not-rule-value"),
    ({"subset": {"month": "2024-01"}}, "subset-not-rule-value"),
    ({"domain": list(ACTIVITIES)}, "domain-type-wrong"),
    ({"domain": {}}, "domain-type-wrong"),
    ({"activities": 16}, "domain-activities-not-collection"),
]


@pytest.mark.parametrize(("more", "said"), REFUSED)
def test_another_kind_of_thing_is_refused_in_words(more: dict[str, Any], said: str) -> None:
    with refused(veilog.ParameterError, said):
        planned(**more)


def test_other_calls_refuse_in_words_too() -> None:
    suggestion = veilog.suggest(LOG, epsilon=1, seed=1)
    calls: dict[str, Any] = {
        "domain-attributes-not-mapping": lambda: veilog.Domain(ACTIVITIES, attributes=["a"]),  # type: ignore[arg-type]
        "domain-not-values-or-range": lambda: veilog.Domain(attributes={"a": 3}),  # type: ignore[dict-item]
        "domain-type-wrong": lambda: veilog.suggest(LOG, epsilon=1, domain=[]),  # type: ignore[arg-type]
        "policies-not-mapping": lambda: veilog.read(LOG.to_pandas(), policies="x"),  # type: ignore[arg-type]
        "column-name-not-text": lambda: veilog.read(LOG.to_pandas(), lifecycle=3),  # type: ignore[arg-type]
        "audit-runs-not-whole": lambda: veilog.benchmark(LOG, runs="a"),  # type: ignore[arg-type]
        "benchmark-methods-not-names": lambda: veilog.benchmark(LOG, 16),  # type: ignore[arg-type]
        "benchmark-without-method": lambda: veilog.benchmark(LOG, []),
        "method-is-suggestion": lambda: veilog.release(LOG, suggestion),  # type: ignore[arg-type]
        "method-name-not-text": lambda: veilog.plan(3),  # type: ignore[arg-type]
    }
    for said, call in calls.items():
        with refused(veilog.ParameterError, said):
            call()


@pytest.mark.slow
def test_a_number_of_activities_that_is_not_what_is_declared_is_refused() -> None:
    with refused(veilog.ParameterError, "plan-activities-differ"):
        planned().expected(cases=100, length=5, activities=5)
    assert planned(activities="log").expected(cases=50, length=5, activities=5, twins=1).sizes.activities == 5
