"""Comparing groups: gaps between groups in the share of cases with an activity."""

from typing import Any

import numpy as np
import pytest
from logs_with_attributes import log_of

from veilog.logs.eventlog import EventLog
from veilog.measures.measure import Pair
from veilog.measures.use_cases import judge
from veilog.measures.use_cases.attributes import FEWEST, LEAST, _gap_scores
from veilog.measures.use_cases.use_case import UseCaseOptions


def group_log(refused: dict[str, tuple[int, int]], **others: Any) -> EventLog:
    """Return a log in which some of each group's cases are refused."""
    cases = [
        ({"group": group, **others}, [{"activity": a} for a in ("apply", "refuse")[: 1 + (i < some)]])
        for group, (some, number) in refused.items()
        for i in range(number)
    ]
    return log_of(cases)


def scores(used: EventLog, judged: EventLog) -> dict[str, float | None]:
    return dict(_gap_scores(used, judged, UseCaseOptions(person=False)))


def test_gaps_are_shares_of_a_group_less_those_of_all_others() -> None:
    """In groups of 100 cases 60, 30 and 30 are refused: gaps of .3 and twice -.15."""
    real = group_log({"a": (60, 100), "b": (30, 100), "c": (30, 100)})
    made = group_log({"a": (50, 100), "b": (30, 100), "c": (40, 100)})
    found = scores(made, real)
    gaps, others = np.array([0.3, -0.15, -0.15]), np.array([0.15, -0.15, 0.0])
    assert found["gaps"] == pytest.approx(np.abs(gaps - others).mean())
    assert found["size_of_gaps"] == pytest.approx(gaps @ others / (gaps @ gaps))
    assert found["reversed"] == 0
    assert scores(real, real) == {"gaps": 0, "size_of_gaps": 1, "reversed": 0}


def test_a_gap_of_the_other_sign_is_reversed() -> None:
    real, made = group_log({"a": (60, 100), "b": (30, 100)}), group_log({"a": (30, 100), "b": (60, 100)})
    assert scores(made, real) == {"gaps": pytest.approx(0.6), "size_of_gaps": pytest.approx(-1), "reversed": 1}


def test_a_group_that_the_release_has_not_has_no_gap() -> None:
    real, made = group_log({"a": (60, 100), "b": (30, 100)}), group_log({"b": (45, 200)})
    assert scores(made, real)["gaps"] == pytest.approx(0.3)


def test_small_gaps_and_small_groups_do_not_count() -> None:
    alike = group_log({"a": (60, 100), "b": (60 - round(100 * LEAST) + 1, 100)})
    few = group_log({"a": (0, 100), "b": (FEWEST - 1, FEWEST - 1)})
    for log in (alike, few):
        judged = judge(Pair(log, log), ["groups"], UseCaseOptions(person=False))["groups"]
        assert judged.grade == "not judged"
        assert [reason.code for reason in judged.reasons] == ["groups-alike"]


def test_a_release_without_the_attribute_has_no_groups() -> None:
    real = group_log({"a": (60, 100), "b": (30, 100)})
    bare = log_of([({}, [{"activity": "apply"}]) for _ in range(100)])
    judged = judge(Pair(real, bare), ["groups"], UseCaseOptions(person=False))["groups"]
    assert [reason.code for reason in judged.reasons] == ["groups-none-in-both"]
