"""How much of a log is read: all columns into memory, or where it is large, onto the disk, or its variants alone."""

from __future__ import annotations

from veilog.cli.shared.common import Reading, read_log, read_variants, shown_progress
from veilog.logs.eventlog import EventLog
from veilog.logs.input.source import Source
from veilog.logs.stored.store import StoredLog
from veilog.logs.stored.storing import is_elsewhere, is_large, stored, whole_of
from veilog.logs.tables.reader import table_reader_of
from veilog.logs.variants import Variants
from veilog.releasing.request import ReleaseRequest

_LARGE_TEXT = 256 << 20
"""Bytes of a text from which on its events are grouped without reading the other columns."""
_GZIPPED = 10


def read_events(source: Source, reading: Reading, *, for_whole: str | None = None) -> EventLog | StoredLog:
    """The log with its events, in memory for the method that is named, because it takes the log as a whole.

    A large Parquet file stays on disk where that is possible, several files and tables of engines always do.
    """
    if is_elsewhere(source):
        with shown_progress() as progress:
            asked = reading.asked(source, progress)
            found = stored(source, asked) if for_whole is None else whole_of(source, asked, for_whole)
    elif for_whole is None and is_large(source):
        with shown_progress() as progress:
            found = stored(source, reading.asked(source, progress))
    else:
        found = None
    return read_log(source, reading) if found is None else found


def read_needed(source: Source, planned: ReleaseRequest, reading: Reading) -> EventLog | StoredLog | Variants:
    """The log, or as much of it as the release needs."""
    if planned.needs_events:
        return read_events(source, reading, for_whole=planned.method.name if planned.method.full_log else None)
    if fits(source):
        return read_log(source, reading)  # all columns: one of them may tell persons, which the owner should know
    return read_variants(source, reading)


def fits(source: Source) -> bool:
    """Whether the log is one file that may be read with all its columns; others are grouped, their columns unread."""
    if source.engine != "duckdb" or not source.is_file or is_large(source):
        return False
    reader = table_reader_of(source)
    if reader is None or reader.rows(source) is not None:
        return True
    return source.size <= (_LARGE_TEXT // _GZIPPED if source.packed else _LARGE_TEXT)
