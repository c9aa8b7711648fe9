"""Lower bounds on epsilon from runs of a mechanism on two neighbouring logs.

(epsilon, delta)-differential privacy requires ``P1(E) <= exp(epsilon) P0(E) + delta`` for every event E, and the same
with the two logs exchanged. Suppose that an event was seen k1 times in n1 runs on one log and k0 times in n0 runs on
the other. It proves, at a confidence, that

    epsilon >= ln((lower(k1, n1) - delta) / upper(k0, n0)),

with the exact bounds of Clopper and Pearson ("The use of confidence or fiducial limits", Biometrika 1934) on the two
probabilities. Audits with such bounds follow Jagielski, Ullman, Oprea, "Auditing differentially private machine
learning", NeurIPS 2020. The event is chosen on runs of its own, so the bound needs no correction for the events that
were considered.

*Curves* (:func:`curve`). For two logs that differ by one case, a pair of distributions on numbers dominates each
charge. The product of these pairs dominates all answers together (Dong, Roth, Su, "Gaussian Differential Privacy", JRSS
B 2022; Zhu, Dong, Wang, "Optimal accounting of differential privacy via characteristic function", AISTATS 2022). Later
queries may depend on earlier answers, as long as their budgets do not. The pairs:

- a Laplace mechanism whose answers one case changes by S in the L1 norm: noise around 0 and around S;
- a charge that rests on a threshold or is not known better: the pair of exactly (epsilon, delta), which dominates all;
- noised steps: Gaussian numbers around 0 and, with the chance of being sampled, around 1;
- queries on a Poisson sample: their product, mixed with the one where the case is not in the sample.

A pair is held as the distribution of its privacy loss, ``ln(upper / lower)`` under ``upper``, on a grid. Losses are
rounded up, so the curve allows rather too much, and an audit proves a little less by it. The account composes losses
too (:mod:`veilog.privacy.account.losses`). An audit must not take the numbers that it compares with from its target, so
this module works them out by itself; a test compares the two.

*Evidence* of an answer is the logarithm of its likelihood with the case over that without. An attacker who knows both
logs can compute it. An audit is right even if a likelihood is not exact, only less sharp. A new kind of mechanism needs
a line in :func:`log_probability`, and one in :func:`log_at_most` if it is thresholded.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import bdtr, betaincinv, gammaln, ndtr, xlog1py, xlogy

from veilog._plain import InJson, ToJson
from veilog._typing import FloatArray, IntArray
from veilog.messages import Message
from veilog.privacy.account.guarantee import Charge, Code, Condition
from veilog.privacy.mechanisms.mechanism import (
    CubeNoise,
    DiscreteGaussian,
    DiscreteGaussianSteps,
    GaussianRounds,
    KTruncatedGeometric,
    Laplace,
    Mechanism,
    NoisedSteps,
    NoisyMaximum,
    Sensitivity,
    Thresholded,
)

_CELLS = 2**14
"""Number of steps of the grid for the sum of all epsilons."""
_MOST_UNITS = 64
"""Largest number of noise units; noise on coarser numbers reveals a little more, but from here on nothing."""
_REACH = 9.0
"""Deviations of a Gaussian number that are distinguished; the loss beyond is infinite."""


@dataclass(frozen=True)
class Priced:
    """Relevant facts of a charge; equal ones have the same dominating pair."""

    question: str
    epsilon: float
    delta: float
    units: int = 0
    """Largest change of answers by a case in units of Laplace noise; 0 for other noise."""
    steps: tuple[NoisedSteps, ...] = ()


@dataclass(frozen=True)
class Questions:
    """Queries on one log: the whole, or a Poisson sample of this rate."""

    asked: tuple[Priced, ...]
    rate: float = 1.0


def priced(charge: Charge) -> Priced:
    """Return the relevant facts of a charge."""
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
    """Probabilities of the losses ``first * step``, ``(first + 1) * step``, ..., inf."""

    step: float
    first: int
    masses: FloatArray
    infinite: float

    @property
    def losses(self) -> FloatArray:
        return np.asarray((self.first + np.arange(len(self.masses))) * self.step)

    def and_then(self, other: _Losses) -> _Losses:
        masses = np.maximum(_convolve(self.masses, other.masses), 0.0)
        return _Losses(self.step, self.first + other.first, masses, 1 - (1 - self.infinite) * (1 - other.infinite))


def _convolve(one: FloatArray, other: FloatArray) -> FloatArray:
    """Return the convolution by FFT; ``scipy.signal`` would take longer to load."""
    size = len(one) + len(other) - 1
    fast = next_fast_len(size, real=True)
    found: FloatArray = irfft(rfft(one, fast) * rfft(other, fast), fast)[:size]
    return found


@dataclass(frozen=True, eq=False)
class Curve:
    """Largest probability of an event on the likelier log, given that on the other."""

    slopes: FloatArray
    """Logarithms of the slopes of the lines that bound it."""
    excess: FloatArray
    """Starts of these lines: ``upper(E) <= e**slope lower(E) + excess``, every event E."""

    def most(self, lower: FloatArray) -> FloatArray:
        """Return the largest upper(E) for each of these lower(E)."""
        with np.errstate(over="ignore"):
            lines = np.exp(self.slopes)[:, None] * lower[None, :] + self.excess[:, None]
        return np.asarray(np.minimum(lines.min(axis=0), 1.0))

    def excess_at(self, slope: float) -> float:
        """Return the start of the line of this slope."""
        return max(float(np.interp(slope, self.slopes, self.excess)), -math.expm1(slope))


def curve(shape: Sequence[Questions], factor: float, *, added: bool, slopes: int = 401) -> Curve:
    """Return the curve of these queries with all epsilons multiplied by ``factor``.

    ``added`` is True if the likelier log is the one with the case.
    """
    together = sum(one.epsilon for part in shape for one in part.asked)
    step = factor * together / _CELLS
    losses = _Losses(step, 0, np.ones(1), 0.0)
    for part in shape:
        if part.rate == 1.0:
            losses = losses.and_then(_product(part.asked, factor, step, added=added))
        else:
            losses = losses.and_then(
                _sampled_losses(_product(part.asked, factor, step, added=added), part.rate, added=added)
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
    """Return the losses of a distribution function; they are infinite beyond ``high``."""
    first = math.floor(low / step)
    places = first + np.arange(math.ceil(high / step) + 1 - first)
    masses = np.diff(cumulative(np.asarray(places * step, dtype=np.float64)), prepend=0.0)
    return _Losses(step, first, np.maximum(masses, 0.0), max(0.0, 1.0 - float(masses.sum())))


def _laplace(one: Priced, factor: float, step: float) -> _Losses:
    """Return the pair of noise around 0 and ``units``, or of (epsilon, delta) for one."""
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
    """Return the pair of N(0, deviation^2) and, at this rate, N(1, deviation^2)."""

    def mixed(x: FloatArray) -> FloatArray:
        return np.asarray((1 - rate) * ndtr(x / deviation) + rate * ndtr((x - 1) / deviation))

    def loss(x: float) -> float:
        return float(
            np.logaddexp(math.log1p(-rate) if rate < 1 else -math.inf, math.log(rate) + (x - 0.5) / deviation**2)
        )

    def place(losses: FloatArray) -> FloatArray:
        """Return the numbers with this loss of adding; minus infinity below all."""
        inner = np.expm1(losses) + rate
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(inner > 0, deviation**2 * np.log(np.maximum(inner, 1e-300) / rate) + 0.5, -np.inf)

    low, high = loss(-_REACH * deviation), loss(1 + _REACH * deviation)
    if added:
        return _rounded_up(lambda losses: mixed(place(losses)), low, high, step)
    return _rounded_up(lambda losses: 1 - ndtr(place(-losses) / deviation), -high, -low, step)


def _sampled_losses(losses: _Losses, rate: float, *, added: bool) -> _Losses:
    """Return the pair of queries on a sample.

    The case is in it with the chance ``rate``, or the answers are those without it.
    """
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


IMPOSSIBLE = -math.inf
_BEYOND, _PLACES = 50.0, 20_000
"""Largest exponent, as noise of less than exp(-50) is left out of a sum, and numbers on either side for wider noise."""
_WIDE = 100.0
"""Variance from which the sum of a discrete Gaussian law equals that of the density to more digits than floats have."""
Noise = Mechanism | KTruncatedGeometric | DiscreteGaussian
Counts = Mapping[object, int]
"""Exact number of each thing that is there, such as a bin, a variant or a name; of any other it is 0."""


def log_probability(mechanism: Noise, noise: npt.ArrayLike) -> FloatArray:
    """Return the log probability of each number of noise; impossible ones have -inf."""
    if isinstance(mechanism, GaussianRounds):  # sums are one query
        (mechanism,) = mechanism.noises
    x = np.asarray(noise, dtype=np.float64)
    whole = x == np.rint(x)
    if isinstance(mechanism, Laplace):
        found = _log_centre(float(mechanism.decay)) - float(mechanism.decay) * np.abs(x)
        return np.asarray(np.where(whole, found, IMPOSSIBLE))
    if isinstance(mechanism, KTruncatedGeometric):
        epsilon, k = float(mechanism.epsilon), mechanism.k
        norm = math.log1p(2 * math.exp(-epsilon) * (-math.expm1(-epsilon * k)) / (-math.expm1(-epsilon)))
        return np.asarray(np.where(whole & (np.abs(x) <= k), -epsilon * np.abs(x) - norm, IMPOSSIBLE))
    if isinstance(mechanism, DiscreteGaussian):
        found = -(x**2) / (2 * mechanism.variance) - _log_norm(mechanism)
        return np.asarray(np.where(whole, found, IMPOSSIBLE))
    raise TypeError(f"nothing is known of how likely the numbers of a {type(mechanism).__name__} are")


def log_at_most(mechanism: Noise, most: int) -> float:
    """Return the logarithm of the probability that noise is at most ``most``."""
    if isinstance(mechanism, Laplace):
        d = float(mechanism.decay)
        outside = -d * (most + 1 if most >= 0 else -most) - math.log1p(math.exp(-d))
        return math.log1p(-math.exp(outside)) if most >= 0 else outside
    if isinstance(mechanism, KTruncatedGeometric):
        if abs(most) > mechanism.k:
            return 0.0 if most > 0 else IMPOSSIBLE
        return float(_cumulative(mechanism)[most + mechanism.k])
    if isinstance(mechanism, DiscreteGaussian):
        beyond = most if most >= 0 else -most - 1  # P(Y > m), or the tail below a negative number
        tail = mechanism.tail(beyond)(256)[1] / 2.0**256
        return math.log1p(-tail) if most >= 0 else math.log(max(tail, 5e-324))
    raise TypeError(f"nothing is known of the tails of a {type(mechanism).__name__}")


def log_above(mechanism: Noise, least: int) -> float:
    """Return the logarithm of the probability that noise is above ``least``."""
    return log_at_most(mechanism, -least - 1)  # the noise is symmetric


def likeliest_answer(mechanism: Noise) -> float:
    """Return the largest probability that any number has."""
    return math.exp(float(log_probability(mechanism, 0)))


@lru_cache(maxsize=256)
def _log_norm(mechanism: DiscreteGaussian) -> float:
    if mechanism.variance > _WIDE:
        return math.log(2 * math.pi * mechanism.variance) / 2
    reach = math.ceil(40 * math.sqrt(mechanism.variance)) + 1
    return math.log(float(np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * mechanism.variance)).sum()))


def _log_centre(decay: float) -> float:
    return math.log(-math.expm1(-decay)) - math.log1p(math.exp(-decay))


@lru_cache(maxsize=256)
def _cumulative(mechanism: KTruncatedGeometric) -> FloatArray:
    each = np.exp(log_probability(mechanism, np.arange(-mechanism.k, mechanism.k + 1)))
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.minimum(np.cumsum(each), 1.0)))


# Answers ------------------------------------------------------------------------------------------------------------


def evidence_of_numbers(mechanism: Noise, answer: npt.ArrayLike, without: npt.ArrayLike, with_: npt.ArrayLike) -> float:
    """Return the evidence of noisy numbers; ``nan`` where neither log can give them."""
    noisy, one, other = (np.atleast_1d(np.asarray(a, dtype=np.float64)).reshape(-1) for a in (answer, without, with_))
    if isinstance(mechanism, CubeNoise):
        sizes = [np.abs(noisy - a).reshape(-1, mechanism.width).max(axis=1).sum() for a in (one, other)]
        return float(mechanism.decay) * float(sizes[0] - sizes[1])
    differ = one != other
    likely_with = float(log_probability(mechanism, noisy[differ] - other[differ]).sum())
    return _difference(likely_with, float(log_probability(mechanism, noisy[differ] - one[differ]).sum()))


def evidence_of_counts(
    noise: Noise, above: int, answer: Counts, without: Counts, with_: Counts, *, empty: bool
) -> float:
    """Return the evidence of noisy counts of which those above a threshold came out.

    With ``empty``, things that no case has get noise, too; otherwise they never come out.
    """

    def likely(thing: object, exact: int) -> float:
        if exact == 0 and not empty:
            return IMPOSSIBLE if thing in answer else 0.0
        if thing in answer:
            return float(log_probability(noise, answer[thing] - exact))
        return log_at_most(noise, above - exact)

    return _likelihood_difference(likely, without, with_)


def evidence_of_names(mechanism: Thresholded, answer: frozenset[str], without: Counts, with_: Counts) -> float:
    """Return the evidence of the names whose noisy counts were above a threshold."""

    def likely(thing: object, exact: int) -> float:
        if exact == 0:
            return IMPOSSIBLE if thing in answer else 0.0
        beyond = mechanism.above - exact
        return log_above(mechanism.noise, beyond) if thing in answer else log_at_most(mechanism.noise, beyond)

    return _likelihood_difference(likely, without, with_)


def evidence_of_maximum(mechanism: NoisyMaximum, answer: int, without: npt.ArrayLike, with_: npt.ArrayLike) -> float:
    """Return the evidence of the place of the largest noisy number."""
    likely = (_log_largest(mechanism.noise, answer, np.asarray(scores)) for scores in (with_, without))
    return _difference(*likely)


def _log_largest(noise: Laplace, place: int, scores: IntArray) -> float:
    """Return the log chance that noise makes this place the first largest number."""
    decay = float(noise.decay)
    reach = math.ceil(_BEYOND / decay)
    steps = np.arange(-reach, reach + 1, max(1, reach // _PLACES))  # for wide noise a grid of the numbers
    reached = scores[place] + steps
    logs = log_probability(noise, steps)
    for other, score in enumerate(scores.tolist()):
        if other != place:
            most = reached - score - (other < place)
            outside = -decay * np.where(most >= 0, most + 1, -most) - math.log1p(math.exp(-decay))
            logs = logs + np.where(most >= 0, np.log1p(-np.exp(np.minimum(outside, -1e-12))), outside)
    top = float(logs.max())
    return top + math.log(float(np.exp(logs - top).sum()))


def _likelihood_difference(likely: Callable[[object, int], float], without: Counts, with_: Counts) -> float:
    differ = [t for t in {**without, **with_} if without.get(t, 0) != with_.get(t, 0)]
    likely_with = sum((likely(t, with_.get(t, 0)) for t in differ), start=0.0)
    return _difference(likely_with, sum((likely(t, without.get(t, 0)) for t in differ), start=0.0))


def _difference(with_: float, without: float) -> float:
    if with_ == without == IMPOSSIBLE:
        return math.nan
    return with_ - without


Kind = Literal["at least", "at most", "exactly"]

_MOST_VALUES = 200
"""Largest number of thresholds for the choice of an event."""
_BEYOND_ALL = 2**50


def lower_bound(successes: int, runs: int, failure: float) -> float:
    """Return a bound below the true probability, except with probability ``failure``."""
    return 0.0 if successes == 0 else float(betaincinv(successes, runs - successes + 1, failure))


def upper_bound(successes: int, runs: int, failure: float) -> float:
    """Return a bound above the true probability, except with probability ``failure``."""
    return 1.0 if successes == runs else float(betaincinv(successes + 1, runs - successes, 1 - failure))


@dataclass(frozen=True)
class ReleaseEvent:
    """Event in a release: a score at least, at most or exactly so large."""

    kind: Kind
    value: float
    likelier_with: bool
    """True if the log with the case makes it likelier."""

    def seen(self, scores: FloatArray) -> int:
        if self.kind == "at least":
            return int((scores >= self.value).sum())
        return int((scores <= self.value).sum() if self.kind == "at most" else (scores == self.value).sum())

    def __str__(self) -> str:
        return f"{self.kind} {self.value:g}"


@dataclass(frozen=True)
class Tally:
    """Counts of an event on both logs, and the epsilon that they prove."""

    event: ReleaseEvent
    seen_with: int
    runs_with: int
    seen_without: int
    runs_without: int
    epsilon: float
    """Lower bound on epsilon, 0 where nothing is proved."""


def epsilon_lower_bound(k1: int, n1: int, k0: int, n0: int, delta: float, confidence: float) -> float:
    """Return the epsilon that ``k1`` of ``n1`` and ``k0`` of ``n0`` prove at least.

    Half of the failure probability goes to each of the two bounds.
    """
    failure = (1 - confidence) / 2
    likely = lower_bound(k1, n1, failure) - delta
    return max(0.0, math.log(likely / upper_bound(k0, n0, failure))) if likely > 0 else 0.0


def tally(event: ReleaseEvent, without: FloatArray, with_: FloatArray, delta: float, confidence: float) -> Tally:
    """Return the proof by fresh runs through an event that was chosen before them."""
    k1, k0 = event.seen(with_), event.seen(without)
    n1, n0 = len(with_), len(without)
    pairs = (k1, n1, k0, n0) if event.likelier_with else (k0, n0, k1, n1)
    return Tally(event, k1, n1, k0, n0, epsilon_lower_bound(*pairs, delta, confidence))


def choose_event(without: FloatArray, with_: FloatArray, delta: float, confidence: float) -> tuple[ReleaseEvent, float]:
    """Return the event that seems to prove most, and its epsilon, from trial runs."""
    scores = np.concatenate([without, with_])
    values, counts = np.unique(scores, return_counts=True)
    places = values
    if len(values) > _MOST_VALUES:
        places = np.unique(np.quantile(scores, np.linspace(0, 1, _MOST_VALUES), method="nearest"))
    frequent = values[np.argsort(-counts, kind="stable")[:20]]
    best, most = ReleaseEvent("at least", float(values[0]), True), 0.0
    kinds: tuple[tuple[Kind, FloatArray], ...] = (("at least", places), ("at most", places), ("exactly", frequent))
    for kind, looked_at in kinds:
        k1, k0 = _count_events(kind, np.sort(with_), looked_at), _count_events(kind, np.sort(without), looked_at)
        for likelier_with in (True, False):
            pairs = (k1, len(with_), k0, len(without)) if likelier_with else (k0, len(without), k1, len(with_))
            seemed = _estimated_epsilons(*pairs, delta, confidence)
            if seemed.max() > most:
                place = int(seemed.argmax())
                best, most = ReleaseEvent(kind, float(looked_at[place]), likelier_with), float(seemed[place])
    return best, most


def _count_events(kind: Kind, ordered: FloatArray, values: FloatArray) -> FloatArray:
    """Return the number of the ordered scores that meet each event."""
    below = np.searchsorted(ordered, values, side="left")
    up_to = np.searchsorted(ordered, values, side="right")
    found = {"at least": len(ordered) - below, "at most": up_to, "exactly": up_to - below}[kind]
    return np.asarray(found, dtype=np.float64)


def _estimated_epsilons(
    k1: FloatArray, n1: int, k0: FloatArray, n0: int, delta: float, confidence: float
) -> FloatArray:
    """Return :func:`epsilon_lower_bound` of many events at once."""
    failure = (1 - confidence) / 2
    likely = np.where(k1 > 0, betaincinv(np.maximum(k1, 1), n1 - np.maximum(k1, 1) + 1, failure), 0.0) - delta
    above = np.where(k0 < n0, betaincinv(k0 + 1, np.maximum(n0 - k0, 1), 1 - failure), 1.0)
    return np.asarray(np.where(likely > 0, np.log(np.maximum(likely, 1e-300) / above), 0.0))


def runs_to_see(epsilon: float, confidence: float) -> int:
    """Return the runs on each log from which the largest provable epsilon exceeds one.

    The largest is proved by an event in all runs on one log and in none on the other. At most 2^50, beyond any audit.
    """
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
    """Return the runs on each log from which :func:`is_refuted` can refute.

    It takes an event that was seen in all runs on one log and in none on the other.
    """
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
    """Return True if the counts of an event refute the bound ``most``.

    It was seen in ``likely`` (so many of so many runs on one log) and in ``rare`` (on the other). Its probability on
    the one log should be at most ``most``, a growing function, of that on the other.

    The test is exact: ``k1/n1 - slope k0/n0`` is as large as it was with at most the probability ``failure``, for all
    allowed pairs of probabilities. Between neighbouring places of a grid the larger is taken for the one log and the
    smaller for the other. So the grid costs sharpness and not validity.
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
            return False  # so nearly not refuted that a closer look is not worth while
        low, middle, high = low[open_], middle[open_], high[open_]
        low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
    return True


