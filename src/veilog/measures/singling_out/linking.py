"""Linkability: who holds two lists about the same people, without a name that both have, matches their rows by a
release.

For each of ``people`` one list has the first ``size`` activities of the case, and the other one its last ones, as an
ambulance and a ward may know them (of a case with fewer than both together the one list has the first half, the other
the rest); or the other one has its attributes. Each row of the first list is matched with the row of the second that
goes with it best in the log that the attacker holds: of n cases let a begin like the one row, b end like the other
(have its attributes), and c both; of the rows that have the largest

    (c + 1/10) / (a b / n + 1/10)

one is taken. The quotient is how much more often the two occur in one case than they would if neither told of the
other, drawn towards 1 where there are few. With two releases of one log a, b, c and n are those of both together.
With no release at all one of ``people`` matches is right by chance.

That is done for people of the original, with the original and with the release, and with a control (see :mod:`.rates`):
as many people who were held out, with the release; or the same people with the original, where a match counts only if
another case fits both rows, too. The attack follows M. Giomi, F. Boenisch, C. Wehmeyer, B. Tasnádi, "A unified
framework for quantifying privacy risk in synthetic data" (PoPETs 2023); there rows are matched by their distances.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from veilog._typing import BoolArray, Float32Array, FloatArray, Int32Array, IntArray
from veilog.errors import ParameterError
from veilog.logs.eventlog import EventLog
from veilog.logs.variants import Variants
from veilog.measures.measure import Measure
from veilog.measures.singling_out.people import attributes_of, people_of, shared_codes
from veilog.measures.singling_out.rates import (
    Z_BEYOND,
    Control,
    Rate,
    Success,
    apart,
    mean_rate,
    paired,
    residual,
    tells_more,
)

__all__ = ["LINKABILITY", "Linkability", "Linked", "linkability"]

SIZES = (1, 3, 5, 10)
PEOPLE = 400
_FEWEST = 100
_WORK = 1 << 21
"""Rows of a list times groups of cases; of larger logs the lists are shorter, at least ``_FEWEST``."""
_ATTRIBUTES = 3
"""Attributes in the second list."""
_FEW = 0.1
_ANY = np.int32(-2)


@dataclass(frozen=True)
class Linked:
    """Two lists that an attacker holds, and how often a row of the one is matched with the right row of the other."""

    size: int
    """How many first activities of each case the first list has at most, and how many last ones the other."""
    other_list: Literal["activities", "attributes"]
    releases: int
    """How many releases of the log the attacker holds: the one, or also the second."""
    people: int
    """In each list."""
    linked: Success
    naive: float
    """The share of matches that chance alone makes right."""
    beyond: Rate
    """The gain over the control, at 99.5 %."""
    residual: Rate
    """Of what the control leaves to find out the share that the release tells, at 99.5 %."""

    @property
    def more(self) -> bool:
        """Whether the release links more of the people attacked than the control."""
        return tells_more(self.beyond)


@dataclass(frozen=True)
class Linkability:
    """Lists matched by the original, by the release and by the control."""

    results: tuple[Linked, ...]
    control: Control
    seconds: float


@dataclass(frozen=True, eq=False)
class _Held:
    """A log as a source of people, or of evidence: groups of equal cases. Activities are numbers that all logs
    share."""

    variants: Variants
    heads: Int32Array
    """The first activities of each variant, -1 after the last."""
    tails: Int32Array
    """The last ones, the last of all first."""
    group: IntArray
    """The variant of each group."""
    values: Int32Array
    """The attributes of each group, a column each."""
    cases: IntArray


@dataclass(frozen=True, eq=False)
class _Lists:
    """Rows about people, the same ones in the same order in both; ``_ANY`` where a row says nothing."""

    first: Int32Array
    second: Int32Array
    of_attributes: bool
    variant: IntArray


@dataclass(frozen=True, eq=False)
class _Logs:
    """All logs of a comparison, alike."""

    original: _Held
    released: _Held
    control: _Held | None
    second: _Held | None = None


def linkability(
    original: EventLog | Variants,
    released: EventLog | Variants,
    *,
    control: EventLog | Variants | None = None,
    second: EventLog | Variants | None = None,
    sizes: Iterable[int] = SIZES,
    people: int = PEOPLE,
    seed: int = 0,
) -> Linkability:
    """How often rows of two lists about people are matched rightly, with either log and the control.

    ``control`` has people of the same process who were not in the log that was released; ``second`` is another release
    of the same log, which then is also used together with the first. Lists of attributes are tried where the release
    has attributes of cases; sizes for which fewer than two people have enough events are left out.
    """
    began = time.perf_counter()
    wanted = sorted(set(sizes))
    if not wanted or wanted[0] < 1 or people < 2 or seed < 0:
        raise ParameterError("Sizes, people and seed must be positive.", parameter="sizes")
    if not (original if isinstance(original, Variants) else original.variants).cases:
        raise ParameterError("The original log has no cases, so there is nobody to link.", parameter="original")
    kinds = [(_by_activities(wanted[-1], original, released, control, second), False)]
    with contextlib.suppress(ParameterError):  # then there are no lists of attributes
        kinds.append((_with_attributes(kinds[0][0], original, released, control), True))
    if released is original:
        kinds = [(replace(logs, released=logs.original), of_attributes) for logs, of_attributes in kinds]
    results = [
        row
        for logs, of_attributes in kinds
        for size in wanted
        for row in _linked(logs, of_attributes, size, people, seed)
    ]
    if not results:
        raise ParameterError("Too few people have events enough for two lists.", parameter="original")
    return Linkability(tuple(results), "others' cases" if control is None else "held out", time.perf_counter() - began)


def _by_activities(longest: int, *logs: EventLog | Variants | None) -> _Logs:
    """The logs with a group for each variant."""
    given = [log if isinstance(log, Variants) or log is None else log.variants for log in logs]
    codes = iter(shared_codes([log for log in given if log is not None]))
    return _Logs(*(None if log is None else _variants(log, next(codes), longest) for log in given))  # type: ignore[arg-type]


def _variants(log: Variants, codes: IntArray, longest: int) -> _Held:
    places = np.arange(longest)[None, :]
    there = places < log.lengths[:, None]
    flat = np.append(codes, -1).astype(np.int32)
    heads = flat[np.where(there, log.offsets[:-1][:, None] + places, -1)]
    tails = flat[np.where(there, log.offsets[1:][:, None] - 1 - places, -1)]
    nothing = np.zeros((len(log), 0), dtype=np.int32)
    return _Held(log, heads, tails, np.arange(len(log)), nothing, log.counts)


def _with_attributes(plain: _Logs, *logs: EventLog | Variants | None) -> _Logs:
    """The logs with a group for all cases of a variant that have the same attributes; without a second release."""
    given = [log for log in logs if log is not None]
    _, values = attributes_of(given)
    held = [one for one in (plain.original, plain.released, plain.control) if one is not None]
    grouped = [_grouped(one, people_of(log).variant, v) for one, log, v in zip(held, given, values, strict=True)]
    return _Logs(grouped[0], grouped[1], grouped[2] if len(grouped) > 2 else None)


def _grouped(one: _Held, variant: IntArray, values: IntArray) -> _Held:
    rows, cases = np.unique(np.column_stack([variant, values[:, :_ATTRIBUTES]]), axis=0, return_counts=True)
    return replace(one, group=rows[:, 0], values=rows[:, 1:].astype(np.int32), cases=cases.astype(np.int64))


def _linked(logs: _Logs, of_attributes: bool, size: int, people: int, seed: int) -> Iterator[Linked]:
    """Yield the outcome for lists of this size, by the release and, where there is a second one, by both."""
    groups = [logs.original, *([] if logs.control is None else [logs.control])]
    enough = min(int(one.cases[one.variants.lengths[one.group] >= (1 if of_attributes else 2)].sum()) for one in groups)
    largest = max(len(one.cases) for one in (*groups, logs.released))
    number = min(people, enough, max(_FEWEST, _WORK // max(1, largest)))
    if number < 2:
        return
    rng = np.random.default_rng([seed, size, of_attributes])
    lists = [_drawn(one, of_attributes, size, number, rng) for one in groups]
    own, both = _matched(lists[0], [logs.original])
    others = np.where(both > 1, own, 1 / number)
    weight = np.full(number, 1 / number)
    used = [[logs.released], *([] if logs.second is None else [[logs.released, logs.second]])]
    for releases in used:
        # Where the log itself stands for the release, that is known.
        made = own if releases == [logs.original] else _matched(lists[0], releases)[0]
        rate = mean_rate(made, weight, number)
        if logs.control is None:
            baseline = mean_rate(others, weight, number)
            gain = paired(made - others, weight, lists[0].variant, number)
        else:
            of_control, _ = _matched(lists[1], releases)
            baseline = mean_rate(of_control, weight, number)
            gain = apart(mean_rate(made, weight, number, Z_BEYOND), mean_rate(of_control, weight, number, Z_BEYOND))
        yield Linked(
            size=size,
            other_list="attributes" if of_attributes else "activities",
            releases=len(releases),
            people=number,
            linked=Success(mean_rate(own, weight, number), rate, baseline),
            naive=1 / number,
            beyond=gain,
            residual=residual(gain, baseline),
        )


def _drawn(log: _Held, of_attributes: bool, size: int, number: int, rng: np.random.Generator) -> _Lists:
    """Two lists about people drawn from a log, nobody twice."""
    ends = np.cumsum(np.where(log.variants.lengths[log.group] >= (1 if of_attributes else 2), log.cases, 0))
    group = np.searchsorted(ends, rng.choice(int(ends[-1]), number, replace=False), side="right")
    variant = log.group[group]
    lengths, places = log.variants.lengths[variant][:, None], np.arange(size)[None, :]
    first = np.where(places < (lengths if of_attributes else (lengths + 1) // 2), log.heads[variant, :size], _ANY)
    second = log.values[group] if of_attributes else np.where(places < lengths // 2, log.tails[variant, :size], _ANY)
    return _Lists(first, second, of_attributes, variant)


def _matched(lists: _Lists, logs: Sequence[_Held]) -> tuple[FloatArray, FloatArray]:
    """The chance that each row's match is right by these logs, and how many cases fit both rows of each person."""
    number = len(lists.first)
    both = np.zeros((number, number))
    one, other, cases = np.zeros(number), np.zeros(number), 0.0
    for log in logs:
        first = log.heads[log.group, : lists.first.shape[1]]
        second = log.values if lists.of_attributes else log.tails[log.group, : lists.second.shape[1]]
        first, second, weight = _merged(first, second, log.cases)
        a, b = _fit(lists.first, first), _fit(lists.second, second)
        some = np.flatnonzero(a.any(axis=0) & b.any(axis=0))
        both += (a[:, some] * weight[some]) @ b[:, some].T.astype(np.float32)
        one, other = one + a @ weight, other + b @ weight
        cases += float(log.cases.sum())
    score = (both + _FEW) / (np.outer(one, other) / max(1.0, cases) + _FEW)
    best = score >= score.max(axis=1, keepdims=True) * (1 - 1e-12)
    right = np.diagonal(best) / best.sum(axis=1)
    return np.asarray(right, dtype=np.float64), np.diagonal(both).copy()


