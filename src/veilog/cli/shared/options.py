"""The options that commands share: which log, how it is read, what is asked of it, and how values are spelled."""

from __future__ import annotations

import datetime
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeVar, cast

from cyclopts import Group as OptionGroup
from cyclopts import Parameter

from veilog._files import reason, text_of
from veilog.cli.shared.paths import is_pipe
from veilog.errors import InputError, ParameterError, meant
from veilog.ledger.accounts import Account
from veilog.ledger.ledger import Ledger
from veilog.logs.engines.engine import called
from veilog.logs.eventlog import EventLog
from veilog.logs.findings import Findings, Policy
from veilog.logs.input.activity_mapping import ActivityMapping, mapped_by
from veilog.logs.input.source import DEFAULT_LIMIT, ReadOptions
from veilog.logs.variants import Variants
from veilog.measures.persons import column_of
from veilog.methods import method_named
from veilog.privacy.domain import FROM_LOG, PRIVATELY, Domain, Values, Window
from veilog.privacy.partition import SPAN, day_named
from veilog.privacy.persons import columns_of_persons
from veilog.privacy.unit import Unit
from veilog.releasing.request import OPTIONS, Option, ReleaseRequest, Work, plan

if TYPE_CHECKING:
    from _typeshed import DataclassInstance
    from cyclopts import Token


def _whole(kind: object, tokens: Sequence[Token]) -> int:
    """Return the number that was given; the library checks its bounds."""
    (token,) = tokens
    try:
        return int(token.value)
    except ValueError:  # also of more digits than any number has that is meant
        option = token.keyword or ""
        name = option.removeprefix("--").replace("-", "_")
        raise ParameterError("option-not-whole", parameter=name, option=option, value=token.value[:40]) from None


WHOLE = Parameter(converter=_whole)
"""Stands beside the type of every option that is a whole number: ``Annotated[int | None, WHOLE, ...]``."""


def quoted(path: Path) -> str:
    """Return a file as a shell takes it; ``-`` stands for standard input or output."""
    return shlex.quote(str(path))


def options(*groups: DataclassInstance) -> str:
    """Return the options that were given of these groups, a space before each: how the log is read, who groups it, and
    which ledger is charged. A hint that leaves one out would be about another log, or charged nowhere."""
    words = [word for group in groups for word in _words(group)]
    return "".join(f" {shlex.quote(word)}" for word in words)


def _words(group: DataclassInstance) -> Iterator[str]:
    """The options of a group that differ from what they are by default. Their names are those of its fields."""
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
    """Return what an option that takes NAME=VALUE says each time, of each name once."""
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
        help="Output file; its suffix sets the format. Use - for standard output.",
        allow_leading_hyphen=True,
        validator=_no_option,
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
    """How a log is read: the same options for every command that reads one."""

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
        """Which group each activity belongs to, if they are grouped."""
        return mapped_by(self.map, self.level, self.top)

    def groups(self, domain: Domain) -> Domain:
        """The public facts, with the groups as the activities where nothing is said of these."""
        found = self.mapping()
        return domain if found is None or domain.activities is not None else replace(domain, activities=found.names)

    def options(self, grouping: Grouping, *, released: bool = False) -> ReadOptions:
        """What is said about how the log is read. Where in its file it is need not be said of one that was
        ``released``."""
        known = {field.name for field in fields(ReadOptions)}
        said = {name: value for group in (self, grouping) for name, value in vars(group).items() if name in known}
        left = ("decimal", "header", "sheet", "object_type") if released else ()
        return ReadOptions(**said | dict.fromkeys(left) | {"limit": self.most()})

    def most(self) -> int:
        """The bytes that a compressed log may unpack to."""
        if self.limit is not None and self.limit < 1:
            raise ParameterError("limit-below-one", parameter="limit", limit=self.limit)
        return DEFAULT_LIMIT if self.limit is None else self.limit

    def policies(self) -> dict[str, Policy]:
        policies = cast("dict[str, Policy]", pairs(self.on, "--on"))
        Findings(policies)  # refuses unknown rules and policies
        return policies


AS_USUAL = Reading()


@Parameter(name="*", group=GROUPS["engines"])
@dataclass(frozen=True)
class Grouping:
    """Who groups a table's events into variants: the same options for every command that variants are enough for."""

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
        str, Parameter(help="Memory for grouping the events of a table, e.g. 4GB.", show_default=True)
    ] = "1GB"
    temp_directory: Annotated[
        Path | None, Parameter(help="Folder for data beyond that memory; default that of the system.")
    ] = None

    def needs_events(self, what: str) -> None:
        """Refuse an engine where variants are not enough."""
        if self.engine != "duckdb":
            raise ParameterError("engine-without-events", parameter="engine", what=what, called=called(self.engine))


