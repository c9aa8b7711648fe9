"""Logs in files: the suffix decides the format, and a file is written whole."""

from __future__ import annotations

import contextlib
import gzip
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol, TypeAlias, Unpack, cast

import pyarrow as pa

from veilog._files import Naming, atomic_target, check_writable, path_of
from veilog.errors import InputError, OutputError
from veilog.logs.eventlog import ACTIVITY, EventLog
from veilog.logs.findings import Finding
from veilog.logs.input.formats import SUFFIXES, Writer, writer_of
from veilog.logs.input.loader import group_variants, requested_reading, whole
from veilog.logs.input.source import EngineKeywords, Given, ReadKeywords, Source, is_ibis, suffix_of
from veilog.logs.provenance import add_provenance
from veilog.logs.variants import Variants

if TYPE_CHECKING:
    from veilog.logs.storage.stored_log import StoredLog


class HasLog(Protocol):
    """Object with a log, such as a release."""

    @property
    def log(self) -> EventLog: ...


AnyLog: TypeAlias = "EventLog | Variants | HasLog | Given"
"""Input for a log: a log, its variants, a release, a DataFrame, a table or a file."""


def as_log(given: AnyLog | StoredLog) -> Any:
    """Return the given log or variants, and read anything else.

    :func:`read` reads it; :func:`read_variants` reads several files (a folder, a pattern), which count as one table.
    """
    from veilog.logs.storage.stored_log import StoredLog  # here, as most logs are in memory

    if isinstance(given, EventLog | Variants | StoredLog):
        return given
    held = getattr(given, "log", None)
    if isinstance(held, EventLog):
        return held
    if is_ibis(given):
        raise InputError("log-is-engine-table")
    if Source(given).several:
        return read_variants(cast(Given, given))
    return read(cast(Given, given))


def read(source: Given, **options: Unpack[ReadKeywords]) -> EventLog:
    """Return the event log in a file, a DataFrame, a table or an EventLog of pm4py.

    A file goes by its suffix. DataFrames are those of pandas or polars, tables those of Arrow or Ibis. A table of Ibis
    comes here with all its columns, so it is refused beyond five million events.

    ``case``, ``activity`` and ``timestamp`` name the columns of a table whose names do not reveal them. A date and a
    time of day in two columns are ``timestamp="Date+Time"``. ``start`` is the column of the start, where the timestamp
    is the end. ``index`` names the column of a table of Ibis that orders events of equal time.

    ``header`` is the line with the names of the columns, 0 where there is none. ``sheet`` is one of a workbook, and
    ``object_type`` the type of objects that are the cases of an object-centric log.

    ``lifecycle`` keeps only the events of that transition (``"complete"``); ``"all"`` keeps every one. ``"intervals"``
    makes a start and its end one event, which has a ``start_timestamp``. ``classifier`` names the attributes whose
    values make an activity (``"concept:name lifecycle:transition"``), or a classifier of the log.

    ``time_format`` is the meaning of ``5/6/2024``: ``"dd/mm/yyyy"`` or ``"mm/dd/yyyy"``. ``decimal=","`` reads the
    numbers of a CSV with a comma before their decimals.

    ``policies`` decides about findings (``{"bad-timestamp": "drop"}``). ``limit`` bounds the bytes that come out of a
    compressed file. ``processes`` may be more than 1 for large XES files that are not compressed.

    ``map`` groups activities: a file (CSV or JSON) or a dict of activities and their groups. ``level`` and ``top`` are
    those of :func:`veilog.logs.input.activity_mapping.load_mapping`. The guarantee of a release names the map as a
    condition.
    """
    return whole(*requested_reading(source, options))


def validate(source: Given, **options: Unpack[ReadKeywords]) -> tuple[Finding, ...]:
    """Return all findings about this log, without stopping at the first.

    A log that cannot be read at all raises an error. The ``options`` are those of :func:`read`.
    """
    return whole(*requested_reading(source, options, collect_all=True)).findings


def read_variants(source: Given, **options: Unpack[EngineKeywords]) -> Variants:
    """Return the variants of a log, which may be larger than memory.

    CSV and Parquet are never loaded whole: DuckDB groups them within ``memory_limit`` and spills to ``temp_directory``.
    Everything else goes through :func:`read`. The result equals ``read(source).variants``.

    ``"month-*.parquet"`` and a folder stand for several files, which count as one table in the order of their names.
    ``engine`` may be ``"spark"``, ``"duckdb:FILE"`` or a URL that Ibis connects to; for the last two ``source`` is the
    name of a table. A table of Ibis is grouped where it is. ``index`` names the column of a table that orders events of
    equal time. ``lifecycle`` and ``classifier`` are for files; ``map``, ``level`` and ``top`` are as of :func:`read`.
    """
    return group_variants(*requested_reading(source, options, EngineKeywords)).variants


