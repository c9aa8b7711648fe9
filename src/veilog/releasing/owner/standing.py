"""What a ledger says of a release beside others: of the same data, and of data that may be about the same people.

That ages: with every release that is made, what was said of the earlier ones is no longer so. A page that is shown asks
the ledger when it is shown; what is written to a file says of which day it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from veilog.errors import VeilogError
from veilog.ledger.accounts import Account
from veilog.ledger.ledger import Ledger
from veilog.logs.eventlog import EventLog
from veilog.releasing.result import Release

_NAMED = 3


@dataclass(frozen=True)
class Standing:
    """What a ledger knows of the releases of some data, and which other accounts it has."""

    account: Account | None
    """That of these data; None where the ledger does not know them."""
    others: int = 0
    """Further accounts that have releases: whether they are about the same people no ledger can know."""
    names: tuple[str, ...] = ()
    """What some of these are called, where that may be said."""
    readable: bool = True
    as_of: str = ""
    """The day on which the ledger was asked, as ISO 8601 writes it, for what is read later."""

    @staticmethod
    def of(account: Account | None, accounts: Iterable[Account], *, named: bool = True) -> Standing:
        """Return what all ``accounts`` of a ledger say to the data of one of them; ``named``: with their names."""
        own = None if account is None else account.number
        others = [other for other in accounts if other.number != own and counting(other)]
        return Standing(account, len(others), tuple(other.name for other in others[:_NAMED]) if named else ())

    @staticmethod
    def of_entry(ledger: Ledger, number: int, *, named: bool = True) -> Standing:
        """Return what a ledger, which is read once, says to the release that it has under this number."""
        try:
            accounts = ledger.show()
        except VeilogError:
            return Standing(None, readable=False)
        own = (account for account in accounts if any(entry.number == number for entry in account.entries))
        return Standing.of(next(own, None), accounts, named=named)


def standing_of(released: Release | EventLog, *, named: bool = True) -> Standing | None:
    """Return what the ledger that a release is entered in says now; None where it is in none."""
    if isinstance(released, EventLog) or released.entry is None:
        return None
    return Standing.of_entry(Ledger(released.entry.path), released.entry.number, named=named)


def counting(account: Account) -> int:
    """Return how many releases of an account count."""
    return sum(entry.state != "withdrawn" for entry in account.entries)
