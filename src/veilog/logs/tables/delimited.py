"""Delimited text (CSV, TSV) to Arrow batches of strings, strictly: whatever cannot be told apart safely is refused.

The delimiter is found out from the header, the rest is RFC 4180: a quote opens a field or closes it, a quote inside is
doubled, every row has as many fields as the header. So no row can vanish inside another one without an error. Text is
UTF-8; a value that is not is read as Windows-1252, that value alone, so that no row decides how another one is read.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
from pyarrow import csv as arrow_csv

from veilog.errors import InputError
from veilog.logs.input.source import Source
from veilog.logs.input.streams import MAX_VALUE, consumed_fraction
from veilog.logs.tables.dialects import Dialect, sniffed
from veilog.logs.tables.watched import BLOCK, Watched

__all__ = ["Foreign", "batches", "line_of_row", "write_rows"]

Foreign = Callable[[int, int], None]
"""Told how many values were no UTF-8, and the line of the first."""


def batches(
    source: Source, *, columns: Sequence[str] | None = None, progress: Any = None, foreign: Foreign | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows as batches of string columns (these ones, or all): nothing between delimiters is null, ``""`` is text.

    Raises :class:`InputError` with the line; ``foreign`` is told at the end of values that were no UTF-8.
    """
    dialect, path = source.once(sniffed), source.path
    with source.stream() as stream:
        checked = Watched(stream, dialect, path)
        try:
            reader = arrow_csv.open_csv(
                checked,
                read_options=arrow_csv.ReadOptions(
                    block_size=BLOCK, column_names=None if dialect.headed else list(dialect.columns)
                ),
                parse_options=arrow_csv.ParseOptions(delimiter=dialect.delimiter, newlines_in_values=True),
                convert_options=arrow_csv.ConvertOptions(
                    column_types=dict.fromkeys([*dialect.columns, ""], pa.string()),
                    null_values=[""],
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=False,
                ),
            )
            for batch in reader:
                if checked.error is not None:
                    break
                if progress is not None:
                    progress("reading rows", consumed_fraction(stream))
                yield _pick(batch, dialect, columns, path)
        except pa.ArrowCancelled:
            raise KeyboardInterrupt from None
        except pa.ArrowException as error:
            checked.drain(MAX_VALUE)
            if checked.error is None:
                _explain(source, error)
        checked.drain()
        if checked.error is not None:
            raise checked.error
        if checked.foreign and foreign is not None:
            foreign(checked.foreign, checked.foreign_line)


def _pick(batch: pa.RecordBatch, dialect: Dialect, columns: Sequence[str] | None, path: Path) -> pa.RecordBatch:
    if batch.num_columns != len(dialect.columns):
        raise InputError("header-cannot-read-safely", path=path, line=1)
    wanted = range(batch.num_columns) if columns is None else [dialect.columns.index(name) for name in columns]
    arrays = [batch.column(i) for i in wanted]
    if any(array.type != pa.string() for array in arrays):
        raise InputError("header-cannot-read-safely", path=path, line=1)
    return pa.RecordBatch.from_arrays(arrays, names=[dialect.columns[i] for i in wanted])


def _explain(source: Source, error: Exception) -> None:
    """Say in the user's words, and with the line, why Arrow gave up."""
    dialect, path = source.once(sniffed), source.path
    for line, row in _rows(source):
        if len(row) != len(dialect.columns):
            raise InputError(
                "row-fields",
                path=path,
                line=line,
                number=len(row),
                value="header" if dialect.headed else "first",
                number_2=len(dialect.columns),
                delimiter=dialect.delimiter,
            ) from error
    if "straddl" in str(error):
        raise InputError("row-longer-mb", path=path, block=BLOCK >> 20) from error
    if "empty" in str(error).lower():
        return  # a header and nothing else: no batch, and the caller says so
    raise InputError("rows-cannot-read", path=path, splitlines=str(error).splitlines()[0]) from error


def line_of_row(source: Source, row: int) -> int | None:
    """The line on which a row (0 is the first after the header) starts."""
    before = int(source.once(sniffed).headed)
    for number, (line, _) in enumerate(_rows(source)):
        if number == row + before:
            return line
    return None


def _rows(source: Source) -> Iterator[tuple[int, list[str]]]:
    """The rows one by one with their lines; slow, for explaining only. Ends early where even this reader is lost."""
    dialect = source.once(sniffed)
    with source.stream() as stream:
        checked = io.BufferedReader(Watched(stream, dialect, source.path))
        text = io.TextIOWrapper(checked, encoding="utf-8", newline="")
        # Of a line without end only so much, which is more than any row may have.
        reader = csv.reader(iter(lambda: text.readline(2 * BLOCK), ""), delimiter=dialect.delimiter)
        before = dialect.line - 1
        line = dialect.line
        try:
            for row in reader:
                if row:
                    yield line, row
                line = before + reader.line_num + 1
        except csv.Error:
            return


def write_rows(table: pa.Table, out: BinaryIO, *, delimiter: str, header: bool = True) -> None:
    """Write a table of plain columns as RFC 4180 text in UTF-8."""
    options = arrow_csv.WriteOptions(include_header=header, delimiter=delimiter, quoting_style="needed")
    arrow_csv.write_csv(table, out, options)
