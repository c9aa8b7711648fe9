"""Part A: an annex in the order of the template for data protection impact assessments of the European Data Protection
Board (version 1.0 of 10 March 2026, published for consultation): sections 0 to 2. It speaks of making and sending the
release, not of the collection of the log. What only the controller knows is left to them, with a hint."""

from __future__ import annotations

from veilog._language import dated, gettext_noop, ngettext, pgettext
from veilog._language import gettext as _
from veilog.report.dossier.dpia_compliance import compliance
from veilog.report.dossier.dpia_risks import considerations
from veilog.report.dossier.parts import DossierPart, Field, Points, Section, table
from veilog.report.dossier.subject import Subject
from veilog.report.explorer import short
from veilog.report.figures import figure
from veilog.report.stated import stated

__all__ = ["dpia"]

_SOURCES = (
    gettext_noop("Template for data protection impact assessments, European Data Protection Board, version 1.0 (2026)"),
    gettext_noop("Opinion 05/2014 on anonymisation techniques, Article 29 Working Party (WP216)"),
    gettext_noop("Guidelines on data protection impact assessment, Article 29 Working Party (WP248 rev. 01)"),
    gettext_noop("NIST SP 800-226, Guidelines for evaluating differential privacy guarantees (2025)"),
    gettext_noop("What is proved of this release: veilog's pages “What is guaranteed” and “Guarantees”"),
)


def dpia(subject: Subject) -> DossierPart:
    """Return the part."""
    return DossierPart(
        "A",
        _("Annex to a data protection impact assessment"),
        _(
            "It helps to fill the template of the European Data Protection Board (version 1.0, for "
            "consultation), in its order, for one processing: making a release of an event log, and sending it. "
            "What is marked “yours to fill” no program can know."
        ),
        (*_overview(subject), *_description(subject), *_means(subject), *compliance(subject), *considerations(subject)),
    )


def _overview(subject: Subject) -> tuple[Section, ...]:
    told = subject.told
    return (
        Section(
            "A.0.1",
            _("Controllers"),
            (
                Field(_("Controller, unit responsible, contact"), None, _("who decides why and how it is released")),
                Field(_("Data protection officer"), None, _("name and contact")),
            ),
        ),
        Section(
            "A.0.2",
            _("Processors"),
            (
                Field(
                    _("Software"),
                    _(
                        "{software} runs on the controller's machine and sends nothing anywhere.",
                        software=short(told.software, 80),
                    ),
                ),
                Field(
                    _("Processors"), None, _("who runs that machine, if not you (hosting, IT service), and their tasks")
                ),
            ),
        ),
        Section(
            "A.0.3",
            _("Name of the processing"),
            (
                Field(_("Proposed name"), _("Release of an event log with {method}", method=short(told.method, 80))),
                Field(_("Name and version in your record of processing"), None, _("Article 30")),
            ),
        ),
        Section(
            "A.0.4",
            _("Planning"),
            (
                Field(_("This page was written"), dated(subject.written)),
                Field(
                    _("Start and end"),
                    None,
                    _("when the release is sent, for how long it is offered, when it is withdrawn"),
                ),
            ),
        ),
        _sheet(subject),
    )


def _sheet(subject: Subject) -> Section:
    """Return the technical sheet."""
    told = subject.told
    return Section(
        "A.0.5",
        _("Technical sheet of the assessment"),
        (
            Field(
                _("Version"),
                _(
                    "annex written on {date}; {software}",
                    date=dated(subject.written),
                    software=short(told.software, 80),
                ),
            ),
            Field(_("Team"), None, _("who took part, in which role")),
            Points(tuple(map(_, _SOURCES))),
            Field(
                _("Reasons to assess"),
                None,
                _("e.g. health data on a large scale, vulnerable people, a new technology; Article 35(3), WP248"),
            ),
            Field(
                _("Scope"),
                _("Making the release and sending it. Collection and other uses of the log are not in it."),
            ),
            Field(
                _("Completed, validated, to be published"),
                None,
                _("dates; which edition is published, if any"),
            ),
        ),
    )


def _description(subject: Subject) -> tuple[Section, ...]:
    return (
        _data(subject),
        Section(
            "A.1.1.b",
            _("Purposes"),
            (
                Field(
                    _("Purpose of sending it"),
                    None,
                    _("e.g. research on a process; which item is needed for which purpose"),
                ),
                Field(
                    _("Purpose of making it"), _("To share what holds of many cases without telling of any single one.")
                ),
            ),
        ),
        Section(
            "A.1.1.c",
            _("Secondary or compatible uses"),
            (
                Field(
                    _("Uses by recipients"),
                    None,
                    _("which are foreseen; is the release compatible with the collection?"),
                ),
            ),
        ),
        _nature_and_scope(subject),
    )


