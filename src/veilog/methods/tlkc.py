"""TLKC-privacy: suppress events that single out a person or a sensitive value.

M. Rafiei, M. Wagner, W. van der Aalst, "TLKC-Privacy Model for Process Mining" (RCIS 2020); M. Rafiei, W. van der
Aalst, "Group-Based Privacy Preservation Techniques for Process Mining" (2021).

The attacker knows at most ``l`` events of a case: as a set or multiset of activities, as a sequence, or as one with the
times since the start of the case (``relative``). Either at least ``k`` cases of the release match that knowledge or
none does. No more than the share ``c`` of them has one sensitive value.

Elements are activities (sets), or the occurrences of activities: the first, second, ... of a case. A pattern of at most
``l`` elements violates where more than 0 and fewer than k cases match it. It also violates where a sensitive value is
too frequent among them. It is minimal where no part of it violates. While violating patterns remain, the element with
the largest

    (minimal violating patterns with it) / (maximal frequent patterns with it + 1)

is suppressed: its events leave the log, and so do all patterns with it. Suppressing an element does not change what
other patterns match, so nothing violates in the end:

- set, multiset: a pattern of the release matches the same cases as in the log; of a multiset, an occurrence leaves with
  all later ones, so that the numbers of occurrences that are left are those that were counted.
- sequence, relative: a sequence of activities in the release is a sequence of occurrences that are left, which at least
  k cases have; with ``c`` below 1 the sequences of activities are looked at as such afterwards, because a value can be
  more frequent among the cases of several sequences of occurrences together.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
import pyarrow as pa

from veilog._typing import BoolArray, FloatArray, Int32Array, IntArray
from veilog.errors import ParameterError
from veilog.logs.eventlog import ACTIVITY, CASE_INDEX, EVENT_INDEX, LIFECYCLE, TIMESTAMP, TIMESTAMP_TYPE, EventLog
from veilog.messages import Message
from veilog.methods._groups import (
    DeclaredEvents,
    Sensitive,
    attribute_names,
    case_labels,
    check_tlkc,
    dropped_attributes,
    events_of,
    fresh_dictionary,
    microseconds,
    text_column,
)
from veilog.methods._groups import (
    sensitive as sensitive_attribute,
)
from veilog.methods._relations import equal_before, rows_of
from veilog.methods.method import Groups, NoEpsilon, Request, our_method
from veilog.methods.settings import Choices, Range, Settings
from veilog.privacy.account.guarantee import Statement
from veilog.privacy.curator import Curator

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

# Which patterns of background knowledge too few cases share, and which are frequent: level by level, with projected
# traces.
#
# Traces are sequences of elements (activities, occurrences of activities, activities with relative times). A pattern
# is a subsequence of elements (``ordered``), or a set of them. A pattern's states are where the leftmost matches in
# the traces end; the numbers of cases of all patterns one element longer are one sparse product,
#
#     n(x + e) = sum over the states s of x: cases(s) * follows(s, e).
#
# Each level knows, of every pattern, the patterns of the level before that lack one of its elements: a pattern is
# looked at only where all of these are there, which is what makes a violating pattern minimal (Rafiei, Wagner, van
# der Aalst, "TLKC-Privacy Model for Process Mining", 2020).

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
"""Most states of one level, and most frequent patterns; they only steer the suppression."""


@dataclass(frozen=True)
class Elements:
    """Elements of patterns."""

    size: int
    ordered: bool
    """True if patterns are subsequences, False if they are sets."""
    before: tuple[int, ...] = ()
    """For sets, the element that each needs (the occurrence before it), or -1."""


@dataclass(frozen=True, eq=False)
class ElementTraces:
    """Distinct traces of elements: trace ``i`` is ``codes[offsets[i]:offsets[i+1]]``."""

    codes: IntArray
    offsets: IntArray
    cases: IntArray
    """Number of cases of each trace."""
    having: IntArray
    """Number of cases of each trace with each value of a sensitive attribute."""

    def __len__(self) -> int:
        return len(self.cases)

    @property
    def owners(self) -> IntArray:
        """The trace of each element."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))


