"""Part B: the three risks by which the Article 29 Working Party judges anonymisation (WP216, 2014).

Each comes with what bounds it, and for the owner with what attacks achieved. The bounds are those of
:mod:`veilog.releasing.meaning`: to single out, to link and to infer is to test or to guess, and no test or guess does
better. What they do not bound is said beside them.
"""

from __future__ import annotations

from fractions import Fraction

from veilog._language import gettext as _
from veilog._language import gettext_noop, localised
from veilog.measures.singling_out import Control
from veilog.privacy.account.guessing import worth
from veilog.releasing.meaning import largest, meaning_of_pairs
from veilog.report.attacks import AttackRow, known_activities, unique
from veilog.report.decision import of_person
from veilog.report.dossier.parts import Block, DossierPart, Points, Section, Text, table
from veilog.report.dossier.subject import Attacked, Subject
from veilog.report.figures import figure, share_of
from veilog.report.stated import stated
from veilog.report.words import chances, percent_up, strength_in_words

__all__ = ["risks"]

_PEOPLE = (10, 100, 1_000, 100_000)
_VALUES = (2, 5, 10, 100)
_RELEASES = (1, 2, 3, 5, 10)
_CASES = (1, 2, 5, 20)
_CONTROL: dict[Control, str] = {
    "others' cases": gettext_noop(
        "Nobody was held out. The control is what others' cases tell: the same guess from the "
        "original, without the person's own case. It estimates what could be guessed anyway; a group that was held out "
        "(--control) measures it, and of that the bound speaks."
    ),
    "held out": gettext_noop("The control is the same attack on people of the same process who were not in the log."),
}
_NO = gettext_noop(
    "No. Nothing that is proven bounds it: take it that it is still possible, until somebody has shown otherwise."
)


def risks(subject: Subject) -> DossierPart:
    """Return the part."""
    sections = [
        Section("B.1", _("Singling out: is it bounded?"), _singling_out(subject)),
        Section("B.2", _("Linkability: is it bounded?"), _linkability(subject)),
        Section("B.3", _("Inference: is it bounded?"), _inference(subject)),
        Section("B.4", _("What these bounds rest on, and what they do not bound"), _limits(subject)),
    ]
    if subject.attacked is not None:
        sections.append(
            Section("B.5", _("What attacks achieved (for the owner only)"), _attacks(subject, subject.attacked))
        )
    return DossierPart(
        "B",
        _("Singling out, linkability, inference"),
        _(
            "The three risks of Opinion 05/2014 of the Article 29 Working Party (WP216). A bound is proven and "
            "holds for every attacker; an attack only shows what one attacker achieved."
        ),
        tuple(sections),
    )


def _singling_out(subject: Subject) -> tuple[Block, ...]:
    if not subject.proven:
        return (Text(_(_NO), strong=True),)
    unit = subject.guarantee.unit
    rows = tuple(
        (_("one of {n}", n=people), _percent(1 / people), percent_up(largest([subject.pair], 1 / people)))
        for people in _PEOPLE
    )
    return (
        Text(
            _(
                "Somebody knows everything about the log but which of so many people it is whose {unit} is in it, "
                "and picks one after reading the release. How often are they right?",
                unit=unit,
            )
        ),
        table((_("to pick out"), _("right without the release"), _("right with it, at most")), *rows),
        *_presence(subject),
    )


def _presence(subject: Subject) -> tuple[Block, ...]:
    """How well somebody can tell that a case is in the log."""
    meaning, unit = subject.meaning, subject.guarantee.unit
    if meaning is None:
        return ()
    sure = [
        (_("sure to {share} before", share=before), _("at most {share} after", share=after))
        for before, after in chances(subject.guarantee)
    ]
    return (
        Text(
            _(
                "Is a certain {unit} in the log at all? Whoever tests it says yes for a larger share of those who "
                "are in it than of those who are not; the difference, the membership-test gap, is at most "
                "{gap}. Where it is yes for 1\u00a0% of those who are not, it is yes for at most {share} of "
                "those "
                "who are.",
                unit=unit,
                gap=percent_up(meaning.membership_test_gap),
                share=percent_up(meaning.tpr_at_fpr[0.01]),
            )
        ),
        table((_("somebody is … that a certain {unit} is in the log", unit=unit), _("having read the release")), *sure),
    )


def _linkability(subject: Subject) -> tuple[Block, ...]:
    if not subject.proven:
        return (Text(_(_NO), strong=True),)
    g, (epsilon, delta) = subject.guarantee, subject.pair
    releases = []
    for number in _RELEASES:
        pair = epsilon * number, min(1.0, delta * number)
        strength = worth((Fraction(pair[0]), Fraction(pair[1])), cases=g.cases or 0)
        releases.append(
            (
                f"{number}",
                *map(figure, pair),
                percent_up(meaning_of_pairs([pair]).membership_test_gap),
                strength_in_words(strength),
            )
        )
    blocks: list[Block] = [
        Text(
            _(
                "To link a released case with a person, or with a record elsewhere, is to say that this person's "
                "case was in the log: the membership-test gap in B.1 bounds it, whatever the other data are. Who knows "
                "that already would learn by it what is in the case, which B.3 bounds. Names of cases are made anew, "
                "and cases are in random order, so that no key remains."
            )
        ),
        Text(_("Two releases of the same data can be linked through the people in both. Their ε and δ add up:")),
        table((_("such releases"), "ε", "δ", _("membership-test gap at most"), _("protection")), *releases),
    ]
    if g.unit == "case":
        persons = [(f"{n}", figure(epsilon * n), strength_in_words(of_person(g, n))) for n in _CASES]
        blocks += [
            Text(_("Cases of one person are protected each by itself. To link them is easier the more there are:")),
            table((_("cases of one person"), _("ε for the person"), _("protection")), *persons),
        ]
    return tuple(blocks)


