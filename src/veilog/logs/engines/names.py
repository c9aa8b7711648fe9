"""Which engine groups the events: ``duckdb``, ``duckdb:FILE``, ``spark``, or the URL of a warehouse.

An engine is imported when a log needs it.
"""

from __future__ import annotations

import re
import weakref
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote_plus

from veilog.errors import EngineError, InputError, MissingExtraError, ParameterError, meant
from veilog.logs.engines.engine import VariantSource, first_line
from veilog.logs.engines.ibis import AS_CLIENT, IbisTable
from veilog.logs.input.reader import reader_of
from veilog.logs.input.source import ReadOptions, Source, is_ibis
from veilog.logs.tables.reader import table_reader_of
from veilog.messages import Message

_EXTRAS = {"postgres": "postgres", "postgresql": "postgres"}
_SECRETS = ("password", "token", "secret", "key")
"""What the name of an option in a URL has in it that is nobody's business."""


def engine_of(source: Source) -> VariantSource | None:
    """Return where the events of this log are grouped; None for one that is read whole, such as XES."""
    if source.name is None or source.options.engine not in ("duckdb", "spark"):
        return source.once(_elsewhere)
    _no_index(source.options)
    files = _of_one_format(source)
    if source.options.engine == "spark":
        from veilog.logs.engines.spark import SparkFiles

        return SparkFiles(files, source.options)
    if table_reader_of(files[0]) is None:
        return None
    from veilog.logs.engines.duckdb import DuckFiles

    return DuckFiles(files, source.options)


def _elsewhere(source: Source) -> VariantSource | None:
    """A table that is no file: of Ibis, of a DuckDB database, or where a URL leads, to which it connects once."""
    options = source.options
    engine = options.engine
    if source.name is None:
        return IbisTable(source.given, options.index) if is_ibis(source.given) else None
    if engine.startswith("duckdb:") and not engine.startswith("duckdb://"):
        from veilog.logs.engines.duckdb import DuckTable

        return DuckTable(Path(engine.removeprefix("duckdb:")), source.name, options)
    if "://" in engine:
        return IbisTable(_connected(source, source.name), options.index, name=source.name)
    raise ParameterError(
        "engine-unknown", parameter="engine", called=called(engine), meant=meant(engine, ("duckdb", "spark"))
    )


def _of_one_format(source: Source) -> tuple[Source, ...]:
    """The files of one log, all of one known format."""
    files = source.files()
    readers = {file.format: reader_of(file) for file in files}
    if len(readers) > 1:
        raise InputError("files-formats-differ", path=source.name, names=", ".join(sorted(readers)))
    if len(files) > 1 and table_reader_of(files[0]) is None:
        raise InputError("files-not-one-log", path=source.name, name=reader_of(files[0]).name)
    return files


def _no_index(options: ReadOptions) -> None:
    if options.index is not None:
        raise ParameterError("rows-order-of-files", parameter="index")


def called(engine: str) -> str:
    """Return what messages call an engine: the kind alone of what may be a URL, and hold a password."""
    kind, colon, rest = engine.partition(":")
    return engine if kind == "duckdb" and not rest.startswith("//") else f"{kind}://..." if colon else engine


def _connected(source: Source, name: str) -> Any:
    """The table of this name where the URL leads. The URL may hold a password: no message repeats it."""
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
    except ValueError:  # which may show a part of the password, taken for a port
        raise EngineError("engine-url-not-understood", kind=kind) from None
    except ImportError as error:
        if kind in _EXTRAS:
            raise MissingExtraError(Message("engine-of-kind", kind=f"{kind}://..."), extra=_EXTRAS[kind]) from error
        raise EngineError("engine-ibis-incomplete", kind=kind) from error
    except Exception as error:  # every engine has a family of errors of its own
        raise EngineError("engine-not-connected", kind=kind, without=_without(first_line(error), url)) from error
    if kind in _EXTRAS:  # others may share what they connect to, as Spark does its session
        weakref.finalize(source, backend.disconnect)
    *database, table = name.split(".")
    try:
        return backend.table(table, database=tuple(database) if len(database) > 1 else "".join(database) or None)
    except Exception as error:
        raise InputError(
            "engine-table-missing", name=name, kind=kind, without=_without(first_line(error), url)
        ) from error


def _torn(url: str) -> bool:
    """Whether a password with a sign of URLs in it ends what should name the host."""
    rest = url.partition("://")[2]
    host = re.split("[/?#]", rest, maxsplit=1)[0]
    return "@" in rest and "@" not in host


def _without(text: str, url: str) -> str:
    """A message of an engine without the password it may repeat."""
    login = url.partition("://")[2].rpartition("@")[0]
    options = [
        value for name, value in parse_qsl(url.partition("?")[2]) if any(word in name.lower() for word in _SECRETS)
    ]
    secrets = {url, login, login.partition(":")[2], *options}
    for secret in sorted(secrets | {unquote_plus(secret) for secret in secrets}, key=len, reverse=True):
        if secret:
            text = text.replace(secret, "...")
    return text
