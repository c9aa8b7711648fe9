"""What is changed in an open ledger: accounts are opened and put together, entries are made and moved on."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from veilog.errors import InputError, ParameterError
from veilog.ledger.accounts import Account
from veilog.ledger.costs import Cost
from veilog.ledger.counting import Counting, read
from veilog.ledger.file import AccountRow, Book, State

__all__ = [
    "account_of",
    "change",
    "limit",
    "lost",
    "opened",
    "plain",
    "put_together",
    "reserved",
    "texts",
    "usual_unit",
]


def account_of(book: Book, number: int) -> Account:
    """Return an account with its entries."""
    row = book.accounts[number]
    own = tuple(entry for entry in book.entries if entry.account == number)
    return Account(row.number, row.name, row.unit, _budget(row), own, read(row.counting))


def opened(book: Book, mark: bytes, unit: str, name: str) -> int:
    """Open an account without a limit for data with this fingerprint."""
    execute = book.connection.execute
    number = int(execute("INSERT INTO accounts VALUES (NULL, ?, ?, NULL, NULL)", (name, unit)).lastrowid or 0)
    execute("INSERT INTO data VALUES (NULL, ?, ?)", (book.digest(mark), number))
    return number


def put_together(book: Book, mark: bytes, old: int | None, account: int) -> int:
    """Put data on another account, with all that was spent of the old one, and with its limit if there is none yet."""
    if account not in book.accounts:
        known = ", ".join(str(number) for number in sorted(book.accounts))
        raise ParameterError(
            f"The ledger has no account {account}.", parameter="account", advice=f"It has: {known or 'none'}."
        )
    execute = book.connection.execute
    if old is None:
        execute("INSERT INTO data VALUES (NULL, ?, ?)", (book.digest(mark), account))
    elif old != account:
        before = book.accounts[old]
        if _budget(book.accounts[account]) is None and _budget(before) is not None:
            execute("UPDATE accounts SET unit = ? WHERE account = ?", (before.unit, account))
            limit(book, account, _budget(before), read(before.counting))
        execute("UPDATE data SET account = ? WHERE account = ?", (account, old))
        execute("UPDATE releases SET account = ? WHERE account = ?", (account, old))
        execute("DELETE FROM accounts WHERE account = ?", (old,))
    return account


def limit(book: Book, account: int, budget: Cost | None, counting: Counting | None = None) -> None:
    """Limit what an account may spend in all, counted by the sum or by a rule; None takes the limit away."""
    execute = book.connection.execute
    execute("DELETE FROM counting WHERE account = ?", (account,))
    if counting is not None:
        execute("INSERT INTO counting VALUES (?, ?)", (account, json.dumps(counting.to_json())))
    execute("UPDATE accounts SET epsilon = ?, delta = ? WHERE account = ?", (*texts(budget), account))


def usual_unit(book: Book, number: int) -> str | None:
    """Whom the releases of an account that has no limit yet protect, if they agree."""
    account = account_of(book, number)
    units = {entry.unit for entry in account.entries if entry.state != "withdrawn"}
    return units.pop() if account.budget is None and len(units) == 1 else None


def reserved(
    book: Book,
    account: int,
    method: str,
    cost: Cost | None,
    *,
    parameters: Mapping[str, Any],
    unit: str,
    as_published: bool,
    part: str | None,
) -> int:
    """Enter what a release may cost, and return the number of the entry."""
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    row = book.connection.execute(
        "INSERT INTO releases VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, 'reserved', NULL, '')",
        (account, now, method, int(as_published), json.dumps(dict(parameters), default=str), unit, *texts(cost)),
    )
    number = int(row.lastrowid or 0)
    if part is not None:
        book.connection.execute("INSERT INTO parts VALUES (?, ?)", (number, part))
    return number


def change(book: Book, number: int, changes: str, values: tuple[str | None, ...], *states: State) -> None:
    """Change an entry that is in one of these states, or say that the ledger lost it."""
    held = {entry.number: entry.state for entry in book.entries}
    if held.get(number) not in states:
        raise lost(book)
    book.connection.execute(f"UPDATE releases SET {changes} WHERE release = ?", (*values, number))


def lost(book: Book) -> InputError:
    """Return the error of an entry that is not there any more."""
    return InputError("The ledger no longer has the entry of this release.", path=book.path)


def plain(text: str) -> str:
    """Return text that can be stored: names of files may hold bytes that are no text."""
    return text.encode("utf-8", "replace").decode()


def texts(cost: Cost | None) -> tuple[str | None, str | None]:
    """Return a cost as it is kept."""
    return (None, None) if cost is None else (str(cost[0]), str(cost[1]))


def _budget(row: AccountRow) -> tuple[Fraction, Fraction] | None:
    return None if row.epsilon is None or row.delta is None else (row.epsilon, row.delta)
