"""Which patterns of background knowledge too few cases share, and which are frequent: level by level, with projected
traces.

Traces are sequences of elements (activities, occurrences of activities, activities with relative times). A pattern is a
subsequence of elements (``ordered``), or a set of them. A pattern's states are where the leftmost matches in the traces
end; the numbers of cases of all patterns one element longer are one sparse product,

    n(x + e) = sum over the states s of x: cases(s) * follows(s, e).

Each level knows, of every pattern, the patterns of the level before that lack one of its elements: a pattern is looked
at only where all of these are there, which is what makes a violating pattern minimal (Rafiei, Wagner, van der Aalst,
"TLKC-Privacy Model for Process Mining", 2020).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_matrix

from veilog._typing import BoolArray, FloatArray, Int32Array, IntArray
from veilog.errors import ParameterError

_BATCH = 1 << 16
"""States worked on at once, unless one pattern alone has more."""
_CELLS = 1 << 22
"""Patterns times elements, or states times elements, worked on at once, likewise."""
_STATES = 8_000_000
"""States of one level; a level that would have more is not built."""
_TABLE = 1 << 28
"""Cells of the table of what follows where."""
_FREQUENT_STATES = 2_000_000
_FREQUENT = 200_000
"""States of one level, and patterns in all, of a search for frequent patterns: they only steer what is suppressed."""


@dataclass(frozen=True)
class Elements:
    """What patterns are made of."""

    size: int
    ordered: bool
    """Whether patterns are subsequences, or sets."""
    before: tuple[int, ...] = ()
    """For sets: of each element the one without which it cannot be (the occurrence before this one), or -1."""


@dataclass(frozen=True, eq=False)
class ElementTraces:
    """Distinct traces of elements: those of trace ``i`` are ``codes[offsets[i]:offsets[i + 1]]``."""

    codes: IntArray
    offsets: IntArray
    cases: IntArray
    """Number of cases of each trace."""
    having: IntArray
    """Of each trace, and each value of a sensitive attribute, the number of its cases that have the value."""

    def __len__(self) -> int:
        return len(self.cases)

    @property
    def owners(self) -> IntArray:
        """The trace of each element."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))


@dataclass(frozen=True, eq=False)
class PatternLevel:
    """The patterns of one size, a row each: those that hold, and the minimal ones that violate."""

    size: int
    holding: IntArray
    violating: IntArray
    without: IntArray
    """Of each holding pattern and position, the row in the level before of the pattern without it, or -1."""
    cut: bool
    """Whether the next level would be too large, so that this is the last one though patterns go on."""


@dataclass(frozen=True, eq=False)
class _Space:
    """States of traces: where a match ends, and what can follow."""

    first: IntArray
    row: IntArray
    follows: BoolArray
    next_state: Int32Array | None
    weights: tuple[FloatArray, ...]
    """Of each state the cases of its trace, and those with each sensitive value."""
    may_follow: BoolArray | None
    """For sets: which element may come after which last one (the last row: after none)."""


def levels(
    elements: Elements,
    traces: ElementTraces,
    *,
    k: float,
    c: float = 1.0,
    largest: int | None = None,
    most_states: int = _STATES,
) -> Iterator[PatternLevel]:
    """Patterns of size 1, 2, ...: one holds where at least ``k`` cases match it and no value of a sensitive attribute
    is had by more than ``c`` of them; only patterns whose parts all hold are looked at."""
    # A value that no more than the share c of any k cases can have needs no counting.
    counted = traces.having[:, traces.having.sum(axis=0) > c * k] if c < 1 else traces.having[:, :0]
    space = _space(elements, traces, counted)
    patterns, states, starts = np.zeros((1, 0), dtype=np.int64), space.first, np.array([0, len(space.first)])
    without, keys = np.zeros((1, 0), dtype=np.int64), np.zeros(0, dtype=np.int64)
    size = 0
    while len(patterns) and (largest is None or size < largest):
        size += 1
        node, item, holds = _judged(elements, space, patterns, states, starts, k, c)
        parts, minimal = _parts(elements, patterns, without, keys, node, item)
        violating = minimal & ~holds
        kept = minimal & holds
        longer = np.column_stack([patterns[node], item])
        node, item = node[kept], item[kept]
        grown = None if size == largest else _grown(elements, space, states, starts, node, item, most_states)
        cut = grown is None and size != largest
        yield PatternLevel(size, longer[kept], longer[violating], parts[kept], cut)
        if grown is None:
            return
        states, starts = grown
        keys, without, patterns = node * elements.size + item, parts[kept], longer[kept]


