"""Cases of a log that fit an attacker's knowledge of activities and of a start."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from veilog._counting import count_numbers
from veilog._typing import FloatArray, IntArray
from veilog.errors import ParameterError
from veilog.logs.eventlog import EventLog
from veilog.logs.variants import Variants
from veilog.measures.disclosure.estimate import Matcher
from veilog.measures.disclosure.spaces import variant_of_cases
from veilog.measures.durations import case_spans, timed
from veilog.measures.measure import Reason
from veilog.messages import OwnerMessage

Mask = npt.NDArray[np.bool_]

UNKNOWN = int(np.iinfo(np.int64).min)
"""Value that stands for an unknown start."""
_PAIRS = 1 << 19
_KEYS = 1 << 21
"""Number of random keys to hold at once for the random order of cases' events."""


@dataclass(frozen=True, eq=False)
class Population:
    """A log as an attacker sees it."""

    variants: Variants
    matcher: Matcher
    starts: IntArray | None
    """Known starts of cases, ascending; ``variant`` has the variant of each."""
    variant: IntArray | None
    owner: IntArray | None = None
    """Person of each of these cases, if the log identifies persons and some have several cases."""


@dataclass(frozen=True, eq=False)
class Besides:
    """Other cases of the people attacked, which do not count as others' cases."""

    attack: IntArray
    """Attack of each row, ascending."""
    variant: IntArray
    cases: IntArray
    people: IntArray
    """Number of people with each variant."""


@dataclass(frozen=True, eq=False)
class Fitting:
    """Cases that fit each attack."""

    same: IntArray | FloatArray
    """Number of cases with the person's whole trace."""
    others: IntArray
    """Number of cases with other traces."""
    highest: IntArray
    """Number of cases of the most frequent other trace."""
    ties: IntArray
    """Number of other traces with that many cases."""
    people: IntArray | None = None
    """Number of people, with the attacked one, who have cases with the whole trace; None if persons are unknown."""

    def rows(self, rows: IntArray) -> Fitting:
        people = None if self.people is None else self.people[rows]
        return Fitting(self.same[rows], self.others[rows], self.highest[rows], self.ties[rows], people)

    def known_from_others(self) -> Fitting:
        """Return the cases that fit as others' cases show them.

        A trace that only one person has drops out. If persons are known, the person attacked has as many cases of the
        trace as the others who have it have on average.
        """
        if self.people is None:
            return replace(self, same=np.where(self.same > 1, self.same, 0))
        return replace(self, same=(self.same - 1) * self.people / np.maximum(1, self.people - 1))

    def alone(self) -> FloatArray:
        return np.asarray((self.same == 1) & (self.others == 0), dtype=np.float64)

    def guessed(self, otherwise: Fitting | None = None) -> FloatArray:
        """Return the chance that the most frequent fitting trace is the person's.

        Where no case fits, it is the chance by ``otherwise``.
        """
        tied = np.where(self.same == self.highest, 1 / (self.ties + 1), 0.0)
        right = np.where(self.same > self.highest, 1.0, np.where(self.same > 0, tied, 0.0))
        return right if otherwise is None else np.where(self.same + self.others > 0, right, otherwise.guessed())


