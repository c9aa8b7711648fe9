"""Parts E and F: a sheet for the recipient, and one for the output check of a secure processing environment."""

from __future__ import annotations

from veilog._language import gettext as _
from veilog._language import gettext_noop, ngettext, pgettext
from veilog.report.dossier.parts import DossierPart, DossierTable, Field, Points, Section, Text, table
from veilog.report.dossier.subject import Subject
from veilog.report.explorer import clean
from veilog.report.figures import figure
from veilog.report.stated import stated
from veilog.report.words import factor, not_to_conclude

__all__ = ["output_check", "recipient"]

_TO_PEOPLE = {
    ("case", False): gettext_noop(
        "We share a log that was computed with noise. Whether your case was among the data changes the chance of any "
        "shared result by a factor of at most {factor}. What is true of people in general can be seen in it."
    ),
    ("case", True): gettext_noop(
        "We share a log that was computed with noise. Whether your case was among the data changes the chance of any "
        "shared result by a factor of at most {factor}, plus {delta}. What is true of people in general "
        "can be seen in it."
    ),
    ("person", False): gettext_noop(
        "We share a log that was computed with noise. Whether you and your cases were among the data changes the "
        "chance of any shared result by a factor of at most {factor}. What is true of people in general can be seen in "
        "it."
    ),
    ("person", True): gettext_noop(
        "We share a log that was computed with noise. Whether you and your cases were among the data changes the "
        "chance of any shared result by a factor of at most {factor}, plus {delta}. What is true of "
        "people in general can be seen in it."
    ),
}
"""By what is protected, and whether there is a delta."""


def recipient(subject: Subject) -> DossierPart:
    """Return the sheet that goes with the release."""
    g = subject.guarantee
    have = [
        _(
            "An event log: {cases}, {events}, {activities}.",
            cases=ngettext("{n} case", "{n} cases", subject.cases),
            events=ngettext("{n} event", "{n} events", subject.events),
            activities=ngettext("{n} activity", "{n} activities", subject.activities),
        ),
        _("It has times.")
        if subject.told.timed
        else _("It has no times: its timestamps carry the order of events and nothing else."),
        ngettext("It has {n} attribute.", "It has {n} attributes.", len(subject.attributes))
        if subject.attributes
        else _("It has no attributes."),
        _("Names of cases are made anew, and cases are in random order.")
        if g.proven
        else _("Names of cases are made anew."),
        *(f"{file.name}: SHA-256 {file.sha256}" for file in subject.files),
    ]
    may = (
        _("What is frequent: the main paths, how often the frequent activities and steps occur, within the noise."),
        _("That a model which is discovered from it describes the usual process."),
        _("Shares and differences that are large beside the noise; a few cases are not."),
    )
    return DossierPart(
        "E",
        _("For the recipient"),
        _("One sheet that goes with the file."),
        (
            Section("E.1", _("What you have"), (Points(tuple(have)), *_remarked(subject))),
            Section(
                "E.2", _("What can be concluded"), (Points(may) if subject.cases else Text(_("Nothing: it is empty.")),)
            ),
            Section(
                "E.3",
                _("What cannot be concluded"),
                (Points((*not_to_conclude(subject.told, subject.empty, False), *_apart(subject))),),
            ),
            Section("E.4", _("What must not be done (a proposal for your terms)"), (Points(_terms(subject)),)),
            Section("E.5", _("Words for the people in the log"), (Text(_to_people(subject)),)),
            Section(
                "E.6",
                _("Whom to ask"),
                (
                    Field(_("Questions, errors, something that looks like a person"), None, _("name and address")),
                    Text(
                        _("The guarantee is as stated in part C; a file that has another SHA-256 is another file.")
                        if g.proven
                        else _("The guarantee is none; a file that has another SHA-256 is another file.")
                    ),
                ),
            ),
        ),
    )


def _apart(subject: Subject) -> tuple[str, ...]:
    """What is drawn apart, so that its going together with something else is lost."""
    if not (subject.told.timed and subject.attributes and subject.guarantee.proven):
        return ()
    return (
        _(
            "At which step cases with one value of an attribute lose time, or that no value goes with delays: "
            "attributes are joined with how long a case lasts, and when it starts, in a few parts, and only where that "
            "is remarked."
        ),
    )


def _remarked(subject: Subject) -> tuple[Text | Points, ...]:
    """What is left out of this release, rough or made up, as its owner was told; all of it public."""
    if not subject.guarantee.proven:
        return ()  # they may hold exact numbers of the original
    remarks = tuple(clean(stated(remark)) for remark in subject.told.remarks)
    return (Text(_("What its owner was told of it:")), Points(remarks)) if remarks else ()


def _terms(subject: Subject) -> tuple[str, ...]:
    terms = [
        _("Do not try to find out who is in it, and do not link it with other data for that."),
        _("If you believe that you recognise somebody, tell the owner, and nobody else."),
        _("Do not use it for decisions about single people."),
        _("Keep this sheet with the file; pass on both or neither."),
    ]
    if subject.guarantee.strength == "moderate":
        terms.append(_("Do not pass it on without the owner's consent."))
    if not subject.proven or subject.guarantee.strength == "weak":
        terms.append(_("Treat it as data about people, under the rules for the original."))
    return tuple(terms)


