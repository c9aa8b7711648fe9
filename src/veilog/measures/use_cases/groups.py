"""Comparing groups: by how much more of the cases of a group have an activity than of all others.

A group is the cases that have one value of an attribute of cases; numbers and dates are cut at quantiles of the
original. For group g and activity a the *gap* is the share of the cases of g that have a, less that share among all
other cases. People report gaps that are large, so those count that are ``LEAST`` or more in the original, between
groups of ``FEWEST`` cases or more:

- *gaps*: the mean distance between a gap of the release and that of the original;
- *size_of_gaps*: sum(x y) / sum(x^2), with x the gaps of the original and y those of the release, at most 1; below 1
  groups come out more alike than they are;
- *reversed*: the part of the gaps that have the other sign.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from veilog._typing import BoolArray, FloatArray, IntArray
from veilog.errors import ParameterError
from veilog.logs.eventlog import EventLog
from veilog.measures.measure import Log, Pair
from veilog.measures.use_cases.attributes import compared
from veilog.measures.use_cases.use_case import UseCase, UseCaseOptions, facts_of

LEAST = 0.1
"""Gaps below this are seldom reported, and chance makes them."""
FEWEST = 30
"""Cases of a group, and of all others: fewer tell no gap of a tenth."""


def _scores(used: Log, judged: Log, asked: UseCaseOptions) -> Mapping[str, float | None]:
    original, released = Pair(judged, used).whole
    found = [*_gaps(released, original, asked.column)]
    real, made = (np.concatenate([gaps[side] for gaps in found]) for side in (0, 1))
    large = np.abs(real) >= LEAST
    real, made = real[large], made[large]
    if not len(real):
        raise ParameterError("groups-alike", parameter="original", least=LEAST)
    return {
        "gaps": float(np.abs(made - real).mean()),
        "size_of_gaps": min(1.0, float(real @ made / (real @ real))),
        "reversed": float((real * made < 0).mean()),
    }


def _gaps(used: EventLog, judged: EventLog, person: str | None) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield the gaps of the log judged, and of the other one, of each attribute of cases that both have."""
    numbers: dict[str, int] = {}
    theirs, ours = _having(judged, numbers), _having(used, numbers)
    found = False
    for attribute in compared(used, judged, person):
        group_judged, group_used, size = attribute.codes
        if not attribute.of_cases or group_used is None:
            continue
        found = True
        real, enough = _gaps_of(theirs, group_judged, size, len(numbers))
        made, _ = _gaps_of(ours, group_used, size, len(numbers))
        yield real[enough].ravel(), made[enough].ravel()
    if not found:
        raise ParameterError("groups-none-in-both", parameter="released")


def _having(log: EventLog, numbers: dict[str, int]) -> tuple[IntArray, IntArray]:
    """Return each case once with each of its activities, by the numbers of these."""
    labels, codes = log.activity_codes
    number = np.array([numbers.setdefault(label, len(numbers)) for label in labels], dtype=np.int64)
    case = np.repeat(np.arange(len(log.offsets) - 1), np.diff(log.offsets))
    case, activity = np.divmod(np.unique(case * max(1, len(labels)) + codes), max(1, len(labels)))
    return case, number[activity]


def _gaps_of(
    having: tuple[IntArray, IntArray], group: IntArray, size: int, activities: int
) -> tuple[FloatArray, BoolArray]:
    """Return the gap of each group at each activity, and which groups have enough cases, as all others have."""
    case, activity = having
    known = group >= 0
    cases = np.bincount(group[known], minlength=size)[:, None]
    ours = known[case]
    table = np.bincount(group[case[ours]] * activities + activity[ours], minlength=size * activities)
    have = table.reshape(size, activities)
    others, rest = cases.sum() - cases, have.sum(axis=0) - have
    gaps = have / np.maximum(cases, 1) - rest / np.maximum(others, 1)
    gaps[((cases == 0) | (others == 0))[:, 0]] = 0.0
    return gaps, np.asarray(((cases >= FEWEST) & (others >= FEWEST))[:, 0])


GROUPS = UseCase(score=_scores, **facts_of("groups"))
