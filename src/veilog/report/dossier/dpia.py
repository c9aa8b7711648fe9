"""Part A: an annex in the order of the template for data protection impact assessments of the European Data Protection
Board (version 1.0 of 10 March 2026, published for consultation): sections 0 to 2. It speaks of making and sending the
release, not of the collection of the log. What only the controller knows is left to them, with a hint."""

from __future__ import annotations

from veilog.report.dossier.dpia_risks import considerations
from veilog.report.dossier.parts import Field, Part, Points, Section, Table, Text, table
from veilog.report.dossier.subject import Subject
from veilog.report.explorer import short
from veilog.report.figures import figure

__all__ = ["dpia"]

_SOURCES = (
    "Template for data protection impact assessments, European Data Protection Board, version 1.0 (2026)",
    "Opinion 05/2014 on anonymisation techniques, Article 29 Working Party (WP216)",
    "Guidelines on data protection impact assessment, Article 29 Working Party (WP248 rev. 01)",
    "NIST SP 800-226, Guidelines for evaluating differential privacy guarantees (2025)",
    "What is proved of this release: veilog's pages “What is guaranteed” and “Guarantees”",
)


def dpia(subject: Subject) -> Part:
    """Return the part."""
    return Part(
        "A",
        "Annex to a data protection impact assessment",
        "It helps to fill the template of the European Data Protection Board (version 1.0, for consultation), in its "
        "order, for one processing: making a release of an event log, and sending it. What is marked “yours to "
        "fill” no "
        "program can know.",
        (
            *_overview(subject),
            *_description(subject),
            *_means(subject),
            *_analysis(subject),
            *_measures(subject),
            *considerations(subject),
        ),
    )


def _overview(subject: Subject) -> tuple[Section, ...]:
    told = subject.told
    return (
        Section(
            "A.0.1",
            "Controllers",
            (
                Field("Controller, unit responsible, contact", None, "who decides why and how it is released"),
                Field("Data protection officer", None, "name and contact"),
            ),
        ),
        Section(
            "A.0.2",
            "Processors",
            (
                Field(
                    "Software",
                    f"{short(told.software, 80)} runs on the controller's machine and sends nothing anywhere.",
                ),
                Field("Processors", None, "who runs that machine, if not you (hosting, IT service), and their tasks"),
            ),
        ),
        Section(
            "A.0.3",
            "Name of the processing",
            (
                Field("Proposed name", f"Release of an event log with {short(told.method, 80)}"),
                Field("Name and version in your record of processing", None, "Article 30"),
            ),
        ),
        Section(
            "A.0.4",
            "Planning",
            (
                Field("This page was written", subject.written),
                Field(
                    "Start and end", None, "when the release is sent, for how long it is offered, when it is withdrawn"
                ),
            ),
        ),
        Section(
            "A.0.5",
            "Technical sheet of the assessment",
            (
                Field("Version", f"annex written on {subject.written}; {short(told.software, 80)}"),
                Field("Team", None, "who took part, in which role"),
                Points(_SOURCES),
                Field(
                    "Reasons to assess",
                    None,
                    "e.g. health data on a large scale, vulnerable people, a new technology; Article 35(3), WP248",
                ),
                Field(
                    "Scope", "Making the release and sending it. Collection and other uses of the log are not in it."
                ),
                Field("Completed, validated, to be published", None, "dates; the edition for outside may be published"),
            ),
        ),
    )


