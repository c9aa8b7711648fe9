"""Fixtures for tests of the command: a log in a folder of each module's own."""

from pathlib import Path

import pytest

import veilog
from veilog.logs.synthetic.hospital import hospital


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("logs")


@pytest.fixture(scope="module")
def log(folder: Path) -> Path:
    path = folder / "hospital.xes"
    veilog.write(hospital(500, seed=3), path)
    return path
