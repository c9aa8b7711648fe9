"""Raw cases as the feature function of a query sees them, and their exact sums.

A function sees integers against public lists, and nothing that names a case. Activities are positions in an alphabet
that the method gives. Attribute values are positions in a declared or released list or in public bins. Times are
microseconds. A value on no list is -1, so a label that occurs only in the raw log never reaches a method.

A log in pieces is added up piece by piece, where they are kept. Every case lies wholly in one piece. The addends are
integers, so the order does not matter. Nor does it matter if the pieces are in memory, on a disk, or on the machines of
a cluster. There the same functions below run on the workers, and their findings are added up before they come here. The
noise is drawn here, and from no other source.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from veilog.errors import ParameterError, QuestionError, VeilogError, meant
from veilog.logs.eventlog import ACTIVITY, CASE_INDEX, EVENT_INDEX, NESTED, TIMESTAMP, EventLog, encode_texts
from veilog.messages import Message
from veilog.privacy.case_functions import triples_of
from veilog.privacy.contributions import LARGEST_VALUE, contributions, cut_to_row
from veilog.privacy.domain import Domain
from veilog.privacy.mechanisms.mechanism import Norm

if TYPE_CHECKING:
    from veilog.logs.storage.stored_log import StoredLog

T = TypeVar("T")

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
Level = Literal["case", "event"]
Kind = Literal["text", "boolean", "whole number", "number", "date"]

UNKNOWN_TIME = int(np.iinfo(np.int64).min)
"""Placeholder for a missing timestamp. Never compute with it: mask first."""

_BLOCK = 65_536
_PARTS = 1 << 15
_DAY = 86_400_000_000


@dataclass(frozen=True, eq=False)
class Cases:
    """Block of cases; case ``i`` has the events ``offsets[i]`` to ``offsets[i + 1]``.

    The last one is excluded; events keep their order.
    """

    codes: IntArray
    """Position of each event's activity in the alphabet of the query, -1 outside it."""
    times: IntArray
    """Microseconds since 1970 UTC of each event, or ``UNKNOWN_TIME``."""
    offsets: IntArray
    attributes: Mapping[str, IntArray]
    """Position of each event's or case's value in the coding of the query; -1 for none.

    A moment, where the query asks for one.
    """
    of_events: frozenset[str] = frozenset()
    """Names of the attributes with a value for each event; others have one for each case."""

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> IntArray:
        """Number of events of each case."""
        return np.diff(self.offsets)

    @cached_property
    def owners(self) -> IntArray:
        """Case of each event."""
        return np.repeat(np.arange(len(self)), self.lengths)

    def take(self, rows: IntArray) -> Cases:
        """Return the cases of these rows, in this order."""
        lengths = self.lengths[rows]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        events = np.repeat(self.offsets[rows], lengths) + np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
        attributes = {
            name: column[events] if name in self.of_events else column[rows] for name, column in self.attributes.items()
        }
        return Cases(self.codes[events], self.times[events], offsets, attributes, self.of_events)


@dataclass(frozen=True)
class Coding:
    """Public coding of an attribute as integers: its values, or the edges of bins.

    Bin ``i`` reaches from ``edges[i]`` up to ``edges[i + 1]``; numbers beyond either end count in the bin next to them.
    The number of a date is that of days since the start of its case.
    """

    name: str
    values: tuple[str, ...] = ()
    edges: tuple[float, ...] = ()
    others: bool = False
    """True if unlisted values have a place, the last one; if not, they count as none."""
    moments: bool = False
    """True for moments, as microseconds since 1970 UTC; ``UNKNOWN_TIME`` for none."""
    decimals: int | None = None
    """Most decimals that are distinguished, where only the spelling of numbers counts; more fall into the last place.

    The number of a date is that of days, so one without a time of day has no decimals.
    """

    @property
    def size(self) -> int:
        if self.decimals is not None:
            return self.decimals + 2
        return len(self.edges) - 1 if self.edges else len(self.values) + self.others


