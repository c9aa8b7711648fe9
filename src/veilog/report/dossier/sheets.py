"""Parts E and F: a sheet for the recipient, and one for the output check of a secure processing environment."""

from __future__ import annotations

from veilog.report.dossier.parts import Field, Part, Points, Section, Table, Text, table
from veilog.report.dossier.subject import Subject
from veilog.report.figures import figure
from veilog.report.words import factor, not_to_conclude

__all__ = ["output_check", "recipient"]


def recipient(subject: Subject) -> Part:
    """Return the sheet that goes with the release."""
    g = subject.guarantee
    have = [
        f"An event log: {subject.cases:,} cases, {subject.events:,} events, {subject.activities:,} activities.",
        "It has times."
        if subject.told.timed
        else "It has no times: its timestamps carry the order of events and nothing else.",
        f"It has {len(subject.attributes)} attributes." if subject.attributes else "It has no attributes.",
        "Names of cases are made anew" + (", and cases are in random order." if g.proven else "."),
        *(f"{file.name}: SHA-256 {file.sha256}" for file in subject.files),
    ]
    may = (
        "What is frequent: the main paths, how often the frequent activities and steps occur, within the noise.",
        "That a model which is discovered from it describes the usual process.",
        "Shares and differences that are large beside the noise; a few cases are not.",
    )
    return Part(
        "E",
        "For the recipient",
        "One sheet that goes with the file.",
        (
            Section("E.1", "What you have", (Points(tuple(have)),)),
            Section("E.2", "What may be concluded", (Points(may) if subject.cases else Text("Nothing: it is empty."),)),
            Section(
                "E.3",
                "What may not be concluded",
                (Points(tuple(not_to_conclude(subject.told, subject.empty, False))),),
            ),
            Section("E.4", "What may not be done (a proposal for your terms)", (Points(_terms(subject)),)),
            Section("E.5", "What people in the log may be told", (Text(_to_people(subject)),)),
            Section(
                "E.6",
                "Whom to ask",
                (
                    Field("Questions, errors, something that looks like a person", None, "name and address"),
                    Text(
                        f"The guarantee is {'as stated in part C' if g.proven else 'none'}; a file that has "
                        "another SHA-256 is another file."
                    ),
                ),
            ),
        ),
    )


def _terms(subject: Subject) -> tuple[str, ...]:
    terms = [
        "Do not try to find out who is in it, and do not link it with other data for that.",
        "If you believe that you recognise somebody, tell the owner, and nobody else.",
        "Do not use it for decisions about single people.",
        "Keep this sheet with the file; pass on both or neither.",
    ]
    if subject.guarantee.strength == "moderate":
        terms.append("Do not pass it on without the owner's consent.")
    if not subject.proven or subject.guarantee.strength == "weak":
        terms.append("Treat it as data about people, under the rules for the original.")
    return tuple(terms)


def _to_people(subject: Subject) -> str:
    g = subject.guarantee
    if not subject.proven:
        return "Nothing can be promised to them: no protection is proven that would be worth something."
    unit = "your case was" if g.unit == "case" else "you and your cases were"
    failure = f", but for a chance of {figure(g.delta)}" if g.delta else ""
    return (
        f"We share a log that was computed with noise. Whether {unit} among the data changes the chance of any shared "
        f"result by a factor of at most {factor(g.epsilon)}{failure}. What is true of people in general can be "
        f"seen in it."
    )


def output_check(subject: Subject) -> Part:
    """Return the sheet for whoever checks what leaves a secure processing environment."""
    return Part(
        "F",
        "For an output check",
        "For health data access bodies, trusted research environments and statistical offices, which look at "
        "everything "
        "that is to leave. Under the European Health Data Space only data that are not personal may be downloaded, and "
        "synthetic data are judged case by case; whether these are personal the body decides, and not the program.",
        (
            Section("F.1", "What the output is", (_output(subject),)),
            Section("F.2", "Usual checks", (_checks(subject),)),
            Section("F.3", "How it was made, and the evidence", (_evidence(subject),)),
            Section("F.4", "Result of the check", (_result(subject), *_sign())),
        ),
    )


def _output(subject: Subject) -> Table:
    g = subject.guarantee
    return table(
        ("question", "answer"),
        ("kind", "an event log (microdata): rows made of noisy answers" if g.proven else "an event log (microdata)"),
        ("size", f"{subject.cases:,} cases, {subject.events:,} events, {subject.variants:,} variants"),
        ("fields", ", ".join(["activity", *(["time"] if subject.told.timed else []), *subject.attributes[:40]])),
        ("files", "; ".join(f"{f.name} ({f.sha256})" for f in subject.files) or "yours to fill: name and SHA-256"),
        ("project, permit, person", "yours to fill"),
    )


def _checks(subject: Subject) -> Table:
    rare = (
        f"{subject.once:,} of {subject.variants:,} released variants have one case; the rarest has {subject.smallest:,}"
    )
    noise = "counts are noisy" if subject.guarantee.proven else "counts may be exact"
    return table(
        ("check", "what is found in the release"),
        (
            "smallest counts",
            f"{rare}. {noise}: a rule for smallest counts is made for exact ones, apply it if yours asks for it",
        ),
        (
            "cases that stand alone",
            "see smallest counts; in a proven release such a row need not be anybody's"
            if subject.proven
            else "see smallest counts; each may be somebody's",
        ),
        (
            "differencing with other outputs",
            "other releases of the same data add their ε (B.2); exact tables of them do not fit beside it",
        ),
        ("dominance", "the guarantee is for each case alike; persons with several cases: see the first page"),
        (
            "direct identifiers",
            "names of cases are made up; look through the names of activities"
            + (" and values of attributes" if subject.attributes else ""),
        ),
        ("dates", _dates(subject)),
        ("free text", "values of: " + ", ".join(subject.attributes[:40]) if subject.attributes else "none"),
        ("hidden content", "one table of events with metadata that state the guarantee; no comments, no history"),
        (
            "extremes",
            "rare paths are lost or noise; whether the greatest length is public stands among the conditions"
            if subject.guarantee.proven
            else "they may be those of the original",
        ),
    )


def _dates(subject: Subject) -> str:
    if not subject.told.timed:
        return "none that mean anything: an hour apart, from 1970 on"
    return "drawn with noise; not those of real events" if subject.guarantee.proven else "may be those of real events"


def _evidence(subject: Subject) -> Table:
    g = subject.guarantee
    return table(
        ("question", "answer"),
        ("method of generation", f"{subject.told.method}, {subject.told.software}"),
        ("formal guarantee", f"ε = {figure(g.epsilon)}, δ = {figure(g.delta)} for one {g.unit}" if g.proven else "no"),
        (
            "who derived it",
            "the file says so; ask the owner" if subject.told.from_file else "the program, from the questions asked",
        ),
        ("conditions", "; ".join(c.text for c in g.conditions) or "none"),
        ("risk of singling out, linking, inference", "part B"),
        ("similarity to the original as evidence", "none is claimed: similarity does not show privacy"),
    )


def _result(subject: Subject) -> Text:
    if not subject.proven:
        return Text("No: the program knows of no protection that would be worth something.", strong=True)
    return Text(f"{subject.decision.headline} {subject.decision.whom} Conditions are on the first page.")


def _sign() -> tuple[Points, Field]:
    return (
        Points(("may leave", "may leave after: …", "may not leave"), ("☐", "☐", "☐")),
        Field("Checked by, date", None, "two people where your rules ask for it"),
    )
