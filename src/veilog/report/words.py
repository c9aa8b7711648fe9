"""The sentences of a report: what the guarantee means, and what nobody may conclude from a release."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

from veilog._language import dated, gettext, gettext_noop, localised, ngettext, pgettext
from veilog.ledger.accounts import Account
from veilog.measures.purposes import Grade
from veilog.privacy.account.guarantee import STRENGTHS, Guarantee, Strength
from veilog.releasing.checks import State
from veilog.releasing.meaning import meaning_of
from veilog.releasing.owner import Standing, counting
from veilog.report.explorer import clean, short
from veilog.report.figures import figure, share_of, tied
from veilog.report.stated import stated
from veilog.report.told import Told

Tone = Literal["good", "warn", "bad"]

_BEFORE = (0.01, 0.1, 0.5, 0.9)

LEARNT: Mapping[Strength, str] = {
    "strong": gettext_noop("Readers of the release can learn next to nothing about one {unit} from it."),
    "good": gettext_noop("Readers of the release can learn little about one {unit} from it."),
    "moderate": gettext_noop(
        "Readers of the release can learn something about one {unit} from it, though they cannot be sure."
    ),
    "weak": gettext_noop("Readers of the release can learn much about one {unit} from it."),
    "none in practice": gettext_noop(
        "At such a budget the noise hides hardly anything: readers of the release may be nearly certain who was in the "
        "log and what happened to them."
    ),
}
"""What a reader may learn, by the strength of the guarantee."""
TONES: Mapping[Strength, Tone] = {
    "strong": "good", "good": "good", "moderate": "warn", "weak": "bad", "none in practice": "bad",
}  # fmt: skip
"""The class of style that a strength is shown in."""
GRADES: Mapping[Grade, str] = {"good": "good", "limited": "warn", "poor": "bad", "not judged": "dim"}
"""The class of style that a verdict on a purpose is shown in."""


def strength_in_words(strength: Strength) -> str:
    """Return the word for a strength, as in "Protection is ..."."""
    return {
        "strong": pgettext("protection is", "strong"),
        "good": pgettext("protection is", "good"),
        "moderate": pgettext("protection is", "moderate"),
        "weak": pgettext("protection is", "weak"),
        "none in practice": pgettext("protection is", "none in practice"),
    }[strength]


def on_scale(strength: Strength) -> str:
    """Return the one word for a strength that stands on the scale."""
    return {
        "strong": pgettext("scale", "strong"),
        "good": pgettext("scale", "good"),
        "moderate": pgettext("scale", "moderate"),
        "weak": pgettext("scale", "weak"),
        "none in practice": pgettext("scale", "none"),
    }[strength]


def title_of_budget(guarantee: Guarantee, digits: int = 6) -> str:
    """The guarantee in two or three words, for the head of the page."""
    if guarantee.proven:
        delta = f", δ = {figure(guarantee.delta, digits)}" if guarantee.delta else ""
        return f"ε = {figure(guarantee.epsilon, digits)}{delta}"
    if guarantee.statements:
        return ", ".join(statement.model for statement in guarantee.statements)
    return pgettext("guarantee", "none")


def headline(g: Guarantee) -> str:
    """Return the protection level in a sentence, with the largest log for which it holds."""
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


def in_plain_words(told: Told) -> list[str]:
    """The guarantee for readers who never heard of differential privacy."""
    g = told.guarantee
    if not g.proven:
        first = gettext("This release has no differential privacy guarantee.")
        first += f" {capital('; '.join(map(stated, g.reasons)))}."
        if g.statements:
            return [first, gettext("What is stated in its place follows below; it protects against less.")]
        return [first, gettext("Treat it as if it held data of the people in the log.")]
    whom = [
        headline(g),
        *by_delta(g),
        stated(g.protects),
        *([gettext("It holds under the conditions below.")] if g.conditions and g.strength != STRENGTHS[-1] else []),
    ]
    learnt = [
        gettext("Random noise stands before each single {unit}.", unit=g.unit),
        gettext(LEARNT[g.strength], unit=g.unit),
    ]
    if TONES[g.strength] != "bad":
        learnt.append(gettext("That is so whatever else they know and however much they compute."))
    if g.delta:
        odds = gettext(
            "As numbers, ε = {epsilon} and δ = {delta} mean that with a given {unit} in the log any set of releases is "
            "at most {factor} times as probable as without, plus δ; and the other way round.",
            epsilon=figure(g.epsilon),
            delta=figure(g.delta),
            unit=g.unit,
            factor=factor(g.epsilon),
        )
    else:
        odds = gettext(
            "As a number, ε = {epsilon} means that by reading the release the odds that a given {unit} was in the log "
            "change by a factor of at most {factor}.",
            epsilon=figure(g.epsilon),
            unit=g.unit,
            factor=factor(g.epsilon),
        )
    return [" ".join(whom), " ".join(learnt), odds, *_more(g)]


def by_delta(g: Guarantee) -> tuple[str, ...]:
    """Return that delta decides the level in a log of so many cases, where it does."""
    found = g.weighed
    if found is None:
        return ()
    return (
        gettext(
            "That is decided by δ: in a log of {cases} cases it may let {exposed} come out as they are, on average; "
            "with a δ of at most {enough} protection would be {better}.",
            cases=g.cases or 0,
            exposed=localised(f"{found.exposed:.2g}"),
            enough=figure(found.enough),
            better=strength_in_words(found.better),
        ),
    )


def _more(g: Guarantee) -> list[str]:
    """By how much somebody becomes surer, and that with a delta this is a mean."""
    if g.guessing_advantage is None:
        return []
    points = in_points(g.guessing_advantage)
    if g.delta:
        return [
            gettext(
                "Whoever suspects that a certain {unit} is in the log becomes surer by at most {points} percentage "
                "points by reading the release, on average over the noise. With a δ no single release is bounded: an "
                "unlucky one may reveal more.",
                unit=g.unit,
                points=points,
            )
        ]
    return [
        gettext(
            "Whoever suspects that a certain {unit} is in the log becomes surer by at most {points} percentage "
            "points by reading the release.",
            unit=g.unit,
            points=points,
        )
    ]


def in_points(advantage: float) -> str:
    """Return a rise of a chance in percentage points, rounded up."""
    return localised(f"{math.ceil(advantage * 1e4) / 100:g}")


def chances(guarantee: Guarantee) -> list[tuple[str, str]]:
    """How sure somebody is that a case is in the log before, and how sure they can be at most after the release: with a
    delta on average over the noise (:mod:`veilog.privacy.account.guessing`)."""
    if guarantee.epsilon is None:
        return []
    shrink, delta = math.exp(-guarantee.epsilon), guarantee.delta or 0.0
    found = [(before, (1 - delta) * before / (before + shrink * (1 - before)) + delta) for before in _BEFORE]
    return [(share_of(f"{100 * before:g}"), percent_up(min(1.0, after))) for before, after in found]


def guesses(guarantee: Guarantee) -> list[tuple[str, str, str]]:
    """What somebody may want to guess, the chance that they are right without the release, and the largest with it."""
    meaning = meaning_of(guarantee)
    if meaning is None:
        return []
    unit, secret = guarantee.unit, meaning.guess_at_prior
    rows = [
        (gettext("whether a {unit} is in the log", unit=unit), 0.5, meaning.presence),
        (gettext("which of 2 equally likely values a {unit} in the log has", unit=unit), 0.5, secret[0.5]),
        (gettext("which of 10 equally likely values it has"), 0.1, secret[0.1]),
        (gettext("which of 100 {unit}s it is that is in the log", unit=unit), 0.01, secret[0.01]),
    ]
    return [(what, share_of(f"{100 * before:g}"), percent_up(after)) for what, before, after in rows]


def not_to_conclude(told: Told, empty: int, inside: bool) -> list[str]:
    """What readers must not conclude; each in a sentence or two."""
    of_spreadsheets = gettext(
        "That a spreadsheet shows a CSV as it is. It runs texts that begin with =, +, - or @ as formulas. Import the "
        "columns as text, or use a workbook (.xlsx)."
    )
    return [*_of_people(told), *_of_numbers(told, empty), of_spreadsheets, *_of_this_page(told, inside)]


def _of_people(told: Told) -> list[str]:
    g = told.guarantee
    if not g.proven:
        return [gettext("That the release is anonymous in the sense of a law, or fit to be published as it is.")]
    said = [
        gettext(
            "That nothing can be learned. What holds for many {unit}s is what a release is for: it can show that most "
            "people of a kind are treated in a certain way, and so tell something about a person of that kind.",
            unit=g.unit,
        )
    ]
    if g.unit == "case":
        said.append(
            gettext(
                "That a person with several cases is protected as well as a case is. Their protection weakens with "
                "each case, unless the release protects people (--unit)."
            )
        )
    said.append(
        gettext(
            "That a second release costs nothing. The ε and δ of all releases of one log add up; one may be harmless "
            "where ten are not."
        )
    )
    return said


def _of_numbers(told: Told, empty: int) -> list[str]:
    said = [
        gettext(
            "That numbers are exact. Counts carry noise, and small ones may be nothing but noise; differences of a few "
            "cases mean nothing."
        )
    ]
    if told.guarantee.proven and told.method.removesuffix(" (as published)") in ("travas", "utravas"):
        said.append(
            gettext(
                "That what is missing never happens. Rare variants are left out on purpose, and with them the rare, "
                "long and unusual cases."
            )
        )
    else:
        said.append(
            gettext(
                "That a variant which is there has happened, or that one which is missing has not. Variants can be "
                "made up from noisy counts, and rare ones are lost."
            )
        )
    if told.timed:
        said.append(gettext("That the times are those of real events. They are drawn, or shifted, with noise."))
    else:
        said.append(
            gettext(
                "Anything from timestamps. They carry the order of events and nothing else: an hour apart, from 1970 "
                "on."
            )
        )
    if empty:
        said.append(
            ngettext(
                "That {n} case went missing: it was released without an event, as cases can be.",
                "That {n} cases went missing: they were released without an event, as cases can be.",
                empty,
            )
        )
    return said


def _of_this_page(told: Told, inside: bool) -> list[str]:
    said = []
    if told.from_file:
        said.append(
            gettext(
                "That this report checked the guarantee. It repeats what the file states; whoever changed the file "
                "could have changed that too."
            )
        )
    if inside:
        said.append(
            gettext(
                "That this page is as protected as the release. It holds exact numbers of the original log, which the "
                "guarantee does not cover."
            )
        )
    return said


def factor(epsilon: float | None) -> str:
    """Return by how much odds and chances change at most."""
    factor = math.exp(min(epsilon or 0.0, 700.0))
    return localised(f"{math.ceil(factor * 100) / 100:g}") if factor < 1e4 else figure(factor, 2)


def percent_up(share: float) -> str:
    """Return a chance in percent, rounded up, that never looks like certainty or like nothing."""
    if 0 < share < 0.001:
        return tied(pgettext("locale", "{number} %", number=figure(100 * share, 2)))
    if share < 0.9995:
        return share_of(f"{math.ceil(share * 1000) / 10:g}")
    return gettext("nearly {share}", share=share_of("100"))


def capital(text: str) -> str:
    """The text with a capital at its start, and nothing else changed."""
    return text[:1].upper() + text[1:]


def said_of_others(standing: Standing | None) -> tuple[State, str]:
    """Return what a ledger knows of other releases of the same data: whether there is none in the account, or, where
    there are some, whether all together protect at a level of moderate or better."""
    if standing is None:
        return "to-confirm", gettext("No ledger was asked. If there are others, their ε add up.")
    if not standing.readable:
        return "to-confirm", gettext("The ledger cannot be read. If there are others, their ε add up.")
    state, why = _of_these_data(standing.account)
    if standing.as_of:
        why = gettext("As of {date} (UTC): {known}", date=dated(standing.as_of), known=why)
    return state, why


def _of_these_data(account: Account | None) -> tuple[State, str]:
    if account is not None and account.uncounted:
        return "against", ngettext(
            "The ledger lists {n} release that it does not count: its ε is in no sum.",
            "The ledger lists {n} releases that it does not count: their ε is in no sum.",
            len(account.uncounted),
        )
    number = 0 if account is None else counting(account)
    if account is None or not number:
        return "to-confirm", gettext("The ledger does not have this release. If there are others, their ε add up.")
    if number == 1:
        return "checked", gettext("The ledger (account {number}) knows of no other.", number=str(account.number))
    if account.spent is None and len({entry.unit for entry in account.entries if entry.state != "withdrawn"}) > 1:
        return "against", gettext("The ledger knows of {n}, for different units: their costs do not add up.", n=number)
    if account.spent is None and account.unit == "case" and len(account.kinds) > 1:
        apart = gettext("The ledger knows of {n}, for different kinds of cases: their costs do not add up.", n=number)
        return "against", apart
    if account.spent is None:
        return "against", gettext("The ledger knows of {n}, and nothing bounds what they cost together.", n=number)
    worth = account.strength
    together = gettext(
        "The ledger knows of {n}, which cost ε = {epsilon} together: protection by all of them is {strength}.",
        n=number,
        epsilon=figure(account.spent[0]),
        strength=strength_in_words(worth),
    )
    return ("against" if STRENGTHS.index(worth) > STRENGTHS.index("moderate") else "checked"), together


def of_other_accounts(standing: Standing) -> str:
    """Return that there are releases of data that are not the same, nothing where there are none: a log that has grown
    is about the same people, and another ward's is not."""
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
