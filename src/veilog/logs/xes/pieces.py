"""From bytes to coded tags: the fast half of reading XES, without an object per tag.

A block of text is cut before every ``<`` into pieces: a tag and the text up to the next one. In well-formed XML without
DTD, CDATA, comments and processing instructions (the caller sees to that) ``<`` occurs nowhere else. Attributes as
nearly all programs write them, ``<type key="..." value="..."/>``, have exactly four double quotes; their fronts and
ends take few distinct forms, each of which is parsed once, and their values are cut out as an Arrow column. All other
pieces are parsed one by one, once for each distinct form. Depths and indices are cumulative sums.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from veilog._typing import BoolArray, Int32Array, IntArray
from veilog.errors import InputError
from veilog.logs.xes.columns import ColumnKey
from veilog.logs.xes.text import NESTING, SCALARS, TextPiece, Unusual, is_foreign, parse_piece
from veilog.logs.xes.values import from_numpy, from_texts, to_numpy, unescape

__all__ = ["MAX_DEPTH", "Coded", "Coder", "Placed", "place"]

MAX_DEPTH = 100
"""Elements within elements that are followed; real logs stay below ten."""


UNKNOWN, LIST, CONTAINER, EVENT, TRACE = 0, 7, 8, 9, 10
_NUMBERS = {name: i + 1 for i, name in enumerate((*SCALARS, *NESTING, "event", "trace"))}
_HEAD = re.compile(rb"""<(string|date|int|float|boolean|id)\s+key\s*=\s*"([^"]*)"\s+value\s*=\s*"\Z""")
_TAIL = re.compile(rb"""\"\s*(/?)>([^<]*)\Z""")
_CACHE_LIMIT = 100_000


class Tag(NamedTuple):
    """What is kept of a distinct piece: element, depth change, column, value, and what is odd about it."""

    name: int
    delta: int
    column: int
    raw: bytes
    stray: bool
    unknown: str | None
    incomplete: str | None


@dataclass(frozen=True)
class Coded:
    """Pieces in document order, coded. ``values[value_at[i]]`` is the escaped value of the attribute in piece ``i``."""

    edges: Int32Array
    """Where each piece starts, and where the last one ends."""
    name: npt.NDArray[np.int8]
    delta: npt.NDArray[np.int8]
    column: Int32Array
    """Number of the attribute's column (:attr:`Coder.keys`), -1 where the piece is no scalar attribute with a value."""
    stray: BoolArray
    value_at: Int32Array
    values: pa.Array
    whole: pa.Array
    others: IntArray
    """The pieces that were parsed one by one; ``tags[codes[j]]`` is the tag of piece ``others[j]``."""
    codes: Int32Array
    tags: list[Tag]