HERE = Grouping()


@Parameter(name="*")
@dataclass(frozen=True)
class Whose:
    """Whose the cases are."""

    person: Annotated[
        str | None,
        Parameter(help="Column that identifies people; by default the one that seems to (see veilog info)."),
    ] = None
    no_person: Annotated[bool, Parameter(negative="", help="Treat each case as a separate person.")] = False

    def asked(self) -> str | bool:
        """As use cases and halves take it."""
        if self.person is not None and self.no_person:
            raise ParameterError("person-options-contradict", parameter="person")
        return not self.no_person if self.person is None else self.person

    def column(self, log: EventLog | Variants) -> str | None:
        """The column of this log; refuses one that it does not have."""
        asked = self.asked()
        if isinstance(asked, str):
            if isinstance(log, Variants):
                raise ParameterError("person-without-events", parameter="person")
            columns_of_persons(log, asked, "person")
        return column_of(log, asked)

    def check(self, original: EventLog | Variants | None) -> None:
        """Refuse a column that the original does not have, and what is said of an original that is not there."""
        if original is not None:
            self.column(original)
        elif self.asked() is not True:
            raise ParameterError("person-without-original", parameter="person")


SEEMING = Whose()


@Parameter(name="*")
@dataclass(frozen=True)
class Limits:
    """What the releases of a log may cost in all, and how they are counted."""

    epsilon: Annotated[
        str | None,
        Parameter(allow_leading_hyphen=True, help="Budget of all releases of the log; none for no limit."),
    ] = None
    delta: Annotated[str | None, Parameter(allow_leading_hyphen=True, help="The same for delta; default 0.")] = None
    composed: Annotated[
        bool,
        Parameter(
            negative="",
            help="Count releases from now on by composition, which needs a delta and uses less than the sum.",
        ),
    ] = False
    releases: Annotated[
        int | None,
        WHOLE,
        Parameter(help="Number of planned releases, each at most --each; needs --delta for all."),
    ] = None
    each: Annotated[str | None, Parameter(help="Largest epsilon of each planned release.")] = None
    each_delta: Annotated[str | None, Parameter(help="The same for delta; default 0.")] = None

    def check(self) -> None:
        """Refuse what does not go together, before a large log is read."""
        if (self.releases is None) != (self.each is None) or (self.each_delta is not None and self.each is None):
            raise ParameterError("plan-options-incomplete", parameter="releases")
        if self.releases is not None and (self.epsilon is not None or self.composed or self.delta is None):
            raise ParameterError(
                "plan-delta-missing" if self.delta is None else "plan-cost-given",
                parameter="releases",
            )
        if (self.delta is not None or self.composed) and self.epsilon is None and self.releases is None:
            raise ParameterError("budget-delta-without-epsilon", parameter="delta")

    def set(self, kept: Ledger, data: Variants | EventLog, unit: str | None, account: int | None) -> Account:
        """Set them, or leave them as they are where nothing is said."""
        delta = self.delta or 0
        if self.releases is not None and self.each is not None:
            each_delta = self.each_delta or 0
            return kept.set_plan(
                data, self.releases, self.each, delta, each_delta=each_delta, unit=unit, account=account
            )
        if self.epsilon is None:
            return kept.enter(data, unit=unit, account=account)
        limit = None if self.epsilon.strip().lower() == "none" else self.epsilon
        return kept.set_budget(data, limit, delta, unit=unit, account=account, composed=self.composed)


UNLIMITED = Limits()


def _length(text: str | None) -> int | Literal["log"] | None:
    if text is None:
        return None
    if text == FROM_LOG:
        return FROM_LOG
    try:
        return int(text)
    except ValueError:
        raise ParameterError("max-length-not-whole", parameter="max_length", text=text) from None


def _values(text: str) -> Values:
    if text.startswith("@"):
        return declared_list(text)
    low, dots, high = text.partition("..")
    if dots:
        try:
            return float(low), float(high)
        except ValueError:
            pass
    return tuple(value.strip() for value in text.split("|") if value.strip())


def _window(text: str) -> Window | str:
    start, dots, end = text.partition("..")
    if not dots and text != "log":
        raise ParameterError("window-not-understood", parameter="window", text=text)
    if not dots:
        return text
    return _time(start), _time(end)


