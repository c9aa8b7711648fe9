"""Language of a process tree by derivatives: enabled activities and possible ends.

A state of a tree is the state of its parts. It is a set of possibilities, because a loop can be in several places after
one prefix. The derivative of a state by an activity is the state after it. Every node of the tree keeps the states that
were met and their derivatives, so the prefixes of a log share them. The parts of a parallel tree share theirs whatever
the other parts do.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from veilog.mining.inductive import bits
from veilog.mining.replay import Prefixes
from veilog.mining.tree import Operator, ProcessTree

NEVER = -1
"""Placeholder for no state: the tree does not allow the prefix."""
UNKNOWN = -2
"""Placeholder for a state that was not computed yet."""


class Language:
    """Traces that a tree allows; activities are codes into ``labels``."""

    def __init__(self, tree: ProcessTree, labels: Sequence[str] = ()) -> None:
        self.labels = (*labels, *(label for label in tree.labels if label not in set(labels)))
        """Labels of the codes: the given ones, then further ones of the tree."""
        self._root = _node(tree, {label: code for code, label in enumerate(self.labels)})
        self.steps: list[list[int]] = []
        """State after each activity, by state, as far as known: for loops that cannot wait for a call."""
        self._enabled: list[int] = []
        self._ends: list[bool] = []
        self._grow()

    start = 0
    """State before anything has happened."""

    def after(self, state: int, code: int) -> int:
        """Return the state after an activity, ``NEVER`` if the tree does not enable it."""
        known = self.steps[state][code]
        if known == UNKNOWN:
            known = self.steps[state][code] = self._root.after(state, code)
            self._grow()
        return known

    def enabled(self, state: int) -> int:
        """Return the mask of the activities that can come next."""
        return self._enabled[state]

    def may_end(self, state: int) -> bool:
        """Return True if a trace may end here."""
        return self._ends[state]

    def accepts(self, trace: Iterable[str]) -> bool:
        """Return True if the tree allows a trace."""
        codes = {label: code for code, label in enumerate(self.labels)}
        state = self.start
        for label in trace:
            state = self.after(state, codes[label]) if label in codes else NEVER
            if state == NEVER:
                return False
        return self.may_end(state)

    def _grow(self) -> None:
        for state in range(len(self.steps), self._root.count):
            enabled = self._root.enabled(state)
            row = [NEVER] * len(self.labels)
            for code in bits(enabled):
                row[code] = UNKNOWN
            self.steps.append(row)
            self._enabled.append(enabled)
            self._ends.append(self._root.ends(state))


Item = Any
"""One possibility: the active part and its state; for a parallel tree the states of all parts."""


class _Node(ABC):
    """Node of a tree; its states are numbered as they are met, 0 is the first."""

    first: Item

    def __init__(self, parts: Sequence[_Node], codes: int) -> None:
        self.parts = parts
        self.codes = codes
        """Mask of the activities below."""
        self._states: list[frozenset[Item]] = []
        self._numbers: dict[frozenset[Item], int] = {}
        self._after: dict[tuple[int, int], int] = {}
        self._ends: dict[int, bool] = {}
        self._enabled: dict[int, int] = {}
        self._number(frozenset([self.first]))

    @property
    def count(self) -> int:
        """Number of states met so far."""
        return len(self._states)

    def after(self, state: int, code: int) -> int:
        """Return the derivative of a state."""
        known = self._after.get((state, code))
        if known is None:
            items = frozenset(new for item in self._states[state] for new in self.items_after(item, code))
            known = self._after[state, code] = self._number(items) if items else NEVER
        return known

    def ends(self, state: int) -> bool:
        """Return True if the node may be done."""
        known = self._ends.get(state)
        if known is None:
            known = self._ends[state] = any(map(self.item_ends, self._states[state]))
        return known

    def enabled(self, state: int) -> int:
        """Return the mask of the activities that can come next."""
        known = self._enabled.get(state)
        if known is None:
            known = 0
            for item in self._states[state]:
                for part, own in self.at(item):
                    known |= self.parts[part].enabled(own)
            self._enabled[state] = known
        return known

    def _number(self, items: frozenset[Item]) -> int:
        number = self._numbers.get(items)
        if number is None:
            number = self._numbers[items] = len(self._states)
            self._states.append(items)
        return number

    @abstractmethod
    def at(self, item: Item) -> Iterator[tuple[int, int]]:
        """Yield the parts that may go on, with the state that each is in."""

    def items_after(self, item: Item, code: int) -> Iterator[Item]:
        """Yield the possibilities after an activity."""
        for part, own in self.at(item):
            node = self.parts[part]
            if node.codes >> code & 1 and (new := node.after(own, code)) != NEVER:
                yield part, new

    @abstractmethod
    def item_ends(self, item: Item) -> bool:
        """Return True if a possibility may be done."""


class _Leaf(_Node):
    first = False

    def at(self, item: Item) -> Iterator[tuple[int, int]]:
        yield from ()

    def items_after(self, item: Item, code: int) -> Iterator[Item]:
        if not item:
            yield True

    def item_ends(self, item: Item) -> bool:
        return bool(item) or not self.codes

    def enabled(self, state: int) -> int:
        return 0 if True in self._states[state] else self.codes


class _Sequence(_Node):
    first = (0, 0)

    def at(self, item: Item) -> Iterator[tuple[int, int]]:
        part, own = item
        while True:
            yield part, own
            if not self.parts[part].ends(own) or part + 1 == len(self.parts):
                return
            part, own = part + 1, 0

    def item_ends(self, item: Item) -> bool:
        part, own = item
        return self.parts[part].ends(own) and all(later.ends(0) for later in self.parts[part + 1 :])


class _Choice(_Node):
    first = (-1, 0)

    def at(self, item: Item) -> Iterator[tuple[int, int]]:
        if item != self.first:
            yield item
        else:
            yield from ((part, 0) for part in range(len(self.parts)))

    def item_ends(self, item: Item) -> bool:
        return any(self.parts[part].ends(own) for part, own in self.at(item))


class _Loop(_Node):
    first = (0, 0)

    def at(self, item: Item) -> Iterator[tuple[int, int]]:
        seen = set()
        while item not in seen:
            yield item
            seen.add(item)
            part, own = item
            if self.parts[part].ends(own):
                item = (1 - part, 0)

    def item_ends(self, item: Item) -> bool:
        return any(part == 0 and self.parts[0].ends(own) for part, own in self.at(item))


class _Parallel(_Node):
    def __init__(self, parts: Sequence[_Node], codes: int) -> None:
        self.first = (0,) * len(parts)
        super().__init__(parts, codes)

    def at(self, item: Item) -> Iterator[tuple[int, int]]:
        yield from enumerate(item)

    def items_after(self, item: Item, code: int) -> Iterator[Item]:
        for part, new in super().items_after(item, code):
            yield (*item[:part], new, *item[part + 1 :])

    def item_ends(self, item: Item) -> bool:
        return all(self.parts[part].ends(own) for part, own in enumerate(item))


_KINDS: dict[Operator, type[_Node]] = {
    Operator.SEQUENCE: _Sequence,
    Operator.CHOICE: _Choice,
    Operator.PARALLEL: _Parallel,
    Operator.LOOP: _Loop,
}


def _node(tree: ProcessTree, codes: dict[str, int]) -> _Node:
    if tree.operator is None:
        return _Leaf((), 0 if tree.label is None else 1 << codes[tree.label])
    parts = [_node(child, codes) for child in tree.children]
    mask = 0
    for part in parts:
        mask |= part.codes
    return _KINDS[tree.operator](parts, mask)


_COST = 0.4
"""Cost of a skipped event: about that of its tokens in token replay."""


@dataclass(frozen=True)
class TreeQuality:
    """Fitness and precision of a tree on a log.

    *Precision* is 1 - escaping / enabled over the prefixes of cases that go on and that the tree allows. An activity
    that the tree enables after a prefix escapes when no case goes on with it. *Fitness* is 1 - 0.4 (events skipped +
    ends missing) / (events + cases). An event that the tree does not enable is skipped, and an end is missing where the
    tree may not end. The factor brings it near to the fitness of token replay.
    """

    fitness: float
    precision: float

    @property
    def f_score(self) -> float:
        """Harmonic mean of fitness and precision."""
        return f_score(self.fitness, self.precision)


def f_score(fitness: float, precision: float) -> float:
    """Return the harmonic mean of both; 0 where both are."""
    both = fitness + precision
    return 2 * fitness * precision / both if both else 0.0


def judge(tree: ProcessTree, prefixes: Prefixes) -> TreeQuality:
    """Judge a tree by the prefixes of a log."""
    language = Language(tree, prefixes.labels)
    steps, after, enabled, may_end = language.steps, language.after, language.enabled, language.may_end
    states, allowed = [Language.start] * len(prefixes), [True] * len(prefixes)
    wrong = options = escaping = 0
    columns = (prefixes.parents, prefixes.codes, prefixes.passing, prefixes.ending, prefixes.following)
    for node, (parent, code, passing, ending, following) in enumerate(zip(*columns, strict=True)):
        state, ok = states[parent], allowed[parent]
        if node:
            new = steps[state][code]
            if new == UNKNOWN:
                new = after(state, code)
            if new == NEVER:
                wrong += passing
                ok = False
            else:
                state = new
            states[node], allowed[node] = state, ok
        if ending and not may_end(state):
            wrong += ending
        if ok and passing > ending:
            mask = enabled(state)
            options += (passing - ending) * mask.bit_count()
            escaping += (passing - ending) * (mask & ~following).bit_count()
    total = prefixes.events + prefixes.cases
    fitness = 1 - _COST * wrong / total if total else 1.0
    return TreeQuality(fitness, 1 - escaping / options if options else 1.0)