def _merged(first: Int32Array, second: Int32Array, cases: IntArray) -> tuple[Int32Array, Int32Array, Float32Array]:
    """Groups of equal rows once, with their cases, which are exact up to some 16 million of them."""
    columns = np.column_stack([first, second]).astype(np.uint64)
    # Two different rows have the same sum with a chance of some 2**-62.
    factors = np.random.default_rng(0).integers(0, 1 << 64, columns.shape[1], dtype=np.uint64)
    _, place, number = np.unique(columns @ factors, return_index=True, return_inverse=True)
    return first[place], second[place], np.bincount(number, weights=cases).astype(np.float32)


def _fit(rows: Int32Array, groups: Int32Array) -> BoolArray:
    """Which rows agree with which groups in all that they say."""
    table = np.ones((len(rows), len(groups)), dtype=np.bool_)
    for column in range(rows.shape[1]):
        some = np.flatnonzero(rows[:, column] != _ANY)
        table[some] &= rows[some, column][:, None] == groups[:, column][None, :]
    return table


LINKABILITY = Measure(
    "linkability",
    lambda pair: linkability(pair.original, pair.released, control=pair.control, second=pair.second),
    (),
    paper="Giomi, Boenisch, Wehmeyer, Tasnádi: A unified framework for quantifying privacy risk in synthetic "
    "data, 2023",
    explained="Somebody holds two lists about the same people, without names: how often the rows of a person are "
    "matched by what occurs together in the log.",
    doing="Linkability",
)
