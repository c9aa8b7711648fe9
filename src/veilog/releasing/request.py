"""Requests for releases: one description of their options, read and checked once.

Each field of :class:`ReleaseRequest` is annotated with the options that make it. They give the options of the command,
the keywords of Python and the fields of the form. They also give JSON both ways and the tables of the reference. A
field that needs no parser of its own is one :class:`Option`, and nothing else names it.
"""

from __future__ import annotations

import datetime
import importlib
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias, Unpack, cast, get_args, get_type_hints

from veilog._notebook import card, facts, paragraph
from veilog.errors import InputError, ParameterError, UndeclaredError
from veilog.ledger.ledger import Ledger
from veilog.logs.eventlog import EventLog
from veilog.logs.files import AnyLog, as_log
from veilog.logs.storage.stored_log import StoredLog, variants_of
from veilog.logs.synthetic.twins import Sizes
from veilog.logs.variants import Variants
from veilog.methods import Method, Settings, method_named
from veilog.methods._events.assemble import Wanted
from veilog.methods._events.attributes.errors import expected_errors
from veilog.methods._events.extras import delta_shared_out
from veilog.methods._events.times.calendar import check as check_window
from veilog.methods.method import Progress
from veilog.methods.settings import Parameter, parameter_of, python_name
from veilog.privacy.account.budgets import whole_number
from veilog.privacy.account.guarantee import Guarantee, exact
from veilog.privacy.cases import attribute_level
from veilog.privacy.domain import FROM_LOG, PRIVATELY, Domain, Fact, checked_domain
from veilog.privacy.partition import Partition
from veilog.privacy.persons import columns_of_persons
from veilog.privacy.unit import ONE_CASE, Unit
from veilog.releasing.keywords import Keywords
from veilog.releasing.losses import Loss
from veilog.releasing.prior import PublicPrior
from veilog.releasing.refusals import (
    check_beyond,
    check_certified,
    check_names,
    check_parameters,
    check_persons,
    check_privately,
    check_remembered,
    check_unit,
    checked_budget,
    checked_prior,
    checked_rules,
    epsilon_by_advantage,
)
from veilog.releasing.result import Release
from veilog.rules.checks import check_activities, check_columns
from veilog.rules.rules import ReleaseRules

LedgerChoice: TypeAlias = Ledger | str | Path | Literal[False] | None
"""A ledger; None for the one of this user, and False for none."""
Work = Literal["release", "train", "audit", "suggest"]
"""Kinds of work that a request can be for; a preview has the options of a release."""
Group = Literal["budget", "content"]
"""Options of the budget, public facts and protected unit; and options of the released content."""


@dataclass(frozen=True)
class Option:
    """Option of a request: help, type as a keyword of Python, and kinds of work."""

    help: str
    name: str = ""
    """Name, for one of several options of a field. A single option has the name, type and default of its field."""
    kind: type = str
    """bool, int or str, as the command takes it."""
    default: Any = None
    python: str = ""
    """Type of the keyword, where ``kind`` or None does not determine it."""
    choices: tuple[str, ...] = ()
    works: tuple[Work, ...] = ("release", "train")
    group: Group = "budget"
    several: bool = False
    """True if the command takes the option more than once."""
    form: tuple[str, ...] | None = None
    """Fields of the pages' form that give it; None for one field of its own."""
    read: Callable[[Any], Any] | None = None
    keyword: bool = True
    """True if Python has it, too. (The length bound is a fact of a domain there.)"""

    @property
    def option(self) -> str:
        """Its spelling in the command."""
        return f"--{self.name.replace('_', '-')}"

    @property
    def in_form(self) -> tuple[str, ...]:
        """The fields of the form that give it."""
        return (self.name,) if self.form is None else self.form

    def parse(self, value: Any) -> Any:
        """Return the value as its field holds it; a ParameterError if it is not valid."""
        if value is None:
            return self.default
        if self.read is not None:
            return self.read(value)
        return Parameter(self.name, self.kind, self.default, self.help, choices=self.choices).parse(value)


class Uses(NamedTuple):
    """Uses of a delta."""

    flow: bool
    labels: bool
    values: bool
    times: bool

    def of(self, delta: Fraction) -> tuple[Fraction, Fraction]:
        """Return what each of them has of a delta, and what times have."""
        return delta_shared_out(delta, sum(self[:-1]), self.times)


