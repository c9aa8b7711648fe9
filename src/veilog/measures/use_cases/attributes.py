"""Attributes: how well a release keeps their values, alone, in pairs and by path."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from veilog._typing import AnyArray, BoolArray, FloatArray, IntArray
from veilog.errors import ParameterError
from veilog.logs.eventlog import ACTIVITY, CASE_INDEX, EVENT_INDEX, LIFECYCLE, NESTED, TIMESTAMP, EventLog
from veilog.logs.xes.columns import field_key, field_type, legal_keys
from veilog.measures.measure import Log, Pair
from veilog.measures.persons import column_of
from veilog.measures.use_cases.sides import Splits
from veilog.measures.use_cases.use_case import Assessment, Lowest, Mean, UseCase, UseCaseOptions, facts_of
from veilog.messages import Message
from veilog.privacy.persons import columns_of_persons

# The attributes of two logs to compare, with their values in arrays that mean the same for both.
#
# Compared are the attributes of the original that vary and do not name. Left out are attributes with one value only,
# XES ids, and the column of persons. Text and whole numbers are left out, too, if their values occur no more than twice
# on average (names of cases, numbers of invoices, remarks). Numbers and dates are ordered, everything else is a
# category. An event attribute that has one value in (nearly) every case, such as a patient's age, counts as one of
# cases, wherever in the case it stands: its first known value counts.

PARTS = 10
"""Number of parts into which a number is cut as a category, each with equally many values of the original."""
ONE_VALUE = 0.99
"""Share of cases with one value, of those where it is known, above which an event attribute is one of cases."""

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
        """Return the values of some cases or events."""
        return Values(self.array[rows])


@dataclass(frozen=True, eq=False)
class ComparedAttribute:
    """One attribute of the original, and its values in the log that is used instead."""

    name: str
    """Name, with ``case:`` before it if the original has it at its cases."""
    of_cases: bool
    """True if there is a value for every case, not for every event."""
    ordered: bool
    """True if it is a number or a date."""
    judged: Values
    used: Values | None
    """Values in the used log; None where it lacks them, or has text where the original has numbers."""

    @cached_property
    def codes(self) -> tuple[IntArray, IntArray | None, int]:
        """Return both logs' categories, by the original's quantiles, and their number."""
        both = (self.judged, self.used)
        if self.ordered:
            ends = _ends(self.judged.array[np.isfinite(self.judged.array)])
            first, second = (None if values is None else _bin_numbers(values, ends) for values in both)
            size = len(ends) + 1
        else:
            first, second = (None if values is None else values.array for values in both)
            size = 1 + max(int(codes.max(initial=0)) for codes in (first, second) if codes is not None)
        assert first is not None
        return first, second, size


def compare_attributes(used: EventLog, judged: EventLog, person: str | None = None) -> tuple[ComparedAttribute, ...]:
    """Return the attributes to compare, without the column of a ``person``.

    Raises:
        ParameterError: When the judged log has no such attribute.

    """
    left_out = _excluded_columns(judged, person)
    found = (*_compare_case_attributes(used, judged, left_out), *_compare_event_attributes(used, judged, left_out))
    if not found:
        raise ParameterError("use-case-without-attributes", parameter="original")
    return found


def not_kept(used: EventLog, judged: EventLog, person: str | None = None) -> tuple[str, ...]:
    """Return the names of the compared attributes that the used log does not have."""
    left_out = _excluded_columns(judged, person)
    kinds = (("case:", judged.cases, used.cases), ("", judged.events, used.events))
    return tuple(
        prefix + field.name
        for prefix, of_judged, of_used in kinds
        for field in of_judged.schema
        if field.name not in left_out
        and _is_compared(field, of_judged.column(field.name))
        and _matching_field(field, of_judged, of_used) is None
    )


def _excluded_columns(judged: EventLog, person: str | None) -> set[str]:
    """Return the columns that are no attributes, with those that name persons."""
    return _NO_ATTRIBUTES | (set() if person is None else {*columns_of_persons(judged, person)})


def _compare_case_attributes(used: EventLog, judged: EventLog, left_out: set[str]) -> Iterator[ComparedAttribute]:
    for field in judged.cases.schema:
        if field.name not in left_out and _is_compared(field, judged.cases.column(field.name)):
            yield _attribute(f"case:{field.name}", field, judged.cases, used.cases, of_cases=True)


def _compare_event_attributes(used: EventLog, judged: EventLog, left_out: set[str]) -> Iterator[ComparedAttribute]:
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
    ordered, found = _is_ordered(field_type(field)), _matching_field(field, judged, used)
    labels: dict[str, int] = {}
    columns = (judged.column(field.name), None if found is None else used.column(found.name))
    first, second = (
        None if column is None else Values(_numbers(column) if ordered else _categories(column, labels))
        for column in columns
    )
    assert first is not None
    return ComparedAttribute(name, of_cases, ordered, first, second)


def _matching_field(field: pa.Field, judged: pa.Table, used: pa.Table) -> pa.Field | None:
    """Return the field of the used log for this one, or None.

    It is None where the used log has text for numbers. A life cycle of one transition is None, too, because every event
    that is written as XES has one.
    """
    found = _field_in(field, judged, used)
    if found is not None and found.name == LIFECYCLE and len(used.column(LIFECYCLE).unique()) < 2:
        return None
    of_another_kind = found is not None and _is_ordered(field_type(field)) and not _is_ordered(field_type(found))
    return None if of_another_kind else found


def _field_in(field: pa.Field, judged: pa.Table, used: pa.Table) -> pa.Field | None:
    """Return the field of the used log for this one; XES replaces spaces in names."""
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
    """Return the values as integers, -1 for none; new values get the next numbers."""
    coded = column.cast(pa.string()).combine_chunks().dictionary_encode()
    values = coded.dictionary.to_pylist()
    for value in sorted(values):  # whatever order the rows are in
        labels.setdefault(value, len(labels))
    own = [labels[value] for value in values]
    number = np.array([*own, -1], dtype=np.int64)  # the last one is that of -1
    found: IntArray = number[coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)]
    return found


def _ends(values: FloatArray) -> FloatArray:
    """Return the largest number of each part but the last: quantiles, each once.

    No part is empty here. A value that more than one in ``PARTS`` have is a part of its own. Equal widths would put
    nearly all numbers of a long tail, such as amounts, into one part, and no dependence on them could be seen.
    """
    if not len(values):
        return values
    found, count = np.unique(values, return_counts=True)
    tenths = np.quantile(values, np.arange(1, PARTS) / PARTS, method="inverted_cdf")
    frequent = found[count * PARTS > len(values)]
    # A frequent value is a quantile, so the end of its part; the part before ends just below it.
    ends = np.unique(np.concatenate([tenths, np.nextafter(frequent, -np.inf)]))
    after = np.searchsorted(found, ends, side="right")
    last = np.diff(after, append=len(found)) > 0  # the last of two without a value between, none at the end
    return np.asarray(ends[last & (after > 0)])


def _bin_numbers(values: Values, ends: FloatArray) -> IntArray:
    """Return the part of every number (outside of all: the nearest), -1 if unknown."""
    return np.where(values.known, np.searchsorted(ends, values.array), -1)


def _has_one_value_a_case(values: Values, log: EventLog) -> bool:
    case, array = _values_by_case(values, log)
    if not len(case):
        return False
    same = case[1:] == case[:-1]
    changed = np.zeros(log.number_of_cases, dtype=np.bool_)
    changed[case[1:][same & (array[1:] != array[:-1])]] = True
    return int(changed.sum()) <= (1 - ONE_VALUE) * (len(case) - int(same.sum()))


def _first_known(values: Values, log: EventLog) -> Values:
    case, array = _values_by_case(values, log)
    missing = np.nan if array.dtype == np.float64 else -1
    found = np.full(log.number_of_cases, missing, dtype=array.dtype)
    first = np.concatenate(([True], case[1:] != case[:-1])) if len(case) else np.zeros(0, dtype=np.bool_)
    found[case[first]] = array[first]
    return Values(found)


def _values_by_case(values: Values, log: EventLog) -> tuple[IntArray, AnyArray]:
    """Return the cases of the events where the value is known, and the values there."""
    return log.events.column(CASE_INDEX).to_numpy()[values.known], values.array[values.known]


# Similarities of two logs in one attribute, in two, and in one with the path of its case: 0 to 1, 1 for the same.
#
# These are the similarities of the package sdmetrics 0.32.0 (github.com/sdv-dev/SDMetrics, MIT; no code of theirs is
# here), each of distributions p of the original and q of the log used in its place:
#
# - *total variation complement* of categories: 1 - 1/2 sum |p - q|;
# - *Kolmogorov-Smirnov complement* of numbers and dates: 1 - max |F_p - F_q|;
# - *contingency similarity* of two categories: the first formula for their pairs of values. A number is cut at tenths
#   of the original's values (quantiles), where sdmetrics takes tenths of their range: of a long tail these put nearly
#   all into one part, and a lost dependence cannot be seen;
# - *correlation similarity* of two numbers: 1 - |r_p - r_q| / 2 with Pearson's r.
#
# An unknown value counts. In one attribute, the similarity is the product of two: of the shares of unknown values, and
# of the known values. Otherwise a value that nearly all events lack would be kept by lacking it. In a pair, unknown is
# one more value, and rows that know neither are left out.

_MOST_CELLS = 1 << 22
"""Number of pairs of values up to which every pair has a cell of its own."""


def marginal(used: Values | None, judged: Values) -> float | None:
    """Return the similarity of one attribute; None where neither log knows a value."""
    if used is None or not len(used.array):
        return 0.0
    shares = float(judged.known.mean()), float(used.known.mean())
    if not shares[0]:
        return 1 - shares[1] if shares[1] else None
    if not shares[1]:
        return 0.0
    return (1 - abs(shares[0] - shares[1])) * shape(used.array[used.known], judged.array[judged.known])


def shape(used: AnyArray, judged: AnyArray) -> float:
    """Return the Kolmogorov-Smirnov or, for categories, total variation complement."""
    if judged.dtype == np.float64:
        a, b = np.sort(used), np.sort(judged)
        both = np.concatenate([a, b])
        below = (np.searchsorted(part, both, side="right") / len(part) for part in (a, b))
        return 1 - float(np.abs(np.subtract(*below)).max())
    size = int(max(used.max(), judged.max())) + 1
    return 1 - float(np.abs(_shares(used, size) - _shares(judged, size)).sum()) / 2


def pair(first: ComparedAttribute, second: ComparedAttribute) -> float | None:
    """Return the similarity of two attributes; None if the original lacks two values."""
    if first.used is None or second.used is None:
        return 0.0
    if first.ordered and second.ordered:
        return correlation((first.used, second.used), (first.judged, second.judged))
    (judged_a, used_a, size_a), (judged_b, used_b, size_b) = first.codes, second.codes
    assert used_a is not None
    assert used_b is not None
    return contingency((used_a, used_b), (judged_a, judged_b), (size_a, size_b))


def correlation(used: tuple[Values, Values], judged: tuple[Values, Values]) -> float | None:
    """Return the correlation similarity; a constant number of a release correlates 0."""
    wanted = _pearson(*judged)
    if wanted is None:
        return None
    if int((used[0].known & used[1].known).sum()) < 2:
        return 0.0
    return 1 - abs(wanted - (_pearson(*used) or 0.0)) / 2


def contingency(
    used: tuple[IntArray, IntArray], judged: tuple[IntArray, IntArray], sizes: tuple[int, int]
) -> float | None:
    """Return the contingency similarity of two categories of these sizes, -1 unknown."""
    a, b = (_keys(*codes, sizes[1]) for codes in (used, judged))
    if not len(b):
        return None
    if not len(a):
        return 0.0
    size = (sizes[0] + 1) * (sizes[1] + 1)
    if size > _MOST_CELLS:
        found, place = np.unique(np.concatenate([a, b]), return_inverse=True)
        a, b, size = place[: len(a)], place[len(a) :], len(found)
    return 1 - float(np.abs(_shares(a, size) - _shares(b, size)).sum()) / 2


@dataclass(frozen=True, eq=False)
class Presence:
    """Cases of a log with their activities: a row for each activity of each case."""

    cases: int
    case: IntArray
    activity: IntArray

    def shares(self, codes: IntArray, size: int, activities: int) -> tuple[FloatArray, FloatArray]:
        """Return the shares of cases by category (or -1), with and without each activity."""
        cells = (codes[self.case] + 1) * activities + self.activity
        joint = np.bincount(cells, minlength=(size + 1) * activities).reshape(size + 1, activities) / self.cases
        return joint, _shares(codes + 1, size + 1)[:, None] - joint


def presence(
    used: tuple[IntArray, Presence], judged: tuple[IntArray, Presence], size: int, activities: int
) -> FloatArray:
    """Return the contingency similarities of a category with each activity's presence."""
    a, b = (held.shares(codes, size, activities) for codes, held in (used, judged))
    apart: FloatArray = (np.abs(a[0] - b[0]) + np.abs(a[1] - b[1])).sum(axis=0)
    return 1 - apart / 2


