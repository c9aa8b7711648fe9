"""Rework by hand, and as laws."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veilog.logs.variants import Variants
from veilog.measures import compare
from veilog.measures.rework import Rework, rework

Counts = dict[tuple[str, ...], int]
some_logs = st.dictionaries(st.text("abc", max_size=6).map(tuple), st.integers(1, 4), min_size=1, max_size=6)


def test_cases_that_do_something_again_and_steps_that_stay_are_counted() -> None:
    original = Variants.from_dict({tuple("abab"): 1, tuple("aab"): 2, tuple("abc"): 5, (): 2})
    released = Variants.from_dict({tuple("abc"): 3, ("a",): 1})
    # 3 of 10 cases; 2 of 3 + 4 + 10 steps.
    assert rework(original, released) == Rework(0.3, 0.0, 2 / 17, 0.0)
    result = compare(original, released, models=False)
    assert result.rework == Rework(0.3, 0.0, 2 / 17, 0.0)
    frame = result.to_frame()
    (meaning,) = frame[frame.title == "cases with rework"].meaning.tolist()
    assert " 30% " in meaning, "what the original has is said beside it"


@pytest.mark.slow
@given(some_logs, some_logs)
def test_the_shares_are_those_of_counting_one_by_one(
    one: dict[tuple[str, ...], int], two: dict[tuple[str, ...], int]
) -> None:
    expected = []
    for log in (one, two):
        cases = sum(log.values())
        expected.append(sum(n for trace, n in log.items() if len(set(trace)) < len(trace)) / cases)
    for log in (one, two):
        steps = sum(n * max(0, len(trace) - 1) for trace, n in log.items())
        loops = sum(n for trace, n in log.items() for x, y in itertools.pairwise(trace) if x == y)
        expected.append(loops / max(1, steps))
    assert rework(Variants.from_dict(one), Variants.from_dict(two)) == Rework(*expected)
