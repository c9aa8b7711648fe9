"""Readers of logs, one a format, by the name of a file or the type of a table.

The readers of veilog are known by their modules, which are imported when a log needs them. Other packages add theirs as
entry points of the group ``veilog.readers``. These get the logs that none of ours recognises. veilog warns about a
broken one and leaves it out.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import stat
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol, cast, runtime_checkable

from veilog._files import reason
from veilog._plugins import AddOn, add_ons
from veilog.errors import InputError, MissingExtraError, ParameterError, VeilogError
from veilog.logs.findings import Findings
from veilog.logs.input.roles import Roles
from veilog.logs.input.source import DEFAULT_OPTIONS, Progress, ReadOptions, Source, suffix_of, zipped
from veilog.messages import Message

if TYPE_CHECKING:
    import pyarrow as pa

    from veilog.logs.eventlog import EventLog

GROUP = "veilog.readers"
"""The group of entry points that other packages name their readers in."""

_EXCEL = "veilog.logs.tables.excel:EXCEL"
_TEXT = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
_FOR_SPREADSHEETS = "veilog.logs.tables.csv:FOR_SPREADSHEETS"
_WRITTEN = {
    (".xes", ".xes.gz"): "veilog.logs.xes.reader:XES",
    _TEXT: "veilog.logs.tables.csv:TEXT",
    (".parquet",): "veilog.logs.tables.parquet:PARQUET",
    (".xlsx",): _EXCEL,
}
_READ_ONLY = {
    (".xlsm",): _EXCEL,
    (".json", ".json.gz", ".jsonocel"): "veilog.logs.ocel:JSON",
    (".xml", ".xml.gz", ".xmlocel"): "veilog.logs.ocel:XML",
    (".sqlite",): "veilog.logs.ocel:SQLITE",
}
_BY_SUFFIX = _WRITTEN | _READ_ONLY
_OF_TABLES = {
    "pyarrow": "veilog.logs.tables.frames:ARROW",
    "pandas": "veilog.logs.tables.frames:PANDAS",
    "polars": "veilog.logs.tables.frames:POLARS",
    "pm4py": "veilog.logs.tables.frames:PM4PY",
    "ibis": "veilog.logs.engines.ibis:IBIS",
}
"""Readers of tables by the package that the tables are of."""

SUFFIXES = tuple(suffix for suffixes in _WRITTEN for suffix in suffixes)
"""Suffixes of the files that veilog itself reads and writes."""
_ZIP = ".zip"

_OTHERS = {
    **dict.fromkeys((".xls", ".xlsb", ".ods", ".numbers"), "format-workbook-not-read"),
    **dict.fromkeys((".7z", ".rar", ".tar", ".tgz", ".bz2", ".xz", ".zst"), "format-archive-not-read"),
    ".txt": "format-not-in-name",
}
"""Reasons why some known formats are not read."""


@dataclass(frozen=True)
class ReadRequest:
    """Request to read a log: declarations, findings, and the receiver of progress."""

    options: ReadOptions = DEFAULT_OPTIONS
    findings: Findings = field(default_factory=Findings)
    roles: Roles | None = None
    """Roles of the columns of a table; None where the format itself defines them."""
    progress: Progress | None = None


@runtime_checkable
class Reader(Protocol):
    """Reader of one format of logs.

    A format of tables derives from :class:`veilog.logs.tables.table_reader.TableReader`.
    """

    name: str
    """Name in messages."""
    suffixes: tuple[str, ...]
    """Suffixes of its files in lower case: ``(".csv", ".csv.gz")``; none for tables in memory."""
    typed: bool
    """True if the source declares the types of attributes, so that no case decides how another one's are read."""

    def recognises(self, source: Source) -> bool:
        """Return True if this reader takes the log, by name or type, without opening it."""

    def read(self, source: Source, asked: ReadRequest) -> EventLog:
        """Return the log.

        A fault in it is an :class:`InputError` that names the file, or a finding.
        """


class Writer(Protocol):
    """A reader that writes its format, too."""

    def write(self, log: EventLog, file: BinaryIO, target: Path, *, lossy: bool) -> None:
        """Write a log into a file that becomes ``target``.

        Unless ``lossy``, values that the format cannot hold are refused.
        """

    def write_pieces(
        self, pieces: Iterable[EventLog], file: BinaryIO, target: Path, *, lossy: bool, eventless: pa.Table | None
    ) -> None:
        """Write one log that comes in pieces; see :func:`veilog.logs.files.write_pieces`."""


def reader_of(source: Source) -> Reader:
    """Return the reader of a file or table in memory; an InputError if there is none."""
    return source.once(_reader_of_table if source.name is None else _reader_of_file)


