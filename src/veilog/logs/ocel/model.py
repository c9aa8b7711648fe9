"""An object-centric log in memory: events, each with objects, and objects, each of a type."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Container
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

from veilog.errors import InputError
from veilog.logs.input.source import Source

__all__ = ["Event", "ObjectCentricLog", "Thing", "called", "first_of", "in_text"]

_FIRST, _LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


@dataclass
class Event:
    """Something that happened to objects."""

    name: str
    activity: str | None
    time: str | None
    attributes: dict[str, str | None] = field(default_factory=dict)
    objects: list[str] = field(default_factory=list)
    """Their names, each once, in the order of the file."""
    changes: int = 0
    """Further values of attributes that it has already."""

    def holds(self, name: str, value: object) -> None:
        """Take the next value of an attribute: the first one stays."""
        if name in self.attributes:
            self.changes += 1
        else:
            self.attributes[name] = in_text(value)


@dataclass
class Thing:
    """An object: its type, its attributes as they were first, and how much of it has no place in a flat log."""

    kind: str | None
    attributes: dict[str, str | None] = field(default_factory=dict)
    changes: int = 0
    """Later values of attributes."""
    relations: int = 0
    """To other objects."""
    _since: dict[str, str | None] = field(default_factory=dict)
    """Since when attributes have these values."""

    def holds(self, name: str, value: object, time: str | None = None) -> None:
        """Take another value of an attribute: the one of the earliest time stays, wherever it stands; of several of one
        time the first. A value without a time is how the object was at the beginning."""
        if name in self.attributes:
            self.changes += 1
            if _moment(time) >= _moment(self._since[name]):
                return
        self.attributes[name], self._since[name] = in_text(value), time


def _moment(time: str | None) -> datetime:
    """The moment in UTC; what tells none is later than all that do."""
    if not time:
        return _FIRST
    try:
        found = datetime.fromisoformat(time.strip())
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        return _LAST


@dataclass
class ObjectCentricLog:
    """Events and objects by their names, in the order of the file."""

    events: dict[str, Event] = field(default_factory=dict)
    objects: dict[str, Thing] = field(default_factory=dict)
    unlisted: int = 0
    """What is told of events and objects that are not listed."""

    def kinds(self) -> dict[str, tuple[int, int]]:
        """Return the types of objects: of how many objects, and in how many events, the most frequent first."""
        objects = Counter(thing.kind for thing in self.objects.values() if thing.kind is not None)
        events: Counter[str] = Counter()
        for event in self.events.values():
            found = {self.objects[name].kind for name in event.objects if name in self.objects}
            events.update(kind for kind in found if kind is not None)
        return {kind: (count, events[kind]) for kind, count in objects.most_common()}


def called(name: object, source: Source) -> str:
    """Return the name of an event or object as text. What is none is refused: all without a name would be one."""
    if isinstance(name, bool) or not isinstance(name, str | int):
        raise InputError("name-event-object", path=source.path, name=name)
    return str(name)


def first_of(name: object, known: Container[str], what: Literal["events", "objects"], source: Source) -> str:
    """Return the name of the next event or object; one that another has is refused, as both would be one, and what one
    case holds would stand in another."""
    found = called(name, source)
    if found in known:
        raise InputError("two-called", path=source.path, what=what, found=found)
    return found


def in_text(value: object) -> str | None:
    """Return a value as it would be written in a table of text."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else str(value)
