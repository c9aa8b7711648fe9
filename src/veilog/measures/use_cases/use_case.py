"""What a release is still good for: a use case, its numbers, and what they are held against on the same log.

A number of its own says little: whether a fitness of .9 is high or a distance of 40 hours far depends on the log. So
each is found four times, each time on the original's cases:

- *value*: with the release in the original's place;
- *original*: with the original itself, the most that can be hoped for;
- *sample*: with one random half of the original, judged on the other half: what another sample of the same process is
  worth. No release needs to be better;
- *unprotected*, the baseline: with every variant of the original once. Such a list has learnt nothing of
  what is frequent, and protects no person.

A *share* tells how much is kept: of a number of which more is better, value / original; of a distance, sample / value,
at most 1: a half means twice as far from the original as another sample of it. The error of something that is learnt
from a log is no distance between logs, and not even the original makes it 0: it is held against the
original, original / value.
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
"""Shares from which a use case is said to be served well, or in part; a distance is judged by its square root, so by
1.2 and 2 times that of another sample. Words for people: the numbers stand beside them."""


@dataclass(frozen=True)
class UseCaseOptions:
    """What use cases may be told, and how they say how far they are."""

    model: Path | None = None
    """A process model or constraints that cases are checked against."""
    targets: tuple[str, ...] = ()
    """Case attributes whose prediction is wanted."""
    pm4py: bool = False
    alignments: bool = False
    """Whether fitness is found by optimal alignments, too."""
    chief_only: bool = False
    """Whether only the numbers that verdicts go by are found, and what these are held against."""
    person: str | bool = True
    """The column that tells whose a case is: nobody's cases are on both sides of a split, and it is no attribute. True:
    the one that seems to (:func:`veilog.measures.persons.person_of`); False: none."""
    return_days: float = 30.0
    """How many days after its end at most the next case of a person starts, for a case to return."""
    progress: Progress = field(default=lambda text, fraction: None, repr=False)

    @property
    def column(self) -> str | None:
        """The column of persons, once it is known; None where there is none."""
        return self.person if isinstance(self.person, str) else None


@dataclass(frozen=True)
class Metric:
    """One number of a use case in words."""

    name: str
    title: str = ""
    """Empty where the catalogue has it and the meaning, by the name."""
    meaning: str = ""
    better: Literal["higher", "lower"] = "higher"
    unit: str = ""
    chief: bool = False
    """Whether the verdict goes by it; by the worst of several."""
    against: Literal["sample", "original"] = "sample"
    """What a number of which less is better is held against: another sample of the original, or the original."""
    negligible: float = 0.0
    """A distance that matters to nobody, which counts as near as another sample."""
    on_request: bool = False
    """Whether it is there only where somebody asked for it."""

    @property
    def heading(self) -> str:
        """Its title, in the language that is spoken."""
        return str(Message(self.title or self._code))

    @property
    def explanation(self) -> str:
        """What it means."""
        return gettext(self.meaning) if self.meaning else words(self._code, {}, "meaning")

    @property
    def _code(self) -> str:
        return f"aspect-{self.name}".replace("_", "-")

    @property
    def yardstick(self) -> Literal["sample", "original"]:
        """What its share is found by."""
        return "original" if self.better == "higher" else self.against


class Lowest(NamedTuple):
    """The least of several likenesses, and what it is of: the names of one attribute, or of two."""

    names: tuple[str, ...]
    value: float

    @property
    def named(self) -> str:
        """Return what it is of, in one line."""
        return " × ".join(self.names)


class Mean(float):
    """A mean that knows the lowest of what it was taken of, which it may hide."""

    lowest: Lowest | None = None

    @staticmethod
    def of(value: float, lowest: Lowest | None) -> Mean:
        """Return this mean, with the lowest of what it is of."""
        found = Mean(value)
        found.lowest = lowest
        return found


Score: TypeAlias = Callable[[Log, Log, UseCaseOptions], Mapping[str, float | None]]
"""Of the log that is used and the one on which it is judged: the aspects' numbers, None where there is none."""