def _pearson(first: Values, second: Values) -> float | None:
    known = first.known & second.known
    x, y = first.array[known], second.array[known]
    if len(x) < 2 or x.min() == x.max() or y.min() == y.max():
        return None
    x, y = x - x.mean(), y - y.mean()
    found = float(x @ y / np.sqrt((x @ x) * (y @ y)))
    return found if np.isfinite(found) else None


def _keys(a: IntArray, b: IntArray, size: int) -> IntArray:
    """Return a number for each pair of values of which at least one is known."""
    known = (a >= 0) | (b >= 0)
    return (a[known] + 1) * (size + 1) + b[known] + 1


def _shares(codes: IntArray, size: int) -> FloatArray:
    return np.bincount(codes, minlength=size) / len(codes)


# Attributes as a use case: each by itself, in pairs, by activity, and together with the path of the case.

NAMED = 30
"""Largest number of lost attributes to name."""
VARYING = (0.1, 0.9)
"""Shares of the original's cases between which an activity distinguishes cases."""


def marginals(used: EventLog, judged: EventLog, person: str | None = None) -> dict[str, float]:
    """Return the similarity of each attribute of the original by itself; 0 if lost.

    The names of attributes of cases have ``case:`` before them.
    """
    found = ((each.name, marginal(each.used, each.judged)) for each in compare_attributes(used, judged, person))
    return {name: value for name, value in found if value is not None}


