"""Reading PTML: process trees as pm4py and ProM write them.

An inclusive choice is a choice of which part happens for certain, in parallel with others that may. A loop with a third
part does that once, when it ends.
"""

from __future__ import annotations

from pathlib import Path
from xml.etree.ElementTree import Element

from veilog.errors import InputError
from veilog.mining.replay import Net, workflow_net
from veilog.mining.tree import SILENT, ProcessTree, activity, choice, loop, parallel, reduced, sequence

_SILENT, _ACTIVITY = "automaticTask", "manualTask"
_KINDS = ("sequence", "xor", "and", "or", "xorLoop")
_DEEPEST = 200
"""Trees within trees that are read."""


def read_ptml(root: Element, path: Path) -> Net:
    """Return the net of the process tree of a PTML document."""
    trees = root.findall("processTree")
    if len(trees) != 1:
        raise InputError("ptml-trees-not-one", path=path, number=len(trees))
    nodes = {node.get("id", ""): node for node in trees[0] if node.tag != "parentsNode"}
    children: dict[str, list[str]] = {name: [] for name in nodes}
    for edge in trees[0].iter("parentsNode"):
        source, target = edge.get("sourceId", ""), edge.get("targetId", "")
        if source not in nodes or target not in nodes:
            raise InputError("ptml-node-missing", path=path, name=target if source in nodes else source)
        children[source].append(target)

    def tree(name: str, depth: int) -> ProcessTree:
        if name not in nodes:
            raise InputError("ptml-node-missing", path=path, name=name)
        node = nodes[name]
        if depth > _DEEPEST:
            raise InputError("ptml-tree-too-deep", path=path, most=_DEEPEST)
        if node.tag == _SILENT:
            return SILENT
        if node.tag == _ACTIVITY:
            return activity(node.get("name", ""))
        parts = [tree(child, depth + 1) for child in children[name]]
        wrong = node.tag not in _KINDS or not parts or (node.tag == "xorLoop" and len(parts) not in (2, 3))
        if wrong:
            raise InputError("ptml-node-not-supported", path=path, name=node.tag, number=len(parts))
        return _of(node.tag, parts)

    return workflow_net(reduced(tree(trees[0].get("root", ""), 0)))


def _of(kind: str, parts: list[ProcessTree]) -> ProcessTree:
    """Return the tree of an operator over these parts."""
    if kind == "xorLoop":
        return sequence(loop(*parts[:2]), *parts[2:])
    if kind == "or":
        return choice(
            *(
                parallel(part, *(choice(SILENT, other) for j, other in enumerate(parts) if j != i))
                for i, part in enumerate(parts)
            )
        )
    return {"sequence": sequence, "xor": choice, "and": parallel}[kind](*parts)
