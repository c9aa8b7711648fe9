"""Which attributes of two logs are compared, and their values in arrays that mean the same for both.

Compared are the attributes of the original that vary and do not name: not those with one value only, nor text and whole
numbers whose values occur no more than twice on average (names of cases, numbers of invoices, remarks), nor XES ids,
nor the column that tells whose a case is. Numbers and dates are ordered, everything else is a category. An event
attribute that has one value in (nearly) every case, such as a patient's age, is one of cases, wherever in the case it
stands: its first known value counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from veilog._typing import AnyArray, BoolArray, FloatArray, IntArray
from veilog.errors import ParameterError
from veilog.logs.eventlog import ACTIVITY, CASE_INDEX, EVENT_INDEX, LIFECYCLE, NESTED, TIMESTAMP, EventLog
from veilog.logs.xes.columns import field_key, field_type, legal_keys
from veilog.privacy.persons import columns_of_persons

PARTS = 10
"""Into about so many parts, each of as many values of the original, a number is cut that is compared as a category."""
ONE_VALUE = 0.99
"""Share of the cases, of those in which it is known, that have one value of an event attribute that is one of cases."""

_NO_ATTRIBUTES = {ACTIVITY, TIMESTAMP, CASE_INDEX, EVENT_INDEX, NESTED}


@dataclass(frozen=True, eq=False)
class Values:
    """One attribute in one log: a value for every case, or for every event."""

    array: AnyArray
    """Numbers with NaN where unknown, or categories as integers with -1."""

    @cached_property
    def known(self) -> BoolArray:
        return ~np.isnan(self.array) if self.array.dtype == np.float64 else self.array >= 0

    def of(self, rows: AnyArray) -> Values:
        """Return those of some cases or events."""
        return Values(self.array[rows])


@dataclass(frozen=True, eq=False)
class ComparedAttribute:
    """One attribute of the original and what the log that is used in its place has of it."""

    name: str
    """With ``case:`` before it if the original has it at its cases."""
    of_cases: bool
    """Whether there is a value for every case, not for every event."""
    ordered: bool
    """Whether it is a number or a date."""
    judged: Values
    used: Values | None
    """None where that log does not have it, or has text where the original has numbers."""

    @cached_property
    def codes(self) -> tuple[IntArray, IntArray | None, int]:
        """As categories, numbers by quantiles of the original: of the judged log, of the used one, how many."""
        both = (self.judged, self.used)
        if self.ordered:
            ends = _ends(self.judged.array[np.isfinite(self.judged.array)])
            first, second = (None if values is None else _cut(values, ends) for values in both)
            size = len(ends) + 1
        else:
            first, second = (None if values is None else values.array for values in both)
            size = 1 + max(int(codes.max(initial=0)) for codes in (first, second) if codes is not None)
        assert first is not None
        return first, second, size


def compared(used: EventLog, judged: EventLog, person: str | None = None) -> tuple[ComparedAttribute, ...]:
    """Return what there is to compare, without the column of a ``person``; :class:`ParameterError` where the judged log
    has nothing of the kind."""
    left_out = _left_out(judged, person)
    found = (*_of_cases(used, judged, left_out), *_of_events(used, judged, left_out))
    if not found:
        raise ParameterError("use-case-without-attributes", parameter="original")
    return found


def not_kept(used: EventLog, judged: EventLog, person: str | None = None) -> tuple[str, ...]:
    """Return the names of the attributes that are compared and that the log which is used does not have."""
    left_out = _left_out(judged, person)
    kinds = (("case:", judged.cases, used.cases), ("", judged.events, used.events))
    return tuple(
        prefix + field.name
        for prefix, of_judged, of_used in kinds
        for field in of_judged.schema
        if field.name not in left_out
        and _is_compared(field, of_judged.column(field.name))
        and _found(field, of_judged, of_used) is None
    )


def _left_out(judged: EventLog, person: str | None) -> set[str]:
    """Return the columns that are no attributes, those with names of persons among them."""
    return _NO_ATTRIBUTES | (set() if person is None else {*columns_of_persons(judged, person)})


def _of_cases(used: EventLog, judged: EventLog, left_out: set[str]) -> Iterator[ComparedAttribute]:
    for field in judged.cases.schema:
        if field.name not in left_out and _is_compared(field, judged.cases.column(field.name)):
            yield _attribute(f"case:{field.name}", field, judged.cases, used.cases, of_cases=True)


def _of_events(used: EventLog, judged: EventLog, left_out: set[str]) -> Iterator[ComparedAttribute]:
    for field in judged.events.schema:
        if field.name not in left_out and _is_compared(field, judged.events.column(field.name)):
            found = _attribute(field.name, field, judged.events, used.events, of_cases=False)
            if not _has_one_value_a_case(found.judged, judged):
                yield found
                continue
            first = None if found.used is None else _first_known(found.used, used)
            yield replace(found, of_cases=True, judged=_first_known(found.judged, judged), used=first)


def _is_compared(field: pa.Field, column: pa.ChunkedArray) -> bool:
    kind = field_type(field)
    if kind == "id":
        return False
    known = len(column) - column.null_count
    distinct = len((column if _is_ordered(kind) else column.cast(pa.string())).unique().drop_null())
    if not known or (distinct == 1 and known == len(column)):
        return False
    return kind not in ("string", "int") or known > 2 * distinct


def _attribute(name: str, field: pa.Field, judged: pa.Table, used: pa.Table, *, of_cases: bool) -> ComparedAttribute:
    ordered, found = _is_ordered(field_type(field)), _found(field, judged, used)
    labels: dict[str, int] = {}
    columns = (judged.column(field.name), None if found is None else used.column(found.name))
    first, second = (
        None if column is None else Values(_numbers(column) if ordered else _categories(column, labels))
        for column in columns
    )
    assert first is not None
    return ComparedAttribute(name, of_cases, ordered, first, second)


def _found(field: pa.Field, judged: pa.Table, used: pa.Table) -> pa.Field | None:
    """Return the field of the used log's table for this one; None, too, where it has text for numbers, and of a life
    cycle of one transition: every event that is written as XES has one."""
    found = _same(field, judged, used)
    if found is not None and found.name == LIFECYCLE and len(used.column(LIFECYCLE).unique()) < 2:
        return None
    of_another_kind = found is not None and _is_ordered(field_type(field)) and not _is_ordered(field_type(found))
    return None if of_another_kind else found


def _same(field: pa.Field, judged: pa.Table, used: pa.Table) -> pa.Field | None:
    """Return the field of the used log's table for this one; XES files have names without spaces for those with."""
    if field.name in used.column_names:
        return used.schema.field(field.name)
    place = judged.column_names.index(field.name)
    key = field_key(legal_keys(judged.slice(0, 0)).schema.field(place))
    return next((other for other in used.schema if field_key(other) == key), None)


