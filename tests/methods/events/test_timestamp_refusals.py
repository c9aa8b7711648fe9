"""Times that cannot be released, and windows and shares that make no sense."""

import datetime
from typing import Any

import openly
import pytest
from time_tools import HOSPITAL, YEAR

from veilog.errors import ParameterError


@pytest.mark.parametrize("share", [0, 1, "1.5", "-0.1", "much", float("nan"), True])
def test_a_nonsensical_share_is_refused(share: Any) -> None:
    with pytest.raises(ParameterError, match="times"):
        openly.release(HOSPITAL, "travas", epsilon=1, delta="0.01", times=share)


def test_shares_that_leave_nothing_are_refused() -> None:
    with pytest.raises(ParameterError, match="nothing is left"):
        openly.release(
            HOSPITAL, "travas", epsilon=1, delta="0.01", times="0.6", attributes=["urgency"], attributes_share="0.4"
        )


@pytest.mark.parametrize(
    ("window", "problem"),
    [
        ("yesterday", "pair of times"),
        ((YEAR[1], YEAR[0]), "end after it starts"),
        ((YEAR[0],), "pair of times"),
        ((1, 2), "pair of times"),
        ((datetime.datetime(1, 1, 1), datetime.datetime(9999, 1, 1)), "weeks"),
    ],
)
def test_a_nonsensical_window_is_refused(window: Any, problem: str) -> None:
    with pytest.raises(ParameterError, match=problem):
        openly.release(HOSPITAL, "travas", epsilon=1, delta="0.01", times="0.5", window=window)


def test_times_need_events_and_a_certified_release() -> None:
    with pytest.raises(ParameterError, match="need an event log"):
        openly.release(HOSPITAL.variants, "travas", epsilon=1, delta="0.01", times="0.5")
    with pytest.raises(ParameterError, match="certified"):
        openly.release(HOSPITAL, "travas", epsilon=1, delta="0.01", times="0.5", as_published=True)
    with pytest.raises(ParameterError, match="A window is of use with a share for times only"):
        openly.release(HOSPITAL, "travas", epsilon=1, delta="0.01", window=YEAR)
