"""Part A: an annex in the order of the template for data protection impact assessments of the European Data Protection
Board (version 1.0 of 10 March 2026, published for consultation): sections 0 to 2. It speaks of making and sending the
release, not of the collection of the log. What only the controller knows is left to them, with a hint."""

from __future__ import annotations

from veilog._language import dated, gettext, gettext_noop, pgettext
from veilog.report.dossier.dpia_risks import considerations
from veilog.report.dossier.parts import Field, Part, Points, Section, Table, Text, table
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


def dpia(subject: Subject) -> Part:
    """Return the part."""
    return Part(
        "A",
        gettext("Annex to a data protection impact assessment"),
        gettext(
            "It helps to fill the template of the European Data Protection Board (version 1.0, for "
            "consultation), in its order, for one processing: making a release of an event log, and sending it. "
            "What is marked “yours to fill” no program can know."
        ),
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
            gettext("Controllers"),
            (
                Field(
                    gettext("Controller, unit responsible, contact"),
                    None,
                    gettext("who decides why and how it is released"),
                ),
                Field(gettext("Data protection officer"), None, gettext("name and contact")),
            ),
        ),
        Section(
            "A.0.2",
            gettext("Processors"),
            (
                Field(
                    gettext("Software"),
                    gettext(
                        "{software} runs on the controller's machine and sends nothing anywhere.",
                        software=short(told.software, 80),
                    ),
                ),
                Field(
                    gettext("Processors"),
                    None,
                    gettext("who runs that machine, if not you (hosting, IT service), and their tasks"),
                ),
            ),
        ),
        Section(
            "A.0.3",
            gettext("Name of the processing"),
            (
                Field(
                    gettext("Proposed name"),
                    gettext("Release of an event log with {method}", method=short(told.method, 80)),
                ),
                Field(gettext("Name and version in your record of processing"), None, gettext("Article 30")),
            ),
        ),
        Section(
            "A.0.4",
            gettext("Planning"),
            (
                Field(gettext("This page was written"), dated(subject.written)),
                Field(
                    gettext("Start and end"),
                    None,
                    gettext("when the release is sent, for how long it is offered, when it is withdrawn"),
                ),
            ),
        ),
        Section(
            "A.0.5",
            gettext("Technical sheet of the assessment"),
            (
                Field(
                    gettext("Version"),
                    gettext(
                        "annex written on {date}; {software}",
                        date=dated(subject.written),
                        software=short(told.software, 80),
                    ),
                ),
                Field(gettext("Team"), None, gettext("who took part, in which role")),
                Points(tuple(map(gettext, _SOURCES))),
                Field(
                    gettext("Reasons to assess"),
                    None,
                    gettext(
                        "e.g. health data on a large scale, vulnerable people, a new technology; Article 35(3), WP248"
                    ),
                ),
                Field(
                    gettext("Scope"),
                    gettext("Making the release and sending it. Collection and other uses of the log are not in it."),
                ),
                Field(
                    gettext("Completed, validated, to be published"),
                    None,
                    gettext("dates; the edition for outside may be published"),
                ),
            ),
        ),
    )


def _description(subject: Subject) -> tuple[Section, ...]:
    told, g = subject.told, subject.guarantee
    attributes = ", ".join(short(name, 60) for name in subject.attributes[:40]) or pgettext("attributes", "none")
    scope = gettext(
        "{cases} released cases, {events} events, {variants} variants; the unit of protection is one {unit}.",
        cases=subject.cases,
        events=subject.events,
        variants=subject.variants,
        unit=g.unit,
    )
    before: tuple[Field, ...] = ()
    if subject.attacked is not None:
        a = subject.attacked
        before = (
            Field(
                gettext("Original (for the owner only)"),
                gettext(
                    "{cases} cases, {events} events, {variants} variants, {activities} activities",
                    cases=a.owner.cases,
                    events=a.events,
                    variants=a.variants,
                    activities=a.owner.activities,
                ),
            ),
        )
    return (
        Section(
            "A.1.1.a",
            gettext("Personal data"),
            (
                table(
                    (gettext("item"), gettext("in the original"), gettext("in the release")),
                    (gettext("name of the case"), pgettext("data", "read"), gettext("no: made anew")),
                    (
                        gettext("activities and their order"),
                        pgettext("data", "read"),
                        _came_about(subject),
                    ),
                    (
                        gettext("times"),
                        pgettext("data", "read") if told.timed else gettext("not used"),
                        _drawn(subject) if told.timed else pgettext("times", "none"),
                    ),
                    (
                        gettext("attributes"),
                        pgettext("data", "read") if subject.attributes else gettext("not used"),
                        attributes,
                    ),
                ),
                Field(
                    gettext("Whose data, special categories"),
                    None,
                    gettext("patients, staff; data concerning health (Article 9)?"),
                ),
            ),
        ),
        Section(
            "A.1.1.b",
            gettext("Purposes"),
            (
                Field(
                    gettext("Purpose of sending it"),
                    None,
                    gettext("e.g. research on a process; which item is needed for which purpose"),
                ),
                Field(
                    gettext("Purpose of making it"),
                    gettext("To share what holds of many cases without telling of any single one."),
                ),
            ),
        ),
        Section(
            "A.1.1.c",
            gettext("Secondary or compatible uses"),
            (
                Field(
                    gettext("Uses by recipients"),
                    None,
                    gettext("which are foreseen; is the release compatible with the collection?"),
                ),
            ),
        ),
        Section(
            "A.1.1.d",
            gettext("Nature, scope and context"),
            (
                Field(gettext("Nature"), _nature(subject)),
                Field(gettext("Scope"), scope),
                *before,
                Field(
                    gettext("Context, cross-border"),
                    None,
                    gettext("relation to the people; where the recipients are, third countries"),
                ),
            ),
        ),
    )


