"""What the attacks found, in sentences for people; all of them for the owner of the log only."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from typing import Protocol, TypeVar

from veilog._language import counted, dated, gettext, gettext_noop, ngettext, quoted
from veilog._language import percent as in_percent
from veilog.measures.singling_out.finding import Example, Exposed
from veilog.measures.singling_out.inferring import END, Inference, Inferred
from veilog.measures.singling_out.linking import Linkability, Linked
from veilog.measures.singling_out.measure import Knowledge, SinglingOut
from veilog.measures.singling_out.rates import Control, Rate, Success

_GUESSES: dict[Control, str] = {
    "others' cases": gettext_noop(
        "Someone who knows {known} guesses the rest of it for {original} of the people with the original, for "
        "{released} with the release, and for {control} from others' cases."
    ),
    "held out": gettext_noop(
        "Someone who knows {known} guesses the rest of it for {original} of the people with the original, for "
        "{released} with the release, and for {control} with the release for people who were not in the log."
    ),
}
_MATCHES: dict[Control, str] = {
    "others' cases": gettext_noop(
        "Someone who holds two lists of {n} people, {lists}, matches the rows of {original} of the people with the "
        "original, of {released} with the release, and of {control} from others' cases; {chance} by chance."
    ),
    "held out": gettext_noop(
        "Someone who holds two lists of {n} people, {lists}, matches the rows of {original} of the people with the "
        "original, of {released} with the release, and of {control} with the release for people who were not in the "
        "log; {chance} by chance."
    ),
}
_INFERS: dict[Control, str] = {
    "others' cases": gettext_noop(
        "Someone who knows {known} of a person's case guesses {secret} of {original} of the people with the original, "
        "of {released} with the release, and of {control} from others' cases."
    ),
    "held out": gettext_noop(
        "Someone who knows {known} of a person's case guesses {secret} of {original} of the people with the original, "
        "of {released} with the release, and of {control} with the release for people who were not in the log."
    ),
}
_MORE: dict[tuple[Control, bool], str] = {
    ("others' cases", True): gettext_noop("So the release tells more about people than others' cases do."),
    ("held out", True): gettext_noop(
        "So the release tells more about its people than about people who were not in the log."
    ),
    ("others' cases", False): gettext_noop(
        "As far as this attack can tell, the release says no more about people than others' cases do."
    ),
    ("held out", False): gettext_noop(
        "As far as this attack can tell, the release says no more about its people than about people who were not in "
        "the log."
    ),
}
"""What is concluded of a release, by the control and by whether it tells more."""
_NOTHING = gettext_noop("The people in the log are too few or too much alike for this attack to tell anything.")
"""What is concluded where the interval of what a release tells beyond the control is 100 points wide or more."""


class _Attack(Protocol):
    @property
    def beyond(self) -> Rate: ...
    @property
    def more(self) -> bool: ...


A = TypeVar("A", bound=_Attack)


def in_words(result: SinglingOut) -> str:
    """Two sentences about where the release tells most beyond the baseline, or else where the original tells most."""
    row = _most(result)
    said = gettext(_GUESSES[result.control], known=known_of(row), **_three(row.guessed))
    return f"{said} {_judged(row, result.control)}"


def briefly_in_words(result: SinglingOut) -> str:
    """What is concluded, in one sentence that stands by itself; the terminal alone says so, in English."""
    row = _most(result)
    concluded = _conclusion(row, result.control)
    if concluded != _MORE[result.control, True]:
        return concluded
    shares = percent(row.guessed.released.value), percent(row.guessed.baseline.value)
    said = concluded.removeprefix("So t").removesuffix(".")
    return f"T{said}: the rest of a case is guessed for {shares[0]} of them, not {shares[1]}."


def _most(result: SinglingOut) -> Knowledge:
    return _telling(result.results) or max(result.results, key=lambda row: row.guessed.original.value)


def linked_in_words(result: Linkability, *, published: bool = False) -> str:
    """Two sentences about the lists where the release gains most, or else where the original links most; ``published``
    where the log itself stands for the release."""
    row = _telling(result.results) or max(result.results, key=lambda row: row.linked.original.value)
    if published:
        return (
            f"Someone who holds two lists of {row.people:,} people, {lists_of(row)}, matches the rows of "
            f"{_published(row.linked)}; {percent(row.naive)} by chance. {_judged_of_log(row, result.control)}"
        )
    said = gettext(
        _MATCHES[result.control],
        n=row.people,
        lists=lists_of(row),
        chance=percent(row.naive),
        **_three(row.linked),
    )
    return f"{said} {_judged(row, result.control)}"


def inferred_in_words(result: Inference, *, published: bool = False) -> str:
    """Two sentences about the secret where the release gains most, or else where the original tells most beyond it;
    ``published`` where the log itself stands for the release."""
    row = _telling(result.results) or max(
        result.results, key=lambda row: row.guessed.original.value - row.guessed.baseline.value
    )
    secret = gettext("the last one") if row.secret == END else row.secret
    if published:
        return (
            f"Someone who knows {begun(row)} of a person's case guesses {secret} of {_published(row.guessed)}. "
            f"{_judged_of_log(row, result.control)}"
        )
    said = gettext(_INFERS[result.control], known=begun(row), secret=secret, **_three(row.guessed))
    return f"{said} {_judged(row, result.control)}"


def _three(rate: Success) -> dict[str, str]:
    """The shares with the original, with the release, and of the control."""
    return {
        "original": percent(rate.original),
        "released": percent(rate.released),
        "control": percent(rate.baseline),
    }


def _published(rate: Success) -> str:
    """The shares where the log itself was published; the terminal alone says so, in English."""
    return f"{percent(rate.released)} of those who are in it, and of {percent(rate.baseline)} of those who are not"


def own_path_in_words(cases: int, alone: int, *, persons: bool = False) -> str:
    """Return how many cases have a path that no other has, or how many ``persons`` have a case with a path that nobody
    else has; this is exact."""
    if persons and cases > 1:
        return gettext(
            "{share} of the {persons} persons ({alone}) have a case with a path that nobody else has: whoever knows "
            "the whole path finds the person.",
            share=percent(alone / cases),
            persons=cases,
            alone=alone,
        )
    if cases == 1:
        return gettext("The log has one case: whoever knows that somebody is in it knows whose it is.")
    if not alone:
        return gettext("None of the {cases} cases has a path of its own: each is shared by two or more.", cases=cases)
    return gettext(
        "{share} of the {cases} cases ({alone}) have a path that no other case has: whoever knows the whole path finds "
        "the case.",
        share=percent(alone / cases),
        cases=cases,
        alone=alone,
    )


def found_in_words(rows: Sequence[Exposed], *, persons: bool = False) -> str:
    """Return how many cases, or ``persons``, somebody finds who knows so much of them, never without the interval;
    ``rows`` are those in which the start is known, or those in which it is not, and what they have in common is said
    once."""
    day = " and the day it started" if rows[0].with_start else ""
    unit = "person" if persons else "case"
    return said_once("Whoever happens to know", day, [(row.size, _finds(row, unit)) for row in rows], ordered=True)


def _finds(row: Exposed, unit: str) -> str:
    found = round(row.found.value * row.people)
    low, high = math.floor(row.found.low * row.people), math.ceil(row.found.high * row.people - 1e-9)
    if not high:
        others = "other people" if unit == "person" else "other cases"
        return f"finds nobody: whatever these are, {others} fit, too"
    if not found:
        return f"finds hardly anybody: up to {high:,} of {counted(row.people, unit)} (95 %)"
    return (
        f"finds about {found:,} of {counted(row.people, unit)} (95 %: {low:,} to {high:,}) and guesses the whole "
        f"path of {percent(row.guessed)} ({percent(row.guessed.low)} to {percent(row.guessed.high)})"
    )


def said_once(who: str, more: str, done: Sequence[tuple[int, str]], *, ordered: bool = False) -> str:
    """Return in one sentence what somebody does who knows so many activities, in their order where they are
    ``ordered``, and ``more``: sizes with the same outcome share it, and those that follow add only what differs."""
    parts: list[str] = []
    for outcome, same in groupby(done, key=lambda row: row[1]):
        sizes = [size for size, _ in same]
        order = ", in their order," if ordered and sizes != [1] else ""
        activities = "activity" if sizes == [1] else "activities"
        first = f"{who} {_either(sizes)} {activities} of a case{order}{more}"
        parts.append(f"{f'who knows {_either(sizes)}{order}' if parts else first} {outcome}")
    return "; ".join(parts) + "."


def _either(sizes: Sequence[int]) -> str:
    *first, last = map(str, sizes)
    return f"{', '.join(first)} or {last}" if first else last


def like_who(example: Example, *, persons: bool = False) -> str:
    """Return a case, or a person, that is found by little, in words; for the owner's eyes only."""
    path = ", ".join(
        gettext("later {activity}", activity=quoted(name)) if place else quoted(name)
        for place, name in enumerate(example.activities)
    )
    day = "" if example.day is None else dated(example.day)
    if example.with_start:
        if not path:
            found = _ONE_PERSON_THEN if persons else _ONE_CASE_THEN
        else:
            found = _ONE_PERSON_OF_THEN if persons else _ONE_CASE_OF_THEN
        return gettext(found, day=day, path=path, n=example.events)
    found = gettext(_ONE_PERSON if persons else _ONE_CASE, path=path, n=example.events)
    return found if example.day is None else f"{found} {gettext('It started on {day}.', day=day)}"