def writer_of(target: Path, *, spreadsheet_safe: bool = False) -> Writer | None:
    """Return the writer of files of this name; None if there is none.

    If a package is missing for it, it is refused here, before any query. ``spreadsheet_safe`` is as in
    :func:`veilog.logs.files.write`.
    """
    suffix = suffix_of(target)
    if spreadsheet_safe:
        if suffix not in _TEXT:
            raise ParameterError("spreadsheet-safe-not-possible", parameter="spreadsheet_safe", names=", ".join(_TEXT))
        return cast(Writer, _load_reader(_FOR_SPREADSHEETS))
    if suffix == ".xlsx" and importlib.util.find_spec("openpyxl") is None:
        raise MissingExtraError(Message("writing-of-workbooks"), extra="excel")
    return cast(Writer, _load_reader(_place_of(suffix) or "")) if suffix in SUFFIXES else None


def known_suffixes() -> tuple[str, ...]:
    """Return the suffixes of all logs that can be read, those of other packages last."""
    ours = (suffix for suffixes in _BY_SUFFIX for suffix in suffixes)
    return tuple(
        dict.fromkeys((*ours, _ZIP, *(suffix for other in plugin_readers() for suffix in other.value.suffixes)))
    )


def _place_of(suffix: str) -> str | None:
    return next((place for suffixes, place in _BY_SUFFIX.items() if suffix in suffixes), None)


def _load_reader(place: str) -> Reader:
    module, name = place.split(":")
    return cast(Reader, getattr(importlib.import_module(module), name))


def _own_reader(source: Source) -> Reader | None:
    if source.name is not None:
        place = _place_of(source.suffix)
        return None if place is None else _load_reader(place)
    packages = dict.fromkeys(kind.__module__.partition(".")[0] for kind in type(source.given).__mro__)
    readers = (_load_reader(_OF_TABLES[package]) for package in packages if package in _OF_TABLES)
    return next((reader for reader in readers if reader.recognises(source)), None)


def _plugin_reader(source: Source) -> AddOn | None:
    """Return the reader of another package that takes this log, if none of ours does."""
    for other in () if _own_reader(source) is not None else plugin_readers():
        try:
            if other.value.recognises(source):
                return other
        except Exception as error:  # noqa: BLE001 - an add-on may raise anything at all
            said = f"The add-on {other.name!r} of {other.package} is not asked to read this log"
            warnings.warn(f"{said}: {type(error).__name__}: {error}.", RuntimeWarning, stacklevel=2)
    return None


def _find_reader(source: Source) -> Reader | None:
    other = _plugin_reader(source)
    return _own_reader(source) if other is None else cast(Reader, other.value)


def _reader_of_table(source: Source) -> Reader:
    found = _find_reader(source)
    if found is None:
        from veilog.logs.eventlog import EventLog  # loaded with numbers, for which a start does not wait

        if isinstance(source.given, EventLog):
            raise InputError("log-already-read")
        raise InputError("log-not-given", kind=type(source.given).__name__)
    return found


def _reader_of_file(source: Source) -> Reader:
    path = source.path
    try:
        if path.is_dir():
            raise InputError("log-is-directory", path=path)
        if source.several:
            raise InputError("files-variants-only", path=path)
        exists = path.exists()
    except (OSError, ValueError) as error:
        raise InputError("file-not-readable", path=str(path), reason=reason(error)) from error
    if not exists:
        raise InputError("file-missing", path=source.name)
    found = _find_reader(source)
    if found is None:
        known = ", ".join(known_suffixes())
        if source.zipped:
            raise InputError("format-in-zip-unknown", path=source.name, name=zipped(path), known=known)
        code = _OTHERS.get(source.format, "format-unknown")
        raise InputError(code, path=source.name, kind=source.format, known=known)
    _check_kind(path)
    return found


def _check_kind(path: Path) -> None:
    """Refuse what is no readable file, before a format takes it for damaged."""
    try:
        kind = path.stat().st_mode
    except OSError as error:
        raise InputError("file-not-readable", path=path, reason=reason(error)) from error
    if not (stat.S_ISREG(kind) or stat.S_ISFIFO(kind)):
        raise InputError("file-is-socket", path=path)
    if not os.access(path, os.R_OK, effective_ids=os.access in os.supports_effective_ids):
        raise InputError("file-permission-denied", path=path)


# ---- readers of other packages


@cache
def plugin_readers() -> tuple[AddOn, ...]:
    """Return the readers of other packages; warn about those that cannot be loaded."""
    return add_ons(GROUP, Reader)


BY_ADD_ON = "read-by-add-on"


def not_ours(source: Source) -> tuple[Message, ...]:
    """Return the warning on a log that another package reads.

    veilog cannot check whether that package keeps cases apart.
    """
    other = _plugin_reader(source.files()[0])
    return () if other is None else (Message(BY_ADD_ON, name=other.name, package=other.package),)


@contextlib.contextmanager
def plugin_errors(source: Source) -> Iterator[None]:
    """Name the package of a reader whose error it is, instead of crashing."""
    try:
        yield
    except (VeilogError, MemoryError):
        raise
    except Exception as error:
        other = _plugin_reader(source.files()[0])
        if other is None:
            raise
        raise InputError(
            "add-on-failed",
            path=source.name,
            name=other.name,
            package=other.package,
            kind=type(error).__name__,
            reason=error,
        ) from error