class Coder:
    """Codes one block after the other; keeps the distinct tags it has met and the columns."""

    def __init__(self, *, plain: bool) -> None:
        self._plain = plain
        self._heads: dict[bytes, tuple[int, int]] = {}
        self._tails: dict[bytes, tuple[int, bool]] = {}
        self._tags: dict[bytes, Tag] = {}
        self._columns: dict[ColumnKey, int] = {}
        self.keys: list[ColumnKey] = []

    def code(self, data: bytes, *, final: bool) -> Coded | None:
        """The pieces of ``data``, which starts with ``<``; the last one is complete only if the block is ``final``."""
        buffer = np.frombuffer(data, dtype=np.uint8)
        marks = np.flatnonzero((buffer == 60) | (buffer == 34)).astype(np.int32)
        starts = np.flatnonzero(buffer[marks] == 60)
        n = len(starts) if final else len(starts) - 1
        if n <= 0:
            return None
        edges = np.append(marks[starts], np.int32(len(data)))[: n + 1]
        quotes = np.diff(starts, append=len(marks))[:n] - 1
        name = np.zeros(n, dtype=np.int8)
        delta = np.zeros(n, dtype=np.int8)
        column = np.full(n, -1, dtype=np.int32)
        stray = np.zeros(n, dtype=np.bool_)
        value_at = np.zeros(n, dtype=np.int32)
        values = pa.nulls(0, pa.binary())

        irregular = quotes != 4
        rows = np.flatnonzero(~irregular)
        if len(rows):
            first = starts[rows]
            cuts = np.empty((len(rows), 4), dtype=np.int32)
            cuts[:, 0], cuts[:, 1] = edges[rows], marks[first + 3] + 1
            cuts[:, 2], cuts[:, 3] = marks[first + 4], edges[rows + 1]
            parts = _binary(np.append(cuts.ravel(), cuts[-1, 3]), data)
            at = np.arange(0, 4 * len(rows), 4, dtype=np.int32)
            heads = parts.take(from_numpy(at)).dictionary_encode()
            tails = parts.take(from_numpy(at + 2)).dictionary_encode()
            values = parts.take(from_numpy(at + 1))
            head_table = np.array([self._head(h) for h in heads.dictionary.to_pylist()], dtype=np.int32)
            tail_table = np.array([self._tail(t) for t in tails.dictionary.to_pylist()], dtype=np.int8)
            head, tail = to_numpy(heads.indices), to_numpy(tails.indices)
            name[rows], column[rows] = head_table[head, 0], head_table[head, 1]
            delta[rows], stray[rows] = tail_table[tail, 0], tail_table[tail, 1]
            value_at[rows] = np.arange(len(rows), dtype=np.int32)
            if (head_table[:, 0] < 0).any() or (tail_table[:, 0] < 0).any():
                irregular[rows] = (head_table[head, 0] < 0) | (tail_table[tail, 0] < 0)

        whole = _binary(edges, data)
        others = np.flatnonzero(irregular)
        encoded = whole.take(from_numpy(others)).dictionary_encode()
        codes = to_numpy(encoded.indices)
        tags = [self._tag(raw) for raw in encoded.dictionary.to_pylist()]
        if tags:
            columns = np.array([t.column for t in tags], dtype=np.int32)
            name[others] = np.array([t.name for t in tags], dtype=np.int8)[codes]
            delta[others] = np.array([t.delta for t in tags], dtype=np.int8)[codes]
            column[others] = columns[codes]
            stray[others] = np.array([t.stray for t in tags], dtype=np.bool_)[codes]
            if (columns >= 0).any():
                value_at[others] = np.arange(len(others), dtype=np.int32) + len(values)
                raw = from_texts([t.raw.decode("utf-8") for t in tags], pa.binary())
                values = pa.concat_arrays([values, raw.take(encoded.indices)])
        return Coded(edges, name, delta, column, stray, value_at, values, whole, others, codes, tags)

    def parse(self, raw: bytes) -> TextPiece:
        piece = parse_piece(raw)
        if ":" in piece.name and not self._plain:
            raise Unusual
        return piece

    def _head(self, raw: bytes) -> tuple[int, int]:
        """(name, column) of the front of a regular piece, -1 where it is not regular after all."""
        known = self._heads.get(raw)
        if known is None:
            match = _HEAD.match(raw)
            known = (-1, -1)
            if match is not None:
                kind = match.group(1).decode("ascii")
                known = (_NUMBERS[kind], self._column(ColumnKey(unescape(match.group(2)), kind)))
            _remember(self._heads, raw, known)
        return known

    def _tail(self, raw: bytes) -> tuple[int, bool]:
        """(depth change, whether text follows) of the end of a regular piece, -1 where it is not regular after all."""
        known = self._tails.get(raw)
        if known is None:
            match = _TAIL.match(raw)
            known = (-1, False)
            if match is not None:
                known = (0 if match.group(1) else 1, bool(match.group(2).strip()))
            _remember(self._tails, raw, known)
        return known

    def _tag(self, raw: bytes) -> Tag:
        known = self._tags.get(raw)
        if known is None:
            piece = self.parse(raw)
            name = _NUMBERS.get(piece.name, UNKNOWN)
            column, value, incomplete = -1, b"", None
            extra = [a for a in piece.attributes if not is_foreign(a)]
            if 1 <= name <= len(SCALARS) and piece.delta >= 0:
                extra = [a for a in extra if a not in ("key", "value")]
                if "key" not in piece.attributes:
                    incomplete = f"<{piece.name}> without a key"
                elif "value" in piece.attributes:
                    value = piece.attributes["value"]
                    column = self._column(ColumnKey(unescape(piece.attributes["key"]), piece.name))
                else:
                    incomplete = f"{piece.name} {unescape(piece.attributes['key'])!r} without a value"
            unknown = f"{extra[0]} in <{piece.name}>" if extra else None
            known = Tag(name, piece.delta, column, value, bool(piece.stray), unknown, incomplete)
            _remember(self._tags, raw, known)
        return known

    def _column(self, key: ColumnKey) -> int:
        number = self._columns.setdefault(key, len(self._columns))
        if number == len(self.keys):
            self.keys.append(key)
        return number