def _means(subject: Subject) -> tuple[Section, ...]:
    told, g = subject.told, subject.guarantee
    return (
        Section(
            "A.1.2",
            gettext("Functional description"),
            (
                table(
                    (gettext("phase"), gettext("what happens")),
                    (
                        gettext("reading"),
                        gettext("the log is read on the controller's machine; what was wrong in it is listed"),
                    ),
                    (
                        gettext("asking"),
                        gettext(
                            "the method asks questions of the log; each answer has noise, and is charged before "
                            "it is read"
                        ),
                    ),
                    (
                        gettext("making"),
                        gettext("the release is computed from the noisy answers alone")
                        if g.proven
                        else gettext("the release is computed; not from noisy answers alone"),
                    ),
                    (gettext("writing"), gettext("one file, whole or not at all, with its privacy metadata")),
                    (gettext("sending"), gettext("yours to fill: how it reaches whom")),
                    (
                        gettext("deleting"),
                        gettext("yours to fill: when the original, copies and the ledger are deleted"),
                    ),
                ),
            ),
        ),
        Section(
            "A.1.3",
            gettext("Means and assets"),
            (
                Points(
                    (
                        gettext(
                            "{software}, a library and command; no network, no service",
                            software=short(told.software, 80),
                        ),
                        gettext("the file of the original, and whoever can read it"),
                        gettext("the ledger, which keeps what releases cost together"),
                        "; ".join(
                            [
                                gettext("the file of the release"),
                                *(f"{f.name}, SHA-256 {f.sha256}" for f in subject.files),
                            ]
                        ),
                    )
                ),
                Field(
                    gettext("Machines, people, rooms, contracts"),
                    None,
                    gettext("those whose failure would harm the people in the log"),
                ),
            ),
        ),
        Section(
            "A.1.4",
            gettext("Codes of conduct"),
            (Field(gettext("Approved codes that apply"), None, gettext("Article 40, or none")),),
        ),
    )


def _came_about(subject: Subject) -> str:
    n = subject.activities
    if subject.guarantee.proven:
        return gettext("made from noisy answers; {n} activities", n=n)
    return gettext("released, not from noisy answers alone; {n} activities", n=n)


def _attributes_and_times(subject: Subject) -> str:
    n = len(subject.attributes)
    if subject.told.timed:
        return gettext("Attributes released: {n}; times: yes.", n=n)
    return gettext("Attributes released: {n}; times: no.", n=n)


def _drawn(subject: Subject) -> str:
    return gettext("drawn with noise") if subject.guarantee.proven else gettext("released")


def _nature(subject: Subject) -> str:
    g = subject.guarantee
    if not g.proven:
        return gettext(
            "Released with {method}; no differential privacy is derived.", method=short(subject.told.method, 80)
        )
    delta = f", δ = {figure(g.delta)}" if g.delta else ""
    return gettext(
        "Randomisation: differential privacy with {parameters}; {noise}.",
        parameters=f"ε = {figure(g.epsilon)}{delta}",
        noise=stated(g.numerics),
    )


