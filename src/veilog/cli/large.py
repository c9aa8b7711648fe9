"""Reading a log whose events are asked about: into memory, or where it is large, onto the disk."""

from __future__ import annotations

from pathlib import Path

from veilog.cli.common import Grouping, Reading, read_log, shown_progress
from veilog.logs.eventlog import EventLog
from veilog.logs.stored import StoredLog, is_large, store

__all__ = ["read_events"]


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
