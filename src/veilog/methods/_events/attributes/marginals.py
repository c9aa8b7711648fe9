"""One attribute of cases at a time: the question about how often it has each value, and what is believed of the answer.

Numbers are asked in bins that get finer where the answers say that there is mass: 16 even parts of the declared range,
then up to 16 parts of each part that holds much, as many as it holds noise scales, down to the steps in which they are
written. Each time all bins of the moment are asked, and a bin and its parts are made to agree by least squares
(:mod:`numbers`).

Of noisy counts that much is believed as they stand out of the noise: how far counts are from what is expected of them
is learnt from all of them together, and each is then its mean given the answer (empirical Bayes; the law is the
likeliest one: Kiefer and Wolfowitz 1956).
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
from veilog.methods._events.times.prior import PriorTimes, leaned
from veilog.privacy.case_functions import Triples
from veilog.privacy.cases import Cases, Coding
from veilog.privacy.curator import Curator

LEVELS = (2, 5)
CASES_A_LEVEL = 150
"""Bins get finer once more for every so many cases times epsilon."""
SPLIT, SPLIT_NOISES = 0.015, 4.0
"""A bin is split if it holds such a part of all, and so many noise scales."""
_RATIOS, _FINE = 28, 6
"""How far counts are from what is expected: so many classes, each of so many places."""
_CLASS_SIZES = np.append(1.0, np.full(_RATIOS, float(_FINE)))
_CLASSES = np.concatenate([[0], 1 + np.arange(_RATIOS * _FINE) // _FINE])
_STEPS, _TILT = 40, 0.25
MISSING = 3.0
"""Values are missing where the noisy number of cases without one is so many deviations of its noise: of a thousand
attributes that all cases have, noise alone makes one or two look otherwise."""
MOST_GROUPS = 48
CELLS_KNOWN = 0.5
"""Values are grouped so that of a table's cells each has about so many noise scales of cases."""


@dataclass(frozen=True, eq=False)
class Marginal:
    """How often an attribute has each value."""

    coding: Coding
    shares: FloatArray
    """Of each value, the last one of having none."""
    scale: float
    """Of the noise of each count."""
    cases: float
    """What all counts add up to, which is about the number of cases."""
    prior: float | None = None
    """How likely a prior fits, where there is one."""


def case_values(block: Cases, coding: Coding) -> IntArray:
    """Return the place of the value of each case, the last one for none: of an attribute that events hold, of the first
    that has one."""
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
    """Return of how many groups of values tables of two can be known."""
    return int(np.clip((cases * float(epsilon) / CELLS_KNOWN) ** 0.5, 2, MOST_GROUPS))


def grouped(shares: FloatArray, epsilon: Fraction, cases: float, *, ordered: bool) -> IntArray:
    """Return for each value the number of its group, of which there are so few that tables of two can be known.

    Frequent values are groups by themselves, and the others share one; of numbers those next to each other are one. The
    last value, of having none, stays by itself.
    """
    most = groups_known(epsilon, cases)
    if len(shares) - 1 <= most:
        return np.arange(len(shares))
    groups = groups_of(shares[:-1], most, ordered=ordered)
    return np.append(groups, groups.max() + 1)


def groups_of(shares: FloatArray, most: int, *, ordered: bool) -> IntArray:
    """Return for each value one of so many groups: of numbers neighbours of about the same share, of others each of the
    frequent ones, and the rest together."""
    if ordered:
        reached = (np.cumsum(shares) - shares / 2) / max(float(shares.sum()), 1e-12)
        return np.unique((reached * most).astype(np.int64), return_inverse=True)[1]
    groups = np.full(len(shares), most - 1)
    groups[np.argsort(-shares, kind="stable")[: most - 1]] = np.arange(most - 1)
    return groups


def expected_error(cells: int, scale: float, cases: float) -> float:
    """Return about how large a part of the cases noise puts in a wrong one of so many cells: public numbers only."""
    return float(min(1.0, cells * scale / (2 * max(cases, 1.0))))


# Questions ----------------------------------------------------------------------------------------------------------


def asked_values(
    curator: Curator, epsilon: Fraction, chosen: Chosen, cases: int, prior: PriorTimes | None = None
) -> Marginal:
    """Return how often cases have each value, which leans on a prior; a case adds 1 to one count of each answer."""
    purpose = Message("values-by-case", attribute=chosen.column)

    def of_cases(coding: Coding, block: Cases) -> Triples:
        return np.arange(len(block)), case_values(block, coding), np.ones(len(block), dtype=np.int64)

    def asked(coding: Coding, share: Fraction) -> FloatArray:
        features = partial(of_cases, coding)
        found = curator.events.sums(features, coding.size + 1, 1, share, codings=(coding,), purpose=purpose)
        return found.astype(np.float64)

    if chosen.range is not None:
        found, counts = asked_bins(asked, epsilon, chosen, cases)
    else:
        coding, scale = chosen.coding(), 1 / float(epsilon)
        counts = asked(coding, epsilon)
        shares = believed(counts, scale)
        if counts[-1] < MISSING * 2**0.5 * scale:
            shares[-1] = 0.0
        found = Marginal(coding, shares / max(float(shares.sum()), 1e-12), scale, max(float(counts.sum()), 1.0))
    known = None
    if prior is not None:
        size = found.coding.size + 1
        known = prior.sums(partial(of_cases, found.coding), size, 1, 1, codings=(found.coding,))
    return found if known is None or not known.any() else _leaned(found, counts, known)


