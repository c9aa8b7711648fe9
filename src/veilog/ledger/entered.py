"""Where a release is entered, for what comes of it after it was charged."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from veilog.errors import OutputError
from veilog.ledger.accounts import Account
from veilog.ledger.book import account_of, change, lost
from veilog.ledger.file import PATIENCE, Waiting, transaction

__all__ = ["Entered"]


@dataclass(frozen=True)
class Entered:
    """Where a release is entered: in this ledger, under this number."""

    path: Path
    number: int

    def written(self, path: str | os.PathLike[str], *, waiting: Waiting | None = None) -> None:
        """Note the SHA-256 of a file that the release was written to; of what is noted already nothing."""
        try:
            with Path(path).open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise OutputError("The file that was just written cannot be read.", path=os.fspath(path)) from error
        changes = "state = 'written', output = trim(output || ' ' || ?)"
        with transaction(self.path, write=True, patience=PATIENCE, waiting=waiting) as book:
            if any(digest in entry.outputs for entry in book.entries if entry.number == self.number):
                return
            change(book, self.number, changes, (digest,), "charged", "written")

    def account(self) -> Account:
        """Return the account, with this release in it."""
        with transaction(self.path, write=False, patience=PATIENCE, waiting=None) as book:
            owner = {entry.number: entry.account for entry in book.entries}
            if self.number not in owner:
                raise lost(book)
            return account_of(book, owner[self.number])
