"""Histograms of times on a logarithmic scale: bins, and likely rows of answers."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from time_tools import log_of

from veilog.logs.eventlog import EventLog
from veilog.logs.variants import Repeated, Sequences
from veilog.methods._events.fits import least_squares
from veilog.methods._events.times import timestamps
from veilog.methods._events.times.histogram import (
    FINE,
    FINEST,
    LONGEST,
    Histograms,
    LogBins,
    ReleasedRows,
    _Likely,
    _log_normals,
    fineness_of,
)
from veilog.methods._events.times.prices import Price
from veilog.privacy.curator import Curator
from veilog.privacy.mechanisms import noise

DAY = 86_400
numbers = st.lists(st.floats(-1e6, 1e6), min_size=28, max_size=28)


def test_bins_are_public_and_in_order() -> None:
    for parts in (1, 2, 8, 32):
        bins = LogBins(parts)
        assert len(bins) == len(bins.edges) - 1 == 1 + LONGEST * parts
        assert (np.diff(bins.edges) > 0).all()
        assert set(LogBins(1).edges) <= set(bins.edges)
        assert bins.told(np.array([0, 999_999, 10**6, 10**18])).tolist() == [0, 0, 1, len(bins) - 1]


@pytest.mark.slow
@given(st.sampled_from([1, 2, 8, 32]), st.data(), st.integers(0, 2**20))
def test_a_time_is_drawn_inside_its_bin(parts: int, data: st.DataObject, seed: int) -> None:
    bins, rng = LogBins(parts), np.random.default_rng(seed)
    bin_ = data.draw(st.integers(1, len(bins) - 1))
    drawn = bins.drawn(np.full(50, bin_), rng.random(50))
    assert (drawn >= bins.edges[bin_]).all()
    assert (drawn <= bins.edges[bin_ + 1] * (1 + 1e-12)).all()
    assert not bins.drawn(np.zeros(3, dtype=np.int64), rng.random(3)).any()


def test_cells_are_as_fine_as_there_are_things_and_lie_in_coarser_ones() -> None:
    assert fineness_of(np.array([0.0, 10.0, FINE, 8 * FINE, 1e12])).tolist() == [0, 0, 0, 2, FINEST]
    bins = LogBins(1 << FINEST)
    for level in range(FINEST):
        coarser, finer = bins.cells(level), bins.cells(level + 1)
        assert (np.diff(coarser) <= np.diff(finer)).all()
        assert np.diff(finer).max() == 1
    assert [int(bins.cells(level)[-1]) for level in (0, FINEST)] == [LONGEST, LONGEST << FINEST]


def rows_of(keys: list[int], counts: list[int]) -> ReleasedRows:
    """Return one row per key, in a sequence of its own with this number of cases."""
    sequences = Sequences(("a",), np.zeros(len(keys), dtype=np.int32), np.arange(len(keys) + 1))
    cases = Repeated(sequences, np.repeat(np.arange(len(keys)), counts))
    return ReleasedRows.of(np.array(keys), np.arange(len(keys)), cases)


@pytest.mark.parametrize("size", [12, 1 << 20])
def test_keys_are_looked_up_as_they_are_found(size: int) -> None:
    """Keys are found by a table for few of them, and by a search for many."""
    rows = rows_of([7, 2, 5, 9], [1, 4, 2, 0])
    assert rows.keys.tolist() == [2, 5, 7], "of none that no case has"
    assert rows.placed(np.array([0, 2, 3, 5, 7, 11]), size).tolist() == [3, 0, 3, 1, 2, 3]
    assert rows.often(np.ones(4)).tolist() == [4, 2, 1, 0]


@pytest.mark.slow
@given(noisy=numbers, expected=st.floats(1, 1e6), scale=st.floats(0.01, 1e4), gaussian=st.booleans())
def test_whatever_the_noise_says_distributions_come_out(
    noisy: list[float], expected: float, scale: float, gaussian: bool
) -> None:
    bins = LogBins(1)
    models = np.append(_log_normals(bins, np.inf), np.full((1, len(bins)), 1 / len(bins)), axis=0)
    found = _Likely(models, 1, scale, gaussian).of(np.array(noisy), expected, bins.cells(0))
    for row in (least_squares(np.array(noisy)), found):
        assert (row >= 0).all()
        assert row.sum() == pytest.approx(1)


def test_a_row_that_noise_hides_is_log_normal() -> None:
    """Seconds stand out, and the noise of hours, days and years is not believed."""
    bins, rng = LogBins(1), np.random.default_rng(0)
    exact = _log_normals(bins, np.inf)[40]
    far: list[tuple[float, float]] = []
    for _ in range(40):
        noisy = 1_000 * exact + rng.laplace(0, 30, len(exact))
        found = _Likely(_log_normals(bins, np.inf), 0, 30.0, False).of(noisy, 1_000.0, bins.cells(0))
        far.append(tuple(float(np.abs(one - exact).sum()) for one in (found, least_squares(noisy))))
    believed, noise_too = np.mean(far, axis=0)
    assert believed < 0.6 * noise_too


def gaps_of(log: EventLog, epsilon: int, longest: float = np.inf) -> tuple[ReleasedRows, Histograms]:
    curator = Curator(log.variants, log=log, randomness=noise.seeded(1))
    labels, codes = log.activity_codes
    cases = Sequences(tuple(labels), codes.astype(np.int32), log.offsets)
    pairs = timestamps._pairs(Repeated(cases, np.arange(len(cases))), np.inf)
    return pairs, timestamps._gaps(Price(curator, Fraction(epsilon)), pairs, tuple(labels), longest)


def test_without_noise_histograms_of_pairs_are_found_again() -> None:
    """Without noise the gaps before b (two kinds) and before c (a minute) are found."""
    often = [[("a", 0), ("b", gap), ("c", gap + 60)] for gap in (7_200, 60 * DAY) for _ in range(500)]
    log = log_of(*often, [("c", 0), ("a", 1)])
    pairs, found = gaps_of(log, 1_000)
    assert len(pairs.keys) == 3
    at = found.bins.told(np.array([60, 7_200, 60 * DAY]) * 1_000_000)
    near = [[float(row[max(0, one - 1) : one + 2].sum()) for one in at] for row in found.q]
    assert near[0] == pytest.approx([0, 0.5, 0.5], abs=0.02)
    assert near[1] == pytest.approx([1, 0, 0], abs=0.02)
    assert near[-1] == pytest.approx([0.5, 0.25, 0.25], abs=0.02), "the others are as all are"


def test_what_a_case_has_beyond_the_bound_is_scaled_down() -> None:
    """Cases of 9 gaps and of 1 have the bound 2; a long case counts less, but whole."""
    long, short = [("a", 60 * i) for i in range(10)], [("b", 0), ("c", 7_200)]
    pairs, found = gaps_of(log_of(*[long] * 100, *[short] * 700), 1_000)
    minutes = found.q[0][found.bins.told(np.array([60_000_000]))[0]]
    assert pairs.mean(pairs.in_case) == pytest.approx(2)
    assert minutes == pytest.approx(1, abs=0.02)


@given(st.integers(0, 2**32 - 1), st.floats(60, 30 * DAY))
def test_gaps_add_up_by_what_may_be_long(seed: int, lasting: float) -> None:
    """Gaps of up to a minute stay; gaps that may take months add what is missing."""
    rng = np.random.default_rng(seed)
    bins = LogBins(2)
    q = np.zeros((2, len(bins)))
    q[0, 3:12], q[1, 3:48] = 1 / 9, 1 / 45
    owner, rows = np.repeat(np.arange(50), 2), np.tile([0, 1], 50)
    wanted = lasting * rng.uniform(0.5, 2, 50)
    gaps = Histograms(bins, q)
    seconds = gaps.adding_up(rows, gaps.places(rows, rng), owner, wanted)
    assert (seconds[rows == 0] <= bins.edges[12]).all()
    assert np.bincount(owner, weights=seconds) == pytest.approx(wanted, rel=0.1)


def test_places_are_those_of_the_distributions() -> None:
    bins = LogBins(1)
    q = np.zeros((1, len(bins)))
    q[0, 0], q[0, 4:6] = 0.5, 0.25
    found = Histograms(bins, q).at(np.zeros(5, dtype=np.int64), np.array([0.2, 0.49, 0.625, 0.75, 0.875]))
    assert found == pytest.approx([0, 0, 8 * 2**0.5, 16, 16 * 2**0.5])


def test_no_gap_is_longer_than_the_longest_case() -> None:
    log = log_of(*[[("a", 0), ("b", 7_200)] for _ in range(20)])
    _, found = gaps_of(log, 1, 8_192)
    assert not found.q[:, found.bins.edges[:-1] >= 8_192].any()
