"""Exact sums over every candidate of background knowledge, with projected logs.

A pattern's projected log is the list of states of the variants that match it. States and items are defined in
:mod:`veilog.measures.disclosure.spaces`. The search is depth first; a pattern grows by one item. The patterns of the
last level are never built: their numbers of cases come from one sparse product per batch,

    n(x + item) = sum over the states s of x: cases(s) * present(s, item).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from veilog._typing import BoolArray, FloatArray, IntArray
from veilog.logs.variants import Variants
from veilog.measures.disclosure.spaces import Space, States, occurrences

_BATCH = 1 << 16
"""Number of states to work on at once, unless one pattern alone has more."""
_CELLS = 1 << 22
"""Number of pairs of state and item to work on at once, unless a pattern has more."""
_KEPT_STATES = 1 << 23
"""Largest number of states of a level to keep for the next; larger levels are reached depth first."""


@dataclass(frozen=True, eq=False)
class CandidateSums:
    """Sums over all candidates of one size.

    A candidate weighs the mean of its activities' weights, times the number of its arrangements where these count.
    """

    size: int
    candidates: int
    weight: float
    """Sum of the candidates' weights: their number where all weights are 1."""
    case_sum: float
    """Sum of weight / n over the candidates, n being the cases that match."""
    trace_sum: float
    """Sum of weight * (1 - entropy / maximal entropy)."""
    fewest: int
    """Fewest cases that match a candidate of positive weight."""
    worst_trace: float
    alone: IntArray
    """Variants of the cases that some candidate of positive weight matches alone."""
    work: int
    """Number of pairs of state and item visited so far."""

    @property
    def unique(self) -> int:
        """Return the number of cases that some candidate matches alone."""
        return len(self.alone)


@dataclass(frozen=True, eq=False)
class _Batch:
    """Patterns of one size; pattern i has ``states[starts[i]:starts[i + 1]]``."""

    states: States
    starts: IntArray
    last: IntArray
    weight: FloatArray
    """Sum of the activities' weights of each pattern."""
    ways: FloatArray
    """Number of arrangements of each pattern where these count; else 1."""
    size: int

    def __len__(self) -> int:
        return len(self.last)


def levels(
    space: Space,
    largest: int,
    *,
    weights: FloatArray,
    work_limit: float,
    report: Callable[[int, float], None] | None = None,
) -> Iterator[CandidateSums]:
    """Yield the levels of size 1, 2, ... up to ``largest``, within ``work_limit``.

    The levels end before one that would exceed the limit. ``weights`` has one weight per activity. ``report`` gets the
    size and the share of it that is done.
    """
    items = len(space.activity)
    nothing = np.zeros(1)
    frontier = _Batch(space.first, np.array([0, len(space.first)]), np.array([items]), nothing, nothing + 1.0, 0)
    found = np.zeros(len(space.capacity), dtype=np.bool_)
    below = 0  # the frontier has patterns of size - 1 - below
    ahead = len(frontier.states)
    work = 0
    for size in range(1, largest + 1):
        if work + ahead * items > work_limit:
            return
        # A case that is unique stays so when the adversary learns one more of its events.
        found &= space.capacity >= size
        sums = _Sums(space, weights, found)
        keep: list[_Batch] | None = [] if size < largest and below == 0 else None
        following = done = 0
        for batch in _descend(space, weights, frontier, below):
            work += len(batch.states) * items
            done += len(batch.states)
            following += sums.add(batch)
            if keep is not None:
                if following <= _KEPT_STATES and work + following * items <= work_limit:
                    keep.append(_grow(space, weights, batch))
                else:
                    keep = None
            if work > work_limit:
                return
            if report is not None:
                report(size, done / max(1, ahead))
        yield sums.level(size, work)
        ahead = following
        if keep is not None:
            frontier = _concatenate(keep)
        else:
            below += 1
        if following == 0 and sums.candidates == 0:
            return


