"""The minimal acyclic automaton of a set of activity sequences (DAFSA), in integer arrays.

Two prefixes that can go on in exactly the same ways lead to the same state, so a transition stands for a group of
prefixes together with a group of suffixes. The automaton accepts the given sequences and no other, and no automaton
that does so has fewer states.

Built by the incremental construction for sorted input of Daciuk, Mihov, Watson, Watson, "Incremental construction of
minimal acyclic finite-state automata" (Computational Linguistics 26(1), 2000): a state gets its number only when
nothing can be added to it any more, and an equal one that has a number already takes its place. The work is linear in
the events of the sequences once these are sorted.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from veilog._typing import BoolArray, IntArray
from veilog.errors import InputError
from veilog.logs.variants import Sequences


@dataclass(frozen=True, eq=False)
class Dafsa:
    """States 0 (where every sequence starts), 1, ... and transitions in ascending order of (source, code).

    Transition ``i`` leads from ``sources[i]`` by the activity ``labels[codes[i]]`` to ``targets[i]``; a target always
    has a higher number than its source.
    """

    labels: tuple[str, ...]
    sources: IntArray
    codes: IntArray
    targets: IntArray
    final: BoolArray
    """Of each state, whether a sequence may end there."""

    @property
    def states(self) -> int:
        return len(self.final)

    def __len__(self) -> int:
        """Number of transitions."""
        return len(self.sources)

    @cached_property
    def _keys(self) -> IntArray:
        return self.sources * len(self.labels) + self.codes

    def annotate(self, sequences: Sequences) -> IntArray:
        """The transition that each event takes, for sequences that the automaton accepts, in the same labels.

        No sequence takes the same transition twice: the automaton has no cycle.
        """
        if sequences.labels != self.labels:
            raise InputError("automaton-labels-differ")
        order = np.argsort(-sequences.lengths, kind="stable")
        starts, lengths = sequences.offsets[:-1][order], sequences.lengths[order]
        # Of the sequences in descending length, those longer than p are the first `longer[p]`.
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
        """Of each transition, how many sequences come before all those through it, among those from its source."""
        ends = self.final.astype(np.int64).tolist()
        accepted = list(ends)
        """Of each state, the number of ways to end from there; targets come after their sources."""
        skipped = [0] * len(self)
        bounds = np.searchsorted(self.sources, np.arange(self.states + 1)).tolist()
        targets = self.targets.tolist()
        for state in range(self.states - 1, -1, -1):
            for transition in range(bounds[state], bounds[state + 1]):
                skipped[transition] = accepted[state]
                accepted[state] += accepted[targets[transition]]
        return np.array(skipped, dtype=np.int64)

    def numbers(self, offsets: IntArray, transitions: IntArray) -> IntArray:
        """The number of each annotated sequence: its place among all accepted ones, sorted by code, from 0 on.

        A perfect hash without collisions: equal sequences, and only these, have equal numbers.
        """
        sums = np.zeros(len(transitions) + 1, dtype=np.int64)
        np.cumsum(self._skipped[transitions], out=sums[1:])
        return sums[offsets[1:]] - sums[offsets[:-1]]


def _not_accepted() -> InputError:
    return InputError("automaton-sequence-unknown")


@dataclass
class _Open:
    """A state that may still grow: how it was reached, and what leads on from it: code, state, code, state, ..."""

    code: int
    final: bool = False
    edges: list[int] = field(default_factory=list)


def dafsa(sequences: Sequences) -> Dafsa:
    """The minimal automaton that accepts these sequences and no others."""
    register: dict[tuple[int, ...], int] = {}
    """States that are closed: what leads on from them (and whether they are final), and their number."""
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
    """Take states off the end of the path until ``keep`` are left; each is replaced by an equal one where there is."""
    while len(path) > keep:
        state = path.pop()
        number = register.setdefault((int(state.final), *state.edges), len(register))
        path[-1].edges += (state.code, number)


def _arrays(labels: tuple[str, ...], states: list[tuple[int, ...]]) -> Dafsa:
    """Number the states from the start on: they come with every target before its source and the start last."""
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
