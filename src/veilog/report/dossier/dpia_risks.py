"""Sections 3 to 6 of the annex: impacts, necessity, risks and what is left of them, opinions, decision."""

from __future__ import annotations

from veilog._language import gettext, gettext_noop, pgettext
from veilog.privacy.account.strength import STRENGTHS, Strength
from veilog.report.dossier.parts import Block, Field, Points, Section, Text, table
from veilog.report.dossier.subject import Subject
from veilog.report.words import percent_up, strength_in_words

__all__ = ["considerations"]

_LIKELIHOOD: dict[Strength, str] = {
    "strong": gettext_noop("very low"),
    "good": gettext_noop("low"),
    "moderate": gettext_noop("medium"),
    "weak": gettext_noop("high"),
    "none in practice": gettext_noop("not bounded"),
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
            gettext("Impacts of the processing as designed"),
            (
                table(
                    (gettext("threat"), gettext("how it could come about"), gettext("what it rests on")),
                    (
                        gettext("singling out"),
                        gettext("somebody recognises one {unit} in the release", unit=unit),
                        "B.1",
                    ),
                    (gettext("linking"), gettext("somebody links the release with other data, or two releases"), "B.2"),
                    (
                        gettext("inference"),
                        gettext("somebody learns a secret of a person who is known to be in the log"),
                        "B.3",
                    ),
                    (
                        gettext("facts of groups"),
                        gettext("what holds of many is held against one of them"),
                        gettext("not bounded; purpose and terms"),
                    ),
                    (gettext("wrong conclusions"), gettext("noise is taken for fact"), "E.3"),
                ),
                Field(
                    gettext("Impact on the people"),
                    None,
                    gettext("what would follow for somebody: stigma, work, insurance, family"),
                ),
            ),
        ),
        Section(
            "A.3.2",
            gettext("Necessity"),
            (
                Text(
                    gettext(
                        "Alternatives to weigh: no release; a smaller one (no times, no attributes); answers to the "
                        "recipient's questions in place of a log; access in a secure environment; a smaller ε."
                    )
                ),
                Field(
                    gettext("Why this one"), None, gettext("what it must be good for, and what was tried or ruled out")
                ),
            ),
        ),
        Section(
            "A.3.3",
            gettext("Proportionality"),
            (
                Text(
                    gettext(
                        "What it may cost one {unit} at most is in part B; protection is {strength}.",
                        unit=unit,
                        strength=strength_in_words(subject.guarantee.strength),
                    )
                ),
                Field(gettext("Benefits against impacts"), None, gettext("for the people, for you, for all")),
            ),
        ),
    )


def _inherent(subject: Subject) -> tuple[Section, ...]:
    measured = gettext("see B.5: what attacks achieved on the original")
    before = measured if subject.attacked is not None else gettext("yours to fill: veilog risk LOG measures it")
    return (
        Section(
            "A.4.1.a",
            gettext("Impacts of what goes wrong"),
            (
                table(
                    (gettext("event"), gettext("how"), gettext("what stands against it")),
                    (
                        gettext("the original is read by others"),
                        gettext("wrong rights, theft, a copy"),
                        gettext("yours to fill"),
                    ),
                    (
                        gettext("the wrong file is sent"),
                        gettext("the original, or the owner's page, in place of the release"),
                        gettext("names and SHA-256 in this dossier; pages marked “not for release”"),
                    ),
                    (gettext("the release is changed"), gettext("on its way, or by the recipient"), "SHA-256"),
                    (
                        gettext("releases add up"),
                        gettext("a second release past the ledger"),
                        gettext("one ledger for all, with a budget"),
                    ),
                    (
                        gettext("a condition does not hold"),
                        gettext("an activity gives somebody away by its name"),
                        gettext("conditions are listed on the first page"),
                    ),
                    (
                        gettext("the noise can be recomputed"),
                        gettext("a run with a seed"),
                        gettext("such a run has no guarantee"),
                    ),
                    (
                        gettext("a gap in a proof, a defect"),
                        "",
                        gettext("audits; a release can be withdrawn, not called back"),
                    ),
                    (gettext("the original is lost"), "", gettext("yours to fill")),
                ),
            ),
        ),
        Section(
            "A.4.1.b",
            gettext("Method"),
            (
                Text(
                    gettext(
                        "Likelihood of the three risks follows from the strength of the guarantee, that is from the "
                        "largest "
                        "rise of an attacker's chance to guess who is in the log: up to 0.1 very low, 0.25 low, "
                        "0.5 medium, "
                        "0.75 high. These borders are the program's; no law draws them."
                    )
                ),
                Field(
                    gettext("Severity, and which risk is accepted"),
                    None,
                    gettext("a scale of two to five levels, and who decides"),
                ),
            ),
        ),
        Section(
            "A.4.1.c",
            gettext("Inherent risk: if the original were sent"),
            (
                table(
                    (gettext("risk"), gettext("likelihood"), gettext("severity")),
                    (gettext("singling out"), before, gettext("yours to fill")),
                    (
                        gettext("linkability"),
                        gettext("{before}; what else is known of these people", before=before),
                        gettext("yours to fill"),
                    ),
                    (gettext("inference"), before, gettext("yours to fill")),
                ),
            ),
        ),
    )


