"""Reading BPMN 2.0: the control flow of one process, as a Petri net with a place for each sequence flow.

Tasks of all kinds and call activities are activities by their names; start, intermediate and end events are silent; a
case is complete when no token is left. Exclusive, event-based and parallel gateways are what they are; inclusive ones
are supported where a split and its join enclose branches that nothing else enters or leaves, or where a split has no
join. What is not supported is refused, with its name.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree.ElementTree import Element

from veilog.errors import InputError
from veilog.mining.replay import Net, Places, Transition

_TASKS = ("task", "userTask", "serviceTask", "scriptTask", "manualTask", "sendTask", "receiveTask", "businessRuleTask")
_ACTIVITIES = (*_TASKS, "callActivity")
_EVENTS = ("intermediateThrowEvent", "intermediateCatchEvent")
_EXCLUSIVE = ("exclusiveGateway", "eventBasedGateway")
_KNOWN = (*_ACTIVITIES, *_EVENTS, *_EXCLUSIVE, "parallelGateway", "inclusiveGateway", "startEvent", "endEvent")
_REFUSED = ("subProcess", "adHocSubProcess", "transaction", "complexGateway", "boundaryEvent")
_MOST_BRANCHES = 8
"""Of an inclusive gateway: there is a step for each set of them."""


@dataclass(eq=False)
class _Node:
    kind: str
    name: str
    """As people know it."""
    label: str | None
    incoming: list[int] = field(default_factory=list)
    outgoing: list[int] = field(default_factory=list)
    """Flows by their numbers, which are places of the net."""


@dataclass(frozen=True, eq=False)
class _Flow:
    source: _Node
    target: _Node
    conditional: bool


def read_bpmn(root: Element, path: Path) -> Net:
    """Return the net of a BPMN document."""
    processes = [process for process in root.iter("process") if process.find("sequenceFlow") is not None]
    if len(processes) != 1:
        raise InputError("bpmn-processes-not-one", path=path, number=len(processes))
    nodes, flows = _graph(processes[0], path)
    starts = [node for node in nodes if node.kind == "startEvent"]
    source = len(flows)
    silent = [Transition(None, (source,), tuple(sorted(start.outgoing))) for start in starts]
    initial: Places = (source,)
    if not starts:
        begun = [node for node in nodes if not node.incoming]
        if not begun:
            raise InputError("bpmn-without-start", path=path)
        silent = [Transition(None, (source,), tuple(range(source + 1, source + 1 + len(begun))))]
        for place, node in enumerate(begun, source + 1):
            node.incoming.append(place)
    memory = itertools.count(source + 1 + len(nodes))
    transitions = [*silent]
    for node in nodes:
        transitions += _steps(node, nodes, flows, memory, path)
    return Net(tuple(transitions), initial, frozenset({()}))


def _graph(process: Element, path: Path) -> tuple[list[_Node], list[_Flow]]:
    found: dict[str, _Node] = {}
    for element in process:
        if element.tag in _REFUSED:
            raise InputError("bpmn-element-not-supported", path=path, named=_named(element), tag=element.tag)
        if element.tag in _KNOWN:
            found[element.get("id", "")] = _node(element, path)
    flows: list[_Flow] = []
    for element in process.findall("sequenceFlow"):
        ends = [found.get(element.get(end, "")) for end in ("sourceRef", "targetRef")]
        if ends[0] is None or ends[1] is None:
            raise InputError("bpmn-flow-without-nodes", path=path, named=_named(element))
        ends[0].outgoing.append(len(flows))
        ends[1].incoming.append(len(flows))
        flows.append(_Flow(ends[0], ends[1], element.find("conditionExpression") is not None))
    nodes = list(found.values())
    started = any(node.kind == "startEvent" for node in nodes)
    for node in nodes:
        if node.kind == "startEvent" and node.incoming:
            raise InputError("bpmn-start-with-inflow", path=path, name=node.name)
        if started and node.kind != "startEvent" and not node.incoming:
            raise InputError("bpmn-node-not-reached", path=path, name=node.name)
        if node.kind in _ACTIVITIES and any(flows[flow].conditional for flow in node.outgoing):
            raise InputError("bpmn-flows-conditional", path=path, name=node.name)
    return nodes, flows


def _node(element: Element, path: Path) -> _Node:
    label = " ".join((element.get("name") or "").split())
    if element.tag in _ACTIVITIES:
        if not label:
            raise InputError("bpmn-task-without-name", path=path, named=_named(element))
        for child in element:
            if child.tag.endswith("LoopCharacteristics"):
                raise InputError("bpmn-repetition-not-supported", path=path, named=_named(element), tag=child.tag)
    if any(child.tag == "terminateEventDefinition" for child in element):
        raise InputError("bpmn-terminate-not-supported", path=path, named=_named(element))
    return _Node(element.tag, _named(element), label if element.tag in _ACTIVITIES else None)


def _named(element: Element) -> str:
    return repr(element.get("name") or element.get("id") or element.tag)


def _steps(
    node: _Node, nodes: list[_Node], flows: list[_Flow], memory: Iterator[int], path: Path
) -> Iterator[Transition]:
    """Return what a node does with tokens."""
    outgoing = tuple(sorted(node.outgoing))
    if node.kind == "startEvent":
        return
    if node.kind == "parallelGateway":
        yield Transition(None, tuple(sorted(node.incoming)), outgoing)
    elif node.kind in _EXCLUSIVE or (node.kind == "inclusiveGateway" and len(node.outgoing) < 2 > len(node.incoming)):
        for place in node.incoming:
            for on in outgoing or (None,):
                yield Transition(None, (place,), () if on is None else (on,))
    elif node.kind == "inclusiveGateway":
        if len(node.incoming) > 1 and len(node.outgoing) > 1:
            raise InputError("bpmn-gateway-joins-and-splits", path=path, name=node.name)
        if len(node.outgoing) > 1:
            yield from _inclusive(node, nodes, flows, memory, path)
        elif not any(_pairs(split, node, flows) for split in nodes):
            raise InputError("bpmn-inclusive-branches-unsplit", path=path, name=node.name)
    else:
        for place in node.incoming:
            yield Transition(node.label, (place,), outgoing)


def _inclusive(
    split: _Node, nodes: list[_Node], flows: list[_Flow], memory: Iterator[int], path: Path
) -> Iterator[Transition]:
    """Return the steps of an inclusive split and of its join, one for each set of branches; a place remembers which."""
    if len(split.outgoing) > _MOST_BRANCHES:
        raise InputError(
            "bpmn-branches-too-many",
            path=path,
            name=split.name,
            number=len(split.outgoing),
            most_branches=_MOST_BRANCHES,
        )
    joins = [node for node in nodes if node.kind == "inclusiveGateway" and len(node.incoming) > 1]
    paired = next(((join, ends) for join in joins if (ends := _pairs(split, join, flows))), None)
    if paired is None and any(_reached(flow, None, flows) & set(joins) for flow in split.outgoing):
        raise InputError("bpmn-inclusive-branches-unjoined", path=path, name=split.name)
    (before,) = split.incoming
    for size in range(1, len(split.outgoing) + 1):
        for chosen in itertools.combinations(sorted(split.outgoing), size):
            if paired is None:
                yield Transition(None, (before,), chosen)
                continue
            join, ends = paired
            place = next(memory)
            yield Transition(None, (before,), (*chosen, place))
            arrived = sorted(ends[flow] for flow in chosen)
            yield Transition(None, (*arrived, place), tuple(sorted(join.outgoing)))


def _pairs(split: _Node, join: _Node, flows: list[_Flow]) -> dict[int, int] | None:
    """Return for each flow out of a split the one by which its branch reaches the join; None where the two do not
    enclose branches of their own."""
    if split.kind != "inclusiveGateway" or len(split.outgoing) < 2 or len(split.outgoing) != len(join.incoming):
        return None
    ends: dict[int, int] = {}
    for flow in split.outgoing:
        branch = _reached(flow, join, flows)
        inside = {flow} | {other for node in branch for other in node.outgoing}
        if split in branch or any(not node.outgoing for node in branch):
            return None
        if any(other not in inside for node in branch for other in node.incoming):
            return None
        arriving = [other for other in join.incoming if other in inside]
        if len(arriving) != 1:
            return None
        ends[flow] = arriving[0]
    return ends if len(set(ends.values())) == len(ends) else None


def _reached(flow: int, until: _Node | None, flows: list[_Flow]) -> set[_Node]:
    """Return the nodes that a flow leads to, up to one."""
    found: set[_Node] = set()
    waiting = [flows[flow].target]
    while waiting:
        node = waiting.pop()
        if node is not until and node not in found:
            found.add(node)
            waiting.extend(flows[other].target for other in node.outgoing)
    return found
