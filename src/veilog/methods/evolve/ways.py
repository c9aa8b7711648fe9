"""Activities that occur more often than there are cases to have them, by a flow, and the ways on which cases come to
them.

A flow says how often each step is taken, by the weight that a case has in the question for relations: the start and the
end are its last state.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import breadth_first_order

from veilog._typing import BoolArray, FloatArray
from veilog.methods.evolve.constants import Constants, usual_length


def left_over(flow: FloatArray, b: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Of each activity how many cases have it at most, how much oftener it occurs, and the deviation of that."""
    size = len(flow) - 1
    occurrences, itself = flow[:, :-1].sum(axis=0), flow.diagonal()[:-1]
    # A case that has it leaves the start, and comes to it from elsewhere.
    most = np.minimum(flow[size].sum(), occurrences - itself)
    summed = (flow[:, :-1] > 0).sum(axis=0) + (flow[size] > 0).sum()
    by_itself = itself >= occurrences - flow[size].sum()
    return most, occurrences - most, b * np.sqrt(2.0 * np.where(by_itself, 1, summed))


def connect(kept: BoolArray, noisy: FloatArray, flow: FloatArray, b: float, settings: Constants) -> None:
    """Keep a way from the start to each activity that certainly repeats, and one from there to the end.

    Of cases that repeat it very often there are so few by weight that the steps to it and from it may be lost in noise,
    and what stands out would be imagined by no walk. Where all steps that are kept make no way, it is the one whose
    least step is the largest.
    """
    _, over, deviation = left_over(flow, b)
    often = np.flatnonzero(over > settings.beyond * deviation).tolist()
    # A case has an activity at most as often as it may have events, usually: so many cases come to it, and leave it.
    least = flow.sum(axis=0) / usual_length(settings.max_length)
    first = len(noisy) - 1
    for cells, answers, flows in ((kept, noisy, flow), (kept.T, noisy.T, flow.T)):  # the end is where ways back start
        reached = _reached(cells, first)
        for state in often:
            if reached[state]:
                continue
            for step in _widest(np.where(cells, np.inf, answers), first, state):
                cells[step] = True
                flows[step] = max(flows[step], least[state])
            reached = _reached(cells, first)


def _reached(kept: BoolArray, first: int) -> BoolArray:
    """The states that steps lead to from the first one."""
    reached = np.zeros(len(kept), dtype=bool)
    reached[breadth_first_order(sparse.csr_array(kept), first, return_predecessors=False)] = True
    return reached


def _widest(width: FloatArray, first: int, last: int) -> list[tuple[int, int]]:
    """The steps of the way from the first state to the last whose least width is largest (Dijkstra's algorithm)."""
    best, came = width[first].copy(), np.full(len(width), first)
    left = np.ones(len(width), dtype=bool)
    left[first] = False
    while left[last]:
        state = int(np.where(left, best, -np.inf).argmax())
        left[state] = False
        through = np.minimum(best[state], width[state])
        wider = left & (through > best)
        best[wider], came[wider] = through[wider], state
    way, state = [], last
    while state != first:
        way.append((int(came[state]), state))
        state = int(came[state])
    return way
