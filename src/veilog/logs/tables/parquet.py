"""Parquet: the flat table with its types, and metadata that a flat table lacks.

The file's own metadata (key ``veilog``, JSON) keep those of the log and the cases without events. Where cases share a
name or are not in the order of their first events, a column ``case:index`` keeps them apart. Text is written as text,
because not every program takes categories for it; the metadata list the columns that are categories here.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from veilog._files import reason
from veilog.errors import InputError, OutputError
from veilog.logs.eventlog import ACTIVITY, CASE_INDEX, EVENT_INDEX, EventLog
from veilog.logs.input.formats import ReadRequest
from veilog.logs.input.source import Source, check_stored
from veilog.logs.metadata import Metadata, metadata_from, metadata_to
from veilog.logs.tables.events import flat_table
from veilog.logs.tables.table_reader import BATCH, Notes, TableReader, table_reader_of

_KEY = b"veilog"
_UNZIPPED = 1 << 30
"""Largest size in bytes of a file in a zip, which is held in memory."""
_GROUP = 1 << 19
"""Number of rows of a group in the files written."""


class _Parquet(TableReader):
    name = "Parquet"
    suffixes = (".parquet",)
    typed = True

    def columns(self, source: Source) -> list[str]:
        return list(open_file(source).schema_arrow.names)

    def rows(self, source: Source) -> int:
        return int(open_file(source).metadata.num_rows)

    def notes(self, source: Source) -> Notes:
        return source.once(_notes)

    def table(self, source: Source, asked: ReadRequest) -> pa.Table:
        try:
            table = open_file(source).read()
            table.validate(full=True)  # text that is not UTF-8 would fail later, and worse
        except (pa.ArrowException, OSError) as error:
            raise InputError("parquet-data-not-readable", path=source.path, first_line=_first_line(error)) from error
        return table.replace_schema_metadata(None)

    def batches(
        self, source: Source, asked: ReadRequest, columns: Sequence[str] | None = None, size: int = BATCH
    ) -> Iterator[pa.RecordBatch]:
        yield from open_file(source).iter_batches(size, columns=None if columns is None else list(columns))

    def in_pandas(self, source: Source) -> str:
        return f"pandas.read_parquet({str(source.path)!r})"

    def write(self, log: EventLog, file: BinaryIO, target: Path, *, lossy: bool) -> None:
        """Write the flat table with everything needed to get the same log back."""
        eventless = None
        if _needs_case_index(log):
            empty = np.flatnonzero(np.diff(log.offsets) == 0)
            eventless = log.cases.take(pa.array(empty)).append_column(CASE_INDEX, pa.array(empty, pa.int64()))
        self.write_pieces([log], file, target, lossy=lossy, eventless=eventless)

    def write_pieces(
        self, pieces: Iterable[EventLog], file: BinaryIO, target: Path, *, lossy: bool, eventless: pa.Table | None
    ) -> None:
        _write_pieces(pieces, file, eventless)


PARQUET = _Parquet()


def is_parquet(source: Source) -> bool:
    """Return True if this log is a Parquet file whose name others can open, too."""
    return table_reader_of(source) is PARQUET and not source.zipped


def open_file(source: Source) -> pq.ParquetFile:
    """Return the file, opened once, or raise an :class:`InputError` with the reason."""
    return source.once(_open_parquet)


def _open_parquet(source: Source) -> pq.ParquetFile:
    path = source.path
    try:
        check_stored(path)
        file = pa.BufferReader(source.content(_UNZIPPED)) if source.zipped else pa.OSFile(str(path))
        metadata = pq.read_metadata(file)
        # Times of 96 bits, as Spark writes them, reach from 1677 to 2262 in nanoseconds, and what is beyond turns over.
        return pq.ParquetFile(
            file, metadata=metadata, read_dictionary=_categories(metadata), coerce_int96_timestamp_unit="us"
        )
    except FileNotFoundError:
        raise InputError("file-missing", path=path) from None
    except PermissionError as error:
        raise InputError("file-not-readable", path=path, reason=reason(error)) from error
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InputError("parquet-file-not-readable", path=path, first_line=_first_line(error)) from error


def _categories(metadata: pq.FileMetaData) -> list[str]:
    """Return the text columns to read as categories; none for foreign, damaged files."""
    try:
        found = json.loads((metadata.metadata or {}).get(_KEY, b"{}")).get("categories", [])
    except (ValueError, AttributeError):
        return []  # the error is raised where the rest of it is read
    return [name for name in metadata.schema.names if name in found] if isinstance(found, list) else []


def _notes(source: Source) -> Notes:
    """Return the notes in the file's metadata; none for files of other programs."""
    schema = open_file(source).schema_arrow
    raw = (schema.metadata or {}).get(_KEY)
    if raw is None:
        return Notes()
    try:
        facts = json.loads(raw)
        empty = facts.get("empty_cases")
        table = None if empty is None else pa.ipc.open_stream(base64.b64decode(empty, validate=True)).read_all()
        if table is not None and CASE_INDEX not in table.column_names:
            raise ValueError("empty cases without index")
        key = CASE_INDEX if facts.get("case_index") else None
        if key is not None and key not in schema.names:
            raise ValueError("no case:index")
        return Notes(metadata_from(facts["metadata"]), key, table)
    except (ValueError, KeyError, TypeError, AttributeError, binascii.Error, pa.ArrowException) as error:
        raise InputError("parquet-metadata-damaged", path=source.path, first_line=_first_line(error)) from error


