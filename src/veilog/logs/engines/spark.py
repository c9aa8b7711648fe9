"""Parquet files as a table of Spark, in the active session or in a local one.

The position of an event is the place of its file and the number of its row in that, as for DuckDB. So both order events
of equal time alike. The output of Spark's Java goes to a temporary file.
"""

from __future__ import annotations

import contextlib
import logging
import re
import secrets
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa

from veilog._process import child_environment, machine_cores
from veilog.errors import EngineError, InputError, MissingExtraError, ParameterError
from veilog.logs.engines.engine import Grouped, first_line, refuse_life_cycle, spill_settings
from veilog.logs.engines.ibis import IbisTable, shorten_errors
from veilog.logs.eventlog import EVENT_INDEX
from veilog.logs.findings import Findings
from veilog.logs.input.roles import Roles
from veilog.logs.input.source import DEFAULT_OPTIONS, Progress, ReadOptions, Source, bytes_of, silent
from veilog.logs.tables.cells import plain_type
from veilog.logs.tables.parquet import PARQUET, is_parquet, open_file
from veilog.messages import Message

_ROW_BITS = 40
_EVENTS_A_TASK = 500_000
_QUIET = "status=off\nrootLogger.level=off\n"


@dataclass(frozen=True)
class SparkFiles:
    """Log in one or more Parquet files, in this order."""

    files: tuple[Source, ...]
    options: ReadOptions = DEFAULT_OPTIONS

    @property
    def paths(self) -> tuple[Path, ...]:
        return tuple(file.path for file in self.files)

    def columns(self) -> list[str]:
        _refuse_text(self.files)
        return PARQUET.columns(self.files[0])

    def group(self, roles: Roles, findings: Findings, progress: Progress = silent) -> Grouped:
        refuse_life_cycle(roles)
        _refuse_text(self.files)
        schema, rows = self._schema(roles)
        progress("starting Spark", None)
        with session(self.options) as spark:
            tasks = max(rows // _EVENTS_A_TASK, 2 * spark.sparkContext.defaultParallelism)
            spark.conf.set("spark.sql.shuffle.partitions", str(tasks))
            view = f"veilog_{secrets.token_hex(8)}"
            with shorten_errors():
                self._frame(spark, roles, schema).createOrReplaceTempView(view)
            try:
                return self._group_events(spark, view, findings, progress)
            finally:
                with contextlib.suppress(Exception):  # a session that died has no views
                    spark.catalog.dropTempView(view)

    def _group_events(self, spark: Any, view: str, findings: Findings, progress: Progress) -> Grouped:
        import ibis

        with shorten_errors():
            table = ibis.pyspark.connect(spark).table(view)
        index = EVENT_INDEX if EVENT_INDEX in table.columns else "i"
        source = IbisTable(table, None if index == EVENT_INDEX else index, placed=True, name=str(self.paths[0].parent))
        return source.group(Roles("c", "a", "t"), findings, progress)

    def _schema(self, roles: Roles) -> tuple[pa.Schema, int]:
        """Return the columns and rows of the files; refuse files that do not fit Spark."""
        schemas, rows = [], 0
        wanted = [roles.case, roles.activity, roles.timestamp]
        for file in self.files:
            path, schema, notes = file.path, open_file(file).schema_arrow, PARQUET.notes(file)
            rows += PARQUET.rows(file)
            if notes.case_key is not None or notes.empty is not None:
                raise InputError("spark-file-needs-index", path=path)
            missing = [name for name in wanted if name not in schema.names]
            if missing:
                raise InputError("spark-column-missing", path=path, missing=missing[0], name=self.paths[0].name)
            given = [EVENT_INDEX] if EVENT_INDEX in schema.names else []
            schemas.append((path, pa.schema([schema.field(name) for name in wanted + given]).remove_metadata()))
        first = schemas[0][1]
        for path, schema in schemas:
            if [(f.name, plain_type(f.type)) for f in schema] != [(f.name, plain_type(f.type)) for f in first]:
                raise InputError("spark-column-types-differ", path=path, name=self.paths[0].name)
        return first, rows

    def _frame(self, spark: Any, roles: Roles, schema: pa.Schema) -> Any:
        """Return columns c, a, t and i (the position), and the index of events, if any."""
        from pyspark.sql import functions as F

        frame = spark.read.parquet(*(re.sub(r"([\\*?\[\]{}])", r"\\\1", str(path.resolve())) for path in self.paths))
        files = [(name, self._place(name)) for name in frame.inputFiles()]
        files += [(re.sub("^file:/+", "file:/", name), place) for name, place in files]  # rows call their file so
        names, numbers = zip(*files, strict=True)
        places = F.broadcast(spark.createDataFrame(pa.table({"file": names, "place": pa.array(numbers, pa.int64())})))
        case, activity, time = (quote_name(name) for name in (roles.case, roles.activity, roles.timestamp))
        kind = schema.field(roles.timestamp).type
        if pa.types.is_timestamp(kind) and kind.unit == "ns":  # read as a number, see the session
            moment = F.expr(f"timestamp_micros(({time} - pmod({time}, 1000)) div 1000)")
        else:
            moment = F.col(time)
        columns = [F.col(case).alias("c"), F.col(activity).alias("a"), moment.alias("t")]
        if EVENT_INDEX in schema.names:
            columns.append(F.col(quote_name(EVENT_INDEX)).cast("long").alias(EVENT_INDEX))
        columns += [F.col("_metadata.file_path").alias("file"), F.col("_metadata.row_index").alias("row")]
        position = (F.shiftleft(F.col("place"), _ROW_BITS) + F.col("row")).alias("i")
        kept = [F.col(quote_name(name)) for name in frame.select(*columns).columns if name not in ("file", "row")]
        return frame.select(*columns).join(places, "file").select(*kept, position)

    def _place(self, name: str) -> int:
        """Return the place of the file that Spark calls so."""
        path = Path(unquote(urlsplit(name).path))
        places = {other.resolve(): place for place, other in enumerate(self.paths)}
        return places[path.resolve()]


def _refuse_text(files: tuple[Source, ...]) -> None:
    for file in files:
        if not is_parquet(file):
            raise InputError("spark-text-not-read", path=file.path)


def quote_name(name: str) -> str:
    """Return the name of a column as Spark takes it, whatever it contains."""
    return "`" + name.replace("`", "``") + "`"


@contextlib.contextmanager
def session(options: ReadOptions) -> Iterator[Any]:
    """Yield the active session with its own settings, or one of ours that ends here."""
    try:
        import ibis  # noqa: F401
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise MissingExtraError(Message("engine-of-kind", kind="spark"), extra="spark") from error
    active = SparkSession.getActiveSession()
    if active is not None:
        yield _apply_settings(active.newSession())
        return
    with spill_settings(options) as folder, _ctrl_c_as_before():
        context = _start_session(options, folder)
        logging.getLogger().addFilter(_drop_java_record)
        try:
            yield _apply_settings(SparkSession(context))
        finally:
            with contextlib.suppress(Exception):  # Java may have died, which an error has reported
                context.stop()
            logging.getLogger().removeFilter(_drop_java_record)


def _drop_java_record(record: logging.LogRecord) -> bool:
    """Filter out a hundred lines about a dead Java, for which our error has one."""
    return "py4j" not in record.pathname


@contextlib.contextmanager
def _ctrl_c_as_before() -> Iterator[None]:
    """Give Ctrl-C back: Spark takes it to cancel its jobs, and keeps it after its end."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if before is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


def _apply_settings(spark: Any) -> Any:
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    spark.conf.set("spark.sql.caseSensitive", "true")
    spark.conf.set("spark.sql.legacy.parquet.nanosAsLong", "true")
    spark.conf.set("spark.sql.execution.arrow.pyspark.enabled", "true")
    return spark


def _start_session(options: ReadOptions, folder: Path) -> Any:
    """Start a silent Spark that listens to this machine alone."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    (folder / "log4j2.properties").write_text(_QUIET)
    memory = f"{_megabytes(options.memory_limit)}m"
    settings = {
        "spark.master": f"local[{options.threads or machine_cores()}]",
        "spark.app.name": "veilog",
        "spark.driver.memory": memory,
        "spark.driver.maxResultSize": memory,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={folder / 'log4j2.properties'}",
        "spark.local.dir": str(folder),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    try:
        with (folder / "java").open("wb") as said:
            gateway = None
            if SparkContext._gateway is None:
                with child_environment():  # Java hands it on to Spark's workers, which are Python again
                    gateway = launch_gateway(conf, {"stdout": said, "stderr": said})  # type: ignore[no-untyped-call]
            return SparkContext(gateway=gateway, conf=conf)
    except Exception as error:  # a missing Java has many errors
        lines = [line.strip() for line in (folder / "java").read_text(errors="replace").splitlines() if line.strip()]
        reason = f"{lines[-1][:300]}." if lines else first_line(error)
        raise EngineError("spark-not-started", reason=reason) from error


def _megabytes(text: str) -> int:
    """Return ``2GB`` or ``800MB`` in whole megabytes, 512 at least."""
    size = (bytes_of(text) or 0) // 10**6
    if size < 1:
        raise ParameterError("spark-memory-limit-invalid", parameter="memory_limit", text=text)
    return max(size, 512)  # with less Spark does not start