@dataclass(frozen=True)
class MetricResult:
    """One number of a release, and what it is held against."""

    aspect: Metric
    value: float | None
    sample: float | None
    original: float | None
    unprotected: float | None

    @property
    def share(self) -> float | None:
        """How much of what the original gives is kept; None where that cannot be said."""
        if self.aspect.better == "higher":
            return None if self.value is None or not self.original else max(0.0, self.value / self.original)
        base = self.original if self.aspect.yardstick == "original" else self.sample
        if self.value is None or base is None:
            return None
        base = max(base, self.aspect.negligible)
        return 1.0 if self.value <= base else base / self.value

    @property
    def is_distance(self) -> bool:
        """Whether its share says how far it is from the original, and not how much of it there is."""
        return self.aspect.yardstick == "sample"

    @property
    def lowest(self) -> Lowest | None:
        """What is least alike of all that the number is a mean of, where that has names."""
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
    """What a release is worth for one use case; without numbers it has the reason."""

    use_case: UseCase
    aspects: Mapping[str, MetricResult] = field(default_factory=dict)
    reasons: tuple[Reason, ...] = ()

    @property
    def reason(self) -> str:
        """Why there are no numbers, or what they leave out."""
        return " ".join(map(str, self.reasons))

    @property
    def chief(self) -> MetricResult | None:
        """The number that the verdict goes by: the worst of those that count."""
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
        return str(OwnerMessage(f"use-case-{chief.grade}", use_case=title, kept=_kept(chief)))

    @property
    def remarks(self) -> tuple[str, ...]:
        """Return what else is said of its numbers: what is least alike in those that are means, and the reason."""
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
                "meaning": judged.aspect.explanation if judged.share is None else _kept(judged),
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


def _kept(chief: MetricResult) -> str:
    """What is kept of the number that a verdict goes by."""
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
    """What people use a log for, and the function that tells how well a log serves in another's place."""

    name: str
    title: str
    """As in "good for ..."."""
    aspects: tuple[Metric, ...]
    score: Score
    needs: Needs | Literal["either"] = "variants"
    """*either*: whole logs where both are there, and otherwise the variants."""
    held_out: bool = False
    """Whether it is judged on 30 % of the original's cases, of which the reference has seen nothing."""
    halvings: int = 1
    """How often the original is halved for another sample, whose mean is taken: often where one number is that of a
    whole log, so that a lucky draw is no yardstick."""

    def judged(self, sides: Splits, asked: UseCaseOptions) -> Assessment:
        """Return what a release is worth for this use case; a :class:`VeilogError` on the way is the reason why not."""
        try:
            numbers = {side: self._side(side, sides, asked) for side in self._wanted(asked)}
        except VeilogError as error:
            return Assessment(self, reasons=(error.with_traceback(None),))
        found = {
            aspect.name: MetricResult(aspect, **{side: numbers.get(side, {}).get(aspect.name) for side in _SIDES})
            for aspect in self.aspects
            if not aspect.on_request or any(aspect.name in own for own in numbers.values())
        }
        return Assessment(self, found)

    def _wanted(self, asked: UseCaseOptions) -> tuple[str, ...]:
        if not asked.chief_only:
            return tuple(_SIDES)
        held_against = {aspect.yardstick for aspect in self.aspects if aspect.chief}
        return tuple(side for side in _SIDES if side == "value" or side in held_against)

    def _side(self, side: str, sides: Splits, asked: UseCaseOptions) -> Mapping[str, float | None]:
        draws = range(self.halvings if side == "sample" else 1)
        scored = [
            self._scored(*sides.of(side, self.needs, held_out=self.held_out, draw=draw), asked, side) for draw in draws
        ]
        found = {
            aspect.name: [number for one in scored if (number := one.get(aspect.name)) is not None]
            for aspect in self.aspects
        }
        asked_for = {name for one in scored for name in one}
        return {name: _mean(known) for name, known in found.items() if name in asked_for}

    def _scored(self, used: Log, judged: Log, asked: UseCaseOptions, side: str) -> Mapping[str, float | None]:
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
    """Return by name where each of our own use cases is, and its facts and words."""
    return tables_of(__package__, "use_cases")


def facts_of(name: str) -> dict[str, Any]:
    """Return what ``use cases.toml`` has of one of our own use cases, but for the function that scores."""
    facts = {fact: value for fact, value in our_use_cases()[name].items() if fact != "at"}
    return {"name": name, **facts, "aspects": tuple(Metric(**aspect) for aspect in facts["aspects"])}


def _mean(known: Sequence[float]) -> float | None:
    """The mean of the draws; the number itself, with what it knows, where there is one."""
    return known[0] if len(known) == 1 else sum(known) / len(known) if known else None


_SIDES = {
    "value": "the release",
    "original": "the original",
    "sample": "another sample",
    "unprotected": "the unprotected baseline",
}
