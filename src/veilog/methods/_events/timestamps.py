"""Times for the events of any release of variants, epsilon-differentially private beside the release itself.

The questions, with their shares of the epsilon for times (evolve's design; a case's contributions are bounded before
anything is added up):

- gaps between directly following events, all pairs together, on 14 public log-scaled bins, at most 6 a case;
- gaps for each pair of the release, on the same bins; the rarer the pair is in the release and the bin in the answer
  before, the heavier a gap counts, so that the noise drowns less of what is rare; a case counts at most half of what
  one of the release does on average;
- the duration of the case, on the same bins;
- hours of the day and days of the week of a case's events, one hour and one day a case, shared out among its events;
- the week in which a case starts, in a declared window; without a window this share goes to the gaps.

The rest is post-processing: the distribution of a pair leans on those of pairs with its second or its first activity,
and these on all pairs, as far as noise drowns them (:mod:`veilog.methods._events.gap_shapes`); gaps are drawn bin by
bin from public shapes, spread evenly over the distribution of their pair; of several drawn courses of a case one is
kept so that durations fit their histogram; inside bins of hours and more, busy times of the week are preferred.

Missing timestamps and gaps below 0 contribute nothing. Cases that start outside a declared window count in no week.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from veilog._typing import FloatArray, IntArray
from veilog.errors import ParameterError
from veilog.logs.variants import Sequences
from veilog.methods._events.gap_shapes import BINS, GUESS, bins_of, draw_gaps, estimated, least_squares, slopes
from veilog.methods.method import advised
from veilog.privacy.cases import UNKNOWN_TIME, Cases
from veilog.privacy.curator import Curator
from veilog.privacy.domain import Window
from veilog.privacy.mechanisms.noise import generator

__all__ = ["MADE_UP_WINDOW", "released_times"]

Triples = tuple[IntArray, IntArray, IntArray]

MADE_UP_WINDOW: Window = (
    datetime.datetime(2000, 1, 3, tzinfo=datetime.UTC),
    datetime.datetime(2001, 1, 1, tzinfo=datetime.UTC),
)
"""Where cases start when no window is declared: the 52 weeks from a Monday on, evenly."""

GAPS_A_CASE = 6
"""In the answer on all pairs together."""
PART_OF_A_CASE = (0.5, 3.0)
"""In the answer on single pairs a case counts at most the first part of what one of the release does on average: long
cases count less, which bends means, but the noise is small. Where the noise is no matter, up to the second part."""
SMALL_LOG = 1_000
"""Below this epsilon times number of released cases the first part holds; the part grows with the square root of it."""
RARE_PAIRS, RARE_BINS = 0.35, 0.5
"""A gap counts the pair's frequency in the release, and the bin's in the log, to the power of minus this."""
RAREST_BIN = 0.003
LEAST_FOUND = 0.05
"""Of the gaps that the release lets expect at least this part is assumed, however low the noisy answer."""
GUESS_DOUBT = 0.01
"""Standard deviation at which the public guess of how all gaps are spread counts beside the noisy answers."""
FINEST = 64
"""The lightest gap counts this many, so that weights are whole numbers."""
SHARES = {
    "pairs": Fraction(80, 100),
    "all": Fraction(4, 100),
    "duration": Fraction(4, 100),
    "hours": Fraction(6, 100),
    "weeks": Fraction(6, 100),
}
RESOLUTION = 1024
MOST_PAIRS = 2_000
"""So many pairs, the most frequent of the release, have gaps of their own; the others share those of all pairs."""
COURSES = 6
"""Courses drawn for each case, of which one is kept."""
MOST_WEIGHT = 5.0
"""A course is preferred or avoided for its duration by at most this factor."""
PLACES = 6
"""Places drawn inside a bin of hours and more, of which one is kept."""
FROM_BIN = 7
"""Bins from 3 hours on are wide enough to choose the time of day."""
MOST_WEEKS = 5_300
ENOUGH = 1_000
"""Below this epsilon times number of cases, times are rough."""

_SECOND = 1_000_000
_HOUR, _DAY, _WEEK = 3_600, 86_400, 604_800
_MONDAY = 4 * _DAY
"""1970-01-05, the first Monday of the clock."""
_ONE = 2_520
"""One hour and one day a case, in so many parts."""


def released_times(
    curator: Curator,
    epsilon: Fraction,
    cases: Sequences,
    *,
    window: Window | None,
    remark: Callable[[str], None] = lambda text: None,
) -> IntArray:
    """Microseconds since 1970 UTC for every event of released cases; ``window`` None: starts in a made-up year."""
    if len(cases) == 0 or len(cases.codes) == 0:
        raise ParameterError("The release has no events, so there are no times to give.", parameter="times")
    _check(window)
    rng = generator(curator.randomness)
    shares = dict(SHARES)
    if not (cases.lengths >= 2).any():
        shares["hours"] += shares.pop("pairs") + shares.pop("all") + shares.pop("duration")
    if window is None:
        shares["pairs" if "pairs" in shares else "hours"] += shares.pop("weeks")
    cost = {name: epsilon * share for name, share in shares.items()}
    gaps = _gaps(curator, cost["pairs"], cost["all"], cases) if "pairs" in cost else _NO_GAPS
    durations = _durations(curator, cost["duration"]) if "duration" in cost else np.ones(BINS)
    hours = _hours(curator, cost["hours"])
    weeks = np.full(52, 1 / 52) if window is None else _weeks(curator, cost["weeks"], window)
    first, last = window or MADE_UP_WINDOW
    _remarks(remark, float(epsilon), len(cases), window)
    bins = _courses(gaps, cases, least_squares(durations), rng)
    starts = _starts(len(cases), weeks, hours, int(first.timestamp()), int(last.timestamp()), rng)
    return _walk(starts, bins, gaps, cases, hours, rng) * _SECOND


def _check(window: Window | None) -> None:
    if window is not None and _number_of_weeks(window) > MOST_WEEKS:
        raise ParameterError(
            f"The window holds {_number_of_weeks(window)} weeks; at most {MOST_WEEKS} are supported.",
            parameter="window",
            advice="Declare a window of the years in which cases start.",
        )


def _remarks(remark: Callable[[str], None], epsilon: float, cases: int, window: Window | None) -> None:
    if window is None:
        remark("No window was declared: cases start evenly over a made-up year (2000). Only gaps and hours are real.")
    if epsilon * cases < ENOUGH:
        remark(
            f"The times are rough: their epsilon, {epsilon:g}, times about {cases:,} cases is below {ENOUGH:,}. "
            f"{advised(ENOUGH / max(1, cases), 'They would need an epsilon of about {} for themselves.')}"
        )


# Gaps ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Gaps:
    """For each released pair a distribution over the bins and the slopes inside them."""

    of_gap: IntArray
    """The pair of each gap of the released cases, in order."""
    q: FloatArray
    steep: FloatArray


_NO_GAPS = _Gaps(np.zeros(0, dtype=np.int64), np.zeros((0, BINS)), np.zeros((0, BINS - 1)))


def _pairs(codes: npt.NDArray[np.integer], offsets: IntArray, size: int) -> tuple[IntArray, IntArray]:
    """The second event of every directly-follows pair, and the pair as one number."""
    second = np.ones(len(codes), dtype=np.bool_)
    second[offsets[:-1][np.diff(offsets) > 0]] = False
    at = np.flatnonzero(second)
    return at, codes[at - 1].astype(np.int64) * size + codes[at]


def _gaps(curator: Curator, epsilon: Fraction, epsilon_all: Fraction, cases: Sequences) -> _Gaps:
    size = len(cases.labels)
    at, keys = _pairs(cases.codes, cases.offsets, size)
    pairs, of_gap, counts = np.unique(keys, return_inverse=True, return_counts=True)
    frequent = np.sort(np.argsort(-counts, kind="stable")[:MOST_PAIRS])
    row = np.full(len(pairs), len(frequent))
    row[frequent] = np.arange(len(frequent))
    pairs, of_gap = pairs[frequent], row[of_gap]

    def of_all(block: Cases) -> Triples:
        rows, bins, _, _ = _known_gaps(block)
        return rows, bins, np.ones(len(rows), dtype=np.int64)

    everything = curator.events.sums(
        of_all, BINS, GAPS_A_CASE, epsilon_all, resolution=RESOLUTION, purpose="gaps of all directly-follows pairs"
    )
    parent, doubt = _shares(everything / RESOLUTION, GAPS_A_CASE / float(epsilon_all))
    weight = _weights(counts[frequent], least_squares(parent), doubt)
    owners = np.repeat(np.arange(len(cases)), cases.lengths)[at]
    in_case = np.bincount(owners, weights=np.append(weight @ least_squares(parent), 0.0)[of_gap], minlength=len(cases))
    least, most = PART_OF_A_CASE
    part = min(least * max(float(epsilon) * len(cases) / SMALL_LOG, 1.0) ** 0.5, most)
    bound = max(round(part * float(in_case[in_case > 0].mean())), 1)

    def of_pairs(block: Cases) -> Triples:
        rows, bins, codes, before = _known_gaps(block)
        key = before * size + codes
        place = np.minimum(np.searchsorted(pairs, key), len(pairs) - 1)
        ours = (before >= 0) & (codes >= 0) & (pairs[place] == key)
        return rows[ours], place[ours] * BINS + bins[ours], weight[place[ours], bins[ours]]

    asked = curator.events.sums(
        of_pairs,
        len(pairs) * BINS,
        bound,
        epsilon,
        alphabet=cases.labels,
        purpose="gaps of released directly-follows pairs",
    ).reshape(-1, BINS)
    clipped = np.minimum(1.0, bound / np.maximum(in_case, 1e-9))
    expected = np.bincount(of_gap, weights=clipped[owners], minlength=len(pairs) + 1)[: len(pairs)]
    # The release need not have as many cases as the log: scale what it lets expect to what was found.
    found = float(asked.sum()) / max(float(expected @ weight @ least_squares(parent)), 1.0)
    expected = np.maximum(expected * max(found, LEAST_FOUND), 1.0)
    own, scales = asked / weight, bound / float(epsilon) / weight
    # What all pairs together have, by both answers and a guess, each as far as its noise lets it count.
    again, doubt_again = _shares(own.sum(axis=0), np.sqrt((scales**2).sum(axis=0)))
    trust = [1 / doubt**2, 1 / doubt_again**2, np.full(BINS, 1 / GUESS_DOUBT**2)]
    parent = least_squares(np.average([parent, again, GUESS], axis=0, weights=trust))
    q = estimated(own, expected, scales, (pairs % size, pairs // size), parent)
    q = np.concatenate([q, parent[None, :]])
    return _Gaps(of_gap, q, slopes(q))


def _shares(noisy: FloatArray, scale: float | FloatArray) -> tuple[FloatArray, FloatArray]:
    """Each bin's share of noisy masses, and the scale of its noise."""
    scales = np.broadcast_to(np.asarray(scale, dtype=np.float64), noisy.shape)
    total = max(float(noisy.sum()), float(np.sqrt((scales**2).sum())))
    return noisy / total, scales / total


