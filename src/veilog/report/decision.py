"""May it be sent? What stands first on every page about a release: a word on a scale, whom it protects, and what has to
hold before it leaves the house.

The scale is that of :mod:`veilog.privacy.account.strength`. To whom a release of which strength may go is our advice:
no theorem and no law says so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import PurePath
from typing import Literal

import numpy as np

from veilog._language import gettext, gettext_noop, ngettext, quoted
from veilog.logs.eventlog import EventLog
from veilog.logs.facts import PersonColumn, person_columns
from veilog.logs.variants import Variants
from veilog.privacy.account.accounting import LARGEST_EPSILON
from veilog.privacy.account.guarantee import Code, Condition, Guarantee
from veilog.privacy.account.strength import STRENGTHS, Strength
from veilog.privacy.account.worth import worth
from veilog.releasing.owner.standing import Standing
from veilog.report.explorer import clean, short
from veilog.report.figures import figure
from veilog.report.stated import stated
from veilog.report.told import Told
from veilog.report.words import State, by_delta, capital, said_of_others, strength_in_words

__all__ = [
    "MARKS",
    "Check",
    "Decision",
    "OwnerSide",
    "State",
    "decided",
    "of_person",
    "owner_side",
    "renewed",
]

Tone = Literal["good", "warn", "bad"]

MARKS: Mapping[State, tuple[str, str]] = {
    "met": ("☑", gettext_noop("holds")),
    "open": ("☐", gettext_noop("to be confirmed")),
    "against": ("☒", gettext_noop("seems not to hold")),
}
"""How the state of a condition is shown, as a sign and in words."""

_SENDS: Mapping[Strength, tuple[Tone, str]] = {
    "strong": ("good", gettext_noop("You may send it to anybody, if all of this holds:")),
    "good": ("good", gettext_noop("You may send it to anybody, if all of this holds:")),
    "moderate": ("warn", gettext_noop("You may send it to recipients whom you know, if all of this holds:")),
    "weak": (
        "bad",
        gettext_noop("You may send it only to those who could be given the original log, if all of this holds:"),
    ),
    "none in practice": ("bad", gettext_noop("Do not send it.")),
}
_ASKS: Mapping[Code, str] = {
    "activities-from-log": gettext_noop(
        "The names of all activities of the log are no secret, also of those that occur once."
    ),
    "length-from-log": gettext_noop("How many events the longest case has is no secret."),
    "window-from-log": gettext_noop("The days on which the first and the last case start are no secret."),
    "columns-from-log": gettext_noop("Which attributes there are, and their types, is no secret."),
    "activities-mapped": gettext_noop("The list that groups the activities is public, and was not made from the log."),
    "nobody-has-more": gettext_noop("No person has more cases than was said."),
    "unnamed-are-single": gettext_noop("Nobody has several cases of those that name no person, or one beside others."),
    "one-run": gettext_noop("No copy of the training's checkpoint was resumed beside it."),
    "columns-read-together": gettext_noop("No case changed how the others were read."),
    "method-of-another-package": gettext_noop(
        "The package of the method releases nothing but what follows from the answers to its questions."
    ),
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
    of_ledger: bool = False
    """Whether it is about other releases, so that it holds only as long as there are no more."""


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
    standing: Standing | None
    """What the ledger knows of other releases; None where there is none."""
    columns: bool = True
    """Whether there were columns to look at; variants have none."""
    options: bool = True
    """Whether the options of the command are of use to whoever reads it."""


def owner_side(original: EventLog | Variants, standing: Standing | None, *, options: bool = True) -> OwnerSide:
    """Return what the owner's first screen says of the original."""
    variants = original if isinstance(original, Variants) else original.variants
    found = () if isinstance(original, Variants) else person_columns(original)
    source = "" if isinstance(original, Variants) else PurePath(original.source or "").name
    account = None if standing is None or standing.account is None else standing.account.among(variants.cases)
    return OwnerSide(
        name=short(source or ("" if account is None else account.name), 120),
        cases=variants.cases,
        activities=len(variants.labels),
        alone=_in_one_case(variants),
        persons=found[0] if found else None,
        standing=None if standing is None else replace(standing, account=account),
        columns=not isinstance(original, Variants),
        options=options,
    )


