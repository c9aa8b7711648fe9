"""Shared by all tests: the folder of real logs, and Hypothesis without randomness of its own."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "repeatable", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=False
)
settings.load_profile("repeatable")


@pytest.fixture(scope="session")
def logs() -> Path:
    """The folder of real logs; without it the test is skipped."""
    folder = os.environ.get("VEILOG_LOGS")
    if not folder:
        pytest.skip("VEILOG_LOGS names no folder of real logs")
    return Path(folder)
