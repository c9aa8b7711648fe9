"""Queries about persons: what one person adds to the sums, and the charge."""

import itertools
from collections.abc import Callable
from fractions import Fraction
from typing import Any
from unittest.mock import patch

import numpy as np
import openly
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused
from test_stored_questions import in_pieces

import veilog
from veilog.errors import ParameterError, QuestionError
from veilog.logs.eventlog import EventLog
from veilog.privacy.account.guarantee import Charge
from veilog.privacy.cases import UNKNOWN_TIME
from veilog.privacy.curator import Curator
from veilog.privacy.domain import Domain
from veilog.privacy.events import EventQuestions
from veilog.privacy.histories import Histories, KindRule, histories_in, sums_of_persons
from veilog.privacy.mechanisms import noise
from veilog.privacy.mechanisms.mechanism import Laplace
from veilog.privacy.unit import Unit, bound_units

MOST = 3
UNIT = Unit("person", MOST, "Patient")
Case = tuple[str, str, int]
"""Person, activities, and hour of the start."""
CASE = st.tuples(st.sampled_from(["p", "q", "r", ""]), st.text("abc", min_size=1, max_size=4), st.integers(0, 40_000))
FEWEST = {"epsilon": 60, "unit": "Patient", "max_cases": MOST, "window": "log", "times": 0.2, "persons": 0.4}


def log(cases: list[Case]) -> EventLog:
    begin = pd.Timestamp("2020-01-01", tz="UTC")
    rows = [
        (str(case), name, begin + pd.Timedelta(hours=hour + place), person or None)
        for case, (person, names, hour) in enumerate(cases)
        for place, name in enumerate(names)
    ]
    columns = ["case:concept:name", "concept:name", "time:timestamp", "case:Patient"]
    return veilog.read(pd.DataFrame(rows, columns=columns))


def hospital(persons: int, seed: int = 1) -> EventLog:
    rng = np.random.default_rng(seed)
    cases: list[Case] = []
    for person in range(persons):
        hour = int(rng.integers(0, 5_000))
        for _ in range(int(rng.integers(1, 6))):
            cases.append((f"p{person}", ["abc", "aab", "cb", "ccab"][int(rng.integers(4))], hour))
            hour += int(rng.integers(1, 2_500))
    return log(cases)


Asked = tuple[Callable[[Histories], Any], int, int, Any, tuple[str, ...], int]


def asked_in_a_release(persons: int = 150, **more: Any) -> tuple[EventLog, list[Asked], veilog.Release]:
    """Return the queries about persons of a release, with their arguments."""
    asked: list[Asked] = []
    ask = EventQuestions.sums_of_persons

    def heard(
        self: EventQuestions, features: Any, size: int, bound: int, epsilon: Any, *, kinds: Any = None,
        alphabet: Any = (), resolution: int = 1, purpose: Any = "",
    ) -> Any:  # fmt: skip
        asked.append((features, size, bound, kinds, tuple(alphabet), resolution))
        return ask(self, features, size, bound, epsilon, kinds=kinds, alphabet=alphabet, resolution=resolution)

    original = hospital(persons)
    with patch.object(EventQuestions, "sums_of_persons", heard):
        released = openly.release(original, "laplace", seed=1, **{**FEWEST, **more})
    return original, asked, released


def exact(original: EventLog, asked: Asked, unit: Unit = UNIT, seed: int = 1) -> np.ndarray:
    features, size, bound, kinds, alphabet, resolution = asked
    people = bound_units(original, unit, noise.seeded(seed)).people
    assert people is not None
    return sums_of_persons(people, Domain(), features, size, bound, resolution, kinds, alphabet)


_, OF_A_RELEASE, _ = asked_in_a_release()


def test_a_release_makes_three_questions_and_each_has_a_bound() -> None:
    sizes = [(size, bound) for _, size, bound, *_ in OF_A_RELEASE]
    assert sizes[0] == (MOST + 1, 1), "persons by their cases, of which each adds 1"
    assert len(sizes) == 3 and all(1 <= bound <= MOST for _, bound in sizes[1:])


