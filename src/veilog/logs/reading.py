"""From any source to a log or its variants: which reader takes it, and what the result says of how it was read."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from veilog.errors import InputError, ParameterError
from veilog.logs.engines.source import AT_HAND, Grouped, Means, is_ibis, silent
from veilog.logs.eventlog import EventLog
from veilog.logs.findings import Findings
from veilog.logs.paths import format_of
from veilog.logs.roles import AS_IT_IS, Classifiers, Declared, Roles, declared_roles
from veilog.logs.streams import DEFAULT_LIMIT

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pandas as pd

    from veilog.logs.engines.source import VariantSource

__all__ = ["ATTRIBUTES_TOGETHER", "Progress", "Source", "grouped", "name_of", "read_together", "roles_of", "whole"]

Source: TypeAlias = "str | os.PathLike[str] | pa.Table | pd.DataFrame | ir.Table"
Progress = Callable[[str, float | None], None]

_DUPLICATES = (
    "duplicate-case-id=drop: of cases with one name only the first is read, so one case can take the place of another; "
    "with --on duplicate-case-id=keep (the default) they are separate cases."
)
ATTRIBUTES_TOGETHER = (
    "Whether a column of attributes holds text, numbers or truth values, and whether it belongs to cases or to events, "
    "is found out from all of its values, so one case can change how the attributes of others are read; a Parquet file "
    "or an Arrow table declares the types of its columns."
)


def read_together(findings: Findings) -> tuple[str, ...]:
    """The rules that read all cases at once, as the owner has set them: whatever the log holds, the same."""
    return (_DUPLICATES,) if findings.policy("duplicate-case-id") == "drop" else ()


def grouped(
    source: Source,
    declared: Declared,
    findings: Findings,
    engine: str,
    means: Means,
    *,
    limit: int | None = DEFAULT_LIMIT,
    processes: int = 1,
    progress: Progress | None = None,
) -> Grouped:
    """The variants and the first and last time, from wherever the events are; see :func:`veilog.read_variants`."""
    found = _variant_source(source, engine, means, limit)
    if found is None:
        log = whole(source, declared, findings, limit, processes, progress, means.index)
        return Grouped(log.variants, *log.span)
    roles = _roles(found.columns(), declared, source)
    result = found.group(roles, findings, silent if progress is None else progress)
    return replace(result, variants=replace(result.variants, read_together=read_together(findings)))


def roles_of(
    source: Source,
    declared: Declared = AS_IT_IS,
    *,
    engine: str = "duckdb",
    means: Means = AT_HAND,
    limit: int | None = DEFAULT_LIMIT,
) -> Roles | None:
    """Which columns :func:`veilog.read` would take for case, activity and timestamp, and why; None for XES."""
    found = None if _in_memory(source) else _variant_source(source, engine, means, limit)
    if found is None and not _in_memory(source):
        return None
    plain = replace(declared, classifier=None)
    return _roles(_columns(source) if found is None else found.columns(), plain, source)


def whole(
    source: Source,
    declared: Declared,
    findings: Findings,
    limit: int | None,
    processes: int,
    progress: Progress | None,
    index: str | None = None,
) -> EventLog:
    """The log with its events, and which rules read all its cases at once."""
    log, typed = _whole(source, declared, findings, limit, processes, progress, index)
    told = () if typed else (ATTRIBUTES_TOGETHER,)
    return replace(log, read_together=read_together(findings), attributes_read_together=told)


def _whole(
    source: Source,
    declared: Declared,
    findings: Findings,
    limit: int | None,
    processes: int,
    progress: Progress | None,
    index: str | None,
) -> tuple[EventLog, bool]:
    """The log, and whether its source declares the types of its columns."""
    from veilog.logs.tables import parquet
    from veilog.logs.tables import read as tables

    if is_ibis(source):
        from veilog.logs.engines.ibis import IbisTable

        there = IbisTable(source, index)
        roles = _roles(there.columns(), declared, source)
        return tables.read_frame(there.whole(roles, findings, progress or silent), roles, findings), True
    if index is not None:
        raise ParameterError(
            "Rows of files and frames have an order, which decides events of equal time.",
            parameter="index",
            advice="Leave index away; it is for tables of a database.",
        )
    if _in_memory(source):
        roles = _roles(_columns(source), declared, source)
        return tables.read_frame(source, roles, findings), isinstance(source, pa.Table)
    path = Path(str(name_of(source)))
    kind = format_of(path)
    if kind == ".xes":
        from veilog.logs.xes.read import read_xes

        told = None if progress is None else lambda fraction: progress(f"reading {path.name}", fraction)
        log = read_xes(path, findings=findings, limit=limit, processes=processes, progress=told, declared=declared)
        return log, False
    roles = _roles(tables.file_columns(path, limit), declared, source)
    if kind == ".parquet":
        return parquet.read_parquet(path, roles, findings), True
    return tables.read_csv(path, roles, findings, limit=limit, progress=progress), False


def _variant_source(source: Source, engine: str, means: Means, limit: int | None) -> VariantSource | None:
    """Where the events are grouped; None if they are read whole."""
    if _in_memory(source):
        return None
    from veilog.logs.engines.ibis import IbisTable
    from veilog.logs.engines.names import named

    return IbisTable(source, means.index) if is_ibis(source) else named(str(name_of(source)), engine, means, limit)


def _roles(names: list[str], declared: Declared, source: Source) -> Roles:
    try:
        return declared_roles(names, declared, _classifiers(source) if declared.classifier is not None else ())
    except InputError as error:
        raise InputError(error.problem, path=name_of(source), advice=error.advice) from None


def _classifiers(source: Source) -> Classifiers:
    """The classifiers that a Parquet file of ours kept from XES."""
    path = None if _is_table(source) else Path(str(name_of(source)))
    if path is None or not (path.name.lower().endswith(".parquet") and path.is_file()):
        return ()
    from veilog.logs.tables.parquet import classifiers_of

    return classifiers_of(path)


def _is_table(source: object) -> bool:
    """Not the name of a log, but the log itself."""
    return _in_memory(source) or is_ibis(source)


def _in_memory(source: object) -> bool:
    """An Arrow table, or a DataFrame (told by its module, so that pandas is not imported for it)."""
    return isinstance(source, pa.Table) or type(source).__module__.partition(".")[0] == "pandas"


def _columns(source: Any) -> list[str]:
    return list(source.column_names if isinstance(source, pa.Table) else map(str, source.columns))


def name_of(source: object) -> str | None:
    """The name of a file; None for a table, which has none."""
    if _is_table(source):
        return None
    if isinstance(source, str | os.PathLike):
        name = os.fspath(source)
        if isinstance(name, str):
            return name
    raise InputError(
        f"A {type(source).__name__} is not a log.",
        advice="Give a path, a pandas DataFrame, a pyarrow Table or a table of Ibis.",
    )
