"""Reader and writer of XES (IEEE 1849), with counted findings."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from veilog._typing import BoolArray, IntArray
from veilog.errors import InputError
from veilog.logs.eventlog import (
    ACTIVITY,
    CASE_INDEX,
    EVENT_INDEX,
    LABEL_TYPE,
    LIFECYCLE,
    NESTED,
    TIMESTAMP,
    TIMESTAMP_TYPE,
    EventLog,
)
from veilog.logs.findings import Findings
from veilog.logs.input.formats import ReadRequest
from veilog.logs.input.lifecycle import EVERY, Transitions, joined, no_life_cycle
from veilog.logs.input.quality_checks import check_width
from veilog.logs.input.roles import classifier_keys
from veilog.logs.input.source import DEFAULT_OPTIONS, ReadOptions, Source
from veilog.logs.metadata import Metadata
from veilog.logs.xes.columns import ColumnKey, name_columns, spread_values
from veilog.logs.xes.scanner import XesBlock, XesReading, read_blocks, read_in_parts
from veilog.logs.xes.values import (
    NO_ZONE,
    Element,
    NeedsNormalizing,
    dump_nested,
    format_date,
    format_float,
    from_numpy,
    from_texts,
    read_metadata,
    to_numpy,
)
from veilog.logs.xes.writer import write_xes, write_xes_pieces
from veilog.messages import Message

_TIME = ColumnKey(TIMESTAMP, "date")


class Assembler:
    """Assembler of the event log from the blocks of a file, in order."""

    def __init__(self, path: str, findings: Findings, declared: ReadOptions = DEFAULT_OPTIONS) -> None:
        self._path = path
        self._declared = declared
        self._findings = findings
        self._cases = 0
        self._events = 0
        self._case_lines: list[IntArray] = []
        self._event_lines: list[IntArray] = []
        self._event_cases: list[IntArray] = []
        self._bad_times: list[IntArray] = []
        self._sizes: list[int] = []
        self._values = 0
        self._event_keys: set[ColumnKey] = set()
        self._event_columns: list[dict[ColumnKey, pa.Array]] = []
        self._case_columns: dict[ColumnKey, list[tuple[int, IntArray, pa.Array]]] = {}
        self._event_nested: dict[int, list[dict[str, Any]]] = {}
        self._case_nested: dict[int, list[dict[str, Any]]] = {}
        self._log_elements: list[Element] = []
        self._zones: dict[int, tuple[int, str, int]] = {}

    def add(self, block: XesBlock) -> None:
        """Append a block; a finding whose policy is ``fail`` raises."""
        self._findings.add_all(block.notes)
        for zone, (count, example, line) in block.zones.items():
            known = self._zones.get(zone)
            self._zones[zone] = (count, example, line) if known is None else (known[0] + count, *known[1:])
        first_case, first_event = self._cases, self._events
        self._case_lines.append(block.case_lines)
        self._event_lines.append(block.event_lines)
        self._event_cases.append(block.event_cases + first_case)
        self._bad_times.append(block.bad_times + first_event)
        self._sizes.append(len(block.event_lines))
        self._event_columns.append(block.event_columns)
        for key, (rows, values) in block.case_columns.items():
            self._case_columns.setdefault(key, []).append((len(self._sizes), rows + first_case, values))
        for row, entry in block.event_nested:
            _put_attribute(self._event_nested.setdefault(row + first_event, []), entry)
        for row, entry in block.case_nested:
            _put_attribute(self._case_nested.setdefault(row + first_case, []), entry)
        self._log_elements.extend(block.log_elements)
        self._cases += block.cases
        self._events += len(block.event_lines)
        self._values += block.values
        self._event_keys.update(block.event_columns)
        of_events, of_cases = len(self._event_keys), len(self._case_columns)
        cells = of_events * self._events + of_cases * self._cases
        check_width(of_events + of_cases, cells, self._values, self._path)

    def finish(self, root: Element, *, drop_bad: bool) -> EventLog:
        """Return the event log, once the document has ended properly."""
        metadata, notes = read_metadata(root, self._log_elements, drop_bad=drop_bad)
        self._findings.add_all(notes)
        if not self._cases:
            return _empty_log(metadata, self._findings, self._path)
        case_columns = self._join_cases()
        names = _text_of(case_columns, ACTIVITY, self._cases).cast(pa.string())
        event_columns = self._join_events()
        steps = _texts(event_columns, LIFECYCLE, self._events)
        keys = self._classifier(event_columns, metadata)
        parts = [_texts(event_columns, key, self._events) or pa.nulls(self._events, pa.string()) for key in keys]
        labels = _text_of(event_columns, ACTIVITY, self._events)
        times = event_columns.get(_TIME)
        if times is None:
            times = pa.nulls(self._events, TIMESTAMP_TYPE)
        index = np.concatenate(self._event_cases) if self._event_cases else np.zeros(0, dtype=np.int64)

        keep_events = self._check_transitions(labels, steps, told_apart=LIFECYCLE in keys)
        keep_cases = self._check_names(names)
        known = parts if keys and ACTIVITY not in keys else [labels]  # whatever makes an activity, at least one of it
        mute = np.logical_and.reduce([to_numpy(part.is_null()) for part in known])
        keep_events = self._check_events(mute, times, keep_events)
        keep_cases &= self._check_empty(index, keep_events)
        keep_events &= keep_cases[index]
        self._check_order(index, times, keep_events)
        if keys:
            labels = joined(parts).dictionary_encode()

        events = _table(
            {
                CASE_INDEX: from_numpy(index),
                EVENT_INDEX: from_numpy(np.arange(self._events)),
                ACTIVITY: labels,
                TIMESTAMP: times,
            },
            event_columns,
            self._event_nested,
        )
        cases = _table({ACTIVITY: names}, case_columns, self._case_nested)
        if not (keep_events.all() and keep_cases.all()):
            events, cases = _drop(events, cases, index, keep_events, keep_cases)
            if not cases.num_rows and not self._findings.collect_all:
                raise InputError("cases-none-left", path=self._path)
        return EventLog(events, cases, metadata, self._findings.result(), self._path)

    # ---- joining

    def _join_events(self) -> dict[ColumnKey, pa.Array]:
        keys = dict.fromkeys(key for block in self._event_columns for key in block)
        result = {}
        for key in keys:
            present = next(block[key].type for block in self._event_columns if key in block)
            chunks = [
                block.pop(key) if key in block else pa.nulls(size, present)
                for block, size in zip(self._event_columns, self._sizes, strict=True)
            ]
            result[key] = _join(chunks)
        return result

    def _join_cases(self) -> dict[ColumnKey, pa.Array]:
        self._drop_repeated()
        result = {}
        for key, parts in self._case_columns.items():
            rows = np.concatenate([rows for _, rows, _ in parts])
            if len(rows):
                result[key] = spread_values(_join([values for _, _, values in parts]), rows, self._cases)
        return result

    def _drop_repeated(self) -> None:
        """Keep the first of the attributes that a trace has twice in different blocks.
        Blocks have already done so for their own."""
        names = dict.fromkeys(key.key for key in self._case_columns)
        for name in names:
            columns = [key for key in self._case_columns if key.key == name]
            if len(columns) == 1:
                rows = np.concatenate([rows for _, rows, _ in self._case_columns[columns[0]]])
                if (np.diff(rows) > 0).all():
                    continue
            taken = np.zeros(self._cases, dtype=np.bool_)
            parts = sorted(((part, key) for key in columns for part in self._case_columns[key]), key=lambda p: p[0][0])
            for key in columns:
                self._case_columns[key] = []
            for (block, rows, values), key in parts:
                again = taken[rows]
                taken[rows] = True
                if again.any():
                    line = int(np.concatenate(self._case_lines)[rows[again][0]])
                    count = int(np.count_nonzero(again))
                    self._findings.add("duplicate-attribute", Message("example-key", key=name), line=line, count=count)
                    rows, values = rows[~again], values.filter(from_numpy(~again))
                self._case_columns[key].append((block, rows, values))

    # ---- checking

    def _check_names(self, names: pa.Array) -> BoolArray:
        lines = np.concatenate(self._case_lines)
        keep = np.ones(self._cases, dtype=np.bool_)
        unnamed = np.flatnonzero(to_numpy(names.is_null()))
        if len(unnamed):
            first = int(unnamed[0])
            shown, line = Message("example-of-case", name=first + 1), int(lines[first])
            policy = self._findings.add("case-without-name", shown, line=line, count=len(unnamed))
            keep[unnamed] = policy == "keep"
        codes = to_numpy(names.dictionary_encode().indices)
        known = np.flatnonzero(~to_numpy(names.is_null()))
        first_of = known[np.unique(codes[known], return_index=True)[1]]
        again = np.setdiff1d(known, first_of)
        if len(again):
            example, line = repr(names[int(again[0])].as_py()), int(lines[again[0]])
            if self._findings.add("duplicate-case-id", example, line=line, count=len(again)) == "drop":
                keep[again] = False
        return keep

    def _classifier(self, columns: dict[ColumnKey, pa.Array], metadata: Metadata) -> tuple[str, ...]:
        """Return the attributes that make an activity, by the data owner's classifier."""
        if self._declared.classifier is None:
            return ()
        known = dict.fromkeys([ACTIVITY, TIMESTAMP, *(key.key for key in columns)])
        return classifier_keys(self._declared.classifier, known, metadata.classifiers, exact=True)

    def _check_transitions(self, labels: pa.Array, steps: pa.Array | None, *, told_apart: bool) -> BoolArray:
        if steps is None:
            asked = self._declared.lifecycle
            if asked is not None and asked.strip().casefold() != EVERY and self._events:
                raise no_life_cycle(asked)
            return np.ones(self._events, dtype=np.bool_)
        transitions = Transitions(self._declared.lifecycle)
        keep = transitions.keep(labels, steps)
        transitions.done(self._findings, told_apart=told_apart)
        return keep

    def _check_events(self, mute: BoolArray, times: pa.Array, keep: BoolArray) -> BoolArray:
        if not self._events:
            return keep
        lines, keep = np.concatenate(self._event_lines), keep.copy()

        def check(rule: str, rows: IntArray) -> None:
            rows = rows[keep[rows]]
            if not len(rows):
                return
            example = Message("example-event", n=int(rows[0]) + 1)
            if self._findings.add(rule, example, line=int(lines[rows[0]]), count=len(rows)) == "drop":
                keep[rows] = False

        counted = int(keep.sum())
        check("event-without-activity", np.flatnonzero(mute))
        if counted and not keep.any() and not self._findings.collect_all:
            raise InputError("events-without-activities", path=self._path)
        bad = np.concatenate(self._bad_times)
        if len(bad) and self._is_dropped("bad-timestamp"):
            keep[bad] = False
        untimed = np.setdiff1d(np.flatnonzero(to_numpy(times.is_null())), bad)
        # Events are left out only if the data owner chooses that, and then whatever the events of other cases have.
        if int(keep[untimed].sum()) == counted and self._findings.policy("missing-timestamp") != "drop":
            self._findings.add("no-timestamps", Message("example-events", n=counted))
        else:
            check("missing-timestamp", untimed)
        zoneless = NO_ZONE in self._zones
        self._findings.note_zones(told=len(self._zones) > zoneless, missing=zoneless)
        if len(self._zones) > 1:
            others = sorted(self._zones.values(), key=lambda z: z[2])[1:]
            self._findings.add("mixed-time-zones", others[0][1], line=others[0][2], count=sum(z[0] for z in others))
        return keep

    def _is_dropped(self, rule: str) -> bool:
        """Return True if elements under a rule are left out, also if ``fail`` was noted."""
        return self._findings.policy(rule) != "keep"

    def _check_empty(self, index: IntArray, keep_events: BoolArray) -> BoolArray:
        keep = np.ones(self._cases, dtype=np.bool_)
        dropped = self._findings.policy("empty-trace") == "drop"
        counted = index[keep_events] if dropped else index
        empty = np.flatnonzero(np.bincount(counted, minlength=self._cases) == 0)
        if len(empty):
            line = int(np.concatenate(self._case_lines)[empty[0]])
            self._findings.add(
                "empty-trace", Message("example-of-case", name=int(empty[0]) + 1), line=line, count=len(empty)
            )
            keep[empty] = not dropped
        return keep

    def _check_order(self, index: IntArray, times: pa.Array, keep: BoolArray) -> None:
        known = np.flatnonzero(keep & ~to_numpy(times.is_null()))
        if len(known) < 2:
            return
        us = to_numpy(times.view(pa.int64()))[known]
        case = index[known]
        back = np.flatnonzero((us[1:] < us[:-1]) & (case[1:] == case[:-1])) + 1
        if len(back):
            line = int(np.concatenate(self._event_lines)[known[back[0]]])
            example = Message("example-event", n=int(known[back[0]]) + 1)
            self._findings.add("unordered-timestamps", example, line=line, count=len(np.unique(case[back])))


