"""The rows of Parquet files, one or several, as DuckDB reads them for a log on disk."""

from __future__ import annotations

import re
from collections.abc import Sequence

import duckdb
import pyarrow as pa

from veilog.errors import InputError, ParameterError
from veilog.logs.engines.keys import FIRST_TIME, LAST_TIME, ROW, RowQuery, sql_name, sql_text
from veilog.logs.eventlog import EVENT_INDEX
from veilog.logs.findings import Findings
from veilog.logs.input.lifecycle import Transitions
from veilog.logs.input.roles import Roles
from veilog.logs.input.source import Source
from veilog.logs.stored.sorting import PLACE, gaps, named_rows
from veilog.logs.tables.cells.columns import is_text, plain_type
from veilog.logs.tables.parquet import PARQUET, is_parquet, opened

__all__ = ["rows_of_file", "rows_of_files"]

_OWN = ("file_row_number", "file_index", ROW, PLACE)
_CONVERT = "Convert it, or give one file with all events."


def rows_of_file(
    connection: duckdb.DuckDBPyConnection, file: Source, roles: Roles, findings: Findings
) -> RowQuery | None:
    """The rows of one file; None where only :func:`veilog.read` can tell what they mean."""
    schema, count = opened(file).schema_arrow, PARQUET.rows(file)
    if not count or _odd(file, roles) is not None or EVENT_INDEX in schema.names:
        return None
    relation = _chosen(connection, _relation([file]), roles, findings)
    return None if any(gaps(connection, relation, roles).values()) else RowQuery(relation, schema, count)


def rows_of_files(
    connection: duckdb.DuckDBPyConnection, files: Sequence[Source], roles: Roles, findings: Findings
) -> RowQuery:
    """The rows of several files that are one log, in the order of the files; what is not the same in all is refused."""
    for file in files:
        if not is_parquet(file):
            raise InputError("several-files-read-together-their", path=file.path)
        problem = _odd(file, roles) or _unlike(file, files[0])
        if problem is not None:
            raise InputError(problem, path=file.path, advice=_CONVERT)
    count = sum(PARQUET.rows(file) for file in files)
    if not count:
        raise InputError("files-no-rows", path=files[0].path)
    for rule in ("case-without-name", "missing-timestamp"):
        if findings.policy(rule) == "keep":
            raise ParameterError("rows-meet-cannot-kept", parameter="on", rule=rule)
    relation = _chosen(connection, _relation(files), roles, findings)
    relation = named_rows(connection, relation, roles, findings)
    _check_times(connection, relation, roles, files[0])
    return RowQuery(relation, opened(files[0]).schema_arrow, count)


def _relation(files: Sequence[Source]) -> str:
    """All columns of the files, and of each row how many come before it in them."""
    before, rows = [], 0
    for file in files:
        before.append(str(rows))
        rows += PARQUET.rows(file)
    columns = ", ".join(sql_name(name) for name in opened(files[0]).schema_arrow.names)
    # Signs that stand for other names stand for themselves in brackets.
    paths = ", ".join(sql_text(re.sub(r"([*?\[])", r"[\1]", str(file.path))) for file in files)
    place = "file_row_number" if len(files) == 1 else f"([{', '.join(before)}]::BIGINT[])[file_index::BIGINT + 1]"
    place += "" if len(files) == 1 else " + file_row_number"
    return (
        f"(SELECT {columns}, {place} AS {ROW} "
        f"FROM read_parquet([{paths}], file_row_number = true, hive_partitioning = false))"
    )


def _odd(file: Source, roles: Roles) -> str | None:
    """What in the columns of this file means something else to DuckDB than to our own reader; None for nothing."""
    schema = opened(file).schema_arrow
    if PARQUET.notes(file).case_key is not None or PARQUET.notes(file).empty is not None:
        return "This file has cases that only an index tells apart, or without events."
    if roles.clock is not None or roles.two_events:
        return "The time of an event is in two columns, or a row is two events."
    missing = next((name for name in roles.named if name not in schema.names), None)
    if missing is not None:
        return f"There is no column {missing!r}, but in other files of this log there is."
    if len({name.lower() for name in [*schema.names, *_OWN]}) < len(schema.names) + len(_OWN):
        return "The names of two columns differ in upper and lower case only, or one is a name of ours."
    kinds = [plain_type(schema.field(name).type) for name in (roles.case, roles.activity)]
    if not ((is_text(kinds[0]) or pa.types.is_integer(kinds[0])) and is_text(kinds[1])):
        return f"The columns {roles.case!r} and {roles.activity!r} hold {kinds[0]} and {kinds[1]}, not names."
    other = next((f for f in schema if isinstance(f.type, pa.BaseExtensionType) or pa.types.is_list_view(f.type)), None)
    if other is not None:
        return f"The column {other.name!r} holds {other.type}, which DuckDB reads as another type."
    if not pa.types.is_timestamp(schema.field(roles.timestamp).type):
        return f"The column {roles.timestamp!r} holds {schema.field(roles.timestamp).type}, not timestamps."
    return None


def _unlike(file: Source, first: Source) -> str | None:
    """In what the columns of this file are not those of the first; None for nothing."""
    found, wanted = ({f.name: plain_type(f.type) for f in opened(one).schema_arrow} for one in (file, first))
    if found == wanted:
        return None
    name = sorted(found.keys() ^ wanted.keys()) or sorted(name for name in wanted if found[name] != wanted[name])
    return f"Its column {name[0]!r} is not that of {first.path.name}: it is missing in one, or has another type."


def _chosen(connection: duckdb.DuckDBPyConnection, rows: str, roles: Roles, findings: Findings) -> str:
    """The rows that count: those of the transition that was asked for, or all, with a finding about transitions."""
    if roles.transition is None:
        return rows
    activity, step = sql_name(roles.activity), f"coalesce({sql_name(roles.transition)}::VARCHAR, '')"
    counts = connection.execute(
        f"SELECT {activity}::VARCHAR AS a, {step} AS s, count(*) FROM {rows} GROUP BY a, s ORDER BY a, s"
    ).fetchall()
    transitions = Transitions.of(counts, roles.lifecycle)
    transitions.done(findings, told_apart=roles.transition in roles.classifier)
    if roles.lifecycle is None:
        return rows
    wanted = ", ".join(sql_text(name) for name in transitions.wanted())
    return f"(SELECT * FROM {rows} WHERE {step} IN ({wanted}))"


def _check_times(connection: duckdb.DuckDBPyConnection, relation: str, roles: Roles, first: Source) -> None:
    time = sql_name(roles.timestamp)
    found = connection.execute(f"SELECT count(*), epoch_us(min({time})), epoch_us(max({time})) FROM {relation}")
    count, low, high = found.fetchall()[0]
    if not count:
        raise InputError("not-event-left", path=first.path)
    if low is None or high is None or low < FIRST_TIME or high > LAST_TIME:  # infinite times have no number
        raise InputError("times-outside-years-9999", path=first.path)
