"""Sections 3 to 6 of the annex: impacts, necessity, risks and what is left of them, opinions, decision."""

from __future__ import annotations

import math

from veilog._language import gettext as _
from veilog._language import gettext_noop, localised, pgettext
from veilog.privacy.account.guarantee import STRENGTHS, Strength
from veilog.report.dossier.parts import Block, Field, Points, Section, Text, table
from veilog.report.dossier.subject import Subject
from veilog.report.words import headline

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
            _("Impacts of the processing as designed"),
            (
                table(
                    (_("threat"), _("how it could come about"), _("what it rests on")),
                    (_("singling out"), _("somebody recognises one {unit} in the release", unit=unit), "B.1"),
                    (_("linking"), _("somebody links the release with other data, or two releases"), "B.2"),
                    (_("inference"), _("somebody learns a secret of a person who is known to be in the log"), "B.3"),
                    (
                        _("facts of groups"),
                        _("what holds of many is held against one of them"),
                        _("not bounded; purpose and terms"),
                    ),
                    (_("wrong conclusions"), _("noise is taken for fact"), "E.3"),
                ),
                Field(
                    _("Impact on the people"),
                    None,
                    _("what would follow for somebody: stigma, work, insurance, family"),
                ),
            ),
        ),
        Section(
            "A.3.2",
            _("Necessity"),
            (
                Text(
                    _(
                        "Alternatives to weigh: no release; a smaller one (no times, no attributes); answers to the "
                        "recipient's questions in place of a log; access in a secure environment; a smaller ε."
                    )
                ),
                Field(_("Why this one"), None, _("what it must be good for, and what was tried or ruled out")),
            ),
        ),
        Section(
            "A.3.3",
            _("Proportionality"),
            (
                Text(
                    _(
                        "What it may cost one {unit} at most is in part B. {level}",
                        unit=unit,
                        level=headline(subject.guarantee),
                    )
                ),
                Field(_("Benefits against impacts"), None, _("for the people, for you, for all")),
            ),
        ),
    )


def _inherent(subject: Subject) -> tuple[Section, ...]:
    measured = _("see B.5: what attacks achieved on the original")
    before = measured if subject.attacked is not None else _("yours to fill: veilog risk LOG measures it")
    return (
        _wrong(subject),
        Section(
            "A.4.1.b",
            _("Method"),
            (
                Text(
                    _(
                        "Likelihood of the three risks follows from the strength of the guarantee, that is from the "
                        "largest rise of an attacker's chance to guess who is in the log: up to 0.1 very low, 0.25 "
                        "low, 0.5 medium, 0.75 high; and from δ times the number of cases in the log, those that may "
                        "come out as they are: up to 0.01 low, 0.1 medium, 1 high. The higher one counts. These "
                        "borders are the program's; no law draws them."
                    )
                ),
                Field(
                    _("Severity, and which risk is accepted"), None, _("a scale of two to five levels, and who decides")
                ),
            ),
        ),
        Section(
            "A.4.1.c",
            _("Inherent risk: if the original were sent"),
            (
                table(
                    (_("risk"), _("likelihood"), _("severity")),
                    (_("singling out"), before, _("yours to fill")),
                    (
                        _("linkability"),
                        _("{before}; what else is known of these people", before=before),
                        _("yours to fill"),
                    ),
                    (_("inference"), before, _("yours to fill")),
                ),
            ),
        ),
    )


def _wrong(subject: Subject) -> Section:
    """Return what can go wrong, and what stands against it."""
    return Section(
        "A.4.1.a",
        _("Impacts of what goes wrong"),
        (
            table(
                (_("event"), _("how"), _("what stands against it")),
                (_("the original is read by others"), _("wrong rights, theft, a copy"), _("yours to fill")),
                (
                    _("the wrong file is sent"),
                    _("the original, or the owner's page, in place of the release"),
                    _("names and SHA-256 in this dossier; pages marked “not for release”"),
                ),
                (_("the release is changed"), _("on its way, or by the recipient"), "SHA-256"),
                (
                    _("releases add up"),
                    _("a second release past the ledger"),
                    _("one ledger for all, with a budget"),
                ),
                (
                    _("a condition does not hold"),
                    _("an activity gives somebody away by its name"),
                    _("conditions are listed on the first page"),
                ),
                (_("the noise can be recomputed"), _("a run with a seed"), _("such a run has no guarantee")),
                (_("a gap in a proof, a defect"), "", _("audits; a release can be withdrawn, not called back")),
                (_("the original is lost"), "", _("yours to fill")),
            ),
        ),
    )


