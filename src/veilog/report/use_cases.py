"""What a release is good for, as a page shows it: a sentence a use case, and its numbers in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from veilog._language import gettext, localised, percent
from veilog.logs.eventlog import EventLog
from veilog.logs.variants import Variants
from veilog.measures import Pair, Progress
from veilog.measures.use_cases import Assessment, Grade, MetricResult, UseCaseOptions, judge
from veilog.report.attributes import OF_EVERY_LOG

ALWAYS = ("discovery", "conformance")
"""Use cases that every page has; prediction takes longest and is for ``veilog compare --use-cases``."""


@dataclass(frozen=True)
class Number:
    """One number of a use case: of the release, of the original itself, of one half of it beside the other."""

    title: str
    released: str
    original: str
    half: str
    kept: str
    bar: float
    """The share that is kept, at most 100."""


@dataclass(frozen=True)
class UseCaseShown:
    """One use case on a page."""

    grade: Grade
    verdict: str
    numbers: tuple[Number, ...]
    remark: str = ""
    title: str = ""


def judged_here(
    original: EventLog | Variants, released: EventLog | Variants, progress: Progress, person: str | bool = True
) -> Mapping[str, Assessment]:
    """Judge what a page always has, and times and attributes where the release has them; ``person`` says whose the
    cases are (:class:`veilog.measures.UseCaseOptions`)."""
    names, lacking = list(ALWAYS), None
    if not isinstance(original, Variants) and not isinstance(released, Variants):
        names += ["performance"]
        more = {*released.events.column_names, *released.cases.column_names} - OF_EVERY_LOG
        if more:
            names += ["attributes"]
        else:
            from veilog.measures.use_cases.attributes import without  # not where attributes are judged anyway

            lacking = without(original, released, person)
    found = dict(judge(Pair(original, released, progress), names, UseCaseOptions(person=person)))
    return found if lacking is None else {**found, "attributes": lacking}


def shown(use_cases: Iterable[Assessment]) -> tuple[UseCaseShown, ...]:
    """Return the use cases in words; of those that cannot be judged, why not."""
    return tuple(
        UseCaseShown(
            one.grade,
            one.verdict,
            tuple(_number(j) for j in one.aspects.values() if j.value is not None),
            " ".join(one.remarks),
            gettext(one.use_case.title),
        )
        for one in use_cases
    )


def _number(judged: MetricResult) -> Number:
    share = judged.share
    return Number(
        title=judged.aspect.heading + (f", {gettext(judged.aspect.unit)}" if judged.aspect.unit else ""),
        released=_figure(judged.value),
        original=_figure(judged.original),
        half=_figure(judged.sample),
        kept="–" if share is None else percent(f"{100 * share:.0f}"),
        bar=round(100 * min(share or 0.0, 1.0), 1),
    )


def _figure(value: float | None) -> str:
    if value is None:
        return "–"
    return localised(f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}")
