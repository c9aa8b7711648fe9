"""PRIPEL's enrichment: the events of a released trace take times and attributes from the raw trace matched with it.

The k-th occurrence of an activity takes them from its k-th occurrence in the matched trace. Where there is none, the
attributes are those of other events of the activity, each drawn by itself, and the time is that of the event before
plus a gap drawn from those of the pair of activities (of all pairs, for a pair that never occurs). A time before that
of the event before is replaced in the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from veilog._typing import BoolArray, IntArray
from veilog.errors import InputError
from veilog.logs.eventlog import ACTIVITY, TIMESTAMP, EventLog
from veilog.logs.variants import Sequences, Variants
from veilog.methods._rows import equal_before
from veilog.methods.pripel.matching import Matching

NOBODY = -1
_SECOND = 1_000_000


@dataclass(frozen=True, eq=False)
class RawTraces:
    """The raw log in arrays: activities in the coding of its variants, times in whole seconds."""

    labels: tuple[str, ...]
    codes: IntArray
    owners: IntArray
    offsets: IntArray
    times: IntArray
    known: BoolArray

    @staticmethod
    def of(log: EventLog) -> RawTraces:
        labels = log.variants.labels
        activities = log.events.column(ACTIVITY).cast(pa.string())
        codes = pc.index_in(activities, pa.array(labels, pa.string())).to_numpy(zero_copy_only=False)
        column = log.events.column(TIMESTAMP).cast(pa.int64())
        known = np.asarray(column.is_valid().to_numpy(zero_copy_only=False), dtype=np.bool_)
        times = pc.fill_null(column, 0).to_numpy().astype(np.int64) // _SECOND
        if not known.any():
            raise InputError("pripel-without-timestamps", path=log.source)
        owners = np.repeat(np.arange(log.cases.num_rows), np.diff(log.offsets))
        return RawTraces(labels, codes.astype(np.int64), owners, log.offsets, times, known)

    def codes_of(self, cases: Sequences) -> IntArray:
        """The codes of the events of released cases, one after the other; ``NOBODY`` where the log has no such one."""
        known = {label: code for code, label in enumerate(self.labels)}
        recode = np.array([known.get(label, NOBODY) for label in cases.labels] + [NOBODY], dtype=np.int64)
        return np.asarray(recode[cases.codes])

    @property
    def starts(self) -> IntArray:
        """When cases start: the first known time of each that has one."""
        _, first = np.unique(self.owners[self.known], return_index=True)
        return self.times[self.known][first]

    def gaps(self) -> tuple[IntArray, IntArray]:
        """The pairs of directly following events of which both times are known (first times number of labels plus
        second), and how long after the first the second is; a gap below 0 counts as 0."""
        follows = self.known[1:] & self.known[:-1] & (self.owners[1:] == self.owners[:-1])
        pairs = self.codes[:-1] * len(self.labels) + self.codes[1:]
        return pairs[follows], np.maximum(self.times[1:] - self.times[:-1], 0)[follows]


@dataclass(frozen=True, eq=False)
class Resolved:
    """Where the attributes of each released event come from, and the times of cases and events, nothing noised yet."""

    donor_events: IntArray
    """A row of the raw events, or -1."""
    starts: IntArray
    """Of each case the time of its first event, in seconds; 0 for a case without events."""
    gaps: IntArray
    """Of each event the seconds since the event before; 0 for the first of a case."""


def cases_of_matching(
    matching: Matching, released: Variants, original: Variants, raw: RawTraces, rng: np.random.Generator
) -> IntArray:
    """The raw case of each released case, variant by variant, or -1; the cases of a variant are dealt at random."""
    place = {text: i for i, text in enumerate(original.sequences.code_tuples())}
    cases = Sequences(raw.labels, raw.codes.astype(np.int32), raw.offsets)
    variant = np.array([place[text] for text in cases.code_tuples()], dtype=np.int64)
    shuffled = rng.permutation(len(variant))
    by_variant = shuffled[np.argsort(variant[shuffled], kind="stable")]
    first = np.concatenate([[0], np.cumsum(original.counts)])[:-1]
    taken = np.concatenate([[0], np.cumsum(released.counts)])[:-1]
    donors = np.full(released.cases, NOBODY, dtype=np.int64)
    for i, j, number in zip(
        matching.released.tolist(), matching.original.tolist(), matching.numbers.tolist(), strict=True
    ):
        donors[taken[i] : taken[i] + number] = by_variant[first[j] : first[j] + number]
        taken[i] += number
        first[j] += number
    return donors


def resolve(cases: Sequences, donors: IntArray, raw: RawTraces, rng: np.random.Generator) -> Resolved:
    """The events of the released cases, with the rows that their attributes come from and with times."""
    codes = raw.codes_of(cases)
    rows = _same_occurrence(cases, codes, donors, raw)
    starts, gaps = _times(cases, codes, rows, raw, rng)
    return Resolved(rows, starts, gaps)


def _same_occurrence(cases: Sequences, codes: IntArray, donors: IntArray, raw: RawTraces) -> IntArray:
    width = len(raw.labels) + 1
    owners = np.repeat(np.arange(len(cases)), cases.lengths)
    occurrence = equal_before(owners * width + codes + 1)
    raw_keys = raw.owners * width + raw.codes + 1
    order = np.argsort(raw_keys, kind="stable")
    ordered = raw_keys[order]
    possible = (donors[owners] != NOBODY) & (codes != NOBODY)
    wanted = np.where(possible, donors[owners] * width + codes + 1, -1)
    place = np.searchsorted(ordered, wanted) + occurrence
    within = np.minimum(place, max(len(ordered) - 1, 0))
    found = possible & (place < len(ordered)) & (ordered[within] == wanted)
    return np.where(found, order[within], NOBODY)


def _times(
    cases: Sequences, codes: IntArray, rows: IntArray, raw: RawTraces, rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    has_time = (rows != NOBODY) & raw.known[rows]
    time = np.where(has_time, raw.times[rows], 0)
    draw = _gap_drawer(raw, rng)
    going = np.flatnonzero(cases.lengths > 0)
    starts, gaps = np.zeros(len(cases), dtype=np.int64), np.zeros(len(codes), dtype=np.int64)
    first = cases.offsets[going]
    starts[going] = np.where(has_time[first], time[first], rng.choice(raw.starts, len(going)))
    now = starts.copy()
    for position in range(1, int(cases.lengths.max(initial=0))):
        going = going[cases.lengths[going] > position]
        here = cases.offsets[going] + position
        copied = has_time[here] & (time[here] >= now[going])
        gap = np.where(copied, time[here] - now[going], draw(codes[here - 1], codes[here]))
        gaps[here] = gap
        now[going] += gap
    return starts, gaps


def _gap_drawer(raw: RawTraces, rng: np.random.Generator) -> Callable[[IntArray, IntArray], IntArray]:
    """Draws gaps from those of a pair of activities, or from all where the pair has none."""
    pairs, gaps = raw.gaps()
    order = np.argsort(pairs, kind="stable")
    pairs, gaps = pairs[order], gaps[order]
    width = len(raw.labels)

    def draw(before: IntArray, after: IntArray) -> IntArray:
        if len(gaps) == 0:
            return np.zeros(len(before), dtype=np.int64)
        pair = np.where((before == NOBODY) | (after == NOBODY), -1, before * width + after)
        low, high = np.searchsorted(pairs, pair, side="left"), np.searchsorted(pairs, pair, side="right")
        none = low == high
        low, high = np.where(none, 0, low), np.where(none, len(gaps), high)
        drawn: IntArray = gaps[low + (rng.random(len(low)) * (high - low)).astype(np.int64)]
        return drawn

    return draw
