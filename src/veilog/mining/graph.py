"""Directly-follows graphs of logs in which traces are strings.

Within discovery a log is a dict from traces to numbers of cases, and a trace is a string with one character an
activity: dropping, splitting and counting activities are then what strings do. The character 0 stands for none, so that
it can be the border of traces: what follows the border starts a trace, what the border follows ends one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from veilog._typing import BoolArray, IntArray

Log = Mapping[str, int]
BORDER = "\0"


def bits(mask: int) -> Iterator[int]:
    """Yield the positions of the bits that are set, the lowest first."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


@dataclass(frozen=True)
class Graph:
    """Which activity directly follows which, in bit masks; node 0 is the border of traces and in no mask."""

    successors: list[int]
    predecessors: list[int]
    starts: int
    ends: int

    @classmethod
    def of(cls, edges: BoolArray) -> Graph:
        """Return the graph of a matrix whose first row and column are the border's."""
        successors, predecessors = _masks(edges), _masks(edges.T)
        starts, ends = successors[0] & ~1, predecessors[0] & ~1
        return cls([0, *(m & ~1 for m in successors[1:])], [0, *(m & ~1 for m in predecessors[1:])], starts, ends)

    @property
    def nodes(self) -> int:
        """Mask of the activities that have an edge, start or end."""
        mask = self.starts | self.ends
        for position in range(1, len(self.successors)):
            if self.successors[position] or self.predecessors[position]:
                mask |= 1 << position
        return mask


def _masks(edges: BoolArray) -> list[int]:
    """Return of each row the mask of its true columns."""
    packed = np.packbits(edges, axis=1, bitorder="little")
    width, raw = packed.shape[1], packed.tobytes()
    return [int.from_bytes(raw[i : i + width], "little") for i in range(0, len(raw), width)]


class Relations:
    """How often each activity of a log directly follows each."""

    def __init__(self, log: Log) -> None:
        text = BORDER + BORDER.join(log) + BORDER
        codes = np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32).astype(np.int64)
        present = np.flatnonzero(np.bincount(codes))
        self.letters = "".join(map(chr, present[1:].tolist()))
        """The activities, in their order; a position in a mask is one more than that in here."""
        self._size = len(present)
        index = np.zeros(int(present[-1]) + 1, dtype=np.int64)
        index[present] = np.arange(self._size)
        self._nodes: IntArray = index[codes]
        steps = np.fromiter(map(len, log), np.int64, len(log)) + 1
        cases = np.repeat(np.fromiter(log.values(), np.float64, len(log)), steps)
        pairs = self._nodes[:-1] * self._size + self._nodes[1:]
        counts = np.bincount(pairs, cases, minlength=self._size**2)
        self._counts: IntArray = counts.astype(np.int64).reshape(self._size, self._size)
        self.graph = Graph.of(self._counts > 0)

    def filtered(self, noise: float) -> Graph:
        """Return the graph without edges that are rare beside the most frequent way on from where they start.

        An edge stays if it has more than ``noise`` times the cases of that way, the end of the trace being one where
        there is another; a start stays if it has at least ``noise`` times those of the most frequent start.
        """
        counts = self._counts
        edges = counts > 0
        edges[1:, 1:] &= counts[1:, 1:] > noise * counts[1:].max(axis=1)[:, None]
        edges[0] &= counts[0] >= noise * counts[0, 1:].max()
        return Graph.of(edges)

    def without_each(self) -> Iterator[tuple[str, Graph]]:
        """Yield each activity and the graph of the log without it: what stood around it now stands side by side."""
        runs = self._nodes[np.concatenate([[True], self._nodes[1:] != self._nodes[:-1]])]
        size = self._size
        keys = np.unique((runs[1:-1] * size + runs[:-2]) * size + runs[2:])
        around: list[list[tuple[int, int]]] = [[] for _ in range(size)]
        for middle, before, after in zip(
            (keys // size**2).tolist(), (keys // size % size).tolist(), (keys % size).tolist(), strict=True
        ):
            around[middle].append((before, after))
        for position, letter in enumerate(self.letters, 1):
            yield letter, self._without(position, around[position])

    def _without(self, position: int, around: list[tuple[int, int]]) -> Graph:
        keep = ~(1 << position)
        successors = [mask & keep for mask in self.graph.successors]
        predecessors = [mask & keep for mask in self.graph.predecessors]
        successors[position] = predecessors[position] = 0
        starts, ends = self.graph.starts & keep, self.graph.ends & keep
        for before, after in around:
            if before and after:
                successors[before] |= 1 << after
                predecessors[after] |= 1 << before
            elif after:
                starts |= 1 << after
            elif before:
                ends |= 1 << before
        return Graph(successors, predecessors, starts, ends)