class _OfAttributes(UseCase):
    """Use case that also names the lost attributes and the omitted column of persons."""

    def judged(self, sides: Splits, asked: UseCaseOptions) -> Assessment:
        found = super().judged(sides, asked)
        if not found.aspects:
            return found
        original, released = sides.pair.whole
        person = asked.column
        reasons = _missing_messages(not_kept(released, original, person))
        if person:
            reasons += (Message("attribute-of-persons", name=person),)
        return replace(found, reasons=reasons)


def no_attributes(original: EventLog, released: EventLog, person: str | bool = True) -> Assessment | None:
    """Return the result for a release without attributes, without computing anything.

    It is None where the original has none, either. The person of a case is no attribute here: see
    :func:`veilog.measures.persons.column_of`.
    """
    names = not_kept(released, original, column_of(original, person))
    none = Message("attributes-not-in-release")
    return Assessment(ATTRIBUTES, reasons=(none, *_missing_messages(names))) if names else None


def _missing_messages(names: Sequence[str]) -> tuple[Message, ...]:
    if not names:
        return ()
    code = "attributes-not-kept-more" if len(names) > NAMED else "attributes-not-kept"
    return (Message(code, names=", ".join(names[:NAMED]), n=len(names) - NAMED),)


def _scores(used: Log, judged: Log, asked: UseCaseOptions) -> Mapping[str, float | None]:
    original, released = Pair(judged, used).whole
    attributes = compare_attributes(released, original, asked.column)
    own = Activities(released, original)
    alone = [_Like((each,), marginal(each.used, each.judged)) for each in attributes]
    return {
        "shapes": _mean_of(alone),
        "pairs": _mean_of([*_pairs(attributes, released, original)]),
        "by_activity": _mean(own.marginals(each) for each in attributes if not each.of_cases),
        "with_control_flow": _mean(itertools.chain(*(own.beside(each) for each in attributes if each.of_cases))),
    }


