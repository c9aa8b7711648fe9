"""Attributes as a use case: each by itself, in pairs, by activity, and beside the path of the case."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from veilog._typing import BoolArray, IntArray
from veilog.logs.eventlog import CASE_INDEX, EventLog
from veilog.measures.measure import Log, Pair
from veilog.measures.persons import column_of
from veilog.measures.use_cases.attributes.columns import ComparedAttribute, compared, not_kept
from veilog.measures.use_cases.attributes.similarity import Presence, contingency, marginal, pair, presence
from veilog.measures.use_cases.sides import Sides
from veilog.measures.use_cases.use_case import Asked, Judgement, Lowest, Mean, UseCase, facts_of
from veilog.messages import Message

NAMED = 30
"""So many attributes that were not kept are named."""
VARYING = (0.1, 0.9)
"""Shares of the original's cases between which an activity tells cases apart."""


def marginals(used: EventLog, judged: EventLog, person: str | None = None) -> dict[str, float]:
    """Return how like each attribute of the original is by itself, those of its cases with ``case:``; 0: not kept."""
    found = ((each.name, marginal(each.used, each.judged)) for each in compared(used, judged, person))
    return {name: value for name, value in found if value is not None}


class _OfAttributes(UseCase):
    """Also names what the release did not keep, and the column of persons that is left out."""

    def judged(self, sides: Sides, asked: Asked) -> Judgement:
        found = super().judged(sides, asked)
        if not found.aspects:
            return found
        original, released = sides.pair.whole
        person = asked.column
        reasons = _lacking(not_kept(released, original, person))
        if person:
            reasons += (Message("attribute-of-persons", name=person),)
        return replace(found, reasons=reasons)


def without(original: EventLog, released: EventLog, person: str | bool = True) -> Judgement | None:
    """Return what is said of a release that has no attributes, of which nothing need be computed; None where the
    original has none, either. Whose a case is counts as none: see :func:`veilog.measures.persons.column_of`."""
    names = not_kept(released, original, column_of(original, person))
    none = Message("attributes-not-in-release")
    return Judgement(ATTRIBUTES, reasons=(none, *_lacking(names))) if names else None


def _lacking(names: Sequence[str]) -> tuple[Message, ...]:
    if not names:
        return ()
    code = "attributes-not-kept-more" if len(names) > NAMED else "attributes-not-kept"
    return (Message(code, names=", ".join(names[:NAMED]), n=len(names) - NAMED),)


def _scores(used: Log, judged: Log, asked: Asked) -> Mapping[str, float | None]:
    original, released = Pair(judged, used).whole
    attributes = compared(released, original, asked.column)
    own = Activities(released, original)
    alone = [_Like((each,), marginal(each.used, each.judged)) for each in attributes]
    return {
        "shapes": _mean_of(alone),
        "pairs": _mean_of([*_pairs(attributes, released, original)]),
        "by_activity": _mean(own.marginals(each) for each in attributes if not each.of_cases),
        "with_control_flow": _mean(itertools.chain(*(own.beside(each) for each in attributes if each.of_cases))),
    }


class _Like(NamedTuple):
    """How like one attribute is, or two together; None where that cannot be said."""

    of: tuple[ComparedAttribute, ...]
    value: float | None


def _pairs(attributes: Sequence[ComparedAttribute], used: EventLog, judged: EventLog) -> Iterator[_Like]:
    """Yield the similarity of every two attributes, by case where both are of cases, else by event."""
    of_cases = [each for each in attributes if each.of_cases]
    yield from (_Like((a, b), pair(a, b)) for a, b in itertools.combinations(of_cases, 2))
    of_events = [each for each in attributes if not each.of_cases]
    yield from (_Like((a, b), pair(a, b)) for a, b in itertools.combinations(of_events, 2))
    rows = [log.events.column(CASE_INDEX).to_numpy() for log in (used, judged)]
    for case in of_cases if of_events else ():
        kept = None if case.used is None else case.used.of(rows[0])
        spread = replace(case, of_cases=False, used=kept, judged=case.judged.of(rows[1]))
        yield from (_Like((case, event), pair(spread, event)) for event in of_events)


