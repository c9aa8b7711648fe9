"""Variants: the multiset of activity sequences of a log, in columns.

Most methods see nothing else of a log. Four arrays hold millions of variants without an object each. A canonical order
makes equal multisets equal in memory, whatever the order of the log's rows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from veilog._counting import rank_rows
from veilog._typing import BoolArray, Int32Array, IntArray
from veilog.errors import InputError
from veilog.messages import Message


@dataclass(frozen=True, eq=False)
class Sequences:
    """Distinct activity sequences without their counts.

    Sequence ``i`` is ``codes[offsets[i]:offsets[i + 1]]``; code ``c`` stands for ``labels[c]``.
    """

    labels: tuple[str, ...]
    codes: Int32Array
    offsets: IntArray

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> IntArray:
        """Return the number of events of each sequence."""
        return np.diff(self.offsets)

    def __getitem__(self, index: int) -> tuple[str, ...]:
        if index < 0:
            index += len(self)
        if not 0 <= index < len(self):
            raise IndexError(index)
        return tuple(self.labels[c] for c in self.codes[self.offsets[index] : self.offsets[index + 1]].tolist())

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        for row in self.code_tuples():
            yield tuple(self.labels[c] for c in row)

    def code_tuples(self) -> list[tuple[int, ...]]:
        """Return the sequences as tuples of codes, which string-distance libraries take."""
        codes = self.codes.tolist()
        bounds = self.offsets.tolist()
        return [tuple(codes[a:b]) for a, b in itertools.pairwise(bounds)]

    def rows(self, start: int, stop: int) -> Sequences:
        """Return the sequences ``start`` up to ``stop`` as views; only offsets are copied."""
        first, last = self.offsets[start], self.offsets[stop]
        return Sequences(self.labels, self.codes[first:last], self.offsets[start : stop + 1] - first)

    def take(self, rows: npt.NDArray[np.integer]) -> Sequences:
        """Return the sequences of these rows, in this order."""
        lengths = self.lengths[rows]
        offsets = np.zeros(len(rows) + 1, dtype=np.int64)
        np.cumsum(lengths, out=offsets[1:])
        within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
        return Sequences(self.labels, self.codes[np.repeat(self.offsets[rows], lengths) + within], offsets)


@dataclass(frozen=True, eq=False)
class Repeated:
    """Cases of which many share a sequence, so that work is done once per sequence.

    Case ``i`` is sequence ``owner[i]`` of the ``distinct`` ones.
    """

    distinct: Sequences
    owner: npt.NDArray[np.integer]

    def __len__(self) -> int:
        return len(self.owner)

    @property
    def labels(self) -> tuple[str, ...]:
        return self.distinct.labels

    @cached_property
    def counts(self) -> IntArray:
        """Return the number of cases of each sequence."""
        return np.bincount(self.owner, minlength=len(self.distinct))

    @cached_property
    def lengths(self) -> IntArray:
        """Return the number of events of each case."""
        return np.asarray(self.distinct.lengths[self.owner])

    @cached_property
    def offsets(self) -> IntArray:
        """Return where each case begins, one after the other, and where the last ends."""
        return np.concatenate([[0], np.cumsum(self.lengths)]).astype(np.int64)

    @property
    def events(self) -> int:
        return int(self.counts @ self.distinct.lengths)

    @property
    def lasts(self) -> IntArray:
        """Return the code of the last event of each case, -1 for a case without events."""
        going = np.flatnonzero(self.distinct.lengths)
        found = np.full(len(self.distinct), -1, dtype=np.int64)
        found[going] = self.distinct.codes[self.distinct.offsets[going + 1] - 1]
        return np.asarray(found[self.owner])

    def rows(self, start: int, stop: int) -> Sequences:
        """Return the cases ``start`` up to ``stop``, each with a sequence of its own."""
        return self.distinct.take(self.owner[start:stop])


@dataclass(frozen=True, eq=False)
class Variants:
    """A multiset of activity sequences, immutable and in canonical order.

    Canonical: labels are sorted and each occurs in some sequence, sequences are distinct and sorted by length and then
    by code, every count is positive. Build one with :meth:`from_dict`, :meth:`from_sequences` or
    :meth:`from_arrays`, which bring any input into that form.
    """

    labels: tuple[str, ...]
    codes: Int32Array
    offsets: IntArray
    counts: IntArray
    read_together: tuple[Message, ...] = ()
    """Value of the log that they are of; equality ignores it."""
    mapped: tuple[Message, ...] = ()
    """Value of the log that they are of."""
    read_as: str = ""
    """Value of the log that they are of."""

    @staticmethod
    def from_arrays(
        labels: Sequence[str],
        codes: npt.ArrayLike,
        offsets: npt.ArrayLike,
        counts: npt.ArrayLike | None = None,
    ) -> Variants:
        """Return the variants of coded sequences, in any order and with repetitions.

        Without counts, each sequence is one case.
        """
        codes_ = np.asarray(codes, dtype=np.int32)
        offsets_ = np.asarray(offsets, dtype=np.int64)
        counts_ = np.ones(len(offsets_) - 1, dtype=np.int64) if counts is None else _whole(counts)
        if len(counts_) != len(offsets_) - 1:
            raise InputError("sequences-counts-differ", number=len(offsets_) - 1, number_2=len(counts_))
        if len(counts_) and counts_.min() < 0:
            raise InputError("variant-count-negative")
        return _canonical(tuple(labels), codes_, offsets_, counts_)

    @staticmethod
    def from_sequences(sequences: Iterable[Sequence[str]], counts: Iterable[int] | None = None) -> Variants:
        """Return the variants of sequences of names, each with ``counts`` cases, or one."""
        coding: dict[str, int] = {}
        codes: list[int] = []
        offsets = [0]
        for sequence in sequences:
            if isinstance(sequence, str):
                raise InputError("sequence-is-string", sequence=sequence)
            codes.extend(coding.setdefault(activity, len(coding)) for activity in sequence)
            offsets.append(len(codes))
        return Variants.from_arrays(tuple(coding), codes, offsets, None if counts is None else list(counts))

    @staticmethod
    def from_dict(counts: Mapping[Sequence[str], int]) -> Variants:
        """Return the variants of ``{("a", "b"): 25, ...}``."""
        return Variants.from_sequences(counts.keys(), counts.values())

    def to_dict(self) -> dict[tuple[str, ...], int]:
        return dict(zip(self.sequences, self.counts.tolist(), strict=True))

    def __len__(self) -> int:
        """Return the number of variants (not of cases)."""
        return len(self.counts)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Variants):
            return NotImplemented
        return (
            self.labels == other.labels
            and np.array_equal(self.counts, other.counts)
            and np.array_equal(self.offsets, other.offsets)
            and np.array_equal(self.codes, other.codes)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Variants({self.cases} cases, {len(self)} variants, {len(self.labels)} activities)"

    @property
    def sequences(self) -> Sequences:
        """Return the distinct sequences without their counts."""
        return Sequences(self.labels, self.codes, self.offsets)

    @property
    def lengths(self) -> IntArray:
        """Return the number of events of a case of each variant."""
        return np.diff(self.offsets)

    @property
    def cases(self) -> int:
        return int(self.counts.sum())

    @property
    def events(self) -> int:
        return int((self.lengths * self.counts).sum())

    def with_counts(self, counts: npt.ArrayLike) -> Variants:
        """Return the same sequences with other counts; those with count 0 are left out."""
        found = Variants.from_arrays(self.labels, self.codes, self.offsets, counts)
        return replace(found, read_together=self.read_together, mapped=self.mapped, read_as=self.read_as)

    def of_activities(self, activities: Collection[str]) -> Variants:
        """Return the cases without events of other activities, and without empty cases."""
        keep = np.array([label in activities for label in self.labels], dtype=bool)[self.codes]
        lengths = np.bincount(np.repeat(np.arange(len(self)), self.lengths)[keep], minlength=len(self))
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        return Variants.from_arrays(self.labels, self.codes[keep], offsets, self.counts * (lengths > 0))

    def by_frequency(self) -> IntArray:
        """Return the variants' indices, most frequent first; ties in canonical order."""
        return np.argsort(-self.counts, kind="stable").astype(np.int64)


