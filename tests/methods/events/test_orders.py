"""What is known of the numbers makes orders and counts quicker, never others."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veilog.methods._events.orders import by_row, counted, picked

SOME = np.random.default_rng(3)


@pytest.mark.parametrize("rows", [1, 7, 3000, 2**45])
def test_the_order_is_that_of_a_general_sort_also_where_leading_bits_are_equal(rows: int) -> None:
    numbers = SOME.random(4000)
    numbers[1::3] = numbers[::3][: len(numbers[1::3])]  # equal ones keep their order
    numbers[2::3] = numbers[0] + 2.0**-53 * SOME.integers(0, 2, len(numbers[2::3]))  # equal but for their last bit
    numbers = np.minimum(numbers, 1 - 2.0**-53)
    row = SOME.integers(0, rows, len(numbers))
    assert by_row(row, numbers).tolist() == np.lexsort((numbers, row)).tolist()


def test_nothing_has_an_order() -> None:
    assert by_row(np.zeros(0, dtype=np.int64), np.zeros(0)).tolist() == []


@given(st.lists(st.integers(0, 30)), st.sampled_from([31, 1000]))
def test_counting_is_what_sorting_finds(numbers: list[int], size: int) -> None:
    wanted = np.unique(np.array(numbers, dtype=np.int64), return_inverse=True, return_counts=True)
    for one, other in zip(counted(np.array(numbers, dtype=np.int64), size), wanted, strict=True):
        assert one.tolist() == other.tolist()


@pytest.mark.parametrize("width", [1, 2, 5, 6, 64])
def test_a_bin_is_the_first_that_reaches_what_is_wanted(width: int) -> None:
    q = SOME.random((4, width)) * (SOME.random((4, width)) < 0.7) + 1e-9
    rows, u = SOME.integers(0, 4, 300), SOME.random(300)
    u[:3] = 0.0, 0.5, 1 - 2.0**-53
    reached = np.cumsum(q, axis=1)
    below = (reached[rows] < (u * reached[rows, -1])[:, None]).sum(axis=1)
    assert picked(q, rows, u).tolist() == np.minimum(below, width - 1).tolist()