def _leaned(found: Marginal, counts: FloatArray, prior: FloatArray) -> Marginal:
    """The shares of values as a prior lets expect, as far as the noisy counts confirm it."""
    there = np.ones(len(counts), dtype=np.bool_)
    there[-1] = found.shares[-1] > 0
    noisy, expected = counts[there] / found.cases, prior[there] + 1e-6 * max(float(prior.sum()), 1.0)
    shares, part = np.zeros(len(counts)), 0.0
    shares[there], part = leaned(found.shares[there], noisy, expected, 2 * (found.scale / found.cases) ** 2)
    return replace(found, shares=np.maximum(shares, 0.0) / np.maximum(shares, 0.0).sum(), prior=part)


def asked_bins(
    asked: Callable[[Coding, Fraction], FloatArray], epsilon: Fraction, chosen: Chosen, cases: int
) -> tuple[Marginal, FloatArray]:
    """Return how often a number is in each of some bins that are fine where the mass is, and the noisy counts;
    ``asked`` gives those of a coding's bins, and one of what is in none."""
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


def believed(noisy: FloatArray, scale: float) -> FloatArray:
    """Return counts as far as noise of this scale lets them be believed.

    A count is a ratio times the mean of all; how ratios are spread is learnt from all counts. A count is then its mean
    given the noisy one.
    """
    places, logs = _possible(noisy, np.full(len(noisy), max(float(noisy.sum()), 1.0) / len(noisy)), scale)
    likely = np.exp(logs - logs.max(axis=1, keepdims=True))
    by_class = _by_class(likely) / _CLASS_SIZES
    weights = np.full(_RATIOS + 1, 1 / (_RATIOS + 1))
    for _ in range(_STEPS):
        given = by_class * weights
        weights = (given / given.sum(axis=1, keepdims=True)).mean(axis=0)
    chance = likely * (weights / _CLASS_SIZES)[_CLASSES]
    return np.asarray(np.maximum((chance * places).sum(axis=1) / chance.sum(axis=1), 1e-12))


def believed_in_rows(
    noisy: FloatArray, expected: FloatArray, scale: float, sums: FloatArray, doubt: FloatArray
) -> tuple[FloatArray, float]:
    """Return typical counts of a table of which the ``sums`` of rows are known and so much is ``expected``, as far as
    noise lets them be believed, and the logarithm of how likely the noisy ones then are. Of many counts that are mostly
    0 means would add up; these are medians.

    That counts of a row add up to so much makes each of them likelier by a factor that rises or falls exponentially
    with it, such that their means add up: large noisy counts in a row that has that much are believed sooner, and those
    in a row that has not are not. The factors are found by Newton's method while it is learnt how ratios are spread.
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
        weights = _by_class(chance).mean(axis=0)
        evidence = float((np.log(total) + top).sum() - tilt @ sums + (tilt**2) @ doubt / 2)
        means = (chance * places).sum(axis=1)
        spread = ((chance * places**2).sum(axis=1) - means**2).reshape(noisy.shape).sum(axis=1)
        step = (sums - means.reshape(noisy.shape).sum(axis=1) - tilt * doubt) / np.maximum(spread + doubt, 1e-9)
        # Beyond one over the scale noise would no longer make large counts unlikely.
        tilt = np.clip(tilt + np.clip(step, -_TILT / scale, _TILT / scale), -1 / scale, 1 / scale)
    return np.asarray(np.maximum(_median(chance, places), 1e-12).reshape(noisy.shape)), evidence


def _possible(noisy: FloatArray, expected: FloatArray, scale: float) -> tuple[FloatArray, FloatArray]:
    """What each count may be, and the logarithm of how likely the noisy one then is."""
    usual = np.maximum(expected, 1e-9)
    most = max(float(((noisy + scale) / usual).max()), 2.0)
    places = usual[:, None] * np.concatenate([[0.0], np.geomspace(1 / 64, most, _RATIOS * _FINE)])
    return places, -np.abs(noisy[:, None] - places) / scale


def _by_class(chance: FloatArray) -> FloatArray:
    """The chances of classes of ratios."""
    parts = chance[:, 1:].reshape(len(chance), _RATIOS, _FINE).sum(axis=2)
    return np.concatenate([chance[:, :1], parts], axis=1)


def _median(chance: FloatArray, places: FloatArray) -> FloatArray:
    reached = np.cumsum(chance, axis=1)
    return np.asarray(places[np.arange(len(places)), (reached >= reached[:, -1:] / 2).argmax(axis=1)])