def write(
    log: AnyLog,
    path: str | os.PathLike[str],
    *,
    lossy: bool = False,
    overwrite: bool = False,
    spreadsheet_safe: bool = False,
) -> None:
    """Write a log in the format of the suffix, as a whole or not at all.

    On any failure the old file stays, or there is none. CSV and workbooks cannot hold cases without events, nor
    distinguish cases of the same name; such a log is refused unless ``lossy`` accepts that. Compressed files carry
    neither time nor name, so equal logs give equal bytes. An existing file is replaced only with ``overwrite``.

    A spreadsheet runs texts of a CSV that begin with ``=``, ``+``, ``-`` or ``@`` as formulas. ``spreadsheet_safe``
    writes an apostrophe before them (CSV and TSV only); the names then differ from those of the log.
    """
    target = path_of(path, "path", "log-comes-first")
    held = _events_to_write(log)
    write_named(add_provenance(held), target, lossy=lossy, overwrite=overwrite, spreadsheet_safe=spreadsheet_safe)


def write_named(
    log: EventLog,
    target: Path,
    *,
    lossy: bool = False,
    overwrite: bool = False,
    spreadsheet_safe: bool = False,
    naming: Naming | None = None,
) -> None:
    """Write a log as :func:`write` does; ``naming`` gives the whole file its name."""
    writer = _writer(target, overwrite=overwrite, spreadsheet_safe=spreadsheet_safe)
    with atomic_target(target, naming, overwrite=overwrite) as file, _open_compressed(file, target) as out:
        writer.write(log, out, target, lossy=lossy)


def _events_to_write(log: AnyLog) -> EventLog:
    """Return the events to write."""
    if not isinstance(log, EventLog) and callable(getattr(log, "save", None)):
        raise InputError("log-type-unknown", kind=type(log).__name__.lower())
    held = as_log(log)
    if not isinstance(held, EventLog):
        raise InputError("variants-not-writable")
    return held


def write_pieces(
    pieces: Iterable[EventLog],
    path: str | os.PathLike[str],
    *,
    lossy: bool = False,
    overwrite: bool = False,
    spreadsheet_safe: bool = False,
    eventless: pa.Table | None = None,
    naming: Naming | None = None,
) -> None:
    """Write one log that comes in pieces, one piece at a time, as :func:`write` does.

    This is for logs larger than memory. All pieces have the columns of the first, which also has the metadata of the
    log. Names of cases go on from piece to piece. A Parquet file lists the cases without events beforehand: it refuses
    them unless ``eventless`` has them (columns as in the pieces, and ``case:index``, their places among all cases). CSV
    refuses them unless ``lossy``.

    The file is the one that :func:`write` makes of the whole log. Only the format of numbers in CSV may differ, and XES
    with nested attributes may declare 2.0 without need. ``naming`` gives the whole file its name.
    """
    target = path_of(path, "path")
    writer = _writer(target, overwrite=overwrite, spreadsheet_safe=spreadsheet_safe)
    with atomic_target(target, naming, overwrite=overwrite) as file, _open_compressed(file, target) as out:
        writer.write_pieces(pieces, out, target, lossy=lossy, eventless=eventless)


def named_after(path: str | os.PathLike[str], name: str) -> Path:
    """Return the file next to ``path``: ``out-models.xes.gz`` for ``out.xes.gz``."""
    target = Path(path)
    suffix = target.name[len(target.name) - len(suffix_of(target)) :]
    return target.with_name(f"{target.name.removesuffix(suffix)}-{name}{suffix}")


def check_target(path: str | os.PathLike[str], *, overwrite: bool = True, spreadsheet_safe: bool = False) -> str:
    """Return the format in which a log would be written to ``path``.

    Raises:
        OutputError: When it could not be written.

    """
    _writer(Path(path), overwrite=overwrite, spreadsheet_safe=spreadsheet_safe)
    return suffix_of(Path(path)).removesuffix(".gz")


def check_texts(path: str | os.PathLike[str], texts: Iterable[str]) -> None:
    """Raise :class:`OutputError` for a text that the format of ``path`` cannot hold."""
    if suffix_of(Path(path)) in (".xes", ".xes.gz"):
        from veilog.logs.xes.writer import escape

        for text in texts:
            escape(text, ACTIVITY)


def _writer(target: Path, *, overwrite: bool, spreadsheet_safe: bool = False) -> Writer:
    writer = writer_of(target, spreadsheet_safe=spreadsheet_safe)
    if writer is None:
        check_writable(target)  # the suffix is not the fault of a device
        raise OutputError("file-suffix-unknown", path=os.fspath(target), names=", ".join(SUFFIXES))
    check_writable(target, overwrite=overwrite)
    return writer


@contextlib.contextmanager
def _open_compressed(file: BinaryIO, path: Path) -> Iterator[BinaryIO]:
    if path.suffix.lower() != ".gz":
        yield file
        return
    ending = _Ending(file)
    try:
        with gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=cast(BinaryIO, ending), mtime=0) as out:
            yield cast(BinaryIO, out)
    finally:
        ending.ended = True


class _Ending:
    """A file that takes nothing more once a write failed or it was closed.

    A GzipFile writes again when it is closed or collected after a failure, and Python prints the errors of that.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.ended = False

    def write(self, data: bytes) -> int:
        if self.ended:
            return memoryview(data).nbytes
        self.ended = True
        written = self._file.write(data)
        self.ended = False
        return written

    def flush(self) -> None:
        if not self.ended:
            self._file.flush()
