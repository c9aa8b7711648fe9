"""Releases that a ledger does not count: made without it, and noted so that its owner sees them and can take them in.

A note is written after its release, when it is known what that cost, and holds what an entry holds. It bounds nothing:
no sum has it until it is counted, and from then on it is an entry like any other, which cannot be taken back.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from veilog.ledger.book import (
    account_of,
    check_together,
    derived_cost,
    limit,
    opened,
    plain,
    reserved,
    rule_with,
    texts,
)
from veilog.ledger.costs import Cost
from veilog.ledger.file import Book, reread
from veilog.privacy.account.guarantee import Guarantee


def note_uncounted(
    book: Book,
    mark: bytes,
    name: str,
    method: str,
    guarantee: Guarantee,
    *,
    parameters: Mapping[str, Any],
    unit: str,
    as_published: bool,
    part: str | None,
    way: str,
) -> int:
    """Note a release under the account of its data, which is opened if they have none; return the account's number."""
    number = book.data.get(book.digest(mark))
    if number is None:
        number = opened(book, mark, plain(unit), name)
    epsilon, delta = texts(derived_cost(guarantee))
    cases = {} if guarantee.cases is None else {"cases": guarantee.cases}
    entry = {
        "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "method": method,
        "as_published": as_published,
        "parameters": dict(parameters),
        "unit": plain(unit),
        "epsilon": epsilon,
        "delta": delta,
        "guarantee": guarantee.to_json() | cases,
        "part": part,
        "way": way,
    }
    text = json.dumps(entry, default=str)
    book.connection.execute("INSERT INTO uncounted VALUES (NULL, ?, ?)", (number, text))
    return number


def count_uncounted(book: Book, account: int) -> int:
    """Take the uncounted releases of an account into its sums, under its budget if it has one; return how many."""
    before = account_of(book, account)
    if not before.uncounted:
        return 0
    check_together(before, replace(before, entries=before.uncounted))
    for entry in before.uncounted:
        cost: Cost | None = None
        if entry.epsilon is not None and entry.delta is not None:
            cost = entry.epsilon, entry.delta
        number = reserved(
            book,
            account,
            entry.method,
            cost,
            parameters=entry.parameters,
            unit=entry.unit,
            as_published=entry.as_published,
            part=entry.part,
            way=entry.way,
        )
        changes = "UPDATE releases SET time = ?, state = 'charged', guarantee = ? WHERE release = ?"
        book.connection.execute(changes, (entry.time, json.dumps(entry.guarantee), number))
    book.connection.execute("DELETE FROM uncounted WHERE account = ?", (account,))
    now = reread(book)
    limit(now, account, before.budget, rule_with(now, before, before.uncounted))
    return len(before.uncounted)
