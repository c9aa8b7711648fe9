"""Mechanisms and sensitivities as values: what says how wide noise is, draws it and is named in the charge for it.

A question makes its mechanism from its epsilon, charges it
(:meth:`veilog.privacy.account.account.ChargeAccount.charge`) and draws from what it charged. Words for people are made
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
"""L0: so many counts, each of them by 1. L-infinity: every number of one row by so much, and no other row. each: every
number of the answer by so much."""
Bounded = Literal["by itself", "clipped", "split"]
"""What keeps a case from changing more: what is asked, or that its part is clipped, or split among what it has."""

MOST_STEPS = 10_000_000
ROUNDED = 4
"""The variance beyond the Gaussian's, with which discrete noise of rounds is continuous noise rounded at random."""
LARGEST_NOISE = 1e7
"""Above this noise multiplier a whole log of millions is lost in the noise; nothing could be learned."""


@dataclass(frozen=True)
class Sensitivity:
    """By how much one case, added or removed, can change the exact answer, in which norm."""

    by: tuple[Fraction, ...]
    """One number; of a training one for each of its parts."""
    norm: Norm
    bounded: Bounded = "by itself"

    @staticmethod
    def of(by: int | Fraction, norm: Norm = "L1", bounded: Bounded = "by itself") -> Sensitivity:
        """Return that of a question with one answer."""
        return Sensitivity((Fraction(by),), norm, bounded)


@dataclass(frozen=True)
class Laplace:
    """Discrete Laplace noise on the multiples of ``1/grid``: ``P(x)`` is proportional to ``exp(-|x| / scale)``.

    Added to multiples of ``1/grid`` that one case changes by at most S in the L1 norm, an independent number to each,
    it costs epsilon = S / scale (proof: :func:`veilog.privacy.mechanisms.noise.discrete_laplace`).
    """

    scale: Fraction
    grid: int = 1

    @property
    def decay(self) -> Fraction:
        """How fast it falls in units of ``1/grid``: n of them have a probability proportional to ``exp(-decay n)``."""
        return 1 / (self.scale * self.grid)

    @property
    def variance(self) -> float:
        """Return the variance, in units of ``1/grid``: ``2 a / (1 - a)**2`` with ``a = exp(-decay)``; never quite 0."""
        decay = float(self.decay)
        return max(2 * math.exp(-decay) / math.expm1(-decay) ** 2, 1e-12)

    def draw(self, n: int, source: noise.Randomness) -> IntArray:
        """Return ``n`` independent numbers, in units of ``1/grid``."""
        return noise.discrete_laplace(self.decay, n, source)

    def tail(self, above: int) -> Real:
        """Return the probability of noise above ``above`` units, which are 0 or more."""
        return noise.laplace_tail(self.decay, above)

    def exceeding(self, above: int, n: int, source: noise.Randomness) -> IntArray:
        """Return ``n`` independent numbers of those above ``above``: what is beyond is geometric."""
        return above + 1 + noise.geometric(self.decay, n, source)