def attribute_level(log: EventLog, name: str) -> Level:
    """Return the level of an attribute, case or event, by the column that it has.

    ``case:name`` means the case's where both have it, and that of events where only these have it.
    """
    reserved = (ACTIVITY, TIMESTAMP, CASE_INDEX, EVENT_INDEX, NESTED)
    if name not in reserved and name in log.events.column_names:
        return "event"
    bare = name.removeprefix("case:")
    if bare not in reserved and bare in log.cases.column_names:
        return "case"
    if bare not in reserved and bare in log.events.column_names:
        return "event"
    known = [c for c in log.events.column_names if c not in reserved]
    known += [
        c if c not in known else f"case:{c}" for c in log.cases.column_names if c not in reserved and c != ACTIVITY
    ]
    raise ParameterError(
        "pripel-attribute-missing",
        parameter="attributes",
        name=name,
        meant=meant(name, known),
        names=", ".join(known) or Message("names-none"),
    )


def attribute_column(log: EventLog, name: str) -> pa.ChunkedArray:
    """Return the column of an attribute, by the names of :func:`attribute_level`."""
    bare = name.removeprefix("case:")
    if attribute_level(log, name) == "event":
        return log.events.column(name if name in log.events.column_names else bare)
    return log.cases.column(bare)


class RawCases:
    """Raw log as :class:`Cases`, each case fitted to the declared domain; kernel only."""

    def __init__(self, log: EventLog, domain: Domain) -> None:
        self.log = log
        labels, codes = _dictionary(log.events.column(ACTIVITY))
        times, offsets = _microseconds(log.events.column(TIMESTAMP)), log.offsets
        self._labels = labels
        self._kept: IntArray | slice = slice(None)
        """Events that count; all of them, where the domain cannot leave one out."""
        if not domain.holds(labels, np.diff(offsets)):
            owners = np.repeat(np.arange(log.cases.num_rows), np.diff(offsets))
            self._kept = np.flatnonzero(domain.keeps(labels, codes, owners, offsets))
            codes, times = codes[self._kept], times[self._kept]
            offsets = np.zeros(log.cases.num_rows + 1, dtype=np.int64)
            np.cumsum(np.bincount(owners[self._kept], minlength=log.cases.num_rows), out=offsets[1:])
        self._codes = codes
        self.times = times
        self.offsets = offsets

    def blocks(self, alphabet: Sequence[str], codings: Sequence[Coding] = ()) -> Iterator[Cases]:
        """Yield all cases, in blocks, in these codings."""
        place = {label: i for i, label in enumerate(alphabet)}
        recode = np.array([place.get(label, -1) for label in self._labels] + [-1], dtype=np.int64)
        codes = recode[self._codes]
        coded = {coding.name: self.coded(coding) for coding in codings}
        levels = {coding.name: attribute_level(self.log, coding.name) for coding in codings}
        of_events = frozenset(name for name, level in levels.items() if level == "event")
        cases = len(self.offsets) - 1
        for start in range(0, cases, _BLOCK):
            stop = min(start + _BLOCK, cases)
            a, b = self.offsets[start], self.offsets[stop]
            attributes = {
                name: column[a:b] if name in of_events else column[start:stop] for name, column in coded.items()
            }
            yield Cases(codes[a:b], self.times[a:b], self.offsets[start : stop + 1] - a, attributes, of_events)

    def coded(self, coding: Coding) -> IntArray:
        """Return an attribute's whole column, one integer a kept event or a case."""
        column = attribute_column(self.log, coding.name)
        of_events = attribute_level(self.log, coding.name) == "event"
        if coding.moments:
            coded = _microseconds(column)
        elif coding.decimals is not None:
            coded = _decimals(column, coding.decimals)
        elif coding.edges:
            if pa.types.is_temporal(column.type):
                column = pa.chunked_array([pa.array(self._days(_microseconds(column), of_events=of_events))])
            # Whole numbers beyond 2^53 are rounded, each by itself: no value of one case may stop the query.
            numbers = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
            known = ~np.isnan(numbers)
            bins = _last_below(np.where(known, numbers, 0.0), np.array(coding.edges))
            coded = np.where(known, np.clip(bins, 0, coding.size - 1), -1)
        else:
            labels, codes = _dictionary(column)
            place = {value: i for i, value in enumerate(coding.values)}
            beside = len(coding.values) if coding.others else -1
            coded = np.array([place.get(label, beside) for label in labels] + [-1], dtype=np.int64)[codes]
        return coded[self._kept] if of_events else coded

    def _days(self, moments: IntArray, *, of_events: bool) -> FloatArray:
        """Return the days from the first event of its case to each moment; NaN if unknown."""
        first = np.full(len(self.offsets), UNKNOWN_TIME)
        some = np.flatnonzero(np.diff(self.offsets))
        first[some] = self.times[self.offsets[some]]
        # The last number is for events that the domain leaves out: they have no case here.
        owner = np.full(len(moments), len(first) - 1) if of_events else np.arange(len(moments))
        if of_events:
            owner[self._kept] = np.repeat(np.arange(len(first) - 1), np.diff(self.offsets))
        since = first[owner]
        known = (moments != UNKNOWN_TIME) & (since != UNKNOWN_TIME)
        days = np.where(known, moments, 0).astype(np.float64) - np.where(known, since, 0)
        return np.where(known, days / _DAY, np.nan)

    def values(self, name: str) -> tuple[tuple[str, ...], IntArray, npt.NDArray[np.integer]]:
        """Return raw values and (cases, values), each pair once, in the order of events."""
        labels, codes = _dictionary(attribute_column(self.log, name))
        if attribute_level(self.log, name) == "event":
            codes = codes[self._kept]
            owners = np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))
        else:
            owners = np.arange(len(codes))
        has = codes < len(labels)
        owners, codes = owners[has], codes[has]
        _, first = np.unique(owners * (len(labels) + 1) + codes, return_index=True)
        first.sort()
        return labels, owners[first], codes[first]


