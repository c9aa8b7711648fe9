"""Times for the events of any release of variants, differentially private beside the release itself.

The questions (a case's contributions are bounded before anything is added up; shares of the epsilon: ``SHARES``):

- gaps between directly following events, all pairs together, on public log-scaled bins, at most 6 a case;
- gaps for each pair of the release, on parts of these bins, on the same or on several at once, by how many gaps it has;
  the rarer the pair is in the release, the heavier a gap counts, so that the noise drowns less of what is rare; a case
  counts at most half of what one of the release does on average, in large logs more;
- how long the case lasts, on octaves or parts of them, and on fewer bins by its cell, a kind of case by its activities;
- which part of its duration each gap takes, by its place in the case, and in large logs also by activity and by pair;
- hours of the day, of few cases parts of it, and days of the week of a case's events, shared out among these, and of
  its first event;
- whether all its times are whole days, hours or minutes;
- in a declared window, where in it the case starts, twice: in few parts of it, and in more where many cases start; and
  how that hangs together with its duration.

With a delta all of them have Gaussian noise where that is narrower (:mod:`.prices`). What is
bounded is then the L2 norm of what a case adds: by 6 in the first question, in the second by the same part of what
cases of the release have.

The rest is post-processing. The distribution of a pair leans on that of its second activity and this on all gaps, as
far as noise drowns them. Gaps are drawn from them, spread evenly over the distribution of their pair, and handed out
so that cases which last long have the long ones. Then they are stretched to the durations of cases, the longest most,
and moved to the parts of durations that are known, while pairs that have little of the time keep it, and the gaps of
pairs that were asked on parts of bins are as long as they were drawn. In the end events after gaps of hours are moved
to busy hours near by, and times to whole days, hours or minutes where those of the log are.

Missing timestamps and gaps below 0 contribute nothing. Cases that start outside a declared window count in no
part of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from veilog._typing import FloatArray, IntArray
from veilog.errors import ParameterError
from veilog.logs.variants import Repeated
from veilog.messages import Message
from veilog.methods._events.fits import least_squares
from veilog.methods._events.orders import CaseBlock, in_blocks, picked, spread
from veilog.methods._events.times.calendar import (
    MADE_UP_WINDOW,
    asked_starts,
    asked_together,
    check,
    drawn_starts,
)
from veilog.methods._events.times.durations import asked_durations, drawn_durations
from veilog.methods._events.times.gap_bins import GapBins
from veilog.methods._events.times.hours import DAYTIMES, UNITS, WeekClock, asked_hours, asked_unit, of_others
from veilog.methods._events.times.prices import Price, prices
from veilog.methods._events.times.steps import (
    KnownGaps,
    NoisySteps,
    asked_steps,
    directly_following,
    handed_out,
    known_gaps,
    places,
)
from veilog.methods._events.times.weighed import Spread, Things, WeightedHistogram, asked
from veilog.methods.method import advised
from veilog.privacy.asking import Triples
from veilog.privacy.cases import Cases
from veilog.privacy.curator import Curator
from veilog.privacy.domain import Window
from veilog.privacy.mechanisms.noise import generator

GAPS_A_CASE = 6
"""In the answer on all pairs together."""
GUESS_DOUBT = 0.01
"""Standard deviation at which the public guess of how all gaps are spread counts beside the noisy answers."""
FEW = 2_000
SHARES = {
    "all": (4, 4),
    "pairs": (36, 25),
    "durations": (28, 26),
    "kinds": (3, 5),
    "steps": (11, 14),
    "hours": (7, 4),
    "first hours": (2, 2),
    "unit": (2, 1),
    "starts": (3, 8),
    "finer starts": (3, 8),
    "together": (1, 3),
}
"""Hundredths of the epsilon, where it times the released cases is below ``FEW``, and from there on: few cases tell
little of the calendar, but which steps take seconds and which take days."""
RESOLUTION = 1024
WIDE, REACH, NEAR = 10_800, 43_200, 0.3
"""From 3 hours on gaps are long enough to choose the time of day: within half a day and 0.3 of the gap of the plan."""
QUIET, FAR, FAR_NEAR = 0.5, 216_000, 0.75
"""Where that is half as busy as hours are on average, or less: within 60 hours, so that any day has others beside it
that are not of a weekend, and 0.75 of the gap. From a half to twice of each, hours of the day change by at most .03 in
total variation, days of the week by .08, and medians and means of durations by .007 (seven made-up logs, 40 seeds: the
larger, the nearer are hours, and the farther durations)."""
OUTSIDE = 0.05
"""From this part of all cases on it is remarked that they start outside the window. Noise decides more than this does:
where a fifth of 3,000 do, at an epsilon of 0.4, it is remarked in .50 of 200 seeds, from half of this on in .55, from
twice of it in .36; where none does in .02 of them."""
ENOUGH = 1_000
"""Below this epsilon times number of cases, times are rough."""

STANDING_OUT = {
    (True, True): Message("hours-and-weekdays-kept"),
    (True, False): Message("hours-kept-only"),
    (False, True): Message("weekdays-kept-only"),
    (False, False): Message("hours-and-weekdays-evened"),
}
"""What is remarked of hours of the day and days of the week, by whether an answer about each is more than noise."""

_SECOND = 1_000_000
_NO_DELTA = Fraction(0)
_L2_OVER_L1 = {
    **dict.fromkeys(SHARES, 1.0),
    **dict.fromkeys(("hours", "first hours"), math.hypot(*DAYTIMES) / sum(DAYTIMES)),
}
"""The bound of what a case adds to each question in the L2 norm over that in the L1 norm, at most."""


def released_times(
    curator: Curator,
    epsilon: Fraction,
    cases: Repeated,
    *,
    window: Window | None,
    delta: Fraction = _NO_DELTA,
    remark: Callable[[Message], None] = lambda text: None,
) -> IntArray:
    """Microseconds since 1970 UTC for every event of released cases; ``window`` None: starts in a made-up year.

    They cost epsilon, and delta where the noise is Gaussian.
    """
    if cases.events == 0:
        raise ParameterError("times-without-events", parameter="times")
    check(window)
    rng = generator(curator.randomness)
    followed = bool((cases.lengths >= 2).any())
    pairs = _pairs(cases)
    of_pairs = {"pairs": pairs.ratio} if len(pairs.keys) else {}
    shares = _shares_of(epsilon, len(cases), followed=followed, windowed=window is not None)
    cost = prices(curator, epsilon, delta, shares, {**_L2_OVER_L1, **of_pairs})
    if followed:
        gaps = _gaps(cost["pairs"], cost["all"], pairs, cases.labels)
        durations = asked_durations(cost["durations"], cost["kinds"], cases, rng)
        rows, lasting, kind = drawn_durations(durations, cases, rng)
        steps = asked_steps(cost["steps"], gaps.keys, cases.labels, lasting)
    hours = asked_hours(cost["hours"], len(cases))
    first_hours = asked_hours(cost["first hours"], len(cases), hours) if followed else hours
    unit = asked_unit(cost["unit"], len(cases))
    starts_in = window or MADE_UP_WINDOW
    parts, outside = np.ones(1), 0.0
    if window is not None:
        parts, outside = asked_starts(cost["starts"], cost["finer starts"], window, len(cases))
    told = (hours.of_day or first_hours.of_day or unit == UNITS[0], hours.of_week or first_hours.of_week)
    _remarks(remark, float(epsilon), len(cases), window, outside, told)
    if followed:
        beyond = max(0, round(durations.beyond))
        remark(Message("durations-bounded", hours=durations.longest / 3_600, cases=beyond))
    starts = drawn_starts(len(cases), parts, WeekClock.of(first_hours.week), starts_in, rng)
    times = np.zeros(cases.events, dtype=np.int64)
    seconds = times.view(np.float64)  # until the times are known: there may be many
    if followed:
        wanted = _Lasting(rows, lasting, kind)
        took = np.zeros(len(cases))

        def courses(block: CaseBlock) -> None:
            seconds[block.events] = _courses(gaps, block, wanted.within(block.cases), steps)
            took[block.cases] = np.bincount(block.owners, seconds[block.events], minlength=len(block.sequences))

        in_blocks(courses, cases, rng)
        if window is not None:
            starts = asked_together(cost["together"], starts, took, window).matched(starts, took, rng)

    clock = WeekClock.of(of_others(hours, first_hours, cases.lengths).week)
    longest = durations.longest // unit * unit if followed else 0

    def walk(block: CaseBlock) -> None:
        found = _walk(starts[block.cases], seconds[block.events], block, clock) // unit * unit
        # Busy hours near by may be later than the bound lets a case end.
        last = starts[block.cases][block.owners] // unit * unit + longest
        times[block.events] = np.minimum(found, last) * _SECOND

    in_blocks(walk, cases, rng)
    return times


def _shares_of(epsilon: Fraction, cases: int, *, followed: bool, windowed: bool) -> dict[str, Fraction]:
    """Return the share of each question that is asked, where cases are ``followed`` by a second event or none is, and
    start in a window or not."""
    many = epsilon * cases >= FEW
    shares = {name: Fraction(parts[many], 100) for name, parts in SHARES.items()}
    if not followed:
        of_gaps = ("pairs", "all", "durations", "kinds", "steps", "first hours")
        shares["hours"] += sum(shares.pop(name) for name in of_gaps)
    if not windowed:
        of_windows = ("starts", "finer starts", "together")
        shares["pairs" if followed else "hours"] += sum(shares.pop(name) for name in of_windows)
    elif not followed:
        shares["finer starts"] += shares.pop("together")
    return shares


def _remarks(
    remark: Callable[[Message], None],
    epsilon: float,
    cases: int,
    window: Window | None,
    outside: float,
    told: tuple[bool, bool],
) -> None:
    """Say what is not real by what was declared and by noisy answers; ``told`` are hours of the day and days of the
    week where an answer is more than noise."""
    if window is None and told[0]:
        remark(Message("window-undeclared-hours-real"))
    elif window is None and told[1]:
        remark(Message("window-undeclared-weekdays-real"))
    elif window is None:
        remark(Message("window-undeclared"))
    remark(STANDING_OUT[told])
    if outside >= OUTSIDE:
        remark(Message("window-leaves-cases-outside", value=100 * outside))
    if epsilon * cases < ENOUGH:
        remark(
            Message(
                "times-rough",
                epsilon=epsilon,
                cases=cases,
                enough=ENOUGH,
                advised=advised(ENOUGH / max(1, cases), "times-would-need"),
            )
        )


# Gaps ---------------------------------------------------------------------------------------------------------------


def _pairs(cases: Repeated) -> WeightedHistogram:
    """The directly-follows pairs of the release (first times number of activities plus second), and their gaps."""
    codes, size = cases.distinct.codes.astype(np.int64), len(cases.labels)
    at = directly_following(cases.distinct.offsets, len(codes))
    owners = np.repeat(np.arange(len(cases.distinct)), cases.distinct.lengths)[at]
    at, owners = (part[cases.counts[owners] > 0] for part in (at, owners))
    return WeightedHistogram.of(codes[at - 1] * size + codes[at], owners, cases.counts)


def _gaps(price: Price, price_all: Price, pairs: WeightedHistogram, labels: tuple[str, ...]) -> Spread:
    size = len(labels)

    def told(block: Cases) -> tuple[IntArray, IntArray, IntArray]:
        at, rows = known_gaps(block)
        place = places(pairs.keys, block.codes[at - 1], block.codes[at], size)
        return rows, place, block.times[at] - block.times[at - 1]

    things = Things(told, labels, "gaps-of-released-pairs")
    return asked(price, pairs, things, lambda bins: _all_gaps(price_all, bins)).leaning(pairs.keys % size)


def _all_gaps(price: Price, bins: GapBins) -> FloatArray:
    """Return how the gaps of all pairs are spread."""

    def of_all(block: Cases) -> Triples:
        at, rows = known_gaps(block)
        return rows, bins.told(block.times[at] - block.times[at - 1]), np.ones(len(rows), dtype=np.int64)

    sums = price.sums(of_all, len(bins), GAPS_A_CASE, GAPS_A_CASE, resolution=RESOLUTION, purpose="gaps-of-pairs")
    found, doubt = _shares(sums / RESOLUTION, GAPS_A_CASE / price.epsilon())
    trust = [1 / doubt**2, np.full(len(bins), 1 / GUESS_DOUBT**2)]
    return least_squares(np.average([found, bins.guess], axis=0, weights=trust))


def _shares(noisy: FloatArray, scale: float) -> tuple[FloatArray, FloatArray]:
    """Each bin's share of noisy masses, and the scale of its noise."""
    scales = np.full(noisy.shape, scale)
    total = max(float(noisy.sum()), float(np.sqrt((scales**2).sum())))
    return noisy / total, scales / total


