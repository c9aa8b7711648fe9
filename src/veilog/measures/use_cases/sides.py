"""Logs that judge a release: parts of the original, and a list of its variants.

They are drawn with a fixed seed, from an order of the cases that does not depend on that of the rows. So the same logs
give the same numbers. If the log identifies persons, no person has cases in two parts.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from veilog._typing import IntArray
from veilog.errors import ParameterError
from veilog.logs.eventlog import EventLog
from veilog.logs.variants import Variants
from veilog.measures.measure import Log, Needs, Pair
from veilog.measures.persons import case_order, column_of, split_persons
from veilog.privacy.persons import columns_of_persons

SEED = 1
TRAINING = 0.7
"""Share of the original's cases that may be seen where the other cases judge."""


@dataclass(frozen=True, eq=False)
class Splits:
    """A pair of logs, and the parts of the original that judge the release."""

    pair: Pair
    person: str | None = None
    """Column that names the person of a case; parts are then parts of the people."""

    @staticmethod
    def of_people(pair: Pair, person: str | bool) -> Splits:
        """Return the splits of a pair by this column, by the likeliest one, or by cases."""
        if isinstance(person, str) and isinstance(pair.original, EventLog):
            columns_of_persons(pair.original, person, "person")  # a name that is none is an error of who gave it
        return Splits(pair, column_of(pair.original, person))

    def of(self, side: str, needs: Needs | Literal["either"], *, held_out: bool, draw: int = 0) -> tuple[Log, Log]:
        """Return the log to use and the log to judge it on, for one of the four sides.

        ``draw`` numbers the halvings of another sample.
        """
        logs = (self.pair.original, self.pair.released)
        whole = needs == "whole logs" or (needs == "either" and not any(isinstance(log, Variants) for log in logs))
        original, released = self.pair.whole if whole else self.pair.variants
        if _cases(original) < 2 or _cases(released) < 1:
            if _cases(original) < 2:
                code = "original-of-one-case" if _cases(original) else "original-without-cases"
                raise ParameterError(code, parameter="original")
            raise ParameterError("released-without-cases", parameter="released")
        # Variants do not identify persons: with persons the log is split, and its variants are taken then.
        from_log = whole or (self.person is not None and not isinstance(self.pair.original, Variants))
        found = self._parts(side, released, held_out=held_out, draw=draw, from_log=from_log)
        used, judged = (log if whole or isinstance(log, Variants) else log.variants for log in found)
        return (_list_variants(used) if side == "unprotected" else used), judged

    def _parts(self, side: str, released: Log, *, held_out: bool, draw: int, from_log: bool) -> tuple[Log, Log]:
        original = self.pair.original if from_log else self.pair.variants[0]
        if held_out:
            seen, unseen = self._split_log if from_log else self._split_variants
        else:
            seen = unseen = original
        if side == "value":
            return released, unseen
        if side in ("original", "unprotected"):
            return seen, unseen
        first, second = split(seen, 0.5, SEED + draw, person=self.person)
        return first, unseen if held_out else second

    @cached_property
    def _split_log(self) -> tuple[Log, Log]:
        return split(self.pair.original, TRAINING, person=self.person)

    @cached_property
    def _split_variants(self) -> tuple[Log, Log]:
        return split(self.pair.variants[0], TRAINING)


def split(log: Log, share: float, seed: int = SEED, *, person: str | None = None) -> tuple[Log, Log]:
    """Return a random part of the cases with this share of them, and the other cases.

    With the column of a ``person``, all cases of a person of a log stay in one part, as near to this share as can be.
    """
    cases = _cases(log)
    size = min(max(1, round(share * cases)), cases - 1)
    generator = np.random.default_rng(seed)
    if isinstance(log, Variants):
        taken = generator.multivariate_hypergeometric(log.counts, size, method="marginals")
        return log.with_counts(taken), log.with_counts(log.counts - taken)
    if person is not None:
        first, second = split_persons(log, person, size, generator)
        return log.only(first), log.only(second)
    mixed = generator.permutation(case_order(log))
    return log.only(np.sort(mixed[:size])), log.only(np.sort(mixed[size:]))


def _list_variants(log: Log) -> Log:
    """Return every variant once; a whole log keeps one case of each."""
    if isinstance(log, Variants):
        return log.with_counts(np.ones_like(log.counts))
    order = np.random.default_rng(SEED).permutation(case_order(log))
    return log.only(np.sort(_first_of_each_variant(log, order)))


def _first_of_each_variant(log: EventLog, order: IntArray) -> IntArray:
    numbers = np.ascontiguousarray(log.activity_codes[1], dtype=np.int32)
    first: dict[bytes, int] = {}
    for case in order.tolist():
        first.setdefault(numbers[log.offsets[case] : log.offsets[case + 1]].tobytes(), case)
    return np.fromiter(first.values(), dtype=np.int64, count=len(first))


def _cases(log: Log) -> int:
    return log.cases if isinstance(log, Variants) else log.number_of_cases
