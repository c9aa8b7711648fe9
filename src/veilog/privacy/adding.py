"""What all cases of a log add up to, exactly, before the noise: of a log on disk piece by piece, two at a time.

Every case lies wholly in one piece. What is added up are integers, so it does not matter in which order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import numpy.typing as npt

from veilog.logs.eventlog import EventLog
from veilog.privacy.asking import triples_of
from veilog.privacy.cases import Cases, Coding, RawCases
from veilog.privacy.clipping import LARGEST_VALUE, contributions
from veilog.privacy.domain import Domain
from veilog.privacy.mechanisms.mechanism import Norm

if TYPE_CHECKING:
    from veilog.logs.stored.store import StoredLog

__all__ = ["AllCases", "CaseFeatures"]

T = TypeVar("T")
IntArray = npt.NDArray[np.int64]
CaseFeatures = Callable[[Cases], tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike]]
"""Maps each case, by itself, to a vector of integers: (rows, columns, values), equal places added up."""


class AllCases:
    """The raw cases of a log, in memory or on disk; for the kernel only."""

    def __init__(self, log: EventLog | StoredLog, domain: Domain) -> None:
        self._log = log
        self._domain = domain

    def over(self, work: Callable[[RawCases, bool], T], attributes: Collection[str] = ()) -> Iterator[T]:
        """What is found in all raw cases, each wholly in one piece; ``work`` is told whether a piece is the first, and
        may run in several threads at a time."""
        log, domain = self._log, self._domain
        if isinstance(log, EventLog):
            yield work(self._in_memory, True)
        else:
            yield from log.each(lambda piece, first: work(RawCases(piece, domain), first), attributes)

    @cached_property
    def _in_memory(self) -> RawCases:
        """The raw cases of a log that is one piece."""
        assert isinstance(self._log, EventLog)
        return RawCases(self._log, self._domain)

    def sums(
        self,
        features: CaseFeatures,
        size: int,
        bound: int,
        resolution: int,
        norm: Norm,
        alphabet: Sequence[str],
        codings: Sequence[Coding],
    ) -> IntArray:
        """What all cases contribute, each clipped."""
        exact, one_at_a_time = np.zeros(size, dtype=np.int64), Lock()

        def added(raw: RawCases, first: bool) -> None:
            for number, block in enumerate(raw.blocks(alphabet, codings)):
                triples = triples_of(features, block, size, LARGEST_VALUE, check=first and number == 0)
                _, columns, contributed = contributions(triples, len(block), bound, resolution, norm)
                with one_at_a_time:
                    np.add.at(exact, columns, contributed)

        for _ in self.over(added, [coding.name for coding in codings]):
            pass
        return exact

    def firsts(
        self, features: CaseFeatures, ends: IntArray, alphabet: Sequence[str], codings: Sequence[Coding]
    ) -> IntArray:
        """How many cases have each cell, of tables that end there: of each case its first cell in each table."""
        exact, one_at_a_time = np.zeros(int(ends[-1]), dtype=np.int64), Lock()
        table = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))

        def added(raw: RawCases, first: bool) -> None:
            for number, block in enumerate(raw.blocks(alphabet, codings)):
                check = first and number == 0
                rows, columns, values = triples_of(features, block, len(exact), LARGEST_VALUE, check=check)
                cells = _firsts(rows, columns, values, table)
                with one_at_a_time:
                    np.add.at(exact, cells, 1)

        for _ in self.over(added, [coding.name for coding in codings]):
            pass
        return exact


def _firsts(rows: IntArray, columns: IntArray, values: IntArray, table: IntArray) -> IntArray:
    """Of each row its first column in each table, where its value is above 0; ``table``: of each column, its table."""
    if bool((values <= 0).any()):
        rows, columns = rows[values > 0], columns[values > 0]
    tables = int(table[-1]) + 1
    places = rows * tables + table[columns]
    if np.bincount(places).max(initial=0) <= 1:
        return columns
    order = np.lexsort((columns, places))
    return columns[order][np.flatnonzero(np.diff(places[order], prepend=-1))]
