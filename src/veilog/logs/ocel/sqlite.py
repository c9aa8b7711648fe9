"""Object-centric logs in a database: OCEL 2.0 in SQLite. It is opened to read alone, and only its tables are read."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from veilog.errors import InputError
from veilog.logs.engines.keys import sql_name
from veilog.logs.input.source import Source
from veilog.logs.ocel.model import Event, ObjectCentricLog, Thing, called, first_of, in_text

__all__ = ["from_sqlite"]

_LARGEST = 1 << 30
_TABLES = ("event", "object", "event_map_type", "object_map_type", "event_object")


def from_sqlite(source: Source) -> ObjectCentricLog:
    """Return the log in a database; what is no OCEL 2.0 is refused."""
    try:
        with contextlib.closing(_connected(source)) as base:
            return _log(base, source)
    except sqlite3.Error as error:
        raise InputError("database-cannot-read", path=source.path, reason=error) from error


def _connected(source: Source) -> sqlite3.Connection:
    if source.zipped:
        base = sqlite3.connect(":memory:")
        base.deserialize(source.content(_LARGEST))
    else:
        if not source.size:
            raise InputError("file-empty", path=source.path)
        if Path(f"{source.path}-wal").exists():
            raise InputError("another-program-written-database", path=source.path)
        base = sqlite3.connect(f"{source.path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
    base.execute("PRAGMA trusted_schema = OFF")
    return base


def _log(base: sqlite3.Connection, source: Source) -> ObjectCentricLog:
    tables = {name for (name,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    missing = [name for name in _TABLES if name not in tables]
    if missing:
        raise InputError("database-no-ocel-no", path=source.path, missing=missing[0])
    log = ObjectCentricLog()
    for name, kind in base.execute("SELECT ocel_id, ocel_type FROM object ORDER BY rowid"):
        log.objects[first_of(name, log.objects, "objects", source)] = Thing(in_text(kind))
    for row in _rows(base, "object", {thing.kind for thing in log.objects.values()}, source):
        since = in_text(row.pop("ocel_time", None))
        row.pop("ocel_changed_field", None)
        thing = log.objects.get(called(row.pop("ocel_id"), source))
        log.unlisted += thing is None
        for name, value in row.items():
            if thing is not None and value is not None:
                thing.holds(name, value, since)
    events = log.events
    for name, kind in base.execute("SELECT ocel_id, ocel_type FROM event ORDER BY rowid"):
        its = first_of(name, events, "events", source)
        events[its] = Event(its, in_text(kind), None)
    told: set[str] = set()
    for row in _rows(base, "event", {event.activity for event in events.values()}, source):
        its = first_of(row.pop("ocel_id"), told, "events", source)
        told.add(its)
        event = events.get(its)
        log.unlisted += event is None
        if event is not None:
            event.time = in_text(row.pop("ocel_time"))
            event.attributes = {name: in_text(value) for name, value in row.items() if value is not None}
    for row in base.execute("SELECT ocel_event_id, ocel_object_id FROM event_object ORDER BY rowid"):
        its, thing_name = (called(name, source) for name in row)
        log.unlisted += its not in events
        if its in events and thing_name not in events[its].objects:
            events[its].objects.append(thing_name)
    if "object_object" in tables:
        for (name,) in base.execute("SELECT ocel_source_id FROM object_object"):
            if str(name) in log.objects:
                log.objects[str(name)].relations += 1
    return log


def _rows(base: sqlite3.Connection, what: str, kinds: set[str | None], source: Source) -> Iterator[dict[str, Any]]:
    """The attributes of events or objects, each type of which has a table of its own, refused where one is missing:
    what these hold would be lost. Names of tables are the same in upper and lower case in SQLite."""
    tables = {name.lower(): name for (name,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    needed = ("ocel_id", "ocel_time")[: 1 + (what == "event")]
    done = set()
    for kind, mapped in base.execute(f"SELECT ocel_type, ocel_type_map FROM {what}_map_type").fetchall():
        table = tables.get(f"{what}_{mapped}".lower())
        if table is None and kind not in kinds:
            continue
        if table is None:
            raise InputError("database-no-ocel-no-table", path=source.path, what=what, mapped=mapped)
        if table in done:
            continue
        done.add(table)
        found = base.execute(f"SELECT * FROM {sql_name(table)} ORDER BY rowid")
        names = [column[0] for column in found.description]
        missing = [name for name in needed if name not in names]
        if missing:
            raise InputError("database-no-ocel-table", path=source.path, table=table, missing=missing[0])
        for row in found:
            yield dict(zip(names, row, strict=True))
