"""Returning persons: who comes back, how soon, and with which kind of case.

A case *returns* where the next case of the same person starts within some days of its last event (30, as readmissions
are reported). A column of the original names the person of each case, and the release needs it, too. Halves of the
original have different people. Four distances:

- *return_rate*: the difference between the shares of cases that return;
- *return_rate_by_kind*: the mean of the same over kinds of cases, weighted by their cases in the original. Kinds are
  clusters of the original's cases by their activities; those with fewer than ``FEWEST`` cases do not count;
- *cases_per_person*: half the sum of the differences of the shares of persons with each number of cases;
- *next_kind*: the same of the kinds of next cases, the mean over kinds of cases.

Cases of a person are in the order of their starts, and those that start together or have no times as in their file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from veilog._typing import BoolArray, FloatArray, IntArray
from veilog.errors import ParameterError
from veilog.logs.eventlog import EventLog
from veilog.logs.variants import Repeated, Sequences
from veilog.measures.durations import case_times
from veilog.measures.measure import Log, Pair
from veilog.measures.persons import has_column, numbered
from veilog.measures.use_cases.sides import SEED
from veilog.measures.use_cases.use_case import UseCase, UseCaseOptions, facts_of
from veilog.methods._events.cells import CellRule, Kinds

KINDS = 8
FEWEST = 30
_DAY = 86_400_000_000


def _scores(used: Log, judged: Log, asked: UseCaseOptions) -> Mapping[str, float | None]:
    original, released = Pair(judged, used).whole
    if asked.column is None:
        raise ParameterError("returns-persons-unknown", parameter="person")
    if not has_column(released, asked.column):
        raise ParameterError("returns-without-persons", parameter="released", name=asked.column)
    labels = tuple(original.activity_codes[0])
    rule = CellRule.of_number(Kinds.of(_cases_of(original, labels)), KINDS, np.random.default_rng(SEED))
    a, b = (_Visits.of(log, asked.column, rule, labels, asked.return_days) for log in (released, original))
    size = 1 + max(int(a.persons.max()), int(b.persons.max()))
    by_kind = np.bincount(b.kinds, minlength=rule.number)
    enough = np.flatnonzero((by_kind >= FEWEST) & (np.bincount(a.kinds, minlength=rule.number) > 0))
    rates = None if a.soon is None or b.soon is None else (a.rates(rule.number), b.rates(rule.number))
    return {
        "return_rate": None if a.soon is None or b.soon is None else abs(float(a.soon.mean() - b.soon.mean())),
        "return_rate_by_kind": None if rates is None else _mean(np.abs(rates[0] - rates[1]), by_kind, enough),
        "cases_per_person": _distance(*(np.bincount(one.persons, minlength=size) for one in (a, b))),
        "next_kind": _next_distance(a.following(rule.number), b.following(rule.number)),
    }


@dataclass(frozen=True, eq=False)
class _Visits:
    """Cases of a log, those of a person one after the other."""

    kinds: IntArray
    followed: IntArray
    """Places of the cases that another case of the person follows."""
    persons: IntArray
    """Number of cases of each person."""
    soon: BoolArray | None
    """True for the cases that return; None where no times are known."""

    @staticmethod
    def of(log: EventLog, column: str, rule: CellRule, labels: tuple[str, ...], days: float) -> _Visits:
        """Return the cases of a log."""
        owner = numbered(log, column)
        times, known = case_times(log)
        going = np.flatnonzero(np.diff(log.offsets))
        starts, ends = np.zeros((2, len(owner)), dtype=np.int64)
        starts[going], ends[going] = times[log.offsets[going]], times[log.offsets[going + 1] - 1]
        order = np.lexsort((starts, owner))
        followed = np.flatnonzero(np.diff(owner[order]) == 0)
        soon = np.zeros(len(owner), dtype=np.bool_)
        soon[followed] = starts[order[followed + 1]] - ends[order[followed]] <= days * _DAY
        all_cases = _cases_of(log, labels)
        kinds = rule.of_cases(all_cases.distinct)[all_cases.owner]
        return _Visits(
            kinds[order], followed, np.bincount(owner), soon if known.any() and not log.artificial_times else None
        )

    def rates(self, kinds: int) -> FloatArray:
        """Return the share of cases of each kind that return."""
        assert self.soon is not None
        cases = np.bincount(self.kinds, minlength=kinds)
        return np.asarray(np.bincount(self.kinds[self.soon], minlength=kinds) / np.maximum(cases, 1))

    def following(self, kinds: int) -> IntArray:
        """Return how often each kind follows each kind."""
        pairs = self.kinds[self.followed] * kinds + self.kinds[self.followed + 1]
        return np.bincount(pairs, minlength=kinds**2).reshape(kinds, kinds)


def _cases_of(log: EventLog, labels: tuple[str, ...]) -> Repeated:
    """Return a log's cases, with activities as places among these labels (else -1)."""
    own, codes = log.activity_codes
    place = {label: number for number, label in enumerate(labels)}
    recode = np.array([place.get(label, -1) for label in own] + [-1], dtype=np.int64)
    cases = Sequences(labels, recode[codes].astype(np.int32), log.offsets)
    return Repeated(cases, np.arange(len(log.offsets) - 1))


def _mean(apart: FloatArray, weights: IntArray, rows: IntArray) -> float | None:
    return float(np.average(apart[rows], weights=weights[rows])) if len(rows) else None


def _distance(a: IntArray, b: IntArray) -> float:
    """Return half the sum of the differences of shares."""
    return float(np.abs(a / max(a.sum(), 1) - b / max(b.sum(), 1)).sum() / 2)


def _next_distance(a: IntArray, b: IntArray) -> float | None:
    """Return the mean difference over rows with enough cases, 1 for a row of one log."""
    cases = b.sum(axis=1)
    rows = np.flatnonzero(cases >= FEWEST)
    found = np.array([_distance(x, y) if x.any() else 1.0 for x, y in zip(a, b, strict=True)])
    return _mean(found, cases, rows)


RETURNS = UseCase(score=_scores, **facts_of("returns"))
