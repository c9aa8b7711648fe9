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

from veilog._typing import IntArray
from veilog.errors import EngineError
from veilog.logs.engines.engine import refuse_gaps
from veilog.logs.engines.keys import ROW, RowQuery, sql_name
from veilog.logs.findings import Findings
from veilog.logs.input.roles import Roles
from veilog.logs.tables.events.rows import is_of_cases

__all__ = ["PLACE", "gaps", "in_order", "named_rows", "placed"]

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


def in_order(connection: duckdb.DuckDBPyConnection, rows: RowQuery, roles: Roles) -> Iterator[pa.Table]:
    """The rows in whole cases, those of a case together and in their order, cases by their first row.

    :func:`placed` comes first: it makes the table of the cases' places. What is of cases is not sorted with the rows,
    but comes from that table, a row for each case.
    """
    numbers = {name: number for number, name in enumerate(_of_cases(rows, roles))}
    sorted_ = [name for name in rows.schema.names if name != roles.case and name not in numbers]
    found = connection.sql(
        f"SELECT {', '.join(f'e.{sql_name(name)}' for name in sorted_)}, places.p AS {PLACE} "
        f"FROM {rows.relation} e JOIN places ON e.{sql_name(roles.case)} = places.c ORDER BY places.p, e.{ROW}"
    )
    cases = _CasePlaces(connection, {roles.case: "c"} | {name: f"w{number}" for name, number in numbers.items()})
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
                yield _typed(table.slice(0, last), cases.of(place[:last]), rows.schema)
            waiting, size = [table.slice(last)], table.num_rows - last
    if size:
        table = pa.concat_tables(waiting)
        yield _typed(table, cases.of(_places(table, before)), rows.schema)


def placed(connection: duckdb.DuckDBPyConnection, rows: RowQuery, roles: Roles, findings: Findings) -> None:
    """Make the table ``places``: of each case which comes before it, and what the columns ``case:...`` say of it, by
    the same rule as in memory, with a finding where rows of a case differ."""
    asked = _of_cases(rows, roles)
    case, time = (f"e.{sql_name(name)}" for name in (roles.case, roles.timestamp))  # a table may have a column c, too
    known = [
        f"min({column}) IS DISTINCT FROM max({column}) AS v{number}, arg_min({column}, (e.{ROW}, {time})) AS w{number}"
        for number, column in enumerate(f"e.{sql_name(name)}" for name in asked)
    ]
    first = ", ".join([f"{case} AS c", f"min(e.{ROW}) AS r", f"min({time}) AS t", *known])
    place = "r" if rows.told_apart else "row_number() OVER (ORDER BY r, t, c)"
    more = "".join(f", v{number}, w{number}" for number in range(len(asked)))
    each = f"(SELECT {first} FROM {rows.relation} e GROUP BY {case})"
    connection.execute(f"CREATE TABLE places AS SELECT c, {place} AS p{more} FROM {each}")
    if not asked:
        return
    counts = connection.execute(f"SELECT {', '.join(f'count_if(v{i})' for i in range(len(asked)))} FROM places")
    for number, (name, count) in enumerate(zip(asked, counts.fetchall()[0], strict=True)):
        if (
            count
            and findings.add("case-attribute-differs", f"column {name!r} in {count:,} cases", count=count) == "drop"
        ):
            connection.execute(f"UPDATE places SET w{number} = NULL WHERE v{number}")


def _of_cases(rows: RowQuery, roles: Roles) -> list[str]:
    """The columns that say that they are of cases, but for those with a role."""
    used = {roles.case, roles.activity, roles.timestamp}
    return [name for name in rows.schema.names if is_of_cases(name) and name not in used]


class _CasePlaces:
    """What is known of whole cases, in the order of their places, asked for as these come."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, columns: Mapping[str, str]) -> None:
        self.names = list(columns)
        found = connection.cursor().sql(f"SELECT p, {', '.join(columns.values())} FROM places ORDER BY p")
        self._coming = _batches(found)
        self._here = pa.table({})

    def of(self, place: IntArray) -> dict[str, pa.ChunkedArray]:
        """The columns for rows of these places, which follow those that were asked for before."""
        starts = np.flatnonzero(np.append(True, np.diff(place) > 0))
        parts, size = [self._here], self._here.num_rows
        while size < len(starts):
            batch = next(self._coming, None)
            if batch is None:
                raise _unsorted()
            parts.append(pa.Table.from_batches([batch]))
            size += batch.num_rows
        here = pa.concat_tables([part for part in parts if part.num_rows])
        self._here = here.slice(len(starts))
        here = here.slice(0, len(starts)).combine_chunks()
        if not np.array_equal(here.column(0).to_numpy(), place[starts]):
            raise _unsorted()
        owner = pa.array(np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(place)))))
        return {name: column.take(owner) for name, column in zip(self.names, here.columns[1:], strict=True)}


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
        raise _unsorted()
    return place


def _unsorted() -> EngineError:
    return EngineError("rows-did-not-come")


def _typed(table: pa.Table, of_cases: Mapping[str, pa.ChunkedArray], schema: pa.Schema) -> pa.Table:
    """The rows in the types of the source, which DuckDB need not keep."""
    columns: list[Any] = []
    for field in schema:
        column = of_cases[field.name] if field.name in of_cases else table.column(field.name)
        columns.append(column if column.type == field.type else column.cast(field.type))
    return pa.table(columns, schema=schema.remove_metadata())