_FINEST = 1e-5


def _chances(seen: float, slope: float, n1: int, n0: int, p1: FloatArray, p0: FloatArray) -> FloatArray:
    """Return at least ``P(K1/n1 - slope K0/n0 >= seen)`` for independent binomials."""
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
"""Probability that less likely numbers count with, to the proof's disadvantage."""


# Results ------------------------------------------------------------------------------------------------------------


Broken = Code | Literal["unit"]
"""Reason why a guarantee does not cover two logs: a condition does not hold, or they differ by more than its unit."""


def _events_to_json(tried: tuple[tuple[str, float], ...]) -> list[dict[str, object]]:
    return [{"attack": name, "seemed": seemed} for name, seemed in tried]


def _english_faults(faults: tuple[Message, ...]) -> list[str]:
    return [fault.english for fault in faults]


_EVENT = InJson(name="event", as_=lambda tally: str(tally.event))


@dataclass(frozen=True)
class OutOfScopeResult(ToJson):
    """Result of an attack with logs that the guarantee does not cover."""

    breaks: Annotated[Broken, InJson(then=("audited_epsilon",))]
    attack: str
    score: str
    tally: Annotated[Tally, _EVENT]
    cases: Annotated[int, InJson(name="person_cases")]
    """Number of cases of the person by whom the logs differ."""

    @property
    def audited_epsilon(self) -> float:
        return self.tally.epsilon

    def says(self, claim: float, confidence: float) -> Message:
        seen = {"epsilon": self.audited_epsilon, "confidence": confidence}
        if self.breaks == "unit":
            return Message("audit-beyond-unit", cases=self.cases, **seen)
        of = {"condition": self.breaks, "attack": self.attack}
        if self.audited_epsilon > claim:
            return Message("audit-beyond-condition-more", claim=claim, **of, **seen)
        return Message("audit-beyond-condition", **of, **seen)


