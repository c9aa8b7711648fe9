"""Part G: thirty questions that an officer asks, and the section that answers each. They are written from the sources
that the parts name, and stand in the documentation, too."""

from __future__ import annotations

from dataclasses import dataclass

from veilog._language import gettext as _
from veilog.report.dossier.parts import DossierPart, Section, table

__all__ = ["QUESTIONS", "Question", "questions"]


@dataclass(frozen=True)
class Question:
    """A question, whose it is, and the section (or the sections, by commas) that answer it."""

    text: str
    source: str
    section: str


QUESTIONS: tuple[Question, ...] = (
    Question("What is proven, and what do I have to confirm?", "every officer", "0.1"),
    Question("Which file is this about, made when, and by what?", "every officer", "0.2"),
    Question("Who answers for it, and where do they sign?", "EDPB 0.1, 6", "0.3"),
    Question("Which personal data are read, and which leave?", "EDPB 1.1.a", "A.1.1.a"),
    Question("What is it for?", "EDPB 1.1.b", "A.1.1.b"),
    Question("What exactly happens to the data, step by step?", "EDPB 1.2", "A.1.2"),
    Question("On which machines, and does anything go over a network?", "EDPB 1.3", "A.1.3"),
    Question("On what legal basis is the release made?", "EDPB 2.1", "A.2.1.a"),
    Question("Is it the least that would do, and how long is it kept?", "EDPB 2.2", "A.2.2.a"),
    Question("How are the rights of the people served?", "EDPB 2.3.b", "A.2.3.b"),
    Question("What is done by design and by default?", "EDPB 2.3.d, Article 25", "A.2.3.d"),
    Question("What was weighed in its place?", "EDPB 3.2", "A.3.2"),
    Question("What can go wrong by accident or attack?", "EDPB 4.1.a", "A.4.1.a"),
    Question("What is the risk that is left, and who accepts it?", "EDPB 4.2.b", "A.4.2.b"),
    Question("What did the data protection officer advise?", "EDPB 5.1", "A.5.1"),
    Question("Can an individual be singled out?", "WP216", "B.1"),
    Question("Can records of an individual be linked?", "WP216", "B.2"),
    Question("What if a second release of the same data is made?", "WP216, NIST 800-226", "B.2"),
    Question("What if one person has many cases?", "NIST 800-226, unit of privacy", "B.2"),
    Question("Can something about an individual be inferred?", "WP216", "B.3"),
    Question("Against whom does this hold, and on what conditions?", "CJEU C-413/23 P; NIST 800-226", "B.4"),
    Question("What do ε and δ mean as chances?", "consensus framework 2025", "B.1"),
    Question("Which mechanisms, which unit, which variant?", "NIST 800-226, registry", "C.1, C.2"),
    Question("Is the noise drawn safely, and what of side channels?", "NIST 800-226", "C.3"),
    Question("Where is it registered?", "OpenDP Deployments Registry", "D.1"),
    Question("What can the recipient conclude, and what not?", "every recipient", "E.2, E.3"),
    Question("What must the recipient not do?", "CJEU C-413/23 P; terms of use", "E.4"),
    Question("What do we tell the people in the log?", "Articles 12 to 14", "E.5"),
    Question("Does it pass the usual output checks?", "EHDS; Findata; trusted research environments", "F.2"),
    Question("Which evidence is there beyond similarity?", "TEHDAS2; consensus framework 2025", "F.3"),
)


def questions() -> DossierPart:
    """Return the part."""
    rows = tuple((f"{i}", _(q.text), _(q.source), q.section) for i, q in enumerate(QUESTIONS, 1))
    return DossierPart(
        "G",
        _("Thirty questions, and where they are answered"),
        _(
            "Sources: the DPIA template of the European Data Protection Board (2026), Opinion WP216 (2014), "
            "Court of Justice C-413/23 P (2025), NIST SP 800-226 (2025), the European Health Data Space and the "
            "guidelines for it, the registry."
        ),
        (Section("G.1", _("Questions"), (table(("", _("question"), _("asked by"), _("section")), *rows),)),),
    )
