"""Tools for tests of tables: text as a file, and logs compared by value."""

from pathlib import Path

import pyarrow as pa

from veilog.logs import files
from veilog.logs.eventlog import TIMESTAMP, EventLog


def read(tmp_path: Path, text: str | bytes, name: str = "log.csv", **options) -> EventLog:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return files.read(path, **options)


def times(log: EventLog) -> list[str | None]:
    return [None if t is None else t.isoformat() for t in log.events[TIMESTAMP].to_pylist()]


def found(log: EventLog) -> dict[str, int]:
    return {finding.rule: finding.count for finding in log.findings}


def same(first: EventLog, second: EventLog) -> None:
    """Assert that logs are equal in every value and type, whatever the dictionaries."""
    for a, b in ((first.events, second.events), (first.cases, second.cases)):
        assert a.column_names == b.column_names
        for name in a.column_names:
            assert a[name].to_pylist() == b[name].to_pylist(), name
            assert _plain(a[name].type) == _plain(b[name].type), name


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind
