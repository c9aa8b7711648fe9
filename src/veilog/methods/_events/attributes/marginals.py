"""One attribute of cases by itself: the query for its values, and their estimate.

Numbers are queried in bins that get finer where the answers show mass. First there are 16 even parts of the declared
range. Then each part that holds much is split into up to 16 parts, as many as it holds noise scales, down to the steps
in which numbers are written. Each query is of all bins of the moment. Least squares make a bin and its parts agree
(:mod:`numbers`).

Noisy counts are believed as far as they stand out of the noise. All of them together show how far counts are from what
is expected of them. Each is then its mean given the answer (empirical Bayes; the law is the likeliest one: Kiefer and
Wolfowitz 1956).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

import numpy as np

from veilog._typing import FloatArray, IntArray
from veilog.messages import Message
from veilog.methods._events.attributes.domains import PARTS, Chosen, edges_of
from veilog.methods._events.attributes.numbers import NumberBins
from veilog.methods._events.times.prior import PriorTimes, lean_on_prior
from veilog.privacy.case_functions import Triples
from veilog.privacy.cases import Cases, Coding
from veilog.privacy.curator import Curator

LEVELS = (2, 5)
CASES_A_LEVEL = 150
"""Cases times epsilon for which bins get finer once more."""
SPLIT, SPLIT_NOISES = 0.015, 4.0
"""Least part of all, and least noise scales, of a bin that is split."""
_RATIOS, _FINE = 28, 6
"""Number of classes of ratios of counts to expected ones, and of places in each class."""
_CLASS_SIZES = np.append(1.0, np.full(_RATIOS, float(_FINE)))
_CLASSES = np.concatenate([[0], 1 + np.arange(_RATIOS * _FINE) // _FINE])
_STEPS, _TILT = 40, 0.25
MISSING = 3.0
"""Deviations of noise from which on the noisy number of cases without a value is not 0.

