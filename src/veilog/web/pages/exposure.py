"""Who could be found in a log, in sentences for its owner."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from veilog._language import gettext, gettext_noop, localised, ngettext, percent
from veilog._svg import element, escaped, points_of
from veilog.measures.disclosure import RiskResult
from veilog.measures.disclosure.measure import KNOWN
from veilog.measures.singling_out.finding import Exposed
from veilog.measures.singling_out.words import own_path_in_words
from veilog.web.jobs.results import LogMeasures

_WIDTH, _HEIGHT = 460, 250
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 12, 16, 40


@dataclass(frozen=True)
class _Curve:
    """A named line; ``style`` picks its colour and dashes in the page's style."""

    name: str
    style: int
    points: Sequence[tuple[float, float]]


def singled_out_chart(rows: Sequence[Exposed], *, persons: bool = False) -> Markup:
    """The share of cases, or of ``persons``, that are found, by the events that are known, with and without the time of
    the start."""
    curves = []
    for style, (with_start, name) in enumerate(
        ((False, gettext("events only")), (True, gettext("events and the day it started")))
    ):
        points = _rising([(float(r.size), r.found.value) for r in rows if r.with_start == with_start])
        if points:
            curves.append(_Curve(name, style, points))
    what = gettext("persons found") if persons else gettext("cases found")
    return _drawn(curves, what, gettext("events that are known of a person"))


def disclosure_chart(rows: Sequence[RiskResult]) -> Markup:
    """Case disclosure by how many activities are known, for each kind of knowledge."""
    curves = []
    for style, kind in enumerate(KNOWN):
        points = _rising(
            [(float(r.size), r.case_disclosure) for r in rows if r.background == kind and r.case_disclosure is not None]
        )
        if points:
            curves.append(_Curve(gettext(KNOWN[kind]), style, points))
    return _drawn(curves, gettext("case disclosure"), gettext("activities that are known"))


def _rising(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Points that never fall: who knows more can leave out what does not help. The table has the numbers as they were
    found, of attackers who leave out nothing."""
    places = sorted(points)
    return list(zip((x for x, _ in places), itertools.accumulate((y for _, y in places), max), strict=True))


def _drawn(curves: Sequence[_Curve], what: str, over: str) -> Markup:
    values = sorted({x for curve in curves for x, _ in curve.points})
    if len(values) < 2:  # one dot is no curve: the table says it better
        return Markup()
    low, high = values[0], max(values[-1], values[0] + 1)
    top = _round_up(max(y for curve in curves for _, y in curve.points))
    parts = []

    def x(value: float) -> float:
        return _LEFT + (value - low) / (high - low) * (_WIDTH - _LEFT - _RIGHT)

    def y(value: float) -> float:
        return _TOP + (1 - value / top) * (_HEIGHT - _TOP - _BOTTOM)

    for i in range(5):
        level = top * i / 4
        parts.append(element("line", class_="grid", x1=_LEFT, x2=_WIDTH - _RIGHT, y1=y(level), y2=y(level)))
        parts.append(element("text", percent(f"{100 * level:g}"), x=_LEFT - 7, y=y(level) + 4, text_anchor="end"))
    parts += [
        element("text", localised(f"{value:g}"), x=x(value), y=_HEIGHT - 20, text_anchor="middle") for value in values
    ]
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    parts.append(element("text", over, x=middle, y=_HEIGHT - 3, text_anchor="middle"))
    for curve in curves:
        places = [(x(a), y(b)) for a, b in curve.points]
        parts.append(element("polyline", class_=f"curve k{curve.style}", points=points_of(places)))
        parts += [element("circle", class_=f"dot k{curve.style}", cx=a, cy=b, r=3) for a, b in places]
    says = gettext("{what}, by the number of {over}; the numbers are in the table", what=what, over=over)
    chart = element("svg", parts=parts, class_="curves", viewBox=f"0 0 {_WIDTH} {_HEIGHT}", role="img", aria_label=says)
    return Markup(chart + element("ul", parts=map(_key, curves), class_="curve-key"))


def _key(curve: _Curve) -> str:
    """A piece of the line beside its name."""
    line = element("line", class_=f"curve k{curve.style}", x1=1, x2=25, y1=4, y2=4)
    sample = element("svg", parts=[line], viewBox="0 0 26 8", width=26, height=8, aria_hidden="true")
    return element("li", parts=[sample, f" {escaped(curve.name)}"])


def _round_up(value: float) -> float:
    """The top of an axis, a fourth of it a whole per cent: at least 4 %, so that next to nothing looks like it."""
    tops = (0.04, 0.08, 0.12, 0.2, 0.4, 0.6, 0.8)
    return next((top for top in tops if value <= top), 1.0) if math.isfinite(value) else 1.0


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


def _by_chance(found: Sequence[Exposed], *, persons: bool) -> str:
    if not found:
        return gettext("Not tried for this log: no case has an event.")
    row = max(found, key=lambda r: (r.with_start, r.size == 3, r.size))
    if row.with_start:
        start = gettext("A neighbour, a colleague or a bill may tell such things.")
        known = ngettext(
            "{n} event of a case and the day it started", "{n} events of a case and the day it started", row.size
        )
    else:
        start = gettext("Without times, the events alone tell less.")
        known = ngettext("{n} event of a case", "{n} events of a case", row.size)
    if not row.found.value:
        share = gettext("up to {share}", share=_percent(row.found.high))
    else:
        found_in = _about(row.found.value)
        share = gettext(
            "{value} ({low} to {high})", value=found_in, low=_percent(row.found.low), high=_percent(row.found.high)
        )
    said = gettext(
        _FOUND_PERSON if persons else _FOUND_CASE, known=known, share=share, guessed=_about(row.guessed.value)
    )
    return f"{start} {said}"


_FOUND_CASE = gettext_noop(
    "Of somebody of whom {known} happen to be known, the case is found in {share}, and the whole path is guessed "
    "in {guessed}."
)
_FOUND_PERSON = gettext_noop(
    "Of somebody of whom {known} happen to be known, the person is found in {share}, because nobody else has a case "
    "that fits; the whole path of the case is guessed in {guessed}."
)


def _by_activities(rows: Sequence[RiskResult]) -> str:
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
