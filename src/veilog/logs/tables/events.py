"""Flat tables as event logs, and event logs as flat tables.

A flat table has a row for each event, in pm4py's columns or any others. The position of a row is the explicit event
index. The events of a case are ordered by timestamp and, where timestamps are equal, by row. A case in which some event
has no time keeps the order of its rows. A column ``event:index`` (written where timestamps do not reveal the order, as
in some XES files) overrides both in the cases all of whose events have one. All this is decided case by case.

Columns ``case:...`` are attributes of the cases, by their names alone. The value of a case is the one that its rows
have. Where they differ it is unknown (or the first, on request), and a finding.

A time in two columns and two events in one row are made usual first, each row by itself. Names, activities and times
are checked piece by piece.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from veilog._typing import BoolArray, IntArray
from veilog.errors import InputError, OutputError
from veilog.logs.eventlog import (
    ACTIVITY,
    CASE_INDEX,
    EVENT_INDEX,
    LIFECYCLE,
    TIMESTAMP,
    TIMESTAMP_TYPE,
    EventLog,
    as_array,
    codes_of,
)
from veilog.logs.findings import Findings, Policy
from veilog.logs.input.lifecycle import Transitions, joined
from veilog.logs.input.roles import Roles
from veilog.logs.metadata import Metadata
from veilog.logs.tables.cells import (
    Times,
    drop_views,
    inexact_names,
    is_text,
    plain_column,
    read_times,
    text_column,
    whole_numbers,
)
from veilog.messages import Message

LineOf = Callable[[int], int | None]
NO_NUMBERS: Mapping[str, int] = {}


@dataclass(frozen=True)
class RowFindings:
    """Collector of findings about rows, with the user's name for each row."""

    findings: Findings
    line_of: LineOf | None = None
    start: int = 0

    def add(self, rule: str, mask: BoolArray, example: str | Message) -> Policy:
        """Add one finding for all rows of a mask; the example is the first one."""
        first = self.start + int(mask.argmax())
        line = None if self.line_of is None else self.line_of(first)
        shown = Message("example-in-row", example=example, n=first + 1) if line is None else example
        return self.findings.add(rule, shown, line=line, count=int(mask.sum()))

    def where(self, row: int) -> Message:
        """Return the user's name for a row of this piece."""
        line = None if self.line_of is None else self.line_of(self.start + row)
        return Message("example-row", n=self.start + row + 1) if line is None else Message("example-line", n=line)


def check_names(
    names: Any, labels: Any, keep: BoolArray, rows: RowFindings, inexact: BoolArray | None = None, key: Any = None
) -> tuple[Any, BoolArray]:
    """Apply the rules for names of cases and activities to the rows kept so far.

    The rules are about rows without a case or an activity, and rows whose case has an ``inexact`` name. Missing names
    of cases are null. Unless a ``key`` distinguishes cases, each such row is a case.
    """
    if inexact is not None and (inexact := inexact & keep).any():
        rows.add("inexact-case-name", inexact, _shorten(names[int(inexact.argmax())].as_py()))
    nameless = blank(names) & keep
    if nameless.any():
        counted = nameless if key is None else nameless & _first_of_each(key)
        if rows.add("case-without-name", counted, Message("example-row-without-case")) == "drop":
            keep = keep & ~nameless
        names = pc.if_else(pa.array(nameless), None, names)
    silent = blank(labels) & keep
    if silent.any():
        rows.add("event-without-activity", silent, Message("example-row-without-activity"))
        keep = keep & ~silent
    return names, keep


def _first_of_each(values: Any) -> BoolArray:
    """Return True where a value is met first."""
    texts = np.asarray(pc.fill_null(values.cast(pa.string()), "")).astype(str)
    return np.isin(np.arange(len(texts)), np.unique(texts, return_index=True)[1])


