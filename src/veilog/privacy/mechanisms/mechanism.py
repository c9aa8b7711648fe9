"""Mechanisms and sensitivities as frozen values, which a charge names.

A mechanism has the width of its noise and draws it. A query makes its mechanism from its epsilon, charges it
(:meth:`veilog.privacy.account.account.ChargeAccount.charge`) and draws from the charged one. Words for people are made
of these values where they are shown (:mod:`veilog.privacy.account.guarantee`). They are frozen, as the events of
dp-accounting are, and there are no others.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
import numpy.typing as npt

from veilog.errors import ParameterError
from veilog.messages import Message
from veilog.privacy.mechanisms import gaussian, noise
from veilog.privacy.mechanisms.intervals import Real
from veilog.privacy.mechanisms.noise import Randomness

IntArray = npt.NDArray[np.int64]
Norm = Literal["L0", "L1", "L2", "L-infinity", "each"]
"""L0: so many counts, each of them by 1. L-infinity: every number of one row. each: every number of the answer."""
Bounded = Literal["by itself", "clipped", "split"]
"""Reasons for the bound: the query by itself, clipping of a case's part, or its split among the case's items."""

MOST_STEPS = 10_000_000
ROUNDED = 4
"""Variance beyond the Gaussian's, at which discrete noise of rounds is continuous noise rounded at random."""
LARGEST_NOISE = 1e7
"""Largest noise multiplier: above it, noise drowns a log of millions, and nothing could be learned."""


@dataclass(frozen=True)
class Sensitivity:
    """Largest change of the exact answer by one case, added or removed, with its norm."""

    by: tuple[Fraction, ...]
    """One number; for a training, one for each of its parts."""
    norm: Norm
    bounded: Bounded = "by itself"

    @staticmethod
    def of(by: int | Fraction, norm: Norm = "L1", bounded: Bounded = "by itself") -> Sensitivity:
        """Return the sensitivity of a query with one answer."""
        return Sensitivity((Fraction(by),), norm, bounded)


@dataclass(frozen=True)
class Laplace:
    """Discrete Laplace noise on multiples of ``1/grid``, ~ ``exp(-|x| / scale)``.

    Added to multiples of ``1/grid`` that one case changes by at most S in the L1 norm, an independent number to each,
    its epsilon is S / scale (proof: :func:`veilog.privacy.mechanisms.noise.discrete_laplace`).
    """

    scale: Fraction
    grid: int = 1

    @property
    def decay(self) -> Fraction:
        """Decay in units of ``1/grid``: ``P(n)`` is proportional to ``exp(-decay n)``."""
        return 1 / (self.scale * self.grid)

    @property
    def variance(self) -> float:
        """Variance ``2 a / (1 - a)**2`` in units of ``1/grid``, a = exp(-decay); above 0."""
        decay = float(self.decay)
        return max(2 * math.exp(-decay) / math.expm1(-decay) ** 2, 1e-12)

    def draw(self, n: int, source: noise.Randomness) -> IntArray:
        """Return ``n`` independent numbers, in units of ``1/grid``."""
        return noise.discrete_laplace(self.decay, n, source)

    def tail(self, above: int) -> Real:
        """Return the probability of noise above ``above`` units, which are 0 or more."""
        return noise.laplace_tail(self.decay, above)

    def exceeding(self, above: int, n: int, source: noise.Randomness) -> IntArray:
        """Return ``n`` independent numbers above ``above``: the tail is geometric."""
        return above + 1 + noise.geometric(self.decay, n, source)