_ONE_CASE = gettext_noop("For example, one case alone has {path}: whoever knows that finds all {n} events of it.")
_ONE_PERSON = gettext_noop(
    "For example, one person alone has a case with {path}: whoever knows that finds all {n} events of it."
)
_ONE_CASE_THEN = gettext_noop(
    "For example, one case alone started about {day}: whoever knows that finds all {n} events of it."
)
_ONE_PERSON_THEN = gettext_noop(
    "For example, one person alone has a case that started about {day}: whoever knows that finds all {n} events of it."
)
_ONE_CASE_OF_THEN = gettext_noop("For example, of the cases that started about {day} one alone has {path}.")
_ONE_PERSON_OF_THEN = gettext_noop(
    "For example, of the persons with a case that started about {day} one alone has {path} in it."
)


def known_of(row: Knowledge) -> str:
    """Return what is known of a person."""
    if row.with_start:
        return ngettext(
            "{n} event of a person's case and about when it started",
            "{n} events of a person's case and about when it started",
            row.size,
        )
    return ngettext("{n} event of a person's case", "{n} events of a person's case", row.size)


def lists_of(row: Linked) -> str:
    """Return what two lists have."""
    if row.other_list == "activities":
        both = ngettext(
            "one with the first activity of each case and one with the last activity",
            "one with the first {n} activities of each case and one with the last {n} activities",
            row.size,
        )
    else:
        both = ngettext(
            "one with the first activity of each case and one with attributes",
            "one with the first {n} activities of each case and one with attributes",
            row.size,
        )
    return gettext("{lists}, with two releases at hand", lists=both) if row.releases > 1 else both


def begun(row: Inferred) -> str:
    """Return what is known of a case whose end or attribute is guessed."""
    first = ngettext("the first activity", "the first {n} activities", row.size)
    if not row.attributes:
        return first
    return ngettext("{first} and {n} other attribute", "{first} and {n} other attributes", row.attributes, first=first)


def percent(share: Rate | float) -> str:
    """Return a share for people; what is above nothing never looks like nothing."""
    value = share.value if isinstance(share, Rate) else share
    if 0 < value < 0.001:
        return gettext("under {share}", share=in_percent("0.1"))
    return in_percent(f"{100 * value:.3g}")


def _telling(rows: tuple[A, ...]) -> A | None:
    """The attack that gains most, of those that gain more than chance makes."""
    return max((row for row in rows if row.more), key=lambda row: row.beyond.value, default=None)


def _judged(row: _Attack, control: Control) -> str:
    return gettext(_conclusion(row, control))


def _judged_of_log(row: _Attack, control: Control) -> str:
    """The same of a log that is published itself; the terminal alone says so, in English."""
    return _conclusion(row, control).replace("the release", "the log")


def _conclusion(row: _Attack, control: Control) -> str:
    return _NOTHING if row.beyond.high - row.beyond.low >= 1 else _MORE[control, row.more]
