"""Attributes by the path of a case: noisy sums of signs, and shares in its kinds.

The *signs* of a case stand for some entries of its profile (:mod:`veilog.methods._events.cells`): 1 if it has the
entry, else -1. A case adds its signs to the row of its value, or weighed to the only row of two values
(:meth:`EventQuestions.cube_sums`). So the sums show how often cases of a value have each activity. The choice of
entries follows from released cases, which are public by then.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

import numpy as np

from veilog._typing import FloatArray, IntArray
from veilog.messages import Message
from veilog.methods._events.attributes.variables import Variable
from veilog.methods._events.cells import Kinds, fit_kinds, likeliest_effects, profiles_of
from veilog.methods._events.times.prior import PriorTimes
from veilog.privacy.case_functions import Triples
from veilog.privacy.cases import CaseFeatures, Cases, Coding
from veilog.privacy.contributions import CUBE_UNIT, steps_of_cubes
from veilog.privacy.curator import Curator

VARIES = 0.02
"""Least variance of a queried entry, beyond what the other queried ones explain.

With half of it gaps of five synthetic logs are off by .027, with .05 by .025, in place of .026 (10,000 cases, three
seeds).
"""
MOST_NOISE, NOISE_OF_REPEATED = 0.25, 0.03
"""Most that noise may move gaps: entries are queried up to this, and users look for gaps of .1 to .4.

