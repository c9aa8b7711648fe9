"""Object-centric logs (OCEL 2.0 in JSON, XML and SQLite), flattened to one type.

The objects of one type are the cases. Each event becomes a row for each of its objects of that type. All losses are
counted and reported. A database is opened read-only, and only its tables are read.
"""

from __future__ import annotations

import contextlib
import json
import re
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import reduce
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from veilog.errors import InputError
from veilog.logs.engines.engine import sql_name
from veilog.logs.eventlog import ACTIVITY, CASE, EVENT_INDEX, TIMESTAMP
from veilog.logs.findings import Note
from veilog.logs.input.formats import ReadRequest
from veilog.logs.input.quality_checks import check_width
from veilog.logs.input.source import Source
from veilog.logs.tables.cells import infer_type
from veilog.logs.tables.table_reader import Notes, TableReader
from veilog.logs.xes.scanner import CheckedParser
from veilog.messages import Message

_FIRST, _LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


@dataclass
class Event:
    """An event with the objects that it happened to."""

    name: str
    activity: str | None
    time: str | None
    attributes: dict[str, str | None] = field(default_factory=dict)
    objects: list[str] = field(default_factory=list)
    """Names of its objects, each once, in the order of the file."""
    changes: int = 0
    """Number of further values of attributes that it already has."""

    def holds(self, name: str, value: object) -> None:
        """Take the next value of an attribute; the first one stays."""
        if name in self.attributes:
            self.changes += 1
        else:
            self.attributes[name] = value_text(value)


@dataclass
class Thing:
    """An object: its type, its first attributes, and the parts that a flat log lacks."""

    kind: str | None
    attributes: dict[str, str | None] = field(default_factory=dict)
    changes: int = 0
    """Number of later values of attributes."""
    relations: int = 0
    """Number of relations to other objects."""
    _since: dict[str, str | None] = field(default_factory=dict)
    """Times from which on the attributes have these values."""

    def holds(self, name: str, value: object, time: str | None = None) -> None:
        """Take another value of an attribute; the one of the earliest time stays.

        Its place in the file does not matter; of several values of one time, the first stays. A value without a time
        describes the object at the beginning.
        """
        if name in self.attributes:
            self.changes += 1
            if _moment(time) >= _moment(self._since[name]):
                return
        self.attributes[name], self._since[name] = value_text(value), time


def _moment(time: str | None) -> datetime:
    """Return the moment in UTC; text that is no time is later than every time."""
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
    """Number of facts about events and objects that are not listed."""

    def kinds(self) -> dict[str, tuple[int, int]]:
        """Return the types of objects with their numbers of objects and events.

        The type with the most objects comes first.
        """
        objects = Counter(thing.kind for thing in self.objects.values() if thing.kind is not None)
        events: Counter[str] = Counter()
        for event in self.events.values():
            found = {self.objects[name].kind for name in event.objects if name in self.objects}
            events.update(kind for kind in found if kind is not None)
        return {kind: (count, events[kind]) for kind, count in objects.most_common()}


def object_name(name: object, source: Source) -> str:
    """Return the name of an event or object as text.

    Anything that is no name is refused, because all without a name would be one.
    """
    if isinstance(name, bool) or not isinstance(name, str | int):
        raise InputError("ocel-name-invalid", path=source.path, name=name)
    return str(name)


def first_of(name: object, known: Container[str], what: Literal["events", "objects"], source: Source) -> str:
    """Return the name of the next event or object, and refuse one that another has.

    Both would be one, and the content of one case would stand in another.
    """
    found = object_name(name, source)
    if found in known:
        raise InputError("ocel-name-twice", path=source.path, what=what, found=found)
    return found


