"""How much of a log is read: all columns into memory, or where it is large, onto the disk, or its variants alone."""

from __future__ import annotations

from pathlib import Path

from veilog.cli.common import Grouping, Reading, read_log, shown_progress
from veilog.logs.eventlog import EventLog
from veilog.logs.stored.store import StoredLog, is_large, store

__all__ = ["fits", "read_events"]

_LARGE_TEXT = 256 << 20
"""Bytes of a CSV from which on its events are grouped without reading the other columns."""
_GZIPPED = 10


def read_events(log: Path, reading: Reading, grouping: Grouping, *, in_memory: bool = False) -> EventLog | StoredLog:
    """The log with its events. A large Parquet file stays on disk where that is possible, unless ``in_memory``."""
    if in_memory or not is_large(log):
        return read_log(log, reading)
    with shown_progress() as progress:
        found = store(
            log,
            case=reading.case,
            activity=reading.activity,
            timestamp=reading.timestamp,
            lifecycle=reading.lifecycle,
            classifier=reading.classifier,
            policies=reading.policies(),
            memory_limit=grouping.memory_limit,
            temp_directory=grouping.temp_directory,
            progress=progress,
        )
    return read_log(log, reading) if found is None else found


def fits(log: Path, grouping: Grouping) -> bool:
    """Whether the log is one file that may be read with all its columns; others are grouped, their columns unread."""
    if grouping.engine != "duckdb" or not log.is_file() or is_large(log):
        return False
    name = log.name.lower()
    if name.endswith((".csv", ".tsv", ".csv.gz", ".tsv.gz")):
        return log.stat().st_size <= (_LARGE_TEXT // _GZIPPED if name.endswith(".gz") else _LARGE_TEXT)
    return True