@pytest.mark.slow
@settings(deadline=None)
@given(cases=st.lists(CASE, max_size=14), more=st.lists(CASE, min_size=1, max_size=12), place=st.integers(0, 14))
def test_a_person_changes_the_sums_by_no_more_than_the_bound(cases: list[Case], more: list[Case], place: int) -> None:
    """A person with any number of cases changes the sums by the bound at most.

    Their places in the log do not matter, nor do cases of it without a person.
    """
    own = [("new", names, hour) for _, names, hour in more]
    together = cases[:place] + own[:2] + [("", *own[0][1:])] + cases[place:] + own[2:]
    for asked in OF_A_RELEASE:
        _, _, bound, _, _, resolution = asked
        before = exact(log(cases), asked) if cases else np.zeros(asked[1], dtype=np.int64)
        after = exact(log(together), asked, seed=2)
        alone = exact(log(own), asked)
        assert np.array_equal(after - before, alone), "the others are as they were"
        assert np.abs(after - before).sum() <= resolution * bound


@pytest.mark.slow
@settings(deadline=None)
@given(cases=st.lists(CASE, min_size=1, max_size=12), hour=st.integers(0, 40_000), names=st.text("abc", min_size=1))
def test_a_case_without_a_name_that_is_its_own_changes_the_sums_by_no_more(
    cases: list[Case], hour: int, names: str
) -> None:
    own = Unit("person", MOST, "Patient", "own")
    for asked in OF_A_RELEASE:
        change = exact(log([("", names, hour), *cases]), asked, own) - exact(log(cases), asked, own)
        assert np.abs(change).sum() <= asked[5] * asked[2]


