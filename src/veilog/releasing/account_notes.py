"""Confidential warnings on a release from its ledger and from other releases.

Such warnings age: each further release changes what holds of the earlier ones. A page reads the ledger each time it is
shown. A written file names the day on which the ledger was read.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from veilog._files import default_ledger
from veilog.errors import VeilogError
from veilog.ledger.accounts import Account, format_amount
from veilog.ledger.ledger import EntryRef, Ledger
from veilog.ledger.store import Data
from veilog.logs.storage.stored_log import variants_of
from veilog.messages import OwnerMessage
from veilog.privacy.account.guarantee import Strength

_OTHERS_NAMED = 3


def unentered_message(delta: float | Fraction, *, bounded: bool = True) -> OwnerMessage:
    """Return the note that no ledger counts the spent budget.

    An account refuses a release that is not ``bounded``.
    """
    if not bounded:
        return OwnerMessage("in-no-ledger-unbounded")
    return OwnerMessage("in-no-ledger-with-delta" if delta else "in-no-ledger")


OF_ACCOUNTS = frozenset({"in-no-ledger", "in-no-ledger-with-delta", "in-no-ledger-unbounded"})
"""Notes about an account that there is not: what a release is comes before that."""


def namesakes(account: Account) -> OwnerMessage | None:
    """Return the note on other accounts of the same file name; None if there is none.

    The sums of this account do not include the releases of those accounts.
    """
    if not account.namesakes:
        return None
    return OwnerMessage(
        "account-namesakes" if len(account.namesakes) > 1 else "account-namesake",
        name=account.name,
        numbers=", ".join(map(str, account.namesakes)),
        first=account.namesakes[0],
    )


def entered_warnings(entry: EntryRef, log: Data) -> tuple[OwnerMessage, ...]:
    """Return the warnings of the account in which a release was entered.

    The release has already used its budget, so a ledger that cannot be read now yields no warning.
    """
    with contextlib.suppress(VeilogError):
        account = entry.account().among(variants_of(log).cases)
        before = account.before(entry.number)
        level = before.falls_to(account)
        found = [] if level is None else [level_falls(before.strength, level)]
        if not before.releases and account.budgets_beside:
            found.append(budget_messages(account))
        if not before.releases:
            found += filter(None, [namesakes(account)])
        if not before.releases:
            found += elsewhere_warning(entry.path, log)
        return (*found, *uncounted_warning(account))
    return ()


def elsewhere_warning(ledger: Path, log: Data) -> tuple[OwnerMessage, ...]:
    """Return the warning that the user's own ledger has further releases of this data."""
    own = default_ledger()
    if own is None or not own.exists() or (ledger.exists() and own.samefile(ledger)):
        return ()
    with contextlib.suppress(VeilogError):
        account = Ledger.open(own).account(log)
        if account is not None and account.releases:
            several = account.releases > 1
            bounded = account.spent is not None
            code = f"release{'s' if several else ''}-in-another-ledger{'' if bounded else '-unbounded'}"
            epsilon = "" if account.spent is None else format_amount(account.spent[0])
            return (OwnerMessage(code, ledger=own, releases=account.releases, epsilon=epsilon),)
    return ()


def level_falls(before: Strength, after: Strength) -> OwnerMessage:
    """Return the warning that the protection level of an account has fallen."""
    return OwnerMessage("account-level-falls", before=before, after=after)


def uncounted_warning(account: Account) -> tuple[OwnerMessage, ...]:
    """Return the warning that the account does not count all releases, if so."""
    number = len(account.uncounted)
    if not number:
        return ()
    costs = [entry.epsilon for entry in account.uncounted]
    bounded = [cost for cost in costs if cost is not None]
    code = "one-release-uncounted" if number == 1 else "releases-uncounted"
    code += "" if len(bounded) == len(costs) else "-unbounded"
    return (OwnerMessage(code, releases=number, epsilon=format_amount(sum(bounded, Fraction(0)))),)


def budget_messages(account: Account) -> OwnerMessage:
    """Return the warning that a log has its own account while others have budgets.

    A log with one more case is another log to its ledger. An account that is not opened yet has no number.
    """
    return OwnerMessage("log-unknown-beside-budgets" if account.budgets_beside > 1 else "log-unknown-beside-budget")


@dataclass(frozen=True)
class LedgerStatus:
    """Account of some data in a ledger, and the number of other accounts there."""

    account: Account | None
    """Account of these data; None if the ledger does not have one."""
    others: int = 0
    """Number of other accounts with releases. No ledger can know whether they concern the same people."""
    names: tuple[str, ...] = ()
    """Names of some of these accounts, where they may be revealed."""
    readable: bool = True
    as_of: str = ""
    """Day on which the ledger was read (ISO 8601), for texts that are read later."""

    @staticmethod
    def of(account: Account | None, accounts: Iterable[Account], *, named: bool = True) -> LedgerStatus:
        """Return the status of one of the ``accounts`` of a ledger.

        With ``named``, it has the names of some of the others.
        """
        own = None if account is None else account.number
        others = [other for other in accounts if other.number != own and count_releases(other)]
        return LedgerStatus(
            account, len(others), tuple(other.name for other in others[:_OTHERS_NAMED]) if named else ()
        )

    @staticmethod
    def of_entry(ledger: Ledger, number: int, *, named: bool = True) -> LedgerStatus:
        """Return the status of the release with this number; the ledger is read once."""
        try:
            accounts = ledger.show()
        except VeilogError:
            return LedgerStatus(None, readable=False)
        own = (account for account in accounts if any(entry.number == number for entry in account.entries))
        return LedgerStatus.of(next(own, None), accounts, named=named)


def count_releases(account: Account) -> int:
    """Return how many releases of an account count."""
    return sum(entry.state != "withdrawn" for entry in account.entries)
