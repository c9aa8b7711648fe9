"""What tables of two are of: attributes, and what the activities and times of a case say of it; in raw and in released
cases."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import numpy.typing as npt

from veilog._typing import FloatArray, IntArray
from veilog.logs.variants import Repeated
from veilog.methods._events.orders import CaseBlock
from veilog.privacy.cases import UNKNOWN_TIME, Cases

MOST_ENDS, MOST_ACTIVITIES, MOST_LENGTHS = 8, 8, 4
PARTS_OF_TIME = ((4, ""), (16, " in fine parts"))
VARYING = (0.1, 0.9)
_BLOCK = 65_536

_Rule = Callable[[IntArray, IntArray, IntArray], IntArray]
"""What sequences have, by their codes, their offsets and of each code whose it is."""
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
    in_events: InEvents | None = None
    """Of an attribute that changes within cases; ``values`` are then the first ones."""
    look: str = ""
    """Of which it is one of several looks, coarse or fine; one of them is enough."""
    called: str = ""
    """What remarks on the release call it where that is another name: by activities that it has."""
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


def of_the_flow(cases: Repeated) -> list[Variable]:
    """Return what the activities say of a case, by rules made of the release: the last one, whether it has each of
    those that tell cases apart, and how long it is."""
    size = len(cases.labels)
    last = _last(cases.distinct.codes.astype(np.int64), cases.distinct.offsets, size)
    often = np.bincount(last, weights=cases.counts, minlength=size + 1)[:size]
    place = np.full(size + 1, min(MOST_ENDS, int((often > 0).sum())))
    ends = np.argsort(-often, kind="stable")[: place[0]]
    place[ends] = np.arange(len(ends))
    found = [_flow("last activity", int(place.max()) + 1, lambda codes, at, _: place[_last(codes, at, size)], cases)]
    shares = _occurring(cases) / len(cases)
    telling = np.flatnonzero((shares >= VARYING[0]) & (shares <= VARYING[1]))
    most = telling[np.argsort(np.abs(shares[telling] - 0.5), kind="stable")][:MOST_ACTIVITIES]
    # By their rank: what is asked for is written into ledgers, which no label of the log enters.
    found += [
        _flow(
            f"whether activity {rank} occurs", 2, partial(_has, code), cases, f"whether {cases.labels[code]!r} occurs"
        )
        for rank, code in enumerate(most.tolist(), start=1)
    ]
    edges = np.unique(np.quantile(cases.lengths, np.arange(1, MOST_LENGTHS) / MOST_LENGTHS))
    lengths = _flow("length", len(edges) + 1, lambda _, at, __: np.searchsorted(edges, np.diff(at)), cases)
    return [one for one in (*found, lengths) if np.count_nonzero(np.bincount(one.drawn)) > 1]


def of_the_times(cases: Repeated, times: IntArray, most: int, *, calendar: bool) -> list[Variable]:
    """Return how long a case lasts, and with a ``calendar`` when it starts, each in few parts and in many, though not
    in more than so many: which tells more beside its noise the choice of pairs finds out. Parts hold as many released
    cases, by rules made of the release; a case of which no time is known has a part of its own."""
    going = np.flatnonzero(cases.lengths)
    first, last = times[cases.offsets[going]], times[cases.offsets[going + 1] - 1]
    found = []
    rules: list[tuple[str, _OfEnds]] = [("duration", _duration), *([("start", _start)] if calendar else [])]
    for (name, of_ends), (parts, how) in itertools.product(rules, PARTS_OF_TIME):
        told = of_ends(last, first)
        if how and parts > most:
            continue
        edges = np.unique(np.quantile(told, np.arange(1, parts) / parts, method="higher")).astype(np.int64)
        values = np.full(len(cases), len(edges) + 1, dtype=np.int64)
        values[going] = np.searchsorted(edges, told, side="right")
        of_block = partial(_part_of_time, of_ends, edges)
        found.append(Variable(name + how, len(edges) + 2, of_block, np.zeros(0), values, look=name))
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


def _flow(name: str, size: int, rule: _Rule, cases: Repeated, called: str = "") -> Variable:
    one = cases.distinct
    told = rule(one.codes.astype(np.int64), one.offsets, np.repeat(np.arange(len(one)), one.lengths))

    def of_block(block: Cases) -> IntArray:
        return rule(block.codes, block.offsets, block.owners)

    values = np.asarray(told, dtype=np.int64)
    return Variable(name, size, of_block, np.zeros(0), values, called=called, owner=cases.owner)


def _last(codes: IntArray, offsets: IntArray, none: int) -> IntArray:
    found = np.full(len(offsets) - 1, none, dtype=np.int64)
    going = np.flatnonzero(np.diff(offsets))
    found[going] = codes[offsets[going + 1] - 1]
    return np.where(found < 0, none, found)


def _occurring(cases: Repeated) -> IntArray:
    """How many cases have each activity."""
    distinct, found = cases.distinct, np.zeros(len(cases.labels), dtype=np.int64)
    for first in range(0, len(distinct), _BLOCK):
        block = distinct.rows(first, min(first + _BLOCK, len(distinct)))
        has = np.zeros((len(block), len(found)), dtype=np.bool_)
        has[np.repeat(np.arange(len(block)), block.lengths), block.codes] = True
        found += cases.counts[first : first + len(block)] @ has
    return found


def _has(code: int, codes: IntArray, offsets: IntArray, owners: IntArray) -> IntArray:
    found = np.zeros(len(offsets) - 1, dtype=np.int64)
    found[owners[np.flatnonzero(codes == code)]] = 1
    return found
