"""Sections 3 to 6 of the annex: impacts, necessity, risks and what is left of them, opinions, decision."""

from __future__ import annotations

from veilog.privacy.account.strength import STRENGTHS, Strength
from veilog.report.dossier.parts import Block, Field, Points, Section, Text, table
from veilog.report.dossier.subject import Subject
from veilog.report.words import percent_up

__all__ = ["considerations"]

_LIKELIHOOD: dict[Strength, str] = {
    "strong": "very low",
    "good": "low",
    "moderate": "medium",
    "weak": "high",
    "none in practice": "not bounded",
}
"""Our word for how likely the three risks are, by the strength of the guarantee."""


def considerations(subject: Subject) -> tuple[Section, ...]:
    """Return the sections."""
    return (*_necessity(subject), *_inherent(subject), *_residual(subject), *_decision(subject))


def _necessity(subject: Subject) -> tuple[Section, ...]:
    unit = subject.guarantee.unit
    return (
        Section(
            "A.3.1",
            "Impacts of the processing as designed",
            (
                table(
                    ("threat", "how it could come about", "what it rests on"),
                    ("singling out", f"somebody recognises one {unit} in the release", "B.1"),
                    ("linking", "somebody links the release with other data, or two releases", "B.2"),
                    ("inference", "somebody learns a secret of a person who is known to be in the log", "B.3"),
                    (
                        "facts of groups",
                        "what holds of many is held against one of them",
                        "not bounded; purpose and terms",
                    ),
                    ("wrong conclusions", "noise is taken for fact", "E.3"),
                ),
                Field("Impact on the people", None, "what would follow for somebody: stigma, work, insurance, family"),
            ),
        ),
        Section(
            "A.3.2",
            "Necessity",
            (
                Text(
                    "Alternatives to weigh: no release; a smaller one (no times, no attributes); answers to the "
                    "recipient's "
                    "questions in place of a log; access in a secure environment; a smaller ε."
                ),
                Field("Why this one", None, "what it must be good for, and what was tried or ruled out"),
            ),
        ),
        Section(
            "A.3.3",
            "Proportionality",
            (
                Text(f"What it may cost one {unit} at most is in part B; protection is {subject.guarantee.strength}."),
                Field("Benefits against impacts", None, "for the people, for you, for all"),
            ),
        ),
    )


def _inherent(subject: Subject) -> tuple[Section, ...]:
    measured = "see B.5: what attacks achieved on the original"
    before = measured if subject.attacked is not None else "yours to fill: veilog risk LOG measures it"
    return (
        Section(
            "A.4.1.a",
            "Impacts of what goes wrong",
            (
                table(
                    ("event", "how", "what stands against it"),
                    ("the original is read by others", "wrong rights, theft, a copy", "yours to fill"),
                    (
                        "the wrong file is sent",
                        "the original, or the owner's page, in place of the release",
                        "names and SHA-256 in this dossier; pages marked “not for release”",
                    ),
                    ("the release is changed", "on its way, or by the recipient", "SHA-256"),
                    ("releases add up", "a second release past the ledger", "one ledger for all, with a budget"),
                    (
                        "a condition does not hold",
                        "an activity gives somebody away by its name",
                        "conditions are listed on the first page",
                    ),
                    ("the noise can be recomputed", "a run with a seed", "such a run has no guarantee"),
                    ("a gap in a proof, a defect", "", "audits; a release can be withdrawn, not called back"),
                    ("the original is lost", "", "yours to fill"),
                ),
            ),
        ),
        Section(
            "A.4.1.b",
            "Method",
            (
                Text(
                    "Likelihood of the three risks follows from the strength of the guarantee, that is from the "
                    "largest rise of "
                    "an attacker's chance to guess who is in the log: up to 0.1 very low, 0.25 low, 0.5 medium, "
                    "0.75 high. "
                    "These borders are the program's; no law draws them."
                ),
                Field("Severity, and which risk is accepted", None, "a scale of two to five levels, and who decides"),
            ),
        ),
        Section(
            "A.4.1.c",
            "Inherent risk: if the original were sent",
            (
                table(
                    ("risk", "likelihood", "severity"),
                    ("singling out", before, "yours to fill"),
                    ("linkability", f"{before}; what else is known of these people", "yours to fill"),
                    ("inference", before, "yours to fill"),
                ),
            ),
        ),
    )


def _residual(subject: Subject) -> tuple[Section, ...]:
    likely = _LIKELIHOOD[subject.guarantee.strength if subject.guarantee.proven else STRENGTHS[-1]]
    bound = "none"
    if subject.proven and subject.meaning is not None:
        bound = f"an attacker's advantage is at most {percent_up(subject.meaning.advantage)}"
    return (
        Section(
            "A.4.2.a",
            "Measures",
            (
                table(
                    ("measure", "against", "status"),
                    (
                        f"differential privacy for one {subject.guarantee.unit}",
                        "singling out, linking, inference",
                        "implemented" if subject.proven else "not implemented",
                    ),
                    ("a ledger of all releases", "releases that add up", "yours to confirm"),
                    ("terms for recipients (E.4)", "attempts to find people, use for other purposes", "yours to fill"),
                    ("a check before it leaves (part F)", "the wrong file, forgotten attributes", "yours to fill"),
                ),
                *_to_confirm(subject),
            ),
        ),
        Section(
            "A.4.2.b",
            "Residual risk",
            (
                table(
                    ("risk", "likelihood", "bounded by", "acceptable?"),
                    ("singling out", likely, bound, "yours to decide"),
                    ("linkability", likely, bound, "yours to decide"),
                    ("inference", likely, bound, "yours to decide"),
                    ("facts of groups", "not bounded", "nothing: it is what a release is for", "yours to decide"),
                ),
                *(
                    ()
                    if subject.proven
                    else (Text("No: nothing proven is left that would lower a risk.", strong=True),)
                ),
            ),
        ),
        Section(
            "A.4.2.c",
            "Plan",
            (
                Field("Who does what until when", None, "open measures above; who looks after the ledger"),
                Field("When it is looked at again", None, "before each further release of these data, and once a year"),
            ),
        ),
    )


def _to_confirm(subject: Subject) -> tuple[Block, ...]:
    """The conditions of the first page that somebody has to confirm."""
    asked = tuple(check.asks for check in subject.decision.checks if check.state != "met")
    return (Text("To be confirmed first:"), Points(asked, ("☐",) * len(asked))) if asked else ()


def _decision(subject: Subject) -> tuple[Section, ...]:
    answer = " ".join(
        [
            subject.decision.headline,
            subject.decision.answer.rstrip(":") + ("." if subject.decision.answer.endswith(":") else ""),
        ]
    )
    return (
        Section(
            "A.5.1",
            "Advice of the data protection officer",
            (Field("Advice, and how it was followed", None, "Article 35(2)"),),
        ),
        Section(
            "A.5.2",
            "Views of the people",
            (Field("Views, or why they were not sought", None, "Article 35(9), e.g. a patients' council"),),
        ),
        Section(
            "A.6",
            "Conclusion and decision",
            (
                Text(f"What the program says: {answer}"),
                Points(
                    (
                        "Rejected: it is not sent.",
                        "The supervisory authority is consulted first (Article 36).",
                        "Approved.",
                        "Approved once these conditions are met: …",
                    ),
                    ("☐", "☐", "☐", "☐"),
                ),
                Field("Decision, name, date, signature", None, "the controller decides, not the program"),
            ),
        ),
    )
