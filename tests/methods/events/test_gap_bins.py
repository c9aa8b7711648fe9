"""Distributions of gaps, from noisy histograms of public bins."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veilog.methods._events.gap_bins import BINS, EDGES, backed_off, bins_of, draw_gaps, least_squares, slopes


@pytest.mark.slow
@given(st.integers(0, BINS - 1), st.lists(st.floats(0, 1), min_size=BINS, max_size=BINS), st.integers(0, 2**20))
def test_a_gap_is_drawn_inside_its_bin(bin_: int, q: list[float], seed: int) -> None:
    steep = slopes(np.array([q]))
    bins = np.full(50, bin_)
    drawn = draw_gaps(bins, np.zeros(50, dtype=np.int64), steep, np.random.default_rng(seed))
    assert (bins_of((drawn * 1e6).astype(np.int64)) == bin_).all()
    assert (drawn == np.floor(drawn)).all()


numbers = st.lists(st.floats(-1e6, 1e6), min_size=6, max_size=6)


@pytest.mark.slow
@given(rows=st.lists(numbers, min_size=1, max_size=4), expected=st.floats(1, 1e6), scale=st.floats(0.01, 1e4))
def test_whatever_the_noise_says_distributions_come_out(rows: list[list[float]], expected: float, scale: float) -> None:
    noisy = np.array(rows)
    n = len(noisy)
    everything = least_squares(noisy.sum(axis=0))
    q = backed_off(noisy, np.full(n, expected), np.full(n, scale), np.arange(n) % 2, everything)
    for row in (everything, *q):
        assert (row >= 0).all()
        assert row.sum() == pytest.approx(1)


def test_without_noise_a_histogram_is_found_again() -> None:
    exact = np.array([[500.0, 0, 30, 110, 300, 60], [0.0, 0, 900, 100, 0, 0]])
    q = backed_off(exact, np.array([1000.0, 1000.0]), np.full(2, 1e-3), np.zeros(2, dtype=np.int64), np.full(6, 1 / 6))
    assert np.abs(q - exact / 1000).sum() < 0.01


def test_a_pair_that_noise_hides_is_like_others_with_its_second_activity() -> None:
    noisy = np.array([[0.0, 9000, 0, 0, 0, 1000], [40.0, -30, 20, 10, -40, 20]])
    q = backed_off(noisy, np.array([10_000.0, 20.0]), np.full(2, 1e4), np.zeros(2, dtype=np.int64), np.full(6, 1 / 6))
    assert q[1].argmax() == 1


def test_bins_are_public_and_in_order() -> None:
    assert len(EDGES) == BINS + 1 == 25
    assert (np.diff(EDGES) > 0).all()
    assert bins_of(np.array([0, 999_999, 10**6, 10**18])).tolist() == [0, 0, 1, BINS - 1]