@dataclass(frozen=True)
class CubeNoise:
    """Discrete noise on rows of ``width`` multiples of ``1/grid``: ``P(z)`` is proportional to
    ``exp(-max |z_i| / scale)``, for each row by itself.

    One case changes a single row, and every number of it by at most S. So the largest ``|z_i|`` of that row differs by
    at most S, and what comes out is at most ``exp(S / scale)`` times as likely: it costs epsilon = S / scale, however
    wide the row is (the K-norm mechanism of the cube; Hardt, Talwar, "On the geometry of differential privacy", STOC
    2010). Each number varies about half as much as with Laplace noise that costs as much.
    """

    scale: Fraction
    width: int
    grid: int = 1

    @property
    def decay(self) -> Fraction:
        """How fast it falls in units of ``1/grid``."""
        return 1 / (self.scale * self.grid)

    @property
    def variance(self) -> float:
        """Return about the variance of each number: that of the noise before it is made whole."""
        return (self.width + 1) * (self.width + 2) / 3 * float(self.scale) ** 2

    def draw(self, n: int, source: noise.Randomness) -> IntArray:
        """Return ``n`` numbers in units of ``1/grid``, one row after the other."""
        return noise.cubes(self.decay, self.width, n // self.width, source).reshape(-1)


@dataclass(frozen=True)
class DiscreteGaussian:
    """Discrete Gaussian noise on the integers: ``P(x)`` is proportional to ``exp(-x**2 / (2 variance))``."""

    exact_variance: Fraction
    """The parameter of the law, which is hardly more than its variance."""

    @property
    def variance(self) -> float:
        """Return the variance."""
        return float(self.exact_variance)

    def draw(self, n: int, source: noise.Randomness) -> IntArray:
        """Return ``n`` independent numbers."""
        return gaussian.discrete_gaussian(self.exact_variance, n, source)

    def tail(self, above: int) -> Real:
        """Return the probability of noise above ``above``, which is 0 or more."""
        return gaussian.tail(self.exact_variance, above)

    def exceeding(self, above: int, n: int, source: noise.Randomness) -> IntArray:
        """Return ``n`` independent numbers of those above ``above``."""
        return gaussian.exceeding(self.exact_variance, above, n, source)


@dataclass(frozen=True)
class GaussianRounds:
    """Several questions that were charged together, each with noise of its own that was fixed before the first.

    What they cost together is proved in :mod:`veilog.privacy.histograms`.
    """

    noises: tuple[DiscreteGaussian, ...]
    by: int = 1
    """By how much a case changes the answer to each, at most, in the L2 norm; in units of the noise."""

    @property
    def strength(self) -> float:
        """Return the mu of the Gaussian mechanism that all of them together cost no more than."""
        return self.by * math.sqrt(sum(1 / float(noise.exact_variance - ROUNDED) for noise in self.noises))

    def draw(self, n: int, source: noise.Randomness) -> IntArray:
        """Return ``n`` independent numbers of the noise of the only question."""
        (only,) = self.noises
        return only.draw(n, source)


@dataclass(frozen=True)
class KTruncatedGeometric:
    """k-truncated symmetric geometric noise (k-TSGD): ``P(x)`` is proportional to ``exp(-epsilon |x|)`` on [-k, k]."""

    epsilon: Fraction
    k: int

    @staticmethod
    def of(epsilon: Fraction, delta: Fraction) -> KTruncatedGeometric:
        """Return that with the smallest k that has ``P(k) <= delta``."""
        return KTruncatedGeometric(epsilon, noise.tsgd_bound(epsilon, delta))

    @property
    def delta(self) -> Fraction:
        """Return ``P(k)``, rounded up: no more than what k was found for, often far less, k being a whole number."""
        return noise.tsgd_failure(self.epsilon, self.k)

    def draw(self, n: int, source: noise.Randomness) -> IntArray:
        """Return ``n`` independent numbers."""
        return noise.tsgd_noise(self.epsilon, self.k, n, source)


@dataclass(frozen=True)
class Thresholded:
    """Noise on what cases have, of which that alone is released which comes out above a threshold.

    Only where the guarantee rests on the threshold. Bins that are left out by a noisy count that was paid for in full
    are post-processing: their mechanism is the noise.
    """

    noise: Laplace | KTruncatedGeometric
    above: int
    """In the units in which the noise is drawn."""


@dataclass(frozen=True)
class NoisyMaximum:
    """The place of the largest of several whole numbers, each with independent discrete Laplace noise; of equal ones
    the first. The noisy numbers themselves are not released.

    Where one case changes each of them by at most S, however many they are, it costs epsilon = 2 S / scale. Fix the
    noise of all but the i-th: then i comes out iff its noise is at least a whole number t, which those numbers and that
    noise decide. One case more moves t by at most 2 S, and ``P(noise >= t + 2 S) >= exp(-2 S / scale) P(noise >= t)``,
    as discrete Laplace noise falls by no more than ``exp(-1 / scale)`` from one number to the next, also where it still
    rises (report noisy max; Dwork, Roth, "The Algorithmic Foundations of Differential Privacy", 2014, claim 3.9).
    """

    noise: Laplace

    def largest(self, scores: IntArray, source: Randomness) -> int:
        """Return the place of the largest noisy number."""
        return int(np.argmax(scores + self.noise.draw(len(scores), source)))


@dataclass(frozen=True)
class NoisedSteps:
    """A number of equal steps of a training: who is sampled, how much Gaussian noise is added and how often."""

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
    """The steps of a training, each with discrete Gaussian noise on the sum of a Poisson sample's clipped gradients.

    What they cost together is composed in :mod:`veilog.privacy.mechanisms.accountant`.
    """

    parts: tuple[NoisedSteps, ...]


@dataclass(frozen=True)
class Subsampled:
    """A mechanism that was asked of a Poisson sample of the cases (see :mod:`veilog.privacy.mechanisms.sampling`)."""

    mechanism: Mechanism
    rate: Fraction
    epsilon: Fraction
    """What it costs a case of the sample."""


@dataclass(frozen=True)
class Stated:
    """What only words are known of, such as the mechanism of a charge that was read from a file."""

    words: str | Message


Mechanism = (
    Laplace | CubeNoise | Thresholded | NoisyMaximum | GaussianRounds | DiscreteGaussianSteps | Subsampled | Stated
)
