"""Reading PNML: place/transition nets as pm4py, ProM and others write them.

A transition is silent where its tool-specific part says ``$invisible$``, or where it has no name. Without a final
marking it is one token in the only place without a step that leads on, and without an initial one alike.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from xml.etree.ElementTree import Element

from veilog.errors import InputError
from veilog.measures.use_cases.conformance.elements import texts
from veilog.mining.replay import Net, Places, Transition

_REFUSED = {
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
    for name, what in _REFUSED.items():
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
    initial = _initial(net, numbers, path) or (_only(set(numbers.values()) - fed, "initial", path),)
    final = _final(net, numbers, path) or {(_only(set(numbers.values()) - left, "final", path),)}
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


def _only(places: set[int], which: str, path: Path) -> int:
    if len(places) != 1:
        raise InputError("pnml-marking-ambiguous", path=path, which=which, number=len(places))
    return min(places)
