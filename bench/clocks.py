"""Hours and weekdays of releases, against a flat clock and the plain noisy answer."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmark import benchmark, grid
from calendars import BEGIN, DAY, HOUR, Cases, log_of, office_hours
from columns import Column
from veilog.experiments.experiment import Cell, Given, Measured
from veilog.logs.eventlog import TIMESTAMP, EventLog
from veilog.logs.synthetic.hospital import hospital
from veilog.measures.use_cases.sides import split
from veilog.methods._events.assemble import released_cases
from veilog.methods._events.times.prices import Price
from veilog.methods._events.times.timestamps import released_times
from veilog.privacy.curator import Curator
from veilog.privacy.mechanisms import noise

CYCLES = {"hours": (HOUR, 24), "days": (DAY, 7)}


def any_hour(cases: int) -> EventLog:
    """Return cases at any hour of any day."""
    rng = np.random.default_rng(61)
    found: Cases = []
    for _ in range(cases):
        gaps = rng.lognormal(np.log(DAY), 1, int(rng.geometric(0.3)) + 2)
        found.append(("a" + "b" * (len(gaps) - 2) + "c", BEGIN + rng.uniform(0, 350) * DAY + np.cumsum(gaps)))
    return log_of("any hour", found)


def loans(cases: int) -> EventLog:
    """Return loans requested from eight to six, with steps days later at any hour."""
    rng = np.random.default_rng(62)
    found: Cases = []
    for _ in range(cases):
        gaps = rng.lognormal(np.log([HOUR / 2, 2 * DAY, 3 * DAY]), 1)
        begin = BEGIN + int(rng.integers(350)) * DAY + HOUR * rng.uniform(8, 18)
        found.append((["ask", "check", "offer", "sign"], begin + np.cumsum([0.0, *gaps])))
    return log_of("loans", found)


def batch(cases: int) -> EventLog:
    """Return orders by day, with a step at six in the evening."""
    rng = np.random.default_rng(63)
    found: Cases = []
    for _ in range(cases):
        day = BEGIN + int(rng.integers(350)) * DAY
        order = HOUR * rng.uniform(8, 16)
        sent = 18 * HOUR + DAY * rng.integers(1, 9) - HOUR * rng.uniform(1, 8)
        found.append((["order", "check", "batch", "send"], day + np.array([order, order + HOUR, 18 * HOUR, sent])))
    return log_of("batch", found)


SHAPES: dict[str, Callable[[int], EventLog]] = {
    "any hour": any_hour,
    "loans": loans,
    "office hours": lambda cases: split(office_hours(), cases / 5_000, 0)[0] if cases < 5_000 else office_hours(),
    "hospital": hospital,
    "batch": batch,
}


@cache
def made_up(name: str, cases: int) -> EventLog:
    return SHAPES[name](cases)


def shares(moments: np.ndarray, unit: int, number: int) -> np.ndarray:
    """Return the share of moments in each hour of the day, or each day of the week."""
    return np.bincount((moments // 10**6 - 4 * DAY) // unit % number, minlength=number) / len(moments)


def apart(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.abs(one - other).sum() / 2)


def clocks(given: Given, cell: Cell) -> Measured:
    log, source = made_up(cell.log, int(cell.get("cases"))), noise.seeded(cell.run)
    curator = Curator(log.variants, log=log, randomness=source)
    cases = released_cases(log.variants, noise.generator(source))
    asked, answers = Price.sums, []

    def listening(self: Price, *more: Any, purpose: str, **named: Any) -> np.ndarray:
        answer = asked(self, *more, purpose=purpose, **named)
        if purpose == "hours-and-weekdays":
            answers.append(np.maximum(answer, 0.0))
        return answer

    with patch.object(Price, "sums", listening):
        moments = released_times(curator, Fraction(str(cell.get("epsilon"))), cases, window=None)
    real = log.events.column(TIMESTAMP).cast("int64").to_numpy()
    [answer] = answers
    raw = {"hours": np.repeat(answer[:-7], 24 // (len(answer) - 7)), "days": answer[-7:]}
    found: dict[str, float] = {}
    for name, (unit, number) in CYCLES.items():
        true, flat = shares(real, unit, number), np.full(number, 1 / number)
        histogram = raw[name] / raw[name].sum() if raw[name].any() else flat
        found[name] = apart(shares(moments, unit, number), true)
        found[f"{name}, flat"], found[f"{name}, raw"] = apart(flat, true), apart(histogram, true)
    return Measured(found)


BENCHMARKS = (
    benchmark(
        "clocks",
        "Total variation of hours of the day and days of the week from the original, by the epsilon for times.",
        clocks,
        grid(logs=tuple(SHAPES), cases=(200, 1_000, 5_000), epsilon=("0.04", "0.12", "0.4")),
        [
            Column(title, title, ".2f", "median" if "flat" in title else "spread")
            for name in CYCLES
            for title in (name, f"{name}, flat", f"{name}, raw")
        ],
        page="results/times.md",
    ),
)
