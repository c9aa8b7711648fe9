"""Amun's prior knowledge and epsilons: what an attacker can guess before the release, and how much noise keeps the
guess from getting better by more than the guessing advantage.

Elkoumy, Pankova, Dumas, "Differentially private release of event logs for process mining" (2023), sections 3.3 and 3.5,
Propositions 3.1, A.5 and A.6. For a prior P and a guessing advantage d the largest epsilon that keeps the posterior,
1 / (1 + exp(-epsilon) (1 - P) / P), below P + d is

    epsilon = -ln( P / (1 - P) * (1 / (d + P) - 1) ),          smallest at P = (1 - d) / 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from veilog._typing import BoolArray, FloatArray, IntArray
from veilog.methods._sampling.transitions import AnnotatedLog

_DAY = 86_400_000_000
_MINUTE = 60_000_000
_PROGRAM_PRECISION = 10
"""Minutes."""
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Precision:
    """How near a guess must come to count as right, in microseconds: of a case's start, of the time between events."""

    start: int
    duration: int

    @staticmethod
    def of(days: float, seconds: float) -> Precision:
        return Precision(max(1, round(days * _DAY)), max(1, round(seconds * 1_000_000)))


@dataclass(frozen=True, eq=False)
class Priors:
    """Of each event (the first of a case stands for its start): the prior, and the range that scales its noise."""

    priors: FloatArray
    ranges: IntArray


