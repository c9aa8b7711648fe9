"""A plan: a release that was asked for, with all that can be refused without the data refused.

Method, settings, budget, whom it protects, what is public and what is released beyond variants: read once, from Python,
the command, a form or JSON, and from then on passed as one value.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Unpack

from veilog._notebook import card, facts, paragraph
from veilog.errors import ParameterError
from veilog.logs.files import AnyLog, as_log
from veilog.logs.made_up.twins import Sizes
from veilog.logs.stored.store import StoredLog
from veilog.methods import Method, Settings, method_named
from veilog.methods._events.assemble import Wanted
from veilog.methods._events.times.calendar import check as check_window
from veilog.methods.method import Progress
from veilog.privacy.account.accounting import Number, parse_delta, parse_epsilon
from veilog.privacy.account.figures import up
from veilog.privacy.account.guarantee import Guarantee
from veilog.privacy.account.guessing import epsilon_of
from veilog.privacy.account.strength import STRENGTHS
from veilog.privacy.account.worth import worth
from veilog.privacy.domain import PRIVATELY, Domain, Window, checked_domain
from veilog.privacy.part import Part
from veilog.privacy.unit import ONE_CASE, Unit
from veilog.releasing import spelled
from veilog.releasing.keywords import Keywords
from veilog.releasing.losses import Loss
from veilog.releasing.owner.account import LedgerChoice, chosen_ledger, with_warnings
from veilog.releasing.owner.losses import losses_before
from veilog.releasing.planned import Planned, checked_seed, uses_of
from veilog.releasing.result import Release
from veilog.releasing.run import entry_of, run_plan
from veilog.releasing.trying.expected import TWINS, Expected, expectation
from veilog.releasing.trying.sizes import sizes_of
from veilog.releasing.trying.trial import tried


class Plan(Planned):
    """A release that was asked for; :func:`plan` makes one. It holds nothing of any log."""

    def __repr__(self) -> str:
        said = "".join(f", {name}={value!r}" for name, value in self.arguments().items())
        return f"Plan({self.method.name}{said})"

    def _repr_html_(self) -> str:
        """Return what is asked for, and what it costs at most."""
        said = facts([("method", self.method.title), *((name, str(value)) for name, value in self.arguments().items())])
        return card(f"Plan: {self.method.name}", said, paragraph(self.cost.in_words(), "s"))

    @cached_property
    def cost(self) -> Guarantee:
        """What it will guarantee, as an upper bound, from a dry run on a small made-up log; no data are touched."""
        return tried(self)

    def expected(
        self,
        sizes: Sizes | None = None,
        *,
        twins: int = TWINS,
        purposes: Iterable[str] = (),
        owner_only: bool = False,
        progress: Progress | None = None,
        **declared: Any,
    ) -> Expected:
        """Return how similar its release can be expected to be, from releases of made-up twins; no data are touched.

        The sizes are declared (``cases=1000, length=14``, and if they are known ``activities``, ``variants`` and
        ``frequent``, the share of the cases that have the most frequent variant), or found by :func:`veilog.twin`.
        ``owner_only`` marks sizes that were read off the log itself: what follows from them must not be published.
        """
        alphabet, said = self.declared.alphabet, declared.get("activities")
        if alphabet is not None and said not in (None, len(alphabet)):
            raise ParameterError(
                f"The plan declares {len(alphabet)} activities, so there are not {said}.",
                parameter="activities",
                advice="Leave the number away; or plan with activities='log', of which nobody knows how many they are.",
            )
        known = sizes_of(**declared) if sizes is None else replace(sizes, **declared)
        return expectation(self, known, twins=twins, purposes=purposes, owner_only=owner_only, progress=progress)

    def losses(self, log: AnyLog | StoredLog) -> tuple[Loss, ...]:
        """Return what a release would leave out of a log, before anything is asked: declared activities that it does
        not have, and more than 5 % of its events, activities or cases. Confidential: computed from the raw log."""
        held = as_log(log)
        return losses_before(held if self.part is None else self.part.of_log(held), self)

    def run(
        self,
        log: AnyLog | StoredLog,
        *,
        ledger: LedgerChoice = None,
        progress: Progress | None = None,
    ) -> Release:
        """Release a log as planned, and enter that in a ledger, as :func:`veilog.release` does; it may be refused."""
        held = as_log(log)
        kept = chosen_ledger(ledger, seeded=self.seed is not None, progress=progress)
        released = run_plan(self, held, ledger=kept, progress=progress)
        return with_warnings(released, held, entry_of(self) if ledger is False and self.seed is None else None)

    def command(self, log: str = "LOG", target: str = "RELEASE.xes", options: Iterable[tuple[str, str]] = ()) -> str:
        """Return the command that does the same; ``options`` say how the log is read; one may come twice."""
        return spelled.as_command(self, log, target, options)

    def python(self, log: str = "LOG", target: str = "RELEASE.xes", reading: Mapping[str, Any] | None = None) -> str:
        """Return the Python lines that do the same; ``reading`` are further arguments of ``veilog.read``."""
        return spelled.as_python(self, log, target, reading or {})

    def arguments(self) -> dict[str, Any]:
        """Return what makes this plan beside its method, without what is as usual; numbers are exact texts."""
        return spelled.arguments(self)

    def to_json(self) -> dict[str, Any]:
        """Return the plan as JSON, which :meth:`from_json` reads."""
        return {"method": self.method.name, **self.arguments()}

    @staticmethod
    def from_json(values: Mapping[str, Any]) -> Plan:
        """Return the plan that :meth:`to_json` wrote; it is checked as any other."""
        return plan(**spelled.read_back(values))


def plan(
    method: str,
    *,
    epsilon: Number | None = None,
    delta: Number = 0,
    as_published: bool = False,
    seed: int | None = None,
    domain: Domain | None = None,
    activities: Iterable[str] | str | None = None,
    unit: str = "case",
    max_cases: int | None = None,
    unnamed: str | None = None,
    times: Number | None = None,
    window: Window | str | None = None,
    processing: bool = False,
    attributes: Iterable[str] | None = None,
    attributes_share: Number | None = None,
    guessing_advantage: Number | None = None,
    allow_no_protection: bool = False,
    part: Part | str | None = None,
    remember_units: bool = False,
    **parameters: Unpack[Keywords],
) -> Plan:
    """Plan a release: the arguments are those of :func:`veilog.release`, but for the log.

    What can be seen to be wrong without data is refused here. What is not said yet about public facts
    (``plan.undeclared``) is refused when a log is given.
    """
    chosen = method_named(method)
    told = _one_by_one(parameters)
    if guessing_advantage is not None:
        epsilon, told = _by_advantage(chosen, guessing_advantage, epsilon, delta, told)
    _check_certified(chosen, as_published)
    wanted = Wanted.of(times, attributes, attributes_share, window, processing)
    declared = facts_declared(domain, activities)
    if wanted:
        _check_beyond(chosen, as_published)
    if isinstance(wanted.window, tuple):
        declared = replace(declared, window=wanted.window)
        wanted = replace(wanted, window=declared.window)
    if wanted.times:
        check_window(declared.window)
    _check_length(chosen, told)
    settings = chosen.parse(told, beside=inspect.signature(plan).parameters)
    _check_privately(chosen, settings, declared, as_published)
    protected = Unit.of(unit, max_cases, unnamed)
    if protected is not ONE_CASE:
        _check_unit(chosen, as_published)
        _check_names(protected, wanted, declared)
    of_use = any(uses_of(chosen, settings, declared, wanted))
    eps, failure = _budget(chosen, epsilon, delta, of_use, allow_no_protection)
    protected.of_one_case(eps, failure)  # refused where no budget of one case makes up this one
    return Plan(
        method=chosen,
        settings=settings,
        epsilon=eps,
        delta=failure,
        as_published=as_published,
        declared=declared,
        unit=protected,
        wanted=wanted,
        seed=checked_seed(seed),
        allow_no_protection=allow_no_protection,
        part=part if part is None or isinstance(part, Part) else Part.of(part),
        remember_units=_remembered(remember_units, part, protected),
    )


def as_planned(method: str | Plan, **given: Any) -> Plan:
    """Return the plan that these arguments make, or the one that was made before; :class:`ParameterError` where it is
    given beside arguments, which it would not heed."""
    if not isinstance(method, Plan):
        return plan(method, **given)
    usual = inspect.signature(plan).parameters
    beside = [name for name, value in given.items() if name not in usual or not _is_usual(value, usual[name].default)]
    if beside:
        raise ParameterError(
            f"A plan says all of this itself, so {', '.join(beside)} beside it would not be heeded.",
            parameter=beside[0],
            advice="Leave that away, or make a plan that says it: veilog.plan(...).",
        )
    return method


def _remembered(remember_units: bool, part: Part | str | None, unit: Unit) -> bool:
    """Return whether the ledger is to remember the units of a part, or refuse where they have no names."""
    if not remember_units:
        return False
    if part is None:
        raise ParameterError(
            "--remember-units leaves out units that another part had, and no part is named.",
            parameter="remember_units",
            advice="Add --part or --since, or leave it out.",
        )
    if unit.name != "case" and (unit.column is None or unit.unnamed == "own"):
        raise ParameterError(
            "--remember-units needs the names of the persons, and not every person that counts has one.",
            parameter="remember_units",
            advice="Name the column of the person (--unit COLUMN), and leave out --unnamed own.",
        )
    return True


def _is_usual(value: object, usual: object) -> bool:
    return value is usual or (isinstance(value, str | int | float) and value == usual)


def facts_declared(domain: Domain | None, activities: Iterable[str] | str | None) -> Domain:
    """Return the public facts, with the activities of their own keyword."""
    declared = checked_domain(domain)
    if activities is None:
        return declared
    if declared.activities is not None:
        raise ParameterError(
            "The activities are declared twice, by themselves and in the domain.",
            parameter="activities",
            advice="Give one of them.",
        )
    return replace(declared, activities=Domain.of(activities).activities)


def _one_by_one(parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the parameters of a method, refusing a mapping of them all."""
    whole = parameters.get("parameters")
    if whole is None:
        return parameters
    named = ", ".join(f"{name}={value!r}" for name, value in whole.items()) if isinstance(whole, Mapping) else "p=1"
    raise ParameterError(
        "The parameters of a method are given one by one, not as parameters=.",
        parameter="parameters",
        advice=f"Give them as keywords: veilog.release(log, method, {named}).",
    )


