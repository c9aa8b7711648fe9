"""Logs in and out of files: the format goes by the suffix, and a file is written whole or not at all."""

from __future__ import annotations

import contextlib
import gzip
import os
import secrets
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias, cast

import pyarrow as pa

from veilog.errors import InputError, OutputError, ParameterError, VeilogError
from veilog.logs.eventlog import EventLog
from veilog.logs.findings import Finding, Findings, Policy
from veilog.logs.paths import SUFFIXES, format_of, reason, suffix_of
from veilog.logs.sources import AT_HAND, Grouped, Means, is_ibis, silent
from veilog.logs.streams import DEFAULT_LIMIT
from veilog.logs.variants import Variants

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pandas as pd

    from veilog.logs.roles import Roles
    from veilog.logs.sources import VariantSource

__all__ = [
    "SUFFIXES",
    "atomic_target",
    "check_target",
    "check_writable",
    "grouped",
    "read",
    "read_variants",
    "roles_of",
    "validate",
    "write",
    "write_pieces",
]

Source: TypeAlias = "str | os.PathLike[str] | pa.Table | pd.DataFrame | ir.Table"
Progress = Callable[[str, float | None], None]


def read(
    source: Source,
    *,
    case: str | None = None,
    activity: str | None = None,
    timestamp: str | None = None,
    index: str | None = None,
    policies: Mapping[str, Policy] | None = None,
    limit: int | None = DEFAULT_LIMIT,
    processes: int = 1,
    progress: Progress | None = None,
) -> EventLog:
    """The event log in a file (by its suffix), a pandas DataFrame, an Arrow table or a table of Ibis.

    ``case``, ``activity`` and ``timestamp`` name the columns of a table whose names do not say it. ``policies`` sets
    what happens on a finding (``{"bad-timestamp": "drop"}``), ``limit`` bounds the bytes that come out of a compressed
    file, ``processes`` may be more than 1 for large XES files. A table of Ibis comes here with all its columns, so it
    is refused beyond five million events; ``index`` names its column that orders events of equal time.
    """
    findings = Findings(policies or {}, None if _is_table(source) else _name(source))
    return _read(source, (case, activity, timestamp), findings, limit, processes, progress, index)


def validate(
    source: Source,
    *,
    case: str | None = None,
    activity: str | None = None,
    timestamp: str | None = None,
    policies: Mapping[str, Policy] | None = None,
    limit: int | None = DEFAULT_LIMIT,
    processes: int = 1,
    progress: Progress | None = None,
) -> tuple[Finding, ...]:
    """Everything that reading this log notices, without stopping at the first; what cannot be read at all raises."""
    findings = Findings(policies or {}, None if _is_table(source) else _name(source), collect_all=True)
    return _read(source, (case, activity, timestamp), findings, limit, processes, progress).findings


def read_variants(
    source: Source,
    *,
    case: str | None = None,
    activity: str | None = None,
    timestamp: str | None = None,
    index: str | None = None,
    engine: str = "duckdb",
    policies: Mapping[str, Policy] | None = None,
    memory_limit: str = "1GB",
    threads: int | None = None,
    temp_directory: str | os.PathLike[str] | None = None,
    limit: int | None = DEFAULT_LIMIT,
    processes: int = 1,
    progress: Progress | None = None,
) -> Variants:
    """The variants alone. CSV and Parquet are never loaded whole: DuckDB groups them within ``memory_limit`` and spills
    to ``temp_directory``. Everything else goes through :func:`read`.

    ``"month-*.parquet"`` and a folder stand for several files, which count as one table in the order of their names;
    the result equals ``read(source).variants``. ``engine`` may be ``"spark"``, ``"duckdb:FILE"`` or a URL that Ibis
    connects to; for the last two ``source`` is the name of a table. A table of Ibis is grouped where it is. ``index``
    names the column of a table that orders events of equal time.
    """
    findings = Findings(policies or {}, None if _is_table(source) else _name(source))
    means = Means(memory_limit, threads, temp_directory, index)
    return grouped(
        source,
        (case, activity, timestamp),
        findings,
        engine,
        means,
        limit=limit,
        processes=processes,
        progress=progress,
    ).variants


