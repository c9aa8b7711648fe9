"""How wide a log may be. Every attribute is a column as long as the log, so a small file with an attribute of its own
for each event would take memory and time that grow with the square of its size."""

from __future__ import annotations

from pathlib import Path

from veilog.errors import InputError

__all__ = ["MOST_COLUMNS", "check_width"]

MOST_COLUMNS = 1000
"""Hospitals' logs have up to 130 attributes, exports of ERP systems a few hundred."""
_CELLS = 100_000_000
_EMPTY = 100
"""Beyond that many cells at least one in a hundred must have a value: the memory is linear in the file then."""


def check_width(columns: int, cells: int, values: int, path: str | Path | None, line: int | None = None) -> None:
    """Raise :class:`InputError` for more attributes than a log may have, or for cells of which almost none is filled.

    ``values`` is the number of filled ones among ``cells``.
    """
    advice = (
        "Names that are numbered or hold data (lab_4711) belong into values: one attribute for the kind, one for the "
        "value. Or leave attributes out where the log is exported."
    )
    if columns > MOST_COLUMNS:
        raise InputError(
            "log-attributes-more-most", path=path, line=line, advice=advice, columns=columns, most_columns=MOST_COLUMNS
        )
    if cells > _CELLS and cells > _EMPTY * values:
        raise InputError(
            "log-attributes-almost-no",
            path=path,
            line=line,
            advice=advice,
            columns=columns,
            cells=cells // 1000000,
            values=values,
        )
