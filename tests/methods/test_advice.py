"""Advice on budgets."""

import re
from collections.abc import Iterable
from fractions import Fraction

import pytest

import veilog
from veilog.errors import ParameterError
from veilog.logs.synthetic.hospital import hospital
from veilog.messages import Message
from veilog.methods.method import LARGEST_ADVISED, NONE_ADVISED, advised, advised_once, as_asked, with_a_share


@pytest.mark.parametrize(
    ("needed", "said"),
    [
        (0.04, "0.04"),
        (1.11, "1.2"),
        (LARGEST_ADVISED, "2"),
    ],
)
def test_a_budget_that_would_do_is_rounded_up(needed: float, said: str) -> None:
    assert advised(needed).values["epsilon"] == said


@pytest.mark.parametrize("needed", [2.001, 9, 40, 1e9])
def test_none_is_advised_that_would_protect_nobody(needed: float) -> None:
    assert advised(needed) == NONE_ADVISED


@pytest.mark.slow
def test_that_no_epsilon_would_do_is_said_once_in_a_release() -> None:
    few, prototypes, rough = Message("x", advised=NONE_ADVISED), Message("y"), Message("z", advised=NONE_ADVISED)
    noisy = Message("u", advised=advised(1))
    assert list(advised_once([few, prototypes, rough, noisy])) == [few, prototypes, Message("z", advised=""), noisy]
    remarks = veilog.release(hospital(60, 1), "evolve", epsilon="0.1", times=0.3, activities="log", seed=1).remarks
    assert sum(NONE_ADVISED in remark.values.values() for remark in remarks) == 1
    assert "times-rough" in [remark.code for remark in remarks]


def _advised(remarks: Iterable[Message]) -> float:
    values = (value for remark in remarks for value in remark.values.values())
    (said,) = (value for value in values if isinstance(value, Message) and value.code == "epsilon-would-do")
    return float(said.values["epsilon"])


def test_the_epsilon_that_would_do_is_for_whom_the_release_protects() -> None:
    """The advised epsilon is a person's: four times that of a case at a bound of 4."""
    log, asked = hospital(400, 1), {"activities": "log", "depth": 3, "seed": 1}
    of_a_case = veilog.release(log, "laplace", epsilon="0.04", **asked).remarks
    of_a_person = veilog.release(log, "laplace", epsilon="0.16", unit="person", max_cases=4, **asked).remarks
    assert _advised(of_a_person) == pytest.approx(4 * _advised(of_a_case), rel=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("asked", [{"times": 0.5}, {"method": "pripel", "times_share": 0.5, "query": "laplace"}])
def test_the_epsilon_that_would_do_is_that_of_times_too(asked: dict[str, object]) -> None:
    log = hospital(400, 1)
    usual = {"activities": "log", "seed": 1}
    alone = veilog.release(log, "laplace", epsilon="0.04", depth=3, **usual).remarks
    more = {"query_parameters": "depth=3"} if "query" in asked else {"depth": 3}
    made = veilog.release(log, **{"method": "laplace", **asked}, epsilon="0.08", **more, **usual).remarks
    assert _advised(made) == pytest.approx(2 * _advised(alone), rel=0.2)


def test_the_epsilon_that_would_do_is_that_of_all_that_is_asked() -> None:
    with with_a_share(Fraction(2)), with_a_share(Fraction(5, 2)):
        assert advised(0.2).values["epsilon"] == "1" and as_asked(0.2) == 1
        assert advised(0.5) == NONE_ADVISED, "2.5 of all would protect nobody"
    assert advised(0.2).values["epsilon"] == "0.2"


@pytest.mark.parametrize("name", ["laplace", "sacofa", "evolve", "df-laplace", "dpim"])
def test_a_budget_that_is_refused_is_called_as_it_was_given(name: str) -> None:
    given = {"unit": "person", "max_cases": 4, "largest_log": 50, "domain": veilog.Domain("log", "log")}
    with pytest.raises(ParameterError) as refused:
        veilog.release(hospital(40, 1), name, epsilon="0.01", **given)
    assert re.search(r"epsilon = 0\.01\b", str(refused.value))
