"""Queries about relations, and the Markov chain made of their noisy answers.

A relation is a pair (x, y) of states. State A stands for the start where x is A, and for the end where y is A.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from veilog._typing import BoolArray, FloatArray, Int32Array, IntArray
from veilog.methods.evolve.constants import Constants, usual_length
from veilog.methods.evolve.traces import PAD, Traces, join_traces, widen
from veilog.rules.automata import Automata

if TYPE_CHECKING:
    from scipy import sparse

Triples = tuple[IntArray, IntArray, IntArray]
"""Rows, columns and values of a sparse matrix."""

_MOST_CELLS = 15_000
"""Most cells of a linear program: more would take long, and nearly all are noise."""
_MOST_WORK = 60_000
"""Most cells of all linear programs together: some three seconds."""


@dataclass(frozen=True, eq=False)
class Shortened:
    """Preparation of each sequence, by itself, before relations are counted.

    Activities are left out, then the sequence is cut.
    """

    states: Int32Array
    """State of each public activity, or -1 where it is left out."""
    size: int
    """Number of activities that remain, and the state of start and end."""
    max_length: int

    @property
    def room(self) -> int:
        """Number of events that sampled traces have room for, even if none has as many."""
        return usual_length(self.max_length)

    def __call__(self, codes: Int32Array | IntArray, offsets: IntArray) -> tuple[Int32Array, IntArray]:
        """Return the states of all sequences in a row, and the bounds of each."""
        states = self.states[codes]
        owner = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        kept = states >= 0
        before: IntArray = np.cumsum(kept) - kept
        first = np.concatenate([before, [kept.sum()]])[offsets[:-1]]
        kept &= before - first[owner] < self.max_length
        bounds = np.zeros(len(offsets), dtype=np.int64)
        np.cumsum(np.bincount(owner[kept], minlength=len(offsets) - 1), out=bounds[1:])
        return states[kept], bounds


@dataclass(frozen=True, eq=False)
class Chain:
    """First-order or, with trigrams, second-order chain, and its possible transitions.

    If it is known which activities occur at most once in a case, walks remember those that they have had.
    """

    flow: FloatArray
    support: BoolArray
    second: FloatArray | None = None
    """``second[x, y, z]``: chance of z after x, y; a row is empty where only the first order is known."""

    repeats: FloatArray | None = None
    """Cases that repeat each activity over its occurrences, if queried; 0 for none."""
    rules: Automata | None = None
    """Rules that every walk obeys, over the states of this chain."""

    @property
    def size(self) -> int:
        return len(self.flow) - 1

    @property
    def once(self) -> BoolArray:
        """Mask of the activities that occur at most once in a case."""
        return np.zeros(self.size, dtype=bool) if self.repeats is None else self.repeats <= 0

    def next_chances(self) -> FloatArray:
        totals: FloatArray = np.maximum(self.flow.sum(axis=1, keepdims=True), 1e-300)
        return self.flow / totals

    def obeys(self, traces: Traces) -> BoolArray:
        """Return a mask of the traces that obey the rules, all where there are none."""
        if self.rules is None:
            return np.ones(len(traces), dtype=bool)
        return self.rules.allowed(*traces.in_a_row)

    def shortest(self, room: int) -> Traces:
        """Return a short trace that obeys the rules."""
        codes = (() if self.rules is None else self.rules.nearest(())) or ()
        matrix = np.full((1, max(room, len(codes))), PAD, dtype=np.int32)
        matrix[0, : len(codes)] = codes
        return Traces(matrix, np.array([len(codes)]))

    def sample(self, number: int, max_length: int, rng: np.random.Generator, *, room: int = 1) -> Traces:
        """Return ``number`` traces from start to end.

        Traces that find no end in time are drawn again; the last attempt cuts them. The matrix is as wide as the
        longest trace, and has ``room`` for as many events at least.
        """
        parts = []
        missing = number
        for attempt in range(5):
            traces, ended = self._walk(missing, max_length, min(room, max_length), rng)
            if attempt < 4:
                traces = traces.take(np.flatnonzero(ended))
            parts.append(traces)
            missing -= len(traces)
            if missing == 0:
                break
        return join_traces(parts)

    def _walk(self, number: int, max_length: int, room: int, rng: np.random.Generator) -> tuple[Traces, BoolArray]:
        end = self.size
        first = self.next_chances()
        first[first.sum(axis=1) <= 0, end] = 1.0  # no way out is known: end
        pairs = first
        if self.second is not None:
            pairs = np.where(self.second.sum(axis=2, keepdims=True) > 0, self.second, first).reshape(-1, end + 1)
        once = np.append(self.once, False)
        # A column is a state, or two states: sums down columns are fast. With memory each step takes its own sums.
        bound = once.any() or self.rules is not None
        tables = (pairs if bound else np.cumsum(pairs, axis=1)).T.copy()
        kept = None if self.rules is None else self.rules.start(number)
        had = np.zeros((end + 1, number), dtype=bool)
        codes = np.full((number, room), PAD, dtype=np.int32)
        lengths = np.zeros(number, dtype=np.int64)
        ended = np.zeros(number, dtype=bool)
        alive = np.arange(number)
        before = np.full(number, end)
        state = np.full(number, end)
        for step in range(max_length + 1):
            table = tables.take(state if self.second is None else before * (end + 1) + state, axis=1)
            if bound:
                open_ = None if self.rules is None or kept is None else self.rules.open(kept).T
                table = _sums_of_open(table, first.T[:, state], had[:, alive], open_)
            draw = rng.random(len(alive)) * table[-1]
            following = np.minimum((table <= draw).sum(axis=0), end)
            stuck = table[-1] <= 0
            going = (following != end) & ~stuck
            lengths[alive[~going]] = step
            ended[alive[~going & ~stuck]] = True
            alive, before, state = alive[going], state[going], following[going]
            if self.rules is not None and kept is not None:
                kept = self.rules.advanced(kept[going], state)
            if not len(alive):
                break
            if step == max_length:
                lengths[alive] = max_length
                break
            if step == codes.shape[1]:
                codes = widen(codes, min(max_length, 2 * step))
            codes[alive, step] = state
            had[state, alive] = once[state]
        return Traces(codes[:, : max(room, int(lengths.max(initial=0)))], lengths), ended


def _sums_of_open(weights: FloatArray, first: FloatArray, had: BoolArray, open_: BoolArray | None) -> FloatArray:
    """Return the sums of weights down columns, without what cannot come again.

    Activities that rules do not leave ``open_`` have weight 0, too. Where nothing is left, the weights are those of the
    ``first`` order, and then those of all that rules allow.
    """
    if open_ is not None:
        had = had | ~open_
    left = np.where(had, 0.0, weights)
    nothing = left.sum(axis=0) <= 0
    left[:, nothing] = np.where(had[:, nothing], 0.0, first[:, nothing])
    if open_ is not None:
        nothing = left.sum(axis=0) <= 0
        left[:, nothing] = open_[:, nothing]
    sums: FloatArray = np.cumsum(left, axis=0)
    return sums


# Queries ----------------------------------------------------------------------------------------------------------


def activity_features(codes: Int32Array, offsets: IntArray, size: int) -> Triples:
    """Return the activities that occur in each case."""
    owner = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    keys = np.unique(owner * size + codes)
    return keys // size, keys % size, np.ones_like(keys)


def relation_features(states: Int32Array, bounds: IntArray, size: int) -> Triples:
    """Return directly-follows pairs with start and end: L + 1 for L events."""
    owner, x, y = _pairs(states, bounds, size)
    return owner, x * (size + 1) + y, np.ones_like(owner)


def relation_sums(traces: Traces, weights: FloatArray, size: int) -> FloatArray:
    """Return the number of times that traces of these weights take each step."""
    owner, cell, _ = relation_features(*traces.in_a_row, size)
    sums: FloatArray = np.bincount(cell, weights=weights[owner], minlength=(size + 1) ** 2).astype(np.float64)
    return sums.reshape(size + 1, size + 1)


def relation_and_repeat_features(states: Int32Array, bounds: IntArray, size: int) -> Triples:
    """Return each case's relations and, in further cells, the activities it repeats."""
    owner, cell, ones = relation_features(states, bounds, size)
    place = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds)) * size + states
    again, often = np.unique(place, return_counts=True)
    again = again[often > 1]
    return (
        np.concatenate([owner, again // size]),
        np.concatenate([cell, (size + 1) ** 2 + again % size]),
        np.concatenate([ones, np.ones_like(again)]),
    )


def trigram_features(states: Int32Array, bounds: IntArray, size: int) -> Triples:
    """Return triples of following states, the start twice: L + 1 for L events."""
    owner, y, z = _pairs(states, bounds, size)
    begins = np.concatenate([[True], owner[1:] != owner[:-1]]) if len(owner) else np.zeros(0, dtype=bool)
    x = np.where(begins, size, np.concatenate([[size], y[:-1]])[: len(y)])
    return owner, (x * (size + 1) + y) * (size + 1) + z, np.ones_like(owner)


def _pairs(states: Int32Array, bounds: IntArray, size: int) -> Triples:
    """Return the steps of every sequence from start to end: owner, from, to."""
    steps = np.diff(bounds) + 1
    ends = np.cumsum(steps) - 1
    to = np.full(int(steps.sum()), size, dtype=np.int64)
    inner = np.ones(len(to), dtype=bool)
    inner[ends] = False
    to[inner] = states
    came = np.concatenate([[size], to[:-1]])[: len(to)]
    owner = np.repeat(np.arange(len(steps)), steps)
    return owner, came, to


# Post-processing --------------------------------------------------------------------------------------------------


def clean(noisy: FloatArray, b: float, cases: float, low: bool, settings: Constants, rng: np.random.Generator) -> Chain:
    """Return the chain of noisy relations of noise scale ``b``, with a balanced flow.

    The flow is that of the cells that stand out. Half of it comes from linear programs, which find ways through other
    cells, in two cases. The log is small, or the cells that stand out hold too small a part of all answers: there are
    many relations, each of few cases.
    """
    size = len(noisy) - 1
    noisy = noisy.copy()
    noisy[size, size] = -np.inf  # empty traces are not sampled
    flow, kept = _significant_flow(noisy, b, settings)
    support = kept | (noisy >= b)
    answered = float(noisy.sum(where=np.isfinite(noisy)))
    if low or flow.sum() < settings.covered_from * answered:
        most = 0.97 * settings.contribution * cases
        optimum = _mean_flow(noisy, b, most, settings, rng) if low else _fit_flow(noisy, b, most)
        if optimum is not None:
            flow = (flow + optimum) / 2
            support |= optimum > 0
    return Chain(flow, support)


def _significant_flow(noisy: FloatArray, b: float, settings: Constants) -> tuple[FloatArray, BoolArray]:
    """Return the balanced flow of cells that noise would hardly reach, and their mask."""
    threshold = min(settings.theta * b * np.log(len(noisy)), noisy.max() / 3)
    threshold = max(threshold, 1e-9)
    kept = noisy >= threshold
    _repair(kept, noisy, b, into_end=True)
    _repair(kept, noisy, b, into_end=False)
    floor = 0.2 * threshold
    flow = np.where(kept, np.maximum(noisy - b, floor), 0.0)
    connect(kept, noisy, flow, b, settings)
    return _balance_flow(flow, kept, floor), kept


def _mean_flow(
    noisy: FloatArray, b: float, most: float, settings: Constants, rng: np.random.Generator
) -> FloatArray | None:
    """Return the mean of the linear programs' flows for perturbed answers.

    Noise could as well have given these answers. When all cells are little above their noise, the ways that the optimum
    takes depend on single cells. So the answers are perturbed, and steps that many optima share count for most
    (bagging: L. Breiman, Machine Learning 24, 1996).
    """
    cells = int((noisy > 0.3 * b).sum())
    number = min(settings.perturbed, _MOST_WORK // max(cells, 1))
    if number < 2:
        return _fit_flow(noisy, b, most)
    scale = settings.perturbed_by * b
    optima = (_fit_flow(noisy + rng.laplace(0.0, scale, noisy.shape), b, most) for _ in range(number))
    found = [flow for flow in optima if flow is not None]
    return np.mean(found, axis=0) if found else None


def _repair(kept: BoolArray, noisy: FloatArray, b: float, *, into_end: bool) -> None:
    """Keep the largest cells into the end, or out of the start, while their flow lags.

    At least one is kept: without an end no trace would ever stop.
    """
    size = len(noisy) - 1
    for _ in range(3):
        flow = np.where(kept, noisy, 0.0)
        into, out = flow[:, size].sum(), flow[size].sum()
        cells = (slice(None), size) if into_end else (size, slice(None))
        if kept[cells].any() and (into if into_end else out) >= 0.8 * (out if into_end else into):
            return
        rest = np.where(kept[cells], -np.inf, noisy[cells])
        best = int(rest.argmax())
        if rest[best] < b and kept[cells].any():
            return
        kept[(best, size) if into_end else (size, best)] = True


def _balance_flow(flow: FloatArray, kept: BoolArray, floor: float) -> FloatArray:
    """Return the nearest balanced flow, in squares; start and end are one state here."""
    x, y = np.nonzero(kept)
    incidence = _incidence(x, y, len(flow))
    values = flow[x, y]
    laplacian = (incidence @ incidence.T).toarray()
    potentials = np.linalg.lstsq(laplacian, incidence @ values, rcond=None)[0]
    result = np.zeros_like(flow)
    result[x, y] = np.maximum(values - incidence.T @ potentials, floor)
    return result


def _incidence(x: IntArray, y: IntArray, states: int) -> sparse.csr_array:
    """Return the incidence matrix of steps: 1 where one leaves, -1 where it arrives."""
    from scipy import sparse  # here: it takes a while to import

    values = np.repeat([1.0, -1.0], len(x))
    return sparse.csr_array((values, (np.concatenate([x, y]), np.tile(np.arange(len(x)), 2))), shape=(states, len(x)))


def _fit_flow(noisy: FloatArray, b: float, most: float) -> FloatArray | None:
    """Return the flow M nearest to the noisy answers N, by a linear program.

    M minimises ``sum |N - M| + b/2 sum min(M, N)/N`` over cells N > .3 b, with a total of at most ``most``. The program
    has M = (part up to N) + (part above). The result is None where there is no such flow, or where there are too many
    cells.
    """
    from scipy import sparse
    from scipy.optimize import linprog

    x, y = np.nonzero(noisy > 0.3 * b)
    if not 0 < len(x) <= _MOST_CELLS:
        return None
    target = noisy[x, y]
    cells, n = len(x), len(noisy)
    balance = _incidence(x, y, n)
    cost = np.concatenate([0.5 * b / target - 1, np.ones(cells)])
    answer: Any = linprog(
        cost,
        A_ub=np.ones((1, 2 * cells)),
        b_ub=[most],
        A_eq=sparse.hstack([balance, balance]),
        b_eq=np.zeros(n),
        bounds=np.column_stack([np.zeros(2 * cells), np.concatenate([target, np.full(cells, np.inf)])]),
        method="highs",
    )
    if answer.status != 0:
        return None
    flow = np.zeros_like(noisy)
    flow[x, y] = np.maximum(answer.x[:cells] + answer.x[cells:], 0)
    flow[flow < 1e-9 * max(1.0, most)] = 0
    return flow if flow[n - 1].sum() > 0 else None


def limit_repeats(chain: Chain, noisy: FloatArray, b: float, settings: Constants) -> Chain:
    """Return the chain with memory: activities that hardly repeat occur at most once.

    The ``noisy`` numbers of cases decide, with an exception. An activity may occur more often than there are cases to
    have it, beyond noise: some cases must repeat it then (the pigeonhole principle). Cases that repeat it very often
    are few by weight, for a case adds the less to every number the longer it is. For these, ``noisy`` is noise. They
    are at least as many as the surplus needs if each of them has as many events as a case usually may have.
    """
    occurrences = chain.flow[:, :-1].sum(axis=0)
    most, over, deviation = left_over(chain.flow, b)
    once = noisy < np.maximum(settings.once_below * np.minimum(occurrences, most), b)
    once &= over <= settings.beyond * deviation
    cases = np.maximum(np.minimum(noisy, np.maximum(most, b)), over / usual_length(settings.max_length))
    repeats = np.where(once, 0.0, cases / np.maximum(occurrences, 1e-9))
    itself = np.flatnonzero(once)
    flow, support = chain.flow.copy(), chain.support.copy()
    flow[itself, itself] = 0.0
    support[itself, itself] = False
    found = Chain(flow, support, chain.second, repeats)
    return _add_memory(found, noisy, cases, b, settings)


def _add_memory(chain: Chain, noisy: FloatArray, cases: FloatArray, b: float, settings: Constants) -> Chain:
    """Return the chain with second-order chances for activities that few cases repeat.

    Fewer ``cases`` repeat such an activity, by ``noisy`` answers and beyond their noise, than if it followed itself
    with the same chance each time. So the cases that repeat it do so often. If an activity comes again with a chance of
    p, p of the cases that have it repeat it. These cases are 1 - p of its occurrences.
    """
    p = chain.next_chances()
    occurrences, again = chain.flow[:, :-1].sum(axis=0), p.diagonal()[:-1]
    few = np.maximum(noisy, 0) + settings.beyond * math.sqrt(2) * b < occurrences * again * (1 - again)
    if not few.any():
        return chain
    second = np.repeat(p[None], len(p), axis=0)
    for state in np.flatnonzero(few).tolist():
        itself, row = chain.flow[state, state], p[state].copy()
        row[state] = 0.0
        first = min(1.0, cases[state] / (occurrences[state] - itself))
        second[:, state] = row * (1 - first) / row.sum()
        second[:, state, state] = first
        more = max(0.0, 1 - cases[state] / itself)
        second[state, state] = row * (1 - more) / row.sum()
        second[state, state, state] = more
    return replace(chain, second=second)


# Activities that occur more often than cases can have them, and the ways to them --------------------------------
#
# A flow counts each step, by the weight that a case has in the query for relations. The start and the end are its last
# state.


def left_over(flow: FloatArray, b: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return each activity's largest number of cases, its surplus, and the deviation.

    The surplus is by how much the activity occurs more often than there are cases to have it. The standard deviation is
    that of the surplus.
    """
    size = len(flow) - 1
    occurrences, itself = flow[:, :-1].sum(axis=0), flow.diagonal()[:-1]
    # A case that has an activity leaves the start, and comes to the activity from elsewhere.
    most = np.minimum(flow[size].sum(), occurrences - itself)
    summed = (flow[:, :-1] > 0).sum(axis=0) + (flow[size] > 0).sum()
    by_itself = itself >= occurrences - flow[size].sum()
    return most, occurrences - most, b * np.sqrt(2.0 * np.where(by_itself, 1, summed))


def connect(kept: BoolArray, noisy: FloatArray, flow: FloatArray, b: float, settings: Constants) -> None:
    """Keep ways from the start to each activity that surely repeats, and to the end.

    Cases that repeat an activity very often are few by weight, so noise may hide the steps to it and from it. No walk
    would then reach it. Where the kept steps make no way, the way whose least step is the largest is kept.
    """
    _, over, deviation = left_over(flow, b)
    often = np.flatnonzero(over > settings.beyond * deviation).tolist()
    # Usually a case has an activity at most as often as it may have events: so at least these many cases come and go.
    least = flow.sum(axis=0) / usual_length(settings.max_length)
    first = len(noisy) - 1
    for cells, answers, flows in ((kept, noisy, flow), (kept.T, noisy.T, flow.T)):  # ways back start at the end
        reached = _reachable_states(cells, first)
        for state in often:
            if reached[state]:
                continue
            for step in _widest(np.where(cells, np.inf, answers), first, state):
                cells[step] = True
                flows[step] = max(flows[step], least[state])
            reached = _reachable_states(cells, first)


def _reachable_states(kept: BoolArray, first: int) -> BoolArray:
    """Return a mask of the states that steps lead to from the first one."""
    from scipy import sparse
    from scipy.sparse.csgraph import breadth_first_order

    reached = np.zeros(len(kept), dtype=bool)
    reached[breadth_first_order(sparse.csr_array(kept), first, return_predecessors=False)] = True
    return reached


def _widest(width: FloatArray, first: int, last: int) -> list[tuple[int, int]]:
    """Return the steps of the way whose least width is largest (Dijkstra's algorithm)."""
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
