"""Re-identification in a log itself: people found by a few known events of a case.

The attacker knows up to ``size`` events of a case (all, where it has no more), drawn at random, in their order, and
perhaps about when the case started. The person is *found* if all cases that fit are the person's. The path of the case
is *guessed* as in :mod:`veilog.measures.singling_out.measure`. Without a column of persons, each case is a person: it
is found if no other fits. With one, each person is attacked equally often, by one of their cases at random.

Cases with a path that no one else has and cases with a shared one are drawn separately. Without the start, only cases
of the former kind can reveal a person. The number of people with such a case is exact.

More knowledge finds more people. The known events of a person are therefore drawn as one random order, of which more
and more become known. A person who is found with some events is found with more, so the estimates cannot fall. The
share guessed can fall by accident of the draws; :func:`.rates.rising` prevents that. All shares have 95 % intervals,
whatever the size of the log: Wilson's, of the two kinds of cases put together by squares, as in G. Y. Zou, "On the
estimation of additive interaction by use of the four-by-two table and beyond" (2008). Of a log with many variants fewer
people are drawn. No number depends on the other sizes requested, so equal requests get equal numbers.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import numpy as np

from veilog._counting import rank_numbers
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
    Population,
    activities_at,
    cases_of,
    population,
    ranges,
    shuffle_places,
    starts_of,
)
from veilog.measures.singling_out.rates import Rate, monotone_rates, wilson
from veilog.messages import Message, OwnerMessage

SIZES = (1, 2, 3, 5, 10)
ATTACKS = 2_000
_FEWEST = 200
_WORK = 1 << 22
"""Number of pairs of a person and a variant, or of a person and a case that started about then.

Fewer people are drawn from larger logs, at least ``_FEWEST``.
"""
_PAIRS = 1 << 20
"""Number of pairs to examine at once."""
_HOUR = 3_600_000_000


@dataclass(frozen=True)
class ReidentificationRate:
    """Share of people found, and of paths guessed, with one kind of knowledge."""

    size: int
    """Number of known events of the case; of a shorter case, all."""
    with_start: bool
    """True if the attacker also knows about when the case started."""
    people: int
    """Number of people with a case of events, and of a known start if it is used."""
    attacks: int
    """Number of people drawn from them."""
    found: Rate
    """Share of people for whom all cases that fit are their own."""
    guessed: Rate
    """Share of people whose path is the most frequent one that fits."""


@dataclass(frozen=True)
class Example:
    """One person whom little knowledge finds; all of it is necessary."""

    activities: tuple[str, ...]
    """Known activities of a case, in this order; none where the day is enough."""
    day: str | None
    """Day on which the case started, where that is necessary or known."""
    events: int
    with_start: bool
    """True if the day is necessary to find the person."""


@dataclass(frozen=True)
class Exposure:
    """People who can be found in a log, for each kind of knowledge."""

    people: int
    """Number of persons if a column names them, else number of cases."""
    alone: int
    """Exact number of people with a case whose path no one else has."""
    results: tuple[ReidentificationRate, ...]
    hours: float
    without_start: Reason | None
    """Reason why no attacker knows when cases started, if so."""
    example: Example | None
    person: str | None
    """Column that names the person of a case; None where each case is a person."""
    seconds: float

    def at_most(self, unique: Mapping[int, int]) -> Exposure:
        """Return the same with upper bounds from the exact numbers of unique cases.

        ``unique`` has, for each size, the number of cases that a sequence of that many activities singles out. Without
        the start, an attacker finds no more cases than by all sizes up to it together. The bound does not hold for
        persons: two cases of one person may fit what no other case does.
        """
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
    """Cases that can be attacked, in an order independent of the log's."""

    variant: IntArray
    start: IntArray
    owner: IntArray
    apart: BoolArray
    """True where no one else has the path."""

    def rows(self, rows: IntArray | BoolArray) -> _Cases:
        return _Cases(self.variant[rows], self.start[rows], self.owner[rows], self.apart[rows])

    def weight(self) -> FloatArray:
        """Return the weight of each case, so that all people count the same."""
        number = np.bincount(self.owner)
        return np.asarray(1.0 / number[self.owner], dtype=np.float64)


@dataclass(frozen=True, eq=False)
class _Drawn:
    """Drawn cases with the order in which their events become known."""

    cases: _Cases
    places: IntArray
    """Positions of events in the order in which they become known; -1 after the last."""
    people: int
    share: float
    """Share of the people's cases with a path that no one else has; ``people`` is the number of people drawn from."""

    def patterns(self, variants: Variants, size: int) -> IntArray:
        """Return the known activities of each case with ``size`` events, in their order."""
        return activities_at(variants, self.cases.variant, self.places[:, :size])


@dataclass(frozen=True, eq=False)
class _Outcome:
    """Drawn cases whose person is found, and each case's chance of a guessed path."""

    found: BoolArray
    guessed: FloatArray