def _check_length(method: Method, told: Mapping[str, Any]) -> None:
    """Refuse a bound on the length as a setting where the method has none of this name: the public one was meant."""
    if "max_length" in told and not any(parameter.name == "max_length" for parameter in method.parameters):
        raise ParameterError(
            f"Method {method.name!r} has no parameter 'max_length'.",
            parameter="max_length",
            advice=f"The public bound on the length of a trace is --max-length {told['max_length']}.",
        )


def _budget(
    method: Method, epsilon: Number | None, delta: Number, delta_is_of_use: bool, allow_no_protection: bool
) -> tuple[Fraction, Fraction]:
    """The epsilon and delta asked for, exactly, if they fit the method."""
    failure = parse_delta(delta)
    if not method.takes_epsilon:
        if epsilon is not None or failure:
            raise ParameterError(
                f"Method {method.name!r} takes no epsilon: its guarantee is another one.", parameter="epsilon"
            )
        return Fraction(0), Fraction(0)
    if epsilon is None:
        raise ParameterError(
            f"Method {method.name!r} needs an epsilon.",
            parameter="epsilon",
            advice="0.1 to 1 are usual; or give a guessing advantage, e.g. 0.2.",
        )
    eps = parse_epsilon(epsilon)
    if protects_nobody(eps, failure) and not allow_no_protection:
        given = f"epsilon = {up(eps)}" + (f" and delta = {up(failure)}" if failure else "")
        raise ParameterError(
            f"The protection level of {given} is none in practice: who is in the log can nearly be read off the "
            "release.",
            parameter="epsilon",
            advice="Take an epsilon of 2 or less; or say --allow-no-protection if that is what you want.",
        )
    if method.needs_delta and failure == 0:
        raise ParameterError(
            f"Method {method.name!r} needs a delta above 0.",
            parameter="delta",
            advice="Take less than one over the number of cases, e.g. --delta 1e-6.",
        )
    if failure and not delta_is_of_use:
        raise ParameterError(f"Method {method.name!r} needs no delta; it costs epsilon only.", parameter="delta")
    return eps, failure


