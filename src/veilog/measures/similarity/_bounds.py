"""Bounds of an optimal transport between sequences that would take too long.

Every sequence of the one list, a row, knows some near ones of the other, its columns. An auction among these finds a
plan, whose cost is the upper end, and prices v of the columns. For any prices, whatever way they were found,

    sum_j b_j v_j + sum_i a_i min_j (c_ij - v_j)   <=   the cost of every plan.

The second sum needs the distances of all pairs. Where there are few enough, the lower end holds for certain. Where
there are more, rows are drawn at random, and it holds but for a chance of :data:`ERROR`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cpdist

from veilog._typing import AnyFloatArray, FloatArray, IntArray
from veilog.logs.edits import Strings, edit_matrix, lengths_of
from veilog.logs.variants import Sequences
from veilog.measures.measure import Progress
from veilog.measures.similarity.distances import CostKind, as_sequences, cost_of
from veilog.measures.similarity.transport import north_west

EXACT_PAIRS = 1 << 20
"""Up to so many pairs of variants the optimum takes no second. A comparison bounds that of more, unless it is to be
exact."""
MOST_PAIRS = 1_000_000_000
"""Up to so many pairs of variants the optimum is found: some minutes of one core. Beyond, it is bounded."""
ERROR = 1e-6
"""The chance that a lower end from some rows alone is too high."""

BOUNDED_BY = 40_000_000
"""Distances in which bounds look for near columns, unless they are given more."""
_SAMPLED_PAIRS = 40_000_000
"""Distances by which prices are held against all columns, or half as many as near columns are looked for in."""
_SCALED_PAIRS = 4_000_000
"""Distances by which the scale of the prices is chosen."""
_ROUNDS = 8
"""In each the rows that are left over choose among the columns that are left over; the rest is laid out in order."""
_BIDDINGS = 2000
_LISTED = 32, 128
"""Near columns that a row knows: a 64th of those it is compared with, between these."""
_BOX, _COLUMN_BOX, _BOXES = 32, 16, 4096
"""Sequences that are compared with the same others; more where there would be more boxes than that."""
_DIMENSIONS, _BUCKETS, _LEARNT = 16, 512, 8192
_STRIP = 1 << 18
"""Costs held at once, so that they stay in the processor's cache."""
_STEP = np.float32(0.02)
"""Step by which a bid exceeds the worth of a column; in a round the plan costs at most as much more."""
_WILLING = 1.5
_CRUMB = 1 / 64
"""A part of a mass below which it is not moved again."""
_FAR = np.float32(9)
"""More than any cost, for columns that are not there."""


@dataclass(frozen=True, eq=False)
class Flows:
    """A plan: how much mass goes from which row to which column."""

    rows: IntArray
    columns: IntArray
    mass: IntArray


@dataclass(frozen=True, eq=False)
class Prices:
    """Prices of columns; each row knows the costs of some of them."""

    values: AnyFloatArray
    known: IntArray
    costs: AnyFloatArray

    @property
    def nearest(self) -> FloatArray:
        """Each row's least cost beyond the price among the columns that it knows."""
        least: FloatArray = (self.costs - self.values[self.known]).min(axis=1).astype(float)
        return least


@dataclass(frozen=True, eq=False)
class TransportProblem:
    """Two lists of sequences, and the masses to move from the rows to the columns."""

    rows: Strings
    columns: Strings
    a: IntArray
    b: IntArray
    progress: Progress | None = None
    pairs: int = BOUNDED_BY
    """Distances in which the first round looks for near columns."""

    def say(self, fraction: float) -> None:
        if self.progress is not None:
            self.progress("Comparing variants", fraction)


def cheap_plan(problem: TransportProblem) -> tuple[Flows, IntArray, Prices]:
    """Return a cheap plan, the edits along each arc, and the first round's prices."""
    a, b = problem.a.astype(np.int64), problem.b.astype(np.int64)
    features = _features(*as_sequences(problem.rows, problem.columns))
    found: list[Flows] = []
    first: Prices | None = None
    for number in range(_ROUNDS):
        some, others = np.flatnonzero(a > _CRUMB * problem.a), np.flatnonzero(b > _CRUMB * problem.b)
        if not len(some) or not len(others):
            break
        near = _near(problem, features, some, others, number)
        flows, prices = auction(a[some], b[others], *near)
        flows = Flows(some[flows.rows], others[flows.columns], flows.mass)
        first = first or prices
        found.append(flows)
        np.subtract.at(a, flows.rows, flows.mass)
        np.subtract.at(b, flows.columns, flows.mass)
        if int(flows.mass.sum()) * _ROUNDS < int(a.sum()):
            break
    i, j, mass = north_west(a[a > 0], b[b > 0])
    found.append(Flows(np.flatnonzero(a)[i], np.flatnonzero(b)[j], mass))
    whole = Flows(*(np.concatenate([getattr(f, name) for f in found]) for name in ("rows", "columns", "mass")))
    assert first is not None, "there is something to move"
    return whole, _distances_of(whole, problem), _scaled(problem, first)