@dataclass(frozen=True, eq=False)
class PatternLevel:
    """Patterns of one size, a row each: holding ones, and minimal violating ones."""

    size: int
    holding: IntArray
    violating: IntArray
    without: IntArray
    """Row in the level before of each holding pattern without the element at each position, or -1."""
    cut: bool
    """True if the next level would be too large, so that this is the last one though patterns go on."""


@dataclass(frozen=True, eq=False)
class _Space:
    """States of traces: where a match ends, and what can follow."""

    first: IntArray
    row: IntArray
    follows: BoolArray
    next_state: Int32Array | None
    weights: tuple[FloatArray, ...]
    """Cases of the trace of each state, and those with each sensitive value."""
    may_follow: BoolArray | None
    """For sets, elements that may come after each last one (the last row: after none)."""


def levels(
    elements: Elements,
    traces: ElementTraces,
    *,
    k: float,
    c: float = 1.0,
    largest: int | None = None,
    most_states: int = _STATES,
) -> Iterator[PatternLevel]:
    """Yield the patterns of size 1, 2, ... whose parts all hold.

    A pattern holds if at least ``k`` cases match it and no more than ``c`` of them have one value of a sensitive
    attribute.
    """
    # A value that no more than the share c of any k cases can have needs no counting.
    counted = traces.having[:, traces.having.sum(axis=0) > c * k] if c < 1 else traces.having[:, :0]
    space = _space(elements, traces, counted)
    patterns, states, starts = np.zeros((1, 0), dtype=np.int64), space.first, np.array([0, len(space.first)])
    without, keys = np.zeros((1, 0), dtype=np.int64), np.zeros(0, dtype=np.int64)
    size = 0
    while len(patterns) and (largest is None or size < largest):
        size += 1
        node, item, holds = _judge_patterns(elements, space, patterns, states, starts, k, c)
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
    """Return the maximal patterns of enough cases by size, and True if complete.

    At least so many cases match them, and they are part of no longer such pattern. A level that is too large ends the
    search; its patterns then count as maximal.
    """
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


def _judge_patterns(
    elements: Elements, space: _Space, patterns: IntArray, states: IntArray, starts: IntArray, k: float, c: float
) -> tuple[IntArray, IntArray, BoolArray]:
    """Return the matched patterns one element longer, and which of them hold.
    They are given as (pattern, element)."""
    from scipy.sparse import csr_matrix  # here: it takes a while to import

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
    """Return the rows of the parts of each longer pattern, and True where all hold.
    The last part is the pattern that it grew from."""
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
    """Return the place of each wanted key, or -1."""
    if not len(sorted_keys):
        return np.full(len(wanted), -1, dtype=np.int64)
    place = np.minimum(np.searchsorted(sorted_keys, wanted), len(sorted_keys) - 1)
    return np.where(sorted_keys[place] == wanted, place, -1)