def maximal_patterns(elements: Elements, traces: ElementTraces, at_least: float) -> tuple[list[IntArray], bool]:
    """The patterns that at least so many cases match and that are part of no longer such pattern, by size; and whether
    all were found (a level that is too large ends the search; its patterns then count as maximal)."""
    found: list[IntArray] = []
    for level in levels(elements, traces, k=at_least, most_states=_FREQUENT_STATES):
        if found and len(level.holding):
            longer = np.zeros(len(found[-1]), dtype=np.bool_)
            longer[level.without[level.without >= 0]] = True
            found[-1] = found[-1][~longer]
        found.append(level.holding)
        if level.cut or sum(map(len, found)) > _FREQUENT:
            return found, False
    return found, True


def _space(elements: Elements, traces: ElementTraces, having: IntArray) -> _Space:
    lengths, size = np.diff(traces.offsets), elements.size
    if (len(traces) + elements.ordered * len(traces.codes)) * size > _TABLE:
        raise ParameterError("tlkc-elements-too-many", parameter="k", size=size, number=len(traces))
    if not elements.ordered:
        table = np.zeros((len(traces), size), dtype=np.bool_)
        table[traces.owners, traces.codes] = True
        _, first, row = np.unique(np.packbits(table, axis=1), axis=0, return_index=True, return_inverse=True)
        may = np.zeros((size + 1, size), dtype=np.bool_)
        starting = np.array(elements.before) < 0
        may[:, starting] = True
        may[:size][np.tril_indices(size)] = False
        for item, before in enumerate(elements.before):
            if before >= 0:
                may[before, item] = True
        states = np.arange(len(traces))
        return _Space(states, row.ravel(), table[first], None, _weights(traces, having, states), may)
    owner = np.repeat(np.arange(len(traces)), lengths + 1)
    begin = traces.offsets[:-1] + np.arange(len(traces))
    following = np.full((len(owner), size), -1, dtype=np.int32)
    # Backwards through all traces at once, the longest first.
    order = np.argsort(-lengths, kind="stable")
    for after in range(1, int(lengths.max(initial=0)) + 1):
        members = order[: np.searchsorted(-lengths[order], -after, side="right")]
        state = begin[members] + lengths[members] - after
        following[state] = following[state + 1]
        following[state, traces.codes[traces.offsets[members + 1] - after]] = state + 1
    packed = np.packbits(following >= 0, axis=1)
    _, first, row = np.unique(packed, axis=0, return_index=True, return_inverse=True)
    return _Space(begin, row.ravel(), following[first] >= 0, following, _weights(traces, having, owner), None)


def _weights(traces: ElementTraces, having: IntArray, owner: IntArray) -> tuple[FloatArray, ...]:
    return tuple(column[owner].astype(np.float64) for column in (traces.cases, *having.T))


