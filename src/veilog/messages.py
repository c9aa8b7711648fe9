"""Messages of the library as values: a code, and the values of its sentence.

Sentences live in the catalogues of :mod:`veilog._language`, one file a language, English too. Each code has a text
there and, where something can be done, an advice. If the words depend on the reader, a catalogue has them for a
*surface*: Python's (``delta=1e-6``), the command's (``--delta 1e-6``) or the pages' (the name of a field). Advice
without words for the pages is advice that no page can follow, so they leave it out.

Nothing below the edge reads a sentence: programs compare codes.

>>> str(Message("disk-full"))
'The disk is full.'
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import reduce
from string import Formatter
from types import MappingProxyType
from typing import Any, ClassVar, Literal, Self, cast

from veilog._language import ENGLISH, current, format_number, gettext, sentence, spoken

Surface = Literal["python", "command", "pages"]
_surface: ContextVar[Surface] = ContextVar("surface", default="python")
_ADVICE = "advice"
_NOTHING = "-"
"""Catalogue entry of a surface without words for a code that has words on others."""


@contextmanager
def for_surface(surface: Surface) -> Iterator[None]:
    """Use the words of this surface while the block lasts."""
    before = _surface.set(surface)
    try:
        yield
    finally:
        _surface.reset(before)


@dataclass(frozen=True)
class _Kept:
    """A message as files keep it; see :mod:`veilog._plain`."""

    code: str
    values: Mapping[str, str | bool | int | float | _Kept | None]


@dataclass(frozen=True, init=False)
class _Coded:
    """A code and the values of its sentence."""

    Plain: ClassVar[type[_Kept]] = _Kept

    code: str
    values: Mapping[str, Any] = field(hash=False)

    def __init__(self, code: str, /, **values: Any) -> None:
        object.__setattr__(self, "code", code)
        object.__setattr__(self, "values", MappingProxyType(values))

    def __str__(self) -> str:
        """Return its sentence."""
        return words(self.code, self.values)

    @property
    def advice(self) -> str:
        """Sentence of what to do about it; empty if nothing can be done."""
        return words(self.code, self.values, _ADVICE)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore_message, (type(self), self.code, dict(self.values))

    @property
    def english(self) -> str:
        """Its sentence in English, as in files, for readers of any language."""
        with spoken(ENGLISH):
            return str(self)

    def to_json(self) -> dict[str, Any]:
        """Return code, values and the sentence in English."""
        values = {name: _plain(value) for name, value in self.values.items()}
        return {"code": self.code, "values": values, "text": self.english}

    def plain(self) -> _Kept:
        values = ((name, v.plain() if isinstance(v, _Coded) else _plain(v)) for name, v in self.values.items())
        return _Kept(self.code, dict(values))

    @classmethod
    def of_plain(cls, kept: _Kept) -> Self:
        """Return the message that was kept."""
        values = ((name, Message.of_plain(v) if isinstance(v, _Kept) else v) for name, v in kept.values.items())
        return cls(kept.code, **dict(values))


class Message(_Coded):
    """A message for all readers: its values are public, requested, or noisy answers."""

    @staticmethod
    def joined(messages: Iterable[Message]) -> Message:
        """Return one message with the sentences of these, at least one, in their order."""
        return reduce(lambda first, rest: Message("sentences", first=first, rest=rest), messages)


class OwnerMessage(_Coded):
    """A message for the data owner alone, computed from the raw log.

    It is no :class:`Message`, so nothing that veilog makes for others takes it.
    """


def _restore_message(kind: type[_Coded], code: str, values: dict[str, Any]) -> _Coded:
    return kind(code, **values)


def as_text(said: str | Message) -> str:
    """Return a text as it is, or the English sentence of a message."""
    return said.english if isinstance(said, Message) else said


def as_message(text: str | Message) -> Message:
    """Return a message as it is, or one without a code of another package's sentence."""
    return text if isinstance(text, Message) else Message(text)


def message_from(told: Mapping[str, Any]) -> Message:
    """Return the message that ``to_json`` wrote; :class:`ValueError` for the rest."""
    code, values = told.get("code"), told.get("values")
    if not isinstance(code, str) or not isinstance(values, Mapping) or not _printable(code, *values.values()):
        raise ValueError("a message has a code and values")  # about a file
    return Message(code, **{name: message_from(v) if isinstance(v, Mapping) else v for name, v in values.items()})


def _printable(*values: Any) -> bool:
    """Return True if no text of a file can steer the terminal that shows it."""
    return all(value.isprintable() for value in values if isinstance(value, str))


def _plain(value: Any) -> Any:
    if isinstance(value, _Coded):
        return value.to_json()
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def words(code: str, values: Mapping[str, Any], part: str = "") -> str:
    """Return the catalogue's text of a code, for the current surface and language.

    A code that the catalogue lacks is a sentence already: of another package's method, or of a file.
    """
    surface = _surface.get()
    for language in dict.fromkeys((current(), ENGLISH)):
        own = surface if language == ENGLISH else "pages"  # words for the command or Python alone are English
        for context in (f"{part} {own}".strip(), part):
            found = sentence(language, context, code)
            if found == _NOTHING:
                return ""
            if found is not None:
                return _FILLING.vformat(_drop_empty_words(found, values), (), values).strip()
    return "" if part else gettext(code) if current() != ENGLISH else code


_WORD = re.compile(r"(?:^| )\{(\w+)\}(?=[ .,;:!?)]|$)")
"""A value that stands in a sentence as a separate word, with the space before it."""


def _drop_empty_words(text: str, values: Mapping[str, Any]) -> str:
    """Remove a sentence's empty words, each with its space; values keep theirs."""
    return _WORD.sub(lambda found: found[0] if str(values.get(found[1], "…")) else "", text)


class _Filling(Formatter):
    """Formatter of sentences: numbers as the language writes them, messages in words.

    ``{what!u}`` begins with a capital letter, ``{what!l}`` with a small one, and ``{what!p}`` has no full stop at its
    end.
    """

    def convert_field(self, value: Any, conversion: str | None) -> Any:
        if conversion not in ("u", "l", "p"):
            return super().convert_field(value, cast(Any, conversion))
        text = str(value)
        if conversion == "p":
            return text.rstrip(".")
        return (text[:1].upper() if conversion == "u" else text[:1].lower()) + text[1:]

    def format_field(self, value: Any, format_spec: str) -> str:
        try:
            text = str(format(str(value) if isinstance(value, _Coded) else value, format_spec))
        except (TypeError, ValueError):  # a file has something else there
            text = str(value)
        is_number = isinstance(value, int | float | Fraction | Decimal) and not isinstance(value, bool)
        return format_number(text) if is_number else text

    def get_value(self, key: int | str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        return kwargs.get(str(key), "…")


_FILLING = _Filling()
