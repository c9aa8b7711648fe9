"""Persons of the cases, and parts of a log that have no person in common.

Cases can stand for others: a control, or cases that are held out. They measure nothing about these others if the same
people also have cases among the rest. An observation of a person's other visits would reveal these.
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
    """Return the likeliest column of persons; None if there is none, or for variants.

    Of several columns, the one with the most values counts. It is a hint (see
    :func:`veilog.logs.facts.person_columns`).
    """
    found = () if isinstance(log, Variants) else person_columns(log)
    return found[0].column if found else None


def column_of(log: EventLog | Variants, person: str | bool) -> str | None:
    """Return the column that names the person of a case, if there is one.

    It is ``person`` itself, with True the likeliest column, and with False None.
    """
    return person_of(log) if person is True else person or None


def persons_of(log: EventLog | Variants, person: str | bool) -> IntArray | None:
    """Return the person of each case as a number that does not depend on row order.

    The column is ``person``, or with True the likeliest one. A case without a person counts as a person of its own. The
    result is None where no column names persons, or no person has several cases.
    """
    column = column_of(log, person)
    if column is None or isinstance(log, Variants):
        return None
    columns_of_persons(log, column, "person")
    owner = numbered(log, column)
    return owner if int(owner.max(initial=-1)) + 1 < len(owner) else None


def check_apart(original: EventLog | Variants, control: EventLog | Variants | None, person: str | bool = True) -> None:
    """Refuse a control with people who are in the original, too.

    What a release reveals about them does not measure what it reveals about others. The column of a ``person``, which
    the original must have, identifies people. The name and all events of a case identify cases.
    """
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
    """Return True if the log has this column of persons."""
    try:
        return bool(columns_of_persons(log, column))
    except ParameterError:
        return False


def _cases_in(log: EventLog) -> set[tuple[str, tuple[str, ...], tuple[int | None, ...]]]:
    """Return the cases of a log by their names, activities and times.

    Cases without a name or without any time are left out, because names that are numbers occur in every log.
    """
    labels, codes = log.activity_codes
    times = log.events.column(TIMESTAMP).cast(pa.int64()).to_pylist()
    names = log.cases.column(ACTIVITY).cast(pa.string()).to_pylist()
    activities, bounds = [labels[code] for code in codes.tolist()], log.offsets.tolist()
    parts = [slice(first, last) for first, last in itertools.pairwise(bounds)]
    cases = ((name, tuple(activities[part]), tuple(times[part])) for name, part in zip(names, parts, strict=True))
    return {case for case in cases if case[0] is not None and any(time is not None for time in case[2])}


def split_persons(log: EventLog, person: str, cases: int, generator: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Return the rows of about ``cases`` cases, and those of the others, ascending.

    Whole persons are drawn at random, as many as come nearest to that number, with at least one on each side. No person
    has cases on both sides. A case without a person counts as a person of its own. The side of a case does not depend
    on the order of rows.
    """
    owner = numbered(log, person)
    size = np.bincount(owner)
    if len(size) < 2:
        code = "control-of-one-person" if len(size) else "control-without-people"
        raise ParameterError(code, parameter="person", person=person)
    mixed = generator.permutation(len(size))
    off = np.abs(np.cumsum(size[mixed])[:-1] - cases)
    last = len(off) - 1 - int(off[::-1].argmin())  # if two are as near, the larger part
    drawn = np.isin(owner, mixed[: last + 1])
    return np.flatnonzero(drawn), np.flatnonzero(~drawn)


def case_order(log: EventLog) -> IntArray:
    """Return the rows of the cases ordered by case name, independent of row order."""
    return np.asarray(pc.sort_indices(log.cases.column(ACTIVITY).cast(pa.string())), dtype=np.int64)


def numbered(log: EventLog, column: str) -> IntArray:
    """Return the person of each case as a number, by the person's first case name."""
    encoded = owners(log, column).named.dictionary_encode()
    found = np.array(pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False), dtype=np.int64)
    unknown = found < 0
    found[unknown] = len(encoded.dictionary) + np.arange(int(unknown.sum()))
    order = case_order(log)
    _, first, number = np.unique(found[order], return_index=True, return_inverse=True)
    numbered = np.empty(len(found), dtype=np.int64)
    numbered[order] = np.argsort(np.argsort(first))[number]
    return numbered
