"""That no release which was paid for is replaced by the next one: its budget would be spent, and it would be gone."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterable
from pathlib import Path

from veilog.cli.shared.places import sha256_of
from veilog.errors import OutputError
from veilog.ledger.ledger import Ledger

__all__ = ["check_not_replaced"]

_PROVEN = re.compile(rb"privacy:status\W[^<>\[\]]{0,60}proven")
"""What the privacy metadata of a release say, in XES and in Parquet. One without a proven guarantee, as of a seed, can
be made again for nothing."""
_PLACE = 1 << 20
"""Bytes of a file in which its metadata are, if it has any: the first in XES, the last in Parquet."""


def check_not_replaced(places: Iterable[Path], ledger: Ledger | None) -> None:
    """Refuse to write over what is in this ledger, or says itself that it is a release with a guarantee."""
    for place in places:
        if place.is_file() and (_says_so(place) or _entered(place, ledger)):
            raise OutputError(
                "There is a release in this file, which was paid for, and it would be gone.",
                path=place,
                advice="Nothing was asked of the data. Add --overwrite if it may go, or name another file.",
            )


def _says_so(place: Path) -> bool:
    """Whether the file names a proven guarantee of its own; what cannot be read says nothing."""
    packed = place.suffix.lower() == ".gz"
    try:
        with gzip.open(place) if packed else place.open("rb") as file:
            if _PROVEN.search(file.read(_PLACE)):
                return True
            if packed:
                return False
            file.seek(max(0, place.stat().st_size - _PLACE))
            return _PROVEN.search(file.read()) is not None
    except (OSError, EOFError):
        return False


def _entered(place: Path, ledger: Ledger | None) -> bool:
    """Whether the file is the output of a release in the ledger: a table says nothing of itself."""
    outputs = (
        set() if ledger is None else {one for account in ledger.show() for e in account.entries for one in e.outputs}
    )
    return bool(outputs) and sha256_of(place) in outputs
