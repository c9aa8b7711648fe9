"""What it costs to move a case from one sequence to another, by their Levenshtein distance and their lengths."""

from __future__ import annotations

import itertools
from typing import Any, Literal

import numpy as np

from veilog._typing import AnyFloatArray, FloatArray, IntArray
from veilog.measures.similarity.distances import EditDistances
from veilog.measures.similarity.transport import Costs

CostKind = Literal["plain", "normalised", "metric"]
"""The Levenshtein distance L of s and t; L / max(|s|, |t|); 2 L / (|s| + |t| + L)."""


def cost_of(kind: CostKind, distances: Any, length: Any, other: Any) -> FloatArray:
    """Return the cost of a distance, given both lengths. It rises with the distance and, alone, falls with the
    lengths."""
    edits: FloatArray = np.asarray(distances, dtype=float)
    if kind == "plain":
        return edits
    if kind == "normalised":
        return np.asarray(edits / np.maximum(np.maximum(length, other), 1))
    return np.asarray(2 * edits / np.maximum(length + other + edits, 1))


def edit_costs(
    distances: EditDistances, kind: CostKind, buffer: IntArray | None = None, *, column: bool = False
) -> Costs:
    """Return the costs of these distances, which stay the small integers that they are until a block is filled.

    A ``buffer`` is one more row, or ``column``, with costs of its own.
    """
    rows, columns = distances.shape
    lengths, others = distances.row_lengths, distances.column_lengths
    more = buffer is not None

    def fill(start: int, out: AnyFloatArray) -> None:
        stop = min(start + len(out), rows)
        edits, filled = distances.block(start, stop), out[: stop - start, :columns]
        if kind == "plain":
            filled[...] = edits
        else:
            changes = np.flatnonzero(np.diff(lengths[start:stop])) + 1
            for first, last in itertools.pairwise([0, *changes.tolist(), stop - start] if stop > start else []):
                length = int(lengths[start + first])  # rows of one length are divided by the same
                if kind == "normalised":
                    by = np.maximum(max(1, length), others).astype(out.dtype)
                else:
                    by = np.maximum(1, length + others).astype(out.dtype) / 2 + edits[first:last] * out.dtype.type(0.5)
                np.divide(edits[first:last], by, out=filled[first:last])
        if buffer is not None and column:
            out[:, columns] = buffer[start : start + len(out)]
        elif buffer is not None and start + len(out) > rows:
            out[-1] = buffer

    def pick(i: IntArray, j: IntArray) -> FloatArray:
        costs = np.empty(len(i))
        real = (i < rows) & (j < columns)
        costs[real] = cost_of(kind, distances.pairs(i[real], j[real]), lengths[i[real]], others[j[real]])
        if buffer is not None:
            costs[~real] = buffer[(i if column else j)[~real]]
        return costs

    shape = (rows + (more and not column), columns + (more and column))
    return Costs(shape, fill, pick, integral=kind == "plain")
