"""Whether the cells of a sheet stand in their order, each with a value, before openpyxl reads them.

It goes through a sheet row by row. A row that stands behind one of a higher number is left out by it without a word, as
are the last cells of a row whose cells are not in order, and a formula that nobody computed has no value. So one row of
a high number would take all rows behind it out of the log, whosever they are.
"""

from __future__ import annotations

from typing import BinaryIO
from xml.parsers import expat

__all__ = ["check_cells"]

_BLOCK = 1 << 20
_SHEET, _ROW, _CELL, _IN_CELL = 2, 3, 4, 5
"""How deep the data of a sheet, its rows, their cells, and what is in them stand."""


def check_cells(sheet: BinaryIO) -> None:
    """Raise ValueError where a row or a cell is not behind the one before it, or a formula has no value."""
    cells = _PlacedCells()
    while block := sheet.read(_BLOCK):
        cells.parser.Parse(block, False)
    cells.parser.Parse(b"", True)


class _PlacedCells:
    def __init__(self) -> None:
        self._depth = self._row = self._column = 0
        self._inside = self._formula = self._value = False
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end

    def _start(self, element: str, said: dict[str, str]) -> None:
        self._depth += 1
        if self._depth == _SHEET:
            self._inside = element.rpartition(":")[2] == "sheetData"
        elif not self._inside:
            return
        elif self._depth == _IN_CELL:
            name = element.rpartition(":")[2]
            self._formula |= name == "f"
            self._value |= name in ("v", "is")
        elif self._depth == _CELL:
            column = _column(said["r"]) if "r" in said else self._column + 1
            if column <= self._column:
                raise ValueError(f"the cells of row {self._row} are not in their order")
            self._column, self._formula, self._value = column, False, False
        elif self._depth == _ROW:
            row = int(float(said["r"])) if "r" in said else self._row + 1
            if row <= self._row:
                raise ValueError(f"row {row} stands behind row {self._row}")
            self._row, self._column = row, 0

    def _end(self, element: str) -> None:
        if self._depth == _CELL and self._inside and self._formula and not self._value:
            raise ValueError(f"a formula in row {self._row} has no value")
        self._depth -= 1


def _column(place: str) -> int:
    """The number of the column of a cell such as ``AB12``."""
    number = 0
    for letter in place.upper():
        if "A" <= letter <= "Z":
            number = 26 * number + ord(letter) - ord("A") + 1
    return number
