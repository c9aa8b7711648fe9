"""Share of released cases that look normal to a detector trained on the original.

SaCoFa's authors measure noise this way (Fahrenkrog-Petersen, Kabierski, van der Aa, Weidlich, "Semantics-aware
mechanisms for control-flow anonymization in process mining", evaluation). An isolation forest (Liu, Ting, Zhou 2008) is
trained on the original's cases. The features of a case are the activities and the directly-follows pairs that occur in
it, 0 or 1 each. The share counts the released cases that the forest does not call anomalous, at its own threshold (no
contamination is assumed).

Only the original has features. An activity or a pair of the release alone is none, because no tree could split on it.
So a trace of new activities looks like an empty one. Read the share with the directly-follows mass that moved.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from veilog._typing import IntArray
from veilog.errors import MissingExtraError, ParameterError
from veilog.logs.eventlog import EventLog
from veilog.logs.variants import Variants
from veilog.measures.durations import within_cases
from veilog.measures.measure import our_measure
from veilog.messages import Message

Matrix = npt.NDArray[np.float32]

_MOST_CASES = 50_000
"""Largest number of training cases, drawn at random; a tree takes only 256."""
_CELLS = 1 << 27
"""Largest number of cells in the matrix of cases and features."""


@dataclass(frozen=True)
class Normality:
    """Shares of cases that look normal, in the release and in the original itself."""

    released: float
    original: float
    features: int


def normal_share(
    original: EventLog | Variants, released: EventLog | Variants, *, trees: int = 100, seed: int = 0
) -> Normality:
    """Return the share of released cases that look normal to an isolation forest.

    The forest is trained on the original. The result is deterministic for a seed and independent of the order of rows.
    """
    try:
        from sklearn.ensemble import IsolationForest
    except ImportError as error:
        raise MissingExtraError(Message("finding-anomalies"), extra="anomalies") from error
    first = original if isinstance(original, Variants) else original.variants
    second = released if isinstance(released, Variants) else released.variants
    for variants, name in ((first, "original"), (second, "released")):
        if variants.cases == 0:
            raise ParameterError("anomalies-log-without-cases", parameter=name, name=name)
    rng = np.random.default_rng(seed)
    known = _Features(first)
    if known.count == 0:
        raise ParameterError("anomalies-without-events", parameter="original")
    chosen = np.repeat(np.arange(len(first)), first.counts) if first.cases <= _MOST_CASES else _draw(first, rng)
    if (len(chosen) + len(second)) * known.count > _CELLS:
        raise ParameterError("anomalies-features-too-many", count=known.count)
    table = known.describe(first)
    forest = IsolationForest(n_estimators=trees, random_state=seed)
    forest.fit(table[chosen])
    normal = forest.predict(known.describe(second)) > 0
    usual = forest.predict(table) > 0
    return Normality(
        released=float(second.counts[normal].sum() / second.cases),
        original=float(first.counts[usual].sum() / first.cases),
        features=known.count,
    )


def _draw(variants: Variants, rng: np.random.Generator) -> IntArray:
    chosen: IntArray = rng.choice(len(variants), size=_MOST_CASES, p=variants.counts / variants.cases)
    return chosen


class _Features:
    """Activities and directly-follows pairs of a log, as columns."""

    def __init__(self, variants: Variants) -> None:
        self._labels = {label: i for i, label in enumerate(variants.labels)}
        codes = variants.codes.astype(np.int64)
        self._size = len(variants.labels)
        keys, inside = self._pairs(codes, variants.offsets)
        self._keys = np.unique(keys[inside])
        self.count = self._size + len(self._keys)

    def _pairs(self, codes: IntArray, offsets: IntArray) -> tuple[IntArray, npt.NDArray[np.bool_]]:
        inside = within_cases(offsets, len(codes)) & (codes[:-1] >= 0) & (codes[1:] >= 0)
        return codes[:-1] * self._size + codes[1:], inside

    def describe(self, variants: Variants) -> Matrix:
        """Return a row of zeros and ones for each variant."""
        own = np.array([self._labels.get(label, -1) for label in variants.labels], dtype=np.int64)
        codes = own[variants.codes] if len(variants.codes) else np.zeros(0, dtype=np.int64)
        owner = np.repeat(np.arange(len(variants)), variants.lengths)
        out = np.zeros((len(variants), self.count), dtype=np.float32)
        present = codes >= 0
        out[owner[present], codes[present]] = 1.0
        keys, inside = self._pairs(codes, variants.offsets)
        keys, rows = keys[inside], owner[: len(inside)][inside]
        found = np.isin(keys, self._keys)
        out[rows[found], self._size + np.searchsorted(self._keys, keys[found])] = 1.0
        return out


NORMAL_SHARE = our_measure("normal_share", lambda pair: normal_share(*pair.variants).released)
