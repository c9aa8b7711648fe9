"""Spaces of background knowledge: patterns of activities, times and attributes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from veilog._counting import count_numbers, rank_bits
from veilog._typing import BoolArray, FloatArray, IntArray
from veilog.errors import ParameterError, meant
from veilog.logs.eventlog import ACTIVITY, TIMESTAMP, EventLog
from veilog.logs.variants import Variants
from veilog.privacy.cases import attribute_column, attribute_level

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


Unit = Literal["seconds", "minutes", "hours", "days"]
UNITS: tuple[Unit, ...] = get_args(Unit)


def add_times(log: EventLog, unit: str) -> EventLog:
    """Return the log with each activity's time in its name, cut to whole UTC units.

    An event without a time keeps its name, so that it reveals nothing more.
    """
    if unit not in UNITS:
        raise ParameterError(
            "disclosure-time-unit-unknown",
            parameter="time",
            unit=unit,
            meant=meant(unit, UNITS),
            names=", ".join(UNITS),
        )
    times = pc.floor_temporal(log.events.column(TIMESTAMP), unit=unit.removesuffix("s"))
    told = pc.strftime(times, format="%Y-%m-%dT%H:%M:%SZ")
    names = log.events.column(ACTIVITY).cast(pa.string())
    labels = pc.if_else(pc.is_valid(told), pc.binary_join_element_wise(names, pc.fill_null(told, ""), " "), names)
    place = log.events.column_names.index(ACTIVITY)
    return replace(log, events=log.events.set_column(place, ACTIVITY, labels))


def variant_of_cases(log: EventLog) -> IntArray:
    """Return the row of the variant of each case, in the log's order of cases."""
    variants = log.variants
    column = log.events.column(ACTIVITY).cast(pa.string()).dictionary_encode().unify_dictionaries().combine_chunks()
    place = {label: code for code, label in enumerate(variants.labels)}
    recode = np.array([place.get(label, 0) for label in column.dictionary.to_pylist()], dtype=np.int64)
    codes = recode[column.indices.to_numpy(zero_copy_only=False)] if len(recode) else np.zeros(0, dtype=np.int64)
    prints = _fingerprints(variants.codes.astype(np.int64), variants.offsets)
    order = np.argsort(prints)
    found: IntArray = order[np.searchsorted(prints[order], _fingerprints(codes, log.offsets))]
    return found


def _fingerprints(codes: IntArray, offsets: IntArray) -> npt.NDArray[np.uint64]:
    """Return 64 bits per sequence: the sum of a random number per activity and place."""
    lengths = np.diff(offsets)
    rng = np.random.default_rng(0)
    places = rng.integers(0, 1 << 64, int(lengths.max(initial=0)) + 1, dtype=np.uint64)
    labels = np.random.default_rng(1).integers(0, 1 << 64, int(codes.max(initial=0)) + 1, dtype=np.uint64)
    position = np.arange(len(codes)) - np.repeat(offsets[:-1], lengths)
    mixed = (places[position] ^ labels[codes]) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    sums = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(mixed, dtype=np.uint64)])
    out: npt.NDArray[np.uint64] = sums[offsets[1:]] - sums[offsets[:-1]]
    return out


def cases_by_value(log: EventLog, name: str) -> csr_matrix:
    """Return how many cases of each variant have each value of an attribute.

    A case has the last value of an attribute of its events. A missing value counts as a value.
    """
    from scipy.sparse import csr_matrix

    level, column = attribute_level(log, name), attribute_column(log, name)
    codes = pc.dictionary_encode(column.cast(pa.string()), null_encoding="encode").combine_chunks()
    found: IntArray = codes.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    values = len(codes.dictionary)
    if level == "event":
        known = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
        owner = np.repeat(np.arange(log.cases.num_rows), np.diff(log.offsets))[known]
        of_case = np.full(log.cases.num_rows, values, dtype=np.int64)
        of_case[owner] = found[known]  # the last of several assignments to one place stays
        found, values = of_case, values + 1
    variant = variant_of_cases(log)
    return csr_matrix((np.ones(len(found)), (variant, found)), shape=(len(log.variants), values))


