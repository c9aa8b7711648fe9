"""Declare constraints: what each template means, and in which share of the cases that activate it each one holds.

A case activates a constraint where the activities occur that it says something about; cases that do not are no evidence
for it. Whether a case keeps a constraint, its automaton tells.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

import numpy as np

from veilog._typing import BoolArray, IntArray
from veilog.logs.variants import Variants
from veilog.rules.automata import Automata
from veilog.rules.rule_files import Constraint

SUPPORT = 0.95
"""From which support on a constraint of the original's own is one that it is checked for."""
FREQUENT = 0.05
"""Share of the cases that have to activate it."""
MOST_ACTIVITIES = 50
ACTIVATING = {
    **dict.fromkeys(("responded existence", "response", "chain response"), (0,)),
    **dict.fromkeys(("precedence", "chain precedence"), (1,)),
    **dict.fromkeys(("succession", "not co-existence"), (0, 1)),
}
"""Which of its activities activate a constraint, if one of them occurs; every case activates the others."""


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
    asked, places = list(constraints), _Places(variants)
    kept = Automata.of(asked, variants.labels).kept(variants.codes, variants.offsets)
    return [_support(_active(one, places), kept[:, row], variants.counts) for row, one in enumerate(asked)]


def _active(constraint: Constraint, places: _Places) -> BoolArray:
    names = [constraint.activities[place] for place in ACTIVATING.get(constraint.template, ())]
    found = [places.count(name) > 0 for name in names]
    return np.logical_or.reduce(found) if found else np.ones(len(places.counts), dtype=np.bool_)


def _support(active: BoolArray, kept: BoolArray, counts: IntArray) -> Support:
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
                # Of some thousand pairs, places tell more quickly than automata do.
                response = places.last(second) > places.last(first)
                precedence = (places.count(first) > 0) & (places.first(first) < places.first(second))
                for template, kept in (("response", response), ("precedence", precedence)):
                    one = Constraint(template, (first, second))
                    if _support(_active(one, places), kept, variants.counts).support >= SUPPORT:
                        found.append(one)
    return found


class _Places:
    """Where activities are in variants: first and last positions (-1 where there is none), and how often they occur."""

    def __init__(self, variants: Variants) -> None:
        self.counts = variants.counts
        self._numbers = {label: number for number, label in enumerate(variants.labels)}
        self._codes = variants.codes
        self._variants = len(variants)
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
