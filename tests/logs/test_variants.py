"""Variants are a multiset: equal contents are equal in memory, whatever came in."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from veilog.errors import InputError
from veilog.logs.variants import Variants

sequences = st.lists(st.lists(st.sampled_from(["a", "b", "ä", "", "a b"]), max_size=5).map(tuple), max_size=12)


def test_counts_lengths_and_sizes_of_a_small_multiset() -> None:
    variants = Variants.from_dict({("b", "a"): 3, ("a",): 2, (): 1})
    assert variants.to_dict() == {(): 1, ("a",): 2, ("b", "a"): 3}
    assert (len(variants), variants.cases, variants.events) == (3, 6, 8)
    assert variants.labels == ("a", "b")
    assert variants.lengths.tolist() == [0, 1, 2]


@pytest.mark.slow
@given(sequences, st.randoms(use_true_random=False))
def test_equal_multisets_are_equal_in_memory_whatever_the_order(found: list[tuple[str, ...]], random) -> None:
    variants = Variants.from_sequences(found)
    shuffled = list(found)
    random.shuffle(shuffled)
    other = Variants.from_sequences(shuffled)
    assert variants == other
    assert variants.codes.tobytes() == other.codes.tobytes()
    assert variants.to_dict() == Counter(found)


@pytest.mark.slow
@given(sequences)
def test_sequences_are_sorted_by_length_then_code(found: list[tuple[str, ...]]) -> None:
    rows = Variants.from_sequences(found).sequences.code_tuples()
    assert rows == sorted(set(rows), key=lambda row: (len(row), row))


def test_labels_that_no_sequence_uses_disappear() -> None:
    variants = Variants.from_arrays(("x", "unused", "a"), [0, 2], [0, 2], [5])
    assert variants.labels == ("a", "x")
    assert variants.to_dict() == {("x", "a"): 5}


def test_sequences_without_cases_disappear() -> None:
    variants = Variants.from_dict({("a",): 2, ("b",): 1})
    assert variants.with_counts([0, 7]).to_dict() == {("b",): 7}


def test_nothing_is_a_multiset_too() -> None:
    empty = Variants.from_dict({})
    assert (len(empty), empty.cases, empty.events, empty.labels) == (0, 0, 0, ())
    assert list(empty.sequences) == []
    assert empty == Variants.from_sequences([])


def test_arrays_cannot_be_changed() -> None:
    variants = Variants.from_dict({("a",): 1})
    for array in (variants.codes, variants.offsets, variants.counts):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 9


def test_input_arrays_are_left_alone() -> None:
    codes, offsets, counts = np.array([1, 0], np.int32), np.array([0, 1, 2]), np.array([1, 1])
    Variants.from_arrays(("a", "b"), codes, offsets, counts)
    assert (codes.tolist(), offsets.tolist(), counts.tolist()) == ([1, 0], [0, 1, 2], [1, 1])
    assert codes.flags.writeable and counts.flags.writeable


def test_by_frequency_puts_the_most_frequent_first_and_ties_in_order() -> None:
    variants = Variants.from_dict({("a",): 2, ("b",): 5, ("c",): 2})
    assert variants.by_frequency().tolist() == [1, 0, 2]


def test_rows_of_sequences_are_views_with_their_own_offsets() -> None:
    sequences_ = Variants.from_sequences([("a",), ("a", "b"), ("b", "b", "b")]).sequences
    part = sequences_.rows(1, 3)
    assert list(part) == [("a", "b"), ("b", "b", "b")]
    assert part[-1] == ("b", "b", "b")
    with pytest.raises(IndexError):
        part[2]


def test_counts_beyond_32_bits_are_kept() -> None:
    assert Variants.from_dict({("a",): 2**40}).cases == 2**40


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Variants.from_sequences(["abc"]), "sequence-is-string"),
        (lambda: Variants.from_dict({("a",): -1}), "variant-count-negative"),
        (lambda: Variants.from_arrays(("a",), [1], [0, 1]), "sequence-code-without-label"),
        (lambda: Variants.from_arrays(("a", "a"), [0, 1], [0, 2]), "activity-label-twice"),
        (lambda: Variants.from_arrays(("a",), [0], [0, 1], [1, 2]), "sequences-counts-differ"),
    ],
)
def test_impossible_variants_are_refused(build, message: str) -> None:
    with refused(InputError, message):
        build()


@pytest.mark.parametrize("count", [2.9, 0.5, float("nan"), float("inf"), "x", None])
def test_a_count_that_is_no_whole_number_is_refused_and_not_rounded(count: object) -> None:
    with refused(InputError, "variant-count-not-number"):
        Variants.from_dict({("a",): count, ("b",): 1})  # type: ignore[dict-item]
    assert Variants.from_dict({("a",): 2.0, ("b",): np.int64(1)}).to_dict() == {("a",): 2, ("b",): 1}  # type: ignore[dict-item]
