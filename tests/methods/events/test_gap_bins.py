"""Distributions of gaps, from noisy histograms of public bins."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veilog.methods._events.gap_bins import BINS, EDGES, bins_of, draw_gaps, estimated, least_squares, slopes


@pytest.mark.slow
@given(st.integers(0, BINS - 1), st.lists(st.floats(0, 1), min_size=BINS, max_size=BINS), st.integers(0, 2**20))
def test_a_gap_is_drawn_inside_its_bin(bin_: int, q: list[float], seed: int) -> None:
    steep = slopes(np.array([q]))
    bins = np.full(50, bin_)
    drawn = draw_gaps(bins, np.zeros(50, dtype=np.int64), steep, np.random.default_rng(seed))
    assert (bins_of((drawn * 1e6).astype(np.int64)) == bin_).all()
    assert (drawn == np.floor(drawn)).all()


numbers = st.lists(st.floats(-1e6, 1e6), min_size=BINS, max_size=BINS)


@pytest.mark.slow
@given(rows=st.lists(numbers, min_size=1, max_size=4), expected=st.floats(1, 1e6), scale=st.floats(0.01, 1e4))
def test_whatever_the_noise_says_distributions_come_out(rows: list[list[float]], expected: float, scale: float) -> None:
    noisy = np.array(rows)
    n = len(noisy)
    everything = least_squares(noisy.sum(axis=0))
    groups = (np.arange(n) % 2, np.zeros(n, dtype=np.int64))
    q = estimated(noisy, np.full(n, expected), np.full((n, BINS), scale), groups, everything)
    for row in (everything, *q):
        assert (row >= 0).all()
        assert row.sum() == pytest.approx(1)


def test_without_noise_a_histogram_is_found_again() -> None:
    exact_ = np.array([[500, 0, 0, 30, 100, 10, 0, 0, 0, 300, 60, 0, 0, 0.0]])
    alone = np.zeros(1, dtype=np.int64)
    q = estimated(exact_, np.array([900.0]), np.full((1, BINS), 0.5), (alone, alone), exact_[0] / 1000)
    assert np.abs(q - exact_ / 1000).sum() < 0.03


def test_bins_are_public_and_in_order() -> None:
    assert len(EDGES) == BINS + 1 == 15
    assert (np.diff(EDGES) > 0).all()
    assert bins_of(np.array([0, 999_999, 10**6, 10**18])).tolist() == [0, 0, 1, BINS - 1]