def protects_nobody(epsilon: Fraction, delta: Fraction) -> bool:
    """Return whether the protection level of a budget, for one case or for one person with all cases that count, is
    none in practice, whatever the log is."""
    return worth((epsilon, delta)) == STRENGTHS[-1]


def _by_advantage(
    method: Method, advantage: Number, epsilon: Number | None, delta: Number, parameters: Mapping[str, Any]
) -> tuple[Number | None, Mapping[str, Any]]:
    """The epsilon that a guessing advantage stands for, or the parameters with it where the method knows it itself."""
    if any(parameter.name == "guessing_advantage" for parameter in method.parameters):
        return epsilon, {**parameters, "guessing_advantage": advantage}
    if not method.takes_epsilon:
        raise ParameterError(
            f"Method {method.name!r} takes neither an epsilon nor a guessing advantage: its guarantee is another one.",
            parameter="guessing_advantage",
        )
    if epsilon is not None:
        raise ParameterError(
            "An epsilon and a guessing advantage are two names for one budget.",
            parameter="guessing_advantage",
            advice="Give one of them.",
        )
    return epsilon_of(advantage, delta=delta), parameters


def _check_privately(method: Method, settings: Settings, declared: Domain, as_published: bool) -> None:
    """Refuse to find activities privately where nothing needs them."""
    if declared.activities == PRIVATELY and (as_published or "activities" not in method.needs(settings)):
        raise ParameterError(
            f"Method {method.name!r} has no use for activities that are found privately"
            + (" as published." if as_published else "."),
            parameter="activities",
            advice="Leave them out, or declare them.",
        )