class _Like(NamedTuple):
    """Similarity of one attribute, or of two; None where it is unknown."""

    of: tuple[ComparedAttribute, ...]
    value: float | None


def _pairs(attributes: Sequence[ComparedAttribute], used: EventLog, judged: EventLog) -> Iterator[_Like]:
    """Yield the similarity of every two attributes, by case if both are of cases."""
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
    """Return the mean, with the lowest value that the release has.

    A mean of many hides one that is lost. The attributes that the release lacks are named elsewhere.
    """
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
    """Activities of the used and of the judged log, by the same numbers."""

    def __init__(self, used: EventLog, judged: EventLog) -> None:
        self.numbers: dict[str, int] = {}
        codes = [_codes(log, self.numbers) for log in (used, judged)]
        self.size = len(self.numbers)
        self.codes = codes[1]
        self.rows = [_rows(each, self.size) for each in codes]
        self.ends = [_case_ends(each, log.offsets) for each, log in zip(codes, (used, judged), strict=True)]
        held = [_count_presence(each, log, self.size) for each, log in zip(codes, (used, judged), strict=True)]
        share = np.bincount(held[1].activity, minlength=self.size) / held[1].cases
        varying = (share >= VARYING[0]) & (share <= VARYING[1])
        self.varying = int(varying.sum())
        self.held = [_select_activities(each, varying) for each in held]

    def marginals(self, attribute: ComparedAttribute) -> float | None:
        """Return the similarity of an event attribute at each activity.

        The activities are weighted by how often the original knows the attribute there.
        """
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
        """Return the similarities of the attribute with the last, and with each, activity."""
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