def _join(chunks: list[pa.Array]) -> pa.Array:
    joined = pa.chunked_array(chunks)
    if pa.types.is_dictionary(joined.type):
        joined = joined.unify_dictionaries()
    return joined.combine_chunks()


def _empty_log(metadata: Metadata, findings: Findings, path: str) -> EventLog:
    """Return the log without cases, which is left if its only case is taken out."""
    none = np.zeros(0, dtype=np.int64)
    labels, times = pa.nulls(0, LABEL_TYPE), pa.nulls(0, TIMESTAMP_TYPE)
    first = {CASE_INDEX: from_numpy(none), EVENT_INDEX: from_numpy(none), ACTIVITY: labels, TIMESTAMP: times}
    cases = _table({ACTIVITY: pa.nulls(0, pa.string())}, {}, {})
    return EventLog(_table(first, {}, {}), cases, metadata, findings.result(), path)


def _texts(columns: dict[ColumnKey, pa.Array], key: str, size: int) -> pa.Array | None:
    """Return the values under a key as text; None where no event has it."""
    found = {column: values for column, values in columns.items() if column.key == key}
    return _text_of(found, key, size).cast(pa.string()) if found else None


def _text_of(columns: dict[ColumnKey, pa.Array], key: str, size: int) -> pa.Array:
    """Return the labels under a key as text, of strings or else of other types."""
    plain = columns.pop(ColumnKey(key, "string"), None)
    others = [(column, values) for column, values in columns.items() if column.key == key]
    if not others:
        return pa.nulls(size, LABEL_TYPE) if plain is None else plain
    text = pa.nulls(size, pa.string()) if plain is None else plain.cast(pa.string())
    for column, values in others:
        if column.type == "date" and not column.as_text:
            written = from_texts([None if v is None else format_date(v) for v in values.to_pylist()])
        elif column.type == "float" and not column.as_text:
            written = from_texts([None if v is None else format_float(v) for v in values.to_pylist()])
        else:
            written = values.cast(pa.string())
        text = pc.coalesce(text, written)
    return text.dictionary_encode()


