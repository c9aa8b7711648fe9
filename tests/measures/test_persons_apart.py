"""Persons of the cases: the likeliest column, and parts without a common person."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from veilog.errors import ParameterError
from veilog.logs.eventlog import ACTIVITY, CASE_INDEX, EVENT_INDEX, TIMESTAMP, TIMESTAMP_TYPE, EventLog
from veilog.measures.comparison import compare
from veilog.measures.measure import Log, Pair
from veilog.measures.persons import check_apart, person_of
from veilog.measures.singling_out import halves
from veilog.measures.use_cases import Metric, UseCase, UseCaseOptions, judge
from veilog.measures.use_cases.sides import Splits, split
from veilog.report.dossier import dossier

Parts = Callable[[EventLog, float, int], tuple[EventLog, EventLog]]


def visits(people: list[str | None], names: list[str] | None = None) -> EventLog:
    """Return a case of one event for each of these people; None is a case without one."""
    cases = len(people)
    events = {
        CASE_INDEX: pa.array(range(cases), pa.int64()),
        EVENT_INDEX: pa.array(range(cases), pa.int64()),
        ACTIVITY: pa.array(["a", "b", "c"] * cases, pa.string())[:cases].dictionary_encode(),
        TIMESTAMP: pa.array([None] * cases, TIMESTAMP_TYPE),
    }
    named = pa.array(names or [f"{i:04}" for i in range(cases)])
    return EventLog(pa.table(events), pa.table({ACTIVITY: named, "Patient": pa.array(people, pa.string())}))


def held_out(log: EventLog, share: float, seed: int) -> tuple[EventLog, EventLog]:
    first, second = split(log, share, seed, person="Patient")
    assert isinstance(first, EventLog) and isinstance(second, EventLog)
    return first, second


def halved(log: EventLog, _share: float, seed: int) -> tuple[EventLog, EventLog]:
    first, second = halves(log, seed, person="Patient")
    assert isinstance(first, EventLog) and isinstance(second, EventLog)
    return first, second


def names(log: EventLog) -> list[str]:
    return log.cases.column(ACTIVITY).to_pylist()  # type: ignore[no-any-return]


def numbers(log: object) -> list[int]:
    assert isinstance(log, EventLog)
    return [int(name) for name in names(log)]


PEOPLE = st.lists(st.one_of(st.none(), st.integers(0, 12).map(str)), min_size=2, max_size=60).filter(
    lambda people: None in people or len({*people}) > 1
)


@pytest.mark.slow
@pytest.mark.parametrize("parts", [held_out, halved])
@given(people=PEOPLE, share=st.floats(0.05, 0.95), seed=st.integers(0, 9))
def test_nobody_is_on_both_sides_and_each_has_about_its_share(
    parts: Parts, people: list[str | None], share: float, seed: int
) -> None:
    log = visits(people)
    if people.count(None) + len({*people} - {None}) < 2:
        with refused(ParameterError, "control-of-one-person", "control-without-people"):
            parts(log, share, seed)
        return
    first, second = parts(log, share, seed)
    assert sorted([*names(first), *names(second)]) == names(log)
    assert first.number_of_cases and second.number_of_cases
    one, other = ({*side.cases.column("Patient").to_pylist()} - {None} for side in (first, second))
    assert not one & other
    # As near as whole people can be: one more or less would be as far off, but for one person on each side.
    most = max((people.count(person) for person in people if person is not None), default=1)
    wanted = (0.5 if parts is halved else share) * len(people)
    assert abs(first.number_of_cases - wanted) <= most


@pytest.mark.parametrize("parts", [held_out, halved])
def test_who_is_on_which_side_does_not_depend_on_the_order_of_rows(parts: Parts) -> None:
    log = visits([f"p{i // 3}" if i % 7 else None for i in range(60)])
    mixed = log.only(np.random.default_rng(3).permutation(60))
    assert sorted(names(parts(mixed, 0.7, 1)[0])) == sorted(names(parts(log, 0.7, 1)[0]))


def test_without_persons_a_split_and_halves_are_what_they_were() -> None:
    """Published rows stand on these."""
    log, told = visits([None] * 10), visits([f"p{i // 2}" for i in range(10)])
    assert person_of(log) is None and person_of(told) == "Patient"
    for parts in (split(log, 0.7), split(told, 0.7)):
        assert [numbers(part) for part in parts] == [[0, 1, 2, 4, 5, 7, 8], [3, 6, 9]]
    for parts in (halves(log, 3), halves(told, 3, person=False)):
        assert [numbers(half) for half in parts] == [[1, 4, 5, 6, 7], [0, 2, 3, 8, 9]]


def test_halves_are_of_people_where_a_column_seems_to_tell_them() -> None:
    log = visits([f"p{i // 3}" for i in range(60)])
    assert person_of(log) == "Patient" and person_of(log.variants) is None
    for seed in range(5):
        one, other = ({i // 3 for i in numbers(half)} for half in halves(log, seed))
        assert len(one) == len(other) == 10 and not one & other


@pytest.mark.parametrize("needs", ["variants", "whole logs", "either"])
def test_a_purpose_learns_of_nobody_on_whom_it_is_judged(needs: str) -> None:
    """A use case never learns from the persons on whom it is judged.

    Each person has an activity of their own, which only a split of cases could have seen before.
    """
    people = [f"p{i // 3}" for i in range(60)]
    log = visits([*people])
    events = log.events.set_column(2, ACTIVITY, pa.array(people).dictionary_encode())
    log = EventLog(events, log.cases, log.metadata)

    def common(used: Log, judged: Log, asked: UseCaseOptions) -> dict[str, float | None]:
        assert asked.person == "Patient"
        one, other = ({*(log.variants if isinstance(log, EventLog) else log).labels} for log in (used, judged))
        return {"common": len(one & other)}

    aspect = Metric("common", "common", "what both have", "higher", chief=True)
    purpose = UseCase("common", "common", (aspect,), common, needs=needs, held_out=True)  # type: ignore[arg-type]
    judged = purpose.judged(Splits(Pair(log, log), "Patient"), UseCaseOptions(person="Patient")).aspects["common"]
    assert (judged.original, judged.sample, judged.unprotected) == (0, 0, 0)
    assert judged.value == 6
    loose = purpose.judged(Splits(Pair(log, log)), UseCaseOptions(person="Patient")).aspects["common"]
    assert loose.original is not None and loose.original > 0
    # By others' cases it is known of one step of two: that the case ends.
    assert (
        judge(Pair(log, log), ["prediction"], UseCaseOptions(chief_only=True))["prediction"]
        .aspects["next_activity"]
        .original
        == 0.5
    )


def timed(log: EventLog, shift: int = 0) -> EventLog:
    times = pa.array([shift + i for i in range(log.events.num_rows)], pa.int64()).cast(TIMESTAMP_TYPE)
    return EventLog(log.events.set_column(3, TIMESTAMP, times), log.cases)


@pytest.mark.slow
def test_people_who_are_in_the_original_are_no_control() -> None:
    log = timed(visits([f"p{i // 3}" for i in range(60)]))
    later = timed(visits([f"p{19 + i // 3}" for i in range(60)], [f"later {i}" for i in range(60)]), 1000)
    with refused(ParameterError, "control-person-in-original") as error:
        compare(log, log, control=later, models=False)
    assert error.value.parameter == "control" and error.value.message.values["number"] == 20
    compare(log, log, control=later, models=False, asked=UseCaseOptions(person=False))
    others = timed(visits([f"other{i // 3}" for i in range(60)], [f"later {i}" for i in range(60)]), 1000)
    compare(log, log, control=others, models=False)


def test_cases_that_are_in_the_original_are_no_control() -> None:
    log = timed(visits([None] * 10))
    with refused(ParameterError, "control-cases-in-original"):
        compare(log, log, control=log.only(np.arange(3)), models=False)
    with refused(ParameterError, "control-cases-in-original", number_of_cases=3, number=3):
        dossier(log, log, control=log.only(np.arange(3)))
    # Names that are numbers occur in every log: without times they identify no case.
    plain = visits([None] * 10)
    compare(plain, plain, control=plain, models=False)
    compare(log, log, control=timed(log, 1000), models=False)


def test_a_person_column_that_is_none_is_refused() -> None:
    log = visits([f"p{i // 3}" for i in range(60)])
    with refused(ParameterError, "person-attribute-missing") as error:
        check_apart(log, log, "Ward")
    assert error.value.parameter == "person" and "--person takes a column" in (error.value.advice or "")
    with refused(ParameterError, "person-attribute-missing"):
        compare(log, log, models=False, asked=UseCaseOptions(person="Ward"))