def _write_pieces(logs: Iterable[EventLog], file: BinaryIO, eventless: pa.Table | None) -> None:
    """Write one log that comes in pieces, with the columns and metadata of the first.

    There is at least one piece. Cases are in the order in which they come. Either all have events and names that
    distinguish them, or ``eventless`` (maybe without rows) lists those without events, and a column ``case:index``
    distinguishes cases.
    """
    writer, waiting, rows, groups, cases = None, [], 0, 0, 0
    from concurrent.futures import Future, ThreadPoolExecutor  # here, as most files are only read

    pool = ThreadPoolExecutor(1)  # writes a group of rows while the next is made
    written: Future[None] | None = None
    try:
        for log in logs:
            empty = int((np.diff(log.offsets) == 0).sum())
            if empty and eventless is None:
                raise OutputError("parquet-cases-without-event", empty=empty)
            table = flat_table(log, keyed=True, case_index=eventless is not None)
            if eventless is not None:
                place = table.column_names.index(CASE_INDEX)
                table = table.set_column(place, CASE_INDEX, pc.add(table.column(place), cases))
            cases += log.cases.num_rows
            table, categories = _as_text(table)
            if writer is None:
                schema = table.schema.with_metadata({_KEY: _facts(log.metadata, eventless, categories)})
                writer = pq.ParquetWriter(file, schema, compression="zstd")
            waiting.append(table.replace_schema_metadata(schema.metadata))
            rows += table.num_rows
            # Whole row groups, so that a file does not depend on the pieces in which its log came.
            while rows >= _GROUP:
                joined = _join_tables(waiting)
                if written is not None:
                    written.result()
                written = pool.submit(writer.write_table, joined.slice(0, _GROUP), row_group_size=_GROUP)
                waiting, rows, groups = [joined.slice(_GROUP)], rows - _GROUP, groups + 1
        if written is not None:
            written.result()
        if writer is not None and (rows or not groups):
            writer.write_table(_join_tables(waiting), row_group_size=_GROUP)
    finally:
        pool.shutdown()
        if writer is not None:
            writer.close()


def _join_tables(tables: list[pa.Table]) -> pa.Table:
    return tables[0] if len(tables) == 1 else pa.concat_tables(tables).combine_chunks()


def _as_text(table: pa.Table) -> tuple[pa.Table, list[str]]:
    """Return the table with its categories as text, and the names of these columns."""
    categories = [field.name for field in table.schema if pa.types.is_dictionary(field.type)]
    for name in categories:
        place = table.column_names.index(name)
        field = table.schema.field(name)
        table = table.set_column(
            place, field.with_type(field.type.value_type), table.column(name).cast(field.type.value_type)
        )
    return table, categories


def _facts(metadata: Metadata, eventless: pa.Table | None, categories: list[str]) -> bytes:
    """Return the metadata of the file, apart from the table."""
    facts: dict[str, Any] = {"format": 1, "metadata": metadata_to(metadata), "categories": categories}
    if eventless is not None:
        facts["case_index"] = True
        if eventless.num_rows:
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(
                sink, eventless.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")
            ) as stream:
                stream.write_table(eventless)
            facts["empty_cases"] = base64.b64encode(sink.getvalue().to_pybytes()).decode("ascii")
    return json.dumps(facts, ensure_ascii=False).encode()


def _needs_case_index(log: EventLog) -> bool:
    """Return True if names and rows do not reveal the order of the cases."""
    sizes = np.diff(log.offsets)
    names = log.cases.column(ACTIVITY)
    if not sizes.all() or names.null_count or len(pc.unique(names)) < len(names):
        return True
    index = log.events.column(EVENT_INDEX).to_numpy()
    first = np.minimum.reduceat(index, log.offsets[:-1]) if len(index) else index
    return not bool((first[1:] > first[:-1]).all())


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0][:200]
