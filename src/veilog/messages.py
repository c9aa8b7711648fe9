"""What the library has to say, as values: a code, and what fills the sentence of that code.

Sentences live in the catalogues beside :mod:`veilog._language`, one file a language, English too. Each code has a text
there and, where something can be done, an advice. Where the words depend on who reads them a catalogue has them
for a *surface*: Python's (``delta=1e-6``), the command's (``--delta 1e-6``) or the pages' (the name of a field). What
has no words for the pages is advice that no page can follow, and is left out there.

Nothing below the edge reads a sentence: programs compare codes.

>>> str(Message("epsilon-needed", method="evolve"))
"Method 'evolve' needs an epsilon."
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from string import Formatter
from types import MappingProxyType
from typing import Any, Literal

from veilog._language import ENGLISH, current, localised, sentence

Surface = Literal["python", "command", "pages"]
_surface: ContextVar[Surface] = ContextVar("surface", default="python")
_ADVICE = "advice"
_NOTHING = "-"
"""What a catalogue has where a surface says nothing of a code, though others do."""


@contextmanager
def said_to(surface: Surface) -> Iterator[None]:
    """For a while, say things in the words of this surface."""
    before = _surface.set(surface)
    try:
        yield
    finally:
        _surface.reset(before)


@dataclass(frozen=True, init=False)
class Message:
    """One thing that the library says, to whoever may have the release: what it is of is public, or noisy."""

    code: str
    values: Mapping[str, Any] = field(hash=False)

    def __init__(self, code: str, /, **values: Any) -> None:
        object.__setattr__(self, "code", code)
        object.__setattr__(self, "values", MappingProxyType(values))

    def __str__(self) -> str:
        """Its sentence."""
        return words(self.code, self.values)

    @property
    def advice(self) -> str:
        """What to do about it; nothing where there is nothing to do."""
        return words(self.code, self.values, _ADVICE)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), self.code, dict(self.values))

    def to_json(self) -> dict[str, Any]:
        """Return code, values and the English sentence."""
        values = {name: _plain(value) for name, value in self.values.items()}
        return {"code": self.code, "values": values, "text": str(self)}


class OwnerMessage(Message):
    """One thing that only the owner of the log may read: it was computed from the raw log."""


def _restored(kind: type[Message], code: str, values: dict[str, Any]) -> Message:
    return kind(code, **values)


def message_from(told: Mapping[str, Any]) -> Message:
    """Return the message that :meth:`Message.to_json` wrote."""
    values = {
        name: message_from(value) if isinstance(value, dict) and "code" in value else value
        for name, value in told["values"].items()
    }
    return Message(told["code"], **values)


def _plain(value: Any) -> Any:
    if isinstance(value, Message):
        return value.to_json()
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def words(code: str, values: Mapping[str, Any], part: str = "") -> str:
    """Return what the catalogue says of a code, on the surface and in the language that are spoken now.

    What is no code of the catalogue is a sentence already: that of a method of another package."""
    surface = _surface.get()
    for language in dict.fromkeys((current() if surface == "pages" else ENGLISH, ENGLISH)):
        for context in (f"{part} {surface}".strip(), part):
            found = sentence(language, context, code)
            if found == _NOTHING:
                return ""
            if found is not None:
                return _FILLING.vformat(found, (), values)
    return "" if part else code


class _Filling(Formatter):
    """Fills numbers in as the language writes them, and messages with their own words."""

    def format_field(self, value: Any, format_spec: str) -> str:
        text = str(format(str(value) if isinstance(value, Message) else value, format_spec))
        is_number = isinstance(value, int | float | Fraction | Decimal) and not isinstance(value, bool)
        return localised(text) if is_number and _surface.get() == "pages" else text


_FILLING = _Filling()
