"""Life cycles: transitions of events, starts and ends as one event, classifiers.

All of it is decided event by event or case by case, so that the content of one case changes no other.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from veilog._typing import BoolArray, IntArray
from veilog.errors import ParameterError, meant
from veilog.logs.eventlog import (
    CASE_INDEX,
    EVENT_INDEX,
    LIFECYCLE,
    START,
    TIMESTAMP,
    TIMESTAMP_TYPE,
    EventLog,
    as_dictionary,
)
from veilog.logs.findings import Findings
from veilog.logs.tables.cells import DayOrder, read_times
from veilog.messages import Message

COMPLETE = "complete"
"""The transition that ends an activity."""
_SHOWN = 40
"""Letters of a transition that are shown."""
EVERY = "all"
"""Name for every transition, so that nothing need be reported about them."""
INTERVALS = "intervals"
"""Name for a start and its end as one event."""
_BEGUN = "start"


class Transitions:
    """Counter of the transitions of events by block, which keeps the wanted ones.

    Upper case does not matter.
    """

    def __init__(self, wanted: str | None) -> None:
        self._wanted = None if wanted is None else wanted.strip().casefold()
        self._said = wanted
        self._every = self._wanted == EVERY
        self._counts: Counter[tuple[str, str]] = Counter()

    @staticmethod
    def of(counts: Iterable[tuple[str, str, int]], wanted: str | None = None) -> Transitions:
        """Return the counts made elsewhere: activity, transition, and number of events."""
        found = Transitions(wanted)
        found._counts.update({(label, step): count for label, step, count in counts})
        return found

    def keep(self, labels: Any, transitions: Any) -> BoolArray:
        """Return a mask of the events that count, by their activities and transitions."""
        label, step = _Encoded(labels), _Encoded(transitions)
        pairs = label.codes.astype(np.int64) * len(step.names) + step.codes
        found, counts = np.unique(pairs, return_counts=True)
        for pair, count in zip(found.tolist(), counts.tolist(), strict=True):
            self._counts[label.names[pair // len(step.names)], step.names[pair % len(step.names)]] += count
        if self._wanted is None or self._every:
            return np.ones(len(pairs), dtype=np.bool_)
        fits = np.array([name.strip().casefold() == self._wanted for name in step.names], dtype=np.bool_)
        return np.asarray(fits[step.codes], dtype=np.bool_)

    def done(self, findings: Findings, *, told_apart: bool) -> None:
        """Finish after the last block with a finding or an error.

        It adds a finding if activities have several transitions that all count, unless a classifier distinguishes them.
        It raises a :class:`ParameterError` if no event has the requested transition.

        It adds a finding if activities have several transitions that all count, unless a classifier distinguishes them.
        It raises a :class:`ParameterError` if no event has the requested transition.
        """
        if self._every:
            return
        totals: Counter[str] = Counter()
        for (_, step), count in self._counts.items():
            totals[step] += count
        if self._wanted is not None:
            if totals and not any(step.strip().casefold() == self._wanted for step in totals):
                known = ", ".join(repr(step) for step, _ in totals.most_common(20) if step)
                raise ParameterError(
                    "lifecycle-transition-missing",
                    parameter="lifecycle",
                    said=self._said,
                    meant=meant(self._wanted, (*totals, EVERY, INTERVALS)),
                    known=known or Message("names-none"),
                )
            return
        others = [(step, n) for step, n in totals.most_common() if step and step.strip().casefold() != COMPLETE]
        if told_apart or not others or not self._repeats_activities():
            return
        (first, most), *more = [(step[:_SHOWN], n) for step, n in others]
        shown = Message("example-transition", n=most, total=totals.total(), step=first)
        for step, n in more[:2]:
            shown = Message("example-transitions", others=shown, n=n, step=step)
        shown = Message("example-and-more", first=shown) if len(more) > 2 else shown
        complete = any(step.strip().casefold() == COMPLETE for step in totals)
        advice = None if complete else Message("lifecycle-instead", value=shlex.quote(_most_frequent_step(others)))
        findings.add("lifecycle-transitions", shown, count=sum(n for _, n in others), advice=advice)

    def wanted(self) -> list[str]:
        """Return the spellings of the requested transition in the log."""
        return sorted({step for _, step in self._counts if self._every or step.strip().casefold() == self._wanted})

    def _repeats_activities(self) -> bool:
        """Return True if some activity has several transitions."""
        pairs = {(label, step.strip().casefold()) for label, step in self._counts if step}
        return len({label for label, _ in pairs}) < len(pairs)


def wants_intervals(lifecycle: str | None) -> bool:
    """Return whether a start and its end are to be one event."""
    return lifecycle is not None and lifecycle.strip().casefold() == INTERVALS


def as_intervals(
    log: EventLog,
    findings: Findings,
    transition: str = LIFECYCLE,
    start: str = START,
    *,
    order: DayOrder | None = None,
) -> EventLog:
    """Return the log with one event, and its start, for each that is complete.

    As in pm4py, an end belongs to the first start of its activity in its case that has none yet. An end without a start
    has no start time. Starts without an end, and other transitions, are left out. ``transition`` is the attribute with
    them, ``start`` the one with an event's own start, and ``order`` the meaning of ``5/6/2024`` where that is text.

    An event with a start of its own, or with no transition, stays as it is and belongs to no other. This is decided
    event by event, and never by the attributes of the log. Some formats have an attribute as soon as one event has it.
    So a log that was read like this stays the same.
    """
    events = log.events
    if not len(events):
        return log
    if transition not in events.column_names and start not in events.column_names:
        raise no_life_cycle(INTERVALS)
    told, silent = _classify_transitions(events, transition)
    micros, known = _event_starts(log, start, findings, order)
    if start not in events.column_names:
        _refuse_without(told)
    whole = known | silent
    begun = _starts_of(events.column(CASE_INDEX).to_numpy(), log.activity_codes[1], np.where(whole, 0, told))
    kept = np.flatnonzero(whole | (told < 0))
    unpaired = len(told) - len(kept) - int((begun >= 0).sum())
    if unpaired:
        findings.add("unpaired-transitions", Message("example-events-of", n=unpaired, total=len(told)), count=unpaired)
    ends = events.column(TIMESTAMP).cast(pa.int64())
    paired = begun >= 0
    micros[paired] = pc.fill_null(ends, 0).to_numpy()[begun[paired]]
    known[paired] = pc.is_valid(ends).to_numpy()[begun[paired]]
    starts = pa.chunked_array([pa.array(micros, pa.int64(), mask=~known).cast(TIMESTAMP_TYPE)])
    if start in events.column_names:
        place = events.column_names.index(start)
        events = events.set_column(place, events.schema.field(place).with_type(starts.type).with_name(START), starts)
    else:
        events = events.append_column(START, starts)
    if len(kept) < len(told):
        events = events.take(pa.array(kept))
        place = events.column_names.index(EVENT_INDEX)
        events = events.set_column(place, EVENT_INDEX, pa.array(np.arange(len(kept))))
    return replace(log, events=events, findings=findings.result())


def _classify_transitions(events: pa.Table, transition: str) -> tuple[IntArray, BoolArray]:
    """Return 1 for starts, -1 for ends, else 0, and a mask of missing transitions."""
    if transition not in events.column_names:
        return np.zeros(len(events), dtype=np.int64), np.ones(len(events), dtype=np.bool_)
    steps = _Encoded(events.column(transition))
    plain = [name.strip().casefold() for name in steps.names]
    told = np.array([{_BEGUN: 1, COMPLETE: -1}.get(name, 0) for name in plain], dtype=np.int64)
    return told[steps.codes], np.array([not name for name in plain], dtype=np.bool_)[steps.codes]


def _event_starts(log: EventLog, start: str, findings: Findings, order: DayOrder | None) -> tuple[IntArray, BoolArray]:
    """Return each event's own start in microseconds, and a mask of those with one."""
    if start not in log.events.column_names:
        return np.zeros(len(log.events), dtype=np.int64), np.zeros(len(log.events), dtype=np.bool_)
    column = log.events.column(start)
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.string())
    times = read_times(column, start, log.source, order)
    if times.bad.any():
        findings.add("bad-value", Message("example-column-no-time", name=start), count=int(times.bad.sum()))
    return times.micros.copy(), times.known.copy()