def _description(subject: Subject) -> tuple[Section, ...]:
    told, g = subject.told, subject.guarantee
    attributes = ", ".join(short(name, 60) for name in subject.attributes[:40]) or "none"
    size = f"{subject.cases:,} released cases, {subject.events:,} events, {subject.variants:,} variants"
    before: tuple[Field, ...] = ()
    if subject.attacked is not None:
        a = subject.attacked
        before = (
            Field(
                "Original (for the owner only)",
                f"{a.owner.cases:,} cases, {a.events:,} events, {a.variants:,} variants, {a.owner.activities:,} "
                f"activities",
            ),
        )
    return (
        Section(
            "A.1.1.a",
            "Personal data",
            (
                table(
                    ("item", "in the original", "in the release"),
                    ("name of the case", "read", "no: made anew"),
                    (
                        "activities and their order",
                        "read",
                        f"{_came_about(subject)}; {subject.activities:,} activities",
                    ),
                    ("times", "read" if told.timed else "not used", _drawn(subject) if told.timed else "none"),
                    ("attributes", "read" if subject.attributes else "not used", attributes),
                ),
                Field("Whose data, special categories", None, "patients, staff; data concerning health (Article 9)?"),
            ),
        ),
        Section(
            "A.1.1.b",
            "Purposes",
            (
                Field(
                    "Purpose of sending it", None, "e.g. research on a process; which item is needed for which purpose"
                ),
                Field("Purpose of making it", "To share what holds of many cases without telling of any single one."),
            ),
        ),
        Section(
            "A.1.1.c",
            "Secondary or compatible uses",
            (Field("Uses by recipients", None, "which are foreseen; is the release compatible with the collection?"),),
        ),
        Section(
            "A.1.1.d",
            "Nature, scope and context",
            (
                Field("Nature", _nature(subject)),
                Field("Scope", f"{size}; the unit of protection is one {g.unit}."),
                *before,
                Field(
                    "Context, cross-border", None, "relation to the people; where the recipients are, third countries"
                ),
            ),
        ),
    )


def _means(subject: Subject) -> tuple[Section, ...]:
    told, g = subject.told, subject.guarantee
    return (
        Section(
            "A.1.2",
            "Functional description",
            (
                table(
                    ("phase", "what happens"),
                    ("reading", "the log is read on the controller's machine; what was wrong in it is listed"),
                    (
                        "asking",
                        "the method asks questions of the log; each answer has noise, and is charged before it is read",
                    ),
                    (
                        "making",
                        "the release is computed from the noisy answers alone"
                        if g.proven
                        else "the release is computed; not from noisy answers alone",
                    ),
                    ("writing", "one file, whole or not at all, with its privacy metadata"),
                    ("sending", "yours to fill: how it reaches whom"),
                    ("deleting", "yours to fill: when the original, copies and the ledger are deleted"),
                ),
            ),
        ),
        Section(
            "A.1.3",
            "Means and assets",
            (
                Points(
                    (
                        f"{short(told.software, 80)}, a library and command; no network, no service",
                        "the file of the original, and whoever can read it",
                        "the ledger, which keeps what releases cost together",
                        "the file of the release" + "".join(f"; {f.name}, SHA-256 {f.sha256}" for f in subject.files),
                    )
                ),
                Field(
                    "Machines, people, rooms, contracts", None, "those whose failure would harm the people in the log"
                ),
            ),
        ),
        Section("A.1.4", "Codes of conduct", (Field("Approved codes that apply", None, "Article 40, or none"),)),
    )


def _came_about(subject: Subject) -> str:
    return "made from noisy answers" if subject.guarantee.proven else "released, not from noisy answers alone"


def _drawn(subject: Subject) -> str:
    return "drawn with noise" if subject.guarantee.proven else "released"


def _nature(subject: Subject) -> str:
    g = subject.guarantee
    if not g.proven:
        return f"Released with {short(subject.told.method, 80)}; no differential privacy is derived."
    delta = f", δ = {figure(g.delta)}" if g.delta else ""
    return f"Randomisation: differential privacy with ε = {figure(g.epsilon)}{delta}; {g.numerics}."


