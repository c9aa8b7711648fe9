"""Noisy directly-follows relations and traces played out from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from veilog._typing import IntArray
from veilog.errors import ParameterError, SolverError
from veilog.logs.variants import Sequences, Variants
from veilog.privacy.contributions import LARGEST_SIZE


def refuse_many_activities(activities: Sequence[str]) -> None:
    """Refuse activities with too many pairs to count, before anything is asked.

    The pairs include those with start and end.
    """
    if (len(activities) + 1) ** 2 > LARGEST_SIZE:
        raise ParameterError(
            "relation-pairs-too-many",
            parameter="activities",
            number=len(activities),
            isqrt=math.isqrt(LARGEST_SIZE) - 1,
        )


def draw_number(most: int, rate: float, random: np.random.Generator) -> int:
    """Return i from 0, ..., most with P(i) ~ exp(-rate i).

    This is the exponential mechanism for the number of harmful ones that enter.
    """
    mass = -math.expm1(-rate * (most + 1))
    return min(most, int(-math.log1p(-random.random() * mass) / rate))


# Play-out: traces from counts of the directly-follows relation. Post-processing of noisy counts.
#
# A relation is a square array: entry (a, b) counts how often b directly follows a. The last row stands for the start
# of a trace and the last column for its end.
#
# ``play_out`` is Algorithm 2 of Fahrenkrog-Petersen, Kabierski, van der Aa, Weidlich, "Semantics-aware Mechanisms for
# Control-flow Anonymization in Process Mining" (2023): continue a trace by a relation drawn in proportion to the
# counts left, use it up, and where nothing is left go back a step and remove every relation that leads there.
#
# ``play_out_guided`` leaves nothing unused. It first finds the balanced counts (every activity entered as often as
# left) nearest to the noisy ones; balanced counts, the end joined to the start, are an Eulerian graph, and a random
# Eulerian circuit, cut at the start, is a set of traces that uses every count exactly once.

SPARE_COST = 0.5
"""Cost of using a spare relation, against 1 for changing another count by one (found on public logs)."""
LARGEST_TOTAL = 10**8
"""Counts that are played out at most: about a minute, and a gigabyte."""
_CHUNK = 4096


def play_out(activities: tuple[str, ...], counts: IntArray, random: np.random.Generator) -> Variants:
    """Return traces by Algorithm 2, exact about used counts, with backtracking."""
    return _walk(activities, counts, random, [-1] * len(counts))


def play_out_guided(
    activities: tuple[str, ...], counts: IntArray, random: np.random.Generator, spare: IntArray | None = None
) -> Variants:
    """Return traces that use every one of the balanced counts that the start reaches."""
    flow = balance(counts, spare)
    return _walk(activities, flow, random, _last_exits(flow, random))


def _walk(
    activities: tuple[str, ...], counts: IntArray, random: np.random.Generator, last_exits: list[int]
) -> Variants:
    """Walk from the start to the end until the start has no relation left.

    Drawing a relation in proportion to what is left and using it up is drawing without replacement: each activity's
    relations are an urn, emptied in chunks of random order. Relations that were removed are skipped when drawn, which
    leaves the order of the others random. That the paper tests beforehand whether a whole trace is left changes
    nothing: where none is, backtracking ends at the start, which by then has no relation left.
    """
    if int(counts.sum()) >= LARGEST_TOTAL:
        raise ParameterError("relation-entries-too-many", parameter="epsilon", sum=int(counts.sum()))
    boundary = len(counts) - 1
    urns = counts.copy()
    for node, exit_ in enumerate(last_exits):
        if exit_ >= 0:
            urns[node, exit_] -= 1
    drawn: list[list[int]] = [[] for _ in counts]
    removed = [False] * len(counts)
    refill = _chunk_drawer(urns, drawn, last_exits, random)

    codes: list[int] = []
    lengths: list[int] = []
    trace: list[int] = []
    node = boundary
    while True:
        following = -1
        while following < 0 and (drawn[node] or refill(node)):
            candidate = drawn[node].pop()
            if not removed[candidate]:
                following = candidate
        if following == boundary:
            codes += trace
            lengths.append(len(trace))
            trace, node = [], boundary
        elif following >= 0:
            trace.append(following)
            node = following
        elif node == boundary:
            break
        else:
            removed[node] = True
            urns[:, node] = 0
            trace.pop()
            node = trace[-1] if trace else boundary
    offsets = np.concatenate([[0], np.cumsum(np.array(lengths, dtype=np.int64))])
    return Variants.from_arrays(activities, np.array(codes, dtype=np.int32), offsets)


def _chunk_drawer(
    urns: IntArray, drawn: list[list[int]], last_exits: list[int], random: np.random.Generator
) -> Callable[[int], bool]:
    """Return a function that draws a node's next chunk, and its last exit at the end.
    The function returns False when nothing is left."""
    targets = np.arange(len(urns))

    def refill(node: int) -> bool:
        left = int(urns[node].sum())
        if left:
            chunk = random.multivariate_hypergeometric(urns[node], min(left, _CHUNK), method="marginals")
            urns[node] -= chunk
            tokens = np.repeat(targets, chunk)
            random.shuffle(tokens)
            drawn[node] = tokens.tolist()
        elif last_exits[node] >= 0:
            drawn[node], last_exits[node] = [last_exits[node]], -1
        return bool(drawn[node])

    return refill


def balance(counts: IntArray, spare: IntArray | None = None) -> IntArray:
    """Return the counts nearest in L1 that enter each activity as often as leave it.

    Only relations that have a count take part, and those without one up to their ``spare`` count, at SPARE_COST. The
    exact relation of any log is balanced, and under Laplace noise the nearest in L1 is the most likely. The problem is
    a network flow: its vertices are integers.
    """
    from scipy.optimize import linprog  # here: it takes a while to import
    from scipy.sparse import csr_array, hstack

    capacity = np.zeros_like(counts) if spare is None else np.where(counts > 0, 0, spare)
    sources, targets = np.nonzero((counts > 0) | (capacity > 0))
    amounts = np.maximum(counts[sources, targets], 0)
    most = np.where(amounts > 0, np.inf, capacity[sources, targets])
    edges, activities = len(amounts), len(counts) - 1
    if edges == 0 or activities == 0:
        return np.maximum(counts, 0)
    leaves, enters = sources < activities, targets < activities
    values = np.concatenate([np.ones(leaves.sum()), -np.ones(enters.sum())])
    nodes = np.concatenate([sources[leaves], targets[enters]])
    matrix = csr_array(
        (values, (nodes, np.concatenate([np.flatnonzero(leaves), np.flatnonzero(enters)]))), shape=(activities, edges)
    )
    solution = linprog(
        np.concatenate([np.where(amounts > 0, 1.0, SPARE_COST), np.ones(edges)]),
        A_eq=hstack([matrix, -matrix]),
        b_eq=-(matrix @ amounts),
        bounds=np.column_stack([np.zeros(2 * edges), np.concatenate([most, amounts])]),
        method="highs-ds",
    )
    if solution.status != 0:
        raise SolverError("relation-not-balanced", text=solution.message)
    change = np.rint(solution.x).astype(np.int64)
    flow = np.zeros_like(counts)
    flow[sources, targets] = amounts + change[:edges] - change[edges:]
    if (flow < 0).any() or not np.array_equal(flow.sum(axis=0)[:-1], flow.sum(axis=1)[:-1]):
        raise SolverError("relation-not-balanced-whole")
    return flow


def _last_exits(flow: IntArray, random: np.random.Generator) -> list[int]:
    """Return for each activity the relation by which it is left last, or -1.

    Only activities that the start reaches have one. Followed from any activity, these lead to the end: a random
    in-tree, drawn by loop-erased random walks (Wilson, "Generating random spanning trees more quickly than the cover
    time", STOC 1996). By the BEST theorem (van Aardenne-Ehrenfest, de Bruijn, 1951) it and a random order of the other
    exits make a random Eulerian circuit.
    """
    boundary = len(flow) - 1
    in_tree = np.zeros(len(flow), dtype=bool)
    in_tree[boundary] = True
    exits = [-1] * len(flow)
    leaving = [np.cumsum(row) for row in flow]
    for first in _reachable(flow).tolist():
        node = first
        while not in_tree[node]:
            exits[node] = int(np.searchsorted(leaving[node], random.integers(leaving[node][-1]), side="right"))
            node = exits[node]
        node = first
        while not in_tree[node]:
            in_tree[node] = True
            node = exits[node]
    return exits


def _reachable(flow: IntArray) -> IntArray:
    """Return the activities that some walk from the start visits."""
    seen = np.zeros(len(flow), dtype=bool)
    edge = np.zeros(len(flow), dtype=bool)
    edge[-1] = True
    while edge.any():
        seen |= edge
        edge = (flow[edge] > 0).any(axis=0) & ~seen
    return np.flatnonzero(seen[:-1])


# Events of cases in rows, one case after the other -------------------------------------------------------------------

# Where they are, of which public activity, and which of equal
# ones each is.


def rows_of(offsets: IntArray, cases: IntArray) -> tuple[IntArray, IntArray]:
    """Return the rows of these cases one after the other, and where each case begins.

    A case that is given several times has its rows as often. The rows of case ``i`` are ``offsets[i]`` up to
    ``offsets[i + 1]``.
    """
    lengths = np.diff(offsets)[cases]
    begins = np.zeros(len(cases) + 1, dtype=np.int64)
    np.cumsum(lengths, out=begins[1:])
    return np.arange(begins[-1]) + np.repeat(offsets[:-1][cases] - begins[:-1], lengths), begins


def equal_before(keys: IntArray) -> IntArray:
    """Return for each key, none below 0, the number of equal keys before it."""
    order = np.argsort(keys, kind="stable")
    first = np.flatnonzero(np.diff(keys[order], prepend=-1))
    rank = np.empty(len(keys), dtype=np.int64)
    rank[order] = np.arange(len(keys)) - np.repeat(first, np.diff(first, append=len(keys)))
    return rank


def public_codes(sequences: Sequences, activities: tuple[str, ...]) -> IntArray:
    """Return the public code of each label of the sequences, its activity's place."""
    place = {name: i for i, name in enumerate(activities)}
    return np.array([place[label] for label in sequences.labels], dtype=np.int64)


def add_answers(answers: list[Variants]) -> Variants:
    """Return all cases of several answers as one."""
    return Variants.from_sequences(
        (sequence for answer in answers for sequence in answer.sequences),
        (count for answer in answers for count in answer.counts.tolist()),
    )
