"""Variables of tables of two, in raw and in released cases.

They are attributes, and values that the activities and times of a case give.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import numpy.typing as npt

from veilog._typing import FloatArray, IntArray
from veilog.logs.variants import Repeated
from veilog.methods._events.orders import CaseBlock
from veilog.privacy.cases import UNKNOWN_TIME, Cases

PARTS_OF_TIME = 8

_OfEnds = Callable[[IntArray, IntArray], IntArray]
"""Function of the last and first times of cases that gives a number for each."""


@dataclass(eq=False)
class InEvents:
    """Attribute that changes within cases, event by event."""

    of_block: Callable[[Cases], IntArray]
    """Its value in each event of raw cases, of its case alone; the last one for none."""
    shares: FloatArray
    """Share of each value among released events that have one."""
    bound: int
    """Most events of a case that count."""
    mass: float
    """Mean contribution of a released case to a count of its events within this bound."""
    parents: list[tuple[Variable, FloatArray]] = field(default_factory=list)
    """Attributes that it goes with, event by event, and its shares given each value of these."""
    course: npt.NDArray[np.int32] | None = None
    """Its value in each released event."""


@dataclass(eq=False)
class Variable:
    """Variable of which every case has one of few values.

    It is an attribute, or something that the activities or times of a case give.
    """

    name: str
    size: int
    of_block: Callable[[Cases], IntArray]
    """Its value in each raw case, of that case alone."""
    shares: FloatArray
    """Share of each value of an attribute; not used for the control flow."""
    values: IntArray
    """Its value in each released case; of an attribute as of now."""
    parents: list[tuple[Variable, FloatArray]] = field(default_factory=list)
    """Variables that it is drawn given, and its shares given each value of these."""
    kind: tuple[Variable, FloatArray] | None = None
    """Kind of case, and the shares given each kind, where that was queried."""
    in_events: InEvents | None = None
    """The attribute event by event, if it changes within cases; ``values`` are then the first ones."""
    owner: npt.NDArray[np.integer] | None = None
    """Sequence of each released case, where ``values`` are those of the few sequences."""

    @property
    def drawn(self) -> IntArray:
        """Its value in each released case."""
        return self.values if self.owner is None else np.asarray(self.values[self.owner])

    def in_block(self, block: CaseBlock) -> IntArray:
        """Return its value in each released event of a block."""
        if self.in_events is None:
            return np.asarray(self.drawn[block.cases][block.owners])
        assert self.in_events.course is not None
        return self.in_events.course[block.events].astype(np.int64)

    @property
    def of_events(self) -> Callable[[Cases], IntArray]:
        """Its value in each event of raw cases."""
        return partial(_values_in_each, self.of_block) if self.in_events is None else self.in_events.of_block


def _values_in_each(of_block: Callable[[Cases], IntArray], block: Cases) -> IntArray:
    return np.repeat(of_block(block), block.lengths)


def released_only(name: str, values: IntArray, size: int, owner: npt.NDArray[np.integer] | None = None) -> Variable:
    """Return a variable that is known of released cases only, and never queried."""
    return Variable(name, size, lambda block: np.zeros(len(block), dtype=np.int64), np.zeros(0), values, owner=owner)


def time_variables(cases: Repeated, times: IntArray, *, calendar: bool) -> list[Variable]:
    """Return variables of how long a case lasts, and with a ``calendar`` of its start.

    Parts hold as many released cases each, by rules made of the release. A case without a known time has a part of its
    own.
    """
    going = np.flatnonzero(cases.lengths)
    first, last = times[cases.offsets[going]], times[cases.offsets[going + 1] - 1]
    found = []
    rules: list[tuple[str, _OfEnds]] = [("duration", _duration), *([("start", _start)] if calendar else [])]
    for name, of_ends in rules:
        told = of_ends(last, first)
        quantiles = np.quantile(told, np.arange(1, PARTS_OF_TIME) / PARTS_OF_TIME, method="higher")
        edges = np.unique(quantiles).astype(np.int64)
        values = np.full(len(cases), len(edges) + 1, dtype=np.int64)
        values[going] = np.searchsorted(edges, told, side="right")
        of_block = partial(_part_of_time, of_ends, edges)
        found.append(Variable(name, len(edges) + 2, of_block, np.zeros(0), values))
    return [one for one in found if np.count_nonzero(np.bincount(one.drawn)) > 1]


def _duration(last: IntArray, first: IntArray) -> IntArray:
    return last - first


def _start(last: IntArray, first: IntArray) -> IntArray:
    return first


def _part_of_time(of_ends: _OfEnds, edges: IntArray, block: Cases) -> IntArray:
    """Return the part of each raw case, by its earliest and latest known time."""
    found = np.full(len(block), len(edges) + 1, dtype=np.int64)
    known = np.flatnonzero(block.times != UNKNOWN_TIME)
    owners = block.owners[known]
    starts = np.flatnonzero(np.diff(owners, prepend=-1))
    if len(starts):
        times = block.times[known]
        first, last = np.minimum.reduceat(times, starts), np.maximum.reduceat(times, starts)
        found[owners[starts]] = np.searchsorted(edges, of_ends(last, first), side="right")
    return found
