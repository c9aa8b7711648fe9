"""Noise on counts of bins, on weights of labels, and on queries charged together.

*Bins above a threshold.* Where only these come back, the work follows them and not the number of bins. Each empty bin
survives with ``p = P(noise > threshold)``, independently. So the next that survives is a geometric number of bins away.
Given that it survives, its count has the law of noise above the threshold. Both are drawn exactly: the result has the
distribution of noise on every bin, cut at the threshold afterwards.

*Labels* (:func:`frequent_labels`). Every case has the same weight, WEIGHT units. It splits it evenly among its d
different labels (the first MOST of them, if it has more): ``WEIGHT // d`` units each. A label with units is found iff
their sum plus discrete Laplace noise of scale WEIGHT/epsilon exceeds a threshold t. A label without units is never
found. No case has it, or it is beyond the first MOST of every case that has it. The answer is (epsilon,
delta)-differentially private for one case, with a t such that for d = 1, ..., MOST

    p_d = P(noise > t - WEIGHT // d)   is at most   delta / d   and at most   1 - exp(-epsilon / d).

Proof. Let D' be D and one more case. It gives units to d labels, j of them new (no case of D does). The sums of the
others differ by ``WEIGHT // d`` each for d - j of them, at most (1 - j/d) WEIGHT together. For the labels of D, let N
and N' be those found in D and D', and A a set of answers about them. Then P(N' in A) and P(N in A) are within a factor
exp(epsilon (1 - j/d)) of each other. Noise of different labels is independent. Each new label is found in D' with
probability p_d. Let q be the probability that at least one is: q <= j p_d <= delta, and 1 - q = (1 - p_d)^j >=
exp(-epsilon j/d). Let M, M' be all labels found, B a set of answers, A the answers in B without a new label. Then

- P(M' in B) <= P(N' in A)(1 - q) + q <= exp(epsilon) P(N in A) + delta = exp(epsilon) P(M in B) + delta;
- P(M in B) = P(N in A) <= exp(epsilon (1 - j/d)) P(N' in A) = exp(epsilon (1 - j/d)) P(M' in A) / (1 - q)
  <= exp(epsilon) P(M' in B).

Of all d only 1 and MOST need a check. Let x = epsilon/d. But for rounding up to the next unit, the least t is
``WEIGHT/epsilon`` times x - ln x or x - ln(1 - exp(-x)), plus constants. Both are convex in x, so the largest is at an
end, where ``WEIGHT/d`` is whole. One unit more covers the rounding in between. The even split follows Gopi, Gulhane,
Kulkarni, Shen, Shokouhi, Yekhanin, "Differentially private set union", ICML 2020; the threshold follows Korolova,
Kenthapadi, Mishra, Ntoulas, "Releasing search queries and clicks privately", WWW 2009.

*Queries charged together* (:func:`gaussian_rounds`). Their number, and the noise of each, is fixed before the first;
the next query may depend on the answers so far. A histogram counts a case in at most one bin, so a case changes one
count by 1. With Gaussian noise of deviation s_i it is the Gaussian mechanism of ``mu_i = 1 / s_i``, whatever the query.
All of them together cost no more than one of ``mu = sqrt(sum mu_i**2)`` (Dong, Roth, Su, "Gaussian Differential
Privacy", JRSS B 2022, theorem 3.2 and corollary 3.3, for adaptively chosen queries). That is (epsilon,
delta)-differentially private exactly if (Balle, Wang, "Improving the Gaussian mechanism for differential privacy", ICML
2018, theorem 8)

    delta >= Phi(mu / 2 - epsilon / mu) - exp(epsilon) Phi(-mu / 2 - epsilon / mu).

*Sums of vectors.* Let a case change an answer by a vector of integers of L2 norm up to B (``by``). Then noise of
deviation s on each number makes it the Gaussian mechanism of ``mu = B / s``. In the direction of that vector it is as
above, and in the others both logs have the same. B is the same in several such queries, and the deviations in its units
are fixed before the first (:class:`veilog.privacy.events.EventRounds`). So each costs its ``mu_i = B / s_i``, whatever
it asks. How many of its own units B stands for in a query may follow from earlier answers.

*The noise is discrete.* It is of ``N_Z(0, s_i**2 + 4)``, which is Gaussian noise of deviation s_i rounded at random to
integers, but for a factor. Steps 1 and 2 of :mod:`veilog.privacy.mechanisms.accountant` hold with 4 in place of 16,
where ``h = 2.01 exp(-8 pi**2) < 1.1e-34``. Step 3, for at most 2**61 bins in each of 1000 histograms, gives
``6 h n < 1.6e-12``. So the strength is found for a smaller epsilon and a smaller delta, each by a millionth of it. The
millionth of epsilon is at least 1e-9. A millionth of the strength itself is kept back, too, which is more than floats
err.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from veilog.errors import ParameterError
from veilog.logs.variants import Sequences, Variants
from veilog.privacy.case_functions import bins_of
from veilog.privacy.mechanisms import noise
from veilog.privacy.mechanisms.gaussian import LARGEST_VARIANCE_OF_TAILS
from veilog.privacy.mechanisms.intervals import exp_minus, is_at_most, total
from veilog.privacy.mechanisms.mechanism import ROUNDED, DiscreteGaussian, GaussianRounds, Laplace, Thresholded
from veilog.privacy.mechanisms.noise import Randomness

IntArray = npt.NDArray[np.int64]

Assign = Callable[[Sequences], npt.ArrayLike]
"""Function of each sequence, by itself, to a bin 0, 1, ..., or to -1 for none."""

_BLOCK = 65_536
_DENSE_LIMIT = 50_000_000
_LARGEST_SIZE = 2**61


@dataclass(frozen=True)
class SparseHistogram:
    """Bins whose noisy count exceeds a threshold, ascending, with their noisy counts."""

    bins: IntArray
    counts: IntArray


def check_size(size: int, mechanism: Laplace | DiscreteGaussian, keep_above: int | None) -> None:
    """Refuse, before any query, too many bins or a threshold below much noise."""
    if keep_above is None and not 0 <= size <= _DENSE_LIMIT:
        raise ParameterError("histogram-bins-not-listable", parameter="size", size=size)
    if not 0 <= size <= _LARGEST_SIZE:
        raise ParameterError("histogram-too-large", parameter="size", size=size)
    if keep_above is None:
        return
    if keep_above < 0:
        raise ParameterError("histogram-threshold-negative", parameter="keep_above")
    expected = size * _chance_above(mechanism, keep_above)
    if expected > _DENSE_LIMIT:
        raise ParameterError(
            "histogram-empty-bins-survive", parameter="keep_above", expected=expected, keep_above=keep_above
        )


def cases_in_bins(variants: Variants, assign: Assign, size: int) -> tuple[IntArray, IntArray]:
    """Return the bins of ``assign`` with their cases; sequences without one drop out."""
    sequences = variants.sequences
    parts = [
        bins_of(assign, sequences.rows(start, min(start + _BLOCK, len(sequences))), size, check=start == 0)
        for start in range(0, len(sequences), _BLOCK)
    ]
    assigned = np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
    has_bin = assigned >= 0
    return assigned[has_bin], variants.counts[has_bin]


def every_bin(
    assigned: IntArray,
    weights: IntArray,
    size: int,
    mechanism: Laplace | DiscreteGaussian,
    randomness: noise.Randomness,
) -> IntArray:
    """Return the noisy counts of all bins; ``assigned`` bins have these ``weights``."""
    noisy = mechanism.draw(size, randomness)
    np.add.at(noisy, assigned, weights)
    return noisy


def bins_above(
    threshold: int,
    assigned: IntArray,
    weights: IntArray,
    size: int,
    mechanism: Laplace | DiscreteGaussian,
    randomness: noise.Randomness,
) -> SparseHistogram:
    """Return the bins of :func:`every_bin` above a threshold, drawing no others."""
    occupied, inverse = np.unique(assigned, return_inverse=True)
    exact = np.zeros(len(occupied), dtype=np.int64)
    np.add.at(exact, inverse, weights)
    noisy = exact + mechanism.draw(len(occupied), randomness)
    survives = noisy > threshold
    empty = _surviving_empty_bins(size - len(occupied), mechanism, threshold, randomness)
    # The i-th empty bin is bin i plus the number of occupied bins before it.
    empty += np.searchsorted(occupied - np.arange(len(occupied)), empty, side="right")
    empty_counts = mechanism.exceeding(threshold, len(empty), randomness)
    bins = np.concatenate([occupied[survives], empty])
    counts = np.concatenate([noisy[survives], empty_counts])
    order = np.argsort(bins, kind="stable")
    return SparseHistogram(bins[order], counts[order])


def _surviving_empty_bins(
    empty: int, mechanism: Laplace | DiscreteGaussian, threshold: int, randomness: noise.Randomness
) -> IntArray:
    """Return the positions, among ``empty`` bins, of those that noise lifts above it."""
    chance, to = _chance_above(mechanism, threshold), _gaps_to(mechanism, threshold)
    positions: list[IntArray] = []
    last = -1
    while last < empty - 1:
        expected = (empty - 1 - last) * chance
        steps = noise.gaps(to, int(expected + 4 * expected**0.5) + 16, randomness)
        # A gap that leads beyond the end ends the walk; it is cut so that the sum cannot overflow.
        walk = last + np.cumsum(np.minimum(steps, empty) + 1, dtype=object if empty > 2**40 else np.int64)
        positions.append(np.asarray(walk[walk < empty], dtype=np.int64))
        last = int(walk[-1])
    return np.concatenate(positions) if positions else np.zeros(0, dtype=np.int64)


@lru_cache(maxsize=256)
def _gaps_to(mechanism: Laplace | DiscreteGaussian, above: int) -> noise.Gaps:
    return noise.gaps_to(mechanism.tail(above))


@lru_cache(maxsize=256)
def _chance_above(mechanism: Laplace | DiscreteGaussian, above: int) -> float:
    """Return a float hardly above the chance of noise above a number, for estimates."""
    return float(Fraction(mechanism.tail(above)(96)[1], 2**96))


WEIGHT = 2**20
"""Units of a case: so many that rounding a part of it down loses almost nothing."""
MOST = 1024
"""Labels of a case that share its weight; a public number that the threshold hardly depends on."""


@lru_cache(maxsize=64)
def label_threshold(epsilon: Fraction, delta: Fraction) -> int:
    """Return a threshold, in units, for which the proof holds, hardly above the least."""
    if delta == 0:
        raise ParameterError("activities-search-without-delta", parameter="delta")
    scale = epsilon / WEIGHT
    noise.check_scale(scale)
    return max(_smallest(1, epsilon, delta), _smallest(MOST, epsilon, delta)) + 1


def _smallest(d: int, epsilon: Fraction, delta: Fraction) -> int:
    """Return the smallest threshold that will do for cases with ``d`` labels."""
    low, step = -1, WEIGHT
    while not _holds(low + step, d, epsilon, delta):
        low, step = low + step, 2 * step
    high = low + step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _holds(middle, d, epsilon, delta) else (middle, high)
    return high


def _holds(threshold: int, d: int, epsilon: Fraction, delta: Fraction) -> bool:
    above = threshold - WEIGHT // d
    if above < 0:
        return False
    tail = noise.laplace_tail(epsilon / WEIGHT, above)
    if not is_at_most(tail, delta / d):
        return False
    # tail <= 1 - exp(-epsilon/d), written as tail + exp(-epsilon/d) <= 1
    return is_at_most(total(tail, exp_minus(epsilon / d)), Fraction(1))


def label_weights(variants: Variants) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the exact units of each label, to which the noise is added."""
    owner = np.repeat(np.arange(len(variants)), variants.lengths)
    place = owner * max(1, len(variants.labels)) + variants.codes
    pairs, first = np.unique(place, return_index=True)
    order = np.argsort(first, kind="stable")  # the labels of a sequence by their first occurrence
    pairs, owners = pairs[order], owner[np.sort(first)]
    number = np.bincount(owners, minlength=len(variants))
    starts = np.concatenate([[0], np.cumsum(number)])[:-1]
    counted = np.arange(len(owners)) - starts[owners] < MOST
    owners, labels = owners[counted], pairs[counted] % max(1, len(variants.labels))
    weights = np.zeros(len(variants.labels), dtype=np.int64)
    share = WEIGHT // np.maximum(1, np.minimum(number, MOST))
    np.add.at(weights, labels, share[owners] * variants.counts[owners])
    return weights


