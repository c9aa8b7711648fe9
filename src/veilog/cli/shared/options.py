"""Options that commands share: the log, its reading, and the spelling of values."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from cyclopts import Group as OptionGroup
from cyclopts import Parameter

from veilog.cli.shared.paths import is_pipe
from veilog.errors import ParameterError
from veilog.logs.findings import Findings, Policy
from veilog.logs.input.activity_mapping import ActivityMapping, mapped_by
from veilog.logs.input.source import DEFAULT_LIMIT, ReadOptions, engine_name

if TYPE_CHECKING:
    from _typeshed import DataclassInstance
    from cyclopts import Token

    from veilog.privacy.domain import Domain


def _whole(kind: object, tokens: Sequence[Token]) -> int:
    """Return the number that was given; the library checks its bounds."""
    (token,) = tokens
    try:
        return int(token.value)
    except ValueError:  # also for more digits than any sensible number has
        option = token.keyword or ""
        name = option.removeprefix("--").replace("-", "_")
        raise ParameterError("option-not-whole", parameter=name, option=option, value=token.value[:40]) from None


WHOLE = Parameter(converter=_whole)
"""Annotation of options with whole numbers: ``Annotated[int | None, WHOLE, ...]``."""


def quote_path(path: Path) -> str:
    """Return a file as a shell takes it; ``-`` stands for standard input or output."""
    return shlex.quote(str(path))


def options(*groups: DataclassInstance) -> str:
    """Return the given options of these groups, a space before each.

    They are how the log is read, the engine that groups it, and the ledger. A hint that leaves one out would be about
    another log, or would charge another ledger.
    """
    words = [word for group in groups for word in _words(group)]
    return "".join(f" {shlex.quote(word)}" for word in words)


def _words(group: DataclassInstance) -> Iterator[str]:
    """Yield the options of a group that differ from their defaults, named as fields."""
    for field in fields(group):
        value = getattr(group, field.name)
        usual = None if field.default is MISSING else field.default
        if value == usual:
            continue
        option = f"--{field.name.replace('_', '-')}"
        if isinstance(value, bool):
            yield option
            continue
        for one in value if isinstance(value, tuple) else (value,):
            yield from (option, str(one))


def pairs(texts: Sequence[str], option: str) -> dict[str, str]:
    """Return the pairs of an option that takes NAME=VALUE, each name at most once."""
    found = [pair(text, option) for text in texts]
    names = [name for name, _ in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ParameterError("option-says-twice", parameter=option, option=option, twice=twice)
    return dict(found)


def pair(text: str, option: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise ParameterError("option-not-name-value", parameter=option, option=option, text=text)
    return name.strip(), value.strip()


_TITLES = {
    "budget": "Budget, public facts and protected unit",
    "content": "Times, attributes, and some cases alone",
    "pages": "Pages about it",
    "ledger": "The ledger",
    "preview": "Preview on synthetic logs",
    "reading": "Reading the log",
    "engines": "Large tables and databases",
}


GROUPS = {name: OptionGroup(title, sort_key=place) for place, (name, title) in enumerate(_TITLES.items(), 1)}
"""Groups in which the options of a command are shown, after its own."""


def _refuse_option(kind: Any, path: Path) -> None:
    """Refuse an option that is taken for a file because a file may be called - ."""
    if str(path).startswith("-") and not is_pipe(path):
        raise ValueError(f"There is no option {path}.")


Log = Annotated[
    Path,
    Parameter(
        help="Event log: .xes, .csv, .tsv, .parquet, .xlsx, OCEL 2.0, or one of them in a .zip; - for standard input.",
        allow_leading_hyphen=True,
        validator=_refuse_option,
    ),
]


Target = Annotated[
    Path,
    Parameter(
        help="Output file; its suffix sets the format. Use - for standard output.",
        allow_leading_hyphen=True,
        validator=_refuse_option,
    ),
]


MethodSettings = Annotated[
    tuple[str, ...],
    Parameter(name=["-p", "--parameter"], negative="", help="Parameter of the method, as NAME=VALUE. Repeatable."),
]


To = Annotated[str | None, Parameter(help="Output format for standard output, if it differs from the input.")]


Json = Annotated[
    str | None, Parameter(name="--json", allow_leading_hyphen=True, help="Write the result as JSON to a file, or - .")
]


Details = Annotated[bool, Parameter(name="--details", negative="", help="Show every detail.")]


SpreadsheetSafe = Annotated[
    bool,
    Parameter(
        negative="", help="Write an apostrophe before CSV or TSV texts that a spreadsheet would run as formulas."
    ),
]


HeldOut = Annotated[
    Path | None,
    Parameter(
        name="--control",
        help="Control: a log of people who were not in the released log.",
    ),
]


@Parameter(name="*", group=GROUPS["reading"])
@dataclass(frozen=True)
class Reading:
    """The options for reading a log, the same for every command that reads one."""

    case: Annotated[str | None, Parameter(help="Column with the name of the case, for tables.")] = None
    activity: Annotated[str | None, Parameter(help="Column of the activity, for tables.")] = None
    timestamp: Annotated[str | None, Parameter(help="Column of the timestamp, for tables.")] = None
    start: Annotated[
        str | None, Parameter(help="Column of the start of an event, for tables; the timestamp is its end.")
    ] = None
    lifecycle: Annotated[
        str | None,
        Parameter(
            help=(
                "Keep only events of this lifecycle:transition, e.g. complete. intervals makes a start and its end "
                "one event with a start_timestamp."
            )
        ),
    ] = None
    classifier: Annotated[
        str | None,
        Parameter(
            help="Attributes that form the activity, e.g. 'concept:name lifecycle:transition', or a classifier's name."
        ),
    ] = None
    time_format: Annotated[
        str | None, Parameter(help="Order of dates such as 5/6/2024, for tables: dd/mm/yyyy or mm/dd/yyyy.")
    ] = None
    decimal: Annotated[str | None, Parameter(help="Decimal sign of the numbers in a CSV or TSV: . or ,")] = None
    header: Annotated[int | None, WHOLE, Parameter(help="Line with the column names, for tables; 0 for none.")] = None
    sheet: Annotated[str | None, Parameter(help="Sheet of a workbook.")] = None
    object_type: Annotated[str | None, Parameter(help="Object type that forms the cases of an object-centric log.")] = (
        None
    )
    format: Annotated[
        str | None, Parameter(help="Format of a log that is - , standard input or output: csv, xes, parquet, ...")
    ] = None
    on: Annotated[
        tuple[str, ...],
        Parameter(
            name="--on",
            negative="",
            help="Policy for a finding, as RULE=POLICY (drop, keep, fail); see veilog validate. Repeatable.",
        ),
    ] = ()
    map: Annotated[
        Path | None,
        Parameter(
            help="Public list that groups activities: CSV (activity,group,coarser group) or JSON; see veilog map."
        ),
    ] = None
    level: Annotated[int | None, WHOLE, Parameter(help="Level of the groups in the list; default 1, the finest.")] = (
        None
    )
    top: Annotated[
        int | None, WHOLE, Parameter(help="Number of activities of the list to keep; all others become one.")
    ] = None
    limit: Annotated[
        int | None,
        WHOLE,
        Parameter(help="Largest unpacked size of a compressed log, in bytes; by default suspicious ones are refused."),
    ] = None

    def mapping(self) -> ActivityMapping | None:
        """Return the group of each activity, if they are grouped."""
        return mapped_by(self.map, self.level, self.top)

    def groups(self, domain: Domain) -> Domain:
        """Return the public facts, with the groups as activities if none are declared."""
        found = self.mapping()
        return domain if found is None or domain.activities is not None else replace(domain, activities=found.names)

    def options(self, grouping: Grouping, *, released: bool = False) -> ReadOptions:
        """Return the options of reading.

        For a ``released`` log, those for its place in a file do not count.
        """
        known = {field.name for field in fields(ReadOptions)}
        said = {name: value for group in (self, grouping) for name, value in vars(group).items() if name in known}
        left = ("decimal", "header", "sheet", "object_type") if released else ()
        return ReadOptions(**said | dict.fromkeys(left) | {"limit": self.most()})

    def most(self) -> int:
        """Return the bytes that a compressed log may unpack to."""
        if self.limit is not None and self.limit < 1:
            raise ParameterError("limit-below-one", parameter="limit", limit=self.limit)
        return DEFAULT_LIMIT if self.limit is None else self.limit

    def policies(self) -> dict[str, Policy]:
        policies = cast("dict[str, Policy]", pairs(self.on, "--on"))
        Findings(policies)  # refuses unknown rules and policies
        return policies


DEFAULT_READING = Reading()


@Parameter(name="*", group=GROUPS["engines"])
@dataclass(frozen=True)
class Grouping:
    """The engine that groups a table's events into variants, if variants suffice."""

    engine: Annotated[
        str,
        Parameter(
            help="Engine: duckdb, spark, duckdb:FILE or a URL that Ibis connects to. LOG is then a table there.",
            show_default=True,
        ),
    ] = "duckdb"
    index: Annotated[
        str | None, Parameter(help="Column that orders events of equal time, for tables of a database.")
    ] = None
    memory_limit: Annotated[
        str,
        Parameter(
            help="Memory for the events of a log, e.g. 4GB. Given, it refuses a log that needs more as a whole.",
            show_default=True,
        ),
    ] = "1GB"
    temp_directory: Annotated[
        Path | None, Parameter(help="Folder for data beyond that memory; default that of the system.")
    ] = None

    def needs_events(self, what: str) -> None:
        """Refuse an engine for work that needs more than variants."""
        if self.engine != "duckdb":
            raise ParameterError(
                "engine-without-events", parameter="engine", what=what, called=engine_name(self.engine)
            )


DEFAULT_GROUPING = Grouping()
