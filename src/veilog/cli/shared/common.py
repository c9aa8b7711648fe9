"""What the commands share: the options for reading, where results go, progress, and the checks before any work."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, cast

from cyclopts import Group, Parameter
from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from rich.text import Text

from veilog import display
from veilog._files import check_writable, sha256_of
from veilog.cli.shared.pipes import is_pipe, outgoing, received
from veilog.cli.shared.terminal import CALL, SafeConsole, about, write_json
from veilog.cli.shared.values import WHOLE, pairs
from veilog.errors import ParameterError
from veilog.logs import files
from veilog.logs.engines.engine import Grouped
from veilog.logs.engines.names import called
from veilog.logs.eventlog import EventLog
from veilog.logs.findings import Finding, Findings, Policy
from veilog.logs.input.coarser import Coarser, mapped_by
from veilog.logs.input.reader import ReadRequest
from veilog.logs.input.reading import grouped, roles_of, whole
from veilog.logs.input.roles import Declared
from veilog.logs.input.source import AS_FOUND, Layout, Means, Progress, Source
from veilog.logs.input.streams import DEFAULT_LIMIT
from veilog.logs.variants import Variants
from veilog.privacy.domain import Domain

OPTIONS = {
    title: Group(title, sort_key=place)
    for place, title in enumerate(
        (
            "The budget, the public facts, and whom to protect",
            "Times, attributes, and some cases alone",
            "Pages about it",
            "The ledger",
            "Trying it on made-up logs",
            "Reading the log",
            "Large tables and databases",
        ),
        1,
    )
}
"""The groups that the options of a command are shown in, after its own."""


def _no_option(kind: Any, path: Path) -> None:
    """Refuse an option that is taken for a file because a file may be called - ."""
    if str(path).startswith("-") and not is_pipe(path):
        raise ValueError(f"There is no option {path}.")


Log = Annotated[
    Path,
    Parameter(
        help="Event log: .xes, .csv, .tsv, .parquet, .xlsx, OCEL 2.0, or one of them in a .zip; - for standard input.",
        allow_leading_hyphen=True,
        validator=_no_option,
    ),
]
Target = Annotated[
    Path,
    Parameter(
        help="File to write to, its suffix says how; - for standard output.",
        allow_leading_hyphen=True,
        validator=_no_option,
    ),
]
To = Annotated[
    str | None, Parameter(help="Format of what goes to standard output, where that of what comes in is another.")
]


@Parameter(name="*", group=OPTIONS["Reading the log"])
@dataclass(frozen=True)
class Reading:
    """How a log is read: the same options for every command that reads one."""

    case: Annotated[str | None, Parameter(help="Column of the case's name, for tables.")] = None
    activity: Annotated[str | None, Parameter(help="Column of the activity, for tables.")] = None
    timestamp: Annotated[str | None, Parameter(help="Column of the timestamp, for tables.")] = None
    lifecycle: Annotated[
        str | None,
        Parameter(
            help="Keep only the events of this lifecycle:transition, e.g. complete; intervals: a start and its end are "
            "one event with a start_timestamp."
        ),
    ] = None
    classifier: Annotated[
        str | None,
        Parameter(
            help="Attributes that make an activity, 'concept:name lifecycle:transition', or a classifier's name."
        ),
    ] = None
    time_format: Annotated[str | None, Parameter(help="What 5/6/2024 means, for tables: dd/mm/yyyy or mm/dd/yyyy.")] = (
        None
    )
    header: Annotated[
        int | None, WHOLE, Parameter(help="Line with the names of the columns, for tables; 0 where there is none.")
    ] = None
    sheet: Annotated[str | None, Parameter(help="Sheet of a workbook.")] = None
    object_type: Annotated[
        str | None, Parameter(help="Type of the objects that are the cases of an object-centric log.")
    ] = None
    format: Annotated[
        str | None, Parameter(help="Format of a log that is - , standard input or output: csv, xes, parquet, ...")
    ] = None
    on: Annotated[
        tuple[str, ...],
        Parameter(
            name="--on",
            negative="",
            help="RULE=POLICY: what to do about a finding (drop, keep, fail); see veilog validate. Repeatable.",
        ),
    ] = ()
    map: Annotated[
        Path | None,
        Parameter(
            help="Group activities by this public list: CSV (activity,group,coarser group) or JSON; see veilog map."
        ),
    ] = None
    level: Annotated[
        int | None, WHOLE, Parameter(help="Which groups of the list count; 1, the finest, unless told.")
    ] = None
    top: Annotated[
        int | None, WHOLE, Parameter(help="Keep the first so many activities of the list; all others are one.")
    ] = None
    limit: Annotated[
        int | None,
        WHOLE,
        Parameter(help="Bytes that a compressed log may unpack to; by default suspicious ones are refused."),
    ] = None

    def asked(self, source: Source, progress: Progress) -> ReadRequest:
        """How this log is to be read."""
        findings = Findings(self.policies(), source.name)
        return ReadRequest(
            self.declared(), findings, processes=processes(source), progress=progress, coarser=self.coarser()
        )

    def coarser(self) -> Coarser | None:
        """Which group each activity belongs to, if they are grouped."""
        return mapped_by(self.map, self.level, self.top)

    def groups(self, domain: Domain) -> Domain:
        """The public facts, with the groups as the activities where nothing is said of these."""
        found = self.coarser()
        return domain if found is None or domain.activities is not None else replace(domain, activities=found.names)

    def declared(self) -> Declared:
        return Declared(self.case, self.activity, self.timestamp, self.lifecycle, self.classifier, self.time_format)

    def layout(self) -> Layout:
        return Layout(self.header, self.sheet, self.object_type)

    def most(self) -> int:
        """The bytes that a compressed log may unpack to."""
        if self.limit is not None and self.limit < 1:
            raise ParameterError(f"--limit must be at least 1, not {self.limit}.", parameter="limit")
        return DEFAULT_LIMIT if self.limit is None else self.limit

    def policies(self) -> dict[str, Policy]:
        policies = cast("dict[str, Policy]", pairs(self.on, "--on"))
        Findings(policies)  # refuses unknown rules and policies
        return policies


AS_USUAL = Reading()


@Parameter(name="*", group=OPTIONS["Large tables and databases"])
@dataclass(frozen=True)
class Grouping:
    """Who groups a table's events into variants: the same options for every command that variants are enough for."""

    engine: Annotated[
        str,
        Parameter(
            help="duckdb, spark, duckdb:FILE or a URL that Ibis connects to; LOG is then a table there.",
            show_default=True,
        ),
    ] = "duckdb"
    index: Annotated[
        str | None, Parameter(help="Column that orders events of equal time, for tables of a database.")
    ] = None
    memory_limit: Annotated[
        str, Parameter(help="Memory for grouping a table's events, e.g. 4GB.", show_default=True)
    ] = "1GB"
    temp_directory: Annotated[
        Path | None, Parameter(help="Folder for what does not fit into that memory; by default the system's.")
    ] = None

    def means(self) -> Means:
        return Means(self.memory_limit, None, self.temp_directory, self.index)

    def needs_events(self, what: str) -> None:
        """Refuse an engine where variants are not enough."""
        if self.engine != "duckdb":
            raise ParameterError(
                f"{what} needs the events themselves, and --engine {called(self.engine)} gives variants.",
                parameter="engine",
                advice="Leave --engine away and give the log as a file.",
            )


