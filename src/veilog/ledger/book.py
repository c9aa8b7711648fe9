"""What is changed in an open ledger: accounts are opened and put together, entries are made and moved on."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

from veilog.errors import InputError, ParameterError, meant
from veilog.ledger.accounts import Account
from veilog.ledger.costs import Cost
from veilog.ledger.counting import Composed, Counting, read
from veilog.ledger.entries import AccountRow, Entry, State
from veilog.ledger.file import Book
from veilog.ledger.fingerprints import Data, fingerprint
from veilog.logs.eventlog import EventLog
from veilog.logs.stored.store import StoredLog
from veilog.logs.variants import Variants
from veilog.privacy.account.accounting import compose
from veilog.privacy.account.composing import answers_of
from veilog.privacy.account.figures import round_up
from veilog.privacy.account.guarantee import Charge, Guarantee

if TYPE_CHECKING:
    from veilog.logs.files import AnyLog


Given: TypeAlias = "AnyLog | StoredLog | bytes"
"""What data are told by: a log however it is given, or what it is recognised by."""
_MOST_ANSWERS = 500


def held(data: Given) -> Data | bytes:
    """Return the data of an account as they are known by: what was not read yet is read."""
    if isinstance(data, EventLog | StoredLog | Variants | bytes):
        return data
    from veilog.logs.files import as_log  # readers are loaded where there is something to read

    found: Data = as_log(data)
    return found


def mark_of(data: Data | bytes) -> bytes:
    """Return what data are recognised by; who has nothing else of them gives that."""
    return data if isinstance(data, bytes) else fingerprint(data)


def account_of(book: Book, number: int) -> Account:
    """Return an account with its entries, and which others there are beside it."""
    row = book.accounts[number]
    own = tuple(entry for entry in book.entries if entry.account == number)
    uncounted = tuple(entry for entry in book.uncounted if entry.account == number)
    others = sorted(other for other in book.accounts if other != number)
    namesakes = tuple(other for other in others if book.accounts[other].name == row.name)
    return Account(
        number=row.number,
        name=row.name,
        unit=row.unit,
        budget=_budget(row),
        entries=own,
        counting=read(row.counting),
        others=len(others),
        namesakes=namesakes,
        budgets_beside=sum(book.accounts[other].epsilon is not None for other in others),
        uncounted=uncounted,
    )


def opened(book: Book, mark: bytes, unit: str, name: str) -> int:
    """Open an account without a limit for data with this fingerprint."""
    execute = book.connection.execute
    number = int(execute("INSERT INTO accounts VALUES (NULL, ?, ?, NULL, NULL)", (name, unit)).lastrowid or 0)
    execute("INSERT INTO data VALUES (NULL, ?, ?)", (book.digest(mark), number))
    return number


def put_together(book: Book, mark: bytes, old: int | None, account: int) -> int:
    """Put data on another account, with all that was spent of the old one, and with its limit if there is none yet.

    Releases that come to those of a limit were not entered under its rule: what is composed begins anew, and a plan is
    over, as these were none of its releases. Its limit then counts by the sum, with all that there was.
    """
    if account not in book.accounts:
        known = ", ".join(str(number) for number in sorted(book.accounts))
        raise ParameterError(
            f"The ledger has no account {account}.", parameter="account", advice=f"It has: {known or 'none'}."
        )
    execute = book.connection.execute
    if old is None:
        execute("INSERT INTO data VALUES (NULL, ?, ?)", (book.digest(mark), account))
    elif old != account:
        check_together(account_of(book, account), account_of(book, old))
        limited, added = account_of(book, account), account_of(book, old)
        if limited.budget is None and added.budget is not None:
            limited, added = added, limited
            execute("UPDATE accounts SET unit = ? WHERE account = ?", (limited.unit, account))
        limit(book, account, limited.budget, rule_with(book, limited, added.entries))
        execute("UPDATE data SET account = ? WHERE account = ?", (account, old))
        for table in ("releases", "uncounted"):
            execute(f"UPDATE {table} SET account = ? WHERE account = ?", (account, old))
        execute("DELETE FROM accounts WHERE account = ?", (old,))
    return account


def rule_with(book: Book, limited: Account, added: Iterable[Entry]) -> Counting | None:
    """Return how the limit of an account counts when releases come to it that were not made under its rule."""
    if all(entry.state == "withdrawn" for entry in added):
        return limited.counting
    if isinstance(limited.counting, Composed):
        return replace(limited.counting, since=max(entry.number for entry in book.entries))
    return None


def check_together(kept: Account, added: Account) -> None:
    """:class:`ParameterError` where one of two accounts has a budget, and their releases are not for the same unit and
    kind of case: nothing bounds their sum, and they cannot be taken apart again."""
    both = replace(kept, entries=(*kept.entries, *added.entries))
    made = [entry for entry in both.entries if entry.state != "withdrawn"]
    if kept.budget is None and added.budget is None:
        return  # the account says that nothing bounds what was spent
    if len({entry.unit for entry in made}) < 2 and len(both.kinds) < 2:
        return
    one = f"account {kept.number}, counted and not counted,"
    which = one if kept.number == added.number else f"accounts {kept.number} and {added.number}"
    raise ParameterError(
        f"The releases of {which} are not all for the same unit and the same kind of "
        "case, so what they cost cannot be added up, and of a budget nothing would be left.",
        parameter="account",
        advice="Nothing was changed. Keep them apart: each holds for its own unit, and people who are in both lose "
        "what both cost. Without a budget (--epsilon none) they can be put together, and nothing bounds the sum.",
    )


def on_named(book: Book, mark: bytes, known: int | None, name: str) -> int | None:
    """Put data that are on no account yet on the one of this name; None where there is none of this name yet."""
    found = [number for number, row in book.accounts.items() if row.name == name]
    if len(found) > 1:
        numbers = ", ".join(map(str, sorted(found)))
        raise ParameterError(
            f"Several accounts are called {name!r}: {numbers}.",
            parameter="account",
            advice="Put the log on one by its number: veilog ledger set LOG --account NUMBER.",
        )
    if known is not None and known not in found:
        raise ParameterError(
            f"These data are on account {known}, which is called {book.accounts[known].name!r} and not {name!r}.",
            parameter="account",
            advice=meant(name, [book.accounts[known].name])
            + "Leave out --account, or put them there with all that they have spent: veilog ledger set LOG --account "
            "NUMBER.",
        )
    if known is None and found:
        put_together(book, mark, None, found[0])
    return found[0] if found else None


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
    way: str = "",
) -> int:
    """Enter what a release may cost, with the way its log was read, and return the number of the entry."""
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    row = book.connection.execute(
        "INSERT INTO releases VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, 'reserved', NULL, '')",
        (account, now, method, int(as_published), json.dumps(dict(parameters), default=str), unit, *texts(cost)),
    )
    number = int(row.lastrowid or 0)
    if part is not None:
        book.connection.execute("INSERT INTO parts VALUES (?, ?)", (number, part))
    if way:
        book.connection.execute("INSERT INTO ways VALUES (?, ?)", (number, way))
    return number


def change(book: Book, number: int, changes: str, values: tuple[str | None, ...], *states: State) -> None:
    """Change an entry that is in one of these states, or say that the ledger lost it."""
    held = {entry.number: entry.state for entry in book.entries}
    if held.get(number) not in states:
        raise lost(book)
    book.connection.execute(f"UPDATE releases SET {changes} WHERE release = ?", (*values, number))


def derived_cost(guarantee: Guarantee) -> Cost | None:
    """Return what a release cost, exactly where its charges just add up; None without a guarantee."""
    if not guarantee.proven or guarantee.epsilon is None or guarantee.delta is None:
        return None
    epsilon, delta = compose(guarantee.charges)
    if round_up(epsilon) != guarantee.epsilon or round_up(delta) != guarantee.delta:
        return Fraction(Decimal(repr(guarantee.epsilon))), Fraction(Decimal(repr(guarantee.delta)))
    return epsilon, delta


def note_answers(book: Book, number: int, charges: Iterable[Charge]) -> None:
    """Note what a release answered, where it composes answer by answer and is not too long to keep."""
    answers = answers_of(charges)
    if answers is not None and len(answers) <= _MOST_ANSWERS:
        text = json.dumps([[answer.kept, times] for answer, times in answers])
        book.connection.execute("INSERT INTO answers VALUES (?, ?)", (number, text))


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
