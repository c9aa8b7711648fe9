"""Optimal transport of integer masses, proved by a dual bound of veilog.

minimise  sum_ij f_ij c_ij   subject to   sum_j f_ij = a_i,  sum_i f_ij = b_j,  f >= 0.

Column generation: the network simplex of POT solves the problem on a few arcs (near neighbours both ways and a
north-west corner plan, which makes it feasible); every other pair is then priced with the dual prices v it returns,
the worst arcs of each row and column join, and so on until no arc is worth adding. For *any* v

    sum_j b_j v_j + sum_i a_i min_j (c_ij - v_j)   <=   optimum   <=   cost of any feasible plan,

so each round gives a certified interval, whatever the solver did. A plan is checked to be feasible, in integers,
before its cost is believed. Only blocks of the cost matrix are ever held.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from veilog._typing import AnyFloatArray, FloatArray, IntArray
from veilog.errors import SolverError
from veilog.measures.measure import Progress

GAP = 1e-9
"""Largest duality gap, per unit of the mass given as the scale, that is taken as proof."""
LARGEST_MASS = 1 << 52
"""Masses up to here are exact in the solver's floating point numbers."""

_DENSE = 1 << 16
"""Problems of up to this many pairs start with all arcs."""
_BLOCK = 1 << 19
"""Costs held at once: a few megabytes, so that a block is worked on while it is in the processor's cache."""
_STRIPS = 10
"""Arcs added for a row (or column): the best in each of so many parts of it."""
_PIVOTS = 10**12


@dataclass(frozen=True, eq=False)
class Costs:
    """A matrix of costs >= 0 given by two functions, so that it need not be held."""

    shape: tuple[int, int]
    fill: Callable[[int, AnyFloatArray], None]
    """``fill(start, out)`` writes the rows from ``start`` on into ``out``, in its precision."""
    pick: Callable[[IntArray, IntArray], FloatArray]
    """``pick(rows, columns)``: the costs of single pairs."""
    integral: bool = False
    """All costs are integers: dual prices are then rounded and the certificate is exact."""


@dataclass(frozen=True, eq=False)
class TransportPlan:
    """A feasible plan, its cost, and a lower bound of the optimum."""

    rows: IntArray
    columns: IntArray
    mass: IntArray
    cost: float
    lower: float
    rounds: int

    @property
    def gap(self) -> float:
        return max(0.0, self.cost - self.lower)


def matrix_costs(matrix: npt.ArrayLike) -> Costs:
    """Costs that are there as a matrix."""
    array = np.asarray(matrix)

    def fill(start: int, out: AnyFloatArray) -> None:
        out[...] = array[start : start + len(out)]

    rows, columns = array.shape
    return Costs(
        (rows, columns),
        fill,
        lambda i, j: array[i, j].astype(float),
        integral=np.issubdtype(array.dtype, np.integer),
    )


