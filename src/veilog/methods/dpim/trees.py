"""Process trees of directly-follows pairs alone, without a log.

The cuts are those of the inductive miner. What the miner reads off the log of a group is here read off the graph: a
group starts where something outside leads into it, and a part of a sequence may be left out where an edge passes over
it. After S. Leemans, D. Fahland, W. van der Aalst, "Scalable process discovery and conformance checking", 2018.
"""

from __future__ import annotations

from collections.abc import Sequence

from veilog._typing import BoolArray
from veilog.mining.inductive import Graph, bits, find_cut
from veilog.mining.tree import SILENT, Operator, ProcessTree, activity, choice, loop, ordered, parallel, reduced


def tree_of(labels: tuple[str, ...], edges: BoolArray) -> ProcessTree:
    """Return the process tree of a graph; the last row of ``edges`` is the start, the last column the end.

    Activities without an edge are not in the tree.
    """
    return TreeOfPairs(labels).of(Graph.of(edges[border_first(len(edges))]), empty=bool(edges[-1, -1]))


def flower(labels: Sequence[str]) -> ProcessTree:
    """Return the tree that allows every trace of these activities."""
    return loop(SILENT, ProcessTree(Operator.CHOICE, tuple(map(activity, labels)))) if labels else SILENT


def border_first(size: int) -> tuple[list[list[int]], list[int]]:
    """Return an index that brings the last row and column of a square matrix to the front."""
    order = [size - 1, *range(size - 1)]
    return [[at] for at in order], order


class TreeOfPairs:
    """Builds trees; ``labels`` are those of the nodes of a graph, the first being node 1."""

    def __init__(self, labels: tuple[str, ...]) -> None:
        self.labels = labels

    def of(self, graph: Graph, *, empty: bool = False) -> ProcessTree:
        """Return the tree of a whole graph; ``empty`` where it also is to allow the trace without events."""
        tree = self.tree(graph, graph.nodes) if graph.nodes else SILENT
        return ordered(reduced(choice(SILENT, tree) if empty else tree))

    def tree(self, graph: Graph, nodes: int) -> ProcessTree:
        """Return the tree of a graph of these nodes."""
        if nodes.bit_count() == 1:
            return self.alone(graph, nodes)
        cut = self.cut(graph)
        if cut is None:
            return self.fall_through(graph, nodes)
        operator, groups = cut
        return ProcessTree(operator, self.parts(graph, operator, groups))

    def parts(self, graph: Graph, operator: Operator, groups: list[int]) -> tuple[ProcessTree, ...]:
        """Return the trees of the groups of a cut."""
        found = []
        for at, group in enumerate(groups):
            part = self.tree(within(graph, group, *self.borders(graph, operator, groups, at)), group)
            found.append(choice(SILENT, part) if self.optional(graph, operator, groups, at) else part)
        return tuple(found)

    def alone(self, graph: Graph, node: int) -> ProcessTree:
        """Return the tree of one activity, a loop where it follows itself."""
        at = node.bit_length() - 1
        leaf = activity(self.labels[at - 1])
        return loop(leaf, SILENT) if graph.successors[at] & node else leaf

    def cut(self, graph: Graph) -> tuple[Operator, list[int]] | None:
        """Return the first cut that there is."""
        return find_cut(graph)

    def borders(self, graph: Graph, operator: Operator, groups: list[int], at: int) -> tuple[int, int]:
        """Return where a group starts and where it ends."""
        if operator is Operator.SEQUENCE:
            before, after = sum(groups[:at]), sum(groups[at + 1 :])
            return graph.starts | reached(graph, before), graph.ends | leading(graph, after)
        if operator is Operator.LOOP and at:
            return reached(graph, groups[0]), leading(graph, groups[0])
        return graph.starts, graph.ends

    def optional(self, graph: Graph, operator: Operator, groups: list[int], at: int) -> bool:
        """Whether a part may be left out.

        Of parallel parts the graph does not tell whether a case has all of them, so each may.
        """
        if operator is Operator.SEQUENCE:
            before, after = sum(groups[:at]), sum(groups[at + 1 :])
            return bool(graph.starts & after or graph.ends & before or reached(graph, before) & after)
        return operator is Operator.PARALLEL

    def fall_through(self, graph: Graph, nodes: int) -> ProcessTree:
        """Return a tree where there is no cut: beside an activity without which there is one, a loop, or a flower."""
        for node in bits(nodes):
            rest = nodes & ~(1 << node)
            others = within(graph, rest, graph.starts, graph.ends)
            if self.cut(others) is not None:
                own = self.alone(graph, 1 << node)
                return parallel(choice(SILENT, own), choice(SILENT, self.tree(others, rest)))
        for from_ in (graph.ends, nodes):
            opened = without(graph, from_, graph.starts)
            if opened.successors != graph.successors:
                return loop(self.tree(opened, nodes), SILENT)
        return self.flower(nodes)

    def flower(self, nodes: int) -> ProcessTree:
        """Return the tree that allows everything."""
        return flower([self.labels[node - 1] for node in bits(nodes)])


def reached(graph: Graph, nodes: int) -> int:
    """Return the nodes that an edge from one of these leads to."""
    return _joined(graph.successors, nodes)


def leading(graph: Graph, nodes: int) -> int:
    """Return the nodes from which an edge leads to one of these."""
    return _joined(graph.predecessors, nodes)


def _joined(neighbours: Sequence[int], nodes: int) -> int:
    found = 0
    for node in bits(nodes):
        found |= neighbours[node]
    return found


def within(graph: Graph, nodes: int, starts: int, ends: int) -> Graph:
    """Return the graph of some nodes; where none of them starts or ends, any may."""
    successors = [mask & nodes if nodes >> at & 1 else 0 for at, mask in enumerate(graph.successors)]
    predecessors = [mask & nodes if nodes >> at & 1 else 0 for at, mask in enumerate(graph.predecessors)]
    return _with_all(Graph(successors, predecessors, starts & nodes or nodes, ends & nodes or nodes), nodes)


def without(graph: Graph, from_: int, to: int) -> Graph:
    """Return the graph without edges from some nodes to others."""
    successors = [mask & ~to if from_ >> at & 1 else mask for at, mask in enumerate(graph.successors)]
    predecessors = [mask & ~from_ if to >> at & 1 else mask for at, mask in enumerate(graph.predecessors)]
    return _with_all(Graph(successors, predecessors, graph.starts, graph.ends), graph.nodes)


def _with_all(graph: Graph, nodes: int) -> Graph:
    """Return the graph with those of the nodes to which no edge is left: they are cases of their own."""
    alone = nodes & ~graph.nodes
    return Graph(graph.successors, graph.predecessors, graph.starts | alone, graph.ends | alone)
