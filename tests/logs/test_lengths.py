"""Lengths estimated from noisy counts are nearly unbiased, with honest spread."""

from __future__ import annotations

import math

import numpy as np
import pytest

from veilog._typing import FloatArray, IntArray
from veilog.logs.synthetic import twins
from veilog.logs.synthetic.twins import BINS, MIDDLES, LengthDistribution

SCALE = 25.0
"""Scale of noise in bins that are queried with veilog twin --epsilon 0.1."""


def counted(numbers: FloatArray, rng: np.random.Generator) -> tuple[int, ...]:
    """Return the numbers with discrete Laplace noise, a difference of geometric ones."""
    chance = 1 - math.exp(-1 / SCALE)
    noise = rng.geometric(chance, len(numbers)) - rng.geometric(chance, len(numbers))
    return tuple((np.rint(numbers).astype(np.int64) + noise).tolist())


def process(seed: int) -> FloatArray:
    """Return shares of lengths as hospitals and chains have them: a few usual, a tail."""
    rng = np.random.default_rng([5, seed])
    found: IntArray = rng.integers(1, 5, 4_000) + rng.geometric(1 / rng.uniform(2, 8), 4_000)
    usual = rng.integers(3, 10)
    found[: int(rng.uniform(0, 0.4) * 4_000)] = usual
    bins = np.searchsorted(BINS, found, side="right") - 1
    return np.bincount(bins, minlength=len(BINS)) / 4_000


@pytest.mark.nightly
@pytest.mark.parametrize(("cases", "bias", "spread"), [(200, 0.5, 1.2), (700, 0.1, 0.3), (5_000, 0.03, 0.1)])
def test_lengths_are_nearly_unbiased(cases: int, bias: float, spread: float) -> None:
    """Mean lengths over forty logs keep within the bound and five standard errors.

    Where the bias is within the bound, this fails for less than one in a million of seeds (by the normal
    approximation).
    """
    off = []
    for seed in range(40):
        shares = process(seed)
        answers = counted(cases * shares, np.random.default_rng([6, seed]))
        off.append(LengthDistribution.of(answers, SCALE, cases).length / float(shares @ MIDDLES) - 1)
    assert abs(np.mean(off)) < bias + 5 * np.std(off) / math.sqrt(len(off))
    assert np.std(off) < spread


@pytest.mark.nightly
@pytest.mark.parametrize("cases", [300, 3_000])
def test_draws_differ_as_the_truth_does(cases: int) -> None:
    """A truth drawn beforehand has every rank among draws afterwards equally often.

    The sum of squares over ten places has a chi-squared distribution: above 33.7 for one in ten thousand of seeds.
    """
    shapes, usual = twins._usual(None)
    rng = np.random.default_rng(7)
    chances = np.exp(usual) / np.exp(usual).sum()
    places = []
    for _ in range(150):
        shape, near = shapes[rng.choice(len(shapes), p=chances)], rng.choice(twins._NEAR)
        numbers = rng.gamma(near * shape, cases / near)
        true = float(numbers @ MIDDLES / numbers.sum())
        believed = LengthDistribution.of(counted(numbers, rng), SCALE, cases)
        places.append(sum(float(believed.drawn(rng) @ MIDDLES) < true for _ in range(9)))
    often = np.bincount(places, minlength=10)
    assert ((often - 15) ** 2 / 15).sum() < 33.7


def test_many_cases_are_believed_as_they_were_counted() -> None:
    shares = process(1)
    answers = counted(200_000 * shares, np.random.default_rng(0))
    believed = LengthDistribution.of(answers, SCALE, 200_000)
    assert np.abs(believed.shares - shares).max() < 0.002
    assert np.abs(believed.drawn(np.random.default_rng(1)) - shares).max() < 0.002


def test_noise_in_far_bins_makes_no_case_long() -> None:
    """A far bin at three scales of noise counts as noise if all others are short."""
    numbers = [0] * len(BINS)
    numbers[3:7] = 120, 150, 110, 60
    told = numbers.copy()
    told[-2] = int(3 * SCALE)
    plain, noisy = (LengthDistribution.of(tuple(one), SCALE, 440) for one in (numbers, told))
    assert noisy.length < 1.6 * plain.length
    assert float(np.asarray(told) @ MIDDLES / sum(told)) > 7 * plain.length


def test_no_case_is_longer_than_declared_and_the_same_answers_say_the_same() -> None:
    answers = counted(300 * process(2), np.random.default_rng(3))
    found = LengthDistribution.of(answers, SCALE, 300, 9)
    beyond = np.asarray(BINS) > 9
    assert not found.shares[beyond].any() and found.shares.sum() == pytest.approx(1)
    assert not found.drawn(np.random.default_rng(1))[beyond].any()
    again = LengthDistribution.of.__wrapped__(answers, SCALE, 300, 9)
    assert np.array_equal(again.shares, found.shares) and again.length == found.length


@pytest.mark.slow
@pytest.mark.parametrize(("cases", "longest"), [(1, None), (1, 0), (10_000_000, None), (5, 1)])
def test_whatever_is_answered_there_are_shares(cases: int, longest: int | None) -> None:
    for answers in ((0,) * len(BINS), (-500,) * len(BINS), tuple(range(-1_000, 1_300, 100)), (cases,) * len(BINS)):
        with np.errstate(all="raise", under="ignore"):
            found = LengthDistribution.of(answers, SCALE, cases, longest)
            drawn = found.drawn(np.random.default_rng(0))
        assert found.shares.sum() == pytest.approx(1) and drawn.sum() == pytest.approx(1)
        assert (found.shares >= 0).all() and (drawn >= 0).all() and 0 <= found.length <= 400
