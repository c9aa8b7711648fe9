"""From runs of a mechanism on two neighbouring logs to a lower bound on its epsilon.

(epsilon, delta)-differential privacy says ``P1(E) <= exp(epsilon) P0(E) + delta`` for every event E, and the same with
the two logs exchanged. So an event that was seen k1 times in n1 runs on one log and k0 times in n0 runs on the other
proves, at a confidence, that

    epsilon >= ln((lower(k1, n1) - delta) / upper(k0, n0)),

with the exact bounds of Clopper and Pearson ("The use of confidence or fiducial limits", Biometrika 1934) on the two
probabilities. The way to audit with such bounds follows Jagielski, Ullman, Oprea, "Auditing differentially private
machine learning", NeurIPS 2020. The event is chosen on runs of its own, so that the bound needs no correction for the
events that were looked at.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import bdtr, betaincinv, gammaln, ndtr, xlog1py, xlogy

from veilog._typing import FloatArray

Kind = Literal["at least", "at most", "exactly"]

_MOST_VALUES = 200
"""Thresholds looked at when an event is chosen."""
_BEYOND_ALL = 2**50


def lower_bound(successes: int, runs: int, failure: float) -> float:
    """A probability that is below the true one except with probability ``failure``."""
    return 0.0 if successes == 0 else float(betaincinv(successes, runs - successes + 1, failure))


def upper_bound(successes: int, runs: int, failure: float) -> float:
    """A probability that is above the true one except with probability ``failure``."""
    return 1.0 if successes == runs else float(betaincinv(successes + 1, runs - successes, 1 - failure))


@dataclass(frozen=True)
class ReleaseEvent:
    """What is looked for in a release: a score at least, at most or exactly so large, likelier with or without."""

    kind: Kind
    value: float
    likelier_with: bool
    """Whether it is the log with the case that makes it likelier."""

    def seen(self, scores: FloatArray) -> int:
        if self.kind == "at least":
            return int((scores >= self.value).sum())
        return int((scores <= self.value).sum() if self.kind == "at most" else (scores == self.value).sum())

    def __str__(self) -> str:
        return f"{self.kind} {self.value:g}"


@dataclass(frozen=True)
class Tally:
    """How often an event was seen on either log, and what that proves."""

    event: ReleaseEvent
    seen_with: int
    runs_with: int
    seen_without: int
    runs_without: int
    epsilon: float
    """The lower bound, 0 where nothing is proved."""


def epsilon_lower_bound(k1: int, n1: int, k0: int, n0: int, delta: float, confidence: float) -> float:
    """The epsilon that an event with ``k1`` of ``n1`` and ``k0`` of ``n0`` proves, at least; half of the failure
    probability goes to each of the two bounds."""
    failure = (1 - confidence) / 2
    likely = lower_bound(k1, n1, failure) - delta
    return max(0.0, math.log(likely / upper_bound(k0, n0, failure))) if likely > 0 else 0.0


def tally(event: ReleaseEvent, without: FloatArray, with_: FloatArray, delta: float, confidence: float) -> Tally:
    """What fresh runs prove through an event that was chosen before them."""
    k1, k0 = event.seen(with_), event.seen(without)
    n1, n0 = len(with_), len(without)
    pairs = (k1, n1, k0, n0) if event.likelier_with else (k0, n0, k1, n1)
    return Tally(event, k1, n1, k0, n0, epsilon_lower_bound(*pairs, delta, confidence))


def choose_event(without: FloatArray, with_: FloatArray, delta: float, confidence: float) -> tuple[ReleaseEvent, float]:
    """The event that seems to prove most, and what it seems to prove; on runs that prove nothing themselves."""
    scores = np.concatenate([without, with_])
    values, counts = np.unique(scores, return_counts=True)
    places = values
    if len(values) > _MOST_VALUES:
        places = np.unique(np.quantile(scores, np.linspace(0, 1, _MOST_VALUES), method="nearest"))
    frequent = values[np.argsort(-counts, kind="stable")[:20]]
    best, most = ReleaseEvent("at least", float(values[0]), True), 0.0
    kinds: tuple[tuple[Kind, FloatArray], ...] = (("at least", places), ("at most", places), ("exactly", frequent))
    for kind, looked_at in kinds:
        k1, k0 = _seen(kind, np.sort(with_), looked_at), _seen(kind, np.sort(without), looked_at)
        for likelier_with in (True, False):
            pairs = (k1, len(with_), k0, len(without)) if likelier_with else (k0, len(without), k1, len(with_))
            seemed = _seemed(*pairs, delta, confidence)
            if seemed.max() > most:
                place = int(seemed.argmax())
                best, most = ReleaseEvent(kind, float(looked_at[place]), likelier_with), float(seemed[place])
    return best, most


def _seen(kind: Kind, ordered: FloatArray, values: FloatArray) -> FloatArray:
    """How many of the ordered scores meet each event."""
    below = np.searchsorted(ordered, values, side="left")
    up_to = np.searchsorted(ordered, values, side="right")
    found = {"at least": len(ordered) - below, "at most": up_to, "exactly": up_to - below}[kind]
    return np.asarray(found, dtype=np.float64)


def _seemed(k1: FloatArray, n1: int, k0: FloatArray, n0: int, delta: float, confidence: float) -> FloatArray:
    """:func:`epsilon_lower_bound` of many events at once."""
    failure = (1 - confidence) / 2
    likely = np.where(k1 > 0, betaincinv(np.maximum(k1, 1), n1 - np.maximum(k1, 1) + 1, failure), 0.0) - delta
    above = np.where(k0 < n0, betaincinv(k0 + 1, np.maximum(n0 - k0, 1), 1 - failure), 1.0)
    return np.asarray(np.where(likely > 0, np.log(np.maximum(likely, 1e-300) / above), 0.0))


def runs_to_see(epsilon: float, confidence: float) -> int:
    """Runs on each log from which on the largest provable epsilon, an event seen in all runs on one log and in none on
    the other, exceeds this one; at most 2^50, which nobody makes."""
    runs = 1
    while runs < _BEYOND_ALL and epsilon_lower_bound(runs, runs, 0, runs, 0.0, confidence) <= epsilon:
        runs *= 2
    if runs == _BEYOND_ALL:
        return runs
    low, high = runs // 2, runs
    while high - low > 1:
        middle = (low + high) // 2
        if epsilon_lower_bound(middle, middle, 0, middle, 0.0, confidence) <= epsilon:
            low = middle
        else:
            high = middle
    return high


def runs_to_refute(most: Callable[[FloatArray], FloatArray], failure: float) -> int:
    """Runs on each log from which on an event that was seen in all of them on one log and in none on the other refutes
    what :func:`is_refuted` does."""
    rare = np.linspace(0, 1, 10_001)
    likeliest = float((np.minimum(most(rare), 1.0) * (1 - rare)).max())
    return math.ceil(math.log(failure) / math.log(likeliest)) if likeliest < 1 else sys.maxsize


def is_refuted(
    likely: tuple[int, int],
    rare: tuple[int, int],
    slope: float,
    most: Callable[[FloatArray], FloatArray],
    failure: float,
) -> bool:
    """Return whether an event that was seen in ``likely`` (so many of so many runs on one log) and ``rare`` (on the
    other) refutes that its probability is at most ``most`` of that on the other, a growing function.

    An exact test: ``k1/n1 - slope k0/n0`` is as large as it was with at most the probability ``failure``, whatever the
    two probabilities are that would be allowed. Between neighbouring places of a grid the larger of them is taken for
    the one log and the smaller for the other, so the grid costs sharpness and not validity.
    """
    (k1, n1), (k0, n0) = likely, rare
    seen = k1 / n1 - slope * k0 / n0
    near = betaincinv(k0 + 0.5, n0 - k0 + 0.5, ndtr(np.linspace(-7, 7, 57)))
    places = np.unique(np.concatenate([np.linspace(0, 1, 41), near]))
    low, high = places[:-1], places[1:]
    while len(low):
        middle = (low + high) / 2
        if (_chances(seen, slope, n1, n0, np.asarray(most(middle)), middle) > failure).any():
            return False
        open_ = _chances(seen, slope, n1, n0, np.asarray(most(high)), low) > failure
        if ((high - low)[open_] * max(1.0, slope) < _FINEST).any():
            return False  # so near to not being refuted that it is not worth while to look closer
        low, middle, high = low[open_], middle[open_], high[open_]
        low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
    return True


_FINEST = 1e-5


def _chances(seen: float, slope: float, n1: int, n0: int, p1: FloatArray, p0: FloatArray) -> FloatArray:
    """``P(K1/n1 - slope K0/n0 >= seen)`` for independent binomial numbers with each of the probabilities, at least."""
    k0 = np.arange(n0 + 1)
    needed = np.ceil(n1 * (seen + slope * k0 / n0) - 1e-9)  # of K1, for each K0
    use = needed <= n1
    k0, needed = k0[use], np.maximum(needed[use], 0)
    choose = gammaln(n0 + 1) - gammaln(k0 + 1) - gammaln(n0 - k0 + 1)
    found = np.empty(len(p0))
    for i, (one, other) in enumerate(zip(p1.tolist(), p0.tolist(), strict=True)):
        weight = np.exp(choose + xlogy(k0, other) + xlog1py(n0 - k0, -other))
        matter = weight > _IGNORED
        above = np.where(needed[matter] > 0, 1.0 - bdtr(np.maximum(needed[matter] - 1, 0), n1, one), 1.0)
        found[i] = weight[matter] @ above + _IGNORED * (len(k0) - int(matter.sum()))
    return found


_IGNORED = 1e-12
"""Less likely numbers are counted as if they were so likely, and decided against the proof."""
