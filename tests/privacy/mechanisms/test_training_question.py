"""A training charges its whole plan before the first step, or nothing."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from refusals import refused

from veilog.errors import ParameterError
from veilog.logs.variants import Sequences, Variants
from veilog.privacy.curator import Curator
from veilog.privacy.mechanisms.accountant import (
    calibrate,
)
from veilog.privacy.mechanisms.clipped_sums import Outer
from veilog.privacy.mechanisms.gradients import LEAST_CLIP, MOST_CLIP
from veilog.privacy.mechanisms.mechanism import LARGEST_NOISE, MOST_STEPS, DiscreteGaussianSteps, NoisedSteps

LOG = Variants.from_dict({("a", "b"): 30, ("a",): 12, ("b",): 3})


def counting(width: int) -> Any:
    """Return factors by which the gradient of a row is the row itself, turned around."""
    return lambda columns: [[Outer(columns, np.full((len(columns), 1), -1.0), width, bias=False)]]


def by_length(sequences: Sequences) -> npt.NDArray[np.int64]:
    return np.where(sequences.lengths == 1, 0, np.where(sequences.lengths == 2, 1, -1))


@pytest.mark.slow
def test_the_question_charges_the_whole_plan_at_once() -> None:
    curator = Curator(LOG)
    plan = calibrate([NoisedSteps("critic", 1.0, 1.0, 3)], Fraction(1, 2), Fraction(1, 10**5))
    run = curator.training(by_length, 2, plan, (1.0,), "0.5", "1e-5")
    guarantee = curator.guarantee()
    assert (guarantee.epsilon, guarantee.delta) == (0.5, 1e-5) and guarantee.proven
    assert "float" not in str(guarantee.numerics)
    (charge,) = guarantee.charges
    assert charge.question == "gradients" and charge.mechanism == DiscreteGaussianSteps(plan)
    for _ in range(3):
        run.step(0, counting(2))
    assert curator.guarantee().charges == guarantee.charges


@pytest.mark.slow
def test_a_plan_that_costs_more_than_is_set_aside_is_refused_and_nothing_is_charged() -> None:
    curator = Curator(LOG)
    with refused(ParameterError, "training-over-budget", epsilon=0.5):
        curator.training(by_length, 2, [NoisedSteps("critic", 1.0, 1.0, 3)], (1.0,), "0.5", "1e-5")
    with refused(ParameterError, "training-steps-exceeded"):
        curator.training(by_length, 2, [NoisedSteps("critic", 1.0, 99.0, 3)], (1.0,), "0.5", "1e-5", taken=(4,))
    assert curator.charges == ()
    for taken, left in (((3,), (3,)), (None, (0,))):  # none is left to take; none was taken
        run = curator.training(by_length, 2, [NoisedSteps("critic", 1.0, 99.0, 3)], (1.0,), "0.5", "1e-5", taken=taken)
        assert run.taken == left


@pytest.mark.slow
@pytest.mark.parametrize("clip", [1e-46, 0.0, -1.0, 9e-7, 1.1e6, math.inf, math.nan])
def test_a_clipping_bound_that_floats_cannot_hold_is_refused_before_anything_is_charged(clip: float) -> None:
    """A clipping bound of 1e-46, which would make the noise zero, is refused first."""
    curator = Curator(LOG)
    plan = calibrate([NoisedSteps("critic", 1.0, 1.0, 3)], Fraction(1, 2), Fraction(1, 10**5))
    with refused(ParameterError, "training-clip-out-of-range", least_clip=1e-06):
        curator.training(by_length, 2, plan, (clip,), "0.5", "1e-5")
    assert curator.charges == ()


def test_a_training_of_cases_apart_has_no_guarantee() -> None:
    curator = Curator(LOG)
    plan = calibrate([NoisedSteps("critic", 1.0, 1.0, 3)], Fraction(1, 2), Fraction(1, 10**5))
    curator.training(by_length, 2, plan, (1.0,), "0.5", "1e-5", apart=True)
    assert not curator.guarantee().proven


@pytest.mark.slow
def test_a_plan_that_costs_hardly_more_than_is_set_aside_is_refused_too() -> None:
    curator = Curator(LOG)
    plan = calibrate([NoisedSteps("critic", 1.0, 1.0, 3)], Fraction(101, 200), Fraction(1, 10**5))
    with refused(ParameterError, "training-over-budget", epsilon=0.5):
        curator.training(by_length, 2, plan, (1.0,), "0.5", "1e-5")
    assert curator.charges == ()


def test_charges_of_an_interrupted_run_are_carried_over() -> None:
    first, second = Curator(LOG), Curator(LOG)
    first.count("0.25")
    second.carry(first.charges)
    assert second.guarantee().epsilon == 0.25 and second.charges == first.charges


def test_plans_and_clips_are_taken_up_to_their_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("veilog.privacy.mechanisms.gradients.composed_epsilon", lambda plan, delta, about: 1.0)
    plan = (NoisedSteps("most", 1.0, LARGEST_NOISE, MOST_STEPS), NoisedSteps("one", 1.0, 1.0, 1))
    curator = Curator(Variants.from_dict({("a",): 3}))
    ask = lambda clips: curator.training(  # noqa: E731
        lambda b: np.zeros(len(b), int), 1, plan, clips, 1, "1e-3", taken=(MOST_STEPS, 1)
    )
    assert ask((LEAST_CLIP, MOST_CLIP)).taken == (MOST_STEPS, 1)
    for clips in ((LEAST_CLIP * 0.999, 1.0), (1.0, MOST_CLIP * 1.001)):
        with refused(ParameterError, "training-clip-out-of-range"):
            ask(clips)
    for noise_, steps in ((LARGEST_NOISE * 1.001, 1), (1.0, MOST_STEPS + 1)):
        with refused(ParameterError, "mechanism-noise-multiplier-invalid", "mechanism-steps-out-of-range"):
            NoisedSteps("x", 1.0, noise_, steps)
    assert len(curator.charges) == 1
