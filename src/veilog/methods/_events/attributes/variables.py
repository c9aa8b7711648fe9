"""What tables of two are of: attributes, and what the activities and times of a case say of it; in raw and in released
cases."""

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
"""What cases have, by their last and first times."""


@dataclass(eq=False)
class InEvents:
    """An attribute that changes within cases, event by event."""

    of_block: Callable[[Cases], IntArray]
    """Its value in each event of raw cases, of its case alone; the last one for none."""
    shares: FloatArray
    """How often released events have each value, of those that have one."""
    bound: int
    """So many events of a case count at most."""
    mass: float
    """What a released case adds to a count of its events within this bound, on average."""
    parents: list[tuple[Variable, FloatArray]] = field(default_factory=list)
    """Attributes that it goes with, event by event, and its shares given each value of these."""
    course: npt.NDArray[np.int32] | None = None
    """Its value in each released event."""


@dataclass(eq=False)
class Variable:
    """What every case has one of few values of: an attribute, or something that its activities say."""

    name: str
    size: int
    of_block: Callable[[Cases], IntArray]
    """Its value in each raw case, of that case alone."""
    shares: FloatArray
    """Of an attribute, how often it has each value; of the control flow not looked at."""
    values: IntArray
    """Its value in each released case; of an attribute as of now."""
    parents: list[tuple[Variable, FloatArray]] = field(default_factory=list)
    """What it is drawn given, and its shares given each value of these."""
    kind: tuple[Variable, FloatArray] | None = None
    """The kind of case, and the shares given each kind, where that was asked."""
    in_events: InEvents | None = None
    """Of an attribute that changes within cases; ``values`` are then the first ones."""
    owner: npt.NDArray[np.integer] | None = None
    """Where ``values`` are those of sequences, of which there are few: the sequence of each released case."""

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
        return partial(_in_each, self.of_block) if self.in_events is None else self.in_events.of_block


def _in_each(of_block: Callable[[Cases], IntArray], block: Cases) -> IntArray:
    return np.repeat(of_block(block), block.lengths)


def released_only(name: str, values: IntArray, size: int, owner: npt.NDArray[np.integer] | None = None) -> Variable:
    """Return what is known of released cases only, and never asked."""
    return Variable(name, size, lambda block: np.zeros(len(block), dtype=np.int64), np.zeros(0), values, owner=owner)


def of_the_times(cases: Repeated, times: IntArray, *, calendar: bool) -> list[Variable]:
    """Return how long a case lasts, and with a ``calendar`` when it starts. Parts hold as many released cases, by rules
    made of the release; a case of which no time is known has a part of its own."""
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
    """The part of each raw case, by its earliest and latest known time."""
    found = np.full(len(block), len(edges) + 1, dtype=np.int64)
    known = np.flatnonzero(block.times != UNKNOWN_TIME)
    owners = block.owners[known]
    starts = np.flatnonzero(np.diff(owners, prepend=-1))
    if len(starts):
        times = block.times[known]
        first, last = np.minimum.reduceat(times, starts), np.maximum.reduceat(times, starts)
        found[owners[starts]] = np.searchsorted(edges, of_ends(last, first), side="right")
    return found
