"""Models that cases are checked against: BPMN, PNML, PTML, or declare constraints.

Constraints are JSON, ``{"constraints": [{"template": "response", "activities": ["A", "B"]}, ...]}`` with ``"times"``
where a template counts. Or they are text, one a line as in files of other declare tools: ``Response[A, B]``,
``Existence2[A]``. Lines that declare activities and lines that begin with ``#`` are skipped; conditions on data are
refused.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from veilog._files import content_of
from veilog.errors import InputError
from veilog.mining.replay import Net, Places, Transition, workflow_net
from veilog.mining.tree import SILENT, ProcessTree, activity, choice, loop, parallel, reduce_tree, sequence
from veilog.rules.rule_files import Constraint, constraint_in, constraint_of

Model: TypeAlias = Net | tuple[Constraint, ...]


def read_model(path: Path) -> Model:
    """Return the model in a file; an :class:`InputError` names what cannot be used."""
    try:
        content = content_of(path)
    except OSError as error:
        raise InputError("model-not-readable", path=path, reason=error.strerror) from error
    start = content.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    if start == b"<" or content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        root = parse_model(path, content)
        if root.tag == "pnml":
            return read_pnml(root, path)
        if root.tag == "definitions":
            return read_bpmn(root, path)
        if root.tag == "ptml":
            return read_ptml(root, path)
        raise InputError("model-format-unknown", path=path, tag=root.tag)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError("model-not-utf8", path=path) from error
    constraints = _json(text, path) if start in (b"{", b"[") else _lines(text, path)
    if not constraints:
        raise InputError("constraints-file-empty", path=path)
    return tuple(dict.fromkeys(constraints))


def _json(text: str, path: Path) -> list[Constraint]:
    try:
        told = json.loads(text)
    except ValueError as error:
        raise InputError("constraints-not-json", path=path, reason=error) from error
    entries = told.get("constraints") if isinstance(told, dict) else told
    if not isinstance(entries, list):
        raise InputError("constraints-list-missing", path=path)
    found = []
    for number, entry in enumerate(entries, 1):
        if not isinstance(entry, dict) or entry.keys() - {"template", "activities", "times"}:
            raise InputError("constraint-form-wrong", path=path, number=number)
        template, activities, times = entry.get("template"), entry.get("activities"), entry.get("times", 1)
        names = [name for name in activities if isinstance(name, str)] if isinstance(activities, list) else []
        if not isinstance(template, str) or names != activities or not isinstance(times, int):
            raise InputError("constraint-parts-wrong", path=path, number=number)
        found.append(constraint_of(template, tuple(names), times, path, None))
    return found


def _lines(text: str, path: Path) -> list[Constraint]:
    numbered = ((number, line.strip()) for number, line in enumerate(text.splitlines(), 1))
    return [
        constraint_in(line, path, number)
        for number, line in numbered
        if line and not line.startswith(("#", "activity "))
    ]


# XML documents -------------------------------------------------------------------------------------------------------

# Names of elements have no namespaces. A document that declares a type of its own is refused.


def parse_model(path: Path, content: bytes) -> Element:
    """Return the root of a document; an :class:`InputError` names a broken line.

    Entities that a document declares can blow a few bytes up to gigabytes, and no model needs them.
    """
    builder = TreeBuilder()
    parser = expat.ParserCreate(namespace_separator="}")

    def refused(*_: object) -> None:
        raise InputError("xml-document-type-declared", path=path)

    parser.StartDoctypeDeclHandler = refused
    parser.StartElementHandler = lambda name, given: builder.start(
        _local(name), {_local(key): value for key, value in given.items()}
    )
    parser.EndElementHandler = lambda name: builder.end(_local(name))
    parser.CharacterDataHandler = builder.data
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        why = expat.errors.messages[error.code]
        raise InputError("xml-not-well-formed", path=path, line=error.lineno, why=why) from error
    return builder.close()


def _local(name: str) -> str:
    return name.rpartition("}")[2]


def texts(element: Element, *names: str) -> str | None:
    """Return the text of a descendant with these nested names, or None."""
    found = element.find("/".join(names))
    return None if found is None else (found.text or "").strip()


# BPMN 2.0 ------------------------------------------------------------------------------------------------------------

# The control flow of one process becomes a Petri net with a place for each sequence flow.
#
# Tasks of all kinds and call activities are activities by their names. Start, intermediate and end events are silent. A
# case is complete when no token is left. Exclusive, event-based and parallel gateways are supported. So are inclusive
# ones where a split and its join enclose branches that nothing else enters or leaves, or where a split has no join.
# Anything else is refused, by its name.


_TASKS = ("task", "userTask", "serviceTask", "scriptTask", "manualTask", "sendTask", "receiveTask", "businessRuleTask")
_ACTIVITIES = (*_TASKS, "callActivity")
_EVENTS = ("intermediateThrowEvent", "intermediateCatchEvent")
_EXCLUSIVE = ("exclusiveGateway", "eventBasedGateway")
_KNOWN = (*_ACTIVITIES, *_EVENTS, *_EXCLUSIVE, "parallelGateway", "inclusiveGateway", "startEvent", "endEvent")
_REFUSED = ("subProcess", "adHocSubProcess", "transaction", "complexGateway", "boundaryEvent")
_MOST_BRANCHES = 8
"""Largest number of branches of an inclusive gateway, which has a step for each set."""


@dataclass(eq=False)
class _Node:
    kind: str
    name: str
    """Name for people."""
    label: str | None
    incoming: list[int] = field(default_factory=list)
    outgoing: list[int] = field(default_factory=list)
    """Numbers of flows, which are places of the net."""


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
            raise InputError("bpmn-element-not-supported", path=path, named=_element_name(element), tag=element.tag)
        if element.tag in _KNOWN:
            found[element.get("id", "")] = _node(element, path)
    flows: list[_Flow] = []
    for element in process.findall("sequenceFlow"):
        ends = [found.get(element.get(end, "")) for end in ("sourceRef", "targetRef")]
        if ends[0] is None or ends[1] is None:
            raise InputError("bpmn-flow-without-nodes", path=path, named=_element_name(element))
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
            raise InputError("bpmn-task-without-name", path=path, named=_element_name(element))
        for child in element:
            if child.tag.endswith("LoopCharacteristics"):
                raise InputError(
                    "bpmn-repetition-not-supported", path=path, named=_element_name(element), tag=child.tag
                )
    if any(child.tag == "terminateEventDefinition" for child in element):
        raise InputError("bpmn-terminate-not-supported", path=path, named=_element_name(element))
    return _Node(element.tag, _element_name(element), label if element.tag in _ACTIVITIES else None)


def _element_name(element: Element) -> str:
    return repr(element.get("name") or element.get("id") or element.tag)


def _steps(
    node: _Node, nodes: list[_Node], flows: list[_Flow], memory: Iterator[int], path: Path
) -> Iterator[Transition]:
    """Yield the steps of a node."""
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
    """Yield the steps of an inclusive split and its join, one a set of branches.

    A place remembers the set.
    """
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
    if paired is None and any(_reachable_nodes(flow, None, flows) & set(joins) for flow in split.outgoing):
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
    """Return the flow by which each branch of a split reaches the join.

    None where the two do not enclose branches of their own.
    """
    if split.kind != "inclusiveGateway" or len(split.outgoing) < 2 or len(split.outgoing) != len(join.incoming):
        return None
    ends: dict[int, int] = {}
    for flow in split.outgoing:
        branch = _reachable_nodes(flow, join, flows)
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


def _reachable_nodes(flow: int, until: _Node | None, flows: list[_Flow]) -> set[_Node]:
    """Return the nodes that a flow leads to, up to one."""
    found: set[_Node] = set()
    waiting = [flows[flow].target]
    while waiting:
        node = waiting.pop()
        if node is not until and node not in found:
            found.add(node)
            waiting.extend(flows[other].target for other in node.outgoing)
    return found


# PNML ----------------------------------------------------------------------------------------------------------------

# Place/transition nets as pm4py, ProM and others write them.
#
# A transition is silent where its tool-specific part has ``$invisible$``, or where it has no name. Without a final
# marking it is one token in the only place without a step that leads on, and without an initial one likewise.


_PARTS_REFUSED = {
    "referencePlace": "places that stand for others",
    "referenceTransition": "transitions that stand for others",
    "hlinitialMarking": "tokens with values",
}


def read_pnml(root: Element, path: Path) -> Net:
    """Return the net of a PNML document."""
    nets = root.findall("net")
    if len(nets) != 1:
        raise InputError("pnml-nets-not-one", path=path, number=len(nets))
    (net,) = nets
    for name, what in _PARTS_REFUSED.items():
        if net.find(f".//{name}") is not None:
            raise InputError("pnml-net-not-supported", path=path, what=what, name=name)
    numbers = {_id(place, path): number for number, place in enumerate(_nodes(net, "place"))}
    steps = {_id(step, path): step for step in _nodes(net, "transition")}
    consumed: dict[str, list[int]] = {name: [] for name in steps}
    produced: dict[str, list[int]] = {name: [] for name in steps}
    for arc in net.iter("arc"):
        source, target, weight = arc.get("source", ""), arc.get("target", ""), _weight(arc, path)
        if source in numbers and target in steps:
            consumed[target] += [numbers[source]] * weight
        elif source in steps and target in numbers:
            produced[source] += [numbers[target]] * weight
        else:
            raise InputError("pnml-arc-end-missing", path=path, source=source, target=target)
    transitions = tuple(
        Transition(_label(step), tuple(sorted(consumed[name])), tuple(sorted(produced[name])))
        for name, step in steps.items()
    )
    fed = {place for ends in produced.values() for place in ends}
    left = {place for ends in consumed.values() for place in ends}
    initial = _initial(net, numbers, path) or (_single_place(set(numbers.values()) - fed, "initial", path),)
    final = _final(net, numbers, path) or {(_single_place(set(numbers.values()) - left, "final", path),)}
    return Net(transitions, initial, frozenset(final))


def _nodes(net: Element, kind: str) -> list[Element]:
    return [element for element in net.iter(kind) if "idref" not in element.attrib]


def _id(element: Element, path: Path) -> str:
    if not (name := element.get("id")):
        raise InputError("pnml-element-without-id", path=path, tag=element.tag)
    return name


def _label(step: Element) -> str | None:
    if any("$invisible$" in (part.get("activity") or "") for part in step.iter("toolspecific")):
        return None
    return texts(step, "name", "text") or texts(step, "name", "value") or None


def _weight(arc: Element, path: Path) -> int:
    told = arc.find("type")
    kind = texts(arc, "arctype", "text") if told is None else told.get("value")
    if kind not in (None, "", "normal"):
        raise InputError("pnml-arc-type-not-supported", path=path, kind=kind)
    return _number(texts(arc, "inscription", "text") or texts(arc, "inscription", "value") or "1", path)


def _number(text: str, path: Path) -> int:
    if not text.isdecimal() or int(text) > 1_000:
        raise InputError("pnml-tokens-not-number", path=path, text=text)
    return int(text)


def _initial(net: Element, numbers: dict[str, int], path: Path) -> Places:
    tokens: Counter[int] = Counter()
    for place in _nodes(net, "place"):
        text = texts(place, "initialMarking", "text") or texts(place, "initialMarking", "value")
        tokens[numbers[place.get("id", "")]] += _number(text, path) if text else 0
    return tuple(sorted(tokens.elements()))


def _final(net: Element, numbers: dict[str, int], path: Path) -> set[Places]:
    found = set()
    for marking in net.findall("finalmarkings/marking"):
        tokens: Counter[int] = Counter()
        for place in marking.findall("place"):
            if (name := place.get("idref", "")) not in numbers:
                raise InputError("pnml-marking-place-missing", path=path, name=name)
            tokens[numbers[name]] += _number(texts(place, "text") or "0", path)
        found.add(tuple(sorted(tokens.elements())))
    return found


def _single_place(places: set[int], which: str, path: Path) -> int:
    if len(places) != 1:
        raise InputError("pnml-marking-ambiguous", path=path, which=which, number=len(places))
    return min(places)


# PTML ----------------------------------------------------------------------------------------------------------------

# Process trees as pm4py and ProM write them.
#
# An inclusive choice is a choice of the part that happens for certain, in parallel with others that may. A loop with a
# third part does that once, when it ends.


_SILENT, _ACTIVITY = "automaticTask", "manualTask"
_KINDS = ("sequence", "xor", "and", "or", "xorLoop")
_DEEPEST = 200
"""Largest depth of trees within trees."""


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
        return _operator_tree(node.tag, parts)

    return workflow_net(reduce_tree(tree(trees[0].get("root", ""), 0)))


def _operator_tree(kind: str, parts: list[ProcessTree]) -> ProcessTree:
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
