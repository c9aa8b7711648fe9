"""TLKC-privacy: suppress what a few known events of a person would single out, or tell a sensitive value by.

M. Rafiei, M. Wagner, W. van der Aalst, "TLKC-Privacy Model for Process Mining" (RCIS 2020); M. Rafiei, W. van der
Aalst, "Group-Based Privacy Preservation Techniques for Process Mining" (2021).

Somebody knows at most ``l`` events of a case: as a set or multiset of activities, as a sequence, or as a sequence with
the times since the start of the case (``relative``). Whatever it is, at least ``k`` cases of the release match it or
none does, and no sensitive value is had by more than the share ``c`` of them.

Elements are activities (sets), or the occurrences of activities: the first, second, ... of a case. A pattern of at most
``l`` elements violates where more than 0 and fewer than k cases match it, or a sensitive value is too frequent among
them; it is minimal where no part of it violates. While violating patterns remain, the element with the largest

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

import numpy as np
import pyarrow as pa

from veilog._typing import BoolArray, IntArray
from veilog.errors import ParameterError
from veilog.logs.eventlog import ACTIVITY, CASE_INDEX, EVENT_INDEX, LIFECYCLE, TIMESTAMP, TIMESTAMP_TYPE, EventLog
from veilog.messages import Message
from veilog.methods._groups.checks import check_tlkc
from veilog.methods._groups.values import (
    DeclaredEvents,
    Sensitive,
    attribute_names,
    case_labels,
    dropped_attributes,
    events_of,
    fresh_dictionary,
    microseconds,
    text_column,
)
from veilog.methods._groups.values import (
    sensitive as sensitive_attribute,
)
from veilog.methods.method import Groups, NoEpsilon, Request, our_method
from veilog.methods.tlkc.suppression import UNITS, BackgroundKnowledge, TlkcSettings, largest_k, left
from veilog.privacy.account.guarantee import Statement
from veilog.privacy.curator import Curator

__all__ = ["TLKC", "UNITS", "TlkcSettings", "tlkc"]


def tlkc(curator: Curator, request: Request, settings: TlkcSettings) -> EventLog:
    """Return the log without the events of suppressed elements; see the module. Cases without any event leave it."""
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
    known = _known(events, label, chosen)
    request.progress("looking for violating patterns", None)
    keep = left(known, settings, request.remark)
    if not keep.any():
        raise _all_suppressed(known, settings)
    released = _released(log, events, keep, times, timed, chosen)
    _state(curator, settings, names)
    _remark(request, log, released, settings, names)
    return released


# What is known of events ----------------------------------------------------------------------------------------------


def _sensitive(log: EventLog, events: DeclaredEvents, name: str, curator: Curator) -> Sensitive:
    """The attribute; one of events of which no case has two values is the case's, unless that has one of its name."""
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
    """The times of events to release, and which have one: as they are, or whole units since the case began."""
    times, known = microseconds(log, events.rows)
    if time == "original":
        return times, known
    unit = UNITS[time]
    start = np.full(events.cases, np.iinfo(np.int64).max)
    np.minimum.at(start, events.case[known], times[known])
    passed = np.where(known, times - np.where(known, start[events.case], 0), 0)
    return passed // unit * unit, known


def _known(events: DeclaredEvents, label: IntArray, chosen: list[Sensitive]) -> BackgroundKnowledge:
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
    """The refusal where nothing would be left, with what would leave something."""
    largest = largest_k(known, bounds.c)
    if largest == 0:
        return ParameterError("tlkc-no-confidence-reached", parameter="k", c=bounds.c)
    if largest < bounds.k:
        return ParameterError("tlkc-k-above-largest", parameter="k", largest=largest)
    return ParameterError("tlkc-all-events-suppressed", parameter="k")


# The release ----------------------------------------------------------------------------------------------------------


def _released(
    log: EventLog, events: DeclaredEvents, keep: BoolArray, times: IntArray, timed: BoolArray, chosen: list[Sensitive]
) -> EventLog:
    """What is left, with what the model speaks about: nothing else of the log leaves."""
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
