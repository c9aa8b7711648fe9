"""Process trees: notation, reduction, order, play-out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from trees import language_of, trees

from veilog.errors import ParameterError
from veilog.mining.language import Language
from veilog.mining.tree import (
    SILENT,
    Operator,
    ProcessTree,
    activity,
    choice,
    loop,
    order_tree,
    parallel,
    play_out,
    reduce_tree,
    sequence,
)

A, B, C = activity("a"), activity("b"), activity("c")


def test_trees_are_written_in_the_usual_notation() -> None:
    tree = sequence(A, choice(SILENT, B), parallel(C, loop(activity("d"), SILENT)))
    assert str(tree) == "->( 'a', X( tau, 'b' ), +( 'c', *( 'd', tau ) ) )"
    assert tree.labels == ("a", "b", "c", "d")


@pytest.mark.parametrize(
    ("tree", "small"),
    [
        (sequence(A, SILENT, B), sequence(A, B)),
        (sequence(sequence(A, B), C), sequence(A, B, C)),
        (choice(A, choice(B, SILENT), SILENT), choice(SILENT, A, B)),
        (parallel(SILENT, SILENT), SILENT),
        (parallel(A, SILENT), A),
        (choice(SILENT, SILENT), SILENT),
        (choice(SILENT, sequence(SILENT)), SILENT),
        (loop(SILENT, SILENT), SILENT),
        (loop(sequence(A, SILENT), SILENT), loop(A, SILENT)),
        (sequence(parallel(A, B)), parallel(A, B)),
    ],
    ids=str,
)
def test_parts_that_say_nothing_go(tree: ProcessTree, small: ProcessTree) -> None:
    assert reduce_tree(tree) == small


def test_what_is_no_tree_is_refused() -> None:
    with refused(ParameterError, "tree-operator-without-children"):
        ProcessTree(Operator.CHOICE)
    with refused(ParameterError, "tree-leaf-with-children"):
        ProcessTree(None, (A,))
    with refused(ParameterError, "tree-loop-children-not-two"):
        ProcessTree(Operator.LOOP, (A,))
    with refused(ParameterError, "tree-loop-chance-invalid"):
        play_out(A, 1, np.random.default_rng(0), again=1.0)


@pytest.mark.slow
@given(trees())
def test_reducing_and_ordering_keep_the_language(tree: ProcessTree) -> None:
    assert language_of(reduce_tree(tree), 4) == language_of(tree, 4) == language_of(order_tree(tree), 4)
    assert reduce_tree(reduce_tree(tree)) == reduce_tree(tree)


@pytest.mark.slow
@given(trees())
def test_a_tree_is_skippable_if_it_allows_the_empty_trace(tree: ProcessTree) -> None:
    assert tree.skippable == (() in language_of(tree, 0))


def test_the_order_of_alternatives_and_parallel_parts_is_of_their_labels_alone() -> None:
    assert order_tree(choice(A, B, SILENT)) == order_tree(choice(SILENT, B, A))
    assert order_tree(choice(A, SILENT)).children[0] == SILENT
    assert order_tree(sequence(B, A)) == sequence(B, A)


@pytest.mark.slow
@given(trees(), st.integers(0, 99))
def test_what_is_played_out_is_accepted(tree: ProcessTree, seed: int) -> None:
    drawn = play_out(tree, 8, np.random.default_rng(seed))
    assert drawn.cases == 8
    assert all(map(Language(tree).accepts, drawn.sequences))
    assert drawn == play_out(tree, 8, np.random.default_rng(seed))


def test_play_out_reaches_every_trace_of_a_small_tree() -> None:
    tree = sequence(parallel(A, B), choice(SILENT, C))
    drawn = play_out(tree, 400, np.random.default_rng(0))
    assert set(drawn.sequences) == language_of(tree, 9)
    assert drawn.counts.min() > 60
