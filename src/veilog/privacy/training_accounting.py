"""What noised gradient steps cost: Poisson-sampled Gaussian mechanisms, composed with their privacy loss distributions.

A step takes every case with probability ``rate``, sums vectors of L2 norm at most C and adds Gaussian noise of standard
deviation ``noise_multiplier * C``. For logs that differ by one case, added or removed, that is the Poisson-subsampled
Gaussian mechanism (Abadi et al., "Deep Learning with Differential Privacy", CCS 2016; Mironov, Talwar, Zhang, "Renyi
Differential Privacy of the Sampled Gaussian Mechanism", 2019). Steps compose through their privacy loss distributions
(Koskela, Jälkö, Honkela, AISTATS 2020; Doroshenko et al., "Connect the Dots", PoPETs 2022), discretised so that the
epsilon found is an upper bound; the library dp-accounting does the sums.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from veilog.errors import ParameterError

__all__ = ["NoisedSteps", "calibrated", "composed_epsilon", "smallest_epsilon"]

MOST_STEPS = 10_000_000
LARGEST_NOISE = 1e7
"""Above this noise multiplier a whole log of millions is lost in the noise; nothing could be learned."""
LEAST_NOISE = 1e-2
"""With less there is no noise to speak of, and the accountant's sums would not end."""
_INTERVAL = 1e-4
_FINEST = 1e-8
_WIDER = 1.25
_TOLERANCE = 1e-4


@dataclass(frozen=True)
class NoisedSteps:
    """A number of equal steps: who is sampled, how much noise is added and how often."""

    name: str
    rate: float
    """Probability with which each case takes part in a step, independently of all others."""
    noise_multiplier: float
    """Standard deviation of the noise, as a multiple of the clipping bound."""
    steps: int

    def __post_init__(self) -> None:
        if not 0 < self.rate <= 1:
            raise ParameterError(f"The sampling rate must be above 0 and at most 1, not {self.rate}.", parameter="rate")
        if not 0 < self.noise_multiplier <= LARGEST_NOISE:
            raise ParameterError(
                f"The noise multiplier must be above 0 and at most {LARGEST_NOISE:g}, not {self.noise_multiplier}.",
                parameter="noise_multiplier",
            )
        if isinstance(self.steps, bool) or not isinstance(self.steps, int) or not 1 <= self.steps <= MOST_STEPS:
            raise ParameterError(
                f"The number of steps must be from 1 to {MOST_STEPS:,}, not {self.steps!r}.", parameter="steps"
            )

    def scaled(self, factor: float) -> NoisedSteps:
        """The same steps with ``factor`` times the noise."""
        return NoisedSteps(self.name, self.rate, self.noise_multiplier * factor, self.steps)

    @property
    def in_words(self) -> str:
        how = "all cases" if self.rate == 1 else f"Poisson sampling at rate {self.rate:.6g}"
        steps = "1 step" if self.steps == 1 else f"{self.steps} steps"
        return f"{self.name}: {steps}, {how}, noise multiplier {self.noise_multiplier:.6g}"

    def event(self, dp_accounting: Any) -> Any:
        """These steps in dp-accounting's words."""
        gaussian = dp_accounting.GaussianDpEvent(self.noise_multiplier)
        once = gaussian if self.rate == 1 else dp_accounting.PoissonSampledDpEvent(self.rate, gaussian)
        return dp_accounting.SelfComposedDpEvent(once, self.steps)


def composed_epsilon(parts: Iterable[NoisedSteps], delta: float | Fraction, *, about: float | None = None) -> float:
    """The epsilon that all the steps cost together at ``delta``: an upper bound, for adding or removing one case.

    ``about`` is the epsilon expected (estimated where it is not given): losses are told apart in steps of 1e-4 of it.
    The bound holds whatever it is; far off it is loose, or takes long.
    """
    given = tuple(parts)
    estimate = _estimate(given, float(delta))
    expected = estimate if about is None else max(about, estimate / 100)
    # Imported here: it takes a second, and only training needs it.
    import dp_accounting
    from dp_accounting import pld

    accountant = pld.PLDAccountant(
        dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE,
        value_discretization_interval=_INTERVAL * max(expected, _FINEST),
    )
    for part in given:
        accountant.compose(part.event(dp_accounting))
    return float(accountant.get_epsilon(float(delta)))


def calibrated(parts: Iterable[NoisedSteps], epsilon: Fraction, delta: Fraction) -> tuple[NoisedSteps, ...]:
    """The parts with their noise scaled by the smallest factor (to a relative 1e-4) at which they cost ``epsilon``.

    The accountant's epsilon of what comes back is at most ``epsilon``, so charging ``epsilon`` never understates.
    """
    given = tuple(parts)
    budget = float(epsilon)
    if not 0 < delta < 1:
        raise ParameterError("Noised training needs a delta above 0 and below 1.", parameter="delta")

    def affordable(factor: float) -> bool:
        return composed_epsilon([part.scaled(factor) for part in given], delta, about=budget) <= budget

    low, high = _bracket(affordable, _guess(given, budget, float(delta)), given)
    while high / low > 1 + _TOLERANCE:
        middle = math.sqrt(low * high)
        if affordable(middle):
            high = middle
        else:
            low = middle
    return tuple(part.scaled(high) for part in given)


def _strength(parts: tuple[NoisedSteps, ...]) -> float:
    """The m for which the steps are about a Gaussian mechanism of noise 1/m: sampling at rate q makes noise s count as
    noise s/q."""
    return math.sqrt(sum(part.steps * (part.rate / part.noise_multiplier) ** 2 for part in parts))


def _estimate(parts: tuple[NoisedSteps, ...], delta: float) -> float:
    """About what the steps cost: ``m**2 / 2 + m sqrt(2 ln(1/delta))``."""
    strength = _strength(parts)
    return min(strength**2 / 2 + strength * math.sqrt(2 * math.log(1 / delta)), 1e3)


def _guess(parts: tuple[NoisedSteps, ...], epsilon: float, delta: float) -> float:
    """About the factor that is needed: where :func:`_estimate` gives ``epsilon``."""
    tail = math.sqrt(2 * math.log(1 / delta))
    return _strength(parts) * (tail + math.sqrt(tail**2 + 2 * epsilon)) / (2 * epsilon)


def _bracket(affordable: Callable[[float], bool], guess: float, parts: tuple[NoisedSteps, ...]) -> tuple[float, float]:
    """Two factors of which only the larger is affordable, or the smallest that is looked at."""
    most = LARGEST_NOISE / max(part.noise_multiplier for part in parts)
    least = LEAST_NOISE / min(part.noise_multiplier for part in parts)
    high = min(max(guess, least), most)
    if affordable(high):
        low = high
        while affordable(low):
            if low == least:
                return least, least
            high, low = low, max(low / _WIDER, least)
        return low, high
    while True:
        if high == most:
            raise ParameterError(
                "No training step is affordable at this epsilon and delta.",
                parameter="epsilon",
                advice="Raise epsilon or delta, or lower the number of steps.",
            )
        low, high = high, min(high * _WIDER, most)
        if affordable(high):
            return low, high


def smallest_epsilon(parts: Iterable[NoisedSteps], delta: Fraction, noise: float) -> float:
    """What the parts cost when the least noisy of them has the noise multiplier ``noise``: with a smaller epsilon the
    noise would have to exceed it."""
    given = tuple(parts)
    smallest = min(part.noise_multiplier for part in given)
    return composed_epsilon([part.scaled(noise / smallest) for part in given], delta)
