"""Logs in and out of files: the format goes by the suffix, and a file is written whole or not at all."""

from __future__ import annotations

import contextlib
import glob
import gzip
import os
import secrets
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias, cast

import pyarrow as pa

from veilog.errors import InputError, OutputError, VeilogError
from veilog.logs.eventlog import EventLog
from veilog.logs.findings import Finding, Findings, Policy
from veilog.logs.streams import DEFAULT_LIMIT
from veilog.logs.variants import Variants

if TYPE_CHECKING:
    import pandas as pd

    from veilog.logs.roles import Roles

__all__ = [
    "SUFFIXES",
    "atomic_target",
    "check_target",
    "check_writable",
    "read",
    "read_variants",
    "roles_of",
    "validate",
    "write",
    "write_pieces",
]

SUFFIXES = (".xes", ".xes.gz", ".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet")

Source: TypeAlias = "str | os.PathLike[str] | pa.Table | pd.DataFrame"
Progress = Callable[[str, float | None], None]


def read(
    source: Source,
    *,
    case: str | None = None,
    activity: str | None = None,
    timestamp: str | None = None,
    policies: Mapping[str, Policy] | None = None,
    limit: int | None = DEFAULT_LIMIT,
    processes: int = 1,
    progress: Progress | None = None,
) -> EventLog:
    """The event log in a file (by its suffix), a pandas DataFrame or an Arrow table.

    ``case``, ``activity`` and ``timestamp`` name the columns of a table whose names do not say it. ``policies`` sets
    what happens on a finding (``{"bad-timestamp": "drop"}``), ``limit`` bounds the bytes that come out of a compressed
    file, ``processes`` may be more than 1 for large XES files.
    """
    findings = Findings(policies or {}, None if _is_table(source) else _name(source))
    return _read(source, (case, activity, timestamp), findings, limit, processes, progress)


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
    policies: Mapping[str, Policy] | None = None,
    memory_limit: str = "1GB",
    threads: int | None = None,
    temp_directory: str | os.PathLike[str] | None = None,
    limit: int | None = DEFAULT_LIMIT,
    processes: int = 1,
    progress: Progress | None = None,
) -> Variants:
    """The variants alone. CSV and Parquet (also ``"month-*.parquet"``) are never loaded whole: DuckDB groups them
    within ``memory_limit`` and spills to ``temp_directory``. Everything else goes through :func:`read`.

    The result equals ``read(source).variants``; several files count as one table, in the order of their names.
    """
    paths = [] if _is_table(source) else _matching(_name(source))
    formats = {_format(path) for path in paths}
    if not paths or formats == {".xes"}:
        if len(paths) > 1:
            raise InputError("Several XES files cannot be read as one log.", path=_name(source))
        only = paths[0] if paths else source
        log = read(
            only,
            case=case,
            activity=activity,
            timestamp=timestamp,
            policies=policies,
            limit=limit,
            processes=processes,
            progress=progress,
        )
        return log.variants
    if len(formats) > 1:
        raise InputError(f"These files have different formats: {', '.join(sorted(formats))}.", path=_name(source))
    from veilog.logs import engines, tables

    findings = Findings(policies or {}, _name(source))
    roles = tables.file_roles(paths[0], case, activity, timestamp, limit=limit)
    return engines.variants_from_files(
        paths,
        roles,
        findings=findings,
        memory_limit=memory_limit,
        threads=threads,
        temp_directory=temp_directory,
        limit=limit,
    )


def roles_of(
    source: Source,
    *,
    case: str | None = None,
    activity: str | None = None,
    timestamp: str | None = None,
    limit: int | None = DEFAULT_LIMIT,
) -> Roles | None:
    """Which columns :func:`read` would take for case, activity and timestamp, and why; None for XES."""
    from veilog.logs import tables

    if _is_table(source):
        return tables.guess_roles(_columns(source), case=case, activity=activity, timestamp=timestamp)
    path = Path(_name(source))
    return None if _format(path) == ".xes" else tables.file_roles(path, case, activity, timestamp, limit=limit)


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


def write_pieces(pieces: Iterable[EventLog], path: str | os.PathLike[str]) -> None:
    """Write one log that comes in pieces, for logs larger than memory: as :func:`write`, but one piece at a time.

    All pieces have the columns of the first, which also says what the log says about itself; names of cases go on
    from piece to piece. Cases without events have a place in XES only.
    """
    from veilog.logs import parquet, tables
    from veilog.logs.xes_write import write_xes_pieces

    target = Path(path)
    kind = check_target(target)

    def flat() -> Iterator[EventLog]:
        for piece in pieces:
            tables.check_flat(piece, target)
            yield piece

    with atomic_target(target) as file:
        if kind == ".parquet":
            parquet.write_pieces(pieces, file)
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
            raise OutputError(f"The file cannot be written: {_reason(error)}.", path=os.fspath(path)) from error
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
        raise OutputError(f"The file cannot be written: {_reason(error)}.", path=str(path)) from error
    return target


def check_target(path: str | os.PathLike[str]) -> str:
    """The format that a log would be written to ``path`` in; :class:`OutputError` if it could not be."""
    kind = _suffix(Path(path))
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
) -> EventLog:
    from veilog.logs import parquet, tables

    case, activity, timestamp = columns
    if _is_table(source):
        roles = tables.guess_roles(_columns(source), case=case, activity=activity, timestamp=timestamp)
        return tables.read_frame(source, roles, findings)
    path = Path(_name(source))
    kind = _format(path)
    if kind == ".xes":
        from veilog.logs.xes import read_xes

        told = None if progress is None else lambda fraction: progress(f"reading {path.name}", fraction)
        return read_xes(path, findings=findings, limit=limit, processes=processes, progress=told)
    roles = tables.file_roles(path, case, activity, timestamp, limit=limit)
    if kind == ".parquet":
        return parquet.read_parquet(path, roles, findings)
    return tables.read_csv(path, roles, findings, limit=limit, progress=progress)


def _is_table(source: object) -> bool:
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
        f"A {type(source).__name__} is not a log.", advice="Give a path, a pandas DataFrame or a pyarrow Table."
    )


def _matching(name: str) -> list[Path]:
    """The files that a name or pattern stands for, in the order of their names."""
    if not glob.has_magic(name) or Path(name).exists():
        return [Path(name)]
    found = sorted(Path(match) for match in glob.glob(name, recursive=True))  # noqa: PTH207
    if not found:
        raise InputError("No file matches this pattern.", path=name)
    return found


def _suffix(path: Path) -> str | None:
    """The known suffix in lower case without ``.gz``, or None."""
    name = path.name.lower()
    for suffix in SUFFIXES:
        if name.endswith(suffix) and name != suffix:
            return suffix.removesuffix(".gz")
    return None


def _format(path: Path) -> str:
    try:
        if path.is_dir():
            raise InputError("This is a directory, not a file.", path=path, advice="Give the log file in it.")
        exists = path.exists()
    except (OSError, ValueError) as error:
        raise InputError(f"The file cannot be read: {_reason(error)}.", path=str(path)) from error
    kind = _suffix(path)
    if kind is None:
        raise InputError(
            "The suffix is not known." if exists else "There is no such file.",
            path=os.fspath(path),
            advice=f"Known suffixes: {', '.join(SUFFIXES)}.",
        )
    if not exists:
        raise InputError("There is no such file.", path=os.fspath(path))
    return kind


def _sync_folder(folder: Path) -> None:
    """Make the rename itself durable, where the system lets a folder be opened."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
