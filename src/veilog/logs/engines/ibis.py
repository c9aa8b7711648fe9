"""Variants by one Ibis expression, on any engine that holds the table.

It may be a warehouse, a cluster, or Spark on this machine. The activities of a case are collected in the order of time
and index, and equal lists are counted, all where the data is. Only the variants come here. Engines that none of our
tests runs on first get a handful of synthetic events, whose variants are known. An engine that gets them wrong is not
used. Nor is one that takes different texts for the same in the columns of cases or activities: one case could be part
of another, or give its names to it.

Postgres needs more: one state of the tables for all queries, text that is compared by its characters, results in
pieces, and clear messages for its errors. Nothing is written there: no table, no view and no temporary one. So a role
that may only read is enough.
"""

from __future__ import annotations

import contextlib
import logging
import re
import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import parse_qsl, unquote_plus

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from veilog.errors import EngineError, InputError, MissingExtraError, VeilogError
from veilog.logs.engines.engine import (
    EventCounts,
    Grouped,
    event_index,
    first_line,
    refuse_equals,
    refuse_life_cycle,
    refuse_ties,
    refuse_type,
    settle_counts,
    sql_name,
)
from veilog.logs.eventlog import EVENT_INDEX, as_array, as_dictionary
from veilog.logs.findings import Findings
from veilog.logs.input.formats import ReadRequest
from veilog.logs.input.roles import Roles
from veilog.logs.input.source import Progress, Source, is_ibis, silent
from veilog.logs.tables.events import count_times
from veilog.logs.tables.table_reader import TableReader
from veilog.logs.variants import Variants
from veilog.messages import Message

AS_CLIENT = {"client_encoding": "UTF8", "fallback_application_name": "veilog"}
"""Options of a connection: text comes in one encoding, whichever the database has."""
_EXTRAS = {"postgres": "postgres", "postgresql": "postgres"}
_SECRETS = ("password", "token", "secret", "key")
"""Parts of the names of options in a URL whose values are secret."""
_ROWS = 20_000
_IDLE = 0
"""Status of a connection that is in no transaction, as libpq numbers them."""
_ENDED = ("57P01", "57P02", "57P03", "57P05", "08")
"""Starts of SQLSTATEs that end a connection: administrator, crash, start, idleness, and class 08."""
_MAY_NOT = "42501"
_CANCELLED = "57014"


def is_postgres(table: Any) -> bool:
    """Return True if an Ibis table lies in Postgres, or in what speaks its protocol."""
    return bool(table.get_backend().name == "postgres")


@contextlib.contextmanager
def one_snapshot(table: Any) -> Iterator[None]:
    """Answer all queries of the block from one state of the tables, and write nothing.

    Writes of others do not change that state. A transaction of the user's own, in which a table given in Python may be,
    stays as it is.
    """
    connection = table.get_backend().con
    if connection.info.transaction_status != _IDLE:
        with connection.transaction():  # nested, to be left alone if it fails
            yield
        return
    said = logging.getLogger("psycopg")
    said.addFilter(_drop_rollback_record)
    try:
        with connection.transaction():
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield
    finally:
        said.removeFilter(_drop_rollback_record)


def _drop_rollback_record(record: logging.LogRecord) -> bool:
    """Filter out that what broke cannot be rolled back: our error reports the break."""
    return "error ignored" not in record.getMessage()


def binary_columns(table: Any, names: Iterable[str]) -> Any:
    """Return columns of a table in which equal texts have equal characters.

    By a collation or a type of its own (citext, char) Postgres may take ``a`` and ``A`` for one. Types that Arrow does
    not have become text as well.
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
    """Yield an expression's rows in pieces: the driver makes Python objects of them."""
    backend, kind = table.get_backend(), table.schema().as_struct().to_pyarrow()
    query = backend.compile(table)
    with one_snapshot(table), backend.con.cursor(name="veilog") as cursor:  # on the server, within the transaction
        cursor.execute(query)
        while rows := cursor.fetchmany(_ROWS):
            yield pa.RecordBatch.from_struct_array(pa.array(rows, type=kind))