def attribute_kind(log: EventLog, name: str) -> Kind:
    """Return the kind of an attribute's values, by the type of its column."""
    kind = attribute_column(log, name).type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return "date"
    if pa.types.is_temporal(kind):
        raise ParameterError("attribute-type-not-released", parameter="attributes", name=name)
    if pa.types.is_boolean(kind):
        return "boolean"
    if pa.types.is_integer(kind):
        return "whole number"
    return "number" if pa.types.is_floating(kind) else "text"


def _decimals(column: pa.ChunkedArray, most: int) -> IntArray:
    """Return each number's decimals as written: ``most + 1`` for more, -1 for none."""
    if pa.types.is_temporal(column.type):
        moments = _microseconds(column)
        numbers = np.where(moments != UNKNOWN_TIME, moments / _DAY, np.nan)
    else:
        numbers = column.to_numpy(zero_copy_only=False)
        numbers = numbers if numbers.dtype.kind == "f" else numbers.astype(np.float64)
    found = np.full(len(numbers), most + 1)
    with np.errstate(all="ignore"):
        for decimals in range(most, -1, -1):
            found[np.round(numbers, decimals) == numbers] = decimals
    return np.where(np.isnan(numbers), -1, found)


def _last_below(numbers: FloatArray, edges: FloatArray) -> IntArray:
    """Return ``np.searchsorted(edges, numbers, side="right") - 1``, mostly by look-up.

    The range is cut into even parts. Parts rise with numbers, so in a part without an edge there is one answer.
    """
    with np.errstate(all="ignore"):
        part = _PARTS / (edges[-1] - edges[0])
        if len(numbers) < _PARTS or not 0 < part < np.inf:
            return np.searchsorted(edges, numbers, side="right") - 1
        place, of_edges = (np.clip((of - edges[0]) * part, 0, _PARTS - 1).astype(np.int64) for of in (numbers, edges))
    before = np.searchsorted(of_edges, np.arange(_PARTS + 1), side="left")
    found: IntArray = before[place]
    split = np.flatnonzero((np.diff(before) > 0)[place])
    found[split] = np.searchsorted(edges, numbers[split], side="right")
    return found - 1


def _dictionary(column: pa.ChunkedArray) -> tuple[tuple[str, ...], npt.NDArray[np.integer]]:
    """Return a column's distinct texts and each row's code, the next one for none."""
    found = encode_texts(column)
    labels, codes = found.dictionary.to_pylist(), found.indices
    if found.null_count:
        codes = pc.fill_null(codes.cast(pa.int64()), len(labels))
    return tuple(labels), codes.to_numpy(zero_copy_only=False)


