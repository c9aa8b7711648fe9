"""Coded tags from the bytes of XES, and columns of an event log from their values.

There is no object per tag. A block of text is cut before every ``<`` into pieces: a tag and the text up to the next
one. In well-formed XML without DTD, CDATA, comments and processing instructions (the caller sees to that) ``<`` occurs
nowhere else. Attributes as nearly all programs write them, ``<type key="..." value="..."/>``, have exactly four double
quotes. Their fronts and ends take few distinct forms, each of which is parsed once, and their values are cut out as an
Arrow column. All other pieces are parsed one by one, once for each distinct form. Depths and indices are cumulative
sums.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from veilog._typing import BoolArray, Int32Array, IntArray
from veilog.errors import InputError
from veilog.logs.eventlog import ACTIVITY, LABEL_TYPE, LIFECYCLE, START, TIMESTAMP, TIMESTAMP_TYPE
from veilog.logs.xes.values import (
    NESTING,
    SCALARS,
    Dates,
    NeedsNormalizing,
    TextPiece,
    from_numpy,
    from_texts,
    is_foreign,
    parse_dates,
    parse_piece,
    parse_scalar,
    to_numpy,
    unescape,
)
from veilog.messages import Message

_ARROW = {"int": pa.int64(), "float": pa.float64(), "boolean": pa.bool_(), "date": TIMESTAMP_TYPE}
_LETTERS = ":A-Z_a-zÀ-ÖØ-öø-ÿΑ-ΡΣ-ώА-яぁ-ゔァ-ヺ一-\u9fa5가-힣"
_NAME_BEGINS = f"[{_LETTERS}]"
_BETWEEN_NAMES = f"[^{_LETTERS}0-9.-]"
"""Signs outside of names in all editions of XML 1.0. (Checkers may not know the letters of later ones.)"""
_INT = "^-?[0-9]{1,18}$"
_FLOAT = r"^-?[0-9]{1,30}(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,2})?$"


class ColumnKey(NamedTuple):
    """Column of the values of a key with one XES type, or of those that do not fit it."""

    key: str
    type: str
    as_text: bool = False


def arrow_type(column: ColumnKey) -> pa.DataType:
    return LABEL_TYPE if column.as_text else _ARROW.get(column.type, LABEL_TYPE)


def name_columns(columns: Iterable[ColumnKey], reserved: Iterable[str]) -> list[tuple[ColumnKey, pa.Field]]:
    """Return fields for columns in order of first appearance.

    The first column of a key has its name, others ``key (type)``. The names that the event log itself uses are kept for
    what they mean there.
    """
    columns = list(columns)
    taken = set(reserved)
    canonical = {ACTIVITY: "string", TIMESTAMP: "date", LIFECYCLE: "string", START: "date"}
    names: dict[ColumnKey, str] = {}
    for column in columns:
        wanted = canonical.get(column.key, column.type)
        if column.key not in taken and wanted == column.type and not column.as_text:
            names[column] = column.key
            taken.add(column.key)
    result = []
    for column in columns:
        name = names.get(column, "")
        if not name:
            what = f"{column.type} as text" if column.as_text else column.type
            name, number = f"{column.key} ({what})", 2
            while name in taken:
                name, number = f"{column.key} ({what} {number})", number + 1
            taken.add(name)
        metadata = {}
        if name != column.key:
            metadata["xes:key"] = column.key
        if name != column.key or column.type == "id" or column.as_text:
            metadata["xes:type"] = column.type
        result.append((column, pa.field(name, arrow_type(column), metadata=metadata or None)))
    return result


def field_key(field: pa.Field) -> str:
    """Return the XES key of a column."""
    key = (field.metadata or {}).get(b"xes:key")
    return str(field.name) if key is None else key.decode("utf-8")


def legal_keys(table: pa.Table) -> pa.Table:
    """Return the table with a legal XES key for each column.

    It is a name in XML, as the schema of XES requires, and serves for writing: ``age_group`` for ``age group``. The
    columns keep their names.
    """
    keys = [field_key(field) for field in table.schema]
    taken = set(keys)
    fields = list(table.schema)
    for place, key in enumerate(keys):
        legal = re.sub(_BETWEEN_NAMES, "_", key)
        legal = legal if re.match(_NAME_BEGINS, legal) else f"_{legal}"
        if legal == key:
            continue
        free, number = legal, 2
        while free in taken:
            free, number = f"{legal}_{number}", number + 1
        taken.add(free)
        fields[place] = fields[place].with_metadata({**(fields[place].metadata or {}), b"xes:key": free.encode()})
    return table.cast(pa.schema(fields)) if taken != set(keys) else table


def field_type(field: pa.Field) -> str:
    """Return the XES type of a column by its metadata, else by its Arrow type."""
    kind = (field.metadata or {}).get(b"xes:type")
    if kind is not None:
        return str(kind.decode("utf-8"))
    value = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    if pa.types.is_integer(value):
        return "int"
    if pa.types.is_floating(value) or pa.types.is_decimal(value):
        return "float"
    if pa.types.is_boolean(value):
        return "boolean"
    if pa.types.is_timestamp(value) or pa.types.is_date(value):
        return "date"
    return "string"


@dataclass(frozen=True)
class Converted:
    """Typed values of the rows that fit, a mask of these rows, and details of dates."""

    values: pa.Array
    good: BoolArray | None
    """Mask of the rows that fit; ``None`` for all."""
    dates: Dates | None = None


def convert(kind: str, raw: pa.Array) -> Converted:
    """Return the values of one column, still escaped, as an Arrow array of its type."""
    if kind == "date":
        dates = parse_dates(raw)
        every = bool(dates.ok.all())
        us = dates.us if every else dates.us[dates.ok]
        return Converted(from_numpy(us).view(TIMESTAMP_TYPE), None if every else dates.ok, dates)
    encoded = raw.dictionary_encode()
    if kind in ("string", "id"):
        return Converted(strings(encoded), None)
    distinct, fits = _parse_distinct(kind, encoded.dictionary)
    values = distinct.take(encoded.indices)
    if fits.all():
        return Converted(values, None)
    good = fits[to_numpy(encoded.indices)]
    return Converted(values.filter(from_numpy(good)), good)


def _parse_distinct(kind: str, raw: pa.Array) -> tuple[pa.Array, BoolArray]:
    """Return numbers and booleans, by Arrow where it parses like XML Schema."""
    if kind in ("int", "float") and len(raw) > 20:
        text = raw.cast(pa.string())
        regular = pc.match_substring_regex(text, _INT if kind == "int" else _FLOAT)
        if pc.all(regular).as_py():
            return text.cast(_ARROW[kind]), np.ones(len(raw), dtype=np.bool_)
    parsed = [parse_scalar(kind, unescape(value)) for value in raw.to_pylist()]
    bad = np.array([bad for _, bad in parsed], dtype=np.bool_)
    dtype = {"int": np.int64, "float": np.float64, "boolean": np.bool_}[kind]
    return from_numpy(np.array([0 if bad else value for value, bad in parsed], dtype=dtype), bad), ~bad


def strings(encoded: pa.DictionaryArray) -> pa.DictionaryArray:
    """Return labels from raw values, resolved, each once in order of appearance."""
    dictionary = encoded.dictionary
    raw = bytes(dictionary.buffers()[2] or b"") if len(dictionary) else b""
    if b"&" not in raw and b"\n" not in raw and b"\t" not in raw and b"\r" not in raw:
        return pa.DictionaryArray.from_arrays(encoded.indices, dictionary.cast(pa.string()))
    labels: dict[str, int] = {}
    recode = [labels.setdefault(unescape(value), len(labels)) for value in dictionary.to_pylist()]
    indices = np.array(recode, dtype=np.int32)[to_numpy(encoded.indices)]
    return pa.DictionaryArray.from_arrays(from_numpy(indices), from_texts(list(labels)))


def spread_values(values: pa.Array, rows: npt.NDArray[np.integer[Any]], size: int) -> pa.Array:
    """Return a column of ``size`` rows with ``values`` at ``rows`` and nulls else.

    ``rows`` are increasing.
    """
    if len(rows) == size:
        return values
    absent = np.ones(size, dtype=np.bool_)
    absent[rows] = False
    if pa.types.is_dictionary(values.type):
        indices = np.zeros(size, dtype=np.int32)
        indices[rows] = to_numpy(values.indices)
        return pa.DictionaryArray.from_arrays(from_numpy(indices, absent), values.dictionary)
    take = np.zeros(size, dtype=np.int64)
    take[rows] = np.arange(len(rows))
    return values.take(from_numpy(take, absent))


MAX_DEPTH = 100
"""Elements within elements that are followed; real logs stay below ten."""


UNKNOWN, LIST, CONTAINER, EVENT, TRACE = 0, 7, 8, 9, 10
_NUMBERS = {name: i + 1 for i, name in enumerate((*SCALARS, *NESTING, "event", "trace"))}
_HEAD = re.compile(rb"""<(string|date|int|float|boolean|id)\s+key\s*=\s*"([^"]*)"\s+value\s*=\s*"\Z""")
_TAIL = re.compile(rb"""\"\s*(/?)>([^<]*)\Z""")
_CACHE_LIMIT = 100_000


