"""Which budgets are advised."""

import pytest

import veilog
from veilog._language import spoken
from veilog.logs.made_up.simulate import hospital
from veilog.methods.method import LARGEST_ADVISED, advised, advised_once
from veilog.report.stated import stated


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
    assert "No epsilon that is advised (2 at most) would do: collect more cases" in said


def test_that_no_epsilon_would_do_is_said_once_in_a_release() -> None:
    none = advised(9)
    remarks = [f"Few cases. {none}", "Prototypes.", f"Rough times. {none}", "Mostly noise. An epsilon of 1 would do."]
    assert list(advised_once(remarks)) == [remarks[0], "Prototypes.", "Rough times.", remarks[3]]
    remarks = list(
        veilog.release(hospital(60, 1), "evolve", epsilon="0.1", times=0.3, activities="log", seed=1).remarks
    )
    assert sum(none in remark for remark in remarks) == 1 and any("times are rough" in text for text in remarks)
    with spoken("de"):
        assert not {text for text in remarks if stated(text) == text}