def grouped(
    source: Source,
    columns: tuple[str | None, str | None, str | None],
    findings: Findings,
    engine: str,
    means: Means,
    *,
    limit: int | None = DEFAULT_LIMIT,
    processes: int = 1,
    progress: Progress | None = None,
) -> Grouped:
    """The variants and the first and last time, from wherever the events are; see :func:`read_variants`."""
    found = _variant_source(source, engine, means, limit)
    if found is None:
        log = _read(source, columns, findings, limit, processes, progress, means.index)
        return Grouped(log.variants, *log.span)
    return found.group(_roles(found.columns(), columns, source), findings, silent if progress is None else progress)


def roles_of(
    source: Source,
    *,
    case: str | None = None,
    activity: str | None = None,
    timestamp: str | None = None,
    engine: str = "duckdb",
    means: Means = AT_HAND,
    limit: int | None = DEFAULT_LIMIT,
) -> Roles | None:
    """Which columns :func:`read` would take for case, activity and timestamp, and why; None for XES."""
    found = None if _in_memory(source) else _variant_source(source, engine, means, limit)
    if found is None and not _in_memory(source):
        return None
    names = _columns(source) if found is None else found.columns()
    return _roles(names, (case, activity, timestamp), source)


def _variant_source(source: Source, engine: str, means: Means, limit: int | None) -> VariantSource | None:
    """Where the events are grouped; None if they are read whole."""
    if _in_memory(source):
        return None
    from veilog.logs.engine_names import named
    from veilog.logs.engines_ibis import IbisTable

    return IbisTable(source, means.index) if is_ibis(source) else named(_name(source), engine, means, limit)


def _roles(names: list[str], columns: tuple[str | None, str | None, str | None], source: Source) -> Roles:
    from veilog.logs.roles import guess_roles

    case, activity, timestamp = columns
    try:
        return guess_roles(names, case=case, activity=activity, timestamp=timestamp)
    except InputError as error:
        raise InputError(
            error.problem, path=None if _is_table(source) else _name(source), advice=error.advice
        ) from None


def write(log: EventLog, path: str | os.PathLike[str], *, lossy: bool = False) -> None:
    """Write a log in the format of the suffix, atomically: on any failure nothing is left, or the old file stays.

    CSV cannot hold cases without events, nor tell apart cases of the same name; such a log is refused unless ``lossy``
    accepts that. Compressed files carry neither time nor name, so equal logs give equal bytes.
    """
    target = Path(path)
    kind = check_target(target)
    from veilog.logs import parquet, tables

    if kind in (".csv", ".tsv") and not lossy:
        tables.check_flat(log, target)
    with atomic_target(target) as file:
        if kind == ".parquet":
            parquet.write_parquet(log, file)
            return
        with _compressed(file, target) as out:
            if kind == ".xes":
                from veilog.logs.xes import write_xes

                write_xes(log, out)
            else:
                tables.write_csv(log, out, delimiter="\t" if kind == ".tsv" else ",")


def write_pieces(
    pieces: Iterable[EventLog],
    path: str | os.PathLike[str],
    *,
    lossy: bool = False,
    eventless: pa.Table | None = None,
) -> None:
    """Write one log that comes in pieces, for logs larger than memory: as :func:`write`, but one piece at a time.

    All pieces have the columns of the first, which also says what the log says about itself; names of cases go on
    from piece to piece. Parquet says beforehand which cases have no events: it refuses them unless ``eventless`` lists
    them (columns as in the pieces, and ``case:index``, their places among all cases). CSV refuses them unless
    ``lossy``. The file is the one that :func:`write` makes of the whole log; numbers in CSV may be formatted otherwise,
    and XES with nested attributes may say 2.0 without need.
    """
    from veilog.logs import parquet, tables
    from veilog.logs.xes_write import write_xes_pieces

    target = Path(path)
    kind = check_target(target)

    def flat() -> Iterator[EventLog]:
        for piece in pieces:
            if not lossy:
                tables.check_flat(piece, target)
            yield piece

    with atomic_target(target) as file:
        if kind == ".parquet":
            parquet.write_pieces(pieces, file, eventless)
            return
        with _compressed(file, target) as out:
            if kind == ".xes":
                write_xes_pieces(pieces, out)
            else:
                tables.write_csv_pieces(flat(), out, delimiter="\t" if kind == ".tsv" else ",")


