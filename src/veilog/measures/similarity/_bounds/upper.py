"""A cheap plan between two lists of sequences that are too long to compare pair by pair; its cost is an upper bound.

Both lists are put in order, so that like stands near like, and the mass of one is laid along that of the other. In each
block of that plan the same masses are then moved as an auction moves them, if that is cheaper. It stays a plan: its
cost, summed exactly, is what the optimum cannot exceed.
"""

from __future__ import annotations

import numpy as np
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cpdist

from veilog._typing import IntArray
from veilog.measures.measure import Progress
from veilog.measures.similarity._bounds.auction import Flows, auction_off
from veilog.measures.similarity.costs import CostKind, edit_costs
from veilog.measures.similarity.distances import Strings, edit_distances
from veilog.measures.similarity.transport import north_west

_BLOCK = 1 << 13
"""Arcs of a block: about half as many sequences a side."""


def plan_in_blocks(
    rows: Strings,
    columns: Strings,
    a: IntArray,
    b: IntArray,
    kind: CostKind,
    buffer: IntArray | None = None,
    progress: Progress | None = None,
) -> Flows:
    """A plan that moves ``a`` to ``b``. What ``b`` has more comes from a buffer, at the costs given for each column."""
    flows = _in_order(rows, columns, a, b)
    order = np.argsort(_places(columns)[flows.columns], kind="stable")
    parts = []
    for start in range(0, len(order), _BLOCK):
        chosen = order[start : start + _BLOCK]
        part = Flows(flows.rows[chosen], flows.columns[chosen], flows.mass[chosen])
        parts.append(_improved(part, rows, columns, kind, buffer))
        if progress is not None:
            progress("Matching many variants in blocks", start / len(order))
    return Flows(*(np.concatenate([getattr(p, name) for p in parts]) for name in ("rows", "columns", "mass")))


def distances_of(flows: Flows, rows: Strings, columns: Strings) -> IntArray:
    """Return the Levenshtein distance along each arc; 0 for those from the buffer."""
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
    i, j, mass = north_west(a[by_row], ready - buffered)
    i, j = by_row[i], by_column[j]
    held = np.flatnonzero(buffered)
    return Flows(
        np.append(i, np.full(len(held), len(rows))), np.append(j, by_column[held]), np.append(mass, buffered[held])
    )


def _improved(part: Flows, rows: Strings, columns: Strings, kind: CostKind, buffer: IntArray | None) -> Flows:
    """The same masses of the same rows moved to the same columns, as an auction does or as they are."""
    i, row = np.unique(part.rows, return_inverse=True)
    j, column = np.unique(part.columns, return_inverse=True)
    real = i[i < len(rows)].tolist()
    distances = edit_distances([rows[k] for k in real], [columns[k] for k in j.tolist()])
    costs = edit_costs(distances, kind, buffer[j] if buffer is not None and len(real) < len(i) else None)
    a = np.bincount(row, weights=part.mass, minlength=len(i)).astype(np.int64)
    b = np.bincount(column, weights=part.mass, minlength=len(j)).astype(np.int64)
    plan, _ = auction_off(a, b, costs)
    if costs.pick(plan.rows, plan.columns) @ plan.mass >= costs.pick(row, column) @ part.mass:
        return part
    return Flows(i[plan.rows], j[plan.columns], plan.mass)
