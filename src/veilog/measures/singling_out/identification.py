"""Who can be found in a log itself: how many people somebody finds who happens to know a few events of a case.

The attacker knows up to ``size`` events of a case (all, where it has no more), drawn at random, in their order, and
perhaps about when the case started. The person is *found* if all cases that fit are the person's; the path of the case
is *guessed* as in :mod:`veilog.measures.singling_out.measure`. Where no column tells persons, each case is one: it is
found if no other fits. Where one does, each person is attacked equally often, by one of their cases at random.

Cases with a path that nobody else has and cases with a shared one are drawn apart, because without the start only by
the former a person can be found; how many people have such a case is exact.

Who knows more finds more. The events that are known of a person are therefore drawn as one random order, of which
more and more are known: every person who is found with some is found with more, so the estimates cannot fall. What is
guessed can fall by accident of the draws, and is kept from it by :func:`.rates.rising`. All have 95 % intervals
(Wilson's, of the two kinds of cases put together by squares, as G. Y. Zou, "On the estimation of additive interaction
by use of the four-by-two table and beyond", 2008, does), whatever the size of the log: of one with many variants
fewer people are drawn. No number depends on which other sizes are asked for, so all who ask the same get the same.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import numpy as np

from veilog._typing import BoolArray, FloatArray, IntArray
from veilog.errors import ParameterError
from veilog.logs.eventlog import EventLog
from veilog.logs.variants import Variants
from veilog.measures.disclosure.estimate import Matcher
from veilog.measures.durations import timed
from veilog.measures.measure import Reason
from veilog.measures.persons import column_of, persons_of
from veilog.measures.singling_out.logs import (
    UNKNOWN,
    Fitting,
    Population,
    cases_of,
    in_random_order,
    known_in_order,
    population,
    ranges,
    starts_of,
)
from veilog.measures.singling_out.rates import Rate, rising, wilson
from veilog.messages import Message, OwnerMessage

SIZES = (1, 2, 3, 5, 10)
ATTACKS = 2_000
_FEWEST = 200
_WORK = 1 << 22
"""Pairs of a person and a variant (or of a person and a case that started about then); of larger logs fewer people are
drawn, at least ``_FEWEST``."""
_PAIRS = 1 << 20
"""Pairs looked at together."""
_HOUR = 3_600_000_000


@dataclass(frozen=True)
class ReidentificationRate:
    """What is known of a case, and of how many people it finds the case or tells the path."""

    size: int
    """Events of the case that are known; of a shorter one, all."""
    with_start: bool
    """Whether it is also known about when the case started."""
    people: int
    """People who have a case with events, and a known start where that is known."""
    attacks: int
    """People drawn of them."""
    found: Rate
    """The share of them of whom all that fits are their own cases."""
    guessed: Rate
    """The share of them whose path is the most frequent one that fits."""


@dataclass(frozen=True)
class Example:
    """One person who is found by little: none of it can be left out."""

    activities: tuple[str, ...]
    """What is known of a case, in this order; nothing where the day is enough."""
    day: str | None
    """The day that it started on, where that was needed or is known."""
    events: int
    with_start: bool
    """Whether the day was needed to find it."""


@dataclass(frozen=True)
class Exposure:
    """Who can be found in a log, for each kind of knowledge."""

    people: int
    """The persons where a column tells them, else the cases."""
    alone: int
    """People with a case whose path nobody else has; exact."""
    results: tuple[ReidentificationRate, ...]
    hours: float
    without_start: Reason | None
    """Why no attacker knows when cases started, if so."""
    example: Example | None
    person: str | None
    """The column that tells whose a case is; None where each case is a person of its own."""
    seconds: float

    def at_most(self, unique: Mapping[int, int]) -> Exposure:
        """Return the same with what is certain: of each size, how many cases a sequence of so many activities singles
        out. Without the start no more are found than by all sizes up to it together. Of persons that is not certain:
        two cases of one of them may fit what no other case does."""
        if self.person is not None:
            return self
        results = []
        for row in self.results:
            known = [unique.get(size) for size in range(1, row.size + 1)]
            if not row.with_start and None not in known:
                most = min(1.0, sum(number or 0 for number in known) / row.people)
                row = replace(row, found=Rate(*(min(end, most) for end in vars(row.found).values())))
            results.append(row)
        return replace(self, results=tuple(results))


@dataclass(frozen=True, eq=False)
class _Cases:
    """Cases that can be attacked, in no order of the log's."""

    variant: IntArray
    start: IntArray
    owner: IntArray
    apart: BoolArray
    """Whether nobody else has the path."""

    def rows(self, rows: IntArray | BoolArray) -> _Cases:
        return _Cases(self.variant[rows], self.start[rows], self.owner[rows], self.apart[rows])

    def weight(self) -> FloatArray:
        """What each counts, so that all people count the same."""
        number = np.bincount(self.owner)
        return np.asarray(1.0 / number[self.owner], dtype=np.float64)


