"""Totals are compared with the level that noise of any size hardly ever exceeds."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from test_case_questions import noise_off

from veilog.logs.variants import Sequences, Variants
from veilog.privacy.curator import Curator
from veilog.privacy.histograms import AnswerTotal, exceeded_by_noise
from veilog.privacy.mechanisms.mechanism import Laplace


@pytest.mark.parametrize("scale", [Fraction(1, 1000), Fraction(1, 3), Fraction(10), Fraction(10**9), Fraction(10**17)])
def test_noise_of_any_size_has_a_level(scale: Fraction) -> None:
    """Noise of any size has a level, by P(X > t) = exp(-d t) / (1 + exp(d))."""
    level = exceeded_by_noise([AnswerTotal(0, 1, Laplace(scale), True)], 0.01)
    assert math.isfinite(level)
    decay = float(1 / scale)
    exact = max(0, math.ceil(-(math.log(0.01) + np.logaddexp(0, decay)) / decay))
    assert abs(level - exact) <= 1 + 0.1 * exact


def lengths(block: Sequences) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return features whose first sum counts the events of all cases."""
    rows = np.arange(len(block))
    return rows, np.zeros(len(block), dtype=np.int64), block.lengths


ASKED: dict[str, tuple[Callable[[Curator], Any], int, int, bool]] = {
    "count": (lambda curator: curator.count("1/2"), 7, 1, True),
    "histogram": (lambda curator: curator.histogram(lambda block: block.lengths, 3, "1/2"), 7, 3, True),
    "sums": (lambda curator: curator.sums(lengths, 2, 5, "1/2", resolution=8), 88, 2, False),
    "euclidean sums": (lambda curator: curator.sums(lengths, 2, 5, "1/2", delta="1e-6"), 11, 2, False),
    "count of a sample": (lambda curator: curator.subsample(Fraction(1)).count("1/2"), 7, 1, True),
}
"""Queries with their exact total, the number of their answers, and True if these count cases."""


@pytest.mark.parametrize("question", ASKED)
def test_a_noisy_answer_is_noted_with_its_total_its_numbers_and_its_noise(question: str) -> None:
    ask, total, numbers, counts_cases = ASKED[question]
    curator = Curator(Variants.from_dict({("a",): 3, ("a", "b"): 4}))
    with noise_off():
        ask(curator)
    (charge,) = curator.charges
    drawn = getattr(charge.mechanism, "mechanism", charge.mechanism)  # of a sample: that of its own charge
    assert curator._totals.answers == [AnswerTotal(total, numbers, drawn, counts_cases)]


@pytest.mark.parametrize("question", ["count", "histogram", "sums"])
@pytest.mark.parametrize(("cases", "times", "alone"), [(0, 1, True), (6, 1, True), (6, 9, False), (200, 1, False)])
def test_answers_that_count_cases_stand_out_of_their_noise_together(
    question: str, cases: int, times: int, alone: bool
) -> None:
    """Six cases stand out of the noise of nine counts together, but not of one alone."""
    curator = Curator(Variants.from_dict({("a",): cases} if cases else {}))
    assert curator.noise_only is None
    with noise_off():
        for _ in range(times):
            ASKED[question][0](curator)
    assert curator.noise_only is (alone or (question == "sums" and cases < 200))
