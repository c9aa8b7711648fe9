"""A cheap plan between two lists of sequences that are too long to compare pair by pair; its cost is an upper bound.

Both lists are put in order, so that like stands near like, and the mass of one is laid along that of the other. The
plan's arcs are then taken in blocks, in one order after another; in each block the same masses are moved at the least
cost. No pass makes the plan dearer, and it stays a plan: its cost, summed exactly, is what the optimum cannot exceed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cdist, cpdist

from veilog._typing import FloatArray, IntArray
from veilog.measures.measure import Progress
from veilog.measures.similarity._bounds.lower import CostKind, cost_of
from veilog.measures.similarity.distances import Strings
from veilog.measures.similarity.transport import matrix_costs, transport

_BLOCK = 512
"""Arcs of a block: about half as many sequences a side."""
_TOLERANCE = 1e-3

_ORDERS: tuple[Callable[[Strings], list[object]], ...] = (
    lambda strings: [s[::-1] for s in strings],
    lambda strings: [sorted(s) for s in strings],
    lambda strings: [s[len(s) // 3 :] for s in strings],
)
"""What passes sort sequences by, after their beginnings: their ends, their activities, their middles."""


@dataclass(frozen=True, eq=False)
class Flows:
    """A plan: how much mass goes from which row to which column. A row beyond the last is the buffer."""

    rows: IntArray
    columns: IntArray
    mass: IntArray


def cheap_plan(
    rows: Strings,
    columns: Strings,
    a: IntArray,
    b: IntArray,
    kind: CostKind,
    *,
    buffer: IntArray | None = None,
    progress: Progress | None = None,
) -> Flows:
    """A plan that moves ``a`` to ``b``. What ``b`` has more comes from a buffer, at the costs given for each column."""
    lengths = np.array([len(s) for s in rows], dtype=np.int64), np.array([len(s) for s in columns], dtype=np.int64)
    flows = _in_order(rows, columns, a, b)
    for number, key in enumerate(_ORDERS):
        place = _places(key(columns))
        order = np.argsort(place[flows.columns], kind="stable")
        parts = []
        for start in range(0, len(order), _BLOCK):
            chosen = order[start : start + _BLOCK]
            part = Flows(flows.rows[chosen], flows.columns[chosen], flows.mass[chosen])
            parts.append(_improved(part, rows, columns, lengths, kind, buffer))
            if progress is not None and (start // _BLOCK) % 16 == 0:
                done = (number + start / len(order)) / len(_ORDERS)
                progress("Matching many variants in blocks", done)
        flows = Flows(*(np.concatenate([getattr(p, name) for p in parts]) for name in ("rows", "columns", "mass")))
    return flows


def distances_of(flows: Flows, rows: Strings, columns: Strings) -> IntArray:
    """The Levenshtein distance along each arc; 0 for those from the buffer."""
    out = np.zeros(len(flows.mass), dtype=np.int64)
    step = 1 << 18
    for start in range(0, len(out), step):
        i, j = flows.rows[start : start + step], flows.columns[start : start + step]
        real = np.flatnonzero(i < len(rows))
        left, right = [rows[k] for k in i[real].tolist()], [columns[k] for k in j[real].tolist()]
        if left:
            out[start + real] = cpdist(left, right, scorer=Levenshtein.distance, dtype=np.int64)
    return out


def _places(keys: list[object]) -> IntArray:
    order = sorted(range(len(keys)), key=keys.__getitem__)  # type: ignore[arg-type]
    place = np.empty(len(keys), dtype=np.int64)
    place[order] = np.arange(len(keys))
    return place


def _in_order(rows: Strings, columns: Strings, a: IntArray, b: IntArray) -> Flows:
    """The mass of the rows laid along that of the columns, both in the order of their sequences."""
    by_row, by_column = np.argsort(_places(rows)), np.argsort(_places(columns))
    ready = b[by_column]
    from_buffer = int(b.sum()) - int(a.sum())
    buffered = np.zeros(len(ready), dtype=np.int64)
    if from_buffer:
        # The buffer supplies the same share of every stretch of columns.
        total, reached, before = int(b.sum()), 0, 0
        for place, mass in enumerate(ready.tolist()):
            reached += mass
            share = reached * from_buffer // total
            buffered[place], before = share - before, share
    a_sums, b_sums = np.cumsum(a[by_row]), np.cumsum(ready - buffered)
    steps = np.union1d(a_sums, b_sums)
    steps = steps[steps > 0]
    mass = np.diff(steps, prepend=0)
    i = by_row[np.searchsorted(a_sums, steps)] if len(steps) else np.zeros(0, dtype=np.int64)
    j = by_column[np.searchsorted(b_sums, steps)] if len(steps) else np.zeros(0, dtype=np.int64)
    held = np.flatnonzero(buffered)
    return Flows(
        np.append(i, np.full(len(held), len(rows))), np.append(j, by_column[held]), np.append(mass, buffered[held])
    )


def _improved(
    part: Flows,
    rows: Strings,
    columns: Strings,
    lengths: tuple[IntArray, IntArray],
    kind: CostKind,
    buffer: IntArray | None,
) -> Flows:
    """The same masses of the same rows moved to the same columns, at the least cost."""
    i, row = np.unique(part.rows, return_inverse=True)
    j, column = np.unique(part.columns, return_inverse=True)
    real = i[i < len(rows)]
    edits = np.zeros((len(i), len(j)))
    if len(real):
        edits[: len(real)] = cdist(
            [rows[k] for k in real.tolist()], [columns[k] for k in j.tolist()], scorer=Levenshtein.distance
        )
    costs: FloatArray = np.empty(edits.shape)
    costs[: len(real)] = cost_of(kind, edits[: len(real)], lengths[0][real][:, None], lengths[1][j][None, :])
    if len(real) < len(i) and buffer is not None:
        costs[-1] = buffer[j]
    a = np.bincount(row, weights=part.mass, minlength=len(i)).astype(np.int64)
    b = np.bincount(column, weights=part.mass, minlength=len(j)).astype(np.int64)
    plan = transport(a, b, matrix_costs(costs), tolerance=_TOLERANCE * max(1.0, float(costs.max(initial=0.0))))
    if plan.cost >= float((costs[row, column] * part.mass).sum()):
        return part
    return Flows(i[plan.rows], j[plan.columns], plan.mass)
