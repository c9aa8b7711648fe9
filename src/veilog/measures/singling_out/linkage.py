"""Linkability: rows of two lists about the same people, matched by a release.

The attacker holds both lists, which have no name in common. For each of ``people`` one list has the first ``size``
activities of the case. The other list has its last activities, or its attributes. An ambulance and a ward may know such
lists. Of a case with fewer activities than both together, one list has the first half and the other the rest. Each row
of the first list is matched with the row of the second that goes with it best in the log that the attacker holds. Of n
cases let a begin like the one row, b end like the other (or have its attributes), and c do both. Of the rows with the
largest

    (c + 1/10) / (a b / n + 1/10)

one is taken. The quotient compares how often the two occur in one case with how often they would if they were
independent, drawn towards 1 where there are few. With two releases of one log a, b, c and n are those of both together.
With no release at all one of ``people`` matches is right by chance.

The attack runs on people of the original, with the original and with the release, and with a control (see
:mod:`.rates`). The control is as many people who were held out, attacked with the release, or the same people, attacked
with the original. In the latter case a match counts only if another case fits both rows, too. If the log identifies
persons, the lists have at most one case of a person. The control then leaves the person's other cases out of a, b, c
and n. The attack follows M. Giomi, F. Boenisch, C. Wehmeyer, B. Tasnádi, "A unified framework for quantifying privacy
risk in synthetic data" (PoPETs 2023), who match rows by their distances.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from veilog._counting import rank_rows
from veilog._typing import BoolArray, Float32Array, FloatArray, Int32Array, IntArray
from veilog.errors import ParameterError
from veilog.logs.eventlog import EventLog
from veilog.logs.variants import Variants
from veilog.measures.measure import our_measure
from veilog.measures.persons import persons_of
from veilog.measures.singling_out.rates import (
    Z_BEYOND,
    Attack,
    Control,
    Rate,
    Success,
    apart,
    mean_rate,
    paired_gain,
    residual,
)
from veilog.measures.singling_out.targets import Rows, attributes_of, people_of, rows_of, shared_codes

SIZES = (1, 3, 5, 10)
PEOPLE = 400
_FEWEST = 100
_WORK = 1 << 21
"""Rows of a list times groups of cases; for larger logs the lists are shorter, at least ``_FEWEST``."""
_ATTRIBUTES = 3
"""Number of attributes in the second list."""
_FEW = 0.1
_ANY = np.int32(-2)


@dataclass(frozen=True)
class Linked(Attack):
    """Two lists that an attacker holds, and the share of their rows matched rightly."""

    size: int
    """Most first activities in the first list, and most last ones in the other."""
    other_list: Literal["activities", "attributes"]
    releases: int
    """Number of releases of the log that the attacker holds: one or two."""
    people: int
    """Number of people in each list."""
    linked: Success
    naive: float
    """Share of matches that are right by chance alone."""
    beyond: Rate
    """Gain over the control, with its interval at 99.5 %."""
    residual: Rate
    """Part of the unknown under the control that the release reveals, at 99.5 %."""


@dataclass(frozen=True)
class Linkability:
    """Lists matched by the original, by the release and by the control."""

    results: tuple[Linked, ...]
    control: Control
    seconds: float


@dataclass(frozen=True, eq=False)
class _Held:
    """A log as a source of people or of evidence: groups of equal cases.

    The cases of a group are of one person, if the log identifies persons. Activities are numbers that all logs share.
    """

    variants: Variants
    heads: Int32Array
    """First activities of each variant, -1 after the last."""
    tails: Int32Array
    """Last activities of each variant, the last of all first."""
    group: IntArray
    """Variant of each group."""
    values: Int32Array
    """Attributes of each group, one column each."""
    cases: IntArray
    owner: IntArray | None
    """Person of each group, if the log identifies persons and some have several cases."""

    @property
    def kinds(self) -> int:
        """Return the number of different groups, whatever their persons."""
        same = [values[1:] == values[:-1] for values in (self.group, *self.values.T)]
        return len(self.cases) - int(np.logical_and.reduce(same).sum())

    def enough(self, of_attributes: bool) -> BoolArray:
        """Return True for the groups with enough events for a row in each list."""
        return self.variants.lengths[self.group] >= (1 if of_attributes else 2)

    def people(self, of_attributes: bool) -> int:
        """Return the number of people who could be in the lists, or of cases."""
        enough = self.enough(of_attributes)
        if self.owner is None:
            return int(self.cases[enough].sum())
        return len(np.flatnonzero(np.bincount(self.owner[enough])))


@dataclass(frozen=True, eq=False)
class _Lists:
    """Two lists about the same people in the same order; ``_ANY`` marks empty places."""

    first: Int32Array
    second: Int32Array
    of_attributes: bool
    variant: IntArray
    group: IntArray
    """Group of the log from which each person was drawn."""


@dataclass(frozen=True, eq=False)
class _Logs:
    """All logs of a comparison, in the same form."""

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
    person: str | bool = True,
    sizes: Iterable[int] = SIZES,
    people: int = PEOPLE,
    seed: int = 0,
) -> Linkability:
    """Return how often rows of two lists are matched rightly, with each log.

    ``control`` has people of the same process who were not in the released log. ``second`` is another release of the
    same log, which is then also used together with the first. Without a control, others' cases are the control, and
    these exclude other cases of the same ``person``. The person's column in the original is this one, with True the
    likeliest one; with False every case is another person's. Lists of attributes are tried where the release has
    attributes of cases. Sizes for which fewer than two people have enough events are left out.
    """
    began = time.perf_counter()
    wanted = sorted(set(sizes))
    if not wanted or wanted[0] < 1 or people < 2 or seed < 0:
        raise ParameterError("linking-settings-not-positive", parameter="sizes")
    if not (original if isinstance(original, Variants) else original.variants).cases:
        raise ParameterError("linking-without-cases", parameter="original")
    owner = None if control is not None else persons_of(original, person)
    kinds = [(_group_by_activities(wanted[-1], owner, original, released, control, second), False)]
    with contextlib.suppress(ParameterError):  # then there are no lists of attributes
        kinds.append((_group_by_attributes(kinds[0][0], owner, original, released, control), True))
    if released is original:
        kinds = [(replace(logs, released=logs.original), of_attributes) for logs, of_attributes in kinds]
    results = [
        row
        for logs, of_attributes in kinds
        for size in wanted
        for row in _link_lists(logs, of_attributes, size, people, seed)
    ]
    if not results:
        raise ParameterError("linking-people-too-few", parameter="original")
    return Linkability(tuple(results), "others' cases" if control is None else "held out", time.perf_counter() - began)


def _group_by_activities(longest: int, owner: IntArray | None, *logs: EventLog | Variants | None) -> _Logs:
    """Return the logs with a group per variant, and per ``owner`` in the first log."""
    given = [log if isinstance(log, Variants) or log is None else log.variants for log in logs]
    codes = iter(shared_codes([log for log in given if log is not None]))
    rows = (None if log is None else rows_of(log, None if i else owner) for i, log in enumerate(logs))
    held = (
        None if log is None or row is None else _variants(log, row, next(codes), longest)
        for log, row in zip(given, rows, strict=True)
    )
    return _Logs(*held)  # type: ignore[arg-type]


def _variants(log: Variants, rows: Rows, codes: IntArray, longest: int) -> _Held:
    places = np.arange(longest)[None, :]
    there = places < log.lengths[:, None]
    flat = np.append(codes, -1).astype(np.int32)
    heads = flat[np.where(there, log.offsets[:-1][:, None] + places, -1)]
    tails = flat[np.where(there, log.offsets[1:][:, None] - 1 - places, -1)]
    nothing = np.zeros((len(rows.variant), 0), dtype=np.int32)
    return _Held(log, heads, tails, rows.variant, nothing, rows.cases, rows.owner)


def _group_by_attributes(plain: _Logs, owner: IntArray | None, *logs: EventLog | Variants | None) -> _Logs:
    """Return the logs with a group per variant and attributes, but no second release."""
    given = [log for log in logs if log is not None]
    _, values = attributes_of(given)
    held = [one for one in (plain.original, plain.released, plain.control) if one is not None]
    grouped = [
        _group_cases(one, people_of(log).variant, v, None if i else owner)
        for i, (one, log, v) in enumerate(zip(held, given, values, strict=True))
    ]
    return _Logs(grouped[0], grouped[1], grouped[2] if len(grouped) > 2 else None)


def _group_cases(one: _Held, variant: IntArray, values: IntArray, owner: IntArray | None) -> _Held:
    values = values[:, :_ATTRIBUTES]
    columns = [variant, *values.T] if owner is None else [variant, *values.T, owner]
    first, ranks = rank_rows((column + 1 for column in columns), len(variant))
    known, whose = values[first].astype(np.int32), None if owner is None else owner[first]
    return replace(one, group=variant[first], values=known, cases=np.bincount(ranks), owner=whose)


def _link_lists(logs: _Logs, of_attributes: bool, size: int, people: int, seed: int) -> Iterator[Linked]:
    """Yield the outcome for lists of this size, by one release and, if given, by both."""
    groups = [logs.original, *([] if logs.control is None else [logs.control])]
    enough = min(one.people(of_attributes) for one in groups)
    largest = max(one.kinds for one in (*groups, logs.released))
    number = min(people, enough, max(_FEWEST, _WORK // max(1, largest)))
    if number < 2:
        return
    rng = np.random.default_rng([seed, size, of_attributes])
    lists = [_draw_lists(one, of_attributes, size, number, rng) for one in groups]
    own, both = _match_chances(lists[0], [logs.original])
    told, both = (
        (own, both) if logs.original.owner is None else _match_by_others(lists[0], logs.original, logs.original.owner)
    )
    others = np.where(both > 1, told, 1 / number)
    weight = np.full(number, 1 / number)
    used = [[logs.released], *([] if logs.second is None else [[logs.released, logs.second]])]
    for releases in used:
        # If the log itself stands for the release, the match is known already.
        made = own if releases == [logs.original] else _match_chances(lists[0], releases)[0]
        rate = mean_rate(made, weight, number)
        if logs.control is None:
            baseline = mean_rate(others, weight, number)
            gain = paired_gain(made - others, weight, lists[0].variant, number)
        else:
            of_control, _ = _match_chances(lists[1], releases)
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


def _draw_lists(log: _Held, of_attributes: bool, size: int, number: int, rng: np.random.Generator) -> _Lists:
    """Return two lists about people drawn from a log without repetition."""
    ends = np.cumsum(np.where(log.enough(of_attributes), log.cases, 0))
    if log.owner is None:
        group = np.searchsorted(ends, rng.choice(int(ends[-1]), number, replace=False), side="right")
    else:  # in a random order of all cases, those that are the first of their people
        mixed = np.searchsorted(ends, rng.permutation(int(ends[-1])), side="right")
        group = mixed[np.sort(np.unique(log.owner[mixed], return_index=True)[1])[:number]]
    variant = log.group[group]
    lengths, places = log.variants.lengths[variant][:, None], np.arange(size)[None, :]
    first = np.where(places < (lengths if of_attributes else (lengths + 1) // 2), log.heads[variant, :size], _ANY)
    second = log.values[group] if of_attributes else np.where(places < lengths // 2, log.tails[variant, :size], _ANY)
    return _Lists(first, second, of_attributes, variant, group)


def _match_chances(lists: _Lists, logs: Sequence[_Held]) -> tuple[FloatArray, FloatArray]:
    """Return the chance of each row's match, and the cases that fit both its rows."""
    both, one, other, cases = _count_fits(lists, logs)
    return _right(_score(both, np.outer(one, other) / max(1.0, cases))), np.diagonal(both).copy()


