"""Costs as pages show them, in figures and in words: of a release, of an account, and of each log in the list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from veilog.errors import VeilogError
from veilog.ledger.accounts import in_figures
from veilog.ledger.ledger import Ledger
from veilog.ledger.rules import Cost
from veilog.privacy.account.guarantee import Strength
from veilog.privacy.account.guessing import advantage_of
from veilog.report.figures import figure
from veilog.web.jobs.records import LogRecord, ServerSettings

__all__ = ["Figures", "LogSum", "advantage_at", "cost_in_words", "figures", "log_sums"]


Figures = tuple[str, str]
"""Epsilon and delta, as they are written."""


@lru_cache(maxsize=256)
def advantage_at(cost: Cost) -> float:
    """Return by how many percentage points a release of this cost lets anybody guess better, rounded up."""
    return -(-advantage_of(*cost) * 10_000 // 1) / 100


def cost_in_words(cost: Figures) -> str:
    """Return a cost as it is written, rounded up to a few digits."""
    epsilon, delta = (figure(Fraction(part)) for part in cost)
    return f"ε = {epsilon}" + (f", δ = {delta}" if cost[1] != "0" else "")


def figures(cost: Cost | None, *, down: bool = False) -> Figures | None:
    """Return a cost in figures, rounded up, or what is left of one, rounded ``down``; None: nothing bounds it."""
    return None if cost is None else (in_figures(cost[0], down=down), in_figures(cost[1], down=down))


@dataclass(frozen=True)
class LogSum:
    """The account of a log in a line."""

    releases: int
    spent: Figures | None
    """None: nothing bounds it."""
    left: Figures | None
    """None: there is no limit."""
    strength: Strength
    """Of all releases together."""
    uncounted: int
    """Releases that the account does not count."""


def log_sums(logs: Sequence[LogRecord], settings: ServerSettings) -> dict[str, LogSum]:
    """Return the sums by the ids of logs, from one read of the ledger; none where it cannot be read at once. A log
    whose readings have accounts of their own has none until its account is looked at, which puts them together."""
    marks = {
        log.id: {bytes.fromhex(mark) for mark in (log.measured.fingerprint, *log.readings)}
        for log in logs
        if log.measured is not None
    }
    if not settings.ledger.exists():
        return {}
    try:
        found = Ledger(settings.ledger, patience=0).accounts_of(set().union(*marks.values()))
    except (VeilogError, ValueError):
        return {}
    sums = {}
    for log in logs:
        accounts = {a.number: a for mark in marks.get(log.id, ()) if (a := found.get(mark)) is not None}
        if len(accounts) != 1 or log.measured is None:
            continue
        (account,) = accounts.values()
        account = account.among(log.measured.statistics.cases)
        left = figures(account.left, down=True)
        sums[log.id] = LogSum(account.releases, figures(account.spent), left, account.strength, len(account.uncounted))
    return sums
