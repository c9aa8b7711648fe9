"""What is set aside for a run, and, where it is kept in checkpoints, which of them the ledger knows as its last.

A checkpoint has a *mark*, a random text. The ledger keeps one mark for each run. Going on from a checkpoint, a run
first writes a checkpoint of its own, with a mark of its own and the one that it goes on from, and then puts its mark in
the place of the other, in one transaction and only if the other is still there. So of all copies of a checkpoint one
is gone on with, and one that was gone on with is worth nothing more. Only the run whose mark the ledger has can be
charged, so a run from whose checkpoint another went on comes to no result.

A crash between the two writes loses nothing: the new checkpoint names both marks, and the ledger has one of them.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from veilog.errors import BudgetError
from veilog.ledger.book import change, derived_cost, lost, note_answers, texts
from veilog.ledger.costs import Cost, short
from veilog.ledger.entered import EntryRef
from veilog.ledger.entries import Entry, Holder
from veilog.ledger.file import PATIENCE, Book, Waiting, give_back, transaction
from veilog.privacy.account.figures import round_up
from veilog.privacy.account.guarantee import Guarantee


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


@dataclass(frozen=True)
class Reservation:
    """What was set aside for one release."""

    path: Path
    """The ledger."""
    number: int
    cost: Cost | None
    """At most (epsilon, delta); None where nothing bounds it."""
    mark: str | None = None
    """Of the checkpoints of the run that it is for: only while the ledger has this one it is charged."""
    holder: Holder | None = None
    """The process that it was made by, as the ledger knows it."""
    patience: float = PATIENCE
    waiting: Waiting | None = None

    def begin(self) -> None:
        """Note, durably and before its first question, that the release asks: from here on all of it counts, also if
        its process is killed. :class:`BudgetError` where it was given back meanwhile, or the ledger lost it."""
        if self.holder is None or self.holder.asked:
            return
        with self._writing() as book:
            self._check_held(book)
            text = self.holder.begun().text
            book.connection.execute("UPDATE holders SET holder = ? WHERE release = ?", (text, self.number))
        self.check_kept(asked=True)

    def check_kept(self, *, asked: bool) -> None:
        """Read the reservation back: a file system that loses what one of two writers wrote shows here."""
        with transaction(self.path, write=False, patience=self.patience, waiting=self.waiting) as book:
            held = self._check_held(book)
            if held.asked != asked:
                raise lost(book)

    def _check_held(self, book: Book) -> Holder:
        """The holder as the ledger has it, if it is still this one."""
        held = {entry.number: entry.holder for entry in book.entries if entry.state == "reserved"}.get(self.number)
        if held is None or self.holder is None or held.mark != self.holder.mark:
            raise BudgetError(
                "The ledger no longer has this reservation: another process wrote over it, or gave it back.",
                advice="Nothing was asked of the data. Run it again; if that happens again, keep the ledger on a disk "
                "of this machine.",
            )
        return held

    def take_over(self, mark: str, *, complete: bool = False) -> Reservation:
        """The reservation for the run whose checkpoints have this ``mark`` from here on, and for no other."""
        with self._writing() as book:
            if not any(entry.number == self.number and is_open(entry, complete) for entry in book.entries):
                raise lost(book)
            check_mark(book, self.number, (self.mark,))
            put_mark(book, self.number, mark)
        return replace(self, mark=mark)

    def settle(self, guarantee: Guarantee, *, failed: bool = False, whole: bool = False) -> None:
        """Charge what was derived, durably; before anything of the release is shown to anybody. ``whole``: charge all
        that was reserved. How far a release came before it failed in the data would tell something of these. Of one
        that ``failed`` nothing more will come.

        If more was derived than reserved, the method broke its word: the reservation stays and the release must not
        leave the house, which the error sees to.
        """
        derived = derived_cost(guarantee)
        if self.cost is not None:
            if derived is None or any(round_up(d) > round_up(c) for d, c in zip(derived, self.cost, strict=True)):
                raise BudgetError(
                    "The release cost more than was reserved for it, so it is withheld.",
                    advice="This is a defect of the method; please report it.",
                )
            derived = min(short(derived[0]), self.cost[0]), min(short(derived[1]), self.cost[1])
            derived = self.cost if whole else derived
        cases = {} if guarantee.cases is None else {"cases": guarantee.cases}  # what its delta is judged by
        said = json.dumps(guarantee.to_json() | cases)
        with self._changing(
            "epsilon = ?, delta = ?, state = 'charged', guarantee = ?", (*texts(derived), said)
        ) as book:
            if derived is not None and not whole:
                note_answers(book, self.number, guarantee.charges)
            if failed or guarantee.cases == 0:
                book.connection.execute("DELETE FROM holders WHERE release = ?", (self.number,))

    def withdraw(self) -> None:
        """Give back all of it: for a release that failed before anything was asked of the data."""
        with self._changing("state = 'withdrawn'", ()) as book:
            give_back(book.connection, self.number)

    @property
    def entered(self) -> EntryRef:
        """Where it is entered, for what comes of it."""
        return EntryRef(self.path, self.number)

    @contextlib.contextmanager
    def _changing(self, changes: str, values: tuple[str | None, ...]) -> Iterator[Book]:
        with self._writing() as book:
            check_mark(book, self.number, (self.mark,))
            change(book, self.number, changes, values, "reserved")
            yield book

    def _writing(self) -> contextlib.AbstractContextManager[Book]:
        return transaction(self.path, write=True, patience=self.patience, waiting=self.waiting)