def _grown(
    elements: Elements, space: _Space, states: IntArray, starts: IntArray, node: IntArray, item: IntArray, most: int
) -> tuple[IntArray, IntArray] | None:
    """Return the states of the longer patterns in order; None for more than ``most``."""
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
    """Yield ranges of patterns of bounded size, or of one pattern."""
    most, states, low = max(1, _CELLS // items), min(_BATCH, _CELLS // items), 0
    while low < len(starts) - 1:
        high = int(np.searchsorted(starts, starts[low] + states, side="right")) - 1
        high = max(low + 1, min(high, low + most, len(starts) - 1))
        yield low, high
        low = high


def _last(patterns: IntArray, none: int) -> IntArray:
    return patterns[:, -1] if patterns.shape[1] else np.full(len(patterns), none, dtype=np.int64)


# Which events TLKC suppresses: the loop over minimal violating and maximal frequent patterns.

UNITS = {"seconds": 1_000_000, "minutes": 60_000_000, "hours": 3_600_000_000, "days": 86_400_000_000}
"""Microseconds of each granularity of time."""


@dataclass(frozen=True, kw_only=True)
class TlkcSettings(Settings):
    """Settings of TLKC, by the letters of its paper.

    Of equal scores the published ties take the element of more violating patterns to begin with, then the one that
    more cases have. With the score ``cost`` what turns out not to be needed in the end is not suppressed.
    """

    k: Annotated[int, "cases that match whatever is known, at least", Range(1)] = 20
    l: Annotated[int, "events of a case that an adversary knows, at most", Range(1, 1000)] = 3  # noqa: E741
    c: Annotated[
        float, "share of matching cases that have one value of a sensitive attribute, at most", Range(0, 1)
    ] = 1.0
    background: Annotated[Literal["set", "multiset", "sequence", "relative"], "what is known of events"] = "sequence"
    time: Annotated[str, "times as they are, or whole units since the case began", Choices(("original", *UNITS))] = (
        "hours"
    )
    frequency: Annotated[float, "share of cases from which on a pattern is worth keeping", Range(1e-9, 1)] = 0.5
    score: Annotated[
        Literal["published", "cost"],
        "what to suppress first: as published, or the element that loses the fewest cases per violation it repairs",
    ] = "published"
    ties: Annotated[
        Literal["published", "rare"],
        "what is suppressed first of elements with equal scores: as in the published figures, or the rare one",
    ] = "published"
    sensitive: Annotated[str | None, "attributes to release and to bound by c: a,b"] = None


@dataclass(frozen=True, eq=False)
class BackgroundKnowledge:
    """Possible knowledge of an attacker: labels of events, sensitive values of cases."""

    label: IntArray
    case: IntArray
    cases: int
    value_case: IntArray
    value: IntArray
    values: int


def remaining_events(known: BackgroundKnowledge, bounds: TlkcSettings, remark: Callable[[Message], None]) -> BoolArray:
    """Return True for the events that are left when nothing violates any more."""
    ordered = bounds.background in ("sequence", "relative")
    place = equal_before(known.label * known.cases + known.case)
    place *= bounds.background != "set"
    _, first, element = np.unique(
        known.label * (place.max(initial=0) + 1) + place, return_index=True, return_inverse=True
    )
    before = np.full(len(first), -1, dtype=np.int64)
    if bounds.background == "multiset":  # elements ascend by label and occurrence
        before[1:] = np.where(place[first][1:] > 0, np.arange(len(first) - 1), -1)
    keep = _loop(replace(known, label=element.ravel()), place[first], before, ordered, bounds, remark)
    if bounds.c < 1 and ordered and keep.any():
        there = replace(known, label=known.label[keep], case=known.case[keep])
        labels = int(known.label.max()) + 1
        nowhere = np.zeros(labels, dtype=np.int64)
        keep[keep] = _loop(there, nowhere, nowhere - 1, True, bounds, remark)
    return keep


def largest_k(known: BackgroundKnowledge, c: float) -> int:
    """Return the largest k at which an element is left.

    It is left alone: one that keeps to ``c`` and that most cases have.
    """
    _, label = np.unique(known.label, return_inverse=True)
    cases, having = _numbers(replace(known, label=label.ravel()), int(label.max(initial=-1)) + 1)
    fits = having.max(axis=1, initial=0) <= c * cases
    return int(cases[fits].max(initial=0))


def _loop(
    known: BackgroundKnowledge,
    place: IntArray,
    before: IntArray,
    ordered: bool,
    bounds: TlkcSettings,
    remark: Callable[[Message], None],
) -> BoolArray:
    """Suppress elements until a whole search finds no violation.
    An element that violates by itself leaves first, as it has to."""
    cases, having = _numbers(known, len(before))
    fits = (cases >= bounds.k) & (having.max(axis=1) <= bounds.c * cases * (1 + 1e-12))
    # A multiset with a later occurrence has the earlier ones: an attacker who knows only l events cannot know it.
    alive = _add_later(fits | (place >= bounds.l), before)
    while True:
        keep = alive[known.label]
        if not keep.any():
            return keep
        old = np.flatnonzero(alive)
        number = np.cumsum(alive) - 1
        earlier = np.where(before[old] < 0, -1, number[before[old]]).tolist()
        elements = Elements(len(old), ordered, () if ordered else tuple(earlier))
        traces = _traces(known, number[known.label], keep, ordered)
        violating, complete = _violating_patterns(elements, traces, bounds)
        if violating:
            alive[old[_choose_elements(elements, traces, violating, bounds, known.cases, remark)]] = False
            alive = _add_later(alive, before)
        if complete:
            return alive[known.label]
        if not violating:
            raise ParameterError("tlkc-patterns-too-many", parameter="l")


def _add_later(alive: BoolArray, before: IntArray) -> BoolArray:
    """Return the elements that are left when an occurrence takes all later ones along."""
    alive = alive.copy()
    while True:
        gone = alive & (before >= 0) & ~alive[before]
        if not gone.any():
            return alive
        alive[gone] = False


def _numbers(known: BackgroundKnowledge, size: int) -> tuple[IntArray, IntArray]:
    """Return the cases of each element, and those among them with each value."""
    from scipy.sparse import csr_matrix

    pairs = np.unique(known.label * known.cases + known.case)
    element, case = pairs // known.cases, pairs % known.cases
    cases = np.bincount(element, minlength=size)
    shape = (known.cases, max(1, known.values))
    has = csr_matrix((np.ones(len(known.value), dtype=np.int64), (known.value_case, known.value)), shape=shape)
    which = csr_matrix((np.ones(len(element), dtype=np.int64), (element, case)), shape=(size, known.cases))
    return cases, np.asarray((which @ has).todense())


def _traces(known: BackgroundKnowledge, element: IntArray, keep: BoolArray, ordered: bool) -> ElementTraces:
    """Return the distinct traces of the elements that are left, with their cases."""
    case, code = known.case[keep], element[keep]
    if not ordered:
        pairs = np.unique(case * (int(code.max(initial=0)) + 1) + code)
        case, code = np.divmod(pairs, int(code.max(initial=0)) + 1)
    bounds = np.searchsorted(case, np.arange(known.cases + 1))
    numbers: dict[bytes, int] = {}
    trace = np.empty(known.cases, dtype=np.int64)
    first: list[int] = []
    for i, (low, high) in enumerate(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)):
        trace[i] = numbers.setdefault(code[low:high].tobytes(), len(first))
        if trace[i] == len(first):
            first.append(i)
    chosen = np.array(first, dtype=np.int64)
    rows, offsets = rows_of(bounds, chosen)
    having = np.zeros((len(chosen), known.values), dtype=np.int64)
    np.add.at(having, (trace[known.value_case], known.value), 1)
    return ElementTraces(code[rows], offsets, np.bincount(trace, minlength=len(chosen)), having)


