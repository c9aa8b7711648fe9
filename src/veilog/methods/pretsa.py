"""PRETSA: k-anonymous traces and prefixes, with values that hide the path.

S.A. Fahrenkrog-Petersen, H. van der Aa, M. Weidlich, "PRETSA: Event Log Sanitization for Privacy-aware Process
Discovery" (ICPM 2019).

The attacker knows how a case began, or all of its activities in order. Every prefix and every complete trace of the
release is that of at least ``k`` cases: one that fewer share is merged into the most similar remaining trace. The
values of a sensitive attribute after each prefix differ by at most ``t`` from those of the same activity anywhere in
the release. The difference is the earth mover's distance, of numbers over their range. Every two names are 1 apart, so
for them it is half the sum of differences of shares. Events without a value do not count.

A case that was merged keeps the values of the prefix that it still has. The others are drawn from the values of the
activity, evenly over their order. Times leave only as the sensitive attribute ``duration``: seconds since the event
before, none for a case's first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated

import numpy as np
import pyarrow as pa
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cdist

from veilog._typing import FloatArray, Int32Array, IntArray
from veilog.errors import ParameterError
from veilog.logs.eventlog import ACTIVITY, CASE_INDEX, EVENT_INDEX, TIMESTAMP, TIMESTAMP_TYPE, EventLog
from veilog.logs.metadata import ARTIFICIAL_TIMES, Attribute, Metadata
from veilog.messages import Message
from veilog.methods._groups import (
    DeclaredEvents,
    attribute_names,
    check_pretsa,
    dropped_attributes,
    events_of,
    microseconds,
    text_column,
)
from veilog.methods._groups import sensitive as sensitive_attribute
from veilog.methods._relations import equal_before
from veilog.methods.method import Groups, NoEpsilon, Request, our_method
from veilog.methods.settings import Range, Settings
from veilog.privacy.account.guarantee import Statement
from veilog.privacy.curator import Curator
from veilog.privacy.mechanisms.noise import generator

DURATION = "duration"
_HOUR = 3_600_000_000
_SLACK = 1e-12


@dataclass(frozen=True, eq=False)
class _Attribute:
    """Sensitive attribute of events: numbers, or places of ``labels``; nan for none."""

    name: str
    values: FloatArray
    """Value of each event of the log."""
    labels: tuple[str, ...] | None
    whole: bool = False


@dataclass(frozen=True, eq=False)
class _Merged:
    """The released events, by the original order of the cases."""

    case: IntArray
    node: IntArray
    activity: IntArray
    own: IntArray
    """The row of the original event that the released one still is, or -1."""


@dataclass(frozen=True, kw_only=True)
class PretsaSettings(Settings):
    """Settings of PRETSA."""

    k: Annotated[int, "cases that share each prefix and each trace, at least", Range(1)] = 8
    t: Annotated[float, "distance of a sensitive attribute's values after a prefix, at most", Range(0, 1)] = 1.0
    sensitive: Annotated[str | None, "attribute of events to release and to bound by t; or duration"] = None


def pretsa(curator: Curator, request: Request, settings: PretsaSettings) -> EventLog:
    """Return the log with merged traces; see the module. All cases are kept."""
    k, t, sensitive = settings.k, settings.t, settings.sensitive
    names = attribute_names(sensitive)
    if len(names) > 1:
        raise ParameterError("pretsa-sensitive-not-one", parameter="sensitive")
    if t < 1 and not names:
        raise ParameterError("pretsa-closeness-without-attribute", parameter="t", t=t)
    log = curator.peek_log("pretsa-exact-counts")
    events = events_of(log, curator.domain)
    if k > events.cases:
        raise ParameterError("pretsa-k-above-log", parameter="k", k=k, cases=events.cases)
    attribute = _attribute(log, events, names[0], curator) if names else None
    offsets = np.searchsorted(events.case, np.arange(events.cases + 1))
    rows = events.activity.tolist()
    traces = [tuple(rows[a:b]) for a, b in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)]
    tree = prefix_tree(sorted(set(traces)))
    place = {sequence: i for i, sequence in enumerate(tree.sequences)}
    variant = np.array([place[trace] for trace in traces], dtype=np.int64)
    request.progress("merging traces", None)

    def violating(goal: IntArray) -> int | None:
        assert attribute is not None
        return _first_too_different(_events(tree, goal, variant, offsets), events, attribute, t)

    number = np.bincount(variant, minlength=len(place))
    goal = merged(tree, number, k, violating if attribute is not None and t < 1 else None)
    if goal is None:
        raise ParameterError("pretsa-nothing-close-enough", parameter="t", names=names[0], t=t)
    released = _events(tree, goal, variant, offsets)
    if not len(released.case):
        raise ParameterError("pretsa-only-empty-cases", parameter="k")
    _state(curator, settings, names)
    _remark(request, log, t, names)
    return _log(events, released, attribute, generator(curator.randomness))


# The attribute --------------------------------------------------------------------------------------------------------


def _attribute(log: EventLog, events: DeclaredEvents, name: str, curator: Curator) -> _Attribute:
    if name == DURATION:
        times, known = microseconds(log, events.rows)
        if not known.all():
            raise ParameterError("pretsa-times-missing", parameter="sensitive")
        passed = np.full(len(times), np.nan)  # none before a case's first event
        passed[1:] = np.where(events.case[1:] == events.case[:-1], np.maximum(np.diff(times), 0) / 1e6, np.nan)
        return _Attribute(name, passed, None)
    one = sensitive_attribute(log, events, name, curator.domain)
    if one.level == "case":
        raise ParameterError("pretsa-attribute-of-cases", parameter="sensitive", name=name)
    if one.numbers is not None:
        known_numbers = one.numbers[~np.isnan(one.numbers)]
        return _Attribute(one.name, one.numbers, None, bool((known_numbers == np.rint(known_numbers)).all()))
    return _Attribute(one.name, np.where(one.codes < 0, np.nan, one.codes.astype(np.float64)), one.labels)


# The release ----------------------------------------------------------------------------------------------------------


def _events(tree: SequenceTree, goal: IntArray, variant: IntArray, offsets: IntArray) -> _Merged:
    """Return the events of each case on the trace that it joined."""
    shared = np.array(
        [
            len(s) if g == i else shared_prefix(s, tree.sequences[g])
            for i, (s, g) in enumerate(zip(tree.sequences, goal.tolist(), strict=True))
        ]
    )
    target = goal[variant]
    lengths = np.diff(tree.offsets)[target]
    begin = np.cumsum(lengths) - lengths
    case = np.repeat(np.arange(len(variant)), lengths)
    position = np.arange(int(lengths.sum())) - begin[case]
    codes = np.array([code for sequence in tree.sequences for code in sequence], dtype=np.int64)
    place = tree.offsets[target][case] + position
    own = np.where(position < shared[variant][case], offsets[:-1][case] + position, -1)
    return _Merged(case, tree.node[place], codes[place], own)


def _values(events: DeclaredEvents, released: _Merged, attribute: _Attribute) -> FloatArray:
    """Return each released event's own value, or one drawn from its activity's values.
    Those are drawn at even places."""
    values = np.where(released.own < 0, np.nan, attribute.values[released.own])
    drawn, position = np.flatnonzero(released.own < 0), equal_before(released.case)
    drawn = drawn[np.argsort(released.node[drawn], kind="stable")]
    anywhere = _values_by_activity(attribute.values, events.activity, len(events.labels))
    _, first, number = np.unique(released.node[drawn], return_index=True, return_counts=True)
    for low, many in zip(first.tolist(), number.tolist(), strict=True):
        rows = drawn[low : low + many]
        if attribute.name == DURATION and position[rows[0]] == 0:
            continue
        known = anywhere[released.activity[rows[0]]]
        if len(known):
            values[rows] = known[((np.arange(many) + 0.5) / many * len(known)).astype(np.int64)]
    return values


def _first_too_different(released: _Merged, events: DeclaredEvents, attribute: _Attribute, t: float) -> int | None:
    """Return the first node whose values differ by more than t from its activity's.
    Nodes come depth first from the root."""
    values = _values(events, released, attribute)
    known = ~np.isnan(values)
    order = np.lexsort((values[known], released.node[known]))
    value, node, activity = values[known][order], released.node[known][order], released.activity[known][order]
    anywhere = _values_by_activity(values, released.activity, len(events.labels))
    nodes, first, many = np.unique(node, return_index=True, return_counts=True)
    for number, low, high in zip(nodes.tolist(), first.tolist(), (first + many).tolist(), strict=True):
        if _distance(value[low:high], anywhere[int(activity[low])], attribute.labels is not None) > t + _SLACK:
            return int(number)
    return None


def _values_by_activity(values: FloatArray, activity: IntArray, activities: int) -> list[FloatArray]:
    """Return the known values of each activity in ascending order."""
    order = np.lexsort((values, activity))
    order = order[~np.isnan(values[order])]
    return np.split(values[order], np.searchsorted(activity[order], np.arange(1, activities)))


def _distance(values: FloatArray, others: FloatArray, names: bool) -> float:
    """Return the earth mover's distance of sorted values, in the range of ``others``."""
    points = others[np.concatenate([[True], others[1:] != others[:-1]])]
    below = np.searchsorted(values, points, side="right") / len(values)
    below_others = np.searchsorted(others, points, side="right") / len(others)
    if names:
        shares = np.abs(np.diff(below, prepend=0.0) - np.diff(below_others, prepend=0.0))
        return float(shares.sum() / 2)
    width = points[-1] - points[0]
    return float(np.abs(below - below_others)[:-1] @ np.diff(points) / width) if width > 0 else 0.0