def _table(
    first: dict[str, pa.Array], columns: dict[ColumnKey, pa.Array], nested: dict[int, list[dict[str, Any]]]
) -> pa.Table:
    """Return a table of these columns, with the nested attributes as JSON."""
    others = {key: values for key, values in columns.items() if not (key == _TIME and TIMESTAMP in first)}
    fields = [pa.field(name, values.type) for name, values in first.items()]
    arrays = list(first.values())
    for key, named in name_columns(others, (*first, NESTED)):
        fields.append(named)
        arrays.append(others[key])
    if nested:
        column: list[str | None] = [None] * len(arrays[0])
        for row, entries in nested.items():
            column[row] = dump_nested(entries)
        fields.append(pa.field(NESTED, pa.string()))
        arrays.append(from_texts(column))
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def _drop(
    events: pa.Table, cases: pa.Table, index: IntArray, keep_events: BoolArray, keep_cases: BoolArray
) -> tuple[pa.Table, pa.Table]:
    renumbered = (np.cumsum(keep_cases) - 1)[index[keep_events]]
    events = _drop_unused_labels(events.filter(from_numpy(keep_events)))
    cases = _drop_unused_labels(cases.filter(from_numpy(keep_cases)))
    for name, values in ((CASE_INDEX, renumbered), (EVENT_INDEX, np.arange(len(renumbered)))):
        events = events.set_column(events.column_names.index(name), name, from_numpy(values))
    return events, cases


