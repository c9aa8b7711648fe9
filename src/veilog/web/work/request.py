"""What somebody asks for in a form: read once, into a plan."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, Literal

from veilog.errors import ParameterError, UndeclaredError
from veilog.methods import Method, Parameter, method_named
from veilog.privacy.account.accounting import parse_epsilon
from veilog.privacy.domain import FROM_LOG, PRIVATELY, Domain, Fact, Window
from veilog.releasing.plan import LARGEST_UNASKED, Plan, plan
from veilog.web.jobs.records import ReleaseRequest

__all__ = ["FIELDS", "WEAK", "asked_for", "offered", "plan_of", "undeclared"]

FIELDS = (
    *("method", "epsilon", "delta", "as_published", "unit", "max_cases"),
    *("times", "window_start", "window_end", "attributes", "weak_guarantee"),
    *("labels", "activities", "longest", "max_length", "part"),
)
"""The fields of the form; a parameter of a method is called ``p_`` and its name."""

_FILES = ("rules",)
"""Parameters that name a file: in a browser that would be one of the server's, so they are not offered."""
_LONGEST = 20_000
WEAK = "weak"
"""The word to be typed for an epsilon that protects nobody in practice."""
_HOW_TO_SAY: Mapping[Fact, str] = {
    "activities": "Tick that all labels of the log may be known, or list those that are public, or, with a δ, have "
    "them found privately.",
    "max_length": "Tick that the length of the longest case may be known, or give the longest possible.",
}
"""How a form says that a fact is public."""


def plan_of(request: ReleaseRequest) -> Plan:
    """Return the plan of a job; where an earlier version kept the form alone, that is read again."""
    return asked_for(request.form) if request.plan is None else Plan.from_json(request.plan)


def undeclared(planned: Plan) -> str | None:
    """What has to be said to be public before the method can be asked to release anything, in words; or None."""
    facts = planned.undeclared
    if not facts:
        return None
    return " ".join([UndeclaredError(planned.method.name, facts).problem, *(_HOW_TO_SAY[fact] for fact in facts)])


def offered(method: Method) -> tuple[Parameter, ...]:
    """The parameters of a method that can be given in a browser."""
    return tuple(parameter for parameter in method.parameters if parameter.name not in _FILES)


def asked_for(form: Mapping[str, Any]) -> Plan:
    """Read a form; :class:`ParameterError` for what cannot be meant. Empty fields count as not given."""
    given = {str(name): str(value).strip() for name, value in form.items()}
    if any(len(value) > _LONGEST for value in given.values()):
        raise ParameterError("A field of the form is far too long.")
    given = {name: value for name, value in given.items() if value}
    method = method_named(given.get("method", ""))
    parameters = _parameters(method, given)
    free = not method.takes_epsilon
    asked: dict[str, Any] = {
        "epsilon": None if free else _number(given.get("epsilon")),
        "delta": "0" if free else _number(given.get("delta")) or "0",
        "as_published": given.get("as_published", "") not in ("", "0", "false", "no"),
        "unit": given.get("unit", "case"),
        "max_cases": _whole(given, "max_cases"),
        "times": _number(given.get("times")),
        "window": _window(given.get("window_start"), given.get("window_end")),
        "attributes": _listed(given.get("attributes", "")) or None,
        "domain": Domain(_labels(given), _longest(given)),
        "weak_guarantee": _is_weak(given.get("weak_guarantee", "")),
        "part": given.get("part"),
    }
    _check(method, asked)
    return plan(method.name, **{**asked, **parameters})


def _parameters(method: Method, given: Mapping[str, str]) -> dict[str, str]:
    parameters = {name[2:]: value for name, value in given.items() if name.startswith("p_")}
    for name, value in parameters.items():
        if name in _FILES or (name == "query_parameters" and any(file in value for file in _FILES)):
            raise ParameterError(
                "Rules in a file can be given on the command line only.", parameter=name, advice="Leave them out."
            )
    method.parse(parameters)
    return parameters


def _check(method: Method, asked: Mapping[str, Any]) -> None:
    """Refuse, in the words of the form, what a plan would refuse in those of the command."""
    epsilon = asked["epsilon"]
    if epsilon is not None and parse_epsilon(epsilon) > LARGEST_UNASKED and not asked["weak_guarantee"]:
        raise ParameterError(
            f"An ε of {epsilon} protects nobody in practice: who is in the log can nearly be read off the release.",
            parameter="weak_guarantee",
            advice=f"Take 2 or less; or, if that is what you want, type the word {WEAK} below ε.",
        )
    if asked["domain"].activities == PRIVATELY and asked["delta"] == "0":
        raise ParameterError(
            "Finding the labels privately needs a δ above 0.",
            parameter="delta",
            advice="Take less than one over the number of cases, e.g. 1e-6.",
        )
    if not (asked["as_published"] or method.certified):
        raise ParameterError(
            f"Method {method.name!r} has no certified release.",
            parameter="as_published",
            advice="Tick “as published” to take it as its paper has it, or choose another method.",
        )


def _number(text: str | None) -> str | None:
    """A decimal comma is a decimal point."""
    return text.replace(",", ".") if text is not None and text.count(",") == 1 and "." not in text else text


def _whole(given: Mapping[str, str], name: str) -> int | None:
    text = given.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise ParameterError(f"{name} must be a whole number, not {text[:40]!r}.", parameter=name)
    return int(text)


def _labels(given: Mapping[str, str]) -> tuple[str, ...] | Literal["log", "privately"] | None:
    """What was said of the labels: which of the three choices, and the list only where none or that one is taken."""
    text = given.get("activities", "")
    said = given.get("labels", text if text in (FROM_LOG, PRIVATELY) else "list")
    if said == FROM_LOG:
        return FROM_LOG
    if said == PRIVATELY:
        return PRIVATELY
    if said != "list":
        raise ParameterError("There is no such choice about the labels.", parameter="labels")
    return _listed(text) if text else None


def _longest(given: Mapping[str, str]) -> int | Literal["log"] | None:
    """A number that was declared counts more than that of the log, because it is no condition of the guarantee."""
    if given.get("max_length", FROM_LOG) == FROM_LOG:
        return FROM_LOG if FROM_LOG in (given.get("longest"), given.get("max_length")) else None
    return _whole(given, "max_length")


def _is_weak(text: str) -> bool:
    if text and text.lower() != WEAK:
        raise ParameterError(
            f"To release at an ε above {LARGEST_UNASKED} the word {WEAK} has to be typed.",
            parameter="weak_guarantee",
            advice="Otherwise leave that field empty.",
        )
    return bool(text)


def _window(start: str | None, end: str | None) -> Window | None:
    if start is None and end is None:
        return None
    try:
        first, last = (datetime.datetime.fromisoformat(text or "") for text in (start, end))
    except ValueError:
        raise ParameterError(
            "The time in which cases start needs two dates.",
            parameter="window",
            advice="Give both, or leave both empty.",
        ) from None
    return first, last


def _listed(text: str) -> tuple[str, ...]:
    """One on each line, or with commas between them where there is one line."""
    lines = text.splitlines() if "\n" in text else text.split(",")
    return tuple(name.strip() for name in lines if name.strip())
