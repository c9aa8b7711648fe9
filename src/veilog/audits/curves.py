"""What the charged mechanisms let an attacker see at most: their trade-off curve, also with other budgets.

For two logs that differ by one case each charge is dominated by a pair of distributions on numbers, so what all answers
together tell is dominated by the product of these pairs (Dong, Roth, Su, "Gaussian Differential Privacy", JRSS B 2022;
Zhu, Dong, Wang, "Optimal accounting of differential privacy via characteristic function", AISTATS 2022; for questions
that depend on earlier answers too, as long as their budgets do not). The pairs:

- a Laplace mechanism whose answers one case changes by S in the L1 norm: noise around 0 and around S;
- what rests on a threshold or is not known better: the pair of exactly (epsilon, delta), which dominates any other;
- noised steps: Gaussian numbers around 0 and, with the chance of being sampled, around 1;
- questions to a Poisson sample: their product, mixed with what it is where the case is not in the sample.

A pair is kept as the distribution of its privacy loss, ``ln(upper / lower)`` under ``upper``, on a grid; losses are
rounded up, so that the curve allows rather too much: an audit proves a little less by it.

The account composes losses too (:mod:`veilog.privacy.account.losses`, by dp-accounting). What is here is worked out by
itself, as an audit must not take from what it attacks the numbers that it compares with; a test compares the two.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import ndtr

from veilog._typing import FloatArray
from veilog.privacy.account.guarantee import Charge
from veilog.privacy.mechanisms.mechanism import (
    DiscreteGaussianSteps,
    GaussianRounds,
    Laplace,
    NoisedSteps,
    Sensitivity,
)

_CELLS = 2**14
"""Cells of the grid for the sum of all epsilons."""
_MOST_UNITS = 64
"""Noise on coarser numbers tells a little more; from so many units on the difference is nothing."""
_REACH = 9.0
"""Deviations of a Gaussian number that are kept apart; what lies beyond is an infinite loss."""


@dataclass(frozen=True)
class Priced:
    """What matters of a charge: two with equal ones are dominated by the same pair."""

    question: str
    epsilon: float
    delta: float
    units: int = 0
    """By how many units of its Laplace noise a case changes the answers; 0 for what is no Laplace noise."""
    steps: tuple[NoisedSteps, ...] = ()


@dataclass(frozen=True)
class Questions:
    """Questions that were asked of one log: the whole, or a Poisson sample of this rate."""

    asked: tuple[Priced, ...]
    rate: float = 1.0


def priced(charge: Charge) -> Priced:
    """Return what matters of a charge."""
    mechanism, epsilon, delta = charge.mechanism, float(charge.epsilon), float(charge.delta)
    if isinstance(mechanism, DiscreteGaussianSteps):
        return Priced(charge.question, epsilon, delta, steps=mechanism.parts)
    if isinstance(mechanism, GaussianRounds):  # together they are one Gaussian mechanism
        together = NoisedSteps("all", 1.0, 1 / mechanism.strength, 1)
        return Priced(charge.question, epsilon, delta, steps=(together,))
    if isinstance(mechanism, Laplace) and isinstance(charge.sensitivity, Sensitivity):
        units = charge.sensitivity.by[0] * mechanism.grid
        return Priced(charge.question, epsilon, delta, max(1, min(int(units), _MOST_UNITS)))
    return Priced(charge.question, epsilon, delta)


@dataclass(frozen=True, eq=False)
class _Losses:
    """Probabilities of the losses ``first * step``, ``(first + 1) * step``, ..., and of an infinite one."""

    step: float
    first: int
    masses: FloatArray
    infinite: float

    @property
    def losses(self) -> FloatArray:
        return np.asarray((self.first + np.arange(len(self.masses))) * self.step)

    def and_then(self, other: _Losses) -> _Losses:
        masses = np.maximum(_convolved(self.masses, other.masses), 0.0)
        return _Losses(self.step, self.first + other.first, masses, 1 - (1 - self.infinite) * (1 - other.infinite))


def _convolved(one: FloatArray, other: FloatArray) -> FloatArray:
    """By FFT: ``scipy.signal`` would take longer to load than most audits to choose."""
    size = len(one) + len(other) - 1
    fast = next_fast_len(size, real=True)
    found: FloatArray = irfft(rfft(one, fast) * rfft(other, fast), fast)[:size]
    return found


@dataclass(frozen=True, eq=False)
class Curve:
    """The most that the likelier log's probability of an event may be, given the other's."""

    slopes: FloatArray
    """Logarithms of the slopes of the lines that bound it."""
    excess: FloatArray
    """Where these lines begin: ``upper(E) <= e**slope lower(E) + excess`` for every event E."""

    def most(self, lower: FloatArray) -> FloatArray:
        """Return the most that upper(E) may be where lower(E) is so much."""
        with np.errstate(over="ignore"):
            lines = np.exp(self.slopes)[:, None] * lower[None, :] + self.excess[:, None]
        return np.asarray(np.minimum(lines.min(axis=0), 1.0))

    def excess_at(self, slope: float) -> float:
        """Return where the line of this slope begins."""
        return max(float(np.interp(slope, self.slopes, self.excess)), -math.expm1(slope))


def curve(shape: Sequence[Questions], factor: float, *, added: bool, slopes: int = 401) -> Curve:
    """Return the curve of these questions with all epsilons multiplied by ``factor``.

    ``added``: whether the likelier log is the one with the case.
    """
    together = sum(one.epsilon for part in shape for one in part.asked)
    step = factor * together / _CELLS
    losses = _Losses(step, 0, np.ones(1), 0.0)
    for part in shape:
        if part.rate == 1.0:
            losses = losses.and_then(_product(part.asked, factor, step, added=added))
        else:
            losses = losses.and_then(
                _of_sample(_product(part.asked, factor, step, added=added), part.rate, added=added)
            )
    low, high = float(losses.losses[0]), float(losses.losses[-1])
    at = np.linspace(low, high, slopes)
    above, masses = losses.losses, losses.masses
    order = np.searchsorted(above, at, side="right")
    tail = np.concatenate([np.cumsum(masses[::-1])[::-1], [0.0]])
    weighted = np.concatenate([np.cumsum((masses * np.exp(-above))[::-1])[::-1], [0.0]])
    excess = losses.infinite + tail[order] - np.exp(at) * weighted[order]
    return Curve(at, np.asarray(np.clip(excess, 0.0, 1.0)))


def _product(asked: Iterable[Priced], factor: float, step: float, *, added: bool) -> _Losses:
    losses = _Losses(step, 0, np.ones(1), 0.0)
    for one in asked:
        if one.steps:
            for part in one.steps:
                of_one = _gaussian(part.noise_multiplier / factor, part.rate, step, added=added)
                for _ in range(part.steps):
                    losses = losses.and_then(of_one)
        else:
            losses = losses.and_then(_laplace(one, factor, step))
    return losses


def _rounded_up(cumulative: Callable[[FloatArray], FloatArray], low: float, high: float, step: float) -> _Losses:
    """The losses of a distribution function; what it has beyond ``high`` is infinite."""
    first = math.floor(low / step)
    places = first + np.arange(math.ceil(high / step) + 1 - first)
    masses = np.diff(cumulative(np.asarray(places * step, dtype=np.float64)), prepend=0.0)
    return _Losses(step, first, np.maximum(masses, 0.0), max(0.0, 1.0 - float(masses.sum())))


def _laplace(one: Priced, factor: float, step: float) -> _Losses:
    """The pair of noise around 0 and around ``units``, or of exactly (epsilon, delta) for one unit."""
    units, epsilon = max(one.units, 1), factor * one.epsilon
    decay = epsilon / units

    def cumulative(losses: FloatArray) -> FloatArray:
        place = np.floor((losses / decay + units) / 2 + 1e-9)
        within = np.exp(-decay * np.maximum(units - place, 0)) / (1 + math.exp(-decay))
        return np.where(place < 0, 0.0, np.where(place >= units, 1.0, within))

    found = _rounded_up(cumulative, -epsilon - step, epsilon + step, step)
    infinite = found.infinite + one.delta * (1 - found.infinite)
    return _Losses(step, found.first, found.masses * (1 - one.delta), infinite)


def _gaussian(deviation: float, rate: float, step: float, *, added: bool) -> _Losses:
    """The pair of N(0, deviation^2) and, with the rate as its chance, N(1, deviation^2)."""

    def mixed(x: FloatArray) -> FloatArray:
        return np.asarray((1 - rate) * ndtr(x / deviation) + rate * ndtr((x - 1) / deviation))

    def loss(x: float) -> float:
        return float(
            np.logaddexp(math.log1p(-rate) if rate < 1 else -math.inf, math.log(rate) + (x - 0.5) / deviation**2)
        )

    def place(losses: FloatArray) -> FloatArray:
        """Where the loss of adding is so much; minus infinity below all."""
        inner = np.expm1(losses) + rate
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(inner > 0, deviation**2 * np.log(np.maximum(inner, 1e-300) / rate) + 0.5, -np.inf)

    low, high = loss(-_REACH * deviation), loss(1 + _REACH * deviation)
    if added:
        return _rounded_up(lambda losses: mixed(place(losses)), low, high, step)
    return _rounded_up(lambda losses: 1 - ndtr(place(-losses) / deviation), -high, -low, step)


def _of_sample(losses: _Losses, rate: float, *, added: bool) -> _Losses:
    """The pair of what is asked of a sample: the case is in it with the chance ``rate``, or the answers are those
    without it."""
    at, upper, step = losses.losses, losses.masses, losses.step
    lower = upper * np.exp(-at)
    left = max(0.0, 1.0 - float(lower.sum()))  # where the likelier log never comes
    if added:
        mixed = np.logaddexp(math.log1p(-rate), math.log(rate) + at)
        found = np.append(mixed, math.log1p(-rate))
        masses, infinite = np.append(rate * upper + (1 - rate) * lower, (1 - rate) * left), rate * losses.infinite
    else:  # upper is without the case, lower the mixture: their loss is never infinite
        found = np.append(-np.logaddexp(math.log1p(-rate), math.log(rate) - at), -math.log1p(-rate))
        masses, infinite = np.append(upper, losses.infinite), 0.0
    places = np.ceil(found / step - 1e-9).astype(np.int64)
    first = int(places.min())
    together = np.zeros(int(places.max()) - first + 1)
    np.add.at(together, places - first, masses)
    return _Losses(step, first, together, infinite)
