"""The rows of a flat table to an event log, in pm4py's columns or any others.

A flat table has a row for each event. Its rows become the events of an :class:`EventLog`: the position of a row is the
explicit event index, the events of a case are ordered by timestamp and, where timestamps are equal, by row. A case in
which some event has no time keeps the order of its rows. A column ``event:index`` (written where timestamps do not
tell the order, as in some XES files) overrides both in the cases all of whose events have one. All this is decided case
by case. Columns ``case:...`` are attributes of the cases, by their names alone: of a case it is the value that its
rows have; where they differ it is unknown (or the first, if that is asked for), and a finding.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from veilog._typing import BoolArray, IntArray
from veilog.errors import InputError
from veilog.logs.eventlog import ACTIVITY, CASE_INDEX, EVENT_INDEX, TIMESTAMP, TIMESTAMP_TYPE, EventLog
from veilog.logs.findings import Findings
from veilog.logs.input.lifecycle import Transitions, joined
from veilog.logs.input.roles import Roles
from veilog.logs.metadata import Metadata
from veilog.logs.tables.cells.columns import (
    plain_column,
    read_times,
    rounded,
    text_column,
    whole_numbers,
    without_views,
)
from veilog.logs.tables.cells.times import Times
from veilog.logs.tables.events.checks import LineOf, RowFindings, check_absent, check_bad, check_names, count_times
from veilog.logs.tables.events.shaping import shaped

__all__ = ["CASE_PREFIX", "is_of_cases", "log_from_table", "with_empty_cases"]


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
    """The event log in a flat table whose columns have these roles; ``case_key`` tells cases of one name apart."""
    _check_text(table, source)
    table, roles, line_of = shaped(without_views(table), roles, line_of)
    if table.num_rows == 0:  # columns without a chunk are a case of their own everywhere
        table = pa.Table.from_arrays(
            [pa.chunked_array([pa.array([], field.type)]) for field in table.schema], schema=table.schema
        )
    given = None
    if EVENT_INDEX in table.column_names and EVENT_INDEX not in roles.named:
        given = whole_numbers(table[EVENT_INDEX])
    names, labels, times, keep = _checked(table, roles, RowFindings(findings, line_of), source)
    table, names, labels = _rows_of(keep, table, names, labels)
    case, count = _by_appearance(names if case_key is None else table[case_key])
    stamps = _Stamps(np.flatnonzero(keep), times.micros[keep], times.known[keep], np.zeros(len(case), dtype=np.bool_))
    if given is not None:
        stamps = _indexed(case, count, given[0][keep], given[1][keep], stamps, names, findings)
    used = {roles.case, roles.activity, roles.timestamp, case_key, EVENT_INDEX if given is not None else None}
    of_cases = _of_cases(table, used, case, count, findings)
    order = _order(case, count, stamps)
    if order is not None:
        case, stamps = case[order], stamps.at(order)
        taken = pa.array(order)
        table, names, labels = table.take(taken), names.take(taken), labels.take(taken)
    _note_disorder(case, stamps, findings)
    first = np.searchsorted(case, np.arange(count))

    events: dict[str, Any] = {
        CASE_INDEX: pa.array(case, pa.int64()),
        EVENT_INDEX: pa.array(stamps.index, pa.int64()),
        ACTIVITY: labels.dictionary_encode().unify_dictionaries(),
        TIMESTAMP: pa.array(stamps.micros, pa.int64(), mask=~stamps.known).cast(TIMESTAMP_TYPE),
    }
    cases: dict[str, Any] = {ACTIVITY: names.take(pa.array(first))}
    if case_key is not None:
        cases[case_key] = table[case_key].take(pa.array(first))
    _add_attributes(table, used, of_cases, events, cases, findings)
    return EventLog(
        events=_assemble(events),
        cases=_assemble(cases),
        metadata=metadata or Metadata(),
        findings=findings.result(),
        source=source,
    )


def _check_text(table: pa.Table, source: str | None) -> None:
    """Refuse text that is no UTF-8, which a table in memory may hold: one such value would stop a release after it was
    charged."""
    for name, column in zip(table.column_names, table.columns, strict=True):
        try:
            column.validate(full=True)
        except pa.ArrowException as error:
            raise InputError("column-value-damaged-text", path=source, name=name) from error


def _checked(table: pa.Table, roles: Roles, rows: RowFindings, source: str | None) -> tuple[Any, Any, Times, BoolArray]:
    """Names of cases, activities and times of all rows, and which of them count."""
    findings = rows.findings
    names = text_column(table[roles.case], roles.case, source)
    labels = text_column(table[roles.activity], roles.activity, source)
    keep = np.ones(table.num_rows, dtype=np.bool_)
    if roles.transition is not None:
        transitions = Transitions(roles.lifecycle)
        keep &= transitions.keep(labels, text_column(table[roles.transition], roles.transition, source))
        transitions.done(findings, told_apart=roles.transition in roles.classifier)
    names, keep = check_names(names, labels, keep, rows, rounded(table[roles.case]))
    if roles.classifier:
        labels = joined([text_column(table[name], name, source) for name in roles.classifier])
    times = read_times(table[roles.timestamp], roles.timestamp, source, roles.day_order)
    keep = check_bad(times, table[roles.timestamp], keep, rows)
    keep = check_absent(times, keep, rows)
    timed = int((times.known & keep).sum())
    count_times(findings, timed, naive=times.naive, offsets=times.offsets, cut=times.cut, epochs=times.epochs)
    if len(keep) and not keep.any():
        raise InputError("not-event-left", path=source)
    return names, labels, times, keep


def _rows_of(keep: BoolArray, *columns: Any) -> tuple[Any, ...]:
    return columns if keep.all() else tuple(column.filter(pa.array(keep)) for column in columns)


@dataclass(frozen=True)
class _Stamps:
    """What orders the events: their index, their times where known, and whether the index was given."""

    index: IntArray
    micros: IntArray
    known: BoolArray
    given: BoolArray

    def at(self, rows: IntArray) -> _Stamps:
        return _Stamps(self.index[rows], self.micros[rows], self.known[rows], self.given[rows])


def _indexed(
    case: IntArray, count: int, index: IntArray, placed: BoolArray, stamps: _Stamps, names: Any, findings: Findings
) -> _Stamps:
    """With the explicit index in the cases that have it throughout; a finding about the others."""
    throughout = np.ones(count, dtype=np.bool_)
    throughout[case[~placed]] = False
    missing = int((~throughout).sum())
    if missing:
        row = int((~throughout[case]).argmax())
        findings.add("event-index-missing", f"case {names[row].as_py()!r}", count=missing)
    given = throughout[case]
    return replace(stamps, index=np.where(given, index, stamps.index), given=given)


def _add_attributes(
    table: pa.Table,
    used: Collection[str | None],
    of_cases: Mapping[str, pa.ChunkedArray | None],
    events: dict[str, Any],
    cases: dict[str, Any],
    findings: Findings,
) -> None:
    """Every further column as an attribute of events, or of cases if it is called so."""
    for field in table.schema:
        name = field.name
        if name in used:
            continue
        column = of_cases[name] if name in of_cases else plain_column(table[name], name, findings)
        if column is None:
            continue
        told, free = (cases, name.removeprefix(CASE_PREFIX)) if name in of_cases else (events, name)
        free = _free(free, told)
        told[free] = (field.with_type(column.type).with_name(free), column)


def is_of_cases(name: str) -> bool:
    """Return whether a column is one of attributes of cases, which its name alone tells."""
    return name.startswith(CASE_PREFIX) and name not in (CASE_PREFIX, CASE_INDEX)


def _of_cases(
    table: pa.Table, used: Collection[str | None], case: IntArray, count: int, findings: Findings
) -> dict[str, pa.ChunkedArray | None]:
    """What the columns called so say of each case: the value that its rows have. Of a case of which they say several it
    is unknown, or where that is asked for the first, in the order of the rows. None for a column that is left out."""
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
        differing = _differing(column, case, known, row)
        if several := len(differing):
            policy = findings.add("case-attribute-differs", f"column {name!r} in {several:,} cases", count=several)
            row[differing if policy == "drop" else []] = -1
        found[name] = column.take(pa.array(row, mask=row < 0))
    return found


def _differing(column: pa.ChunkedArray, case: IntArray, known: IntArray, row: IntArray) -> IntArray:
    """The cases in which a row has another value than the first that is known."""
    encoded = column.dictionary_encode() if not pa.types.is_dictionary(column.type) else column
    codes = np.concatenate(
        [np.zeros(0, dtype=np.int64)]
        + [
            pc.fill_null(chunk.indices, 0).to_numpy(zero_copy_only=False)
            for chunk in encoded.unify_dictionaries().chunks
        ]
    )
    others = codes[known] != codes[row[case[known]]]
    return np.unique(case[known[others]])


def _by_appearance(names: Any) -> tuple[IntArray, int]:
    """Codes 0, 1, ... in the order in which the values first appear, and how many there are."""
    if not len(names):
        return np.zeros(0, dtype=np.int64), 0
    changes = np.flatnonzero(pc.not_equal(names.slice(1), names.slice(0, len(names) - 1)).to_numpy())
    if 0 < 2 * len(changes) < len(names):  # rows that come together are looked at once
        starts = np.concatenate([[0], changes + 1])
        codes, count = _by_appearance(names.take(pa.array(starts)))
        return np.repeat(codes, np.diff(starts, append=len(names))), count
    encoded = names.dictionary_encode().unify_dictionaries()
    codes = np.concatenate([chunk.indices.to_numpy(zero_copy_only=False) for chunk in encoded.chunks])
    count = len(encoded.chunk(0).dictionary)
    first = np.full(count, len(codes), dtype=np.int64)
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    rank = np.empty(count, dtype=np.int64)
    rank[np.argsort(first, kind="stable")] = np.arange(count)
    return rank[codes], int((first < len(codes)).sum())


def _order(case: IntArray, count: int, stamps: _Stamps) -> IntArray | None:
    """The order of the rows by case and time (see the module), or None if they have it already."""
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
        count = len(np.unique(case[1:][back]))
        findings.add("unordered-timestamps", f"{EVENT_INDEX} says another order than the timestamps", count=count)


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


def with_empty_cases(log: EventLog, empty: pa.Table | None, findings: Findings) -> EventLog:
    """Put every case where ``case:index`` says, under the rules for empty and for repeated cases."""
    cases = log.cases
    if empty is not None and empty.num_rows:
        policy = findings.add("empty-trace", f"{empty.num_rows} cases", count=empty.num_rows)
        if policy != "drop":
            cases = pa.concat_tables([cases, empty], promote_options="permissive")
    order = np.argsort(cases[CASE_INDEX].to_numpy(), kind="stable")
    names = cases[ACTIVITY].cast(pa.string()).take(pa.array(order)).to_pylist()
    first = {name: position for position, name in reversed(list(enumerate(names)))}
    repeated = np.array([first[name] != position for position, name in enumerate(names)], dtype=np.bool_)
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
