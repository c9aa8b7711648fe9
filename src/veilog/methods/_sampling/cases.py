"""Amun's case sampling: noise on the counts of transitions, translated into cases that are replicated or deleted.

Elkoumy, Pankova, Dumas, "Differentially private release of event logs for process mining" (2023), section 3.6,
Algorithm 1, lines 7 to 25. Only whole cases come and go, so no new variant arises.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from veilog._typing import IntArray
from veilog.errors import ParameterError
from veilog.methods._rows import rows_of
from veilog.methods._sampling.transitions import LARGEST_RELEASE, AnnotatedLog

_MOST_MOVES = 10_000_000


@dataclass(frozen=True, eq=False)
class _Lookup:
    """Which variants take which transition, both ways; variant ``v`` here is the ``v``-th that has cases.

    The transitions of variant ``v`` are ``paths[path_bounds[v]:path_bounds[v + 1]]``; the variants through transition
    ``t`` are ``members[bounds[t]:bounds[t + 1]]``.
    """

    counts: IntArray
    paths: IntArray
    path_bounds: IntArray
    members: IntArray
    bounds: IntArray


def _lookup(log: AnnotatedLog, needed: IntArray) -> _Lookup:
    """The look-up of a log; refused where more cases are needed than can be moved one by one."""
    if int(np.abs(needed).sum()) > _MOST_MOVES:
        raise _too_many()
    _, example, counts = np.unique(log.variants, return_index=True, return_counts=True)
    rows, path_bounds = rows_of(log.offsets, example)
    paths = log.transitions[rows]
    order = np.argsort(paths, kind="stable")
    return _Lookup(
        counts=counts.astype(np.int64),
        paths=paths,
        path_bounds=path_bounds,
        members=np.repeat(np.arange(len(counts)), np.diff(path_bounds))[order],
        bounds=np.searchsorted(paths[order], np.arange(len(log.automaton) + 1)),
    )


def sampled_counts(log: AnnotatedLog, needed: IntArray, rng: np.random.Generator) -> IntArray:
    """How many cases each variant (that has any, by number) has after sampling.

    ``needed[t]`` is the noise of transition ``t``: so many cases through it are replicated, or deleted if negative. A
    transition is picked at random, weighted by its count; then cases through it, so many as its noise says, by variant,
    weighted by their numbers; what they do to every other transition on their way counts there too. Transitions whose
    noise is reached by then are passed over.

    What is added and what is deleted are counted apart: with one counter, as Algorithm 1 is printed, additions would
    satisfy a transition that needs deletions. A transition has no more deletions than cases (a count below 0 is 0).
    """
    lookup = _lookup(log, needed)
    left = lookup.counts.copy()
    added, deleted = np.zeros(len(needed), dtype=np.int64), np.zeros(len(needed), dtype=np.int64)
    weights = np.zeros(len(lookup.members) + 1)
    np.cumsum(lookup.counts[lookup.members], out=weights[1:])
    path_bounds, bounds = lookup.path_bounds.tolist(), lookup.bounds.tolist()
    for transition in _by_weight(log.contingency, needed, rng):
        need = int(needed[transition])
        a, b = bounds[transition], bounds[transition + 1]
        if need > added[transition]:
            at = weights[a] + rng.random(need) * (weights[b] - weights[a])
            picked = lookup.members[np.minimum(np.searchsorted(weights, at, side="right") - 1, b - 1)]
            for variant in picked.tolist():
                added[lookup.paths[path_bounds[variant] : path_bounds[variant + 1]]] += 1
                left[variant] += 1
        elif -need > deleted[transition]:
            members = lookup.members[a:b]
            there = left[members]
            out = there if -need >= there.sum() else rng.multivariate_hypergeometric(there, -need, method="marginals")
            for place in np.flatnonzero(out).tolist():
                variant, gone = int(members[place]), int(out[place])
                deleted[lookup.paths[path_bounds[variant] : path_bounds[variant + 1]]] += gone
                left[variant] -= gone
    return _checked(lookup, left)


def program_counts(log: AnnotatedLog, needed: IntArray, rng: np.random.Generator, *, replicate: bool) -> IntArray:
    """Return the cases of each variant after sampling as the authors' program does it.

    Variants are drawn to be replicated, and others to be deleted, each until the noise of every transition is reached.
    Only a variant that was drawn for both changes: it gains the difference, or loses one case if that is negative.
    With ``replicate`` nothing is deleted, and every drawn variant gains.
    """
    lookup = _lookup(log, needed)
    added = _program_moves(lookup, np.maximum(needed, 0), rng)
    if replicate:
        left = lookup.counts + added
    else:
        deleted = _program_moves(lookup, np.maximum(-needed, 0), rng)
        change = np.maximum(added - deleted, 0) - (deleted > added)
        left = lookup.counts + np.where((added > 0) & (deleted > 0), change, 0)
    return _checked(lookup, left)


def _program_moves(lookup: _Lookup, needed: IntArray, rng: np.random.Generator) -> IntArray:
    """Return how often each variant is drawn to give every transition as many cases as it needs.

    Transitions that have got few are picked first. The variants of a transition are weighted by their cases.
    """
    done, drawn = np.zeros(len(needed), dtype=np.int64), np.zeros(len(lookup.counts), dtype=np.int64)
    open_ = np.flatnonzero(needed)
    while len(open_):
        behind = done[open_].max() - done[open_]
        ends = np.cumsum(behind if behind.any() else np.ones_like(behind))
        picked = open_[np.searchsorted(ends, rng.random() * ends[-1], side="right")]
        members = lookup.members[lookup.bounds[picked] : lookup.bounds[picked + 1]]
        ends = np.cumsum(lookup.counts[members])
        places = np.searchsorted(ends, rng.random(int(needed[picked])) * ends[-1], side="right")
        for variant in members[places].tolist():
            done[lookup.paths[lookup.path_bounds[variant] : lookup.path_bounds[variant + 1]]] += 1
            drawn[variant] += 1
        open_ = open_[done[open_] < needed[open_]]
    return drawn


def _checked(lookup: _Lookup, left: IntArray) -> IntArray:
    """The cases that are left of each variant; refused where they have more events than fit in memory."""
    if int((left * np.diff(lookup.path_bounds)).sum()) > LARGEST_RELEASE:
        raise _too_many()
    return left


def _by_weight(weights: IntArray, needed: IntArray, rng: np.random.Generator) -> list[int]:
    """The transitions that need noise in random order, each next one drawn by weight among the rest.

    The order in which exponential clocks ring, the faster the heavier, is that of such draws.
    """
    open_ = np.flatnonzero(needed)
    clocks = rng.standard_exponential(len(open_)) / np.maximum(weights[open_], 1)
    order: list[int] = open_[np.argsort(clocks, kind="stable")].tolist()
    return order


def copies_of_cases(log: AnnotatedLog, left: IntArray, rng: np.random.Generator) -> IntArray:
    """How often each case is released: within a variant, cases to replicate or to delete are drawn at random.

    A variant that both gained and lost cases keeps the difference only, so that fewer cases share their epsilon.
    """
    _, variant, counts = np.unique(log.variants, return_inverse=True, return_counts=True)
    by_variant = np.lexsort((rng.random(len(log)), variant))
    begins = np.cumsum(counts) - counts
    rank = np.arange(len(log)) - np.repeat(begins, counts)
    copies = np.empty(len(log), dtype=np.int64)
    copies[by_variant] = rank < np.repeat(left, counts)
    gaining = np.repeat(np.arange(len(counts)), np.maximum(left - counts, 0))
    drawn = begins[gaining] + rng.integers(0, counts[gaining])
    return copies + np.bincount(by_variant[drawn], minlength=len(log))


def _too_many() -> ParameterError:
    return ParameterError("guessing-advantage-too-small", parameter="guessing_advantage")
