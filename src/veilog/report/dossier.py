"""A dossier about a release, for the people who decide about it.

It has an annex to a data protection impact assessment, the three risks by name, and a mapping to NIST SP 800-226. It
also has a record for the registry of deployments, and sheets for the recipient and for an output check. It helps an
officer to fill in forms. It decides nothing, and it is no legal advice.

Each part is a template in ``templates``, filled with one dictionary of facts
(:func:`veilog.report.facts.dossier_facts`). A template calls :class:`BlockWriter` piece by piece; page and Markdown
come from the same pieces.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from veilog._files import atomic_target, check_writable
from veilog._language import ENGLISH, count_phrase, current, format_date, gettext, ngettext, pgettext, spoken
from veilog.errors import OutputError, ParameterError, check_language
from veilog.ledger.accounts import Account
from veilog.logs.files import AnyLog
from veilog.measures import Progress
from veilog.measures.persons import check_apart
from veilog.releasing.account_notes import LedgerStatus
from veilog.releasing.result import Release
from veilog.report import words
from veilog.report.comparison import knowledge_text, unique
from veilog.report.decision import CONFIRMED, person_sentence
from veilog.report.explorer import clean
from veilog.report.facts import dossier_facts
from veilog.report.page import environment, style
from veilog.report.release_facts import given_log, given_release
from veilog.report.words import figure, localise

if TYPE_CHECKING:
    from jinja2 import Environment

SCHEMA = "3e9c812a924cf01d228f26f6c462c59c391c3f2a"
"""Commit of opendp/deployments-registry-data (2026-07-15) whose schema the record follows."""
PARTS = ("answer", "assessment", "risks", "nist", "registry", "recipient", "output_check", "questions")
"""Templates of the parts, in their order."""
_HTML, _MARKDOWN = (".html", ".htm"), (".md", ".markdown")
_PLAIN: Mapping[str, Any] = {
    "_": gettext,
    "_p": pgettext,
    "ngettext": ngettext,
    "stated": localise,
    "figure": figure,
    "dated": format_date,
    "known_activities": knowledge_text,
    "unique": unique,
    "of_person": person_sentence,
    "schema": SCHEMA,
}
"""Functions and values for the templates of parts, as plain text; pages escape values."""
_SPECIAL = re.compile(r"([\\`*_\[\]<>#|~])")


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str
    strong: bool = False


@dataclass(frozen=True)
class Points:
    """A list, with a box for each point if it is one to tick."""

    points: tuple[str, ...]
    boxes: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()
    """Codes of the statements, one for each box."""


@dataclass(frozen=True)
class DossierTable:
    """Rows under a head."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class Field:
    """A fact to write down: the program's value, or None and a hint for the reader."""

    name: str
    value: str | None
    hint: str = ""


@dataclass(frozen=True)
class Code:
    """Text for a program."""

    text: str

    @property
    def fence(self) -> str:
        """Fence of the text in Markdown: more backticks than it has in a row."""
        return "`" * (1 + max((len(run) for run in re.findall("`+", self.text)), default=2))


Block = Text | Points | DossierTable | Field | Code


@dataclass(frozen=True)
class Section:
    """A numbered piece of the dossier that answers questions."""

    number: str
    title: str
    blocks: tuple[Block, ...] = ()


@dataclass(frozen=True)
class DossierPart:
    """Sections for one reader."""

    letter: str
    title: str
    heading: str
    """Title with its letter."""
    intro: str
    sections: tuple[Section, ...] = ()


@dataclass(frozen=True)
class Dossier:
    """All parts, and whether they hold exact numbers of the original."""

    title: str
    mark: str
    """A sentence on whether it may be sent."""
    parts: tuple[DossierPart, ...]
    owner_only: bool
    tone: str
    language: str
    """Language that it is written in."""
    registry: str | None
    """Record for the registry of deployments, as YAML; None if nothing is proven."""

    def sections(self) -> Iterator[Section]:
        """Yield all sections in order."""
        for part in self.parts:
            yield from part.sections


@dataclass(frozen=True)
class Signature:
    """The confirmation of statements about a release: by whom, which, and when."""

    name: str
    day: str
    """Day in ISO format, UTC."""
    codes: tuple[str, ...]
    """Codes of the statements (:mod:`veilog.releasing.checks`)."""


