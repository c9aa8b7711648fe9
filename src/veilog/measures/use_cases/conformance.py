"""Conformance: verdicts of a model on a release and on its original."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np

from veilog._typing import BoolArray, IntArray
from veilog.errors import ParameterError
from veilog.logs.variants import Variants
from veilog.measures.measure import Log
from veilog.measures.use_cases.use_case import UseCase, UseCaseOptions, facts_of
from veilog.mining.model_files import Model, read_model
from veilog.mining.replay import Net, Places, Transition
from veilog.rules.automata import Automata
from veilog.rules.rule_files import Constraint

__all__ = ["CONFORMANCE", "read_model"]


# Conformance ---------------------------------------------------------------------------------------------------------

# Conformance compares the verdicts of a model on the release with those on the original.
#
# A case keeps a net as a whole or not at all. Of a list of constraints it keeps those that it does not break, and it
# conforms if it breaks none. Without a given model, the original's own rules are the model: responses and precedences
# that hold in 95 % of the cases that activate them.


def conformance_rate(model: Model, variants: Variants) -> float:
    """Return the share of the cases that a model allows.

    Raises:
        ParameterError: When some cases remain undecided.

    """
    if isinstance(model, Net):
        found = _acceptor(model).verdicts(variants)
        if not found.decided.all():
            open_ = int(variants.counts[~found.decided].sum())
            raise ParameterError("conformance-cases-undecided", parameter="model", open=open_, cases=variants.cases)
        conforming = found.conforming
    else:
        conforming = np.logical_and.reduce([one.kept for one in held(model, variants)])
    return float(variants.counts[conforming].sum() / variants.cases)


@lru_cache(maxsize=1)
def _acceptor(net: Net) -> Acceptor:
    """Return a net's acceptor, cached: a use case checks many logs of like variants."""
    return Acceptor(net)


def support_error(constraints: Sequence[Constraint], used: Variants, judged: Variants) -> float | None:
    """Return the mean difference of the constraints' supports, or None.

    It is None where no constraint is active in either log. A constraint that no case of one log activates has the
    support 0 there, because nothing shows that it holds.
    """
    pairs = zip(held(constraints, used), held(constraints, judged), strict=True)
    errors = [abs(one.support - other.support) for one, other in pairs if one.activated or other.activated]
    return statistics.fmean(errors) if errors else None


def _score(used: Log, judged: Log, asked: UseCaseOptions) -> dict[str, float | None]:
    assert isinstance(used, Variants)
    assert isinstance(judged, Variants)
    if asked.model is None:
        rules = mine_constraints(judged)
        if not rules:
            raise ParameterError("conformance-without-model", parameter="model")
        return {"rules": support_error(rules, used, judged)}
    model = read_model(asked.model)
    return {
        "rate": abs(conformance_rate(model, used) - conformance_rate(model, judged)),
        "support": None if isinstance(model, Net) else support_error(model, used, judged),
    }


CONFORMANCE = UseCase(score=_score, **facts_of("conformance"))


# Declare constraints -------------------------------------------------------------------------------------------------

# Declare constraints: the meaning of each template, and the share of the activating cases in which each one holds.
#
# A case activates a constraint if the activities that it is about occur. Other cases are no evidence for it. The
# automaton of a constraint decides if a case keeps it.


SUPPORT = 0.95
"""Support from which on a constraint of the original counts as a rule."""
FREQUENT = 0.05
"""Share of the cases that have to activate it."""
MOST_ACTIVITIES = 50
ACTIVATING = {
    **dict.fromkeys(("responded existence", "response", "chain response"), (0,)),
    **dict.fromkeys(("precedence", "chain precedence"), (1,)),
    **dict.fromkeys(("succession", "not co-existence"), (0, 1)),
}
"""Places of the activities that activate a template, one being enough; every case activates the others."""


@dataclass(frozen=True, eq=False)
class Support:
    """Variants that activate and that keep a constraint, with the numbers of cases."""

    active: BoolArray
    kept: BoolArray
    """True for variants that keep it, and also where it is not active."""
    activated: int
    satisfied: int

    @property
    def support(self) -> float:
        """Return the share of the activating cases that keep it; 0 where there are none."""
        return self.satisfied / self.activated if self.activated else 0.0