@dataclass(frozen=True)
class CubeNoise:
    """Discrete noise on rows: ``P(z)`` is proportional to ``exp(-max |z_i| / scale)``.

    A row has ``width`` multiples of ``1/grid``, and each row has its own noise. One case changes a single row, and
    every number of it by at most S. So the largest ``|z_i|`` of that row differs by at most S, and an answer is at most
    ``exp(S / scale)`` times as likely. The answer uses epsilon = S / scale, however wide the row is. This is the K-norm
    mechanism of the cube (Hardt, Talwar, "On the geometry of differential privacy", STOC 2010). Each number deviates
    about half as much as with Laplace noise for the same epsilon.
    """

    scale: Fraction
    width: int
    grid: int = 1

    @property
    def decay(self) -> Fraction:
        """Rate at which it falls in units of ``1/grid``."""
        return 1 / (self.scale * self.grid)

    @property
    def variance(self) -> float:
        """Variance of each number, about: that of the noise before it is made whole."""
        return (self.width + 1) * (self.width + 2) / 3 * float(self.scale) ** 2

    def draw(self, n: int, source: noise.Randomness) -> IntArray:
        """Return ``n`` numbers in units of ``1/grid``, one row after the other."""
        return noise.cubes(self.decay, self.width, n // self.width, source).reshape(-1)


@dataclass(frozen=True)
class DiscreteGaussian:
    """Discrete Gaussian noise on the integers, ~ ``exp(-x**2 / (2 variance))``."""

    exact_variance: Fraction
    """Parameter of the law, which is hardly more than its variance."""

    @property
    def variance(self) -> float:
        """Variance of the noise."""
        return float(self.exact_variance)

    def draw(self, n: int, source: noise.Randomness) -> IntArray:
        """Return ``n`` independent numbers."""
        return gaussian.discrete_gaussian(self.exact_variance, n, source)

    def tail(self, above: int) -> Real:
        """Return the probability of noise above ``above``, which is 0 or more."""
        return gaussian.tail(self.exact_variance, above)

    def exceeding(self, above: int, n: int, source: noise.Randomness) -> IntArray:
        """Return ``n`` independent numbers of those above ``above``."""
        return gaussian.draw_exceeding(self.exact_variance, above, n, source)


@dataclass(frozen=True)
class GaussianRounds:
    """Several queries charged together, each with noise of its own, fixed beforehand.

    Their epsilon together is proved in :mod:`veilog.privacy.histograms`.
    """

    noises: tuple[DiscreteGaussian, ...]
    by: int = 1
    """Largest change of each answer by a case in the L2 norm, in units of the noise."""

    @property
    def strength(self) -> float:
        """The mu of a Gaussian mechanism that dominates all queries together."""
        return self.by * math.sqrt(sum(1 / float(noise.exact_variance - ROUNDED) for noise in self.noises))

    def draw(self, n: int, source: noise.Randomness) -> IntArray:
        """Return ``n`` independent numbers of the noise of the only query."""
        (only,) = self.noises
        return only.draw(n, source)


@dataclass(frozen=True)
class KTruncatedGeometric:
    """k-TSGD noise: symmetric geometric, ~ ``exp(-epsilon |x|)`` on [-k, k]."""

    epsilon: Fraction
    k: int

    @staticmethod
    def of(epsilon: Fraction, delta: Fraction) -> KTruncatedGeometric:
        """Return the noise with the smallest k such that ``P(k) <= delta``."""
        return KTruncatedGeometric(epsilon, noise.tsgd_bound(epsilon, delta))

    @property
    def delta(self) -> Fraction:
        """``P(k)``, rounded up: at most the delta that k was found for, often far less."""
        return noise.tsgd_failure(self.epsilon, self.k)

    def draw(self, n: int, source: noise.Randomness) -> IntArray:
        """Return ``n`` independent numbers."""
        return noise.tsgd_noise(self.epsilon, self.k, n, source)


@dataclass(frozen=True)
class Thresholded:
    """Noise on values of cases, of which only those above a threshold are released.

    For guarantees that rest on the threshold. Leaving out bins by a noisy count that was charged in full is
    post-processing: the mechanism of such bins is the noise.
    """

    noise: Laplace | KTruncatedGeometric
    above: int
    """Threshold, in the units in which the noise is drawn."""


@dataclass(frozen=True)
class NoisyMaximum:
    """Place of the largest of several whole numbers, each with Laplace noise.

    Of equal ones it is the first. The noise is discrete and independent. The noisy numbers themselves are not released.

    Where one case changes each of them by at most S, however many they are, epsilon is 2 S / scale. Fix the noise of
    all but the i-th. Then i comes out iff its noise is at least a whole number t, which those numbers and that noise
    decide. One case more moves t by at most 2 S, and ``P(noise >= t + 2 S) >= exp(-2 S / scale) P(noise >= t)``. The
    reason is that discrete Laplace noise falls by no more than ``exp(-1 / scale)`` from one number to the next, also
    where it still rises (report noisy max; Dwork, Roth, "The Algorithmic Foundations of Differential Privacy", 2014,
    claim 3.9).
    """

    noise: Laplace

    def largest(self, scores: IntArray, source: Randomness) -> int:
        """Return the place of the largest noisy number."""
        return int(np.argmax(scores + self.noise.draw(len(scores), source)))


@dataclass(frozen=True)
class NoisedSteps:
    """Number of equal steps of a training, with sampling rate and Gaussian noise."""

    name: str
    rate: float
    """Probability with which each case takes part in a step, independently of all others."""
    noise_multiplier: float
    """Standard deviation of the noise, as a multiple of the clipping bound."""
    steps: int

    def __post_init__(self) -> None:
        if not 0 < self.rate <= 1:
            raise ParameterError("mechanism-sampling-rate-invalid", parameter="rate", rate=self.rate)
        if not 0 < self.noise_multiplier <= LARGEST_NOISE:
            raise ParameterError(
                "mechanism-noise-multiplier-invalid",
                parameter="noise_multiplier",
                largest_noise=LARGEST_NOISE,
                noise_multiplier=self.noise_multiplier,
            )
        if isinstance(self.steps, bool) or not isinstance(self.steps, int) or not 1 <= self.steps <= MOST_STEPS:
            raise ParameterError(
                "mechanism-steps-out-of-range", parameter="steps", most_steps=MOST_STEPS, steps=self.steps
            )

    def scaled(self, factor: float) -> NoisedSteps:
        """Return the same steps with ``factor`` times the noise."""
        return NoisedSteps(self.name, self.rate, self.noise_multiplier * factor, self.steps)


@dataclass(frozen=True)
class DiscreteGaussianSteps:
    """Steps of a training with discrete Gaussian noise on Poisson samples' gradients.

    The gradients are clipped and summed. :mod:`veilog.privacy.mechanisms.accountant` composes the steps.
    """

    parts: tuple[NoisedSteps, ...]


@dataclass(frozen=True)
class Subsampled:
    """Mechanism on a Poisson sample (:mod:`veilog.privacy.mechanisms.sampling`)."""

    mechanism: Mechanism
    rate: Fraction
    epsilon: Fraction
    """Epsilon that it uses for a case of the sample."""


@dataclass(frozen=True)
class Stated:
    """Mechanism or sensitivity in words only, e.g. of a charge read from a file."""

    words: str | Message


Mechanism = (
    Laplace | CubeNoise | Thresholded | NoisyMaximum | GaussianRounds | DiscreteGaussianSteps | Subsampled | Stated
)