def check_bad(times: Times, text: Any, keep: BoolArray, rows: RowFindings) -> BoolArray:
    """Apply the rule for unreadable timestamps to the rows kept so far."""
    bad = times.bad & keep
    if bad.any():
        example: str | Message = Message("example-time-outside-years")
        if is_text(text.type):
            example = _shorten(text[int(bad.argmax())].as_py())
        if rows.add("bad-timestamp", bad, example) == "drop":
            keep = keep & ~bad
    return keep


Spare = Callable[[BoolArray], Times | None]
"""Function for the times of rows in the other column, of start or end, or None."""


def spare_of(rows: pa.Table | pa.RecordBatch, roles: Roles, source: str | None) -> Spare:
    """Return the function for the times in the other column, of start or end."""
    name = roles.spare
    if name is None:
        return lambda wanted: None
    return lambda wanted: read_times(rows.column(name).filter(pa.array(wanted)), name, source, roles.day_order)


def check_spare(times: Times, spare: Spare, keep: BoolArray, rows: RowFindings) -> tuple[Times, BoolArray]:
    """Apply the rule for rows with only one of start and end to those kept so far.

    The result has the times, completed from the other column, and the rows that count.
    """
    half = ~times.known & ~times.bad & keep
    others = spare(half) if half.any() else None
    if others is None or not others.known.any():
        return times, keep
    half[half] = others.known
    if rows.add("one-time-missing", half, Message("example-row-one-time")) == "drop":
        return times, keep & ~half
    micros = times.micros.copy()
    micros[half] = others.micros[others.known]
    both = Times.joined([times, others])
    return replace(both, micros=micros, known=times.known | half, bad=times.bad), keep


def check_absent(times: Times, keep: BoolArray, rows: RowFindings) -> BoolArray:
    """Apply the rules for rows without a timestamp: all rows lack it, or only some.

    Only the owner's policy leaves rows out, and it does so whatever other rows have. No case decides about another one.
    """
    absent = ~times.known & ~times.bad & keep
    if absent.any():
        dropped = rows.findings.policy("missing-timestamp") == "drop"
        if not dropped and not ((times.known | times.bad) & keep).any():
            rows.add("no-timestamps", absent, Message("example-column-empty"))
        elif rows.add("missing-timestamp", absent, Message("example-row-without-time")) == "drop":
            keep = keep & ~absent
    return keep


def count_times(
    findings: Findings,
    timed: int,
    *,
    naive: int = 0,
    offsets: Iterable[int] = (),
    cut: int = 0,
    epochs: Mapping[str, int] = NO_NUMBERS,
) -> None:
    """Note the findings about zones, precision and units of this many timestamps."""
    offsets = sorted(offsets)
    findings.note_zones(told=bool(offsets or epochs) or timed > naive, missing=naive > 0)
    if naive:
        findings.add("timestamp-without-zone", Message("example-read-as-utc"), count=naive)
    if len(offsets) > 1:
        shown = ", ".join(f"{'-' if o < 0 else '+'}{abs(o) // 60:02d}:{abs(o) % 60:02d}" for o in offsets)
        findings.add("mixed-time-zones", Message("example-offsets", offsets=shown), count=max(timed, 1))
    if cut:
        findings.add("precision-lost", Message("example-cut"), count=cut)
    if epochs:
        units = [Message(f"example-{unit}") for unit in sorted(epochs, key=lambda unit: -epochs[unit])]
        both = reduce(lambda first, second: Message("example-both", first=first, second=second), units)
        findings.add("epoch-numbers", Message("example-since-1970", units=both), count=sum(epochs.values()))


