"""Parts E and F: a sheet for the recipient, and one for the output check of a secure processing environment."""

from __future__ import annotations

from veilog._language import gettext, gettext_noop, pgettext
from veilog.report.dossier.parts import Field, Part, Points, Section, Table, Text, table
from veilog.report.dossier.subject import Subject
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
        "shared result by a factor of at most {factor}, but for a chance of {delta}. What is true of people in general "
        "can be seen in it."
    ),
    ("person", False): gettext_noop(
        "We share a log that was computed with noise. Whether you and your cases were among the data changes the "
        "chance of any shared result by a factor of at most {factor}. What is true of people in general can be seen in "
        "it."
    ),
    ("person", True): gettext_noop(
        "We share a log that was computed with noise. Whether you and your cases were among the data changes the "
        "chance of any shared result by a factor of at most {factor}, but for a chance of {delta}. What is true of "
        "people in general can be seen in it."
    ),
}
"""By what is protected, and whether there is a delta."""


def recipient(subject: Subject) -> Part:
    """Return the sheet that goes with the release."""
    g = subject.guarantee
    have = [
        gettext(
            "An event log: {cases} cases, {events} events, {activities} activities.",
            cases=subject.cases,
            events=subject.events,
            activities=subject.activities,
        ),
        gettext("It has times.")
        if subject.told.timed
        else gettext("It has no times: its timestamps carry the order of events and nothing else."),
        gettext("It has {n} attributes.", n=len(subject.attributes))
        if subject.attributes
        else gettext("It has no attributes."),
        gettext("Names of cases are made anew, and cases are in random order.")
        if g.proven
        else gettext("Names of cases are made anew."),
        *(f"{file.name}: SHA-256 {file.sha256}" for file in subject.files),
    ]
    may = (
        gettext(
            "What is frequent: the main paths, how often the frequent activities and steps occur, within the noise."
        ),
        gettext("That a model which is discovered from it describes the usual process."),
        gettext("Shares and differences that are large beside the noise; a few cases are not."),
    )
    return Part(
        "E",
        gettext("For the recipient"),
        gettext("One sheet that goes with the file."),
        (
            Section("E.1", gettext("What you have"), (Points(tuple(have)),)),
            Section(
                "E.2",
                gettext("What may be concluded"),
                (Points(may) if subject.cases else Text(gettext("Nothing: it is empty.")),),
            ),
            Section(
                "E.3",
                gettext("What may not be concluded"),
                (Points(tuple(not_to_conclude(subject.told, subject.empty, False))),),
            ),
            Section("E.4", gettext("What may not be done (a proposal for your terms)"), (Points(_terms(subject)),)),
            Section("E.5", gettext("What people in the log may be told"), (Text(_to_people(subject)),)),
            Section(
                "E.6",
                gettext("Whom to ask"),
                (
                    Field(
                        gettext("Questions, errors, something that looks like a person"),
                        None,
                        gettext("name and address"),
                    ),
                    Text(
                        gettext(
                            "The guarantee is as stated in part C; a file that has another SHA-256 is another file."
                        )
                        if g.proven
                        else gettext("The guarantee is none; a file that has another SHA-256 is another file.")
                    ),
                ),
            ),
        ),
    )


def _terms(subject: Subject) -> tuple[str, ...]:
    terms = [
        gettext("Do not try to find out who is in it, and do not link it with other data for that."),
        gettext("If you believe that you recognise somebody, tell the owner, and nobody else."),
        gettext("Do not use it for decisions about single people."),
        gettext("Keep this sheet with the file; pass on both or neither."),
    ]
    if subject.guarantee.strength == "moderate":
        terms.append(gettext("Do not pass it on without the owner's consent."))
    if not subject.proven or subject.guarantee.strength == "weak":
        terms.append(gettext("Treat it as data about people, under the rules for the original."))
    return tuple(terms)


def _to_people(subject: Subject) -> str:
    g = subject.guarantee
    if not subject.proven:
        return gettext("Nothing can be promised to them: no protection is proven that would be worth something.")
    sentence = _TO_PEOPLE["case" if g.unit == "case" else "person", bool(g.delta)]
    return gettext(sentence, factor=factor(g.epsilon), delta=figure(g.delta))


def output_check(subject: Subject) -> Part:
    """Return the sheet for whoever checks what leaves a secure processing environment."""
    return Part(
        "F",
        gettext("For an output check"),
        gettext(
            "For health data access bodies, trusted research environments and statistical offices, which look at "
            "everything that is to leave. Under the European Health Data Space only data that are not personal "
            "may be downloaded, and synthetic data are judged case by case; whether these are personal the body "
            "decides, and not the program."
        ),
        (
            Section("F.1", gettext("What the output is"), (_output(subject),)),
            Section("F.2", gettext("Usual checks"), (_checks(subject),)),
            Section("F.3", gettext("How it was made, and the evidence"), (_evidence(subject),)),
            Section("F.4", gettext("Result of the check"), (_result(subject), *_sign())),
        ),
    )