def _log(events: DeclaredEvents, released: _Merged, attribute: _Attribute | None, rng: np.random.Generator) -> EventLog:
    owner, position = released.case, equal_before(released.case)
    times = position * _HOUR
    metadata = Metadata(attributes=(Attribute(ARTIFICIAL_TIMES, True, "boolean"),))
    columns = {}
    if attribute is not None:
        values = _shuffle_values(_values(events, released, attribute), released, rng)
        if attribute.name == DURATION:
            passed = np.cumsum(np.rint(np.nan_to_num(values) * 1e6).astype(np.int64))
            start = np.where(position == 0, passed, 0)
            times = passed - np.maximum.accumulate(start)
            metadata = Metadata()
        else:
            columns[attribute.name] = _column(attribute, values)
    return EventLog(
        pa.table(
            {
                CASE_INDEX: owner,
                EVENT_INDEX: np.arange(len(owner)),
                ACTIVITY: text_column(events.labels, released.activity),
                TIMESTAMP: pa.array(times).cast(TIMESTAMP_TYPE),
                **columns,
            }
        ),
        pa.table({ACTIVITY: pa.array(np.arange(1, events.cases + 1)).cast(pa.string())}),
        metadata,
    )


def _shuffle_values(values: FloatArray, released: _Merged, rng: np.random.Generator) -> FloatArray:
    """Return the drawn values in random order at each node.
    So no case has the low ones at all of its events."""
    drawn = np.flatnonzero(released.own < 0)
    mixed = drawn[np.lexsort((rng.random(len(drawn)), released.node[drawn]))]
    out = values.copy()
    out[mixed] = values[drawn[np.argsort(released.node[drawn], kind="stable")]]
    return out


