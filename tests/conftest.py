"""Shared by all tests: the folder of real logs, and Hypothesis without randomness of its own.

HYPOTHESIS_PROFILE=search looks further than the usual run does, with fresh examples each time.
"""

import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="veilog-state-")  # what was released here is nobody's memory
os.environ.pop("COLUMNS", None)  # the command would make its lines as wide as what runs the tests thinks

settings.register_profile(
    "repeatable", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=False
)
settings.register_profile(
    "search", settings.get_profile("repeatable"), derandomize=False, max_examples=1000, print_blob=True
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


@pytest.fixture(scope="session")
def logs() -> Path:
    """The folder of real logs; without it the test is skipped."""
    folder = os.environ.get("VEILOG_LOGS")
    if not folder:
        pytest.skip("VEILOG_LOGS names no folder of real logs")
    return Path(folder)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Ctrl-C is heard here and in processes that are started, also where the tests run in the background, which ignores
    it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
