"""Refusals of a plan by its method and its options, before any data is seen."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from veilog.errors import ParameterError
from veilog.methods import METHODS, Method, Settings
from veilog.methods._events.assemble import Wanted
from veilog.privacy.domain import PRIVATELY, Domain
from veilog.privacy.partition import Partition
from veilog.privacy.unit import Unit
from veilog.releasing.prior import PriorChoice, PublicPrior
from veilog.rules.checks import check as check_rules
from veilog.rules.rules import ReleaseRules


def check_parameters(method: Method, told: Mapping[str, Any]) -> None:
    """Refuse settings as one mapping, and a length bound in place of the public one."""
    whole = told.get("parameters")
    if whole is not None:
        named = ", ".join(f"{name}={value!r}" for name, value in whole.items()) if isinstance(whole, Mapping) else "p=1"
        raise ParameterError("plan-parameters-as-one", parameter="parameters", named=named)
    if "max_length" in told and not any(parameter.name == "max_length" for parameter in method.parameters):
        raise ParameterError(
            "method-without-max-length", parameter="max_length", name=method.name, told=told["max_length"]
        )


def check_privately(method: Method, settings: Settings, declared: Domain, as_published: bool) -> None:
    """Refuse to find activities privately where nothing needs them."""
    if declared.activities == PRIVATELY and (as_published or "activities" not in method.needs(settings)):
        code = "activities-privately-as-published" if as_published else "activities-privately-unneeded"
        raise ParameterError(code, parameter="activities", name=method.name)


def check_certified(method: Method, as_published: bool) -> None:
    """Refuse a certified release of a method that has none."""
    if not (as_published or method.certified):
        raise ParameterError("method-not-certified", parameter="as_published", name=method.name)


def check_names(unit: Unit, wanted: Wanted, declared: Domain) -> None:
    """Refuse to look for values of the column that identifies persons: their names."""
    for name in wanted.attributes:
        if unit.column is None or declared.values_of(name) is not None:
            continue
        if name.removeprefix("case:") == unit.column.removeprefix("case:"):
            raise ParameterError("attribute-names-people", parameter="attributes", name=name)


def check_persons(unit: Unit, wanted: Wanted) -> None:
    """Refuse made-up persons that no release can have.

    They need a column of persons with several cases each, whose names are not released as well.
    """
    if not wanted.persons:
        return
    if unit.column is None:
        raise ParameterError("persons-without-column", parameter="persons")
    if unit.most_cases == 1:
        raise ParameterError("persons-of-one-case", parameter="max_cases")
    for name in wanted.attributes:
        if name.removeprefix("case:") == unit.column.removeprefix("case:"):
            raise ParameterError("persons-named-twice", parameter="attributes", name=name)


def check_unit(method: Method, as_published: bool) -> None:
    """Refuse to protect people where only cases can be protected."""
    if as_published or not method.takes_epsilon:
        raise ParameterError(
            "unit-with-as-published" if as_published else "unit-method-not-private",
            parameter="unit",
        )


def check_beyond(method: Method, as_published: bool) -> None:
    """Refuse times and attributes where a release cannot have them."""
    if method.full_log or not method.takes_epsilon:
        own = any(parameter.name == "times_share" for parameter in method.parameters)
        raise ParameterError(
            "method-extras-of-its-own" if own else "method-extras-not-possible",
            parameter="times",
            name=method.name,
        )
    if as_published:
        raise ParameterError("extras-not-certified", parameter="times")


def check_remembered(subset: Partition | None, unit: Unit) -> None:
    """Refuse to remember units in the ledger without a subset or without names."""
    if subset is None:
        raise ParameterError("unit-memory-without-subset", parameter="remember_units")
    if unit.name != "case" and (unit.column is None or unit.without_person == "own"):
        raise ParameterError("unit-memory-without-names", parameter="remember_units")


def checked_rules(
    rules: ReleaseRules | None, declared: Domain, method: Method, as_published: bool
) -> ReleaseRules | None:
    """Return the rules; refuse contradictory ones, or if the method cannot obey them.

    They may contradict each other or the public facts.
    """
    if rules is None:
        return None
    if as_published or method.full_log or not method.takes_epsilon:
        able = ", ".join(name for name, one in METHODS.items() if one.takes_epsilon and not one.full_log)
        raise ParameterError("method-without-rules", parameter="rules", name=method.name, able=able)
    if declared.activities == PRIVATELY:
        raise ParameterError("rules-activities-privately", parameter="activities")
    return check_rules(rules, declared.alphabet, declared.longest, declared.attributes)


def checked_prior(
    method: Method, given: PriorChoice | None, mapping: str | Path | None, as_published: bool, *, events: bool
) -> PublicPrior | None:
    """Return the prior; refused where the method has no use for it."""
    if given and (as_published or not method.takes_prior):
        able = ", ".join(name for name, one in METHODS.items() if one.takes_prior)
        raise ParameterError("method-without-prior", parameter="prior", name=method.name, able=able)
    return PublicPrior.of(given or None, mapping, events=events)