@contextlib.contextmanager
def atomic_target(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A binary file that becomes ``path`` when the block ends well, and vanishes when it does not, whatever the reason.

    It lies beside ``path`` until then, so that the last step is one rename.
    """
    target = check_writable(path)
    temporary = target.with_name(f".veilog-{secrets.token_hex(8)}.part")
    try:
        try:
            descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
            with os.fdopen(descriptor, "w+b") as file:
                if target.exists():
                    with contextlib.suppress(OSError):
                        temporary.chmod(stat.S_IMODE(target.stat().st_mode))
                yield file
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(target)
        except VeilogError:
            raise
        except OSError as error:
            raise OutputError(f"The file cannot be written: {reason(error)}.", path=os.fspath(path)) from error
        _sync_folder(target.parent)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def check_writable(path: str | os.PathLike[str]) -> Path:
    """Raise :class:`OutputError` now if a file could not be written here later; returns where a link leads."""
    try:
        target = Path(os.path.realpath(path))
        if target.is_dir():
            raise OutputError(
                "This is a directory, not a file.", path=os.fspath(path), advice="Give the name of a file in it."
            )
        if not target.parent.is_dir():
            raise OutputError(
                "The folder does not exist.", path=os.fspath(path), advice=f"Create {target.parent} first."
            )
        if target.exists() and not target.is_file():
            raise OutputError("This is not a regular file.", path=os.fspath(path))
        if target.exists() and not os.access(target, os.W_OK):
            raise OutputError("The file is there and may not be overwritten.", path=os.fspath(path))
        probe = target.with_name(f".veilog-{secrets.token_hex(8)}.part")
        try:
            os.close(os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        finally:
            probe.unlink(missing_ok=True)
    except (OSError, ValueError) as error:
        raise OutputError(f"The file cannot be written: {reason(error)}.", path=str(path)) from error
    return target


def check_target(path: str | os.PathLike[str]) -> str:
    """The format that a log would be written to ``path`` in; :class:`OutputError` if it could not be."""
    kind = suffix_of(Path(path))
    if kind is None:
        raise OutputError("The suffix is not known.", path=os.fspath(path), advice=f"Known: {', '.join(SUFFIXES)}.")
    check_writable(path)
    return kind


@contextlib.contextmanager
def _compressed(file: BinaryIO, path: Path) -> Iterator[BinaryIO]:
    if path.suffix.lower() != ".gz":
        yield file
        return
    with gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=file, mtime=0) as out:
        yield cast(BinaryIO, out)


def _read(
    source: Source,
    columns: tuple[str | None, str | None, str | None],
    findings: Findings,
    limit: int | None,
    processes: int,
    progress: Progress | None,
    index: str | None = None,
) -> EventLog:
    from veilog.logs import parquet, tables

    case, activity, timestamp = columns
    if is_ibis(source):
        from veilog.logs.engines_ibis import IbisTable

        there = IbisTable(source, index)
        roles = _roles(there.columns(), columns, source)
        return tables.read_frame(there.whole(roles, findings, progress or silent), roles, findings)
    if index is not None:
        raise ParameterError(
            "Rows of files and frames have an order, which decides events of equal time.",
            parameter="index",
            advice="Leave index away; it is for tables of a database.",
        )
    if _in_memory(source):
        return tables.read_frame(source, _roles(_columns(source), columns, source), findings)
    path = Path(_name(source))
    kind = format_of(path)
    if kind == ".xes":
        from veilog.logs.xes import read_xes

        told = None if progress is None else lambda fraction: progress(f"reading {path.name}", fraction)
        return read_xes(path, findings=findings, limit=limit, processes=processes, progress=told)
    roles = tables.file_roles(path, case, activity, timestamp, limit=limit)
    if kind == ".parquet":
        return parquet.read_parquet(path, roles, findings)
    return tables.read_csv(path, roles, findings, limit=limit, progress=progress)


def _is_table(source: object) -> bool:
    """Not the name of a log, but the log itself."""
    return _in_memory(source) or is_ibis(source)


def _in_memory(source: object) -> bool:
    """An Arrow table, or a DataFrame (told by its module, so that pandas is not imported for it)."""
    return isinstance(source, pa.Table) or type(source).__module__.partition(".")[0] == "pandas"


def _columns(source: Any) -> list[str]:
    return list(source.column_names if isinstance(source, pa.Table) else map(str, source.columns))


def _name(source: object) -> str:
    if isinstance(source, str | os.PathLike):
        name = os.fspath(source)
        if isinstance(name, str):
            return name
    raise InputError(
        f"A {type(source).__name__} is not a log.",
        advice="Give a path, a pandas DataFrame, a pyarrow Table or a table of Ibis.",
    )


def _sync_folder(folder: Path) -> None:
    """Make the rename itself durable, where the system lets a folder be opened."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
