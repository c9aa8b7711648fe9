"""Synthetic numbers, written in many ways, and the error of released numbers."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pyarrow as pa

from calendars import BEGIN, log_of
from veilog.logs.eventlog import ACTIVITY, EventLog

Numbers = Callable[[np.random.Generator, int], np.ndarray]
KINDS: dict[str, Numbers] = {
    "ages": lambda rng, n: np.round(rng.normal(55, 20, n).clip(0, 110)),
    "money": lambda rng, n: np.round(np.round(rng.lognormal(4, 1.2, n)) + rng.choice([0.99, 0.5, 0.0, 0.37], n), 2),
    "stays": lambda rng, n: np.round(rng.lognormal(1, 1.5, n).clip(0, 400), 1) * (rng.random(n) < 0.9),
    "weights": lambda rng, n: np.round(rng.gamma(3, 1, n).clip(0, 20), 3),
    "readings": lambda rng, n: np.round(rng.normal(6, 1, n).clip(0, 10), 4),
    "seldom cents": lambda rng, n: np.round(rng.gamma(2, 90, n).clip(0, 899)) + 0.25 * (rng.random(n) < 0.08),
    "mostly none": lambda rng, n: np.where(rng.random(n) < 0.8, np.nan, np.round(rng.gamma(2, 90, n).clip(0, 900), 1)),
    "rare cents": lambda rng, n: np.round(rng.gamma(2, 90, n).clip(0, 899)) + 0.25 * (rng.random(n) < 0.03),
}
RANGES = {"ages": (0, 110), "money": (0, 5_000), "stays": (0, 400), "weights": (0, 20), "readings": (0, 10)}
RANGES |= {"seldom cents": (0, 900), "mostly none": (0, 900), "rare cents": (0, 900)}
GROUPS = {name: (name,) for name in KINDS}
GROUPS |= {"four at once": ("ages", "money", "stays", "readings"), "seven at once": tuple(KINDS)[:7]}


@cache
def with_numbers(group: str) -> EventLog:
    """Return 3,000 cases of two variants with these attributes, or 1,500 for several."""
    rng = np.random.default_rng(41)
    number = 3_000 if len(GROUPS[group]) == 1 else 1_500
    log = log_of(group, [("abc" if i % 3 else "ac", BEGIN + np.arange(3 if i % 3 else 2)) for i in range(number)])
    columns = {name: pa.array(KINDS[name](rng, number), from_pandas=True) for name in GROUPS[group]}
    return EventLog(log.events, pa.table({ACTIVITY: log.cases.column(ACTIVITY), **columns}), source=group)


def apart(real: np.ndarray, made: np.ndarray) -> dict[str, float]:
    """Return the distances of numbers from the original's; no numbers count as 0.

    Means and medians are in standard deviations of the original.
    """
    known = [one[~np.isnan(one)] if (~np.isnan(one)).any() else np.zeros(1) for one in (real, made)]
    ends = np.unique(np.concatenate(known))
    shape = [np.searchsorted(np.sort(one), ends, side="right") / len(one) for one in known]
    written = [np.bincount(decimals(one), minlength=6) / len(one) for one in known]
    wide = float(known[0].std())
    return {
        "decimals": float(np.abs(written[0] - written[1]).sum() / 2),
        "mean": abs(float(known[0].mean() - known[1].mean())) / wide,
        "median": abs(float(np.median(known[0]) - np.median(known[1]))) / wide,
        "shape": float(np.abs(shape[0] - shape[1]).max()),
    }


def decimals(values: np.ndarray) -> np.ndarray:
    """Return the number of decimals with which each number is written, up to 5."""
    return np.asarray(np.argmax([*(np.round(values, d) == values for d in range(5)), values == values], axis=0))
