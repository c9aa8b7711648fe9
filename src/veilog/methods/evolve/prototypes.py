"""Prototypes to vote for, the fit to the votes, and the next generation of traces."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from veilog._typing import BoolArray, Float32Array, FloatArray, Int32Array, IntArray
from veilog.methods.evolve.chain import Chain
from veilog.methods.evolve.constants import Constants
from veilog.methods.evolve.traces import PAD, Traces, distinct, join_traces, occurrences, steps

_UNKNOWN = 1e3
"""Deviation of a share of all cases that carries no information."""
_AT_ONCE = 32
"""Candidates whose gains are computed together; fewer would need more calls."""


def medoids(distance: Float32Array, weights: FloatArray, number: int, near: Float32Array | None = None) -> IntArray:
    """Return ``number`` columns near the weighted rows: lazy greedy facility location.

    Each step adds the column that lowers ``sum_i w_i min_j d(i, j)`` most. Gains only shrink (the objective is
    submodular), so an old gain is a bound. Only columns with the largest bounds are computed again (Minoux 1978), some
    at a time. ``near`` are the distances to earlier choices, if there are any.
    """
    weighted = np.empty(distance.shape[::-1], dtype=np.float32)  # a row is a candidate
    np.multiply(distance.T, weights.astype(np.float32), out=weighted)
    if near is None:
        now = weights.astype(np.float32)  # no distance is above 1
        gains = now.sum() - weighted.sum(axis=1)
    else:
        now = weights.astype(np.float32) * near
        gains = np.maximum(now - weighted, 0).sum(axis=1)
    computed = np.zeros(len(gains), dtype=np.int64)  # number chosen when each gain was computed
    chosen: list[int] = []
    while len(chosen) < min(number, len(gains)):
        best = int(gains.argmax())
        if computed[best] < len(chosen):
            largest = np.argpartition(-gains, _AT_ONCE)[:_AT_ONCE] if len(gains) > _AT_ONCE else np.arange(len(gains))
            largest[0] = best  # among many equal ones it might be left out
            old = largest[(computed[largest] < len(chosen)) & (gains[largest] > -np.inf)]
            less = weighted[old]
            np.subtract(now, less, out=less)
            gains[old] = np.maximum(less, 0, out=less).sum(axis=1)
            computed[old] = len(chosen)
            continue
        chosen.append(best)
        np.minimum(now, weighted[best], out=now)
        gains[best] = -np.inf
    return np.array(chosen, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Counted:
    """Noisy numbers of cases, or shares of all cases, of disjoint parts of a pool.

    They are votes, or numbers of real variants.
    """

    cells: IntArray
    """Part of the pool that each trace is in."""
    counts: FloatArray | IntArray
    deviations: float | FloatArray
    """Deviation of the noise of each, or one for all; infinite where nothing is known."""


def fit(prior: FloatArray, votes: list[Counted], sweeps: int) -> FloatArray:
    """Return the distribution nearest to ``prior`` that explains all rounds of votes.

    It is ``argmin KL(p || prior) + sum over rounds r and cells c of (P_p(c) - share)^2 / (2 s_r^2)``. At the optimum
    ``p_i ~ prior_i exp(-sum_r u[r, cell_r(i)])`` with ``u = (P_p(c) - share) / s_r^2``. One round given the others is
    solved in closed form (:func:`_masses`). The rounds take turns until nothing moves, as in iterative proportional
    fitting, which climbs the concave dual. Traces of the same cells in all rounds keep their proportions, so the fit
    handles such groups as one.
    """
    joint = votes[0].cells
    for more in votes[1:]:
        joint = joint * len(more.counts) + more.cells
    _, first, group = np.unique(joint, return_index=True, return_inverse=True)
    together = np.bincount(group, weights=prior).astype(np.float64)
    cells = [part.cells[first] for part in votes]
    log_prior = np.log(np.maximum(together, 1e-300))
    tilts = [np.zeros(len(part.counts)) for part in votes]
    log_z: list[float | None] = [None] * len(votes)
    p: FloatArray = together / together.sum()
    for _ in range(sweeps):
        before = p
        for r, (cell, part) in enumerate(zip(cells, votes, strict=True)):
            others = log_prior - sum(u[c] for i, (u, c) in enumerate(zip(tilts, cells, strict=True)) if i != r)
            weights = np.exp(others - others.max())
            mass = np.bincount(cell, weights=weights, minlength=len(part.counts)).astype(np.float64)
            masses, log_z[r] = _masses(mass, part.counts, part.deviations**2, log_z[r])
            tilts[r] = (masses - part.counts) / part.deviations**2
            # Where votes contradict each other either part alone may be too far down for a float; their sum is not.
            log_p = others - tilts[r][cell]
            p = np.exp(log_p - log_p.max())
            p /= p.sum()
        if len(cells) == 1 or np.abs(p - before).sum() < 1e-6:
            break
    shared: FloatArray = prior * (p / np.maximum(together, 1e-300))[group]
    return shared


def misfit(prior: FloatArray, p: FloatArray, votes: list[Counted]) -> float:
    """Return the loss of :func:`fit`: the distances of p from the prior and the votes."""
    used = p > 0
    value = float((p[used] * np.log(p[used] / prior[used])).sum())
    for part in votes:
        far = (np.bincount(part.cells, weights=p, minlength=len(part.counts)) - part.counts) / part.deviations
        value += float((far**2).sum(where=np.asarray(part.deviations) < _UNKNOWN)) / 2
    return value


def fit_of_counts(
    prior: FloatArray, asked: list[Counted], size: tuple[float, float], trust: float, sweeps: int
) -> FloatArray:
    """Return the distribution nearest to ``prior`` that explains counts of cases.

    The number n of cases is that which explains them best: ``argmin over n and p of trust KL(p || prior) + sum over all
    counts of (n P_p(c) - count)^2 / (2 s_c^2)``. The number of cases by itself (``size``: a noisy answer and its
    variance) is one of the counts. A count that is exact for its size fixes n and p together. If n were fixed before
    and far off, p would have to make up for it.
    """
    together = max(float(np.maximum(part.counts, 0).sum()) for part in asked)
    smallest = math.log(max(1.0, min(size[0], together) / 2))
    largest = math.log(max(2.0, 2 * max(size[0], together)))

    def shares(log_n: float) -> list[Counted]:
        n = math.exp(log_n)
        deviations = (np.minimum(part.deviations * math.sqrt(trust) / n, _UNKNOWN) for part in asked)
        return [Counted(part.cells, part.counts / n, off) for part, off in zip(asked, deviations, strict=True)]

    def loss(log_n: float) -> float:
        votes = shares(log_n)
        off = misfit(prior, fit(prior, votes, sweeps), votes)
        return off + (math.exp(log_n) - size[0]) ** 2 / (2 * trust * size[1])

    from scipy.optimize import minimize_scalar  # here: it takes a while to import

    found: Any = minimize_scalar(loss, bounds=(smallest, largest), method="bounded", options={"xatol": 3e-4})
    return fit(prior, shares(float(found.x)), sweeps)


def _masses(
    mass: FloatArray, share: FloatArray | IntArray, variance: float | FloatArray, log_z: float | None = None
) -> tuple[FloatArray, float]:
    """Return masses P of disjoint cells that add up to 1, and ln Z.

    They satisfy ``P = mass exp(-(P - share) / variance) / Z``. Taking logarithms, ``w + ln w = ln(mass / (Z variance))
    + share / variance`` for ``w = P / variance``. So w is Wright's omega function of the right side. Newton's method
    finds the Z for which the masses add up to 1, from ``log_z`` if a value that may be near is known.
    """
    from scipy.special import wrightomega  # here: it takes a while to import

    level = np.log(np.maximum(mass, 1e-300)) - np.log(variance) + share / variance
    # The sum is decreasing and convex in ln Z, so Newton's steps from the left never pass the root, and one from the
    # right passes it. The ln Z at which the largest mass alone would be 1 is on its left.
    left = float((level - 1 / variance + np.log(variance)).max())
    log_z = left if log_z is None else max(log_z, left)
    w = wrightomega(level - log_z)
    for _ in range(200):
        excess = float((variance * w).sum()) - 1
        if abs(excess) < 1e-9:
            break
        log_z = max(left, log_z + excess / float((variance * w / (1 + w)).sum()))
        w = wrightomega(level - log_z)
    return variance * w, log_z


def next_generation(
    traces: Traces, p: FloatArray, chain: Chain, settings: Constants, rng: np.random.Generator
) -> tuple[Traces, FloatArray]:
    """Return a new pool: traces drawn again by the fit, and mutants of such traces.

    They have equal weights, and equal traces are merged.
    """
    again = traces.take(rng.choice(len(traces), size=round(settings.resampled * settings.pool), p=p))
    wanted = settings.pool - len(again)
    parts, found = [again], 0
    for _ in range(6):
        parents = traces.take(rng.choice(len(traces), size=wanted, p=p))
        partners = traces.take(rng.choice(len(traces), size=wanted, p=p))
        children = _mutate(parents, partners, chain, settings, rng)
        twice = np.flatnonzero(rng.random(wanted) < settings.second_mutation)
        if len(twice):
            more = _mutate(children.take(twice), partners.take(twice[::-1]), chain, settings, rng)
            children.codes[twice], children.lengths[twice] = more.codes, more.lengths
        children = children.take(np.flatnonzero(_possible(children, chain)))
        children = children.take(np.arange(min(len(children), wanted - found)))
        parts.append(children)
        found += len(children)
        if found >= wanted:
            break
    pool = join_traces(parts)
    return distinct(pool, np.full(len(pool), 1.0 / len(pool)))


def _mutate(parents: Traces, partners: Traces, chain: Chain, settings: Constants, rng: np.random.Generator) -> Traces:
    """Return each parent with one event edited, or crossed with its partner."""
    codes, lengths = parents.codes.copy(), parents.lengths.copy()
    kind = rng.choice(5, size=len(lengths), p=settings.mutations)
    width = codes.shape[1]
    short = lengths == 0
    kind[short] = -1
    kind[(kind == 0) & (lengths < 2)] = 3
    kind[(kind == 1) & (lengths >= width)] = 3
    place = (rng.random(len(lengths)) * np.maximum(lengths, 1)).astype(np.int64)
    for operation, rows in ((o, np.flatnonzero(kind == o)) for o in range(5)):
        if not len(rows):
            continue
        own, n, at = parents.codes[rows], parents.lengths[rows], place[rows]
        if operation == 0:
            new, size = _delete_event(own, n, at)
        elif operation == 1:
            at = (rng.random(len(rows)) * (n + 1)).astype(np.int64)
            new, size = _insert_event(own, n, at, _draw_successors(own, at, chain, rng))
        elif operation == 2:
            moved = own[np.arange(len(rows)), at]
            new, size = _delete_event(own, n, at)
            new, size = _insert_event(new, size, (rng.random(len(rows)) * n).astype(np.int64), moved)
        elif operation == 3:
            new, size = own.copy(), n
            new[np.arange(len(rows)), at] = _draw_successors(own, at, chain, rng)
        else:
            new, size = _cross(own, n, at, partners.codes[rows], partners.lengths[rows], rng)
        codes[rows], lengths[rows] = new, size
    return Traces(codes, lengths)


def _draw_successors(own: Int32Array, at: IntArray, chain: Chain, rng: np.random.Generator) -> Int32Array:
    """Return activities that may follow the event before ``at``; any if none is known."""
    end = chain.size
    before = np.where(at > 0, own[np.arange(len(own)), np.maximum(at - 1, 0)], end)
    table = np.cumsum(chain.next_chances()[:, :end], axis=1).T[:, before]
    draw = rng.random(len(own)) * table[-1]
    found = np.minimum((table <= draw).sum(axis=0), end - 1)
    return np.where(table[-1] > 0, found, rng.integers(0, end, size=len(own))).astype(np.int32)


def _delete_event(own: Int32Array, n: IntArray, at: IntArray) -> tuple[Int32Array, IntArray]:
    t = np.arange(own.shape[1])
    source = np.minimum(t + (t >= at[:, None]), own.shape[1] - 1)
    new = np.take_along_axis(own, source, axis=1)
    new[t >= (n - 1)[:, None]] = PAD
    return new, n - 1


def _insert_event(own: Int32Array, n: IntArray, at: IntArray, code: Int32Array) -> tuple[Int32Array, IntArray]:
    t = np.arange(own.shape[1])
    new = np.take_along_axis(own, np.maximum(t - (t > at[:, None]), 0), axis=1)
    new[np.arange(len(own)), at] = code
    return new, n + 1


def _cross(
    own: Int32Array, n: IntArray, at: IntArray, other: Int32Array, other_n: IntArray, rng: np.random.Generator
) -> tuple[Int32Array, IntArray]:
    """Return parents up to an event, then partners from the same activity on, if any."""
    rows = np.arange(len(own))
    width = own.shape[1]
    same = (other == own[rows, at][:, None]) & (np.arange(width) < other_n[:, None])
    pick = np.where(same, rng.random(other.shape), -1.0).argmax(axis=1)
    size = at + other_n - pick
    works = same.any(axis=1) & (size <= width)
    t = np.arange(width)
    source = np.clip(t - at[:, None] + pick[:, None], 0, width - 1)
    crossed = np.where(t < at[:, None], own, np.take_along_axis(other, source, axis=1))
    crossed[t >= size[:, None]] = PAD
    return np.where(works[:, None], crossed, own).astype(np.int32), np.where(works, size, n)


def _possible(traces: Traces, chain: Chain) -> BoolArray:
    """Return a mask of the possible traces, which have an event and obey the rules.

    Every step, from start to end, is in the support of the chain. Nothing comes again that occurs at most once.
    """
    came, to, inside = steps(traces, chain.size)
    result: BoolArray = (chain.support[came, to] | ~inside).all(axis=1) & (traces.lengths > 0)
    if chain.once.any():
        result &= ~((occurrences(traces, chain.size) > 1) & chain.once).any(axis=1)
    return result & chain.obeys(traces)


def round_weights(weights: FloatArray, smallest: float, total: float) -> IntArray:
    """Return whole numbers of cases, scaled to ``total`` by largest remainder.

    Weights below ``smallest`` (.3 at least, half the largest at most) are dropped.
    """
    top = float(weights.max(initial=0.0))
    if top <= 0:
        return np.zeros(len(weights), dtype=np.int64)
    kept = np.where(weights >= min(max(0.3, smallest), top / 2), weights, 0.0)
    exact = kept / kept.sum() * max(1, round(total))
    whole: IntArray = np.floor(exact).astype(np.int64)
    missing = round(float(exact.sum())) - int(whole.sum())
    order = np.argsort(-(exact - whole), kind="stable")
    whole[order[:missing]] += 1
    return whole
