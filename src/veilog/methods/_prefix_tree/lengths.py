"""Public numbers that follow the data, found with a little of the budget: bounds and depths."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from veilog._typing import IntArray
from veilog.logs.variants import Sequences
from veilog.privacy.contributions import Features
from veilog.privacy.curator import Curator


def steps_to(most: int) -> IntArray:
    """1, 2, ..., 8, 10, 12, 15, ..., growing by a quarter, up to ``most``: a noisy histogram over few bins."""
    steps = [1]
    while steps[-1] < most:
        steps.append(min(max(steps[-1] + 1, steps[-1] * 5 // 4), most))
    return np.array(steps)


def length_histogram(curator: Curator, epsilon: Fraction, most: int | None = None) -> tuple[IntArray, IntArray]:
    """Steps, and the noisy number of cases whose events and end, counted together, are so many (rounded up); those with
    more than ``most`` are at the last step."""
    last = curator.max_length + 1
    last = last if most is None else min(last, most)
    return _histogram(curator, lambda s: s.lengths + 1, last, epsilon, "lengths-of-traces")


def number_histogram(
    curator: Curator, features: Features, most: int, epsilon: Fraction, purpose: str
) -> tuple[IntArray, IntArray]:
    """Steps, and the noisy number of cases that have so many features (rounded up)."""

    def number(sequences: Sequences) -> IntArray:
        return np.bincount(np.asarray(features(sequences)[0]), minlength=len(sequences))

    return _histogram(curator, number, most, epsilon, purpose)


def quantile(steps: IntArray, counts: IntArray, part: float) -> int:
    """A step that about ``part`` of the cases do not exceed."""
    reached = np.cumsum(np.maximum(counts, 0))
    return int(steps[np.searchsorted(reached, part * reached[-1])])


def _histogram(
    curator: Curator, measure: Callable[[Sequences], IntArray], most: int, epsilon: Fraction, purpose: str
) -> tuple[IntArray, IntArray]:
    steps = steps_to(most)

    def assign(sequences: Sequences) -> IntArray:
        return np.minimum(np.searchsorted(steps, measure(sequences)), len(steps) - 1)

    return steps, curator.histogram(assign, len(steps), epsilon, purpose=purpose)
