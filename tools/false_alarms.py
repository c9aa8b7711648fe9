"""Print the tests that involve chance: their rates of failure, reasons and sum.

    python tools/false_alarms.py

The rate is how often a correct program fails the test. Such a test has the mark
``@pytest.mark.false_alarm(rate, why)``; the rate is of all its items together.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MOST = 1e-3
"""Highest probability that a correct program fails any of all tests."""


class Collected:
    """Plugin of pytest that keeps the marked tests, with their numbers of items."""

    def __init__(self) -> None:
        self.items: dict[tuple[str, float, str], int] = {}

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        for item in session.items:
            for mark in item.iter_markers("false_alarm"):
                rate, why = mark.args
                key = (item.nodeid.partition("[")[0], float(rate), str(why))
                self.items[key] = self.items.get(key, 0) + 1


def collected() -> dict[tuple[str, float, str], int]:
    """Return the number of items of each marked test, by its name, rate and reason."""
    files = [
        str(path) for path in sorted((ROOT / "tests").rglob("test_*.py")) if "mark.false_alarm(" in path.read_text()
    ]
    found, said = Collected(), io.StringIO()
    with contextlib.redirect_stdout(said):
        status = pytest.main(["--collect-only", "-q", "-p", "no:cacheprovider", *files], plugins=[found])
    if status:
        sys.exit(said.getvalue())
    return found.items


def main() -> int:
    os.chdir(ROOT)
    items = collected()
    print("| test | items | rate | why not more often |\n|---|---|---|---|")
    for (test, rate, why), number in items.items():
        print(f"| {test} | {number} | {rate:.0e} | {why} |")
    whole = sum(rate for _, rate, _ in items)
    print(f"\nA correct program fails one of all tests with a probability of {whole:.1e} at most; {MOST:g} is allowed.")
    return int(whole >= MOST)


if __name__ == "__main__":
    sys.exit(main())