class Tag(NamedTuple):
    """Distinct piece: element, depth change, column, value, and its oddities."""

    name: int
    delta: int
    column: int
    raw: bytes
    stray: bool
    unknown: Message | None
    incomplete: Message | None


@dataclass(frozen=True)
class Coded:
    """Coded pieces in document order.

    ``values[value_at[i]]`` is the escaped value of the attribute in piece ``i``.
    """

    edges: Int32Array
    """Place where each piece starts, and where the last one ends."""
    name: npt.NDArray[np.int8]
    delta: npt.NDArray[np.int8]
    column: Int32Array
    """Number of the attribute's column (:attr:`Coder.keys`); -1 for pieces other than scalar attributes with a
    value."""
    stray: BoolArray
    value_at: Int32Array
    values: pa.Array
    whole: pa.Array
    others: IntArray
    """Pieces that were parsed one by one; ``tags[codes[j]]`` is the tag of piece ``others[j]``."""
    codes: Int32Array
    tags: list[Tag]


class Coder:
    """Coder of one block after the other, with the distinct tags and columns so far."""

    def __init__(self, *, plain: bool) -> None:
        self._plain = plain
        self._heads: dict[bytes, tuple[int, int]] = {}
        self._tails: dict[bytes, tuple[int, bool]] = {}
        self._tags: dict[bytes, Tag] = {}
        self._columns: dict[ColumnKey, int] = {}
        self.keys: list[ColumnKey] = []

    def code(self, data: bytes, *, final: bool) -> Coded | None:
        """Return the pieces of ``data``, which starts with ``<``; None if there is none.

        The last one is complete only if the block is ``final``.
        """
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
            raise NeedsNormalizing
        return piece

    def _head(self, raw: bytes) -> tuple[int, int]:
        """Return (name, column) of a regular piece's front; -1 where it is not regular."""
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
        """Return (depth change, True if text follows) of a regular piece's end, or -1."""
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
                    incomplete = Message("example-without-key", element=piece.name)
                elif "value" in piece.attributes:
                    value = piece.attributes["value"]
                    column = self._column(ColumnKey(unescape(piece.attributes["key"]), piece.name))
                else:
                    incomplete = Message(
                        "example-without-value", element=piece.name, key=unescape(piece.attributes["key"])
                    )
            unknown = Message("example-attribute-in", name=extra[0], element=piece.name) if extra else None
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
    """Places in the tree of the leading pieces that can be used already."""

    size: int
    """Number of pieces up to the last directly in the log or in a trace, so that no event is cut in two."""
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
    """Return the places of coded pieces from depth changes alone.

    ``depth`` before the first piece is 1 or 2 (in a trace).
    """
    name, delta = coded.name, coded.delta
    n = len(name)
    after = np.cumsum(delta, dtype=np.int32) + np.int32(depth)
    if int(after.max()) > MAX_DEPTH:
        raise InputError("xes-nested-too-deeply", path=path, line=line, max_depth=MAX_DEPTH)
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
    """Return for every place ``what`` at the latest place where ``where`` holds.
    That may be the place itself."""
    index = np.where(where, np.arange(1, len(where) + 1, dtype=np.int32), np.int32(0))
    np.maximum.accumulate(index, out=index)
    return np.append(initially, what)[index]
