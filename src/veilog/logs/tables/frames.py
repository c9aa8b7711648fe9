"""The readers of tables in memory: Arrow and polars, whose columns have types, and pandas, which may hold anything."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from veilog.errors import InputError
from veilog.logs.eventlog import EVENT_INDEX
from veilog.logs.findings import Findings
from veilog.logs.input.reader import ReadRequest
from veilog.logs.input.source import Source
from veilog.logs.tables.cells.columns import plain_type
from veilog.logs.tables.cells.objects import from_values
from veilog.logs.tables.reader import TableReader

__all__ = ["ARROW", "PANDAS", "POLARS"]


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
    """A frame, eager or lazy, by way of Arrow: polars is never imported, but asked."""

    name = "polars"
    typed = True

    def recognises(self, source: Source) -> bool:
        kinds = [kind for kind in type(source.given).__mro__ if kind.__module__.partition(".")[0] == "polars"]
        return any(kind.__name__ in ("DataFrame", "LazyFrame") for kind in kinds)

    def columns(self, source: Source) -> list[str]:
        return list(source.once(_collected).column_names)

    def table(self, source: Source, asked: ReadRequest) -> pa.Table:
        return source.once(_collected)


def _collected(source: Source) -> pa.Table:
    try:
        frame = source.given.collect() if hasattr(source.given, "collect") else source.given
        objects = next((name for name, kind in frame.schema.items() if str(kind) == "Object"), None)
        if objects is None:
            return frame.to_arrow()
    except MemoryError:
        raise
    except Exception as error:  # what a lazy frame does may fail in any way, and Arrow lacks some types of polars
        said = f"{type(error).__name__}: {str(error).partition(chr(10))[0][:200]}"
        raise InputError("frame-polars-cannot-read", said=said) from error
    raise InputError("column-holds-objects-python", objects=objects)


class _Pandas(TableReader):
    name = "pandas"

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
            # What orders events decides about them, too, whether or not it has a role.
            apart, of_times = name in needed or name == EVENT_INDEX, name in times
            array, kept = _from_pandas(frame[column], name, asked.findings, apart=apart, times=of_times)
            if kept or apart:
                columns[name] = array
        return pa.table(columns)


def _from_pandas(series: Any, name: str, findings: Findings, *, apart: bool, times: bool) -> tuple[Any, bool]:
    """The column, and whether it stays."""
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