def _judged(
    elements: Elements, space: _Space, patterns: IntArray, states: IntArray, starts: IntArray, k: float, c: float
) -> tuple[IntArray, IntArray, BoolArray]:
    """Every pattern one element longer that some case matches, as (pattern, element), and whether it holds."""
    found: list[tuple[IntArray, IntArray, BoolArray]] = []
    table = space.follows.astype(np.float64)
    for low, high in _batches(starts, elements.size):
        part, begin = states[starts[low] : starts[high]], starts[low : high + 1] - starts[low]

        def product(weight: FloatArray, part: IntArray = part, begin: IntArray = begin) -> FloatArray:
            matrix = csr_matrix((weight[part], space.row[part], begin), shape=(len(begin) - 1, len(table)))
            return np.asarray(matrix @ table)

        number = product(space.weights[0])
        if space.may_follow is not None:
            number *= space.may_follow[_last(patterns[low:high], elements.size)]
        node, item = np.nonzero(number)
        matched = number[node, item]
        holds = matched >= k
        for weight in space.weights[1:]:
            # Numbers of cases are whole; a share that is equal to c up to rounding is not above it.
            holds &= product(weight)[node, item] <= c * matched * (1 + 1e-12)
        found.append((node + low, item, holds))
    return (
        np.concatenate([f[0] for f in found]),
        np.concatenate([f[1] for f in found]),
        np.concatenate([f[2] for f in found]),
    )


def _parts(
    elements: Elements, patterns: IntArray, without: IntArray, keys: IntArray, node: IntArray, item: IntArray
) -> tuple[IntArray, BoolArray]:
    """Of each longer pattern the rows of its parts (the last one is what it grew from), and whether all hold."""
    size = patterns.shape[1]
    parts = np.full((len(node), size + 1), -1, dtype=np.int64)
    parts[:, size] = node
    whole = np.ones(len(node), dtype=np.bool_)
    before = np.array(elements.before, dtype=np.int64)
    for place in range(size):
        shorter = without[node, place]
        possible = shorter >= 0
        if len(before) and place == size - 1:
            possible &= before[item] != patterns[node, place]
        wanted = shorter * elements.size + item
        row = _rank(keys, wanted)
        whole &= ~possible | (row >= 0)
        parts[possible, place] = row[possible]
    return parts, whole


def _rank(sorted_keys: IntArray, wanted: IntArray) -> IntArray:
    """The place of each wanted key, or -1."""
    if not len(sorted_keys):
        return np.full(len(wanted), -1, dtype=np.int64)
    place = np.minimum(np.searchsorted(sorted_keys, wanted), len(sorted_keys) - 1)
    return np.where(sorted_keys[place] == wanted, place, -1)


def _grown(
    elements: Elements, space: _Space, states: IntArray, starts: IntArray, node: IntArray, item: IntArray, most: int
) -> tuple[IntArray, IntArray] | None:
    """The states of the longer patterns, in the order of the patterns; None where there are more than ``most``."""
    found, sizes = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    for low, high in _batches(starts, elements.size):
        part = states[starts[low] : starts[high]]
        owner = np.repeat(np.arange(high - low), np.diff(starts[low : high + 1]))
        chosen = (node >= low) & (node < high)
        number = np.full((high - low, elements.size), -1, dtype=np.int64)
        number[node[chosen] - low, item[chosen]] = np.arange(int(chosen.sum()))
        target = number[owner]
        target[~space.follows[space.row[part]]] = -1
        which, following = np.nonzero(target >= 0)
        goal = target[which, following]
        reached = part[which] if space.next_state is None else space.next_state[part[which], following].astype(np.int64)
        found.append(reached[np.argsort(goal, kind="stable")])
        sizes.append(np.bincount(goal, minlength=int(chosen.sum())))
        if sum(map(len, found)) > most:
            return None
    starts_after = np.zeros(len(node) + 1, dtype=np.int64)
    np.cumsum(np.concatenate(sizes), out=starts_after[1:])
    return np.concatenate(found), starts_after


def _batches(starts: IntArray, items: int) -> Iterator[tuple[int, int]]:
    """Ranges of patterns of bounded size, or of one pattern."""
    most, states, low = max(1, _CELLS // items), min(_BATCH, _CELLS // items), 0
    while low < len(starts) - 1:
        high = int(np.searchsorted(starts, starts[low] + states, side="right")) - 1
        high = max(low + 1, min(high, low + most, len(starts) - 1))
        yield low, high
        low = high


def _last(patterns: IntArray, none: int) -> IntArray:
    return patterns[:, -1] if patterns.shape[1] else np.full(len(patterns), none, dtype=np.int64)
