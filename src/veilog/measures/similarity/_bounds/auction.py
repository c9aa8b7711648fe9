"""A cheap plan and a number that no plan costs less than, by prices at which the rows choose among the columns.

For any prices v of the columns

    sum_j b_j v_j + sum_i a_i min_j (c_ij - v_j)   <=   the cost of every plan,

whatever way they were found. Each round, a column that more rows choose than it has room for becomes dearer and one
that fewer choose becomes cheaper, by the logarithm of the two. The first rounds look at a sample of the rows and
columns; the last ones look at all pairs, which makes the bound hold. Then every row gets its column as long as there
is room, the nearest first, and what is left over is auctioned again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from veilog._typing import AnyFloatArray, FloatArray, IntArray
from veilog.measures.measure import Progress
from veilog.measures.similarity.transport import Costs, north_west

_SAMPLE = 6_000_000
"""Pairs that the first rounds look at."""
_ROUNDS, _LAST_ROUNDS = 12, 3
_FADING = 0.8
"""Each step as a part of the one before; the first is the mean cost of the nearest column."""
_TIMES = 40
"""What is left after so many auctions is laid out in order."""
_BLOCK = 1 << 19
_EPSILON = float(np.finfo(np.float32).eps)


@dataclass(frozen=True, eq=False)
class Flows:
    """A plan: how much mass goes from which row to which column."""

    rows: IntArray
    columns: IntArray
    mass: IntArray


@dataclass(frozen=True, eq=False)
class Bids:
    """The column that each row chooses at some prices, and the bound by these."""

    prices: FloatArray
    chosen: IntArray
    best: FloatArray
    """What the chosen column costs each row, less its price: the least."""
    rounding: float
    """How much a least cost may be too large by the precision of the arithmetic."""

    def lower(self, a: npt.NDArray[np.number], b: npt.NDArray[np.number]) -> float:
        """Return the number that no plan between these masses costs less than."""
        return float(b @ self.prices) + float(a @ self.best) - self.rounding * float(a.sum())


def auction_off(a: IntArray, b: IntArray, costs: Costs, progress: Progress | None = None) -> tuple[Flows, Bids]:
    """Return a plan that moves the masses ``a`` (one a row) to ``b`` (one a column), and the bids that bound it."""
    rows, columns, first = np.arange(len(a)), np.arange(len(b)), None
    arcs: list[tuple[IntArray, IntArray, IntArray]] = []
    while len(rows):
        prices, step = _sampled(a, b, costs)
        bids = climb(a, b, costs, prices, step, 1 if first else _LAST_ROUNDS, progress)
        first = first or bids
        if len(arcs) == _TIMES:
            i, j, mass = north_west(a, b)
            arcs.append((rows[i], columns[j], mass))
            break
        mass = _room(a, b, bids)
        arcs.append((rows[mass > 0], columns[bids.chosen[mass > 0]], mass[mass > 0]))
        a = a - mass
        b = b - np.bincount(bids.chosen, weights=mass, minlength=len(b)).astype(np.int64)
        some, others = np.flatnonzero(a), np.flatnonzero(b)
        assert costs.among is not None
        costs, a, b, rows, columns = costs.among(some, others), a[some], b[others], rows[some], columns[others]
    assert first is not None, "there is something to move"
    return Flows(*(np.concatenate(part) for part in zip(*arcs, strict=True))), first


def climb(
    a: npt.NDArray[np.number],
    b: npt.NDArray[np.number],
    costs: Costs,
    prices: FloatArray,
    step: float,
    rounds: int,
    progress: Progress | None = None,
) -> Bids:
    """Return the bids of the best of so many rounds, from these prices on."""
    best = bids = _bids(costs, prices)
    for done in range(1, rounds):
        if progress is not None:
            progress("Comparing variants", done / rounds)
        wanted = np.bincount(bids.chosen, weights=a, minlength=len(b))
        bids = _bids(costs, bids.prices + step * np.clip(np.log(1.1 * b / (wanted + 0.1 * b)), -1.5, 1.5))
        step *= _FADING
        if bids.lower(a, b) > best.lower(a, b):
            best = bids
    return best


def _bids(costs: Costs, prices: FloatArray) -> Bids:
    """The column that each row chooses at these prices."""
    rows, columns = costs.shape
    narrow = prices.astype(np.float32)
    chosen, best = np.empty(rows, dtype=np.int64), np.empty(rows)
    step = min(rows, max(1, _BLOCK // columns))
    block: AnyFloatArray = np.empty((step, columns), dtype=np.float32)
    for start in range(0, rows, step):
        w = block[: rows - start]
        costs.fill(start, w)
        w -= narrow
        index = w.argmin(axis=1)
        chosen[start : start + step] = index
        best[start : start + step] = w[np.arange(len(w)), index]
    largest = float(np.abs(narrow).max()) + float(np.abs(best).max())
    return Bids(narrow.astype(float), chosen, best, 2 * _EPSILON * largest)


def _sampled(a: IntArray, b: IntArray, costs: Costs) -> tuple[FloatArray, float]:
    """Prices by a sample of the rows, and of the columns if there are many; and the next step."""
    rows, columns = costs.shape
    times = max(1.0, rows * columns / _SAMPLE)
    both = columns * columns > 4 * _SAMPLE
    # Each stands for those up to the next; the last, which may be a buffer, for itself.
    i, j = (
        np.unique(np.append(np.arange(0, count - 1, part).astype(np.int64), count - 1))
        for count, part in ((rows, times**0.5 if both else times), (columns, times**0.5 if both else 1.0))
    )
    assert costs.among is not None
    some = costs if times == 1.0 else costs.among(i, j)
    near = _bids(some, np.zeros(len(j)))
    share, there = np.add.reduceat(a, i) / a.sum(), np.add.reduceat(b, j) / b.sum()
    scale = max(float(share @ near.best), 1e-9)
    bids = climb(share, there, some, near.prices, scale, _ROUNDS)
    if len(j) == columns:
        return bids.prices, scale / 10
    return _extended(costs.among(i, np.arange(columns)), bids.best), scale / 10


def _extended(costs: Costs, best: FloatArray) -> FloatArray:
    """The highest prices of all columns at which no row of the sample does better than it does."""
    rows, columns = costs.shape
    prices = np.full(columns, np.inf)
    step = max(1, _BLOCK // columns)
    for start in range(0, rows, step):
        block = np.empty((min(step, rows - start), columns), dtype=np.float32)
        costs.fill(start, block)
        np.minimum(prices, (block - best[start : start + step, None]).min(axis=0), out=prices)
    return prices


def _room(a: IntArray, b: IntArray, bids: Bids) -> IntArray:
    """How much of each row its column has room for, the nearest rows first."""
    order = np.lexsort((bids.best + bids.prices[bids.chosen], bids.chosen))
    mass, column = a[order], bids.chosen[order]
    before = np.cumsum(mass) - mass
    starts = np.flatnonzero(np.diff(column, prepend=-1))
    before -= np.repeat(before[starts], np.diff(starts, append=len(column)))
    taken = np.empty_like(a)
    taken[order] = np.clip(b[column] - before, 0, mass)
    return taken
