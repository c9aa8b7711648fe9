"""The reader and writer of delimited text: CSV and TSV, plain or gzip."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from veilog.logs.eventlog import EVENT_INDEX, EventLog
from veilog.logs.findings import Findings
from veilog.logs.input.reader import ReadRequest
from veilog.logs.input.source import Source, suffix_of
from veilog.logs.tables import delimited, dialects
from veilog.logs.tables.cells.columns import typed, written
from veilog.logs.tables.events.checks import LineOf
from veilog.logs.tables.events.flat import check_flat, flat_table
from veilog.logs.tables.reader import BATCH, Notes, TableReader

__all__ = ["FOR_SPREADSHEETS", "TEXT"]

_RUN = re.compile(r"^([=+\-@\t\r\n])")
"""How a text begins that spreadsheets take for a formula, also after white space that they leave out."""


class _Text(TableReader):
    """Attributes that are numbers, truth values and times with an offset become typed where the whole column is of one
    kind and nothing of the text is lost by it; identifiers like ``007`` or ``1e5`` stay text.
    """

    name = "CSV"
    suffixes = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
    heeds = ("header",)

    def __init__(self, *, spreadsheet_safe: bool = False) -> None:
        self._spreadsheet_safe = spreadsheet_safe

    def columns(self, source: Source) -> list[str]:
        return list(source.once(dialects.sniffed).columns)

    def table(self, source: Source, asked: ReadRequest) -> pa.Table:
        parts = list(delimited.batches(source, progress=asked.progress, foreign=_noting(asked.findings)))
        names = self.columns(source)
        table = pa.Table.from_batches(parts) if parts else pa.table({name: pa.array([], pa.string()) for name in names})
        if asked.progress is not None:
            asked.progress("ordering events", None)
        plain = {EVENT_INDEX} | set(() if asked.roles is None else asked.roles.named)
        return pa.table({name: table[name] if name in plain else typed(table[name]) for name in table.column_names})

    def batches(
        self, source: Source, asked: ReadRequest, columns: Sequence[str] | None = None, size: int = BATCH
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows as text, in batches of some megabytes, whatever ``size`` says."""
        yield from delimited.batches(source, columns=columns, foreign=_noting(asked.findings))

    def notes(self, source: Source) -> Notes:
        return Notes(remarks=dialects.titles(source))

    def line_of(self, source: Source) -> LineOf:
        return lambda row: delimited.line_of_row(source, row)

    def write(self, log: EventLog, file: BinaryIO, target: Path, *, lossy: bool) -> None:
        """Write the events as text in UTF-8. What the log says about itself (extensions, classifiers) has no place
        there; empty text is ``""``, a missing value is nothing.
        """
        self.write_pieces([log], file, target, lossy=lossy)

    def write_pieces(
        self,
        pieces: Iterable[EventLog],
        file: BinaryIO,
        target: Path,
        *,
        lossy: bool,
        eventless: pa.Table | None = None,
    ) -> None:
        """Write one log that comes in pieces with the same columns; ``eventless`` has no place in text."""
        delimiter = "\t" if suffix_of(target).startswith(".tsv") else ","
        for number, log in enumerate(pieces):
            if not lossy:
                check_flat(log, target)
            table = flat_table(log)
            columns = {name: written(table[name]) for name in table.column_names}
            made = pa.table(columns)
            if self._spreadsheet_safe:
                safe = [_not_run(column) for column in made.columns]
                made = pa.table(safe, names=[_RUN.sub(r"'\1", name) for name in made.column_names])
            delimited.write_rows(made, file, delimiter=delimiter, header=number == 0)


def _noting(findings: Findings) -> delimited.Foreign:
    """What notes values of text that are no UTF-8."""

    def note(count: int, line: int) -> None:
        findings.add("not-utf8", "read as Windows-1252", line=line, count=count)

    return note


def _not_run(column: Any) -> Any:
    """The column with an apostrophe before each text that a spreadsheet would run."""
    return pc.replace_substring_regex(column, _RUN.pattern, r"'\1") if pa.types.is_string(column.type) else column


TEXT = _Text()
FOR_SPREADSHEETS = _Text(spreadsheet_safe=True)
"""Writes text such that a spreadsheet runs none of it: see :func:`veilog.logs.files.write`."""
