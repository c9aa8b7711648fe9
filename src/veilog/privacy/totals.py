"""Totals of noisy answers, and whether they could be noise alone.

Where there are no cases, every exact answer is 0, and the sum of the numbers of an answer is the sum of independent
noises of a known law. An answer that exceeds what such a sum exceeds once in ``1 / rate`` runs is no noise alone.

Privacy: all of this is computed from noisy answers, so it is post-processing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from veilog.privacy.mechanisms.mechanism import DiscreteGaussian, GaussianRounds, Laplace

__all__ = ["MISSED", "Totals", "exceeded_by_noise"]

MISSED = 0.01
"""The part of releases of no cases at all, at most, of which it is not noticed that they are noise alone."""
_STEPS = np.linspace(0.005, 0.995, 199)


@dataclass
class Totals:
    """The totals of the answers so far, each with the level that noise alone hardly ever exceeds."""

    answers: list[tuple[int, Laplace | GaussianRounds, int]] = field(default_factory=list)
    """Of each answer the sum of its numbers, the noise of each of them, and how many they are."""

    def add(self, total: int, noise: Laplace | GaussianRounds, numbers: int) -> None:
        """Note an answer whose exact numbers are at least 0, and are all 0 where there are no cases."""
        self.answers.append((total, noise, numbers))

    @property
    def noise_only(self) -> bool | None:
        """Whether no answer stands out of its noise; None where none was asked for that could.

        Each of k answers has a level that noise alone exceeds with a probability of at most ``MISSED / k``. So of
        releases of no cases at most the part ``MISSED`` is not noticed.
        """
        if not self.answers:
            return None
        rate = MISSED / len(self.answers)
        return all(total <= exceeded_by_noise(noise, numbers, rate) for total, noise, numbers in self.answers)


def exceeded_by_noise(noise: Laplace | GaussianRounds, numbers: int, rate: float) -> float:
    """Return a level that the sum of independent noises exceeds with a probability of at most ``rate``.

    It is Chernoff's: ``P(S > t) <= exp(numbers * K(s) - s t)`` for every s > 0, where K is the logarithm of the moment
    generating function. That of discrete Laplace noise is exact; discrete Gaussian noise is subgaussian with the
    parameter of its law (Canonne, Kamath, Steinke: The Discrete Gaussian for Differential Privacy, 2020). A single
    Laplace noise has its exact tail.
    """
    if isinstance(noise, GaussianRounds):
        (only,) = noise.noises
        return _of_gaussian(only, numbers, rate)
    decay = float(noise.decay)
    s, kept = decay * _STEPS, math.exp(-decay)
    moments = 2 * math.log1p(-kept) - np.log1p(-kept * np.exp(s)) - np.log1p(-kept * np.exp(-s))
    level = float(((numbers * moments - math.log(rate)) / s).min())
    return min(level, -math.log(rate * (1 + kept)) / decay) if numbers == 1 else level


def _of_gaussian(noise: DiscreteGaussian, numbers: int, rate: float) -> float:
    return math.sqrt(-2 * math.log(rate) * numbers * float(Fraction(noise.exact_variance)))