# Items and states, of which patterns of background knowledge are made.
#
# - Sequences: an item is an activity. A state is the part of a variant that the leftmost match has used up. The
#   activities of the rest can follow, and the next state comes after the next occurrence.
# - Sets: an item is an activity, and items ascend. A state is a variant, reduced to its set of activities.
# - Multisets: an item (a, i) stands for the i-th a. Items ascend and (a, i) follows (a, i - 1), so that a multiset is
#   built in one way only. A state is a variant, reduced to its numbers of occurrences.
#
# A background's tables are not built when they would take more memory than allowed. Its larger sizes are then
# estimated.
States = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Space:
    """Items and states of a background's patterns; see the comment above."""

    activity: IntArray
    """Activity of each item."""
    first: States
    """States of the empty pattern."""
    row: States
    """Row of each state in ``present``."""
    can: BoolArray
    """True where an item can follow in states of this row."""
    present: FloatArray
    """The same as ``can``, in numbers."""
    following: BoolArray | None
    """Items that may follow each last item (last row: no item yet); None if all may."""
    successor: States | None
    """State after (state, item); None if it is the state itself."""
    cases: FloatArray
    """Number of cases of each state's variants."""
    surprise: FloatArray
    """Sum of c ln c over the numbers of cases c of each state's variants."""
    owner: IntArray
    """Number for the variants that each state stands for."""
    capacity: IntArray
    """Size of the largest pattern that each owner matches."""
    variant: IntArray
    """First variant of each owner: the only one of an owner with a single case."""
    group: IntArray
    """Owner of each variant."""
    copy: FloatArray | None = None
    """The i of each item (a, i), if a multiset counts once per arrangement."""
    values: csr_matrix | None = None
    """Cases of each state's variants with each value of a sensitive attribute."""

    def judging(self, values: csr_matrix) -> Space:
        """Return the space whose candidates disclose an attribute, not the trace.

        ``values`` has a row for each variant, with its cases of each value.
        """
        from scipy.sparse import csr_matrix

        sums = csr_matrix((np.ones(len(self.group)), (self.group, np.arange(len(self.group)))))
        return replace(self, values=(sums @ values)[self.owner])


def set_space(variants: Variants, table_bytes: int) -> Space | None:
    """Return the space of sets; None if its table would exceed ``table_bytes``."""
    return _item_space(variants, 1, table_bytes, surprise(variants.counts))


def multiset_space(variants: Variants, largest: int, table_bytes: int, *, arrangements: bool = False) -> Space | None:
    """Return the space of multisets of up to ``largest`` activities.

    It is None when its table would take more than ``table_bytes``. ``arrangements`` count as in the authors' program:
    each multiset once for each of its orders. Two variants are then the same trace when they have the same activities
    equally often and meet them for the first time in one order.
    """
    if not arrangements:
        return _item_space(variants, largest, table_bytes, surprise(variants.counts))
    space = _item_space(variants, largest, table_bytes, surprise_by_first_occurrences(variants))
    return None if space is None else replace(space, copy=_copies(space.activity))


def occurrences(variants: Variants) -> tuple[IntArray, IntArray, IntArray]:
    """Return (variant, activity, number) for each activity of each variant, in order."""
    size = max(1, len(variants.labels))
    owner = np.repeat(np.arange(len(variants)), variants.lengths)
    keys, number = count_numbers(owner * size + variants.codes, len(variants) * size)
    return keys // size, keys % size, number