def _residual(subject: Subject) -> tuple[Section, ...]:
    likely = _(_LIKELIHOOD[subject.guarantee.strength if subject.guarantee.proven else STRENGTHS[-1]])
    bound = pgettext("bound", "none")
    if subject.proven and subject.guarantee.guessing_advantage is not None:
        bound = _(
            "guessing advantage: at most {points} percentage points",
            points=localised(f"{math.ceil((subject.guarantee.guessing_advantage or 0.0) * 1e4) / 100:g}"),
        )
    return (
        _taken(subject),
        Section(
            "A.4.2.b",
            _("Residual risk"),
            (
                table(
                    (_("risk"), _("likelihood"), _("bounded by"), _("acceptable?")),
                    (_("singling out"), likely, bound, _("yours to decide")),
                    (_("linkability"), likely, bound, _("yours to decide")),
                    (_("inference"), likely, bound, _("yours to decide")),
                    (
                        _("facts of groups"),
                        _("not bounded"),
                        _("nothing: it is what a release is for"),
                        _("yours to decide"),
                    ),
                ),
                *(
                    ()
                    if subject.proven
                    else (Text(_("No: nothing proven is left that would lower a risk."), strong=True),)
                ),
            ),
        ),
        Section(
            "A.4.2.c",
            _("Plan"),
            (
                Field(_("Who does what until when"), None, _("open measures above; who looks after the ledger")),
                Field(
                    _("When it is looked at again"),
                    None,
                    _("before each further release of these data, and once a year"),
                ),
            ),
        ),
    )


def _taken(subject: Subject) -> Section:
    """Return the measures."""
    return Section(
        "A.4.2.a",
        _("Measures"),
        (
            table(
                (_("measure"), _("against"), _("status")),
                (
                    _("differential privacy for one {unit}", unit=subject.guarantee.unit),
                    _("singling out, linking, inference"),
                    _("implemented") if subject.proven else _("not implemented"),
                ),
                (_("a ledger of all releases"), _("releases that add up"), _("yours to confirm")),
                (
                    _("terms for recipients (E.4)"),
                    _("attempts to find people, use for other purposes"),
                    _("yours to fill"),
                ),
                (
                    _("a check before it leaves (part F)"),
                    _("the wrong file, forgotten attributes"),
                    _("yours to fill"),
                ),
            ),
            *_to_confirm(subject),
        ),
    )


def _to_confirm(subject: Subject) -> tuple[Block, ...]:
    """The conditions of the first page that somebody has to confirm."""
    asked = tuple(check.asks for check in subject.decision.checks if check.state != "checked")
    return (Text(_("To be confirmed first:")), Points(asked, ("☐",) * len(asked))) if asked else ()


def _decision(subject: Subject) -> tuple[Section, ...]:
    answer = f"{subject.decision.headline} {subject.decision.answer}"
    return (
        Section(
            "A.5.1",
            _("Advice of the data protection officer"),
            (Field(_("Advice, and how it was followed"), None, _("Article 35(2)")),),
        ),
        Section(
            "A.5.2",
            _("Views of the people"),
            (Field(_("Views, or why they were not sought"), None, _("Article 35(9), e.g. a patients' council")),),
        ),
        Section(
            "A.6",
            _("Conclusion and decision"),
            (
                Text(_("What the program says: {answer}", answer=answer)),
                Points(
                    (
                        _("Rejected: it is not sent."),
                        _("The supervisory authority is consulted first (Article 36)."),
                        _("Approved by the controller."),
                        _("Approved by the controller once these conditions are met: …"),
                    ),
                    ("☐", "☐", "☐", "☐"),
                ),
                Field(_("Decision, name, date, signature"), None, _("the controller decides, not the program")),
            ),
        ),
    )
