"""Which engine groups the events: ``duckdb``, ``duckdb:FILE``, ``spark``, or the URL of a warehouse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from veilog.errors import EngineError, InputError, MissingExtraError, ParameterError
from veilog.logs.engines.files import DuckFiles
from veilog.logs.engines.ibis import IbisTable, first_line
from veilog.logs.engines.source import Means, VariantSource
from veilog.logs.engines.table import DuckTable
from veilog.logs.paths import format_of, log_files

__all__ = ["named"]


def named(name: str, engine: str, means: Means, limit: int | None) -> VariantSource | None:
    """The log of this name on this engine: files, or a table. None for a file that must be read whole (XES)."""
    if engine in ("duckdb", "spark"):
        _no_index(means)
        paths = tuple(log_files(name))
        if engine == "duckdb":
            return None if format_of(paths[0]) == ".xes" else DuckFiles(paths, means, limit)
        from veilog.logs.engines.spark import SparkFiles

        return SparkFiles(paths, means)
    if engine.startswith("duckdb:") and not engine.startswith("duckdb://"):
        return DuckTable(Path(engine.removeprefix("duckdb:")), name, means)
    if "://" in engine:
        return IbisTable(_connected(engine, name), means.index, name=name)
    raise ParameterError(
        f"There is no engine {engine!r}.",
        parameter="engine",
        advice="Take duckdb, spark, duckdb:FILE for a table of a DuckDB database, or a URL that Ibis connects to.",
    )


def _no_index(means: Means) -> None:
    if means.index is not None:
        raise ParameterError(
            "Rows of files have an order, which decides events of equal time.",
            parameter="index",
            advice="Leave --index away; it is for tables of a database.",
        )


def _connected(url: str, name: str) -> Any:
    """The table of this name where the URL leads. The URL may hold a password: no message repeats it."""
    kind = url.partition("://")[0]
    try:
        import ibis
    except ImportError as error:
        raise MissingExtraError(f"--engine {kind}://...", extra="spark") from error
    try:
        backend = ibis.connect(url)
    except ImportError as error:
        raise EngineError(
            f"Ibis lacks what it needs for {kind}.", advice=f"pip install 'ibis-framework[{kind}]'"
        ) from error
    except Exception as error:  # every engine has a family of errors of its own
        raise EngineError(
            f"There is no connection to {kind}://...: {_without(first_line(error), url)}",
            advice="See 'Backends' in the documentation of Ibis for what its URL must say.",
        ) from error
    *database, table = name.split(".")
    try:
        return backend.table(table, database=tuple(database) if len(database) > 1 else "".join(database) or None)
    except Exception as error:
        raise InputError(
            f"There is no table {name!r} on {kind}://...: {_without(first_line(error), url)}",
            advice="Give its name as LOG, with its schema before it: schema.table.",
        ) from error


def _without(text: str, url: str) -> str:
    """A message of an engine without the password it may repeat."""
    login = url.partition("://")[2].rpartition("@")[0]
    for secret in {url, login, login.partition(":")[2]}:
        if secret:
            text = text.replace(secret, "...")
    return text