def fits(log: Population, patterns: IntArray) -> Mask:
    """Return for each pattern the variants that contain it.

    No variant contains a pattern with an unknown activity (-1).
    """
    variants = len(log.variants)
    table = np.zeros((len(patterns), variants), dtype=np.bool_)
    possible = np.flatnonzero((patterns >= 0).all(axis=1))
    everyone = np.arange(variants)
    step = max(1, _PAIRS // max(1, variants))
    for first in range(0, len(possible) if variants else 0, step):
        rows = possible[first : first + step]
        row, variant = log.matcher.pairs(patterns[rows], everyone)
        table[rows[row], variant] = True
    return table


def besides(variants: Variants, variant: IntArray, owner: IntArray, attacked: IntArray, person: IntArray) -> Besides:
    """Return the cases that attacked people have, other than the attacked ones.

    ``variant`` and ``owner`` describe the cases of the log. Each attack is on a case of a variant (``attacked``) of a
    ``person``.
    """
    pairs, number = count_numbers(owner * len(variants) + variant, (int(owner.max(initial=0)) + 1) * len(variants))
    whose, what = pairs // len(variants), pairs % len(variants)
    attack, pair = ranges(np.searchsorted(whose, person), np.searchsorted(whose, person, side="right"))
    cases = number[pair] - (what[pair] == attacked[attack])
    return Besides(attack, what[pair], cases, np.bincount(what, minlength=len(variants)))


def ranges(low: IntArray, high: IntArray) -> tuple[IntArray, IntArray]:
    """Return all numbers in each range from low to below high, and their ranges."""
    number = high - low
    which = np.repeat(np.arange(len(low)), number)
    return which, np.arange(len(which)) - np.repeat(np.cumsum(number) - number - low, number)


def fits_of_people(
    log: Population, table: Mask, which: IntArray, own: IntArray, less: Besides | None = None
) -> Fitting:
    """Return the cases that fit, whatever their start.

    ``own`` is the person's trace in this log, -1 where it has none. Cases of ``less`` do not count.
    """
    same, others, highest, ties = (np.zeros(len(which), dtype=np.int64) for _ in range(4))
    step = max(1, _PAIRS // max(1, len(log.variants)))
    for first in range(0, len(which) if len(log.variants) else 0, step):
        part = slice(first, min(first + step, len(which)))
        cases = table[which[part]] * log.variants.counts
        if less is not None:
            some = slice(*np.searchsorted(less.attack, [part.start, part.stop]))
            row, variant = less.attack[some], less.variant[some]
            cases[row - first, variant] -= table[which[row], variant] * less.cases[some]
        has = np.flatnonzero(own[part] >= 0)
        same[part][has] = cases[has, own[part][has]]
        cases[has, own[part][has]] = 0
        others[part], highest[part] = cases.sum(axis=1), cases.max(axis=1)
        ties[part] = (cases == highest[part][:, None]).sum(axis=1)
    return Fitting(same, others, highest, ties, None if less is None else less.people[own])


def near(
    log: Population,
    table: Mask,
    which: IntArray,
    own: IntArray,
    start: IntArray,
    reach: int,
    person: IntArray | None = None,
) -> Fitting:
    """Return the cases that fit and started within ``reach`` of ``start``.

    Only the attacked case of a ``person`` counts, if persons are given, and none of the person's other cases.
    """
    assert log.starts is not None
    assert log.variant is not None
    low = np.searchsorted(log.starts, start - reach).tolist()
    high = np.searchsorted(log.starts, start + reach, side="right").tolist()
    same, others, highest, ties, people = (np.zeros(len(which), dtype=np.int64) for _ in range(5))
    for i in range(len(which)):
        there = log.variant[low[i] : high[i]]
        if person is not None and log.owner is not None:
            owner = log.owner[low[i] : high[i]]
            people[i] = 1 + len(np.unique(owner[(owner != person[i]) & (there == own[i])]))
            there = there[owner != person[i]]
        there = there[table[which[i], there]]
        foreign = there[there != own[i]]
        same[i], others[i] = len(there) - len(foreign) + (person is not None), len(foreign)
        if len(foreign):
            _, number = np.unique(foreign, return_counts=True)
            highest[i] = number.max()
            ties[i] = np.count_nonzero(number == highest[i])
    return Fitting(same, others, highest, ties, None if person is None else people)


def missing_start_reason(original: EventLog | Variants, released: EventLog | Variants) -> Reason | None:
    """Return the reason why the starts of cases cannot be compared, or None."""
    first, last = [], []
    for log, name in ((original, "original"), (released, "released")):
        try:
            starts = starts_of(timed(log, name))
        except ParameterError as error:
            return error.with_traceback(None)
        starts = starts[starts != UNKNOWN]
        if not len(starts):
            return OwnerMessage("starts-unknown-of-log", name=name)
        first.append(int(starts.min()))
        last.append(int(starts.max()))
    return OwnerMessage("starts-apart") if max(first) > min(last) else None


def starts_of(log: EventLog) -> IntArray:
    """Return the earliest known time of each case in microseconds, or ``UNKNOWN``."""
    cases, first, _ = case_spans(log)
    starts = np.full(log.number_of_cases, UNKNOWN, dtype=np.int64)
    starts[cases] = first
    return starts


def cases_of(
    log: EventLog | Variants, variants: Variants, with_start: bool, owner: IntArray | None = None
) -> tuple[IntArray, IntArray, IntArray | None]:
    """Return variant, start and owner of each case, in no order of the log's.

    The start is ``UNKNOWN`` if it is unknown or not wanted. The owner is None if none is given. Cases with equal
    variants and starts are in the order of their owners.
    """
    if isinstance(log, Variants) or not (with_start or owner is not None):
        variant = np.repeat(np.arange(len(variants)), variants.counts)
        return variant, np.full(len(variant), UNKNOWN, dtype=np.int64), None
    variant = variant_of_cases(log)
    start = starts_of(log) if with_start else np.full(len(variant), UNKNOWN, dtype=np.int64)
    canonical = np.lexsort((start, variant) if owner is None else (owner, start, variant))
    return variant[canonical], start[canonical], None if owner is None else owner[canonical]


def population(
    variants: Variants, variant: IntArray, start: IntArray, with_start: bool, owner: IntArray | None = None
) -> Population:
    matcher = Matcher(variants, ordered=True)
    if not with_start:
        return Population(variants, matcher, None, None)
    known = np.flatnonzero(start != UNKNOWN)
    order = known[np.argsort(start[known], kind="stable")]
    return Population(variants, matcher, start[order], variant[order], None if owner is None else owner[order])


def positions(lengths: IntArray, size: int, rng: np.random.Generator) -> IntArray:
    """Return ``size`` ascending uniform positions below each length (Floyd's method)."""
    chosen = np.full((len(lengths), size), -1, dtype=np.int64)
    for j in range(size):
        top = lengths - size + j
        drawn = rng.integers(0, top + 1)
        taken = (chosen[:, :j] == drawn[:, None]).any(axis=1)
        chosen[:, j] = np.where(taken, top, drawn)
    return np.sort(chosen, axis=1)


def shuffle_places(lengths: IntArray, most: int, rng: np.random.Generator) -> IntArray:
    """Return ``most`` positions in random order below each length; -1 after the last."""
    longest = int(lengths.max(initial=0))
    most = min(most, longest)
    found = np.full((len(lengths), most), -1, dtype=np.int64)
    rows = max(1, _KEYS // max(1, longest))
    for first in range(0, len(lengths) if most else 0, rows):
        own = lengths[first : first + rows]
        keys = rng.random((len(own), longest))
        keys[np.arange(longest)[None, :] >= own[:, None]] = np.inf
        least = np.argpartition(keys, most - 1, axis=1)[:, :most]
        drawn = np.take_along_axis(keys, least, axis=1)
        order = np.argsort(drawn, axis=1)
        place = np.take_along_axis(least, order, axis=1)
        found[first : first + rows] = np.where(np.isinf(np.take_along_axis(drawn, order, axis=1)), -1, place)
    return found


def activities_at(variants: Variants, variant: IntArray, places: IntArray) -> IntArray:
    """Return the activities at these places of these variants, in the order of events.

    A place of -1 means none. ``Matcher.ANY`` fills the row after the last activity.
    """
    most = np.iinfo(np.int64).max
    known = np.sort(np.where(places < 0, most, places), axis=1)
    none = known == most
    codes = variants.codes[np.where(none, 0, known + variants.offsets[variant][:, None])].astype(np.int64)
    return np.where(none, Matcher.ANY, codes)
