"""Settings of a method, declared once as a frozen dataclass for all uses.

>>> @dataclass(frozen=True, kw_only=True)
... class Own(Settings):
...     share: Annotated[float, "share of the cases", Range(0, 1)] = 0.1
...     how: Annotated[Literal["plain", "fancy"], "how it is done"] = "plain"
>>> Own.parse({"share": "0.5"})
Own(share=0.5, how='plain')
"""

from __future__ import annotations

import keyword
import math
import types
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from functools import cache
from typing import Annotated, Any, Literal, Self, Union, get_args, get_origin, get_type_hints

from veilog.errors import ParameterError, meant


def python_name(name: str) -> str:
    """Return the name of a setting in Python, with an underscore after a keyword."""
    return f"{name}_" if keyword.iskeyword(name) else name


@dataclass(frozen=True)
class Range:
    """The smallest and the largest value that a setting may have."""

    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Choices:
    """Allowed values of a setting of text, if known only when the program runs."""

    of: tuple[str, ...]


LargestLog = Annotated[int, "cases of the largest log expected; a budget too small even for it is refused", Range(1)]


@dataclass(frozen=True)
class Parameter:
    """Setting in words: ``-p name=value``.

    With a default of None, the method finds the value from public facts.
    """

    name: str
    kind: type
    default: Any
    what: str
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()

    def parse(self, value: Any) -> Any:
        """Return the value in its type, or raise a :class:`ParameterError`.

        Text is read, as from -p.
        """
        if value is None:
            return None
        parsed = self._parse_value(value)
        if parsed is None:
            words = {bool: "true or false", int: "a whole number", float: "a number"}.get(self.kind, "text")
            raise ParameterError("setting-not-as-needed", parameter=self.name, name=self.name, words=words, value=value)
        allowed: dict[str, Any]
        if self.choices and parsed not in self.choices:
            code = "setting-value-not-allowed"
            allowed = {"meant": meant(parsed, self.choices), "names": ", ".join(self.choices)}
        elif self.minimum is not None and parsed < self.minimum:
            code, allowed = "setting-too-small", {"minimum": self.minimum}
        elif self.maximum is not None and parsed > self.maximum:
            code, allowed = "setting-too-large", {"maximum": self.maximum}
        else:
            return parsed
        raise ParameterError(code, parameter=self.name, name=self.name, value=value, **allowed)

    def _parse_value(self, value: Any) -> Any:
        """Return the value in its type; None if it does not fit."""
        if self.kind is str:
            return str(value)
        if self.kind is bool:
            truth = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
            return truth.get(str(value).lower())
        try:
            parsed = None if isinstance(value, bool) else self.kind(value)
            if parsed is not None and (not math.isfinite(parsed) or (self.kind is int and parsed != float(value))):
                return None
        except (TypeError, ValueError, OverflowError):  # of a whole number beyond all others, too
            return None
        return parsed


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of a method.

    Each method has a frozen dataclass of annotated fields with defaults.
    """

    @classmethod
    def parameters(cls) -> tuple[Parameter, ...]:
        """Return the settings in words, in the order in which they are declared."""
        return _parameters(cls)  # type: ignore[arg-type]  # classes are hashable

    @classmethod
    def parse(cls, values: Mapping[str, Any], of: str = "this method", beside: Iterable[str] = ()) -> Self:
        """Return the settings with these values read and checked, and defaults else.

        ``beside`` has other names that are valid in the same place, one of which may have been meant.
        """
        known = {parameter.name: parameter for parameter in cls.parameters()}
        values = {_option_name(name): value for name, value in values.items()}
        for name in values:
            if name not in known:
                possible = ", ".join(known) if known else "it has none"
                raise ParameterError(
                    "method-parameter-unknown",
                    parameter=name,
                    of=of,
                    name=name,
                    meant=meant(name, (*known, *beside)),
                    possible=possible,
                )
        return cls(**{python_name(name): p.parse(values.get(name, p.default)) for name, p in known.items()})

    def to_json(self) -> dict[str, Any]:
        """Return the settings by name."""
        return {_option_name(name): value for name, value in asdict(self).items()}


def _option_name(name: str) -> str:
    """Return the name of a setting outside of Python for the one that Python takes."""
    word = name.removesuffix("_")
    return word if python_name(word) == name else name


@cache
def _parameters(cls: type[Settings]) -> tuple[Parameter, ...]:
    hints = get_type_hints(cls, include_extras=True)
    return tuple(parameter_of(field.name, hints[field.name], field.default) for field in fields(cls))


def parameter_of(name: str, hint: Any, default: Any) -> Parameter:
    """Return a setting as its annotation and its default declare it."""
    if get_origin(hint) is not Annotated or default is MISSING:
        raise TypeError(f"The setting {name!r} needs words, Annotated[type, '...'], and a default.")
    declared, *notes = get_args(hint)
    words = next((note for note in notes if isinstance(note, str)), "")
    bounds = next((note for note in notes if isinstance(note, Range)), Range())
    if get_origin(declared) in (Union, types.UnionType):
        (declared,) = (part for part in get_args(declared) if part is not type(None))
    named = next((note.of for note in notes if isinstance(note, Choices)), ())
    choices = get_args(declared) if get_origin(declared) is Literal else named
    kind = str if choices else declared
    if kind not in (int, float, bool, str):
        raise TypeError(f"The setting {name!r} must be a number, text or true or false, not {kind!r}.")
    return Parameter(_option_name(name), kind, default, words, bounds.low, bounds.high, choices)
