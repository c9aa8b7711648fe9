"""Amun on a log that is kept on disk: the same cases, priors, noise and times, by pieces.

In memory is what each case has (its variant, its start, how often it is released) and what each variant has (its path
in the automaton). What each event has is on disk: the time since the event before it, its prior, and its time in the
release. A prior needs all times of its transition; no case takes a transition twice, so these are never more numbers
than there are cases, and some transitions are loaded at a time. Every number is computed by the functions that compute
it in memory, from the same numbers, and noise is drawn in the same order: the release is the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from veilog._typing import FloatArray, IntArray
from veilog.logs.dafsa import Dafsa, dafsa
from veilog.logs.eventlog import EventLog
from veilog.logs.metadata import Metadata
from veilog.logs.stored.disk import Folder, keep
from veilog.logs.stored.spilled_cases import Columns, Shelf, runs
from veilog.logs.stored.store import StoredLog
from veilog.logs.variants import Sequences, Variants
from veilog.methods._events.assemble import Details, assembled
from veilog.methods._sampling.times import Draws, compressed, noisy_steps, times_within
from veilog.methods._sampling.transitions import LARGEST_RELEASE, AnnotatedLog, Frame, check_times, events_of, piece_of
from veilog.methods.amun.priors import Knowledge, Precision, duration_priors, epsilons_of, start_priors
from veilog.privacy.cases import UNKNOWN_TIME, RawCases
from veilog.privacy.domain import Domain
from veilog.privacy.mechanisms import noise

__all__ = ["StoredAnnotation", "StoredCases", "annotated_on_disk", "noisy_on_disk", "prior_knowledge_on_disk"]

_PIECE = 400_000
"""Events that are worked on at once, unless one case, or one transition, alone has more."""
_MOST_GROWTH = 10
"""How much larger than the log a release may be: who has room for the one should have it for the other."""


@dataclass(frozen=True, eq=False)
class _Paths:
    """The transitions of variant ``v``, by number, are ``transitions[bounds[v]:bounds[v + 1]]``."""

    automaton: Dafsa
    transitions: IntArray
    bounds: IntArray

    @staticmethod
    def of(variants: Variants) -> _Paths:
        automaton = dafsa(variants.sequences)
        taken = automaton.annotate(variants.sequences)
        rows, bounds = events_of(variants.offsets, np.argsort(automaton.numbers(variants.offsets, taken)))
        return _Paths(automaton, taken[rows], bounds)

    @property
    def lengths(self) -> IntArray:
        return np.diff(self.bounds)

    def along(self, variants: IntArray) -> tuple[IntArray, IntArray]:
        """The transitions of these variants one after the other, and where each begins."""
        rows, begins = events_of(self.bounds, variants)
        return self.transitions[rows], begins


@dataclass(frozen=True, eq=False)
class StoredAnnotation:
    """What :class:`AnnotatedLog` is in memory: cases with at least one event; of each its variant and its start."""

    folder: Folder
    durations: Shelf
    """Of each event, microseconds since the event before it; 0 for the first event of a case."""
    paths: _Paths
    variants: IntArray
    starts: IntArray

    def __len__(self) -> int:
        return len(self.variants)

    @property
    def automaton(self) -> Dafsa:
        return self.paths.automaton

    @property
    def lengths(self) -> IntArray:
        return self.paths.lengths[self.variants]

    @property
    def contingency(self) -> IntArray:
        cases = np.bincount(self.variants, minlength=len(self.paths.lengths))
        counts = np.bincount(
            self.paths.transitions, np.repeat(cases, self.paths.lengths), minlength=len(self.automaton)
        )
        return counts.astype(np.int64)

    @property
    def most_events(self) -> int:
        return max(LARGEST_RELEASE, _MOST_GROWTH * len(self.durations))

    def paths_of(self, cases: IntArray) -> tuple[IntArray, IntArray]:
        return self.paths.along(self.variants[cases])

    def pieces(self) -> Iterator[AnnotatedLog]:
        """The log, some whole cases at a time, in their order; the same pieces each time."""
        read = 0
        for first, last in runs(self.lengths, _PIECE):
            variants = self.variants[first:last]
            transitions, offsets = self.paths.along(variants)
            yield AnnotatedLog(
                automaton=self.automaton,
                codes=self.automaton.codes[transitions],
                offsets=offsets,
                transitions=transitions,
                variants=variants,
                starts=self.starts[first:last],
                durations=self.durations.read(np.array([[read, read + len(transitions)]])),
            )
            read += len(transitions)

    def only(self, cases: IntArray) -> StoredAnnotation:
        """These cases, ascending, in a folder of their own."""
        folder = Folder(self.folder.path.parent)
        durations = Shelf(folder.path / "durations")
        done = 0
        for piece in self.pieces():
            first, last = np.searchsorted(cases, [done, done + len(piece)])
            durations.add(piece.only(cases[first:last] - done).durations)
            done += len(piece)
        return replace(
            self, folder=folder, durations=durations, variants=self.variants[cases], starts=self.starts[cases]
        )


def annotated_on_disk(log: StoredLog, variants: Variants, domain: Domain) -> tuple[StoredAnnotation, Frame, int, int]:
    """As :func:`veilog.methods._sampling.transitions.annotated`, of a log on disk."""
    paths = _Paths.of(variants)
    folder = Folder(log.keeper.folder)
    durations = Shelf(folder.path / "durations")
    numbers, starts, ends = [], [], []
    cases = events = unknown = backwards = 0
    for piece in log.pieces(()):
        raw = RawCases(piece, domain)
        cases += len(raw.offsets) - 1
        events += len(raw.times)
        unknown += int((raw.times == UNKNOWN_TIME).sum())
        if unknown or not len(raw.times):
            continue
        found, late = piece_of(raw, paths.automaton)
        durations.add(found.durations)
        numbers.append(found.variants)
        starts.append(found.starts)
        ends += [int(raw.times.min()), int(raw.times.max())]
        backwards += late
    check_times(unknown, events)
    whole = StoredAnnotation(folder, durations, paths, np.concatenate(numbers), np.concatenate(starts))
    return whole, Frame(min(ends), int(whole.starts.max()), max(ends)), cases - len(whole), backwards


@dataclass(frozen=True, eq=False)
class _StoredKnowledge:
    """The pieces of a log, each with what is known of it beforehand."""

    log: StoredAnnotation
    priors: Columns
    """Of the events that are not the first of a case, a row for each piece, in the columns of their transitions: bits
    of floats."""
    columns: IntArray
    """Of each transition, its column."""
    ranges: IntArray
    """Of each transition but those from the start."""
    starts: tuple[FloatArray, int]
    """The priors of the cases' starts, and their range."""

    def __iter__(self) -> Iterator[tuple[AnnotatedLog, Knowledge]]:
        done = 0
        for number, piece in enumerate(self.log.pieces()):
            opens = piece.opens
            inner = piece.transitions[~opens]
            priors = np.empty(len(opens))
            priors[opens] = self.starts[0][done : done + len(piece)]
            priors[~opens] = self.priors.row(number, self.columns[inner]).view(np.float64)
            ranges = np.empty(len(opens), dtype=np.int64)
            ranges[opens] = self.starts[1]
            ranges[~opens] = self.ranges[inner]
            yield piece, Knowledge(priors, ranges)
            done += len(piece)