def held(constraints: Iterable[Constraint], variants: Variants) -> list[Support]:
    """Return for each constraint the variants that activate it and that keep it."""
    asked, places = list(constraints), _Places(variants)
    kept = Automata.of(asked, variants.labels).kept(variants.codes, variants.offsets)
    return [_support(_active(one, places), kept[:, row], variants.counts) for row, one in enumerate(asked)]


def _active(constraint: Constraint, places: _Places) -> BoolArray:
    names = [constraint.activities[place] for place in ACTIVATING.get(constraint.template, ())]
    found = [places.count(name) > 0 for name in names]
    return np.logical_or.reduce(found) if found else np.ones(len(places.counts), dtype=np.bool_)


def _support(active: BoolArray, kept: BoolArray, counts: IntArray) -> Support:
    return Support(active, kept | ~active, int(counts[active].sum()), int(counts[active & kept].sum()))


def mine_constraints(variants: Variants) -> list[Constraint]:
    """Return the nearly always valid responses and precedences of frequent activities."""
    places = _Places(variants)
    cases = {name: int(variants.counts[places.count(name) > 0].sum()) for name in variants.labels}
    frequent = [name for name in cases if cases[name] >= FREQUENT * variants.cases]
    frequent = sorted(sorted(frequent, key=lambda name: -cases[name])[:MOST_ACTIVITIES])
    found = []
    for first in frequent:
        for second in frequent:
            if first != second:
                # For thousands of pairs, places decide faster than automata do.
                response = places.last(second) > places.last(first)
                precedence = (places.count(first) > 0) & (places.first(first) < places.first(second))
                for template, kept in (("response", response), ("precedence", precedence)):
                    one = Constraint(template, (first, second))
                    if _support(_active(one, places), kept, variants.counts).support >= SUPPORT:
                        found.append(one)
    return found


class _Places:
    """Places of activities in variants: first, last (-1 if absent), and frequency."""

    def __init__(self, variants: Variants) -> None:
        self.counts = variants.counts
        self._numbers = {label: number for number, label in enumerate(variants.labels)}
        self._codes = variants.codes
        self._variants = len(variants)
        self._owner = np.repeat(np.arange(len(variants)), variants.lengths)
        self._position = np.arange(len(variants.codes)) - np.repeat(variants.offsets[:-1], variants.lengths)
        self.of = cache(self._positions_of)

    def _positions_of(self, name: str) -> tuple[IntArray, IntArray, IntArray]:
        """Return the first and last position and the number of occurrences of an activity."""
        rows = np.flatnonzero(self._codes == self._numbers.get(name, -1))
        first, last = np.full(self._variants, -1, dtype=np.int64), np.full(self._variants, -1, dtype=np.int64)
        last[self._owner[rows]] = self._position[rows]
        first[self._owner[rows[::-1]]] = self._position[rows[::-1]]
        return first, last, np.bincount(self._owner[rows], minlength=self._variants)

    def first(self, name: str) -> IntArray:
        return self.of(name)[0]

    def last(self, name: str) -> IntArray:
        return self.of(name)[1]

    def count(self, name: str) -> IntArray:
        return self.of(name)[2]


# Petri nets, and which cases they allow ------------------------------------------------------------------------------

# Petri nets and the cases that they allow, found exactly by all the markings that a case can lead to.
#
# A case conforms if its events, in their order and with any silent steps between them, lead from the initial
# marking to the final one. The markings that a prefix leads to are one state. States and the steps between them are
# found once and kept, so that variants share what their prefixes share.
#
# Silent steps of independent branches come in any order, and all orders together are too many. Before an event only
# the silent steps that help it are tried. These are the steps that fill a place that it lacks, those that compete with
# a step that helps, and so on (stubborn sets: Valmari 1991; Schmidt 1999). Nothing is lost. On any way to the end, the
# first step that is among them can as well be taken at once, because no step before it feeds or hinders it. All others
# can wait. A net can have endless silent steps that add tokens: beyond ``MOST_MARKINGS`` there is no verdict.


MOST_MARKINGS = 5_000
"""Largest number of markings visited for one step of a state."""
MOST_LOOKED_AT = 500_000
"""Largest number of markings visited altogether."""


@dataclass(frozen=True, eq=False)
class Verdicts:
    """For each variant, True if the net allows it, and True if that is decided."""

    conforming: BoolArray
    decided: BoolArray