def auction(a: IntArray, b: IntArray, columns: IntArray, costs: AnyFloatArray) -> tuple[Flows, Prices]:
    """Return the flows of rows that outbid others for listed columns, and the prices.

    Every row that has mass left bids for its cheapest column what this is worth to it beyond the second cheapest. A
    column takes the highest bids it has room for; the lowest of them is its price. A row goes without rather than pay
    more than :data:`_WILLING` times what the nearest column costs on average.
    """
    prices = np.zeros(len(b), dtype=np.float32)
    average = float(np.average(np.minimum(costs.min(axis=1), 1), weights=a))
    most = np.float32(_WILLING * max(average, float(_STEP)))
    free, full, touched = a.copy(), b * (1 - _CRUMB), np.zeros(len(b), dtype=bool)
    taken = np.zeros((3, 0), dtype=np.int64)  # row, column, mass
    bids = np.zeros(0, dtype=np.float32)
    for _ in range(_BIDDINGS):
        active = np.flatnonzero(free)
        if not len(active):
            break
        theirs = columns[active]
        w = costs[active] + prices[theirs]
        index = np.arange(len(active)), w.argmin(axis=1)
        least, column = w[index], theirs[index]
        w[theirs == column[:, None]] = _FAR
        bid = prices[column] + np.minimum(w.min(axis=1), most) - least + _STEP
        mass = free[active]
        free[active] = 0
        willing = least < most
        new = np.stack([active, column, mass])[:, willing]
        touched[:] = False
        touched[new[1]] = True
        again = touched[taken[1]]
        rows, at, mass = np.concatenate([taken[:, again], new], axis=1)
        offered = np.concatenate([bids[again], bid[willing]])
        order = np.lexsort((-offered, at))
        rows, at, mass, offered = rows[order], at[order], mass[order], offered[order]
        if not len(at):
            continue
        starts = np.flatnonzero(np.diff(at, prepend=-1))
        got = _room(b[at], mass, starts)
        got[got < _CRUMB * np.minimum(b[at], a[rows])] = 0
        left = mass - got
        more = left >= _CRUMB * a[rows]
        np.add.at(free, rows[more], left[more])
        sold = got > 0
        lowest = np.minimum.reduceat(np.where(sold, offered, np.inf), starts)
        out = np.add.reduceat(got, starts) >= full[at[starts]]
        dearer = at[starts[out]]
        prices[dearer] = np.maximum(prices[dearer], lowest[out])
        taken = np.concatenate([taken[:, ~again], np.stack([rows, at, got])[:, sold]], axis=1)
        bids = np.concatenate([bids[~again], offered[sold]])
    return Flows(*taken), Prices(-prices, columns, costs)


def _room(room: IntArray, mass: IntArray, starts: IntArray) -> IntArray:
    """Return the part of each mass that has room; in each part the first ones first."""
    before = np.cumsum(mass) - mass
    before -= np.repeat(before[starts], np.diff(starts, append=len(mass)))
    return np.clip(room - before, 0, mass)


def _distances_of(flows: Flows, problem: TransportProblem) -> IntArray:
    """Return the Levenshtein distance along each arc."""
    found = [np.zeros(0, dtype=np.int64)]
    step = 1 << 18
    for start in range(0, len(flows.mass), step):
        left = [problem.rows[k] for k in flows.rows[start : start + step].tolist()]
        right = [problem.columns[k] for k in flows.columns[start : start + step].tolist()]
        found.append(cpdist(left, right, scorer=Levenshtein.distance, dtype=np.int64))
    return np.concatenate(found)


# What no plan costs less than ----------------------------------------------------------------------------------------


