"""Prediction: learn from the used log, judge on original cases that it never saw."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from veilog._typing import AnyArray, BoolArray, FloatArray, Int32Array, IntArray
from veilog.errors import ParameterError, meant
from veilog.logs.eventlog import TIMESTAMP, EventLog
from veilog.logs.variants import Variants
from veilog.measures.durations import case_spans, case_times, timed
from veilog.measures.measure import Log
from veilog.measures.persons import case_order
from veilog.measures.use_cases.use_case import UseCase, UseCaseOptions, facts_of

# All prefixes of the cases of a log, in columns: the facts known of each, and the facts yet to come.

RECENT = 5
"""Number of last activities of a prefix that a predictor sees."""
MOST_OUTCOMES = 50
SEED = 1
_HOUR = 3_600_000_000


@dataclass(frozen=True, eq=False)
class PrefixTable:
    """A row for each prefix, with the empty one and the whole case.

    Equal cases share a row where times do not matter. Activities are numbers below ``activities``.
    """

    activities: int
    recent: Int32Array
    """Last activities, one column each, the last first; ``activities + 1`` before the first event."""
    length: IntArray
    weight: IntArray
    """Number of cases with this prefix."""
    following: IntArray
    """Next activity; ``activities`` where the case ends."""
    end: IntArray
    """Last activity of the case; -1 where it has none."""
    case: IntArray
    """Row of the case, or of the variant."""
    elapsed: FloatArray
    """Hours since the first event of the case; NaN where unknown."""
    remaining: FloatArray
    """Hours until the last event of the case."""

    def __len__(self) -> int:
        return len(self.weight)

    def unfinished_only(self, classes: IntArray) -> IntArray:
        """Return these classes of the prefixes, and -1 for those that are the whole case."""
        return np.where(self.following < self.activities, classes, -1)

    def drawn(self, wanted: BoolArray, most: int) -> tuple[IntArray, IntArray]:
        """Return the wanted rows and their weights, a random draw if they exceed ``most``."""
        rows = np.flatnonzero(wanted)
        weight = self.weight[rows]
        if weight.sum() > most:
            generator = np.random.default_rng(SEED)
            weight = generator.multivariate_hypergeometric(weight, most, method="marginals")
        return rows[weight > 0], weight[weight > 0]


def prefixes(log: Log, labels: Mapping[str, int], *, by_case: bool, times: bool) -> PrefixTable:
    """Return the prefixes of a log, with activities numbered by these labels.

    They are those of each case by itself, or of each variant once. Only cases have times.
    """
    if by_case and isinstance(log, EventLog):
        names, numbers = log.activity_codes
        offsets, counts, order = log.offsets, np.ones(log.number_of_cases, dtype=np.int64), case_order(log)
    else:
        variants = log if isinstance(log, Variants) else log.variants
        names, numbers = list(variants.labels), variants.codes.astype(np.int64)
        offsets, counts, order = variants.offsets, variants.counts, np.arange(len(variants))
    codes = np.array([labels.get(name, -1) for name in names], dtype=np.int64)[numbers]  # a part's log keeps all names
    lengths = np.diff(offsets)
    sizes = lengths[order] + 1
    case = np.repeat(order, sizes)
    length = np.arange(len(case)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    event = offsets[case] + length
    padded = np.append(codes, -1)
    recent = np.full((len(case), RECENT), len(labels) + 1, dtype=np.int32)
    for back in range(RECENT):
        inside = length > back
        recent[inside, back] = padded[event[inside] - back - 1]
    ended = length == lengths[case]
    last = np.where(lengths > 0, padded[offsets[1:] - 1], -1)
    elapsed, remaining = _clock(log, case, event, length) if times else (np.full(len(case), np.nan),) * 2
    following = np.where(ended, len(labels), padded[event])
    return PrefixTable(len(labels), recent, length, counts[case], following, last[case], case, elapsed, remaining)


def _clock(log: Log, case: IntArray, event: IntArray, length: IntArray) -> tuple[FloatArray, FloatArray]:
    assert isinstance(log, EventLog)
    micros, known = case_times(log)
    first, last = np.zeros((2, log.number_of_cases), dtype=np.int64)
    cases, first_known, last_known = case_spans(log)
    first[cases], last[cases] = first_known, last_known
    elapsed, remaining = np.full(len(case), np.nan), np.full(len(case), np.nan)
    rows = np.flatnonzero(length)
    rows = rows[known[event[rows] - 1]]
    now = micros[event[rows] - 1]
    elapsed[rows] = (now - first[case[rows]]) / _HOUR
    remaining[rows] = (last[case[rows]] - now) / _HOUR
    return elapsed, remaining


def has_times(log: Log) -> bool:
    """Return True if the log has times that mean something."""
    try:
        events = timed(log, "").events
        return bool(events.column(TIMESTAMP).null_count < len(events))
    except ParameterError:
        return False


def outcomes(used: EventLog, judged: EventLog, attribute: str) -> tuple[IntArray, IntArray] | None:
    """Return the values of an attribute as numbers, case by case, -1 for none.

    It is None where the used log does not have the attribute. For an attribute of events the last known value counts.
    """
    known = _values(judged, attribute)
    if known is None:
        names = judged.cases.column_names
        raise ParameterError(
            "prediction-attribute-missing",
            parameter="targets",
            attribute=attribute,
            meant=meant(attribute, names),
            names=", ".join(names),
        )
    own = _values(used, attribute)
    if own is None:
        return None
    coding = {value: number for number, value in enumerate(sorted({*own, *known} - {None}, key=str))}
    if len(coding) > MOST_OUTCOMES:
        raise ParameterError(
            "prediction-outcomes-too-many",
            parameter="targets",
            attribute=attribute,
            number=len(coding),
            most_outcomes=MOST_OUTCOMES,
        )
    first, second = (np.array([coding.get(value, -1) for value in values], dtype=np.int64) for values in (own, known))
    return first, second


def _values(log: EventLog, attribute: str) -> Sequence[str | None] | None:
    if attribute in log.cases.column_names:
        found: list[str | None] = log.cases.column(attribute).cast(pa.string()).to_pylist()
        return found
    if attribute not in log.events.column_names:
        return None
    column = log.events.column(attribute)
    rows = np.flatnonzero(column.is_valid().to_numpy())
    owner = np.repeat(np.arange(log.number_of_cases), np.diff(log.offsets))
    last: list[str | None] = [None] * log.number_of_cases
    for case, value in zip(
        owner[rows].tolist(), column.take(pa.array(rows)).cast(pa.string()).to_pylist(), strict=True
    ):
        last[case] = value
    return last


# The back-off n-gram: the most frequent value after the last activities, as many as were seen often enough.
#
# The last activities of a prefix are its context, with a mark if it begins among them. The longest context with three
# observations decides. A class takes the most frequent value there (of equally frequent ones the first in order), an
# amount the median. With no context at all it is the majority predictor.

A = TypeVar("A", IntArray, FloatArray)

ORDER = 1 + RECENT
"""Number of activities in an n-gram: the predicted one and those before it."""
FEWEST = 3
"""Fewest observations of a context; with fewer, a shorter context decides."""


class NGram:
    """Predictor that knows the prefixes of the used log."""

    most = 1 << 62

    def __init__(self, used: PrefixTable, judged: PrefixTable, order: int = ORDER) -> None:
        recent = np.concatenate([used.recent, judged.recent]).astype(np.int64)
        contexts = [np.zeros(len(recent), dtype=np.int64)]
        for back in range(order - 1):
            keys = contexts[-1] * (used.activities + 2) + recent[:, back]
            contexts.append(np.unique(keys, return_inverse=True)[1].astype(np.int64))
        self._contexts = [(context[: len(used)], context[len(used) :]) for context in contexts]
        self._weight = used.weight

    def classes(self, targets: IntArray, rows: IntArray) -> IntArray:
        return self._backed_off(
            _most_frequent_targets, targets, targets >= 0, np.full(len(rows), -1, dtype=np.int64), rows
        )

    def amounts(self, targets: FloatArray, rows: IntArray) -> FloatArray:
        return self._backed_off(_medians, targets, ~np.isnan(targets), np.full(len(rows), np.nan), rows)

    def _backed_off(
        self, usual: Callable[..., tuple[A, IntArray]], targets: A, learnt: BoolArray, found: A, rows: IntArray
    ) -> A:
        """Fill in the usual value in the longest context of each row seen often enough."""
        for shortest_first, (used, judged) in enumerate(self._contexts):
            asked, size = judged[rows], 1 + max(used.max(initial=0), judged.max(initial=0))
            best, seen = usual(used[learnt], targets[learnt], self._weight[learnt], size)
            known = seen[asked] >= (FEWEST if shortest_first else 1)
            found[known] = best[asked[known]]
        return found


def _most_frequent_targets(
    context: IntArray, target: IntArray, weight: IntArray, size: int
) -> tuple[IntArray, IntArray]:
    """Return the most frequent target and the number of observations of every context."""
    kinds = int(target.max(initial=0)) + 1
    keys, place = np.unique(context * kinds + target, return_inverse=True)
    counts = np.bincount(place, weights=weight, minlength=len(keys))
    order = np.lexsort((-keys, counts))
    best = np.full(size, -1, dtype=np.int64)
    best[keys[order] // kinds] = keys[order] % kinds  # what is assigned last to a context has its largest count
    return best, _totals(context, weight, size)


def _medians(context: IntArray, amount: FloatArray, weight: IntArray, size: int) -> tuple[FloatArray, IntArray]:
    """Return the lower median and the number of observations of every context."""
    seen = _totals(context, weight, size)
    order = np.lexsort((amount, context))
    there = np.flatnonzero(seen)
    half = np.cumsum(seen[there]) - seen[there] + (seen[there] + 1) // 2
    middle = np.full(size, np.nan)
    middle[there] = amount[order][np.searchsorted(np.cumsum(weight[order]), half)]
    return middle, seen


def _totals(context: IntArray, weight: IntArray, size: int) -> IntArray:
    return np.bincount(context, weights=weight, minlength=size).astype(np.int64)


# Gradient-boosted trees on the last activities, the length and the time so far: a second opinion on every target.
#
# They need scikit-learn, the extra ``anomalies``. If there are too many prefixes to learn from or to predict, a fixed
# seed draws some of them. If there are too many classes, they learn the most frequent ones.

MOST = 10_000
MOST_CLASSES = 30
MOST_CATEGORIES = 250
"""Largest number of past activities to distinguish: the most frequent ones."""
ROUNDS, LEAVES, RATE, SHRINKAGE = 15, 15, 0.15, 1.0


@cache
def available() -> bool:
    """Return True if scikit-learn is installed."""
    try:
        import sklearn.ensemble  # noqa: F401
    except ImportError:
        return False
    return True


class Trees:
    """Predictor that learns from the prefixes of the used log."""

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
        """Return the learner's predictions.

        A prefix of many cases is learnt many times and not once with a weight, because the smallest leaf counts rows.
        The learner runs on one thread: more would wait for each other longer than the work takes.
        """
        from threadpoolctl import threadpool_limits

        with threadpool_limits(1):
            learner.fit(self._features(self._used, learnt), targets)
            found: AnyArray = learner.predict(self._features(self._judged, rows))
        return found

    def _features(self, of: PrefixTable, rows: IntArray) -> FloatArray:
        """Return the last activities (the rarest as unknown), the length and the hours.

        The hours so far are left out where one of the logs does not have them.
        """
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


# Train on the release, test on the original: next activity, end state, outcome and remaining time.
#
# All prefixes of all held-out cases count. After each, the next activity is predicted, the end of the case being one.
# After each but the whole case, it is the last activity, and the outcome if one is named. After each but the empty one,
# it is the hours that remain. A back-off n-gram predicts them. If scikit-learn is installed, gradient-boosted trees do,
# too.


class Predictor(Protocol):
    """Predictor that has learnt from one log and predicts for prefixes of another."""

    most: int
    """Largest number of prefixes to predict for; of more, this many are drawn."""

    def classes(self, targets: IntArray, rows: IntArray) -> IntArray:
        """Return each prefix's predicted class, from those of the used log; -1 for none."""

    def amounts(self, targets: FloatArray, rows: IntArray) -> FloatArray:
        """Return each prefix's predicted amount, from those of the used log; NaN for none."""


