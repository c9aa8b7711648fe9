"""Readers of tables in memory: Arrow, polars and pandas, and logs of pm4py."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa

from veilog.errors import InputError
from veilog.logs.eventlog import ACTIVITY, CASE, CASE_INDEX, EVENT_INDEX, TIMESTAMP
from veilog.logs.findings import Findings
from veilog.logs.input.formats import ReadRequest
from veilog.logs.input.source import Source
from veilog.logs.metadata import Attribute, Metadata
from veilog.logs.tables.cells import from_values, plain_type
from veilog.logs.tables.table_reader import Notes, TableReader


class _Arrow(TableReader):
    name = "Arrow"
    typed = True

    def recognises(self, source: Source) -> bool:
        return isinstance(source.given, pa.Table)

    def columns(self, source: Source) -> list[str]:
        return list(source.given.column_names)

    def table(self, source: Source, asked: ReadRequest) -> pa.Table:
        return source.given


class _Polars(TableReader):
    """A frame, eager or lazy, read by way of Arrow; polars itself is never imported."""

    name = "polars"
    typed = True

    def recognises(self, source: Source) -> bool:
        kinds = [kind for kind in type(source.given).__mro__ if kind.__module__.partition(".")[0] == "polars"]
        return any(kind.__name__ in ("DataFrame", "LazyFrame") for kind in kinds)

    def columns(self, source: Source) -> list[str]:
        return list(source.once(_collect).column_names)

    def table(self, source: Source, asked: ReadRequest) -> pa.Table:
        return source.once(_collect)


def _collect(source: Source) -> pa.Table:
    try:
        frame = source.given.collect() if hasattr(source.given, "collect") else source.given
        objects = next((name for name, kind in frame.schema.items() if str(kind) == "Object"), None)
        if objects is None:
            return frame.to_arrow()
    except MemoryError:
        raise
    except Exception as error:  # what a lazy frame does may fail in any way, and Arrow lacks some types of polars
        said = f"{type(error).__name__}: {str(error).partition(chr(10))[0][:200]}"
        raise InputError("frame-not-readable", said=said) from error
    raise InputError("column-python-objects", objects=objects)


class _Pandas(TableReader):
    name = "pandas"

    def in_pandas(self, source: Source) -> str:
        return "log"

    def recognises(self, source: Source) -> bool:
        kinds = [kind for kind in type(source.given).__mro__ if kind.__module__.partition(".")[0] == "pandas"]
        return any(kind.__name__ == "DataFrame" for kind in kinds)

    def columns(self, source: Source) -> list[str]:
        return list(map(str, source.given.columns))

    def table(self, source: Source, asked: ReadRequest) -> pa.Table:
        frame, roles = source.given, asked.roles
        needed, times = ((), ()) if roles is None else (roles.named, roles.times)
        columns = {}
        for column, name in zip(frame.columns, map(str, frame.columns), strict=True):
            # A column that orders events decides about them, too, whether or not it has a role.
            apart, of_times = name in needed or name == EVENT_INDEX, name in times
            array, kept = _from_pandas(frame[column], name, asked.findings, apart=apart, times=of_times)
            if kept or apart:
                columns[name] = array
        return pa.table(columns)


def _from_pandas(series: Any, name: str, findings: Findings, *, apart: bool, times: bool) -> tuple[Any, bool]:
    """Return the column, and True if it stays."""
    held = getattr(series.dtype, "categories", series)
    # As names Arrow writes times by their type, in its zone and with its digits, and that may follow from other values.
    if apart and not times and str(held.dtype).startswith(("datetime64", "timestamp", "timedelta64", "duration")):
        return from_values(series.astype(object).tolist(), name, findings, apart=apart, times=times)
    if str(held.dtype) != "object" or set(map(type, held)) <= {str, type(None)}:
        try:
            array = pa.Array.from_pandas(series)
            if not isinstance(plain_type(array.type), pa.BaseExtensionType):  # spans and intervals, by their inside
                return array, True
        except (pa.ArrowException, OverflowError, ValueError, TypeError):
            pass  # integers beyond 64 bits: as text, nothing is lost
    return from_values(series.astype(object).tolist(), name, findings, apart=apart, times=times)


ARROW = _Arrow()
POLARS = _Polars()
PANDAS = _Pandas()


_PREFIX = "case:"
_KINDS: tuple[tuple[type, str], ...] = (
    (bool, "boolean"),
    (int, "int"),
    (float, "float"),
    (str, "string"),
    (datetime, "date"),
)
"""Types of an attribute of the log, as XES names them."""


class _Pm4py(TableReader):
    name = "pm4py"
    declares = False
    heeds = ()

    def recognises(self, source: Source) -> bool:
        kinds = [kind for kind in type(source.given).__mro__ if kind.__module__.startswith("pm4py.objects.log")]
        return any(kind.__name__ == "EventLog" for kind in kinds)

    def columns(self, source: Source) -> list[str]:
        log = source.given
        own = dict.fromkeys(str(key) for trace in log for event in trace for key in event)
        of_cases = dict.fromkeys(f"{_PREFIX}{key}" for trace in log for key in trace.attributes)
        usual = [CASE, ACTIVITY, TIMESTAMP]
        return list(dict.fromkeys([*usual, EVENT_INDEX, CASE_INDEX, *own, *of_cases]))

    def table(self, source: Source, asked: ReadRequest) -> pa.Table:
        log = source.given
        traces = np.repeat(np.arange(len(log)), [len(trace) for trace in log])
        events = [event for trace in log for event in trace]
        columns = {CASE_INDEX: pa.array(traces, pa.int64()), EVENT_INDEX: pa.array(np.arange(len(events)), pa.int64())}
        used, times = ((), ()) if asked.roles is None else (asked.roles.named, asked.roles.times)
        for name in self.columns(source):
            if name in columns:
                continue
            values = [event.get(name) for event in events]
            if name.startswith(_PREFIX):  # an attribute of the case goes before that of an event with this name
                key = name.removeprefix(_PREFIX)
                of_cases = [log[trace].attributes.get(key) for trace in traces.tolist()]
                values = [mine if own is None else own for own, mine in zip(of_cases, values, strict=True)]
            array, kept = from_values(
                list(map(_plain, values)), name, asked.findings, apart=name in used, times=name in times
            )
            if kept or name in used:
                columns[name] = array
        return pa.table(columns)

    def notes(self, source: Source) -> Notes:
        """Return notes that distinguish cases by their places.

        So cases of one name stay two, and those without events stay.
        """
        log = source.given
        empty = [place for place, trace in enumerate(log) if not len(trace)]
        table = None
        if empty:
            keys = dict.fromkeys([ACTIVITY, *(str(key) for place in empty for key in log[place].attributes)])
            held = {key: [_plain(log[place].attributes.get(key)) for place in empty] for key in keys}
            arrays = {key: from_values(values, key, Findings(collect_all=True))[0] for key, values in held.items()}
            arrays[ACTIVITY] = arrays[ACTIVITY].cast(pa.string())
            table = pa.table({**arrays, CASE_INDEX: pa.array(empty, pa.int64())})
        return Notes(_metadata(log), CASE_INDEX, table)


PM4PY = _Pm4py()


def _plain(value: Any) -> Any:
    """Return an attribute's value; one with attributes of its own becomes text."""
    return str(dict(value)) if isinstance(value, Mapping) else value


def _metadata(log: Any) -> Metadata:
    """Return the log's own metadata."""
    try:
        return Metadata(
            extensions=tuple(
                (str(name), str(said.get("prefix", "")), str(said.get("uri", "")))
                for name, said in dict(log.extensions).items()
            ),
            classifiers=tuple(
                (str(name), " ".join(map(_quote_key, keys)), "event") for name, keys in dict(log.classifiers).items()
            ),
            attributes=tuple(_attributes(log.attributes)),
        )
    except (AttributeError, TypeError, ValueError) as error:
        raise InputError("pm4py-properties-not-readable", reason=error) from error


def _quote_key(key: object) -> str:
    return f"'{key}'" if " " in str(key) else str(key)


def _attributes(given: Mapping[str, Any]) -> Iterator[Attribute]:
    for key, value in given.items():
        kind = next((kind for known, kind in _KINDS if isinstance(value, known)), None)
        if kind is not None:
            yield Attribute(str(key), value, kind)
        else:
            yield Attribute(str(key), str(value), "string")
