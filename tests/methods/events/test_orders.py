"""Blocks have all cases once; facts of numbers make orders faster, not different."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veilog.logs.variants import Repeated, Sequences
from veilog.methods._events import orders
from veilog.methods._events.orders import CaseBlock, pick_bins, run_in_blocks, sort_in_rows

SOME = np.random.default_rng(3)


@pytest.mark.parametrize("rows", [1, 7, 3000, 2**45])
def test_the_order_is_that_of_a_general_sort_also_where_leading_bits_are_equal(rows: int) -> None:
    numbers = SOME.random(4000)
    numbers[1::3] = numbers[::3][: len(numbers[1::3])]  # equal ones keep their order
    numbers[2::3] = numbers[0] + 2.0**-53 * SOME.integers(0, 2, len(numbers[2::3]))  # equal but for their last bit
    numbers = np.minimum(numbers, 1 - 2.0**-53)
    row = SOME.integers(0, rows, len(numbers))
    assert sort_in_rows(row, numbers).tolist() == np.lexsort((numbers, row)).tolist()


def test_nothing_has_an_order() -> None:
    assert sort_in_rows(np.zeros(0, dtype=np.int64), np.zeros(0)).tolist() == []


@pytest.mark.parametrize("width", [1, 2, 5, 6, 64])
def test_a_bin_is_the_first_that_reaches_what_is_wanted(width: int) -> None:
    q = SOME.random((4, width)) * (SOME.random((4, width)) < 0.7) + 1e-9
    rows, u = SOME.integers(0, 4, 300), SOME.random(300)
    u[:3] = 0.0, 0.5, 1 - 2.0**-53
    reached = np.cumsum(q, axis=1)
    below = (reached[rows] < (u * reached[rows, -1])[:, None]).sum(axis=1)
    assert pick_bins(q, rows, u).tolist() == np.minimum(below, width - 1).tolist()


LABELS = ("a", "b", "c")
DISTINCT = Sequences(LABELS, np.array([0, 1, 2, 2, 1, 0], dtype=np.int32), np.array([0, 0, 1, 3, 6]))


@given(st.lists(st.integers(0, 3)))
def test_what_is_said_of_repeated_cases_is_what_each_has(owner: list[int]) -> None:
    cases = Repeated(DISTINCT, np.array(owner, dtype=np.int64))
    each = [DISTINCT[i] for i in owner]
    assert list(cases.rows(0, len(cases))) == each
    assert cases.lengths.tolist() == [len(case) for case in each]
    assert cases.offsets.tolist() == np.cumsum([0, *map(len, each)]).tolist()
    assert cases.events == sum(map(len, each))
    assert cases.lasts.tolist() == [LABELS.index(case[-1]) if case else -1 for case in each]
    assert cases.counts.tolist() == [owner.count(i) for i in range(4)]


@pytest.mark.slow
@pytest.mark.parametrize("most", [1, 7, 100, 1000])
@given(owner=st.lists(st.integers(0, 3), min_size=1, max_size=60))
def test_blocks_are_all_cases_with_their_events(most: int, owner: list[int]) -> None:
    cases = Repeated(DISTINCT, np.array(owner, dtype=np.int64))
    found: dict[int, list[tuple[str, ...]]] = {}
    events = np.zeros(cases.events, dtype=np.int64)

    def work(block: CaseBlock) -> None:
        found[block.cases.start] = list(block.sequences)
        events[block.events] += block.cases.start + block.owners + 1
        assert len(block.owners) == block.events.stop - block.events.start

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(orders, "BLOCK_EVENTS", most)
        run_in_blocks(work, cases, np.random.default_rng(1))
    assert [case for start in sorted(found) for case in found[start]] == [DISTINCT[i] for i in owner]
    assert events.tolist() == (np.repeat(np.arange(len(owner)), cases.lengths) + 1).tolist()


def test_what_a_block_draws_does_not_depend_on_when_it_is_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = Repeated(DISTINCT, np.full(400, 3))

    def drawn() -> list[float]:
        found = np.zeros(cases.events)

        def work(block: CaseBlock) -> None:
            found[block.events] = block.rng.random(len(block.owners))

        run_in_blocks(work, cases, np.random.default_rng(5))
        return found.tolist()

    whole = drawn()
    assert whole == np.random.default_rng(5).random(1200).tolist(), "one block draws from what it is given"
    monkeypatch.setattr(orders, "BLOCK_EVENTS", 100)
    parts = drawn()
    assert parts != whole
    assert len(set(parts)) == 1200, "no two blocks draw the same"
    assert drawn() == parts
    monkeypatch.setattr(orders, "_AT_ONCE", 1)
    assert drawn() == parts