class BlockWriter:
    """Collects the output of a template; its calls print nothing."""

    def __init__(self) -> None:
        self._part = DossierPart("", "", "", "")
        self._sections: list[tuple[str, str, list[Block]]] = []

    def part(self, letter: str, title: str, intro: str) -> str:
        """Begin the part."""
        named = gettext("Part {letter}. {title}", letter=letter, title=title)
        self._part = DossierPart(letter, title, title if letter == "0" else named, intro)
        return ""

    def section(self, number: str, title: str) -> str:
        """Begin a section."""
        self._sections.append((number, title, []))
        return ""

    def text(self, text: str, strong: bool = False) -> str:
        """Add a paragraph."""
        return self._add(Text(text, strong))

    def point(self, text: str, box: str = "", code: str = "") -> str:
        """Add a point to the present list, or to a new one.

        A point with a box goes to a list to tick, one without to a plain list.
        """
        last = self._last
        more = Points((text,), (box,) if box else (), (code,) if box else ())
        if isinstance(last, Points) and bool(last.boxes) == bool(box):
            both = zip((last.points, last.boxes, last.codes), (more.points, more.boxes, more.codes), strict=True)
            return self._add(Points(*((*before, *after) for before, after in both)), in_place=True)
        return self._add(more)

    def table(self, *head: str) -> str:
        """Begin a table."""
        return self._add(DossierTable(head))

    def row(self, *cells: object) -> str:
        """Add a row to the present table."""
        last = self._last
        assert isinstance(last, DossierTable), "a row follows a table"
        return self._add(DossierTable(last.head, (*last.rows, tuple(map(str, cells)))), in_place=True)

    def field(self, name: str, value: str) -> str:
        """Add a fact that the program knows."""
        return self._add(Field(name, value))

    def yours(self, name: str, hint: str, value: str | None = None) -> str:
        """Add a fact for the reader to write down, unless the program knows it after all."""
        return self._add(Field(name, value, hint))

    def code(self, text: str) -> str:
        """Add text for a program."""
        return self._add(Code(text))

    def written(self) -> DossierPart:
        """Return the part."""
        sections = (Section(number, title, tuple(blocks)) for number, title, blocks in self._sections)
        return replace(self._part, sections=tuple(sections))

    @property
    def _last(self) -> Block | None:
        return next(reversed(self._sections[-1][2]), None)

    def _add(self, block: Block, *, in_place: bool = False) -> str:
        blocks = self._sections[-1][2]
        blocks[len(blocks) - in_place :] = [block]
        return ""


def dossier(
    released: Release | AnyLog,
    original: AnyLog | None = None,
    *,
    files: Sequence[str | os.PathLike[str]] = (),
    account: Account | LedgerStatus | None = None,
    control: AnyLog | None = None,
    person: str | bool = True,
    progress: Progress | None = None,
    language: str = ENGLISH,
) -> Dossier:
    """Return the dossier of a release, for the people who decide about it.

    Args:
        released: the release, or the log that was read from its file.
        original: the released log, for the confidential edition, which has the attack tests on both; without it, the
            dossier has nothing of the original.
        files: those that the release was written to.
        account: the ledger's facts on releases of these data (or, as :class:`LedgerStatus`, of other data, too), for
            the confidential edition.
        control: people who were not in the released log, for the attack tests.
        person: the column that identifies persons; True for the likely one, False if each case is another person's.
        progress: called with a text and the fraction that is done.
        language: one with a catalogue; the record for the registry is English.

    Returns:
        The dossier, which :func:`write` writes as a page or as Markdown.

    Raises:
        ParameterError: for a language without a catalogue, or a ``control`` without an ``original``.

    """
    check_language(language)
    held = given_release(released)
    beside, others = given_log(original, held), given_log(control)
    if beside is not None:
        check_apart(beside, others, person)
    elif others is not None:
        raise ParameterError("control-without-original", parameter="control")
    with spoken(language):
        return _build_dossier(
            dossier_facts(held, beside, files=files, account=account, control=others, person=person, progress=progress)
        )