HERE = Grouping()

Json = Annotated[
    str | None, Parameter(name="--json", allow_leading_hyphen=True, help="Write the result as JSON to a file, or - .")
]

Details = Annotated[bool, Parameter(name="--details", negative="", help="Show all that there is, not the main things.")]

SpreadsheetSafe = Annotated[
    bool,
    Parameter(
        negative="", help="In a CSV or TSV, write an apostrophe before texts that a spreadsheet would run as formulas."
    ),
]

HeldOut = Annotated[
    Path | None,
    Parameter(
        name="--control",
        help="A log of people who were not in the log that was released, to hold attacks against.",
    ),
]

_LARGE_FILE = 64 << 20


class Output:
    """Where results go: tables to stdout, unless the JSON goes there, or ``log``, a log that is written; and which
    files they are ``of``."""

    def __init__(self, target: str | None, *of: Path, log: Path | None = None) -> None:
        self.target, self.of = target, of
        piped = log is not None and is_pipe(log)
        if piped and target == "-":
            raise ParameterError(
                "The log and the JSON would both go to standard output.",
                parameter="json",
                advice="Give one of them a file.",
            )
        if target is not None and target.startswith("--"):  # with no file after it the next option is taken for one
            raise ParameterError(
                f"--json takes a file, or - , and {target} is an option.",
                parameter="json",
                advice=f"A file of that name is ./{target}.",
            )
        if target is not None and target != "-":
            check_writable(target)
        own = (sys.stderr if piped else sys.stdout).isatty() or os.environ.get("COLUMNS", "").isdecimal()
        self.console = SafeConsole(highlight=False, width=None if own else 140, stderr=piped)

    def json(self, value: object, *wrote: Path, account: Mapping[str, Any] | None = None) -> None:
        """Write a result as JSON: an object with what it is ``about``, and beside it what only the owner may know, as
        the ``account``, which has the name of the log."""
        if self.target is None:
            return
        if isinstance(value, dict):
            own = {**value.get("owner_only", {})} | ({} if account is None else {"account": dict(account)})
            own |= {"input": _hashed(self.of)} if self.of else {}
            value = value | ({"owner_only": own} if own else {}) | {"about": about() | {"output": _hashed(wrote)}}
        write_json(value, self.target)
        CALL.get().told.append(self.target)

    def show(self, what: Any, *, whole: bool = False) -> None:
        """Print it for people; what is to be pasted ``whole`` is not broken into lines."""
        if self.target != "-" and not CALL.get().quiet:
            self.console.print(what, soft_wrap=whole)


