"""Budgets are taken as written, split exactly, and nonsense is refused in the user's words."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veilog.errors import ParameterError
from veilog.privacy.account.accounting import parse_delta, parse_epsilon
from veilog.privacy.account.figures import round_up


@pytest.mark.parametrize(
    "value", [0, 0.0, -1, "-0.5", float("nan"), float("inf"), "nan", "inf", "-inf", "one", "", None, True, 1j, [1]]
)
def test_an_epsilon_that_is_no_budget_is_refused(value: object) -> None:
    with pytest.raises(ParameterError, match="epsilon"):
        parse_epsilon(value)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [1e-300, 1e-10, 1e9, "1e999999999"])
def test_an_epsilon_out_of_reason_is_refused(value: object) -> None:
    with pytest.raises(ParameterError):
        parse_epsilon(value)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [1, 1.5, -0.1, "1", float("nan"), float("inf"), "x", None, False])
def test_a_delta_that_is_no_probability_of_failure_is_refused(value: object) -> None:
    with pytest.raises(ParameterError, match="delta"):
        parse_delta(value)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [0.1, "0.1", Decimal("0.1"), Fraction(1, 10), np.float64(0.1)])
def test_a_number_is_taken_as_written(value: object) -> None:
    assert parse_epsilon(value) == Fraction(1, 10)  # type: ignore[arg-type]


@pytest.mark.slow
@given(st.fractions(min_value=Fraction(1, 10**6), max_value=100))
def test_what_is_printed_never_understates_what_is_spent(value: Fraction) -> None:
    printed = Fraction(Decimal(repr(round_up(value))))
    assert value <= printed <= value * (1 + Fraction(1, 10**15))
