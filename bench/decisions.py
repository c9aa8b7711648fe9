"""Decisions by noisy answers about times, around the constants of these decisions.

One decides if all times are whole days, the other which share of the cases starts outside the declared window. Each
line is 200 seeds.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from unittest.mock import patch

import numpy as np

from benchmark import benchmark
from calendars import BEGIN, DAY, log_of
from columns import Column
from constants import WINDOW
from veilog.experiments.experiment import Cell, Given, Measured, Profile
from veilog.logs.eventlog import EventLog
from veilog.methods._events import fits
from veilog.methods._events.times import calendar, hours, timestamps
from veilog.methods._events.times.prices import Price, prices
from veilog.privacy.curator import Curator
from veilog.privacy.domain import Domain
from veilog.privacy.mechanisms import noise

SEEDS = range(200)
SURE = (100.0, 200.0, 400.0)
OUTSIDE = (2.0, 4.0, 8.0)
REMARKED = (0.025, 0.05, 0.1)
LINES = (("0.4", 800), ("0.4", 1_500), ("0.4", 3_000), ("0.1", 1_500))


def half_known(cases: int, whole: float, outside: float) -> EventLog:
    """Return cases of two events: one share at midnight, another before the window."""
    rng, found = np.random.default_rng(51), []
    for i in range(cases):
        day = rng.uniform(-100, 0) if i % 100 < 100 * outside else rng.uniform(0, 730)
        begin, took = (np.floor(day) * DAY, DAY) if i < whole * cases else (day * DAY + 7, 5_003)
        found.append(("ab", BEGIN + np.array([begin, begin + took])))
    return log_of("half known", found)


def asked(log: EventLog, epsilon: str, seed: int) -> dict[str, Price]:
    curator = Curator(log.variants, log=log, domain=Domain(window=WINDOW), randomness=noise.seeded(seed))
    whole = sum(timestamps.SHARES.values())
    shares = {name: Fraction(part, whole) for name, part in timestamps.SHARES.items()}
    return prices(curator, Fraction(epsilon), Fraction(0), shares, dict.fromkeys(shares, 1.0))


def days(given: Given, cell: Cell) -> Measured:
    number, epsilon, share = of(cell)
    log = half_known(number, share, 0.0)
    found: dict[str, float] = {}
    for sure in SURE:
        with patch.object(hours, "SURE", sure):
            units = [hours.query_unit(asked(log, epsilon, seed)["unit"], number) for seed in SEEDS]
        found[f"SURE={sure:g}"] = float(np.mean(np.equal(units, DAY)))
    return Measured(found)


def outside(given: Given, cell: Cell) -> Measured:
    number, epsilon, share = of(cell)
    log = half_known(number, 0.0, share)
    values: dict[str, float] = {}
    for variances in OUTSIDE:
        price = [asked(log, epsilon, seed) for seed in SEEDS]
        with patch.object(fits, "SURPRISE", variances):
            starts = [calendar.asked_starts(one["starts"], one["finer starts"], WINDOW, number) for one in price]
        found = np.array([part for _, part in starts])
        values[f"error, {variances:g}"] = float(np.abs(found - share).mean())
        values |= {f"from {least:g}, {variances:g}": float(np.mean(found >= least)) for least in REMARKED}
    return Measured(values)


def of(cell: Cell) -> tuple[int, str, float]:
    return int(cell.get("cases")), str(cell.get("epsilon")), float(cell.get("share"))


def cells(profile: Profile, shares: tuple[float, ...]) -> Iterator[Cell]:
    for epsilon, number in LINES:
        for share in shares:
            yield Cell("", "", (("epsilon", epsilon), ("cases", number), ("share", share)))


_OUTSIDE = [f"error, {variances:g}" for variances in OUTSIDE]
_OUTSIDE += [f"from 0.05, {variances:g}" for variances in OUTSIDE] + ["from 0.025, 4", "from 0.1, 4"]
BENCHMARKS = (
    benchmark(
        "constants-days",
        "How often times are found to be days, by the part of the cases whose times are.",
        days,
        partial(cells, shares=(0.0, 0.5, 0.8, 0.9, 1.0)),
        [Column(name, name, ".2f") for name in (f"SURE={sure:g}" for sure in SURE)],
        runs=1,
        page="results/times.md",
    ),
    benchmark(
        "constants-outside",
        "How far off the part of cases outside the window is, and how often it is remarked, by fits.SURPRISE.",
        outside,
        partial(cells, shares=(0.0, 0.02, 0.05, 0.1, 0.2)),
        [Column(name, name, ".2f" if name.startswith("from") else ".3f") for name in _OUTSIDE],
        runs=1,
        page="results/times.md",
    ),
)