def _nature_and_scope(subject: Subject) -> Section:
    """Return how large it is, and of whom."""
    scope = _(
        "released cases: {cases}, events: {events}, variants: {variants}; the unit of protection is one {unit}.",
        cases=subject.cases,
        events=subject.events,
        variants=subject.variants,
        unit=subject.guarantee.unit,
    )
    before: tuple[Field, ...] = ()
    if subject.attacked is not None:
        a = subject.attacked
        before = (
            Field(
                _("Original (for the owner only)"),
                _(
                    "cases: {cases}, events: {events}, variants: {variants}, activities: {activities}",
                    cases=a.owner.cases,
                    events=a.events,
                    variants=a.variants,
                    activities=a.owner.activities,
                ),
            ),
        )
    return Section(
        "A.1.1.d",
        _("Nature, scope and context"),
        (
            Field(_("Nature"), _nature(subject)),
            Field(_("Scope"), scope),
            *before,
            Field(
                _("Context, cross-border"),
                None,
                _("relation to the people; where the recipients are, third countries"),
            ),
        ),
    )


def _data(subject: Subject) -> Section:
    """Return which data are read, and which are released."""
    told = subject.told
    attributes = ", ".join(short(name, 60) for name in subject.attributes[:40]) or pgettext("attributes", "none")
    return Section(
        "A.1.1.a",
        _("Personal data"),
        (
            table(
                (_("item"), _("in the original"), _("in the release")),
                (_("name of the case"), pgettext("data", "read"), _("no: made anew")),
                (_("activities and their order"), pgettext("data", "read"), _came_about(subject)),
                (
                    _("times"),
                    pgettext("data", "read") if told.timed else _("not used"),
                    _drawn(subject) if told.timed else pgettext("times", "none"),
                ),
                (_("attributes"), pgettext("data", "read") if subject.attributes else _("not used"), attributes),
            ),
            Field(_("Whose data, special categories"), None, _("patients, staff; data concerning health (Article 9)?")),
        ),
    )


def _means(subject: Subject) -> tuple[Section, ...]:
    told, g = subject.told, subject.guarantee
    return (
        Section(
            "A.1.2",
            _("Functional description"),
            (
                table(
                    (_("phase"), _("what happens")),
                    (_("reading"), _("the log is read on the controller's machine; what was wrong in it is listed")),
                    (
                        _("asking"),
                        _(
                            "the method asks questions of the log; each answer has noise, and is charged before "
                            "it is read"
                        ),
                    ),
                    (
                        _("making"),
                        _("the release is computed from the noisy answers alone")
                        if g.proven
                        else _("the release is computed; not from noisy answers alone"),
                    ),
                    (_("writing"), _("one file, whole or not at all, with its privacy metadata")),
                    (_("sending"), _("yours to fill: how it reaches whom")),
                    (_("deleting"), _("yours to fill: when the original, copies and the ledger are deleted")),
                ),
            ),
        ),
        Section(
            "A.1.3",
            _("Means and assets"),
            (
                Points(
                    (
                        _(
                            "{software}, a library and command; no network, no service",
                            software=short(told.software, 80),
                        ),
                        _("the file of the original, and whoever can read it"),
                        _("the ledger, which keeps what releases cost together"),
                        "; ".join(
                            [_("the file of the release"), *(f"{f.name}, SHA-256 {f.sha256}" for f in subject.files)]
                        ),
                    )
                ),
                Field(
                    _("Machines, people, rooms, contracts"),
                    None,
                    _("those whose failure would harm the people in the log"),
                ),
            ),
        ),
        Section(
            "A.1.4", _("Codes of conduct"), (Field(_("Approved codes that apply"), None, _("Article 40, or none")),)
        ),
    )


def _came_about(subject: Subject) -> str:
    n = subject.activities
    if subject.guarantee.proven:
        return ngettext("made from noisy answers; {n} activity", "made from noisy answers; {n} activities", n)
    return ngettext(
        "released, not from noisy answers alone; {n} activity",
        "released, not from noisy answers alone; {n} activities",
        n,
    )


def _drawn(subject: Subject) -> str:
    return _("drawn with noise") if subject.guarantee.proven else _("released")


def _nature(subject: Subject) -> str:
    g = subject.guarantee
    if not g.proven:
        return _("Released with {method}; no differential privacy is derived.", method=short(subject.told.method, 80))
    delta = f", δ = {figure(g.delta)}" if g.delta else ""
    return _(
        "Randomisation: differential privacy with {parameters}; {noise}.",
        parameters=f"ε = {figure(g.epsilon)}{delta}",
        noise=stated(g.numerics),
    )
