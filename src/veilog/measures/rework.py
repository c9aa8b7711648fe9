"""Rework: cases that repeat an activity, and repetitions that follow at once.

    cases with rework = share of the cases in which some activity happens at least twice
    self-loops        = share of the directly-follows steps from an activity to itself

Both are functions of the variants alone, and linear in their events.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from veilog.errors import ParameterError
from veilog.logs.eventlog import EventLog
from veilog.logs.variants import Variants
from veilog.measures.measure import Pair, our_measure


@dataclass(frozen=True)
class Rework:
    """Shares of both kinds of rework, in the original and in the release."""

    original: float
    """Share of the original's cases in which some activity happens again."""
    released: float
    loops_original: float
    """Share of the original's steps that stay at their activity; 0 without steps."""
    loops_released: float


def rework(original: EventLog | Variants, released: EventLog | Variants) -> Rework:
    """Return the rework of both logs."""
    (first, loops_first), (second, loops_second) = _shares(original, "original"), _shares(released, "released")
    return Rework(first, second, loops_first, loops_second)


def _shares(log: EventLog | Variants, name: str) -> tuple[float, float]:
    variants = log if isinstance(log, Variants) else log.variants
    if variants.cases == 0:
        raise ParameterError("rework-without-cases", parameter=name, name=name)
    owner = np.repeat(np.arange(len(variants)), variants.lengths)
    codes = variants.codes.astype(np.int64)
    kinds = np.sort(owner * max(1, len(variants.labels)) + codes)
    again = np.zeros(len(variants), dtype=bool)
    again[kinds[1:][kinds[1:] == kinds[:-1]] // max(1, len(variants.labels))] = True
    steps = owner[1:] == owner[:-1]
    loops = steps & (codes[1:] == codes[:-1])
    weights = variants.counts[owner[1:]] if len(owner) else variants.counts[:0]
    followed = int(weights[steps].sum())
    return int(variants.counts[again].sum()) / variants.cases, int(weights[loops].sum()) / max(1, followed)


def _measure_rework(pair: Pair) -> Rework:
    return rework(*pair.variants)


REWORK = our_measure("rework", _measure_rework)