def _to_people(subject: Subject) -> str:
    g = subject.guarantee
    if not subject.proven:
        return _("Nothing can be promised to them: no protection is proven that would be worth something.")
    sentence = _TO_PEOPLE["case" if g.unit == "case" else "person", bool(g.delta)]
    return _(sentence, factor=factor(g.epsilon), delta=figure(g.delta))


def output_check(subject: Subject) -> DossierPart:
    """Return the sheet for whoever checks what leaves a secure processing environment."""
    return DossierPart(
        "F",
        _("For an output check"),
        _(
            "For health data access bodies, trusted research environments and statistical offices, which look at "
            "everything that is to leave. The European Health Data Space lets only data that are not personal "
            "be downloaded, and synthetic data are judged case by case; whether these are personal the body "
            "decides, and not the program."
        ),
        (
            Section("F.1", _("What the output is"), (_output(subject),)),
            Section("F.2", _("Usual checks"), (_checks(subject),)),
            Section("F.3", _("How it was made, and the evidence"), (_evidence(subject),)),
            Section("F.4", _("Result of the check"), (_result(subject), *_sign())),
        ),
    )


def _output(subject: Subject) -> DossierTable:
    g = subject.guarantee
    return table(
        (_("question"), _("answer")),
        (
            _("kind"),
            _("an event log (microdata): rows made of noisy answers") if g.proven else _("an event log (microdata)"),
        ),
        (
            _("size"),
            _(
                "cases: {cases}, events: {events}, variants: {variants}",
                cases=subject.cases,
                events=subject.events,
                variants=subject.variants,
            ),
        ),
        (
            _("fields"),
            ", ".join([_("activity"), *([_("time")] if subject.told.timed else []), *subject.attributes[:40]]),
        ),
        (
            _("files"),
            "; ".join(f"{f.name} ({f.sha256})" for f in subject.files) or _("yours to fill: name and SHA-256"),
        ),
        (_("project, permit, person"), _("yours to fill")),
    )


def _checks(subject: Subject) -> DossierTable:
    return table(
        (_("check"), _("what is found in the release")),
        (_("smallest counts"), _rarest(subject)),
        (
            _("cases that stand alone"),
            _("see smallest counts; in a proven release such a row need not be anybody's")
            if subject.proven
            else _("see smallest counts; each may be somebody's"),
        ),
        (
            _("differencing with other outputs"),
            _("other releases of the same data add their ε (B.2); exact tables of them do not fit beside it"),
        ),
        (_("dominance"), _("the guarantee is for each case alike; persons with several cases: see the first page")),
        (
            _("direct identifiers"),
            _("names of cases are made up; look through the names of activities and values of attributes")
            if subject.attributes
            else _("names of cases are made up; look through the names of activities"),
        ),
        (_("dates"), _dates(subject)),
        (
            _("free text"),
            _("values of: {names}", names=", ".join(subject.attributes[:40]))
            if subject.attributes
            else pgettext("free text", "none"),
        ),
        (_("hidden content"), _("one table of events with metadata that state the guarantee; no comments, no history")),
        (
            _("extremes"),
            _("rare paths are lost or noise; whether the greatest length is public stands among the conditions")
            if subject.guarantee.proven
            else _("they may be those of the original"),
        ),
    )


def _rarest(subject: Subject) -> str:
    numbers = {"once": subject.once, "variants": subject.variants, "smallest": subject.smallest}
    if subject.guarantee.proven:
        return _(
            "released variants with one case: {once} of {variants}; cases of the rarest: {smallest}. counts are noisy: "
            "a rule for smallest counts is made for exact ones, apply it if yours asks for it",
            **numbers,
        )
    return _(
        "released variants with one case: {once} of {variants}; cases of the rarest: {smallest}. counts may be exact: "
        "a rule for smallest counts is made for exact ones, apply it if yours asks for it",
        **numbers,
    )


def _dates(subject: Subject) -> str:
    if not subject.told.timed:
        return _("none that mean anything: an hour apart, from 1970 on")
    return (
        _("drawn with noise; not those of real events")
        if subject.guarantee.proven
        else _("may be those of real events")
    )


def _evidence(subject: Subject) -> DossierTable:
    g = subject.guarantee
    return table(
        (_("question"), _("answer")),
        (_("method of generation"), f"{subject.told.method}, {subject.told.software}"),
        (
            _("formal guarantee"),
            _(
                "ε = {epsilon}, δ = {delta} for one {unit}",
                epsilon=figure(g.epsilon),
                delta=figure(g.delta),
                unit=g.unit,
            )
            if g.proven
            else _("no"),
        ),
        (
            _("who derived it"),
            _("the file says so; ask the owner")
            if subject.told.from_file
            else _("the program, from the questions asked"),
        ),
        (_("conditions"), "; ".join(stated(c.text) for c in g.conditions) or pgettext("conditions", "none")),
        (_("risk of singling out, linking, inference"), _("part B")),
        (_("similarity to the original as evidence"), _("none is claimed: similarity does not show privacy")),
    )


def _result(subject: Subject) -> Text:
    if not subject.proven:
        return Text(_("No: the program knows of no protection that would be worth something."), strong=True)
    return Text(" ".join([subject.decision.headline, subject.decision.whom, _("Conditions are on the first page.")]))


def _sign() -> tuple[Points, Field]:
    return (
        Points((_("released"), _("released after: …"), _("not released")), ("☐", "☐", "☐")),
        Field(_("Checked by, date"), None, _("two people where your rules ask for it")),
    )