def _output(subject: Subject) -> Table:
    g = subject.guarantee
    return table(
        (gettext("question"), gettext("answer")),
        (
            gettext("kind"),
            gettext("an event log (microdata): rows made of noisy answers")
            if g.proven
            else gettext("an event log (microdata)"),
        ),
        (
            gettext("size"),
            gettext(
                "{cases} cases, {events} events, {variants} variants",
                cases=subject.cases,
                events=subject.events,
                variants=subject.variants,
            ),
        ),
        (
            gettext("fields"),
            ", ".join(
                [gettext("activity"), *([gettext("time")] if subject.told.timed else []), *subject.attributes[:40]]
            ),
        ),
        (
            gettext("files"),
            "; ".join(f"{f.name} ({f.sha256})" for f in subject.files) or gettext("yours to fill: name and SHA-256"),
        ),
        (gettext("project, permit, person"), gettext("yours to fill")),
    )


def _checks(subject: Subject) -> Table:
    return table(
        (gettext("check"), gettext("what is found in the release")),
        (
            gettext("smallest counts"),
            _rarest(subject),
        ),
        (
            gettext("cases that stand alone"),
            gettext("see smallest counts; in a proven release such a row need not be anybody's")
            if subject.proven
            else gettext("see smallest counts; each may be somebody's"),
        ),
        (
            gettext("differencing with other outputs"),
            gettext("other releases of the same data add their ε (B.2); exact tables of them do not fit beside it"),
        ),
        (
            gettext("dominance"),
            gettext("the guarantee is for each case alike; persons with several cases: see the first page"),
        ),
        (
            gettext("direct identifiers"),
            gettext("names of cases are made up; look through the names of activities and values of attributes")
            if subject.attributes
            else gettext("names of cases are made up; look through the names of activities"),
        ),
        (gettext("dates"), _dates(subject)),
        (
            gettext("free text"),
            gettext("values of: {names}", names=", ".join(subject.attributes[:40]))
            if subject.attributes
            else pgettext("free text", "none"),
        ),
        (
            gettext("hidden content"),
            gettext("one table of events with metadata that state the guarantee; no comments, no history"),
        ),
        (
            gettext("extremes"),
            gettext("rare paths are lost or noise; whether the greatest length is public stands among the conditions")
            if subject.guarantee.proven
            else gettext("they may be those of the original"),
        ),
    )


def _rarest(subject: Subject) -> str:
    numbers = {"once": subject.once, "variants": subject.variants, "smallest": subject.smallest}
    if subject.guarantee.proven:
        return gettext(
            "{once} of {variants} released variants have one case; the rarest has {smallest}. counts are noisy: a rule "
            "for smallest counts is made for exact ones, apply it if yours asks for it",
            **numbers,
        )
    return gettext(
        "{once} of {variants} released variants have one case; the rarest has {smallest}. counts may be exact: a rule "
        "for smallest counts is made for exact ones, apply it if yours asks for it",
        **numbers,
    )


def _dates(subject: Subject) -> str:
    if not subject.told.timed:
        return gettext("none that mean anything: an hour apart, from 1970 on")
    return (
        gettext("drawn with noise; not those of real events")
        if subject.guarantee.proven
        else gettext("may be those of real events")
    )


def _evidence(subject: Subject) -> Table:
    g = subject.guarantee
    return table(
        (gettext("question"), gettext("answer")),
        (gettext("method of generation"), f"{subject.told.method}, {subject.told.software}"),
        (
            gettext("formal guarantee"),
            gettext(
                "ε = {epsilon}, δ = {delta} for one {unit}",
                epsilon=figure(g.epsilon),
                delta=figure(g.delta),
                unit=g.unit,
            )
            if g.proven
            else gettext("no"),
        ),
        (
            gettext("who derived it"),
            gettext("the file says so; ask the owner")
            if subject.told.from_file
            else gettext("the program, from the questions asked"),
        ),
        (gettext("conditions"), "; ".join(stated(c.text) for c in g.conditions) or pgettext("conditions", "none")),
        (gettext("risk of singling out, linking, inference"), gettext("part B")),
        (
            gettext("similarity to the original as evidence"),
            gettext("none is claimed: similarity does not show privacy"),
        ),
    )


def _result(subject: Subject) -> Text:
    if not subject.proven:
        return Text(gettext("No: the program knows of no protection that would be worth something."), strong=True)
    return Text(
        " ".join([subject.decision.headline, subject.decision.whom, gettext("Conditions are on the first page.")])
    )


def _sign() -> tuple[Points, Field]:
    return (
        Points((gettext("may leave"), gettext("may leave after: …"), gettext("may not leave")), ("☐", "☐", "☐")),
        Field(gettext("Checked by, date"), None, gettext("two people where your rules ask for it")),
    )
