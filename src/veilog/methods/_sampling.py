"""Sampling of cases with noisy times, which Amun and Libra share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeVar

import numpy as np

from veilog._typing import BoolArray, FloatArray, IntArray
from veilog.errors import InputError, ParameterError
from veilog.logs.eventlog import EventLog
from veilog.logs.variants import Dafsa, Sequences, Variants, dafsa
from veilog.methods._relations import rows_of
from veilog.privacy.cases import UNKNOWN_TIME, RawCases
from veilog.privacy.domain import Domain
from veilog.privacy.mechanisms import noise

# Amun's view of a log: every event with its transition of the minimal automaton, and its relative time.
#
# Elkoumy, Pankova, Dumas, "Differentially private release of event logs for process mining" (2023), section 3.2 and
# Definition 3.5. Numbers in arrays; nothing loops over cases or events.

LARGEST_RELEASE = 100_000_000
"""Most events of a release, for memory; only a tiny guessing advantage needs more."""


@dataclass(frozen=True)
class Frame:
    """Public times of the attack model: first and last time of the log (microseconds).

    Cases start from ``first`` on; ``last_start`` is the latest of these starts.
    """

    first: int
    last_start: int
    last: int


@dataclass(frozen=True, eq=False)
class AnnotatedLog:
    """Cases with at least one event.

    The events of case ``i`` are ``offsets[i]`` up to ``offsets[i + 1]``.
    """

    automaton: Dafsa
    codes: IntArray
    """Activity of each event."""
    offsets: IntArray
    transitions: IntArray
    """Transition that each event takes."""
    variants: IntArray
    """Number of the variant of each case: its place among the automaton's sequences."""
    starts: IntArray
    """Time of the first event of each case in microseconds."""
    durations: IntArray
    """Microseconds from the event before to each event; 0 for the first event of a case."""

    def __len__(self) -> int:
        """Return the number of cases."""
        return len(self.offsets) - 1

    @property
    def lengths(self) -> IntArray:
        return np.diff(self.offsets)

    @property
    def owners(self) -> IntArray:
        """The case of each event."""
        return np.repeat(np.arange(len(self)), self.lengths)

    def copied(self, copies: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Return the copied cases in turn, the rows of their events, and their begins."""
        cases = np.repeat(np.arange(len(self)), copies)
        return cases, *rows_of(self.offsets, cases)

    @property
    def opens(self) -> BoolArray:
        """True for the first event of a case, which leaves state 0 and starts the case."""
        opening: BoolArray = self.automaton.sources[self.transitions] == 0
        return opening

    @property
    def contingency(self) -> IntArray:
        """Number of events, and so of cases, that take each transition (Definition 3.10)."""
        return np.bincount(self.transitions, minlength=len(self.automaton))

    def only(self, cases: IntArray) -> AnnotatedLog:
        """Return these cases in this order, with the same automaton and variant numbers."""
        rows, offsets = rows_of(self.offsets, cases)
        return replace(
            self,
            codes=self.codes[rows],
            offsets=offsets,
            transitions=self.transitions[rows],
            variants=self.variants[cases],
            starts=self.starts[cases],
            durations=self.durations[rows],
        )


def annotated(log: EventLog, variants: Variants, domain: Domain) -> tuple[AnnotatedLog, Frame, int, int]:
    """Return the log with its automaton, its time frame, and two counts.

    The counts are the cases without events, which are left out, and the events earlier than the one before them, whose
    duration counts as 0.
    """
    raw, automaton = RawCases(log, domain), dafsa(variants.sequences)
    unknown, events = int((raw.times == UNKNOWN_TIME).sum()), len(raw.times)
    if unknown:
        raise InputError("amun-without-times" if unknown == events else "amun-times-missing", unknown=unknown)
    if events == 0:
        raise InputError("amun-log-without-events")
    labels, times = automaton.labels, raw.times
    codes = np.concatenate([block.codes for block in raw.blocks(labels)])
    transitions = automaton.annotate(Sequences(labels, codes.astype(np.int32), raw.offsets))
    going = np.flatnonzero(np.diff(raw.offsets) > 0)
    firsts = raw.offsets[:-1][going]
    durations = np.zeros(len(times), dtype=np.int64)
    durations[1:] = np.diff(times)
    durations[firsts] = 0
    found = AnnotatedLog(
        automaton=automaton,
        codes=codes,
        offsets=np.append(firsts, len(times)),
        transitions=transitions,
        variants=automaton.numbers(raw.offsets, transitions)[going],
        starts=times[firsts],
        durations=np.maximum(durations, 0),
    )
    frame = Frame(int(times.min()), int(found.starts.max()), int(times.max()))
    return found, frame, len(raw.offsets) - 1 - len(found), int((durations < 0).sum())


# Amun's case sampling: noise on the counts of transitions, translated into cases that are replicated or deleted.
#
# Elkoumy, Pankova, Dumas, "Differentially private release of event logs for process mining" (2023), section 3.6,
# Algorithm 1, lines 7 to 25. Only whole cases come and go, so no new variant arises.

_MOST_MOVES = 10_000_000


@dataclass(frozen=True, eq=False)
class _Lookup:
    """Transitions of each variant, and variants of each transition.
    Variant ``v`` here is the ``v``-th that has cases. Its transitions are ``paths[path_bounds[v]:path_bounds[v +
    1]]``. The variants through transition ``t`` are ``members[bounds[t]:bounds[t + 1]]``."""

    counts: IntArray
    paths: IntArray
    path_bounds: IntArray
    members: IntArray
    bounds: IntArray


def _lookup(log: AnnotatedLog, needed: IntArray) -> _Lookup:
    """Return the look-up of a log; refuse too many moves of single cases."""
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
    """Return the number of cases of each variant after sampling, by variant number.

    ``needed[t]`` is the noise of transition ``t``: so many cases through it are replicated, or deleted if negative. A
    transition is picked at random, weighted by its count. Then cases through it are picked by variant, weighted by
    their numbers, as many as its noise requires. Their effect on every other transition of their path counts there too.
    Transitions whose noise is reached by then are passed over.

    Additions and deletions are counted separately. With one counter, as Algorithm 1 is printed, additions would satisfy
    a transition that needs deletions. A transition has no more deletions than cases (a count below 0 is 0).
    """
    lookup = _lookup(log, needed)
    left = lookup.counts.copy()
    added, deleted = np.zeros(len(needed), dtype=np.int64), np.zeros(len(needed), dtype=np.int64)
    weights = np.zeros(len(lookup.members) + 1)
    np.cumsum(lookup.counts[lookup.members], out=weights[1:])
    path_bounds, bounds = lookup.path_bounds.tolist(), lookup.bounds.tolist()
    for transition in _order_by_weight(log.contingency, needed, rng):
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
    return _check_size(lookup, left)


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
    return _check_size(lookup, left)


def _program_moves(lookup: _Lookup, needed: IntArray, rng: np.random.Generator) -> IntArray:
    """Return how often each variant is drawn to meet the need of each transition.
    Transitions that have got few are picked first. The variants of a transition are weighted by their cases."""
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


def _check_size(lookup: _Lookup, left: IntArray) -> IntArray:
    """Return the cases left of each variant; refuse more events than fit in memory."""
    if int((left * np.diff(lookup.path_bounds)).sum()) > LARGEST_RELEASE:
        raise _too_many()
    return left


def _order_by_weight(weights: IntArray, needed: IntArray, rng: np.random.Generator) -> list[int]:
    """Return the transitions that need noise in random order, drawn by weight.
    Each next one is drawn among the rest. Such draws have the order in which exponential clocks ring, the faster the
    heavier."""
    open_ = np.flatnonzero(needed)
    clocks = rng.standard_exponential(len(open_)) / np.maximum(weights[open_], 1)
    order: list[int] = open_[np.argsort(clocks, kind="stable")].tolist()
    return order


def copies_of_cases(log: AnnotatedLog, left: IntArray, rng: np.random.Generator) -> IntArray:
    """Return how often each case is released.

    Within a variant, cases to replicate or to delete are drawn at random. A variant that both gained and lost cases
    keeps only the difference, so that fewer cases share their epsilon.
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


# Amun's timestamp noise and compression: noisy relative times, put together within the public time frame.
#
# Elkoumy, Pankova, Dumas, "Differentially private release of event logs for process mining" (2023), sections 3.6 and
# 3.7, Algorithm 1, lines 26 and 27.

Numbers = TypeVar("Numbers", IntArray, FloatArray)
_SECOND = 1_000_000
_FINENESS = 2**32
_BLOCK = 2**20
"""Events whose noise is drawn at once."""
_LATEST = (2**63 - 1) // 1000
"""Last time, in microseconds, that the authors' program can write; later ones become it."""


def noisy_cases(
    log: AnnotatedLog, copies: IntArray, scales: FloatArray, frame: Frame, source: noise.Randomness
) -> tuple[Sequences, IntArray]:
    """Return the released cases with the times of their events.

    Times are in microseconds, of whole seconds. Every relative time gets Laplace noise of ``scales`` (range / epsilon,
    by event) times the copies of its case: the same value is released that often (Algorithm 1, line 26). No time
    between events is negative, or longer than the frame.

    Compression uses public facts and noisy values. Case starts are shrunk, if they spread further than the public ones,
    and moved to lie between them. The times within a case are shrunk if it would end after the public end.
    """
    cases, rows, begins = log.copied(copies)
    drawn = _draw_noise(len(rows), source) * scales[rows] * np.repeat(copies[cases], np.diff(begins))
    durations = np.clip(log.durations[rows] + drawn, 0, max(0, frame.last - frame.first))
    durations[begins[:-1]] = 0
    starts = _compress_starts(log.starts[cases] + drawn[begins[:-1]], frame)
    times = _times_within(starts, np.rint(durations / _SECOND).astype(np.int64), begins, frame)
    return Sequences(log.automaton.labels, log.codes[rows].astype(np.int32), begins), times


def program_cases(
    log: AnnotatedLog, copies: IntArray, scales: FloatArray, source: noise.Randomness
) -> tuple[Sequences, IntArray]:
    """Return the released cases with the times of the authors' program.

    The size of Laplace noise, which is never negative, is added up along a case. Equation (4)'s part of the sum, at
    most half of it, is added to the original times. The copies of a case share the epsilon of its steps, but each
    starts with the whole one.
    """
    cases, rows, begins = log.copied(copies)
    shared = np.where(log.opens[rows], 1, np.repeat(copies[cases], np.diff(begins)))
    drawn = _sums_within(_draw_noise(len(rows), source, noise.geometric) * scales[rows] * shared, begins)
    original, noisy = float(np.ptp(log.starts)), float(drawn[begins[:-1]].max(initial=0.0))
    factor = original / (noisy + original) / 2 if original else 0.0
    elapsed = np.repeat(log.starts[cases], np.diff(begins)) + _sums_within(log.durations[rows], begins)
    times = np.minimum(elapsed + drawn * factor, _LATEST) // _SECOND
    return Sequences(log.automaton.labels, log.codes[rows].astype(np.int32), begins), times.astype(np.int64) * _SECOND


def _draw_noise(
    events: int,
    source: noise.Randomness,
    sampler: Callable[[Fraction, int, noise.Randomness], IntArray] = noise.discrete_laplace,
) -> FloatArray:
    """Draw Laplace noise of scale 1 for this many events, in blocks.
    A sampler of geometric numbers gives its absolute value. The grid is 2**-32, with discrete numbers from the exact
    sampler. Scaled by a range of up to a century, it stays finer than the whole seconds that are released."""
    sizes = [min(_BLOCK, events - done) for done in range(0, events, _BLOCK)]
    drawn = [sampler(Fraction(1, _FINENESS), size, source) / _FINENESS for size in sizes]
    return np.concatenate([np.zeros(0), *drawn])


def _times_within(starts: IntArray, steps: IntArray, begins: IntArray, frame: Frame) -> IntArray:
    """Return times of events (microseconds) from case starts and steps (seconds).
    The starts are compressed."""
    elapsed = _sums_within(steps, begins)
    room = np.maximum(frame.last // _SECOND - starts, 0)
    total = elapsed[begins[1:] - 1]
    shrink = np.minimum(1.0, room / np.maximum(total, 1))
    lengths = np.diff(begins)
    times: IntArray = np.repeat(starts, lengths) + np.floor(elapsed * np.repeat(shrink, lengths)).astype(np.int64)
    return times * _SECOND


def _compress_starts(starts: FloatArray, frame: Frame) -> IntArray:
    """Return noisy starts between the public first and last one, in seconds."""
    if not len(starts):
        return np.zeros(0, dtype=np.int64)
    room = float(frame.last_start - frame.first)
    lowest, spread = float(starts.min()), float(np.ptp(starts))
    if spread > room:
        starts = frame.first + (starts - lowest) * (room / spread)
    else:
        starts = starts + max(0.0, frame.first - lowest) - max(0.0, lowest + spread - frame.last_start)
    whole: IntArray = np.floor(np.clip(starts, frame.first, frame.last_start) / _SECOND).astype(np.int64)
    return whole


def _sums_within(values: Numbers, begins: IntArray) -> Numbers:
    """Return running sums that begin anew with every case; every case has an event."""
    sums = np.zeros(len(values) + 1, dtype=values.dtype)
    np.cumsum(values, out=sums[1:])
    running: Numbers = sums[1:] - np.repeat(sums[begins[:-1]], np.diff(begins))
    return running
