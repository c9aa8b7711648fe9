"""Use cases of a release: their numbers, and the references on the same log.

A number alone reveals little: the log decides if a fitness of .9 is high or a distance of 40 hours far. So each number
is found four times, each time on the original's cases:

- *value*: with the release in the original's place;
- *original*: with the original itself, the best possible value;
- *sample*: with one random half of the original, judged on the other half. This is the value of another sample of the
  same process, and no release needs to be better;
- *unprotected*, the baseline: with every variant of the original once. Such a list has learnt nothing about
  frequencies, and protects no person.

A *share* measures how much is kept. If more is better, it is value / original. For a distance it is sample / value, at
most 1: a half means twice as far from the original as another sample of it. The error of something that is learnt from
a log is no distance between logs, and the original itself does not make it 0. Its share is original / value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from veilog._language import gettext, percent
from veilog._plain import tables_of
from veilog.errors import ParameterError, VeilogError
from veilog.measures.measure import Log, Needs, Progress, Reason
from veilog.messages import Message, OwnerMessage, words

if TYPE_CHECKING:
    from veilog.measures.use_cases.sides import Splits


Grade = Literal["good", "limited", "poor", "not judged"]

GOOD, LIMITED = 0.9, 0.7
"""Shares from which a use case is served well, or in part. A distance is judged by its square root, so by 1.2 and 2
times that of another sample. The numbers stand next to the words."""


@dataclass(frozen=True)
class UseCaseOptions:
    """Options of use cases, and their callback for progress."""

    model: Path | None = None
    """Process model or constraints that cases are checked against."""
    targets: tuple[str, ...] = ()
    """Case attributes to predict."""
    pm4py: bool = False
    alignments: bool = False
    """True also finds fitness by optimal alignments."""
    chief_only: bool = False
    """True finds only the numbers that verdicts depend on, with their references."""
    person: str | bool = True
    """Column that names the person of a case. No person's cases are on both sides of a split, and the column is no
    attribute. True: the likeliest one (:func:`veilog.measures.persons.person_of`); False: none."""
    return_days: float = 30.0
    """Largest number of days from the end of a case to a return of its person."""
    progress: Progress = field(default=lambda text, fraction: None, repr=False)

    @property
    def column(self) -> str | None:
        """Return the column of persons, once it is known; None where there is none."""
        return self.person if isinstance(self.person, str) else None


@dataclass(frozen=True)
class Metric:
    """One number of a use case, with its title and meaning."""

    name: str
    title: str = ""
    """Title; if empty, the catalogue has title and meaning, by the name."""
    meaning: str = ""
    better: Literal["higher", "lower"] = "higher"
    unit: str = ""
    chief: bool = False
    """True if the verdict depends on it; the worst of several decides."""
    against: Literal["sample", "original"] = "sample"
    """Reference where less is better: another sample of the original, or the original."""
    negligible: float = 0.0
    """Distance that is too small to matter, which counts as near as another sample."""
    on_request: bool = False
    """True if it is found only on request."""

    @property
    def heading(self) -> str:
        """Return its title in the language in use."""
        return str(Message(self.title or self._code))

    @property
    def explanation(self) -> str:
        """Return its meaning in the language in use."""
        return gettext(self.meaning) if self.meaning else words(self._code, {}, "meaning")

    @property
    def _code(self) -> str:
        return f"aspect-{self.name}".replace("_", "-")

    @property
    def yardstick(self) -> Literal["sample", "original"]:
        """Return the reference of its share."""
        return "original" if self.better == "higher" else self.against


class Lowest(NamedTuple):
    """Lowest of several similarities, with the names of one attribute or of two."""

    names: tuple[str, ...]
    value: float

    @property
    def named(self) -> str:
        """Return the names in one line."""
        return " × ".join(self.names)


class Mean(float):
    """A mean with the lowest of its values, which the mean may hide."""

    lowest: Lowest | None = None

    @staticmethod
    def of(value: float, lowest: Lowest | None) -> Mean:
        """Return this mean, with the lowest of its values."""
        found = Mean(value)
        found.lowest = lowest
        return found


Score: TypeAlias = Callable[[Log, Log, UseCaseOptions], Mapping[str, float | None]]
"""Function of the used and the judged log that returns each number by name, None where there is none."""


@dataclass(frozen=True)
class MetricResult:
    """One number of a release, with its references."""

    aspect: Metric
    value: float | None
    sample: float | None
    original: float | None
    unprotected: float | None

    @property
    def share(self) -> float | None:
        """Return the share of the original's value that is kept, or None if unknown."""
        if self.aspect.better == "higher":
            return None if self.value is None or not self.original else max(0.0, self.value / self.original)
        base = self.original if self.aspect.yardstick == "original" else self.sample
        if self.value is None or base is None:
            return None
        base = max(base, self.aspect.negligible)
        return 1.0 if self.value <= base else base / self.value

    @property
    def is_distance(self) -> bool:
        """Return True if the share measures a distance from the original, not an amount."""
        return self.aspect.yardstick == "sample"

    @property
    def lowest(self) -> Lowest | None:
        """Return the lowest of the values that the number is a mean of, if it has names."""
        return self.value.lowest if isinstance(self.value, Mean) else None

    @property
    def grade(self) -> Grade:
        if self.share is None:
            return "not judged"
        share = math.sqrt(self.share) if self.is_distance else self.share
        return "good" if share >= GOOD else "limited" if share >= LIMITED else "poor"

    def to_json(self) -> dict[str, Any]:
        """Return its numbers as plain values."""
        numbers = {name: getattr(self, name) for name in ("value", "sample", "original", "unprotected", "share")}
        told = {"better": self.aspect.better, "unit": self.aspect.unit, **numbers, "grade": self.grade}
        if self.lowest is not None:
            told["lowest"] = {"names": list(self.lowest.names), "value": self.lowest.value}
        return told