@dataclass(frozen=True, eq=False)
class _Drawn:
    """Cases drawn, with all that is known of them, the first of it first."""

    cases: _Cases
    places: IntArray
    """Positions of the events that become known, one after the other; -1 after the last."""
    people: int
    share: float
    """How many people the cases are drawn from, and the share of their cases with a path that nobody else has."""

    def patterns(self, variants: Variants, size: int) -> IntArray:
        """What is known of each with so many events, in their order."""
        return known_in_order(variants, self.cases.variant, self.places[:, :size])


@dataclass(frozen=True, eq=False)
class _Outcome:
    """Of each case drawn whether its person is found, and the chance to guess its path."""

    found: BoolArray
    guessed: FloatArray


@dataclass(frozen=True, eq=False)
class _Crowd:
    """A log as an attacker sees it, with the one person whom each of its variants is of (-1 where it is of several)."""

    log: Population
    only: IntArray

    def outcomes(self, drawn: _Drawn, sizes: Sequence[int], reach: int | None) -> list[_Outcome]:
        """What fits of each case, for each size; with a reach, of what started so near."""
        patterns = [drawn.patterns(self.log.variants, size) for size in sizes]
        return self.outcomes_of(drawn.cases, patterns, reach)

    def outcomes_of(self, cases: _Cases, patterns: Sequence[IntArray], reach: int | None) -> list[_Outcome]:
        """The same of patterns of which each says as much as the one before it, or more."""
        variants, attacked = len(self.log.variants), len(cases.variant)
        parts: list[list[_Outcome]] = [[] for _ in patterns]
        step = attacked if reach is not None else max(1, _PAIRS // max(1, variants))
        for first in range(0, attacked, step):
            people = np.arange(first, min(first + step, attacked))
            if reach is None:
                which, variant = np.repeat(people, variants), np.tile(np.arange(variants), len(people))
                number, others = self.log.variants.counts[variant], self.only[variant] != cases.owner[which]
            else:
                which, variant, number, others = self._around(cases, reach)
            for known, outcomes in zip(patterns, parts, strict=True):
                fit = self.log.matcher.among(known, which, variant)
                which, variant, number, others = which[fit], variant[fit], number[fit], others[fit]
                foreign = np.bincount(which[others] - first, minlength=len(people))
                counted = _counted(which - first, variant == cases.variant[which], number, len(people))
                outcomes.append(_Outcome(foreign == 0, counted.guessed()))
        return [
            _Outcome(*(np.concatenate([getattr(part, name) for part in found]) for name in ("found", "guessed")))
            for found in parts
        ]

    def _around(self, cases: _Cases, reach: int) -> tuple[IntArray, IntArray, IntArray, BoolArray]:
        """Of each person the variants of the cases that started about then, how many cases of each did, and whether
        some of these are another person's."""
        log = self.log
        assert log.starts is not None and log.variant is not None and log.owner is not None  # noqa: PT018 - one fact
        low = np.searchsorted(log.starts, cases.start - reach)
        high = np.searchsorted(log.starts, cases.start + reach, side="right")
        which, case = ranges(low, high)
        keys = which * len(log.variants) + log.variant[case]
        pairs, place, number = np.unique(keys, return_inverse=True, return_counts=True)
        foreign = np.bincount(place[log.owner[case] != cases.owner[which]], minlength=len(pairs))
        return pairs // len(log.variants), pairs % len(log.variants), number.astype(np.int64), foreign > 0


def exposure(
    log: EventLog | Variants,
    *,
    person: str | bool = True,
    sizes: Iterable[int] = SIZES,
    hours: float = 24.0,
    attacks: int = ATTACKS,
    seed: int = 0,
) -> Exposure:
    """How many people somebody finds in a log who knows a few events of a case, and perhaps when it started.

    ``person`` is the column that tells whose a case is; True: the one that is called after persons, if there is one;
    False: each case is a person of its own. ``sizes`` are how many events are known, and ``hours`` how well the start
    is. Nothing depends on the order of rows.
    """
    began = time.perf_counter()
    wanted = sorted(set(sizes))
    if not wanted or wanted[0] < 1 or attacks < 2 or not hours > 0 or seed < 0:
        raise ParameterError("attack-settings-not-positive", parameter="sizes")
    variants = log if isinstance(log, Variants) else log.variants
    if not variants.events:
        raise ParameterError("attack-log-without-events", parameter="log")
    why = _why_without_start(log)
    variant, start, owner = cases_of(log, variants, why is None, persons_of(log, person))
    owner = np.arange(len(variant)) if owner is None else owner
    everybody = population(variants, variant, start, why is None, owner)
    crowd = _Crowd(everybody, _only_person(variants, variant, owner))
    cases = _Cases(variant, start, owner, crowd.only[variant] >= 0)
    rng = np.random.default_rng([seed])
    tried = sorted({*range(1, min(wanted[-1], SIZES[-1]) + 1), *wanted})
    most = min(attacks, max(_FEWEST, _WORK // max(1, len(variants))))
    cases = cases.rows(variants.lengths[variant] > 0)
    drawn = _drawn(variants, cases, most, wanted[-1], rng)
    results: list[tuple[_Drawn, list[_Outcome], int | None]] = [(drawn, crowd.outcomes(drawn, tried, None), None)]
    if everybody.starts is not None:
        reach = int(hours * _HOUR)
        window = np.searchsorted(everybody.starts, everybody.starts + 2 * reach) - np.arange(len(everybody.starts))
        most = min(attacks, max(_FEWEST, int(_WORK // max(1.0, float(window.mean())))))
        drawn = _drawn(variants, cases.rows(cases.start != UNKNOWN), most, wanted[-1], rng)
        results.append((drawn, crowd.outcomes(drawn, tried, reach), reach))
    return Exposure(
        people=len(np.unique(owner)),
        alone=len(np.unique(crowd.only[crowd.only >= 0])),
        results=tuple(row for found in results for row in _rows(tried, *found) if row.size in wanted),
        hours=hours,
        without_start=why,
        example=_example(crowd, tried, results),
        person=column_of(log, person),
        seconds=time.perf_counter() - began,
    )


def _why_without_start(log: EventLog | Variants) -> Reason | None:
    if isinstance(log, Variants):
        return Message("starts-of-variants")
    try:
        known = starts_of(timed(log, "log")) != UNKNOWN
    except ParameterError as error:
        return error.with_traceback(None)
    return None if known.any() else OwnerMessage("starts-unknown")


def _only_person(variants: Variants, variant: IntArray, owner: IntArray) -> IntArray:
    """The person of each variant, -1 where it is of several."""
    least, largest = np.full(len(variants), len(owner)), np.full(len(variants), -1)
    np.minimum.at(least, variant, owner)
    np.maximum.at(largest, variant, owner)
    return np.where(least == largest, largest, -1).astype(np.int64)


def _drawn(variants: Variants, cases: _Cases, most: int, longest: int, rng: np.random.Generator) -> _Drawn:
    """Half of the cases from those with a path that nobody else has, half from the others, in random order; of people
    with several cases each of these the less often."""
    weight = cases.weight()
    kinds = [kind for kind in (np.flatnonzero(cases.apart), np.flatnonzero(~cases.apart)) if len(kind)]
    number = most // len(kinds)
    chosen = []
    for kind in kinds:
        if weight[kind].min() < 1:
            chosen.append(rng.choice(kind, number, p=weight[kind] / weight[kind].sum()))
        elif len(kind) > number:
            chosen.append(rng.choice(kind, number))
        else:  # where there are fewer people than attacks, everybody is attacked about equally often
            chosen.append(np.resize(rng.permutation(kind), number))
    who = rng.permutation(np.concatenate(chosen))
    places = in_random_order(variants.lengths[cases.variant[who]], longest, rng)
    share = float(weight[cases.apart].sum() / weight.sum())
    return _Drawn(cases.rows(who), places, len(np.unique(cases.owner)), share)


def _counted(which: IntArray, own: BoolArray, cases: IntArray, people: int) -> Fitting:
    """What fits of each person, from the variants that do, and whether each is the person's own."""
    same = np.bincount(which[own], weights=cases[own], minlength=people).astype(np.int64)
    there, number = which[~own], cases[~own]
    others = np.bincount(there, weights=number, minlength=people).astype(np.int64)
    highest = np.zeros(people, dtype=np.int64)
    np.maximum.at(highest, there, number)
    ties = np.bincount(there[number == highest[there]], minlength=people)
    return Fitting(same, others, highest, ties)


def _rows(
    sizes: Sequence[int], drawn: _Drawn, outcomes: Sequence[_Outcome], reach: int | None
) -> list[ReidentificationRate]:
    apart, share = drawn.cases.apart, drawn.share
    found = [_estimate(one.found.astype(np.float64), apart, share, only_apart=reach is None) for one in outcomes]
    guessed = [_estimate(one.guessed, apart, share, only_apart=False) for one in outcomes]
    return [
        ReidentificationRate(size, reach is not None, drawn.people, len(apart), *both)
        for size, *both in zip(sizes, rising(found), rising(guessed), strict=True)
    ]


def _estimate(values: FloatArray, apart: BoolArray, share: float, *, only_apart: bool) -> Rate:
    """The mean over all people from those drawn of the two kinds; ``only_apart``: it is 0 of those who share their
    path."""
    mean = down = up = 0.0
    for weight, kind, counts in ((share, apart, True), (1 - share, ~apart, not only_apart)):
        if weight and counts:
            rate = wilson(float(values[kind].mean()), int(kind.sum()))
            mean += weight * rate.value
            down = math.hypot(down, weight * (rate.value - rate.low))
            up = math.hypot(up, weight * (rate.high - rate.value))
    return Rate(mean, max(0.0, mean - down), min(1.0, mean + up))


def _example(
    crowd: _Crowd, sizes: Sequence[int], results: Sequence[tuple[_Drawn, list[_Outcome], int | None]]
) -> Example | None:
    """The person who is found by least of all drawn; without the start, where that is so by few events."""
    for at, size in enumerate(sizes):
        for drawn, outcomes, reach in results:
            found = np.flatnonzero(outcomes[at].found)
            if len(found):
                cases = drawn.cases.rows(found)
                # The first in a canonical order, so that it does not depend on that of the rows; if there is one of
                # whom the day alone does not tell.
                by_day = np.zeros(len(found), dtype=np.bool_)
                if reach is not None:
                    nothing = np.full((len(found), 1), Matcher.ANY)
                    (told,) = crowd.outcomes_of(cases, [nothing], reach)
                    by_day = told.found
                who = np.lexsort((cases.owner, cases.start, cases.variant, by_day))[:1]
                return _least(crowd, cases.rows(who), drawn.patterns(crowd.log.variants, size)[found[who]], reach)
    return None


def _least(crowd: _Crowd, case: _Cases, pattern: IntArray, reach: int | None) -> Example:
    """What is known of a case without all that the person is found without, too: first the day, then each event."""
    if reach is not None and crowd.outcomes_of(case, [pattern], None)[0].found[0]:
        reach = None
    for place in range(pattern.shape[1]):
        fewer = pattern.copy()
        fewer[0, place] = Matcher.ANY
        if crowd.outcomes_of(case, [fewer], reach)[0].found[0]:
            pattern = fewer
    labels, start = crowd.log.variants.labels, int(case.start[0])
    return Example(
        activities=tuple(labels[code] for code in pattern[0].tolist() if code >= 0),
        day=None if start == UNKNOWN else f"{datetime.fromtimestamp(start / 1e6, UTC):%Y-%m-%d}",
        events=int(crowd.log.variants.lengths[case.variant[0]]),
        with_start=reach is not None,
    )