def translate_error(error: Exception) -> VeilogError | None:
    """Return our error for one of Postgres or its driver; None for one of others."""
    if not type(error).__module__.startswith("psycopg"):
        return None
    state = getattr(error, "sqlstate", None) or ""
    if state == _MAY_NOT:
        return EngineError("engine-role-not-permitted", first_line=first_line(error))
    if state == _CANCELLED:
        return EngineError("engine-query-cancelled", first_line=first_line(error))
    if state.startswith(_ENDED) or (not state and type(error).__name__ == "OperationalError"):
        return EngineError("engine-connection-broke")
    if not state and "timestamp too" in str(error):  # infinity, too, or before Christ
        return InputError("times-outside-years")
    return EngineError("engine-gave-up", first_line=first_line(error))


_TESTED = ("duckdb", "pyspark")
"""Engines that tests run on; not Postgres, whose protocol much else speaks."""
_UNORDERED = ("pyspark", "databricks")
"""Engines that collect in no order, but sort structs."""
_SPELLINGS = ("a", "A", "\u00e1", "a\u0301", "a ", "a\u200b")
"""Texts that no column may confuse: by upper case, accents and their spellings, blanks, invisible characters."""
_READ_WHOLE = 5_000_000


@dataclass(frozen=True)
class IbisTable:
    """Table, view or expression of Ibis; an ``index`` orders events of equal time."""

    table: Any
    index: str | None = None
    placed: bool = False
    """True if the index is known to distinguish all events."""
    name: str | None = None

    def columns(self) -> list[str]:
        return list(self.table.columns)

    def group(self, roles: Roles, findings: Findings, progress: Progress = silent) -> Grouped:
        refuse_life_cycle(roles)
        with shorten_errors(), one_state(self.table):
            events, found = self._check_events(roles, findings, progress)
            count_times(findings, found.rows, naive=found.rows if _is_naive(self.table, roles.timestamp) else 0)
            progress("grouping the events by case", None)
            if self.table.get_backend().name not in _TESTED:
                _probe(events)
            grouped = fetched(count_variants(events))
        progress("putting variants in order", None)
        return Grouped(_variants(grouped), found.start, found.end)

    def whole(self, roles: Roles, findings: Findings, progress: Progress = silent) -> pa.Table:
        """Return all columns in the order of events, unless there are too many rows."""
        with shorten_errors(), one_state(self.table):
            rows = int(fetched(self.table.aggregate(n=self.table.count()))["n"][0].as_py())
            if rows > _READ_WHOLE:
                raise InputError("table-too-large", path=self.name, rows=rows, read_whole=_READ_WHOLE)
            apart = Findings(findings.policies, findings.path, findings.collect_all)  # reading the rows adds them
            self._check_events(roles, apart, progress)
            progress("fetching the events", None)
            table = binary_columns(self.table, self.columns()) if is_postgres(self.table) else self.table
            return fetched(table.order_by(self.order or roles.timestamp))

    def checked(self, roles: Roles, findings: Findings, progress: Progress = silent) -> int:
        """Return the number of events, if all columns are wanted; refuse rows in no order."""
        refuse_life_cycle(roles)
        with shorten_errors(), one_state(self.table):
            events, found = self._check_events(roles, findings, progress)
            same = events.group_by(["c", "t", "i"]).agg(n=events.count()).filter(lambda each: each.n > 1)
            refuse_equals(int(fetched(same.aggregate(n=same.count()))["n"][0].as_py()), self.order, self.name)
        return found.rows

    @property
    def order(self) -> str | None:
        """Column that orders events."""
        return event_index(self.index, self.columns())

    def _check_events(self, roles: Roles, findings: Findings, progress: Progress) -> tuple[Any, EventCounts]:
        """Return checked events with columns c, t, i and a, and their counts."""
        progress("looking at the events", None)
        index = self.order
        alone = index == EVENT_INDEX and self.index is None
        names = [name for name in (roles.case, roles.activity, roles.timestamp, index) if name is not None]
        table = binary_columns(_register_memory(self.table), names) if _collates(self.table) else self.table
        events = _columns(table, roles, index, alone, self.name)
        if not _collates(self.table):
            _check_spellings(events, {"c": roles.case, "a": roles.activity}, self.name)
        whole = events.filter(events.c.notnull() & events.a.notnull() & events.time.notnull())
        found, dropped = settle_counts(lambda clean: _counts(whole if clean else events), findings, index, self.name)
        events = whole if dropped else events
        if found.finer:
            raise InputError("times-finer-than-microsecond", path=self.name, found=found.finer)
        if not self.placed:
            progress("looking for events at the same time", None)
            refuse_ties(int(fetched(_ties(events)).to_pylist()[0]["ties"]), index, self.name)
        return events, found


