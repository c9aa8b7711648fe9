"""What attacks achieved, in words and in rows that pages and dossiers show; for the owner of the log only."""

from __future__ import annotations

from dataclasses import dataclass

from veilog._language import gettext, gettext_noop, localised, ngettext, percent
from veilog.measures.disclosure import RiskResult
from veilog.measures.singling_out.inference import END, Inference, Inferred
from veilog.measures.singling_out.linkage import Linkability, Linked
from veilog.measures.singling_out.measure import SinglingOut
from veilog.measures.singling_out.rates import Control, Rate, Success
from veilog.measures.singling_out.words import begun, in_words, inferred_in_words, known_of, linked_in_words
from veilog.report.figures import tied

CONTROLS: dict[Control, str] = {
    "others' cases": gettext_noop("others' cases alone"),
    "held out": gettext_noop("people held out"),
}


@dataclass(frozen=True)
class AttackRow:
    """What an attacker knows, and how often that is enough."""

    known: str
    people: int
    original: str
    released: str
    control: str
    gain: str
    """In percentage points, with its interval; empty where it is not judged."""
    more: bool
    """Whether the release tells more than the control."""


@dataclass(frozen=True)
class AttackShown:
    """One attack: whom it was tried on, what it is held against, and what came of it."""

    title: str
    said: str
    control: str
    rows: tuple[AttackRow, ...]

    @property
    def judged(self) -> bool:
        """Whether the gain of the release is told."""
        return any(row.gain for row in self.rows)


def attacks_shown(
    singled: SinglingOut | None, linked: Linkability | None, inferred: Inference | None
) -> tuple[AttackShown, ...]:
    """Return what was tried, by the risk that it is of."""
    shown = []
    if singled is not None:
        found = singled.results
        alone = [_row(known_of(k), k.people, k.singled_out, None, more=False) for k in found]
        rest = [_row(known_of(k), k.people, k.guessed, k.beyond, more=k.more) for k in found]
        control = gettext(CONTROLS[singled.control])
        told = gettext("Exactly one case fits the known facts, and it has the person's whole variant.")
        shown.append(AttackShown(gettext("Singling out"), told, control, tuple(alone)))
        shown.append(AttackShown(gettext("Inference: the variant"), in_words(singled), control, tuple(rest)))
    if linked is not None:
        pairs = [_row(_lists(k), k.people, k.linked, k.beyond, more=k.more) for k in linked.results]
        control = gettext(CONTROLS[linked.control])
        shown.append(AttackShown(gettext("Linkability"), linked_in_words(linked), control, tuple(pairs)))
    if inferred is not None:
        ends = [
            _row(
                gettext("{known}; guessed: {secret}", known=begun(k), secret=_secret(k)),
                k.people,
                k.guessed,
                k.beyond,
                more=k.more,
            )
            for k in inferred.results
        ]
        title = gettext("Inference: how a case ends, and attributes")
        control = gettext(CONTROLS[inferred.control])
        shown.append(AttackShown(title, inferred_in_words(inferred), control, tuple(ends)))
    return tuple(shown)


def _lists(row: Linked) -> str:
    if row.other_list == "activities":
        both = ngettext(
            "lists with the first activity and with the last activity",
            "lists with the first {n} activities and with the last {n} activities",
            row.size,
        )
    else:
        both = ngettext(
            "lists with the first activity and with attributes",
            "lists with the first {n} activities and with attributes",
            row.size,
        )
    return gettext("{lists} (two releases)", lists=both) if row.releases > 1 else both


def _secret(row: Inferred) -> str:
    return gettext("last activity") if row.secret == END else row.secret


def unique(found: RiskResult) -> str:
    """Return how many cases some knowledge singles out; where not all of it was tried and none did, it says so."""
    if not found.exact and not found.unique:
        return gettext("none of those tried")
    if found.exact:
        return gettext("{n} of {cases}", n=found.unique, cases=found.cases)
    return gettext("at least {n} of {cases}", n=found.unique, cases=found.cases)


def known_activities(found: RiskResult) -> str:
    """Return which knowledge of how many activities it is."""
    if found.background == "set":
        return gettext("set of {n}", n=found.size)
    return gettext("sequence of {n}", n=found.size)


def _row(known: str, people: int, success: Success, gain: Rate | None, *, more: bool) -> AttackRow:
    return AttackRow(
        known,
        people,
        rate_in_words(success.original),
        rate_in_words(success.released),
        rate_in_words(success.baseline),
        "" if gain is None else _signed(gain),
        more,
    )


def rate_in_words(rate: Rate) -> str:
    """Return a share with its interval."""
    value = tied(percent(_in_percent(rate.value)))
    if rate.high - rate.low < 1e-9:
        return value
    low, high = localised(_in_percent(rate.low)), percent(_in_percent(rate.high))
    return _together(value, low, high)


def _in_percent(share: float) -> str:
    """A share in percent, to three digits; what is below a thousandth of one is called nothing."""
    return f"{100 * share:.3g}" if share >= 1e-5 else "0"


def _signed(rate: Rate) -> str:
    return _together(*(localised(f"{100 * share:+.2f}") for share in (rate.value, rate.low, rate.high)))


def _together(value: str, low: str, high: str) -> str:
    """A number with its interval, in which no line breaks."""
    number, bracket, interval = gettext("{value} ({low} to {high})", value=value, low=low, high=high).partition("(")
    return tied(number.rstrip()) + " " + bracket + tied(interval).replace(" ", "\u00a0")
