"""Noisy directly-follows relations and traces played out from them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from veilog.errors import ParameterError
from veilog.privacy.clipping import LARGEST_SIZE

__all__ = ["drawn_number", "refuse_many_activities"]


def refuse_many_activities(activities: Sequence[str]) -> None:
    """Refuse, before anything is asked, activities that make more pairs, with start and end, than can be counted."""
    if (len(activities) + 1) ** 2 > LARGEST_SIZE:
        raise ParameterError(
            "relation-pairs-too-many",
            parameter="activities",
            number=len(activities),
            isqrt=math.isqrt(LARGEST_SIZE) - 1,
        )


def drawn_number(most: int, rate: float, random: np.random.Generator) -> int:
    """I from 0, ..., most with P(i) ~ exp(-rate i): the exponential mechanism over how many harmful ones enter."""
    mass = -math.expm1(-rate * (most + 1))
    return min(most, int(-math.log1p(-random.random() * mass) / rate))
