"""Shared fixtures: rings of tests, real logs, and fixed examples and noise.

Three rings: ``make test`` runs the tests without a mark, with few examples each; ``make test-all`` adds those that are
``slow``; ``make nightly`` runs those that are ``nightly``. A mark with ``but=N`` leaves the first N cases of a test in
the ring before. HYPOTHESIS_PROFILE=search looks further than the usual run does, with fresh examples and noise each
time.
"""

import importlib
import os
import signal
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from veilog.privacy.mechanisms import noise

os.environ["VEILOG_LEDGER"] = "none"  # releases of tests are on no account, and wait for no disk
os.environ["XDG_DATA_HOME"] = tempfile.mkdtemp(prefix="veilog-data-")
os.environ.pop("COLUMNS", None)  # the command would make its lines as wide as the terminal of the test run

settings.register_profile(
    "repeatable", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=False
)
settings.register_profile(
    "search", settings.get_profile("repeatable"), derandomize=False, max_examples=1000, print_blob=True
)
settings.register_profile("few", settings.get_profile("repeatable"), max_examples=10)
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "repeatable")
settings.load_profile(PROFILE)


def pytest_configure(config: pytest.Config) -> None:
    if PROFILE == "repeatable" and "not slow" in config.option.markexpr:
        settings.load_profile("few")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave the first cases of a test in the ring before.

    A nightly test is slow there, and a slow one has no mark.
    """
    seen: Counter[tuple[str, Any]] = Counter()
    for item in items:
        for name, instead in (("nightly", [pytest.mark.slow.mark]), ("slow", [])):
            mark = next((mark for mark in item.own_markers if mark.name == name), None)
            if mark is None or "but" not in mark.kwargs:
                continue
            test = (name, getattr(item, "function", item))
            seen[test] += 1
            if seen[test] <= mark.kwargs["but"]:
                item.own_markers[:] = [own for own in item.own_markers if own is not mark] + instead


class _Chance:
    """Noise without a seed, decided by the name of the test or of the shared fixture.

    A test fails on every machine or on none, whatever runs beside it. Processes that a test starts draw their own
    noise.
    """

    def __init__(self) -> None:
        self.name, self.sources = "", 0

    def begin(self, name: str) -> tuple[str, int]:
        before, (self.name, self.sources) = (self.name, self.sources), (name, 0)
        return before

    def source(self) -> noise.Randomness:
        self.sources += 1
        words = np.random.default_rng(list(f"{self.name} {self.sources}".encode()))
        return noise.Randomness(lambda n: words.integers(0, 2**32, size=n, dtype=np.uint32), None)


_command = importlib.import_module("veilog.cli.release")
_chance = _Chance()
_real = noise.operating_system
if PROFILE == "repeatable":
    noise.operating_system = _chance.source


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    _chance.begin(item.nodeid)
    # The logs of most tests are so small that their releases are noise. Tests of the command check its status then.
    _command.NOISE_ONLY = 6 if item.get_closest_marker("noise_status") else 0  # type: ignore[attr-defined]
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: Any, request: pytest.FixtureRequest) -> Iterator[None]:
    """Give a shared fixture noise of its own, whichever test makes it first."""
    if request.scope == "function":
        return (yield)
    before = _chance.begin(f"{fixturedef.baseid} {fixturedef.argname} {getattr(request, 'param', '')}")
    try:
        return (yield)
    finally:
        _chance.name, _chance.sources = before


@pytest.fixture
def operating_system() -> noise.Randomness:
    """Draw from the source that protects data, which other tests replace."""
    return _real()


@pytest.fixture(scope="session")
def logs() -> Path:
    """Return the folder of real logs; skip the test without it."""
    folder = os.environ.get("VEILOG_LOGS")
    if not folder:
        pytest.skip("VEILOG_LOGS names no folder of real logs")
    return Path(folder)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Hear Ctrl-C here and in started processes, also when run in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
