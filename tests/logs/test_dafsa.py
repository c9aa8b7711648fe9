"""The automaton accepts and numbers only its sequences, and is minimal."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from veilog.errors import InputError
from veilog.logs.variants import Dafsa, Sequences, Variants, dafsa

WORDS = st.sets(st.lists(st.sampled_from("abc"), max_size=6).map(tuple), min_size=1, max_size=12)


def sequences(*words: str | tuple[str, ...]) -> Sequences:
    return Variants.from_sequences([tuple(word) for word in words]).sequences


def accepted(automaton: Dafsa) -> set[tuple[str, ...]]:
    """Every path from the start to a final state, followed one by one."""
    found, open_ = set(), [(0, ())]
    while open_:
        state, word = open_.pop()
        if automaton.final[state]:
            found.add(word)
        going_on = np.flatnonzero(automaton.sources == state).tolist()
        open_ += [(int(automaton.targets[i]), (*word, automaton.labels[automaton.codes[i]])) for i in going_on]
    return found


def rest_of(words: set[tuple[str, ...]], prefix: tuple[str, ...]) -> frozenset[tuple[str, ...]]:
    return frozenset(word[len(prefix) :] for word in words if word[: len(prefix)] == prefix)


def test_the_example_of_the_paper_has_its_five_states_and_six_transitions() -> None:
    """Amun, Figure 2, Table 4: s0-A-s5, s0-D-s4, s4-A-s5, s5-B-s2, s5-E-s2, s2-C-s3."""
    automaton = dafsa(sequences("ABC", "DAEC", "DABC", "AEC"))
    assert (automaton.states, len(automaton)) == (5, 6)
    step = {
        (s, automaton.labels[c]): t
        for s, c, t in zip(
            automaton.sources.tolist(), automaton.codes.tolist(), automaton.targets.tolist(), strict=True
        )
    }
    s5, s4 = step[0, "A"], step[0, "D"]
    s2 = step[s5, "B"]
    s3 = step[s2, "C"]
    assert step == {(0, "A"): s5, (0, "D"): s4, (s4, "A"): s5, (s5, "B"): s2, (s5, "E"): s2, (s2, "C"): s3}
    assert len({0, s5, s4, s2, s3}) == 5
    assert np.flatnonzero(automaton.final).tolist() == [s3]


@pytest.mark.slow
@given(WORDS)
def test_it_accepts_its_sequences_and_no_others(words: set[tuple[str, ...]]) -> None:
    automaton = dafsa(sequences(*words))
    assert accepted(automaton) == words
    assert (automaton.targets > automaton.sources).all()
    assert (np.diff(automaton.sources * 10 + automaton.codes) > 0).all()


@pytest.mark.slow
@given(WORDS)
def test_it_has_one_state_for_each_way_to_go_on(words: set[tuple[str, ...]]) -> None:
    """The minimal automaton has a state for each set of suffixes (Myhill, Nerode)."""
    prefixes = {word[:n] for word in words for n in range(len(word) + 1)}
    assert dafsa(sequences(*words)).states == len({rest_of(words, prefix) for prefix in prefixes})


@pytest.mark.slow
@given(WORDS, st.randoms(use_true_random=False))
def test_every_event_is_annotated_with_the_transition_that_it_takes(
    words: set[tuple[str, ...]], random: object
) -> None:
    cases = sorted(words) + sorted(words)[:3]
    random.shuffle(cases)  # type: ignore[attr-defined]
    automaton = dafsa(sequences(*words))
    code = {label: i for i, label in enumerate(automaton.labels)}
    codes = np.array([code[a] for case in cases for a in case], dtype=np.int32)
    offsets = np.cumsum([0, *map(len, cases)])
    log = Sequences(automaton.labels, codes, offsets)
    taken = automaton.annotate(log)
    for a, b in itertools.pairwise(offsets.tolist()):
        states = [0, *automaton.targets[taken[a:b]].tolist()]
        assert automaton.sources[taken[a:b]].tolist() == states[:-1]
        assert automaton.final[states[-1]]
    assert (automaton.codes[taken] == codes).all()
    order = {word: number for number, word in enumerate(sorted(words))}
    assert automaton.numbers(offsets, taken).tolist() == [order[case] for case in cases]


def test_sequences_that_it_was_not_built_from_are_refused() -> None:
    automaton = dafsa(sequences("abc", "ab"))
    for foreign in (("a", "a", "b", "c"), ("a",), ("a", "b", "c", "c"), ("b",)):
        code = {label: i for i, label in enumerate("abc")}
        with refused(InputError, "automaton-sequence-unknown"):
            automaton.annotate(
                Sequences(
                    ("a", "b", "c"), np.array([code[a] for a in foreign], dtype=np.int32), np.array([0, len(foreign)])
                )
            )
    with refused(InputError, "automaton-labels-differ"):
        automaton.annotate(sequences("abd"))


def test_the_empty_sequence_and_no_sequence_at_all() -> None:
    only_empty = dafsa(sequences(()))
    assert (only_empty.states, len(only_empty), only_empty.final.tolist()) == (1, 0, [True])
    assert only_empty.numbers(np.array([0, 0]), only_empty.annotate(sequences(()))).tolist() == [0]
    nothing = dafsa(Sequences((), np.zeros(0, dtype=np.int32), np.zeros(1, dtype=np.int64)))
    assert (nothing.states, len(nothing), nothing.final.tolist()) == (1, 0, [False])


@pytest.mark.nightly
def test_a_very_long_sequence_is_one_chain() -> None:
    """No recursion, and work in proportion to the events."""
    length = 200_000
    long = Sequences(("a",), np.zeros(length, dtype=np.int32), np.array([0, length]))
    automaton = dafsa(long)
    assert (automaton.states, len(automaton)) == (length + 1, length)
