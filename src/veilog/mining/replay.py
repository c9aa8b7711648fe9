"""Token-based replay of a log on a net: fitness, precision and generalization.

A. Berti, W. van der Aalst, "Reviving token-based replay", 2019. Where a transition lacks tokens, silent transitions on
the shortest ways from marked places to those that lack one are fired. Tokens still lacking after that are *missing*.
Tokens left at the end, other than the final token, *remain*. A step depends on the marking and the activity alone, so
every such step is taken once, and all cases share it.

- Fitness: 1/2 (1 - missing / consumed) + 1/2 (1 - remaining / produced), tokens summed over all cases.
- Precision (Munoz-Gama, Carmona 2010): 1 - escaping / enabled, summed over the prefixes that are replayed without
  missing tokens and that cases go on from. An activity is enabled if silent transitions and itself can bring it about.
  It escapes when no case goes on with it.
- Generalization (Buijs et al. 2014): 1 - mean over transitions of 1 / sqrt(times fired), 1 for one that never fired.

The order in which silent ways are tried is that of pm4py, and so are the numbers.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from veilog._typing import IntArray
from veilog.logs.variants import Variants
from veilog.mining.inductive import UNLIMITED, Clock
from veilog.mining.tree import SILENT, Operator, ProcessTree

_CELLS = 1 << 20
"""Number of activities that are handled together."""


@dataclass(frozen=True)
class PrefixTree:
    """Distinct prefixes as arrays, shorter ones first, the empty one at the front.

    Prefixes of one length are in the order of their codes.
    """

    parents: IntArray
    """Prefix without its last activity, for each (for the empty one itself)."""
    codes: IntArray
    """Last activity of each (-1 for the empty one)."""
    passing: IntArray
    """Number of cases with each."""
    whole: IntArray
    """Prefix that is all of it, for each variant."""

    @staticmethod
    def of(variants: Variants) -> PrefixTree:
        """Return the prefixes of a log.

        Where no prefix branched, many lengths are handled together. So a prefix that few long variants share, or that
        one has alone, takes no step for each event.
        """
        lengths, counts, size = variants.lengths, variants.counts, max(1, len(variants.labels))
        parents, codes = [np.zeros(1, np.int64)], [np.full(1, -1, np.int64)]
        passing = [np.array([counts.sum()], np.int64)]
        at = np.zeros(len(variants), dtype=np.int64)
        known, depth, longest, together = 1, 0, int(lengths.max(initial=0)), 1
        while depth < longest:
            # Variants are sorted by length: those that go on are the last ones.
            first = int(np.searchsorted(lengths, depth, side="right"))
            steps = at[first:] * size + variants.codes[variants.offsets[first:-1] + depth]
            new, leaders, which = np.unique(steps, return_index=True, return_inverse=True)
            parents.append(new // size)
            codes.append(new % size)
            passing.append(_sum_counts(which, counts[first:], len(new)))
            known, depth = known + len(new), depth + 1
            most = min(int(lengths[first]) - depth, together, max(1, _CELLS // len(which)))
            if most and bool((np.diff(parents[-1]) > 0).all()):
                ahead = variants.codes[(variants.offsets[first:-1] + depth)[:, None] + np.arange(most)]
                alike = (ahead == ahead[leaders[which]]).all(axis=0)
                number = most if alike.all() else int(np.argmin(alike))
                # Each has one child in each of these lengths, in its own order.
                parents.append(np.arange(known - len(new), known + (number - 1) * len(new)))
                codes.append(ahead[leaders, :number].T.ravel().astype(np.int64))
                passing.append(np.tile(passing[-1], number))
                known, depth = known + number * len(new), depth + number
                together = 2 * together if number == most else 1
            at[first:] = known - len(new) + which
        return PrefixTree(np.concatenate(parents), np.concatenate(codes), np.concatenate(passing), at)


@dataclass(frozen=True)
class Prefixes:
    """Distinct prefixes, shorter ones first; the first is the empty one."""

    labels: tuple[str, ...]
    parents: list[int]
    """Prefix without its last activity, for each (for the empty one itself)."""
    codes: list[int]
    """Last activity of each (-1 for the empty one)."""
    passing: list[int]
    """Number of cases with each."""
    ending: list[int]
    """Number of cases that end with each."""
    following: list[int]
    """Mask of the activities that continue it in some case."""

    @classmethod
    def of(cls, variants: Variants) -> Prefixes:
        """Return the prefixes of a log."""
        tree = PrefixTree.of(variants)
        parents, codes = tree.parents.tolist(), tree.codes.tolist()
        following = [0] * len(parents)
        for parent, code in zip(parents[1:], codes[1:], strict=True):
            following[parent] |= 1 << code
        ending = _sum_counts(tree.whole, variants.counts, len(parents)).tolist()
        return cls(variants.labels, parents, codes, tree.passing.tolist(), ending, following)

    def __len__(self) -> int:
        return len(self.parents)

    @property
    def going_on(self) -> list[int]:
        """Number of cases that go on after each."""
        return [passing - ending for passing, ending in zip(self.passing, self.ending, strict=True)]

    def drawn(self, number: int) -> list[int]:
        """Return the draws of each prefix, in proportion to the cases that go on from it.

        The draw is always the same. A prefix that is drawn several times counts so often; its continuations are still
        those of the whole log.
        """
        chances = np.array(self.going_on, dtype=np.float64)
        drawn = np.random.default_rng(0).choice(len(chances), number, p=chances / chances.sum())
        found: list[int] = np.bincount(drawn, minlength=len(chances)).tolist()
        return found

    @property
    def cases(self) -> int:
        return self.passing[0]

    @property
    def events(self) -> int:
        return sum(self.passing) - self.passing[0]


def _sum_counts(which: IntArray, counts: IntArray, size: int) -> IntArray:
    sums = np.zeros(size, dtype=np.int64)
    np.add.at(sums, which, counts)
    return sums


Places = tuple[int, ...]
"""Places in order; a repeated place stands there repeatedly."""


@dataclass(frozen=True)
class Transition:
    """Transition with its places of input and output tokens; silent without a label."""

    label: str | None
    inputs: Places
    outputs: Places
    name: str = ""
    """Name to sort by."""


@dataclass(frozen=True)
class Net:
    """Petri net, its places numbers from 0; any ``final`` marking completes a case."""

    transitions: tuple[Transition, ...]
    initial: Places
    """Places of the tokens that a case begins with."""
    final: frozenset[Places]

    @cached_property
    def places(self) -> int:
        """Number of places."""
        ends = (each.inputs + each.outputs for each in self.transitions)
        return 1 + max((*self.initial, *itertools.chain(*self.final, *ends)), default=-1)

    @property
    def source(self) -> int:
        """The one place where a case of a workflow net begins."""
        (place,) = self.initial
        return place

    @property
    def sink(self) -> int:
        """The one place where it ends."""
        ((place,),) = self.final
        return place


def workflow_net(tree: ProcessTree) -> Net:
    """Return the net of a tree; its language is the tree's."""
    building = _Building()
    source, sink = building.place("source"), building.place("sink")
    begin, end = source, sink
    if _begins_with_loop(tree):
        begin = building.place()
        building.silent("tau", source, begin)
    if _ends_with_loop(tree):
        end = building.place()
        building.silent("tau", end, sink)
    building.add(tree, begin, end)
    building.merge()
    return building.net(source, sink)


