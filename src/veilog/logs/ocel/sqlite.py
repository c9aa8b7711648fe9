"""Object-centric logs in a database: OCEL 2.0 in SQLite. It is opened to read alone, and only its tables are read."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from veilog.errors import InputError
from veilog.logs.input.source import Source
from veilog.logs.ocel.model import Event, ObjectCentricLog, Thing, first_of, in_text

__all__ = ["from_sqlite"]

_LARGEST = 1 << 30
_TABLES = ("event", "object", "event_map_type", "object_map_type", "event_object")


def from_sqlite(source: Source) -> ObjectCentricLog:
    """Return the log in a database; what is no OCEL 2.0 is refused."""
    try:
        with contextlib.closing(_connected(source)) as base:
            return _log(base, source)
    except sqlite3.Error as error:
        raise InputError(f"This database cannot be read ({error}).", path=source.path) from error


def _connected(source: Source) -> sqlite3.Connection:
    if source.zipped:
        base = sqlite3.connect(":memory:")
        base.deserialize(source.content(_LARGEST))
    else:
        if not source.size:
            raise InputError("The file is empty.", path=source.path)
        if Path(f"{source.path}-wal").exists():
            raise InputError(
                "Another program has written to this database, and not finished (there is a file ending in -wal).",
                path=source.path,
                advice="Close that program, or copy the database with it: .backup in sqlite3.",
            )
        base = sqlite3.connect(f"{source.path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
    base.execute("PRAGMA trusted_schema = OFF")
    return base


def _log(base: sqlite3.Connection, source: Source) -> ObjectCentricLog:
    tables = {name for (name,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    missing = [name for name in _TABLES if name not in tables]
    if missing:
        raise InputError(
            f"This database is no OCEL 2.0: it has no table {missing[0]!r}.",
            path=source.path,
            advice="A table of a DuckDB database is read with --engine duckdb:FILE, one of another with a URL of Ibis.",
        )
    log = ObjectCentricLog()
    for name, kind in base.execute("SELECT ocel_id, ocel_type FROM object ORDER BY rowid"):
        log.objects[first_of(name, log.objects, "objects", source)] = Thing(in_text(kind))
    for row in _rows(base, tables, "object"):
        row.pop("ocel_time", None)
        row.pop("ocel_changed_field", None)
        thing = log.objects.get(str(row.pop("ocel_id")))
        for name, value in row.items():
            if thing is not None and value is not None:
                thing.holds(name, value)
    events = log.events
    for name, kind in base.execute("SELECT ocel_id, ocel_type FROM event ORDER BY rowid"):
        called = first_of(name, events, "events", source)
        events[called] = Event(called, in_text(kind), None)
    told: set[str] = set()
    for row in _rows(base, tables, "event"):
        called = first_of(row.pop("ocel_id"), told, "events", source)
        told.add(called)
        event = events.get(called)
        if event is not None:
            event.time = in_text(row.pop("ocel_time"))
            event.attributes = {name: in_text(value) for name, value in row.items() if value is not None}
    for name, thing_name in base.execute("SELECT ocel_event_id, ocel_object_id FROM event_object ORDER BY rowid"):
        if str(name) in events and str(thing_name) not in events[str(name)].objects:
            events[str(name)].objects.append(str(thing_name))
    if "object_object" in tables:
        for (name,) in base.execute("SELECT ocel_source_id FROM object_object"):
            if str(name) in log.objects:
                log.objects[str(name)].relations += 1
    return log


def _rows(base: sqlite3.Connection, tables: set[str], what: str) -> Iterator[dict[str, Any]]:
    """The attributes of events or objects, each type of which has a table of its own."""
    for (mapped,) in dict.fromkeys(base.execute(f"SELECT ocel_type_map FROM {what}_map_type").fetchall()):
        table = f"{what}_{mapped}"
        if table not in tables:
            continue
        quoted = '"' + table.replace('"', '""') + '"'
        found = base.execute(f"SELECT * FROM {quoted} ORDER BY rowid")
        names = [column[0] for column in found.description]
        for row in found:
            yield dict(zip(names, row, strict=True))
