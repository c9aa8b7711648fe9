"""Values of XES attributes, tags and trees of nested attributes: text to typed columns and back, exactly.

Dates are ``YYYY-MM-DDThh:mm:ss`` (or a space for the ``T``), a fraction of 1 to 9 digits, and ``Z``, ``+hh:mm``,
``+hhmm``, ``+hh`` or nothing. Whatever the bulk parser does not recognise goes to the scalar one, which decides.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from veilog._typing import AnyArray, BoolArray, Int32Array, IntArray
from veilog.logs.metadata import Attribute, Metadata

NO_ZONE = -(1 << 15)
"""Offset in minutes of a date without a time zone."""

ROOT_TIME = datetime(1970, 1, 1, tzinfo=UTC)
_MIN_US = (datetime(1, 1, 1, tzinfo=UTC) - ROOT_TIME) // timedelta(microseconds=1)
_MAX_US = (datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC) - ROOT_TIME) // timedelta(microseconds=1)

_DATE = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt ]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,9}))?"
    r"(Z|z|[+-][0-9]{2}(?::?[0-9]{2})?)?"
)
_INT = re.compile(r"[+-]?[0-9]+")
_FLOAT = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_SPECIAL_FLOATS = {
    "INF": float("inf"),
    "+INF": float("inf"),
    "-INF": float("-inf"),
    "NaN": float("nan"),
    "Infinity": float("inf"),
    "-Infinity": float("-inf"),
}
_BOOLEANS = {"true": True, "false": False, "1": True, "0": False}


_REFERENCE = re.compile(r"&(?:#x([0-9a-fA-F]+)|#([0-9]+)|(lt|gt|amp|quot|apos));")
_NAMED = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}
_WHITE = str.maketrans("\t\n\r", "   ")


def unescape(raw: bytes) -> str:
    """The value of an XML attribute (XML 1.0, 3.3.3): literal white space becomes spaces, references are resolved."""
    text = raw.decode("utf-8")
    if "\n" in text or "\t" in text or "\r" in text:
        text = text.replace("\r\n", " ").translate(_WHITE)
    if "&" not in text:
        return text
    return _REFERENCE.sub(_resolve, text)


def _resolve(match: re.Match[str]) -> str:
    hexadecimal, decimal, name = match.groups()
    if name is not None:
        return _NAMED[name]
    return chr(int(hexadecimal, 16) if hexadecimal is not None else int(decimal))


def parse_date(text: str) -> tuple[int, int, bool] | None:
    """(microseconds since 1970 in UTC, offset in minutes or ``NO_ZONE``, whether precision was lost), or ``None``."""
    match = _DATE.fullmatch(text.strip(" \t\r\n"))
    if match is None:
        return None
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    offset = NO_ZONE
    if zone is not None:
        offset = 0
        if zone not in "Zz":
            hours, minutes = int(zone[1:3]), int(zone[-2:]) if len(zone) > 3 else 0
            if hours > 23 or minutes > 59:
                return None
            offset = (hours * 60 + minutes) * (-1 if zone[0] == "-" else 1)
    digits = (fraction or "").ljust(9, "0")
    midnight = hour == "24"
    if midnight and (int(minute) or int(second) or int(digits)):
        return None
    try:
        moment = datetime(int(year), int(month), int(day), 0 if midnight else int(hour), int(minute), int(second))  # noqa: DTZ001
    except ValueError:
        return None
    us = (moment.replace(tzinfo=UTC) - ROOT_TIME) // timedelta(microseconds=1) + int(digits[:6])
    us += 86_400_000_000 * midnight - (0 if offset == NO_ZONE else offset * 60_000_000)
    if not _MIN_US <= us <= _MAX_US:
        return None
    return us, offset, digits[6:] != "000"


def parse_scalar(kind: str, text: str) -> tuple[Any, bool]:
    """(value, False), or (the text, True) where it does not fit the type. Dates are microseconds since 1970."""
    if kind in ("string", "id"):
        return text, False
    bare = text.strip(" \t\r\n")
    if kind == "int" and _INT.fullmatch(bare) and len(bare) < 40:
        value = int(bare)
        if -(1 << 63) <= value < 1 << 63:
            return value, False
    elif kind == "float":
        if bare in _SPECIAL_FLOATS:
            return _SPECIAL_FLOATS[bare], False
        if _FLOAT.fullmatch(bare):
            return float(bare), False
    elif kind == "boolean" and bare.lower() in _BOOLEANS:
        return _BOOLEANS[bare.lower()], False
    elif kind == "date" and (date := parse_date(bare)) is not None:
        return date[0], False
    return text, True


def format_date(moment: datetime) -> str:
    """``2017-08-08T15:20:59.000+00:00``; six digits only where microseconds are not zero. Naive means UTC."""
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    digits = "microseconds" if moment.microsecond % 1000 else "milliseconds"
    return moment.replace(tzinfo=None).isoformat(timespec=digits) + "+00:00"


def format_float(value: float) -> str:
    """The shortest text that gives the same number; ``INF``, ``-INF`` and ``NaN`` as XML Schema writes them."""
    if isfinite(value):
        return repr(value)
    return "NaN" if value != value else "INF" if value > 0 else "-INF"


def from_numpy(values: AnyArray, absent: BoolArray | None = None) -> pa.Array:
    """An Arrow array of numpy values. ``pa.array`` would import pandas first, which takes longer than a small log."""
    data = np.packbits(values, bitorder="little") if values.dtype == np.bool_ else np.ascontiguousarray(values)
    validity = None if absent is None else pa.py_buffer(np.packbits(~absent, bitorder="little"))
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [validity, pa.py_buffer(data)])


def to_numpy(values: pa.Array) -> AnyArray:
    """Integers or booleans without nulls as numpy; what stands where there is a null means nothing."""
    data = values.buffers()[1]
    if data is None:
        return np.zeros(len(values), dtype=np.int64)
    if pa.types.is_boolean(values.type):
        bits = np.unpackbits(np.frombuffer(data, dtype=np.uint8), bitorder="little")
        return bits[values.offset : values.offset + len(values)].astype(np.bool_)
    width = values.type.bit_width // 8
    return np.frombuffer(data, dtype=f"i{width}", count=len(values), offset=values.offset * width)


def from_texts(texts: Sequence[str | None], kind: pa.DataType | None = None) -> pa.Array:
    """An Arrow array of strings (or of ``kind``, a type of strings or bytes), without pandas as well."""
    kind = pa.string() if kind is None else kind
    raw = [b"" if text is None else text.encode("utf-8") for text in texts]
    wide = pa.types.is_large_string(kind)
    offsets = np.zeros(len(raw) + 1, dtype=np.int64)
    np.cumsum([len(r) for r in raw], out=offsets[1:])
    absent = np.array([text is None for text in texts], dtype=np.bool_)
    validity = pa.py_buffer(np.packbits(~absent, bitorder="little")) if absent.any() else None
    starts = pa.py_buffer(offsets if wide else offsets.astype(np.int32))
    return pa.Array.from_buffers(kind, len(raw), [validity, starts, pa.py_buffer(b"".join(raw))])


@dataclass(frozen=True)
class Dates:
    """Parsed dates: microseconds in UTC, whether they could be read, offsets in minutes, whether precision was lost."""

    us: IntArray
    ok: BoolArray
    zones: npt.NDArray[np.int16]
    lost: BoolArray


# First day of every month of the years 0 to 9999, and how many days it has.
_MONTHS = np.arange("0000-01", "10000-02", dtype="datetime64[M]").astype("datetime64[D]").astype(np.int64)
_MONTH_DAYS = np.diff(_MONTHS).astype(np.uint8)
_ROUNDS = 6


def parse_dates(data: npt.NDArray[np.uint8], offsets: Int32Array) -> Dates:
    """Dates from the bytes of a binary column: rows of the same length and layout are parsed together."""
    n = len(offsets) - 1
    result = Dates(
        np.zeros(n, dtype=np.int64),
        np.zeros(n, dtype=np.bool_),
        np.full(n, NO_ZONE, dtype=np.int16),
        np.zeros(n, dtype=np.bool_),
    )
    lengths = np.diff(offsets)
    rest = [np.arange(0)]
    for length in np.unique(lengths).tolist():
        rows = np.arange(n) if (lengths == length).all() else np.flatnonzero(lengths == length)
        if not 19 <= length <= 35:
            rest.append(rows)
            continue
        if len(rows) == n:
            matrix = data[offsets[0] : offsets[-1]].reshape(n, length)
        else:
            matrix = data[offsets[:-1][rows][:, None] + np.arange(length)]
        for _ in range(_ROUNDS):
            layout = _DATE.fullmatch(bytes(matrix[0]).decode("latin-1"))
            if layout is None:
                break
            good = _parse_layout(matrix, rows, layout, result)
            if good.all():
                rows = rows[:0]
                break
            rows, matrix = rows[~good], matrix[~good]
            if good[0]:
                continue
            break
        rest.append(rows)
    for row in np.concatenate(rest).tolist():
        # References and line breaks inside a date are legal; the caller gives raw text, so resolve them here.
        found = parse_date(unescape(bytes(data[offsets[row] : offsets[row + 1]])))
        if found is not None:
            result.us[row], result.zones[row], result.lost[row] = found
            result.ok[row] = True
    return result


def _parse_layout(matrix: npt.NDArray[np.uint8], rows: IntArray, layout: re.Match[str], result: Dates) -> BoolArray:
    """Parse the rows that have the punctuation of ``layout``; returns which of them did and are valid dates."""
    text = np.ascontiguousarray(matrix.T)
    fraction, zone = layout.group(7) or "", layout.group(8) or ""
    pattern = layout.group(0)
    digits = text - np.uint8(48)
    is_digit = [i for i, c in enumerate(pattern) if c.isdigit()]
    good: BoolArray = digits[is_digit].max(axis=0) <= 9
    for i, character in enumerate(pattern):
        if character.isdigit() or (i == len(pattern) - len(zone) and character in "+-"):
            continue
        good &= text[i] == ord(character)

    def number(start: int, length: int) -> IntArray:
        value: IntArray = digits[start].astype(np.int64)
        for i in range(start + 1, start + length):
            value *= 10
            value += digits[i]
        return value

    year, month, day = number(0, 4), number(5, 2), number(8, 2)
    hour, minute, second = number(11, 2), number(14, 2), number(17, 2)
    good &= (year >= 1) & (month >= 1) & (month <= 12) & (day >= 1) & (hour <= 23) & (minute <= 59) & (second <= 59)
    index = np.where(good, year * 12 + month - 1, 0)
    good &= day <= _MONTH_DAYS[index]
    us = (_MONTHS[index] + day - 1) * 86_400 + hour * 3600 + minute * 60 + second
    offset = np.zeros(len(rows), dtype=np.int64)
    if zone and zone not in "Zz":
        at = len(pattern) - len(zone)
        hours = number(at + 1, 2)
        minutes = number(len(pattern) - 2, 2) if len(zone) > 3 else np.zeros_like(hours)
        sign = text[at]
        good &= ((sign == 43) | (sign == 45)) & (hours <= 23) & (minutes <= 59)
        offset = np.where(sign == 45, -1, 1) * (hours * 60 + minutes)
        us -= offset * 60
    us *= 1_000_000
    lost = np.zeros(len(rows), dtype=np.bool_)
    if fraction:
        kept = min(len(fraction), 6)
        us += number(20, kept) * 10 ** (6 - kept)
        if len(fraction) > 6:
            lost = number(26, len(fraction) - 6) > 0
    good &= (us >= _MIN_US) & (us <= _MAX_US)
    chosen = rows if good.all() else rows[good]
    result.us[chosen] = us[good]
    result.ok[chosen] = True
    result.zones[chosen] = offset[good] if zone else NO_ZONE
    result.lost[chosen] = lost[good]
    return good


def format_dates(us: pa.Array) -> pa.Array:
    """:func:`format_date` for microseconds since 1970 in UTC; raises OverflowError outside the years 1 to 9999."""
    known = to_numpy(us.drop_null())
    if len(known) and (int(known.min()) < _MIN_US or int(known.max()) > _MAX_US):
        raise OverflowError
    ms, rest = np.divmod(known, 1000)
    days, ms_of_day = np.divmod(ms, 86_400_000)
    date = days.astype("datetime64[D]")
    month_start = date.astype("datetime64[M]")
    months = month_start.astype(np.int64) + 1970 * 12
    numbers = (
        (0, 4, months // 12),
        (5, 2, months % 12 + 1),
        (8, 2, (date - month_start.astype("datetime64[D]")).astype(np.int64) + 1),
        (11, 2, ms_of_day // 3_600_000),
        (14, 2, ms_of_day // 60_000 % 60),
        (17, 2, ms_of_day // 1000 % 60),
        (20, 3, ms_of_day % 1000),
    )
    template = np.frombuffer(b"0000-00-00T00:00:00.000+00:00", dtype=np.uint8)
    columns = np.repeat(template[:, None], len(known), axis=1)
    for start, width, number in numbers:
        left = number.astype(np.int32)
        for i in range(start + width - 1, start - 1, -1):
            left, digit = np.divmod(left, 10)
            columns[i] += digit.astype(np.uint8)
    data = np.ascontiguousarray(columns.T)
    offsets = np.arange(len(known) + 1, dtype=np.int32) * len(template)
    text = pa.StringArray.from_buffers(len(known), pa.py_buffer(offsets), pa.py_buffer(data))
    if rest.any():
        fine = np.flatnonzero(rest)
        moments = [format_date(ROOT_TIME + timedelta(microseconds=v)) for v in known[fine].tolist()]
        place = np.arange(len(known))
        place[fine] = len(known) + np.arange(len(fine))
        text = pa.concat_arrays([text, from_texts(moments)]).take(from_numpy(place))
    if not us.null_count:
        return text
    absent = to_numpy(us.is_null())
    return text.take(from_numpy(np.cumsum(~absent) - 1, absent))


SCALARS = ("string", "date", "int", "float", "boolean", "id")
NESTING = ("list", "container")


class Unusual(Exception):
    """A legal construct that the fast reader leaves to the plain one. Never leaves the XES modules."""


@dataclass(frozen=True, slots=True)
class Note:
    """Something noticed while reading, before any policy is applied."""

    rule: str
    example: str
    line: int
    count: int = 1


@dataclass(frozen=True, slots=True)
class TextPiece:
    """A tag and the text up to the next one. Values are still escaped, as in the file."""

    name: str
    delta: int
    """What the tag does to the depth: 1 for a start tag, 0 for an empty element, -1 for an end tag."""
    attributes: dict[str, bytes]
    stray: bytes
    """Text that follows, without white space around it: XES has none."""


_PIECE = re.compile(
    rb"""<(/?)([^\s/>="']+)((?:\s+[^\s=<>"'/]+\s*=\s*(?:"[^"]*"|'[^']*'))*)\s*(/?)>([^<]*)\Z""",
)
_ATTRIBUTE = re.compile(rb"""([^\s=<>"'/]+)\s*=\s*(?:"([^"]*)"|'([^']*)')""")


def parse_piece(raw: bytes) -> TextPiece:
    """Take a tag apart; what is no ordinary tag is :class:`Unusual`."""
    match = _PIECE.match(raw)
    if match is None:
        raise Unusual
    closing, name, attributes, empty, text = match.groups()
    found = {key.decode("utf-8"): a or b for key, a, b in _ATTRIBUTE.findall(attributes)} if attributes else {}
    delta = -1 if closing else 0 if empty else 1
    return TextPiece(name.decode("utf-8"), delta, found, text.strip())


def stray_note(piece: TextPiece, line: int, count: int = 1) -> Note:
    return Note("stray-text", repr(piece.stray.decode("utf-8")[:80]), line, count)


def is_foreign(name: str) -> bool:
    """Whether an XML attribute belongs to XML itself (namespaces, schema hints) and not to XES."""
    return name == "xmlns" or name.startswith(("xmlns:", "xsi:", "xml:"))


@dataclass(slots=True)
class Element:
    """An XML element as read, with unescaped attributes."""

    name: str
    attributes: dict[str, str]
    line: int
    children: list[Element] = field(default_factory=list)

    def moved(self, lines: int) -> Element:
        """The same element, that many lines further down in the file."""
        return Element(self.name, self.attributes, self.line + lines, [c.moved(lines) for c in self.children])


def read_tree(pieces: Sequence[bytes], lines: Sequence[int], parse: Callable[[bytes], TextPiece]) -> Element:
    """The element that starts with the first piece and ends with the last."""
    top = Element("", {}, 0)
    stack = [top]
    for raw, line in zip(pieces, lines, strict=True):
        piece = parse(raw)
        if piece.delta < 0:
            stack.pop()
            continue
        values = {k: unescape(v) for k, v in piece.attributes.items()}
        element = Element(piece.name, values, line)
        stack[-1].children.append(element)
        if piece.delta:
            stack.append(element)
    return top.children[0]


def read_attribute(element: Element, notes: list[Note], *, drop_bad: bool) -> Attribute | None:
    """An element as an XES attribute with its children, or ``None`` (and a note) if it is none.

    A value that does not fit its type stays text.
    """
    name = element.name
    if name not in SCALARS and name not in NESTING:
        notes.append(Note("unknown-element", f"<{name}>", element.line))
        return None
    key, text = element.attributes.get("key"), element.attributes.get("value")
    if key is None:
        notes.append(Note("incomplete-attribute", f"<{name}> without a key", element.line))
        return None
    extra = [a for a in element.attributes if a not in ("key", "value") and not is_foreign(a)]
    if extra or (name in NESTING and text):
        notes.append(Note("unknown-attribute", f"{(extra or ['value'])[0]} in <{name}>", element.line))
    value: Any = None
    if name in SCALARS:
        if text is None and not element.children:
            notes.append(Note("incomplete-attribute", f"{name} {key!r} without a value", element.line))
            return None
        if text is not None:
            value, bad = parse_scalar(name, text)
            if bad:
                notes.append(Note("bad-value", f"{name} {key!r} = {text!r}", element.line))
                if drop_bad:
                    return None
            elif name == "date":
                value = ROOT_TIME + timedelta(microseconds=value)
    children = read_children(element, notes, drop_bad=drop_bad)
    return Attribute(key, value, name, children)


def read_children(element: Element, notes: list[Note], *, drop_bad: bool) -> tuple[Attribute, ...]:
    """The children of an attribute. The values of a list are its children; if it has attributes beside its values,
    the values are wrapped in a child of type ``values``."""
    nesting = element.name == "list"
    own = [c for c in element.children if not (nesting and c.name == "values")]
    values = [c for c in element.children if nesting and c.name == "values"]
    direct = tuple(a for c in own if (a := read_attribute(c, notes, drop_bad=drop_bad)))
    if not values:
        return direct
    inner = tuple(a for v in values for c in v.children if (a := read_attribute(c, notes, drop_bad=drop_bad)))
    return (*direct, Attribute("", None, "values", inner)) if direct else inner


def read_metadata(root: Element, elements: Iterable[Element], *, drop_bad: bool) -> tuple[Metadata, list[Note]]:
    """Return what a log says about itself, in the elements before its traces, and what was noticed there."""
    notes: list[Note] = []
    extensions, classifiers, attributes = [], [], []
    scopes: list[tuple[str, tuple[Attribute, ...]]] = []
    for element in elements:
        given = element.attributes
        known: tuple[str, ...] = ()
        if element.name == "extension":
            known = ("name", "prefix", "uri")
            extensions.append((given.get("name", ""), given.get("prefix", ""), given.get("uri", "")))
        elif element.name == "classifier":
            known = ("name", "keys", "scope")
            classifiers.append((given.get("name", ""), given.get("keys", ""), given.get("scope", "event")))
        elif element.name == "global":
            known = ("scope",)
            children = (read_attribute(child, notes, drop_bad=drop_bad) for child in element.children)
            scopes.append((given.get("scope", "event"), tuple(a for a in children if a is not None)))
        else:
            attribute = read_attribute(element, notes, drop_bad=drop_bad)
            if attribute is not None:
                attributes.append(attribute)
            continue
        extra = [a for a in given if a not in known and not is_foreign(a)]
        if extra:
            notes.append(Note("unknown-attribute", f"{extra[0]} in <{element.name}>", element.line))
        if element.name != "global":
            notes.extend(Note("unknown-element", f"<{c.name}>", c.line) for c in element.children)
    about = Metadata(
        root.attributes.get("xes.features"),
        root.attributes.get("xes.version"),
        tuple(extensions),
        tuple(scopes),
        tuple(classifiers),
        tuple(attributes),
    )
    return about, notes


def to_json(attribute: Attribute) -> dict[str, Any]:
    """An attribute for the column ``xes:nested``: a format of its own, in which what is not there takes no room."""
    result: dict[str, Any] = {"key": attribute.key, "type": attribute.type}
    if attribute.value is not None:
        value = attribute.value
        if isinstance(value, datetime):
            value = format_date(value)
        elif isinstance(value, float) and not isfinite(value):
            value = format_float(value)
        result["value"] = value
    if attribute.children:
        result["children"] = [to_json(c) for c in attribute.children]
    return result


def dump_nested(entries: list[dict[str, Any]]) -> str:
    return json.dumps(entries, ensure_ascii=False, separators=(",", ":"))


def from_json(entry: dict[str, Any]) -> Attribute:
    """The inverse of :func:`to_json`; TypeError for what that does not give."""
    kind, value = entry["type"], entry.get("value")
    if kind not in (*SCALARS, *NESTING, "values") or not isinstance(entry["key"], str):
        raise TypeError(f"no attribute of XES: {kind}")
    if not isinstance(value, str | int | float | None):
        raise TypeError(f"no value of XES: {type(value).__name__}")
    if isinstance(value, str) and kind in ("date", "float"):
        parsed, bad = parse_scalar(kind, value)
        if not bad:
            value = ROOT_TIME + timedelta(microseconds=parsed) if kind == "date" else parsed
    elif kind == "float" and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    return Attribute(entry["key"], value, kind, tuple(from_json(c) for c in entry.get("children", ())))
