"""Totals of noisy answers, and whether they could be noise alone.

Where there are no cases, every exact answer is 0, and the sum of the numbers of an answer is the sum of independent
noises of a known law. An answer that exceeds what such a sum hardly ever exceeds is no noise alone.

Privacy: all of this is computed from noisy answers, so it is post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from veilog.privacy.mechanisms.mechanism import GaussianRounds, Laplace

FloatArray = npt.NDArray[np.float64]

MISSED = 0.01
"""About the part of releases of no cases at all of which it is not noticed that they are noise alone."""
_EACH = 0.2
"""Of it, for all answers by themselves; the rest is for those that count every case, taken together."""


class AnswerTotal(NamedTuple):
    """The sum of the numbers of an answer, how many they are, and the noise of each."""

    total: int
    numbers: int
    noise: Laplace | GaussianRounds
    counts_cases: bool

    @property
    def variance(self) -> float:
        """Return the variance of the total."""
        if isinstance(self.noise, GaussianRounds):
            return self.numbers * self.noise.noises[0].variance
        return self.numbers * self.noise.variance

    def moments(self, s: FloatArray) -> FloatArray:
        """Return the logarithm of the moment generating function of its noise; that of discrete Gaussian noise is
        bounded by that of the Gaussian with the parameter of its law."""
        if isinstance(self.noise, GaussianRounds):
            return self.numbers * s**2 * self.noise.noises[0].variance / 2
        decay = float(self.noise.decay)
        one = 2 * math.log(-math.expm1(-decay)) - np.log(-np.expm1(s - decay)) - np.log(-np.expm1(-s - decay))
        return self.numbers * np.asarray(one, dtype=np.float64)


@dataclass
class Totals:
    """The totals of the answers so far."""

    answers: list[AnswerTotal] = field(default_factory=list)

    def add(self, total: int, noise: Laplace | GaussianRounds, numbers: int, *, counts_cases: bool = False) -> None:
        """Note an answer whose exact numbers are at least 0, and are all 0 where there are no cases; in one that counts
        cases every case adds 1 to one of them, or to none."""
        self.answers.append(AnswerTotal(total, numbers, noise, counts_cases))

    @property
    def noise_only(self) -> bool | None:
        """Whether no answer stands out of its noise; None where none was asked for that could.

        Those that count cases are weighted by their variances. Each of k answers has a level of its own, too, which
        noise alone exceeds with a probability of about ``MISSED / 5 k``: so that none that stands out is overlooked
        beside others that leave most cases out.
        """
        counting = [answer for answer in self.answers if answer.counts_cases]
        if not self.answers:
            return None
        rate = _EACH * MISSED / len(self.answers)
        if any(answer.total > exceeded_by_noise([answer], rate) for answer in self.answers):
            return False
        together = sum(answer.total / answer.variance for answer in counting)
        return not counting or together <= exceeded_by_noise(counting, (1 - _EACH) * MISSED, weighted=True)


def exceeded_by_noise(answers: Sequence[AnswerTotal], rate: float, *, weighted: bool = False) -> float:
    """Return the level that the noise of these totals together exceeds with a probability of about ``rate``;
    ``weighted`` by the inverse of their variances.

    It is the saddlepoint approximation: ``P(S > K'(s)) = exp(K(s) - s K'(s) + l**2 / 2) Q(l)`` with
    ``l = s sqrt(K''(s))``, Q the upper tail of the normal distribution and K the logarithm of the moment generating
    function of the sum.
    """
    weights = [1 / answer.variance if weighted else 1.0 for answer in answers]
    ends = [
        float(answer.noise.decay) / weight
        for answer, weight in zip(answers, weights, strict=True)
        if isinstance(answer.noise, Laplace)
    ]
    spread = math.sqrt(sum(weight**2 * answer.variance for answer, weight in zip(answers, weights, strict=True)))
    end = min([*ends, 12 / spread])
    s = end * np.linspace(0.001, 0.9995, 2000)
    moments = np.sum([a.moments(s * weight) for a, weight in zip(answers, weights, strict=True)], axis=0)
    means = np.gradient(moments, s)
    far = s * np.sqrt(np.maximum(np.gradient(means, s), 0))
    tails = np.array([math.log(max(math.erfc(each / math.sqrt(2)) / 2, 1e-300)) for each in far.tolist()])
    rare = moments - s * means + far**2 / 2 + tails <= math.log(rate)
    return float(means[int(rare.argmax()) if rare.any() else -1])
