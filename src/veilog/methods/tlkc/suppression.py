"""Which events TLKC suppresses: the loop over minimal violating and maximal frequent patterns (see :mod:`.tlkc`)."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import numpy as np
from scipy.sparse import csr_matrix

from veilog._typing import BoolArray, IntArray
from veilog.errors import ParameterError
from veilog.messages import Message
from veilog.methods._rows import equal_before, rows_of
from veilog.methods.settings import Choices, Range, Settings
from veilog.methods.tlkc.patterns import Elements, ElementTraces, levels, maximal_patterns

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
    """What somebody may know of each event (its label, a number), and which case has which sensitive values."""

    label: IntArray
    case: IntArray
    cases: int
    value_case: IntArray
    value: IntArray
    values: int


def left(known: BackgroundKnowledge, bounds: TlkcSettings, remark: Callable[[Message], None]) -> BoolArray:
    """Which events are left when nothing violates any more."""
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
    """The largest k at which an element is left: alone, one that keeps to ``c`` and that most cases have."""
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
    """Suppresses until a whole search finds nothing that violates. What violates by itself leaves first: it has to."""
    cases, having = _numbers(known, len(before))
    fits = (cases >= bounds.k) & (having.max(axis=1) <= bounds.c * cases * (1 + 1e-12))
    # A multiset with a later occurrence has the earlier ones: it is known to nobody who knows l events only.
    alive = _with_later(fits | (place >= bounds.l), before)
    while True:
        keep = alive[known.label]
        if not keep.any():
            return keep
        old = np.flatnonzero(alive)
        number = np.cumsum(alive) - 1
        earlier = np.where(before[old] < 0, -1, number[before[old]]).tolist()
        elements = Elements(len(old), ordered, () if ordered else tuple(earlier))
        traces = _traces(known, number[known.label], keep, ordered)
        violating, complete = _violating(elements, traces, bounds)
        if violating:
            alive[old[_chosen(elements, traces, violating, bounds, known.cases, remark)]] = False
            alive = _with_later(alive, before)
        if complete:
            return alive[known.label]
        if not violating:
            raise ParameterError("tlkc-patterns-too-many", parameter="l")


def _with_later(alive: BoolArray, before: IntArray) -> BoolArray:
    """An occurrence leaves with all later ones."""
    alive = alive.copy()
    while True:
        gone = alive & (before >= 0) & ~alive[before]
        if not gone.any():
            return alive
        alive[gone] = False


def _numbers(known: BackgroundKnowledge, size: int) -> tuple[IntArray, IntArray]:
    """Of each element the cases that have it, and those among them with each value."""
    pairs = np.unique(known.label * known.cases + known.case)
    element, case = pairs // known.cases, pairs % known.cases
    cases = np.bincount(element, minlength=size)
    shape = (known.cases, max(1, known.values))
    has = csr_matrix((np.ones(len(known.value), dtype=np.int64), (known.value_case, known.value)), shape=shape)
    which = csr_matrix((np.ones(len(element), dtype=np.int64), (element, case)), shape=(size, known.cases))
    return cases, np.asarray((which @ has).todense())


def _traces(known: BackgroundKnowledge, element: IntArray, keep: BoolArray, ordered: bool) -> ElementTraces:
    """The distinct traces of the elements that are left, with their cases."""
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


def _violating(elements: Elements, traces: ElementTraces, bounds: TlkcSettings) -> tuple[list[IntArray], bool]:
    """The minimal violating patterns by size, and whether all sizes up to l were looked at."""
    found = []
    for level in levels(elements, traces, k=bounds.k, c=bounds.c, largest=bounds.l):
        if len(level.violating):
            found.append(level.violating)
        if level.cut:
            return found, False
    return found, True


def _chosen(
    elements: Elements,
    traces: ElementTraces,
    violating: list[IntArray],
    bounds: TlkcSettings,
    cases: int,
    remark: Callable[[Message], None],
) -> list[int]:
    """The elements to suppress, the one with the highest score first, until no violating pattern is left."""
    having = np.bincount(traces.codes, weights=traces.cases[traces.owners], minlength=elements.size)
    if bounds.score == "cost":
        return _cheapest(_contained(violating, elements.size), having)
    frequent, complete = maximal_patterns(elements, traces, bounds.frequency * cases)
    if not complete:
        remark(Message("tlkc-frequent-patterns-too-many"))
    private, useful = _contained(violating, elements.size), _contained(frequent, elements.size)
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
    """Elements that are in all violating patterns together: the most patterns for each case that loses the element
    first; then those go free, the ones of most cases first, without which every pattern has another one."""
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


def _contained(patterns: list[IntArray], size: int) -> csr_matrix:
    """Which pattern (row) contains which element (column)."""
    lengths = np.concatenate([np.zeros(0, dtype=np.int64), *(np.full(len(p), p.shape[1]) for p in patterns)])
    columns = np.concatenate([np.zeros(0, dtype=np.int64), *(p.ravel() for p in patterns)])
    pairs = np.unique(np.repeat(np.arange(len(lengths)), lengths) * size + columns)
    return csr_matrix((np.ones(len(pairs), dtype=np.int64), (pairs // size, pairs % size)), shape=(len(lengths), size))