def _case_ends(codes: IntArray, offsets: IntArray) -> IntArray:
    """Return the last activity of every case, -1 for a case without events."""
    found = np.full(len(offsets) - 1, -1, dtype=np.int64)
    some = np.diff(offsets) > 0
    found[some] = codes[offsets[1:][some] - 1]
    return found


def _count_presence(codes: IntArray, log: EventLog, size: int) -> Presence:
    pairs = np.sort(log.events.column(CASE_INDEX).to_numpy() * size + codes)
    pairs = pairs[np.flatnonzero(np.diff(pairs, prepend=-1))]
    return Presence(log.number_of_cases, pairs // size, pairs % size)


def _select_activities(held: Presence, activities: BoolArray) -> Presence:
    """Return the presence of these activities only, numbered anew."""
    kept = activities[held.activity]
    return Presence(held.cases, held.case[kept], np.cumsum(activities)[held.activity[kept]] - 1)


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


ATTRIBUTES = _OfAttributes(score=_scores, **facts_of("attributes"))


# Comparing groups ----------------------------------------------------------------------------------------------------

# Comparing groups: how much more of a group's cases have an activity than of all others.
#
# A group has the cases with one value of an attribute of cases; numbers and dates are cut at quantiles of the
# original. For group g and activity a the *gap* is the share of the cases of g that have a, less that share among
# all other cases. People report large gaps, so those count that are ``LEAST`` or more in the original, between groups
# of ``FEWEST`` cases or more:
#
# - *gaps*: the mean distance between a gap of the release and that of the original;
# - *size_of_gaps*: sum(x y) / sum(x^2), with x the gaps of the original and y those of the release, at most 1;
#   below 1 groups come out more alike than they are;
# - *reversed*: the part of the gaps that have the other sign.


LEAST = 0.1
"""Smallest gap that counts; chance makes smaller ones, which are seldom reported."""
FEWEST = 30
"""Fewest cases of a group, and of all others, that reveal a gap of a tenth."""


def _gap_scores(used: Log, judged: Log, asked: UseCaseOptions) -> Mapping[str, float | None]:
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
    """Yield the gaps of both logs for each attribute of cases that both have."""
    numbers: dict[str, int] = {}
    theirs, ours = _case_activities(judged, numbers), _case_activities(used, numbers)
    found = False
    for attribute in compare_attributes(used, judged, person):
        group_judged, group_used, size = attribute.codes
        if not attribute.of_cases or group_used is None:
            continue
        found = True
        real, enough = _gaps_of(theirs, group_judged, size, len(numbers))
        made, _ = _gaps_of(ours, group_used, size, len(numbers))
        yield real[enough].ravel(), made[enough].ravel()
    if not found:
        raise ParameterError("groups-none-in-both", parameter="released")


def _case_activities(log: EventLog, numbers: dict[str, int]) -> tuple[IntArray, IntArray]:
    """Return each case once with each of its activities, by their numbers."""
    labels, codes = log.activity_codes
    number = np.array([numbers.setdefault(label, len(numbers)) for label in labels], dtype=np.int64)
    case = np.repeat(np.arange(len(log.offsets) - 1), np.diff(log.offsets))
    case, activity = np.divmod(np.unique(case * max(1, len(labels)) + codes), max(1, len(labels)))
    return case, number[activity]


def _gaps_of(
    having: tuple[IntArray, IntArray], group: IntArray, size: int, activities: int
) -> tuple[FloatArray, BoolArray]:
    """Return each group's gaps, and True where it and all others have enough cases."""
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


GROUPS = UseCase(score=_gap_scores, **facts_of("groups"))
