"""Declare constraints: what each template means, and in which share of the cases that activate it each one holds.

A case activates a constraint where the activities occur that it says something about; cases that do not are no evidence
for it. All constraints are found from where activities first and last occur and how often, over the distinct variants.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache

import numpy as np

from veilog._typing import BoolArray, IntArray
from veilog.logs.variants import Variants
from veilog.rules.constraints import COUNTED, Constraint

SUPPORT = 0.95
"""From which support on a constraint of the original's own is one that it is checked for."""
FREQUENT = 0.05
"""Share of the cases that have to activate it."""
MOST_ACTIVITIES = 50


@dataclass(frozen=True, eq=False)
class Support:
    """Of each variant, whether it activates a constraint and whether it keeps it; cases that do so."""

    active: BoolArray
    kept: BoolArray
    """Also True where it is not active."""
    activated: int
    satisfied: int

    @property
    def support(self) -> float:
        """The share of the activated cases that keep it; 0 where nothing activates it."""
        return self.satisfied / self.activated if self.activated else 0.0


def held(constraints: Iterable[Constraint], variants: Variants) -> list[Support]:
    """Return for each constraint where it is active and where it holds."""
    places = _Places(variants)
    return [_held(constraint, places) for constraint in constraints]


def _held(constraint: Constraint, places: _Places) -> Support:
    times = (constraint.times,) if constraint.template in COUNTED else ()
    active, kept = _RULES[constraint.template](places, *constraint.activities, *times)
    counts = places.counts
    return Support(active, kept | ~active, int(counts[active].sum()), int(counts[active & kept].sum()))


def mined(variants: Variants) -> list[Constraint]:
    """Return the responses and precedences between the frequent activities that hold nearly always."""
    places = _Places(variants)
    cases = {name: int(variants.counts[places.count(name) > 0].sum()) for name in variants.labels}
    frequent = [name for name in cases if cases[name] >= FREQUENT * variants.cases]
    frequent = sorted(sorted(frequent, key=lambda name: -cases[name])[:MOST_ACTIVITIES])
    found = []
    for first in frequent:
        for second in frequent:
            if first != second:
                pairs = (Constraint(template, (first, second)) for template in ("response", "precedence"))
                found += [one for one in pairs if _held(one, places).support >= SUPPORT]
    return found


class _Places:
    """Where activities are in variants: first and last positions (-1 where there is none), and how often they occur."""

    def __init__(self, variants: Variants) -> None:
        self.counts = variants.counts
        self._numbers = {label: number for number, label in enumerate(variants.labels)}
        self._codes = variants.codes
        self._variants = len(variants)
        self._lengths = variants.lengths
        self._owner = np.repeat(np.arange(len(variants)), variants.lengths)
        self._position = np.arange(len(variants.codes)) - np.repeat(variants.offsets[:-1], variants.lengths)
        self.of = cache(self._of)

    def _of(self, name: str) -> tuple[IntArray, IntArray, IntArray]:
        """Return first and last position and number of occurrences of an activity."""
        rows = np.flatnonzero(self._codes == self._numbers.get(name, -1))
        first, last = np.full(self._variants, -1, dtype=np.int64), np.full(self._variants, -1, dtype=np.int64)
        last[self._owner[rows]] = self._position[rows]
        first[self._owner[rows[::-1]]] = self._position[rows[::-1]]
        return first, last, np.bincount(self._owner[rows], minlength=self._variants)

    def first(self, name: str) -> IntArray:
        return self.of(name)[0]

    def last(self, name: str) -> IntArray:
        return self.of(name)[1]

    def count(self, name: str) -> IntArray:
        return self.of(name)[2]

    def at_end(self, name: str) -> BoolArray:
        found: BoolArray = (self.last(name) == self._lengths - 1) & (self._lengths > 0)
        return found

    def followed(self, first: str, second: str) -> IntArray:
        """Return how often one activity comes directly before another one."""
        one, two = self._numbers.get(first, -1), self._numbers.get(second, -1)
        here = (self._codes[:-1] == one) & (self._codes[1:] == two) & (self._owner[:-1] == self._owner[1:])
        return np.bincount(self._owner[:-1][here], minlength=self._variants)

    @property
    def all(self) -> BoolArray:
        return np.ones(self._variants, dtype=np.bool_)


Rule = Callable[..., tuple[BoolArray, BoolArray]]
"""Of the places, the activities and a number: which variants are active, and which keep it."""


def _response(at: _Places, a: str, b: str) -> tuple[BoolArray, BoolArray]:
    return at.count(a) > 0, at.last(b) > at.last(a)


def _precedence(at: _Places, a: str, b: str) -> tuple[BoolArray, BoolArray]:
    return at.count(b) > 0, (at.count(a) > 0) & (at.first(a) < at.first(b))


def _succession(at: _Places, a: str, b: str) -> tuple[BoolArray, BoolArray]:
    (first, responded), (second, preceded) = _response(at, a, b), _precedence(at, a, b)
    return first | second, responded & preceded


_RULES: dict[str, Rule] = {
    "existence": lambda at, a, times: (at.all, at.count(a) >= times),
    "absence": lambda at, a, times: (at.all, at.count(a) < times),
    "exactly": lambda at, a, times: (at.all, at.count(a) == times),
    "init": lambda at, *several: (at.all, np.logical_or.reduce([at.first(a) == 0 for a in several])),
    "end": lambda at, *several: (at.all, np.logical_or.reduce([at.at_end(a) for a in several])),
    "responded existence": lambda at, a, b: (at.count(a) > 0, at.count(b) > 0),
    "response": _response,
    "precedence": _precedence,
    "succession": _succession,
    "chain response": lambda at, a, b: (at.count(a) > 0, at.followed(a, b) == at.count(a)),
    "chain precedence": lambda at, a, b: (at.count(b) > 0, at.followed(a, b) == at.count(b)),
    "not co-existence": lambda at, a, b: (
        (at.count(a) > 0) | (at.count(b) > 0),
        (at.count(a) == 0) | (at.count(b) == 0),
    ),
}
