"""Fixtures for tests of the work behind the pages."""

from pathlib import Path

import pytest

from veilog.web.jobs.records import ServerSettings


@pytest.fixture
def settings(tmp_path: Path) -> ServerSettings:
    return ServerSettings(folder=tmp_path, ledger=tmp_path / "all.ledger", token="t")