def _time(text: str) -> datetime.datetime:
    try:
        return datetime.datetime.fromisoformat(text.strip())
    except ValueError:
        raise ParameterError("window-not-dates", parameter="window", text=text.strip()) from None


def declared_list(text: str) -> tuple[str, ...]:
    """``a,b,c``, or ``@FILE`` with one on each line."""
    if not text.startswith("@"):
        return _stripped(text.split(","))
    path = Path(text[1:])
    try:
        lines = text_of(path).splitlines()
    except OSError as error:
        raise ParameterError("list-not-readable", parameter="@FILE", file=path, reason=reason(error)) from error
    except UnicodeDecodeError as error:
        raise InputError("list-not-utf8", path=path) from error
    return _stripped(lines)


def activity_names(text: str, words: Sequence[str] = (FROM_LOG, PRIVATELY)) -> tuple[str, ...]:
    """The activities in such a list; one name that is nearly one of the ``words`` which say something else is refused,
    because a release of one activity that does not exist would cost as much as any other."""
    names = declared_list(text)
    if text.startswith("@") or len(names) != 1 or not meant(names[0], (FROM_LOG, PRIVATELY)):
        return names
    raise ParameterError("activities-list-of-one", parameter="activities", names=names[0], meant=meant(names[0], words))


def _stripped(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(name.strip() for name in names if name.strip())


OptionsClass = TypeVar("OptionsClass", bound="RequestOptions")


def options_of(work: Work, *names: str, **helps: str) -> Callable[[type[OptionsClass]], type[OptionsClass]]:
    """Return a decorator that gives a class the options that a request has for this work, as fields of text, beside its
    own; or those of these ``names`` alone. ``helps`` say another thing of some of them."""

    def made(kind: type[OptionsClass]) -> type[OptionsClass]:
        own = dict(kind.__annotations__)
        kind.__annotations__ = {}
        for option in OPTIONS.values():
            if option.name in names or (not names and work in option.works):
                kind.__annotations__[option.name] = _annotated(option, helps.get(option.name, option.help))
                setattr(kind, option.name, _usual(option))
        kind.__annotations__ |= own
        return Parameter(name="*")(dataclass(frozen=True)(kind))

    return made


def _annotated(option: Option, words: str) -> Any:
    """The type of an option, and how the command shows it."""
    shown = isinstance(option.default, str | int) and not isinstance(option.default, bool)
    parameter = Parameter(
        name=option.option if option.several else None,
        help=words,
        group=GROUPS[option.group],
        allow_leading_hyphen=option.python.startswith("Number"),
        negative="" if option.kind is bool or option.several else None,
        show_default=shown,
    )
    if option.several:
        return Annotated[tuple[str, ...], parameter]
    if option.kind is int:
        return Annotated[int | None, WHOLE, parameter]
    if option.choices:
        return Annotated[Literal[option.choices] | None, parameter]
    return Annotated[bool if option.kind is bool else str if shown else str | None, parameter]


def _usual(option: Option) -> Any:
    """What an option is where it is not given."""
    if option.several:
        return ()
    return str(option.default) if isinstance(option.default, int) and option.kind is str else option.default


@dataclass(frozen=True)
class RequestOptions:
    """The options of a request as texts; :meth:`asked` reads them."""

    if TYPE_CHECKING:
        unit: str
        max_cases: int | None
        without_person: str | None

        def __init__(self, **options: Any) -> None: ...
        def __getattr__(self, name: str) -> Any: ...

    @property
    def by_column(self) -> bool:
        """Whether a column names the person, so that variants alone are not enough."""
        return self.unit not in ("case", "person")

    def having(self, **changes: Any) -> Self:
        """Return the options with some of them changed."""
        return cast("Self", replace(cast("Any", self), **changes))

    def checked(self) -> Unit:
        """Return whom that protects; refused before a log is read, where it means nothing."""
        return Unit.of(self.unit, self.max_cases, self.without_person)

    def whom(self) -> dict[str, Any]:
        """Return whom that protects, as :func:`veilog.suggest` takes it."""
        return {"unit": self.unit, "max_cases": self.max_cases, "without_person": self.without_person}

    def asked(self, *, any_domain: bool = False) -> dict[str, Any]:
        """Return the options as :func:`veilog.plan` takes them. The domains are those of attributes that are released,
        or ``any_domain``."""
        given = {field.name: getattr(self, field.name) for field in fields(cast("Any", self)) if field.name in OPTIONS}
        text, length = given.pop("activities", None), _length(given.pop("max_length", None))
        activities = text if text is None or text in (FROM_LOG, PRIVATELY) else activity_names(text)
        names = None if given.get("attributes") is None else _stripped(given["attributes"].split(","))
        domains = _domains(given.pop("domain", ()), None if any_domain else names or ())
        given |= {"domain": replace(Domain.of(activities, length), attributes=domains)}
        if names is not None:
            given["attributes"] = names
        if given.get("window") is not None:
            given["window"] = _window(given["window"])
        return given

    def request(self, method: str, parameters: Mapping[str, str]) -> ReleaseRequest:
        """Return the request, for this method with its own parameters."""
        # -p guessing_advantage=X and --guessing-advantage X are the same where the method has such a parameter.
        chosen = method_named(method)
        own = {parameter.name for parameter in chosen.parameters}
        for name, value in parameters.items():
            option = next((option for option in OPTIONS if option.startswith(name) and len(name) > 2), None)  # eps
            if option is not None and not any(parameter.startswith(name) for parameter in own):
                raise ParameterError(
                    "no-parameter-2",
                    parameter=name,
                    name=name,
                    method=method,
                    option=OPTIONS[option].option,
                    value=value,
                )
        chosen.parse(parameters)
        asked = self.asked(any_domain=chosen.full_log)
        if asked.get("guessing_advantage") is not None and "guessing_advantage" in parameters:
            raise ParameterError("guessing-advantage-twice", parameter="guessing_advantage")
        return plan(method, **{**asked, **parameters})


def _domains(texts: Sequence[str], released: Sequence[str] | None) -> dict[str, Values]:
    """The declared values of attributes; of those alone that are ``released``, where these are given."""
    found: dict[str, Values] = {}
    for text in texts:
        name, values = pair(text, "--domain")
        if name in found:
            raise ParameterError("domain-declared-twice", parameter="domain", name=name)
        if released is not None and name.removeprefix("case:") not in {one.removeprefix("case:") for one in released}:
            raise ParameterError(
                "domain-of-unreleased-attribute", parameter="domain", name=name, meant=meant(name, released)
            )
        found[name] = _values(values)
        if len(found[name]) == 1 and "," in values and not values.startswith("@"):
            raise ParameterError(
                "domain-values-not-separated",
                parameter="domain",
                values=values,
                name=name,
                names="|".join(part.strip() for part in values.split(",")),
            )
    return found


@options_of("release", "unit", "max_cases", "without_person")
class Persons(RequestOptions):
    """Who is protected."""


@options_of(
    "train", *(name for name, option in OPTIONS.items() if option.group == "budget" and "train" in option.works)
)
class TrainOptions(RequestOptions):
    """What may be spent, who is protected, and which facts are public."""


@options_of("release")
class ReleaseOptions(RequestOptions):
    """What may be spent, who is protected, which facts are public, what is released, and of which cases."""

    since: Annotated[
        str | None,
        Parameter(
            group=GROUPS["content"],
            help=(
                "Release only cases that began on this day (2024-03-14, UTC) or later, and before --until. last "
                "continues after the last such release on --account."
            ),
        ),
    ] = None
    until: Annotated[
        str | None,
        Parameter(
            group=GROUPS["content"],
            help="With --since: first day to exclude; default today, so only whole days.",
        ),
    ] = None

    def asked(self, *, any_domain: bool = False) -> dict[str, Any]:
        return super().asked(any_domain=any_domain) | {"subset": self.chosen}

    @property
    def chosen(self) -> str | None:
        """The subset of the cases, in the words of ``--subset``."""
        if self.until is not None and self.since is None:
            raise ParameterError("until-without-since", parameter="until")
        if self.since is None:
            return cast("str | None", self.subset)
        if self.subset is not None:
            raise ParameterError("subset-and-since", parameter="since")
        first, end = day_named(self.since, "since"), self.end
        if first >= end:
            raise ParameterError(
                "days-none-between",
                parameter="since",
                first=first,
                value="today" if self.until is None else f"--until {end}",
            )
        return f"{SPAN}={first}..{end}"

    @property
    def end(self) -> datetime.date:
        """The day before which cases are to have begun: by default today, in UTC."""
        return datetime.datetime.now(datetime.UTC).date() if self.until is None else day_named(self.until, "until")


EACH_CASE, UNDECIDED, FOR_TRAINING = Persons(), ReleaseOptions(), TrainOptions()
