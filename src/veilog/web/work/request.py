"""What somebody asks for in a form, as :func:`veilog.release` takes it, and as the command and Python write it."""

from __future__ import annotations

import datetime
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from veilog.errors import ParameterError, UndeclaredError
from veilog.methods import Method, Parameter, method_named
from veilog.privacy.account.accounting import parse_epsilon
from veilog.privacy.domain import FROM_LOG, PRIVATELY, Domain, Window
from veilog.releasing.plan import LARGEST_UNASKED, Plan, plan
from veilog.report.explorer import clean

__all__ = ["FIELDS", "WEAK", "Asked", "asked_for", "offered"]

FIELDS = (
    *("method", "epsilon", "delta", "as_published", "unit", "max_cases"),
    *("times", "window_start", "window_end", "attributes", "weak_guarantee"),
    *("labels", "activities", "longest", "max_length"),
)
"""The fields of the form; a parameter of a method is called ``p_`` and its name."""

_FILES = ("rules",)
_READING = ("case", "activity", "timestamp", "time_format")
"""Parameters that name a file: in a browser that would be one of the server's, so they are not offered."""
_LONGEST = 20_000
WEAK = "weak"
"""The word to be typed for an epsilon that protects nobody in practice."""
_HOW_TO_SAY: Mapping[str, str] = {
    "activities": "Tick that all labels of the log may be known, or list those that are public, or, with a δ, have "
    "them found privately.",
    "max_length": "Tick that the length of the longest case may be known, or give the longest possible.",
}
"""How a form says that a fact is public."""


@dataclass(frozen=True)
class Asked:
    """A request that has been read: what it asks for may still be refused when it is made."""

    method: Method
    epsilon: str | None
    delta: str
    as_published: bool
    unit: str
    max_cases: int | None
    times: str | None
    window: Window | None
    attributes: tuple[str, ...]
    activities: tuple[str, ...] | Literal["log", "privately"] | None
    max_length: int | Literal["log"] | None
    weak_guarantee: bool
    parameters: dict[str, str]

    @property
    def whole_log(self) -> bool:
        """Whether the events themselves are needed, and not only the variants."""
        more = self.times is not None or bool(self.attributes)
        return more or self.unit not in ("case", "person") or self.method.full_log

    @property
    def domain(self) -> Domain:
        return Domain(self.activities, self.max_length)

    def arguments(self) -> dict[str, Any]:
        """As :func:`veilog.release` takes them, beside the log and the method."""
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "as_published": self.as_published,
            "domain": self.domain,
            "unit": self.unit,
            "max_cases": self.max_cases,
            "times": self.times,
            "window": self.window,
            "attributes": list(self.attributes) or None,
            "weak_guarantee": self.weak_guarantee,
            **self.parameters,
        }

    def check(self) -> None:
        """Refuse, in the user's words, what can be seen to be wrong without any data."""
        if self.epsilon is not None and parse_epsilon(self.epsilon) > LARGEST_UNASKED and not self.weak_guarantee:
            raise ParameterError(
                f"An ε of {self.epsilon} protects nobody in practice: who is in the log can nearly be read off the "
                "release.",
                parameter="weak_guarantee",
                advice=f"Take 2 or less; or, if that is what you want, type the word {WEAK} below ε.",
            )
        if self.activities == PRIVATELY and self.delta == "0":
            raise ParameterError(
                "Finding the labels privately needs a δ above 0.",
                parameter="delta",
                advice="Take less than one over the number of cases, e.g. 1e-6.",
            )
        if not (self.as_published or self.method.certified):
            raise ParameterError(
                f"Method {self.method.name!r} has no certified release.",
                parameter="as_published",
                advice="Tick “as published” to take it as its paper has it, or choose another method.",
            )
        _ = self.plan

    @property
    def plan(self) -> Plan:
        """The request as a plan."""
        return plan(self.method.name, **self.arguments())

    @property
    def undeclared(self) -> str | None:
        """What has to be said to be public before the method can be asked to release anything, in words; or None."""
        facts = self.plan.undeclared
        if not facts:
            return None
        return " ".join([UndeclaredError(self.method.name, facts).problem, *(_HOW_TO_SAY[fact] for fact in facts)])

    def command(self, log: str, columns: Mapping[str, str], seed: int | None) -> str:
        """The command that does the same."""
        words = ["veilog", "release", _plain(log)[:200], "release.xes", "--method", self.method.name]
        pairs: list[tuple[str, Any]] = [
            ("--epsilon", self.epsilon),
            ("--delta", None if self.delta == "0" else self.delta),
            ("--unit", None if self.unit == "case" else self.unit),
            ("--max-cases", self.max_cases),
            ("--times", self.times),
            ("--window", None if self.window is None else "..".join(end.date().isoformat() for end in self.window)),
            ("--attributes", ",".join(self.attributes) or None),
            ("--activities", _one_option(self.activities) if isinstance(self.activities, tuple) else self.activities),
            ("--max-length", self.max_length),
            ("--seed", seed),
        ]
        pairs += [(f"--{role.replace('_', '-')}", columns.get(role)) for role in _READING]
        pairs += [("--on", f"{name[3:]}={policy}") for name, policy in columns.items() if name.startswith("on_")]
        for option, value in pairs:
            words += [] if value is None else [option, _plain(str(value))]
        for name, value in self.parameters.items():
            words += ["-p", f"{name}={_plain(value)}"]
        words += ["--weak-guarantee"] if self.weak_guarantee else []
        return shlex.join(words + (["--as-published"] if self.as_published else []))

    def python(self, log: str, columns: Mapping[str, str], seed: int | None) -> str:
        """The same in Python."""
        reading = {role: columns[role] for role in _READING if columns.get(role)}
        policies = {name[3:]: policy for name, policy in columns.items() if name.startswith("on_")}
        read = "".join(f", {name}={_plain(value)!r}" for name, value in reading.items())
        read += f", policies={policies!r}" if policies else ""
        given = {name: value for name, value in self.arguments().items() if value not in (None, "0", False)}
        del given["domain"]
        if given["unit"] == "case":
            del given["unit"]
        lines = [
            *([] if self.window is None else ["import datetime", ""]),
            "import veilog",
            "",
            f"log = veilog.read({_plain(log)[:200]!r}{read})",
        ]
        words = [f"{name}={value!r}" for name, value in given.items()]
        if self.activities is not None or self.max_length is not None:
            words.append(f"domain=veilog.Domain({self.activities!r}, {self.max_length!r})")
        words += [] if seed is None else [f"seed={seed}"]
        lines.append(f"release = veilog.release({', '.join(['log', repr(self.method.name), *words])})")
        return "\n".join([*lines, 'release.save("release.xes")'])