@dataclass(frozen=True)
class Assessment:
    """Assessment of a release for one use case; without numbers it has the reason."""

    use_case: UseCase
    aspects: Mapping[str, MetricResult] = field(default_factory=dict)
    reasons: tuple[Reason, ...] = ()

    @property
    def reason(self) -> str:
        """Return the reason why there are no numbers, or what they leave out."""
        return " ".join(map(str, self.reasons))

    @property
    def chief(self) -> MetricResult | None:
        """Return the number that decides the verdict: the worst of those that count."""
        order: tuple[Grade, ...] = ("poor", "limited", "good")
        counted = [judged for judged in self.aspects.values() if judged.aspect.chief and judged.share is not None]
        return min(counted, key=lambda judged: (order.index(judged.grade), judged.share), default=None)

    @property
    def grade(self) -> Grade:
        return "not judged" if self.chief is None else self.chief.grade

    @property
    def verdict(self) -> str:
        """Return one sentence for people."""
        title = gettext(self.use_case.title)
        chief = self.chief
        if chief is None:
            reason = self.reason or Message("use-case-without-yardstick")
            return str(Message("use-case-not-judged", use_case=title, reason=reason))
        return str(OwnerMessage(f"use-case-{chief.grade}", use_case=title, kept=_kept_text(chief)))

    @property
    def remarks(self) -> tuple[str, ...]:
        """Return remarks on its numbers: the lowest values in means, and the reason."""
        hidden = [
            str(
                OwnerMessage(
                    "use-case-least-alike",
                    number=judged.aspect.heading,
                    names=judged.lowest.named,
                    value=judged.lowest.value,
                )
            )
            for judged in self.aspects.values()
            if judged.lowest is not None and judged.lowest.value < 0.995
        ]
        return (*hidden, *([self.reason] if self.reason and self.aspects else []))

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield each number that there is as a row of a table of numbers."""
        for name, judged in self.aspects.items():
            if judged.value is None:
                continue
            yield {
                "measure": f"{self.use_case.name}.{name}",
                "title": judged.aspect.heading,
                **dict.fromkeys(("value", "low", "high"), judged.value),
                "better": judged.aspect.better,
                "meaning": judged.aspect.explanation if judged.share is None else _kept_text(judged),
            }

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {
            "grade": self.grade,
            "verdict": self.verdict,
            "reason": self.reason,
            "aspects": {name: judged.to_json() for name, judged in self.aspects.items()},
        }


def capital(title: str) -> str:
    return title[0].upper() + title[1:]


def _kept_text(chief: MetricResult) -> str:
    """Return in words how much is kept of the number that decides the verdict."""
    share, values = chief.share or 0.0, dict[str, Any]()
    if chief.aspect.better == "higher":
        code, values = "kept-share", {"share": percent(f"{100 * min(share, 1.0):.0f}")}
    elif not chief.is_distance:
        code, values = "kept-error", {"times": 1 / max(share, 0.01)}
    elif share >= 1.0:
        code = "kept-as-near"
    elif share > 0.01:
        code, values = "kept-further", {"times": 1 / share}
    else:
        code, values = "kept-far", {"times": 100}
    return str(OwnerMessage(f"use-case-{code}", number=chief.aspect.heading, **values))


@dataclass(frozen=True)
class UseCase:
    """Purpose of a log, with a function that scores one log in another's place."""

    name: str
    title: str
    """Title, as in "good for ..."."""
    aspects: tuple[Metric, ...]
    score: Score
    needs: Needs | Literal["either"] = "variants"
    """Kind of log; *either* takes whole logs if both are there, else the variants."""
    held_out: bool = False
    """True if 30 % of the original's cases judge it, unseen by the reference."""
    halvings: int = 1
    """Number of halvings of the original for another sample, whose mean is the reference. Many are useful where a
    number is one of a whole log, so that a lucky draw is no reference."""

    def judged(self, sides: Splits, asked: UseCaseOptions) -> Assessment:
        """Return the assessment of a release; a :class:`VeilogError` becomes its reason."""
        try:
            numbers = {side: self._side(side, sides, asked) for side in self._choose_scores(asked)}
        except VeilogError as error:
            return Assessment(self, reasons=(error.with_traceback(None),))
        found = {
            aspect.name: MetricResult(aspect, **{side: numbers.get(side, {}).get(aspect.name) for side in _SIDES})
            for aspect in self.aspects
            if not aspect.on_request or any(aspect.name in own for own in numbers.values())
        }
        return Assessment(self, found)

    def _choose_scores(self, asked: UseCaseOptions) -> tuple[str, ...]:
        if not asked.chief_only:
            return tuple(_SIDES)
        held_against = {aspect.yardstick for aspect in self.aspects if aspect.chief}
        return tuple(side for side in _SIDES if side == "value" or side in held_against)

    def _side(self, side: str, sides: Splits, asked: UseCaseOptions) -> Mapping[str, float | None]:
        draws = range(self.halvings if side == "sample" else 1)
        scored = [
            self._score_side(*sides.of(side, self.needs, held_out=self.held_out, draw=draw), asked, side)
            for draw in draws
        ]
        found = {
            aspect.name: [number for one in scored if (number := one.get(aspect.name)) is not None]
            for aspect in self.aspects
        }
        asked_for = {name for one in scored for name in one}
        return {name: _mean(known) for name, known in found.items() if name in asked_for}

    def _score_side(self, used: Log, judged: Log, asked: UseCaseOptions, side: str) -> Mapping[str, float | None]:
        asked.progress(f"{self.title}: {_SIDES[side]}", None)
        if side == "value":
            return self.score(used, judged, asked)
        try:
            return self.score(used, judged, asked)
        except VeilogError:
            return {}  # half of a small log may be too small; the value stands without it

    def __post_init__(self) -> None:
        if not any(aspect.chief for aspect in self.aspects):
            raise ParameterError("use-case-without-verdict-number", parameter="aspects", name=self.name)


@cache
def our_use_cases() -> dict[str, Any]:
    """Return the place, the facts and the words of each of our own use cases, by name."""
    return tables_of(__package__, "use_cases")


def facts_of(name: str) -> dict[str, Any]:
    """Return the facts of our own use case from ``use_cases.toml``, without ``score``."""
    facts = {fact: value for fact, value in our_use_cases()[name].items() if fact != "at"}
    return {"name": name, **facts, "aspects": tuple(Metric(**aspect) for aspect in facts["aspects"])}


def _mean(known: Sequence[float]) -> float | None:
    """Return the mean of the draws, or a single number itself, with its details."""
    return known[0] if len(known) == 1 else sum(known) / len(known) if known else None


_SIDES = {
    "value": "the release",
    "original": "the original",
    "sample": "another sample",
    "unprotected": "the unprotected baseline",
}
