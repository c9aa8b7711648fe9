"""Messages and sentences about the attacks; all are confidential."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import TypeVar

from veilog._language import count_phrase, format_date, quoted
from veilog._language import percent as in_percent
from veilog.measures.singling_out.identification import Example, ReidentificationRate
from veilog.measures.singling_out.inference import END, Inference, Inferred
from veilog.measures.singling_out.linkage import Linkability, Linked
from veilog.measures.singling_out.measure import Knowledge, SinglingOut
from veilog.measures.singling_out.rates import Attack, Control, Rate, Success
from veilog.messages import OwnerMessage

_AGAINST: Mapping[Control, str] = {"others' cases": "others", "held out": "held-out"}
"""End of a message code, by the control."""
_PUBLISHED = "-published"
"""End of a code about a published log; only the terminal prints it, in English."""


A = TypeVar("A", bound=Attack)


def result_sentence(result: SinglingOut) -> str:
    """Return two sentences about the knowledge with the largest gain.

    If none gains more than chance, they describe the knowledge with which the original reveals most.
    """
    row, against = _best_knowledge(result), _AGAINST[result.control]
    said = OwnerMessage(f"attack-guesses-{against}", known=person_knowledge(row), **_shares(row.guessed))
    return f"{said} {_conclusion(row, against)}"


def briefly_in_words(result: SinglingOut) -> str:
    """Return the conclusion in one sentence; only the terminal prints it, in English."""
    row, against = _best_knowledge(result), _AGAINST[result.control]
    concluded = _conclusion(row, against)
    if concluded.code != f"attack-more-{against}":
        return str(concluded)
    return str(OwnerMessage(f"attack-briefly-{against}", **_shares(row.guessed)))


def _best_knowledge(result: SinglingOut) -> Knowledge:
    return _strongest_attack(result.results) or max(result.results, key=lambda row: row.guessed.original.value)


def linked_in_words(result: Linkability, *, published: bool = False) -> str:
    """Return two sentences about the lists with the largest gain.

    If none gains more than chance, they describe the lists that the original links best. ``published`` means that the
    log itself stands for the release.
    """
    row = _strongest_attack(result.results) or max(result.results, key=lambda row: row.linked.original.value)
    against = _AGAINST[result.control]
    said = OwnerMessage(
        f"attack-matches{_PUBLISHED if published else f'-{against}'}",
        n=row.people,
        lists=lists_of(row),
        chance=percent(row.naive),
        **_shares(row.linked),
    )
    return f"{said} {_conclusion(row, against, published=published)}"


def inferred_in_words(result: Inference, *, published: bool = False) -> str:
    """Return two sentences about the secret with the largest gain.

    If none gains more than chance, they describe the secret that the original reveals most beyond the baseline.
    ``published`` means that the log itself stands for the release.
    """
    row = _strongest_attack(result.results) or max(
        result.results, key=lambda row: row.guessed.original.value - row.guessed.baseline.value
    )
    against = _AGAINST[result.control]
    said = OwnerMessage(
        f"attack-infers{_PUBLISHED if published else f'-{against}'}",
        known=begun(row),
        secret=OwnerMessage("last-one") if row.secret == END else row.secret,
        **_shares(row.guessed),
    )
    return f"{said} {_conclusion(row, against, published=published)}"


def _shares(rate: Success) -> dict[str, str]:
    """Return the shares with the original, with the release, and of the control."""
    return {
        "original": percent(rate.original),
        "released": percent(rate.released),
        "control": percent(rate.baseline),
    }


def own_path_sentence(cases: int, alone: int, *, persons: bool = False) -> str:
    """Return the exact number of cases, or ``persons``, with a path of their own."""
    if cases == 1:
        return str(OwnerMessage("path-of-one-case"))
    share = percent(alone / cases) if cases else ""
    if persons:
        return str(OwnerMessage("path-alone-persons", share=share, persons=cases, alone=alone))
    code = "path-alone-cases" if alone else "path-alone-none"
    return str(OwnerMessage(code, share=share, cases=cases, alone=alone))


def found_sentence(rows: Sequence[ReidentificationRate], *, persons: bool = False) -> str:
    """Return how many cases, or ``persons``, an attacker finds, with the interval.

    ``rows`` are those with a known start, or those without it. The sentence states their common parts once.
    """
    day = " and the day it started" if rows[0].with_start else ""
    unit = "person" if persons else "case"
    return knowledge_sentence(
        "An attacker who knows", day, [(row.size, _finds(row, unit)) for row in rows], ordered=True
    )


def _finds(row: ReidentificationRate, unit: str) -> str:
    found, low = round(row.found.value * row.people), math.floor(row.found.low * row.people)
    high = math.ceil(row.found.high * row.people - 1e-9)
    if not high:
        return str(OwnerMessage("found-none", others="people" if unit == "person" else "cases"))
    people = count_phrase(row.people, unit)
    if not found:
        return str(OwnerMessage("found-hardly", high=high, people=people))
    guessed = {f"guessed{end}": percent(getattr(row.guessed, name)) for end, name in _ENDS.items()}
    return str(OwnerMessage("found-some", found=found, people=people, low=low, high=high, **guessed))


_ENDS = {"": "value", "_low": "low", "_high": "high"}


def knowledge_sentence(who: str, more: str, done: Sequence[tuple[int, str]], *, ordered: bool = False) -> str:
    """Return one sentence about attackers who know these numbers of activities.

    They know the activities' order if ``ordered``, and ``more``. Sizes with the same outcome share it, and later parts
    add only the difference.
    """
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
    """Return in words a case, or a person, that little knowledge finds; confidential."""
    path = ", ".join(
        str(OwnerMessage("example-later", activity=quoted(name))) if place else quoted(name)
        for place, name in enumerate(example.activities)
    )
    day = "" if example.day is None else format_date(example.day)
    when = "" if not example.with_start else "-of-day-with-path" if path else "-of-day"
    found = OwnerMessage(f"example-{'person' if persons else 'case'}{when}", day=day, path=path, n=example.events)
    if example.with_start or example.day is None:
        return str(found)
    return f"{found} {OwnerMessage('example-started', day=day)}"


def person_knowledge(row: Knowledge) -> str:
    """Return the attacker's knowledge of a person in words."""
    code = f"known-event{_s(row.size)}{'-and-start' if row.with_start else ''}"
    return str(OwnerMessage(code, n=row.size))