_FORKS = (Operator.CHOICE, Operator.PARALLEL, Operator.LOOP)


def _begins_with_loop(tree: ProcessTree) -> bool:
    """Return True if the source needs a silent transition, so that none returns to it."""
    first = tree
    while first.children:
        if first.operator is Operator.LOOP:
            return True
        first = first.children[0]
    return tree.operator in _FORKS or (bool(tree.children) and _loop_at_end(tree.children[0]))


def _ends_with_loop(tree: ProcessTree) -> bool:
    """Return True if the sink needs one, so that nothing leaves it."""
    return tree.operator in _FORKS or _loop_at_end(tree)


def _loop_at_end(tree: ProcessTree) -> bool:
    while tree.children:
        if tree.operator is Operator.LOOP:
            return True
        tree = tree.children[-1]
    return False


@dataclass(eq=False)
class _Moving:
    """Transition while the net is built."""

    name: str
    label: str | None
    inputs: set[int] = field(default_factory=set)
    outputs: set[int] = field(default_factory=set)


class _Building:
    """Net that grows from a tree and then shrinks."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._transitions: list[_Moving] = []
        self._silent = 0

    def place(self, name: str = "") -> int:
        """Add a place; their names are only there to be sorted."""
        self._names.append(name or f"p_{len(self._names) + 1}")
        return len(self._names) - 1

    def silent(self, kind: str, begin: int | None = None, end: int | None = None) -> _Moving:
        """Add a silent transition, named after its purpose."""
        self._silent += 1
        return self._transition(_Moving(f"{kind}_{self._silent}", None), begin, end)

    def _transition(self, new: _Moving, begin: int | None, end: int | None) -> _Moving:
        new.inputs.update(() if begin is None else (begin,))
        new.outputs.update(() if end is None else (end,))
        self._transitions.append(new)
        return new

    def add(self, tree: ProcessTree, begin: int, end: int) -> None:
        """Add a tree between two places."""
        children = tree.children
        if tree.operator is None:
            if tree.label is None:
                self.silent("skip", begin, end)
            else:
                self._transition(_Moving("", tree.label), begin, end)
        elif tree.operator is Operator.CHOICE:
            for child in children:
                self.add(child, begin, end)
        elif tree.operator is Operator.SEQUENCE:
            for child in children[:-1]:
                between = self.place()
                self.add(child, begin, between)
                begin = between
            self.add(children[-1], begin, end)
        elif tree.operator is Operator.PARALLEL:
            split, join = self.silent("tauSplit", begin), self.silent("tauJoin", None, end)
            for child in children:
                inner, outer = self.place(), self.place()
                split.outputs.add(inner)
                join.inputs.add(outer)
                self.add(child, inner, outer)
        else:
            self._add_loop(children[0], children[1], begin, end)

    def _add_loop(self, do: ProcessTree, redo: ProcessTree, begin: int, end: int) -> None:
        inner = self.place()
        self.silent("init_loop", begin, inner)
        back = self.silent("loop", None, inner)
        done = self.place()
        self.add(do, inner, done)
        again = self.place()
        self.add(redo, done, again)
        self.add(SILENT, done, end)
        back.inputs.add(again)

    def merge(self) -> None:
        """Merge silent transitions with the only one before them, then with the one after."""
        while self._merge_one(forward=True) or self._merge_one(forward=False):
            pass

    def _merge_one(self, *, forward: bool) -> bool:
        """Merge a silent transition into the only other at its one place between them."""
        given: dict[int, list[_Moving]] = {}
        taken: dict[int, list[_Moving]] = {}
        for transition in self._transitions:
            for place in transition.outputs:
                given.setdefault(place, []).append(transition)
            for place in transition.inputs:
                taken.setdefault(place, []).append(transition)
        for silent in self._transitions:
            near = silent.inputs if forward else silent.outputs
            if silent.label is not None or len(near) != 1:
                continue
            (place,) = near
            own, others = (taken, given) if forward else (given, taken)
            if own[place] == [silent] and len(others.get(place, ())) == 1:
                other = others[place][0]
                if forward:
                    other.outputs = (other.outputs - near) | silent.outputs
                else:
                    other.inputs = (other.inputs - near) | silent.inputs
                self._transitions.remove(silent)
                return True
        return False

    def net(self, source: int, sink: int) -> Net:
        """Return the net: places sorted by name, all else in the order of its making."""
        used = {source, sink}.union(*(t.inputs | t.outputs for t in self._transitions))
        order = sorted(used, key=self._names.__getitem__)
        number = {place: i for i, place in enumerate(order)}

        def numbers(places: set[int]) -> tuple[int, ...]:
            return tuple(number[place] for place in sorted(places))

        transitions = tuple(
            Transition(t.label, numbers(t.inputs), numbers(t.outputs), t.name) for t in self._transitions
        )
        return Net(transitions, (number[source],), frozenset({(number[sink],)}))


Marking = dict[int, int]
"""Tokens of the places that have some."""
_DEPTH = 2
"""Number of helps by other silent transitions after which one that lacks tokens is given up."""
_ROUNDS = 5
"""Number of times that the final marking is approached."""


@dataclass
class Tokens:
    """Tokens that were missing, remained, were consumed and produced."""

    missing: int = 0
    remaining: int = 0
    consumed: int = 0
    produced: int = 0

    def add(self, other: Tokens, times: int) -> None:
        self.missing += times * other.missing
        self.remaining += times * other.remaining
        self.consumed += times * other.consumed
        self.produced += times * other.produced

    @property
    def fitness(self) -> float:
        if not self.consumed or not self.produced:
            return 0.0
        return 0.5 * (1 - self.missing / self.consumed) + 0.5 * (1 - self.remaining / self.produced)


@dataclass(frozen=True)
class Step:
    """Effect of an activity, or of the end of a trace, in a marking."""

    to: int
    tokens: Tokens
    fired: tuple[int, ...]


class Enabling(Protocol):
    """Net in replay, as far as precision needs it."""

    @property
    def clock(self) -> Clock: ...
    def enabled(self, marking: int) -> set[str]: ...


class Replay:
    """Replay on one net; markings are numbered as they are met, 0 is the initial one."""

    def __init__(self, net: Net, clock: Clock = UNLIMITED) -> None:
        self.net, self.clock = net, clock
        self._inputs = [transition.inputs for transition in net.transitions]
        self._needed = [frozenset(transition.inputs) for transition in net.transitions]
        self._outputs = [transition.outputs for transition in net.transitions]
        self._labelled: dict[str, list[int]] = {}
        for number, transition in enumerate(net.transitions):
            if transition.label is not None:
                self._labelled.setdefault(transition.label, []).append(number)
        self._place_in_search = _ranks([transition.name for transition in net.transitions]).__getitem__
        self._silent: list[list[int]] = [[] for _ in range(net.places)]
        self._visible: list[list[int]] = [[] for _ in range(net.places)]
        for number, transition in enumerate(net.transitions):
            for place in transition.inputs:
                (self._silent if transition.label is None else self._visible)[place].append(number)
        self._ways = self._silent_ways()
        self._markings: list[Marking] = []
        self._numbers: dict[frozenset[tuple[int, int]], int] = {}
        self._steps: dict[tuple[int, str], Step] = {}
        self._ends: dict[int, Step] = {}
        self._number({net.source: 1})

    def _silent_ways(self) -> dict[tuple[int, int], tuple[int, ...]]:
        """Return the shortest silent way between each two places that have one."""
        ways: dict[tuple[int, int], tuple[int, ...]] = {}
        for begin in range(self.net.places):
            front: list[tuple[int, tuple[int, ...]]] = [(begin, ())]
            while front:
                ahead = []
                for place, way in front:
                    for silent in self._silent[place]:
                        for to in self._outputs[silent]:
                            if (begin, to) not in ways:
                                ways[begin, to] = (*way, silent)
                                ahead.append((to, ways[begin, to]))
                front = ahead
        return ways

    def step(self, marking: int, activity: str) -> Step | None:
        """Return the effect of an activity; None if the net does not have it."""
        if activity not in self._labelled:
            return None
        known = self._steps.get((marking, activity))
        if known is None:
            known = self._steps[marking, activity] = self._take_step(self._markings[marking], activity)
        return known

    def end(self, marking: int) -> Step:
        """Return the effect of a trace's end: silent steps to the end, last token taken."""
        known = self._ends.get(marking)
        if known is None:
            known = self._ends[marking] = self._end_step(self._markings[marking])
        return known

    def enabled(self, marking: int) -> set[str]:
        """Return the activities that can come next, also by silent transitions."""
        return self._reachable_activities(self._markings[marking])

    def _number(self, marking: Marking) -> int:
        key = frozenset(marking.items())
        if key not in self._numbers:
            self._numbers[key] = len(self._markings)
            self._markings.append(marking)
        return self._numbers[key]

    def _is_enabled(self, transition: int, marking: Marking) -> bool:
        return marking.keys() >= self._needed[transition]

    def _fire(self, transition: int, marking: Marking, fired: list[int]) -> None:
        for place in self._inputs[transition]:
            if marking[place] == 1:
                del marking[place]
            else:
                marking[place] -= 1
        for place in self._outputs[transition]:
            marking[place] = marking.get(place, 0) + 1
        fired.append(transition)

    def _tokens(self, fired: Iterable[int]) -> Tokens:
        fired = tuple(fired)
        consumed = sum(len(self._inputs[t]) for t in fired)
        return Tokens(0, 0, consumed, sum(len(self._outputs[t]) for t in fired))

    def _take_step(self, before: Marking, activity: str) -> Step:
        marking, fired = dict(before), list[int]()
        candidates = self._labelled[activity]
        target = next((t for t in candidates if self._is_enabled(t, marking)), candidates[-1])
        if not self._is_enabled(target, marking):
            self._approach(target, marking, fired, {target}, 1)
        lacking = [place for place in self._inputs[target] if place not in marking]
        for place in lacking:
            marking[place] = 1
        self._fire(target, marking, fired)
        tokens = self._tokens(fired)
        tokens.missing = len(lacking)
        return Step(self._number(marking), tokens, tuple(fired))

    def _approach(self, target: int, marking: Marking, fired: list[int], seen: set[int], depth: int) -> None:
        """Fire silent transitions that may bring a transition's missing tokens, each once."""
        lacking = [place for place in self._inputs[target] if place not in marking]
        ways = self._silent_paths(marking, lacking)
        for way in ways:
            before = len(fired)
            for silent in way:
                if silent not in seen and self._is_enabled(silent, marking):
                    self._fire(silent, marking, fired)
                    seen.add(silent)
                if self._is_enabled(target, marking):
                    return
            if len(fired) == before:
                break
        for way in self._silent_paths(marking, lacking) if ways else ():
            for silent in way:
                if silent in seen:
                    continue
                if not self._is_enabled(silent, marking) and depth < _DEPTH:
                    seen.add(silent)
                    self._approach(silent, marking, fired, seen, depth + 1)
                if self._is_enabled(silent, marking):
                    self._fire(silent, marking, fired)
                    seen.add(silent)

    def _silent_paths(self, marking: Marking, lacking: Iterable[int]) -> list[tuple[int, ...]]:
        """Return the silent ways from marked places to others, short ones first."""
        ways = (self._ways.get((begin, end)) for begin in sorted(marking) for end in sorted(lacking))
        return sorted((way for way in ways if way), key=len)

    def _end_step(self, before: Marking) -> Step:
        marking, fired, sink = dict(before), list[int](), self.net.sink
        for _ in range(_ROUNDS):
            if sink in marking:
                break
            for way in self._silent_paths(marking, (sink,)):
                for silent in way:
                    if self._is_enabled(silent, marking):
                        self._fire(silent, marking, fired)
                if sink in marking:
                    break
        if sink not in marking:
            ways = self._silent_paths(marking, (sink,))
            for way in ways * _ROUNDS:
                for silent in way:
                    if not self._is_enabled(silent, marking):
                        break
                    self._fire(silent, marking, fired)
        tokens = self._tokens(fired)
        tokens.consumed += 1
        tokens.missing = int(sink not in marking)
        tokens.remaining = sum(marking.values()) - (sink in marking)
        return Step(-1, tokens, tuple(fired))

    def _reachable_activities(self, start: Marking) -> set[str]:
        """Return the activities that a search along silent transitions meets.

        It goes on from every silent transition only in the last marking in which it was met, as pm4py's search does. So
        on some nets it misses activities that another order of silent transitions would enable.
        """
        found: set[str] = set()
        at: dict[int, Marking] = {}
        seen: set[tuple[int, frozenset[tuple[int, int]]]] = set()
        queue: list[int] = []

        def meet(marking: Marking, new: Iterable[int]) -> None:
            found.update(
                self.net.transitions[t].label or ""
                for p in new
                for t in self._visible[p]
                if self._is_enabled(t, marking)
            )
            for transition in sorted({t for p in marking for t in self._silent[p]}, key=self._place_in_search):
                if self._is_enabled(transition, marking):
                    at[transition] = marking
                    queue.append(transition)

        meet(start, start)
        for transition in queue:
            marking = dict(at[transition])
            key = (transition, frozenset(marking.items()))
            if key not in seen:
                if not len(seen) % 256:
                    self.clock.check()
                seen.add(key)
                self._fire(transition, marking, [])
                meet(marking, self._outputs[transition])
        return found