def _column(attribute: _Attribute, values: FloatArray) -> pa.Array:
    known = ~np.isnan(values)
    if attribute.labels is not None:
        return text_column(attribute.labels, np.where(known, values, -1).astype(np.int64))
    if attribute.whole:
        return pa.array(np.where(known, values, 0).astype(np.int64), mask=~known)
    return pa.array(values, mask=~known)


# Statements -----------------------------------------------------------------------------------------------------------


def _state(curator: Curator, settings: PretsaSettings, names: tuple[str, ...]) -> None:
    holds = Message("prefixes-of-one-case" if settings.k == 1 else "prefixes-of-cases", n=settings.k)
    not_against = Message("prefixes-do-not-protect")
    curator.state(Statement("k-anonymity (PRETSA)", holds, checked=True, does_not_protect=not_against))
    if names and settings.t < 1:
        holds = Message("closeness-holds", attribute=names[0], most=settings.t)
        not_against = Message("closeness-does-not-protect")
        curator.state(Statement("t-closeness (PRETSA)", holds, checked=True, does_not_protect=not_against))


def _remark(request: Request, log: EventLog, t: float, names: tuple[str, ...]) -> None:
    dropped = dropped_attributes(log, names)
    if dropped:
        request.remark(Message("pretsa-attributes-dropped", dropped=dropped))
    if names == (DURATION,):
        request.remark(Message("pretsa-times-from-epoch"))
    if names and t == 1:
        request.remark(Message("pretsa-values-unbounded", names=names[0]))


