"""Intervals enclose their real number, and digits are its true binary digits."""

from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veilog.privacy.mechanisms import intervals
from veilog.privacy.mechanisms.intervals import Real

positive = st.fractions(min_value=Fraction(1, 10**6), max_value=40, max_denominator=10**6)


def true_value(expression: str, x: Fraction) -> mpmath.mpf:
    with mpmath.workprec(600):
        e = mpmath.exp(-mpmath.mpf(x.numerator) / x.denominator)
        return {"exp": e, "1-": 1 - e, "odds": e / (1 + e), "power": e**8}[expression]


def real(expression: str, x: Fraction) -> Real:
    e = intervals.exp_minus(x)
    one = intervals.rational(Fraction(1))
    return {
        "exp": e,
        "1-": intervals.one_minus(e),
        "odds": intervals.quotient(e, intervals.total(one, e)),
        "power": intervals.power(e, 3),
    }[expression]


@pytest.mark.slow
@pytest.mark.parametrize("expression", ["exp", "1-", "odds", "power"])
@given(x=positive, bits=st.integers(8, 300))
def test_the_interval_encloses_the_number(expression: str, x: Fraction, bits: int) -> None:
    low, high = real(expression, x)(bits)
    with mpmath.workprec(600):
        scaled = true_value(expression, x) * mpmath.mpf(2) ** bits
        assert low <= scaled <= high


@pytest.mark.slow
@pytest.mark.parametrize("expression", ["exp", "1-", "odds", "power"])
@given(x=positive)
def test_the_digits_are_the_true_ones(expression: str, x: Fraction) -> None:
    with mpmath.workprec(600):
        expected = int(mpmath.floor(true_value(expression, x) * mpmath.mpf(2) ** 200))
    assert intervals.digits(real(expression, x), 200) == expected


def test_a_comparison_is_yes_only_when_proved() -> None:
    half = intervals.rational(Fraction(1, 2))
    assert intervals.is_at_most(half, Fraction(1, 2))
    assert not intervals.is_at_most(half, Fraction(1, 2) - Fraction(1, 10**50))
    assert intervals.is_at_most(intervals.exp_minus(Fraction(1)), Fraction("0.36788"))
    assert not intervals.is_at_most(intervals.exp_minus(Fraction(1)), Fraction("0.36787"))