def labels_noise(epsilon: Fraction, delta: Fraction) -> Thresholded:
    """Return the noise and the threshold for labels, in units of a case's weight."""
    return Thresholded(Laplace(1 / epsilon, WEIGHT), label_threshold(epsilon, delta))


def frequent_labels(variants: Variants, mechanism: Thresholded, randomness: noise.Randomness) -> tuple[str, ...]:
    """Return the labels whose units, if any, exceed the threshold with noise, by name."""
    units = label_weights(variants)
    noisy = units + mechanism.noise.draw(len(variants.labels), randomness)
    return tuple(variants.labels[i] for i in np.flatnonzero((units > 0) & (noisy > mechanism.above)).tolist())


FloatArray = npt.NDArray[np.float64]

MISSED = 0.01
"""Rough fraction of releases without cases that are not recognised as noise alone."""
_EACH = 0.2
"""Fraction of it for all answers by themselves; the rest is for those that count every case, taken together."""


class AnswerTotal(NamedTuple):
    """Sum of the numbers of an answer, their count, and the noise of each."""

    total: int
    numbers: int
    noise: Laplace | GaussianRounds
    counts_cases: bool

    @property
    def variance(self) -> float:
        """Variance of the total."""
        if isinstance(self.noise, GaussianRounds):
            return self.numbers * self.noise.noises[0].variance
        return self.numbers * self.noise.variance

    def moments(self, s: FloatArray) -> FloatArray:
        """Return the log of the moment generating function of its noise, or a bound.

        The bound for discrete Gaussian noise is that of the Gaussian with the parameter of its law.
        """
        if isinstance(self.noise, GaussianRounds):
            return self.numbers * s**2 * self.noise.noises[0].variance / 2
        decay = float(self.noise.decay)
        one = 2 * math.log(-math.expm1(-decay)) - np.log(-np.expm1(s - decay)) - np.log(-np.expm1(-s - decay))
        return self.numbers * np.asarray(one, dtype=np.float64)


