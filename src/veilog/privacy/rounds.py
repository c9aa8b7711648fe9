"""Several histograms that are paid for together: each case is counted once in each, with discrete Gaussian noise.

Questions that each cost epsilon_i add up to the sum of these. Gaussian noise adds up in squares, which costs less from
some ten questions on, where a delta is given. How many questions there are, and the noise of each, is fixed before the
first; what the next one asks may depend on the answers so far.

*What they cost.* A histogram counts a case in at most one bin, so a case changes one count by 1. With Gaussian noise of
deviation s_i it is the Gaussian mechanism of ``mu_i = 1 / s_i``, whatever was asked before, and all of them together
cost no more than one of ``mu = sqrt(sum mu_i**2)`` (Dong, Roth, Su, "Gaussian Differential Privacy", JRSS B 2022,
theorem 3.2 and corollary 3.3, for adaptively chosen questions). That is (epsilon, delta)-differentially private exactly
if (Balle, Wang, "Improving the Gaussian mechanism for differential privacy", ICML 2018, theorem 8)

    delta >= Phi(mu / 2 - epsilon / mu) - exp(epsilon) Phi(-mu / 2 - epsilon / mu).

*Sums of vectors.* Where a case changes an answer by a vector of integers of L2 norm up to B (``by``), noise of
deviation s on each number makes it the Gaussian mechanism of ``mu = B / s``: in the direction of that vector it is as
above, and in the others both logs have the same. Of several such questions B is the same, and the deviations in its
units are fixed before the first (:class:`veilog.privacy.events.EventRounds`), so each costs its ``mu_i = B / s_i``
whatever it asks; how many of its own units B stands for in a question may follow from earlier answers.

*The noise is discrete.* It is of ``N_Z(0, s_i**2 + 4)``, which is Gaussian noise of deviation s_i rounded at random to
integers, but for a factor: steps 1 and 2 of :mod:`veilog.privacy.training.accounting` with 4 in place of 16, where
``h = 2.01 exp(-8 pi**2) < 1.1e-34``. Step 3, for at most 2**61 bins in each of 1000 histograms: ``6 h n < 1.6e-12``. So
the strength is found for an epsilon that is smaller by a millionth of it, which is at least 1e-9, and for a delta that
is smaller by a millionth of it. Of the strength itself a millionth is kept back, which is more than floats err.

Bins above a threshold alone are post-processing of all of them (proof: :mod:`veilog.privacy.histograms`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

from veilog.errors import ParameterError
from veilog.logs.variants import Variants
from veilog.privacy.histograms import Assign, SparseHistogram, bins_above, cases_in_bins, check_size
from veilog.privacy.mechanisms.gaussian import LARGEST_VARIANCE_OF_TAILS
from veilog.privacy.mechanisms.mechanism import ROUNDED, DiscreteGaussian, GaussianRounds
from veilog.privacy.mechanisms.noise import Randomness

MOST_ROUNDS = 1000
LEAST_EPSILON = Fraction(1, 1000)
LEAST_DELTA = Fraction(1, 10**50)
_KEPT_BACK = 1e-6


def gaussian_rounds(weights: Sequence[Fraction], epsilon: Fraction, delta: Fraction, *, by: int = 1) -> GaussianRounds:
    """Return the noise of a question for each weight, the squared strength shared out by the weights, such that all
    together are (epsilon, delta)-differentially private where a case changes each answer by at most ``by`` in the L2
    norm: 1 in a histogram."""
    if not 1 <= len(weights) <= MOST_ROUNDS or any(weight <= 0 for weight in weights):
        raise ParameterError(f"There are 1 to {MOST_ROUNDS} rounds, with weights above 0.", parameter="weights")
    if epsilon < LEAST_EPSILON or not LEAST_DELTA <= delta < 1:
        raise ParameterError(
            f"Questions composed together need an epsilon from {float(LEAST_EPSILON):g} on and a delta from "
            f"{float(LEAST_DELTA):g} on.",
            parameter="epsilon",
        )
    square = Fraction(strength_within(float(epsilon), float(delta))) ** 2
    whole = sum(weights, start=Fraction(0))
    return GaussianRounds(
        tuple(DiscreteGaussian(by**2 * whole / (weight * square) + ROUNDED) for weight in weights), by
    )


def histogram_rounds(weights: Sequence[Fraction], epsilon: Fraction, delta: Fraction) -> GaussianRounds:
    """Return the noise of a histogram for each weight, of which the bins above a threshold can be drawn alone."""
    paid = gaussian_rounds(weights, epsilon, delta)
    if max(noise.exact_variance for noise in paid.noises) > LARGEST_VARIANCE_OF_TAILS:
        raise ParameterError("At this epsilon and delta the noise would be too wide to draw.", parameter="epsilon")
    return paid


def rounds_pay(weights: Sequence[Fraction], epsilon: Fraction, delta: Fraction) -> bool:
    """Return whether Gaussian noise is narrower than discrete Laplace noise of the shares of epsilon, from public
    numbers only: whether the product of its variances is smaller."""
    if not delta:
        return False
    try:
        noises = histogram_rounds(weights, epsilon, delta).noises
    except ParameterError:  # nothing that could be paid for so
        return False
    whole = float(sum(weights, start=Fraction(0)))
    apart = [2 * math.log(float(weight) / whole * float(epsilon)) - math.log(2) for weight in weights]
    return sum(math.log(noise.variance) for noise in noises) < -sum(apart)


@lru_cache(maxsize=256)
def strength_within(epsilon: float, delta: float) -> float:
    """Return a mu, hardly below the largest, whose Gaussian mechanism is (epsilon, delta)-differentially private."""
    within, failure = epsilon * (1 - _KEPT_BACK), math.log(delta * (1 - _KEPT_BACK))
    low, high = 0.0, 1.0
    while _log_delta(within, high) <= failure:
        low, high = high, 2 * high
    while high - low > high * 1e-12:
        middle = (low + high) / 2
        low, high = (middle, high) if _log_delta(within, middle) <= failure else (low, middle)
    return low * (1 - _KEPT_BACK)


def _log_delta(epsilon: float, mu: float) -> float:
    """The logarithm of the delta of a Gaussian mechanism at epsilon."""
    from scipy.special import log_ndtr  # here: it is of use with a delta only, and takes a while to import

    inside = float(log_ndtr(mu / 2 - epsilon / mu))
    lost = float(epsilon + log_ndtr(-mu / 2 - epsilon / mu)) - inside
    return inside + math.log(-math.expm1(lost)) if lost < 0 else -math.inf


class Rounds:
    """The histograms that were paid for. One beyond them is refused.

    Opened by :meth:`veilog.privacy.curator.Curator.rounds`, which charges all of them before the first.
    """

    def __init__(self, variants: Variants, paid: GaussianRounds, randomness: Randomness) -> None:
        self._variants, self._paid, self._randomness = variants, paid, randomness
        self._asked = 0

    @property
    def asked(self) -> int:
        """How many were asked."""
        return self._asked

    @property
    def noises(self) -> tuple[DiscreteGaussian, ...]:
        """The noise of each histogram."""
        return self._paid.noises

    def histogram(self, assign: Assign, size: int, *, keep_above: int) -> SparseHistogram:
        """Return the next histogram: of bins 0, ..., size-1 those whose noisy number of cases exceeds ``keep_above``.

        Sensitivity: ``assign`` maps each sequence, by itself, to one bin or to none, so a case changes one count by 1.
        It was charged with the others.
        """
        if self._asked == len(self.noises):
            raise ParameterError(f"All {self._asked} histograms that were paid for were asked.", parameter="rounds")
        noise = self.noises[self._asked]
        check_size(size, noise, keep_above)
        self._asked += 1
        assigned, weights = cases_in_bins(self._variants, assign, size)
        return bins_above(keep_above, assigned, weights, size, noise, self._randomness)