def _whole(counts: npt.ArrayLike) -> IntArray:
    """Return numbers of cases as integers; :class:`InputError` if one is not whole."""
    found = np.asarray(counts)
    if found.size and found.dtype.kind not in "iu":
        exact = found.astype(object)
        wrong = [value for value in exact.tolist() if isinstance(value, bool) or not _is_whole(value)]
        if wrong:
            raise InputError("variant-count-not-number", wrong=wrong[0])
    return found.astype(np.int64)


def _is_whole(value: object) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and math.isfinite(value) and value == int(value)


def _canonical(labels: tuple[str, ...], codes: Int32Array, offsets: IntArray, counts: IntArray) -> Variants:
    lengths = np.diff(offsets)
    if len(codes) and not (codes.min() >= 0 and codes.max() < len(labels)):
        raise InputError("sequence-code-without-label")
    keep = counts > 0
    codes = codes[np.repeat(keep, lengths)]
    lengths, counts = lengths[keep], counts[keep]

    used = np.flatnonzero(np.bincount(codes))
    names = [labels[c] for c in used.tolist()]
    strange = [name for name in names if not isinstance(name, str)]
    if strange:
        raise InputError("activity-name-not-text", strange=strange[0])
    if len(set(names)) != len(names):
        raise InputError("activity-label-twice")
    order = sorted(range(len(names)), key=names.__getitem__)
    recode = np.zeros(len(labels), dtype=np.int32)
    recode[used[order]] = np.arange(len(order), dtype=np.int32)
    codes = recode[codes]

    codes, lengths, counts = _merge_equal(codes, lengths, counts)
    new_offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=new_offsets[1:])
    for array in (codes, new_offsets, counts):
        array.setflags(write=False)
    return Variants(tuple(names[i] for i in order), codes, new_offsets, counts)


