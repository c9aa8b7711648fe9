"""Which budgets are advised."""

import pytest

from veilog.methods.method import LARGEST_ADVISED, advised


@pytest.mark.parametrize(
    ("needed", "said"),
    [
        (0.04, "An epsilon of about 0.04 would do."),
        (1.11, "An epsilon of about 1.2 would do."),
        (LARGEST_ADVISED, "An epsilon of about 2 would do."),
    ],
)
def test_a_budget_that_would_do_is_rounded_up(needed: float, said: str) -> None:
    assert advised(needed) == said


@pytest.mark.parametrize("needed", [2.001, 9, 40, 1e9])
def test_none_is_advised_that_would_protect_nobody(needed: float) -> None:
    said = advised(needed)
    assert "too small for a useful private release" in said and "collect more cases" in said
    assert not any(letter.isdigit() for letter in said)
