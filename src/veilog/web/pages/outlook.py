"""The outlook of a release on the pages: utility and attacker's gain, by budget."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from veilog.ledger.entry import Cost
from veilog.messages import Message
from veilog.releasing.checks import meaning_of_pairs
from veilog.releasing.preview import ENOUGH, Expected, Interval
from veilog.web.jobs.records import JobRecord, LogRecord
from veilog.web.jobs.results import Forecast
from veilog.web.work.preview import BUDGETS, FormPreview, Refused

WIDTH, HEIGHT = 420, 236
LEFT, RIGHT, TOP, BOTTOM = 34, 410, 12, 196
"""Size of the picture, and the place of the curves in it."""
_STEPS = 25


def right_of_50(epsilon: float, delta: float) -> float:
    """Return the largest number of 100 guesses that can be right with a release.

    An attacker guesses whether a person is in the log, and is right 50 times without the release.
    """
    return math.ceil(1000 * meaning_of_pairs([(epsilon, delta)]).presence) / 10


@dataclass(frozen=True)
class Outlook:
    """The outlook of a release: the plan with its budget, and the forecast."""

    plan: FormPreview | Refused
    job: JobRecord | None = None
    """Newest forecast."""
    same: bool = False
    """True if it is of these very settings."""

    @property
    def refused(self) -> bool:
        return isinstance(self.plan, Refused)

    @property
    def forecast(self) -> Forecast | None:
        """Return the points of the forecast so far."""
        made = None if self.job is None else self.job.result
        return made if isinstance(made, Forecast) else None

    @property
    def cost(self) -> Cost:
        """Return the release's budget; the usual one if the form has an error."""
        return (
            (Fraction(1), Fraction(0))
            if isinstance(self.plan, Refused)
            else (self.plan.plan.epsilon, self.plan.plan.delta)
        )

    @property
    def right(self) -> float:
        """Return the largest number of an attacker's 100 even guesses that can be right."""
        return right_of_50(*map(float, self.cost))

    @property
    def found(self) -> tuple[Interval, Expected] | None:
        """Return the expectation at the budget of the form."""
        return None if self.forecast is None else self.forecast.at(float(self.cost[0]))

    def said(self, log: LogRecord) -> list[tuple[str, Message]]:
        """Return the expectation in sentences, each with its tone, for the data owner."""
        if self.found is None or log.measured is None:
            return []
        kept, expected = self.found
        said = [("", Message("similarity-expected", mean=kept.mean, low=kept.low, high=kept.high))]
        cases = np.array(log.measured.label_cases, dtype=np.int64)
        if expected.survivors is not None and len(cases):
            survivors = expected.survivors.among(cases)
            if survivors.kept < survivors.of:
                said.append(("warning" if 2 * survivors.kept < survivors.of else "", survivors.message))
        if kept.mean < ENOUGH:
            said.append(("warning", expected.doubt))
        return said

    @property
    def curve(self) -> Mapping[str, Any] | None:
        """Return the curves of the picture, as places in it; both count of 100.

        It also has the places of the form's budget (``here``) and of the rest of the account (``limit``). None before
        the first two budgets were tried.
        """
        found = self.forecast
        if found is None or len(found.points) < 2:
            return None
        delta = float(self.cost[1])
        limit = None if isinstance(self.plan, Refused) or self.plan.account.left is None else self.plan.account.left[0]
        tried = [(_x(float(budget)), expected.similarity) for budget, expected in found.points]
        ends = [(x, kept.low) for x, kept in tried] + [(x, kept.high) for x, kept in reversed(tried)]
        gained = [_LEAST * (_MOST / _LEAST) ** (step / (_STEPS - 1)) for step in range(_STEPS)]
        return {
            "kept": _places((x, kept.mean) for x, kept in tried),
            "band": _places(ends),
            "gained": _places((_x(budget), right_of_50(budget, delta) / 100) for budget in gained),
            "ticks": [(_x(float(budget)), budget) for budget in BUDGETS],
            "here": _place_within(float(self.cost[0])),
            "limit": None if limit is None else _place_within(float(limit)),
        }


_LEAST, _MOST = float(BUDGETS[0]), float(BUDGETS[-1])


def _x(epsilon: float) -> float:
    return round(LEFT + (RIGHT - LEFT) * math.log(epsilon / _LEAST) / math.log(_MOST / _LEAST), 1)


def _place_within(epsilon: float) -> float:
    """Return the place of a budget; beyond an end, that end."""
    return _x(min(max(epsilon, _LEAST), _MOST))


def _places(points: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{BOTTOM - (BOTTOM - TOP) * share:.1f}" for x, share in points)
