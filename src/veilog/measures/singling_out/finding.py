"""Who can be found in a log itself: how many cases somebody finds who happens to know a few of their events.

The attacker knows up to ``size`` events of a case (all, where it has no more), drawn at random, in their order, and
perhaps about when the case started. The case is *found* if no other fits; its path is *guessed* as in
:mod:`veilog.measures.singling_out.measure`. Cases with a path of their own and cases that share it are drawn apart,
because without the start only the former can be found; how many these are is exact.

Who knows more finds more. The events that are known of a person are therefore drawn as one random order, of which
more and more are known: every person who is found with some is found with more, so the estimates cannot fall. What is
guessed can fall by accident of the draws, and is kept from it by :func:`.rates.rising`. All have 95 % intervals
(Wilson's, of the two kinds of cases put together by squares, as G. Y. Zou, "On the estimation of additive interaction
by use of the four-by-two table and beyond", 2008, does), whatever the size of the log: of one with many variants
fewer people are drawn.
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
from veilog.measures.durations import timed
from veilog.measures.singling_out.logs import (
    UNKNOWN,
    Fitting,
    Population,
    cases_of,
    in_random_order,
    known_in_order,
    population,
    starts_of,
)
from veilog.measures.singling_out.rates import Rate, rising, wilson

__all__ = ["Example", "Exposed", "Exposure", "exposure"]

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
class Exposed:
    """What is known of a person, and of how many it finds the case or tells the path."""

    size: int
    """Events of the case that are known; of a shorter one, all."""
    with_start: bool
    """Whether it is also known about when the case started."""
    people: int
    """Cases with events, and a known start where that is known."""
    attacks: int
    """People drawn of them."""
    found: Rate
    """The share of them of whom exactly one case fits: theirs."""
    guessed: Rate
    """The share of them whose path is the most frequent one that fits."""


@dataclass(frozen=True)
class Example:
    """One case that is found by little."""

    activities: tuple[str, ...]
    """What is known of it, in this order."""
    day: str | None
    """The day that it started on, where that was needed or is known."""
    events: int
    with_start: bool
    """Whether the day was needed to find it."""


@dataclass(frozen=True)
class Exposure:
    """Who can be found in a log, for each kind of knowledge."""

    cases: int
    alone: int
    """Cases whose path no other case has; exact."""
    results: tuple[Exposed, ...]
    hours: float
    without_start: str | None
    """Why no attacker knows when cases started, if so."""
    example: Example | None
    seconds: float

    def at_most(self, unique: Mapping[int, int]) -> Exposure:
        """Return the same with what is certain: of each size, how many cases a sequence of so many activities singles
        out. Without the start no more are found than by all sizes up to it together."""
        results = []
        for row in self.results:
            known = [unique.get(size) for size in range(1, row.size + 1)]
            if not row.with_start and None not in known:
                most = min(1.0, sum(number or 0 for number in known) / row.people)
                row = replace(row, found=Rate(*(min(end, most) for end in vars(row.found).values())))
            results.append(row)
        return replace(self, results=tuple(results))


@dataclass(frozen=True, eq=False)
class _Drawn:
    """People drawn, with all that is known of them, the first of it first."""

    variant: IntArray
    start: IntArray
    places: IntArray
    """Positions of the events that become known, one after the other; -1 after the last."""
    own_path: BoolArray

    def patterns(self, variants: Variants, size: int) -> IntArray:
        """What is known of each with so many events, in their order."""
        return known_in_order(variants, self.variant, self.places[:, :size])


def exposure(
    log: EventLog | Variants,
    *,
    sizes: Iterable[int] = SIZES,
    hours: float = 24.0,
    attacks: int = ATTACKS,
    seed: int = 0,
) -> Exposure:
    """How many people somebody finds in a log who knows a few events of their case, and perhaps when it started.

    ``sizes`` are how many events are known, and ``hours`` how well the start is. Nothing depends on the order of rows.
    """
    began = time.perf_counter()
    wanted = sorted(set(sizes))
    if not wanted or wanted[0] < 1 or attacks < 2 or not hours > 0 or seed < 0:
        raise ParameterError("Sizes, attacks and hours must be positive.", parameter="sizes")
    variants = log if isinstance(log, Variants) else log.variants
    if not variants.events:
        raise ParameterError("The log has no events, so there is nothing that could be known.", parameter="log")
    why = _why_without_start(log)
    variant, start, _ = cases_of(log, variants, why is None)
    everybody = population(variants, variant, start, why is None)
    rng = np.random.default_rng([seed, wanted[-1]])
    some = variants.lengths[variant] > 0
    most = min(attacks, max(_FEWEST, _WORK // max(1, len(variants))))
    drawn = _drawn(variants, variant[some], start[some], most, wanted[-1], rng)
    blind = _outcomes(everybody, drawn, wanted, None)
    results = [(drawn, blind, _shares(variants, variant[some]), False)]
    if everybody.starts is not None:
        there = some & (start != UNKNOWN)
        reach = int(hours * _HOUR)
        window = np.searchsorted(everybody.starts, everybody.starts + 2 * reach) - np.arange(len(everybody.starts))
        most = min(attacks, max(_FEWEST, int(_WORK // max(1.0, float(window.mean())))))
        timed_ones = _drawn(variants, variant[there], start[there], most, wanted[-1], rng)
        near = _outcomes(everybody, timed_ones, wanted, reach)
        results.append((timed_ones, near, _shares(variants, variant[there]), True))
    return Exposure(
        cases=variants.cases,
        alone=int(variants.counts[variants.counts == 1].sum()),
        results=tuple(row for found in results for row in _rows(wanted, *found)),
        hours=hours,
        without_start=why,
        example=_example(variants, wanted, results),
        seconds=time.perf_counter() - began,
    )


def _why_without_start(log: EventLog | Variants) -> str | None:
    if isinstance(log, Variants):
        return "Only the variants of the log were read, not its times."
    try:
        known = starts_of(timed(log, "log")) != UNKNOWN
    except ParameterError as error:
        return str(error)
    return None if known.any() else "No case of the log has a known time."


def _drawn(
    variants: Variants, variant: IntArray, start: IntArray, most: int, longest: int, rng: np.random.Generator
) -> _Drawn:
    """Half of the people from those with a path of their own, half from the others, in random order."""
    own_path = variants.counts[variant] == 1
    kinds = [kind for kind in (np.flatnonzero(own_path), np.flatnonzero(~own_path)) if len(kind)]
    number = most // len(kinds)
    # Where there are fewer people than attacks, everybody is attacked about equally often.
    chosen = [rng.choice(k, number) if len(k) > number else np.resize(rng.permutation(k), number) for k in kinds]
    who = rng.permutation(np.concatenate(chosen))
    places = in_random_order(variants.lengths[variant[who]], longest, rng)
    return _Drawn(variant[who], start[who], places, own_path[who])


def _shares(variants: Variants, variant: IntArray) -> tuple[int, float]:
    """How many people there are, and the share of those with a path of their own."""
    return len(variant), float((variants.counts[variant] == 1).mean())


def _outcomes(log: Population, drawn: _Drawn, sizes: Sequence[int], reach: int | None) -> list[Fitting]:
    """What fits of each person, for each size; with a reach, of what started so near."""
    patterns = [drawn.patterns(log.variants, size) for size in sizes]
    parts: list[list[Fitting]] = []
    step = len(drawn.variant) if reach is not None else max(1, _PAIRS // max(1, len(log.variants)))
    for first in range(0, len(drawn.variant), step):
        people = np.arange(first, min(first + step, len(drawn.variant)))
        if reach is None:
            which = np.repeat(people, len(log.variants))
            variant = np.tile(np.arange(len(log.variants)), len(people))
            cases = log.variants.counts[variant]
        else:
            which, variant, cases = _around(log, drawn.start, reach)
        fitting = []
        for known in patterns:
            fit = log.matcher.among(known, which, variant)
            which, variant, cases = which[fit], variant[fit], cases[fit]
            fitting.append(_counted(which - first, variant == drawn.variant[which], cases, len(people)))
        parts.append(fitting)
    return [_joined([part[i] for part in parts]) for i in range(len(sizes))]


def _around(log: Population, start: IntArray, reach: int) -> tuple[IntArray, IntArray, IntArray]:
    """Of each person the variants of the cases that started about then, and how many cases of each did."""
    assert log.starts is not None
    assert log.variant is not None
    low = np.searchsorted(log.starts, start - reach)
    high = np.searchsorted(log.starts, start + reach, side="right")
    number = high - low
    which = np.repeat(np.arange(len(start)), number)
    case = np.arange(len(which)) - np.repeat(np.cumsum(number) - number, number) + np.repeat(low, number)
    pairs, cases = np.unique(which * len(log.variants) + log.variant[case], return_counts=True)
    return pairs // len(log.variants), pairs % len(log.variants), cases.astype(np.int64)


def _counted(which: IntArray, own: BoolArray, cases: IntArray, people: int) -> Fitting:
    """What fits of each person, from the variants that do, and whether each is the person's own."""
    same = np.bincount(which[own], weights=cases[own], minlength=people).astype(np.int64)
    there, number = which[~own], cases[~own]
    others = np.bincount(there, weights=number, minlength=people).astype(np.int64)
    highest = np.zeros(people, dtype=np.int64)
    np.maximum.at(highest, there, number)
    ties = np.bincount(there[number == highest[there]], minlength=people)
    return Fitting(same, others, highest, ties)