def _hashed(files: Iterable[Path]) -> list[dict[str, str | None]]:
    """Files with the SHA-256 of what is in them; None of what is no file."""
    return [{"path": str(path), "sha256": sha256_of(path)} for path in files]


@contextmanager
def shown_progress() -> Iterator[Callable[[str, float | None], None]]:
    """A progress display on stderr for people; silent where stderr is not a terminal."""
    console = SafeConsole(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Bar(*columns, console=console, transient=True, disable=not console.is_terminal or CALL.get().quiet) as bar:
        task = bar.add_task("", total=None)

        def show(text: str, fraction: float | None) -> None:
            bar.update(task, description=text, total=None if fraction is None else 1.0, completed=fraction or 0.0)

        yield show


def named(log: Path, reading: Reading, grouping: Grouping = HERE, *, released: bool = False) -> Source:
    """The log that the command is about, which is opened once. Where in its file it is need not be said of one that was
    ``released``."""
    if is_pipe(log):
        log = received(reading.format, reading.most())
    layout = AS_FOUND if released else reading.layout()
    return Source(log, engine=grouping.engine, means=grouping.means(), limit=reading.most(), layout=layout)


def read_log(source: Source, reading: Reading) -> EventLog:
    with shown_progress() as progress:
        progress(f"reading {source.path.name}", None)
        return whole(source, reading.asked(source, progress))


def read_released(source: Source, reading: Reading) -> EventLog:
    """A release: of a log whose activities were grouped it has the groups, which are not grouped again."""
    groups = reading.coarser()
    log = read_log(source, replace(reading, map=None, level=None, top=None))
    return log if groups is None else groups.of_release(log)


def read_variants(source: Source, reading: Reading) -> Variants:
    """The variants alone: tables larger than memory are grouped within the memory limit, or elsewhere."""
    return read_grouped(source, reading)[0].variants


def read_grouped(source: Source, reading: Reading) -> tuple[Grouped, tuple[Finding, ...]]:
    """The variants, first and last time, and what was noticed."""
    with shown_progress() as progress:
        asked = reading.asked(source, progress)
        found = grouped(source, asked)
    return found, asked.findings.result()


def show_columns(out: Output, source: Source, reading: Reading) -> None:
    """Say which columns were guessed: a wrong guess must be seen."""
    roles = roles_of(source, reading.declared())
    if roles is not None and roles.guessed:
        out.show(Text(f"columns: {roles}", style="yellow"))


def show_findings(out: Output, findings: tuple[Finding, ...], log: Path) -> None:
    """What was noticed while reading, and what was left out because of it; nothing where there is nothing."""
    if findings:
        out.show(display.findings_table(findings, source="standard input" if is_pipe(log) else log.name))


def processes(source: Source) -> int:
    """Two processes pay for themselves on large files only that are not compressed."""
    large = not source.packed and source.size > _LARGE_FILE
    return min(2, os.cpu_count() or 1) if large else 1


def check_target(target: Path, format_: str | None, *, spreadsheet_safe: bool = False) -> Path:
    """Before any work: the target can be written. Return where to write it: the target, or for standard output a file
    whose content is sent there in the end."""
    if is_pipe(target):
        place = outgoing(format_)
        files.check_target(place, spreadsheet_safe=spreadsheet_safe)
        return place
    files.check_target(target, spreadsheet_safe=spreadsheet_safe)
    return target
