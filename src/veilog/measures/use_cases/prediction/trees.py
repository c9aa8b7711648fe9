"""Gradient-boosted trees on the last activities, the length and the time so far: a second opinion on every target.

They need scikit-learn, the extra ``anomalies``. Of more prefixes than they take those that they learn from, and those
that they are asked about, are drawn with a fixed seed. Of many classes the most frequent ones are learnt.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from veilog._typing import AnyArray, FloatArray, IntArray
from veilog.measures.use_cases.prediction.prefixes import RECENT, PrefixTable

MOST = 10_000
MOST_CLASSES = 30
MOST_CATEGORIES = 250
"""Activities that are told apart as those of the past: the most frequent ones."""
ROUNDS, LEAVES, RATE, SHRINKAGE = 15, 15, 0.15, 1.0
SEED = 1


@cache
def available() -> bool:
    """Return whether scikit-learn is there."""
    try:
        import sklearn.ensemble  # noqa: F401
    except ImportError:
        return False
    return True


class Trees:
    """A predictor that learns from the prefixes of the log that is used."""

    most = MOST

    def __init__(self, used: PrefixTable, judged: PrefixTable) -> None:
        self._used, self._judged = used, judged
        frequency = np.bincount(used.recent[:, 0], weights=used.weight, minlength=used.activities + 2)
        self._place = np.full(used.activities + 2, np.nan)
        common = np.argsort(-frequency, kind="stable")[:MOST_CATEGORIES]
        self._place[common] = np.arange(len(common))
        self._timed = not np.isnan(used.elapsed).all() and not np.isnan(judged.elapsed).all()

    def classes(self, targets: IntArray, rows: IntArray) -> IntArray:
        from sklearn.ensemble import HistGradientBoostingClassifier

        frequency = np.bincount(targets[targets >= 0], weights=self._used.weight[targets >= 0])
        common = np.argsort(-frequency, kind="stable")[:MOST_CLASSES]
        learnt = np.repeat(*self._used.drawn(np.isin(targets, common), MOST))
        if len(np.unique(targets[learnt])) < 2:
            return np.full(len(rows), targets[learnt[0]] if len(learnt) else -1)
        learner = HistGradientBoostingClassifier(max_iter=ROUNDS, **_SETTINGS)
        found: IntArray = self._learnt(learner, targets[learnt], learnt, rows)
        return found

    def amounts(self, targets: FloatArray, rows: IntArray) -> FloatArray:
        from sklearn.ensemble import HistGradientBoostingRegressor

        learnt = np.repeat(*self._used.drawn(~np.isnan(targets), MOST))
        if not len(learnt):
            return np.full(len(rows), np.nan)
        learner = HistGradientBoostingRegressor(loss="absolute_error", max_iter=3 * ROUNDS, **_SETTINGS)
        found: FloatArray = self._learnt(learner, targets[learnt], learnt, rows)
        return found

    def _learnt(self, learner: Any, targets: AnyArray, learnt: IntArray, rows: IntArray) -> AnyArray:
        """Return what the learner predicts. A prefix of many cases is learnt from many times and not once with a
        weight: the smallest leaf counts rows. On one thread: more wait for each other longer than the work takes."""
        from threadpoolctl import threadpool_limits

        with threadpool_limits(1):
            learner.fit(self._features(self._used, learnt), targets)
            found: AnyArray = learner.predict(self._features(self._judged, rows))
        return found

    def _features(self, of: PrefixTable, rows: IntArray) -> FloatArray:
        """Return the last activities (the rarest as unknown), the length, and the hours so far where both have them."""
        columns = [*self._place[of.recent[rows]].T, of.length[rows].astype(np.float64)]
        return np.column_stack([*columns, of.elapsed[rows]] if self._timed else columns)


_SETTINGS = {
    "max_leaf_nodes": LEAVES,
    "learning_rate": RATE,
    "l2_regularization": SHRINKAGE,
    "categorical_features": list(range(RECENT)),
    "early_stopping": False,
    "random_state": SEED,
}
