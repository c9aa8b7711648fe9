"""What the ledger says of a release when its page is shown: what was said when it was made does not hold for long."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, replace

from veilog.ledger import ledger as ledgers
from veilog.ledger.accounts import Account as LedgerAccount
from veilog.privacy.account.guarantee import round_up
from veilog.releasing.owner.standing import Standing
from veilog.web.jobs.records import LogRecord, ServerSettings
from veilog.web.jobs.released_log import Account, Amount, ReleasedLog

__all__ = ["Now", "amounts", "entered_by", "lost", "standing_now"]

_LATE = 1.0
"""Seconds that a clock may be set back meanwhile."""


@dataclass(frozen=True)
class Now:
    """What a ledger said a moment ago."""

    standing: Standing
    account: Account | None
    """None where the ledger does not have the release."""


def standing_now(made: ReleasedLog, log: LogRecord, settings: ServerSettings) -> Now | None:
    """Return what the ledger says of a release of this log, in one read; None where it was entered in none. Other
    accounts are not named: other browsers may have brought those files."""
    if made.entry is None:
        return None
    standing = Standing.of_entry(ledgers.Ledger(settings.ledger), made.entry, named=False)
    if standing.account is None:
        return Now(standing, None)
    cases = 0 if log.measured is None else log.measured.statistics.cases
    account = standing.account.among(cases)
    return Now(replace(standing, account=account), amounts(account))


def lost(log: LogRecord, account: LedgerAccount | None) -> int:
    """Return how many releases of this file the store knows that the account does not have: their numbers are missing,
    or, of a ledger that was begun anew, are those of others."""
    times = {} if account is None else {entry.number: entry.time for entry in account.entries}
    return sum(number not in times or not entered_by(times[number], ended) for number, ended in log.entries)


def entered_by(time: str, ended: float | None) -> bool:
    """Return whether what was entered at this ``time`` can be of a job that had ``ended`` then."""
    return ended is None or datetime.datetime.fromisoformat(time).timestamp() < ended + _LATE


def amounts(account: LedgerAccount) -> Account:
    """Return what was spent of an account and is left, as pages show it beside a release."""
    spent = None if account.spent is None else Amount(*map(round_up, account.spent))
    left = None if account.left is None else Amount(*(-round_up(-part) if part else 0.0 for part in account.left))
    return Account(spent, left, account.strength)
