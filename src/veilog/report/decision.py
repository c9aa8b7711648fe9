"""The first screen about a release: level, protected unit, budget, and checks.

The scale is that of :mod:`veilog.privacy.account.guarantee`, the checks are those of :mod:`veilog.releasing.checks`. It
adds what the data owner alone may see. Nothing here is a permission: the person responsible for the data decides.
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
from veilog.logs.facts import PersonColumn, person_columns, staff_columns
from veilog.logs.variants import Variants
from veilog.messages import Message
from veilog.privacy.account.budgets import LARGEST_EPSILON
from veilog.privacy.account.guarantee import STRENGTHS, Guarantee, Strength
from veilog.privacy.account.guessing_advantage import worth
from veilog.releasing.account_notes import LedgerStatus, count_releases
from veilog.releasing.checks import Check, State, checks_of
from veilog.report.explorer import clean, short
from veilog.report.release_facts import Told
from veilog.report.words import (
    TONES,
    capital,
    delta_sentence,
    figure,
    headline,
    localise,
    other_accounts_sentence,
    other_releases_sentence,
    strength_in_words,
    title_of_budget,
)

Tone = Literal["good", "warn", "bad"]

MARKS: Mapping[State, tuple[str, str]] = {
    "checked": ("☑", gettext_noop("checked by the program")),
    "to-confirm": ("☐", gettext_noop("to be confirmed by you")),
    "against": ("☒", gettext_noop("seems not to hold")),
}
"""Sign and words for the state of a check."""
CONFIRMED = "✓"
"""Sign of a statement that a person confirmed."""
_SHOWN = 5
_LONGEST_WHY = 700
"""Largest number of characters of a reason: a text of a file may be of any length."""
_SEVERAL = 5
"""Number of cases of a person, if it is not known."""
_LITTLE = 10
"""Cases times epsilon below which the noise of a count is a tenth of the log or more."""


@dataclass(frozen=True)
class ShownCheck:
    """A check in words, with facts from the owner's log and ledger."""

    code: str
    state: State
    asks: str
    why: str


@dataclass(frozen=True)
class Decision:
    """The first screen: level, protected unit, budget spent, checks, and warnings."""

    strength: Strength
    tone: Tone
    headline: str
    whom: str
    answer: str
    reasons: tuple[str, ...]
    """Reasons why the level is not a better one."""
    checks: tuple[ShownCheck, ...]
    cautions: tuple[str, ...]
    """Further facts to know at first sight."""


@dataclass(frozen=True)
class OwnerSide:
    """The first screen's confidential part for the data owner; all of it is exact."""

    name: str
    cases: int
    activities: int
    alone: tuple[str, ...]
    """Activities that occur in one case only."""
    persons: PersonColumn | None
    """Column that most likely identifies the person of a case, if there is one."""
    standing: LedgerStatus | None
    """The ledger's facts on other releases; None without a ledger."""
    columns: bool = True
    """True if there were columns to look at; variants have none."""
    options: bool = True
    """True if the reader can use the options of the command."""
    staff: tuple[str, ...] = ()
    """Columns that name who did the work."""


def owner_side(original: EventLog | Variants, standing: LedgerStatus | None, *, options: bool = True) -> OwnerSide:
    """Return the confidential part of the first screen about the original."""
    variants = original if isinstance(original, Variants) else original.variants
    found = () if isinstance(original, Variants) else person_columns(original)
    source = "" if isinstance(original, Variants) else PurePath(original.source or "").name
    account = None if standing is None or standing.account is None else standing.account.among(variants.cases)
    return OwnerSide(
        name=short(source or ("" if account is None else account.name), 120),
        cases=variants.cases,
        activities=len(variants.labels),
        alone=_lone_activities(variants),
        persons=found[0] if found else None,
        standing=None if standing is None else replace(standing, account=account),
        columns=not isinstance(original, Variants),
        options=options,
        staff=() if isinstance(original, Variants) else staff_columns(original),
    )


def decision_facts(told: Told, cases: int, owner: OwnerSide | None = None) -> Decision:
    """Return the first screen of a release of so many cases.

    If ``owner`` is given, it has what only the data owner may see.
    """
    if owner is not None:
        told = told.among(owner.cases)
    g = told.guarantee
    tone, reasons, checks = TONES[g.strength], delta_sentence(g), _checks(told, owner)
    answer = _answer(g, checks)
    if not g.proven:
        reasons = tuple(clean(capital(localise(reason))).rstrip(".") + "." for reason in g.reasons[:_SHOWN])
        if g.statements:
            models = short(", ".join(statement.model for statement in g.statements), 200)
            reasons += (gettext("The guarantee stated instead ({models}) protects against less.", models=models),)
    elif g.strength == STRENGTHS[-1]:
        checks = ()
        reasons = reasons or (
            gettext(
                "At ε = {epsilon} the noise hides hardly anything of one {unit}.",
                epsilon=figure(g.epsilon),
                unit=g.unit,
            ),
        )
    if any(check.state == "against" for check in checks) and tone == "good":
        tone = "warn"
    if not cases:
        tone = "bad" if tone == "bad" else "warn"
        answer, checks = gettext("The release is empty: there is nothing to send."), ()
    cautions = _cautions(g, cases, owner) + (() if checks else _persons(g, owner))
    return Decision(g.strength, tone, headline(g), localise(g.protects), answer, reasons, checks, cautions)


