"""Rows of any table into pieces of whole cases: DuckDB sorts them within its memory limit, nothing is loaded whole.

Rows come out by the case's first row, those of a case together and in their order. What decides that is known of each
case by itself, so one case more changes the place of no other among those there were. What comes out is cut where a
case ends; the places of cases are checked as they come, so that no case is ever in two pieces.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from veilog.errors import EngineError
from veilog.logs.engines.engine import refuse_gaps
from veilog.logs.engines.keys import ROW, Rows, sql_name
from veilog.logs.findings import Findings
from veilog.logs.roles import Roles
from veilog.logs.tables.rows import CASE_PREFIX

__all__ = ["PLACE", "gaps", "in_order", "named_rows", "varying"]

PLACE = "veilog_place"
"""The column that says which of two cases comes first."""
_PIECE = 400_000
"""Events of a piece, unless one case alone has more."""
_BATCH = 100_000


def gaps(connection: duckdb.DuckDBPyConnection, relation: str, roles: Roles) -> Mapping[str, int]:
    """How many rows have no case, no activity or no time, by the rules of findings that they meet."""
    found = connection.execute(
        f"SELECT count(*) FILTER ({_absent(roles.case)}), count(*) FILTER ({_absent(roles.activity)}), "
        f"count(*) FILTER ({sql_name(roles.timestamp)} IS NULL) FROM {relation}"
    ).fetchall()[0]
    return dict(zip(("case-without-name", "event-without-activity", "missing-timestamp"), found, strict=True))


def named_rows(connection: duckdb.DuckDBPyConnection, relation: str, roles: Roles, findings: Findings) -> str:
    """The rows that have a case, an activity and a time; others are refused, or left out where the owner says so."""
    if not refuse_gaps(findings, dict(gaps(connection, relation, roles))):
        return relation
    missing = " OR ".join((_absent(roles.case), _absent(roles.activity), f"{sql_name(roles.timestamp)} IS NULL"))
    return f"(SELECT * FROM {relation} WHERE NOT ({missing}))"


def _absent(column: str) -> str:
    return f"coalesce({sql_name(column)}::VARCHAR, '') = ''"


def in_order(connection: duckdb.DuckDBPyConnection, rows: Rows, roles: Roles) -> Iterator[pa.Table]:
    """The rows in whole cases, those of a case together and in their order, cases by their first row.

    :func:`varying` comes first: it makes the table of the cases' places.
    """
    columns = ", ".join(f"e.{sql_name(name)}" for name in rows.schema.names)
    found = connection.sql(
        f"SELECT {columns}, p AS {PLACE} FROM {rows.relation} e JOIN places ON e.{sql_name(roles.case)} = c "
        f"ORDER BY p, e.{ROW}"
    )
    waiting: list[pa.Table] = []
    size, before = 0, -1
    for batch in _batches(found):
        waiting.append(pa.Table.from_batches([batch]))
        size += batch.num_rows
        if size >= _PIECE:
            table = pa.concat_tables(waiting)
            place = _places(table, before)
            last = int(np.searchsorted(place, place[-1]))  # the case that may go on
            if last:
                before = int(place[last - 1])
                yield _typed(table.slice(0, last), rows.schema)
            waiting, size = [table.slice(last)], table.num_rows - last
    if size:
        table = pa.concat_tables(waiting)
        _places(table, before)
        yield _typed(table, rows.schema)


def varying(connection: duckdb.DuckDBPyConnection, rows: Rows, roles: Roles) -> frozenset[str]:
    """The columns ``case:...`` that differ within some case, so that they are attributes of events everywhere.

    The pass over all rows that finds them makes the table ``places`` as well: of each case which comes before it.
    """
    used = {roles.case, roles.activity, roles.timestamp}
    asked = [name for name in rows.schema.names if name.startswith(CASE_PREFIX) and name not in used]
    flags = [
        f"(count({column}) NOT IN (0, count(*)) OR min({column}) IS DISTINCT FROM max({column})) AS v{number}"
        for number, column in enumerate(map(sql_name, asked))
    ]
    case, time = sql_name(roles.case), sql_name(roles.timestamp)
    first = ", ".join([f"{case} AS c", f"min({ROW}) AS r", f"min({time}) AS t", *flags])
    place = "r" if rows.told_apart else "row_number() OVER (ORDER BY r, t, c)"
    connection.execute(
        f"CREATE TABLE places AS SELECT c, {place} AS p{''.join(f', v{i}' for i in range(len(asked)))} "
        f"FROM (SELECT {first} FROM {rows.relation} GROUP BY {case})"
    )
    if not asked:
        return frozenset()
    found = connection.execute(f"SELECT {', '.join(f'bool_or(v{i})' for i in range(len(asked)))} FROM places")
    return frozenset(name for name, varies in zip(asked, found.fetchall()[0], strict=True) if varies)


def _batches(found: duckdb.DuckDBPyRelation) -> Iterator[pa.RecordBatch]:
    """The rows as they come; what goes wrong on the way is an error of DuckDB again, which pyarrow has wrapped."""
    with _unwrapped():
        reader = found.to_arrow_reader(_BATCH)
        batch = next(reader, None)
    while batch is not None:
        yield batch
        with _unwrapped():
            batch = next(reader, None)


@contextlib.contextmanager
def _unwrapped() -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        kind = duckdb.OutOfMemoryException if "Out of Memory" in str(error) else duckdb.Error
        raise kind(str(error)) from error


def _places(table: pa.Table, before: int) -> Any:
    """The places of the rows' cases, which come in order and after the piece before, or else this is refused."""
    place = table.column(PLACE).to_numpy()
    if place[0] <= before or bool((place[1:] < place[:-1]).any()):
        raise EngineError("The rows did not come sorted by case.", advice="Nothing was asked of the data.")
    return place


def _typed(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows in the types of the source, which DuckDB need not keep."""
    columns: list[Any] = []
    for field in schema:
        column = table.column(field.name)
        columns.append(column if column.type == field.type else column.cast(field.type))
    return pa.table(columns, schema=schema.remove_metadata())
