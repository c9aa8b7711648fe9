"""The readers of tables in memory: Arrow and polars, whose columns have types, and pandas, which may hold anything."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from veilog.logs.findings import Findings
from veilog.logs.reader import Asked
from veilog.logs.source import Source
from veilog.logs.tables.objects import from_values
from veilog.logs.tables.reader import TableReader

__all__ = ["ARROW", "PANDAS", "POLARS"]


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
        columns = {
            str(name): _from_pandas(frame[name], str(name), asked.findings, apart=str(name) in needed)
            for name in frame.columns
        }
        return pa.table({name: array for name, (array, kept) in columns.items() if kept or name in needed})


def _from_pandas(series: Any, name: str, findings: Findings, *, apart: bool) -> tuple[Any, bool]:
    """The column, and whether it stays."""
    kind = getattr(series.dtype, "categories", series).dtype
    if str(kind) != "object":
        try:
            return pa.Array.from_pandas(series), True
        except (pa.ArrowException, OverflowError, ValueError, TypeError):
            pass  # integers beyond 64 bits: as text, nothing is lost
    return from_values(series.astype(object).tolist(), name, findings, apart=apart)


ARROW = _Arrow()
POLARS = _Polars()
PANDAS = _Pandas()
