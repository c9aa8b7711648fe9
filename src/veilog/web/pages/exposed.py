"""Who could be found in a log, in sentences for its owner."""

from __future__ import annotations

import math
from collections.abc import Sequence

from veilog._language import gettext, gettext_noop, ngettext, percent
from veilog.measures.singling_out import own_path_in_words
from veilog.web.jobs.read_log import Disclosure, LogMeasures, PersonFound

__all__ = ["exposure_in_words"]

_LITTLE = 0.001
"""A share below which no digits are told."""


def exposure_in_words(measured: LogMeasures) -> list[str]:
    """Four sentences for people who are no statisticians: own paths, chance knowledge, activities, variants."""
    s = measured.statistics
    sizes = {"variants": s.variants, "cases": s.cases}
    return [
        own_path_in_words(measured.people, measured.alone, persons=bool(measured.person)),
        _by_chance(measured.singled_out, persons=bool(measured.person)),
        _by_activities(measured.disclosure),
        gettext(
            "There are {variants} different paths for {cases} cases; the more paths there are for each case, the more "
            "a path says about a person.",
            **sizes,
        )
        if s.variants > 1
        else gettext("All cases take the same path.")
        if s.cases > 1
        else gettext("The path of one case says all about its person."),
    ]


def _by_chance(found: Sequence[PersonFound], *, persons: bool) -> str:
    if not found:
        return gettext("Not tried for this log: no case has an event.")
    row = max(found, key=lambda r: (r.with_start, r.events == 3, r.events))
    if row.with_start:
        start = gettext("A neighbour, a colleague or a bill may tell such things.")
        known = ngettext(
            "{n} event of a case and the day it started", "{n} events of a case and the day it started", row.events
        )
    else:
        start = gettext("Without times, the events alone tell less.")
        known = ngettext("{n} event of a case", "{n} events of a case", row.events)
    if not row.singled_out:
        share = gettext("up to {share}", share=_percent(row.high))
    else:
        found_in = _about(row.singled_out)
        share = gettext("{value} ({low} to {high})", value=found_in, low=_percent(row.low), high=_percent(row.high))
    said = gettext(_FOUND_PERSON if persons else _FOUND_CASE, known=known, share=share, guessed=_about(row.guessed))
    return f"{start} {said}"


_FOUND_CASE = gettext_noop(
    "Of somebody of whom {known} happen to be known, the case is found in {share}, and the whole path is guessed "
    "in {guessed}."
)
_FOUND_PERSON = gettext_noop(
    "Of somebody of whom {known} happen to be known, the person is found in {share}, because nobody else has a case "
    "that fits; the whole path of the case is guessed in {guessed}."
)


def _by_activities(rows: Sequence[Disclosure]) -> str:
    known = [r for r in rows if r.background == "sequence" and r.case_disclosure is not None]
    if not known:
        return gettext("The log has too few activities to narrow anybody down by them.")
    last = known[-1]
    fit = 1 / last.case_disclosure if last.case_disclosure else math.inf
    left = (
        ngettext("about {n} case", "about {n} cases", round(fit))
        if math.isfinite(fit) and fit >= 1.5
        else gettext("hardly more than one case")
    )
    leaves = ngettext(
        "{n} activity leaves {left} on (harmonic) average.",
        "{n} activities in their order leave {left} on (harmonic) average.",
        last.size,
        left=left,
    )
    if last.unique:
        singled = (
            ngettext(
                "{unique} of {n} case can be singled out by some of them.",
                "{unique} of {n} cases can be singled out by some of them.",
                last.cases,
                unique=last.unique,
            )
            if last.exact
            else ngettext(
                "At least {unique} of {n} case can be singled out by some of them.",
                "At least {unique} of {n} cases can be singled out by some of them.",
                last.cases,
                unique=last.unique,
            )
        )
    elif last.exact:
        singled = gettext("No case is singled out by them.")
    else:
        singled = gettext("Of those tried none singled out a case.")
    scale = gettext("0 %: knowing them tells nothing; 100 %: it leaves a single case.")
    return f"{scale} {leaves} {singled}"


def _about(share: float) -> str:
    found = _percent(share)
    return found if 0 < share < _LITTLE else gettext("about {number}", number=found)


def _percent(share: float) -> str:
    return gettext("under {share}", share=percent("0.1")) if 0 < share < _LITTLE else percent(f"{100 * share:.3g}")