def _mean_of(likenesses: Sequence[_Like]) -> float | None:
    """Return the mean, with the lowest of what the release has: a mean of many hides one that is lost, and what the
    release lacks has names elsewhere."""
    mean = _mean(each.value for each in likenesses)
    if mean is None:
        return None
    kept = [
        Lowest(tuple(attribute.name for attribute in each.of), each.value)
        for each in likenesses
        if each.value is not None and all(attribute.used is not None for attribute in each.of)
    ]
    return Mean.of(mean, min(kept, key=lambda each: (each.value, each.names), default=None))


class Activities:
    """The activities of both logs (the one that is used, the one on which it is judged) by the same numbers."""

    def __init__(self, used: EventLog, judged: EventLog) -> None:
        self.numbers: dict[str, int] = {}
        codes = [_codes(log, self.numbers) for log in (used, judged)]
        self.size = len(self.numbers)
        self.codes = codes[1]
        self.rows = [_rows(each, self.size) for each in codes]
        self.ends = [_ends(each, log.offsets) for each, log in zip(codes, (used, judged), strict=True)]
        held = [_held(each, log, self.size) for each, log in zip(codes, (used, judged), strict=True)]
        share = np.bincount(held[1].activity, minlength=self.size) / held[1].cases
        varying = (share >= VARYING[0]) & (share <= VARYING[1])
        self.varying = int(varying.sum())
        self.held = [_only(each, varying) for each in held]

    def marginals(self, attribute: ComparedAttribute) -> float | None:
        """Return the similarity of an event attribute at each activity, by how often the original knows it there."""
        weights = np.bincount(self.codes[attribute.judged.known], minlength=self.size)
        if attribute.used is None or not weights.any():
            return 0.0 if weights.any() else None
        used, judged = self.rows
        found = [
            (marginal(attribute.used.of(used[i]), attribute.judged.of(judged[i])) or 0.0) * weights[i]
            for i in np.flatnonzero(weights).tolist()
        ]
        return float(np.sum(found) / weights.sum())

    def beside(self, attribute: ComparedAttribute) -> list[float | None]:
        """Return the similarities of pairs: the attribute with the last activity, and with whether each is there."""
        judged, used, size = attribute.codes
        if used is None:
            return [0.0] * (1 + self.varying)
        end = contingency((used, self.ends[0]), (judged, self.ends[1]), (size, self.size))
        there = presence((used, self.held[0]), (judged, self.held[1]), size, self.varying)
        return [end, *there.tolist()]


def _codes(log: EventLog, numbers: dict[str, int]) -> IntArray:
    labels, codes = log.activity_codes
    found: IntArray = np.array([numbers.setdefault(label, len(numbers)) for label in labels], dtype=np.int64)[codes]
    return found


def _rows(codes: IntArray, size: int) -> list[IntArray]:
    """Return the events of every activity."""
    ends = np.cumsum(np.bincount(codes, minlength=size))
    return np.split(np.argsort(codes, kind="stable"), ends[:-1])


def _ends(codes: IntArray, offsets: IntArray) -> IntArray:
    """Return the last activity of every case, -1 for a case without events."""
    found = np.full(len(offsets) - 1, -1, dtype=np.int64)
    some = np.diff(offsets) > 0
    found[some] = codes[offsets[1:][some] - 1]
    return found


def _held(codes: IntArray, log: EventLog, size: int) -> Presence:
    pairs = np.sort(log.events.column(CASE_INDEX).to_numpy() * size + codes)
    pairs = pairs[np.flatnonzero(np.diff(pairs, prepend=-1))]
    return Presence(log.number_of_cases, pairs // size, pairs % size)


def _only(held: Presence, activities: BoolArray) -> Presence:
    """Return what it has of these activities, numbered anew."""
    kept = activities[held.activity]
    return Presence(held.cases, held.case[kept], np.cumsum(activities)[held.activity[kept]] - 1)


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


ATTRIBUTES = _OfAttributes(score=_scores, **facts_of("attributes"))
