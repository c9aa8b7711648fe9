"""Variants of a table or view in a DuckDB database, which is opened for reading only and stays as it is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from veilog.errors import InputError
from veilog.logs.engines.duckdb_files import coded, connected, group, micros
from veilog.logs.engines.engine import Grouped, refuse_equals, refuse_gaps, refuse_life_cycle, refuse_ties, refuse_type
from veilog.logs.engines.keys import (
    FIRST_TIME,
    LAST_TIME,
    POSITION_BITS,
    ROW,
    EventQuery,
    RowQuery,
    sql_name,
    sql_text,
    timed_key,
)
from veilog.logs.eventlog import EVENT_INDEX
from veilog.logs.findings import Findings
from veilog.logs.input.roles import Roles
from veilog.logs.input.source import AT_HAND, Means, Progress, silent
from veilog.logs.tables.cells.columns import is_text
from veilog.logs.tables.events.checks import count_times

__all__ = ["DuckTable"]

_CHARACTERS = 'COLLATE "C"'
"""By a collation of theirs the texts of a column may be equal that others write otherwise: one case with another
spelling would be part of another case, or give its activities that name."""


@dataclass(frozen=True)
class DuckTable:
    """A table of a database file. Events of equal time are in the order of its rows; in a view, of an index."""

    database: Path
    table: str
    """Its name, with its schema before it where that is not the usual one: ``events``, ``sales.events``."""
    means: Means = AT_HAND
    called: str | None = None
    """What messages call it; where this is None, the file and the table."""

    def columns(self) -> list[str]:
        with connected(self.means) as connection:
            return list(self._opened(connection).names)

    def count(self) -> int:
        """How many rows there are."""
        with connected(self.means) as connection:
            self._opened(connection)
            return int(_one(connection, "count(*)", f"FROM {self._name}")[0])

    def group(self, roles: Roles, findings: Findings, progress: Progress = silent) -> Grouped:
        refuse_life_cycle(roles)
        with connected(self.means) as connection:
            progress("looking at the events", None)
            schema = self._opened(connection)
            kind = schema.field(roles.timestamp).type
            return group(
                connection, self._keyed(connection, self._sound(connection, roles, findings), kind, findings), progress
            )

    def listed(self, connection: duckdb.DuckDBPyConnection, roles: Roles, findings: Findings) -> RowQuery:
        """All columns of the rows that count, after all that can be wrong was looked for."""
        refuse_life_cycle(roles)
        schema = self._opened(connection)
        sound = self._sound(connection, roles, findings)
        if sound.alone or sound.index is not None or not sound.placed:
            same = f"SELECT c FROM ({sound.rows}) GROUP BY c, {'' if sound.alone else 't, '}i HAVING count(*) > 1"
            refuse_equals(_one(connection, "count(*)", same)[0], sound.index, self._where)
        # An index that was given stands below the times, so the one that stands above them must not be seen.
        names = [name for name in schema.names if name != EVENT_INDEX or sound.alone]
        case, activity = (sql_name(name) for name in (roles.case, roles.activity))
        taken, _ = _taken(schema.field(roles.timestamp))
        position = self._position(connection, schema) if sound.placed else "0"
        columns = (_by_characters(schema.field(name)) for name in names)
        relation = (
            f"(SELECT {', '.join(columns)}, {position} AS {ROW} FROM {self._name} WHERE "
            f"nullif({case}::VARCHAR, '') IS NOT NULL AND nullif({activity}::VARCHAR, '') IS NOT NULL "
            f"AND {taken} IS NOT NULL)"
        )
        told_apart = sound.placed and sound.index is None
        return RowQuery(relation, pa.schema([schema.field(name) for name in names]), sound.count, told_apart)

    def _opened(self, connection: duckdb.DuckDBPyConnection) -> pa.Schema:
        """Attach the database and make the table the relation ``log``; its columns."""
        if not self.database.is_file():
            raise InputError("no-database", path=self.database)
        attached = connection.execute("SELECT 1 FROM duckdb_databases() WHERE database_name = 'source'").fetchall()
        if not attached:
            try:
                connection.execute(f"ATTACH {sql_text(str(self.database))} AS source (READ_ONLY)")
            except duckdb.Error as error:
                raise InputError(
                    "database-cannot-opened", path=self.database, splitlines=str(error).splitlines()[0]
                ) from error
        try:
            return connection.sql(f"SELECT * FROM {self._name} LIMIT 0").to_arrow_table().schema
        except duckdb.CatalogException as error:
            raise InputError(
                "database-no-table", path=self.database, advice=_tables(connection), table=self.table
            ) from error

    @property
    def _name(self) -> str:
        return ".".join(["source", *(sql_name(part) for part in self.table.split("."))])

    def _rows(self, connection: duckdb.DuckDBPyConnection, schema: pa.Schema, roles: Roles) -> str:
        """A query with case, activity, time, and the position that orders events of equal time (null: nothing does)."""
        where = self._where
        case, activity, time = (schema.field(name) for name in (roles.case, roles.activity, roles.timestamp))
        if not (is_text(case.type) or pa.types.is_integer(case.type)):
            refuse_type(case.name, str(case.type), "names of cases", where)
        if not (is_text(activity.type) or pa.types.is_integer(activity.type)):
            refuse_type(activity.name, str(activity.type), "names of activities", where)
        if not (pa.types.is_timestamp(time.type) or pa.types.is_date(time.type)):
            refuse_type(time.name, str(time.type), "timestamps", where)
        taken, finer = _taken(time)
        return (
            f"SELECT nullif({sql_name(case.name)}::VARCHAR {_CHARACTERS}, '') AS c, "
            f"nullif({sql_name(activity.name)}::VARCHAR {_CHARACTERS}, '') AS a, {taken} AS t, "
            f"{self._position(connection, schema)} AS i, {finer} AS finer FROM {self._name}"
        )

    def _index(self, schema: pa.Schema) -> str | None:
        """The column that orders events: the one given, or veilog's own, which stands above the times."""
        return self.means.index or (EVENT_INDEX if EVENT_INDEX in schema.names else None)

    def _position(self, connection: duckdb.DuckDBPyConnection, schema: pa.Schema) -> str:
        index = self._index(schema)
        if index is not None:
            if index not in schema.names:
                raise InputError("no-column", index=index, names=", ".join(schema.names))
            if not pa.types.is_integer(schema.field(index).type):
                refuse_type(index, str(schema.field(index).type), "whole numbers", self._where)
            return sql_name(index)
        try:
            connection.sql(f"SELECT rowid FROM {self._name} LIMIT 0").fetchall()
        except duckdb.Error:
            return "NULL::BIGINT"  # a view
        return "rowid"

    @property
    def _where(self) -> str:
        return f"{self.database}: {self.table}" if self.called is None else self.called

    def _sound(self, connection: duckdb.DuckDBPyConnection, roles: Roles, findings: Findings) -> _Sound:
        """The rows that have a case, an activity, a time and a place, or an error that says what is wrong with them."""
        schema = self._opened(connection)
        rows, index = self._rows(connection, schema, roles), self._index(schema)
        count, nameless, mute, absent, finer, low, high, least, most, unplaced = _one(
            connection,
            "count(*), count(*) FILTER (c IS NULL), count(*) FILTER (a IS NULL), count(*) FILTER (t IS NULL), "
            "count(*) FILTER (finer), min(t), max(t), min(i), max(i), count(*) FILTER (i IS NULL)",
            rows,
        )
        where = self._where
        if not count:
            raise InputError("table-no-rows", path=where)
        gaps = {"case-without-name": nameless, "event-without-activity": mute, "missing-timestamp": absent}
        if refuse_gaps(findings, gaps):
            rows = f"SELECT * FROM ({rows}) WHERE c IS NOT NULL AND a IS NOT NULL AND t IS NOT NULL"
            count, low, high = _one(connection, "count(*), min(t), max(t)", rows)
            if not count:
                raise InputError("not-event-left", path=where)
        if low < FIRST_TIME or high > LAST_TIME:
            raise InputError("times-outside-years-9999", path=where)
        if unplaced and index is not None:
            raise InputError("index-missing-rows", path=where, index=index, unplaced=unplaced)
        alone = index is not None and self.means.index is None  # veilog's own index stands above the times
        if unplaced or index is not None:
            ties = f"SELECT c FROM ({rows}) GROUP BY c, {'' if alone else 't, '}i HAVING min(a) <> max(a)"
            refuse_ties(_one(connection, "count(*)", ties)[0], index, where)
        return _Sound(rows, count, finer, low, high, least, most, not unplaced, index, alone)

    def _keyed(
        self, connection: duckdb.DuckDBPyConnection, sound: _Sound, kind: pa.DataType, findings: Findings
    ) -> EventQuery:
        """What to group, an event as one key."""
        naive = pa.types.is_date(kind) or kind.tz is None
        count_times(findings, sound.count, naive=sound.count if naive else 0, cut=sound.finer)
        position = f"i - ({sound.least})" if sound.placed else "0"
        if sound.placed and sound.most - sound.least >= 1 << POSITION_BITS:
            position = "row_number() OVER (ORDER BY i)"
        labels = connection.sql(f"SELECT DISTINCT a FROM ({sound.rows}) ORDER BY a").to_arrow_table()
        placed = f"SELECT c, t, a, {position} AS i FROM ({sound.rows})"
        key = timed_key("0" if sound.alone else "t", coded(connection, labels))
        return EventQuery(
            f"SELECT c, {key} AS k FROM ({placed})", labels["a"].to_pylist(), start=sound.low, end=sound.high
        )


