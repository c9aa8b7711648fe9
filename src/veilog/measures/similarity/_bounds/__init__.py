"""Two lists of sequences whose optimal transport would take too long: between which numbers the optimum lies.

Where the distances of all pairs fit in memory, both ends come from an auction
(:mod:`veilog.measures.similarity._bounds.auction`). Of more pairs the upper end is the cost of a plan in blocks
(:mod:`veilog.measures.similarity._bounds.upper`), the lower end the optimum of a smaller problem that no plan undercuts
(:mod:`veilog.measures.similarity._bounds.lower`). All hold for certain; nothing is estimated from a sample.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from veilog._typing import IntArray
from veilog.measures.measure import Pair, Progress
from veilog.measures.similarity._bounds.auction import Bids, Flows, auction_off, climb
from veilog.measures.similarity._bounds.lower import Boxes, boxed, least_costs, lower_bound
from veilog.measures.similarity._bounds.upper import distances_of, plan_in_blocks
from veilog.measures.similarity.costs import CostKind, edit_costs
from veilog.measures.similarity.distances import (
    EditDistances,
    Strings,
    as_sequences,
    as_strings,
    edit_distances,
    kept_in,
)

__all__ = ["EXACT_PAIRS", "MOST_PAIRS", "Bounds", "shared_distances"]

EXACT_PAIRS = 1 << 20
"""Up to so many pairs of variants the optimum takes no second. A comparison bounds that of more, unless it is to be
exact."""
MOST_PAIRS = 1_000_000_000
"""Up to so many pairs of variants the optimum is found: some minutes of one core. Beyond, it is bounded."""


_SHARED = 250_000_000
"""Pairs whose distances are shared by measures, each of which takes a part of them."""


@dataclass(frozen=True, eq=False)
class Bounds:
    """What is to be moved from where to where; what ``b`` has more comes from a buffer."""

    rows: Strings
    columns: Strings
    a: IntArray
    b: IntArray
    progress: Progress | None = None
    shared: EditDistances | None = None
    """Distances that were found before, those of these sequences among them."""
    _auctions: dict[CostKind, tuple[Flows, Bids]] = field(default_factory=dict)

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

    @cached_property
    def distances(self) -> EditDistances | None:
        """All distances, of the side that has more sequences to the other; None where they do not fit in memory."""
        rows, columns = (self.columns, self.rows) if self._flipped else (self.rows, self.columns)
        if self.shared is not None:
            return self.shared.of(rows, columns)
        return edit_distances(rows, columns, progress=self.progress) if kept_in(rows, columns) else None

    def plan(self, kind: CostKind, buffer: IntArray | None = None) -> tuple[Flows, IntArray]:
        """A plan that is cheap for costs of this kind, and the distance along each of its arcs."""
        buffer = buffer if self.unmatched else None
        if self.distances is None:
            flows = plan_in_blocks(self.rows, self.columns, self.a, self.b, kind, buffer, self.progress)
        else:
            costs = edit_costs(self.distances, kind, buffer, column=self._flipped)
            flows, bids = auction_off(*self._masses(buffer is not None), costs, self.progress)
            if self._flipped:
                flows = Flows(flows.columns, flows.rows, flows.mass)
            self._auctions[kind] = flows, bids
        return flows, distances_of(flows, self.rows, self.columns)

    def lower(self, kind: CostKind, *, buffer_by_length: bool = False) -> float:
        """What no plan costs less than; the buffer costs nothing, or the length of what it becomes."""
        if self.distances is None:
            boxes, others = self.boxes
            charge = others.low[:, -2] if buffer_by_length else np.zeros(len(others), dtype=np.int64)
            return lower_bound(boxes, others, self.a, self.b, kind, buffer=(self.unmatched, charge))
        if kind == "metric":
            a, b = self._masses(False)
            start = self._auctions["normalised"][1].prices
            return max(0.0, climb(a, b, edit_costs(self.distances, kind), start, 0.0, 1).lower(a, b))
        bids, buffered = self._auctions[kind][1], kind == "plain" and self.unmatched > 0
        found = bids.lower(*self._masses(buffered))
        if buffered and not buffer_by_length:
            own, others_ = (bids.prices, bids.best) if self._flipped else (bids.best, bids.prices)
            found += self.unmatched * (-float(others_.max()) - float(own[-1]))
        return max(0.0, found)

    def largest(self) -> tuple[int, int]:
        """Between which numbers the largest distance of all pairs lies."""
        if self.distances is not None:
            return self.distances.largest(), self.distances.largest()
        boxes, others = self.boxes
        least = int(least_costs(boxes, others, "plain").max(initial=0))
        return least, int(max(lengths.max(initial=0) for lengths in self.lengths))

    @property
    def _flipped(self) -> bool:
        """Whether the columns choose among the rows, because there are more of them."""
        return len(self.columns) > len(self.rows)

    def _masses(self, buffered: bool) -> tuple[IntArray, IntArray]:
        """The masses of those that choose and of those that are chosen, with that of the buffer."""
        a = np.append(self.a, self.unmatched) if buffered else self.a
        return (self.b, a) if self._flipped else (a, self.b)


def shared_distances(pair: Pair) -> EditDistances | None:
    """Return the distances of all variants of both logs, where two measures bound their transports by them; None where
    the optimum is found, and where memory would hold them once only."""
    original, released = pair.variants
    pairs = len(original) * len(released)
    if pair.exact or not EXACT_PAIRS < pairs <= _SHARED:
        return None
    rows, columns = sorted(as_strings(original.sequences, released.sequences), key=len, reverse=True)
    return edit_distances(rows, columns, progress=pair.progress)