def _shorten(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")


def blank(text: Any) -> BoolArray:
    """Return True where there is no name."""
    mask: BoolArray = pc.fill_null(pc.equal(text, ""), True).to_numpy()
    return mask


_MIDNIGHT = r"[T ]+0{1,2}:00(:00(\.0+)?)?$"
_NO_DAY = r"^(1899-12-3[01]|1900-01-0[01]|(30|31)\.12\.1899|0?1[./]0?1[./]1900|1970-01-01)[T ]+|\s*(Uhr|uur|h)$"
"""Text around a time of day in exports of programs that know no time without a day."""
_HOUR = r"\d:\d\d"
_WHOLE = r"^\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}[T ]+\d"


class Origins:
    """Rows of a file from which the events come, where a row may be two events."""

    def __init__(self, line_of: LineOf) -> None:
        self._line_of = line_of
        self._rows: list[IntArray] = []
        self._before = 0

    def add(self, rows: IntArray, size: int) -> None:
        """Add the events of the next ``size`` rows; ``rows`` has the row of each event."""
        self._rows.append(rows + self._before)
        self._before += size

    def __call__(self, event: int) -> int | None:
        return self._line_of(int(np.concatenate(self._rows)[event]))


def shape_events(table: pa.Table, roles: Roles, line_of: LineOf | None) -> tuple[pa.Table, Roles, LineOf | None]:
    """Return the rows with one time column and one event each, their roles and lines."""
    if roles.clock is not None:
        date, time = (_text(table[name], name) for name in (roles.timestamp, roles.clock))
        both = _join_date_and_time(date, time, f"{roles.timestamp} and {roles.clock}")
        table = table.set_column(table.column_names.index(roles.timestamp), roles.timestamp, both)
        table, roles = table.drop_columns([roles.clock]), replace(roles, clock=None)
    if not roles.two_events:
        return table, roles, line_of
    rows = table.num_rows
    table, roles, taken = _split_start_and_end(table, roles)
    if line_of is not None:
        line_of = line_of if isinstance(line_of, Origins) else Origins(line_of)
        line_of.add(taken, rows)
    return table, roles, line_of


def _text(column: Any, name: str) -> Any:
    try:
        return pc.utf8_trim_whitespace(as_array(column).cast(pa.string()))
    except pa.ArrowException as error:
        raise InputError("column-type-not-timestamps", name=name, type=column.type) from error


def _join_date_and_time(date: Any, time: Any, names: str) -> Any:
    """Return dates and times of day as texts of both.

    A value of the second column that has both is taken alone. It is refused if the first has a time of day of its own,
    which would be lost.
    """
    clock = pc.replace_substring_regex(time, _NO_DAY, "")
    told = pc.fill_null(pc.not_equal(clock, ""), False)
    day = pc.fill_null(pc.replace_substring_regex(date, _MIDNIGHT, ""), "")
    whole = pc.fill_null(pc.match_substring_regex(clock, _WHOLE), False)
    lost = pc.and_(pc.match_substring_regex(day, _HOUR), pc.not_equal(date, clock))
    if pc.any(pc.and_(whole, pc.fill_null(lost, False))).as_py():
        raise InputError("column-times-not-date-clock", names=names)
    both = pc.binary_join_element_wise(day, pc.fill_null(clock, ""), " ")
    both = pc.if_else(whole, clock, both)
    return pa.chunked_array([pc.if_else(told, both, date)])


def _split_start_and_end(table: pa.Table, roles: Roles) -> tuple[pa.Table, Roles, IntArray]:
    """Return the start and the end of each row as two events, and their rows.

    Where one of both is missing there is one event. Where both are missing there is the end, without a time.
    """
    assert roles.start is not None, "rows are parted where they have a start"
    names = (roles.start, roles.timestamp)
    times = [table[name] for name in names]
    times = [x.cast(x.type.value_type) if pa.types.is_dictionary(x.type) else x for x in times]
    if times[0].type != times[1].type:
        times = [pa.chunked_array([_text(column, name)]) for column, name in zip(times, names, strict=True)]
    known = [_is_known(column) for column in times]
    there = np.column_stack([known[0], known[1] | ~known[0]])
    taken = np.repeat(np.arange(table.num_rows), there.sum(axis=1))
    step = np.tile([0, 1], table.num_rows)[there.ravel()]
    at = pa.array(taken + step * table.num_rows)
    time = pa.chunked_array([*times[0].chunks, *times[1].chunks], times[0].type).take(at)
    parted = table.drop_columns([roles.start]).take(pa.array(taken))
    parted = parted.set_column(parted.column_names.index(roles.timestamp), roles.timestamp, time)
    steps = pa.array(["start", "complete"]).take(pa.array(step))
    if LIFECYCLE in parted.column_names:
        parted = parted.drop_columns([LIFECYCLE])
    parted = parted.append_column(LIFECYCLE, steps)
    return parted, replace(roles, transition=LIFECYCLE, start=None), taken


def _is_known(column: Any) -> Any:
    known = pc.is_valid(column)
    if is_text(column.type):
        known = pc.fill_null(pc.not_equal(column, ""), False)
    return known.to_numpy()


CASE_PREFIX = "case:"


def log_from_table(
    table: pa.Table,
    roles: Roles,
    findings: Findings,
    *,
    source: str | None,
    line_of: LineOf | None = None,
    metadata: Metadata | None = None,
    case_key: str | None = None,
) -> EventLog:
    """Return the event log in a flat table whose columns have these roles.

    ``case_key`` distinguishes cases of one name.
    """
    _check_text(table, source)
    table, roles, line_of = shape_events(drop_views(table), roles, line_of)
    if table.num_rows == 0:  # columns without a chunk are a case of their own everywhere
        table = pa.Table.from_arrays(
            [pa.chunked_array([pa.array([], field.type)]) for field in table.schema], schema=table.schema
        )
    given = None
    if EVENT_INDEX in table.column_names and EVENT_INDEX not in roles.named:
        given = whole_numbers(table[EVENT_INDEX])
    key = None if case_key is None else table[case_key]
    names, labels, times, keep = _check_rows(table, roles, RowFindings(findings, line_of), source, key)
    table, names, labels = _rows_of(keep, table, names, labels)
    case, count = _encode_by_appearance(names if case_key is None else table[case_key])
    stamps = _Stamps(np.flatnonzero(keep), times.micros[keep], times.known[keep], np.zeros(len(case), dtype=np.bool_))
    if given is not None:
        stamps = _apply_index(case, count, given[0][keep], given[1][keep], stamps, names, findings)
    used = {roles.case, roles.activity, roles.timestamp, case_key, EVENT_INDEX if given is not None else None}
    of_cases = _case_values(table, used, case, count, findings)
    order = _order(case, count, stamps)
    if order is not None:
        case, stamps, labels = case[order], stamps.at(order), labels.take(pa.array(order))
    _note_disorder(case, stamps, findings)
    first = np.searchsorted(case, np.arange(count))
    first = pa.array(first if order is None else order[first])

    events: dict[str, Any] = {
        CASE_INDEX: pa.array(case, pa.int64()),
        EVENT_INDEX: pa.array(stamps.index, pa.int64()),
        ACTIVITY: labels.dictionary_encode().unify_dictionaries(),
        TIMESTAMP: pa.array(stamps.micros, pa.int64(), mask=~stamps.known).cast(TIMESTAMP_TYPE),
    }
    cases: dict[str, Any] = {ACTIVITY: names.take(first)}
    if case_key is not None:
        cases[case_key] = table[case_key].take(first)
    _add_attributes(table, order, used, of_cases, events, cases, findings)
    return EventLog(
        events=_assemble(events),
        cases=_assemble(cases),
        metadata=metadata or Metadata(),
        findings=findings.result(),
        source=source,
    )


def _check_text(table: pa.Table, source: str | None) -> None:
    """Refuse text that is no UTF-8, which a table in memory may hold.

    One such value would stop a release after it was charged.
    """
    for name, column in zip(table.column_names, table.columns, strict=True):
        try:
            column.validate(full=True)
        except pa.ArrowException as error:
            raise InputError("column-value-damaged", path=source, name=name) from error


def _check_rows(
    table: pa.Table, roles: Roles, rows: RowFindings, source: str | None, key: Any
) -> tuple[Any, Any, Times, BoolArray]:
    """Return names of cases, activities and times of all rows, and True to keep one."""
    findings = rows.findings
    names = text_column(table[roles.case], roles.case, source)
    labels = text_column(table[roles.activity], roles.activity, source)
    keep = np.ones(table.num_rows, dtype=np.bool_)
    if roles.transition is not None:
        transitions = Transitions(roles.lifecycle)
        keep &= transitions.keep(labels, text_column(table[roles.transition], roles.transition, source))
        transitions.done(findings, told_apart=roles.transition in roles.classifier)
    names, keep = check_names(names, labels, keep, rows, inexact_names(table[roles.case]), key)
    if roles.classifier:
        labels = joined([text_column(table[name], name, source) for name in roles.classifier])
    times = read_times(table[roles.timestamp], roles.timestamp, source, roles.day_order)
    keep = check_bad(times, table[roles.timestamp], keep, rows)
    times, keep = check_spare(times, spare_of(table, roles, source), keep, rows)
    keep = check_absent(times, keep, rows)
    timed = int((times.known & keep).sum())
    count_times(findings, timed, naive=times.naive, offsets=times.offsets, cut=times.cut, epochs=times.epochs)
    if len(keep) and not keep.any():
        raise InputError("table-without-events-left", path=source)
    return names, labels, times, keep


def _rows_of(keep: BoolArray, *columns: Any) -> tuple[Any, ...]:
    return columns if keep.all() else tuple(column.filter(pa.array(keep)) for column in columns)


@dataclass(frozen=True)
class _Stamps:
    """Order of the events: index, times where known, and where the index is given."""

    index: IntArray
    micros: IntArray
    known: BoolArray
    given: BoolArray

    def at(self, rows: IntArray) -> _Stamps:
        return _Stamps(self.index[rows], self.micros[rows], self.known[rows], self.given[rows])


def _apply_index(
    case: IntArray, count: int, index: IntArray, placed: BoolArray, stamps: _Stamps, names: Any, findings: Findings
) -> _Stamps:
    """Return the stamps with each case's index if it has it throughout; note others."""
    throughout = np.ones(count, dtype=np.bool_)
    throughout[case[~placed]] = False
    missing = int((~throughout).sum())
    if missing:
        row = int((~throughout[case]).argmax())
        findings.add("event-index-missing", Message("example-of-case", name=names[row].as_py()), count=missing)
    given = throughout[case]
    return replace(stamps, index=np.where(given, index, stamps.index), given=given)


def _add_attributes(
    table: pa.Table,
    order: IntArray | None,
    used: Collection[str | None],
    of_cases: Mapping[str, pa.ChunkedArray | None],
    events: dict[str, Any],
    cases: dict[str, Any],
    findings: Findings,
) -> None:
    """Add every further column as an attribute of events, or of cases by its name.

    Events come in this ``order`` of the rows.
    """
    for field in table.schema:
        name = field.name
        if name in used:
            continue
        if name in of_cases:
            column = of_cases[name]
        else:
            ordered = table[name] if order is None else table[name].take(pa.array(order))
            column = plain_column(ordered, name, findings)
        if column is None:
            continue
        told, free = (cases, name.removeprefix(CASE_PREFIX)) if name in of_cases else (events, name)
        free = _free(free, told)
        told[free] = (field.with_type(column.type).with_name(free), column)


def is_of_cases(name: str) -> bool:
    """Return True if a column has attributes of cases, by its name alone."""
    return name.startswith(CASE_PREFIX) and name not in (CASE_PREFIX, CASE_INDEX)


def _case_values(
    table: pa.Table, used: Collection[str | None], case: IntArray, count: int, findings: Findings
) -> dict[str, pa.ChunkedArray | None]:
    """Return the columns of cases, with the value that the rows of each case have.

    If the rows differ, the value is unknown or, on request, the first in the order of the rows. None stands for a
    column that is left out.
    """
    found: dict[str, pa.ChunkedArray | None] = {}
    for name in table.column_names:
        if name in used or not is_of_cases(name):
            continue
        column = plain_column(table[name], name, findings)
        found[name] = column
        if column is None:
            continue
        known = np.flatnonzero(pc.is_valid(column).to_numpy())
        row = np.full(count, -1, dtype=np.int64)
        row[case[known[::-1]]] = known[::-1]
        differing = _differing_cases(column, case, known, row)
        if several := len(differing):
            policy = findings.add("case-attribute-differs", cases_phrase(name, several), count=several)
            row[differing if policy == "drop" else []] = -1
        found[name] = column.take(pa.array(row, mask=row < 0))
    return found


def cases_phrase(name: str, n: int) -> Message:
    """Return the example of a column in which the rows of ``n`` cases differ."""
    return Message("example-column-in-cases", name=name, n=n)


def _differing_cases(column: pa.ChunkedArray, case: IntArray, known: IntArray, row: IntArray) -> IntArray:
    """Return the cases in which a row differs from the first known value."""
    codes = codes_of(column)
    others = codes[known] != codes[row[case[known]]]
    return np.flatnonzero(np.bincount(case[known[others]]))


def _encode_by_appearance(names: Any) -> tuple[IntArray, int]:
    """Return codes 0, 1, ... by first appearance, each null its own, and their number."""
    if not len(names):
        return np.zeros(0, dtype=np.int64), 0
    differ = pc.not_equal(names.slice(1), names.slice(0, len(names) - 1))
    changes = np.flatnonzero(pc.fill_null(differ, True).to_numpy())
    if 0 < 2 * len(changes) < len(names):  # rows that come together are looked at once
        starts = np.concatenate([[0], changes + 1])
        codes, count = _encode_by_appearance(names.take(pa.array(starts)))
        return np.repeat(codes, np.diff(starts, append=len(names))), count
    codes = codes_of(names)
    count = int(codes.max()) + 1
    if names.null_count:
        codes = np.where(codes < 0, count + np.cumsum(codes < 0) - 1, codes)
        count += names.null_count
    first = np.full(count, len(codes), dtype=np.int64)
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    rank = np.empty(count, dtype=np.int64)
    rank[np.argsort(first, kind="stable")] = np.arange(count)
    return rank[codes], int((first < len(codes)).sum())


def _order(case: IntArray, count: int, stamps: _Stamps) -> IntArray | None:
    """Return the order of the rows by case and time, or None if they have it already."""
    timeless = np.zeros(count, dtype=np.bool_)
    timeless[case[~stamps.known]] = True
    key = np.where(stamps.given, stamps.index, np.where(timeless[case], 0, stamps.micros))
    if bool(((case[1:] > case[:-1]) | ((case[1:] == case[:-1]) & (key[1:] >= key[:-1]))).all()):
        return None
    order: IntArray = np.lexsort((key, case))
    return order


def _note_disorder(case: IntArray, stamps: _Stamps, findings: Findings) -> None:
    micros, known = stamps.micros, stamps.known
    back = (case[1:] == case[:-1]) & (micros[1:] < micros[:-1]) & known[1:] & known[:-1] & stamps.given[1:]
    if back.any():
        count = len(np.flatnonzero(np.bincount(case[1:][back])))
        findings.add("unordered-timestamps", Message("example-other-order", name=EVENT_INDEX), count=count)


def _free(name: str, taken: dict[str, Any]) -> str:
    while name in taken:
        name += " (column)"
    return name


def _assemble(columns: dict[str, Any]) -> pa.Table:
    fields, arrays = [], []
    for name, value in columns.items():
        field, array = value if isinstance(value, tuple) else (pa.field(name, value.type), value)
        fields.append(field)
        arrays.append(array)
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def keep_empty_cases(empty: pa.Table | None, findings: Findings) -> pa.Table | None:
    """Return the empty cases that stay by the rules, also for missing names, or None."""
    for rule in ("empty-trace", "case-without-name"):
        if empty is not None:
            meets = np.ones(len(empty), dtype=np.bool_) if rule == "empty-trace" else blank(empty[ACTIVITY])
            count = int(meets.sum())
            if count and findings.add(rule, Message("example-cases", n=count), count=count) == "drop":
                empty = empty.filter(pa.array(~meets))
    return empty or None


def add_empty_cases(log: EventLog, empty: pa.Table | None, findings: Findings) -> EventLog:
    """Put all cases at their ``case:index``, by the rules for empty, repeated ones."""
    cases, empty = log.cases, keep_empty_cases(empty, findings)
    if empty is not None:
        cases = pa.concat_tables([cases, empty], promote_options="permissive")
    order = np.argsort(cases[CASE_INDEX].to_numpy(), kind="stable")
    names = cases[ACTIVITY].cast(pa.string()).take(pa.array(order)).to_pylist()
    first = {name: position for position, name in reversed(list(enumerate(names)))}
    repeated = np.array([bool(name) and first[name] != at for at, name in enumerate(names)], dtype=np.bool_)
    if repeated.any():
        example = repr(names[int(repeated.argmax())])
        if findings.add("duplicate-case-id", example, count=int(repeated.sum())) == "drop":
            order = order[~repeated]
    rank = np.full(cases.num_rows, -1, dtype=np.int64)
    rank[order] = np.arange(len(order))
    case = rank[log.events[CASE_INDEX].to_numpy()]
    rows = np.argsort(case, kind="stable")
    rows = pa.array(rows[np.searchsorted(case[rows], 0) :])
    events = log.events.set_column(0, CASE_INDEX, pa.array(case, pa.int64())).take(rows)
    cases = cases.take(pa.array(order)).drop_columns([CASE_INDEX])
    return EventLog(events, cases, log.metadata, findings.result(), log.source)


Mask = npt.NDArray[np.bool_]


def check_flat(log: EventLog, path: Path, what: str = "CSV") -> None:
    """Refuse to write a log to a flat table, such as CSV, that it cannot hold."""
    empty = int((np.diff(log.offsets) == 0).sum())
    if empty:
        raise OutputError("cases-without-event", path=path, empty=empty, what=what)
    names = log.cases.column(ACTIVITY)
    if len(pc.unique(names)) < len(names):
        raise OutputError("cases-names-equal", path=path, what=what)
    if blank(names.cast(pa.string())).any():
        raise OutputError("cases-name-missing", path=path, what=what)


def flat_table(log: EventLog, *, keyed: bool = False, case_index: bool = False) -> pa.Table:
    """Return one row for each event, in the order of the event index.

    The index is a column where times do not reveal the order. Reading the table again gives the same events in the same
    order in every case. With ``keyed``, columns keep their metadata. ``case_index`` adds ``case:index``.
    """
    table = log.to_arrow(keyed=keyed)
    if case_index:
        names = log.cases.column(ACTIVITY).take(log.events.column(CASE_INDEX))
        table = table.set_column(0, table.schema.field(0), names)
        table = table.append_column(CASE_INDEX, log.events.column(CASE_INDEX))
    index = log.events.column(EVENT_INDEX).cast(pa.int64()).to_numpy()
    case = log.events.column(CASE_INDEX).cast(pa.int64()).to_numpy()
    times = log.events.column(TIMESTAMP)
    micros = pc.fill_null(times.cast(pa.int64()), 0).to_numpy()
    timeless = np.zeros(log.cases.num_rows, dtype=np.bool_)
    timeless[case[_null(times)]] = True
    same = case[1:] == case[:-1]
    rising = index[1:] > index[:-1]
    timely = micros[1:] > micros[:-1]
    level = (micros[1:] == micros[:-1]) | timeless[case[1:]]
    if bool((~same | (timely & ~timeless[case[1:]]) | (level & rising)).all()):
        if not bool(rising.all()):
            table = table.take(pa.array(np.argsort(index, kind="stable")))
        return table
    if not bool((rising | ~same).all()):
        index = np.arange(len(index))
    table = table.append_column(EVENT_INDEX, pa.array(index, pa.int64()))
    return table.take(pa.array(np.argsort(index, kind="stable")))


def _null(column: Any) -> Mask:
    mask: Mask = pc.is_null(column).to_numpy()
    return mask
