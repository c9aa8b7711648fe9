"""May it be sent? What stands first on every page about a release: a word on a scale, whom it protects, and what has to
hold before it leaves the house.

The scale is that of :mod:`veilog.privacy.account.strength`. To whom a release of which strength may go is our advice:
no theorem and no law says so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import PurePath
from typing import Literal

import numpy as np

from veilog.ledger.ledger import Account
from veilog.logs.eventlog import EventLog
from veilog.logs.facts import PersonColumn, person_columns
from veilog.logs.variants import Variants
from veilog.privacy.account.accounting import LARGEST_EPSILON
from veilog.privacy.account.guarantee import Code, Condition, Guarantee
from veilog.privacy.account.guessing import advantage_of
from veilog.privacy.account.strength import STRENGTHS, Strength, strength_of
from veilog.report.explorer import clean, short
from veilog.report.figures import figure
from veilog.report.told import Told

__all__ = ["MARKS", "Check", "Decision", "OwnerSide", "State", "decided", "of_pair", "of_person", "owner_side"]

State = Literal["met", "open", "against"]
Tone = Literal["good", "warn", "bad"]

MARKS: Mapping[State, tuple[str, str]] = {
    "met": ("☑", "holds"), "open": ("☐", "to be confirmed"), "against": ("☒", "seems not to hold"),
}  # fmt: skip
"""How the state of a condition is shown, as a sign and in words."""

_SENDS: Mapping[Strength, tuple[Tone, str]] = {
    "strong": ("good", "You may send it to anybody, if all of this holds:"),
    "good": ("good", "You may send it to anybody, if all of this holds:"),
    "moderate": ("warn", "You may send it to recipients whom you know, if all of this holds:"),
    "weak": ("bad", "You may send it only to those who could be given the original log, if all of this holds:"),
    "none in practice": ("bad", "Do not send it."),
}
_ASKS: Mapping[Code, str] = {
    "activities-from-log": "The names of all activities of the log are no secret, also of those that occur once.",
    "length-from-log": "How many events the longest case has is no secret.",
    "window-from-log": "The days on which the first and the last case start are no secret.",
    "columns-from-log": "Which attributes there are, and their types, is no secret.",
    "activities-mapped": "The list that groups the activities is public, and was not made from the log.",
    "nobody-has-more": "No person has more cases than was said.",
    "one-run": "No copy of the training's checkpoint was resumed beside it.",
    "columns-read-together": "No case changed how the others were read.",
}
_SHOWN = 5
_SEVERAL = 5
"""Cases of a person, where it is not known how many they have."""
_LITTLE = 10
"""Below so many cases times epsilon the noise of one count is a tenth of the log or more."""


@dataclass(frozen=True)
class Check:
    """One thing that has to hold before a release is sent, and what is known about it."""

    state: State
    """"met": the program knows that it holds; "open": somebody has to say so; "against": it seems not to hold."""
    asks: str
    why: str


@dataclass(frozen=True)
class Decision:
    """The first screen: the word, whom it protects, whether it may be sent, and if what holds."""

    strength: Strength
    tone: Tone
    headline: str
    whom: str
    answer: str
    reasons: tuple[str, ...]
    """Why it may not be sent."""
    checks: tuple[Check, ...]
    cautions: tuple[str, ...]
    """What else has to be known at first sight."""


@dataclass(frozen=True)
class OwnerSide:
    """What the first screen says on the owner's page alone; all of it is exact."""

    name: str
    cases: int
    activities: int
    alone: tuple[str, ...]
    """The activities that occur in one case only."""
    persons: PersonColumn | None
    """The column that most likely says whose a case is, if there is one."""
    account: Account | None
    """What the ledger knows of releases of these data; None where there is none."""