class _Ibis(TableReader):
    """Reader of such a table into this process, with all its columns."""

    name = "Ibis"
    typed = True

    def recognises(self, source: Source) -> bool:
        return is_ibis(source.given)

    def columns(self, source: Source) -> list[str]:
        return IbisTable(source.given).columns()

    def table(self, source: Source, asked: ReadRequest) -> pa.Table:
        assert asked.roles is not None, "the columns of a table have roles"
        there = IbisTable(source.given, source.options.index)
        return there.whole(asked.roles, asked.findings, asked.progress or silent)


IBIS = _Ibis()


def _collates(table: Any) -> bool:
    """Return True if a column's collation there may take different texts for equal."""
    return is_postgres(table) or bool(table.get_backend().name == "duckdb")


def _register_memory(table: Any) -> Any:
    """Return the table, with its data from this process put where SQL finds it."""
    if not is_postgres(table):
        fetched(table.limit(0))
    return table


def count_variants(events: Any) -> Any:
    """Return the expression of variants ``v`` and their numbers of cases ``n``."""
    import ibis

    if events.get_backend().name in _UNORDERED:
        cases = events.group_by("c").agg(k=ibis.struct({"t": events.t, "i": events.i, "a": events.a}).collect())
        variants = cases.select(v=cases.k.sort().map(lambda event: event.a))
    else:
        variants = events.group_by("c").agg(v=events.a.collect(order_by=[events.t, events.i])).select("v")
    return variants.group_by("v").agg(n=variants.count())


def _columns(table: Any, roles: Roles, index: str | None, alone: bool, name: str | None) -> Any:
    """Return c, a, i and t (the sort key) in types that every engine compares alike."""
    import ibis

    case, activity, time = table[roles.case], table[roles.activity], table[roles.timestamp]
    if case.type().is_floating() or case.type().is_nested():
        refuse_type(roles.case, str(case.type()), "names of cases", name)
    if not (activity.type().is_string() or activity.type().is_integer()):
        refuse_type(roles.activity, str(activity.type()), "names of activities", name)
    if not (time.type().is_timestamp() or time.type().is_date()):
        refuse_type(roles.timestamp, str(time.type()), "timestamps", name)
    if index is not None and not table[index].type().is_integer():
        refuse_type(index, str(table[index].type()), "whole numbers", name)
    if case.type().is_string():
        case = _binary_column(case).nullif("")
    activity = _binary_column(activity).nullif("") if activity.type().is_string() else activity.cast("string")
    finer = ibis.literal(False)
    if time.type().is_date():
        time = time.cast("timestamp")
    elif (time.type().scale or 0) > 6:
        zone = time.type().timezone
        cut = time.cast(f"timestamp('{zone}', 6)" if zone else "timestamp(6)")
        time, finer = cut, cut.cast(time.type()) != time
    position = ibis.literal(0, "int64") if index is None else table[index].cast("int64")
    return table.select(
        c=case, a=activity, time=time, t=ibis.literal(0, "int64") if alone else time, i=position, finer=finer
    )


