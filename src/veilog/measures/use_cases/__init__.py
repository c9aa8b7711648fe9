"""Use cases of a release, such as discovery, prediction and performance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from veilog._plugins import Registry
from veilog.errors import ParameterError, meant
from veilog.measures.measure import Pair
from veilog.measures.use_cases.use_case import (
    Assessment,
    Grade,
    Metric,
    MetricResult,
    UseCase,
    UseCaseOptions,
    our_use_cases,
)

__all__ = ["USE_CASES", "Assessment", "Grade", "Metric", "MetricResult", "UseCase", "UseCaseOptions", "judge", "named"]

USE_CASES = Registry(UseCase, "veilog.use_cases", {name: facts["at"] for name, facts in our_use_cases().items()})
"""Registry in the order in which use cases are judged; packages add theirs by entry points of this group."""


def use_cases_by_name(names: Sequence[str] | str) -> tuple[str, ...]:
    """Return these names of use cases, with ``all`` every one.

    Raises:
        ParameterError: When a name does not exist.

    """
    names = [name.strip() for name in names.split(",")] if isinstance(names, str) else names
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise ParameterError("use-case-names-invalid", parameter="use_cases", names=names, names_2=", ".join(USE_CASES))
    if "all" in names:
        return tuple(USE_CASES)
    if unknown := [name for name in names if name not in USE_CASES]:
        raise ParameterError(
            "use-case-unknown",
            parameter="use_cases",
            unknown=unknown[0],
            meant=meant(unknown[0], USE_CASES),
            names=", ".join(USE_CASES),
        )
    return tuple(dict.fromkeys(names))


def judge(pair: Pair, names: Sequence[str], asked: UseCaseOptions | None = None) -> dict[str, Assessment]:
    """Return the assessments of a release for these use cases."""
    wanted = use_cases_by_name(names)
    if not wanted:
        return {}
    from veilog.measures.use_cases.sides import Splits  # not before there is something to judge

    asked = asked or UseCaseOptions()
    sides = Splits.of_people(pair, asked.person)
    told = replace(asked, progress=pair.progress, person=sides.person or False)
    return {name: USE_CASES[name].judged(sides, told) for name in wanted}