Entries of repeated activities come behind all others, and have to leave gaps as they are. With twice of it gaps of five
synthetic logs are off by .033, with half of it as before by .026 (10,000 cases, three seeds).
"""
_EVEN = np.array([0.25, 0.25, 0.5])


@dataclass(frozen=True, eq=False)
class SignRule:
    """Public rule for the signs of each case; it holds nothing of a released case."""

    entries: IntArray
    """Entries of profiles."""
    labels: tuple[str, ...]

    @staticmethod
    def of(kinds: Kinds, labels: tuple[str, ...], epsilon: Fraction, cases: int) -> SignRule:
        """Return the rule of the entries that explain most of released cases.

        There are as many as noise lets be queried at this epsilon. Each is the one that varies most given those before
        it (pivoted Cholesky decomposition of their covariances).
        """
        from_mean = kinds.profiles - kinds.shares @ kinds.profiles
        left, entries = from_mean.T @ (kinds.shares[:, None] * from_mean), list[int]()
        for first, most_noise in ((0, MOST_NOISE), (len(labels), NOISE_OF_REPEATED)):
            some = slice(first, first + len(labels))
            while noise_of_gaps(variance_of(len(entries) + 1, epsilon), _EVEN, cases) <= most_noise:
                varies = left.diagonal()[some]
                if varies.max(initial=0) < VARIES:
                    break
                entries.append(first + int(varies.argmax()))
                left = left - np.outer(left[entries[-1]], left[entries[-1]]) / varies.max()
        return SignRule(np.array(entries, dtype=np.int64), labels)

    def of_cases(self, block: Cases) -> IntArray:
        """Return the signs of each case, a row each."""
        found = [
            there[:, self.entries].toarray() for there in profiles_of(block.codes, block.offsets, len(self.labels))
        ]
        return np.concatenate([*found, np.zeros((0, len(self.entries)))]).astype(np.int64) * 2 - 1

    def of_profiles(self, profiles: FloatArray) -> FloatArray:
        """Return the signs of profiles."""
        return 2 * profiles[:, self.entries] - 1


@dataclass(frozen=True, eq=False)
class SignSums:
    """Noisy sums of cases' signs by the values of an attribute, with their variance.

    Each sum has noise of this variance.
    """

    rule: SignRule
    sums: FloatArray
    """Row for each value that occurs; of two values one row, the second less the first, both weighed."""
    variance: float
    cases: float
    """Approximate number of cases."""
    prior: SignSums | None = None

    def shares(self, usual: FloatArray, kinds: Kinds) -> FloatArray:
        """Return the shares of values in each kind, which are ``usual`` in all cases.

        The share in a kind is the usual one, or that of a prior, plus a linear function of the profile. The function is
        normally distributed about nothing, with the likeliest of some deviations (empirical Bayes; Morris 1983). Kinds
        then have shares that add up as these do for each entry of profiles (:func:`fit_kinds`).
        """
        starts = [np.repeat(usual[None], len(kinds.shares), axis=0)]
        if self.prior is not None:
            starts.append(self.prior.shares(usual, kinds))
        there, signs = np.flatnonzero(usual > 0), self.rule.of_profiles(kinds.profiles)
        # How the share of a value varies with each sign.
        measured = (kinds.shares[:, None] * signs).T
        expected, p = kinds.shares @ signs, usual[there]
        if len(self.sums) == 1:
            first, second = weights_of_two(p) / CUBE_UNIT
            of_second = (self.sums[0] / self.cases + (first - p[1] * (first + second)) * expected) / (first + second)
            varies = np.stack([-of_second, of_second], axis=1)
        else:
            varies = (self.sums - p[:, None] * self.sums.sum(axis=0)).T / self.cases
        noise = noise_by_value(p) * self.variance / self.cases**2
        x = kinds.profiles - kinds.shares @ kinds.profiles
        found, likely = [], np.zeros(len(starts))
        for place, start in enumerate(starts):
            apart = varies - measured @ (start[:, there] - p)
            effects, each = likeliest_effects(apart, measured @ x, noise)
            found.append(start.copy())
            found[-1][:, there] += x @ effects
            likely[place] = float(each.sum())
        weights = np.exp(likely - likely.max())
        together = sum(weight * one for weight, one in zip(weights / weights.sum(), found, strict=True))
        return fit_kinds(np.asarray(together), usual, kinds)


def weights_of_two(p: FloatArray) -> IntArray:
    """Return the weights of two values by how often they occur, in integer units.

    With these the difference of their sums is how their shares go with signs, however often cases have each sign. The
    larger one is 1.
    """
    return np.asarray(np.rint(CUBE_UNIT * p[::-1] / p.max()), dtype=np.int64)


def noise_by_value(p: FloatArray) -> FloatArray:
    """Return the variance of how a value's share goes with a sign, over that of a sum.

    It follows from how often values occur. Of two it is the variance of their difference, of others that of a sum less
    its part of all.
    """
    return np.full(2, p.max() ** 2) if len(p) == 2 else (1 - p) ** 2 + (len(p) - 1) * p**2


def variance_of(width: int, epsilon: Fraction) -> float:
    """Return the variance of noise of a sum of signs, where so many are queried."""
    return (width + 1) * (width + 2) / 3 / float(epsilon) ** 2


def noise_of_gaps(variance: float, usual: FloatArray, cases: float) -> float:
    """Return by about how much noise alone moves gaps between groups.

    A gap is how much more often cases of a value have an activity than others do. The value with the least error
    counts, with the mean of both signs.
    """
    p = usual[usual > 0]
    noise = noise_by_value(p) * variance / (2 * p * (1 - p) + 1e-12) ** 2
    return float(min(1.0, (2 / np.pi * noise.min()) ** 0.5 / cases))


def query_signs(
    curator: Curator,
    epsilon: Fraction,
    one: Variable,
    rule: SignRule,
    codings: tuple[Coding, ...],
    cases: float,
    prior: PriorTimes | None,
) -> SignSums:
    """Return how an attribute goes with signs, by noisy sums; also in a prior."""
    there, width = np.flatnonzero(one.shares > 0), len(rule.entries)
    rows = 1 if len(there) == 2 else len(there)
    features = _features(one, rule, there)
    asked = curator.events.cube_sums(
        features,
        rows,
        width,
        epsilon,
        alphabet=rule.labels,
        codings=codings,
        purpose=Message("values-by-activities", attribute=one.name),
    )
    sums = asked.reshape(rows, width) / steps_of_cubes(width, epsilon)
    found = SignSums(rule, sums, variance_of(width, epsilon), cases)
    if prior is None:
        return found
    ours = [coding for coding in codings if coding.name.removeprefix("case:") == one.name]
    exact = prior.sums(features, rows * width, width * CUBE_UNIT, 1, rule.labels, ours).reshape(rows, width) / CUBE_UNIT
    if not exact.any():
        return found
    number = float(prior.sums(partial(_cases_with, one, there), 1, 1, 1, rule.labels, ours)[0])
    return replace(found, prior=SignSums(rule, exact, number, number))


def _cases_with(one: Variable, there: IntArray, block: Cases) -> Triples:
    known = np.flatnonzero(np.isin(one.of_block(block), there))
    return known, np.zeros(len(known), dtype=np.int64), np.ones(len(known), dtype=np.int64)


def _features(one: Variable, rule: SignRule, there: IntArray) -> CaseFeatures:
    """Return the contribution of a case to sums of signs.

    Other machines may compute it, so it holds no values of released cases.
    """
    of_block, place, width = one.of_block, np.full(one.size, -1), len(rule.entries)
    place[there] = np.arange(len(there))
    weights = weights_of_two(one.shares[there]) * [-1, 1] if len(there) == 2 else np.full(len(there), CUBE_UNIT)

    def of_cases(block: Cases) -> Triples:
        values = place[of_block(block)]
        known = np.flatnonzero(values >= 0)
        signs, values = rule.of_cases(block)[known], values[known]
        signs, values = signs * weights[values, None], values if len(there) > 2 else np.zeros_like(values)
        columns = values[:, None] * width + np.arange(width)
        return np.repeat(known, width), columns.reshape(-1), signs.reshape(-1)

    return of_cases
