"""How a delimited text is cut: its encoding, delimiter and header, found out from its first lines."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass

from veilog.errors import InputError
from veilog.logs.input.source import Source
from veilog.logs.tables.decoding import decoded
from veilog.logs.tables.headers import header_among, usual
from veilog.logs.tables.reader import Remark

__all__ = ["Dialect", "sniffed", "titles"]

_SAMPLE = 1 << 16


@dataclass(frozen=True)
class Dialect:
    """How a file is to be read: its delimiter, its encoding, and its columns (nameless ones by their position)."""

    delimiter: str
    encoding: str
    columns: tuple[str, ...]
    line: int = 1
    """Where the header is, or where there is none, the first row."""
    headed: bool = True
    titles: int = 0
    """How many rows stand before the header, on the lines before its own."""


@dataclass(frozen=True)
class _Cut:
    """How one delimiter cuts the first lines of a file: its header, the line that it starts on, and the rows before."""

    columns: list[str]
    line: int = 1
    titles: int = 0

    def better(self, other: _Cut) -> bool:
        """Whether this header has usual names and the other has not, or else more columns."""
        if len(self.columns) < 3 or not other.columns or usual(self.columns) == usual(other.columns):
            return len(self.columns) > len(other.columns)
        return usual(self.columns)


def sniffed(source: Source) -> Dialect:
    """Find the encoding by the first bytes, and delimiter and columns by the header: of the delimiters that cut it into
    the most columns, or into columns with usual names, the first; in a file called .tsv a tab goes before the others.
    Lines of a title may stand before the header (see :func:`veilog.logs.tables.headers.header_among`)."""
    path, sample = source.path, source.begin(_SAMPLE)
    preferred = ("\t", ",", ";", "|") if source.format == ".tsv" else (",", ";", "\t", "|")
    if not sample:
        raise InputError("The file is empty.", path=path)
    encoding, text = decoded(sample, path)
    whole = len(sample) < _SAMPLE
    lines = list(io.StringIO(text.lstrip("\ufeff"), newline=""))
    if not whole and len(lines) > 1:
        lines.pop()
    best = _Cut([])
    chosen = preferred[0]
    for delimiter in preferred:
        found = _cut(lines[:_LINES], delimiter, source)
        if found is not None and found.better(best):
            best, chosen = found, delimiter
    if not best.columns:
        raise InputError("The first line is too long for a header.", path=path)
    headed = source.layout.header != 0
    names = tuple((name if headed else "") or f"column {i + 1}" for i, name in enumerate(best.columns))
    return Dialect(chosen, encoding, names, best.line, headed, best.titles)


_LINES = 50
"""Of a file that are looked at."""


def _cut(lines: list[str], delimiter: str, source: Source) -> _Cut | None:
    """The header that this delimiter finds; None where it cannot read the lines."""
    reader = csv.reader(lines, delimiter=delimiter)
    rows, starts, line = [], [], 1
    try:
        for row in reader:
            if row:
                rows.append(row)
                starts.append(line)
            line = reader.line_num + 1
    except csv.Error:
        if not rows:
            return None
    if not rows:
        raise InputError("The file is empty.", path=source.path)
    wanted = source.layout.header
    if not wanted:
        place = header_among(rows) if wanted is None else 0
    elif wanted in starts:
        place = starts.index(wanted)
    else:
        raise InputError(
            f"No row starts on line {wanted} of the first {starts[-1]}.",
            path=source.path,
            advice="Say on which line the names of the columns are: --header LINE.",
        )
    # What stands before is skipped by its line feeds. Where lines end otherwise, there is nothing to go by.
    before = "".join(lines[: starts[place] - 1]).count("\n")
    return _Cut(rows[place], starts[place], place) if place and before == starts[place] - 1 else _Cut(rows[0])


def titles(source: Source) -> tuple[Remark, ...]:
    """Return what must be said of the lines before the header."""
    dialect = source.once(sniffed)
    if not dialect.titles:
        return ()
    return (Remark("title-lines", f"the header is on line {dialect.line}", dialect.titles, 1),)