def _analysis(subject: Subject) -> tuple[Section, ...]:
    return (
        Section(
            "A.2.1.a",
            gettext("Legal basis"),
            (
                Field(
                    gettext("Article 6(1), for each purpose"),
                    None,
                    gettext("making a release is itself a processing of the original"),
                ),
                Text(
                    gettext(
                        "Whether the release is personal data is judged for each recipient and their means; see part "
                        "B and E."
                    )
                ),
            ),
        ),
        Section(
            "A.2.1.b",
            gettext("Special categories"),
            (
                Field(
                    gettext("Article 9(2), for each item"),
                    None,
                    gettext("e.g. (j) research or statistics with Article 89(1) and national law"),
                ),
            ),
        ),
        Section(
            "A.2.2.a",
            gettext("Minimisation and retention"),
            (
                Points(
                    (
                        gettext("Names of cases, their order and what was not asked for are not in the release."),
                        _attributes_and_times(subject),
                        gettext("What a release may cost in all is bounded by a budget, where a ledger has one."),
                    )
                ),
                Field(
                    gettext("Why each released item is needed"),
                    None,
                    gettext("could you do without times, or without an attribute?"),
                ),
                Field(
                    gettext("Recipients and retention"), None, gettext("of the release, of the original, of the ledger")
                ),
            ),
        ),
        Section(
            "A.2.2.b",
            gettext("Data quality"),
            (
                Text(gettext("Numbers carry noise on purpose. What may and may not be concluded is in part E.")),
                Field(
                    gettext("What quality the purpose needs"),
                    None,
                    gettext("veilog compare --purposes all says what was kept"),
                ),
            ),
        ),
    )


def _measures(subject: Subject) -> tuple[Section, ...]:
    return (
        Section("A.2.3.a", gettext("Principles of Article 5(1)"), (_principles(subject),)),
        Section("A.2.3.b", gettext("Rights of the people"), (_rights(),)),
        Section(
            "A.2.3.c",
            gettext("Consent, processors, transfers"),
            (Field(gettext("Articles 7 and 28, chapter V"), None, gettext("where they apply")),),
        ),
        Section(
            "A.2.3.d",
            gettext("Data protection by design and by default"),
            (
                Points(
                    (
                        gettext(
                            "A method sees the log only through questions whose answers have noise; nothing else can "
                            "set the guarantee."
                        ),
                        gettext("What a method needs as public has to be declared, or is listed as a condition."),
                        gettext("An epsilon above 10 is refused unless it is asked for in so many words."),
                        gettext(
                            "The default protects one case; persons with several cases need to be asked for (--unit)."
                        ),
                    )
                ),
                Field(gettext("Other measures"), None, gettext("who decides on budgets, who may release")),
            ),
        ),
        Section(
            "A.2.3.e",
            gettext("Security"),
            (
                Points(
                    (
                        gettext("Noise: {noise}.", noise=short(stated(subject.guarantee.numerics), 200)),
                        gettext("Files appear whole or not at all. Nothing is sent over a network."),
                        gettext(
                            "Not covered: timing of the run, memory, swap, backups, and everybody who can read the "
                            "original."
                        ),
                    )
                ),
                Field(
                    gettext("Access, encryption, backups, recovery"),
                    None,
                    gettext("Article 32, for the machine with the original"),
                ),
            ),
        ),
    )


def _principles(subject: Subject) -> Table:
    """What supports each principle."""
    kept = (
        gettext("the ledger, this dossier, the metadata in the file")
        if subject.guarantee.proven
        else gettext("this dossier, which says no")
    )
    return table(
        (gettext("principle"), gettext("what supports it"), gettext("status")),
        (gettext("fairness"), gettext("the same bound for every case, whatever is in it"), _status(subject)),
        (
            gettext("transparency"),
            gettext("method, parameters and guarantee are public; words to tell people are in part E"),
            gettext("partly: yours to publish"),
        ),
        (
            gettext("purpose limitation"),
            gettext("yours to fill: terms of use (part E has a proposal)"),
            gettext("yours to fill"),
        ),
        (gettext("data minimisation"), gettext("see A.2.2.a"), _status(subject)),
        (
            gettext("accuracy"),
            gettext("noise is stated; part E says what may not be concluded"),
            gettext("implemented"),
        ),
        (gettext("storage limitation"), gettext("yours to fill"), gettext("yours to fill")),
        (gettext("integrity and confidentiality"), gettext("see A.2.3.e and part B"), _status(subject)),
        (gettext("accountability"), kept, gettext("implemented")),
    )


def _status(subject: Subject) -> str:
    return gettext("implemented") if subject.proven else gettext("not implemented: nothing is proven")


def _rights() -> Table:
    """What supports each right."""
    return table(
        (gettext("right"), gettext("what to know")),
        (
            gettext("information (12 to 14)"),
            gettext("yours to fill: tell people that such releases are made; part E has words for it"),
        ),
        (
            gettext("access, portability (15, 20)"),
            gettext("asked of the original; no row of the release can be looked up by a name"),
        ),
        (
            gettext("rectification, erasure (16, 17, 19)"),
            gettext("in the original, and in releases made later; a release that is out cannot be called back"),
        ),
        (gettext("objection, restriction (18, 21)"), gettext("leave the person's cases out before the next release")),
        (gettext("automated decisions (22)"), gettext("none is made by the program")),
    )