def write(made: Dossier, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Write a dossier as a page (.html) or as Markdown (.md), whole or not at all.

    Only its owner may read the file of a confidential edition. An existing file is replaced only with ``overwrite``.
    """
    text = as_markdown(made) if check_dossier(path) == "markdown" else as_html(made)
    with atomic_target(path, private=made.owner_only, overwrite=overwrite) as file:
        file.write(text.encode("utf-8", "replace"))


def write_registry(made: Dossier, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Write the record for the registry; :class:`OutputError` if nothing is proven."""
    if made.registry is None:
        raise OutputError("dossier-nothing-proven", path=os.fspath(path))
    with atomic_target(path, overwrite=overwrite) as file:
        file.write(made.registry.encode("utf-8", "replace"))


def check_dossier(path: str | os.PathLike[str]) -> str:
    """Return "html" or "markdown"; :class:`OutputError` if the file cannot be written."""
    suffix = PurePath(path).suffix.lower()
    if suffix not in (*_HTML, *_MARKDOWN):
        raise OutputError("dossier-format-unknown", path=os.fspath(path))
    check_writable(path)
    return "markdown" if suffix in _MARKDOWN else "html"


def as_html(made: Dossier) -> str:
    """Return one page that loads nothing from anywhere."""
    with spoken(made.language):
        return _fill_template(
            "dossier.html",
            dossier=made,
            style=Markup(style()),
            policy="default-src 'none'; style-src 'unsafe-inline'",
        )


def as_markdown(made: Dossier) -> str:
    """Return the same as Markdown, in which no text of a log is markup."""
    with spoken(made.language):
        return _fill_template("dossier.md.jinja", dossier=made).rstrip() + "\n"


def sign_dossier(made: Dossier, signature: Signature) -> Dossier:
    """Return the dossier with a person's confirmation, name and day."""
    with spoken(made.language):
        day = format_date(signature.day)
        said = gettext("{mark} confirmed by {name} on {day}.", mark=CONFIRMED, name=signature.name, day=day)
        row = (gettext("confirmed by"), signature.name, day, "")

    def confirmed(section: Section) -> Section:
        blocks: list[Block] = []
        for block in section.blocks:
            if isinstance(block, Points) and any(block.codes):
                named = zip(block.boxes, block.codes, strict=True)
                block = replace(block, boxes=tuple(CONFIRMED if c in signature.codes else box for box, c in named))
                blocks += [block, Text(said, strong=True)]
            elif isinstance(block, DossierTable) and section.number == _SIGNATURES:
                blocks.append(replace(block, rows=(row, *block.rows)))
            else:
                blocks.append(block)
        return replace(section, blocks=tuple(blocks))

    parts = (replace(part, sections=tuple(map(confirmed, part.sections))) for part in made.parts)
    return replace(made, parts=tuple(parts))


_SIGNATURES = "0.3"
"""Number of the section of the names and signatures."""


def part(name: str, facts: Mapping[str, Any]) -> DossierPart:
    """Return the part that a template makes of these facts."""
    writer = BlockWriter()
    pieces = ("part", "section", "text", "point", "table", "row", "field", "yours", "code")
    _fill_template(f"{name}.jinja", **{piece: getattr(writer, piece) for piece in pieces}, **facts)
    return writer.written()


def _build_dossier(facts: dict[str, Any]) -> Dossier:
    attacked, method = facts["attacked"], facts["method"]
    title = words.capital(gettext("dossier of an event log, released with {method}", method=method))
    mark = gettext("This dossier reveals nothing about the original log except the release itself and its guarantee.")
    if attacked is not None:
        mark = gettext(
            "Not for release. This dossier holds exact numbers of the original log. It is for its data owner only."
        )
        if name := attacked["owner"].name:
            title = gettext("{log}: dossier of an event log, released with {method}", log=name, method=method)
    record = _record(facts)
    return Dossier(
        title=title,
        mark=mark,
        parts=tuple(part(name, {**facts, "record": record}) for name in PARTS),
        owner_only=attacked is not None,
        tone=facts["decision"].tone,
        language=current(),
        registry=record,
    )


def _record(facts: Mapping[str, Any]) -> str | None:
    """Return the record for the registry as YAML, in English; None without a proof."""
    g = facts["g"]
    if not g.proven or g.epsilon is None:
        return None
    mechanisms = list(dict.fromkeys(charge.plain().mechanism for charge in g.charges))
    slug = re.sub(r"[^a-z0-9]+", "-", facts["told"].method.lower()).strip("-") or "release"
    values = {"mechanisms": mechanisms, "slug": slug, "schema": SCHEMA, "counted": count_phrase}
    with spoken(ENGLISH):
        return _fill_template("record.yaml.jinja", **facts, **values) + "\n"


def _fill_template(template: str, **values: Any) -> str:
    return _environment().get_template(template).render(kind=lambda block: type(block).__name__, **values)


@lru_cache(maxsize=1)
def _environment() -> Environment:
    made = environment().overlay()
    made.globals = {**made.globals, **_PLAIN}
    made.filters = made.filters | {"yaml": _yaml, "markdown": _markdown}
    return made


def _markdown(text: str) -> str:
    """Return the text as Markdown shows it, in one line."""
    return _SPECIAL.sub(r"\\\1", " ".join(clean(text).split(" ")).strip()) or " "


def _yaml(value: str | float) -> str:
    """Return a string in quotes, or a number, in a form that YAML 1.1 reads as such."""
    if isinstance(value, str):
        return json.dumps(value.strip(), ensure_ascii=False)
    text = repr(float(value))
    mantissa, e, power = text.partition("e")
    return text if not e else f"{mantissa if '.' in mantissa else mantissa + '.0'}e{power}"
