"""A reader of gettext's .po files as translators write them, without compiling."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from gettext import c2py


@dataclass(frozen=True)
class CatalogueEntry:
    """A sentence of a catalogue."""

    context: str
    text: str
    plural: str
    """English text for more than one; empty if the sentence does not count."""
    said: tuple[str, ...]
    """Translation, or one for each plural form; empty strings if there is none yet."""


@dataclass(frozen=True)
class Catalogue:
    """Sentences of one language, by context and English text."""

    one: Mapping[tuple[str, str], str]
    many: Mapping[str, tuple[str, ...]]
    form: Callable[[int], int]
    """Index of the form that fits a number."""

    def counted(self, text: str, n: int) -> str | None:
        """Return the form of a sentence that fits the number; None where there is none."""
        return self.many[text][self.form(n)] if text in self.many else None


def parse_catalogue(text: str) -> Catalogue:
    """Return the catalogue that a .po file holds."""
    found = [*entries(text)]
    heads = next((entry.said[0] for entry in found if not entry.text), "")
    facts = dict(line.split(": ", 1) for line in heads.splitlines() if ": " in line)
    rule = facts.get("Plural-Forms", "nplurals=2; plural=(n != 1);").partition("plural=")[2].partition(";")[0]
    return Catalogue(
        {(entry.context, entry.text): entry.said[0] for entry in found if entry.text and not entry.plural},
        {entry.text: entry.said for entry in found if entry.plural and all(entry.said)},
        c2py(rule),
    )


_FIELD = re.compile(r'^(msgctxt|msgid_plural|msgid|msgstr(?:\[\d\])?) ((?:"(?:[^"\\]|\\.)*"\s*)+)', re.MULTILINE)
_PIECE = re.compile(r'"((?:[^"\\]|\\.)*)"')


def entries(text: str) -> Iterator[CatalogueEntry]:
    """Yield the entries of a .po file in order, first the head (of an empty text)."""
    for block in text.split("\n\n"):
        fields = {name: _unquote(value) for name, value in _FIELD.findall(block)}
        if "msgid" in fields:
            said = tuple(value for name, value in sorted(fields.items()) if name.startswith("msgstr"))
            yield CatalogueEntry(fields.get("msgctxt", ""), fields["msgid"], fields.get("msgid_plural", ""), said)


def _unquote(lines: str) -> str:
    inside = "".join(_PIECE.findall(lines))
    return str(ast.literal_eval(f'"{inside}"')) if "\\" in inside else inside
