"""The readers of object-centric logs: as a table in which the objects of one type are the cases.

Each event becomes a row for each of its objects of that type. What that loses is counted and said.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from veilog.errors import InputError
from veilog.logs.eventlog import ACTIVITY, CASE, EVENT_INDEX, TIMESTAMP
from veilog.logs.input.reader import ReadRequest
from veilog.logs.input.source import Source
from veilog.logs.input.widths import check_width
from veilog.logs.ocel.model import Event, ObjectCentricLog
from veilog.logs.ocel.sqlite import from_sqlite
from veilog.logs.ocel.text import from_json, from_xml
from veilog.logs.tables.cells.columns import typed
from veilog.logs.tables.reader import Notes, Remark, TableReader

__all__ = ["JSON", "SQLITE", "XML"]

_EVENT = "ocel:eid"
"""The column of the name of an event, as pm4py calls it."""
_EVENT_PREFIX = "event:"
_ATTRIBUTE = " (attribute)"


@dataclass(frozen=True)
class _Flat:
    """The log as a table, and what has no place in it."""

    table: pa.Table
    remarks: tuple[Remark, ...]
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
        """Which type a column has follows from all of its values, so what decides about events stays text."""
        text = source.once(self._flat).table
        given = {CASE, ACTIVITY, TIMESTAMP, _EVENT, EVENT_INDEX}.union(() if asked.roles is None else asked.roles.named)
        return pa.table({name: text[name] if name in given else typed(text[name]) for name in text.column_names})

    def rows(self, source: Source) -> int:
        return int(source.once(self._flat).table.num_rows)

    def notes(self, source: Source) -> Notes:
        flat = source.once(self._flat)
        return Notes(remarks=flat.remarks, among=flat.kinds)

    def _flat(self, source: Source) -> _Flat:
        log = self._parse(source)
        kind = _chosen(log, source)
        return _Flat(_table(log, kind, source.path), (*_left_out(log, kind), *_folded(log, kind)), tuple(log.kinds()))


JSON = _ObjectCentric("OCEL 2.0 (JSON)", (".json", ".json.gz", ".jsonocel"), from_json)
XML = _ObjectCentric("OCEL 2.0 (XML)", (".xml", ".xml.gz", ".xmlocel"), from_xml)
SQLITE = _ObjectCentric("OCEL 2.0 (SQLite)", (".sqlite",), from_sqlite)


def _chosen(log: ObjectCentricLog, source: Source) -> str:
    """The type whose objects are the cases: the one that is asked for, or the only one."""
    kinds, wanted = log.kinds(), source.layout.object_type
    if wanted is None and len(kinds) == 1:
        return next(iter(kinds))
    if wanted is not None and wanted in kinds:
        return wanted
    counts = ((kind, _counted(things, "object"), _counted(events, "event")) for kind, (things, events) in kinds.items())
    listed = ", ".join(f"{kind!r} ({things}, {events})" for kind, things, events in counts)
    if not kinds:
        raise InputError("object-centric-log-no", path=source.path)
    raise InputError(
        "types-objects-them-must" if wanted is None else "no-type-objects",
        path=source.path,
        among=tuple(kinds),
        number=len(kinds),
        listed=listed,
        wanted=wanted,
    )


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _of(event: Event, log: ObjectCentricLog, kind: str) -> list[str]:
    """The objects of an event that are cases."""
    return [name for name in event.objects if name in log.objects and log.objects[name].kind == kind]


def _table(log: ObjectCentricLog, kind: str, path: Path) -> pa.Table:
    """A row for each event and each of its objects of this type, with the attributes of both, all as text."""
    rows = [(event, name) for event in log.events.values() for name in _of(event, log, kind)]
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
    """The column of an attribute of events: by its name alone, whatever others there are. One that would be taken for
    another column, or for one of objects, is called ``event:`` and so, and so is one that is called so already."""
    bare = key
    while bare.startswith(_EVENT_PREFIX):
        bare = bare.removeprefix(_EVENT_PREFIX)
    return f"{_EVENT_PREFIX}{key}" if bare in (ACTIVITY, TIMESTAMP, _EVENT) or bare.startswith("case:") else key


def _as_of_case(key: str) -> str:
    """The column of an attribute of objects, by its name alone."""
    bare = key
    while bare.endswith(_ATTRIBUTE):
        bare = bare.removesuffix(_ATTRIBUTE)
    return f"case:{key}{_ATTRIBUTE}" if bare == ACTIVITY else f"case:{key}"


def _left_out(log: ObjectCentricLog, kind: str) -> list[Remark]:
    """What has no place in the flat log."""
    without = [event for event in log.events.values() if not _of(event, log, kind)]
    seen = {name for event in log.events.values() for name in event.objects}
    idle = [name for name, thing in log.objects.items() if thing.kind == kind and name not in seen]
    found = []
    if without:
        example = f"{without[0].name!r} ({without[0].activity}) has no object of the type {kind!r}"
        found.append(Remark("event-without-object", example, len(without)))
    if idle:
        found.append(Remark("object-without-event", f"{kind!r} {idle[0]!r}", len(idle)))
    things, events = log.objects.values(), log.events.values()
    lost = {
        "objects of other types": sum(thing.kind != kind for thing in things),
        "relations between objects": sum(thing.relations for thing in things),
        "later values of attributes": sum(thing.changes for thing in things if thing.kind == kind)
        + sum(event.changes for event in events if _of(event, log, kind)),
        "objects of events that are not listed": sum(name not in log.objects for e in events for name in e.objects),
        "rows of what is not listed": log.unlisted,
    }
    if any(lost.values()):
        example = ", ".join(f"{what}: {count:,}" for what, count in lost.items() if count)
        found.append(Remark("not-flat", example, sum(lost.values())))
    return found


def _folded(log: ObjectCentricLog, kind: str) -> list[Remark]:
    """What looks otherwise in the flat log than it was: events in several cases, and activities of other objects."""
    several, most = 0, ("", 0)
    others: dict[tuple[str, str | None], list[frozenset[str]]] = defaultdict(list)
    for event in log.events.values():
        cases = _of(event, log, kind)
        if len(cases) > 1:
            several += 1
            most = max(most, (event.name, len(cases)), key=lambda found: found[1])
        beside = frozenset(event.objects).difference(cases)
        for name in cases:
            others[name, event.activity].append(beside)
    found = []
    if several:
        found.append(Remark("event-in-several-cases", f"{most[0]!r} is in {most[1]:,} cases", several))
    apart = [key for key, beside in others.items() if len(set(beside)) > 1]
    if apart:
        name, activity = apart[0]
        example = f"case {name!r} has {activity!r} {len(others[apart[0]]):,} times, for different objects"
        found.append(Remark("events-of-other-objects", example, len(apart)))
    return found
