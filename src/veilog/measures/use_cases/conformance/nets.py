"""Petri nets, and which cases they allow: exactly, by all the markings that a case can lead to.

A case conforms if its events, in their order and with any silent steps between them, lead from the initial marking to
the final one. The markings that a prefix leads to are one state; states and the steps between them are found once and
kept, so that variants share what their prefixes share.

Silent steps of branches that have nothing to do with each other come in any order, and all orders together are too
many. So before an event only those silent steps are tried that help it: the ones that fill a place that it lacks, those
that compete with a step that helps, and so on (stubborn sets: Valmari 1991; Schmidt 1999). Nothing is lost: of any way
to the end, the first step that is among them can as well be taken at once, as no step before it feeds or hinders it;
all others can wait. A net can have endless silent steps that add tokens: beyond ``MOST_MARKINGS`` nothing is said.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from veilog._typing import BoolArray
from veilog.logs.variants import Variants
from veilog.mining.replay import Net, Places, Transition

MOST_MARKINGS = 5_000
"""Markings that are looked at for one step of a state."""
MOST_LOOKED_AT = 500_000
"""Markings that are looked at altogether."""


@dataclass(frozen=True, eq=False)
class Verdicts:
    """For each variant whether the net allows it, and whether that could be found at all."""

    conforming: BoolArray
    decided: BoolArray


class _TooManyError(Exception):
    """A prefix leads to more markings than are looked at."""


class Acceptor:
    """The cases that a net allows, as far as they were asked about."""

    def __init__(self, net: Net) -> None:
        self._net = net
        self._labelled: dict[str, list[Transition]] = {}
        self._feeding: dict[int, list[Transition]] = {}
        """Silent steps by the places that they put a token into."""
        self._taking: dict[int, list[Transition]] = {}
        """Silent steps by the places that they take a token from."""
        for transition in net.transitions:
            if transition.label is not None:
                self._labelled.setdefault(transition.label, []).append(transition)
                continue
            for place in set(transition.outputs):
                self._feeding.setdefault(place, []).append(transition)
            for place in set(transition.inputs):
                self._taking.setdefault(place, []).append(transition)
        self._looked_at = 0
        self._states: list[frozenset[Places]] = [frozenset({net.initial})]
        self._numbers = {self._states[0]: 0}
        self._steps: dict[tuple[int, str], int | None] = {}
        self._ends: dict[int, bool | None] = {}

    def verdicts(self, variants: Variants) -> Verdicts:
        """Return which variants the net allows."""
        found = [self.allows(sequence) for sequence in variants.sequences]
        return Verdicts(
            np.array([one is True for one in found], dtype=np.bool_),
            np.array([one is not None for one in found], dtype=np.bool_),
        )

    def allows(self, sequence: tuple[str, ...]) -> bool | None:
        """Return whether the net allows this sequence; None where that would take too long."""
        state: int | None = 0
        for label in sequence:
            assert state is not None
            if (state, label) not in self._steps:
                self._steps[state, label] = self._after(state, label)
            state = self._steps[state, label]
            if state is None:
                return None
        assert state is not None
        if state not in self._ends:
            self._ends[state] = self._is_end(state)
        return self._ends[state]

    def _after(self, state: int, label: str) -> int | None:
        wanted = self._labelled.get(label, [])
        found: set[Places] = set()
        try:
            for marking in self._explored(self._states[state], lambda held: wanted):
                found.update(after for one in wanted if (after := _fired(one, marking)) is not None)
        except _TooManyError:
            return None
        reached = frozenset(found)
        if reached not in self._numbers:
            self._numbers[reached] = len(self._states)
            self._states.append(reached)
        return self._numbers[reached]

    def _is_end(self, state: int) -> bool | None:
        try:
            return any(marking in self._net.final for marking in self._explored(self._states[state], self._ending))
        except _TooManyError:
            return None

    def _ending(self, held: Counter[int]) -> list[Transition]:
        """Return steps of which one has to be taken on any way to each final marking."""
        found: list[Transition] = []
        for final in self._net.final:
            wanted = Counter(final)
            lacking, left = wanted - held, held - wanted
            found += self._fewest(lacking, self._feeding) if lacking else self._fewest(left, self._taking)
        return found

    def _explored(
        self, markings: Iterable[Places], wanted: Callable[[Counter[int]], list[Transition]]
    ) -> Iterator[Places]:
        """Return these markings and all that silent steps towards the wanted ones lead to."""
        waiting = list(markings)
        known = set(waiting)
        while waiting:
            marking = waiting.pop()
            self._looked_at += 1
            if len(known) > MOST_MARKINGS or self._looked_at > MOST_LOOKED_AT:
                raise _TooManyError
            yield marking
            held = Counter(marking)
            for step in self._helping(held, wanted(held)):
                after = _fired(step, marking)
                if after is not None and after not in known:
                    known.add(after)
                    waiting.append(after)

    def _helping(self, held: Counter[int], wanted: list[Transition]) -> list[Transition]:
        """Return the silent steps that the wanted ones wait for or compete with, and those that these do."""
        waiting, found = list(wanted), dict.fromkeys(wanted)
        while waiting:
            step = waiting.pop()
            if lacking := Counter(step.inputs) - held:
                more = self._fewest(lacking, self._feeding)
            else:
                more = [other for place in set(step.inputs) for other in self._taking.get(place, ())]
            new = [step for step in more if step not in found]
            found.update(dict.fromkeys(new))
            waiting.extend(new)
        return [step for step in found if step.label is None]

    @staticmethod
    def _fewest(places: Iterable[int], steps: dict[int, list[Transition]]) -> list[Transition]:
        """Return the steps of the place that has the fewest: one of them has to be taken for any of the places."""
        return min((steps.get(place, []) for place in sorted(places)), key=len, default=[])


def _fired(step: Transition, marking: Places) -> Places | None:
    """Return the marking, by the places of all tokens, after a step; None where it is not enabled."""
    left = list(marking)
    for place in step.inputs:
        if place not in left:
            return None
        left.remove(place)
    return tuple(sorted((*left, *step.outputs)))
