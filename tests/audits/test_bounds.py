"""Bounds of an audit are exact for every binomial probability, never too large."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from veilog.audits.bounds import (
    ReleaseEvent,
    choose_event,
    epsilon_lower_bound,
    lower_bound,
    runs_to_see,
    tally,
    upper_bound,
)


@pytest.mark.slow
@given(runs=st.integers(1, 60), p=st.floats(0.001, 0.999), failure=st.sampled_from([0.1, 0.01, 1e-6]))
def test_a_bound_is_wrong_no_more_often_than_stated(runs: int, p: float, failure: float) -> None:
    seen = np.arange(runs + 1)
    chance = binom.pmf(seen, runs, p)
    above = sum(c for k, c in zip(seen.tolist(), chance, strict=True) if lower_bound(k, runs, failure) > p)
    below = sum(c for k, c in zip(seen.tolist(), chance, strict=True) if upper_bound(k, runs, failure) < p)
    assert max(above, below) <= failure * (1 + 1e-9)


def test_bounds_by_hand() -> None:
    assert upper_bound(0, 10, 0.05) == pytest.approx(1 - 0.05**0.1)
    assert lower_bound(10, 10, 0.05) == pytest.approx(0.05**0.1)
    assert (lower_bound(0, 10, 0.05), upper_bound(10, 10, 0.05)) == (0.0, 1.0)


def test_delta_is_taken_off_before_the_ratio() -> None:
    without = epsilon_lower_bound(900, 1000, 100, 1000, 0.0, 0.99)
    assert 1.8 < without < math.log(9)
    assert epsilon_lower_bound(900, 1000, 100, 1000, 0.5, 0.99) < without
    assert epsilon_lower_bound(400, 1000, 0, 1000, 0.5, 0.99) == 0.0


def test_the_event_that_tells_most_is_found_in_every_form() -> None:
    rng = np.random.default_rng(1)
    noise = rng.integers(0, 10, 3000).astype(float)
    other = rng.integers(0, 10, 3000).astype(float)
    assert choose_event(noise, noise + 5, 0.0, 0.9)[0] == ReleaseEvent("at least", 10.0, True)
    # As likely with the logs exchanged: the first form that shows it wins.
    assert choose_event(noise + 5, noise, 0.0, 0.9)[0] == ReleaseEvent("at least", 10.0, False)
    narrow = rng.integers(5, 10, 3000).astype(float)
    assert choose_event(narrow, noise, 0.0, 0.9)[0] == ReleaseEvent("at most", 4.0, True)
    hidden = np.where(rng.random(3000) < 0.5, 5.0, noise)
    event, seemed = choose_event(np.where(other == 5.0, 4.0, other), hidden, 0.0, 0.9)
    assert event == ReleaseEvent("exactly", 5.0, True) and seemed > 4


def test_scores_that_are_all_the_same_show_nothing() -> None:
    event, seemed = choose_event(np.ones(50), np.ones(50), 0.0, 0.9)
    assert seemed == 0.0
    assert tally(event, np.ones(50), np.ones(50), 0.0, 0.99).epsilon == 0.0


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_fewer_runs_cannot_show_more_than_the_claim(epsilon: float) -> None:
    enough = runs_to_see(epsilon, 0.99)
    assert epsilon_lower_bound(enough, enough, 0, enough, 0.0, 0.99) > epsilon
    assert epsilon_lower_bound(enough - 1, enough - 1, 0, enough - 1, 0.0, 0.99) <= epsilon
