"""How an attribute goes with the path of a case: noisy sums of signs, and shares of its values in each kind of case.

The *signs* of a case say of some entries of its profile (:mod:`veilog.methods._events.cells`) whether it has each: 1 or
-1. A case adds its signs to the row of its value, or weighed to the only row of two values
(:meth:`EventQuestions.cube_sums`). So the sums say how often cases of a value have each activity. Which entries are
asked follows from released cases, which are public by then.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

import numpy as np

from veilog._typing import FloatArray, IntArray
from veilog.messages import Message
from veilog.methods._events.attributes.variables import Variable
from veilog.methods._events.cells import Kinds, fitted_kinds, likeliest_effects, profiles_of
from veilog.methods._events.times.prior import PriorTimes
from veilog.privacy.case_functions import Triples
from veilog.privacy.cases import CaseFeatures, Cases, Coding
from veilog.privacy.contributions import CUBE_UNIT, steps_of_cubes
from veilog.privacy.curator import Curator

VARIES = 0.02
"""An entry is asked if it varies by so much beyond what the others that are asked say of it. With half of it gaps of
five synthetic logs are off by .027, with .05 by .025, in place of .026 (10,000 cases, three seeds)."""
MOST_NOISE, NOISE_OF_REPEATED = 0.25, 0.03
"""Entries are asked while noise moves gaps by no more than this: people look for gaps of .1 to .4. Those of repeated
activities come behind all others, and have to leave gaps as they are: with twice of it gaps of five synthetic logs are
off by .033, with half of it as before by .026 (10,000 cases, three seeds)."""
_EVEN = np.array([0.25, 0.25, 0.5])


@dataclass(frozen=True, eq=False)
class SignRule:
    """The public rule that gives each case its signs; it holds nothing of a released case."""

    entries: IntArray
    """Entries of profiles."""
    labels: tuple[str, ...]

    @staticmethod
    def of(kinds: Kinds, labels: tuple[str, ...], epsilon: Fraction, cases: int) -> SignRule:
        """Return the entries that say most of released cases, as many as noise lets be asked at this epsilon: each time
        that which varies most given those before it (pivoted Cholesky decomposition of their covariances)."""
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
    """Noisy sums of the signs of cases by the values of an attribute, with noise of this variance in each."""

    rule: SignRule
    sums: FloatArray
    """A row for each value that occurs; of two values one row, the second less the first, both weighed."""
    variance: float
    cases: float
    """About how many cases there are."""
    prior: SignSums | None = None

    def shares(self, usual: FloatArray, kinds: Kinds) -> FloatArray:
        """Return the shares of values in each kind, which are ``usual`` in all cases.

        The share in a kind is the usual one, or that of a prior, and more or less by a linear function of the profile,
        which is normally distributed about nothing, with the likeliest of some deviations (empirical Bayes; Morris
        1983). Kinds then have shares that add up as these do for each entry of profiles (:func:`fitted_kinds`).
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
        return fitted_kinds(np.asarray(together), usual, kinds)


def weights_of_two(p: FloatArray) -> IntArray:
    """Return the weights of two values by how often they occur, in units: with these the difference of their sums is
    how their shares go with signs, however often cases have each sign; the larger one is 1."""
    return np.asarray(np.rint(CUBE_UNIT * p[::-1] / p.max()), dtype=np.int64)


def noise_by_value(p: FloatArray) -> FloatArray:
    """Return the variance of how the share of a value goes with a sign, over that of one sum, by how often values
    occur: of two it is that of their difference, of others that of a sum less its part of all."""
    return np.full(2, p.max() ** 2) if len(p) == 2 else (1 - p) ** 2 + (len(p) - 1) * p**2


def variance_of(width: int, epsilon: Fraction) -> float:
    """Return that of the noise of a sum of signs, where so many are asked."""
    return (width + 1) * (width + 2) / 3 / float(epsilon) ** 2


def noise_of_gaps(variance: float, usual: FloatArray, cases: float) -> float:
    """Return by about how much noise alone moves how much more often cases of a value have an activity than others do:
    of all values that with the least error counts, and of both signs the mean."""
    p = usual[usual > 0]
    noise = noise_by_value(p) * variance / (2 * p * (1 - p) + 1e-12) ** 2
    return float(min(1.0, (2 / np.pi * noise.min()) ** 0.5 / cases))


def asked_signs(
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
    number = float(prior.sums(partial(_having, one, there), 1, 1, 1, rule.labels, ours)[0])
    return replace(found, prior=SignSums(rule, exact, number, number))


def _having(one: Variable, there: IntArray, block: Cases) -> Triples:
    known = np.flatnonzero(np.isin(one.of_block(block), there))
    return known, np.zeros(len(known), dtype=np.int64), np.ones(len(known), dtype=np.int64)


def _features(one: Variable, rule: SignRule, there: IntArray) -> CaseFeatures:
    """What a case adds. It may be asked on other machines, so it holds on to no values of released cases."""
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