def _ranks(names: list[str]) -> list[int]:
    """Return the place of each name among them in alphabetical order."""
    ranks = [0] * len(names)
    for rank, number in enumerate(sorted(range(len(names)), key=names.__getitem__)):
        ranks[number] = rank
    return ranks


@dataclass
class Replayed:
    """Result of a replay of whole cases."""

    tokens: Tokens
    fired: Mapping[Any, int]
    """Numbers of times that each transition fired, for those that did."""
    transitions: int
    markings: list[int | None]
    """Marking after each prefix; None where tokens were missing."""

    @property
    def fitness(self) -> float:
        return self.tokens.fitness

    @property
    def generalization(self) -> float:
        if not self.transitions:
            return 1.0
        never = self.transitions - len(self.fired)
        return 1 - math.fsum([never, *(1 / math.sqrt(times) for times in self.fired.values())]) / self.transitions


def replay_prefixes(replay: Replay, prefixes: Prefixes) -> Replayed:
    """Replay a log, given by its prefixes."""
    tokens, fired = Tokens(produced=prefixes.cases), dict[int, int]()
    markings, fitting = [0] * len(prefixes), list[int | None]([0] * len(prefixes))
    taken: dict[int, tuple[Step, int]] = {}

    def take(step: Step, times: int) -> None:
        taken[id(step)] = (step, taken.get(id(step), (step, 0))[1] + times)

    for node, (parent, code) in enumerate(zip(prefixes.parents, prefixes.codes, strict=True)):
        if not node % 256:
            replay.clock.check()
        markings[node], fitting[node] = markings[parent], fitting[parent]
        if node and (step := replay.step(markings[parent], prefixes.labels[code])) is not None:
            take(step, prefixes.passing[node])
            markings[node] = step.to
            fitting[node] = None if step.tokens.missing or fitting[parent] is None else step.to
        if prefixes.ending[node]:
            take(replay.end(markings[node]), prefixes.ending[node])
    for step, times in taken.values():
        tokens.add(step.tokens, times)
        for transition in step.fired:
            fired[transition] = fired.get(transition, 0) + times
    return Replayed(tokens, fired, len(replay.net.transitions), fitting)


def precision(replay: Enabling, prefixes: Prefixes, markings: Sequence[int | None], weights: Sequence[int]) -> float:
    """Return the share of enabled activities that some case goes on with.

    They are those after the prefixes, each of which counts by its weight.
    """
    bit = {label: 1 << code for code, label in enumerate(prefixes.labels)}
    known: dict[int, tuple[int, int]] = {}
    options = escaping = 0
    for marking, weight, following in zip(markings, weights, prefixes.following, strict=True):
        if marking is None or not weight:
            continue
        if marking not in known:
            labels = replay.enabled(marking)
            known[marking] = len(labels), sum(bit.get(label, 0) for label in labels)
            replay.clock.check()
        count, mask = known[marking]
        options += weight * count
        escaping += weight * (count - (mask & following).bit_count())
    return 1 - escaping / options if options else 1.0
