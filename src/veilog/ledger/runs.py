"""Runs that are kept in checkpoints: which checkpoint of a run the ledger knows as its last.

A checkpoint has a *mark*, a random text. The ledger keeps one mark for each run. Going on from a checkpoint, a run
first writes a checkpoint of its own, with a mark of its own and the one that it goes on from, and then puts its mark in
the place of the other, in one transaction and only if the other is still there. So of all copies of a checkpoint one
is gone on with, and one that was gone on with is worth nothing more. Only the run whose mark the ledger has can be
charged, so a run from whose checkpoint another went on comes to no result.

A crash between the two writes loses nothing: the new checkpoint names both marks, and the ledger has one of them.
"""

from __future__ import annotations

from collections.abc import Collection

from veilog.errors import BudgetError
from veilog.ledger.file import Book, Entry

__all__ = ["check_mark", "is_open", "put_mark"]


def is_open(entry: Entry, complete: bool) -> bool:
    """Whether a run with this entry may go on. One that is ``complete`` may also after it was charged:
    it asks nothing more."""
    return entry.state == "reserved" or (complete and entry.state in ("charged", "written"))


def check_mark(book: Book, number: int, marks: Collection[str | None]) -> None:
    """:class:`BudgetError` unless the last checkpoint of this run has one of these marks."""
    if book.runs.get(number) not in marks:
        raise BudgetError(
            "This checkpoint was already resumed: another run went on from it, or from a copy of it.",
            advice="Go on with that run's checkpoint, or start a new run, which costs anew.",
        )


def put_mark(book: Book, number: int, mark: str) -> None:
    """Have the last checkpoint of this run be the one with this mark."""
    book.connection.execute("INSERT OR REPLACE INTO runs VALUES (?, ?)", (number, mark))
