"""Which of the first rows of a table is its header."""

from __future__ import annotations

import re
from collections.abc import Sequence

from veilog.errors import InputError
from veilog.logs.input.roles import DATA, guess_roles

__all__ = ["headed", "header_among", "is_wide", "usual"]


def header_among(rows: Sequence[Sequence[str]]) -> int:
    """The place of the header among the first rows of a table: lines of a title may stand before it.

    The header is the first row with three names or more; no later row is looked at, as it may be one of data, and one
    case would decide how all others are read. Below a title a row of data is none: then the first row stands.
    """
    if not rows:
        return 0
    place = next((place for place, row in enumerate(rows) if is_wide(row)), 0)
    return place if headed(rows[place], place) else 0


def _names(row: Sequence[str]) -> int:
    return sum(bool(name.strip()) for name in row)


def is_wide(row: Sequence[str], *, text: bool = False) -> bool:
    """Return whether a row has three names or more. In a text a sentence with signs between its words is a title, but
    for usual names: ``Export, ward 3, April``."""
    prose = text and all(name.startswith(" ") for name in row[1:]) and not usual(row)
    return _names(row) >= 3 and not prose


def headed(row: Sequence[str], place: int) -> bool:
    """Return whether this row may be a header: below a title neither data nor what nameless columns are called."""
    return not place or not any(DATA.search(name) or _PLACE.match(name) for name in row)


_PLACE = re.compile(r"\s*column \d+\s*$")


def usual(row: Sequence[str]) -> bool:
    """Return whether the names of these columns say which is the case, the activity and the time."""
    if any(map(DATA.search, row)):
        return False
    try:
        guess_roles([name for name in row if name.strip()])
    except InputError:
        return False
    return True