def _weights(counts: IntArray, of_bins: FloatArray, doubt: FloatArray) -> IntArray:
    """What a gap of each pair and bin counts, from public and noisy frequencies: more where there are few."""
    often = np.maximum(of_bins, np.maximum(doubt, RAREST_BIN))
    rare = np.outer((counts / counts.max()) ** -RARE_PAIRS, (often / often.max()) ** -RARE_BINS)
    return np.asarray(np.round(FINEST * rare), dtype=np.int64)


def _known_gaps(block: Cases) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Of each gap between two known times, not below 0: its case, its bin, its second and first activity."""
    at, _ = _pairs(block.codes, block.offsets, 1)
    at = at[(block.times[at] != UNKNOWN_TIME) & (block.times[at - 1] != UNKNOWN_TIME)]
    at = at[block.times[at] >= block.times[at - 1]]
    return block.owners[at], bins_of(block.times[at] - block.times[at - 1]), block.codes[at], block.codes[at - 1]


# Durations, hours and weeks -----------------------------------------------------------------------------------------


def _durations(curator: Curator, epsilon: Fraction) -> FloatArray:
    """How many cases of at least two events have a duration in each bin, with noise."""

    def features(block: Cases) -> Triples:
        rows = np.flatnonzero(block.lengths >= 2)
        first, last = block.times[block.offsets[rows]], block.times[block.offsets[rows + 1] - 1]
        known = (first != UNKNOWN_TIME) & (last != UNKNOWN_TIME)
        rows, first, last = rows[known], first[known], last[known]
        rows, took = rows[last >= first], (last - first)[last >= first]
        return rows, bins_of(took), np.ones(len(rows), dtype=np.int64)

    return curator.events.sums(features, BINS, 1, epsilon, purpose="durations of cases").astype(np.float64)


def _hours(curator: Curator, epsilon: Fraction) -> FloatArray:
    """How busy each of the 168 hours of a week is (mean 1): hour of the day times day of the week."""

    def features(block: Cases) -> Triples:
        known = np.flatnonzero(block.times != UNKNOWN_TIME)
        owners = block.owners[known]
        part = _ONE // np.bincount(owners, minlength=len(block))[owners]
        seconds = block.times[known] // _SECOND - _MONDAY
        cells = np.concatenate([seconds // _HOUR % 24, 24 + seconds // _DAY % 7])
        return np.concatenate([owners, owners]), cells, np.concatenate([part, part])

    asked = curator.events.sums(features, 31, 2 * _ONE, epsilon, purpose="hours and days of the week, in 1/2520") / _ONE
    variance = 2 * (2 / float(epsilon)) ** 2
    hours, days = _shrunk(asked[:24], variance), _shrunk(asked[24:], variance)
    busy = np.outer(days, hours).ravel()
    return np.asarray(busy / busy.mean())


def _number_of_weeks(window: Window) -> int:
    return -(-int((window[1] - window[0]).total_seconds()) // _WEEK)


def _weeks(curator: Curator, epsilon: Fraction, window: Window) -> FloatArray:
    """How many cases start in each week of the window, as a distribution."""
    number, first, last = _number_of_weeks(window), int(window[0].timestamp()), int(window[1].timestamp())

    def features(block: Cases) -> Triples:
        rows = np.flatnonzero(block.lengths > 0)
        times = block.times[block.offsets[rows]]
        inside = (times >= first * _SECOND) & (times < last * _SECOND)
        weeks = (times[inside] // _SECOND - first) // _WEEK
        return rows[inside], weeks, np.ones(len(weeks), dtype=np.int64)

    asked = curator.events.sums(features, number, 1, epsilon, purpose="weeks in which cases start")
    return _shrunk(asked.astype(float), 2 / float(epsilon) ** 2)


def _shrunk(noisy: FloatArray, variance: float) -> FloatArray:
    """Noisy numbers drawn together as far as noise alone would spread them (James, Stein 1961), as a distribution."""
    mean = max(float(noisy.mean()), 1e-9)
    spread = float(((noisy - mean) ** 2).sum())
    kept = max(0.0, 1 - (len(noisy) - 3) * variance / spread) if len(noisy) > 3 and spread > 0 else 1.0
    return least_squares(mean + kept * (noisy - mean))


# Drawing ------------------------------------------------------------------------------------------------------------


def _pick(q: FloatArray, rows: IntArray, u: FloatArray) -> IntArray:
    """The bin for each row number and each number in [0, 1), from its row of distributions."""
    reached = np.cumsum(q, axis=1)
    return np.asarray(np.minimum((reached[rows] < (u * reached[rows, -1])[:, None]).sum(axis=1), q.shape[1] - 1))


def _spread(u: FloatArray, rows: IntArray, rng: np.random.Generator) -> FloatArray:
    """Numbers in [0, 1) of the same order in each row, spread evenly: one in each of n equal parts."""
    order = np.lexsort((u, rows))
    number = np.bincount(rows)
    first = np.cumsum(number) - number
    rank = np.empty(len(rows))
    rank[order] = np.arange(len(rows)) - first[rows[order]]
    return np.asarray((rank + rng.random(len(rows))) / number[rows])


def _courses(gaps: _Gaps, cases: Sequences, durations: FloatArray, rng: np.random.Generator) -> IntArray:
    """The bin of each gap: of several courses of a case one is kept, so that durations fit their histogram.

    The gaps of a pair are then moved, in their order, to even places of its distribution: however few they are, their
    mean is near to its.
    """
    at, _ = _pairs(cases.codes, cases.offsets, 1)
    owners = np.repeat(np.arange(len(cases)), cases.lengths)[at]
    drawn = [rng.random(len(owners)) for _ in range(COURSES)]
    took = [
        np.bincount(owners, weights=draw_gaps(bins, gaps.of_gap, gaps.steep, rng), minlength=len(cases))
        for bins in (_pick(gaps.q, gaps.of_gap, u) for u in drawn)
    ]
    ends = np.stack([bins_of((t * _SECOND).astype(np.int64)) for t in took], axis=1)
    imagined = np.bincount(ends[np.unique(owners)].ravel(), minlength=BINS).astype(float)
    imagined /= max(imagined.sum(), 1.0)
    wanted = np.clip(durations / np.maximum(imagined, 1e-9), 1 / MOST_WEIGHT, MOST_WEIGHT)
    chosen = _pick(wanted[ends], np.arange(len(cases)), rng.random(len(cases)))
    u = np.stack(drawn)[chosen[owners], np.arange(len(owners))]
    return _pick(gaps.q, gaps.of_gap, _spread(u, gaps.of_gap, rng))


def _starts(
    number: int, weeks: FloatArray, hours: FloatArray, first: int, last: int, rng: np.random.Generator
) -> IntArray:
    """Seconds at which cases start: a week of the window, then an hour of the week."""
    begins = first + rng.choice(len(weeks), size=number, p=weeks) * _WEEK
    wanted = rng.choice(168, size=number, p=hours / hours.sum()) * _HOUR + rng.integers(0, _HOUR, size=number)
    starts = begins + (wanted - (begins - _MONDAY)) % _WEEK
    late = starts >= last  # the last week of the window may be cut
    rest = np.minimum(last - begins, _WEEK)
    return np.asarray(np.where(late, begins + (rng.random(number) * rest).astype(np.int64), starts), dtype=np.int64)


def _walk(
    starts: IntArray, bins: IntArray, gaps: _Gaps, cases: Sequences, hours: FloatArray, rng: np.random.Generator
) -> IntArray:
    """Seconds of every event, from the first of each case on."""
    times = np.zeros(len(cases.codes), dtype=np.int64)
    going = np.flatnonzero(cases.lengths > 0)
    times[cases.offsets[going]] = starts[going]
    at, _ = _pairs(cases.codes, cases.offsets, 1)
    gap_of = np.full(len(times), -1, dtype=np.int64)
    gap_of[at] = np.arange(len(at))
    for position in range(1, int(cases.lengths.max(initial=0))):
        going = going[cases.lengths[going] > position]
        events = cases.offsets[going] + position
        gap = gap_of[events]
        before = times[events - 1]
        seconds = draw_gaps(bins[gap], gaps.of_gap[gap], gaps.steep, rng).astype(np.int64)
        wide = np.flatnonzero(bins[gap] >= FROM_BIN)
        seconds[wide] = _at_busy_hours(before[wide], bins[gap[wide]], gaps.of_gap[gap[wide]], gaps.steep, hours, rng)
        times[events] = before + seconds
    return times


def _at_busy_hours(
    before: IntArray, bins: IntArray, rows: IntArray, steep: FloatArray, hours: FloatArray, rng: np.random.Generator
) -> IntArray:
    """Of several gaps inside each bin one, by how busy the hour is to which it leads."""
    drawn = np.stack([draw_gaps(bins, rows, steep, rng) for _ in range(PLACES)], axis=1).astype(np.int64)
    busy = hours[(before[:, None] + drawn - _MONDAY) // _HOUR % 168] + 1e-9
    chosen = _pick(busy, np.arange(len(bins)), rng.random(len(bins)))
    return np.asarray(drawn[np.arange(len(bins)), chosen])
