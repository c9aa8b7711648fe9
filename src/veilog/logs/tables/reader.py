"""What all readers of tables share: a format says where its columns and rows are, the rules for rows are the same."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from veilog.logs.eventlog import EventLog
from veilog.logs.findings import Findings
from veilog.logs.input.reader import ReadRequest, reader_of
from veilog.logs.input.roles import Roles
from veilog.logs.input.source import Source
from veilog.logs.metadata import Metadata
from veilog.logs.tables.events.checks import LineOf
from veilog.logs.tables.events.rows import log_from_table, with_empty_cases

__all__ = ["BATCH", "Notes", "Remark", "TableReader", "note", "table_reader_of"]

BATCH = 1 << 17
"""Rows of a batch, unless somebody wants fewer."""


@dataclass(frozen=True)
class Remark:
    """Something about a file as a whole that must be said: a rule of findings, and an example."""

    rule: str
    example: str
    count: int = 1
    line: int | None = None


@dataclass(frozen=True)
class Notes:
    """What a file says beside its table."""

    metadata: Metadata = field(default_factory=Metadata)
    case_key: str | None = None
    """The column that tells cases apart, where their names do not."""
    empty: pa.Table | None = None
    """The cases without events, with their ``case:index``."""
    remarks: tuple[Remark, ...] = ()
    among: tuple[str, ...] = ()
    """What the table was chosen from: the sheets of a workbook that have data, the types of objects."""


class TableReader(ABC):
    """A format of tables with a row for each event; see :class:`veilog.logs.input.reader.Reader`.

    Its columns are all that is known beforehand, its rows come as one table or in batches. Which column is what, and
    what becomes of a row in which something is missing or wrong, is decided here as for every table.
    """

    name: str
    suffixes: tuple[str, ...] = ()
    typed: bool = False
    declares: bool = True
    """Whether it is declared which columns there are; where not, there are those that some event has, and no event may
    decide what a column means for others: roles go by fixed names."""
    heeds: tuple[str, ...] = ()
    """What of a :class:`veilog.logs.input.source.Layout` means something in this format."""

    def recognises(self, source: Source) -> bool:
        return source.suffix in self.suffixes

    @abstractmethod
    def columns(self, source: Source) -> list[str]:
        """Return the names of the columns, without reading the rows."""

    @abstractmethod
    def table(self, source: Source, asked: ReadRequest) -> pa.Table:
        """Return all columns of all rows, in the order of the rows."""

    def batches(
        self, source: Source, asked: ReadRequest, columns: Sequence[str] | None = None, size: int = BATCH
    ) -> Iterator[pa.RecordBatch]:
        """Yield these columns of the rows (or all), in their order and as a rule ``size`` at a time."""
        table = self.table(source, asked)
        yield from (table if columns is None else table.select(list(columns))).to_batches(max_chunksize=size)

    def rows(self, source: Source) -> int | None:
        """Return how many rows there are, where the file says so."""
        return None

    def notes(self, source: Source) -> Notes:
        """Return what the file says beside its table."""
        return Notes()

    def line_of(self, source: Source) -> LineOf | None:
        """Return what tells on which line of the file a row is, where it has lines."""
        return None

    def read(self, source: Source, asked: ReadRequest) -> EventLog:
        """Return the log in all rows, with all columns as attributes."""
        assert asked.roles is not None, "the columns of a table have roles"
        notes = self.notes(source)
        log = log_from_table(
            self.table(source, asked),
            asked.roles,
            asked.findings,
            source=None if source.name is None else str(source.path),
            line_of=self.line_of(source),
            metadata=notes.metadata,
            case_key=notes.case_key,
        )
        return log if notes.case_key is None else with_empty_cases(log, notes.empty, asked.findings)


def note(source: Source, roles: Roles, findings: Findings) -> None:
    """Say what must be said of a table before its rows are read: about its file, and about its columns of times."""
    for file in source.files():
        reader = table_reader_of(file)
        for remark in () if reader is None else reader.notes(file).remarks:
            findings.add(remark.rule, remark.example, line=remark.line, count=remark.count)
    for rule, example in roles.remarks:
        findings.add(rule, example)


def table_reader_of(source: Source) -> TableReader | None:
    """Return the reader of a table; None for a log that is no table, such as XES."""
    found = reader_of(source)
    return found if isinstance(found, TableReader) else None
