"""The guessing advantage is exact by enumeration, and holds for a budget from it."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

from veilog.errors import ParameterError
from veilog.privacy.account.guessing_advantage import advantage_of, epsilon_of, parse_advantage

PRIORS = [Fraction(i, 200) for i in range(1, 200)]
BUDGETS = [("0.1", "0"), ("1", "0"), ("3", "0"), ("1", "0.001"), ("0.5", "0.1"), ("4", "0.01"), ("0.01", "0.2")]

advantages = st.decimals("0.000001", "0.999", allow_nan=False, places=6)


def outcomes(epsilon: float, delta: float) -> list[tuple[float, float, bool]]:
    """Return the two-point mechanism behind every (epsilon, delta)-private pair.

    Each answer has its probability with the case in the log and without, and True if it reveals which.
    """
    yes, no = math.exp(epsilon) / (1 + math.exp(epsilon)), 1 / (1 + math.exp(epsilon))
    return [
        (delta, 0.0, True),
        (0.0, delta, True),
        ((1 - delta) * yes, (1 - delta) * no, False),
        ((1 - delta) * no, (1 - delta) * yes, False),
    ]


def largest_belief(epsilon: float, delta: float, prior: float) -> float:
    """Return the largest belief by Bayes' rule, averaged over the coin of delta."""
    beliefs: dict[bool, float] = {}
    for present, absent, told in outcomes(epsilon, delta):
        seen = prior * present + (1 - prior) * absent
        if seen > 0:
            beliefs[told] = max(beliefs.get(told, 0.0), prior * present / seen)
    return delta * beliefs.get(True, 0.0) + (1 - delta) * beliefs[False]


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_the_bound_is_what_the_two_point_mechanism_attains(epsilon: str, delta: str) -> None:
    rises = []
    for prior in PRIORS:
        attained = largest_belief(float(epsilon), float(delta), float(prior)) - float(prior)
        assert float(advantage_of(epsilon, delta, prior)) == pytest.approx(attained, abs=1e-12)
        rises.append(attained)
    worst = float(advantage_of(epsilon, delta))
    assert max(rises) - 1e-12 <= worst <= max([*rises, float(delta)]) + 1e-4


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_it_bounds_the_mean_belief_in_the_truth_and_every_guess(epsilon: str, delta: str) -> None:
    answers = outcomes(float(epsilon), float(delta))
    worst = float(advantage_of(epsilon, delta))
    for prior in map(float, PRIORS):
        belief = sum(p * prior * p / (prior * p + (1 - prior) * q) for p, q, _ in answers if p > 0)
        assert belief - prior <= float(advantage_of(epsilon, delta, prior)) + 1e-12
        # The best of all rules guesses, for each answer, what is likelier.
        right = sum(max(prior * p, (1 - prior) * q) for p, q, _ in answers)
        assert right - max(prior, 1 - prior) <= worst + 1e-12


@pytest.mark.parametrize("epsilon", [0.05, 0.7, 2.0])
def test_without_delta_no_single_answer_of_randomised_response_exceeds_it(epsilon: float) -> None:
    worst = float(advantage_of(epsilon))
    rises = [largest_belief(epsilon, 0.0, float(prior)) - float(prior) for prior in PRIORS]
    assert max(rises) <= worst == pytest.approx(math.tanh(epsilon / 4), abs=1e-15)
    assert max(rises) == pytest.approx(worst, abs=1e-4)


@pytest.mark.parametrize("d", ["0.05", "0.2", "0.3", "0.4"])
def test_epsilon_is_the_published_formula(d: str) -> None:
    worst = (1 - float(d)) / 2
    for prior in (None, "0.1", "0.25"):
        p = worst if prior is None else float(prior)
        expected = -math.log(p / (1 - p) * (1 / (float(d) + p) - 1))
        assert float(epsilon_of(d, prior)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.slow
@settings(derandomize=True, max_examples=50, deadline=None)
@given(advantages, st.sampled_from(["0", "1e-9", "1e-7", "5e-7"]), st.sampled_from([None, "0.0005", "0.0009"]))
def test_a_budget_made_from_an_advantage_never_exceeds_it(d: object, delta: str, prior: str | None) -> None:
    asked = parse_advantage(str(d))
    epsilon = epsilon_of(asked, prior, delta)
    given_away = advantage_of(epsilon, delta, prior)
    assert given_away <= asked
    assert given_away > asked * (1 - Fraction(1, 10**20))  # and wastes next to nothing


def test_the_worst_prior_is_the_worst() -> None:
    assert all(epsilon_of("0.2") <= epsilon_of("0.2", prior) for prior in PRIORS[:160:10])


def test_more_epsilon_or_delta_gives_more_away() -> None:
    assert advantage_of(0) == 0 and float(advantage_of(0, "0.1")) == 0.1
    values = [advantage_of(e) for e in ("1e-12", "0.001", 0.1, 1, 10, 1000)]
    assert values == sorted(values) and values[-1] <= 1
    assert advantage_of(1, "0.1") > advantage_of(1, "0.001") > advantage_of(1)


def test_a_tiny_delta_costs_a_tiny_epsilon() -> None:
    plain, with_delta = epsilon_of("0.2"), epsilon_of("0.2", delta="1e-6")
    assert with_delta < plain < with_delta + Fraction(1, 10**4)


@pytest.mark.parametrize("bad", [0, 1, -0.2, 2, "nan", float("nan"), float("inf"), "much", None, True])
def test_an_advantage_outside_zero_and_one_is_refused(bad: object) -> None:
    with refused(ParameterError, "budget-not-finite", "budget-not-number", "guessing-advantage-not-share"):
        epsilon_of(bad)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("advantage", "prior", "delta", "words"),
    [
        ("1e-12", None, 0, "guessing-advantage-below-least"),
        ("0.2", "0.9", 0, "guessing-chance-cannot-rise"),
        ("0.2", 1, 0, "budget-share-out-of-range"),
        ("0.2", None, "0.2", "guessing-advantage-of-delta"),
        ("0.2", None, 1, "budget-delta-out-of-range"),
    ],
)
def test_what_no_epsilon_can_give_is_refused(advantage: str, prior: str | None, delta: int | str, words: str) -> None:
    with refused(ParameterError, words):
        epsilon_of(advantage, prior, delta)


@pytest.mark.parametrize("bad", [-1, "nan", float("inf"), "x", None, True])
def test_no_advantage_of_what_is_no_epsilon(bad: object) -> None:
    with refused(ParameterError, "epsilon-negative", "epsilon-not-finite"):
        advantage_of(bad)  # type: ignore[arg-type]
