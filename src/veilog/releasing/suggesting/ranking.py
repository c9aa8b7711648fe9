"""Which method serves a purpose best, by what was measured on public logs: the frontier's rows, as data.

Of the measured settings (a log at an epsilon) those count that are like the log at hand, by epsilon times the number of
cases, which is what decides how much of a log noise leaves. (This is apart from :mod:`veilog.methods.measured`, which
has the sentences of the methods themselves and is part of what makes their numbers.)
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Annotated, Any

from veilog._plain import InJson, ToJson
from veilog.errors import ParameterError

SIMILARITY = "similarity"
"""The purpose that needs no ranking: it has a rule of its own."""
NEAR = 3.0
"""Settings within this factor are like the log at hand."""
FEWEST = 3
"""So many settings are taken at least: the nearest ones."""

Place = tuple[str, str]
"""A log and an epsilon."""
Numbers = Mapping[str, Mapping[str, Mapping[str, float]]]
"""By what was compared, log and epsilon."""


@dataclass(frozen=True)
class Served:
    """A purpose that methods are ranked for: what was measured for it, and how much of that is enough."""

    measures: tuple[str, ...]
    title: str
    kept: bool
    """Whether it goes by the share that is kept of what the log itself gives, the worst of several; else by the error,
    which is to be small."""
    shown: tuple[str, ...]
    enough: float
    """From which mean on a release can be expected to be of use."""

    def value(self, numbers: Mapping[str, float], originals: Mapping[str, float]) -> float:
        """Return what a method is worth at one place."""
        if not self.kept:
            return numbers[self.measures[0]]
        return min(min(1.0, numbers[name] / originals[name]) if originals[name] else 1.0 for name in self.measures)

    def in_words(self, value: float) -> str:
        return f"{100 * value:.0f} %" if self.kept else f"{100 * value:.2g} points"


PURPOSES: Mapping[str, Served] = {
    "prediction": Served(("next_activity",), "predicting the next activity", True, ("next_activity",), 0.7),
    "discovery": Served(
        ("fitness", "precision"), "discovering a model", True, ("fitness", "precision", "f_score"), 0.7
    ),
    "conformance": Served(("rules",), "checking rules", False, ("rules",), 0.1),
}


@dataclass(frozen=True)
class Ranked(ToJson):
    """A method with its settings, and how it did at the places that count."""

    name: str
    """What the frontier calls it."""
    method: str
    delta: bool
    """Whether it spends the delta."""
    settings: Annotated[tuple[tuple[str, Any], ...], InJson(as_=dict)]
    value: float
    """The mean that it is ranked by."""
    numbers: Mapping[str, float]
    """Means of what was measured."""


@dataclass(frozen=True)
class Ranking:
    """What was measured for a purpose."""

    purpose: str
    numbers: Mapping[str, Numbers]
    """By measure."""
    originals: Mapping[str, Mapping[str, float]]
    """What the logs themselves have, by measure and log."""
    cases: Mapping[str, int]
    asked: Mapping[str, Mapping[str, Any]]
    """By what was compared: method, whether it spends a delta, settings."""

    @staticmethod
    def of(purpose: str, told: Mapping[str, Any] | None = None) -> Ranking:
        """Return what was measured for this purpose; refused where nothing was."""
        if purpose not in PURPOSES:
            raise ParameterError(
                f"Methods are not ranked for {purpose!r}.",
                parameter="for",
                advice=f"Possible: {', '.join((SIMILARITY, *PURPOSES))}.",
            )
        told = _kept() if told is None else told
        served = PURPOSES[purpose]
        numbers = {name: told.get("purposes", {}).get(name, {}) for name in served.shown}
        if not all(numbers[name] for name in served.measures):
            raise ParameterError(
                f"No method was measured for {served.title}, so none can be suggested for it.", parameter="for"
            )
        return Ranking(purpose, numbers, told["originals"], told["cases"], told["asked"])

    @property
    def served(self) -> Served:
        return PURPOSES[self.purpose]

    def places(self, scale: float) -> tuple[Place, ...]:
        """Return the settings that are like a log of this epsilon times cases, the nearest first."""
        wanted = math.log(max(scale, 1e-9))
        known = {
            (log, epsilon): abs(math.log(float(epsilon) * self.cases[log]) - wanted)
            for name in self.served.measures
            for of_log in self.numbers[name].values()
            for log, values in of_log.items()
            for epsilon in values
            if log in self.cases and self._has_original(log)
        }
        ordered = sorted(known, key=lambda place: (known[place], place))
        near = [place for place in ordered if known[place] <= math.log(NEAR)]
        return tuple(near if len(near) >= FEWEST else ordered[:FEWEST])

    def _has_original(self, log: str) -> bool:
        return not self.served.kept or all(log in self.originals.get(name, {}) for name in self.served.measures)

    def ranked(self, scale: float, *, delta: bool) -> tuple[tuple[Ranked, ...], Mapping[str, str]]:
        """Return the methods, the best first, and why others are not among them."""
        places = self.places(scale)
        found, left_out = [], {}
        for name, asked in self.asked.items():
            if asked["delta"] and not delta:
                left_out[name] = "it needs a delta"
                continue
            missing = [place for place in places if not self._known(name, place)]
            if missing:
                log, epsilon = missing[0]
                left_out[name] = f"not measured for this on {log} at epsilon {epsilon}"
                continue
            found.append(self._one(name, places))
        best: Callable[[Ranked], tuple[float, str]] = lambda one: (  # noqa: E731
            -one.value if self.served.kept else one.value,
            one.name,
        )
        return tuple(sorted(found, key=best)), left_out

    def _known(self, name: str, place: Place) -> bool:
        return all(self._number(measure, name, place) is not None for measure in self.served.measures)

    def _number(self, measure: str, name: str, place: Place) -> float | None:
        return self.numbers[measure].get(name, {}).get(place[0], {}).get(place[1])

    def _one(self, name: str, places: tuple[Place, ...]) -> Ranked:
        served, asked = self.served, self.asked[name]
        values = []
        for place in places:
            own = {measure: self.numbers[measure][name][place[0]][place[1]] for measure in served.measures}
            values.append(served.value(own, {m: self.originals.get(m, {}).get(place[0], 0.0) for m in own}))
        shown = {
            measure: statistics.fmean(known)
            for measure in served.shown
            if (known := [n for place in places if (n := self._number(measure, name, place)) is not None])
        }
        settings = tuple(asked["settings"].items())
        return Ranked(name, asked["method"], asked["delta"], settings, statistics.fmean(values), shown)


@lru_cache(maxsize=1)
def _kept() -> Mapping[str, Any]:
    told: Mapping[str, Any] = json.loads((files("veilog.methods") / "measured.json").read_text())
    return told
