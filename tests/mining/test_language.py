"""Derivatives agree with enumerated languages, and the judge with its definition."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trees import language_of, trees

from veilog.logs.variants import Variants
from veilog.mining.inductive import bits
from veilog.mining.language import NEVER, Language, judge
from veilog.mining.replay import Prefixes
from veilog.mining.tree import SILENT, ProcessTree, activity, choice, loop, parallel, sequence

A, B, C = activity("a"), activity("b"), activity("c")
logs = st.dictionaries(
    st.lists(st.sampled_from("abcde"), max_size=5).map(tuple), st.integers(1, 9), min_size=1, max_size=6
).map(Variants.from_dict)


@pytest.mark.slow
@given(trees("abc"))
def test_derivatives_accept_the_language_and_nothing_else(tree: ProcessTree) -> None:
    traces = language_of(tree, 3)
    language = Language(tree)
    for length in range(4):
        for trace in itertools.product("abc", repeat=length):
            assert language.accepts(trace) == (trace in traces), trace


@pytest.mark.slow
@given(trees("abc"))
def test_what_is_enabled_continues_a_trace_of_the_language(tree: ProcessTree) -> None:
    traces = language_of(tree, 8)
    begun = {trace[:i] for trace in traces for i in range(len(trace) + 1)}
    language = Language(tree, "abc")
    for prefix in (p for p in begun if len(p) <= 2):
        state = Language.start
        for label in prefix:
            state = language.after(state, "abc".index(label))
        enabled = {"abc"[code] for code in bits(language.enabled(state))}
        # The enumeration lacks what only traces of more than eight events have after the prefix.
        assert enabled >= {
            trace[len(prefix)] for trace in begun if len(trace) > len(prefix) and trace[: len(prefix)] == prefix
        }
        assert all(language.after(state, "abc".index(label)) != NEVER for label in enabled)
        assert language.may_end(state) == (prefix in traces)


def test_a_loop_can_be_in_several_places_after_one_prefix() -> None:
    tree = loop(parallel(choice(SILENT, A), choice(SILENT, B)), SILENT)
    language = Language(tree, "ab")
    assert all(language.accepts(trace) for trace in ("", "a", "ab", "ba", "aab", "bbba"))
    repeated = sequence(loop(A, B), A)
    assert Language(repeated).accepts("aa") and not Language(repeated).accepts("a")
    assert Language(repeated).accepts("abaa") and not Language(repeated).accepts("aba")


def test_activities_of_the_log_that_the_tree_has_not_are_never_enabled() -> None:
    language = Language(sequence(B, C), ("a", "b"))
    assert language.labels == ("a", "b", "c")
    assert language.after(0, 0) == NEVER and list(bits(language.enabled(0))) == [1]


@pytest.mark.slow
@given(logs)
def test_prefixes_are_those_of_the_cases(log: Variants) -> None:
    prefixes = Prefixes.of(log)
    traces: list[tuple[str, ...]] = [()]
    for parent, code in zip(prefixes.parents[1:], prefixes.codes[1:], strict=True):
        traces.append((*traces[parent], prefixes.labels[code]))
    counts = log.to_dict()
    expected = {t[:i] for t in counts for i in range(len(t) + 1)} | {()}
    assert set(traces) == expected and len(traces) == len(expected)
    for trace, passing, ending, following in zip(
        traces, prefixes.passing, prefixes.ending, prefixes.following, strict=True
    ):
        having = {t: n for t, n in counts.items() if t[: len(trace)] == trace}
        assert passing == sum(having.values()) and ending == counts.get(trace, 0)
        next_ones = {t[len(trace)] for t in having if len(t) > len(trace)}
        assert {prefixes.labels[code] for code in bits(following)} == next_ones
    assert (prefixes.cases, prefixes.events) == (log.cases, log.events)


@pytest.mark.slow
@given(trees("abc"), logs)
def test_the_judge_keeps_to_its_definition(tree: ProcessTree, log: Variants) -> None:
    language, wrong = Language(tree, log.labels), 0
    options = escaping = 0
    counts = log.to_dict()
    for trace, count in counts.items():
        state, allowed = Language.start, True
        for i, label in enumerate(trace):
            if allowed:
                enabled = {language.labels[code] for code in bits(language.enabled(state))}
                goes_on = {t[i] for t in counts if len(t) > i and t[:i] == trace[:i]}
                options += count * len(enabled)
                escaping += count * len(enabled - goes_on)
            after = language.after(state, log.labels.index(label))
            wrong += count * (after == NEVER)
            allowed = allowed and after != NEVER
            state = state if after == NEVER else after
        wrong += count * (not language.may_end(state))
    judged = judge(tree, Prefixes.of(log))
    assert judged.fitness == pytest.approx(1 - 0.4 * wrong / (log.events + log.cases))
    assert judged.precision == pytest.approx(1 - escaping / options if options else 1.0)


def test_the_judge_on_a_log_by_hand() -> None:
    log = Variants.from_dict({("a", "b"): 3, ("a", "x", "b"): 1, ("a",): 1})
    judged = judge(sequence(A, choice(B, C)), Prefixes.of(log))
    # One event skipped and one end missing of ten events and five cases; after "a" c escapes in four cases.
    assert judged.fitness == pytest.approx(1 - 0.4 * 2 / (10 + 5))
    assert judged.precision == pytest.approx(1 - 4 / (5 + 8))
    assert judged.f_score == pytest.approx(2 * judged.fitness * judged.precision / (judged.fitness + judged.precision))
