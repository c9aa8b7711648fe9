"""What the attacks found, in sentences for people; all of them for the owner of the log only."""

from __future__ import annotations

from typing import Protocol, TypeVar

from veilog.measures.singling_out.inferring import END, Inference, Inferred
from veilog.measures.singling_out.linking import Linkability, Linked
from veilog.measures.singling_out.measure import Knowledge, SinglingOut, events
from veilog.measures.singling_out.rates import Control, Rate

__all__ = ["in_words", "inferred_in_words", "known_of", "linked_in_words", "lists_of", "percent", "secret_of"]

_FROM: dict[Control, str] = {
    "others' cases": "from others' cases",
    "held out": "with the release for people who were not in the log",
}
_THAN: dict[Control, str] = {
    "others' cases": "than others' cases do",
    "held out": "than about people who were not in the log",
}


class _Attack(Protocol):
    @property
    def beyond(self) -> Rate: ...
    @property
    def more(self) -> bool: ...


A = TypeVar("A", bound=_Attack)


def in_words(result: SinglingOut) -> str:
    """Two sentences about where the release tells most beyond the baseline, or else where the original tells most."""
    row = _telling(result.results)
    if row is None:
        row = max(result.results, key=lambda row: row.guessed.original.value)
    rate = row.guessed
    return (
        f"Someone who knows {known_of(row)} guesses the rest of it for "
        f"{percent(rate.original)} of the people with the original, for {percent(rate.released)} with the release, "
        f"and for {percent(rate.baseline)} {_FROM[result.control]}. {_judged(row, result.control)}"
    )


def linked_in_words(result: Linkability) -> str:
    """Two sentences about the lists where the release gains most, or else where the original links most."""
    row = _telling(result.results) or max(result.results, key=lambda row: row.linked.original.value)
    rate = row.linked
    return (
        f"Someone who holds two lists of {row.people:,} people, {lists_of(row)}, matches the rows of "
        f"{percent(rate.original)} of them with the original, of {percent(rate.released)} with the release, "
        f"and of {percent(rate.baseline)} {_FROM[result.control]}; {percent(row.naive)} by chance. "
        f"{_judged(row, result.control)}"
    )


def inferred_in_words(result: Inference) -> str:
    """Two sentences about the secret where the release gains most, or else where the original tells most beyond it."""
    row = _telling(result.results) or max(
        result.results, key=lambda row: row.guessed.original.value - row.guessed.baseline.value
    )
    rate = row.guessed
    return (
        f"Someone who knows {secret_of(row)} of {percent(rate.original)} of the people with the original, of "
        f"{percent(rate.released)} with the release, and of {percent(rate.baseline)} {_FROM[result.control]}. "
        f"{_judged(row, result.control)}"
    )


def known_of(row: Knowledge) -> str:
    """Return what is known of a person."""
    return f"{events(row.size)} of a person's case{' and about when it started' if row.with_start else ''}"


def lists_of(row: Linked) -> str:
    """Return what two lists have."""
    other = f"{row.size} other" if row.other_list == "activities" else "attributes"
    both = " (by two releases)" if row.releases > 1 else ""
    return f"one with {events(row.size)} of each case and one with {other}{' ones' if other[0].isdigit() else ''}{both}"


def secret_of(row: Inferred) -> str:
    """Return what is known and what is guessed."""
    first = "the first activity" if row.size == 1 else f"the first {row.size} activities"
    if row.secret == END:
        return f"{first} of a person's case guesses the last one"
    others = f" and {row.attributes} other attribute{'s' if row.attributes > 1 else ''}" if row.attributes else ""
    return f"{first}{others} of a person's case guesses {row.secret}"


def percent(share: Rate | float) -> str:
    """Return a share for people; what is above nothing never looks like nothing."""
    value = share.value if isinstance(share, Rate) else share
    return "under 0.1 %" if 0 < value < 0.001 else f"{100 * value:.3g} %"


def _telling(rows: tuple[A, ...]) -> A | None:
    """The attack that gains most, of those that gain more than chance makes."""
    return max((row for row in rows if row.more), key=lambda row: row.beyond.value, default=None)


def _judged(row: _Attack, control: Control) -> str:
    if row.more:
        return f"So the release tells more about people {_THAN[control]}."
    return f"As far as this attack can tell, the release says no more about people {_THAN[control]}."
