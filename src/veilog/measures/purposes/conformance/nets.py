"""Petri nets, and which cases they allow: exactly, by all the markings that a case can lead to.

A case conforms if its events, in their order and with any silent steps between them, lead from the initial marking to
the final one. All markings that a prefix can lead to are one state; states and the steps between them are found once
and kept, so that variants share what their prefixes share. A net can have endless silent steps that add tokens: beyond
``MOST_MARKINGS`` nothing is said of a case.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from veilog._typing import BoolArray
from veilog.logs.variants import Variants

__all__ = ["Marking", "Net", "Transition", "Verdicts", "verdicts"]

Marking = tuple[int, ...]
"""The places of all tokens, in order; a place with two of them stands there twice."""

MOST_MARKINGS = 5_000
"""Markings that one prefix may lead to."""
MOST_KNOWN = 200_000
"""Markings that may be known of a net altogether."""


@dataclass(frozen=True)
class Transition:
    """A step of a net; a silent one has no label."""

    label: str | None
    consumes: Marking
    produces: Marking

    def fired(self, marking: Marking) -> Marking | None:
        """Return the marking after this step; None where it is not enabled."""
        left = list(marking)
        for place in self.consumes:
            if place not in left:
                return None
            left.remove(place)
        return tuple(sorted((*left, *self.produces)))


@dataclass(frozen=True)
class Net:
    """A labelled Petri net; a case is complete in any of the ``final`` markings."""

    transitions: tuple[Transition, ...]
    initial: Marking
    final: frozenset[Marking]

    @property
    def labels(self) -> frozenset[str]:
        """The activities that it knows."""
        return frozenset(one.label for one in self.transitions if one.label is not None)


@dataclass(frozen=True, eq=False)
class Verdicts:
    """For each variant whether the net allows it, and whether that could be found at all."""

    conforming: BoolArray
    decided: BoolArray


def verdicts(net: Net, variants: Variants) -> Verdicts:
    """Return which variants the net allows."""
    search = _Search(net)
    found = [search.allows(sequence) for sequence in variants.sequences]
    return Verdicts(
        np.array([one is True for one in found], dtype=np.bool_),
        np.array([one is not None for one in found], dtype=np.bool_),
    )


class _TooManyError(Exception):
    """A prefix leads to more markings than are looked at."""


class _Search:
    def __init__(self, net: Net) -> None:
        self._net = net
        self._markings: dict[Marking, dict[str | None, tuple[Marking, ...]]] = {}
        self._numbers: dict[frozenset[Marking], int] = {}
        self._states: list[frozenset[Marking]] = []
        self._steps: dict[tuple[int, str], int | None] = {}
        try:
            self._start: int | None = self._state([net.initial])
        except _TooManyError:
            self._start = None

    def allows(self, sequence: tuple[str, ...]) -> bool | None:
        """Return whether the net allows this sequence; None where that would take too long."""
        state = self._start
        for label in sequence:
            if state is None:
                return None
            if (state, label) not in self._steps:
                self._steps[state, label] = self._after(state, label)
            state = self._steps[state, label]
        return None if state is None else not self._net.final.isdisjoint(self._states[state])

    def _after(self, state: int, label: str) -> int | None:
        try:
            reached = (after for marking in self._states[state] for after in self._moves(marking).get(label, ()))
            return self._state(reached)
        except _TooManyError:
            return None

    def _state(self, markings: Iterable[Marking]) -> int:
        """Return the number of the state of these markings and all that silent steps lead to from them."""
        waiting = list(set(markings))
        closed = set(waiting)
        while waiting:
            if len(closed) > MOST_MARKINGS:
                raise _TooManyError
            new = [after for after in self._moves(waiting.pop()).get(None, ()) if after not in closed]
            closed.update(new)
            waiting.extend(set(new))
        state = frozenset(closed)
        if state not in self._numbers:
            self._numbers[state] = len(self._states)
            self._states.append(state)
        return self._numbers[state]

    def _moves(self, marking: Marking) -> dict[str | None, tuple[Marking, ...]]:
        """Return the markings that are one step away, by the steps' labels."""
        if marking not in self._markings:
            if len(self._markings) >= MOST_KNOWN:
                raise _TooManyError
            moves: dict[str | None, tuple[Marking, ...]] = {}
            for transition in self._net.transitions:
                if (after := transition.fired(marking)) is not None:
                    moves[transition.label] = (*moves.get(transition.label, ()), after)
            self._markings[marking] = moves
        return self._markings[marking]