def _binary_column(text: Any) -> Any:
    """Return a column of texts without its collation, where no SQL of ours is needed."""
    kind = text.get_backend().name
    if kind in _UNORDERED:
        return text.cast("binary").cast("string")
    return text.concat("") if kind == "sqlite" else text


def _check_spellings(events: Any, columns: dict[str, str], where: str | None) -> None:
    """Raise if this engine takes one text for another in a column, by its collation.

    The query is about public texts that stand below no row of the column, and so are compared as its own. It learns
    nothing of what the column holds.
    """
    import ibis

    if events.get_backend().name in _UNORDERED:
        return
    one = events.limit(1)
    for name, column in columns.items():
        if not events[name].type().is_string():
            continue
        texts = (one.select(x=ibis.literal(text)) for text in _SPELLINGS)
        found = ibis.union(events.limit(0).select(x=events[name]), *texts).distinct()
        if int(fetched(found.aggregate(n=found.count()))["n"][0].as_py()) != len(_SPELLINGS):
            raise InputError("column-texts-conflated", path=where, name=column)


def _counts(events: Any) -> EventCounts:
    """Return the first counts; infinite times count, too."""
    expression = events.aggregate(
        rows=events.count(),
        nameless=events.c.isnull().sum().fill_null(0),
        mute=events.a.isnull().sum().fill_null(0),
        absent=events.time.isnull().sum().fill_null(0),
        unplaced=events.i.isnull().sum().fill_null(0),
        finer=events.finer.fill_null(False).sum().fill_null(0),
        start=events.time.min(),
        end=events.time.max(),
    )
    found = fetched(expression)
    for name in ("start", "end"):
        time = found[name].cast(pa.timestamp("us", found[name].type.tz)).cast(pa.int64())
        found = found.set_column(found.column_names.index(name), name, time)
    return EventCounts(**found.to_pylist()[0])


def _ties(events: Any) -> Any:
    """Return how often a case has several activities whose order is open."""
    same = events.group_by(["c", "t", "i"]).agg(low=events.a.min(), high=events.a.max())
    return same.aggregate(ties=(same.low != same.high).sum().fill_null(0))


_PROBE = (
    # case, second, position, activity: rows in any order, ties that names would decide wrongly, a jump in digits
    ("1", 3, 9, "a"), ("1", 3, 10, "Z"), ("1", 2, 11, "é"), ("1", 10, 1, "b"),
    ("2", 5, 1, "y"), ("2", 5, -1, "z"), ("2", 5, 100, "x"),
    ("3", 10, 2, "b"), ("3", 3, 20, "Z"), ("3", 2, 5, "é"), ("3", 3, 3, "a"),
)  # fmt: skip
_PROBED = {("é", "a", "Z", "b"): 2, ("z", "y", "x"): 1}


def _probe(events: Any) -> None:
    """Raise unless this engine groups synthetic events into their known variants."""
    import ibis

    one = events.limit(1)
    kinds = {name: events[name].type() for name in ("t", "i")}
    rows = [
        one.select(
            c=ibis.literal(case),
            a=ibis.literal(activity),
            t=ibis.literal(second, kinds["t"])
            if kinds["t"].is_integer()
            else ibis.literal(datetime(2024, 1, 1, 0, 0, second)).cast(kinds["t"]),  # noqa: DTZ001 - cast to the zone
            i=ibis.literal(position, kinds["i"]),
        )
        for case, second, position, activity in _PROBE
    ]
    found = _variants(fetched(count_variants(ibis.union(*rows)))).to_dict()
    if found != _PROBED:
        raise EngineError("engine-order-not-kept", name=events.get_backend().name, found=found)


def fetched(table: Any) -> pa.Table:
    """Return an expression's result as an Arrow table; from Spark without pandas."""
    backend = table.get_backend()
    if backend.name == "pyspark":
        return backend.raw_sql(backend.compile(table)).toArrow()
    if is_postgres(table):
        return pa.Table.from_batches(pieces(table), table.schema().to_pyarrow())
    return table.to_pyarrow()