def _match_by_others(lists: _Lists, log: _Held, owner: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return the same by the people's own log, without each person's other cases."""
    both, one, other, cases = _count_fits(lists, [log])
    chance = np.zeros_like(both)
    first, second = _list_rows(lists, log)
    order = np.argsort(owner, kind="stable")
    low, high = (np.searchsorted(owner[order], owner[lists.group], side=side) for side in ("left", "right"))
    for i, group in enumerate(lists.group.tolist()):
        own = order[low[i] : high[i]]
        weight = (log.cases[own] - (own == group)).astype(np.float64)
        a, b = weight * _agree(lists.first[i], first[own]), _agree(lists.second[:, None], second[own])
        both[i] -= b @ a
        chance[i] = (one[i] - a.sum()) * (other - b @ weight) / max(1.0, cases - weight.sum())
    return _right(_score(both, chance)), np.diagonal(both).copy()


def _count_fits(lists: _Lists, logs: Sequence[_Held]) -> tuple[FloatArray, FloatArray, FloatArray, float]:
    """Return how many cases fit both rows, each first, each second row, and all cases."""
    number = len(lists.first)
    both = np.zeros((number, number))
    one, other, cases = np.zeros(number), np.zeros(number), 0.0
    for log in logs:
        first, second, weight = _merge_groups(*_list_rows(lists, log), log.cases)
        a, b = _rows_fit(lists.first, first), _rows_fit(lists.second, second)
        some = np.flatnonzero(a.any(axis=0) & b.any(axis=0))
        both += (a[:, some] * weight[some]) @ b[:, some].T.astype(np.float32)
        one, other = one + a @ weight, other + b @ weight
        cases += float(log.cases.sum())
    return both, one, other, cases


def _list_rows(lists: _Lists, log: _Held) -> tuple[Int32Array, Int32Array]:
    """Return the row that the cases of each group would have in either list."""
    first = log.heads[log.group, : lists.first.shape[1]]
    return first, log.values if lists.of_attributes else log.tails[log.group, : lists.second.shape[1]]


def _score(both: FloatArray, chance: FloatArray) -> FloatArray:
    """Return how much more often two rows share a case than independent ones would."""
    return (both + _FEW) / (chance + _FEW)


def _right(score: FloatArray) -> FloatArray:
    """Return the chance that the best match of each row is the right one."""
    best = score >= score.max(axis=1, keepdims=True) * (1 - 1e-12)
    return np.asarray(np.diagonal(best) / best.sum(axis=1), dtype=np.float64)


def _merge_groups(
    first: Int32Array, second: Int32Array, cases: IntArray
) -> tuple[Int32Array, Int32Array, Float32Array]:
    """Return groups of equal rows, with their cases (exact up to about 16 million)."""
    columns = np.column_stack([first, second]).astype(np.uint64)
    # Two different rows have the same sum with a chance of some 2**-62.
    factors = np.random.default_rng(0).integers(0, 1 << 64, columns.shape[1], dtype=np.uint64)
    _, place, number = np.unique(columns @ factors, return_index=True, return_inverse=True)
    return first[place], second[place], np.bincount(number, weights=cases).astype(np.float32)


def _rows_fit(rows: Int32Array, groups: Int32Array) -> BoolArray:
    """Return for each row the groups that agree with it in all its entries."""
    table = np.ones((len(rows), len(groups)), dtype=np.bool_)
    for own, column in zip(rows.T, np.ascontiguousarray(groups.T), strict=True):
        entries, which = np.unique(own, return_inverse=True)
        table &= ((entries[:, None] == column) | (entries == _ANY)[:, None])[which]
    return table


def _agree(rows: Int32Array, groups: Int32Array) -> BoolArray:
    """Return True where rows agree with groups in all entries of the last axis."""
    return np.asarray(((rows == groups) | (rows == _ANY)).all(axis=-1))


LINKABILITY = our_measure(
    "linkability",
    lambda pair: linkability(
        pair.original, pair.released, control=pair.control, second=pair.second, person=pair.person
    ),
)
