"""Values of an attribute that changes within cases, event by event.

The values of an event follow from its context. That is the activity, and what the attribute was found to go with, of
the case or of other attributes in the same event (:mod:`pairs`). A table of all contexts is fitted to the answer by
activity and to every table of two.

Along a case there is a memory of one step. Let p be the shares of values in the context before, and q those in the one
after. A value v is kept with a chance of the same part of ``min(p_v, q_v) / p_v`` for all v. Else the next value is
drawn from what of q is left, which may be v again. So each context has its shares, and as many values stay as did, or
as can.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from veilog._counting import rank_numbers
from veilog._typing import BoolArray, FloatArray, IntArray
from veilog.methods._events.attributes.memory import Persisting
from veilog.methods._events.attributes.pairs import fit_table, place_columns
from veilog.methods._events.orders import CaseBlock

_HALVINGS = 20
_CELLS = 1 << 22
"""Most numbers of tables of transitions in memory at once."""


@dataclass(frozen=True, eq=False)
class ValueContext:
    """Variable that values depend on in addition to the activity."""

    events: IntArray
    """Its value in each event."""
    shares: FloatArray
    """Shares of the groups of values, given each value of this variable."""


@dataclass(frozen=True, eq=False)
class _Contexts:
    """Contexts of events, and the shares of values in each."""

    of_event: IntArray
    groups: FloatArray
    """Shares of the groups of values in each context."""
    group: IntArray
    activity: IntArray
    within: FloatArray
    """Share of each value in its group, by activity."""

    @classmethod
    def of(cls, persisting: Persisting, group: IntArray, codes: IntArray, given: list[ValueContext]) -> _Contexts:
        shares, group = persisting.known, group[:-1]
        by_group = np.zeros((len(shares), int(group.max()) + 1))
        np.add.at(by_group.T, group, shares.T)
        within = shares / np.maximum(by_group, 1e-12)[:, group]
        key = codes
        for one in given:
            key = key * len(one.shares) + one.events
        _, of_event, counts = rank_numbers(key, len(shares) * int(np.prod([len(one.shares) for one in given])))
        example = np.empty(len(counts), dtype=np.int64)
        example[of_event] = np.arange(len(key))
        activity = codes[example]
        fits = [(one.events[example], one.shares[:, : by_group.shape[1]]) for one in given]
        table = fit_table(counts, [*fits, (activity, by_group)], yielding=len(fits))
        return cls(of_event, table / table.sum(axis=1, keepdims=True), group, activity, within)

    def rows(self, contexts: IntArray) -> FloatArray:
        """Return the shares of all values in some contexts."""
        return np.asarray(self.groups[contexts][:, self.group] * self.within[self.activity[contexts]])

    def at(self, contexts: IntArray, values: IntArray) -> FloatArray:
        """Return the share of one value in each of some contexts."""
        return np.asarray(self.groups[contexts, self.group[values]] * self.within[self.activity[contexts], values])


def _parts(before: FloatArray, after: FloatArray, both: FloatArray, staying: FloatArray) -> FloatArray:
    """Return the part of common values that stays without a draw, per transition.

    The values before and after a step have these in common. With the values that are drawn again by chance, as many
    values stay as ``staying`` has, or as near to that as can be.
    """
    low, high = np.zeros(len(both)), np.ones(len(both))
    common = both.sum(axis=1)
    for _ in range(_HALVINGS):
        part = (low + high) / 2
        kept = part[:, None] * both
        again = ((before - kept) * (after - kept)).sum(axis=1) / np.maximum(1 - part * common, 1e-12)
        enough = part * common + again >= staying
        low, high = np.where(enough, low, part), np.where(enough, part, high)
    return np.asarray((low + high) / 2)


def _transitions(
    contexts: _Contexts, staying: FloatArray, keys: IntArray, rng: np.random.Generator
) -> tuple[FloatArray, IntArray]:
    """Return the part of common values that stays at each step, and the values drawn.

    A value is drawn for each step, for where the one before does not stay. A key is the context before times the number
    of contexts, plus the context after.
    """
    number = len(contexts.groups)
    pairs, of_step, _ = rank_numbers(keys, number**2)
    order = np.argsort(of_step, kind="stable")
    sorted_ = of_step[order]
    parts, fresh = np.empty(len(keys)), np.empty(len(keys), dtype=np.int64)
    at_once = max(1, _CELLS // len(contexts.group))
    for first in range(0, len(pairs), at_once):
        some = pairs[first : first + at_once]
        before, after = contexts.rows(some // number), contexts.rows(some % number)
        both = np.minimum(before, after)
        part = _parts(before, after, both, staying[contexts.activity[some % number]])
        left = np.maximum(after - part[:, None] * both, 0.0) + 1e-12 * after + 1e-15
        begin, end = np.searchsorted(sorted_, [first, first + len(some)])
        steps = order[begin:end]
        rows = of_step[steps] - first
        parts[steps], fresh[steps] = part[rows], place_columns(left, rows, rng)
    return parts, fresh


def courses(
    persisting: Persisting,
    group: IntArray,
    block: CaseBlock,
    known: BoolArray,
    first: IntArray,
    given: list[ValueContext],
) -> tuple[IntArray, IntArray]:
    """Return the value of each event, -1 for none, and the event in which it was new.

    ``first`` has the first value of each case, and ``group`` the number of each value in the tables of two.
    """
    owners, rng = block.owners, block.rng
    at = np.flatnonzero(known & (first[owners] >= 0))
    values, origin = np.full(len(known), -1, dtype=np.int64), np.arange(len(known))
    if not len(at):
        return values, origin
    starts = np.flatnonzero(np.diff(owners[at], prepend=-1))
    values[at[starts]] = first[owners[at[starts]]]
    rank = np.arange(len(at)) - np.repeat(starts, np.diff(starts, append=len(at)))
    codes = block.sequences.codes.astype(np.int64)[at]
    contexts = _Contexts.of(persisting, group, codes, [ValueContext(one.events[at], one.shares) for one in given])
    steps = np.flatnonzero(rank > 0)
    context = contexts.of_event
    parts, fresh = np.zeros(len(at)), np.zeros(len(at), dtype=np.int64)
    keys = context[steps - 1] * len(contexts.groups) + context[steps]
    parts[steps], fresh[steps] = _transitions(contexts, persisting.staying, keys, rng)
    order = np.argsort(rank, kind="stable")
    ends = np.cumsum(np.bincount(rank))
    for begin, end in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        now = order[begin:end]
        events, earlier = at[now], at[now - 1]
        value = values[earlier]
        before, after = contexts.at(context[now - 1], value), contexts.at(context[now], value)
        same = rng.random(len(now)) * before < parts[now] * np.minimum(before, after)
        values[events] = np.where(same, value, fresh[now])
        origin[events] = np.where(same, origin[earlier], events)
    return values, origin
