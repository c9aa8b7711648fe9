"""What a dossier is made of, as plain values: parts, sections, and blocks. HTML and Markdown are written from them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from veilog._language import gettext_noop

__all__ = [
    "YOURS",
    "Block",
    "Code",
    "Dossier",
    "DossierPart",
    "DossierTable",
    "Field",
    "Points",
    "Section",
    "Text",
    "table",
]

YOURS = gettext_noop("yours to fill")
"""What stands where the program cannot know."""


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str
    strong: bool = False


@dataclass(frozen=True)
class Points:
    """A list; each with its box, where it is one to tick."""

    points: tuple[str, ...]
    boxes: tuple[str, ...] = ()


@dataclass(frozen=True)
class DossierTable:
    """Rows under a head."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Field:
    """One thing to be written down: what the program knows of it, or None and what to write."""

    name: str
    value: str | None
    hint: str = ""


@dataclass(frozen=True)
class Code:
    """Text for a program."""

    text: str


Block = Text | Points | DossierTable | Field | Code


@dataclass(frozen=True)
class Section:
    """A numbered piece that questions can be answered with."""

    number: str
    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class DossierPart:
    """Sections for one reader."""

    letter: str
    title: str
    intro: str
    sections: tuple[Section, ...]


@dataclass(frozen=True)
class Dossier:
    """All parts, and whether they hold exact numbers of the original."""

    title: str
    parts: tuple[DossierPart, ...]
    owner_only: bool
    tone: str
    language: str
    """What it is written in."""
    registry: str | None
    """The record for the registry of deployments, as YAML; None where nothing is proven."""

    def sections(self) -> Iterator[Section]:
        """All sections in order."""
        for part in self.parts:
            yield from part.sections


def table(head: tuple[str, ...], *rows: tuple[str, ...]) -> DossierTable:
    """Return a table of these rows."""
    return DossierTable(head, rows)
