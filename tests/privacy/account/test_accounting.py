"""Budgets are taken as written and split exactly, and nonsense is refused."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from veilog.errors import ParameterError
from veilog.privacy.account.budgets import compose, parse_delta, parse_epsilon, parse_share
from veilog.privacy.account.guarantee import Charge, round_up
from veilog.privacy.mechanisms.mechanism import Stated


@pytest.mark.parametrize(
    "value", [0, 0.0, -1, "-0.5", float("nan"), float("inf"), "nan", "inf", "-inf", "one", "", None, True, 1j, [1]]
)
def test_an_epsilon_that_is_no_budget_is_refused(value: object) -> None:
    with refused(ParameterError, "budget-not-finite", "budget-not-number", "budget-not-positive"):
        parse_epsilon(value)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [1e-300, 1e-10, 1e9, "1e999999999"])
def test_an_epsilon_out_of_reason_is_refused(value: object) -> None:
    with pytest.raises(ParameterError):
        parse_epsilon(value)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [1, 1.5, -0.1, "1", float("nan"), float("inf"), "x", None, False])
def test_a_delta_that_is_no_probability_of_failure_is_refused(value: object) -> None:
    with refused(ParameterError, "budget-delta-out-of-range", "budget-not-finite", "budget-not-number"):
        parse_delta(value)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [0, 1, "1.5", "-0.1", "130%", "0%", "much", float("nan"), True])
def test_a_part_of_a_budget_is_above_nothing_and_below_all(value: object) -> None:
    with pytest.raises(ParameterError) as refused:
        parse_share(value, "times")  # type: ignore[arg-type]
    assert refused.value.parameter == "times"


@pytest.mark.parametrize("value", [0.1, "0.1", Decimal("0.1"), Fraction(1, 10), np.float64(0.1)])
def test_a_number_is_taken_as_written(value: object) -> None:
    assert parse_epsilon(value) == Fraction(1, 10)  # type: ignore[arg-type]


@pytest.mark.slow
@given(st.fractions(min_value=Fraction(1, 10**6), max_value=100))
def test_what_is_printed_never_understates_what_is_spent(value: Fraction) -> None:
    printed = Fraction(Decimal(repr(round_up(value))))
    assert value <= printed <= value * (1 + Fraction(1, 10**15))


def test_the_smallest_and_the_largest_budgets_are_taken_and_what_is_beyond_is_not() -> None:
    assert (parse_epsilon("1e-9"), parse_epsilon(1000)) == (Fraction(1, 10**9), 1000)
    assert (parse_delta(0), parse_delta("1e-100")) == (0, Fraction(1, 10**100))
    for epsilon in ("0.999e-9", Fraction(1000) + Fraction(1, 10**9)):
        with pytest.raises(ParameterError):
            parse_epsilon(epsilon)
    with refused(ParameterError, "budget-delta-too-small"):
        parse_delta("0.999e-100")


def test_costs_add_up_and_a_delta_is_at_most_one() -> None:
    def charges(*deltas: str) -> list[Charge]:
        return [Charge("q", "", Stated("m"), Stated("s"), Fraction(1, 3), Fraction(delta)) for delta in deltas]

    assert compose(charges("0.25", "0.5")) == (Fraction(2, 3), Fraction(3, 4))
    assert compose(charges("0.7", "0.7", "0")) == (1, 1)


def test_a_charge_may_be_of_nothing_and_not_of_less() -> None:
    assert Charge("q", "", Stated("m"), Stated("s"), Fraction(0), Fraction(0)).epsilon == 0
    for epsilon, delta in ((Fraction(-1, 9), Fraction(0)), (Fraction(0), Fraction(-1, 9))):
        with refused(ParameterError, "question-cost-negative"):
            Charge("q", "", Stated("m"), Stated("s"), epsilon, delta)
