"""Starts of released events: how long each was worked on, apart from waiting.

An event's timestamp is its end. If it has a ``start_timestamp``, the time between is its processing, and the rest of
the time since the event before is waiting. There are two queries (shares of the epsilon: ``SHARES``):

- how long events are processed, by activity, on public log-scaled bins (:mod:`.histogram`);
- which part of the events of a case, but its first, begin before the one before them ended, in all and by activity.

The rest is post-processing. Where noise hides how long an activity takes, its processing is log-normal, or none, or a
mixture of both, as the answer lets expect. Processing is drawn, spread evenly over the distribution of the activity.
Then events of an activity exchange theirs, at random, until as many begin before the event before them ended as should.
But for that, processing does not depend on the time since the event before. Events that still take longer than this get
time that their case waits for others. Its duration stays, and the times of events between its first and its last move.
No event begins before the first one of its case.

Events without both times, and those that end before they began, contribute nothing. With a delta both queries have
Gaussian noise where that makes neither wider.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from veilog._typing import BoolArray, FloatArray, IntArray
from veilog.logs.eventlog import START
from veilog.logs.variants import Repeated
from veilog.messages import Message
from veilog.methods._events.orders import CaseBlock, run_in_blocks
from veilog.methods._events.times.durations import directly_following
from veilog.methods._events.times.histogram import Histograms, ReleasedRows, query_rows
from veilog.methods._events.times.prices import Price, prices
from veilog.methods._events.times.prior import PriorTimes
from veilog.privacy.case_functions import Triples
from veilog.privacy.cases import UNKNOWN_TIME, Cases, Coding
from veilog.privacy.curator import Curator
from veilog.privacy.mechanisms.noise import generator

SHARES = {"processing": Fraction(4, 5), "overlaps": Fraction(1, 5)}
TABLES = 2
"""Tables in which a case shares out 1 among its events: overlaps of all, and by activity."""
ENOUGH = 50
"""Least epsilon times number of cases for each activity. Below it processing is rough: medians are off by a quarter or
more (docs/results/times.md)."""
ROUNDS = 100
"""Most rounds; in each, events on the wrong side of the event before look for one to exchange with."""
TRIED = 8
"""Multiple of the surplus of an activity of which events look for one; in a large log not all do."""
_ONE = 2_520
"""Parts into which the 1 that a case shares out is divided."""
_SECOND = 1_000_000


def add_starts(
    curator: Curator, epsilon: Fraction, delta: Fraction, cases: Repeated, times: IntArray, *more: Any
) -> tuple[IntArray, IntArray]:
    """Return the times of released events, and when each event began.

    Some times are moved inside their case. Further arguments are those of :func:`query_processing`."""
    rng = generator(curator.randomness)
    return query_processing(curator, epsilon, delta, cases, *more).of(cases, times, rng)


def query_processing(
    curator: Curator,
    epsilon: Fraction,
    delta: Fraction,
    cases: Repeated,
    remark: Callable[[Message], None] = lambda text: None,
    prior: PriorTimes | None = None,
) -> ProcessingModel:
    """Return a model of when events of released cases, and of others, began.

    It uses epsilon, and delta where the noise is Gaussian."""
    events = _events(cases)
    cost = prices(curator, epsilon, delta, SHARES, {"processing": events.ratio, "overlaps": TABLES**-0.5}, prior)
    took = _query_seconds(cost["processing"], events, cases)
    overlaps = _query_overlaps(cost["overlaps"], cases)
    if epsilon * len(cases) < ENOUGH * len(events.keys):
        remark(
            Message(
                "durations-of-events-rough",
                epsilon=float(epsilon),
                number=len(cases),
                enough=ENOUGH,
                number_2=len(events.keys),
            )
        )
    return ProcessingModel(took, events, overlaps)


@dataclass(frozen=True, eq=False)
class ProcessingModel:
    """Processing of events, and how often they overlap."""

    took: Histograms
    events: ReleasedRows
    overlaps: _Overlaps

    def of(self, cases: Repeated, times: IntArray, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
        """Return the times of the events of cases, and when each event began.

        Some times are moved inside their case. All are microseconds since 1970 UTC."""
        ended, begun = times.copy(), times.copy()

        def of_block(block: CaseBlock) -> None:
            ours = times[block.events]
            moved, seconds = _place_work(self.took, self.events, self.overlaps, block, ours)
            ended[block.events] = ours + moved * _SECOND
            begun[block.events] = ended[block.events] - seconds * _SECOND

        run_in_blocks(of_block, cases, rng)
        return ended, begun


# Asking -------------------------------------------------------------------------------------------------------------


def _events(cases: Repeated) -> ReleasedRows:
    """Return the events of the release, by activity."""
    owners = np.repeat(np.arange(len(cases.distinct)), cases.distinct.lengths)
    return ReleasedRows.of(_keys(cases.distinct.codes), owners, cases)


def _keys(codes: npt.NDArray[np.integer]) -> IntArray:
    """Return a number for each activity; 0 for those of no released case (code -1)."""
    return codes.astype(np.int64) + 1


def _query_seconds(price: Price, events: ReleasedRows, cases: Repeated) -> Histograms:
    def told(block: Cases) -> tuple[IntArray, IntArray, IntArray]:
        at = np.flatnonzero(_has_both_times(block))
        row = events.placed(_keys(block.codes[at]), len(cases.labels) + 1)
        return block.owners[at], row, block.times[at] - block.attributes[START][at]

    codings, purpose = (Coding(START, moments=True),), "how-long-events-take-by-activity"
    return query_rows(price, events, told, alphabet=cases.labels, codings=codings, purpose=purpose)


def _has_both_times(block: Cases) -> BoolArray:
    """Return True for events with a start and an end, in order."""
    starts = block.attributes[START]
    return np.asarray((starts != UNKNOWN_TIME) & (block.times != UNKNOWN_TIME) & (starts <= block.times))


@dataclass(frozen=True, eq=False)
class _Overlaps:
    """Noisy numbers of events that follow the event before, or begin before it ended.

    They count the events of cases but their first, in cases: of all in the first row, and then by activity."""

    follow: FloatArray
    overlap: FloatArray
    scale: float
    """Scale of the Laplace noise, or of such noise that varies as much."""

    def shares(self, expected: FloatArray) -> FloatArray:
        """Return the part of each activity's events that overlaps.

        It is drawn to that of all activities as far as noise explains the difference (DerSimonian, Laird 1986).
        ``expected`` has what the activities have of all cases of the release.
        """
        cases = max(float(self.follow[0] + self.overlap[0]), self.scale)
        common = min(max(float(self.overlap[0]) / cases, 0.0), 1.0)
        # The release need not have as many cases as the log.
        sizes = np.maximum(expected * cases / max(float(expected.sum()), 1e-9), 1e-9)
        raw = np.clip(self.overlap[1:] / sizes, 0.0, 1.0)
        variance = 2 * self.scale**2 / sizes**2
        weight = 1 / variance
        apart = float((weight * (raw - common) ** 2).sum()) - (len(raw) - 1)
        between = max(0.0, apart / max(float(weight.sum() - (weight**2).sum() / weight.sum()), 1e-18))
        return np.asarray(common + between / (between + variance) * (raw - common))


def _query_overlaps(price: Price, cases: Repeated) -> _Overlaps:
    """Return how many events follow the event before, and how many overlap it.

    A case adds 1 to each of two tables, shared out among its events; what is rounded off is lost."""
    size = len(cases.labels) + 1

    def features(block: Cases) -> Triples:
        known = _has_both_times(block)
        known[block.offsets[:-1][block.lengths > 0]] = False
        known[1:] &= block.times[:-1] != UNKNOWN_TIME
        at = np.flatnonzero(known)
        rows, code = block.owners[at], np.where(block.codes[at] < 0, size - 1, block.codes[at])
        overlap = 1 * (block.attributes[START][at] < block.times[at - 1])
        each = _ONE // np.bincount(rows, minlength=len(block))[rows]
        return np.tile(rows, TABLES), np.concatenate([overlap, 2 + 2 * code + overlap]), np.tile(each, TABLES)

    sums = price.sums(
        features,
        2 + 2 * size,
        TABLES * _ONE,
        TABLES**0.5 * _ONE,
        alphabet=cases.labels,
        codings=(Coding(START, moments=True),),
        purpose="events-overlapping",
    ).reshape(-1, 2)
    return _Overlaps(sums[:, 0] / _ONE, sums[:, 1] / _ONE, TABLES / price.epsilon(TABLES, TABLES**0.5))


# Drawing ------------------------------------------------------------------------------------------------------------


def _place_work(
    took: Histograms, events: ReleasedRows, overlaps: _Overlaps, block: CaseBlock, times: IntArray
) -> tuple[IntArray, IntArray]:
    """Return the seconds by which each released event moves, and those that it takes."""
    cases, rng = block.sequences, block.rng
    codes, size = cases.codes.astype(np.int64), len(cases.labels) + 1
    seconds = np.floor(took.drawn(events.placed(_keys(cases.codes), size), rng))
    at = directly_following(cases.offsets, len(codes))
    gaps, code, owner = (times[at] - times[at - 1]) / _SECOND, codes[at], block.owners[at]
    expected = np.asarray(np.bincount(code, 1 / (cases.lengths[owner] - 1), minlength=size), dtype=np.float64)
    wanted = np.round(overlaps.shares(expected) * np.bincount(code, minlength=size)).astype(np.int64)
    drawn = _exchange_seconds(seconds[at], gaps, code, wanted, rng)
    longer = np.zeros(len(codes))
    longer[at], seconds[at] = _make_room(drawn, gaps, _too_long(drawn, gaps, code, wanted, rng), owner, len(cases))
    whole = cases.lengths[cases.lengths > 0]
    firsts = cases.offsets[:-1][cases.lengths > 0]
    moves = np.cumsum(longer)
    # To the nearest second, halves always up: gaps of whole seconds stay 0 or more.
    moved = np.floor(moves - np.repeat(moves[firsts], whole) + 0.5).astype(np.int64)
    lasting = np.floor(seconds).astype(np.int64)
    since = times // _SECOND + moved
    lasting[at] = np.minimum(lasting, since - np.repeat(since[firsts] - lasting[firsts], whole))[at]
    return moved, lasting


def _too_long(
    seconds: FloatArray, gaps: FloatArray, codes: IntArray, wanted: IntArray, rng: np.random.Generator
) -> BoolArray:
    """Return True for events that take longer than their gaps though they should not.

    They are chosen at random."""
    over = rng.permutation(np.flatnonzero(seconds > gaps))
    found = np.zeros(len(seconds), dtype=np.bool_)
    found[over[_rank(codes[over], len(wanted)) >= wanted[codes[over]]]] = True
    return found


def _make_room(
    seconds: FloatArray, gaps: FloatArray, too_long: BoolArray, owner: IntArray, cases: int
) -> tuple[FloatArray, FloatArray]:
    """Return by how much gaps become longer or shorter, and what events then take.

    The changes of a case add up to 0. Events that are too long for their gaps share the waiting of the others, in
    proportion, as far as there is any.
    """
    need = np.where(too_long, seconds - gaps, 0.0)
    waiting = np.maximum(gaps - seconds, 0.0)
    wanted, there = (np.bincount(owner, of_each, minlength=cases) for of_each in (need, waiting))
    given = np.minimum(wanted, there)
    more, less = (np.divide(given, of, out=np.zeros(cases), where=of > 0)[owner] for of in (wanted, there))
    longer = need * more - waiting * less
    return longer, np.where(too_long, gaps + need * more, seconds)


def _exchange_seconds(
    seconds: FloatArray, gaps: FloatArray, codes: IntArray, wanted: IntArray, rng: np.random.Generator
) -> FloatArray:
    """Return the seconds, exchanged at random among events of the same code.

    This goes on, for ``ROUNDS`` at most, until of each code about as many as ``wanted`` are longer than their gaps."""
    found = seconds.copy()
    order = np.argsort(codes, kind="stable")
    number = np.bincount(codes, minlength=len(wanted))
    first = np.cumsum(number) - number
    for _ in range(ROUNDS):
        over = found > gaps
        excess = np.bincount(codes[over], minlength=len(wanted)) - wanted
        if not excess.any():
            break
        looking = np.where(excess[codes] > 0, over, ~over & (excess[codes] < 0))
        enough = rng.random(len(codes)) * number[codes] < TRIED * np.abs(excess[codes])
        one = rng.permutation(np.flatnonzero(looking & enough))
        other = order[first[codes[one]] + (rng.random(len(one)) * number[codes[one]]).astype(np.int64)]
        change = 1 * (found[other] > gaps[one]) + (found[one] > gaps[other]) - over[one] - over[other]
        useful = np.flatnonzero(change * np.sign(excess[codes[one]]) < 0)
        one, other = _once(one[useful], other[useful])
        fits = _rank(codes[one], len(wanted)) < np.abs(excess[codes[one]])
        one, other = one[fits], other[fits]
        found[one], found[other] = found[other], found[one]
    return found


def _rank(codes: IntArray, size: int) -> IntArray:
    """Return for each number how many of the same there are before it."""
    order, number = np.argsort(codes, kind="stable"), np.bincount(codes, minlength=size)
    rank = np.empty(len(codes), dtype=np.int64)
    rank[order] = np.arange(len(codes)) - np.repeat(np.cumsum(number) - number, number)
    return rank


def _once(one: IntArray, other: IntArray) -> tuple[IntArray, IntArray]:
    """Return the pairs of which neither place is in a pair before."""
    both = np.stack([one, other], axis=1).ravel()
    _, first, of_place = np.unique(both, return_index=True, return_inverse=True)
    new = (first[of_place] == np.arange(len(both))).reshape(-1, 2).all(axis=1)
    return one[new], other[new]
