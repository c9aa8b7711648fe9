"""Tables to event logs and back: CSV, Parquet, pandas and Arrow, in pm4py's columns or any others.

A flat table has a row for each event. Its rows become the events of an :class:`EventLog`: the position of a row is the
explicit event index, the events of a case are ordered by timestamp and, where timestamps are equal, by row. A case in
which some event has no time keeps the order of its rows. A column ``event:index`` (written where timestamps do not
tell the order, as in some XES files) overrides both in the cases all of whose events have one. All this is decided case
by case. Columns ``case:...`` that are constant in every case become attributes of the cases.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from veilog._typing import BoolArray, IntArray
from veilog.errors import InputError, OutputError
from veilog.logs.eventlog import ACTIVITY, CASE_INDEX, EVENT_INDEX, TIMESTAMP, TIMESTAMP_TYPE, EventLog
from veilog.logs.findings import Findings
from veilog.logs.lifecycle import Transitions, joined
from veilog.logs.metadata import Metadata
from veilog.logs.roles import Roles, guess_roles
from veilog.logs.streams import DEFAULT_LIMIT
from veilog.logs.tables import delimited
from veilog.logs.tables.checks import LineOf, Rows, blank, check_absent, check_bad, check_names, count_times
from veilog.logs.tables.columns import plain_column, read_times, text_column, typed, whole_numbers, written
from veilog.logs.tables.times import Times

__all__ = [
    "Roles",
    "check_flat",
    "file_columns",
    "flat_table",
    "foreign_values",
    "guess_roles",
    "log_from_table",
    "read_csv",
    "read_frame",
    "write_csv",
    "write_csv_pieces",
]


_PREFIX = "case:"


def file_columns(path: Path, limit: int | None = DEFAULT_LIMIT) -> list[str]:
    """The names of the columns of a CSV or Parquet file."""
    if path.name.lower().endswith(".parquet"):
        from veilog.logs.tables.parquet import column_names

        return column_names(path)
    return list(csv_dialect(path, limit).columns)


def read_csv(
    path: Path, roles: Roles, findings: Findings, *, limit: int | None = DEFAULT_LIMIT, progress: Any = None
) -> EventLog:
    """The log in a CSV or TSV file, plain or gzip.

    Attributes that are numbers, truth values and times with an offset become typed where the whole column is of one
    kind and nothing of the text is lost by it; identifiers like ``007`` or ``1e5`` stay text.
    """
    dialect = csv_dialect(path, limit)
    told = foreign_values(findings)
    parts = list(delimited.batches(path, dialect, limit=limit, progress=progress, foreign=told))
    table = pa.Table.from_batches(parts) if parts else pa.table({n: pa.array([], pa.string()) for n in dialect.columns})
    if progress is not None:
        progress("ordering events", None)
    plain = {*roles.named, EVENT_INDEX}
    table = pa.table({name: table[name] if name in plain else typed(table[name]) for name in table.column_names})
    return log_from_table(
        table,
        roles,
        findings,
        source=str(path),
        line_of=lambda row: delimited.line_of_row(path, dialect, row, limit=limit),
    )


def foreign_values(findings: Findings) -> delimited.Foreign:
    """What notes values of text that are no UTF-8."""

    def note(count: int, line: int) -> None:
        findings.add("not-utf8", "read as Windows-1252", line=line, count=count)

    return note


def csv_dialect(path: Path, limit: int | None) -> delimited.Dialect:
    """How to read this file; in a file called .tsv a tab goes before other delimiters."""
    preferred = ("\t", ",", ";", "|") if ".tsv" in path.name.lower() else (",", ";", "\t", "|")
    return delimited.sniff(path, limit=limit, preferred=preferred)


def read_frame(source: Any, roles: Roles, findings: Findings) -> EventLog:
    """The log in a pandas DataFrame or an Arrow table."""
    if not isinstance(source, pa.Table):
        needed = roles.named
        columns = {str(name): _from_pandas(source[name], str(name), findings) for name in source.columns}
        source = pa.table({name: array for name, (array, kept) in columns.items() if kept or name in needed})
    return log_from_table(source, roles, findings, source=None)


def _from_pandas(series: Any, name: str, findings: Findings) -> tuple[Any, bool]:
    """The column, and whether it stays."""
    try:
        return pa.Array.from_pandas(series), True
    except (pa.ArrowException, OverflowError, ValueError, TypeError):
        # A column of objects of several types, or of integers beyond 64 bits: as text, nothing is lost.
        missing = series.isna().to_numpy()
        text = [None if gone else _as_text(value) for value, gone in zip(series, missing, strict=True)]
        example = f"column {name!r} mixes types or holds huge numbers"
        kept = findings.add("bad-value", example, count=max(1, len(text))) != "drop"
        return pa.array(text, pa.string()), kept


def _as_text(value: Any) -> str:
    """A value as it would be written if all of its column were of its type."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(int(value)) if isinstance(value, float) and value.is_integer() and abs(value) < 1 << 53 else str(value)


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
    if table.num_rows == 0:  # columns without a chunk are a case of their own everywhere
        table = pa.Table.from_arrays(
            [pa.chunked_array([pa.array([], field.type)]) for field in table.schema], schema=table.schema
        )
    given = None
    if EVENT_INDEX in table.column_names and EVENT_INDEX not in roles.named:
        given = whole_numbers(table[EVENT_INDEX])
    names, labels, times, keep = _checked(table, roles, Rows(findings, line_of), source)
    table, names, labels = _rows_of(keep, table, names, labels)
    case, count = _by_appearance(names if case_key is None else table[case_key])
    stamps = _Stamps(np.flatnonzero(keep), times.micros[keep], times.known[keep], np.zeros(len(case), dtype=np.bool_))
    if given is not None:
        stamps = _indexed(case, count, given[0][keep], given[1][keep], stamps, names, findings)
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
    used = {roles.case, roles.activity, roles.timestamp, case_key, EVENT_INDEX if given is not None else None}
    _add_attributes(table, used, case, first, events, cases, findings)
    return EventLog(
        events=_assemble(events),
        cases=_assemble(cases),
        metadata=metadata or Metadata(),
        findings=findings.result(),
        source=source,
    )