def _check_certified(method: Method, as_published: bool) -> None:
    """Refuse what is certified of a method that is not."""
    if not (as_published or method.certified):
        raise ParameterError(
            f"Method {method.name!r} has no certified release.",
            parameter="as_published",
            advice="Add --as-published to take it as its paper has it, or take a certified method such as evolve.",
        )


def _check_names(unit: Unit, wanted: Wanted, declared: Domain) -> None:
    """Refuse to look for the values of the column that tells persons: they are names."""
    for name in wanted.attributes:
        if unit.column is None or declared.values_of(name) is not None:
            continue
        if name.removeprefix("case:") == unit.column.removeprefix("case:"):
            raise ParameterError(
                f"{name!r} tells whose a case is, so its values name people.",
                parameter="attributes",
                advice="Leave it out of the attributes; or declare its values, if they are public.",
            )


def _check_unit(method: Method, as_published: bool) -> None:
    """Refuse to protect people where only cases can be protected."""
    if as_published or not method.takes_epsilon:
        raise ParameterError(
            "People with several cases are protected by certified, differentially private releases only.",
            parameter="unit",
            advice="Leave out --as-published." if as_published else "Take a method that has an epsilon.",
        )


def _check_beyond(method: Method, as_published: bool) -> None:
    """Refuse times and attributes where a release cannot have them."""
    if method.full_log or not method.takes_epsilon:
        own = any(parameter.name == "times_share" for parameter in method.parameters)
        raise ParameterError(
            f"Method {method.name!r} releases no variants that times or attributes could be added to.",
            parameter="times",
            advice="Method pripel takes them as its own parameters; see veilog methods."
            if own
            else "Take a method that releases variants, such as evolve.",
        )
    if as_published:
        raise ParameterError(
            "Times and attributes come with certified releases only.",
            parameter="times",
            advice="Leave out --as-published.",
        )
