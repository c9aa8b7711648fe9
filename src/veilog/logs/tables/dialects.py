"""How a delimited text is cut: its encoding, delimiter and header, found out from its first lines."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass

from veilog.errors import InputError
from veilog.logs.input.source import Source
from veilog.logs.tables.decoding import decoded
from veilog.logs.tables.headers import headed, is_wide, usual
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

    def better(self, other: _Cut, *, named: bool = True) -> bool:
        """Whether this header has usual names and the other has not, or else more columns."""
        if not named or len(self.columns) < 3 or not other.columns or usual(self.columns) == usual(other.columns):
            return len(self.columns) > len(other.columns)
        return usual(self.columns)


def sniffed(source: Source) -> Dialect:
    """Find the encoding by the first bytes, and delimiter and columns by the header: of the delimiters that cut it into
    the most columns, or into columns with usual names, the first; in a file called .tsv a tab goes before the others.
    Lines of a title may stand before the header (see :func:`_headers`)."""
    path, sample = source.path, source.begin(_SAMPLE)
    preferred = ("\t", ",", ";", "|") if source.format == ".tsv" else (",", ";", "\t", "|")
    if not sample:
        raise InputError("file-empty", path=path)
    encoding, text = decoded(sample, path)
    whole = len(sample) < _SAMPLE
    lines = list(io.StringIO(text.lstrip("\ufeff"), newline=""))
    if not whole:
        lines.pop()
    if not lines:
        raise InputError("first-line-longer-kib", path=path, sample=_SAMPLE >> 10)
    found = {delimiter: rows for delimiter in preferred if (rows := _rows(lines[:_LINES], delimiter, source))}
    best = _Cut([])
    chosen = preferred[0]
    for delimiter, cut in _headers(lines, found, source).items():
        if cut.better(best, named=source.layout.header != 0):
            best, chosen = cut, delimiter
    if not best.columns:
        raise InputError("first-line-too-long", path=path)
    headed = source.layout.header != 0
    names = tuple((name if headed else "") or f"column {i + 1}" for i, name in enumerate(best.columns))
    return Dialect(chosen, encoding, names, best.line, headed, best.titles)


_LINES = 50
"""Of a file that are looked at."""


_Starts = dict[int, list[str]]
"""Rows by the lines that they start on."""


def _rows(lines: list[str], delimiter: str, source: Source) -> _Starts | None:
    """The first rows as this delimiter cuts them; None where it cannot."""
    reader = csv.reader(lines, delimiter=delimiter)
    rows: _Starts = {}
    line = 1
    try:
        for row in reader:
            if row:
                rows[line] = row
            line = reader.line_num + 1
    except csv.Error:
        return rows or None
    if not rows:
        raise InputError("file-empty", path=source.path)
    return rows


def _headers(lines: list[str], found: dict[str, _Starts], source: Source) -> dict[str, _Cut]:
    """The header that each delimiter finds, all of them on one line: the first with three names under any delimiter.
    Later lines may be data, and what one case holds must not decide how others are cut."""
    wanted = source.layout.header
    if wanted:
        for rows in found.values():
            if wanted not in rows:
                raise InputError("no-row-starts-line", path=source.path, wanted=wanted, max=max(rows))
        return {delimiter: _at(lines, rows, wanted) for delimiter, rows in found.items()}
    firsts = {delimiter: _Cut(next(iter(rows.values()))) for delimiter, rows in found.items()}
    if wanted == 0:
        return firsts
    wide = {d: next((line for line, row in rows.items() if is_wide(row, text=True)), None) for d, rows in found.items()}
    line = min((line for line in wide.values() if line is not None), default=None)
    cuts = {
        delimiter: _at(lines, rows, line)
        for delimiter, rows in found.items()
        if line is not None and wide[delimiter] == line and headed(rows[line], line - min(rows))
    }
    if any(map(is_wide, (cut.columns for cut in firsts.values()))) and not any(
        cut.line == 1 or usual(cut.columns) for cut in cuts.values()
    ):
        raise InputError("first-line-may-title", path=source.path)
    return cuts or firsts


def _at(lines: list[str], rows: _Starts, line: int) -> _Cut:
    """The header on this line. What stands before is skipped by its line feeds; where lines end otherwise, there is
    nothing to go by."""
    titles = list(rows).index(line)
    before = "".join(lines[: line - 1]).count("\n")
    return _Cut(rows[line], line, titles) if titles and before == line - 1 else _Cut(next(iter(rows.values())))


def titles(source: Source) -> tuple[Remark, ...]:
    """Return what must be said of the lines before the header."""
    dialect = source.once(sniffed)
    if not dialect.titles:
        return ()
    return (Remark("title-lines", f"the header is on line {dialect.line}", dialect.titles, 1),)