@dataclass(frozen=True, eq=False)
class Task:
    """One target for each prefix of the used log and of the judged log."""

    aspect: str
    targets: IntArray
    truth: IntArray


def predicted(used: Log, judged: Log, asked: UseCaseOptions) -> dict[str, float | None]:
    """Return the accuracies of predictions of one log from the other, and an error.

    The error is that of the remaining time, in hours.
    """
    if asked.chief_only:
        return {"next_activity": next_activity(used, judged)}
    timed = has_times(used) and has_times(judged)
    first, second = _prefix_tables(used, judged, times=timed, by_case=timed or bool(asked.targets))
    tasks = [
        Task("next_activity", first.following, second.following),
        Task("end_state", first.unfinished_only(first.end), second.unfinished_only(second.end)),
        *_outcome_tasks(used, judged, first, second, asked),
    ]
    predictors: dict[str, Predictor] = {"": NGram(first, second)}
    if available():
        predictors["_trees"] = Trees(first, second)
    found: dict[str, float | None] = {}
    for suffix, predictor in predictors.items():
        for name in dict.fromkeys(task.aspect for task in tasks):
            found[name + suffix] = _mean([_accuracy(predictor, task, second) for task in tasks if task.aspect == name])
        found["remaining_time" + suffix] = _error(predictor, first.remaining, second) if timed else None
    return found


