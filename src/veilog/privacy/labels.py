"""Finding the labels that enough cases have, where the owner does not declare them.

Every case has the same weight, WEIGHT units, and splits it evenly among its d different labels (the first MOST of them,
if it has more): ``WEIGHT // d`` units each. A label that has units is found iff their sum plus discrete Laplace noise
of scale WEIGHT/epsilon exceeds a threshold t. A label without units is never found: one that no case has, and one that
is beyond the first MOST of every case that has it, as a case may have any number of these.

Guarantee: (epsilon, delta)-differential privacy for one case, with a t such that for d = 1, ..., MOST

    p_d = P(noise > t - WEIGHT // d)   is at most   delta / d   and at most   1 - exp(-epsilon / d).

Proof. Let D' be D and one more case, which gives units to d labels, j of them new (no case of D does). The others' sums
differ by ``WEIGHT // d`` each for d - j of them, at most (1 - j/d) WEIGHT together, so for sets A of answers about the
labels of D, with N and N' what is found of these in D and D', P(N' in A) and P(N in A) are within a factor
exp(epsilon (1 - j/d)) of each other. Noise of different labels is independent. Each new label is found in D' with
probability p_d; let q be the probability that at least one is: q <= j p_d <= delta, and 1 - q = (1 - p_d)^j >=
exp(-epsilon j/d). Let M, M' be all that is found, B a set of answers, A the answers in B without a new label. Then

- P(M' in B) <= P(N' in A)(1 - q) + q <= exp(epsilon) P(N in A) + delta = exp(epsilon) P(M in B) + delta;
- P(M in B) = P(N in A) <= exp(epsilon (1 - j/d)) P(N' in A) = exp(epsilon (1 - j/d)) P(M' in A) / (1 - q)
  <= exp(epsilon) P(M' in B).

Of all d only 1 and MOST need to be looked at. With x = epsilon/d the least t is, but for rounding up to the next unit,
``WEIGHT/epsilon`` times x - ln x or x - ln(1 - exp(-x)), plus constants; both are convex in x, so the largest is at an
end, where ``WEIGHT/d`` is whole. One unit more covers the rounding in between.

Even splitting of a case's weight among what it has: Gopi, Gulhane, Kulkarni, Shen, Shokouhi, Yekhanin, "Differentially
private set union", ICML 2020; the threshold: Korolova, Kenthapadi, Mishra, Ntoulas, "Releasing search queries and
clicks privately", WWW 2009.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import numpy as np

from veilog.errors import ParameterError
from veilog.logs.variants import Variants
from veilog.privacy.mechanisms import noise
from veilog.privacy.mechanisms.intervals import exp_minus, is_at_most, total
from veilog.privacy.mechanisms.mechanism import Laplace, Thresholded

WEIGHT = 2**20
"""Units of a case: so many that rounding a part of it down loses nothing to speak of."""
MOST = 1024
"""Labels of a case that share its weight; a public number that the threshold hardly depends on."""


@lru_cache(maxsize=64)
def label_threshold(epsilon: Fraction, delta: Fraction) -> int:
    """Return a threshold, in units, at which the proof holds, and hardly a smaller one would."""
    if delta == 0:
        raise ParameterError(
            "Finding the activities privately needs a delta above 0.",
            parameter="delta",
            advice="Take less than one over the number of cases, e.g. 1e-6; or declare the activities.",
        )
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
    """Return the units of each label, exactly: what the noise is added to."""
    owner = np.repeat(np.arange(len(variants)), variants.lengths)
    place = owner * max(1, len(variants.labels)) + variants.codes
    pairs, first = np.unique(place, return_index=True)
    order = np.argsort(first, kind="stable")  # the labels of a sequence as they come first
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
    """Return the noise and the threshold at which labels are found, in units of a case's weight."""
    return Thresholded(Laplace(1 / epsilon, WEIGHT), label_threshold(epsilon, delta))


def frequent_labels(variants: Variants, mechanism: Thresholded, randomness: noise.Randomness) -> tuple[str, ...]:
    """Return the labels that have units, and whose units plus noise exceed the threshold, in the order of their
    names."""
    units = label_weights(variants)
    noisy = units + mechanism.noise.draw(len(variants.labels), randomness)
    return tuple(variants.labels[i] for i in np.flatnonzero((units > 0) & (noisy > mechanism.above)).tolist())
