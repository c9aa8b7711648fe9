"""What the releases of each log cost together, for the page that lists all logs of a browser."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from veilog.errors import VeilogError
from veilog.ledger.ledger import Ledger
from veilog.privacy.account.strength import Strength
from veilog.web.jobs.records import LogRecord, Settings
from veilog.web.work.costs import Figures, figures

__all__ = ["LogSum", "log_sums"]


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


def log_sums(logs: Sequence[LogRecord], settings: Settings) -> dict[str, LogSum]:
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
