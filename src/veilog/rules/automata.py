"""Automata of several constraints, side by side over the same activities.

They decide which traces all of them accept and which steps those can take. They find the trace nearest to one that they
do not accept. Nothing here knows a log: automata judge public candidates and traces that were made of noisy answers.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from veilog._typing import BoolArray, FloatArray, IntArray
from veilog.rules.rule_files import Constraint

MOST_TRIED = 20_000
"""Number of states after which a search is given up."""
REPLACED = 1.01
"""Weight of a replaced event, a little more than of one left out or put in.

So cut cases lack events rather than have wrong ones.
"""

_States = tuple[int, ...]


class _Place(NamedTuple):
    """State of a search: events read of the trace, states of the automata, trace made."""

    read: int
    states: _States
    changes: float
    length: int
    last: tuple[int, object] | None
    """Last activity made, with the same pair of the activities before it."""

    def made(self) -> tuple[int, ...]:
        """Return the activities made, from the first one on."""
        found, left = [], self.last
        while left is not None:
            found.append(left[0])
            left = left[1]  # type: ignore[assignment]
        return tuple(reversed(found))


class SearchResult(NamedTuple):
    """Result of a search."""

    found: tuple[int, ...] | None
    settled: bool
    """True if ``found`` is the answer: a trace, or that there is none. Otherwise the search was given up."""
    tried: int
    """Number of states that the search looked at."""


@dataclass(frozen=True, eq=False)
class Automata:
    """Automata over activities 0, ..., n-1; a row of states has one of each automaton."""

    after: IntArray
    """``after[r, s, a]``: state of automaton r that follows s at activity a."""
    accepting: BoolArray
    """``accepting[r, s]``: True if a case may end there."""
    named: tuple[int, ...]
    """Activities that some constraint names."""

    @staticmethod
    def of(constraints: Sequence[Constraint], labels: Sequence[str]) -> Automata:
        """Return the automata of constraints over activities of these names."""
        width = max((len(one.automaton.after) for one in constraints), default=1)
        after = np.zeros((len(constraints), width, len(labels)), dtype=np.int64)
        accepting = np.zeros((len(constraints), width), dtype=bool)
        kinds = np.array([[one.kind(label) for label in labels] for one in constraints], dtype=np.int64)
        for row, one in enumerate(constraints):
            table = np.array(one.automaton.after)
            after[row, : len(table)] = table[:, kinds[row]]
            accepting[row, list(one.automaton.accepting)] = True
        named: list[int] = np.flatnonzero((kinds > 0).any(axis=0)).tolist() if len(constraints) else []
        return Automata(after, accepting, tuple(named))

    @property
    def size(self) -> int:
        """Number of activities."""
        return int(self.after.shape[2])

    @cached_property
    def left(self) -> FloatArray:
        """``left[r, s]``: fewest events until automaton r accepts, or infinity."""
        found = np.where(self.accepting, 0.0, np.inf)
        for _ in range(self.after.shape[1]):
            found = np.minimum(found, 1 + self._least_following(found))
        return found

    def _least_following(self, of_states: FloatArray) -> FloatArray:
        """Return the least number of the states that can follow each state."""
        rows = np.arange(len(of_states))[:, None, None]
        return np.asarray(of_states[rows, self.after].min(axis=2, initial=np.inf))

    @cached_property
    def _open(self) -> BoolArray:
        """``_open[r, s, a]``: True if r can accept after a; last, True if it accepts."""
        rows = np.arange(len(self.after))[:, None, None]
        return np.concatenate([np.isfinite(self.left)[rows, self.after], self.accepting[:, :, None]], axis=2)

    @cached_property
    def possible(self) -> BoolArray:
        """True for each activity that may occur in a trace that all automata accept.

        Each automaton by itself must reach, by activities that may occur, a state from which it takes the activity.
        """
        found: BoolArray = np.zeros(self.size, dtype=bool)
        reached = np.zeros(self.accepting.shape, dtype=bool)
        reached[:, 0] = True
        while True:
            more = np.asarray((reached[:, :, None] & self._open[:, :, :-1]).any(axis=1).all(axis=0))
            if (more == found).all():
                return found
            found = more
            for row, after in enumerate(self.after):
                states = 0
                while states < reached[row].sum():
                    states = int(reached[row].sum())
                    reached[row, after[reached[row]][:, found].ravel()] = True

    # Many traces at once --------------------------------------------------------------------------------------------

    def start(self, number: int) -> IntArray:
        """Return the states before any event, a row for each of so many traces."""
        return np.zeros((number, len(self.after)), dtype=np.int64)

    def advanced(self, states: IntArray, codes: npt.NDArray[np.integer]) -> IntArray:
        """Return the states after one more event of each trace."""
        return np.asarray(self.after[np.arange(len(self.after)), states, codes[:, None]])

    def open(self, states: IntArray) -> BoolArray:
        """Return True for each activity that may come next in each trace.

        After it each automaton by itself can still accept. The last column is True if the trace may end.
        """
        found = np.ones((len(states), self.size + 1), dtype=bool)
        for row, of_states in enumerate(self._open):
            found &= of_states[states[:, row]]
        return found

    def kept(self, codes: npt.NDArray[np.integer], offsets: IntArray) -> BoolArray:
        """Return the automata that accept each of the traces in ``codes``."""
        lengths = np.diff(offsets)
        states, rows = self.start(len(lengths)), np.arange(len(lengths))
        for place in range(int(lengths.max(initial=0))):
            rows = rows[lengths[rows] > place]
            states[rows] = self.advanced(states[rows], codes[offsets[rows] + place])
        return np.asarray(self.accepting[np.arange(len(self.after)), states])

    def allowed(self, codes: npt.NDArray[np.integer], offsets: IntArray) -> BoolArray:
        """Return True for each trace that all automata accept."""
        return np.asarray(self.kept(codes, offsets).all(axis=1))

    @cached_property
    def steps(self) -> BoolArray:
        """``steps[x, y]``: True if y can directly follow x in a trace.

        Each automaton by itself must accept the trace. Its start and its end are both n.
        """
        size, found = self.size, np.ones((self.size + 1, self.size + 1), dtype=bool)
        for after, open_ in zip(self.after, self._open, strict=True):
            reached, before = np.eye(1, len(after), dtype=bool)[0], 0
            while before < reached.sum():
                before = int(reached.sum())
                reached[after[reached].ravel()] = True
            ways = reached[:, None] & open_[:, :size]
            then = open_[after]  # state, x, y
            found[:size] &= (ways[:, :, None] & then).any(axis=0)
            found[size] &= open_[0]
        return found

    # One trace ------------------------------------------------------------------------------------------------------

    def nearest(self, trace: Sequence[int], longest: float = np.inf) -> tuple[int, ...] | None:
        """Return a trace that all automata accept, made of this one by few changes.

        An event is left out, put in or replaced. None where there is none of at most ``longest`` events, or none was
        found (:meth:`search`).
        """
        return self.search(trace, longest).found

    @property
    def work(self) -> int:
        """Rough number of steps of automata for each state of a search."""
        return max(1, len(self.after)) * max(1, len(self.named))

    def search(self, trace: Sequence[int], longest: float = np.inf, most: int = MOST_TRIED) -> SearchResult:
        """Search for the nearest trace that all automata accept, among ``most`` states.

        A* search. The remaining changes are estimated by the sum over automata of what each needs by itself. That is
        the need of all where constraints name different activities.
        """
        bounds = self._bounds(trace)
        start = (0,) * len(self.after)
        first = _Place(0, start, 0, 0, None)
        order = itertools.count()
        waiting = [(_rest(bounds[0], start), 0, 0, next(order), first)]
        done: set[tuple[int, _States]] = set()
        while waiting and len(done) < most:
            place = heapq.heappop(waiting)[-1]
            if (place.read, place.states) in done:
                continue
            done.add((place.read, place.states))
            if place.read == len(trace) and self._all_accept(place.states):
                return SearchResult(place.made(), True, len(done))
            for following in self._moves(place, trace, longest):
                rest = _rest(bounds[following.read], following.states)
                if rest < np.inf and (following.read, following.states) not in done:
                    estimate = following.changes + rest
                    heapq.heappush(waiting, (estimate, -following.read, following.length, next(order), following))
        return SearchResult(None, not waiting and longest == np.inf, len(done))

    def _moves(self, place: _Place, trace: Sequence[int], longest: float) -> Iterator[_Place]:
        read, states, changes, length, last = place
        if read < len(trace):
            code = trace[read]
            yield _Place(read + 1, self._next(states, code), changes, length + 1, (code, last))
            for other in self.named:
                yield _Place(read + 1, self._next(states, other), changes + REPLACED, length + 1, (other, last))
            yield _Place(read + 1, states, changes + 1, length, last)
        if length + 1 + len(trace) - read <= longest:
            for other in self.named:
                yield _Place(read, self._next(states, other), changes + 1, length + 1, (other, last))

    def _next(self, states: _States, code: int) -> _States:
        return tuple([rows[state][code] for rows, state in zip(self._lists, states, strict=True)])

    def _all_accept(self, states: _States) -> bool:
        return all(self.accepting[row, state] for row, state in enumerate(states))

    @cached_property
    def _lists(self) -> list[list[list[int]]]:
        found: list[list[list[int]]] = self.after.tolist()
        return found

    def _bounds(self, trace: Sequence[int]) -> list[list[list[float]]]:
        """Return the least changes of each automaton by itself, by place and state."""
        rows, found = np.arange(len(self.after)), self.left
        result = [found.tolist()]
        for code in reversed(trace):
            kept = found[rows[:, None], self.after[:, :, code]]
            found = np.minimum(kept, 1 + np.minimum(found, self._least_following(found)))
            for _ in range(self.after.shape[1]):  # events put in
                better = np.minimum(found, 1 + self._least_following(found))
                if (better == found).all():
                    break
                found = better
            result.append(found.tolist())
        return result[::-1]


def _rest(bound: list[list[float]], states: _States) -> float:
    return sum([of_states[state] for of_states, state in zip(bound, states, strict=True)])