PRETSA = our_method(
    "pretsa",
    pretsa,
    PretsaSettings,
    releases=Groups(check=lambda log, settings: check_pretsa(log, settings.to_json())),
    budget=NoEpsilon(),
)


# PRETSA's prefix tree: which variants are merged into which, until every part of the tree keeps to the model.
#
# S.A. Fahrenkrog-Petersen, H. van der Aa, M. Weidlich, "PRETSA: Event Log Sanitization for Privacy-aware Process
# Discovery" (ICPM 2019). The first part of the tree (from the root on, depth first) that violates is cut off, and its
# cases join the most similar remaining variant; then again, until nothing violates. Here a variant's end is a part of
# the tree of its own, so that complete variants keep to k as prefixes do; the paper's tree has no ends.

_ROWS = 4_000
"""Variants of which all distances are kept."""


@dataclass(frozen=True, eq=False)
class SequenceTree:
    """Sequences in ascending order, and the nodes of their tree, depth first.

    The sequences ``low[i]`` up to ``high[i]`` pass node ``i``.
    """

    sequences: tuple[tuple[int, ...], ...]
    low: IntArray
    high: IntArray
    depth: IntArray
    """Length of the node's prefix; one more than its sequence's length for an end."""
    node: IntArray
    """Node of each event of the sequences, one after another."""
    offsets: IntArray
    """Place where the events of each sequence start."""


def prefix_tree(sequences: Sequence[tuple[int, ...]]) -> SequenceTree:
    """Return the tree of distinct sequences in ascending order."""
    spans: list[list[int]] = []  # low, high, depth, in the order of their first event
    node: list[int] = []
    path: list[int] = []
    before: tuple[int, ...] = ()
    for i, sequence in enumerate(sequences):
        shared = shared_prefix(before, sequence)
        for number in path[shared:]:
            spans[number][1] = i
        del path[shared:]
        for depth in range(shared + 1, len(sequence) + 1):
            path.append(len(spans))
            spans.append([i, 0, depth])
        node.extend(path)
        spans.append([i, i + 1, len(sequence) + 1])
        before = sequence
    for number in path:
        spans[number][1] = len(sequences)
    table = np.array(spans, dtype=np.int64).reshape(-1, 3)
    offsets = np.cumsum([0, *(len(s) for s in sequences)], dtype=np.int64)
    return SequenceTree(
        tuple(sequences), table[:, 0], table[:, 1], table[:, 2], np.array(node, dtype=np.int64), offsets
    )


def shared_prefix(first: Sequence[int], second: Sequence[int]) -> int:
    """Return the length of what both begin with."""
    length = 0
    for a, b in zip(first, second, strict=False):
        if a != b:
            break
        length += 1
    return length


def merged(
    tree: SequenceTree, cases: IntArray, k: int, violating: Callable[[IntArray], int | None] | None
) -> IntArray | None:
    """Return the sequence that the cases of each one join, or None if nothing remains.

    It may be the sequence itself. ``violating`` is called once no part of the tree has fewer than k cases; it gets the
    goals and returns the first node that violates otherwise. At least k cases are needed. The loop ends, because what
    is cut off never comes back.
    """
    goal = np.arange(len(tree.sequences))
    weight = cases.astype(np.int64)

    @lru_cache(maxsize=_ROWS)
    def distances(sequence: int) -> Int32Array:
        return np.asarray(
            cdist([tree.sequences[sequence]], tree.sequences, scorer=Levenshtein.distance, dtype=np.int32)[0]
        )

    while True:
        passed = np.concatenate([[0], np.cumsum(weight)])
        number = passed[tree.high] - passed[tree.low]
        small = np.flatnonzero((number > 0) & (number < k))
        if len(small):
            bad: int | None = int(small[0])
        else:
            bad = None if violating is None else violating(goal)
        if bad is None:
            return goal
        inside = (goal >= tree.low[bad]) & (goal < tree.high[bad])
        weight[tree.low[bad] : tree.high[bad]] = 0
        remaining = np.flatnonzero(weight)
        if not len(remaining):
            return None
        by_cases = remaining[np.argsort(-weight[remaining], kind="stable")]
        for sequence in np.flatnonzero(inside).tolist():
            goal[sequence] = by_cases[np.argmin(distances(sequence)[by_cases])]
            weight[goal[sequence]] += cases[sequence]
