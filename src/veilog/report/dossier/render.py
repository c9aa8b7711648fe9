"""A dossier as one HTML page, or as Markdown, from the same values."""

from __future__ import annotations

import re

from markupsafe import Markup

from veilog._language import gettext, gettext_noop, spoken
from veilog.report.dossier.parts import (
    YOURS,
    Block,
    Code,
    Dossier,
    DossierPart,
    DossierTable,
    Field,
    Points,
    Section,
    Text,
)
from veilog.report.explorer import clean
from veilog.report.page import environment, static

__all__ = ["as_html", "as_markdown"]

_OWNER = gettext_noop(
    "Not for release. This dossier holds exact numbers of the original log. It is for its owner only."
)
_OUTSIDE = gettext_noop("This dossier says nothing about the original log but the release itself and its guarantee.")
_SPECIAL = re.compile(r"([\\`*_\[\]<>#|~])")


def as_html(dossier: Dossier) -> str:
    """Return one page that loads nothing from anywhere."""
    template = environment().get_template("dossier.html")
    with spoken(dossier.language):
        return template.render(
            dossier=dossier,
            mark=_mark(dossier),
            kind=lambda block: type(block).__name__,
            yours=gettext(YOURS),
            headed=headed,
            style=Markup(static("style.css")),
            policy="default-src 'none'; style-src 'unsafe-inline'",
        )


def as_markdown(dossier: Dossier) -> str:
    """Return the same as Markdown, in which no text of a log is markup."""
    with spoken(dossier.language):
        return "\n".join(_lines(dossier)).rstrip() + "\n"


def headed(part: DossierPart) -> str:
    """Return the heading of a part."""
    if part.letter == "0":
        return part.title
    return gettext("Part {letter}. {title}", letter=part.letter, title=part.title)


def _lines(dossier: Dossier) -> list[str]:
    lines = [f"# {_plain(dossier.title)}", "", f"**{_plain(_mark(dossier))}**", ""]
    for part in dossier.parts:
        lines += [f"## {_plain(headed(part))}", "", _plain(part.intro), ""]
        for section in part.sections:
            lines += _section(section)
    return lines


def _mark(dossier: Dossier) -> str:
    return gettext(_OWNER if dossier.owner_only else _OUTSIDE)


def _section(section: Section) -> list[str]:
    lines = [f"### {section.number} {_plain(section.title)}", ""]
    for block in section.blocks:
        lines += [*_block(block), ""]
    return lines


def _block(block: Block) -> list[str]:
    match block:
        case Text(text, strong):
            return [f"**{_plain(text)}**" if strong else _plain(text)]
        case Points(points, boxes):
            signs = [f"{box} " for box in boxes] or [""] * len(points)
            return [f"- {sign}{_plain(point)}" for sign, point in zip(signs, points, strict=True)]
        case Field(name, value, hint):
            yours = f"*{gettext(YOURS)}*" + (f": {_plain(hint)}" if hint else "")
            said = yours if value is None else _plain(value)
            return [f"{_plain(name)}: {said}"]
        case DossierTable(head, rows):
            line = "| " + " | ".join(map(_plain, head)) + " |"
            rule = "|" + " --- |" * len(head)
            return [line, rule, *("| " + " | ".join(map(_plain, row)) + " |" for row in rows)]
        case Code(text):
            fence = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=2))
            return [f"{fence}yaml", *text.rstrip("\n").split("\n"), fence]


def _plain(text: str) -> str:
    """The text as Markdown shows it, in one line."""
    return _SPECIAL.sub(r"\\\1", " ".join(clean(text).split(" ")).strip()) or " "