def _merge_equal(codes: Int32Array, lengths: IntArray, counts: IntArray) -> tuple[Int32Array, IntArray, IntArray]:
    """Sort sequences by length, then by code, and add up the counts of equal ones.

    Sequences of one length form a matrix.
    """
    starts = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=starts[1:])
    by_length = np.argsort(lengths, kind="stable")
    sizes, first = np.unique(lengths[by_length], return_index=True)
    bounds = [*first.tolist(), len(by_length)]
    out_codes, out_lengths, out_counts = [], [], []
    for length, a, b in zip(sizes.tolist(), bounds[:-1], bounds[1:], strict=True):
        members = by_length[a:b]
        if length == 0:
            out_lengths.append(np.zeros(1, dtype=np.int64))
            out_counts.append(counts[members].sum(keepdims=True))
            continue
        events = codes[starts[members] + np.arange(length)[:, None]]
        index, ranks = rank_rows((event.astype(np.int64) for event in events), b - a)
        sums = np.zeros(len(index), dtype=np.int64)
        np.add.at(sums, ranks, counts[members])
        out_codes.append(events[:, index].T.ravel())
        out_lengths.append(np.full(len(index), length, dtype=np.int64))
        out_counts.append(sums)
    return (
        np.concatenate(out_codes) if out_codes else np.zeros(0, dtype=np.int32),
        np.concatenate(out_lengths) if out_lengths else np.zeros(0, dtype=np.int64),
        np.concatenate(out_counts) if out_counts else np.zeros(0, dtype=np.int64),
    )


# The minimal acyclic automaton of a set of activity sequences (DAFSA), in integer arrays -----------------------------

# Two prefixes that can go on in exactly the same ways lead to the same state, so a transition stands for a group of
# prefixes together with a group of suffixes. The automaton accepts the given sequences and no other, and no
# automaton that does so has fewer states.
#
# Built by the incremental construction for sorted input of Daciuk, Mihov, Watson, Watson, "Incremental construction
# of minimal acyclic finite-state automata" (Computational Linguistics 26(1), 2000): a state gets its number only
# when nothing can be added to it any more, and an equal one that has a number already takes its place. The work is
# linear in the events of the sequences once these are sorted.


