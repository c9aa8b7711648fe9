"""Rules of the schema of XES 1.0, written independently of the writer.

Lists are not among them, because they came with 2.0.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import datetime
from xml.etree import ElementTree
from xml.parsers import expat

NAMESPACE = "{http://www.xes-standard.org/}"
LEVELS = {
    "log": ("extension", "global", "classifier", "attribute", "trace", "event"),
    "trace": ("attribute", "event"),
    **dict.fromkeys(("global", "event", "attribute"), ("attribute",)),
}
"""Children that each element may have, in this order."""


def is_name(text: str) -> bool:
    """Return True if this is a name in XML, by expat."""
    names: list[str] = []
    parser = expat.ParserCreate()
    parser.StartElementHandler = lambda name, attributes: names.append(name)
    try:
        parser.Parse(f"<{text}/>", True)
    except expat.ExpatError:
        return False
    return names == [text]


def is_simple_name(text: str) -> bool:
    return is_name(text) and ":" not in text


def matches(pattern: str) -> Callable[[str], bool]:
    return lambda text: re.fullmatch(pattern, text) is not None


def is_time(text: str) -> bool:
    return matches(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?")(text) and bool(
        datetime.fromisoformat(text)
    )


VALUES: dict[str, Callable[[str], bool]] = {
    "string": lambda text: True,
    "id": lambda text: True,
    "date": is_time,
    "int": lambda text: matches(r"[+-]?\d+")(text) and -(2**63) <= int(text) < 2**63,
    "float": matches(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?|-?INF|NaN"),
    "boolean": matches("true|false|0|1"),
}
TOKEN = matches(r"\S+( \S+)*|")
XML_ATTRIBUTES: dict[str, dict[str, tuple[bool, Callable[[str], bool]]]] = {
    "log": {"xes.version": (True, matches(r"[+-]?(\d+(\.\d*)?|\.\d+)")), "xes.features": (False, TOKEN)},
    "extension": {"name": (True, is_simple_name), "prefix": (True, is_simple_name), "uri": (True, matches(r"\S+"))},
    "global": {"scope": (False, is_simple_name)},
    "classifier": {"name": (True, is_simple_name), "scope": (False, is_simple_name), "keys": (True, TOKEN)},
    **{kind: {"key": (True, is_name), "value": (True, fits)} for kind, fits in VALUES.items()},
}


def problems(document: bytes) -> list[str]:
    """Return everything in a document that is not XES 1.0."""
    root = ElementTree.fromstring(document)
    return list(_problems(root)) if root.tag.removeprefix(NAMESPACE) == "log" else ["no log"]


def _problems(element: ElementTree.Element) -> Iterator[str]:
    name = element.tag.removeprefix(NAMESPACE)
    known = XML_ATTRIBUTES.get(name, {})
    yield from (f"{key} in {name}" for key in element.attrib if key not in known)
    for key, (required, fits) in known.items():
        text = element.get(key)
        if required and text is None:
            yield f"{name} without {key}"
        if text is not None and not fits(text):
            yield f"{key} of {name}: {text!r}"
    if (element.text or "").strip() or (element.tail or "").strip():
        yield f"text in {name}"
    order, reached = LEVELS.get("attribute" if name in VALUES else name, ()), 0
    for child in element:
        inner = child.tag.removeprefix(NAMESPACE)
        kind = "attribute" if inner in VALUES else inner
        if kind not in order:
            yield f"{inner} in {name}"
        elif order.index(kind) < reached:
            yield f"{inner} too late in {name}"
        reached = max(reached, order.index(kind) if kind in order else 0)
        yield from _problems(child)