def _residual(subject: Subject) -> tuple[Section, ...]:
    likely = gettext(_LIKELIHOOD[subject.guarantee.strength if subject.guarantee.proven else STRENGTHS[-1]])
    bound = pgettext("bound", "none")
    if subject.proven and subject.meaning is not None:
        bound = gettext("an attacker's advantage is at most {share}", share=percent_up(subject.meaning.advantage))
    return (
        Section(
            "A.4.2.a",
            gettext("Measures"),
            (
                table(
                    (gettext("measure"), gettext("against"), gettext("status")),
                    (
                        gettext("differential privacy for one {unit}", unit=subject.guarantee.unit),
                        gettext("singling out, linking, inference"),
                        gettext("implemented") if subject.proven else gettext("not implemented"),
                    ),
                    (gettext("a ledger of all releases"), gettext("releases that add up"), gettext("yours to confirm")),
                    (
                        gettext("terms for recipients (E.4)"),
                        gettext("attempts to find people, use for other purposes"),
                        gettext("yours to fill"),
                    ),
                    (
                        gettext("a check before it leaves (part F)"),
                        gettext("the wrong file, forgotten attributes"),
                        gettext("yours to fill"),
                    ),
                ),
                *_to_confirm(subject),
            ),
        ),
        Section(
            "A.4.2.b",
            gettext("Residual risk"),
            (
                table(
                    (gettext("risk"), gettext("likelihood"), gettext("bounded by"), gettext("acceptable?")),
                    (gettext("singling out"), likely, bound, gettext("yours to decide")),
                    (gettext("linkability"), likely, bound, gettext("yours to decide")),
                    (gettext("inference"), likely, bound, gettext("yours to decide")),
                    (
                        gettext("facts of groups"),
                        gettext("not bounded"),
                        gettext("nothing: it is what a release is for"),
                        gettext("yours to decide"),
                    ),
                ),
                *(
                    ()
                    if subject.proven
                    else (Text(gettext("No: nothing proven is left that would lower a risk."), strong=True),)
                ),
            ),
        ),
        Section(
            "A.4.2.c",
            gettext("Plan"),
            (
                Field(
                    gettext("Who does what until when"),
                    None,
                    gettext("open measures above; who looks after the ledger"),
                ),
                Field(
                    gettext("When it is looked at again"),
                    None,
                    gettext("before each further release of these data, and once a year"),
                ),
            ),
        ),
    )


def _to_confirm(subject: Subject) -> tuple[Block, ...]:
    """The conditions of the first page that somebody has to confirm."""
    asked = tuple(check.asks for check in subject.decision.checks if check.state != "met")
    return (Text(gettext("To be confirmed first:")), Points(asked, ("☐",) * len(asked))) if asked else ()


def _decision(subject: Subject) -> tuple[Section, ...]:
    said = subject.decision.answer
    answer = f"{subject.decision.headline} " + (said.rstrip(":\u00a0") + "." if said.endswith(":") else said)
    return (
        Section(
            "A.5.1",
            gettext("Advice of the data protection officer"),
            (Field(gettext("Advice, and how it was followed"), None, gettext("Article 35(2)")),),
        ),
        Section(
            "A.5.2",
            gettext("Views of the people"),
            (
                Field(
                    gettext("Views, or why they were not sought"),
                    None,
                    gettext("Article 35(9), e.g. a patients' council"),
                ),
            ),
        ),
        Section(
            "A.6",
            gettext("Conclusion and decision"),
            (
                Text(gettext("What the program says: {answer}", answer=answer)),
                Points(
                    (
                        gettext("Rejected: it is not sent."),
                        gettext("The supervisory authority is consulted first (Article 36)."),
                        gettext("Approved."),
                        gettext("Approved once these conditions are met: …"),
                    ),
                    ("☐", "☐", "☐", "☐"),
                ),
                Field(
                    gettext("Decision, name, date, signature"), None, gettext("the controller decides, not the program")
                ),
            ),
        ),
    )
