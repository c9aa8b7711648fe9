"""Object-centric logs as text: OCEL 2.0 in JSON and in XML."""

from __future__ import annotations

import json
import re
from typing import Any

from veilog.errors import InputError
from veilog.logs.input.source import Source
from veilog.logs.ocel.model import Event, ObjectCentricLog, Thing, called, first_of, in_text
from veilog.logs.xes.bytes import CheckedParser

__all__ = ["from_json", "from_xml"]

_LARGEST = 2 << 30
_BLOCK = 1 << 20
_INNER = 3
"""How deep an event or an object stands: the log has lists of both."""
_HALF = re.compile(r"\\u[dD][89a-fA-F]")
_OLD = "Convert it to OCEL 2.0 with pm4py: pm4py.write_ocel2(pm4py.read_ocel(file), target)."


def from_json(source: Source) -> ObjectCentricLog:
    """Return the log in a JSON file; what is no OCEL 2.0 is refused."""
    try:
        found = _parsed(source.content(_LARGEST))
    except (ValueError, RecursionError) as error:
        raise InputError("no-json", path=source.path, reason=error) from error
    if isinstance(found, dict) and "ocel:events" in found:
        raise InputError("ocel-not-read", path=source.path)
    if not isinstance(found, dict) or not isinstance(found.get("events"), list):
        raise InputError("json-no-object-centric", path=source.path)
    log = ObjectCentricLog()
    try:
        for one in found.get("objects") or ():
            thing = Thing(in_text(one.get("type")))
            for attribute in one.get("attributes") or ():
                thing.holds(_word(attribute["name"]), attribute.get("value"), in_text(attribute.get("time")))
            thing.relations = len(one.get("relationships") or ())
            log.objects[first_of(one["id"], log.objects, "objects", source)] = thing
        for one in found["events"]:
            objects = dict.fromkeys(called(item["objectId"], source) for item in one.get("relationships") or ())
            kind, time = in_text(one.get("type")), in_text(one.get("time"))
            name = first_of(one["id"], log.events, "events", source)
            event = log.events[name] = Event(name, kind, time, objects=list(objects))
            for item in one.get("attributes") or ():
                event.holds(_word(item["name"]), item.get("value"))
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError("json-not-ocel", path=source.path, kind=type(error).__name__, reason=error) from error
    return log


def _parsed(content: bytes) -> Any:
    """What JSON says. What says a thing twice is an error, as one of the two would be lost, and so is half a character,
    which no text can hold."""
    text = content.decode(json.detect_encoding(content))
    found = json.loads(text, object_pairs_hook=_once)
    if _HALF.search(text):
        json.dumps(found, ensure_ascii=False).encode("utf-8")
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise ValueError(f"it has {twice!r} twice in one place")
    return found


def _word(name: object) -> str:
    if not isinstance(name, str):
        raise TypeError(f"an attribute is called {name!r}")
    return name


def from_xml(source: Source) -> ObjectCentricLog:
    """Return the log in an XML file; entities and references to anything outside the file are refused."""
    reader = _Elements(source)
    with source.stream() as stream:
        while data := stream.read(_BLOCK):
            reader.checked.parse(data, final=False)
        reader.checked.parse(b"", final=True)
    return reader.log


class _Elements:
    """What the elements of OCEL 2.0 in XML say, one after the other."""

    def __init__(self, source: Source) -> None:
        self.log = ObjectCentricLog()
        self._source = source
        self._path: list[str] = []
        self._at: Event | Thing | None = None
        self._attribute: str | None = None
        self._since: str | None = None
        self._text: list[str] = []
        self.checked = CheckedParser(str(source.path))
        parser = self.checked.parser
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text.append

    def _start(self, element: str, said: dict[str, str]) -> None:
        path = self._path
        if not path and element != "log":
            raise self.checked.refuse(f"The root element is <{element}>, not <log>: this is no object-centric log.")
        if len(path) == 1 and element == "trace":
            raise self.checked.refuse("This is a log in XES, not in OCEL.", "Call the file .xes.")
        if len(path) == 1 and element == "global":
            raise self.checked.refuse("This is OCEL 1.0, which is not read.", _OLD)
        if self._attribute is not None:
            raise self.checked.refuse(f"There is <{element}> in the value of the attribute {self._attribute!r}.")
        path.append(element)
        if path[1:] == ["objects", "object"]:
            self._at = Thing(said.get("type"))
            self.log.objects[first_of(self._said(said, "id"), self.log.objects, "objects", self._source)] = self._at
        elif path[1:] == ["events", "event"]:
            name = first_of(self._said(said, "id"), self.log.events, "events", self._source)
            self._at = self.log.events[name] = Event(name, said.get("type"), said.get("time"))
        elif element == "attribute" and path[3:] == ["attributes", "attribute"]:
            self._attribute, self._since = self._said(said, "name"), said.get("time")
            self._text.clear()
        elif element in ("relationship", "relobj", "object") and path[3:-1] == ["objects"]:
            self._relate(self._said(said, "object-id"))

    def _end(self, element: str) -> None:
        self._path.pop()
        if len(self._path) == _INNER - 1:
            self._at = None  # what stands elsewhere, such as the types of events, belongs to none
        if element == "attribute" and self._attribute is not None:
            value = "".join(self._text)
            if isinstance(self._at, Thing):
                self._at.holds(self._attribute, value, self._since)
            elif self._at is not None:
                self._at.holds(self._attribute, value)
            self._attribute = None
        self._text.clear()

    def _relate(self, name: str) -> None:
        if isinstance(self._at, Thing):
            self._at.relations += 1
        elif self._at is not None and name not in self._at.objects:
            self._at.objects.append(name)

    def _said(self, said: dict[str, Any], name: str) -> str:
        if name not in said:
            raise self.checked.refuse(f"<{self._path[-1]}> has no {name}.")
        return str(said[name])
