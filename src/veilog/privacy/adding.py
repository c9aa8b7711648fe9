"""What all cases of a log add up to, exactly, before the noise: of a log in pieces piece by piece, where they are kept.

Every case lies wholly in one piece. What is added up are integers, so it does not matter in which order, nor whether
the pieces are in memory, on a disk, or on the machines of a cluster: there the functions below run on the workers, the
same ones, and what they find is added up before it comes here. The noise is drawn here, and from no other source.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import numpy.typing as npt

from veilog.errors import QuestionError, VeilogError
from veilog.logs.eventlog import EventLog
from veilog.privacy.asking import triples_of
from veilog.privacy.cases import UNKNOWN_TIME, Cases, Coding, RawCases
from veilog.privacy.clipping import LARGEST_VALUE, contributions
from veilog.privacy.domain import Domain
from veilog.privacy.mechanisms.mechanism import Norm

if TYPE_CHECKING:
    from veilog.logs.stored.store import StoredLog


T = TypeVar("T")
IntArray = npt.NDArray[np.int64]
Addends = tuple[IntArray, IntArray]
"""Places of a vector, and what is added there; a place may come several times."""
CaseFeatures = Callable[[Cases], tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike]]
"""Maps each case, by itself, to a vector of integers: (rows, columns, values), equal places added up."""


class AllCases:
    """The raw cases of a log, in memory or in pieces; for the kernel only."""

    def __init__(self, log: EventLog | StoredLog, domain: Domain) -> None:
        self._log = log
        self._domain = domain

    def over(
        self, work: Callable[[RawCases, bool], T], combine: Callable[[Iterable[T]], T], attributes: Collection[str] = ()
    ) -> T:
        """What is found in all raw cases, each wholly in one piece; ``work`` is told whether a piece is the first.

        ``combine`` makes one of any number of findings, in any order; where pieces lie elsewhere it is done there, and
        again of what it made. Neither may hold on to this object: both may travel. Whatever goes wrong in the data is
        one error with a fixed text (see :mod:`veilog.privacy.asking`).
        """
        log, domain = self._log, self._domain
        if isinstance(log, EventLog):
            return combine([_found(work, lambda: self._in_memory, True)])
        return log.together(
            lambda piece, first: _found(work, lambda: RawCases(piece, domain), first), combine, attributes
        )

    @cached_property
    def _in_memory(self) -> RawCases:
        """The raw cases of a log that is one piece."""
        assert isinstance(self._log, EventLog)
        return RawCases(self._log, self._domain)

    def outermost_starts(self) -> tuple[int, int] | None:
        """Return the first and the last start of a case, None where none has one: of the events that are first."""

        def of_piece(raw: RawCases, _first: bool) -> list[int]:
            starts = raw.times[raw.offsets[:-1][np.diff(raw.offsets) > 0]]
            starts = starts[starts != UNKNOWN_TIME]
            return [int(starts.min()), int(starts.max())] if len(starts) else []

        def of_all(found: Iterable[list[int]]) -> list[int]:
            ends = [end for some in found for end in some]
            return [min(ends), max(ends)] if ends else []

        ends = self.over(of_piece, of_all)
        return (ends[0], ends[1]) if ends else None

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

        def clipped(raw: RawCases, first: bool) -> Iterator[Addends]:
            for number, block in enumerate(raw.blocks(alphabet, codings)):
                triples = triples_of(features, block, size, LARGEST_VALUE, check=first and number == 0)
                _, columns, contributed = contributions(triples, len(block), bound, resolution, norm)
                yield columns, contributed

        return self._added_up(clipped, size, codings)

    def firsts(
        self, features: CaseFeatures, ends: IntArray, alphabet: Sequence[str], codings: Sequence[Coding]
    ) -> IntArray:
        """How many cases have each cell, of tables that end there: of each case its first cell in each table."""
        size = int(ends[-1])
        table = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))

        def counted(raw: RawCases, first: bool) -> Iterator[Addends]:
            for number, block in enumerate(raw.blocks(alphabet, codings)):
                check = first and number == 0
                rows, columns, values = triples_of(features, block, size, LARGEST_VALUE, check=check)
                cells = _firsts(rows, columns, values, table)
                yield cells, np.ones(len(cells), dtype=np.int64)

        return self._added_up(counted, size, codings)

    def _added_up(
        self, work: Callable[[RawCases, bool], Iterator[Addends]], size: int, codings: Sequence[Coding]
    ) -> IntArray:
        """What work finds in the blocks of all pieces, added up."""

        def combined(found: Iterable[Addends]) -> Addends:
            sums = _sums(found, size)
            places = np.flatnonzero(sums)
            return places, sums[places]

        def of_piece(raw: RawCases, first: bool) -> Addends:
            return combined(work(raw, first))

        return _sums([self.over(of_piece, combined, [coding.name for coding in codings])], size)


def _found(work: Callable[[RawCases, bool], T], raw: Callable[[], RawCases], first: bool) -> T:
    """What work finds in a piece, or an error with a fixed text: what went wrong may say something of the data."""
    try:
        return work(raw(), first)
    except (VeilogError, MemoryError, OSError):
        raise
    except Exception:  # noqa: BLE001, S110 - raised below, not here: an error must not carry the other one
        pass
    raise QuestionError("question-value-unusable", parameter="question")


def _sums(found: Iterable[Addends], size: int) -> IntArray:
    sums = np.zeros(size, dtype=np.int64)
    for places, numbers in found:
        np.add.at(sums, places, numbers)
    return sums


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
