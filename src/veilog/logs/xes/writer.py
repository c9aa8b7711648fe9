"""Writer of XES: equal logs give equal bytes, and everything read comes out again.

Events are written a batch of cases at a time. Each column becomes an Arrow column of finished lines (for labels: each
distinct one once), the lines of an event are joined by Arrow, and the batch is one slice of memory.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from veilog.errors import OutputError
from veilog.logs.eventlog import ACTIVITY, CASE_INDEX, EVENT_INDEX, NESTED, EventLog
from veilog.logs.metadata import Attribute, Metadata, extensions_of
from veilog.logs.xes.columns import field_key, field_type
from veilog.logs.xes.values import (
    NESTING,
    SCALARS,
    format_date,
    format_dates,
    format_float,
    from_json,
    from_numpy,
    from_texts,
)

_BATCH = 20_000
_TEXT = pa.large_string()
_FEATURES = "nested-attributes"
_BEFORE_LISTS = re.compile(r"1(\.[0-9]+)?")
"""Versions of XES without lists and containers, which came with 2.0."""
_LISTS = f'"type": ?"({"|".join(NESTING)})"'
"""Pattern of a list or container in the JSON of a nested attribute; a quote in a text has a backslash."""

_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\n": "&#10;", "\r": "&#13;", "\t": "&#9;"}
_ESCAPED = re.compile('[&<>"\n\r\t]')
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_SUSPECT = re.compile(b'[\x00-\x1f&<>"]|\xef\xbf[\xbe\xbf]')


def write_xes(log: EventLog, target: BinaryIO) -> None:
    """Write a log as XES in UTF-8, in the order of its parts.

    They are extensions, globals, classifiers, attributes, cases and events. A log that does not name its XES version
    gets 1.0, or 2.0 where it has lists or containers, which 1.x does not know. If it names no extension either, it gets
    the standard ones that it uses. Raises :class:`OutputError` for signs that XML 1.0 cannot carry.
    """
    _write([log], target, _has_lists)


def write_xes_pieces(logs: Iterable[EventLog], target: BinaryIO) -> None:
    """Write one log of several pieces, with the columns and metadata of the first.

    Its version allows lists as soon as there is a column of nested attributes, because a later piece may have them.
    """
    _write(logs, target, _may_have_lists)


def _write(logs: Iterable[EventLog], target: BinaryIO, lists: Callable[[EventLog], bool]) -> None:
    for number, log in enumerate(logs):
        if number == 0:
            target.write(_document_head(log, lists=lists(log)).encode("utf-8"))
        _write_cases(log, target)
    target.write(b"</log>\n")


def _write_cases(log: EventLog, target: BinaryIO) -> None:
    event_fields = _fields(log.events, (CASE_INDEX, EVENT_INDEX, NESTED))
    case_fields = _fields(log.cases, (NESTED,))
    for first, last in _batches(log.offsets):
        start, stop = int(log.offsets[first]), int(log.offsets[last])
        rows, cases = log.events.slice(start, stop - start), log.cases.slice(first, last - first)
        events = _elements(rows, event_fields, "\t\t\t", "\t\t<event>\n", "\t\t</event>\n")
        heads = _elements(cases, case_fields, "\t\t", "\t<trace>\n", "")
        target.write(_interleave(events, heads, log.offsets[first : last + 1] - start))


def _batches(offsets: Any) -> Iterator[tuple[int, int]]:
    """Yield ranges of cases of about ``_BATCH`` events and at most as many cases."""
    first, cases = 0, len(offsets) - 1
    while first < cases:
        last = int(np.searchsorted(offsets, offsets[first] + _BATCH, side="right")) - 1
        last = min(max(last, first + 1), first + _BATCH, cases)
        yield first, last
        first = last


def _interleave(events: pa.Array, heads: pa.Array, offsets: Any) -> memoryview:
    """Return each case's head, its events and its end, as one piece of memory."""
    cases = len(heads)
    order = np.empty(len(events) + 2 * cases, dtype=np.int64)
    head_at = offsets[:-1] + 2 * np.arange(cases)
    end_at = offsets[1:] + 2 * np.arange(cases) + 1
    is_event = np.ones(len(order), dtype=np.bool_)
    is_event[head_at] = is_event[end_at] = False
    order[is_event] = np.arange(len(events))
    order[head_at] = len(events) + np.arange(cases)
    order[end_at] = len(events) + cases
    lines = pa.concat_arrays([events, heads, from_texts(["\t</trace>\n"], _TEXT)]).take(from_numpy(order))
    bounds = np.frombuffer(lines.buffers()[1], dtype=np.int64)
    return memoryview(lines.buffers()[2])[bounds[lines.offset] : bounds[lines.offset + len(lines)]]


# ---- columns


@dataclass(frozen=True)
class _Field:
    name: str
    key: str
    type: str
    index: int