def _drop_unused_labels(table: pa.Table) -> pa.Table:
    """Return the table without labels that only dropped rows had."""
    columns: Iterable[pa.ChunkedArray] = (
        c.cast(c.type.value_type).dictionary_encode() if pa.types.is_dictionary(c.type) else c for c in table.columns
    )
    return pa.Table.from_arrays([c.combine_chunks() for c in columns], schema=table.schema)


def _put_attribute(entries: list[dict[str, Any]], entry: dict[str, Any]) -> None:
    """Add a nested attribute; of equal keys and types the first one's value is used.
    The children of all become its children, so that none is lost."""
    if entry["type"] not in ("list", "container") and "value" not in entry:
        for known in entries:
            if (known["key"], known["type"]) == (entry["key"], entry["type"]) and "value" not in known:
                known["children"].extend(entry["children"])
                return
    entries.append(entry)


Progress = Callable[[float], None]


class _Xes:
    """Reader and writer of XES; see :class:`veilog.logs.input.formats.Reader`."""

    name = "XES"
    suffixes = (".xes", ".xes.gz")
    typed = False

    def recognises(self, source: Source) -> bool:
        return source.suffix in self.suffixes

    def read(self, source: Source, asked: ReadRequest) -> EventLog:
        path, say = source.path, asked.progress
        told = None if say is None else lambda fraction: say(f"reading {path.name}", fraction)
        return read_xes(path, findings=asked.findings, progress=told, declared=asked.options)

    def write(self, log: EventLog, file: BinaryIO, target: Path, *, lossy: bool) -> None:
        write_xes(log, file)

    def write_pieces(
        self, pieces: Iterable[EventLog], file: BinaryIO, target: Path, *, lossy: bool, eventless: pa.Table | None
    ) -> None:
        write_xes_pieces(pieces, file)


