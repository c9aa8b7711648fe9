"""Estimates of disclosure where the candidates are too many to visit.

A variant v is drawn with probability proportional to the number of patterns of the requested size that it matches. One
of these patterns is then drawn uniformly. So pattern x comes up with probability m(x) / M, where m(x) is the number of
variants that match it and M is the sum over all variants. It is kept with probability 1 / m(x). The patterns kept are
independent and uniform over the candidates, whatever their number. Their mean is unbiased, and M times the share kept
estimates the number of candidates. Most of the rejected are rejected after a few variants, because 1 / m(x) only falls.

Weights keep a candidate with a further probability proportional to its weight.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from veilog._typing import FloatArray, IntArray
from veilog.errors import ParameterError
from veilog.logs.eventlog import EventLog
from veilog.logs.variants import Variants
from veilog.measures.disclosure.spaces import occurrences, surprise, surprise_by_first_occurrences

Interval = tuple[float, float]
Patterns = npt.NDArray[np.int64]
"""Array of one pattern per row: its activities, ascending unless order matters."""

_PAIRS = 1 << 20
"""Number of pairs of pattern and variant to match at once."""
_COUNTED = 1 << 26
"""Largest number of (activity, position) pairs for which the pairs before each are counted: 256 MB."""
_SEARCH = 20
"""Work of one binary search, in the units of :func:`veilog.measures.disclosure.patterns.levels`."""
_ENOUGH = 30
"""Number of candidates below which there is no interval."""


@dataclass(frozen=True, eq=False)
class Estimate:
    """Means over candidates drawn uniformly (or by weight), with 95 % intervals."""

    sampled: int
    candidates: float
    candidates_interval: Interval
    case_disclosure: float | None
    case_interval: Interval | None
    trace_disclosure: float | None
    trace_interval: Interval | None
    fewest: int
    """Fewest cases that match a drawn candidate: at least the true minimum."""
    worst_trace: float
    unique: int
    """Number of cases that some drawn candidate matches alone: at most the true one."""


_PRESENT = 1 << 26
"""Most pairs of an activity and a variant for which the matcher notes if they go together."""


class Matcher:
    """Matches of variants and patterns, by sorted pairs of activity and position.

    The pairs are counted beforehand where the log has few activities, and searched otherwise.
    """

    ANY = -2
    """Place in a pattern that stands for no event."""

    def __init__(self, variants: Variants, *, ordered: bool) -> None:
        self._ordered = ordered
        self._span = len(variants.codes) + len(variants) + 1
        self.start = variants.offsets[:-1] + np.arange(len(variants))
        self._end = self.start + variants.lengths
        self.place = np.arange(len(variants.codes)) + np.repeat(np.arange(len(variants)), variants.lengths)
        keys = np.sort(variants.codes * np.int64(self._span) + self.place)
        beyond = np.iinfo(np.int64).max // 2
        self._keys = np.concatenate((keys, np.full(1, beyond)))
        self._before = self._count_pairs(variants)
        self._present: npt.NDArray[np.bool_] | None = None
        self._first: npt.NDArray[np.int32] | None = None
        self._last: npt.NDArray[np.int32] | None = None
        if len(variants.labels) * len(variants) <= _PRESENT:
            self._present = np.zeros((len(variants.labels), len(variants)), dtype=np.bool_)
            owner = np.repeat(np.arange(len(variants)), variants.lengths)
            self._present[variants.codes, owner] = True
            if ordered and self._present.size <= _PRESENT >> 4:
                self._last = np.zeros(self._present.shape, dtype=np.int32)
                self._first = np.full(self._present.shape, self._span, dtype=np.int32)
                np.maximum.at(self._last, (variants.codes, owner), self.place.astype(np.int32))
                np.minimum.at(self._first, (variants.codes, owner), self.place.astype(np.int32))

    def _count_pairs(self, variants: Variants) -> npt.NDArray[np.int32] | None:
        """Return the number of pairs before each possible one; None if these are too many."""
        activities = len(variants.labels)
        if not 0 < activities * self._span <= _COUNTED:
            return None
        before = np.zeros(activities * self._span + 1, dtype=np.int32)
        before[self._keys[:-1] + 1] = 1
        return np.cumsum(before, out=before)

    def pairs(self, patterns: Patterns, variants: IntArray) -> tuple[IntArray, IntArray]:
        """Return (row of the pattern, variant) for every match."""
        able = np.full((len(patterns), -(-len(variants) // 8)), 255, dtype=np.uint8)  # a bit a variant
        if self._present is not None:  # most variants lack an activity of a pattern
            present = np.packbits(self._present[:, variants], axis=1)
            for step in range(patterns.shape[1]):
                some = np.flatnonzero(patterns[:, step] >= 0)
                able[some] &= present[patterns[some, step]]
        if self._first is not None and self._last is not None:  # or have two only the other way round
            first, last = self._first[:, variants], self._last[:, variants]
            for before, after in itertools.pairwise(patterns.T):
                some = np.flatnonzero((before >= 0) & (after >= 0))
                both, place = np.unique(before[some] * len(first) + after[some], return_inverse=True)
                follows = first[both // len(first)] < last[both % len(first)]
                able[some] &= np.packbits(follows, axis=1)[place]
        bits = np.unpackbits(able, axis=1, count=len(variants)).view(np.bool_)
        which = np.repeat(np.arange(len(bits)), bits.sum(axis=1))
        variant = variants[np.flatnonzero(bits) - which * len(variants)]
        fit = self.among(patterns, which, variant)
        return which[fit], variant[fit]

    def among(self, patterns: Patterns, which: IntArray, variant: IntArray) -> IntArray:
        """Return the places of the matching pairs; ``ANY`` matches without an event."""
        place, state, end = np.arange(len(which)), self.start[variant], self._end[variant]
        for step in range(patterns.shape[1]):
            base = (patterns[:, step] * self._span)[which]
            index: IntArray | npt.NDArray[np.int32]
            if self._before is None:
                index = np.searchsorted(self._keys, base + state)
            else:
                index = self._before.take(base + state, mode="clip")
            if not self._ordered:
                index = np.minimum(index + self._copies(patterns, step)[which], len(self._keys) - 1)
            found = self._keys[index] - base
            ok = found < end
            if (free := patterns[:, step] == self.ANY).any():
                ok |= free[which]
                found = np.where(free[which], state - 1, found)
            kept = np.flatnonzero(ok)
            place, which, end = place[kept], which[kept], end[kept]
            state = found[kept] + 1 if self._ordered else state[kept]
        return place

    @staticmethod
    def _copies(patterns: Patterns, step: int) -> IntArray:
        """Return how often the activity at ``step`` occurs before it."""
        return np.asarray((patterns[:, :step] == patterns[:, step : step + 1]).sum(axis=1))


class _Sequences:
    """Uniform draws of distinct subsequences of one size from each variant.

    f(s, j) counts the distinct subsequences of length j of the events after state s. With a the next event there and s'
    the next one of the same activity, f(s, j) = f(s + 1, j) + f(s + 1, j - 1) - f(s' + 1, j - 1). A leftmost match
    takes its next event p with probability proportional to f(p + 1, j - 1), unless p's activity occurs before it.
    """

    def __init__(self, variants: Variants, matcher: Matcher, size: int) -> None:
        self._size, self._codes, self._lengths = size, variants.codes, variants.lengths
        self._start, place = matcher.start, matcher.place
        states = len(variants.codes) + len(variants)
        order = np.argsort(variants.codes, kind="stable")
        owner = np.repeat(np.arange(len(variants)), variants.lengths)
        same = (np.diff(variants.codes[order]) == 0) & (np.diff(owner[order]) == 0)
        later, earlier = place[order[1:][same]], place[order[:-1][same]]
        again = np.full(states, -1, dtype=np.int64)
        again[earlier] = later
        self._before = np.full(states, -1, dtype=np.int64)
        self._before[later] = earlier
        self._owner = np.repeat(np.arange(len(variants)), variants.lengths + 1)
        self._rest = np.zeros((size + 1, states))
        total = self._count(variants, again)
        self.totals: FloatArray = total

    def _count(self, variants: Variants, again: IntArray) -> FloatArray:
        """Fill ``rest[j, s]`` and return f(first, size).

        ``rest[j, s]`` is f(p + 1, j - 1) summed over the events p from state s on.
        """
        lengths = variants.lengths
        f = np.ones(len(self._before))
        for j in range(1, self._size + 1):
            shorter, f = f, np.zeros(len(self._before))
            taken = np.zeros(len(self._before))
            taken[:-1] = shorter[1:]
            repeated = np.where(again >= 0, taken[again], 0.0)
            rest = self._rest[j]
            for after in range(1, int(lengths.max(initial=0)) + 1):
                members = np.arange(np.searchsorted(lengths, after), len(lengths))
                state = self._start[members] + lengths[members] - after
                rest[state] = rest[state + 1] + taken[state]
                f[state] = f[state + 1] + (taken[state] - repeated[state])
        return np.asarray(f[self._start])

    def draw(self, owners: IntArray, rng: np.random.Generator) -> Patterns:
        out = np.zeros((len(owners), self._size), dtype=np.int64)
        state = self._start[owners].copy()
        for step in range(self._size):
            left = self._size - step
            todo = np.arange(len(owners))
            while len(todo):
                event = self._event(state[todo], left, rng)
                fits = self._before[event] < state[todo]
                chosen, rows = event[fits], todo[fits]
                out[rows, step] = self._codes[chosen - self._owner[chosen]]
                state[rows] = chosen + 1
                todo = todo[~fits]
        return out

    def _event(self, state: IntArray, left: int, rng: np.random.Generator) -> IntArray:
        """Return an event p from the state on, in proportion to f(p + 1, left - 1)."""
        owner = self._owner[state]
        end = self._start[owner] + self._lengths[owner]
        column = np.full(len(state), left)
        return _bisect(self._rest.T, column, state, end, rng.random(len(state)) * self._rest[left][state])


class _Multisets:
    """Uniform draws of multisets of one size from each variant.

    Sets are multisets with at most one of each activity. With the activities of a variant in order, h(t, j) counts the
    multisets of size j of the activities from t on:
    h(t, j) = sum over i up to the occurrences of t's activity of h(t + 1, j - i).
    """

    def __init__(self, variants: Variants, size: int, most: int) -> None:
        owner, self._activity, number = occurrences(variants)
        self._number = np.minimum(number, most)
        kinds = np.bincount(owner, minlength=len(variants))
        self._size, self._kinds = size, kinds
        self._first = np.concatenate(([0], np.cumsum(kinds)[:-1])) if len(kinds) else np.zeros(0, dtype=np.int64)
        # One slot an activity and one at the end of each variant.
        self._slot = self._first + np.arange(len(variants))
        self._h = np.zeros((len(owner) + len(variants), size + 1))
        self._h[self._slot + kinds, 0] = 1.0
        order = np.argsort(kinds, kind="stable")
        ascending = kinds[order]
        for after in range(1, int(kinds.max(initial=0)) + 1):
            members = order[np.searchsorted(ascending, after) :]
            slot = self._slot[members] + kinds[members] - after
            number_here = self._number[self._first[members] + kinds[members] - after]
            for i in range(min(size, most) + 1):
                fits = number_here >= i
                self._h[slot[fits], i:] += self._h[slot[fits] + 1, : size + 1 - i]
        self.totals: FloatArray = self._h[self._slot, size]

    def draw(self, owners: IntArray, rng: np.random.Generator) -> Patterns:
        out = np.zeros((len(owners), self._size), dtype=np.int64)
        slot = self._slot[owners].copy()
        end = slot + self._kinds[owners]
        left = np.full(len(owners), self._size)
        rows = np.arange(len(owners))
        while len(rows):
            # The multisets whose first activity is t are h(t, j) - h(t + 1, j): h is its own cumulative sum.
            j, at = left[rows], slot[rows]
            first = _bisect(self._h, j, at, end[rows], rng.random(len(rows)) * self._h[at, j])
            most = np.minimum(j, self._number[first - owners[rows]])
            taken = self._draw_count(first, j, most, rng)
            for i in range(int(taken.max())):
                some = taken > i
                out[rows[some], self._size - j[some] + i] = self._activity[first[some] - owners[rows[some]]]
            left[rows] = j - taken
            slot[rows] = first + 1
            rows = rows[left[rows] > 0]
        return out

    def _draw_count(self, slot: IntArray, left: IntArray, most: IntArray, rng: np.random.Generator) -> IntArray:
        """Return how often an activity is taken: i in proportion to h(slot + 1, left - i)."""
        sums = np.zeros((len(slot), int(most.max()) + 1))
        for i in range(1, sums.shape[1]):
            sums[:, i] = sums[:, i - 1] + np.where(i <= most, self._h[slot + 1, np.maximum(left - i, 0)], 0.0)
        target = rng.random(len(slot)) * sums[:, -1]
        return np.asarray(np.minimum((sums <= target[:, None]).sum(axis=1), most))


def _bisect(falling: FloatArray, column: IntArray, low: IntArray, high: IntArray, target: FloatArray) -> IntArray:
    """Return the last place in [low, high) whose falling value exceeds the target."""
    while True:
        wide = high - low > 1
        if not wide.any():
            return low
        middle = np.where(wide, (low + high) // 2, low)
        above = falling[middle, column] > target
        low, high = np.where(wide & above, middle, low), np.where(wide & ~above, middle, high)


def estimate(
    variants: Variants,
    background: str,
    size: int,
    *,
    weights: FloatArray,
    rng: np.random.Generator,
    samples: int,
    work_limit: float,
    arrangements: bool = False,
    report: Callable[[float], None] | None = None,
) -> Estimate:
    """Estimate disclosure against a background from about ``samples`` candidates.

    Draws until ``samples`` candidates are kept or ``work_limit`` is spent; both stop at the end of a round, and neither
    looks at what the candidates disclose.
    """
    matcher = Matcher(variants, ordered=background == "sequence")
    source, ways = _source(variants, matcher, background, size)
    arranged = arrangements and background == "multiset"
    heaviest = float(weights.max()) * (math.factorial(size) if arranged else 1.0)
    cumulative = np.cumsum(source.totals)
    counts = variants.counts.astype(np.float64)
    surprises = surprise_by_first_occurrences(variants) if arranged else surprise(variants.counts)
    chunks = _chunks(rng.permutation(len(variants)))
    kept: list[FloatArray] = []
    work, drawn, uniform, found = 0.0, 0, 0, 0
    unique: set[int] = set()
    batch = 512
    while found < samples and (work < work_limit or drawn == 0):
        point = rng.random(batch) * ways
        owners = np.minimum(np.searchsorted(cumulative, point, side="right"), len(counts) - 1)
        patterns = source.draw(owners, rng)
        bar = 1.0 / np.maximum(rng.random(batch), 1e-300)
        rows, sums, spent = _matches(matcher, patterns, bar, chunks, counts, surprises)
        work += spent * _SEARCH * size
        drawn += batch
        uniform += len(rows)
        weight = weights[patterns[rows]].mean(axis=1)
        if arranged:
            weight = weight * _arrangements(patterns[rows])
        chosen = rng.random(len(rows)) * heaviest < weight
        rows, sums = rows[chosen], sums[chosen]
        found += len(rows)
        kept.append(sums)
        unique.update(sums[sums[:, 1] == 1.0, 3].astype(np.int64).tolist())
        if report is not None:
            report(min(1.0, max(found / samples, work / work_limit)))
        # As many as seem to be missing, but never so many that a round could not be stopped.
        batch = int(np.clip((samples - found) * 1.1 * drawn / max(1, found), 256, 8192))
    return _means(np.concatenate(kept), ways, uniform, drawn, len(unique))


def _source(variants: Variants, matcher: Matcher, background: str, size: int) -> tuple[_Sequences | _Multisets, float]:
    """Return the source of the candidates, and the number of ways to draw from it."""
    source: _Sequences | _Multisets
    if background == "sequence":
        source = _Sequences(variants, matcher, size)
    else:
        source = _Multisets(variants, size, 1 if background == "set" else size)
    if not (ways := float(source.totals.sum())):
        raise ParameterError("disclosure-size-without-candidate", parameter="size", size=size)
    if not math.isfinite(ways):
        raise ParameterError("disclosure-candidates-too-many", parameter="size", size=size)
    return source, ways


def _means(sums: FloatArray, ways: float, uniform: int, drawn: int, unique: int) -> Estimate:
    """Return the means over the candidates; ``uniform`` of the ``drawn`` are uniform."""
    n = sums[:, 1]
    trace = np.ones(len(n))
    np.divide(sums[:, 2], n * np.log(np.maximum(n, 1.0)), out=trace, where=n > 1.0)
    case_mean, case_interval = _mean(1.0 / n)
    trace_mean, trace_interval = _mean(np.minimum(trace, 1.0))
    low, high = _wilson(uniform, drawn)
    return Estimate(
        sampled=len(n),
        candidates=ways * uniform / drawn,
        candidates_interval=(ways * low, ways * high),
        case_disclosure=case_mean,
        case_interval=case_interval,
        trace_disclosure=trace_mean,
        trace_interval=trace_interval,
        fewest=int(n.min()) if len(n) else 0,
        worst_trace=float(np.minimum(trace, 1.0).max()) if len(n) else 0.0,
        unique=unique,
    )


def _chunks(order: IntArray) -> list[IntArray]:
    """Return the variants in chunks of growing size: the first rejects most patterns."""
    parts, start, size = [], 0, 16
    while start < len(order):
        parts.append(np.sort(order[start : start + size]))
        start += size
        size = min(4 * size, 1 << 14)
    return parts


def _matches(
    matcher: Matcher,
    patterns: Patterns,
    bar: FloatArray,
    chunks: list[IntArray],
    counts: FloatArray,
    surprises: FloatArray,
) -> tuple[IntArray, FloatArray, int]:
    """Return the patterns that fewer than ``bar`` variants match, and their sums.

    The sums of a pattern are its variants, their cases, their surprises and their numbers.
    """
    alive = np.arange(len(patterns))
    sums = np.zeros((len(patterns), 4))
    spent = 0
    for chunk in chunks:
        step = max(1, _PAIRS // len(chunk))
        for low in range(0, len(alive), step):
            rows = alive[low : low + step]
            which, variant = matcher.pairs(patterns[rows], chunk)
            spent += len(rows) * len(chunk)
            for column, values in enumerate((None, counts, surprises, None)):
                given = variant.astype(np.float64) if column == 3 else None if values is None else values[variant]
                sums[rows, column] += np.bincount(which, weights=given, minlength=len(rows))
        alive = alive[sums[alive, 0] < bar[alive]]
    return alive, sums[alive], spent


def _arrangements(patterns: Patterns) -> FloatArray:
    """Return the number of orders of each multiset: size! / product of factorials."""
    ways = np.ones(len(patterns))
    for step in range(patterns.shape[1]):
        ways *= (step + 1) / ((patterns[:, :step] == patterns[:, step : step + 1]).sum(axis=1) + 1)
    return ways


def _mean(values: FloatArray) -> tuple[float | None, Interval | None]:
    """Return the mean and a Student interval, or None for each with too few values."""
    from scipy.special import stdtrit

    if len(values) == 0:
        return None, None
    mean = float(values.mean())
    if len(values) < _ENOUGH:
        return mean, None
    reach = float(stdtrit(len(values) - 1, 0.975) * values.std(ddof=1) / math.sqrt(len(values)))
    return mean, (max(0.0, mean - reach), min(1.0, mean + reach))


def _wilson(hits: int, trials: int) -> Interval:
    z = 1.959963984540054
    p = hits / trials
    middle = (p + z * z / (2 * trials)) / (1 + z * z / trials)
    reach = z * math.sqrt(p * (1 - p) / trials + z * z / (4 * trials * trials)) / (1 + z * z / trials)
    return max(0.0, middle - reach), min(1.0, middle + reach)


# Uniqueness: the cases that a few randomly chosen points of their trace single out.
#
# S. N. von Voigt, S. A. Fahrenkrog-Petersen, D. Janssen, A. Koschmider, F. Tschorsch, F. Mannhardt, O. Landsiedel, M.
# Weidlich, "Quantifying the re-identification risk of event logs for process mining" (2020): an adversary learns a
# number of randomly chosen points (events) of a case's trace. The uniqueness is the share of cases that are then the
# only one in the log with these points.
#
#     uniqueness = mean over cases of P(the drawn points match no other case)
#
# The points of a case are drawn without replacement, all of them where the trace has no more. Case disclosure counts
# each possible background knowledge once, while uniqueness counts it as often as it occurs. The points here are the
# activities. For points with further attributes, use the variants of a classifier, ``log.variants_by((key, ...))``.

Points = Literal["multiset", "sequence"]
_PAIRS_AT_ONCE = 1 << 20
_Z = 1.959963984540054


@dataclass(frozen=True)
class Uniqueness:
    """Share of unique cases, with a 95 % interval where it rests on random draws."""

    share: float
    interval: Interval | None
    """Interval of the share; None if it is exact, because no trace has more points than the adversary knows."""
    points: int
    draws: int
    """Number of draws of points for each case that could be unique."""


def uniqueness(
    log: EventLog | Variants,
    points: int,
    *,
    background: Points = "sequence",
    draws: int = 100,
    seed: int = 0,
) -> Uniqueness:
    """Return the share of cases that ``points`` random events of theirs single out.

    With the ``background`` "sequence" the adversary knows the order of the points, with "multiset" not. A case that
    shares its variant with another is never unique. For each other case, the share of ``draws`` that single it out is
    an unbiased estimate. The mean over all cases has an interval from the draws alone.
    """
    if background not in get_args(Points):
        raise ParameterError("uniqueness-background-unknown", parameter="background", background=background)
    if isinstance(points, bool) or points < 1:
        raise ParameterError("uniqueness-points-too-few", parameter="points", points=points)
    if draws < 2:
        raise ParameterError("uniqueness-draws-too-few", parameter="draws", draws=draws)
    variants = log if isinstance(log, Variants) else log.variants
    if variants.cases == 0:
        raise ParameterError("uniqueness-without-cases", parameter="log")
    matcher = Matcher(variants, ordered=background == "sequence")
    rng = np.random.default_rng(seed)
    total = spread = 0.0
    sampled = False
    for owner in np.flatnonzero((variants.counts == 1) & (variants.lengths > 0)).tolist():
        codes = variants.codes[variants.offsets[owner] : variants.offsets[owner + 1]].astype(np.int64)
        whole = len(codes) <= points
        hits = _singled_out(
            matcher, _draw_activities(codes, points, 1 if whole else draws, background, rng), len(variants)
        )
        share = float(hits.mean())
        total += share
        if not whole:
            sampled = True
            # Drawn towards one half a little: no hit in all draws does not prove that there is none.
            likely = (hits.sum() + 0.5) / (draws + 1)
            spread += likely * (1 - likely) / draws
    mean = total / variants.cases
    reach = _Z * math.sqrt(spread) / variants.cases
    interval = (max(0.0, mean - reach), min(1.0, mean + reach)) if sampled else None
    return Uniqueness(mean, interval, points, draws)


def _draw_activities(
    codes: IntArray, points: int, draws: int, background: Points, rng: np.random.Generator
) -> IntArray:
    """Return the activities of randomly chosen events, one draw per row."""
    if len(codes) <= points:
        chosen = np.arange(len(codes))[None, :]
    else:
        chosen = np.sort(np.argpartition(rng.random((draws, len(codes))), points, axis=1)[:, :points], axis=1)
    patterns: IntArray = codes[chosen]
    return patterns if background == "sequence" else np.sort(patterns, axis=1)


def _singled_out(matcher: Matcher, patterns: IntArray, variants: int) -> IntArray:
    """Return for each draw 1 if only one variant (its own) has the points, else 0."""
    found = np.zeros(len(patterns), dtype=np.int64)
    everyone = np.arange(variants)
    step = max(1, _PAIRS_AT_ONCE // variants)
    for start in range(0, len(patterns), step):
        part = patterns[start : start + step]
        which, _ = matcher.pairs(part, everyone)
        found[start : start + step] = np.bincount(which, minlength=len(part))
    return np.asarray(found == 1, dtype=np.int64)