@dataclass(frozen=True)
class _Sound:
    """Rows in which nothing is missing: columns ``c``, ``a``, ``t`` and ``i``, and what is known of them."""

    rows: str
    count: int
    finer: int
    low: int
    high: int
    least: int
    most: int
    placed: bool
    """Whether the rows have an order of their own or an index."""
    index: str | None
    alone: bool
    """Whether the index orders events whatever their times are."""


def _taken(time: pa.Field) -> tuple[str, str]:
    """The microseconds of a column of times, null where there are none, as of infinite times, and whether some are
    cut."""
    instant = f"{sql_name(time.name)}::TIMESTAMP" if pa.types.is_date(time.type) else sql_name(time.name)
    return micros(instant, time.type)


def _by_characters(field: pa.Field) -> str:
    """A column of the table, as one in which texts are the same only if their characters are."""
    name = sql_name(field.name)
    return f"{name}::VARCHAR {_CHARACTERS} AS {name}" if is_text(field.type) else name


def _one(connection: duckdb.DuckDBPyConnection, values: str, rows: str) -> Any:
    return connection.execute(f"SELECT {values} FROM ({rows})").fetchall()[0]


def _tables(connection: duckdb.DuckDBPyConnection) -> str:
    found = connection.execute(
        "SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = 'source' UNION ALL "
        "SELECT schema_name, view_name FROM duckdb_views() WHERE database_name = 'source' AND NOT internal "
        "ORDER BY 1, 2"
    ).fetchall()
    names = [name if schema == "main" else f"{schema}.{name}" for schema, name in found[:30]]
    return f"It has: {', '.join(names)}." if names else "It has none."