def transport(
    a: IntArray,
    b: IntArray,
    costs: Costs,
    *,
    scale: float | None = None,
    tolerance: float = 0.0,
    pivots: int = _PIVOTS,
    progress: Progress | None = None,
) -> TransportPlan:
    """Return the cheapest plan that moves masses ``a`` of rows to ``b`` of columns.

    Masses are positive integers of equal sum, at most ``LARGEST_MASS``. The gap between cost and lower bound is at
    most ``max(tolerance, GAP) * scale`` (``scale`` is the total mass unless given), and 0 where costs are integral and
    there is no ``tolerance``, or a :class:`SolverError` is raised. Without a ``tolerance`` the search goes on until
    no arc improves the plan. ``pivots`` bounds the work of the network simplex in each round.
    """
    rows, columns = costs.shape
    total = _total(a, b, costs.shape)
    unit = total if scale is None else scale
    enough = (tolerance if costs.integral else max(GAP, tolerance)) * unit
    best_cost, best_lower = math.inf, -math.inf
    best: tuple[IntArray, IntArray] | None = None
    # An arc is row * columns + column; arcs are kept in ascending order, with their costs beside them.
    arcs = _first_arcs(a, b, costs, progress)
    prices = costs.pick(arcs // columns, arcs % columns)
    rounds = 0
    while True:
        rounds += 1
        used, mass, u, v = _solve(a, b, arcs, prices, pivots)
        cost = _inner(mass, prices[np.searchsorted(arcs, used)], costs.integral)
        if cost < best_cost:
            best_cost, best = cost, (used, mass)
        if costs.integral:
            u, v = np.rint(u), np.rint(v)
        bound, worst = _price(costs, u, v)
        lower = _inner(a, bound, costs.integral) + _inner(b, v, costs.integral)
        if not costs.integral:
            # What rounding can have added: a few units in the last place of every price, for all the mass.
            lower -= 8.0 * float(np.finfo(np.float64).eps) * total * (1.0 + float(np.abs(v).max()))
        best_lower = max(best_lower, lower)
        gap = best_cost - best_lower
        if progress is not None and rows * columns > _DENSE:
            progress(f"Optimal transport: round {rounds}, certain to {max(gap, 0.0) / unit:.1e}", None)
        new = np.setdiff1d(worst, arcs, assume_unique=True)
        if not len(new) or (tolerance > 0.0 and gap <= enough):
            break
        order = np.argsort(np.concatenate([arcs, new]), kind="stable")
        arcs = np.concatenate([arcs, new])[order]
        prices = np.concatenate([prices, costs.pick(new // columns, new % columns)])[order]
    if best is None or not gap <= enough:
        raise SolverError("transport-not-proved-optimal", best_lower=best_lower / unit, best_cost=best_cost / unit)
    used, mass = best
    return TransportPlan(used // columns, used % columns, mass, best_cost, min(best_lower, best_cost), rounds)


def _total(a: IntArray, b: IntArray, shape: tuple[int, int]) -> int:
    """Return the sum of the masses; raise ValueError if they do not fit the costs."""
    if (len(a), len(b)) != shape or 0 in shape:
        raise ValueError("one mass for each row and column")
    total = int(a.sum())
    if total != int(b.sum()) or total > LARGEST_MASS or a.min() <= 0 or b.min() <= 0:
        raise ValueError("masses are positive, of equal sum, and that sum is exact as a float")
    return total


def _inner(masses: IntArray, values: FloatArray, integral: bool) -> float:
    """Return the sum of products: exact for integers, else correctly rounded."""
    if integral:
        products: list[int] = [m * int(x) for m, x in zip(masses.tolist(), values.tolist(), strict=True)]
        return sum(products)
    return math.fsum((masses * values).tolist())


def _solve(
    a: IntArray, b: IntArray, arcs: IntArray, prices: FloatArray, pivots: int
) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
    """Return the cheapest plan on these arcs: arcs, masses and dual prices."""
    import ot  # takes a second to import
    from scipy.sparse import coo_array

    rows, columns = len(a), len(b)
    # The solver rescales b by sum(a) / sum(b), computed as (b * sum) / sum: exact for all integers only if the sum is a
    # power of two. So an extra row sends what is missing to that to an extra column, over an arc of their own.
    total = int(a.sum())
    missing = (1 << total.bit_length()) - total
    ends = np.append(arcs // columns, rows), np.append(arcs % columns, columns)
    matrix = coo_array((np.append(prices, 0.0), ends), shape=(rows + 1, columns + 1))
    sources, targets = np.append(a, missing).astype(float), np.append(b, missing).astype(float)
    with warnings.catch_warnings():
        # The solver says with a warning that it has given up; its answer is checked here, warning or not.
        warnings.simplefilter("ignore")
        plan, log = ot.emd(sources, targets, matrix, numItermax=pivots, log=True, center_dual=False)
    mass = np.rint(plan.data).astype(np.int64)
    i, j = plan.row.astype(np.int64), plan.col.astype(np.int64)
    real = (i < rows) & (j < columns)
    i, j, mass = i[real], j[real], mass[real]
    u, v = np.asarray(log["u"])[:rows], np.asarray(log["v"])[:columns]
    if log["warning"] is not None or not _feasible(a, b, i, j, mass) or not np.isfinite([u.sum(), v.sum()]).all():
        if log["warning"] is None:
            raise SolverError("transport-answer-no-plan")
        raise SolverError("transport-without-plan", log=log["warning"])
    return i * columns + j, mass, u, v


def _feasible(a: IntArray, b: IntArray, i: IntArray, j: IntArray, mass: IntArray) -> bool:
    """Return True if the plan moves exactly these masses; sums below 2**53 are exact."""
    out = np.bincount(i, weights=mass, minlength=len(a))
    came = np.bincount(j, weights=mass, minlength=len(b))
    return bool((mass >= 0).all() and np.array_equal(out, a) and np.array_equal(came, b))


def _first_arcs(a: IntArray, b: IntArray, costs: Costs, progress: Progress | None) -> IntArray:
    """Return all arcs of a small problem, else near neighbours' and a feasible plan."""
    rows, columns = costs.shape
    if rows * columns <= _DENSE:
        return np.arange(rows * columns, dtype=np.int64)
    strips = _strips(columns)
    i, j, _ = north_west(a, b)
    found = [i * columns + j]
    best = np.full((_STRIPS, columns), np.inf)
    best_row = np.zeros((_STRIPS, columns), dtype=np.int64)
    step, buffer = _buffer(costs)
    for number, start in enumerate(range(0, rows, step)):
        c = buffer[: rows - start]
        costs.fill(start, c)
        index = np.arange(start, start + len(c))
        found += _row_minima(c, index, strips, np.inf)
        _column_minima(c, index, best[number % _STRIPS], best_row[number % _STRIPS])
        if progress is not None and number % 32 == 0:
            progress("Optimal transport: looking for near neighbours", start / rows)
    found += [(r * columns + np.arange(columns))[np.isfinite(c)] for r, c in zip(best_row, best, strict=True)]
    return np.unique(np.concatenate(found))


def _price(costs: Costs, u: FloatArray, v: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return min_j (c_ij - v_j) of every row, and arcs below the prices of their ends."""
    rows, columns = costs.shape
    strips = _strips(columns)
    bound = np.empty(rows)
    found = []
    # The simplex starts from artificial arcs that cost as much as the longest path, so its prices are rounded at that
    # magnitude: what is closer to zero than this is no arc that improves the plan.
    magnitude = (rows + columns) * (1.0 + float(np.abs(v).max()))
    threshold = -0.5 if costs.integral else -4.0 * float(np.finfo(np.float64).eps) * magnitude
    best = np.full(columns, threshold)
    best_row = np.full(columns, -1, dtype=np.int64)
    step, buffer = _buffer(costs)
    for start in range(0, rows, step):
        w = buffer[: rows - start]
        costs.fill(start, w)
        w -= v
        least = w.min(axis=1)
        index = np.arange(start, start + len(w))
        bound[index] = least
        bad = least - u[index] < threshold
        if not bad.any():
            continue
        if not bad.all():
            w, index = w[bad], index[bad]
        w -= u[index, None]
        found += _row_minima(w, index, strips, threshold)
        _column_minima(w, index, best, best_row)
    added = np.flatnonzero(best_row >= 0)
    found.append(best_row[added] * columns + added)
    return bound, np.unique(np.concatenate(found))


def _row_minima(c: FloatArray, index: IntArray, strips: list[tuple[int, int]], below: float) -> list[IntArray]:
    """Return for each strip of columns every row's cheapest arc, if below ``below``."""
    columns = c.shape[1]
    found = []
    for first, last in strips:
        column = c[:, first:last].argmin(axis=1) + first
        good = c[np.arange(len(c)), column] < below
        found.append(index[good] * columns + column[good])
    return found


def _column_minima(c: FloatArray, index: IntArray, best: FloatArray, best_row: IntArray) -> None:
    """Update every column's cheapest row in ``c``, if that is below ``best``."""
    least = c.min(axis=0)
    better = np.flatnonzero(least < best)
    best[better] = least[better]
    best_row[better] = index[c[:, better].argmin(axis=0)]


def north_west(a: IntArray, b: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Return the plan that serves rows and columns in order: feasible, seldom cheap."""
    a_sums, b_sums = np.cumsum(a), np.cumsum(b)
    steps = np.union1d(a_sums, b_sums)
    steps = steps[steps > 0]
    return np.searchsorted(a_sums, steps), np.searchsorted(b_sums, steps), np.diff(steps, prepend=0)


def _strips(columns: int) -> list[tuple[int, int]]:
    """Up to ``_STRIPS`` ranges that make up all columns."""
    bounds = np.unique(np.linspace(0, columns, _STRIPS + 1).astype(int)).tolist()
    return list(itertools.pairwise(bounds))


def _buffer(costs: Costs) -> tuple[int, FloatArray]:
    """Return the rows of a block, and one block to use again: fresh memory is slower."""
    rows, columns = costs.shape
    step = min(rows, max(1, _BLOCK // columns))
    return step, np.empty((step, columns))