def prior_knowledge(log: AnnotatedLog, advantage: float, precision: Precision, *, clamped: bool = True) -> Priors:
    """Section 3.3: case starts are one group, the times between events a group for each transition.

    Start: the share of cases that start in the same ``precision.start`` (one day, in UTC). Time between events:
    F(min(x + p, max)) - F(max(x - p, min)) with the group's empirical distribution function F; in microseconds, so that
    no rounding decides what is equal. That is the worked example's rule; equation (1) as printed is F(x + p) - F(x - p)
    with F 0 below the smallest value: not ``clamped``. A group whose values are all equal has the worst-case prior
    (1 - d) / 2.

    The range is max - min of the group. Where that is 0 the noise would be 0 as well; such a group takes its value as
    the range (a time between 0 and this, as in Proposition A.7), and no range is below the precision.
    """
    opens, starts = log.opens, log.starts
    priors = np.empty(len(log.transitions))
    ranges = np.empty(len(log.transitions), dtype=np.int64)
    first = int(starts.min()) // _DAY * _DAY
    _, group, size = np.unique((starts - first) // precision.start, return_inverse=True, return_counts=True)
    priors[opens], ranges[opens] = size[group] / len(starts), max(int(np.ptp(starts)), precision.start)
    groups, values = log.transitions[~opens], log.durations[~opens]
    if len(groups):
        priors[~opens], ranges[~opens] = _of_steps(groups, values, precision.duration, advantage, clamped)
    return Priors(priors, ranges)


def _of_steps(
    groups: IntArray, values: IntArray, precision: int, advantage: float, clamped: bool
) -> tuple[FloatArray, IntArray]:
    """The priors and ranges of times between events, each in the transition ``groups`` says."""
    distinct, place = np.unique(values, return_inverse=True)
    number = len(distinct)
    keys = groups * number + place
    order = np.argsort(keys, kind="stable")
    keys, sorted_groups = keys[order], groups[order]
    begins = np.flatnonzero(np.append(True, np.diff(sorted_groups) != 0))
    sizes = np.diff(np.append(begins, len(groups)))
    group = np.repeat(np.arange(len(begins)), sizes)
    value = values[order]
    lowest, highest = value[begins][group], value[begins + sizes - 1][group]
    upper = np.searchsorted(distinct, value + precision, side="right") - 1
    lower = np.searchsorted(distinct, np.maximum(value - precision, lowest), side="right") - 1
    base = sorted_groups * number
    below = np.searchsorted(keys, base + lower, side="right")
    if not clamped:
        below = np.where(value - precision < lowest, begins[group], below)
    inside = np.searchsorted(keys, base + upper, side="right") - below
    constant = lowest == highest
    priors, ranges = np.empty(len(values)), np.empty(len(values), dtype=np.int64)
    priors[order] = np.where(constant, (1 - advantage) / 2, inside / sizes[group])
    ranges[order] = np.maximum(np.where(constant, highest, highest - lowest), precision)
    return priors, ranges


def too_well_known(priors: FloatArray, advantage: float) -> BoolArray:
    """Section 3.4: where P + d >= 1 no epsilon follows from the formula, and filtering takes the whole case out."""
    beyond: BoolArray = priors + advantage >= 1 - _ROUNDING
    return beyond


def epsilons_of(priors: FloatArray, advantage: float) -> FloatArray:
    """Proposition 3.1, for values scaled to a range of 1.

    Where the formula gives no number (P + d >= 1) or an infinite one, which is no noise at all (P = 0: the smallest
    value of its group with none near it), the worst-case prior takes its place: the most noise that any prior asks for.
    """
    unusable = too_well_known(priors, advantage) | (priors <= 0)
    prior = np.where(unusable, (1 - advantage) / 2, priors)
    epsilons: FloatArray = -np.log(prior / (1 - prior) * (1 / (advantage + prior) - 1))
    return epsilons


def oversampling_epsilon(advantage: float) -> float:
    """Proposition A.6: the epsilon of one count when noise can only be added; -2 ln u with 2 u^3 = (1 - d) (1 + u).

    The number under the paper's square root is (1 - d)^2 (2 d + 25), written so here because it cancels near d = 1.
    (For A.5, noise of both signs, the epsilon is that of the worst-case prior:
    ``veilog.privacy.account.guessing.epsilon_of``.)
    """
    c = 6 ** (1 / 3)
    b = ((1 - advantage) * (math.sqrt(3) * math.sqrt(2 * advantage + 25) + 9)) ** (1 / 3)
    return -2 * math.log(b / c**2 + (1 - advantage) / (c * b))


def program_ranges(log: AnnotatedLog) -> tuple[IntArray, IntArray]:
    """Return for each transition the smallest and the largest time between events in whole minutes, as the authors'
    program counts them."""
    minutes = log.durations // _MINUTE
    lowest = np.full(len(log.automaton), np.iinfo(np.int64).max)
    highest = np.zeros(len(log.automaton), dtype=np.int64)
    np.minimum.at(lowest, log.transitions, minutes)
    np.maximum.at(highest, log.transitions, minutes)
    return lowest, highest


def program_knowledge(log: AnnotatedLog, advantage: float, ranges: tuple[IntArray, IntArray]) -> Priors:
    """Return the priors and ranges of the authors' program.

    A guess of a step is right within ten minutes, one of a start on its day. The ``ranges`` of steps are those of the
    log before filtering. A step of constant time has the worst-case prior, and a range of 0: it gets no noise.
    """
    opens, days = log.opens, (log.starts - log.starts.min()) // _DAY
    values = log.durations // _MINUTE
    values[opens] = days
    lowest, highest = (
        np.where(opens, end, found[log.transitions]) for found, end in zip(ranges, (0, days.max()), strict=True)
    )
    above = np.where(opens, values, np.minimum(values + _PROGRAM_PRECISION, highest))
    below = np.where(opens, values - 1, np.maximum(values - _PROGRAM_PRECISION, lowest))
    width = int(highest.max()) + 2
    groups = np.where(opens, len(log.automaton), log.transitions) * width
    keys = np.sort(groups + values)
    inside = np.searchsorted(keys, groups + above, side="right") - np.searchsorted(keys, groups + below, side="right")
    sizes = np.searchsorted(keys, groups + width) - np.searchsorted(keys, groups)
    priors = np.where((lowest == highest) & ~opens, (1 - advantage) / 2, inside / sizes)
    return Priors(priors, (highest - lowest) * np.where(opens, _DAY, _MINUTE))


def program_epsilons(priors: FloatArray, opens: BoolArray, advantage: float) -> FloatArray:
    """Return Proposition 3.1's epsilons; where it gives no number 0.7 (of a start 0.1), where an infinite one 10."""
    beyond = np.where(opens, 0.1, 0.7)
    epsilons = np.where(too_well_known(priors, advantage), beyond, epsilons_of(priors, advantage))
    return np.where(priors <= 0, 10.0, epsilons)
