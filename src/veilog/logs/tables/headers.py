"""Which of the first rows of a table is its header."""

from __future__ import annotations

from collections.abc import Sequence

from veilog.errors import InputError
from veilog.logs.input.roles import DATA, guess_roles

__all__ = ["header_among", "usual"]


def header_among(rows: Sequence[Sequence[str]]) -> int:
    """The place of the header among the first rows of a table: lines of a title may stand before it.

    The first row is the header, unless it has fewer than three names, which are no three columns, or a later row that
    has usual names has more fields than any before it, which rows of data never have.
    """
    wide = [place for place, row in enumerate(rows) if sum(bool(name.strip()) for name in row) >= 3]
    if not wide or (wide[0] and any(map(DATA.search, rows[wide[0]]))):
        return 0
    first = wide[0]
    if usual(rows[first]):
        return first
    widest = max(map(len, rows[: first + 1]))
    for place in range(first + 1, len(rows)):
        if len(rows[place]) > widest and usual(rows[place]):
            return place
        widest = max(widest, len(rows[place]))
    return first


def usual(row: Sequence[str]) -> bool:
    """Return whether the names of these columns say which is the case, the activity and the time."""
    if any(map(DATA.search, row)):
        return False
    try:
        guess_roles([name for name in row if name.strip()])
    except InputError:
        return False
    return True
