"""The discrete Gaussian sampler has exactly its law, by its coins and its draws.

Statistical tests run on a seeded source, so they cannot fail by chance: a seed was not chosen to pass, and the stated
false-alarm rate is the chance that a correct sampler would fail for a fresh seed.
"""

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from veilog.privacy.mechanisms import gaussian, noise
from veilog.privacy.mechanisms.gaussian import LARGEST_VARIANCE, discrete_gaussian
from veilog.privacy.mechanisms.intervals import digits, exp_minus

FALSE_ALARM = 1e-4
VARIANCES = [Fraction(1, 4), Fraction(1), Fraction(7, 3), Fraction(30), Fraction(33) ** 2, Fraction(200) ** 2]
BITS = 200


def exponential(x: Fraction) -> Fraction:
    """Return ``exp(-x)`` to 200 binary digits."""
    return Fraction(1) if x == 0 else Fraction(digits(exp_minus(x), BITS), 2**BITS)


def proposed(variance: Fraction) -> Iterator[tuple[int, Fraction]]:
    """Yield each ``|y|`` with the probability that the sampler proposes and keeps it."""
    bits, number = gaussian._layout(variance)
    bounds = [Fraction(bound, 2**BITS) for bound in gaussian._bounds(variance, BITS)]
    for cell, (below, upto) in enumerate(pairwise([Fraction(0), *bounds])):
        for r in range(1 << bits):
            start = cell << bits
            yield start + r, (upto - below) / 2**bits * exponential(Fraction(r * (2 * start + r)) / (2 * variance))
    start = number << bits
    ratio = exponential(start / variance)
    for g in range(5):
        kept = exponential(Fraction(g * g) / (2 * variance))
        yield start + g, (1 - bounds[-1]) * (1 - ratio) * ratio**g * kept


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("variance", VARIANCES, ids=str)
def test_the_coins_multiply_to_the_discrete_gaussian(variance: Fraction) -> None:
    """Every number's odds against 0 are ``exp(-y**2 / (2 variance))``, to 2**-150."""
    found = dict(proposed(variance))
    numbers = sorted({0, 1, 2, 3, *range(0, len(found), max(1, len(found) // 60)), *list(found)[-5:]})
    for y in numbers:
        expected = exponential(Fraction(y * y) / (2 * variance))
        assert abs(found[y] / found[0] - expected) < Fraction(1, 2**150), y


@pytest.mark.parametrize("variance", [*VARIANCES, Fraction(3 * 2**34) ** 2 + 16, Fraction(2**57) ** 2])
def test_the_quick_decisions_of_a_coin_never_differ_from_the_exact_one(variance: Fraction) -> None:
    """Bounds in small integers enclose the probability, also at the ends of cells."""
    cells = gaussian._cells(variance)
    if not cells.bits:
        assert (cells.sure[:-1] == 2**15).all()  # cells of one number: nothing is ever rejected
        return
    rng = np.random.default_rng(1)
    size = 1 << cells.bits
    for cell in {0, 1, 2, cells.number // 2, cells.number - 1}:
        for r in {0, 1, size // 2, size - 1, int(rng.integers(size)), int(rng.integers(size))}:
            x = Fraction(r * (2 * (cell << cells.bits) + r)) / (2 * variance)
            exact = 2**31 * exponential(x)
            assert int(cells.sure[cell]) * 2**16 <= exact
            low, high = (int(b[0]) for b in gaussian._enclose_exponential(cells, np.array([cell]), np.array([r])))
            assert low <= exact <= high
            assert high - low < 2**17  # and are so narrow that the slow way is rare


@pytest.mark.parametrize(
    "variance", [Fraction(1, 10**6), Fraction(1, 49), *VARIANCES, Fraction(2**60), LARGEST_VARIANCE]
)
def test_the_coins_of_squares_are_enclosed_narrowly(variance: Fraction) -> None:
    deviation = math.isqrt(int(variance))
    spread = [1 + deviation * step // 8 for step in range(0, 80, 3)]
    numbers = np.unique(np.array([number for number in (*range(1, 20), *spread) if number < 2**62]))
    lows, highs = gaussian._exp_of_squares(numbers, variance)
    for number, low, high in zip(numbers.tolist(), lows.tolist(), highs.tolist(), strict=True):
        x = Fraction(number * number) / (2 * variance)
        known = digits(exp_minus(x), 31) if x < 400 else 0
        assert 0 <= low <= known < high
        assert high - low < 2**31 / 500


@pytest.mark.parametrize("variance", [Fraction(3, 2), Fraction(1000), Fraction(2**100)], ids=str)
def test_the_coins_of_squares_are_those_of_each_number_by_itself(variance: Fraction) -> None:
    """Coins of squares are those of single numbers: one word; more where bounds meet."""
    deviation = math.isqrt(int(variance))
    numbers = np.array([deviation * step // 50 for step in range(350)])
    together = gaussian._squares_fall(numbers, variance, noise.seeded(5))
    source = noise.seeded(5)
    alone = [gaussian._falls(Fraction(number**2) / (2 * variance), 0, 0, source) for number in numbers.tolist()]
    assert together.tolist() == alone


@pytest.mark.parametrize(("last", "falls"), [(0, True), (2**32 - 1, False)])
def test_a_coin_of_a_square_that_31_bits_do_not_decide_takes_as_many_as_it_needs(last: int, falls: bool) -> None:
    """A coin takes as many words as it needs: ``exp(-2**-116)`` begins with 115 ones."""
    given = iter([2**32 - 1] * 3 + [last])
    source = noise.Randomness(lambda n: np.array([next(given) for _ in range(n)], dtype=np.uint32), 0)
    assert gaussian._squares_fall(np.array([1, 0]), LARGEST_VARIANCE, source).tolist() == [falls, True]
    assert list(given) == []


@pytest.mark.slow
def test_taylors_bounds_enclose_the_exponential() -> None:
    x = np.arange(0, 2**29, 2**29 // 997)
    exact = [2**31 * exponential(Fraction(int(value), 2**31)) for value in x]
    pairs = zip(gaussian._exp_at_least(x).tolist(), exact, gaussian._exp_at_most(x).tolist(), strict=True)
    assert all(low <= value <= high for low, value, high in pairs)


def probabilities(variance: float, reach: int) -> np.ndarray:
    weights = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * variance))
    return np.asarray(weights / weights.sum())


@pytest.mark.parametrize("variance", VARIANCES[:4], ids=str)
def test_drawn_numbers_have_the_law(variance: Fraction) -> None:
    """Drawn numbers fit the law by chi-square on every number (false alarm 1e-4 each)."""
    n, reach = 400_000, math.ceil(5 * math.sqrt(variance)) + 1
    expected = n * probabilities(float(variance), reach)
    drawn = np.clip(discrete_gaussian(variance, n, noise.seeded(11)), -reach, reach) + reach
    observed = np.bincount(drawn, minlength=len(expected)).astype(float)
    small = expected < 5
    observed = np.append(observed[~small], observed[small].sum())
    expected = np.append(expected[~small], expected[small].sum())
    statistic = ((observed - expected) ** 2 / np.maximum(expected, 1e-3)).sum()
    assert stats.chi2.sf(statistic, len(expected) - 1) > FALSE_ALARM


@pytest.mark.slow
@pytest.mark.parametrize("variance", [VARIANCES[5], Fraction(3 * 2**34) ** 2 + 16, Fraction(2**57) ** 2])
def test_large_deviations_look_normal_in_body_tail_moments_and_low_order_bits(variance: Fraction) -> None:
    """Distribution, tails, four moments and four bits fit; false alarm 1e-4 each."""
    n, deviation = 400_000, math.sqrt(variance)
    drawn = discrete_gaussian(variance, n, noise.seeded(12))
    z = drawn / deviation
    if deviation > 1e6:
        assert stats.kstest(z, "norm").pvalue > FALSE_ALARM
    for above in (1.0, 2.0, 3.0, 4.0):
        first = math.floor(above * deviation) + 1
        chance = 2 * stats.norm.sf((first - 0.5) / deviation)
        assert stats.binomtest(int((np.abs(drawn) >= first).sum()), n, chance).pvalue > FALSE_ALARM
    limit = stats.norm.isf(FALSE_ALARM / 2)
    for power, moment, spread in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
        assert abs((z**power).mean() - moment) < limit * math.sqrt(spread / n)
    bits = np.bincount(drawn & 15, minlength=16)
    assert stats.chisquare(bits).pvalue > FALSE_ALARM


@pytest.mark.slow
def test_what_lies_beyond_the_cells_has_the_law_too() -> None:
    """Proposals beyond the cells, too rare to draw, fit the law (false alarm 1e-4)."""
    variance = Fraction(40) ** 2
    cells = gaussian._cells(variance)
    start = cells.number << cells.bits
    value, keep = gaussian._draw_tail_proposals(cells, 20_000, noise.seeded(13))
    drawn = value[keep] - start
    weights = np.exp(-((start + np.arange(200)) ** 2 - start**2) / (2 * 40**2))
    expected = len(drawn) * weights / weights.sum()
    cut = int(np.flatnonzero(expected < 10)[0])
    observed = np.bincount(np.minimum(drawn, cut), minlength=cut + 1)
    expected = np.append(expected[:cut], expected[cut:].sum())
    assert stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue > FALSE_ALARM


class Worded:
    """Source that begins with given words."""

    def __init__(self, *words: int) -> None:
        self.left, self.further = list(words), noise.seeded(0)

    def words(self, n: int) -> np.ndarray:
        given, self.left = self.left[:n], self.left[n:]
        return np.concatenate([np.array(given, np.uint32), self.further.words(n - len(given))])


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("steps", [48, 80, 112])
def test_a_cell_whose_bound_is_met_by_all_bits_at_hand_takes_more(steps: int) -> None:
    """A word that begins like the bound between cells takes one more digit to decide."""
    variance = Fraction(40) ** 2
    cells = gaussian._cells(variance)
    bound = gaussian._bounds(variance, steps + 32)[3]
    begun = np.array([bound >> (steps + 16)], np.uint32)
    rest = [(bound >> (steps - 16 - 32 * i)) & (2**32 - 1) for i in range((steps - 16) // 32)]
    last = bound & (2**32 - 1)
    for digit, cell in ((last - 1, 3), (last + 1, 4)):
        source = noise.Randomness(Worded(*rest, digit).words, 0)
        assert gaussian._settled_cells(cells, begun, source).tolist() == [cell]


@pytest.mark.slow
def test_seeded_numbers_repeat_and_blocks_join() -> None:
    one, other = (discrete_gaussian(Fraction(10**12), 100_000, noise.seeded(3)) for _ in "ab")
    assert np.array_equal(one, other) and len(np.unique(one)) > 90_000
    assert discrete_gaussian(Fraction(5), 0, noise.seeded(3)).tolist() == []


@pytest.mark.parametrize("variance", [Fraction(0), Fraction(-1), 2 * LARGEST_VARIANCE])
def test_a_variance_at_which_numbers_would_be_cut_is_refused(variance: Fraction) -> None:
    with pytest.raises(ValueError, match="variance"):
        discrete_gaussian(variance, 1, noise.seeded(0))
    assert math.erfc(2**62 / math.sqrt(2 * LARGEST_VARIANCE)) < 2.0**-300


def proposed_from(variance: Fraction, n: int, *words: int) -> tuple[list[int], list[bool], list[int]]:
    """Return ``n`` proposals from given first words, those kept, and the open coins."""
    asked: list[int] = []
    slowly = gaussian._coins

    def coins(
        cells: gaussian._Cells, cell: np.ndarray, offset: np.ndarray, begun: np.ndarray, source: noise.Randomness
    ) -> np.ndarray:
        asked.extend(begun.tolist())
        return slowly(cells, cell, offset, begun, source)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gaussian, "_coins", coins)
        value, keep = gaussian._draw_proposals(gaussian._cells(variance), n, noise.Randomness(Worded(*words).words, 0))
    return value.tolist(), keep.tolist(), asked


def test_the_coin_of_a_proposal_is_the_fifteen_bits_between_its_cell_and_its_sign() -> None:
    """Coins below the sure part fall at once, and the others are decided in full."""
    variance = Fraction(200) ** 2
    sure = int(gaussian._cells(variance).sure[0])
    assert 4 < sure < 2**15 - 4 and gaussian._cells(variance).guide[0] == 0
    coins = range(sure - 4, sure + 4)
    for sign in (0, 1):
        _, _, asked = proposed_from(variance, len(coins), *((coin << 1) | sign for coin in coins))
        assert asked == list(range(sure, sure + 4))


def test_a_proposal_beyond_the_cells_takes_its_number_from_there() -> None:
    """A proposal beyond the cells, too rare for any draw, takes its number from there.

    Its words are all ones but for the sign, and ones again where more are needed.
    """
    variance = Fraction(40) ** 2
    first = gaussian._cells(variance).number << gaussian._cells(variance).bits
    signs = [0, 1, 1, 0, 1, 0, 1, 0]
    ones = [2**32 - 1] * len(signs)
    value, keep, asked = proposed_from(variance, len(signs), *(2**32 - 2 + sign for sign in signs), *ones)
    assert all(abs(drawn) >= first for drawn in value) and [int(drawn < 0) for drawn in value] == signs
    assert any(keep) and not asked


def test_the_largest_variance_is_drawn_and_a_larger_is_refused() -> None:
    assert len(discrete_gaussian(LARGEST_VARIANCE, 3, noise.seeded(1))) == 3
    for variance in (LARGEST_VARIANCE + 1, Fraction(0)):
        with pytest.raises(ValueError, match="variance"):
            discrete_gaussian(variance, 3, noise.seeded(1))


@pytest.mark.parametrize("above", [0, 2, 12, 20])
def test_sums_of_terms_are_enclosed_however_coarsely_the_ratio_of_the_law_is(
    above: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sums are enclosed for ratios between 1/2 and 99/100, of fast and slow series."""
    least, most = Fraction(1, 2), Fraction(99, 100)
    ends = lambda bits: (math.floor(least * 2**bits), math.ceil(most * 2**bits))  # noqa: E731
    monkeypatch.setattr(gaussian, "exp_minus", lambda x: ends)
    beyond, half = gaussian._terms(Fraction(1), above, 96)
    for ratio in (least, Fraction(3, 4), most):
        for first, (low, high) in ((above + 1, beyond), (1, half)):
            exact = sum(float(ratio) ** (y * y) for y in range(first, 100)) * 2.0**96
            assert low <= exact * (1 + 1e-12) and exact * (1 - 1e-12) <= high