def _microseconds(column: pa.ChunkedArray) -> IntArray:
    if pa.types.is_date(column.type):
        column = column.cast(pa.timestamp("us"))
    numbers = column.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64())
    filled = pc.fill_null(numbers, UNKNOWN_TIME) if numbers.null_count else numbers
    return np.asarray(filled.to_numpy(), dtype=np.int64)


Addends = tuple[IntArray, IntArray]
"""Places of a vector and the addends there; a place may come several times."""
CaseFeatures = Callable[[Cases], tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike]]
"""Function of each case, by itself, to a vector of integers: (rows, columns, values), equal places added up."""


class AllCases:
    """Raw cases of a log, in memory or in pieces; kernel only."""

    def __init__(self, log: EventLog | StoredLog, domain: Domain) -> None:
        self._log = log
        self._domain = domain

    def over(
        self, work: Callable[[RawCases, bool], T], combine: Callable[[Iterable[T]], T], attributes: Collection[str] = ()
    ) -> T:
        """Return the combined findings in all raw cases, each wholly in one piece.

        ``work`` gets a piece, and True for the first. ``combine`` makes one of any number of findings, in any order.
        Where pieces lie elsewhere it runs there, and again on its results. Neither may hold on to this object: both may
        travel. Any failure in the data is one error with a fixed text (see :mod:`veilog.privacy.case_functions`).
        """
        log, domain = self._log, self._domain
        if isinstance(log, EventLog):
            return combine([find_in_piece(work, lambda: self._in_memory, True)])
        return log.together(
            lambda piece, first: find_in_piece(work, lambda: RawCases(piece, domain), first), combine, attributes
        )

    @cached_property
    def _in_memory(self) -> RawCases:
        """Raw cases of a log that is one piece."""
        assert isinstance(self._log, EventLog)
        return RawCases(self._log, self._domain)

    def outermost_starts(self) -> tuple[int, int] | None:
        """Return the first and last start of the cases, by first events; None without any."""

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
        """Return the sums of the contributions of all cases, each clipped."""

        def clipped(raw: RawCases, first: bool) -> Iterator[Addends]:
            for number, block in enumerate(raw.blocks(alphabet, codings)):
                triples = triples_of(features, block, size, LARGEST_VALUE, check=first and number == 0)
                _, columns, contributed = contributions(triples, len(block), bound, resolution, norm)
                yield columns, contributed

        return self._added_up(clipped, size, codings)

    def cube_sums(
        self, features: CaseFeatures, size: int, width: int, alphabet: Sequence[str], codings: Sequence[Coding]
    ) -> IntArray:
        """Return the sums of the contributions of all cases to rows of this width.

        Each case contributes to one row, in units of ``1/CUBE_UNIT``.
        """

        def clipped(raw: RawCases, first: bool) -> Iterator[Addends]:
            for number, block in enumerate(raw.blocks(alphabet, codings)):
                triples = triples_of(features, block, size, LARGEST_VALUE, check=first and number == 0)
                yield cut_to_row(triples, len(block), width)

        return self._added_up(clipped, size, codings)

    def firsts(
        self, features: CaseFeatures, ends: IntArray, alphabet: Sequence[str], codings: Sequence[Coding]
    ) -> IntArray:
        """Return the cases in each cell of tables, each case at its first cell in each."""
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
        """Return the sum of the addends from the blocks of all pieces."""

        def combined(found: Iterable[Addends]) -> Addends:
            sums = _sums(found, size)
            places = np.flatnonzero(sums)
            return places, sums[places]

        def of_piece(raw: RawCases, first: bool) -> Addends:
            return combined(work(raw, first))

        return _sums([self.over(of_piece, combined, [coding.name for coding in codings])], size)


def find_in_piece(work: Callable[[RawCases, bool], T], raw: Callable[[], RawCases], first: bool) -> T:
    """Return what ``work`` finds in a piece, or raise an error that reveals no data."""
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
    """Return each row's first column with a value above 0 in each ``table``."""
    if bool((values <= 0).any()):
        rows, columns = rows[values > 0], columns[values > 0]
    tables = int(table[-1]) + 1
    places = rows * tables + table[columns]
    if np.bincount(places).max(initial=0) <= 1:
        return columns
    order = np.lexsort((columns, places))
    return columns[order][np.flatnonzero(np.diff(places[order], prepend=-1))]
