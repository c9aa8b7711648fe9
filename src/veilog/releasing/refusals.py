"""Refusals of a plan by its method and its options, before any data is seen."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from veilog.errors import ParameterError
from veilog.methods import METHODS, Method, Settings
from veilog.methods._events.assemble import Wanted
from veilog.privacy.account.budgets import Number, parse_delta, parse_epsilon
from veilog.privacy.account.guarantee import STRENGTHS, up
from veilog.privacy.account.guessing_advantage import epsilon_of, worth
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


def protects_nobody(epsilon: Fraction, delta: Fraction) -> bool:
    """Return True if a budget for one unit protects no unit in practice, for any log."""
    return worth((epsilon, delta)) == STRENGTHS[-1]


def checked_budget(
    method: Method, epsilon: Number | None, delta: Number, *, uses_delta: bool, allow_no_protection: bool
) -> tuple[Fraction, Fraction]:
    """Return the exact epsilon and delta; refused if they do not fit the method."""
    failure = parse_delta(delta)
    if not method.takes_epsilon:
        if epsilon is not None or failure:
            raise ParameterError("method-epsilon-not-taken", parameter="epsilon", name=method.name)
        return Fraction(0), Fraction(0)
    if epsilon is None:
        raise ParameterError("method-epsilon-missing", parameter="epsilon", name=method.name)
    eps = parse_epsilon(epsilon)
    if protects_nobody(eps, failure) and not allow_no_protection:
        given = f"epsilon = {up(eps)}" + (f" and delta = {up(failure)}" if failure else "")
        raise ParameterError("protection-none-in-practice", parameter="epsilon", given=given)
    if method.needs_delta and failure == 0:
        raise ParameterError("method-delta-missing", parameter="delta", name=method.name)
    if failure and not uses_delta:
        raise ParameterError("method-delta-not-needed", parameter="delta", name=method.name)
    return eps, failure


def epsilon_by_advantage(
    method: Method, advantage: Number, epsilon: Number | None, delta: Number, parameters: Mapping[str, Any]
) -> tuple[Number | None, Mapping[str, Any]]:
    """Return the epsilon of a guessing advantage, or the parameters with it.

    The latter is for methods that have such a parameter.
    """
    if any(parameter.name == "guessing_advantage" for parameter in method.parameters):
        return epsilon, {**parameters, "guessing_advantage": advantage}
    if not method.takes_epsilon:
        raise ParameterError("method-budget-not-taken", parameter="guessing_advantage", name=method.name)
    if epsilon is not None:
        raise ParameterError("epsilon-and-guessing-advantage", parameter="guessing_advantage")
    return epsilon_of(advantage, delta=delta), parameters


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