class _TooManyError(Exception):
    """A prefix leads to more markings than the limit."""


class Acceptor:
    """Cases that a net allows, as far as they have been checked."""

    def __init__(self, net: Net) -> None:
        self._net = net
        self._labelled: dict[str, list[Transition]] = {}
        self._feeding: dict[int, list[Transition]] = {}
        """Silent steps by the places into which they put a token."""
        self._taking: dict[int, list[Transition]] = {}
        """Silent steps by the places from which they take a token."""
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
        """Return the verdict on each variant."""
        found = [self.allows(sequence) for sequence in variants.sequences]
        return Verdicts(
            np.array([one is True for one in found], dtype=np.bool_),
            np.array([one is not None for one in found], dtype=np.bool_),
        )

    def allows(self, sequence: tuple[str, ...]) -> bool | None:
        """Return True if the net allows this sequence; None if that would take too long."""
        state: int | None = 0
        for label in sequence:
            assert state is not None
            if (state, label) not in self._steps:
                self._steps[state, label] = self._next_state(state, label)
            state = self._steps[state, label]
            if state is None:
                return None
        assert state is not None
        if state not in self._ends:
            self._ends[state] = self._is_end(state)
        return self._ends[state]

    def _next_state(self, state: int, label: str) -> int | None:
        wanted = self._labelled.get(label, [])
        found: set[Places] = set()
        try:
            for marking in self._explore(self._states[state], lambda held: wanted):
                found.update(after for one in wanted if (after := _fire(one, marking)) is not None)
        except _TooManyError:
            return None
        reached = frozenset(found)
        if reached not in self._numbers:
            self._numbers[reached] = len(self._states)
            self._states.append(reached)
        return self._numbers[reached]

    def _is_end(self, state: int) -> bool | None:
        try:
            return any(marking in self._net.final for marking in self._explore(self._states[state], self._final_steps))
        except _TooManyError:
            return None

    def _final_steps(self, held: Counter[int]) -> list[Transition]:
        """Return steps of which one has to be taken on any way to each final marking."""
        found: list[Transition] = []
        for final in self._net.final:
            wanted = Counter(final)
            lacking, left = wanted - held, held - wanted
            found += self._fewest_steps(lacking, self._feeding) if lacking else self._fewest_steps(left, self._taking)
        return found

    def _explore(
        self, markings: Iterable[Places], wanted: Callable[[Counter[int]], list[Transition]]
    ) -> Iterator[Places]:
        """Yield these markings and all that silent steps towards the wanted ones lead to."""
        waiting = list(markings)
        known = set(waiting)
        while waiting:
            marking = waiting.pop()
            self._looked_at += 1
            if len(known) > MOST_MARKINGS or self._looked_at > MOST_LOOKED_AT:
                raise _TooManyError
            yield marking
            held = Counter(marking)
            for step in self._helping_steps(held, wanted(held)):
                after = _fire(step, marking)
                if after is not None and after not in known:
                    known.add(after)
                    waiting.append(after)

    def _helping_steps(self, held: Counter[int], wanted: list[Transition]) -> list[Transition]:
        """Return the silent steps that wanted ones, or these, wait for or compete with."""
        waiting, found = list(wanted), dict.fromkeys(wanted)
        while waiting:
            step = waiting.pop()
            if lacking := Counter(step.inputs) - held:
                more = self._fewest_steps(lacking, self._feeding)
            else:
                more = [other for place in set(step.inputs) for other in self._taking.get(place, ())]
            new = [step for step in more if step not in found]
            found.update(dict.fromkeys(new))
            waiting.extend(new)
        return [step for step in found if step.label is None]

    @staticmethod
    def _fewest_steps(places: Iterable[int], steps: dict[int, list[Transition]]) -> list[Transition]:
        """Return the steps of the place with the fewest; each place needs one of its own."""
        return min((steps.get(place, []) for place in sorted(places)), key=len, default=[])


def _fire(step: Transition, marking: Places) -> Places | None:
    """Return the marking after a step, as places of tokens; None if it is not enabled."""
    left = list(marking)
    for place in step.inputs:
        if place not in left:
            return None
        left.remove(place)
    return tuple(sorted((*left, *step.outputs)))
