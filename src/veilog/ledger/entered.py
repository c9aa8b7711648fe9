"""Where a release is entered, for what comes of it after it was charged."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from veilog._files import Naming
from veilog._process import unstopped
from veilog.errors import OutputError, VeilogError
from veilog.ledger.accounts import Account
from veilog.ledger.book import account_of, change, lost
from veilog.ledger.file import PATIENCE, Waiting, transaction


@dataclass(frozen=True)
class EntryRef:
    """Where a release is entered: in this ledger, under this number."""

    path: Path
    number: int

    def naming(self, path: str | os.PathLike[str], *, waiting: Waiting | None = None) -> Naming:
        """Return what gives a file that the release was written to its name and notes it, in one: whatever stops it
        before finds neither, and Ctrl-C or SIGTERM after that both. Where the ledger cannot be written the file gets
        its name all the same, because it is paid for, and :class:`OutputError` says so."""

        def both(digest: str, name: Callable[[], None]) -> None:
            named = False
            try:
                with unstopped() as begin, self._noting(digest, waiting):  # whoever waits for a ledger may stop
                    begin()
                    name()
                    named = True
            except VeilogError as error:
                if not named:
                    name()
                raise OutputError(
                    f"The release is written, and was charged, but its ledger could not note the file. {error}",
                    path=os.fspath(path),
                ) from error

        return both

    @contextlib.contextmanager
    def _noting(self, digest: str, waiting: Waiting | None) -> Iterator[None]:
        """Note a file when the block has ended; one that is noted already is not noted again."""
        changes = "state = 'written', output = trim(output || ' ' || ?)"
        with transaction(self.path, write=True, patience=PATIENCE, waiting=waiting) as book:
            if not any(digest in entry.outputs for entry in book.entries if entry.number == self.number):
                change(book, self.number, changes, (digest,), "charged", "written")
                book.connection.execute("DELETE FROM holders WHERE release = ?", (self.number,))
            yield

    @property
    def written(self) -> bool:
        """Whether a file of it is entered; not, where that cannot be read now."""
        with contextlib.suppress(VeilogError):
            return any(entry.number == self.number and entry.outputs for entry in self.account().entries)
        return False

    def account(self) -> Account:
        """Return the account, with this release in it."""
        with transaction(self.path, write=False, patience=PATIENCE, waiting=None) as book:
            owner = {entry.number: entry.account for entry in book.entries}
            if self.number not in owner:
                raise lost(book)
            return account_of(book, owner[self.number])
