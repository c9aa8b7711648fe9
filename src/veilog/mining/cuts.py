"""Cuts: how the activities of a log fall into groups that belong together by one operator.

After S. Leemans, "Robust process mining with guarantees", 2017. Groups are bit masks over the nodes of a
:class:`~veilog.mining.graph.Graph`. Of the four kinds of cuts the first that there is counts: choice, sequence,
parallel, loop.
"""

from __future__ import annotations

from collections.abc import Sequence

from veilog.mining.graph import Graph, bits
from veilog.mining.tree import Operator


def find_cut(graph: Graph) -> tuple[Operator, list[int]] | None:
    """Return the first cut that there is, and its groups in their order."""
    for operator, find in _KINDS:
        groups = find(graph)
        if len(groups) > 1:
            return operator, groups
    return None


def _components(nodes: int, neighbours: Sequence[int]) -> list[int]:
    """Return the connected parts of some nodes, each named by its lowest node and in that order."""
    found = []
    while nodes:
        group = _from(nodes & -nodes, neighbours, nodes)
        found.append(group)
        nodes &= ~group
    return found


def choice_cut(graph: Graph) -> list[int]:
    """Return groups between which no edge goes."""
    either = [after | before for after, before in zip(graph.successors, graph.predecessors, strict=True)]
    return _components(graph.nodes, either)


def sequence_cut(graph: Graph) -> list[int]:
    """Return groups such that those later can be reached from those before, and never the other way.

    Groups that can only be skipped together with others are joined with them (the strict cut).
    """
    nodes = graph.nodes
    first = nodes & -nodes
    if _from(first, graph.successors, nodes) == nodes == _from(first, graph.predecessors, nodes):
        return [nodes]
    reach = _reach(graph.successors, nodes)
    back = _reach(graph.predecessors, nodes)
    together = [0] * len(reach)
    for node in bits(nodes):
        both, one = reach[node] & back[node], reach[node] | back[node]
        together[node] = both | (nodes & ~one)
    groups = _components(nodes, together)
    if len(groups) < 2:
        return groups

    def place(group: int) -> int:
        node = (group & -group).bit_length() - 1
        itself = 1 << node
        return (back[node] & ~itself).bit_count() - (reach[node] & ~itself).bit_count()

    return _strict(graph, sorted(groups, key=place))


def _from(start: int, successors: Sequence[int], within: int) -> int:
    """Return the mask of these nodes and of all that some way from them leads to, within some nodes."""
    found, front = 0, start
    while front:
        found |= front
        reached = 0
        for node in bits(front):
            reached |= successors[node]
        front = reached & within & ~found
    return found


def _reach(successors: Sequence[int], nodes: int) -> list[int]:
    """Return of each node the mask of those that some way from it leads to."""
    reach = list(successors)
    for by in bits(nodes):
        bit, further = 1 << by, reach[by]
        if further:
            reach = [mask | further if mask & bit else mask for mask in reach]
    return reach


def _strict(graph: Graph, groups: list[int]) -> list[int]:
    """Join groups that some trace skips with those around them that it skips as well."""
    count = len(groups)
    place = {node: i for i, group in enumerate(groups) for node in bits(group)}
    first = [-1 if group & graph.starts else count for group in groups]
    last = [count if group & graph.ends else -1 for group in groups]
    for node, at in place.items():
        for other in bits(graph.successors[node]):
            to = place[other]
            first[to] = min(first[to], at)
            last[at] = max(last[at], to)
    for at in range(count):
        if not _skipped(graph, groups, at):
            continue
        other = at - 1
        while other >= 0 and last[other] <= at:
            groups[at] |= groups[other]
            groups[other] = 0
            other -= 1
        other = at + 1
        while other < count and first[other] >= at:
            groups[at] |= groups[other]
            groups[other] = 0
            other += 1
    return [group for group in groups if group]


def _skipped(graph: Graph, groups: Sequence[int], at: int) -> bool:
    """Whether some trace goes from before a group to after it: by an edge, a late start or an early end."""
    before = after = 0
    for group in groups[:at]:
        before |= group
    for group in groups[at + 1 :]:
        after |= group
    if after & graph.starts or before & graph.ends:
        return True
    return any(graph.successors[node] & after for node in bits(before))


def parallel_cut(graph: Graph) -> list[int]:
    """Return groups between all of whose activities edges go both ways, each with a start and an end."""
    nodes = graph.nodes
    apart = [0] * len(graph.successors)
    for node in bits(nodes):
        apart[node] = nodes & ~(graph.successors[node] & graph.predecessors[node]) & ~(1 << node)
    groups = sorted(_components(nodes, apart), key=int.bit_count)
    at = 0
    while at < len(groups) > 1:
        if groups[at] & graph.starts and groups[at] & graph.ends:
            at += 1
        else:
            group = groups.pop(at)
            groups[max(at - 1, 0)] |= group
    return groups


def loop_cut(graph: Graph) -> list[int]:
    """Return what is done and what is done before it is done again; one group alone where there is no loop."""
    starts, ends = graph.starts, graph.ends
    do, redo = starts | ends, 0
    either = [after | before for after, before in zip(graph.successors, graph.predecessors, strict=True)]
    from_starts = into_ends = 0
    for node in bits(starts & ~ends):
        from_starts |= graph.successors[node]
    for node in bits(ends & ~starts):
        into_ends |= graph.predecessors[node]
    for group in _components(graph.nodes & ~do, either):
        if group & (from_starts | into_ends) or not _closed(graph, group):
            do |= group
        else:
            redo |= group
    return [do, redo] if redo else [do]


def _closed(graph: Graph, group: int) -> bool:
    """Whether who goes back to a start can go back to all, and who comes from an end may come from all."""
    for node in bits(group):
        back, come = graph.successors[node] & graph.starts, graph.predecessors[node] & graph.ends
        if back not in (0, graph.starts) or come not in (0, graph.ends):
            return False
    return True


_KINDS = (
    (Operator.CHOICE, choice_cut),
    (Operator.SEQUENCE, sequence_cut),
    (Operator.PARALLEL, parallel_cut),
    (Operator.LOOP, loop_cut),
)