def _violating_patterns(elements: Elements, traces: ElementTraces, bounds: TlkcSettings) -> tuple[list[IntArray], bool]:
    """Return the minimal violating patterns by size, and True if all sizes were seen."""
    found = []
    for level in levels(elements, traces, k=bounds.k, c=bounds.c, largest=bounds.l):
        if len(level.violating):
            found.append(level.violating)
        if level.cut:
            return found, False
    return found, True


def _choose_elements(
    elements: Elements,
    traces: ElementTraces,
    violating: list[IntArray],
    bounds: TlkcSettings,
    cases: int,
    remark: Callable[[Message], None],
) -> list[int]:
    """Return the elements to suppress, by score, until no violating pattern is left."""
    having = np.bincount(traces.codes, weights=traces.cases[traces.owners], minlength=elements.size)
    if bounds.score == "cost":
        return _cheapest(_pattern_matrix(violating, elements.size), having)
    frequent, complete = maximal_patterns(elements, traces, bounds.frequency * cases)
    if not complete:
        remark(Message("tlkc-frequent-patterns-too-many"))
    private, useful = _pattern_matrix(violating, elements.size), _pattern_matrix(frequent, elements.size)
    violated = np.asarray(private.sum(axis=0), dtype=np.int64).ravel()
    used = np.asarray(useful.sum(axis=0), dtype=np.int64).ravel()
    sides = [
        (np.ones(matrix.shape[0], dtype=np.bool_), matrix.tocsc(), matrix, number)
        for matrix, number in ((private, violated), (useful, used))
    ]
    rank = np.lexsort((-having, -violated)) if bounds.ties == "published" else np.argsort(having, kind="stable")
    out: list[int] = []
    while violated.any():
        score = (violated / (used + 1))[rank]
        element = int(rank[np.argmax(score)])
        out.append(element)
        for rows, column, matrix, number in sides:
            gone = column.indices[column.indptr[element] : column.indptr[element + 1]]
            gone = gone[rows[gone]]
            rows[gone] = False
            number -= np.asarray(matrix[gone].sum(axis=0), dtype=np.int64).ravel()
    return out


