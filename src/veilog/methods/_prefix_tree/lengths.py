"""Public numbers that follow the data, found with a little of the budget: bounds and depths."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from veilog._typing import IntArray
from veilog.logs.variants import Sequences
from veilog.messages import Message
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


def length_quantile(curator: Curator, epsilon: Fraction, part: float, most: int) -> int:
    """The number of steps, up to ``most``, within which about ``part`` of the traces have ended."""
    return quantile(*length_histogram(curator, epsilon, most), part)


def noisy_quantile(
    curator: Curator,
    measure: Callable[[Sequences], IntArray],
    most: int,
    epsilon: Fraction,
    part: float,
    purpose: str | Message,
) -> int:
    """A step that about ``part`` of the cases do not exceed in a measure of up to ``most``."""
    return quantile(*_histogram(curator, measure, most, epsilon, purpose), part)


def quantile(steps: IntArray, counts: IntArray, part: float) -> int:
    reached = np.cumsum(np.maximum(counts, 0))
    return int(steps[np.searchsorted(reached, part * reached[-1])])


def _histogram(
    curator: Curator, measure: Callable[[Sequences], IntArray], most: int, epsilon: Fraction, purpose: str | Message
) -> tuple[IntArray, IntArray]:
    steps = steps_to(most)

    def assign(sequences: Sequences) -> IntArray:
        return np.minimum(np.searchsorted(steps, measure(sequences)), len(steps) - 1)

    return steps, curator.histogram(assign, len(steps), epsilon, purpose=purpose)
