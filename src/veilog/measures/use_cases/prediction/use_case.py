"""Train on the release, test on the original: next activity, end state, outcome and remaining time.

All prefixes of all held-out cases count. After each the next activity is predicted, the end of the case being one;
after each but the whole case its last activity, and the outcome where one is named; after each but the empty one the
hours that remain. Twice: by a back-off n-gram, and by gradient-boosted trees where scikit-learn is there.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from veilog._typing import FloatArray, IntArray
from veilog.logs.variants import Variants
from veilog.measures.measure import Log
from veilog.measures.use_cases.prediction.ngrams import ORDER, NGram
from veilog.measures.use_cases.prediction.prefixes import PrefixTable, has_times, outcomes, prefixes
from veilog.measures.use_cases.prediction.trees import Trees, available
from veilog.measures.use_cases.use_case import Asked, UseCase, facts_of


class Predictor(Protocol):
    """What has learnt from one log and is asked about prefixes of another one."""

    most: int
    """PrefixTable that it is asked about; of more, so many are drawn."""

    def classes(self, targets: IntArray, rows: IntArray) -> IntArray:
        """Return the classes predicted for these prefixes, from those of the used log's; -1 is none."""

    def amounts(self, targets: FloatArray, rows: IntArray) -> FloatArray:
        """Return the amounts predicted for these prefixes, from those of the used log's; NaN is none."""


@dataclass(frozen=True, eq=False)
class Task:
    """What is to be predicted: for each prefix of the log that is used, and of the one on which it is judged."""

    aspect: str
    targets: IntArray
    truth: IntArray


def predicted(used: Log, judged: Log, asked: Asked) -> dict[str, float | None]:
    """Return how well the cases of one log are predicted from the other: accuracies, and an error in hours."""
    if asked.chief_only:
        return {"next_activity": next_activity(used, judged)}
    timed = has_times(used) and has_times(judged)
    first, second = _both(used, judged, times=timed, by_case=timed or bool(asked.targets))
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
    """Return the accuracy of the n-gram of this order alone; of order 1 it is the majority predictor."""
    first, second = _both(used, judged, times=False, by_case=False)
    return _accuracy(NGram(first, second, order), Task("next_activity", first.following, second.following), second)


def _both(used: Log, judged: Log, *, times: bool, by_case: bool) -> tuple[PrefixTable, PrefixTable]:
    names: set[str] = set()
    for log in (used, judged):
        names.update(log.labels if isinstance(log, Variants) else log.variants.labels)
    labels = {name: number for number, name in enumerate(sorted(names))}
    first, second = (prefixes(log, labels, by_case=by_case, times=times) for log in (used, judged))
    return first, second


def _outcome_tasks(used: Log, judged: Log, first: PrefixTable, second: PrefixTable, asked: Asked) -> list[Task]:
    """Return a task for each attribute that is named; none where one of them is missing from the used log."""
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
