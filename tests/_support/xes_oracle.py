"""A second, slow reader of XES with ElementTree, to compare with veilog's."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa

from veilog.logs.eventlog import ACTIVITY, CASE_INDEX, EVENT_INDEX, NESTED, TIMESTAMP, EventLog
from veilog.logs.findings import Findings
from veilog.logs.xes.columns import field_key, field_type
from veilog.logs.xes.reader import _assemble
from veilog.logs.xes.scanner import XesReading, read_blocks

SCALARS = ("string", "date", "int", "float", "boolean", "id")
LENIENT = {
    "missing-timestamp": "keep",
    "bad-timestamp": "keep",
}
"""Policies under which no finding stops the reader."""

Facts = list[tuple[dict[Any, Any], list[Any], list[tuple[dict[Any, Any], list[Any]]]]]


def read_plain(path: Path, findings: Findings) -> EventLog:
    """Return a file's log by the plain reader, whether or not the fast one reads it."""
    reading = XesReading(path, None, drop_bad=False, plain=True)
    findings.path = str(path)
    return _assemble(read_blocks(reading), reading, findings)


def assert_same(one: EventLog, other: EventLog) -> None:
    """Check that two logs are equal in all tables, metadata and findings."""
    assert_same_tables(one, other)
    assert one.metadata == other.metadata
    assert one.findings == other.findings


def assert_same_tables(one: EventLog, other: EventLog) -> None:
    """Check that two logs are equal in every column, type, name and order."""
    for a, b in ((one.events, other.events), (one.cases, other.cases)):
        assert a.schema.equals(b.schema, check_metadata=True)
        assert a.num_rows == b.num_rows
        for name in a.column_names:
            x, y = (_plain(t.column(name)) for t in (a, b))
            assert x.equals(y) or _values(x) == _values(y), name  # lists in which NaN must equal NaN


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column


def _values(column: pa.ChunkedArray) -> list[Any]:
    column = _plain(column)
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    return [repr(v) if isinstance(v, float) else v for v in column.to_pylist()]


# ---- the facts of an event log


def facts(log: EventLog) -> Facts:
    """Return each case's attributes, nested attributes and events, in order."""
    events = _rows(log.events, (CASE_INDEX, EVENT_INDEX))
    assert log.events.column(EVENT_INDEX).to_pylist() == list(range(len(log)))
    result = []
    for i, (values, nested) in enumerate(_rows(log.cases, ())):
        result.append((values, nested, events[log.offsets[i] : log.offsets[i + 1]]))
    return result


def _rows(table: pa.Table, without: tuple[str, ...]) -> list[tuple[dict[Any, Any], list[Any]]]:
    rows: list[tuple[dict[Any, Any], list[Any]]] = [({}, []) for _ in range(table.num_rows)]
    for field, column in zip(table.schema, table.columns, strict=True):
        if field.name in without:
            continue
        values = _values(column)
        for row, value in zip(rows, values, strict=True):
            if value is None:
                continue
            if field.name == NESTED:
                row[1].extend(sorted(json.loads(value), key=json.dumps))  # XES gives their order no meaning
            else:
                row[0][(field_key(field), field_type(field))] = value
    return rows


# ---- facts by ElementTree


def oracle(data: bytes) -> Facts | None:
    """Return the facts in the bytes of a file, or ``None`` if it has no log.

    Raises ParseError where the XML is bad.
    """
    root = ET.fromstring(data)
    namespace = root.tag.rpartition("}")[0]
    for element in root.iter():  # any namespace of the root stands for XES
        if namespace:
            element.tag = element.tag.removeprefix(namespace + "}")
    if _local(root) != "log":
        return None
    traces = [t for t in root if _local(t) == "trace"]
    result: Facts = []
    for trace in traces:
        values, nested = _attributes([c for c in trace if _local(c) != "event"])
        _name(values)
        events = []
        for event in trace:
            if _local(event) == "event":
                found, inner = _attributes(list(event))
                _name(found)
                if (ACTIVITY, "string") in found:
                    events.append((found, inner))
        result.append((values, nested, events))
    return result


def _local(element: ET.Element) -> str:
    uri, _, local = element.tag.rpartition("}")
    return local if not uri or "xes-standard" in uri else f"?{local}"


