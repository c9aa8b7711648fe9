"""Verdicts: how far a release is from its original, for control flow, times and attributes each by itself.

Every aspect has an error from 0 (as in the original) on, and the same steps lead from it to a grade:

- *control flow*: 1 less the relative log similarity;
- *times*: the larger of two errors of how long cases last. One is the earth mover's distance between the durations of
  both logs, over that between the original's and its median alone (its mean absolute deviation from the median): at 1
  the release says no more of durations than a single typical one. The other is how far the mean is off, over the larger
  of both means;
- *attributes*: 1 less the likeness (the total variation or Kolmogorov-Smirnov complement) of the distribution of the
  released attribute that is least like the original's.

An aspect that the release does not have is not judged. The grade of a release is its worst.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from veilog._plain import ToJson
from veilog.errors import VeilogError
from veilog.logs.variants import Variants
from veilog.measures.measure import Pair

Aspect = Literal["control_flow", "times", "attributes"]
Fidelity = Literal["close", "usable", "rough", "noise"]

STEPS: Mapping[Fidelity, float] = {"close": 0.15, "usable": 0.3, "rough": 0.5, "noise": np.inf}
"""Up to which error an aspect has which grade."""


@dataclass(frozen=True)
class Verdict(ToJson):
    """The grade of one aspect, and the error that it follows from."""

    grade: Fidelity
    error: float
    of: str = ""
    """The attribute whose error it is."""

    @staticmethod
    def by(error: float, of: str = "") -> Verdict:
        """Return the verdict that follows from an error."""
        return Verdict(next(grade for grade, most in STEPS.items() if error <= most + 1e-9), round(error, 4), of)


def judged(pair: Pair, similarity: float | None) -> dict[Aspect, Verdict]:
    """Return the verdicts on the aspects that a release has; ``similarity`` is the relative log similarity, or the
    lower end of where it lies."""
    if not all(log.cases for log in pair.variants):
        return {}
    found: dict[Aspect, Verdict] = {} if similarity is None else {"control_flow": Verdict.by(1 - similarity)}
    times = _of_times(pair)
    attributes = _of_attributes(pair)
    found |= {} if times is None else {"times": times}
    return found | ({} if attributes is None else {"attributes": attributes})


def worst_of(verdicts: Mapping[Aspect, Verdict]) -> Fidelity | None:
    """Return the worst grade; None where nothing was judged."""
    order = get_args(Fidelity)
    return max((verdict.grade for verdict in verdicts.values()), key=order.index, default=None)


def _of_times(pair: Pair) -> Verdict | None:
    from veilog.measures.durations import emd, spans, timed  # and pyarrow with it

    try:
        original, released = pair.whole
        found = [spans(timed(log, "log")) for log in (original, released)]
    except VeilogError:  # it has no times, or the original has none
        return None
    old, new = (np.sort(each.last - each.first) for each in found)
    moved, spread = emd(old, new), float(np.abs(old - np.median(old)).mean())
    means = float(old.mean()), float(new.mean())
    off = 0.0 if means[0] == means[1] else abs(means[0] - means[1]) / max(means)
    return Verdict.by(max(off, moved / spread if spread else float(moved > 0)))


def _of_attributes(pair: Pair) -> Verdict | None:
    from veilog.measures.persons import column_of
    from veilog.measures.use_cases.attributes import marginals, not_kept

    if any(isinstance(log, Variants) for log in (pair.original, pair.released)):
        return None
    original, released = pair.whole
    try:
        person = column_of(original, pair.person)
        likeness = marginals(released, original, person)
        lacking = not_kept(released, original, person)
    except VeilogError:  # the original has none to compare
        return None
    kept = {name: value for name, value in likeness.items() if name not in lacking}
    if not kept:
        return None
    name = min(kept, key=lambda each: (kept[each], each))
    return Verdict.by(1 - kept[name], name)
