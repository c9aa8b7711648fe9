"""Two lists of sequences that are too long to compare pair by pair: between which numbers the optimum lies.

The upper end is the cost of a plan (:mod:`veilog.measures.similarity.blocks`), the lower end the optimum of a smaller
problem that no plan undercuts (:mod:`veilog.measures.similarity.boxes`). Both hold for certain; nothing is estimated
from a sample.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from veilog._typing import IntArray
from veilog.measures.similarity.blocks import Flows, cheap_plan, distances_of
from veilog.measures.similarity.boxes import Boxes, CostKind, boxed, least_costs, lower_bound
from veilog.measures.similarity.distances import Progress, Strings, as_sequences

__all__ = ["MOST_PAIRS", "Crowd"]

MOST_PAIRS = 1_000_000_000
"""Up to so many pairs of variants the optimum is found: some minutes of one core. Beyond, it is bounded."""


@dataclass(frozen=True, eq=False)
class Crowd:
    """What is to be moved from where to where; what ``b`` has more comes from a buffer."""

    rows: Strings
    columns: Strings
    a: IntArray
    b: IntArray
    progress: Progress | None = None

    @property
    def unmatched(self) -> int:
        return int(self.b.sum()) - int(self.a.sum())

    @cached_property
    def lengths(self) -> tuple[IntArray, IntArray]:
        """Those of the rows, with a 0 for the buffer, and of the columns."""
        return np.array([len(s) for s in self.rows] + [0]), np.array([len(s) for s in self.columns])

    @cached_property
    def boxes(self) -> tuple[Boxes, Boxes]:
        if self.progress is not None:
            self.progress("Bounding the distances of many variants", None)
        return boxed(*as_sequences(self.rows, self.columns), self.a, self.b)

    def plan(self, kind: CostKind, buffer: IntArray | None = None) -> tuple[Flows, IntArray]:
        """A plan that is cheap for costs of this kind, and the distance along each of its arcs."""
        flows = cheap_plan(self.rows, self.columns, self.a, self.b, kind, buffer=buffer, progress=self.progress)
        return flows, distances_of(flows, self.rows, self.columns)

    def lower(self, kind: CostKind, *, buffer_by_length: bool = False) -> float:
        """What no plan costs less than; the buffer costs nothing, or the length of what it becomes."""
        boxes, others = self.boxes
        charge = others.low[:, -2] if buffer_by_length else np.zeros(len(others), dtype=np.int64)
        return lower_bound(boxes, others, self.a, self.b, kind, buffer=(self.unmatched, charge))

    def largest(self) -> tuple[int, int]:
        """Between which numbers the largest distance of all pairs lies."""
        boxes, others = self.boxes
        least = int(least_costs(boxes, others, "plain").max(initial=0))
        return least, int(max(lengths.max(initial=0) for lengths in self.lengths))