def single_activities(variants: Variants, weights: FloatArray, surprises: FloatArray) -> CandidateSums:
    """Return the level of size 1, whatever the background, without any table."""
    owner, activity, _ = occurrences(variants)
    kinds = len(variants.labels)
    n = np.bincount(activity, weights=variants.counts[owner], minlength=kinds)
    trace = np.ones(kinds)
    surprise = np.bincount(activity, weights=surprises[owner], minlength=kinds)
    np.divide(surprise, n * np.log(np.maximum(n, 1.0)), out=trace, where=n > 1.0)
    trace = np.minimum(trace, 1.0)
    counted = weights > 0.0
    alone = (n == 1.0) & counted
    return CandidateSums(
        size=1,
        candidates=kinds,
        weight=float(weights.sum()),
        case_sum=float((weights / n).sum()),
        trace_sum=float((weights * trace).sum()),
        fewest=int(n[counted].min()),
        worst_trace=float(trace[counted].max()),
        alone=np.unique(owner[alone[activity]]),
        work=len(owner),
    )


class _Sums:
    """Running sums over the candidates one item larger than the batches' patterns."""

    def __init__(self, space: Space, weights: FloatArray, found: BoolArray) -> None:
        self._space = space
        self._item_weight = weights[space.activity]
        self._found = found
        # The owner's number plus one for each state of a single case not yet found unique; else 0.
        self._names = np.where((space.cases == 1.0) & ~found[space.owner], space.owner + 1.0, 0.0)
        self._options = space.present.sum(axis=1)
        self._repeated = space.values is not None or bool((space.surprise > 0.0).any())
        self.candidates = 0
        self._weight = self._case = self._trace = self._worst_trace = 0.0
        self._fewest = np.inf

    def add(self, batch: _Batch) -> int:
        """Add the candidates, and return the number of their states."""
        space = self._space
        rows = space.row[batch.states]
        number = self._product(batch, rows, space.cases[batch.states])
        if space.following is not None:
            number *= space.following[batch.last]
        node, item = np.nonzero(number)
        n = number[node, item]
        self.candidates += len(n)
        if not len(n):
            return 0
        trace = (n == 1.0).astype(np.float64)
        if self._repeated:
            surprise = self._surprise(batch, rows)[node, item]
            np.divide(surprise, n * np.log(n), out=trace, where=n > 1.0)
            np.minimum(trace, 1.0, out=trace)
        size = batch.size + 1
        weight = batch.ways[node] * ((batch.weight[node] + self._item_weight[item]) / size)
        if space.copy is not None:
            weight *= size / space.copy[item]
        self._weight += float(weight.sum())
        self._case += float((weight / n).sum())
        self._trace += float((weight * trace).sum())
        counted = weight > 0.0
        if counted.any():
            self._fewest = min(self._fewest, float(n[counted].min()))
            self._worst_trace = max(self._worst_trace, float(trace[counted].max()))
            self._mark_unique(batch, rows, node, item, (n == 1.0) & counted)
        return self._states_ahead(batch, rows)

    def _surprise(self, batch: _Batch, rows: States) -> FloatArray:
        """Return c ln c summed per pattern and item, over variants' or values' cases c."""
        from scipy.sparse import csr_matrix

        space = self._space
        if space.values is None:
            return self._product(batch, rows, space.surprise[batch.states], sparse=True)
        own = space.values[batch.states]
        many, most = np.diff(own.indptr), own.shape[1]
        node = np.repeat(np.repeat(np.arange(len(batch)), np.diff(batch.starts)), many)
        # A row for each pattern and value that its states have; every state has one.
        pairs, which = np.unique(node * most + own.indices, return_inverse=True)
        matrix = csr_matrix((own.data, (which, np.repeat(rows, many))), shape=(len(pairs), len(space.present)))
        number = matrix @ space.present
        number *= np.log(np.maximum(number, 1.0))
        out: FloatArray = np.add.reduceat(number, np.searchsorted(pairs, np.arange(len(batch)) * most), axis=0)
        return out

    def _product(self, batch: _Batch, rows: States, data: FloatArray, *, sparse: bool = False) -> FloatArray:
        """Return the sum of ``data`` over each pattern's states that an item can follow."""
        from scipy.sparse import csr_matrix

        starts = batch.starts
        if sparse:
            chosen = data != 0.0
            kept = np.zeros(len(data) + 1, dtype=np.int64)
            np.cumsum(chosen, out=kept[1:])
            starts, rows, data = kept[starts], rows[chosen], data[chosen]
        present = self._space.present
        matrix = csr_matrix((data, rows, starts), shape=(len(batch), len(present)))
        out: FloatArray = matrix @ present
        return out

    def _mark_unique(self, batch: _Batch, rows: States, node: IntArray, item: IntArray, alone: BoolArray) -> None:
        """Mark the cases that a candidate matches alone.

        Such a candidate matches one state of one case, so the sum of names over its states is that name.
        """
        if not alone.any():
            return
        names = self._names[batch.states]
        if not names.any():
            return
        seen = self._product(batch, rows, names, sparse=True)[node[alone], item[alone]]
        new = seen[seen > 0.0].astype(np.int64) - 1
        if len(new):
            self._found[new] = True
            self._names[self._found[self._space.owner]] = 0.0

    def _states_ahead(self, batch: _Batch, rows: States) -> int:
        from scipy.sparse import csr_matrix

        space = self._space
        if space.following is None:
            return (
                int(space.present.sum(axis=1)[rows].sum())
                if len(space.present) < len(rows)
                else int(space.present[rows].sum())
            )
        histogram = csr_matrix((np.ones(len(rows)), rows, batch.starts), shape=(len(batch), len(space.present)))
        return int(((histogram @ space.present) * space.following[batch.last]).sum())

    def level(self, size: int, work: int) -> CandidateSums:
        return CandidateSums(
            size=size,
            candidates=self.candidates,
            weight=self._weight,
            case_sum=self._case,
            trace_sum=self._trace,
            fewest=int(self._fewest) if np.isfinite(self._fewest) else 0,
            worst_trace=self._worst_trace,
            alone=self._space.variant[self._found],
            work=work,
        )


