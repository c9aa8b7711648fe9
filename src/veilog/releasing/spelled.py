"""A plan spelled out: as arguments, as JSON, as a command, as Python. Each makes the same plan again."""

from __future__ import annotations

import datetime
import shlex
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from veilog.errors import InputError
from veilog.methods.settings import in_python
from veilog.privacy.account.figures import exact
from veilog.privacy.domain import Domain, Window
from veilog.releasing.planned import Planned


def arguments(planned: Planned) -> dict[str, Any]:
    """Return what makes this plan beside its method, without what is as usual: numbers as exact text, no objects."""
    method, domain, wanted, unit = planned.method, planned.declared, planned.wanted, planned.unit
    usual = method.settings().to_json()
    settings = {name: value for name, value in planned.settings.to_json().items() if value != usual[name]}
    found: dict[str, Any] = {
        "epsilon": _text(planned.epsilon) if method.takes_epsilon else None,
        "delta": _text(planned.delta) if planned.delta else None,
        "as_published": planned.as_published or None,
        "seed": planned.seed,
        "allow_no_protection": planned.allow_no_protection or None,
        **unit.told,
        "part": None if planned.part is None else str(planned.part),
        "remember_units": planned.remember_units or None,
        "activities": list(domain.activities) if isinstance(domain.activities, tuple) else domain.activities,
        "max_length": domain.max_length,
        "domain": {name: list(values) for name, values in domain.attributes.items()} or None,
        "times": _text(wanted.times) if wanted.times else None,
        "window": wanted.window if wanted.window in (None, "log") else _ends(wanted.window),
        "processing": wanted.processing or None,
        "attributes": list(wanted.attributes) or None,
        "attributes_share": _text(wanted.attributes_share) if wanted.attributes else None,
        "parameters": settings or None,  # apart: one may be called as another argument is, such as max_length
    }
    return {name: value for name, value in found.items() if value is not None}


def _text(value: Fraction) -> str:
    """A number exactly, as a decimal where it is one."""
    decimal = exact(value)
    return decimal if Fraction(decimal) == value else str(value)


def _ends(window: Any) -> list[str]:
    return [end.isoformat() for end in window]


def read_back(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a plan that was written as JSON."""
    given = dict(values)
    try:
        method, ends, attributes = given.pop("method"), given.pop("window", None), given.pop("domain", {})
        parameters = dict(given.pop("parameters", {}))
        declared = Domain.of(given.pop("activities", None), given.pop("max_length", None))
        window: Window | str | None = ends
        if isinstance(ends, list):
            start, end = (datetime.datetime.fromisoformat(text) for text in ends)
            window = start, end
        domain = Domain(declared.activities, declared.max_length, {n: tuple(v) for n, v in attributes.items()})
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"This is no plan of a release: {error!r}.") from error
    return {"method": method, "domain": domain, "window": window, **given, **parameters}


def as_command(planned: Planned, log: str, target: str, options: Iterable[tuple[str, str]]) -> str:
    """Return the command; a list that has commas in its names is a file that has to be made."""
    given = arguments(planned)
    words = ["veilog", "release", log, target, "--method", planned.method.name]
    ends = given.pop("window", None)
    pairs = [
        ("--epsilon", given.pop("epsilon", None)),
        ("--delta", given.pop("delta", None)),
        ("--unit", given.pop("unit", None)),
        ("--max-cases", given.pop("max_cases", None)),
        ("--unnamed", given.pop("unnamed", None)),
        ("--part", given.pop("part", None)),
        ("--times", given.pop("times", None)),
        ("--window", "..".join(_short(end) for end in ends) if isinstance(ends, list) else ends),
        ("--attributes", _listed(given.pop("attributes", None), "attributes")),
        ("--attributes-share", given.pop("attributes_share", None)),
        ("--activities", _listed(given.pop("activities", None), "activities")),
        ("--max-length", given.pop("max_length", None)),
        *(("--domain", f"{name}={_values(values)}") for name, values in given.pop("domain", {}).items()),
        ("--seed", given.pop("seed", None)),
        *options,
    ]
    flags = [
        f"--{name.replace('_', '-')}"
        for name in ("processing", "remember_units", "allow_no_protection", "as_published")
        if given.pop(name, False)
    ]
    for option, value in pairs:
        words += [] if value is None else [option, str(value)]
    for name, value in given.pop("parameters", {}).items():
        words += ["-p", f"{name}={str(value).lower() if isinstance(value, bool) else value}"]
    return shlex.join([*words, *flags])


def _short(end: str) -> str:
    """The date alone, where a day begins."""
    return end.removesuffix("+00:00").removesuffix("T00:00:00")


def _listed(names: list[str] | str | None, what: str) -> str | None:
    if names is None or isinstance(names, str):
        return names
    return f"@{what}.txt" if any("," in name for name in names) else ",".join(names)


def _values(values: list[Any]) -> str:
    if any(isinstance(value, str) for value in values):
        return "|".join(values)
    return "..".join(map(end_of_range, values))


def end_of_range(value: float | str) -> str:
    """Return a number that is read as this one, with no digit less."""
    return repr(float(value)).removesuffix(".0")


def as_python(planned: Planned, log: str, target: str, reading: Mapping[str, Any]) -> str:
    """Return lines that read the log, release it and save the release."""
    given = arguments(planned)
    ends = given.pop("window", None)
    facts = [given.pop("activities", None), given.pop("max_length", None)]
    attributes = given.pop("domain", None)
    parameters = given.pop("parameters", {})
    words = [f"{in_python(name)}={value!r}" for name, value in {**given, **parameters}.items()]
    if isinstance(ends, list):
        inner = ", ".join(f"datetime.datetime.fromisoformat({_short(end)!r})" for end in ends)
        words.append(f"window=({inner})")
    elif ends is not None:
        words.append(f"window={ends!r}")
    if attributes or facts != [None, None]:
        values = {name: tuple(some) for name, some in (attributes or {}).items()}
        last = [repr(values)] if values else []
        words.append(f"domain=veilog.Domain({', '.join([*(repr(_fixed(fact)) for fact in facts), *last])})")
    read = "".join(f", {name}={value!r}" for name, value in reading.items())
    lines = [
        *(["import datetime", ""] if isinstance(ends, list) else []),
        "import veilog",
        "",
        f"log = veilog.read({log!r}{read})",
        f"release = veilog.release({', '.join(['log', repr(planned.method.name), *words])})",
        f"release.save({target!r})",
    ]
    return "\n".join(lines)


def _fixed(fact: Any) -> Any:
    return tuple(fact) if isinstance(fact, list) else fact