def _answer(g: Guarantee, checks: tuple[ShownCheck, ...]) -> str:
    """Return the budget spent and the note on what remains to be confirmed."""
    if g.strength == STRENGTHS[-1]:
        return gettext("Treat it as you treat the original log.")
    if any(check.state == "against" for check in checks):
        return gettext("A crossed-out item seems not to hold.")
    return (
        gettext("{budget} was spent.", budget=title_of_budget(g))
        + " "
        + gettext("An empty box remains to be confirmed. The person responsible for the data decides.")
    )


def person_sentence(g: Guarantee, cases: int) -> Strength:
    """Return the level of a guarantee for one case to a person with so many cases.

    Group privacy gives it.
    """
    if g.epsilon is None or g.epsilon * cases > LARGEST_EPSILON:
        return STRENGTHS[-1]
    growth = sum(math.exp(g.epsilon * i) for i in range(cases))
    return worth((Fraction(g.epsilon) * cases, Fraction((g.delta or 0.0) * growth)), cases=g.cases or 0)


def _checks(told: Told, owner: OwnerSide | None) -> tuple[ShownCheck, ...]:
    """Return the checks of the release, with facts from the owner's log and ledger."""
    checks: list[ShownCheck] = []
    for check in map(_show_check, checks_of(told.guarantee, told.activities, from_file=told.from_file)):
        if check.code == "activities-from-log" and owner is not None:
            check = replace(check, why=f"{check.why} {_activities_sentence(owner)}")
        elif check.code == "unit" and told.guarantee.unit == "case":
            check = _unit(check, told.guarantee, owner)
        elif check.code == "releases-elsewhere" and owner is not None:
            checks.append(_account_check(owner.standing))
            others = "" if owner.standing is None else other_accounts_sentence(owner.standing)
            check = replace(check, why=f"{check.why} {others}".strip())
        checks.append(check)
    return tuple(checks)


def _show_check(check: Check) -> ShownCheck:
    return ShownCheck(check.code, check.state, str(check.asks), short(str(check.why or ""), _LONGEST_WHY))


def _account_check(standing: LedgerStatus | None) -> ShownCheck:
    """Return the check of other releases of the same data, by the ledger."""
    state, why = other_releases_sentence(standing)
    account = None if standing is None else standing.account
    if account is None or account.uncounted or count_releases(account) < 2:
        asks = Message("check-other-releases-none")
    else:
        asks = Message("check-other-releases")
    return replace(_show_check(Check("other-releases", state, asks)), why=why)


def _activities_sentence(owner: OwnerSide) -> str:
    """Return the number of activities, and those that might reveal a person."""
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


def _unit(check: ShownCheck, g: Guarantee, owner: OwnerSide | None) -> ShownCheck:
    """Return the check of the case as unit, with evidence of the owner's columns."""
    if owner is not None and owner.persons is not None:
        return replace(check, state="against", why=f"{_persons(g, owner)[0]} {_group(g, owner.persons.most)}")
    group = _group(g, _SEVERAL)
    if owner is None or not owner.columns:
        return replace(check, why=group)
    return replace(check, why=f"{gettext('No column seems to identify people; you may know better.')} {group}")


def _persons(g: Guarantee, owner: OwnerSide | None) -> tuple[str, ...]:
    """Return a warning if the log seems to know persons but protects single cases."""
    if owner is None or owner.persons is None or g.unit != "case":
        return ()
    named = str(owner.persons.message(quoted(clean(owner.persons.column)), options=owner.options))
    return (gettext("The log seems to know persons: {column}.", column=short(named, 300)),)


def _group(g: Guarantee, most: int) -> str:
    return gettext(
        "A person with {n} cases is protected at {n} times ε, ε = {epsilon}: the protection level is {strength}.",
        n=most,
        epsilon=figure((g.epsilon or 0.0) * most),
        strength=strength_in_words(person_sentence(g, most)),
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
                "The log has {n} case: too few for this ε. The release is mostly noise.",
                "The log has {n} cases: too few for this ε. The release is mostly noise.",
                owner.cases,
            )
        )
    whose = g.neighbours.values.get("neighbours", g.neighbours).values.get("column")
    staff = [] if owner is None else [name for name in owner.staff if repr(name) != whose]
    if g.proven and staff:
        names = ", ".join(quoted(short(name, 60)) for name in staff[:_SHOWN])
        said.append(
            gettext("The log names the staff who did the work ({columns}): they are not protected.", columns=names)
        )
    if g.subset is not None:
        said.append(gettext("It is of the {cases} alone.", cases=clean(localise(g.subset.in_words))))
    return tuple(said)


def _lone_activities(variants: Variants) -> tuple[str, ...]:
    """Return the activities that occur in one case only."""
    number = max(1, len(variants.labels))
    owners = np.repeat(np.arange(len(variants), dtype=np.int64), variants.lengths)
    pairs = np.unique(owners * number + variants.codes)
    cases = np.bincount(pairs % number, weights=variants.counts[pairs // number], minlength=len(variants.labels))
    return tuple(variants.labels[code] for code in np.flatnonzero(cases == 1).tolist())