def _remember(cache: dict[bytes, Any], raw: bytes, value: Any) -> None:
    if len(cache) >= _CACHE_LIMIT:
        cache.clear()
    cache[raw] = value


def _binary(offsets: Int32Array, data: bytes) -> pa.Array:
    buffers = [None, pa.py_buffer(np.ascontiguousarray(offsets)), pa.py_buffer(data)]
    return pa.BinaryArray.from_buffers(pa.binary(), len(offsets) - 1, buffers)


@dataclass(frozen=True)
class Placed:
    """Where each piece stands in the tree, for the leading pieces that can be used before more of the file is read."""

    size: int
    """How many pieces: up to the last that stands directly in the log or in a trace, so that no event is cut in two."""
    before: Int32Array
    """Depth before the piece: 1 directly in the log, 2 in a trace, 3 in an event."""
    depth: int
    """Depth after the last of these pieces."""
    in_trace: BoolArray
    """Directly in a trace."""
    in_event: BoolArray
    """Directly in an event."""
    is_trace: BoolArray
    is_event: BoolArray
    case_of: Int32Array
    """Number of the last trace that has begun, -1 for one from an earlier block."""
    event_of: Int32Array


def place(coded: Coded, depth: int, *, final: bool, path: str, line: int) -> Placed:
    """The places of coded pieces from depth changes alone. ``depth`` before the first piece is 1 or 2 (in a trace)."""
    name, delta = coded.name, coded.delta
    n = len(name)
    after = np.cumsum(delta, dtype=np.int32) + np.int32(depth)
    if int(after.max()) > MAX_DEPTH:
        raise InputError("elements-nested-deeper-levels", path=path, line=line, max_depth=MAX_DEPTH)
    before = after - delta
    opens = delta >= 0
    is_trace = (before == 1) & (name == TRACE) & opens
    # The latest element that began directly in the log: is it a trace? Before any, the block goes on inside one.
    in_trace = (before == 2) & _latest(before == 1, is_trace & (delta == 1), depth == 2)
    is_event = in_trace & (name == EVENT) & opens
    in_event = (before == 3) & _latest((before == 2) & (delta == 1), is_event, False)
    if final:
        size = n
    else:
        cuts = np.flatnonzero((before == 1) | in_trace)
        size = int(cuts[-1]) if len(cuts) else 0
    cut = slice(0, size)
    return Placed(
        size,
        before[cut],
        int(before[size]) if size < n else int(after[-1]),
        in_trace[cut],
        in_event[cut],
        is_trace[cut],
        is_event[cut],
        np.cumsum(is_trace[cut], dtype=np.int32) - np.int32(1),
        np.cumsum(is_event[cut], dtype=np.int32) - np.int32(1),
    )


def _latest(where: BoolArray, what: BoolArray, initially: bool) -> BoolArray:
    """For every place, ``what`` at the latest place (itself included) where ``where`` holds."""
    index = np.where(where, np.arange(1, len(where) + 1, dtype=np.int32), np.int32(0))
    np.maximum.accumulate(index, out=index)
    return np.append(initially, what)[index]
