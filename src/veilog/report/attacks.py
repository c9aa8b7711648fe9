"""What attacks achieved, in words and in rows that pages and dossiers show; for the owner of the log only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from veilog.measures.singling_out import (
    Control,
    Inference,
    Linkability,
    Linked,
    Rate,
    SinglingOut,
    Success,
    begun,
    in_words,
    inferred_in_words,
    known_of,
    linked_in_words,
)
from veilog.report.figures import tied

__all__ = ["AttackRow", "AttackShown", "attacks_shown", "unique"]

CONTROLS: dict[Control, str] = {"others' cases": "others' cases alone", "held out": "people held out"}


class Disclosed(Protocol):
    """What a few known activities disclose, as far as this module speaks of it."""

    @property
    def exact(self) -> bool: ...
    @property
    def unique(self) -> int: ...
    @property
    def cases(self) -> int: ...


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


def attacks_shown(
    singled: SinglingOut | None, linked: Linkability | None, inferred: Inference | None
) -> tuple[AttackShown, ...]:
    """Return what was tried, by the risk that it is of."""
    shown = []
    if singled is not None:
        found = singled.results
        alone = [_row(known_of(k), k.people, k.singled_out, None, more=False) for k in found]
        rest = [_row(known_of(k), k.people, k.guessed, k.beyond, more=k.more) for k in found]
        told = "Exactly one case fits what is known, and it has the person's whole path."
        shown.append(AttackShown("Singling out", told, CONTROLS[singled.control], tuple(alone)))
        shown.append(AttackShown("Inference: the path", in_words(singled), CONTROLS[singled.control], tuple(rest)))
    if linked is not None:
        pairs = [_row(_lists(k), k.people, k.linked, k.beyond, more=k.more) for k in linked.results]
        shown.append(AttackShown("Linkability", linked_in_words(linked), CONTROLS[linked.control], tuple(pairs)))
    if inferred is not None:
        ends = [
            _row(f"{begun(k)}; guessed: {k.secret}", k.people, k.guessed, k.beyond, more=k.more)
            for k in inferred.results
        ]
        title = "Inference: how a case ends, and attributes"
        shown.append(AttackShown(title, inferred_in_words(inferred), CONTROLS[inferred.control], tuple(ends)))
    return tuple(shown)


def _lists(row: Linked) -> str:
    some = "activity" if row.size == 1 else f"{row.size} activities"
    other = f"the last {some}" if row.other_list == "activities" else "attributes"
    return f"lists with the first {some} and with {other}{' (two releases)' if row.releases > 1 else ''}"


def unique(found: Disclosed) -> str:
    """Return how many cases some knowledge singles out; where not all of it was tried and none did, it says so."""
    if not found.exact and not found.unique:
        return "none of those tried"
    return f"{'' if found.exact else 'at least '}{found.unique:,} of {found.cases:,}"


def _row(known: str, people: int, success: Success, gain: Rate | None, *, more: bool) -> AttackRow:
    return AttackRow(
        known,
        people,
        _rate(success.original),
        _rate(success.released),
        _rate(success.baseline),
        "" if gain is None else _signed(gain),
        more,
    )


def _rate(rate: Rate) -> str:
    value = f"{_in_percent(rate.value)} %"
    if rate.high - rate.low < 1e-9:
        return tied(value)
    return tied(f"{value} ({_in_percent(rate.low)} to {_in_percent(rate.high)} %)")


def _in_percent(share: float) -> str:
    """A share in percent, to three digits; what is below a thousandth of one is called nothing."""
    return f"{100 * share:.3g}" if share >= 1e-5 else "0"


def _signed(rate: Rate) -> str:
    return f"{100 * rate.value:+.2f} ({100 * rate.low:+.2f} to {100 * rate.high:+.2f})"