def _fields(table: pa.Table, without: tuple[str, ...]) -> list[_Field]:
    fields = []
    for index, field in enumerate(table.schema):
        if field.name not in without:
            fields.append(_Field(field.name, field_key(field), field_type(field), index))
    return fields


def _lines(column: pa.ChunkedArray, field: _Field, indent: str) -> pa.Array:
    """Return a finished line for each value of a column, null for null."""
    prefix = f'{indent}<{field.type} key="{escape(field.key, field.key)}" value="'
    suffix = '"/>\n'
    array = column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = array.chunk(0) if array.num_chunks else pa.nulls(0, column.type)
    kind = array.type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return _surround(prefix, _date_text(array, field), suffix)
    if pa.types.is_boolean(kind):
        return _surround(prefix, pc.if_else(array, "true", "false"), suffix)
    if pa.types.is_integer(kind):
        return _surround(prefix, array.cast(pa.string()), suffix)
    if pa.types.is_floating(kind):
        encoded = array.cast(pa.float64()).view(pa.int64()).dictionary_encode()  # as bits: -0.0 is not 0.0
        text = [format_float(v) for v in encoded.dictionary.view(pa.float64()).to_pylist()]
        return _surround(prefix, from_texts(text), suffix).take(encoded.indices)
    try:
        encoded = array if pa.types.is_dictionary(kind) else array.cast(pa.string()).dictionary_encode()
        labels = encoded.dictionary.cast(pa.string())
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid) as error:
        raise OutputError("xes-column-type-not-writable", name=field.name, kind=kind) from error
    used = encoded
    if len(labels) > 4 * len(array):  # a small slice of a column with many labels: write only those in the slice
        used = encoded.cast(pa.string()).dictionary_encode()
        labels = used.dictionary
    raw = labels.buffers()[2] if len(labels) else None
    if raw is not None and _SUSPECT.search(raw):
        labels = from_texts([None if v is None else escape(v, field.key) for v in labels.to_pylist()])
    return _surround(prefix, labels, suffix).take(used.indices)


def _surround(prefix: str, text: pa.Array, suffix: str) -> pa.Array:
    return pc.binary_join_element_wise(
        pa.scalar(prefix, _TEXT), text.cast(_TEXT), pa.scalar(suffix, _TEXT), pa.scalar("", _TEXT)
    )


def _date_text(array: pa.Array, field: _Field) -> pa.Array:
    kind = array.type
    if pa.types.is_date(kind):
        array = array.cast(pa.timestamp("us"))
    try:
        # Nanoseconds are cut; a time without a zone is in UTC.
        us = array.cast(pa.timestamp("us", tz=array.type.tz), safe=kind.unit != "ns" if hasattr(kind, "unit") else True)
        return format_dates(us.view(pa.int64()))
    except (pa.ArrowInvalid, OverflowError) as error:
        raise OutputError("xes-time-outside-years", name=field.name) from error


def _elements(table: pa.Table, fields: list[_Field], indent: str, head: str, tail: str) -> pa.Array:
    """Return the text of one element for each row."""
    if not table.num_rows:
        return pa.nulls(0, _TEXT)
    columns = {field.name: _lines(table.column(field.index), field, indent) for field in fields}
    # A name of another type than string stands in two columns; the one of its type is written.
    for field in fields:
        if field.key == ACTIVITY and field.name != ACTIVITY:
            other = columns[field.name]
            columns[ACTIVITY] = pc.if_else(other.is_valid(), pa.scalar(None, _TEXT), columns[ACTIVITY])
    if NESTED in table.column_names:
        nested = _nested_lines(table, fields, columns, indent)
        if nested is not None:
            columns[NESTED] = nested
    return pc.binary_join_element_wise(
        from_texts([head], _TEXT).take(from_numpy(np.zeros(table.num_rows, dtype=np.int32))),
        *columns.values(),
        pa.scalar(tail, _TEXT),
        pa.scalar("", _TEXT),
        null_handling="skip",
    )


def _nested_lines(table: pa.Table, fields: list[_Field], columns: dict[str, pa.Array], indent: str) -> pa.Array | None:
    """Return the lines of nested attributes.
    Children of an attribute whose value has a column are put into its line."""
    entries = table.column(NESTED).to_pylist()
    if not any(entries):
        return None
    result: list[str | None] = [None] * len(entries)
    changed: dict[str, list[str | None]] = {}
    for row, text in enumerate(entries):
        if not text:
            continue
        parts = []
        for attribute in _parse_nested(text):
            if attribute.type in SCALARS and attribute.value is None:
                children = "".join(attribute_text(c, indent + "\t") for c in attribute.children)
                for field in fields:
                    if (field.key, field.type) == (attribute.key, attribute.type):
                        lines = changed.get(field.name) or columns[field.name].to_pylist()
                        line = lines[row]
                        if line is not None:
                            end = f"{indent}</{field.type}>\n"
                            opened = line[: -len(end)] if line.endswith(end) else line[:-3] + ">\n"
                            lines[row] = opened + children + end
                            changed[field.name] = lines
                            break
                else:
                    parts.append(attribute_text(attribute, indent))
                continue
            parts.append(attribute_text(attribute, indent))
        result[row] = "".join(parts)
    for name, lines in changed.items():
        columns[name] = from_texts(lines, _TEXT)
    return from_texts(result, _TEXT)