def _joined(parts: Sequence[Fitting]) -> Fitting:
    return Fitting(
        *(np.concatenate([getattr(p, name) for p in parts]) for name in ("same", "others", "highest", "ties"))
    )


def _rows(
    sizes: Sequence[int], drawn: _Drawn, fitting: Sequence[Fitting], people: tuple[int, float], with_start: bool
) -> list[Exposed]:
    found = [_estimate(one.alone(), drawn.own_path, people[1], only_own=not with_start) for one in fitting]
    guessed = [_estimate(one.guessed(), drawn.own_path, people[1], only_own=False) for one in fitting]
    return [
        Exposed(size, with_start, people[0], len(drawn.variant), *both)
        for size, *both in zip(sizes, rising(found), rising(guessed), strict=True)
    ]


def _estimate(values: FloatArray, own_path: BoolArray, share: float, *, only_own: bool) -> Rate:
    """The mean over all people from those drawn of the two kinds; ``only_own``: it is 0 of those who share their
    path."""
    mean = down = up = 0.0
    for weight, kind, counts in ((share, own_path, True), (1 - share, ~own_path, not only_own)):
        if weight and counts:
            rate = wilson(float(values[kind].mean()), int(kind.sum()))
            mean += weight * rate.value
            down = math.hypot(down, weight * (rate.value - rate.low))
            up = math.hypot(up, weight * (rate.high - rate.value))
    return Rate(mean, max(0.0, mean - down), min(1.0, mean + up))


def _example(
    variants: Variants, sizes: Sequence[int], results: Sequence[tuple[_Drawn, list[Fitting], tuple[int, float], bool]]
) -> Example | None:
    """The case that is found by least of all drawn; without the start, where that is so by few events."""
    for at, size in enumerate(sizes):
        for drawn, fitting, _, with_start in results:
            found = np.flatnonzero(fitting[at].alone())
            if len(found):
                # The first in a canonical order, so that it does not depend on that of the rows.
                who = found[np.lexsort((drawn.start[found], drawn.variant[found]))[0]]
                codes = drawn.patterns(variants, size)[who]
                start = int(drawn.start[who])
                return Example(
                    activities=tuple(variants.labels[code] for code in codes.tolist() if code >= 0),
                    day=None if start == UNKNOWN else f"{datetime.fromtimestamp(start / 1e6, UTC):%Y-%m-%d}",
                    events=int(variants.lengths[drawn.variant[who]]),
                    with_start=with_start,
                )
    return None
