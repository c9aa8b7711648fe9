"""Object-centric logs as text: OCEL 2.0 in JSON and in XML."""

from __future__ import annotations

import json
from typing import Any

from veilog.errors import InputError
from veilog.logs.input.source import Source
from veilog.logs.ocel.model import Event, ObjectCentricLog, Thing, first_of, in_text
from veilog.logs.xes.bytes import CheckedParser

__all__ = ["from_json", "from_xml"]

_LARGEST = 2 << 30
_BLOCK = 1 << 20
_OLD = "Convert it to OCEL 2.0 with pm4py: pm4py.write_ocel2(pm4py.read_ocel(file), target)."


def from_json(source: Source) -> ObjectCentricLog:
    """Return the log in a JSON file; what is no OCEL 2.0 is refused."""
    try:
        found = json.loads(source.content(_LARGEST))
    except (ValueError, RecursionError) as error:
        raise InputError(f"This is no JSON ({error}).", path=source.path, advice="Export it again.") from error
    if isinstance(found, dict) and "ocel:events" in found:
        raise InputError("This is OCEL 1.0, which is not read.", path=source.path, advice=_OLD)
    if not isinstance(found, dict) or not isinstance(found.get("events"), list):
        raise InputError(
            "This JSON is no object-centric log.",
            path=source.path,
            advice="OCEL 2.0 has lists of events and of objects. Other JSON is not read: save a table as .csv.",
        )
    log = ObjectCentricLog()
    try:
        for one in found.get("objects") or ():
            thing = Thing(in_text(one.get("type")))
            for attribute in one.get("attributes") or ():
                thing.holds(attribute["name"], attribute.get("value"))
            thing.relations = len(one.get("relationships") or ())
            log.objects[first_of(one["id"], log.objects, "objects", source)] = thing
        for one in found["events"]:
            attributes = {item["name"]: in_text(item.get("value")) for item in one.get("attributes") or ()}
            objects = dict.fromkeys(str(item["objectId"]) for item in one.get("relationships") or ())
            kind, time = in_text(one.get("type")), in_text(one.get("time"))
            name = first_of(one["id"], log.events, "events", source)
            log.events[name] = Event(name, kind, time, attributes, list(objects))
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"The JSON is not as OCEL 2.0 has it ({type(error).__name__}: {error}).", path=source.path
        ) from error
    return log


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
        path.append(element)
        if path[1:] == ["objects", "object"]:
            self._at = Thing(said.get("type"))
            self.log.objects[first_of(self._said(said, "id"), self.log.objects, "objects", self._source)] = self._at
        elif path[1:] == ["events", "event"]:
            name = first_of(self._said(said, "id"), self.log.events, "events", self._source)
            self._at = self.log.events[name] = Event(name, said.get("type"), said.get("time"))
        elif element == "attribute" and path[3:] == ["attributes", "attribute"]:
            self._attribute = self._said(said, "name")
            self._text.clear()
        elif element in ("relationship", "relobj", "object") and path[3:-1] == ["objects"]:
            self._relate(self._said(said, "object-id"))

    def _end(self, element: str) -> None:
        self._path.pop()
        if element == "attribute" and self._attribute is not None:
            value = "".join(self._text)
            if isinstance(self._at, Thing):
                self._at.holds(self._attribute, value)
            elif self._at is not None:
                self._at.attributes.setdefault(self._attribute, value)
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
