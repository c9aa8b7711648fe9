"""Reading the log of a command, as much as it needs; its output and progress."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
from rich.text import Text

from veilog._files import check_writable, sha256_of
from veilog.cli.shared.options import DEFAULT_GROUPING, Grouping, Reading
from veilog.cli.shared.paths import input_file, is_pipe, output_file
from veilog.cli.shared.tables import findings_table
from veilog.cli.shared.terminal import CALL, SafeConsole, about, write_json
from veilog.errors import ParameterError
from veilog.logs import files
from veilog.logs.eventlog import EventLog
from veilog.logs.findings import Finding, Findings
from veilog.logs.input.formats import ReadRequest
from veilog.logs.input.loader import group_variants, roles_of, whole
from veilog.logs.input.source import Progress, Source, silent
from veilog.logs.tables.table_reader import is_large, table_reader_of
from veilog.logs.variants import Variants

if TYPE_CHECKING:
    from veilog.logs.engines.engine import Grouped
    from veilog.logs.storage.stored_log import StoredLog

_LARGE_FILE = 64 << 20


class AccountTotals(Protocol):
    """An account, or one that would be opened."""

    def totals(self) -> dict[str, Any]:
        """Return its sums, for programs."""


class Output:
    """The output of a command: tables on stdout, or JSON, or a log.

    Tables go to stderr if ``log``, a log that is written, goes to stdout. ``of`` are the files that the output is of.
    """

    def __init__(self, target: str | None, *of: Path, log: Path | None = None) -> None:
        self.target, self.of = target, of
        piped = log is not None and is_pipe(log)
        if piped and target == "-":
            raise ParameterError("output-log-and-json", parameter="json")
        if target is not None and target.startswith("--"):  # without a file after it, the next option is taken for one
            raise ParameterError("json-file-is-option", parameter="json", target=target)
        if target is not None and target != "-":
            check_writable(target)
        own = (sys.stderr if piped else sys.stdout).isatty() or os.environ.get("COLUMNS", "").isdecimal()
        self.console = SafeConsole(highlight=False, width=None if own else 140, stderr=piped)

    def json(self, value: object, *wrote: Path, account: AccountTotals | None = None) -> None:
        """Write a result as JSON: an object with facts ``about`` the command.

        It also has confidential facts, such as the ``account``, which has the name of the log.
        """
        if self.target is None:
            return
        if isinstance(value, dict):
            own = {**value.get("owner_only", {})} | ({} if account is None else {"account": account.totals()})
            own |= {"input": _hash_files(self.of)} if self.of else {}
            value = value | ({"owner_only": own} if own else {}) | {"about": about() | {"output": _hash_files(wrote)}}
        write_json(value, self.target)
        CALL.get().told.append(self.target)

    def show(self, what: Any, *, whole: bool = False) -> None:
        """Print for people; text to be pasted ``whole`` is not broken into lines."""
        if self.target != "-" and not CALL.get().quiet:
            self.console.print(what, soft_wrap=whole)


def _hash_files(files: Iterable[Path]) -> list[dict[str, str | None]]:
    """Return the files with the SHA-256 of their content; None for what is no file."""
    return [{"path": str(path), "sha256": sha256_of(path)} for path in files]


@contextmanager
def show_progress(*, time_left: bool = False, also: str = "") -> Iterator[Callable[[str, float | None], None]]:
    """Show progress on stderr for people; silent if stderr is no terminal.

    For long work it has the ``time_left``, and ``also`` another note.
    """
    console = SafeConsole(stderr=True)
    if not console.is_terminal or CALL.get().quiet:
        yield silent
        return
    from rich.progress import (  # here, as most commands of a script show none
        BarColumn,
        ProgressColumn,
        SpinnerColumn,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as Bar

    left = (TaskProgressColumn(), TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn())
    columns: tuple[ProgressColumn, ...] = (SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn())
    columns += (*left, TextColumn(also, style="dim")) if time_left else (TimeElapsedColumn(),)
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=None)

        def show(text: str, fraction: float | None) -> None:
            bar.update(task, description=text, total=None if fraction is None else 1.0, completed=fraction or 0.0)

        yield show


def named(log: Path, reading: Reading, grouping: Grouping = DEFAULT_GROUPING, *, released: bool = False) -> Source:
    """Return the log of the command, which is opened once.

    For a ``released`` log, the options for its place in a file do not count.
    """
    _settle_pandas()
    if is_pipe(log):
        log = input_file(reading.format, reading.most())
    return Source(log, reading.options(grouping, released=released))


class _NoPandas:
    """A finder that finds no pandas."""

    @staticmethod
    def find_spec(name: str, *_: object) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(name)


@cache
def _settle_pandas() -> None:
    """Let Arrow look for pandas once without success, which spares the import.

    Arrow looks at its first array, and the import takes longer than to read a small log. A command hands Arrow no
    frames, and a later import of pandas still succeeds.
    """
    if "pandas" not in sys.modules:
        sys.meta_path.insert(0, _NoPandas)
        try:
            pa.array([0])
        finally:
            sys.meta_path.remove(_NoPandas)


def read_request(source: Source, reading: Reading, progress: Progress, *, collect_all: bool = False) -> ReadRequest:
    """Return the request to read this log.

    With ``collect_all``, findings that stop reading are collected. Two processes are faster for large files that are
    not compressed only.
    """
    large = not source.packed and source.size > _LARGE_FILE
    if large:
        from veilog._process import machine_cores  # here, as it loads much for processes

        processes = min(2, machine_cores())
    else:
        processes = 1
    options = replace(source.options, processes=processes, mapping=reading.mapping())
    return ReadRequest(options, Findings(reading.policies(), source.name, collect_all), progress=progress)


def read_log(source: Source, reading: Reading) -> EventLog:
    with show_progress() as progress:
        progress(f"reading {source.path.name}", None)
        return whole(source, read_request(source, reading, progress))


def read_released(source: Source, reading: Reading) -> EventLog:
    """Return a release; if its activities were grouped, it has the groups already."""
    groups = reading.mapping()
    log = read_log(source, replace(reading, map=None, level=None, top=None))
    return log if groups is None else groups.of_release(log)


def read_variants(source: Source, reading: Reading) -> Variants:
    """Return the variants; tables larger than memory are grouped within the limit.

    Other engines group them elsewhere.
    """
    return read_grouped(source, reading)[0].variants


def read_grouped(source: Source, reading: Reading) -> tuple[Grouped, tuple[Finding, ...]]:
    """Return the variants, first and last time, and the findings."""
    with show_progress() as progress:
        asked = read_request(source, reading, progress)
        found = group_variants(source, asked)
    return found, asked.findings.result()


def open_source(out: Output, log: Path, reading: Reading, grouping: Grouping = DEFAULT_GROUPING) -> Source:
    """Return the log of the command after showing the columns that were guessed.

    A wrong guess must be seen.
    """
    source = named(log, reading, grouping)
    roles = roles_of(source, source.options)
    if roles is not None and roles.guessed:
        out.show(Text(f"columns: {roles}", style="yellow"))
    return source


def show_findings(out: Output, findings: tuple[Finding, ...], log: Path) -> None:
    """Show the findings of reading, with what was left out; nothing if there are none."""
    if findings:
        out.show(findings_table(findings, source="standard input" if is_pipe(log) else log.name))


def check_target(target: Path, format_: str | None, *, spreadsheet_safe: bool = False) -> Path:
    """Return the place to write the target to, checked before any work.

    For standard output it is a file whose content is sent there in the end.
    """
    if is_pipe(target):
        place = output_file(format_)
        files.check_target(place, spreadsheet_safe=spreadsheet_safe)
        return place
    files.check_target(target, spreadsheet_safe=spreadsheet_safe)
    return target


_LARGE_TEXT = 256 << 20
"""Bytes of a text above which events are grouped with their other columns unread."""


_GZIPPED = 10


def read_events(source: Source, reading: Reading, *, for_whole: str | None = None) -> EventLog | StoredLog:
    """Return the log with its events; in memory for a method that takes it as a whole.

    A large Parquet file stays on disk if possible; several files and tables of engines always do.
    """
    from veilog.logs.storage.loader import store_log, whole_of  # here, as most logs are in one file and fit in memory

    if source.is_elsewhere:
        with show_progress() as progress:
            asked = read_request(source, reading, progress)
            found = store_log(source, asked) if for_whole is None else whole_of(source, asked, for_whole)
    elif for_whole is None and is_large(source):
        with show_progress() as progress:
            found = store_log(source, read_request(source, reading, progress))
    else:
        found = None
    return read_log(source, reading) if found is None else found


def fits(source: Source) -> bool:
    """Return True if the log is one file that may be read with all its columns.

    Other logs are grouped, with their other columns unread.
    """
    if source.options.engine != "duckdb" or not source.is_file or is_large(source):
        return False
    reader = table_reader_of(source)
    if reader is None or reader.rows(source) is not None:
        return True
    return source.size <= (_LARGE_TEXT // _GZIPPED if source.packed else _LARGE_TEXT)
