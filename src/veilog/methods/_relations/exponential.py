"""The exponential mechanism as SaCoFa and SaPa use it: how many harmful candidates enter."""

from __future__ import annotations

import math

import numpy as np

__all__ = ["drawn_number"]


def drawn_number(most: int, rate: float, random: np.random.Generator) -> int:
    """I from 0, ..., most with P(i) ~ exp(-rate i): the exponential mechanism over how many harmful ones enter."""
    mass = -math.expm1(-rate * (most + 1))
    return min(most, int(-math.log1p(-random.random() * mass) / rate))
