"""The meaning of a guarantee in numbers and words, for pages and dossiers."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Literal

from veilog._language import format_date, format_number, gettext, ngettext, percent, pgettext
from veilog.ledger.accounts import Account
from veilog.measures.use_cases import Grade
from veilog.messages import Message, OwnerMessage
from veilog.privacy.account.guarantee import STRENGTHS, Guarantee, Strength, up
from veilog.releasing.account_notes import LedgerStatus, count_releases
from veilog.releasing.checks import State
from veilog.report.explorer import clean, short

Tone = Literal["good", "warn", "bad"]

_BEFORE = (0.01, 0.1, 0.5, 0.9)

TONES: Mapping[Strength, Tone] = {
    "strong": "good", "good": "good", "moderate": "warn", "weak": "bad", "none in practice": "bad",
}  # fmt: skip
"""Class of style for each protection level."""
GRADES: Mapping[Grade, str] = {"good": "good", "limited": "warn", "poor": "bad", "not judged": "dim"}
"""Class of style for each verdict on a use case."""


def strength_in_words(strength: Strength) -> str:
    """Return the word for a protection level, as in "Protection is ..."."""
    return {
        "strong": pgettext("protection is", "strong"),
        "good": pgettext("protection is", "good"),
        "moderate": pgettext("protection is", "moderate"),
        "weak": pgettext("protection is", "weak"),
        "none in practice": pgettext("protection is", "none in practice"),
    }[strength]


def title_of_budget(guarantee: Guarantee, digits: int = 6) -> str:
    """Return the guarantee in two or three words, for the head of the page."""
    if guarantee.proven:
        delta = f", δ = {figure(guarantee.delta, digits)}" if guarantee.delta else ""
        return f"ε = {figure(guarantee.epsilon, digits)}{delta}"
    if guarantee.statements:
        return ", ".join(statement.model for statement in guarantee.statements)
    return pgettext("guarantee", "none")


def headline(g: Guarantee) -> str:
    """Return the protection level in a sentence, with the largest log for it."""
    if not g.proven:
        return gettext("No protection is proven.")
    strength = strength_in_words(g.strength)
    if g.holds_up_to is None:
        return gettext("Protection is {strength}.", strength=strength)
    return ngettext(
        "Protection is {strength}, for a log of up to {n} case.",
        "Protection is {strength}, for a log of up to {n} cases.",
        g.holds_up_to,
        strength=strength,
    )


def delta_sentence(g: Guarantee) -> tuple[str, ...]:
    """Return a note if delta decides the level in a log of so many cases."""
    found = g.weighed
    if found is None:
        return ()
    return (
        gettext(
            "δ decides this: in a log of {cases} cases it lets {exposed} through unchanged, on average. With a δ of "
            "at most {enough} protection would be {better}.",
            cases=g.cases or 0,
            exposed=format_number(f"{found.exposed:.2g}"),
            enough=figure(found.enough),
            better=strength_in_words(found.better),
        ),
    )


def points(advantage: float) -> str:
    """Return a rise of a chance in percentage points, rounded up."""
    return format_number(f"{math.ceil(advantage * 1e4) / 100:g}")


def chances(guarantee: Guarantee) -> list[tuple[str, str]]:
    """Return an attacker's certainty that a case is in the log, before and after.

    After the release it is the largest possible one. With a delta it is an average over the noise
    (:mod:`veilog.privacy.account.guessing_advantage`).
    """
    if guarantee.epsilon is None:
        return []
    shrink, delta = math.exp(-guarantee.epsilon), guarantee.delta or 0.0
    found = [(before, (1 - delta) * before / (before + shrink * (1 - before)) + delta) for before in _BEFORE]
    return [(share_of(f"{100 * before:g}"), percent_up(min(1.0, after))) for before, after in found]


def factor(epsilon: float | None) -> str:
    """Return the largest factor by which odds and chances change."""
    factor = math.exp(min(epsilon or 0.0, 700.0))
    return format_number(f"{math.ceil(factor * 100) / 100:g}") if factor < 1e4 else figure(factor, 2)


def percent_up(share: float) -> str:
    """Return a chance in percent, rounded up, that never looks certain or like 0."""
    if 0 < share < 0.001:
        return bind_numbers(pgettext("locale", "{number} %", number=figure(100 * share, 2)))
    if share < 0.9995:
        return share_of(f"{math.ceil(share * 1000) / 10:g}")
    return gettext("nearly {share}", share=share_of("100"))


def capital(text: str) -> str:
    """Return the text with a capital at its start, and nothing else changed."""
    return text[:1].upper() + text[1:]


def other_releases_sentence(standing: LedgerStatus | None) -> tuple[State, str]:
    """Return the state and reason for a ledger's other releases of the same data.

    It is whether the account has none or, if there are some, whether all together protect at moderate or better.
    """
    if standing is None:
        return "to-confirm", gettext("No ledger was used. If there are other releases, their ε add up.")
    if not standing.readable:
        return "to-confirm", gettext("The ledger cannot be read. If there are others, their ε add up.")
    state, why = _account_state(standing.account)
    if standing.as_of:
        why = gettext("As of {date} (UTC): {known}", date=format_date(standing.as_of), known=why)
    return state, why


def _account_state(account: Account | None) -> tuple[State, str]:
    if account is not None and account.uncounted:
        return "against", ngettext(
            "The ledger lists {n} release that it does not count: its ε is in no sum.",
            "The ledger lists {n} releases that it does not count: their ε is in no sum.",
            len(account.uncounted),
        )
    number = 0 if account is None else count_releases(account)
    if account is None or not number:
        return "to-confirm", gettext("The ledger does not have this release. If there are others, their ε add up.")
    if number == 1:
        return "checked", gettext("The ledger (account {number}) knows of no other.", number=str(account.number))
    if account.spent is None and len({entry.unit for entry in account.entries if entry.state != "withdrawn"}) > 1:
        return "against", gettext("The ledger has {n}, for different units: their ε do not add up.", n=number)
    if account.spent is None and account.unit == "case" and len(account.kinds) > 1:
        apart = gettext("The ledger has {n}, for different kinds of cases: their ε do not add up.", n=number)
        return "against", apart
    if account.spent is None:
        return "against", gettext("The ledger has {n}, and nothing bounds their ε together.", n=number)
    worth = account.strength
    together = gettext(
        "The ledger has {n}, which use ε = {epsilon} together: the protection level of all of them is {strength}.",
        n=number,
        epsilon=figure(account.spent[0]),
        strength=strength_in_words(worth),
    )
    return ("against" if STRENGTHS.index(worth) > STRENGTHS.index("moderate") else "checked"), together


def other_accounts_sentence(standing: LedgerStatus) -> str:
    """Return a note on releases of other data; empty if there are none.

    A log that has grown is about the same people, and another ward's is not.
    """
    if not standing.others:
        return ""
    if not standing.names:
        return ngettext(
            "The ledger has {n} other account: if it is about the same people, their ε add up.",
            "The ledger has {n} other accounts: if they are about the same people, their ε add up.",
            standing.others,
        )
    names = ", ".join(short(clean(name), 60) for name in standing.names)
    return ngettext(
        "The ledger has {n} other account ({names}): if it is about the same people, their ε add up.",
        "The ledger has {n} other accounts ({names}): if they are about the same people, their ε add up.",
        standing.others,
        names=names + (", …" if standing.others > len(standing.names) else ""),
    )


# Numbers for people on a page, in the current language: powers of ten as powers, and no line that
# breaks inside a number.

_RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_POWER = re.compile(r"(?:1(?=e)|([\d.]+))e([+-]?)0*(\d+)")


def figure(value: Fraction | float | None, digits: int = 6) -> str:
    """Return a number that is rounded up: 10⁻⁶ in place of 1e-06."""
    if value is None:
        return pgettext("number", "none")
    return format_number(_POWER.sub(_raised_text, up(value, digits)))


def share_of(number: str) -> str:
    """Return a number, written as in English, in percent."""
    return bind_numbers(percent(number))


def bind_numbers(text: str) -> str:
    """Return the text with thin spaces where no line may break.

    These are before a percent sign, and around the sign after ε or δ.
    """
    return re.sub(r"(?<=[εδ]) = (?=\S)", "\u202f=\u202f", re.sub(r"(?<=\d)[ \u00a0]%", "\u202f%", text))


def _raised_text(found: re.Match[str]) -> str:
    power = "10" + (found[2].replace("+", "") + found[3]).translate(_RAISED)
    return power if found[1] is None else f"{found[1]}·{power}"


# Statements of a release about itself, in the current language.


def localise(text: str | Message | OwnerMessage) -> str:
    """Return a message's sentence or a marked text in the current language.

    Any other text stays as it is.
    """
    return gettext(text) if isinstance(text, str) else str(text)