@dataclass(frozen=True, eq=False)
class _Crowd:
    """A log as an attacker sees it, with the one person who has each variant.

    ``only`` is -1 where several people have the variant.
    """

    log: Population
    only: IntArray

    def outcomes(self, drawn: _Drawn, sizes: Sequence[int], reach: int | None) -> list[_Outcome]:
        """Return the outcome of each case for each size, with a reach near its start."""
        patterns = [drawn.patterns(self.log.variants, size) for size in sizes]
        return self.outcomes_of(drawn.cases, patterns, reach)

    def outcomes_of(self, cases: _Cases, patterns: Sequence[IntArray], reach: int | None) -> list[_Outcome]:
        """Return the outcomes of patterns, each as detailed as the one before or more."""
        variants, attacked = len(self.log.variants), len(cases.variant)
        found = [_Outcome(np.zeros(attacked, dtype=np.bool_), np.zeros(attacked)) for _ in patterns]
        # People of equal knowledge stand together, and are a group: the same variants fit them.
        order = np.lexsort(np.concatenate(patterns, axis=1).T[::-1])
        step = attacked if reach is not None else max(1, _PAIRS // max(1, variants))
        for start in range(0, attacked, step):
            people = order[start : start + step]
            own = cases.rows(people)
            if reach is None:
                group, which = np.zeros(len(people), dtype=np.int64), np.zeros(variants, dtype=np.int64)
                variant, number, only = np.arange(variants), self.log.variants.counts, self.only
            else:
                group, (which, variant, number, only) = np.arange(len(people)), self._cases_around(own, reach)
            for known, outcome in zip(patterns, found, strict=True):
                rows = known[people]
                new = np.append(True, (np.diff(group) != 0) | (rows[1:] != rows[:-1]).any(axis=1))
                before, rows = group[new], rows[new]
                group = np.cumsum(new) - 1
                which, place = ranges(*(np.searchsorted(which, before, side=side) for side in ("left", "right")))
                fit = self.log.matcher.among(rows, which, variant[place])
                which, place = which[fit], place[fit]
                variant, number, only = variant[place], number[place], only[place]
                outcome.found[people], outcome.guessed[people] = _find_people(own, group, which, variant, number, only)
        return found

    def _cases_around(self, cases: _Cases, reach: int) -> tuple[IntArray, IntArray, IntArray, IntArray]:
        """Return the variants of the cases that started near each person's case.

        With each variant come the number of these cases, and their person, or -1 if another's case is among them.
        """
        log = self.log
        assert log.starts is not None and log.variant is not None and log.owner is not None  # noqa: PT018 - one fact
        low = np.searchsorted(log.starts, cases.start - reach)
        high = np.searchsorted(log.starts, cases.start + reach, side="right")
        which, case = ranges(low, high)
        keys = which * len(log.variants) + log.variant[case]
        pairs, place, number = rank_numbers(keys, len(cases.variant) * len(log.variants))
        which_pair, variant = np.divmod(pairs, len(log.variants))
        only = cases.owner[which_pair]
        only[place[log.owner[case] != cases.owner[which]]] = -1
        return which_pair, variant, number, only


def exposure(
    log: EventLog | Variants,
    *,
    person: str | bool = True,
    sizes: Iterable[int] = SIZES,
    hours: float = 24.0,
    attacks: int = ATTACKS,
    seed: int = 0,
) -> Exposure:
    """Return the shares of people whom an attacker finds by a few events of a case.

    The attacker perhaps also knows when the case started. ``person`` is the column that names the person of a case.
    True takes the column that is called after persons, if there is one. With False each case is a person of its own.
    ``sizes`` are the numbers of known events, and ``hours`` is the precision of the known start. Nothing depends on the
    order of rows.
    """
    began = time.perf_counter()
    wanted = sorted(set(sizes))
    if not wanted or wanted[0] < 1 or attacks < 2 or not hours > 0 or seed < 0:
        raise ParameterError("attack-settings-not-positive", parameter="sizes")
    variants = log if isinstance(log, Variants) else log.variants
    if not variants.events:
        raise ParameterError("attack-log-without-events", parameter="log")
    why = _missing_start_reason(log)
    variant, start, owner = cases_of(log, variants, why is None, persons_of(log, person))
    owner = np.arange(len(variant)) if owner is None else owner
    everybody = population(variants, variant, start, why is None, owner)
    crowd = _Crowd(everybody, _only_person(variants, variant, owner))
    cases = _Cases(variant, start, owner, crowd.only[variant] >= 0)
    rng = np.random.default_rng([seed])
    tried = sorted({*range(1, min(wanted[-1], SIZES[-1]) + 1), *wanted})
    most = min(attacks, max(_FEWEST, _WORK // max(1, len(variants))))
    cases = cases.rows(variants.lengths[variant] > 0)
    drawn = _draw_cases(variants, cases, most, wanted[-1], rng)
    results: list[tuple[_Drawn, list[_Outcome], int | None]] = [(drawn, crowd.outcomes(drawn, tried, None), None)]
    if everybody.starts is not None:
        reach = int(hours * _HOUR)
        window = np.searchsorted(everybody.starts, everybody.starts + 2 * reach) - np.arange(len(everybody.starts))
        most = min(attacks, max(_FEWEST, int(_WORK // max(1.0, float(window.mean())))))
        drawn = _draw_cases(variants, cases.rows(cases.start != UNKNOWN), most, wanted[-1], rng)
        results.append((drawn, crowd.outcomes(drawn, tried, reach), reach))
    return Exposure(
        people=len(np.flatnonzero(np.bincount(owner))),
        alone=len(np.flatnonzero(np.bincount(crowd.only[crowd.only >= 0]))),
        results=tuple(row for found in results for row in _rows(tried, *found) if row.size in wanted),
        hours=hours,
        without_start=why,
        example=_example(crowd, tried, results),
        person=column_of(log, person),
        seconds=time.perf_counter() - began,
    )


def _missing_start_reason(log: EventLog | Variants) -> Reason | None:
    if isinstance(log, Variants):
        return Message("starts-of-variants")
    try:
        known = starts_of(timed(log, "log")) != UNKNOWN
    except ParameterError as error:
        return error.with_traceback(None)
    return None if known.any() else OwnerMessage("starts-unknown")


def _only_person(variants: Variants, variant: IntArray, owner: IntArray) -> IntArray:
    """Return the person of each variant, -1 where several people have it."""
    least, largest = np.full(len(variants), len(owner)), np.full(len(variants), -1)
    np.minimum.at(least, variant, owner)
    np.maximum.at(largest, variant, owner)
    return np.where(least == largest, largest, -1).astype(np.int64)


def _draw_cases(variants: Variants, cases: _Cases, most: int, longest: int, rng: np.random.Generator) -> _Drawn:
    """Draw cases in random order, half with a path of one person; weigh people alike."""
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
    places = shuffle_places(variants.lengths[cases.variant[who]], longest, rng)
    share = float(weight[cases.apart].sum() / weight.sum())
    return _Drawn(cases.rows(who), places, len(np.flatnonzero(np.bincount(cases.owner))), share)


def _find_people(
    own: _Cases, group: IntArray, which: IntArray, variant: IntArray, number: IntArray, only: IntArray
) -> tuple[BoolArray, FloatArray]:
    """Return if each person is found, and the chance that the path is guessed.

    ``group`` has the group of each person. The other arrays are the variants that fit each group (``which``, ascending
    as the variants are), with their cases and the only person of these. A person's own variant is always among them.
    """
    first = np.flatnonzero(np.diff(which, prepend=-1))
    found = (np.minimum.reduceat(only, first)[group] == own.owner) & (
        np.maximum.reduceat(only, first)[group] == own.owner
    )
    highest = np.maximum.reduceat(number, first)
    ties = np.bincount(which, weights=number == highest[which])
    size = int(variant.max()) + 1
    mine = np.searchsorted(which * size + variant, group * size + own.variant)
    return found, np.where(number[mine] == highest[group], 1 / ties[group], 0.0)


def _rows(
    sizes: Sequence[int], drawn: _Drawn, outcomes: Sequence[_Outcome], reach: int | None
) -> list[ReidentificationRate]:
    apart, share = drawn.cases.apart, drawn.share
    found = [_estimate(one.found.astype(np.float64), apart, share, only_apart=reach is None) for one in outcomes]
    guessed = [_estimate(one.guessed, apart, share, only_apart=False) for one in outcomes]
    return [
        ReidentificationRate(size, reach is not None, drawn.people, len(apart), *both)
        for size, *both in zip(sizes, monotone_rates(found), monotone_rates(guessed), strict=True)
    ]


def _estimate(values: FloatArray, apart: BoolArray, share: float, *, only_apart: bool) -> Rate:
    """Return the mean over all people; with ``only_apart`` shared paths have 0."""
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
    """Return the person whom the least knowledge finds, if possible without a start."""
    for at, size in enumerate(sizes):
        for drawn, outcomes, reach in results:
            found = np.flatnonzero(outcomes[at].found)
            if len(found):
                cases = drawn.cases.rows(found)
                # The first in a canonical order, so that it does not depend on that of the rows; if possible one whom
                # the day alone does not reveal.
                by_day = np.zeros(len(found), dtype=np.bool_)
                if reach is not None:
                    nothing = np.full((len(found), 1), Matcher.ANY)
                    (told,) = crowd.outcomes_of(cases, [nothing], reach)
                    by_day = told.found
                who = np.lexsort((cases.owner, cases.start, cases.variant, by_day))[:1]
                return _least_knowledge(
                    crowd, cases.rows(who), drawn.patterns(crowd.log.variants, size)[found[who]], reach
                )
    return None


def _least_knowledge(crowd: _Crowd, case: _Cases, pattern: IntArray, reach: int | None) -> Example:
    """Return the knowledge of a case that is necessary to find its person.

    The day is tried first, then each event: a part is dropped if the person is found without it.
    """
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