def _descend(space: Space, weights: FloatArray, batch: _Batch, depth: int) -> Iterator[_Batch]:
    """Yield all patterns ``depth`` items larger, depth first, in batches."""
    for part in _split(batch, len(space.activity)):
        if depth == 0:
            yield part
        else:
            yield from _descend(space, weights, _grow(space, weights, part), depth - 1)


def _split(batch: _Batch, items: int) -> Iterator[_Batch]:
    """Yield parts of bounded size (or one pattern) that 16-bit sorting keys number."""
    most = max(1, 65535 // max(1, items))
    states = min(_BATCH, _CELLS // max(1, items))
    start = 0
    while start < len(batch):
        stop = int(np.searchsorted(batch.starts, batch.starts[start] + states, side="right")) - 1
        stop = max(start + 1, min(stop, start + most, len(batch)))
        low, high = batch.starts[start], batch.starts[stop]
        yield _Batch(
            batch.states[low:high],
            batch.starts[start : stop + 1] - low,
            batch.last[start:stop],
            batch.weight[start:stop],
            batch.ways[start:stop],
            batch.size,
        )
        start = stop


def _grow(space: Space, weights: FloatArray, batch: _Batch) -> _Batch:
    """Return the patterns one item larger, with their states."""
    items = len(space.activity)
    # numpy sorts 16-bit keys by counting.
    kind = np.uint16 if len(batch) * items <= 65536 else np.int64
    node = np.repeat(np.arange(len(batch)), np.diff(batch.starts))
    can = space.can[space.row[batch.states]]
    if space.following is not None:
        can &= space.following[batch.last][node]
    which, item = np.nonzero(can)
    key = (node * items).astype(kind)[which] + item.astype(kind)
    states = batch.states[which]
    if space.successor is not None:
        states = space.successor[states, item]
    order = np.argsort(key, kind="stable")
    states, key = states[order], key[order]
    first = np.flatnonzero(np.concatenate(([True], key[1:] != key[:-1]))) if len(key) else np.zeros(0, dtype=np.int64)
    parent, last = np.divmod(key[first].astype(np.int64), items)
    ways = batch.ways[parent]
    if space.copy is not None:
        ways = ways * ((batch.size + 1) / space.copy[last])
    weight = batch.weight[parent] + weights[space.activity[last]]
    return _Batch(states, np.append(first, len(key)), last, weight, ways, batch.size + 1)


def _concatenate(batches: list[_Batch]) -> _Batch:
    sizes = np.concatenate([np.diff(b.starts) for b in batches])
    starts = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=starts[1:])
    return _Batch(
        np.concatenate([b.states for b in batches]),
        starts,
        np.concatenate([b.last for b in batches]),
        np.concatenate([b.weight for b in batches]),
        np.concatenate([b.ways for b in batches]),
        batches[0].size,
    )