def _is_ordered(kind: str) -> bool:
    return kind in ("int", "float", "date")


def _numbers(column: pa.ChunkedArray) -> FloatArray:
    """Return numbers, and dates in microseconds, with NaN where there are none."""
    if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
        column = column.cast(pa.timestamp("us", tz=getattr(column.type, "tz", None))).cast(pa.int64())
    numbers = column.cast(pa.float64(), safe=False).combine_chunks()
    found: FloatArray = numbers.fill_null(np.nan).to_numpy(zero_copy_only=False)
    return found


def _categories(column: pa.ChunkedArray, labels: dict[str, int]) -> IntArray:
    """Return the values as integers, new ones with the next numbers in their order, and -1 where there are none."""
    coded = column.cast(pa.string()).combine_chunks().dictionary_encode()
    values = coded.dictionary.to_pylist()
    for value in sorted(values):  # whatever order the rows are in
        labels.setdefault(value, len(labels))
    own = [labels[value] for value in values]
    number = np.array([*own, -1], dtype=np.int64)  # the last one is that of -1
    found: IntArray = number[coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)]
    return found


def _ends(values: FloatArray) -> FloatArray:
    """Return the largest number of each part but the last: quantiles, each once, so that no part is empty here.

    A value that more than one in ``PARTS`` have is a part of its own. Equal widths would put nearly all numbers of a
    long tail, such as amounts, into one part, and no dependence on them could be seen.
    """
    if not len(values):
        return values
    found, count = np.unique(values, return_counts=True)
    tenths = np.quantile(values, np.arange(1, PARTS) / PARTS, method="inverted_cdf")
    frequent = found[count * PARTS > len(values)]
    # A frequent value is a quantile, so the end of its part; the part before ends just below it.
    ends = np.unique(np.concatenate([tenths, np.nextafter(frequent, -np.inf)]))
    after = np.searchsorted(found, ends, side="right")
    last = np.diff(after, append=len(found)) > 0  # of two with no value between, and none at the very end
    return np.asarray(ends[last & (after > 0)])


def _cut(values: Values, ends: FloatArray) -> IntArray:
    """Return for every number its part, the first or last one where it lies outside of all, and -1 where unknown."""
    return np.where(values.known, np.searchsorted(ends, values.array), -1)


def _has_one_value_a_case(values: Values, log: EventLog) -> bool:
    case, array = _known_by_case(values, log)
    if not len(case):
        return False
    same = case[1:] == case[:-1]
    changed = np.zeros(log.number_of_cases, dtype=np.bool_)
    changed[case[1:][same & (array[1:] != array[:-1])]] = True
    return int(changed.sum()) <= (1 - ONE_VALUE) * (len(case) - int(same.sum()))


def _first_known(values: Values, log: EventLog) -> Values:
    case, array = _known_by_case(values, log)
    missing = np.nan if array.dtype == np.float64 else -1
    found = np.full(log.number_of_cases, missing, dtype=array.dtype)
    first = np.concatenate(([True], case[1:] != case[:-1])) if len(case) else np.zeros(0, dtype=np.bool_)
    found[case[first]] = array[first]
    return Values(found)


def _known_by_case(values: Values, log: EventLog) -> tuple[IntArray, AnyArray]:
    """Return the cases of the events where it is known, and its values there."""
    return log.events.column(CASE_INDEX).to_numpy()[values.known], values.array[values.known]
