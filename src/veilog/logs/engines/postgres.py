"""What Postgres needs beside what Ibis does on every engine: one state of the tables for all questions, text that is
compared by its characters, results in pieces, and words for its errors.

Nothing is written there: no table, no view and no temporary one, so that a role that may only read is enough.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from veilog.errors import EngineError, InputError, VeilogError
from veilog.logs.engines.engine import first_line
from veilog.logs.engines.keys import sql_name

__all__ = ["AS_CLIENT", "at_one_time", "by_characters", "in_words", "is_postgres", "pieces"]

AS_CLIENT = {"client_encoding": "UTF8", "fallback_application_name": "veilog"}
"""How it is connected to: text comes in one encoding, whichever the database has."""
_ROWS = 20_000
_IDLE = 0
"""The status of a connection that is in no transaction, as libpq numbers them."""
_ENDED = ("57P01", "57P02", "57P03", "57P05", "08")
"""How the SQLSTATE of what ends a connection begins: an administrator, a crash, a start, idleness, and class 08."""
_MAY_NOT = "42501"
_CANCELLED = "57014"


def is_postgres(table: Any) -> bool:
    """Whether a table of Ibis lies in Postgres, or in what speaks its protocol."""
    return bool(table.get_backend().name == "postgres")


@contextlib.contextmanager
def at_one_time(table: Any) -> Iterator[None]:
    """Answer all questions of the block from one state of the tables, whatever others write, and write nothing.

    A transaction of the user's own, in which a table given in Python may be, stays as it is.
    """
    connection = table.get_backend().con
    if connection.info.transaction_status != _IDLE:
        with connection.transaction():  # within that, to be left alone if it fails
            yield
        return
    said = logging.getLogger("psycopg")
    said.addFilter(_not_again)
    try:
        with connection.transaction():
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield
    finally:
        said.removeFilter(_not_again)


def _not_again(record: logging.LogRecord) -> bool:
    """The driver logs that what broke cannot be rolled back, where an error of ours says that it broke."""
    return "error ignored" not in record.getMessage()


def by_characters(table: Any, names: Iterable[str]) -> Any:
    """These columns of a table, in which texts are the same only if their characters are.

    By a collation or a type of theirs (citext, char) Postgres may take ``a`` and ``A`` for one. What Arrow has no type
    for is text as well.
    """
    found = table.select(*dict.fromkeys(names))
    backend, schema = found.get_backend(), found.schema()
    texts = {name for name, kind in schema.items() if _is_text(kind)}
    columns = ", ".join(_plain(sql_name(name)) if name in texts else sql_name(name) for name in schema)
    kinds = {name: "string" if name in texts else kind for name, kind in schema.items()}
    return backend.sql(f"SELECT {columns} FROM ({backend.compile(found)}) AS e", schema=kinds)


def _is_text(kind: Any) -> bool:
    return bool(kind.is_string() or kind.is_uuid() or kind.is_json() or kind.is_inet() or kind.is_macaddr())


def _plain(column: str) -> str:
    return f'CAST({column} AS TEXT) COLLATE "C" AS {column}'


def pieces(table: Any) -> Iterator[pa.RecordBatch]:
    """What an expression gives, fetched so many rows at a time: the driver makes objects of Python of them."""
    backend, kind = table.get_backend(), table.schema().as_struct().to_pyarrow()
    query = backend.compile(table)
    with at_one_time(table), backend.con.cursor(name="veilog") as cursor:  # on the server, within the transaction
        cursor.execute(query)
        while rows := cursor.fetchmany(_ROWS):
            yield pa.RecordBatch.from_struct_array(pa.array(rows, type=kind))


def in_words(error: Exception) -> VeilogError | None:
    """What an error of Postgres or its driver means; None for one of something else."""
    if not type(error).__module__.startswith("psycopg"):
        return None
    state = getattr(error, "sqlstate", None) or ""
    if state == _MAY_NOT:
        return EngineError("role-may-not-read", first_line=first_line(error))
    if state == _CANCELLED:
        return EngineError("query-cancelled", first_line=first_line(error))
    if state.startswith(_ENDED) or (not state and type(error).__name__ == "OperationalError"):
        return EngineError("engine-ended-half-way-connection")
    if not state and "timestamp too" in str(error):  # infinity, too, or before Christ
        return InputError("times-outside-years-9999-infinite")
    return EngineError("engine-gave-up", first_line=first_line(error))
