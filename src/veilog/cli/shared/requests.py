"""Options of a request: budget, unit, public facts, and released content."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeVar, cast

from cyclopts import Parameter

from veilog._files import reason, text_of
from veilog.cli.shared.log_input import fits, read_events, read_log, read_variants
from veilog.cli.shared.options import GROUPS, WHOLE, Reading, pair
from veilog.errors import InputError, ParameterError, meant
from veilog.logs.eventlog import EventLog
from veilog.logs.input.source import Source
from veilog.logs.storage.stored_log import StoredLog
from veilog.logs.variants import Variants
from veilog.methods import method_named
from veilog.privacy.domain import FROM_LOG, PRIVATELY, Domain, Values, Window
from veilog.privacy.partition import SPAN, day_named
from veilog.privacy.unit import Unit
from veilog.releasing.request import OPTIONS, Option, ReleaseRequest, Work, plan


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
    """Return the names in ``a,b,c``, or in ``@FILE`` with one on each line."""
    if not text.startswith("@"):
        return _strip_names(text.split(","))
    path = Path(text[1:])
    try:
        lines = text_of(path).splitlines()
    except OSError as error:
        raise ParameterError("list-not-readable", parameter="@FILE", file=path, reason=reason(error)) from error
    except UnicodeDecodeError as error:
        raise InputError("list-not-utf8", path=path) from error
    return _strip_names(lines)


def activity_names(text: str, words: Sequence[str] = (FROM_LOG, PRIVATELY)) -> tuple[str, ...]:
    """Return the activities in a list; refuse a single name near one of ``words``.

    These words have a meaning of their own. A release of one activity that does not exist would use as much epsilon as
    any other.
    """
    names = declared_list(text)
    if text.startswith("@") or len(names) != 1 or not meant(names[0], (FROM_LOG, PRIVATELY)):
        return names
    raise ParameterError("activities-list-of-one", parameter="activities", names=names[0], meant=meant(names[0], words))


def _strip_names(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(name.strip() for name in names if name.strip())


OptionsClass = TypeVar("OptionsClass", bound="RequestOptions")


def options_of(work: Work, *names: str, **helps: str) -> Callable[[type[OptionsClass]], type[OptionsClass]]:
    """Return a decorator that adds the options of a request for this work to a class.

    They are further fields of text; ``names`` restricts them. ``helps`` replace the help of some.
    """

    def made(kind: type[OptionsClass]) -> type[OptionsClass]:
        own = dict(kind.__annotations__)
        kind.__annotations__ = {}
        for option in OPTIONS.values():
            if option.name in names or (not names and work in option.works):
                kind.__annotations__[option.name] = _option_type(option, helps.get(option.name, option.help))
                setattr(kind, option.name, _usual(option))
        kind.__annotations__ |= own
        return Parameter(name="*")(dataclass(frozen=True)(kind))

    return made


def _option_type(option: Option, words: str) -> Any:
    """Return the type of an option, and its form in the command."""
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
    """Return the default of an option."""
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
        """True if a column identifies the person, so that variants alone are not enough."""
        return self.unit not in ("case", "person")

    def having(self, **changes: Any) -> Self:
        """Return the options with some of them changed."""
        return cast("Self", replace(cast("Any", self), **changes))

    def checked(self) -> Unit:
        """Return the protected unit; refuse it before a log is read if it is impossible."""
        return Unit.of(self.unit, self.max_cases, self.without_person)

    def whom(self) -> dict[str, Any]:
        """Return the protected unit, as :func:`veilog.suggest` takes it."""
        return {"unit": self.unit, "max_cases": self.max_cases, "without_person": self.without_person}

    def asked(self, *, any_domain: bool = False) -> dict[str, Any]:
        """Return the options as :func:`veilog.plan` takes them.

        The domains are those of released attributes, or ``any_domain``.
        """
        given = {field.name: getattr(self, field.name) for field in fields(cast("Any", self)) if field.name in OPTIONS}
        text, length = given.pop("activities", None), _length(given.pop("max_length", None))
        activities = text if text is None or text in (FROM_LOG, PRIVATELY) else activity_names(text)
        names = None if given.get("attributes") is None else _strip_names(given["attributes"].split(","))
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
    """Return the declared values of attributes, limited to ``released`` ones if given."""
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
    """Options of the protected unit."""


@options_of(
    "train", *(name for name, option in OPTIONS.items() if option.group == "budget" and "train" in option.works)
)
class TrainOptions(RequestOptions):
    """Options of the budget, the protected unit, and public facts."""


@options_of("release")
class ReleaseOptions(RequestOptions):
    """Options of the budget, the unit, public facts, the content, and the cases."""

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
        """Return the subset of the cases, in the words of ``--subset``."""
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
        """Return the day before which cases have to begin: by default today, in UTC."""
        return datetime.datetime.now(datetime.UTC).date() if self.until is None else day_named(self.until, "until")


EACH_CASE, UNDECIDED, FOR_TRAINING = Persons(), ReleaseOptions(), TrainOptions()


def load_for_request(source: Source, planned: ReleaseRequest, reading: Reading) -> EventLog | StoredLog | Variants:
    """Return the log, or as much of it as the release needs."""
    if planned.needs_events:
        return read_events(source, reading, for_whole=planned.method.name if planned.method.full_log else None)
    if fits(source):
        return read_log(source, reading)  # all columns: the owner should see one that may identify persons
    return read_variants(source, reading)