@dataclass
class Totals:
    """Totals of the answers so far, to recognise answers that are noise alone.

    Without cases every exact answer is 0, so its total is a sum of independent noises of a known law. A total that
    exceeds what such a sum hardly ever exceeds is not noise alone. All this is post-processing of noisy answers.
    """

    answers: list[AnswerTotal] = field(default_factory=list)

    def add(self, total: int, noise: Laplace | GaussianRounds, numbers: int, *, counts_cases: bool = False) -> None:
        """Add an answer whose exact numbers are at least 0, and all 0 without cases.

        In one that counts cases every case adds 1 to one of its numbers, or to none.
        """
        self.answers.append(AnswerTotal(total, numbers, noise, counts_cases))

    @property
    def noise_only(self) -> bool | None:
        """True if no answer stands out of its noise; None if no query could.

        Those that count cases are weighted by their variances. Each of k answers has a level of its own, too, which
        noise alone exceeds with a probability of about ``MISSED / 5 k``. So no answer that stands out is overlooked
        beside others that leave most cases out.
        """
        counting = [answer for answer in self.answers if answer.counts_cases]
        if not self.answers:
            return None
        rate = _EACH * MISSED / len(self.answers)
        if any(answer.total > exceeded_by_noise([answer], rate) for answer in self.answers):
            return False
        together = sum(answer.total / answer.variance for answer in counting)
        return not counting or together <= exceeded_by_noise(counting, (1 - _EACH) * MISSED, weighted=True)