def lists_of(row: Linked) -> str:
    """Return the contents of two lists in words."""
    both = OwnerMessage(f"lists-{row.other_list}{'-of-one' if row.size == 1 else ''}", n=row.size)
    return str(OwnerMessage("lists-of-two-releases", lists=both) if row.releases > 1 else both)


def begun(row: Inferred) -> str:
    """Return the knowledge of a case whose end or attribute is guessed, in words."""
    first = OwnerMessage("first-activity" if row.size == 1 else "first-activities", n=row.size)
    if not row.attributes:
        return str(first)
    return str(OwnerMessage(f"first-and-attribute{_s(row.attributes)}", first=first, n=row.attributes))


def _s(number: int) -> str:
    return "" if number == 1 else "s"


def percent(share: Rate | float) -> str:
    """Return a share as a percentage for people; a positive share never looks like 0."""
    value = share.value if isinstance(share, Rate) else share
    if 0 < value < 0.001:
        return str(OwnerMessage("share-under", share=in_percent("0.1")))
    return in_percent(f"{100 * value:.3g}")


def _strongest_attack(rows: tuple[A, ...]) -> A | None:
    """Return the attack with the largest gain among those that gain more than chance."""
    return max((row for row in rows if row.more), key=lambda row: row.beyond.value, default=None)


def _conclusion(row: Attack, against: str, *, published: bool = False) -> OwnerMessage:
    """Return the conclusion about a release or a log.

    It is "undecided" where the interval of the gain over the control is 100 points wide or more.
    """
    if row.beyond.high - row.beyond.low >= 1:
        return OwnerMessage("attack-undecided")
    return OwnerMessage(f"attack-{'' if row.more else 'no-'}more-{against}{_PUBLISHED if published else ''}")