def _refuse_without(told: IntArray) -> None:
    """Refuse to make one event of starts and ends where there are none of either."""
    for wanted, value in ((_BEGUN, 1), (COMPLETE, -1)):
        if not (told == value).any():
            raise ParameterError("lifecycle-transition-unpaired", parameter="lifecycle", wanted=wanted)


def _starts_of(case: IntArray, code: IntArray, told: IntArray) -> IntArray:
    """Return for each end (-1) the place of its start (1), or -1 if it has none.
    An end has none where, of its activity in its case, there have been fewer starts than ends that have one."""
    number = len(told)
    order = np.lexsort((np.arange(number), code, case))
    order = order[told[order] != 0]
    first = np.ones(len(order), dtype=np.bool_)
    first[1:] = (case[order[1:]] != case[order[:-1]]) | (code[order[1:]] != code[order[:-1]])
    group, step = np.cumsum(first) - 1, told[order]
    open_ = np.cumsum(step)
    open_ -= (open_ - step)[np.flatnonzero(first)][group] if len(order) else 0
    apart = group * (number + 1)  # so that no lowest number of an earlier group is lower
    lowest = np.minimum.accumulate(np.minimum(open_, 0) - apart) + apart
    before = np.where(first, 0, np.concatenate([[0], lowest[:-1]])[: len(order)])
    paired = (step < 0) & (open_ >= before)
    found = np.full(number, -1)
    rank_of_end = np.cumsum(paired) - paired
    rank_of_start = np.cumsum(step > 0) - (step > 0)
    begins = np.flatnonzero(first)
    starts = order[step > 0]
    base_end, base_start = rank_of_end[begins][group], rank_of_start[begins][group]
    found[order[paired]] = starts[(base_start + rank_of_end - base_end)[paired]]
    return found