def checked_seed(seed: Any) -> int:
    """Return the seed, or refuse an invalid one."""
    found = whole_number(seed)
    if found is None or found < 0:
        raise ParameterError("disclosure-seed-invalid", parameter="seed", seed=seed)
    return found


def _subset(text: Partition | str) -> Partition:
    return text if isinstance(text, Partition) else Partition.of(text)


@dataclass(frozen=True, kw_only=True)
class ReleaseRequest:
    """Request for a release, made by :func:`plan`; it holds nothing of any log."""

    method: Method
    settings: Settings
    epsilon: Annotated[
        Fraction,
        Option(
            "Privacy budget; smaller values protect better, 0.1 to 1 are usual.",
            "epsilon",
            python="Number | None",
            works=("release", "train", "audit", "suggest"),
            form=("epsilon",),
        ),
        Option(
            "Guessing advantage, instead of epsilon: largest rise of an attacker's chance to guess who is in the "
            "log, e.g. 0.2.",
            "guessing_advantage",
            python="Number | None",
            form=(),
        ),
    ]
    """Epsilon for one unit; 0 where the method has none."""
    delta: Annotated[
        Fraction,
        Option(
            "Amount by which a chance may exceed the factor exp(epsilon); well below one over the number of cases.",
            "delta",
            default=0,
            python="Number",
            works=("release", "train", "audit", "suggest"),
            form=("delta",),
        ),
    ] = Fraction(0)
    unit: Annotated[
        Unit,
        Option(
            "Protected unit: case; the column that identifies people; or person (see --max-cases).",
            "unit",
            default="case",
            python="str",
            works=("release", "train", "audit", "suggest"),
            form=("unit",),
        ),
        Option(
            "Most cases per person. With a column in --unit, veilog draws so many at random; with --unit person, you "
            "guarantee that no person has more.",
            "max_cases",
            kind=int,
            works=("release", "train", "audit", "suggest"),
            form=("max_cases",),
        ),
        Option(
            "Cases whose --unit value is empty: left-out, or own, which counts each as a separate person and adds a "
            "condition. [default: left-out]",
            "without_person",
            python="str | None",
            choices=("left-out", "own"),
            works=("release", "train", "suggest"),
            form=("without_person",),
        ),
    ] = ONE_CASE
    wanted: Annotated[
        Wanted,
        Option(
            "Share of epsilon for the times of events, e.g. 0.3.",
            "times",
            python="Number | None",
            works=("release",),
            group="content",
            form=("times",),
        ),
        Option(
            "Period in which cases start, as START..END (ISO dates); log takes it from the log.",
            "window",
            python="Window | str | None",
            works=("release",),
            group="content",
            form=("window_start", "window_end"),
        ),
        Option(
            "With --times, also release starts of events (start_timestamp), so their durations.",
            "processing",
            kind=bool,
            default=False,
            works=("release",),
            group="content",
            form=("processing",),
        ),
        Option(
            "Attributes to release: a,b,c; case:NAME for an event attribute that never changes within a case.",
            "attributes",
            python="Iterable[str] | None",
            works=("release",),
            group="content",
            form=("attributes",),
        ),
        Option(
            "Share of epsilon for attributes; default a quarter.",
            "attributes_share",
            python="Number | None",
            works=("release",),
            group="content",
            form=(),
        ),
        Option(
            "With a column in --unit: share of epsilon for made-up persons, who come back as those of the log do, e.g. "
            "0.2.",
            "persons",
            python="Number | None",
            works=("release",),
            group="content",
            form=("persons",),
        ),
        Option(
            "With --persons, released attributes of cases that a person keeps in all cases: a,b,c (sex, year of "
            "birth).",
            "person_attributes",
            python="Iterable[str] | None",
            works=("release",),
            group="content",
            form=(),
        ),
    ]
    """Released content beyond variants."""
    declared: Annotated[
        Domain,
        Option(
            "Public activities: a,b,c or @FILE (one per line). log: all activities of the log are public. privately: "
            "find frequent ones with a delta.",
            "activities",
            python="Iterable[str] | str | None",
            works=("release", "train", "audit", "suggest"),
            form=("labels", "activities"),
        ),
        Option(
            "Public maximum trace length; log: the length of the longest trace is public.",
            "max_length",
            works=("release", "train", "audit"),
            form=("longest", "max_length"),
            keyword=False,
        ),
        Option(
            "Public values of an attribute: NAME=a|b|c, NAME=LOW..HIGH or NAME=@FILE. Repeatable.",
            "domain",
            python="Domain | None",
            works=("release", "train", "audit"),
            group="content",
            several=True,
            form=(),
        ),
    ]
    """Public facts, as declared."""
    subset: Annotated[
        Partition | None,
        Option(
            "Release only these cases: month=2024-03 (or week=2024-W11, quarter=2024-Q1, year=2024) by their start in "
            "UTC, or ATTRIBUTE=VALUE; none means cases without a value. Releases of different subsets by one rule "
            "together use no more budget than the largest.",
            "subset",
            python="Partition | str | None",
            works=("release",),
            group="content",
            read=_subset,
            form=("subset",),
        ),
    ] = None
    """Released subset of the cases; None for all."""
    prior: Annotated[
        PublicPrior | None,
        Option(
            "Something public about this process to start from: a log of others, a model (BPMN, PNML, PTML), a text "
            "file of variants, an earlier release. Repeatable.",
            "prior",
            python="PriorChoice | None",
            works=("release", "suggest"),
            group="content",
            several=True,
            form=(),
        ),
        Option(
            "CSV file with the own activity of each activity of the prior that is called otherwise.",
            "prior_map",
            python="str | Path | None",
            works=("release", "suggest"),
            group="content",
            form=(),
        ),
    ] = None
    """Public knowledge about the process."""
    rules: Annotated[
        ReleaseRules | None,
        Option(
            "File (TOML, JSON, or text with declare constraints) of public rules that every released case obeys.",
            "rules",
            python="RulesChoice | None",
            works=("release",),
            group="content",
            read=ReleaseRules.of,
            form=(),
        ),
    ] = None
    remember_units: Annotated[
        bool,
        Option(
            "With --subset or --since: store a digest (16 bytes) of each case's or person's name in the ledger, and "
            "leave out those that an earlier subset of the rule had.",
            works=("release",),
            group="content",
            form=(),
        ),
    ] = False
    seed: Annotated[
        int | None, Option("Seed, to repeat a run in experiments; it voids the guarantee.", form=(), read=checked_seed)
    ] = None
    allow_no_protection: Annotated[
        bool,
        Option("Allow a release without effective protection (any epsilon above 3.89).", form=("allow_no_protection",)),
    ] = False
    as_published: Annotated[
        bool,
        Option(
            "Use the paper's own calibration, and show the derived guarantee.",
            works=("release", "train", "audit"),
            form=("as_published",),
        ),
    ] = False

    @staticmethod
    def of(method: str | ReleaseRequest, work: Work, options: Mapping[str, Any]) -> ReleaseRequest:
        """Return the request of these options, or an earlier request, for this work.

        Raises:
            ParameterError: There are options in addition to an earlier request, or some that a training does not take.

        """
        request = method if isinstance(method, ReleaseRequest) else plan(method, **options)
        given = options.items() if request is method else ()
        beside = [name for name, value in given if not _is_usual(name, value)]
        if beside:
            raise ParameterError("plan-with-other-settings", parameter=beside[0], names=", ".join(beside))
        useless = [name for name in request.arguments() if name in OPTIONS and work not in OPTIONS[name].works]
        if useless and work == "train":
            raise ParameterError("training-no-use-model", parameter=useless[0], option=OPTIONS[useless[0]].option)
        return request

    def __repr__(self) -> str:
        said = "".join(f", {name}={value!r}" for name, value in self.arguments().items())
        return f"ReleaseRequest({self.method.name}{said})"

    def _repr_html_(self) -> str:
        """Return the requested options and their largest cost as HTML."""
        said = facts([("method", self.method.title), *((name, str(value)) for name, value in self.arguments().items())])
        return card(f"Plan: {self.method.name}", said, paragraph(self.cost.in_words(), "s"))

    # What it is made of ---------------------------------------------------------------------------------------------

    @property
    def public(self) -> Domain:
        """Public facts of the release; as published, also those that papers read off logs."""
        return self.declared.taken_from_log(("activities", "max_length")) if self.as_published else self.declared

    @property
    def undeclared(self) -> list[Fact]:
        """Public facts that the method needs and that are not declared."""
        # As published all that is public is the log's own.
        return [] if self.as_published else self.public.lacks(self.method.needs(self.settings))

    @property
    def uses(self) -> Uses:
        """The uses of its delta."""
        return Uses(
            flow=self.method.spends_delta(self.settings),
            labels=self.declared.activities == PRIVATELY,
            values=any(self.declared.values_of(name) is None for name in self.wanted.attributes),
            times=bool(self.wanted.times),
        )

    def attribute_errors(self, cases: int) -> dict[str, float]:
        """Return the expected share of wrong values by noise alone, for each attribute.

        It covers attributes with a declared domain, and comes from public numbers before anything is asked.
        """
        declared = {name: self.declared.values_of(name) for name in self.wanted.attributes}
        epsilon, _ = self.unit.of_one_case(self.epsilon * self.wanted.attributes_share, Fraction(0))
        return expected_errors({name: values for name, values in declared.items() if values}, epsilon, cases)

    @property
    def beside(self) -> tuple[str, ...]:
        """The names of further releases that are made of the same answers."""
        return self.method.beside(self.settings)

    @property
    def needs_events(self) -> bool:
        """True if the release needs the events themselves, and not only the variants."""
        return bool(self.wanted or self.subset) or self.unit.column is not None or self.method.full_log

    @property
    def bounded(self) -> bool:
        """True if the budget bounds its use of epsilon and delta beforehand."""
        return self.method.takes_epsilon and not self.as_published and self.seed is None

    def declaring(self, domain: Domain) -> ReleaseRequest:
        """Return the request with these public facts."""
        return replace(self, declared=domain)

    def seeded(self, seed: int | None) -> ReleaseRequest:
        """Return the request with this seed: repeatable, and without a guarantee."""
        return replace(self, seed=OPTIONS["seed"].parse(seed))

    # What becomes of it ---------------------------------------------------------------------------------------------

    @cached_property
    def cost(self) -> Guarantee:
        """Upper bound on its guarantee, from a dry run on a small synthetic log."""
        return cast("Guarantee", _lazy_maker("preview:guarantee_of")(self))

    def expected(
        self,
        sizes: Sizes | None = None,
        *,
        use_cases: Iterable[str] = (),
        owner_only: bool = False,
        progress: Progress | None = None,
        **declared: Any,
    ) -> Any:
        """Return the expected utility of its release, from releases of synthetic logs.

        No data are touched. The sizes are declared (``cases=1000, length=14``, and if they are known ``activities``,
        ``variants`` and ``frequent``, the share of cases with the most frequent variant), or found by
        :func:`veilog.twin`. ``owner_only`` marks sizes that were read off the log itself: results that follow from them
        must not be published.
        """
        alphabet, said = self.declared.alphabet, declared.get("activities")
        if alphabet is not None and said not in (None, len(alphabet)):
            raise ParameterError("plan-activities-differ", parameter="activities", number=len(alphabet), said=said)
        twins = {"twins": declared.pop("twins")} if "twins" in declared else {}
        known = _lazy_maker("preview:sizes_of")(**declared) if sizes is None else replace(sizes, **declared)
        found = _lazy_maker("preview:expectation")
        return found(self, known, use_cases=use_cases, owner_only=owner_only, progress=progress, **twins)

    def losses(self, log: AnyLog | StoredLog) -> tuple[Loss, ...]:
        """Return the losses of a release of a log, before anything is asked: confidential.

        They are declared activities that the log lacks, and more than 5 % of its events, activities or cases. They are
        computed from the raw log.
        """
        held = as_log(log)
        looked_at = held if self.subset is None else self.subset.of_log(held)
        return cast("tuple[Loss, ...]", _lazy_maker("owner:losses_before")(looked_at, self))

    def run(self, log: AnyLog | StoredLog, *, ledger: LedgerChoice = None, progress: Progress | None = None) -> Release:
        """Release a log as requested and enter that in a ledger (:func:`veilog.release`)."""
        return cast("Release", _lazy_maker("run:release")(log, self, ledger=ledger, progress=progress))

    def check(self, log: EventLog | StoredLog | Variants) -> None:
        """Refuse a log of which this release cannot be made.

        The check uses public facts and the columns of the log, and no query. Undeclared values of attributes, to be
        found with a delta, show only on release.
        """
        if self.undeclared:
            raise UndeclaredError(self.method.name, self.undeclared)
        if isinstance(log, Variants):
            self._check_events()
            if self.subset is not None:
                self.subset.of_log(log)  # refuses
        else:
            for name in self.wanted.attributes:
                attribute_level(log.shape, name)
            for name in self.wanted.person_attributes:
                if attribute_level(log.shape, name) == "event":
                    raise ParameterError("person-attribute-of-events", parameter="person_attributes", name=name)
            if self.unit.column is not None:
                columns_of_persons(log.shape, self.unit.column)
        if self.rules is not None:
            self._check_rules(self.rules, log)
        if self.method.full_log and isinstance(log, StoredLog):
            raise ParameterError("method-log-on-disk", parameter="log", name=self.method.name)

    def _check_rules(self, rules: ReleaseRules, log: EventLog | StoredLog | Variants) -> None:
        """Refuse rules on things that the log lacks, where that is declared public."""
        if self.declared.activities == FROM_LOG:
            check_activities(rules, variants_of(log).labels)
        if not isinstance(log, Variants):
            check_columns(rules, [*log.shape.events.column_names, *log.shape.cases.column_names])

    def _check_events(self) -> None:
        """Refuse variants where events are needed."""
        if self.unit.column is not None:
            raise ParameterError("unit-of-variants", parameter="log", name=self.unit.column)
        if self.wanted:
            raise ParameterError("question-extras-of-variants", parameter="log")
        if self.method.full_log:
            raise ParameterError("variants-without-times", parameter="log")

    # As text --------------------------------------------------------------------------------------------------------

    def arguments(self) -> dict[str, Any]:
        """Return the options that make this request, without its method.

        Defaults are left out. Numbers are exact text, and no value is an object.
        """
        found: dict[str, Any] = {}
        for field in fields(self):
            found |= self._field_options(field.name, getattr(self, field.name), field.default)
        # Apart and last: one may be called as an option is, such as max_length.
        usual = self.method.settings().to_json()
        settings = {name: value for name, value in self.settings.to_json().items() if value != usual.get(name)}
        return found | ({"parameters": settings} if settings else {})

    def _field_options(self, name: str, value: Any, usual: Any) -> dict[str, Any]:
        """Return one field as options."""
        found: dict[str, Any] = {name: value}
        if isinstance(value, Method | Settings):
            return {}
        if isinstance(value, Unit):
            found = dict(value.told)
        elif isinstance(value, Domain):
            found = {
                "activities": list(value.alphabet) if value.alphabet else value.activities,
                "max_length": value.max_length,
                "domain": {name: list(values) for name, values in value.attributes.items()} or None,
            }
        elif isinstance(value, Wanted):
            ends = None if value.window is None or value.window == "log" else [end.isoformat() for end in value.window]
            found = {
                "times": _text(value.times) if value.times else None,
                "window": value.window if ends is None else ends,
                "attributes": list(value.attributes) or None,
                "attributes_share": _text(value.attributes_share) if value.attributes else None,
                "processing": value.processing or None,
                "persons": _text(value.persons) if value.persons else None,
                "person_attributes": list(value.person_attributes) or None,
            }
        elif isinstance(value, Fraction):
            found = {name: _text(value) if value else None}
        elif isinstance(value, PublicPrior):
            found = {"prior": value.names, "prior_map": value.mapping}
        elif isinstance(value, ReleaseRules):
            found = {name: value.source or value.to_json()}
        elif value == usual:
            return {}
        elif not isinstance(value, bool | int | float | str):
            found = {name: list(value) if isinstance(value, tuple) else str(value)}
        return {name: value for name, value in found.items() if value is not None}

    def to_json(self) -> dict[str, Any]:
        """Return the request as JSON, which :meth:`from_json` reads."""
        return {"method": self.method.name, **self.arguments()}

    @staticmethod
    def from_json(values: Mapping[str, Any]) -> ReleaseRequest:
        """Return the request that :meth:`to_json` wrote; it is checked as any other."""
        given = dict(values)
        try:
            method, window, attributes = given.pop("method"), given.pop("window", None), given.pop("domain", {})
            parameters = dict(given.pop("parameters", {}))
            declared = Domain.of(given.pop("activities", None), given.pop("max_length", None))
            if isinstance(window, list):
                start, end = (datetime.datetime.fromisoformat(text) for text in window)
                window = start, end
            domain = replace(declared, attributes={name: tuple(some) for name, some in attributes.items()})
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError("plan-invalid", reason=error) from error
        return plan(method, **{"domain": domain, "window": window, **given, **parameters})

    def command(self, log: str = "LOG", target: str = "RELEASE.xes", options: Iterable[tuple[str, str]] = ()) -> str:
        """Return the command that does the same.

        ``options`` are those for reading the log; one may occur twice. A list with commas in its names becomes a file
        that the user has to make.
        """
        words, flags = ["veilog", "release", log, target, "--method", self.method.name], []
        given = self.arguments()
        parameters = given.pop("parameters", {})
        for name, value in given.items():
            if value is True:
                flags.append(OPTIONS[name].option)
            else:
                words += [word for text in _option_values(name, value) for word in (OPTIONS[name].option, text)]
        words += [word for pair in options for word in pair]
        for name, value in parameters.items():
            words += ["-p", f"{name}={str(value).lower() if isinstance(value, bool) else value}"]
        return shlex.join([*words, *flags])

    def python(self, log: str = "LOG", target: str = "RELEASE.xes", reading: Mapping[str, Any] | None = None) -> str:
        """Return the Python lines that do the same.

        ``reading`` has further arguments of ``veilog.read``.
        """
        given = self.arguments()
        ends = given.pop("window", None)
        known = [given.pop("activities", None), given.pop("max_length", None)]
        attributes = {name: tuple(values) for name, values in given.pop("domain", {}).items()}
        parameters = given.pop("parameters", {})
        words = [f"{python_name(name)}={value!r}" for name, value in {**given, **parameters}.items()]
        if isinstance(ends, list):
            inner = ", ".join(f"datetime.datetime.fromisoformat({_short(end)!r})" for end in ends)
            words.append(f"window=({inner})")
        elif ends is not None:
            words.append(f"window={ends!r}")
        if attributes or known != [None, None]:
            told = [repr(tuple(fact) if isinstance(fact, list) else fact) for fact in known]
            words.append(f"domain=veilog.Domain({', '.join([*told, *([repr(attributes)] if attributes else [])])})")
        read = "".join(f", {name}={value!r}" for name, value in (reading or {}).items())
        lines = [
            *(["import datetime", ""] if isinstance(ends, list) else []),
            "import veilog",
            "",
            f"log = veilog.read({log!r}{read})",
            f"release = veilog.release({', '.join(['log', repr(self.method.name), *words])})",
            f"release.save({target!r})",
        ]
        return "\n".join(lines)


