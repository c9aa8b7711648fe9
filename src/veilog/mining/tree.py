"""Process trees: block-structured models, as values.

>>> tree = sequence(activity("a"), choice(SILENT, activity("b")))
>>> print(tree)
->( 'a', X( tau, 'b' ) )
>>> tree.skippable
False

A tree is an activity, a silent step, or an operator over trees. The operators are *sequence*, *choice*, *parallel* (all
of them, interleaved in any way) and *loop*. A loop is the first, then any number of times the second and again the
first. :mod:`veilog.mining.language` decides which traces it allows.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

import numpy as np

from veilog.errors import ParameterError
from veilog.logs.variants import Variants


class Operator(Enum):
    """Operators that join the parts of a tree, by their usual signs."""

    SEQUENCE = "->"
    CHOICE = "X"
    PARALLEL = "+"
    LOOP = "*"


@dataclass(frozen=True)
class ProcessTree:
    """Process tree; one without an operator is an activity, or silent without a label."""

    operator: Operator | None = None
    children: tuple[ProcessTree, ...] = ()
    label: str | None = None

    def __post_init__(self) -> None:
        if self.operator is None and self.children:
            raise ParameterError("tree-leaf-with-children", parameter="children")
        if self.operator is not None and not self.children:
            raise ParameterError("tree-operator-without-children", parameter="children", value=self.operator.value)
        if self.operator is Operator.LOOP and len(self.children) != 2:
            raise ParameterError("tree-loop-children-not-two")

    def __str__(self) -> str:
        if self.operator is None:
            return "tau" if self.label is None else f"'{self.label}'"
        return f"{self.operator.value}( {', '.join(map(str, self.children))} )"

    @property
    def leaves(self) -> Iterator[ProcessTree]:
        """Activities and silent steps, from left to right."""
        if self.operator is None:
            yield self
        for child in self.children:
            yield from child.leaves

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of its activities, sorted, each once."""
        return tuple(sorted({leaf.label for leaf in self.leaves if leaf.label is not None}))

    @property
    def skippable(self) -> bool:
        """True if it allows the trace without events."""
        if self.operator is None:
            return self.label is None
        if self.operator is Operator.LOOP:
            return self.children[0].skippable
        return (any if self.operator is Operator.CHOICE else all)(child.skippable for child in self.children)


SILENT = ProcessTree()
"""Step that leaves no event."""


def activity(label: str) -> ProcessTree:
    """Return the tree of one activity."""
    return ProcessTree(label=label)


def sequence(*children: ProcessTree) -> ProcessTree:
    """Return the tree that does one after the other."""
    return ProcessTree(Operator.SEQUENCE, children)


def choice(*children: ProcessTree) -> ProcessTree:
    """Return the tree that does one of these."""
    return ProcessTree(Operator.CHOICE, children)


def parallel(*children: ProcessTree) -> ProcessTree:
    """Return the tree that does all of these, interleaved in any way."""
    return ProcessTree(Operator.PARALLEL, children)


def loop(do: ProcessTree, redo: ProcessTree) -> ProcessTree:
    """Return the tree that does ``do``, then any number of times ``redo`` and ``do``."""
    return ProcessTree(Operator.LOOP, (do, redo))


def reduce_tree(tree: ProcessTree) -> ProcessTree:
    """Return a tree of the same language without parts that mean nothing.

    An operator within the same operator becomes one (but loops), and silent parts of sequences and parallels vanish.
    One of several silent alternatives stays, and an operator with one part is that part.
    """
    operator = tree.operator
    if operator is None:
        return tree
    children = [reduce_tree(child) for child in tree.children]
    if operator is Operator.LOOP:
        return SILENT if children == [SILENT, SILENT] else ProcessTree(operator, tuple(children))
    parts: list[ProcessTree] = []
    for child in children:
        parts.extend(child.children if child.operator is operator else (child,))
    kept = [part for part in parts if part != SILENT]
    if operator is Operator.CHOICE and kept and len(kept) < len(parts):
        kept.insert(0, SILENT)
    if not kept:
        return SILENT
    return kept[0] if len(kept) == 1 else ProcessTree(operator, tuple(kept))


def order_tree(tree: ProcessTree) -> ProcessTree:
    """Return the tree with its parts in an order that depends on their labels alone.

    It concerns alternatives and parallel parts, and is that of pm4py, by sums of MD5 values. Token replay takes the
    first of several silent ways, so other orders would give other numbers than those that the field has.
    """
    children = tuple(order_tree(child) for child in tree.children)
    if tree.operator in (Operator.CHOICE, Operator.PARALLEL):
        children = tuple(sorted(children, key=_order))
    return ProcessTree(tree.operator, children, tree.label)


def _order(tree: ProcessTree) -> int:
    return sum(_digest(leaf.label) for leaf in tree.leaves if leaf.label is not None)


@functools.lru_cache(maxsize=4096)
def _digest(label: str) -> int:
    return int.from_bytes(hashlib.md5(label.encode("utf-8", "surrogatepass"), usedforsecurity=False).digest())


def play_out(tree: ProcessTree, cases: int, generator: np.random.Generator, *, again: float = 0.5) -> Variants:
    """Return cases drawn from a tree.

    Alternatives and interleavings are drawn uniformly; loops go on with chance ``again``.
    """
    if not 0.0 <= again < 1.0:
        raise ParameterError("tree-loop-chance-invalid", parameter="again", again=again)
    return Variants.from_sequences(_draw_trace(tree, generator, again) for _ in range(cases))


def _draw_trace(tree: ProcessTree, generator: np.random.Generator, again: float) -> list[str]:
    children = tree.children
    if tree.operator is None:
        return [] if tree.label is None else [tree.label]
    if tree.operator is Operator.CHOICE:
        return _draw_trace(children[generator.integers(len(children))], generator, again)
    if tree.operator is Operator.SEQUENCE:
        return [label for child in children for label in _draw_trace(child, generator, again)]
    if tree.operator is Operator.LOOP:
        trace = _draw_trace(children[0], generator, again)
        while generator.random() < again:
            trace += _draw_trace(children[1], generator, again) + _draw_trace(children[0], generator, again)
        return trace
    parts = [_draw_trace(child, generator, again) for child in children]
    turns = generator.permutation(np.repeat(np.arange(len(parts)), [len(part) for part in parts]))
    ahead = [iter(part) for part in parts]
    return [next(ahead[turn]) for turn in turns.tolist()]