def _analysis(subject: Subject) -> tuple[Section, ...]:
    return (
        Section(
            "A.2.1.a",
            "Legal basis",
            (
                Field(
                    "Article 6(1), for each purpose", None, "making a release is itself a processing of the original"
                ),
                Text(
                    "Whether the release is personal data is judged for each recipient and their means; see "
                    "part B and E."
                ),
            ),
        ),
        Section(
            "A.2.1.b",
            "Special categories",
            (
                Field(
                    "Article 9(2), for each item",
                    None,
                    "e.g. (j) research or statistics with Article 89(1) and national law",
                ),
            ),
        ),
        Section(
            "A.2.2.a",
            "Minimisation and retention",
            (
                Points(
                    (
                        "Names of cases, their order and what was not asked for are not in the release.",
                        f"Attributes released: {len(subject.attributes)}; times: "
                        f"{'yes' if subject.told.timed else 'no'}.",
                        "What a release may cost in all is bounded by a budget, where a ledger has one.",
                    )
                ),
                Field("Why each released item is needed", None, "could you do without times, or without an attribute?"),
                Field("Recipients and retention", None, "of the release, of the original, of the ledger"),
            ),
        ),
        Section(
            "A.2.2.b",
            "Data quality",
            (
                Text("Numbers carry noise on purpose. What may and may not be concluded is in part E."),
                Field("What quality the purpose needs", None, "veilog compare --purposes all says what was kept"),
            ),
        ),
    )


def _measures(subject: Subject) -> tuple[Section, ...]:
    return (
        Section("A.2.3.a", "Principles of Article 5(1)", (_principles(subject),)),
        Section("A.2.3.b", "Rights of the people", (_rights(),)),
        Section(
            "A.2.3.c",
            "Consent, processors, transfers",
            (Field("Articles 7 and 28, chapter V", None, "where they apply"),),
        ),
        Section(
            "A.2.3.d",
            "Data protection by design and by default",
            (
                Points(
                    (
                        "A method sees the log only through questions whose answers have noise; nothing else "
                        "can set the guarantee.",
                        "What a method needs as public has to be declared, or is listed as a condition.",
                        "An epsilon above 10 is refused unless it is asked for in so many words.",
                        "The default protects one case; persons with several cases need to be asked for (--unit).",
                    )
                ),
                Field("Other measures", None, "who decides on budgets, who may release"),
            ),
        ),
        Section(
            "A.2.3.e",
            "Security",
            (
                Points(
                    (
                        f"Noise: {short(subject.guarantee.numerics, 200)}.",
                        "Files appear whole or not at all. Nothing is sent over a network.",
                        "Not covered: timing of the run, memory, swap, backups, and everybody who can read the "
                        "original.",
                    )
                ),
                Field("Access, encryption, backups, recovery", None, "Article 32, for the machine with the original"),
            ),
        ),
    )


def _principles(subject: Subject) -> Table:
    """What supports each principle."""
    kept = (
        "the ledger, this dossier, the metadata in the file"
        if subject.guarantee.proven
        else "this dossier, which says no"
    )
    return table(
        ("principle", "what supports it", "status"),
        ("fairness", "the same bound for every case, whatever is in it", _status(subject)),
        (
            "transparency",
            "method, parameters and guarantee are public; words to tell people are in part E",
            "partly: yours to publish",
        ),
        ("purpose limitation", "yours to fill: terms of use (part E has a proposal)", "yours to fill"),
        ("data minimisation", "see A.2.2.a", _status(subject)),
        ("accuracy", "noise is stated; part E says what may not be concluded", "implemented"),
        ("storage limitation", "yours to fill", "yours to fill"),
        ("integrity and confidentiality", "see A.2.3.e and part B", _status(subject)),
        ("accountability", kept, "implemented"),
    )


def _status(subject: Subject) -> str:
    return "implemented" if subject.proven else "not implemented: nothing is proven"


def _rights() -> Table:
    """What supports each right."""
    return table(
        ("right", "what to know"),
        ("information (12 to 14)", "yours to fill: tell people that such releases are made; part E has words for it"),
        ("access, portability (15, 20)", "asked of the original; no row of the release can be looked up by a name"),
        (
            "rectification, erasure (16, 17, 19)",
            "in the original, and in releases made later; a release that is out cannot be called back",
        ),
        ("objection, restriction (18, 21)", "leave the person's cases out before the next release"),
        ("automated decisions (22)", "none is made by the program"),
    )