def least_costs(
    problem: TransportProblem, prices: Prices, kinds: Sequence[CostKind]
) -> tuple[dict[CostKind, float], bool]:
    """Return a lower bound of every plan for each kind of cost; True if it is certain.

    No kind of cost is above the normalised one.

    Without certainty it is too high with a chance of :data:`ERROR` at most, for each kind. Let n_i be the cost beyond
    the price at the nearest known column of row i, and u_i that at the nearest of all, so 0 <= u_i + m <= n_i + m where
    m is the highest price (costs are not negative). A row is drawn with a chance in proportion to a_i (n_i + m), so
    x = (n_i - u_i) / (n_i + m) is from 0 to 1, and its mean is sum_i a_i (n_i - u_i) / sum_i a_i (n_i + m).
    :func:`highest_mean` bounds that mean from above. The draws on which prices depend have other seeds.
    """
    a, b, values = problem.a.astype(float), problem.b.astype(float), prices.values
    known = prices.nearest + max(0.0, float(values.max()))
    count = max(_SAMPLED_PAIRS, problem.pairs // 2) // len(b)
    certain = count >= len(a)
    weights = a * np.maximum(known, 0)
    if certain or not weights.any():
        drawn, certain = np.arange(len(a)), True
    else:
        drawn = np.random.default_rng(2).choice(len(a), count, p=weights / weights.sum())
    chosen, back = np.unique(drawn, return_inverse=True)
    found: dict[CostKind, float] = {}
    rounding = 1e-6 * (1 + float(np.abs(values).max())) * float(a.sum())
    for kind, least in _least_costs_of(problem, chosen, values, kinds).items():
        if certain:
            value = float(a @ least)
        else:
            gain = np.clip((prices.nearest[chosen] - least) / known[chosen], 0, 1)[back]
            value = float(a @ prices.nearest) - highest_mean(gain, ERROR) * float(weights.sum())
        found[kind] = max(0.0, float(b @ values) + value - rounding)
    return found, certain


def highest_mean(values: FloatArray, error: float) -> float:
    """Return an upper bound of the mean of values from 0 to 1, but for ``error``.

    The values are independent, and ``error`` is the largest chance that their mean is above.

    For a mean of at least m and 0 <= l <= 1 the expectation of the product of 1 + l (m - x) over all x is at most the
    power of 1 + l (m - mean), so at most 1, and so is that of an average over several l. By Markov's inequality the
    average is 1 / error or more with a chance of ``error`` at most. The number is the least m for which it is.
    """
    stakes = np.geomspace(1e-3, 1, 24)
    low, high = float(values.mean()), 1.0
    for _ in range(40):
        middle = (low + high) / 2
        capital = np.log1p(stakes[:, None] * (middle - values)).sum(axis=1)
        rejected = np.logaddexp.reduce(capital) - np.log(len(stakes)) >= -np.log(error)
        low, high = (low, middle) if rejected else (middle, high)
    return high


def _scaled(problem: TransportProblem, prices: Prices) -> Prices:
    """Return the prices times the factor that makes the lower end highest.

    A row knows few columns, and bids more for these than they are worth among all.
    """
    a, b = problem.a / problem.a.sum(), problem.b / problem.b.sum()
    drawn = np.random.default_rng(1).choice(len(a), max(1, _SCALED_PAIRS // len(b)), p=a)
    factors = np.linspace(0, 1, 11, dtype=np.float32)
    worth = np.zeros(len(factors))
    for costs in _all_costs(problem, drawn, "normalised"):
        worth += [float((costs - factor * prices.values).min(axis=1).sum()) for factor in factors]
    worth = worth / len(drawn) + factors * float(b @ prices.values)
    return Prices(prices.values * factors[worth.argmax()], prices.known, prices.costs)


def _least_costs_of(
    problem: TransportProblem, rows: IntArray, prices: AnyFloatArray, kinds: Sequence[CostKind]
) -> dict[CostKind, FloatArray]:
    """Return the least cost beyond the price of all columns, for each of these rows."""
    found: dict[CostKind, list[AnyFloatArray]] = {kind: [] for kind in kinds}
    for costs, kind in zip(_all_costs(problem, rows, *kinds), itertools.cycle(kinds), strict=False):
        found[kind].append((costs - prices).min(axis=1))
    return {kind: np.concatenate(least).astype(float) for kind, least in found.items()}


def _all_costs(problem: TransportProblem, rows: IntArray, *kinds: CostKind) -> Iterator[AnyFloatArray]:
    """Yield the costs from some of these rows to all columns, of each kind, and so on."""
    others = lengths_of(problem.columns).astype(np.float32)
    step, strip = max(_BOX, _STRIP // len(others)), max(1, _STRIP // len(others))
    for start in range(0, len(rows), step):
        some = [problem.rows[k] for k in rows[start : start + step].tolist()]
        lengths = lengths_of(some)[:, None].astype(np.float32)
        edits = edit_matrix(some, problem.columns, (lengths, others))
        for first in range(0, len(some), strip):
            part = slice(first, first + strip)
            yield from (cost_of(kind, edits[part], lengths[part], others) for kind in kinds)


# Which columns are near ----------------------------------------------------------------------------------------------


def _near(
    problem: TransportProblem,
    features: tuple[AnyFloatArray, AnyFloatArray],
    rows: IntArray,
    columns: IntArray,
    number: int,
) -> tuple[Any, AnyFloatArray]:
    """Return near columns of each of these rows in a round, and their costs."""
    count = problem.pairs // len(problem.rows)
    listed = min(int(np.clip(count // 64, *_LISTED)), len(columns))
    near, costs = np.zeros((len(rows), listed), dtype=np.int32), np.full((len(rows), listed), _FAR)
    strings = np.empty(len(columns), dtype=object)
    strings[:] = [problem.columns[k] for k in columns.tolist()]
    own, others = (
        lengths_of(side)[some].astype(np.float32) for side, some in ((problem.rows, rows), (problem.columns, columns))
    )
    done = 0.0
    for box, theirs in _boxes(features[0][rows], features[1][columns], max(listed, count)):
        some = [problem.rows[k] for k in rows[box].tolist()]
        lengths = own[box], others[theirs]
        edits = edit_matrix(some, strings[theirs].tolist(), lengths)
        w = cost_of("normalised", edits, *np.ix_(*lengths))
        done += len(box) / len(rows)
        problem.say((number + min(done, 1)) / _ROUNDS)
        order = np.argpartition(w, listed - 1, axis=1)[:, :listed]
        near[box], costs[box] = theirs[order], np.take_along_axis(w, order, axis=1)
    return near, costs


def _boxes(rows: AnyFloatArray, columns: AnyFloatArray, count: int) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield boxes of rows, each with about ``count`` columns of the nearest boxes."""
    if count >= len(columns):
        step = max(1, _STRIP // len(columns))
        yield from ((box, np.arange(len(columns))) for box in _cut_into_boxes(rows, step))
        return
    own = _cut_into_boxes(rows, max(_BOX, len(rows) // _BOXES))
    others = _cut_into_boxes(columns, max(_COLUMN_BOX, len(columns) // _BOXES))
    centres = columns[others].mean(axis=1)
    chosen, sizes = min(len(others), -(-count // others.shape[1])), (centres**2).sum(axis=1)
    for start in range(0, len(own), 128):  # one product of matrices for many boxes
        some = own[start : start + 128]
        far = sizes - 2 * rows[some].mean(axis=1) @ centres.T
        for box, nearest in zip(some, np.argpartition(far, chosen - 1, axis=1)[:, :chosen], strict=True):
            yield box, others[nearest].ravel()


def _cut_into_boxes(features: AnyFloatArray, size: int) -> IntArray:
    """Return boxes of near members, a row each, of at most this size.

    All are halved at once, each where it is widest. Some members are in two, so that boxes are equally large.
    """
    halvings = max(0, int(np.ceil(np.log2(len(features) / size))))
    members = np.resize(np.arange(len(features)), (1, -(-len(features) >> halvings) << halvings))
    for _ in range(halvings):
        half = members.shape[1] // 2
        widest = features[members[:, :: max(1, half // 32)]].var(axis=1).argmax(axis=1)
        order = np.argpartition(features[members, widest[:, None]], half, axis=1)
        members = np.take_along_axis(members, order, axis=1).reshape(-1, half)
    return members


def _features(*sides: Sequences) -> tuple[AnyFloatArray, AnyFloatArray]:
    """Return its steps, in the directions of most variance, a row a sequence.

    Pairs are counted in buckets. Some sequences of the second side give the directions.
    """
    some = sides[1].take(np.random.default_rng(0).permutation(len(sides[1]))[:_LEARNT])
    places = np.repeat(np.arange(len(some)), some.lengths) * _BUCKETS + _buckets(some)
    counts = np.bincount(places, minlength=len(some) * _BUCKETS).reshape(-1, _BUCKETS).astype(np.float32)
    counts -= counts.mean(axis=0)
    directions = np.ascontiguousarray(np.linalg.eigh(counts.T @ counts)[1][:, -_DIMENSIONS:])
    found = []
    for side in sides:
        rows = np.zeros((len(side), _DIMENSIONS), dtype=np.float32)
        for start in range(0, len(side), 1 << 13):
            part = side.rows(start, min(start + (1 << 13), len(side)))
            filled = np.flatnonzero(part.lengths)
            if len(filled):
                rows[start + filled] = np.add.reduceat(directions[_buckets(part)], part.offsets[filled])
        found.append(rows)
    return found[0], found[1]


def _buckets(side: Sequences) -> IntArray:
    """Return the bucket of each activity and the one before it, or the start."""
    before = np.append(-1, side.codes[:-1]).astype(np.int64)
    before[side.offsets[:-1][side.lengths > 0]] = -1
    return (before * len(side.labels) + side.codes) % _BUCKETS