def decided(told: Told, cases: int, owner: OwnerSide | None = None) -> Decision:
    """Return the first screen of a release of so many cases; with what only its owner may see, if that is given."""
    g = told.guarantee
    tone, sends = _SENDS[g.strength]
    answer = gettext(sends)
    reasons: tuple[str, ...] = ()
    checks: tuple[Check, ...] = ()
    if not g.proven:
        headline = gettext("No protection is proven.")
        reasons = tuple(clean(capital(stated(reason))).rstrip(".") + "." for reason in g.reasons[:_SHOWN])
        if g.statements:
            models = short(", ".join(statement.model for statement in g.statements), 200)
            reasons += (gettext("What is stated in its place ({models}) protects against less.", models=models),)
    elif tone == "bad" and g.strength == STRENGTHS[-1]:
        headline = gettext("Protection is none in practice.")
        reasons = by_delta(g) or (
            gettext(
                "At ε = {epsilon} the noise hides hardly anything of one {unit}: treat it as you treat the original.",
                epsilon=figure(g.epsilon),
                unit=g.unit,
            ),
        )
    else:
        headline = gettext("Protection is {strength}.", strength=strength_in_words(g.strength))
        reasons = by_delta(g)
        checks = _checks(told, cases, owner)
        tone, answer = _answered(g.strength, checks)
    if not cases:
        tone = "bad" if tone == "bad" else "warn"
        answer = gettext("There is nothing to send: the release is empty.")
        checks = ()
    cautions = _cautions(g, cases, owner) + (() if checks else _persons(g, owner))
    return Decision(g.strength, tone, headline, stated(g.protects), answer, reasons, checks, cautions)


def renewed(decision: Decision, standing: Standing | None) -> Decision:
    """Return what was decided before, with what the ledger says of other releases now, and what follows from that."""
    if not any(check.of_ledger for check in decision.checks):
        return decision  # it may not be sent, whatever else there is
    checks = tuple(_only_release(standing) if check.of_ledger else check for check in decision.checks)
    tone, answer = _answered(decision.strength, checks)
    return replace(decision, tone=tone, answer=answer, checks=checks)


def _answered(strength: Strength, checks: tuple[Check, ...]) -> tuple[Tone, str]:
    """To whom a release of this strength may go, if something may be sent at all, with what has to hold."""
    tone, sends = _SENDS[strength]
    if any(check.state == "against" for check in checks):
        return "bad" if tone == "bad" else "warn", gettext("Not as it stands: what is crossed out seems not to hold.")
    return tone, gettext(sends)


def of_person(g: Guarantee, cases: int, released: int) -> Strength:
    """Return what a guarantee for one case is worth to a person with so many cases (group privacy)."""
    if g.epsilon is None or g.epsilon * cases > LARGEST_EPSILON:
        return STRENGTHS[-1]
    growth = sum(math.exp(g.epsilon * i) for i in range(cases))
    return worth((Fraction(g.epsilon) * cases, Fraction((g.delta or 0.0) * growth)), cases=released)


def _checks(told: Told, cases: int, owner: OwnerSide | None) -> tuple[Check, ...]:
    g = told.guarantee
    checks = [_condition(condition, owner) for condition in g.conditions]
    if not any(condition.code == "activities-from-log" for condition in g.conditions):
        checks.insert(
            0,
            Check(
                "met",
                gettext("No name of an activity comes from the log unasked."),
                gettext("They were declared from outside the log, or found with noise."),
            ),
        )
    checks += [_unit(g, cases, owner), _others(owner), _recipient(g.strength)]
    if told.from_file:
        checks.append(
            Check(
                "open",
                gettext("The file is as it was written."),
                gettext(
                    "The guarantee is what the file states; nobody derived it again. Compare its SHA-256 with the "
                    "owner's."
                ),
            )
        )
    return tuple(checks)


def _condition(condition: Condition, owner: OwnerSide | None) -> Check:
    asks = gettext(_ASKS.get(condition.code, gettext_noop("What the guarantee takes for granted holds.")))
    text = short(stated(condition.text), 600).rstrip(".")
    if condition.said_by == "owner":
        why = gettext("{condition} (the owner said so).", condition=text)
    else:
        why = gettext("{condition} (nothing checked it).", condition=text)
    if owner is not None and condition.code == "activities-from-log":
        return Check("open", asks, f"{why} {_looked_at(owner)}")
    return Check("open", asks, why)


def _looked_at(owner: OwnerSide) -> str:
    """How many activities there are, and those that might give somebody away."""
    if not owner.alone:
        return gettext("There are {n}, and each occurs in two cases or more.", n=owner.activities)
    named = ", ".join(quoted(short(name, 60)) for name in owner.alone[:_SHOWN])
    if len(owner.alone) > _SHOWN:
        return gettext(
            "There are {n}, in one case only: {names} and {more} more. Look at these.",
            n=owner.activities,
            names=named,
            more=len(owner.alone) - _SHOWN,
        )
    return gettext("There are {n}, in one case only: {names}. Look at these.", n=owner.activities, names=named)


