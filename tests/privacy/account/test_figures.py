"""Figures of a guarantee are rounded up, and a larger budget has no better word."""

import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from veilog.logs.variants import Variants
from veilog.privacy.account.guarantee import STRENGTHS, round_up, strength_of, up
from veilog.privacy.account.guessing_advantage import advantage_of
from veilog.privacy.curator import Curator

positive = st.fractions(min_value=Fraction(1, 10**12), max_value=Fraction(10**12))


def read(text: str) -> Fraction:
    return Fraction(Decimal(text))


# Numbers --------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@given(value=positive, digits=st.integers(1, 15))
@example(value=Fraction("1.0000049"), digits=6)
@example(value=Fraction("0.99999999"), digits=6)
@example(value=Fraction("999999.5"), digits=6)
@example(value=Fraction(1, 3), digits=1)
def test_a_printed_number_is_not_below_the_exact_one_and_next_to_it(value: Fraction, digits: int) -> None:
    shown = read(up(value, digits))
    assert value <= shown <= value * (1 + Fraction(10, 10**digits))


@given(value=st.floats(1e-12, 1e12), digits=st.integers(1, 15))
def test_a_printed_float_is_not_below_what_it_prints_as(value: float, digits: int) -> None:
    assert read(up(value, digits)) >= Fraction(Decimal(repr(value)))


@pytest.mark.slow
@given(one=positive, other=positive)
def test_printed_numbers_keep_their_order(one: Fraction, other: Fraction) -> None:
    low, high = sorted((one, other))
    assert read(up(low)) <= read(up(high))


@pytest.mark.slow
@given(value=positive)
@example(value=Fraction("0.1"))
@example(value=Fraction(1, 3))
@example(value=Fraction(2**53 + 1))
def test_a_float_that_stands_for_a_fraction_is_the_least_that_is_not_below_it(value: Fraction) -> None:
    found = round_up(value)
    assert read(repr(found)) >= value
    assert read(repr(math.nextafter(found, -math.inf))) < value


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "none"), (0, "0"), (0.0, "0"), (Fraction(0), "0"), (1, "1"), (0.1, "0.1"), (1e-6, "1e-06"),
        (Fraction("1.0000049"), "1.00001"), (Fraction("1.000001"), "1.00001"), (Fraction(1, 3), "0.333334"),
        (Fraction("123456.7"), "123457"), (Fraction("0.0000012345671"), "1.23457e-06"), (50, "50"),
    ],
)  # fmt: skip
def test_printed_numbers_by_hand(value: Fraction | float | None, shown: str) -> None:
    assert up(value) == shown


# Strength -------------------------------------------------------------------------------------------------------------

ORDER = {word: place for place, word in enumerate(STRENGTHS)}


def test_the_words_from_the_best_on() -> None:
    assert STRENGTHS == ("strong", "good", "moderate", "weak", "none in practice")


@pytest.mark.parametrize(
    ("border", "word", "next_"),
    [
        (0.1, "strong", "good"),
        (0.25, "good", "moderate"),
        (0.5, "moderate", "weak"),
        (0.75, "weak", "none in practice"),
    ],
)
def test_borders_of_the_advantage_belong_to_the_better_word(border: float, word: str, next_: str) -> None:
    assert strength_of(border) == word and strength_of(math.nextafter(border, 1)) == next_


@pytest.mark.parametrize(
    ("exposed", "word"),
    [(0.0, "strong"), (0.01, "strong"), (0.011, "moderate"), (0.1, "moderate"), (0.11, "weak"), (1.0, "weak"),
     (1.1, "none in practice")],
)  # fmt: skip
def test_borders_of_what_a_delta_lets_out(exposed: float, word: str) -> None:
    assert strength_of(0.0, exposed / 1000, 1000) == word


@pytest.mark.parametrize(
    ("epsilon", "word"),
    [("0.4", "strong"), ("0.41", "good"), ("1.02", "good"), ("1.03", "moderate"), ("2.19", "moderate"),
     ("2.2", "weak"), ("3.89", "weak"), ("3.9", "none in practice"), ("50", "none in practice")],
)  # fmt: skip
def test_the_word_of_an_epsilon(epsilon: str, word: str) -> None:
    assert strength_of(float(advantage_of(Fraction(epsilon)))) == word
    curator = Curator(Variants.from_dict({("a",): 3}))
    curator.count(epsilon)
    assert curator.guarantee().strength == word


def test_nothing_proven_is_worth_nothing() -> None:
    assert strength_of(None) == strength_of(None, 0.0, 5) == "none in practice"


@pytest.mark.slow
@given(
    advantage=st.floats(0, 1),
    more=st.floats(0, 1),
    delta=st.floats(0, 0.5),
    bigger=st.floats(0, 0.5),
    cases=st.none() | st.integers(0, 10**7),
    others=st.integers(0, 10**7),
)
def test_more_epsilon_or_delta_or_cases_is_never_better(
    advantage: float, more: float, delta: float, bigger: float, cases: int | None, others: int
) -> None:
    word = ORDER[strength_of(advantage, delta, cases)]
    assert ORDER[strength_of(max(advantage, more), delta, cases)] >= word
    assert ORDER[strength_of(advantage, max(delta, bigger), cases)] >= word
    assert ORDER[strength_of(advantage, delta, (cases or 0) + others)] >= word
    assert strength_of(None, delta, cases) == STRENGTHS[-1]


@pytest.mark.slow
@given(
    epsilon=st.fractions("1/20", 6, max_denominator=1000),
    more=st.fractions(0, 3, max_denominator=1000),
    delta=st.sampled_from(["0", "1e-6", "1e-3", "0.1"]),
)
def test_a_larger_budget_never_has_a_better_word(epsilon: Fraction, more: Fraction, delta: str) -> None:
    words = [strength_of(float(advantage_of(e, Fraction(delta))), float(delta), 100) for e in (epsilon, epsilon + more)]
    assert ORDER[words[0]] <= ORDER[words[1]]
