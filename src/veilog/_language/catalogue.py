"""A reader of gettext's .po files as translators write them, without compiling."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import NamedTuple


class CatalogueEntry(NamedTuple):
    """A sentence of a catalogue."""

    context: str
    text: str
    plural: str
    """English text for more than one; empty if the sentence does not count."""
    said: tuple[str, ...]
    """Translation, or one for each plural form; empty strings if there is none yet."""


_TEXT = r'"(.*)"\s*\n'
_ENTRY = re.compile(rf"^(?:msgctxt {_TEXT})?msgid {_TEXT}(?:msgid_plural {_TEXT})?((?:msgstr.*\n?)+)", re.MULTILINE)
_SAID = re.compile(r'^msgstr(?:\[\d\])? "(.*)"', re.MULTILINE)


class Catalogue:
    """Sentences of one language, each as the .po file has it until it is needed."""

    def __init__(self, text: str) -> None:
        self._said = {(context, text, plural != ""): said for context, text, plural, said in _fields(text)}
        self._head = self._said.pop(("", "", False), "")

    def one(self, context: str, text: str) -> str:
        """Return a translation; empty if there is none."""
        return "".join(self._forms(context, text, counts=False))

    def counted(self, text: str, n: int) -> str | None:
        """Return the form of a sentence that fits the number; None where there is none."""
        forms = self._forms("", text, counts=True)
        return forms[self._form(n)] if forms and all(forms) else None

    def _forms(self, context: str, text: str, *, counts: bool) -> tuple[str, ...]:
        return _translations(self._said.get((_escape(context), _escape(text), counts), ""))

    @cached_property
    def _form(self) -> Callable[[int], int]:
        """Function that returns the index of the form that fits a number."""
        from gettext import c2py  # here, as a start has no sentences to count

        lines = "".join(_translations(self._head)).splitlines()
        facts = dict(line.split(": ", 1) for line in lines if ": " in line)
        rule = facts.get("Plural-Forms", "nplurals=2; plural=(n != 1);")
        return c2py(rule.partition("plural=")[2].partition(";")[0])


def entries(text: str) -> Iterator[CatalogueEntry]:
    """Yield the entries of a .po file in order, first the head (of an empty text)."""
    for context, english, plural, said in _fields(text):
        yield CatalogueEntry(_unescape(context), _unescape(english), _unescape(plural), _translations(said))


def _fields(text: str) -> list[tuple[str, str, str, str]]:
    """Return context, text, plural and translations of each entry, all still escaped."""
    return _ENTRY.findall(re.sub(r'"\s*\n"', "", text))


def _translations(said: str) -> tuple[str, ...]:
    return tuple(map(_unescape, _SAID.findall(said)))


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")


def _unescape(text: str) -> str:
    return str(ast.literal_eval(f'"{text}"')) if "\\" in text else text
