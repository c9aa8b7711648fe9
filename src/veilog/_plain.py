"""Dataclasses as plain JSON values: for programs, and exactly for veilog's files.

:func:`to_json` writes results for programs. A class declares next to its fields where that is not simply all of them.
:func:`to_plain` is for files that outlive a run (guarantees, configurations), and :func:`from_plain` reads them. There,
exact fractions stay exact, and a value of another type than the class declares is refused. A class whose file has
another form than its fields names the dataclass of that form (``Plain``). It also has both conversions (``plain``,
``of_plain``).
"""

from __future__ import annotations

import dataclasses
import math
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")

_LONGEST_FRACTION = 4000


class Misfit(ValueError):
    """A plain value does not fit the type it should have."""


@dataclass(frozen=True)
class InJson:
    """Form of a field in JSON: ``epsilon: Annotated[Fraction, InJson(as_=float)]``."""

    as_: Callable[[Any], Any] | None = None
    """Function whose result replaces the value."""
    name: str | None = None
    """Name in place of the field's."""
    left_out: Literal["never", "always", "at its default"] = "never"
    then: tuple[str, ...] = ()
    """Properties, and methods without arguments, whose values follow the field."""


class ToJson:
    """A dataclass whose fields go to JSON in order, in the form of :class:`InJson`."""

    def to_json(self) -> dict[str, object]:
        """Return the JSON form: dicts, lists, texts, numbers, booleans and None."""
        told: dict[str, object] = {}
        for field, rule in _rules(type(self)):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if rule.left_out == "never" or (rule.left_out == "at its default" and value != field.default):
                told[rule.name or field.name] = to_json(value if rule.as_ is None else rule.as_(value))
            for name in rule.then:
                more = getattr(self, name)
                told[name] = to_json(more() if callable(more) else more)
        return told


def to_json(value: Any) -> Any:
    """Return a value for programs; a class with its own ``to_json`` decides itself."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        if hasattr(value, "to_json"):
            return value.to_json()
        return {field.name: to_json(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {key: to_json(item) for key, item in value.items()}
    return _simple(value, to_json)


def to_plain(value: Any) -> Any:
    """Return a value for :func:`from_plain`; a fraction is text such as ``1/3``."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        if hasattr(value, "Plain"):
            return to_plain(value.plain())  # type: ignore[attr-defined]
        hints = _hints(type(value))
        return {
            field.name: _encode(hints[field.name], getattr(value, field.name)) for field in dataclasses.fields(value)
        }
    return _simple(value, to_plain)


def _simple(value: Any, inside: Callable[[Any], Any]) -> Any:
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, tuple | list):
        return [inside(item) for item in value]
    if isinstance(value, Mapping) and all(isinstance(name, str) for name in value):
        return {name: inside(item) for name, item in value.items()}
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise TypeError(f"{type(value).__name__} has no plain form")


@lru_cache(maxsize=256)
def _rules(kind: type) -> tuple[tuple[dataclasses.Field[Any], InJson], ...]:
    """Return the fields of a class, each with its form in JSON."""
    hints = get_type_hints(kind, include_extras=True)
    fields = dataclasses.fields(kind)
    said = ((field, [rule for rule in get_args(hints[field.name]) if isinstance(rule, InJson)]) for field in fields)
    return tuple((field, rules[0] if rules else InJson()) for field, rules in said)


@lru_cache(maxsize=256)
def _hints(kind: type) -> Mapping[str, Any]:
    """Return the types that a class declares, cached, as finding them is slow."""
    return get_type_hints(kind)


def _encode(hint: Any, value: Any) -> Any:
    """Return a plain value; an int where a float is declared becomes a float."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    if whole and hint is not int and float in (hint, *get_args(hint)) and int not in get_args(hint):
        return float(value)
    return to_plain(value)


def from_plain(kind: type[T], value: Any) -> T:
    """Return the dataclass of a plain value.

    :class:`Misfit` if a field is missing, unknown or of another type.
    """
    if hasattr(kind, "Plain"):
        return kind.of_plain(from_plain(kind.Plain, value))  # type: ignore[attr-defined,no-any-return]
    hints = _hints(kind)  # type: ignore[arg-type]
    fields = dataclasses.fields(kind)  # type: ignore[arg-type]
    names = {field.name for field in fields}
    if not isinstance(value, dict) or value.keys() != names:
        raise Misfit(f"not a {kind.__name__}")
    try:
        return kind(**{name: _decode(hints[name], item) for name, item in value.items()})
    except ValueError as error:
        raise Misfit(f"not a {kind.__name__}: {error}") from None


def _decode(hint: Any, value: Any) -> Any:
    origin = get_origin(hint)
    if origin is Literal:
        if value in get_args(hint) and any(type(value) is type(option) for option in get_args(hint)):
            return value
    elif origin in (Union, types.UnionType):
        for option in get_args(hint):
            try:
                return _decode(option, value)
            except Misfit:
                continue
    elif origin is tuple and isinstance(value, list):
        parts = get_args(hint)
        if len(parts) == 2 and parts[1] is Ellipsis:
            return tuple(_decode(parts[0], item) for item in value)
        if len(parts) == len(value):
            return tuple(_decode(part, item) for part, item in zip(parts, value, strict=True))
    elif hint is Any:
        return value
    elif origin in (Mapping, dict) and isinstance(value, dict) and all(type(name) is str for name in value):
        return {name: _decode(get_args(hint)[1], item) for name, item in value.items()}
    elif dataclasses.is_dataclass(hint):
        return from_plain(hint, value)  # type: ignore[arg-type]
    elif hint is Fraction:
        return _fraction(value)
    elif hint is float and type(value) in (int, float) and math.isfinite(value):
        return float(value)
    elif (hint is type(None) and value is None) or (hint in (str, bool, int) and type(value) is hint):
        return value
    raise Misfit(f"{value!r} is not {hint}"[:200])


def _fraction(value: Any) -> Fraction:
    try:
        if not isinstance(value, str) or len(value) > _LONGEST_FRACTION or not value.isascii():
            raise Misfit(f"{value!r} is not a fraction"[:200])
        numerator, _, denominator = value.partition("/")
        return Fraction(int(numerator), int(denominator or 1))
    except (ValueError, ZeroDivisionError):
        raise Misfit(f"{value!r} is not a fraction"[:200]) from None


# Tables of facts, as TOML files next to the code that they are about ----------------------------------------


@cache
def tables_of(package: str, name: str) -> dict[str, Any]:
    """Return the content of a package's TOML file, with tuples for its lists."""
    import tomllib  # here, as most modules have no such file

    text = Path(import_module(package).__path__[0], f"{name}.toml").read_text(encoding="utf-8")
    found: dict[str, Any] = _to_tuples(tomllib.loads(text))
    return found


def _to_tuples(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _to_tuples(item) for name, item in value.items()}
    return tuple(map(_to_tuples, value)) if isinstance(value, list) else value