@dataclass(frozen=True, eq=False)
class Dafsa:
    """States from 0 (the start) on, and transitions in order of (source, code).

    Transition ``i`` leads from ``sources[i]`` by the activity ``labels[codes[i]]`` to ``targets[i]``; a target always
    has a higher number than its source.
    """

    labels: tuple[str, ...]
    sources: IntArray
    codes: IntArray
    targets: IntArray
    final: BoolArray
    """True for the states in which a sequence may end."""

    @property
    def states(self) -> int:
        return len(self.final)

    def __len__(self) -> int:
        """Return the number of transitions."""
        return len(self.sources)

    @cached_property
    def _keys(self) -> IntArray:
        return self.sources * len(self.labels) + self.codes

    def annotate(self, sequences: Sequences) -> IntArray:
        """Return the transition that each event of these sequences takes.

        The automaton must accept the sequences, and they need the same labels. No sequence takes the same transition
        twice, because the automaton has no cycle.
        """
        if sequences.labels != self.labels:
            raise InputError("automaton-labels-differ")
        order = np.argsort(-sequences.lengths, kind="stable")
        starts, lengths = sequences.offsets[:-1][order], sequences.lengths[order]
        # In descending length, the first `longer[p]` sequences are those longer than p.
        longer = len(lengths) - np.cumsum(np.bincount(lengths, minlength=1))
        state = np.zeros(len(lengths), dtype=np.int64)
        taken = np.empty(len(sequences.codes), dtype=np.int64)
        for position, going in enumerate(longer.tolist()):
            if not going:
                break
            rows = starts[:going] + position
            keys = state[:going] * len(self.labels) + sequences.codes[rows]
            found = np.minimum(np.searchsorted(self._keys, keys), len(self) - 1)
            if len(self) == 0 or not np.array_equal(self._keys[found], keys):
                raise _not_accepted()
            taken[rows] = found
            state[:going] = self.targets[found]
        if not self.final[state].all():
            raise _not_accepted()
        return taken

    @cached_property
    def _skipped(self) -> IntArray:
        """Return for each transition how many sequences come before those through it.

        They are counted among the sequences from its source.
        """
        ends = self.final.astype(np.int64).tolist()
        accepted = list(ends)
        """Number of ways to end from each state; targets come after their sources."""
        skipped = [0] * len(self)
        bounds = np.searchsorted(self.sources, np.arange(self.states + 1)).tolist()
        targets = self.targets.tolist()
        for state in range(self.states - 1, -1, -1):
            for transition in range(bounds[state], bounds[state + 1]):
                skipped[transition] = accepted[state]
                accepted[state] += accepted[targets[transition]]
        return np.array(skipped, dtype=np.int64)

    def numbers(self, offsets: IntArray, transitions: IntArray) -> IntArray:
        """Return the place of each annotated sequence among all accepted ones, from 0 on.

        The accepted sequences are sorted by code. This is a perfect hash without collisions: equal sequences, and only
        these, have equal numbers.
        """
        sums = np.zeros(len(transitions) + 1, dtype=np.int64)
        np.cumsum(self._skipped[transitions], out=sums[1:])
        return sums[offsets[1:]] - sums[offsets[:-1]]


def _not_accepted() -> InputError:
    return InputError("automaton-sequence-unknown")


@dataclass
class _Open:
    """A state that may still grow, with its code and its edges: code, state, code, ..."""

    code: int
    final: bool = False
    edges: list[int] = field(default_factory=list)


def dafsa(sequences: Sequences) -> Dafsa:
    """Return the minimal automaton that accepts these sequences and no others."""
    register: dict[tuple[int, ...], int] = {}
    """Closed states: edges (and whether they are final), and their numbers."""
    path = [_Open(-1)]
    previous: tuple[int, ...] = ()
    for word in sorted(sequences.code_tuples()):
        common = _common_prefix(previous, word)
        _close(path, common + 1, register)
        path.extend(_Open(code) for code in word[common:])
        path[-1].final = True
        previous = word
    _close(path, 1, register)
    # The start may be equal to no other state, for all others are reached from it; it gets the last number.
    start = (int(path[0].final), *path[0].edges)
    return _arrays(sequences.labels, [*register, start])


def _common_prefix(one: tuple[int, ...], other: tuple[int, ...]) -> int:
    pairs = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    return sum(1 for _ in pairs)


def _close(path: list[_Open], keep: int, register: dict[tuple[int, ...], int]) -> None:
    """Close states at the end of the path until ``keep`` are left, reusing equal ones."""
    while len(path) > keep:
        state = path.pop()
        number = register.setdefault((int(state.final), *state.edges), len(register))
        path[-1].edges += (state.code, number)


def _arrays(labels: tuple[str, ...], states: list[tuple[int, ...]]) -> Dafsa:
    """Number the states from the start on; targets come first, and the start last."""
    last = len(states) - 1
    states.reverse()
    edges = np.array([len(state) // 2 for state in states], dtype=np.int64)
    flat = np.fromiter(_flat(states), dtype=np.int64).reshape(-1, 2)
    return Dafsa(
        labels=labels,
        sources=np.repeat(np.arange(len(states)), edges),
        codes=flat[:, 0],
        targets=last - flat[:, 1],
        final=np.array([state[0] for state in states], dtype=np.bool_),
    )


def _flat(states: Iterable[tuple[int, ...]]) -> Iterable[int]:
    return itertools.chain.from_iterable(state[1:] for state in states)
