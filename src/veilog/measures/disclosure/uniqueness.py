"""How many cases a few randomly chosen points of their trace single out.

S. N. von Voigt, S. A. Fahrenkrog-Petersen, D. Janssen, A. Koschmider, F. Tschorsch, F. Mannhardt, O. Landsiedel,
M. Weidlich, "Quantifying the re-identification risk of event logs for process mining" (2020): an adversary learns a
number of randomly chosen points (events) of a case's trace; the uniqueness is the share of cases that are then the only
one in the log with these points.

    uniqueness = mean over cases of P(the drawn points match no other case)

The points of a case are drawn without replacement, all of them where the trace has no more. Unlike case disclosure,
which counts each possible background knowledge once, this counts it as often as it occurs. The points here are the
activities; for points with further attributes give the variants of a classifier, ``log.variants_by((key, ...))``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from veilog._typing import IntArray
from veilog.errors import ParameterError
from veilog.logs.eventlog import EventLog
from veilog.logs.variants import Variants
from veilog.measures.disclosure.estimate import Interval, Matcher

Points = Literal["multiset", "sequence"]
_PAIRS = 1 << 20
_Z = 1.959963984540054


@dataclass(frozen=True)
class Uniqueness:
    """The share of unique cases, with a 95 % interval where it rests on random draws."""

    share: float
    interval: Interval | None
    """None: the value is exact, because every trace has no more points than the adversary knows."""
    points: int
    draws: int
    """Draws of points for each case that could be unique."""


def uniqueness(
    log: EventLog | Variants,
    points: int,
    *,
    background: Points = "sequence",
    draws: int = 100,
    seed: int = 0,
) -> Uniqueness:
    """The share of cases that ``points`` random events of their trace single out.

    ``background`` says whether the adversary knows the order of the points. A case that shares its variant with another
    is never unique; for each other the share of ``draws`` that single it out is an unbiased estimate, and the mean over
    all cases has an interval from the draws alone.
    """
    if background not in get_args(Points):
        raise ParameterError("uniqueness-background-unknown", parameter="background", background=background)
    if isinstance(points, bool) or points < 1:
        raise ParameterError("uniqueness-points-too-few", parameter="points", points=points)
    if draws < 2:
        raise ParameterError("uniqueness-draws-too-few", parameter="draws", draws=draws)
    variants = log if isinstance(log, Variants) else log.variants
    if variants.cases == 0:
        raise ParameterError("uniqueness-without-cases", parameter="log")
    matcher = Matcher(variants, ordered=background == "sequence")
    rng = np.random.default_rng(seed)
    total = spread = 0.0
    sampled = False
    for owner in np.flatnonzero((variants.counts == 1) & (variants.lengths > 0)).tolist():
        codes = variants.codes[variants.offsets[owner] : variants.offsets[owner + 1]].astype(np.int64)
        whole = len(codes) <= points
        hits = _singled_out(matcher, _drawn(codes, points, 1 if whole else draws, background, rng), len(variants))
        share = float(hits.mean())
        total += share
        if not whole:
            sampled = True
            # Drawn towards one half a little: no hit in all draws does not prove that there is none.
            likely = (hits.sum() + 0.5) / (draws + 1)
            spread += likely * (1 - likely) / draws
    mean = total / variants.cases
    reach = _Z * math.sqrt(spread) / variants.cases
    interval = (max(0.0, mean - reach), min(1.0, mean + reach)) if sampled else None
    return Uniqueness(mean, interval, points, draws)


def _drawn(codes: IntArray, points: int, draws: int, background: Points, rng: np.random.Generator) -> IntArray:
    """Activities of randomly chosen events, a draw a row."""
    if len(codes) <= points:
        chosen = np.arange(len(codes))[None, :]
    else:
        chosen = np.sort(np.argpartition(rng.random((draws, len(codes))), points, axis=1)[:, :points], axis=1)
    patterns: IntArray = codes[chosen]
    return patterns if background == "sequence" else np.sort(patterns, axis=1)


def _singled_out(matcher: Matcher, patterns: IntArray, variants: int) -> IntArray:
    """Whether only one variant (its own) has the points, for each draw."""
    found = np.zeros(len(patterns), dtype=np.int64)
    everyone = np.arange(variants)
    step = max(1, _PAIRS // variants)
    for start in range(0, len(patterns), step):
        part = patterns[start : start + step]
        which, _ = matcher.pairs(part, everyone)
        found[start : start + step] = np.bincount(which, minlength=len(part))
    return np.asarray(found == 1, dtype=np.int64)
