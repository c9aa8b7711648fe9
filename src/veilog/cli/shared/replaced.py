"""That nothing which was paid for is replaced by what a command writes: its budget would be spent, and it be gone."""

from __future__ import annotations

import contextlib
import gzip
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from veilog._files import sha256_of
from veilog._places import default_ledger
from veilog.cli.shared.terminal import CALL
from veilog.errors import OutputError, VeilogError

__all__ = ["check_not_replaced"]

_PROVEN = re.compile(rb'privacy:status\W[^<>\[\]]{0,60}proven|\\"status\\":\\"proven\\"')
"""What the privacy metadata of a release say, in XES, Parquet and workbooks, and what a model says of its training. One
without a proven guarantee, as of a seed, can be made again for nothing."""
_PLACE = 1 << 20
"""Bytes of a file in which its metadata are, if it has any: the first in XES and models, the last in Parquet."""
_SUFFIX = ".ledger"


def check_not_replaced(places: Iterable[Path], ledgers: Sequence[Path] = (), logs: Sequence[Path] = ()) -> None:
    """Refuse to write over a file that says itself that it has a guarantee, or that is in a ledger: in one of these, in
    that of one of these logs, or in one in the folder that is written to. ``--overwrite`` says that it may go."""
    if CALL.get().overwrite:
        return
    for place in places:
        if os.path.isfile(place) and (_says_so(place) or _entered(place, _ledgers(place, ledgers, logs))):  # noqa: PTH113
            raise OutputError(
                "There is a release or a model in this file, which was paid for, and it would be gone.",
                path=place,
                advice="Nothing was asked of the data. Add --overwrite if it may go, or name another file.",
            )


def _says_so(place: Path) -> bool:
    """Whether the file names a proven guarantee of its own; what cannot be read says nothing."""
    packed = place.suffix.lower() == ".gz"
    if place.suffix.lower() == ".xlsx":
        from veilog.logs.tables.workbook import facts_in  # a start does not wait for it

        return _PROVEN.search(facts_in(place)) is not None
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


def _entered(place: Path, ledgers: Iterable[Path]) -> bool:
    """Whether the file is the output of a release in a ledger: a table says nothing of itself."""
    found = sha256_of(place)
    return found is not None and any(found in _outputs(ledger) for ledger in ledgers)


def _ledgers(place: Path, ledgers: Iterable[Path], logs: Iterable[Path]) -> list[Path]:
    """Where ledgers may be that know of a file."""
    found = [*ledgers, *(Path(os.path.realpath(log) + _SUFFIX) for log in logs)]
    found += [] if (own := default_ledger()) is None else [own]
    found += sorted(Path(os.path.realpath(place)).parent.glob(f"*{_SUFFIX}"))
    return list(dict.fromkeys(Path(os.path.realpath(ledger)) for ledger in found))


def _outputs(ledger: Path) -> set[str]:
    """The digests of what a ledger's releases were written to; none of what is no ledger, or cannot be read."""
    from veilog.ledger.ledger import Ledger  # a start does not wait for it

    with contextlib.suppress(VeilogError, OSError, ValueError):
        if ledger.is_file():
            return {one for account in Ledger.open(ledger).show() for entry in account.entries for one in entry.outputs}
    return set()