def _inference(subject: Subject) -> tuple[Block, ...]:
    if not subject.proven:
        return (Text(_(_NO), strong=True),)
    unit = subject.guarantee.unit
    rows = tuple(
        (
            _("which of {n} equally likely values", n=values),
            _percent(1 / values),
            percent_up(largest([subject.pair], 1 / values)),
        )
        for values in _VALUES
    )
    return (
        Text(
            _(
                "Somebody knows that a {unit} is in the log, and all other cases, and guesses a secret of it: an "
                "attribute, an activity, how it ended. How often are they right?",
                unit=unit,
            )
        ),
        table((_("to guess"), _("right without the release"), _("right with it, at most")), *rows),
        Text(
            _(
                "What holds of many people can be inferred of one of them, and is meant to be: that is what a "
                "release is for. It would be so without their case, too, and no bound of this kind speaks of it."
            )
        ),
    )


def _limits(subject: Subject) -> tuple[Block, ...]:
    g = subject.guarantee
    if not subject.proven:
        return (Points(tuple(subject.decision.reasons) or (_("No guarantee is proven."),)),)
    points = [
        _(
            "They follow from ε = {epsilon} and δ = {delta} for {neighbours}.",
            epsilon=figure(g.epsilon),
            delta=figure(g.delta),
            neighbours=stated(g.neighbours),
        ),
        _("They hold against every attacker: with any knowledge beside, any computing power, and at any time later."),
        _(
            "They are averages over the noise, before the release is read; with a δ above 0 nothing bounds the "
            "unluckiest one."
        )
        if g.delta
        else _("They are chances over the noise, before the release is read."),
        _("They do not speak of groups: what is common to a family or a ward of n is hidden at n times ε only."),
        _("They do not speak of other publications about the same people that no ledger knows."),
        _("They do not speak of the staff who did the work: a unit of cases or of patients does not protect them."),
    ]
    points += [_("They hold only if: {condition}", condition=stated(condition.text)) for condition in g.conditions]
    return (
        Points(tuple(points)),
        Text(
            _(
                "Formulas: the trade-off of right and wrong yeses of (ε, δ)-differential privacy (Kairouz, Oh, "
                "Viswanath 2015) and reconstruction robustness (Balle, Cherubin, Hayes 2022; Kulynych and others "
                "2025). All numbers are rounded up."
            )
        ),
    )


def _attacks(subject: Subject, attacked: Attacked) -> tuple[Block, ...]:
    blocks: list[Block] = []
    if not attacked.attacks:
        blocks.append(Text(_("No attack was run: {reason}", reason=attacked.why_not)))
    for attack in attacked.attacks:
        blocks += [
            Text(attack.title, strong=True),
            Text(attack.said),
            table(
                (
                    _("the attacker knows"),
                    _("people"),
                    _("original"),
                    _("release"),
                    attack.control,
                    _("gain of the release"),
                ),
                *(
                    (r.known, localised(f"{r.people:,}"), r.original, r.released, r.control, _gain(r))
                    for r in attack.rows
                ),
            ),
        ]
    if attacked.attacks:
        blocks += [
            Text(
                _(
                    "Gain: in percentage points over the control, with an interval at 99.5\u00a0%; where chance alone "
                    "seldom makes as much, it is marked “more”."
                )
                + f" {_beside_bound(subject)}"
            ),
            Text(_(_CONTROL[_control(attacked)])),
            Text(_("Other intervals are at 95\u00a0%; without one everybody was attacked with all that can be known.")),
        ]
    return (*blocks, *_unique_cases(subject, attacked))


def _control(attacked: Attacked) -> Control:
    """What attacks are held against."""
    first = attacked.singled or attacked.linked or attacked.inferred
    return "others' cases" if first is None else first.control


def _gain(row: AttackRow) -> str:
    return _("{gain}: more", gain=row.gain) if row.more else row.gain


def _unique_cases(subject: Subject, attacked: Attacked) -> tuple[Block, ...]:
    """How many cases a few known activities single out, in the release only where its cases may be people's."""
    if not attacked.disclosed:
        return ()
    if subject.guarantee.proven:
        rows = tuple((known_activities(before), unique(before)) for before, _ in attacked.disclosed)
        return (
            Text(
                _(
                    "Cases of the original that some knowledge of a few activities singles out. Of the release it is "
                    "not "
                    "shown: its cases are made up of noisy answers, so one that stands alone is nobody's."
                )
            ),
            table((_("known"), _("original")), *rows),
        )
    both = tuple((known_activities(b), unique(b), unique(a)) for b, a in attacked.disclosed)
    return (
        Text(_("Cases that some knowledge of a few activities singles out.")),
        table((_("known"), _("original"), _("release")), *both),
    )


def _beside_bound(subject: Subject) -> str:
    if not subject.proven or subject.meaning is None:
        return _("Nothing that is proven bounds it.")
    return _(
        "The proven bound on every such gain, to single out, to link and to infer, on average over the "
        "noise, is {share}.",
        share=percent_up(subject.meaning.membership_test_gap),
    )


def _percent(share: float) -> str:
    return share_of(f"{100 * share:g}")
