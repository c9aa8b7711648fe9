"""Verdicts cover control flow, times and attributes, each by its own error."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from refusals import sentence

import veilog
from veilog._language import share_in_percent
from veilog.logs.eventlog import TIMESTAMP, EventLog
from veilog.logs.synthetic.hospital import hospital
from veilog.measures.comparison import STEPS, Verdict, judged, worst_of
from veilog.measures.measure import Pair

CASES = 2500
LOG = hospital(CASES, seed=1)


def lasting(hours: np.ndarray, log: EventLog = LOG) -> EventLog:
    """The log with cases that last so long."""
    times = log.events.column(TIMESTAMP).cast(pa.int64()).to_numpy()
    lengths = np.diff(log.offsets)
    place = np.arange(len(times)) - np.repeat(log.offsets[:-1], lengths)
    share = place / np.maximum(np.repeat(lengths, lengths) - 1, 1)
    made = np.repeat(times[log.offsets[:-1]], lengths) + (share * np.repeat(hours, lengths) * 3.6e9).astype(np.int64)
    column = log.events.column_names.index(TIMESTAMP)
    field = log.events.schema.field(TIMESTAMP)
    return replace(log, events=log.events.set_column(column, field, pa.array(made).cast(field.type)))


def in_and_out(seed: int) -> np.ndarray:
    """Return hours of 80 % outpatients (to 4 hours) and 20 % inpatients (2 to 8 days)."""
    rng = np.random.default_rng(seed)
    return np.where(rng.random(CASES) < 0.8, rng.uniform(1 / 3, 4, CASES), rng.uniform(48, 192, CASES))


HOURS = in_and_out(1)
TIMED = lasting(HOURS)


def shortened(share: float) -> np.ndarray:
    """The hours with so much of the long cases as short as the others."""
    rng = np.random.default_rng(2)
    chosen = (HOURS > 24) & (rng.random(CASES) < share)
    return np.where(chosen, rng.uniform(1 / 3, 4, CASES), HOURS)


def times_of(released: EventLog) -> Verdict:
    return judged(Pair(TIMED, released), 1.0)["times"]


@pytest.mark.parametrize(
    ("hours", "error", "grade"),
    [
        (HOURS, 0.0, "close"),
        (in_and_out(3), 0.05, "close"),
        (1.1 * HOURS, 0.11, "close"),
        (1.2 * HOURS, 0.21, "usable"),
        (1.3 * HOURS, 0.32, "rough"),
        (shortened(0.1), 0.09, "close"),
        (shortened(0.5), 0.48, "rough"),
        (shortened(1.0), 0.97, "noise"),
    ],
)
def test_the_grade_of_times_follows_the_durations(hours: np.ndarray, error: float, grade: str) -> None:
    found = times_of(lasting(hours))
    assert abs(found.error - error) < 0.015, found
    assert found.grade == grade, found


@pytest.mark.nightly
def test_a_hospital_whose_times_are_noise_is_not_close() -> None:
    """Mean stays of a fifth of the true ones make the grade of a release "noise"."""
    result = veilog.compare(TIMED, lasting(np.minimum(HOURS, 4)), models=False)
    assert result.verdicts["control_flow"].grade == "close" and result.relative_log_similarity == 1
    assert result.verdicts["times"].grade == result.grade == "noise"
    told = result.to_json()
    assert told["grade"] == "noise" and told["verdicts"]["times"]["grade"] == "noise"  # type: ignore[index, call-overload]
    off = share_in_percent(result.verdicts["times"].error)
    assert sentence("verdict-times", grade="noise", off=off) in result.verdict.split(". ")[0]
    assert sentence("likeness-close", number="1.00") not in result.verdict


@pytest.mark.nightly
def test_a_release_whose_small_budget_drowns_the_times_is_no_better_than_they_are() -> None:
    """Epsilon 0.5 for a person with three cases, 0.3 of it for times; seed 1."""
    released = veilog.release(TIMED, "evolve", epsilon=0.5 / 3, times=0.3, activities="log", seed=1)
    result = veilog.compare(TIMED, released, models=False)
    assert set(result.verdicts) == {"control_flow", "times"}
    assert result.grade == worst_of(result.verdicts)
    true, made = (found.mean for found in (result.case_durations.original, result.case_durations.released))  # type: ignore[union-attr]
    assert result.verdicts["times"].error >= round(abs(true - made) / max(true, made), 4) - 1e-4
    assert result.grade != "close"


def test_attributes_are_judged_by_the_worst_that_was_released() -> None:
    ages = LOG.cases.column("age group").to_pylist()
    place = LOG.cases.column_names.index("age group")
    field = LOG.cases.schema.field("age group")
    wrong = replace(LOG, cases=LOG.cases.set_column(place, field, pa.array([ages[0]] * CASES).cast(field.type)))
    found = judged(Pair(LOG, wrong), 1.0)["attributes"]
    assert found.of == "case:age group" and found.error == pytest.approx(1 - ages.count(ages[0]) / CASES, abs=0.01)
    assert judged(Pair(LOG, LOG), 1.0)["attributes"].error == 0
    lacking = replace(LOG, cases=LOG.cases.drop_columns(["age group"]))
    assert judged(Pair(LOG, lacking), 1.0)["attributes"].grade == "close", "what was not released is not judged"


def test_variants_alone_are_judged_by_their_control_flow() -> None:
    assert set(judged(Pair(LOG.variants, LOG.variants), 1.0)) == {"control_flow"}
    assert [Verdict.by(most).grade for most in (0.0, 0.15, 0.16, 0.3, 0.31, 0.5, 0.51)] == [
        "close", "close", "usable", "usable", "rough", "rough", "noise",
    ]  # fmt: skip
    assert list(STEPS) == ["close", "usable", "rough", "noise"]
    assert worst_of({}) is None


@pytest.mark.slow
def test_a_similarity_stands_with_the_cases_that_it_is_of() -> None:
    """A similarity of six released cases for 2,500 names both numbers."""
    few = LOG.variants.with_counts(np.minimum(LOG.variants.counts, np.arange(len(LOG.variants)) < 6))
    result = veilog.compare(LOG.variants, few, models=False)
    line = next(line for line in result.lines() if line.measure == "relative_log_similarity")
    for text in (line.meaning, result.verdict.split("The")[1]):
        assert f"{few.cases}" in text and "2,500" in text
    assert "2,500" in str(result.to_frame().set_index("measure").meaning["relative_log_similarity"])
