"""Distributions of gaps, from noisy histograms of public bins."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veilog.methods._events.fits import least_squares, likeliest
from veilog.methods._events.times.gap_bins import COARSEST, FINEST, Cells, GapBins

COARSE = GapBins.of()


@pytest.mark.slow
@given(st.sampled_from([1, 2, 8]), st.data(), st.integers(0, 2**20))
def test_a_gap_is_drawn_inside_its_bin(parts: int, data: st.DataObject, seed: int) -> None:
    """Of whole seconds; bins of less than a second are in the finest bins only, and have the second they begin in."""
    own = GapBins.of(parts)
    q = data.draw(st.lists(st.floats(0, 1), min_size=len(own), max_size=len(own)))
    bin_ = data.draw(st.integers(0, len(own) - 1))
    steep = own.slopes(np.array([q]))
    drawn = own.drawn(np.full(50, bin_), np.zeros(50, dtype=np.int64), steep, np.random.default_rng(seed))
    assert (drawn == np.floor(drawn)).all()
    if own.edges[bin_ + 1] - own.edges[bin_] >= 1:
        assert (own.told((drawn * 1e6).astype(np.int64)) == bin_).all()


numbers = st.lists(st.floats(-1e6, 1e6), min_size=6, max_size=6)


def of_pairs(rows: np.ndarray, expected: list[float], variance: float, second: list[int]) -> np.ndarray:
    """Distributions over coarse bins of pairs that were asked in the coarsest cells."""
    cells = Cells(COARSE, np.full(len(rows), COARSEST))
    doubts = np.full(len(rows), variance)
    even = np.full(len(COARSE), 1 / len(COARSE))
    q, _ = cells.backed_off(rows.ravel(), np.array(expected), doubts, np.array(second), even)
    return np.asarray(np.add.reduceat(q, np.arange(0, len(COARSE), 4), axis=1))


@pytest.mark.slow
@given(rows=st.lists(numbers, min_size=1, max_size=4), expected=st.floats(1, 1e6), scale=st.floats(0.01, 1e4))
def test_whatever_the_noise_says_distributions_come_out(rows: list[list[float]], expected: float, scale: float) -> None:
    n = len(rows)
    q = of_pairs(np.array(rows), [expected] * n, scale, [place % 2 for place in range(n)])
    for row in (least_squares(np.sum(rows, axis=0)), *q):
        assert (row >= 0).all()
        assert row.sum() == pytest.approx(1)


def test_without_noise_a_histogram_is_found_again() -> None:
    exact = np.array([[500.0, 0, 30, 110, 300, 60], [0.0, 0, 900, 100, 0, 0]])
    assert np.abs(of_pairs(exact, [1000.0, 1000.0], 1e-4, [0, 0]) - exact / 1000).sum() < 0.01


def test_a_pair_that_noise_hides_is_like_others_with_its_second_activity() -> None:
    noisy = np.array([[0.0, 9000, 0, 0, 0, 1000], [40.0, -30, 20, 10, -40, 20]])
    assert of_pairs(noisy, [10_000.0, 20.0], 2e3, [0, 0])[1].argmax() == 1


def test_cells_are_as_fine_as_a_pair_has_gaps_and_lie_in_coarser_ones() -> None:
    cells = Cells.of(np.array([0.0, 10.0, 300.0, 2_400.0, 1e9]))
    assert cells.fineness.tolist() == [COARSEST, COARSEST, 0, 2, FINEST]
    assert cells.bins.parts == 2**FINEST
    assert np.diff(cells.starts).tolist() == [6, 6, 24, 1 + 23 * 4, 1 + 23 * 8]
    for level in range(COARSEST, FINEST):
        coarser, finer = cells.bins.cells(level), cells.bins.cells(level + 1)
        assert (np.diff(coarser) <= np.diff(finer)).all()
        assert np.diff(finer).max() == 1


@pytest.mark.slow
@given(st.lists(st.integers(0, 2**47), min_size=1, max_size=20), st.lists(st.floats(0, 1e5), min_size=1, max_size=5))
def test_a_gap_is_told_in_one_cell_of_its_pair(gaps: list[int], known: list[float]) -> None:
    cells = Cells.of(np.array(known))
    for pair in range(len(known)):
        told = cells.told(np.full(len(gaps), pair), np.array(gaps))
        assert ((told >= cells.starts[pair]) & (told < cells.starts[pair + 1])).all()


def test_pairs_of_different_fineness_are_found_again_without_noise() -> None:
    """One pair in the finest cells, one in the coarsest, with gaps of two hours and of sixty days."""
    rng = np.random.default_rng(1)
    cells = Cells.of(np.array([1e9, 1.0]))
    gaps = np.concatenate([np.full(500, 7_200), np.full(500, 60 * 86_400)]) * 1_000_000
    counts = np.bincount(
        np.concatenate(
            [cells.told(np.zeros(1_000, dtype=np.int64), gaps), cells.told(np.ones(1_000, dtype=np.int64), gaps)]
        ),
        minlength=int(cells.starts[-1]),
    ).astype(np.float64)
    even = np.full(len(cells.bins), 1 / len(cells.bins))
    q, _ = cells.backed_off(counts, np.full(2, 1_000.0), np.full(2, 1e-6), np.arange(2), even)
    drawn = cells.bins.drawn(
        rng.choice(len(even), 2_000, p=q[0]), np.zeros(2_000, dtype=np.int64), cells.bins.slopes(q), rng
    )
    assert drawn[drawn < 86_400] == pytest.approx(7_200, rel=0.15)
    assert drawn[drawn > 86_400] == pytest.approx(60 * 86_400, rel=0.15)
    assert q[1][
        cells.bins.cells(COARSEST) == cells.bins.cells(COARSEST)[cells.bins.told(gaps[:1])]
    ].sum() == pytest.approx(0.5)


@pytest.mark.parametrize("gaussian", [False, True])
def test_likely_numbers_follow_what_noise_does_not_explain(gaussian: bool) -> None:
    noisy, expected = np.array([100.0, 3.0, -50.0]), np.array([10.0, 10.0, 90.0])
    sure = likeliest(noisy, expected, 0.1, 1.5, gaussian=gaussian)
    assert sure[:2] == pytest.approx([100, 3], rel=0.1)
    assert 0 < sure[2] < 5
    assert likeliest(noisy, expected, 1e4, 1.5, gaussian=gaussian) == pytest.approx(expected, rel=0.05)


def test_bins_are_public_and_in_order() -> None:
    for parts in (1, 2, 8):
        bins = GapBins.of(parts)
        assert len(bins) == 1 + 23 * parts
        assert (np.diff(bins.edges) > 0).all()
        assert bins.told(np.array([0, 999_999, 10**6, 10**18])).tolist() == [0, 0, 1, len(bins) - 1]
        assert bins.guess.sum() == pytest.approx(1)
        assert set(COARSE.edges) <= set(bins.edges)
