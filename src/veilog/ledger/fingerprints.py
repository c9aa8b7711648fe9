"""What the logs of an account, and the units of a part of one, are recognised by.

*Units.* A case that is in the extracts of two months loses both releases. Where the data owner wants that, the ledger
keeps a digest of the name of each unit that a release of a part looked at: 16 bytes, keyed (HMAC-SHA256) with the key
of the ledger, so that nobody finds a name from them without the file. A unit whose digest stands with another part of
the same rule is left out of this one: :mod:`veilog.privacy.part` proves what that gives. Two names have the same digest
with a chance below n**2 / 2**129 for n of them. Exports hold neither digests nor the key.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from veilog._typing import BoolArray
from veilog.errors import BudgetError
from veilog.ledger.file import Book
from veilog.logs.eventlog import EventLog
from veilog.logs.stored.store import StoredLog
from veilog.logs.variants import Variants

Data: TypeAlias = EventLog | StoredLog | Variants


def fingerprint(data: Data) -> bytes:
    """What a log is recognised by: SHA-256 over how many cases have which multiset of activities.

    It does not depend on the file or its format, on the order of rows, cases, or events at the same time, on names of
    cases, further attributes, and cases without events, which not every format can hold. Only a keyed digest of it is
    ever kept.
    """
    variants = data if isinstance(data, Variants) else data.variants
    owner = np.repeat(np.arange(len(variants)), variants.lengths)
    bags = variants.codes[np.lexsort((variants.codes, owner))]
    counts = np.where(variants.lengths > 0, variants.counts, 0)
    canonical = Variants.from_arrays(variants.labels, bags, variants.offsets, counts)
    parts = (
        json.dumps(canonical.labels).encode(),
        canonical.lengths.astype("<i8").tobytes(),
        canonical.counts.astype("<i8").tobytes(),
        canonical.codes.astype("<i4").tobytes(),
    )
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.digest()


_WIDTH = 16
"""Bytes that are kept of a unit."""


@dataclass(frozen=True, eq=False)
class Units:
    """The units of a part that no other part of its rule had."""

    digests: bytes = field(repr=False)
    """Theirs, in order, so that nothing follows from the order of cases."""
    new: BoolArray = field(repr=False)
    """Which cases of the part are of these, or of a unit without a name."""
    part: str
    compared: tuple[int, ...]
    """The releases whose units they were compared with."""

    def check(self, book: Book, account: int) -> None:
        """Refuse to reserve where another release of the rule was entered since these were compared. That follows from
        the ledger alone, and from no unit."""
        if _others(book, account, self.part) != self.compared:
            raise BudgetError(
                "Another release of a part by this rule was entered just now, so its units are not known here.",
                account=account,
                advice="Nothing was asked of the data. Run it again.",
            )


def unseen(book: Book, account: int | None, part: str, kind: str, names: Sequence[str | None]) -> Units:
    """Return which units, named case by case, no other part of the rule of this one had on the account."""
    others = _others(book, account, part)
    before: set[bytes] = set()
    for number in others:
        (kept,) = book.connection.execute("SELECT digests FROM units WHERE release = ?", (number,)).fetchone()
        before.update(kept[place : place + _WIDTH] for place in range(0, len(kept), _WIDTH))
    digests = [None if name is None else _digest(book, kind, name) for name in names]
    new = np.array([digest is None or digest not in before for digest in digests], dtype=np.bool_)
    mine = {digest for digest, is_new in zip(digests, new.tolist(), strict=True) if digest is not None and is_new}
    return Units(b"".join(sorted(mine)), new, part, others)


def _others(book: Book, account: int | None, part: str) -> tuple[int, ...]:
    """The releases of other parts of this rule whose units are kept."""
    rule = part.partition("=")[0]
    return tuple(
        entry.number
        for entry in book.entries
        if entry.account == account
        and entry.remembered
        and entry.part is not None
        and entry.part != part
        and entry.part.partition("=")[0] == rule
    )


def _digest(book: Book, kind: str, name: str) -> bytes:
    """The digest of a unit: of what it is, and its name."""
    text = json.dumps(["unit", kind, name]).encode()
    return hmac.digest(book.key, text, "sha256")[:_WIDTH]