def exceeded_by_noise(answers: Sequence[AnswerTotal], rate: float, *, weighted: bool = False) -> float:
    """Return the level that the noise of these totals exceeds with about this chance.

    The chance is ``rate``, for all totals together, ``weighted`` by the inverse of their variances.

    It is the saddlepoint approximation: ``P(S > K'(s)) = exp(K(s) - s K'(s) + l**2 / 2) Q(l)`` with
    ``l = s sqrt(K''(s))``. Q is the upper tail of the normal distribution, and K the logarithm of the moment generating
    function of the sum.
    """
    weights = [1 / answer.variance if weighted else 1.0 for answer in answers]
    ends = [
        float(answer.noise.decay) / weight
        for answer, weight in zip(answers, weights, strict=True)
        if isinstance(answer.noise, Laplace)
    ]
    spread = math.sqrt(sum(weight**2 * answer.variance for answer, weight in zip(answers, weights, strict=True)))
    end = min([*ends, 12 / spread])
    s = end * np.linspace(0.001, 0.9995, 2000)
    moments = np.sum([a.moments(s * weight) for a, weight in zip(answers, weights, strict=True)], axis=0)
    means = np.gradient(moments, s)
    far = s * np.sqrt(np.maximum(np.gradient(means, s), 0))
    tails = np.array([math.log(max(math.erfc(each / math.sqrt(2)) / 2, 1e-300)) for each in far.tolist()])
    rare = moments - s * means + far**2 / 2 + tails <= math.log(rate)
    return float(means[int(rare.argmax()) if rare.any() else -1])


MOST_ROUNDS = 1000
LEAST_EPSILON = Fraction(1, 1000)
LEAST_DELTA = Fraction(1, 10**50)
_KEPT_BACK = 1e-6


