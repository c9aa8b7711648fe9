"""A release and its original, step by step, and two releases of one original.

All of it is for the data owner only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from veilog._files import atomic_target
from veilog.charts import comparison_svg
from veilog.logs.eventlog import EventLog, Statistics
from veilog.logs.variants import Variants
from veilog.measures import Comparison, Pair, compare, verdict_of
from veilog.measures.use_cases import UseCaseOptions, judge
from veilog.releasing.result import Release
from veilog.report.comparison import Number, shown
from veilog.report.facts import durations, gather_facts, ledger_status
from veilog.report.flow_map import FlowMap, FlowSteps, arranged, draw_map, steps_of
from veilog.report.page import render_page, utility_lines
from veilog.report.release_facts import facts_of_release
from veilog.web.jobs.results import Beside, ReleasedLog
from veilog.web.jobs.worker import Progress
from veilog.web.work.log_reader import first_cases

_LONGEST_CHART = 100_000


@dataclass(frozen=True)
class ComparisonInput:
    """A release, the log that it was made of, and the files that it was written to."""

    released: Release
    log: EventLog
    files: tuple[Path, ...]
    report: Path
    """Path of the report for the data owner."""
    person: str | bool = True
    """Column of persons: :func:`veilog.web.work.request.privacy_unit`."""

    @property
    def original(self) -> EventLog:
        """Cases of the log that the release is of."""
        subset = self.released.guarantee.subset
        return self.log if subset is None else subset.of_log(self.log)

    @property
    def logs(self) -> tuple[EventLog | Variants, EventLog | Variants]:
        """Original and release, with their times if the release has some."""
        if facts_of_release(self.released).timed:
            return self.original, self.released.log
        return self.original.variants, self.released.variants


def beside(sides: ComparisonInput, before: Beside | None, progress: Progress) -> Beside | None:
    """Compare original and release, and write the report for the data owner."""
    return _side_by_side(sides, None, progress)


def all_variants(sides: ComparisonInput, before: Beside | None, progress: Progress) -> Beside | None:
    """Compare logs of so many variants that :func:`beside` left this out."""
    if before is None or before.kept is not None:
        return before
    asked = UseCaseOptions(person=sides.person)
    comparison = compare(sides.original, sides.logs[1], asked=asked, progress=progress)
    return _side_by_side(sides, comparison, progress)


def predict_outcome(sides: ComparisonInput, before: Beside | None, progress: Progress) -> Beside | None:
    """Add how well a model trained on the release predicts the original's cases."""
    if before is None or not before.use_cases:
        return before
    found = shown(judge(Pair(*sides.logs, progress), ["prediction"], UseCaseOptions(person=sides.person)).values())
    return replace(before, use_cases=(*before.use_cases[:1], *found, *before.use_cases[1:]))


def _side_by_side(sides: ComparisonInput, comparison: Comparison | None, progress: Progress) -> Beside | None:
    released, log, told = sides.released, sides.original, facts_of_release(sides.released)
    standing = ledger_status(released, named=False)  # other browsers may have brought those files
    facts = gather_facts(
        told, released, log, comparison, progress, files=sides.files, account=standing, person=sides.person
    )
    with atomic_target(sides.report) as file:
        file.write(render_page(facts).encode("utf-8", "replace"))
    inside = facts.inside
    if inside is None:
        return None
    comparison = inside.comparison
    steps = _steps(sides)
    return Beside(
        before=Statistics.of(log.variants, None, None),
        verdict="" if comparison is None else verdict_of(comparison, of_people=False),
        kept=None if comparison is None else tuple(utility_lines(comparison)),
        not_compared=inside.not_compared,
        explorer=first_cases(released.variants, log.variants, sides.log.variants),
        map=draw_map(steps[0], arranged(steps), steps[1]),
        steps=steps[1],
        durations=facts.durations,
        durations_of=facts.durations_of,
        no_durations=facts.no_durations,
        chart=_chart(comparison),
        empty_cases=facts.empty,
        use_cases=inside.use_cases,
        seeming=inside.seeming,
        durations_before=durations(log)[0] if facts.durations else (),
        attributes=facts.attributes,
    )


def _steps(sides: ComparisonInput) -> tuple[FlowSteps, FlowSteps]:
    """Return the steps of both logs, with durations if the release has times."""
    released = sides.released
    timed = released.log if facts_of_release(released).timed else None
    return steps_of(sides.original.variants, sides.original), steps_of(released.variants, timed)


def use_cases_of(first: ReleasedLog, second: ReleasedLog) -> list[tuple[str, Number, Number]]:
    """Return the numbers of each use case for two releases, if both have them."""
    one, other = ({} if made.beside is None else _numbers(made.beside) for made in (first, second))
    return [(place[0], one[place], other[place]) for place in one if place in other]


def _numbers(made: Beside) -> dict[tuple[str, str], Number]:
    return {(use_case.title, number.title): number for use_case in made.use_cases for number in use_case.numbers}


def map_of(first: ReleasedLog, second: ReleasedLog) -> FlowMap | None:
    """Return the map of two releases in one frame; None if either was not compared."""
    if first.beside is None or second.beside is None:
        return None
    one, other = first.beside.steps, second.beside.steps
    return draw_map(one, arranged([one, other]), other)


def _chart(comparison: Comparison | None) -> str | None:
    if comparison is None or comparison.case_durations is None:
        return None
    svg = comparison_svg(comparison, styled=False)
    return svg if len(svg) <= _LONGEST_CHART else None
