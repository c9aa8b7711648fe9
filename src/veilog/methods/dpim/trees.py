"""Process trees of directly-follows pairs alone, without a log.

The cuts are those of the inductive miner. What the miner reads off the log of a group is here read off the graph: a
group starts where something outside leads into it, and a part of a sequence may be left out where an edge passes over
it. After S. Leemans, D. Fahland, W. van der Aalst, "Scalable process discovery and conformance checking", 2018.
"""

from __future__ import annotations

from veilog._typing import BoolArray
from veilog.mining.cuts import find_cut
from veilog.mining.graph import Graph, bits
from veilog.mining.tree import SILENT, Operator, ProcessTree, activity, choice, loop, ordered, parallel, reduced

__all__ = ["flower", "tree_of"]


def tree_of(labels: tuple[str, ...], edges: BoolArray) -> ProcessTree:
    """Return the process tree of a graph; the last row of ``edges`` is the start, the last column the end.

    Activities without an edge are not in the tree.
    """
    graph = Graph.of(_border_first(edges))
    if not graph.nodes:
        return SILENT
    tree = _Builder(labels).tree(graph, graph.nodes)
    if edges[-1, -1]:
        tree = choice(SILENT, tree)
    return ordered(reduced(tree))


def flower(labels: tuple[str, ...]) -> ProcessTree:
    """Return the tree that allows every trace of these activities."""
    return loop(SILENT, ProcessTree(Operator.CHOICE, tuple(map(activity, labels)))) if labels else SILENT


def _border_first(edges: BoolArray) -> BoolArray:
    order = [len(edges) - 1, *range(len(edges) - 1)]
    found: BoolArray = edges[order][:, order]
    return found


class _Builder:
    """The labels of the nodes of a graph: node 1 is the first."""

    def __init__(self, labels: tuple[str, ...]) -> None:
        self._labels = labels

    def tree(self, graph: Graph, nodes: int) -> ProcessTree:
        """Return the tree of a graph of these nodes."""
        if nodes.bit_count() == 1:
            return self._alone(graph, nodes)
        cut = find_cut(graph)
        if cut is None:
            return self._fall_through(graph, nodes)
        operator, groups = cut
        if operator is Operator.SEQUENCE:
            return ProcessTree(operator, tuple(self._in_sequence(graph, groups, at) for at in range(len(groups))))
        if operator is Operator.LOOP:
            return self._loop(graph, *groups)
        parts = [self.tree(_part(graph, group, graph.starts, graph.ends), group) for group in groups]
        if operator is Operator.PARALLEL:  # the graph does not tell whether a case has all of them
            parts = [choice(SILENT, part) for part in parts]
        return ProcessTree(operator, tuple(parts))

    def _alone(self, graph: Graph, nodes: int) -> ProcessTree:
        node = nodes.bit_length() - 1
        leaf = activity(self._labels[node - 1])
        return loop(leaf, SILENT) if graph.successors[node] & nodes else leaf

    def _in_sequence(self, graph: Graph, groups: list[int], at: int) -> ProcessTree:
        group, before, after = groups[at], 0, 0
        for other in groups[:at]:
            before |= other
        for other in groups[at + 1 :]:
            after |= other
        passes = graph.starts & after or graph.ends & before or _reached(graph, before) & after
        part = _part(graph, group, graph.starts | _reached(graph, before), graph.ends | _leading(graph, after))
        tree = self.tree(part, group)
        return choice(SILENT, tree) if passes else tree

    def _loop(self, graph: Graph, do: int, redo: int) -> ProcessTree:
        again = _part(graph, redo, _reached(graph, do), _leading(graph, do))
        return loop(self.tree(_part(graph, do, graph.starts, graph.ends), do), self.tree(again, redo))

    def _fall_through(self, graph: Graph, nodes: int) -> ProcessTree:
        for node in bits(nodes):
            rest = _part(graph, nodes & ~(1 << node), graph.starts, graph.ends)
            if find_cut(rest) is not None:
                own = self._alone(graph, 1 << node)
                return parallel(choice(SILENT, own), choice(SILENT, self.tree(rest, nodes & ~(1 << node))))
        for from_ in (graph.ends, nodes):
            opened = _without(graph, from_, graph.starts)
            if opened.successors != graph.successors:
                return loop(self.tree(opened, nodes), SILENT)
        return flower(tuple(self._labels[node - 1] for node in bits(nodes)))


def _reached(graph: Graph, nodes: int) -> int:
    """Return the nodes that an edge from one of these leads to."""
    found = 0
    for node in bits(nodes):
        found |= graph.successors[node]
    return found


def _leading(graph: Graph, nodes: int) -> int:
    """Return the nodes from which an edge leads to one of these."""
    found = 0
    for node in bits(nodes):
        found |= graph.predecessors[node]
    return found


def _part(graph: Graph, nodes: int, starts: int, ends: int) -> Graph:
    """Return the graph within some nodes; where none of them starts or ends, any may."""
    successors = [mask & nodes if nodes >> at & 1 else 0 for at, mask in enumerate(graph.successors)]
    predecessors = [mask & nodes if nodes >> at & 1 else 0 for at, mask in enumerate(graph.predecessors)]
    return Graph(successors, predecessors, starts & nodes or nodes, ends & nodes or nodes)


def _without(graph: Graph, from_: int, to: int) -> Graph:
    """Return the graph without edges from some nodes to others."""
    successors = [mask & ~to if from_ >> at & 1 else mask for at, mask in enumerate(graph.successors)]
    predecessors = [mask & ~from_ if to >> at & 1 else mask for at, mask in enumerate(graph.predecessors)]
    return Graph(successors, predecessors, graph.starts, graph.ends)
