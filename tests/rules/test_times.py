"""Rules on times: the events that they pair, and times moved until all hold."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veilog.logs.variants import Repeated, Variants
from veilog.rules.rules import ReleaseRules
from veilog.rules.times import TimeRule, direct_bounds, microseconds_in, obeying_times, possible

MINUTE = 60_000_000
LABELS = ("A", "B", "C")


def pairs_in(trace: str, first: str, second: str) -> list[tuple[int, int]]:
    codes = np.array([LABELS.index(letter) for letter in trace])
    one, other = TimeRule(first, second).pairs(LABELS, codes, np.zeros(len(codes), dtype=int))
    return list(zip(one.tolist(), other.tolist(), strict=True))


@pytest.mark.parametrize(
    ("trace", "first", "second", "pairs"),
    [
        ("ACB", "A", "B", [(0, 2)]),
        ("AACBB", "A", "B", [(1, 3)]),
        ("BACACB", "A", "B", [(3, 5)]),
        ("ABAB", "A", "B", [(0, 1), (2, 3)]),
        ("ACA", "A", "A", [(0, 2)]),
        ("ABC", "*", "*", [(0, 1), (1, 2)]),
        ("ABCB", "*", "B", [(0, 1), (2, 3)]),
        ("ABCB", "B", "*", [(1, 2)]),
        ("CC", "A", "B", []),
    ],
)
def test_a_rule_pairs_an_activity_with_the_next_of_another(
    trace: str, first: str, second: str, pairs: list[tuple[int, int]]
) -> None:
    assert pairs_in(trace, first, second) == pairs


def test_cases_are_apart() -> None:
    one, _ = TimeRule("A", "B").pairs(LABELS, np.array([0, 1, 0, 1]), np.array([0, 1, 1, 1]))
    assert one.tolist() == [2]


@pytest.mark.parametrize(
    ("text", "seconds"), [("30 min", 1800), ("0 s", 0), ("1.5 h", 5400), ("2d", 172_800), ("1 w", 604_800)]
)
def test_durations_are_read(text: str, seconds: int) -> None:
    assert microseconds_in(text) == seconds * 1_000_000


@pytest.mark.parametrize("text", ["soon", "5", "-1 h", "1 month", 3, None])
def test_what_is_no_duration_is_none(text: Any) -> None:
    assert microseconds_in(text) is None


def test_bounds_of_direct_steps_are_the_narrowest() -> None:
    rules = [TimeRule("*", "*", MINUTE), TimeRule("A", "B", 0.0, 5 * MINUTE), TimeRule("A", "*", 2 * MINUTE)]
    low, high = direct_bounds(rules, LABELS)
    assert low.tolist() == [[120, 120, 120], [60, 60, 60], [60, 60, 60]]
    assert high[0, 1] == 300 and np.isinf(np.delete(high.ravel(), 1)).all()


RULES = st.lists(
    st.builds(
        TimeRule,
        st.sampled_from(["A", "B", "*"]),
        st.sampled_from(["B", "C", "*"]),
        st.integers(0, 3).map(lambda n: float(n * MINUTE)),
        st.sampled_from([4.0 * MINUTE, 30.0 * MINUTE, np.inf]),
    ),
    min_size=1,
    max_size=3,
)
CASES = st.lists(
    st.lists(st.tuples(st.sampled_from("ABC"), st.integers(0, 3_000_000_000)), min_size=1, max_size=6),
    min_size=1,
    max_size=4,
)


@given(rules=RULES, drawn=CASES)
def test_moved_times_obey_all_rules_and_never_fall(rules: list[TimeRule], drawn: Any) -> None:
    variants = Variants.from_sequences([[letter for letter, _ in case] for case in drawn])
    sequences = variants.sequences
    kept = np.flatnonzero(possible(rules, sequences))
    if not len(kept):
        return
    cases = Repeated(sequences.take(kept), np.arange(len(kept)))
    gaps = np.array([gap for case in drawn for _, gap in case], dtype=np.int64)[: cases.events]
    owners = np.repeat(np.arange(len(cases)), cases.lengths)
    walked = np.cumsum(gaps)
    times = 10**15 + walked - np.repeat(walked[cases.offsets[:-1]], cases.lengths)
    found = obeying_times(rules, cases, times)
    codes = cases.rows(0, len(cases)).codes
    for rule in rules:
        _, broken = rule.broken(cases.labels, codes, owners, found.astype(float))
        assert not broken.any()
    within = owners[1:] == owners[:-1]
    assert (np.diff(found)[within] >= 0).all()
    assert (found[cases.offsets[:-1]] == times[cases.offsets[:-1]]).all()
    assert (obeying_times(rules, cases, found) == found).all()


def test_times_that_obey_stay() -> None:
    cases = Repeated(Variants.from_dict({("A", "B", "C"): 1}).sequences, np.zeros(2, dtype=int))
    times = np.array([0, 10, 20, 0, 1, 20]) * MINUTE
    found = obeying_times([TimeRule("A", "B", 5.0 * MINUTE)], cases, times)
    assert (found // MINUTE).tolist() == [0, 10, 20, 0, 5, 20]


def test_a_variant_for_which_there_are_no_times_does_not_obey() -> None:
    rules = ReleaseRules.of(
        [
            {"from": "A", "to": "B", "at_least": "2 h"},
            {"from": "B", "to": "C", "at_least": "2 h"},
            {"from": "A", "to": "C", "at_most": "3 h"},
        ]
    )
    assert rules is not None
    assert not rules.allows(("A", "B", "C"))
    assert rules.allows(("A", "C")) and rules.allows(("B", "A", "C"))
    found = rules.repaired(Variants.from_dict({("A", "B", "C"): 3, ("A", "C"): 1}))
    assert found.to_dict() == {("A", "C"): 4}
