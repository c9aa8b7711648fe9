"""Complexity on trees small enough to partition by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from veilog.errors import ParameterError
from veilog.logs.variants import Variants
from veilog.measures.complexity import complexity, length_error

traces = st.lists(st.sampled_from("abcd"), max_size=6).map(tuple)
some_logs = st.dictionaries(traces, st.integers(1, 5), max_size=8)


def log(*rows: tuple[str, int]) -> Variants:
    return Variants.from_dict({tuple(text): count for text, count in rows})


def nlogn(*numbers: int) -> float:
    return sum(n * math.log(n) for n in numbers)


def test_one_variant_is_no_complexity() -> None:
    result = complexity(log(("abc", 7)))
    assert (result.sequence_entropy, result.normalized_sequence_entropy) == (0.0, 0.0)
    assert (result.cases, result.events, result.variants, result.activities) == (7, 21, 1, 3)
    assert (result.mean_length, result.variants_per_case) == (3.0, 1 / 7)


def test_a_fork_by_hand() -> None:
    # a(5) -> b(3) -> c(3) continues, a -> d(2) is a partition of its own: events 11 and 2, states 3 and 1.
    result = complexity(log(("abc", 3), ("ad", 2)))
    assert result.sequence_entropy == pytest.approx(nlogn(13) - nlogn(11, 2))
    assert result.normalized_sequence_entropy == pytest.approx(1 - nlogn(11, 2) / nlogn(13))
    assert result.variant_entropy == pytest.approx(nlogn(4) - nlogn(3, 1))


def test_the_heavier_child_continues_whatever_its_name() -> None:
    # d(4) continues a(5): events 9 and 1 + 1; states 2 and 2.
    result = complexity(log(("abc", 1), ("ad", 4)))
    assert result.sequence_entropy == pytest.approx(nlogn(11) - nlogn(9, 2))
    assert result.variant_entropy == pytest.approx(nlogn(4) - nlogn(2, 2))


def test_variants_that_part_at_the_start_are_partitions_of_their_own() -> None:
    assert complexity(log(("ab", 1), ("cd", 1))).normalized_variant_entropy == pytest.approx(0.5)


def reference(counts: dict[tuple[str, ...], int]) -> tuple[list[int], list[int]]:
    """Events and states of the partitions, by walking the prefix tree from the root."""
    weight: dict[tuple[str, ...], int] = {}
    for trace, n in counts.items():
        for i in range(1, len(trace) + 1):
            weight[trace[:i]] = weight.get(trace[:i], 0) + n
    events: list[int] = [0]
    states: list[int] = [0]

    def walk(prefix: tuple[str, ...], partition: int) -> None:
        children = sorted((-weight[p], p) for p in weight if len(p) == len(prefix) + 1 and p[:-1] == prefix)
        for i, (negative, child) in enumerate(children):
            if i:
                events.append(0)
                states.append(0)
            own = partition if i == 0 else len(events) - 1
            events[own] -= negative
            states[own] += 1
            walk(child, own)

    walk((), 0)
    return events, states


@pytest.mark.slow
@given(some_logs)
def test_the_levels_give_what_a_walk_through_the_tree_gives(counts: dict[tuple[str, ...], int]) -> None:
    events, states = reference(counts)
    result = complexity(Variants.from_dict(counts))
    if sum(events):
        assert result.sequence_entropy == pytest.approx(nlogn(sum(events)) - nlogn(*[e for e in events if e]), abs=1e-9)
        assert result.variant_entropy == pytest.approx(nlogn(sum(states)) - nlogn(*[s for s in states if s]), abs=1e-9)
    for value in (result.normalized_sequence_entropy, result.normalized_variant_entropy):
        assert value is None or 0.0 <= value <= 1.0


@pytest.mark.slow
@given(some_logs, st.integers(0, 99))
def test_complexity_does_not_depend_on_the_order_of_rows(counts: dict[tuple[str, ...], int], seed: int) -> None:
    rows = list(counts.items())
    order = np.random.default_rng(seed).permutation(len(rows))
    assert complexity(Variants.from_dict(dict(rows[i] for i in order))) == complexity(Variants.from_dict(counts))


def test_what_is_not_defined_is_none() -> None:
    empty = complexity(Variants.from_dict({}))
    assert (empty.mean_length, empty.normalized_sequence_entropy, empty.variants_per_case) == (None, None, None)
    assert complexity(log(("a", 1))).normalized_sequence_entropy is None


def test_length_error_is_relative_to_the_original() -> None:
    assert length_error(log(("abcd", 2)), log(("ab", 1), ("abcd", 1))) == 0.25
    with refused(ParameterError, "length-log-without-cases"):
        length_error(log(("a", 1)), Variants.from_dict({}))
