"""Section 2 of the annex: legal basis, necessity of what is released, principles, rights, and measures."""

from __future__ import annotations

from veilog._language import gettext as _
from veilog.report.dossier.parts import DossierTable, Field, Points, Section, Text, table
from veilog.report.dossier.subject import Subject
from veilog.report.explorer import short
from veilog.report.stated import stated

__all__ = ["compliance"]


def compliance(subject: Subject) -> tuple[Section, ...]:
    """Return the sections."""
    return (*_analysis(subject), *_measures(subject))


def _analysis(subject: Subject) -> tuple[Section, ...]:
    return (
        Section(
            "A.2.1.a",
            _("Legal basis"),
            (
                Field(
                    _("Article 6(1), for each purpose"),
                    None,
                    _("making a release is itself a processing of the original"),
                ),
                Text(
                    _(
                        "Whether the release is personal data is judged for each recipient and their means; see part "
                        "B and E."
                    )
                ),
            ),
        ),
        Section(
            "A.2.1.b",
            _("Special categories"),
            (
                Field(
                    _("Article 9(2), for each item"),
                    None,
                    _("e.g. (j) research or statistics with Article 89(1) and national law"),
                ),
            ),
        ),
        Section(
            "A.2.2.a",
            _("Minimisation and retention"),
            (
                Points(
                    (
                        _("Names of cases, their order and what was not asked for are not in the release."),
                        _attributes_and_times(subject),
                        _("What a release may cost in all is bounded by a budget, where a ledger has one."),
                    )
                ),
                Field(
                    _("Why each released item is needed"),
                    None,
                    _("could you do without times, or without an attribute?"),
                ),
                Field(_("Recipients and retention"), None, _("of the release, of the original, of the ledger")),
            ),
        ),
        Section(
            "A.2.2.b",
            _("Data quality"),
            (
                Text(_("Numbers carry noise on purpose. What may and may not be concluded is in part E.")),
                Field(_("What quality the purpose needs"), None, _("veilog compare --purposes all says what was kept")),
            ),
        ),
    )


def _measures(subject: Subject) -> tuple[Section, ...]:
    return (
        Section("A.2.3.a", _("Principles of Article 5(1)"), (_principles(subject),)),
        Section("A.2.3.b", _("Rights of the people"), (_rights(),)),
        Section(
            "A.2.3.c",
            _("Consent, processors, transfers"),
            (Field(_("Articles 7 and 28, chapter V"), None, _("where they apply")),),
        ),
        Section(
            "A.2.3.d",
            _("Data protection by design and by default"),
            (
                Points(
                    (
                        _(
                            "A method sees the log only through questions whose answers have noise; nothing else can "
                            "set the guarantee."
                        ),
                        _("What a method needs as public has to be declared, or is listed as a condition."),
                        _("A protection level of none in practice is refused unless it is asked for in so many words."),
                        _("The default protects one case; persons with several cases need to be asked for (--unit)."),
                    )
                ),
                Field(_("Other measures"), None, _("who decides on budgets, who may release")),
            ),
        ),
        Section(
            "A.2.3.e",
            _("Security"),
            (
                Points(
                    (
                        _("Noise: {noise}.", noise=short(stated(subject.guarantee.numerics), 200)),
                        _("Files appear whole or not at all. Nothing is sent over a network."),
                        _(
                            "Not covered: timing of the run, memory, swap, backups, and everybody who can read the "
                            "original."
                        ),
                    )
                ),
                Field(
                    _("Access, encryption, backups, recovery"), None, _("Article 32, for the machine with the original")
                ),
            ),
        ),
    )


def _principles(subject: Subject) -> DossierTable:
    """What supports each principle."""
    kept = (
        _("the ledger, this dossier, the metadata in the file")
        if subject.guarantee.proven
        else _("this dossier, which says no")
    )
    return table(
        (_("principle"), _("what supports it"), _("status")),
        (_("fairness"), _("the same bound for every case, whatever is in it"), _status(subject)),
        (
            _("transparency"),
            _("method, parameters and guarantee are public; words to tell people are in part E"),
            _("partly: yours to publish"),
        ),
        (_("purpose limitation"), _("yours to fill: terms of use (part E has a proposal)"), _("yours to fill")),
        (_("data minimisation"), _("see A.2.2.a"), _status(subject)),
        (_("accuracy"), _("noise is stated; part E says what may not be concluded"), _("implemented")),
        (_("storage limitation"), _("yours to fill"), _("yours to fill")),
        (_("integrity and confidentiality"), _("see A.2.3.e and part B"), _status(subject)),
        (_("accountability"), kept, _("implemented")),
    )


def _status(subject: Subject) -> str:
    return _("implemented") if subject.proven else _("not implemented: nothing is proven")


def _rights() -> DossierTable:
    """What supports each right."""
    return table(
        (_("right"), _("what to know")),
        (
            _("information (12 to 14)"),
            _("yours to fill: tell people that such releases are made; part E has words for it"),
        ),
        (
            _("access, portability (15, 20)"),
            _("asked of the original; no row of the release can be looked up by a name"),
        ),
        (
            _("rectification, erasure (16, 17, 19)"),
            _("in the original, and in releases made later; a release that is out cannot be called back"),
        ),
        (_("objection, restriction (18, 21)"), _("leave the person's cases out before the next release")),
        (_("automated decisions (22)"), _("none is made by the program")),
    )


def _attributes_and_times(subject: Subject) -> str:
    n = len(subject.attributes)
    if subject.told.timed:
        return _("Attributes released: {n}; times: yes.", n=n)
    return _("Attributes released: {n}; times: no.", n=n)