def owner_side(original: EventLog | Variants, account: Account | None) -> OwnerSide:
    """Return what the owner's first screen says of the original."""
    variants = original if isinstance(original, Variants) else original.variants
    found = () if isinstance(original, Variants) else person_columns(original)
    source = "" if isinstance(original, Variants) else PurePath(original.source or "").name
    return OwnerSide(
        name=short(source or ("" if account is None else account.name), 120),
        cases=variants.cases,
        activities=len(variants.labels),
        alone=_in_one_case(variants),
        persons=found[0] if found else None,
        account=account,
    )


def decided(told: Told, cases: int, owner: OwnerSide | None = None) -> Decision:
    """Return the first screen of a release of so many cases; with what only its owner may see, if that is given."""
    g = told.guarantee
    tone, answer = _SENDS[g.strength]
    reasons: tuple[str, ...] = ()
    checks: tuple[Check, ...] = ()
    if not g.proven:
        headline = "No protection is proven."
        reasons = tuple(clean(reason[:1].upper() + reason[1:]).rstrip(".") + "." for reason in g.reasons[:_SHOWN])
        if g.statements:
            models = ", ".join(statement.model for statement in g.statements)
            reasons += (f"What is stated in its place ({short(models, 200)}) protects against less.",)
    elif tone == "bad" and g.strength == STRENGTHS[-1]:
        headline = "Protection is none in practice."
        reasons = (
            f"At ε = {figure(g.epsilon)} the noise hides hardly anything of one {g.unit}: treat it as you treat the "
            "original.",
        )
    else:
        headline = f"Protection is {g.strength}."
        checks = _checks(told, cases, owner)
        if any(check.state == "against" for check in checks):
            tone, answer = (
                ("bad" if tone == "bad" else "warn"),
                "Not as it stands: what is crossed out seems not to hold.",
            )
    if not cases:
        tone = "bad" if tone == "bad" else "warn"
        answer = "There is nothing to send: the release is empty."
        checks = ()
    return Decision(g.strength, tone, headline, g.protects, answer, reasons, checks, _cautions(g, cases, owner))


def of_person(g: Guarantee, cases: int, released: int) -> Strength:
    """Return what a guarantee for one case is worth to a person with so many cases (group privacy)."""
    if g.epsilon is None or g.epsilon * cases > LARGEST_EPSILON:
        return STRENGTHS[-1]
    growth = sum(math.exp(g.epsilon * i) for i in range(cases))
    return of_pair(g.epsilon * cases, (g.delta or 0.0) * growth, released)


def of_pair(epsilon: float, delta: float, released: int) -> Strength:
    """Return what an epsilon and a delta are worth, to one of so many released cases."""
    if epsilon > LARGEST_EPSILON or delta >= 1:
        return STRENGTHS[-1]
    advantage = advantage_of(Fraction(epsilon), Fraction(delta)) if epsilon else Fraction(delta)
    return strength_of(float(advantage), delta, released)


def _checks(told: Told, cases: int, owner: OwnerSide | None) -> tuple[Check, ...]:
    g = told.guarantee
    checks = [_condition(condition, owner) for condition in g.conditions]
    if not any(condition.code == "activities-from-log" for condition in g.conditions):
        checks.insert(
            0,
            Check(
                "met",
                "No name of an activity comes from the log unasked.",
                "They were declared from outside the log, or found with noise.",
            ),
        )
    checks += [_unit(g, cases, owner), _only_release(g, owner), _recipient(g.strength)]
    if told.from_file:
        checks.append(
            Check(
                "open",
                "The file is as it was written.",
                "The guarantee is what the file states; nobody derived it again. Compare its SHA-256 with the owner's.",
            )
        )
    return tuple(checks)


def _condition(condition: Condition, owner: OwnerSide | None) -> Check:
    asks = _ASKS.get(condition.code, "What the guarantee takes for granted holds.")
    said = "the owner said so" if condition.said_by == "owner" else "nothing checked it"
    why = f"{short(condition.text, 600).rstrip('.')} ({said})."
    if owner is not None and condition.code == "activities-from-log":
        why += f" There are {owner.activities:,}"
        if owner.alone:
            named = ", ".join(f"“{short(name, 60)}”" for name in owner.alone[:_SHOWN])
            more = f" and {len(owner.alone) - _SHOWN:,} more" if len(owner.alone) > _SHOWN else ""
            return Check("open", asks, f"{why}, in one case only: {named}{more}. Look at these.")
        return Check("open", asks, f"{why}, and each occurs in two cases or more.")
    return Check("open", asks, why)