XES = _Xes()


def read_xes(
    path: Path,
    *,
    findings: Findings,
    progress: Progress | None = None,
    declared: ReadOptions = DEFAULT_OPTIONS,
) -> EventLog:
    """Read a plain or gzip-compressed XES file.

    Everything in the file ends up in the event log or in ``findings``. The limit of ``declared`` bounds the unpacked
    bytes of a compressed file. Several processes may share a large file, with the same result. ``progress`` is called
    with the fraction read so far. A document that does not end properly, declares entities or refers to anything
    outside itself is refused (:class:`InputError` with line and column).
    """
    limit = declared.limit
    reading = XesReading(Path(path), limit, drop_bad=findings.policy("bad-value") == "drop")
    findings.path = findings.path or str(path)
    before = findings.copy()
    blocks = read_in_parts(reading, declared.processes, progress)
    if blocks is not None:
        try:
            return _assemble(blocks, reading, findings, declared)
        except NeedsNormalizing:
            findings.restore(before)
    try:
        reading = XesReading(reading.path, limit, reading.drop_bad)
        return _assemble(read_blocks(reading, progress), reading, findings, declared)
    except NeedsNormalizing:
        findings.restore(before)
    if not reading.path.is_file():
        raise InputError("xes-not-from-pipe", path=path)
    reading = XesReading(reading.path, limit, reading.drop_bad, plain=True)
    return _assemble(read_blocks(reading, progress), reading, findings, declared)


def _assemble(
    blocks: Generator[XesBlock, None, None],
    reading: XesReading,
    findings: Findings,
    declared: ReadOptions = DEFAULT_OPTIONS,
) -> EventLog:
    assembler = Assembler(str(reading.path), findings, declared)
    with closing(blocks):
        for block in blocks:
            assembler.add(block)
    assert reading.root is not None, "a complete document has a root element"
    return assembler.finish(reading.root, drop_bad=reading.drop_bad)