def value_text(value: object) -> str | None:
    """Return a value as it would be written in a table of text."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else str(value)


_LARGEST_TEXT = 2 << 30
_BLOCK = 1 << 20
_INNER = 3
"""Depth of an event or an object: the log has lists of both."""
_HALF = re.compile(r"\\u[dD][89a-fA-F]")


def from_json(source: Source) -> ObjectCentricLog:
    """Return the log in a JSON file, and refuse anything but OCEL 2.0."""
    try:
        found = _parse_json(source.content(_LARGEST_TEXT))
    except (ValueError, RecursionError) as error:
        raise InputError("ocel-not-json", path=source.path, reason=error) from error
    if isinstance(found, dict) and "ocel:events" in found:
        raise InputError("ocel-version-not-read", path=source.path)
    if not isinstance(found, dict) or not isinstance(found.get("events"), list):
        raise InputError("ocel-json-not-log", path=source.path)
    log = ObjectCentricLog()
    try:
        for one in found.get("objects") or ():
            thing = Thing(value_text(one.get("type")))
            for attribute in one.get("attributes") or ():
                thing.holds(_word(attribute["name"]), attribute.get("value"), value_text(attribute.get("time")))
            thing.relations = len(one.get("relationships") or ())
            log.objects[first_of(one["id"], log.objects, "objects", source)] = thing
        for one in found["events"]:
            objects = dict.fromkeys(object_name(item["objectId"], source) for item in one.get("relationships") or ())
            kind, time = value_text(one.get("type")), value_text(one.get("time"))
            name = first_of(one["id"], log.events, "events", source)
            event = log.events[name] = Event(name, kind, time, objects=list(objects))
            for item in one.get("attributes") or ():
                event.holds(_word(item["name"]), item.get("value"))
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError("ocel-json-malformed", path=source.path, kind=type(error).__name__, reason=error) from error
    return log


def _parse_json(content: bytes) -> Any:
    """Return the content of JSON.

    A key that occurs twice is an error, because one value would be lost. Half a character, which no text can hold, is
    an error, too.
    """
    text = content.decode(json.detect_encoding(content))
    found = json.loads(text, object_pairs_hook=_unique_pairs)
    if _HALF.search(text):
        json.dumps(found, ensure_ascii=False).encode("utf-8")
    return found


def _unique_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
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
    """Return the log in an XML file, and refuse entities and external references."""
    reader = _Elements(source)
    with source.stream() as stream:
        while data := stream.read(_BLOCK):
            reader.checked.parse(data, final=False)
        reader.checked.parse(b"", final=True)
    return reader.log


class _Elements:
    """Reader of the elements of OCEL 2.0 in XML, one after the other."""

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
            raise self.checked.refuse("ocel-root-not-log", element=element)
        if len(path) == 1 and element == "trace":
            raise self.checked.refuse("ocel-file-is-xes")
        if len(path) == 1 and element == "global":
            raise self.checked.refuse("ocel-version-not-read")
        if self._attribute is not None:
            raise self.checked.refuse("ocel-element-in-value", element=element, name=self._attribute)
        path.append(element)
        if path[1:] == ["objects", "object"]:
            self._at = Thing(said.get("type"))
            self.log.objects[first_of(self._attribute_text(said, "id"), self.log.objects, "objects", self._source)] = (
                self._at
            )
        elif path[1:] == ["events", "event"]:
            name = first_of(self._attribute_text(said, "id"), self.log.events, "events", self._source)
            self._at = self.log.events[name] = Event(name, said.get("type"), said.get("time"))
        elif element == "attribute" and path[3:] == ["attributes", "attribute"]:
            self._attribute, self._since = self._attribute_text(said, "name"), said.get("time")
            self._text.clear()
        elif element in ("relationship", "relobj", "object") and path[3:-1] == ["objects"]:
            self._relate(self._attribute_text(said, "object-id"))

    def _end(self, element: str) -> None:
        self._path.pop()
        if len(self._path) == _INNER - 1:
            self._at = None  # other parts, such as the types of events, belong to no event or object
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

    def _attribute_text(self, said: dict[str, Any], name: str) -> str:
        if name not in said:
            raise self.checked.refuse("ocel-attribute-missing", element=self._path[-1], name=name)
        return str(said[name])


_LARGEST_BASE = 1 << 30
_TABLES = ("event", "object", "event_map_type", "object_map_type", "event_object")


def from_sqlite(source: Source) -> ObjectCentricLog:
    """Return the log in a database, and refuse anything but OCEL 2.0."""
    try:
        with contextlib.closing(_connect(source)) as base:
            return _log(base, source)
    except sqlite3.Error as error:
        raise InputError("ocel-database-not-readable", path=source.path, reason=error) from error


def _connect(source: Source) -> sqlite3.Connection:
    if source.zipped:
        base = sqlite3.connect(":memory:")
        base.deserialize(source.content(_LARGEST_BASE))
    else:
        if not source.size:
            raise InputError("file-empty", path=source.path)
        if Path(f"{source.path}-wal").exists():
            raise InputError("ocel-database-unfinished", path=source.path)
        base = sqlite3.connect(f"{source.path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
    base.execute("PRAGMA trusted_schema = OFF")
    return base


def _log(base: sqlite3.Connection, source: Source) -> ObjectCentricLog:
    tables = {name for (name,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    missing = [name for name in _TABLES if name not in tables]
    if missing:
        raise InputError("ocel-table-missing", path=source.path, missing=missing[0])
    log = ObjectCentricLog()
    for name, kind in base.execute("SELECT ocel_id, ocel_type FROM object ORDER BY rowid"):
        log.objects[first_of(name, log.objects, "objects", source)] = Thing(value_text(kind))
    for row in _rows(base, "object", {thing.kind for thing in log.objects.values()}, source):
        since = value_text(row.pop("ocel_time", None))
        row.pop("ocel_changed_field", None)
        thing = log.objects.get(object_name(row.pop("ocel_id"), source))
        log.unlisted += thing is None
        for name, value in row.items():
            if thing is not None and value is not None:
                thing.holds(name, value, since)
    events = log.events
    for name, kind in base.execute("SELECT ocel_id, ocel_type FROM event ORDER BY rowid"):
        its = first_of(name, events, "events", source)
        events[its] = Event(its, value_text(kind), None)
    told: set[str] = set()
    for row in _rows(base, "event", {event.activity for event in events.values()}, source):
        its = first_of(row.pop("ocel_id"), told, "events", source)
        told.add(its)
        event = events.get(its)
        log.unlisted += event is None
        if event is not None:
            event.time = value_text(row.pop("ocel_time"))
            event.attributes = {name: value_text(value) for name, value in row.items() if value is not None}
    for row in base.execute("SELECT ocel_event_id, ocel_object_id FROM event_object ORDER BY rowid"):
        its, thing_name = (object_name(name, source) for name in row)
        log.unlisted += its not in events
        if its in events and thing_name not in events[its].objects:
            events[its].objects.append(thing_name)
    if "object_object" in tables:
        for (name,) in base.execute("SELECT ocel_source_id FROM object_object"):
            if str(name) in log.objects:
                log.objects[str(name)].relations += 1
    return log


def _rows(base: sqlite3.Connection, what: str, kinds: set[str | None], source: Source) -> Iterator[dict[str, Any]]:
    """Yield the attributes of events or objects, from the table of each type.

    A missing table is refused, because its content would be lost. SQLite ignores the case of table names.
    """
    tables = {name.lower(): name for (name,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    needed = ("ocel_id", "ocel_time")[: 1 + (what == "event")]
    done = set()
    for kind, mapped in base.execute(f"SELECT ocel_type, ocel_type_map FROM {what}_map_type").fetchall():
        table = tables.get(f"{what}_{mapped}".lower())
        if table is None and kind not in kinds:
            continue
        if table is None:
            raise InputError("ocel-type-table-missing", path=source.path, what=what, mapped=mapped)
        if table in done:
            continue
        done.add(table)
        found = base.execute(f"SELECT * FROM {sql_name(table)} ORDER BY rowid")
        names = [column[0] for column in found.description]
        missing = [name for name in needed if name not in names]
        if missing:
            raise InputError("ocel-table-column-missing", path=source.path, table=table, missing=missing[0])
        for row in found:
            yield dict(zip(names, row, strict=True))


_EVENT = "ocel:eid"
"""Column with the name of an event, as pm4py calls it."""
_EVENT_PREFIX = "event:"
_ATTRIBUTE = " (attribute)"


@dataclass(frozen=True)
class _Flat:
    """A log as a table, with the notes about its losses."""

    table: pa.Table
    noticed: tuple[Note, ...]
    kinds: tuple[str, ...]


class _ObjectCentric(TableReader):
    declares = False
    heeds = ("object_type",)

    def __init__(self, name: str, suffixes: tuple[str, ...], parse: Callable[[Source], ObjectCentricLog]) -> None:
        self.name = name
        self.suffixes = suffixes
        self._parse = parse

    def columns(self, source: Source) -> list[str]:
        return list(source.once(self._flat).table.column_names)

    def table(self, source: Source, asked: ReadRequest) -> pa.Table:
        """Return the table; only columns that decide nothing about events are typed.

        The type of a column follows from all of its values, so the columns that decide about events stay text.
        """
        text = source.once(self._flat).table
        given = {CASE, ACTIVITY, TIMESTAMP, _EVENT, EVENT_INDEX}.union(() if asked.roles is None else asked.roles.named)
        return pa.table({name: text[name] if name in given else infer_type(text[name]) for name in text.column_names})

    def rows(self, source: Source) -> int:
        return int(source.once(self._flat).table.num_rows)

    def notes(self, source: Source) -> Notes:
        flat = source.once(self._flat)
        return Notes(noticed=flat.noticed, among=flat.kinds)

    def _flat(self, source: Source) -> _Flat:
        log = self._parse(source)
        kind = _choose_type(log, source)
        return _Flat(
            _table(log, kind, source.path), (*_missing_parts(log, kind), *_changed_parts(log, kind)), tuple(log.kinds())
        )


JSON = _ObjectCentric("OCEL 2.0 (JSON)", (".json", ".json.gz", ".jsonocel"), from_json)
XML = _ObjectCentric("OCEL 2.0 (XML)", (".xml", ".xml.gz", ".xmlocel"), from_xml)
SQLITE = _ObjectCentric("OCEL 2.0 (SQLite)", (".sqlite",), from_sqlite)


def _choose_type(log: ObjectCentricLog, source: Source) -> str:
    """Return the type whose objects are the cases: the requested one, or the only one."""
    kinds, wanted = log.kinds(), source.options.object_type
    if wanted is None and len(kinds) == 1:
        return next(iter(kinds))
    if wanted is not None and wanted in kinds:
        return wanted
    counts = (
        (kind, _count_phrase(things, "object"), _count_phrase(events, "event"))
        for kind, (things, events) in kinds.items()
    )
    listed = ", ".join(f"{kind!r} ({things}, {events})" for kind, things, events in counts)
    if not kinds:
        raise InputError("ocel-without-objects", path=source.path)
    raise InputError(
        "ocel-type-not-chosen" if wanted is None else "ocel-type-unknown",
        path=source.path,
        among=tuple(kinds),
        number=len(kinds),
        listed=listed,
        wanted=wanted,
    )


def _count_phrase(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _case_objects(event: Event, log: ObjectCentricLog, kind: str) -> list[str]:
    """Return the objects of an event that are cases."""
    return [name for name in event.objects if name in log.objects and log.objects[name].kind == kind]


def _table(log: ObjectCentricLog, kind: str, path: Path) -> pa.Table:
    """Return a row for each event and each of its cases, with all attributes, as text."""
    rows = [(event, name) for event in log.events.values() for name in _case_objects(event, log, kind)]
    columns: dict[str, list[str | None]] = {
        CASE: [name for _, name in rows],
        ACTIVITY: [event.activity for event, _ in rows],
        TIMESTAMP: [event.time for event, _ in rows],
        _EVENT: [event.name for event, _ in rows],
    }
    own = dict.fromkeys(key for event, _ in rows for key in event.attributes)
    of_cases = dict.fromkeys(key for thing in log.objects.values() if thing.kind == kind for key in thing.attributes)
    cells = len(own) * len(rows) + len(of_cases) * len(rows)
    filled = sum(len(event.attributes) + len(log.objects[name].attributes) for event, name in rows)
    check_width(len(columns) + len(own) + len(of_cases), cells, filled, path)
    for key in own:
        columns[_as_of_event(key)] = [event.attributes.get(key) for event, _ in rows]
    for key in of_cases:
        columns[_as_of_case(key)] = [log.objects[thing].attributes.get(key) for _, thing in rows]
    return pa.table({name: pa.chunked_array([pa.array(values, pa.string())]) for name, values in columns.items()})


def _as_of_event(key: str) -> str:
    """Return the column of an attribute of events, by its name alone.

    A name that would clash with another column, or with one of objects, gets ``event:`` before it. So does a name that
    already has this form.
    """
    bare = key
    while bare.startswith(_EVENT_PREFIX):
        bare = bare.removeprefix(_EVENT_PREFIX)
    return f"{_EVENT_PREFIX}{key}" if bare in (ACTIVITY, TIMESTAMP, _EVENT) or bare.startswith("case:") else key


def _as_of_case(key: str) -> str:
    """Return the column of an attribute of objects, by its name alone."""
    bare = key
    while bare.endswith(_ATTRIBUTE):
        bare = bare.removesuffix(_ATTRIBUTE)
    return f"case:{key}{_ATTRIBUTE}" if bare == ACTIVITY else f"case:{key}"


def _missing_parts(log: ObjectCentricLog, kind: str) -> list[Note]:
    """Return notes about everything that has no place in the flat log."""
    without = [event for event in log.events.values() if not _case_objects(event, log, kind)]
    seen = {name for event in log.events.values() for name in event.objects}
    idle = [name for name, thing in log.objects.items() if thing.kind == kind and name not in seen]
    found = []
    if without:
        example = Message("example-no-object", name=without[0].name, activity=without[0].activity, kind=kind)
        found.append(Note("event-without-object", example, count=len(without)))
    if idle:
        found.append(Note("object-without-event", f"{kind!r} {idle[0]!r}", count=len(idle)))
    things, events = log.objects.values(), log.events.values()
    lost = {
        "example-other-objects": sum(thing.kind != kind for thing in things),
        "example-relations": sum(thing.relations for thing in things),
        "example-later-values": sum(thing.changes for thing in things if thing.kind == kind)
        + sum(event.changes for event in events if _case_objects(event, log, kind)),
        "example-unlisted-objects": sum(name not in log.objects for e in events for name in e.objects),
        "example-unlisted-rows": log.unlisted,
    }
    if any(lost.values()):
        parts = [Message(code, n=count) for code, count in lost.items() if count]
        example = reduce(lambda first, rest: Message("example-list", first=first, rest=rest), parts)
        found.append(Note("not-flat", example, count=sum(lost.values())))
    return found


def _changed_parts(log: ObjectCentricLog, kind: str) -> list[Note]:
    """Return notes about events in several cases, and activities of other objects."""
    several, most = 0, ("", 0)
    others: dict[tuple[str, str | None], list[frozenset[str]]] = defaultdict(list)
    for event in log.events.values():
        cases = _case_objects(event, log, kind)
        if len(cases) > 1:
            several += 1
            most = max(most, (event.name, len(cases)), key=lambda found: found[1])
        beside = frozenset(event.objects).difference(cases)
        for name in cases:
            others[name, event.activity].append(beside)
    found = []
    if several:
        example = Message("example-in-cases", name=most[0], n=most[1])
        found.append(Note("event-in-several-cases", example, count=several))
    apart = [key for key, beside in others.items() if len(set(beside)) > 1]
    if apart:
        name, activity = apart[0]
        example = Message("example-different-objects", name=name, activity=activity, n=len(others[apart[0]]))
        found.append(Note("events-of-other-objects", example, count=len(apart)))
    return found