def _most_frequent_step(steps: Sequence[tuple[str, int]]) -> str:
    """Return the most frequent transition of these events, in its usual spelling."""
    totals: Counter[str] = Counter()
    for step, count in steps:
        totals[step.strip().casefold()] += count
    ((most, _),) = totals.most_common(1)
    name = next(step.strip() for step, _ in steps if step.strip().casefold() == most)
    return name if len(name) <= _SHOWN else "NAME"


def no_life_cycle(wanted: str) -> ParameterError:
    """Return the error for a requested transition when events have none."""
    if wanted == EVERY:  # also for starts and ends that are to be one event
        return ParameterError("lifecycle-and-start-missing", parameter="lifecycle", lifecycle=LIFECYCLE)
    return ParameterError("lifecycle-column-missing", parameter="lifecycle", lifecycle=LIFECYCLE, wanted=wanted)


def joined(parts: Sequence[Any]) -> Any:
    """Return several columns of text as one, joined by ``+`` as in XES.

    A missing value is empty.
    """
    filled = [pc.fill_null(part.cast(pa.string()), "") for part in parts]
    return filled[0] if len(filled) == 1 else pc.binary_join_element_wise(*filled, "+")


class _Encoded:
    """A column of text as codes of names, a missing one being empty."""

    def __init__(self, column: Any) -> None:
        encoded = as_dictionary(pc.fill_null(column.cast(pa.string()), ""))
        self.names: list[str] = encoded.dictionary.to_pylist() or [""]
        self.codes = np.asarray(encoded.indices.to_numpy(zero_copy_only=False))
