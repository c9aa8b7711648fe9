"""Statements about a release, checked by the program or to confirm by a person.

A tick is a check. Each code of a statement that the program ticks names the function that verifies it. Nothing else can
be ticked. A person confirms everything that only a person can know, whatever else the program knows: where a list of
activities comes from, whether there are other releases, who receives this one. No statement is a permission: the person
responsible for the data decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from veilog.messages import Message
from veilog.privacy.account.guarantee import Code, Condition, Guarantee, Strength, up
from veilog.privacy.account.losses import Loss, composed_delta
from veilog.privacy.domain import FROM_LOG, PRIVATELY, Domain

State = Literal["checked", "to-confirm", "against"]
Activities = Literal["declared", "log", "privately", "none"]
"""Way in which activity names became public: by a list, by the data owner's word, with noise, or not at all.
Not at all means that no name leaves the log but by an answer with noise."""
Verified = Literal["guarantee-derived", "activities-with-noise", "cases-bounded", "other-releases"]
Asked = Literal["activities-declared", "unit", "releases-elsewhere", "recipient", "file-unchanged", "other-releases"]
CheckCode = Code | Verified | Asked

VERIFIED_BY: Mapping[str, str] = {
    "guarantee-derived": "veilog.privacy.account.account:ChargeAccount.guarantee",
    "activities-with-noise": "veilog.releasing.checks:activities_of",
    "cases-bounded": "veilog.privacy.unit:bound_units",
    "other-releases": "veilog.report.words:other_releases_sentence",
}
"""Function that verifies each ticked statement, by code. Without one, there is no tick."""

VERDICTS: Mapping[str, tuple[str, str]] = {
    "level": (
        "the protection level: strong, good, moderate, weak or none",
        "veilog.privacy.account.guessing_advantage:worth",
    ),
    "level_holds_up_to_cases": (
        "the largest log for which that level holds",
        "veilog.privacy.account.guarantee:largest_log",
    ),
    "status": ("proven, or none with its reasons", "veilog.privacy.account.account:ChargeAccount.guarantee"),
    "statements": ("what holds in place of a guarantee: checked on the release", "veilog.methods.method:Groups"),
    "verdict": ("how close a release is to the original", "veilog.measures:verdict_of"),
    "use_cases": ("what a release is good for", "veilog.measures.use_cases:UseCase"),
    "more": ("whether an attack gains by the release", "veilog.measures.singling_out.measure:SinglingOut"),
}
"""Further verdicts of the program, where its JSON or pages show them, and the code that decides them."""


class Unverified(AssertionError):
    """Something was to be ticked that no function verifies."""


@dataclass(frozen=True)
class Check:
    """Statement about a release, and its state."""

    code: CheckCode
    state: State
    """State: "checked" by the program, "to-confirm" by a person, or "against" if it seems not to hold."""
    asks: Message
    why: Message | None = None

    def __post_init__(self) -> None:
        if self.state == "checked" and self.code not in VERIFIED_BY:
            raise Unverified(f"nothing verifies {self.code!r}")


def activities_of(declared: Domain, needed: Iterable[str]) -> Activities:
    """Return how activity names became public in a release that needs these facts."""
    if declared.activities == PRIVATELY:
        return "privately"
    if declared.activities == FROM_LOG:
        return "log"
    return "none" if declared.activities is None and "activities" not in needed else "declared"


def checks_of(g: Guarantee, activities: Activities | None, *, from_file: bool = False) -> tuple[Check, ...]:
    """Return the statements that a release supports by itself; none if not proven.

    Args:
        g: its guarantee.
        activities: how the names of its activities became public; None where that is not known.
        from_file: whether the guarantee was read from a file.

    """
    if not g.proven:
        return ()
    derived = _check("file-unchanged", "to-confirm") if from_file else _check("guarantee-derived", "checked")
    checks = [derived, *_activities(g, activities), *map(_condition, g.conditions), *_unit(g, bounded=not from_file)]
    return (*checks, _check("releases-elsewhere", "to-confirm"), _recipient(g.strength))


def json_of_checks(g: Guarantee, activities: Activities | None) -> dict[str, list[dict[str, str]]]:
    """Return the English texts of statements that were checked or are to be confirmed.

    They concern a release that was just made.
    """
    lists: dict[str, list[dict[str, str]]] = {"checked": [], "to_confirm": []}
    for check in checks_of(g, activities):
        text = " ".join(message.english for message in (check.asks, check.why) if message is not None)
        lists["checked" if check.state == "checked" else "to_confirm"].append({"code": check.code, "text": text})
    return lists


def _check(code: CheckCode, state: State) -> Check:
    """Return a check whose two sentences follow from its code alone."""
    return Check(code, state, Message(f"check-{code}"), Message(f"check-{code}-why"))


def _activities(g: Guarantee, activities: Activities | None) -> list[Check]:
    if any(condition.code == "activities-from-log" for condition in g.conditions):
        return []
    if activities in ("privately", "none"):
        return [_check("activities-with-noise", "checked")]
    check = _check("activities-declared", "to-confirm")
    return [check if activities else replace(check, why=Message("check-activities-unknown-why"))]


def _condition(condition: Condition) -> Check:
    why = "check-owner-said-why" if condition.said_by == "owner" else "check-nothing-checked-why"
    code = f"check-{condition.code}" if condition.code in get_args(Code) else "check-of-another-package"
    return Check(condition.code, "to-confirm", Message(code), Message(why, condition=condition.text))


def _unit(g: Guarantee, *, bounded: bool) -> list[Check]:
    if g.unit == "case":
        return [Check("unit", "to-confirm", Message("check-unit-case"))]
    checks = [Check("unit", "to-confirm", Message("check-unit"), Message("check-unit-why", neighbours=g.neighbours))]
    if bounded and all(condition.code != "cases-per-person-bounded" for condition in g.conditions):
        checks.insert(0, _check("cases-bounded", "checked"))
    return checks


def _recipient(level: Strength) -> Check:
    """Return what has to be known of who receives a release at this protection level."""
    known = {"moderate": "moderate", "strong": "good", "good": "good"}.get(level, "weak")
    asks, why = (Message(f"check-recipient-{known}{part}") for part in ("", "-why"))
    return Check("recipient", "to-confirm", asks, why)


# What a guarantee means ----------------------------------------------------------------------------------------------

# What a guarantee means: how well an adversary can infer from a release who is in the log, and guess a secret.
#
# Everything here is computed from pairs (epsilon, delta) that hold of a release, one of its guarantee or many of
# its privacy losses, and never from data. Let M be the release, D the log without a given case (or person,
# whichever is protected), and D + z the log with it, z being all that is in it. Each pair states of all z and all
# sets S of releases
#
#     P[M(D + z) in S] <= e^epsilon P[M(D) in S] + delta, and the same with D and D + z exchanged.
#
# *Is the case in the log?* An adversary who claims so where the release lies in S is right with probability
# t = P[M(D + z) in S] (true positive rate) and wrong with probability a = P[M(D) in S] (false positive rate). The first
# inequality for S, and the second for all that is not in S, give (Wasserman, Zhou, "A statistical framework for
# differential privacy", 2010; Kairouz, Oh, Viswanath, "The composition theorem for differential privacy", 2015)
#
#     t <= g(a) = min(1, delta + e^epsilon a, 1 - e^-epsilon (1 - a - delta)).
#
# g = 1 - f is one minus the trade-off function (Dong, Roth, Su, "Gaussian differential privacy", 2022). Of several
# pairs the smallest bound counts; g is taken as the same in both directions, so that it also bounds the claim
# that the case is *not* in the log. The *membership-test gap* is the largest g(a) - a: (e^epsilon - 1 + 2 delta) /
# (e^epsilon + 1), which of a pure epsilon is tanh(epsilon / 2). It is reached where g(a) = 1 - a, so a guess at a
# case that is in the log with probability 1/2 is right with probability (1 + gap) / 2 at most.
#
# It is not the guessing advantage of :mod:`veilog.privacy.account.guessing_advantage`, which is the largest rise of
# a *belief* at the attacker's best prior, d = tanh(epsilon / 4) of a pure epsilon. There gap = 2 d / (1 + d^2), and
# always gap / 2 <= d <= gap.
#
# *What is in the case?* An adversary knows D, all but the case, and that it is in the log. With no release, the best
# guess at a secret of it is right with probability p (the prior): 1/10 for one of 10 equally likely values, 1/n for
# which one of n people it is who is in the log. After the release it is right with probability g(p) at most
# (reconstruction robustness: Balle, Cherubin, Hayes, "Reconstructing training data with informed adversaries",
# 2022; Hayes, Mahloujifar, Balle, "Bounding training data reconstruction in DP-SGD", 2023; as one bound for
# singling out, attributes and reconstruction: Kulynych, Gomez, Kaissis, Hayes, Balle, Calmon, Raisaro, "Unifying
# re-identification, attribute inference, and data reconstruction risks in differential privacy", 2025). Proof: let
# S(z) be the releases after which the guess is right for z. If M(D) had been read in place of M(D + z), which reveals
# nothing of z, it would be right with probability E P[M(D) in S(z)] <= p. Each P[M(D + z) in S(z)] <= g(P[M(D) in
# S(z)]), and g is concave and never falls, so their mean is at most g(p).
#
# Two values of a case that is in the log are two steps apart (remove the one, add the other), and each step is in
# this: M(D) is between them. For two equally likely values, 2 g(1/2) - 1 is the gap of the two steps taken one
# after the other, max g(g(a)) - a; of a pure epsilon 1 - e^-epsilon, which is less than doubling epsilon in the
# first formula gives. For a pure epsilon g(p) is never above what Bayes' rule gives at 2 epsilon, p / (p + e^(-2
# epsilon) (1 - p)).
#
# What the prior has in it: everything that the other cases reveal. Where these are not known but drawn with the case,
# p is the mean chance of the best guess of an adversary who knows them; concavity gives the same bound. All of these
# are probabilities over the noise, before the release is read: with a delta nothing bounds the unluckiest release.


FloatArray = npt.NDArray[np.float64]
Pairs = Iterable[tuple[float, float]]
"""Pairs (epsilon, delta) that all hold of one release and one relation of neighbours."""

RATES = (0.001, 0.01, 0.1)
"""False positive rates that are reported."""
PRIORS = (0.5, 0.1, 0.01)
"""Priors that are reported: one of 2, one of 10, one of 100."""
_POINTS, _FURTHEST = 200, 60.0
"""Number of points, and largest epsilon, at which losses are evaluated. Each holds by itself; more add little."""
_ROUNDING = 1 + 2.0**-45
"""Factor over all rounding: fewer than ten operations on positive floats, each right to some 2**-52."""


@dataclass(frozen=True)
class Meaning:
    """Most that an attacker can do with a release; each number is rounded up."""

    membership_test_gap: float
    """True minus false positive rate of an attacker who decides whether a given case is in the log."""
    tpr_at_fpr: Mapping[float, float]
    """True positive rate of such an attacker, at each of ``RATES``."""
    guess_at_prior: Mapping[float, float]
    """Chance to guess a secret of a case that is in the log, at each of ``PRIORS``."""

    @property
    def presence(self) -> float:
        """Chance to guess right whether a case is in the log, at a prior of 1/2."""
        return min(1.0, (1 + self.membership_test_gap) / 2)

    def message(self, unit: str) -> Message:
        """Return what it means for a secret."""
        ten, two = (up(self.guess_at_prior[prior], 3) for prior in (0.1, 0.5))
        return Message("guess-of-secret", unit=unit, of_ten=ten, of_two=two)

    def to_json(self) -> dict[str, object]:
        return {
            "membership_test_gap": self.membership_test_gap,
            "tpr_at_fpr": {f"{rate:g}": chance for rate, chance in self.tpr_at_fpr.items()},
            "guess_at_prior": {f"{prior:g}": chance for prior, chance in self.guess_at_prior.items()},
        }


def meaning_of(guarantee: Guarantee) -> Meaning | None:
    """Return what a guarantee means for an attacker; None if nothing is proven.

    It follows from the epsilon and delta that are claimed. The losses of the charges would give smaller numbers. They
    hold only if no query was chosen by an answer (see :mod:`veilog.privacy.account.losses`), and a guarantee does not
    record that.
    """
    if not guarantee.proven or guarantee.epsilon is None:
        return None
    return meaning_of_pairs([(guarantee.epsilon, guarantee.delta or 0.0)])


def meaning_of_pairs(pairs: Pairs) -> Meaning:
    """Return what it means that all these pairs hold."""
    held = [*pairs]
    epsilons, deltas = _arrays(held)
    shrink = np.exp(-epsilons)
    gaps = (-np.expm1(-epsilons) + 2 * deltas * shrink) / (1 + shrink)
    return Meaning(
        membership_test_gap=_round_up(gaps),
        tpr_at_fpr={rate: largest(held, rate) for rate in RATES},
        guess_at_prior={prior: largest(held, prior) for prior in PRIORS},
    )


def largest(pairs: Pairs, rate: float) -> float:
    """Return ``g(rate)``, the largest true positive rate at this false positive rate.

    It is also the largest chance to guess a secret at this prior.
    """
    epsilons, deltas = _arrays(pairs)
    with np.errstate(over="ignore"):  # an infinite bound is none, and the other one counts
        more = deltas + np.exp(epsilons) * rate
    less = -np.expm1(-epsilons) + np.exp(-epsilons) * (rate + deltas)
    return _round_up(np.minimum(more, less))


def pairs_of(losses: Iterable[Loss]) -> Pairs:
    """Return many pairs for these losses, each of which was fixed beforehand.

    Together they give smaller bounds than one pair.
    """
    given = [*losses]
    whole = float(sum(loss.epsilon for loss in given))
    grid = np.linspace(0.0, min(4 * whole, _FURTHEST), _POINTS).tolist()
    return [(epsilon, float(composed_delta(given, Fraction(epsilon)))) for epsilon in grid]


def json_of(guarantee: Guarantee) -> dict[str, object]:
    """Return the guarantee for programs, with its meaning under ``means`` if proven."""
    meaning = meaning_of(guarantee)
    return guarantee.to_json() | ({} if meaning is None else {"means": meaning.to_json()})


def _arrays(pairs: Pairs) -> tuple[FloatArray, FloatArray]:
    epsilons, deltas = np.array([*pairs], np.float64).T
    return epsilons, deltas


def _round_up(bounds: FloatArray) -> float:
    return min(1.0, float(np.min(bounds)) * _ROUNDING)