Of a thousand attributes that all cases have, noise alone makes one or two look otherwise.
"""
MOST_GROUPS = 48
CELLS_KNOWN = 0.5
"""Approximate noise scales of cases in each cell of a table of groups of values."""


@dataclass(frozen=True, eq=False)
class Marginal:
    """Frequencies of the values of an attribute."""

    coding: Coding
    shares: FloatArray
    """Share of each value, the last one of having none."""
    scale: float
    """Scale of the noise of each count."""
    cases: float
    """Sum of all counts, which is about the number of cases."""
    prior: float | None = None
    """Chance that a prior fits, where there is one."""


def case_values(block: Cases, coding: Coding) -> IntArray:
    """Return the place of the value of each case, the last one for none.

    If events hold the attribute, it is the value of the first event that has one.
    """
    values = block.attributes[coding.name]
    if coding.name not in block.of_events:
        return np.where(values >= 0, values, coding.size)
    known = np.flatnonzero(values >= 0)
    owners = block.owners[known]
    first = np.flatnonzero(np.diff(owners, prepend=-1))
    found = np.full(len(block), coding.size, dtype=np.int64)
    found[owners[first]] = values[known[first]]
    return found


def groups_known(epsilon: Fraction, cases: float) -> int:
    """Return the number of groups of values for which tables of two can be known."""
    return int(np.clip((cases * float(epsilon) / CELLS_KNOWN) ** 0.5, 2, MOST_GROUPS))


def group_values(shares: FloatArray, epsilon: Fraction, cases: float, *, ordered: bool) -> IntArray:
    """Return the number of each value's group.

    There are so few groups that tables of two can be known. Frequent values are groups by themselves, and the others
    share one. Of numbers, neighbours share one. The last value, of having none, stays by itself.
    """
    most = groups_known(epsilon, cases)
    if len(shares) - 1 <= most:
        return np.arange(len(shares))
    groups = groups_of(shares[:-1], most, ordered=ordered)
    return np.append(groups, groups.max() + 1)


def groups_of(shares: FloatArray, most: int, *, ordered: bool) -> IntArray:
    """Return one of ``most`` groups for each value.

    Numbers are in groups of neighbours, of about the same share each. Of other values, each frequent one is a group,
    and the rest is one.
    """
    if ordered:
        reached = (np.cumsum(shares) - shares / 2) / max(float(shares.sum()), 1e-12)
        return np.unique((reached * most).astype(np.int64), return_inverse=True)[1]
    groups = np.full(len(shares), most - 1)
    groups[np.argsort(-shares, kind="stable")[: most - 1]] = np.arange(most - 1)
    return groups


def expected_error(cells: int, scale: float, cases: float) -> float:
    """Return the expected part of cases in a wrong cell by noise, from public numbers."""
    return float(min(1.0, cells * scale / (2 * max(cases, 1.0))))


# Queries ------------------------------------------------------------------------------------------------------------


def query_values(
    curator: Curator, epsilon: Fraction, chosen: Chosen, cases: int, prior: PriorTimes | None = None
) -> Marginal:
    """Return how often cases have each value, leaning on a prior if there is one.

    A case adds 1 to one count of each answer.
    """
    purpose = Message("values-by-case", attribute=chosen.column)

    def of_cases(coding: Coding, block: Cases) -> Triples:
        return np.arange(len(block)), case_values(block, coding), np.ones(len(block), dtype=np.int64)

    def asked(coding: Coding, share: Fraction) -> FloatArray:
        features = partial(of_cases, coding)
        found = curator.events.sums(features, coding.size + 1, 1, share, codings=(coding,), purpose=purpose)
        return found.astype(np.float64)

    if chosen.range is not None:
        found, counts = query_bins(asked, epsilon, chosen, cases)
    else:
        coding, scale = chosen.coding(), 1 / float(epsilon)
        counts = asked(coding, epsilon)
        shares = believe_counts(counts, scale)
        if counts[-1] < MISSING * 2**0.5 * scale:
            shares[-1] = 0.0
        found = Marginal(coding, shares / max(float(shares.sum()), 1e-12), scale, max(float(counts.sum()), 1.0))
    known = None
    if prior is not None:
        size = found.coding.size + 1
        known = prior.sums(partial(of_cases, found.coding), size, 1, 1, codings=(found.coding,))
    return found if known is None or not known.any() else _lean_on_prior(found, counts, known)


def _lean_on_prior(found: Marginal, counts: FloatArray, prior: FloatArray) -> Marginal:
    """Return shares as a prior lets expect, as far as the noisy counts confirm it."""
    there = np.ones(len(counts), dtype=np.bool_)
    there[-1] = found.shares[-1] > 0
    noisy, expected = counts[there] / found.cases, prior[there] + 1e-6 * max(float(prior.sum()), 1.0)
    shares, part = np.zeros(len(counts)), 0.0
    shares[there], part = lean_on_prior(found.shares[there], noisy, expected, 2 * (found.scale / found.cases) ** 2)
    return replace(found, shares=np.maximum(shares, 0.0) / np.maximum(shares, 0.0).sum(), prior=part)


def query_bins(
    asked: Callable[[Coding, Fraction], FloatArray], epsilon: Fraction, chosen: Chosen, cases: int
) -> tuple[Marginal, FloatArray]:
    """Return how often a number is in each of some bins, and the noisy counts.

    The bins are fine where the mass is. ``asked`` gives the counts of a coding's bins, and one of what is in none.
    """
    levels = int(np.clip(1 + int(float(epsilon) * cases / CASES_A_LEVEL), *LEVELS))
    share, left = epsilon / levels, epsilon
    bins = NumberBins(chosen.lattice(PARTS), chosen.points)
    while True:
        coding = chosen.coding(edges_of(bins.places, chosen.unit))
        bins.told(asked(coding, share), float(share) ** 2)
        counts = bins.counts
        left -= share
        if not left:
            shares = bins.shares()
            if counts[-1] < MISSING * 2**0.5 * bins.scale:
                shares[-1] = 0.0
                shares /= shares.sum()
            return Marginal(coding, shares, bins.scale, max(float(counts.sum()), 1.0)), counts
        least = max(SPLIT * float(counts.sum()), SPLIT_NOISES / float(share))
        full = (counts >= least) & (np.append(np.diff(bins.places), 1) > 1)
        bins.split(np.where(full, np.clip(counts * float(share), SPLIT_NOISES, PARTS), 1.0))
        if not full.any():
            share = left  # nothing to split: one better look at the same bins


def believe_counts(noisy: FloatArray, scale: float) -> FloatArray:
    """Return counts as far as noise of this scale lets them be believed.

    A count is a ratio times the mean of all. The spread of ratios is learnt from all counts. A count is then its mean
    given the noisy one.
    """
    places, logs = _possible(noisy, np.full(len(noisy), max(float(noisy.sum()), 1.0) / len(noisy)), scale)
    likely = np.exp(logs - logs.max(axis=1, keepdims=True))
    by_class = _class_chances(likely) / _CLASS_SIZES
    weights = np.full(_RATIOS + 1, 1 / (_RATIOS + 1))
    for _ in range(_STEPS):
        given = by_class * weights
        weights = (given / given.sum(axis=1, keepdims=True)).mean(axis=0)
    chance = likely * (weights / _CLASS_SIZES)[_CLASSES]
    return np.asarray(np.maximum((chance * places).sum(axis=1) / chance.sum(axis=1), 1e-12))


def believed_in_rows(
    noisy: FloatArray, expected: FloatArray, scale: float, sums: FloatArray, doubt: FloatArray
) -> tuple[FloatArray, float]:
    """Return typical counts of a table by noisy ones, and the answer's log-likelihood.

    The ``sums`` of rows are known with the variance ``doubt``, and so much is ``expected`` of each count. They are
    believed as far as noise lets. Of many counts that are mostly 0 means would add up; these are medians.

    The counts of a row add up to its sum. So each is likelier by a factor that rises or falls exponentially with it,
    such that their means add up. In a row that has that much, large noisy counts are believed sooner. In a row that has
    not, they are not. Newton's method finds the factors while the spread of ratios is learnt.
    """
    places, logs = _possible(noisy.reshape(-1), expected.reshape(-1), scale)
    weights, tilt = np.full(_RATIOS + 1, 1 / (_RATIOS + 1)), np.zeros(len(noisy))
    for _ in range(_STEPS):
        each = np.repeat(tilt, noisy.shape[1])[:, None] * places
        chance = logs + np.log(np.maximum(weights, 1e-12) / _CLASS_SIZES)[_CLASSES] + each
        top = chance.max(axis=1, keepdims=True)
        chance = np.exp(chance - top)
        total = chance.sum(axis=1, keepdims=True)
        chance /= total
        weights = _class_chances(chance).mean(axis=0)
        evidence = float((np.log(total) + top).sum() - tilt @ sums + (tilt**2) @ doubt / 2)
        means = (chance * places).sum(axis=1)
        spread = ((chance * places**2).sum(axis=1) - means**2).reshape(noisy.shape).sum(axis=1)
        step = (sums - means.reshape(noisy.shape).sum(axis=1) - tilt * doubt) / np.maximum(spread + doubt, 1e-9)
        # Beyond one over the scale noise would no longer make large counts unlikely.
        tilt = np.clip(tilt + np.clip(step, -_TILT / scale, _TILT / scale), -1 / scale, 1 / scale)
    return np.asarray(np.maximum(_median(chance, places), 1e-12).reshape(noisy.shape)), evidence


def _possible(noisy: FloatArray, expected: FloatArray, scale: float) -> tuple[FloatArray, FloatArray]:
    """Return possible values of each count, and the noisy one's log-likelihoods."""
    usual = np.maximum(expected, 1e-9)
    most = max(float(((noisy + scale) / usual).max()), 2.0)
    places = usual[:, None] * np.concatenate([[0.0], np.geomspace(1 / 64, most, _RATIOS * _FINE)])
    return places, -np.abs(noisy[:, None] - places) / scale


def _class_chances(chance: FloatArray) -> FloatArray:
    """Return the chances of classes of ratios."""
    parts = chance[:, 1:].reshape(len(chance), _RATIOS, _FINE).sum(axis=2)
    return np.concatenate([chance[:, :1], parts], axis=1)


def _median(chance: FloatArray, places: FloatArray) -> FloatArray:
    reached = np.cumsum(chance, axis=1)
    return np.asarray(places[np.arange(len(places)), (reached >= reached[:, -1:] / 2).argmax(axis=1)])