@pytest.mark.slow
@settings(deadline=None)
@given(cases=st.lists(CASE, min_size=1, max_size=20), bound=st.integers(1, 5), seed=st.integers(0, 9))
def test_any_function_of_a_person_is_cut_to_the_bound(cases: list[Case], bound: int, seed: int) -> None:
    def features(people: Histories) -> Any:
        values = (people.kinds + 2) * (people.starts // 10**10 % (seed + 2)) * 7
        return people.owners, people.kinds % 3, values - 5

    original = log([("x", "ab", 3), *cases])
    kinds = KindRule(lambda block: np.minimum(block.lengths, 3), 4)
    everybody = {person for person, *_ in cases if person}
    whole = exact(original, (features, 3, bound, kinds, ("a", "b", "c"), 16))
    for person in everybody:
        others = log([("x", "ab", 3), *(case for case in cases if case[0] != person)])
        change = whole - exact(others, (features, 3, bound, kinds, ("a", "b", "c"), 16))
        assert np.abs(change).sum() <= 16 * bound


def test_cases_stand_in_the_order_of_their_starts_and_ties_as_in_the_log() -> None:
    people = bound_units(
        log([("p", "b", 9), ("q", "a", 1), ("p", "a", 2), ("", "c", 0), ("p", "c", 9)]), UNIT, noise.seeded(1)
    ).people
    assert people is not None
    kinds = KindRule(lambda block: block.codes[block.offsets[:-1]], 3)
    found = histories_in(people, Domain(), kinds, ("a", "b", "c"))
    assert found.kinds.tolist() == [0, 1, 2, 0] and found.offsets.tolist() == [0, 3, 4]
    assert found.followed.tolist() == [0, 1] and found.lengths.tolist() == [3, 1]
    other = found.take(np.array([1, 0]))
    assert other.kinds.tolist() == [0, 0, 1, 2] and other.offsets.tolist() == [0, 1, 4]


def test_cases_without_events_of_the_domain_come_last_and_have_no_times() -> None:
    people = bound_units(log([("p", "b", 1), ("p", "a", 5)]), UNIT, noise.seeded(1)).people
    assert people is not None
    found = histories_in(people, Domain(activities=("a",)), None, ())
    assert found.starts[1] == UNKNOWN_TIME and found.starts[0] != UNKNOWN_TIME and found.kinds.tolist() == [-1, -1]


@pytest.mark.slow
@pytest.mark.parametrize("cuts", [set(), {1}, {40, 41, 90}])
def test_the_answer_is_the_same_in_pieces(cuts: set[int]) -> None:
    original = hospital(40)
    for asked in OF_A_RELEASE:
        assert np.array_equal(exact(original, asked), exact(in_pieces(original, cuts), asked))  # type: ignore[arg-type]


def curator(original: EventLog, most: int = MOST) -> Curator:
    return Curator(bound_units(original, Unit("person", most, "Patient"), noise.seeded(1)), randomness=noise.seeded(1))


def ones(people: Histories) -> Any:
    return np.arange(len(people)), np.zeros(len(people), dtype=np.int64), people.lengths


@pytest.mark.parametrize("bound", [1, 2, 3])
def test_what_a_person_is_charged_is_what_the_noise_is_made_for(bound: int) -> None:
    asked = curator(hospital(5))
    asked.events.sums_of_persons(ones, 1, bound, Fraction(1, 5), resolution=4)
    (charge,) = asked.guarantee().charges
    assert charge.epsilon == Fraction(3, 5) and charge.cases == MOST
    assert charge.mechanism == Laplace(Fraction(bound) / Fraction(3, 5), grid=4)
    # The scale is the L1 norm of a person's part over the epsilon of a person, in the units of the answer.
    assert isinstance(charge.mechanism, Laplace)
    assert charge.mechanism.scale * charge.epsilon == bound
    assert str(Charge.plain(charge).sensitivity).startswith(str(Fraction(bound, MOST)))


def test_the_noise_is_drawn_from_what_was_charged() -> None:
    asked, drawn = curator(hospital(30)), []

    def draw(self: Laplace, n: int, source: Any) -> np.ndarray:
        drawn.append(self)
        return np.zeros(n, dtype=np.int64)

    with patch.object(Laplace, "draw", draw):
        found = asked.events.sums_of_persons(ones, 1, 2, 1)
    assert drawn == [asked.charges[0].mechanism]
    assert found[0] == exact(hospital(30), (ones, 1, 2, None, (), 1))[0]


def test_without_a_column_nothing_is_asked_about_persons() -> None:
    original = hospital(5)
    for unit in (Unit(), Unit("person", 3)):
        asked = Curator(bound_units(original, unit, noise.seeded(1)))
        with refused(ParameterError, "question-persons-without-column"):
            asked.events.sums_of_persons(ones, 1, 1, 1)
        assert not asked.contacted


def test_a_function_that_mixes_persons_is_refused() -> None:
    def mixed(people: Histories) -> Any:
        return np.arange(len(people)), np.zeros(len(people), dtype=np.int64), np.arange(len(people))

    with refused(QuestionError, "question-function-mixes-cases"):
        curator(hospital(9)).events.sums_of_persons(mixed, 1, 1, 1)


def test_a_kind_that_mixes_cases_is_refused() -> None:
    kinds = KindRule(lambda block: np.arange(len(block)) % 3, 3)
    with refused(QuestionError, "question-function-mixes-cases"):
        curator(hospital(9)).events.sums_of_persons(ones, 1, 1, 1, kinds=kinds)


def test_a_log_in_which_everybody_is_left_out_has_sums_of_nothing() -> None:
    people = bound_units(log([("", "a", 1), ("", "b", 2)]), UNIT, noise.seeded(1)).people
    assert people is not None
    assert sums_of_persons(people, Domain(), ones, 1, 1, 1, None, ()).tolist() == [0]


def test_more_cases_than_count_are_all_in_a_history() -> None:
    cases = [("p", "a", hour) for hour in range(0, 1000, 100)]
    assert exact(log(cases), (ones, 1, 20, None, (), 1))[0] == 10
    assert list(itertools.accumulate([exact(log(cases), (ones, 1, MOST, None, (), 1))[0]])) == [MOST]
