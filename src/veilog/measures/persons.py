"""Whose the cases are, where a log tells, and parts of a log that have nobody in common.

Cases that stand for others (a control, cases that are held out) say nothing of others if the same people have cases
among the rest: what was seen of their other visits tells of these.
"""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from veilog._typing import IntArray
from veilog.errors import ParameterError
from veilog.logs.eventlog import ACTIVITY, TIMESTAMP, EventLog
from veilog.logs.facts import person_columns
from veilog.logs.variants import Variants
from veilog.privacy.persons import columns_of_persons, owners


def person_of(log: EventLog | Variants) -> str | None:
    """Return the column that seems to tell whose a case is, of several the one with the most values: a hint (see
    :func:`veilog.logs.facts.person_columns`); None where there is none, and of variants."""
    found = () if isinstance(log, Variants) else person_columns(log)
    return found[0].column if found else None


def column_of(log: EventLog | Variants, person: str | bool) -> str | None:
    """Return the column that tells whose a case is: this one, or with True the one that seems to; None with False."""
    return person_of(log) if person is True else person or None


def persons_of(log: EventLog | Variants, person: str | bool) -> IntArray | None:
    """Return the person of each case by a number, whatever the order of rows: told by this column, or with True by the
    one that seems to tell; a case that names nobody is somebody's own. None where no column tells, or nobody has
    several cases."""
    column = column_of(log, person)
    if column is None or isinstance(log, Variants):
        return None
    columns_of_persons(log, column, "person")
    owner = numbered(log, column)
    return owner if int(owner.max(initial=-1)) + 1 < len(owner) else None


def check_apart(original: EventLog | Variants, control: EventLog | Variants | None, person: str | bool = True) -> None:
    """Refuse people as a control who are in the original, too: what a release tells of them is no measure of what it
    tells of others. They are told by the column of a ``person``, which the original has to have, and cases by their
    names and all of their events."""
    if not isinstance(original, EventLog):
        return
    if isinstance(person, str):
        columns_of_persons(original, person, "person")
    if not isinstance(control, EventLog):
        return
    column = column_of(original, person)
    if column is not None and (isinstance(person, str) or has_column(control, column)):
        _check_people(original, control, column)
    same = _cases_in(control) & _cases_in(original)
    if same:
        raise ParameterError(
            "control-case-in-original" if len(same) == 1 else "control-cases-in-original",
            parameter="control",
            number_of_cases=control.number_of_cases,
            number=len(same),
        )


def _check_people(original: EventLog, control: EventLog, column: str) -> None:
    for log in (original, control):
        columns_of_persons(log, column, "person")
    before, beside = (pc.unique(owners(log, column).named.drop_null()) for log in (original, control))
    same = pc.sum(pc.is_in(beside, value_set=before)).as_py() or 0
    if same:
        raise ParameterError(
            "control-person-in-original" if same == 1 else "control-people-in-original",
            parameter="control",
            number=len(beside),
            name=column,
            same=same,
        )


def has_column(log: EventLog, column: str) -> bool:
    """Return whether a log has this column of persons."""
    try:
        return bool(columns_of_persons(log, column))
    except ParameterError:
        return False


def _cases_in(log: EventLog) -> set[tuple[str, tuple[str, ...], tuple[int | None, ...]]]:
    """The cases by all that tells them: their names, and their events with their times. Those without a name or any
    time are none: names that are numbers occur in every log."""
    labels, codes = log.activity_codes
    times = log.events.column(TIMESTAMP).cast(pa.int64()).to_pylist()
    names = log.cases.column(ACTIVITY).cast(pa.string()).to_pylist()
    activities, bounds = [labels[code] for code in codes.tolist()], log.offsets.tolist()
    parts = [slice(first, last) for first, last in itertools.pairwise(bounds)]
    cases = ((name, tuple(activities[part]), tuple(times[part])) for name, part in zip(names, parts, strict=True))
    return {case for case in cases if case[0] is not None and any(time is not None for time in case[2])}


def parted(log: EventLog, person: str, cases: int, generator: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Return the rows of about so many cases, and of the others, ascending: of people drawn at random, as many as come
    nearest to that, and at least one on each side. Nobody has cases on both; a case of which it is not known whose it
    is counts as somebody's own. No case's side depends on the order of rows."""
    owner = numbered(log, person)
    size = np.bincount(owner)
    if len(size) < 2:
        code = "control-of-one-person" if len(size) else "control-without-people"
        raise ParameterError(code, parameter="person", person=person)
    mixed = generator.permutation(len(size))
    off = np.abs(np.cumsum(size[mixed])[:-1] - cases)
    last = len(off) - 1 - int(off[::-1].argmin())  # of two that are as near the larger part
    drawn = np.isin(owner, mixed[: last + 1])
    return np.flatnonzero(drawn), np.flatnonzero(~drawn)


def in_order(log: EventLog) -> IntArray:
    """Return the rows of the cases by their names: an order that is not that of the rows."""
    return np.asarray(pc.sort_indices(log.cases.column(ACTIVITY).cast(pa.string())), dtype=np.int64)


def numbered(log: EventLog, column: str) -> IntArray:
    """The person of each case by a number, those first whose first case is, by the names of cases."""
    encoded = owners(log, column).named.dictionary_encode()
    found = np.array(pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False), dtype=np.int64)
    unknown = found < 0
    found[unknown] = len(encoded.dictionary) + np.arange(int(unknown.sum()))
    order = in_order(log)
    _, first, number = np.unique(found[order], return_index=True, return_inverse=True)
    numbered = np.empty(len(found), dtype=np.int64)
    numbered[order] = np.argsort(np.argsort(first))[number]
    return numbered