def prior_knowledge_on_disk(
    log: StoredAnnotation, advantage: float, precision: Precision, *, clamped: bool = True
) -> Iterable[tuple[AnnotatedLog, Knowledge]]:
    """As :func:`veilog.methods.amun.priors.prior_knowledge`, of each piece, which may be asked for more than once.

    The times between events are put in columns, each of some whole transitions; column by column their priors take
    their place.
    """
    automaton = log.automaton
    sizes = np.where(automaton.sources == 0, 0, log.contingency)
    columns = (np.cumsum(sizes) - sizes) // _PIECE
    number = int(columns.max()) + 1
    values = Columns(log.folder.path / "priors", number)
    groups = Columns(log.folder.path / "transitions", number)
    for piece in log.pieces():
        inner = np.flatnonzero(~piece.opens)
        transitions = piece.transitions[inner]
        values.add(piece.durations[inner], columns[transitions])
        groups.add(transitions, columns[transitions])
    ranges = np.zeros(len(automaton), dtype=np.int64)
    for column in range(number):
        group = groups.column(column)
        if len(group):
            priors, ranges[group] = duration_priors(
                group, values.column(column), precision.duration, advantage, clamped
            )
            values.replace(column, priors.view(np.int64))
    return _StoredKnowledge(log, values, columns, ranges, start_priors(log.starts, precision.start))