def _unit(g: Guarantee, cases: int, owner: OwnerSide | None) -> Check:
    if g.unit != "case":
        return Check("met", f"One {g.unit} is protected, with all the cases that count.", clean(g.neighbours) + ".")
    asks = "A case is what has to be protected, and not a person with several."
    column = None if owner is None else owner.persons
    if column is not None:
        why = f"The log seems to know persons: {short(str(column), 300)}. {_group(g, column.most, cases)}"
        return Check("against", asks, why)
    said = "" if owner is None else "No column looks as if it told persons; you may know better. "
    return Check("open", asks, said + _group(g, _SEVERAL, cases))


def _group(g: Guarantee, most: int, cases: int) -> str:
    word = of_person(g, most, cases)
    return (
        f"A person with {most:,} cases is protected at {most:,} times ε, ε = {figure((g.epsilon or 0.0) * most)}: "
        f"protection is {word}."
    )


def _only_release(g: Guarantee, owner: OwnerSide | None) -> Check:
    asks = "It is the only release of these data."
    if owner is None:
        return Check("open", asks, "The ε of all releases of the same data add up; the owner's ledger knows them.")
    account = owner.account
    if account is None:
        return Check("open", asks, "No ledger was asked. If there are others, their ε add up.")
    number = sum(entry.state != "withdrawn" for entry in account.entries)
    if number <= 1:
        return Check("met", asks, f"The ledger (account {account.number}) knows of no other.")
    if account.spent is None:
        return Check("against", asks, f"The ledger knows of {number:,}, and nothing bounds what they cost together.")
    worth = account.strength
    state: State = "against" if STRENGTHS.index(worth) > STRENGTHS.index("moderate") else "open"
    return Check(
        state,
        asks,
        f"The ledger knows of {number:,}, which cost ε = {figure(account.spent[0])} together: protection by all of "
        f"them is {worth}.",
    )


def _recipient(strength: Strength) -> Check:
    if strength == "moderate":
        return Check(
            "open",
            "The recipients are known, and have agreed not to look for people in it.",
            "At this strength a determined reader may become surer of something about one of them.",
        )
    if strength == "weak":
        return Check(
            "open",
            "The recipients could be given the original log, under the same rules.",
            "At this strength it is to be treated as data about people.",
        )
    return Check(
        "met",
        "The recipient may be anybody.",
        "The promise does not rest on who reads it, what they know, or what they compute.",
    )


def _cautions(g: Guarantee, cases: int, owner: OwnerSide | None) -> tuple[str, ...]:
    said = []
    if not cases:
        said.append(
            "No case came through the noise. The budget is spent nevertheless; a larger ε or δ lets more through."
        )
    if owner is not None and g.proven and owner.cases * (g.epsilon or 0.0) < _LITTLE:
        many = "1 case" if owner.cases == 1 else f"{owner.cases:,} cases"
        said.append(f"The log has {many}: too few for this ε. What was released is noise for the most part.")
    if g.part is not None:
        said.append(f"It is of the {clean(g.part.in_words)} alone.")
    return tuple(said)


def _in_one_case(variants: Variants) -> tuple[str, ...]:
    """The activities that occur in one case only."""
    number = max(1, len(variants.labels))
    owners = np.repeat(np.arange(len(variants), dtype=np.int64), variants.lengths)
    pairs = np.unique(owners * number + variants.codes)
    cases = np.bincount(pairs % number, weights=variants.counts[pairs // number], minlength=len(variants.labels))
    return tuple(variants.labels[code] for code in np.flatnonzero(cases == 1).tolist())
