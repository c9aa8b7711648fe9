"""Synthetic persons: links between released cases, drawn by noisy answers."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from veilog.methods._events.persons import Numbers, Returns, first_of, kept_links, linked

DAY = 86_400 * 1_000_000


def found(cases: int, rng: np.random.Generator, **more: Any) -> Returns:
    """Return two kinds that follow each other; half of the first is, within a week."""
    kind = rng.integers(0, 2, cases)
    usual: dict[str, Any] = {
        "again": np.ones(4),
        "group": kind,
        "chances": np.array([[0.5, 0.0, 0.5], [0.0, 0.1, 0.9]]),
        "edges": np.array([0.0, 7.0, 100.0]) * 86_400,
        "kind": kind,
        "following": np.array([[0.0, 1.0], [1.0, 0.0]]),
    }
    return Returns(**{**usual, **more})


def drawn(cases: int, seed: int, **more: Any) -> tuple[Returns, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    given_ = found(cases, rng, **more)
    starts = rng.integers(0, 700 * DAY, cases)
    ends = starts + rng.integers(0, DAY, cases)
    return given_, starts, ends, linked(given_, starts, ends, np.zeros(cases, dtype=np.int64), rng)


@pytest.mark.slow
@settings(deadline=None, max_examples=30)
@given(cases=st.integers(1, 300), seed=st.integers(0, 1000))
def test_each_case_has_one_before_and_one_after_it_and_no_link_goes_back(cases: int, seed: int) -> None:
    given_, starts, ends, following = drawn(cases, seed)
    before = np.flatnonzero(following >= 0)
    after = following[before]
    assert len(np.unique(after)) == len(after)
    assert (starts[after] >= starts[before]).all()
    gaps = (starts[after] - ends[before]) / DAY
    # The gap is in a bin that the group of the case has.
    of_first = given_.group[before] == 0
    assert (gaps[of_first] < 7).all() and ((gaps[~of_first] >= 7) & (gaps[~of_first] < 100)).all()


def test_links_are_as_frequent_as_was_found() -> None:
    given_, _, _, following = drawn(6_000, 3)
    shares = [float((following[given_.group == group] >= 0).mean()) for group in (0, 1)]
    assert shares == pytest.approx([0.5, 0.1], abs=0.03)
    kinds = given_.kind[following[following >= 0]] != given_.kind[np.flatnonzero(following >= 0)]
    assert kinds.mean() > 0.97, "the next case is of the other kind"


def test_who_came_back_comes_back_as_often_as_was_found() -> None:
    """A second case follows in .2 of all persons, and after it always another."""
    again = np.array([0.2, 0.9, 0.9]) / 0.3
    _, _, _, following = drawn(4_000, 5, again=again, chances=np.array([[0.15, 0.15, 0.7]] * 2))
    sizes = np.bincount(np.bincount(first_of(following)))
    assert 0.13 < 1 - sizes[1] / sizes[1:].sum() < 0.3
    assert sizes[3:].sum() > 0.6 * sizes[2:].sum()


def test_cases_with_equal_values_are_linked_where_there_are_such() -> None:
    rng = np.random.default_rng(1)
    given_, starts = found(4_000, rng), rng.integers(0, 700 * DAY, 4_000)
    values = rng.integers(0, 2, 4_000)
    following = linked(given_, starts, starts, values, rng)
    before = np.flatnonzero(following >= 0)
    assert (values[before] == values[following[before]]).mean() > 0.95


def test_without_times_links_go_on_in_the_order_of_the_cases() -> None:
    rng = np.random.default_rng(2)
    untimed = found(900, rng, edges=np.array([0.0, np.inf]), chances=np.array([[0.4, 0.6], [0.2, 0.8]]))
    places = np.arange(900)
    following = linked(untimed, places, places, np.zeros(900, dtype=np.int64), rng)
    before = np.flatnonzero(following >= 0)
    assert (following[before] > before).all()
    assert len(before) / 900 == pytest.approx(0.3, abs=0.05)


def test_persons_are_chains() -> None:
    assert first_of(np.array([2, -1, 4, -1, 3])).tolist() == [0, 1, 0, 0, 0]
    assert first_of(np.array([-1, 0, 1])).tolist() == [2, 2, 2]


def test_a_link_to_a_case_that_breaks_a_rule_goes_and_its_person_begins_there() -> None:
    values = np.array([1, 2, 3, 4])
    kept = kept_links(np.array([1, 2, 3, -1]), lambda first: np.flatnonzero((values[first] == 1) & (values == 3)))
    assert kept.tolist() == [1, -1, 3, -1]
    assert first_of(kept).tolist() == [0, 0, 2, 2]


def test_a_case_that_broke_a_rule_before_keeps_nothing_from_ending() -> None:
    assert kept_links(np.array([1, -1]), lambda first: np.array([0])).tolist() == [1, -1]


NUMBERS = Numbers(np.array([0.5, 0.3, 0.2]), 1e-4)
"""Shares of persons with one, two and more cases, who go on at .2 / .5."""


def test_numbers_of_cases_say_how_often_another_follows() -> None:
    assert NUMBERS.goes_on.tolist() == pytest.approx([0.5, 0.4])
    beyond = 3 + 0.4 / 0.6  # of the .5 who come back .2 do so again
    cases = 0.5 + 0.6 + 0.2 * beyond
    assert NUMBERS.followed(np.array([1, 2, beyond])) == pytest.approx(1 - 1 / cases)
    assert NUMBERS.again.tolist() == pytest.approx([0.5 / (1 - 1 / cases), 0.4 / (1 - 1 / cases)])


def test_fewer_cases_of_a_person_count_where_noise_is_wide() -> None:
    assert NUMBERS.lost(2) > 0 and NUMBERS.lost(50) == pytest.approx(0)
    assert [NUMBERS.bound(off) for off in (1.0, 1e-6)] == [1, 2]


def test_another_answer_is_corrected_for_what_did_not_count() -> None:
    """With two counted cases each, persons with more weigh less in the links."""
    shares = NUMBERS.followed(np.array([1, 2, 3 + 2 / 3]))
    counted = NUMBERS.followed(np.array([1.0, 2.0, 2.0]))
    assert counted < shares
    assert NUMBERS.together(counted, 1e-9, 2) == pytest.approx(shares)
    assert NUMBERS.together(0.9, 1e9, 2) == pytest.approx(shares)
