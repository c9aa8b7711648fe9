"""The text of XES: one tag with what follows it, its attributes, trees of nested attributes and their JSON, what a log
says about itself."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import isfinite
from typing import Any

from veilog.logs.metadata import Attribute, Metadata
from veilog.logs.xes.values import ROOT_TIME, format_date, format_float, parse_scalar, unescape

__all__ = [
    "NESTING",
    "SCALARS",
    "Element",
    "Note",
    "TextPiece",
    "Unusual",
    "from_json",
    "parse_piece",
    "read_attribute",
    "read_metadata",
    "read_tree",
]

SCALARS = ("string", "date", "int", "float", "boolean", "id")
NESTING = ("list", "container")


class Unusual(Exception):
    """A legal construct that the fast reader leaves to the plain one. Never leaves the XES modules."""


@dataclass(frozen=True, slots=True)
class Note:
    """Something noticed while reading, before any policy is applied."""

    rule: str
    example: str
    line: int
    count: int = 1


@dataclass(frozen=True, slots=True)
class TextPiece:
    """A tag and the text up to the next one. Values are still escaped, as in the file."""

    name: str
    delta: int
    """What the tag does to the depth: 1 for a start tag, 0 for an empty element, -1 for an end tag."""
    attributes: dict[str, bytes]
    stray: bytes
    """Text that follows, without white space around it: XES has none."""


_PIECE = re.compile(
    rb"""<(/?)([^\s/>="']+)((?:\s+[^\s=<>"'/]+\s*=\s*(?:"[^"]*"|'[^']*'))*)\s*(/?)>([^<]*)\Z""",
)
_ATTRIBUTE = re.compile(rb"""([^\s=<>"'/]+)\s*=\s*(?:"([^"]*)"|'([^']*)')""")


def parse_piece(raw: bytes) -> TextPiece:
    """Take a tag apart; what is no ordinary tag is :class:`Unusual`."""
    match = _PIECE.match(raw)
    if match is None:
        raise Unusual
    closing, name, attributes, empty, text = match.groups()
    found = {key.decode("utf-8"): a or b for key, a, b in _ATTRIBUTE.findall(attributes)} if attributes else {}
    delta = -1 if closing else 0 if empty else 1
    return TextPiece(name.decode("utf-8"), delta, found, text.strip())


def stray_note(piece: TextPiece, line: int, count: int = 1) -> Note:
    return Note("stray-text", repr(piece.stray.decode("utf-8")[:80]), line, count)


def is_foreign(name: str) -> bool:
    """Whether an XML attribute belongs to XML itself (namespaces, schema hints) and not to XES."""
    return name == "xmlns" or name.startswith(("xmlns:", "xsi:", "xml:"))


@dataclass(slots=True)
class Element:
    """An XML element as read, with unescaped attributes."""

    name: str
    attributes: dict[str, str]
    line: int
    children: list[Element] = field(default_factory=list)

    def moved(self, lines: int) -> Element:
        """The same element, that many lines further down in the file."""
        return Element(self.name, self.attributes, self.line + lines, [c.moved(lines) for c in self.children])


def read_tree(pieces: Sequence[bytes], lines: Sequence[int], parse: Callable[[bytes], TextPiece]) -> Element:
    """The element that starts with the first piece and ends with the last."""
    top = Element("", {}, 0)
    stack = [top]
    for raw, line in zip(pieces, lines, strict=True):
        piece = parse(raw)
        if piece.delta < 0:
            stack.pop()
            continue
        values = {k: unescape(v) for k, v in piece.attributes.items()}
        element = Element(piece.name, values, line)
        stack[-1].children.append(element)
        if piece.delta:
            stack.append(element)
    return top.children[0]


def read_attribute(element: Element, notes: list[Note], *, drop_bad: bool) -> Attribute | None:
    """An element as an XES attribute with its children, or ``None`` (and a note) if it is none.

    A value that does not fit its type stays text.
    """
    name = element.name
    if name not in SCALARS and name not in NESTING:
        notes.append(Note("unknown-element", f"<{name}>", element.line))
        return None
    key, text = element.attributes.get("key"), element.attributes.get("value")
    if key is None:
        notes.append(Note("incomplete-attribute", f"<{name}> without a key", element.line))
        return None
    extra = [a for a in element.attributes if a not in ("key", "value") and not is_foreign(a)]
    if extra or (name in NESTING and text):
        notes.append(Note("unknown-attribute", f"{(extra or ['value'])[0]} in <{name}>", element.line))
    value: Any = None
    if name in SCALARS:
        if text is None and not element.children:
            notes.append(Note("incomplete-attribute", f"{name} {key!r} without a value", element.line))
            return None
        if text is not None:
            value, bad = parse_scalar(name, text)
            if bad:
                notes.append(Note("bad-value", f"{name} {key!r} = {text!r}", element.line))
                if drop_bad:
                    return None
            elif name == "date":
                value = ROOT_TIME + timedelta(microseconds=value)
    children = read_children(element, notes, drop_bad=drop_bad)
    return Attribute(key, value, name, children)


def read_children(element: Element, notes: list[Note], *, drop_bad: bool) -> tuple[Attribute, ...]:
    """The children of an attribute. The values of a list are its children; if it has attributes beside its values,
    the values are wrapped in a child of type ``values``."""
    nesting = element.name == "list"
    own = [c for c in element.children if not (nesting and c.name == "values")]
    values = [c for c in element.children if nesting and c.name == "values"]
    direct = tuple(a for c in own if (a := read_attribute(c, notes, drop_bad=drop_bad)))
    if not values:
        return direct
    inner = tuple(a for v in values for c in v.children if (a := read_attribute(c, notes, drop_bad=drop_bad)))
    return (*direct, Attribute("", None, "values", inner)) if direct else inner


def read_metadata(root: Element, elements: Iterable[Element], *, drop_bad: bool) -> tuple[Metadata, list[Note]]:
    """Return what a log says about itself, in the elements before its traces, and what was noticed there."""
    notes: list[Note] = []
    extensions, classifiers, attributes = [], [], []
    scopes: list[tuple[str, tuple[Attribute, ...]]] = []
    for element in elements:
        given = element.attributes
        known: tuple[str, ...] = ()
        if element.name == "extension":
            known = ("name", "prefix", "uri")
            extensions.append((given.get("name", ""), given.get("prefix", ""), given.get("uri", "")))
        elif element.name == "classifier":
            known = ("name", "keys", "scope")
            classifiers.append((given.get("name", ""), given.get("keys", ""), given.get("scope", "event")))
        elif element.name == "global":
            known = ("scope",)
            children = (read_attribute(child, notes, drop_bad=drop_bad) for child in element.children)
            scopes.append((given.get("scope", "event"), tuple(a for a in children if a is not None)))
        else:
            attribute = read_attribute(element, notes, drop_bad=drop_bad)
            if attribute is not None:
                attributes.append(attribute)
            continue
        extra = [a for a in given if a not in known and not is_foreign(a)]
        if extra:
            notes.append(Note("unknown-attribute", f"{extra[0]} in <{element.name}>", element.line))
        if element.name != "global":
            notes.extend(Note("unknown-element", f"<{c.name}>", c.line) for c in element.children)
    about = Metadata(
        root.attributes.get("xes.features"),
        root.attributes.get("xes.version"),
        tuple(extensions),
        tuple(scopes),
        tuple(classifiers),
        tuple(attributes),
    )
    return about, notes


def to_json(attribute: Attribute) -> dict[str, Any]:
    """An attribute for the column ``xes:nested``: a format of its own, in which what is not there takes no room."""
    result: dict[str, Any] = {"key": attribute.key, "type": attribute.type}
    if attribute.value is not None:
        value = attribute.value
        if isinstance(value, datetime):
            value = format_date(value)
        elif isinstance(value, float) and not isfinite(value):
            value = format_float(value)
        result["value"] = value
    if attribute.children:
        result["children"] = [to_json(c) for c in attribute.children]
    return result


def dump_nested(entries: list[dict[str, Any]]) -> str:
    return json.dumps(entries, ensure_ascii=False, separators=(",", ":"))


def from_json(entry: dict[str, Any]) -> Attribute:
    """The inverse of :func:`to_json`; TypeError for what that does not give."""
    kind, value = entry["type"], entry.get("value")
    if kind not in (*SCALARS, *NESTING, "values") or not isinstance(entry["key"], str):
        raise TypeError(f"no attribute of XES: {kind}")
    if not isinstance(value, str | int | float | None):
        raise TypeError(f"no value of XES: {type(value).__name__}")
    if isinstance(value, str) and kind in ("date", "float"):
        parsed, bad = parse_scalar(kind, value)
        if not bad:
            value = ROOT_TIME + timedelta(microseconds=parsed) if kind == "date" else parsed
    elif kind == "float" and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    return Attribute(entry["key"], value, kind, tuple(from_json(c) for c in entry.get("children", ())))