def _lazy_maker(place: str) -> Callable[..., Any]:
    """Return a function of a module that knows requests, loaded when first needed."""
    module, _, name = place.partition(":")
    return cast("Callable[..., Any]", getattr(importlib.import_module(f"veilog.releasing.{module}"), name))


def _text(value: Fraction) -> str:
    """Return a number as exact text, as a decimal where it is one."""
    decimal = exact(value)
    return decimal if Fraction(decimal) == value else str(value)


def _short(end: str) -> str:
    """Return the date alone, if a day begins then."""
    return end.removesuffix("+00:00").removesuffix("T00:00:00")


def _option_values(name: str, value: Any) -> list[str]:
    """Return the values of an option as the command takes them; several if repeated."""
    if isinstance(value, dict):
        return [f"{of}={_values(some)}" for of, some in value.items()]
    if not isinstance(value, list):
        return [str(value)]
    if name == "prior":
        return value
    if name == "rules":
        return ["rules.json"]
    if name == "window":
        return ["..".join(_short(end) for end in value)]
    return [f"@{name}.txt" if any("," in text for text in value) else ",".join(value)]


def _values(values: list[Any]) -> str:
    if any(isinstance(value, str) for value in values):
        return "|".join(values)
    return "..".join(map(end_of_range, values))


