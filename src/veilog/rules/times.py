"""Rules on the time between activities: events they pair, and times that obey.

A rule from A to B is about every A with the next B after it, if neither A nor B is between them. ``*`` is any activity.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from veilog._typing import BoolArray, FloatArray, IntArray
from veilog.logs.variants import Repeated, Sequences

ANY = "*"
_UNITS = {"s": 1, "min": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(s|min|h|d|w)")
_SECOND = 1_000_000
Codes: TypeAlias = npt.NDArray[np.integer]


def microseconds_in(text: object) -> float | None:
    """Return the microseconds of a text such as ``30 min``, None without a duration."""
    match = _DURATION.fullmatch(text.strip()) if isinstance(text, str) else None
    return None if match is None else float(round(float(match[1]) * _UNITS[match[2]] * _SECOND))


@dataclass(frozen=True)
class TimeRule:
    """Least and most microseconds from one activity to the next event of another."""

    first: str
    second: str
    least: float = 0.0
    most: float = np.inf

    @property
    def activities(self) -> tuple[str, ...]:
        """Activities that it names."""
        return tuple(name for name in (self.first, self.second) if name != ANY)

    def pairs(self, labels: Sequence[str], codes: Codes, owners: IntArray) -> tuple[IntArray, IntArray]:
        """Return the events that it pairs, where ``owners`` is the case of each event."""
        first, second = (
            np.ones(len(codes), dtype=bool)
            if name == ANY
            else np.array([label == name for label in labels], dtype=bool)[codes]
            for name in (self.first, self.second)
        )
        either = np.flatnonzero(first | second)
        one, other = either[:-1], either[1:]
        ours = first[one] & second[other] & (owners[one] == owners[other])
        return one[ours], other[ours]

    def broken(
        self, labels: Sequence[str], codes: Codes, owners: IntArray, times: FloatArray
    ) -> tuple[IntArray, BoolArray]:
        """Return each pair's case, and True if its time is known and breaks the rule."""
        one, other = self.pairs(labels, codes, owners)
        passed = times[other] - times[one]
        return owners[one], (passed < self.least) | (passed > self.most)


def direct_bounds(rules: Sequence[TimeRule], labels: Sequence[str]) -> tuple[FloatArray, FloatArray]:
    """Return the least and the most seconds between two directly following activities."""
    low, high = np.zeros((len(labels), len(labels))), np.full((len(labels), len(labels)), np.inf)
    for rule in rules:
        first, second = (np.array([name in (ANY, label) for label in labels]) for name in (rule.first, rule.second))
        both = np.outer(first, second)
        low[both] = np.maximum(low[both], rule.least / _SECOND)
        high[both] = np.minimum(high[both], rule.most / _SECOND)
    return low, high


def possible(rules: Sequence[TimeRule], sequences: Sequences) -> BoolArray:
    """Return True for each sequence with times that obey all rules."""
    found = np.ones(len(sequences), dtype=bool)
    if any(rule.least > 0 for rule in rules) and any(rule.most < np.inf for rule in rules):
        for row in range(len(sequences)):
            one = sequences.rows(row, row + 1)
            found[row] = bool((np.diag(_closest(rules, one.labels, one.codes)) >= 0).all())
    return found


def obeying_times(rules: Sequence[TimeRule], cases: Repeated, times: IntArray) -> IntArray:
    """Return times of released cases that obey all rules, with simple small moves.

    Event after event moves to the nearest time that lets those after it obey, too. Times of a case never fall.
    """
    found, distinct = times.copy(), cases.distinct
    order = np.argsort(cases.owner, kind="stable")
    ends = np.cumsum(cases.counts)
    for row in range(len(distinct)):
        one = distinct.rows(row, row + 1)
        ours = order[ends[row] - cases.counts[row] : ends[row]]
        place = cases.offsets[ours][:, None] + np.arange(len(one.codes))
        moved = _move_times(rules, one.labels, one.codes, found[place].astype(np.float64))
        if moved is not None:
            found[place] = moved.astype(np.int64)
    return found


def _move_times(rules: Sequence[TimeRule], labels: Sequence[str], codes: Codes, times: FloatArray) -> FloatArray | None:
    """Return times of cases of one sequence, a row each, that obey; None if they do."""
    owners, wrong = np.zeros(len(codes), dtype=np.int64), np.zeros(len(times), dtype=bool)
    for rule in rules:
        one, other = rule.pairs(labels, codes, owners)
        passed = times[:, other] - times[:, one]
        wrong |= ((passed < rule.least) | (passed > rule.most)).any(axis=1)
    if not wrong.any():
        return None
    most = _closest(rules, labels, codes)
    result, some = times.copy(), times[wrong]
    for place in range(1, len(codes)):
        before = some[:, :place]
        latest = (before + most[:place, place]).min(axis=1)
        some[:, place] = np.clip(some[:, place], (before - most[place, :place]).max(axis=1), latest)
    result[wrong] = some
    return result


def _closest(rules: Sequence[TimeRule], labels: Sequence[str], codes: Codes) -> FloatArray:
    """Return ``[i, j]``: the most by which event j can be after event i, by all rules.

    These are shortest paths (Floyd and Warshall). A diagonal below 0 means that the rules contradict each other.
    """
    number, owners = len(codes), np.zeros(len(codes), dtype=np.int64)
    most = np.full((number, number), np.inf)
    np.fill_diagonal(most, 0.0)
    later = np.arange(1, number)
    most[later, later - 1] = 0.0
    for rule in rules:
        one, other = rule.pairs(labels, codes, owners)
        most[one, other] = np.minimum(most[one, other], rule.most)
        most[other, one] = np.minimum(most[other, one], -rule.least)
    for middle in range(number):
        np.minimum(most, most[:, middle, None] + most[middle], out=most)
    return most