def offered(method: Method) -> tuple[Parameter, ...]:
    """The parameters of a method that can be given in a browser."""
    return tuple(parameter for parameter in method.parameters if parameter.name not in _FILES)


def asked_for(form: Mapping[str, Any]) -> Asked:
    """Read a form; :class:`ParameterError` for what cannot be meant. Empty fields count as not given."""
    given = {str(name): str(value).strip() for name, value in form.items()}
    if any(len(value) > _LONGEST for value in given.values()):
        raise ParameterError("A field of the form is far too long.")
    given = {name: value for name, value in given.items() if value}
    method = method_named(given.get("method", ""))
    parameters = {name[2:]: value for name, value in given.items() if name.startswith("p_")}
    for name, value in parameters.items():
        if name in _FILES or (name == "query_parameters" and any(file in value for file in _FILES)):
            raise ParameterError(
                "Rules in a file can be given on the command line only.", parameter=name, advice="Leave them out."
            )
    method.parse(parameters)
    free = not method.takes_epsilon
    published = given.get("as_published", "") not in ("", "0", "false", "no")
    asked = Asked(
        method=method,
        epsilon=None if free else _number(given.get("epsilon")),
        delta="0" if free else _number(given.get("delta")) or "0",
        as_published=published,
        unit=given.get("unit", "case"),
        max_cases=_whole(given, "max_cases"),
        times=_number(given.get("times")),
        window=_window(given.get("window_start"), given.get("window_end")),
        attributes=_listed(given.get("attributes", "")),
        activities=_labels(given),
        max_length=_longest(given),
        weak_guarantee=_is_weak(given.get("weak_guarantee", "")),
        parameters=parameters,
    )
    asked.check()
    return asked


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


def _one_option(names: tuple[str, ...]) -> str:
    """As --activities takes them; names with commas need a file."""
    return "@activities.txt" if any("," in name for name in names) else ",".join(names)


def _plain(text: str) -> str:
    """Text that stands on a page, and in a shell, on one line."""
    return clean(text)