@dataclass(frozen=True)
class WhiteBox(ToJson):
    """Findings of a white-box audit other than its epsilon."""

    factor: float
    """Factor for which a claim is refuted at the confidence: no attacker sees more than the charges with epsilons times
    it."""
    free_epsilon: float
    """Epsilon that the same runs prove without the shape of the noise."""
    free_tally: Annotated[Tally, _EVENT]
    """Proof of it through an event."""
    questions: tuple[str, ...]
    """Queries, as far as they were scored."""
    faults: Annotated[tuple[Message, ...], InJson(as_=_english_faults)]
    """Faults that need no bound."""


@dataclass(frozen=True)
class AuditResult(ToJson):
    """Claims of a release, proofs of an audit, and the runs behind them."""

    method: str
    as_published: bool
    nominal_epsilon: float
    derived_epsilon: float | None
    """Epsilon of the guarantee; None where nothing can be derived."""
    audited_epsilon: float
    """Lower bound on the true epsilon (at this delta), at the confidence."""
    delta: float
    confidence: float
    attack: str
    score: str
    tally: Annotated[Tally, replace(_EVENT, then=("seen_with", "seen_without"))]
    runs: int
    """Number of runs on each of the two logs, all stages together."""
    tried: Annotated[tuple[tuple[str, float], ...], InJson(as_=_events_to_json)]
    """Names of all attempts, with what each seemed to show on the short runs."""
    person_cases: int = 1
    """Number of cases of the person by whom the logs differ."""
    conditions: tuple[Condition, ...] = ()
    """Conditions of the derived guarantee."""
    breaks: Broken | None = None
    """Reason why the guarantee covers none of the tried logs; None if it does."""
    beyond: Annotated[tuple[OutOfScopeResult, ...], InJson(then=("verdict",))] = ()
    """Attacks with logs that it does not cover, apart from the others."""
    seconds: float = 0.0
    white_box: Annotated[WhiteBox | None, InJson(left_out="at its default")] = None
    """Findings of a white-box audit; None for an audit that sees only releases."""

    @property
    def claim(self) -> float:
        """Claimed epsilon: the derived one, or the paper's where none is derived."""
        return self.nominal_epsilon if self.derived_epsilon is None else self.derived_epsilon

    @property
    def seen_with(self) -> tuple[int, int]:
        """Counts for the log with the case (or person): runs with the event, and all runs."""
        return self.tally.seen_with, self.tally.runs_with

    @property
    def seen_without(self) -> tuple[int, int]:
        """The same counts for the log without."""
        return self.tally.seen_without, self.tally.runs_without

    @property
    def verdict(self) -> str:
        return " ".join(found.english for found in self.verdicts)

    @property
    def verdicts(self) -> tuple[Message, ...]:
        """Verdict on the guarantee, then one on each attack beyond it."""
        return (self._finding_message(), *(found.says(self.claim, self.confidence) for found in self.beyond))

    def _finding_message(self) -> Message:
        if self.white_box is not None and self.white_box.faults:
            return Message("audit-fault", faults="; ".join(map(str, self.white_box.faults)))
        if self.breaks is not None:
            found = OutOfScopeResult(self.breaks, self.attack, self.score, self.tally, self.person_cases)
            return found.says(self.claim, self.confidence)
        free = 0.0 if self.white_box is None else self.white_box.free_epsilon
        most = max(self.audited_epsilon, free)
        if self.derived_epsilon is not None and most > self.derived_epsilon:
            return Message("audit-contradicts-derived", epsilon=most, confidence=self.confidence)
        seen = {"epsilon": self.audited_epsilon, "confidence": self.confidence}
        if self.audited_epsilon > self.nominal_epsilon:
            return Message("audit-contradicts-nominal", **seen)
        if self.conditions:
            return Message("audit-contradicts-nothing-where-conditions-hold", **seen)
        return Message("audit-contradicts-nothing", **seen)
