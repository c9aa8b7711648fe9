"""Composition of several releases at a delta, below the sum of their epsilons.

The sum of (epsilon_i, delta_i) holds whatever is chosen when. With a delta to spare, two smaller numbers are proved.

*Costs settled beforehand* (:func:`planned_epsilon`). The number of releases, and the largest (epsilon, delta) that each
may use, are settled before the first one. Which release uses which of them, and with which queries, may follow from
what was seen. Take an (epsilon, delta)-differentially private release, interactive or not. It can be computed from the
answer of randomised response that reveals the truth with a chance of delta (Kairouz, Oh, Viswanath, "The composition
theorem for differential privacy", 2015; Lyu, "Composition theorems for interactive differential privacy", 2022). So all
of them together can be computed from that many such answers. Their privacy losses are independent
(:mod:`veilog.privacy.account.losses`). Releases may be made in any order and at once. The queries of a release may
follow from its own answers. It therefore counts as the (epsilon, delta) that it claims, not as the noise of its
queries.

*Costs chosen after seeing answers* (:func:`renyi_of`, :func:`renyi_room`). Suppose that answers of earlier releases
decide how much a release may use. Then the distribution of the losses that were met is no bound. An adversary who goes
on only after lucky answers has met other losses than were drawn. A filter holds instead: a limit that is fixed before
and never exceeded (Rogers, Roth, Ullman, Vadhan, "Privacy odometers and filters", 2016). It is kept in Rényi
differential privacy of one order (Feldman, Zrnic, "Individual privacy accounting via a Rényi filter", 2021). Proof, for
neighbouring logs in either order. Let a > 1 be the order and D the likelihood ratio of the answers so far. Let r_t be
the cost of the t-th answer, which follows from the answers before it. Given these, the mean of the a-th power of its
ratio is at most exp((a - 1) r_t) under the second log. So D**a exp(-(a - 1) sum r_t) is a supermartingale that begins
at 1. As the sum never exceeds R, the mean of D**a is at most exp((a - 1) R) at the end, whatever was chosen. So all
answers together are (a, R)-Rényi private, hence (Canonne, Kamath, Steinke, "The discrete Gaussian for differential
privacy", 2020, proposition 12)

    epsilon = R + ln((a - 1) / a) - (ln delta + ln a) / (a - 1).

Releases that are made at the same time change nothing (Haney et al., "Concurrent composition for interactive
differential privacy with adaptive privacy-loss parameters", 2023). The order must be fixed before, too. The smallest of
the epsilons of all orders is a bound only for costs that were settled beforehand.

*The value of r*. An (epsilon, delta)-differentially private answer reveals the truth with a chance of delta, which is
counted by itself. But for that chance, its r is that of randomised response. This is at most ``order * epsilon**2 / 2``
(Bun, Steinke, "Concentrated differential privacy", 2016, proposition 3.3) and at most epsilon. It is superadditive, as
randomised response at e1 + e2 reveals all that two at e1 and e2 reveal. So the room reserved for a release at its whole
epsilon is never less than the sum over its answers one by one. Once a release is made, each of its answers therefore
counts for itself, however they were chosen. Discrete Laplace noise counts at exactly its own cost. Gaussian noise of
strength m counts at ``order * m**2 / 2``, where that is no more than randomised response at the answer's epsilon. Their
deltas count all the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import chain
from typing import Any

from veilog.errors import ParameterError
from veilog.privacy.account.guarantee import Charge
from veilog.privacy.account.losses import (
    LEAST_DELTA,
    EpsilonDeltaLoss,
    GaussianLoss,
    LaplaceLoss,
    composed_epsilon,
    losses_of,
)
from veilog.privacy.mechanisms.mechanism import Subsampled

Cost = tuple[Fraction, Fraction]

ORDERS = tuple(Fraction(round(100 * 1.02**i) + 2, 100) for i in range(420))
"""Orders that are tried, from about 1 to 4,000."""

_UP = 1 + 1e-9
_LEAST = 1e-13
"""Loss of precision of numbers of the size of 1 after many float operations."""
_FINEST = 1 << 100
_KEPT_BACK = Fraction(1, 10**9)
"""Margin above the extra cost of discrete Gaussian noise over randomly rounded continuous noise."""
_LARGEST_EXPONENT = 600


@lru_cache(maxsize=4096)
def renyi_of(epsilon: Fraction, order: Fraction) -> Fraction:
    """Return the Rényi cost of randomised response at this order, rounded up."""
    plain = min(epsilon, order * epsilon * epsilon / 2)
    a, e = float(order), float(epsilon)
    found = (a * e + math.log1p(math.exp((1 - 2 * a) * e)) - e - math.log1p(math.exp(-e))) / (a - 1)
    return _up(min(plain, Fraction(found * _UP + _LEAST * (1 + e))))


def renyi_room(epsilon: Fraction, delta: Fraction, order: Fraction) -> Fraction:
    """Return the Rényi room of this order within (epsilon, delta), rounded down."""
    bound = epsilon - _excess_epsilon(delta, order)
    return Fraction(math.floor(bound * _FINEST), _FINEST)


def renyi_epsilon(spent: Fraction, delta: Fraction, order: Fraction) -> Fraction:
    """Return the epsilon at this delta of a Rényi cost of this order, rounded up."""
    return max(Fraction(0), _up(spent + _excess_epsilon(delta, order)))


def best_order(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return the order at which most releases of a small epsilon fit (epsilon, delta)."""
    return max(ORDERS, key=lambda order: renyi_room(epsilon, delta, order) / order)


