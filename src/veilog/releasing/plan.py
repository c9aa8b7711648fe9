"""What a release may spend and whom it protects: checked before anything is asked, in the user's words."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from veilog.errors import ParameterError, UndeclaredError
from veilog.logs.eventlog import EventLog
from veilog.logs.stored.store import StoredLog
from veilog.logs.variants import Variants
from veilog.methods.method import Method
from veilog.methods.settings import Settings
from veilog.privacy.account.accounting import Number, parse_delta, parse_epsilon
from veilog.privacy.account.figures import up
from veilog.privacy.account.guessing import epsilon_of
from veilog.privacy.domain import PRIVATELY, Domain
from veilog.privacy.unit import Unit

__all__ = ["LARGEST_UNASKED", "budget", "by_advantage", "check_beyond", "check_unit", "public_facts"]

LARGEST_UNASKED = 10
"""A larger epsilon has to be asked for in words: odds change by a factor of up to 22,000 at this one."""


def budget(
    method: Method, epsilon: Number | None, delta: Number, delta_is_of_use: bool, weak_guarantee: bool = False
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
    if eps > LARGEST_UNASKED and not weak_guarantee:
        raise ParameterError(
            f"epsilon = {up(eps)} protects nobody in practice: who is in the log can nearly be read off the release.",
            parameter="epsilon",
            advice="Take 2 or less; or say --weak-guarantee (weak_guarantee=True) if that is what you want.",
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


def by_advantage(
    method: Method, advantage: Number, epsilon: Number | None, delta: Number, parameters: dict[str, Any]
) -> tuple[Number | None, dict[str, Any]]:
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


def public_facts(method: Method, settings: Settings, declared: Domain, as_published: bool) -> Domain:
    """The public facts with all that the method needs, or a refusal that says how to give them.

    As published, papers take the activities and lengths from the log; that is a condition of what is then derived.
    """
    needed = method.needs(settings)
    if declared.activities == PRIVATELY and ("activities" not in needed or as_published):
        raise ParameterError(
            f"Method {method.name!r} has no use for activities that are found privately"
            + (" as published." if as_published else "."),
            parameter="activities",
            advice="Leave them out, or declare them.",
        )
    if as_published:
        return declared.taken_from_log(("activities", "max_length"))
    lacking = declared.lacks(needed)
    if lacking:
        raise UndeclaredError(method.name, lacking)
    return declared


def check_unit(method: Method, log: EventLog | StoredLog | Variants, unit: Unit, as_published: bool) -> None:
    """Refuse to protect people where only cases can be protected."""
    if as_published or not method.takes_epsilon:
        raise ParameterError(
            "People with several cases are protected by certified, differentially private releases only.",
            parameter="unit",
            advice="Leave out --as-published." if as_published else "Take a method that has an epsilon.",
        )
    if isinstance(log, Variants) and unit.column is not None:
        raise ParameterError(
            f"Whose cases they are ({unit.column!r}) is known of an event log only, not of variants.",
            parameter="log",
            advice="Give the log itself, as veilog.read() returns it.",
        )


def check_beyond(method: Method, log: EventLog | StoredLog | Variants, as_published: bool) -> None:
    """Refuse times and attributes where a release cannot have them."""
    if method.full_log or not method.takes_epsilon:
        raise ParameterError(
            f"Method {method.name!r} releases no variants that times or attributes could be added to.",
            parameter="times",
            advice="Method pripel takes them as its own parameters; see veilog methods."
            if method.name in ("pripel", "libra")
            else "Take a method that releases variants, such as evolve.",
        )
    if as_published:
        raise ParameterError(
            "Times and attributes come with certified releases only.",
            parameter="times",
            advice="Leave out --as-published.",
        )
    if isinstance(log, Variants):
        raise ParameterError(
            "Times and attributes need an event log; variants have none.",
            parameter="log",
            advice="Give the log itself, as veilog.read() returns it.",
        )
