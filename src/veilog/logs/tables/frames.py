"""The readers of tables in memory: Arrow and polars, whose columns have types, and pandas, which may hold anything."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from veilog.logs.findings import Findings
from veilog.logs.reader import Asked
from veilog.logs.source import Source
from veilog.logs.tables.reader import TableReader

__all__ = ["ARROW", "PANDAS", "POLARS", "from_values"]


class _Arrow(TableReader):
    name = "Arrow"
    typed = True

    def recognises(self, source: Source) -> bool:
        return isinstance(source.given, pa.Table)

    def columns(self, source: Source) -> list[str]:
        return list(source.given.column_names)

    def table(self, source: Source, asked: Asked) -> pa.Table:
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

    def table(self, source: Source, asked: Asked) -> pa.Table:
        return source.once(_collected)


def _collected(source: Source) -> pa.Table:
    frame = source.given
    return (frame.collect() if hasattr(frame, "collect") else frame).to_arrow()


class _Pandas(TableReader):
    name = "pandas"

    def recognises(self, source: Source) -> bool:
        kinds = [kind for kind in type(source.given).__mro__ if kind.__module__.partition(".")[0] == "pandas"]
        return any(kind.__name__ == "DataFrame" for kind in kinds)

    def columns(self, source: Source) -> list[str]:
        return list(map(str, source.given.columns))

    def table(self, source: Source, asked: Asked) -> pa.Table:
        frame = source.given
        needed = () if asked.roles is None else asked.roles.named
        columns = {str(name): _from_pandas(frame[name], str(name), asked.findings) for name in frame.columns}
        return pa.table({name: array for name, (array, kept) in columns.items() if kept or name in needed})


def _from_pandas(series: Any, name: str, findings: Findings) -> tuple[Any, bool]:
    """The column, and whether it stays."""
    try:
        if series.dtype == object:
            _of_one_kind(series[series.notna()])
        return pa.Array.from_pandas(series), True
    except (pa.ArrowException, OverflowError, ValueError, TypeError):
        # A column of objects of several types, or of integers beyond 64 bits: as text, nothing is lost.
        missing = series.isna().to_numpy()
        return _in_text([None if gone else value for value, gone in zip(series, missing, strict=True)], name, findings)


def from_values(values: Sequence[Any], name: str, findings: Findings) -> tuple[Any, bool]:
    """Return a column of these Python values, and whether it stays."""
    try:
        _of_one_kind(value for value in values if value is not None)
        return pa.array(values), True
    except (pa.ArrowException, OverflowError, ValueError, TypeError):
        return _in_text(values, name, findings)


def _of_one_kind(values: Iterable[Any]) -> None:
    """Raise a TypeError where values that are there are of several kinds: of such, Arrow reads all as the first."""
    if len(set(map(_kind, values))) > 1:
        raise TypeError("values of several kinds")


def _kind(value: Any) -> object:
    if isinstance(value, bool | np.bool_):
        return bool
    if isinstance(value, int | float | np.number):
        return float
    if isinstance(value, datetime.datetime):
        return datetime.datetime, value.tzinfo is None, getattr(value, "unit", "us")
    return str if isinstance(value, str) else type(value)


def _in_text(values: Sequence[Any], name: str, findings: Findings) -> tuple[Any, bool]:
    text = [None if value is None else _as_text(value) for value in values]
    example = f"column {name!r} mixes types or holds huge numbers"
    kept = findings.add("bad-value", example, count=max(1, len(text))) != "drop"
    return pa.array(text, pa.string()), kept


def _as_text(value: Any) -> str:
    """A value as it would be written if all of its column were of its type."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(int(value)) if isinstance(value, float) and value.is_integer() and abs(value) < 1 << 53 else str(value)


ARROW = _Arrow()
POLARS = _Polars()
PANDAS = _Pandas()