def _unit(g: Guarantee, cases: int, owner: OwnerSide | None) -> Check:
    if g.unit != "case":
        asks = gettext("One {unit} is protected, with all the cases that count.", unit=g.unit)
        return Check("met", asks, clean(stated(g.neighbours)) + ".")
    asks = gettext("A case is what has to be protected, and not a person with several.")
    if owner is not None and owner.persons is not None:
        return Check("against", asks, f"{_persons(g, owner)[0]} {_group(g, owner.persons.most, cases)}")
    group = _group(g, _SEVERAL, cases)
    if owner is None or not owner.columns:
        return Check("open", asks, group)
    said = gettext("No column looks as if it told persons; you may know better.")
    return Check("open", asks, f"{said} {group}")


def _persons(g: Guarantee, owner: OwnerSide | None) -> tuple[str, ...]:
    """That the log seems to know persons, where single cases are protected."""
    if owner is None or owner.persons is None or g.unit != "case":
        return ()
    named = _named(owner.persons, owner.options)
    return (gettext("The log seems to know persons: {column}.", column=short(named, 300)),)


def _named(column: PersonColumn, options: bool) -> str:
    """The column, how many values it has for how many cases, and the options that protect persons by it."""
    values, name = {"values": column.values, "cases": column.cases, "most": column.most}, quoted(clean(column.column))
    if not options:
        return gettext("{column}: {values} values for {cases} cases, up to {most} each", column=name, **values)
    less = gettext(", with which {kept} of the cases count", kept=column.kept) if column.kept < column.cases else ""
    told = gettext(
        "{column}: {values} values for {cases} cases, up to {most} each: {options}",
        column=name,
        options=column.options,
        **values,
    )
    return told + less


def _group(g: Guarantee, most: int, cases: int) -> str:
    return gettext(
        "A person with {n} cases is protected at {n} times ε, ε = {epsilon}: protection is {strength}.",
        n=most,
        epsilon=figure((g.epsilon or 0.0) * most),
        strength=strength_in_words(of_person(g, most, cases)),
    )


def _others(owner: OwnerSide | None) -> Check:
    if owner is not None:
        return _only_release(owner.standing)
    why = gettext("The ε of all releases of the same data add up; the owner's ledger knows them.")
    return replace(_only_release(None), why=why)


def _only_release(standing: Standing | None) -> Check:
    state, why = said_of_others(standing)
    return Check(state, gettext("It is the only release of these data."), why, of_ledger=True)


def _recipient(strength: Strength) -> Check:
    if strength == "moderate":
        return Check(
            "open",
            gettext("The recipients are known, and have agreed not to look for people in it."),
            gettext("At this strength a determined reader may become surer of something about one of them."),
        )
    if strength == "weak":
        return Check(
            "open",
            gettext("The recipients could be given the original log, under the same rules."),
            gettext("At this strength it is to be treated as data about people."),
        )
    return Check(
        "met",
        gettext("The recipient may be anybody."),
        gettext("The promise does not rest on who reads it, what they know, or what they compute."),
    )


def _cautions(g: Guarantee, cases: int, owner: OwnerSide | None) -> tuple[str, ...]:
    said = []
    if not cases:
        said.append(
            gettext(
                "No case came through the noise. The budget is spent nevertheless; a larger ε or δ lets more through."
            )
        )
    if owner is not None and g.proven and owner.cases * (g.epsilon or 0.0) < _LITTLE:
        said.append(
            ngettext(
                "The log has {n} case: too few for this ε. What was released is noise for the most part.",
                "The log has {n} cases: too few for this ε. What was released is noise for the most part.",
                owner.cases,
            )
        )
    if g.part is not None:
        said.append(gettext("It is of the {cases} alone.", cases=clean(stated(g.part.in_words))))
    return tuple(said)


def _in_one_case(variants: Variants) -> tuple[str, ...]:
    """The activities that occur in one case only."""
    number = max(1, len(variants.labels))
    owners = np.repeat(np.arange(len(variants), dtype=np.int64), variants.lengths)
    pairs = np.unique(owners * number + variants.codes)
    cases = np.bincount(pairs % number, weights=variants.counts[pairs // number], minlength=len(variants.labels))
    return tuple(variants.labels[code] for code in np.flatnonzero(cases == 1).tolist())
