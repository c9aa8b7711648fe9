"""Workflow nets of process trees.

A tree becomes a Petri net with one source and one sink, its activities labelled transitions and its structure silent
ones; silent transitions that only pass a token on are then merged with their neighbours. The net is that of pm4py, and
so are the names by which its places and silent transitions are sorted: token replay looks for silent ways in that
order, and measures count the transitions.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from veilog.mining.tree import SILENT, Operator, ProcessTree


@dataclass(frozen=True)
class Transition:
    """A transition with the places that it takes tokens from and gives tokens to; silent without a label."""

    name: str
    """To sort by."""
    label: str | None
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True)
class Net:
    """A workflow net: places are numbers from 0, one token in ``source`` begins a case, one in ``sink`` ends it."""

    places: int
    transitions: tuple[Transition, ...]
    source: int
    sink: int


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
    """Whether the source needs a silent transition of its own, so that nothing comes back to it."""
    first = tree
    while first.children:
        if first.operator is Operator.LOOP:
            return True
        first = first.children[0]
    return tree.operator in _FORKS or (bool(tree.children) and _loop_at_end(tree.children[0]))


def _ends_with_loop(tree: ProcessTree) -> bool:
    """Whether the sink needs one, so that nothing leaves it."""
    return tree.operator in _FORKS or _loop_at_end(tree)


def _loop_at_end(tree: ProcessTree) -> bool:
    while tree.children:
        if tree.operator is Operator.LOOP:
            return True
        tree = tree.children[-1]
    return False


@dataclass(eq=False)
class _Moving:
    """A transition while the net is built."""

    name: str
    label: str | None
    inputs: set[int] = field(default_factory=set)
    outputs: set[int] = field(default_factory=set)


class _Building:
    """A net that grows from a tree and then shrinks."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._transitions: list[_Moving] = []
        self._silent = 0

    def place(self, name: str = "") -> int:
        """Add a place; their names are only there to be sorted."""
        self._names.append(name or f"p_{len(self._names) + 1}")
        return len(self._names) - 1

    def silent(self, kind: str, begin: int | None = None, end: int | None = None) -> _Moving:
        """Add a silent transition, which is named by what it is for."""
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
        """Merge silent transitions with the only one before them, then those with the only one after."""
        while self._merge_one(forward=True) or self._merge_one(forward=False):
            pass

    def _merge_one(self, *, forward: bool) -> bool:
        """Merge a silent transition, whose one place is between it and one other alone, into that other."""
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
        """Return the net: places sorted by name, all else in the order in which it was made."""
        used = {source, sink}.union(*(t.inputs | t.outputs for t in self._transitions))
        order = sorted(used, key=self._names.__getitem__)
        number = {place: i for i, place in enumerate(order)}

        def numbers(places: set[int]) -> tuple[int, ...]:
            return tuple(number[place] for place in sorted(places))

        transitions = tuple(
            Transition(t.name, t.label, numbers(t.inputs), numbers(t.outputs)) for t in self._transitions
        )
        return Net(len(order), transitions, number[source], number[sink])
