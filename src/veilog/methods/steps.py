"""Public numbers that follow the lengths of traces, found with a little of the budget."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from veilog.logs.variants import Sequences
from veilog.privacy.curator import Curator

__all__ = ["length_histogram", "length_quantile"]

IntArray = npt.NDArray[np.int64]


def length_steps(longest: int) -> IntArray:
    """1, 2, ..., 8, 10, 12, 15, ..., growing by a quarter, up to the number of steps of the longest trace: its events
    and its end."""
    steps = [1]
    while steps[-1] < longest + 1:
        steps.append(min(max(steps[-1] + 1, steps[-1] * 5 // 4), longest + 1))
    return np.array(steps)


def length_histogram(curator: Curator, epsilon: Fraction) -> tuple[IntArray, IntArray]:
    """Steps, and how many cases have so many (rounded up to a step), with noise."""
    steps = length_steps(curator.max_length)

    def assign(sequences: Sequences) -> IntArray:
        return np.searchsorted(steps, sequences.lengths + 1)

    return steps, curator.histogram(assign, len(steps), epsilon, purpose="lengths of traces")


def length_quantile(curator: Curator, epsilon: Fraction, part: float) -> int:
    """The number of steps within which about ``part`` of the traces have ended."""
    steps, counts = length_histogram(curator, epsilon)
    return quantile(steps, counts, part)


def quantile(steps: IntArray, counts: IntArray, part: float) -> int:
    reached = np.cumsum(np.maximum(counts, 0))
    return int(steps[np.searchsorted(reached, part * reached[-1])])
