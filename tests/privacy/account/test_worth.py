"""The protection level goes by the best of the bounds, each at its own delta."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veilog.privacy.account.guarantee import STRENGTHS, strength_of
from veilog.privacy.account.guessing_advantage import advantage_of, worth

COSTS = st.tuples(
    st.fractions(0, 200, max_denominator=100),
    st.one_of(st.just(Fraction(0)), st.fractions(0, 1, max_denominator=10**6)),
)


def rank(*bounds: tuple[Fraction, Fraction] | None, cases: int = 0) -> int:
    return STRENGTHS.index(worth(*bounds, cases=cases))


@pytest.mark.parametrize(
    ("epsilon", "delta", "cases", "word"),
    [
        ("1", "0", 10**9, "good"),
        ("1", "1e-6", 10_000, "good"),
        ("1", "1e-6", 10_001, "moderate"),
        ("1", "1e-3", 2_000, "none in practice"),
        ("0", "0", 100, "strong"),
        ("101", "0", 0, "none in practice"),
        ("1", "1", 0, "none in practice"),
    ],
)
def test_a_delta_counts_by_the_cases(epsilon: str, delta: str, cases: int, word: str) -> None:
    assert worth((Fraction(epsilon), Fraction(delta)), cases=cases) == word


@given(COSTS, COSTS, st.integers(0, 10**7))
def test_of_several_bounds_the_best_counts_with_its_own_delta(
    one: tuple[Fraction, Fraction], other: tuple[Fraction, Fraction], cases: int
) -> None:
    assert rank(one, other, None, cases=cases) == min(rank(one, cases=cases), rank(other, cases=cases))
    assert rank(cases=cases) == rank(None, cases=cases) == len(STRENGTHS) - 1
    assert rank(one, cases=cases) >= rank(one, cases=cases // 2), "more cases are never claimed more for"


@given(COSTS)
def test_it_is_the_word_of_the_guarantee_of_that_cost(cost: tuple[Fraction, Fraction]) -> None:
    if cost[0] <= 100 and cost[1] < 1:
        assert worth(cost, cases=77) == strength_of(float(advantage_of(*cost)), float(cost[1]), 77)