def _checked(table: pa.Table, roles: Roles, rows: Rows, source: str | None) -> tuple[Any, Any, Times, BoolArray]:
    """Names of cases, activities and times of all rows, and which of them count."""
    findings = rows.findings
    names = text_column(table[roles.case], roles.case, source)
    labels = text_column(table[roles.activity], roles.activity, source)
    keep = np.ones(table.num_rows, dtype=np.bool_)
    if roles.transition is not None:
        transitions = Transitions(roles.lifecycle)
        keep &= transitions.keep(labels, text_column(table[roles.transition], roles.transition, source))
        transitions.done(findings, told_apart=roles.transition in roles.classifier)
    names, keep = check_names(names, labels, keep, rows)
    if roles.classifier:
        labels = joined([text_column(table[name], name, source) for name in roles.classifier])
    times = read_times(table[roles.timestamp], roles.timestamp, source, roles.day_order)
    keep = check_bad(times, table[roles.timestamp], keep, rows)
    keep = check_absent(times, keep, rows)
    count_times(findings, int((times.known & keep).sum()), naive=times.naive, offsets=times.offsets, cut=times.cut)
    if len(keep) and not keep.any():
        raise InputError("Not one event is left.", path=source)
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
    case: IntArray,
    first: IntArray,
    events: dict[str, Any],
    cases: dict[str, Any],
    findings: Findings,
) -> None:
    """Every further column as an attribute of events, or of cases if it is called so and constant in each."""
    for field in table.schema:
        name = field.name
        if name in used:
            continue
        column = plain_column(table[name], name, findings)
        if column is None:
            continue
        kept = field.with_type(column.type)
        if name.startswith(_PREFIX) and len(name) > len(_PREFIX) and _constant(column, case, first):
            free = _free(name.removeprefix(_PREFIX), cases)
            cases[free] = (kept.with_name(free), column.take(pa.array(first)))
        else:
            free = _free(name, events)
            events[free] = (kept.with_name(free), column)


def _by_appearance(names: Any) -> tuple[IntArray, int]:
    """Codes 0, 1, ... in the order in which the values first appear, and how many there are."""
    if not len(names):
        return np.zeros(0, dtype=np.int64), 0
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


def _constant(column: Any, case: IntArray, first: IntArray) -> bool:
    if not len(case):
        return True
    encoded = column.dictionary_encode().unify_dictionaries()
    codes = np.concatenate([pc.fill_null(c.indices, -1).to_numpy(zero_copy_only=False) for c in encoded.chunks])
    return bool((codes == codes[first][case]).all())


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


def check_flat(log: EventLog, path: Path) -> None:
    """Refuse to write a log to CSV that CSV cannot hold."""
    advice = "Write .xes.gz or .parquet, or accept the loss (--lossy, in Python lossy=True)."
    empty = int((np.diff(log.offsets) == 0).sum())
    if empty:
        raise OutputError(f"{empty} cases have no event, and CSV cannot hold them.", path=path, advice=advice)
    names = log.cases.column(ACTIVITY)
    if len(pc.unique(names)) < len(names):
        raise OutputError("Several cases have the same name, and CSV would merge them.", path=path, advice=advice)
    if blank(names.cast(pa.string())).any():
        raise OutputError("A case has no name, and CSV needs one.", path=path, advice=advice)


def flat_table(log: EventLog, *, case_index: bool = False) -> pa.Table:
    """One row for each event, in the order of the event index; with it as a column where times do not tell the order.

    Reading the table again gives the same events in the same order in every case. ``case_index`` adds ``case:index``.
    """
    table = log.to_arrow()
    if case_index:
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


def _null(column: Any) -> BoolArray:
    mask: BoolArray = pc.is_null(column).to_numpy()
    return mask


def write_csv(log: EventLog, out: BinaryIO, *, delimiter: str = ",") -> None:
    """Write the events as text in UTF-8. What the log says about itself (extensions, classifiers) has no place there;
    empty text is ``""``, a missing value is nothing.
    """
    write_csv_pieces([log], out, delimiter=delimiter)


def write_csv_pieces(logs: Iterable[EventLog], out: BinaryIO, *, delimiter: str = ",") -> None:
    """Write one log that comes in pieces with the same columns."""
    for number, log in enumerate(logs):
        table = flat_table(log)
        columns = {name: written(table[name]) for name in table.column_names}
        delimited.write_rows(pa.table(columns), out, delimiter=delimiter, header=number == 0)