def _cheapest(private: csr_matrix, having: IntArray) -> list[int]:
    """Return elements that hit all violating patterns, with few cases losing them.
    The element with the most patterns for each case comes first. Then those go free, the ones of most cases first,
    without which every pattern has another one."""
    columns = private.tocsc()
    of_element = [columns.indices[a:b] for a, b in itertools.pairwise(columns.indptr.tolist())]
    hits = np.zeros(private.shape[0], dtype=np.int64)
    violated = np.diff(columns.indptr).astype(np.int64)
    out: list[int] = []
    while violated.any():
        element = int(np.argmax(violated / np.maximum(having, 1)))
        out.append(element)
        new = of_element[element][hits[of_element[element]] == 0]
        hits[of_element[element]] += 1
        violated -= np.asarray(private[new].sum(axis=0), dtype=np.int64).ravel()
    for element in sorted(out, key=lambda e: (-having[e], e)):
        if (hits[of_element[element]] > 1).all():
            hits[of_element[element]] -= 1
            out.remove(element)
    return out


def _pattern_matrix(patterns: list[IntArray], size: int) -> csr_matrix:
    """Return a matrix of the elements (columns) in each pattern (row)."""
    from scipy.sparse import csr_matrix

    lengths = np.concatenate([np.zeros(0, dtype=np.int64), *(np.full(len(p), p.shape[1]) for p in patterns)])
    columns = np.concatenate([np.zeros(0, dtype=np.int64), *(p.ravel() for p in patterns)])
    pairs = np.unique(np.repeat(np.arange(len(lengths)), lengths) * size + columns)
    return csr_matrix((np.ones(len(pairs), dtype=np.int64), (pairs // size, pairs % size)), shape=(len(lengths), size))


def tlkc(curator: Curator, request: Request, settings: TlkcSettings) -> EventLog:
    """Return the log without suppressed elements and without cases left empty.

    See the module.
    """
    k, c, background, time = settings.k, settings.c, settings.background, settings.time
    names = attribute_names(settings.sensitive)
    if c < 1 and not names:
        raise ParameterError("tlkc-confidence-without-attribute", parameter="c", c=c)
    if background == "relative" and time == "original":
        raise ParameterError("tlkc-times-not-coarsened", parameter="time", names=", ".join(UNITS))
    log = curator.peek_log("tlkc-exact-counts")
    events = events_of(log, curator.domain)
    if k > events.cases:
        raise ParameterError("tlkc-k-above-log", parameter="k", k=k, cases=events.cases)
    chosen = [_sensitive(log, events, name, curator) for name in names]
    times, timed = _times(log, events, time)
    label = events.activity
    if background == "relative":
        if not timed.all():
            raise ParameterError("tlkc-times-missing", parameter="background")
        _, label = np.unique(np.column_stack([label, times]), axis=0, return_inverse=True)
    known = _background_knowledge(events, label, chosen)
    request.progress("looking for violating patterns", None)
    keep = remaining_events(known, settings, request.remark)
    if not keep.any():
        raise _all_suppressed(known, settings)
    released = _release_rest(log, events, keep, times, timed, chosen)
    _state(curator, settings, names)
    _remark(request, log, released, settings, names)
    return released


# Events and their values ----------------------------------------------------------------------------------------------


def _sensitive(log: EventLog, events: DeclaredEvents, name: str, curator: Curator) -> Sensitive:
    """Return the attribute, as one of cases if no case has two values.
    It stays one of events if the cases have an attribute of its name."""
    one = sensitive_attribute(log, events, name, curator.domain)
    if one.level == "case" or one.name in log.cases.column_names:
        return one
    owner, code = case_labels(events, one)
    if len(np.unique(owner)) < len(owner):
        return one
    codes = np.full(events.cases, -1, dtype=np.int64)
    codes[owner] = code
    return Sensitive(one.name, "case", one.labels, codes, one.numbers)


def _times(log: EventLog, events: DeclaredEvents, time: str) -> tuple[IntArray, BoolArray]:
    """Return the times of events to release, and a mask of known ones.
    They are as they were, or whole units since the case began."""
    times, known = microseconds(log, events.rows)
    if time == "original":
        return times, known
    unit = UNITS[time]
    start = np.full(events.cases, np.iinfo(np.int64).max)
    np.minimum.at(start, events.case[known], times[known])
    passed = np.where(known, times - np.where(known, start[events.case], 0), 0)
    return passed // unit * unit, known


def _background_knowledge(events: DeclaredEvents, label: IntArray, chosen: list[Sensitive]) -> BackgroundKnowledge:
    pairs = [case_labels(events, one) for one in chosen]
    first = np.cumsum([0, *(len(one.labels) for one in chosen)])
    nothing = [np.zeros(0, dtype=np.int64)]
    return BackgroundKnowledge(
        label=np.asarray(label, dtype=np.int64).ravel(),
        case=events.case,
        cases=events.cases,
        value_case=np.concatenate([owner for owner, _ in pairs] or nothing),
        value=np.concatenate([code + start for (_, code), start in zip(pairs, first, strict=False)] or nothing),
        values=int(first[-1]),
    )


def _all_suppressed(known: BackgroundKnowledge, bounds: TlkcSettings) -> ParameterError:
    """Return the error for a log with nothing left, with settings that would help."""
    largest = largest_k(known, bounds.c)
    if largest == 0:
        return ParameterError("tlkc-no-confidence-reached", parameter="k", c=bounds.c)
    if largest < bounds.k:
        return ParameterError("tlkc-k-above-largest", parameter="k", largest=largest)
    return ParameterError("tlkc-all-events-suppressed", parameter="k")


# The release ----------------------------------------------------------------------------------------------------------


def _release_rest(
    log: EventLog, events: DeclaredEvents, keep: BoolArray, times: IntArray, timed: BoolArray, chosen: list[Sensitive]
) -> EventLog:
    """Return the log that is left, with only the columns of the model."""
    cases, owner = np.unique(events.case[keep], return_inverse=True)
    rows = pa.array(events.rows[keep])
    columns = {
        CASE_INDEX: owner.ravel(),
        EVENT_INDEX: np.arange(len(rows)),
        ACTIVITY: text_column(events.labels, events.activity[keep]),
        TIMESTAMP: pa.array(times[keep], mask=~timed[keep]).cast(TIMESTAMP_TYPE),
    }
    if LIFECYCLE in log.events.column_names:
        columns[LIFECYCLE] = fresh_dictionary(log.events.column(LIFECYCLE).take(rows))
    of_cases = {ACTIVITY: pa.array(np.arange(1, len(cases) + 1)).cast(pa.string())}
    for one in chosen:
        if one.level == "case":
            of_cases[one.name] = text_column(one.labels, one.codes[cases])
        else:
            columns[one.name] = text_column(one.labels, one.codes[keep])
    return EventLog(pa.table(columns), pa.table(of_cases))


def _state(curator: Curator, bounds: TlkcSettings, names: tuple[str, ...]) -> None:
    one = "one-activity" if bounds.l == 1 else "activities"
    what = Message(f"knows-{one}-as-{bounds.background}", n=bounds.l, time=bounds.time)
    beyond = "" if bounds.background == "relative" else "-nor-times"
    holds = Message("k-anonymity-of-one-holds" if bounds.k == 1 else "k-anonymity-holds", what=what, n=bounds.k)
    not_against = Message(f"k-anonymity-does-not-protect{beyond}")
    curator.state(Statement("k-anonymity (TLKC)", holds, checked=True, does_not_protect=not_against))
    if names and bounds.c < 1:
        holds = Message("confidence-holds", share=bounds.c, attributes=", ".join(names))
        not_against = Message(f"confidence-does-not-protect{beyond}")
        curator.state(Statement("confidence (TLKC)", holds, checked=True, does_not_protect=not_against))


def _remark(request: Request, log: EventLog, released: EventLog, bounds: TlkcSettings, names: tuple[str, ...]) -> None:
    dropped = dropped_attributes(log, [*released.events.column_names, *released.cases.column_names])
    if dropped:
        request.remark(Message("tlkc-attributes-dropped", dropped=dropped))
    original = bounds.time == "original"
    request.remark(Message("tlkc-times-of-log") if original else Message("tlkc-times-from-epoch", time=bounds.time))
    if names and bounds.c == 1:
        request.remark(Message("tlkc-confidence-unbounded", names=", ".join(names)))


TLKC = our_method(
    "tlkc",
    tlkc,
    TlkcSettings,
    releases=Groups(check=lambda log, settings: check_tlkc(log, settings.to_json())),
    budget=NoEpsilon(),
)