def one_state(table: Any) -> contextlib.AbstractContextManager[None]:
    """Return a context in which the table stays as it was, if its engine can do that."""
    return one_snapshot(table) if is_postgres(table) else contextlib.nullcontext()


def _variants(found: pa.Table) -> Variants:
    lists = as_array(found["v"])
    lengths = pc.list_value_length(lists).to_numpy().astype(np.int64)
    activities = as_dictionary(pc.list_flatten(lists))
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return Variants.from_arrays(
        activities.dictionary.to_pylist(), activities.indices.to_numpy(), offsets, found["n"].to_numpy()
    )


def _is_naive(table: Any, column: str) -> bool:
    """Return True if times have no zone; Spark's ordinary timestamps are instants."""
    kind = table[column].type()
    return bool(kind.is_date() or (kind.timezone is None and table.get_backend().name != "pyspark"))


@contextlib.contextmanager
def shorten_errors() -> Iterator[None]:
    """Raise our own error, in one line, for any error of an engine."""
    try:
        yield
    except VeilogError:
        raise
    except Exception as error:  # every engine has a family of errors of its own
        raise _translate_error(error) from error


def _translate_error(error: Exception) -> VeilogError:
    known = translate_error(error)
    if known is not None:
        return known
    of_spark = type(error).__name__ in ("Py4JNetworkError", "Py4JError")
    if of_spark or isinstance(error, ConnectionError):
        return EngineError("engine-broke-off")
    if type(error).__name__ == "OperationNotDefinedError":
        return EngineError("engine-without-variants", first_line=first_line(error))
    return EngineError("engine-gave-up", first_line=first_line(error))


def connected(source: Source, name: str) -> Any:
    """Return the table of this name where the URL leads.

    The URL may hold a password: no message repeats it.
    """
    url = source.options.engine
    kind = url.partition("://")[0]
    try:
        import ibis
    except ImportError as error:
        raise MissingExtraError(
            Message("engine-of-kind", kind=f"{kind}://..."), extra=_EXTRAS.get(kind, "spark")
        ) from error
    try:
        if kind in _EXTRAS and _torn(url):
            raise ValueError(kind)
        backend = ibis.connect(url, **(AS_CLIENT if kind in _EXTRAS else {}))
    except ValueError:  # it may show a part of the password, taken for a port
        raise EngineError("engine-url-not-understood", kind=kind) from None
    except ImportError as error:
        if kind in _EXTRAS:
            raise MissingExtraError(Message("engine-of-kind", kind=f"{kind}://..."), extra=_EXTRAS[kind]) from error
        raise EngineError("engine-ibis-incomplete", kind=kind) from error
    except Exception as error:  # every engine has a family of errors of its own
        raise EngineError("engine-not-connected", kind=kind, without=_hide_password(first_line(error), url)) from error
    if kind in _EXTRAS:  # others may share what they connect to, as Spark does its session
        weakref.finalize(source, backend.disconnect)
    *database, table = name.split(".")
    try:
        return backend.table(table, database=tuple(database) if len(database) > 1 else "".join(database) or None)
    except Exception as error:
        raise InputError(
            "engine-table-missing", name=name, kind=kind, without=_hide_password(first_line(error), url)
        ) from error


def _torn(url: str) -> bool:
    """Return True if a sign of URLs in a password ends what should name the host."""
    rest = url.partition("://")[2]
    host = re.split("[/?#]", rest, maxsplit=1)[0]
    return "@" in rest and "@" not in host


def _hide_password(text: str, url: str) -> str:
    """Return a message of an engine without the password that it may repeat."""
    login = url.partition("://")[2].rpartition("@")[0]
    options = [
        value for name, value in parse_qsl(url.partition("?")[2]) if any(word in name.lower() for word in _SECRETS)
    ]
    secrets = {url, login, login.partition(":")[2], *options}
    for secret in sorted(secrets | {unquote_plus(secret) for secret in secrets}, key=len, reverse=True):
        if secret:
            text = text.replace(secret, "...")
    return text
