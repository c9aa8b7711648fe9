"""The first page of a dossier: what is proven and what to confirm, which file it is about, and where to sign."""

from __future__ import annotations

from veilog._language import dated
from veilog._language import gettext as _
from veilog.report.decision import MARKS
from veilog.report.dossier.parts import Block, DossierPart, Field, Points, Section, Text, table
from veilog.report.dossier.subject import Subject
from veilog.report.explorer import short

__all__ = ["answer"]


def answer(subject: Subject) -> DossierPart:
    """Return the part."""
    d = subject.decision
    blocks: list[Block] = [
        Text(f"{d.headline} {d.whom}", strong=True),
        *(Text(text) for text in d.cautions),
        Text(d.answer, strong=True),
    ]
    if d.reasons:
        blocks.append(Points(d.reasons))
    if d.checks:
        points = tuple(f"{check.asks} {check.why}".strip() for check in d.checks)
        blocks.append(Points(points, tuple(MARKS[check.state][0] for check in d.checks)))
        blocks.append(Text(_("☑ checked by the program; ☐ to be confirmed by you; ☒ seems not to hold.")))
    return DossierPart(
        "0",
        _("What is proven, and what to confirm"),
        _("What follows helps to fill what an officer has to fill. It decides nothing, and it is no legal advice."),
        (
            Section("0.1", _("Answer"), tuple(blocks)),
            Section("0.2", _("Which release"), _identity(subject)),
            Section("0.3", _("Names and signatures"), (_signatures(),)),
        ),
    )


def _identity(subject: Subject) -> tuple[Block, ...]:
    told = subject.told
    fields: list[Block] = []
    if subject.attacked is not None:
        name = subject.attacked.owner.name or None
        fields.append(Field(_("Log (for the owner only)"), name, _("what it is called")))
    if not subject.files:
        fields.append(Field(_("File"), None, _("its name, and its SHA-256")))
    fields += [Field(_("File"), f"{file.name}, SHA-256 {file.sha256}") for file in subject.files]
    fields += [
        Field(_("Dossier written on"), f"{dated(subject.written)} (UTC)"),
        Field(
            _("Made with"),
            _("{software}, method {method}", software=short(told.software, 80), method=short(told.method, 80)),
        ),
    ]
    if told.parameters:
        shown = "; ".join(f"{name} = {short(value, 80)}" for name, value in told.parameters[:40])
        fields.append(Field(_("Parameters"), shown))
    return tuple(fields)


def _signatures() -> Block:
    return table(
        (_("role"), _("name"), _("date"), _("signature")),
        (_("prepared by"), "", "", ""),
        (_("data protection officer"), "", "", ""),
        (_("decided by"), "", "", ""),
    )
