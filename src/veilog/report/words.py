"""The sentences of a report: what the guarantee means, and what nobody may conclude from a release."""

from __future__ import annotations

import math
from collections.abc import Mapping

from veilog.measures.purposes import Grade
from veilog.privacy.account.guarantee import Guarantee
from veilog.privacy.account.strength import Strength
from veilog.releasing.meaning import meaning_of
from veilog.report.figures import figure, tied
from veilog.report.told import Told

__all__ = [
    "GRADES",
    "LEARNT",
    "TONES",
    "capital",
    "chances",
    "factor",
    "guesses",
    "in_plain_words",
    "not_to_conclude",
    "percent_up",
    "title_of_budget",
]

_BEFORE = (0.01, 0.1, 0.5, 0.9)

LEARNT: Mapping[Strength, str] = {
    "strong": "Readers of the release can learn next to nothing about one {unit} from it.",
    "good": "Readers of the release can learn little about one {unit} from it.",
    "moderate": "Readers of the release can learn something about one {unit} from it, though they cannot be sure.",
    "weak": "Readers of the release can learn much about one {unit} from it.",
    "none in practice": "At such a budget the noise hides hardly anything: readers of the release may be nearly "
    "certain who was in the log and what happened to them.",
}
"""What a reader may learn, by the strength of the guarantee."""
TONES: Mapping[Strength, str] = {
    "strong": "good", "good": "good", "moderate": "warn", "weak": "bad", "none in practice": "bad",
}  # fmt: skip
"""The class of style that a strength is shown in."""
GRADES: Mapping[Grade, str] = {"good": "good", "limited": "warn", "poor": "bad", "not judged": "dim"}
"""The class of style that a verdict on a purpose is shown in."""


def title_of_budget(guarantee: Guarantee) -> str:
    """The guarantee in two or three words, for the head of the page."""
    if guarantee.proven:
        return f"ε = {figure(guarantee.epsilon)}" + (f", δ = {figure(guarantee.delta)}" if guarantee.delta else "")
    if guarantee.statements:
        return ", ".join(statement.model for statement in guarantee.statements)
    return "none"


def in_plain_words(told: Told) -> list[str]:
    """The guarantee for readers who never heard of differential privacy."""
    g = told.guarantee
    if not g.proven:
        first = "This release has no differential privacy guarantee. " + capital("; ".join(g.reasons)) + "."
        if g.statements:
            return [first, "What is stated in its place follows below; it protects against less."]
        return [first, "Treat it as if it held data of the people in the log."]
    said = [
        f"Protection is {g.strength}. {g.protects}" + (" It holds under the conditions below." if g.conditions else ""),
        f"Random noise stands before each single {g.unit}. {LEARNT[g.strength].format(unit=g.unit)}"
        + ("" if TONES[g.strength] == "bad" else " That is so whatever else they know and however much they compute."),
        f"As a number, ε = {figure(g.epsilon)} means that by reading the release the odds that a given {g.unit} was in "
        f"the log change by a factor of at most {factor(g.epsilon)}.",
    ]
    if g.delta:
        said.append(
            f"This may fail with a probability of at most δ = {figure(g.delta)}; it should be well below one over the "
            f"number of {g.unit}s."
        )
    if g.guessing_advantage is not None:
        said.append(
            f"Whoever suspects that a certain {g.unit} is in the log becomes surer by at most "
            f"{math.ceil(g.guessing_advantage * 1e4) / 100:g} percentage points by reading the release."
        )
    return said


def chances(guarantee: Guarantee) -> list[tuple[str, str]]:
    """How sure somebody is that a case is in the log before, and how sure they can be at most after the release, where
    delta does not fail (Bayes' rule: the odds change by at most ``exp(epsilon)``)."""
    if guarantee.epsilon is None:
        return []
    odds = [(before, before / (1 - before)) for before in _BEFORE]
    shrink = math.exp(-guarantee.epsilon)
    return [(tied(f"{100 * before:g} %"), percent_up(o / (o + shrink))) for before, o in odds]


def guesses(guarantee: Guarantee) -> list[tuple[str, str, str]]:
    """What somebody may want to guess, the chance that they are right without the release, and the largest with it."""
    meaning = meaning_of(guarantee)
    if meaning is None:
        return []
    unit, secret = guarantee.unit, meaning.guess_at_prior
    rows = [
        (f"whether a {unit} is in the log", 0.5, meaning.presence),
        (f"which of 2 equally likely values a {unit} in the log has", 0.5, secret[0.5]),
        ("which of 10 equally likely values it has", 0.1, secret[0.1]),
        (f"which of 100 {unit}s it is that is in the log", 0.01, secret[0.01]),
    ]
    return [(what, tied(f"{100 * before:g} %"), percent_up(after)) for what, before, after in rows]


def not_to_conclude(told: Told, empty: int, inside: bool) -> list[str]:
    """What readers must not conclude; each in a sentence or two."""
    g, method = told.guarantee, told.method.removesuffix(" (as published)")
    said = []
    if g.proven:
        said += [
            f"That nothing can be learned. What holds for many {g.unit}s is what a release is for: it can show that "
            "most people of a kind are treated in a certain way, and so tell something about a person of that kind.",
        ]
        if g.unit == "case":
            said.append(
                "That a person with several cases is protected as well as a case is. Their protection weakens with "
                "each case, unless the release protects people (--unit)."
            )
        said.append(
            "That a second release costs nothing. The ε and δ of all releases of one log add up; one may be harmless "
            "where ten are not."
        )
    else:
        said.append("That the release is anonymous in the sense of a law, or that it may be published as it is.")
    said.append(
        "That numbers are exact. Counts carry noise, and small ones may be nothing but noise; differences of a few "
        "cases mean nothing."
    )
    if g.proven and method in ("travas", "utravas"):
        said.append(
            "That what is missing never happens. Rare variants are left out on purpose, and with them the rare, long "
            "and unusual cases."
        )
    else:
        said.append(
            "That a variant which is there has happened, or that one which is missing has not. Variants can be made up "
            "from noisy counts, and rare ones are lost."
        )
    if told.timed:
        said.append("That the times are those of real events. They are drawn, or shifted, with noise.")
    else:
        said.append(
            "Anything from timestamps. They carry the order of events and nothing else: an hour apart, from 1970 on."
        )
    if empty:
        said.append(f"That {empty:,} cases went missing: they were released without an event, as cases can be.")
    if told.from_file:
        said.append(
            "That this report checked the guarantee. It repeats what the file states; whoever changed the file could "
            "have changed that too."
        )
    if inside:
        said.append(
            "That this page may be shared like the release. It holds exact numbers of the original log, which the "
            "guarantee does not cover."
        )
    return said


def factor(epsilon: float | None) -> str:
    """Return by how much odds and chances change at most."""
    factor = math.exp(min(epsilon or 0.0, 700.0))
    return f"{math.ceil(factor * 100) / 100:g}" if factor < 1e4 else figure(factor, 2)


def percent_up(share: float) -> str:
    """Return a chance in percent, rounded up, that never looks like certainty or like nothing."""
    if 0 < share < 0.001:
        return tied(f"{figure(100 * share, 2)} %")
    return tied(f"{math.ceil(share * 1000) / 10:g} %" if share < 0.9995 else "nearly 100 %")


def capital(text: str) -> str:
    """The text with a capital at its start, and nothing else changed."""
    return text[:1].upper() + text[1:]