@dataclass(frozen=True, eq=False)
class StoredCases:
    """Released cases with noisy times, in the order of those that they come from."""

    folder: Folder
    steps: Shelf
    """Of each event, seconds since the event before it; 0 for the first event of a case."""
    paths: _Paths
    variants: IntArray
    starts: IntArray
    """Of each case, its start in seconds."""
    frame: Frame

    def shuffled(self, rng: np.random.Generator) -> StoredLog:
        """The release as a log on disk: fresh names, cases in random order (that of ``event_log.anonymous``)."""
        order = rng.permutation(len(self.variants))
        at_once = max(1, _PIECE * len(order) // max(1, len(self.steps)))
        column = np.empty(len(order), dtype=np.int64)
        column[order] = np.arange(len(order)) // at_once
        steps = Columns(self.folder.path / "shuffled", int(column.max()) + 1)
        lengths, read = self.paths.lengths[self.variants], 0
        for first, last in runs(lengths, _PIECE):
            owner = np.repeat(column[first:last], lengths[first:last])
            steps.add(self.steps.read(np.array([[read, read + len(owner)]])), owner)
            read += len(owner)

        def pieces() -> Iterator[EventLog]:
            for done in range(0, len(order), at_once):
                cases = order[done : done + at_once]
                yield assembled(self._details(cases, steps.column(done // at_once)), Metadata(), before=done)

        kept = keep(pieces(), temp_directory=self.folder.path.parent)
        assert kept is not None
        return kept

    def _details(self, cases: IntArray, steps: IntArray) -> Details:
        """These cases with their times; the steps come in the ascending order of the cases."""
        came = np.sort(cases)
        bounds = np.concatenate([[0], np.cumsum(self.paths.lengths[self.variants[came]])])
        rows, begins = events_of(bounds, np.searchsorted(came, cases))
        automaton = self.paths.automaton
        codes = automaton.codes[self.paths.along(self.variants[cases])[0]].astype(np.int32)
        times = times_within(self.starts[cases], steps[rows], begins, self.frame)
        return Details(Sequences(automaton.labels, codes, begins), times)


def noisy_on_disk(
    log: StoredAnnotation,
    known: Iterable[tuple[AnnotatedLog, Knowledge]],
    copies: IntArray,
    advantage: float,
    frame: Frame,
    source: noise.Randomness,
) -> StoredCases:
    """As :func:`veilog.methods._sampling.times.noisy_cases`: noise by pieces, starts compressed over all."""
    draws = Draws(int((copies * log.lengths).sum()), source)
    steps = Shelf(log.folder.path / "steps")
    starts, done = [], 0
    for piece, knowledge in known:
        scales = knowledge.ranges / epsilons_of(knowledge.priors, advantage)
        of_piece = copies[done : done + len(piece)]
        done += len(piece)
        for first, last in runs(of_piece * piece.lengths, _PIECE):
            part = piece.only(np.arange(first, last))
            a, b = piece.offsets[[first, last]]
            noisy = noisy_steps(part, of_piece[first:last], scales[a:b], frame, draws)
            steps.add(noisy.steps)
            starts.append(noisy.starts)
    variants = np.repeat(log.variants, copies)
    return StoredCases(log.folder, steps, log.paths, variants, compressed(np.concatenate(starts), frame), frame)