def _item_space(variants: Variants, most: int, table_bytes: int, surprise_of: FloatArray) -> Space | None:
    """Return the space of items (a, i): a occurs at least i times, i up to ``most``."""
    owner, activity, number = occurrences(variants)
    number = np.minimum(number, most)
    highest = np.zeros(len(variants.labels), dtype=np.int64)
    np.maximum.at(highest, activity, number)
    base = np.concatenate(([0], np.cumsum(highest)))
    items = int(base[-1])
    if len(variants) * items * 8 > table_bytes or items * items > table_bytes:
        return None
    table = np.zeros((len(variants), items), dtype=np.bool_)
    table[np.repeat(owner, number), np.repeat(base[activity], number) + _ranges(number)] = True
    first, group = rank_bits(table)  # variants that no pattern can distinguish are one state
    cases, surprises = np.zeros(len(first)), np.zeros(len(first))
    np.add.at(cases, group, variants.counts.astype(np.float64))
    np.add.at(surprises, group, surprise_of)
    of_item = np.repeat(np.arange(len(highest)), highest)
    order = _ranges(highest)
    # After (a, i): (a, i + 1), or the first occurrence of any later activity.
    following = np.zeros((items + 1, items), dtype=np.bool_)
    following[:, order == 0] = True
    following[:items][of_item[:, None] >= of_item[None, :]] = False
    inner = np.flatnonzero(order[1:] > 0)
    following[inner, inner + 1] = True
    can = table[first]
    return Space(
        activity=of_item,
        first=np.arange(len(first), dtype=np.int32),
        row=np.arange(len(first), dtype=np.int32),
        can=can,
        present=can.astype(np.float64),
        following=following,
        successor=None,
        cases=cases,
        surprise=surprises,
        owner=np.arange(len(first)),
        capacity=can.sum(axis=1),
        variant=first,
        group=group,
    )


def sequence_space(variants: Variants, table_bytes: int) -> Space | None:
    """Return the space of subsequences; None if its tables exceed ``table_bytes``."""
    items, lengths = len(variants.labels), variants.lengths
    count = len(variants.codes) + len(variants)
    if count * items * 4 > table_bytes:
        return None
    start = variants.offsets[:-1] + np.arange(len(variants))
    successor = np.full((count, items), -1, dtype=np.int32)
    # Backwards through all variants at once. Variants are sorted by length: those that are long enough are the last.
    for after in range(1, int(lengths.max(initial=0)) + 1):
        members = np.arange(np.searchsorted(lengths, after), len(variants))
        state = start[members] + lengths[members] - after
        successor[state] = successor[state + 1]
        successor[state, variants.codes[variants.offsets[members + 1] - after]] = state + 1
    first, rows = rank_bits(successor >= 0)
    can = successor[first] >= 0
    if can.size * 8 > table_bytes:
        return None
    owner = np.repeat(np.arange(len(variants)), lengths + 1)
    return Space(
        activity=np.arange(items),
        first=start.astype(np.int32),
        row=rows.astype(np.int32),
        can=can,
        present=can.astype(np.float64),
        following=None,
        successor=successor,
        cases=variants.counts.astype(np.float64)[owner],
        surprise=surprise(variants.counts)[owner],
        owner=owner,
        capacity=lengths,
        variant=np.arange(len(variants)),
        group=np.arange(len(variants)),
    )


def surprise(counts: IntArray) -> FloatArray:
    numbers = counts.astype(np.float64)
    return np.asarray(numbers * np.log(np.maximum(numbers, 1.0)))


def surprise_by_first_occurrences(variants: Variants) -> FloatArray:
    """Return the surprise of each class on its first variant, and 0 on the others.

    For the classes, see :func:`multiset_space`.
    """
    classes: dict[tuple[tuple[int, int], ...], int] = {}
    member = np.zeros(len(variants), dtype=np.int64)
    for i, codes in enumerate(variants.sequences.code_tuples()):
        member[i] = classes.setdefault(tuple(Counter(codes).items()), i)
    cases = np.zeros(len(variants), dtype=np.int64)
    np.add.at(cases, member, variants.counts)
    return surprise(cases)


def _copies(activity: IntArray) -> FloatArray:
    """Return the i of each item (a, i); items of one activity stand together."""
    first = np.searchsorted(activity, activity)
    return np.asarray(np.arange(len(activity)) - first + 1.0)


def _ranges(sizes: IntArray) -> IntArray:
    """Return 0, 1, ..., size - 1 for each size, in one array."""
    total = int(sizes.sum())
    out: IntArray = np.arange(total) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return out