def _name(values: dict[Any, Any]) -> None:
    """Set the name of a case or event, from any type of attribute that has it."""
    if (ACTIVITY, "string") in values:
        return
    for kind in ("id", "int", "float", "boolean", "date"):
        if (ACTIVITY, kind) in values:
            value = values[(ACTIVITY, kind)]
            if kind == "boolean":
                value = str(value).lower()
            if kind == "date" and isinstance(value, int):
                value = _written(value)
            values[(ACTIVITY, "string")] = str(value)
            return


def _written(us: int) -> str:
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=us)
    return moment.isoformat(timespec="microseconds" if us % 1000 else "milliseconds")


def _attributes(elements: list[ET.Element]) -> tuple[dict[Any, Any], list[Any]]:
    values: dict[Any, Any] = {}
    nested = []
    seen = set()
    for element in elements:
        kind, key, text = _local(element), element.get("key"), element.get("value")
        if kind not in (*SCALARS, "list", "container") or key is None:
            continue
        if kind in SCALARS and text is not None and key not in seen:
            seen.add(key)
            value = _value(kind, text)
            if not (key == TIMESTAMP and kind == "date" and isinstance(value, str)):
                values[(key, kind)] = value
        if len(element) or kind not in SCALARS:
            entry = _nested(element, with_value=False)
            same = [n for n in nested if entry and n["key"] == entry["key"] and n["type"] == entry["type"]]
            if same and entry and entry["type"] not in ("list", "container"):
                same[0]["children"] += entry["children"]  # the first of several equal keys gets the children of all
                continue
            if entry is not None:
                nested.append(entry)
    return values, sorted(nested, key=json.dumps)


def _nested(element: ET.Element, *, with_value: bool) -> dict[str, Any] | None:
    kind, key, text = _local(element), element.get("key"), element.get("value")
    if kind not in (*SCALARS, "list", "container") or key is None:
        return None
    entry: dict[str, Any] = {"key": key, "type": kind}
    if kind in SCALARS:
        if text is None and not len(element):
            return None
        if text is not None and with_value:
            value = _value(kind, text)
            if kind == "date" and isinstance(value, int):
                value = _written(value)
            elif kind == "float" and value[:1] in "-0123456789":
                value = float(value) if value != "-inf" else "-INF"
            elif kind == "float":
                value = {"inf": "INF", "nan": "NaN"}.get(value, value)
            entry["value"] = value
    children = []
    values = [c for c in element if kind == "list" and _local(c) == "values"]
    own = [n for c in element if c not in values and (n := _nested(c, with_value=True))]
    inner = [n for v in values for c in v if (n := _nested(c, with_value=True))]
    children = own or inner
    if own and values:
        wrapped: dict[str, Any] = {"key": "", "type": "values"}
        if inner:
            wrapped["children"] = inner
        children = [*own, wrapped]
    if children:
        entry["children"] = children
    return entry


def _value(kind: str, text: str) -> Any:
    bare = text.strip(" \t\r\n")
    if kind == "int" and re.fullmatch("[+-]?[0-9]+", bare) and -(1 << 63) <= int(bare) < 1 << 63:
        return int(bare)
    if kind == "float":
        special = {"INF": "inf", "+INF": "inf", "-INF": "-inf", "NaN": "nan", "Infinity": "inf", "-Infinity": "-inf"}
        if bare in special:
            return special[bare]
        if re.fullmatch(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?", bare):
            return repr(float(bare))
    if kind == "boolean" and bare.lower() in ("true", "1", "false", "0"):
        return bare.lower() in ("true", "1")
    if kind == "date":
        return _date(bare, text)
    return text


def _date(bare: str, text: str) -> int | str:
    match = re.fullmatch(
        r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?([Zz]|([+-])(\d\d)(?::?(\d\d))?)?",
        bare,
        re.ASCII,
    )
    if not match:
        return text
    numbers = [int(g) for g in match.groups()[:6]]
    try:
        day = (
            timedelta(days=1) if numbers[3] == 24 and not any(numbers[4:]) and not int(match[7] or 0) else timedelta(0)
        )
        numbers[3] = 0 if day else numbers[3]
        shift = timedelta(hours=int(match[10] or 0), minutes=int(match[11] or 0))
        if int(match[11] or 0) > 59:
            return text
        zone = timezone(-shift if match[9] == "-" else shift)
        moment = datetime(*numbers, int((match[7] or "").ljust(6, "0")[:6]), tzinfo=UTC)  # type: ignore[arg-type]
        moment = moment - zone.utcoffset(None) + day
        return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    except (ValueError, OverflowError):
        return text