def end_of_range(value: float | str) -> str:
    """Return a number that is read as this one, with no digit less."""
    return repr(float(value)).removesuffix(".0")


def options_in(kind: type[ReleaseRequest]) -> tuple[dict[str, Option], dict[str, Option]]:
    """Return all options of a request by name, and those that alone make their field."""
    hints = get_type_hints(kind, include_extras=True)
    every: dict[str, Option] = {}
    alone: dict[str, Option] = {}
    for field in fields(kind):
        for option in (note for note in get_args(hints[field.name])[1:] if isinstance(note, Option)):
            if option.name:
                every[option.name] = option
                alone |= {option.name: option} if option.read is not None else {}
                continue
            declared = get_args(hints[field.name])[0]
            found = parameter_of(field.name, Annotated[declared, option.help], field.default)
            named = replace(option, name=field.name, kind=found.kind, default=field.default, choices=found.choices)
            every[field.name] = alone[field.name] = named
    return every, alone


OPTIONS, _ALONE = options_in(ReleaseRequest)
_BEYOND = ("times", "attributes", "attributes_share", "window", "processing", "persons", "person_attributes")
"""Options of the released content beyond variants, as :meth:`Wanted.of` orders them."""


def plan(method: str | Method, **options: Unpack[Keywords]) -> ReleaseRequest:
    """Plan a release by the arguments of :func:`veilog.release` without the log.

    A method that is not registered is given itself. An error that shows without data is raised here. Missing public
    facts (``plan.undeclared``) are refused when a log is given.
    """
    chosen = method if isinstance(method, Method) else method_named(method)
    given = {name: option.default for name, option in OPTIONS.items() if option.keyword}
    told: Mapping[str, Any] = {name: value for name, value in options.items() if name not in given}
    given |= {name: value for name, value in options.items() if name in given}
    check_parameters(chosen, told)
    epsilon, delta, as_published = given["epsilon"], given["delta"], bool(given["as_published"])
    if given["guessing_advantage"] is not None:
        epsilon, told = epsilon_by_advantage(chosen, given["guessing_advantage"], epsilon, delta, told)
    check_certified(chosen, as_published)
    wanted = Wanted.of(*(given[name] for name in _BEYOND))
    declared = facts_declared(given["domain"], given["activities"])
    if wanted:
        check_beyond(chosen, as_published)
    if isinstance(wanted.window, tuple):
        declared = replace(declared, window=wanted.window)
        wanted = replace(wanted, window=declared.window)
    if wanted.times:
        check_window(declared.window)
    settings = chosen.parse(told, beside=given)
    check_privately(chosen, settings, declared, as_published)
    protected = Unit.of(given["unit"], given["max_cases"], given["without_person"])
    if protected is not ONE_CASE:
        check_unit(chosen, as_published)
        check_names(protected, wanted, declared)
    check_persons(protected, wanted)
    request = ReleaseRequest(
        method=chosen,
        settings=settings,
        epsilon=Fraction(0),
        declared=declared,
        unit=protected,
        wanted=wanted,
        prior=checked_prior(chosen, given["prior"], given["prior_map"], as_published, events=bool(wanted)),
        **{name: option.parse(given[name]) for name, option in _ALONE.items()},
    )
    allowed = request.allow_no_protection
    eps, failure = checked_budget(chosen, epsilon, delta, uses_delta=any(request.uses), allow_no_protection=allowed)
    protected.of_one_case(eps, failure)  # refused where no budget of one case makes up this one
    if request.remember_units:
        check_remembered(request.subset, protected)
    rules = checked_rules(request.rules, declared, chosen, as_published)
    return replace(request, epsilon=eps, delta=failure, rules=rules)


def _is_usual(name: str, value: object) -> bool:
    usual = OPTIONS[name].default if name in OPTIONS else NotImplemented
    return value is usual or (isinstance(value, str | int | float) and value == usual)


def facts_declared(domain: Domain | None, activities: Iterable[str] | str | None) -> Domain:
    """Return the public facts, with the activities of their own keyword."""
    declared = checked_domain(domain)
    if activities is None:
        return declared
    if declared.activities is not None:
        raise ParameterError("activities-declared-twice", parameter="activities")
    return replace(declared, activities=Domain.of(activities).activities)