def _excess_epsilon(delta: Fraction, order: Fraction) -> Fraction:
    """Return the excess of the epsilon at a delta over a Rényi cost, rounded up."""
    a = float(order)
    found = math.log((a - 1) / a) - (_log(delta) + math.log(a)) / (a - 1)
    return Fraction(found + _LEAST * (1 + abs(found)) * 10)


def _log(value: Fraction) -> float:
    return math.log(value.numerator) - math.log(value.denominator)


def _up(value: Fraction) -> Fraction:
    return Fraction(math.ceil(value * _FINEST), _FINEST)


def planned_epsilon(costs: Mapping[Cost, int], delta: Fraction) -> Fraction | None:
    """Return a bound on the epsilon at ``delta`` of releases planned beforehand.

    ``costs`` counts the releases of each (epsilon, delta). The bound never exceeds the sum of their epsilons. None if
    the sum of their deltas exceeds ``delta``.
    """
    counted = {cost: number for cost, number in costs.items() if number}
    if sum(d * n for (_, d), n in counted.items()) > delta:
        return None
    total = sum((e * n for (e, _), n in counted.items()), Fraction(0))
    if delta < LEAST_DELTA or not total:
        return total
    try:
        found = composed_epsilon(
            chain.from_iterable([EpsilonDeltaLoss(*cost)] * n for cost, n in counted.items()), delta
        )
    except ParameterError:  # their deltas are all of it, or nearly so
        return total
    return min(total, found)


@dataclass(frozen=True)
class Answer:
    """Answer of a release: its (epsilon, delta), and its noise where known."""

    epsilon: Fraction
    delta: Fraction
    laplace: tuple[Fraction, int] | None = None
    """Decay and shift of discrete Laplace noise."""
    strength: float | None = None
    """Shift over deviation of Gaussian noise, of all its steps together."""

    @property
    def kept(self) -> list[object]:
        """The answer as a list for a file."""
        laplace = None if self.laplace is None else [str(self.laplace[0]), self.laplace[1]]
        return [str(self.epsilon), str(self.delta), laplace, self.strength]

    @staticmethod
    def of_kept(kept: list[Any]) -> Answer:
        """Return the answer from its list in a file."""
        epsilon, delta, laplace, strength = kept
        shifted = None if laplace is None else (Fraction(laplace[0]), int(laplace[1]))
        return Answer(Fraction(epsilon), Fraction(delta), shifted, None if strength is None else float(strength))

    def renyi(self, order: Fraction) -> Fraction:
        """Return the Rényi cost of this order, but for the chance that it fails.

        Its noise and the order decide which of its bounds counts; both are known before the answer is given.
        """
        as_pair = renyi_of(self.epsilon, order)
        if self.laplace is not None:
            return min(as_pair, _laplace_divergence(*self.laplace, order))
        if self.strength is not None:
            return min(as_pair, _up(order * Fraction(self.strength) ** 2 / 2 * (1 + _KEPT_BACK) + _KEPT_BACK))
        return as_pair


def answers_of(charges: Iterable[Charge]) -> tuple[tuple[Answer, int], ...] | None:
    """Return the charged answers with counts; None if they do not compose singly.

    Queries on a random sample of the cases do not compose one by one.
    """
    found: dict[Answer, int] = {}
    for charge in charges:
        if isinstance(charge.mechanism, Subsampled):
            return None
        losses = losses_of([charge])
        answer = Answer(charge.epsilon, charge.delta)
        match losses:
            case (LaplaceLoss(decay, by),):
                answer = replace(answer, laplace=(decay, by))
            case (GaussianLoss(), *_) if all(isinstance(loss, GaussianLoss) and loss.rate == 1 for loss in losses):
                squares = [loss.steps / loss.noise_multiplier**2 for loss in losses if isinstance(loss, GaussianLoss)]
                answer = replace(answer, strength=math.sqrt(sum(squares)))
        found[answer] = found.get(answer, 0) + 1
    return tuple(found.items())


@lru_cache(maxsize=4096)
def _laplace_divergence(decay: Fraction, by: int, order: Fraction) -> Fraction:
    """Return the Rényi cost of discrete Laplace noise against the same noise shifted.

    The loss is epsilon up to 0 and -epsilon from the shift on. It falls in equal steps between, so the mean of its
    exponential is a geometric series. It is the same in either order.
    """
    a, d, epsilon = float(order), float(decay), float(decay * by)
    if (a - 1) * epsilon > _LARGEST_EXPONENT:
        return decay * by
    whole, falls = math.exp((a - 1) * epsilon), d * (2 * a - 1)
    # With expm1, because on a fine grid exp(-d) differs from 1 by less than a float can hold.
    between = -math.expm1(-d) * whole * math.exp(-falls) * math.expm1(-falls * (by - 1)) / math.expm1(-falls)
    mean = (whole + between + math.exp(-epsilon) / whole) / (1 + math.exp(-d))
    return _up(Fraction(math.log(mean) / (a - 1) * _UP + _LEAST * (1 + epsilon) * 100))
