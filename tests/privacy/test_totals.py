"""What noise alone hardly ever exceeds: a level for noise of any size."""

import math
from fractions import Fraction

import numpy as np
import pytest

from veilog.privacy.mechanisms.mechanism import Laplace
from veilog.privacy.totals import AnswerTotal, exceeded_by_noise


@pytest.mark.parametrize("scale", [Fraction(1, 1000), Fraction(1, 3), Fraction(10), Fraction(10**9), Fraction(10**17)])
def test_noise_of_any_size_has_a_level(scale: Fraction) -> None:
    """That of one discrete Laplace is known: P(X > t) = exp(-d t) / (1 + exp(d)) for whole t >= 0 and d = 1 / scale."""
    level = exceeded_by_noise([AnswerTotal(0, 1, Laplace(scale), True)], 0.01)
    assert math.isfinite(level)
    decay = float(1 / scale)
    exact = max(0, math.ceil(-(math.log(0.01) + np.logaddexp(0, decay)) / decay))
    assert abs(level - exact) <= 1 + 0.1 * exact