# Drawing ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Lasting:
    """How many seconds cases last, and of what kinds they are: those of two events or more, by their places."""

    rows: IntArray
    seconds: FloatArray
    kind: IntArray

    def within(self, cases: slice) -> _Lasting:
        """Return those of some cases, by their places among these."""
        ours = slice(*np.searchsorted(self.rows, [cases.start, cases.stop]).tolist())
        return _Lasting(self.rows[ours] - cases.start, self.seconds[ours], self.kind[ours])


def _courses(gaps: Spread, block: CaseBlock, lasting: _Lasting, steps: NoisySteps) -> FloatArray:
    """Seconds from the event before to each event: gaps of the pairs, stretched to the durations of cases.

    The gaps of a pair stand at even places of its distribution: however few they are, their mean is near to its. Then
    of the cases of each kind the k-th longest course gets the k-th longest duration, and the gaps of each pair are
    handed out so that they fit these, so that both are bent as little as can be; and each pair gets the part of the
    durations that it should have.
    """
    cases, rng = block.sequences, block.rng
    at = directly_following(cases.offsets, len(cases.codes))
    owners = block.owners[at]
    codes = cases.codes.astype(np.int64)
    where = KnownGaps.of(codes[at - 1], codes[at], owners, gaps.keys, len(cases.labels))
    bins = picked(gaps.q, where.pair, spread(rng.random(len(at)), where.pair, rng))
    seconds = gaps.bins.drawn(bins, where.pair, gaps.steep, rng)
    seconds = np.where(seconds == 0, 1e-3 * rng.random(len(seconds)), seconds)
    took = np.bincount(owners, weights=seconds, minlength=len(cases))
    wanted = np.zeros(len(cases))
    longer = np.lexsort((took[lasting.rows], lasting.kind))
    wanted[lasting.rows[longer]] = lasting.seconds[np.lexsort((lasting.seconds, lasting.kind))]
    seconds = handed_out(seconds, wanted, where.pair, owners)
    found = np.zeros(len(cases.codes))
    found[at] = steps.stretched(seconds, wanted, where, gaps.known, gaps.fine)
    return found