def _parse_nested(text: object) -> list[Attribute]:
    """Return the attributes in the nested column; refuse another column of its name."""
    try:
        return [from_json(entry) for entry in json.loads(text)]  # type: ignore[arg-type]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise OutputError("xes-nested-column-invalid", nested=NESTED, text=str(text)[:80]) from None


# ---- text


def escape(text: str, key: str) -> str:
    """Return the text for an XML attribute in double quotes, to be read back exactly."""
    if _FORBIDDEN.search(text):
        raise OutputError("xes-character-not-allowed", text=text[:80], key=key)
    return _ESCAPED.sub(lambda m: _ESCAPES[m.group()], text) if _ESCAPED.search(text) else text


def attribute_text(attribute: Attribute, indent: str) -> str:
    """Return an attribute with its children, line by line."""
    kind = attribute.type
    if kind == "values":
        return _wrap(f"{indent}<values", "values", attribute.children, indent)
    if kind not in (*SCALARS, *NESTING):
        raise OutputError("xes-type-unknown", key=attribute.key, kind=kind)
    opening = f'{indent}<{kind} key="{escape(attribute.key, attribute.key)}"'
    if attribute.value is not None:
        opening += f' value="{escape(_value_text(attribute), attribute.key)}"'
    if kind == "list" and not any(c.type == "values" for c in attribute.children):
        inner = _wrap(f"{indent}\t<values", "values", attribute.children, indent + "\t")
        return f"{opening}>\n{inner}{indent}</list>\n"
    return _wrap(opening, kind, attribute.children, indent)


def _wrap(opening: str, kind: str, children: tuple[Attribute, ...], indent: str) -> str:
    if not children:
        return f"{opening}/>\n"
    inner = "".join(attribute_text(c, indent + "\t") for c in children)
    return f"{opening}>\n{inner}{indent}</{kind}>\n"


def _value_text(attribute: Attribute) -> str:
    value = attribute.value
    if isinstance(value, datetime):
        return format_date(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return format_float(value)
    return str(value)


def _may_have_lists(log: EventLog) -> bool:
    return any(NESTED in table.column_names for table in (log.events, log.cases)) or _has_lists(log)


def _has_lists(log: EventLog) -> bool:
    """Return True if the log has lists or containers anywhere."""
    metadata = log.metadata
    if any(map(_is_list, [*metadata.attributes, *(a for _, found in metadata.globals for a in found)])):
        return True
    columns = [t.column(NESTED).cast(pa.string()) for t in (log.events, log.cases) if NESTED in t.column_names]
    return any(pc.any(pc.match_substring_regex(column, _LISTS)).as_py() for column in columns)


def _is_list(attribute: Attribute) -> bool:
    return attribute.type in NESTING or any(map(_is_list, attribute.children))


def _document_head(log: EventLog, *, lists: bool) -> str:
    """Return the document up to the first trace."""
    metadata = log.metadata
    features, version, extensions = metadata.features, metadata.version, metadata.extensions
    if version is None and not extensions:
        features = _FEATURES if features is None else features
        extensions = extensions_of(field_key(f) for table in (log.events, log.cases) for f in table.schema)
    if version is None or (lists and _BEFORE_LISTS.fullmatch(version)):
        version = "2.0" if lists else "1.0"
    lines = [f'<?xml version="1.0" encoding="UTF-8"?>\n<log xes.version="{escape(version, "xes.version")}"']
    if features is not None:
        lines.append(f' xes.features="{escape(features, "xes.features")}"')
    lines.append(' xmlns="http://www.xes-standard.org/">\n')
    for name, prefix, uri in extensions:
        lines.append(
            f'\t<extension name="{escape(name, name)}" prefix="{escape(prefix, name)}" uri="{escape(uri, name)}"/>\n'
        )
    lines.extend(_describe_metadata(metadata))
    return "".join(lines)


def _describe_metadata(metadata: Metadata) -> Iterator[str]:
    for scope, attributes in metadata.globals:
        yield _wrap(f'\t<global scope="{escape(scope, "global")}"', "global", attributes, "\t")
    for name, keys, scope in metadata.classifiers:
        where = "" if scope == "event" else f' scope="{escape(scope, name)}"'
        yield f'\t<classifier name="{escape(name, name)}"{where} keys="{escape(keys, name)}"/>\n'
    for attribute in metadata.attributes:
        yield attribute_text(attribute, "\t")
