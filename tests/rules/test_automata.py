"""Automata accept what their constraints mean, and find the nearest valid traces."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein

from veilog.logs.variants import Variants
from veilog.measures.use_cases.conformance import held
from veilog.rules.automata import Automata
from veilog.rules.rule_files import BINARY, COUNTED, TEMPLATES, Constraint

LABELS = "abcd"
ALL = [trace for length in range(6) for trace in itertools.product(range(len(LABELS)), repeat=length)]
CODES = np.array([code for trace in ALL for code in trace])
OFFSETS = np.cumsum([0, *(len(trace) for trace in ALL)])
EVERY = Variants.from_sequences(["".join(LABELS[code] for code in trace).replace("", " ").split() for trace in ALL])


def constraint(template: str, first: str = "a", second: str = "b", times: int = 1) -> Constraint:
    return Constraint(template, (first, second) if template in BINARY else (first,), times)


def accepted(constraints: list[Constraint]) -> set[tuple[int, ...]]:
    kept = Automata.of(constraints, LABELS).allowed(CODES, OFFSETS)
    return {trace for trace, is_kept in zip(ALL, kept.tolist(), strict=True) if is_kept}


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("times", [1, 2])
def test_an_automaton_accepts_the_cases_that_keep_its_constraint(template: str, times: int) -> None:
    one = constraint(template, times=times if template in COUNTED else 1)
    found = Automata.of([one], EVERY.labels).allowed(EVERY.codes, EVERY.offsets)
    assert (found == held([one], EVERY)[0].kept).all()
    assert 0 < found.sum() < len(EVERY)


def test_one_of_several_activities_may_come_first_or_last() -> None:
    found = accepted([Constraint("init", ("a", "b")), Constraint("end", ("c", "d"))])
    assert found == {trace for trace in ALL if trace and trace[0] in (0, 1) and trace[-1] in (2, 3)}


SOME = st.lists(
    st.builds(constraint, st.sampled_from(TEMPLATES), st.sampled_from("abc"), st.sampled_from("d"), st.just(1)),
    min_size=1,
    max_size=3,
)


@given(constraints=SOME, trace=st.lists(st.integers(0, 3), max_size=4))
def test_steps_that_are_open_are_those_that_each_automaton_can_take(
    constraints: list[Constraint], trace: list[int]
) -> None:
    automata = Automata.of(constraints, LABELS)
    states = automata.start(1)
    for code in trace:
        states = automata.advanced(states, np.array([code]))
    (open_,) = automata.open(states)
    each = [accepted([one]) for one in constraints]
    for code in range(len(LABELS)) if len(trace) < 3 else ():
        prefix = (*trace, code)
        # Two events more always suffice for one of these constraints, if anything does.
        possible = all(any(one[: len(prefix)] == prefix for one in own) for own in each)
        assert open_[code] == possible
    assert open_[-1] == all(tuple(trace) in own for own in each)


@given(constraints=SOME)
def test_activities_of_accepted_traces_are_possible(constraints: list[Constraint]) -> None:
    possible = Automata.of(constraints, LABELS).possible
    assert all(possible[code] for trace in accepted(constraints) for code in trace)


@given(constraints=SOME)
def test_steps_of_accepted_traces_are_possible(constraints: list[Constraint]) -> None:
    steps, end = Automata.of(constraints, LABELS).steps, len(LABELS)
    for trace in accepted(constraints):
        for x, y in itertools.pairwise((end, *trace, end)):
            assert steps[x, y]


def test_impossible_steps_are_none_of_an_accepted_trace() -> None:
    steps = Automata.of([constraint("init"), constraint("precedence", "b", "c")], LABELS).steps
    assert steps[4].tolist() == [True, False, False, False, False]
    assert not steps[4, 2]
    assert steps[1, 2] and steps[0, 1]


@given(constraints=SOME, trace=st.lists(st.integers(0, 3), max_size=5))
def test_the_nearest_trace_is_accepted_and_hardly_farther_than_it_must_be(
    constraints: list[Constraint], trace: list[int]
) -> None:
    found = Automata.of(constraints, LABELS).nearest(trace)
    near = accepted(constraints)
    if found is None:
        assert not near
        return
    assert found in near or len(found) > 5
    best = min(Levenshtein.distance(trace, one) for one in near)
    assert Levenshtein.distance(trace, found) <= best + len(constraints) - 1
    if tuple(trace) in near:
        assert found == tuple(trace)


def test_a_cut_trace_is_completed_and_not_replaced() -> None:
    assert Automata.of([constraint("end", "d")], LABELS).nearest((0, 1, 2)) == (0, 1, 2, 3)


def test_no_trace_is_longer_than_the_bound() -> None:
    automata = Automata.of([constraint("end", "d"), constraint("existence", "b", times=2)], LABELS)
    assert automata.nearest((0, 0, 0), 3) == (1, 1, 3)
    assert automata.nearest((0, 0), 2) is None