def _walk(starts: IntArray, seconds: FloatArray, block: CaseBlock, clock: WeekClock) -> IntArray:
    """Seconds since 1970 of every event; after gaps of hours and more at busy times near to those that were drawn."""
    cases = block.sequences
    since = np.cumsum(seconds)
    firsts = cases.offsets[:-1][cases.lengths > 0]
    planned = starts[block.owners] + since - np.repeat(since[firsts], cases.lengths[cases.lengths > 0])
    times = np.zeros(len(planned), dtype=np.int64)
    going = np.flatnonzero(cases.lengths > 0)
    times[firsts] = starts[going]
    for position in range(1, int(cases.lengths.max(initial=0))):
        going = going[cases.lengths[going] > position]
        events = cases.offsets[going] + position
        times[events] = times[events - 1] + seconds[events].astype(np.int64)
        wide = events[seconds[events] >= WIDE]
        planned_at, before = planned[wide], times[wide - 1]
        reach = np.minimum(REACH, NEAR * seconds[wide])
        first, last = _shown(clock, planned_at, reach, before)
        # A weekend is longer than that: where hardly anything is near, as far as the days beside it.
        quiet = last - first < QUIET * 2 * reach / 3_600
        reach = np.minimum(FAR, FAR_NEAR * seconds[wide[quiet]])
        first[quiet], last[quiet] = _shown(clock, planned_at[quiet], reach, before[quiet])
        times[wide] = np.maximum(clock.when(first + block.rng.random(len(wide)) * (last - first)), before)
    return times


def _shown(clock: WeekClock, planned: FloatArray, reach: FloatArray, before: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return what the clock shows so long before and after what is planned, but not before the event before."""
    early = np.maximum(planned - reach, before)
    return clock.reached(early), clock.reached(np.maximum(planned + reach, early))
