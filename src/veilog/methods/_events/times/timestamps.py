"""Times for the events of any release of variants, differentially private.

Their guarantee is separate from that of the release itself. A case's contributions are bounded before anything is added
up. The queries are (shares of the epsilon: ``SHARES``):

- how long the case lasts, on octaves or parts of them, and on fewer bins by its cell, a kind of case by its activities;
- gaps for each pair of the release, on octaves or parts of them or on several at once, by how many gaps it has; a case
  counts at most what one of the release does on average;
- which part of its duration each gap takes, by its place in the case;
- hours of the day, of few cases parts of it, and days of the week of a case's events, shared out among these;
- whether all its times are whole days, hours or minutes;
- in a declared window, where in it the case starts, twice: in few parts of it, and in more where many cases start; and
  how that goes with its duration.

With a delta all of them have Gaussian noise where that makes none wider (:mod:`.prices`). The L2 norm of what a case
adds is then bounded.

The rest is post-processing. Gaps are drawn from the likely distribution of their pair, spread evenly over it. Of the
cases of each kind the k-th longest course gets the k-th longest duration. Its gaps are moved along their distributions
until they add up to that, and stretched to the parts of durations that are known. In the end events after gaps of hours
are moved to busy hours near by. Times are moved to whole days, hours or minutes where those of the log are. No case
lasts longer than a bound.

Missing timestamps and gaps below 0 contribute nothing. Cases that start outside a declared window count in no part of
it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from veilog._typing import FloatArray, IntArray
from veilog.errors import ParameterError
from veilog.logs.variants import Repeated
from veilog.messages import Message
from veilog.methods._events.cells import cells_told
from veilog.methods._events.orders import CaseBlock, run_in_blocks
from veilog.methods._events.times.calendar import (
    MADE_UP_WINDOW,
    CalendarTotals,
    asked_starts,
    asked_together,
    check,
    drawn_starts,
)
from veilog.methods._events.times.durations import (
    FEWEST_KINDS,
    DurationsByKind,
    NoisySteps,
    asked_durations,
    directly_following,
    gaps_of,
    query_steps,
)
from veilog.methods._events.times.histogram import Histograms, ReleasedRows, query_rows
from veilog.methods._events.times.hours import (
    DAYTIMES,
    UNITS,
    WEEK_HOURS,
    WeekClock,
    hour_of_week,
    query_hours,
    query_unit,
)
from veilog.methods._events.times.prices import Price, prices
from veilog.methods._events.times.prior import PriorTimes
from veilog.methods.method import advised
from veilog.privacy.cases import Cases
from veilog.privacy.curator import Curator
from veilog.privacy.domain import Window
from veilog.privacy.mechanisms.noise import generator
from veilog.rules.times import TimeRule, direct_bounds

SHARES = {
    "durations": 30,
    "kinds": 8,
    "pairs": 14,
    "steps": 17,
    "hours": 6,
    "unit": 3,
    "starts": 4,
    "finer starts": 12,
    "together": 6,
}
"""Relative parts of the epsilon; the queries that are asked use all of it."""
WIDE, REACH, NEAR = 10_800, 43_200, 0.3
"""From 3 hours on gaps are long enough to choose the time of day: within half a day of the plan, and within 0.3 of the
gap."""
QUIET, FAR, FAR_NEAR = 0.5, 216_000, 0.75
"""If hours near a plan are half as busy as hours are on average, or less, the time is chosen within 60 hours of the
plan, and within 0.75 of the gap. Any day is then next to others that are not of a weekend. Without this rule hours
of the day are 4.4 in place of 3.6 distances of halves on BPIC 2013, and 66 in place of 55 to 58 on traffic fines (10
seeds). The three numbers were chosen on such logs."""
CLOCK_CASES, CLOCK_ROUNDS = 20_000, 2
"""Most cases of a block on which the clock is fitted, and rounds of this. Without it circadian distances are 3.0 in
place of 2.8 on Sepsis, 3.5 in place of 3.4 on BPIC 2013 (10 seeds), and .85 in place of .88 in a synthetic network (5
seeds)."""
OUTSIDE = 0.05
"""Least part of all cases for a warning that they start outside the window. Noise decides more than this does. If a
fifth of 3,000 do, at an epsilon of 0.4, veilog warns in .90 of 200 seeds; from half of this part on in .95, from twice
of it in .74. If none does, it warns in .01 of them."""
ENOUGH = 1_000
"""Least epsilon times number of cases; below it times are rough."""

STANDING_OUT = {
    (True, True): Message("hours-and-weekdays-kept"),
    (True, False): Message("hours-kept-only"),
    (False, True): Message("weekdays-kept-only"),
    (False, False): Message("hours-and-weekdays-evened"),
}
"""Messages on hours of the day and days of the week, by whether an answer about each is more than noise."""

_SECOND = 1_000_000
_NO_DELTA = Fraction(0)
_L2_OVER_L1 = {
    **dict.fromkeys(SHARES, 1.0),
    "hours": math.hypot(*DAYTIMES) / sum(DAYTIMES),
}
"""L2 bound of what a case adds to each query over its L1 bound, at most."""


def released_times(curator: Curator, epsilon: Fraction, cases: Repeated, **asked: Any) -> IntArray:
    """Return microseconds since 1970 UTC for every event of released cases.

    The arguments are those of :func:`query_times`."""
    return query_times(curator, epsilon, cases, **asked).times


def query_times(
    curator: Curator,
    epsilon: Fraction,
    cases: Repeated,
    *,
    window: Window | None,
    delta: Fraction = _NO_DELTA,
    remark: Callable[[Message], None] = lambda text: None,
    rules: Sequence[TimeRule] = (),
    prior: PriorTimes | None = None,
) -> TimesModel:
    """Return times for every event of released cases, and a model of those of others.

    Without a ``window`` cases start in a synthetic year. The queries use epsilon, and delta where the noise is
    Gaussian. Gaps are drawn between the bounds of public ``rules``, and may be bent beyond them again, to the durations
    of cases.
    """
    if cases.events == 0:
        raise ParameterError("times-without-events", parameter="times")
    check(window)
    rng = generator(curator.randomness)
    shares, pairs = _plan_queries(cases, epsilon, windowed=window is not None, known=prior is not None)
    of_pairs = {"pairs": pairs.ratio} if "pairs" in shares else {}
    cost = prices(curator, epsilon, delta, shares, {**_L2_OVER_L1, **of_pairs}, prior)
    courses, lasting = None, np.zeros(0)
    if "durations" in shares:
        durations = asked_durations(cost["durations"], cost.get("kinds"), cases, rng)
        lasting = durations.drawn(cases, rng)
        gaps = _gaps(cost["pairs"], pairs, cases.labels, durations.longest) if "pairs" in shares else None
        bounds = direct_bounds(rules, cases.labels) if rules else None
        courses = _CaseCourses(durations, gaps, pairs, query_steps(cost["steps"], lasting), bounds)
    hours = query_hours(cost["hours"], len(cases))
    unit = query_unit(cost["unit"], len(cases))
    parts, outside = np.ones(1), 0.0
    if window is not None:
        parts, outside = asked_starts(cost["starts"], cost["finer starts"], window, len(cases))
    told, clock = (hours.of_day or unit == UNITS[0], hours.of_week), WeekClock.of(hours.week)
    _remarks(remark, float(epsilon), len(cases), window, outside, told)
    if courses is not None:
        beyond = max(0, round(durations.beyond))
        remark(Message("durations-bounded", hours=durations.longest / 3_600, cases=beyond))
        if not durations.apart:
            remark(Message("durations-alike"))
        if courses.gaps is None:
            remark(Message("gaps-not-asked"))
        if durations.believed is not None:
            remark(Message("times-lean-on-prior", part=durations.believed))
    model = TimesModel(courses, parts, clock, window or MADE_UP_WINDOW, unit)

    def together(starts: IntArray, took: FloatArray) -> None:
        if courses is not None and window is not None:
            model.together = asked_together(cost["together"], starts, took, window)

    model.times = model.drawn(cases, lasting, rng, together)
    return model


@dataclass(frozen=True, eq=False)
class _CaseCourses:
    """Noisy answers about the durations and gaps of cases."""

    durations: DurationsByKind
    gaps: Histograms | None
    """None where noise would leave nothing of them."""
    pairs: ReleasedRows
    steps: NoisySteps
    bounds: tuple[FloatArray, FloatArray] | None


@dataclass(eq=False)
class TimesModel:
    """Times of the released cases, and the model of times of any others.

    The model has public facts and noisy answers."""

    courses: _CaseCourses | None
    """None where no released case has a second event."""
    parts: FloatArray
    """Shares of cases that start in equal parts of the window."""
    clock: WeekClock
    window: Window
    unit: int
    """Seconds that times are multiples of."""
    together: CalendarTotals | None = None
    """Shares of starts for each group of durations; None if this was not asked."""
    times: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """Times of the events of the released cases."""

    def of(self, cases: Repeated, rng: np.random.Generator) -> IntArray:
        """Return times for the events of other cases with the same labels."""
        lasting = np.zeros(0) if self.courses is None else self.courses.durations.drawn(cases, rng)
        return self.drawn(cases, lasting, rng)

    def drawn(
        self,
        cases: Repeated,
        lasting: FloatArray,
        rng: np.random.Generator,
        begun: Callable[[IntArray, FloatArray], None] = lambda starts, took: None,
    ) -> IntArray:
        """Return times for the events of cases.

        Those of two events or more last as long as ``lasting``. ``begun`` is called with the starts and durations of
        the cases, before these are matched.
        """
        known = self.courses
        starts = drawn_starts(len(cases), self.parts, self.clock, self.window, rng)
        times = np.zeros(cases.events, dtype=np.int64)
        seconds = times.view(np.float64)  # until the times are known: there may be many
        if known is not None:
            kind = known.durations.kinds(cases)
            wanted = _Lasting(np.flatnonzero(cases.lengths >= 2), lasting, kind)
            took = np.zeros(len(cases))

            def courses(block: CaseBlock) -> None:
                seconds[block.events] = _courses(known, block, wanted.within(block.cases))
                took[block.cases] = np.bincount(block.owners, seconds[block.events], minlength=len(block.sequences))

            run_in_blocks(courses, cases, rng)
            begun(starts, took)
            if self.together is not None:
                starts = self.together.matched(starts, took, rng)

        unit, longest = self.unit, 0 if known is None else known.durations.longest // self.unit * self.unit

        def walk(block: CaseBlock) -> None:
            ours = starts[block.cases], seconds[block.events], block
            found = _walk(*ours, _fitted_clock(*ours, self.clock)) // unit * unit
            # Busy hours near by may be later than the bound lets a case end.
            last = starts[block.cases][block.owners] // unit * unit + longest
            times[block.events] = np.minimum(found, last) * _SECOND

        run_in_blocks(walk, cases, rng)
        return times


def _plan_queries(
    cases: Repeated, epsilon: Fraction, *, windowed: bool, known: bool
) -> tuple[dict[str, Fraction], ReleasedRows]:
    """Return the shares of the queries that are asked, and the pairs with rows.

    Queries about things that no case has are not asked. By the released cases queries are left out, too, of which noise
    would leave nothing. These are gaps if most pairs would have no row, and durations by kind if all cases would be of
    one kind. If a prior is ``known``, however little is asked corrects it.
    """
    followed = int((cases.lengths >= 2).sum())
    asked = {"hours", "unit"}
    asked |= {"durations", "kinds", "pairs", "steps"} if followed else set()
    asked |= {"starts", "finer starts"} if windowed else set()
    asked |= {"together"} if followed and windowed else set()
    pairs = _pairs(cases, math.inf if known else float(epsilon * _share("pairs", asked | {"pairs"})))
    if not known:
        asked -= set() if pairs.tell else {"pairs"}
        cells = cells_told(followed * float(epsilon * _share("kinds", asked | {"kinds"})))
        asked -= set() if cells >= FEWEST_KINDS else {"kinds"}
    return {name: _share(name, asked) for name in SHARES if name in asked}, pairs


def _share(name: str, asked: set[str]) -> Fraction:
    return Fraction(SHARES[name], sum(SHARES[one] for one in asked))


def _remarks(
    remark: Callable[[Message], None],
    epsilon: float,
    cases: int,
    window: Window | None,
    outside: float,
    told: tuple[bool, bool],
) -> None:
    """Warn of times that are not real, by what was declared and by noisy answers.

    ``told`` is True for hours of the day and days of the week if an answer is more than noise."""
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


def _pairs(cases: Repeated, epsilon: float) -> ReleasedRows:
    """Return the directly-follows pairs of the release, and their gaps.

    An answer at this epsilon shows where these gaps are."""
    at = directly_following(cases.distinct.offsets, len(cases.distinct.codes))
    owners = np.repeat(np.arange(len(cases.distinct)), cases.distinct.lengths)[at]
    return ReleasedRows.of(_keys(cases.distinct.codes, at, len(cases.labels)), owners, cases, epsilon)


def _keys(codes: npt.NDArray[np.integer], at: IntArray, size: int) -> IntArray:
    """Return numbers of the pairs of activities that end at these events.

    Activities of no released case have the code -1."""
    whole = codes.astype(np.int64) + 1
    return np.asarray(whole[at - 1] * (size + 1) + whole[at])


def _gaps(price: Price, pairs: ReleasedRows, labels: tuple[str, ...], longest: int) -> Histograms:
    size = len(labels)

    def told(block: Cases) -> tuple[IntArray, IntArray, IntArray]:
        at, rows = gaps_of(block)
        place = pairs.placed(_keys(block.codes, at, size), (size + 1) ** 2)
        return rows, place, block.times[at] - block.times[at - 1]

    return query_rows(price, pairs, told, longest, alphabet=labels, purpose="gaps-of-released-pairs")


# Drawing ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Lasting:
    """Seconds and kinds of the cases of two events or more, by their places."""

    rows: IntArray
    seconds: FloatArray
    kind: IntArray

    def within(self, cases: slice) -> _Lasting:
        """Return those of some cases, by their places among these."""
        ours = slice(*np.searchsorted(self.rows, [cases.start, cases.stop]).tolist())
        return _Lasting(self.rows[ours] - cases.start, self.seconds[ours], self.kind[ours])


def _courses(known: _CaseCourses, block: CaseBlock, lasting: _Lasting) -> FloatArray:
    """Return seconds from the event before to each event.

    They are gaps of the pairs, moved to the durations of cases, or any where gaps were not asked. Of the cases of each
    kind the k-th longest course gets the k-th longest duration. So both are bent as little as can be. Each part of a
    case gets the part of the durations that it should have.
    """
    cases, rng = block.sequences, block.rng
    at, size = directly_following(cases.offsets, len(cases.codes)), len(cases.labels)
    owners, before, after = block.owners[at], cases.codes[at - 1], cases.codes[at]
    bounds = None if known.bounds is None else (known.bounds[0][before, after], known.bounds[1][before, after])
    rows = known.pairs.placed(_keys(cases.codes, at, size), (size + 1) ** 2)
    places = rng.random(len(at)) if known.gaps is None else known.gaps.places(rows, rng, bounds)
    seconds = places if known.gaps is None else known.gaps.at(rows, places)
    took = np.bincount(owners, weights=seconds, minlength=len(cases))
    wanted = np.zeros(len(cases))
    longer = np.lexsort((took[lasting.rows], lasting.kind))
    wanted[lasting.rows[longer]] = lasting.seconds[np.lexsort((lasting.seconds, lasting.kind))]
    if known.gaps is not None:
        seconds = known.gaps.adding_up(rows, places, owners, wanted)
    if bounds is not None:
        seconds = np.clip(seconds, *bounds)
    took = np.bincount(owners, weights=seconds, minlength=len(cases))
    # Gaps that take no time stay so, unless all gaps of their case do.
    seconds += np.where(took == 0, rng.random(len(cases)), 0.0)[owners] * rng.random(len(seconds))
    found = np.zeros(len(cases.codes))
    found[at] = known.steps.stretched(seconds, wanted, owners)
    return found


def _walk(starts: IntArray, seconds: FloatArray, block: CaseBlock, clock: WeekClock) -> IntArray:
    """Return the seconds since 1970 of every event.

    After gaps of hours and more, events are at busy times near to those that were drawn."""
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
        first, last = _clock_limits(clock, planned_at, reach, before)
        # A weekend is longer than that: where few busy hours are near, reach as far as the days next to it.
        quiet = last - first < QUIET * 2 * reach / 3_600
        reach = np.minimum(FAR, FAR_NEAR * seconds[wide[quiet]])
        first[quiet], last[quiet] = _clock_limits(clock, planned_at[quiet], reach, before[quiet])
        times[wide] = np.maximum(clock.when(first + block.rng.random(len(wide)) * (last - first)), before)
    return times


def _fitted_clock(starts: IntArray, seconds: FloatArray, block: CaseBlock, clock: WeekClock) -> WeekClock:
    """Return a clock by which events come in the busy hours and days of ``clock``.

    By this one itself they would be spread more evenly: after short gaps they do not move."""
    few = min(len(block.sequences), CLOCK_CASES)
    cases = block.sequences.rows(0, few)
    sample = CaseBlock(block.rng, slice(0, few), slice(0, len(cases.codes)), cases)
    wanted = np.diff(clock.hours).reshape(7, 24)
    busy, each = wanted.copy(), 1 / cases.lengths[sample.owners]
    for _ in range(CLOCK_ROUNDS):
        times = _walk(starts[:few], seconds[: len(each)], sample, WeekClock.of(busy.ravel()))
        found = np.bincount(hour_of_week(times), weights=each, minlength=WEEK_HOURS).reshape(7, 24)
        found *= wanted.sum() / max(found.sum(), 1.0)
        for axis in (0, 1):
            least = 0.05 * wanted.sum() / wanted.shape[1 - axis]
            factor = (wanted.sum(axis=axis) + least) / (found.sum(axis=axis) + least)
            busy *= factor if axis == 0 else factor[:, None]
    return WeekClock.of(busy.ravel())


def _clock_limits(
    clock: WeekClock, planned: FloatArray, reach: FloatArray, before: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return the readings of the clock ``reach`` before and after what is planned.

    Neither is before the event before."""
    early = np.maximum(planned - reach, before)
    return clock.reached(early), clock.reached(np.maximum(planned + reach, early))
