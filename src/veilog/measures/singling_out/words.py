"""What the attacks found, in sentences for people; all of them for the owner of the log only."""

from __future__ import annotations

import math
from typing import Protocol, TypeVar

from veilog.measures.singling_out.finding import Example, Exposed
from veilog.measures.singling_out.inferring import END, Inference, Inferred
from veilog.measures.singling_out.linking import Linkability, Linked
from veilog.measures.singling_out.measure import Knowledge, SinglingOut, events
from veilog.measures.singling_out.rates import Control, Rate, Success

__all__ = [
    "begun",
    "found_in_words",
    "in_words",
    "inferred_in_words",
    "known_of",
    "like_who",
    "linked_in_words",
    "lists_of",
    "own_path_in_words",
    "percent",
    "secret_of",
]

_FROM: dict[Control, str] = {
    "others' cases": "from others' cases",
    "held out": "with the release for people who were not in the log",
}
_THAN: dict[Control, str] = {
    "others' cases": "about people than others' cases do",
    "held out": "about its people than about people who were not in the log",
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


def linked_in_words(result: Linkability, *, published: bool = False) -> str:
    """Two sentences about the lists where the release gains most, or else where the original links most; ``published``
    where the log itself stands for the release."""
    row = _telling(result.results) or max(result.results, key=lambda row: row.linked.original.value)
    return (
        f"Someone who holds two lists of {row.people:,} people, {lists_of(row)}, matches the rows of "
        f"{_rates(row.linked, result.control, published)}; {percent(row.naive)} by chance. "
        f"{_judged(row, result.control, published)}"
    )


def inferred_in_words(result: Inference, *, published: bool = False) -> str:
    """Two sentences about the secret where the release gains most, or else where the original tells most beyond it;
    ``published`` where the log itself stands for the release."""
    row = _telling(result.results) or max(
        result.results, key=lambda row: row.guessed.original.value - row.guessed.baseline.value
    )
    return (
        f"Someone who knows {secret_of(row)} of {_rates(row.guessed, result.control, published)}. "
        f"{_judged(row, result.control, published)}"
    )


def _rates(rate: Success, control: Control, published: bool) -> str:
    if published:
        return f"{percent(rate.released)} of those who are in it, and of {percent(rate.baseline)} of those who are not"
    return (
        f"{percent(rate.original)} of the people with the original, of {percent(rate.released)} with the release, "
        f"and of {percent(rate.baseline)} {_FROM[control]}"
    )


def own_path_in_words(cases: int, alone: int) -> str:
    """Return how many cases have a path that no other has; this is exact."""
    if not alone:
        return f"None of the {cases:,} cases has a path of its own: each is shared by two or more."
    return (
        f"{percent(alone / cases)} of the {cases:,} cases ({alone:,}) have a path that no other case has: whoever "
        "knows the whole path finds the case."
    )


def found_in_words(row: Exposed) -> str:
    """Return how many people somebody finds who knows so much of them, never without the interval."""
    day = " and the day it started" if row.with_start else ""
    some = "1 activity of a case" if row.size == 1 else f"{row.size} activities of a case, in their order,"
    found = round(row.found.value * row.people)
    low, high = math.floor(row.found.low * row.people), math.ceil(row.found.high * row.people - 1e-9)
    known = f"Whoever happens to know {some}{day}"
    if not high:
        return f"{known} finds nobody: whatever these are, other cases fit, too."
    if not found:
        return f"{known} finds hardly anybody: up to {high:,} of {row.people:,} cases (95 %)."
    return (
        f"{known} finds about {found:,} of {row.people:,} cases (95 %: {low:,} to {high:,}) and guesses the whole "
        f"path of {percent(row.guessed)} ({percent(row.guessed.low)} to {percent(row.guessed.high)})."
    )


def like_who(example: Example) -> str:
    """Return a case that is found by little, in words; for the owner's eyes only."""
    first, *more = [f"“{activity}”" for activity in example.activities]
    path = ", later ".join([first, *more])
    if example.with_start:
        return f"For example, of the cases that started about {example.day} one alone has {path}."
    day = "" if example.day is None else f"; it started on {example.day}"
    return f"For example, one case alone has {path}: whoever knows that finds all {example.events} events of it{day}."


def known_of(row: Knowledge) -> str:
    """Return what is known of a person."""
    return f"{events(row.size)} of a person's case{' and about when it started' if row.with_start else ''}"


def lists_of(row: Linked) -> str:
    """Return what two lists have."""
    some = "activity" if row.size == 1 else f"{row.size} activities"
    other = f"the last {some}" if row.other_list == "activities" else "attributes"
    both = ", with two releases at hand" if row.releases > 1 else ""
    return f"one with the first {some} of each case and one with {other}{both}"


def secret_of(row: Inferred) -> str:
    """Return what is known and what is guessed, to be gone on with ``of ... people``."""
    return f"{begun(row)} of a person's case guesses {'the last one' if row.secret == END else row.secret}"


def begun(row: Inferred) -> str:
    """Return what is known of a case whose end or attribute is guessed."""
    first = "the first activity" if row.size == 1 else f"the first {row.size} activities"
    return first + (
        f" and {row.attributes} other attribute{'s' if row.attributes > 1 else ''}" if row.attributes else ""
    )


def percent(share: Rate | float) -> str:
    """Return a share for people; what is above nothing never looks like nothing."""
    value = share.value if isinstance(share, Rate) else share
    return "under 0.1 %" if 0 < value < 0.001 else f"{100 * value:.3g} %"


def _telling(rows: tuple[A, ...]) -> A | None:
    """The attack that gains most, of those that gain more than chance makes."""
    return max((row for row in rows if row.more), key=lambda row: row.beyond.value, default=None)


def _judged(row: _Attack, control: Control, published: bool = False) -> str:
    log = "the log" if published else "the release"
    if row.more:
        return f"So {log} tells more {_THAN[control]}."
    return f"As far as this attack can tell, {log} says no more {_THAN[control]}."