def next_activity(used: Log, judged: Log, order: int = ORDER) -> float | None:
    """Return the accuracy of the n-gram of this order alone; order 1 is the majority."""
    first, second = _prefix_tables(used, judged, times=False, by_case=False)
    return _accuracy(NGram(first, second, order), Task("next_activity", first.following, second.following), second)


def _prefix_tables(used: Log, judged: Log, *, times: bool, by_case: bool) -> tuple[PrefixTable, PrefixTable]:
    names: set[str] = set()
    for log in (used, judged):
        names.update(log.labels if isinstance(log, Variants) else log.variants.labels)
    labels = {name: number for number, name in enumerate(sorted(names))}
    first, second = (prefixes(log, labels, by_case=by_case, times=times) for log in (used, judged))
    return first, second


def _outcome_tasks(
    used: Log, judged: Log, first: PrefixTable, second: PrefixTable, asked: UseCaseOptions
) -> list[Task]:
    """Return a task for each named attribute; none if the used log lacks one of them."""
    if isinstance(used, Variants) or isinstance(judged, Variants):
        return []
    found = []
    for attribute in asked.targets:
        values = outcomes(used, judged, attribute)
        if values is None:
            return []
        targets = (one.unfinished_only(own[one.case]) for one, own in zip((first, second), values, strict=True))
        found.append(Task("outcome", *targets))
    return found


def _accuracy(predictor: Predictor, task: Task, judged: PrefixTable) -> float | None:
    rows, weight = judged.drawn(task.truth >= 0, predictor.most)
    if not len(rows):
        return None
    return float(np.average(predictor.classes(task.targets, rows) == task.truth[rows], weights=weight))


def _error(predictor: Predictor, targets: FloatArray, judged: PrefixTable) -> float | None:
    rows, weight = judged.drawn(~np.isnan(judged.remaining), predictor.most)
    found = predictor.amounts(targets, rows)
    if not len(rows) or np.isnan(found).any():
        return None
    return float(np.average(np.abs(found - judged.remaining[rows]), weights=weight))


def _mean(numbers: list[float | None]) -> float | None:
    known = [number for number in numbers if number is not None]
    return statistics.fmean(known) if known else None


PREDICTION = UseCase(score=predicted, **facts_of("prediction"))
