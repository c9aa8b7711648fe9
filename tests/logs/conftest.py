"""Shared by tests of logs: a reader of XES documents."""

from __future__ import annotations

from pathlib import Path

import pytest
from xes_oracle import assert_same, read_plain
from xes_tools import Reader

from veilog.logs.eventlog import EventLog
from veilog.logs.findings import Findings, Policy
from veilog.logs.xes.reader import read_xes


@pytest.fixture
def read(tmp_path: Path) -> Reader:
    """Read the document with the automatic choice of reader; the plain one must agree."""

    def reader(document: str | bytes, **policies: Policy) -> EventLog:
        path = tmp_path / "log.xes"
        path.write_bytes(document if isinstance(document, bytes) else f"<log>{document}</log>".encode())
        chosen = {rule.replace("_", "-"): policy for rule, policy in policies.items()}
        log = read_xes(path, findings=Findings(chosen))
        if "bad-value" not in chosen:
            assert_same(read_plain(path, Findings(chosen)), log)
        return log

    return reader
