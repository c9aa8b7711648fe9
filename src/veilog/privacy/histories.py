"""Persons with all their cases, as query functions see them, and their exact sums.

A person's *history* is all its cases in the order of their starts. Ties and cases without a start are in the order of
the log. A function sees integers against public lists, as with cases (:mod:`veilog.privacy.cases`): the kind of each
case and its first and last time. The contribution of a person is bounded as that of a case is, whatever the number of
its cases. So no cases are drawn, and a person with many cases counts with all of them, each for less.

Cases of a person may lie in several pieces of a log. The facts of a case are found where its piece is, and come here as
three integers; histories are made in this process.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from veilog.privacy.case_functions import bins_of, triples_of
from veilog.privacy.cases import UNKNOWN_TIME, Cases, RawCases, find_in_piece
from veilog.privacy.contributions import LARGEST_VALUE, contributions
from veilog.privacy.domain import Domain
from veilog.privacy.unit import PersonCases

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Histories:
    """Persons; ``offsets`` delimit the cases of each, in the order of their starts."""

    kinds: IntArray
    """Kind of each case; -1 for none."""
    starts: IntArray
    """Microseconds since 1970 UTC, or ``UNKNOWN_TIME``."""
    ends: IntArray
    offsets: IntArray

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> IntArray:
        """Number of cases of each person."""
        return np.diff(self.offsets)

    @cached_property
    def owners(self) -> IntArray:
        """Person of each case."""
        return np.repeat(np.arange(len(self)), self.lengths)

    @cached_property
    def followed(self) -> IntArray:
        """Cases that another one of their person follows: the next case."""
        return np.flatnonzero(np.diff(self.owners) == 0)

    def take(self, rows: IntArray) -> Histories:
        """Return the persons of these rows, in this order."""
        lengths = self.lengths[rows]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        cases = np.repeat(self.offsets[rows] - offsets[:-1], lengths) + np.arange(offsets[-1])
        return Histories(self.kinds[cases], self.starts[cases], self.ends[cases], offsets)


HistoryFeatures = Callable[[Histories], tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike]]
"""Function of each person, by itself, to a vector of integers: (rows, columns, values), equal places added up."""


class KindRule(NamedTuple):
    """Public rule that gives each case a kind, by itself."""

    of: Callable[[Cases], IntArray]
    number: int


def sums_of_persons(
    people: PersonCases,
    domain: Domain,
    features: HistoryFeatures,
    size: int,
    bound: int,
    resolution: int,
    kinds: KindRule | None,
    alphabet: Sequence[str],
) -> IntArray:
    """Return the sums of all persons' contributions, each clipped to the L1 bound."""
    histories = histories_in(people, domain, kinds, alphabet)
    triples = triples_of(features, histories, size, LARGEST_VALUE, check=True)
    _, places, contributed = contributions(triples, len(histories), bound, resolution, "L1")
    sums = np.zeros(size, dtype=np.int64)
    np.add.at(sums, places, contributed)
    return sums


def histories_in(people: PersonCases, domain: Domain, kinds: KindRule | None, alphabet: Sequence[str]) -> Histories:
    """Return the persons with all their cases, each made to fit the declared domain."""

    def of_piece(raw: RawCases, first: bool) -> tuple[IntArray, IntArray, IntArray]:
        kind = np.full(len(raw.offsets) - 1, -1, dtype=np.int64)
        if kinds is not None:
            parts = [
                bins_of(kinds.of, block, kinds.number, check=first and number == 0)
                for number, block in enumerate(raw.blocks(alphabet))
            ]
            kind = np.concatenate([kind[:0], *parts])
        return kind, *_ends(raw)

    none = np.zeros(0, dtype=np.int64)
    pieces = people.log.each(lambda piece, first: find_in_piece(of_piece, lambda: RawCases(piece, domain), first), ())
    kind, starts, ends = (np.concatenate(some) for some in zip((none, none, none), *pieces, strict=True))
    return histories_of(people.owner, kind, starts, ends)


def histories_of(owner: IntArray, kinds: IntArray, starts: IntArray, ends: IntArray) -> Histories:
    """Return the persons of cases with these numbers, without numbers below 0."""
    order = np.lexsort((starts, starts == UNKNOWN_TIME, owner))
    order = order[owner[order] >= 0]
    first = np.flatnonzero(np.diff(owner[order], prepend=-1))
    return Histories(kinds[order], starts[order], ends[order], np.append(first, len(order)))


def _ends(raw: RawCases) -> tuple[IntArray, IntArray]:
    """Return the times of the first and of the last event of each case."""
    number = len(raw.offsets) - 1
    going = np.flatnonzero(np.diff(raw.offsets))
    starts, ends = (np.full(number, UNKNOWN_TIME) for _ in range(2))
    starts[going] = raw.times[raw.offsets[going]]
    ends[going] = raw.times[raw.offsets[going + 1] - 1]
    return starts, ends