def gaussian_rounds(weights: Sequence[Fraction], epsilon: Fraction, delta: Fraction, *, by: int = 1) -> GaussianRounds:
    """Return the noise of a query for each weight, (epsilon, delta)-private together.

    The weights share out the squared strength. It holds where a case changes each answer by at most ``by`` in the L2
    norm: 1 in a histogram.
    """
    if not 1 <= len(weights) <= MOST_ROUNDS or any(weight <= 0 for weight in weights):
        raise ParameterError("rounds-out-of-range", parameter="weights", most_rounds=MOST_ROUNDS)
    if epsilon < LEAST_EPSILON or not LEAST_DELTA <= delta < 1:
        raise ParameterError(
            "rounds-budget-too-small",
            parameter="epsilon",
            least_epsilon=float(LEAST_EPSILON),
            least_delta=float(LEAST_DELTA),
        )
    square = Fraction(strength_within(float(epsilon), float(delta))) ** 2
    whole = sum(weights, start=Fraction(0))
    return GaussianRounds(
        tuple(DiscreteGaussian(by**2 * whole / (weight * square) + ROUNDED) for weight in weights), by
    )


def histogram_rounds(weights: Sequence[Fraction], epsilon: Fraction, delta: Fraction) -> GaussianRounds:
    """Return the noise of a histogram for each weight, fit for :func:`bins_above`."""
    paid = gaussian_rounds(weights, epsilon, delta)
    if max(noise.exact_variance for noise in paid.noises) > LARGEST_VARIANCE_OF_TAILS:
        raise ParameterError("rounds-noise-too-wide", parameter="epsilon")
    return paid


def rounds_pay(weights: Sequence[Fraction], epsilon: Fraction, delta: Fraction) -> bool:
    """Return True if Gaussian noise is narrower than Laplace noise of split epsilons.

    It compares the products of the variances, from public numbers only.
    """
    if not delta:
        return False
    try:
        noises = histogram_rounds(weights, epsilon, delta).noises
    except ParameterError:  # no such noise exists for this budget
        return False
    whole = float(sum(weights, start=Fraction(0)))
    apart = [2 * math.log(float(weight) / whole * float(epsilon)) - math.log(2) for weight in weights]
    return sum(math.log(noise.variance) for noise in noises) < -sum(apart)


@lru_cache(maxsize=256)
def strength_within(epsilon: float, delta: float) -> float:
    """Return a mu of an (epsilon, delta)-private Gaussian, hardly below the largest."""
    within, failure = epsilon * (1 - _KEPT_BACK), math.log(delta * (1 - _KEPT_BACK))
    low, high = 0.0, 1.0
    while _log_delta(within, high) <= failure:
        low, high = high, 2 * high
    while high - low > high * 1e-12:
        middle = (low + high) / 2
        low, high = (middle, high) if _log_delta(within, middle) <= failure else (low, middle)
    return low * (1 - _KEPT_BACK)


def _log_delta(epsilon: float, mu: float) -> float:
    """Return the logarithm of the delta of a Gaussian mechanism at epsilon."""
    from scipy.special import log_ndtr  # here: it is of use with a delta only, and takes a while to import

    inside = float(log_ndtr(mu / 2 - epsilon / mu))
    lost = float(epsilon + log_ndtr(-mu / 2 - epsilon / mu)) - inside
    return inside + math.log(-math.expm1(lost)) if lost < 0 else -math.inf


class Rounds:
    """Histograms that are charged together; one beyond them is refused.

    Opened by :meth:`veilog.privacy.curator.Curator.rounds`, which charges all of them before the first.
    """

    def __init__(self, variants: Variants, paid: GaussianRounds, randomness: Randomness) -> None:
        self._variants, self._paid, self._randomness = variants, paid, randomness
        self._asked = 0

    @property
    def asked(self) -> int:
        """Number of histograms so far."""
        return self._asked

    @property
    def noises(self) -> tuple[DiscreteGaussian, ...]:
        """Noise of each histogram."""
        return self._paid.noises

    def histogram(self, assign: Assign, size: int, *, keep_above: int) -> SparseHistogram:
        """Return the next histogram: bins whose noisy number exceeds ``keep_above``.

        The bins are 0, ..., size-1, their numbers are those of cases.

        Sensitivity: ``assign`` maps each sequence, by itself, to one bin or to none, so a case changes one count by 1.
        It was charged with the others.
        """
        if self._asked == len(self.noises):
            raise ParameterError("rounds-histograms-used-up", parameter="rounds", asked=self._asked)
        noise = self.noises[self._asked]
        check_size(size, noise, keep_above)
        self._asked += 1
        assigned, weights = cases_in_bins(self._variants, assign, size)
        return bins_above(keep_above, assigned, weights, size, noise, self._randomness)
